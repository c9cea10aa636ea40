"""Check that the transactions add up to the sums that the statement prints.

A difference is reported as it is; no transaction is moved, dropped or rounded to meet a sum.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from itertools import groupby, pairwise
from typing import Literal, NamedTuple

from evalkit.core.records import LazyStrictRecord
from evalkit.core.wording import format_count
from evalkit.statements.statement_parser import ParsedStatement, PrintedSum, Transaction
from evalkit.statements.statement_template import StatementTemplate

SumCheckName = Literal[
    "closing_balance",
    "running_balance",
    "carried_balance",
    "deposits",
    "withdrawals",
    "section_total",
    "subtotal",
    "repeated_rows",
]
#: Rows without a balance or reference number may be equal by chance; this many equal rows in sequence are a repetition.
_MIN_REPEATED_RUN = 3
_REFERENCE_NUMBER = re.compile(r"\d{6,}")


class SumCheck(LazyStrictRecord):
    """The check of one printed sum against the transactions, or of repeated rows."""

    name: SumCheckName
    account: str = ""
    label: str = ""
    """The label of the sum as printed; empty if the sum has none."""
    expected: Decimal
    """The printed sum; 0 for ``repeated_rows``."""
    found: Decimal
    """The value computed from the transactions."""
    difference: Decimal
    """``found`` − ``expected``."""
    is_met: bool
    page: int | None = None
    """The page of the sum, or of the first repeated row."""
    message: str
    """The result of the check, as a sentence for a person."""


class ReconciliationReport(LazyStrictRecord):
    """Checks of all sums that the statement prints and the template names."""

    checks: tuple[SumCheck, ...]

    @property
    def has_only_met_checks(self) -> bool:
        """True if at least one sum was checked, and every check is met."""
        return any(check.name != "repeated_rows" for check in self.checks) and all(
            check.is_met for check in self.checks
        )


class _AccountRowsAndSums(NamedTuple):
    rows: Sequence[Transaction]
    sums: Sequence[PrintedSum]
    is_newest_first: bool


def reconcile_statement(template: StatementTemplate, statement: ParsedStatement) -> ReconciliationReport:
    """Check the printed sums of each account against its transactions."""
    names = (*(row.account for row in statement.transactions), *(printed_sum.account for printed_sum in statement.sums))
    is_newest_first = template.rows.order == "newest_first"
    checks: list[SumCheck] = []
    for name in dict.fromkeys(names):
        rows = [row for row in statement.transactions if row.account == name]
        account = _AccountRowsAndSums(
            rows, [printed_sum for printed_sum in statement.sums if printed_sum.account == name], is_newest_first
        )
        checks += (sum_check for build_checks in _CHECK_BUILDERS for sum_check in build_checks(account))
    return ReconciliationReport(checks=tuple(checks))


def _check_closing_balance(account: _AccountRowsAndSums) -> Iterator[SumCheck]:
    """Check each printed closing balance against opening balance plus all amounts."""
    if (opening_balance := _find_opening_balance(account)) is None:
        return
    computed = opening_balance + sum((row.amount for row in account.rows), Decimal(0))
    # A closing balance that is printed in the summary and again below the table is checked once.
    sum_by_value = {printed_sum.value: printed_sum for printed_sum in reversed(_select_sums(account, "closing"))}
    for printed_balance, printed_sum in sum_by_value.items():
        sentence = "opening balance plus all transactions is {found}; printed: {expected}"
        yield _build_sum_check("closing_balance", printed_sum, printed_balance, computed, sentence)


def _find_opening_balance(account: _AccountRowsAndSums) -> Decimal | None:
    """Return the opening balance, printed or brought forward; None if neither."""
    carried_sums = [
        printed_sum for printed_sum in account.sums if printed_sum.kind == "carried" and printed_sum.after == 0
    ]
    return next((printed_sum.value for printed_sum in (*_select_sums(account, "opening"), *carried_sums)), None)


def _select_sums(account: _AccountRowsAndSums, kind: str) -> list[PrintedSum]:
    return [printed_sum for printed_sum in account.sums if printed_sum.kind == kind]


def _check_running_balance(account: _AccountRowsAndSums) -> Iterator[SumCheck]:
    """Check each row's balance against the previous balance plus the amounts since."""
    rows_in_date_order = account.rows[::-1] if account.is_newest_first else account.rows
    balance = _find_opening_balance(account)
    #: Rows whose balance can be compared, with the printed and the computed balance.
    compared_rows: list[tuple[Transaction, Decimal, Decimal]] = []
    for row in rows_in_date_order:
        balance = None if balance is None else balance + row.amount
        if row.balance is not None:
            if balance is not None:
                compared_rows.append((row, row.balance, balance))
            balance = row.balance
    is_met = all(printed == computed for _, printed, computed in compared_rows)
    for row, printed, computed in compared_rows[-1:] if is_met else compared_rows:
        if is_met or printed != computed:
            yield SumCheck(
                name="running_balance", account=row.account, expected=printed, found=computed, difference=computed - printed,
                is_met=is_met, page=row.page,
                message=f"{len(compared_rows)} balances printed in the rows agree with the amounts"
                if is_met
                else f"row of {row.date} on page {row.page}: the previous balance plus the amounts since is {computed}; printed: {printed}",
            )  # fmt: skip


def _check_carried_balance(account: _AccountRowsAndSums) -> Iterator[SumCheck]:
    """Check each carried balance against the last one plus the amounts since."""
    opening_balance = None if account.is_newest_first else _find_opening_balance(account)
    for printed_sum in account.sums:
        if printed_sum.kind != "carried" or not printed_sum.after:
            continue
        balance = opening_balance
        for row in account.rows[: printed_sum.after]:
            if row.balance is not None:
                balance = row.balance
            elif balance is not None:
                balance = None if account.is_newest_first else balance + row.amount
        if balance is not None:
            yield _build_sum_check(
                "carried_balance",
                printed_sum,
                printed_sum.value,
                balance,
                "the balance before is {found}; carried forward: {expected}",
            )


def _check_subtotals(account: _AccountRowsAndSums) -> Iterator[SumCheck]:
    """Check each sum in the table against the rows that it may add up.

    The sum may be of deposits, of withdrawals, of both, or a balance.
    """
    opening_balance = _find_opening_balance(account)
    for printed_sum in account.sums:
        if printed_sum.kind not in ("subtotal", "deposits_subtotal", "withdrawals_subtotal"):
            continue
        computed_sums = _add_up_rows_above(account, printed_sum)
        if opening_balance is not None:  # a balance may be carried below any column of money
            rows_above = account.rows[: printed_sum.after]
            computed_sums.append(sum((row.amount for row in rows_above), opening_balance))
        computed = next((total for total in computed_sums if abs(total) == abs(printed_sum.value)), computed_sums[0])
        yield _build_sum_check(
            "subtotal",
            printed_sum,
            abs(printed_sum.value),
            abs(computed),
            "the rows above add up to {found}; printed: {expected}",
        )


def _add_up_rows_above(account: _AccountRowsAndSums, printed_sum: PrintedSum) -> list[Decimal]:
    """Add up the rows above a sum, from each place where it may begin to count.

    These are the first row, and the first rows of a page, of a section, and below another sum. Only rows of the sum's
    kind count.
    """
    rows = account.rows[: printed_sum.after]
    starts = {0} | {other_sum.after for other_sum in account.sums if other_sum.after < printed_sum.after}
    starts |= {
        position
        for position, (row, next_row) in enumerate(pairwise(rows), 1)
        if (row.page, row.section) != (next_row.page, next_row.section)
    }
    amounts = [
        row.amount
        if not printed_sum.kind.endswith("s_subtotal") or (row.amount > 0) == printed_sum.kind.startswith("deposits")
        else Decimal(0)
        for row in rows
    ]
    return [sum(amounts[start:], Decimal(0)) for start in sorted(starts)]


def _check_totals(account: _AccountRowsAndSums) -> Iterator[SumCheck]:
    """Check printed totals of deposits and withdrawals against the transactions.

    A total inside a section is checked against the section's rows, or those above it, any other against the
    account's. Totals that are printed in parts are added up first.
    """
    sections = {row.section for row in account.rows if row.section}
    computed_by_kind = {
        "deposits": sum((row.amount for row in account.rows if row.amount > 0), Decimal(0)),
        "withdrawals": -sum((row.amount for row in account.rows if row.amount < 0), Decimal(0)),
    }
    for printed_sum in account.sums:
        if printed_sum.kind not in computed_by_kind or printed_sum.is_part:
            continue
        if printed_sum.section in sections:
            section_total = sum((row.amount for row in account.rows if row.section == printed_sum.section), Decimal(0))
            computed_sums = (section_total, *_add_up_rows_above(account, printed_sum))
            yield _build_sum_check(
                "section_total",
                printed_sum,
                printed_sum.value,
                next((abs(total) for total in computed_sums if abs(total) == printed_sum.value), abs(section_total)),
                "the rows below the heading add up to {found}; printed: {expected}",
            )
        else:
            yield _build_sum_check(
                _select_total_check_name(printed_sum),
                printed_sum,
                printed_sum.value,
                computed_by_kind[printed_sum.kind],
                "the transactions of this kind add up to {found}; printed: {expected}",
            )
    for kind, computed in computed_by_kind.items():
        if parts := [printed_sum for printed_sum in account.sums if printed_sum.kind == kind and printed_sum.is_part]:
            combined_sum = parts[0].model_copy(update={"label": " + ".join(part.label for part in parts)})
            yield _build_sum_check(
                _select_total_check_name(combined_sum),
                combined_sum,
                sum((printed_sum.value for printed_sum in parts), Decimal(0)),
                computed,
                "the transactions of this kind add up to {found}; the printed parts to {expected}",
            )


def _check_repeated_rows(account: _AccountRowsAndSums) -> Iterator[SumCheck]:
    if repeated_rows := find_rows_repeated_across_pages(account.rows):
        amount = sum((row.amount for row in repeated_rows), Decimal(0))
        pages = ", ".join(str(number) for number in sorted({row.page for row in repeated_rows}))
        yield SumCheck(
            name="repeated_rows", account=repeated_rows[0].account, expected=Decimal(0), found=amount, difference=amount,
            is_met=False, page=repeated_rows[0].page,
            message=f"repeated from earlier pages: {format_count(len(repeated_rows), 'row')}, on page {pages}; without them, the amounts add up to {sum((row.amount for row in account.rows), Decimal(0)) - amount}",
        )  # fmt: skip


def find_rows_repeated_across_pages(rows: Sequence[Transaction]) -> list[Transaction]:
    """Return the rows that repeat a row of an earlier page word for word.

    Two transactions of one day may be equal by chance. Rows without a balance and without a number of six or more
    digits in the description count only if at least three in sequence are repeated.
    """
    first_page_by_key: dict[tuple[object, ...], int] = {}

    def is_repetition(row: Transaction) -> bool:
        key = (row.date, row.description, row.amount, row.balance, row.check_number)
        return first_page_by_key.setdefault(key, row.page) < row.page

    return [
        row
        for is_repeated, run in ((is_repeated, list(run)) for is_repeated, run in groupby(rows, is_repetition))
        for row in run
        if is_repeated
        and (len(run) >= _MIN_REPEATED_RUN or row.balance is not None or _REFERENCE_NUMBER.search(row.description))
    ]


def _select_total_check_name(printed_sum: PrintedSum) -> SumCheckName:
    return "deposits" if printed_sum.kind == "deposits" else "withdrawals"


def _build_sum_check(
    name: SumCheckName, printed_sum: PrintedSum, expected: Decimal, computed: Decimal, sentence_format: str
) -> SumCheck:
    return SumCheck(
        name=name,
        account=printed_sum.account,
        label=printed_sum.label,
        expected=expected,
        found=computed,
        difference=computed - expected,
        is_met=computed == expected,
        page=printed_sum.page,
        message=f"{printed_sum.label}: " + sentence_format.format(found=computed, expected=expected),
    )


_CHECK_BUILDERS: tuple[Callable[[_AccountRowsAndSums], Iterator[SumCheck]], ...] = (
    _check_closing_balance,
    _check_running_balance,
    _check_carried_balance,
    _check_subtotals,
    _check_totals,
    _check_repeated_rows,
)
