"""Kinds of statements and their usual properties (``statement_kinds.toml``)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import product
from typing import Literal, NamedTuple

from evalkit.core.package_tables import load_package_table
from evalkit.core.records import StrictRecord
from evalkit.statements.bank_vocabulary import LinePattern, load_bank_vocabulary, match_at_line_start, search_in_line
from evalkit.statements.dates import DATE_FORMATS, parse_partial_date
from evalkit.statements.statement_template import Direction
from evalkit.statements.text_lines import TextLine

#: A word in a short text above the first row counts as much as this many elsewhere.
_TITLE_WEIGHT = 3
_MAX_TITLE_WORDS = 6
#: A line that begins with a date and has more cells is a row.
_MAX_HEAD_CELLS = 2


class StatementKind(StrictRecord):
    """A kind of statement: the words that name it, and what unmarked amounts mean."""

    name: str
    words: LinePattern
    """Words outside the rows that only this kind of statement prints."""
    balance: Literal["held", "owed"]
    """Meaning of a balance printed without a mark."""
    unmarked: Direction
    """Usual direction of an amount printed without a mark."""
    excludes: tuple[str, ...] = ()
    """Names of kinds whose words then mean this one: a prepaid card is no credit card."""
    deposits: LinePattern | None = None
    """Titles, headings and labels that mean deposits on this kind of statement, whatever they mean on others."""
    withdrawals: LinePattern | None = None
    deposit_words: LinePattern | None = None
    """Words of descriptions of deposits; None: those of any statement."""
    withdrawal_words: LinePattern | None = None


class RowWords(StrictRecord):
    """Words that show if money came in or went out, on any kind of statement."""

    deposit_words: LinePattern
    withdrawal_words: LinePattern
    advertising: LinePattern
    """Words of texts that offer another product."""


class StatementKindTable(StrictRecord):
    """The content of ``statement_kinds.toml``."""

    rows: RowWords
    kind: tuple[StatementKind, ...]


class KindEvidence(NamedTuple):
    """The kind of statement, judged by the words outside the rows."""

    kind: StatementKind | None
    """None if no kind is named, or two kinds are named as often."""
    is_debt_possible: bool
    """True if any word names a kind of statement whose balance is a debt."""

    def find_title_direction(self, title: str) -> Direction | None:
        """Return the direction that a title or heading names; None if it names none."""
        columns = load_bank_vocabulary().columns
        if direction := self.find_own_direction(title):
            return direction
        if match_at_line_start(columns["amount"], title):
            return None
        return _match_direction(title, columns["credit"], columns["debit"])

    def find_own_direction(self, title: str) -> Direction | None:
        """Return a title's direction if only this kind of statement has it, or None.

        On a credit card payments are deposits, on other statements withdrawals.
        """
        return _match_direction(title, self.kind.deposits, self.kind.withdrawals) if self.kind else None

    def find_word_direction(self, description: str) -> Direction | None:
        """Return the direction that a description names; None if none or both."""
        words = _load_kind_table().rows
        deposit_words = (self.kind and self.kind.deposit_words) or words.deposit_words
        withdrawal_words = (self.kind and self.kind.withdrawal_words) or words.withdrawal_words
        is_deposit = search_in_line(deposit_words, description) is not None
        if is_deposit == (search_in_line(withdrawal_words, description) is not None):
            return None
        return "deposit" if is_deposit else "withdrawal"


def find_statement_kind(lines_by_page: Sequence[Sequence[TextLine]]) -> KindEvidence:
    """Find the kind of statement that most words outside the rows name."""
    weight_by_words: dict[str, dict[str, int]] = {}
    kinds = _load_kind_table().kind
    is_head = True
    for line in (line for lines in lines_by_page for line in lines):
        if len(line.cells) > _MAX_HEAD_CELLS and parse_partial_date(line.cells[0].text, DATE_FORMATS, is_ocr_text=True):
            is_head = False
            continue
        for cell, kind in product(line.cells, kinds):
            match = search_in_line(kind.words, cell.text)
            if match and not search_in_line(_load_kind_table().rows.advertising, cell.text):
                words, word = weight_by_words.setdefault(kind.name, {}), match.group().casefold()
                is_title = is_head and len(cell.words) <= _MAX_TITLE_WORDS
                words[word] = max(words.get(word, 1), _TITLE_WEIGHT if is_title else 1)
    excluded = {name for kind in kinds if kind.name in weight_by_words for name in kind.excludes}
    weights = {name: sum(words.values()) for name, words in weight_by_words.items() if name not in excluded}
    highest_weight = max(weights.values(), default=0)
    named_kinds = [kind for kind in kinds if weights.get(kind.name) == highest_weight >= _TITLE_WEIGHT]
    return KindEvidence(
        named_kinds[0] if len(named_kinds) == 1 else None,
        any(kind.name in weights for kind in kinds if kind.balance == "owed"),
    )


def _match_direction(title: str, deposits: str | None, withdrawals: str | None) -> Direction | None:
    if deposits and match_at_line_start(deposits, title):
        return "deposit"
    return "withdrawal" if withdrawals and match_at_line_start(withdrawals, title) else None


@cache
def _load_kind_table() -> StatementKindTable:
    return StatementKindTable.model_validate(load_package_table("evalkit.statements", "statement_kinds.toml"))
