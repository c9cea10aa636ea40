"""A brake and its release, from documents to the queue: run, reviews, run, release, run."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import evalkit_command
from pipeline.many import tiny_notes
from places import open_folder

from evalkit.pipeline import drift
from evalkit.pipeline.event_log import read_events
from evalkit.pipeline.input_monitoring import read_monitoring_record
from evalkit.review.case_files import read_packet
from evalkit.samples.simulated_experts import simulate_and_submit_reviews
from evalkit.store import packet_file_name

STRATUM = "Clinical Note | part0"


def run_and_review(folder: Path, output: Path, count: int, kind: str, rate: str) -> str:
    """Run over the first ``count`` notes, then answer the audits; ``kind`` is their true type."""
    told = evalkit_command("run", tiny_notes(folder, count), "--output", output, EVALKIT_AUDIT_RATE_START=rate)
    assert told.returncode == 0, told.stderr
    rows = [f"note_{number:05},{kind}" for number in range(count)]
    truth = output.parent / "truth.csv"
    truth.write_text("\n".join(["doc_id,dominant_type", *rows]), "utf-8")
    simulate_and_submit_reviews(open_folder(output), truth, error_rate=0, second_opinion_rate=0)
    return told.stderr


def count_audits(output: Path, first: int, last: int) -> int:
    folder = open_folder(output)
    names = [f"note_{number:05}" for number in range(first, last)]
    packets = [read_packet(folder, name) for name in names if folder.has_file(packet_file_name(name))]
    assert all(packet.review_reason == "audit" for packet in packets)
    return len(packets)


def test_errors_in_audits_brake_until_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # As with the shipped numbers, but after few documents.
    monkeypatch.setattr(drift, "_MIN_EARLIER_AUDITS", 10)
    monkeypatch.setattr(drift, "RUN_LENGTH", 5.0)
    folder, output = tmp_path / "inbox", tmp_path / "output"
    assert "Braked" not in run_and_review(folder, output, 12, "Clinical Note", "1")
    assert "Braked" not in run_and_review(folder, output, 18, "Other", "1")
    told = run_and_review(folder, output, 22, "Clinical Note", "0")
    assert "Braked: Clinical Note from part0: 6 of " in told
    assert count_audits(output, 18, 22) == 4
    assert [event.kind for event in read_events(open_folder(output))] == ["braked"]

    release = ("audit", "release", STRATUM, "--output", output, "--by", "dr_lee", "--reason", "form renewed")
    assert evalkit_command(*release).returncode == 0
    assert evalkit_command(*release).returncode == 2
    assert "Braked" not in run_and_review(folder, output, 25, "Clinical Note", "0")
    assert count_audits(output, 22, 25) == 0
    assert [event.kind for event in read_events(open_folder(output))] == ["braked", "released"]
    runs = read_monitoring_record(open_folder(output)).runs
    assert [run.strata[STRATUM].documents for run in runs] == [12, 6, 4, 3]
    assert [run.strata[STRATUM].audits for run in runs] == [12, 6, 4, 0]
