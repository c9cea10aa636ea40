"""Brakes: set by audits, kept in the log, released by a certificate or an analyst."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from evaluation.studies import NOTE, OTHER, answer, document, labels, study, truth
from places import open_folder

from evalkit.errors import UsageError
from evalkit.evaluation.drift_monitoring import (
    compute_stratum_drifts,
    describe_brake,
    describe_release,
    record_brake_changes,
    release_stratum,
)
from evalkit.evaluation.report import build_report
from evalkit.evaluation.study import DocumentRecord, Study
from evalkit.pipeline.event_log import read_events
from evalkit.pipeline.input_monitoring import MonitoredRun, StratumCounts
from evalkit.pipeline.strata import StratumKey

OLD = StratumKey(NOTE, "inbox", "local", "embedded", "00000001")
NEW = OLD._replace(versions="00000002")
NAME = "Clinical Note | inbox"
START = datetime(2026, 1, 1, tzinfo=UTC)
NOW = "2026-12-01T00:00:00Z"


def audited(number: int, kind: str | None = NOTE, **fields: object) -> DocumentRecord:
    """An accepted document, drawn for audit and answered blind with this type; None: not answered."""
    accepted_at = START + timedelta(hours=6 * number)
    given = {
        "decided_at": accepted_at.isoformat(),
        "run_started_at": accepted_at.isoformat(),
        "stratum": OLD,
        "review_reason": "audit",
        "risk": 0.01,
        "truth_status": "pending",
    }
    if kind is not None:
        review = answer(
            f"note{number:04}",
            kind,
            is_blind=True,
            submitted_at=(accepted_at + timedelta(days=1)).isoformat(),
            labels_after=labels(kind),
        )
        given |= {"truth": truth(kind, review_reason="audit"), "reviews": (review,), "truth_status": "reviewed"}
    return document(f"note{number:04}", **(given | fields))


def rising(count: int = 460, first: int = 0, **fields: object) -> list[DocumentRecord]:
    """Audits of which every 150th is wrong, and from the 400th on every eighth."""
    return [
        audited(number, OTHER if number % 150 == 99 or (number >= 400 and number % 8 == 1) else NOTE, **fields)
        for number in range(first, count)
    ]


def right_audits(first: int, count: int, **fields: object) -> list[DocumentRecord]:
    return [audited(number, review_probability=1.0, **fields) for number in range(first, first + count)]


def brake(tmp_path: Path, *documents: DocumentRecord) -> Study:
    return record_brake_changes(open_folder(tmp_path), study(*documents), NOW)


def test_a_rising_error_rate_brakes(tmp_path: Path) -> None:
    braked = brake(tmp_path, *rising())
    (event,) = braked.events
    assert (event.kind, event.stratum, event.recorded_by) == ("braked", NAME, "evalkit")
    assert event.facts["level"] >= 1
    assert event.facts["wrong_count"] == 9
    assert read_events(open_folder(tmp_path)) == list(braked.events)
    assert describe_brake(event).startswith("Braked: Clinical Note from inbox: 9 of ")


def test_a_braked_stratum_is_not_braked_again(tmp_path: Path) -> None:
    braked = brake(tmp_path, *rising())
    assert len(record_brake_changes(open_folder(tmp_path), braked, NOW).events) == 1


def test_usual_errors_brake_nothing(tmp_path: Path) -> None:
    assert not brake(tmp_path, *rising(400)).events


def test_the_new_version_is_compared_with_the_old(tmp_path: Path) -> None:
    assert brake(tmp_path, *rising(400), *rising(460, 400, stratum=NEW)).events


def test_other_sources_do_not_brake_each_other(tmp_path: Path) -> None:
    other_source = OLD._replace(source="outbox")
    documents = [
        replace(record, stratum=other_source) if number % 2 else record for number, record in enumerate(rising())
    ]
    drifts = compute_stratum_drifts(study(*documents))
    assert [drift.stratum for drift in drifts] == [NAME, "Clinical Note | outbox"]
    assert drifts[0].wrong_count == 0


def test_answers_given_before_the_decision_do_not_count() -> None:
    early = [replace(record, decided_at="2026-12-01T00:00:00+00:00") for record in rising()]
    assert compute_stratum_drifts(study(*early)) == []


def test_the_order_of_the_study_does_not_matter() -> None:
    documents = rising()
    assert compute_stratum_drifts(study(*documents)) == compute_stratum_drifts(study(*reversed(documents)))


def test_unanswered_audits_brake_nothing(tmp_path: Path) -> None:
    assert not brake(tmp_path, *rising(400), *(audited(number, None) for number in range(400, 460))).events


def test_a_certificate_of_later_documents_releases(tmp_path: Path) -> None:
    braked = record_brake_changes(
        open_folder(tmp_path), study(*rising()), (START + timedelta(hours=6 * 459)).isoformat()
    )
    waiting = replace(braked, documents=(*braked.documents, *right_audits(460, 100)))
    assert len(record_brake_changes(open_folder(tmp_path), waiting, NOW).events) == 1
    proven = replace(braked, documents=(*braked.documents, *right_audits(460, 600)))
    released = record_brake_changes(open_folder(tmp_path), proven, NOW)
    assert [event.kind for event in released.events] == ["braked", "released"]
    assert released.events[1].facts["certified_stratum"] == OLD.name
    assert len(record_brake_changes(open_folder(tmp_path), released, NOW).events) == 2


def test_an_analyst_releases_with_name_and_reason(tmp_path: Path) -> None:
    braked = brake(tmp_path, *rising())
    event = release_stratum(
        open_folder(tmp_path), braked.events, NAME, reason="new form", released_by="dr_lee", now=NOW
    )
    assert describe_release(event) == "Released by dr_lee: Clinical Note from inbox. new form"
    after = replace(braked, events=tuple(read_events(open_folder(tmp_path))))
    assert len(record_brake_changes(open_folder(tmp_path), after, NOW).events) == 2


@pytest.mark.parametrize(
    ("stratum", "by", "reason"), [("Other | inbox", "dr_lee", "why"), (NAME, " ", "why"), (NAME, "dr_lee", " ")]
)
def test_a_release_needs_stratum_name_and_reason(tmp_path: Path, stratum: str, by: str, reason: str) -> None:
    braked = brake(tmp_path, *rising())
    with pytest.raises(UsageError):
        release_stratum(open_folder(tmp_path), braked.events, stratum, reason=reason, released_by=by, now=NOW)
    assert len(read_events(open_folder(tmp_path))) == 1


def test_a_warning_makes_a_change_more_likely() -> None:
    documents = rising(430)
    run = MonitoredRun(
        started_at=documents[400].run_started_at,
        strata={NAME: StratumCounts(documents=30)},
        warnings={NAME: {"new_words": 1}},
    )
    (plain,), (warned,) = (compute_stratum_drifts(study(*documents), runs) for runs in ((), (run,)))
    assert warned.level > 2 * plain.level
    assert warned.facts["start_weight"] == 301
    assert warned.facts["since"] == documents[400].decided_at


def test_the_report_shows_detector_and_brakes(tmp_path: Path) -> None:
    braked = replace(brake(tmp_path, *rising()), output=tmp_path)
    section = build_report(braked, made_at=NOW)["drift"]
    by_stratum, changes = (table.frame for table in section.tables)
    assert by_stratum["braked"].tolist() == [True]
    assert changes[["event", "documents"]].to_numpy().tolist() == [["braked", "Clinical Note from inbox"]]
    assert len(section.figures) == 1
    build_report(braked, made_at=NOW).write_html(tmp_path / "report.html")
    assert "Drift and brakes" in (tmp_path / "report.html").read_text("utf-8")
