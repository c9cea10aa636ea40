"""Whether a confidence means what it says, and what could be accepted on its word.

Pure functions of parallel lists, one entry a document: the confidence or another score (higher is surer) and whether
the answer was right. Nothing here changes a decision: :func:`certificate` offers a threshold with its proof, V5 stays
the table that it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.metrics import brier_score_loss

from evalkit.evaluation.intervals import audits_needed, exact, upper_bound

_Numbers: TypeAlias = npt.NDArray[np.float64]


class Certificate(NamedTuple):
    """What blind audits show about accepting above a threshold."""

    threshold: float | None
    """Accept where the score is at least this. None: nothing could be shown."""
    coverage: float
    """Share of the audited documents at or above it, 0 to 1."""
    wrong: int
    """How many of those were wrong; without a threshold, at the one that came closest. So are the next two."""
    n: int
    """How many audits are at or above it."""
    bound: float
    """What their share of wrong ones does not exceed, at the asked level."""
    more_audits: int
    """How many audits at or above it, all right, are missing; 0 with a threshold."""


def reliability(
    confidence: Sequence[float],
    right: Sequence[bool],
    weights: Sequence[float] | None = None,
    bins: int = 10,
    equal_mass: bool = False,
) -> pd.DataFrame:
    """Confidence against accuracy: ``low, high, n, confidence, accuracy, accuracy_low, accuracy_high`` per bin.

    The bins are equally wide or, for ``equal_mass``, hold equally many documents as far as equal confidences allow.
    They are above ``low`` and up to ``high``, the first one with 0; those that nothing fell into are left out. ``n`` counts documents; ``confidence`` and ``accuracy`` are means (weighted), and the interval is
    exact at 95 % for the effective number of documents, the sum of weights over the largest.

    Source: the binning is that of scikit-learn's ``calibration_curve``.

    >>> reliability([0.95, 0.9, 0.1], [True, False, False], bins=2).round(3)
       low  high  n  confidence  accuracy  accuracy_low  accuracy_high
    0  0.0   0.5  1       0.100       0.0         0.000          0.975
    1  0.5   1.0  2       0.925       0.5         0.013          0.987
    """
    said, was, weight = _columns(confidence, right, weights)
    _check_probabilities(said)
    edges = _edges(said, bins, equal_mass)
    places = np.searchsorted(edges[1:-1], said)
    rows = []
    for place in np.unique(places):
        inside = places == place
        accuracy = float(np.average(was[inside], weights=weight[inside]))
        n = weight[inside].sum() / weight[inside].max()  # as intervals.weighted, and for its reasons
        interval = exact(accuracy * n, n)
        rows.append(
            (
                edges[place],
                edges[place + 1],
                int(inside.sum()),
                np.average(said[inside], weights=weight[inside]),
                accuracy,
                interval.low,
                interval.high,
            )
        )
    names = ["low", "high", "n", "confidence", "accuracy", "accuracy_low", "accuracy_high"]
    return pd.DataFrame(rows, columns=names)


def expected_calibration_error(
    confidence: Sequence[float],
    right: Sequence[bool],
    weights: Sequence[float] | None = None,
    bins: int = 10,
    equal_mass: bool = False,
) -> float:
    """Mean distance of confidence and accuracy over the bins of :func:`reliability`, each by its weight; 0 to 1.

    NaN without documents. Source: Naeini, Cooper and Hauskrecht, AAAI 2015.

    >>> expected_calibration_error([0.75, 0.75, 0.25], [True, True, False], bins=2)
    0.25
    """
    said, was, weight = _columns(confidence, right, weights)
    _check_probabilities(said)
    if not len(said):
        return float("nan")
    places = np.searchsorted(_edges(said, bins, equal_mass)[1:-1], said)
    gaps = np.bincount(places, weights=weight * (said - was))
    return float(np.abs(gaps).sum() / weight.sum())


def _edges(said: _Numbers, bins: int, equal_mass: bool) -> _Numbers:
    """Where bins begin and end, from 0 to 1."""
    edges = np.linspace(0.0, 1.0, bins + 1)
    if equal_mass and len(said):
        edges[1:-1] = np.quantile(said, edges[1:-1])
    return edges


def brier(confidence: Sequence[float], right: Sequence[bool], weights: Sequence[float] | None = None) -> float:
    """Mean squared distance of confidence and outcome, 0 (sure and right) to 1 (sure and wrong); NaN without any.

    Source: Brier, Monthly Weather Review 78 (1950); scikit-learn computes it.
    """
    said, was, weight = _columns(confidence, right, weights)
    _check_probabilities(said)
    if not len(said):
        return float("nan")
    return float(brier_score_loss(was, said, sample_weight=weight, pos_label=1, labels=[0, 1]))


def risk_coverage(
    score: Sequence[float], right: Sequence[bool], weights: Sequence[float] | None = None
) -> pd.DataFrame:
    """What accepting from each score upwards would cover and cost: ``threshold, coverage, risk, n``, highest first.

    ``coverage`` is the share of all documents that is accepted, ``risk`` the wrong share of those (both weighted),
    ``n`` how many they are. To be looked at, not to choose by: a threshold chosen here is lucky (:func:`certificate`).

    Source: El-Yaniv and Wiener, JMLR 11 (2010).

    >>> risk_coverage([0.9, 0.8, 0.8, 0.1], [True, True, False, False]).round(3)
       threshold  coverage   risk  n
    0        0.9      0.25  0.000  1
    1        0.8      0.75  0.333  3
    2        0.1      1.00  0.500  4
    """
    surest, was, weight = _columns(score, right, weights)
    order = np.argsort(-surest)
    surest, was, weight = surest[order], was[order], weight[order]
    # Equal scores are accepted together: only the last of each counts.
    last = np.flatnonzero(np.diff(surest, append=-np.inf))
    accepted = np.cumsum(weight)[last]
    return pd.DataFrame(
        {
            "threshold": surest[last],
            "coverage": accepted / weight.sum(),
            "risk": np.cumsum(weight * (1 - was))[last] / accepted,
            "n": last + 1,
        }
    )


def certificate(
    score: Sequence[float],
    right: Sequence[bool],
    *,
    rate: float,
    level: float = 0.95,
    candidates: int | Sequence[float] = 10,
) -> Certificate:
    """The lowest threshold for which blind audits show that at most ``rate`` of what it accepts is wrong.

    Args:
        score: of each audited document; higher is surer.
        right: what the audit found.
        rate: the share of wrong ones that may be accepted, between 0 and 1.
        level: with which probability the offered threshold keeps it.
        candidates: which thresholds may be tried, fixed before any outcome is known: the numbers themselves, or how
            many of the audits' scores to take.

    *What may be passed.* Audits of one design only: blind, drawn by chance, all with the same probability. Binomial
    bounds say nothing of escalated cases, or of audits at 20 % and at 5 % put together; :func:`thinned` makes the
    latter equal.

    *Why several thresholds may be tried.* They are tried in a fixed order, from high to low, and the first failure
    ends it. An offer that breaks the promise needs the first threshold that truly breaks it to pass, and that happens
    with probability 1 - level at most; no correction is needed. What is tried may depend on scores, never on
    outcomes: thresholds with too few audits to pass even without an error are left out. Where ``candidates`` is a
    number, they are spread over the audits' distinct scores, the last accepting everything, and the first is left
    room for one error or two where half of the audits allow it, because a single failure ends it. The statement is
    then about documents with the audits' scores. Thresholds from the scores of all documents
    (``np.quantile(all_scores, …)``), or round numbers, make it one about all documents.

    *One look.* The level holds for one call on one set of audits. Whoever asks again after every audit until
    something passes will be lucky too often: do the ``more_audits`` first, then ask.

    Nothing passed: ``threshold`` is None, ``coverage`` 0, and ``more_audits`` is the smallest number of further
    audits, all right, at which one of the thresholds would pass (of equal ones the lowest).

    Source: Clopper-Pearson bounds tested in fixed sequence: Bauer, Statistics in Medicine 10 (1991); for thresholds
    of a model Geifman and El-Yaniv (NeurIPS 2017) and Angelopoulos et al., Learn then Test (2021).

    >>> audits = [0.9] * 59 + [0.5] * 41
    >>> certificate(audits, [True] * 59 + [False] * 41, rate=0.05)._replace(bound=0)
    Certificate(threshold=0.9, coverage=0.59, wrong=0, n=59, bound=0, more_audits=0)
    >>> certificate([0.9] * 50, [True] * 50, rate=0.05).more_audits
    9
    """
    if not 0 < rate < 1:
        raise ValueError(f"a rate of {rate}: it must be between 0 and 1")
    surest, was, _ = _columns(score, right, None)
    if isinstance(candidates, int):
        known = _accepting(surest, was, surest)
        first = _first_size(len(surest), rate, level)
        tried = _spread([one for one in known if one.n >= first], candidates)
    else:
        known = _accepting(surest, was, np.asarray(candidates, dtype=float))
        tried = [one for one in known if one.n >= audits_needed(rate, 0, level)]

    passed = list(takewhile(lambda one: one.bound(level) <= rate, tried))
    if passed:
        lowest = passed[-1]
        coverage = lowest.n / len(surest)
        return Certificate(lowest.threshold, coverage, lowest.wrong, lowest.n, lowest.bound(level), 0)
    # Of those with equally many errors the lowest has the most audits, and so the fewest missing.
    failed = {one.wrong: one for one in known if one.bound(level) > rate} or {0: _Accepting(np.inf, 0, 0)}
    more, closest = min(
        ((audits_needed(rate, one.wrong, level) - one.n, one) for one in failed.values()),
        key=lambda pair: (pair[0], pair[1].threshold),
    )
    return Certificate(None, 0.0, closest.wrong, closest.n, closest.bound(level), more)


def thinned(probabilities: Sequence[float], seed: int) -> npt.NDArray[np.intp]:
    """Which rows stay so that those that stay were drawn with equal probability: each with min(p) / p.

    What was drawn at 20 % and at 5 % becomes a sample at 5 %. The choice looks at probabilities alone.

    ValueError where a probability is not above 0 and up to 1.

    >>> thinned([0.05, 0.05, 0.05], seed=0)
    array([0, 1, 2])
    """
    drawn = np.asarray(probabilities, dtype=float)
    if not ((drawn > 0) & (drawn <= 1)).all():
        raise ValueError("inclusion probabilities must be above 0 and up to 1")
    stays = np.random.default_rng(seed).random(len(drawn)) * drawn < drawn.min(initial=1.0)
    return np.flatnonzero(stays)


class _Accepting(NamedTuple):
    """The audits at or above a threshold."""

    threshold: float
    n: int
    wrong: int

    def bound(self, level: float) -> float:
        return upper_bound(self.wrong, self.n, level)


def _accepting(score: _Numbers, right: _Numbers, thresholds: _Numbers) -> list[_Accepting]:
    """From the highest threshold to the lowest."""
    descending = np.unique(thresholds)[::-1]
    all_scores, wrong_scores = np.sort(score), np.sort(score[right == 0])
    n = len(all_scores) - np.searchsorted(all_scores, descending)
    wrong = len(wrong_scores) - np.searchsorted(wrong_scores, descending)
    return [_Accepting(float(t), int(a), int(w)) for t, a, w in zip(descending, n, wrong, strict=True)]


def _first_size(n: int, rate: float, level: float) -> int:
    """How many audits the first threshold to be tried has at least: as few as can pass, or with room for errors."""
    least, *roomier = [audits_needed(rate, errors, level) for errors in (0, 1, 2)]
    return max([least, *(size for size in roomier if size <= n / 2)])


def _spread(tables: Sequence[_Accepting], count: int) -> list[_Accepting]:
    """At most so many, evenly spread, the first and the last among them (of one, the last)."""
    if not tables:
        return []
    places = np.linspace(len(tables) - 1, 0, count).round().astype(int)
    return [tables[place] for place in np.unique(places)]


def _columns(
    score: Sequence[float], right: Sequence[bool], weights: Sequence[float] | None
) -> tuple[_Numbers, _Numbers, _Numbers]:
    scores, was = np.asarray(score, dtype=float), np.asarray(right, dtype=float)
    weight = np.ones(len(scores)) if weights is None else np.asarray(weights, dtype=float)
    if not len(scores) == len(was) == len(weight):
        raise ValueError(f"{len(scores)} scores, {len(was)} outcomes, {len(weight)} weights: one of each a document")
    if np.isnan(scores).any():
        raise ValueError("a score is not a number: leave out the documents without one, and say how many they are")
    return scores, was, weight


def _check_probabilities(confidence: _Numbers) -> None:
    if ((confidence < 0) | (confidence > 1)).any():
        raise ValueError("a confidence must be from 0 to 1")
