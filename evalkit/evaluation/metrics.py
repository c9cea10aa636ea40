"""Metrics of answers about documents, pages, segments and types.

Pure functions of plain values. The truth is the first argument, the answer the second. A missing answer (None for a
type, level or mixture; no spans for segments) counts as wrong and stays in every denominator. A metric is NaN if there
is nothing to count.

Segments are compared in two ways (contract, ruling 12): as given, and after merging neighbours of one type
(:func:`merge_same_type_neighbours` on both sides). Malformed answers raise no error:

- A span without pages (its first page is after its last) is ignored.
- A page in no span has no type and belongs to no segment; a person would have to move it.
- A page in several spans belongs to the span that begins first; if several begin there, to the one listed first.
- Pages outside the document do not count if the number of pages is known; otherwise they make the span longer than
  possible, and so less similar to any true segment.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.metrics import (
    accuracy_score,
    confusion_matrix,
    f1_score,
)

from evalkit.core.grouping import split_into_runs
from evalkit.pipeline.supplied_labels import TypedPageRange

#: Name of the confusion matrix's column for documents without an answer.
CANNOT_TELL = "cannot tell"

# Placeholders that differ from every type and from each other, so that an unknown truth never equals a missing answer.
_UNKNOWN_TRUTH_LABEL, _NO_ANSWER_LABEL = "\0no truth", "\0no answer"


# ---------------------------------------------------------------------------------------------------------------------
# Whole documents


def tabulate_confusion(truth: Sequence[str], predicted: Sequence[str | None], types: Sequence[str]) -> pd.DataFrame:
    """Tabulate the confusion matrix: true types (rows), answered types (columns).

    The last column counts documents without an answer. Labels that are not in ``types`` get further rows and columns,
    so the sum is always the number of documents.

    >>> counts = tabulate_confusion(["Other", "Other", "Note"], ["Note", None, "Note"], ["Note", "Other"])
    >>> print(counts.reset_index().to_string(index=False))
    truth  Note  Other  cannot tell
     Note     1      0            0
    Other     1      0            1
    """
    row_labels = [*types, *sorted(set(truth) - set(types))]
    extra_labels = sorted({label for label in predicted if label is not None} - set(row_labels))
    all_labels = [*row_labels, *extra_labels, _NO_ANSWER_LABEL]
    counts = np.zeros((len(all_labels), len(all_labels)), dtype=int)
    if truth:
        counts = confusion_matrix(list(truth), _label_missing(predicted, _NO_ANSWER_LABEL), labels=all_labels)
    return pd.DataFrame(
        counts[: len(row_labels)],
        index=pd.Index(row_labels, name="truth"),
        columns=pd.Index([*row_labels, *extra_labels, CANNOT_TELL], name="predicted"),
    )


def compute_accuracy(truth: Sequence[str | None], predicted: Sequence[str | None]) -> float:
    """Compute the share of right answers, 0..1; NaN without answers.

    For the accuracy over pages of several documents, pass their concatenated :func:`list_page_types`.

    >>> compute_accuracy(["Other", "Note", "Note"], ["Other", None, "Other"])
    0.3333333333333333
    """
    if not truth:
        return math.nan
    return float(
        accuracy_score(
            _label_missing(truth, _UNKNOWN_TRUTH_LABEL),
            _label_missing(predicted, _NO_ANSWER_LABEL),
        )
    )


def compute_macro_f1(truth: Sequence[str | None], predicted: Sequence[str | None]) -> float:
    """Compute the mean F1 (0..1) over the types that occur in truths or answers.

    Source: scikit-learn's ``f1_score(average="macro")``.
    """
    types = sorted({label for label in [*truth, *predicted] if label is not None})
    if not types:
        return math.nan
    return float(
        f1_score(
            _label_missing(truth, _UNKNOWN_TRUTH_LABEL),
            _label_missing(predicted, _NO_ANSWER_LABEL),
            labels=types,
            average="macro",
            zero_division=0,
        )
    )


def compute_cohen_kappa(first_labels: Sequence[str | None], second_labels: Sequence[str | None]) -> float:
    """Compute Cohen's kappa of two sets of answers: 1 is full agreement, 0 chance.

    Each list has one type per case, in the same order; None means "cannot tell", and two None agree. NaN if both
    gave one and the same type for all cases, because kappa is undefined then; report the share of agreement instead.

    Source: Cohen, Educational and Psychological Measurement 20 (1960).

    >>> compute_cohen_kappa(["Note", "Note", "Other", "Other"], ["Note", "Other", "Other", "Other"])
    0.5
    """
    agreement_count = sum(first == second for first, second in zip(first_labels, second_labels, strict=True))
    if len({*first_labels, *second_labels}) < 2:
        return math.nan
    second_counts, count = Counter(second_labels), len(first_labels)
    chance = sum(number * second_counts[label] for label, number in Counter(first_labels).items()) / count**2
    return (agreement_count / count - chance) / (1 - chance)


def _label_missing(labels: Iterable[str | None], placeholder: str) -> list[str]:
    return [placeholder if label is None else label for label in labels]


# ---------------------------------------------------------------------------------------------------------------------
# Pages and segments of a document


class DetectionScores(NamedTuple):
    """Precision, recall and F1 (0..1) of a detection, with the counts behind them."""

    precision: float
    recall: float
    f1: float
    true_positives: float
    false_positives: float
    false_negatives: float


def merge_same_type_neighbours(spans: Sequence[TypedPageRange]) -> list[TypedPageRange]:
    """Merge neighbouring page ranges of one type and sort them (ruling 12).

    Spans are neighbours if they overlap or no page lies between them. Spans of unknown type (None) are not merged.

    >>> merge_same_type_neighbours([(4, 5, "Note"), (1, 2, "Note"), (3, 3, "Note"), (6, 6, "Other")])
    [(1, 5, 'Note'), (6, 6, 'Other')]
    """
    runs = split_into_runs(
        _sort_segments(spans),
        lambda run, span: span[2] is not None and span[2] == run[0][2] and span[0] <= max(end for _, end, _ in run) + 1,
    )
    return [(run[0][0], max(end for _, end, _ in run), run[0][2]) for run in runs]


def list_page_types(spans: Sequence[TypedPageRange], total_pages: int) -> list[str | None]:
    """List the type of each page; None if no segment contains it or its type is open.

    >>> list_page_types([(1, 2, "Note"), (2, 3, "Other")], 4)
    ['Note', 'Note', 'Other', None]
    """
    segments = _sort_segments(spans)
    return [
        None if segment_position < 0 else segments[segment_position][2]
        for segment_position in _map_pages_to_segment_index(segments, total_pages)
    ]


def compute_page_accuracy(
    truth: Sequence[TypedPageRange], predicted: Sequence[TypedPageRange], total_pages: int
) -> float:
    """Compute the share (0..1) of pages with the right type; no type counts as wrong.

    >>> compute_page_accuracy([(1, 2, "Note"), (3, 4, "Other")], [(1, 3, "Note")], 4)
    0.5
    """
    type_pairs = zip(list_page_types(truth, total_pages), list_page_types(predicted, total_pages), strict=True)
    # Not by compute_accuracy: scikit-learn's input checks take a hundred times as long for the few pages of a document.
    return (
        sum(predicted_type is not None and predicted_type == true_type for true_type, predicted_type in type_pairs)
        / total_pages
        if total_pages
        else math.nan
    )


def find_boundaries(spans: Sequence[TypedPageRange]) -> set[int]:
    """Return the boundary pages: those on which a segment begins, except page 1.

    >>> find_boundaries([(1, 2, "Note"), (3, 3, "Note"), (4, 9, "Other")])
    {3, 4}
    """
    return {start_page for start_page, _, _ in _sort_segments(spans) if start_page > 1}


def score_boundaries(truth: Sequence[TypedPageRange], predicted: Sequence[TypedPageRange]) -> DetectionScores:
    """Compute precision, recall and F1 of the pages on which segments begin.

    Page 1 is not counted, because a segment always begins there. A document that truly has one segment and was answered
    with one has no boundary: its scores are 1, and it adds nothing to pooled scores (:func:`pool_detection_scores`),
    which such documents would otherwise dominate. If only one side has segments, the scores are 0.

    >>> score_boundaries([(1, 2, "A"), (3, 4, "B"), (5, 9, "A")], [(1, 2, "A"), (3, 9, "A")])
    DetectionScores(precision=1.0, recall=0.5, f1=0.6666666666666666, true_positives=1, false_positives=0, false_negatives=1)
    """
    true_boundaries, predicted_boundaries = find_boundaries(truth), find_boundaries(predicted)
    boundary_counts = _compute_detection_scores(
        len(true_boundaries & predicted_boundaries),
        len(predicted_boundaries - true_boundaries),
        len(true_boundaries - predicted_boundaries),
    )
    if bool(_sort_segments(truth)) != bool(_sort_segments(predicted)):
        return boundary_counts._replace(precision=0.0, recall=0.0, f1=0.0)
    return boundary_counts


def pool_detection_scores(scores: Iterable[DetectionScores]) -> DetectionScores:
    """Compute the scores of several documents from their summed counts."""
    counts = [document_scores[3:] for document_scores in scores]
    return (
        _compute_detection_scores(*(sum(count_column) for count_column in zip(*counts, strict=True)))
        if counts
        else _compute_detection_scores(0, 0, 0)
    )


def is_exact_segmentation(
    truth: Sequence[TypedPageRange], predicted: Sequence[TypedPageRange], compare_types: bool
) -> bool:
    """Return True if predicted and true segments have the same pages, in any order.

    With ``compare_types`` the types must be equal too, and none may be unknown.

    >>> is_exact_segmentation([(1, 2, "A"), (3, 3, "B")], [(3, 3, "A"), (1, 2, "A")], compare_types=False)
    True
    """
    true_segments, predicted_segments = _sort_segments(truth), _sort_segments(predicted)
    if not compare_types:
        return Counter(span[:2] for span in true_segments) == Counter(span[:2] for span in predicted_segments)
    return Counter(true_segments) == Counter(predicted_segments) and all(
        segment_type is not None for *_, segment_type in predicted_segments
    )


def _sort_segments(spans: Iterable[TypedPageRange]) -> list[TypedPageRange]:
    """Sort spans by first page (stable), without spans that contain no page."""
    return sorted((span for span in spans if span[0] <= span[1]), key=lambda span: span[0])


def _map_pages_to_segment_index(segments: Sequence[TypedPageRange], total_pages: int) -> npt.NDArray[np.intp]:
    """Return the segment index of each page, in page order; -1 if none."""
    page_owners = np.full(total_pages, -1, dtype=np.intp)
    for position, (start_page, end_page, _) in reversed(list(enumerate(segments))):
        page_owners[max(start_page, 1) - 1 : max(end_page, 0)] = position
    return page_owners


def _compute_detection_scores(true_positives: float, false_positives: float, false_negatives: float) -> DetectionScores:
    """Compute precision, recall and F1 from counts; all are 1 if every count is 0."""
    predicted_count, true_count = true_positives + false_positives, true_positives + false_negatives
    if not predicted_count and not true_count:
        return DetectionScores(1.0, 1.0, 1.0, 0, 0, 0)
    precision = true_positives / predicted_count if predicted_count else 0.0
    recall = true_positives / true_count if true_count else 0.0
    return DetectionScores(
        precision,
        recall,
        2 * true_positives / (predicted_count + true_count),
        true_positives,
        false_positives,
        false_negatives,
    )


# ---------------------------------------------------------------------------------------------------------------------
# What is present in a document


def compute_mixture_error(truth: Mapping[str, float], predicted: Mapping[str, float] | None) -> float:
    """Compute the total variation distance of two mixtures.

    It is half the sum of the absolute differences of shares. The result is 0..1: 1 without an answer, and limited to 1
    if the shares of a malformed answer sum to more than 1.

    >>> compute_mixture_error({"Note": 0.75, "Other": 0.25}, {"Note": 0.5, "Other": 0.25, "Genomic Report": 0.25})
    0.25
    """
    if predicted is None:
        return 1.0
    types = sorted({*truth, *predicted})
    return min(
        math.fsum(abs(truth.get(type_name, 0.0) - predicted.get(type_name, 0.0)) for type_name in types) / 2, 1.0
    )
