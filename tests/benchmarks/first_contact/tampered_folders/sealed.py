"""The sealed half: opened once, to measure. Whoever builds the checks does not read it before."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from evalkit.review import SMEReviewHelper

from .changes import (
    NotApplicableError,
    Tamperings,
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
    run_again,
    run_evalkit,
    set_type,
    write_json,
    write_silver_record,
)

TAMPERINGS = Tamperings()
add, add_honest = TAMPERINGS.add, TAMPERINGS.add_honest
ESCALATED, ACCEPTED = "ESCALATE_TO_SME", "AUTO_ACCEPT"

#: Runs the command line with a clock that is some minutes behind.
LATE_CLOCK = """
import sys
from datetime import UTC, datetime, timedelta
from evalkit.core import clocks
clocks.utc_now = lambda: datetime.now(UTC) - timedelta(minutes=4)
import runpy
runpy.run_module("evalkit", run_name="__main__", alter_sys=True)
"""


@add("result")
def issues_made_harmless(root: Path, rng: random.Random) -> None:
    """The blockers of an escalated result become minor, in result and packet alike, so that the queue shows it last."""
    doc_id = choose(
        rng, [path.stem[11:] for path in list_packets(root, "escalated", is_reviewed=False) if "." not in path.stem]
    )
    for path in (root / "results" / f"{doc_id}.json", root / "sme_packets" / f"sme_packet_{doc_id}.json"):
        with edit_json(path) as content:
            for issue in [*content["issues"], *content.get("issues_summary", [])]:
                issue["severity"] = "MINOR"
    execute(root, "UPDATE cases SET minor = minor + major + blocker, major = 0, blocker = 0 WHERE doc_id = ?", doc_id)


@add("result")
def result_of_another_files_bytes(root: Path, rng: random.Random) -> None:
    """A result says that it was made of another file's bytes."""
    one, other = rng.sample(list_results(root), 2)
    digest = read_json(root / "results" / f"{other}.json")["sha256"]
    with edit_json(root / "results" / f"{one}.json") as result:
        result["sha256"] = digest
    record_result_in_runs(root, one)


@add("result")
def quality_score_lowered(root: Path, rng: random.Random) -> None:
    """An accepted answer's share of quotes that were found on their pages is changed."""
    with edit_json(root / "results" / f"{choose(rng, list_results(root, ACCEPTED))}.json") as result:
        result |= {"grounded_ratio": 0.51, "evidence_quality_score": 0.51}


@add("decision")
def escalated_made_unreadable(root: Path, rng: random.Random) -> None:
    """An escalated document becomes one that could not be read: its packet goes, its result is an error."""
    doc_id = choose(rng, list_results(root, ESCALATED, is_reviewed=False))
    error = {"code": "READER-ENCRYPTED", "message": "the file is encrypted", "remedy": "Save it without a password."}
    write_json(root / "results" / f"{doc_id}.json", {"schema_version": 1, "doc_id": doc_id, "error": error})
    (root / "sme_packets" / f"sme_packet_{doc_id}.json").unlink(missing_ok=True)
    execute(root, "UPDATE documents SET decision = NULL, error_code = ? WHERE doc_id = ?", error["code"], doc_id)
    execute(root, "DELETE FROM cases WHERE doc_id = ?", doc_id)
    for path in root.glob("runs/*/run.json"):
        with edit_json(path) as run:
            if entry := run["documents"].get(doc_id):
                entry |= {"decision": None, "decision_rule": None, "error_code": error["code"]}


@add("decision")
def accepted_made_escalated_and_reviewed(root: Path, rng: random.Random) -> None:
    """An audited document becomes an escalated one in result, packet, truth and index, so that no audit counts it."""
    path = choose(rng, list_packets(root, "audit", is_reviewed=True))
    doc_id = read_json(path)["doc_id"]
    with edit_json(root / "results" / f"{doc_id}.json") as result:
        result |= {"decision": ESCALATED, "decision_rule": "1"}
    with edit_json(path) as packet:
        packet |= {
            "v5_decision": ESCALATED,
            "decision_rule": "1",
            "review_reason": "escalated",
            "inclusion_probability": 1.0,
        }
        case_id = packet["case_id"]
    for review in sorted((root / "reviews" / case_id).glob("*.json")):
        with edit_json(review) as content:
            content["packet_sha256"] = hash_file(path)
    link_reviews(root, case_id)
    record_result_in_runs(root, doc_id)
    execute(root, "UPDATE documents SET decision = ? WHERE doc_id = ?", ESCALATED, doc_id)
    execute(root, "UPDATE cases SET review_reason = 'escalated' WHERE case_id = ?", case_id)


@add("silver record")
def silver_record_deleted(root: Path, rng: random.Random) -> None:
    """The record of an accepted answer is deleted."""
    choose(rng, list_records(root, "AUTO_ACCEPTED")).unlink()


@add("silver record")
def silver_pages_moved(root: Path, rng: random.Random) -> None:
    """The boundary between two documents of an accepted file is moved by a page in its silver record."""
    silver = list_files(
        root,
        "ground_truth/*.json",
        lambda gt: len(gt.get("ground_truth_classification", {}).get("segments", [])) > 1,
    )
    with edit_json(choose(rng, silver)) as record:
        first, second = record["ground_truth_classification"]["segments"][:2]
        step = 1 if second["start_page"] < second["end_page"] else -1
        first["end_page"] += step
        second["start_page"] += step


@add("silver record")
def silver_record_for_escalated(root: Path, rng: random.Random) -> None:
    """A waiting escalated document is given a record of truth as if it had been accepted; all else stays."""
    doc_id = choose(rng, list_results(root, ESCALATED, is_reviewed=False))
    result = read_json(root / "results" / f"{doc_id}.json")
    write_silver_record(root, doc_id, result["classification"], result["times"]["finished_at"])


@add("packet")
def packet_shows_another_document(root: Path, rng: random.Random) -> None:
    """A waiting packet names another document's file and bundle, so that the expert reads the wrong pages."""
    one = choose(rng, list_packets(root, is_reviewed=False))
    other = choose(rng, [path for path in list_packets(root) if read_json(path)["doc_id"] != read_json(one)["doc_id"]])
    with edit_json(one) as packet:
        packet |= {key: read_json(other)[key] for key in ("pdf_path", "document_bundle_path")}


@add("packet")
def packet_of_answered_case_changed(root: Path, rng: random.Random) -> None:
    """The packet that an expert answered shows another answer now, and the reviews name its new hash."""
    packets = [path for path in list_packets(root, is_reviewed=True) if read_json(path).get("classification")]
    path = choose(rng, packets)
    with edit_json(path) as packet:
        set_type(packet["classification"], choose_other_type(rng, packet["classification"]["dominant_type_overall"]))
        case_id = packet["case_id"]
    for review in sorted((root / "reviews" / case_id).glob("*.json")):
        with edit_json(review) as content:
            content["packet_sha256"] = hash_file(path)
    link_reviews(root, case_id)
    truth = root / "ground_truth" / f"gt_{case_id}.json"
    if truth.exists():
        with edit_json(truth) as record:
            record["packet_sha256"] = hash_file(path)


@add("packet")
def packet_created_earlier(root: Path, rng: random.Random) -> None:
    """A waiting packet is dated back by a year."""
    with edit_json(choose(rng, list_packets(root, is_reviewed=False))) as packet:
        packet["created_at"] = packet["created_at"].replace("2026-", "2025-", 1)


@add("deleted case")
def second_opinion_deleted(root: Path, rng: random.Random) -> None:
    """A second opinion, or else an answered case, disappears with packet, reviews and rows; the document stays."""
    packets = [path for path in list_packets(root, is_reviewed=True) if "." in read_json(path)["case_id"]]
    path = choose(rng, packets or list_packets(root, "escalated", is_reviewed=True))
    case_id = read_json(path)["case_id"]
    path.unlink()
    shutil.rmtree(root / "reviews" / case_id)
    (root / "ground_truth" / f"gt_{case_id}.json").unlink(missing_ok=True)
    for table in ("cases", "heads", "closings", "views"):
        execute(root, f"DELETE FROM {table} WHERE case_id = ?", case_id)


@add("deleted document")
def document_renamed_everywhere(root: Path, rng: random.Random) -> None:
    """A document with its waiting case gets another name in every file and in the database, and is looked for in vain."""
    doc_id = choose(rng, list_results(root, ESCALATED, is_reviewed=False))
    for old in list_document_files(root, doc_id):
        new = old.with_name(old.name.replace(doc_id, "letter_7"))
        if old.parent.parent == root and old.suffix == ".json":
            new.write_text(old.read_text(encoding="utf-8").replace(f'"{doc_id}', '"letter_7'), encoding="utf-8")
            new.chmod(0o600)
            old.unlink()
        elif old.suffix == ".pdf":
            old.rename(new)
    for path in root.glob("runs/*/run.json"):
        with edit_json(path) as run:
            if doc_id in run["documents"]:
                run["documents"]["letter_7"] = run["documents"].pop(doc_id)
    execute(root, "UPDATE documents SET doc_id = 'letter_7' WHERE doc_id = ?", doc_id)
    execute(
        root,
        "UPDATE cases SET doc_id = 'letter_7', case_id = replace(case_id, doc_id, 'letter_7') WHERE doc_id = ?",
        doc_id,
    )


@add("audit")
def convenient_audit_invented(root: Path, rng: random.Random) -> None:
    """An accepted document that was never drawn gets an audit that agrees: packet, review, truth, head and index."""
    source = choose(rng, [path for path in list_reviews(root, "validated") if is_audit(root, path.parent.name)])
    old = source.parent.name
    free = [
        doc_id for doc_id in list_results(root, ACCEPTED) if not any(root.glob(f"sme_packets/sme_packet_{doc_id}*"))
    ]
    doc_id = choose(rng, free)
    result = read_json(root / "results" / f"{doc_id}.json")
    bundle = read_json(root / "document_bundles" / f"{doc_id}.json")
    packet = read_json(root / "sme_packets" / f"sme_packet_{old}.json")
    packet |= {"case_id": doc_id, "doc_id": doc_id, "classification": result["classification"]}
    packet |= {"pdf_path": bundle["file_path"], "pdf_filename": Path(bundle["file_path"]).name}
    packet |= {"total_pages": bundle["total_pages"], "document_bundle_path": f"document_bundles/{doc_id}.json"}
    packet_path = root / "sme_packets" / f"sme_packet_{doc_id}.json"
    write_json(packet_path, packet)
    review = read_json(source)
    answer = {key: value for key, value in result["classification"].items() if key in review["after"]}
    review |= {"before": answer, "after": answer, "packet_sha256": hash_file(packet_path)}
    review["signature"]["document_sha256"] = result["sha256"]
    write_json(root / "reviews" / doc_id / "0001.json", review)
    execute(root, "INSERT INTO heads (case_id, revision, sha256) VALUES (?, 1, '')", doc_id)
    link_reviews(root, doc_id)
    truth = read_json(root / "ground_truth" / f"gt_{old}.json") | {
        "doc_id": doc_id,
        "packet_sha256": hash_file(packet_path),
    }
    write_json(
        root / "ground_truth" / f"gt_{doc_id}.json", truth | {"ground_truth_classification": result["classification"]}
    )
    columns = [row[1] for row in list_rows(root, "PRAGMA table_info(cases)")]
    names = ", ".join(name for name in columns if name not in ("case_id", "doc_id"))
    copy = f"INSERT INTO cases (case_id, doc_id, {names}) SELECT ?, ?, {names} FROM cases WHERE case_id = ?"
    execute(root, copy, doc_id, doc_id, old)


@add("audit")
def sample_draw_deleted(root: Path, rng: random.Random) -> None:
    """The record of a drawn sample is deleted."""
    choose(rng, list_files(root, "draws/*.json")).unlink()


@add("audit")
def audit_probability_lowered_with_chain(root: Path, rng: random.Random) -> None:
    """A right audit counts ten times: the probability falls in packet, review hashes, truth, and chain."""
    path = choose(rng, list_packets(root, "audit", is_reviewed=True))
    with edit_json(path) as packet:
        packet["inclusion_probability"] /= 10
        case_id = packet["case_id"]
    for review in sorted((root / "reviews" / case_id).glob("*.json")):
        with edit_json(review) as content:
            content["packet_sha256"] = hash_file(path)
    link_reviews(root, case_id)
    truth = root / "ground_truth" / f"gt_{case_id}.json"
    if truth.exists():
        with edit_json(truth) as record:
            record["inclusion_probability"] /= 10
            record["packet_sha256"] = hash_file(path)


@add("bundle")
def bundle_pages_exchanged(root: Path, rng: random.Random) -> None:
    """Two pages of a bundle exchange their contents; the page numbers stay in order."""
    with edit_json(
        choose(rng, list_files(root, "document_bundles/*.json", lambda bundle: len(bundle["pages"]) > 1))
    ) as bundle:
        first, second = bundle["pages"][:2]
        first["page_num"], second["page_num"] = second["page_num"], first["page_num"]
        bundle["pages"][:2] = [second, first]


@add("bundle")
def bundle_page_made_blank(root: Path, rng: random.Random) -> None:
    """A page with text becomes a blank one, as if nothing had been printed on it."""
    with edit_json(root / "document_bundles" / f"{choose(rng, list_results(root))}.json") as bundle:
        page = rng.choice([page for page in bundle["pages"] if page["text"]])
        page |= {"status": "blank", "text": "", "paragraphs": [], "blocks": [], "words": [], "identifiers": []}


@add("production labels")
def two_labels_exchanged(root: Path, rng: random.Random) -> None:
    """Two documents exchange the labels that the production classifier gave them."""
    with edit_json(root / "production.json") as production:
        labels = production["labels"]
        pairs = [(a, b) for a in sorted(labels) for b in sorted(labels) if labels[a] != labels[b]]
        one, other = choose(rng, pairs)
        labels[one], labels[other] = labels[other], labels[one]


@add("production labels")
def label_left_out(root: Path, rng: random.Random) -> None:
    """A document's production label is left out, so that it no longer counts as a difference."""
    with edit_json(root / "production.json") as production:
        del production["labels"][choose(rng, sorted(production["labels"]))]


@add("roster", "against")
def reviewer_renamed(root: Path, rng: random.Random) -> None:
    """A reviewer goes on under another name with the same code; the old name is gone."""
    with edit_json(root / "reviewers.json") as roster:
        roster["reviewers"]["annabel"] = roster["reviewers"].pop(rng.choice(sorted(roster["reviewers"])))


@add("roster", "against")
def code_replaced_by_hand(root: Path, rng: random.Random) -> None:
    """A reviewer's code is replaced by one that only the forger knows."""
    with edit_json(root / "reviewers.json") as roster:
        roster["reviewers"][rng.choice(sorted(roster["reviewers"]))] = "5e" * 32


@add("view log", "against")
def views_put_on_another_name(root: Path, rng: random.Random) -> None:
    """What one reviewer opened was opened by another: the database exchanges the names of views."""
    name = choose(rng, list_rows(root, "SELECT DISTINCT reviewer FROM views ORDER BY reviewer"))[0]
    execute(root, "UPDATE views SET reviewer = 'bert' WHERE reviewer = ?", name)


@add("view log", "against")
def view_log_emptied(root: Path, rng: random.Random) -> None:
    """The whole view log is emptied, and its counter starts anew."""
    if not execute(root, "DELETE FROM views"):
        raise NotApplicableError("no views")
    execute(root, "DELETE FROM sqlite_sequence WHERE name = 'views'")


@add("database", "verify")
def waiting_case_hidden_in_index(root: Path, rng: random.Random) -> None:
    """The index calls a waiting case completed; its files are left alone, but no expert is shown it."""
    case_id = read_json(choose(rng, list_packets(root, "escalated", is_reviewed=False)))["case_id"]
    execute(root, "UPDATE cases SET review_status = 'completed' WHERE case_id = ?", case_id)


@add("database")
def heads_forgotten_and_review_cut(root: Path, rng: random.Random) -> None:
    """The database forgets that a case was reviewed, and the review loses its notes and its issue verdicts."""
    path = choose(rng, list_reviews(root))
    with edit_json(path) as review:
        review |= {"correction_notes": "", "issue_verdicts": [], "seconds_active": 300.0}
    execute(root, "DELETE FROM heads WHERE case_id = ?", path.parent.name)


@add("file modes", "verify")
def database_made_world_readable(root: Path, rng: random.Random) -> None:
    """Everybody may read the database, which has drafts and names."""
    root.chmod(0o755)
    (root / "evalkit.sqlite").chmod(0o604)


@add("file modes", "verify")
def salt_made_world_readable(root: Path, rng: random.Random) -> None:
    """Everybody may read the salt of the patients' keys."""
    root.chmod(0o705)
    (root / "patient_salt.json").chmod(0o644)


@add("reviews")
def review_appended_in_anothers_name(root: Path, rng: random.Random) -> None:
    """A newer review is appended in a reviewer's name, linked to the one before; truth and head follow."""
    path = choose(rng, list_reviews(root))
    review = read_json(path)
    other = choose_other_type(rng, review["after"]["dominant_type_overall"])
    set_type(review["after"], other)
    review |= {"reviewer": "bert", "outcome": "corrected"}
    case_id = path.parent.name
    write_json(path.with_name(f"{int(path.stem) + 1:04}.json"), review)
    link_reviews(root, case_id)
    truth = root / "ground_truth" / f"gt_{case_id}.json"
    if truth.exists():
        with edit_json(truth) as record:
            set_type(record["ground_truth_classification"], other)
            record |= {"reviewer": "bert", "ground_truth_source": "SME_CORRECTED", "corrected_dominant_type": other}
            record |= {"revision": int(path.stem) + 1, "supersedes": int(path.stem)}


@add("reviews")
def attention_made_up(root: Path, rng: random.Random) -> None:
    """A hasty review becomes a careful one: minutes spent and all pages seen, with hash and chain."""
    path = choose(rng, list_reviews(root))
    with edit_json(path) as review:
        review["seconds_active"] = 412.5
        review["pages_seen"] = list(
            range(1, 1 + read_json(root / f"sme_packets/sme_packet_{path.parent.name}.json")["total_pages"])
        )
    execute(root, "UPDATE closings SET seconds_active = 412.5 WHERE case_id = ?", path.parent.name)
    link_reviews(root, path.parent.name)


@add("reviews", "verify")
def review_moved_to_another_case(root: Path, rng: random.Random) -> None:
    """A case's reviews are copied to a waiting case, which counts as answered now."""
    source = choose(rng, list_reviews(root, "validated")).parent
    case_id = read_json(choose(rng, list_packets(root, "escalated", is_reviewed=False)))["case_id"]
    shutil.copytree(source, root / "reviews" / case_id)


@add("case re-attributed", "against")
def reviews_of_two_experts_exchanged(root: Path, rng: random.Random) -> None:
    """Two cases exchange their reviewers' names in review, truth, closing and view log, with hashes and chains."""
    reviews = list_reviews(root)
    pairs = [(a, b) for a in reviews for b in reviews if read_json(a)["reviewer"] < read_json(b)["reviewer"]]
    one, other = choose(rng, pairs)
    names = {one: read_json(other)["reviewer"], other: read_json(one)["reviewer"]}
    for path, name in names.items():
        case_id = path.parent.name
        for changed in (path, root / "ground_truth" / f"gt_{case_id}.json"):
            if changed.exists():
                with edit_json(changed) as content:
                    content["reviewer"] = name
        for table in ("closings", "views"):
            execute(root, f"UPDATE {table} SET reviewer = ? WHERE case_id = ?", name, case_id)
        link_reviews(root, case_id)


@add("ground truth", "verify")
def truth_deleted(root: Path, rng: random.Random) -> None:
    """The truth that an expert's answer became is deleted; the review stays."""
    truths = list_records(root, "SME_")
    choose(rng, truths).unlink()


@add("ground truth", "verify")
def truth_vouched_for_more(root: Path, rng: random.Random) -> None:
    """The truth says that its expert vouched for more parts than the review does."""
    truths = list_records(root, "SME_")
    with edit_json(choose(rng, truths)) as record:
        record["vouched"] = [*record["vouched"], "patients", "boundary:1"]


@add("ground truth", "verify")
def truth_for_undeterminable_case(root: Path, rng: random.Random) -> None:
    """A case that an expert could not decide is given a truth."""
    case_id = choose(rng, list_reviews(root, "undeterminable")).parent.name
    truths = list_records(root, "SME_")
    record = read_json(choose(rng, truths)) | {"doc_id": case_id}
    write_json(root / "ground_truth" / f"gt_{case_id}.json", record)


@add("runs")
def run_claims_another_model(root: Path, rng: random.Random) -> None:
    """A run says that another model decided, at no cost."""
    with edit_json(choose(rng, list_files(root, "runs/*/run.json"))) as run:
        run["settings"]["models"]["default"] = "gemini:gemini-2.5-pro"


@add("runs")
def document_left_out_of_run(root: Path, rng: random.Random) -> None:
    """A run's list leaves out an escalated document, which then counts in no comparison."""
    with edit_json(choose(rng, list_files(root, "runs/*/run.json", lambda run: len(run["documents"]) > 1))) as run:
        ids = sorted(doc_id for doc_id, entry in run["documents"].items() if entry["decision"] == ESCALATED)
        del run["documents"][choose(rng, ids)]


@add("events", "against")
def newest_event_deleted(root: Path, rng: random.Random) -> None:
    """The newest event of the folder's log is deleted."""
    choose(rng, list_files(root, "events/*.json")[-1:]).unlink()


@add("purge records")
def purge_record_names_another_hash(root: Path, rng: random.Random) -> None:
    """A purge record names the hash of another document."""
    with edit_json(choose(rng, list_files(root, "purged/*.json"))) as record:
        record["sha256"] = "1f" * 32


@add("template reviews")
def template_review_turned(root: Path, rng: random.Random) -> None:
    """The verdict of a template's reviewers is turned: rejection and acceptance change places."""
    path = choose(rng, list_files(root, "template_reviews/*/*.json"))
    text = path.read_text(encoding="utf-8")
    turned = text
    for one, other in (("ACCEPT", "REJECT"), ("accept", "reject"), ("true", "false"), ("1.0", "0.0")):
        turned = turned.replace(one, "\0").replace(other, one).replace("\0", other)
    if turned == text:
        raise NotApplicableError("the review has no verdict in known words")
    path.write_text(turned, encoding="utf-8")


@add("templates")
def template_deleted_with_reviews(root: Path, rng: random.Random) -> None:
    """A statement template is deleted with its reviews; what was read with it stays."""
    path = choose(rng, sorted(root.glob("templates/*.toml")))
    path.unlink()
    shutil.rmtree(root / "template_reviews" / path.stem, ignore_errors=True)


@add("extractions")
def missing_field_made_found(root: Path, rng: random.Random) -> None:
    """A field that is not in the document is found now, with page and quote."""
    with edit_json(choose(rng, list_files(root, "extractions/*.json"))) as extraction:
        fields = [field for entry in extraction["extractions"] for field in entry["fields"].values()]
        source = choose(rng, [field for field in fields if field["status"] == "found"])
        target = choose(
            rng, [field for field in fields if field["status"] != "found"] or [f for f in fields if f != source]
        )
        target |= source


@add("extractions")
def extraction_deleted(root: Path, rng: random.Random) -> None:
    """All fields that were read of a document are deleted."""
    choose(rng, list_files(root, "extractions/*.json")).unlink()


@add("converted files")
def converted_file_deleted(root: Path, rng: random.Random) -> None:
    """The PDF that experts see of a document is deleted."""
    choose(rng, sorted(root.glob("converted/*.pdf"))).unlink()


@add("monitoring")
def monitoring_put_back(root: Path, rng: random.Random) -> None:
    """The count of documents by which changes are noticed is lowered."""
    with edit_json(choose(rng, list_files(root, "monitoring.json"))) as monitoring:
        monitoring["document_count"] = 3


@add("clocks")
def review_dated_back_with_chain(root: Path, rng: random.Random) -> None:
    """A review was given a year before: review, truth, closing, hashes and chain say so."""
    path = choose(rng, list_reviews(root))
    case_id = path.parent.name
    with edit_json(path) as review:
        review["submitted_at"] = review["submitted_at"].replace("2026-", "2025-", 1)
        moment = review["submitted_at"]
    truth = root / "ground_truth" / f"gt_{case_id}.json"
    if truth.exists():
        with edit_json(truth) as record:
            record["reviewed_at"] = moment
    execute(root, "UPDATE closings SET closed_at = ? WHERE case_id = ?", moment, case_id)
    link_reviews(root, case_id)


@add("swapped files")
def bundles_of_two_documents_swapped(root: Path, rng: random.Random) -> None:
    """Two documents exchange the text that was read of them; names and hashes inside stay those of the place."""
    one, other = (root / "document_bundles" / f"{doc_id}.json" for doc_id in rng.sample(list_results(root), 2))
    a, b = read_json(one), read_json(other)
    same = ("doc_id", "sha256", "file_path")
    write_json(one, b | {key: a[key] for key in same})
    write_json(other, a | {key: b[key] for key in same})


@add("swapped files")
def packets_of_two_cases_swapped(root: Path, rng: random.Random) -> None:
    """Two waiting cases exchange all that their packets say of findings; each keeps its names."""
    paths = list_packets(root, "escalated", is_reviewed=False)
    if len(paths) < 2:
        raise NotApplicableError("fewer than two waiting cases")
    one, other = rng.sample(paths, 2)
    a, b = read_json(one), read_json(other)
    swapped = ("classification", "issues", "issues_summary", "total_issues", "decision_reason", "proposed_repairs")
    write_json(one, a | {key: b[key] for key in swapped})
    write_json(other, b | {key: a[key] for key in swapped})


@add("rollback", "against")
def older_copy_of_the_folder_put_back(root: Path, rng: random.Random) -> None:
    """The whole folder is replaced by a complete copy from before the newest reviews, opened cases and purges."""
    if not (root.parent / "older").is_dir():
        raise NotApplicableError("no older copy")
    shutil.rmtree(root)
    shutil.copytree(root.parent / "older", root)


@add("replay")
def older_database_put_back(root: Path, rng: random.Random) -> None:
    """Only the database is replaced by an older copy, which knows less of what was opened and reviewed."""
    older = root.parent / "older" / "evalkit.sqlite"
    if not older.exists():
        raise NotApplicableError("no older copy")
    for path in root.glob("evalkit.sqlite*"):
        path.unlink()
    shutil.copyfile(older, root / "evalkit.sqlite")
    (root / "evalkit.sqlite").chmod(0o600)


@add("own types")
def own_types_and_run_settings_forged(root: Path, rng: random.Random) -> None:
    """Types of the forger's own are put into the folder, and the newest run's settings name them."""
    text = '[[types]]\nname = "Letter"\ndescription = "A letter to a doctor"\n'
    path = root / "own_types.toml"
    path.write_text(text, encoding="utf-8")
    path.chmod(0o600)
    with edit_json(choose(rng, list_files(root, "runs/*/run.json")[-1:])) as run:
        run["settings"]["types_file"] = "own_types.toml"


@add("site weights")
def site_weights_and_event_forged(root: Path, rng: random.Random) -> None:
    """Own weights are put into the folder with an event of their promotion that names their hash."""
    path = root / "site_weights" / f"{len(list(root.glob('site_weights/*'))) + 1:04}.json"
    write_json(path, {"schema_version": 1, "base": "embedded", "weights": {"Clinical Note": {"biopsy": 4.5}}})
    events = list_files(root, "events/*.json")
    event = (read_json(events[-1]) if events else {"schema_version": 1}) | {
        "kind": "promotion",
        "sha256": hash_file(path),
    }
    event["prev_sha256"] = hash_file(events[-1]) if events else None
    write_json(root / "events" / f"{len(events) + 1:04}.json", event)


@add("links")
def reviews_moved_behind_a_link(root: Path, rng: random.Random) -> None:
    """The folder of a case's reviews becomes a symbolic link to a folder elsewhere."""
    folder = choose(rng, list_reviews(root)).parent
    outside = root.parent / "kept_elsewhere"
    shutil.move(folder, outside)
    folder.symlink_to(outside, target_is_directory=True)


@add_honest("copies")
def synchronised_as_rsync_does(root: Path, rng: random.Random) -> None:
    """The folder is copied file by file with times and modes kept, and each copied file arrives under a temporary name first."""
    copy = root.with_name("mirror")
    for path in [root, *sorted(root.rglob("*"))]:
        target = copy / path.relative_to(root)
        if path.is_dir():
            target.mkdir(mode=0o700)
        else:
            partial = target.with_name(f".{target.name}.Xy12Za")
            shutil.copy2(path, partial)
            partial.rename(target)
    shutil.rmtree(root)
    copy.rename(root)


@add_honest("copies")
def restored_from_a_complete_copy(root: Path, rng: random.Random) -> None:
    """The disk is lost; the folder is restored from a complete copy of its last state."""
    backup = root.with_name("backup")
    shutil.copytree(root, backup, symlinks=True)
    shutil.rmtree(root)
    root.mkdir(mode=0o700)
    shutil.copytree(backup, root, symlinks=True, dirs_exist_ok=True)


@add_honest("file system")
def empty_temporary_folder_left(root: Path, rng: random.Random) -> None:
    """A killed program leaves an empty temporary folder."""
    (root / ".tmp").mkdir(mode=0o700, exist_ok=True)
    (root / "results" / "tmp8f2k1x").mkdir(mode=0o700)


@add_honest("file system")
def house_files_written(root: Path, rng: random.Random) -> None:
    """An analyst writes guidelines and a statement of the intended use into the folder, as the documentation says."""
    for name in ("guidelines.md", "intended_use.md"):
        path = root / name
        path.write_text("# Ours\n\nA discharge letter is a clinical note.\n", encoding="utf-8")
        path.chmod(0o600)


@add_honest("file system")
def folder_with_lost_and_found(root: Path, rng: random.Random) -> None:
    """The folder is the root of a file system of its own, which has an empty lost+found."""
    (root / "lost+found").mkdir(mode=0o700)


@add_honest("file modes")
def made_read_only(root: Path, rng: random.Random) -> None:
    """An administrator makes all files read-only for an inspection."""
    for path in sorted(root.rglob("*")):
        if path.is_file() and "sqlite" not in path.name and "lock" not in path.name:
            path.chmod(0o400)


@add_honest("file modes")
def group_inherits_folders(root: Path, rng: random.Random) -> None:
    """Folders get the set-group-id bit, so that new files belong to the folder's group; nobody else gains rights."""
    for path in [root, *sorted(root.rglob("*"))]:
        if path.is_dir():
            path.chmod(0o2770)


@add_honest("runs")
def killed_and_run_again(root: Path, rng: random.Random) -> None:
    """A run is killed in the middle, and the same command is given again."""
    arguments: list[str | Path] = [
        "run",
        root.parent / "samples",
        "--fresh",
        "--name",
        "interrupted",
        "--workers",
        "1",
        "--output",
        root,
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "evalkit", *map(str, arguments)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    before = count_new_results(root, 0)
    started = time.time_ns()
    while process.poll() is None and count_new_results(root, started) < before // 3:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    run_evalkit(*arguments[:2], "--name", "interrupted", "--workers", "1", root=root)


@add_honest("runs")
def two_runs_at_once(root: Path, rng: random.Random) -> None:
    """Two runs are started at the same moment; one of them ends at once."""
    command = [sys.executable, "-m", "evalkit", "run", str(root.parent / "samples"), "--output", str(root), "--fresh"]
    processes = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(2)]
    for process in processes:
        process.wait()


@add_honest("runs")
def ran_with_another_profile(root: Path, rng: random.Random) -> None:
    """A later version's settings decide everything again with fewer questions."""
    run_again(root, "--fresh", "--profile", "lean", "--name", "lean")


@add_honest("runs")
def ran_with_corrected_labels(root: Path, rng: random.Random) -> None:
    """The hospital delivers corrected production labels, and the run is given them."""
    labels = root.parent / "corrected.csv"
    lines = (root.parent / "samples" / "production.csv").read_text(encoding="utf-8").splitlines()
    labels.write_text("\n".join(line.replace("Clinical Note", "Other", 1) for line in lines) + "\n", encoding="utf-8")
    classifications = root.parent / "samples" / "classifications"
    arguments = ("--classifications", classifications, "--production", labels, "--name", "relabelled")
    run_evalkit("run", root.parent / "samples", *arguments, root=root)


@add_honest("runs")
def ran_from_a_machine_with_a_late_clock(root: Path, rng: random.Random) -> None:
    """Another machine, whose clock is four minutes behind, decides a document again."""
    document = root.parent / "samples" / "consent_form.pdf"
    arguments = ["run", str(document), "--fresh", "--name", "late", "--output", str(root)]
    subprocess.run([sys.executable, "-c", LATE_CLOCK, *arguments], check=True, capture_output=True)


@add_honest("reviews")
def answered_case_answered_again(root: Path, rng: random.Random) -> None:
    """An expert changes an answer that another gave: a newer review of the same case."""
    case_id = choose(rng, [path for path in list_reviews(root) if is_simple(root, path.parent.name)]).parent.name
    helper = SMEReviewHelper(str(root), reviewer="bert")
    helper.save_review(case_id, agrees=False, corrected_dominant_type="Other", correction_notes="a cover sheet")


@add_honest("reviews")
def answered_case_made_undeterminable(root: Path, rng: random.Random) -> None:
    """An answered case is found to be undecidable: its truth is withdrawn."""
    case_id = choose(
        rng, [path for path in list_reviews(root, "validated") if is_simple(root, path.parent.name)]
    ).parent.name
    SMEReviewHelper(str(root), reviewer="anna").save_review(case_id, undeterminable="pages are missing")


@add_honest("reviews")
def several_experts_open_one_case(root: Path, rng: random.Random) -> None:
    """Three experts open the same waiting case one after the other; one of them answers."""
    packets = [path for path in list_packets(root, is_reviewed=False) if is_simple(root, read_json(path)["case_id"])]
    case_id = read_json(choose(rng, packets))["case_id"]
    for name in ("bert", "dora", "anna"):
        SMEReviewHelper(str(root), reviewer=name).load_packet(case_id)
    SMEReviewHelper(str(root), reviewer="anna").save_review(case_id, agrees=True)


@add_honest("purges")
def patient_purged(root: Path, rng: random.Random) -> None:
    """All documents of a patient are purged by the patient's key."""
    results = list_files(root, "results/*.json", lambda result: bool(list_keys(result)))
    run_evalkit("purge", "--patient-key", list_keys(read_json(choose(rng, results)))[0], "--yes", root=root)


@add_honest("purges")
def escalated_case_purged(root: Path, rng: random.Random) -> None:
    """A document whose case still waits is purged, since the patient asked for it."""
    run_evalkit("purge", choose(rng, list_results(root, ESCALATED, is_reviewed=False)), root=root)


@add_honest("purges")
def purge_only_listed(root: Path, rng: random.Random) -> None:
    """An analyst lists what a purge would delete, and leaves it at that."""
    run_evalkit("purge", choose(rng, list_results(root)), "--dry-run", root=root)


@add_honest("database")
def database_vacuumed(root: Path, rng: random.Random) -> None:
    """An administrator compacts the database."""
    connection = sqlite3.connect(root / "evalkit.sqlite", isolation_level=None)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.execute("VACUUM")
    connection.close()


@add_honest("roster")
def reviewer_appointed(root: Path, rng: random.Random) -> None:
    """A reviewer becomes an adjudicator with the command for it."""
    run_evalkit("reviewers", "appoint", "anna", "adjudicator", root=root)


@add_honest("roster")
def lost_code_replaced(root: Path, rng: random.Random) -> None:
    """A reviewer who lost the login code is given a new one with the command for it."""
    run_evalkit("reviewers", "add", "anna", root=root)


@add_honest("sampling")
def attention_checks_queued(root: Path, rng: random.Random) -> None:
    """Cases with a planted fault are queued for the experts."""
    run_evalkit("sample", "2", "--seeded", root=root)


@add_honest("extractions")
def fields_extracted_again(root: Path, rng: random.Random) -> None:
    """The fields of all reports are extracted a second time."""
    run_evalkit("extract", root.parent / "samples", "--fresh", root=root, statuses=(0, 1))


@add_honest("templates")
def changed_template_applied(root: Path, rng: random.Random) -> None:
    """A template is reviewed once more, and the statement is read with it again."""
    template = choose(rng, sorted(root.glob("templates/*.toml"))).stem
    run_evalkit("review-template", template, root.parent / "statement.pdf", root=root)
    run_evalkit("apply-template", template, root.parent / "statement.pdf", root=root)


@add_honest("reading")
def folder_read_by_every_command(root: Path, rng: random.Random) -> None:
    """An analyst looks at queue, runs, a document and the report."""
    run_evalkit("queue", root=root)
    run_evalkit("runs", root=root)
    run_evalkit("show", choose(rng, list_results(root)), root=root)
    run_evalkit("report", "--to", root.parent / "report.html", root=root)


@add_honest("reading")
def dossier_kept_in_the_folder(root: Path, rng: random.Random) -> None:
    """The committee's file is made and kept in the output folder."""
    run_evalkit("dossier", "--to", root / "dossier.html", root=root)


def count_new_results(root: Path, since: int) -> int:
    """Count the results that were written since a time in nanoseconds."""
    return sum(path.stat().st_mtime_ns >= since for path in (root / "results").glob("*.json") if path.exists())


def is_audit(root: Path, case_id: str) -> bool:
    """Return whether a case is an audit of an accepted document."""
    return bool(read_json(root / "sme_packets" / f"sme_packet_{case_id}.json")["review_reason"] == "audit")


def is_simple(root: Path, case_id: str) -> bool:
    """Return whether a case's classification has one segment, which a single type can correct."""
    packet = read_json(root / "sme_packets" / f"sme_packet_{case_id}.json")
    return (
        packet["kind"] == "classification"
        and bool(packet["classification"])
        and len(packet["classification"]["segments"]) == 1
    )


def list_keys(result: dict[str, Any]) -> list[str]:
    """List the patient keys of a result's documents."""
    segments = (result.get("classification") or {}).get("segments", [])
    return [segment["patient"]["name_key"] for segment in segments if (segment.get("patient") or {}).get("name_key")]
