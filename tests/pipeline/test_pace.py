"""What of a run was slow is measured, and its log tells programs who it was about without telling who that is."""

from __future__ import annotations

import json
import logging
import time
from pathlib import Path

import pytest
from commands import evalkit_command, evalkit_process
from documents.drawing import lines
from documents.scanning import NOTE, needs_tesseract, printed, scan
from places import open_folder

import evalkit
from evalkit.core.log_events import EventFormatter, log_event
from evalkit.errors import DocumentError, NotFound
from evalkit.pipeline.executor import reader_pool
from evalkit.pipeline.extract import extract
from evalkit.pipeline.timings_report import STEP_EXPLANATIONS, RunTimings, summarise_last_run
from evalkit.review.loaders import read_bundle, read_extractions, read_result


@needs_tesseract
def test_a_run_over_scans_was_slow_because_of_recognising(samples: Path, tmp_path: Path) -> None:
    page = printed(lines(NOTE + NOTE + NOTE))
    (tmp_path / "scan.pdf").write_bytes(scan(page, page, page))  # longer than starting the process that reads them
    evalkit.run([tmp_path / "scan.pdf", samples / "quest_cbc.pdf"], output=tmp_path / "output", workers=2)
    found = summarise_last_run(open_folder(tmp_path / "output"))
    assert found.documents == 2
    assert found.slowest[0].doc_id == "scan"
    assert found.slowest[0].step == "recognising"
    assert 0 < found.slowest[0].seconds <= found.seconds
    told = evalkit_command("doctor", "--run", tmp_path / "output").stdout
    assert all(step in told for step in (*STEP_EXPLANATIONS, *(why for why, _ in found.reasons)))


def test_reading_fields_is_a_step_of_its_own_with_a_run_and_without(samples: Path, tmp_path: Path) -> None:
    evalkit.run([samples / "quest_cbc.pdf"], output=tmp_path / "run", extract=True)
    extract([samples / "quest_cbc.pdf"], output=tmp_path / "fields")
    made = read_result(open_folder(tmp_path / "run"), "quest_cbc").times["seconds"]
    for name, before in (("run", made), ("fields", {})):
        found = summarise_last_run(open_folder(tmp_path / name))
        assert found.documents == 1
        fields = read_extractions(open_folder(tmp_path / name), "quest_cbc").times["seconds"]
        whole = {step: before.get(step, 0) + fields.get(step, 0) for step in ("waiting", *STEP_EXPLANATIONS)}
        assert {"waiting": found.waiting, **found.steps} == whole
        assert found.steps["extracting"] > 0
        assert found.steps["reading"] > 0


@pytest.mark.parametrize(
    ("seconds", "reasons"),
    [
        ({"recognising": 9.0, "reading": 1.0}, ["90% of the seconds: recognising pages that are pictures"]),
        (
            {"asking": 5.0, "failing": 4.0, "deciding": 1.0},
            ["50%", "40% of the seconds: documents that could not be read"],
        ),
        ({"deciding": 3.0, "reading": 3.0, "asking": 4.0}, ["30% of the seconds: reading", "40%", "30%"]),
        ({"reading": 0.0}, []),
    ],
)
def test_what_took_a_large_part_is_why(seconds: dict[str, float], reasons: list[str]) -> None:
    steps = dict.fromkeys(STEP_EXPLANATIONS, 0.0) | seconds
    told = [why for why, _ in RunTimings("2026-01-01T00:00:00Z", 1, 10.0, 99.0, steps, ()).reasons]
    assert len(told) == len(reasons)
    assert all(why.startswith(reason) for why, reason in zip(told, reasons, strict=True))


def test_only_the_last_run_is_told_of(samples: Path, tmp_path: Path) -> None:
    evalkit.run([samples / "quest_cbc.pdf"], output=tmp_path)
    evalkit.run([samples / "quest_cbc.pdf", samples / "requisition.pdf"], output=tmp_path)
    found = summarise_last_run(open_folder(tmp_path))
    assert [one.doc_id for one in found.slowest] == ["requisition"]
    seconds = read_result(open_folder(tmp_path), "requisition").times["seconds"]
    assert seconds.keys() == {"waiting", *STEP_EXPLANATIONS} - {"extracting", "failing"}
    assert all(took >= 0 for took in seconds.values())


def test_a_document_that_could_not_be_read_in_its_time_is_why(
    samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(*_: object) -> None:
        time.sleep(1)
        raise DocumentError("it took too long", code="READER-CRASHED", remedy="Print it anew.")

    monkeypatch.setattr(reader_pool, "read_with_limits", slow)
    evalkit.run([samples / "quest_cbc.pdf"], output=tmp_path)
    found = summarise_last_run(open_folder(tmp_path))
    assert (found.documents, found.slowest[0].doc_id, found.slowest[0].step) == (1, "quest_cbc", "failing")
    assert found.slowest[0].seconds >= 1
    assert [why.partition(": ")[2] for why, _ in found.reasons] == ["documents that could not be read in the end"]


def test_a_folder_without_times_says_so(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="has left its times"):
        summarise_last_run(open_folder(tmp_path))
    assert evalkit_command("doctor", "--run", tmp_path).returncode == 2


def test_json_lines_have_hashes_steps_and_seconds_and_no_names_or_words(samples: Path, tmp_path: Path) -> None:
    folder = tmp_path / "Zacharias_Quillfeather"
    folder.mkdir()
    (folder / "Zacharias_Quillfeather.pdf").write_bytes((samples / "quest_cbc.pdf").read_bytes())
    (folder / "broken_Quillfeather.pdf").write_bytes(b"%PDF-1.4 and nothing else")
    options = ("--verbose", "--log-format", "json")
    ended = evalkit_process(*options, "run", folder, "--output", tmp_path / "output", "--json")
    told = [json.loads(line) for line in ended.stderr.splitlines() if line.startswith("{")]
    sha256 = read_result(open_folder(tmp_path / "output"), "Zacharias_Quillfeather").sha256
    by_step = {one["message"]: one for one in told if one.get("document") == sha256[:12]}
    assert by_step.keys() >= {"read", "decided"}
    assert [one["code"] for one in told if one["message"] == "failed"] == ["READER-DAMAGED"]
    assert by_step["read"]["reading"] > 0
    assert by_step["read"]["pages"] == 2
    assert all(one.keys() >= {"at", "level", "logger", "message"} for one in told)
    bundle = read_bundle(open_folder(tmp_path / "output"), "Zacharias_Quillfeather")
    words = {word for page in bundle.pages for word in page.text.split() if len(word) > 6 and word.isalpha()}
    logged = "\n".join(line for line in ended.stderr.splitlines() if line.startswith("{"))
    assert not [word for word in {*words, "Quillfeather"} if word in logged]


def test_the_setting_says_how_the_log_is_written(samples: Path, tmp_path: Path) -> None:
    words = ["--verbose", "run", samples / "quest_cbc.pdf", "--output", tmp_path]
    ended = evalkit_command(*words, EVALKIT_LOG_FORMAT="json")
    assert any(line.startswith("{") and json.loads(line)["message"] == "decided" for line in ended.stderr.splitlines())


def test_a_line_for_a_person_has_the_same_fields_and_an_object_no_traceback(caplog: pytest.LogCaptureFixture) -> None:
    log_event(logging.getLogger("evalkit.x"), logging.WARNING, "read", document_sha256="0" * 64, seconds=1.5)
    (record,) = caplog.records
    record.exc_info = ValueError, ValueError("Jane Roe"), None
    told = json.loads(EventFormatter("json").format(record))
    assert (told["message"], told["document"], told["seconds"], told["error"]) == ("read", "0" * 12, 1.5, "ValueError")
    assert "Jane" not in json.dumps(told)
    record.exc_info = None
    assert EventFormatter("text").format(record) == "WARNING evalkit.x: read document=000000000000 seconds=1.5"
