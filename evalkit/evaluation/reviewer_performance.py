"""The experts: time, agreement, and how far the agent's answer leads them.

Automation bias shows where an expert who saw the agent's answer says the same more often than a colleague who answered
the same case without it; and where a case that was validated is found wrong by others. Cases that are shown and cases that
are hidden at large are not alike: the former are those that escalated.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median
from typing import Any

import pandas as pd

from evalkit.core.grouping import group_by
from evalkit.evaluation.inter_annotator_agreement import (
    compute_boundary_agreement,
    compute_cohen_kappa,
    compute_krippendorff_alpha,
)
from evalkit.evaluation.intervals import Estimate, estimate_proportion
from evalkit.evaluation.metrics import is_exact_segmentation, pool_detection_scores, score_boundaries
from evalkit.evaluation.study import DocumentLabels, DocumentRecord, KnownTruth, ReviewRecord, Study
from evalkit.review.packet import ADJUDICATION_SUFFIX, SECOND_SUFFIX


def _list_current_reviews(document: DocumentRecord) -> list[ReviewRecord]:
    """List each case's newest closing answer, without adjudications."""
    review_by_case_id: dict[str, ReviewRecord] = {}
    for review in document.reviews:
        if review.outcome == "reopened":
            review_by_case_id.pop(review.case_id, None)
        else:
            review_by_case_id[review.case_id] = review
    return [review for case_id, review in review_by_case_id.items() if not case_id.endswith(ADJUDICATION_SUFFIX)]


def tabulate_reviewer_performance(study: Study) -> pd.DataFrame:
    """One row per reviewer.

    Columns: ``reviewer``, ``simulated``, ``cases``, ``validated``, ``corrected``, ``undeterminable`` (counts),
    ``median_seconds`` (active seconds per case; None where nobody measured), ``quickest_tenth`` (the tenth percentile of
    them), ``same_shown`` and ``same_hidden`` (of the cases with an answer of the agent, the share in which the
    reviewer said the same type, with it on screen and hidden; ``Estimate``: of different cases, so no measure of bias).
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
    """Estimate how often the reviewer gave the agent's type, where comparable."""
    comparable_reviews = [
        review for review in reviews if review.labels_before is not None and review.labels_after is not None
    ]
    return estimate_proportion(
        sum(_is_agent_type_confirmed(review) for review in comparable_reviews), len(comparable_reviews)
    )


def _is_agent_type_confirmed(review: ReviewRecord) -> bool:
    return bool(
        review.labels_before
        and review.labels_after
        and review.labels_before.dominant_type == review.labels_after.dominant_type
    )


@dataclass(frozen=True)
class ExpertAgreement:
    """Agreement of two experts, the second blind to the first and to the agent."""

    pair_table: pd.DataFrame
    """One row per document that two experts answered: ``PAIR_COLUMNS``; boundaries 0..1."""
    type_agreement: Estimate
    segment_agreement: Estimate
    agent_match_when_shown: Estimate
    """Of the pairs in which the first expert saw the agent's answer: how often that one said the agent's type …"""
    agent_match_when_hidden: Estimate
    """… and how often the second did, who had not seen it."""
    boundary_f1: float
    """F1 of where segments begin, of all pairs together; NaN without pairs."""
    cohens_kappa: float
    """Cohen's, of the documents' types; NaN where it is not defined."""
    krippendorff_alpha: float
    """Krippendorff's, nominal, of the same."""


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


def measure_expert_agreement(study: Study) -> ExpertAgreement:
    """Measure how far experts agree, from second opinions."""
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
    return ExpertAgreement(
        pair_table,
        estimate_proportion(int(pair_table["is_same_type"].sum()), len(pair_table)),
        estimate_proportion(int(pair_table["is_same_segments"].sum()), len(pair_table)),
        estimate_agreement_with_agent(
            first_review for _, (first_review, _), _ in opinion_pairs if not first_review.is_blind
        ),
        estimate_agreement_with_agent(
            second_review for _, (first_review, _), (second_review, _) in opinion_pairs if not first_review.is_blind
        ),
        scores.f1 if opinion_pairs else math.nan,
        compute_cohen_kappa(*types),
        compute_krippendorff_alpha(types),
    )


_LabelledReview = tuple[ReviewRecord, DocumentLabels]


def _find_first_and_second_opinion(document: DocumentRecord) -> tuple[_LabelledReview, _LabelledReview] | None:
    """Find a case's first and second opinion, if both decided something."""
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
        "boundaries": compute_boundary_agreement(labels.segments, other_labels.segments),
        "adjudicated": any(review.case_id.endswith(ADJUDICATION_SUFFIX) for review in document.reviews),
        "simulated": review.is_simulated or other_review.is_simulated,
    }


def tabulate_wrong_validations(study: Study) -> pd.DataFrame:
    """Tabulate validated cases that turned out wrong: the answer led the expert.

    Columns: ``doc_id``, ``reviewer``, ``seconds``, ``validated`` (the type), ``true``, ``known_from`` (who says so).
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
    """Return True if the answer is right in all vouched parts."""
    same_type = not truth.is_vouched("dominant_type") or labels.dominant_type == truth.labels.dominant_type
    return same_type and (
        not truth.is_vouched("segments")
        or is_exact_segmentation(truth.labels.segments, labels.segments, compare_types=True)
    )
