"""Calibration equals scikit-learn's; a certificate's promise is broken as rarely as it says, summed exactly."""

import itertools
import math

import numpy as np
import pytest
from evalkit.evaluation.acceptance_threshold import (
    ThresholdCertificate,
    certify_threshold,
    compute_brier_score,
    compute_expected_calibration_error,
    tabulate_reliability,
    tabulate_risk_coverage,
    thin_rows_to_equal_probability,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss

from evalkit.evaluation.intervals import compute_error_rate_upper_bound, count_audits_needed, estimate_proportion

rows = st.lists(
    st.tuples(st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.1, 0.5, 0.95, 1.0])), st.booleans()),
    min_size=1,
    max_size=60,
)


def columns(pairs):
    return [score for score, _ in pairs], [right for _, right in pairs]


# ---------------------------------------------------------------------------------------------------------------------
# Reliability


@settings(max_examples=50)
@given(rows, st.integers(1, 12))
def test_reliability_is_scikit_learns_curve(pairs, bins):
    said, right = columns(pairs)
    accuracy, confidence = calibration_curve(right, said, n_bins=bins, pos_label=True) if len({*right}) > 1 else (0, 0)
    table = tabulate_reliability(said, right, bin_count=bins)
    if len({*right}) > 1:
        assert table["accuracy"].to_numpy() == pytest.approx(accuracy, abs=1e-9)
        assert table["confidence"].to_numpy() == pytest.approx(confidence, abs=1e-9)
    assert table["n"].sum() == len(said)
    assert ((table["low"] <= table["confidence"] + 1e-9) & (table["confidence"] <= table["high"] + 1e-9)).all()
    for row in table.itertuples():
        assert (row.accuracy_low, row.accuracy_high) == pytest.approx(
            estimate_proportion(row.accuracy * row.n, row.n)[1:3]
        )
    gaps = (table["n"] * (table["accuracy"] - table["confidence"]).abs()).sum() / len(said)
    assert compute_expected_calibration_error(said, right, bin_count=bins) == pytest.approx(gaps, abs=1e-9)


@settings(max_examples=25)
@given(rows, st.randoms())
def test_a_weight_is_so_many_documents(pairs, random):
    weights = [random.choice([1, 2, 5]) for _ in pairs]
    said, right = columns(pairs)
    repeated = columns([pair for pair, weight in zip(pairs, weights, strict=True) for _ in range(weight)])
    names = ["low", "high", "confidence", "accuracy"]
    weighted = tabulate_reliability(said, right, weights)
    assert weighted[names].to_numpy() == pytest.approx(tabulate_reliability(*repeated)[names].to_numpy(), abs=1e-9)
    assert weighted["n"].sum() == len(pairs)
    for function in (compute_expected_calibration_error, compute_brier_score):
        assert function(said, right, weights) == pytest.approx(function(*repeated), abs=1e-9)
    names = ["threshold", "coverage", "risk"]
    theirs = tabulate_risk_coverage(*repeated)[names].to_numpy()
    assert tabulate_risk_coverage(said, right, weights)[names].to_numpy() == pytest.approx(theirs, abs=1e-9)


def test_few_documents_of_great_weight_have_a_wide_interval():
    heavy = tabulate_reliability([0.9] * 11, [True] * 11, [100, *[1] * 10], bin_count=1)
    assert (
        heavy.loc[0, "accuracy_low"]
        < 0.1
        < tabulate_reliability([0.9] * 11, [True] * 11, bin_count=1).loc[0, "accuracy_low"]
    )


@given(rows)
def test_brier_is_scikit_learns(pairs):
    said, right = columns(pairs)
    assert compute_brier_score(said, right) == pytest.approx(
        brier_score_loss(right, said, pos_label=True, labels=[0, 1]), abs=1e-9
    )
    assert compute_brier_score([float(one) for one in right], right) == 0
    assert compute_expected_calibration_error([float(one) for one in right], right) == 0


def test_calibration_without_documents():
    assert tabulate_reliability([], []).empty
    assert math.isnan(compute_expected_calibration_error([], []))
    assert math.isnan(compute_brier_score([], []))
    assert tabulate_risk_coverage([], []).empty


@pytest.mark.parametrize("function", [tabulate_reliability, compute_expected_calibration_error, compute_brier_score])
def test_what_is_no_confidence_is_refused(function):
    with pytest.raises(ValueError, match="between 0 and 1"):
        function([1.2], [True])
    with pytest.raises(ValueError, match="NaN"):
        function([math.nan], [True])
    with pytest.raises(ValueError, match="one of each"):
        function([0.5], [])


# ---------------------------------------------------------------------------------------------------------------------
# Risk against coverage


@settings(max_examples=50)
@given(rows, st.randoms())
def test_risk_and_coverage_of_each_threshold(pairs, random):
    score, right = columns(pairs)
    table = tabulate_risk_coverage(score, right)
    assert sorted(set(score), reverse=True) == table["threshold"].tolist()
    for row in table.itertuples():
        accepted = [was for one, was in pairs if one >= row.threshold]
        assert row.n == len(accepted)
        assert row.coverage == pytest.approx(len(accepted) / len(pairs), abs=1e-9)
        assert row.risk == pytest.approx(1 - sum(accepted) / len(accepted), abs=1e-9)
    assert tabulate_risk_coverage(*columns(random.sample(pairs, len(pairs)))).equals(table)


# ---------------------------------------------------------------------------------------------------------------------
# The certificate


def slices(sizes, wrong, scores):
    """Audits with these scores, so many of each and so many of those wrong."""
    score = np.repeat(scores, sizes)
    right = np.concatenate([np.arange(size) >= bad for size, bad in zip(sizes, wrong, strict=True)])
    return score, right


def violation(sizes, rate, candidates, grid):
    """How probable an offer above the rate is, at most over the grid of true risks per slice of scores.

    Every outcome is decided once by the real function; the binomial probabilities of the outcomes are summed.
    """
    scores = np.linspace(0.9, 0.5, len(sizes))
    offered = {}
    for wrong in itertools.product(*(range(size + 1) for size in sizes)):
        offered[wrong] = certify_threshold(
            *slices(sizes, wrong, scores), max_error_rate=rate, candidate_thresholds=candidates
        ).threshold
    worst = 0.0
    for risks in itertools.product(grid, repeat=len(sizes)):
        truly = np.cumsum(np.multiply(sizes, risks)) / np.cumsum(sizes)
        too_high = {score for score, risk in zip(scores, truly, strict=True) if risk > rate + 1e-12}
        chances = [stats.binom.pmf(np.arange(size + 1), size, risk) for size, risk in zip(sizes, risks, strict=True)]
        broken = [wrong for wrong, threshold in offered.items() if threshold in too_high]
        worst = max(
            worst, sum(math.prod(one[bad] for one, bad in zip(chances, wrong, strict=True)) for wrong in broken)
        )
    return worst


@pytest.mark.parametrize(
    ("sizes", "rate", "candidates"),
    [
        ((70, 30), 0.05, [0.9, 0.5]),
        ((16, 8, 8), 0.2, [0.9, 0.7, 0.5]),
    ],
)
def test_the_promise_is_broken_in_one_of_twenty_at_most(sizes, rate, candidates):
    edge = [0, rate / 2, rate, rate * 1.001, rate * 1.1, rate * 1.5, rate * 3, 0.9]
    assert violation(sizes, rate, candidates, edge) <= 0.05


def risks_of_ten():
    """True risks per slice of scores: those where one rate turns into another, and many that chance made."""
    for turn, before, after in itertools.product(range(10), [0, 0.3, 0.5], [0.5001, 0.6, 0.9]):
        yield np.where(np.arange(10) < turn, before, after)
    random = np.random.default_rng(0)
    for spread in (0.05, 0.2, 0.5) * 60:
        yield np.clip(0.5 + random.uniform(-spread, spread, 10), 0, 1)


@pytest.mark.parametrize("first", [5, 7])
def test_the_promise_holds_for_ten_thresholds(first):
    """Every outcome of so few audits is decided by the real function; at a rate of one half five can pass."""
    rate, scores, sizes = 0.5, np.linspace(0.95, 0.5, 10), (first, *[1] * 9)
    outcomes = np.array(list(itertools.product(*(range(size + 1) for size in sizes))))
    offered = [
        certify_threshold(
            *slices(sizes, wrong, scores), max_error_rate=rate, candidate_thresholds=list(scores)
        ).threshold
        for wrong in outcomes
    ]
    place = np.array([10 if one is None else int(np.argmin(np.abs(scores - one))) for one in offered])
    assert len(set(place.tolist())) > 4  # many of the thresholds are offered after some outcome
    worst = 0.0
    for risks in risks_of_ten():
        truly = np.cumsum(np.multiply(sizes, risks)) / np.cumsum(sizes)
        is_too_high = np.append(truly > rate + 1e-12, False)
        of_slices = [stats.binom.pmf(np.arange(size + 1), size, risk) for size, risk in zip(sizes, risks, strict=True)]
        chances = math.prod(of_slice[wrong] for of_slice, wrong in zip(of_slices, outcomes.T, strict=True))
        worst = max(worst, chances[is_too_high[place]].sum())
    assert 0.005 < worst <= 0.05


def test_the_promise_holds_where_scores_fall_out_by_chance_too():
    """Fixed thresholds over a population: how many audits reach each is chance as well. All outcomes of eight audits."""
    rate, scores, n = 0.5, [0.9, 0.7, 0.5], 8
    outcomes, offered = [], []
    for cuts in itertools.combinations(range(n + 5), 5):
        counts = np.diff([-1, *cuts, n + 5]) - 1  # wrong ones of each score, then right ones
        audits = np.repeat([*scores, *scores], counts), np.repeat([False] * 3 + [True] * 3, counts)
        outcomes.append(counts)
        offered.append(certify_threshold(*audits, max_error_rate=rate, candidate_thresholds=scores).threshold or 0.0)
    worst, random = 0.0, np.random.default_rng(0)
    for _ in range(500):
        share, risks = random.dirichlet([1, 1, 1]), random.random(3)
        truly = np.cumsum(share * risks) / np.cumsum(share)
        too_high = [score for score, risk in zip(scores, truly, strict=True) if risk > rate]
        chances = stats.multinomial.pmf(outcomes, n, [*(share * risks), *(share * (1 - risks))])
        worst = max(worst, chances[np.isin(offered, too_high)].sum())
    assert 0.02 < worst <= 0.05


@settings(max_examples=40)
@given(st.lists(st.integers(0, 2), min_size=10, max_size=10))
def test_thresholds_are_tried_from_above_until_one_fails(wrong):
    rate, sizes = 0.05, [60, *[20] * 9]
    scores = np.linspace(0.95, 0.5, 10)
    expected, bad, n = None, 0, 0
    for score, size, more in zip(scores, sizes, wrong, strict=True):
        bad, n = bad + more, n + size
        if compute_error_rate_upper_bound(bad, n) > rate:
            break
        expected = score, bad, n
    found = certify_threshold(*slices(sizes, wrong, scores), max_error_rate=rate, candidate_thresholds=list(scores))
    if expected is None:
        assert (found.threshold, found.coverage) == (None, 0)
        assert found.more_audits_needed > 0
    else:
        assert (found.threshold, found.error_count, found.audit_count) == expected
        assert found.error_bound == compute_error_rate_upper_bound(found.error_count, found.audit_count) <= rate
        assert found.coverage == pytest.approx(found.audit_count / 240)
        assert found.more_audits_needed == 0


def test_a_failure_above_is_not_made_good_below():
    # Alone, the lower threshold would pass (1 of 100); the upper one fails and ends it.
    audits = slices([59, 41], [1, 0], [0.9, 0.5])
    assert certify_threshold(*audits, max_error_rate=0.05, candidate_thresholds=[0.5]).threshold == 0.5
    assert certify_threshold(*audits, max_error_rate=0.05, candidate_thresholds=[0.5, 0.9]).threshold is None


def test_thresholds_with_too_few_audits_are_passed_over():
    audits = slices([20, 39], [0, 0], [0.9, 0.5])
    assert certify_threshold(*audits, max_error_rate=0.05, candidate_thresholds=[0.9, 0.5]).threshold == 0.5


@pytest.mark.parametrize(
    ("score", "right", "wrong", "n", "more"),
    [
        ([], [], 0, 0, 59),
        ([0.9] * 50, [True] * 50, 0, 50, 9),
        ([0.9] * 45 + [0.1] * 5, [True] * 45 + [False] * 5, 0, 45, 14),
        ([0.9] * 59, [False] + [True] * 58, 1, 59, 34),
        # Errors among the surest: only accepting more of them could show it.
        ([0.9] * 3 + [0.5] * 60, [False] * 3 + [True] * 60, 3, 63, count_audits_needed(0.05, 3) - 63),
    ],
)
def test_where_nothing_passes_the_missing_audits_are_counted(score, right, wrong, n, more):
    assert certify_threshold(score, right, max_error_rate=0.05, candidate_thresholds=score) == ThresholdCertificate(
        None, 0.0, wrong, n, compute_error_rate_upper_bound(wrong, n), more
    )


@given(st.lists(st.tuples(st.sampled_from([0.2, 0.5, 0.8, 0.9]), st.booleans()), max_size=50))
def test_with_the_missing_audits_it_passes(pairs):
    score, right = columns(pairs)
    found = certify_threshold(score, right, max_error_rate=0.3, candidate_thresholds=score)
    if found.threshold is None:
        assert compute_error_rate_upper_bound(found.error_count, found.audit_count + found.more_audits_needed) <= 0.3
        assert compute_error_rate_upper_bound(found.error_count, found.audit_count + found.more_audits_needed - 1) > 0.3


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), max_size=40), st.randoms())
def test_audits_count_in_any_order(pairs, random):
    options = {"max_error_rate": 0.2, "candidate_thresholds": [score for score, _ in pairs]}
    found = certify_threshold(*columns(pairs), **options)
    assert certify_threshold(*columns(random.sample(pairs, len(pairs))), **options) == found


def test_a_certificate_of_ten_thousand_audits():
    random = np.random.default_rng(0)
    score = random.random(10_000)
    found = certify_threshold(
        score,
        random.random(10_000) > 0.05 * (1 - score),
        max_error_rate=0.02,
        candidate_thresholds=np.linspace(0, 0.9, 10),
    )
    assert 0.3 < found.threshold < 0.6
    assert found.error_bound <= 0.02


@pytest.mark.parametrize("rate", [0, 1, -1])
def test_an_impossible_rate_is_refused(rate):
    with pytest.raises(ValueError, match="rate"):
        certify_threshold([0.5], [True], max_error_rate=rate, candidate_thresholds=[0.5])


# ---------------------------------------------------------------------------------------------------------------------
# Thinning


def test_thinned_audits_were_drawn_with_equal_probability():
    random = np.random.default_rng(1)
    probability = np.where(np.arange(40_000) < 20_000, 0.2, 0.05)
    drawn = np.flatnonzero(random.random(40_000) < probability)
    stayed = drawn[thin_rows_to_equal_probability(probability[drawn], seed=2)]
    early = int((stayed < 20_000).sum())
    assert stats.binomtest(early, 20_000, 0.05).pvalue > 0.01
    assert (stayed >= 20_000).sum() == (drawn >= 20_000).sum()
    assert np.array_equal(
        thin_rows_to_equal_probability(probability[drawn], seed=2),
        thin_rows_to_equal_probability(probability[drawn], seed=2),
    )
    assert not np.array_equal(
        thin_rows_to_equal_probability(probability[drawn], seed=2),
        thin_rows_to_equal_probability(probability[drawn], seed=3),
    )


@given(st.lists(st.sampled_from([0.05, 0.2, 1.0]), max_size=30), st.integers(0, 5))
def test_the_least_likely_all_stay(probabilities, seed):
    stays = set(thin_rows_to_equal_probability(probabilities, seed).tolist())
    least = min(probabilities, default=1)
    assert {i for i, one in enumerate(probabilities) if one == least} <= stays <= set(range(len(probabilities)))


@pytest.mark.parametrize("probability", [0, 1.1, math.nan])
def test_impossible_probabilities_are_refused(probability):
    with pytest.raises(ValueError, match="above 0"):
        thin_rows_to_equal_probability([probability], seed=0)


def test_bins_of_equal_mass_hold_equally_many() -> None:
    said = [0.5, 0.9, 0.91, 0.92, 0.97, 0.98, 0.985, 0.99, 0.995, 0.999]
    right = [False, True, True, False, True, True, True, True, True, True]
    table = tabulate_reliability(said, right, bin_count=5, is_equal_mass=True)
    assert list(table["n"]) == [2] * 5
    assert table["accuracy"].tolist() == [0.5, 0.5, 1, 1, 1]
    by_hand = sum(abs(sum(said[at : at + 2]) / 2 - sum(right[at : at + 2]) / 2) for at in range(0, 10, 2)) / 5
    assert compute_expected_calibration_error(said, right, bin_count=5, is_equal_mass=True) == pytest.approx(by_hand)


def test_equal_confidences_stay_in_one_bin_of_equal_mass() -> None:
    table = tabulate_reliability([0.9] * 9 + [0.95], [True] * 10, bin_count=5, is_equal_mass=True)
    assert table["n"].tolist() == [9, 1]
