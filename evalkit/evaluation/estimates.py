"""The headline figures: what is true of all processed documents, from the few that somebody looked at.

Escalated documents are the hard ones and all of them are looked at; of the accepted ones only audits and samples are.
The mean over what was reviewed is therefore no statement about the pipeline; it is given beside, labelled as what it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from evalkit.evaluation.intervals import Estimate, Observed, exact, weighted
from evalkit.evaluation.metrics import is_exact, page_accuracy
from evalkit.evaluation.study import Document, Study

Measure = Callable[[Document], float | None]
"""From a reviewed document to a value 0..1; None where its truth does not say (the part was not vouched for)."""


def type_is_right(one: Document) -> float | None:
    """Whether the pipeline's type of the whole document is right; "cannot tell" is wrong."""
    if one.truth is None or not one.truth.says("dominant_type"):
        return None
    return float(one.agent is not None and one.agent.dominant_type == one.truth.labels.dominant_type)


def segments_are_right(one: Document) -> float | None:
    """Whether all segments have the right pages and types."""
    if one.truth is None or not one.truth.says("segments"):
        return None
    return float(one.agent is not None and is_exact(one.truth.labels.segments, one.agent.segments, typed=True))


def pages_right(one: Document) -> float | None:
    """The share of pages with the right type."""
    if one.truth is None or not one.truth.says("segments") or not one.pages:
        return None
    said = one.agent.segments if one.agent else ()
    return page_accuracy(one.truth.labels.segments, said, one.pages)


def production_is_right(one: Document) -> float | None:
    """Whether the production classifier's type is right."""
    if one.truth is None or not one.truth.says("dominant_type") or one.production is None:
        return None
    return float(one.production.dominant_type == one.truth.labels.dominant_type)


@dataclass(frozen=True)
class Headline:
    """One figure about a population of documents."""

    name: str
    about: str
    """Of which documents, in words."""
    population: int
    reviewed: int
    """How many of them the figure rests on."""
    estimate: Estimate
    """Over the whole population."""
    reviewed_only: Estimate
    """The unweighted mean of the reviewed ones: no statement about the population."""
    wrong: tuple[str, ...]
    """The doc_ids of those that are not wholly right."""


#: name, of which documents, which those are, what is measured.
_FIGURES: tuple[tuple[str, str, Callable[[Document], bool], Measure], ...] = (
    ("Type of the document right", "all processed documents", lambda _: True, type_is_right),
    ("All segments right", "all processed documents", lambda _: True, segments_are_right),
    ("Pages with the right type, mean of documents", "all processed documents", lambda _: True, pages_right),
    ("Type right where accepted", "accepted documents", lambda one: one.is_accepted, type_is_right),
    ("Segments right where accepted", "accepted documents", lambda one: one.is_accepted, segments_are_right),
    (
        "Production's type right",
        "documents with a production label",
        lambda one: one.production is not None,
        production_is_right,
    ),
)


def headlines(study: Study) -> list[Headline]:
    """The figures of a study; those about no document at all are left out."""
    figures = [(name, about, [one for one in study.documents if of(one)], how) for name, about, of, how in _FIGURES]
    return [headline(name, about, documents, how) for name, about, documents, how in figures if documents]


def headline(name: str, about: str, documents: Sequence[Document], measure: Measure) -> Headline:
    """One figure about these documents."""
    values = {one.doc_id: value for one in documents if (value := measure(one)) is not None}
    certain = sum(is_certain(one) for one in documents)
    return Headline(
        name,
        about,
        len(documents),
        len(values),
        weighted(list(_observed(documents, values)), len(documents), take_all=certain),
        exact(sum(values.values()), len(values)),
        tuple(doc_id for doc_id, value in values.items() if value < 1),
    )


def is_certain(one: Document) -> bool:
    """Whether chance has no say in it: sure to be looked at (escalated, known by other means, or unreadable, which
    somebody sees too), or accepted without a chance of being drawn, so that no other document stands for it.
    """
    return one.standing == "unreadable" or one.probability == 1 or not (one.probability or one.drawn_with)


def _observed(documents: Iterable[Document], values: dict[str, float]) -> Iterable[Observed]:
    for one in documents:
        if is_certain(one):
            if one.doc_id in values:
                yield Observed(values[one.doc_id], 1.0)
        elif one.probability and one.was_looked_at:
            yield Observed(values.get(one.doc_id), one.probability)
