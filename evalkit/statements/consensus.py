"""What two reports say together: pass criteria, consensus, issues that are one, and how many are shown.

Specification 004, "Pass Criteria", "Consensus Rules", "Issue Deduplication", "Issue Category Caps"; ruling 18 of the
contract: caps limit what is shown, not what is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

from rapidfuzz import fuzz

from evalkit.statements.report import Category, Rank, Severity, TemplateIssue

#: So many issues of a severity a template may have and pass.
MOST: dict[Severity, int] = {"critical": 0, "high": 0, "medium": 3, "low": 10}
#: So many issues of a category are shown, the worst first.
CAPS: dict[Category, int] = {
    "bbox_accuracy": 5,
    "column_mapping": 3,
    "sign_logic": 2,
    "date_format": 3,
    "multiline_handling": 3,
    "reconciliation_strategy": 2,
    "provenance": 5,
    "other": 5,
}
#: Messages are alike beyond this.
_ALIKE = 0.7

Consensus = Literal["approved", "arbitration", "rejected"]


class Row(NamedTuple):
    """What follows where both verdicts are as they say."""

    when: Callable[[bool, bool], bool]
    then: Consensus
    because: str


TABLE = (
    #   layout, semantic                          result           because
    Row(lambda layout, semantic: layout and semantic, "approved", "both reviewers pass the template"),
    Row(lambda layout, semantic: layout != semantic, "arbitration", "the reviewers disagree"),
    Row(lambda layout, semantic: True, "rejected", "both reviewers reject the template"),
)


def passes(issues: Sequence[TemplateIssue], most: Mapping[Severity, int] = MOST) -> bool:
    """Whether a reviewer with these issues passes the template; all of them count, shown or not."""
    counts = Counter(issue.severity for issue in issues)
    return all(counts[severity] <= allowed for severity, allowed in most.items())


def consensus(layout: bool, semantic: bool) -> Row:
    """The first row of the table that holds."""
    return next(row for row in TABLE if row.when(layout, semantic))


def are_duplicates(one: TemplateIssue, other: TemplateIssue) -> bool:
    """Whether two issues are the same fault; page and location only tell them apart where both have one."""
    if one.category != other.category:
        return False
    if one.page and other.page and one.page != other.page:
        return False
    here, there = one.evidence.location, other.evidence.location
    if here and there and here != there:
        return False
    return fuzz.token_set_ratio(one.message, other.message) / 100 > _ALIKE


class Consolidated(NamedTuple):
    """An issue, and who reported it."""

    issue: TemplateIssue
    reported_by: tuple[str, ...]


def merged(reports: Sequence[tuple[str, Sequence[TemplateIssue]]]) -> list[Consolidated]:
    """The issues of all reviewers, each fault once, in the order in which they were first told.

    Of the same fault the higher severity counts; the suggested fixes are joined, and all who found it are named. One
    reviewer's issues are told in like words, and are as many faults: only equal words are one there.
    """
    found: list[Consolidated] = []
    for reviewer, issues in reports:
        for issue in issues:
            at = next((at for at, known in enumerate(found) if _is_told(known, issue, reviewer)), None)
            if at is None:
                found.append(Consolidated(issue, (reviewer,)))
            else:
                found[at] = _joined(found[at], issue, reviewer)
    return found


def _is_told(known: Consolidated, issue: TemplateIssue, reviewer: str) -> bool:
    is_anothers = reviewer not in known.reported_by
    return are_duplicates(known.issue, issue) and (is_anothers or known.issue.message == issue.message)


def _joined(known: Consolidated, issue: TemplateIssue, reviewer: str) -> Consolidated:
    fixes = dict.fromkeys(filter(None, (known.issue.suggested_fix, issue.suggested_fix)))
    worst = max(known.issue, issue, key=lambda one: Rank[one.severity])
    kept = known.issue.model_copy(update={"severity": worst.severity, "suggested_fix": "; ".join(fixes)})
    return Consolidated(kept, tuple(dict.fromkeys((*known.reported_by, reviewer))))


def shown(issues: Sequence[TemplateIssue], caps: Mapping[Category, int] = CAPS) -> list[TemplateIssue]:
    """The issues up to their category's cap, the worst ones, in their order."""
    by_worst = sorted(issues, key=lambda issue: -Rank[issue.severity])
    kept: list[TemplateIssue] = []
    for issue in by_worst:
        if sum(one.category == issue.category for one in kept) < caps[issue.category]:
            kept.append(issue)
    return [issue for issue in issues if any(issue is one for one in kept)]
