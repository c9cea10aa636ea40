"""Sheets on which statements are drawn, and what is true of each: nothing here knows how a statement is read."""

from __future__ import annotations

import calendar
import io
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, Literal

import numpy as np
import pymupdf
from PIL import Image
from statements.drawn import Truth

Proof = bool | Literal["words"]
SumKind = Literal["opening", "closing", "deposits", "withdrawals", "carried", "subtotal", "due"]
ZERO = Decimal(0)
_MUPDF: Any = pymupdf  # it carries no types


@dataclass(frozen=True)
class TrueRow(Truth):
    """One row; money to the account is positive, whatever the page prints."""

    currency: str = ""


@dataclass(frozen=True)
class TrueSum:
    """An amount that stands outside the rows; debts are negative."""

    kind: SumKind
    amount: Decimal
    page: int
    account: int = 0


@dataclass(frozen=True)
class Statement:
    """A drawn statement, and what a careful person reads on it."""

    pdf: bytes
    rows: tuple[TrueRow, ...]
    sums: tuple[TrueSum, ...]
    is_scanned: bool = False
    signs_proven: Proof = True
    """Whether the page proves every direction; ``words``: only what the rows say of themselves shows it."""
    dates_certain: bool = True
    """Whether one order of day and month, and one year, follow from the page."""
    has_sums_right: bool = True
    """Whether the rows make the sums that the page prints."""
    sum_count: int = 0
    """How many sums the rows must meet at least, where they are not listed."""

    @property
    def sound(self) -> bool:
        """Whether nothing is doubtful: nobody else needs to be asked."""
        return self.signs_proven is True and self.dates_certain and self.has_sums_right


@dataclass(frozen=True)
class Entry:
    """One movement before it is printed."""

    day: date
    lines: tuple[str, ...]
    amount: Decimal
    balance: Decimal
    value_day: date
    marks: tuple[str, ...] = ()
    """What stands beside each line and belongs to no description."""


@dataclass(frozen=True)
class Column:
    """Where a column stands: ``l`` from its left, ``r`` to its right edge."""

    key: str
    x: float
    side: str
    head: tuple[str, ...] = ()


Cells = Mapping[str, str]
DrawShape = Callable[[int, int], Statement]


def figure(amount: Decimal, group: str = ",", point: str = ".", *, indian: bool = False) -> str:
    """Print an amount with two decimals and a minus in front of debts."""
    whole, cents = f"{abs(amount):.2f}".split(".")
    parts = [whole[-3:]]
    rest, width = whole[:-3], 2 if indian else 3
    while rest:
        parts.insert(0, rest[-width:])
        rest = rest[:-width]
    return ("-" if amount < 0 else "") + group.join(parts) + point + cents


def total(entries: Sequence[Entry], sign: int = 0) -> Decimal:
    """Add the amounts, or only those of one sign."""
    return sum((each.amount for each in entries if not sign or each.amount * sign > 0), ZERO)


def seeded(half: str, shape: str, seed: int, later: int) -> tuple[random.Random, random.Random]:
    """Return what is fixed for a bank, and what is new in every month."""
    return random.Random(f"{half} {shape} {seed}"), random.Random(f"{half} {shape} {seed} {later}")


def invent_cents(rng: random.Random, least: int, most: int) -> Decimal:
    """Return an amount between two numbers of cents."""
    return Decimal(rng.randint(least, most)) / 100


def name_shapes(shapes: Sequence[DrawShape]) -> dict[str, DrawShape]:
    """Return shapes by the names of their functions."""
    return {each.__name__.strip("_").replace("_", " "): each for each in shapes}


def month_of(year: int, month: int, later: int) -> tuple[date, date]:
    """Return the first and the last day of a calendar month, some months later."""
    year, month = year + (month - 1 + later) // 12, (month - 1 + later) % 12 + 1
    return date(year, month, 1), date(year, month, calendar.monthrange(year, month)[1])


def cycle_of(year: int, month: int, day: int, later: int) -> tuple[date, date]:
    """Return the first and the last day of a month that ends on a day of its own."""
    first, last = month_of(year, month, later)
    before = first - timedelta(days=1)
    return before.replace(day=min(day, before.day)) + timedelta(days=1), first.replace(day=min(day, last.day))


@dataclass
class Inventor:
    """Makes up movements: who is paid, when, and how much."""

    rng: random.Random
    spends: Sequence[str]
    incomes: Sequence[str]
    more: Sequence[str] = ()
    """Further lines of a description."""
    many: float = 0.0
    """The share of rows that have them."""
    income: float = 0.25
    most_out: int = 40_000
    most_in: int = 250_000
    lag: int = 0
    """How many days the value date may lie behind."""
    days: Sequence[date] = ()
    """The only days on which something is booked."""
    mark: Callable[[random.Random], str] | None = None

    def entries(self, first: date, last: date, count: int, opening: Decimal) -> list[Entry]:
        """Return that many movements of a period, oldest first, with the balance after each."""
        rng, balance, entries = self.rng, opening, []
        choice = self.days or [first + timedelta(days=each) for each in range((last - first).days + 1)]
        for day in sorted(rng.choice(choice) for _ in range(count)):
            is_income = rng.random() < self.income
            cents = rng.randint(150, self.most_in if is_income else self.most_out)
            amount = Decimal(cents if is_income else -cents) / 100
            lines = [rng.choice(self.incomes if is_income else self.spends)]
            if self.more and rng.random() < self.many:
                lines += rng.sample(self.more, rng.randint(1, min(3, len(self.more))))
            balance += amount
            marks = tuple(self.mark(rng) for _ in lines) if self.mark else ()
            entries.append(
                Entry(day, tuple(lines), amount, balance, day + timedelta(days=rng.randint(0, self.lag)), marks)
            )
        return entries


def invent_both_ways(maker: Inventor, period: tuple[date, date], count: int, opening: Decimal) -> list[Entry]:
    """Return movements, some each way, that never overdraw an account that was not overdrawn before."""
    while True:
        entries = maker.entries(*period, count, opening)
        incomes = sum(each.amount > 0 for each in entries)
        if 2 <= incomes <= count - 2 and (opening < 0 or min(each.balance for each in entries) > 0):
            return entries


def balanced(entries: Sequence[Entry], opening: Decimal) -> list[Entry]:
    """Return the movements with their balances computed anew."""
    balance, balances = opening, []
    for each in entries:
        balance += each.amount
        balances.append(replace(each, balance=balance))
    return balances


class Sheet:
    """Pages of one statement, drawn from top to bottom, with the truth noted beside."""

    def __init__(
        self,
        rng: random.Random,
        *,
        size: float = 9.0,
        font: str = "",
        leading: float = 0.0,
        width: float = 595.0,
        height: float = 842.0,
        top: float = 60.0,
        bottom: float = 64.0,
    ) -> None:
        self.font = _MUPDF.Font(font or rng.choice(("helv", "tiro", "helv")))
        self.bold = _MUPDF.Font({"tiro": "tibo", "cour": "cobo"}.get(font, "hebo"))
        self.size, self.step = size, size * (leading or rng.choice((1.35, 1.5, 1.65)))
        self.width, self.height, self.top, self.bottom = width, height, top, bottom
        self.shift = rng.uniform(-6, 6)
        self.rows: list[TrueRow] = []
        self.sums: list[TrueSum] = []
        self.running_head: Callable[[], None] | None = None
        self.footer: Callable[[int, int], str] = lambda number, count: f"Page {number} of {count}"
        self.foot_x = 270.0
        self.y = top
        self._document = _MUPDF.open()
        self._writers: list[Any] = []
        self.new_page()

    @property
    def number(self) -> int:
        """The number of the page that is drawn on."""
        return len(self._writers)

    def new_page(self) -> None:
        """Go on at the top of another page."""
        self._page = self._document.new_page(width=self.width, height=self.height)
        self._writers.append(_MUPDF.TextWriter(self._page.rect))
        self.y = self.top
        if self.number > 1 and self.running_head:
            self.running_head()

    def has_room(self, points: float) -> bool:
        """Tell whether that much is left above the foot of the page."""
        return self.y + points <= self.height - self.bottom

    def need(self, points: float) -> None:
        """Go to another page unless that much is left."""
        if not self.has_room(points):
            self.new_page()

    def down(self, points: float) -> None:
        """Leave room."""
        self.y += points

    def write(
        self, x: float, text: str, side: str = "l", *, size: float = 0.0, bold: bool = False, y: float | None = None
    ) -> None:
        """Print a text that begins, ends or is centred there."""
        if not text:
            return
        font, size = (self.bold if bold else self.font), size or self.size
        length = font.text_length(text, fontsize=size)
        left = x + self.shift - {"l": 0.0, "r": length, "c": length / 2}[side]
        self._writers[-1].append((left, self.y if y is None else y), text, font=font, fontsize=size)

    def line(self, x: float, text: str, side: str = "l", *, size: float = 0.0, bold: bool = False) -> None:
        """Print a text and go down by a line."""
        self.write(x, text, side, size=size, bold=bold)
        self.y += max(self.step, (size or self.size) * 1.3)

    def pair(self, x: float, label: str, right: float, text: str, *, bold: bool = False) -> None:
        """Print a label and, at the right, what it stands for."""
        self.write(x, label, bold=bold)
        self.line(right, text, "r", bold=bold)

    def note(self, kind: SumKind, amount: Decimal, account: int = 0) -> None:
        """Note a sum that the present page prints."""
        self.sums.append(TrueSum(kind, amount, self.number, account))

    def rule(self, left: float, right: float, *, up: float | None = None, weight: float = 0.5) -> None:
        """Draw a line across the page under the last text."""
        y = self.y - self.step + 3 if up is None else self.y - up
        self._page.draw_line((left + self.shift, y), (right + self.shift, y), width=weight)

    def stroke(self, x: float, top: float, bottom: float) -> None:
        """Draw a line down the page."""
        self._page.draw_line((x + self.shift, top), (x + self.shift, bottom), width=0.5)

    def box(self, left: float, top: float, right: float, bottom: float) -> None:
        """Draw a frame."""
        self._page.draw_rect((left + self.shift, top, right + self.shift, bottom), width=0.6)

    def finish(
        self,
        rng: random.Random,
        *,
        scan: bool = False,
        turn: int = 0,
        signs_proven: Proof = True,
        dates_certain: bool = True,
        has_sums_right: bool = True,
        lost: int = 0,
    ) -> Statement:
        """Print the feet of the pages and return the statement: turned, as a scan, or without a page that was lost."""
        self.shift = 0.0
        for number, (page, writer) in enumerate(zip(self._document, self._writers, strict=True), 1):
            text = self.footer(number, self.number)
            if text:
                writer.append((self.foot_x, self.height - 28), text, font=self.font, fontsize=7.5)
            writer.write_text(page)
        if lost:
            self._document.delete_page(lost - 1)
            left = [each for each in self.rows if each.page != lost]
            self.rows = [replace(each, page=each.page - (each.page > lost)) for each in left]
            self.sums = [each for each in self.sums if each.page < lost]
        document = _turned(self._document, turn) if turn else self._document
        document.subset_fonts()
        pdf = _scanned(document, rng) if scan else bytes(document.tobytes(garbage=3, deflate=True, no_new_id=True))
        return Statement(pdf, tuple(self.rows), tuple(self.sums), scan, signs_proven, dates_certain, has_sums_right)


@dataclass
class Table:
    """Rows in columns that go on over as many pages as they need."""

    sheet: Sheet
    columns: Sequence[Column]
    cells: Callable[[Entry], Cells]
    has_head: bool = True
    is_head_repeated: bool = True
    head_rule: bool = True
    row_rule: tuple[float, float] | None = None
    is_date_once: bool = False
    is_newest_first: bool = False
    is_balance_once: bool = False
    """The balance stands only beside the last row of a day."""
    is_split: bool = False
    """A row's further lines may go over to the next page."""
    per_page: int = 99
    carry_out: Callable[[Decimal], Cells] | None = None
    carry_in: Callable[[Decimal], Cells] | None = None
    inner: float = 1.2
    currency: str = ""
    account: int = 0
    extent: tuple[float, float] = (45.0, 550.0)
    first_line_extra: Callable[[int, Entry], Cells] | None = field(default=None)

    def head(self) -> None:
        """Print the titles of the columns."""
        if not self.has_head:
            return
        count = max(len(each.head) for each in self.columns)
        for number in range(count):
            self.row({each.key: each.head[number] for each in self.columns if number < len(each.head)}, bold=True)
            self.sheet.down(self.sheet.size * 1.15 if number + 1 < count else self.sheet.step)
        if self.head_rule:
            self.sheet.rule(*self.extent)
        self.sheet.down(self.sheet.step * 0.35)

    def row(self, cells: Cells, *, bold: bool = False) -> None:
        """Print cells on the present line."""
        for each in self.columns:
            self.sheet.write(each.x, cells.get(each.key, ""), each.side, bold=bold)

    def carried(self, make: Callable[[Decimal], Cells] | None, balance: Decimal) -> None:
        """Print a line that carries the balance over."""
        if make:
            self.row(make(balance))
            self.sheet.note("carried", balance, self.account)
            self.sheet.down(self.sheet.step)

    def print(self, entries: Sequence[Entry]) -> None:
        """Print the rows and note what is true of them."""
        sheet = self.sheet
        sheet.need(sheet.step * 6)
        self.head()
        shown = list(entries)[::-1] if self.is_newest_first else list(entries)
        on_page, before = 0, None
        for number, each in enumerate(shown):
            height = sheet.step + (0 if self.is_split else (len(each.lines) - 1) * sheet.size * self.inner)
            room = height + (sheet.step if self.carry_out else 0)
            if on_page >= self.per_page or not sheet.has_room(room):
                carried = shown[number - 1].balance
                self.carried(self.carry_out, carried)
                self._turn_over()
                self.carried(self.carry_in, carried)
                on_page, before = 0, None
            cells = dict(self.cells(each))
            if self.is_date_once and before == each.day:
                cells["date"] = ""
            if self.is_balance_once and number + 1 < len(shown) and shown[number + 1].day == each.day:
                cells["balance"] = ""
            has_balance = bool(cells.get("balance"))
            sheet.rows.append(
                TrueRow(
                    each.day.isoformat(), " ".join(each.lines), each.amount, each.balance if has_balance else None,
                    sheet.number, "", self.account, self.currency,
                )
            )  # fmt: skip
            self._print_entry(each, cells)
            on_page, before = on_page + 1, each.day

    def _print_entry(self, entry: Entry, cells: dict[str, str]) -> None:
        sheet = self.sheet
        for number, text in enumerate(entry.lines):
            mark = {"mark": entry.marks[number]} if number < len(entry.marks) else {}
            if number:
                sheet.down(sheet.size * self.inner)
                if not sheet.has_room(sheet.size):
                    self._turn_over()
            self.row((cells if not number else {}) | {"text": text} | mark)
        sheet.down(sheet.step)
        if self.row_rule:
            sheet.rule(*self.row_rule)

    def _turn_over(self) -> None:
        self.sheet.new_page()
        if self.is_head_repeated:
            self.head()


def print_after(table: Table, cells: Cells, entries: Sequence[Entry]) -> None:
    """Print a line of its own under the titles, such as the balance brought forward, and then the rows."""
    table.head()
    table.row(cells)
    table.sheet.down(table.sheet.step)
    table.sheet.running_head = table.head
    replace(table, has_head=False).print(entries)
    table.sheet.running_head = None


def moved(rng: random.Random, columns: Sequence[Column], most: float = 3.0) -> tuple[Column, ...]:
    """Return the columns a little elsewhere: no two banks print alike."""
    return tuple(replace(each, x=each.x + rng.uniform(-most, most)) for each in columns)


def _turned(source: Any, turn: int) -> Any:
    """Lay the pages on their side, and say so, as programs do that print wide tables on upright paper."""
    turned = _MUPDF.open()
    for page in source:
        target = turned.new_page(width=page.rect.height, height=page.rect.width)
        target.show_pdf_page(target.rect, source, page.number, rotate=turn)
        target.set_rotation(turn)
    return turned


def _scanned(source: Any, rng: random.Random) -> bytes:
    """Print the pages and scan them with 200 dpi, a little askew, with the noise of a used machine."""
    noise = np.random.default_rng(rng.getrandbits(32))
    scans = _MUPDF.open()
    for page in source:
        pixels = page.get_pixmap(dpi=200, colorspace=_MUPDF.csGRAY)
        image = Image.frombytes("L", (pixels.width, pixels.height), pixels.samples)
        image = image.rotate(rng.uniform(-0.6, 0.6), resample=Image.Resampling.BICUBIC, fillcolor=252)
        grey = np.asarray(image, dtype=np.float64)
        grey = grey * 0.93 + 8 + noise.normal(0, 5, grey.shape)
        stored = io.BytesIO()
        Image.fromarray(grey.clip(0, 255).astype(np.uint8)).save(stored, "JPEG", quality=82)
        target = scans.new_page(width=page.rect.width, height=page.rect.height)
        target.insert_image(target.rect, stream=stored.getvalue())
    return bytes(scans.tobytes(no_new_id=True))
