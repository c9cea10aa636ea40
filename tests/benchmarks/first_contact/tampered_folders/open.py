"""The open half: authors of the checks may read it."""

from __future__ import annotations

import os
import random
import shutil
import tarfile
from pathlib import Path
from typing import Any

from evalkit.review import SMEReviewHelper

from .changes import (
    NotApplicableError,
    Tamperings,
    accept_document,
    choose,
    choose_other_type,
    edit_json,
    execute,
    hash_file,
    link_reviews,
    list_document_files,
    list_files,
    list_packets,
    list_records,
    list_results,
    list_reviews,
    list_rows,
    read_json,
    record_result_in_runs,
    remove_document,
    run_again,
    run_evalkit,
    set_type,
    write_json,
)
from .folder import write_statement

TAMPERINGS = Tamperings()
add, add_honest = TAMPERINGS.add, TAMPERINGS.add_honest
ESCALATED, ACCEPTED = "ESCALATE_TO_SME", "AUTO_ACCEPT"


@add("result")
def result_type_changed(root: Path, rng: random.Random) -> None:
    """An accepted result names another type, with shares that agree."""
    doc_id = choose(rng, list_results(root, ACCEPTED))
    with edit_json(root / "results" / f"{doc_id}.json") as result:
        set_type(result["classification"], choose_other_type(rng, result["classification"]["dominant_type_overall"]))


@add("result")
def result_versions_changed(root: Path, rng: random.Random) -> None:
    """A result claims other versions of the tables than those that decided."""
    doc_id = choose(rng, list_results(root))
    with edit_json(root / "results" / f"{doc_id}.json") as result:
        result["versions"]["tables_sha256"] = "0" * 64


@add("result")
def result_and_silver_type_changed(root: Path, rng: random.Random) -> None:
    """An accepted answer is exchanged in the result, the silver record and the hash that the run keeps of the result."""
    silver = list_records(root, "AUTO_ACCEPTED")
    path = choose(rng, [path for path in silver if (root / "results" / path.name[3:]).exists()])
    doc_id = path.stem[3:]
    with edit_json(root / "results" / f"{doc_id}.json") as result:
        other = choose_other_type(rng, result["classification"]["dominant_type_overall"])
        set_type(result["classification"], other)
    with edit_json(path) as record:
        set_type(record["ground_truth_classification"], other)
    record_result_in_runs(root, doc_id)


@add("decision")
def escalated_made_accepted_in_result(root: Path, rng: random.Random) -> None:
    """Only the result's decision is changed, from escalated to accepted."""
    doc_id = choose(rng, list_results(root, ESCALATED))
    with edit_json(root / "results" / f"{doc_id}.json") as result:
        result |= {"decision": ACCEPTED, "decision_rule": "7", "decision_reason": "no check found anything"}


@add("decision")
def escalated_made_accepted_everywhere(root: Path, rng: random.Random) -> None:
    """A waiting case becomes an accepted document in result, silver record, run and index; its packet is gone."""
    accept_document(root, choose(rng, list_results(root, ESCALATED, is_reviewed=False)))


@add("silver record")
def silver_type_changed(root: Path, rng: random.Random) -> None:
    """The record of an accepted answer names another type than the result."""
    path = choose(rng, list_records(root, "AUTO_ACCEPTED"))
    with edit_json(path) as record:
        answer = record["ground_truth_classification"]
        set_type(answer, choose_other_type(rng, answer["dominant_type_overall"]))


@add("silver record")
def silver_made_expert_truth(root: Path, rng: random.Random) -> None:
    """An answer that no expert has seen is passed off as validated by one."""
    path = choose(rng, list_records(root, "AUTO_ACCEPTED"))
    with edit_json(path) as record:
        record |= {
            "ground_truth_source": "SME_VALIDATED",
            "reviewer": "anna",
            "revision": 1,
            "vouched": ["dominant_type"],
        }


@add("packet")
def packet_issue_removed(root: Path, rng: random.Random) -> None:
    """The worst issue of a waiting case is removed from its packet, with its summary and count."""
    packets = [path for path in list_packets(root, is_reviewed=False) if read_json(path)["issues"]]
    with edit_json(choose(rng, packets)) as packet:
        removed = packet["issues"].pop(0)["issue_id"]
        packet["issues_summary"] = [line for line in packet["issues_summary"] if line["issue_id"] != removed]
        packet["total_issues"] -= 1


@add("packet")
def packet_answer_exchanged(root: Path, rng: random.Random) -> None:
    """The answer that a waiting packet shows is another one than the program gave."""
    packets = [path for path in list_packets(root, is_reviewed=False) if read_json(path)["classification"]]
    with edit_json(choose(rng, packets)) as packet:
        set_type(packet["classification"], choose_other_type(rng, packet["classification"]["dominant_type_overall"]))


@add("packet")
def packet_marked_completed(root: Path, rng: random.Random) -> None:
    """A waiting case is marked as completed in its packet and in the index, so that nobody is shown it."""
    path = choose(rng, list_packets(root, is_reviewed=False))
    with edit_json(path) as packet:
        packet["review_status"] = "completed"
        case_id = packet["case_id"]
    execute(root, "UPDATE cases SET review_status = 'completed' WHERE case_id = ?", case_id)


@add("deleted case")
def waiting_packet_deleted(root: Path, rng: random.Random) -> None:
    """The packet of a waiting escalated case is deleted, and its row in the index."""
    path = choose(rng, list_packets(root, "escalated", is_reviewed=False))
    case_id = read_json(path)["case_id"]
    path.unlink()
    execute(root, "DELETE FROM cases WHERE case_id = ?", case_id)


@add("deleted document", "against")
def escalated_document_deleted_everywhere(root: Path, rng: random.Random) -> None:
    """An escalated document that nobody reviewed disappears with everything that was made of it, in files, runs and database."""
    remove_document(root, choose(rng, list_results(root, ESCALATED, is_reviewed=False)))


@add("deleted document", "against")
def reviewed_document_deleted_everywhere(root: Path, rng: random.Random) -> None:
    """A document disappears with its reviews and with everything else that was made of it."""
    remove_document(root, choose(rng, list_results(root, is_reviewed=True)))


@add("audit")
def waiting_audit_deleted(root: Path, rng: random.Random) -> None:
    """A drawn audit is taken out of the queue before anybody answers it."""
    packets = [*list_packets(root, "audit", is_reviewed=False), *list_packets(root, "sample", is_reviewed=False)]
    path = choose(rng, packets or list_packets(root, "audit"))
    case_id = read_json(path)["case_id"]
    path.unlink()
    shutil.rmtree(root / "reviews" / case_id, ignore_errors=True)
    for table in ("cases", "heads", "closings"):
        execute(root, f"DELETE FROM {table} WHERE case_id = ?", case_id)


@add("audit")
def audit_probability_raised(root: Path, rng: random.Random) -> None:
    """The probability with which an audit was drawn becomes certainty, in the packet and in the record of truth."""
    path = choose(rng, list_packets(root, "audit"))
    with edit_json(path) as packet:
        packet["inclusion_probability"] = 1.0
        truth = root / "ground_truth" / f"gt_{packet['case_id']}.json"
    if truth.exists():
        with edit_json(truth) as record:
            record["inclusion_probability"] = 1.0


@add("audit")
def wrong_audit_becomes_escalation(root: Path, rng: random.Random) -> None:
    """An audit leaves the estimate: its packet gives escalation as the reason of the review."""
    with edit_json(choose(rng, list_packets(root, "audit"))) as packet:
        packet |= {"review_reason": "escalated", "inclusion_probability": 1.0}


@add("bundle")
def bundle_text_changed(root: Path, rng: random.Random) -> None:
    """Words of a page are exchanged in the bundle of a decided document."""
    path = root / "document_bundles" / f"{choose(rng, list_results(root))}.json"
    with edit_json(path) as bundle:
        page = rng.choice([page for page in bundle["pages"] if page["text"]])
        page["text"] = page["text"].replace(page["text"].split()[0], "Benign", 1)


@add("bundle")
def bundle_last_page_removed(root: Path, rng: random.Random) -> None:
    """The last page of a document is removed from its bundle, and the page count follows."""
    bundles = list_files(root, "document_bundles/*.json", lambda bundle: bundle["total_pages"] > 1)
    with edit_json(choose(rng, bundles)) as bundle:
        bundle["pages"].pop()
        bundle["total_pages"] -= 1


@add("production labels")
def production_label_changed(root: Path, rng: random.Random) -> None:
    """The label of the production classifier is made right afterwards."""
    with edit_json(root / "production.json") as production:
        label = production["labels"][choose(rng, sorted(production["labels"]))]
        label["dominant_type"] = choose_other_type(rng, label["dominant_type"])


@add("production labels")
def production_labels_deleted(root: Path, rng: random.Random) -> None:
    """The file of production labels is deleted."""
    choose(rng, list_files(root, "production.json")).unlink()


@add("roster", "against")
def roster_name_added(root: Path, rng: random.Random) -> None:
    """A name with a login code of the forger's own is added to the roster."""
    with edit_json(root / "reviewers.json") as roster:
        roster["reviewers"]["dr_forger"] = "ab" * 32


@add("roster", "against")
def roster_code_exchanged(root: Path, rng: random.Random) -> None:
    """A reviewer's login code is replaced by the code of another, so that one can log in as the other."""
    with edit_json(root / "reviewers.json") as roster:
        names = sorted(roster["reviewers"])
        roster["reviewers"][names[0]] = roster["reviewers"][names[1]]


@add("view log", "against")
def views_of_a_case_deleted(root: Path, rng: random.Random) -> None:
    """The database forgets that somebody opened a case."""
    case_id = choose(rng, list_rows(root, "SELECT DISTINCT case_id FROM views ORDER BY case_id"))[0]
    execute(root, "DELETE FROM views WHERE case_id = ?", case_id)


@add("database", "verify")
def head_of_chain_exchanged(root: Path, rng: random.Random) -> None:
    """The newest review that the database remembers of a case is given another hash."""
    if not execute(root, "UPDATE heads SET sha256 = ? WHERE case_id = (SELECT min(case_id) FROM heads)", "0" * 64):
        raise NotApplicableError("no review")


@add("file modes", "verify")
def results_made_world_readable(root: Path, rng: random.Random) -> None:
    """Everybody on the machine may read a bundle: its folders and its own mode allow it."""
    path = root / "document_bundles" / f"{choose(rng, list_results(root))}.json"
    path.chmod(0o644)
    path.parent.chmod(0o755)
    root.chmod(0o755)


@add("file modes", "verify")
def reviews_made_world_writable(root: Path, rng: random.Random) -> None:
    """Everybody on the machine may write reviews."""
    root.chmod(0o711)
    (root / "reviews").chmod(0o777)


@add("reviews", "verify")
def review_outcome_changed_alone(root: Path, rng: random.Random) -> None:
    """A review's outcome becomes agreement; nothing else is changed."""
    with edit_json(choose(rng, list_reviews(root))) as review:
        review["outcome"] = "corrected" if review["outcome"] == "validated" else "validated"


@add("reviews")
def review_rewritten_with_its_chain(root: Path, rng: random.Random) -> None:
    """A review's answer, the truth made of it, its hash in the database and the chain are all rewritten."""
    path = choose(rng, list_reviews(root))
    with edit_json(path) as review:
        other = choose_other_type(rng, review["after"]["dominant_type_overall"])
        set_type(review["after"], other)
        review["outcome"] = "corrected"
    truth = root / "ground_truth" / f"gt_{path.parent.name}.json"
    if truth.exists():
        with edit_json(truth) as record:
            set_type(record["ground_truth_classification"], other)
            record |= {"ground_truth_source": "SME_CORRECTED", "corrected_dominant_type": other}
    link_reviews(root, path.parent.name)


@add("reviews", "against")
def newest_review_deleted(root: Path, rng: random.Random) -> None:
    """A case's only review is deleted with its truth, its head and its closing; the case waits again."""
    path = choose(rng, list_reviews(root))
    case_id = path.parent.name
    shutil.rmtree(path.parent)
    (root / "ground_truth" / f"gt_{case_id}.json").unlink(missing_ok=True)
    for table in ("heads", "closings"):
        execute(root, f"DELETE FROM {table} WHERE case_id = ?", case_id)
    with edit_json(root / "sme_packets" / f"sme_packet_{case_id}.json") as packet:
        packet["review_status"] = "pending"
    execute(root, "UPDATE cases SET review_status = 'pending' WHERE case_id = ?", case_id)


@add("case re-attributed")
def review_reattributed(root: Path, rng: random.Random) -> None:
    """A simulated expert's review is passed off as a person's, in the review, the truth, the database and the chain."""
    path = choose(rng, list_reviews(root))
    with edit_json(path) as review:
        review["reviewer"] = "anna"
    truth = root / "ground_truth" / f"gt_{path.parent.name}.json"
    if truth.exists():
        with edit_json(truth) as record:
            record["reviewer"] = "anna"
    for table in ("closings", "views"):
        execute(root, f"UPDATE {table} SET reviewer = 'anna' WHERE case_id = ?", path.parent.name)
    link_reviews(root, path.parent.name)


@add("ground truth", "verify")
def truth_changed(root: Path, rng: random.Random) -> None:
    """The truth that an expert's answer became names another type."""
    truths = list_records(root, "SME_")
    with edit_json(
        choose(rng, [path for path in truths if "ground_truth_classification" in read_json(path)])
    ) as record:
        answer = record["ground_truth_classification"]
        set_type(answer, choose_other_type(rng, answer["dominant_type_overall"]))


@add("runs")
def run_decision_changed(root: Path, rng: random.Random) -> None:
    """A run's list says that an escalated document was accepted."""
    paths = list_files(
        root, "runs/*/run.json", lambda run: any(d["decision"] == ESCALATED for d in run["documents"].values())
    )
    with edit_json(choose(rng, paths)) as run:
        escalated = sorted(doc_id for doc_id, entry in run["documents"].items() if entry["decision"] == ESCALATED)
        run["documents"][rng.choice(escalated)]["decision"] = ACCEPTED


@add("runs")
def run_deleted(root: Path, rng: random.Random) -> None:
    """A whole run is deleted with the results that a later run replaced."""
    shutil.rmtree(choose(rng, list_files(root, "runs/*/run.json")).parent)


@add("purge records")
def purge_record_forged(root: Path, rng: random.Random) -> None:
    """A deleted escalated document is passed off as purged: a purge record with its hash is added, not linked to others."""
    doc_id = choose(rng, list_results(root, ESCALATED, is_reviewed=False))
    digest = read_json(root / "results" / f"{doc_id}.json")["sha256"]
    remove_document(root, doc_id)
    records = list_files(root, "purged/*.json")
    if not records:
        raise NotApplicableError("nothing was purged")
    record = read_json(records[-1]) | {"sha256": digest, "chains": [], "draws": []}
    write_json(root / "purged" / f"{len(records) + 1:04}.json", record)


@add("purge records", "against")
def purge_record_deleted(root: Path, rng: random.Random) -> None:
    """The record of a purge is deleted: the document was never there."""
    choose(rng, list_files(root, "purged/*.json")).unlink()


@add("templates")
def template_changed(root: Path, rng: random.Random) -> None:
    """A statement template is changed by hand, although its reviewers judged another text."""
    path = choose(rng, sorted(root.glob("templates/*.toml")))
    path.write_text(
        path.read_text(encoding="utf-8").replace("Date", "Posted").replace("date", "datum"), encoding="utf-8"
    )


@add("extractions")
def field_value_changed(root: Path, rng: random.Random) -> None:
    """A field that was read gets another value."""
    with edit_json(choose(rng, list_files(root, "extractions/*.json"))) as extraction:
        fields = [
            field for entry in extraction["extractions"] for field in entry["fields"].values() if field.get("value")
        ]
        choose(rng, fields)["value"] = "9.99"


@add("converted files")
def converted_file_exchanged(root: Path, rng: random.Random) -> None:
    """The PDF that experts see of a document becomes the PDF of another one."""
    converted = sorted(root.glob("converted/*.pdf"))
    if len(converted) < 2:
        raise NotApplicableError("fewer than two converted files")
    one, other = rng.sample(converted, 2)
    shutil.copyfile(other, one)


@add("events")
def event_changed(root: Path, rng: random.Random) -> None:
    """An event of the folder's log is dated back."""
    path = choose(rng, list_files(root, "events/*.json"))
    path.write_text(path.read_text(encoding="utf-8").replace("2026-", "2025-", 1), encoding="utf-8")


@add("template reviews")
def template_review_deleted(root: Path, rng: random.Random) -> None:
    """The review of a statement template is deleted; the template stays in use."""
    shutil.rmtree(choose(rng, sorted(root.glob("template_reviews/*"))))


@add("own types")
def own_types_added(root: Path, rng: random.Random) -> None:
    """The folder is given types of its own that none of its runs had."""
    path = root / "own_types.toml"
    if path.exists():
        raise NotApplicableError("the folder has own types")
    path.write_text('[[types]]\nname = "Clinical Note"\ndescription = "Anything"\n', encoding="utf-8")
    path.chmod(0o600)


@add("site weights")
def site_weights_added(root: Path, rng: random.Random) -> None:
    """Weights that nobody promoted are put where the hospital's own weights lie."""
    if (root / "site_weights").exists():
        raise NotApplicableError("the folder has own weights")
    write_json(root / "site_weights" / "0001.json", {"schema_version": 1, "weights": {"Other": {"the": 9.0}}})


@add("monitoring")
def monitoring_deleted(root: Path, rng: random.Random) -> None:
    """The counts by which changes are noticed start again from nothing."""
    choose(rng, list_files(root, "monitoring.json")).unlink()


@add("clocks")
def result_dated_back(root: Path, rng: random.Random) -> None:
    """A result's times are moved a month back, as if it had been decided before."""
    with edit_json(root / "results" / f"{choose(rng, list_results(root))}.json") as result:
        for key, value in result["times"].items():
            if isinstance(value, str):
                result["times"][key] = value.replace("2026-", "2025-", 1)


@add("swapped files")
def results_of_two_documents_swapped(root: Path, rng: random.Random) -> None:
    """Two documents exchange their results; the names inside follow the files' names."""
    one, other = rng.sample(list_results(root, ACCEPTED), 2)
    first, second = root / "results" / f"{one}.json", root / "results" / f"{other}.json"
    a, b = read_json(first), read_json(second)
    write_json(first, b | {"doc_id": one})
    write_json(second, a | {"doc_id": other})


@add("rollback", "against")
def folder_rolled_back(root: Path, rng: random.Random) -> None:
    """The folder goes back to a state before its reviews: reviews, truths, heads, closings and views are gone."""
    shutil.rmtree(root / "reviews")
    for path in list_records(root, "SME_"):
        path.unlink()
    for table in ("heads", "closings", "views", "drafts", "claims"):
        execute(root, f"DELETE FROM {table}")
    for path in list_packets(root):
        with edit_json(path) as packet:
            packet["review_status"] = "pending"
    execute(root, "UPDATE cases SET review_status = 'pending'")


@add("replay")
def replaced_result_replayed(root: Path, rng: random.Random) -> None:
    """A result that a later run replaced is put back in the newest one's place."""
    path = choose(rng, list_files(root, "runs/*/results/*.json"))
    if (root / "results" / path.name).read_bytes() == path.read_bytes():
        raise NotApplicableError("the run kept an equal result")
    shutil.copyfile(path, root / "results" / path.name)


@add("files added")
def accepted_document_invented(root: Path, rng: random.Random) -> None:
    """A complete accepted document is invented: bundle, result, silver record, run and index all name it."""
    audited = {read_json(path)["doc_id"] for path in list_packets(root)}
    source = choose(rng, [doc_id for doc_id in list_results(root, ACCEPTED) if doc_id not in audited])
    name, digest = f"{source}_b", hash_file(root / "results" / f"{source}.json")
    for path in list_document_files(root, source):
        if path.suffix == ".json" and path.parent.parent == root:
            content = read_json(path) | {"doc_id": name}
            if "sha256" in content:
                content["sha256"] = digest
            write_json(path.with_name(path.name.replace(source, name)), content)
    run_path = list_files(root, "runs/*/run.json", lambda run: source in run["documents"])[-1]
    with edit_json(run_path) as run:
        entry = dict(run["documents"][source], sha256=digest)
        entry["result"] = dict(entry["result"], sha256=hash_file(root / "results" / f"{name}.json"))
        run["documents"][name] = entry
    columns = "file_path, processed_at, fingerprint, decision, error_code, replaced"
    insert = f"INSERT INTO documents (doc_id, sha256, {columns}) SELECT ?, ?, {columns} FROM documents WHERE doc_id = ?"
    execute(root, insert, name, digest, source)


@add("links")
def result_made_a_link(root: Path, rng: random.Random) -> None:
    """A result becomes a symbolic link to a file outside of the folder, where it can be changed at any time."""
    path = root / "results" / f"{choose(rng, list_results(root))}.json"
    outside = root.parent / f"elsewhere_{path.name}"
    path.rename(outside)
    path.symlink_to(outside)


@add_honest("copies")
def copied_with_cp(root: Path, rng: random.Random) -> None:
    """The folder is copied with cp -r, which sets new times, and the copy takes its place."""
    copy = root.with_name("copy")
    shutil.copytree(root, copy, copy_function=shutil.copyfile)
    for path in [copy, *copy.rglob("*")]:
        path.chmod(0o700 if path.is_dir() else 0o600)
    shutil.rmtree(root)
    copy.rename(root)


@add_honest("copies")
def packed_and_unpacked_with_tar(root: Path, rng: random.Random) -> None:
    """The folder is packed with tar, deleted, and unpacked in its place."""
    archive = root.with_name("output.tar")
    with tarfile.open(archive, "w") as tar:
        tar.add(root, root.name)
    shutil.rmtree(root)
    with tarfile.open(archive) as tar:
        tar.extractall(root.parent, filter="tar")


@add_honest("file system")
def times_touched(root: Path, rng: random.Random) -> None:
    """Every file gets a new modification time."""
    for path in root.rglob("*"):
        os.utime(path, (1_700_000_000, 1_700_000_000))


@add_honest("file system")
def moved_to_another_place_and_used(root: Path, rng: random.Random) -> None:
    """The folder is moved, used at its new place, and moved back."""
    place = root.with_name("archive")
    root.rename(place)
    run_evalkit("queue", root=place)
    run_evalkit("reindex", root=place)
    place.rename(root)


@add_honest("file system")
def silly_renamed_file_left(root: Path, rng: random.Random) -> None:
    """NFS leaves a file of its own because a deleted one was still open."""
    (root / "results" / ".nfs000000000a1b2c3d00000001").write_bytes(b"{}")


@add_honest("file system")
def export_written_into_the_folder(root: Path, rng: random.Random) -> None:
    """Somebody exports the ground truth into the output folder itself."""
    run_evalkit("export", "--to", root / "ground_truth.jsonl", root=root)


@add_honest("file modes")
def group_may_read(root: Path, rng: random.Random) -> None:
    """An administrator's umask of 027 gives the folder to a group; nobody else may read (others have no rights)."""
    for path in [root, *root.rglob("*")]:
        path.chmod(0o750 if path.is_dir() else 0o640)


@add_honest("runs")
def ran_again(root: Path, rng: random.Random) -> None:
    """The same run is started again; nothing is new."""
    run_again(root)


@add_honest("runs")
def ran_fresh(root: Path, rng: random.Random) -> None:
    """Every document is decided again under a new name."""
    run_again(root, "--fresh", "--name", "third")


@add_honest("runs")
def ran_with_a_new_document(root: Path, rng: random.Random) -> None:
    """A new document arrives, and only it is decided."""
    source = root.parent / "samples" / "clinical_note.pdf"
    new = root.parent / "arrived.pdf"
    new.write_bytes(source.read_bytes() + b"\n% arrived\n")
    run_evalkit("run", new, root=root)


@add_honest("runs")
def audit_rate_and_seed_changed(root: Path, rng: random.Random) -> None:
    """A later run draws audits with another seed and rate."""
    settings = {"EVALKIT_AUDIT_SEED": "another", "EVALKIT_AUDIT_RATE_START": "0.6"}
    run_again(root, "--fresh", "--name", "reseeded", settings=settings)


@add_honest("reviews")
def case_reviewed(root: Path, rng: random.Random) -> None:
    """An expert agrees with a waiting answer."""
    answer(root, rng, agrees=True)


@add_honest("reviews")
def case_corrected(root: Path, rng: random.Random) -> None:
    """An expert corrects a waiting answer of one document."""
    packets = [path for path in list_packets(root, is_reviewed=False) if is_simple(path)]
    case_id = read_json(choose(rng, packets))["case_id"]
    helper = SMEReviewHelper(str(root), reviewer="anna")
    helper.save_review(case_id, agrees=False, corrected_dominant_type="Other", correction_notes="a form")


@add_honest("reviews")
def case_undeterminable(root: Path, rng: random.Random) -> None:
    """An expert says that a case cannot be decided."""
    answer(root, rng, undeterminable="illegible scan")


@add_honest("reviews")
def case_opened_from_the_library(root: Path, rng: random.Random) -> None:
    """An expert loads a waiting packet and lists the queue, and answers nothing."""
    helper = SMEReviewHelper(str(root), reviewer="bert")
    helper.list_pending_reviews()
    helper.load_packet(read_json(choose(rng, list_packets(root, is_reviewed=False)))["case_id"])


@add_honest("purges")
def accepted_document_purged(root: Path, rng: random.Random) -> None:
    """An accepted document is purged."""
    run_evalkit("purge", choose(rng, list_results(root, ACCEPTED)), root=root)


@add_honest("purges")
def reviewed_document_purged(root: Path, rng: random.Random) -> None:
    """A document is purged together with its reviews."""
    run_evalkit("purge", choose(rng, list_results(root, is_reviewed=True)), root=root)


@add_honest("purges")
def purged_document_taken_in_again(root: Path, rng: random.Random) -> None:
    """A document that was purged is taken in again on purpose."""
    run_evalkit("run", root.parent / "samples" / "quest_cbc.pdf", "--even-purged", root=root)


@add_honest("database")
def index_rebuilt(root: Path, rng: random.Random) -> None:
    """The index is rebuilt from the files."""
    run_evalkit("reindex", root=root)


@add_honest("roster")
def reviewer_added(root: Path, rng: random.Random) -> None:
    """A reviewer is added with the command for it."""
    run_evalkit("reviewers", "add", "clara", root=root)


@add_honest("roster")
def reviewer_removed(root: Path, rng: random.Random) -> None:
    """A reviewer is removed with the command for it."""
    run_evalkit("reviewers", "remove", "bert", root=root)


@add_honest("file system")
def desktop_files_left(root: Path, rng: random.Random) -> None:
    """A file manager leaves its own file in the folder, and an editor its backup."""
    (root / ".DS_Store").write_bytes(b"\0\0\0\1Bud1")
    (root / "production.json~").write_bytes((root / "production.json").read_bytes())


@add_honest("database")
def index_deleted_of_a_copy(root: Path, rng: random.Random) -> None:
    """Somebody tries the index out on a copy of the folder, and deletes the copy."""
    copy = root.with_name("trial")
    shutil.copytree(root, copy, symlinks=True)
    (copy / "evalkit.sqlite").unlink()
    run_evalkit("reindex", root=copy)
    shutil.rmtree(copy)


@add_honest("sampling")
def sample_drawn(root: Path, rng: random.Random) -> None:
    """An analyst draws two more accepted documents for review."""
    run_evalkit("sample", "2", "--by", "decision", root=root)


@add_honest("templates")
def template_built_for_another_bank(root: Path, rng: random.Random) -> None:
    """A template is built for the statements of another bank."""
    statement = root.parent / "second_statement.pdf"
    write_statement(statement, "Second Harbour Bank")
    run_evalkit("build-template", statement, root=root)


def is_simple(path: Path) -> bool:
    """Return whether a packet's classification has one segment, which a single type can correct."""
    packet = read_json(path)
    return (
        packet["kind"] == "classification"
        and bool(packet["classification"])
        and len(packet["classification"]["segments"]) == 1
    )


def answer(root: Path, rng: random.Random, **review: Any) -> None:
    """Review a waiting case of one segment as anna."""
    packets = [path for path in list_packets(root, is_reviewed=False) if is_simple(path)]
    case_id = read_json(choose(rng, packets))["case_id"]
    SMEReviewHelper(str(root), reviewer="anna").save_review(case_id, **review)
