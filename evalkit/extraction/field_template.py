"""Templates: the fields of each kind of report or form, as TOML in ``templates/``.

An example::

    name = "1099-NEC"
    kind = "tax"
    document_type = "1099-NEC"
    display_name = "Form 1099-NEC (Nonemployee Compensation)"
    threshold = 0.75
    min_required = 3
    signs = ["1099-NEC", "Nonemployee compensation"]

    [[field]]
    name = "nonemployee_compensation"
    description = "Nonemployee compensation"
    need = "required"
    format = "currency"
    location = "Box 1"
    box = "1"
    labels = ["Nonemployee compensation"]
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Literal, Self

from pydantic import Field as Checked
from pydantic import model_validator

from evalkit.core.loinc import Coding
from evalkit.core.records import StrictRecord
from evalkit.errors import UsageError
from evalkit.extraction.formats import FieldFormat, get_format_error_phrase, normalise_value
from evalkit.store import hash_canonical_json
from evalkit.store.toml_records import build_template_error, parse_toml_record

TemplateKind = Literal["clinical", "tax"]


class FieldNeed(StrEnum):
    """Importance of a field for the score."""

    REQUIRED = "required"
    IMPORTANT = "important"
    OPTIONAL = "optional"
    EXTRA = "extra"
    """A further box of a form: extracted if filled in, but not scored."""


class TemplateField(StrictRecord):
    """One field of a template: its format, and how it is found."""

    name: str = Checked(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")
    description: str
    """The field's meaning, as people and prompts see it."""
    need: FieldNeed = FieldNeed.OPTIONAL
    format: FieldFormat = "text"
    pattern: re.Pattern[str] | None = None
    """For the format ``pattern``: a regular expression that must match the whole value."""
    location: str = ""
    """The field's usual place, for people and prompts: ``Box 1``."""
    box: str = ""
    """For forms: the number printed in the box, before the label: ``1``, ``12a``."""
    labels: tuple[str, ...] = ()
    """Labels printed next to or above the value, the usual ones first."""
    part: Literal["", "name", "address", "block"] = ""
    """For a box that holds name and address: the part that is this field; ``block``: both parts."""
    value_position: Literal["", "before", "first", "second"] = ""
    """For values on the label's line: the mark before the label, or the first or second value after the label."""
    row: int = 1
    """For forms: the line of entries below the label that is this field; a W-2 may have a second state."""
    more_labels: tuple[str, ...] = ()
    """For reports: labels tried only if an attempt found no value, because they often mean something else."""
    reader: Literal["label", "section", "histology", "institution", "whole_text"] = "label"
    """For reports: the offline method that finds the value: at a label, or as a section, a tumor name …"""
    many: bool = False
    """For reports: the field may have several values, stored by item: ``ihcMarkers.ER``, ``measurements.1``."""
    mentions: re.Pattern[str] | None = None
    """For reports: a regular expression; a report with a match should have a value for the field."""
    hints: tuple[str, ...] = ()
    """Advice to the extractor for the next attempt, if this field had a problem."""
    coding: Coding | None = None
    """The LOINC code of the observation that the field is, where there is one that says no more and no less."""
    part_codings: Mapping[str, Coding] = {}
    """Codes of a field's items, by name (``ER``), or of a value's parts (``gene``, ``coding_change``)."""

    def __hash__(self) -> int:
        """Hash the field by its name: a table of codes has no hash."""
        return hash(self.name)

    @model_validator(mode="after")
    def _require_pattern_for_format(self) -> Self:
        if (self.format == "pattern") != (self.pattern is not None):
            raise ValueError("format 'pattern' needs a pattern, and a pattern needs format 'pattern'")
        return self

    @property
    def short_label(self) -> str:
        """The description without its examples and notes, for example ``IHC results``."""
        return re.split(r" [(]|, | as ", self.description)[0]

    def format_entry_label(self, entry_name: str) -> str:
        """Format the label of an entry; entries without names of their own are numbered."""
        return f"{self.short_label} no. {entry_name}" if entry_name.isdecimal() else f"{self.short_label}: {entry_name}"

    def normalise(self, text: str) -> str | None:
        """Return the normal form of a text; None if the text is not in the field's format."""
        return normalise_value(text, self.format, self.pattern)

    def describe_invalid_text(self, text: str) -> str:
        """Return a sentence for issues: the text is not in the field's format."""
        problem = f'"{text}" {get_format_error_phrase(self.format)}'
        return f"Value {problem}" if self.format == "pattern" else problem


class FieldTemplate(StrictRecord):
    """The fields of one kind of report or form."""

    name: str
    """The template's name, as ``--template`` takes it."""
    kind: TemplateKind
    document_type: str
    """The clinical document type, or the form's name."""
    display_name: str
    threshold: float = Checked(ge=0, le=1)
    """For forms: smallest confidence with which a form passes, 0..1."""
    min_required: int = Checked(0, ge=0)
    """For forms: smallest number of required fields that must be valid."""
    signs: tuple[str, ...] = ()
    """Words printed only on documents of this kind; for forms, the title comes first."""
    part_sections: tuple[str, ...] = ()
    """For reports: names of the sections that are such a report within another one, in small letters."""
    printed: tuple[str, ...] = ()
    """For forms: further printed words, which are never read as an entry."""
    fields: tuple[TemplateField, ...] = Checked(alias="field", min_length=1)

    @model_validator(mode="after")
    def _require_unique_names(self) -> Self:
        names = [field.name for field in self.fields]
        if repeated_names := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"these field names appear twice: {', '.join(repeated_names)}")
        if self.min_required > len(self.get_fields_by_need(FieldNeed.REQUIRED)):
            raise ValueError("min_required exceeds the number of required fields")
        return self

    def get_fields_by_need(self, *needs: FieldNeed) -> tuple[TemplateField, ...]:
        """Return the fields of these importances (needs), in the template's order."""
        return tuple(field for field in self.fields if field.need in needs)

    @property
    def scored_fields(self) -> tuple[TemplateField, ...]:
        """Fields that count for the score: all except those with need ``extra``."""
        return tuple(field for field in self.fields if field.need is not FieldNeed.EXTRA)

    def get_field(self, name: str) -> TemplateField | None:
        """Return the field of this name; None if the template has none."""
        return next((field for field in self.fields if field.name == name), None)


def get_field_template(name: str) -> FieldTemplate:
    """Return the template of this name. UsageError TEMPLATE-NAME if there is none."""
    template = _load_shipped_templates().get(name)
    if template is None:
        raise UsageError(
            f"there is no template {name}",
            code="TEMPLATE-NAME",
            remedy=f"Choose one of {', '.join(sorted(_load_shipped_templates()))}.",
        )
    return template


def list_field_templates(kind: TemplateKind) -> tuple[FieldTemplate, ...]:
    """Return all templates of a kind, sorted by file name."""
    return tuple(template for template in _load_shipped_templates().values() if template.kind == kind)


def compute_templates_version() -> str:
    """Return a hash of all templates, for fingerprints (12 hex digits)."""
    return hash_canonical_json(
        {name: template.model_dump(mode="json") for name, template in _load_shipped_templates().items()}
    )[:12]


@cache
def _load_shipped_templates() -> dict[str, FieldTemplate]:
    templates_by_name: dict[str, FieldTemplate] = {}
    for kind in ("clinical", "tax"):
        folder = files("evalkit.extraction") / "templates" / kind
        for file in sorted(folder.iterdir(), key=lambda file: file.name):
            if file.name.endswith(".toml"):
                template = parse_toml_record(file.read_text("utf-8"), f"{kind}/{file.name}", FieldTemplate)
                if template.name in templates_by_name or template.kind != kind:
                    message = f"the name {template.name} is used by two templates, or the kind is not {kind}"
                    raise build_template_error(f"{kind}/{file.name}", message)
                templates_by_name[template.name] = template
    return templates_by_name
