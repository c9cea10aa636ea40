"""A manuscript becomes a PDF: letterhead, ruled tables, check boxes, signature lines, running headers and footers.

The same manuscript gives the same bytes every time: no clock, no random file id, and only the fonts that PDF viewers
bring along. Text that does not fit on its page is an error, never cut off silently.
"""

from __future__ import annotations

import io
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from evalkit.samples.manuscript import Block, Kind, Manuscript, Part, blocks

Pdf = Any
"""A document or page of PyMuPDF, whose own annotations leave most methods untyped."""

WIDTH, HEIGHT = 612.0, 792.0
LEFT, RIGHT = 54.0, 558.0
BOTTOM = 738.0
"""Body text ends here; the footer stands below."""

#: regular and bold of each family, by the names PyMuPDF has for the standard fonts
FONTS = {"sans": ("helv", "hebo"), "serif": ("tiro", "tibo"), "mono": ("cour", "cobo")}
BLACK = (0.0, 0.0, 0.0)
GREY = (0.35, 0.35, 0.35)
LEADING = 1.36
BULLET = "\x95"
"""The round bullet in the code page of the standard fonts, the only one that they are drawn with."""
SCAN_DPI = 110
POOR_DPI = 32
"""So coarse that no letter can be told from the next."""
SKEW = (0.9, -0.7)
"""Degrees by which the first, second, third … sheet lay askew on the scanner's glass, in turns."""

Colour = tuple[float, float, float]
Word = tuple[str, str]
"""Text and font name."""


def draw_pdf(manuscript: Manuscript) -> bytes:
    """The manuscript's PDF. ValueError where a page's text does not fit."""
    document = _empty_pdf()
    for part in manuscript.part:
        for number in range(1, len(part.pages) + 1):
            sheet = document.new_page(width=WIDTH, height=HEIGHT)
            _draw_page(sheet, part, number)
            if manuscript.fax:
                strip = f"{manuscript.fax}   P. {document.page_count:02}/{manuscript.total_pages:02}"
                sheet.insert_text((LEFT, 18), strip, fontname="cour", fontsize=7.5)
    if manuscript.scanned:
        document = _scanned(document, POOR_DPI if manuscript.scanned == "poorly" else SCAN_DPI)
    document.set_metadata({"title": manuscript.title, "producer": "evalkit samples", "author": "no real patient"})
    return bytes(document.tobytes(garbage=3, deflate=True, no_new_id=True))


def _empty_pdf() -> Pdf:
    import pymupdf

    new: Callable[[], Pdf] = pymupdf.open
    return new()


def _draw_page(sheet: Pdf, part: Part, number: int) -> None:
    text = part.pages[number - 1]
    shape = sheet.new_shape()
    pen = _Pen(shape, part)
    if text.strip():
        if number == 1:
            _letterhead(pen)
            _patient_strip(pen)
        else:
            _running_header(pen)
        for block in blocks(text):
            DRAW[block.kind](pen, block)
        if pen.y > BOTTOM:
            raise ValueError(f"page {number} of {part.organisation!r} is {pen.y - BOTTOM:.0f} points too long")
        _footer(pen, number)
    shape.commit()


@dataclass
class _Pen:
    """Where the next line goes on the page that is being drawn."""

    shape: Any
    part: Part
    y: float = field(default=40.0)
    """The top of the next block, downwards from the page's upper edge."""

    @property
    def regular(self) -> str:
        return FONTS[self.part.font][0]

    @property
    def bold(self) -> str:
        return FONTS[self.part.font][1]

    def put(self, x: float, y: float, text: str, font: str, size: float, colour: Colour = BLACK) -> None:
        """One run of text on a baseline."""
        self.shape.insert_text((x, y), text, fontname=font, fontsize=size, color=colour)

    def rule(self, x0: float, y0: float, x1: float, y1: float, width: float = 0.6, colour: Colour = BLACK) -> None:
        """A straight line."""
        self.shape.draw_line((x0, y0), (x1, y1))
        self.shape.finish(color=colour, width=width)

    def box(
        self, x0: float, y0: float, x1: float, y1: float, *, fill: Colour | None = None, colour: Colour | None = BLACK
    ) -> None:
        """A rectangle, filled or not."""
        self.shape.draw_rect((x0, y0, x1, y1))
        self.shape.finish(color=colour, fill=fill, width=0.6)

    def words(self, text: str) -> list[Word]:
        """The words of a text whose ``**…**`` are bold."""
        runs = re.split(r"\*\*", text)
        return [(word, self.bold if i % 2 else self.regular) for i, run in enumerate(runs) for word in run.split()]

    def flow(self, words: list[Word], x0: float, x1: float, size: float, colour: Colour = BLACK) -> None:
        """Words in lines between two edges; moves down."""
        for line in _wrapped(words, x1 - x0, size):
            self.y += size * LEADING
            self.line(line, x0, self.y - size * (LEADING - 1), size, colour)

    def line(self, words: list[Word], x: float, y: float, size: float, colour: Colour = BLACK) -> None:
        """Words on one baseline, words of one font in one run."""
        start = 0
        for end in range(1, len(words) + 1):
            if end == len(words) or words[end][1] != words[start][1]:
                font = words[start][1]
                run = " ".join(text for text, _ in words[start:end])
                self.put(x, y, run, font, size, colour)
                x += _width(run + " ", font, size)
                start = end


@cache
def _width(text: str, font: str, size: float) -> float:
    import pymupdf

    return float(pymupdf.get_text_length(text, fontname=font, fontsize=size))


def _wrapped(words: list[Word], width: float, size: float) -> list[list[Word]]:
    lines: list[list[Word]] = []
    used = 0.0
    for text, font in words:
        space, length = _width(" ", font, size), _width(text, font, size)
        if lines and used + space + length <= width:
            lines[-1].append((text, font))
            used += space + length
        else:
            lines.append([(text, font)])
            used = length
    return lines


# ── the paper ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _letterhead(pen: _Pen) -> None:
    part = pen.part
    pen.box(LEFT, pen.y, LEFT + 26, pen.y + 26, fill=part.colour, colour=part.colour)
    # The cross of a hospital's sign: a letterhead without any mark looks like no hospital's.
    pen.box(LEFT + 11, pen.y + 5, LEFT + 15, pen.y + 21, fill=(1, 1, 1), colour=None)
    pen.box(LEFT + 5, pen.y + 11, LEFT + 21, pen.y + 15, fill=(1, 1, 1), colour=None)
    pen.put(LEFT + 36, pen.y + 12, part.organisation, pen.bold, 14, part.colour)
    y = pen.y + 24
    for line in part.address:
        pen.put(LEFT + 36, y, line, pen.regular, 8, GREY)
        y += 10
    pen.y = max(y - 4, pen.y + 32)
    pen.rule(LEFT, pen.y, RIGHT, pen.y, 1.4, part.colour)
    pen.y += 8


def _patient_strip(pen: _Pen) -> None:
    fields = pen.part.patient
    if not fields:
        return
    columns, size, height = 3, 8.5, 15.0
    cell = (RIGHT - LEFT) / columns
    rows = -(-len(fields) // columns)
    pen.box(LEFT, pen.y, RIGHT, pen.y + rows * height, fill=(0.96, 0.96, 0.97), colour=GREY)
    for row in range(1, rows):
        pen.rule(LEFT, pen.y + row * height, RIGHT, pen.y + row * height, 0.4, GREY)
    for column in range(1, columns):
        x = LEFT + column * cell
        pen.rule(x, pen.y, x, pen.y + rows * height, 0.4, GREY)
    for i, (label, value) in enumerate(fields):
        words = [(f"{label}:", pen.bold), (value, pen.regular)]
        if len(_wrapped(words, cell - 8, size)) > 1:
            raise ValueError(f"patient field {label!r} is too long")
        pen.line(words, LEFT + 4 + i % columns * cell, pen.y + i // columns * height + 10.5, size)
    pen.y += rows * height + 6


def _running_header(pen: _Pen) -> None:
    if pen.part.running_header:
        pen.put(LEFT, pen.y + 8, pen.part.running_header, pen.regular, 8, GREY)
        pen.rule(LEFT, pen.y + 13, RIGHT, pen.y + 13, 0.6, pen.part.colour)
        pen.y += 20


def _footer(pen: _Pen, number: int) -> None:
    pen.rule(LEFT, 752, RIGHT, 752, 0.5, GREY)
    pen.put(LEFT, 763, pen.part.footer, pen.regular, 7.5, GREY)
    count = f"Page {number} of {len(pen.part.pages)}"
    pen.put(RIGHT - _width(count, pen.regular, 7.5), 763, count, pen.regular, 7.5, GREY)


# ── what stands on it ───────────────────────────────────────────────────────────────────────────────────────────────


def _title(pen: _Pen, block: Block) -> None:
    for line in block.lines:
        pen.y += 20
        pen.put((LEFT + RIGHT - _width(line, pen.bold, 13)) / 2, pen.y - 3, line, pen.bold, 13)
    pen.y += 4


def _heading(pen: _Pen, block: Block) -> None:
    (text,) = block.lines
    pen.y += 23
    pen.put(LEFT, pen.y - 4, text, pen.bold, pen.part.size + 1.5, pen.part.colour)
    pen.rule(LEFT, pen.y, RIGHT, pen.y, 0.4, pen.part.colour)
    pen.y += 2


def _paragraph(pen: _Pen, block: Block) -> None:
    pen.y += 3
    pen.flow(pen.words(block.lines[0]), LEFT, RIGHT, pen.part.size)
    pen.y += 4


def _item(pen: _Pen, block: Block) -> None:
    pen.y += 2
    for line in block.lines:
        marker, text = line.split(" ", 1)
        pen.put(LEFT + 8, pen.y + pen.part.size, BULLET if marker == "-" else marker, pen.bold, pen.part.size)
        pen.flow(pen.words(text), LEFT + 24, RIGHT, pen.part.size)
        pen.y += 2
    pen.y += 3


def _table(pen: _Pen, block: Block) -> None:
    rows, size, pad = block.cells, pen.part.size - 0.5, 4.0
    if len({len(row) for row in rows}) != 1:
        raise ValueError(f"the rows of the table {rows[0]} differ in length")
    words = [[pen.words(f"**{cell}**" if row is rows[0] else cell) for cell in row] for row in rows]
    widths = _column_widths(words, size, pad)
    edges = [LEFT + sum(widths[:i]) for i in range(len(widths) + 1)]
    pen.y += 5
    top = pen.y
    for i, row in enumerate(words):
        lines = [_wrapped(cell, width - 2 * pad, size) for cell, width in zip(row, widths, strict=True)]
        height = max(len(cell) for cell in lines) * size * 1.22 + 5
        if not i:
            pen.box(LEFT, pen.y, RIGHT, pen.y + height, fill=(0.89, 0.91, 0.94), colour=None)
        for cell, x in zip(lines, edges, strict=False):
            for j, line in enumerate(cell):
                pen.line(line, x + pad, pen.y + 2 + size + j * size * 1.22, size)
        pen.rule(LEFT, pen.y, RIGHT, pen.y, 0.6, GREY)
        pen.y += height
    pen.rule(LEFT, pen.y, RIGHT, pen.y, 0.6, GREY)
    for x in edges:
        pen.rule(x, top, x, pen.y, 0.6, GREY)
    pen.y += 6


def _column_widths(words: list[list[list[Word]]], size: float, pad: float) -> list[float]:
    """As wide as the contents want, as far as the page allows; the widest columns give way first."""
    wanted = [
        max(sum(_width(text + " ", font, size) for text, font in cell) for cell in column) + 2 * pad
        for column in zip(*words, strict=True)
    ]
    available = RIGHT - LEFT
    spare = available - sum(wanted)
    if spare >= 0:
        return [width + spare / len(wanted) for width in wanted]
    cap, left, kept = 0.0, available, len(wanted)
    for width in sorted(wanted):
        cap = left / kept
        if width > cap:
            break
        left, kept = left - width, kept - 1
    return [min(width, cap) for width in wanted]


def _checks(pen: _Pen, block: Block) -> None:
    size = pen.part.size
    rows = [re.findall(r"\[([ x])\] (.+?)(?=\s+\[[ x]\] |$)", line) for line in block.lines]
    column = (RIGHT - LEFT) / max(len(row) for row in rows)
    for row in rows:
        pen.y += size + 6
        for i, (tick, label) in enumerate(row):
            x = LEFT + i * column + 2
            pen.box(x, pen.y - 8, x + 8, pen.y)
            if tick == "x":
                pen.rule(x + 1.5, pen.y - 6.5, x + 6.5, pen.y - 1.5, 1.1)
                pen.rule(x + 1.5, pen.y - 1.5, x + 6.5, pen.y - 6.5, 1.1)
            pen.put(x + 13, pen.y - 0.8, label, pen.regular, size)
    pen.y += 6


def _fields(pen: _Pen, block: Block) -> None:
    size = pen.part.size
    for cells in block.cells:
        pen.y += size + 8
        pairs = list(zip(cells[::2], cells[1::2], strict=True))
        column = (RIGHT - LEFT) / len(pairs)
        for i, (label, value) in enumerate(pairs):
            x = LEFT + i * column
            start = x + _width(label + "  ", pen.regular, size)
            pen.put(x, pen.y - 2, label, pen.regular, size, GREY)
            pen.put(start, pen.y - 2, value, pen.bold, size)
            pen.rule(start - 2, pen.y, x + column - 10, pen.y, 0.5, GREY)
    pen.y += 5


def _callout(pen: _Pen, block: Block) -> None:
    size = pen.part.size + 1
    words = [(text, pen.bold) for text, _ in pen.words(block.lines[0])]
    height = len(_wrapped(words, RIGHT - LEFT - 20, size)) * size * LEADING + 10
    pen.y += 5
    pen.box(LEFT, pen.y, RIGHT, pen.y + height, fill=(0.97, 0.97, 0.93), colour=pen.part.colour)
    pen.y += 4
    pen.flow(words, LEFT + 10, RIGHT - 10, size)
    pen.y += 12


def _signature(pen: _Pen, block: Block) -> None:
    for name, role, when in block.cells:
        pen.y += 34
        pen.put(LEFT + 8, pen.y - 4, name, "tiit", 13, (0.10, 0.14, 0.45))
        pen.rule(LEFT, pen.y, LEFT + 230, pen.y, 0.7)
        pen.put(LEFT, pen.y + 11, role, pen.regular, 8.5)
        pen.put(LEFT + 260, pen.y - 2, when, pen.regular, 8.5)
        pen.rule(LEFT + 256, pen.y, LEFT + 420, pen.y, 0.7)
        pen.y += 16


def _small(pen: _Pen, block: Block) -> None:
    pen.y += 2
    pen.flow(pen.words(block.lines[0]), LEFT, RIGHT, 7.5, GREY)
    pen.y += 3


DRAW: dict[Kind, Callable[[_Pen, Block], None]] = {
    "title": _title,
    "heading": _heading,
    "paragraph": _paragraph,
    "item": _item,
    "table": _table,
    "checks": _checks,
    "fields": _fields,
    "callout": _callout,
    "signature": _signature,
    "small": _small,
}


# ── pictures of paper ───────────────────────────────────────────────────────────────────────────────────────────────


def _scanned(document: Pdf, dpi: int) -> Pdf:
    """The same pages as an office scanner would have sent them: grey pictures, a little askew, with some grain."""
    import pymupdf
    from PIL import Image

    scan = _empty_pdf()
    for page in document:
        pixels = page.get_pixmap(dpi=dpi, colorspace=pymupdf.csGRAY)
        sheet = Image.frombytes("L", (pixels.width, pixels.height), pixels.samples)
        sheet = sheet.resize((round(WIDTH / 72 * SCAN_DPI), round(HEIGHT / 72 * SCAN_DPI)), Image.Resampling.BICUBIC)
        askew = sheet.rotate(SKEW[page.number % len(SKEW)], resample=Image.Resampling.BICUBIC, fillcolor=250)
        # Seeded: the grain is the same in every draw.
        noise = random.Random(page.number).randbytes(askew.width * askew.height)  # noqa: S311 - it is a picture
        grain = Image.frombytes("L", askew.size, noise)
        jpeg = io.BytesIO()
        Image.blend(askew, grain, 0.09).save(jpeg, "JPEG", quality=55)
        copy = scan.new_page(width=WIDTH, height=HEIGHT)
        copy.insert_image(copy.rect, stream=jpeg.getvalue())
    return scan
