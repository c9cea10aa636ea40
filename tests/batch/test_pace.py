"""What of a run was slow is measured, and its log tells programs who it was about without telling who that is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from documents.drawing import lines
from documents.scanning import NOTE, needs_tesseract, printed, scan

import evalkit
from evalkit.batch.pace import STEPS, pace
from evalkit.errors import NotFound
from evalkit.review.stored import read_bundle, read_result
from evalkit.store import Files


def _evalkit(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "evalkit", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@needs_tesseract
def test_a_run_over_scans_was_slow_because_of_recognising(samples: Path, tmp_path: Path) -> None:
    (tmp_path / "scan.pdf").write_bytes(scan(*[printed(lines(NOTE + NOTE + NOTE))] * 3))
    evalkit.run([tmp_path / "scan.pdf", samples / "quest_cbc.pdf"], output=tmp_path / "output", workers=2)
    found = pace(tmp_path / "output")
    assert found.documents == 2
    assert found.slowest[0].doc_id == "scan"
    assert found.slowest[0].step == "recognising"
    assert any("pages that are pictures" in why for why, _ in found.reasons)
    assert 0 < found.slowest[0].seconds <= found.seconds
    told = json.loads(_evalkit("doctor", "--run", tmp_path / "output", "--json").stdout)
    assert told["steps"].keys() == STEPS.keys()
    assert "recognising" in _evalkit("doctor", "--run", tmp_path / "output").stdout


def test_only_the_last_run_is_told_of(samples: Path, tmp_path: Path) -> None:
    evalkit.run([samples / "quest_cbc.pdf"], output=tmp_path)
    evalkit.run([samples / "quest_cbc.pdf", samples / "requisition.pdf"], output=tmp_path)
    found = pace(tmp_path)
    assert [one.doc_id for one in found.slowest] == ["requisition"]
    seconds = read_result(Files(tmp_path), "requisition").times["seconds"]
    assert seconds.keys() == STEPS.keys()
    assert all(took >= 0 for took in seconds.values())


def test_a_folder_without_times_says_so(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="has left its times"):
        pace(tmp_path)
    assert _evalkit("doctor", "--run", tmp_path).returncode == 2


def test_json_lines_have_hashes_steps_and_seconds_and_no_names_or_words(samples: Path, tmp_path: Path) -> None:
    folder = tmp_path / "Zacharias_Quillfeather"
    folder.mkdir()
    (folder / "Zacharias_Quillfeather.pdf").write_bytes((samples / "quest_cbc.pdf").read_bytes())
    (folder / "broken_Quillfeather.pdf").write_bytes(b"%PDF-1.4 and nothing else")
    options = ("--verbose", "--log-format", "json")
    ended = _evalkit(*options, "run", folder, "--output", tmp_path / "output", "--json")
    told = [json.loads(line) for line in ended.stderr.splitlines() if line.startswith("{")]
    sha256 = read_result(Files(tmp_path / "output"), "Zacharias_Quillfeather").sha256
    by_step = {one["message"]: one for one in told if one.get("document") == sha256[:12]}
    assert by_step.keys() >= {"read", "decided"}
    assert by_step["read"]["reading"] > 0
    assert by_step["read"]["pages"] == 2
    assert all(one.keys() >= {"at", "level", "logger", "message"} for one in told)
    bundle = read_bundle(Files(tmp_path / "output"), "Zacharias_Quillfeather")
    words = {word for page in bundle.pages for word in page.text.split() if len(word) > 6 and word.isalpha()}
    logged = "\n".join(line for line in ended.stderr.splitlines() if line.startswith("{"))
    assert not [word for word in {*words, "Quillfeather"} if word in logged]


def test_the_setting_says_how_the_log_is_written(
    samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALKIT_LOG_FORMAT", "json")
    ended = _evalkit("--verbose", "run", samples / "quest_cbc.pdf", "--output", tmp_path)
    assert any(line.startswith("{") and json.loads(line)["message"] == "decided" for line in ended.stderr.splitlines())
    monkeypatch.setenv("EVALKIT_LOG_FORMAT", "text")
    ended = _evalkit("--verbose", "run", samples / "quest_cbc.pdf", "--output", tmp_path, "--fresh")
    assert any("evalkit.batch.runner: decided document=" in line for line in ended.stderr.splitlines())
