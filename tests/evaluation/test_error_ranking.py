"""How well risks rank what is wrong."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.evaluation.error_ranking import (
    PAGE_SHARES,
    RankedDocument,
    mark_page_errors,
    rank_errors,
)


def ranked(page_risks: list[float], page_errors: list[bool], sampling_weight: float = 1.0) -> RankedDocument:
    """A document of one segment, which is as doubtful as its worst page."""
    return RankedDocument(max(page_risks), page_risks, page_errors, sampling_weight)


_documents = st.lists(
    st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=6).map(
        lambda pages: ranked([risk for risk, _ in pages], [is_wrong for _, is_wrong in pages])
    ),
    min_size=1,
    max_size=8,
)


def test_pages_without_a_type_are_wrong():
    assert mark_page_errors([(1, 2, "Other")], [(1, 2, None)], 2) == [True, True]


def test_perfect_ranking_is_as_good_as_possible():
    documents = [ranked([0.9], [True])] * 3 + [ranked([0.1], [False])] * 27
    ranking = rank_errors(documents)
    assert ranking.auroc.value == 1
    assert [caught.caught_share.value for caught in ranking.caught_errors] == [
        caught.best_possible_share for caught in ranking.caught_errors
    ]
    assert [caught.caught_share.value for caught in ranking.caught_errors] == pytest.approx([0.5, 1, 1])


def test_equal_risks_tell_nothing():
    ranking = rank_errors([ranked([0.5, 0.5], [True, False]), ranked([0.5, 0.5], [False, False])])
    assert ranking.auroc.value == 0.5
    assert [caught.caught_share.value for caught in ranking.caught_errors] == pytest.approx(PAGE_SHARES)


def test_document_counts_as_often_as_it_stands_for():
    wrong, right = ranked([0.9], [True]), ranked([0.1], [False], sampling_weight=9)
    (_, caught, _) = rank_errors([wrong, right]).caught_errors
    assert (caught.page_share, caught.caught_share.value) == (0.1, pytest.approx(1))


def test_nothing_wrong_is_no_ranking():
    ranking = rank_errors([ranked([0.2], [False])])
    assert ranking.auroc.value is None
    assert not ranking.caught_errors


@settings(max_examples=25)
@given(_documents)
def test_more_pages_catch_no_less_and_never_beat_the_best(documents):
    shares = [
        (caught.caught_share.value, caught.best_possible_share) for caught in rank_errors(documents).caught_errors
    ]
    assert shares == sorted(shares)
    assert all(share <= best + 1e-9 for share, best in shares)
