"""Calibration of confidences: is 90 % confidence right in 90 % of cases?

Computed by pure functions of parallel lists with one entry per document: the confidence, and whether the answer was
right.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from evalkit.evaluation.headline_estimates import score_agent_type
from evalkit.evaluation.intervals import FloatArray, estimate_proportion
from evalkit.evaluation.study import DocumentRecord, Study


def tabulate_reliability(
    confidences: Sequence[float],
    correct: Sequence[bool],
    weights: Sequence[float] | None = None,
    bin_count: int = 10,
) -> pd.DataFrame:
    """Tabulate mean confidence and accuracy by confidence bin, one row per bin.

    Columns: ``low, high, n, confidence, accuracy, accuracy_low, accuracy_high``.

    The bins have equal widths. A bin holds confidences above ``low`` and up to ``high`` (the first bin also 0); empty
    bins are left out. ``n`` counts documents; ``confidence`` and ``accuracy`` are weighted means. ``accuracy_low`` and ``accuracy_high`` are the exact
    95 % interval for the effective number of documents (the sum of the weights divided by the largest).

    Source: the binning is that of scikit-learn's ``calibration_curve``.

    >>> tabulate_reliability([0.95, 0.9, 0.1], [True, False, False], bin_count=2).round(3)
       low  high  n  confidence  accuracy  accuracy_low  accuracy_high
    0  0.0   0.5  1       0.100       0.0         0.000          0.975
    1  0.5   1.0  2       0.925       0.5         0.013          0.987
    """
    confidence_array, correct_array, weight_array = _convert_to_arrays(confidences, correct, weights)
    bin_edges = np.linspace(0.0, 1.0, bin_count + 1)
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

    0 to 1, each bin weighted by its documents; with ``is_equal_mass``, bins have about as many documents each instead
    of equal widths; NaN without documents. Source: Naeini, Cooper and Hauskrecht, AAAI 2015.

    >>> compute_expected_calibration_error([0.75, 0.75, 0.25], [True, True, False], bin_count=2)
    0.25
    """
    confidence_array, correct_array, weight_array = _convert_to_arrays(confidences, correct, weights)
    if not len(confidence_array):
        return float("nan")
    inner_edges = np.linspace(0.0, 1.0, bin_count + 1)[1:-1]
    if is_equal_mass:
        inner_edges = np.quantile(confidence_array, inner_edges)
    bin_indices = np.searchsorted(inner_edges, confidence_array)
    bin_gaps = np.bincount(bin_indices, weights=weight_array * (confidence_array - correct_array))
    return float(np.abs(bin_gaps).sum() / weight_array.sum())


def _convert_to_arrays(
    confidences: Sequence[float], correct: Sequence[bool], weights: Sequence[float] | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    confidence_array, correct_array = np.asarray(confidences, dtype=float), np.asarray(correct, dtype=float)
    weight_array = np.ones(len(confidence_array)) if weights is None else np.asarray(weights, dtype=float)
    return confidence_array, correct_array, weight_array


def measure_confidence_calibration(study: Study) -> tuple[dict[str, float], pd.DataFrame]:
    """Compare the confidence in the document type with whether the type is right.

    Each document with a known true type counts with its sampling weight; one whose confidence is missing or not within
    0..1 is left out. Returns the measures by name, and the table of :func:`tabulate_reliability`.
    """
    usable_documents = [
        (document, correctness)
        for document in study.reviewed_documents
        if (correctness := score_agent_type(document)) is not None and _get_valid_confidence(document) is not None
    ]
    confidences = [_get_valid_confidence(document) or 0.0 for document, _ in usable_documents]
    correct = [correctness == 1 for _, correctness in usable_documents]
    weights = [document.sampling_weight for document, _ in usable_documents]
    return (
        {
            "documents with truth and confidence": len(usable_documents),
            "expected calibration error": compute_expected_calibration_error(confidences, correct, weights),
        },
        tabulate_reliability(confidences, correct, weights),
    )


def _get_valid_confidence(document: DocumentRecord) -> float | None:
    """Return the agent's confidence in the type; None if missing or not within 0..1."""
    confidence = document.agent_labels.confidence if document.agent_labels else None
    return confidence if confidence is not None and 0 <= confidence <= 1 else None
