"""Yield of experts' minutes: errors found, and errors that short reviews missed.

An error is a document of which the expert changed a type or a boundary. Of the cases that could ask only about their
doubts, one in ten is shown whole: an error that its expert corrected outside of the doubts is one that the short form
would have missed.
"""

from collections.abc import Sequence

import numpy as np

from evalkit.classification.v5_arbiter import Decision
from evalkit.evaluation.error_ranking import mark_page_errors
from evalkit.evaluation.intervals import (
    BOOTSTRAP_REPEATS,
    BOOTSTRAP_SEED,
    Estimate,
    Quantity,
    RowNumbers,
    estimate_by_bootstrap,
    estimate_proportion,
)
from evalkit.evaluation.study import DocumentLabels, DocumentRecord, ReviewRecord, Study


def measure_review_yield(study: Study) -> dict[str, int | Estimate]:
    """Measure the errors that experts found and missed on escalated documents.

    An escalated document is decided if an expert validated or corrected it. Minutes are active ones.
    """
    decided = [
        (document, review)
        for document in study.documents
        if document.decision == Decision.ESCALATE_TO_SME and (review := _find_answer(document))
    ]
    is_changed = [_is_changed(review) for _, review in decided]
    minutes = [sum(review.active_seconds or 0 for review in document.reviews) / 60 for document, _ in decided]
    shown_whole = [
        (document, review)
        for document, review in decided
        if document.doubtful_parts and not document.asks_only_doubts and not review.is_short
    ]
    missed_count = sum(_has_error_outside_doubts(*case) for case in shown_whole)
    return {
        "escalated documents decided": len(decided),
        "of these with an error found": sum(is_changed),
        "precision of escalation": estimate_proportion(sum(is_changed), len(decided)),
        "experts' minutes per error found": Quantity(*_estimate_minutes_per_error(minutes, is_changed)),
        "asked only about the parts in doubt": sum(review.is_short for _, review in decided),
        "opened whole by their expert": sum(
            document.asks_only_doubts and not review.is_short for document, review in decided
        ),
        "drawn to be shown whole": len(shown_whole),
        "of these with an error outside of the doubts, which the short form misses": estimate_proportion(
            missed_count, len(shown_whole)
        ),
    }


def _find_answer(document: DocumentRecord) -> ReviewRecord | None:
    newest = document.reviews[-1] if document.reviews else None
    return newest if newest and newest.labels_after and newest.outcome != "reopened" else None


def _is_changed(review: ReviewRecord) -> bool:
    before, after = review.labels_before, review.labels_after
    return (before and (before.dominant_type, before.segments)) != (after and (after.dominant_type, after.segments))


def _estimate_minutes_per_error(minutes: Sequence[float], is_changed: Sequence[bool]) -> Estimate:
    """Estimate the minutes per error as the inverse of a bootstrapped ratio of sums."""
    timed = [pair for pair in zip(minutes, is_changed, strict=True) if pair[0] > 0]
    minutes_spent, error_counts = np.array(timed, dtype=float).reshape(-1, 2).T
    if not error_counts.any():
        return Estimate(None, 0.0, float("inf"), len(timed), "bootstrap")

    def compute_errors_per_minute(rows: RowNumbers) -> float:
        return float(error_counts[rows].sum() / minutes_spent[rows].sum())

    rate = estimate_by_bootstrap(
        compute_errors_per_minute,
        len(timed),
        seed=BOOTSTRAP_SEED,
        repeats=BOOTSTRAP_REPEATS,
        value_range=(0.0, float((error_counts / minutes_spent).max())),
    )
    value, low, high = (1 / number if number else float("inf") for number in (rate.value or 0.0, rate.high, rate.low))
    return Estimate(value, low, high, rate.n, rate.method)


def _has_error_outside_doubts(document: DocumentRecord, review: ReviewRecord) -> bool:
    """Return True if the expert changed a page's undoubted type or boundary."""
    before = review.labels_before or DocumentLabels(None)
    after = review.labels_after or DocumentLabels(None)
    page_count = max((end for _, end, _ in (*before.segments, *after.segments)), default=0)
    starts_before, starts_after = ({start for start, *_ in labels.segments} for labels in (before, after))
    doubted_boundaries = {
        int(part.partition(":")[2]) for part in document.doubtful_parts if part.startswith("boundary:")
    }
    changed_boundaries = starts_before ^ starts_after
    if not changed_boundaries <= doubted_boundaries:
        return True
    wrong_pages = {
        page
        for page, is_wrong in enumerate(mark_page_errors(after.segments, before.segments, page_count), 1)
        if is_wrong
    }
    doubted_pages = {
        page
        for number, (start, end, _) in enumerate(before.segments, 1)
        for page in range(start, end + 1)
        # What begins, or no longer begins, at a doubted boundary has another type with it.
        if f"segment:{number}" in document.doubtful_parts
        or any(start <= boundary <= page for boundary in changed_boundaries)
    }
    return not wrong_pages <= doubted_pages | doubted_boundaries
