"""Reviewer performance: time, inter-annotator agreement, and automation bias.

Agreement limits any measurable accuracy; it is valid only for reviews whose authors did not see each other's answers.
Signs of automation bias: an expert who saw the agent's answer agrees with it more often than a colleague who judged the
same case without seeing it; validated cases that others find wrong. Do not compare cases with a visible and with a
hidden answer in general: those with a visible answer are mostly escalated documents, which are more difficult.
"""

import math
from collections.abc import Iterable
from statistics import median
from typing import Any

import pandas as pd

from evalkit.core.grouping import group_by
from evalkit.evaluation.document_type_scores import estimate_cohen_kappa
from evalkit.evaluation.intervals import Estimate, estimate_proportion
from evalkit.evaluation.metrics import is_exact_segmentation, pool_detection_scores, score_boundaries
from evalkit.evaluation.study import DocumentLabels, DocumentRecord, KnownTruth, ReviewRecord, Study
from evalkit.review.packet import ADJUDICATION_SUFFIX, SECOND_SUFFIX


def _list_current_reviews(document: DocumentRecord) -> list[ReviewRecord]:
    """List the newest answer of each case that is not reopened, without adjudications."""
    review_by_case_id: dict[str, ReviewRecord] = {}
    for review in document.reviews:
        if review.outcome == "reopened":
            review_by_case_id.pop(review.case_id, None)
        else:
            review_by_case_id[review.case_id] = review
    return [review for case_id, review in review_by_case_id.items() if not case_id.endswith(ADJUDICATION_SUFFIX)]


def tabulate_reviewer_performance(study: Study) -> pd.DataFrame:
    """Tabulate each reviewer's outcomes, time and agreement with the agent.

    Columns: ``reviewer``, ``simulated``, ``cases``, ``validated``, ``corrected``, ``undeterminable`` (counts),
    ``median_seconds`` (active seconds per case; None if not measured), ``quickest_tenth`` (tenth percentile of the
    active seconds), ``same_shown`` and ``same_hidden`` (an ``Estimate``: share of cases in which the reviewer gave the
    agent's type, among cases with the agent's answer visible and hidden). The last two cover different cases and so do
    not measure bias.
    """
    rows = []
    current_reviews = (review for record in study.documents for review in _list_current_reviews(record))
    reviews_by_reviewer = group_by(current_reviews, lambda review: review.reviewer)
    for reviewer, reviews in sorted(reviews_by_reviewer.items()):
        durations = sorted(record.active_seconds for record in reviews if record.active_seconds is not None)
        rows.append(
            {
                "reviewer": reviewer,
                "simulated": reviews[0].is_simulated,
                "cases": len(reviews),
                **{
                    outcome: sum(record.outcome == outcome for record in reviews)
                    for outcome in ("validated", "corrected", "undeterminable")
                },
                "median_seconds": median(durations) if durations else None,
                "quickest_tenth": durations[len(durations) // 10] if durations else None,
                "same_shown": estimate_agreement_with_agent(record for record in reviews if not record.is_blind),
                "same_hidden": estimate_agreement_with_agent(record for record in reviews if record.is_blind),
            }
        )
    return pd.DataFrame(rows)


def estimate_agreement_with_agent(reviews: Iterable[ReviewRecord]) -> Estimate:
    """Estimate the share of reviews that gave the agent's type.

    Reviews without an answer of the agent or without a decided type are left out.
    """
    is_same_type = [
        review.labels_before.dominant_type == review.labels_after.dominant_type
        for review in reviews
        if review.labels_before is not None and review.labels_after is not None
    ]
    return estimate_proportion(sum(is_same_type), len(is_same_type))


PAIR_COLUMNS = (
    "doc_id",
    "first",
    "second",
    "is_same_type",
    "is_same_segments",
    "boundaries",
    "adjudicated",
    "simulated",
)


def measure_expert_agreement(study: Study) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Measure the agreement of experts on documents with a first and a second opinion.

    The second expert saw neither the first expert's answer nor the agent's. Returns a row per document with two
    opinions, with ``PAIR_COLUMNS`` (``boundaries`` is the F1, 0..1), and the measures by name: how often the experts
    agree, and of the pairs whose first expert saw the agent's type, how often each of the two gave it. A measure is NaN,
    or an estimate without a value, if it is undefined.
    """
    opinion_pairs = [
        (record, *pair) for record in study.documents if (pair := _find_first_and_second_opinion(record)) is not None
    ]
    pair_table = pd.DataFrame([_compare_opinions(*record) for record in opinion_pairs], columns=list(PAIR_COLUMNS))
    scores = pool_detection_scores(
        score_boundaries(first.segments, second.segments) for _, (_, first), (_, second) in opinion_pairs
    )
    types = [
        [labels.dominant_type for _, labels in labelled_reviews]
        for labelled_reviews in ([record for _, record, _ in opinion_pairs], [record for *_, record in opinion_pairs])
    ]
    return pair_table, {
        "pairs": len(pair_table),
        "same type": estimate_proportion(int(pair_table["is_same_type"].sum()), len(pair_table)),
        "same segments": estimate_proportion(int(pair_table["is_same_segments"].sum()), len(pair_table)),
        "boundaries, F1": scores.f1 if opinion_pairs else math.nan,
        "first expert, who saw the program's type, gave the same type": estimate_agreement_with_agent(
            first_review for _, (first_review, _), _ in opinion_pairs if not first_review.is_blind
        ),
        "second expert, who did not see it, gave the same type": estimate_agreement_with_agent(
            second_review for _, (first_review, _), (second_review, _) in opinion_pairs if not first_review.is_blind
        ),
        "Cohen's kappa, types": estimate_cohen_kappa(types[0], types[1]),
    }


_LabelledReview = tuple[ReviewRecord, DocumentLabels]


def _find_first_and_second_opinion(document: DocumentRecord) -> tuple[_LabelledReview, _LabelledReview] | None:
    """Return a document's first and second opinion; None unless both have labels."""
    labelled_by_case_id = {
        review.case_id: (review, review.labels_after)
        for review in _list_current_reviews(document)
        if review.labels_after is not None
    }
    first, second = (
        labelled_by_case_id.get(document.doc_id),
        labelled_by_case_id.get(f"{document.doc_id}{SECOND_SUFFIX}"),
    )
    return (first, second) if first and second else None


def _compare_opinions(document: DocumentRecord, first: _LabelledReview, second: _LabelledReview) -> dict[str, Any]:
    (review, labels), (other_review, other_labels) = first, second
    return {
        "doc_id": document.doc_id,
        "first": labels.dominant_type,
        "second": other_labels.dominant_type,
        "is_same_type": labels.dominant_type == other_labels.dominant_type,
        "is_same_segments": is_exact_segmentation(labels.segments, other_labels.segments, compare_types=True),
        "boundaries": score_boundaries(labels.segments, other_labels.segments).f1,
        "adjudicated": any(review.case_id.endswith(ADJUDICATION_SUFFIX) for review in document.reviews),
        "simulated": review.is_simulated or other_review.is_simulated,
    }


def tabulate_wrong_validations(study: Study) -> pd.DataFrame:
    """Tabulate reviews that validated an answer which the known truth contradicts.

    Columns: ``doc_id``, ``reviewer``, ``seconds`` (active), ``validated`` (the type), ``true`` (the true type),
    ``known_from`` (the reviewer who supplied the truth, or "given labels").
    """
    rows = [
        {
            "doc_id": document.doc_id,
            "reviewer": review.reviewer,
            "seconds": review.active_seconds,
            "validated": review.labels_after.dominant_type,
            "true": document.truth.labels.dominant_type,
            "known_from": document.truth.reviewer or "given labels",
        }
        for document in study.reviewed_documents
        for review in _list_current_reviews(document)
        if document.truth
        and review.labels_after
        and review.outcome == "validated"
        and not _matches_vouched_truth(review.labels_after, document.truth)
    ]
    return pd.DataFrame(rows, columns=["doc_id", "reviewer", "seconds", "validated", "true", "known_from"])


def _matches_vouched_truth(labels: DocumentLabels, truth: KnownTruth) -> bool:
    """Return True if the labels equal the truth in all parts that were vouched for."""
    same_type = not truth.is_vouched("dominant_type") or labels.dominant_type == truth.labels.dominant_type
    return same_type and (
        not truth.is_vouched("segments")
        or is_exact_segmentation(truth.labels.segments, labels.segments, compare_types=True)
    )
