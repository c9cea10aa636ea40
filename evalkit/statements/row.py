"""What stands in one line of a table: its words by columns, read as date, amounts and text."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Literal

from evalkit.statements.amounts import Amount, read_amount
from evalkit.statements.dates import Day, read_day
from evalkit.statements.lines import Line, Word
from evalkit.statements.printed import tail_amount
from evalkit.statements.template import ColumnName, Direction, StatementTemplate

_SUMS: tuple[ColumnName, ...] = ("debit", "credit", "amount")


@dataclass(frozen=True)
class Row:
    """A line, as the template parts it into columns."""

    template: StatementTemplate
    line: Line

    @cached_property
    def cells(self) -> dict[ColumnName | None, tuple[Word, ...]]:
        """The words by the columns that their middles are in; None: in none."""
        found: dict[ColumnName | None, tuple[Word, ...]] = {}
        for word in self.line.words:
            name = next((one.name for one in self.template.columns if one.x[0] <= word.x < one.x[1]), None)
            found[name] = (*found.get(name, ()), word)
        return found

    def text(self, name: ColumnName) -> str:
        """What stands in the column."""
        return " ".join(word.text for word in self.cells.get(name, ()))

    @cached_property
    def date(self) -> tuple[Day | None, tuple[Word, ...]]:
        """The date at the beginning of its cell, and the words behind it."""
        words = self.cells.get("date", ())
        for end in range(len(words), 0, -1):
            text = " ".join(word.text for word in words[:end])
            if day := read_day(text, self.template.dates.formats, is_recognised=self.line.is_recognised):
                return day, words[end:]
        return None, ()

    @property
    def date_words(self) -> tuple[Word, ...]:
        """The words of its cell that are the date; none where there is none."""
        cell = self.cells.get("date", ())
        return cell[: len(cell) - len(self.date[1])] if self.day else ()

    @property
    def day(self) -> Day | None:
        """The date."""
        return self.date[0]

    @cached_property
    def amounts(self) -> dict[ColumnName, Amount]:
        """The amounts by their columns, the balance too."""
        return {name: found[0] for name, found in self._tails.items() if found}

    @property
    def has_amount(self) -> bool:
        """Whether money moved: any amount but a balance."""
        return any(name in self.amounts for name in _SUMS)

    @property
    def has_dates_behind(self) -> bool:
        """Whether a date stands right of an amount: a list of daily balances or of checks, several to a line."""
        forms, decimal = self.template.dates.formats, self.template.amounts.decimal
        texts = [word.text for word in self.line.words]
        first = next((at for at, text in enumerate(texts) if read_amount(text, decimal)), len(texts))
        return any(read_day(text, forms) for text in texts[first + 1 :])

    @property
    def is_mended(self) -> bool:
        """Whether a misread sign of an amount was taken for another."""
        return any(amount.is_mended for amount in self.amounts.values())

    def moved(self, direction: Direction | None) -> Decimal | None:
        """The row's amount, deposits above zero; None where it has none, or nobody knows which way the money went.

        ``direction``: what the heading above the row says.
        """
        debit, credit, amount = (self.amounts.get(name) for name in _SUMS)
        if debit or credit:
            return (credit.magnitude if credit else Decimal(0)) - (debit.magnitude if debit else Decimal(0))
        if amount is None or (meaning := self._meaning(amount, direction)) is None:
            return None
        return -amount.magnitude if meaning == "withdrawal" else amount.magnitude

    def balance(self) -> Decimal | None:
        """The balance beside the row, debts below zero."""
        found = self.amounts.get("balance")
        return found and found.held(is_owed=self.template.amounts.balance == "owed")

    @cached_property
    def description(self) -> tuple[Word, ...]:
        """The words that say what it was, those too that reach over into the columns beside theirs."""
        spilled: tuple[Word, ...] = ()
        for name, tail in self._tails.items():
            spilled += self.cells[name][: tail[1]] if tail else self.cells[name]
        words = (*self.date[1], *self.cells.get("description", ()), *spilled)
        return tuple(sorted(words, key=lambda word: word.box[0]))

    @cached_property
    def _tails(self) -> dict[ColumnName, tuple[Amount, int] | None]:
        """The amount at the end of each column's cell, and how many words stand before it."""
        amounts = self.template.amounts
        return {
            name: tail_amount(
                Line(self.line.page, self.cells[name], self.line.is_recognised),
                amounts.decimal,
                is_whole=amounts.whole,
                is_in_column=True,
            )
            for name in (*_SUMS, "balance")
            if name in self.cells
        }

    def _meaning(self, amount: Amount, direction: Direction | None) -> Literal["deposit", "withdrawal"] | None:
        amounts = self.template.amounts
        if amount.mark in amounts.deposit:
            return "deposit"
        if amount.mark in amounts.withdrawal:
            return "withdrawal"
        return direction if amounts.unmarked == "section" else amounts.unmarked
