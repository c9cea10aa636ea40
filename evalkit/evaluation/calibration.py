"""Calibration: confidence against accuracy, and thresholds that audits can prove.

Pure functions of parallel lists, one entry a document: the confidence or another score (higher is surer) and whether
the answer was right. Nothing here changes a decision: :func:`certify_threshold` offers a threshold with its proof, V5 stays
the table that it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.metrics import brier_score_loss

from evalkit.evaluation.intervals import compute_error_rate_upper_bound, count_audits_needed, estimate_proportion

_FloatArray: TypeAlias = npt.NDArray[np.float64]


class ThresholdCertificate(NamedTuple):
    """Evidence of blind audits for accepting above a threshold."""

    threshold: float | None
    """Accept where the score is at least this. None: nothing could be shown."""
    coverage: float
    """Share of the audited documents at or above it, 0 to 1."""
    error_count: int
    """How many of those were wrong; without a threshold, at the one that came closest. So are the next two."""
    audit_count: int
    """How many audits are at or above it."""
    error_bound: float
    """What their share of wrong ones does not exceed, at the asked level."""
    more_audits_needed: int
    """How many audits at or above it, all right, are missing; 0 with a threshold."""


def tabulate_reliability(
    confidences: Sequence[float],
    correct: Sequence[bool],
    weights: Sequence[float] | None = None,
    bin_count: int = 10,
    is_equal_mass: bool = False,
) -> pd.DataFrame:
    """Tabulate confidence against accuracy, one row per bin.

    Columns: ``low, high, n, confidence, accuracy, accuracy_low, accuracy_high``.

    The bins are equally wide or, for ``is_equal_mass``, hold equally many documents as far as equal confidences allow.
    They are above ``low`` and up to ``high``, the first one with 0; those that nothing fell into are left out. ``effective_size`` counts documents; ``confidences`` and ``accuracy`` are means (weighted), and the interval is
    exact at 95 % for the effective number of documents, the sum of weights over the largest.

    Source: the binning is that of scikit-learn's ``calibration_curve``.

    >>> tabulate_reliability([0.95, 0.9, 0.1], [True, False, False], bin_count=2).round(3)
       low  high  n  confidence  accuracy  accuracy_low  accuracy_high
    0  0.0   0.5  1       0.100       0.0         0.000          0.975
    1  0.5   1.0  2       0.925       0.5         0.013          0.987
    """
    confidence_array, correct_array, weight_array = _convert_to_arrays(confidences, correct, weights)
    _require_probabilities(confidence_array)
    bin_edges = _compute_bin_edges(confidence_array, bin_count, is_equal_mass)
    bin_indices = np.searchsorted(bin_edges[1:-1], confidence_array)
    rows = []
    for bin_index in np.unique(bin_indices):
        is_in_bin = bin_indices == bin_index
        accuracy = float(np.average(correct_array[is_in_bin], weights=weight_array[is_in_bin]))
        effective_size = (
            weight_array[is_in_bin].sum() / weight_array[is_in_bin].max()
        )  # as intervals.weighted, and for its reasons
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
    column_names = ["low", "high", "n", "confidence", "accuracy", "accuracy_low", "accuracy_high"]
    return pd.DataFrame(rows, columns=column_names)


def compute_expected_calibration_error(
    confidences: Sequence[float],
    correct: Sequence[bool],
    weights: Sequence[float] | None = None,
    bin_count: int = 10,
    is_equal_mass: bool = False,
) -> float:
    """Compute the mean gap between confidence and accuracy over weighted bins, 0..1.

    NaN without documents. Source: Naeini, Cooper and Hauskrecht, AAAI 2015.

    >>> compute_expected_calibration_error([0.75, 0.75, 0.25], [True, True, False], bin_count=2)
    0.25
    """
    confidence_array, correct_array, weight_array = _convert_to_arrays(confidences, correct, weights)
    _require_probabilities(confidence_array)
    if not len(confidence_array):
        return float("nan")
    bin_indices = np.searchsorted(
        _compute_bin_edges(confidence_array, bin_count, is_equal_mass)[1:-1], confidence_array
    )
    bin_gaps = np.bincount(bin_indices, weights=weight_array * (confidence_array - correct_array))
    return float(np.abs(bin_gaps).sum() / weight_array.sum())


def _compute_bin_edges(confidences: _FloatArray, bin_count: int, is_equal_mass: bool) -> _FloatArray:
    """Compute the edges of the bins, from 0 to 1."""
    edges = np.linspace(0.0, 1.0, bin_count + 1)
    if is_equal_mass and len(confidences):
        edges[1:-1] = np.quantile(confidences, edges[1:-1])
    return edges


def compute_brier_score(
    confidences: Sequence[float], correct: Sequence[bool], weights: Sequence[float] | None = None
) -> float:
    """Compute the mean squared distance of confidence and outcome; NaN without any.

    0: sure and right; 1: sure and wrong.

    Source: Brier, Monthly Weather Review 78 (1950); scikit-learn computes it.
    """
    confidence_array, correct_array, weight_array = _convert_to_arrays(confidences, correct, weights)
    _require_probabilities(confidence_array)
    if not len(confidence_array):
        return float("nan")
    return float(
        brier_score_loss(correct_array, confidence_array, sample_weight=weight_array, pos_label=1, labels=[0, 1])
    )


def tabulate_risk_coverage(
    scores: Sequence[float], correct: Sequence[bool], weights: Sequence[float] | None = None
) -> pd.DataFrame:
    """Tabulate coverage and risk of accepting above each score, highest score first.

    Columns: ``threshold, coverage, risk, n``.

    ``coverage`` is the share of all documents that is accepted, ``risk`` the wrong share of those (both weighted),
    ``audit_count`` how many they are. To be looked at, not to choose by: a threshold chosen here is lucky (:func:`certify_threshold`).

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
    # Equal scores are accepted together: only the last of each counts.
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
    """Find the lowest threshold that blind audits prove safe.

    At most ``max_error_rate`` of what it accepts is wrong.

    Args:
        scores: of each audited document; higher is surer.
        correct: what the audit found.
        max_error_rate: the share of wrong ones that may be accepted, between 0 and 1.
        confidence_level: with which probability the offered threshold keeps it.
        candidate_thresholds: which thresholds may be tried, fixed before any outcome is known.

    *What may be passed.* Audits of one design only: blind, drawn by chance, all with the same probability. Binomial
    bounds say nothing of escalated cases, or of audits at 20 % and at 5 % put together; :func:`thin_rows_to_equal_probability` makes the
    latter equal.

    *Why several thresholds may be tried.* They are tried in a fixed order, from high to low, and the first failure
    ends it. An offer that breaks the promise needs the first threshold that truly breaks it to pass, and that happens
    with probability 1 - level at most; no correction is needed. What is tried may depend on scores, never on
    outcomes: thresholds with too few audits to pass even without an error are left out. Thresholds from the scores of
    all documents (``np.quantile(all_scores, …)``), or round numbers, make it a statement about all documents.

    *One look.* The level holds for one call on one set of audits. Whoever asks again after every audit until
    something passes will be lucky too often: do the ``more_audits_needed`` first, then ask.

    Nothing passed: ``threshold`` is None, ``coverage`` 0, and ``more_audits_needed`` is the smallest number of further
    audits, all right, at which one of the thresholds would pass (of equal ones the lowest).

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
        raise ValueError(f"a rate of {max_error_rate}: it must be between 0 and 1")
    score_array, correct_array, _ = _convert_to_arrays(scores, correct, None)
    all_candidates = _count_accepted_audits(score_array, correct_array, np.asarray(candidate_thresholds, dtype=float))
    smallest_audit_count = count_audits_needed(max_error_rate, 0, confidence_level)
    tried_candidates = [candidate for candidate in all_candidates if candidate.audit_count >= smallest_audit_count]
    passed_candidates = list(
        takewhile(lambda candidate: candidate.compute_error_bound(confidence_level) <= max_error_rate, tried_candidates)
    )
    if passed_candidates:
        lowest = passed_candidates[-1]
        coverage = lowest.audit_count / len(score_array)
        return ThresholdCertificate(
            lowest.threshold,
            coverage,
            lowest.error_count,
            lowest.audit_count,
            lowest.compute_error_bound(confidence_level),
            0,
        )
    # Of those with equally many errors the lowest has the most audits, and so the fewest missing.
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
    """Choose rows so that all chosen ones had the same probability of being drawn.

    Each row stays with probability min(p) / p.

    What was drawn at 20 % and at 5 % becomes a sample at 5 %. The choice looks at probabilities alone.

    ValueError where a probability is not above 0 and up to 1.

    >>> thin_rows_to_equal_probability([0.05, 0.05, 0.05], seed=0)
    array([0, 1, 2])
    """
    probability_array = np.asarray(inclusion_probabilities, dtype=float)
    if not ((probability_array > 0) & (probability_array <= 1)).all():
        raise ValueError("inclusion probabilities must be above 0 and up to 1")
    is_retained = np.random.default_rng(seed).random(
        len(probability_array)
    ) * probability_array < probability_array.min(initial=1.0)
    return np.flatnonzero(is_retained)


class _AcceptedAudits(NamedTuple):
    """The audits at or above a threshold."""

    threshold: float
    audit_count: int
    error_count: int

    def compute_error_bound(self, confidence_level: float) -> float:
        return compute_error_rate_upper_bound(self.error_count, self.audit_count, confidence_level)


def _count_accepted_audits(scores: _FloatArray, correct: _FloatArray, thresholds: _FloatArray) -> list[_AcceptedAudits]:
    """Count the audits above each threshold, from the highest to the lowest."""
    descending = np.unique(thresholds)[::-1]
    sorted_scores, sorted_wrong_scores = np.sort(scores), np.sort(scores[correct == 0])
    audit_counts = len(sorted_scores) - np.searchsorted(sorted_scores, descending)
    error_counts = len(sorted_wrong_scores) - np.searchsorted(sorted_wrong_scores, descending)
    return [
        _AcceptedAudits(float(threshold), int(audit_count), int(error_count))
        for threshold, audit_count, error_count in zip(descending, audit_counts, error_counts, strict=True)
    ]


def _convert_to_arrays(
    scores: Sequence[float], correct: Sequence[bool], weights: Sequence[float] | None
) -> tuple[_FloatArray, _FloatArray, _FloatArray]:
    score_array, correct_array = np.asarray(scores, dtype=float), np.asarray(correct, dtype=float)
    weight_array = np.ones(len(score_array)) if weights is None else np.asarray(weights, dtype=float)
    if not len(score_array) == len(correct_array) == len(weight_array):
        raise ValueError(
            f"{len(score_array)} scores, {len(correct_array)} outcomes, {len(weight_array)} weights: one of each a document"
        )
    if np.isnan(score_array).any():
        raise ValueError("a score is not a number: leave out the documents without one, and say how many they are")
    return score_array, correct_array, weight_array


def _require_probabilities(confidences: _FloatArray) -> None:
    if ((confidences < 0) | (confidences > 1)).any():
        raise ValueError("a confidence must be from 0 to 1")
