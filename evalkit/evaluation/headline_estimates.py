"""Main accuracy figures over all documents, estimated from the reviewed ones.

Escalated documents are the difficult ones, and all of them are reviewed; of the accepted documents only audits and
samples are. So the plain mean over reviewed documents does not describe the pipeline; it is reported too, but labelled
as such.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

import numpy as np

from evalkit.classification.page_risks import fit_risk_calibration
from evalkit.evaluation.intervals import (
    Estimate,
    FloatArray,
    Observation,
    compute_jeffreys_limits,
    estimate_proportion,
    estimate_weighted_mean,
    widen_to_process,
)
from evalkit.evaluation.metrics import compute_page_accuracy, is_exact_segmentation
from evalkit.evaluation.study import DocumentRecord, Study

#: Number of parts for the cross-fitting of predictions.
_FOLD_COUNT = 5
#: Fewer audits do not say how many are wrong; then this share is assumed.
_MIN_MEASURED_AUDITS, _ASSUMED_WRONG_SHARE = 10, 0.05
_MAX_SIMPLE_DRAWS = 10_000_000

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
    """An estimated metric, such as type accuracy, over all documents."""

    name: str
    population_description: str
    """The population in words, such as "accepted documents"."""
    population_size: int
    """Number of documents in the population, reviewed or not."""
    reviewed_count: int
    """Number of reviewed documents that the estimate is computed from."""
    archive_estimate: Estimate
    """Estimated mean over these documents only; without width if the truth of each is known."""
    reviewed_estimate: Estimate
    """Unweighted mean over the reviewed documents only; it does not describe the population."""
    wrong_doc_ids: tuple[str, ...]
    """The doc_ids of reviewed documents that score below 1."""

    @property
    def estimate(self) -> Estimate:
        """Estimated mean over all documents of the same kind.

        The archive is a sample of what its sources send.
        """
        return widen_to_process(self.archive_estimate, self.population_size)


#: Who gives a type → filter that selects the documents to which it does, score of a document.
TYPE_HEADLINES: dict[str, tuple[Callable[[DocumentRecord], bool], DocumentMeasure]] = {
    "program": (lambda _: True, score_agent_type),
    "production": (lambda document: document.production_labels is not None, score_production_type),
}
#: (name, population in words, filter that selects the population, score of a document) of each headline figure.
_HEADLINE_DEFINITIONS: tuple[tuple[str, str, Callable[[DocumentRecord], bool], DocumentMeasure], ...] = (
    ("Type of the document right", "all processed documents", *TYPE_HEADLINES["program"]),
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
    ("Production's type right", "documents with a production label", *TYPE_HEADLINES["production"]),
)


def estimate_headlines(study: Study) -> list[HeadlineEstimate]:
    """Estimate a study's headline metrics, without metrics of no documents."""
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
    drawable_documents = [document for document in documents if not is_outside_random_draw(document)]
    drawn_documents = [
        document for document in drawable_documents if document.review_probability and document.has_expert_action
    ]
    predicted_values, predicted_mean = _predict_values(drawn_documents, drawable_documents, correctness_by_doc_id)
    observations = [
        Observation(correctness_by_doc_id[document.doc_id], 1.0)
        for document in documents
        if is_outside_random_draw(document) and document.doc_id in correctness_by_doc_id
    ] + [
        Observation(
            correctness_by_doc_id.get(document.doc_id), document.review_probability or 1.0, float(predicted_value)
        )
        for document, predicted_value in zip(drawn_documents, predicted_values, strict=True)
    ]
    return HeadlineEstimate(
        name,
        population_description,
        len(documents),
        len(correctness_by_doc_id),
        estimate_weighted_mean(
            observations,
            len(documents),
            certain_count=len(documents) - len(drawable_documents),
            predicted_mean=predicted_mean,
        ),
        estimate_proportion(sum(correctness_by_doc_id.values()), len(correctness_by_doc_id)),
        tuple(doc_id for doc_id, correctness in correctness_by_doc_id.items() if correctness < 1),
    )


class AuditsForPrecision(NamedTuple):
    """Number of audits needed for a given precision of a metric."""

    half_width: float
    """Half of the width (0..1) that the 95 % interval shall have."""
    current_half_width: float
    """Half of its present width."""
    audit_count: int
    """Number of accepted documents reviewed after a random draw."""
    more_audits: int
    """Number of further ones that the half width takes, at the present error rate and mode of drawing."""
    unseen_count: int
    """Number of accepted documents that could still be drawn."""


def count_audits_for_precision(study: Study, half_width: float) -> AuditsForPrecision:
    """Count the audits needed for a given precision of the error rate.

    The half width of the interval shrinks as that of Jeffreys' interval does with the number of simple draws. Before
    ten audits, one wrong in twenty is assumed.
    """
    accepted_documents = [document for document in study.documents if document.is_accepted]
    headline = estimate_headline("", "", accepted_documents, score_agent_type)
    audit_count = sum(
        document.has_expert_action and not is_outside_random_draw(document) for document in accepted_documents
    )
    estimate = headline.archive_estimate
    current_half_width = (estimate.high - estimate.low) / 2
    is_measured = estimate.value is not None and audit_count >= _MIN_MEASURED_AUDITS
    wrong_share = 1 - estimate.value if is_measured and estimate.value is not None else _ASSUMED_WRONG_SHARE

    def count_simple_draws(wanted_half_width: float) -> int:
        def is_narrow_enough(draws: int) -> bool:
            low, high = compute_jeffreys_limits(wrong_share, draws)
            return (high - low) / 2 <= wanted_half_width

        return bisect_left(range(_MAX_SIMPLE_DRAWS), True, key=is_narrow_enough)

    wanted_draws, current_draws = count_simple_draws(half_width), count_simple_draws(current_half_width)
    audits_per_draw = audit_count / current_draws if is_measured and current_draws else 1.0
    return AuditsForPrecision(
        half_width,
        current_half_width,
        audit_count,
        0 if current_half_width <= half_width else max(math.ceil(wanted_draws * audits_per_draw) - audit_count, 1),
        sum(document.truth_status == "unseen" for document in accepted_documents),
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


def _predict_values(
    drawn_documents: Sequence[DocumentRecord],
    drawable_documents: Sequence[DocumentRecord],
    correctness_by_doc_id: Mapping[str, float],
) -> tuple[FloatArray, float]:
    """Predict the score of each drawn document from its risk, and the mean of all.

    The calibration for each fifth of the documents is fitted to the other four. Its predictions are moved by the
    difference of its mean over all documents to that of the other calibrations.
    """
    folds = np.arange(len(drawn_documents)) % _FOLD_COUNT
    all_risks = [document.risk for document in drawable_documents]
    predicted_values, fold_means = np.zeros(len(drawn_documents)), []
    for fold in range(_FOLD_COUNT):
        other_documents = [
            document
            for position, document in enumerate(drawn_documents)
            if folds[position] != fold and document.doc_id in correctness_by_doc_id
        ]
        calibration = fit_risk_calibration(
            [document.risk for document in other_documents],
            [1 - correctness_by_doc_id[document.doc_id] for document in other_documents],
            [document.sampling_weight for document in other_documents],
        )
        is_in_fold = folds == fold
        risks_in_fold = [
            document.risk for document, is_chosen in zip(drawn_documents, is_in_fold, strict=True) if is_chosen
        ]
        fold_means.append(1 - float(calibration.apply_to_all(all_risks).mean()) if all_risks else 0.0)
        predicted_values[is_in_fold] = 1 - calibration.apply_to_all(risks_in_fold) - fold_means[-1]
    predicted_mean = fmean(fold_means)
    return predicted_values + predicted_mean, predicted_mean
