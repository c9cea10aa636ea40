"""Records of a template's review: cycles, cost, and the case for a person.

Specification 004, "Retry Flow", "Cost Tracking", "Escalation Context".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any, Literal

from pydantic import Field

from evalkit.core.records import LazyStrictRecord
from evalkit.statements.arbitration import ArbitrationReport, Resolution
from evalkit.statements.consensus import Consensus, is_duplicate_issue
from evalkit.statements.convergence import EscalationReason
from evalkit.statements.reviewer_report import ReviewerReport, ReviewerRole, SeverityRank, TemplateIssue

SCHEMA_VERSION = 1

#: Suffix of the id of a template's case.
TEMPLATE_CASE_SUFFIX = ".statement_template"


class ReportedIssue(LazyStrictRecord):
    """An issue of the last cycle, each fault once."""

    issue: TemplateIssue
    """The highest reported severity, and all suggested fixes."""
    reported_by: tuple[ReviewerRole, ...]
    resolution: Resolution | None = None
    """The arbitrator's decision, if only one reviewer reported it."""


def merge_reviewer_issues(reports: Iterable[tuple[ReviewerRole, Sequence[TemplateIssue]]]) -> list[ReportedIssue]:
    """Merge all reviewers' issues, each fault once, in the order of the first report.

    The highest severity counts; suggested fixes are joined, and all reporters are named. Issues of one reviewer that are
    worded alike are separate faults; only identical messages are merged.
    """
    merged_issues: list[ReportedIssue] = []
    for reviewer, issues in reports:
        for issue in issues:
            for position, known_issue in enumerate(merged_issues):
                if _is_same_reported_issue(known_issue, issue, reviewer):
                    merged_issues[position] = _merge_into_issue(known_issue, issue, reviewer)
                    break
            else:
                merged_issues.append(ReportedIssue(issue=issue, reported_by=(reviewer,)))
    return merged_issues


def _is_same_reported_issue(known_issue: ReportedIssue, issue: TemplateIssue, reviewer: ReviewerRole) -> bool:
    is_other_reviewer = reviewer not in known_issue.reported_by
    return is_duplicate_issue(known_issue.issue, issue) and (
        is_other_reviewer or known_issue.issue.message == issue.message
    )


def _merge_into_issue(known_issue: ReportedIssue, issue: TemplateIssue, reviewer: ReviewerRole) -> ReportedIssue:
    fixes = dict.fromkeys(filter(None, (known_issue.issue.suggested_fix, issue.suggested_fix)))
    worst_issue = max(known_issue.issue, issue, key=lambda candidate: SeverityRank[candidate.severity])
    changes = {"severity": worst_issue.severity, "suggested_fix": "; ".join(fixes)}
    reporters = tuple(dict.fromkeys((*known_issue.reported_by, reviewer)))
    return ReportedIssue(issue=known_issue.issue.model_copy(update=changes), reported_by=reporters)


class ConvergencePoint(LazyStrictRecord):
    """One attempt in the history of a template."""

    attempt: int = Field(ge=1)
    issues: int = Field(ge=0)
    score: float = Field(ge=-1, le=1)


class PersistentIssue(LazyStrictRecord):
    """A fault of more than one attempt."""

    issue_id: str
    reported_in_attempts: tuple[int, ...]
    suggested_fixes_tried: tuple[str, ...]


class Escalation(LazyStrictRecord):
    """The reason why a person decides, and the whole history."""

    escalation_reason: EscalationReason
    attempt_count: int = Field(ge=1)
    all_reviewer_reports: tuple[ReviewerReport, ...] = ()
    arbitration_reports: tuple[ArbitrationReport, ...] = ()
    convergence_history: tuple[ConvergencePoint, ...] = ()
    persistent_issues: tuple[PersistentIssue, ...] = ()
    recommendation: str = ""
    """One sentence for the person."""


class TemplateCase(LazyStrictRecord):
    """The case of a template for a person."""

    template_id: str
    template: str
    """The last attempt's, as TOML."""
    issues: tuple[ReportedIssue, ...]
    """All of the last cycle; caps limit what is shown."""
    escalation: Escalation


class ReviewCost(LazyStrictRecord):
    """Cost of reviewing a template, builders included."""

    review_cycle_id: str
    template_id: str
    attempts: int = Field(ge=0)
    total_tokens: dict[Literal["input", "output"], int]
    estimated_cost_usd: Decimal | None
    """None if the price is unknown."""
    final_outcome: Literal["approved", "rejected", "escalated"]


class ReviewCycle(LazyStrictRecord):
    """A reviewed attempt: ``template_reviews/{template_id}/cycle_{n}.json``."""

    schema_version: int = SCHEMA_VERSION
    review_cycle_id: str
    template_id: str
    statement_sha256: str = ""
    """Hash of the statement it was tried on; its report may quote it."""
    attempt: int = Field(ge=1)
    template: str
    """As TOML."""
    reports: tuple[ReviewerReport, ...]
    """Reports of the reviewers that answered in time, with all issues, hidden ones too."""
    failures: dict[str, str] = {}
    """The reason why a role gave no report, by role; quotes no document."""
    consensus: Consensus | None
    """None if a reviewer failed."""
    because: str
    """The reason given by the table's row."""
    arbitration: ArbitrationReport | None = None
    convergence: dict[str, Any]
    """The fields of ``ConvergenceState``, its ``score`` and ``status``."""
    issues: tuple[ReportedIssue, ...]
    """Each fault once."""
    outcome: Literal["approved", "retry", "escalated"]
    escalation_reason: EscalationReason | None = None
    cost: ReviewCost | None = None
    """The whole review up to this cycle, builders included; the last cycle has the total."""
    times: dict[str, Any] = {}
    """Start and end of each part (ISO 8601, UTC)."""
