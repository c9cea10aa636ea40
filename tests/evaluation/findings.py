"""What verifiers raised and experts answered, made by hand."""

from __future__ import annotations

from typing import Any

from evalkit.evaluation.study import IssueWithVerdict, ReviewRecord


def finding(code: str, severity: str = "BLOCKER", **fields: Any) -> IssueWithVerdict:
    """An open issue of a rule, of which no expert said anything; the agent is the code's beginning."""
    given = {
        "issue_id": f"{code.partition('-')[0]}-0001",
        "agent": code.partition("-")[0],
        "origin": "rule",
        "status": "open",
        "page": None,
        "message": "a sentence",
        "expert_verdict": None,
        "ig_id": "IG-1",
    } | fields
    return IssueWithVerdict(code=code, severity=severity, **given)


def answer(case_id: str, **fields: Any) -> ReviewRecord:
    """A first answer of two minutes that agrees."""
    given = {
        "revision": 1,
        "reviewer": "dr_lee",
        "is_simulated": False,
        "outcome": "validated",
        "submitted_at": "2026-01-01T00:00:00Z",
        "active_seconds": 120.0,
        "is_blind": False,
        "review_reason": "escalated",
        "labels_before": None,
        "labels_after": None,
    } | fields
    return ReviewRecord(case_id=case_id, **given)
