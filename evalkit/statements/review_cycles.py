"""What became of a template's review: its cycles, what they cost, and what a person is told who has to decide.

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

#: What the id of a case about a template ends with.
TEMPLATE_CASE_SUFFIX = ".statement_template"


class ReportedIssue(LazyStrictRecord):
    """An issue of the last cycle, each fault once."""

    issue: TemplateIssue
    """The higher severity of those that were told, the suggested fixes joined."""
    reported_by: tuple[ReviewerRole, ...]
    resolution: Resolution | None = None
    """What the arbitrator said of it, where only one reviewer had found it."""


def merge_reviewer_issues(reports: Iterable[tuple[ReviewerRole, Sequence[TemplateIssue]]]) -> list[ReportedIssue]:
    """Merge the issues of all reviewers, each fault once, in the order in which they were first reported.

    Of the same fault the higher severity counts; the suggested fixes are joined, and all who found it are named. One
    reviewer's issues are told in like words, and are as many faults: only equal words are one there.
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
    """A fault that was there in more than one attempt."""

    issue_id: str
    reported_in_attempts: tuple[int, ...]
    suggested_fixes_tried: tuple[str, ...]


class Escalation(LazyStrictRecord):
    """Why a person decides, and all that was said before."""

    escalation_reason: EscalationReason
    attempt_count: int = Field(ge=1)
    all_reviewer_reports: tuple[ReviewerReport, ...] = ()
    arbitration_reports: tuple[ArbitrationReport, ...] = ()
    convergence_history: tuple[ConvergencePoint, ...] = ()
    persistent_issues: tuple[PersistentIssue, ...] = ()
    recommendation: str = ""
    """One sentence for the person."""


class TemplateCase(LazyStrictRecord):
    """What a person is asked about a template."""

    template_id: str
    template: str
    """As TOML: the last attempt's."""
    issues: tuple[ReportedIssue, ...]
    """All of the last cycle; caps limit what is shown."""
    escalation: Escalation


class ReviewCost(LazyStrictRecord):
    """What reviewing a template cost, builders included."""

    review_cycle_id: str
    template_id: str
    attempts: int = Field(ge=0)
    total_tokens: dict[Literal["input", "output"], int]
    estimated_cost_usd: Decimal | None
    """None where nobody knows the price."""
    final_outcome: Literal["approved", "rejected", "escalated"]


class ReviewCycle(LazyStrictRecord):
    """One attempt at one template, reviewed: ``template_reviews/{template_id}/cycle_{n}.json``."""

    schema_version: int = SCHEMA_VERSION
    review_cycle_id: str
    template_id: str
    statement_sha256: str = ""
    """The statement that it was tried on; its report may quote it."""
    attempt: int = Field(ge=1)
    template: str
    """As TOML."""
    reports: tuple[ReviewerReport, ...]
    """Of the reviewers that answered in their time, all issues, beyond the caps too."""
    failures: dict[str, str] = {}
    """Why a role gave no report, by role, in words that quote no document."""
    consensus: Consensus | None
    """None where a reviewer failed."""
    because: str
    """The row's sentence."""
    arbitration: ArbitrationReport | None = None
    convergence: dict[str, Any]
    """The fields of ``ConvergenceState``, its ``score`` and ``status``."""
    issues: tuple[ReportedIssue, ...]
    """Each fault once."""
    outcome: Literal["approved", "retry", "escalated"]
    escalation_reason: EscalationReason | None = None
    cost: ReviewCost | None = None
    """Of the whole review up to this cycle, builders included; the last one has the review's."""
    times: dict[str, Any] = {}
    """When each part began and ended (ISO 8601, UTC)."""
