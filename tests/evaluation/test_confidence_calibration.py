"""Calibration equals scikit-learn's."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve

from evalkit.evaluation.confidence_calibration import (
    compute_expected_calibration_error,
    tabulate_reliability,
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
    error = compute_expected_calibration_error(said, right, weights)
    assert error == pytest.approx(compute_expected_calibration_error(*repeated), abs=1e-9)


def test_few_documents_of_great_weight_have_a_wide_interval():
    heavy = tabulate_reliability([0.9] * 11, [True] * 11, [100, *[1] * 10], bin_count=1)
    assert (
        heavy.loc[0, "accuracy_low"]
        < 0.1
        < tabulate_reliability([0.9] * 11, [True] * 11, bin_count=1).loc[0, "accuracy_low"]
    )


def test_calibration_without_documents():
    assert tabulate_reliability([], []).empty
    assert math.isnan(compute_expected_calibration_error([], []))
