"""Stored records of a template's review: attempts, cost, case for a person.

The case hands over a template with its history, persistent issues and advice. Specification 004, "Retry Flow", "Cost
Tracking", "Escalation Context".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from operator import not_
from typing import Any, Literal

from pydantic import Field

from evalkit.core.records import LazyStrictRecord
from evalkit.statements.convergence import EscalationReason
from evalkit.statements.reviewer_report import (
    ArbitrationReport,
    Consensus,
    Resolution,
    ReviewerReport,
    ReviewerRole,
    SeverityRank,
    TemplateIssue,
    TemplateIssueCategory,
    is_duplicate_issue,
)
from evalkit.statements.statement_template import list_differing_assumptions

SCHEMA_VERSION = 1

#: The case_id of a template's case is its template_id and this suffix.
TEMPLATE_CASE_SUFFIX = ".statement_template"


class ReportedIssue(LazyStrictRecord):
    """An issue of one attempt, merged from all reviewers that reported it."""

    issue: TemplateIssue
    """The issue with the highest severity that was reported, and all suggested fixes."""
    reported_by: tuple[ReviewerRole, ...]
    resolution: Resolution | None = None
    """The arbitrator's decision about an issue that only one reviewer reported."""


def merge_reviewer_issues(reports: Iterable[tuple[ReviewerRole, Sequence[TemplateIssue]]]) -> list[ReportedIssue]:
    """Merge issues of different reviewers that report the same fault.

    The order is that of the first report of each fault. A merged issue has the highest severity, all suggested fixes
    and all reporting reviewers. Similar issues of one reviewer stay separate; only those with identical messages are
    merged.
    """
    merged_issues: list[ReportedIssue] = []
    for reviewer, issues in reports:
        for issue in issues:
            position = next(
                (
                    position
                    for position, known_issue in enumerate(merged_issues)
                    if (known_issue.issue.message == issue.message or reviewer not in known_issue.reported_by)
                    and is_duplicate_issue(known_issue.issue, issue)
                ),
                None,
            )
            if position is None:
                merged_issues.append(ReportedIssue(issue=issue, reported_by=(reviewer,)))
            else:
                merged_issues[position] = _merge_into_issue(merged_issues[position], issue, reviewer)
    return merged_issues


def _merge_into_issue(known_issue: ReportedIssue, issue: TemplateIssue, reviewer: ReviewerRole) -> ReportedIssue:
    fixes = dict.fromkeys(filter(None, (known_issue.issue.suggested_fix, issue.suggested_fix)))
    worst_issue = max(known_issue.issue, issue, key=lambda candidate: SeverityRank[candidate.severity])
    changes = {"severity": worst_issue.severity, "suggested_fix": "; ".join(fixes)}
    reporters = tuple(dict.fromkeys((*known_issue.reported_by, reviewer)))
    return ReportedIssue(issue=known_issue.issue.model_copy(update=changes), reported_by=reporters)


class ConvergencePoint(LazyStrictRecord):
    """Number of issues and convergence score of one attempt."""

    attempt: int = Field(ge=1)
    issues: int = Field(ge=0)
    score: float = Field(ge=-1, le=1)


class PersistentIssue(LazyStrictRecord):
    """An issue that was reported in more than one attempt."""

    issue_id: str
    reported_in_attempts: tuple[int, ...]
    suggested_fixes_tried: tuple[str, ...]


class Escalation(LazyStrictRecord):
    """The reason why a person must decide a template, with the history of its review."""

    escalation_reason: EscalationReason
    attempt_count: int = Field(ge=1)
    all_reviewer_reports: tuple[ReviewerReport, ...] = ()
    arbitration_reports: tuple[ArbitrationReport, ...] = ()
    convergence_history: tuple[ConvergencePoint, ...] = ()
    persistent_issues: tuple[PersistentIssue, ...] = ()
    tried: tuple[str, ...] = Field((), exclude_if=not_)
    """The assumptions of each attempt that not all others share, in plain words."""
    recommendation: str = ""
    """Advice for the person, in one sentence."""


class TemplateCase(LazyStrictRecord):
    """A template that a person has to decide, with its issues and history."""

    template_id: str
    template: str
    """The template of the attempt with the least grave issues, as TOML."""
    issues: tuple[ReportedIssue, ...]
    """All issues of this attempt, also those that the caps hide on the screen."""
    escalation: Escalation


class ReviewCost(LazyStrictRecord):
    """Attempts, tokens and cost of a template's review, including building templates."""

    review_cycle_id: str
    template_id: str
    attempts: int = Field(ge=0)
    total_tokens: dict[Literal["input", "output"], int]
    estimated_cost_usd: Decimal | None
    """Cost in US dollars; None if a price is unknown."""
    final_outcome: Literal["approved", "rejected", "escalated"]


class ReviewCycle(LazyStrictRecord):
    """One attempt to review a template, stored in ``…/{template_id}/cycle_{n}.json``."""

    schema_version: int = SCHEMA_VERSION
    review_cycle_id: str
    template_id: str
    statement_sha256: str = ""
    """SHA-256 of the statement with which the template was reviewed; the reports may quote this statement."""
    attempt: int = Field(ge=1)
    template: str
    """The reviewed template, as TOML."""
    reports: tuple[ReviewerReport, ...]
    """The reports of the reviewers that answered in time, with all issues, also those that the caps hide."""
    failures: dict[str, str] = {}
    """The reason why a role gave no report, by role; quotes no document."""
    consensus: Consensus | None
    """The outcome of the two verdicts; None if a reviewer gave no report."""
    because: str
    """The reason for the outcome, as a sentence."""
    arbitration: ArbitrationReport | None = None
    convergence: dict[str, Any]
    """The fields of ``ConvergenceState``, with the convergence ``score`` and ``status``."""
    issues: tuple[ReportedIssue, ...]
    """The issues of all reports, each fault once."""
    outcome: Literal["approved", "retry", "escalated"]
    escalation_reason: EscalationReason | None = None
    cost: ReviewCost | None = None
    """Cost of the whole review up to this attempt, including building templates; the last attempt has the total."""
    tried: tuple[str, ...] = Field((), exclude_if=not_)
    """The assumptions of the template, in plain words; no two attempts of a review share all."""
    times: dict[str, Any] = {}
    """Start and end of the attempt and of each role's work (ISO 8601, UTC), and the builder's error."""


def build_escalation(cycles: Sequence[ReviewCycle]) -> Escalation:
    """Build the information for the person who must decide an escalated template."""
    reason, best_cycle = cycles[-1].escalation_reason, find_best_cycle(cycles)
    assert reason is not None  # noqa: S101 - only escalated reviews are passed
    persistent_issues = tuple(_find_persistent_issues(cycles, best_cycle))
    return Escalation(
        escalation_reason=reason,
        attempt_count=len(cycles),
        all_reviewer_reports=tuple(report for cycle in cycles for report in cycle.reports),
        arbitration_reports=tuple(cycle.arbitration for cycle in cycles if cycle.arbitration),
        convergence_history=tuple(
            ConvergencePoint(attempt=cycle.attempt, issues=len(cycle.issues), score=cycle.convergence["score"])
            for cycle in cycles
        ),
        persistent_issues=persistent_issues,
        tried=tuple(list_differing_assumptions([cycle.tried for cycle in cycles])),
        recommendation=_recommend_next_step(reason, best_cycle, persistent_issues),
    )


def find_best_cycle(cycles: Sequence[ReviewCycle]) -> ReviewCycle:
    """Return the attempt with the fewest grave issues; the earliest of equals."""

    def weigh_issues(cycle: ReviewCycle) -> tuple[bool, list[int]]:
        ranks = [SeverityRank[reported.issue.severity] for reported in cycle.issues]
        return bool(cycle.failures), [ranks.count(rank) for rank in sorted(SeverityRank, reverse=True)]

    return min(cycles, key=weigh_issues)


def _find_persistent_issues(cycles: Sequence[ReviewCycle], best_cycle: ReviewCycle) -> Iterator[PersistentIssue]:
    for open_issue in best_cycle.issues:
        occurrences = [
            (cycle.attempt, occurrence.issue)
            for cycle in cycles
            for occurrence in cycle.issues
            if is_duplicate_issue(open_issue.issue, occurrence.issue)
        ]
        attempt_numbers = tuple(dict.fromkeys(attempt for attempt, _ in occurrences))
        if len(attempt_numbers) > 1:
            yield PersistentIssue(
                issue_id=open_issue.issue.issue_id,
                reported_in_attempts=attempt_numbers,
                suggested_fixes_tried=tuple(
                    dict.fromkeys(occurrence.suggested_fix for _, occurrence in occurrences if occurrence.suggested_fix)
                ),
            )


#: Advice for the person, by reason and category of the worst open issue; the first row that applies counts.
_ADVICE_RULES: tuple[tuple[Callable[[EscalationReason, TemplateIssueCategory | None], bool], str], ...] = (
    (lambda reason, category: reason == "reviewer_failed", "A reviewer gave no report: check the template yourself, or run the review again"),
    (lambda reason, category: reason == "review_disabled" and category is None, "The only reviewer found no fault: compare the marked regions and rows with the pages"),
    (lambda reason, category: category == "bbox_accuracy", "Manual bounding box adjustment may be required"),
    (lambda reason, category: category == "column_mapping", "Compare the meaning of each column in the template with the title printed above it"),
    (lambda reason, category: category == "sign_logic", "Check on the pages which amounts are deposits and which are withdrawals"),
    (lambda reason, category: category == "date_format", "Check the order of day, month and year, and where the year is printed"),
    (lambda reason, category: category == "multiline_handling", "Check which lines belong to the same transaction"),
    (lambda reason, category: category == "reconciliation_strategy", "Check if the printed transactions add up to the printed sums, and if a row is missing"),
    (lambda reason, category: True, "Compare the template's regions, columns and rows with the pages"),
)  # fmt: skip


def _recommend_next_step(
    reason: EscalationReason, best_cycle: ReviewCycle, persistent_issues: Sequence[PersistentIssue]
) -> str:
    persistent_ids = {reported_issue.issue_id for reported_issue in persistent_issues}
    worst_issue = max(
        (reported_issue.issue for reported_issue in best_cycle.issues),
        key=lambda issue: (SeverityRank[issue.severity], issue.issue_id in persistent_ids),
        default=None,
    )
    category = worst_issue.category if worst_issue else None
    return next(advice for applies, advice in _ADVICE_RULES if applies(reason, category))
