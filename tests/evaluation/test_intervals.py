"""Intervals: equal to scipy's, and in simulations the truth lies in them as often as they say."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evalkit.evaluation.intervals import (
    Estimate,
    Observation,
    _compute_prediction_scale,
    estimate_by_bootstrap,
    estimate_prevalence_from_imperfect_test,
    estimate_proportion,
    estimate_weighted_mean,
)

CLAIMED = 0.94


def covered(estimates: list[Estimate], truth: float) -> float:
    """How often the truth lies in the interval."""
    return float(np.mean([one.low <= truth <= one.high for one in estimates]))


# ---------------------------------------------------------------------------------------------------------------------
# Exact


@given(st.integers(1, 2000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.floats(0.5, 0.999))
def test_exact_is_scipys_clopper_pearson(counts, level):
    right, n = counts
    ours = estimate_proportion(right, n, level)
    theirs = stats.binomtest(right, n).proportion_ci(level, "exact")
    assert ours.value == right / n
    assert ours.low == pytest.approx(theirs.low, abs=1e-9)
    assert ours.high == pytest.approx(theirs.high, abs=1e-9)


@given(st.floats(0, 1), st.floats(0.01, 5000))
def test_exact_takes_fractions(share, n):
    estimate = estimate_proportion(share * n, n)
    assert 0 <= estimate.low <= estimate.value + 1e-9
    assert estimate.value - 1e-9 <= estimate.high <= 1


@given(st.integers(0, 60), st.integers(0, 60))
def test_exact_is_the_mirror_image_for_wrong_ones(right, wrong):
    one, other = estimate_proportion(right, right + wrong), estimate_proportion(wrong, right + wrong)
    assert (one.low, one.high) == pytest.approx((1 - other.high, 1 - other.low), abs=1e-9)


@pytest.mark.parametrize(("right", "n"), [(-1, 5), (6, 5), (1, 0)])
def test_impossible_counts_are_refused(right, n):
    with pytest.raises(ValueError, match="must be between 0"):
        estimate_proportion(right, n)


@pytest.mark.parametrize("n", [1, 5, 20, 100, 299])
def test_exact_covers_whatever_the_truth_is(n):
    # Summed over all outcomes, so that nothing is left to chance.
    estimates = [estimate_proportion(right, n) for right in range(n + 1)]
    low, high = (np.array([one[place] for one in estimates]) for place in (1, 2))
    for truth in np.linspace(0.001, 0.999, 333):
        chances = stats.binom.pmf(np.arange(n + 1), n, truth)
        assert chances[(low <= truth) & (truth <= high)].sum() >= 0.95 - 1e-9


@pytest.mark.parametrize(
    ("prevalence", "sensitivity", "specificity"),
    [(0.0, 0.9, 0.98), (0.05, 0.8, 0.95), (0.3, 0.6, 0.7), (1.0, 0.9, 0.9)],
)
def test_prevalence_is_corrected_for_an_imperfect_test(prevalence, sensitivity, specificity):
    rng = np.random.default_rng(7)
    flagged_share = prevalence * sensitivity + (1 - prevalence) * (1 - specificity)
    estimates = [
        estimate_prevalence_from_imperfect_test(
            (int(rng.binomial(400, flagged_share)), 400),
            (int(rng.binomial(200, sensitivity)), 200),
            (int(rng.binomial(200, 1 - specificity)), 200),
        )
        for _ in range(400)
    ]
    assert covered(estimates, prevalence) >= 0.95
    if 0 < prevalence < 1:
        assert np.mean([one.value for one in estimates]) == pytest.approx(prevalence, abs=0.01)
        assert abs(flagged_share - prevalence) > 0.03, "uncorrected, it would be another share"


@given(*[st.integers(0, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))] * 3)
def test_corrected_prevalence_is_a_share_in_its_interval(flagged, detected, false_alarms):
    estimate = estimate_prevalence_from_imperfect_test(flagged, detected, false_alarms)
    assert 0 <= estimate.low <= estimate.high <= 1
    if estimate.value is None:
        assert (estimate.low, estimate.high) == (0, 1)
    else:
        assert estimate.low <= estimate.value <= estimate.high
    perfect = estimate_prevalence_from_imperfect_test(flagged, (50, 50), (0, 50))
    if flagged[1]:
        assert perfect.value == pytest.approx(flagged[0] / flagged[1])


# ---------------------------------------------------------------------------------------------------------------------
# Bootstrap


def mean_of(values: np.ndarray) -> Callable[[np.ndarray], float]:
    return lambda rows: float(values[rows].mean())


def test_bootstrap_repeats_with_its_seed_and_only_with_it():
    values = np.random.default_rng(0).random(50)
    one, again, other = (estimate_by_bootstrap(mean_of(values), 50, seed=seed, repeats=100) for seed in (1, 1, 2))
    assert one == again
    assert one.value == other.value == values.mean()
    assert (one.low, one.high) != (other.low, other.high)
    assert (one.n, one.method) == (50, "bootstrap")


def test_bootstrap_agrees_with_normal_interval():
    values = np.random.default_rng(0).normal(0.5, 0.1, 400)
    estimate = estimate_by_bootstrap(mean_of(values), 400, seed=0, repeats=4000)
    half = 1.96 * values.std() / 20
    assert estimate.value - estimate.low == pytest.approx(half, rel=0.2)
    assert estimate.high - estimate.value == pytest.approx(half, rel=0.2)


@pytest.mark.parametrize("n", [1, 12, 300])
def test_where_all_are_right_the_bootstrap_is_exact(n):
    estimate = estimate_by_bootstrap(mean_of(np.ones(n)), n, seed=0, repeats=20)
    assert estimate[:3] == pytest.approx(estimate_proportion(n, n)[:3], abs=1e-9)


def test_weights_make_a_plain_statistic_that_of_the_population():
    values = np.array([1.0, 0.0, 1.0])
    assert estimate_by_bootstrap(mean_of(values), 3, seed=0, repeats=20, weights=[1, 20, 3]).value == pytest.approx(
        4 / 24
    )


def test_what_is_not_defined_has_no_value():
    assert estimate_by_bootstrap(lambda rows: math.nan, 5, seed=0) == Estimate(None, 0.0, 1.0, 0, "bootstrap")
    assert estimate_by_bootstrap(lambda rows: 1.0, 0, seed=0, value_range=(-1, 1)) == Estimate(
        None, -1, 1, 0, "bootstrap"
    )
    sometimes = estimate_by_bootstrap(lambda rows: math.nan if rows[0] else 0.5, 5, seed=0, repeats=50)
    assert 0 < sometimes.low < sometimes.value < sometimes.high < 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"weights": [0.5] * 3}, "weight"), ({"value_range": (0.6, 1)}, "not within value_range")],
)
def test_what_makes_no_sense_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        estimate_by_bootstrap(lambda rows: 0.5, 3, seed=0, **arguments)


POPULATIONS = {
    "few wrong": (lambda random, n: random.random(n) < 0.97, 0.97),
    "half wrong": (lambda random, n: random.random(n) < 0.5, 0.5),
    "mostly whole documents right": (lambda random, n: np.where(random.random(n) < 0.9, 1, random.random(n)), 0.95),
    "skewed": (lambda random, n: random.beta(8, 0.5, n), 8 / 8.5),
}


@pytest.mark.parametrize("n", [20, 80])
@pytest.mark.parametrize("name", POPULATIONS)
def test_bootstrap_covers(name, n):
    draw, truth = POPULATIONS[name]
    random = np.random.default_rng(7)
    samples = [draw(random, n).astype(float) for _ in range(200)]
    share = covered(
        [estimate_by_bootstrap(mean_of(one), n, seed=i, repeats=100) for i, one in enumerate(samples)], truth
    )
    assert share >= CLAIMED


def test_weighted_bootstrap_covers_a_population_drawn_unequally():
    random = np.random.default_rng(5)
    hard = random.random(1000) < 0.2
    right = random.random(1000) < np.where(hard, 0.5, 0.95)
    probability = np.where(hard, 1.0, 0.1)
    fair, naive = [], []
    for seed in range(200):
        drawn = np.flatnonzero(random.random(1000) < probability)
        values = right[drawn].astype(float)
        naive.append(estimate_by_bootstrap(mean_of(values), drawn.size, seed=seed, repeats=60))
        fair.append(
            estimate_by_bootstrap(mean_of(values), drawn.size, seed=seed, repeats=60, weights=1 / probability[drawn])
        )
    assert covered(fair, right.mean()) >= CLAIMED
    assert covered(naive, right.mean()) == 0


# ---------------------------------------------------------------------------------------------------------------------
# Weighted


def drawn_from(values, probability, random) -> list[Observation]:
    """Each document is drawn by itself, as audits are."""
    chosen = random.random(len(values)) < probability
    return [Observation(float(v), float(p)) for v, p in zip(values[chosen], probability[chosen], strict=True)]


def test_a_census_has_no_sampling_error():
    assert estimate_weighted_mean([Observation(1, 1), Observation(0, 1)], 2, certain_count=2) == Estimate(
        0.5, 0.5, 0.5, 2, "weighted"
    )


def test_with_one_probability_it_is_the_exact_interval():
    observed = [Observation(1, 0.05)] * 90 + [Observation(0, 0.05)] * 10
    assert estimate_weighted_mean(observed, 2000, certain_count=0)[:4] == pytest.approx(
        estimate_proportion(90, 100)[:4], abs=1e-9
    )


def test_the_value_is_the_ratio_of_weighted_sums():
    # 4 certain ones, 3 right; of 96 others two at 1/4 (one right) and one at 1/8 (right): share (4 + 8) / 16.
    observed = [Observation(1, 1)] * 3 + [
        Observation(0, 1),
        Observation(1, 0.25),
        Observation(0, 0.25),
        Observation(1, 0.125),
    ]
    estimate = estimate_weighted_mean(observed, 100, certain_count=4)
    assert estimate.value == pytest.approx((3 + 96 * 0.75) / 100, abs=1e-9)
    # The weights sum to 16, the largest is 8.
    n = 2
    share = estimate_proportion(0.75 * n, n)
    assert estimate.n == pytest.approx(4 + n, abs=1e-9)
    assert (estimate.low, estimate.high) == pytest.approx(((3 + 96 * share.low) / 100, (3 + 96 * share.high) / 100))


def test_missing_certain_ones_stay_in_the_denominator():
    whole = estimate_weighted_mean([Observation(1, 1)] * 6, 10, certain_count=10)
    assert whole == Estimate(0.6, 0.6, 1.0, 6, "weighted")
    assert estimate_weighted_mean([Observation(1, 1)] * 6 + [Observation(None, 1)] * 4, 10, certain_count=10) == whole


def test_drawn_ones_that_nobody_can_tell_widen_both_ends():
    known = [Observation(1, 0.1)] * 50
    without, with_ = (
        estimate_weighted_mean(known, 1000, certain_count=0),
        estimate_weighted_mean([*known, *[Observation(None, 0.1)] * 5], 1000, certain_count=0),
    )
    assert with_.value == pytest.approx(50 / 55)
    assert with_.low == pytest.approx(estimate_proportion(50, 55).low)
    assert with_.low < without.low
    assert with_.high == 1
    wrong = estimate_weighted_mean([*[Observation(0, 0.1)] * 50, *[Observation(None, 0.1)] * 5], 1000, certain_count=0)
    assert wrong.high == pytest.approx(estimate_proportion(5, 55).high)


def test_where_nothing_was_drawn_anything_is_possible():
    assert estimate_weighted_mean([], 10, certain_count=0) == Estimate(None, 0.0, 1.0, 0, "weighted")
    assert estimate_weighted_mean([], 0, certain_count=0) == Estimate(None, 0.0, 1.0, 0, "weighted")
    assert estimate_weighted_mean([Observation(1, 1)] * 2, 10, certain_count=2) == Estimate(
        None, 0.2, 1.0, 2, "weighted"
    )
    assert estimate_weighted_mean([Observation(None, 0.5)], 10, certain_count=0)[:3] == (None, 0.0, 1.0)


@pytest.mark.parametrize(
    ("observed", "population", "take_all"),
    [
        ([Observation(1, 0)], 5, 0),
        ([Observation(1, 1.5)], 5, 0),
        ([Observation(2, 0.5)], 5, 0),
        ([Observation(math.nan, 0.5)], 5, 0),
        ([Observation(1, 1)], 5, 0),
        ([Observation(1, 0.5)] * 3, 5, 3),
        ([], 5, 6),
    ],
)
def test_impossible_samples_are_refused(observed, population, take_all):
    with pytest.raises(ValueError, match=r"must|could"):
        estimate_weighted_mean(observed, population, certain_count=take_all)


observations = st.lists(
    st.builds(Observation, st.one_of(st.none(), st.floats(0, 1)), st.sampled_from([0.01, 0.05, 0.2, 0.5, 1.0])),
    max_size=30,
)


@given(observations, st.integers(0, 50), st.integers(0, 50), st.randoms())
def test_weighted_stays_within_bounds_and_takes_any_order(observed, more_certain, more_others, random):
    certain = sum(one.inclusion_probability == 1 for one in observed) + more_certain
    population = len(observed) + more_certain + more_others
    estimate = estimate_weighted_mean(observed, population, certain_count=certain)
    assert 0 <= estimate.low <= estimate.high <= 1
    assert 0 <= estimate.n <= len(observed) + 1e-9
    if estimate.value is not None:
        assert estimate.low - 1e-9 <= estimate.value <= estimate.high + 1e-9
    shuffled = random.sample(observed, len(observed))
    again = estimate_weighted_mean(shuffled, population, certain_count=certain)
    assert again[1:4] == pytest.approx(estimate[1:4], abs=1e-9)


@given(st.lists(st.tuples(st.booleans(), st.sampled_from([0.01, 0.05, 0.2, 0.5])), min_size=1, max_size=40))
def test_no_usual_effective_size_is_smaller(rows):
    values, weights = np.array([one for one, _ in rows], dtype=float), np.array([1 / p for _, p in rows])
    share = np.average(values, weights=weights)
    n = estimate_weighted_mean([Observation(float(one), p) for one, p in rows], 1000, certain_count=0).n
    variance = (weights * (weights - 1) * (values - share) ** 2).sum() / weights.sum() ** 2
    assert n <= weights.sum() ** 2 / (weights**2).sum() + 1e-9
    assert n * variance <= share * (1 - share) + 1e-9


def designs(size: int = 3000) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Values and probabilities of whole populations: right with 1, wrong with 0."""
    random = np.random.default_rng(11)
    half = np.arange(size) < size / 4
    changed = np.where(half, 0.2, 0.05)
    strata = random.choice([0.02, 0.1, 0.5], size, p=[0.5, 0.3, 0.2])
    extreme = random.choice([0.01, 0.05, 0.3, 0.9], size, p=[0.4, 0.3, 0.2, 0.1])

    def right(wrong_share):
        return (random.random(size) >= wrong_share).astype(float)

    return {
        "equal, few wrong": (right(0.01), np.full(size, 0.05)),
        "equal, many wrong": (right(0.3), np.full(size, 0.2)),
        "20 % to 5 %": (right(0.03), changed),
        "20 % to 5 %, all wrong ones late": (right(np.where(half, 0, 0.1)), changed),
        "20 % to 5 %, all wrong ones early": (right(np.where(half, 0.1, 0)), changed),
        "stratified, wrong where seldom drawn": (right(np.where(strata == 0.02, 0.2, 0.02)), strata),
        "stratified, wrong where often drawn": (right(np.where(strata == 0.5, 0.2, 0.02)), strata),
        "extreme, wrong where seldom drawn": (right(np.where(extreme == 0.01, 0.1, 0)), extreme),
        "shares of pages": (1 - right(0.2) * random.beta(1, 6, size), changed),
    }


@pytest.mark.parametrize("name", designs())
def test_weighted_covers(name):
    values, probability = designs()[name]
    random = np.random.default_rng(13)
    estimates = [
        estimate_weighted_mean(drawn_from(values, probability, random), len(values), certain_count=0)
        for _ in range(250)
    ]
    assert covered(estimates, values.mean()) >= CLAIMED


@pytest.mark.parametrize("per_stratum", [10, 50])
def test_weighted_covers_a_fixed_number_from_each_stratum(per_stratum):
    random = np.random.default_rng(17)
    strata = np.repeat(np.arange(4), [2000, 600, 300, 100])
    values = (random.random(3000) >= np.array([0.02, 0.1, 0.05, 0.4])[strata]).astype(float)
    estimates = []
    for _ in range(250):
        chosen = [random.choice(np.flatnonzero(strata == one), per_stratum, replace=False) for one in range(4)]
        observed = [
            Observation(values[i], per_stratum / (strata == one).sum()) for one in range(4) for i in chosen[one]
        ]
        estimates.append(estimate_weighted_mean(observed, 3000, certain_count=0))
    assert covered(estimates, values.mean()) >= CLAIMED


def test_only_weighted_interval_covers_biased_escalation():
    # Hard documents are escalated and wrong more often; the accepted ones are audited at 20 %, later at 5 %.
    random = np.random.default_rng(19)
    fair, naive = [], []
    for _ in range(250):
        hard = random.random(2000)
        right = (random.random(2000) > 0.02 + 0.4 * hard**3).astype(float)
        escalated = random.random(2000) < hard**2
        audited = np.where(np.arange(2000) < 500, 0.2, 0.05)
        observed = drawn_from(right, np.where(escalated, 1.0, audited), random)
        truth = right.mean()
        fair.append(estimate_weighted_mean(observed, 2000, certain_count=int(escalated.sum())))
        naive.append(estimate_proportion(sum(one.value for one in observed), len(observed)))
        fair[-1] = fair[-1]._replace(low=fair[-1].low - truth, high=fair[-1].high - truth)
        naive[-1] = naive[-1]._replace(low=naive[-1].low - truth, high=naive[-1].high - truth)
    assert covered(fair, 0) >= CLAIMED
    assert covered(naive, 0) < 0.05


def test_pending_hard_ones_do_not_make_it_look_better():
    # A tenth of the escalated ones is pending, and all of those are wrong: the low end still holds the truth.
    random = np.random.default_rng(23)
    estimates = []
    for _ in range(200):
        right = (random.random(1500) >= 0.03).astype(float)
        audits = drawn_from(right, np.full(1500, 0.1), random)
        reviewed = [Observation(float(value), 1.0) for value in random.random(450) < 0.7]
        truth = (right.sum() + sum(one.value for one in reviewed)) / 2000
        estimate = estimate_weighted_mean([*audits, *reviewed], 2000, certain_count=500)
        estimates.append(estimate._replace(low=estimate.low - truth, high=estimate.high - truth))
    assert covered(estimates, 0) >= CLAIMED


# ---------------------------------------------------------------------------------------------------------------------
# Estimates with predictions


def build_predicted_draw() -> tuple[list[Observation], float]:
    """Forty scores with predictions for 4,000 documents, a fixed sequence that ppi-python was given too."""
    predictions = 0.5 + 0.5 * np.sin(np.arange(4000) * 0.7)
    values = np.clip((np.arange(40) % 3 == 0) * 0.6 + 0.4 * (predictions[:40] > 0.6), 0, 1)
    rows = zip(values.tolist(), predictions[:40].tolist(), strict=True)
    return [Observation(value, 0.01, predicted) for value, predicted in rows], float(predictions.mean())


def test_estimate_with_predictions_is_near_that_of_ppi_python():
    """ppi_mean_pointestimate of ppi-python 0.2.3: 0.38436 with its tuned λ of 0.4954; 0.4 with λ = 0."""
    observations, predicted_mean = build_predicted_draw()
    estimate = estimate_weighted_mean(observations, 4000, certain_count=0, predicted_mean=predicted_mean)
    assert estimate.value == pytest.approx(0.38436, abs=0.004)
    values, predictions = (
        np.array(column) for column in zip(*((row.value, row.predicted_value) for row in observations), strict=True)
    )
    assert _compute_prediction_scale(values, predictions, np.full(40, 100.0)) == pytest.approx(0.4954, rel=0.05)
    plain = estimate_weighted_mean(observations, 4000, certain_count=0)
    assert plain.value == pytest.approx(0.4)


def test_predictions_that_say_nothing_leave_the_weighted_mean():
    observations = [Observation(float(number % 7 > 0), 0.05 + 0.1 * (number % 2), 0.9) for number in range(70)]
    plain = estimate_weighted_mean(observations, 1000, certain_count=0)
    helped = estimate_weighted_mean(observations, 1000, certain_count=0, predicted_mean=0.9)
    assert helped.value == pytest.approx(plain.value)


def test_right_predictions_narrow_the_interval():
    values = [float(number % 4 > 0) for number in range(80)]
    informed = [Observation(value, 0.1, 0.1 + 0.8 * value) for value in values]
    uninformed = [Observation(value, 0.1, 0.7) for value in values]
    widths = [
        estimate.high - estimate.low
        for rows in (informed, uninformed)
        for estimate in [estimate_weighted_mean(rows, 800, certain_count=0, predicted_mean=0.7)]
    ]
    assert widths[0] < 0.5 * widths[1]


@given(
    st.lists(
        st.tuples(st.one_of(st.none(), st.floats(0, 1)), st.floats(0.01, 0.9), st.floats(0, 1)), min_size=1, max_size=40
    ),
    st.floats(0, 1),
)
def test_estimate_with_predictions_lies_in_its_interval(rows, predicted_mean):
    observations = [Observation(*row) for row in rows]
    estimate = estimate_weighted_mean(observations, len(rows) + 5, certain_count=0, predicted_mean=predicted_mean)
    assert 0 <= estimate.low <= estimate.high <= 1
    if estimate.value is not None:
        assert estimate.low - 1e-9 <= estimate.value <= estimate.high + 1e-9


@pytest.mark.parametrize(("error_rate", "draw_rate"), [(0.01, 0.1), (0.05, 0.1)])
def test_interval_with_predictions_covers_the_share(error_rate, draw_rate):
    generator, covered, narrower, repeats = np.random.default_rng(11), 0, 0, 120
    for _ in range(repeats):
        risks = generator.beta(0.3, 0.3 / error_rate, 2000)
        values = (generator.random(2000) >= risks).astype(float)
        deviations = np.sqrt(risks * (1 - risks))
        probabilities = np.minimum(draw_rate * (0.55 + 0.45 * deviations / deviations.mean()), 0.99)
        drawn = np.flatnonzero(generator.random(2000) < probabilities)
        observations = [Observation(values[row], probabilities[row], 1 - risks[row]) for row in drawn]
        estimate = estimate_weighted_mean(observations, 2000, certain_count=0, predicted_mean=1 - float(risks.mean()))
        plain = estimate_weighted_mean(observations, 2000, certain_count=0)
        covered += estimate.low <= values.mean() <= estimate.high
        narrower += estimate.high - estimate.low < plain.high - plain.low
    assert covered / repeats > 0.885  # 0.95 less three standard errors
    assert narrower / repeats > 0.9
