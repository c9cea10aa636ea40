"""Agreement of experts: scikit-learn's kappa, and the cases where it is not defined."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from evalkit.evaluation.metrics import compute_cohen_kappa

labels = st.sampled_from(["Note", "Other", "Radiology"])
pairs = st.lists(st.tuples(labels, labels), min_size=1, max_size=30)


@settings(max_examples=40)
@given(pairs, st.randoms())
def test_kappa_is_scikit_learns_in_any_order(rows, random):
    one, other = zip(*rows, strict=True)
    if len({*one, *other}) < 2:
        assert math.isnan(compute_cohen_kappa(one, other))
        return
    assert compute_cohen_kappa(one, other) == pytest.approx(cohen_kappa_score(one, other), abs=1e-9)
    assert compute_cohen_kappa(one, other) == pytest.approx(compute_cohen_kappa(other, one), abs=1e-9)
    assert -1 <= compute_cohen_kappa(one, other) <= 1
    assert compute_cohen_kappa(one, one) == 1 or len(set(one)) < 2
    again = random.sample(rows, len(rows))
    assert compute_cohen_kappa(*zip(*again, strict=True)) == pytest.approx(compute_cohen_kappa(one, other), abs=1e-9)


def test_kappa_worked_out():
    # 20 + 15 of 50 agree; by chance 0.6 * 0.5 + 0.4 * 0.5 would.
    one = ["yes"] * 25 + ["no"] * 25
    other = ["yes"] * 20 + ["no"] * 5 + ["yes"] * 10 + ["no"] * 15
    assert compute_cohen_kappa(one, other) == pytest.approx((0.7 - 0.5) / (1 - 0.5), abs=1e-9)


def test_two_who_cannot_tell_agree():
    assert compute_cohen_kappa([None, "Note"], [None, "Note"]) == 1
    assert compute_cohen_kappa([None, "Note"], ["Note", "Note"]) == 0


def test_kappa_is_about_the_same_cases():
    with pytest.raises(ValueError, match="shorter"):
        compute_cohen_kappa(["Note"], [])
    assert math.isnan(compute_cohen_kappa([], []))
