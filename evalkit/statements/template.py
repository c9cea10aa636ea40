"""How one bank's statements are read: a template is a TOML file, which a person can read and correct.

``template.toml.jinja`` shows its parts in their order, each with what it is for; what a part may hold stands at its model
below.
"""

from __future__ import annotations

import json
import re
import tomllib
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from evalkit.documents.bundle import Box
from evalkit.errors import UsageError
from evalkit.statements.amounts import DecimalSign, Mark
from evalkit.statements.dates import check_format
from evalkit.statements.wording import Pattern

SCHEMA_VERSION = 1

ColumnName = Literal[
    "date", "value_date", "description", "debit", "credit", "amount", "balance", "check_number", "other"
]
"""``amount`` holds withdrawals and deposits alike; ``other`` is read by nobody, such as a branch's number."""
PageKind = Literal["first", "middle", "last", "later", "any"]
"""``later``: all but the first."""
Direction = Literal["deposit", "withdrawal"]

#: Which regions a page takes: those of the first kind in its row for which the template has any.
_KINDS: dict[str, tuple[PageKind, ...]] = {
    "only": ("first", "last", "any"),
    "first": ("first", "any"),
    "middle": ("middle", "later", "any"),
    "last": ("last", "later", "any"),
}


class Status(StrEnum):
    """Whether a template may be relied on."""

    DRAFT = "draft"
    STABLE = "stable"
    """Both reviewers passed it, or a person approved it."""


class _Data(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", defer_build=True, populate_by_name=True, serialize_by_alias=True
    )


def _inside(box: Box) -> Box:
    x0, y0, x1, y1 = box
    if not (0 <= x0 < x1 <= 1 and 0 <= y0 < y1 <= 1):
        raise ValueError("a box is x0, y0, x1, y1 from 0 to 1, x0 below x1 and y0 below y1")
    return box


def _range(x: tuple[float, float]) -> tuple[float, float]:
    if not 0 <= x[0] < x[1] <= 1:
        raise ValueError("a column reaches from x0 to a greater x1, both from 0 to 1")
    return x


class Identity(_Data):
    """Whose statements these are."""

    bank: str = Field(min_length=1)
    statement: str = ""
    """Which of the bank's statements: ``Current account``."""
    signs: tuple[str, ...] = ()
    """Words that the first page prints."""


class Region(_Data):
    """Where transactions stand on pages of a kind; several of one kind are read in their order."""

    pages: PageKind = "any"
    box: Annotated[Box, AfterValidator(_inside)]


class Column(_Data):
    """A column of the table."""

    name: ColumnName
    x: Annotated[tuple[float, float], AfterValidator(_range)]
    """From the left edge to the right; a word belongs to the column that its middle is in."""
    title: str = ""
    """What stands above it."""


class Dates(_Data):
    """How dates are written, and where the year is taken from where they have none."""

    formats: tuple[Annotated[str, AfterValidator(check_format)], ...] = Field(min_length=1)
    """Of ``%d``, ``%m`` or ``%b`` (a month's name), ``%Y`` or ``%y``; the first that fits counts."""
    period: tuple[Pattern, ...] = ()
    """The lines that print the statement's period, or its end; without any, the latest date beside a
    closing balance is its end, or that of the first page."""
    period_formats: tuple[Annotated[str, AfterValidator(check_format)], ...] = ()
    """How the period's dates are written."""


class Amounts(_Data):
    """How amounts are written, and which marks say which way the money went."""

    decimal: DecimalSign = "."
    whole: bool = False
    """Amounts may be written without cents."""
    deposit: tuple[Mark, ...] = ("plus", "cr")
    withdrawal: tuple[Mark, ...] = ("minus", "trailing_minus", "parentheses", "dr")
    unmarked: Literal["deposit", "withdrawal", "section"] = "deposit"
    """What an amount of the column ``amount`` without a mark is; ``section``: as the heading above it says."""
    balance: Literal["held", "owed"] = "held"
    """``owed``: a printed balance is a debt, as on credit cards."""

    @model_validator(mode="after")
    def _one_meaning(self) -> Self:
        if both := sorted(set(self.deposit) & set(self.withdrawal)):
            raise ValueError(f"{', '.join(both)} cannot mean a deposit and a withdrawal")
        return self


class Section(_Data):
    """A heading that says which way the money below it went."""

    heading: Pattern
    direction: Direction


class Rows(_Data):
    """How transactions follow one another."""

    continuation: Literal["below", "none"] = "below"
    """``below``: lines without date and amount belong to the transaction above."""
    gap: float = Field(2.2, gt=0, le=20)
    """A continuation's line stands at most so many heights of a word below the one before, middle to middle."""
    joint: str = Field(" ", max_length=3)
    """What is put between the lines of a description: nothing where a bank parts words at a line's end."""
    date_once: bool = False
    """A date counts for all rows below it until the next one."""
    order: Literal["oldest_first", "newest_first"] = "oldest_first"
    furniture: tuple[Pattern, ...] = ()
    """Lines that are no transactions: carried forward, totals of a page."""
    section: tuple[Section, ...] = ()
    accounts: tuple[Pattern, ...] = ()
    """Headings from which on another account's transactions follow."""
    ends: tuple[Pattern, ...] = ()
    """Lines from which on the page has no more of them, until a header or a heading follows."""


class Total(_Data):
    """A sum that the statement prints."""

    label: Pattern
    of: Literal["deposits", "withdrawals", "columns"]
    """``columns``: the total of debits stands below the debits, that of credits below the credits."""
    part: bool = False
    """It is a part of them: all parts together are the sum."""


class Reconciliation(_Data):
    """What the statement prints that its transactions must meet."""

    opening: tuple[Pattern, ...] = ()
    closing: tuple[Pattern, ...] = ()
    total: tuple[Total, ...] = ()


class StatementTemplate(_Data):
    """How one bank's statements of one kind are read."""

    schema_version: int = SCHEMA_VERSION
    template_id: str = Field(pattern=r"^[A-Za-z0-9_-]+$")
    version: int = Field(1, ge=1)
    status: Status = Status.DRAFT
    identity: Identity
    regions: tuple[Region, ...] = Field(alias="region", min_length=1)
    columns: tuple[Column, ...] = Field(alias="column", min_length=1)
    dates: Dates
    amounts: Amounts = Amounts()
    rows: Rows = Rows()
    reconciliation: Reconciliation = Reconciliation()

    @model_validator(mode="after")
    def _columns_that_make_a_row(self) -> Self:
        names = [column.name for column in self.columns if column.name != "other"]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"columns {', '.join(twice)} are there twice")
        if "date" not in names or not {"amount", "debit", "credit"} & set(names):
            raise ValueError("a row needs a column date, and amount or debit and credit")
        if "amount" in names and {"debit", "credit"} & set(names):
            raise ValueError("amount stands for debit and credit: there is one or the others")
        return self

    def column(self, name: ColumnName) -> Column | None:
        """The column of that name."""
        return next((column for column in self.columns if column.name == name), None)

    def boxes(self, page: int, pages: int) -> tuple[Box, ...]:
        """The boxes of ``regions_on``."""
        return tuple(self.regions[at].box for at in self.regions_on(page, pages))

    def regions_on(self, page: int, pages: int) -> tuple[int, ...]:
        """The positions (from 0) of the regions on page ``page`` of ``pages``, both from 1; none where transactions do
        not stand there.
        """
        place = "only" if pages == 1 else "first" if page == 1 else "last" if page == pages else "middle"
        for kind in _KINDS[place]:
            if found := tuple(at for at, region in enumerate(self.regions) if region.pages == kind):
                return found
        return ()


def read_template(text: str, file: str) -> StatementTemplate:
    """The template of a TOML text. UsageError that names the file and the line."""
    try:
        read = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # says the line itself
        raise _wrong(file, str(error)) from error
    try:
        return StatementTemplate.model_validate(read)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        entry = " → ".join(str(part + 1) if isinstance(part, int) else part for part in first["loc"])
        what = ": ".join(filter(None, (entry, first["msg"].removeprefix("Value error, "))))
        raise _wrong(f"{file}, line {_line(text, first['loc'])}", what) from error


def write_template(template: StatementTemplate) -> str:
    """The template as TOML, with a sentence above each part; ``read_template`` reads the same template from it."""
    return str(_layout().render(template.model_dump(mode="json")))


def _wrong(where: str, what: str) -> UsageError:
    return UsageError(f"template {where}: {what}", code="TEMPLATE", remedy="Correct that line.")


def _line(text: str, loc: tuple[int | str, ...]) -> int:
    """The line (from 1) where the entry is written, else the nearest table around it, else the first."""
    best, at, counted, table = (0, 1), 1, dict[str, int](), tuple[int | str, ...]()
    for at, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*(\[\[?)\s*([\w.]+)", line):
            table = tuple(header[2].split("."))
            if header[1] == "[[":
                table = (*table, counted.setdefault(header[2], 0))
                counted[header[2]] += 1
            here = table
        elif key := re.match(r"\s*([\w-]+)\s*=", line):
            here = (*table, key[1])
        else:
            continue
        if loc[: len(here)] == here and len(here) > best[0]:
            best = len(here), at
    return best[1]


@cache
def _layout() -> Any:
    from jinja2 import Environment, StrictUndefined  # an expert's kernel seldom writes a template

    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False)  # noqa: S701 - TOML, not HTML
    environment.filters["toml"] = _value
    return environment.from_string((files("evalkit.statements") / "template.toml.jinja").read_text("utf-8"))


def _value(value: Any) -> str:
    """A value as TOML writes it: as JSON, but that patterns and texts without quotes need no escapes."""
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, str) and "\\" in value and "'" not in value and value.isprintable():
        return f"'{value}'"
    # TOML allows no bare DEL, which JSON does.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
