"""V5: arbiter, which decides by a table, so that equal issues decide equally.

Source: specification 000, slide 7, literally; the first matching row decides. The orchestrator runs the retries, and
escalates if they do not help (rules ``retries`` and ``cycle``).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from evalkit.issue import Issue, IssueSeverity


class Decision(StrEnum):
    """Decision on a classification; AUTO_RETRY is never the final decision."""

    AUTO_ACCEPT = "AUTO_ACCEPT"
    AUTO_RETRY = "AUTO_RETRY"
    ESCALATE_TO_SME = "ESCALATE_TO_SME"


@dataclass(frozen=True)
class IssueCounts:
    """Counts of open issues by which the table decides."""

    blocker: int = 0
    major_fixable: int = 0
    major_unfixable: int = 0
    minor: int = 0

    @property
    def major(self) -> int:
        """Number of MAJOR issues, auto-fixable or not."""
        return self.major_fixable + self.major_unfixable

    @property
    def total(self) -> int:
        """Number of all open issues."""
        return self.blocker + self.major + self.minor


@dataclass(frozen=True)
class Verdict:
    """Decision of one round, with the row of the table that applied."""

    decision: Decision
    rule: str
    """Number of the row, ``1`` to ``8``; ``retries`` or ``cycle`` if the orchestrator decided."""
    reason: str
    """Reason of the row, for the expert."""
    counts: IssueCounts


@dataclass(frozen=True)
class DecisionRow:
    """Row of the decision table: condition, decision and reason."""

    applies_to: Callable[[IssueCounts], bool]
    decision: Decision
    reason: str


_ESCALATE, _RETRY, _ACCEPT = Decision.ESCALATE_TO_SME, Decision.AUTO_RETRY, Decision.AUTO_ACCEPT

# fmt: off
DECISION_TABLE = (
    #   when                                           decision    because
    DecisionRow(lambda n: n.blocker >= 1,                      _ESCALATE,  "a critical failure cannot be corrected automatically"),
    DecisionRow(lambda n: n.major >= 3,                        _ESCALATE,  "there are too many errors for automatic correction"),
    DecisionRow(lambda n: n.major_unfixable >= 2,              _ESCALATE,  "several errors need a person's judgement"),
    DecisionRow(lambda n: n.major_unfixable >= 1,              _ESCALATE,  "an error needs a person's judgement"),
    DecisionRow(lambda n: 1 <= n.major_fixable <= 2,           _RETRY,     "the errors can be repaired by arithmetic"),
    DecisionRow(lambda n: n.minor >= 1 and n.total == n.minor, _ACCEPT,    "only minor remarks, which do not touch validity"),
    DecisionRow(lambda n: n.total == 0,                        _ACCEPT,    "no check found anything"),
    DecisionRow(lambda n: True,                                _ESCALATE,  "the findings fit no other row"),
)
# fmt: on


def count_open_issues(issues: Iterable[Issue]) -> IssueCounts:
    """Count the open issues by severity, and those that can be repaired."""
    open_issues = [issue for issue in issues if issue.status == "open"]
    majors = [issue for issue in open_issues if issue.severity is IssueSeverity.MAJOR]
    return IssueCounts(
        blocker=sum(issue.severity is IssueSeverity.BLOCKER for issue in open_issues),
        major_fixable=sum(issue.auto_fixable for issue in majors),
        major_unfixable=sum(not issue.auto_fixable for issue in majors),
        minor=sum(issue.severity is IssueSeverity.MINOR for issue in open_issues),
    )


class V5DecisionMaker:
    """Arbiter that applies the decision table."""

    def decide(self, issues: Iterable[Issue]) -> Verdict:
        """Decide by the first row of the table that applies to the open issues."""
        counts = count_open_issues(issues)
        number, row = next((number, row) for number, row in enumerate(DECISION_TABLE, 1) if row.applies_to(counts))
        return Verdict(row.decision, str(number), row.reason, counts)
