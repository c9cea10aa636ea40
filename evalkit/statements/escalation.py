"""Hand over a template to a person: history, persistent issues and advice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from evalkit.statements.consensus import is_duplicate_issue
from evalkit.statements.convergence import EscalationReason
from evalkit.statements.review_cycles import ConvergencePoint, Escalation, PersistentIssue, ReviewCycle
from evalkit.statements.reviewer_report import SeverityRank, TemplateIssueCategory


def build_escalation(cycles: Sequence[ReviewCycle]) -> Escalation:
    """Build the information for the person who must decide an escalated template."""
    reason = cycles[-1].escalation_reason
    assert reason is not None  # noqa: S101 - only escalated reviews are passed
    persistent_issues = tuple(_find_persistent_issues(cycles))
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
        recommendation=_recommend_next_step(reason, cycles[-1], persistent_issues),
    )


def _find_persistent_issues(cycles: Sequence[ReviewCycle]) -> Iterator[PersistentIssue]:
    for last_issue in cycles[-1].issues:
        occurrences = [
            (cycle.attempt, occurrence.issue)
            for cycle in cycles
            for occurrence in cycle.issues
            if is_duplicate_issue(last_issue.issue, occurrence.issue)
        ]
        attempt_numbers = tuple(dict.fromkeys(attempt for attempt, _ in occurrences))
        if len(attempt_numbers) > 1:
            yield PersistentIssue(
                issue_id=last_issue.issue.issue_id,
                reported_in_attempts=attempt_numbers,
                suggested_fixes_tried=tuple(
                    dict.fromkeys(occurrence.suggested_fix for _, occurrence in occurrences if occurrence.suggested_fix)
                ),
            )


class _AdviceRule(NamedTuple):
    when: Callable[[EscalationReason, TemplateIssueCategory | None], bool]
    advice: str


#: Advice for the person, by reason and category of the worst open issue; the first row that applies counts.
_ADVICE_RULES = (
    _AdviceRule(lambda reason, category: reason == "reviewer_failed", "A reviewer gave no report: check the template yourself, or run the review again"),
    _AdviceRule(lambda reason, category: reason == "review_disabled" and category is None, "The only reviewer found no fault: compare the marked regions and rows with the pages"),
    _AdviceRule(lambda reason, category: category == "bbox_accuracy", "Manual bounding box adjustment may be required"),
    _AdviceRule(lambda reason, category: category == "column_mapping", "Compare the meaning of each column in the template with the title printed above it"),
    _AdviceRule(lambda reason, category: category == "sign_logic", "Check on the pages which amounts are deposits and which are withdrawals"),
    _AdviceRule(lambda reason, category: category == "date_format", "Check the order of day, month and year, and where the year is printed"),
    _AdviceRule(lambda reason, category: category == "multiline_handling", "Check which lines belong to the same transaction"),
    _AdviceRule(lambda reason, category: category == "reconciliation_strategy", "Check if the printed transactions add up to the printed sums, and if a row is missing"),
    _AdviceRule(lambda reason, category: True, "Compare the template's regions, columns and rows with the pages"),
)  # fmt: skip


def _recommend_next_step(
    reason: EscalationReason, last_cycle: ReviewCycle, persistent_issues: Sequence[PersistentIssue]
) -> str:
    persistent_ids = {reported_issue.issue_id for reported_issue in persistent_issues}
    worst_issue = max(
        (reported_issue.issue for reported_issue in last_cycle.issues),
        key=lambda issue: (SeverityRank[issue.severity], issue.issue_id in persistent_ids),
        default=None,
    )
    category = worst_issue.category if worst_issue else None
    return next(advice_rule.advice for advice_rule in _ADVICE_RULES if advice_rule.when(reason, category))
