"""Calibration equals scikit-learn's."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss

from evalkit.evaluation.confidence_calibration import (
    compute_brier_score,
    compute_expected_calibration_error,
    tabulate_reliability,
    tabulate_risk_coverage,
)
from evalkit.evaluation.intervals import estimate_proportion

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
    with pytest.raises(ValueError, match="pass one score, one outcome"):
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
