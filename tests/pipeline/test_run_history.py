"""Runs of one folder: their names, what each of them decided, and what later runs leave of it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from commands import evalkit_command
from hypothesis import given
from hypothesis import strategies as st
from places import in_bucket, open_folder

import evalkit
from evalkit.errors import NotFound, RunStopped, StoreError, UsageError
from evalkit.evaluation import study
from evalkit.pipeline import extract
from evalkit.pipeline.audit.verify import verify_integrity
from evalkit.pipeline.purge import purge
from evalkit.pipeline.run_history import (
    RunInputs,
    RunRecord,
    find_run_record,
    open_run,
    read_run_records,
    remove_from_record,
    require_valid_run_name,
)
from evalkit.review.loaders import read_extractions, read_result
from evalkit.store.call_journal import CallJournal
from evalkit.store.change_chain import ChangeRecorder

DOC = "segment_count"
#: Starts that differ, of runs that may lie within one millisecond.
LATER = "2027-01-01T00:00:00+00:00"


@pytest.fixture
def inbox(samples: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "inbox"
    folder.mkdir()
    for name in (DOC, "quest_cbc"):
        shutil.copy(samples / f"{name}.pdf", folder)
    return folder


@pytest.fixture
def supplied(samples: Path, tmp_path: Path) -> Path:
    """A classification that is escalated; the built-in model's is accepted."""
    folder = tmp_path / "classifications"
    folder.mkdir()
    shutil.copy(samples / "classifications" / f"{DOC}.json", folder)
    return folder


def list_kept_files(output: Path) -> list[str]:
    return sorted(
        str(path.relative_to(output / "runs")) for path in (output / "runs").rglob("*.json") if path.name != "run.json"
    )


def decide(output: Path | str, run: str) -> tuple[str, list[str]]:
    result: Any = read_result(open_run(open_folder(output), run), DOC)
    return result.decision.value, [issue.code for issue in result.issues]


def test_a_later_run_leaves_results_and_issues_readable(inbox: Path, supplied: Path, tmp_path: Path) -> None:
    output = tmp_path / "output"
    evalkit.run(inbox, output=output, name="supplied", classifications=supplied)
    before = (output / f"results/{DOC}.json").read_bytes()
    evalkit.run(inbox, output=output, name="asked", no_classifications=True)
    assert list_kept_files(output) == [f"supplied/results/{DOC}.json"]  # the other document is stored once
    assert (output / f"runs/supplied/results/{DOC}.json").read_bytes() == before
    assert decide(output, "supplied") == ("ESCALATE_TO_SME", ["V1-SEGMENT-COUNT"])
    assert decide(output, "asked") == ("AUTO_ACCEPT", ["V2-DOMINANT-TIE"])
    assert not verify_integrity(open_folder(output)).faults
    with pytest.raises(NotFound, match="the newest are supplied, asked"):
        open_run(open_folder(output), "nobody")


def test_a_run_records_what_it_was(inbox: Path, supplied: Path, tmp_path: Path) -> None:
    output = tmp_path / "output"
    evalkit.run(inbox, output=output, name="supplied", classifications=supplied, profile="lean")
    (record,) = read_run_records(open_folder(output))
    assert (record.name, record.number, record.is_named, record.sessions[-1].is_finished) == ("supplied", 1, True, True)
    assert record.inputs == RunInputs(paths=(str(inbox),), classifications=str(supplied))
    assert record.settings["profile"] == "lean"
    assert record.settings["models"]["default"] == "embedded"
    assert record.settings["versions"]["prompts"]["Merged_Verifier"]
    (session,) = record.sessions
    assert (session.decided, session.is_complete, list(session.usage_by_model)) == (2, True, ["embedded"])
    assert session.times["started_at"] < session.times["finished_at"]
    assert {doc_id: document.decision for doc_id, document in record.documents.items()} == {
        "quest_cbc": "AUTO_ACCEPT",
        DOC: "ESCALATE_TO_SME",
    }
    stored = json.loads((output / f"results/{DOC}.json").read_text())
    assert record.documents[DOC].fingerprint == stored["fingerprint"]
    assert stored["times"]["run_started_at"] == session.times["started_at"]


def test_the_same_name_continues_the_newest_run(inbox: Path, samples: Path, tmp_path: Path) -> None:
    output = tmp_path / "output"
    evalkit.run(inbox, output=output, name="inbox")
    record_file = output / "runs/inbox/run.json"
    before = record_file.read_bytes()
    assert all(document.resumed for document in evalkit.run(inbox, output=output, name="inbox").documents)
    assert record_file.read_bytes() == before
    shutil.copy(samples / "doc2_6.pdf", inbox)
    evalkit.run(inbox, output=output, name="inbox")
    record = find_run_record(open_folder(output), "inbox")
    assert [session.decided for session in record.sessions] == [2, 1]
    assert sorted(record.documents) == ["doc2_6", "quest_cbc", DOC]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"paths": "quest_cbc.pdf"}, "made with other inputs"),
        ({"classifications": "classifications"}, "made with other inputs"),
        ({"extract": True}, "made with other inputs"),
        ({"profile": "lean"}, r"made with other settings \(profile\)"),
        ({"fresh": True}, "--fresh would replace the results of run first"),
    ],
    ids=str,
)
def test_a_name_with_other_inputs_or_settings_is_refused(
    inbox: Path, supplied: Path, tmp_path: Path, options: dict[str, Any], reason: str
) -> None:
    output = tmp_path / "output"
    evalkit.run(inbox, output=output, name="first")
    before = {path: path.read_bytes() for path in output.rglob("*.json")}
    options = {"paths": inbox, "output": output, "name": "first"} | options
    if "classifications" in options:
        options["classifications"] = supplied
    options["paths"] = inbox / options["paths"] if options["paths"] != inbox else inbox
    with pytest.raises(UsageError, match=reason) as refused:
        evalkit.run(**options)
    assert (refused.value.code, "another --name" in refused.value.remedy) == ("RUN-CHANGED", True)
    assert {path: path.read_bytes() for path in output.rglob("*.json")} == before
    evalkit.run(**options | {"name": None})  # without the name it is a new run
    assert [record.name == "first" for record in read_run_records(open_folder(output))] == [True, False]


def test_only_the_newest_run_is_continued(inbox: Path, tmp_path: Path) -> None:
    output = tmp_path / "output"
    evalkit.run(inbox, output=output, name="first")
    evalkit.run(inbox, output=output, name="second", profile="lean")
    with pytest.raises(UsageError, match="first is not the newest: second came after it"):
        evalkit.run(inbox, output=output, name="first")


def test_changed_classifications_make_another_run(inbox: Path, supplied: Path, samples: Path, tmp_path: Path) -> None:
    output = tmp_path / "output"
    evalkit.run(inbox, output=output, name="first", classifications=supplied)
    (supplied / f"{DOC}.json").write_text("{}")
    with pytest.raises(UsageError, match="other classifications or patients for 1 of its documents"):
        evalkit.run(inbox, output=output, name="first", classifications=supplied)


def test_runs_without_a_name_get_date_and_number(inbox: Path, tmp_path: Path) -> None:
    output = tmp_path / "output"
    first = evalkit.run(inbox, output=output).run
    assert evalkit.run(inbox, output=output).run == first
    second = evalkit.run(inbox, output=output, profile="lean").run
    evalkit.run(inbox, output=output, name="named", profile="lean")
    third = evalkit.run(inbox, output=output, profile="lean").run  # a named run is continued by its name only
    day, _, number = first.rpartition("-")
    assert (number, second, third) == ("1", f"{day}-2", f"{day}-3")
    assert list_kept_files(output) == [f"{first}/results/quest_cbc.json", f"{first}/results/{DOC}.json"]


def test_a_fresh_run_keeps_what_it_replaces(inbox: Path, tmp_path: Path) -> None:
    output = tmp_path / "output"
    first = evalkit.run(inbox, output=output).run
    assert evalkit.run(inbox, output=output, fresh=True).run != first
    assert list_kept_files(output) == [f"{first}/results/quest_cbc.json", f"{first}/results/{DOC}.json"]


def test_results_of_a_killed_run_are_kept(inbox: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = tmp_path / "output"
    with monkeypatch.context() as patch:
        patch.setattr("evalkit.pipeline.run_history.RunRecorder.finish", lambda *_, **__: None)
        killed = evalkit.run(inbox, output=output).run
    assert not find_run_record(open_folder(output), killed).sessions[-1].is_finished
    assert not verify_integrity(open_folder(output)).faults
    evalkit.run(inbox, output=output, name="next", profile="lean")
    assert list_kept_files(output) == [f"{killed}/results/quest_cbc.json", f"{killed}/results/{DOC}.json"]


def test_a_run_that_stops_records_what_it_decided(inbox: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = tmp_path / "output"

    def stop(document: evalkit.DocumentSummary, *_: int) -> None:
        raise RunStopped("the model is down", code="LLM-OUTAGE", remedy="Run again later.")

    with pytest.raises(RunStopped):
        evalkit.run(inbox, output=output, name="stopped", workers=1, on_progress=stop)
    record = find_run_record(open_folder(output), "stopped")
    assert (record.sessions[-1].is_finished, record.sessions[0].is_complete, len(record.documents)) == (True, False, 1)
    evalkit.run(inbox, output=output, name="stopped")
    record = find_run_record(open_folder(output), "stopped")
    assert ([session.is_complete for session in record.sessions], len(record.documents)) == ([False, True], 2)


def test_run_whose_history_cannot_be_written_fails_and_is_completed(
    inbox: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise StoreError("the disk is full", code="STORE-FULL", remedy="Make room.")

    with monkeypatch.context() as patch:
        patch.setattr("evalkit.pipeline.run_history.RunRecorder.finish", fail)
        summary = evalkit.run(inbox, output=tmp_path / "output", name="one")
    assert (summary.exit_status, len(summary.problems), summary.failed) == (1, 1, [])
    assert "the disk is full. Make room." in summary.problems[0]
    assert evalkit.run(inbox, output=tmp_path / "output", name="one").exit_status == 0
    record = find_run_record(open_folder(tmp_path / "output"), "one")
    assert (record.sessions[-1].is_finished, len(record.documents)) == (True, 2)


@pytest.mark.parametrize("command", [evalkit.run, extract])
def test_a_run_whose_end_is_not_in_the_journal_fails(
    inbox: Path, tmp_path: Path, command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: CallJournal) -> None:
        raise StoreError("the disk is full", code="STORE-FULL", remedy="Make room.")

    monkeypatch.setattr(CallJournal, "forget_last_call_before_run", fail)
    summary = command([inbox], output=tmp_path / "output", fresh=True)
    assert (summary.exit_status, summary.failed) == (1, [])
    assert [*summary.problems] == [
        "The end of this run was not recorded, so the next --fresh run reuses its answers: the disk is full. Make room."
    ]


@pytest.mark.parametrize("command", [evalkit.run, extract])
def test_a_run_whose_end_is_not_in_the_chain_fails(
    inbox: Path, tmp_path: Path, command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    append = ChangeRecorder._append

    def fail(recorder: ChangeRecorder, files: Mapping[str, str | None], **options: bool) -> None:
        if options["is_finished"]:
            raise StoreError("the disk is full", code="STORE-FULL", remedy="Make room.")
        append(recorder, files, **options)

    with monkeypatch.context() as patch:
        patch.setattr(ChangeRecorder, "_append", fail)
        summary = command([inbox], output=tmp_path / "output")
    assert (summary.exit_status, summary.failed) == (1, [])
    (problem,) = summary.problems
    assert re.fullmatch(r"The chain of changes lacks .+ until the next run: the disk is full\. Make room\.", problem)
    summary = command([inbox], output=tmp_path / "output")
    assert (summary.exit_status, summary.problems) == (0, ())
    assert not verify_integrity(open_folder(tmp_path / "output")).faults


def test_replaced_fields_are_kept(samples: Path, tmp_path: Path) -> None:
    output, pdf = tmp_path / "output", samples / "pathology_report.pdf"
    evalkit.run(pdf, output=output, name="fields", extract=True)
    record = find_run_record(open_folder(output), "fields")
    assert record.documents["pathology_report"].fields is not None
    before = (output / "extractions/pathology_report.json").read_bytes()
    extract(pdf, output=output, fresh=True)  # what it replaces is the run's
    assert list_kept_files(output) == ["fields/extractions/pathology_report.json"]
    assert (output / "runs/fields/extractions/pathology_report.json").read_bytes() == before
    assert read_extractions(open_run(open_folder(output), "fields"), "pathology_report").extractions


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "a/b",
        "../a",
        "a\\b",
        "a..b",
        "a.",
        ".hidden",
        "-x",
        "ü",
        "a b",
        "a\n",
        "x" * 65,
        "2026-01-02-3",
        "FIRST",
    ],
)
def test_a_bad_name_is_refused_with_the_remedy(name: str) -> None:
    with pytest.raises(UsageError, match="the run name") as refused:
        require_valid_run_name(name, ["first"])
    assert (refused.value.code, "baseline-2" in refused.value.remedy) == ("RUN-NAME", True)


@given(st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9_-]{0,62}[A-Za-z0-9_])?", fullmatch=True))
def test_a_plain_name_is_accepted(name: str) -> None:
    if not name[:4].isdigit():
        require_valid_run_name(name, [])


def test_classifications_of_the_run_before_are_kept(inbox: Path, supplied: Path, tmp_path: Path) -> None:
    output = tmp_path / "output"
    assert evalkit.run(inbox, output=output, classifications=supplied).kept_classifications is None
    again = evalkit.run(inbox, output=output)
    assert str(supplied) in (again.kept_classifications or "")
    assert all(document.resumed for document in again.documents)
    assert (
        evalkit.run(inbox / "quest_cbc.pdf", output=output).problems == ()
    )  # the file of the other document is no fault
    shutil.rmtree(supplied)
    with pytest.raises(UsageError, match="are gone") as refused:
        evalkit.run(inbox, output=output)
    assert "--no-classifications" in refused.value.remedy
    asked = evalkit.run(inbox, output=output, no_classifications=True)
    assert [document.decision for document in asked.documents] == ["AUTO_ACCEPT", "AUTO_ACCEPT"]


def test_a_purge_removes_a_document_from_all_runs(inbox: Path, tmp_path: Path) -> None:
    output, files = tmp_path / "output", [inbox / f"{DOC}.pdf", inbox / "quest_cbc.pdf"]
    for number, profile in enumerate(["full", "lean", "full"]):
        evalkit.run(files, output=output, name=f"run{number}", profile=profile)
    (purged,) = purge(open_folder(output), [DOC], purged_at=LATER)
    assert purged.deleted_row_counts["runs"] == 3
    assert not [path for path in output.rglob("*.json") if DOC.encode() in path.read_bytes() or DOC in path.name]
    assert not verify_integrity(open_folder(output)).faults
    assert [sorted(record.documents) for record in read_run_records(open_folder(output))] == [["quest_cbc"]] * 3
    run = evalkit.run(files, output=output, name="run2")  # the purge of an input makes no other run of it
    assert (run.run, len(run.documents)) == ("run2", 1)


def test_an_input_stays_while_another_document_needs_it() -> None:
    record = RunRecord(
        name="a", number=1, is_named=True, inputs=RunInputs(paths=("/in", "/x.pdf", "/inner")), settings={}, sessions=()
    )
    shortened = remove_from_record(record, {"x"}, ["/in/a.pdf"])
    assert shortened.inputs == RunInputs(paths=("/in",), purged_paths=2)
    assert shortened.inputs.is_same_as(record.inputs)
    assert not shortened.inputs.is_same_as(RunInputs(paths=("/in", "/x.pdf")))


def test_audit_names_a_changed_result_of_an_earlier_run(inbox: Path, tmp_path: Path) -> None:
    output = tmp_path / "output"
    evalkit.run(inbox, output=output, name="first")
    evalkit.run(inbox, output=output, name="second", profile="lean")
    kept = output / f"runs/first/results/{DOC}.json"
    kept.write_text(kept.read_text().replace("AUTO_ACCEPT", "ESCALATE_TO_SME"))
    (output / "runs/first/results/quest_cbc.json").unlink()
    (output / "runs/first/läuft.txt").write_text("")
    faults = {fault.file for fault in verify_integrity(open_folder(output)).faults}
    assert faults == {f"runs/first/results/{name}.json" for name in (DOC, "quest_cbc")} | {"runs/first/läuft.txt"}


@pytest.mark.parametrize("removed", [["runs"], ["runs", "results"], ["runs/first"], ["runs/{unnamed}"]])
def test_a_new_run_does_not_stand_for_one_whose_record_is_missing(
    inbox: Path, tmp_path: Path, removed: list[str]
) -> None:
    output = tmp_path / "output"
    evalkit.run(inbox, output=output, name="first")
    unnamed = evalkit.run(inbox, output=output, profile="lean").run
    assert not verify_integrity(open_folder(output)).faults
    for folder in removed:
        shutil.rmtree(output / folder.format(unnamed=unnamed))
    lost = {name for name in ("first", unnamed) if not (output / f"runs/{name}").exists()}
    assert evalkit.run(inbox, output=output).run not in lost
    if "first" in lost:
        with pytest.raises(UsageError, match="record is missing") as refused:
            evalkit.run(inbox, output=output, name="first")
        assert "runs/first/run.json" in refused.value.remedy
    told = verify_integrity(open_folder(output)).faults
    assert lost <= {fault.file.split("/")[1] for fault in told if fault.what == "it was recorded, but is missing"}


def test_reindex_leaves_the_runs_alone(inbox: Path, tmp_path: Path) -> None:
    output = tmp_path / "output"
    evalkit.run(inbox, output=output, name="first")
    evalkit.run(inbox, output=output, name="second", profile="lean")
    before = {path: path.read_bytes() for path in (output / "runs").rglob("*.json")}
    (output / "evalkit.sqlite").unlink()
    assert evalkit_command("reindex", "--output", output).returncode == 0
    assert all(
        document.resumed for document in evalkit.run(inbox, output=output, name="second", profile="lean").documents
    )
    assert {path: path.read_bytes() for path in (output / "runs").rglob("*.json")} == before


@pytest.mark.parametrize("scheme", ["s3", "gs"])
def test_runs_in_a_bucket(
    inbox: Path, scheme: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = in_bucket(scheme, request, monkeypatch)
    evalkit.run(inbox / f"{DOC}.pdf", output=output, name="first")
    evalkit.run(inbox / f"{DOC}.pdf", output=output, name="second", profile="lean")
    folder = open_folder(output)
    assert [record.name for record in read_run_records(folder)] == ["first", "second"]
    assert folder.has_file(f"runs/first/results/{DOC}.json")
    assert decide(output, "first")[0] == "AUTO_ACCEPT"
    assert not verify_integrity(folder).faults
    purge(folder, [DOC], purged_at=LATER)
    assert not folder.has_file(f"runs/first/results/{DOC}.json")


def test_runs_compare_and_show_take_names(inbox: Path, supplied: Path, tmp_path: Path) -> None:
    output = tmp_path / "output"
    evalkit.run(inbox, output=output, name="supplied", classifications=supplied)
    evalkit.run(inbox, output=output, name="asked", no_classifications=True)
    evalkit.run(inbox, output=tmp_path / "other", classifications=supplied)
    for path in output.rglob("*"):  # a folder that may only be read
        path.chmod(0o500 if path.is_dir() else 0o400)
    table = evalkit_command("runs", "--output", output)
    assert table.returncode == 0
    assert [line.split()[0] for line in table.stdout.splitlines() if "embedded" in line][:2] == ["supplied", "asked"]
    compared, folders = (
        json.loads(evalkit_command("compare", *sides, "--output", output, "--json").stdout)
        for sides in (("supplied", "asked"), (tmp_path / "other", output))
    )
    assert (compared["a"], compared["b"]) == ("supplied", "asked")
    for key in ("decisions", "types", "versions", "only_a", "only_b"):
        assert compared[key] == folders[key]
    assert compared["decisions"]["ESCALATE_TO_SME"] == {"AUTO_ACCEPT": 1}
    shown = evalkit_command("show", DOC, "--run", "supplied", "--output", output)
    assert "number_of_segments is 3" in shown.stdout
    assert "number_of_segments is 3" not in evalkit_command("show", DOC, "--output", output).stdout
    assert evalkit_command("show", DOC, "--run", "nobody", "--output", output).returncode == 2


def test_reviews_count_for_the_run_whose_answer_they_saw(inbox: Path, supplied: Path, tmp_path: Path) -> None:
    output = tmp_path / "output"
    evalkit.run(inbox, output=output, name="supplied", classifications=supplied)
    helper = evalkit.SMEReviewHelper(output, "dr_lee")
    helper.save_review(DOC, agrees=False, corrected_dominant_type="Clinical Note")
    helper.close()
    evalkit.run(inbox, output=output, name="asked", no_classifications=True)
    command = ("compare", "supplied", "asked", "--output", output, "--json")
    compared = json.loads(evalkit_command(*command).stdout)
    assert compared["known_from"] == {"given": 0, "A": 1, "B": 0, "both": 0}
    assert compared["type"]["documents"] == 1


# ------------------------------------------------------------------------------------------------- a watched folder


OPERATIONS = Path(evalkit.__file__).parent / "docs/operations.md"


def test_the_cron_line_reads_what_arrived_since(inbox: Path, samples: Path, tmp_path: Path) -> None:
    (line,) = re.findall(r"^\*/5 \* \* \* \* cd /srv/evalkit && \.venv/bin/(evalkit .+)$", OPERATIONS.read_text(), re.M)
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    (bin_folder / "evalkit").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m evalkit "$@"\n')
    (bin_folder / "evalkit").chmod(0o700)

    def tick() -> dict[str, Any]:
        path = {"PATH": f"{bin_folder}:{os.environ['PATH']}"}
        done = subprocess.run(["/bin/sh", "-c", line], cwd=tmp_path, env=os.environ | path, check=False)
        assert done.returncode == 0, (tmp_path / "evalkit.log").read_text()
        summary: dict[str, Any] = json.loads((tmp_path / "last_run.json").read_text())
        return summary

    for path in inbox.iterdir():
        os.utime(path, (1, 1))
    assert [document["resumed"] for document in tick()["documents"]] == [False, False]
    shutil.copy(samples / "doc2_6.pdf", inbox)  # just now, so that it may be half copied
    again = tick()
    assert [document["resumed"] for document in again["documents"]] == [True, True]
    assert [Path(skipped["file"]).name for skipped in again["skipped"]] == ["doc2_6.pdf"]
    assert "doc2_6.pdf: it changed in the last 60 s; the next run reads it" in (tmp_path / "evalkit.log").read_text()
    os.utime(inbox / "doc2_6.pdf", (1, 1))
    arrived = tick()
    assert {document["doc_id"]: document["resumed"] for document in arrived["documents"]} == {
        "quest_cbc": True,
        DOC: True,
        "doc2_6": False,
    }
    assert len(read_run_records(open_folder(tmp_path / "work"))) == 1  # a watched folder is one run


def test_a_run_that_overlaps_ends_with_the_reason(inbox: Path, tmp_path: Path) -> None:
    output = tmp_path / "output"
    evalkit.run(inbox / "quest_cbc.pdf", output=output)
    with open_folder(output).hold_run_lock():
        shown = evalkit_command("run", inbox, "--output", output, "--settle", "60", "--json")
    assert (shown.returncode, shown.stdout) == (2, "")
    assert "another run is writing to" in shown.stderr


@pytest.mark.parametrize(("settle", "status"), [("60", 0), ("0", 2)])
def test_an_empty_inbox_is_no_error_if_it_is_watched(tmp_path: Path, settle: str, status: int) -> None:
    (tmp_path / "inbox").mkdir()
    shown = evalkit_command("run", tmp_path / "inbox", "--output", tmp_path / "output", "--settle", settle)
    assert shown.returncode == status
    missing = evalkit_command("run", tmp_path / "nowhere", "--output", tmp_path / "output", "--settle", settle)
    assert missing.returncode == 2


def test_systemd_accepts_the_service_and_the_timer(tmp_path: Path) -> None:
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is not installed")
    service, timer = re.findall(r"^```\n(\[Unit\]\n.+?)^```$", OPERATIONS.read_text(), re.M | re.S)[:2]
    (tmp_path / "evalkit-inbox.service").write_text(service.replace("/srv/evalkit/.venv/bin/evalkit", "/bin/true"))
    (tmp_path / "evalkit-inbox.timer").write_text(timer)
    units = sorted(map(str, tmp_path.glob("evalkit-inbox.*")))
    checked = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True, check=False)
    assert not [line for line in checked.stderr.splitlines() if "evalkit-inbox" in line]
    (tmp_path / "evalkit-inbox.timer").write_text(timer.replace("*:0/5", "sometimes"))
    checked = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True, check=False)
    assert "evalkit-inbox.timer" in checked.stderr


def test_an_idle_run_reads_the_study_once(inbox: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output, reads = tmp_path / "output", []
    (output / "reviews").mkdir(parents=True)
    read = study.read_folder_study
    monkeypatch.setattr(study, "read_folder_study", lambda folder: reads.append(folder) or read(folder))
    for expected in (2, 3):  # the first run decides documents between its two looks
        (output / "results").mkdir(exist_ok=True)
        assert evalkit_command("run", inbox, "--output", output).returncode == 0
        assert len(reads) == expected
