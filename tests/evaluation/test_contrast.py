"""Two answers over all documents: by hand, mirrored, and covering the truth although the reviewed ones are the hard ones."""

from __future__ import annotations

import numpy as np
import pytest
from evaluation.studies import GENOMIC, NOTE, OTHER, document, escalated, labels, study, truth
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multinomial

from evalkit.evaluation.comparison import compare
from evalkit.evaluation.contrast import Case, overall, paired
from evalkit.evaluation.intervals import exact


def ends(only_a: float, only_b: float, n: float) -> tuple[float, float, float]:
    """Value, low and high of B − A, each share with its exact interval."""
    a, b = exact(only_a, n), exact(only_b, n)
    return b.value - a.value, b.low - a.high, b.high - a.low


def met(right_a: bool, right_b: bool, probability: float = 1.0, *, same: bool | None = None) -> Case:
    """A document that was looked at."""
    return Case((right_a, right_b), right_a == right_b if same is None else same, probability, was_looked_at=True)


def unseen(probability: float | None = 0.2, *, same: bool = False) -> Case:
    return Case(None, same, probability, was_looked_at=False)


def test_documents_stand_for_as_many_as_they_were_drawn_from() -> None:
    """Ten certain ones; of forty others ten were drawn, one in four: B is right in six of these, A in five."""
    cases = [met(True, False)] * 4 + [met(True, True)] * 6
    cases += [met(False, True, 0.25)] * 4 + [met(True, False, 0.25)] * 3
    cases += [met(True, True, 0.25)] * 2 + [met(False, False, 0.25, same=False)]
    cases += [unseen(0.25, same=True)] * 6 + [unseen(0.25)] * 24
    found = overall(cases)
    assert (found.population, found.documents) == (50, 20)
    assert found.a.value == pytest.approx((10 + 40 * 5 / 10) / 50, abs=1e-9)
    assert found.b.value == pytest.approx((6 + 40 * 6 / 10) / 50, abs=1e-9)
    # Where both say the same, nothing has to be estimated: 32 of the 40 differ, and one of the eight that were drawn is won.
    assert found.difference[:3] == pytest.approx([(-4 + 32 * one) / 50 for one in ends(3, 4, 8)], abs=1e-9)


def test_unequal_weights_count_as_few_as_the_heaviest() -> None:
    cases = [met(False, True, 0.5)] * 4 + [met(True, False, 0.1)] + [unseen()] * 13
    found = overall(cases).difference
    assert found[:3] == pytest.approx(ends(1, 0.8, 1.8), abs=1e-9)


def test_what_is_certain_and_missing_may_be_for_either() -> None:
    known = [met(False, True)] * 3
    pending = Case(None, is_same=False, probability=1.0, was_looked_at=False)
    found = overall([*known, pending, pending._replace(is_same=True)])
    assert found.difference[:3] == pytest.approx((3 / 5, 2 / 5, 4 / 5))
    assert (found.a.low, found.a.high) == pytest.approx((0, 2 / 5))
    assert found.documents == 3


def test_what_was_drawn_and_cannot_be_told_may_be_for_either() -> None:
    known = [met(False, True, 0.5), met(True, False, 0.5)] * 10
    lost = Case(None, is_same=False, probability=0.5, was_looked_at=True)
    without, found = overall([*known, *[unseen()] * 4]).difference, overall([*known, *[lost] * 4]).difference
    assert found.value == without.value == 0
    assert found.low == pytest.approx(ends(14, 10, 24)[1])
    assert found.high == pytest.approx(ends(10, 14, 24)[2])


@pytest.mark.parametrize(
    ("cases", "difference"),
    [
        ([], (None, -1.0, 1.0)),
        ([unseen(same=True)] * 3, (0.0, 0.0, 0.0)),
        ([unseen()] * 3 + [met(True, True)], (None, -0.75, 0.75)),
        ([unseen(None)], (None, -1.0, 1.0)),
        ([Case(None, False, 1.0, False)], (None, -1.0, 1.0)),
        ([Case(None, False, 0.5, True)] * 2 + [met(False, True)], (None, None, None)),
    ],
)
def test_nothing_is_said_of_what_nobody_looked_at(cases: list[Case], difference: tuple) -> None:
    found = overall(cases).difference
    assert found.value == difference[0]
    if difference[1] is not None:
        assert found[1:3] == difference[1:]
    assert -1 <= found.low <= found.high <= 1


case = st.builds(
    Case,
    st.none() | st.tuples(st.booleans(), st.booleans()),
    st.just(False),
    st.sampled_from([0.05, 0.2, 0.5, 1.0, None]),
    st.booleans(),
)


@given(st.lists(case, max_size=30))
def test_exchanging_the_runs_mirrors_the_estimates(cases: list[Case]) -> None:
    one, other = overall(cases), overall([each._replace(right=each.right and each.right[::-1]) for each in cases])
    assert (one.a, one.b, one.population, one.documents) == (other.b, other.a, other.population, other.documents)
    assert one.difference.low == pytest.approx(-other.difference.high, abs=1e-9)
    assert (one.difference.value is None) == (other.difference.value is None)
    assert -1 - 1e-9 <= one.difference.low <= one.difference.high <= 1 + 1e-9
    if one.difference.value is not None:
        assert one.difference.low - 1e-9 <= one.difference.value <= one.difference.high + 1e-9
        assert one.difference.value == pytest.approx(-other.difference.value, abs=1e-9)


@pytest.mark.parametrize("n", [1, 2, 4, 8, 12])
@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.45, 0.55), (0.3, 0.7), (0.2, 0.2), (0.02, 0.3), (0.0, 0.1)])
def test_the_interval_of_few_drawn_documents_covers_the_truth(n: int, shares: tuple[float, float]) -> None:
    """Summed exactly over all outcomes."""
    covered, truly = 0.0, shares[1] - shares[0]
    for a in range(n + 1):
        for b in range(n + 1 - a):
            fates = [(True, False)] * a + [(False, True)] * b + [(False, False)] * (n - a - b)
            found = overall([met(*one, 0.5, same=False) for one in fates]).difference
            if found.low - 1e-12 <= truly <= found.high + 1e-12:
                covered += multinomial.pmf([a, b, n - a - b], n, [*shares, max(1 - sum(shares), 0.0)])
    assert covered >= 0.95


@pytest.mark.parametrize(("won", "lost"), [(0.08, 0.02), (0.03, 0.03), (0.15, 0.01)])
def test_the_interval_covers_the_truth_where_the_reviewed_ones_do_not_tell_it(won: float, lost: float) -> None:
    """600 documents of which A escalates what it gets wrong; one in five of the others is drawn. 300 draws."""
    random = np.random.default_rng(7)
    fate = random.choice(3, size=600, p=[1 - won - lost, won, lost])
    rights = [(True, True), (False, True), (True, False)]
    escalates = (fate == 1) & (random.random(600) < 0.8) | (random.random(600) < 0.1)
    true = ((fate == 1).sum() - (fate == 2).sum()) / 600
    weighted = plain = 0
    for _ in range(300):
        drawn = random.random(600) < 0.2
        cases = [
            met(*rights[what], 1.0 if hard else 0.2) if hard or seen else unseen(same=what == 0)
            for what, hard, seen in zip(fate, escalates, drawn, strict=True)
        ]
        found = overall(cases).difference
        weighted += found.low - 1e-12 <= true <= found.high + 1e-12
        alone = paired([one.right for one in cases if one.right]).difference
        plain += alone.low <= true <= alone.high
    assert weighted / 300 >= 0.94
    assert plain / 300 < 0.5 or won == lost


def test_two_runs_are_compared_over_all_their_documents() -> None:
    """A wins the case that it escalated; B the audit, which stands for four. Only A has reviews, and its draws count."""
    drawn = [document(f"unseen{i}", probability=0.25) for i in range(3)]
    a = study(
        escalated("hard", truth=truth(), agent=labels(NOTE)),
        document("audit", truth=truth(GENOMIC, review_reason="audit"), probability=0.25),
        *drawn,
    )
    b = study(
        escalated("hard", agent=labels(OTHER)),
        document("audit", agent=labels(GENOMIC), probability=0.2),
        *(document(one.doc_id, agent=labels(GENOMIC)) for one in drawn),
    )
    made = compare(a, b)
    assert (made.type.only_a, made.type.only_b, made.type.difference.value) == (1, 1, 0)
    found = made.overall["type"]
    assert (made.drawn_by, found.population, found.documents) == ("A", 5, 2)
    assert (found.a.value, found.b.value, found.difference.value) == pytest.approx((1 / 5, 4 / 5, 3 / 5))
    mirrored = compare(b, a)
    assert mirrored.drawn_by == "B"
    assert mirrored.overall["type"].difference.value == pytest.approx(-3 / 5)
    told = made.to_json()["overall"]["type"]
    assert (told["population"], told["difference"]["value"]) == (5, pytest.approx(3 / 5))


def test_given_labels_make_a_document_certain() -> None:
    gold = truth(GENOMIC, source="GOLD")
    made = compare(study(document("a", truth=gold, probability=0.2)), study(document("a", agent=labels(GENOMIC))))
    assert made.overall["type"].difference[:3] == (1.0, 1.0, 1.0)


def test_equal_answers_need_no_look() -> None:
    some = study(*(document(f"d{i}") for i in range(3)), escalated("e"), document("n", agent=None))
    found = compare(some, some)
    for one in found.overall.values():
        assert one.difference[:3] == (0.0, 0.0, 0.0)
        assert one.a.value is None


def test_both_readings_of_segments() -> None:
    """B cut one note in two: wrong as given, right with neighbours of one type merged."""
    a = study(escalated("a", truth=truth(NOTE)))
    b = study(escalated("a", agent=labels(NOTE, (1, 1, NOTE), (2, 2, NOTE))))
    made = compare(a, b)
    assert (made.segments.only_a, made.segments_merged.both) == (1, 1)
    assert [made.overall[level].difference.value for level in ("segments", "segments merged")] == [-1, 0]
    (told,) = made.documents.to_dict("records")
    assert (told["segments_right_b"], told["segments_merged_right_b"]) == (False, True)


def test_truths_that_differ_in_the_first_reading_alone_are_one_truth_in_the_second() -> None:
    cut = ((1, 1, NOTE), (2, 2, NOTE))
    made = compare(study(escalated("a", truth=truth(NOTE))), study(escalated("a", truth=truth(NOTE, *cut))))
    assert made.disputed == ("a",)
    assert (made.segments.documents, made.segments_merged.both) == (0, 1)
