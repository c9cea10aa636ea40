"""The sealed half: small statements, and the faults planted in them and in drawn ones."""

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
    list_spans,
    rename_columns,
)
from statements.drawn import Drawn


def _book_month(
    rng: random.Random, start: date, days: int, count: tuple[int, int], names: Sequence[str], incomes: Sequence[str]
) -> tuple[Decimal, list[tuple[date, str, Decimal, Decimal]]]:
    opening = balance = Decimal(rng.randint(60_000, 700_000)) / 100
    rows = []
    for day in sorted(start + timedelta(days=rng.randint(0, days)) for _ in range(rng.randint(*count))):
        is_income = rng.random() < 0.3
        cents = rng.randint(9_000, 220_000) if is_income else -rng.randint(250, 36_000)
        balance += Decimal(cents) / 100
        rows.append((day, rng.choice(incomes if is_income else names), Decimal(cents) / 100, balance))
    return opening, rows


# Small statements


def draw_short_years(seed: int) -> Drawn:
    """Draw an Irish account with years of two digits, the balances at the foot."""
    rng = random.Random(f"short years {seed}")
    pen = Pen(font=rng.choice(("helv", "tiro")), size=9.0, width=612, height=792)
    start = date(2024, rng.randint(1, 10), rng.randint(1, 12))
    opening, rows = _book_month(
        rng,
        start,
        28,
        (15, 21),
        ("Glenmalin Hardware", "Bus Pass", "Tara Street Cafe", "Bin Charges"),
        ("Wages", "Child Benefit"),
    )
    pen.right(570, rng.choice(("Slieve Credit Union", "Bank of Corrib")), 15)
    pen.y += 20
    pen.left(36, f"Statement period: {start:%d/%m/%y} to {start + timedelta(days=30):%d/%m/%y}")
    pen.y += 30
    columns = (
        (36, "l", "Date"),
        (105, "l", "Transaction details"),
        (395, "r", "Debit"),
        (480, "r", "Credit"),
        (570, "r", "Balance"),
    )
    pen.row(columns)
    pen.rule(36, 570)
    pen.y += 6
    for day, text, amount, after in rows:
        pen.book(day, text, amount, after)
        pen.row(
            (
                (36, "l", f"{day:%d/%m/%y}"),
                (105, "l", text),
                (395 if amount < 0 else 480, "r", f"{abs(amount):,.2f}"),
                (570, "r", f"{after:,.2f}"),
            )
        )
    pen.y += 20
    for label, amount in (("Opening balance", opening), ("Closing balance", rows[-1][3])):
        pen.row(((36, "l", label), (250, "r", f"{amount:,.2f}")))
    return pen.finish(2)


def draw_highlights(seed: int) -> Drawn:
    """Draw an Indian account whose largest payments stand in a table of their own above the transactions."""
    rng = random.Random(f"highlights {seed}")
    pen = Pen(font="helv", size=rng.choice((8.5, 9.0)))
    start = date(2024, rng.randint(1, 11), 1)
    opening, rows = _book_month(
        rng,
        start,
        27,
        (16, 22),
        ("UPI Chai Corner", "NEFT Rent Lotus", "Metro Recharge", "Kirana Stores"),
        ("Salary Banyan Labs", "UPI Refund"),
    )
    pen.left(40, rng.choice(("Ganga Sahakari Bank", "Nilgiri People's Bank")), 13)
    pen.y += 18
    pen.left(40, f"Statement period: {start:%d-%m-%Y} to {start + timedelta(days=27):%d-%m-%Y}")
    pen.y += 24
    for label, amount in (("Opening balance", opening), ("Closing balance", rows[-1][3])):
        pen.row(((40, "l", label), (260, "r", f"{amount:,.2f}")))
    pen.y += 14
    pen.row(((40, "l", "Your largest payments of the month"),))
    for day, text, amount, _ in sorted(rows, key=lambda row: row[2])[:3]:
        pen.row(((40, "l", f"{day:%d-%m-%Y}"), (120, "l", text), (440, "r", f"{amount:,.2f}")))
    pen.y += 22
    pen.row(((40, "l", "Date"), (120, "l", "Narration"), (440, "r", "Amount"), (550, "r", "Balance")))
    pen.rule()
    pen.y += 6
    for day, text, amount, after in rows:
        pen.book(day, text, amount, after)
        pen.row(
            ((40, "l", f"{day:%d-%m-%Y}"), (120, "l", text), (440, "r", f"{amount:,.2f}"), (550, "r", f"{after:,.2f}"))
        )
    return pen.finish(2, "Page {n} of {of}")


def draw_part_totals(seed: int) -> Drawn:
    """Draw an account that adds up its withdrawals by card and in cash apart."""
    rng = random.Random(f"part totals {seed}")
    pen = Pen(font=rng.choice(("helv", "tiro")), size=9.5, width=612, height=792)
    start = date(2024, rng.randint(2, 9), rng.randint(2, 14))
    opening, rows = _book_month(
        rng,
        start,
        29,
        (15, 20),
        ("Card purchase Saguaro Deli", "ATM cash Mesa", "Card purchase Adobe Tiles", "ATM cash Yucca"),
        ("Direct deposit Ocotillo", "Mobile check"),
    )
    pen.left(36, rng.choice(("Sonora Prairie Bank", "Red Butte Credit Union")), 14)
    pen.y += 16
    pen.left(36, f"Statement period: {start:%m/%d/%Y} - {start + timedelta(days=29):%m/%d/%Y}")
    pen.y += 24
    cash = -sum((amount for _, text, amount, _ in rows if text.startswith("ATM")), Decimal(0))
    cards = -sum((amount for _, text, amount, _ in rows if text.startswith("Card")), Decimal(0))
    incomes = sum((amount for _, _, amount, _ in rows if amount > 0), Decimal(0))
    for label, amount in (
        ("Beginning balance", opening), ("Total deposits", incomes), ("Total ATM withdrawals", cash),
        ("Total card withdrawals", cards), ("Ending balance", rows[-1][3]),
    ):  # fmt: skip
        pen.row(((36, "l", label), (270, "r", f"${amount:,.2f}")))
    pen.y += 20
    pen.row(((36, "l", "Posted"), (110, "l", "Description"), (570, "r", "Amount")))
    pen.rule(36, 570)
    pen.y += 6
    for day, text, amount, _ in rows:
        pen.book(day, text, amount)
        pen.row(((36, "l", f"{day:%m/%d/%Y}"), (110, "l", text), (570, "r", f"{amount:,.2f}")))
    return pen.finish(3)


def draw_references(seed: int) -> Drawn:
    """Draw a Nigerian account with a column of references before the remarks."""
    rng = random.Random(f"references {seed}")
    pen = Pen(font=rng.choice(("helv", "tiro")), size=rng.choice((8.0, 8.5)))
    start = date(2024, rng.randint(1, 10), rng.randint(1, 10))
    opening, rows = _book_month(
        rng,
        start,
        29,
        (16, 24),
        ("POS Palmview Mart", "Airtime", "Transfer Okro Foods", "Power token"),
        ("Salary Kola Mills", "Inward transfer"),
    )
    pen.left(40, rng.choice(("Savannah Crest Bank", "Riverine Microfinance")), 14)
    pen.y += 18
    pen.left(40, f"Statement period: {start:%d %b %Y} to {start + timedelta(days=30):%d %b %Y}")
    pen.y += 24
    for label, amount in (("Opening balance", opening), ("Closing balance", rows[-1][3])):
        pen.row(((40, "l", label), (260, "r", f"{amount:,.2f}")))
    pen.y += 18
    pen.row(
        (
            (40, "l", "Date"),
            (105, "l", "Reference"),
            (175, "l", "Remarks"),
            (390, "r", "Debit"),
            (465, "r", "Credit"),
            (550, "r", "Balance"),
        )
    )
    pen.rule()
    pen.y += 6
    for day, text, amount, after in rows:
        pen.book(day, text, amount, after)
        reference = f"{rng.choice('STR')}{rng.randint(10**6, 10**7 - 1)}"
        pen.row(
            (
                (40, "l", f"{day:%d %b %Y}"),
                (105, "l", reference),
                (175, "l", text),
                (390 if amount < 0 else 465, "r", f"{abs(amount):,.2f}"),
                (550, "r", f"{after:,.2f}"),
            )
        )
    return pen.finish(2, "{n} of {of}")


def draw_pending(seed: int) -> Drawn:
    """Draw an Australian account that lists payments not yet booked below the booked ones."""
    rng = random.Random(f"pending {seed}")
    pen = Pen(font="helv", size=9.0)
    start = date(2024, rng.randint(1, 10), rng.randint(3, 18))
    opening, rows = _book_month(
        rng,
        start,
        26,
        (13, 18),
        ("EFTPOS Wattle Bakery", "Toll Pass", "Jetty Bait Shop", "Surf Club"),
        ("Pay Banksia Pty", "Rebate"),
    )
    pen.left(40, rng.choice(("Great Southern Mutual", "Coolabah Bank")), 14)
    pen.y += 18
    pen.left(40, f"Statement period: {start:%d/%m/%Y} to {start + timedelta(days=30):%d/%m/%Y}")
    pen.y += 24
    for label, amount in (("Opening balance", opening), ("Closing balance", rows[-1][3])):
        pen.row(((40, "l", label), (260, "r", f"{amount:,.2f}")))
    pen.y += 18
    pen.row(((40, "l", "Date"), (120, "l", "Description"), (440, "r", "Amount"), (550, "r", "Balance")))
    pen.rule()
    pen.y += 6
    for day, text, amount, after in rows:
        pen.book(day, text, amount, after)
        pen.row(
            ((40, "l", f"{day:%d/%m/%Y}"), (120, "l", text), (440, "r", f"{amount:,.2f}"), (550, "r", f"{after:,.2f}"))
        )
    pen.y += 20
    pen.row(((40, "l", "Pending transactions, not yet part of your balance"),))
    for _ in range(rng.randint(2, 4)):
        day = start + timedelta(days=rng.randint(27, 30))
        pen.row(
            (
                (40, "l", f"{day:%d/%m/%Y}"),
                (120, "l", "Pending card hold"),
                (440, "r", f"-{rng.randint(500, 9000) / 100:,.2f}"),
            )
        )
    return pen.finish(2)


DRAWINGS: dict[str, Drawing] = {
    "short years": draw_short_years,
    "highlights": draw_highlights,
    "part totals": draw_part_totals,
    "references": draw_references,
    "pending": draw_pending,
}


# What a person mends in the templates of the small statements


def _mend_highlights(plain: Plain, drawn: Drawn) -> None:
    title = next(span for span in list_spans(pymupdf.open("pdf", drawn.pdf)) if span.text == "Narration")  # type: ignore[no-untyped-call]
    for region in plain["region"]:
        if region["pages"] in ("first", "any"):
            region["box"][1] = (title.box[1] - 2) / 842


def _mend_part_totals(plain: Plain, drawn: Drawn) -> None:
    plain["reconciliation"]["total"] = [
        {"label": "Total deposits", "of": "deposits", "part": False},
        {"label": "Total ATM withdrawals", "of": "withdrawals", "part": True},
        {"label": "Total card withdrawals", "of": "withdrawals", "part": True},
    ]


def _mend_references(plain: Plain, drawn: Drawn) -> None:
    day, description = find_column(plain, "date"), find_column(plain, "description")
    drop_columns(plain, "other", "check_number")
    plain["column"].append({"name": "other", "x": [100 / 595, 171 / 595], "title": "Reference"})
    day["x"][1] = 100 / 595
    description["x"][0], description["title"] = 171 / 595, "Remarks"


def _mend_pending(plain: Plain, drawn: Drawn) -> None:
    plain["rows"]["ends"].append("Pending transactions")


MENDS: dict[str, Callable[[Plain, Drawn], None]] = {
    "highlights": _mend_highlights,
    "part totals": _mend_part_totals,
    "references": _mend_references,
    "pending": _mend_pending,
}


# Faults in templates


def _forget_credit_mark(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    plain["amounts"]["deposit"] = [mark for mark in plain["amounts"]["deposit"] if mark != "cr"]


def _forget_trailing_minus(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    plain["amounts"]["withdrawal"] = [mark for mark in plain["amounts"]["withdrawal"] if mark != "trailing_minus"]


def _forget_sections(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    if not plain["rows"]["section"]:
        raise NotPlantable
    plain["rows"]["section"] = []
    plain["amounts"]["unmarked"] = rng.choice(("deposit", "withdrawal"))


def _read_one_heading_for_both(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    sections = plain["rows"]["section"]
    if len(sections) < 2:
        raise NotPlantable
    direction = rng.choice(("deposit", "withdrawal"))
    plain["rows"]["section"] = [{"heading": r"\w+ and other", "direction": direction}]


def _mirror_columns(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    find_column(plain, "debit"), find_column(plain, "credit")
    rename_columns(plain, debit="credit", credit="debit")
    plain["amounts"]["balance"] = "owed"
    _mirror_totals(plain)


def _mirror_marks(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    find_column(plain, "amount")
    amounts = plain["amounts"]
    amounts["deposit"], amounts["withdrawal"] = amounts["withdrawal"], amounts["deposit"]
    amounts["unmarked"], amounts["balance"] = invert_direction(amounts["unmarked"]), "owed"
    _mirror_totals(plain)


def _mirror_totals(plain: Plain) -> None:
    other = {"deposits": "withdrawals", "withdrawals": "deposits"}
    for total in plain["reconciliation"]["total"]:
        total["of"] = other.get(total["of"], total["of"])


def _lose_debits(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    find_column(plain, "debit"), find_column(plain, "credit")
    drop_columns(plain, "debit")
    rename_columns(plain, credit="amount")


def _read_checks_as_debits(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    find_column(plain, "check_number"), find_column(plain, "debit")
    rename_columns(plain, debit="other", check_number="debit")
    plain["amounts"]["whole"] = True


def _read_balance_as_credit(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    find_column(plain, "credit"), find_column(plain, "balance")
    rename_columns(plain, credit="other", balance="credit")
    plain["reconciliation"] = {"opening": [], "closing": [], "total": []}


def _exchange_text_and_check(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    find_column(plain, "check_number")
    rename_columns(plain, description="check_number", check_number="description")


def _mix_references_into_text(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    description = find_column(plain, "description")
    date_end = find_column(plain, "date")["x"][1]
    between = [column for column in plain["column"] if date_end - 0.01 <= column["x"][0] < description["x"][0]]
    if not between:
        raise NotPlantable
    plain["column"] = [column for column in plain["column"] if column not in between]
    description["x"][0] = min(column["x"][0] for column in between)


def _reach_into_text(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    description, amount = find_column(plain, "description"), find_column(plain, "amount", "debit")
    edge = description["x"][0] + rng.uniform(0.04, 0.07)
    description["x"][1], amount["x"][0] = edge, edge
    plain["amounts"]["whole"] = True


def _read_year_as_day(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    if "%d/%m/%y" not in plain["dates"]["formats"]:
        raise NotPlantable
    plain["dates"]["formats"] = ["%y/%m/%d"]


def _try_wrong_format_first(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    formats = plain["dates"]["formats"]
    other = {"%d": "%m", "%m": "%d"}
    plain["dates"]["formats"] = [re.sub("%[dm]", lambda code: other[code[0]], formats[0]), *formats]


def _repeat_no_date(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    if not plain["rows"]["date_once"]:
        raise NotPlantable
    plain["rows"]["date_once"] = False


def _end_first_page_early(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    region = next((region for region in plain["region"] if region["pages"] == "first"), None)
    if region is None:
        raise NotPlantable
    region["box"][3] = region["box"][1] + rng.uniform(0.22, 0.4)


def _begin_right_of_dates(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    edge = find_column(plain, "date")["x"][1]
    for region in plain["region"]:
        region["box"][0] = edge


def _include_top_of_page(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    for region in plain["region"]:
        region["box"][1] = 0.0


def _cover_balance_by_credit(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    credit, balance = find_column(plain, "credit", "amount"), find_column(plain, "balance")
    credit["x"][1] = balance["x"][1]
    drop_columns(plain, "balance")


def _reach_into_text_by_date(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    day, description = find_column(plain, "date"), find_column(plain, "description")
    edge = description["x"][0] + rng.uniform(0.05, 0.08)
    day["x"][1], description["x"][0] = edge, edge


def _close_at_each_page(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    plain["rows"]["furniture"] = []
    plain["reconciliation"]["closing"].append("Balance carried forward")


def _end_at_further_line(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    texts = sorted({row.description for row in drawn.rows[1:-1] if len(row.description) > 26})
    if not texts:
        raise NotPlantable
    plain["rows"]["ends"].append(".*" + re.escape(rng.choice(texts).split()[-1]))


def _forget_ends(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    plain["rows"]["ends"] = []


def _mix_accounts(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    if not plain["rows"]["accounts"]:
        raise NotPlantable
    plain["rows"]["accounts"] = []


def _exchange_opening_and_closing(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    sums = plain["reconciliation"]
    if not sums["opening"] or not sums["closing"]:
        raise NotPlantable
    sums["opening"], sums["closing"] = sums["closing"], sums["opening"]


def _count_part_as_whole(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    parts = [total for total in plain["reconciliation"]["total"] if total["part"]]
    if not parts:
        raise NotPlantable
    for total in parts:
        total["part"] = False


def _exchange_directions_of_totals(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    if not plain["reconciliation"]["total"]:
        raise NotPlantable
    _mirror_totals(plain)


def _use_only_opening(plain: Plain, drawn: Drawn, rng: random.Random) -> None:
    drop = plain["reconciliation"]
    opening = drop["opening"]
    drop_sums(plain)
    plain["reconciliation"]["opening"] = opening


# Faults in statements


def _double_page(drawn: Drawn, rng: random.Random) -> bytes:
    document: Any = pymupdf.open("pdf", drawn.pdf)  # type: ignore[no-untyped-call]
    if len(document) < 2:
        raise NotPlantable
    number = rng.randrange(0, len(document))
    document.fullcopy_page(number, number)
    return bytes(document.tobytes())


def _lose_account_heading(drawn: Drawn, rng: random.Random) -> bytes:
    def edits(spans: Sequence[Span]) -> Sequence[tuple[Span, str]]:
        headings = [span for span in spans if re.fullmatch(r"(?:Checking|Savings) account \d+", span.text)]
        return [(headings[1], "")] if len(headings) > 1 else []

    return edit_texts(drawn.pdf, edits)


def _misprint_amount(drawn: Drawn, rng: random.Random) -> bytes:
    def edits(spans: Sequence[Span]) -> Sequence[tuple[Span, str]]:
        amounts = [span for span in _list_row_amounts(spans) if span.text]
        return [(span, change_digit(span.text, rng, 0)) for span in rng.sample(amounts, 1)] if amounts else []

    return edit_texts(drawn.pdf, edits)


def _list_row_amounts(spans: Sequence[Span]) -> list[Span]:
    """Return the first amount of each line that begins with a date."""
    amounts = []
    for span in spans:
        if (
            span.box[0] < 75
            and re.match(r"\d{1,4}[./-]\d\d|\d{1,2} [A-Z][a-z]{2}|[A-Z][a-z]{2} \d", span.text)
            and len(span.text) < 13
        ):
            numbers = [
                other
                for other in list_neighbours(spans, span)[1:]
                if re.fullmatch(r"[-($]*[\d., ]+[.,]\d\d[-+)]?", other.text)
            ]
            amounts.extend(numbers[:1])
    return amounts


def _blank_row(drawn: Drawn, rng: random.Random) -> bytes:
    def edits(spans: Sequence[Span]) -> Sequence[tuple[Span, str]]:
        amounts = _list_row_amounts(spans)[1:-1]
        return [(span, "") for span in list_neighbours(spans, rng.choice(amounts))] if amounts else []

    return edit_texts(drawn.pdf, edits)


def _exchange_two_amounts(drawn: Drawn, rng: random.Random) -> bytes:
    def edits(spans: Sequence[Span]) -> Sequence[tuple[Span, str]]:
        amounts = _list_row_amounts(spans)
        if len(amounts) < 4:
            return []
        first, second = rng.sample(amounts, 2)
        return [] if first.text == second.text else [(first, second.text), (second, first.text)]

    return edit_texts(drawn.pdf, edits)


def _print_in_other_column(drawn: Drawn, rng: random.Random) -> bytes:
    def edits(spans: Sequence[Span]) -> Sequence[tuple[Span, str]]:
        amounts = _list_row_amounts(spans)
        ends = sorted({round(span.box[2]) for span in amounts})
        if len(ends) < 2 or ends[-1] - ends[0] < 40:
            return []
        span = rng.choice([span for span in amounts if span.box[2] < ends[0] + 10])
        shift = ends[-1] - span.box[2]
        moved = Span(
            span.page,
            span.text,
            (span.box[0] + shift, *span.box[1:2], span.box[2] + shift, span.box[3]),
            span.origin,
            span.size,
            span.font,
        )
        return [(span, ""), (moved, span.text)]

    return edit_texts(drawn.pdf, edits)


_SIGNED = ("signed amounts", "parentheses", "CR and DR", "dollar signs, ruled")
_APART = (
    "debit and credit columns",
    "over several pages",
    "descriptions of several lines",
    "check numbers",
    "French, blanks in numbers",
)
_PAGES = ("over several pages", "newest first", "one date for several rows")
_LINES = ("descriptions of several lines", "European dates and decimals")
_ANY = (
    "signed amounts",
    "debit and credit columns",
    "parentheses",
    "French, blanks in numbers",
    "check numbers",
    "dollar signs, ruled",
)

# fmt: off
FAULTS = (
    FaultKind("the mark of credits means nothing", "high", SIGNS, ("credit card",), _forget_credit_mark),
    FaultKind("a minus behind the number means nothing", "critical", SIGNS, ("European dates and decimals",), _forget_trailing_minus),
    FaultKind("sections have no direction", "critical", SIGNS, ("deposits and withdrawals in sections",), _forget_sections),
    FaultKind("one heading for both sections", "critical", SIGNS, ("deposits and withdrawals in sections",), _read_one_heading_for_both),
    FaultKind("two columns mirrored, so that all sums meet", "critical", SIGNS, (*_APART, "one date for several rows", "short years", "references"), _mirror_columns),
    FaultKind("marks mirrored, so that all sums meet", "critical", SIGNS, (*_SIGNED, "no running balance", "newest first", "European dates and decimals", "part totals"), _mirror_marks),
    FaultKind("debits are not read", "critical", COLUMNS, (*_APART, "short years"), _lose_debits),
    FaultKind("check numbers are debits", "critical", COLUMNS, ("check numbers",), _read_checks_as_debits),
    FaultKind("the balance is the credit, no sum used", "critical", COLUMNS, ("debit and credit columns", "over several pages", "check numbers", "references", "short years"), _read_balance_as_credit),
    FaultKind("text and check number exchanged", "high", COLUMNS, ("check numbers",), _exchange_text_and_check),
    FaultKind("references are part of the text", "medium", (*TEXTS, *COLUMNS), ("references", "check numbers"), _mix_references_into_text),
    FaultKind("the amount reaches into the text", "high", COLUMNS, ("signed amounts", "no running balance", "descriptions of several lines", "European dates and decimals"), _reach_into_text),
    FaultKind("the year is read as the day", "high", DATES, ("short years",), _read_year_as_day),
    FaultKind("the other order of day and month is tried first", "high", DATES, ("signed amounts", "check numbers", "over several pages", "European dates and decimals", "highlights", "pending"), _try_wrong_format_first),
    FaultKind("a date counts for one row only", "high", ROWS, ("one date for several rows",), _repeat_no_date),
    FaultKind("the first page ends too early", "high", ROWS, _PAGES, _end_first_page_early),
    FaultKind("the region begins right of the dates", "critical", (*ROWS, "date_format"), (*_SIGNED, *_APART), _begin_right_of_dates),
    FaultKind("the region includes another table", "high", ROWS, ("highlights",), _include_top_of_page),
    FaultKind("the credits' column covers the balance", "high", COLUMNS, (*_SIGNED, "debit and credit columns", "check numbers", "short years"), _cover_balance_by_credit),
    FaultKind("the date's column reaches into the text", "high", (*DATES, *TEXTS), (*_ANY, "no running balance", "references"), _reach_into_text_by_date),
    FaultKind("each page's carry is the closing balance", "high", SUMS, ("over several pages", "one date for several rows"), _close_at_each_page, effects=("sum wrong",)),
    FaultKind("a further line ends the table", "high", (*ROWS, "other"), _LINES, _end_at_further_line),
    FaultKind("pending rows count as booked", "high", ROWS, ("pending",), _forget_ends),
    FaultKind("two accounts mix", "high", SUMS, ("two accounts",), _mix_accounts, effects=("account",)),
    FaultKind("opening and closing exchanged", "high", SUMS, (*_ANY, "no running balance", "credit card", "short years"), _exchange_opening_and_closing, effects=("sum wrong",)),
    FaultKind("part totals count as whole", "high", SUMS, ("part totals",), _count_part_as_whole, effects=("sum wrong",)),
    FaultKind("totals count in the other direction", "high", SUMS, (*_ANY, "no running balance", "credit card"), _exchange_directions_of_totals, effects=("sum wrong",)),
    FaultKind("only the opening balance is used", "high", SUMS, (*_ANY, "no running balance", "credit card"), _use_only_opening, effects=("sum unused",)),
    FaultKind("a page is there twice", "high", (*ROWS, "other"), _PAGES, spoil_statement=_double_page, effects=("row invented",)),
    FaultKind("an account has lost its heading", "high", (*SUMS, "other"), ("two accounts",), spoil_statement=_lose_account_heading, effects=("account",)),
    FaultKind("an amount is misprinted", "high", SUMS, (*_ANY, "newest first"), spoil_statement=_misprint_amount, effects=("amount",)),
    FaultKind("two amounts are exchanged", "high", SUMS, ("signed amounts", "parentheses", "dollar signs, ruled", "check numbers", "newest first"), spoil_statement=_exchange_two_amounts, effects=("amount", "sign")),
    FaultKind("a row is blank", "high", (*SUMS, "multiline_handling"), (*_ANY, "over several pages"), spoil_statement=_blank_row, effects=("row missing",)),
    FaultKind("an amount stands in the other column", "high", SIGNS, ("debit and credit columns", "check numbers", "French, blanks in numbers", "short years"), spoil_statement=_print_in_other_column, effects=("sign",)),
)
# fmt: on
