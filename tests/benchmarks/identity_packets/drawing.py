"""Sheets: pages on which every printed identity is noted as it is printed."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

import pymupdf

from .persons import Card, Person, Pool, draw_day, write_day

WIDTH, HEIGHT = 612, 792
FACES = {"sans": ("helv", "hebo"), "serif": ("tiro", "tibo"), "mono": ("cour", "cobo")}


@dataclass
class Setting:
    """The people and papers around a document: clinicians, relatives, insurer, dates."""

    rng: random.Random
    pool: Pool
    card: Card
    clinicians: list[str]
    relative: str
    relative_born: date
    relative_word: str
    insurer: str
    member: str
    street: str
    title: str
    half: str

    @property
    def seen(self) -> str:
        return write_day(self.card.seen, "mdy")

    def write_relative(self, order: str = "last_first") -> str:
        family, given = self.card.person.family, self.relative
        return f"{family}, {given}" if order == "last_first" else f"{given} {family}"


def draw_setting(rng: random.Random, pool: Pool, card: Card, title: str, half: str) -> Setting:
    person: Person = card.person
    clinicians = rng.sample(pool.clinicians, 4)
    if rng.random() < 0.06:
        clinicians[0] = f"{rng.choice(pool.men)[0]} {person.family}"
    adult = person.adult
    names = pool.women if not adult or person.sex == "M" else pool.men
    relative = rng.choice([pair[0] for pair in names if pair[0] not in (person.given, person.middle)])
    born = (
        draw_day(rng, 1978, 1990)
        if not adult
        else draw_day(rng, max(1930, person.born.year - 6), min(2001, person.born.year + 6))
    )
    return Setting(
        rng,
        pool,
        card,
        clinicians,
        relative,
        born,
        "spouse" if adult else "mother",
        rng.choice(pool.insurers),
        f"{rng.choice('WXYZ')}{rng.choice('ABCDE')}{rng.randint(10**8, 10**9 - 1)}",
        f"{rng.randint(12, 989)} {rng.choice(pool.streets)}",
        title,
        half,
    )


class Sheet:
    """One page; what `show_*` returns is noted as printed on it."""

    def __init__(self, pdf: pymupdf.Document, setting: Setting, number: int, face: str, size: float):
        self.pdf, self.setting, self.number, self.face, self.size = pdf, setting, number, face, size
        self.printed_name: str | None = None
        self.printed_birth: str | None = None
        self.numbers: list[str] = []
        self.number_kinds: list[str] = []
        self.printed: list[str] = []

    @property
    def page(self) -> pymupdf.Page:
        return self.pdf[self.number - 1]

    @property
    def card(self) -> Card:
        return self.setting.card

    def show_name(self, order: str) -> str:
        name = self.card.write_name(order)
        self.printed_name = self.printed_name or name
        self.printed.append(name)
        return name

    def show_split_name(self) -> tuple[str, str]:
        """Family and given name in cells of their own; noted as the two with a comma between."""
        family, given = self.card.write_name("family"), self.card.write_name("given")
        self.printed_name = self.printed_name or f"{family}, {given}"
        self.printed += [family, given]
        return family, given

    def show_birth(self, style: str) -> str:
        birth = self.card.write_birth(style)
        self.printed_birth = self.printed_birth or birth
        self.printed.append(birth)
        return birth

    def show_number(self, kind: str = "record") -> str:
        card = self.card
        number = {
            "record": card.record_number,
            "account": card.account,
            "accession": card.accession,
            "visit": card.visit,
        }[kind]
        if number not in self.numbers:
            self.numbers.append(number)
            self.number_kinds.append(kind)
        self.printed.append(number)
        return number

    def write(
        self, x: float, y: float, text: str, size: float | None = None, bold: bool = False, face: str | None = None
    ) -> float:
        """Write one line with its base at y; returns the x behind it."""
        font = FACES[face or self.face][bold]
        size = size or self.size
        self.page.insert_text((x, y), text, fontname=font, fontsize=size)
        return x + pymupdf.get_text_length(text, fontname=font, fontsize=size)

    def write_right(self, x: float, y: float, text: str, size: float | None = None, bold: bool = False) -> None:
        font = FACES[self.face][bold]
        self.write(x - pymupdf.get_text_length(text, fontname=font, fontsize=size or self.size), y, text, size, bold)

    def write_middle(self, y: float, text: str, size: float | None = None, bold: bool = False) -> None:
        font = FACES[self.face][bold]
        self.write(
            (WIDTH - pymupdf.get_text_length(text, fontname=font, fontsize=size or self.size)) / 2, y, text, size, bold
        )

    def write_pair(self, x: float, y: float, label: str, text: str, gap: float, size: float | None = None) -> None:
        self.write(x, y, label, size, bold=True)
        self.write(x + gap, y, text, size)

    def write_wrapped(
        self, x: float, y: float, width: float, text: str, size: float | None = None, bold: bool = False
    ) -> float:
        for line in wrap(text, FACES[self.face][bold], size or self.size, width):
            self.write(x, y, line, size, bold)
            y += (size or self.size) * 1.3
        return y

    def draw_line(self, y: float, x: float = 54, to: float = WIDTH - 54, weight: float = 0.8) -> None:
        self.page.draw_line((x, y), (to, y), width=weight)

    def draw_box(
        self, x: float, y: float, width: float, height: float, shade: float | None = None, weight: float = 0.8
    ) -> None:
        self.page.draw_rect(
            pymupdf.Rect(x, y, x + width, y + height),
            color=(0, 0, 0),
            width=weight,
            fill=None if shade is None else (shade,) * 3,
        )

    def draw_bars(self, x: float, y: float, width: float, height: float) -> None:
        """Bars that look like a barcode; they code nothing."""
        bars, end = random.Random(self.card.record_number), x + width
        while x < end:
            bar = bars.choice((0.7, 0.7, 1.4, 2.1))
            self.page.draw_rect(pymupdf.Rect(x, y, x + bar, y + height), color=None, fill=(0, 0, 0))
            x += bar + bars.choice((0.9, 0.9, 1.8))


def wrap(text: str, font: str, size: float, width: float) -> list[str]:
    lines, line = [], ""
    for word in text.split():
        longer = f"{line} {word}".strip()
        if line and pymupdf.get_text_length(longer, fontname=font, fontsize=size) > width:
            lines.append(line)
            line = word
        else:
            line = longer
    return [*lines, line] if line else lines


@dataclass(frozen=True)
class Layout:
    """`begin` draws the head of a first page, `follow` of a later one (both return the y of the body), `finish` draws feet with the page count.

    Without `types` it suits a document of any type.
    """

    name: str
    family: str
    begin: Callable[[Sheet], float]
    follow: Callable[[Sheet], float] | None = None
    finish: Callable[[Sheet, int], None] | None = None
    face: str = "serif"
    size: float = 10.5
    margin: float = 60
    bottom: float = 722
    every_page: bool = False
    body: str = "text"
    grown_only: bool = False
    types: tuple[str, ...] = ()


@dataclass
class Document:
    pdf: pymupdf.Document
    sheets: list[Sheet]
    type: str
    layout: Layout
    setting: Setting
    person: str = ""


def is_heading(paragraph: str) -> bool:
    return len(paragraph) < 60 and (paragraph.isupper() or paragraph.endswith(":"))


def lay_out(
    layout: Layout, setting: Setting, kind: str, paragraphs: list[str], most_pages: int, signature: str
) -> Document:
    """Flow the paragraphs over at most so many pages; then feet."""
    pdf, sheets = pymupdf.open(), []

    def turn() -> float:
        pdf.new_page(width=WIDTH, height=HEIGHT)
        sheet = Sheet(pdf, setting, len(sheets) + 1, layout.face, layout.size)
        sheets.append(sheet)
        if sheet.number == 1:
            return layout.begin(sheet)
        return layout.follow(sheet) if layout.follow else 66

    y, step = turn(), layout.size * 1.32
    full = False
    for paragraph in [*paragraphs, signature]:
        bold = is_heading(paragraph)
        for line in wrap(paragraph, FACES[layout.face][bold], layout.size, WIDTH - 2 * layout.margin):
            if y > layout.bottom:
                if len(sheets) == most_pages:
                    full = True
                    break
                y = turn()
            sheets[-1].write(layout.margin, y, line, bold=bold)
            y += step
        if full:
            break
        y += 4
    for sheet in sheets:
        if layout.finish:
            layout.finish(sheet, len(sheets))
    return Document(pdf, sheets, kind, layout, setting)


def check_sheet(sheet: Sheet) -> None:
    """The truth must be what stands on the page."""
    text = squeeze(sheet.page.get_text())
    for words in sheet.printed:
        if squeeze(words) not in text:
            raise ValueError(f"{sheet.setting.card.institution.name}: not on the page: {words}")


def squeeze(text: str) -> str:
    return re.sub(r"\s+", "", text)
