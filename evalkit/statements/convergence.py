"""Decision after each rejected template: build another or ask a person.

Specification 004, "Convergence Tracking", "Retry Limits", "Escalation Triggers". Ruling 18: the first attempt is not a
retry and has no convergence status; the later bands of the score are > 0.5, [0, 0.5], [−0.2, 0) and < −0.2; in the last
band (diverging) a person decides at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from evalkit.statements.reviewer_report import SeverityRank, TemplateIssue, is_duplicate_issue

ConvergenceStatus = Literal["first", "converging", "slow", "stalled", "diverging"]
RetryScenario = Literal["both_fail", "arbitration", "stuck", "diverging"]
EscalationReason = Literal[
    "max_retries_exceeded", "diverging", "arbitration_uncertain", "reviewer_failed", "critical_disagreement", "review_disabled",
    "hypotheses_exhausted",
]  # fmt: skip


@dataclass(frozen=True)
class ConvergenceState:
    """The issues of one attempt, compared with those of the previous attempt."""

    attempt: int
    """Number of the attempt, from 1."""
    total_issues: int
    critical_issues: int
    high_issues: int
    issues_fixed_from_prior: int
    new_issues_introduced: int
    prior_total_issues: int = 0

    @property
    def convergence_score(self) -> float:
        """Share of fixed minus share of new issues, −1 to 1; 0 on the first attempt."""
        if self.attempt == 1:
            return 0.0
        fixed_share = self.issues_fixed_from_prior / max(1, self.prior_total_issues)
        new_share = self.new_issues_introduced / max(1, self.total_issues)
        return fixed_share - new_share


#: An attempt with a lower convergence score is diverging.
DIVERGING_BELOW = -0.2


#: Most attempts after the first one. The specification lists 1 for ``diverging``, but also that a person decides at
#: once.
MAX_RETRIES_BY_SCENARIO: Mapping[RetryScenario, int] = {"both_fail": 3, "arbitration": 2, "stuck": 2, "diverging": 0}


def measure_convergence(
    attempt: int, issues: Sequence[TemplateIssue], prior_issues: Sequence[TemplateIssue] = ()
) -> ConvergenceState:
    """Count fixed and new issues of an attempt, compared with the previous attempt.

    Two issues are the same if ``is_duplicate_issue`` says so.
    """
    fixed_count = sum(not any(is_duplicate_issue(old, new) for new in issues) for old in prior_issues)
    new = sum(not any(is_duplicate_issue(old, issue) for old in prior_issues) for issue in issues)
    ranks = [SeverityRank[issue.severity] for issue in issues]
    return ConvergenceState(
        attempt=attempt,
        total_issues=len(issues),
        critical_issues=ranks.count(SeverityRank.critical),
        high_issues=ranks.count(SeverityRank.high),
        issues_fixed_from_prior=fixed_count if attempt > 1 else 0,
        new_issues_introduced=new if attempt > 1 else 0,
        prior_total_issues=len(prior_issues),
    )


def select_convergence_status(state: ConvergenceState, diverging_below: float = DIVERGING_BELOW) -> ConvergenceStatus:
    """Return the status for the attempt's convergence score; ``first`` for attempt 1."""
    if state.attempt == 1:
        return "first"
    score = state.convergence_score
    return (
        "converging"
        if score > 0.5
        else "slow"
        if score >= 0
        else "stalled"
        if score >= diverging_below
        else "diverging"
    )


class EscalationSituation(NamedTuple):
    """Facts that decide whether a rejected template is retried or escalated."""

    attempt: int
    """Number of the attempt, from 1."""
    scenario: RetryScenario
    status: ConvergenceStatus
    has_failed_reviewer: bool = False
    """True if a reviewer or the arbitrator gave no usable answer in time."""
    has_critical_disagreement: bool = False
    unresolved_share: float = 0.0
    """Share (0..1) of the reviewers' disagreements that arbitration could not resolve."""
    is_review_enabled: bool = True


def find_escalation_reason(
    situation: EscalationSituation, max_retries_by_scenario: Mapping[RetryScenario, int] = MAX_RETRIES_BY_SCENARIO
) -> EscalationReason | None:
    """Return the reason why a person must decide; None if another attempt is allowed."""
    is_stuck = situation.attempt > max_retries_by_scenario["stuck"] and situation.status == "stalled"
    has_no_retry_left = situation.attempt > max_retries_by_scenario[situation.scenario]
    #: The first condition that holds is the reason.
    triggers: tuple[tuple[EscalationReason, bool], ...] = (
        ("reviewer_failed", situation.has_failed_reviewer),
        ("review_disabled", not situation.is_review_enabled),
        ("critical_disagreement", situation.has_critical_disagreement),
        ("arbitration_uncertain", situation.unresolved_share > 0.5),
        ("diverging", situation.status == "diverging"),
        ("max_retries_exceeded", is_stuck or has_no_retry_left),
    )
    return next((reason for reason, has_occurred in triggers if has_occurred), None)
