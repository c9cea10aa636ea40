"""Types present in documents, their levels and shares, with intervals.

Measured on the documents whose mixture an expert vouched for: an expert who vouches for segments alone has not said what else is in
them. One that was drawn with probability p counts as 1 / p, in the figure and in its interval; those that nobody looked
at yet are not in it. A document without an answer claims nothing, and is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
import numpy.typing as npt
import pandas as pd

from evalkit.classification.schema import PresenceLevel
from evalkit.evaluation.document_type_scores import TypeScores, score_type
from evalkit.evaluation.intervals import Estimate, estimate_ratio
from evalkit.evaluation.metrics import compute_mixture_error, tabulate_presence_scores
from evalkit.evaluation.study import TYPE_NAMES, DocumentLabels, Study

#: Presence level by document; empty where there was no answer.
LevelArray = npt.NDArray[np.str_]


@dataclass(frozen=True)
class TypePresenceScores(TypeScores):
    """One type."""

    level_agreement: Estimate
    """The share of documents with the same level to the word, NO_EVIDENCE included."""


@dataclass(frozen=True)
class PresenceMetrics:
    """All types together and each by itself."""

    document_count: int
    mixture_error: Estimate
    """The share of a document that was put under the wrong type, 0..1, mean over documents."""
    reviewed_mixture_error: float
    """Unweighted, of the reviewed documents alone; NaN without any."""
    by_type: tuple[TypePresenceScores, ...]
    reviewed_table_by_type: pd.DataFrame
    """Of the reviewed documents alone, unweighted, as :func:`~evalkit.evaluation.metrics.tabulate_presence_scores` has it."""


def measure_type_presence(study: Study) -> PresenceMetrics:
    """Measure which types are present in a study's documents."""
    measured_labels = [
        (document.truth.labels, document.agent_labels, document.sampling_weight)
        for document in study.reviewed_documents
        if document.truth and document.truth.is_vouched("mixture")
    ]
    sampling_weights = [weight for *_, weight in measured_labels]
    mixture_errors = [
        compute_mixture_error(truth.mixture_shares, predicted.mixture_shares if predicted else None)
        for truth, predicted, _ in measured_labels
    ]
    return PresenceMetrics(
        len(measured_labels),
        estimate_ratio(np.array(mixture_errors), np.ones(len(measured_labels)), sampling_weights),
        fmean(mixture_errors) if mixture_errors else math.nan,
        tuple(
            _score_type_presence(
                type_name,
                _extract_levels([truth for truth, _, _ in measured_labels], type_name),
                _extract_levels([predicted for _, predicted, _ in measured_labels], type_name),
                sampling_weights,
            )
            for type_name in TYPE_NAMES
        ),
        tabulate_presence_scores(
            [truth.presence_levels for truth, _, _ in measured_labels],
            [predicted.presence_levels if predicted else None for _, predicted, _ in measured_labels],
        ),
    )


def _extract_levels(labels: Sequence[DocumentLabels | None], type_name: str) -> LevelArray:
    return np.array(
        [
            ""
            if document_labels is None
            else str(document_labels.presence_levels.get(type_name, PresenceLevel.NO_EVIDENCE))
            for document_labels in labels
        ],
        str,
    )


def _score_type_presence(
    type_name: str, true_levels: LevelArray, predicted_levels: LevelArray, weights: Sequence[float]
) -> TypePresenceScores:
    is_present = (true_levels != PresenceLevel.NO_EVIDENCE).astype(float)
    is_claimed = (~np.isin(predicted_levels, ["", PresenceLevel.NO_EVIDENCE])).astype(float)
    return TypePresenceScores(
        **vars(score_type(type_name, is_present, is_claimed, weights)),
        level_agreement=estimate_ratio(
            (true_levels == predicted_levels).astype(float), np.ones(len(true_levels)), weights
        ),
    )
