"""Counts of what is new in each run's documents, and the warnings that they give."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from builders import document, page
from places import open_folder

from evalkit.documents.identity.page_identity import find_patient_identifiers
from evalkit.errors import StoreError
from evalkit.pipeline.input_monitoring import (
    InputMonitor,
    MonitoredRun,
    StratumCounts,
    find_warned_strata,
    find_warnings,
    read_monitoring_record,
)
from evalkit.store import MONITORING_FILE, OutputFolder

STRATUM = "Other | inbox"
USUAL = "Green Valley Clinic\nThe patient was seen today for cough and fever."
UNUSUAL = "Zentrum Nordstadt\nBefund zeigt keinerlei pathologische Auffälligkeiten gemäß Absprache."


def run_over(output_folder: OutputFolder, *texts: str, is_escalated: bool = False) -> MonitoredRun:
    monitor = InputMonitor(output_folder, b"salt")
    for text in texts:
        monitor.add_document(document(text), STRATUM, is_escalated=is_escalated, is_audited=False)
    monitor.save("2026-03-01T00:00:00Z")
    return read_monitoring_record(output_folder).runs[-1]


def test_new_words_and_senders_are_counted(tmp_path: Path) -> None:
    output_folder = open_folder(tmp_path)
    first = run_over(output_folder, *[USUAL] * 50)
    assert "new_words" not in first.strata[STRATUM].sums  # nothing to compare with yet
    second = run_over(output_folder, USUAL, UNUSUAL)
    assert second.strata[STRATUM].sums["new_sender"] == 1
    assert 0.9 < second.strata[STRATUM].sums["new_words"] <= 1


def test_what_three_documents_had_is_known(tmp_path: Path) -> None:
    output_folder = open_folder(tmp_path)
    run_over(output_folder, *[USUAL] * 50)
    run_over(output_folder, *[UNUSUAL] * 3)
    known = run_over(output_folder, UNUSUAL)
    assert known.strata[STRATUM].sums["new_sender"] == known.strata[STRATUM].sums["new_words"] == 0


def test_the_file_has_no_word_of_a_document(tmp_path: Path) -> None:
    output_folder = open_folder(tmp_path)
    run_over(output_folder, *[USUAL] * 60, UNUSUAL)
    stored = json.dumps(output_folder.read_json(MONITORING_FILE)).casefold()
    assert not [word for word in f"{USUAL} {UNUSUAL}".casefold().split() if len(word) > 4 and word in stored]


def test_lines_about_a_patient_are_not_counted(tmp_path: Path) -> None:
    text = f"Patient: Jane Abernathy\nDOB: 03/04/1961\n{USUAL}"
    patient_page = page(1, text).model_copy(update={"identifiers": find_patient_identifiers(text, ())})
    output_folder = open_folder(tmp_path)
    monitor = InputMonitor(output_folder, b"salt")
    monitor.add_document(document(patient_page), STRATUM, is_escalated=False, is_audited=False)
    monitor.save("2026-03-01T00:00:00Z")
    clinic_only = InputMonitor(output_folder, b"salt")
    clinic_only.add_document(document("DOB\nGreen Valley Clinic"), STRATUM, is_escalated=False, is_audited=False)
    clinic_only.save("2026-03-02T00:00:00Z")
    counts = read_monitoring_record(output_folder).line_counts
    assert sorted(counts.values()) == [1, 2]  # the date's label and the clinic, but not the name


def test_a_run_without_new_documents_writes_nothing(tmp_path: Path) -> None:
    output_folder = open_folder(tmp_path)
    run_over(output_folder, USUAL)
    before = output_folder.read_bytes(MONITORING_FILE)
    InputMonitor(output_folder, b"salt").save("2026-03-02T00:00:00Z")
    assert output_folder.read_bytes(MONITORING_FILE) == before


@pytest.mark.parametrize("damage", ["not Base64!", "AAAA", "eJwDAAAAAAE="])
def test_damaged_counts_are_named(tmp_path: Path, damage: str) -> None:
    output_folder = open_folder(tmp_path)
    run_over(output_folder, USUAL)
    output_folder.write_json(MONITORING_FILE, output_folder.read_json(MONITORING_FILE) | {"word_counts": damage})
    with pytest.raises(StoreError, match=MONITORING_FILE):
        InputMonitor(output_folder, b"salt")


def build_runs(*shares: float, audits: int = 8) -> list[MonitoredRun]:
    """Runs of 200 documents with these shares of new words; each warns as the product would."""
    runs: list[MonitoredRun] = []
    for share in shares:
        counts = StratumCounts(documents=200, audits=audits, sums={"new_words": 200 * share})
        run = MonitoredRun(started_at="2026-03-01T00:00:00Z", strata={STRATUM: counts})
        runs.append(run.model_copy(update={"warnings": find_warnings(runs, run)}))
    return runs


def test_a_warning_costs_a_limited_number_of_audits():
    runs = build_runs(*[0.1] * 20, *[0.5] * 60, audits=20)
    warned = [position for position in range(1, len(runs) + 1) if find_warned_strata(runs[:position])]
    assert warned[0] in (21, 22)
    assert len(warned) <= 4  # 60 audits at 20 a run


def test_what_was_warned_about_is_usual_later():
    assert sum(bool(run.warnings) for run in build_runs(*[0.1] * 20, *[0.5] * 100)) == 1


def test_no_warning_in_usual_runs():
    assert not any(run.warnings for run in build_runs(*[0.1, 0.13, 0.08] * 40))
