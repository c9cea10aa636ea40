"""How well risks rank what is wrong."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.evaluation.error_ranking import (
    PAGE_SHARES,
    RankedDocument,
    mark_page_errors,
    rank_errors,
)

_documents = st.lists(
    st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=6).map(
        lambda pages: RankedDocument([risk for risk, _ in pages], [is_wrong for _, is_wrong in pages])
    ),
    min_size=1,
    max_size=8,
)


def test_pages_without_a_type_are_wrong():
    assert mark_page_errors([(1, 2, "Other")], [(1, 2, None)], 2) == [True, True]


def test_perfect_ranking_is_as_good_as_possible():
    documents = [RankedDocument([0.9], [True])] * 3 + [RankedDocument([0.1], [False])] * 27
    ranking = rank_errors(documents)
    assert ranking.auroc == 1
    assert [caught.caught_share for caught in ranking.caught_errors] == [
        caught.best_possible_share for caught in ranking.caught_errors
    ]
    assert [caught.caught_share for caught in ranking.caught_errors] == pytest.approx([0.5, 1, 1])


def test_equal_risks_tell_nothing():
    ranking = rank_errors([RankedDocument([0.5, 0.5], [True, False]), RankedDocument([0.5, 0.5], [False, False])])
    assert ranking.auroc == 0.5
    assert [caught.caught_share for caught in ranking.caught_errors] == pytest.approx(PAGE_SHARES)


def test_document_counts_as_often_as_it_stands_for():
    wrong, right = RankedDocument([0.9], [True]), RankedDocument([0.1], [False], sampling_weight=9)
    (_, caught, _) = rank_errors([wrong, right]).caught_errors
    assert (caught.page_share, caught.caught_share) == (0.1, pytest.approx(1))


def test_nothing_wrong_is_no_ranking():
    ranking = rank_errors([RankedDocument([0.2], [False])])
    assert math.isnan(ranking.auroc)
    assert not ranking.caught_errors


@given(_documents)
def test_more_pages_catch_no_less_and_never_beat_the_best(documents):
    shares = [(caught.caught_share, caught.best_possible_share) for caught in rank_errors(documents).caught_errors]
    assert shares == sorted(shares)
    assert all(share <= best + 1e-9 for share, best in shares)
