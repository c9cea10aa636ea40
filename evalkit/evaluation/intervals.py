"""Confidence intervals for shares, any statistic, and unequal probabilities.

Every function is pure; randomness comes from a seed argument. Intervals are two-sided and rather too wide than too
narrow: documents that were not reviewed are never assumed to be right.
"""

import math
import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, ndtr, stdtrit
from scipy.stats import DegenerateDataWarning, bootstrap

RowNumbers: TypeAlias = npt.NDArray[np.intp]
FloatArray: TypeAlias = npt.NDArray[np.float64]

#: Rounding error that is tolerated when a share is checked against its bounds 0 and 1.
_ROUNDING_TOLERANCE = 1e-9

#: Random seed of the bootstrap in reports, fixed so that the same study always has the same intervals.
BOOTSTRAP_SEED = 20
BOOTSTRAP_REPEATS = 300
_RESAMPLES_IN_MEMORY = 50

#: Maximum number of row copies that represent the population in a bootstrap resample (or four per row, if that is
#: more).
_MAX_ROW_COPIES = 20_000

#: Estimates with predictions: number of folds, of draws below which predictions are not used, and of added errors.
_FOLD_COUNT = 5
_MIN_PREDICTED_DRAWS = 10
_ADDED_ERRORS = 0.15


class Estimate(NamedTuple):
    """An estimated value with its confidence interval from ``low`` to ``high``."""

    value: float | None
    """The estimate; None if nothing was observed."""
    low: float
    high: float
    n: float
    """Number of observations; the effective number if they have different weights."""
    method: str
    """Method of the interval, in one word for a table: exact, bootstrap, weighted."""


class Quantity(Estimate):
    """An estimate that is not a share, such as minutes or kappa."""


class Observation(NamedTuple):
    """Outcome of a document's review, with the probability of being reviewed."""

    value: float | None
    """The document's score, 0 to 1, such as 1 for right and 0 for wrong; None if the review could not determine it."""
    inclusion_probability: float
    """Probability with which the document was selected for review, above 0 and at most 1."""
    predicted_value: float = 0.0
    """Prediction of ``value`` from what is known of every document, fitted without this one."""


def estimate_proportion(successes: float, trials: float, confidence_level: float = 0.95) -> Estimate:
    """Estimate ``successes`` / ``trials`` with its exact Clopper-Pearson interval.

    Both numbers may be fractions, as effective sample sizes are. ValueError if ``successes`` is not between 0 and
    ``trials``.

    Source: Clopper and Pearson, Biometrika 26 (1934); the limits are quantiles of the beta distribution.

    >>> estimate = estimate_proportion(9, 10)
    >>> [round(number, 4) for number in (estimate.value, estimate.low, estimate.high)]
    [0.9, 0.555, 0.9975]
    >>> estimate_proportion(0, 0)
    Estimate(value=None, low=0.0, high=1.0, n=0, method='exact')
    """
    if not -_ROUNDING_TOLERANCE <= successes <= trials + _ROUNDING_TOLERANCE:
        raise ValueError(f"successes is {successes}, but must be between 0 and trials ({trials})")
    if trials == 0:
        return Estimate(None, 0.0, 1.0, trials, "exact")
    successes = min(max(successes, 0.0), trials)
    failures = trials - successes
    tail_probability = (1 - confidence_level) / 2
    low = float(betaincinv(successes, failures + 1, tail_probability)) if successes > 0 else 0.0
    high = float(betaincinv(successes + 1, failures, 1 - tail_probability)) if failures > 0 else 1.0
    return Estimate(successes / trials, low, high, trials, "exact")


def widen_to_process(estimate: Estimate, population_size: int) -> Estimate:
    """Widen an archive's interval to cover future documents of the same kind.

    The archive is itself a sample of what its sources send. Its exact interval as a sample of ``population_size``
    documents is added in quadrature to the archive's own, which is a point if the truth of each document is known. So
    with all truths known, the result is the Clopper-Pearson interval.

    Source: the variance of a sample of a sample is the sum of both (Särndal, Swensson and Wretman, Model Assisted
    Survey Sampling, 1992, chapter 9).

    >>> [round(number, 4) for number in widen_to_process(Estimate(0.9, 0.9, 0.9, 10, "weighted"), 10)[:3]]
    [0.9, 0.555, 0.9975]
    """
    if estimate.value is None or not population_size:
        return estimate
    drawn = estimate_proportion(estimate.value * population_size, population_size)
    below = math.hypot(estimate.value - estimate.low, estimate.value - drawn.low)
    above = math.hypot(estimate.high - estimate.value, drawn.high - estimate.value)
    return estimate._replace(low=max(estimate.value - below, 0.0), high=min(estimate.value + above, 1.0))


def estimate_prevalence_from_imperfect_test(
    flagged: tuple[int, int], detected: tuple[int, int], false_alarms: tuple[int, int], confidence_level: float = 0.95
) -> Estimate:
    """Estimate how many are wrong from how many an imperfect test flags.

    Args:
        flagged: number of flagged cases and of all cases, of which it is unknown how many are wrong.
        detected: the same of cases known to be wrong: the test's sensitivity.
        false_alarms: the same of cases known to be right: 1 − the test's specificity.
        confidence_level: the probability with which the interval holds the true share.

    The interval combines the exact intervals of the three shares, each with a third of the error probability
    (Bonferroni). If those of sensitivity and false alarms overlap, the test may be worthless, and the interval is 0 to
    1. The value is None if the test flags wrong cases no more often than right ones.

    Source: Rogan and Gladen, American Journal of Epidemiology 107 (1978) 71.

    >>> estimate = estimate_prevalence_from_imperfect_test((120, 1000), (180, 200), (8, 200))
    >>> [round(number, 3) for number in estimate[:3]]
    [0.093, 0.012, 0.161]
    """
    part_level = 1 - (1 - confidence_level) / 3
    shares = [estimate_proportion(*counts, part_level) for counts in (flagged, detected, false_alarms)]
    flagged_share, detection, alarm = shares

    def correct(share: float, detection_rate: float, alarm_rate: float) -> float:
        return min(max((share - alarm_rate) / (detection_rate - alarm_rate), 0.0), 1.0)

    values = [share.value for share in shares]
    is_defined = None not in values and (detection.value or 0) > (alarm.value or 0)
    value = correct(*(candidate for candidate in values if candidate is not None)) if is_defined else None
    if value is None or detection.low <= alarm.high:
        return Estimate(value, 0.0, 1.0, flagged_share.n, "Rogan-Gladen")
    low = correct(flagged_share.low, detection.high, alarm.high)
    high = correct(flagged_share.high, detection.low, alarm.low)
    return Estimate(value, low, high, flagged_share.n, "Rogan-Gladen")


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
        statistic: computes a number within ``value_range`` from row numbers (0 … ``row_count`` - 1, some repeated, some
            missing), or NaN if the statistic is undefined for these rows.
        row_count: number of rows. Leave out rows without information on the statistic, such as documents of other
            types, because each row counts as one observation.
        seed: the same seed gives the same interval.
        repeats: number of resamples.
        confidence_level: the probability with which the interval holds the true value.
        weights: one per row: the number of documents that the row represents (1 / its inclusion probability, at least
            1). Each drawn row is repeated in proportion to its weight, so ``statistic`` needs no weights.
        value_range: the smallest and the largest possible value of the statistic.

    The percentiles of the resamples show how much the statistic varies from sample to sample (taken slightly further
    out than ``confidence_level``, because resamples of n observations vary less than samples do). They ignore kinds of
    documents that no row shows, and have no width if every row is right. With n observations, a share u of the
    population, where (1 - u)^n = (1 - level) / 2, may be unlike all observed rows, and may move the statistic by at
    most u times its distance to the bound. Both margins are independent and are added in quadrature. If all rows are
    right, the result is the exact interval; if hundreds of rows vary, the percentile interval. With weights, n is the
    sum of the weights divided by the largest: as if all documents had been drawn as rarely as the rarest.

    ValueError if the statistic leaves its bounds or a weight is below 1.

    Source: Efron and Tibshirani, An Introduction to the Bootstrap (1993), chapter 13, resampled by scipy; the expanded percentiles of
    Hesterberg, The American Statistician 69 (2015); for the unseen, the rule of three (Hanley and Lippman-Hand, JAMA
    249, 1983).
    """
    worst, best = value_range
    if row_count == 0:
        return Estimate(None, worst, best, 0, "bootstrap")
    row_weights = np.ones(row_count) if weights is None else np.asarray(weights, dtype=float)
    if row_weights.min() < 1 - _ROUNDING_TOLERANCE:
        raise ValueError(
            f"weights contains {row_weights.min()}, but each weight must be at least 1, because a row represents at least itself"
        )

    row_copies = row_weights * min(
        1.0, max(_MAX_ROW_COPIES, 4 * row_count) / row_weights.sum()
    )  # scaled down proportionally if there would be millions of copies
    value = statistic(_copy_drawn_rows(np.arange(row_count), row_copies))
    if math.isnan(value):
        return Estimate(None, worst, best, 0, "bootstrap")
    if not worst - _ROUNDING_TOLERANCE <= value <= best + _ROUNDING_TOLERANCE:
        raise ValueError(f"the statistic returned {value}, which is not within value_range, {worst} to {best}")

    resampled_values = [value]  # scipy resamples no single row
    if row_count > 1:
        with warnings.catch_warnings():  # an undefined statistic of some resamples is no fault
            warnings.simplefilter("ignore", DegenerateDataWarning)
            resampled_values = bootstrap(
                (np.arange(row_count),),
                lambda rows: statistic(_copy_drawn_rows(rows.astype(np.intp), row_copies)),
                n_resamples=repeats,
                batch=_RESAMPLES_IN_MEMORY,
                vectorized=False,
                method="percentile",
                rng=np.random.default_rng(seed),
            ).bootstrap_distribution
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
    """Estimate sum(numerators) / sum(denominators) with a bootstrap interval.

    All arrays have one entry per document. Rows whose denominator is 0 do not count as observations.
    """
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
    """Return the smaller tail probability that widens percentiles to a t interval."""
    return float(ndtr(math.sqrt(sample_size / (sample_size - 1)) * stdtrit(sample_size - 1, tail_probability)))


def _copy_drawn_rows(drawn_rows: RowNumbers, row_copies: FloatArray) -> RowNumbers:
    """Repeat each drawn row ``row_copies`` times; fractions carry over."""
    copy_ends: RowNumbers = np.rint(np.cumsum(row_copies[drawn_rows])).astype(np.intp)
    return np.repeat(drawn_rows, np.diff(copy_ends, prepend=0))


def _compute_sum_over_largest_weight(weights: FloatArray) -> float:
    """Compute the effective sample size: sum of the weights / largest weight."""
    return float(weights.sum() / weights.max())


def estimate_weighted_mean(
    observations: Sequence[Observation],
    population_size: int,
    *,
    certain_count: int,
    predicted_mean: float | None = None,
    confidence_level: float = 0.95,
) -> Estimate:
    """Estimate a mean over all documents from certain and randomly drawn reviews.

    Args:
        observations: the result of each reviewed document.
        population_size: number of processed documents; all of them are in the denominator.
        certain_count: number of documents whose review was certain (probability 1, such as escalated documents). All
            observations with probability 1 are of these documents; the rest are pending, unreadable or undeterminable.
        predicted_mean: the mean of ``predicted_value`` over all documents that could be drawn, reviewed or not. With it,
            the drawn part is estimated with the help of the predictions (``_estimate_drawn_share_with_predictions``).
        confidence_level: the probability with which the interval holds the true mean.

    The mean over reviewed documents is not the mean over all documents: difficult documents are escalated and all
    reviewed, easy ones rarely. So each part counts for as many documents as it has.

    - *Certain part.* Nothing is estimated. Missing results count as 0 in the value; the low end counts them as 0 and
      the high end as 1, because they are not missing by chance.
    - *Drawn part* (``population_size - certain_count`` documents). The share is a ratio of sums weighted with 1 /
      probability; dividing by the observed instead of the expected sum of weights reduces its variance. Its interval is
      Clopper-Pearson for an effective sample size, because normal intervals fail if almost all values are 1. The
      effective size is the sum of the weights divided by the largest weight, as if all documents had been drawn as
      rarely as the rarest. It never exceeds the two usual ones: Kish's (sum of weights)² / sum of squares, and the size
      at which a simple sample has the linearised variance of independent draws, sum of w (w - 1) e² / (sum of w)². In
      simulations these two were too optimistic if the wrong documents lie in a part that was rarely drawn. Nor does it
      exceed the number of observations. Drawn documents whose value is None count as 0 at the low end and as 1 at the
      high end. Documents that were drawn but not reviewed yet may be left out, unless they were postponed because of
      their content.
    - *Both parts*: the sum of the two totals divided by the population. The value is None if nothing was observed, or
      if the drawn part has documents but no known result.

    ValueError if there are more observations than documents or a number is outside its range.

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
        _estimate_drawn_share(drawn_observations, assumed_value, confidence_level)
        if predicted_mean is None or len(known_draws) < _MIN_PREDICTED_DRAWS
        else _estimate_drawn_share_with_predictions(drawn_observations, assumed_value, predicted_mean, confidence_level)
        for assumed_value in (0.0, 1.0)
    )
    certain_sum = sum(known_values)
    effective_size = len(known_values) + (lowest_share.n if known_draws else 0)
    if population_size == 0 or effective_size == 0 or (drawable_count and not known_draws):
        value = None
    else:
        value = (certain_sum + drawable_count * (lowest_share.value or 0)) / population_size
    low_share, high_share = min(lowest_share.low, highest_share.low), max(lowest_share.high, highest_share.high)
    low = (certain_sum + drawable_count * low_share) / population_size if population_size else 0.0
    high = (
        (certain_sum + certain_count - len(known_values) + drawable_count * high_share) / population_size
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
                f"an observation's inclusion_probability is {observation.inclusion_probability}, but must be above 0 and at most 1"
            )
        if observation.value is not None and not 0 <= observation.value <= 1:
            raise ValueError(f"an observation's value is {observation.value}, but must be between 0 and 1")
    if not observed_certain_count <= certain_count <= population_size:
        raise ValueError(
            f"{observed_certain_count} observations with probability 1, certain_count {certain_count}, population_size "
            f"{population_size}: each of these numbers must be at least the previous number"
        )
    if observed_drawn_count > population_size - certain_count:
        raise ValueError(
            f"{observed_drawn_count} observations with probability below 1, but only {population_size - certain_count} "
            "documents that could be drawn"
        )


def _estimate_drawn_share(
    observations: Sequence[Observation], assumed_unknown_value: float, confidence_level: float
) -> Estimate:
    """Estimate the weighted mean of drawn observations, None as the assumed value."""
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


def _estimate_drawn_share_with_predictions(
    observations: Sequence[Observation], assumed_unknown_value: float, predicted_mean: float, confidence_level: float
) -> Estimate:
    """Estimate the mean of drawn observations as a correction of predictions.

    The predictions' mean over all documents is known. The weighted mean error of the predictions is estimated from the
    reviewed documents, and subtracted. Predictions are first multiplied by the share λ that makes the variance
    smallest: 1 if they are right, 0 if they say nothing, which leaves the weighted mean. Each fifth of the observations
    has its λ from the other four, so that no observation influences its own correction.

    The interval is that of Jeffreys for the number of simple draws that would have the same variance. A variance that
    is estimated from a few errors is often too small. So for the upper limit, part of one more error, of the weight
    that a further one is likely to have, is added to the share of the rarer outcome and to the variance.

    Source: Angelopoulos, Duchi and Zrnic, PPI++ (arXiv 2311.01453, 2023), with Hájek's weights; Brown, Cai and DasGupta,
    Statistical Science 16 (2001), Jeffreys' interval; Korn and Graubard, Survey Methodology 24 (1998), effective size.
    """
    values = np.array([assumed_unknown_value if row.value is None else row.value for row in observations], dtype=float)
    predictions = np.array([row.predicted_value for row in observations], dtype=float)
    weights = 1 / np.array([row.inclusion_probability for row in observations], dtype=float)
    variance_weights = weights * (weights - 1)
    folds = np.arange(len(values)) % _FOLD_COUNT
    corrected = values.copy()
    for fold in range(_FOLD_COUNT):
        others = folds != fold
        scale = _compute_prediction_scale(values[others], predictions[others], weights[others])
        corrected[~others] -= scale * (predictions[~others] - predicted_mean)
    share = min(max(float(np.average(corrected, weights=weights)), 0.0), 1.0)
    total_weight = weights.sum()
    variance = float((variance_weights * (corrected - share) ** 2).sum()) / total_weight**2
    # The rarer outcome is the one of which a few more or fewer matter.
    is_rare_high = share < 0.5
    rare_share = share if is_rare_high else 1 - share
    rare_chances = np.clip(predictions if is_rare_high else 1 - predictions, _ROUNDING_TOLERANCE, 1)
    next_weight = (float(np.average(weights, weights=rare_chances)) + float(weights.max())) / 2
    upper_share = min(rare_share + _ADDED_ERRORS * next_weight / total_weight, 1.0)
    upper_variance = variance + _ADDED_ERRORS * next_weight * (next_weight - 1) / total_weight**2
    low, _ = _compute_limits_by_variance(rare_share, variance, confidence_level)
    _, high = _compute_limits_by_variance(upper_share, upper_variance, confidence_level)
    limits = (low, high) if is_rare_high else (1 - high, 1 - low)
    effective_size = _compute_sum_over_largest_weight(weights)
    return Estimate(share, min(limits[0], share), max(limits[1], share), effective_size, "weighted")


def _compute_limits_by_variance(share: float, variance: float, confidence_level: float) -> tuple[float, float]:
    """Compute Jeffreys' limits for the number of simple draws that have the variance."""
    if variance <= 0:
        return share, share
    return compute_jeffreys_limits(share, share * (1 - share) / variance, confidence_level)


def compute_jeffreys_limits(share: float, trials: float, confidence_level: float = 0.95) -> tuple[float, float]:
    """Compute the limits of Jeffreys' interval for a share of a random sample.

    >>> [round(limit, 4) for limit in compute_jeffreys_limits(0.1, 50)]
    [0.0392, 0.2054]
    """
    shapes = share * trials + 0.5, (1 - share) * trials + 0.5
    tail_probability = (1 - confidence_level) / 2
    return float(betaincinv(*shapes, tail_probability)), float(betaincinv(*shapes, 1 - tail_probability))


def _compute_prediction_scale(values: FloatArray, predictions: FloatArray, weights: FloatArray) -> float:
    """Return the λ (0..1) by which predictions reduce the variance most."""
    variance_weights = weights * (weights - 1)
    if not variance_weights.any():
        return 0.0
    prediction_errors = predictions - np.average(predictions, weights=weights)
    spread = float((variance_weights * prediction_errors**2).sum())
    covariance = float((variance_weights * prediction_errors * (values - np.average(values, weights=weights))).sum())
    return min(max(covariance / spread, 0.0), 1.0) if spread > 0 else 0.0


# --- shares within a part of unknown size ---------------------------------------------------------------------------
# How many errors the accepted documents contain is itself an estimate, from the accepted documents that were drawn for
# review. A share of all errors is therefore a ratio with an uncertain denominator; its interval covers the smallest and
# the largest possible size.


class CertainlyReviewedCounts(NamedTuple):
    """Counts of the documents whose review was certain (inclusion probability 1).

    The domain is the part of interest, such as the classifier's errors; a hit is a document with the property whose
    share is asked, such as an error that a verifier caught.
    """

    hits: int
    """Number of documents in the domain that are hits."""
    misses: int
    """Number of documents in the domain that are no hits."""
    undetermined_hits: int = 0
    """Number of documents that are hits if they are in the domain, which is unknown."""
    undetermined_misses: int = 0
    """Number of documents that are no hits if they are in the domain, which is unknown."""


class DrawnDocument(NamedTuple):
    """One document that was drawn at random for review."""

    is_in_domain: bool | None
    """True if the document is in the domain; None if that cannot be determined."""
    is_hit: bool
    """True if the document has the asked property; ignored outside the domain or if ``known_drawable_hit_share`` is
    given."""
    inclusion_probability: float
    """Probability with which the document was drawn, above 0 and below 1."""


def estimate_hit_share_in_domain(
    certain_counts: CertainlyReviewedCounts,
    drawn_documents: Sequence[DrawnDocument],
    drawable_count: int,
    *,
    known_drawable_hit_share: float | None = None,
    confidence_level: float = 0.95,
) -> Estimate:
    """Estimate the share of hits among all documents in the domain, reviewed or not.

    Args:
        certain_counts: counts of the documents that were certain to be reviewed.
        drawn_documents: the reviewed documents among those that could only be drawn at random.
        drawable_count: number of documents that could only be drawn at random, reviewed or not.
        known_drawable_hit_share: the share of hits in the domain among these documents if it is known beforehand (no
            verifier stopped an accepted document: 0); None if it has to be estimated too.
        confidence_level: the probability with which the interval holds the true share.

    The value leaves out undetermined documents; the interval assumes the worst and the best of them, because they are
    not undetermined by chance. The domain's size and the hit share among the drawable documents each get half of the
    error probability (Bonferroni), so that their intervals hold together; the size is also bounded by the documents
    already seen inside and outside of the domain. The ratio is monotonic in the size, so its extremes lie at the ends
    of the size's interval. The value is None if no document is in the domain, or if there are drawable documents and
    none was reviewed.

    >>> [round(number, 3) for number in estimate_hit_share_in_domain(CertainlyReviewedCounts(8, 0), [DrawnDocument(True, False, 0.5)] * 2, 4, known_drawable_hit_share=0)[:3]]
    [0.667, 0.667, 0.8]
    """
    part_level = confidence_level if known_drawable_hit_share is not None else 1 - (1 - confidence_level) / 2
    domain_share = estimate_weighted_mean(
        [
            Observation(
                None if candidate.is_in_domain is None else float(candidate.is_in_domain),
                candidate.inclusion_probability,
            )
            for candidate in drawn_documents
        ],
        drawable_count,
        certain_count=0,
        confidence_level=part_level,
    )
    hit_share = (
        Estimate(known_drawable_hit_share, known_drawable_hit_share, known_drawable_hit_share, domain_share.n, "known")
        if known_drawable_hit_share is not None
        else estimate_weighted_mean(
            [
                Observation(float(candidate.is_hit), candidate.inclusion_probability)
                for candidate in drawn_documents
                if candidate.is_in_domain
            ],
            drawable_count,
            certain_count=0,
            confidence_level=part_level,
        )
    )
    inside_count = sum(candidate.is_in_domain is True for candidate in drawn_documents)
    outside_count = sum(candidate.is_in_domain is False for candidate in drawn_documents)
    size_bounds = (
        max(drawable_count * domain_share.low, inside_count),
        min(drawable_count * domain_share.high, drawable_count - outside_count),
    )
    known_count = certain_counts.hits + certain_counts.misses
    min_known_count, max_known_count = (
        known_count + certain_counts.undetermined_misses,
        known_count + certain_counts.undetermined_hits,
    )
    return Estimate(
        _estimate_hit_share(certain_counts, drawable_count, domain_share, hit_share, size_bounds),
        min(
            _divide_or_default(certain_counts.hits + candidate * hit_share.low, min_known_count + candidate, 0.0)
            for candidate in size_bounds
        ),
        max(
            _divide_or_default(
                certain_counts.hits + certain_counts.undetermined_hits + candidate * hit_share.high,
                max_known_count + candidate,
                1.0,
            )
            for candidate in size_bounds
        ),
        known_count + hit_share.n,
        "weighted",
    )


def _estimate_hit_share(
    certain_counts: CertainlyReviewedCounts,
    drawable_count: int,
    domain_share: Estimate,
    hit_share: Estimate,
    size_bounds: tuple[float, float],
) -> float | None:
    if drawable_count and domain_share.value is None:
        return None
    # The weighted estimate of the size may contradict the number of documents already seen inside and outside: clip it.
    other_count = min(max(drawable_count * (domain_share.value or 0.0), size_bounds[0]), size_bounds[1])
    domain_size = certain_counts.hits + certain_counts.misses + other_count
    return (certain_counts.hits + other_count * (hit_share.value or 0.0)) / domain_size if domain_size else None


def _divide_or_default(numerator: float, denominator: float, default: float) -> float:
    return numerator / denominator if denominator else default
