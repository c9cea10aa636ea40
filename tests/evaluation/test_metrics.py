"""Metrics: equal to scikit-learn's or worked out by hand, and sane for any answer, however malformed."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sklearn_metrics

from evalkit.classification.schema import DocumentType
from evalkit.evaluation.metrics import (
    CANNOT_TELL,
    compute_accuracy,
    compute_macro_f1,
    compute_mixture_error,
    compute_page_accuracy,
    find_boundaries,
    is_exact_segmentation,
    list_page_types,
    merge_same_type_neighbours,
    pool_detection_scores,
    score_boundaries,
    tabulate_confusion,
)

TYPES = [str(kind) for kind in DocumentType]
PAGES = 8

types = st.sampled_from(TYPES)
pairs = st.lists(st.tuples(types, types), min_size=1, max_size=40)
pairs_with_none = st.lists(st.tuples(types, st.one_of(st.none(), types)), min_size=1, max_size=40)


@st.composite
def good_spans(draw):
    """Every page in exactly one segment."""
    starts = [1, *sorted(draw(st.sets(st.integers(2, PAGES))))]
    ends = [start - 1 for start in starts[1:]] + [PAGES]
    return [(first, last, draw(types)) for first, last in zip(starts, ends, strict=True)]


any_spans = st.lists(st.tuples(st.integers(-2, 12), st.integers(-2, 12), st.one_of(st.none(), types)), max_size=6)


def split(rows):
    return [truth for truth, _ in rows], [predicted for _, predicted in rows]


# ---------------------------------------------------------------------------------------------------------------------
# Whole documents


@settings(max_examples=30)
@given(pairs)
def test_documents_are_counted_as_scikit_learn_does(rows):
    truth, predicted = split(rows)
    counts = sklearn_metrics.confusion_matrix(truth, predicted, labels=TYPES)
    assert np.array_equal(tabulate_confusion(truth, predicted, TYPES)[TYPES].to_numpy(), counts)
    theirs = sklearn_metrics.accuracy_score(truth, predicted)
    assert compute_accuracy(truth, predicted) == pytest.approx(theirs, abs=1e-9)
    theirs = sklearn_metrics.f1_score(truth, predicted, average="macro", zero_division=0)
    assert compute_macro_f1(truth, predicted) == pytest.approx(theirs, abs=1e-9)


@settings(max_examples=40)
@given(pairs_with_none, st.randoms())
def test_an_answer_that_is_missing_is_wrong_and_never_dropped(rows, random):
    truth, predicted = split(rows)
    table = tabulate_confusion(truth, predicted, TYPES)
    assert table.to_numpy().sum() == len(rows)
    assert table[CANNOT_TELL].sum() == predicted.count(None)
    assert list(table.columns) == [*TYPES, CANNOT_TELL]
    right = sum(a == b for a, b in rows)
    assert compute_accuracy(truth, predicted) == pytest.approx(right / len(rows), abs=1e-9)
    assert 0 <= compute_macro_f1(truth, predicted) <= 1
    random.shuffle(rows)
    again = split(rows)
    assert tabulate_confusion(*again, TYPES).equals(table)
    assert compute_macro_f1(*again) == pytest.approx(compute_macro_f1(truth, predicted), abs=1e-9)


def test_macro_f1_worked_out():
    # Note: 1 found, 1 missed: F1 2/3. Other: found: 1. Radiology: said once, never true: 0. No answer is no type.
    truth = ["Note", "Note", "Other", "Other"]
    assert compute_macro_f1(truth, ["Note", None, "Other", "Other"]) == pytest.approx((2 / 3 + 1) / 2, abs=1e-9)
    assert compute_macro_f1(truth, ["Note", "Radiology", "Other", "Other"]) == pytest.approx(
        (2 / 3 + 1 + 0) / 3, abs=1e-9
    )


def test_foreign_labels_get_rows_and_columns_of_their_own():
    table = tabulate_confusion(["Note", "Letter"], ["Lab", None], ["Note"])
    assert list(table.index) == ["Note", "Letter"]
    assert list(table.columns) == ["Note", "Letter", "Lab", CANNOT_TELL]
    assert table.loc["Note", "Lab"] == table.loc["Letter", CANNOT_TELL] == 1


def test_nothing_to_count_is_not_a_number():
    assert math.isnan(compute_accuracy([], []))
    assert math.isnan(compute_macro_f1([], []))
    assert tabulate_confusion([], [], TYPES).to_numpy().sum() == 0


def test_an_unknown_truth_is_not_matched_by_an_unknown_answer():
    assert compute_accuracy([None, "Note"], [None, "Note"]) == 0.5


@pytest.mark.parametrize(
    "function",
    [compute_accuracy, compute_macro_f1, lambda a, b: tabulate_confusion(a, b, TYPES)],
)
def test_lists_of_different_length_are_refused(function):
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        function(["Note"], [])


# ---------------------------------------------------------------------------------------------------------------------
# Pages and segments


@given(good_spans())
def test_a_perfect_answer_is_perfect(spans):
    backwards = spans[::-1]
    assert compute_page_accuracy(spans, backwards, PAGES) == 1
    assert score_boundaries(spans, backwards)[:3] == (1, 1, 1)
    for typed in (False, True):
        assert is_exact_segmentation(spans, backwards, typed)
        assert is_exact_segmentation(merge_same_type_neighbours(spans), merge_same_type_neighbours(backwards), typed)


@given(good_spans(), any_spans, st.randoms())
def test_any_answer_has_scores_within_bounds(truth, predicted, random):
    assert len(list_page_types(predicted, PAGES)) == PAGES
    numbers = [compute_page_accuracy(truth, predicted, PAGES), *score_boundaries(truth, predicted)[:3]]
    for typed in (False, True):
        assert is_exact_segmentation(truth, predicted, typed) <= (score_boundaries(truth, predicted).f1 == 1)
    assert all(0 <= number <= 1 + 1e-9 for number in numbers)
    # The first listed wins a page only where two begin together.
    distinct = list({span[0]: span for span in predicted}.values())
    shuffled = random.sample(distinct, len(distinct))
    assert list_page_types(distinct, PAGES) == list_page_types(shuffled, PAGES)


@given(good_spans(), good_spans())
def test_whoever_comes_first(one, other):
    assert score_boundaries(one, other).f1 == score_boundaries(other, one).f1
    assert score_boundaries(one, other).precision == score_boundaries(other, one).recall


def as_labels(spans):
    """Per page after the first: does a segment begin here?"""
    return [page in {first for first, _, _ in spans} for page in range(2, PAGES + 1)]


@settings(max_examples=40)
@given(st.lists(st.tuples(good_spans(), good_spans()), min_size=1, max_size=6))
def test_boundaries_are_scored_as_scikit_learn_does(documents):
    truth = list(itertools.chain.from_iterable(as_labels(one) for one, _ in documents))
    predicted = list(itertools.chain.from_iterable(as_labels(other) for _, other in documents))
    ours = pool_detection_scores(score_boundaries(one, other) for one, other in documents)
    theirs = sklearn_metrics.precision_recall_fscore_support(truth, predicted, average="binary", zero_division=0)
    if any(truth) or any(predicted):
        assert ours[:3] == pytest.approx(theirs[:3], abs=1e-9)
    else:
        assert ours[:3] == (1, 1, 1)


@settings(max_examples=40)
@given(st.lists(st.tuples(good_spans(), good_spans()), min_size=1, max_size=6))
def test_pages_of_many_documents_are_scored_together(documents):
    truth = list(itertools.chain.from_iterable(list_page_types(one, PAGES) for one, _ in documents))
    predicted = list(itertools.chain.from_iterable(list_page_types(other, PAGES) for _, other in documents))
    mean = np.mean([compute_page_accuracy(one, other, PAGES) for one, other in documents])
    assert compute_accuracy(truth, predicted) == pytest.approx(mean, abs=1e-9)


def test_one_segment_called_one_is_right_and_adds_nothing():
    single = [(1, 5, "Note")]
    assert score_boundaries(single, [(1, 5, "Other")]) == (1, 1, 1, 0, 0, 0)
    cut = score_boundaries([(1, 2, "Note"), (3, 5, "Other")], single)
    assert cut[:3] == (0, 0, 0)
    assert pool_detection_scores([cut, score_boundaries(single, single)]) == cut
    assert pool_detection_scores([]) == (1, 1, 1, 0, 0, 0)


@pytest.mark.parametrize("nothing", [[], [(3, 1, "Note")]])
def test_no_answer_is_right_about_nothing(nothing):
    truth = [(1, 5, "Note")]
    assert compute_page_accuracy(truth, nothing, 5) == 0
    assert score_boundaries(truth, nothing)[:3] == (0, 0, 0)
    assert not is_exact_segmentation(truth, nothing, compare_types=False)


def test_cannot_tell_is_never_the_right_type():
    unknown = [(1, 3, None)]
    assert compute_page_accuracy(unknown, unknown, 3) == 0
    assert not is_exact_segmentation(unknown, unknown, compare_types=True)


def test_malformed_spans_mean_what_is_said_of_them():
    spans = [(4, 5, "B"), (2, 4, "A"), (2, 2, "C"), (9, 7, "D"), (0, 1, "E"), (7, 99, "F")]
    assert list_page_types(spans, 8) == ["E", "A", "A", "A", "B", None, "F", "F"]
    assert find_boundaries(spans) == {2, 4, 7}


@given(good_spans())
def test_merging_keeps_every_page_and_is_done_once(spans):
    assert list_page_types(merge_same_type_neighbours(spans), PAGES) == list_page_types(spans, PAGES)
    assert merge_same_type_neighbours(merge_same_type_neighbours(spans)) == merge_same_type_neighbours(spans)
    assert all(a[2] != b[2] for a, b in itertools.pairwise(merge_same_type_neighbours(spans)))


def test_only_true_neighbours_are_merged():
    assert merge_same_type_neighbours([(1, 2, "A"), (4, 5, "A"), (6, 6, None), (7, 7, None)]) == [
        (1, 2, "A"),
        (4, 5, "A"),
        (6, 6, None),
        (7, 7, None),
    ]
    assert merge_same_type_neighbours([(1, 5, "A"), (2, 3, "A")]) == [(1, 5, "A")]


# ---------------------------------------------------------------------------------------------------------------------
# Presence and mixture

shares = (
    st.lists(st.integers(0, 100), min_size=5, max_size=5)
    .filter(any)
    .map(lambda parts: {kind: part / sum(parts) for kind, part in zip(TYPES, parts, strict=True) if part})
)


@given(shares, shares, shares)
def test_mixture_error_is_a_distance(one, other, third):
    assert compute_mixture_error(one, one) == 0
    assert compute_mixture_error(one, other) == pytest.approx(compute_mixture_error(other, one), abs=1e-9)
    assert 0 <= compute_mixture_error(one, other) <= 1
    assert (
        compute_mixture_error(one, third)
        <= compute_mixture_error(one, other) + compute_mixture_error(other, third) + 1e-9
    )
    # What both have in common is right, the rest is not.
    common = sum(min(one.get(kind, 0), other.get(kind, 0)) for kind in TYPES)
    assert compute_mixture_error(one, other) == pytest.approx(1 - common, abs=1e-9)


def test_mixture_error_at_its_worst():
    assert compute_mixture_error({"Note": 1.0}, None) == 1
    assert compute_mixture_error({"Note": 1.0}, {"Other": 1.06}) == 1
