"""Which fields a report or form has: a template is a TOML file in ``templates/``, and a new form is a new file.

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
import tomllib
from collections.abc import Iterator
from enum import StrEnum
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError, model_validator
from pydantic import Field as Checked

from evalkit.errors import UsageError
from evalkit.extraction.formats import Format, normalise, problem
from evalkit.store import digest

Kind = Literal["clinical", "tax"]


class Need(StrEnum):
    """How much a field is missed where it is not filled in."""

    REQUIRED = "required"
    IMPORTANT = "important"
    OPTIONAL = "optional"
    EXTRA = "extra"
    """Another box of the form: extracted where it is there, outside the score."""


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def _compiles(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from error
    return pattern


_Pattern = Annotated[str, AfterValidator(_compiles)]


class Field(_Data):
    """One field."""

    name: str = Checked(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")
    description: str
    """What it is, in words for a person and a prompt."""
    need: Need = Need.OPTIONAL
    format: Format = "text"
    pattern: _Pattern | None = None
    """Of the format ``pattern``: the whole value matches it."""
    location: str = ""
    """Where it usually stands: ``Box 1``."""
    box: str = ""
    """The number that the form prints into the box, before the label: ``1``, ``12a``."""
    labels: tuple[str, ...] = ()
    """The words printed beside or above it; the usual ones first."""
    part: Literal["", "name", "address", "block"] = ""
    """Of a box that holds name and address: which of the two it is; ``block``: both."""
    stands: Literal["", "before", "first", "second"] = ""
    """Of what stands on the label's own line: the mark before it, or which of the two values behind it."""
    more_labels: tuple[str, ...] = ()
    """Of reports: words that are looked for after an attempt that did not find it; too common to be the first."""
    reader: Literal["label", "section", "histology", "institution", "whole_text"] = "label"
    """Of reports: how a text is read that has no format of its own."""
    many: bool = False
    """Of reports: it has any number of values, each a field of its own: ``ihcMarkers.ER``, ``measurements.1``."""
    mentions: _Pattern | None = None
    """Of reports: a document without such words does not have the field; with them, somebody has to find it."""
    hints: tuple[str, ...] = ()
    """What to look for after an attempt that did not find it."""

    @model_validator(mode="after")
    def _pattern_where_asked_for(self) -> Self:
        if (self.format == "pattern") != (self.pattern is not None):
            raise ValueError("format 'pattern' and a pattern are given together, or neither")
        return self

    def normal(self, text: str) -> str | None:
        """The value as it is kept; None where the text is not in the field's format."""
        return normalise(text, self.format, self.pattern)

    def problem(self, text: str) -> str:
        """What to say about a text that is not in the field's format."""
        return f"Value {problem(text, self.format)}" if self.format == "pattern" else problem(text, self.format)


class FieldTemplate(_Data):
    """The fields of one kind of report or form."""

    name: str
    """As ``--template`` names it."""
    kind: Kind
    document_type: str
    """What a document of it is called: a clinical type, or the form."""
    display_name: str
    threshold: float = Checked(ge=0, le=1)
    """Of forms, the confidence that is enough; of reports, the score."""
    min_required: int = Checked(0, ge=0)
    """At least so many required fields are filled in."""
    signs: tuple[str, ...] = ()
    """Words that only such a document prints; the first are its title."""
    printed: tuple[str, ...] = ()
    """Other words that the form itself prints: no entry is made of them."""
    fields: tuple[Field, ...] = Checked(alias="field", min_length=1)

    @model_validator(mode="after")
    def _names_once(self) -> Self:
        names = [field.name for field in self.fields]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"fields {', '.join(twice)} are there twice")
        if self.min_required > len(self.of(Need.REQUIRED)):
            raise ValueError("min_required asks for more required fields than there are")
        return self

    def of(self, *needs: Need) -> tuple[Field, ...]:
        """The fields of these needs, in order."""
        return tuple(field for field in self.fields if field.need in needs)

    @property
    def scored(self) -> tuple[Field, ...]:
        """All but the extra ones."""
        return tuple(field for field in self.fields if field.need is not Need.EXTRA)

    def field(self, name: str) -> Field | None:
        """The field of that name."""
        return next((field for field in self.fields if field.name == name), None)


def template(name: str) -> FieldTemplate:
    """The template of that name. UsageError that names all there are."""
    found = _shipped().get(name)
    if found is None:
        raise UsageError(
            f"there is no template {name}", code="TEMPLATE-NAME", remedy=f"There are {', '.join(sorted(_shipped()))}."
        )
    return found


def templates(kind: Kind) -> tuple[FieldTemplate, ...]:
    """All of a kind, sorted by the names of their files."""
    return tuple(one for one in _shipped().values() if one.kind == kind)


def templates_version() -> str:
    """Of all templates: part of every fingerprint."""
    return digest({name: one.model_dump(mode="json") for name, one in _shipped().items()})[:12]


def read_template(text: str, file: str) -> FieldTemplate:
    """The template of a TOML text. UsageError that names the file and the line."""
    try:
        read = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # says the line itself
        raise _wrong(file, str(error)) from error
    try:
        return FieldTemplate.model_validate(read)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        loc = first["loc"]
        entry = " → ".join(_named(part, read) for part in loc)
        place = f"line {_line(text, loc)}"
        raise _wrong(f"{file}, {place}", ": ".join(filter(None, (entry, first["msg"])))) from error


def _wrong(where: str, what: str) -> UsageError:
    return UsageError(f"template {where}: {what}", code="TEMPLATE", remedy="Correct that line.")


def _named(part: int | str, read: dict[str, Any]) -> str:
    """A part of an entry's path; fields by their names, which are easier to find than their numbers."""
    if not isinstance(part, int):
        return str(part)
    rows = read.get("field")
    row = rows[part] if isinstance(rows, list) and part < len(rows) else None
    return str(row["name"]) if isinstance(row, dict) and "name" in row else str(part + 1)


def _line(text: str, loc: tuple[int | str, ...]) -> int:
    """The line (from 1) of the entry: its own where it is written, else that of its table."""
    lines = text.splitlines()
    number = loc[1] if len(loc) > 1 and loc[0] == "field" and isinstance(loc[1], int) else None
    headers = [at for at, line in enumerate(lines) if line.strip().startswith("[[field]]")]
    if number is None:
        start, end = 0, headers[0] if headers else len(lines)
    else:
        start, end = headers[number], (*headers, len(lines))[number + 1]
    key = next((part for part in reversed(loc) if isinstance(part, str) and part != "field"), "")
    written = (at for at in range(start, end) if re.match(rf"\s*{re.escape(key)}\s*=", lines[at]))
    return next(written, start) + 1 if key else start + 1


@cache
def _shipped() -> dict[str, FieldTemplate]:
    found: dict[str, FieldTemplate] = {}
    for folder in ("clinical", "tax"):
        for file in _tomls(files("evalkit.extraction") / "templates" / folder):
            one = read_template(file.read_text("utf-8"), f"{folder}/{file.name}")
            if one.name in found or one.kind != folder:
                raise _wrong(f"{folder}/{file.name}", f"{one.name} is there twice, or not of kind {folder}")
            found[one.name] = one
    return found


def _tomls(folder: Traversable) -> Iterator[Traversable]:
    if folder.is_dir():
        yield from sorted(
            (file for file in folder.iterdir() if file.name.endswith(".toml")), key=lambda file: file.name
        )
