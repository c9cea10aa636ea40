"""Segmentation metrics over all documents, with and without merging neighbours.

Measured on the documents whose segments an expert vouched for. A document that was drawn with probability p counts as
1 / p documents in estimate and interval; documents that nobody has reviewed are left out.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evalkit.evaluation.intervals import BOOTSTRAP_SEED, Estimate, RowNumbers, estimate_by_bootstrap
from evalkit.evaluation.metrics import (
    compute_page_accuracy,
    is_exact_segmentation,
    merge_same_type_neighbours,
    score_boundaries,
)
from evalkit.evaluation.study import Study
from evalkit.pipeline.supplied_labels import TypedPageRange


@dataclass(frozen=True)
class SegmentedDocument:
    """True and predicted segments of one document."""

    doc_id: str
    true_spans: Sequence[TypedPageRange]
    predicted_spans: Sequence[TypedPageRange]
    page_count: int
    sampling_weight: float
    """Number of documents that this document represents, at least 1."""


def list_documents_with_segment_truth(study: Study) -> list[SegmentedDocument]:
    """List documents with confirmed segments and a known number of pages."""
    return [
        SegmentedDocument(
            document.doc_id,
            document.truth.labels.segments,
            document.agent_labels.segments if document.agent_labels else (),
            document.page_count,
            document.sampling_weight,
        )
        for document in study.reviewed_documents
        if document.truth and document.truth.is_vouched("segments") and document.page_count
    ]


CountSums = npt.NDArray[np.float64]


@dataclass(frozen=True)
class SegmentationMeasure:
    """A metric 0..1: counts per document, and its value from the summed counts."""

    count_in_document: Callable[[SegmentedDocument], Sequence[float]]
    compute_share: Callable[[CountSums], float]


def _compute_f1(sums: CountSums) -> float:
    """Compute F1 from the sums of true positives, false positives and false negatives."""
    matched, spurious, missed = sums
    return float(2 * matched / (2 * matched + spurious + missed))


def _divide_first_by_second(count_sums: CountSums) -> float:
    return float(count_sums[0] / count_sums[1])


#: All segmentation measures by name, each pooled over documents.
MEASURES: dict[str, SegmentationMeasure] = {
    "pages with the right type, all together": SegmentationMeasure(
        lambda document: (
            compute_page_accuracy(document.true_spans, document.predicted_spans, document.page_count)
            * document.page_count,
            document.page_count,
        ),
        _divide_first_by_second,
    ),
    "boundaries, F1": SegmentationMeasure(
        lambda document: score_boundaries(document.true_spans, document.predicted_spans)[3:], _compute_f1
    ),
    "documents with every boundary right": SegmentationMeasure(
        lambda document: (is_exact_segmentation(document.true_spans, document.predicted_spans, compare_types=False), 1),
        _divide_first_by_second,
    ),
    "documents with every segment right": SegmentationMeasure(
        lambda document: (is_exact_segmentation(document.true_spans, document.predicted_spans, compare_types=True), 1),
        _divide_first_by_second,
    ),
}


def estimate_segmentation_measures(study: Study) -> dict[str, tuple[Estimate, Estimate]]:
    """Estimate all ``MEASURES`` over a study's documents, by name.

    The first estimate is of the segments as given: two neighbours of one type count as two. The second is after merging
    neighbours of one type, in truth and answer.
    """
    documents = list_documents_with_segment_truth(study)
    merged_documents = [
        SegmentedDocument(
            document.doc_id,
            merge_same_type_neighbours(document.true_spans),
            merge_same_type_neighbours(document.predicted_spans),
            document.page_count,
            document.sampling_weight,
        )
        for document in documents
    ]
    return {
        name: (_estimate_measure(documents, measure), _estimate_measure(merged_documents, measure))
        for name, measure in MEASURES.items()
    }


def _estimate_measure(documents: Sequence[SegmentedDocument], measure: SegmentationMeasure) -> Estimate:
    """Estimate one measure; documents whose counts are all 0 are left out."""
    informative_counts = [
        (document_counts, document.sampling_weight)
        for document in documents
        if any(document_counts := measure.count_in_document(document))
    ]
    counts = np.array([document_counts for document_counts, _ in informative_counts], dtype=float)

    def compute_statistic(row_numbers: RowNumbers) -> float:
        return measure.compute_share(counts[row_numbers].sum(axis=0))

    return estimate_by_bootstrap(
        compute_statistic,
        len(informative_counts),
        seed=BOOTSTRAP_SEED,
        repeats=400,
        weights=[weight for _, weight in informative_counts],
    )
