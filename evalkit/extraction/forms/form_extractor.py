"""Questions to a model about type and entries of a tax form (specification 003).

The answer is a claim: :mod:`evalkit.extraction.value_grounding` then searches the values on the page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import BaseModel

from evalkit.core.grouping import split_into_runs
from evalkit.core.records import DiscreetModel
from evalkit.documents.bundle import DocumentBundle
from evalkit.extraction.field_template import FieldNeed, FieldTemplate, get_field_template, list_field_templates
from evalkit.extraction.forms.form_reader import (
    GENERIC_FORM,
    PRINTED_FIELDS,
    DetectedForm,
    FormFieldReading,
    is_tax_office_form_page,
    read_form,
    read_generic_form,
)
from evalkit.extraction.forms.form_sheet import FormSheet, FormWord
from evalkit.llm.model import DocumentQuestion
from evalkit.llm.prompts import dump_compact_json, fence_document, fill_prompt_template

#: Types of documents that specification 003 names without giving them a template.
GENERIC_DOCUMENT_TYPES = ("RECEIPT", "STATEMENT", GENERIC_FORM)
#: The offline reader's confidence in a document without a template: always too low to be accepted.
_UNKNOWN_FORM_CONFIDENCE = 0.4
#: Share of the confidence that depends only on the form's type; the rest depends on the required fields.
_TYPE_CONFIDENCE_SHARE = 0.4
#: A retry prefers another form type only if its share of filled required fields is larger by this.
_FIRST_TYPE_BONUS = 0.2


class ClaimedFormField(DiscreetModel, frozen=True):
    """The extractor's claim about one field of a form."""

    name: str
    value: str | None
    raw_text: str | None = None
    """The entry in the page's words."""
    page: int | None = None
    confidence: float = 0.0


class PlacedFormField(ClaimedFormField):
    """A field read by the offline reader, with its exact place."""

    rows: tuple[tuple[int, int], ...] = ()
    """Start and end of each line of the entry in the page's text."""
    is_ambiguous: bool = False


class _ModelFormAnswer(DiscreetModel, frozen=True):
    """A language model's answer about one form."""

    reasoning: str = ""
    likely_type: str
    alternative_types: tuple[str, ...] = ()
    overall_confidence: float = 0.0
    fields: tuple[ClaimedFormField, ...] = ()


class FormAnswer(_ModelFormAnswer):
    """The extractor's answer about one form; offline, with the places of the entries."""

    fields: tuple[PlacedFormField, ...] = ()


@dataclass(frozen=True)
class FormPart:
    """The pages, or the part of a page, that one form occupies."""

    start_page: int
    end_page: int
    form: DetectedForm | None
    """The detected form; None if no template fits."""
    form_number: int = 1
    """Number of the form among the forms on its page, from 1."""
    form_count: int = 1


@dataclass(frozen=True)
class FormQuestion(DocumentQuestion[FormAnswer]):
    """Question to a model: the type and the entries of one form."""

    bundle: DocumentBundle
    part: FormPart
    attempt_number: int = 1
    feedback: str = ""
    template_name: str | None = None
    """Name of the template to use; None: detect the form's type."""
    role: str = "extractor"
    answer_type: type[FormAnswer] = FormAnswer

    def render_prompt(self) -> str:
        """Render the form's pages, then templates, instructions and feedback."""
        return fill_prompt_template(
            "form_extractor",
            document=fence_document(self.bundle, self.bundle.iter_pages(self.part.start_page, self.part.end_page)),
            templates=_render_templates(self.template_name),
            types=", ".join(_list_document_types(self.template_name)),
            feedback=self._render_feedback(),
        )

    def _render_feedback(self) -> str:
        instructions = ""
        if self.part.form_count > 1:
            instructions = f"\nThe page holds {self.part.form_count} forms; read number {self.part.form_number}, counted from the top left."
        if self.feedback:
            instructions += f"\nPrevious attempt feedback: {self.feedback}\n\nPlease try again with this guidance."
        return instructions

    @property
    def requested_type(self) -> type[BaseModel]:
        """The pydantic model of a language model's answer, without places of entries."""
        return _ModelFormAnswer

    def parse_answer(self, text: str) -> FormAnswer:
        """Parse a model's JSON. pydantic.ValidationError if it has another shape."""
        return FormAnswer.model_validate(_ModelFormAnswer.model_validate_json(text).model_dump())

    def offline(self) -> FormAnswer:
        """Read the form by its labels; on a retry, also try other types and spellings."""
        form = self.part.form
        if form is None:
            return self._answer_unknown_form()
        template_names = [form.template_name, *(form.alternative_templates[:2] if self.attempt_number > 1 else ())]
        templates = [
            get_field_template(name) for name in ([self.template_name] if self.template_name else template_names)
        ]
        readings = [self._read_as_template(form.sheet, template) for template in templates]
        filled_shares = [_measure_filled_share(*pair) for pair in zip(templates, readings, strict=True)]
        best_index = max(
            range(len(templates)),
            key=lambda index: (filled_shares[index] + (_FIRST_TYPE_BONUS if index == 0 else 0), -index),
        )
        return _build_answer(form, templates[best_index], readings[best_index], filled_shares[best_index])

    def _read_as_template(self, sheet: FormSheet, template: FieldTemplate) -> dict[str, FormFieldReading]:
        """Read the template's fields; on a retry, read missing fields less strictly."""
        readings = read_form(sheet, template, allow_misspellings=False)
        if self.attempt_number == 1:
            return readings
        is_last_attempt = self.attempt_number > 2
        wanted_fields = template.get_fields_by_need(FieldNeed.REQUIRED) if is_last_attempt else template.fields
        sure_names = {
            name for name, reading in readings.items() if reading.entry.is_valid and reading.confidence >= 0.5
        }
        wanted_names = {field.name for field in wanted_fields} - sure_names
        second_readings = read_form(
            sheet, template, allow_misspellings=True, entry_height_factor=1.6 if is_last_attempt else 1.0
        )
        missed_readings = {name: reading for name, reading in second_readings.items() if name in wanted_names}
        return _merge_readings(readings, missed_readings, second_readings, template)

    def _answer_unknown_form(self) -> FormAnswer:
        fields_by_name: dict[str, PlacedFormField] = {}
        pages = list(self.bundle.iter_pages(self.part.start_page, self.part.end_page))
        has_official_page = any(map(is_tax_office_form_page, pages))
        for page in pages:
            readings = read_generic_form(
                page, get_field_template(self.template_name or GENERIC_FORM), is_official_form=has_official_page
            )
            for form_field in _iter_form_fields(readings, page.page_num):
                fields_by_name.setdefault(form_field.name, form_field)
        title = fields_by_name["document_title"].value or "" if "document_title" in fields_by_name else ""
        document_type = next(
            (form_field for form_field in GENERIC_DOCUMENT_TYPES[:2] if form_field.lower() in title.lower()),
            GENERIC_FORM,
        )
        return FormAnswer(
            reasoning="No form that there is a template for.",
            likely_type=self.template_name or document_type,
            overall_confidence=_UNKNOWN_FORM_CONFIDENCE if set(fields_by_name) - PRINTED_FIELDS else 0.2,
            fields=tuple(fields_by_name.values()),
        )


def _measure_filled_share(template: FieldTemplate, readings: Mapping[str, FormFieldReading]) -> float:
    required_fields = template.get_fields_by_need(FieldNeed.REQUIRED)
    valid_count = sum(field.name in readings and readings[field.name].entry.is_valid for field in required_fields)
    return valid_count / len(required_fields) if required_fields else 0.0


def _build_answer(
    form: DetectedForm, template: FieldTemplate, readings: Mapping[str, FormFieldReading], filled_share: float
) -> FormAnswer:
    required_fields = template.get_fields_by_need(FieldNeed.REQUIRED)
    confidences = [readings[field.name].confidence if field.name in readings else 0.0 for field in required_fields]
    type_confidence = form.confidence if template.name == form.template_name else 0.8
    confidence = type_confidence * (
        _TYPE_CONFIDENCE_SHARE + (1 - _TYPE_CONFIDENCE_SHARE) * sum(confidences) / max(len(confidences), 1)
    )
    if not set(readings) - PRINTED_FIELDS:
        confidence = min(confidence, 0.3)
    return FormAnswer(
        reasoning=f"Title and labels of {template.display_name}; {filled_share:.0%} of its required fields are filled in.",
        likely_type=template.document_type,
        alternative_types=tuple(
            other for other in (form.template_name, *form.alternative_templates) if other != template.name
        ),
        overall_confidence=round(confidence, 3),
        fields=tuple(_iter_form_fields(readings, form.sheet.page.page_num)),
    )


def _merge_readings(
    first_readings: Mapping[str, FormFieldReading],
    missed_readings: Mapping[str, FormFieldReading],
    second_readings: Mapping[str, FormFieldReading],
    template: FieldTemplate,
) -> dict[str, FormFieldReading]:
    """Add the fields that only the second reading found to the first reading.

    A text of the first reading that overlaps a new field is replaced by its second reading, or dropped.
    """
    merged, formats = dict(first_readings), {field.name: field.format for field in template.fields}
    for name, reading in missed_readings.items():
        word_indices = {word.index for word in reading.entry.words}
        other_names = [
            other_name
            for other_name, other_reading in merged.items()
            if word_indices & {word.index for word in other_reading.entry.words}
        ]
        if (not reading.entry.is_valid and name in first_readings) or any(
            formats[other_name] != "text" for other_name in other_names
        ):
            continue
        for other_name in other_names:
            shorter_reading = second_readings.get(other_name)
            if shorter_reading is None or word_indices & {word.index for word in shorter_reading.entry.words}:
                del merged[other_name]
            else:
                merged[other_name] = shorter_reading
        merged[name] = reading
    return merged


def _iter_form_fields(readings: Mapping[str, FormFieldReading], page_number: int) -> Iterator[PlacedFormField]:
    for name, reading in readings.items():
        yield PlacedFormField(
            name=name,
            value=reading.entry.value,
            raw_text=" ".join(word.text for word in reading.entry.words),
            page=page_number,
            confidence=reading.confidence,
            rows=tuple((min(w.start for w in row), max(w.end for w in row)) for row in _list_text_runs(reading)),
            is_ambiguous=reading.entry.is_ambiguous,
        )


def _list_text_runs(reading: FormFieldReading) -> Iterator[list[FormWord]]:
    """Split an entry's lines into runs of words that are adjacent in the page's text."""
    for row in reading.entry.rows:
        yield from split_into_runs(row, lambda run, word: 0 <= word.start - run[-1].end <= 2)


@cache
def _list_document_types(template_name: str | None) -> tuple[str, ...]:
    if template_name:
        return (get_field_template(template_name).document_type,)
    return (
        *sorted(template.document_type for template in list_field_templates("tax") if template.name != GENERIC_FORM),
        *GENERIC_DOCUMENT_TYPES,
    )


@cache
def _render_templates(template_name: str | None) -> str:
    chosen_templates = (get_field_template(template_name),) if template_name else list_field_templates("tax")
    return dump_compact_json([build_template_prompt_data(template) for template in chosen_templates])


def build_template_prompt_data(template: FieldTemplate) -> dict[str, Any]:
    """Return the parts of a template that a prompt shows to the model."""
    return {
        "type": template.document_type,
        "name": template.display_name,
        "fields": [
            {
                "name": field.name,
                "description": field.description,
                "need": field.need.value,
                "format": field.pattern.pattern if field.pattern else field.format,
                "location": field.location,
            }
            for field in template.fields
        ],
    }
