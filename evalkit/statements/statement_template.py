"""The template of a bank's statements: a TOML file that people can correct.

``template.toml.jinja`` shows its parts in order with their purpose; the models below define their content.
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
"""``amount`` holds withdrawals and deposits alike; ``other`` is not read, such as a branch number."""
PageKind = Literal["first", "middle", "last", "later", "any"]
"""``later``: all but the first."""
Direction = Literal["deposit", "withdrawal"]

#: The regions for each page position: those of the first kind that the template has.
_PAGE_KINDS_BY_POSITION: dict[str, tuple[PageKind, ...]] = {
    "only": ("first", "last", "any"),
    "first": ("first", "any"),
    "middle": ("middle", "later", "any"),
    "last": ("last", "later", "any"),
}


class TemplateStatus(StrEnum):
    """Reliability of a template."""

    DRAFT = "draft"
    STABLE = "stable"
    """Passed by both reviewers, or approved by a person."""


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
    """The bank and statement that a template is for."""

    bank: str = Field(min_length=1)
    statement: str = ""
    """The bank's statement type: ``Current account``."""
    signs: tuple[str, ...] = ()
    """Words printed on the first page."""


class Region(LazyStrictRecord):
    """The transactions' area on a kind of page; several are read in order."""

    pages: PageKind = "any"
    box: Annotated[Box, AfterValidator(_validate_box)]


class Column(LazyStrictRecord):
    """A column of the table."""

    name: ColumnName
    x: Annotated[tuple[float, float], AfterValidator(_validate_column_range)]
    """Left and right edge; a word belongs to the column that contains its middle."""
    title: str = ""
    """The title above it."""


class DateRules(LazyStrictRecord):
    """Date formats, and the source of the year for dates without one."""

    formats: tuple[Annotated[str, AfterValidator(validate_date_format)], ...] = Field(min_length=1)
    """Codes ``%d``, ``%m`` or ``%b`` (a month's name), ``%Y`` or ``%y``; the first format that fits counts."""
    period: tuple[LinePattern, ...] = ()
    """The lines that print the statement's period or its end; without any, its end is the latest date at a
    closing balance, or of the first page."""
    period_formats: tuple[Annotated[str, AfterValidator(validate_date_format)], ...] = ()
    """Formats of the period's dates."""


class AmountRules(LazyStrictRecord):
    """Amount formats, and the marks of deposits and withdrawals."""

    decimal: DecimalSeparator = "."
    whole: bool = False
    """Amounts may be written without cents."""
    deposit: tuple[SignMark, ...] = ("plus", "cr")
    withdrawal: tuple[SignMark, ...] = ("minus", "trailing_minus", "parentheses", "dr")
    unmarked: Literal["deposit", "withdrawal", "section"] = "deposit"
    """Direction of an unmarked amount in the column ``amount``; ``section``: that of the heading above it."""
    balance: Literal["held", "owed"] = "held"
    """``owed``: a printed balance is a debt, as on credit cards."""

    @model_validator(mode="after")
    def _reject_ambiguous_marks(self) -> Self:
        if shared_marks := sorted(set(self.deposit) & set(self.withdrawal)):
            raise ValueError(f"{', '.join(shared_marks)} cannot mean a deposit and a withdrawal")
        return self


class SectionHeading(LazyStrictRecord):
    """A heading that sets the direction of the amounts below it."""

    heading: LinePattern
    direction: Direction


class RowRules(LazyStrictRecord):
    """The layout of transactions in rows."""

    continuation: Literal["below", "none"] = "below"
    """``below``: lines without date and amount belong to the transaction above."""
    gap: float = Field(2.2, gt=0, le=20)
    """Farthest distance of a continuation line from the one before, in heights of a word, middle to middle."""
    joint: str = Field(" ", max_length=3)
    """Text between the lines of a description: empty if a bank splits words at a line's end."""
    date_once: bool = False
    """A date applies to all rows below it until the next one."""
    order: Literal["oldest_first", "newest_first"] = "oldest_first"
    furniture: tuple[LinePattern, ...] = ()
    """Lines that are not transactions: carried forward, totals of a page."""
    section: tuple[SectionHeading, ...] = ()
    accounts: tuple[LinePattern, ...] = ()
    """Headings that begin another account's transactions."""
    ends: tuple[LinePattern, ...] = ()
    """Lines that end the page's transactions, until a header or a heading follows."""


class TotalLabel(LazyStrictRecord):
    """A sum that the statement prints."""

    label: LinePattern
    of: Literal["deposits", "withdrawals", "columns"]
    """``columns``: the totals of debits and credits are printed below their columns."""
    part: bool = False
    """A part: all parts together are the sum."""


class PrintedSumLabels(LazyStrictRecord):
    """Printed sums that the transactions must meet."""

    opening: tuple[LinePattern, ...] = ()
    closing: tuple[LinePattern, ...] = ()
    total: tuple[TotalLabel, ...] = ()


class StatementTemplate(LazyStrictRecord, populate_by_name=True, serialize_by_alias=True):
    """The template of one kind of a bank's statements."""

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
            raise ValueError(f"columns {', '.join(duplicate_names)} appear twice")
        if "date" not in names or not {"amount", "debit", "credit"} & set(names):
            raise ValueError("a row needs a column date, and amount or debit and credit")
        if "amount" in names and {"debit", "credit"} & set(names):
            raise ValueError("use either amount, or debit and credit")
        return self

    def find_column(self, name: ColumnName) -> Column | None:
        """Find a column by its name."""
        return next((column for column in self.columns if column.name == name), None)

    def find_region_boxes(self, page_number: int, total_pages: int) -> tuple[Box, ...]:
        """Get the boxes of ``find_region_indices``."""
        return tuple(self.regions[position].box for position in self.find_region_indices(page_number, total_pages))

    def find_region_indices(self, page_number: int, total_pages: int) -> tuple[int, ...]:
        """Find the regions (from 0) on a page (from 1)."""
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
    """Parse a template. UsageError names the file and the line."""
    return parse_toml_record(text, file_name, StatementTemplate)


def render_template_toml(template: StatementTemplate) -> str:
    """Render the template as TOML with comments, for ``parse_template_toml``."""
    return str(_load_toml_layout().render(template.model_dump(mode="json")))


@cache
def _load_toml_layout() -> Any:
    from jinja2 import Environment, StrictUndefined  # an expert's kernel seldom writes a template

    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False)  # noqa: S701 - TOML, not HTML
    environment.filters["toml"] = _format_toml_value
    return environment.from_string((files("evalkit.statements") / "template.toml.jinja").read_text("utf-8"))


def _format_toml_value(value: Any) -> str:
    """Render a TOML value: as JSON, but patterns need no escapes."""
    if isinstance(value, list):
        return f"[{', '.join(map(_format_toml_value, value))}]"
    if isinstance(value, str) and "\\" in value and "'" not in value and value.isprintable():
        return f"'{value}'"
    # TOML allows no bare DEL, which JSON does.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
