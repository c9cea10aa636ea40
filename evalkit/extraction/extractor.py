"""The extractor of clinical reports: a question over a field template, and its answer proven on the page.

A language model is asked with the whole report. Offline, the same question is answered by ``clinical.py``. Either way a
value is what stands on the page, or it is none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from evalkit.documents.bundle import DocumentBundle, Page
from evalkit.extraction.clinical import SURE, Found, read
from evalkit.extraction.clinical_rules import base
from evalkit.extraction.evaluator import Attempt, EvaluationFeedback, Seen, look, windows
from evalkit.extraction.optimizer import ExtractionOptimizer
from evalkit.extraction.report import Report
from evalkit.extraction.schema import NOT_PRESENT, FieldStatus, FieldValue
from evalkit.extraction.template import Field, FieldTemplate, Need
from evalkit.extraction.values import Claim, proven
from evalkit.grounding.locate import Locator, boxes_of, occurrences
from evalkit.grounding.normalise import canonical_text
from evalkit.issue import Issue
from evalkit.llm.embedded import EmbeddedModel
from evalkit.llm.model import DocumentQuestion, Model
from evalkit.llm.prompts import fenced, render

#: So many values of one answer are looked at; a model that sends more sends the rest in vain.
_MOST = 500
_LONGEST_ITEM = 60


class ClaimedField(BaseModel):
    """What an extractor says about one value."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    field: str
    """The template's name of it."""
    item: str | None = None
    """Of a field of many values: which one."""
    status: Literal["found", "not_present", "ambiguous"] = "found"
    value: str | None = None
    """The report's own words."""
    quote: str | None = None
    """The sentence or row around it."""
    page: int | None = None
    end_page: int | None = None
    """Of a long text."""
    first_words: str | None = None
    last_words: str | None = None
    confidence: float = 1.0


class PlacedField(ClaimedField):
    """A value whose very place is known, because it was read there and not told by a language model."""

    spans: tuple[tuple[int, int, int], ...]
    """Page number, and start and end of characters of its text; several where it goes on behind a page."""


class ClaimedFields(BaseModel):
    """An extractor's answer."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    reasoning: str = ""
    fields: tuple[ClaimedField, ...]


@dataclass(frozen=True)
class Again:
    """What another attempt is made with."""

    feedback: EvaluationFeedback
    previous: Mapping[str, FieldValue]
    iteration: int
    """Of the attempt that the feedback is about, from 1."""
    target: float = 0.95


class ClinicalQuestion(DocumentQuestion[ClaimedFields]):
    """Which values do these pages have for the fields of this template?"""

    role = "extractor"
    answer_type = ClaimedFields

    def __init__(
        self,
        bundle: DocumentBundle,
        pages: Sequence[int],
        template: FieldTemplate,
        again: Again | None = None,
        report: Report | None = None,
    ) -> None:
        """``pages``: numbers of the readable ones that the report is on."""
        self.bundle = bundle
        self._pages = tuple(bundle.page(number) for number in pages)
        self._template = template
        self._again = again
        self._report = report or Report(self._pages)

    def worded(self) -> str:
        """The report and the fields; behind them the feedback of the attempt before."""
        prompt = render(
            "Clinical_Extractor",
            document=fenced(self.bundle, self._pages),
            report=self._template.display_name,
            fields=fields_text(self._template),
        )
        if self._again is None:
            return prompt
        again = self._again
        return ExtractionOptimizer().build_optimized_prompt(
            prompt,
            again.feedback,
            _plain(again.previous, self._template),
            again.iteration,
            target=again.target,
        )

    def offline(self) -> ClaimedFields:
        """What ``clinical.py`` reads; where there is feedback, the fields that it names are looked for once more."""
        again = self._again
        focus = frozenset(base(issue.field) for issue in again.feedback.issues) if again else frozenset()
        wrong = _wrong_values(again) if again else {}
        claims: list[ClaimedField] = []
        for field in self._template.fields:
            if field.reader == "whole_text":
                continue
            found = read(field, self._report, again=field.name in focus)
            others = [one for one in found if one.text not in wrong.get(field.name, ())]
            claims += [_claim(field, one) for one in (found if field.many else (others or found)[:1])]
            if not found:
                claims.append(ClaimedField(field=field.name, status="not_present"))
        return ClaimedFields(reasoning="Read by labels, tables and the words of findings.", fields=tuple(claims))


def fields_text(template: FieldTemplate) -> str:
    """The fields as a prompt lists them (specification 002, appendix A.1)."""
    titles = {Need.REQUIRED: "Required", Need.IMPORTANT: "Important", Need.OPTIONAL: "Optional", Need.EXTRA: "Further"}
    blocks = []
    for need, title in titles.items():
        rows = [_described(field) for field in template.of(need) if field.reader != "whole_text"]
        if rows:
            blocks.append("\n".join([f"{title} fields:", *rows]))
    return "\n\n".join(blocks)


def _described(field: Field) -> str:
    many = " (several values)" if field.many else ""
    long = " (long text)" if field.reader == "section" else ""
    return f"- {field.name}: {field.description}{many}{long}"


def _plain(fields: Mapping[str, FieldValue], template: FieldTemplate) -> dict[str, Any]:
    """The attempt before as its author knows it: words, or null."""
    whole = {field.name for field in template.fields if field.reader == "whole_text"}
    return {name: value.raw if value.is_found else None for name, value in fields.items() if base(name) not in whole}


def _wrong_values(again: Again) -> dict[str, set[str]]:
    """The words of values that the feedback is about; fields that are merely missing have none."""
    named = {issue.field for issue in again.feedback.issues if issue.severity != "minor"}
    wrong: dict[str, set[str]] = {}
    for name, value in again.previous.items():
        if name in named and value.raw:
            wrong.setdefault(base(name), set()).add(value.raw)
    return wrong


def _claim(field: Field, found: Found) -> PlacedField:
    return PlacedField(
        field=field.name,
        item=found.item or None,
        value=found.text,
        page=found.page.page_num,
        confidence=found.confidence,
        spans=tuple((page.page_num, start, end) for page, start, end in found.spans),
    )


# ------------------------------------------------------------------------------------------------- the extractor


class ClinicalExtractor:
    """Asks what a report says, and proves it on the page."""

    def __init__(self, model: Model | None = None, *, window: int | None = None) -> None:
        """``window``: so many characters of a report are asked about at once; None: all of it."""
        self._model = model or EmbeddedModel()
        self._window = window

    async def attempt(
        self,
        bundle: DocumentBundle,
        pages: Sequence[int],
        template: FieldTemplate,
        again: Again | None = None,
        report: Report | None = None,
        seen: Seen | None = None,
    ) -> Attempt:
        """One attempt; its ``failure`` is set where the model gave no usable answer.

        ``report`` and ``seen`` are the pages as they were read and looked at for an earlier attempt.
        """
        report = report or Report([bundle.page(number) for number in pages])
        parts = windows(bundle, pages, self._window)
        asked = [ClinicalQuestion(bundle, part, template, again, report if len(parts) == 1 else None) for part in parts]
        answers = await asyncio.gather(*(self._model.ask(question) for question in asked))
        failed = next((answer for answer in answers if answer.value is None), None)
        told = [answer.value for answer in answers if answer.value is not None]
        claims = [claim for answer in told for claim in answer.fields][:_MOST]
        fields, unproven = prove(claims, bundle, pages, template)
        return Attempt(
            bundle=bundle,
            pages=tuple(pages),
            template=template,
            report=report,
            fields=fields,
            unproven=unproven,
            reasoning=" ".join(answer.reasoning for answer in told).strip(),
            failure=(failed.failure or "no answer") if failed else None,
            seen=seen or look(template, report),
        )


def prove(
    claims: Iterable[ClaimedField], bundle: DocumentBundle, pages: Sequence[int], template: FieldTemplate
) -> tuple[dict[str, FieldValue], tuple[Issue, ...]]:
    """The claims as far as the pages bear them out, in the template's order, and what is wrong with the others.

    Fields that the template does not have are left out. Of two claims about one field the first that stands counts.
    """
    locator = Locator(bundle)
    by_field: dict[str, dict[str, list[ClaimedField]]] = {}
    for claim in claims:
        field = template.field(claim.field)
        if field is not None:
            by_field.setdefault(field.name, {}).setdefault(_name(field, claim, by_field), []).append(claim)
    fields: dict[str, FieldValue] = {}
    issues: list[Issue] = []
    for field in template.fields:
        if field.reader == "whole_text":
            fields[field.name] = _whole(bundle, pages)
            continue
        held: dict[str, FieldValue] = {}
        for name, told in by_field.get(field.name, {}).items():
            value, issue = _first_proven(told, field, name, bundle, locator, pages)
            if issue:
                issues.append(issue)
            if value.status is not FieldStatus.NOT_PRESENT or not field.many:
                held[name] = value
        fields |= held or {field.name: NOT_PRESENT}
    return fields, tuple(issues)


def _name(field: Field, claim: ClaimedField, known: Mapping[str, Mapping[str, object]]) -> str:
    if not field.many or claim.status == "not_present":
        return field.name
    item = " ".join((claim.item or "").replace(".", " ").split())[:_LONGEST_ITEM]
    return f"{field.name}.{item or len(known.get(field.name, {})) + 1}"


def _first_proven(
    told: Sequence[ClaimedField],
    field: Field,
    name: str,
    bundle: DocumentBundle,
    locator: Locator,
    pages: Sequence[int],
) -> tuple[FieldValue, Issue | None]:
    results: list[tuple[FieldValue, Issue | None]] = []
    for claim in told:
        result = _proven(claim, field, bundle, locator, pages)
        if result[0].is_found:
            return result
        results.append(result)
    value = results[0][0] if results else NOT_PRESENT
    # Who says first that it is absent, and then invents it, is told of too.
    issue = next((issue for _, issue in results if issue), None)
    return value, issue.model_copy(update={"location": name}) if issue else None


def _proven(
    claim: ClaimedField, field: Field, bundle: DocumentBundle, locator: Locator, pages: Sequence[int]
) -> tuple[FieldValue, Issue | None]:
    value = None if claim.status == "not_present" else claim.value
    raw = claim.quote or value
    spans = claim.spans if isinstance(claim, PlacedField) else ()
    confidence = min(max(claim.confidence, 0.0), 1.0)
    if field.reader == "section" and claim.status != "not_present":
        if spans := spans or _by_its_ends(claim, bundle, pages):
            return _cut_out(spans, claim, bundle, confidence), None
        if not value:  # the words that it begins and ends with are not there
            value = raw = " … ".join(filter(None, (claim.first_words, claim.last_words)))
    result = proven(
        Claim(
            value=value,
            raw=raw,
            page=claim.page,
            confidence=confidence,
            is_ambiguous=claim.status == "ambiguous",
            span=spans[0][1:] if spans else None,
        ),
        field,
        bundle,
        locator,
        pages,
        "extractor",
    )
    return result.field, result.issue


Spans = tuple[tuple[int, int, int], ...]


def _by_its_ends(claim: ClaimedField, bundle: DocumentBundle, pages: Sequence[int]) -> Spans:
    """Where a long text stands that is given by its first and last words; nothing where they do not stand so."""
    first = claim.page
    if not claim.first_words or not claim.last_words or first is None or first not in pages:
        return ()
    last = claim.end_page if claim.end_page is not None and claim.end_page in pages else first
    starts = [start for start, _ in occurrences(canonical_text(claim.first_words), bundle.page(first).text)]
    ends = [end for _, end in occurrences(canonical_text(claim.last_words), bundle.page(last).text)]
    if first == last:
        return next((((first, start, end),) for start in starts for end in ends if end > start), ())
    if not starts or not ends or last < first:
        return ()
    between = [(page.page_num, 0, len(page.text)) for page in bundle.between(first + 1, last - 1)]
    return ((first, starts[0], len(bundle.page(first).text)), *between, (last, 0, ends[0]))


def _cut_out(spans: Spans, claim: ClaimedField, bundle: DocumentBundle, confidence: float) -> FieldValue:
    """A long text as it stands on its pages: what is cut out of them needs no other proof."""
    text = "\n".join(bundle.page(number).text[start:end] for number, start, end in spans)
    first, start, end = spans[0]
    return FieldValue(
        status=FieldStatus.AMBIGUOUS if claim.status == "ambiguous" else FieldStatus.FOUND,
        value=" ".join(text.split()),
        raw=text,
        page=first,
        quote=bundle.page(first).text[start:end],
        boxes=tuple(box for number, start, end in spans for box in boxes_of(bundle.page(number), start, end)),
        confidence=confidence,
    )


def _whole(bundle: DocumentBundle, pages: Sequence[int]) -> FieldValue:
    """The text itself: nobody is asked for it."""
    read_pages: list[Page] = [bundle.page(number) for number in pages if bundle.page(number).text.strip()]
    if not read_pages:
        return NOT_PRESENT
    return FieldValue(
        status=FieldStatus.FOUND,
        value="\n".join(page.text for page in read_pages),
        page=read_pages[0].page_num,
        boxes=tuple((page.page_num, 0.0, 0.0, 1.0, 1.0) for page in read_pages),
        confidence=SURE,
    )
