"""Plan of a review: how long it takes an expert, and what it may find."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Annotated, Any

from pydantic import StringConstraints

from evalkit.classification.page_risks import RISK_BY_SEVERITY
from evalkit.core.grouping import group_pairs
from evalkit.core.records import StrictRecord
from evalkit.issue import Issue
from evalkit.settings import PriceSettings

#: A part of a classification about which an expert is asked: that the boundary before a page, or its absence, is right; that
#: a segment (its number in the answer) has its type; that all pages are about one patient.
QuestionPart = Annotated[str, StringConstraints(pattern=r"^(?:boundary:[1-9]\d*|segment:[1-9]\d*|patients)$")]

#: Seconds for each page that must be seen, by kind of case, while fewer than ``_MIN_TIMED_CASES`` were timed.
_DEFAULT_SECONDS_PER_PAGE = {"classification": 20.0, "extraction": 60.0, "statement_template": 90.0}
_MIN_TIMED_CASES = 5
#: The precision of an issue code is shrunk to the risk of its severity, which counts as so many judged issues.
_PRIOR_JUDGEMENTS = 10


class ReviewPlan(StrictRecord):
    """Plan of one case, made when its packet is written."""

    expected_errors: float
    """Expected number of errors that the review finds: the sum of the risks of what is asked."""
    expected_minutes: float
    """Expected active minutes of the expert."""


@dataclass(frozen=True)
class ReviewCosts:
    """Prices, times and experience by which reviews are planned."""

    prices: PriceSettings = field(default_factory=PriceSettings)
    seconds_per_page: Mapping[str, float] = field(default_factory=lambda: _DEFAULT_SECONDS_PER_PAGE)
    """Active seconds for each page that must be seen, by kind of case."""
    confirmed_by_code: Mapping[str, int] = field(default_factory=dict)
    """Number of issues that experts confirmed, by code."""
    dismissed_by_code: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def from_closings(cls, prices: PriceSettings, closings: Sequence[Mapping[str, Any]]) -> ReviewCosts:
        """Compute the costs from the rows of closed cases, each with its ``kind``."""
        timings = group_pairs(
            (row["kind"], row["seconds_active"] / row["pages_seen"])
            for row in closings
            if row["seconds_active"] and row["pages_seen"]
        )
        medians = {kind: median(seconds) for kind, seconds in timings.items() if len(seconds) >= _MIN_TIMED_CASES}
        confirmed, dismissed = (
            Counter(code for row in closings for code in row[column].split(",") if code)
            for column in ("confirmed", "dismissed")
        )
        return cls(prices, _DEFAULT_SECONDS_PER_PAGE | medians, confirmed, dismissed)

    def estimate_minutes(self, kind: str, page_count: int) -> float:
        """Estimate the active minutes of a case in which so many pages must be seen."""
        return page_count * self.seconds_per_page.get(kind, max(_DEFAULT_SECONDS_PER_PAGE.values())) / 60

    def estimate_issue_risk(self, issue: Issue) -> float:
        """Estimate the probability, 0..1, that an expert confirms an issue."""
        confirmed, dismissed = self.confirmed_by_code.get(issue.code, 0), self.dismissed_by_code.get(issue.code, 0)
        prior = RISK_BY_SEVERITY[issue.severity]
        return (confirmed + _PRIOR_JUDGEMENTS * prior) / (confirmed + dismissed + _PRIOR_JUDGEMENTS)


def plan_issue_review(kind: str, open_issues: Iterable[Issue], page_count: int, costs: ReviewCosts) -> ReviewPlan:
    """Plan a review that shows the whole case; each open issue may be an error."""
    risks = [costs.estimate_issue_risk(issue) for issue in open_issues]
    return ReviewPlan(
        expected_errors=round(sum(risks), 4), expected_minutes=round(costs.estimate_minutes(kind, page_count), 4)
    )
