"""Inter-annotator agreement, which limits any measurable accuracy.

Valid only for reviews whose authors did not see each other's answers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import krippendorff
import numpy as np
from sklearn.metrics import cohen_kappa_score

from evalkit.evaluation.metrics import CANNOT_TELL


def compute_cohen_kappa(first_labels: Sequence[str | None], second_labels: Sequence[str | None]) -> float:
    """Compute Cohen's kappa of two experts: 1 is full agreement, 0 chance.

    Each list has one type per case, in the same order; None means "cannot tell", and two None agree. NaN if both
    experts gave one and the same type for all cases, because kappa is undefined then; report the share of agreement
    instead. ValueError if the lists differ in length.

    Source: Cohen, Educational and Psychological Measurement 20 (1960); scikit-learn computes it.

    >>> compute_cohen_kappa(["Note", "Note", "Other", "Other"], ["Note", "Other", "Other", "Other"])
    0.5
    """
    if len(first_labels) != len(second_labels):
        raise ValueError(
            f"{len(first_labels)} answers of the first expert and {len(second_labels)} of the second: "
            "pass one answer per case from both"
        )
    first_encoded, second_encoded = (
        [CANNOT_TELL if label is None else label for label in labels] for labels in (first_labels, second_labels)
    )
    if len({*first_encoded, *second_encoded}) < 2:
        return math.nan
    return float(cohen_kappa_score(first_encoded, second_encoded))


def compute_krippendorff_alpha(labels_by_expert: Sequence[Sequence[str | None]]) -> float:
    """Compute Krippendorff's alpha of any number of experts: 1 is full agreement.

    0 is agreement by chance. One row per expert, one column per case, None if the expert did not judge the case. Cases
    that fewer than two experts judged are ignored. NaN if no case is left or all remaining answers are the same type.

    Source: Krippendorff, Content Analysis (2004), nominal; the krippendorff package computes it.

    >>> round(compute_krippendorff_alpha([["Note", "Note", "Other", None], ["Note", "Other", "Other", "Note"]]), 4)
    0.4444
    """
    labels = sorted({label for row in labels_by_expert for label in row if label is not None})
    code_by_label = {label: float(code) for code, label in enumerate(labels)}
    rating_matrix = np.array(
        [[math.nan if label is None else code_by_label[label] for label in row] for row in labels_by_expert]
    )
    paired_ratings = (
        rating_matrix[:, np.isfinite(rating_matrix).sum(axis=0) > 1] if rating_matrix.ndim == 2 else rating_matrix
    )
    if len(np.unique(paired_ratings[np.isfinite(paired_ratings)])) < 2:
        return math.nan
    return float(krippendorff.alpha(reliability_data=paired_ratings, level_of_measurement="nominal"))
