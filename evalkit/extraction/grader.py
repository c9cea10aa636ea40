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

from pydantic import BaseModel, ConfigDict
from pydantic import Field as Named

from evalkit.documents.bundle import DocumentBundle
from evalkit.extraction.form_extractor import describe
from evalkit.extraction.forms import GENERIC, OWN_PRINT
from evalkit.extraction.labels import is_print
from evalkit.extraction.schema import FieldStatus, FieldValue
from evalkit.extraction.template import Field, FieldTemplate, Need
from evalkit.issue import Issue, IssueSeverity
from evalkit.llm.model import DocumentQuestion
from evalkit.llm.prompts import as_json, fenced, fenced_claims, render

MAX_ATTEMPTS = 3
#: Contract ruling 17: the share of the required fields that is valid, and the score that outweighs a failure reason.
_REQUIRED_SHARE, _ENOUGH = 0.70, 70.0
#: A form that did not pass is no surer than this.
_FAILED_CONFIDENCE = 0.5
#: A recognised value that is less sure is for a person: of drawn scans 1 in 12 of those just below it is wrong, of the
#: others 1 in 300.
_UNSURE = 0.9
#: A name has more letters.
_SHORTEST_NAME = 3
#: What no word begins with or holds: a small L for a capital I, a digit between letters.
_MISREAD = re.compile(r"\bl[b-df-hjkmnp-tvwxz][a-z]{2,}|[A-Za-z][01358][a-z]")
#: Social security wages may be above the wages by this factor before it is told.
_WAGE_TOLERANCE = Decimal("1.1")
_SHOUTED = re.compile(r"\b(?:DRAFT|SPECIMEN|SAMPLE)\b|(?i:\bdraft as of\b|not for filing)")

Severity = Literal["ERROR", "WARNING", "INFO"]

#: Contract ruling 19: how these rank in the queue.
RANK: Mapping[Severity, IssueSeverity] = {
    "ERROR": IssueSeverity.BLOCKER,
    "WARNING": IssueSeverity.MAJOR,
    "INFO": IssueSeverity.MINOR,
}


@dataclass(frozen=True)
class FormIssue:
    """One finding about a form."""

    severity: Severity
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

    def issue(self, fields: Mapping[str, FieldValue], form: str, origin: Literal["rule", "model"] = "rule") -> Issue:
        """For the queue."""
        about = fields.get(self.field)
        return Issue.of(
            "grader",
            f"GRADER-{self.type.upper().replace('_', '-')}",
            RANK[self.severity],
            str(self),
            origin=origin,
            location=self.field,
            document_type=form,
            page=about.page if about else None,
            quote=about.raw if about else None,
            found_page=about.page if about else None,
            boxes=about.boxes if about else (),
        )


@dataclass(frozen=True)
class FieldResult:
    """Whether one field is well filled in."""

    valid: bool
    issue: str | None = None


@dataclass(frozen=True)
class Attempt:
    """What is graded."""

    template: FieldTemplate
    document_type: str
    """As the extractor says: ``W-2``, ``RECEIPT``."""
    fields: Mapping[str, FieldValue]
    """Proven."""
    confidence: float
    alternatives: tuple[str, ...] = ()
    number: int = 1
    """Of the attempt, from 1."""
    text: str = ""
    """Of the pages that it is on."""
    is_recognised: bool = False
    """Whether any of them comes from OCR."""
    strays: int = 0
    """Amounts on the form that no field has."""


@dataclass(frozen=True)
class Grade:
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


def grade(attempt: Attempt, expected_year: int | None = None) -> Grade:
    """The grade by rules alone."""
    template, fields = attempt.template, attempt.fields
    results = dict(_field_results(template, fields))
    reasons = list(_reasons(attempt, results))
    blank = is_blank(fields)
    issues = [*_blank_issues(blank), *_year_issues(fields, expected_year), *_draft_issues(attempt.text, fields)]
    issues += _doubt_issues(attempt, results)
    if attempt.strays:
        issues.append(
            FormIssue("WARNING", "incomplete", f"Amounts on the form whose box was not recognised: {attempt.strays}")
        )
    issues += [row.issue() for row in CHECKS if row.form == template.name and row.fails(_amounts(fields))]
    ratio = required_ratio(template, results)
    if blank:
        reasons.append("Document appears to be a blank template with no filled values")
    has_error = any(issue.severity == "ERROR" for issue in issues)
    parts = {
        "completeness": 40 * ratio,
        "format": 30 * sum(one.valid for one in results.values()) / len(results) if results else 0.0,
        "confidence": 20 * attempt.confidence,
        "no_errors": 0.0 if has_error else 10.0,
    }
    score = sum(parts.values())
    is_sure = attempt.confidence >= template.threshold
    passed = (
        not has_error
        and not blank
        and is_sure
        and ratio >= _REQUIRED_SHARE
        and _filled(template, results) >= template.min_required
        and (not reasons or score >= _ENOUGH)
    )
    return Grade(
        passed=passed,
        score=round(score, 2),
        document_type=GENERIC if blank else attempt.document_type,
        confidence=attempt.confidence if passed else min(attempt.confidence, _FAILED_CONFIDENCE),
        field_results=results,
        failure_reasons=tuple(reasons),
        feedback=_feedback(attempt, results, reasons) if not passed else "",
        issues=tuple(issues),
        is_final=blank or any(issue.type == "wrong_year" for issue in issues),
        scores={name: round(points / 100, 4) for name, points in parts.items()},
    )


# Rules 1 and 2: formats and required fields


def _field_results(template: FieldTemplate, fields: Mapping[str, FieldValue]) -> Iterator[tuple[str, FieldResult]]:
    for field in template.scored:
        value = fields.get(field.name)
        if value is None or value.value is None:
            if field.need is Need.REQUIRED:
                said = f"Required field missing: {field.description}"
                if value is not None and value.status is FieldStatus.AMBIGUOUS and value.raw:
                    said = field.problem(value.raw)
                yield field.name, FieldResult(valid=False, issue=said)
        elif field.normal(value.value) is None:
            yield field.name, FieldResult(valid=False, issue=field.problem(value.value))
        else:
            yield field.name, FieldResult(valid=True)


def _reasons(attempt: Attempt, results: Mapping[str, FieldResult]) -> Iterator[str]:
    template = attempt.template
    for field in template.of(Need.REQUIRED):
        result = results[field.name]
        if result.valid:
            continue
        value = attempt.fields.get(field.name)
        if value is None or value.value is None:
            yield f"Missing {field.description} ({field.location or 'location unknown'})"
        else:
            yield f"{field.description}: {result.issue}"
    filled = _filled(template, results)
    if filled < template.min_required:
        yield f"Only {filled}/{template.min_required} minimum required fields found"
    if attempt.confidence < template.threshold:
        yield f"Confidence {attempt.confidence:.0%} below threshold {template.threshold:.0%}"


def _filled(template: FieldTemplate, results: Mapping[str, FieldResult]) -> int:
    """Valid required fields; of a template that requires none, valid fields."""
    names = [field.name for field in template.of(Need.REQUIRED)] or list(results)
    return sum(results[name].valid for name in names)


def required_ratio(template: FieldTemplate, results: Mapping[str, FieldResult]) -> float:
    """The share of the required fields that is valid; 1 where none is required."""
    required = template.of(Need.REQUIRED)
    return _filled(template, results) / len(required) if required else 1.0


# Rules 3 and 4: blank forms, drafts, the year


def is_blank(fields: Mapping[str, FieldValue]) -> bool:
    """Whether nothing is filled in; the form's own print, its year and title, is nobody's entry, and neither is 0."""
    entered = [value for name, value in fields.items() if name not in OWN_PRINT and (value.value or value.raw)]
    return all(_is_zero(value.value) for value in entered)


def _is_zero(value: str | None) -> bool:
    return value is not None and re.fullmatch(r"-?0*(?:\.0*)?", value) is not None


def _blank_issues(blank: bool) -> Iterator[FormIssue]:
    if blank:
        yield FormIssue(
            "ERROR",
            "incomplete",
            "Document appears to be a blank form template. Please upload a completed form with actual data.",
        )


def _draft_issues(text: str, fields: Mapping[str, FieldValue]) -> Iterator[FormIssue]:
    if (void := fields.get("void")) and void.is_found:
        yield FormIssue("ERROR", "void", "Document is marked as void", field="void")
    if found := _SHOUTED.search(text):
        yield FormIssue("ERROR", "draft", f"Document is marked “{found.group()}”, not final", "final", found.group())


def _year_issues(fields: Mapping[str, FieldValue], expected: int | None) -> Iterator[FormIssue]:
    if expected is None:
        return
    said = fields.get("tax_year")
    if said is None or said.value is None:
        yield FormIssue(
            "WARNING", "missing_field", "Could not determine tax year from document", "tax_year", field="tax_year"
        )
    elif said.value != str(expected):
        yield FormIssue(
            "ERROR",
            "wrong_year",
            f"Document is for tax year {said.value}, but we need {expected}",
            str(expected),
            said.value,
            field="tax_year",
        )


def _doubt_issues(attempt: Attempt, results: Mapping[str, FieldResult]) -> Iterator[FormIssue]:
    """Entries that somebody has to look at, also on a form that passes.

    On a recognised page what is missing may have been lost by the engine, and what it was unsure of may be wrong.
    """
    for field in attempt.template.fields:
        value, result = attempt.fields.get(field.name), results.get(field.name)
        if value is None:
            continue
        if value.status is FieldStatus.AMBIGUOUS:
            severity: Severity = "WARNING" if field.need is Need.REQUIRED or attempt.is_recognised else "INFO"
            yield FormIssue(
                severity, "ambiguous", f"{field.description}: what is entered cannot be told", field=field.name
            )
        elif value.is_found and (said := _odd(attempt, field, value)):
            yield FormIssue("WARNING", "uncertain", f"{field.description}: {said}", field=field.name)
        elif attempt.is_recognised and field.need is Need.REQUIRED and result is not None and not result.valid:
            yield FormIssue(
                "WARNING", "missing_field", f"{field.description} was not recognised", field.name, field=field.name
            )


def _odd(attempt: Attempt, field: Field, value: FieldValue) -> str | None:
    """Why a value may be none though it stands on the page."""
    read = value.raw or value.value or ""
    if is_print(read, field, attempt.template):
        return "what was read for it is printed on the form"
    if field.format == "text" and field.need is not Need.EXTRA and sum(map(str.isalpha, read)) < _SHORTEST_NAME:
        return "what was read for it is hardly a name"
    if not attempt.is_recognised:
        return None
    if value.confidence < _UNSURE or (field.format == "text" and _MISREAD.search(read)):
        return "recognised with little certainty"
    return None


# Rule 5: do the values make sense together?

Amounts = Callable[[str], Decimal | None]


@dataclass(frozen=True)
class Check:
    """One row: what cannot be true together."""

    form: str
    field: str
    fails: Callable[[Amounts], bool]
    text: str

    def issue(self) -> FormIssue:
        """It, told."""
        return FormIssue("WARNING", "inconsistent", self.text, field=self.field)


def _exceeds(part: str, whole: str, factor: Decimal = Decimal(1)) -> Callable[[Amounts], bool]:
    def fails(of: Amounts) -> bool:
        one, other = of(part), of(whole)
        return one is not None and other is not None and one > other * factor

    return fails


def _is_not_sum(whole: str, *parts: str) -> Callable[[Amounts], bool]:
    """To a dollar; where one of them is not there, nothing can be told."""

    def fails(of: Amounts) -> bool:
        said, known = of(whole), [amount for amount in map(of, parts) if amount is not None]
        return said is not None and len(known) == len(parts) and abs(said - sum(known)) > 1

    return fails


def _is_not_rate(tax: str, *bases: str, rates: Sequence[str]) -> Callable[[Amounts], bool]:
    """The tax is none of these rates of the bases, to a dollar or two thousandths of it."""

    def fails(of: Amounts) -> bool:
        paid = of(tax)
        known = [base for base in map(of, bases) if base is not None]
        if paid is None or not known:
            return False
        return all(abs(paid - sum(known) * Decimal(rate)) > max(Decimal(1), paid / 500) for rate in rates)

    return fails


def _medicare_is_wrong(of: Amounts) -> bool:
    """1.45 %, and 0.9 % more of what is above 200,000."""
    paid, wages = of("medicare_tax_withheld"), of("medicare_wages")
    if paid is None or wages is None:
        return False
    plain = wages * Decimal("0.0145")
    more = plain + max(Decimal(0), wages - 200_000) * Decimal("0.009")
    return not min(plain, more) - 1 - plain / 500 <= paid <= max(plain, more) + 1 + plain / 500


#: What rounding to dollars may add.
_ROUNDED = Decimal("1.001")
#: The employee's share was 4.2 % in 2011 and 2012.
CHECKS = (
    Check("W-2", "ss_wages", _exceeds("ss_wages", "wages_tips", _WAGE_TOLERANCE),
          "Social security wages exceed total wages - please verify"),
    Check("W-2", "federal_tax_withheld", _exceeds("federal_tax_withheld", "wages_tips"),
          "Federal income tax withheld exceeds total wages - please verify"),
    Check("W-2", "ss_tax_withheld",
          _is_not_rate("ss_tax_withheld", "ss_wages", "box_7", rates=("0.062", "0.042")),
          "Social security tax is not 6.2% of social security wages and tips - please verify"),
    Check("W-2", "medicare_tax_withheld", _medicare_is_wrong,
          "Medicare tax is not 1.45% of Medicare wages - please verify"),
    Check("1099-DIV", "qualified_dividends", _exceeds("qualified_dividends", "total_dividends"),
          "Qualified dividends exceed total ordinary dividends - please verify"),
    Check("W-2", "ss_wages", _exceeds("ss_wages", "medicare_wages", _ROUNDED),
          "Social security wages exceed Medicare wages, which have no limit - please verify"),
    Check("1099-DIV", "box_2b", _exceeds("box_2b", "box_2a"),
          "Unrecaptured section 1250 gain exceeds the capital gain that it is part of - please verify"),
    Check("1099-DIV", "box_2d", _exceeds("box_2d", "box_2a"),
          "Collectibles gain exceeds the capital gain that it is part of - please verify"),
    Check("1099-INT", "box_9", _exceeds("box_9", "box_8"),
          "Private activity bond interest exceeds the tax-exempt interest that it is part of - please verify"),
    Check("K-1", "box_6b", _exceeds("box_6b", "box_6a"),
          "Qualified dividends exceed ordinary dividends - please verify"),
    Check("K-1", "box_4c", _is_not_sum("box_4c", "box_4a", "box_4b"),
          "Total guaranteed payments are not those for services and for capital together - please verify"),
    Check("1099-NEC", "federal_tax_withheld", _exceeds("federal_tax_withheld", "nonemployee_compensation"),
          "Federal income tax withheld exceeds the compensation - please verify"),
)  # fmt: skip


def _amounts(fields: Mapping[str, FieldValue]) -> Amounts:
    def of(name: str) -> Decimal | None:
        value = fields.get(name)
        said = value.value if value else None
        return Decimal(said) if said and re.fullmatch(r"-?\d+(?:\.\d+)?", said) else None

    return of


# Feedback


def _feedback(attempt: Attempt, results: Mapping[str, FieldResult], reasons: Sequence[str]) -> str:
    """What the next attempt is told: the second one the other types, the third one the critical fields."""
    lines = ["Issues found:", *(f"- {reason}" for reason in reasons), ""] if reasons else []
    lines += [
        f"- {field.location or field.name}: {result.issue}"
        for field in attempt.template.scored
        if (result := results.get(field.name)) and not result.valid and field.need is not Need.REQUIRED
    ]
    missing = missing_fields(attempt.template, results)
    if missing:
        lines.append("Please look more carefully for:")
        lines += [
            f"- {field.description}: typically found in {field.location or 'the document'}"
            + "".join(f"; {hint}" for hint in field.hints)
            for field in attempt.template.fields
            if field.name in missing
        ]
    if attempt.strays:
        lines.append(f"Amounts on the form that no field has: {attempt.strays}. Find the boxes that they stand in.")
    if attempt.number == 1:
        others = ", ".join(attempt.alternatives) or "none named"
        lines.append(f"Try alternative interpretation: Could this be a different form type? Check: {others}")
    elif attempt.number == MAX_ATTEMPTS - 1:
        lines.append(
            "Final attempt: Focus only on the most critical fields. If still unclear, report as OTHER with low"
            " confidence."
        )
    return "\n".join(lines)


def missing_fields(template: FieldTemplate, results: Mapping[str, FieldResult]) -> tuple[str, ...]:
    """The required fields that are not validly filled in."""
    return tuple(field.name for field in template.of(Need.REQUIRED) if not results[field.name].valid)


# The model's part


class GraderIssue(BaseModel):
    """A finding in a model's words."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    severity: str
    type: str = "model"
    expected: str = ""
    actual: str = ""
    text: str = ""


class GraderAnswer(BaseModel):
    """What a model says about an extraction that passed the rules."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)

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
    attempt: Attempt
    start_page: int
    end_page: int
    role: str = "grader"
    answer_type: type[GraderAnswer] = GraderAnswer

    def worded(self) -> str:
        """Document first, then what is claimed of it, instructions last."""
        claims = {
            "document_type": self.attempt.document_type,
            "fields": {name: value.value for name, value in self.attempt.fields.items() if value.value is not None},
        }
        return render(
            "form_grader",
            document=fenced(self.bundle, self.bundle.between(self.start_page, self.end_page)),
            template=as_json(describe(self.attempt.template)),
            extraction=fenced_claims(self.bundle, claims),
            attempt=str(self.attempt.number),
        )

    def offline(self) -> GraderAnswer:
        """Nothing beyond the rules, which have passed it."""
        return GraderAnswer(
            passed=True, score=100.0, document_type=self.attempt.document_type, confidence=self.attempt.confidence
        )


def lowered(rules: Grade, said: GraderAnswer, threshold: float) -> Grade:
    """The rules' grade as far as the model agrees: it may take away and never add."""
    issues = tuple(_model_issues(said))
    other = said.document_type and said.document_type != rules.document_type
    if other:
        issues += (
            FormIssue(
                "WARNING",
                "wrong_type",
                "The grader takes it for another type of document",
                rules.document_type,
                said.document_type,
            ),
        )
    score = min(rules.score, max(said.score, 0.0))
    confidence = min(rules.confidence, max(said.confidence, 0.0))
    has_error = any(one.severity == "ERROR" for one in issues)
    passed = rules.passed and said.passed and not other and not has_error and confidence >= threshold
    return replace(
        rules,
        passed=passed,
        score=round(score, 2),
        confidence=confidence if passed else min(confidence, _FAILED_CONFIDENCE),
        feedback=rules.feedback if passed else said.feedback or said.reasoning,
        issues=(*rules.issues, *issues),
    )


def _model_issues(said: GraderAnswer) -> Iterable[FormIssue]:
    for one in said.issues:
        severity: Severity = "ERROR" if one.severity.upper() == "ERROR" else "WARNING"
        kind = re.sub(r"[^a-z_]+", "_", one.type.lower()).strip("_") or "model"
        yield FormIssue(severity, kind, one.text, one.expected, one.actual)
