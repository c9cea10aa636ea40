"""V5: slide 7's table, literally, the first row that matches."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

import pytest
from builders import an_issue

from evalkit.classification.v5_arbiter import DECISION_TABLE, Decision, V5DecisionMaker, Verdict
from evalkit.issue import Issue

KINDS = {
    "blocker": ("BLOCKER", False),
    "fixable MAJOR": ("MAJOR", True),
    "non-fixable MAJOR": ("MAJOR", False),
    "minor": ("MINOR", False),
}
SOFTNESS = [Decision.ESCALATE_TO_SME, Decision.AUTO_RETRY, Decision.AUTO_ACCEPT]


def issues_of(blocker: int = 0, fixable: int = 0, unfixable: int = 0, minor: int = 0) -> list[Issue]:
    return [
        an_issue(severity, auto_fixable=auto_fixable)
        for times, (severity, auto_fixable) in zip((blocker, fixable, unfixable, minor), KINDS.values(), strict=True)
        for _ in range(times)
    ]


def decide(issues: Iterable[Issue]) -> Verdict:
    return V5DecisionMaker().decide(issues)


def by_the_slide(blocker: int, fixable: int, unfixable: int, minor: int) -> tuple[str, str]:
    """Slide 7's rows as they are printed, top to bottom."""
    major = fixable + unfixable
    for rule, matches, decision in (
        ("1", blocker > 0, "ESCALATE_TO_SME"),
        ("2", major >= 3, "ESCALATE_TO_SME"),
        ("3", unfixable >= 2, "ESCALATE_TO_SME"),
        ("4", unfixable >= 1, "ESCALATE_TO_SME"),
        ("5", fixable in (1, 2), "AUTO_RETRY"),
        ("6", minor > 0 and blocker + major == 0, "AUTO_ACCEPT"),
        ("7", blocker + major + minor == 0, "AUTO_ACCEPT"),
    ):
        if matches:
            return rule, decision
    return "8", "ESCALATE_TO_SME"


@pytest.mark.parametrize(
    ("blocker", "fixable", "unfixable", "minor", "rule", "decision"),
    [
        (1, 0, 0, 0, "1", "ESCALATE_TO_SME"),
        (2, 3, 2, 5, "1", "ESCALATE_TO_SME"),
        (0, 3, 0, 0, "2", "ESCALATE_TO_SME"),
        (0, 2, 1, 0, "2", "ESCALATE_TO_SME"),
        (0, 0, 2, 0, "3", "ESCALATE_TO_SME"),
        (0, 0, 1, 0, "4", "ESCALATE_TO_SME"),
        (0, 1, 1, 9, "4", "ESCALATE_TO_SME"),
        (0, 1, 0, 0, "5", "AUTO_RETRY"),
        (0, 2, 0, 4, "5", "AUTO_RETRY"),
        (0, 0, 0, 1, "6", "AUTO_ACCEPT"),
        (0, 0, 0, 40, "6", "AUTO_ACCEPT"),
        (0, 0, 0, 0, "7", "AUTO_ACCEPT"),
    ],
)
def test_each_row_of_the_table(
    blocker: int, fixable: int, unfixable: int, minor: int, rule: str, decision: str
) -> None:
    verdict = decide(issues_of(blocker, fixable, unfixable, minor))
    assert (verdict.rule, verdict.decision) == (rule, decision)
    assert verdict.counts.total == blocker + fixable + unfixable + minor


def test_all_count_combinations_follow_the_decision_table() -> None:
    reached = set()
    for counts in product(range(5), repeat=4):
        verdict = decide(issues_of(*counts))
        assert (verdict.rule, verdict.decision) == by_the_slide(*counts), counts
        reached.add(verdict.rule)
    # Row 8 is the slide's safety net: whatever is counted is a BLOCKER, a MAJOR, a MINOR or nothing, so none is left.
    assert reached == {"1", "2", "3", "4", "5", "6", "7"}
    assert len(DECISION_TABLE) == 8
    assert DECISION_TABLE[-1].decision is Decision.ESCALATE_TO_SME


def test_one_more_issue_never_softens_the_decision() -> None:
    for counts in product(range(4), repeat=4):
        before = SOFTNESS.index(decide(issues_of(*counts)).decision)
        for severity, auto_fixable in KINDS.values():
            after = decide([*issues_of(*counts), an_issue(severity, auto_fixable=auto_fixable)])
            assert SOFTNESS.index(after.decision) <= before, (counts, severity)


@pytest.mark.parametrize("severity", ["BLOCKER", "MINOR"])
def test_only_a_major_can_be_sent_to_the_repair_table(severity: str) -> None:
    """Ruling 1: an auto-fixable BLOCKER escalates as any other."""
    decisions = {decide([an_issue(severity, auto_fixable=fixable)]).rule for fixable in (True, False)}
    assert decisions == {"1" if severity == "BLOCKER" else "6"}


@pytest.mark.parametrize("status", ["repaired", "dismissed"])
@pytest.mark.parametrize("severity", ["BLOCKER", "MAJOR"])
def test_only_open_issues_count(severity: str, status: str) -> None:
    closed = an_issue(severity, status=status)
    assert decide([closed]).rule == "7"
    assert decide([closed, an_issue("MINOR")]).rule == "6"


def test_the_order_of_the_issues_does_not_matter() -> None:
    issues = issues_of(1, 2, 1, 3)
    assert decide(issues) == decide(reversed(issues))


def test_every_row_has_a_sentence_of_its_own_for_the_expert() -> None:
    assert len({row.reason for row in DECISION_TABLE}) == len(DECISION_TABLE)
    assert all(decide(issues_of(*counts)).reason for counts in ((1,), (0, 1), (0, 0, 1), (0, 0, 0, 1), ()))
