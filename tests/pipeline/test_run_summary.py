"""Times of a run are measured, and its log names no patient."""

from __future__ import annotations

import json
import logging
import re
import time
from pathlib import Path

import pytest
from commands import evalkit_command, evalkit_process
from documents.drawing import lines
from documents.scanning import NOTE, needs_tesseract, printed, scan
from places import open_folder

import evalkit
from evalkit.core.log_events import EventFormatter, log_event
from evalkit.errors import DocumentError
from evalkit.pipeline.executor import reader_pool
from evalkit.review.loaders import read_bundle, read_extractions, read_result


@needs_tesseract
def test_recognising_counts(samples: Path, tmp_path: Path) -> None:
    page = printed(lines(NOTE + NOTE + NOTE))
    (tmp_path / "scan.pdf").write_bytes(scan(page, page, page))  # longer than starting the process that reads them
    paths = [tmp_path / "scan.pdf", samples / "quest_cbc.pdf"]
    timings = evalkit.run(paths, output=tmp_path / "output", workers=2).timings
    assert timings.seconds_by_document.keys() == {"scan", "quest_cbc"}
    recognising = read_result(open_folder(tmp_path / "output"), "scan").times["seconds"]["recognising"]
    assert timings.seconds_by_step["recognising"] == recognising > 0
    assert "recognising" in timings.format_timing_line(9.0)


def test_a_run_says_where_its_seconds_went(samples: Path, tmp_path: Path) -> None:
    arguments = ("run", samples / "quest_cbc.pdf", "--output", tmp_path)
    (time_line,) = [line for line in evalkit_command(*arguments).stdout.splitlines() if line.startswith("Time: ")]
    assert re.fullmatch(r"Time: \d+\.\d s; (\w+ \d+ %, )*\w+ \d+ %; slowest document quest_cbc \d+\.\d s", time_line)
    (time_line,) = [line for line in evalkit_command(*arguments).stdout.splitlines() if line.startswith("Time: ")]
    assert re.fullmatch(r"Time: \d+\.\d s", time_line)  # all was finished before


def test_reading_fields_is_a_step_of_its_own(samples: Path, tmp_path: Path) -> None:
    timings = evalkit.run([samples / "quest_cbc.pdf"], output=tmp_path, extract=True).timings
    decided = read_result(open_folder(tmp_path), "quest_cbc").times["seconds"]
    fields = read_extractions(open_folder(tmp_path), "quest_cbc").times["seconds"]
    steps = (decided.keys() | fields.keys()) - {"waiting"}
    assert timings.seconds_by_step == {step: decided.get(step, 0) + fields.get(step, 0) for step in steps}
    assert timings.seconds_by_step["extracting"] > 0


def test_only_what_a_run_did_itself_counts(samples: Path, tmp_path: Path) -> None:
    evalkit.run([samples / "quest_cbc.pdf"], output=tmp_path)
    timings = evalkit.run([samples / "quest_cbc.pdf", samples / "requisition.pdf"], output=tmp_path).timings
    assert timings.seconds_by_document.keys() == {"requisition"}
    seconds = read_result(open_folder(tmp_path), "requisition").times["seconds"]
    assert seconds.keys() == {"waiting", "reading", "recognising", "asking", "deciding"}
    assert all(took >= 0 for took in seconds.values())


def test_a_document_that_could_not_be_read_counts(
    samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(*_: object) -> None:
        time.sleep(1)
        raise DocumentError("it took too long", code="READER-CRASHED", remedy="Print it anew.")

    monkeypatch.setattr(reader_pool, "read_with_limits", slow)
    timings = evalkit.run([samples / "quest_cbc.pdf"], output=tmp_path).timings
    assert timings.seconds_by_document["quest_cbc"] >= 1
    assert "unreadable documents 100 %" in timings.format_timing_line(1.0)


def test_json_log_has_hashes_and_seconds_but_no_names(samples: Path, tmp_path: Path) -> None:
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


def test_text_and_json_log_lines_have_equal_fields(caplog: pytest.LogCaptureFixture) -> None:
    log_event(logging.getLogger("evalkit.x"), logging.WARNING, "read", document_sha256="0" * 64, seconds=1.5)
    (record,) = caplog.records
    record.exc_info = ValueError, ValueError("Jane Roe"), None
    told = json.loads(EventFormatter("json").format(record))
    assert (told["message"], told["document"], told["seconds"], told["error"]) == ("read", "0" * 12, 1.5, "ValueError")
    assert "Jane" not in json.dumps(told)
    record.exc_info = None
    assert EventFormatter("text").format(record) == "WARNING evalkit.x: read document=000000000000 seconds=1.5"
