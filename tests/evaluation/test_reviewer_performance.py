"""Agreement of experts: scikit-learn's kappa, Krippendorff's own example, and the cases where neither is defined."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from evalkit.evaluation.metrics import compute_cohen_kappa
from evalkit.evaluation.reviewer_performance import compute_krippendorff_alpha

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


def test_alpha_is_krippendorffs_own_example():
    # The four observers of twelve units in Computing Krippendorff's Alpha-Reliability (2011), nominal: 0.743.
    rows = ["1 2 3 3 2 1 4 1 2 . . .", "1 2 3 3 2 2 4 1 2 5 . 3", ". 3 3 3 2 3 4 2 2 5 1 .", "1 2 3 3 2 4 4 1 2 5 1 ."]
    table = [[None if label == "." else label for label in row.split()] for row in rows]
    assert compute_krippendorff_alpha(table) == pytest.approx(0.743421052631579, abs=1e-9)
    assert compute_krippendorff_alpha(table[::-1]) == pytest.approx(compute_krippendorff_alpha(table), abs=1e-9)
    assert compute_krippendorff_alpha([row[::-1] for row in table]) == pytest.approx(
        compute_krippendorff_alpha(table), abs=1e-9
    )


@given(pairs)
def test_alpha_of_two_from_its_definition(rows):
    # 1 - observed over expected disagreement, where the expected is drawn without putting back.
    pool = [label for pair in rows for label in pair]
    differ = sum(a != b for i, a in enumerate(pool) for j, b in enumerate(pool) if i != j)
    value = compute_krippendorff_alpha(list(zip(*rows, strict=True)))
    if not differ:
        assert math.isnan(value)
        return
    expected = differ / (len(pool) * (len(pool) - 1))
    assert value == pytest.approx(1 - sum(a != b for a, b in rows) / len(rows) / expected, abs=1e-9)


@pytest.mark.parametrize("table", [[], [[], []], [["Note", None], [None, "Other"]], [["Note", "A"], ["Note", None]]])
def test_alpha_without_pairs_that_could_differ_is_not_a_number(table):
    assert math.isnan(compute_krippendorff_alpha(table))
