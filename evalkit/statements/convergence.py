"""Does the builder come nearer to an approved template? Scores, retries and what sends a template to a person.

Specification 004, "Convergence Tracking", "Retry Limits", "Escalation Triggers"; ruling 18: retries count after the first
attempt, the bands are > 0.5, [0, 0.5], [−0.2, 0) and < −0.2, none on attempt 1, and diverging escalates at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from evalkit.statements.consensus import are_duplicates
from evalkit.statements.report import Rank, TemplateIssue

Status = Literal["first", "converging", "slow", "stalled", "diverging"]
Scenario = Literal["both_fail", "arbitration", "stuck", "diverging"]
Reason = Literal[
    "max_retries_exceeded", "diverging", "arbitration_uncertain", "reviewer_failed", "critical_disagreement", "review_disabled",
]  # fmt: skip


@dataclass(frozen=True)
class ConvergenceState:
    """One attempt, beside the one before."""

    attempt: int
    """From 1."""
    total_issues: int
    critical_issues: int
    high_issues: int
    issues_fixed_from_prior: int
    new_issues_introduced: int
    prior_total_issues: int = 0

    @property
    def convergence_score(self) -> float:
        """From −1 (diverging) to 1 (converging); 0 on the first attempt."""
        if self.attempt == 1:
            return 0.0
        fixed = self.issues_fixed_from_prior / max(1, self.prior_total_issues)
        new = self.new_issues_introduced / max(1, self.total_issues)
        return fixed - new


#: A score below this is diverging.
DIVERGING = -0.2


class Band(NamedTuple):
    """What a score means."""

    when: Callable[[float, float], bool]
    """Of the score, and of that below which it is diverging."""
    status: Status
    action: str


BANDS = (
    #    score                       status        action
    Band(lambda score, diverging: score > 0.5, "converging", "continue"),
    Band(lambda score, diverging: score >= 0.0, "slow", "continue with a warning"),
    Band(lambda score, diverging: score >= diverging, "stalled", "one more attempt"),
    Band(lambda score, diverging: True, "diverging", "escalate to a person"),
)
_FIRST = Band(lambda score, diverging: True, "first", "continue")

#: So many attempts may follow the first one. Diverging is listed with 1 by the specification, and escalates at once.
RETRIES: Mapping[Scenario, int] = {"both_fail": 3, "arbitration": 2, "stuck": 2, "diverging": 0}


def state_of(attempt: int, issues: Sequence[TemplateIssue], prior: Sequence[TemplateIssue] = ()) -> ConvergenceState:
    """What an attempt's issues are beside those of the one before; issues are the same as for deduplication."""
    fixed = sum(not any(are_duplicates(old, new) for new in issues) for old in prior)
    new = sum(not any(are_duplicates(old, one) for old in prior) for one in issues)
    ranks = [Rank[issue.severity] for issue in issues]
    return ConvergenceState(
        attempt=attempt,
        total_issues=len(issues),
        critical_issues=ranks.count(Rank.critical),
        high_issues=ranks.count(Rank.high),
        issues_fixed_from_prior=fixed if attempt > 1 else 0,
        new_issues_introduced=new if attempt > 1 else 0,
        prior_total_issues=len(prior),
    )


def band(state: ConvergenceState, diverging: float = DIVERGING) -> Band:
    """The first band that holds; none on the first attempt."""
    return _FIRST if state.attempt == 1 else next(row for row in BANDS if row.when(state.convergence_score, diverging))


class Situation(NamedTuple):
    """What is known when a template was not approved."""

    attempt: int
    """From 1."""
    scenario: Scenario
    status: Status
    has_failed_reviewer: bool = False
    """One of them could not answer in its time."""
    has_critical_disagreement: bool = False
    uncertainty: float = 0.0
    """The share of disagreements, 0..1, that arbitration could not settle."""
    is_enabled: bool = True


class Trigger(NamedTuple):
    """Why a person decides."""

    when: Callable[[Situation, Mapping[Scenario, int]], bool]
    reason: Reason


TRIGGERS = (
    Trigger(lambda now, most: now.has_failed_reviewer, "reviewer_failed"),
    Trigger(lambda now, most: not now.is_enabled, "review_disabled"),
    Trigger(lambda now, most: now.has_critical_disagreement, "critical_disagreement"),
    Trigger(lambda now, most: now.uncertainty > 0.5, "arbitration_uncertain"),
    Trigger(lambda now, most: now.status == "diverging", "diverging"),
    Trigger(lambda now, most: now.attempt > most["stuck"] and now.status == "stalled", "max_retries_exceeded"),
    Trigger(lambda now, most: now.attempt > most[now.scenario], "max_retries_exceeded"),
)


def escalation(now: Situation, retries: Mapping[Scenario, int] = RETRIES) -> Reason | None:
    """Why a person decides instead of the builder trying again; None where it does try again."""
    return next((row.reason for row in TRIGGERS if row.when(now, retries)), None)
