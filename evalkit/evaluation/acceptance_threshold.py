"""Acceptance thresholds: the confidence above which blind audits prove few errors.

The arbiter's decision table is not changed: the threshold is only offered to the user.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pandas as pd

from evalkit.evaluation.calibration import (
    ThresholdCertificate,
    certify_threshold,
    compute_brier_score,
    compute_expected_calibration_error,
    tabulate_reliability,
    tabulate_risk_coverage,
    thin_rows_to_equal_probability,
)
from evalkit.evaluation.headline_estimates import score_agent_type
from evalkit.evaluation.study import DocumentRecord, Study

_THINNING_SEED = 20
#: Confidence thresholds that may be offered: 0 to 0.95 in steps of 0.05, fixed before any outcome is known. Threshold 0
#: accepts every document that the arbiter accepts.
CANDIDATE_THRESHOLDS = tuple(round(step / 20, 2) for step in range(20))


@dataclass(frozen=True)
class ConfidenceCalibration:
    """Calibration of the agent's confidence, over documents with known true type."""

    document_count: int
    reliability_table: pd.DataFrame
    """Per bin: ``low, high, n, confidence, accuracy, accuracy_low, accuracy_high``."""
    risk_coverage_table: pd.DataFrame
    """Columns ``threshold, coverage, risk, n``. For inspection only: do not choose a threshold from this table."""
    calibration_error: float
    brier_score: float


@dataclass(frozen=True)
class AcceptanceThresholdEvidence:
    """Evidence from blind audits for accepting documents above a confidence threshold."""

    max_error_rate: float
    """Highest tolerated share (0..1) of accepted documents with a wrong type."""
    confidence_level: float
    """Probability (0..1) with which ``max_error_rate`` holds for the offered threshold."""
    certificate: ThresholdCertificate
    """The certified threshold. Its ``threshold`` is None if ``unaudited_wrong_ids`` or ``undrawable_count`` is not
    empty/0."""
    audit_count: int
    """Number of blind audits, all drawn with the same probability, that the certificate is computed from."""
    cannot_tell_count: int
    """Number of these audits without a known true type (undecidable, disputed or postponed): they count as wrong."""
    set_aside_count: int
    """Number of audits dropped at random because they were drawn with a higher probability than the others."""
    simulated_audit_count: int
    """Number of the used audits that a simulated reviewer (a program) answered."""
    unaudited_wrong_ids: tuple[str, ...]
    """The doc_ids of accepted documents with a wrong type that were reviewed for another reason than an audit. They
    would be accepted although no audit covers them, so no threshold is offered if there are any."""
    undrawable_count: int = 0
    """Number of accepted documents that could not be drawn for an audit, or whose inclusion probability is unknown."""


def measure_confidence_calibration(study: Study) -> ConfidenceCalibration:
    """Compare the confidence in the document type with whether the type is right.

    Each reviewed document counts with its sampling weight; one whose confidence is missing or not within 0..1 is left
    out.
    """
    usable_documents = [
        (document, correctness)
        for document in study.reviewed_documents
        if (correctness := score_agent_type(document)) is not None and _get_valid_confidence(document) is not None
    ]
    confidences = [_get_valid_confidence(document) or 0.0 for document, _ in usable_documents]
    correct = [correctness == 1 for _, correctness in usable_documents]
    weights = [document.sampling_weight for document, _ in usable_documents]
    return ConfidenceCalibration(
        len(usable_documents),
        tabulate_reliability(confidences, correct, weights),
        tabulate_risk_coverage(confidences, correct, weights),
        compute_expected_calibration_error(confidences, correct, weights),
        compute_brier_score(confidences, correct, weights),
    )


def certify_acceptance_threshold(
    study: Study, *, max_error_rate: float = 0.05, confidence_level: float = 0.95
) -> AcceptanceThresholdEvidence:
    """Find the lowest confidence threshold whose error rate blind audits bound.

    With probability ``confidence_level``, at most ``max_error_rate`` of the documents accepted at or above the
    threshold have a wrong type.

    A blind audit is a document that the arbiter accepted, that was drawn at random for review, and whose first review
    was given before the reviewer saw the agent's answer. Labels given later change the audit's result, but the document
    stays an audit.
    """
    accepted_documents = [document for document in study.documents if document.is_accepted]
    audits = [
        document
        for document in accepted_documents
        if _is_drawn_by_chance(document)
        and document.has_expert_action
        and (not document.reviews or document.reviews[0].is_blind)
    ]
    drawn_counts, audit_counts = (
        Counter(document.weighting_cell for document in accepted_documents if _is_drawn_by_chance(document)),
        Counter(document.weighting_cell for document in audits),
    )
    audit_probabilities = [
        (document.inclusion_probability or 1.0)
        * audit_counts[document.weighting_cell]
        / drawn_counts[document.weighting_cell]
        for document in audits
    ]  # the probability of being an answered audit by now
    kept_positions = (
        set(thin_rows_to_equal_probability(audit_probabilities, _THINNING_SEED).tolist()) if audits else set()
    )
    kept_audits = [document for position, document in enumerate(audits) if position in kept_positions]
    unaudited_wrong_ids = tuple(
        document.doc_id
        for document in accepted_documents
        if document.has_expert_action and not _is_drawn_by_chance(document) and score_agent_type(document) == 0
    )
    undrawable_count = sum(not document.inclusion_probability for document in accepted_documents)
    certificate = certify_threshold(
        [_get_valid_confidence(document) or 0.0 for document in kept_audits],
        [_is_agent_type_right_in_audit(document) for document in kept_audits],
        max_error_rate=max_error_rate,
        confidence_level=confidence_level,
        candidate_thresholds=CANDIDATE_THRESHOLDS,
    )
    return AcceptanceThresholdEvidence(
        max_error_rate,
        confidence_level,
        certificate._replace(threshold=None, coverage=0.0) if unaudited_wrong_ids or undrawable_count else certificate,
        len(kept_audits),
        sum(score_agent_type(document) is None for document in kept_audits),
        len(audits) - len(kept_audits),
        sum(any(review.is_simulated for review in document.reviews) for document in kept_audits),
        unaudited_wrong_ids,
        undrawable_count,
    )


def _is_drawn_by_chance(document: DocumentRecord) -> bool:
    return document.review_reason in ("audit", "sample")


def _is_agent_type_right_in_audit(document: DocumentRecord) -> bool:
    """Return True if the agent's type equals the true and the first blind type."""
    first_labels = document.reviews[0].labels_after if document.reviews else None
    agent_type = document.agent_labels.dominant_type if document.agent_labels else None
    return score_agent_type(document) == 1 and (first_labels is None or first_labels.dominant_type == agent_type)


def _get_valid_confidence(document: DocumentRecord) -> float | None:
    """Return the agent's confidence in the type; None if missing or not within 0..1."""
    confidence = document.agent_labels.confidence if document.agent_labels else None
    return confidence if confidence is not None and 0 <= confidence <= 1 else None
