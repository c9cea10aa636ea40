"""Intervals for shares, any statistic, and unequal inclusion probabilities.

Every function is pure; randomness comes in as a seed. Intervals are two-sided and lean to the wide side: what nobody
looked at is never taken for right.
"""

from __future__ import annotations

import math
import sys
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, ndtr, stdtrit

RowNumbers: TypeAlias = npt.NDArray[np.intp]
FloatArray: TypeAlias = npt.NDArray[np.float64]

#: Shares that were multiplied and divided again may miss 0 and 1 by this much.
_ROUNDING_TOLERANCE = 1e-9

#: Of the resampling in reports: equal studies have equal intervals.
BOOTSTRAP_SEED = 20
BOOTSTRAP_REPEATS = 300

#: So many copies of rows represent the population, or four of each row: enough for the shares that they make.
_MAX_ROW_COPIES = 20_000


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


class Observation(NamedTuple):
    """Finding in one document that was reviewed."""

    value: float | None
    """From 0 to 1, such as right 1 and wrong 0. None: it was drawn, but nobody can tell."""
    inclusion_probability: float
    """With which it was drawn, above 0 and up to 1."""


def estimate_proportion(successes: float, trials: float, confidence_level: float = 0.95) -> Estimate:
    """Estimate a share of independent trials with the Clopper-Pearson interval.

    Counts may be fractions, as effective sizes are. ValueError where ``successes`` is not between 0 and ``trials``.

    Source: Clopper and Pearson, Biometrika 26 (1934); the limits are quantiles of the beta distribution.

    >>> estimate = estimate_proportion(9, 10)
    >>> [round(number, 4) for number in (estimate.value, estimate.low, estimate.high)]
    [0.9, 0.555, 0.9975]
    >>> estimate_proportion(0, 0)
    Estimate(value=None, low=0.0, high=1.0, n=0, method='exact')
    """
    if not -_ROUNDING_TOLERANCE <= successes <= trials + _ROUNDING_TOLERANCE:
        raise ValueError(f"{successes} right ones among {trials}: it must be from 0 to {trials}")
    if trials == 0:
        return Estimate(None, 0.0, 1.0, trials, "exact")
    successes = min(max(successes, 0.0), trials)
    failures = trials - successes
    tail_probability = (1 - confidence_level) / 2
    low = float(betaincinv(successes, failures + 1, tail_probability)) if successes > 0 else 0.0
    high = float(betaincinv(successes + 1, failures, 1 - tail_probability)) if failures > 0 else 1.0
    return Estimate(successes / trials, low, high, trials, "exact")


def compute_error_rate_upper_bound(error_count: int, trial_count: int, confidence_level: float = 0.95) -> float:
    """Compute the one-sided Clopper-Pearson upper bound of the error rate.

    >>> round(compute_error_rate_upper_bound(0, 299), 5), compute_error_rate_upper_bound(0, 0)
    (0.00997, 1.0)
    """
    if not 0 <= error_count <= trial_count:
        raise ValueError(f"{error_count} wrong ones among {trial_count}: it must be from 0 to {trial_count}")
    return (
        float(betaincinv(error_count + 1, trial_count - error_count, confidence_level))
        if error_count < trial_count
        else 1.0
    )


@lru_cache(maxsize=1024)  # a certificate asks again and again for the same few numbers
def count_audits_needed(max_error_rate: float, error_count: int = 0, confidence_level: float = 0.95) -> int:
    """Count the fewest audits, ``error_count`` wrong, that prove ``max_error_rate``.

    >>> count_audits_needed(0.01), count_audits_needed(0.05), count_audits_needed(0.01, error_count=1)
    (299, 59, 473)
    """
    if not 0 < max_error_rate <= 1:
        raise ValueError(
            f"a rate of {max_error_rate}: it must be above 0 and up to 1, because no number of audits shows 0"
        )
    return error_count + bisect_left(
        range(error_count, sys.maxsize),
        True,
        key=lambda trials: compute_error_rate_upper_bound(error_count, trials, confidence_level) <= max_error_rate,
    )


def estimate_by_bootstrap(
    statistic: Callable[[RowNumbers], float],
    row_count: int,
    *,
    seed: int,
    repeats: int = 1000,
    confidence_level: float = 0.95,
    weights: Sequence[float] | None = None,
    value_range: tuple[float, float] = (0.0, 1.0),
) -> Estimate:
    """Estimate any statistic of ``row_count`` rows with a bootstrap interval.

    Args:
        statistic: from row numbers (0 … n - 1, some repeated, some missing) to a number within ``value_range``, or NaN
            where it is not defined for those rows.
        row_count: how many rows there are. Leave out those that tell nothing of the statistic, such as documents of other
            types: each row counts as an observation of it.
        seed: the same seed gives the same interval.
        repeats: how many resamples.
        confidence_level: how often the interval holds the truth.
        weights: one per row: how many of the population it represents (1 / its inclusion probability, at least 1).
            Each drawn row is handed to ``statistic`` as often, so that the statistic needs no weights of its own.
        value_range: the worst and the best that the statistic can be.

    The percentiles of the resamples say how far the observed rows could have fallen out differently (a little further
    out than ``confidence_level``, because resamples of n observations vary less than samples do). They say nothing
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
    worst, best = value_range
    if row_count == 0:
        return Estimate(None, worst, best, 0, "bootstrap")
    row_weights = np.ones(row_count) if weights is None else np.asarray(weights, dtype=float)
    if row_weights.min() < 1 - _ROUNDING_TOLERANCE:
        raise ValueError(f"a weight of {row_weights.min()}: a row represents at least itself")

    row_copies = row_weights * min(
        1.0, max(_MAX_ROW_COPIES, 4 * row_count) / row_weights.sum()
    )  # in proportion, where there would be millions
    value = statistic(_copy_drawn_rows(np.arange(row_count), row_copies))
    if math.isnan(value):
        return Estimate(None, worst, best, 0, "bootstrap")
    if not worst - _ROUNDING_TOLERANCE <= value <= best + _ROUNDING_TOLERANCE:
        raise ValueError(f"the statistic is {value}, which is not between {worst} and {best}")

    generator = np.random.default_rng(seed)
    resampled_values = [
        statistic(_copy_drawn_rows(generator.integers(row_count, size=row_count), row_copies)) for _ in range(repeats)
    ]
    effective_size = _compute_sum_over_largest_weight(row_weights)
    tail_probability = (1 - confidence_level) / 2
    expanded_tail = _widen_percentile_tail(tail_probability, max(effective_size, 2))
    low, high = np.nanquantile([value, *resampled_values], [expanded_tail, 1 - expanded_tail], method="weibull")
    unseen_share = 1 - tail_probability ** (1 / effective_size)
    margin_below = math.hypot(max(value - low, 0.0), unseen_share * (value - worst))
    margin_above = math.hypot(max(high - value, 0.0), unseen_share * (best - value))
    return Estimate(
        value, max(value - margin_below, worst), min(value + margin_above, best), effective_size, "bootstrap"
    )


def estimate_ratio(numerators: FloatArray, denominators: FloatArray, weights: Sequence[float]) -> Estimate:
    """Estimate the sum of parts over the sum of wholes; empty rows do not count."""
    informative_rows = np.flatnonzero(denominators)

    def compute_ratio(row_numbers: RowNumbers) -> float:
        rows = informative_rows[row_numbers]
        return float(numerators[rows].sum() / denominators[rows].sum())

    return estimate_by_bootstrap(
        compute_ratio,
        len(informative_rows),
        seed=BOOTSTRAP_SEED,
        repeats=BOOTSTRAP_REPEATS,
        weights=[weights[row_number] for row_number in informative_rows.tolist()],
    )


def _widen_percentile_tail(tail_probability: float, sample_size: float) -> float:
    """Widen the percentile tail to the t interval of so few observations."""
    return float(ndtr(math.sqrt(sample_size / (sample_size - 1)) * stdtrit(sample_size - 1, tail_probability)))


def _copy_drawn_rows(drawn_rows: RowNumbers, row_copies: FloatArray) -> RowNumbers:
    """Copy each drawn row as often as it weighs; fractions carry over to the next."""
    copy_ends: RowNumbers = np.rint(np.cumsum(row_copies[drawn_rows])).astype(np.intp)
    return np.repeat(drawn_rows, np.diff(copy_ends, prepend=0))


def _compute_sum_over_largest_weight(weights: FloatArray) -> float:
    """Compute the sum of weights in units of the largest: the effective number."""
    return float(weights.sum() / weights.max())


def estimate_weighted_mean(
    observations: Sequence[Observation], population_size: int, *, certain_count: int, confidence_level: float = 0.95
) -> Estimate:
    """Estimate a population's mean from documents reviewed for certain or by chance.

    Args:
        observations: what was found, one per document that was looked at.
        population_size: how many documents were processed; all of them are in the denominator.
        certain_count: how many of them had probability 1 (escalated ones). All observations with probability 1 are of
            these; what is missing of them is pending, unreadable or undeterminable.
        confidence_level: how often the interval holds the truth.

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

    >>> reviews = [Observation(0, 1)] * 10 + [Observation(1, 1)] * 10 + [Observation(1, 0.05)] * 19 + [Observation(0, 0.05)]
    >>> estimate = estimate_weighted_mean(reviews, 420, certain_count=20)
    >>> round(estimate.value, 4), round(estimate.low, 3), round(estimate.high, 3)
    (0.9286, 0.739, 0.975)
    """
    certain_values = [observation.value for observation in observations if observation.inclusion_probability == 1]
    drawn_observations = [observation for observation in observations if observation.inclusion_probability != 1]
    _require_valid_observations(
        observations, len(certain_values), len(drawn_observations), population_size, certain_count
    )
    known_values = [value for value in certain_values if value is not None]
    known_draws = [observation for observation in drawn_observations if observation.value is not None]
    drawable_count = population_size - certain_count

    lowest_share, highest_share = (
        _estimate_drawn_share(drawn_observations, 0.0, confidence_level),
        _estimate_drawn_share(drawn_observations, 1.0, confidence_level),
    )
    certain_sum = sum(known_values)
    effective_size = len(known_values) + (lowest_share.n if known_draws else 0)
    if population_size == 0 or effective_size == 0 or (drawable_count and not known_draws):
        value = None
    else:
        value = (certain_sum + drawable_count * (lowest_share.value or 0)) / population_size
    low = (certain_sum + drawable_count * lowest_share.low) / population_size if population_size else 0.0
    high = (
        (certain_sum + certain_count - len(known_values) + drawable_count * highest_share.high) / population_size
        if population_size
        else 1.0
    )
    return Estimate(value, low, high, effective_size, "weighted")


def _require_valid_observations(
    observations: Sequence[Observation],
    observed_certain_count: int,
    observed_drawn_count: int,
    population_size: int,
    certain_count: int,
) -> None:
    for observation in observations:
        if not 0 < observation.inclusion_probability <= 1:
            raise ValueError(
                f"an inclusion probability of {observation.inclusion_probability}: it must be above 0 and up to 1"
            )
        if observation.value is not None and not 0 <= observation.value <= 1:
            raise ValueError(f"a value of {observation.value}: it must be from 0 to 1")
    if not observed_certain_count <= certain_count <= population_size:
        raise ValueError(
            f"{observed_certain_count} observed, {certain_count} certain, {population_size} in all: each must hold the one before"
        )
    if observed_drawn_count > population_size - certain_count:
        raise ValueError(
            f"{observed_drawn_count} observations of {population_size - certain_count} documents that could be drawn"
        )


def _estimate_drawn_share(
    observations: Sequence[Observation], assumed_unknown_value: float, confidence_level: float
) -> Estimate:
    """Estimate the drawn part's weighted share; unknowns as ``assumed_unknown_value``."""
    if not observations:
        return Estimate(None, 0.0, 1.0, 0, "weighted")
    values = np.array(
        [assumed_unknown_value if observation.value is None else observation.value for observation in observations],
        dtype=float,
    )
    weights = 1 / np.array([observation.inclusion_probability for observation in observations], dtype=float)
    share = float(np.average(values, weights=weights))
    effective_size = _compute_sum_over_largest_weight(weights)
    return estimate_proportion(share * effective_size, effective_size, confidence_level)
