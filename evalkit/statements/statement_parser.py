"""Read a statement with a template: transactions, printed sums, unread lines.

Nothing is lost silently: each line within a region belongs to a transaction, has a known meaning (heading, furniture,
printed sum), or is listed as left over with a reason. Rows outside all regions are listed too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from itertools import product
from typing import Literal, get_args

from pydantic import Field

from evalkit.core.document_cache import cache_document_text
from evalkit.core.grouping import group_pairs
from evalkit.core.records import LazyStrictRecord
from evalkit.documents.bundle import Box, enclose_boxes
from evalkit.statements.bank_vocabulary import match_at_line_start
from evalkit.statements.date_survey import find_statement_period
from evalkit.statements.dates import PERIOD_MARGIN, PartialDate, StatementPeriod, resolve_date
from evalkit.statements.statement_template import ColumnName, Direction, StatementTemplate
from evalkit.statements.table_row import LabelledAmount, TableRow, find_labelled_amounts, parse_trailing_amount
from evalkit.statements.text_lines import TextLine, join_cents, split_lines_into_panels

LeftoverReason = Literal[
    "it belongs to no transaction",
    "its date cannot be read",
    "it has an amount and no date",
    "it has a date and no amount",
    "no heading says which way the money went",
    "it stands in no column",
    "it has dates behind its amounts",
    "it does not say what it was",
]
#: Columns of the CSV file of transactions; other programs rely on their order.
TRANSACTION_CSV_COLUMNS = ("date", "description", "amount", "balance", "page")
SumKind = Literal[
    "opening", "closing", "deposits", "withdrawals", "carried", "subtotal", "deposits_subtotal", "withdrawals_subtotal"
]
_SUM_KIND_BY_NAME: dict[str, SumKind] = {kind: kind for kind in get_args(SumKind)}
#: The sums in a line such as "Carried forward", by the column that they are printed in.
_FURNITURE_SUM_KINDS: tuple[tuple[ColumnName, SumKind], ...] = (
    ("balance", "carried"), ("amount", "subtotal"), ("credit", "deposits_subtotal"), ("debit", "withdrawals_subtotal"),
)  # fmt: skip
_FURNITURE_KINDS = frozenset(kind for _, kind in _FURNITURE_SUM_KINDS)
#: Most unmarked amounts between two printed balances; more would fit too many ways.
_MAX_UNSIGNED_AMOUNTS = 10
#: The end of a heading that is repeated on the next page, such as "(continued)".
_CONTINUED_SUFFIX = re.compile(r"[\s(–-]*continued\)?$", re.IGNORECASE)


class Transaction(LazyStrictRecord):
    """One transaction of a statement."""

    date: str
    """The date, ISO 8601; ``--MM-DD`` if the statement does not say of which year it is."""
    description: str
    amount: Decimal
    """The amount: deposits positive, withdrawals negative."""
    balance: Decimal | None = None
    """The balance printed in the row, debts negative; None if there is none."""
    check_number: str = ""
    page: int
    boxes: tuple[Box, ...]
    """The box of each line of the transaction."""
    account: str = ""
    """The heading of the account; empty if no account heading was found."""
    section: str = ""
    """The last section heading above the transaction."""
    is_mended: bool = False
    """True if a character of an amount, misread by OCR, was corrected."""
    confidence: float | None = Field(default=None, exclude_if=lambda confidence: confidence is None)
    """Confidence in date, amount and description, 0..1; None if it was not rated."""

    @property
    def is_year_open(self) -> bool:
        """True if only day and month are known."""
        return self.date.startswith("--")


class LeftoverText(LazyStrictRecord):
    """Words of a line that were not read as part of a transaction, with the reason."""

    page: int
    text: str
    box: Box
    reason: LeftoverReason


class PrintedSum(LazyStrictRecord):
    """A balance or total that the statement prints."""

    kind: SumKind
    value: Decimal
    """The printed value: totals without a sign, balances negative if they are debts."""
    label: str
    page: int
    box: Box
    account: str = ""
    section: str = ""
    """The section heading above the sum; empty outside the regions."""
    after: int = 0
    """Number of transactions of the same account before the sum."""
    is_part: bool = False
    """True if the sum is only a part of all deposits or withdrawals, which all parts together add up to."""


class ParsedStatement(LazyStrictRecord):
    """All that a template reads from a statement."""

    template_id: str
    version: int
    period_start: str | None = None
    period_end: str | None = None
    transactions: tuple[Transaction, ...] = ()
    sums: tuple[PrintedSum, ...] = ()
    left_over: tuple[LeftoverText, ...] = ()
    """Lines within the regions that belong to no transaction and have no known meaning."""
    outside: tuple[LeftoverText, ...] = ()
    """Lines outside all regions with a date and an amount in the template's columns."""


def parse_statement_lines(template: StatementTemplate, lines_by_page: Sequence[Sequence[TextLine]]) -> ParsedStatement:
    """Read a statement whose words are already grouped into lines, by page."""
    if template.amounts.decimal == " ":
        lines_by_page = [join_cents(lines) for lines in lines_by_page]
    period = find_statement_period(template.dates, template.reconciliation.closing, lines_by_page)
    statement = _StatementParser(template, period, {}).read_pages(lines_by_page)
    openings = {printed.account: printed.value for printed in statement.sums if printed.kind == "opening"}
    # Balances among the amounts are known by the opening balance, which may be printed below them.
    if any(printed.kind == "opening" and printed.after for printed in statement.sums):
        return _StatementParser(template, period, openings).read_pages(lines_by_page)
    return statement


@dataclass
class _OpenTransaction:
    """A transaction whose next lines may follow."""

    partial_date: PartialDate
    section: str
    rows: list[TableRow] = field(default_factory=list)
    """Its lines, in order."""
    main_row: TableRow | None = None
    """The line with the amount; the line with the date before the amount is read."""
    amount: Decimal | None = None
    is_unsigned: bool = False
    """True if only the printed balances say which way the money went."""


class _StatementParser:
    """Reads lines in order and remembers account, section and the open transaction."""

    def __init__(
        self, template: StatementTemplate, period: StatementPeriod | None, openings: Mapping[str, Decimal]
    ) -> None:
        self._template = template
        self._period = period
        self._openings = dict(openings)
        self._account = ""
        self._section = ""
        self._direction: Direction | None = None
        self._open_transaction: _OpenTransaction | None = None
        self._last_day: PartialDate | None = None
        self._is_inside_region = self._has_table_ended = False
        self._page_number = 0
        #: Top of the line before, as a fraction of the page's height.
        self._top = 0.0
        #: The last line of the page that is no transaction: a row of the page before may continue below it.
        self._line_above: TextLine | None = None
        self._lines_below: Sequence[TextLine] = ()
        self._transactions: list[Transaction] = []
        #: Positions of the transactions whose direction the balances must say.
        self._unsigned_positions: set[int] = set()
        self._printed_sums: list[PrintedSum] = []
        self._leftovers: list[LeftoverText] = []
        self._rows_outside_regions: list[LeftoverText] = []
        sum_labels = template.reconciliation
        #: The totals by the key of their label in the patterns of sums.
        self._totals = {
            f"total {position}": total for position, total in enumerate(sum_labels.total) if total.of != "columns"
        }
        self._sum_patterns = {
            "opening": sum_labels.opening,
            "closing": sum_labels.closing,
            **{key: (total.label,) for key, total in self._totals.items()},
        }
        self._title_words_by_column = group_pairs(
            (column.name, word) for column in template.columns for word in column.title.casefold().split()
        )

    def read_pages(self, lines_by_page: Sequence[Sequence[TextLine]]) -> ParsedStatement:
        """Read all lines of all pages."""
        for page_number, lines in enumerate(lines_by_page, 1):
            panels = self._template.find_regions(page_number, len(lines_by_page))
            placed_lines = split_lines_into_panels(lines, panels)
            for position, (line, line_in_region) in enumerate(placed_lines):
                lines_below = [lower.line for lower in placed_lines[position + 1 : position + 3]]
                self.consume_line(line, line_in_region, lines_below)
        return self.build_statement()

    def consume_line(self, line: TextLine, line_in_region: TextLine | None, lines_below: Sequence[TextLine]) -> None:
        """Read one line of a page.

        ``line_in_region``: the part of the line in a region, None outside; ``lines_below``: the rest of the page.
        """
        if line.page_number != self._page_number:
            self._page_number, self._has_table_ended, self._line_above = line.page_number, False, None
            self._top = 0.0
        if line.box[3] < self._top:  # a table beside the one above begins
            self._has_table_ended = False
        self._top = line.box[1]
        self._lines_below = lines_below
        row = TableRow(self._template, line_in_region or line)
        if (
            self._is_table_header(row)
            or self._consume_account_heading(row)
            or self._consume_section_heading(row, is_in_region=line_in_region is not None)
        ):
            self._line_above = line
            self._has_table_ended = self._has_table_ended and line_in_region is None
            return
        self._has_table_ended = self._has_table_ended or any(
            match_at_line_start(pattern, line.text) for pattern in self._template.rows.ends
        )
        self._is_inside_region = line_in_region is not None and not self._has_table_ended
        if self._is_inside_region:
            # The first rule that returns True decides what the line means.
            if not (
                self._consume_printed_sum(row)
                or self._consume_furniture_line(row)
                or self._consume_transaction(row)
                or self._consume_continuation(row)
            ):
                is_list = row.has_no_text and self._has_trailing_amount(row.line)
                self._add_leftover(
                    row.line, "it has dates behind its amounts" if is_list else "it belongs to no transaction"
                )
        elif (
            not (self._consume_printed_sum(row) or row.has_no_text)
            and row.partial_date
            and row.has_money_movement
            and not row.is_beside_label
        ):
            self._rows_outside_regions.append(_build_leftover(line, "it belongs to no transaction"))

    def build_statement(self) -> ParsedStatement:
        """Finish the last transaction and return all that was read."""
        self._finish_open_transaction()
        self._sign_by_balances()
        period = self._period
        return ParsedStatement(
            template_id=self._template.template_id,
            version=self._template.version,
            period_start=period.start.isoformat() if period and period.start else None,
            period_end=period.end.isoformat() if period else None,
            transactions=tuple(self._transactions),
            sums=tuple(self._printed_sums),
            left_over=tuple(self._leftovers),
            outside=tuple(self._rows_outside_regions),
        )

    def _sign_by_balances(self) -> None:
        """Give unmarked amounts the direction by which the printed balances change."""
        balances: dict[tuple[str, str], Decimal] = {
            (printed_sum.account, printed_sum.kind): printed_sum.value for printed_sum in reversed(self._printed_sums)
        }
        is_newest_first = self._template.rows.order == "newest_first"
        amounts = derive_amounts_from_balances(
            self._transactions, self._unsigned_positions, balances, is_newest_first=is_newest_first
        )
        transactions, self._transactions = self._transactions, []
        for row, amount in zip(transactions, amounts, strict=True):
            if amount is not None:
                self._transactions.append(row.model_copy(update={"amount": amount}))
                continue
            self._leftovers.append(
                LeftoverText(
                    page=row.page,
                    text=row.description,
                    box=enclose_boxes(row.boxes),
                    reason="no heading says which way the money went",
                )
            )

    # Meanings of a line

    def _is_table_header(self, row: TableRow) -> bool:
        return all(
            column_name is not None
            and {word.text.casefold() for word in words} <= set(self._title_words_by_column.get(column_name, ()))
            for column_name, words in row.words_by_column.items()
        )

    def _consume_account_heading(self, row: TableRow) -> bool:
        text = row.line.text
        if not any(
            match_at_line_start(pattern, text) for pattern in self._template.rows.accounts
        ) or self._has_trailing_amount(row.line):
            return False
        self._finish_open_transaction()
        account = _strip_continued_suffix(text)
        if account != self._account:
            self._account, self._section, self._direction, self._last_day = account, "", None, None
        return True

    def _consume_section_heading(self, row: TableRow, *, is_in_region: bool) -> bool:
        """Read a heading that sets the direction of rows, maybe with total and date."""
        text = row.description if row.partial_date else row.line.text
        sections = self._template.rows.section
        section = next((section for section in sections if match_at_line_start(section.heading, text)), None)
        day = row.partial_date or self._last_day
        total = row.amounts_by_column.get("amount") if is_in_region and self._template.rows.date_once and day else None
        if section is None or (total is None and (row.partial_date or self._has_trailing_amount(row.line))):
            return False
        self._finish_open_transaction()
        self._section, self._direction = _strip_continued_suffix(text), section.direction
        if total and day:
            self._is_inside_region, self._last_day = True, day
            self._section = f"{row.description} {day.month:02}-{day.day:02}"
            self._add_printed_sums(
                [LabelledAmount(f"{section.direction}s", row.description, total, row.line.page_box)], row.line
            )
        return True

    def _consume_printed_sum(self, row: TableRow) -> bool:
        if row.partial_date and not row.is_beside_label:
            return self._consume_balance_row(row)
        if self._consume_column_totals(row):
            return True
        amount_rules = self._template.amounts
        labelled_amounts = list(
            find_labelled_amounts(
                row.line, self._lines_below, self._sum_patterns, amount_rules.decimal, cents_optional=amount_rules.whole
            )
        )
        return self._add_printed_sums(labelled_amounts, row.line)

    def _consume_column_totals(self, row: TableRow) -> bool:
        """Read the totals below the columns of debits and credits; False without any."""
        labels = (total.label for total in self._template.reconciliation.total if total.of == "columns")
        if not any(match_at_line_start(label, row.line.text) for label in labels):
            return False
        column_kinds: tuple[tuple[ColumnName, str], ...] = (("debit", "withdrawals"), ("credit", "deposits"))
        labelled_amounts = [
            LabelledAmount(kind, row.description, row.amounts_by_column[column_name], row.line.page_box)
            for column_name, kind in column_kinds
            if column_name in row.amounts_by_column
        ]
        return self._add_printed_sums(labelled_amounts, row.line)

    def _consume_balance_row(self, row: TableRow) -> bool:
        """Read a dated row with only a balance: "1 May Opening balance 1,200.00".

        False if the line is no such row.
        """
        amount = row.amounts_by_column.get("balance") or next(iter(row.amounts_by_column.values()), None)
        for kind in ("opening", "closing"):
            if amount and any(match_at_line_start(pattern, row.description) for pattern in self._sum_patterns[kind]):
                labelled_amount = LabelledAmount(kind, row.description, amount, row.line.page_box)
                return self._add_printed_sums([labelled_amount], row.line)
        return False

    def _consume_furniture_line(self, row: TableRow) -> bool:
        # A dated row may have only a balance: "1 May Balance brought forward 1,200.00".
        text = row.description if row.partial_date else row.line.text
        if row.partial_date and row.has_money_movement:
            return False
        is_balance = self._is_balance_line(row)
        if not (
            is_balance
            or {"debit", "credit"} <= set(row.amounts_by_column)  # totals, whatever their label
            or any(match_at_line_start(pattern, text) for pattern in self._template.rows.furniture)
        ):
            return False
        self._line_above = row.line
        self._add_printed_sums(
            [
                LabelledAmount(
                    "carried" if is_balance else kind,
                    row.line.text,
                    row.amounts_by_column[column_name],
                    row.line.page_box,
                )
                for column_name, kind in _FURNITURE_SUM_KINDS
                if column_name in row.amounts_by_column
            ],
            row.line,
        )
        return True

    def _is_balance_line(self, row: TableRow) -> bool:
        """Return True if a line has only a balance and words, whatever they are.

        Without a date, or among the amounts, the balance must be that of the rows above, or there are none.
        """
        columns = set(row.amounts_by_column)
        if columns not in ({"balance"}, {"amount"}) or not row.description or row.has_unread_amount:
            return False
        is_first = not (self._transactions or self._open_transaction)
        if columns == {"balance"} and (row.partial_date is not None or is_first):
            return True
        last = self._open_transaction
        balance = last.main_row.get_signed_balance() if last and last.main_row else None
        amount = last.amount or Decimal(0) if last else Decimal(0)
        for transaction in reversed(self._transactions):
            if balance is None and transaction.balance is not None:
                balance = transaction.balance + amount
            amount += transaction.amount
        if balance is None and columns == {"amount"} and self._account in self._openings:
            balance = self._openings[self._account] + amount
        return self._read_balance(row) == balance

    def _read_balance(self, row: TableRow) -> Decimal:
        (printed,) = row.amounts_by_column.values()
        return printed.compute_signed_balance(is_debt_if_unmarked=self._template.amounts.balance == "owed")

    def _consume_transaction(self, row: TableRow) -> bool:
        is_list = row.has_no_text and not self._template.rows.date_once
        if row.partial_date is None and (is_list or not row.has_money_movement):
            return False
        if row.partial_date is None and "date" in row.words_by_column:
            return self._add_leftover(row.line, "its date cannot be read")
        if row.has_date_after_amount:
            return self._add_leftover(row.line, "it has dates behind its amounts")
        signed_amount = row.compute_signed_amount(self._direction)
        is_unsigned = signed_amount is None and self._template.amounts.unmarked == "balance" and row.has_money_movement
        if is_unsigned:
            signed_amount = row.amounts_by_column["amount"].magnitude
        if row.has_money_movement and signed_amount is None:
            return self._add_leftover(row.line, "no heading says which way the money went")
        open_transaction = self._open_transaction
        if row.partial_date or open_transaction is None or open_transaction.amount is not None:
            day = row.partial_date or (self._last_day if self._template.rows.date_once else None)
            if day is None:
                return self._add_leftover(row.line, "it has an amount and no date")
            self._finish_open_transaction()
            self._last_day = day
            open_transaction = self._open_transaction = _OpenTransaction(day, self._section)
        open_transaction.main_row, open_transaction.amount = row, signed_amount
        open_transaction.is_unsigned = is_unsigned
        open_transaction.rows.append(row)
        if unplaced_words := row.words_by_column.get(None):
            self._add_leftover(replace(row.line, words=unplaced_words), "it stands in no column")
        return True

    def _consume_continuation(self, row: TableRow) -> bool:
        open_transaction, row_rules = self._open_transaction, self._template.rows
        if open_transaction is None or row_rules.continuation == "none":
            return False
        last_line = open_transaction.rows[-1].line
        line_above = last_line if last_line.page_number == row.line.page_number else self._line_above
        if (
            line_above is None
            or row.line.deskewed_center_y - line_above.deskewed_center_y > row_rules.gap * last_line.height
            or not set(row.words_by_column) <= {"description", "other"}
        ):
            return False
        open_transaction.rows.append(row)
        return True

    def _has_trailing_amount(self, line: TextLine) -> bool:
        return any(
            parse_trailing_amount(cell, self._template.amounts.decimal, cents_optional=False) for cell in line.cells
        )

    # Results

    def _finish_open_transaction(self) -> None:
        open_transaction, self._open_transaction = self._open_transaction, None
        if open_transaction is None:
            return
        rows, main_row, amount = open_transaction.rows, open_transaction.main_row, open_transaction.amount
        if amount is None and self._extend_last_transaction(open_transaction):
            return
        day = open_transaction.partial_date
        resolved_date = resolve_date(day, self._period)
        descriptions = list(filter(None, (row.description for row in rows)))
        is_undescribed = not descriptions and self._template.find_column("description") is not None
        if main_row is None or amount is None or is_undescribed or (resolved_date is None and day.year):
            # All lines as one, so that no word is lost.
            line = replace(rows[0].line, words=tuple(word for row in rows for word in row.line.words))
            self._add_leftover(
                line,
                "it has a date and no amount"
                if amount is None
                else "it does not say what it was"
                if is_undescribed
                else "its date cannot be read",
            )
            return
        if open_transaction.is_unsigned:
            self._unsigned_positions.add(len(self._transactions))
        self._transactions.append(
            Transaction(
                date=resolved_date.isoformat() if resolved_date else f"--{day.month:02}-{day.day:02}",
                description=self._template.rows.joint.join(descriptions),
                amount=amount,
                balance=main_row.get_signed_balance(),
                check_number=next(filter(None, (row.check_number for row in reversed(rows))), ""),
                page=rows[0].line.page_number,
                boxes=tuple(row.line.page_box for row in rows),
                account=self._account,
                section=open_transaction.section,
                is_mended=main_row.is_ocr_corrected,
            )
        )

    def _extend_last_transaction(self, open_transaction: _OpenTransaction) -> bool:
        """Add lines that begin with a value date, without amount, to the row above."""
        value_date = resolve_date(open_transaction.partial_date, self._period)
        lines = [row.line for row in open_transaction.rows]
        last = self._transactions[-1] if self._transactions else None
        if (
            last is None
            or last.is_year_open
            or value_date is None
            or abs(value_date - date.fromisoformat(last.date)) > PERIOD_MARGIN
            or lines[0].page_number != last.page
            or not 0 <= lines[0].box[1] - last.boxes[-1][1] <= self._template.rows.gap * lines[0].height
        ):
            return False
        descriptions = (last.description, *filter(None, (row.description for row in open_transaction.rows)))
        boxes = (*last.boxes, *(line.page_box for line in lines))
        self._transactions[-1] = last.model_copy(
            update={"description": self._template.rows.joint.join(descriptions), "boxes": boxes}
        )
        return True

    def _add_leftover(self, line: TextLine, reason: LeftoverReason) -> bool:
        self._leftovers.append(_build_leftover(line, reason))
        return True

    def _add_printed_sums(self, labelled_amounts: Sequence[LabelledAmount], line: TextLine) -> bool:
        for labelled_amount in labelled_amounts:
            self._add_printed_sum(labelled_amount, line)
        return bool(labelled_amounts)

    def _add_printed_sum(self, labelled_amount: LabelledAmount, line: TextLine) -> None:
        # A row may continue below the sums that are carried to the next page.
        if labelled_amount.kind not in _FURNITURE_KINDS:
            self._finish_open_transaction()
        total = self._totals.get(labelled_amount.kind)
        kind = _SUM_KIND_BY_NAME[total.of if total else labelled_amount.kind]
        # If the label "Balance on …" stands for both balances, the first is the opening balance and the next the
        # closing one.
        if (
            kind == "opening"
            and any(match_at_line_start(pattern, labelled_amount.label) for pattern in self._sum_patterns["closing"])
            and any(other.kind == "opening" and other.account == self._account for other in self._printed_sums)
        ):
            kind = "closing"
        self._printed_sums.append(
            PrintedSum(
                kind=kind,
                value=labelled_amount.amount.magnitude
                if kind in ("deposits", "withdrawals", "deposits_subtotal", "withdrawals_subtotal")
                else labelled_amount.amount.compute_signed_balance(
                    is_debt_if_unmarked=self._template.amounts.balance == "owed"
                ),
                label=labelled_amount.label,
                page=line.page_number,
                box=labelled_amount.box,
                account=self._account,
                section=self._section if self._is_inside_region else "",
                after=sum(candidate.account == self._account for candidate in self._transactions)
                + bool(self._open_transaction and self._open_transaction.amount is not None),
                is_part=bool(total and total.part),
            )
        )
        if kind == "opening":
            self._openings[self._account] = self._printed_sums[-1].value


def _build_leftover(line: TextLine, reason: LeftoverReason) -> LeftoverText:
    return LeftoverText(page=line.page_number, text=line.text, box=line.page_box, reason=reason)


def _strip_continued_suffix(text: str) -> str:
    return _CONTINUED_SUFFIX.sub("", text).strip()


# Directions by the printed balances


def derive_amounts_from_balances(
    rows: Sequence[Transaction],
    unsigned_positions: AbstractSet[int],
    balances: Mapping[tuple[str, str], Decimal],
    *,
    is_newest_first: bool,
) -> list[Decimal | None]:
    """Return each row's signed amount; None if no or several directions fit.

    ``unsigned_positions``: the rows whose amount has no sign yet. ``balances``: printed balances by account and kind, ``opening`` or ``closing``.
    """
    amounts: list[Decimal | None] = [row.amount for row in rows]
    for account in {rows[position].account for position in unsigned_positions}:
        positions = [position for position, row in enumerate(rows) if row.account == account]
        opening, closing = balances.get((account, "opening")), balances.get((account, "closing"))
        for start, target, run in _split_at_balances(
            rows, positions[::-1] if is_newest_first else positions, opening, closing
        ):
            unsigned = [position for position in run if position in unsigned_positions]
            signed_total = sum((rows[position].amount for position in run if position not in unsigned), Decimal(0))
            solution = (
                None
                if start is None or target is None
                else _find_only_signs(
                    tuple(rows[position].amount for position in unsigned), target - start - signed_total
                )
            )
            for number, position in enumerate(unsigned):
                amounts[position] = solution[number] if solution else None
    return amounts


def _split_at_balances(
    rows: Sequence[Transaction], positions: Sequence[int], opening: Decimal | None, closing: Decimal | None
) -> Iterator[tuple[Decimal | None, Decimal | None, list[int]]]:
    """Split the rows, in order of time, into runs between two printed balances."""
    balance, run = opening, list[int]()
    for position in positions:
        run.append(position)
        if (printed_balance := rows[position].balance) is not None:
            yield balance, printed_balance, run
            balance, run = printed_balance, []
    if run:
        yield balance, closing, run


@cache_document_text(4096)  # the builder reads the same rows for every hypothesis
def _find_only_signs(magnitudes: tuple[Decimal, ...], target: Decimal) -> tuple[Decimal, ...] | None:
    """Return the signed amounts that add up to ``target``.

    None unless exactly one choice does.
    """
    if len(magnitudes) > _MAX_UNSIGNED_AMOUNTS:
        return None
    solutions = {
        signed
        for signs in product((1, -1), repeat=len(magnitudes))
        if sum(signed := tuple(sign * magnitude for sign, magnitude in zip(signs, magnitudes, strict=True))) == target
    }
    return solutions.pop() if len(solutions) == 1 else None
