"""Reader of one line of a statement: sums by labels, rows by columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Literal

from evalkit.core.grouping import group_by
from evalkit.documents.bundle import Box, enclose_boxes
from evalkit.statements.amounts import MINUS_MARKS, Amount, DecimalSeparator, get_sign_mark, parse_amount
from evalkit.statements.bank_vocabulary import match_at_line_start
from evalkit.statements.dates import DATE_FORMATS, PartialDate, parse_partial_date
from evalkit.statements.statement_template import ColumnName, Direction, StatementTemplate
from evalkit.statements.text_lines import PageWord, TextLine

#: A value that is printed below its label is looked for in this many lines.
_MAX_LINES_BELOW_LABEL = 2
#: Most words of an amount: "$ 1 234,56 CR".
_MAX_AMOUNT_WORDS = 4
#: Largest distance of a row's text from where descriptions begin, in page widths: further right is the label of another
#: amount, beside a date.
MAX_TEXT_INDENT = 0.25
_COUNT_PATTERN = re.compile(r"[\d#%=+-]*")


@dataclass(frozen=True)
class LabelledAmount:
    """A label with its amount, as printed."""

    kind: str
    """The kind of sum: the key of the pattern that the label matched."""
    label: str
    """The label as printed, without the amount."""
    amount: Amount
    box: Box
    """The box around label and amount."""


def find_labelled_amounts(
    line: TextLine,
    lines_below: Sequence[TextLine],
    patterns_by_kind: Mapping[str, Sequence[str]],
    decimal_separator: DecimalSeparator,
    *,
    cents_optional: bool,
) -> Iterator[LabelledAmount]:
    """Find the labels of a line, each with the amount after or below it.

    ``patterns_by_kind``: patterns of labels by kind of sum. Labels without an amount are left out. Amounts without
    cents count only with ``cents_optional``, and only if there is no amount with cents.
    """
    cells = line.cells
    label_positions = [
        (position, kind)
        for position, cell in enumerate(cells)
        if (
            kind := next(
                (
                    kind
                    for kind, kind_patterns in patterns_by_kind.items()
                    if any(match_at_line_start(pattern, cell.text) for pattern in kind_patterns)
                ),
                None,
            )
        )
    ]
    next_positions = [*(position for position, _ in label_positions), len(cells)][1:]
    for (position, kind), next_position in zip(label_positions, next_positions, strict=True) if label_positions else ():
        label_cell = cells[position]
        for skip_cents in (False, True) if cents_optional else (False,):
            if found_amount := _find_amount_after_label(
                cells[position:next_position], decimal_separator, cents_optional=skip_cents
            ) or _find_amount_beside_label(
                label_cell, cells[:position], lines_below, decimal_separator, cents_optional=skip_cents
            ):
                amount, cell, label_length = found_amount
                label_text = " ".join(word.text for word in label_cell.words[:label_length])
                yield LabelledAmount(kind, label_text, amount, enclose_boxes((label_cell.page_box, cell.page_box)))
                break


def _find_amount_after_label(
    cells: Sequence[TextLine], decimal_separator: DecimalSeparator, *, cents_optional: bool
) -> tuple[Amount, TextLine, int | None] | None:
    """Return the amount behind the label, and its cell.

    In the label's own cell, also the number of the label's words.
    """
    for cell in cells:
        if cell is not cells[0] and "%" in cell.text:
            break  # a table of rates
        trailing_amount = parse_trailing_amount(cell, decimal_separator, cents_optional=cents_optional)
        if trailing_amount and not (cell is cells[0] and trailing_amount[1] == 0):
            return trailing_amount[0], cell, trailing_amount[1] if cell is cells[0] else None
    return None


def _find_amount_beside_label(
    label_cell: TextLine,
    cells_before: Sequence[TextLine],
    lines_below: Sequence[TextLine],
    decimal_separator: DecimalSeparator,
    *,
    cents_optional: bool,
) -> tuple[Amount, TextLine, None] | None:
    """Return the amount below the label and its cell, or alone before it; else None.

    Below, only lines that consist of numbers are considered.
    """
    x0, _, x1, _ = label_cell.box
    for line in lines_below[:_MAX_LINES_BELOW_LABEL]:
        parsed_cells = [
            (
                parse_amount(cell.text, decimal_separator, cents_optional=cents_optional, is_ocr_text=cell.is_ocr_text),
                cell,
            )
            for cell in line.cells
        ]
        if all(amount or _COUNT_PATTERN.fullmatch(cell.text) for amount, cell in parsed_cells):
            return next(
                (
                    (amount, cell, None)
                    for amount, cell in parsed_cells
                    if amount and cell.box[0] < x1 and x0 < cell.box[2]
                ),
                None,
            )
    if len(cells_before) == 1 and (amount := parse_amount(cells_before[0].text, decimal_separator)):
        return amount, cells_before[0], None
    return None


def parse_trailing_amount(
    cell: TextLine,
    decimal_separator: DecimalSeparator,
    *,
    cents_optional: bool,
    is_in_column: bool = False,
    max_words: int = _MAX_AMOUNT_WORDS,
) -> tuple[Amount, int] | None:
    """Return the longest amount at the cell's end and the number of words before it.

    None if the cell does not end with an amount.
    """
    texts = [word.text for word in cell.words]
    for start in range(max(len(texts) - max_words, 0), len(texts)):
        amount = parse_amount(
            " ".join(texts[start:]),
            decimal_separator,
            cents_optional=cents_optional,
            is_ocr_text=cell.is_ocr_text,
            is_in_column=is_in_column,
        )
        if amount:
            return amount, start
    return None


_MONEY_COLUMNS: tuple[ColumnName, ...] = ("debit", "credit", "amount")


@dataclass(frozen=True)
class TableRow:
    """A line of a statement, divided into the template's columns."""

    template: StatementTemplate
    line: TextLine

    @cached_property
    def words_by_column(self) -> dict[ColumnName | None, tuple[PageWord, ...]]:
        """The words by the column that contains their middle; key None: in no column."""
        columns = self.template.columns
        words_by_column = group_by(
            self.line.words,
            lambda word: next((column.name for column in columns if column.x[0] <= word.center_x < column.x[1]), None),
        )
        return {column_name: tuple(words) for column_name, words in words_by_column.items()}

    @cached_property
    def date_and_words_after(self) -> tuple[PartialDate | None, tuple[PageWord, ...]]:
        """The date at the start of the date column, and the words after it in that column.

        None and no words if there is no date.
        """
        words = self.words_by_column.get("date", ())
        for end in range(len(words), 0, -1):
            text = " ".join(word.text for word in words[:end])
            if day := parse_partial_date(text, self.template.dates.formats, is_ocr_text=self.line.is_ocr_text):
                return day, words[end:]
        return None, ()

    @property
    def date_words(self) -> tuple[PageWord, ...]:
        """The words that form the date; empty if the line has no date."""
        cell = self.words_by_column.get("date", ())
        return cell[: len(cell) - len(self.date_and_words_after[1])] if self.partial_date else ()

    @property
    def partial_date(self) -> PartialDate | None:
        """The date of the line as printed; None if there is none."""
        return self.date_and_words_after[0]

    @cached_property
    def amounts_by_column(self) -> dict[ColumnName, Amount]:
        """The amounts of the line by column, including the balance."""
        return {
            column_name: trailing_amount[0]
            for column_name, trailing_amount in self._trailing_amount_by_column.items()
            if trailing_amount
        }

    @property
    def has_money_movement(self) -> bool:
        """True if the line has a debit, credit or amount, not only a balance."""
        return any(column_name in self.amounts_by_column for column_name in _MONEY_COLUMNS)

    @property
    def has_unread_amount(self) -> bool:
        """True if the line has an amount in a column that is not read."""
        decimal, whole = self.template.amounts.decimal, self.template.amounts.whole
        words = self.words_by_column.get("other", ())
        return any(parse_amount(word.text, decimal, cents_optional=whole) for word in words)

    @property
    def has_no_text(self) -> bool:
        """True if the line has only dates and amounts, as in lists of daily balances."""
        return all(
            parse_partial_date(cell.text, DATE_FORMATS, is_ocr_text=self.line.is_ocr_text)
            or parse_amount(cell.text, self.template.amounts.decimal)
            for cell in self.line.cells
        )

    @property
    def is_beside_label(self) -> bool:
        """True if the text starts too far right to be a description: it is a label."""
        column, words = self.template.find_column("description"), self.words_by_column.get("description", ())
        return column is not None and bool(words) and words[0].box[0] - column.x[0] > MAX_TEXT_INDENT

    @property
    def has_date_after_amount(self) -> bool:
        """True if a date follows an amount, as in lists of daily balances or checks."""
        date_formats, decimal_separator = self.template.dates.formats, self.template.amounts.decimal
        texts = [word.text for word in self.line.words]
        first_amount_position = next(
            (position for position, text in enumerate(texts) if parse_amount(text, decimal_separator)), len(texts)
        )
        # A value date may be printed after the amount of a row that says what it is for.
        if any(re.search(r"[^\W\d_]{2}", text) for text in texts[1:first_amount_position]):
            return False
        return any(parse_partial_date(text, date_formats) for text in texts[first_amount_position + 1 :])

    @property
    def is_ocr_corrected(self) -> bool:
        """True if a misread character was corrected in an amount of the line."""
        return any(amount.is_ocr_corrected for amount in self.amounts_by_column.values())

    def compute_signed_amount(self, section_direction: Direction | None) -> Decimal | None:
        """Return the amount: deposits positive, withdrawals negative; None if unknown.

        ``section_direction``: the direction that the heading above the row sets; None without a heading.
        """
        debit, credit, amount = (self.amounts_by_column.get(column_name) for column_name in _MONEY_COLUMNS)
        if debit or credit:
            return self._sign_side(credit) - self._sign_side(debit)
        if amount is None or (resolved_direction := self._resolve_direction(amount, section_direction)) is None:
            return None
        return -amount.magnitude if resolved_direction == "withdrawal" else amount.magnitude

    def _sign_side(self, amount: Amount | None) -> Decimal:
        """Return an amount of a column of debits or credits; negative if it is a reversal."""
        if amount is None:
            return Decimal(0)
        is_reversal = self.template.amounts.reversals and amount.sign_mark in MINUS_MARKS
        return -amount.magnitude if is_reversal else amount.magnitude

    def get_signed_balance(self) -> Decimal | None:
        """Return the balance printed in the row, debts negative; None if there is none."""
        balance_amount = self.amounts_by_column.get("balance")
        return balance_amount and balance_amount.compute_signed_balance(
            is_debt_if_unmarked=self.template.amounts.balance == "owed"
        )

    @cached_property
    def description(self) -> str:
        """The description, with the words that reach into other columns."""
        overflow_words = [
            word
            for column_name, trailing_amount in self._trailing_amount_by_column.items()
            for word in self.words_by_column[column_name][: trailing_amount[1] if trailing_amount else None]
        ]
        words = (*self.date_and_words_after[1], *self.words_by_column.get("description", ()), *overflow_words)
        return " ".join(word.text for word in sorted(words, key=lambda word: word.box[0]))

    @property
    def check_number(self) -> str:
        """The check number; empty if there is none."""
        return " ".join(word.text for word in self.words_by_column.get("check_number", ()))

    @cached_property
    def _trailing_amount_by_column(self) -> dict[ColumnName, tuple[Amount, int] | None]:
        """The amount at the end of each amount column's words, and the words before it.

        The words are counted. None for a column whose words do not end with an amount.
        """
        amount_rules = self.template.amounts
        return {
            column_name: parse_trailing_amount(
                TextLine(self.line.page_number, self.words_by_column[column_name], self.line.is_ocr_text),
                amount_rules.decimal,
                cents_optional=amount_rules.whole,
                is_in_column=True,
            )
            for column_name in (*_MONEY_COLUMNS, "balance")
            if column_name in self.words_by_column
        }

    def _resolve_direction(
        self, amount: Amount, section_direction: Direction | None
    ) -> Literal["deposit", "withdrawal"] | None:
        amount_rules = self.template.amounts
        sign_mark = amount.sign_mark or get_sign_mark(
            " ".join(word.text for word in self.words_by_column.get("direction", ()))
        )
        if sign_mark in amount_rules.deposit:
            return "deposit"
        if sign_mark in amount_rules.withdrawal:
            return "withdrawal"
        if amount_rules.unmarked == "balance":
            return None
        return section_direction if amount_rules.unmarked == "section" else amount_rules.unmarked
