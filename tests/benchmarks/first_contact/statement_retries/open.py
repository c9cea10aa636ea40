"""The open half of the misread starts."""

from __future__ import annotations

import random
import re

from benchmarks.first_contact.statement_retries.making import MisreadStart, Plain, get_columns, rename_columns
from statements.drawn import Drawn


def _begin_too_low(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    for region in plain["region"]:
        region["box"][1] += rng.uniform(0.04, 0.09)


def _end_too_early(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    for region in plain["region"]:
        region["box"][3] = region["box"][1] + rng.uniform(0.13, 0.2)


def _exchange_day_and_month(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    other = {"%d": "%m", "%m": "%d"}
    formats = plain["dates"]["formats"]
    plain["dates"]["formats"] = [re.sub("%[dm]", lambda code: other[code[0]], text) for text in formats]


def _exchange_debit_and_credit(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    rename_columns(plain, debit="credit", credit="debit")


def _read_charges_as_deposits(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    amounts = plain["amounts"]
    amounts["unmarked"] = "deposit"
    amounts["deposit"], amounts["withdrawal"] = amounts["withdrawal"], amounts["deposit"]


def _shift_amount(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    columns = get_columns(plain)
    amount = columns["amount"]["x"]
    half = (amount[1] - amount[0]) * rng.uniform(0.5, 0.7)
    columns["amount"]["x"] = [amount[0] - half, amount[1] - half]
    columns["description"]["x"][1] = amount[0] - half


def _take_period_of_opening(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    plain["dates"]["period"] = ["Account opened"]


def _use_no_sum(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    plain["reconciliation"] = {"opening": [], "closing": [], "total": []}


def _read_other_currency(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    rename_columns(plain, other="amount", amount="other")


STARTS = (
    MisreadStart("the region begins too low", "parentheses", _begin_too_low, 200),
    MisreadStart("the region ends too early", "signed amounts", _end_too_early, 210),
    MisreadStart("day and month exchanged", "booking and value dates", _exchange_day_and_month, 220),
    MisreadStart("debit and credit exchanged", "French, blanks in numbers", _exchange_debit_and_credit, 230),
    MisreadStart("charges are deposits", "credit card", _read_charges_as_deposits, 240),
    MisreadStart("the amount's column is shifted", "dollar signs, ruled", _shift_amount, 250),
    MisreadStart("the period of another line", "old account", _take_period_of_opening, 260),
    MisreadStart("no sum is used", "no running balance", _use_no_sum, 270),
    MisreadStart("the amount of the other currency", "two currencies", _read_other_currency, 280),
)
