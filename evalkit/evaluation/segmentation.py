"""How well pages are cut into source documents: the pooled measures of a study, in both readings of ruling 12.

Measured on the documents whose segments an expert vouched for. A document that was drawn with probability p stands for
1 / p of its kind, in the figure and in its interval; those that nobody looked at yet are not in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evalkit.evaluation.intervals import Estimate, Rows, bootstrap
from evalkit.evaluation.metrics import (
    boundary_scores,
    drag_and_drop_distance,
    is_exact,
    merged,
    page_accuracy,
    panoptic_quality,
)
from evalkit.evaluation.study import Study
from evalkit.pipeline.supplied_labels import PageSpan

_SEED = 20
"""Of the resampling: equal studies have equal intervals."""


@dataclass(frozen=True)
class Cut:
    """One document's segments, as they are and as they were said."""

    doc_id: str
    truth: Sequence[PageSpan]
    said: Sequence[PageSpan]
    pages: int
    weight: float
    """How many documents it stands for, at least 1."""


@dataclass(frozen=True)
class Measured:
    """One measure, in both readings."""

    name: str
    as_given: Estimate
    """A segment is one source document: two neighbours of one type are two."""
    merged: Estimate
    """Neighbours of the same type are one."""


def cuts(study: Study) -> list[Cut]:
    """The documents that can be measured."""
    return [
        Cut(one.doc_id, one.truth.labels.segments, one.agent.segments if one.agent else (), one.pages, one.weight)
        for one in study.reviewed
        if one.truth and one.truth.says("segments") and one.pages
    ]


Sums = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Measure:
    """What is counted in one document, and what the sums over many make; 0..1."""

    count: Callable[[Cut], Sequence[float]]
    of: Callable[[Sums], float]


def _f1(sums: Sums) -> float:
    """Of right, invented and missed ones."""
    right, invented, missed = sums
    return float(2 * right / (2 * right + invented + missed))


def _quality(sums: Sums) -> float:
    overlap, *found = sums
    return float(overlap / found[0] * _f1(np.array(found))) if found[0] else _f1(np.array(found))


def _share(sums: Sums) -> float:
    return float(sums[0] / sums[1])


def _panoptic(one: Cut, *, typed: bool) -> Sequence[float]:
    return panoptic_quality(one.truth, one.said, typed)[3:]


MEASURES: dict[str, Measure] = {
    "pages with the right type, all together": Measure(
        lambda one: (page_accuracy(one.truth, one.said, one.pages) * one.pages, one.pages), _share
    ),
    "boundaries, F1": Measure(lambda one: boundary_scores(one.truth, one.said)[3:], _f1),
    "panoptic quality": Measure(lambda one: _panoptic(one, typed=False), _quality),
    "panoptic quality, typed": Measure(lambda one: _panoptic(one, typed=True), _quality),
    "documents with every boundary right": Measure(lambda one: (is_exact(one.truth, one.said, typed=False), 1), _share),
    "documents with every segment right": Measure(lambda one: (is_exact(one.truth, one.said, typed=True), 1), _share),
    "pages that need not be moved": Measure(
        lambda one: (one.pages - drag_and_drop_distance(one.truth, one.said, one.pages), one.pages), _share
    ),
}
"""Of many documents together."""


def measured(study: Study) -> list[Measured]:
    """All measures of a study's documents."""
    given = cuts(study)
    joined = [Cut(one.doc_id, merged(one.truth), merged(one.said), one.pages, one.weight) for one in given]
    return [Measured(name, _estimate(given, how), _estimate(joined, how)) for name, how in MEASURES.items()]


def pages_to_move(study: Study) -> dict[str, int]:
    """doc_id → how many pages a person must move, of the documents where it is any; most first."""
    moved = {one.doc_id: drag_and_drop_distance(one.truth, one.said, one.pages) for one in cuts(study)}
    return dict(sorted(((name, pages) for name, pages in moved.items() if pages), key=lambda pair: (-pair[1], pair[0])))


def _estimate(some: Sequence[Cut], how: Measure) -> Estimate:
    """Documents in which there is nothing to count tell nothing of it, however many they are."""
    told = [(counted, one.weight) for one in some if any(counted := how.count(one))]
    counts = np.array([counted for counted, _ in told], dtype=float)

    def of(rows: Rows) -> float:
        return how.of(counts[rows].sum(axis=0))

    return bootstrap(of, len(told), seed=_SEED, repeats=400, weights=[weight for _, weight in told])
