"""Proof of the directions of money, by marks, titles, sums and words.

A proof holds only if the opposite reading fails: an equation that is met either way proves nothing, and what a balance
without a mark means must follow from the kind of statement or from marks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

from evalkit.statements.alternative_readings import invert_balance_sign, invert_directions
from evalkit.statements.amounts import MINUS_MARKS, SignMark
from evalkit.statements.applied_template import AppliedTemplate
from evalkit.statements.bank_vocabulary import load_bank_vocabulary, match_at_line_start
from evalkit.statements.reconciliation import SumCheckName
from evalkit.statements.statement_kinds import KindEvidence
from evalkit.statements.statement_parser import Transaction
from evalkit.statements.statement_template import Direction, SignProof, StatementTemplate

_ALL_MARKS: tuple[SignMark, ...] = (*MINUS_MARKS, "dr", "plus", "cr")
_CHECKS_BY_PROOF: Mapping[SignProof, tuple[SumCheckName, ...]] = {
    "running_balance": ("running_balance",),
    "balances": ("closing_balance",),
    "totals": ("deposits", "withdrawals"),
}


@dataclass(frozen=True)
class DirectionEvidence:
    """A statement's transactions, with evidence for their directions."""

    applied_template: AppliedTemplate
    kind_evidence: KindEvidence

    @property
    def template(self) -> StatementTemplate:
        """The template whose directions are examined."""
        return self.applied_template.template

    @property
    def rows(self) -> tuple[Transaction, ...]:
        """The transactions as the template reads them."""
        return self.applied_template.statement.transactions

    def list_proofs(self) -> tuple[SignProof, ...]:
        """List all proofs of the directions; empty if nothing proves them."""
        return tuple(self._generate_proofs()) if self.rows else ()

    @cached_property
    def word_score(self) -> float:
        """Agreement of directions with descriptions' words, -1 to 1; 0 without any."""
        agreeing, contradicting = self._word_counts
        return (agreeing - contradicting) / max(len(self.rows), 1)

    @cached_property
    def heading_score(self) -> float:
        """Agreement of directions and headings, -1 to 1; 0 without headings."""
        agreements = [
            direction == get_direction(row) for row in self.rows if (direction := self._find_heading_direction(row))
        ]
        return (2 * sum(agreements) - len(agreements)) / max(len(self.rows), 1)

    def _find_heading_direction(self, row: Transaction) -> Direction | None:
        return next(
            (
                section.direction
                for section in self.template.rows.section
                if row.section and match_at_line_start(section.heading, row.section)
            ),
            None,
        )

    def _generate_proofs(self) -> Iterator[SignProof]:
        agreeing, contradicting = self._word_counts
        is_plausible = contradicting <= max(agreeing, 1) and not self._contradicts_headings
        if is_plausible and self._has_proving_marks:
            yield "marks"
        if self._has_proving_titles:
            yield "titles"
        if self._has_proving_headings:
            yield "headings"
        for proof, check_names in _CHECKS_BY_PROOF.items():
            needs_meaning = proof != "totals"
            if self._is_met_only_as_read(check_names) and (
                not needs_meaning or (is_plausible and self._is_balance_meaning_certain)
            ):
                yield proof
        if agreeing and not contradicting and self._has_words_for_all_marks:
            yield "wording"

    @cached_property
    def _word_counts(self) -> tuple[int, int]:
        """The rows whose descriptions agree with their direction, and contradict it."""
        directions = [
            (self.kind_evidence.find_word_direction(row.description), get_direction(row)) for row in self.rows
        ]
        return (
            sum(named == direction for named, direction in directions),
            sum(named is not None and named != direction for named, direction in directions),
        )

    @cached_property
    def _rows_by_mark(self) -> dict[SignMark | None, list[int]]:
        """The positions of the rows by the mark of their amount; None: without a mark."""
        if self.template.find_column("amount") is None:
            return {}
        unmarked = set(range(len(self.rows)))
        rows_by_mark: dict[SignMark | None, list[int]] = {}
        for mark in _ALL_MARKS:
            flipped = self.applied_template.apply_other_template(_flip_mark(self.template, mark))
            if changed := [
                position
                for position, (row, other_row) in enumerate(
                    zip(self.rows, flipped.statement.transactions, strict=False)
                )
                if row.amount != other_row.amount
            ]:
                rows_by_mark[mark] = changed
                unmarked -= set(changed)
        return rows_by_mark | ({None: sorted(unmarked)} if unmarked else {})

    @property
    def _unmarked(self) -> set[int]:
        """The positions of the rows whose amount has no mark."""
        return set(self._rows_by_mark.get(None, () if self._rows_by_mark else range(len(self.rows))))

    @cached_property
    def _has_proving_marks(self) -> bool:
        marks = self._rows_by_mark
        amount_rules = self.template.amounts
        if amount_rules.unmarked in ("section", "balance") and None in marks:
            return False
        if {"cr", "dr"} & set(marks):
            opposite = {"cr": "withdrawal", "dr": "deposit"}
            is_unmarked_certain = None not in marks or all(
                amount_rules.unmarked == opposite[mark] for mark in opposite if mark in marks
            )
            return is_unmarked_certain and (not marks.keys() - {"cr", "dr", None} or not self._is_owed)
        has_minus = bool(set(MINUS_MARKS) & set(marks))
        if "plus" in marks:
            is_unmarked_opposite = None not in marks or amount_rules.unmarked == "withdrawal" or has_minus
            return "plus" in amount_rules.deposit and is_unmarked_opposite and not (has_minus and self._is_owed)
        return (
            has_minus
            and "minus" in amount_rules.withdrawal
            and not self._is_owed
            and (None not in marks or amount_rules.unmarked == "deposit")
        )

    @property
    def _is_owed(self) -> bool:
        """True if amounts may be printed as changes of a debt.

        If no word names a kind or the amounts: unless most rows take money away, and in a month much of what is held.
        """
        if kind := self.kind_evidence.kind:
            return kind.balance == "owed"
        titles = load_bank_vocabulary().columns
        is_named = any(
            column.name in ("debit", "credit", "amount") and match_at_line_start(titles[column.name], column.title)
            for column in self.template.columns
        )
        amounts = [row.amount for row in self.rows]
        turnover = sum(map(abs, amounts), Decimal(0))
        is_spent = 3 * sum(amount > 0 for amount in amounts) < 2 * sum(amount < 0 for amount in amounts)
        is_much = all(abs(balance) <= 2 * turnover for balance in _list_balances(self.applied_template))
        return self.kind_evidence.is_debt_possible or not (is_named or (is_spent and is_much))

    @cached_property
    def _has_proving_titles(self) -> bool:
        """True if the titles of the columns name the directions, and none contradicts."""
        directions: Mapping[str, Direction] = {"debit": "withdrawal", "credit": "deposit"}
        named = [
            (self.kind_evidence.find_title_direction(column.title), directions[column.name])
            for column in self.template.columns
            if column.name in directions and column.title
        ]
        amount_column = self.template.find_column("amount")
        if amount_column:
            direction = self.kind_evidence.find_title_direction(amount_column.title)
            return direction is not None and all(
                (get_direction(row) == direction) == (position in self._unmarked)
                for position, row in enumerate(self.rows)
            )
        return any(title for title, _ in named) and all(title in (None, direction) for title, direction in named)

    @property
    def _contradicts_headings(self) -> bool:
        """True if an unmarked amount is read against the heading above it."""
        return any(
            direction != get_direction(row) and position in self._unmarked
            for position, row in enumerate(self.rows)
            if (direction := self._find_heading_direction(row))
        )

    @cached_property
    def _has_proving_headings(self) -> bool:
        """True if each row stands below a heading that names its direction.

        Beside amounts without a mark, one with a mark must be a reversal: read the other way.
        """
        mixed_sections = {self.rows[position].section for position in self._unmarked}
        return all(
            (direction := self._find_heading_direction(row)) is not None
            and (get_direction(row) == direction) == (position in self._unmarked or row.section not in mixed_sections)
            for position, row in enumerate(self.rows)
        )

    def _is_met_only_as_read(self, names: tuple[SumCheckName, ...]) -> bool:
        """Return True if each account's sums are met as read, but not if reversed."""
        checks = [check for check in self.applied_template.sum_checks if check.name in names]
        accounts = {row.account for row in self.rows}
        if not checks or not all(check.is_met for check in checks) or accounts - {check.account for check in checks}:
            return False
        if self.template.amounts.unmarked == "balance":
            return "running_balance" in names  # the directions were taken from these balances
        other_templates = [invert_directions(self.template)]
        if len(self._rows_by_mark) > 1:
            other_templates += [_flip_mark(self.template, mark) for mark in self._rows_by_mark]
        return not any(
            all(
                check.is_met
                for check in self.applied_template.apply_other_template(other_template).sum_checks
                if check.name in names
            )
            for other_template in other_templates
        )

    @cached_property
    def _is_balance_meaning_certain(self) -> bool:
        """True if held or owed follows from the kind of statement or from marks."""
        other = self.applied_template.apply_other_template(invert_balance_sign(self.template))
        balances, other_balances = _list_balances(self.applied_template), _list_balances(other)
        absolute_marks = {"cr", "dr", "plus"} & {*self.template.amounts.deposit, "dr"}
        if balances == other_balances or absolute_marks & set(self._rows_by_mark):
            return True  # marks on the balances, or on the amounts, say what is a debt
        kind = self.kind_evidence.kind
        if self.template.amounts.balance == "owed":
            # Of a card whose balances all have a minus it is open whether a debt is printed so.
            return kind is not None and kind.balance == "owed" and any(balance < 0 for balance in balances)
        return not self._is_owed

    @cached_property
    def _has_words_for_all_marks(self) -> bool:
        """True if words name deposits and withdrawals, and one row of each mark at least.

        On a card, descriptions of charges are names of shops: words for all payments are enough.
        """
        named_rows = {
            position
            for position, row in enumerate(self.rows)
            if self.kind_evidence.find_word_direction(row.description) is not None
        }
        rows_by_mark = self._rows_by_mark or {None: list(range(len(self.rows)))}
        is_card = self.kind_evidence.kind is not None and self.kind_evidence.kind.deposit_words is not None
        if is_card and len(rows_by_mark) > 1:
            deposits = {position for position, row in enumerate(self.rows) if row.amount > 0}
            return deposits <= named_rows
        directions = {get_direction(self.rows[position]) for position in named_rows}
        return len(directions) > 1 and all(named_rows & set(positions) for positions in rows_by_mark.values())


def get_direction(row: Transaction) -> Direction:
    """Return the direction (deposit or withdrawal) of a transaction."""
    return "withdrawal" if row.amount < 0 else "deposit"


def _flip_mark(template: StatementTemplate, mark: SignMark | None) -> StatementTemplate:
    """Build the template in which one mark, or no mark, means the opposite direction."""
    amount_rules = template.amounts
    if mark is None:
        unmarked = "deposit" if amount_rules.unmarked == "withdrawal" else "withdrawal"
        return template.model_copy(update={"amounts": amount_rules.model_copy(update={"unmarked": unmarked})})
    deposit, withdrawal = (
        tuple(other for other in marks if other != mark) for marks in (amount_rules.deposit, amount_rules.withdrawal)
    )
    is_deposit = mark in amount_rules.deposit
    changes = {
        "deposit": deposit if is_deposit else (*deposit, mark),
        "withdrawal": (*withdrawal, mark) if is_deposit else withdrawal,
    }
    return template.model_copy(update={"amounts": amount_rules.model_copy(update=changes)})


def _list_balances(applied_template: AppliedTemplate) -> list[Decimal]:
    statement = applied_template.statement
    printed = [
        printed_sum.value for printed_sum in statement.sums if printed_sum.kind in ("opening", "closing", "carried")
    ]
    return [*printed, *(row.balance for row in statement.transactions if row.balance is not None)]
