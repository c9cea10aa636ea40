"""Headline figures over all processed documents, estimated from the reviewed ones.

Escalated documents are the difficult ones, and all of them are reviewed; of the accepted documents only audits and
samples are. So the plain mean over reviewed documents does not describe the pipeline; it is reported too, but labelled
as such.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from evalkit.evaluation.intervals import Estimate, Observation, estimate_proportion, estimate_weighted_mean
from evalkit.evaluation.metrics import compute_page_accuracy, is_exact_segmentation
from evalkit.evaluation.study import DocumentRecord, Study

#: Function that scores a reviewed document, 0..1; None if no expert vouched for the part that is scored.
DocumentMeasure = Callable[[DocumentRecord], float | None]


def score_agent_type(document: DocumentRecord) -> float | None:
    """Return 1.0 if the program's document type is right, 0.0 if wrong or missing.

    None if no expert vouched for the type.
    """
    if document.truth is None or not document.truth.is_vouched("dominant_type"):
        return None
    return float(
        document.agent_labels is not None and document.agent_labels.dominant_type == document.truth.labels.dominant_type
    )


def score_agent_segmentation(document: DocumentRecord) -> float | None:
    """Return 1.0 if all segments have the right pages and types, otherwise 0.0.

    None if no expert vouched for the segments.
    """
    if document.truth is None or not document.truth.is_vouched("segments"):
        return None
    return float(
        document.agent_labels is not None
        and is_exact_segmentation(document.truth.labels.segments, document.agent_labels.segments, compare_types=True)
    )


def compute_page_type_accuracy(document: DocumentRecord) -> float | None:
    """Compute the share (0..1) of pages with the right type.

    None if no expert vouched for the segments or the number of pages is unknown.
    """
    if document.truth is None or not document.truth.is_vouched("segments") or not document.page_count:
        return None
    predicted_segments = document.agent_labels.segments if document.agent_labels else ()
    return compute_page_accuracy(document.truth.labels.segments, predicted_segments, document.page_count)


def score_production_type(document: DocumentRecord) -> float | None:
    """Return 1.0 if the production classifier's document type is right, otherwise 0.0.

    None if no expert vouched for the type or there is no production label.
    """
    if document.truth is None or not document.truth.is_vouched("dominant_type") or document.production_labels is None:
        return None
    return float(document.production_labels.dominant_type == document.truth.labels.dominant_type)


@dataclass(frozen=True)
class HeadlineEstimate:
    """One estimated figure, such as the accuracy of the type, over a population."""

    name: str
    population_description: str
    """The population in words, such as "accepted documents"."""
    population_size: int
    """Number of documents in the population, reviewed or not."""
    reviewed_count: int
    """Number of reviewed documents that the estimate is computed from."""
    estimate: Estimate
    """Estimated mean over the whole population."""
    reviewed_estimate: Estimate
    """Unweighted mean over the reviewed documents only; it does not describe the population."""
    wrong_doc_ids: tuple[str, ...]
    """The doc_ids of reviewed documents that score below 1."""


#: (name, population in words, filter that selects the population, score of a document) of each headline figure.
_HEADLINE_DEFINITIONS: tuple[tuple[str, str, Callable[[DocumentRecord], bool], DocumentMeasure], ...] = (
    ("Type of the document right", "all processed documents", lambda _: True, score_agent_type),
    ("All segments right", "all processed documents", lambda _: True, score_agent_segmentation),
    (
        "Pages with the right type, mean of documents",
        "all processed documents",
        lambda _: True,
        compute_page_type_accuracy,
    ),
    ("Type right where accepted", "accepted documents", lambda document: document.is_accepted, score_agent_type),
    (
        "Segments right where accepted",
        "accepted documents",
        lambda document: document.is_accepted,
        score_agent_segmentation,
    ),
    (
        "Production's type right",
        "documents with a production label",
        lambda document: document.production_labels is not None,
        score_production_type,
    ),
)


def estimate_headlines(study: Study) -> list[HeadlineEstimate]:
    """Estimate a study's headline figures, except those with an empty population."""
    figures = [
        (name, population_description, [document for document in study.documents if is_included(document)], measure)
        for name, population_description, is_included, measure in _HEADLINE_DEFINITIONS
    ]
    return [
        estimate_headline(name, population_description, documents, measure)
        for name, population_description, documents, measure in figures
        if documents
    ]


def estimate_headline(
    name: str, population_description: str, documents: Sequence[DocumentRecord], measure: DocumentMeasure
) -> HeadlineEstimate:
    """Estimate the mean of ``measure`` over all documents from the reviewed ones."""
    correctness_by_doc_id = {
        document.doc_id: correctness for document in documents if (correctness := measure(document)) is not None
    }
    certain_count = sum(is_outside_random_draw(document) for document in documents)
    return HeadlineEstimate(
        name,
        population_description,
        len(documents),
        len(correctness_by_doc_id),
        estimate_weighted_mean(
            list(_iterate_observations(documents, correctness_by_doc_id)), len(documents), certain_count=certain_count
        ),
        estimate_proportion(sum(correctness_by_doc_id.values()), len(correctness_by_doc_id)),
        tuple(doc_id for doc_id, correctness in correctness_by_doc_id.items() if correctness < 1),
    )


def is_outside_random_draw(document: DocumentRecord) -> bool:
    """Return True if the document's review did not depend on a random draw.

    It is True if the review was certain (escalated, known by other means, unreadable), or if no reviewed document
    represents this one: an accepted document that could not be drawn, or an escalated one whose case asks only about its
    doubts while no such case that was drawn to be shown whole has been answered.
    """
    return (
        document.truth_status == "unreadable"
        or document.review_probability == 1
        or not (document.review_probability or document.inclusion_probability)
        or (not document.is_accepted and not document.review_probability)
    )


def _iterate_observations(
    documents: Iterable[DocumentRecord], correctness_by_doc_id: dict[str, float]
) -> Iterable[Observation]:
    for document in documents:
        if is_outside_random_draw(document):
            if document.doc_id in correctness_by_doc_id:
                yield Observation(correctness_by_doc_id[document.doc_id], 1.0)
        elif document.review_probability and document.has_expert_action:
            yield Observation(correctness_by_doc_id.get(document.doc_id), document.review_probability)
