"""Draws tax forms of made-up people and records what each one prints.

A layout draws with a :class:`Pen`, whose entries note themselves in the truth of the form: what is not printed is not in
the truth. :func:`scan` and :func:`photograph` make pictures of the drawn pages.

Names of values are those of specification 003 and of the templates. A second state's or locality's row is ``box_15_2``,
``box_16_2`` and so on. Forms 1098 and 1099-R are named so; their boxes are ``box_1``, ``box_2a``. On a 1098 the names
follow the print: ``recipient_name`` and ``recipient_tin`` are the lender's ("RECIPIENT'S/LENDER'S"), ``payer_name`` and
``payer_tin`` the borrower's.
"""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pymupdf as mupdf_module
from PIL import Image, ImageFilter

pymupdf: Any = mupdf_module

Facts = Mapping[str, "str | Decimal"]
Cell = tuple[str, str, str]
"""Box number, label and name of the value; the name may be empty."""

FONTS = Path("/usr/share/fonts/truetype/dejavu")
FILES = {
    "dvsans": "DejaVuSans.ttf",
    "dvsansb": "DejaVuSans-Bold.ttf",
    "dvcond": "DejaVuSansCondensed.ttf",
    "dvcondb": "DejaVuSansCondensed-Bold.ttf",
    "dvmono": "DejaVuSansMono.ttf",
    "dvserif": "DejaVuSerif.ttf",
    "dvserifb": "DejaVuSerif-Bold.ttf",
}

REQUIRED = {
    "W-2": ("employee_ssn", "employer_ein", "employer_name", "wages_tips", "federal_tax_withheld", "tax_year"),
    "1099-NEC": ("payer_tin", "payer_name", "recipient_tin", "nonemployee_compensation", "tax_year"),
    "1099-INT": ("payer_tin", "payer_name", "recipient_tin", "interest_income", "tax_year"),
    "1099-DIV": ("payer_tin", "payer_name", "recipient_tin", "total_dividends", "tax_year"),
    "1099-MISC": ("payer_tin", "payer_name", "recipient_tin", "tax_year"),
    "1099-R": ("payer_tin", "payer_name", "recipient_tin", "box_1", "tax_year"),
    "1098": ("recipient_tin", "recipient_name", "payer_tin", "box_1", "tax_year"),
    "K-1": ("partnership_ein", "partnership_name", "partner_tin", "tax_year"),
}

# A part of a printed block, and the value that it belongs to.
_PARTS = {
    "employer_street": "employer_address",
    "employer_city": "employer_address",
    "employee_street": "employee_address",
    "employee_city": "employee_address",
    "partnership_street": "partnership_address",
    "partnership_city": "partnership_address",
    "partner_street": "partner_address",
    "partner_city": "partner_address",
}
# A part that may stand in another value, or be left out of it.
_OPTIONAL = {
    "employer_street": "employer_name",
    "employer_city": "employer_name",
    "employee_street": "employee_name",
    "employee_city": "employee_name",
    "payer_street": "payer_name",
    "payer_city": "payer_name",
    "payer_phone": "payer_name",
    "recipient_phone": "recipient_name",
}
_LENDER = {"recipient_street": "recipient_name", "recipient_city": "recipient_name"}
_PIECES = ("code", "amount", "state", "id", "word", "amount2", "word2")


@dataclass
class Form:
    """A form on a page, and what it prints."""

    kind: str
    page: int = 1
    copies: int = 1
    values: dict[str, str] = field(default_factory=dict)
    optional: dict[str, str] = field(default_factory=dict)
    printed: list[str] = field(default_factory=list)
    parts: dict[str, dict[str, str]] = field(default_factory=dict)

    def record(self, name: str, text: str) -> None:
        """Note that ``text`` is printed as a value; a further copy adds nothing."""
        self.printed.append(text)
        lender = _LENDER if self.kind == "1098" else {}
        optional = lender.get(name) or _OPTIONAL.get(name)
        if optional and text not in self.optional.get(optional, ""):
            self.optional[optional] = f"{self.optional.get(optional, '')} {text}".strip()
        if name in _PARTS:
            self._append(_PARTS[name], name, text)
        elif name.startswith("box_") and name.rsplit("_", 1)[1] in _PIECES:
            self._append(name.rsplit("_", 1)[0], name, text)
        elif optional is None:
            self.values.setdefault(name, text)

    def _append(self, name: str, part: str, text: str) -> None:
        parts = self.parts.setdefault(name, {})
        parts.setdefault(part, text)
        self.values[name] = " ".join(parts.values())

    @property
    def missing(self) -> tuple[str, ...]:
        """Required values that the form does not print."""
        return tuple(name for name in REQUIRED[self.kind] if name not in self.values)

    @property
    def is_blank(self) -> bool:
        """Whether nothing but the year and the sender's imprint is filled in."""
        return not set(self.values) - {"tax_year"}


@dataclass(frozen=True)
class Layout:
    """One page or document to draw; ``build`` returns its forms."""

    name: str
    build: Callable[[Any], list[Form]]


def draw(layout: Layout, folder: Path) -> tuple[Path, list[Form]]:
    """Write the PDF of a layout into ``folder``."""
    document = pymupdf.open()
    forms = layout.build(document)
    path = folder / f"{layout.name}.pdf"
    document.save(path, garbage=3, deflate=True, no_new_id=True)
    document.close()
    return path, forms


# ------------------------------------------------------------------------------------------------------- pen


@dataclass(frozen=True)
class Style:
    """House style of a maker of forms."""

    face: str = "helv"
    strong: str = "hebo"
    entry: str = "cour"
    label_size: float = 6.0
    entry_size: float = 9.0
    border: str = "full"
    """full, bottom, outer or none."""
    align: str = "left"
    """left, right or middle."""
    place: str = "inside"
    """Of the label: inside (top left of the box), left, below or above the box."""
    numbers: str = "{} "
    dollar: bool = False
    thousands: bool = True
    whole: bool = False
    zeros: int = 0
    """Digits before the point, filled with leading zeros."""
    minus: str = "()"
    capitals: bool = False
    """Labels in capitals."""
    loud: bool = False
    """Entries in capitals."""
    mask: str = ""
    dashes: bool = True
    ink: tuple[float, float, float] = (0.0, 0.0, 0.0)
    line: float = 0.5
    shade: float = 1.0
    """Grey of the labels' ground; 1 is none."""

    def money(self, amount: Decimal) -> str:
        """The amount as the house prints it."""
        size = abs(amount)
        plain = f"{size.to_integral_value():,}" if self.whole else f"{size:,.2f}"
        plain = plain if self.thousands else plain.replace(",", "")
        if self.zeros:
            head, dot, cents = plain.replace(",", "").partition(".")
            plain = head.zfill(self.zeros) + dot + cents
        sign = "$" if self.dollar else ""
        if amount >= 0:
            return sign + plain
        return f"({sign}{plain})" if self.minus == "()" else f"-{sign}{plain}"

    def identity(self, number: str) -> str:
        """A taxpayer's number, masked or without dashes if the house does so."""
        if self.mask and len(number) == 11:
            return f"{self.mask * 3}-{self.mask * 2}-{number[-4:]}"
        return number if self.dashes else number.replace("-", "")


@cache
def _font(name: str) -> Any:
    return pymupdf.Font(fontfile=str(FONTS / FILES[name])) if name in FILES else pymupdf.Font(name)


@dataclass
class Pen:
    """Draws on a page from a corner, at a scale, and records the entries in its forms."""

    page: Any
    style: Style
    facts: Facts
    forms: Sequence[Form]
    left: float = 0.0
    top: float = 0.0
    scale: float = 1.0

    def moved(self, left: float, top: float, scale: float = 1.0) -> Pen:
        """The same pen in another corner of the page; points of the page."""
        return replace(self, left=left, top=top, scale=scale)

    def width(self, text: str, size: float, font: str = "") -> float:
        """Width of a text in the pen's units."""
        return float(_font(font or self.style.face).text_length(text, size))

    def write(
        self,
        x: float,
        y: float,
        text: str,
        size: float = 0,
        font: str = "",
        *,
        align: str = "left",
        ink: tuple[float, float, float] = (0.0, 0.0, 0.0),
    ) -> None:
        """A line of text; ``x`` is its left end, right end or middle."""
        if not text:
            return
        font, size = font or self.style.face, size or self.style.label_size
        x -= {"left": 0.0, "right": 1.0, "middle": 0.5}[align] * self.width(text, size, font)
        files = {"fontfile": str(FONTS / FILES[font])} if font in FILES else {}
        self.page.insert_text(
            (self.left + x * self.scale, self.top + y * self.scale),
            text,
            fontsize=size * self.scale,
            fontname=font,
            color=ink,
            **files,
        )

    def note(self, x: float, y: float, width: float, text: str, size: float = 0, font: str = "") -> float:
        """A wrapped text; returns the height below its last line."""
        size, row = size or self.style.label_size, ""
        for word in text.split():
            longer = f"{row} {word}".strip()
            if row and self.width(longer, size, font) > width:
                self.write(x, y, row, size, font)
                y, row = y + size * 1.18, word
            else:
                row = longer
        self.write(x, y, row, size, font)
        return y + size * 1.18

    def rect(self, x: float, y: float, w: float, h: float, *, line: float = 0, fill: float = 1.0) -> None:
        """A rectangle, filled with a grey."""
        x, y = self.left + x * self.scale, self.top + y * self.scale
        area = (x, y, x + w * self.scale, y + h * self.scale)
        grey = (fill, fill, fill) if fill < 1 else None
        self.page.draw_rect(area, color=(0, 0, 0) if line else grey, width=line, fill=grey)

    def rule(self, x: float, y: float, x2: float, y2: float, line: float = 0) -> None:
        """A straight line."""
        start = (self.left + x * self.scale, self.top + y * self.scale)
        end = (self.left + x2 * self.scale, self.top + y2 * self.scale)
        self.page.draw_line(start, end, width=line or self.style.line)

    def text_of(self, name: str) -> str:
        """What is printed for a name; it is recorded in the forms."""
        fact = self.facts.get(name, "")
        if fact == "":
            return ""
        text = self.style.money(fact) if isinstance(fact, Decimal) else str(fact)
        if name.endswith(("_tin", "_ssn", "_ein")):
            text = self.style.identity(text)
        text = text.upper() if self.style.loud and name != "tax_year" else text
        for form in self.forms:
            form.record(name, text)
        return text

    def entry(self, x: float, y: float, name: str, size: float = 0, align: str = "left", before: str = "") -> None:
        """The value of a name, as the house prints entries."""
        text = self.text_of(name)
        if text:
            self.write(
                x, y, before + text, size or self.style.entry_size, self.style.entry, align=align, ink=self.style.ink
            )

    def block(self, x: float, y: float, names: Sequence[str], step: float = 0) -> None:
        """Values under one another."""
        for name in names:
            if name in self.facts:
                self.entry(x, y, name)
                y += step or self.style.entry_size * 1.2

    def row(self, x: float, y: float, names: Sequence[str], gap: str = " ", align: str = "left") -> None:
        """Values beside one another on one line."""
        texts = [text for text in map(self.text_of, names) if text]
        self.write(x, y, gap.join(texts), self.style.entry_size, self.style.entry, align=align, ink=self.style.ink)

    def tick(self, x: float, y: float, label: str, name: str, size: float = 6.5, room: float = 84) -> None:
        """A box to tick with its label at the right."""
        self.rect(x, y - size, size, size, line=0.5)
        if self.text_of(name):
            self.write(x + size * 0.15, y - size * 0.12, "X", size, "hebo")
        self.note(x + size + 2.5, y - size * 0.15, room, label, self.style.label_size)

    def cell(self, x: float, y: float, w: float, h: float, cell: Cell, *more: str, **options: Any) -> None:
        """A box with its label and value, more values below it or ``beside`` it."""
        number, label, name = cell
        style = self.style
        label = label.upper() if style.capitals else label
        head = style.numbers.format(number) if number else ""
        self._frame(x, y, w, h)
        names = [name, *more]
        beside = bool(options.get("beside"))
        right = style.align if all(isinstance(self.facts.get(each), Decimal) for each in names[:1]) else "left"
        x_value = {"left": x + 5, "right": x + w - 5, "middle": x + w / 2}[right]
        size = style.label_size
        if style.place == "left":
            self.write(x + 2, y + h - 4, head, size, style.strong)
            shift = self.width(head, size, style.strong)
            self.note(x + 2 + shift, y + h - 4 - (size * 1.18 if len(label) > w / size else 0), w * 0.62, label)
            lines, x_value, right = y + h - 4, x + w - 4, "right"
        elif style.place == "below":
            self.write(x + 2, y + h + size + 1.5, head, size, style.strong)
            self.write(x + 2 + self.width(head, size, style.strong), y + h + size + 1.5, label)
            lines = y + h - 3 - style.entry_size * 1.15 * (0 if beside else len(more))
        else:
            above = size + 3 if style.place == "above" else 0
            self.write(x + 2, y - above + size + 1.5, head, size, style.strong)
            shift = self.width(head, size, style.strong)
            foot = self.note(x + 2 + shift, y - above + size + 1.5, w - shift - 3, label)
            lines = max(y + h - 4, foot + style.entry_size * 0.7)
            if more and not beside:
                lines = foot + style.entry_size * 0.85
        if not name:
            return
        if beside:
            self.row(x_value, lines, names, str(options.get("gap", "  ")), right)
            return
        for each in names:
            if each in self.facts:
                self.entry(x_value, lines, each, align=right)
                lines += style.entry_size * 1.15

    def _frame(self, x: float, y: float, w: float, h: float) -> None:
        if self.style.shade < 1:
            self.rect(x, y, w, self.style.label_size * 1.5, fill=self.style.shade)
        if self.style.border == "full":
            self.rect(x, y, w, h, line=self.style.line)
        elif self.style.border == "bottom":
            self.rule(x, y + h, x + w - 4, y + h)

    def grid(self, x: float, y: float, widths: Sequence[float], h: float, cells: Sequence[Cell | None]) -> float:
        """Boxes in rows from left to right; returns the height below the last row."""
        gap = 10 if self.style.place in {"below", "above"} else 0
        for start in range(0, len(cells), len(widths)):
            left = x
            for w, cell in zip(widths, cells[start : start + len(widths)], strict=False):
                if cell is not None:
                    self.cell(left, y + (gap if self.style.place == "above" else 0), w, h, cell)
                left += w
            y += h + gap
        return y


# ----------------------------------------------------------------------------------------------- made-up facts


@dataclass(frozen=True)
class Pool:
    """Names that one half of the layouts draws from."""

    first: Sequence[str]
    last: Sequence[str]
    firms: Sequence[str]
    banks: Sequence[str]
    streets: Sequence[str]
    cities: Sequence[tuple[str, str, str]]
    localities: Sequence[str]


_EIN_STARTS = ("20", "26", "27", "36", "41", "45", "46", "47", "58", "61", "73", "81", "82", "84", "91", "94")


class Inventor:
    """Invents people, firms and amounts; the same ones for the same seed."""

    def __init__(self, pool: Pool, seed: str) -> None:
        self.pool = pool
        self.dice = random.Random(seed)

    def digits(self, number: int) -> str:
        """A number of that many digits, the first not 0."""
        return str(self.dice.randint(10 ** (number - 1), 10**number - 1))

    def ssn(self) -> str:
        """A person's number, well formed."""
        return f"{self.dice.randint(101, 665)}-{self.dice.randint(10, 98)}-{self.dice.randint(1001, 9998)}"

    def ein(self) -> str:
        """A firm's number, well formed."""
        return f"{self.dice.choice(_EIN_STARTS)}-{self.digits(7)}"

    def money(self, low: int, high: int) -> Decimal:
        """An amount of dollars and cents."""
        return Decimal(self.dice.randint(low * 100, high * 100)) / 100

    def person(self) -> str:
        """First name, sometimes an initial, last name."""
        initial = self.dice.choice(("", "", " " + self.dice.choice("ABDEGJKLMRT")))
        return f"{self.dice.choice(self.pool.first)}{initial} {self.dice.choice(self.pool.last)}"

    def street(self) -> str:
        """House number and street, sometimes a flat."""
        flat = self.dice.choice(("", "", "", f" Apt {self.dice.randint(2, 40)}", f" Unit {self.dice.choice('BCDF')}"))
        return f"{self.dice.randint(11, 9890)} {self.dice.choice(self.pool.streets)}{flat}"

    def city(self) -> str:
        """City, state and ZIP code."""
        city, state, code = self.dice.choice(self.pool.cities)
        return f"{city}, {state} {code}" if self.dice.random() < 0.7 else f"{city} {state} {code}"

    def state_id(self) -> str:
        """An employer's or payer's number at a state."""
        forms = ("{}-{}", "{}{}", "0{}-{}", "WTH{}{}", "{} {}")
        return self.dice.choice(forms).format(self.digits(4), self.digits(4))

    def phone(self) -> str:
        """A telephone number that nobody has."""
        return f"({self.dice.randint(201, 989)}) 555-01{self.dice.randint(10, 99)}"


def wage_facts(
    inventor: Inventor,
    year: int,
    *,
    states: Sequence[str] = (),
    local: bool = False,
    codes: Sequence[str] = (),
    ticks: Sequence[str] = (),
    other: Sequence[str] = (),
    tips: bool = False,
) -> dict[str, str | Decimal]:
    """The facts of a W-2."""
    cent = Decimal("0.01")
    wages = inventor.money(9_000, 148_000)
    deferred = inventor.money(400, 6_000) if codes else Decimal(0)
    social = wages + deferred
    facts: dict[str, str | Decimal] = {
        "tax_year": str(year),
        "employee_ssn": inventor.ssn(),
        "employer_ein": inventor.ein(),
        "employer_name": inventor.dice.choice(inventor.pool.firms),
        "employer_street": inventor.street(),
        "employer_city": inventor.city(),
        "employee_name": inventor.person(),
        "employee_street": inventor.street(),
        "employee_city": inventor.city(),
        "control_number": f"{inventor.digits(6)} {inventor.dice.choice(('RVX', 'K4D', 'MP2', 'AAB'))}",
        "wages_tips": wages,
        "federal_tax_withheld": (wages * Decimal("0.1137")).quantize(cent),
        "ss_wages": social,
        "ss_tax_withheld": (social * Decimal("0.062")).quantize(cent),
        "medicare_wages": social,
        "medicare_tax_withheld": (social * Decimal("0.0145")).quantize(cent),
    }
    if tips:
        facts["ss_wages"] = social - 2000
        facts["ss_tax_withheld"] = (social * Decimal("0.062")).quantize(cent)
        facts["box_7"] = Decimal("2000.00")
        facts["box_10"] = inventor.money(800, 5_000)
    for letter, code in zip("abcd", codes, strict=False):
        facts[f"box_12{letter}_code"] = code
        facts[f"box_12{letter}_amount"] = deferred if letter == "a" else inventor.money(40, 9_000)
    for each in ticks:
        facts[f"box_13_{each}"] = "X"
    for number, word in enumerate(other):
        end = "" if number == 0 else "2"
        facts[f"box_14_word{end}"] = word
        facts[f"box_14_amount{end}"] = inventor.money(30, 1_900)
    for number, state in enumerate(states):
        end = "" if number == 0 else "_2"
        share = wages if len(states) == 1 else (wages * Decimal("0.5")).quantize(cent) - number * 150
        facts |= {
            f"box_15{end}_state": state,
            f"box_15{end}_id": inventor.state_id(),
            f"box_16{end}": share,
            f"box_17{end}": (share * Decimal("0.0431")).quantize(cent),
        }
        if local:
            facts |= {
                f"box_18{end}": share - 25,
                f"box_19{end}": (share * Decimal("0.0118")).quantize(cent),
                f"box_20{end}": inventor.pool.localities[number % len(inventor.pool.localities)],
            }
    return facts


def payment_facts(inventor: Inventor, year: int, *, bank: bool, state: str = "") -> dict[str, str | Decimal]:
    """Payer, recipient and year of a 1099."""
    facts: dict[str, str | Decimal] = {
        "tax_year": str(year),
        "payer_name": inventor.dice.choice(inventor.pool.banks if bank else inventor.pool.firms),
        "payer_street": inventor.street(),
        "payer_city": inventor.city(),
        "payer_phone": inventor.phone(),
        "payer_tin": inventor.ein(),
        "recipient_tin": inventor.ssn(),
        "recipient_name": inventor.person(),
        "recipient_street": inventor.street(),
        "recipient_city": inventor.city(),
        "account_number": f"{inventor.digits(4)}-{inventor.digits(5)}",
    }
    if state:
        facts |= {"_state": state, "_state_id": inventor.state_id()}
    return facts


def interest_facts(inventor: Inventor, year: int, *, more: int = 0, state: str = "") -> dict[str, str | Decimal]:
    """The facts of a 1099-INT, with up to five further boxes."""
    facts = payment_facts(inventor, year, bank=True, state=state)
    interest = inventor.money(11, 4_800)
    facts["interest_income"] = interest
    further: list[tuple[str, str | Decimal]] = [
        ("box_4", (interest * Decimal("0.24")).quantize(Decimal("0.01"))),
        ("early_withdrawal_penalty", inventor.money(5, 90)),
        ("box_3", inventor.money(20, 900)),
        ("box_8", inventor.money(200, 900)),
        ("box_9", inventor.money(10, 190)),
        ("box_11", inventor.money(3, 80)),
    ]
    facts |= dict(further[:more])
    if state:
        facts |= {"box_15": state, "box_16": str(facts["_state_id"]), "box_17": inventor.money(2, 10)}
    return facts


def dividend_facts(inventor: Inventor, year: int, *, more: int = 0) -> dict[str, str | Decimal]:
    """The facts of a 1099-DIV, with up to seven further boxes."""
    facts = payment_facts(inventor, year, bank=True)
    total = inventor.money(120, 9_800)
    facts |= {"total_dividends": total, "qualified_dividends": (total * Decimal("0.71")).quantize(Decimal("0.01"))}
    gains = inventor.money(300, 5_000)
    further: list[tuple[str, str | Decimal]] = [
        ("box_2a", gains),
        ("box_4", (total * Decimal("0.24")).quantize(Decimal("0.01"))),
        ("box_7", inventor.money(4, 110)),
        ("box_3", inventor.money(10, 400)),
        ("box_2b", (gains * Decimal("0.08")).quantize(Decimal("0.01"))),
        ("box_5", (total * Decimal("0.06")).quantize(Decimal("0.01"))),
        ("box_12" if year > 2020 else "box_11", inventor.money(15, 700)),
    ]
    return facts | dict(further[:more])


def rent_facts(inventor: Inventor, year: int, names: Sequence[str], *, state: str = "") -> dict[str, str | Decimal]:
    """The facts of a 1099-MISC with amounts in the named boxes."""
    facts = payment_facts(inventor, year, bank=False, state=state)
    for name in names:
        facts[name] = "X" if name == "box_7" and year > 2019 else inventor.money(610, 24_000)
    if state:
        last = {"box_16": inventor.money(20, 500), "box_18": inventor.money(600, 9_000)}
        facts |= {"box_17_state": state, "box_17_id": str(facts["_state_id"]), **last}
    return facts


def contractor_facts(
    inventor: Inventor, year: int, *, tax: bool = False, state: str = "", sales: bool = False
) -> dict[str, str | Decimal]:
    """The facts of a 1099-NEC."""
    facts = payment_facts(inventor, year, bank=False, state=state)
    paid = inventor.money(640, 88_000)
    facts["nonemployee_compensation"] = paid
    if tax:
        facts["federal_tax_withheld"] = (paid * Decimal("0.24")).quantize(Decimal("0.01"))
    if sales:
        facts["box_2"] = "X"
    if state:
        facts |= {
            "box_5": (paid * Decimal("0.05")).quantize(Decimal("0.01")),
            "box_6_state": state,
            "box_6_id": str(facts["_state_id"]),
            "box_7": paid,
        }
    return facts


def pension_facts(inventor: Inventor, year: int, code: str, *, state: str = "") -> dict[str, str | Decimal]:
    """The facts of a 1099-R; state boxes by the year's numbers."""
    facts = payment_facts(inventor, year, bank=True, state=state)
    gross = inventor.money(2_200, 74_000)
    facts |= {
        "box_1": gross,
        "box_2a": gross - inventor.money(0, 900),
        "box_4": (gross * Decimal("0.2")).quantize(Decimal("0.01")),
        "box_7": code,
    }
    if state:
        first = 14 if year > 2019 else 12
        facts |= {
            f"box_{first}": (gross * Decimal("0.04")).quantize(Decimal("0.01")),
            f"box_{first + 1}_state": state,
            f"box_{first + 1}_id": str(facts["_state_id"]),
            f"box_{first + 2}": gross,
        }
    return facts


def mortgage_facts(inventor: Inventor, year: int, *, more: bool = True) -> dict[str, str | Decimal]:
    """The facts of a 1098: the lender is the recipient, the borrower the payer."""
    lender = payment_facts(inventor, year, bank=True)
    turned = {"payer": "recipient", "recipient": "payer"}
    facts: dict[str, str | Decimal] = {}
    for name, fact in lender.items():
        start, _, end = name.partition("_")
        facts[f"{turned[start]}_{end}" if start in turned else name] = fact
    facts |= {
        "box_1": inventor.money(1_900, 23_000),
        "box_2": inventor.money(61_000, 480_000),
        "box_3": f"{inventor.dice.randint(1, 12):02}/{inventor.dice.randint(1, 28):02}/{year - inventor.dice.randint(1, 9)}",
    }
    if more:
        facts |= {"box_5": inventor.money(200, 1_900), "box_9": "1", "box_10": inventor.money(1_100, 8_000)}
    return facts


def partner_facts(inventor: Inventor, year: int, *, loss: bool = False, more: int = 3) -> dict[str, str | Decimal]:
    """The facts of a Schedule K-1 of a partnership."""
    firm = inventor.dice.choice(inventor.pool.firms).replace("Inc.", "LP").replace("Corp.", "LLC")
    facts: dict[str, str | Decimal] = {
        "tax_year": str(year),
        "partnership_ein": inventor.ein(),
        "partnership_name": firm,
        "partnership_street": inventor.street(),
        "partnership_city": inventor.city(),
        "partner_tin": inventor.ssn(),
        "partner_name": inventor.person(),
        "partner_street": inventor.street(),
        "partner_city": inventor.city(),
        "ordinary_income": inventor.money(900, 66_000) * (-1 if loss else 1),
    }
    whole = inventor.money(200, 4_000)
    further: list[tuple[str, Decimal]] = [
        ("box_5", inventor.money(10, 900)),
        ("box_2", inventor.money(300, 9_000) * (-1 if loss else 1)),
        ("box_6a", whole),
        ("box_9a", inventor.money(100, 7_000)),
        ("box_6b", (whole * Decimal("0.6")).quantize(Decimal("0.01"))),
        ("box_12", inventor.money(300, 6_000)),
    ]
    return facts | dict(further[:more])


def without(facts: Facts, *names: str) -> dict[str, str | Decimal]:
    """The facts with some values left out, as a sender forgot them."""
    return {name: fact for name, fact in facts.items() if name not in names}


def only_year(facts: Facts) -> dict[str, str | Decimal]:
    """A form that nobody has filled in."""
    return {"tax_year": facts["tax_year"]}


# --------------------------------------------------------------------------------------------------- pictures


def _save_pictures(pages: Sequence[tuple[Image.Image, int, float]], out: Path) -> None:
    document = pymupdf.open()
    for picture, quality, points in pages:
        stream = io.BytesIO()
        picture.save(stream, "JPEG", quality=quality)
        page = document.new_page(width=picture.width * points, height=picture.height * points)
        page.insert_image(page.rect, stream=stream.getvalue())
    document.save(out, no_new_id=True)
    document.close()


def _page_picture(page: Any, dpi: int) -> Image.Image:
    pixels = page.get_pixmap(dpi=dpi, colorspace=pymupdf.csGRAY)
    return Image.frombytes("L", (pixels.width, pixels.height), pixels.samples)


def scan(pdf: Path, out: Path) -> None:
    """Print the pages and scan them: 150 to 200 dpi, up to 1.2 degrees askew, grey with noise."""
    dice = random.Random(f"scan {pdf.stem}")
    noise = np.random.default_rng(dice.randint(0, 2**31))
    pages = []
    with pymupdf.open(pdf) as document:
        for page in document:
            dpi = dice.choice((150, 170, 185, 200))
            picture = _page_picture(page, dpi)
            picture = picture.rotate(dice.uniform(-1.2, 1.2), Image.Resampling.BICUBIC, fillcolor=255)
            picture = picture.filter(ImageFilter.GaussianBlur(dice.uniform(0.3, 0.6)))
            grey = np.asarray(picture, dtype=np.float32) * dice.uniform(0.88, 0.97) + dice.uniform(2, 10)
            grey += noise.normal(0, dice.uniform(3, 9), grey.shape)
            pages.append((Image.fromarray(grey.clip(0, 255).astype(np.uint8)), dice.randint(70, 88), 72 / dpi))
    _save_pictures(pages, out)


def photograph(pdf: Path, out: Path) -> None:
    """Photograph the pages on a table: perspective, a shadow, cut close to an edge of the paper."""
    dice = random.Random(f"photo {pdf.stem}")
    noise = np.random.default_rng(dice.randint(0, 2**31))
    pages = []
    with pymupdf.open(pdf) as document:
        for page in document:
            paper = _page_picture(page, 220)
            wide, high = paper.size
            edge = int(0.035 * wide)
            desk = Image.new("L", (wide + 2 * edge, high + 2 * edge), dice.randint(60, 130))
            desk.paste(paper, (edge, edge))
            full_wide, full_high = desk.size
            lean = 0.028
            corners = [
                (
                    dice.uniform(-lean, lean) * full_wide + x * full_wide,
                    dice.uniform(-lean, lean) * full_high + y * full_high,
                )
                for x, y in ((0, 0), (0, 1), (1, 1), (1, 0))
            ]
            desk = desk.transform(
                desk.size,
                Image.Transform.PERSPECTIVE,
                _perspective(corners, full_wide, full_high),
                Image.Resampling.BICUBIC,
                fillcolor=95,
            )
            # One side is cut at the edge of the paper or a little inside of it; the print keeps clear of that.
            cut = int(dice.uniform(0.8, 1.3) * edge)
            side = dice.choice(("left", "right", "top", "bottom"))
            box = {
                "left": (cut, 0, full_wide, full_high),
                "right": (0, 0, full_wide - cut, full_high),
                "top": (0, cut, full_wide, full_high),
                "bottom": (0, 0, full_wide, full_high - cut),
            }[side]
            desk = desk.crop(box)
            longest = dice.randint(1600, 2200)
            scale = longest / max(desk.size)
            desk = desk.resize((int(desk.width * scale), int(desk.height * scale)), Image.Resampling.LANCZOS)
            desk = desk.filter(ImageFilter.GaussianBlur(dice.uniform(0.2, 0.6)))
            light = np.asarray(desk, dtype=np.float32) * _shadow(desk.size, dice)
            light += noise.normal(0, dice.uniform(2, 5), light.shape)
            tint = np.array([1.0, dice.uniform(0.96, 0.99), dice.uniform(0.86, 0.95)], dtype=np.float32)
            colour = (light[..., None] * tint).clip(0, 255).astype(np.uint8)
            pages.append((Image.fromarray(colour), dice.randint(60, 75), 792 / longest))
    _save_pictures(pages, out)


def _perspective(corners: Sequence[tuple[float, float]], wide: int, high: int) -> list[float]:
    """The eight numbers that take the picture's corners to ``corners`` of the source."""
    goals = ((0, 0), (0, high), (wide, high), (wide, 0))
    rows, results = [], []
    for (x, y), (u, v) in zip(goals, corners, strict=True):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
        results += [u, v]
    return [float(number) for number in np.linalg.solve(np.array(rows, float), np.array(results, float))]


def _shadow(size: tuple[int, int], dice: random.Random) -> Any:
    """Brightness over the picture: a slope of light and the soft edge of a shadow."""
    wide, high = size
    across = np.linspace(0, 1, wide, dtype=np.float32)[None, :]
    down = np.linspace(0, 1, high, dtype=np.float32)[:, None]
    slope = dice.uniform(-0.2, 0.2) * across + dice.uniform(-0.2, 0.2) * down
    turn, place = dice.uniform(-0.8, 0.8), dice.uniform(0.25, 0.75)
    dark = 1 / (1 + np.exp(-(across + turn * down - place - turn / 2) * dice.uniform(9, 25)))
    return (0.9 + slope - dice.uniform(0.15, 0.35) * dark).clip(0.35, 1.0)
