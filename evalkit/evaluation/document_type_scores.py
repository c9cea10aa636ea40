"""Accuracy of document types, present types and shares, with intervals.

Types are measured on the documents whose type an expert vouched for; levels and shares on those whose mixture an expert
vouched for, because an expert who vouches only for segments has not said which other types they contain. A document
that was drawn with probability p counts as 1 / p documents; documents that nobody has reviewed are left out, and a
document without an answer counts as wrong. Intervals come from a bootstrap over documents; for the scores of one type,
over the documents that have this type or were classified as this type, because only these carry information. The
interval of macro-F1 is over all documents; its coverage was not simulated, so be careful if a type has few documents.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
import numpy.typing as npt
import pandas as pd

from evalkit.classification.schema import PresenceLevel
from evalkit.document_types import list_type_names
from evalkit.evaluation.intervals import (
    BOOTSTRAP_REPEATS,
    BOOTSTRAP_SEED,
    Estimate,
    FloatArray,
    Quantity,
    RowNumbers,
    estimate_by_bootstrap,
    estimate_ratio,
)
from evalkit.evaluation.metrics import (
    compute_accuracy,
    compute_cohen_kappa,
    compute_macro_f1,
    compute_mixture_error,
    tabulate_confusion,
)
from evalkit.evaluation.study import DocumentLabels, Study

#: Resamples for the interval of kappa: each counts all pairs of types anew.
_KAPPA_REPEATS = 100


@dataclass(frozen=True)
class TypeScores:
    """Precision, recall and F1 of one document type."""

    type_name: str
    document_count: int
    """Number of reviewed documents that truly have this type; for presence scores, in which the type is truly
    present."""
    precision: Estimate
    recall: Estimate
    f1: Estimate


def score_document_types(study: Study) -> tuple[dict[str, tuple[Estimate, float]], list[TypeScores], pd.DataFrame]:
    """Score the program's document types against types that experts confirmed.

    Returns the measures over all types by name, each with its unweighted value for the reviewed documents (NaN without
    any); the scores of each type; and the number of reviewed documents by true type (rows) and the program's (columns).
    """
    labelled_documents = [
        (
            candidate.truth.labels.dominant_type or "",
            candidate.agent_labels.dominant_type if candidate.agent_labels else None,
            candidate.sampling_weight,
        )
        for candidate in study.reviewed_documents
        if candidate.truth and candidate.truth.is_vouched("dominant_type")
    ]
    true_types, predicted_types = (
        [candidate for candidate, _, _ in labelled_documents],
        [candidate for _, candidate, _ in labelled_documents],
    )
    type_names = list_type_names()
    # an unknown or missing type has the index after the last
    type_codes = np.array(
        [
            [type_names.index(name) if name in type_names else len(type_names) for name in (true_type, predicted_type)]
            for true_type, predicted_type, _ in labelled_documents
        ],
        dtype=np.intp,
    ).reshape(-1, 2)
    weights = [weight for *_, weight in labelled_documents]
    is_true_type, is_predicted_type = (type_codes[:, side, np.newaxis] == np.arange(len(type_names)) for side in (0, 1))
    is_right_type = is_true_type & is_predicted_type

    def compute_row_macro_f1(row_numbers: RowNumbers) -> float:
        right_counts = is_right_type[row_numbers].sum(axis=0)
        class_sums = is_true_type[row_numbers].sum(axis=0) + is_predicted_type[row_numbers].sum(axis=0)
        scores = 2 * right_counts[class_sums > 0] / class_sums[class_sums > 0]
        return fmean(scores) if len(scores) else math.nan

    measures = {
        "accuracy": (
            estimate_ratio(is_right_type.sum(axis=1, dtype=float), np.ones(len(labelled_documents)), weights),
            compute_accuracy(true_types, predicted_types),
        ),
        "macro F1": (
            estimate_by_bootstrap(
                compute_row_macro_f1,
                len(labelled_documents),
                seed=BOOTSTRAP_SEED,
                repeats=BOOTSTRAP_REPEATS,
                weights=weights,
            ),
            compute_macro_f1(true_types, predicted_types),
        ),
        "Cohen's kappa of the program and the truth": (
            estimate_cohen_kappa(true_types, predicted_types, weights),
            compute_cohen_kappa(true_types, predicted_types),
        ),
    }
    type_scores = [
        score_type(type_name, is_true_type[:, index].astype(float), is_predicted_type[:, index].astype(float), weights)
        for index, type_name in enumerate(type_names)
    ]
    return measures, type_scores, tabulate_confusion(true_types, predicted_types, type_names)


def estimate_cohen_kappa(
    first_types: Sequence[str | None], second_types: Sequence[str | None], weights: Sequence[float] | None = None
) -> Quantity:
    """Estimate Cohen's kappa of two answers by bootstrap over their common cases.

    >>> [round(number, 2) for number in estimate_cohen_kappa(["Note", "Other"] * 20, ["Note", "Other"] * 19 + ["Note"] * 2)[:3]]
    [0.95, 0.72, 1.0]
    """
    first, second = np.array(first_types, dtype=object), np.array(second_types, dtype=object)
    return Quantity(
        *estimate_by_bootstrap(
            lambda rows: compute_cohen_kappa(first[rows].tolist(), second[rows].tolist()),
            len(first),
            seed=BOOTSTRAP_SEED,
            repeats=_KAPPA_REPEATS,
            weights=weights,
            value_range=(-1.0, 1.0),
        )
    )


def score_type(type_name: str, is_true: FloatArray, is_predicted: FloatArray, weights: Sequence[float]) -> TypeScores:
    """Compute precision, recall and F1 of one type, with intervals.

    ``is_true`` and ``is_predicted`` have one entry per document: 1 if the document has (was given) the type, else 0.
    """
    is_right = is_true * is_predicted
    return TypeScores(
        type_name,
        int(is_true.sum()),
        precision=estimate_ratio(is_right, is_predicted, weights),
        recall=estimate_ratio(is_right, is_true, weights),
        f1=estimate_ratio(2 * is_right, is_true + is_predicted, weights),
    )


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


def measure_type_presence(study: Study) -> PresenceMetrics:
    """Compare the agent's present types and mixtures with confirmed ones."""
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
            for type_name in list_type_names()
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
