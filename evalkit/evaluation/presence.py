"""Which types are present in documents, how strongly, and in which shares: with intervals.

Measured on the documents whose mixture an expert vouched for: who stands for segments alone has not said what else is in
them. One that was drawn with probability p stands for 1 / p, in the figure and in its interval; those that nobody looked
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
from evalkit.evaluation.intervals import Estimate, Numbers, Rows, bootstrap
from evalkit.evaluation.metrics import mixture_error, presence_scores
from evalkit.evaluation.study import TYPES, Labels, Study

_SEED = 20
_REPEATS = 300

Levels = npt.NDArray[np.str_]
"""Presence level by document; empty where there was no answer."""


@dataclass(frozen=True)
class PresenceScores:
    """One type."""

    type: str
    documents: int
    """Reviewed documents that it truly is in, at any level but NO_EVIDENCE."""
    precision: Estimate
    recall: Estimate
    f1: Estimate
    level_agreement: Estimate
    """The share of documents with the same level to the word, NO_EVIDENCE included."""


@dataclass(frozen=True)
class Presence:
    """All types together and each by itself."""

    documents: int
    mixture_error: Estimate
    """The share of a document that was put under the wrong type, 0..1, mean over documents."""
    mixture_error_reviewed: float
    """Unweighted, of the reviewed documents alone; NaN without any."""
    by_type: tuple[PresenceScores, ...]
    by_type_reviewed: pd.DataFrame
    """Of the reviewed documents alone, unweighted, as :func:`~evalkit.evaluation.metrics.presence_scores` has it."""


def presence(study: Study) -> Presence:
    """What is present in a study's documents."""
    known = [
        (one.truth.labels, one.agent, one.weight) for one in study.reviewed if one.truth and one.truth.says("mixture")
    ]
    weights = [weight for *_, weight in known]
    errors = [mixture_error(truth.mixture, said.mixture if said else None) for truth, said, _ in known]
    return Presence(
        len(known),
        _ratio(np.array(errors), np.ones(len(known)), weights),
        fmean(errors) if errors else math.nan,
        tuple(
            _scores(
                kind,
                _levels([truth for truth, _, _ in known], kind),
                _levels([said for _, said, _ in known], kind),
                weights,
            )
            for kind in TYPES
        ),
        presence_scores(
            [truth.presence for truth, _, _ in known], [said.presence if said else None for _, said, _ in known]
        ),
    )


def _levels(labels: Sequence[Labels | None], kind: str) -> Levels:
    return np.array(
        ["" if one is None else str(one.presence.get(kind, PresenceLevel.NO_EVIDENCE)) for one in labels], str
    )


def _scores(kind: str, true: Levels, said: Levels, weights: Sequence[float]) -> PresenceScores:
    is_there = (true != PresenceLevel.NO_EVIDENCE).astype(float)
    is_claimed = (~np.isin(said, ["", PresenceLevel.NO_EVIDENCE])).astype(float)
    found = is_there * is_claimed
    return PresenceScores(
        kind,
        int(is_there.sum()),
        _ratio(found, is_claimed, weights),
        _ratio(found, is_there, weights),
        _ratio(2 * found, is_there + is_claimed, weights),
        _ratio((true == said).astype(float), np.ones(len(true)), weights),
    )


def _ratio(part: Numbers, whole: Numbers, weights: Sequence[float]) -> Estimate:
    """The sum of the parts over that of the wholes; documents without any tell nothing, however many they are."""
    tells = np.flatnonzero(whole)

    def of(rows: Rows) -> float:
        return float(part[tells[rows]].sum() / whole[tells[rows]].sum())

    stand_for = [weights[place] for place in tells.tolist()]
    return bootstrap(of, len(tells), seed=_SEED, repeats=_REPEATS, weights=stand_for)
