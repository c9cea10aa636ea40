"""The fields of a case: what the agent extracted, and what an expert says instead.

A field's key is the number of its report or form in the packet, from 1, a point, and the field's name: ``1.wages_tips``;
``2.ihcMarkers.ER``. Whether a text is written as such a value is decided by the field's format alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import StringConstraints, ValidationError

from evalkit.documents.bundle import DocumentBundle
from evalkit.errors import ReviewRefused, UsageError
from evalkit.extraction.clinical_rules import base
from evalkit.extraction.formats import complaint, example
from evalkit.extraction.schema import Extraction, FieldStatus, FieldValue, IterationRecord
from evalkit.extraction.template import Field, FieldTemplate, template
from evalkit.extraction.values import Claim, proven, written
from evalkit.frozen import Frozen
from evalkit.grounding import Locator
from evalkit.review.packet import SMEPacket

Key = Annotated[str, StringConstraints(pattern=r"^[1-9]\d*\..+$")]

#: What a status is called on a person's screen.
STATUS_WORDS = {
    FieldStatus.FOUND: "found",
    FieldStatus.NOT_PRESENT: "not present",
    FieldStatus.AMBIGUOUS: "ambiguous",
}


class FormFields(Frozen):
    """The fields of one report or form, as the agent or an expert has them."""

    template: str
    """Name of the template."""
    document_type: str
    """The clinical document type, or the form: ``W-2``."""
    start_page: int
    end_page: int
    """Inclusive."""
    fields: dict[str, FieldValue]
    """By name, in the template's order."""

    @classmethod
    def of(cls, extraction: Extraction) -> FormFields:
        """What was extracted, without how."""
        return cls(**{name: getattr(extraction, name) for name in cls.model_fields})


class FieldAnswer(Frozen):
    """What an expert says about one field."""

    status: FieldStatus
    value: str | None = None
    """Normalised; of a field that was found, or an ambiguous reading."""


@dataclass(frozen=True)
class Checked:
    """A text as a field's value."""

    value: str | None
    """Normalised; None where it is not written in the field's format."""
    problem: str = ""
    """What is wrong with it, and how such a value is written; empty where nothing is."""


def forms(packet: SMEPacket) -> tuple[FormFields, ...]:
    """What the agent extracted, by report and form."""
    return tuple(map(FormFields.of, packet.extractions))


def keyed(given: Sequence[FormFields]) -> dict[str, FieldValue]:
    """All fields by key, in order."""
    return {f"{number}.{name}": value for number, one in enumerate(given, 1) for name, value in one.fields.items()}


def parted(key: str) -> tuple[int, str]:
    """A key's report or form, from 0, and the name of its field."""
    number, _, name = key.partition(".")
    return int(number) - 1, name


def field_of(form: FormFields | Extraction, name: str) -> Field:
    """What the form's template says about a field; of one that it does not know any more, a plain text."""
    known = form_template(form)
    found = known.field(base(name)) if known else None
    return found or Field(name="text", description=name)


def form_template(form: FormFields | Extraction | IterationRecord) -> FieldTemplate | None:
    """The template that was filled in; None where it is not there any more."""
    try:
        return template(form.template)
    except UsageError:
        return None


def label(form: FormFields | Extraction, name: str) -> str:
    """What a person calls the field: ``Wages, tips, other compensation``; of one of many its own name behind it."""
    own = name.partition(".")[2]
    description = field_of(form, name).description
    return f"{description}: {own}" if own else description


def checked(field: Field, text: str) -> Checked:
    """A text that is being typed, as that field's value."""
    if not text.strip():
        return Checked(None, "Type a value, or say that it is not present.")
    value = field.normal(text)
    if value is not None:
        return Checked(value)
    said = complaint(field.format)
    such = example(field.format)
    return Checked(None, f"This {said}." + (f" It is written as {such}." if such else ""))


def answer(field: Field, given: object) -> FieldAnswer:
    """An expert's word about a field: a value as text, or ``{"value": …, "status": …}``; None: it is not present.

    ReviewRefused where it is neither, or the value is not in the field's format. The value itself is not quoted.
    """
    told: Any = {"status": "not_present"} if given is None else {"value": given} if isinstance(given, str) else given
    if isinstance(told, Mapping) and "status" not in told:
        told = {**told, "status": "found"}
    try:
        said = FieldAnswer.model_validate(told)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        at = ".".join(str(step) for step in first["loc"])
        raise _refused(
            f"{field.description}: {at}: {first['msg']}".replace(": : ", ": "),
            'Give a text, None for a field that is not there, or {"value": …, "status": "found", "not_present" or "ambiguous"}.',
        ) from None
    text = said.value or ""
    if said.status is FieldStatus.NOT_PRESENT:
        if text.strip():
            raise _refused(f"{field.description}: a field that is not present has no value", "Leave one of them out.")
        return FieldAnswer(status=said.status)
    if said.status is FieldStatus.AMBIGUOUS and not text.strip():
        return FieldAnswer(status=said.status)
    read = checked(field, text)
    if read.value is None:
        raise _refused(f"{field.description}: {read.problem[:1].lower()}{read.problem[1:-1]}", "Correct the value.")
    return FieldAnswer(status=said.status, value=read.value)


def named(packet: SMEPacket, name: str) -> str:
    """The key of a field that is called by its key, or by its name where only one form has it. ReviewRefused."""
    keys = list(keyed(forms(packet)))
    found = [key for key in keys if name in (key, parted(key)[1])]
    if len(found) == 1:
        return found[0]
    if found:
        raise _refused(f"several forms have a field {name!r}", f"Say which: {' or '.join(found)}.")
    raise _refused(f"case {packet.case_id!r} has no field {name!r}", "Its fields are in packet.extractions.")


def answers(packet: SMEPacket, given: Mapping[str, object]) -> dict[str, FieldAnswer]:
    """What an expert says, by key; fields may be called by their names. ReviewRefused."""
    told = forms(packet)
    said: dict[str, FieldAnswer] = {}
    for name, value in given.items():
        key = named(packet, name)
        at, own = parted(key)
        said[key] = answer(field_of(told[at], own), value)
    return said


def corrected(
    told: Sequence[FormFields], said: Mapping[str, FieldAnswer], bundle: DocumentBundle
) -> tuple[FormFields, ...]:
    """The fields as the expert corrects them; a value that stands on the form's pages has its place there."""
    locator = Locator(bundle)
    left = []
    for number, form in enumerate(told, 1):
        own = {
            name: _placed(said[key], value, form, name, bundle, locator)
            if (key := f"{number}.{name}") in said
            else value
            for name, value in form.fields.items()
        }
        left.append(form.model_copy(update={"fields": own}))
    return tuple(left)


def _placed(
    said: FieldAnswer, agents: FieldValue, form: FormFields, name: str, bundle: DocumentBundle, locator: Locator
) -> FieldValue:
    if is_same(said, agents):
        return agents
    if said.value is None:
        return FieldValue(status=said.status, confidence=1.0)
    if said.value == agents.value:  # where the agent read it
        return agents.model_copy(update={"status": said.status, "confidence": 1.0})
    field, pages = field_of(form, name), range(max(form.start_page, 1), min(form.end_page, bundle.total_pages) + 1)
    claim = Claim(said.value, page=agents.page, is_ambiguous=said.status is FieldStatus.AMBIGUOUS)
    made = proven(claim, field, bundle, locator, pages, "extractor")
    if made.issue is None and made.field.value == said.value and _stands_once(said.value, field, bundle, pages):
        return made.field
    # The expert has read it where the reader could not, or it stands in several boxes: it is true all the same, and no
    # place is made up for it.
    return FieldValue(status=said.status, value=said.value, confidence=1.0)


def _stands_once(value: str, field: Field, bundle: DocumentBundle, pages: Iterable[int]) -> bool:
    """Whether no other place on the pages could be meant; a sign of currency more or less makes no other place."""
    own = ((number, bundle.page(number).text) for number in pages)
    return len({(number, end) for number, text in own for _, end in written(value, field, text, 0, len(text))}) <= 1


def is_same(said: FieldAnswer, agents: FieldValue) -> bool:
    """Whether an expert says what the agent said."""
    return (said.status, said.value) == (agents.status, agents.value)


def differing(told: Sequence[FormFields], after: Sequence[FormFields]) -> dict[str, FieldAnswer]:
    """What of two states of the same forms is not alike: as answers to the first, by key."""
    before = keyed(told)
    return {
        key: FieldAnswer(status=value.status, value=value.value)
        for key, value in keyed(after).items()
        if key in before and (before[key].status, before[key].value) != (value.status, value.value)
    }


def said_alike(one: Iterable[FormFields]) -> list[tuple[str, str, str | None]]:
    """What two experts must have said alike to agree: status and value of every field."""
    return [(key, value.status, value.value) for key, value in keyed(tuple(one)).items()]


def shown(value: FieldValue | FieldAnswer) -> str:
    """A field in a few words."""
    if value.status is FieldStatus.FOUND and value.value is not None:
        return value.value
    words = STATUS_WORDS[value.status]
    return f"{words}, perhaps {value.value}" if value.value else words


def _refused(message: str, remedy: str) -> ReviewRefused:
    return ReviewRefused(message, code="REVIEW-FIELD", remedy=remedy)
