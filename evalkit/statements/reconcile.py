"""Do the transactions make the sums that the statement prints? Each check tells what it expected and what it found.

A difference is reported as what it is; nothing is moved, dropped or rounded so that a sum is met.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Literal, NamedTuple

from evalkit.frozen import FrozenLater
from evalkit.statements.apply import Statement, Sum, Transaction
from evalkit.statements.template import StatementTemplate

CheckName = Literal[
    "closing_balance", "running_balance", "carried_balance", "deposits", "withdrawals", "section_total", "repeated_rows"
]
#: Rows without a balance or a reference may be equal by chance; so many in a row are not.
_REPEATED_RUN = 3
_REFERENCE = re.compile(r"\d{6,}")


class Check(FrozenLater):
    """One sum."""

    name: CheckName
    account: str = ""
    label: str = ""
    """As the statement prints it; empty where it prints none."""
    expected: Decimal
    """What the statement says; of ``repeated_rows`` none."""
    found: Decimal
    """What the transactions make."""
    difference: Decimal
    """``found`` − ``expected``."""
    is_met: bool
    page: int | None = None
    """Where the expected sum stands."""
    message: str
    """A sentence for a person."""


class Reconciliation(FrozenLater):
    """All checks that the statement allows."""

    checks: tuple[Check, ...]

    @property
    def is_met(self) -> bool:
        """Whether there are checks of sums, and every check is met."""
        return self.can_reconcile and all(check.is_met for check in self.checks)

    @property
    def can_reconcile(self) -> bool:
        """Whether the statement prints any sum to check by."""
        return any(check.name != "repeated_rows" for check in self.checks)


class _Account(NamedTuple):
    """What is checked together."""

    rows: Sequence[Transaction]
    sums: Sequence[Sum]
    is_newest_first: bool


def reconcile(template: StatementTemplate, statement: Statement) -> Reconciliation:
    """What the statement prints, beside what its transactions make; by accounts in the order of their first rows."""
    names = (*(row.account for row in statement.transactions), *(one.account for one in statement.sums))
    is_newest_first = template.rows.order == "newest_first"
    checks: list[Check] = []
    for name in dict.fromkeys(names):
        rows = [row for row in statement.transactions if row.account == name]
        account = _Account(rows, [one for one in statement.sums if one.account == name], is_newest_first)
        checks += (made for check in _CHECKS for made in check(account))
    return Reconciliation(checks=tuple(checks))


def _closing(account: _Account) -> Iterator[Check]:
    """Opening and all amounts are each closing balance that is printed."""
    if (opening := _opening(account)) is None:
        return
    made = opening + sum((row.amount for row in account.rows), Decimal(0))
    # A closing balance that is printed again, in the summary and below the table, is one check.
    closings = {one.value: one for one in reversed(_of(account, "closing"))}
    for value, one in closings.items():
        sentence = "the opening balance and all transactions make {found}, printed is {expected}"
        yield _check("closing_balance", one, value, made, sentence)


def _opening(account: _Account) -> Decimal | None:
    """The balance before the first row: as it is printed, else as it was brought forward from the last statement."""
    before = [one for one in account.sums if one.kind == "carried" and one.after == 0]
    return next((one.value for one in (*_of(account, "opening"), *before)), None)


def _of(account: _Account, kind: str) -> list[Sum]:
    return [one for one in account.sums if one.kind == kind]


def _running(account: _Account) -> Iterator[Check]:
    """Each printed balance is the one before it and the amounts since; a row that breaks it is a check of its own."""
    in_order = account.rows[::-1] if account.is_newest_first else account.rows
    balance = _opening(account)
    steps, broken = 0, []
    last: Transaction | None = None
    for row in in_order:
        balance = None if balance is None else balance + row.amount
        if row.balance is None:
            continue
        if balance is not None:
            steps += 1
            if row.balance != balance:
                broken.append((row, balance))
        balance, last = row.balance, row
    for row, made in broken:
        assert row.balance is not None  # noqa: S101 - only rows with one are compared
        yield Check(
            name="running_balance", account=row.account, expected=row.balance, found=made, difference=made - row.balance,
            is_met=False, page=row.page,
            message=f"row of {row.date} on page {row.page}: the balance before it and its amount make {made}, printed is {row.balance}",
        )  # fmt: skip
    if last is not None and last.balance is not None and steps and not broken:
        yield Check(
            name="running_balance", account=last.account, expected=last.balance, found=last.balance, difference=Decimal(0),
            is_met=True, page=last.page, message=f"{steps} balances printed beside the rows follow from the amounts",
        )  # fmt: skip


def _carried(account: _Account) -> Iterator[Check]:
    """A balance carried forward is that of the row before it."""
    for one in account.sums:
        before = [row.balance for row in account.rows[: one.after] if row.balance is not None]
        if one.kind == "carried" and before:
            yield _check(
                "carried_balance",
                one,
                one.value,
                before[-1],
                "the row before has the balance {found}, carried forward is {expected}",
            )


def _totals(account: _Account) -> Iterator[Check]:
    """Printed deposits and withdrawals: of a section where they close it, of the account elsewhere, or in parts."""
    sections = {row.section for row in account.rows if row.section}
    made = {
        "deposits": sum((row.amount for row in account.rows if row.amount > 0), Decimal(0)),
        "withdrawals": -sum((row.amount for row in account.rows if row.amount < 0), Decimal(0)),
    }
    for one in account.sums:
        if one.kind not in made or one.is_part:
            continue
        if one.section in sections:
            below = abs(sum((row.amount for row in account.rows if row.section == one.section), Decimal(0)))
            yield _check(
                "section_total", one, one.value, below, "the rows below the heading make {found}, printed is {expected}"
            )
        else:
            yield _check(_name(one), one, one.value, made[one.kind], "they make {found}, printed is {expected}")
    for kind, found in made.items():
        if parts := [one for one in account.sums if one.kind == kind and one.is_part]:
            expected = sum((one.value for one in parts), Decimal(0))
            together = parts[0].model_copy(update={"label": " + ".join(part.label for part in parts)})
            yield _check(_name(together), together, expected, found, "they make {found}, the printed parts {expected}")


def _repeated(account: _Account) -> Iterator[Check]:
    """Rows that stand on an earlier page already."""
    if again := repeated(account.rows):
        amount = sum((row.amount for row in again), Decimal(0))
        pages = ", ".join(str(number) for number in sorted({row.page for row in again}))
        yield Check(
            name="repeated_rows", account=again[0].account, expected=Decimal(0), found=amount, difference=amount,
            is_met=False, page=again[0].page,
            message=f"{len(again)} rows on pages {pages} repeat rows of earlier pages; without them the amounts make {sum((row.amount for row in account.rows), Decimal(0)) - amount}",
        )  # fmt: skip


def repeated(rows: Sequence[Transaction]) -> list[Transaction]:
    """The rows that an earlier page has already, word for word.

    Equal rows of one day happen: without a balance or a long number to tell them apart, only three on end count.
    """
    first: dict[tuple[object, ...], int] = {}
    found: list[list[Transaction]] = [[]]
    for row in rows:
        key = (row.date, row.description, row.amount, row.balance, row.check_number)
        if first.setdefault(key, row.page) < row.page:
            found[-1].append(row)
        elif found[-1]:
            found.append([])
    return [
        row
        for run in found
        for row in run
        if len(run) >= _REPEATED_RUN or row.balance is not None or _REFERENCE.search(row.description)
    ]


def _name(one: Sum) -> CheckName:
    return "deposits" if one.kind == "deposits" else "withdrawals"


def _check(name: CheckName, printed: Sum, expected: Decimal, found: Decimal, sentence: str) -> Check:
    return Check(
        name=name,
        account=printed.account,
        label=printed.label,
        expected=expected,
        found=found,
        difference=found - expected,
        is_met=found == expected,
        page=printed.page,
        message=f"{printed.label}: " + sentence.format(found=found, expected=expected),
    )


_CHECKS: tuple[Callable[[_Account], Iterator[Check]], ...] = (
    _closing,
    _running,
    _carried,
    _totals,
    _repeated,
)
