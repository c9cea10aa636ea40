"""Directions that only the printed balances say."""

from __future__ import annotations

from decimal import Decimal

from evalkit.statements.balance_directions import derive_amounts_from_balances
from evalkit.statements.statement_parser import Transaction


def _derive(*rows: tuple[int, int | None], is_newest_first: bool = False) -> list[Decimal | None]:
    transactions = [
        Transaction(date="2024-01-02", description="", amount=Decimal(amount), balance=balance, page=1, boxes=())
        for amount, balance in rows
    ]
    opening = {("", "opening"): Decimal(500)}
    return derive_amounts_from_balances(transactions, set(range(len(rows))), opening, is_newest_first=is_newest_first)


def test_direction_follows_from_the_next_balance() -> None:
    assert _derive((20, 480), (100, 580)) == [-20, 100]
    assert _derive((100, 580), (20, 480), is_newest_first=True) == [100, -20]


def test_several_amounts_share_a_balance() -> None:
    assert _derive((20, None), (100, 580), (30, None), (31, 519)) == [-20, 100, -30, -31]


def test_direction_stays_open_if_several_fit() -> None:
    assert _derive((20, None), (20, 500)) == [None, None]
    assert _derive((20, 490)) == [None]
