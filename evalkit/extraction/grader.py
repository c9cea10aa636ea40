"""The grader of specification 003 as contract ruling 17 has it: rules veto, a model may only lower.

Rules are rows and pure functions over the proven fields. What they find is written as the specification writes it,
``[SEVERITY:type:expected:actual] text``.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal

from pydantic import BaseModel
from pydantic import Field as Named

from evalkit.documents.bundle import DocumentBundle
from evalkit.extraction.extraction_schema import FieldStatus, FieldValue
from evalkit.extraction.field_template import FieldNeed, FieldTemplate, TemplateField
from evalkit.extraction.form_extractor import describe_template
from evalkit.extraction.form_labels import is_printed_text
from evalkit.extraction.form_reader import GENERIC_FORM, PRINTED_FIELDS
from evalkit.issue import Issue, IssueSeverity
from evalkit.llm.model import DocumentQuestion
from evalkit.llm.prompts import dump_compact_json, fence_claims, fence_document, fill_prompt_template

MAX_ATTEMPTS = 3
#: Contract ruling 17: the share of the required fields that is valid, and the score that outweighs a failure reason.
_MIN_REQUIRED_SHARE, _SUFFICIENT_SCORE = 0.70, 70.0
#: A form that did not pass is no surer than this.
_MAX_FAILED_CONFIDENCE = 0.5
#: A recognised value that is less sure is for a person: of drawn scans 1 in 12 of those just below it is wrong, of the
#: others 1 in 300.
_MIN_SURE_CONFIDENCE = 0.9
#: A name has more letters.
_MIN_NAME_LETTERS = 3
#: What no word begins with or holds: a small L for a capital I, a digit between letters.
_MISREAD_WORD = re.compile(r"\bl[b-df-hjkmnp-tvwxz][a-z]{2,}|[A-Za-z][01358][a-z]")
#: Social security wages may be above the wages by this factor before it is told.
_WAGE_TOLERANCE = Decimal("1.1")
_DRAFT_MARK = re.compile(r"\b(?:DRAFT|SPECIMEN|SAMPLE)\b|(?i:\bdraft as of\b|not for filing)")

FormIssueSeverity = Literal["ERROR", "WARNING", "INFO"]

#: Contract ruling 19: how these rank in the queue.
ISSUE_SEVERITIES: Mapping[FormIssueSeverity, IssueSeverity] = {
    "ERROR": IssueSeverity.BLOCKER,
    "WARNING": IssueSeverity.MAJOR,
    "INFO": IssueSeverity.MINOR,
}


@dataclass(frozen=True)
class FormIssue:
    """One finding about a form."""

    severity: FormIssueSeverity
    type: str
    text: str
    expected: str = ""
    actual: str = ""
    field: str = ""

    def __str__(self) -> str:
        """As the specification writes it.

        >>> str(FormIssue("ERROR", "wrong_year", "Document is for tax year 2019, but we need 2020", "2020", "2019"))
        '[ERROR:wrong_year:2020:2019] Document is for tax year 2019, but we need 2020'
        """
        return f"[{self.severity}:{self.type}:{self.expected}:{self.actual}] {self.text}"

    def to_issue(
        self, fields: Mapping[str, FieldValue], document_type: str, origin: Literal["rule", "model"] = "rule"
    ) -> Issue:
        """For the queue."""
        field_value = fields.get(self.field)
        return Issue.create(
            "grader",
            f"GRADER-{self.type.upper().replace('_', '-')}",
            ISSUE_SEVERITIES[self.severity],
            str(self),
            origin=origin,
            location=self.field,
            document_type=document_type,
            page=field_value.page if field_value else None,
            quote=field_value.raw if field_value else None,
            found_page=field_value.page if field_value else None,
            boxes=field_value.boxes if field_value else (),
        )


@dataclass(frozen=True)
class FieldResult:
    """Whether one field is well filled in."""

    is_valid: bool
    issue: str | None = None


@dataclass(frozen=True)
class FormAttempt:
    """What is graded."""

    template: FieldTemplate
    document_type: str
    """As the extractor says: ``W-2``, ``RECEIPT``."""
    fields: Mapping[str, FieldValue]
    """Proven."""
    confidence: float
    alternative_types: tuple[str, ...] = ()
    attempt_number: int = 1
    """Of the attempt, from 1."""
    page_text: str = ""
    """Of the pages that it is on."""
    is_recognised: bool = False
    """Whether any of them comes from OCR."""
    stray_amount_count: int = 0
    """Amounts on the form that no field has."""


@dataclass(frozen=True)
class FormGrade:
    """The grader's word on one attempt."""

    passed: bool
    score: float
    """0..100."""
    document_type: str
    confidence: float
    field_results: Mapping[str, FieldResult]
    failure_reasons: tuple[str, ...]
    feedback: str
    """For the next attempt; empty where there is nothing to mend."""
    issues: tuple[FormIssue, ...]
    is_final: bool = False
    """A wrong year or a blank form: another attempt would change nothing."""
    scores: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """The four parts of the score, as shares of 1."""


def grade_form(attempt: FormAttempt, expected_year: int | None = None) -> FormGrade:
    """The grade by rules alone."""
    template, fields = attempt.template, attempt.fields
    results = dict(_iter_field_results(template, fields))
    failure_reasons = list(_iter_failure_reasons(attempt, results))
    is_blank_form = is_blank(fields)
    issues = [
        *_iter_blank_issues(is_blank_form),
        *_iter_year_issues(fields, expected_year),
        *_iter_draft_issues(attempt.page_text, fields),
    ]
    issues += _iter_doubt_issues(attempt, results)
    if attempt.stray_amount_count:
        issues.append(
            FormIssue(
                "WARNING",
                "incomplete",
                f"Amounts on the form whose box was not recognised: {attempt.stray_amount_count}",
            )
        )
    issues += [
        check.to_form_issue()
        for check in FORM_CHECKS
        if check.template_name == template.name and check.is_violated(_make_amount_lookup(fields))
    ]
    required_ratio = compute_required_ratio(template, results)
    if is_blank_form:
        failure_reasons.append("Document appears to be a blank template with no filled values")
    has_error = any(issue.severity == "ERROR" for issue in issues)
    score_parts = {
        "completeness": 40 * required_ratio,
        "format": 30 * sum(field_result.is_valid for field_result in results.values()) / len(results)
        if results
        else 0.0,
        "confidence": 20 * attempt.confidence,
        "no_errors": 0.0 if has_error else 10.0,
    }
    score = sum(score_parts.values())
    is_sure = attempt.confidence >= template.threshold
    passed = (
        not has_error
        and not is_blank_form
        and is_sure
        and required_ratio >= _MIN_REQUIRED_SHARE
        and _count_filled_fields(template, results) >= template.min_required
        and (not failure_reasons or score >= _SUFFICIENT_SCORE)
    )
    return FormGrade(
        passed=passed,
        score=round(score, 2),
        document_type=GENERIC_FORM if is_blank_form else attempt.document_type,
        confidence=attempt.confidence if passed else min(attempt.confidence, _MAX_FAILED_CONFIDENCE),
        field_results=results,
        failure_reasons=tuple(failure_reasons),
        feedback=_write_feedback(attempt, results, failure_reasons) if not passed else "",
        issues=tuple(issues),
        is_final=is_blank_form or any(issue.type == "wrong_year" for issue in issues),
        scores={name: round(points / 100, 4) for name, points in score_parts.items()},
    )


# Rules 1 and 2: formats and required fields


def _iter_field_results(template: FieldTemplate, fields: Mapping[str, FieldValue]) -> Iterator[tuple[str, FieldResult]]:
    for field in template.scored_fields:
        value = fields.get(field.name)
        if value is None or value.value is None:
            if field.need is FieldNeed.REQUIRED:
                problem = f"Required field missing: {field.description}"
                if value is not None and value.status is FieldStatus.AMBIGUOUS and value.raw:
                    problem = field.describe_invalid_text(value.raw)
                yield field.name, FieldResult(is_valid=False, issue=problem)
        elif field.normalise(value.value) is None:
            yield field.name, FieldResult(is_valid=False, issue=field.describe_invalid_text(value.value))
        else:
            yield field.name, FieldResult(is_valid=True)


def _iter_failure_reasons(attempt: FormAttempt, results: Mapping[str, FieldResult]) -> Iterator[str]:
    template = attempt.template
    for field in template.get_fields_by_need(FieldNeed.REQUIRED):
        result = results[field.name]
        if result.is_valid:
            continue
        value = attempt.fields.get(field.name)
        if value is None or value.value is None:
            yield f"Missing {field.description} ({field.location or 'location unknown'})"
        else:
            yield f"{field.description}: {result.issue}"
    filled_count = _count_filled_fields(template, results)
    if filled_count < template.min_required:
        yield f"Only {filled_count}/{template.min_required} minimum required fields found"
    if attempt.confidence < template.threshold:
        yield f"Confidence {attempt.confidence:.0%} below threshold {template.threshold:.0%}"


def _count_filled_fields(template: FieldTemplate, results: Mapping[str, FieldResult]) -> int:
    """Valid required fields; of a template that requires none, valid fields."""
    names = [field.name for field in template.get_fields_by_need(FieldNeed.REQUIRED)] or list(results)
    return sum(results[name].is_valid for name in names)


def compute_required_ratio(template: FieldTemplate, results: Mapping[str, FieldResult]) -> float:
    """The share of the required fields that is valid; 1 where none is required."""
    required_fields = template.get_fields_by_need(FieldNeed.REQUIRED)
    return _count_filled_fields(template, results) / len(required_fields) if required_fields else 1.0


# Rules 3 and 4: blank forms, drafts, the year


def is_blank(fields: Mapping[str, FieldValue]) -> bool:
    """Whether nothing is filled in; the form's own print, its year and title, is nobody's entry, and neither is 0."""
    entered_values = [
        value for name, value in fields.items() if name not in PRINTED_FIELDS and (value.value or value.raw)
    ]
    return all(_is_zero(value.value) for value in entered_values)


def _is_zero(value: str | None) -> bool:
    return value is not None and re.fullmatch(r"-?0*(?:\.0*)?", value) is not None


def _iter_blank_issues(is_blank_form: bool) -> Iterator[FormIssue]:
    if is_blank_form:
        yield FormIssue(
            "ERROR",
            "incomplete",
            "Document appears to be a blank form template. Please upload a completed form with actual data.",
        )


def _iter_draft_issues(text: str, fields: Mapping[str, FieldValue]) -> Iterator[FormIssue]:
    if (void_value := fields.get("void")) and void_value.is_found:
        yield FormIssue("ERROR", "void", "Document is marked as void", field="void")
    if draft_match := _DRAFT_MARK.search(text):
        yield FormIssue(
            "ERROR", "draft", f"Document is marked “{draft_match.group()}”, not final", "final", draft_match.group()
        )


def _iter_year_issues(fields: Mapping[str, FieldValue], expected_year: int | None) -> Iterator[FormIssue]:
    if expected_year is None:
        return
    year_value = fields.get("tax_year")
    if year_value is None or year_value.value is None:
        yield FormIssue(
            "WARNING", "missing_field", "Could not determine tax year from document", "tax_year", field="tax_year"
        )
    elif year_value.value != str(expected_year):
        yield FormIssue(
            "ERROR",
            "wrong_year",
            f"Document is for tax year {year_value.value}, but we need {expected_year}",
            str(expected_year),
            year_value.value,
            field="tax_year",
        )


def _iter_doubt_issues(attempt: FormAttempt, results: Mapping[str, FieldResult]) -> Iterator[FormIssue]:
    """Entries that somebody has to look at, also on a form that passes.

    On a recognised page what is missing may have been lost by the engine, and what it was unsure of may be wrong.
    """
    for field in attempt.template.fields:
        value, result = attempt.fields.get(field.name), results.get(field.name)
        if value is None:
            continue
        if value.status is FieldStatus.AMBIGUOUS:
            severity: FormIssueSeverity = (
                "WARNING" if field.need is FieldNeed.REQUIRED or attempt.is_recognised else "INFO"
            )
            yield FormIssue(
                severity, "ambiguous", f"{field.description}: what is entered cannot be told", field=field.name
            )
        elif value.is_found and (doubt := _describe_doubt(attempt, field, value)):
            yield FormIssue("WARNING", "uncertain", f"{field.description}: {doubt}", field=field.name)
        elif attempt.is_recognised and field.need is FieldNeed.REQUIRED and result is not None and not result.is_valid:
            yield FormIssue(
                "WARNING", "missing_field", f"{field.description} was not recognised", field.name, field=field.name
            )


def _describe_doubt(attempt: FormAttempt, field: TemplateField, value: FieldValue) -> str | None:
    """Why a value may be none though it stands on the page."""
    text = value.raw or value.value or ""
    if is_printed_text(text, field, attempt.template):
        return "what was read for it is printed on the form"
    if field.format == "text" and field.need is not FieldNeed.EXTRA and sum(map(str.isalpha, text)) < _MIN_NAME_LETTERS:
        return "what was read for it is hardly a name"
    if not attempt.is_recognised:
        return None
    if value.confidence < _MIN_SURE_CONFIDENCE or (field.format == "text" and _MISREAD_WORD.search(text)):
        return "recognised with little certainty"
    return None


# Rule 5: do the values make sense together?

AmountLookup = Callable[[str], Decimal | None]


@dataclass(frozen=True)
class FormCheck:
    """One row: what cannot be true together."""

    template_name: str
    field_name: str
    is_violated: Callable[[AmountLookup], bool]
    message: str

    def to_form_issue(self) -> FormIssue:
        """It, told."""
        return FormIssue("WARNING", "inconsistent", self.message, field=self.field_name)


def _make_exceeds_check(
    part_field: str, whole_field: str, factor: Decimal = Decimal(1)
) -> Callable[[AmountLookup], bool]:
    def is_violated(get_amount: AmountLookup) -> bool:
        part_amount, whole_amount = get_amount(part_field), get_amount(whole_field)
        return part_amount is not None and whole_amount is not None and part_amount > whole_amount * factor

    return is_violated


def _make_sum_check(whole_field: str, *part_fields: str) -> Callable[[AmountLookup], bool]:
    """To a dollar; where one of them is not there, nothing can be told."""

    def is_violated(get_amount: AmountLookup) -> bool:
        whole_amount, part_amounts = (
            get_amount(whole_field),
            [amount for amount in map(get_amount, part_fields) if amount is not None],
        )
        return (
            whole_amount is not None
            and len(part_amounts) == len(part_fields)
            and abs(whole_amount - sum(part_amounts)) > 1
        )

    return is_violated


def _make_rate_check(tax_field: str, *base_fields: str, rates: Sequence[str]) -> Callable[[AmountLookup], bool]:
    """The tax is none of these rates of the bases, to a dollar or two thousandths of it."""

    def is_violated(get_amount: AmountLookup) -> bool:
        tax_amount = get_amount(tax_field)
        base_amounts = [base_amount for base_amount in map(get_amount, base_fields) if base_amount is not None]
        if tax_amount is None or not base_amounts:
            return False
        return all(
            abs(tax_amount - sum(base_amounts) * Decimal(rate)) > max(Decimal(1), tax_amount / 500) for rate in rates
        )

    return is_violated


def _is_medicare_tax_wrong(get_amount: AmountLookup) -> bool:
    """1.45 %, and 0.9 % more of what is above 200,000."""
    paid_tax, wages = get_amount("medicare_tax_withheld"), get_amount("medicare_wages")
    if paid_tax is None or wages is None:
        return False
    standard_tax = wages * Decimal("0.0145")
    full_tax = standard_tax + max(Decimal(0), wages - 200_000) * Decimal("0.009")
    return (
        not min(standard_tax, full_tax) - 1 - standard_tax / 500
        <= paid_tax
        <= max(standard_tax, full_tax) + 1 + standard_tax / 500
    )


#: What rounding to dollars may add.
_ROUNDING_TOLERANCE = Decimal("1.001")
#: The employee's share was 4.2 % in 2011 and 2012.
FORM_CHECKS = (
    FormCheck("W-2", "ss_wages", _make_exceeds_check("ss_wages", "wages_tips", _WAGE_TOLERANCE),
          "Social security wages exceed total wages - please verify"),
    FormCheck("W-2", "federal_tax_withheld", _make_exceeds_check("federal_tax_withheld", "wages_tips"),
          "Federal income tax withheld exceeds total wages - please verify"),
    FormCheck("W-2", "ss_tax_withheld",
          _make_rate_check("ss_tax_withheld", "ss_wages", "box_7", rates=("0.062", "0.042")),
          "Social security tax is not 6.2% of social security wages and tips - please verify"),
    FormCheck("W-2", "medicare_tax_withheld", _is_medicare_tax_wrong,
          "Medicare tax is not 1.45% of Medicare wages - please verify"),
    FormCheck("1099-DIV", "qualified_dividends", _make_exceeds_check("qualified_dividends", "total_dividends"),
          "Qualified dividends exceed total ordinary dividends - please verify"),
    FormCheck("W-2", "ss_wages", _make_exceeds_check("ss_wages", "medicare_wages", _ROUNDING_TOLERANCE),
          "Social security wages exceed Medicare wages, which have no limit - please verify"),
    FormCheck("1099-DIV", "box_2b", _make_exceeds_check("box_2b", "box_2a"),
          "Unrecaptured section 1250 gain exceeds the capital gain that it is part of - please verify"),
    FormCheck("1099-DIV", "box_2d", _make_exceeds_check("box_2d", "box_2a"),
          "Collectibles gain exceeds the capital gain that it is part of - please verify"),
    FormCheck("1099-INT", "box_9", _make_exceeds_check("box_9", "box_8"),
          "Private activity bond interest exceeds the tax-exempt interest that it is part of - please verify"),
    FormCheck("K-1", "box_6b", _make_exceeds_check("box_6b", "box_6a"),
          "Qualified dividends exceed ordinary dividends - please verify"),
    FormCheck("K-1", "box_4c", _make_sum_check("box_4c", "box_4a", "box_4b"),
          "Total guaranteed payments are not those for services and for capital together - please verify"),
    FormCheck("1099-NEC", "federal_tax_withheld", _make_exceeds_check("federal_tax_withheld", "nonemployee_compensation"),
          "Federal income tax withheld exceeds the compensation - please verify"),
)  # fmt: skip


def _make_amount_lookup(fields: Mapping[str, FieldValue]) -> AmountLookup:
    def get_amount(name: str) -> Decimal | None:
        value = fields.get(name)
        text = value.value if value else None
        return Decimal(text) if text and re.fullmatch(r"-?\d+(?:\.\d+)?", text) else None

    return get_amount


# Feedback


def _write_feedback(attempt: FormAttempt, results: Mapping[str, FieldResult], failure_reasons: Sequence[str]) -> str:
    """What the next attempt is told: the second one the other types, the third one the critical fields."""
    lines = ["Issues found:", *(f"- {reason}" for reason in failure_reasons), ""] if failure_reasons else []
    lines += [
        f"- {field.location or field.name}: {result.issue}"
        for field in attempt.template.scored_fields
        if (result := results.get(field.name)) and not result.is_valid and field.need is not FieldNeed.REQUIRED
    ]
    missing = list_missing_fields(attempt.template, results)
    if missing:
        lines.append("Please look more carefully for:")
        lines += [
            f"- {field.description}: typically found in {field.location or 'the document'}"
            + "".join(f"; {hint}" for hint in field.hints)
            for field in attempt.template.fields
            if field.name in missing
        ]
    if attempt.stray_amount_count:
        lines.append(
            f"Amounts on the form that no field has: {attempt.stray_amount_count}. Find the boxes that they stand in."
        )
    if attempt.attempt_number == 1:
        other_types = ", ".join(attempt.alternative_types) or "none named"
        lines.append(f"Try alternative interpretation: Could this be a different form type? Check: {other_types}")
    elif attempt.attempt_number == MAX_ATTEMPTS - 1:
        lines.append(
            "Final attempt: Focus only on the most critical fields. If still unclear, report as OTHER with low"
            " confidence."
        )
    return "\n".join(lines)


def list_missing_fields(template: FieldTemplate, results: Mapping[str, FieldResult]) -> tuple[str, ...]:
    """The required fields that are not validly filled in."""
    return tuple(
        field.name for field in template.get_fields_by_need(FieldNeed.REQUIRED) if not results[field.name].is_valid
    )


# The model's part


class GraderIssue(BaseModel, frozen=True):
    """A finding in a model's words."""

    severity: str
    type: str = "model"
    expected: str = ""
    actual: str = ""
    text: str = ""


class GraderAnswer(BaseModel, frozen=True, populate_by_name=True):
    """What a model says about an extraction that passed the rules."""

    reasoning: str = ""
    passed: bool = Named(alias="pass")
    score: float
    document_type: str = ""
    confidence: float
    issues: tuple[GraderIssue, ...] = ()
    feedback: str = ""


@dataclass(frozen=True)
class GraderQuestion(DocumentQuestion[GraderAnswer]):
    """Asked about an extraction that the rules pass: they veto, so that of others nothing could change."""

    bundle: DocumentBundle
    attempt: FormAttempt
    start_page: int
    end_page: int
    role: str = "grader"
    answer_type: type[GraderAnswer] = GraderAnswer

    def render_prompt(self) -> str:
        """Document first, then what is claimed of it, instructions last."""
        claims = {
            "document_type": self.attempt.document_type,
            "fields": {name: value.value for name, value in self.attempt.fields.items() if value.value is not None},
        }
        return fill_prompt_template(
            "form_grader",
            document=fence_document(self.bundle, self.bundle.iter_pages(self.start_page, self.end_page)),
            template=dump_compact_json(describe_template(self.attempt.template)),
            extraction=fence_claims(self.bundle, claims),
            attempt=str(self.attempt.attempt_number),
        )

    def offline(self) -> GraderAnswer:
        """Nothing beyond the rules, which have passed it."""
        return GraderAnswer(
            passed=True, score=100.0, document_type=self.attempt.document_type, confidence=self.attempt.confidence
        )


def lower_grade(rule_grade: FormGrade, answer: GraderAnswer, threshold: float) -> FormGrade:
    """The rules' grade as far as the model agrees: it may take away and never add."""
    issues = tuple(_iter_model_issues(answer))
    has_other_type = answer.document_type and answer.document_type != rule_grade.document_type
    if has_other_type:
        issues += (
            FormIssue(
                "WARNING",
                "wrong_type",
                "The grader takes it for another type of document",
                rule_grade.document_type,
                answer.document_type,
            ),
        )
    score = min(rule_grade.score, max(answer.score, 0.0))
    confidence = min(rule_grade.confidence, max(answer.confidence, 0.0))
    has_error = any(issue.severity == "ERROR" for issue in issues)
    passed = rule_grade.passed and answer.passed and not has_other_type and not has_error and confidence >= threshold
    return replace(
        rule_grade,
        passed=passed,
        score=round(score, 2),
        confidence=confidence if passed else min(confidence, _MAX_FAILED_CONFIDENCE),
        feedback=rule_grade.feedback if passed else answer.feedback or answer.reasoning,
        issues=(*rule_grade.issues, *issues),
    )


def _iter_model_issues(answer: GraderAnswer) -> Iterable[FormIssue]:
    for grader_issue in answer.issues:
        severity: FormIssueSeverity = "ERROR" if grader_issue.severity.upper() == "ERROR" else "WARNING"
        issue_type = re.sub(r"[^a-z_]+", "_", grader_issue.type.lower()).strip("_") or "model"
        yield FormIssue(severity, issue_type, grader_issue.text, grader_issue.expected, grader_issue.actual)
