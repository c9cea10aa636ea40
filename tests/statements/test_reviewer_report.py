"""Specification 004's tables, row by row: pass criteria, consensus, duplicates, caps, convergence, retries, escalation."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.statements.convergence import (
    MAX_RETRIES_BY_SCENARIO,
    ConvergenceState,
    ConvergenceStatus,
    EscalationReason,
    EscalationSituation,
    RetryScenario,
    find_escalation_reason,
    measure_convergence,
    select_convergence_status,
)
from evalkit.statements.review_cycles import merge_reviewer_issues
from evalkit.statements.reviewer_report import (
    EXPERT_BY_CATEGORY,
    SHOWN_ISSUE_CAPS,
    ArbitrationReport,
    ArbitratorAnswer,
    IssueEvidence,
    ReviewerReport,
    TemplateIssue,
    TemplateIssueCategory,
    TemplateIssueSeverity,
    arbitrate_reports,
    find_consensus_rule,
    find_issues_of_only_one_reviewer,
    has_critical_disagreement,
    is_duplicate_issue,
    is_template_passing,
    keep_worst_issues_per_category,
)

SCHEMAS = Path(__file__).parent / "schemas"


def issue(
    severity: TemplateIssueSeverity = "high",
    category: TemplateIssueCategory = "bbox_accuracy",
    message: str = "a row is cut off",
    **more: Any,
) -> TemplateIssue:
    return TemplateIssue(
        issue_id=more.pop("issue_id", "issue_1"), severity=severity, category=category, message=message, **more
    )


def report(role: str, *issues: TemplateIssue) -> ReviewerReport:
    return ReviewerReport.model_validate(
        {
            "reviewer_id": f"{role}_1", "reviewer_role": role, "template_id": "t", "pass": is_template_passing(issues),
            "issues": issues, "summary": {"strengths": [], "weaknesses": [], "overall_quality_score": 1.0},
            "tokens_used": {"input": 0, "output": 0}, "reviewed_at": "2024-01-15T10:30:00Z",
        }
    )  # fmt: skip


@pytest.mark.parametrize(("severity", "most"), [("critical", 0), ("high", 0), ("medium", 3), ("low", 10)])
def test_pass_criteria(severity: TemplateIssueSeverity, most: int) -> None:
    assert is_template_passing([issue(severity)] * most)
    assert not is_template_passing([issue(severity)] * (most + 1))


def test_what_is_not_shown_counts() -> None:
    """Four medium sign issues: two are shown, four are counted."""
    issues = [issue("medium", "sign_logic", issue_id=f"i{n}") for n in range(4)]
    assert len(keep_worst_issues_per_category(issues)) == SHOWN_ISSUE_CAPS["sign_logic"] == 2
    assert not is_template_passing(issues)


@pytest.mark.parametrize(
    ("layout", "semantic", "result"),
    [(True, True, "approved"), (True, False, "arbitration"), (False, True, "arbitration"), (False, False, "rejected")],
)
def test_consensus(layout: bool, semantic: bool, result: str) -> None:
    assert find_consensus_rule(layout, semantic).outcome == result


ONE = issue(message="table box cuts off the last row", page=2, evidence=IssueEvidence(location="region last"))


@pytest.mark.parametrize(
    ("other", "same"),
    [
        ({}, True),
        ({"category": "column_mapping"}, False),
        ({"page": 3}, False),
        ({"page": None}, True),
        ({"evidence": IssueEvidence(location="region first")}, False),
        ({"evidence": IssueEvidence()}, True),
        ({"message": "the last row is cut off by the table box"}, True),
        ({"message": "margin is larger than needed"}, False),
    ],
)
def test_duplicates(other: dict[str, Any], same: bool) -> None:
    assert is_duplicate_issue(ONE, ONE.model_copy(update=other)) is same


def test_merged_issues_take_the_higher_severity_and_both_fixes() -> None:
    low = ONE.model_copy(update={"severity": "medium", "suggested_fix": "move y1"})
    high = ONE.model_copy(update={"severity": "critical", "suggested_fix": "move the edge"})
    (found,) = merge_reviewer_issues([("layout_geometry", [low]), ("semantic_financial", [high])])
    assert (found.issue.severity, found.issue.suggested_fix) == ("critical", "move y1; move the edge")
    assert found.reported_by == ("layout_geometry", "semantic_financial")


def test_one_reviewers_like_words_are_as_many_faults() -> None:
    """Sums that are not met are told alike but for their names; none of them may be lost."""
    sums = ("closing_balance", "deposits", "withdrawals", "running_balance", "running_balance")
    issues = [
        issue("high", "reconciliation_strategy", f"the transactions do not make the printed sum: {one}", page=1)
        for one in sums
    ]
    found = merge_reviewer_issues([("semantic_financial", issues)])
    assert [one.issue.message.rpartition(" ")[2] for one in found] == list(dict.fromkeys(sums))
    both = merge_reviewer_issues([("layout_geometry", issues[:1]), ("semantic_financial", issues)])
    assert [len(one.reported_by) for one in both] == [2, 1, 1, 1]


@pytest.mark.parametrize(
    ("category", "cap"),
    [("bbox_accuracy", 5), ("column_mapping", 3), ("sign_logic", 2), ("date_format", 3), ("multiline_handling", 3),
     ("reconciliation_strategy", 2), ("provenance", 5), ("other", 5)],
)  # fmt: skip
def test_caps_keep_the_worst(category: TemplateIssueCategory, cap: int) -> None:
    issues = [issue("low", category, issue_id=f"low_{n}") for n in range(cap)] + [
        issue("critical", category, issue_id="bad")
    ]
    kept = keep_worst_issues_per_category(issues)
    assert len(kept) == cap
    assert kept[-1].issue_id == "bad"


@pytest.mark.parametrize(
    ("fixed", "prior", "new", "total", "score", "status"),
    [
        (4, 4, 0, 0, 1.0, "converging"),
        (3, 4, 1, 5, 0.55, "converging"),
        (2, 4, 0, 2, 0.5, "slow"),
        (1, 4, 1, 4, 0.0, "slow"),
        (0, 4, 1, 5, -0.2, "stalled"),
        (1, 10, 2, 10, -0.1, "stalled"),
        (0, 4, 2, 6, -1 / 3, "diverging"),
        (0, 0, 3, 3, -1.0, "diverging"),
    ],
)
def test_convergence_bands(
    fixed: int, prior: int, new: int, total: int, score: float, status: ConvergenceStatus
) -> None:
    state = ConvergenceState(2, total, 0, 0, fixed, new, prior)
    assert state.convergence_score == pytest.approx(score)
    assert select_convergence_status(state) == status


def test_the_first_attempt_has_no_score() -> None:
    state = ConvergenceState(1, 8, 1, 2, 0, 8)
    assert (state.convergence_score, select_convergence_status(state)) == (0.0, "first")


def test_a_state_counts_what_was_fixed_and_what_is_new() -> None:
    before = [issue("critical", "sign_logic", "signs are inverted"), ONE]
    now = [ONE, issue("high", "date_format", "dates cannot be read"), issue("low", "other", "spelling")]
    state = measure_convergence(2, now, before)
    assert (state.issues_fixed_from_prior, state.new_issues_introduced, state.prior_total_issues) == (1, 2, 2)
    assert (state.total_issues, state.critical_issues, state.high_issues) == (3, 0, 2)


@pytest.mark.parametrize(
    ("scenario", "status", "retries"),
    [("both_fail", "converging", 3), ("arbitration", "slow", 2), ("stuck", "stalled", 2), ("both_fail", "stalled", 2)],
)
def test_retries_count_after_the_first_attempt(
    scenario: RetryScenario, status: ConvergenceStatus, retries: int
) -> None:
    assert find_escalation_reason(EscalationSituation(retries, scenario, status)) is None
    assert find_escalation_reason(EscalationSituation(retries + 1, scenario, status)) == "max_retries_exceeded"


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"status": "diverging"}, "diverging"),
        ({"unresolved_share": 0.51}, "arbitration_uncertain"),
        ({"unresolved_share": 0.5}, None),
        ({"has_failed_reviewer": True}, "reviewer_failed"),
        ({"has_critical_disagreement": True}, "critical_disagreement"),
        ({"is_review_enabled": False}, "review_disabled"),
    ],
)
def test_escalation_triggers(more: dict[str, Any], reason: EscalationReason | None) -> None:
    assert (
        find_escalation_reason(EscalationSituation(**{"attempt": 1, "scenario": "both_fail", "status": "slow", **more}))
        == reason
    )


def test_every_scenario_ends() -> None:
    statuses: tuple[ConvergenceStatus, ...] = ("first", "converging", "slow", "stalled", "diverging")
    for scenario, status in product(MAX_RETRIES_BY_SCENARIO, statuses):
        assert find_escalation_reason(EscalationSituation(5, scenario, status)) is not None


def arbitrated(layout: ReviewerReport, semantic: ReviewerReport, **more: Any) -> ArbitrationReport:
    return arbitrate_reports(layout, semantic, arbitration_id="arb_1", arbitrated_at="2024-01-15T10:35:00Z", **more)


@pytest.mark.parametrize(("category", "expert"), EXPERT_BY_CATEGORY.items())
@pytest.mark.parametrize("by", ["layout_geometry", "semantic_financial"])
def test_field_expert_decides_and_measurements_stand(category: TemplateIssueCategory, expert: str, by: str) -> None:
    found = issue("high", category, confidence=0.9)
    sides = (report("layout_geometry", found), report("semantic_financial"))
    if by == "semantic_financial":
        sides = (report("layout_geometry"), report("semantic_financial", found))
    (one,) = arbitrated(*sides).resolutions
    is_dismissed = expert not in (by, "neither")
    assert one.winning_reviewer == expert
    assert one.final_severity == ("dismissed" if is_dismissed else "high")
    assert arbitrated(*sides).final_decision == ("approve" if is_dismissed else "reject")
    measured = arbitrated(*sides, measured_issue_ids=frozenset((found.issue_id,)))
    assert (measured.final_decision, measured.resolutions[0].winning_reviewer) == ("reject", by)


def test_what_both_found_stands_as_the_worse_of_them_told_it() -> None:
    """Whoever repeats a fault in mild words leaves nothing to disagree about."""
    mild, bad = issue("low", "sign_logic"), issue("high", "sign_logic", issue_id="bad")
    for sides in ((mild, bad), (bad, mild)):
        made = arbitrated(report("layout_geometry", sides[0]), report("semantic_financial", sides[1]))
        assert (made.resolutions, made.final_decision) == ((), "reject")
    four = [issue("medium", "date_format", f"row {n}", issue_id=f"m{n}", page=n) for n in range(1, 5)]
    one = issue("medium", "date_format", "row 1 row 2 row 3 row 4")
    assert arbitrated(report("layout_geometry", one), report("semantic_financial", *four)).final_decision == "reject", (
        "one issue that resembles four does not make one of them"
    )


def test_a_guess_dismisses_nothing() -> None:
    """Two opinions outside of the reporter's field: of one the arbitrator is sure, of the other it is not."""
    sure, guess = issue("high", "sign_logic", issue_id="sure"), issue("high", "date_format", issue_id="guess")
    sides = (report("layout_geometry", sure, guess), report("semantic_financial"))
    for confidence, decision in ((0.51, "approve"), (0.5, "reject")):
        said = ArbitratorAnswer.model_validate(
            {
                "resolutions": [
                    {"issue_id": one, "winning_reviewer": "semantic_financial", "final_severity": "dismissed",
                     "confidence": how_sure}
                    for one, how_sure in (("sure", 0.9), ("guess", confidence))
                ],
                "final_decision": "approve",
            }
        )  # fmt: skip
        made = arbitrated(*sides, model_answer=said)
        assert made.final_decision == decision
        assert made.unresolved_share == (0.0 if decision == "approve" else 0.5)
        assert (
            arbitrated(*sides, model_answer=said.model_copy(update={"final_decision": "reject"})).final_decision
            == "reject"
        )


def test_certain_opinion_outside_its_field_stays_unresolved() -> None:
    """Nobody has settled it, and something else was: half is uncertain, and caution is no approval."""
    certain = issue("high", "sign_logic", issue_id="certain", confidence=1.0)
    likely = issue("high", "date_format", issue_id="likely", confidence=0.9)
    made = arbitrated(report("layout_geometry", certain, likely), report("semantic_financial"))
    assert (made.unresolved_issues, made.unresolved_share, made.final_decision) == (("certain",), 0.5, "reject")
    assert {one.issue_id: one.final_severity for one in made.resolutions} == {"certain": "high", "likely": "dismissed"}


def test_uncertainty_is_the_share_that_was_not_settled() -> None:
    unsure = issue("high", "bbox_accuracy", issue_id="unsure", confidence=0.4)
    sure = issue("high", "multiline_handling", "a line is lost", issue_id="sure")
    made = arbitrated(report("layout_geometry", unsure, sure), report("semantic_financial"))
    assert (made.unresolved_issues, made.unresolved_share, made.final_decision) == (("unsure",), 0.5, "reject")


def test_a_disagreement_on_a_critical_issue_is_known() -> None:
    bad = issue("critical", "sign_logic")
    assert has_critical_disagreement(
        find_issues_of_only_one_reviewer(report("layout_geometry"), report("semantic_financial", bad))
    )
    assert not has_critical_disagreement(
        find_issues_of_only_one_reviewer(report("layout_geometry", bad), report("semantic_financial", bad))
    )


_ISSUES = st.lists(
    st.builds(
        TemplateIssue,
        issue_id=st.text("abc1", min_size=1),
        severity=st.sampled_from(("low", "medium", "high", "critical")),
        category=st.sampled_from(tuple(SHOWN_ISSUE_CAPS)),
        message=st.text(max_size=20),
        page=st.none() | st.integers(1, 9),
        confidence=st.floats(0, 1),
    ),
    max_size=6,
)


@given(_ISSUES, _ISSUES)
def test_every_report_holds_its_schema(left: list[TemplateIssue], right: list[TemplateIssue]) -> None:
    layout, semantic = report("layout_geometry", *left), report("semantic_financial", *right)
    schemas = [json.loads((SCHEMAS / f"{name}_report.json").read_text()) for name in ("reviewer", "arbitration")]
    for one in (layout, semantic):
        jsonschema.validate(one.model_dump(mode="json"), schemas[0])
        assert ReviewerReport.model_validate(one.model_dump(mode="json")) == one
    jsonschema.validate(arbitrated(layout, semantic).model_dump(mode="json"), schemas[1])
