"""Whatever is changed, exchanged or taken out is named with its file; what a purge removed is no fault."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, nullcontext
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pymupdf
import pytest
from commands import evalkit_command
from pipeline.patient import DOC, FILE, NOW, OTHER
from places import open_folder

import evalkit
from evalkit.errors import StoreError, UsageError
from evalkit.pipeline import RunSummary
from evalkit.pipeline.audit import verify
from evalkit.pipeline.audit.trail import EVENT_COLUMNS, list_audit_events_and_problems
from evalkit.pipeline.audit.verify import verify_integrity
from evalkit.pipeline.purge import find_expired_documents, purge
from evalkit.pipeline.run_history import hash_result
from evalkit.review import SMEReviewHelper
from evalkit.review.case_files import read_packet
from evalkit.review.index_rebuild import reindex
from evalkit.review.loaders import read_bundle, read_extractions, read_result
from evalkit.settings import Settings
from evalkit.store import local_folder

REVIEWED = f"reviews/{DOC}"
SECOND, ADJUDICATION = f"{REVIEWED}.second", f"{REVIEWED}.adjudication"
PACKET = f"sme_packets/sme_packet_{DOC}.json"
TRUTH = f"ground_truth/gt_{DOC}.json"

Tamper = Callable[[Path], Any]


def changed(name: str, **values: Any) -> Tamper:
    def tamper(output: Path) -> None:
        stored = open_folder(output).read_json(name, max_schema_version=9)
        open_folder(output).write_json(name, stored | values)

    return tamper


def removed(name: str) -> Tamper:
    return lambda output: (output / name).unlink()


def copied(name: str, to: str) -> Tamper:
    return lambda output: (output / to).write_bytes((output / name).read_bytes())


def torn(name: str) -> Tamper:
    return lambda output: (output / name).write_bytes((output / name).read_bytes()[:-40])


WAITING = "sme_packets/sme_packet_new_one.json"


def waiting(output: Path) -> None:
    """A document that has escalated, and that nobody has looked at yet."""
    with pymupdf.open() as document:
        document.new_page().insert_text((72, 72), "Nothing that anybody could tell a type by.")
        document.save(output.parent / "new_one.pdf")
    evalkit.run([output.parent / "new_one.pdf"], output=output, workers=1)
    assert (output / WAITING).exists()
    assert named(output) == {}


def seeded_name(output: Path) -> str:
    (path,) = (output / "seeded").iterdir()
    return path.name


def database(output: Path, statement: str) -> None:
    with sqlite3.connect(output / "evalkit.sqlite") as connection:
        connection.execute(statement)
    connection.close()


def both(*tampers: Tamper) -> Tamper:
    return lambda output: [tamper(output) for tamper in tampers]


#: What somebody does, and the file that is named.
TAMPERS: dict[str, tuple[Tamper, str]] = {
    "a review's words are changed": (changed(f"{REVIEWED}/0001.json", correction_notes="x"), f"{REVIEWED}/0002.json"),
    "its writer": (changed(f"{REVIEWED}/0002.json", reviewer="dr_who"), f"{REVIEWED}/0003.json"),
    "the newest review's outcome": (changed(f"{REVIEWED}/0003.json", outcome="corrected"), f"{REVIEWED}/0003.json"),
    "the first review is taken out": (removed(f"{REVIEWED}/0001.json"), REVIEWED),
    "one in the middle": (removed(f"{REVIEWED}/0002.json"), REVIEWED),
    "the newest": (removed(f"{REVIEWED}/0003.json"), f"{REVIEWED}/0003.json"),
    "a second opinion": (removed(f"{SECOND}/0001.json"), f"{SECOND}/0001.json"),
    "two are exchanged": (
        both(copied(f"{REVIEWED}/0001.json", "x"), copied(f"{REVIEWED}/0003.json", f"{REVIEWED}/0001.json")),
        f"{REVIEWED}/0001.json",
    ),
    "a review is put in from another case": (
        copied(f"reviews/{OTHER}/0001.json", f"{REVIEWED}/0004.json"),
        f"{REVIEWED}/0004.json",
    ),
    "a review is torn": (torn(f"{REVIEWED}/0003.json"), REVIEWED),
    "something else lies among the reviews": (copied(PACKET, f"{REVIEWED}/notes.json"), REVIEWED),
    "the packet is changed": (changed(PACKET, decision_reason="nothing was wrong"), PACKET),
    "the packet is removed": (removed(PACKET), PACKET),
    "the packet is called one of fields": (changed(PACKET, kind="extraction"), PACKET),
    "the packet of the adjudication": (changed(f"sme_packets/sme_packet_{DOC}.adjudication.json", pdf_path="/x"), f"sme_packets/sme_packet_{DOC}.adjudication.json"),
    "ground truth is changed": (changed(TRUTH, reviewer="dr_who"), TRUTH),
    "ground truth is removed": (removed(TRUTH), TRUTH),
    "ground truth is torn": (torn(TRUTH), TRUTH),
    "what was accepted is changed": (changed("ground_truth/gt_quest_cbc.json", ground_truth_classification=None), "ground_truth/gt_quest_cbc.json"),
    "what was accepted is removed": (removed("ground_truth/gt_quest_cbc.json"), "ground_truth/gt_quest_cbc.json"),
    "who accepted it is changed": (changed("ground_truth/gt_quest_cbc.json", vouched=["mixture"]), "ground_truth/gt_quest_cbc.json"),
    "with what probability": (changed("ground_truth/gt_quest_cbc.json", inclusion_probability=7), "ground_truth/gt_quest_cbc.json"),
    "an unanswered case is taken out": (both(waiting, removed(WAITING)), WAITING),
    "what is asked is changed": (both(waiting, changed(WAITING, decision_reason="nothing")), WAITING),
    "a case is called another's": (both(waiting, copied(WAITING, WAITING.replace("new_one", "alias"))), WAITING.replace("new_one", "alias")),
    "an expert's word is claimed": (changed("ground_truth/gt_quest_cbc.json", ground_truth_source="SME_VALIDATED"), "ground_truth/gt_quest_cbc.json"),
    "accepted fields are changed": (changed("ground_truth/gt_quest_cbc.extraction.json", ground_truth_fields=[]), "ground_truth/gt_quest_cbc.extraction.json"),
    "a result is exchanged": (copied("results/requisition.json", "results/quest_cbc.json"), "results/quest_cbc.json"),
    "a bundle is exchanged": (copied("document_bundles/requisition.json", "document_bundles/quest_cbc.json"), "document_bundles/quest_cbc.json"),
    "a bundle is removed": (removed("document_bundles/quest_cbc.json"), "results/quest_cbc.json"),
    "a bundle is torn": (torn("document_bundles/quest_cbc.json"), "results/quest_cbc.json"),
    "a result is torn": (torn("results/quest_cbc.json"), "results/quest_cbc.json"),
    "a result of a drawn document is removed": (removed("results/requisition.json"), "results/requisition.json"),
    "a draw is removed": (removed("draws/0001.json"), "draws"),
    "a draw is torn": (torn("draws/0002.json"), "draws"),
    "production's labels are torn": (torn("production.json"), "production.json"),
    "a purge is not finished": (lambda output: (output / "purging.json").write_text('{"schema_version": 1, "doc_id": null}'), "purging.json"),
}  # fmt: skip


def named(output: Path, **given: Any) -> dict[str, str]:
    return {one.file: f"{one.what}. {one.remedy}" for one in verify_integrity(open_folder(output), **given).faults}


def test_what_nobody_touched_has_no_fault(output: Path, demo_run: RunSummary) -> None:
    assert named(output) == {}
    assert named(Path(demo_run.output)) == {}
    counts = verify_integrity(open_folder(output)).count_by_kind
    assert (counts["reviews"], counts["chains"], counts["seeded"], counts["draws"]) == (6, 4, 1, 2)


@pytest.mark.parametrize("tamper", TAMPERS)
def test_whoever_changes_something_is_noticed(output: Path, tamper: str) -> None:
    act, file = TAMPERS[tamper]
    act(output)
    faults = named(output)
    assert file in faults
    assert all(text.strip() for text in faults.values())


def test_a_planted_case_without_its_record_is_noticed(output: Path) -> None:
    name = seeded_name(output)
    (output / "seeded" / name).unlink()
    assert f"seeded/{name}" in named(output)


def test_a_planted_case_that_shows_something_else_is_noticed(output: Path) -> None:
    name = f"sme_packets/sme_packet_{seeded_name(output)}"
    changed(name, decision_reason="x")(output)
    assert name in named(output)


@pytest.mark.parametrize("is_gone", [True, False])
def test_no_later_review_vouches_for_one_that_was_exchanged(output: Path, is_gone: bool) -> None:
    name = f"reviews/{OTHER}/0001.json"
    (removed(name) if is_gone else changed(name, reviewer="dr_x"))(output)
    before = named(output)
    with closing(SMEReviewHelper(output, "dr_nine")) as helper:
        again = (
            partial(helper.save_review, undeterminable="x") if is_gone else partial(helper.reopen, reason="once more")
        )
        with pytest.raises(StoreError, match=r"0001\.json") as told:
            again(OTHER)
    assert told.value.code == "REVIEW-CHANGED"
    assert named(output) == before
    assert name in before


@pytest.mark.parametrize(
    "name", ["reviews/.ipynb_checkpoints", "reviews/a b", "results/quest_cbc (1).json", "results/._x"]
)
def test_what_others_leave_is_named_and_stops_nothing(output: Path, name: str) -> None:
    if name.startswith("reviews"):
        (output / name).mkdir()
    else:
        (output / name).write_text("{}")
    assert named(output).keys() == {name}
    assert reindex(open_folder(output))[0] == 4
    assert find_expired_documents(open_folder(output), unchanged_since=datetime(2020, 1, 1, tzinfo=UTC)).finished == ()
    purge(open_folder(output), [DOC], purged_at=NOW)


def test_a_waiting_case_that_the_index_hides_is_named(output: Path) -> None:
    waiting(output)
    database(output, "UPDATE cases SET review_status = 'completed' WHERE case_id = 'new_one'")
    assert "no expert is shown it" in named(output)[WAITING]


def test_no_run_follows_a_decision_that_none_made(output: Path, caplog: pytest.LogCaptureFixture) -> None:
    waiting(output)
    changed("results/new_one.json", decision="AUTO_ACCEPT", decision_rule="7")(output)
    evalkit.run([output.parent / "new_one.pdf"], output=output, workers=1)
    assert (output / WAITING).exists()
    assert not (output / "ground_truth/gt_new_one.json").exists()
    assert read_result(open_folder(output), "new_one").model_dump()["decision"] == "ESCALATE_TO_SME"
    assert "a result was changed after its run" in caplog.text


def test_a_file_too_large_to_read_hides_no_other_fault(output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_folder, "_MAX_FILE_BYTES", 8 << 20)
    os.truncate(output / PACKET, 9 << 20)
    torn("results/quest_cbc.json")(output)
    faults = named(output)
    assert "larger than 8 MB. Move this item out of the output folder" in faults[PACKET]
    assert "results/quest_cbc.json" in faults


def test_a_copy_under_a_wrong_name_is_read_for_no_other(output: Path) -> None:
    for name in (
        "results/{}.json",
        "document_bundles/{}.json",
        "extractions/{}.json",
        "sme_packets/sme_packet_{}.json",
    ):
        (source,) = (path for path in [output / name.format(DOC)] if path.exists())
        shutil.copy(source, output / name.format("copy"))
    for read in (read_result, read_bundle, read_extractions, read_packet):
        with pytest.raises(StoreError, match=r"copy\.json is a copy of another file.*Move the file out"):
            read(open_folder(output), "copy")


def test_purges_and_openings_are_looked_for_in_an_export(output: Path, tmp_path: Path) -> None:
    export = tmp_path / "decisions.json"
    purge(open_folder(output), [DOC], purged_at=NOW)
    export.write_text(json.dumps({"events": list_audit_events_and_problems(open_folder(output))[0]}))
    assert named(output, earlier_export_path=export) == {}
    purge(open_folder(output), [OTHER], purged_at=NOW)
    assert named(output, earlier_export_path=export) == {}
    database(output, "DELETE FROM views WHERE reviewer = 'dr_first'")
    assert named(output, earlier_export_path=export).keys() == {"the view log"}
    for path in (output / "purged").iterdir():
        path.unlink()
    assert {"the view log", "purged"} <= named(output, earlier_export_path=export).keys()


def test_an_opening_that_is_given_to_another_case_is_missed(output: Path, tmp_path: Path) -> None:
    export = tmp_path / "decisions.json"
    assert evalkit_command("audit", "export", "--output", output, "--to", export).returncode == 0
    database(output, f"UPDATE views SET case_id = '{OTHER}' WHERE reviewer = 'dr_first'")
    assert "the view log" in named(output, earlier_export_path=export)


def test_chains_that_nothing_vouches_for_are_counted(output: Path) -> None:
    assert verify_integrity(open_folder(output)).count_by_kind["chains_without_head"] == 0
    database(output, f"DELETE FROM heads WHERE case_id = '{OTHER}'")
    assert verify_integrity(open_folder(output)).count_by_kind["chains_without_head"] == 1


def test_a_chain_that_is_taken_away_with_the_database_is_missed(output: Path) -> None:
    for path in (*(output / "changes").iterdir(), *output.glob("evalkit.sqlite*")):
        path.unlink()
    assert any(name.startswith("changes/") for name in named(output))


def test_what_was_recorded_since_an_export_is_counted(output: Path, tmp_path: Path) -> None:
    """Whoever can write into the folder can append a link as well."""
    export = tmp_path / "decisions.json"
    assert evalkit_command("audit", "export", "--output", output, "--to", export).returncode == 0
    assert verify_integrity(open_folder(output), earlier_export_path=export).notes == ()
    open_folder(output).write_json("production.json", json.loads((output / "production.json").read_text()) | {"x": 1})
    (note,) = verify_integrity(open_folder(output), earlier_export_path=export).notes
    assert "production.json" in note


@pytest.fixture
def export(output: Path, tmp_path: Path) -> Path:
    """Export what the folder has now."""
    path = tmp_path / "decisions.json"
    path.write_text(json.dumps({"events": list_audit_events_and_problems(open_folder(output))[0]}))
    return path


def test_an_intact_folder_is_verified_without_locks(output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "hold_case_write_lock", lambda *_: pytest.fail("an expert would have to wait"))
    assert verify_integrity(open_folder(output)).faults == ()


def test_a_fault_while_a_review_is_saved_is_none(output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    locked_cases: list[str] = []
    monkeypatch.setattr(verify, "hold_case_write_lock", lambda _, case_id: nullcontext(locked_cases.append(case_id)))
    monkeypatch.setattr(verify, "is_newest_review_unchanged", lambda _, head: head.case_id in locked_cases)
    assert verify_integrity(open_folder(output)).faults == ()
    assert DOC in locked_cases


def test_a_later_run_by_a_late_clock_is_no_fault(patient_folder: Path, output: Path, export: Path) -> None:
    content = json.loads(export.read_text())
    for event in content["events"]:
        event["at"] = event["at"] and event["at"].replace("20", "29", 1)  # the clock was ahead, and was then set right
    export.write_text(json.dumps(content))
    evalkit.run([patient_folder.parent / "records"], output=output, workers=1, fresh=True, name="later")
    report = verify_integrity(open_folder(output), earlier_export_path=export)
    assert [fault for fault in report.faults if fault.file != "the view log"] == []
    assert "run later was started or continued" in " ".join(report.notes)


def forge_result(output: Path) -> str:
    """Change a decision and its time, as a later run would, and append a link; return its new hash."""
    name = "results/quest_cbc.json"
    result = open_folder(output).read_json(name, max_schema_version=9)
    result |= {"decision_rule": "9", "times": result["times"] | {"finished_at": "2099-01-01T00:00:00+00:00"}}
    open_folder(output).write_json(name, result)
    return hash_result(result)


def forge_record(output: Path, sha256: str, **newest_times: Any) -> str:
    """Make the run's record fit a forged result; return the record's name."""
    (name,) = (path.relative_to(output).as_posix() for path in output.glob("runs/*/run.json"))
    record = open_folder(output).read_json(name, max_schema_version=9)
    record["documents"]["quest_cbc"]["result"]["sha256"] = sha256
    record["sessions"][-1]["times"] |= newest_times
    open_folder(output).write_json(name, record)
    return name


def test_a_forged_result_is_not_what_its_run_recorded(output: Path) -> None:
    sha256 = forge_result(output)
    assert "not the result that the newest run recorded" in named(output)["results/quest_cbc.json"]
    forge_record(output, sha256)
    assert named(output) == {}  # whoever may write in the folder can do that …


def test_a_forged_later_decision_is_found_by_the_export(output: Path, export: Path) -> None:
    forge_record(output, forge_result(output))
    assert "no later run decided" in named(output, earlier_export_path=export)["results/quest_cbc.json"]


def test_a_session_that_is_made_later_is_found_by_the_export(output: Path, export: Path) -> None:
    sha256 = forge_result(output)
    number = len(list((output / "changes").iterdir()))
    link = hashlib.sha256((output / f"changes/{number:04}.json").read_bytes().removesuffix(b"\n")).hexdigest()
    name = forge_record(output, sha256, newest_link=(number, link))
    assert named(output, earlier_export_path=export).keys() == {name}


def test_a_result_of_no_run_is_named(output: Path) -> None:
    result = open_folder(output).read_json("results/quest_cbc.json", max_schema_version=9)
    result["times"]["run_started_at"] = "2026-01-01T00:00:00+00:00"
    open_folder(output).write_json("results/quest_cbc.json", result)
    assert "no run recorded" in named(output)["results/quest_cbc.json"]


def test_a_killed_run_has_recorded_no_result(output: Path) -> None:
    (path,) = output.glob("runs/*/run.json")
    record = json.loads(path.read_text())
    del record["sessions"][-1]["times"]["finished_at"]
    open_folder(output).write_json(path.relative_to(output).as_posix(), record | {"documents": {}})
    assert named(output) == {}


@pytest.mark.parametrize("probability", [0.0123, 0.9])
def test_a_probability_that_no_run_gave_is_named(output: Path, probability: float) -> None:
    name = "ground_truth/gt_quest_cbc.json"
    changed(name, inclusion_probability=probability)(output)
    assert "follows from no recorded run" in named(output)[name]


def test_a_probability_of_an_earlier_result_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A document keeps the probability with which it was first accepted, whatever later runs draw or find."""
    monkeypatch.setattr("evalkit.pipeline.sample_draws._MIN_RESULTS_READ", 1)
    output, name = tmp_path / "output", "ground_truth/gt_second.json"
    words = (
        "Operative note. The patient was seen in clinic today for follow up. Assessment and plan: continue treatment."
    )
    for doc_id, rate in (("first", 0.5), ("second", 0.5), ("second", 0.3)):
        (tmp_path / f"{doc_id}.txt").write_text(f"{words} Visit {doc_id}.")
        settings = Settings.load(output=str(output), audit_rate_start=rate)
        evalkit.run([tmp_path / f"{doc_id}.txt"], settings=settings, name=f"{doc_id}-{rate}", fresh=True)
    assert named(output) == {}
    result = open_folder(output).read_json("results/second.json", max_schema_version=9)
    for segment in result["classification"]["segments"]:
        segment["segment_composition"][0]["confidence"] *= 0.5
    open_folder(output).write_json("results/second.json", result)
    changed(name, ground_truth_classification=result["classification"])(output)
    record = open_folder(output).read_json("runs/second-0.3/run.json", max_schema_version=9)
    record["documents"]["second"]["result"]["sha256"] = hash_result(result)
    open_folder(output).write_json("runs/second-0.3/run.json", record)
    assert name not in named(output)
    (output / "runs/second-0.5/results/second.json").unlink()
    assert "follows from no recorded run" in named(output)[name]


@pytest.mark.parametrize(("mode", "is_fault"), [(0o755, False), (0o750, False), (0o777, True), (0o770, True)])
def test_others_may_read_the_chain_but_not_change_it(output: Path, mode: int, is_fault: bool) -> None:
    (output / "changes").chmod(mode)
    report = verify_integrity(open_folder(output))
    assert [fault.file for fault in report.faults] == ["changes"] * is_fault
    assert bool(report.notes) == bool(mode & 0o007)
    if is_fault:
        assert report.faults[0].remedy == f"Run: chmod -R g-w,o= {output}"


def test_what_was_purged_is_no_fault_and_stays_verified(output: Path) -> None:
    purge(open_folder(output), [DOC, OTHER], purged_at=NOW)
    assert named(output) == {}
    record = open_folder(output).read_json("purged/0001.json", max_schema_version=9)
    record["chains"][0]["reviews"][1]["sha256"] = "0" * 64
    open_folder(output).write_json("purged/0001.json", record)
    faults = named(output)
    assert set(faults) == {"purged/0001.json", "purged/0002.json"}
    assert "not an intact chain" in faults["purged/0001.json"]


def test_a_record_of_a_purge_that_is_taken_out_is_noticed(output: Path) -> None:
    purge(open_folder(output), [DOC, OTHER], purged_at=NOW)
    (output / "purged/0001.json").unlink()
    assert "purged" in named(output)


def test_removing_the_files_by_hand_is_no_purge(output: Path) -> None:
    import shutil

    shutil.rmtree(output / REVIEWED)
    assert named(output)


def test_fully_truncated_review_chain_is_found_by_the_export(output: Path, tmp_path: Path) -> None:
    helper = SMEReviewHelper(output, "dr_nine")
    helper.save_review("requisition", undeterminable="illegible")
    helper.close()
    events, problems = list_audit_events_and_problems(open_folder(output))
    assert problems == []
    export = tmp_path / "decisions.json"
    export.write_text(json.dumps({"events": events}))
    assert named(output, earlier_export_path=export) == {}
    (output / "reviews/requisition/0001.json").unlink()
    reindex(open_folder(output))
    result = open_folder(output).read_json("results/requisition.json")
    silver = open_folder(output).read_json("ground_truth/gt_quest_cbc.json") | {
        "doc_id": "requisition", "ground_truth_classification": result["classification"],
    }  # fmt: skip
    open_folder(output).write_json("ground_truth/gt_requisition.json", silver)
    database(output, "DELETE FROM heads WHERE case_id = 'requisition'")
    assert named(output) == {}  # whoever may write in the folder can do that …
    assert "reviews/requisition" in named(output, earlier_export_path=export)  # … but not to what lies elsewhere
    purge(open_folder(output), [DOC], purged_at=NOW)
    assert set(named(output, earlier_export_path=export)) == {"reviews/requisition"}


def test_what_is_no_export_is_told(output: Path, tmp_path: Path) -> None:
    row = '{"event": "reviewed", "case_id": "a", "revision": 1, "sha256": ["a"]}'
    for text in ("", "[]", '{"events": 3}', '{"events": [{"event": "reviewed"}]}', f'{{"events": [{row}]}}'):
        (tmp_path / "x.json").write_text(text)
        with pytest.raises(UsageError, match=r"x\.json"):
            verify_integrity(open_folder(output), earlier_export_path=tmp_path / "x.json")


# ------------------------------------------------------------------------------------------------- decisions


def test_audit_export_has_who_what_when_and_versions(output: Path) -> None:
    events, problems = list_audit_events_and_problems(open_folder(output))
    assert problems == []
    assert all(tuple(one) == EVENT_COLUMNS for one in events)
    by = [one for one in events if one["case_id"] == DOC and one["event"] == "reviewed"]
    assert [(one["who"], one["outcome"], one["revision"]) for one in by] == [
        ("dr_first", "corrected", 1),
        ("dr_first", "reopened", 2),
        ("dr_first", "validated", 3),
    ]
    assert by[0]["decided"] == "Genomic Report"
    assert "evalkit" in by[0]["versions"]
    assert sorted(one["who"] for one in events if one["event"] == "opened") == ["dr_first", "dr_second", "dr_third"]
    decided = {one["doc_id"]: one for one in events if one["event"] == "decided"}
    assert decided["quest_cbc"]["outcome"] == "AUTO_ACCEPT"
    assert "fingerprint" in decided["quest_cbc"]["versions"]


def test_a_purge_leaves_who_decided_when_and_no_name(output: Path) -> None:
    before, _ = list_audit_events_and_problems(open_folder(output))
    purge(open_folder(output), [DOC], purged_at=NOW)
    after, problems = list_audit_events_and_problems(open_folder(output))
    assert problems == []
    for word in (DOC, FILE, "Quagmire"):
        assert word not in json.dumps(after)
    told = ("at", "who", "outcome", "seconds_active", "sha256")
    of_patient = [one for one in before if one["event"] == "reviewed" and (one["doc_id"] or "").startswith(DOC)]
    kept = [one for one in after if one["event"] == "reviewed" and one["doc_id"] is None]
    assert sorted([one[name] or 0 for name in told] for one in kept) == sorted(
        [one[name] or 0 for name in told] for one in of_patient
    )
    assert [one["at"] for one in after if one["event"] == "purged"] == [NOW]
    assert sum(one["event"] == "opened" for one in after) == 3


def test_the_commands(output: Path, tmp_path: Path) -> None:
    whole = evalkit_command("audit", "verify", "--output", output)
    assert whole.returncode == 0, whole
    assert whole.stdout.startswith("0 faults: ")
    assert not re.search(r"[:,] 0 ", whole.stdout)
    assert re.search(r"\b1 run\b", whole.stdout)
    table = evalkit_command("audit", "export", "--output", output, "--to", tmp_path / "d.csv")
    assert table.returncode == 0, table
    with (tmp_path / "d.csv").open() as rows:
        assert len(list(csv.DictReader(rows))) == 4 + 4 + 6 + 3 + 1
    export = evalkit_command("audit", "export", "--output", output, "--to", tmp_path / "d.json")
    assert export.returncode == 0, export
    assert (tmp_path / "d.json").stat().st_mode & 0o777 == 0o600
    purged = evalkit_command("purge", DOC, "--output", output, "--json")
    assert json.loads(purged.stdout)[0]["doc_id"] == DOC
    (output / f"reviews/{OTHER}/0001.json").unlink()
    faulty = evalkit_command("audit", "verify", "--output", output, "--against", tmp_path / "d.json")
    assert faulty.returncode == 1
    assert f"reviews/{OTHER}" in faulty.stderr
    assert evalkit_command("purge", "--output", output).returncode == 2
