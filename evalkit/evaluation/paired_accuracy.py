"""Paired comparison of two answers about the same documents, known and over all.

The documents whose truth is known are no random ones: counts and tests of them are about *reviewed documents only*. Over
all documents of both runs each one that chance drew stands for as many as it represents in the run that drew it.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from scipy.stats import binomtest

from evalkit.evaluation.intervals import Estimate, Observation, estimate_proportion, estimate_weighted_mean

#: Discordant documents below which no outcome can have a p-value under 0.05: 2 · 0.5⁵ is 0.0625.
_MIN_DISCORDANT_COUNT = 6


@dataclass(frozen=True)
class PairedAccuracy:
    """Counts of how often each of two answers was right about the same documents."""

    both_right: int
    only_a_right: int
    only_b_right: int
    neither_right: int
    p_value: float | None
    """Of McNemar's exact test: how likely so uneven a count is where none is better; None without discordant ones."""
    difference: Estimate
    """Accuracy of B − accuracy of A, -1..1, with the 95 % interval."""

    @property
    def document_count(self) -> int:
        """All of them."""
        return self.both_right + self.only_a_right + self.only_b_right + self.neither_right

    @property
    def discordant_count(self) -> int:
        """Number of documents with one right answer: only they separate the two."""
        return self.only_a_right + self.only_b_right

    @property
    def winner_sentence(self) -> str:
        """The comparison's outcome in words."""
        if self.discordant_count < _MIN_DISCORDANT_COUNT:
            return f"too few to tell: the answers differ in being right on {self.discordant_count}, {_MIN_DISCORDANT_COUNT} are the fewest"
        if self.p_value is None or self.p_value >= 0.05:
            return "no difference shown"
        return "B is right more often" if self.only_b_right > self.only_a_right else "A is right more often"


class PairedDocument(NamedTuple):
    """One document that both answered."""

    correctness: tuple[bool, bool] | None
    """Whether A is right, and B; None: unknown, or nobody can."""
    is_same_answer: bool
    """Whether both say the same: whatever the truth is, neither is right more than the other."""
    review_probability: float | None
    """With which it came to be looked at, 0..1; None: nobody knows."""
    has_expert_action: bool


@dataclass(frozen=True)
class OverallAccuracyComparison:
    """Both answers over all documents that they are about."""

    population_size: int
    """How many documents these are."""
    observed_count: int
    """Those that the figures rest on: reviewed and decided."""
    accuracy_a: Estimate
    """Accuracy of A, 0..1."""
    accuracy_b: Estimate
    """Accuracy of B, 0..1."""
    difference: Estimate
    """Accuracy of B − accuracy of A, -1..1."""


def compare_paired_accuracy(correctness_pairs: Sequence[tuple[bool, bool]]) -> PairedAccuracy:
    """Compare the accuracies of A and B, one pair per document, with a test.

    Source: McNemar, Psychometrika 12 (1947), here exactly, as a binomial test of the discordant pairs; the interval is
    Newcombe's, Statistics in Medicine 17 (1998) 2635, method 10.

    >>> outcome = compare_paired_accuracy([(True, True)] * 36 + [(False, True)] * 12 + [(True, False)] * 2)
    >>> round(outcome.p_value, 6), [round(number, 4) for number in outcome.difference[:3]], outcome.winner_sentence
    (0.012939, [0.2, 0.0569, 0.3404], 'B is right more often')
    """
    counts_by_correctness = Counter((bool(a), bool(b)) for a, b in correctness_pairs)
    both_right, neither_right = counts_by_correctness[True, True], counts_by_correctness[False, False]
    only_a_right, only_b_right = counts_by_correctness[True, False], counts_by_correctness[False, True]
    discordant_count = only_a_right + only_b_right
    return PairedAccuracy(
        both_right,
        only_a_right,
        only_b_right,
        neither_right,
        p_value=float(binomtest(only_b_right, discordant_count).pvalue) if discordant_count else None,
        difference=_estimate_accuracy_difference(both_right, only_b_right, only_a_right, neither_right),
    )


def _estimate_accuracy_difference(
    both_right: int, only_first_right: int, only_second_right: int, neither_right: int
) -> Estimate:
    """Estimate the first accuracy minus the second, paired by document."""
    document_count = both_right + only_first_right + only_second_right + neither_right
    if document_count == 0:
        return Estimate(None, -1.0, 1.0, 0, "Newcombe")
    right_count_1, right_count_2 = both_right + only_first_right, both_right + only_second_right
    share_1, share_2 = right_count_1 / document_count, right_count_2 / document_count
    (low_1, high_1), (low_2, high_2) = (
        binomtest(right_count, document_count).proportion_ci(method="wilson")
        for right_count in (right_count_1, right_count_2)
    )
    association = both_right * neither_right - only_first_right * only_second_right
    spread = math.sqrt(
        right_count_1 * (document_count - right_count_1) * right_count_2 * (document_count - right_count_2)
    )
    # A correction for continuity: a few documents show less of how the two go together than they seem to.
    correlation = (
        (max(association - document_count / 2, 0) if association > 0 else association) / spread if spread else 0.0
    )
    margin_below, margin_above = share_1 - low_1, high_2 - share_2
    distance_below = math.sqrt(margin_below**2 - 2 * correlation * margin_below * margin_above + margin_above**2)
    margin_below, margin_above = share_2 - low_2, high_1 - share_1
    distance_above = math.sqrt(margin_below**2 - 2 * correlation * margin_below * margin_above + margin_above**2)
    share_difference = (only_first_right - only_second_right) / document_count
    return Estimate(
        share_difference,
        max(share_difference - distance_below, -1.0),
        min(share_difference + distance_above, 1.0),
        document_count,
        "Newcombe",
    )


def compare_overall_accuracy(paired_documents: Sequence[PairedDocument]) -> OverallAccuracyComparison:
    """Both accuracies and their difference over all documents, with 95 % intervals.

    The accuracies are :func:`~evalkit.evaluation.intervals.estimate_weighted_mean` means. The difference needs no look where both
    answers are the same. Of the others, those that were certain to be looked at are counted, and what is missing of
    them may be for A or for B; those that could be drawn are estimated from those that were, a document with
    probability p counting 1 / p times. The ends of their interval are those of the shares that only B and only A has
    right, Clopper-Pearson for the effective number of documents, the sum of weights over the largest, as in
    ``weighted``; of few documents Newcombe's interval holds the truth too rarely. What nobody can tell of them may be
    for A or for B, too.

    >>> met = [PairedDocument((False, True), False, 1.0, True)] * 4 + [PairedDocument((True, True), True, 0.2, True)] * 20
    >>> unseen = [PairedDocument(None, True, 0.2, False)] * 76
    >>> compare_overall_accuracy(met + unseen).difference
    Estimate(value=0.04, low=0.04, high=0.04, n=4, method='weighted')
    """
    accuracy_a, accuracy_b = (_estimate_side_accuracy(paired_documents, side) for side in (0, 1))
    return OverallAccuracyComparison(
        len(paired_documents),
        sum(document.correctness is not None for document in paired_documents if _counts_as_observation(document)),
        accuracy_a,
        accuracy_b,
        _estimate_overall_accuracy_difference(paired_documents),
    )


def _estimate_side_accuracy(paired_documents: Sequence[PairedDocument], side: int) -> Estimate:
    observations = [
        Observation(
            None if document.correctness is None else float(document.correctness[side]),
            document.review_probability or 0.0,
        )
        for document in paired_documents
        if _counts_as_observation(document)
    ]
    return estimate_weighted_mean(
        observations,
        len(paired_documents),
        certain_count=sum(document.review_probability == 1 for document in paired_documents),
    )


def _counts_as_observation(document: PairedDocument) -> bool:
    """Return True if it counts as an observation; certain but undecided ones are missing."""
    return (
        document.correctness is not None
        if document.review_probability == 1
        else bool(document.review_probability) and document.has_expert_action
    )


def _estimate_overall_accuracy_difference(paired_documents: Sequence[PairedDocument]) -> Estimate:
    if not paired_documents:
        return Estimate(None, -1.0, 1.0, 0, "weighted")
    differing_documents = [candidate for candidate in paired_documents if not candidate.is_same_answer]
    certain_correctness = [
        candidate.correctness for candidate in differing_documents if candidate.review_probability == 1
    ]
    known_correctness = [correctness for correctness in certain_correctness if correctness is not None]
    drawn_documents = [
        candidate
        for candidate in differing_documents
        if candidate.review_probability != 1 and _counts_as_observation(candidate)
    ]
    drawable_count, unknown_count = (
        len(differing_documents) - len(certain_correctness),
        len(certain_correctness) - len(known_correctness),
    )
    net_count = sum(b - a for a, b in known_correctness)
    middle_estimate, lowest_estimate, highest_estimate = (
        _estimate_drawn_difference(drawn_documents, candidate)
        for candidate in ((False, False), (True, False), (False, True))
    )
    has_drawn_truth = any(candidate.correctness is not None for candidate in drawn_documents)
    is_known = has_drawn_truth or (not drawable_count and bool(known_correctness or not differing_documents))
    return Estimate(
        (net_count + drawable_count * (middle_estimate.value or 0.0)) / len(paired_documents) if is_known else None,
        (net_count - unknown_count + drawable_count * lowest_estimate.low) / len(paired_documents),
        (net_count + unknown_count + drawable_count * highest_estimate.high) / len(paired_documents),
        len(known_correctness) + (middle_estimate.n if has_drawn_truth else 0),
        "weighted",
    )


def _estimate_drawn_difference(
    drawn_documents: Sequence[PairedDocument], assumed_correctness: tuple[bool, bool]
) -> Estimate:
    """Estimate the drawn part's difference; unknowns as ``assumed_correctness``."""
    weight_by_correctness: dict[tuple[bool, bool], float] = defaultdict(float)
    for document in drawn_documents:
        weight_by_correctness[document.correctness or assumed_correctness] += 1 / (document.review_probability or 1.0)
    largest_weight = max((1 / (document.review_probability or 1.0) for document in drawn_documents), default=1.0)
    effective_size = sum(weight_by_correctness.values()) / largest_weight
    only_a_share, only_b_share = (
        estimate_proportion(weight_by_correctness[correctness] / largest_weight, effective_size)
        for correctness in ((True, False), (False, True))
    )
    share_difference = (
        None if only_a_share.value is None or only_b_share.value is None else only_b_share.value - only_a_share.value
    )
    return Estimate(
        share_difference,
        only_b_share.low - only_a_share.high,
        only_b_share.high - only_a_share.low,
        effective_size,
        "weighted",
    )
