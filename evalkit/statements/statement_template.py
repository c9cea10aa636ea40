"""How one bank's statements are read: a template is a TOML file, which a person can read and correct.

``template.toml.jinja`` shows its parts in their order, each with what it is for; what a part may hold stands at its model
below.
"""

from __future__ import annotations

import json
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from evalkit.core.records import LazyStrictRecord
from evalkit.documents.bundle import Box
from evalkit.statements.amounts import DecimalSeparator, SignMark
from evalkit.statements.bank_vocabulary import LinePattern
from evalkit.statements.dates import validate_date_format
from evalkit.store.toml_records import parse_toml_record

SCHEMA_VERSION = 1

ColumnName = Literal[
    "date", "value_date", "description", "debit", "credit", "amount", "balance", "check_number", "other"
]
"""``amount`` holds withdrawals and deposits alike; ``other`` is read by nobody, such as a branch's number."""
PageKind = Literal["first", "middle", "last", "later", "any"]
"""``later``: all but the first."""
Direction = Literal["deposit", "withdrawal"]

#: Which regions a page takes: those of the first kind in its row for which the template has any.
_PAGE_KINDS_BY_POSITION: dict[str, tuple[PageKind, ...]] = {
    "only": ("first", "last", "any"),
    "first": ("first", "any"),
    "middle": ("middle", "later", "any"),
    "last": ("last", "later", "any"),
}


class TemplateStatus(StrEnum):
    """Whether a template may be relied on."""

    DRAFT = "draft"
    STABLE = "stable"
    """Both reviewers passed it, or a person approved it."""


def _validate_box(box: Box) -> Box:
    x0, y0, x1, y1 = box
    if not (0 <= x0 < x1 <= 1 and 0 <= y0 < y1 <= 1):
        raise ValueError("a box is x0, y0, x1, y1 from 0 to 1, x0 below x1 and y0 below y1")
    return box


def _validate_column_range(x_range: tuple[float, float]) -> tuple[float, float]:
    if not 0 <= x_range[0] < x_range[1] <= 1:
        raise ValueError("a column reaches from x0 to a greater x1, both from 0 to 1")
    return x_range


class StatementIdentity(LazyStrictRecord):
    """Whose statements these are."""

    bank: str = Field(min_length=1)
    statement: str = ""
    """Which of the bank's statements: ``Current account``."""
    signs: tuple[str, ...] = ()
    """Words that the first page prints."""


class Region(LazyStrictRecord):
    """Where transactions stand on pages of a kind; several of one kind are read in their order."""

    pages: PageKind = "any"
    box: Annotated[Box, AfterValidator(_validate_box)]


class Column(LazyStrictRecord):
    """A column of the table."""

    name: ColumnName
    x: Annotated[tuple[float, float], AfterValidator(_validate_column_range)]
    """From the left edge to the right; a word belongs to the column that its middle is in."""
    title: str = ""
    """What stands above it."""


class DateRules(LazyStrictRecord):
    """How dates are written, and where the year is taken from where they have none."""

    formats: tuple[Annotated[str, AfterValidator(validate_date_format)], ...] = Field(min_length=1)
    """Of ``%d``, ``%m`` or ``%b`` (a month's name), ``%Y`` or ``%y``; the first that fits counts."""
    period: tuple[LinePattern, ...] = ()
    """The lines that print the statement's period, or its end; without any, the latest date beside a
    closing balance is its end, or that of the first page."""
    period_formats: tuple[Annotated[str, AfterValidator(validate_date_format)], ...] = ()
    """How the period's dates are written."""


class AmountRules(LazyStrictRecord):
    """How amounts are written, and which marks say which way the money went."""

    decimal: DecimalSeparator = "."
    whole: bool = False
    """Amounts may be written without cents."""
    deposit: tuple[SignMark, ...] = ("plus", "cr")
    withdrawal: tuple[SignMark, ...] = ("minus", "trailing_minus", "parentheses", "dr")
    unmarked: Literal["deposit", "withdrawal", "section"] = "deposit"
    """What an amount of the column ``amount`` without a mark is; ``section``: as the heading above it says."""
    balance: Literal["held", "owed"] = "held"
    """``owed``: a printed balance is a debt, as on credit cards."""

    @model_validator(mode="after")
    def _reject_ambiguous_marks(self) -> Self:
        if shared_marks := sorted(set(self.deposit) & set(self.withdrawal)):
            raise ValueError(f"{', '.join(shared_marks)} cannot mean a deposit and a withdrawal")
        return self


class SectionHeading(LazyStrictRecord):
    """A heading that says which way the money below it went."""

    heading: LinePattern
    direction: Direction


class RowRules(LazyStrictRecord):
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
    furniture: tuple[LinePattern, ...] = ()
    """Lines that are no transactions: carried forward, totals of a page."""
    section: tuple[SectionHeading, ...] = ()
    accounts: tuple[LinePattern, ...] = ()
    """Headings from which on another account's transactions follow."""
    ends: tuple[LinePattern, ...] = ()
    """Lines from which on the page has no more of them, until a header or a heading follows."""


class TotalLabel(LazyStrictRecord):
    """A sum that the statement prints."""

    label: LinePattern
    of: Literal["deposits", "withdrawals", "columns"]
    """``columns``: the total of debits stands below the debits, that of credits below the credits."""
    part: bool = False
    """It is a part of them: all parts together are the sum."""


class PrintedSumLabels(LazyStrictRecord):
    """What the statement prints that its transactions must meet."""

    opening: tuple[LinePattern, ...] = ()
    closing: tuple[LinePattern, ...] = ()
    total: tuple[TotalLabel, ...] = ()


class StatementTemplate(LazyStrictRecord, populate_by_name=True, serialize_by_alias=True):
    """How one bank's statements of one kind are read."""

    schema_version: int = SCHEMA_VERSION
    template_id: str = Field(pattern=r"^[A-Za-z0-9_-]+$")
    version: int = Field(1, ge=1)
    status: TemplateStatus = TemplateStatus.DRAFT
    identity: StatementIdentity
    regions: tuple[Region, ...] = Field(alias="region", min_length=1)
    columns: tuple[Column, ...] = Field(alias="column", min_length=1)
    dates: DateRules
    amounts: AmountRules = AmountRules()
    rows: RowRules = RowRules()
    reconciliation: PrintedSumLabels = PrintedSumLabels()

    @model_validator(mode="after")
    def _validate_columns(self) -> Self:
        names = [column.name for column in self.columns if column.name != "other"]
        if duplicate_names := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"columns {', '.join(duplicate_names)} are there twice")
        if "date" not in names or not {"amount", "debit", "credit"} & set(names):
            raise ValueError("a row needs a column date, and amount or debit and credit")
        if "amount" in names and {"debit", "credit"} & set(names):
            raise ValueError("amount stands for debit and credit: there is one or the others")
        return self

    def find_column(self, name: ColumnName) -> Column | None:
        """The column of that name."""
        return next((column for column in self.columns if column.name == name), None)

    def find_region_boxes(self, page_number: int, total_pages: int) -> tuple[Box, ...]:
        """The boxes of ``find_region_indices``."""
        return tuple(self.regions[position].box for position in self.find_region_indices(page_number, total_pages))

    def find_region_indices(self, page_number: int, total_pages: int) -> tuple[int, ...]:
        """The positions (from 0) of the regions on page ``page_number`` of ``total_pages``, both from 1; none where transactions do
        not stand there.
        """
        page_position = (
            "only"
            if total_pages == 1
            else "first"
            if page_number == 1
            else "last"
            if page_number == total_pages
            else "middle"
        )
        for kind in _PAGE_KINDS_BY_POSITION[page_position]:
            if positions := tuple(position for position, region in enumerate(self.regions) if region.pages == kind):
                return positions
        return ()


def parse_template_toml(text: str, file_name: str) -> StatementTemplate:
    """The template of a TOML text. UsageError that names the file and the line."""
    return parse_toml_record(text, file_name, StatementTemplate)


def render_template_toml(template: StatementTemplate) -> str:
    """The template as TOML, with a sentence above each part; ``parse_template_toml`` reads the same template from it."""
    return str(_load_toml_layout().render(template.model_dump(mode="json")))


@cache
def _load_toml_layout() -> Any:
    from jinja2 import Environment, StrictUndefined  # an expert's kernel seldom writes a template

    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False)  # noqa: S701 - TOML, not HTML
    environment.filters["toml"] = _format_toml_value
    return environment.from_string((files("evalkit.statements") / "template.toml.jinja").read_text("utf-8"))


def _format_toml_value(value: Any) -> str:
    """A value as TOML writes it: as JSON, but that patterns and texts without quotes need no escapes."""
    if isinstance(value, list):
        return f"[{', '.join(map(_format_toml_value, value))}]"
    if isinstance(value, str) and "\\" in value and "'" not in value and value.isprintable():
        return f"'{value}'"
    # TOML allows no bare DEL, which JSON does.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
