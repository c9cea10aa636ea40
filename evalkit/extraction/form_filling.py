"""Extraction of tax forms: extract, grade and retry, then accept or escalate.

Source: specification 003. Each form of a document has at most three attempts, the further ones also if it passes without
a required field; after a wrong tax year or a blank form there is no further attempt. The fields of the best attempt are stored even if no attempt passed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from evalkit.documents.addressed_text import build_addressed_issues
from evalkit.documents.bundle import DocumentBundle, Page, PageStatus
from evalkit.documents.page_damage import build_damage_issues
from evalkit.extraction.extraction_schema import NOT_PRESENT_VALUE, Extraction, FieldStatus, FieldValue, IterationRecord
from evalkit.extraction.field_template import FieldTemplate, get_field_template, list_field_templates
from evalkit.extraction.forms.form_extractor import FormAnswer, FormPart, FormQuestion
from evalkit.extraction.forms.form_reader import (
    GENERIC_FORM,
    PRINTED_FIELDS,
    DetectedForm,
    count_stray_amounts,
    detect_forms,
    is_continuation_page,
    is_tax_office_form_page,
)
from evalkit.extraction.forms.form_sheet import FormSheet
from evalkit.extraction.grader import (
    MAX_ATTEMPTS,
    FormAttempt,
    FormGrade,
    FormIssue,
    GraderQuestion,
    grade_form_attempt,
    lower_grade_by_model_answer,
)
from evalkit.extraction.value_grounding import FieldClaim, build_agent_failure, ground_claim
from evalkit.grounding import QuoteLocator
from evalkit.issue import Issue, IssueSeverity
from evalkit.llm.model import Model, list_normalisation_changes

ACCEPTED_BY_GRADER = "Accepted by the grader"
ATTEMPTS_EXHAUSTED = "Maximum attempts reached"
WRONG_YEAR = "Wrong tax year"
BLANK_FORM = "Blank form"
NOT_EXTRACTED = "The extractor gave no usable answer"
NOT_GRADED = "The grader gave no usable answer"
UNREADABLE_PAGE = "No text could be read on the page"


def split_into_form_parts(
    bundle: DocumentBundle, forced_template_name: str | None = None, page_numbers: Sequence[int] | None = None
) -> list[FormPart]:
    """Split a document into its forms, in page order; every page is in some part.

    A page without a form belongs to the form on the page before it if it is the back or the instructions of that form;
    other pages without a form are parts without a template. ``forced_template_name``: the template for all parts.
    ``page_numbers``: use only these pages; None: all pages.
    """
    parts: list[FormPart] = []
    for page in bundle.pages:
        if page_numbers is not None and page.page_num not in page_numbers:
            continue
        forms = detect_forms(page) if page.status.is_readable else []
        if forms:
            parts += [
                FormPart(page.page_num, page.page_num, form, form_number, len(forms))
                for form_number, form in enumerate(forms, 1)
            ]
        elif parts and _is_continuation(parts[-1], page, bundle):
            parts[-1] = replace(parts[-1], end_page=page.page_num)
        else:
            parts.append(FormPart(page.page_num, page.page_num, None))
    return [_force_template(part, bundle, forced_template_name) for part in parts] if forced_template_name else parts


def find_tax_form_pages(bundle: DocumentBundle, *, include_all: bool = False) -> tuple[int, ...]:
    """List the numbers of pages with tax forms and of their continuation pages.

    ``include_all``: list all pages; for a document that is known to consist of tax forms.
    """
    if include_all:
        return tuple(page.page_num for page in bundle.pages)
    page_numbers: list[int] = []
    last_template: FieldTemplate | None = None
    for page in bundle.pages:
        forms = detect_forms(page) if page.status.is_readable else []
        if forms:
            last_template = get_field_template(forms[-1].template_name)
        elif is_tax_office_form_page(page):
            last_template = last_template or get_field_template(GENERIC_FORM)
        elif (
            last_template is None
            or page_numbers[-1:] != [page.page_num - 1]
            or not is_continuation_page(page, last_template)
        ):
            last_template = None
            continue
        page_numbers.append(page.page_num)
    return tuple(page_numbers)


def _is_continuation(part: FormPart, page: Page, bundle: DocumentBundle) -> bool:
    if part.end_page != page.page_num - 1:
        return False
    if part.form is not None:
        return page.status.is_readable and is_continuation_page(page, get_field_template(part.form.template_name))
    return page.status.is_readable == bundle.page(part.end_page).status.is_readable


def _force_template(part: FormPart, bundle: DocumentBundle, template_name: str) -> FormPart:
    if template_name == GENERIC_FORM:
        return replace(part, form=None)
    sheet = FormSheet.from_page(bundle.page(part.start_page))
    return replace(part, form=part.form or DetectedForm(sheet, template_name, 0.0))


class FormFieldExtractor:
    """Extracts the fields of tax forms; keeps no state between documents."""

    def __init__(
        self, model: Model, *, expected_tax_year: int | None = None, forced_template_name: str | None = None
    ) -> None:
        """Set the model and the expectations about the forms.

        ``expected_tax_year``: a form for another year fails; None: any year. ``forced_template_name``: use this
        template for every form; None: detect the form's type.
        """
        self._model = model
        self._tax_year = expected_tax_year
        self._template_name = forced_template_name

    async def extract_forms(
        self, bundle: DocumentBundle, page_numbers: Sequence[int] | None = None
    ) -> tuple[Extraction, ...]:
        """Extract every form of the document, or of ``page_numbers``, in page order.

        StoreError if a model's answer could not be stored.
        """
        locator = QuoteLocator(bundle)
        parts = split_into_form_parts(bundle, self._template_name, page_numbers)
        return tuple([await self._extract_form_part(bundle, locator, part) for part in parts])

    async def _extract_form_part(self, bundle: DocumentBundle, locator: QuoteLocator, part: FormPart) -> Extraction:
        page_numbers = range(part.start_page, part.end_page + 1)
        if not any(bundle.page(page_number).status.is_readable for page_number in page_numbers):
            return _build_failed_extraction(part, UNREADABLE_PAGE, _build_unreadable_form_issue(part), [])
        graded_attempts: list[_GradedAttempt] = []
        feedback = ""
        for attempt_number in range(1, MAX_ATTEMPTS + 1):
            answer = await self._model.ask(FormQuestion(bundle, part, attempt_number, feedback, self._template_name))
            if answer.value is None:
                issue = build_agent_failure("extractor", answer.failure, "Read the form")
                return _build_failed_extraction(part, NOT_EXTRACTED, issue, graded_attempts)
            attempt, grounding_issues = _ground_answer(
                answer.value, attempt_number, bundle, locator, part, self._template_name
            )
            form_grade = _fail_ungrounded_form(grade_form_attempt(attempt, self._tax_year), grounding_issues)
            graded_attempts.append(
                _GradedAttempt(
                    attempt, form_grade, grounding_issues, answer.value.reasoning, list_normalisation_changes([answer])
                )
            )
            if form_grade.passed:
                grader_answer = await self._model.ask(GraderQuestion(bundle, attempt, part.start_page, part.end_page))
                if grader_answer.value is None:
                    issue = build_agent_failure("grader", grader_answer.failure, "Read the form")
                    return _build_failed_extraction(part, NOT_GRADED, issue, graded_attempts)
                form_grade = lower_grade_by_model_answer(form_grade, grader_answer.value, attempt.template.threshold)
                graded_attempts[-1] = graded_attempts[-1]._replace(
                    grade=form_grade, normalised=list_normalisation_changes([answer, grader_answer])
                )
            if form_grade.is_final or (form_grade.passed and not form_grade.failure_reasons):
                break
            feedback = form_grade.feedback
        pages = [bundle.page(page_number) for page_number in page_numbers]
        page_issues = [*build_damage_issues(pages), *build_addressed_issues(pages)]
        return _build_extraction(part, graded_attempts, page_issues)


class _GradedAttempt(NamedTuple):
    attempt: FormAttempt
    grade: FormGrade
    grounding_issues: tuple[Issue, ...]
    reasoning: str
    normalised: tuple[str, ...]


def _ground_answer(
    answer: FormAnswer,
    attempt_number: int,
    bundle: DocumentBundle,
    locator: QuoteLocator,
    part: FormPart,
    template_name: str | None,
) -> tuple[FormAttempt, tuple[Issue, ...]]:
    """Return the answer's fields that appear on the pages, and issues for the others."""
    template = get_field_template(template_name) if template_name else find_template_for_type(answer.likely_type)
    page_numbers = range(part.start_page, part.end_page + 1)
    claims = {claim.name: claim for claim in answer.fields}
    fields: dict[str, FieldValue] = {}
    issues: list[Issue] = []
    for field in template.fields:
        form_field = claims.get(field.name)
        if form_field is None:
            fields[field.name] = NOT_PRESENT_VALUE
            continue
        claim = FieldClaim(
            form_field.value,
            raw=form_field.raw_text or form_field.value,
            page=form_field.page,
            confidence=min(max(form_field.confidence, 0.0), 1.0),
            is_ambiguous=form_field.is_ambiguous,
            entry_line_spans=form_field.rows,
        )
        value, issue = ground_claim(claim, field, bundle, locator, page_numbers, "extractor")
        if value.value is not None and field.normalise(value.value) is None:
            # Something is entered, but its meaning is unclear.
            value = value.model_copy(update={"status": FieldStatus.AMBIGUOUS, "value": None})
        fields[field.name] = value
        issues += [issue] if issue else []
    text = "\n".join(bundle.page(page_number).text for page_number in page_numbers)
    document_type = answer.likely_type if not template_name else template.document_type
    confidence = min(max(answer.overall_confidence, 0.0), 1.0)
    is_recognised = any(bundle.page(page_number).status is PageStatus.OCR for page_number in page_numbers)
    stray_amount_count = (
        count_stray_amounts(part.form.sheet, template, (field_value.raw or "" for field_value in fields.values()))
        if part.form
        else 0
    )
    attempt = FormAttempt(
        template,
        document_type,
        fields,
        confidence,
        answer.alternative_types,
        attempt_number,
        text,
        is_recognised,
        stray_amount_count,
    )
    return attempt, tuple(issues)


def find_template_for_type(document_type: str) -> FieldTemplate:
    """Return the tax template of a document type; the generic template if none fits."""
    return next(
        (template for template in list_field_templates("tax") if template.document_type == document_type),
        get_field_template(GENERIC_FORM),
    )


def _fail_ungrounded_form(form_grade: FormGrade, grounding_issues: Sequence[Issue]) -> FormGrade:
    """Fail a form that has values which are not on the page."""
    if not grounding_issues:
        return form_grade
    issue_lines = "\n".join(f"- {issue.message}" for issue in grounding_issues)
    feedback = f"{form_grade.feedback}\nNot on the page:\n{issue_lines}".strip()
    return replace(form_grade, passed=False, feedback=feedback)


def _build_extraction(
    part: FormPart, graded_attempts: Sequence[_GradedAttempt], page_issues: Sequence[Issue]
) -> Extraction:
    best = graded_attempts[-1]
    if not best.grade.is_final:
        best = max(graded_attempts, key=lambda attempt: (attempt.grade.passed, attempt.grade.score))
    form_grade, issues = best.grade, list(best.grade.issues)
    if form_grade.passed:
        reason = ACCEPTED_BY_GRADER
    elif form_grade.is_final:
        reason = (
            BLANK_FORM
            if form_grade.document_type == GENERIC_FORM
            and not any(value.value for name, value in best.attempt.fields.items() if name not in PRINTED_FIELDS)
            else WRONG_YEAR
        )
    else:
        reason = ATTEMPTS_EXHAUSTED
        issues.append(
            FormIssue(
                "WARNING",
                "low_confidence",
                "Document could not be confidently classified after multiple attempts. Manual review recommended.",
            )
        )
    fields = best.attempt.fields
    all_issues = [
        *page_issues,
        *best.grounding_issues,
        *(form_issue.to_issue(fields, form_grade.document_type, best.attempt.template) for form_issue in issues),
    ]
    is_clean = all(issue.severity is IssueSeverity.MINOR for issue in all_issues)
    return Extraction(
        template=best.attempt.template.name,
        document_type=form_grade.document_type,
        start_page=part.start_page,
        end_page=part.end_page,
        score=round(form_grade.score / 100, 4),
        confidence=round(form_grade.confidence, 4),
        met_threshold=form_grade.passed,
        stopped_reason=reason,
        iterations=len(graded_attempts),
        history=_build_history(graded_attempts),
        issues=tuple(all_issues),
        decision="AUTO_ACCEPT" if form_grade.passed and is_clean else "ESCALATE_TO_SME",
        fields=dict(fields),
    )


def _build_history(graded_attempts: Sequence[_GradedAttempt]) -> tuple[IterationRecord, ...]:
    records: list[IterationRecord] = []
    for number, graded_attempt in enumerate(graded_attempts, 1):
        score = round(graded_attempt.grade.score / 100, 4)
        records.append(
            IterationRecord(
                iteration=number,
                template=graded_attempt.attempt.template.name,
                score=score,
                scores=dict(graded_attempt.grade.score_part_shares),
                improvement=round(score - (records[-1].score or 0), 4) if records else None,
                confidence=round(graded_attempt.attempt.confidence, 4),
                feedback=graded_attempt.grade.feedback if number < len(graded_attempts) else "",
                reasoning=graded_attempt.reasoning,
                issues=(*(str(issue) for issue in graded_attempt.grade.issues), *graded_attempt.grade.failure_reasons),
                fields=dict(graded_attempt.attempt.fields),
                normalised=graded_attempt.normalised,
            )
        )
    return tuple(records)


# Failures


def _build_failed_extraction(
    part: FormPart, stopped_reason: str, issue: Issue, graded_attempts: Sequence[_GradedAttempt]
) -> Extraction:
    """Build an extraction without a score, with the fields of the last attempt."""
    template_name = part.form.template_name if part.form else GENERIC_FORM
    last = graded_attempts[-1] if graded_attempts else None
    return Extraction(
        template=last.attempt.template.name if last else template_name,
        document_type=last.attempt.document_type if last else get_field_template(template_name).document_type,
        start_page=part.start_page,
        end_page=part.end_page,
        score=None,
        confidence=0.0,
        met_threshold=False,
        stopped_reason=stopped_reason,
        iterations=len(graded_attempts),
        history=_build_history(graded_attempts),
        issues=(issue,),
        decision="ESCALATE_TO_SME",
        fields=dict(last.attempt.fields)
        if last
        else {field.name: NOT_PRESENT_VALUE for field in get_field_template(template_name).fields},
    )


def _build_unreadable_form_issue(part: FormPart) -> Issue:
    return Issue.create(
        "reader",
        "READER-NO-TEXT",
        IssueSeverity.BLOCKER,
        f"No text could be read on page {part.start_page}"
        + (f" to {part.end_page}" if part.end_page > part.start_page else ""),
        page=part.start_page,
        suggested_fix="Read the page on the screen, or scan it again",
        facts={"pages": ", ".join(map(str, range(part.start_page, part.end_page + 1)))},
    )
