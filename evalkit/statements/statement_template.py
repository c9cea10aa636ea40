"""Template that defines how to read a bank's statements: a TOML file.

Its assumptions are stated in plain words. ``template.toml.jinja`` shows the parts of the file in order with their
purpose; the classes below define their content.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import cache
from importlib.resources import files
from operator import not_
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from evalkit.core.grouping import group_pairs
from evalkit.core.records import LazyStrictRecord
from evalkit.documents.bundle import Box
from evalkit.statements.amounts import DecimalSeparator, SignMark
from evalkit.statements.bank_vocabulary import LinePattern
from evalkit.statements.dates import validate_date_format
from evalkit.store.toml_records import parse_toml_record

SCHEMA_VERSION = 1

#: The meaning of a column. ``amount`` holds withdrawals and deposits; ``direction`` the marks of their direction, such
#: as D and C; ``other`` is not read, such as a branch number.
ColumnName = Literal[
    "date", "value_date", "description", "debit", "credit", "amount", "balance", "check_number", "direction", "other"
]
#: The pages that a region is for; ``later``: all pages but the first.
PageKind = Literal["first", "middle", "last", "later", "any"]
Direction = Literal["deposit", "withdrawal"]
#: What on the page proved the directions when the template was built; ``person``: somebody decided them.
SignProof = Literal["marks", "titles", "headings", "running_balance", "balances", "totals", "wording", "person"]

#: The kinds of region that apply to a page, by its position; the first kind that the template has is used.
_PAGE_KINDS_BY_POSITION: dict[str, tuple[PageKind, ...]] = {
    "only": ("first", "last", "any"),
    "first": ("first", "any"),
    "middle": ("middle", "later", "any"),
    "last": ("last", "later", "any"),
}


class TemplateStatus(StrEnum):
    """The status of a template: not yet approved, or approved."""

    DRAFT = "draft"
    STABLE = "stable"
    """Approved by the reviewers or by a person."""


def _validate_box(box: Box) -> Box:
    x0, y0, x1, y1 = box
    if not (0 <= x0 < x1 <= 1 and 0 <= y0 < y1 <= 1):
        raise ValueError("a box must be x0, y0, x1, y1 with 0 <= x0 < x1 <= 1 and 0 <= y0 < y1 <= 1")
    return box


def _validate_column_range(x_range: tuple[float, float]) -> tuple[float, float]:
    if not 0 <= x_range[0] < x_range[1] <= 1:
        raise ValueError("the range x of a column must be x0, x1 with 0 <= x0 < x1 <= 1")
    return x_range


class StatementIdentity(LazyStrictRecord):
    """The bank and the type of statement that a template is for."""

    bank: str = Field(min_length=1)
    statement: str = ""
    """The kind of statement, such as ``credit card``: a name of ``statement_kinds.toml``, or the bank's own."""
    signs: tuple[str, ...] = ()
    """Words on the first page by which the bank's statements are recognised."""
    built_from: str = Field("", pattern=r"^([0-9a-f]{64})?$", exclude_if=not_)
    """SHA-256 of the statement from which the template was built; empty if unknown."""


class Region(LazyStrictRecord):
    """The area with transactions on the pages of one kind.

    Several regions for the same kind of page are read in the order of the file.
    """

    pages: PageKind = "any"
    box: Annotated[Box, AfterValidator(_validate_box)]
    shift: float = Field(0.0, ge=-1, le=1)
    """Distance of the region's columns to the right of where ``columns`` says, in page widths: for tables that are
    continued beside themselves."""


class Column(LazyStrictRecord):
    """A column of the table: its meaning, horizontal range and printed title."""

    name: ColumnName
    x: Annotated[tuple[float, float], AfterValidator(_validate_column_range)]
    """Left and right edge, in page widths; a word belongs to the column that contains the word's middle."""
    title: str = ""
    """The title printed above the column."""


class DateRules(LazyStrictRecord):
    """The formats of dates, and where to find the year of dates printed without it."""

    formats: tuple[Annotated[str, AfterValidator(validate_date_format)], ...] = Field(min_length=1)
    """Formats of the transactions' dates, with the codes ``%d``, ``%m`` or ``%b`` (a month's name), ``%Y`` or ``%y``;
    the first format that fits counts."""
    period: tuple[LinePattern, ...] = ()
    """Labels of the lines that print the statement's period or its end. Without any, a line of the first page with two
    dates a period apart counts, else the latest date at a closing balance or on the first page."""
    period_formats: tuple[Annotated[str, AfterValidator(validate_date_format)], ...] = ()
    """Formats of the dates of the period; empty: ``formats``."""
    alternative_formats: tuple[Annotated[str, AfterValidator(validate_date_format)], ...] = ()
    """``formats`` with day and month exchanged, if they fit the statement's dates as well; empty if the order is
    certain."""


class AmountRules(LazyStrictRecord):
    """The format of amounts, and the marks of deposits and withdrawals."""

    decimal: DecimalSeparator = "."
    whole: bool = False
    """True if amounts may be printed without cents."""
    deposit: tuple[SignMark, ...] = ("plus", "cr")
    withdrawal: tuple[SignMark, ...] = ("minus", "trailing_minus", "parentheses", "dr")
    unmarked: Literal["deposit", "withdrawal", "section", "balance"] = "deposit"
    """Direction of an amount without a mark in the column ``amount``; ``section``: the direction of the heading above
    it; ``balance``: the direction by which the balances printed in the rows change."""
    reversals: bool = False
    """True if a minus in a column ``debit`` or ``credit`` reverses the column's direction."""
    balance: Literal["held", "owed"] = "held"
    """Meaning of a balance printed without a mark: ``held``, money in the account; ``owed``, a debt, as on credit
    cards."""
    sign_proof: tuple[SignProof, ...] = ()
    """Proofs of the directions; empty if nothing on the page proves which way the money went."""

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
    """The rules by which lines of the table become transactions."""

    continuation: Literal["below", "none"] = "below"
    """``below``: lines without date and amount continue the transaction above; ``none``: they do not."""
    gap: float = Field(2.2, gt=0, le=20)
    """Largest distance of a continuation line from the line above, in heights of a word, from middle to middle."""
    joint: str = Field(" ", max_length=3)
    """Text to put between the lines of a description; empty if the bank splits words at the end of a line."""
    date_once: bool = False
    """True if a date is printed only once for several rows: it applies to all rows until the next date."""
    order: Literal["oldest_first", "newest_first"] = "oldest_first"
    furniture: tuple[LinePattern, ...] = ()
    """Lines in the table that are not transactions, such as balances carried forward and totals of a page."""
    section: tuple[SectionHeading, ...] = ()
    accounts: tuple[LinePattern, ...] = ()
    """Headings that name an account and begin its transactions."""
    ends: tuple[LinePattern, ...] = ()
    """Lines that end the transactions of a page; a later table header or heading resumes them."""


class TotalLabel(LazyStrictRecord):
    """The label of a total that the statement prints."""

    label: LinePattern
    of: Literal["deposits", "withdrawals", "columns"]
    """The amounts that the total adds up; ``columns``: two totals, printed below the columns of debits and credits."""
    part: bool = False
    """True if the total is only a part: all parts of the same kind together are the sum of the transactions."""


class PrintedSumLabels(LazyStrictRecord):
    """The labels of printed sums that the transactions must add up to."""

    opening: tuple[LinePattern, ...] = ()
    closing: tuple[LinePattern, ...] = ()
    total: tuple[TotalLabel, ...] = ()


class StatementTemplate(LazyStrictRecord, populate_by_name=True, serialize_by_alias=True):
    """A template: how to read one type of a bank's statements."""

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
            raise ValueError(f"more than one column is named {', '.join(duplicate_names)}")
        if "date" not in names or not {"amount", "debit", "credit"} & set(names):
            raise ValueError("a template needs a column date, and a column amount or columns debit and credit")
        if "amount" in names and {"debit", "credit"} & set(names):
            raise ValueError("use either amount, or debit and credit")
        return self

    def find_column(self, name: ColumnName) -> Column | None:
        """Return the column of this name; None if the template has none."""
        return next((column for column in self.columns if column.name == name), None)

    def find_regions(self, page_number: int, total_pages: int) -> tuple[Region, ...]:
        """Return the regions for a page (from 1), in the order of the file."""
        return tuple(self.regions[position] for position in self.find_region_indices(page_number, total_pages))

    def find_region_indices(self, page_number: int, total_pages: int) -> tuple[int, ...]:
        """Return the positions in ``regions`` (from 0) of the regions for a page (from 1)."""
        page_position = (
            "only"
            if total_pages == 1
            else "first"
            if page_number == 1
            else "last"
            if page_number == total_pages
            else "middle"
        )
        positions_by_kind = group_pairs((region.pages, position) for position, region in enumerate(self.regions))
        kind = next((kind for kind in _PAGE_KINDS_BY_POSITION[page_position] if kind in positions_by_kind), None)
        return tuple(positions_by_kind[kind]) if kind else ()


def parse_template_toml(text: str, file_name: str) -> StatementTemplate:
    """Parse a template from TOML. UsageError, with file and line, if it is invalid."""
    return parse_toml_record(text, file_name, StatementTemplate)


def render_template_toml(template: StatementTemplate) -> str:
    """Render the template as commented TOML, which ``parse_template_toml`` reads."""
    return str(_load_toml_layout().render(template.model_dump(mode="json")))


@cache
def _load_toml_layout() -> Any:
    from jinja2 import Environment, StrictUndefined  # imported late: the experts' screen seldom needs it

    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False)  # noqa: S701 - TOML, not HTML
    environment.filters["toml"] = _format_toml_value
    return environment.from_string((files("evalkit.statements") / "template.toml.jinja").read_text("utf-8"))


def _format_toml_value(value: Any) -> str:
    """Render a value as TOML; strings with backslashes become literal strings."""
    if isinstance(value, list):
        return f"[{', '.join(map(_format_toml_value, value))}]"
    if isinstance(value, str) and "\\" in value and "'" not in value and value.isprintable():
        return f"'{value}'"
    # JSON leaves the character DEL unescaped, which TOML does not allow.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


_WORD_BY_DATE_CODE = {"%d": "day", "%m": "month", "%b": "month's name", "%Y": "year", "%y": "year of two digits"}
_PAGES_BY_KIND = {
    "first": "the first page", "middle": "pages between", "last": "the last page", "later": "later pages", "any": "each page",
}  # fmt: skip


def list_assumptions(template: StatementTemplate) -> tuple[str, ...]:
    """List a template's assumptions about the statement, one sentence per part.

    Two templates with equal lists are the same hypothesis.
    """
    return tuple(_describe_parts(template))


def list_differing_assumptions(attempts: Sequence[Sequence[str]]) -> Iterator[str]:
    """Describe each attempt by the assumptions that differ between attempts."""
    for assumptions in attempts:
        differing = [assumption for assumption in assumptions if not all(assumption in other for other in attempts)]
        yield "; ".join(differing or assumptions)


def _describe_parts(template: StatementTemplate) -> Iterator[str]:
    dates, amounts, rows, sums = template.dates, template.amounts, template.rows, template.reconciliation
    for region in template.regions:
        left, top, right, bottom = (f"{100 * edge:.1f}" for edge in region.box)
        yield (
            f"the table on {_PAGES_BY_KIND[region.pages]} reaches from {top} to {bottom} % of the page's height and from "
            f"{left} to {right} % of its width"
        )
    yield "columns: " + ", ".join(f"{column.name} {column.x[0]:.1%}–{column.x[1]:.1%}" for column in template.columns)
    yield "dates are printed as " + " or ".join(map(_describe_date_format, dates.formats))
    yield f"the period is printed at {_quote(dates.period)}" if dates.period else "no label names the period"
    if dates.period_formats:
        yield "its dates as " + " or ".join(map(_describe_date_format, dates.period_formats))
    meaning = {"section": "go the way that the heading above says", "balance": "go the way that the balance changes"}
    yield f"amounts without a mark {meaning.get(amounts.unmarked, f'are {amounts.unmarked}s')}"
    yield f"deposits are marked {_quote(amounts.deposit)}, withdrawals {_quote(amounts.withdrawal)}"
    yield f"a balance without a mark is {amounts.balance}"
    yield f"decimals follow “{amounts.decimal}”" + (", cents may be missing" if amounts.whole else "")
    yield (
        f"further lines of a description are at most {rows.gap:g} line heights below"
        if rows.continuation == "below"
        else "each description has one line"
    )
    yield "a date counts for the rows until the next date" if rows.date_once else "each row has its date"
    yield f"rows are printed {rows.order.replace('_', ' ')}"
    yield f"lines of the table without a transaction: {_quote(rows.furniture)}"
    yield f"lines that end the table: {_quote(rows.ends)}"
    yield f"headings: {_quote([*(section.heading for section in rows.section), *rows.accounts])}"
    yield f"printed sums: {_quote([*sums.opening, *sums.closing, *(total.label for total in sums.total)])}"


def _describe_date_format(date_format: str) -> str:
    return re.sub("%[dmbYy]", lambda code: _WORD_BY_DATE_CODE[code.group()], date_format)


def _quote(patterns: Sequence[str]) -> str:
    """Quote patterns as words; numbers, which change monthly, become an ellipsis."""
    words = (pattern.replace("\\d+", "…").replace("\\", "") for pattern in patterns)
    return ", ".join(f"“{word}”" for word in words) or "none"
