"""Compare what a template reads with the bank's own export of the same month."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from rapidfuzz import fuzz

from evalkit.statements.bank_export import ExportedRow
from evalkit.statements.statement_parser import Transaction

#: Similarity in percent from which two descriptions are of one transaction.
_SAME_TEXT_PERCENT = 60.0


class ExportComparison(NamedTuple):
    """Rows that the statement's reading and the bank's export share, or not."""

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
        """True if every row was read as the bank has it."""
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
