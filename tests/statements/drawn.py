"""Bank statements of many shapes, drawn with their truth: nothing here knows how a template or a builder reads them."""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from decimal import Decimal

import pymupdf
from PIL import Image

_WIDTH, _HEIGHT = 612.0, 792.0
_ENGLISH = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_BANKS = ("Harbor Trust Bank", "Juniper Savings Bank", "Cobalt Credit Union", "First Meadow Bank", "Lakeside National")
_GERMAN_BANKS = ("Sparbank Musterstadt", "Volksbank Beispieltal", "Hansekontor Bank AG")
_PAYEES = (
    "GROCERY OUTLET", "CITY WATER UTILITY", "ONLINE TRANSFER", "HARDWARE STORE", "PHARMACY PLUS", "FUEL STATION 22",
    "COFFEE CORNER", "MOBILE PHONE BILL", "BOOK SHOP", "RAIL TICKETS", "GYM MEMBERSHIP", "SHOE MARKET",
    "ELECTRIC COMPANY", "PET SUPPLIES", "TAXI RIDE", "CINEMA", "INSURANCE PREMIUM", "GARDEN CENTRE",
)  # fmt: skip
_INCOME = ("PAYROLL ACME CORP", "REFUND ONLINE SHOP", "MOBILE DEPOSIT", "INTEREST PAYMENT", "TRANSFER FROM SAVINGS")
_GERMAN = (
    "Lastschrift Stadtwerke",
    "Kartenzahlung Baumarkt",
    "Miete Wohnung",
    "Einkauf Supermarkt",
    "Telefon Rechnung",
)
_GERMAN_INCOME = ("Gehalt Muster GmbH", "Gutschrift Erstattung", "Zinsen")
_MORE = ("REF 4471 CARD 0093", "ANYTOWN OR", "WEB ID 88231", "AUTH 2209", "POINT OF SALE")


@dataclass(frozen=True)
class Truth:
    """One row as it was drawn."""

    date: str
    description: str
    amount: Decimal
    balance: Decimal | None
    page: int
    check_number: str = ""
    account: int = 0


@dataclass(frozen=True)
class Drawn:
    """A statement, and what stands on it."""

    pdf: bytes
    rows: tuple[Truth, ...]
    sums: int
    """How many sums it prints that its rows must meet (at least)."""


@dataclass(frozen=True)
class Entry:
    day: date
    lines: tuple[str, ...]
    amount: Decimal
    balance: Decimal
    check_number: str = ""


Cells = dict[str, str]


@dataclass(frozen=True)
class Shape:
    """How a bank prints."""

    columns: tuple[tuple[str, str, float, str], ...]
    """Name, title, x in points, and side: l or r."""
    day: Callable[[date], str]
    money: Callable[[Decimal], str]
    """A balance or a sum."""
    cells: Callable[[Entry, Shape], Cells]
    """The amount's cells of a row."""
    words: dict[str, str] = field(default_factory=dict)
    """Texts that differ from English."""
    rows: tuple[int, int] = (14, 30)
    accounts: int = 1
    many_lines: float = 0.0
    """The share of rows with further lines."""
    is_sectioned: bool = False
    is_carried: bool = False
    is_date_once: bool = False
    is_newest_first: bool = False
    is_scanned: bool = False
    is_card: bool = False
    has_summary_row: bool = False
    """The summary is a row of titles above a row of values."""
    checks: float = 0.0
    per_page: int = 40
    over_new_year: bool = False
    rules: bool = False
    """Lines are drawn around the rows."""


def us(value: Decimal) -> str:
    return f"{value:,.2f}"


def dollars(value: Decimal) -> str:
    return f"-${-value:,.2f}" if value < 0 else f"${value:,.2f}"


def brackets(value: Decimal) -> str:
    return f"({-value:,.2f})" if value < 0 else f"{value:,.2f}"


def coded(value: Decimal) -> str:
    return f"{abs(value):,.2f} {'DR' if value < 0 else 'CR'}"


def comma(value: Decimal) -> str:
    return f"{value:,.2f}".translate(str.maketrans(",.", ".,"))


def behind(value: Decimal) -> str:
    return comma(abs(value)) + ("-" if value < 0 else "+")


def spaced(value: Decimal) -> str:
    return f"{value:,.2f}".replace(",", " ").replace(".", ",")


def signed(entry: Entry, shape: Shape) -> Cells:
    return {"amount": shape.money(entry.amount), "balance": shape.money(entry.balance)}


def apart(entry: Entry, shape: Shape) -> Cells:
    side = "debit" if entry.amount < 0 else "credit"
    return {side: shape.money(abs(entry.amount)), "balance": shape.money(entry.balance)}


def unmarked(entry: Entry, shape: Shape) -> Cells:
    return {"amount": shape.money(abs(entry.amount))}


def card(entry: Entry, shape: Shape) -> Cells:
    return {"amount": shape.money(abs(entry.amount)) + (" CR" if entry.amount > 0 else "")}


def _slash(day: date) -> str:
    return f"{day:%m/%d/%Y}"


_DAY, _TEXT = ("date", "Date", 50, "l"), ("description", "Description", 120, "l")
_THREE = (_DAY, _TEXT, ("amount", "Amount", 460, "r"), ("balance", "Balance", 560, "r"))
_TWO_SIDES = (
    _DAY, _TEXT, ("debit", "Withdrawals", 400, "r"), ("credit", "Deposits", 480, "r"), ("balance", "Balance", 560, "r"),
)  # fmt: skip
_GERMAN_WORDS = {
    "period": "Kontoauszug vom {start} bis {end}", "opening": "Alter Kontostand", "closing": "Neuer Kontostand",
    "deposits": "Summe Gutschriften", "withdrawals": "Summe Lastschriften", "carried": "Übertrag", "page": "Seite {n} von {of}",
}  # fmt: skip
_FRENCH_WORDS = {
    "period": "Relevé du {start} au {end}", "opening": "Ancien solde", "closing": "Nouveau solde",
    "deposits": "Total des crédits", "withdrawals": "Total des débits", "page": "Page {n}/{of}",
}  # fmt: skip
_UK_WORDS = {"deposits": "Total paid in", "withdrawals": "Total paid out"}

#: Every row is one kind of statement.
SHAPES: dict[str, Shape] = {
    "signed amounts": Shape(_THREE, _slash, us, signed),
    "debit and credit columns": Shape(_TWO_SIDES, lambda day: f"{day:%m/%d}", us, apart, over_new_year=True),
    "parentheses": Shape(_THREE, _slash, brackets, signed),
    "CR and DR": Shape(_THREE, lambda day: f"{day:%d %b %Y}", coded, signed),
    "dollar signs, ruled": Shape(_THREE, lambda day: f"{_ENGLISH[day.month - 1]} {day.day}, {day.year}", dollars, signed, rules=True),
    "credit card": Shape(
        (_DAY, ("value_date", "Post Date", 110, "l"), ("description", "Description", 180, "l"), ("amount", "Amount", 560, "r")),
        lambda day: f"{day:%m/%d}", us, card, is_card=True, over_new_year=True,
        words={"deposits": "Payments and credits", "withdrawals": "Purchases and charges"},
    ),
    "European dates and decimals": Shape(
        (("date", "Buchung", 50, "l"), ("value_date", "Wert", 110, "l"), ("description", "Verwendungszweck", 170, "l"), ("amount", "Betrag EUR", 560, "r")),
        lambda day: f"{day:%d.%m.%Y}", behind, signed, words=_GERMAN_WORDS, many_lines=0.5,
    ),
    "French, blanks in numbers": Shape(
        (_DAY, ("description", "Libellé", 120, "l"), ("debit", "Débit", 470, "r"), ("credit", "Crédit", 560, "r")),
        lambda day: f"{day:%d/%m}", spaced, apart, words=_FRENCH_WORDS, over_new_year=True,
    ),
    "one date for several rows": Shape(
        (_DAY, ("description", "Details", 120, "l"), ("debit", "Paid out", 400, "r"), ("credit", "Paid in", 480, "r"), ("balance", "Balance", 560, "r")),
        lambda day: f"{day.day} {_ENGLISH[day.month - 1]}", us, apart, words=_UK_WORDS, is_date_once=True, is_carried=True, rows=(30, 50), per_page=24,
    ),
    "descriptions of several lines": Shape(_TWO_SIDES, lambda day: f"{day:%m/%d/%y}", us, apart, many_lines=0.6),
    "over several pages": Shape(_TWO_SIDES, _slash, us, apart, rows=(80, 110), per_page=30, is_carried=True),
    "two accounts": Shape(_THREE, _slash, us, signed, accounts=2, rows=(8, 14)),
    "no running balance": Shape((_DAY, _TEXT, ("amount", "Amount", 560, "r")), _slash, us, signed, has_summary_row=True),
    "scanned": Shape(_TWO_SIDES, _slash, us, apart, is_scanned=True, rows=(12, 20)),
    "check numbers": Shape(
        (_DAY, ("check_number", "Check No.", 110, "l"), ("description", "Description", 180, "l"), ("debit", "Debits", 420, "r"), ("credit", "Credits", 490, "r"), ("balance", "Balance", 560, "r")),
        lambda day: f"{day:%m-%d-%Y}", us, apart, checks=0.3,
    ),
    "deposits and withdrawals in sections": Shape(
        (_DAY, _TEXT, ("amount", "Amount", 560, "r")), lambda day: f"{day:%m/%d}", us, unmarked, is_sectioned=True, over_new_year=True,
    ),
    "newest first": Shape(_THREE, lambda day: f"{day:%Y-%m-%d}", us, signed, is_newest_first=True, rows=(30, 45), per_page=25),
}  # fmt: skip


def draw(name: str, seed: int, month: int = 0) -> Drawn:
    """One statement of that shape. The same seed draws the same bank; another month other rows."""
    rng = random.Random(f"{name} {seed}")
    shape = _moved(SHAPES[name], rng)
    pen = _Pen(shape, rng)
    bank = rng.randrange(10)
    rng = random.Random(f"{name} {seed} {month}")
    first = date(2023, 12, 8) if shape.over_new_year else date(2024, rng.randint(1, 10), rng.randint(1, 20))
    end = first + timedelta(days=30)
    is_european = bool(shape.words) and "Konto" in shape.words.get("period", "")
    banks = _GERMAN_BANKS if is_european else _BANKS
    pen.text(50, 50, banks[bank % len(banks)], 15)
    pen.text(50, 66, f"{rng.randint(2, 99)} Mill Road, Salem OR 97301", 8)
    pen.text(
        330,
        50,
        _say(shape, "period", "Statement period: {start} to {end}").format(
            start=_full(shape, first), end=_full(shape, end)
        ),
        9,
    )
    pen.y = 100.0
    sums = 0
    for number in range(shape.accounts):
        entries, opening = _entries(shape, rng, first, end)
        if shape.accounts > 1:
            pen.room(12)
            pen.text(50, pen.y, f"{('Checking', 'Savings')[number % 2]} account {rng.randint(10**9, 10**10 - 1)}", 11)
            pen.y += 20
        sums += _account(pen, shape, rng, entries, opening, number)
    pdf = _scanned(pen.pdf(), rng) if shape.is_scanned else pen.pdf()
    return Drawn(pdf, tuple(pen.truth), sums)


def _account(pen: _Pen, shape: Shape, rng: random.Random, entries: list[Entry], opening: Decimal, number: int) -> int:
    closing = opening + sum((one.amount for one in entries), Decimal(0))
    deposits = sum((one.amount for one in entries if one.amount > 0), Decimal(0))
    withdrawals = -sum((one.amount for one in entries if one.amount < 0), Decimal(0))
    sign = -1 if shape.is_card else 1
    summary = [
        (_say(shape, "opening", "Beginning balance"), shape.money(sign * opening)),
        (_say(shape, "deposits", "Total deposits"), shape.money(deposits)),
        (_say(shape, "withdrawals", "Total withdrawals"), shape.money(withdrawals)),
        (_say(shape, "closing", "Ending balance"), shape.money(sign * closing)),
    ]
    if shape.has_summary_row:
        for at, (label, value) in enumerate(summary):
            pen.text(60 + 130 * at, pen.y, label, 9)
            pen.text(60 + 130 * at, pen.y + 14, value, 9)
        pen.y += 44
    else:
        for label, value in summary:
            pen.text(60, pen.y, label, 9)
            pen.right(300, pen.y, value, 9)
            pen.y += 14
        pen.y += 24
    if shape.is_sectioned:
        for title, some in (
            ("Deposits and other credits", [one for one in entries if one.amount > 0]),
            ("Withdrawals and other debits", [one for one in entries if one.amount < 0]),
        ):
            pen.room(6)
            pen.text(50, pen.y, title, 11)
            pen.y += 18
            pen.table(some, number, None)
            total = abs(sum((one.amount for one in some), Decimal(0)))
            pen.text(120, pen.y, f"Total {title.lower()}", 9)
            pen.right(560, pen.y, shape.money(total), 9)
            pen.y += 30
        return 5
    pen.table(entries[::-1] if shape.is_newest_first else entries, number, opening)
    pen.y += 10
    pen.text(
        50,
        pen.y,
        "Please report errors within 60 days. Member FDIC." if not shape.words else "Alle Angaben ohne Gewähr.",
        7,
    )
    pen.y += 26
    return 3


def _entries(shape: Shape, rng: random.Random, first: date, end: date) -> tuple[list[Entry], Decimal]:
    count = rng.randint(*shape.rows)
    is_german = "Konto" in shape.words.get("period", "")
    opening = Decimal(rng.randint(200_000, 2_000_000)) / 100 * (-1 if shape.is_card else 1)
    days = sorted(first + timedelta(days=rng.randint(0, (end - first).days)) for _ in range(count))
    if shape.is_date_once:
        days = sorted(rng.choice(days[::3]) for _ in days)
    balance, found = opening, []
    for day in days:
        is_income = rng.random() < 0.25
        cents = rng.randint(100, 250_000) if is_income else rng.randint(100, 40_000)
        amount = Decimal(cents) / 100 * (1 if is_income else -1)
        names = (_GERMAN_INCOME if is_income else _GERMAN) if is_german else (_INCOME if is_income else _PAYEES)
        lines = (rng.choice(names), *(rng.sample(_MORE, rng.randint(1, 2)) if rng.random() < shape.many_lines else ()))
        is_check = not is_income and rng.random() < shape.checks
        balance += amount
        found.append(
            Entry(
                day,
                ("CHECK",) if is_check else lines,
                amount,
                balance,
                str(rng.randint(1001, 9999)) if is_check else "",
            )
        )
    return found, opening


class _Pen:
    """Draws on one page after the other, and writes down what is true."""

    def __init__(self, shape: Shape, rng: random.Random) -> None:
        self._shape = shape
        self._document = pymupdf.open()
        self._font = rng.choice(("helv", "tiro")) if not shape.is_scanned else "helv"
        self._size = rng.choice((8.5, 9.0, 9.5)) if not shape.is_scanned else 10
        self._step = self._size * rng.choice((1.35, 1.5, 1.7))
        self._inner = self._size * 1.2
        self.truth: list[Truth] = []
        self.y = 0.0
        self._new_page()

    def pdf(self) -> bytes:
        for number, page in enumerate(self._document, 1):
            text = _say(self._shape, "page", "Page {n} of {of}").format(n=number, of=len(self._document))
            page.insert_text((280, _HEIGHT - 24), text, fontsize=8, fontname=self._font)
        return bytes(self._document.tobytes())

    def text(self, x: float, y: float, text: str, size: float) -> None:
        self._page.insert_text((x, y), text, fontsize=size, fontname=self._font, encoding=pymupdf.TEXT_ENCODING_LATIN)

    def right(self, x: float, y: float, text: str, size: float) -> None:
        self.text(x - pymupdf.get_text_length(text, fontname=self._font, fontsize=size), y, text, size)

    def room(self, lines: int) -> None:
        if self.y + lines * self._step > _HEIGHT - 70:
            self._new_page()

    def table(self, entries: list[Entry], account: int, opening: Decimal | None) -> None:
        shape = self._shape
        self._head()
        day_before: date | None = None
        drawn = 0
        for entry in entries:
            height = self._step + (len(entry.lines) - 1) * self._inner
            if drawn >= shape.per_page or self.y + height > _HEIGHT - 70:
                if shape.is_carried:
                    self._carry("Balance carried forward", self.truth[-1].balance)
                balance = self.truth[-1].balance if self.truth else None
                self._new_page()
                self._head()
                if shape.is_carried:
                    self._carry("Balance brought forward", balance)
                drawn, day_before = 0, None
            cells = {"date": shape.day(entry.day), "value_date": shape.day(entry.day), "description": entry.lines[0]}
            cells |= {"check_number": entry.check_number} | shape.cells(entry, shape)
            if shape.is_date_once and day_before == entry.day:
                cells["date"] = ""
            self._row(cells)
            has_balance = any(name == "balance" for name, *_ in shape.columns) and "balance" in cells
            self.truth.append(
                Truth(
                    entry.day.isoformat(), " ".join(entry.lines), entry.amount, entry.balance if has_balance else None,
                    len(self._document), entry.check_number, account,
                )
            )  # fmt: skip
            x = next(x for name, _, x, _ in shape.columns if name == "description")
            for number, line in enumerate(entry.lines[1:], 1):
                self.text(x, self.y + number * self._inner, line, self._size)
            self.y += height
            drawn, day_before = drawn + 1, entry.day

    def _head(self) -> None:
        self._row({name: title for name, title, *_ in self._shape.columns})
        self._page.draw_line((45, self.y + 3), (565, self.y + 3))
        self.y += self._step * 1.3

    def _carry(self, text: str, balance: Decimal | None) -> None:
        if balance is not None:
            self._row({"description": text, "balance": self._shape.money(balance)})
            self.y += self._step

    def _row(self, cells: Cells) -> None:
        for name, _, x, side in self._shape.columns:
            if cells.get(name):
                (self.right if side == "r" else self.text)(x, self.y, cells[name], self._size)
        if self._shape.rules:
            self._page.draw_line((45, self.y + 4), (565, self.y + 4), width=0.4)

    def _new_page(self) -> None:
        self._page = self._document.new_page(width=_WIDTH, height=_HEIGHT)
        self.y = 90.0
        if len(self._document) > 1:
            self.text(50, 50, "Account statement" if not self._shape.words else "Seite folgt", 9)


def _moved(shape: Shape, rng: random.Random) -> Shape:
    """The columns a little elsewhere: no two banks print alike."""
    shift = rng.uniform(-8, 8)
    return replace(
        shape,
        columns=tuple((name, title, x + shift + rng.uniform(-3, 3), side) for name, title, x, side in shape.columns),
    )


def _say(shape: Shape, what: str, english: str) -> str:
    return shape.words.get(what, english)


def _full(shape: Shape, day: date) -> str:
    return (
        f"{day:%d.%m.%Y}"
        if "Konto" in shape.words.get("period", "")
        else f"{day:%d/%m/%Y}"
        if "Relevé" in shape.words.get("period", "")
        else f"{_ENGLISH[day.month - 1]} {day.day}, {day.year}"
    )


def _scanned(pdf: bytes, rng: random.Random) -> bytes:
    """Printed and put on a scanner, a little askew, with 300 dpi."""
    source, made = pymupdf.open("pdf", pdf), pymupdf.open()
    for page in source:
        pixels = page.get_pixmap(dpi=300, colorspace=pymupdf.csGRAY)
        image = Image.frombytes("L", (pixels.width, pixels.height), pixels.samples)
        image = image.rotate(rng.uniform(-0.5, 0.5), resample=Image.Resampling.BICUBIC, fillcolor=255)
        kept = io.BytesIO()
        image.save(kept, "JPEG", quality=85)
        made.new_page(width=_WIDTH, height=_HEIGHT).insert_image((0, 0, _WIDTH, _HEIGHT), stream=kept.getvalue())
    return bytes(made.tobytes())


def names() -> Iterator[str]:
    """The shapes, in their order."""
    return iter(SHAPES)
