"""What both halves share: the record of a fault, a pen for small statements, and edits of a printed page."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Any, Literal, cast

import pymupdf
from statements.drawn import Drawn, Truth

Plain = dict[str, Any]
"""A template as plain values."""

Severity = Literal["low", "medium", "high", "critical"]
Effect = Literal[
    "sign", "date", "amount", "row missing", "row invented", "description", "balance", "check number", "account", "order",
    "sum unused", "sum wrong",
]  # fmt: skip
ROW_EFFECTS: tuple[Effect, ...] = (
    "sign", "date", "amount", "row missing", "row invented", "description", "balance", "check number", "account",
)  # fmt: skip

#: The categories of specification 004 under which a fault may be reported.
SIGNS = ("sign_logic", "reconciliation_strategy", "column_mapping")
DATES = ("date_format", "column_mapping", "reconciliation_strategy")
ROWS = ("bbox_accuracy", "reconciliation_strategy", "column_mapping", "multiline_handling", "provenance", "date_format")
COLUMNS = ("column_mapping", "bbox_accuracy", "reconciliation_strategy", "sign_logic")
TEXTS = ("multiline_handling", "bbox_accuracy", "column_mapping", "other")
SUMS = ("reconciliation_strategy", "sign_logic", "bbox_accuracy", "provenance")


class NotPlantable(Exception):
    """The fault does not fit this statement or template."""


@dataclass(frozen=True)
class FaultKind:
    """One kind of fault, and how it must be reported."""

    name: str
    severity: Severity
    """The mildest severity that is right."""
    categories: tuple[str, ...]
    statements: tuple[str, ...]
    """Shapes of ``statements.drawn`` or names of the half's own drawings."""
    spoil_template: Callable[[Plain, Drawn, random.Random], None] | None = None
    spoil_statement: Callable[[Drawn, random.Random], bytes] | None = None
    """Returns the spoilt PDF; the truth stays that of the statement before."""
    effects: tuple[Effect, ...] = ROW_EFFECTS
    """The differences from the truth that count, of which one is needed."""


Drawing = Callable[[int], Drawn]


@dataclass
class Pen:
    """Draws a statement and writes down its rows."""

    font: str = "helv"
    size: float = 9.0
    width: float = 595.0
    height: float = 842.0
    truth: list[Truth] = field(default_factory=list)
    y: float = 60.0

    def __post_init__(self) -> None:
        self._document: Any = pymupdf.open()  # type: ignore[no-untyped-call]
        self.turn_page()

    @property
    def page_number(self) -> int:
        """Return the number of the page that is drawn on, from 1."""
        return len(self._document)

    def turn_page(self) -> None:
        """Begin another page."""
        self._page = self._document.new_page(width=self.width, height=self.height)
        self.y = 70.0

    def left(self, x: float, text: str, size: float | None = None, y: float | None = None) -> None:
        """Print text that begins at x."""
        self._page.insert_text(
            (x, self.y if y is None else y), text, fontsize=size or self.size, fontname=self.font,
            encoding=pymupdf.TEXT_ENCODING_LATIN,
        )  # fmt: skip

    def right(self, x: float, text: str, size: float | None = None, y: float | None = None) -> None:
        """Print text that ends at x."""
        length = pymupdf.get_text_length(text, fontname=self.font, fontsize=size or self.size)
        self.left(x - length, text, size, y)

    def rule(self, x0: float = 40.0, x1: float = 555.0) -> None:
        """Draw a line below the text."""
        self._page.draw_line((x0, self.y + 3), (x1, self.y + 3), width=0.5)

    def row(self, cells: Iterable[tuple[float, str, str]], step: float | None = None) -> None:
        """Print cells, each with its x, its side (l or r) and its text; then go down."""
        for x, side, text in cells:
            if text:
                (self.right if side == "r" else self.left)(x, text)
        self.y += step or self.size * 1.6

    def book(
        self, day: date, description: str, amount: Decimal, balance: Decimal | None = None, *, account: int = 0, check_number: str = "",
    ) -> None:  # fmt: skip
        """Write down a row that is about to be printed here."""
        self.truth.append(Truth(day.isoformat(), description, amount, balance, self.page_number, check_number, account))

    def finish(self, sums: int, foot: str = "") -> Drawn:
        """Return the statement; ``foot`` is printed on every page, with {n} and {of}."""
        for number, page in enumerate(self._document, 1):
            if foot:
                page.insert_text(
                    (250, self.height - 24), foot.format(n=number, of=len(self._document)), fontsize=7, fontname=self.font,
                    encoding=pymupdf.TEXT_ENCODING_LATIN,
                )  # fmt: skip
        return Drawn(bytes(self._document.tobytes()), tuple(self.truth), sums)


# Edits of templates


def rename_columns(plain: Plain, **names: str) -> None:
    """Give columns other meanings; those that are absent do not matter."""
    for column in plain["column"]:
        column["name"] = names.get(column["name"], column["name"])


def find_column(plain: Plain, *names: str) -> Plain:
    """Return the first column with one of these names."""
    for name in names:
        for column in plain["column"]:
            if column["name"] == name:
                return cast(Plain, column)
    raise NotPlantable


def drop_columns(plain: Plain, *names: str) -> None:
    """Remove columns."""
    plain["column"] = [column for column in plain["column"] if column["name"] not in names]


def drop_sums(plain: Plain) -> None:
    """Use no printed sum and no running balance."""
    plain["reconciliation"] = {"opening": [], "closing": [], "total": []}
    rename_columns(plain, balance="other")


def invert_direction(direction: str) -> str:
    """Return the other direction."""
    return {"deposit": "withdrawal", "withdrawal": "deposit"}.get(direction, direction)


# Edits of statements


@dataclass(frozen=True)
class Span:
    """Text that was printed at once."""

    page: int
    text: str
    box: tuple[float, float, float, float]
    origin: tuple[float, float]
    size: float
    font: str


def list_spans(document: Any) -> list[Span]:
    """Return the texts of all pages, from top to bottom."""
    return [
        Span(number, span["text"].strip(), tuple(span["bbox"]), tuple(span["origin"]), span["size"], span["font"])
        for number, page in enumerate(document)
        for block in page.get_text("dict")["blocks"]
        for line in block.get("lines", ())
        for span in line["spans"]
        if span["text"].strip()
    ]


def edit_texts(pdf: bytes, edits: Callable[[Sequence[Span]], Sequence[tuple[Span, str]]]) -> bytes:
    """Print other texts in place of some; an empty text only removes. Numbers stay aligned at the right."""
    document: Any = pymupdf.open("pdf", pdf)  # type: ignore[no-untyped-call]
    changes = edits(list_spans(document))
    if not changes:
        raise NotPlantable
    for span, _ in changes:
        x0, y0, x1, y1 = span.box
        middle, half = (y0 + y1) / 2, (y1 - y0) * 0.2
        document[span.page].add_redact_annot((x0 + 0.5, middle - half, x1 - 0.5, middle + half), fill=False)
    for number in {span.page for span, _ in changes}:
        document[number].apply_redactions(images=0, graphics=0)
    for span, text in changes:
        if not text:
            continue
        font = "tiro" if "Times" in span.font else "helv"
        x = span.origin[0]
        if span.text[-1:].isdigit() and any(mark in span.text for mark in ".,"):
            x = span.box[2] - pymupdf.get_text_length(text, fontname=font, fontsize=span.size)
        document[span.page].insert_text(
            (x, span.origin[1]), text, fontsize=span.size, fontname=font, encoding=pymupdf.TEXT_ENCODING_LATIN
        )
    return bytes(document.tobytes())


def list_neighbours(spans: Sequence[Span], span: Span) -> list[Span]:
    """Return the texts of the same line, from left to right."""
    neighbours = [other for other in spans if other.page == span.page and abs(other.origin[1] - span.origin[1]) < 1]
    return sorted(neighbours, key=lambda other: other.box[0])


def change_digit(text: str, rng: random.Random, first: int = 0) -> str:
    """Change one digit of a text, not one of the ``first`` digits."""
    positions = [position for position, character in enumerate(text) if character.isdigit()][first:]
    if not positions:
        raise NotPlantable
    position = rng.choice(positions)
    digit = rng.choice([other for other in "123456789" if other != text[position]])
    return text[:position] + digit + text[position + 1 :]
