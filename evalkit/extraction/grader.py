"""Grading of extracted tax forms: rules decide, a model can only reject.

Source: specification 003; contract ruling 17. Rules are table rows and pure functions over the fields that were found
on the page. Issues are written as in the specification: ``[SEVERITY:type:expected:actual] text``.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal

from pydantic import Field as Named

from evalkit.core.records import DiscreetModel
from evalkit.documents.bundle import DocumentBundle
from evalkit.extraction.extraction_schema import FieldStatus, FieldValue
from evalkit.extraction.field_template import FieldNeed, FieldTemplate, TemplateField
from evalkit.extraction.forms.form_extractor import build_template_prompt_data
from evalkit.extraction.forms.form_labels import is_only_form_print
from evalkit.extraction.forms.form_reader import GENERIC_FORM, PRINTED_FIELDS
from evalkit.extraction.patterns import get_pattern
from evalkit.issue import Issue, IssueSeverity
from evalkit.llm.model import DocumentQuestion
from evalkit.llm.prompts import dump_compact_json, fence_document, fence_model_output, fill_prompt_template

MAX_ATTEMPTS = 3
#: Contract ruling 17: smallest share of required fields that must be valid, and the score from which a form passes in
#: spite of failure reasons.
_MIN_REQUIRED_SHARE, _SUFFICIENT_SCORE = 0.70, 70.0
#: Upper limit for the confidence of a form that did not pass.
_MAX_FAILED_CONFIDENCE = 0.5
#: An OCR value below this confidence goes to a person: a text, and a number, which two engines read alike unless it is
#: ambiguous. In ``benchmarks.tax_layouts`` (open half, scans and photographs), 1 of 20 texts from 0.86 to 0.9 was wrong
#: and none of 14 numbers from 0.8 to 0.92.
_MIN_SURE_TEXT_CONFIDENCE, _MIN_SURE_NUMBER_CONFIDENCE = 0.86, 0.8
#: How a text can be the entry of a field, by the end of the field's name: a city has a state or ZIP code, a street letters
#: and a number. Other words are of another box or of the printed form.
_PLAUSIBLE_TEXTS = {
    "_city": re.compile(r".*(?:\b[A-Z]{2}\b|\d{5}|\b[A-Z]\w+, [A-Z]).*", re.DOTALL),
    "_street": re.compile(r"(?=.*[A-Za-z]{2}).*\d.*", re.DOTALL),
    "_address": re.compile(r"(?=.*[A-Za-z]{2}).*\d.*", re.DOTALL),
    "_name": re.compile(r".*[A-Z].*", re.DOTALL),
    "account_number": re.compile(r"[A-Z0-9*#][A-Z0-9 *#./-]*"),
}
#: A name with fewer letters is doubtful.
_MIN_NAME_LETTERS = 3
#: Social security wages may exceed the wages by this factor before a warning.
_WAGE_TOLERANCE = Decimal("1.1")


FormIssueSeverity = Literal["ERROR", "WARNING", "INFO"]

#: Contract ruling 19: the issue severity of each grader severity, which ranks the case in the review queue.
ISSUE_SEVERITIES: Mapping[FormIssueSeverity, IssueSeverity] = {
    "ERROR": IssueSeverity.BLOCKER,
    "WARNING": IssueSeverity.MAJOR,
    "INFO": IssueSeverity.MINOR,
}


@dataclass(frozen=True)
class FormIssue:
    """A problem that the grader found in a form."""

    severity: FormIssueSeverity
    type: str
    text: str
    expected: str = ""
    actual: str = ""
    field: str = ""

    def __str__(self) -> str:
        """Return ``[SEVERITY:type:expected:actual] text``, as specification 003 writes it.

        >>> str(FormIssue("ERROR", "wrong_year", "Document is for tax year 2019, but we need 2020", "2020", "2019"))
        '[ERROR:wrong_year:2020:2019] Document is for tax year 2019, but we need 2020'
        """
        return f"[{self.severity}:{self.type}:{self.expected}:{self.actual}] {self.text}"

    def to_issue(self, fields: Mapping[str, FieldValue], document_type: str, template: FieldTemplate) -> Issue:
        """Convert to an ``Issue``, with the field's page, words and boxes."""
        field_value = fields.get(self.field)
        field = template.get_field(self.field)
        facts = {
            "field": field.description if field else "",
            "expected": self.expected,
            "actual": self.actual,
            "finding": self.text.rstrip("."),
        }
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


#: The problem of each graded field, by field name; None if the field is filled in correctly.
FieldProblems = Mapping[str, str | None]


@dataclass(frozen=True)
class FormAttempt:
    """The fields extracted from a form in one attempt, as the grader gets them."""

    template: FieldTemplate
    document_type: str
    """The type that the extractor chose: ``W-2``, ``RECEIPT``."""
    fields: Mapping[str, FieldValue]
    """By name. A field counts as found only if its value appears on the page."""
    confidence: float
    """The extractor's confidence in the whole form, 0..1."""
    alternative_types: tuple[str, ...] = ()
    attempt_number: int = 1
    """Number of this attempt, from 1."""
    page_text: str = ""
    has_ocr_pages: bool = False
    """True if the text of any of the form's pages comes from OCR."""
    stray_amount_count: int = 0
    """Number of amounts printed on the form that were assigned to no field."""


@dataclass(frozen=True)
class FormGrade:
    """The grader's decision about one attempt to extract a form."""

    passed: bool
    score: float
    """Points, 0..100."""
    document_type: str
    """The extractor's type; ``OTHER`` for a blank form."""
    confidence: float
    """The extractor's confidence, 0..1; at most 0.5 if the form did not pass."""
    field_problems: FieldProblems
    failure_reasons: tuple[str, ...]
    feedback: str
    """Instructions for the extractor's next attempt; empty if the form passed without failure reasons."""
    issues: tuple[FormIssue, ...]
    is_final: bool = False
    """True for a wrong tax year or a blank form: another attempt would change nothing."""
    score_part_shares: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """The points of completeness, format, confidence and no_errors, each divided by 100."""


def grade_form_attempt(attempt: FormAttempt, expected_tax_year: int | None = None) -> FormGrade:
    """Grade an extracted form by the rules, without a model.

    ``expected_tax_year``: a form for another year fails; None: any year is accepted.
    """
    template, fields = attempt.template, attempt.fields
    problems = dict(_iter_field_names_and_problems(template, fields))
    failure_reasons = list(_iter_failure_reasons(attempt, problems))
    is_blank_form = is_form_blank(fields)
    issues = [
        *_iter_year_issues(attempt, expected_tax_year),
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
    amounts = {
        name: Decimal(value.value)
        for name, value in fields.items()
        if value.value and re.fullmatch(r"-?\d+(?:\.\d+)?", value.value)
    }
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
        feedback=_compose_feedback(attempt, problems, failure_reasons) if failure_reasons or not passed else "",
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
    """Count the valid required fields; all valid fields if none is required."""
    names = [field.name for field in template.get_fields_by_need(FieldNeed.REQUIRED)] or list(problems)
    return sum(problems[name] is None for name in names)


# Rules 3 and 4: blank forms, drafts, the year


def is_form_blank(fields: Mapping[str, FieldValue]) -> bool:
    """Return True if no field has an entry except zeros, the printed year and title."""
    entered_values = [
        value for name, value in fields.items() if name not in PRINTED_FIELDS and (value.value or value.raw)
    ]
    return all(value.value is not None and get_pattern("zero").fullmatch(value.value) for value in entered_values)


def _iter_void_or_draft_mark_issues(text: str, fields: Mapping[str, FieldValue]) -> Iterator[FormIssue]:
    if (void_value := fields.get("void")) and void_value.is_found:
        yield FormIssue("ERROR", "void", "Document is marked as void", field="void")
    if draft_match := get_pattern("draft_mark").search(text):
        yield FormIssue(
            "ERROR", "draft", f"Document is marked “{draft_match.group()}”, not final", "final", draft_match.group()
        )


def _iter_year_issues(attempt: FormAttempt, expected_tax_year: int | None) -> Iterator[FormIssue]:
    year_value, year_field = attempt.fields.get("tax_year"), attempt.template.get_field("tax_year")
    is_year_needed = expected_tax_year is not None or (year_field and year_field.need is FieldNeed.REQUIRED)
    if is_year_needed and (year_value is None or year_value.value is None):
        yield FormIssue(
            "WARNING", "missing_field", "Could not determine tax year from document", "tax_year", field="tax_year"
        )
    elif expected_tax_year is not None and year_value and year_value.value not in (None, str(expected_tax_year)):
        yield FormIssue(
            "ERROR",
            "wrong_year",
            f"Document is for tax year {year_value.value}, but we need {expected_tax_year}",
            str(expected_tax_year),
            year_value.value or "",
            field="tax_year",
        )


def _iter_doubt_issues(attempt: FormAttempt, problems: FieldProblems) -> Iterator[FormIssue]:
    """List entries that a person must check, even on a form that passes.

    These include missing required fields and, on OCR pages, values read with low confidence.
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
        elif field.need is FieldNeed.REQUIRED and problems.get(field.name) and field.name != "tax_year":
            yield FormIssue(
                "WARNING", "missing_field", f"{field.description} was not recognised", field.name, field=field.name
            )


def _describe_doubt(attempt: FormAttempt, field: TemplateField, value: FieldValue) -> str | None:
    """Explain why a text on the page may not be the field's entry; or None."""
    text = value.raw or value.value or ""
    if is_only_form_print(text, field, attempt.template):
        return "the text read as its entry belongs to the printed form"
    if (field.format == "currency" and get_pattern("bracketed_box_number").fullmatch(text)) or any(
        field.name.endswith(end) and not pattern.fullmatch(text) for end, pattern in _PLAUSIBLE_TEXTS.items()
    ):
        return "the text read as its entry looks like that of another box"
    if field.format == "text" and field.need is not FieldNeed.EXTRA and sum(map(str.isalpha, text)) < _MIN_NAME_LETTERS:
        return "the text read as its entry has too few letters for a name"
    if not attempt.has_ocr_pages:
        return None
    min_confidence = _MIN_SURE_TEXT_CONFIDENCE if field.format == "text" else _MIN_SURE_NUMBER_CONFIDENCE
    if value.confidence < min_confidence or (field.format == "text" and get_pattern("misread_word").search(text)):
        return "OCR read the entry with low confidence"
    return None


# Rule 5: contradictions between amounts

#: Amounts of a form, by field name.
FormAmounts = Mapping[str, Decimal]


@dataclass(frozen=True)
class FormCheck:
    """A rule that detects a contradiction between amounts on forms of one template."""

    template_name: str
    field_name: str
    """The field that the issue points at."""
    is_violated: Callable[[FormAmounts], bool]
    message: str


def _is_part_above_whole(amounts: FormAmounts, part_field: str, whole_field: str, factor: Decimal = Decimal(1)) -> bool:
    return {part_field, whole_field} <= amounts.keys() and amounts[part_field] > amounts[whole_field] * factor


def _is_sum_wrong(amounts: FormAmounts, whole_field: str, *part_fields: str) -> bool:
    """Return True if the sum of the parts differs from the whole by over a dollar.

    False if an amount is missing.
    """
    return {whole_field, *part_fields} <= amounts.keys() and abs(
        amounts[whole_field] - sum(amounts[name] for name in part_fields)
    ) > 1


def _is_rate_wrong(amounts: FormAmounts, tax_field: str, *base_fields: str, rates: Sequence[str]) -> bool:
    """Return True if the tax matches no rate of the bases within $1 or 0.2 %."""
    bases = [amounts[name] for name in base_fields if name in amounts]
    if tax_field not in amounts or not bases:
        return False
    tax = amounts[tax_field]
    return all(abs(tax - sum(bases) * Decimal(rate)) > max(Decimal(1), tax / 500) for rate in rates)


def _is_medicare_tax_wrong(amounts: FormAmounts) -> bool:
    """Return True if the tax is not 1.45 %, plus up to 0.9 % of wages above 200,000."""
    paid_tax, wages = amounts.get("medicare_tax_withheld"), amounts.get("medicare_wages")
    if paid_tax is None or wages is None:
        return False
    standard_tax = wages * Decimal("0.0145")
    full_tax = standard_tax + max(Decimal(0), wages - 200_000) * Decimal("0.009")
    tolerance = 1 + standard_tax / 500
    return not min(standard_tax, full_tax) - tolerance <= paid_tax <= max(standard_tax, full_tax) + tolerance


#: Factor by which social security wages may exceed Medicare wages, for rounding to dollars.
_ROUNDING_TOLERANCE = Decimal("1.001")
#: Contradictions between amounts. The employee's social security rate is 6.2 %; in 2011 and 2012 it was 4.2 %.
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


# Feedback


def _compose_feedback(attempt: FormAttempt, problems: FieldProblems, failure_reasons: Sequence[str]) -> str:
    """Write the instructions for the extractor's next attempt.

    The second attempt is asked to consider other form types, the last attempt to read only the critical fields.
    """
    lines = ["Issues found:", *(f"- {reason}" for reason in failure_reasons), ""] if failure_reasons else []
    lines += [
        f"- {field.location or field.name}: {problems[field.name]}"
        for field in attempt.template.scored_fields
        if problems.get(field.name) and field.need is not FieldNeed.REQUIRED
    ]
    missing = [field.name for field in attempt.template.get_fields_by_need(FieldNeed.REQUIRED) if problems[field.name]]
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


# Grading by a model


class GraderIssue(DiscreetModel, frozen=True):
    """A problem that the grading model reports."""

    severity: str
    type: str = "model"
    expected: str = ""
    actual: str = ""
    text: str = ""


class GraderAnswer(DiscreetModel, frozen=True, populate_by_name=True):
    """The grading model's answer about a form that passed the rules."""

    reasoning: str = ""
    passed: bool = Named(alias="pass")
    score: float = Named(ge=0, le=100)
    document_type: str = ""
    confidence: float = Named(ge=0, le=1)
    issues: tuple[GraderIssue, ...] = ()
    feedback: str = ""


@dataclass(frozen=True)
class GraderQuestion(DocumentQuestion[GraderAnswer]):
    """Question to the grading model, asked only about forms that pass the rules."""

    bundle: DocumentBundle
    attempt: FormAttempt
    start_page: int
    end_page: int
    role: str = "grader"
    answer_type: type[GraderAnswer] = GraderAnswer

    def render_prompt(self) -> str:
        """Render the document, the template, the extracted values, then instructions."""
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
        """Pass the form: without a language model, only the rules decide."""
        return GraderAnswer(
            passed=True, score=100.0, document_type=self.attempt.document_type, confidence=self.attempt.confidence
        )


def lower_grade_by_model_answer(rule_grade: FormGrade, answer: GraderAnswer, confidence_threshold: float) -> FormGrade:
    """Return the rules' grade, lowered if the grading model's answer is worse.

    ``confidence_threshold``: with less confidence, the form does not pass.
    """
    issues = tuple(_iter_model_issues(answer))
    has_other_type = answer.document_type and answer.document_type != rule_grade.document_type
    if has_other_type:
        issues += (
            FormIssue(
                "WARNING",
                "wrong_type",
                "The grading model takes the form for another type of document",
                rule_grade.document_type,
                answer.document_type,
            ),
        )
    score = min(rule_grade.score, answer.score)
    confidence = min(rule_grade.confidence, answer.confidence)
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
