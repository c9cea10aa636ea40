"""Write a statement's transactions as a file: CSV, XLSX or OFX 2.2."""

from __future__ import annotations

import csv
import hashlib
import io
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from itertools import product
from pathlib import Path
from typing import NamedTuple

from evalkit.core.grouping import group_by
from evalkit.core.spreadsheets import escape_formula
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
_OFX_HEADER = (
    b'<?xml version="1.0" encoding="UTF-8" standalone="no"?>\n'
    b'<?OFX OFXHEADER="200" VERSION="220" SECURITY="NONE" OLDFILEUID="NONE" NEWFILEUID="NONE"?>\n'
)


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


def _tabulate(transactions: Sequence[Transaction]) -> tuple[list[str], list[list[object]]]:
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
    """Render a workbook; every cell has its type, so that no text becomes a formula."""
    import xlsxwriter  # imported late: few commands need it

    column_names, rows = _tabulate(reading.statement.transactions)
    buffer = io.BytesIO()
    with xlsxwriter.Workbook(buffer, {"in_memory": True}) as workbook:
        sheet = workbook.add_worksheet("transactions")
        money, day = (workbook.add_format({"num_format": code}) for code in ("0.00", "yyyy-mm-dd"))
        literal = workbook.add_format({"quote_prefix": True})  # stays text when a person edits the cell
        sheet.freeze_panes(1, 0)
        sheet.set_column(1, 1, 50)
        for column, name in enumerate(column_names):
            sheet.write_string(0, column, name)
        for (row, cells), (column, name) in product(enumerate(rows, 1), enumerate(column_names)):
            cell = cells[column]
            if name == "date":
                sheet.write_datetime(row, column, date.fromisoformat(str(cell)), day)
            elif isinstance(cell, str):
                sheet.write_string(row, column, cell, None if escape_formula(cell) == cell else literal)
            elif cell is not None:
                sheet.write_number(row, column, cell, money if name in ("amount", "balance") else None)
    return buffer.getvalue()


def _render_ofx(reading: StatementReading) -> bytes:
    """Render OFX 2.2, one list of transactions for each account.

    The balance is left out if the statement prints none; the currency is XXX if it names none.
    """
    from lxml import etree
    from lxml.builder import E

    is_card = reading.template.amounts.balance == "owed"
    prefix = "CC" if is_card else ""
    accounts = group_by(reading.statement.transactions, lambda transaction: transaction.account)
    responses = [
        getattr(E, f"{prefix}STMTTRNRS")(
            E.TRNUID("0"),
            E.STATUS(E.CODE("0"), E.SEVERITY("INFO")),
            getattr(E, f"{prefix}STMTRS")(*_build_ofx_account(reading, account, rows)),
        )
        for account, rows in accounts.items()
    ]
    end = reading.statement.period_end or max(
        (row.date for row in reading.statement.transactions), default="1970-01-01"
    )
    sign_on = E.SONRS(E.STATUS(E.CODE("0"), E.SEVERITY("INFO")), E.DTSERVER(_format_ofx_date(end)), E.LANGUAGE("ENG"))
    message_set = E.CREDITCARDMSGSRSV1(*responses) if is_card else E.BANKMSGSRSV1(*responses)
    document = E.OFX(E.SIGNONMSGSRSV1(sign_on), message_set)
    return _OFX_HEADER + bytes(etree.tostring(document, encoding="UTF-8", pretty_print=True))


def _build_ofx_account(reading: StatementReading, account: str, rows: Sequence[Transaction]) -> Iterator[object]:
    from lxml.builder import E

    number_match = _ACCOUNT_NUMBER.search(account)
    number = re.sub(r"[ -]", "", number_match[0]) if number_match else reading.template.template_id
    yield E.CURDEF(_find_currency([account]) or _find_currency(reading.page_texts) or _NO_CURRENCY)
    if reading.template.amounts.balance == "owed":
        yield E.CCACCTFROM(E.ACCTID(number[:22]))
    else:
        is_savings = "saving" in f"{account} {reading.template.identity.statement}".casefold()
        yield E.BANKACCTFROM(E.BANKID("0"), E.ACCTID(number[:22]), E.ACCTTYPE("SAVINGS" if is_savings else "CHECKING"))
    days = [row.date for row in rows]
    start, end = reading.statement.period_start or min(days), reading.statement.period_end or max(days)
    count_by_key: Counter[tuple[object, ...]] = Counter()
    listed_rows = []
    for row in rows:
        key = (account, row.date, row.amount, row.description)
        count_by_key[key] += 1
        # An id that stays the same when the statement is read again.
        row_key = "\x1f".join(map(str, (*key, count_by_key[key])))
        listed_rows.append(_build_ofx_row(row, hashlib.sha256(row_key.encode()).hexdigest()[:32]))
    yield E.BANKTRANLIST(E.DTSTART(_format_ofx_date(start)), E.DTEND(_format_ofx_date(end)), *listed_rows)
    closing_values = [
        printed_sum.value
        for printed_sum in reading.statement.sums
        if (printed_sum.kind, printed_sum.account) == ("closing", account)
    ]
    if closing_values:
        yield E.LEDGERBAL(E.BALAMT(f"{closing_values[-1]:f}"), E.DTASOF(_format_ofx_date(end)))


def _build_ofx_row(row: Transaction, row_id: str) -> object:
    from lxml.builder import E

    text = _NO_XML.sub(" ", row.description)
    number = _NO_XML.sub(" ", row.check_number)[:12]
    kind = "CHECK" if number else "CREDIT" if row.amount > 0 else "DEBIT"
    return E.STMTTRN(
        E.TRNTYPE(kind), E.DTPOSTED(_format_ofx_date(row.date)), E.TRNAMT(f"{row.amount:f}"), E.FITID(row_id),
        *([E.CHECKNUM(number)] if number else []), E.NAME(text[:32]), *([E.MEMO(text[:255])] if len(text) > 32 else []),
    )  # fmt: skip


def _format_ofx_date(day: str) -> str:
    return f"{day.replace('-', '')}120000"  # noon: the day stays the same in every time zone


def _find_currency(texts: Sequence[str]) -> str | None:
    """Return the ISO 4217 code of the currency named most often; None if none is."""
    counts = Counter(_CURRENCY_BY_SIGN.get(match, match) for text in texts for match in _CURRENCY.findall(text))
    return counts.most_common(1)[0][0] if counts else None


_WRITER_BY_ENDING: dict[str, Callable[[StatementReading], bytes]] = {
    ".csv": _render_csv, ".xlsx": _render_xlsx, ".ofx": _render_ofx,
}  # fmt: skip
