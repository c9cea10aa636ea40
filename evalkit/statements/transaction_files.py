"""Write a statement's transactions as a file: CSV, XLSX or OFX 2.2."""

from __future__ import annotations

import csv
import hashlib
import io
import re
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from evalkit.core.grouping import group_by
from evalkit.core.spreadsheets import Cell, Sheet, escape_formula, render_workbook
from evalkit.core.wording import format_count
from evalkit.errors import UsageError
from evalkit.statements.statement_parser import TRANSACTION_CSV_COLUMNS, ParsedStatement, Transaction
from evalkit.statements.statement_template import StatementTemplate

_CURRENCY_BY_SIGN = {"$": "USD", "US$": "USD", "€": "EUR", "£": "GBP", "¥": "JPY", "₹": "INR", "Fr": "CHF"}
_CURRENCY = re.compile(r"US\$|[$€£¥₹]|\bFr\b|\b(?:USD|EUR|GBP|CHF|CAD|AUD|JPY|INR|SEK|NOK|DKK|PLN|CZK|NZD|ZAR)\b")
#: The currency code of ISO 4217 for no currency.
_NO_CURRENCY = "XXX"
_ACCOUNT_NUMBER = re.compile(r"[\dxX*•][\dxX*• -]{2,30}\d")
#: Characters that XML forbids.
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class StatementReading(NamedTuple):
    """A template and what it reads from a statement, to be written to a file."""

    template: StatementTemplate
    statement: ParsedStatement
    page_texts: Sequence[str] = ()
    """The text of each page, which may name the currency."""


def select_file_writer(path: Path) -> Callable[[StatementReading], bytes]:
    """Return the function that renders the transactions for this file's ending.

    UsageError if the ending is unknown.
    """
    try:
        return _WRITER_BY_ENDING[path.suffix.lower()]
    except KeyError:
        raise UsageError(
            f"{path} has an ending for which no table is written",
            code="TEMPLATE-TABLE",
            remedy=f"Give a file that ends with {', '.join(_WRITER_BY_ENDING)}.",
        ) from None


def _tabulate(transactions: Sequence[Transaction]) -> tuple[list[str], list[list[Cell]]]:
    """Return the columns and cells of a table; account and currency only if several."""
    accounts = dict.fromkeys(transaction.account for transaction in transactions)
    currency_by_account = {account: _find_currency([account]) or "" for account in accounts}
    column_names = [
        *TRANSACTION_CSV_COLUMNS,
        *(["account"] if len(accounts) > 1 else []),
        *(["currency"] if len(set(currency_by_account.values())) > 1 else []),
        "confidence",
    ]
    return column_names, [
        [currency_by_account[row.account] if name == "currency" else getattr(row, name) for name in column_names]
        for row in transactions
    ]


def _render_csv(reading: StatementReading) -> bytes:
    column_names, rows = _tabulate(reading.statement.transactions)
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer)
    writer.writerow(column_names)
    writer.writerows(
        ["" if cell is None else escape_formula(cell) if isinstance(cell, str) else str(cell) for cell in cells]
        for cells in rows
    )
    return buffer.getvalue().encode()


def _render_xlsx(reading: StatementReading) -> bytes:
    column_names, rows = _tabulate(reading.statement.transactions)
    is_date = [name == "date" for name in column_names]
    cells = [
        [
            date.fromisoformat(str(cell)) if is_day and not transaction.is_year_open else cell
            for cell, is_day in zip(row, is_date, strict=True)
        ]
        for transaction, row in zip(reading.statement.transactions, rows, strict=True)
    ]
    return render_workbook([Sheet("transactions", column_names, cells, {"amount": "0.00", "balance": "0.00"})])


def _render_ofx(reading: StatementReading) -> bytes:
    """Render OFX 2.2, one list of transactions for each account.

    The balance is left out if the statement prints none; the currency is XXX if it names none. UsageError if the year
    of a row is not known.
    """
    if open_count := sum(row.is_year_open for row in reading.statement.transactions):
        raise UsageError(
            f"the statement does not say the year of {format_count(open_count, 'row')}, and OFX has no dates without a year",
            code="TEMPLATE-TABLE",
            remedy="Write a file that ends with .csv or .xlsx: it has day and month.",
        )
    from jinja2 import Environment, StrictUndefined  # imported late: few commands need it

    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=True)
    environment.filters["xml"] = lambda text: _NO_XML.sub(" ", text)
    # At noon the day stays the same in every time zone.
    environment.filters["noon"] = lambda day: f"{day.replace('-', '')}120000"
    layout = environment.from_string((files("evalkit.statements") / "transactions.ofx.jinja").read_text("utf-8"))
    accounts = group_by(reading.statement.transactions, lambda transaction: transaction.account)
    days = [row.date for row in reading.statement.transactions]
    document = layout.render(
        is_card=reading.template.amounts.balance == "owed",
        end=reading.statement.period_end or max(days, default="1970-01-01"),
        accounts=[_build_ofx_account(reading, account, rows) for account, rows in accounts.items()],
    )
    return document.encode()


def _build_ofx_account(reading: StatementReading, account: str, rows: Sequence[Transaction]) -> dict[str, object]:
    number_match = _ACCOUNT_NUMBER.search(account)
    days = [row.date for row in rows]
    count_by_key: Counter[tuple[object, ...]] = Counter()
    rows_with_id = []
    for row in rows:
        key = (account, row.date, row.amount, row.description)
        count_by_key[key] += 1
        # An id that stays the same when the statement is read again.
        text = "\x1f".join(map(str, (*key, count_by_key[key])))
        rows_with_id.append((hashlib.sha256(text.encode()).hexdigest()[:32], row))
    return {
        "currency": _find_currency([account]) or _find_currency(reading.page_texts) or _NO_CURRENCY,
        "number": re.sub(r"[ -]", "", number_match[0]) if number_match else reading.template.template_id,
        "is_savings": "saving" in f"{account} {reading.template.identity.statement}".casefold(),
        "start": reading.statement.period_start or min(days),
        "end": reading.statement.period_end or max(days),
        "rows": rows_with_id,
        "closing": [
            printed_sum.value
            for printed_sum in reading.statement.sums
            if (printed_sum.kind, printed_sum.account) == ("closing", account)
        ],
    }


def _find_currency(texts: Sequence[str]) -> str | None:
    """Return the ISO 4217 code of the currency named most often; None if none is."""
    counts = Counter(_CURRENCY_BY_SIGN.get(match, match) for text in texts for match in _CURRENCY.findall(text))
    return counts.most_common(1)[0][0] if counts else None


_WRITER_BY_ENDING: dict[str, Callable[[StatementReading], bytes]] = {
    ".csv": _render_csv, ".xlsx": _render_xlsx, ".ofx": _render_ofx,
}  # fmt: skip
