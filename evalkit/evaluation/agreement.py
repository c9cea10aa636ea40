"""How far two experts agree on the same cases, which is how far any answer can be right.

Only for reviews that were blind to each other. Below :mod:`evalkit.evaluation` nothing needs these.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import krippendorff
import numpy as np
from sklearn.metrics import cohen_kappa_score

from evalkit.evaluation.metrics import CANNOT_TELL, boundary_scores
from evalkit.pipeline.supplied_labels import PageSpan


def kappa(first: Sequence[str | None], second: Sequence[str | None]) -> float:
    """Cohen's kappa of two experts' types, one entry a case, both judged all: 1 always, 0 as often as by chance.

    None is what nobody could tell, and two who could not tell agree. NaN where both said one and the same type
    throughout, because then chance alone would agree as often; say the plain share of agreement instead.

    Source: Cohen, Educational and Psychological Measurement 20 (1960); scikit-learn computes it.

    >>> kappa(["Note", "Note", "Other", "Other"], ["Note", "Other", "Other", "Other"])
    0.5
    """
    if len(first) != len(second):
        raise ValueError(f"{len(first)} and {len(second)} answers: they must be about the same cases")
    one, other = ([CANNOT_TELL if label is None else label for label in labels] for labels in (first, second))
    if len({*one, *other}) < 2:
        return math.nan
    return float(cohen_kappa_score(one, other))


def alpha(table: Sequence[Sequence[str | None]]) -> float:
    """Krippendorff's alpha of any number of experts: a row an expert, a column a case, None where not judged.

    1 always, 0 as often as by chance. Cases that fewer than two judged say nothing and are left out by it. NaN where
    no others are left, or only one type was named in them.

    Source: Krippendorff, Content Analysis (2004), nominal; the krippendorff package computes it.

    >>> round(alpha([["Note", "Note", "Other", None], ["Note", "Other", "Other", "Note"]]), 4)
    0.4444
    """
    labels = sorted({label for row in table for label in row if label is not None})
    numbers = {label: float(number) for number, label in enumerate(labels)}
    ratings = np.array([[math.nan if label is None else numbers[label] for label in row] for row in table])
    paired = ratings[:, np.isfinite(ratings).sum(axis=0) > 1] if ratings.ndim == 2 else ratings
    if len(np.unique(paired[np.isfinite(paired)])) < 2:
        return math.nan
    return float(krippendorff.alpha(reliability_data=paired, level_of_measurement="nominal"))


def boundary_agreement(first_spans: Sequence[PageSpan], second_spans: Sequence[PageSpan]) -> float:
    """How far two experts cut one document at the same pages, 0 to 1: F1 of boundaries, whoever comes first.

    1 where neither cut it. Of many documents together, pool their ``boundary_scores``.

    Source: Hripcsak and Rothschild, JAMIA 12 (2005): kappa approaches F1 where almost all pages are no boundary.

    >>> boundary_agreement([(1, 2, "Note"), (3, 9, "Other")], [(1, 2, "Note"), (3, 5, "Other"), (6, 9, "Other")])
    0.6666666666666666
    """
    return boundary_scores(first_spans, second_spans).f1
