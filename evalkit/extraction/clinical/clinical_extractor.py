"""Extract fields from a clinical report, and check each value against its pages.

A language model is asked for the values; offline, ``clinical_reader.py`` answers the same question. In both cases, a
value that is not on the pages is dropped and raises an issue.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, NamedTuple

from evalkit.core.grouping import group_pairs, split_into_runs
from evalkit.core.records import DiscreetModel
from evalkit.documents.bundle import DocumentBundle, Page
from evalkit.documents.search import find_boxes_of_text_span
from evalkit.extraction.clinical.clinical_reader import (
    find_field_values,
    find_line_mentioning_field,
    find_values_near_mentions,
)
from evalkit.extraction.clinical.clinical_rules import FieldValues, get_base_field_name, get_found_values
from evalkit.extraction.clinical.field_contradictions import settle_contradictions
from evalkit.extraction.clinical.report_statements import SURE_CONFIDENCE
from evalkit.extraction.clinical.report_structure import ClinicalReport
from evalkit.extraction.extraction_schema import NOT_PRESENT_VALUE, FieldStatus, FieldValue
from evalkit.extraction.field_template import FieldNeed, FieldTemplate, TemplateField
from evalkit.extraction.optimizer import EvaluationFeedback, ExtractionOptimizer
from evalkit.extraction.value_grounding import FieldClaim, ground_claim
from evalkit.grounding.locate import QuoteLocator, find_whole_word_spans
from evalkit.grounding.normalise import canonicalise
from evalkit.issue import Issue
from evalkit.llm.embedded import EmbeddedModel
from evalkit.llm.model import DocumentQuestion, Model, list_normalisation_changes
from evalkit.llm.prompts import fence_document, fill_prompt_template


@dataclass(frozen=True)
class ClinicalAttempt:
    """The result of one attempt to extract the fields of a report."""

    bundle: DocumentBundle
    page_numbers: tuple[int, ...]
    """Numbers of the readable pages that were read."""
    template: FieldTemplate
    report: ClinicalReport
    field_mentions: frozenset[str]
    """Names of the fields that the report mentions, or that the offline reader finds: without a value they are missing."""
    fields: dict[str, FieldValue]
    """Extracted values by name: ``grade``; for multi-value fields by field and item: ``ihcMarkers.ER``."""
    grounding_issues: tuple[Issue, ...] = ()
    """Issues about claimed values that are not on the pages."""
    reasoning: str = ""
    failure: str | None = None
    """The reason why the extractor could not answer; None if it did."""
    normalised: tuple[str, ...] = ()
    """Lossless changes made to read the extractor's answers."""


def find_mentioned_fields(template: FieldTemplate, report: ClinicalReport) -> frozenset[str]:
    """Return the scored fields that a report mentions, found without a model.

    The second pass is reliable for stains and tests, which have names; for other formats it finds too much.
    """
    return frozenset(
        field.name
        for field in template.scored_fields
        if find_field_values(field, report, include_second_pass=field.format in _NAMED_FORMATS)
        or find_line_mentioning_field(field, report) is not None
    )


#: Formats whose values have names: stains and laboratory tests.
_NAMED_FORMATS = ("marker", "lab")


def find_fields_absent_from_document(
    template: FieldTemplate, fields: FieldValues, mentioned_names: Iterable[str]
) -> frozenset[str]:
    """Return the scored fields that a document does not mention.

    Such a field has no value, not even an ambiguous one, and is not in ``mentioned_names``. Source: specification 002,
    section 7.3.
    """
    mentioned = frozenset(mentioned_names)
    return frozenset(
        field.name
        for field in template.scored_fields
        if field.name not in mentioned
        and not get_found_values(fields, field.name)
        and not any(
            get_base_field_name(key) == field.name and value.status is FieldStatus.AMBIGUOUS
            for key, value in fields.items()
        )
    )


def split_pages_by_size(
    bundle: DocumentBundle, page_numbers: Sequence[int], max_characters: int | None
) -> list[tuple[int, ...]]:
    """Group page numbers into runs with at most ``max_characters`` of text each.

    None: all pages are one run. A page with more characters is a run of its own.
    """
    if max_characters is None:
        return [tuple(page_numbers)]
    runs = split_into_runs(
        page_numbers,
        lambda run, number: sum(len(bundle.page(page).text) for page in (*run, number)) <= max_characters,
    )
    return [tuple(run) for run in runs]


#: Values of one attempt beyond this number are ignored.
_MAX_CLAIMS = 500
_MAX_ITEM_LENGTH = 60


class ClaimedField(DiscreetModel, frozen=True, extra="forbid"):
    """A value that the extractor claims to have read in the report."""

    field: str
    """The field's name in the template."""
    item: str | None = None
    """For a multi-value field: the name of this value, such as ``ER``."""
    status: Literal["found", "not_present", "ambiguous"] = "found"
    value: str | None = None
    """The value in the report's words."""
    quote: str | None = None
    """The sentence or table row that contains the value."""
    page: int | None = None
    """Page of the value, from 1; of a long text, the first page."""
    end_page: int | None = None
    """For a long text: its last page."""
    first_words: str | None = None
    last_words: str | None = None
    """For a long text: first and last words are given instead of the whole text."""
    confidence: float = 1.0


class PlacedField(ClaimedField):
    """A value found by the offline reader, with its exact place."""

    spans: tuple[tuple[int, int, int], ...]
    """Page number, and start and end in the page's text; several if the value continues on another page."""


class ClaimedFields(DiscreetModel, frozen=True, extra="forbid"):
    """The extractor's answer: all values that it claims to have read."""

    reasoning: str = ""
    fields: tuple[ClaimedField, ...]


@dataclass(frozen=True)
class RetryContext:
    """The evaluated attempt that a retry should improve."""

    feedback: EvaluationFeedback
    previous_fields: Mapping[str, FieldValue]
    iteration: int
    """Number of the attempt that the feedback is about, from 1."""
    target_score: float = 0.95


class Look(NamedTuple):
    """The way in which one attempt reads the report."""

    reasoning: str
    """The offline reader's way."""
    instruction: str = ""
    """The language model's way, as a retry prompt ends with it."""


#: The way of each attempt, so that none repeats the attempt before; the last row is that of all further attempts.
LOOKS = (
    Look("Read by labels, tables and the words of findings."),
    Look(
        "Read again for the doubted fields: less usual labels, lines next to a label, and words anywhere in the report.",
        "Read the report from its last page to its first, tables and addenda included, for the priority fields.",
    ),
    Look(
        "Read the lines that mention a field without a value, history and method included.",
        "List for yourself every line that mentions a priority field, then answer from these lines alone.",
    ),
)


class ClinicalQuestion(DocumentQuestion[ClaimedFields]):
    """Question to a model: which values do these pages state for the fields?"""

    role = "extractor"
    answer_type = ClaimedFields

    def __init__(
        self,
        bundle: DocumentBundle,
        page_numbers: Sequence[int],
        template: FieldTemplate,
        retry: RetryContext | None = None,
        report: ClinicalReport | None = None,
    ) -> None:
        """Set the question's pages and fields.

        ``page_numbers``: readable pages of the report. ``retry``: the attempt to improve; None for the first attempt.
        ``report``: the structure of these pages, if it was computed before.
        """
        self.bundle = bundle
        self._pages = tuple(bundle.page(number) for number in page_numbers)
        self._template = template
        self._retry = retry
        self._report = report or ClinicalReport(self._pages)

    def render_prompt(self) -> str:
        """Render the report and the fields; for a retry, also feedback on the attempt."""
        prompt = fill_prompt_template(
            "Clinical_Extractor",
            document=fence_document(self.bundle, self._pages),
            report=self._template.display_name,
            fields=render_field_list(self._template),
        )
        if self._retry is None:
            return prompt
        retry = self._retry
        return ExtractionOptimizer().build_optimized_prompt(
            prompt,
            retry.feedback,
            _map_plain_values(retry.previous_fields, self._template),
            retry.iteration,
            target=retry.target_score,
            instruction=LOOKS[min(retry.iteration, len(LOOKS) - 1)].instruction,
        )

    def offline(self) -> ClaimedFields:
        """Read the report by rules; use the second pass for fields with problems."""
        retry = self._retry
        focus_fields = (
            frozenset(get_base_field_name(issue.field) for issue in retry.feedback.issues) if retry else frozenset()
        )
        wrong_values = _collect_criticised_raw_values(retry) if retry else {}
        claims: list[ClaimedField] = []
        for field in self._template.fields:
            if field.reader == "whole_text":
                continue
            readings = find_field_values(field, self._report, include_second_pass=field.name in focus_fields)
            if not readings and retry and retry.iteration > 1:
                readings = list(islice(find_values_near_mentions(field, self._report), 1))
            other_readings = [reading for reading in readings if reading.text not in wrong_values.get(field.name, ())]
            claims += [
                PlacedField(
                    field=field.name,
                    item=reading.item or None,
                    value=reading.text,
                    page=reading.page.page_num,
                    confidence=reading.confidence,
                    spans=tuple((page.page_num, start, end) for page, start, end in reading.spans),
                )
                for reading in (readings if field.many else (other_readings or readings)[:1])
            ]
            if not readings:
                claims.append(ClaimedField(field=field.name, status="not_present"))
        look = LOOKS[min(retry.iteration if retry else 0, len(LOOKS) - 1)]
        return ClaimedFields(reasoning=look.reasoning, fields=tuple(claims))


def render_field_list(template: FieldTemplate) -> str:
    """Render the template's fields for a prompt, grouped by importance.

    Source: specification 002, appendix A.1.
    """
    titles = {
        FieldNeed.REQUIRED: "Required",
        FieldNeed.IMPORTANT: "Important",
        FieldNeed.OPTIONAL: "Optional",
        FieldNeed.EXTRA: "Further",
    }
    blocks = []
    for need, title in titles.items():
        field_lines = [
            f"- {field.name}: {field.description}"
            + (" (several values)" if field.many else "")
            + (" (long text)" if field.reader == "section" else "")
            for field in template.get_fields_by_need(need)
            if field.reader != "whole_text"
        ]
        if field_lines:
            blocks.append("\n".join([f"{title} fields:", *field_lines]))
    return "\n\n".join(blocks)


def _map_plain_values(fields: Mapping[str, FieldValue], template: FieldTemplate) -> dict[str, Any]:
    """Map each field of an attempt to its words on the page; None if not found."""
    text_fields = {field.name for field in template.fields if field.reader == "whole_text"}
    return {
        name: value.raw if value.is_found else None
        for name, value in fields.items()
        if get_base_field_name(name) not in text_fields
    }


def _collect_criticised_raw_values(retry: RetryContext) -> dict[str, set[str]]:
    criticised_fields = {issue.field for issue in retry.feedback.issues if issue.severity != "minor"}
    wrong_values = group_pairs(
        (get_base_field_name(name), value.raw)
        for name, value in retry.previous_fields.items()
        if name in criticised_fields and value.raw
    )
    return {name: set(values) for name, values in wrong_values.items()}


class ClinicalExtractor:
    """Asks a model for the values in a report, and checks them against the pages."""

    def __init__(self, model: Model | None = None, *, window_characters: int | None = None) -> None:
        """Set the model to ask; default: the built-in model.

        ``window_characters``: most characters of the report in one question; None: the whole report.
        """
        self._model = model or EmbeddedModel()
        self._window_characters = window_characters

    async def extract(
        self,
        bundle: DocumentBundle,
        page_numbers: Sequence[int],
        template: FieldTemplate,
        retry: RetryContext | None = None,
        report: ClinicalReport | None = None,
        field_mentions: frozenset[str] | None = None,
    ) -> ClinicalAttempt:
        """Make one attempt; its ``failure`` is set if the model gave no usable answer.

        ``retry``: the attempt to improve. ``report`` and ``field_mentions``: reused if they were computed before.
        """
        report = report or ClinicalReport([bundle.page(number) for number in page_numbers])
        windows = split_pages_by_size(bundle, page_numbers, self._window_characters)
        questions = [
            ClinicalQuestion(bundle, window, template, retry, report if len(windows) == 1 else None)
            for window in windows
        ]
        answers = await asyncio.gather(*(self._model.ask(question) for question in questions))
        failed_answer = next((answer for answer in answers if answer.value is None), None)
        usable_answers = [answer.value for answer in answers if answer.value is not None]
        claims = [claim for answer in usable_answers for claim in answer.fields][:_MAX_CLAIMS]
        fields, grounding_issues = ground_claims(claims, bundle, page_numbers, template)
        return ClinicalAttempt(
            bundle=bundle,
            page_numbers=tuple(page_numbers),
            template=template,
            report=report,
            field_mentions=field_mentions or find_mentioned_fields(template, report),
            fields=settle_contradictions(fields, template, report),
            grounding_issues=grounding_issues,
            reasoning=" ".join(answer.reasoning for answer in usable_answers).strip(),
            failure=(failed_answer.failure or "no answer") if failed_answer else None,
            normalised=list_normalisation_changes(answers),
        )


def ground_claims(
    claims: Iterable[ClaimedField], bundle: DocumentBundle, page_numbers: Sequence[int], template: FieldTemplate
) -> tuple[dict[str, FieldValue], tuple[Issue, ...]]:
    """Search for the claimed values on the pages; return all fields, and issues.

    Claims about fields that the template does not have are dropped. Of several claims about one field or item, the
    first that is on the pages counts.
    """
    locator = QuoteLocator(bundle)
    claims_by_field: dict[str, dict[str, list[ClaimedField]]] = {}
    for claim in claims:
        field = template.get_field(claim.field)
        if field is not None:
            claims_by_field.setdefault(field.name, {}).setdefault(
                _build_value_name(field, claim, claims_by_field), []
            ).append(claim)
    fields: dict[str, FieldValue] = {}
    issues: list[Issue] = []
    for field in template.fields:
        if field.reader == "whole_text":
            fields[field.name] = _build_whole_text_value(bundle, page_numbers)
            continue
        held_values: dict[str, FieldValue] = {}
        for name, item_claims in claims_by_field.get(field.name, {}).items():
            value, issue = _ground_first_claim(item_claims, field, name, bundle, locator, page_numbers)
            issues += [issue] if issue else []
            if value.status is not FieldStatus.NOT_PRESENT or not field.many:
                held_values[name] = value
        fields |= held_values or {field.name: NOT_PRESENT_VALUE}
    return fields, tuple(issues)


def _build_value_name(
    field: TemplateField, claim: ClaimedField, claims_by_field: Mapping[str, Mapping[str, object]]
) -> str:
    if not field.many or claim.status == "not_present":
        return field.name
    item = " ".join((claim.item or "").replace(".", " ").split())[:_MAX_ITEM_LENGTH]
    return f"{field.name}.{item or len(claims_by_field.get(field.name, {})) + 1}"


def _ground_first_claim(
    claims: Sequence[ClaimedField],
    field: TemplateField,
    value_name: str,
    bundle: DocumentBundle,
    locator: QuoteLocator,
    page_numbers: Sequence[int],
) -> tuple[FieldValue, Issue | None]:
    results: list[tuple[FieldValue, Issue | None]] = []
    for claim in claims:
        result = _ground_claimed_field(claim, field, bundle, locator, page_numbers)
        if result[0].is_found:
            return result
        results.append(result)
    value = results[0][0] if results else NOT_PRESENT_VALUE
    # A claim that a field is absent does not hide a later, invented value.
    issue = next((issue for _, issue in results if issue), None)
    return value, issue.model_copy(update={"location": value_name}) if issue else None


def _ground_claimed_field(
    claim: ClaimedField,
    field: TemplateField,
    bundle: DocumentBundle,
    locator: QuoteLocator,
    page_numbers: Sequence[int],
) -> tuple[FieldValue, Issue | None]:
    value = None if claim.status == "not_present" else claim.value
    raw = claim.quote or value
    spans = claim.spans if isinstance(claim, PlacedField) else ()
    confidence = min(max(claim.confidence, 0.0), 1.0)
    if field.reader == "section" and claim.status != "not_present":
        if spans := spans or _find_text_between_end_words(claim, bundle, page_numbers):
            return _build_section_value(spans, claim, bundle, confidence), None
        if not value:  # the first and last words are not on the pages
            value = raw = " … ".join(filter(None, (claim.first_words, claim.last_words)))
    return ground_claim(
        FieldClaim(
            value=value,
            raw=raw,
            page=claim.page,
            confidence=confidence,
            is_ambiguous=claim.status == "ambiguous",
            span=spans[0][1:] if spans else None,
            entry_line_spans=tuple(span[1:] for span in spans) if len(spans) > 1 else (),
        ),
        field,
        bundle,
        locator,
        page_numbers,
        "extractor",
    )


PageNumberSpans = tuple[tuple[int, int, int], ...]


def _find_text_between_end_words(
    claim: ClaimedField, bundle: DocumentBundle, page_numbers: Sequence[int]
) -> PageNumberSpans:
    """Find a long text by its first and last words; empty if these are not found."""
    first_page = claim.page
    if not claim.first_words or not claim.last_words or first_page is None or first_page not in page_numbers:
        return ()
    last_page = claim.end_page if claim.end_page is not None and claim.end_page in page_numbers else first_page
    starts = [
        start for start, _ in find_whole_word_spans(canonicalise(claim.first_words), bundle.page(first_page).text)
    ]
    ends = [end for _, end in find_whole_word_spans(canonicalise(claim.last_words), bundle.page(last_page).text)]
    if first_page == last_page:
        return next((((first_page, start, end),) for start in starts for end in ends if end > start), ())
    if not starts or not ends or last_page < first_page:
        return ()
    middle_spans = [(page.page_num, 0, len(page.text)) for page in bundle.iter_pages(first_page + 1, last_page - 1)]
    return ((first_page, starts[0], len(bundle.page(first_page).text)), *middle_spans, (last_page, 0, ends[0]))


def _build_section_value(
    spans: PageNumberSpans, claim: ClaimedField, bundle: DocumentBundle, confidence: float
) -> FieldValue:
    """Build the value of a long text by copying it from its pages."""
    text = "\n".join(bundle.page(number).text[start:end] for number, start, end in spans)
    first_page, start, end = spans[0]
    return FieldValue(
        status=FieldStatus.AMBIGUOUS if claim.status == "ambiguous" else FieldStatus.FOUND,
        value=" ".join(text.split()),
        raw=text,
        page=first_page,
        quote=bundle.page(first_page).text[start:end],
        boxes=tuple(
            box for number, start, end in spans for box in find_boxes_of_text_span(bundle.page(number), start, end)
        ),
        confidence=confidence,
    )


def _build_whole_text_value(bundle: DocumentBundle, page_numbers: Sequence[int]) -> FieldValue:
    """Build the value that is the whole text of the pages, without asking a model."""
    text_pages: list[Page] = [bundle.page(number) for number in page_numbers if bundle.page(number).text.strip()]
    if not text_pages:
        return NOT_PRESENT_VALUE
    return FieldValue(
        status=FieldStatus.FOUND,
        value="\n".join(page.text for page in text_pages),
        page=text_pages[0].page_num,
        boxes=tuple((page.page_num, 0.0, 0.0, 1.0, 1.0) for page in text_pages),
        confidence=SURE_CONFIDENCE,
    )
