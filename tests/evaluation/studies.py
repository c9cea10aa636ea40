"""Documents as a study holds them, made by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evalkit.evaluation.study import DocumentLabels, DocumentRecord, KnownTruth, ReviewRecord, Study

NOTE, GENOMIC, OTHER = "Clinical Note", "Genomic Report", "Other"


def labels(kind: str | None = NOTE, *segments: tuple[int, int, str | None], **more: Any) -> DocumentLabels:
    """What somebody says; one segment of two pages unless others are given."""
    return DocumentLabels(kind, segments or ((1, 2, kind),), **more)


def truth(kind: str | None = NOTE, *segments: tuple[int, int, str | None], **more: Any) -> KnownTruth:
    """What an expert vouched for: type and segments."""
    said = {
        "source": "SME_VALIDATED",
        "vouched": frozenset({"dominant_type", "segments"}),
        "reviewer": "dr_lee",
        "is_simulated": False,
        "review_reason": "escalated",
    } | more
    return KnownTruth(labels(kind, *segments), **said)


def document(doc_id: str, **fields: Any) -> DocumentRecord:
    """A document that was accepted as a clinical note of two pages, and that nobody has looked at."""
    given = {
        "sha256": doc_id.ljust(64, "0"),
        "filename": f"{doc_id}.pdf",
        "truth_status": "reviewed" if fields.get("truth") else "unseen",
        "decision": "AUTO_ACCEPT",
        "decision_rule": "7",
        "decision_reason": "no check found anything",
        "page_count": 2,
        "agent_labels": labels(),
        "review_probability": 0.2,
    } | fields
    drawn = (
        {"inclusion_probability": given["review_probability"], "weighting_cell": (given["review_probability"],)}
        if given["decision"] == "AUTO_ACCEPT"
        else {}
    )
    if drawn and given["truth_status"] != "unseen":
        drawn["review_reason"] = given["truth"].review_reason if given.get("truth") else "audit"
    return DocumentRecord(doc_id=doc_id, **(drawn | given))


def escalated_document(doc_id: str, **fields: Any) -> DocumentRecord:
    """A document that waits for an expert, or that one has seen where a truth is given."""
    standing = "reviewed" if fields.get("truth") else "pending"
    given = {
        "decision": "ESCALATE_TO_SME",
        "decision_rule": "1",
        "review_probability": 1.0,
        "truth_status": standing,
    } | fields
    return document(doc_id, **given)


def study(*documents: DocumentRecord) -> Study:
    """A study of these documents, whose output folder is never there: that of the demo may lie in the working directory."""
    return Study(Path("no folder/output"), documents, ())


def answer(case_id: str, kind: str = NOTE, **fields: Any) -> ReviewRecord:
    """A validation by somebody who saw the agent's answer."""
    given = {
        "revision": 1, "reviewer": "dr_lee", "is_simulated": False, "outcome": "validated", "submitted_at": "2026-01-01T00:00:00Z",
        "active_seconds": 30.0, "is_blind": False, "review_reason": "escalated", "labels_before": labels(), "labels_after": labels(kind),
    } | fields  # fmt: skip
    return ReviewRecord(case_id=case_id, **given)
