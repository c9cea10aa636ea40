"""Sums are met or they are not; nothing is moved so that they are."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from evalkit.statements.reconciliation import SumCheck, find_rows_repeated_across_pages, reconcile_statement
from evalkit.statements.statement_parser import ParsedStatement, PrintedSum, Transaction
from evalkit.statements.statement_template import RowRules, StatementTemplate

from .test_statement_parser import BASE

TEMPLATE = StatementTemplate.model_validate(BASE)


def row(amount: str, balance: str | None = None, *, page: int = 1, text: str = "A", **more: str) -> Transaction:
    held = None if balance is None else Decimal(balance)
    return Transaction(
        date="2024-01-02", description=text, amount=Decimal(amount), balance=held, page=page, boxes=(), **more
    )


def printed(kind: str, value: str, **more: object) -> PrintedSum:
    return PrintedSum.model_validate(
        {"kind": kind, "value": value, "label": kind, "page": 1, "box": (0, 0, 1, 1), **more}
    )


def checks(rows: list[Transaction], sums: list[PrintedSum], template: StatementTemplate = TEMPLATE) -> list[SumCheck]:
    statement = ParsedStatement(template_id="t", version=1, transactions=tuple(rows), sums=tuple(sums))
    return list(reconcile_statement(template, statement).checks)


def outcome(found: list[SumCheck]) -> list[tuple[str, bool, Decimal]]:
    return [(one.name, one.is_met, one.difference) for one in found]


def test_opening_and_rows_make_the_closing_balance() -> None:
    sums = [printed("opening", "10.00"), printed("closing", "7.00")]
    assert outcome(checks([row("-3.00")], sums)) == [("closing_balance", True, Decimal(0))]
    (missed,) = checks([row("-4.00")], sums)
    assert (missed.is_met, missed.expected, missed.found, missed.difference) == (
        False,
        Decimal(7),
        Decimal(6),
        Decimal(-1),
    )


def test_two_closing_balances_that_differ_are_two_checks() -> None:
    sums = [
        printed("opening", "10.00"),
        printed("closing", "7.00"),
        printed("closing", "8.00"),
        printed("closing", "7.00"),
    ]
    assert sorted(one.is_met for one in checks([row("-3.00")], sums)) == [False, True]


def test_running_balances() -> None:
    right = [row("-3.00", "7.00"), row("-1.00"), row("5.00", "11.00")]
    assert outcome(checks(right, [printed("opening", "10.00")])) == [("running_balance", True, Decimal(0))]
    wrong = [row("-3.00", "7.00"), row("1.00", "6.00"), row("5.00", "11.00")]
    assert outcome(checks(wrong, [])) == [("running_balance", False, Decimal(2))]


def test_running_balances_of_the_newest_first() -> None:
    template = TEMPLATE.model_copy(update={"rows": RowRules(order="newest_first")})
    rows = [row("5.00", "11.00"), row("-1.00", "6.00"), row("-3.00", "7.00")]
    assert outcome(checks(rows, [printed("opening", "10.00")], template)) == [("running_balance", True, Decimal(0))]
    assert not all(one.is_met for one in checks(rows, [printed("opening", "10.00")]))


def test_carried_balances() -> None:
    rows = [row("-3.00", "7.00"), row("-1.00", "6.00")]
    found = checks(rows, [printed("carried", "7.00", after=1), printed("carried", "5.00", after=2)])
    assert [one.is_met for one in found if one.name == "carried_balance"] == [True, False]


def test_totals_of_the_account_of_a_section_and_in_parts() -> None:
    rows = [row("9.00", section="In"), row("-2.00", section="Out"), row("-3.00", section="Fees")]
    sums = [
        printed("deposits", "9.00"),
        printed("withdrawals", "3.00", section="Fees"),
        printed("withdrawals", "2.00", is_part=True),
        printed("withdrawals", "3.00", is_part=True),
    ]
    assert outcome(checks(rows, sums)) == [
        ("deposits", True, 0), ("section_total", True, 0), ("withdrawals", True, 0),
    ]  # fmt: skip


def test_totals_add_up_rows_from_any_boundary_above() -> None:
    rows = [row("9.00", section="In"), row("-2.00", section="A"), row("-3.00", section="B"), row("-4.00", section="B")]
    sums = [
        printed("subtotal", "3.00", section="B", after=3),
        printed("subtotal", "4.00", section="B", after=4),
        printed("withdrawals", "9.00", section="B", after=4),
        printed("withdrawals", "8.00", section="B", after=4),
    ]
    assert [(one.name, one.is_met, one.found) for one in checks(rows, sums)] == [
        ("subtotal", True, 3), ("subtotal", True, 4), ("section_total", True, 9), ("section_total", False, 7),
    ]  # fmt: skip


def test_accounts_are_checked_apart() -> None:
    rows = [row("1.00", account="X"), row("2.00", account="Y")]
    sums = [printed("deposits", "1.00", account="X"), printed("deposits", "3.00", account="Y")]
    assert [(one.account, one.is_met) for one in checks(rows, sums)] == [("X", True), ("Y", False)]


def test_repeated_rows_are_told_and_kept() -> None:
    rows = [row("-1.00", text="SHOP 11940892"), row("-1.00", text="SHOP 11940892", page=2)]
    (found,) = checks(rows, [])
    assert (found.name, found.is_met, found.found) == ("repeated_rows", False, Decimal("-1.00"))
    assert "1 row, on page 2;" in found.message


def test_equal_rows_happen() -> None:
    """The same coffee on one page, or once on the next, is no repetition; the same rows one after the other are."""
    assert find_rows_repeated_across_pages([row("-1.00"), row("-1.00")]) == []
    assert find_rows_repeated_across_pages([row("-1.00"), row("-1.00", page=2)]) == []
    assert find_rows_repeated_across_pages([row("-1.00", "9.00"), row("-1.00", "8.00", page=2)]) == []
    three = [row(f"-{n}.00") for n in range(1, 4)]
    again = [row(f"-{n}.00", page=2) for n in range(1, 4)]
    assert find_rows_repeated_across_pages([*three, *again]) == again


_CENTS = st.integers(-10_000_00, 10_000_00).map(lambda cents: Decimal(cents) / 100)


@given(st.lists(_CENTS, min_size=1), _CENTS, st.data())
def test_any_row_that_is_changed_is_found(amounts: list[Decimal], opening: Decimal, data: st.DataObject) -> None:
    closing = opening + sum(amounts)
    sums = [printed("opening", str(opening)), printed("closing", str(closing))]
    assert all(one.is_met for one in checks([row(str(one)) for one in amounts], sums))
    at = data.draw(st.integers(0, len(amounts) - 1))
    amounts[at] += Decimal("0.01")
    (missed,) = [one for one in checks([row(str(one)) for one in amounts], sums) if one.name == "closing_balance"]
    assert (missed.is_met, missed.difference) == (False, Decimal("0.01"))


def test_a_balance_may_be_carried_in_a_column_of_money() -> None:
    rows = [row("-3.00"), row("5.00", page=2)]
    sums = [printed("opening", "10.00"), printed("deposits_subtotal", "7.00", after=1)]
    assert outcome(checks(rows, sums)) == [("subtotal", True, Decimal(0))]
    (missed,) = checks(rows, [sums[0], printed("deposits_subtotal", "8.00", after=1)])
    assert not missed.is_met
