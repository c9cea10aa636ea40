"""Questions about a template to models that review, arbitrate or build it.

Specification 004, "Review Protocol". A model's issues are added to the issues that the program measured; a model cannot
remove a measured issue. The built-in model adds none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import Field

from evalkit.core.records import DiscreetModel
from evalkit.llm.model import AnswerT, Question
from evalkit.llm.prompts import fence_json, fill_prompt_template
from evalkit.statements.applied_template import AppliedTemplate
from evalkit.statements.reviewer_report import (
    MAX_ISSUES_BY_SEVERITY,
    ArbitrationReport,
    ArbitratorAnswer,
    IssueEvidence,
    ReviewerReport,
    SeverityRank,
    TemplateIssue,
    TemplateIssueCategory,
    TemplateIssueSeverity,
    WinningReviewer,
    is_duplicate_issue,
    is_template_passing,
)
from evalkit.statements.rule_based_review import TemplateReviewer
from evalkit.statements.statement_template import render_template_toml

if TYPE_CHECKING:
    from evalkit.documents.page_pictures import PageImage

#: Most first and last transactions, checks of sums, and unread lines in a prompt.
_MAX_FIRST_ROWS, _MAX_LAST_ROWS, _MAX_CHECKS, _MAX_LEFTOVERS = 100, 50, 60, 40
#: Longer sentences of a model are cut to this many characters; answers with more issues are invalid.
_MAX_SENTENCE_LENGTH, _MAX_MODEL_ISSUES = 500, 60
#: The fields of a transaction that a prompt shows.
_SHOWN_FIELDS = {"date", "description", "amount", "balance", "check_number", "page", "account"}
_PROMPT_BY_REVIEWER: Mapping[TemplateReviewer, str] = {
    "layout_geometry": "Layout_Geometry_Reviewer",
    "semantic_financial": "Semantic_Financial_Reviewer",
}


class ModelReportedIssue(DiscreetModel, frozen=True):
    """An issue in a model's words."""

    message: str
    category: TemplateIssueCategory
    severity: TemplateIssueSeverity
    page: int | None = None
    expected: str = ""
    actual: str = ""
    location: str = ""
    suggested_fix: str = ""
    confidence: float = Field(1.0, ge=0, le=1)


class ReviewerAnswer(DiscreetModel, frozen=True):
    """A model's opinion on a template; the pass criteria decide if it passes."""

    reasoning: str = ""
    issues: tuple[ModelReportedIssue, ...] = Field(max_length=_MAX_MODEL_ISSUES)
    strengths: tuple[str, ...] = Field((), max_length=_MAX_MODEL_ISSUES)
    weaknesses: tuple[str, ...] = Field((), max_length=_MAX_MODEL_ISSUES)
    overall_quality_score: float = Field(1.0, ge=0, le=1)


class BuilderAnswer(DiscreetModel, frozen=True):
    """The template that a model proposes."""

    reasoning: str = ""
    template: str | None
    """The template as TOML; None if the model has no better template."""


@dataclass(frozen=True)
class TemplateQuestionContext:
    """The statement and the template that all questions of an attempt are about."""

    document_sha256: str
    applied_template: AppliedTemplate
    page_images: tuple[PageImage, ...] = ()
    prior_issues: tuple[TemplateIssue, ...] = ()
    """The issues of the previous attempt that are shown to the reviewers."""

    @property
    def shown_pages_text(self) -> str:
        """The pages with an image, as text for a prompt: "page 1, page 3", or "none"."""
        return ", ".join(f"page {page_image.page_number}" for page_image in self.page_images) or "none"

    @property
    def pages_without_image(self) -> tuple[int, ...]:
        """The numbers of the pages of which no image is sent."""
        shown_pages = {page_image.page_number for page_image in self.page_images}
        return tuple(sorted(set(range(1, len(self.applied_template.lines_by_page) + 1)) - shown_pages))

    def build_extraction_sample(self) -> dict[str, Any]:
        """Build the part of a prompt that shows what the template reads, as JSON values."""
        statement, reconciliation = self.applied_template.statement, self.applied_template.reconciliation
        transactions = statement.transactions
        if len(transactions) > _MAX_FIRST_ROWS + _MAX_LAST_ROWS:
            transactions = (*transactions[:_MAX_FIRST_ROWS], *transactions[-_MAX_LAST_ROWS:])
        return {
            "transactions_read": len(statement.transactions),
            "transactions": [
                transaction.model_dump(mode="json", include=_SHOWN_FIELDS, exclude_defaults=True)
                for transaction in transactions
            ],
            "reconciliation": {
                "is_met": reconciliation.has_only_met_checks,
                "checks": [check.model_dump(mode="json") for check in reconciliation.checks[:_MAX_CHECKS]],
            },
            "left_over": [leftover.model_dump(mode="json") for leftover in statement.left_over[:_MAX_LEFTOVERS]],
            "rows_outside_of_all_regions": [
                leftover.model_dump(mode="json") for leftover in statement.outside[:_MAX_LEFTOVERS]
            ],
        }

    def render_inputs(self, **extra_inputs: Any) -> str:
        """Render the template and ``extra_inputs`` as JSON between unforgeable marks.

        The marks tell the model where data from the statement begins and ends.
        """
        template = self.applied_template.template
        return fence_json(
            {"template_id": template.template_id, "template_content": render_template_toml(template), **extra_inputs},
            "review-inputs",
            self.document_sha256,
        )


@dataclass(frozen=True)
class _TemplateQuestion(Question[AnswerT]):
    context: TemplateQuestionContext
    temperature: float = field(default=0.0, kw_only=True)
    time_limit_seconds: float | None = field(default=None, kw_only=True)
    images: tuple[bytes, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        object.__setattr__(self, "images", tuple(page_image.png for page_image in self.context.page_images))

    @property
    def document_sha256(self) -> str:
        """SHA-256 of the statement's PDF."""
        return self.context.document_sha256


@dataclass(frozen=True)
class ReviewerQuestion(_TemplateQuestion[ReviewerAnswer]):
    """Question to one reviewing model: the faults of a template.

    Reviewers do not see each other's answers.
    """

    role: TemplateReviewer = field(kw_only=True)
    answer_type: type[ReviewerAnswer] = ReviewerAnswer

    def render_prompt(self) -> str:
        """Render the prompt: inputs first, instructions last."""
        return fill_prompt_template(
            _PROMPT_BY_REVIEWER[self.role],
            inputs=self.context.render_inputs(
                statement_renders=[{"page": input_part.page_number} for input_part in self.context.page_images],
                sample_extraction=self.context.build_extraction_sample(),
                prior_issues=[input_part.model_dump(mode="json") for input_part in self.context.prior_issues],
            ),
            pictures=self.context.shown_pages_text,
        )

    def offline(self) -> ReviewerAnswer:
        """Return no issues besides the measured issues, as the built-in model's answer."""
        return ReviewerAnswer(issues=())


@dataclass(frozen=True)
class ArbitratorQuestion(_TemplateQuestion[ArbitratorAnswer]):
    """Question to the arbitrating model: a decision on each disputed issue."""

    layout_report: ReviewerReport = field(kw_only=True)
    semantic_report: ReviewerReport = field(kw_only=True)
    disputed_issues: tuple[tuple[TemplateIssue, WinningReviewer], ...] = field(kw_only=True)
    """The issues that only one reviewer reported, each with this reviewer."""
    report_by_rules: ArbitrationReport = field(kw_only=True)
    """The arbitration by rules, without a model."""
    measured_issue_ids: frozenset[str] = field(kw_only=True)
    """Ids of the issues that the program measured."""
    role: str = "arbitrator"
    answer_type: type[ArbitratorAnswer] = ArbitratorAnswer

    def render_prompt(self) -> str:
        """Render the prompt: inputs first, instructions last.

        Times are left out, so that a repeated question has the same prompt and its stored answer is found.
        """
        return fill_prompt_template(
            "Template_Arbitrator",
            inputs=self.context.render_inputs(
                reviewer_1_report=_dump_report_without_times_and_tokens(self.layout_report),
                reviewer_2_report=_dump_report_without_times_and_tokens(self.semantic_report),
                disagreement_points=[
                    self._describe_disagreement(issue, reviewer) for issue, reviewer in self.disputed_issues
                ],
            ),
            pictures=self.context.shown_pages_text,
        )

    def _describe_disagreement(self, issue: TemplateIssue, reporting_reviewer: WinningReviewer) -> dict[str, Any]:
        is_layout_reviewer = reporting_reviewer == "layout_geometry"
        return {
            "issue_id": issue.issue_id,
            "is_measured": issue.issue_id in self.measured_issue_ids,
            "r1_assessment": "fail" if is_layout_reviewer else "pass",
            "r2_assessment": "pass" if is_layout_reviewer else "fail",
            "r1_reasoning": issue.message if is_layout_reviewer else "it was not reported",
            "r2_reasoning": "it was not reported" if is_layout_reviewer else issue.message,
        }

    def offline(self) -> ArbitratorAnswer:
        """Return the decisions of the rules, as the built-in model's answer."""
        resolutions = [resolution.model_dump() for resolution in self.report_by_rules.resolutions]
        return ArbitratorAnswer.model_validate(
            {"resolutions": resolutions, "final_decision": self.report_by_rules.final_decision}
        )


@dataclass(frozen=True)
class BuilderQuestion(_TemplateQuestion[BuilderAnswer]):
    """Question to the building model: propose a better template than the program's."""

    retry: Mapping[str, Any] | None = field(kw_only=True)
    """The rejected template and its issues (specification 004, "Retry Input"); None for the first template."""
    role: str = "builder"
    answer_type: type[BuilderAnswer] = BuilderAnswer

    def render_prompt(self) -> str:
        """Render the prompt: inputs first, instructions last."""
        inputs = {
            "measured_template": render_template_toml(self.context.applied_template.template),
            "sample_extraction": self.context.build_extraction_sample(),
            "retry": self.retry,
        }
        return fill_prompt_template(
            "Template_Builder",
            inputs=fence_json(inputs, "builder-inputs", self.context.document_sha256),
            pictures=self.context.shown_pages_text,
        )

    def offline(self) -> BuilderAnswer:
        """Return no better template, as the built-in model's answer."""
        return BuilderAnswer(template=None)


def merge_model_answer_into_report(
    report: ReviewerReport,
    answer: ReviewerAnswer,
    *,
    model_name: str,
    total_pages: int,
    unseen_pages: Sequence[int] = (),
    max_issues_by_severity: Mapping[TemplateIssueSeverity, int] = MAX_ISSUES_BY_SEVERITY,
) -> ReviewerReport:
    """Add a model's issues to the report of measured issues; update the verdict.

    ``total_pages``: number of pages of the statement; the page of an issue is dropped if it is
    not one of them. ``unseen_pages``: pages of which the model saw no image; they raise one issue of low severity.
    """
    issues = list(report.issues)
    for issue in (
        *(_convert_model_issue(model_issue, total_pages) for model_issue in answer.issues),
        *(
            TemplateIssue(
                issue_id="said",
                severity="low",
                category="other",
                message=f"{len(unseen_pages)} pages from page {first_page} on were not shown to the model",
            )
            for first_page in unseen_pages[:1]
        ),
    ):
        # An issue that repeats a known issue in other words is left out, unless it is more severe.
        if not any(
            is_duplicate_issue(issue, known_issue)
            and SeverityRank[issue.severity] <= SeverityRank[known_issue.severity]
            for known_issue in issues
        ):
            number = len(issues) - len(report.issues) + 1
            issues.append(issue.model_copy(update={"issue_id": f"{report.reviewer_role}_said_{number:03}"}))
    quality_score = min(report.summary["overall_quality_score"], answer.overall_quality_score)
    return report.model_copy(
        update={
            "reviewer_model": f"{report.reviewer_model}, {model_name}",
            "is_passed": is_template_passing(issues, max_issues_by_severity),
            "issues": tuple(issues),
            "summary": {
                "strengths": [*report.summary["strengths"], *map(_truncate_sentence, answer.strengths)],
                "weaknesses": [*report.summary["weaknesses"], *map(_truncate_sentence, answer.weaknesses)],
                "overall_quality_score": quality_score,
            },
        }
    )


def collect_measured_issue_ids(*reports: ReviewerReport) -> frozenset[str]:
    """Return the ids of the issues that the program measured, not a model."""
    return frozenset(
        issue.issue_id
        for report in reports
        for issue in report.issues
        if not issue.issue_id.startswith(f"{report.reviewer_role}_said_")
    )


def _convert_model_issue(model_issue: ModelReportedIssue, total_pages: int) -> TemplateIssue:
    return TemplateIssue(
        issue_id="said",
        severity=model_issue.severity,
        category=model_issue.category,
        message=_truncate_sentence(model_issue.message) or "the model named no reason",
        page=model_issue.page if model_issue.page is not None and 1 <= model_issue.page <= total_pages else None,
        evidence=IssueEvidence(
            expected=_truncate_sentence(model_issue.expected),
            actual=_truncate_sentence(model_issue.actual),
            location=_truncate_sentence(model_issue.location),
        ),
        suggested_fix=_truncate_sentence(model_issue.suggested_fix),
        confidence=model_issue.confidence,
    )


def _truncate_sentence(text: str) -> str:
    return text.strip()[:_MAX_SENTENCE_LENGTH]


def _dump_report_without_times_and_tokens(report: ReviewerReport) -> dict[str, Any]:
    return report.model_dump(mode="json", exclude={"reviewed_at", "tokens_used"})
