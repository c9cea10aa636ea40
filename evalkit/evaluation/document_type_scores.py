"""Accuracy, macro-F1 and per-type scores of document types, with intervals.

Measured on the documents whose type an expert vouched for; a document that was drawn with probability p counts as 1 / p
documents. Intervals come from a bootstrap over documents; for the scores of one type, over the documents that have this
type or were classified as this type, because only these carry information. The interval of macro-F1 is over all
documents; its coverage was not simulated, so be careful if a type has few documents.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
import pandas as pd

from evalkit.evaluation.intervals import (
    BOOTSTRAP_REPEATS,
    BOOTSTRAP_SEED,
    Estimate,
    FloatArray,
    RowNumbers,
    estimate_by_bootstrap,
    estimate_ratio,
)
from evalkit.evaluation.metrics import compute_accuracy, compute_macro_f1, tabulate_confusion
from evalkit.evaluation.study import TYPE_NAMES, Study


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


@dataclass(frozen=True)
class DocumentTypeMetrics:
    """Accuracy and F1 over all document types, and the scores of each type."""

    document_count: int
    confusion_table: pd.DataFrame
    """Number of reviewed documents by true type (rows) and the program's type (columns), unweighted."""
    accuracy: Estimate
    reviewed_accuracy: float
    """Unweighted accuracy of the reviewed documents; NaN without any."""
    macro_f1: Estimate
    """Mean F1 over the types that occur."""
    reviewed_macro_f1: float
    """Unweighted macro-F1 of the reviewed documents; NaN without any."""
    type_scores: tuple[TypeScores, ...]


def score_document_types(study: Study) -> DocumentTypeMetrics:
    """Score the program's document types against the types that experts vouched for."""
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
    type_codes = np.array(
        [
            (_get_type_code(true_type), _get_type_code(predicted_type))
            for true_type, predicted_type, _ in labelled_documents
        ],
        dtype=np.intp,
    ).reshape(-1, 2)
    weights = [weight for *_, weight in labelled_documents]
    is_true_type, is_predicted_type = (type_codes[:, side, np.newaxis] == np.arange(len(TYPE_NAMES)) for side in (0, 1))
    is_right_type = is_true_type & is_predicted_type

    def compute_row_macro_f1(row_numbers: RowNumbers) -> float:
        right_counts = is_right_type[row_numbers].sum(axis=0)
        class_sums = is_true_type[row_numbers].sum(axis=0) + is_predicted_type[row_numbers].sum(axis=0)
        scores = 2 * right_counts[class_sums > 0] / class_sums[class_sums > 0]
        return fmean(scores) if len(scores) else math.nan

    return DocumentTypeMetrics(
        len(labelled_documents),
        tabulate_confusion(true_types, predicted_types, TYPE_NAMES),
        estimate_ratio(is_right_type.sum(axis=1, dtype=float), np.ones(len(labelled_documents)), weights),
        compute_accuracy(true_types, predicted_types),
        estimate_by_bootstrap(
            compute_row_macro_f1,
            len(labelled_documents),
            seed=BOOTSTRAP_SEED,
            repeats=BOOTSTRAP_REPEATS,
            weights=weights,
        ),
        compute_macro_f1(true_types, predicted_types),
        tuple(
            score_type(
                type_name, is_true_type[:, index].astype(float), is_predicted_type[:, index].astype(float), weights
            )
            for index, type_name in enumerate(TYPE_NAMES)
        ),
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


def _get_type_code(type_name: str | None) -> int:
    """Return a type's index in TYPE_NAMES; its length for an unknown or missing type."""
    return TYPE_NAMES.index(type_name) if type_name in TYPE_NAMES else len(TYPE_NAMES)
