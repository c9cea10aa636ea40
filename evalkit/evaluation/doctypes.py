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

from evalkit.evaluation.intervals import Estimate, Rows, bootstrap
from evalkit.evaluation.metrics import accuracy, confusion, macro_f1
from evalkit.evaluation.study import TYPES, Study

_SEED = 20
_REPEATS = 300
_SIDE = len(TYPES) + 1

Counts = npt.NDArray[np.float64]
"""Documents by true type (rows) and said type (columns), those that were said to be no type in the last column."""

Flags = npt.NDArray[np.bool_]
"""One a document."""


@dataclass(frozen=True)
class TypeScores:
    """One type."""

    type: str
    documents: int
    """Reviewed documents that truly are of it."""
    precision: Estimate
    recall: Estimate
    f1: Estimate


@dataclass(frozen=True)
class Types:
    """All types together and each by itself."""

    documents: int
    confusion: pd.DataFrame
    """Reviewed documents by true type (rows) and what the pipeline said (columns), unweighted."""
    accuracy: Estimate
    accuracy_reviewed: float
    """Unweighted, of the reviewed documents alone; so is the other. NaN without any."""
    macro_f1: Estimate
    """The mean of the F1 of those types that occur."""
    macro_f1_reviewed: float
    by_type: tuple[TypeScores, ...]


def doctypes(study: Study) -> Types:
    """The types of a study's documents."""
    pairs = [
        (one.truth.labels.dominant_type or "", one.agent.dominant_type if one.agent else None, one.weight)
        for one in study.reviewed
        if one.truth and one.truth.says("dominant_type")
    ]
    truth, said = [one for one, _, _ in pairs], [one for _, one, _ in pairs]
    codes = np.array([(_code(true), _code(other)) for true, other, _ in pairs], dtype=np.intp).reshape(-1, 2)
    weights = np.array([weight for *_, weight in pairs])

    def estimate(of: Callable[[Counts], float], about: Flags | None = None) -> Estimate:
        """Of the documents that it is about; None: of all."""
        chosen = np.ones(len(pairs), dtype=bool) if about is None else about
        cells = codes[chosen] @ [_SIDE, 1]

        def statistic(rows: Rows) -> float:
            return of(np.bincount(cells[rows], minlength=_SIDE**2).reshape(_SIDE, _SIDE).astype(float))

        return bootstrap(statistic, len(cells), seed=_SEED, repeats=_REPEATS, weights=weights[chosen].tolist())

    is_true, is_said = (codes[:, side, np.newaxis] == np.arange(len(TYPES)) for side in (0, 1))
    return Types(
        len(pairs),
        confusion(truth, said, TYPES),
        estimate(_accuracy),
        accuracy(truth, said),
        estimate(_macro_f1),
        macro_f1(truth, said),
        tuple(
            TypeScores(
                kind,
                truth.count(kind),
                estimate(partial(_precision, at=place), is_said[:, place]),
                estimate(partial(_recall, at=place), is_true[:, place]),
                estimate(partial(_f1, at=place), is_true[:, place] | is_said[:, place]),
            )
            for place, kind in enumerate(TYPES)
        ),
    )


def _code(kind: str | None) -> int:
    """A type's place; what is none of the five, or not told, is behind them and never right."""
    return TYPES.index(kind) if kind in TYPES else len(TYPES)


def _accuracy(counts: Counts) -> float:
    return float(np.trace(counts[:-1, :-1]) / counts.sum())


def _macro_f1(counts: Counts) -> float:
    scores = [score for at in range(len(TYPES)) if not math.isnan(score := _f1(counts, at))]
    return fmean(scores) if scores else math.nan


def _f1(counts: Counts, at: int) -> float:
    """NaN where nothing is of the type or said to be."""
    return _ratio(2 * counts[at, at], counts[at].sum() + counts[:, at].sum())


def _precision(counts: Counts, at: int) -> float:
    return _ratio(counts[at, at], counts[:, at].sum())


def _recall(counts: Counts, at: int) -> float:
    return _ratio(counts[at, at], counts[at].sum())


def _ratio(part: float, whole: float) -> float:
    return float(part / whole) if whole else math.nan
