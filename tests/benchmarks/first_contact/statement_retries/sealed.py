"""The sealed half of the misread starts."""

from __future__ import annotations

import random

from benchmarks.first_contact.statement_retries.making import MisreadStart, Plain, get_columns, rename_columns
from statements.drawn import Drawn


def _read_first_page_only(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    plain["region"] = [region for region in plain["region"] if region["pages"] == "first"]


def _invert_sections(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    for section in plain["rows"]["section"]:
        section["direction"] = "withdrawal" if section["direction"] == "deposit" else "deposit"


def _read_year_as_day(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    plain["dates"]["formats"] = ["%y/%m/%d"]


def _read_balance_as_amount(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    rename_columns(plain, amount="balance", balance="amount")


def _stop_continuing(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    plain["rows"]["continuation"] = "none"


def _cut_right_edge(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    edge = get_columns(plain)["balance"]["x"][0]
    for region in plain["region"]:
        region["box"][2] = edge - rng.uniform(0.005, 0.03)


def _repeat_no_date(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    plain["rows"]["date_once"] = False


def _mix_accounts(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    plain["rows"]["accounts"] = []


def _hold_a_debt(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    plain["amounts"]["balance"] = "owed" if plain["amounts"]["balance"] == "held" else "held"


STARTS = (
    MisreadStart("only the first page has a region", "newest first", _read_first_page_only, 300),
    MisreadStart("sections are inverted", "deposits and withdrawals in sections", _invert_sections, 310),
    MisreadStart("the year is read as the day", "short years", _read_year_as_day, 320),
    MisreadStart("the balance is the amount", "CR and DR", _read_balance_as_amount, 330),
    MisreadStart("further lines are left out", "European dates and decimals", _stop_continuing, 340),
    MisreadStart("the region ends left of the balance", "check numbers", _cut_right_edge, 350),
    MisreadStart("a date counts for one row only", "one date for several rows", _repeat_no_date, 360),
    MisreadStart("two accounts mix", "two accounts", _mix_accounts, 370),
    MisreadStart("held and owed exchanged", "signed amounts", _hold_a_debt, 380),
)
