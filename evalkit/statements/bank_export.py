"""Comparison of a template's transactions with a bank's CSV or OFX export.

The columns of a CSV file are found by their content; titles decide only between columns that could be either. The reader
knows nothing of what a template reads, so that the file can check it.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from html import unescape
from itertools import permutations
from pathlib import Path
from typing import NamedTuple

from rapidfuzz import fuzz

from evalkit.core.package_tables import load_package_table
from evalkit.core.safe_io import read_regular_file
from evalkit.core.spreadsheets import unescape_formula
from evalkit.errors import UsageError
from evalkit.statements.statement_parser import Transaction

_MAX_BYTES = 32 * 1024**2
#: Longer cells are texts, neither dates nor amounts.
_MAX_SHORT_CELL = 40
_DELIMITERS = (",", ";", "\t", "|")
#: A column holds dates or amounts if this share of its filled cells does; a heading or a total may be among them.
_MIN_SHARE = 0.8
_DATE_FORMATS = (
    "%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%Y%m%d", "%d.%m.%Y", "%d.%m.%y", "%d/%m/%Y", "%m/%d/%Y", "%d/%m/%y", "%m/%d/%y",
    "%d-%m-%Y", "%m-%d-%Y", "%d-%m-%y", "%m-%d-%y", "%d %b %Y", "%d-%b-%Y", "%d-%b-%y", "%b %d, %Y", "%b %d %Y", "%d %B %Y",
)  # fmt: skip
_AMOUNT = re.compile(r"(?P<open>\()?(?P<lead>[-+])?(?P<digits>[\d.,'’]{1,24})(?P<trail>[-+])?(?P<close>\))?")
_CURRENCY = re.compile(r"[A-Z]{3}|US\$|[$€£¥₹]|Fr\.")
_OFX_ROW = re.compile(r"<STMTTRN>", re.IGNORECASE)
_OFX_ENTRY = re.compile(r"<([A-Z0-9.]{1,32})>([^<\r\n]*)", re.IGNORECASE)
_WORDS: dict[str, dict[str, list[str]]] = load_package_table("evalkit.statements", "bank_export.toml")


class ExportedRow(NamedTuple):
    """A transaction of a bank's export."""

    dates: tuple[str, ...]
    """Its date, or dates: of booking and of value; ISO 8601."""
    amount: Decimal
    """The amount: deposits positive, withdrawals negative."""
    description: str


class _Column(NamedTuple):
    title: str
    cells: tuple[str, ...]

    def has_title(self, meaning: str) -> bool:
        return not set(_WORDS["titles"][meaning]).isdisjoint(re.findall(r"\w+", self.title[:200].casefold()))

    def parse_all(self, parse: Callable[[str], object]) -> bool:
        """Return True if nearly all filled cells can be parsed, and one is filled."""
        filled = [cell for cell in self.cells if cell]
        return bool(filled) and sum(parse(cell) is not None for cell in filled) >= _MIN_SHARE * len(filled)


def read_bank_export(path: Path) -> list[ExportedRow]:
    """Read the transactions of a bank's CSV or OFX file, in the file's order.

    UsageError if the file cannot be read, or its columns cannot be told apart.
    """
    try:
        content = read_regular_file(path, _MAX_BYTES)
    except OSError as error:
        raise _build_error(path, f"the file cannot be read ({error.strerror})") from error
    text = _decode(content)
    rows = list(_read_ofx_rows(text)) if _OFX_ROW.search(text) else _read_csv_rows(path, text)
    if not rows:
        raise _build_error(path, "no row with a date and an amount was found")
    return rows


def _decode(content: bytes) -> str:
    is_utf_16 = content[:2] in (b"\xff\xfe", b"\xfe\xff")
    try:
        return content.decode("utf-16" if is_utf_16 else "utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("cp1252", errors="replace")


def _read_ofx_rows(text: str) -> Iterator[ExportedRow]:
    """Read the transactions of OFX 1 (SGML) or 2 (XML); tags may be left open."""
    for block in _OFX_ROW.split(text)[1:]:
        entries = {
            name.upper(): unescape(value).strip()
            for name, value in reversed(
                _OFX_ENTRY.findall(re.split("</STMTTRN>", block, maxsplit=1, flags=re.IGNORECASE)[0])
            )
        }
        name, memo = entries.get("NAME", ""), entries.get("MEMO", "")
        amount_text = entries.get("TRNAMT", "")
        amount = _parse_decimal(amount_text, max(".,", key=amount_text.rfind))
        day = _parse_date(entries.get("DTPOSTED", "")[:8], "%Y%m%d")
        if day and amount is not None:
            yield ExportedRow((day.isoformat(),), amount, memo if memo.startswith(name) else f"{name} {memo}".strip())


# ── CSV ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _read_csv_rows(path: Path, text: str) -> list[ExportedRow]:
    columns = _split_columns(path, text)
    dates_by_column = {column: dates for column in columns if (dates := _parse_dates(column))}
    if not dates_by_column:
        raise _build_error(path, "no column of dates was found")
    other_columns = [column for column in columns if column not in dates_by_column]
    amounts = _find_signed_amounts(path, other_columns)
    text_column = max(
        other_columns,
        key=lambda column: (column.has_title("description"), sum(map(str.isalpha, "".join(column.cells)))),
    )
    days_by_row = zip(*dates_by_column.values(), strict=True)
    return [
        ExportedRow(tuple(day.isoformat() for day in days if day), amount, text)
        for days, amount, text in zip(days_by_row, amounts, text_column.cells, strict=True)
        if any(days) and amount is not None
    ]


def _split_columns(path: Path, text: str) -> list[_Column]:
    """Split the file by the delimiter that gives most lines the same number of cells."""
    best: tuple[int, list[list[str]]] = (0, [])
    for delimiter in _DELIMITERS:
        try:
            rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
        except csv.Error:
            continue
        lengths = [len(row) for row in rows if len(row) > 1]
        width = max(lengths, key=lengths.count, default=0)
        table = [[unescape_formula(cell.strip()) for cell in row] for row in rows if len(row) == width]
        best = max(best, (len(table) * min(width, 4), table), key=lambda candidate: candidate[0])
    table = best[1]
    if len(table) < 2:
        raise _build_error(path, "the file is not a table with a title above each column")
    header_rows = [row for row in table if not any(_is_number(cell) for cell in row)][:1] or [[""] * len(table[0])]
    body = [row for row in table if row != header_rows[0]]
    return [_Column(title, tuple(row[position] for row in body)) for position, title in enumerate(header_rows[0])]


def _parse_date(text: str, date_format: str) -> date | None:
    if len(text) <= _MAX_SHORT_CELL:
        with suppress(ValueError):
            return datetime.strptime(text, date_format).date()  # noqa: DTZ007 - a day has no time zone
    return None


def _parse_dates(column: _Column) -> list[date | None]:
    """Parse a column of dates; empty if it is none.

    Of two orders of day and month that fit, the one with the shorter period counts: an export is of weeks or months.
    """
    cells = [re.split(r"[T ]\d{1,2}:", cell[: _MAX_SHORT_CELL + 1])[0] for cell in column.cells]
    candidates = []
    for date_format in _DATE_FORMATS:
        dates = [_parse_date(cell, date_format) for cell in cells]
        known = [day for day in dates if day and day.year > 1900]
        filled_count = sum(map(bool, cells))
        if known and len(known) >= _MIN_SHARE * filled_count:
            candidates.append((filled_count - len(known), max(known) - min(known), dates))
    return min(candidates, key=lambda candidate: candidate[:2])[2] if candidates else []


def _parse_decimal(text: str, separator: str) -> Decimal | None:
    """Parse a number with this decimal separator, a sign, brackets or a currency."""
    if len(text) > _MAX_SHORT_CELL:
        return None
    compact = re.sub(r"\s", "", _CURRENCY.sub("", text.translate(str.maketrans("−–", "--"))))
    match = _AMOUNT.fullmatch(compact)
    if not match or not any(map(str.isdigit, compact)):
        return None
    group = "," if separator == "." else "."
    digits = match["digits"].translate(str.maketrans("", "", f"{group}'’")).replace(separator, ".")
    is_negative = "-" in (match["lead"], match["trail"]) or bool(match["open"] and match["close"])
    try:
        return -Decimal(digits) if is_negative else Decimal(digits)
    except InvalidOperation:
        return None


def _is_number(cell: str) -> bool:
    return _parse_decimal(cell, ".") is not None or _parse_decimal(cell, ",") is not None


def _find_signed_amounts(path: Path, columns: Sequence[_Column]) -> list[Decimal | None]:
    """Find the column of amounts, or those of money out and in; return signed amounts."""
    numbers = _parse_money_columns(columns)
    if not numbers:
        raise _build_error(path, "no column of amounts was found")
    for (column, values), (other, balances) in permutations(numbers.items(), 2):
        if not column.has_title("balance") and _is_running_balance(values, balances):
            return values
        is_pair_of_sides = column.has_title("debit") and other.has_title("credit")
        if is_pair_of_sides and not any(out and into for out, into in zip(values, balances, strict=True)):
            return [_merge_sides(out, into) for out, into in zip(values, balances, strict=True)]
    column, amounts = max(
        numbers.items(), key=lambda pair: (pair[0].has_title("amount"), any((number or 0) < 0 for number in pair[1]))
    )
    if any((amount or 0) < 0 for amount in amounts):
        return amounts
    if column.has_title("debit") and not column.has_title("credit"):  # a month without money in
        return [None if amount is None else -amount for amount in amounts]
    direction_column = next((column for column in columns if column.parse_all(_find_direction)), None)
    if direction_column is None:
        return amounts
    signs = map(_find_direction, direction_column.cells)
    return [
        None if amount is None or sign is None else amount * sign for amount, sign in zip(amounts, signs, strict=True)
    ]


def _parse_money_columns(columns: Sequence[_Column]) -> dict[_Column, list[Decimal | None]]:
    """Parse the columns of money; numbers without cents count if no other has them.

    A titled balance is left out, unless it is the only column.
    """
    numbers = [cell for column in columns for cell in column.cells if len(cell) <= _MAX_SHORT_CELL and _is_number(cell)]
    separator = max(".,", key=lambda sign: sum(bool(re.search(rf"\{sign}\d\d?\D*$", cell)) for cell in numbers))

    def parse(cell: str) -> Decimal | None:
        return _parse_decimal(cell, separator)

    numeric = [column for column in columns if column.parse_all(parse)]
    titled = [column for column in numeric if any(map(column.has_title, ("amount", "debit", "credit")))]
    chosen = titled or [column for column in numeric if any(separator in cell for cell in column.cells)] or numeric
    chosen = [column for column in chosen if not column.has_title("balance")] or chosen
    return {column: [parse(cell) for cell in column.cells] for column in chosen}


def _is_running_balance(values: Sequence[Decimal | None], balances: Sequence[Decimal | None]) -> bool:
    """Return True if each balance is the previous one plus the amount.

    The rows may be in either order.
    """
    steps = [
        (before + value == after, after + next_value == before)
        for value, next_value, before, after in zip(values[1:], values, balances, balances[1:], strict=False)
        if value is not None and next_value is not None and before is not None and after is not None
    ]
    return bool(steps) and any(sum(side) >= _MIN_SHARE * len(steps) for side in zip(*steps, strict=True))


def _merge_sides(outgoing: Decimal | None, incoming: Decimal | None) -> Decimal | None:
    if incoming:
        return abs(incoming)
    return None if outgoing is None else -abs(outgoing)


def _find_direction(cell: str) -> int | None:
    directions = _WORDS["directions"]
    word = cell[:_MAX_SHORT_CELL].casefold().strip(" .+-")
    return -1 if word in directions["withdrawal"] else 1 if word in directions["deposit"] else None


def _build_error(path: Path, reason: str) -> UsageError:
    return UsageError(
        f"the bank's file {path.name} cannot be compared: {reason}",
        code="TEMPLATE-CHECK",
        remedy="Give the CSV or OFX file of the same month that the bank's website offers, unchanged.",
    )


#: Similarity in percent from which two descriptions are of one transaction.
_SAME_TEXT_PERCENT = 60.0


class ExportComparison(NamedTuple):
    """Rows that occur in both the statement and the bank's export, or in one."""

    equal: list[tuple[Transaction, ExportedRow]]
    """Rows of equal date and amount."""
    differing: list[tuple[Transaction, ExportedRow]]
    """Rows of one transaction whose date or amount differs."""
    missing: list[ExportedRow]
    """Rows of the export that were not read."""
    extra: list[Transaction]
    """Rows that were read and that the export does not have."""

    @property
    def is_same(self) -> bool:
        """True if every row agrees with the bank's export."""
        return not (self.differing or self.missing or self.extra)


def compare_with_export(transactions: Sequence[Transaction], exported_rows: Sequence[ExportedRow]) -> ExportComparison:
    """Pair the transactions with the bank's rows by date and amount.

    Rows without an equal are paired if amount and text, or date and text, are of one transaction.
    """
    extra, missing = list(transactions), list(exported_rows)
    equal = _take_pairs(extra, missing, lambda row, other: row.amount == other.amount and row.date in other.dates)
    differing = [
        *_take_pairs(
            extra,
            missing,
            lambda row, other: (
                abs(row.amount) == abs(other.amount) and (row.date in other.dates or _is_same_text(row, other))
            ),
        ),
        *_take_pairs(extra, missing, lambda row, other: row.date in other.dates and _is_same_text(row, other)),
    ]
    return ExportComparison(equal, differing, missing, extra)


def _take_pairs(
    transactions: list[Transaction],
    exported_rows: list[ExportedRow],
    is_pair: Callable[[Transaction, ExportedRow], bool],
) -> list[tuple[Transaction, ExportedRow]]:
    """Pair rows in order, and remove them from both lists; similar texts first."""
    pairs = []
    for transaction in tuple(transactions):
        candidates = [row for row in exported_rows if is_pair(transaction, row)]
        if candidates:
            description = transaction.description.casefold()
            match = max(candidates, key=lambda row: fuzz.token_set_ratio(description, row.description.casefold()))
            transactions.remove(transaction)
            exported_rows.remove(match)
            pairs.append((transaction, match))
    return pairs


def _is_same_text(transaction: Transaction, row: ExportedRow) -> bool:
    first, second = transaction.description.casefold(), row.description.casefold()
    return fuzz.token_set_ratio(first, second) >= _SAME_TEXT_PERCENT
