"""Acceptance thresholds: the confidence above which blind audits prove few errors.

Calibration is computed by pure functions of parallel lists with one entry per document: the confidence or another score
(higher means more confident), and whether the answer was right. The arbiter's decision table (V5) is not changed: the
threshold is only offered to the user, with its proof.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.metrics import brier_score_loss

from evalkit.evaluation.headline_estimates import score_agent_type
from evalkit.evaluation.intervals import compute_error_rate_upper_bound, count_audits_needed, estimate_proportion
from evalkit.evaluation.study import DocumentRecord, Study

_FloatArray: TypeAlias = npt.NDArray[np.float64]


class ThresholdCertificate(NamedTuple):
    """Evidence from blind audits for accepting documents above a threshold.

    If no threshold passed, ``error_count``, ``audit_count`` and ``error_bound`` are those of the candidate that came
    closest to passing.
    """

    threshold: float | None
    """Accept documents whose score is at least this; None if no candidate threshold passed."""
    coverage: float
    """Share (0..1) of the audited documents with a score at or above the threshold; 0 without a threshold."""
    error_count: int
    """Number of wrong answers among the audits at or above the threshold."""
    audit_count: int
    """Number of audits at or above the threshold."""
    error_bound: float
    """Upper confidence bound (0..1) of the error rate at or above the threshold."""
    more_audits_needed: int
    """Number of further audits, all with a right answer, needed for a threshold to pass; 0 if one passed."""


def tabulate_reliability(
    confidences: Sequence[float],
    correct: Sequence[bool],
    weights: Sequence[float] | None = None,
    bin_count: int = 10,
    is_equal_mass: bool = False,
) -> pd.DataFrame:
    """Tabulate mean confidence and accuracy by confidence bin, one row per bin.

    Columns: ``low, high, n, confidence, accuracy, accuracy_low, accuracy_high``.

    The bins have equal widths or, with ``is_equal_mass``, as equal numbers of documents as tied confidences allow. A
    bin holds confidences above ``low`` and up to ``high`` (the first bin also 0); empty bins are left out. ``n`` counts
    documents; ``confidence`` and ``accuracy`` are weighted means. ``accuracy_low`` and ``accuracy_high`` are the exact
    95 % interval for the effective number of documents (the sum of the weights divided by the largest).

    Source: the binning is that of scikit-learn's ``calibration_curve``.

    >>> tabulate_reliability([0.95, 0.9, 0.1], [True, False, False], bin_count=2).round(3)
       low  high  n  confidence  accuracy  accuracy_low  accuracy_high
    0  0.0   0.5  1       0.100       0.0         0.000          0.975
    1  0.5   1.0  2       0.925       0.5         0.013          0.987
    """
    confidence_array, correct_array, weight_array = _convert_to_arrays(
        confidences, correct, weights, is_probability=True
    )
    bin_edges = _compute_bin_edges(confidence_array, bin_count, is_equal_mass)
    bin_indices = np.searchsorted(bin_edges[1:-1], confidence_array)
    rows = []
    for bin_index in np.unique(bin_indices):
        is_in_bin = bin_indices == bin_index
        accuracy = float(np.average(correct_array[is_in_bin], weights=weight_array[is_in_bin]))
        effective_size = (
            weight_array[is_in_bin].sum() / weight_array[is_in_bin].max()
        )  # the same effective sample size as in the intervals module
        interval = estimate_proportion(accuracy * effective_size, effective_size)
        rows.append(
            (
                bin_edges[bin_index],
                bin_edges[bin_index + 1],
                int(is_in_bin.sum()),
                np.average(confidence_array[is_in_bin], weights=weight_array[is_in_bin]),
                accuracy,
                interval.low,
                interval.high,
            )
        )
    return pd.DataFrame(rows, columns=["low", "high", "n", "confidence", "accuracy", "accuracy_low", "accuracy_high"])


def compute_expected_calibration_error(
    confidences: Sequence[float],
    correct: Sequence[bool],
    weights: Sequence[float] | None = None,
    bin_count: int = 10,
    is_equal_mass: bool = False,
) -> float:
    """Compute the expected calibration error: mean |confidence - accuracy| over bins.

    0 to 1, each bin weighted by its documents; NaN without documents. Source: Naeini, Cooper and Hauskrecht, AAAI 2015.

    >>> compute_expected_calibration_error([0.75, 0.75, 0.25], [True, True, False], bin_count=2)
    0.25
    """
    confidence_array, correct_array, weight_array = _convert_to_arrays(
        confidences, correct, weights, is_probability=True
    )
    if not len(confidence_array):
        return float("nan")
    bin_indices = np.searchsorted(
        _compute_bin_edges(confidence_array, bin_count, is_equal_mass)[1:-1], confidence_array
    )
    bin_gaps = np.bincount(bin_indices, weights=weight_array * (confidence_array - correct_array))
    return float(np.abs(bin_gaps).sum() / weight_array.sum())


def _compute_bin_edges(confidences: _FloatArray, bin_count: int, is_equal_mass: bool) -> _FloatArray:
    """Return the ``bin_count + 1`` edges of the bins, from 0 to 1."""
    edges = np.linspace(0.0, 1.0, bin_count + 1)
    if is_equal_mass and len(confidences):
        edges[1:-1] = np.quantile(confidences, edges[1:-1])
    return edges


def compute_brier_score(
    confidences: Sequence[float], correct: Sequence[bool], weights: Sequence[float] | None = None
) -> float:
    """Compute the Brier score: mean squared difference of confidence and outcome.

    0 if always certain and right, 1 if always certain and wrong; NaN without documents.

    Source: Brier, Monthly Weather Review 78 (1950); scikit-learn computes it.
    """
    confidence_array, correct_array, weight_array = _convert_to_arrays(
        confidences, correct, weights, is_probability=True
    )
    if not len(confidence_array):
        return float("nan")
    return float(
        brier_score_loss(correct_array, confidence_array, sample_weight=weight_array, pos_label=1, labels=[0, 1])
    )


def tabulate_risk_coverage(
    scores: Sequence[float], correct: Sequence[bool], weights: Sequence[float] | None = None
) -> pd.DataFrame:
    """Tabulate coverage and error rate if accepting at or above each score.

    Rows are sorted by score, highest first.

    Columns: ``threshold, coverage, risk, n``.

    ``coverage`` is the accepted share of all documents, ``risk`` the share of wrong answers among the accepted
    documents (both weighted), ``n`` the number of accepted documents. For inspection only: a threshold chosen from this
    table looks better than it is; use :func:`certify_threshold`.

    Source: El-Yaniv and Wiener, JMLR 11 (2010).

    >>> tabulate_risk_coverage([0.9, 0.8, 0.8, 0.1], [True, True, False, False]).round(3)
       threshold  coverage   risk  n
    0        0.9      0.25  0.000  1
    1        0.8      0.75  0.333  3
    2        0.1      1.00  0.500  4
    """
    score_array, correct_array, weight_array = _convert_to_arrays(scores, correct, weights)
    order = np.argsort(-score_array)
    score_array, correct_array, weight_array = score_array[order], correct_array[order], weight_array[order]
    # Documents with equal scores are accepted together, so each score gets one row: that of its last document.
    last_of_ties = np.flatnonzero(np.diff(score_array, append=-np.inf))
    accepted_weight = np.cumsum(weight_array)[last_of_ties]
    return pd.DataFrame(
        {
            "threshold": score_array[last_of_ties],
            "coverage": accepted_weight / weight_array.sum(),
            "risk": np.cumsum(weight_array * (1 - correct_array))[last_of_ties] / accepted_weight,
            "n": last_of_ties + 1,
        }
    )


def certify_threshold(
    scores: Sequence[float],
    correct: Sequence[bool],
    *,
    max_error_rate: float,
    confidence_level: float = 0.95,
    candidate_thresholds: Sequence[float],
) -> ThresholdCertificate:
    """Find the lowest threshold above which blind audits bound the error rate.

    At most ``max_error_rate`` of the documents accepted at or above the threshold are wrong, with probability
    ``confidence_level``.

    Args:
        scores: the score of each audited document; higher means more confident.
        correct: True for each audited document whose answer was right.
        max_error_rate: the highest tolerated error rate among accepted documents, above 0 and below 1.
        confidence_level: the probability with which the offered threshold keeps ``max_error_rate``.
        candidate_thresholds: the thresholds to try, fixed before any outcome is known.

    *Valid input.* Only blind audits that were drawn at random, all with the same probability. The binomial bounds do
    not hold for escalated cases, nor for a mixture of audits drawn at 20 % and at 5 %;
    :func:`thin_rows_to_equal_probability` makes the probabilities of such a mixture equal.

    *Why several thresholds may be tried.* Thresholds are tried in a fixed order, from high to low, until the first one
    fails. A threshold whose error rate is truly too high can be offered only if the first such threshold passes, which
    happens with probability 1 - ``confidence_level`` at most; so no correction for multiple tests is needed. The choice
    of candidates may depend on scores, never on outcomes: thresholds with too few audits to pass even without an error
    are left out. If the candidates are round numbers or come from the scores of all documents
    (``np.quantile(all_scores, …)``), the result holds for all documents.

    *One look.* The confidence level holds for one call on one set of audits. Calling again after every audit until a
    threshold passes inflates the error: do ``more_audits_needed`` further audits first, then call again.

    If no threshold passes, ``threshold`` is None, ``coverage`` 0, and ``more_audits_needed`` is the smallest number of
    further audits, all right, with which one of the thresholds would pass (of equal numbers, the lowest threshold).

    Source: Clopper-Pearson bounds tested in fixed sequence: Bauer, Statistics in Medicine 10 (1991); for thresholds
    of a model Geifman and El-Yaniv (NeurIPS 2017) and Angelopoulos et al., Learn then Test (2021).

    >>> audits = [0.9] * 59 + [0.5] * 41
    >>> options = {"max_error_rate": 0.05, "candidate_thresholds": [0.5, 0.9]}
    >>> certify_threshold(audits, [True] * 59 + [False] * 41, **options)._replace(error_bound=0)
    ThresholdCertificate(threshold=0.9, coverage=0.59, error_count=0, audit_count=59, error_bound=0, more_audits_needed=0)
    >>> certify_threshold([0.9] * 50, [True] * 50, **options).more_audits_needed
    9
    """
    if not 0 < max_error_rate < 1:
        raise ValueError(f"max_error_rate is {max_error_rate}, but must be above 0 and below 1")
    score_array, correct_array, _ = _convert_to_arrays(scores, correct, None)
    all_candidates = _count_accepted_audits(score_array, correct_array, np.asarray(candidate_thresholds, dtype=float))
    smallest_audit_count = count_audits_needed(max_error_rate, 0, confidence_level)
    tried_candidates = [candidate for candidate in all_candidates if candidate.audit_count >= smallest_audit_count]
    passed_candidates = list(
        takewhile(lambda candidate: candidate.compute_error_bound(confidence_level) <= max_error_rate, tried_candidates)
    )
    if passed_candidates:
        lowest = passed_candidates[-1]
        return ThresholdCertificate(
            lowest.threshold,
            lowest.audit_count / len(score_array),
            lowest.error_count,
            lowest.audit_count,
            lowest.compute_error_bound(confidence_level),
            0,
        )
    # Of candidates with equal error counts, the lowest threshold has the most audits, so it needs the fewest more.
    failed_by_error_count = {
        candidate.error_count: candidate
        for candidate in all_candidates
        if candidate.compute_error_bound(confidence_level) > max_error_rate
    } or {0: _AcceptedAudits(np.inf, 0, 0)}
    more_audits_needed, closest = min(
        (
            (
                count_audits_needed(max_error_rate, candidate.error_count, confidence_level) - candidate.audit_count,
                candidate,
            )
            for candidate in failed_by_error_count.values()
        ),
        key=lambda pair: (pair[0], pair[1].threshold),
    )
    return ThresholdCertificate(
        None,
        0.0,
        closest.error_count,
        closest.audit_count,
        closest.compute_error_bound(confidence_level),
        more_audits_needed,
    )


def thin_rows_to_equal_probability(inclusion_probabilities: Sequence[float], seed: int) -> npt.NDArray[np.intp]:
    """Return the indices of a random subset with one inclusion probability for all.

    Each row is kept with probability min(p) / p: rows drawn at 20 % and at 5 % become a sample drawn at 5 %. The choice
    depends only on the probabilities and the seed. ValueError if a probability is not above 0 and at most 1.

    >>> thin_rows_to_equal_probability([0.05, 0.05, 0.05], seed=0)
    array([0, 1, 2])
    """
    probability_array = np.asarray(inclusion_probabilities, dtype=float)
    if not ((probability_array > 0) & (probability_array <= 1)).all():
        raise ValueError("every value of inclusion_probabilities must be above 0 and at most 1")
    is_retained = np.random.default_rng(seed).random(
        len(probability_array)
    ) * probability_array < probability_array.min(initial=1.0)
    return np.flatnonzero(is_retained)


class _AcceptedAudits(NamedTuple):
    """Number of audits at or above a threshold, and of wrong ones among them."""

    threshold: float
    audit_count: int
    error_count: int

    def compute_error_bound(self, confidence_level: float) -> float:
        return compute_error_rate_upper_bound(self.error_count, self.audit_count, confidence_level)


def _count_accepted_audits(scores: _FloatArray, correct: _FloatArray, thresholds: _FloatArray) -> list[_AcceptedAudits]:
    """Count audits and errors at or above each threshold, highest threshold first."""
    descending = np.unique(thresholds)[::-1]
    sorted_scores, sorted_wrong_scores = np.sort(scores), np.sort(scores[correct == 0])
    audit_counts = len(sorted_scores) - np.searchsorted(sorted_scores, descending)
    error_counts = len(sorted_wrong_scores) - np.searchsorted(sorted_wrong_scores, descending)
    return [
        _AcceptedAudits(float(threshold), int(audit_count), int(error_count))
        for threshold, audit_count, error_count in zip(descending, audit_counts, error_counts, strict=True)
    ]


def _convert_to_arrays(
    scores: Sequence[float], correct: Sequence[bool], weights: Sequence[float] | None, *, is_probability: bool = False
) -> tuple[_FloatArray, _FloatArray, _FloatArray]:
    score_array, correct_array = np.asarray(scores, dtype=float), np.asarray(correct, dtype=float)
    weight_array = np.ones(len(score_array)) if weights is None else np.asarray(weights, dtype=float)
    if not len(score_array) == len(correct_array) == len(weight_array):
        raise ValueError(
            f"{len(score_array)} scores, {len(correct_array)} outcomes and {len(weight_array)} weights: "
            "pass one of each per document"
        )
    if np.isnan(score_array).any():
        raise ValueError("scores contains NaN: leave out documents without a score, and report how many were left out")
    if is_probability and ((score_array < 0) | (score_array > 1)).any():
        raise ValueError("every confidence must be between 0 and 1")
    return score_array, correct_array, weight_array


_THINNING_SEED = 20
#: Confidence thresholds that may be offered: 0 to 0.95 in steps of 0.05, fixed before any outcome is known. Threshold 0
#: accepts every document that the arbiter accepts.
CANDIDATE_THRESHOLDS = tuple(round(step / 20, 2) for step in range(20))


@dataclass(frozen=True)
class ConfidenceCalibration:
    """Calibration of the agent's confidence, over documents with known true type."""

    document_count: int
    reliability_table: pd.DataFrame
    """Per bin: ``low, high, n, confidence, accuracy, accuracy_low, accuracy_high``."""
    risk_coverage_table: pd.DataFrame
    """Columns ``threshold, coverage, risk, n``. For inspection only: do not choose a threshold from this table."""
    calibration_error: float
    brier_score: float


@dataclass(frozen=True)
class AcceptanceThresholdEvidence:
    """Evidence from blind audits for accepting documents above a confidence threshold."""

    max_error_rate: float
    """Highest tolerated share (0..1) of accepted documents with a wrong type."""
    confidence_level: float
    """Probability (0..1) with which ``max_error_rate`` holds for the offered threshold."""
    certificate: ThresholdCertificate
    """The certified threshold. Its ``threshold`` is None if ``unaudited_wrong_ids`` or ``undrawable_count`` is not
    empty/0."""
    audit_count: int
    """Number of blind audits, all drawn with the same probability, that the certificate is computed from."""
    cannot_tell_count: int
    """Number of these audits without a known true type (undecidable, disputed or postponed): they count as wrong."""
    set_aside_count: int
    """Number of audits dropped at random because they were drawn with a higher probability than the others."""
    simulated_audit_count: int
    """Number of the used audits that a simulated reviewer (a program) answered."""
    unaudited_wrong_ids: tuple[str, ...]
    """The doc_ids of accepted documents with a wrong type that were reviewed for another reason than an audit. They
    would be accepted although no audit covers them, so no threshold is offered if there are any."""
    undrawable_count: int = 0
    """Number of accepted documents that could not be drawn for an audit, or whose inclusion probability is unknown."""


def measure_confidence_calibration(study: Study) -> ConfidenceCalibration:
    """Compare the confidence in the document type with whether the type is right.

    Each reviewed document counts with its sampling weight; one whose confidence is missing or not within 0..1 is left
    out.
    """
    usable_documents = [
        (document, correctness)
        for document in study.reviewed_documents
        if (correctness := score_agent_type(document)) is not None and _get_valid_confidence(document) is not None
    ]
    confidences = [_get_valid_confidence(document) or 0.0 for document, _ in usable_documents]
    correct = [correctness == 1 for _, correctness in usable_documents]
    weights = [document.sampling_weight for document, _ in usable_documents]
    return ConfidenceCalibration(
        len(usable_documents),
        tabulate_reliability(confidences, correct, weights),
        tabulate_risk_coverage(confidences, correct, weights),
        compute_expected_calibration_error(confidences, correct, weights),
        compute_brier_score(confidences, correct, weights),
    )


def certify_acceptance_threshold(
    study: Study, *, max_error_rate: float = 0.05, confidence_level: float = 0.95
) -> AcceptanceThresholdEvidence:
    """Find the lowest confidence threshold whose error rate blind audits bound.

    With probability ``confidence_level``, at most ``max_error_rate`` of the documents accepted at or above the
    threshold have a wrong type.

    A blind audit is a document that the arbiter accepted, that was drawn at random for review, and whose first review
    was given before the reviewer saw the agent's answer. Labels given later change the audit's result, but the document
    stays an audit.
    """
    accepted_documents = [document for document in study.documents if document.is_accepted]
    audits = [
        document
        for document in accepted_documents
        if _is_drawn_by_chance(document)
        and document.has_expert_action
        and (not document.reviews or document.reviews[0].is_blind)
    ]
    drawn_counts, audit_counts = (
        Counter(document.weighting_cell for document in accepted_documents if _is_drawn_by_chance(document)),
        Counter(document.weighting_cell for document in audits),
    )
    audit_probabilities = [
        (document.inclusion_probability or 1.0)
        * audit_counts[document.weighting_cell]
        / drawn_counts[document.weighting_cell]
        for document in audits
    ]  # the probability of being an answered audit by now
    kept_positions = (
        set(thin_rows_to_equal_probability(audit_probabilities, _THINNING_SEED).tolist()) if audits else set()
    )
    kept_audits = [document for position, document in enumerate(audits) if position in kept_positions]
    unaudited_wrong_ids = tuple(
        document.doc_id
        for document in accepted_documents
        if document.has_expert_action and not _is_drawn_by_chance(document) and score_agent_type(document) == 0
    )
    undrawable_count = sum(not document.inclusion_probability for document in accepted_documents)
    certificate = certify_threshold(
        [_get_valid_confidence(document) or 0.0 for document in kept_audits],
        [_is_agent_type_right_in_audit(document) for document in kept_audits],
        max_error_rate=max_error_rate,
        confidence_level=confidence_level,
        candidate_thresholds=CANDIDATE_THRESHOLDS,
    )
    return AcceptanceThresholdEvidence(
        max_error_rate,
        confidence_level,
        certificate._replace(threshold=None, coverage=0.0) if unaudited_wrong_ids or undrawable_count else certificate,
        len(kept_audits),
        sum(score_agent_type(document) is None for document in kept_audits),
        len(audits) - len(kept_audits),
        sum(any(review.is_simulated for review in document.reviews) for document in kept_audits),
        unaudited_wrong_ids,
        undrawable_count,
    )


def _is_drawn_by_chance(document: DocumentRecord) -> bool:
    return document.review_reason in ("audit", "sample")


def _is_agent_type_right_in_audit(document: DocumentRecord) -> bool:
    """Return True if the agent's type equals the true and the first blind type."""
    first_labels = document.reviews[0].labels_after if document.reviews else None
    agent_type = document.agent_labels.dominant_type if document.agent_labels else None
    return score_agent_type(document) == 1 and (first_labels is None or first_labels.dominant_type == agent_type)


def _get_valid_confidence(document: DocumentRecord) -> float | None:
    """Return the agent's confidence in the type; None if missing or not within 0..1."""
    confidence = document.agent_labels.confidence if document.agent_labels else None
    return confidence if confidence is not None and 0 <= confidence <= 1 else None
