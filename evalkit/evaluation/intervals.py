"""How sure a number is: intervals for shares, for any statistic, and for documents drawn with unequal probabilities.

Every function is pure; randomness comes in as a seed. Intervals are two-sided and lean to the wide side: what nobody
looked at is never taken for right.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import betaincinv, ndtr, stdtrit

Rows: TypeAlias = npt.NDArray[np.intp]
Numbers: TypeAlias = npt.NDArray[np.float64]

#: Shares that were multiplied and divided again may miss 0 and 1 by this much.
_ROUNDING = 1e-9

#: So many copies of rows stand for the population, or four of each row: enough for the shares that they make.
_MOST_COPIES = 20_000


class Estimate(NamedTuple):
    """A number and the interval that holds the truth with the asked probability."""

    value: float | None
    """None: nothing was observed."""
    low: float
    high: float
    n: float
    """How many observations it rests on; effective ones where they weigh differently."""
    method: str
    """In a word, for a table: exact, bootstrap, weighted."""


class Observed(NamedTuple):
    """What was found in a document that was looked at."""

    value: float | None
    """From 0 to 1, such as right 1 and wrong 0. None: it was drawn, but nobody can tell."""
    probability: float
    """With which it was drawn, above 0 and up to 1."""


def exact(right: float, n: float, level: float = 0.95) -> Estimate:
    """Share of right ones among ``n`` independent observations, with the Clopper-Pearson interval.

    Counts may be fractions, as effective sizes are. ValueError where ``right`` is not between 0 and ``n``.

    Source: Clopper and Pearson, Biometrika 26 (1934); the limits are quantiles of the beta distribution.

    >>> estimate = exact(9, 10)
    >>> [round(number, 4) for number in (estimate.value, estimate.low, estimate.high)]
    [0.9, 0.555, 0.9975]
    >>> exact(0, 0)
    Estimate(value=None, low=0.0, high=1.0, n=0, method='exact')
    """
    if not -_ROUNDING <= right <= n + _ROUNDING:
        raise ValueError(f"{right} right ones among {n}: it must be from 0 to {n}")
    if n == 0:
        return Estimate(None, 0.0, 1.0, n, "exact")
    right = min(max(right, 0.0), n)
    wrong = n - right
    tail = (1 - level) / 2
    low = float(betaincinv(right, wrong + 1, tail)) if right > 0 else 0.0
    high = float(betaincinv(right + 1, wrong, 1 - tail)) if wrong > 0 else 1.0
    return Estimate(right / n, low, high, n, "exact")


def upper_bound(wrong: int, n: int, level: float = 0.95) -> float:
    """The share of wrong ones that is not exceeded with probability ``level``: Clopper-Pearson, one-sided.

    >>> round(upper_bound(0, 299), 5), upper_bound(0, 0)
    (0.00997, 1.0)
    """
    if not 0 <= wrong <= n:
        raise ValueError(f"{wrong} wrong ones among {n}: it must be from 0 to {n}")
    return float(betaincinv(wrong + 1, n - wrong, level)) if wrong < n else 1.0


def audits_needed(rate: float, wrong: int = 0, level: float = 0.95) -> int:
    """The smallest number of audits, ``wrong`` of them wrong, that shows at most ``rate`` wrong ones.

    >>> audits_needed(0.01), audits_needed(0.05), audits_needed(0.01, wrong=1)
    (299, 59, 473)
    """
    if not 0 < rate <= 1:
        raise ValueError(f"a rate of {rate}: it must be above 0 and up to 1, because no number of audits shows 0")
    if upper_bound(wrong, wrong, level) <= rate:
        return wrong
    few, enough = wrong, max(1, 2 * wrong)
    while upper_bound(wrong, enough, level) > rate:
        few, enough = enough, 2 * enough
    while enough - few > 1:
        middle = (few + enough) // 2
        few, enough = (few, middle) if upper_bound(wrong, middle, level) <= rate else (middle, enough)
    return enough


def bootstrap(
    statistic: Callable[[Rows], float],
    n: int,
    *,
    seed: int,
    repeats: int = 1000,
    level: float = 0.95,
    groups: Sequence[Hashable] | None = None,
    weights: Sequence[float] | None = None,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> Estimate:
    """Any statistic of ``n`` rows, with the interval of its values in resamples.

    Args:
        statistic: from row numbers (0 … n - 1, some repeated, some missing) to a number within ``bounds``, or NaN
            where it is not defined for those rows.
        n: how many rows there are. Leave out those that tell nothing of the statistic, such as documents of other
            types: each row counts as an observation of it.
        seed: the same seed gives the same interval.
        repeats: how many resamples.
        level: how often the interval holds the truth.
        groups: one per row, such as its document. Rows of one group resemble each other, so that whole groups are
            drawn; the number of groups is then the number of observations.
        weights: one per row: how many of the population it stands for (1 / its inclusion probability, at least 1).
            Each drawn row is handed to ``statistic`` as often, so that the statistic needs no weights of its own.
        bounds: the worst and the best that the statistic can be.

    The percentiles of the resamples say how far the observed rows could have fallen out differently (a little further
    out than ``level``, because resamples of n observations vary less than samples do). They say nothing
    of what no row shows, and nothing at all where every row is right. With n observations, up to a share u of the
    population, (1 - u)^n = (1 - level) / 2, may be unlike all of them, and moves the statistic by at most u times the
    way to its bound. Both are independent and are added in quadrature. Where all rows are right, this is the exact
    interval; where hundreds vary, it is the percentiles. With weights, n is the sum of weights over the largest: a
    document of the part that was looked at most rarely is missed as if that many had been drawn alike.

    ValueError where the statistic leaves its bounds or weights are below 1.

    Source: Efron and Tibshirani, An Introduction to the Bootstrap (1993), chapter 13; the expanded percentiles of
    Hesterberg, The American Statistician 69 (2015); for the unseen, the rule of three (Hanley and Lippman-Hand, JAMA
    249, 1983).
    """
    worst, best = bounds
    if n == 0:
        return Estimate(None, worst, best, 0, "bootstrap")
    stands_for = np.ones(n) if weights is None else np.asarray(weights, dtype=float)
    if stands_for.min() < 1 - _ROUNDING:
        raise ValueError(f"a weight of {stands_for.min()}: a row stands at least for itself")

    members = _members(n, groups)
    units = len(members.sizes)
    copies = stands_for * min(
        1.0, max(_MOST_COPIES, 4 * n) / stands_for.sum()
    )  # in proportion, where there would be millions
    value = statistic(_copies(members, np.arange(units), copies, weights is not None))
    if math.isnan(value):
        return Estimate(None, worst, best, 0, "bootstrap")
    if not worst - _ROUNDING <= value <= best + _ROUNDING:
        raise ValueError(f"the statistic is {value}, which is not between {worst} and {best}")

    random = np.random.default_rng(seed)
    resampled = [
        statistic(_copies(members, random.integers(units, size=units), copies, weights is not None))
        for _ in range(repeats)
    ]
    observations = _least_effective(np.add.reduceat(stands_for[members.order], members.starts) / members.sizes)
    tail = (1 - level) / 2
    wider = _wider(tail, max(observations, 2))
    low, high = np.nanquantile([value, *resampled], [wider, 1 - wider], method="weibull")
    unseen = 1 - tail ** (1 / observations)
    below = math.hypot(max(value - low, 0.0), unseen * (value - worst))
    above = math.hypot(max(high - value, 0.0), unseen * (best - value))
    return Estimate(value, max(value - below, worst), min(value + above, best), observations, "bootstrap")


def _wider(tail: float, n: float) -> float:
    """The tail for percentiles that are as wide as the t interval of so many observations, where that is right."""
    return float(ndtr(math.sqrt(n / (n - 1)) * stdtrit(n - 1, tail)))


class _Members(NamedTuple):
    """The rows of each group: those of group i are ``order[starts[i] : starts[i] + sizes[i]]``."""

    order: Rows
    starts: Rows
    sizes: Rows


def _members(n: int, groups: Sequence[Hashable] | None) -> _Members:
    if groups is None:
        return _Members(np.arange(n), np.arange(n), np.ones(n, dtype=np.intp))
    if len(groups) != n:
        raise ValueError(f"{len(groups)} groups for {n} rows")
    codes = pd.factorize(pd.Series(list(groups), dtype=object))[0]
    sizes = np.bincount(codes)
    return _Members(np.argsort(codes, kind="stable"), np.cumsum(sizes) - sizes, sizes)


def _copies(members: _Members, drawn: Rows, stands_for: Numbers, weighted: bool) -> Rows:
    """The rows of the groups that were drawn, each as often as it weighs; fractions are carried to the next row."""
    sizes = members.sizes[drawn]
    within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    rows: Rows = members.order[np.repeat(members.starts[drawn], sizes) + within]
    if not weighted:
        return rows
    ends: Rows = np.rint(np.cumsum(stands_for[rows])).astype(np.intp)
    return np.repeat(rows, np.diff(ends, prepend=0))


def _least_effective(weights: Numbers) -> float:
    """How many observations of the largest weight the sum of all weights is."""
    return float(weights.sum() / weights.max())


def weighted(observed: Sequence[Observed], population: int, *, take_all: int, level: float = 0.95) -> Estimate:
    """Mean over all documents of a population of which a part was certain to be looked at and others were drawn.

    Args:
        observed: what was found, one per document that was looked at.
        population: how many documents were processed; all of them are in the denominator.
        take_all: how many of them had probability 1 (escalated ones). All observations with probability 1 are of
            these; what is missing of them is pending, unreadable or undeterminable.
        level: how often the interval holds the truth.

    The mean over reviewed documents is not the mean over all: the hard ones are escalated and all reviewed, the easy
    ones rarely. So each part is counted for as many documents as it has.

    - *Certain part.* Nothing is estimated. Missing ones count as 0 in the value; the low end counts them as 0 and the
      high end as 1, because they are not missing by chance.
    - *Drawn part* (``population - take_all`` documents). The share is the ratio of sums weighted with 1 / probability;
      dividing by the weights that came instead of those expected makes it steadier. Its interval is Clopper-Pearson
      for an effective number of observations, because normal intervals fail where almost all are right. That number
      is the sum of weights over the largest weight: as if all had been drawn as rarely as the rarest. It never
      exceeds the two usual ones, Kish's (sum of weights)² / sum of squares, and the one at which a simple sample has the
      linearised variance of independent draws, sum of w (w - 1) e² / (sum of w)²; simulated, these two are too
      optimistic where the wrong ones are in a part that was seldom looked at. Nor does it exceed the number
      observed. Of drawn documents whose value is None the low end knows 0 and the high end 1, as above. Those drawn
      and not yet looked at may be left out where they were not put off for what is in them.
    - *Together*: the two sums divided by the population. The value is None where nothing was observed at all, or nothing
      of a drawn part that has documents.

    ValueError where there are more observations than documents or a number is outside its range.

    Source: Horvitz and Thompson, JASA 47 (1952), weights by inclusion probability; Hájek (1971), the ratio; Kish,
    Survey Sampling (1965), effective size; Korn and Graubard, Survey Methodology 24 (1998), Clopper-Pearson on it.

    >>> reviews = [Observed(0, 1)] * 10 + [Observed(1, 1)] * 10 + [Observed(1, 0.05)] * 19 + [Observed(0, 0.05)]
    >>> estimate = weighted(reviews, 420, take_all=20)
    >>> round(estimate.value, 4), round(estimate.low, 3), round(estimate.high, 3)
    (0.9286, 0.739, 0.975)
    """
    certain = [one.value for one in observed if one.probability == 1]
    drawn = [one for one in observed if one.probability != 1]
    _check(observed, len(certain), len(drawn), population, take_all)
    known = [value for value in certain if value is not None]
    answered = [one for one in drawn if one.value is not None]
    rest = population - take_all

    least, most = _share(drawn, 0.0, level), _share(drawn, 1.0, level)
    right = sum(known)
    n = len(known) + (least.n if answered else 0)
    if population == 0 or n == 0 or (rest and not answered):
        value = None
    else:
        value = (right + rest * (least.value or 0)) / population
    low = (right + rest * least.low) / population if population else 0.0
    high = (right + take_all - len(known) + rest * most.high) / population if population else 1.0
    return Estimate(value, low, high, n, "weighted")


def _check(observed: Sequence[Observed], certain: int, drawn: int, population: int, take_all: int) -> None:
    for one in observed:
        if not 0 < one.probability <= 1:
            raise ValueError(f"an inclusion probability of {one.probability}: it must be above 0 and up to 1")
        if one.value is not None and not 0 <= one.value <= 1:
            raise ValueError(f"a value of {one.value}: it must be from 0 to 1")
    if not certain <= take_all <= population:
        raise ValueError(f"{certain} observed, {take_all} certain, {population} in all: each must hold the one before")
    if drawn > population - take_all:
        raise ValueError(f"{drawn} observations of {population - take_all} documents that could be drawn")


def _share(drawn: Sequence[Observed], unknown: float, level: float) -> Estimate:
    """The weighted share of the drawn part, values that nobody can tell taken as ``unknown``."""
    if not drawn:
        return Estimate(None, 0.0, 1.0, 0, "weighted")
    values = np.array([unknown if one.value is None else one.value for one in drawn], dtype=float)
    weights = 1 / np.array([one.probability for one in drawn], dtype=float)
    share = float(np.average(values, weights=weights))
    n = _least_effective(weights)
    return exact(share * n, n, level)
