"""Paired comparison of the accuracy of answers A and B on the same documents.

Documents with known truth are not a random selection: their counts and tests hold for *reviewed documents only*. In the
estimates over all documents, each randomly drawn document counts for the number of documents that it represents in the
run that drew it.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from scipy.stats import binomtest

from evalkit.evaluation.intervals import Estimate, Observation, estimate_proportion, estimate_weighted_mean

#: Fewest documents on which exactly one answer is right for a p-value below 0.05 to be possible: with 5, the smallest
#: p-value is 2 · 0.5⁵ = 0.0625.
_MIN_DISCORDANT_COUNT = 6


@dataclass(frozen=True)
class PairedAccuracy:
    """Counts of documents on which A, B, both or neither is right; McNemar's test."""

    both_right: int
    only_a_right: int
    only_b_right: int
    neither_right: int
    p_value: float | None
    """p-value of McNemar's exact test that A and B are equally accurate; None if no document has exactly one right
    answer."""
    difference: Estimate
    """Accuracy of B − accuracy of A, -1..1, with the 95 % interval."""

    @property
    def document_count(self) -> int:
        """Number of compared documents."""
        return self.both_right + self.only_a_right + self.only_b_right + self.neither_right

    @property
    def discordant_count(self) -> int:
        """Number of documents on which exactly one of A and B is right."""
        return self.only_a_right + self.only_b_right

    @property
    def winner_sentence(self) -> str:
        """Sentence saying which answer is right more often, or that none is shown to be."""
        if self.discordant_count < _MIN_DISCORDANT_COUNT:
            return (
                f"too few to tell: exactly one answer is right on {self.discordant_count} documents, "
                f"at least {_MIN_DISCORDANT_COUNT} are needed"
            )
        if self.p_value is None or self.p_value >= 0.05:
            return "no difference shown"
        return "B is right more often" if self.only_b_right > self.only_a_right else "A is right more often"


class PairedDocument(NamedTuple):
    """One document of both runs: which answers are right, how it was selected."""

    correctness: tuple[bool, bool] | None
    """(A is right, B is right); None if the truth is unknown or cannot be determined."""
    is_same_answer: bool
    """True if A and B gave the same answer; then they do not differ in accuracy, whatever the truth is."""
    review_probability: float | None
    """Probability (0..1) with which the document was selected for review; None if unknown."""
    has_expert_action: bool


@dataclass(frozen=True)
class OverallAccuracyComparison:
    """Estimated accuracies of A and B over all documents, reviewed or not."""

    population_size: int
    """Number of documents in both runs."""
    observed_count: int
    """Number of documents with known truth from which the accuracies are estimated."""
    accuracy_a: Estimate
    """Accuracy of A, 0..1."""
    accuracy_b: Estimate
    """Accuracy of B, 0..1."""
    difference: Estimate
    """Accuracy of B − accuracy of A, -1..1."""


def compare_paired_accuracy(correctness_pairs: Sequence[tuple[bool, bool]]) -> PairedAccuracy:
    """Compare the accuracies of A and B on reviewed documents by McNemar's exact test.

    Each pair is (A is right, B is right) of one document.

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
    """Estimate the first accuracy minus the second on the same documents, -1..1."""
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
    # Continuity correction: with few documents, the observed correlation of the two answers is exaggerated.
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
    """Estimate both accuracies and their difference over all documents.

    Intervals are 95 %. The accuracies are estimated by :func:`~evalkit.evaluation.intervals.estimate_weighted_mean`.
    For the difference, documents on which both answers are equal contribute 0 without a review. Of the others,
    documents that were certain to be reviewed are counted; their missing results may favour A or B, which widens the
    interval. Documents that could only be drawn are estimated from the drawn ones, a document with probability p
    counting 1 / p times. The ends of their interval combine the Clopper-Pearson intervals of the shares on which only B
    and only A is right, for the effective number of documents (sum of the weights divided by the largest); Newcombe's
    interval is too narrow for few documents. Drawn documents whose truth cannot be determined may favour A or B as
    well.

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
    """Return True if the document counts as an observation of the estimates.

    A document that was certain to be reviewed must have a known truth; a drawn document must have been reviewed.
    """
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
    """Estimate accuracy B − A over drawn documents, with an assumed result if unknown."""
    weight_by_correctness: dict[tuple[bool, bool], float] = defaultdict(float)
    for document in drawn_documents:
        weight_by_correctness[document.correctness or assumed_correctness] += 1 / (document.review_probability or 1.0)
    largest_weight = max((1 / (document.review_probability or 1.0) for document in drawn_documents), default=1.0)
    effective_size = sum(weight_by_correctness.values()) / largest_weight
    only_a_share, only_b_share = (
        estimate_proportion(weight_by_correctness[correctness] / largest_weight, effective_size)
        for correctness in ((True, False), (False, True))
    )
    return Estimate(
        None if only_a_share.value is None or only_b_share.value is None else only_b_share.value - only_a_share.value,
        only_b_share.low - only_a_share.high,
        only_b_share.high - only_a_share.low,
        effective_size,
        "weighted",
    )
