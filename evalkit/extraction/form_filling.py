"""Specification 003's loop: extract, grade, feed back, extract again; then accept the form or give it to a person.

Every form of a document is filled in for itself. At most three attempts are made; a wrong year or a blank form ends
them at once. The best attempt's fields are kept also where none passed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from evalkit.documents.bundle import DocumentBundle, Page, PageStatus
from evalkit.extraction.form_extractor import FormAnswer, FormQuestion, Part
from evalkit.extraction.forms import GENERIC, OWN_PRINT, Form, continues, forms_on, is_official, stray_amounts
from evalkit.extraction.grader import (
    MAX_ATTEMPTS,
    Attempt,
    FormIssue,
    Grade,
    GraderAnswer,
    GraderQuestion,
    grade,
    lowered,
    missing_fields,
)
from evalkit.extraction.schema import NOT_PRESENT, Extraction, FieldStatus, FieldValue, IterationRecord
from evalkit.extraction.sheet import Sheet
from evalkit.extraction.template import FieldTemplate, template, templates
from evalkit.extraction.values import Claim, proven
from evalkit.grounding import Locator
from evalkit.issue import Issue, IssueSeverity, numbered
from evalkit.llm.model import Answer, Model

PASSED = "Accepted by the grader"
EXHAUSTED = "Maximum attempts reached"
WRONG_YEAR = "Wrong tax year"
BLANK = "Blank form"
NOT_EXTRACTED = "The extractor gave no usable answer"
NOT_GRADED = "The grader gave no usable answer"
UNREADABLE = "Nobody could read the page"


def form_parts(bundle: DocumentBundle, fixed: str | None = None, pages: Sequence[int] | None = None) -> list[Part]:
    """The forms of a document, in the order of their pages; every page belongs to one at least.

    A page without a form belongs to the form before it where it is its back or its instructions; other pages in a row
    are a document of the generic kind. ``fixed``: the template that all are taken for. ``pages``: none but these.
    """
    parts: list[Part] = []
    for page in bundle.pages:
        if pages is not None and page.page_num not in pages:
            continue
        found = forms_on(page) if page.status.readable else []
        if found:
            parts += [Part(page.page_num, page.page_num, one, at, len(found)) for at, one in enumerate(found, 1)]
        elif parts and _goes_on(parts[-1], page, bundle):
            last = parts[-1]
            parts[-1] = Part(last.start_page, page.page_num, last.form, last.number, last.of)
        else:
            parts.append(Part(page.page_num, page.page_num, None))
    return [_fixed(part, bundle, fixed) for part in parts] if fixed else parts


def form_pages(bundle: DocumentBundle, *, everything: bool = False) -> tuple[int, ...]:
    """The pages that are forms of the tax office, or belong to one.

    ``everything``: all pages, where the document is known to be about taxes.
    """
    if everything:
        return tuple(page.page_num for page in bundle.pages)
    found: list[int] = []
    last: FieldTemplate | None = None
    for page in bundle.pages:
        forms = forms_on(page) if page.status.readable else []
        if forms:
            last = template(forms[-1].template)
        elif is_official(page):
            last = last or template(GENERIC)
        elif last is None or found[-1:] != [page.page_num - 1] or not continues(page, last):
            last = None
            continue
        found.append(page.page_num)
    return tuple(found)


def _goes_on(part: Part, page: Page, bundle: DocumentBundle) -> bool:
    if part.end_page != page.page_num - 1:
        return False
    if part.form is not None:
        return page.status.readable and continues(page, template(part.form.template))
    return page.status.readable == bundle.page(part.end_page).status.readable


def _fixed(part: Part, bundle: DocumentBundle, name: str) -> Part:
    form = part.form or Form(Sheet.of(bundle.page(part.start_page)), name, 0.0)
    return Part(part.start_page, part.end_page, None if name == GENERIC else form, part.number, part.of)


@dataclass(frozen=True)
class Filled:
    """One form, filled in as far as it could be, and what was asked for it."""

    extraction: Extraction
    answers: tuple[Answer[FormAnswer] | Answer[GraderAnswer], ...] = ()


class FormFilling:
    """Fills in the forms of documents; keeps nothing between them."""

    def __init__(self, model: Model, *, tax_year: int | None = None, fixed: str | None = None) -> None:
        """``tax_year``: the year that is needed; ``fixed``: the template that every form is taken for."""
        self._model = model
        self._tax_year = tax_year
        self._fixed = fixed

    async def fill(self, bundle: DocumentBundle, pages: Sequence[int] | None = None) -> tuple[Filled, ...]:
        """Every form of the document, or on these ``pages``. StoreError where an answer could not be kept."""
        locator = Locator(bundle)
        done: list[Filled] = []
        start = 1
        for part in form_parts(bundle, self._fixed, pages):
            filled = await self._part(bundle, locator, part)
            issues = _numbered(filled.extraction.issues, start)
            start += len(issues)
            done.append(Filled(filled.extraction.model_copy(update={"issues": issues}), filled.answers))
        return tuple(done)

    async def _part(self, bundle: DocumentBundle, locator: Locator, part: Part) -> Filled:
        pages = range(part.start_page, part.end_page + 1)
        if not any(bundle.page(number).status.readable for number in pages):
            return Filled(_failed(part, UNREADABLE, [_reader_issue(part)]))
        tries: list[_Try] = []
        answers: list[Answer[FormAnswer] | Answer[GraderAnswer]] = []
        feedback, missing = "", tuple[str, ...]()
        for number in range(1, MAX_ATTEMPTS + 1):
            question = FormQuestion(bundle, part, number, feedback, missing, self._fixed)
            answer = await self._model.ask(question)
            answers.append(answer)
            if answer.value is None:
                return Filled(
                    _failed(part, NOT_EXTRACTED, [_agent_failed("extractor", answer.failure)], tries), tuple(answers)
                )
            attempt, unproven = _attempt(answer.value, number, bundle, locator, part, self._fixed)
            graded = _with_proof(grade(attempt, self._tax_year), unproven)
            if graded.passed:
                said = await self._model.ask(GraderQuestion(bundle, attempt, part.start_page, part.end_page))
                answers.append(said)
                if said.value is None:
                    tries.append(_Try(attempt, graded, unproven, answer.value.reasoning))
                    return Filled(
                        _failed(part, NOT_GRADED, [_agent_failed("grader", said.failure)], tries), tuple(answers)
                    )
                graded = lowered(graded, said.value, attempt.template.threshold)
            tries.append(_Try(attempt, graded, unproven, answer.value.reasoning))
            if graded.passed or graded.is_final:
                break
            feedback, missing = graded.feedback, missing_fields(attempt.template, graded.field_results)
        return Filled(_extraction(part, tries), tuple(answers))


@dataclass(frozen=True)
class _Try:
    attempt: Attempt
    grade: Grade
    unproven: tuple[Issue, ...]
    reasoning: str


def _attempt(
    answer: FormAnswer, number: int, bundle: DocumentBundle, locator: Locator, part: Part, fixed: str | None
) -> tuple[Attempt, tuple[Issue, ...]]:
    """The answer as far as the pages bear it out, and the issues of what they do not."""
    known = template(fixed) if fixed else template_of(answer.likely_type)
    pages = range(part.start_page, part.end_page + 1)
    claims = {claim.name: claim for claim in answer.fields}
    fields: dict[str, FieldValue] = {}
    issues: list[Issue] = []
    for field in known.fields:
        told = claims.get(field.name)
        if told is None:
            fields[field.name] = NOT_PRESENT
            continue
        claim = Claim(
            told.value,
            raw=told.raw_text or told.value,
            page=told.page,
            confidence=min(max(told.confidence, 0.0), 1.0),
            is_ambiguous=told.is_ambiguous,
            rows=told.rows,
        )
        made = proven(claim, field, bundle, locator, pages, "extractor")
        value = made.field
        if value.value is not None and field.normal(value.value) is None:
            # Something stands there, and what it means cannot be told.
            value = value.model_copy(update={"status": FieldStatus.AMBIGUOUS, "value": None})
        fields[field.name] = value
        issues += [made.issue] if made.issue else []
    text = "\n".join(bundle.page(page).text for page in pages)
    kind = answer.likely_type if not fixed else known.document_type
    confidence = min(max(answer.overall_confidence, 0.0), 1.0)
    scanned = any(bundle.page(page).status is PageStatus.OCR for page in pages)
    strays = stray_amounts(part.form.sheet, known, (one.raw or "" for one in fields.values())) if part.form else 0
    whole = Attempt(known, kind, fields, confidence, answer.alternative_types, number, text, scanned, strays)
    return whole, tuple(issues)


def template_of(document_type: str) -> FieldTemplate:
    """The form's template; the generic one for every other type of document."""
    return next((one for one in templates("tax") if one.document_type == document_type), template(GENERIC))


def _with_proof(graded: Grade, unproven: Sequence[Issue]) -> Grade:
    """What is not on the page is worse than what is missing: no such form passes."""
    if not unproven:
        return graded
    told = "\n".join(f"- {issue.message}" for issue in unproven)
    feedback = f"{graded.feedback}\nNot on the page:\n{told}".strip()
    return Grade(**{**vars(graded), "passed": False, "feedback": feedback})


def _extraction(part: Part, tries: Sequence[_Try]) -> Extraction:
    last = tries[-1]
    best = last if last.grade.passed or last.grade.is_final else max(tries, key=lambda one: one.grade.score)
    graded, issues = best.grade, list(best.grade.issues)
    if graded.passed:
        reason = PASSED
    elif graded.is_final:
        reason = BLANK if graded.document_type == GENERIC and not _entered(best.attempt.fields) else WRONG_YEAR
    else:
        reason = EXHAUSTED
        issues.append(
            FormIssue(
                "WARNING",
                "low_confidence",
                "Document could not be confidently classified after multiple attempts. Manual review recommended.",
            )
        )
    fields = best.attempt.fields
    told = [*best.unproven, *(one.issue(fields, graded.document_type) for one in issues)]
    is_clean = all(issue.severity is IssueSeverity.MINOR for issue in told)
    return Extraction(
        template=best.attempt.template.name,
        document_type=graded.document_type,
        start_page=part.start_page,
        end_page=part.end_page,
        score=round(graded.score / 100, 4),
        confidence=round(graded.confidence, 4),
        met_threshold=graded.passed,
        stopped_reason=reason,
        iterations=len(tries),
        history=_history(tries),
        issues=tuple(told),
        decision="AUTO_ACCEPT" if graded.passed and is_clean else "ESCALATE_TO_SME",
        fields=dict(fields),
    )


def _entered(fields: Mapping[str, FieldValue]) -> bool:
    return any(value.value for name, value in fields.items() if name not in OWN_PRINT)


def _history(tries: Sequence[_Try]) -> tuple[IterationRecord, ...]:
    records: list[IterationRecord] = []
    for number, one in enumerate(tries, 1):
        score = round(one.grade.score / 100, 4)
        records.append(
            IterationRecord(
                iteration=number,
                template=one.attempt.template.name,
                score=score,
                scores=dict(one.grade.scores),
                improvement=round(score - (records[-1].score or 0), 4) if records else None,
                confidence=round(one.attempt.confidence, 4),
                feedback=one.grade.feedback if number < len(tries) else "",
                reasoning=one.reasoning,
                issues=(*(str(issue) for issue in one.grade.issues), *one.grade.failure_reasons),
                fields=dict(one.attempt.fields),
            )
        )
    return tuple(records)


# What could not be done


def _failed(part: Part, reason: str, issues: Iterable[Issue], tries: Sequence[_Try] = ()) -> Extraction:
    """Broken is not failed: no score, and a person sees it; the fields of the attempts before are kept."""
    name = part.form.template if part.form else GENERIC
    last = tries[-1] if tries else None
    return Extraction(
        template=last.attempt.template.name if last else name,
        document_type=last.attempt.document_type if last else template(name).document_type,
        start_page=part.start_page,
        end_page=part.end_page,
        score=None,
        confidence=0.0,
        met_threshold=False,
        stopped_reason=reason,
        iterations=len(tries),
        history=_history(tries),
        issues=tuple(issues),
        decision="ESCALATE_TO_SME",
        fields=dict(last.attempt.fields) if last else {field.name: NOT_PRESENT for field in template(name).fields},
    )


def _agent_failed(agent: str, failure: str | None) -> Issue:
    return Issue.of(
        "grader" if agent == "grader" else "extractor",
        f"{agent.upper()}-AGENT-FAILED",
        IssueSeverity.BLOCKER,
        f"The {agent} could not answer: {failure or 'no reason given'}",
        suggested_fix="Read the form, or run the document again",
    )


def _reader_issue(part: Part) -> Issue:
    return Issue.of(
        "reader",
        "READER-NO-TEXT",
        IssueSeverity.BLOCKER,
        f"Nobody could read page {part.start_page}"
        + (f" to {part.end_page}" if part.end_page > part.start_page else ""),
        page=part.start_page,
        suggested_fix="Read it on the screen, or scan it again",
    )


def _numbered(issues: Sequence[Issue], start: int) -> tuple[Issue, ...]:
    """With ids that run on through the document."""

    def each() -> Iterator[Issue]:
        for number, issue in enumerate(issues, start):
            yield from numbered(issue.agent, [issue], number)

    return tuple(each())
