"""The extractor of specification 003: which form is this, and what is filled in?

The answer is a claim; :mod:`evalkit.extraction.values` decides what of it stands on the page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import BaseModel, ConfigDict

from evalkit.documents.bundle import DocumentBundle
from evalkit.extraction.forms import (
    GENERIC,
    OWN_PRINT,
    Form,
    Reading,
    is_official,
    read_anything,
    read_form,
)
from evalkit.extraction.template import FieldTemplate, Need, template, templates
from evalkit.llm.model import DocumentQuestion
from evalkit.llm.prompts import as_json, fenced, render
from evalkit.llm.wire import lean_schema

#: Documents without a template of their own that specification 003 names.
GENERIC_TYPES = ("RECEIPT", "STATEMENT", GENERIC)
#: What the embedded reader says about a document that it has no template for: never enough to be accepted.
_UNKNOWN = 0.4
#: Part of the confidence that the type alone gives; the required fields give the rest.
_BY_TYPE = 0.4
#: A form of another type has this share more of its required fields, or it is not the better reading.
_BETTER = 0.2


class _Shape(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class FormField(_Shape):
    """What the extractor says about one field."""

    name: str
    value: str | None
    raw_text: str | None = None
    page: int | None = None
    confidence: float = 0.0


class PlacedFormField(FormField):
    """A field of the embedded reader's, which knows the very words."""

    rows: tuple[tuple[int, int], ...] = ()
    """Characters of the page's text, one pair for each line."""
    is_ambiguous: bool = False


class _Asked(_Shape):
    """What a language model is asked for; the reasoning comes first."""

    reasoning: str = ""
    likely_type: str
    alternative_types: tuple[str, ...] = ()
    overall_confidence: float = 0.0
    fields: tuple[FormField, ...] = ()


class FormAnswer(_Asked):
    """The extractor's whole answer."""

    fields: tuple[PlacedFormField, ...] = ()


@dataclass(frozen=True)
class Part:
    """The pages, or the part of a page, that one form takes up."""

    start_page: int
    end_page: int
    form: Form | None
    """What the words say it is; None where no template fits."""
    number: int = 1
    """Of the forms on its page, from 1."""
    of: int = 1
    """So many forms are on its page."""


@dataclass(frozen=True)
class FormQuestion(DocumentQuestion[FormAnswer]):
    """What is asked about one form."""

    bundle: DocumentBundle
    part: Part
    attempt: int = 1
    feedback: str = ""
    missing: tuple[str, ...] = ()
    """The fields that the feedback is about."""
    fixed: str | None = None
    """The template that was asked for by name."""
    role: str = "extractor"
    answer_type: type[FormAnswer] = FormAnswer

    def worded(self) -> str:
        """Document first, then the templates, instructions last; feedback behind them."""
        return render(
            "form_extractor",
            document=fenced(self.bundle, self.bundle.between(self.part.start_page, self.part.end_page)),
            templates=_described(self.fixed),
            types=", ".join(_types(self.fixed)),
            feedback=self._told(),
        )

    def _told(self) -> str:
        told = ""
        if self.part.of > 1:
            told = f"\nThe page holds {self.part.of} forms; read number {self.part.number}, counted from the top left."
        if self.feedback:
            told += f"\nPrevious attempt feedback: {self.feedback}\n\nPlease try again with this guidance."
        return told

    def schema(self) -> Mapping[str, Any]:
        """Without the places, which only the embedded reader knows."""
        return lean_schema(_Asked)

    def read(self, text: str) -> FormAnswer:
        """The answer in a model's text. pydantic.ValidationError where it has not that shape."""
        return FormAnswer.model_validate(_Asked.model_validate_json(text).model_dump())

    def offline(self) -> FormAnswer:
        """By the places of labels and words; after feedback by other ways of reading, for what was missing."""
        if self.part.form is None:
            return self._unknown()
        names = self._tried()
        readings = [self._reading(name) for name in names]
        best = max(range(len(names)), key=lambda at: (readings[at][1] + (_BETTER if at == 0 else 0), -at))
        return self._answer(names[best], readings[best][0], readings[best][1])

    def _tried(self) -> list[str]:
        """The templates that this attempt takes the form for: after feedback, the likely other ones too."""
        assert self.part.form is not None  # noqa: S101 - offline asks for forms only
        if self.fixed:
            return [self.fixed]
        form = self.part.form
        return [form.template, *(form.alternatives[:2] if self.attempt > 1 else ())]

    def _reading(self, name: str) -> tuple[dict[str, Reading], float]:
        """The fields found, and the share of the required ones among them."""
        assert self.part.form is not None  # noqa: S101 - offline asks for forms only
        form = template(name)
        sheet = self.part.form.sheet
        found = read_form(sheet, form, is_loose=False)
        if self.attempt > 1:
            # What was read at first stays: another way of reading is for what was missing.
            wanted = [field.name for field in form.fields if _is_missed(found.get(field.name))]
            if self.attempt > 2:
                critical = {field.name for field in form.of(Need.REQUIRED)}
                wanted = [missed for missed in wanted if missed in critical]
            again = read_form(sheet, form, is_loose=True, reach=1.6 if self.attempt > 2 else 1.0)
            found = _amended(found, {missed: one for missed, one in again.items() if missed in wanted}, again, form)
        required = form.of(Need.REQUIRED)
        valid = sum(field.name in found and found[field.name].entry.is_valid for field in required)
        return found, valid / len(required) if required else 0.0

    def _answer(self, name: str, found: Mapping[str, Reading], filled: float) -> FormAnswer:
        assert self.part.form is not None  # noqa: S101 - offline asks for forms only
        form, known = self.part.form, template(name)
        required = known.of(Need.REQUIRED)
        sure = [found[field.name].confidence if field.name in found else 0.0 for field in required]
        typed = form.confidence if name == form.template else 0.8
        confidence = typed * (_BY_TYPE + (1 - _BY_TYPE) * sum(sure) / max(len(sure), 1))
        if not set(found) - OWN_PRINT:
            confidence = min(confidence, 0.3)
        return FormAnswer(
            reasoning=f"Title and labels of {known.display_name}; {filled:.0%} of its required fields are filled in.",
            likely_type=known.document_type,
            alternative_types=tuple(other for other in (form.template, *form.alternatives) if other != name),
            overall_confidence=round(confidence, 3),
            fields=tuple(_fields(found, form.sheet.page.page_num)),
        )

    def _unknown(self) -> FormAnswer:
        """A document that no template but the generic one fits."""
        found: dict[str, PlacedFormField] = {}
        pages = list(self.bundle.between(self.part.start_page, self.part.end_page))
        official = any(map(is_official, pages))
        for page in pages:
            read = read_anything(page, template(self.fixed or GENERIC), is_official=official)
            for one in _fields(read, page.page_num):
                found.setdefault(one.name, one)
        title = found["document_title"].value or "" if "document_title" in found else ""
        kind = next((one for one in GENERIC_TYPES[:2] if one.lower() in title.lower()), GENERIC)
        return FormAnswer(
            reasoning="No form that there is a template for.",
            likely_type=self.fixed or kind,
            overall_confidence=_UNKNOWN if set(found) - OWN_PRINT else 0.2,
            fields=tuple(found.values()),
        )


def _amended(
    found: Mapping[str, Reading], missed: Mapping[str, Reading], again: Mapping[str, Reading], form: FieldTemplate
) -> dict[str, Reading]:
    """The first reading with what the second one found more; a text that had run into that is read anew."""
    amended = dict(found)
    for name, one in missed.items():
        mine = {word.at for word in one.entry.words}
        others = [other for other, kept in amended.items() if mine & {word.at for word in kept.entry.words}]
        formats = {field.name: field.format for field in form.fields}
        if (not one.entry.is_valid and name in found) or any(formats[other] != "text" for other in others):
            continue
        for other in others:
            shorter = again.get(other)
            if shorter is None or mine & {word.at for word in shorter.entry.words}:
                del amended[other]
            else:
                amended[other] = shorter
        amended[name] = one
    return amended


def _is_missed(read: Reading | None) -> bool:
    return read is None or not read.entry.is_valid or read.confidence < 0.5


def _fields(found: Mapping[str, Reading], page: int) -> Iterator[PlacedFormField]:
    for name, one in found.items():
        yield PlacedFormField(
            name=name,
            value=one.entry.value,
            raw_text=" ".join(word.text for word in one.entry.words),
            page=page,
            confidence=one.confidence,
            rows=tuple((min(w.start for w in row), max(w.end for w in row)) for row in _runs(one)),
            is_ambiguous=one.entry.is_doubtful,
        )


def _runs(read: Reading) -> Iterator[list[Any]]:
    """The words of an entry in runs that follow one another in the page's text."""
    for row in read.entry.rows:
        run: list[Any] = []
        for word in row:
            if run and not 0 <= word.start - run[-1].end <= 2:
                yield run
                run = []
            run.append(word)
        yield run


@cache
def _types(fixed: str | None) -> tuple[str, ...]:
    if fixed:
        return (template(fixed).document_type,)
    return (*sorted(one.document_type for one in templates("tax") if one.name != GENERIC), *GENERIC_TYPES)


@cache
def _described(fixed: str | None) -> str:
    """The templates as a model needs them."""
    wanted = (template(fixed),) if fixed else templates("tax")
    return as_json([describe(one) for one in wanted])


def describe(one: FieldTemplate) -> dict[str, Any]:
    """A template for a prompt."""
    return {
        "type": one.document_type,
        "name": one.display_name,
        "fields": [
            {
                "name": field.name,
                "description": field.description,
                "need": field.need.value,
                "format": field.pattern or field.format,
                "location": field.location,
            }
            for field in one.fields
        ],
    }
