"""What language models are asked about a template: two reviewers, an arbitrator, a builder.

Specification 004, "Review Protocol". A model's issues come on top of what is measured and take none of it back. Offline
there is no opinion: the embedded review is the measured one alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from evalkit.llm.model import A, Question
from evalkit.llm.prompts import fenced_json, render
from evalkit.statements.apply import Statement, Transaction
from evalkit.statements.arbitration import ArbitrationReport, ArbitratorAnswer, Winner
from evalkit.statements.consensus import MOST, are_duplicates, passes
from evalkit.statements.reading import Reading
from evalkit.statements.reconcile import Reconciliation
from evalkit.statements.report import Category, Evidence, Rank, ReviewerReport, Severity, TemplateIssue
from evalkit.statements.reviewers import Reviewer
from evalkit.statements.template import write_template

#: So many rows, sums and left-over lines of a statement are put into a prompt: a sample, whose size is told.
_FIRST_ROWS, _LAST_ROWS, _CHECKS, _LEFT_OVER = 100, 50, 60, 40
#: Characters of a model's sentence that are kept, and issues that it may have.
_LONGEST, _MOST_ISSUES = 500, 60
_PROMPTS: Mapping[Reviewer, str] = {
    "layout_geometry": "Layout_Geometry_Reviewer",
    "semantic_financial": "Semantic_Financial_Reviewer",
}


class Picture(NamedTuple):
    """A page as it is displayed."""

    page: int
    """From 1."""
    png: bytes


class SaidIssue(BaseModel):
    """An issue in a model's words."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    message: str
    category: Category
    severity: Severity
    page: int | None = None
    expected: str = ""
    actual: str = ""
    location: str = ""
    suggested_fix: str = ""
    confidence: float = Field(1.0, ge=0, le=1)


class ReviewerAnswer(BaseModel):
    """What a model says about a template; the reasoning comes first. Whether it passes, the pass criteria say."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    reasoning: str = ""
    issues: tuple[SaidIssue, ...] = Field(max_length=_MOST_ISSUES)
    strengths: tuple[str, ...] = Field((), max_length=_MOST_ISSUES)
    weaknesses: tuple[str, ...] = Field((), max_length=_MOST_ISSUES)
    overall_quality_score: float = Field(1.0, ge=0, le=1)


class BuilderAnswer(BaseModel):
    """The template that a model proposes."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    reasoning: str = ""
    template: str | None
    """As TOML; None where it has no better one."""


@dataclass(frozen=True)
class Asked:
    """The statement that all questions of an attempt are about: the same for both reviewers."""

    sha256: str
    """Of the document."""
    reading: Reading
    pictures: tuple[Picture, ...] = ()
    prior_issues: tuple[TemplateIssue, ...] = ()
    """Of the attempt before, as far as they are shown."""

    @property
    def order(self) -> str:
        """Which picture is which page."""
        return ", ".join(f"page {one.page}" for one in self.pictures) or "none"

    @property
    def unseen(self) -> tuple[int, ...]:
        """The pages of which there is no picture."""
        seen = {one.page for one in self.pictures}
        return tuple(page for page in range(1, len(self.reading.pages) + 1) if page not in seen)

    @property
    def images(self) -> tuple[bytes, ...]:
        """The pictures alone."""
        return tuple(one.png for one in self.pictures)

    def sample(self) -> dict[str, Any]:
        """What the template read, as far as it is shown."""
        return sample_of(self.reading.statement, self.reading.reconciliation)

    def inputs(self, **more: Any) -> str:
        """The template with ``more``, between marks that it cannot forge."""
        template = self.reading.template
        told = {"template_id": template.template_id, "template_content": write_template(template), **more}
        return fenced_json(told, "review-inputs", self.sha256)


@dataclass(frozen=True)
class _TemplateQuestion(Question[A]):
    """What is asked about a template, with the statement's pages."""

    about: Asked
    temperature: float = field(default=0.0, kw_only=True)
    seconds: float | None = field(default=None, kw_only=True)
    images: tuple[bytes, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        object.__setattr__(self, "images", self.about.images)

    @property
    def document(self) -> str:
        """The statement's."""
        return self.about.sha256


@dataclass(frozen=True)
class ReviewerQuestion(_TemplateQuestion[ReviewerAnswer]):
    """One reviewer's look at a template. Neither knows what the other one says."""

    role: Reviewer = field(kw_only=True)
    answer_type: type[ReviewerAnswer] = ReviewerAnswer

    def worded(self) -> str:
        """Inputs first, instructions last."""
        return render(
            _PROMPTS[self.role],
            inputs=self.about.inputs(
                statement_renders=[{"page": one.page} for one in self.about.pictures],
                sample_extraction=self.about.sample(),
                prior_issues=[one.to_json() for one in self.about.prior_issues],
            ),
            pictures=self.about.order,
        )

    def offline(self) -> ReviewerAnswer:
        """No opinion beyond what is measured."""
        return ReviewerAnswer(issues=())


@dataclass(frozen=True)
class ArbitratorQuestion(_TemplateQuestion[ArbitratorAnswer]):
    """Who is right where the reviewers disagree."""

    layout: ReviewerReport = field(kw_only=True)
    semantic: ReviewerReport = field(kw_only=True)
    found: tuple[tuple[TemplateIssue, Winner], ...] = field(kw_only=True)
    """The disagreements, with who reported each."""
    ruled: ArbitrationReport = field(kw_only=True)
    """What the rules alone say."""
    measured: frozenset[str] = field(kw_only=True)
    """Ids of issues that are no opinions."""
    role: str = "arbitrator"
    answer_type: type[ArbitratorAnswer] = ArbitratorAnswer

    def worded(self) -> str:
        """Inputs first, instructions last. Clocks are left out: equal prompts are the same question."""
        return render(
            "Template_Arbitrator",
            inputs=self.about.inputs(
                reviewer_1_report=_timeless(self.layout),
                reviewer_2_report=_timeless(self.semantic),
                disagreement_points=[self._point(issue, by) for issue, by in self.found],
            ),
            pictures=self.about.order,
        )

    def _point(self, issue: TemplateIssue, by: Winner) -> dict[str, Any]:
        is_layout = by == "layout_geometry"
        return {
            "issue_id": issue.issue_id,
            "is_measured": issue.issue_id in self.measured,
            "r1_assessment": "fail" if is_layout else "pass",
            "r2_assessment": "pass" if is_layout else "fail",
            "r1_reasoning": issue.message if is_layout else "it was not reported",
            "r2_reasoning": "it was not reported" if is_layout else issue.message,
        }

    def offline(self) -> ArbitratorAnswer:
        """What the rules say."""
        resolutions = [one.model_dump() for one in self.ruled.resolutions]
        return ArbitratorAnswer.model_validate(
            {"resolutions": resolutions, "final_decision": self.ruled.final_decision}
        )


@dataclass(frozen=True)
class BuilderQuestion(_TemplateQuestion[BuilderAnswer]):
    """A better template than the measured one."""

    retry: Mapping[str, Any] | None = field(kw_only=True)
    """Specification 004, "Retry Input"."""
    role: str = "builder"
    answer_type: type[BuilderAnswer] = BuilderAnswer

    def worded(self) -> str:
        """Inputs first, instructions last."""
        told = {
            "measured_template": write_template(self.about.reading.template),
            "sample_extraction": self.about.sample(),
            "retry": self.retry,
        }
        return render(
            "Template_Builder", inputs=fenced_json(told, "builder-inputs", self.about.sha256), pictures=self.about.order
        )

    def offline(self) -> BuilderAnswer:
        """None beside the measured one."""
        return BuilderAnswer(template=None)


def with_opinion(
    report: ReviewerReport,
    answer: ReviewerAnswer,
    *,
    model: str,
    pages: int,
    unseen: Sequence[int] = (),
    carried: Sequence[TemplateIssue] = (),
    most: Mapping[Severity, int] = MOST,
) -> ReviewerReport:
    """A measured report with a model's issues behind the measured ones; what is measured stays.

    ``carried``: issues that the model told of the very same template before: asking again does not settle them.
    ``pages``: of the statement; an issue on another page is on none. ``unseen``: those that the model was not shown.
    """
    issues = list(report.issues)
    for one in (*carried, *(_issue(said, pages) for said in answer.issues), *_not_shown(unseen)):
        # Told again in other words, it is no further issue; told to be worse, it is.
        if not any(are_duplicates(one, known) and Rank[one.severity] <= Rank[known.severity] for known in issues):
            number = len(issues) - len(report.issues) + 1
            issues.append(one.model_copy(update={"issue_id": f"{report.reviewer_role}_said_{number:03}"}))
    score = min(report.summary["overall_quality_score"], answer.overall_quality_score)
    return report.model_copy(
        update={
            "reviewer_model": f"{report.reviewer_model}, {model}",
            "is_passed": passes(issues, most),
            "issues": tuple(issues),
            "summary": {
                "strengths": [*report.summary["strengths"], *map(_cut, answer.strengths)],
                "weaknesses": [*report.summary["weaknesses"], *map(_cut, answer.weaknesses)],
                "overall_quality_score": score,
            },
        }
    )


def said_in(report: ReviewerReport) -> list[TemplateIssue]:
    """The issues of a report that are a model's opinion."""
    return [one for one in report.issues if one.issue_id.startswith(f"{report.reviewer_role}_said_")]


def measured_in(*reports: ReviewerReport) -> frozenset[str]:
    """The ids of those that are not."""
    said = {one.issue_id for report in reports for one in said_in(report)}
    return frozenset(one.issue_id for report in reports for one in report.issues) - said


def sample_of(statement: Statement, reconciliation: Reconciliation) -> dict[str, Any]:
    """What was read, as far as a prompt holds it."""
    rows = statement.transactions
    some = rows if len(rows) <= _FIRST_ROWS + _LAST_ROWS else (*rows[:_FIRST_ROWS], *rows[-_LAST_ROWS:])
    return {
        "transactions_read": len(rows),
        "transactions": [_row(one) for one in some],
        "reconciliation": {
            "is_met": reconciliation.is_met,
            "checks": [one.model_dump(mode="json") for one in reconciliation.checks[:_CHECKS]],
        },
        "left_over": [one.model_dump(mode="json") for one in statement.left_over[:_LEFT_OVER]],
        "rows_outside_of_all_regions": [one.model_dump(mode="json") for one in statement.outside[:_LEFT_OVER]],
    }


def _row(one: Transaction) -> dict[str, Any]:
    wanted = {"date", "description", "amount", "balance", "check_number", "page", "account"}
    return one.model_dump(mode="json", include=wanted, exclude_defaults=True)


def _not_shown(pages: Sequence[int]) -> Iterator[TemplateIssue]:
    """What a model has not seen, it has not passed."""
    if pages:
        said = f"{len(pages)} pages from page {pages[0]} on were not shown to the model"
        yield TemplateIssue(issue_id="said", severity="low", category="other", message=said)


def _issue(said: SaidIssue, pages: int) -> TemplateIssue:
    return TemplateIssue(
        issue_id="said",
        severity=said.severity,
        category=said.category,
        message=_cut(said.message) or "the model named no reason",
        page=said.page if said.page is not None and 1 <= said.page <= pages else None,
        evidence=Evidence(expected=_cut(said.expected), actual=_cut(said.actual), location=_cut(said.location)),
        suggested_fix=_cut(said.suggested_fix),
        confidence=said.confidence,
    )


def _cut(text: str) -> str:
    return text.strip()[:_LONGEST]


def _timeless(report: ReviewerReport) -> dict[str, Any]:
    return {name: value for name, value in report.to_json().items() if name not in ("reviewed_at", "tokens_used")}
