"""Which way the money went: what the page proves, and what only a person can decide."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from statements.plain_pages import Cell, build_from_lines, row

_JULY = "Statement period 01/07/2024 to 31/07/2024"
_CARD, _ACCOUNT = "Nimbus Credit Card", "Elm Bank Current Account"
_TITLES, _WITH_BALANCE = row("Date", "Description", "Amount"), row("Date", "Description", "Amount", "Balance")
_CARD_ROWS = [
    row("02/07/2024", "SHOP ALPHA", "120.00"), row("14/07/2024", "XP 77", "-100.00"), row("20/07/2024", "CAFE", "30.00"),
]  # fmt: skip
_UNMARKED_ROWS = [
    row("02/07/2024", "SHOP", "20.00"),
    row("14/07/2024", "ACME", "100.00"),
    row("20/07/2024", "CAFE", "30.00"),
]
_BALANCE_ROWS = [
    row("02/07/2024", "SHOP", "20.00", "480.00"), row("14/07/2024", "ACME", "100.00", "580.00"),
    row("20/07/2024", "CAFE", "30.00", "550.00"),
]  # fmt: skip
Lines = list[str | list[Cell]]

PROVEN: dict[str, tuple[Lines, list[int], set[str]]] = {
    "a credit mark beside unmarked charges": (
        [_CARD, _JULY, _TITLES, row("02/07/2024", "SHOP", "20.00"), row("14/07/2024", "ACME", "9.00 CR")],
        [-20, 9],
        {"marks"},
    ),
    "a plus beside unmarked charges": (
        ["Elm Bank", _JULY, _TITLES, row("02/07/2024", "SHOP", "20.00"), row("14/07/2024", "ACME", "+9.00")],
        [-20, 9],
        {"marks"},
    ),
    "a minus on an account": (
        [_ACCOUNT, _JULY, _TITLES, row("02/07/2024", "SHOP", "-20.00"), row("14/07/2024", "ACME", "9.00")],
        [-20, 9],
        {"marks"},
    ),
    "balances of a card": (
        [_CARD, _JULY, "Previous balance 100.00", "New balance 150.00", _TITLES, *_CARD_ROWS],
        [-120, 100, -30],
        {"balances"},
    ),
    "headings of a card, one reversal": (
        [
            _CARD, _JULY, _TITLES, "Payments", row("14/07/2024", "XP 77", "100.00"), "Purchases",
            row("02/07/2024", "SHOP", "120.00"), row("21/07/2024", "SHOP", "-30.00"),
        ],
        [100, -120, 30],
        {"headings"},
    ),
    "the title of the only column": (
        [_CARD, _JULY, row("Date", "Description", "Charges"), row("02/07/2024", "SHOP", "20.00"), row("09/07/2024", "CAFE", "3.00")],
        [-20, -3],
        {"titles"},
    ),
    "balances in the rows": (
        ["Elm Bank", _JULY, "Opening balance 500.00", _WITH_BALANCE, *_BALANCE_ROWS],
        [-20, 100, -30],
        {"running_balance"},
    ),
    "words for both directions": (
        [
            _CARD, _JULY, _TITLES, row("02/07/2024", "PAYMENT BY INTERNET", "(412.16)"),
            row("03/07/2024", "BREAKFAST", "4.20"), row("28/07/2024", "CASH REBATE", "(1.38)"),
        ],
        [412, -4, 1],
        {"wording"},
    ),
}  # fmt: skip

_SIDES = row("Date", "Description", "Paid out", "Paid in", "Balance")
PROVEN["a reversal in the column of debits"] = (
    [
        "Elm Bank", _JULY, "Opening balance 500.00", _SIDES, row("02/07/2024", "SHOP", "120.00", "", "380.00"),
        row("14/07/2024", "ACME", "", "100.00", "480.00"), row("20/07/2024", "SHOP", "-30.00", "", "510.00"),
    ],
    [-120, 100, 30],
    {"titles", "running_balance"},
)  # fmt: skip
PROVEN["a card that is only advertised"] = (
    [
        "Elm Bank",
        "Apply for our credit card",
        _JULY,
        _TITLES,
        row("02/07/2024", "SHOP", "-20.00"),
        row("14/07/2024", "ACME", "9.00"),
    ],
    [-20, 9],
    {"marks"},
)

UNPROVEN: dict[str, Lines] = {
    "unmarked amounts": [_ACCOUNT, _JULY, _TITLES, *_UNMARKED_ROWS],
    "a minus on a card": [_CARD, _JULY, _TITLES, *_CARD_ROWS],
    "a reversal that no sum proves": [
        _ACCOUNT, _JULY, _TITLES, "Deposits", row("14/07/2024", "ACME", "100.00"), "Withdrawals",
        row("02/07/2024", "SHOP", "120.00"), row("21/07/2024", "SHOP", "-30.00"),
    ],
    "balances that may be debts": [
        "Nimbus", _JULY, "Opening balance 100.00", _TITLES, *_CARD_ROWS, "Closing balance 150.00", "Credit limit 900.00",
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", PROVEN)
def test_directions_are_proven_by_the_page(name: str, tmp_path: Path) -> None:
    lines, amounts, proofs = PROVEN[name]
    built = build_from_lines(lines, tmp_path)
    assert [int(transaction.amount) for transaction in built.statement.transactions] == amounts
    assert set(built.template.amounts.sign_proof) == proofs


@pytest.mark.parametrize("name", UNPROVEN)
def test_directions_that_nothing_proves_name_no_proof(name: str, tmp_path: Path) -> None:
    built = build_from_lines(UNPROVEN[name], tmp_path)
    assert len(built.statement.transactions) == 3
    assert built.template.amounts.sign_proof == ()


def test_debts_with_a_mark_need_no_kind(tmp_path: Path) -> None:
    rows = [
        row("02/07/2024", "SHOP", "20.00", "70.00 DR"), row("14/07/2024", "ACME", "100.00", "30.00 CR"),
        row("20/07/2024", "CAFE", "30.00", "0.00"),
    ]  # fmt: skip
    built = build_from_lines(["Elm Bank", _JULY, "Opening balance 50.00 DR", _WITH_BALANCE, *rows], tmp_path)
    assert [transaction.balance for transaction in built.statement.transactions] == [
        Decimal(-70),
        Decimal(30),
        Decimal(0),
    ]
    assert [transaction.amount for transaction in built.statement.transactions] == [
        Decimal(-20),
        Decimal(100),
        Decimal(-30),
    ]
    assert built.template.amounts.sign_proof == ("running_balance",)
