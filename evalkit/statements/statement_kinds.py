"""Kinds of statements and what is usual on them (``statement_kinds.toml``)."""

from __future__ import annotations

from functools import cache
from typing import Literal

from evalkit.core.package_tables import load_package_table
from evalkit.core.records import StrictRecord
from evalkit.statements.bank_vocabulary import LinePattern
from evalkit.statements.statement_template import Direction


class StatementKind(StrictRecord):
    """A kind of statement: the words that name it, and what unmarked amounts mean."""

    name: str
    words: LinePattern
    """Words outside the rows that only this kind of statement prints."""
    balance: Literal["held", "owed"]
    """Meaning of a balance printed without a mark."""
    unmarked: Direction
    """Usual direction of an amount printed without a mark."""
    deposits: LinePattern | None = None
    """Titles, headings and labels that mean deposits on this kind of statement, whatever they mean on others."""
    withdrawals: LinePattern | None = None


@cache
def load_statement_kinds() -> tuple[StatementKind, ...]:
    """Load the kinds of statements that evalkit ships."""
    rows = load_package_table("evalkit.statements", "statement_kinds.toml")["kind"]
    return tuple(map(StatementKind.model_validate, rows))
