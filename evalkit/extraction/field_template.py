"""Templates of the fields in a report or form: TOML files in ``templates/``.

::

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
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, model_validator
from pydantic import Field as Checked

from evalkit.core.records import StrictRecord
from evalkit.errors import UsageError
from evalkit.extraction.formats import FieldFormat, get_format_error_phrase, normalise_value
from evalkit.store import hash_canonical_json
from evalkit.store.toml_records import build_template_error, parse_toml_record

TemplateKind = Literal["clinical", "tax"]


class FieldNeed(StrEnum):
    """Importance of a field."""

    REQUIRED = "required"
    IMPORTANT = "important"
    OPTIONAL = "optional"
    EXTRA = "extra"
    """Another box of the form: extracted if present, but not scored."""


def _validate_regex(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from error
    return pattern


_RegexText = Annotated[str, AfterValidator(_validate_regex)]


class TemplateField(StrictRecord):
    """One field of a template."""

    name: str = Checked(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")
    description: str
    """Its meaning, for people and prompts."""
    need: FieldNeed = FieldNeed.OPTIONAL
    format: FieldFormat = "text"
    pattern: _RegexText | None = None
    """For the format ``pattern``: must match the whole value."""
    location: str = ""
    """Its usual place: ``Box 1``."""
    box: str = ""
    """The number printed in the box, before the label: ``1``, ``12a``."""
    labels: tuple[str, ...] = ()
    """The words printed next to it or above it, the usual ones first."""
    part: Literal["", "name", "address", "block"] = ""
    """For a box with name and address: which of the two this field is; ``block``: both."""
    stands: Literal["", "before", "first", "second"] = ""
    """For values on the label's own line: the mark before it, or the first or second value after it."""
    more_labels: tuple[str, ...] = ()
    """For reports: labels tried after an attempt without a value; too common to try first."""
    reader: Literal["label", "section", "histology", "institution", "whole_text"] = "label"
    """For reports: how to read a text that has no format of its own."""
    many: bool = False
    """For reports: any number of values, each a field of its own: ``ihcMarkers.ER``, ``measurements.1``."""
    mentions: _RegexText | None = None
    """For reports: a document without these words does not have the field; one with them should have a value."""
    hints: tuple[str, ...] = ()
    """Advice for the next attempt if the field was not found."""

    @model_validator(mode="after")
    def _require_pattern_for_format(self) -> Self:
        if (self.format == "pattern") != (self.pattern is not None):
            raise ValueError("format 'pattern' needs a pattern, and a pattern needs format 'pattern'")
        return self

    def normalise(self, text: str) -> str | None:
        """Normalise a text to the stored form; None if it is not in the field's format."""
        return normalise_value(text, self.format, self.pattern)

    def describe_invalid_text(self, text: str) -> str:
        """Explain why a text is not in the field's format."""
        problem = f'"{text}" {get_format_error_phrase(self.format)}'
        return f"Value {problem}" if self.format == "pattern" else problem


class FieldTemplate(StrictRecord):
    """The fields of one kind of report or form."""

    name: str
    """The name for ``--template``."""
    kind: TemplateKind
    document_type: str
    """The clinical document type, or the form's name."""
    display_name: str
    threshold: float = Checked(ge=0, le=1)
    """Enough confidence (forms) or score (reports) to be accepted."""
    min_required: int = Checked(0, ge=0)
    """Fewest required fields that must be filled in."""
    signs: tuple[str, ...] = ()
    """Words that only such a document prints, its title first."""
    printed: tuple[str, ...] = ()
    """Other words printed on the form itself: never read as an entry."""
    fields: tuple[TemplateField, ...] = Checked(alias="field", min_length=1)

    @model_validator(mode="after")
    def _require_unique_names(self) -> Self:
        names = [field.name for field in self.fields]
        if repeated_names := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"fields {', '.join(repeated_names)} appear twice")
        if self.min_required > len(self.get_fields_by_need(FieldNeed.REQUIRED)):
            raise ValueError("min_required exceeds the number of required fields")
        return self

    def get_fields_by_need(self, *needs: FieldNeed) -> tuple[TemplateField, ...]:
        """List the fields with these needs, in order."""
        return tuple(field for field in self.fields if field.need in needs)

    @property
    def scored_fields(self) -> tuple[TemplateField, ...]:
        """All fields except the extra ones."""
        return tuple(field for field in self.fields if field.need is not FieldNeed.EXTRA)

    def get_field(self, name: str) -> TemplateField | None:
        """Find a field by its name."""
        return next((field for field in self.fields if field.name == name), None)


def get_field_template(name: str) -> FieldTemplate:
    """Get a template by its name. UsageError lists the names if there is none."""
    template = _load_shipped_templates().get(name)
    if template is None:
        raise UsageError(
            f"there is no template {name}",
            code="TEMPLATE-NAME",
            remedy=f"Choose one of {', '.join(sorted(_load_shipped_templates()))}.",
        )
    return template


def list_field_templates(kind: TemplateKind) -> tuple[FieldTemplate, ...]:
    """List the templates of a kind, sorted by file name."""
    return tuple(template for template in _load_shipped_templates().values() if template.kind == kind)


def compute_templates_version() -> str:
    """Hash all templates, for fingerprints."""
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
                    message = f"{template.name} appears twice, or is not of kind {kind}"
                    raise build_template_error(f"{kind}/{file.name}", message)
                templates_by_name[template.name] = template
    return templates_by_name
