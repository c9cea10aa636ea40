"""Risks of pages, and how well they rank what is wrong."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.classification.v2_consistency import DOUBTS_KEY
from evalkit.evaluation.error_ranking import (
    PAGE_SHARES,
    RankedDocument,
    compute_page_risks,
    find_page_errors,
    rank_errors,
)

_documents = st.lists(
    st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=6).map(
        lambda pages: RankedDocument([risk for risk, _ in pages], [is_wrong for _, is_wrong in pages])
    ),
    min_size=1,
    max_size=8,
)


def build_answer(*segments: tuple[int, int, float], doubts: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    return {
        "segments": [
            {
                "segment_index": index,
                "start_page": start,
                "end_page": end,
                "dominant_type": "Other",
                "segment_composition": [{"document_type": "Other", "confidence": confidence}],
            }
            for index, (start, end, confidence) in enumerate(segments, 1)
        ],
        "self_evaluation": {DOUBTS_KEY: doubts or []},
    }


def build_issue(severity: str, **fields: Any) -> dict[str, Any]:
    return {"severity": severity, "status": "open", "segment_index": None, "page": None} | fields


def test_risk_is_what_certainty_leaves():
    assert compute_page_risks(build_answer((1, 2, 0.9), (3, 3, 0.6)), [], 3) == pytest.approx([0.1, 0.1, 0.4])


def test_pages_of_no_segment_are_at_full_risk():
    assert compute_page_risks(build_answer((1, 1, 1.0)), [], 2) == pytest.approx([0, 1])
    assert compute_page_risks(None, [], 2) == [1, 1]


def test_doubt_about_a_seam_raises_its_page_only():
    doubts = [{"page": 2, "begins": 0.4}, {"page": 3, "begins": 0.7}]
    risks = compute_page_risks(build_answer((1, 2, 1.0), (3, 4, 1.0), doubts=doubts), [], 4)
    assert risks == pytest.approx([0, 0.4, 0.3, 0])


@pytest.mark.parametrize(
    ("issue", "raised"),
    [
        (build_issue("MAJOR", page=2), {2}),
        (build_issue("MAJOR", segment_index=2, page=3), {3, 4}),
        (build_issue("BLOCKER"), {1, 2, 3, 4}),
        (build_issue("BLOCKER", segment_index=7), set()),
        (build_issue("BLOCKER", status="repaired"), set()),
    ],
)
def test_open_issue_raises_the_pages_it_is_about(issue, raised):
    risks = compute_page_risks(build_answer((1, 2, 1.0), (3, 4, 1.0)), [issue], 4)
    assert {page for page, risk in enumerate(risks, 1) if risk > 0.5} == raised


def test_pages_without_a_type_are_wrong():
    assert find_page_errors([(1, 2, "Other")], [(1, 2, None)], 2) == [True, True]


def test_perfect_ranking_is_as_good_as_possible():
    documents = [RankedDocument([0.9], [True])] * 3 + [RankedDocument([0.1], [False])] * 27
    ranking = rank_errors(documents)
    assert ranking.auroc == 1
    assert [caught.caught_share for caught in ranking.caught] == [
        caught.best_possible_share for caught in ranking.caught
    ]
    assert [caught.caught_share for caught in ranking.caught] == pytest.approx([0.5, 1, 1])


def test_equal_risks_tell_nothing():
    ranking = rank_errors([RankedDocument([0.5, 0.5], [True, False]), RankedDocument([0.5, 0.5], [False, False])])
    assert ranking.auroc == 0.5
    assert [caught.caught_share for caught in ranking.caught] == pytest.approx(PAGE_SHARES)


def test_document_counts_as_often_as_it_stands_for():
    wrong, right = RankedDocument([0.9], [True]), RankedDocument([0.1], [False], sampling_weight=9)
    (_, caught, _) = rank_errors([wrong, right]).caught
    assert (caught.page_share, caught.caught_share) == (0.1, pytest.approx(1))


def test_nothing_wrong_is_no_ranking():
    ranking = rank_errors([RankedDocument([0.2], [False])])
    assert math.isnan(ranking.auroc) and not ranking.caught


@given(_documents)
def test_more_pages_catch_no_less_and_never_beat_the_best(documents):
    shares = [(caught.caught_share, caught.best_possible_share) for caught in rank_errors(documents).caught]
    assert shares == sorted(shares)
    assert all(share <= best + 1e-9 for share, best in shares)
