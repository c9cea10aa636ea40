"""How right answers are: about whole documents, their pages and segments, and what is present in them.

Pure functions of plain values. A document's truth comes first, the answer about it second. Where there was no answer
(None for a type, a level or a mixture; no spans for segments) it is wrong: it stays in every denominator. NaN is
returned where nothing was there to be counted.

Segments are read in two ways (contract, ruling 12): as given, and with neighbours of one type as one (:func:`merged`
on both sides). Answers may be malformed, and nothing here raises for that:

- A span of no pages (its first page is behind its last) is no segment, wherever spans are compared.
- A page in no span has no type, and belongs to no segment; a person would have to move it.
- A page in several spans belongs to the one that begins first; of those, to the one listed first.
- Pages outside the document do not count where the number of pages is known; elsewhere they make a span longer than
  it could be, and so less like any true one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import accuracy_score, confusion_matrix, f1_score, precision_recall_fscore_support

from evalkit.classification.schema import DocumentType, PresenceLevel
from evalkit.pipeline.supplied_labels import PageSpan

#: The confusion's column for documents without an answer.
CANNOT_TELL = "cannot tell"

# Labels that no type can be, and that are not equal: an unknown truth is not matched by an unknown answer.
_NO_TRUTH, _NO_ANSWER = "\0no truth", "\0no answer"


# ---------------------------------------------------------------------------------------------------------------------
# Whole documents


def confusion(
    truth: Sequence[str],
    predicted: Sequence[str | None],
    types: Sequence[str],
    weights: Sequence[float] | None = None,
) -> pd.DataFrame:
    """How many documents of each type (rows) were called what (columns); no answer has the last column.

    Labels outside ``types`` get rows and columns behind them, so that the sum is always the number of documents (or
    of their weights).

    >>> counts = confusion(["Other", "Other", "Note"], ["Note", None, "Note"], ["Note", "Other"])
    >>> print(counts.reset_index().to_string(index=False))
    truth  Note  Other  cannot tell
     Note     1      0            0
    Other     1      0            1
    """
    _check_pairs(truth, predicted)
    rows = [*types, *sorted(set(truth) - set(types))]
    further = sorted({label for label in predicted if label is not None} - set(rows))
    labels = [*rows, *further, _NO_ANSWER]
    counts = np.zeros((len(labels), len(labels)), dtype=int if weights is None else float)
    if truth:
        counts = confusion_matrix(list(truth), _answers(predicted), labels=labels, sample_weight=weights)
    return pd.DataFrame(
        counts[: len(rows)],
        index=pd.Index(rows, name="truth"),
        columns=pd.Index([*rows, *further, CANNOT_TELL], name="predicted"),
    )


def accuracy(
    truth: Sequence[str | None], predicted: Sequence[str | None], weights: Sequence[float] | None = None
) -> float:
    """Share of right answers, 0 to 1. Also of the pages of many documents: chain their :func:`page_types`.

    >>> accuracy(["Other", "Note", "Note"], ["Other", None, "Other"])
    0.3333333333333333
    """
    _check_pairs(truth, predicted)
    if not truth:
        return math.nan
    return float(accuracy_score(_truths(truth), _answers(predicted), sample_weight=weights))


def macro_f1(
    truth: Sequence[str | None], predicted: Sequence[str | None], weights: Sequence[float] | None = None
) -> float:
    """Mean of the types' F1, 0 to 1, over the types that occur in truth or answers; no answer is not a type.

    Source: scikit-learn's ``f1_score(average="macro")``.
    """
    _check_pairs(truth, predicted)
    types = sorted({label for label in [*truth, *predicted] if label is not None})
    if not types:
        return math.nan
    return float(
        f1_score(
            _truths(truth),
            _answers(predicted),
            labels=types,
            average="macro",
            sample_weight=weights,
            zero_division=0,
        )
    )


def per_type(
    truth: Sequence[str | None],
    predicted: Sequence[str | None],
    types: Sequence[str],
    weights: Sequence[float] | None = None,
) -> pd.DataFrame:
    """One row a type: ``type, support, precision, recall, f1``.

    ``support`` is how many documents (or how much weight) truly are of the type. Precision is NaN where nothing was
    called that type, recall where nothing is, F1 where neither.
    """
    _check_pairs(truth, predicted)
    empty = np.full(len(types), np.nan)
    precision, recall, f1, support = empty, empty, empty, np.zeros(len(types))
    if truth and types:
        precision, recall, f1, support = precision_recall_fscore_support(
            _truths(truth), _answers(predicted), labels=list(types), sample_weight=weights, zero_division=np.nan
        )
    return pd.DataFrame({"type": list(types), "support": support, "precision": precision, "recall": recall, "f1": f1})


def _check_pairs(truth: Sequence[object], predicted: Sequence[object]) -> None:
    if len(truth) != len(predicted):
        raise ValueError(f"{len(truth)} truths and {len(predicted)} answers: they must belong together, one to one")


def _truths(labels: Iterable[str | None]) -> list[str]:
    return [_NO_TRUTH if label is None else label for label in labels]


def _answers(labels: Iterable[str | None]) -> list[str]:
    return [_NO_ANSWER if label is None else label for label in labels]


# ---------------------------------------------------------------------------------------------------------------------
# Pages and segments of a document


class Scores(NamedTuple):
    """Counts of what was found, and the shares that they make, 0 to 1."""

    precision: float
    recall: float
    f1: float
    true_positives: int
    false_positives: int
    false_negatives: int


class Panoptic(NamedTuple):
    """How well segments were found (recognition) and how well those found fit (segmentation), 0 to 1."""

    pq: float
    """``sq * rq``."""
    sq: float
    """Mean overlap (IoU) of matched segments."""
    rq: float
    """F1 of segments."""
    overlap: float
    """Sum of the matched segments' IoU."""
    true_positives: int
    false_positives: int
    false_negatives: int


def merged(spans: Sequence[PageSpan]) -> list[PageSpan]:
    """The spans in order of pages, neighbours of the same type as one: the second reading of ruling 12.

    Neighbours follow each other without a gap, or overlap. Two that nobody could tell the type of stay two.

    >>> merged([(4, 5, "Note"), (1, 2, "Note"), (3, 3, "Note"), (6, 6, "Other")])
    [(1, 5, 'Note'), (6, 6, 'Other')]
    """
    found: list[PageSpan] = []
    for first, last, kind in _segments(spans):
        before = found[-1] if found else None
        if before and kind is not None and before[2] == kind and first <= before[1] + 1:
            found[-1] = (before[0], max(before[1], last), kind)
        else:
            found.append((first, last, kind))
    return found


def page_types(spans: Sequence[PageSpan], total_pages: int) -> list[str | None]:
    """The type of each page, one entry a page; None where it has none or nobody can tell.

    >>> page_types([(1, 2, "Note"), (2, 3, "Other")], 4)
    ['Note', 'Note', 'Other', None]
    """
    segments = _segments(spans)
    return [None if owner < 0 else segments[owner][2] for owner in _owners(segments, total_pages)]


def page_accuracy(truth: Sequence[PageSpan], predicted: Sequence[PageSpan], total_pages: int) -> float:
    """Share of a document's pages with the right type, 0 to 1. Pages without a type are wrong on either side.

    >>> page_accuracy([(1, 2, "Note"), (3, 4, "Other")], [(1, 3, "Note")], 4)
    0.5
    """
    types = zip(page_types(truth, total_pages), page_types(predicted, total_pages), strict=True)
    # Not by accuracy(): scikit-learn's checks of its input take a hundred times as long as one document's few pages.
    return sum(said is not None and said == true for true, said in types) / total_pages if total_pages else math.nan


def boundaries(spans: Sequence[PageSpan]) -> set[int]:
    """The pages after the first on which a segment begins.

    >>> boundaries([(1, 2, "Note"), (3, 3, "Note"), (4, 9, "Other")])
    {3, 4}
    """
    return {first for first, _, _ in _segments(spans) if first > 1}


def boundary_scores(truth: Sequence[PageSpan], predicted: Sequence[PageSpan]) -> Scores:
    """Of the pages said to begin a segment, how many do (precision); of those that do, how many were said (recall).

    The first page is not counted, as everybody gets it right. A document of one segment that was called one has
    nothing to count: its own scores are 1, and it adds nothing to :func:`pooled` ones, where such documents would
    drown the others. Where only one side has any segment there was no answer, and the scores are 0.

    >>> boundary_scores([(1, 2, "A"), (3, 4, "B"), (5, 9, "A")], [(1, 2, "A"), (3, 9, "A")])
    Scores(precision=1.0, recall=0.5, f1=0.6666666666666666, true_positives=1, false_positives=0, false_negatives=1)
    """
    right, said = boundaries(truth), boundaries(predicted)
    found = _scores(len(right & said), len(said - right), len(right - said))
    if bool(_segments(truth)) != bool(_segments(predicted)):
        return found._replace(precision=0.0, recall=0.0, f1=0.0)
    return found


def pooled(scores: Iterable[Scores]) -> Scores:
    """The scores of many documents together, from the sums of their counts: each boundary weighs the same."""
    counts = [one[3:] for one in scores]
    return _scores(*(sum(column) for column in zip(*counts, strict=True))) if counts else _scores(0, 0, 0)


def panoptic_quality(truth: Sequence[PageSpan], predicted: Sequence[PageSpan], typed: bool = False) -> Panoptic:
    """How well the predicted segments are the true ones, in one number for finding and fitting them.

    A predicted segment is found when more than half of the pages in either are in both (IoU > 0.5) and, where
    ``typed``, its type is the same and known. IoU above one half matches a segment to at most one other unless
    predicted segments overlap; then each is matched once, so that the sum of IoU is largest. Types are not averaged
    over: a document has too few segments of each.

    Source: Kirillov et al., Panoptic Segmentation (CVPR 2019), with pages in the place of pixels.

    Pages 1–4 and 5–6, cut at 4: 1–3 has IoU 3/4 with 1–4, and 4–6 has 2/3 with 5–6. Both are found, and fit by 17/24.

    >>> found = panoptic_quality([(1, 4, "A"), (5, 6, "B")], [(1, 3, "A"), (4, 6, "A")])
    >>> round(found.pq, 4), round(found.sq, 4), found.rq
    (0.7083, 0.7083, 1.0)
    >>> panoptic_quality([(1, 4, "A"), (5, 6, "B")], [(1, 3, "A"), (4, 6, "A")], typed=True)
    Panoptic(pq=0.375, sq=0.75, rq=0.5, overlap=0.75, true_positives=1, false_positives=1, false_negatives=1)
    """
    theirs, ours = _segments(truth), _segments(predicted)
    overlaps = np.array([[_overlap(a, b, typed) for b in ours] for a in theirs]).reshape(len(theirs), len(ours))
    matched = overlaps[linear_sum_assignment(overlaps, maximize=True)]
    matched = matched[matched > 0]
    return _panoptic(float(matched.sum()), len(matched), len(ours) - len(matched), len(theirs) - len(matched))


def pooled_panoptic(many: Iterable[Panoptic]) -> Panoptic:
    """The quality of many documents together, from the sums of their counts: each segment weighs the same."""
    counts = [one[3:] for one in many]
    return _panoptic(*(sum(column) for column in zip(*counts, strict=True))) if counts else _panoptic(0.0, 0, 0, 0)


def is_exact(truth: Sequence[PageSpan], predicted: Sequence[PageSpan], typed: bool) -> bool:
    """Whether the segments are exactly the true ones, in any order; where ``typed``, with their types, all known.

    >>> is_exact([(1, 2, "A"), (3, 3, "B")], [(3, 3, "A"), (1, 2, "A")], typed=False)
    True
    """
    theirs, ours = _segments(truth), _segments(predicted)
    if not typed:
        return Counter(span[:2] for span in theirs) == Counter(span[:2] for span in ours)
    return Counter(theirs) == Counter(ours) and all(kind is not None for *_, kind in ours)


def drag_and_drop_distance(truth: Sequence[PageSpan], predicted: Sequence[PageSpan], total_pages: int) -> int:
    """The fewest pages that a person must move until the predicted grouping is the true one.

    Pages stay where a predicted segment becomes a true one, each at most once; they stay most where the matching of
    largest shared pages is taken. Types do not count. 0 is a perfect grouping, and pages in no segment are all moved.

    Source: Mungmeeprued et al., Tab this Folder of Documents (DocEng 2022), the least number of drags and drops.

    >>> drag_and_drop_distance([(1, 4, "A"), (5, 6, "B")], [(1, 3, "A"), (4, 6, "A")], 6)
    1
    """
    theirs, ours = _segments(truth), _segments(predicted)
    shared = np.zeros((len(theirs), len(ours)), dtype=int)
    owners = np.array([_owners(theirs, total_pages), _owners(ours, total_pages)])
    np.add.at(shared, tuple(owners[:, (owners >= 0).all(axis=0)]), 1)
    return total_pages - int(shared[linear_sum_assignment(shared, maximize=True)].sum())


def _segments(spans: Iterable[PageSpan]) -> list[PageSpan]:
    """Those that have pages, by first page; the order of those that begin together is kept."""
    return sorted((span for span in spans if span[0] <= span[1]), key=lambda span: span[0])


def _owners(segments: Sequence[PageSpan], total_pages: int) -> npt.NDArray[np.intp]:
    """Which of the segments (in order of pages) each page belongs to, -1 for none."""
    owners = np.full(total_pages, -1, dtype=np.intp)
    for place, (first, last, _) in reversed(list(enumerate(segments))):
        owners[max(first, 1) - 1 : max(last, 0)] = place
    return owners


def _overlap(one: PageSpan, other: PageSpan, typed: bool) -> float:
    """Shared pages over all pages of both, or 0 where they are no match."""
    if typed and (one[2] != other[2] or one[2] is None):
        return 0.0
    shared = min(one[1], other[1]) - max(one[0], other[0]) + 1
    union = (one[1] - one[0] + 1) + (other[1] - other[0] + 1) - shared
    return shared / union if 2 * shared > union else 0.0


def _scores(right: int, invented: int, missed: int) -> Scores:
    """Where nothing was said or nothing is there, what could not be wrong is 1."""
    said, true = right + invented, right + missed
    if not said and not true:
        return Scores(1.0, 1.0, 1.0, 0, 0, 0)
    precision = right / said if said else 0.0
    recall = right / true if true else 0.0
    return Scores(precision, recall, 2 * right / (said + true), right, invented, missed)


def _panoptic(overlap: float, right: int, invented: int, missed: int) -> Panoptic:
    recognition = _scores(right, invented, missed).f1
    fit = overlap / right if right else recognition
    return Panoptic(fit * recognition, fit, recognition, overlap, right, invented, missed)


# ---------------------------------------------------------------------------------------------------------------------
# What is present in a document


def presence_scores(
    truth: Sequence[Mapping[str, str]],
    predicted: Sequence[Mapping[str, str] | None],
    types: Sequence[str] = tuple(DocumentType),
) -> pd.DataFrame:
    """One row a type: ``type, support, precision, recall, f1, level_agreement``.

    The documents' levels by type; a type that is not named has NO_EVIDENCE, and everything else is present.
    ``support`` is in how many documents it truly is. ``level_agreement`` is the share of documents whose level is the
    same to the word, NO_EVIDENCE included; a document without an answer agrees in nothing. NaN as in :func:`per_type`.

    >>> truth = [{"Note": "PRIMARY", "Other": "MENTION_ONLY"}, {"Note": "PRIMARY"}]
    >>> presence_scores(truth, [{"Note": "EMBEDDED_RAW"}, {"Note": "PRIMARY"}], ["Note", "Other"])
        type  support  precision  recall   f1  level_agreement
    0   Note        2        1.0     1.0  1.0              0.5
    1  Other        1        NaN     0.0  0.0              0.5
    """
    _check_pairs(truth, predicted)
    rows = [
        (
            [str(levels.get(kind, PresenceLevel.NO_EVIDENCE)) for levels in truth],
            [None if levels is None else str(levels.get(kind, PresenceLevel.NO_EVIDENCE)) for levels in predicted],
        )
        for kind in types
    ]
    presence = [
        per_type(_present(levels), _present(claimed), [_PRESENT]).drop(columns="type") for levels, claimed in rows
    ]
    return pd.DataFrame(
        {
            "type": [str(kind) for kind in types],
            **{name: [frame[name].iloc[0] for frame in presence] for name in ("support", "precision", "recall", "f1")},
            "level_agreement": [accuracy(levels, claimed) for levels, claimed in rows],
        }
    )


_PRESENT = "present"


def _present(levels: Iterable[str | None]) -> list[str]:
    """Presence alone; where there was no answer, nothing was claimed."""
    return ["absent" if level in {None, PresenceLevel.NO_EVIDENCE} else _PRESENT for level in levels]


def mixture_error(truth: Mapping[str, float], predicted: Mapping[str, float] | None) -> float:
    """How much of the document was put under the wrong type: half the sum of absolute differences, 0 to 1.

    The total variation distance of two distributions. Without an answer it is 1, and never more, though the shares of
    a wrong answer may sum to more than 1.

    >>> mixture_error({"Note": 0.75, "Other": 0.25}, {"Note": 0.5, "Other": 0.25, "Genomic Report": 0.25})
    0.25
    """
    if predicted is None:
        return 1.0
    types = sorted({*truth, *predicted})
    return min(math.fsum(abs(truth.get(kind, 0.0) - predicted.get(kind, 0.0)) for kind in types) / 2, 1.0)
