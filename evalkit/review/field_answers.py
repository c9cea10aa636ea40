"""The extracted fields of a case and an expert's answers to them.

A field's key is the number of its report or form in the packet, from 1, then a point and the field's name, for example
``1.wages_tips`` or ``2.ihcMarkers.ER``. A typed value is accepted if it has the field's format; nothing else is checked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import not_
from typing import Annotated, Any, Self

from pydantic import Field, StringConstraints, ValidationError, model_validator

from evalkit.classification.v5_arbiter import Decision
from evalkit.core.records import StrictRecord, describe_first_error
from evalkit.documents.bundle import DocumentBundle
from evalkit.errors import ReviewRefused, UsageError
from evalkit.extraction.clinical.clinical_rules import get_base_field_name
from evalkit.extraction.extraction_schema import (
    NOT_PRESENT_VALUE,
    Extraction,
    FieldStatus,
    FieldValue,
    IterationRecord,
)
from evalkit.extraction.field_template import FieldTemplate, TemplateField, get_field_template
from evalkit.extraction.formats import FieldFormat, clean_text, get_format_error_phrase, get_format_example
from evalkit.extraction.value_grounding import FieldClaim, find_value_spans, ground_claim
from evalkit.grounding import QuoteLocator
from evalkit.issue import PageBox
from evalkit.review.typed_text import TYPED_FORMATS, parse_typed_text

FieldKey = Annotated[str, StringConstraints(pattern=r"^[1-9]\d*\..+$")]

_MAX_ENTRY_NAME_LENGTH = 60
#: Formats whose entries have names (``ihcMarkers.ER``); the entries of other repeated fields are numbered.
NAMED_ENTRY_FORMATS: frozenset[FieldFormat] = frozenset(("marker", "lab"))
#: The label of a status on the screen.
STATUS_WORDS = {
    FieldStatus.FOUND: "found",
    FieldStatus.NOT_PRESENT: "not present",
    FieldStatus.AMBIGUOUS: "ambiguous",
}


class ExtractedFields(StrictRecord):
    """Field values of one report or form, from the agent or corrected by an expert."""

    template: str
    """Name of the field template that was filled in."""
    document_type: str
    """The clinical document type, or the name of the form, e.g. ``W-2``."""
    start_page: int
    """The first page of the report or form, from 1."""
    end_page: int
    """The last page of the report or form, itself included."""
    fields: dict[str, FieldValue]
    """The values by field name, in the template's order."""

    @classmethod
    def from_extraction(cls, extraction: Extraction) -> ExtractedFields:
        """Copy the fields of an extraction, without its issues, decision and history."""
        return cls(**{name: getattr(extraction, name) for name in cls.model_fields})


class FieldAnswer(StrictRecord):
    """An expert's answer to one field, or to one entry of a repeated field."""

    status: FieldStatus
    value: str | None = None
    """The value in the field's normal form; None if the field is not present, or is ambiguous without a best reading."""
    page: int | None = Field(default=None, ge=1, exclude_if=not_)
    """The page on which the expert selected the value; None if it was typed."""
    boxes: tuple[PageBox, ...] = Field(default=(), max_length=200, exclude_if=not_)
    """The rectangles that the expert selected, on ``page``."""
    removed: str = Field(default="", max_length=2000, exclude_if=not_)
    """The reason for which the expert deleted this entry of a repeated field; empty if it was not deleted."""

    @model_validator(mode="after")
    def _require_one_place(self) -> Self:
        if not all(box[0] == self.page and min(box[1:]) >= 0 and max(box[1:]) <= 1 for box in self.boxes):
            raise ValueError("a value's boxes must be on its page, from 0 to 1")
        if self.removed and self.status is not FieldStatus.NOT_PRESENT:
            raise ValueError("a deleted entry must have the status not_present")
        return self


@dataclass(frozen=True)
class FieldTextCheck:
    """Result of checking a typed text against a field's format."""

    value: str | None
    """The text in the field's normal form; None if the text does not have the field's format."""
    problem: str = ""
    """A sentence that says what is wrong, with an example of the format; empty if the text is right."""
    lost_words: str = ""
    """The words of the text that the field's format has no room for, if that is the problem."""


def is_extraction_review_required(extraction: Extraction) -> bool:
    """Return True if the extraction of a report or form was not accepted."""
    return extraction.decision == Decision.ESCALATE_TO_SME


def index_fields_by_key(forms: Sequence[ExtractedFields]) -> dict[str, FieldValue]:
    """Index the fields of all forms by field key, in the order of forms and templates."""
    return {
        f"{form_number}.{field_name}": field_value
        for form_number, form in enumerate(forms, 1)
        for field_name, field_value in form.fields.items()
    }


def split_field_key_to_index_and_name(field_key: str) -> tuple[int, str]:
    """Split a field key into the index of report or form (from 0) and the field name."""
    form_number, _, field_name = field_key.partition(".")
    return int(form_number) - 1, field_name


def get_template_field_or_plain_text(form: ExtractedFields | Extraction, field_name: str) -> TemplateField:
    """Get a field's definition from the form's template, described by its label.

    The label of an entry of a repeated field ends with the entry's name or number. If the template or the field no longer
    exists, return the definition of a plain text field.
    """
    field_template, (base_name, _, entry_name) = find_extraction_template(form), field_name.partition(".")
    field = field_template.get_field(base_name) if field_template else None
    if field is None:
        return TemplateField(name="text", description=field_name)
    label = field.format_entry_label(entry_name) if entry_name else field.description
    return field.model_copy(update={"description": label})


def is_repeated_field_entry(form: ExtractedFields | Extraction, field_name: str) -> bool:
    """Return True if the name is that of an entry of a repeated field, present or not."""
    _, _, entry_name = field_name.partition(".")
    is_entry_name = 0 < len(entry_name) <= _MAX_ENTRY_NAME_LENGTH and clean_text(entry_name) == entry_name
    return is_entry_name and get_template_field_or_plain_text(form, field_name).many


def split_entry_text(field: TemplateField, text: str, known_names: Iterable[str]) -> tuple[str, str]:
    """Split the typed text of a new entry into the entry's name and its value.

    Entries with names are typed as ``HER2: 3+``; others get the next free number. ReviewRefused if the name is missing or
    is that of another entry.
    """
    names = [name.casefold() for name in known_names]
    if field.format not in NAMED_ENTRY_FORMATS:
        return next(str(number) for number in range(1, len(names) + 2) if str(number) not in names), text
    name, colon, value_text = text.partition(":")
    return check_entry_name(name if colon else "", names), value_text


def check_entry_name(name: str, known_names: Iterable[str]) -> str:
    """Return a typed name of an entry in its normal form.

    ReviewRefused if it is blank, or that of another entry.
    """
    entry_name = clean_text(name.replace(".", " "))[:_MAX_ENTRY_NAME_LENGTH].strip()
    if not entry_name:
        raise _build_invalid_field_error(
            "the entry has no name", "Type the entry's name, a colon, and the value: HER2: 3+"
        )
    if entry_name.casefold() in map(str.casefold, known_names):
        raise _build_invalid_field_error(
            "there is already an entry of this name", "Change the existing entry, or type another name."
        )
    return entry_name


def find_extraction_template(form: ExtractedFields | Extraction | IterationRecord) -> FieldTemplate | None:
    """Find the field template of a report or form; None if it no longer exists."""
    try:
        return get_field_template(form.template)
    except UsageError:
        return None


def check_field_text(field: TemplateField, text: str) -> FieldTextCheck:
    """Check a typed text against a field's format; blank text is a problem.

    A text is taken whole or refused: see ``parse_typed_text``.
    """
    if not text.strip():
        return FieldTextCheck(None, "Type a value, or choose “Not present”.")
    typed_format = TYPED_FORMATS.get(field.format)
    if typed_format and re.fullmatch(typed_format.unclear_texts, text.strip()):
        return FieldTextCheck(None, f"This can be read in two ways. Write it as {typed_format.clear_example}.")
    value, lost_words = parse_typed_text(field, text)
    if value is not None:
        return FieldTextCheck(value)
    if typed_format and lost_words:
        further_words = "Add any other as an entry of its own (+)" if field.many else "Write the rest as a note"
        return FieldTextCheck(None, f"This field takes {typed_format.keeps}. {further_words}.", lost_words)
    complaint_text = get_format_error_phrase(field.format)
    example_text = get_format_example(field.format)
    return FieldTextCheck(
        None, f"This {complaint_text}." + (f" It is written as {example_text}." if example_text else "")
    )


def parse_field_answer(field: TemplateField, raw_answer: object) -> FieldAnswer:
    """Parse an expert's answer to a field.

    The answer is a text, a dict ``{"value": …, "status": …}``, or None if the field is not present. ReviewRefused if it has
    another shape or a value in a wrong format; the error does not quote the value.
    """
    answer_fields: Any = (
        {"status": "not_present"}
        if raw_answer is None
        else {"value": raw_answer}
        if isinstance(raw_answer, str)
        else raw_answer
    )
    if isinstance(answer_fields, Mapping) and "status" not in answer_fields:
        answer_fields = {**answer_fields, "status": "found"}
    try:
        parsed_answer = FieldAnswer.model_validate(answer_fields)
    except ValidationError as error:
        raise _build_invalid_field_error(
            f"{field.description}: {describe_first_error(error)}",
            'Give a text, None if the field is not present, or {"value": …, "status": "found", "not_present" or "ambiguous"}.',
        ) from None
    text = parsed_answer.value or ""
    if parsed_answer.removed and not field.many:
        raise _build_invalid_field_error(
            f"{field.description}: only entries of repeated fields can be deleted", "Choose the status not_present."
        )
    if parsed_answer.status is FieldStatus.NOT_PRESENT:
        if text.strip():
            raise _build_invalid_field_error(
                f"{field.description}: a value was given, but the status is not_present",
                "Leave out the value, or change the status.",
            )
        return parsed_answer.model_copy(update={"value": None})
    if parsed_answer.status is FieldStatus.AMBIGUOUS and not text.strip():
        return FieldAnswer(status=parsed_answer.status)
    text_check = check_field_text(field, text)
    if text_check.value is None:
        raise _build_invalid_field_error(
            f"{field.description}: {text_check.problem[:1].lower()}{text_check.problem[1:-1]}", "Correct the value."
        )
    return parsed_answer.model_copy(update={"value": text_check.value})


def resolve_field_key(case_id: str, forms: Sequence[ExtractedFields], field_key_or_name: str) -> str:
    """Return the key of a field, or of a new entry, given its key or name.

    ReviewRefused if no field has this key or name, or if several forms have a field of this name.
    """
    keys = list(index_fields_by_key(forms))
    matching_keys = [key for key in keys if field_key_or_name in (key, split_field_key_to_index_and_name(key)[1])] or [
        f"{form_number}.{field_name}"
        for form_number, form in enumerate(forms, 1)
        if is_repeated_field_entry(form, field_name := field_key_or_name.removeprefix(f"{form_number}."))
    ]
    if len(matching_keys) == 1:
        return matching_keys[0]
    if matching_keys:
        raise _build_invalid_field_error(
            f"several forms have a field {field_key_or_name!r}",
            f"Use a key instead of the name: {' or '.join(matching_keys)}.",
        )
    raise _build_invalid_field_error(
        f"case {case_id!r} has no field {field_key_or_name!r}",
        "SMEReviewHelper.load_packet(case_id).extractions lists the case's fields.",
    )


def parse_field_answers(
    case_id: str, forms: Sequence[ExtractedFields], raw_answers: Mapping[str, object]
) -> dict[str, FieldAnswer]:
    """Parse answers given by field key or name; return them by field key.

    ReviewRefused as in ``resolve_field_key`` and ``parse_field_answer``.
    """
    answers_by_key: dict[str, FieldAnswer] = {}
    for name, raw_answer in raw_answers.items():
        key = resolve_field_key(case_id, forms, name)
        form_index, field_name = split_field_key_to_index_and_name(key)
        answers_by_key[key] = parse_field_answer(
            get_template_field_or_plain_text(forms[form_index], field_name), raw_answer
        )
    return answers_by_key


def apply_and_locate_field_answers(
    agent_extracted_fields: Sequence[ExtractedFields], answers_by_key: Mapping[str, FieldAnswer], bundle: DocumentBundle
) -> tuple[ExtractedFields, ...]:
    """Build the forms with the expert's answers, and locate each new value.

    A new value gets a page and boxes only if exactly one place on the form's pages shows it.
    """
    locator = QuoteLocator(bundle)
    corrected_forms = []
    for form_number, form in enumerate(agent_extracted_fields, 1):
        answers = {
            field_name: answer
            for key, answer in answers_by_key.items()
            for form_index, field_name in [split_field_key_to_index_and_name(key)]
            if form_index == form_number - 1
        }
        corrected_values = {
            field_name: _build_corrected_value(answers[field_name], form, field_name, bundle, locator)
            if field_name in answers
            else form.fields.get(field_name, NOT_PRESENT_VALUE)
            for field_name in _list_corrected_field_names(form, answers)
        }
        corrected_forms.append(form.model_copy(update={"fields": corrected_values}))
    return tuple(corrected_forms)


def _list_corrected_field_names(form: ExtractedFields, answers: Mapping[str, FieldAnswer]) -> list[str]:
    """List the names of a form's fields with entries added and removed.

    A repeated field without entries is listed by its own name, which its first entry replaces; so is one whose last entry
    was removed.
    """
    names = list(dict.fromkeys([*form.fields, *answers]))
    base_names = list(dict.fromkeys(map(get_base_field_name, names)))
    replaced_names = {get_base_field_name(name) for name in answers if name not in form.fields}
    kept_names = [
        name for name in names if name not in replaced_names and not (name in answers and answers[name].removed)
    ]
    emptied_names = set(base_names) - set(map(get_base_field_name, kept_names))
    return sorted((*kept_names, *emptied_names), key=lambda name: base_names.index(get_base_field_name(name)))


def _build_corrected_value(
    answer: FieldAnswer, form: ExtractedFields, field_name: str, bundle: DocumentBundle, locator: QuoteLocator
) -> FieldValue:
    agent_value = form.fields.get(field_name, NOT_PRESENT_VALUE)
    if is_same_as_agent(answer, agent_value) and not answer.page:
        return agent_value
    if answer.value is None:
        return FieldValue(status=answer.status, confidence=1.0)
    if answer.page and answer.page <= bundle.total_pages:
        return FieldValue(
            status=answer.status, value=answer.value, page=answer.page, boxes=answer.boxes, confidence=1.0
        )
    if answer.value == agent_value.value:  # same value: keep the place where the agent read it
        return agent_value.model_copy(update={"status": answer.status, "confidence": 1.0})
    field, page_numbers = (
        get_template_field_or_plain_text(form, field_name),
        range(max(form.start_page, 1), min(form.end_page, bundle.total_pages) + 1),
    )
    claim = FieldClaim(answer.value, page=agent_value.page, is_ambiguous=answer.status is FieldStatus.AMBIGUOUS)
    verified_value, issue = ground_claim(claim, field, bundle, locator, page_numbers, "extractor")
    if (
        issue is None
        and verified_value.value == answer.value
        and _has_single_place(answer.value, field, bundle, page_numbers)
    ):
        return verified_value
    # The program cannot read the expert's value on the page, or it appears several times: keep the value without a place.
    return FieldValue(status=answer.status, value=answer.value, confidence=1.0)


def _has_single_place(value: str, field: TemplateField, bundle: DocumentBundle, page_numbers: Iterable[int]) -> bool:
    """Return True if the pages show the value at most once.

    Matches with the same end, which differ only by a leading currency sign, count as one.
    """
    page_texts = ((page_number, bundle.page(page_number).text) for page_number in page_numbers)
    return (
        len(
            {
                (page_number, end)
                for page_number, text in page_texts
                for _, end in find_value_spans(value, field, text, 0, len(text))
            }
        )
        <= 1
    )


def is_same_as_agent(answer: FieldAnswer, agent_value: FieldValue) -> bool:
    """Return True if the expert's answer has the agent's status and value."""
    return (answer.status, answer.value) == (agent_value.status, agent_value.value)


def find_changed_fields(
    forms_before: Sequence[ExtractedFields], forms_after: Sequence[ExtractedFields]
) -> dict[str, FieldAnswer]:
    """Find changed fields, and added or removed entries.

    Returns them as new answers by field key. A value without words of the page has the place that the expert selected.
    """
    values_before, values_after = index_fields_by_key(forms_before), index_fields_by_key(forms_after)
    changed_fields = {
        key: FieldAnswer(
            status=after.status,
            value=after.value,
            **({"page": after.page, "boxes": after.boxes} if after.page and after.raw is None else {}),
        )
        for key, after in values_after.items()
        if (before := values_before.get(key)) is None or (before.status, before.value) != (after.status, after.value)
    }
    removal = FieldAnswer(status=FieldStatus.NOT_PRESENT, removed="deleted in an earlier review")
    return changed_fields | {
        key: removal
        for key, before in values_before.items()
        if key not in values_after and before.status is not FieldStatus.NOT_PRESENT
    }


def format_field_value(field_value: FieldValue | FieldAnswer) -> str:
    """Format a field's value, or its status if it has no certain value."""
    if isinstance(field_value, FieldAnswer) and field_value.removed:
        return f"deleted: {field_value.removed}"
    if field_value.status is FieldStatus.FOUND and field_value.value is not None:
        return field_value.value
    words = STATUS_WORDS[field_value.status]
    return f"{words}, perhaps {field_value.value}" if field_value.value else words


def _build_invalid_field_error(message: str, remedy: str) -> ReviewRefused:
    return ReviewRefused(message, code="REVIEW-FIELD", remedy=remedy)
