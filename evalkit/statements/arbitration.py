"""Who is right where the reviewers disagree: the embedded arbitrator, and the report in specification 004's schema.

"Layout issues defer to Reviewer 1, financial logic issues to Reviewer 2; if uncertainty remains, err on the side of
caution." What was measured is never dismissed: only opinions can be outvoted. A model that arbitrates is bound by the
same rules: it may keep what they dismiss, make worse what they keep, and decide what is nobody's field.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from evalkit.statements.consensus import MOST, are_duplicates, passes
from evalkit.statements.report import Category, ReviewerReport, Severity, TemplateIssue

Winner = Literal["layout_geometry", "semantic_financial", "neither"]
FinalSeverity = Literal["low", "medium", "high", "critical", "dismissed"]

#: Whose field a category is; neither's stays as it was reported.
EXPERTS: dict[Category, Winner] = {
    "bbox_accuracy": "layout_geometry",
    "multiline_handling": "layout_geometry",
    "provenance": "layout_geometry",
    "column_mapping": "semantic_financial",
    "sign_logic": "semantic_financial",
    "date_format": "semantic_financial",
    "reconciliation_strategy": "semantic_financial",
    "other": "neither",
}
#: Issues of opinion whose reporter is less sure than this are uncertain.
_SURE = 0.5
_ORDER: tuple[FinalSeverity, ...] = ("dismissed", "low", "medium", "high", "critical")
#: Characters of a model's sentence that are kept.
_LONGEST = 500


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Resolution(_Data):
    """One disagreement, settled."""

    issue_id: str
    winning_reviewer: Winner
    final_severity: FinalSeverity
    confidence: float = Field(1.0, ge=0, le=1)
    reasoning: str = ""


class ArbitrationReport(_Data):
    """All disagreements of two reports."""

    arbitration_id: str
    template_id: str
    input_reports: dict[str, str]
    """``layout_reviewer_id``, ``semantic_reviewer_id``."""
    final_decision: Literal["approve", "reject"]
    resolutions: tuple[Resolution, ...]
    unresolved_issues: tuple[str, ...] = ()
    recommendation: str = ""
    arbitrated_at: str
    """ISO 8601, UTC."""

    @property
    def uncertainty(self) -> float:
        """The share of the disagreements that was not settled, 0..1."""
        return len(self.unresolved_issues) / max(1, len(self.resolutions))

    def to_json(self) -> dict[str, Any]:
        """As the schema has it."""
        return self.model_dump(mode="json")


class SaidResolution(BaseModel):
    """What a model that arbitrates says of one disagreement."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    issue_id: str
    reasoning: str = ""
    winning_reviewer: Winner
    final_severity: FinalSeverity
    confidence: float = Field(ge=0, le=1)


class ArbitratorAnswer(BaseModel):
    """What a model that arbitrates says; the reasoning comes first."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    reasoning: str = ""
    resolutions: tuple[SaidResolution, ...] = Field(max_length=200)
    final_decision: Literal["approve", "reject"]
    recommendation: str = ""


def disagreements(layout: ReviewerReport, semantic: ReviewerReport) -> list[tuple[TemplateIssue, Winner]]:
    """The issues that only one of the two found, with who did."""
    found: list[tuple[TemplateIssue, Winner]] = []
    sides: tuple[tuple[ReviewerReport, ReviewerReport, Winner], ...] = (
        (layout, semantic, "layout_geometry"),
        (semantic, layout, "semantic_financial"),
    )
    for own, others, name in sides:
        found += [(one, name) for one in own.issues if not any(are_duplicates(one, other) for other in others.issues)]
    return found


def has_critical(found: Sequence[tuple[TemplateIssue, Winner]]) -> bool:
    """Whether the reviewers disagree about something critical: a person decides that."""
    return any(issue.severity == "critical" for issue, _ in found)


def arbitrate(
    layout: ReviewerReport,
    semantic: ReviewerReport,
    *,
    arbitration_id: str,
    at: str,
    measured: frozenset[str] = frozenset(),
    most: Mapping[Severity, int] = MOST,
    said: ArbitratorAnswer | None = None,
) -> ArbitrationReport:
    """The report on all disagreements.

    ``measured``: ids of issues that were computed, and are not opinions. ``said``: the opinion of a model, where one was
    asked.
    """
    found = disagreements(layout, semantic)
    resolutions = tuple(_resolved(issue, by, issue.issue_id in measured, said) for issue, by in found)
    unresolved = tuple(one.issue_id for one in resolutions if one.confidence <= _SURE)
    standing = [
        issue.model_copy(update={"severity": one.final_severity})
        for (issue, _), one in zip(found, resolutions, strict=True)
        if one.final_severity != "dismissed"
    ]
    is_rejected = said is not None and said.final_decision == "reject"
    apart = {id(issue) for issue, _ in found}
    # What both found stands as each of them has told it: the milder words settle nothing.
    both = ([one for one in report.issues if id(one) not in apart] for report in (layout, semantic))
    is_passed = all(passes([*agreed, *standing], most) for agreed in both) and not is_rejected
    told = said.recommendation[:_LONGEST] if said else ""
    return ArbitrationReport(
        arbitration_id=arbitration_id,
        template_id=layout.template_id,
        input_reports={"layout_reviewer_id": layout.reviewer_id, "semantic_reviewer_id": semantic.reviewer_id},
        final_decision="approve" if is_passed else "reject",
        resolutions=resolutions,
        unresolved_issues=unresolved,
        recommendation="" if is_passed else told or "Build the template again with the issues that stand",
        arbitrated_at=at,
    )


def _resolved(issue: TemplateIssue, by: Winner, is_measured: bool, said: ArbitratorAnswer | None) -> Resolution:
    ruled = _ruled(issue, by, is_measured=is_measured)
    if is_measured:
        return ruled
    if said is None:
        if ruled.final_severity == "dismissed" and ruled.confidence <= _SURE:
            why = "the reviewer of this field did not find it, and nobody has settled it: caution keeps it"
            kept = {"winning_reviewer": by, "final_severity": issue.severity, "reasoning": why}
            return ruled.model_copy(update=kept)
        return ruled
    told = [one for one in said.resolutions if one.issue_id == issue.issue_id]
    if len(told) != 1 or told[0].confidence <= _SURE:
        # Nothing, too much or a guess was said of it: caution keeps it, whatever the rule.
        return Resolution(
            issue_id=issue.issue_id,
            winning_reviewer=by,
            final_severity=issue.severity,
            confidence=told[0].confidence if len(told) == 1 else 0.0,
            reasoning="the arbitrator could not tell: caution keeps it",
        )
    (one,) = told
    is_open = EXPERTS[issue.category] == "neither"
    final = one.final_severity if is_open else max(ruled.final_severity, one.final_severity, key=_ORDER.index)
    is_kept = final != "dismissed"
    return Resolution(
        issue_id=issue.issue_id,
        winning_reviewer=one.winning_reviewer if is_open else by if is_kept else ruled.winning_reviewer,
        final_severity=final,
        confidence=one.confidence,
        reasoning=one.reasoning[:_LONGEST] or ruled.reasoning,
    )


def _ruled(issue: TemplateIssue, by: Winner, *, is_measured: bool) -> Resolution:
    """What the rules alone say."""
    expert = EXPERTS[issue.category]
    if is_measured:
        winner, severity, sure, why = by, issue.severity, 1.0, "it was measured"
    elif expert == by:
        winner, severity, sure, why = by, issue.severity, issue.confidence, "the reviewer of this field found it"
    elif expert == "neither":
        winner, severity, sure, why = expert, issue.severity, 0.5, "it is neither's field: caution keeps it"
    else:
        return Resolution(
            issue_id=issue.issue_id,
            winning_reviewer=expert,
            final_severity="dismissed",
            confidence=1 - issue.confidence / 2,
            reasoning="the reviewer of this field did not find it",
        )
    return Resolution(
        issue_id=issue.issue_id, winning_reviewer=winner, final_severity=severity, confidence=sure, reasoning=why
    )
