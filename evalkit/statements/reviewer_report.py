"""The report of a template reviewer and its issues (specification 004)."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Literal

from pydantic import Field

from evalkit.core.records import LazyStrictRecord

TemplateIssueCategory = Literal[
    "bbox_accuracy", "column_mapping", "sign_logic", "date_format", "multiline_handling", "reconciliation_strategy", "provenance", "other",
]  # fmt: skip
TemplateIssueSeverity = Literal["low", "medium", "high", "critical"]
ReviewerRole = Literal["layout_geometry", "semantic_financial", "arbitrator"]


class SeverityRank(IntEnum):
    """Severities of template issues in ascending order."""

    low = 0
    medium = 1
    high = 2
    critical = 3


class IssueEvidence(LazyStrictRecord):
    """The evidence for an issue: expected and actual value, and part of the template."""

    expected: str = ""
    actual: str = ""
    location: str = ""
    """The part of the template, such as ``column debit`` or ``region first``."""


class TemplateIssue(LazyStrictRecord):
    """One fault that a reviewer finds in a template."""

    issue_id: str
    severity: TemplateIssueSeverity
    category: TemplateIssueCategory
    message: str
    page: int | None = Field(None, exclude_if=lambda page: page is None)
    """Page of the statement, from 1; left out of files and prompts if unknown."""
    evidence: IssueEvidence = IssueEvidence()
    suggested_fix: str = ""
    confidence: float = Field(1.0, ge=0, le=1)


class ReviewerReport(LazyStrictRecord, populate_by_name=True, serialize_by_alias=True):
    """One reviewer's report about a template: verdict and issues."""

    reviewer_id: str
    reviewer_role: ReviewerRole
    reviewer_model: str = ""
    template_id: str
    template_version: str = ""
    is_passed: bool = Field(alias="pass")
    issues: tuple[TemplateIssue, ...] = ()
    """All issues, also those that the caps hide on the screen."""
    summary: dict[str, Any] = {}
    """Keys ``strengths`` and ``weaknesses`` (lists of sentences) and ``overall_quality_score`` (0..1)."""
    review_duration_ms: int | None = Field(None, ge=0, exclude_if=lambda duration: duration is None)
    """Always None in evalkit's files: ``times`` of the cycle has the times, so that repeated runs differ nowhere
    else."""
    tokens_used: dict[str, int] = {}
    reviewed_at: str
    """Time of the report, ISO 8601, UTC."""
