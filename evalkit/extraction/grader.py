"""The grader of specification 003 (ruling 17): rules veto, a model only lowers.

Rules are table rows and pure functions over the proven fields. Findings are written as in the specification:
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
from evalkit.extraction.forms.form_extractor import build_template_prompt_data
from evalkit.extraction.forms.form_labels import is_only_form_print
from evalkit.extraction.forms.form_reader import GENERIC_FORM, PRINTED_FIELDS
from evalkit.issue import Issue, IssueSeverity
from evalkit.llm.model import DocumentQuestion
from evalkit.llm.prompts import dump_compact_json, fence_document, fence_model_output, fill_prompt_template

MAX_ATTEMPTS = 3
#: Contract ruling 17: needed share of valid required fields, and the score that outweighs a failure reason.
_MIN_REQUIRED_SHARE, _SUFFICIENT_SCORE = 0.70, 70.0
#: Most confidence of a form that did not pass.
_MAX_FAILED_CONFIDENCE = 0.5
#: An OCR value below this confidence goes to a person: of drawn scans, 1 in 12 values just below it is wrong, above it
#: 1 in 300.
_MIN_SURE_CONFIDENCE = 0.9
#: Fewest letters of a name.
_MIN_NAME_LETTERS = 3
#: Patterns that no word has: a small L for a capital I, a digit between letters.
_MISREAD_WORD = re.compile(r"\bl[b-df-hjkmnp-tvwxz][a-z]{2,}|[A-Za-z][01358][a-z]")
#: Social security wages may exceed the wages by this factor before a warning.
_WAGE_TOLERANCE = Decimal("1.1")
_DRAFT_MARK = re.compile(r"\b(?:DRAFT|SPECIMEN|SAMPLE)\b|(?i:\bdraft as of\b|not for filing)")

_ZERO = re.compile(r"-?0*(?:\.0*)?")

FormIssueSeverity = Literal["ERROR", "WARNING", "INFO"]

#: Contract ruling 19: their rank in the queue.
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
        """Render as in the specification.

        >>> str(FormIssue("ERROR", "wrong_year", "Document is for tax year 2019, but we need 2020", "2020", "2019"))
        '[ERROR:wrong_year:2020:2019] Document is for tax year 2019, but we need 2020'
        """
        return f"[{self.severity}:{self.type}:{self.expected}:{self.actual}] {self.text}"

    def to_issue(self, fields: Mapping[str, FieldValue], document_type: str, template: FieldTemplate) -> Issue:
        """Convert to an issue for the queue."""
        field_value = fields.get(self.field)
        field = template.get_field(self.field)
        facts = {"field": field.description if field else "", "expected": self.expected, "actual": self.actual}
        return Issue.create(
            "grader",
            f"GRADER-{self.type.upper().replace('_', '-')}",
            ISSUE_SEVERITIES[self.severity],
            str(self),
            location=self.field,
            document_type=document_type,
            page=field_value.page if field_value else None,
            quote=field_value.raw if field_value else None,
            found_page=field_value.page if field_value else None,
            boxes=field_value.boxes if field_value else (),
            facts={name: words for name, words in facts.items() if words},
        )


FieldProblems = Mapping[str, str | None]
"""For each judged field, the problem; None if it is filled in correctly."""


@dataclass(frozen=True)
class FormAttempt:
    """An extracted form, ready to be graded."""

    template: FieldTemplate
    document_type: str
    """The extractor's choice: ``W-2``, ``RECEIPT``."""
    fields: Mapping[str, FieldValue]
    """Proven on the page."""
    confidence: float
    alternative_types: tuple[str, ...] = ()
    attempt_number: int = 1
    """From 1."""
    page_text: str = ""
    has_ocr_pages: bool = False
    """True if any of them was read by OCR."""
    stray_amount_count: int = 0
    """Number of amounts on the form that no field has."""


@dataclass(frozen=True)
class FormGrade:
    """The grade of one attempt."""

    passed: bool
    score: float
    """0..100."""
    document_type: str
    confidence: float
    field_problems: FieldProblems
    failure_reasons: tuple[str, ...]
    feedback: str
    """For the next attempt; empty if there is nothing to fix."""
    issues: tuple[FormIssue, ...]
    is_final: bool = False
    """A wrong year or a blank form: another attempt would change nothing."""
    score_part_shares: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """The four parts of the score, as shares of 1."""


def grade_form_attempt(attempt: FormAttempt, expected_tax_year: int | None = None) -> FormGrade:
    """Grade an attempt by rules alone."""
    template, fields = attempt.template, attempt.fields
    problems = dict(_iter_field_names_and_problems(template, fields))
    failure_reasons = list(_iter_failure_reasons(attempt, problems))
    is_blank_form = is_form_blank(fields)
    issues = [
        *_iter_year_issues(fields, expected_tax_year),
        *_iter_void_or_draft_mark_issues(attempt.page_text, fields),
        *_iter_doubt_issues(attempt, problems),
    ]
    if attempt.stray_amount_count:
        issues.append(
            FormIssue(
                "WARNING",
                "incomplete",
                f"Amounts on the form whose box was not recognised: {attempt.stray_amount_count}",
            )
        )
    amounts = _parse_amounts(fields)
    issues += [
        FormIssue("WARNING", "inconsistent", check.message, field=check.field_name)
        for check in FORM_CHECKS
        if check.template_name == template.name and check.is_violated(amounts)
    ]
    filled_count, required_count = (
        _count_valid_required_fields(template, problems),
        len(template.get_fields_by_need(FieldNeed.REQUIRED)),
    )
    required_ratio = filled_count / required_count if required_count else 1.0
    if is_blank_form:
        failure_reasons.append("Document appears to be a blank template with no filled values")
        message = "Document appears to be a blank form template. Please upload a completed form with actual data."
        issues.insert(0, FormIssue("ERROR", "incomplete", message))
    has_error = any(issue.severity == "ERROR" for issue in issues)
    score_parts = {
        "completeness": 40 * required_ratio,
        "format": 30 * list(problems.values()).count(None) / len(problems) if problems else 0.0,
        "confidence": 20 * attempt.confidence,
        "no_errors": 0.0 if has_error else 10.0,
    }
    score = sum(score_parts.values())
    passed = (
        not has_error
        and not is_blank_form
        and attempt.confidence >= template.threshold
        and required_ratio >= _MIN_REQUIRED_SHARE
        and filled_count >= template.min_required
        and (not failure_reasons or score >= _SUFFICIENT_SCORE)
    )
    return FormGrade(
        passed=passed,
        score=round(score, 2),
        document_type=GENERIC_FORM if is_blank_form else attempt.document_type,
        confidence=attempt.confidence if passed else min(attempt.confidence, _MAX_FAILED_CONFIDENCE),
        field_problems=problems,
        failure_reasons=tuple(failure_reasons),
        feedback=_compose_feedback(attempt, problems, failure_reasons) if not passed else "",
        issues=tuple(issues),
        is_final=is_blank_form or any(issue.type == "wrong_year" for issue in issues),
        score_part_shares={name: round(points / 100, 4) for name, points in score_parts.items()},
    )


# Rules 1 and 2: formats and required fields


def _iter_field_names_and_problems(
    template: FieldTemplate, fields: Mapping[str, FieldValue]
) -> Iterator[tuple[str, str | None]]:
    for field in template.scored_fields:
        value = fields.get(field.name)
        if value is None or value.value is None:
            if field.need is FieldNeed.REQUIRED:
                problem = f"Required field missing: {field.description}"
                if value is not None and value.status is FieldStatus.AMBIGUOUS and value.raw:
                    problem = field.describe_invalid_text(value.raw)
                yield field.name, problem
        elif field.normalise(value.value) is None:
            yield field.name, field.describe_invalid_text(value.value)
        else:
            yield field.name, None


def _iter_failure_reasons(attempt: FormAttempt, problems: FieldProblems) -> Iterator[str]:
    template = attempt.template
    for field in template.get_fields_by_need(FieldNeed.REQUIRED):
        problem = problems[field.name]
        if problem is None:
            continue
        value = attempt.fields.get(field.name)
        if value is None or value.value is None:
            yield f"Missing {field.description} ({field.location or 'location unknown'})"
        else:
            yield f"{field.description}: {problem}"
    filled_count = _count_valid_required_fields(template, problems)
    if filled_count < template.min_required:
        yield f"Only {filled_count}/{template.min_required} minimum required fields found"
    if attempt.confidence < template.threshold:
        yield f"Confidence {attempt.confidence:.0%} below threshold {template.threshold:.0%}"


def _count_valid_required_fields(template: FieldTemplate, problems: FieldProblems) -> int:
    """Count valid required fields; valid fields if the template requires none."""
    names = [field.name for field in template.get_fields_by_need(FieldNeed.REQUIRED)] or list(problems)
    return sum(problems[name] is None for name in names)


# Rules 3 and 4: blank forms, drafts, the year


def is_form_blank(fields: Mapping[str, FieldValue]) -> bool:
    """Check that nothing is filled in, except the printed year and title, or zeros."""
    entered_values = [
        value for name, value in fields.items() if name not in PRINTED_FIELDS and (value.value or value.raw)
    ]
    return all(value.value is not None and _ZERO.fullmatch(value.value) for value in entered_values)


def _iter_void_or_draft_mark_issues(text: str, fields: Mapping[str, FieldValue]) -> Iterator[FormIssue]:
    if (void_value := fields.get("void")) and void_value.is_found:
        yield FormIssue("ERROR", "void", "Document is marked as void", field="void")
    if draft_match := _DRAFT_MARK.search(text):
        yield FormIssue(
            "ERROR", "draft", f"Document is marked “{draft_match.group()}”, not final", "final", draft_match.group()
        )


def _iter_year_issues(fields: Mapping[str, FieldValue], expected_tax_year: int | None) -> Iterator[FormIssue]:
    if expected_tax_year is None:
        return
    year_value = fields.get("tax_year")
    if year_value is None or year_value.value is None:
        yield FormIssue(
            "WARNING", "missing_field", "Could not determine tax year from document", "tax_year", field="tax_year"
        )
    elif year_value.value != str(expected_tax_year):
        yield FormIssue(
            "ERROR",
            "wrong_year",
            f"Document is for tax year {year_value.value}, but we need {expected_tax_year}",
            str(expected_tax_year),
            year_value.value,
            field="tax_year",
        )


def _iter_doubt_issues(attempt: FormAttempt, problems: FieldProblems) -> Iterator[FormIssue]:
    """List entries that a person must check, even on a form that passes.

    On an OCR page, OCR may have lost what is missing, and what it was unsure of may be wrong.
    """
    for field in attempt.template.fields:
        value = attempt.fields.get(field.name)
        if value is None:
            continue
        if value.status is FieldStatus.AMBIGUOUS:
            severity: FormIssueSeverity = (
                "WARNING" if field.need is FieldNeed.REQUIRED or attempt.has_ocr_pages else "INFO"
            )
            yield FormIssue(severity, "ambiguous", f"{field.description}: the entry is unclear", field=field.name)
        elif value.is_found and (doubt := _describe_doubt(attempt, field, value)):
            yield FormIssue("WARNING", "uncertain", f"{field.description}: {doubt}", field=field.name)
        elif attempt.has_ocr_pages and field.need is FieldNeed.REQUIRED and problems.get(field.name):
            yield FormIssue(
                "WARNING", "missing_field", f"{field.description} was not recognised", field.name, field=field.name
            )


def _describe_doubt(attempt: FormAttempt, field: TemplateField, value: FieldValue) -> str | None:
    """Explain why a value may not be one although it appears on the page."""
    text = value.raw or value.value or ""
    if is_only_form_print(text, field, attempt.template):
        return "the text read for it is printed on the form"
    if field.format == "text" and field.need is not FieldNeed.EXTRA and sum(map(str.isalpha, text)) < _MIN_NAME_LETTERS:
        return "the text read for it is hardly a name"
    if not attempt.has_ocr_pages:
        return None
    if value.confidence < _MIN_SURE_CONFIDENCE or (field.format == "text" and _MISREAD_WORD.search(text)):
        return "recognised with little certainty"
    return None


# Rule 5: do the values make sense together?

FormAmounts = Mapping[str, Decimal]
"""Amounts by field name."""


@dataclass(frozen=True)
class FormCheck:
    """One row: a contradiction between amounts."""

    template_name: str
    field_name: str
    is_violated: Callable[[FormAmounts], bool]
    message: str


def _is_part_above_whole(amounts: FormAmounts, part_field: str, whole_field: str, factor: Decimal = Decimal(1)) -> bool:
    return {part_field, whole_field} <= amounts.keys() and amounts[part_field] > amounts[whole_field] * factor


def _is_sum_wrong(amounts: FormAmounts, whole_field: str, *part_fields: str) -> bool:
    """Compare within one dollar; False if an amount is missing."""
    return {whole_field, *part_fields} <= amounts.keys() and abs(
        amounts[whole_field] - sum(amounts[name] for name in part_fields)
    ) > 1


def _is_rate_wrong(amounts: FormAmounts, tax_field: str, *base_fields: str, rates: Sequence[str]) -> bool:
    """Check that the tax matches none of the rates, within a dollar or 0.2 %."""
    bases = [amounts[name] for name in base_fields if name in amounts]
    if tax_field not in amounts or not bases:
        return False
    tax = amounts[tax_field]
    return all(abs(tax - sum(bases) * Decimal(rate)) > max(Decimal(1), tax / 500) for rate in rates)


def _is_medicare_tax_wrong(amounts: FormAmounts) -> bool:
    """Check against 1.45 %, plus 0.9 % of the part above 200,000."""
    paid_tax, wages = amounts.get("medicare_tax_withheld"), amounts.get("medicare_wages")
    if paid_tax is None or wages is None:
        return False
    standard_tax = wages * Decimal("0.0145")
    full_tax = standard_tax + max(Decimal(0), wages - 200_000) * Decimal("0.009")
    tolerance = 1 + standard_tax / 500
    return not min(standard_tax, full_tax) - tolerance <= paid_tax <= max(standard_tax, full_tax) + tolerance


#: Most that rounding to dollars may add.
_ROUNDING_TOLERANCE = Decimal("1.001")
#: The employee's share was 4.2 % in 2011 and 2012.
FORM_CHECKS = (
    FormCheck("W-2", "ss_wages", lambda amounts: _is_part_above_whole(amounts, "ss_wages", "wages_tips", _WAGE_TOLERANCE),
          "Social security wages exceed total wages - please verify"),
    FormCheck("W-2", "federal_tax_withheld", lambda amounts: _is_part_above_whole(amounts, "federal_tax_withheld", "wages_tips"),
          "Federal income tax withheld exceeds total wages - please verify"),
    FormCheck("W-2", "ss_tax_withheld",
          lambda amounts: _is_rate_wrong(amounts, "ss_tax_withheld", "ss_wages", "box_7", rates=("0.062", "0.042")),
          "Social security tax is not 6.2% of social security wages and tips - please verify"),
    FormCheck("W-2", "medicare_tax_withheld", _is_medicare_tax_wrong,
          "Medicare tax is not 1.45% of Medicare wages - please verify"),
    FormCheck("1099-DIV", "qualified_dividends", lambda amounts: _is_part_above_whole(amounts, "qualified_dividends", "total_dividends"),
          "Qualified dividends exceed total ordinary dividends - please verify"),
    FormCheck("W-2", "ss_wages", lambda amounts: _is_part_above_whole(amounts, "ss_wages", "medicare_wages", _ROUNDING_TOLERANCE),
          "Social security wages exceed Medicare wages, which have no limit - please verify"),
    FormCheck("1099-DIV", "box_2b", lambda amounts: _is_part_above_whole(amounts, "box_2b", "box_2a"),
          "Unrecaptured section 1250 gain exceeds the capital gain that it is part of - please verify"),
    FormCheck("1099-DIV", "box_2d", lambda amounts: _is_part_above_whole(amounts, "box_2d", "box_2a"),
          "Collectibles gain exceeds the capital gain that it is part of - please verify"),
    FormCheck("1099-INT", "box_9", lambda amounts: _is_part_above_whole(amounts, "box_9", "box_8"),
          "Private activity bond interest exceeds the tax-exempt interest that it is part of - please verify"),
    FormCheck("K-1", "box_6b", lambda amounts: _is_part_above_whole(amounts, "box_6b", "box_6a"),
          "Qualified dividends exceed ordinary dividends - please verify"),
    FormCheck("K-1", "box_4c", lambda amounts: _is_sum_wrong(amounts, "box_4c", "box_4a", "box_4b"),
          "Total guaranteed payments are not those for services and for capital together - please verify"),
    FormCheck("1099-NEC", "federal_tax_withheld", lambda amounts: _is_part_above_whole(amounts, "federal_tax_withheld", "nonemployee_compensation"),
          "Federal income tax withheld exceeds the compensation - please verify"),
)  # fmt: skip


def _parse_amounts(fields: Mapping[str, FieldValue]) -> FormAmounts:
    texts = {name: value.value for name, value in fields.items() if value.value}
    return {name: Decimal(text) for name, text in texts.items() if re.fullmatch(r"-?\d+(?:\.\d+)?", text)}


# Feedback


def _compose_feedback(attempt: FormAttempt, problems: FieldProblems, failure_reasons: Sequence[str]) -> str:
    """Write the next attempt's feedback, on types, then on critical fields."""
    lines = ["Issues found:", *(f"- {reason}" for reason in failure_reasons), ""] if failure_reasons else []
    lines += [
        f"- {field.location or field.name}: {problems[field.name]}"
        for field in attempt.template.scored_fields
        if problems.get(field.name) and field.need is not FieldNeed.REQUIRED
    ]
    missing = list_missing_or_invalid_required_fields(attempt.template, problems)
    if missing:
        lines.append("Please look more carefully for:")
        lines += [
            f"- {field.description}: typically found in {field.location or 'the document'}"
            + "".join(f"; {hint}" for hint in field.hints)
            for field in attempt.template.fields
            if field.name in missing
        ]
    if attempt.stray_amount_count:
        lines.append(f"Amounts on the form that no field has: {attempt.stray_amount_count}. Find their boxes.")
    if attempt.attempt_number == 1:
        other_types = ", ".join(attempt.alternative_types) or "none named"
        lines.append(f"Try alternative interpretation: Could this be a different form type? Check: {other_types}")
    elif attempt.attempt_number == MAX_ATTEMPTS - 1:
        lines.append(
            "Final attempt: Focus only on the most critical fields. If still unclear, report as OTHER with low"
            " confidence."
        )
    return "\n".join(lines)


def list_missing_or_invalid_required_fields(template: FieldTemplate, problems: FieldProblems) -> tuple[str, ...]:
    """List required fields that are missing or invalid."""
    return tuple(field.name for field in template.get_fields_by_need(FieldNeed.REQUIRED) if problems[field.name])


# The model's part


class GraderIssue(BaseModel, frozen=True):
    """A finding in a model's words."""

    severity: str
    type: str = "model"
    expected: str = ""
    actual: str = ""
    text: str = ""


class GraderAnswer(BaseModel, frozen=True, populate_by_name=True):
    """A model's opinion on an extraction that passed the rules."""

    reasoning: str = ""
    passed: bool = Named(alias="pass")
    score: float
    document_type: str = ""
    confidence: float
    issues: tuple[GraderIssue, ...] = ()
    feedback: str = ""


@dataclass(frozen=True)
class GraderQuestion(DocumentQuestion[GraderAnswer]):
    """A model's question, asked only if the rules pass, since they veto."""

    bundle: DocumentBundle
    attempt: FormAttempt
    start_page: int
    end_page: int
    role: str = "grader"
    answer_type: type[GraderAnswer] = GraderAnswer

    def render_prompt(self) -> str:
        """Render the document first, then the claims, instructions last."""
        claims = {
            "document_type": self.attempt.document_type,
            "fields": {name: value.value for name, value in self.attempt.fields.items() if value.value is not None},
        }
        return fill_prompt_template(
            "form_grader",
            document=fence_document(self.bundle, self.bundle.iter_pages(self.start_page, self.end_page)),
            template=dump_compact_json(build_template_prompt_data(self.attempt.template)),
            extraction=fence_model_output(self.bundle, claims),
            attempt=str(self.attempt.attempt_number),
        )

    def offline(self) -> GraderAnswer:
        """Accept what the rules have passed."""
        return GraderAnswer(
            passed=True, score=100.0, document_type=self.attempt.document_type, confidence=self.attempt.confidence
        )


def lower_grade_by_model_answer(rule_grade: FormGrade, answer: GraderAnswer, confidence_threshold: float) -> FormGrade:
    """Lower the rules' grade by the model's answer; it can never raise it."""
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
    passed = (
        rule_grade.passed
        and answer.passed
        and not has_other_type
        and not any(issue.severity == "ERROR" for issue in issues)
        and confidence >= confidence_threshold
    )
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
