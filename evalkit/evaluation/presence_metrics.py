"""Accuracy of present types, their levels and shares, with intervals.

Measured on the documents whose mixture an expert vouched for: an expert who vouches only for segments has not said
which other types they contain. A document that was drawn with probability p counts as 1 / p documents in estimate and
interval; documents that nobody has reviewed are left out. A document without an answer counts as wrong, with no type
present.
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

#: Presence level of one type in each document; an empty string if there was no answer.
LevelArray = npt.NDArray[np.str_]


@dataclass(frozen=True)
class TypePresenceScores(TypeScores):
    """Precision, recall and F1 of one type's presence, and agreement on its level."""

    level_agreement: Estimate
    """Share of documents with exactly the right presence level, NO_EVIDENCE included."""


@dataclass(frozen=True)
class PresenceMetrics:
    """Mixture error over all types, and the presence scores of each type."""

    document_count: int
    mixture_error: Estimate
    """Mean share (0..1) of a document that is assigned to the wrong type."""
    reviewed_mixture_error: float
    """Unweighted mixture error of the reviewed documents; NaN without any."""
    by_type: tuple[TypePresenceScores, ...]
    reviewed_table_by_type: pd.DataFrame
    """Unweighted scores of the reviewed documents (:func:`~evalkit.evaluation.metrics.tabulate_presence_scores`)."""


def measure_type_presence(study: Study) -> PresenceMetrics:
    """Compare the agent's present types and mixtures with vouched ones."""
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
