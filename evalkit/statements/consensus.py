"""Consensus of two reports: pass criteria, verdicts, duplicates, display caps.

Specification 004, "Pass Criteria", "Consensus Rules", "Issue Deduplication", "Issue Category Caps"; ruling 18 of the
contract: caps limit the display, not the count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

from rapidfuzz import fuzz

from evalkit.statements.reviewer_report import SeverityRank, TemplateIssue, TemplateIssueCategory, TemplateIssueSeverity

#: Most issues of each severity with which a template passes.
MAX_ISSUES_BY_SEVERITY: dict[TemplateIssueSeverity, int] = {"critical": 0, "high": 0, "medium": 3, "low": 10}
#: Most issues of each category that are displayed, worst first.
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
#: Messages more similar than this are the same.
_MIN_MESSAGE_SIMILARITY = 0.7

Consensus = Literal["approved", "arbitration", "rejected"]


class ConsensusRule(NamedTuple):
    """The outcome for a pair of verdicts."""

    when: Callable[[bool, bool], bool]
    outcome: Consensus
    reason: str


CONSENSUS_TABLE = (
    #   layout, semantic                          result           because
    ConsensusRule(
        lambda layout_passed, semantic_passed: layout_passed and semantic_passed,
        "approved",
        "both reviewers pass the template",
    ),
    ConsensusRule(
        lambda layout_passed, semantic_passed: layout_passed != semantic_passed, "arbitration", "the reviewers disagree"
    ),
    ConsensusRule(lambda layout_passed, semantic_passed: True, "rejected", "both reviewers reject the template"),
)


def is_template_passing(
    issues: Sequence[TemplateIssue],
    max_issues_by_severity: Mapping[TemplateIssueSeverity, int] = MAX_ISSUES_BY_SEVERITY,
) -> bool:
    """Check that a template with these issues passes; hidden issues count too."""
    counts = Counter(issue.severity for issue in issues)
    return all(counts[severity] <= max_count for severity, max_count in max_issues_by_severity.items())


def find_consensus_rule(layout_passed: bool, semantic_passed: bool) -> ConsensusRule:
    """Find the first row of the table that applies."""
    return next(rule for rule in CONSENSUS_TABLE if rule.when(layout_passed, semantic_passed))


def is_duplicate_issue(issue: TemplateIssue, other_issue: TemplateIssue) -> bool:
    """Compare two issues; page and location distinguish them only if both have one."""
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
    """Keep each category's worst issues up to its cap, in their order."""
    worst_first = sorted(issues, key=lambda issue: -SeverityRank[issue.severity])
    capped_issues: list[TemplateIssue] = []
    for issue in worst_first:
        if (
            sum(capped_issue.category == issue.category for capped_issue in capped_issues)
            < max_issues_by_category[issue.category]
        ):
            capped_issues.append(issue)
    return [issue for issue in issues if any(issue is capped_issue for capped_issue in capped_issues)]
