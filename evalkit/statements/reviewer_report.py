"""The report of a template reviewer, its pass criteria, and the reviewers' consensus.

Specification 004, "Pass Criteria", "Consensus Rules", "Issue Deduplication", "Issue Category Caps"; ruling 18 of the
contract: the caps limit which issues are shown; hidden issues count too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any, Literal, NamedTuple

from pydantic import Field
from rapidfuzz import fuzz

from evalkit.core.grouping import group_by
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


#: Most issues of each severity with which a template is accepted.
MAX_ISSUES_BY_SEVERITY: dict[TemplateIssueSeverity, int] = {"critical": 0, "high": 0, "medium": 3, "low": 10}
#: Most issues of each category that are shown; the worst are shown.
SHOWN_ISSUE_CAPS: dict[TemplateIssueCategory, int] = {
    "bbox_accuracy": 5,
    "column_mapping": 3,
    "sign_logic": 2,
    "date_format": 3,
    "multiline_handling": 3,
    "reconciliation_strategy": 2,
    "provenance": 5,
    "other": 5,
}
#: Messages with a greater similarity (0..1) count as equal.
_MIN_MESSAGE_SIMILARITY = 0.7

Consensus = Literal["approved", "arbitration", "rejected"]


class ConsensusRule(NamedTuple):
    """A row of the consensus table: the outcome of two verdicts."""

    outcome: Consensus
    reason: str


#: The outcome by the number of reviewers that pass the template.
_CONSENSUS_BY_PASSES = (
    ConsensusRule("rejected", "both reviewers reject the template"),
    ConsensusRule("arbitration", "the reviewers disagree"),
    ConsensusRule("approved", "both reviewers pass the template"),
)


def is_template_passing(
    issues: Sequence[TemplateIssue],
    max_issues_by_severity: Mapping[TemplateIssueSeverity, int] = MAX_ISSUES_BY_SEVERITY,
) -> bool:
    """Return True if no severity has more issues than allowed.

    Pass all issues, also those that the caps hide.
    """
    counts = Counter(issue.severity for issue in issues)
    return all(counts[severity] <= max_count for severity, max_count in max_issues_by_severity.items())


def find_consensus_rule(layout_passed: bool, semantic_passed: bool) -> ConsensusRule:
    """Return the row of the consensus table for two verdicts."""
    return _CONSENSUS_BY_PASSES[layout_passed + semantic_passed]


def is_duplicate_issue(issue: TemplateIssue, other_issue: TemplateIssue) -> bool:
    """Return True if both issues report the same fault.

    Same fault: the same category and a similar message; the pages, and the locations, must be equal if both issues have
    one.
    """
    if issue.category != other_issue.category:
        return False
    if issue.page and other_issue.page and issue.page != other_issue.page:
        return False
    location, other_location = issue.evidence.location, other_issue.evidence.location
    if location and other_location and location != other_location:
        return False
    return fuzz.token_set_ratio(issue.message, other_issue.message) / 100 > _MIN_MESSAGE_SIMILARITY


def keep_worst_issues_per_category(
    issues: Sequence[TemplateIssue], max_issues_by_category: Mapping[TemplateIssueCategory, int] = SHOWN_ISSUE_CAPS
) -> list[TemplateIssue]:
    """Return the issues to show: each category's worst, up to its cap, in input order."""
    worst_first = sorted(issues, key=lambda issue: -SeverityRank[issue.severity])
    issues_by_category = group_by(worst_first, lambda issue: issue.category)
    shown_ids = {
        id(issue)
        for category, category_issues in issues_by_category.items()
        for issue in category_issues[: max_issues_by_category[category]]
    }
    return [issue for issue in issues if id(issue) in shown_ids]
