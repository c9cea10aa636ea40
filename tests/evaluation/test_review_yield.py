"""What the experts' minutes gave, what the short form missed, and what short cases count for."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from evaluation.studies import GENOMIC, NOTE, OTHER, answer, document, escalated_document, labels, study, truth

from evalkit.evaluation.headline_estimates import estimate_headline, is_outside_random_draw, score_agent_type
from evalkit.evaluation.report import build_report, format_cell
from evalkit.evaluation.review_yield import measure_review_yield
from evalkit.evaluation.study import DocumentRecord, add_review_probabilities

AGENT = labels(NOTE, (1, 2, NOTE), (3, 5, OTHER))
MISSED = "of these with an error outside of the doubts, which the short form misses"
DOUBTS = frozenset({"boundary:3"})


def decided(doc_id: str, after: Any = AGENT, seconds: float = 60.0, **fields: Any) -> DocumentRecord:
    """An escalated document whose expert gave this answer."""
    is_short = fields.pop("is_short", False)
    outcome = "validated" if after == AGENT else "corrected"
    review = answer(
        doc_id, labels_before=AGENT, labels_after=after, outcome=outcome, active_seconds=seconds, is_short=is_short
    )
    return escalated_document(doc_id, agent_labels=AGENT, reviews=(review,), page_count=5, **fields)


def test_minutes_are_counted_for_each_error_found() -> None:
    wrong = labels(NOTE, (1, 2, NOTE), (3, 5, GENOMIC))
    documents = [decided(f"right_{number}") for number in range(6)] + [
        decided(f"wrong_{number}", wrong, seconds=180) for number in range(2)
    ]
    figures = measure_review_yield(study(*documents, document("accepted"), escalated_document("waiting")))
    assert (figures["escalated documents decided"], figures["of these with an error found"]) == (8, 2)
    assert figures["precision of escalation"].value == 0.25
    minutes = figures["experts' minutes per error found"]
    assert minutes.value == pytest.approx((6 + 6) / 2)
    assert minutes.low < 6 < minutes.high


def test_without_an_error_the_minutes_for_one_are_unknown() -> None:
    for documents in ([], [decided("right")], [decided("untimed", seconds=None)]):
        figures = measure_review_yield(study(*documents))
        minutes = figures["experts' minutes per error found"]
        assert (figures["of these with an error found"], minutes.value, minutes.high) == (0, None, math.inf)


def test_the_report_shows_minutes_and_no_percentage() -> None:
    segments = [(1, 2, NOTE), (3, 5, GENOMIC)]
    documents = (
        decided("right", truth=truth(NOTE, *AGENT.segments), page_risks=(0.1,) * 5),
        decided("wrong", labels(NOTE, *segments), truth=truth(NOTE, *segments), page_risks=(0.2,) * 5),
    )
    report = build_report(study(*documents), made_at="2026-01-01T00:00:00Z")
    tables = {table.caption: table.frame for section in report.sections for table in section.tables}
    cells = dict(tables["Yield of the experts' minutes"].itertuples(index=False, name=None))
    assert format_cell(cells["experts' minutes per error found"]) == "2 (1 or more)"


@pytest.mark.parametrize(
    ("after", "doubts", "is_missed"),
    [
        (AGENT, {"boundary:3"}, False),
        (labels(NOTE, (1, 5, NOTE)), {"boundary:3"}, False),
        (labels(NOTE, (1, 2, NOTE), (3, 5, GENOMIC)), {"boundary:3"}, True),
        (labels(NOTE, (1, 2, NOTE), (3, 5, GENOMIC)), {"segment:2"}, False),
        (labels(NOTE, (1, 2, NOTE), (3, 4, OTHER), (5, 5, OTHER)), {"boundary:3"}, True),
        (labels(NOTE, (1, 2, NOTE), (3, 4, OTHER), (5, 5, GENOMIC)), {"boundary:5"}, False),
        (labels(NOTE, (1, 2, GENOMIC), (3, 4, OTHER), (5, 5, GENOMIC)), {"boundary:5"}, True),
    ],
)
def test_an_error_outside_of_the_doubts_is_one_that_the_short_form_misses(
    after: Any, doubts: set[str], is_missed: bool
) -> None:
    figures = measure_review_yield(study(decided("a", after, doubtful_parts=frozenset(doubts))))
    assert (figures["drawn to be shown whole"], figures[MISSED].value) == (1, float(is_missed))


def test_short_cases_and_opened_ones_say_nothing_about_what_is_missed() -> None:
    short = decided("short", doubtful_parts=DOUBTS, asks_only_doubts=True, is_short=True)
    opened = decided("opened", doubtful_parts=DOUBTS, asks_only_doubts=True)
    figures = measure_review_yield(study(short, opened, decided("whole")))
    counts = ("asked only about the parts in doubt", "opened whole by their expert", "drawn to be shown whole")
    assert [figures[name] for name in counts] == [1, 1, 0]
    assert figures[MISSED].value is None


def planned(doc_id: str, *, is_right: bool | None, **fields: Any) -> DocumentRecord:
    known = {} if is_right is None else {"truth": truth(NOTE if is_right else OTHER)}
    cell = {"inclusion_probability": 0.1, "weighting_cell": ("shown whole", 0.1), "review_reason": "escalated"}
    return replace(escalated_document(doc_id, **known), doubtful_parts=DOUBTS, **cell, **fields)


def test_a_case_shown_whole_by_lot_stands_for_ten() -> None:
    whole = [planned(f"whole_{number}", is_right=number > 0) for number in range(4)]
    short = [planned(f"short_{number}", is_right=None, asks_only_doubts=True) for number in range(36)]
    documents = add_review_probabilities([*whole, *short])
    assert {one.review_probability for one in documents} == {0.1}
    estimate = estimate_headline("", "", documents, score_agent_type).archive_estimate
    assert estimate.value == pytest.approx(0.75)
    # What an expert opened by choice, or answered shortly, changes no estimate.
    opened = [replace(one, reviews=(answer(one.doc_id),)) for one in short]
    assert (
        estimate_headline("", "", add_review_probabilities([*whole, *opened]), score_agent_type).archive_estimate
        == estimate
    )


def test_short_cases_are_unknown_until_a_whole_one_is_answered() -> None:
    waiting = planned("whole", is_right=None)
    documents = add_review_probabilities([waiting, planned("short", is_right=None, asks_only_doubts=True)])
    assert all(map(is_outside_random_draw, documents))
    estimate = estimate_headline("", "", documents, score_agent_type).archive_estimate
    assert (estimate.value, estimate.low, estimate.high) == (None, 0, 1)
    half = add_review_probabilities([waiting, planned("answered", is_right=True), planned("short", is_right=None)])
    assert half[2].review_probability == pytest.approx(0.1 / 3)
