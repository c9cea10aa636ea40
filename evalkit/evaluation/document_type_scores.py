"""How well the types of whole documents are told apart: accuracy, macro-F1 and each type by itself, with intervals.

Measured on the documents whose type an expert vouched for; one that was drawn with probability p stands for 1 / p.
Intervals are those of a bootstrap over documents, of one type over those that are of it or were said to be: what others
say of it tells nothing. That of macro-F1, whose coverage was not simulated, is over all: take it with care where a type
has few documents.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import fmean

import numpy as np
import numpy.typing as npt
import pandas as pd

from evalkit.evaluation.intervals import Estimate, RowNumbers, estimate_by_bootstrap
from evalkit.evaluation.metrics import compute_accuracy, compute_macro_f1, tabulate_confusion
from evalkit.evaluation.study import TYPE_NAMES, Study

_BOOTSTRAP_SEED = 20
_BOOTSTRAP_REPEATS = 300
_TABLE_SIZE = len(TYPE_NAMES) + 1

ConfusionCounts = npt.NDArray[np.float64]
"""Documents by true type (rows) and said type (columns), those that were said to be no type in the last column."""

DocumentFlags = npt.NDArray[np.bool_]
"""One a document."""


@dataclass(frozen=True)
class TypeScores:
    """One type."""

    type_name: str
    document_count: int
    """Reviewed documents that truly are of it."""
    precision: Estimate
    recall: Estimate
    f1: Estimate


@dataclass(frozen=True)
class DocumentTypeMetrics:
    """All types together and each by itself."""

    document_count: int
    confusion_table: pd.DataFrame
    """Reviewed documents by true type (rows) and what the pipeline said (columns), unweighted."""
    accuracy: Estimate
    reviewed_accuracy: float
    """Unweighted, of the reviewed documents alone; so is the other. NaN without any."""
    macro_f1: Estimate
    """The mean of the F1 of those types that occur."""
    reviewed_macro_f1: float
    type_scores: tuple[TypeScores, ...]


def score_document_types(study: Study) -> DocumentTypeMetrics:
    """The types of a study's documents."""
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
    weights = np.array([weight for *_, weight in labelled_documents])

    def estimate_measure(
        measure: Callable[[ConfusionCounts], float], included: DocumentFlags | None = None
    ) -> Estimate:
        """Of the documents that it is about; None: of all."""
        is_included = np.ones(len(labelled_documents), dtype=bool) if included is None else included
        cell_indices = type_codes[is_included] @ [_TABLE_SIZE, 1]

        def compute_statistic(row_indices: RowNumbers) -> float:
            return measure(
                np.bincount(cell_indices[row_indices], minlength=_TABLE_SIZE**2)
                .reshape(_TABLE_SIZE, _TABLE_SIZE)
                .astype(float)
            )

        return estimate_by_bootstrap(
            compute_statistic,
            len(cell_indices),
            seed=_BOOTSTRAP_SEED,
            repeats=_BOOTSTRAP_REPEATS,
            weights=weights[is_included].tolist(),
        )

    is_true_type, is_predicted_type = (type_codes[:, side, np.newaxis] == np.arange(len(TYPE_NAMES)) for side in (0, 1))
    return DocumentTypeMetrics(
        len(labelled_documents),
        tabulate_confusion(true_types, predicted_types, TYPE_NAMES),
        estimate_measure(_compute_accuracy),
        compute_accuracy(true_types, predicted_types),
        estimate_measure(_compute_macro_f1),
        compute_macro_f1(true_types, predicted_types),
        tuple(
            TypeScores(
                type_name,
                true_types.count(type_name),
                estimate_measure(partial(_compute_precision, type_index=type_index), is_predicted_type[:, type_index]),
                estimate_measure(partial(_compute_recall, type_index=type_index), is_true_type[:, type_index]),
                estimate_measure(
                    partial(_compute_f1, type_index=type_index),
                    is_true_type[:, type_index] | is_predicted_type[:, type_index],
                ),
            )
            for type_index, type_name in enumerate(TYPE_NAMES)
        ),
    )


def _get_type_code(type_name: str | None) -> int:
    """A type's place; what is none of the five, or not told, is behind them and never right."""
    return TYPE_NAMES.index(type_name) if type_name in TYPE_NAMES else len(TYPE_NAMES)


def _compute_accuracy(counts: ConfusionCounts) -> float:
    return float(np.trace(counts[:-1, :-1]) / counts.sum())


def _compute_macro_f1(counts: ConfusionCounts) -> float:
    scores = [
        score for type_index in range(len(TYPE_NAMES)) if not math.isnan(score := _compute_f1(counts, type_index))
    ]
    return fmean(scores) if scores else math.nan


def _compute_f1(counts: ConfusionCounts, type_index: int) -> float:
    """NaN where nothing is of the type or said to be."""
    return _divide_or_nan(2 * counts[type_index, type_index], counts[type_index].sum() + counts[:, type_index].sum())


def _compute_precision(counts: ConfusionCounts, type_index: int) -> float:
    return _divide_or_nan(counts[type_index, type_index], counts[:, type_index].sum())


def _compute_recall(counts: ConfusionCounts, type_index: int) -> float:
    return _divide_or_nan(counts[type_index, type_index], counts[type_index].sum())


def _divide_or_nan(numerator: float, denominator: float) -> float:
    return float(numerator / denominator) if denominator else math.nan
