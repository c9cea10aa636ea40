"""Two answers over all documents: by hand, mirrored, and covering the truth although the reviewed ones are the hard ones."""

from __future__ import annotations

import numpy as np
import pytest
from evaluation.studies import GENOMIC, NOTE, OTHER, document, escalated_document, labels, study, truth
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multinomial

from evalkit.evaluation.intervals import estimate_proportion
from evalkit.evaluation.run_comparison import (
    PairedDocument,
    compare_overall_accuracy,
    compare_paired_accuracy,
    compare_studies,
)


def ends(only_a: float, only_b: float, n: float) -> tuple[float, float, float]:
    """Value, low and high of B − A, each share with its exact interval."""
    a, b = estimate_proportion(only_a, n), estimate_proportion(only_b, n)
    return b.value - a.value, b.low - a.high, b.high - a.low


def met(right_a: bool, right_b: bool, probability: float = 1.0, *, same: bool | None = None) -> PairedDocument:
    """A document that was looked at."""
    return PairedDocument(
        (right_a, right_b), right_a == right_b if same is None else same, probability, has_expert_action=True
    )


def unseen(probability: float | None = 0.2, *, same: bool = False) -> PairedDocument:
    return PairedDocument(None, same, probability, has_expert_action=False)


def test_documents_stand_for_as_many_as_they_were_drawn_from() -> None:
    """Ten certain ones; of forty others ten were drawn, one in four: B is right in six of these, A in five."""
    cases = [met(True, False)] * 4 + [met(True, True)] * 6
    cases += [met(False, True, 0.25)] * 4 + [met(True, False, 0.25)] * 3
    cases += [met(True, True, 0.25)] * 2 + [met(False, False, 0.25, same=False)]
    cases += [unseen(0.25, same=True)] * 6 + [unseen(0.25)] * 24
    found = compare_overall_accuracy(cases)
    assert (found.population_size, found.observed_count) == (50, 20)
    assert found.accuracy_a.value == pytest.approx((10 + 40 * 5 / 10) / 50, abs=1e-9)
    assert found.accuracy_b.value == pytest.approx((6 + 40 * 6 / 10) / 50, abs=1e-9)
    # Where both say the same, nothing has to be estimated: 32 of the 40 differ, and one of the eight that were drawn is won.
    assert found.difference[:3] == pytest.approx([(-4 + 32 * one) / 50 for one in ends(3, 4, 8)], abs=1e-9)


def test_unequal_weights_count_as_few_as_the_heaviest() -> None:
    cases = [met(False, True, 0.5)] * 4 + [met(True, False, 0.1)] + [unseen()] * 13
    found = compare_overall_accuracy(cases).difference
    assert found[:3] == pytest.approx(ends(1, 0.8, 1.8), abs=1e-9)


def test_what_is_certain_and_missing_may_be_for_either() -> None:
    known = [met(False, True)] * 3
    pending = PairedDocument(None, is_same_answer=False, review_probability=1.0, has_expert_action=False)
    found = compare_overall_accuracy([*known, pending, pending._replace(is_same_answer=True)])
    assert found.difference[:3] == pytest.approx((3 / 5, 2 / 5, 4 / 5))
    assert (found.accuracy_a.low, found.accuracy_a.high) == pytest.approx((0, 2 / 5))
    assert found.observed_count == 3


def test_what_was_drawn_and_cannot_be_told_may_be_for_either() -> None:
    known = [met(False, True, 0.5), met(True, False, 0.5)] * 10
    lost = PairedDocument(None, is_same_answer=False, review_probability=0.5, has_expert_action=True)
    without, found = (
        compare_overall_accuracy([*known, *[unseen()] * 4]).difference,
        compare_overall_accuracy([*known, *[lost] * 4]).difference,
    )
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
        ([PairedDocument(None, False, 1.0, False)], (None, -1.0, 1.0)),
        ([PairedDocument(None, False, 0.5, True)] * 2 + [met(False, True)], (None, None, None)),
    ],
)
def test_nothing_is_said_of_what_nobody_looked_at(cases: list[PairedDocument], difference: tuple) -> None:
    found = compare_overall_accuracy(cases).difference
    assert found.value == difference[0]
    if difference[1] is not None:
        assert found[1:3] == difference[1:]
    assert -1 <= found.low <= found.high <= 1


case = st.builds(
    PairedDocument,
    st.none() | st.tuples(st.booleans(), st.booleans()),
    st.just(False),
    st.sampled_from([0.05, 0.2, 0.5, 1.0, None]),
    st.booleans(),
)


@given(st.lists(case, max_size=30))
def test_exchanging_the_runs_mirrors_the_estimates(cases: list[PairedDocument]) -> None:
    one, other = (
        compare_overall_accuracy(cases),
        compare_overall_accuracy(
            [each._replace(correctness=each.correctness and each.correctness[::-1]) for each in cases]
        ),
    )
    assert (one.accuracy_a, one.accuracy_b, one.population_size, one.observed_count) == (
        other.accuracy_b,
        other.accuracy_a,
        other.population_size,
        other.observed_count,
    )
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
            found = compare_overall_accuracy([met(*one, 0.5, same=False) for one in fates]).difference
            if found.low - 1e-12 <= truly <= found.high + 1e-12:
                covered += multinomial.pmf([a, b, n - a - b], n, [*shares, max(1 - sum(shares), 0.0)])
    assert covered >= 0.95


@pytest.mark.parametrize(("won", "lost"), [(0.08, 0.02), (0.03, 0.03), (0.15, 0.01)])
def test_paired_interval_covers_truth_despite_biased_review(won: float, lost: float) -> None:
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
        found = compare_overall_accuracy(cases).difference
        weighted += found.low - 1e-12 <= true <= found.high + 1e-12
        alone = compare_paired_accuracy([one.correctness for one in cases if one.correctness]).difference
        plain += alone.low <= true <= alone.high
    assert weighted / 300 >= 0.94
    assert plain / 300 < 0.5 or won == lost


def test_two_runs_are_compared_over_all_their_documents() -> None:
    """A wins the case that it escalated; B the audit, which stands for four. Only A has reviews, and its draws count."""
    drawn = [document(f"unseen{i}", review_probability=0.25) for i in range(3)]
    a = study(
        escalated_document("hard", truth=truth(), agent_labels=labels(NOTE)),
        document("audit", truth=truth(GENOMIC, review_reason="audit"), review_probability=0.25),
        *drawn,
    )
    b = study(
        escalated_document("hard", agent_labels=labels(OTHER)),
        document("audit", agent_labels=labels(GENOMIC), review_probability=0.2),
        *(document(one.doc_id, agent_labels=labels(GENOMIC)) for one in drawn),
    )
    made = compare_studies(a, b)
    assert (made.type_accuracy.only_a_right, made.type_accuracy.only_b_right, made.type_accuracy.difference.value) == (
        1,
        1,
        0,
    )
    found = made.overall_accuracies["type"]
    assert (made.sampling_run, found.population_size, found.observed_count) == ("A", 5, 2)
    assert (found.accuracy_a.value, found.accuracy_b.value, found.difference.value) == pytest.approx(
        (1 / 5, 4 / 5, 3 / 5)
    )
    mirrored = compare_studies(b, a)
    assert mirrored.sampling_run == "B"
    assert mirrored.overall_accuracies["type"].difference.value == pytest.approx(-3 / 5)
    told = made.to_json()["overall"]["type"]
    assert (told["population"], told["difference"]["value"]) == (5, pytest.approx(3 / 5))


def test_given_labels_make_a_document_certain() -> None:
    gold = truth(GENOMIC, source="GOLD")
    made = compare_studies(
        study(document("a", truth=gold, review_probability=0.2)), study(document("a", agent_labels=labels(GENOMIC)))
    )
    assert made.overall_accuracies["type"].difference[:3] == (1.0, 1.0, 1.0)


def test_equal_answers_need_no_look() -> None:
    some = study(*(document(f"d{i}") for i in range(3)), escalated_document("e"), document("n", agent_labels=None))
    found = compare_studies(some, some)
    for one in found.overall_accuracies.values():
        assert one.difference[:3] == (0.0, 0.0, 0.0)
        assert one.accuracy_a.value is None


def test_both_readings_of_segments() -> None:
    """B cut one note in two: wrong as given, right with neighbours of one type merged."""
    a = study(escalated_document("a", truth=truth(NOTE)))
    b = study(escalated_document("a", agent_labels=labels(NOTE, (1, 1, NOTE), (2, 2, NOTE))))
    made = compare_studies(a, b)
    assert (made.segment_accuracy.only_a_right, made.merged_segment_accuracy.both_right) == (1, 1)
    assert [made.overall_accuracies[level].difference.value for level in ("segments", "segments merged")] == [-1, 0]
    (told,) = made.documents_table.to_dict("records")
    assert (told["segments_right_b"], told["segments_merged_right_b"]) == (False, True)


def test_neighbour_splits_are_one_truth_when_merged() -> None:
    cut = ((1, 1, NOTE), (2, 2, NOTE))
    made = compare_studies(
        study(escalated_document("a", truth=truth(NOTE))), study(escalated_document("a", truth=truth(NOTE, *cut)))
    )
    assert made.disputed_doc_ids == ("a",)
    assert (made.segment_accuracy.document_count, made.merged_segment_accuracy.both_right) == (0, 1)
