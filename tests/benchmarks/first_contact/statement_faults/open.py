"""The open half: small statements, and the faults planted in them and in drawn ones."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pymupdf
from benchmarks.first_contact.statement_faults.making import (
    COLUMNS,
    DATES,
    ROWS,
    SIGNS,
    SUMS,
    TEXTS,
    Drawing,
    FaultKind,
    NotPlantable,
    Pen,
    Plain,
    Span,
    change_digit,
    drop_columns,
    drop_sums,
    edit_texts,
    find_column,
    invert_direction,
    list_neighbours,
    rename_columns,
)
from statements.drawn import Drawn

_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December")  # fmt: skip


def _long(day: date) -> str:
    return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"


def _cents(rng: random.Random, low: int, high: int) -> Decimal:
    return Decimal(rng.randint(low, high)) / 100


# Small statements


def draw_charge_list(seed: int) -> Drawn:
    """Draw a store card's list of charges, none of them marked."""
    rng = random.Random(f"charge list {seed}")
    pen = Pen(font=rng.choice(("helv", "tiro")), size=rng.choice((8.5, 9.0, 10.0)))
    start = date(2024, rng.randint(1, 9), rng.randint(2, 24))
    end = start + timedelta(days=29)
    charges = sorted(
        (start + timedelta(days=rng.randint(0, 29)), _cents(rng, 300, 30_000)) for _ in range(rng.randint(11, 19))
    )
    before = _cents(rng, 5_000, 90_000)
    total = sum((amount for _, amount in charges), Decimal(0))
    pen.left(40, rng.choice(("Nimbus Store Card", "Orchard Fuel Card", "Tallow & Pine Charge Card")), 14)
    pen.y += 16
    pen.left(40, f"Billing period {start:%m/%d/%Y} - {end:%m/%d/%Y}")
    pen.y += 26
    for label, amount in (
        ("Previous balance", before),
        ("Purchases this period", total),
        ("New balance owed", before + total),
    ):
        pen.row(((40, "l", label), (290, "r", f"{amount:,.2f}")))
    pen.y += 20
    pen.row(((40, "l", "Date"), (115, "l", "Merchant"), (545, "r", "Charge")))
    pen.rule()
    pen.y += 6
    for day, amount in charges:
        text = rng.choice(
            ("Pennyroyal Grocer", "Quayside Fuel", "Umber Tyre Service", "Larkspur Garden", "Copperleaf Diner")
        )
        pen.book(day, text, -amount)
        pen.row(((40, "l", f"{day:%m/%d/%Y}"), (115, "l", text), (545, "r", f"{amount:,.2f}")))
    return pen.finish(2, "Sheet {n} of {of}")


def draw_whole_crowns(seed: int) -> Drawn:
    """Draw an Icelandic account in crowns without cents, dots between thousands."""
    rng = random.Random(f"whole crowns {seed}")
    pen = Pen(font="helv", size=rng.choice((8.5, 9.0)))
    start = date(2024, rng.randint(1, 9), 1)
    end = start + timedelta(days=27)
    balance = opening = Decimal(rng.randint(300_000, 900_000))
    rows = []
    for day in sorted(start + timedelta(days=rng.randint(0, 27)) for _ in range(rng.randint(14, 22))):
        is_pay = rng.random() < 0.3
        amount = Decimal(rng.randint(20_000, 300_000) if is_pay else -rng.randint(1_100, 42_000))
        balance += amount
        rows.append(
            (
                day,
                rng.choice(
                    ("Laun", "Endurgreiðsla")
                    if is_pay
                    else ("Fiskbúðin Bryggja", "Rafveita Dals", "Bakarí Hóll", "Sundlaug")
                ),
                amount,
                balance,
            )
        )

    def crowns(amount: Decimal) -> str:
        return f"{amount:,.0f}".replace(",", ".")

    pen.left(40, rng.choice(("Sparisjóður Hamra", "Fjarðarbanki")), 14)
    pen.y += 18
    pen.left(40, f"Reikningsyfirlit {start:%d.%m.%Y} - {end:%d.%m.%Y}")
    pen.y += 24
    pen.row(((40, "l", "Opening balance"), (300, "r", crowns(opening))))
    pen.row(((40, "l", "Closing balance"), (300, "r", crowns(balance))))
    pen.y += 18
    pen.row(((40, "l", "Date"), (120, "l", "Description"), (440, "r", "Amount ISK"), (545, "r", "Balance")))
    pen.rule()
    pen.y += 6
    for day, text, amount, after in rows:
        pen.book(day, text, amount, after)
        pen.row(((40, "l", f"{day:%d.%m.%Y}"), (120, "l", text), (440, "r", crowns(amount)), (545, "r", crowns(after))))
    return pen.finish(2)


def draw_two_currencies(seed: int) -> Drawn:
    """Draw a Swiss account whose payments abroad also show the amount of the other currency."""
    rng = random.Random(f"two currencies {seed}")
    pen = Pen(font=rng.choice(("helv", "tiro")), size=9.0)
    start = date(2024, rng.randint(2, 10), 1)
    end = start + timedelta(days=27)
    balance = opening = _cents(rng, 300_000, 900_000)
    pen.left(40, rng.choice(("Alpenkasse Murgtal", "Kantonsbank Beispielen")), 14)
    pen.y += 18
    pen.left(40, f"Statement period: {start:%d.%m.%Y} to {end:%d.%m.%Y}")
    pen.y += 24
    rows = []
    for day in sorted(start + timedelta(days=rng.randint(0, 27)) for _ in range(rng.randint(13, 20))):
        amount = _cents(rng, 90_000, 300_000) if rng.random() < 0.25 else -_cents(rng, 500, 60_000)
        balance += amount
        rows.append((day, amount, balance))
    for label, amount in (("Opening balance", opening), ("Closing balance", balance)):
        pen.row(((40, "l", label), (300, "r", f"{amount:,.2f}")))
    pen.y += 18
    pen.row(
        (
            (40, "l", "Date"),
            (115, "l", "Description"),
            (375, "r", "Amount EUR"),
            (460, "r", "Amount CHF"),
            (550, "r", "Balance CHF"),
        )
    )
    pen.rule()
    pen.y += 6
    for day, amount, after in rows:
        text = rng.choice(
            ("Hotel Seeblick Konstanz", "Museum Colmar", "Bergbahn Zermoos", "Mercato Luino")
            if amount < 0
            else ("Salary Uhrwerk AG", "Refund Tailor")
        )
        pen.book(day, text, amount, after)
        foreign = f"{amount / Decimal('0.9431'):,.2f}"
        pen.row(
            (
                (40, "l", f"{day:%d.%m.%Y}"),
                (115, "l", text),
                (375, "r", foreign),
                (460, "r", f"{amount:,.2f}"),
                (550, "r", f"{after:,.2f}"),
            )
        )
    return pen.finish(2, "{n}/{of}")


def draw_booking_and_value_dates(seed: int) -> Drawn:
    """Draw a Dutch account in which value dates lie one to three days after the booking."""
    rng = random.Random(f"booking and value {seed}")
    pen = Pen(font=rng.choice(("helv", "tiro")), size=rng.choice((8.5, 9.5)))
    start = date(2024, rng.randint(1, 10), rng.randint(1, 20))
    end = start + timedelta(days=30)
    balance = opening = _cents(rng, 100_000, 900_000)
    rows = []
    for day in sorted(start + timedelta(days=rng.randint(0, 27)) for _ in range(rng.randint(14, 22))):
        amount = _cents(rng, 50_000, 200_000) if rng.random() < 0.25 else -_cents(rng, 300, 40_000)
        balance += amount
        rows.append((day, day + timedelta(days=rng.randint(1, 3)), amount, balance))
    pen.left(40, rng.choice(("Polderbank", "Grachten Spaarbank")), 14)
    pen.y += 18
    pen.left(40, f"Statement period: {start:%d-%m-%Y} to {end:%d-%m-%Y}")
    pen.y += 24
    for label, amount in (("Opening balance", opening), ("Closing balance", balance)):
        pen.row(((40, "l", label), (300, "r", f"{amount:,.2f}")))
    pen.y += 18
    pen.row(
        (
            (40, "l", "Booking date"),
            (110, "l", "Value date"),
            (180, "l", "Description"),
            (400, "r", "Withdrawals"),
            (475, "r", "Deposits"),
            (550, "r", "Balance"),
        )
    )
    pen.rule()
    pen.y += 6
    for day, value_day, amount, after in rows:
        text = rng.choice(
            ("Kaashuis Delden", "Fietsmaker Wouda", "Waterschap") if amount < 0 else ("Loon Tulpenveld BV", "Teruggave")
        )
        pen.book(day, text, amount, after)
        side = 400 if amount < 0 else 475
        pen.row(
            (
                (40, "l", f"{day:%d-%m-%Y}"),
                (110, "l", f"{value_day:%d-%m-%Y}"),
                (180, "l", text),
                (side, "r", f"{abs(amount):,.2f}"),
                (550, "r", f"{after:,.2f}"),
            )
        )
    return pen.finish(2)


def draw_first_twelve_days(seed: int) -> Drawn:
    """Draw a short statement whose days could all be months."""
    rng = random.Random(f"twelve days {seed}")
    pen = Pen(font=rng.choice(("helv", "tiro")), size=9.0)
    month = rng.randint(4, 11)
    start, end = date(2024, month, 1), date(2024, month, 12)
    balance = opening = _cents(rng, 100_000, 500_000)
    days = sorted(start + timedelta(days=rng.randint(0, 11)) for _ in range(rng.randint(12, 18)))
    rows = []
    for day in days:
        amount = _cents(rng, 20_000, 100_000) if rng.random() < 0.3 else -_cents(rng, 300, 20_000)
        balance += amount
        rows.append((day, amount, balance))
    pen.left(40, rng.choice(("Wexcombe Building Society", "Kestrel & Moor Bank")), 14)
    pen.y += 18
    pen.left(40, f"Statement period: {_long(start)} to {_long(end)}")
    pen.y += 24
    for label, amount in (("Opening balance", opening), ("Closing balance", balance)):
        pen.row(((40, "l", label), (300, "r", f"{amount:,.2f}")))
    pen.y += 18
    pen.row(
        ((40, "l", "Date"), (120, "l", "Details"), (400, "r", "Paid out"), (475, "r", "Paid in"), (550, "r", "Balance"))
    )
    pen.rule()
    pen.y += 6
    for day, amount, after in rows:
        text = rng.choice(
            ("Hedgerow Bakery", "Parish Lottery", "Coach Fares", "Mill Lane Vet")
            if amount < 0
            else ("Wages Loom Ltd", "Cheque paid in")
        )
        pen.book(day, text, amount, after)
        pen.row(
            (
                (40, "l", f"{day:%d/%m/%Y}"),
                (120, "l", text),
                (400 if amount < 0 else 475, "r", f"{abs(amount):,.2f}"),
                (550, "r", f"{after:,.2f}"),
            )
        )
    return pen.finish(2, "Page {n} of {of}")


def draw_old_account(seed: int) -> Drawn:
    """Draw dates without a year below a line that says when the account was opened."""
    rng = random.Random(f"old account {seed}")
    pen = Pen(font=rng.choice(("helv", "tiro")), size=rng.choice((9.0, 9.5)))
    start = date(2024, rng.randint(2, 9), rng.randint(1, 9))
    end = start + timedelta(days=rng.randint(20, 29))
    opened = date(rng.randint(2009, 2021), rng.randint(1, 12), rng.randint(1, 28))
    balance = opening = _cents(rng, 100_000, 500_000)
    rows = []
    for day in sorted(start + timedelta(days=rng.randint(0, (end - start).days)) for _ in range(rng.randint(12, 20))):
        amount = _cents(rng, 20_000, 100_000) if rng.random() < 0.3 else -_cents(rng, 300, 20_000)
        balance += amount
        rows.append((day, amount, balance))
    pen.left(40, rng.choice(("Tidewater Mutual", "Gannet Island Bank")), 14)
    pen.y += 18
    pen.left(40, f"Account opened {opened:%d/%m/%Y}")
    pen.y += 13
    pen.left(40, f"Statement period: {start:%d/%m/%Y} to {end:%d/%m/%Y}")
    pen.y += 24
    for label, amount in (("Opening balance", opening), ("Closing balance", balance)):
        pen.row(((40, "l", label), (300, "r", f"{amount:,.2f}")))
    pen.y += 18
    pen.row(((40, "l", "Date"), (120, "l", "Description"), (440, "r", "Amount"), (550, "r", "Balance")))
    pen.rule()
    pen.y += 6
    for day, amount, after in rows:
        text = rng.choice(
            ("Ferry Pass", "Chandlery", "Harbour Dues", "Smokehouse") if amount < 0 else ("Pilot Fees", "Catch Sale")
        )
        pen.book(day, text, amount, after)
        pen.row(
            ((40, "l", f"{day:%d/%m}"), (120, "l", text), (440, "r", f"{amount:,.2f}"), (550, "r", f"{after:,.2f}"))
        )
    return pen.finish(2)


DRAWINGS: dict[str, Drawing] = {
    "charge list": draw_charge_list,
    "whole crowns": draw_whole_crowns,
    "two currencies": draw_two_currencies,
    "booking and value dates": draw_booking_and_value_dates,
    "first twelve days": draw_first_twelve_days,
    "old account": draw_old_account,
}


MENDS: dict[str, Callable[[Plain, Drawn], None]] = {}
"""What a person mends in the templates of the small statements: here nothing."""


# Faults in templates


def _invert_without_sums(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    amounts = plain["amounts"]
    amounts["deposit"], amounts["withdrawal"] = amounts["withdrawal"], amounts["deposit"]
    amounts["unmarked"] = invert_direction(amounts["unmarked"])
    drop_sums(plain)


def _read_brackets_as_deposits(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    amounts = plain["amounts"]
    if "parentheses" not in amounts["withdrawal"]:
        raise NotPlantable
    amounts["withdrawal"].remove("parentheses")
    amounts["deposit"].append("parentheses")


def _read_charges_as_deposits(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    if plain["amounts"]["unmarked"] != "withdrawal":
        raise NotPlantable
    plain["amounts"]["unmarked"] = "deposit"
    drop_sums(plain)


def _mirror_card(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    amounts = plain["amounts"]
    if amounts["unmarked"] != "withdrawal" or amounts["balance"] != "owed":
        raise NotPlantable
    amounts["deposit"], amounts["withdrawal"] = amounts["withdrawal"], amounts["deposit"]
    amounts["unmarked"], amounts["balance"] = "deposit", "held"
    _mirror_totals(plain)


def _mirror_sections(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    if not plain["rows"]["section"]:
        raise NotPlantable
    for section in plain["rows"]["section"]:
        section["direction"] = invert_direction(section["direction"])
    plain["amounts"]["balance"] = "owed"
    _mirror_totals(plain)


def _mirror_totals(plain: Plain) -> None:
    other = {"deposits": "withdrawals", "withdrawals": "deposits"}
    for total in plain["reconciliation"]["total"]:
        total["of"] = other.get(total["of"], total["of"])


def _invert_one_section(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    if not plain["rows"]["section"]:
        raise NotPlantable
    section = rng.choice(plain["rows"]["section"])
    section["direction"] = invert_direction(section["direction"])


def _exchange_debit_and_credit(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    rename_columns(plain, debit="credit", credit="debit")
    drop_sums(plain)


def _hold_the_debt(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    if plain["amounts"]["balance"] != "owed":
        raise NotPlantable
    plain["amounts"]["balance"] = "held"


def _widen_debit_over_credit(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    debit, credit = find_column(plain, "debit"), find_column(plain, "credit")
    debit["x"] = [min(debit["x"][0], credit["x"][0]), max(debit["x"][1], credit["x"][1])]
    drop_columns(plain, "credit")
    drop_sums(plain)


def _read_balance_as_amount(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    find_column(plain, "balance"), find_column(plain, "amount")
    rename_columns(plain, amount="other", balance="amount")
    plain["reconciliation"] = {"opening": [], "closing": [], "total": []}


def _read_other_currency(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    amount = find_column(plain, "amount")
    x0, x1 = 300 / 595, 378 / 595
    plain["column"] = [
        column
        for column in plain["column"]
        if not (column["name"] == "other" and column["x"][0] < x1 + 0.02 and column["x"][1] > x0)
    ]
    description = find_column(plain, "description")
    description["x"][1] = min(description["x"][1], x0)
    plain["column"].append({"name": "other", "x": list(amount["x"]), "title": amount["title"]})
    amount["x"], amount["title"] = [x0, max(x1, min(amount["x"][0], x1 + 0.01))], "Amount EUR"


def _exchange_decimal_sign(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    amounts = plain["amounts"]
    amounts["decimal"] = "," if amounts["decimal"] == "." else "."
    amounts["whole"] = not amounts["whole"]


def _book_on_value_date(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    find_column(plain, "value_date")
    rename_columns(plain, date="value_date", value_date="date")


def _exchange_day_and_month(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    other = {"%d": "%m", "%m": "%d"}
    plain["dates"]["formats"] = [
        re.sub("%[dm]", lambda code: other[code[0]], text) for text in plain["dates"]["formats"]
    ]


def _take_year_of_opening(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    plain["dates"]["period"] = ["Account opened"]
    plain["dates"]["period_formats"] = ["%d/%m/%Y"]


def _begin_later_pages_too_low(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    lower = rng.uniform(0.07, 0.14)
    regions = [region for region in plain["region"] if region["pages"] in ("later", "middle", "last")]
    if not regions:
        raise NotPlantable
    for region in regions:
        region["box"][1] = min(region["box"][1] + lower, region["box"][3] - 0.05)


def _begin_below_first_row(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    for region in plain["region"]:
        if region["pages"] in ("first", "any"):
            region["box"][1] += rng.uniform(0.035, 0.05)


def _shorten_last_page(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    box = list(plain["region"][-1]["box"])
    box[3] = box[1] + rng.uniform(0.1, 0.16)
    plain["region"].append({"pages": "last", "box": box})


def _skip_middle_pages(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    if not any(region["pages"] == "later" for region in plain["region"]):
        raise NotPlantable
    for region in plain["region"]:
        if region["pages"] == "later":
            region["pages"] = "last"


def _shift_amounts_by_half(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    side = rng.choice((-1, 1))
    for column in plain["column"]:
        if column["name"] in ("amount", "debit", "credit", "balance"):
            half = side * (column["x"][1] - column["x"][0]) / 2
            column["x"] = [max(0.0, column["x"][0] + half), min(1.0, column["x"][1] + half)]


def _narrow_debit(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    column = find_column(plain, "debit")
    column["x"][0] = column["x"][1] - rng.uniform(0.2, 0.3) * (column["x"][1] - column["x"][0])


def _halve_description(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    column = find_column(plain, "description")
    column["x"][1] = column["x"][0] + 0.11


def _join_without_blank(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    plain["rows"]["joint"] = ""


def _stop_continuing(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    plain["rows"]["continuation"] = "none"


def _pick_last_words(drawn: Drawn, rng: random.Random) -> str:
    long_descriptions = sorted({row.description for row in drawn.rows if len(row.description) > 26})
    if not long_descriptions:
        raise NotPlantable
    return ".*" + re.escape(rng.choice(long_descriptions).split()[-1])


def _swallow_further_line_as_furniture(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    plain["rows"]["furniture"].append(_pick_last_words(drawn, rng))


def _mistake_further_line_for_account(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    plain["rows"]["accounts"].append(_pick_last_words(drawn, rng))


def _turn_order(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    rows = plain["rows"]
    rows["order"] = "oldest_first" if rows["order"] == "newest_first" else "newest_first"


def _leave_out_one_total(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    totals = plain["reconciliation"]["total"]
    if len(totals) < 2:
        raise NotPlantable
    totals.remove(rng.choice(totals))


def _count_totals_as_parts(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    for total in plain["reconciliation"]["total"]:
        total["part"] = True


# Faults in statements


def _misprint_total(drawn: Drawn, rng: random.Random) -> bytes:
    def edits(spans: Sequence[Span]) -> Sequence[tuple[Span, str]]:
        labels = [
            span
            for span in spans
            if re.match(
                r"Total (?:deposits|withdrawals)$|Total paid|Summe |Total des|Purchases and|Payments and", span.text
            )
        ]
        if not labels:
            return []
        neighbours = list_neighbours(spans, rng.choice(labels))
        amounts = [span for span in neighbours if re.search(r"\d[.,]\d\d\b", span.text)]
        return [(amounts[0], change_digit(amounts[0].text, rng))] if amounts else []

    return edit_texts(drawn.pdf, edits)


def _misprint_year(drawn: Drawn, rng: random.Random) -> bytes:
    def edits(spans: Sequence[Span]) -> Sequence[tuple[Span, str]]:
        dates = [
            span for span in spans if span.box[0] < 110 and re.search(r"\b2024\b", span.text) and len(span.text) < 13
        ]
        if not dates:
            return []
        year = rng.choice(("2023", "2025", "2014"))
        return [(span, span.text.replace("2024", year)) for span in rng.sample(dates, 1)]

    return edit_texts(drawn.pdf, edits)


def _lose_page(drawn: Drawn, rng: random.Random) -> bytes:
    document: Any = pymupdf.open("pdf", drawn.pdf)  # type: ignore[no-untyped-call]
    if len(document) < 2:
        raise NotPlantable
    document.delete_page(rng.randrange(1, len(document)))
    return bytes(document.tobytes())


def _lose_minus(drawn: Drawn, rng: random.Random) -> bytes:
    def edits(spans: Sequence[Span]) -> Sequence[tuple[Span, str]]:
        amounts = [span for span in spans if re.fullmatch(r"-\$?[\d.,]+", span.text) and span.box[2] < 500]
        return [(span, span.text[1:]) for span in rng.sample(amounts, 1)] if amounts else []

    return edit_texts(drawn.pdf, edits)


_SIGNED = ("signed amounts", "parentheses", "CR and DR", "dollar signs, ruled")
_APART = ("debit and credit columns", "over several pages", "descriptions of several lines", "check numbers")
_PAGES = ("over several pages", "newest first", "one date for several rows")
_LINES = ("descriptions of several lines", "European dates and decimals")
_SUMMED = (
    "no running balance",
    "European dates and decimals",
    "French, blanks in numbers",
    "debit and credit columns",
    "signed amounts",
)

# fmt: off
FAULTS = (
    FaultKind("all signs inverted, no sum used", "critical", SIGNS, (*_SIGNED, "no running balance", "newest first"), _invert_without_sums),
    FaultKind("brackets mean deposits", "critical", SIGNS, ("parentheses",), _read_brackets_as_deposits),
    FaultKind("charges are deposits, no sum used", "critical", SIGNS, ("charge list", "credit card"), _read_charges_as_deposits),
    FaultKind("a card mirrored, so that all sums meet", "critical", SIGNS, ("charge list", "credit card"), _mirror_card),
    FaultKind("both sections mirrored, so that all sums meet", "critical", SIGNS, ("deposits and withdrawals in sections",), _mirror_sections),
    FaultKind("one section's direction inverted", "critical", SIGNS, ("deposits and withdrawals in sections",), _invert_one_section),
    FaultKind("debit and credit exchanged, no sum used", "critical", SIGNS, (*_APART, "French, blanks in numbers", "one date for several rows"), _exchange_debit_and_credit),
    FaultKind("a card's debt is money held", "critical", SIGNS, ("credit card",), _hold_the_debt, effects=("sum wrong",)),
    FaultKind("the debits' column covers the credits", "critical", COLUMNS, (*_APART, "French, blanks in numbers"), _widen_debit_over_credit),
    FaultKind("the balance is the amount, no sum used", "critical", COLUMNS, _SIGNED, _read_balance_as_amount),
    FaultKind("the amount of the other currency", "critical", COLUMNS, ("two currencies",), _read_other_currency),
    FaultKind("dots of thousands are decimal signs", "critical", COLUMNS, ("whole crowns", "European dates and decimals", "two currencies"), _exchange_decimal_sign),
    FaultKind("rows are booked on the value date", "high", DATES, ("booking and value dates",), _book_on_value_date),
    FaultKind("day and month exchanged, both fit", "high", DATES, ("first twelve days",), _exchange_day_and_month),
    FaultKind("the year of the account's opening", "high", DATES, ("old account",), _take_year_of_opening),
    FaultKind("later pages begin too low", "high", ROWS, _PAGES, _begin_later_pages_too_low),
    FaultKind("the region begins below the first row", "high", ROWS, (*_SIGNED, "credit card", "no running balance", "French, blanks in numbers"), _begin_below_first_row),
    FaultKind("the last page's region is short", "high", ROWS, _PAGES, _shorten_last_page),
    FaultKind("middle pages have no region", "high", ROWS, ("over several pages", "one date for several rows"), _skip_middle_pages),
    FaultKind("amount columns shifted by half", "high", COLUMNS, (*_APART, *_SIGNED), _shift_amounts_by_half),
    FaultKind("the debits' column is too narrow", "high", COLUMNS, (*_APART, "French, blanks in numbers"), _narrow_debit),
    FaultKind("descriptions are cut at the right", "medium", (*TEXTS, *COLUMNS), (*_SIGNED, *_APART), _halve_description, effects=("description",)),
    FaultKind("lines joined without a blank", "medium", TEXTS, _LINES, _join_without_blank, effects=("description",)),
    FaultKind("further lines are left out", "high", TEXTS, _LINES, _stop_continuing, effects=("description",)),
    FaultKind("a further line is furniture", "medium", TEXTS, _LINES, _swallow_further_line_as_furniture),
    FaultKind("a further line is an account's heading", "high", (*ROWS, "other"), _LINES, _mistake_further_line_for_account),
    FaultKind("the order of rows is turned", "high", ("reconciliation_strategy", "date_format", "other"), ("one date for several rows", "newest first", "over several pages"), _turn_order, effects=("order", "date", "sum wrong", "sum unused")),
    FaultKind("one of the totals is not used", "medium", (*SUMS, "other"), (*_SUMMED, "credit card"), _leave_out_one_total, effects=("sum unused",)),
    FaultKind("whole totals count as parts", "high", SUMS, ("deposits and withdrawals in sections",), _count_totals_as_parts, effects=("sum wrong",)),
    FaultKind("a total is misprinted", "high", SUMS, (*_SUMMED, "credit card"), spoil_statement=_misprint_total, effects=("sum wrong",)),
    FaultKind("a row has another year", "high", DATES, ("signed amounts", "CR and DR", "dollar signs, ruled", "check numbers", "European dates and decimals", "over several pages"), spoil_statement=_misprint_year, effects=("date",)),
    FaultKind("a page is lost", "high", (*ROWS, "other"), _PAGES, spoil_statement=_lose_page, effects=("row missing",)),
    FaultKind("a row's minus is not printed", "high", SIGNS, ("signed amounts", "dollar signs, ruled", "no running balance", "newest first"), spoil_statement=_lose_minus, effects=("sign",)),
)
# fmt: on
