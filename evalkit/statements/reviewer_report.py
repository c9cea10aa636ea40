"""Report of a template reviewer: pass criteria, consensus and disagreements.

Specification 004, "Pass Criteria", "Consensus Rules", "Issue Deduplication", "Issue Category Caps"; ruling 18 of the
contract: the caps limit which issues are shown; hidden issues count too.

Arbitration: "Layout issues defer to Reviewer 1, financial logic issues to Reviewer 2; if uncertainty remains, err on the
side of caution." Issues that the program measured are never dismissed; only a model's opinion can be. A model that
arbitrates may keep issues that the rules dismiss, raise the severity of issues that the rules keep, and decide alone
about categories that belong to neither reviewer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any, Literal, NamedTuple

from pydantic import Field
from rapidfuzz import fuzz

from evalkit.core.grouping import group_by
from evalkit.core.records import DiscreetModel, LazyStrictRecord

TemplateIssueCategory = Literal[
    "bbox_accuracy", "column_mapping", "sign_logic", "date_format", "multiline_handling", "reconciliation_strategy", "provenance", "other",
]  # fmt: skip
TemplateIssueSeverity = Literal["low", "medium", "high", "critical"]
ReviewerRole = Literal["layout_geometry", "semantic_financial", "arbitrator"]


class SeverityRank(IntEnum):
    """Severities of template issues in ascending order."""

    low = 0
    medium = 1
    high = 2
    critical = 3


class IssueEvidence(LazyStrictRecord):
    """The evidence for an issue: expected and actual value, and part of the template."""

    expected: str = ""
    actual: str = ""
    location: str = ""
    """The part of the template, such as ``column debit`` or ``region first``."""


class TemplateIssue(LazyStrictRecord):
    """One fault that a reviewer finds in a template."""

    issue_id: str
    severity: TemplateIssueSeverity
    category: TemplateIssueCategory
    message: str
    page: int | None = Field(None, exclude_if=lambda page: page is None)
    """Page of the statement, from 1; left out of files and prompts if unknown."""
    evidence: IssueEvidence = IssueEvidence()
    suggested_fix: str = ""
    confidence: float = Field(1.0, ge=0, le=1)


class ReviewerReport(LazyStrictRecord, populate_by_name=True, serialize_by_alias=True):
    """One reviewer's report about a template: verdict and issues."""

    reviewer_id: str
    reviewer_role: ReviewerRole
    reviewer_model: str = ""
    template_id: str
    template_version: str = ""
    is_passed: bool = Field(alias="pass")
    issues: tuple[TemplateIssue, ...] = ()
    """All issues, also those that the caps hide on the screen."""
    summary: dict[str, Any] = {}
    """Keys ``strengths`` and ``weaknesses`` (lists of sentences) and ``overall_quality_score`` (0..1)."""
    review_duration_ms: int | None = Field(None, ge=0, exclude_if=lambda duration: duration is None)
    """Always None in evalkit's files: ``times`` of the cycle has the times, so that repeated runs differ nowhere
    else."""
    tokens_used: dict[str, int] = {}
    reviewed_at: str
    """Time of the report, ISO 8601, UTC."""


#: Most issues of each severity with which a template is accepted.
MAX_ISSUES_BY_SEVERITY: dict[TemplateIssueSeverity, int] = {"critical": 0, "high": 0, "medium": 3, "low": 10}
#: Most issues of each category that are shown; the worst are shown.
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
#: Messages with a greater similarity (0..1) count as equal.
_MIN_MESSAGE_SIMILARITY = 0.7

Consensus = Literal["approved", "arbitration", "rejected"]


class ConsensusRule(NamedTuple):
    """A row of the consensus table: the outcome of two reviewers' verdicts."""

    outcome: Consensus
    reason: str


#: The outcome by the number of reviewers that pass the template.
_CONSENSUS_BY_PASSES = (
    ConsensusRule("rejected", "both reviewers reject the template"),
    ConsensusRule("arbitration", "the reviewers disagree"),
    ConsensusRule("approved", "both reviewers pass the template"),
)


def is_template_passing(
    issues: Sequence[TemplateIssue],
    max_issues_by_severity: Mapping[TemplateIssueSeverity, int] = MAX_ISSUES_BY_SEVERITY,
) -> bool:
    """Return True if no severity has more issues than allowed.

    Pass all issues, also those that the caps hide.
    """
    counts = Counter(issue.severity for issue in issues)
    return all(counts[severity] <= max_count for severity, max_count in max_issues_by_severity.items())


def find_consensus_rule(layout_passed: bool, semantic_passed: bool) -> ConsensusRule:
    """Return the row of the consensus table for two verdicts."""
    return _CONSENSUS_BY_PASSES[layout_passed + semantic_passed]


def is_duplicate_issue(issue: TemplateIssue, other_issue: TemplateIssue) -> bool:
    """Return True if both issues report the same fault.

    Same fault: the same category and a similar message; the pages, and the locations, must be equal if both issues have
    one.
    """
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
    """Return each category's worst issues, up to its maximum, in input order."""
    worst_first = sorted(issues, key=lambda issue: -SeverityRank[issue.severity])
    issues_by_category = group_by(worst_first, lambda issue: issue.category)
    shown_ids = {
        id(issue)
        for category, category_issues in issues_by_category.items()
        for issue in category_issues[: max_issues_by_category[category]]
    }
    return [issue for issue in issues if id(issue) in shown_ids]


WinningReviewer = Literal["layout_geometry", "semantic_financial", "neither"]
FinalSeverity = Literal["low", "medium", "high", "critical", "dismissed"]

#: The reviewer whose opinion counts for each category; issues of a category of neither keep their severity.
EXPERT_BY_CATEGORY: dict[TemplateIssueCategory, WinningReviewer] = {
    "bbox_accuracy": "layout_geometry",
    "multiline_handling": "layout_geometry",
    "provenance": "layout_geometry",
    "column_mapping": "semantic_financial",
    "sign_logic": "semantic_financial",
    "date_format": "semantic_financial",
    "reconciliation_strategy": "semantic_financial",
    "other": "neither",
}
#: Resolutions with at most this confidence count as unresolved.
_MAX_UNCERTAIN_CONFIDENCE = 0.5
_SEVERITY_ORDER: tuple[FinalSeverity, ...] = ("dismissed", "low", "medium", "high", "critical")
#: Longer sentences of a model are cut to this many characters.
_MAX_SENTENCE_LENGTH = 500


class Resolution(LazyStrictRecord):
    """The decision about one issue that only one reviewer reported."""

    issue_id: str
    winning_reviewer: WinningReviewer
    final_severity: FinalSeverity
    confidence: float = Field(1.0, ge=0, le=1)
    reasoning: str = ""


class ArbitrationReport(LazyStrictRecord):
    """The decision to approve or reject a template on which the reviewers disagree."""

    arbitration_id: str
    template_id: str
    input_reports: dict[str, str]
    """The ids of the two reports, by the keys ``layout_reviewer_id`` and ``semantic_reviewer_id``."""
    final_decision: Literal["approve", "reject"]
    resolutions: tuple[Resolution, ...]
    unresolved_issues: tuple[str, ...] = ()
    recommendation: str = ""
    arbitrated_at: str
    """Time of the decision, ISO 8601, UTC."""

    @property
    def unresolved_share(self) -> float:
        """Share (0..1) of the disagreements that stayed unresolved."""
        return len(self.unresolved_issues) / max(1, len(self.resolutions))


class ModelResolution(DiscreetModel, frozen=True):
    """An arbitrating model's opinion on one disagreement."""

    issue_id: str
    reasoning: str = ""
    winning_reviewer: WinningReviewer
    final_severity: FinalSeverity
    confidence: float = Field(ge=0, le=1)


class ArbitratorAnswer(DiscreetModel, frozen=True):
    """An arbitrating model's answer; the reasoning comes first."""

    reasoning: str = ""
    resolutions: tuple[ModelResolution, ...] = Field(max_length=200)
    final_decision: Literal["approve", "reject"]
    recommendation: str = ""


def find_issues_of_only_one_reviewer(
    layout_report: ReviewerReport, semantic_report: ReviewerReport
) -> list[tuple[TemplateIssue, WinningReviewer]]:
    """List the issues that only one reviewer reported, each with this reviewer."""
    sides: tuple[tuple[ReviewerReport, ReviewerReport, WinningReviewer], ...] = (
        (layout_report, semantic_report, "layout_geometry"),
        (semantic_report, layout_report, "semantic_financial"),
    )
    return [
        (issue, reviewer)
        for own_report, other_report, reviewer in sides
        for issue in own_report.issues
        if not any(is_duplicate_issue(issue, other_issue) for other_issue in other_report.issues)
    ]


def has_critical_disagreement(disputed_issues: Sequence[tuple[TemplateIssue, WinningReviewer]]) -> bool:
    """Return True if an issue that only one reviewer reported is critical."""
    return any(issue.severity == "critical" for issue, _ in disputed_issues)


def arbitrate_reports(
    layout_report: ReviewerReport,
    semantic_report: ReviewerReport,
    *,
    arbitration_id: str,
    arbitrated_at: str,
    measured_issue_ids: frozenset[str] = frozenset(),
    max_issues_by_severity: Mapping[TemplateIssueSeverity, int] = MAX_ISSUES_BY_SEVERITY,
    model_answer: ArbitratorAnswer | None = None,
) -> ArbitrationReport:
    """Decide the issues that one reviewer reported, then approve or reject.

    ``measured_issue_ids``: ids of the issues that the program measured; they are never dismissed. ``model_answer``: the
    arbitrating model's answer; None decides by the rules alone.
    """
    disputed_issues = find_issues_of_only_one_reviewer(layout_report, semantic_report)
    resolutions = tuple(
        _resolve_disputed_issue(issue, reviewer, issue.issue_id in measured_issue_ids, model_answer)
        for issue, reviewer in disputed_issues
    )
    unresolved_ids = tuple(
        candidate.issue_id for candidate in resolutions if candidate.confidence <= _MAX_UNCERTAIN_CONFIDENCE
    )
    upheld_issues = [
        issue.model_copy(update={"severity": candidate.final_severity})
        for (issue, _), candidate in zip(disputed_issues, resolutions, strict=True)
        if candidate.final_severity != "dismissed"
    ]
    is_rejected_by_model = model_answer is not None and model_answer.final_decision == "reject"
    disputed_object_ids = {id(issue) for issue, _ in disputed_issues}
    # If both report an issue with different severities, the pass criteria are checked with either severity.
    agreed_issues_by_report = (
        [candidate for candidate in report.issues if id(candidate) not in disputed_object_ids]
        for report in (layout_report, semantic_report)
    )
    is_passed = (
        all(
            is_template_passing([*agreed_issues, *upheld_issues], max_issues_by_severity)
            for agreed_issues in agreed_issues_by_report
        )
        and not is_rejected_by_model
    )
    model_recommendation = model_answer.recommendation[:_MAX_SENTENCE_LENGTH] if model_answer else ""
    return ArbitrationReport(
        arbitration_id=arbitration_id,
        template_id=layout_report.template_id,
        input_reports={
            "layout_reviewer_id": layout_report.reviewer_id,
            "semantic_reviewer_id": semantic_report.reviewer_id,
        },
        final_decision="approve" if is_passed else "reject",
        resolutions=resolutions,
        unresolved_issues=unresolved_ids,
        recommendation=""
        if is_passed
        else model_recommendation or "Build another template that avoids the open issues",
        arbitrated_at=arbitrated_at,
    )


def _resolve_disputed_issue(
    issue: TemplateIssue, reporting_reviewer: WinningReviewer, is_measured: bool, model_answer: ArbitratorAnswer | None
) -> Resolution:
    resolution_by_rules = _resolve_by_rules(issue, reporting_reviewer, is_measured=is_measured)
    if is_measured:
        return resolution_by_rules
    if model_answer is None:
        if (
            resolution_by_rules.final_severity == "dismissed"
            and resolution_by_rules.confidence <= _MAX_UNCERTAIN_CONFIDENCE
        ):
            cautious_fields = {
                "winning_reviewer": reporting_reviewer,
                "final_severity": issue.severity,
                "reasoning": "the reviewer responsible for this category did not report the issue, but the other is sure: the issue is kept",
            }
            return resolution_by_rules.model_copy(update=cautious_fields)
        return resolution_by_rules
    model_resolutions = [
        model_resolution for model_resolution in model_answer.resolutions if model_resolution.issue_id == issue.issue_id
    ]
    if len(model_resolutions) != 1 or model_resolutions[0].confidence <= _MAX_UNCERTAIN_CONFIDENCE:
        # The model gave no answer about the issue, several, or an unsure one: the issue is kept, whatever the rules
        # say.
        return Resolution(
            issue_id=issue.issue_id,
            winning_reviewer=reporting_reviewer,
            final_severity=issue.severity,
            confidence=model_resolutions[0].confidence if len(model_resolutions) == 1 else 0.0,
            reasoning="the arbitrator gave no clear answer: the issue is kept",
        )
    (model_resolution,) = model_resolutions
    has_no_expert = EXPERT_BY_CATEGORY[issue.category] == "neither"
    final_severity = (
        model_resolution.final_severity
        if has_no_expert
        else max(resolution_by_rules.final_severity, model_resolution.final_severity, key=_SEVERITY_ORDER.index)
    )
    is_upheld = final_severity != "dismissed"
    return Resolution(
        issue_id=issue.issue_id,
        winning_reviewer=model_resolution.winning_reviewer
        if has_no_expert
        else reporting_reviewer
        if is_upheld
        else resolution_by_rules.winning_reviewer,
        final_severity=final_severity,
        confidence=model_resolution.confidence,
        reasoning=model_resolution.reasoning[:_MAX_SENTENCE_LENGTH] or resolution_by_rules.reasoning,
    )


def _resolve_by_rules(issue: TemplateIssue, reporting_reviewer: WinningReviewer, *, is_measured: bool) -> Resolution:
    expert = EXPERT_BY_CATEGORY[issue.category]
    decision: tuple[WinningReviewer, FinalSeverity, float, str]
    if is_measured:
        decision = reporting_reviewer, issue.severity, 1.0, "the program measured the issue"
    elif expert == reporting_reviewer:
        decision = (
            reporting_reviewer,
            issue.severity,
            issue.confidence,
            "the reviewer responsible for this category reported the issue",
        )
    elif expert == "neither":
        decision = expert, issue.severity, 0.5, "no reviewer is responsible for this category: the issue is kept"
    else:
        decision = (
            expert,
            "dismissed",
            1 - issue.confidence / 2,
            "the reviewer responsible for this category did not report the issue",
        )
    winner, severity, confidence, reasoning = decision
    return Resolution(
        issue_id=issue.issue_id,
        winning_reviewer=winner,
        final_severity=severity,
        confidence=confidence,
        reasoning=reasoning,
    )
