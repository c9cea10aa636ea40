"""Drawing of a manuscript as a PDF, optionally as a simulated scan.

The same manuscript always gives the same bytes: no clock, no random file id, and only the standard fonts of PDF
viewers. Text that does not fit on its page raises an error and is never cut off.
"""

import io
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby
from operator import itemgetter
from typing import Any

from evalkit.samples.manuscript import BlockKind, Manuscript, ManuscriptBlock, ManuscriptPart, parse_blocks

#: Type of a PyMuPDF document or page; PyMuPDF's own annotations leave most methods untyped.
PyMuPdfObject = Any

PAGE_WIDTH, PAGE_HEIGHT = 612.0, 792.0
LEFT_EDGE, RIGHT_EDGE = 54.0, 558.0
#: Lower end of the body text, in points from the page's upper edge; the footer is below.
BODY_BOTTOM = 738.0

#: (regular, bold) font of each family, as PyMuPDF's names of the standard fonts.
FONTS_BY_FAMILY = {"sans": ("helv", "hebo"), "serif": ("tiro", "tibo"), "mono": ("cour", "cobo")}
BLACK = (0.0, 0.0, 0.0)
GREY = (0.35, 0.35, 0.35)
LINE_SPACING = 1.36
#: The round bullet in the code page of the standard fonts.
BULLET = "\x95"
SCAN_DPI = 110
#: Resolution of a poor scan: so low that letters cannot be distinguished.
UNREADABLE_SCAN_DPI = 32
#: Skew of scanned pages in degrees, used alternately.
SCAN_SKEW_DEGREES = (0.9, -0.7)

Colour = tuple[float, float, float]
#: (word, name of its font).
StyledWord = tuple[str, str]


def draw_pdf(manuscript: Manuscript) -> bytes:
    """Draw a manuscript as a PDF. ValueError if a page's text does not fit."""
    document = _create_empty_pdf()
    for part in manuscript.part:
        for page_number in range(1, len(part.pages) + 1):
            page = document.new_page(width=PAGE_WIDTH, height=PAGE_HEIGHT)
            _draw_page(page, part, page_number)
            if manuscript.fax:
                fax_line = f"{manuscript.fax}   P. {document.page_count:02}/{manuscript.total_pages:02}"
                page.insert_text((LEFT_EDGE, 18), fax_line, fontname="cour", fontsize=7.5)
    if manuscript.scanned:
        document = _simulate_scan(document, UNREADABLE_SCAN_DPI if manuscript.scanned == "poorly" else SCAN_DPI)
    document.set_metadata({"title": manuscript.title, "producer": "evalkit samples", "author": "no real patient"})
    return bytes(document.tobytes(garbage=3, deflate=True, no_new_id=True))


def _create_empty_pdf() -> PyMuPdfObject:
    import pymupdf

    open_pdf: Callable[[], PyMuPdfObject] = pymupdf.open
    return open_pdf()


def _draw_page(page: PyMuPdfObject, part: ManuscriptPart, page_number: int) -> None:
    markup = part.pages[page_number - 1]
    shape = page.new_shape()
    pen = _PagePen(shape, part)
    if markup.strip():
        if page_number == 1:
            _draw_letterhead(pen)
            _draw_patient_strip(pen)
        else:
            _draw_running_header(pen, part.misfiled_headers.get(str(page_number), part.running_header))
        for block in parse_blocks(markup):
            DRAW_BY_KIND[block.kind](pen, block)
        if pen.y > BODY_BOTTOM:
            raise ValueError(
                f"page {page_number} of {part.organisation!r} is {pen.y - BODY_BOTTOM:.0f} points too long: shorten its text"
            )
        _draw_footer(pen, page_number)
    shape.commit()


@dataclass
class _PagePen:
    """The page being drawn, and the vertical position of its next block."""

    shape: Any
    part: ManuscriptPart
    y: float = field(default=40.0)
    """Top of the next block, in points from the page's upper edge."""

    @property
    def regular_font(self) -> str:
        return FONTS_BY_FAMILY[self.part.font][0]

    @property
    def bold_font(self) -> str:
        return FONTS_BY_FAMILY[self.part.font][1]

    def draw_text(self, x: float, y: float, text: str, font: str, size: float, colour: Colour = BLACK) -> None:
        self.shape.insert_text((x, y), text, fontname=font, fontsize=size, color=colour)

    def draw_rule(self, x0: float, y0: float, x1: float, y1: float, width: float = 0.6, colour: Colour = BLACK) -> None:
        self.shape.draw_line((x0, y0), (x1, y1))
        self.shape.finish(color=colour, width=width)

    def draw_box(
        self, x0: float, y0: float, x1: float, y1: float, *, fill: Colour | None = None, colour: Colour | None = BLACK
    ) -> None:
        self.shape.draw_rect((x0, y0, x1, y1))
        self.shape.finish(color=colour, fill=fill, width=0.6)

    def split_styled_words(self, text: str) -> list[StyledWord]:
        """Split a text into (word, font) pairs; words within ``**…**`` get the bold font."""
        return [
            (word, self.bold_font if run_position % 2 else self.regular_font)
            for run_position, run in enumerate(re.split(r"\*\*", text))
            for word in run.split()
        ]

    def draw_wrapped_text_and_advance(
        self, words: list[StyledWord], x0: float, x1: float, size: float, colour: Colour = BLACK
    ) -> None:
        for line_words in _wrap_words(words, x1 - x0, size):
            self.y += size * LINE_SPACING
            self.draw_line(line_words, x0, self.y - size * (LINE_SPACING - 1), size, colour)

    def draw_line(self, words: list[StyledWord], x: float, y: float, size: float, colour: Colour = BLACK) -> None:
        for font, run_words in groupby(words, key=itemgetter(1)):
            run = " ".join(text for text, _ in run_words)
            self.draw_text(x, y, run, font, size, colour)
            x += _measure_text_width(run + " ", font, size)


@cache
def _measure_text_width(text: str, font: str, size: float) -> float:
    import pymupdf

    return float(pymupdf.get_text_length(text, fontname=font, fontsize=size))


def _wrap_words(words: list[StyledWord], width: float, size: float) -> list[list[StyledWord]]:
    lines: list[list[StyledWord]] = []
    line_width = 0.0
    for text, font in words:
        space_width, word_width = _measure_text_width(" ", font, size), _measure_text_width(text, font, size)
        if lines and line_width + space_width + word_width <= width:
            lines[-1].append((text, font))
            line_width += space_width + word_width
        else:
            lines.append([(text, font)])
            line_width = word_width
    return lines


# ── the paper ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _draw_letterhead(pen: _PagePen) -> None:
    part = pen.part
    pen.draw_box(LEFT_EDGE, pen.y, LEFT_EDGE + 26, pen.y + 26, fill=part.colour, colour=part.colour)
    # A white cross, so that the letterhead looks like a hospital's.
    pen.draw_box(LEFT_EDGE + 11, pen.y + 5, LEFT_EDGE + 15, pen.y + 21, fill=(1, 1, 1), colour=None)
    pen.draw_box(LEFT_EDGE + 5, pen.y + 11, LEFT_EDGE + 21, pen.y + 15, fill=(1, 1, 1), colour=None)
    pen.draw_text(LEFT_EDGE + 36, pen.y + 12, part.organisation, pen.bold_font, 14, part.colour)
    y = pen.y + 24
    for line in part.address:
        pen.draw_text(LEFT_EDGE + 36, y, line, pen.regular_font, 8, GREY)
        y += 10
    pen.y = max(y - 4, pen.y + 32)
    pen.draw_rule(LEFT_EDGE, pen.y, RIGHT_EDGE, pen.y, 1.4, part.colour)
    pen.y += 8


def _draw_patient_strip(pen: _PagePen) -> None:
    fields = pen.part.patient
    if not fields:
        return
    column_count, font_size, row_height = 3, 8.5, 15.0
    cell_width = (RIGHT_EDGE - LEFT_EDGE) / column_count
    row_count = -(-len(fields) // column_count)
    pen.draw_box(LEFT_EDGE, pen.y, RIGHT_EDGE, pen.y + row_count * row_height, fill=(0.96, 0.96, 0.97), colour=GREY)
    for row in range(1, row_count):
        pen.draw_rule(LEFT_EDGE, pen.y + row * row_height, RIGHT_EDGE, pen.y + row * row_height, 0.4, GREY)
    for column in range(1, column_count):
        x = LEFT_EDGE + column * cell_width
        pen.draw_rule(x, pen.y, x, pen.y + row_count * row_height, 0.4, GREY)
    for position, (label, value) in enumerate(fields):
        words = [(f"{label}:", pen.bold_font), (value, pen.regular_font)]
        if len(_wrap_words(words, cell_width - 8, font_size)) > 1:
            raise ValueError(f"patient field {label!r} does not fit its cell: shorten {value!r}")
        pen.draw_line(
            words,
            LEFT_EDGE + 4 + position % column_count * cell_width,
            pen.y + position // column_count * row_height + 10.5,
            font_size,
        )
    pen.y += row_count * row_height + 6


def _draw_running_header(pen: _PagePen, running_header: str) -> None:
    if running_header:
        pen.draw_text(LEFT_EDGE, pen.y + 8, running_header, pen.regular_font, 8, GREY)
        pen.draw_rule(LEFT_EDGE, pen.y + 13, RIGHT_EDGE, pen.y + 13, 0.6, pen.part.colour)
        pen.y += 20


def _draw_footer(pen: _PagePen, page_number: int) -> None:
    pen.draw_rule(LEFT_EDGE, 752, RIGHT_EDGE, 752, 0.5, GREY)
    pen.draw_text(LEFT_EDGE, 763, pen.part.footer, pen.regular_font, 7.5, GREY)
    page_label = f"Page {page_number} of {len(pen.part.pages)}"
    pen.draw_text(
        RIGHT_EDGE - _measure_text_width(page_label, pen.regular_font, 7.5),
        763,
        page_label,
        pen.regular_font,
        7.5,
        GREY,
    )


# ── its text ───────────────────────────────────────────────────────────────────────────────────────────────


def _draw_title(pen: _PagePen, block: ManuscriptBlock) -> None:
    for line in block.lines:
        pen.y += 20
        pen.draw_text(
            (LEFT_EDGE + RIGHT_EDGE - _measure_text_width(line, pen.bold_font, 13)) / 2,
            pen.y - 3,
            line,
            pen.bold_font,
            13,
        )
    pen.y += 4


def _draw_heading(pen: _PagePen, block: ManuscriptBlock) -> None:
    (text,) = block.lines
    pen.y += 23
    pen.draw_text(LEFT_EDGE, pen.y - 4, text, pen.bold_font, pen.part.size + 1.5, pen.part.colour)
    pen.draw_rule(LEFT_EDGE, pen.y, RIGHT_EDGE, pen.y, 0.4, pen.part.colour)
    pen.y += 2


def _draw_paragraph(pen: _PagePen, block: ManuscriptBlock) -> None:
    pen.y += 3
    pen.draw_wrapped_text_and_advance(pen.split_styled_words(block.lines[0]), LEFT_EDGE, RIGHT_EDGE, pen.part.size)
    pen.y += 4


def _draw_list_items(pen: _PagePen, block: ManuscriptBlock) -> None:
    pen.y += 2
    for line in block.lines:
        marker, text = line.split(" ", 1)
        pen.draw_text(
            LEFT_EDGE + 8, pen.y + pen.part.size, BULLET if marker == "-" else marker, pen.bold_font, pen.part.size
        )
        pen.draw_wrapped_text_and_advance(pen.split_styled_words(text), LEFT_EDGE + 24, RIGHT_EDGE, pen.part.size)
        pen.y += 2
    pen.y += 3


def _draw_table(pen: _PagePen, block: ManuscriptBlock) -> None:
    rows, size, padding = block.cells, pen.part.size - 0.5, 4.0
    if len({len(row) for row in rows}) != 1:
        raise ValueError(f"the rows of the table {rows[0]} differ in length: give each the same number of cells")
    cell_words = [[pen.split_styled_words(f"**{cell}**" if row is rows[0] else cell) for cell in row] for row in rows]
    widths = _compute_column_widths(cell_words, size, padding)
    edges = [LEFT_EDGE + sum(widths[:position]) for position in range(len(widths) + 1)]
    pen.y += 5
    top = pen.y
    for position, row in enumerate(cell_words):
        wrapped_cells = [_wrap_words(cell, width - 2 * padding, size) for cell, width in zip(row, widths, strict=True)]
        height = max(len(cell) for cell in wrapped_cells) * size * 1.22 + 5
        if not position:
            pen.draw_box(LEFT_EDGE, pen.y, RIGHT_EDGE, pen.y + height, fill=(0.89, 0.91, 0.94), colour=None)
        for cell, x in zip(wrapped_cells, edges, strict=False):
            for line_number, line in enumerate(cell):
                pen.draw_line(line, x + padding, pen.y + 2 + size + line_number * size * 1.22, size)
        pen.draw_rule(LEFT_EDGE, pen.y, RIGHT_EDGE, pen.y, 0.6, GREY)
        pen.y += height
    pen.draw_rule(LEFT_EDGE, pen.y, RIGHT_EDGE, pen.y, 0.6, GREY)
    for x in edges:
        pen.draw_rule(x, top, x, pen.y, 0.6, GREY)
    pen.y += 6


def _compute_column_widths(cell_words: list[list[list[StyledWord]]], size: float, padding: float) -> list[float]:
    """Return the column widths of a table, which together fill the page's width.

    If the contents are too wide, the widest columns are narrowed first.
    """
    wanted_widths = [
        max(sum(_measure_text_width(text + " ", font, size) for text, font in cell) for cell in column) + 2 * padding
        for column in zip(*cell_words, strict=True)
    ]
    available_width = RIGHT_EDGE - LEFT_EDGE
    spare_width = available_width - sum(wanted_widths)
    if spare_width >= 0:
        return [width + spare_width / len(wanted_widths) for width in wanted_widths]
    max_width, remaining_width, remaining_columns = 0.0, available_width, len(wanted_widths)
    for width in sorted(wanted_widths):
        max_width = remaining_width / remaining_columns
        if width > max_width:
            break
        remaining_width, remaining_columns = remaining_width - width, remaining_columns - 1
    return [min(width, max_width) for width in wanted_widths]


def _draw_check_boxes(pen: _PagePen, block: ManuscriptBlock) -> None:
    size = pen.part.size
    rows = [re.findall(r"\[([ x])\] (.+?)(?=\s+\[[ x]\] |$)", line) for line in block.lines]
    column_width = (RIGHT_EDGE - LEFT_EDGE) / max(len(row) for row in rows)
    for row in rows:
        pen.y += size + 6
        for position, (tick, label) in enumerate(row):
            x = LEFT_EDGE + position * column_width + 2
            pen.draw_box(x, pen.y - 8, x + 8, pen.y)
            if tick == "x":
                pen.draw_rule(x + 1.5, pen.y - 6.5, x + 6.5, pen.y - 1.5, 1.1)
                pen.draw_rule(x + 1.5, pen.y - 1.5, x + 6.5, pen.y - 6.5, 1.1)
            pen.draw_text(x + 13, pen.y - 0.8, label, pen.regular_font, size)
    pen.y += 6


def _draw_form_fields(pen: _PagePen, block: ManuscriptBlock) -> None:
    size = pen.part.size
    for cells in block.cells:
        pen.y += size + 8
        pairs = list(zip(cells[::2], cells[1::2], strict=True))
        column_width = (RIGHT_EDGE - LEFT_EDGE) / len(pairs)
        for position, (label, value) in enumerate(pairs):
            x = LEFT_EDGE + position * column_width
            value_x = x + _measure_text_width(label + "  ", pen.regular_font, size)
            pen.draw_text(x, pen.y - 2, label, pen.regular_font, size, GREY)
            pen.draw_text(value_x, pen.y - 2, value, pen.bold_font, size)
            pen.draw_rule(value_x - 2, pen.y, x + column_width - 10, pen.y, 0.5, GREY)
    pen.y += 5


def _draw_callout(pen: _PagePen, block: ManuscriptBlock) -> None:
    size = pen.part.size + 1
    words = [(text, pen.bold_font) for text, _ in pen.split_styled_words(block.lines[0])]
    height = len(_wrap_words(words, RIGHT_EDGE - LEFT_EDGE - 20, size)) * size * LINE_SPACING + 10
    pen.y += 5
    pen.draw_box(LEFT_EDGE, pen.y, RIGHT_EDGE, pen.y + height, fill=(0.97, 0.97, 0.93), colour=pen.part.colour)
    pen.y += 4
    pen.draw_wrapped_text_and_advance(words, LEFT_EDGE + 10, RIGHT_EDGE - 10, size)
    pen.y += 12


def _draw_signatures(pen: _PagePen, block: ManuscriptBlock) -> None:
    for name, role, date_text in block.cells:
        pen.y += 34
        pen.draw_text(LEFT_EDGE + 8, pen.y - 4, name, "tiit", 13, (0.10, 0.14, 0.45))
        pen.draw_rule(LEFT_EDGE, pen.y, LEFT_EDGE + 230, pen.y, 0.7)
        pen.draw_text(LEFT_EDGE, pen.y + 11, role, pen.regular_font, 8.5)
        pen.draw_text(LEFT_EDGE + 260, pen.y - 2, date_text, pen.regular_font, 8.5)
        pen.draw_rule(LEFT_EDGE + 256, pen.y, LEFT_EDGE + 420, pen.y, 0.7)
        pen.y += 16


def _draw_small_print(pen: _PagePen, block: ManuscriptBlock) -> None:
    pen.y += 2
    pen.draw_wrapped_text_and_advance(pen.split_styled_words(block.lines[0]), LEFT_EDGE, RIGHT_EDGE, 7.5, GREY)
    pen.y += 3


DRAW_BY_KIND: dict[BlockKind, Callable[[_PagePen, ManuscriptBlock], None]] = {
    "title": _draw_title,
    "heading": _draw_heading,
    "paragraph": _draw_paragraph,
    "item": _draw_list_items,
    "table": _draw_table,
    "checks": _draw_check_boxes,
    "fields": _draw_form_fields,
    "callout": _draw_callout,
    "signature": _draw_signatures,
    "small": _draw_small_print,
}


# ── scans ───────────────────────────────────────────────────────────────────────────────────────────────


def _simulate_scan(document: PyMuPdfObject, dpi: int) -> PyMuPdfObject:
    """Return a PDF of greyscale page images, slightly skewed and with some noise."""
    import pymupdf
    from PIL import Image

    scanned_pdf = _create_empty_pdf()
    for page in document:
        pixmap = page.get_pixmap(dpi=dpi, colorspace=pymupdf.csGRAY)
        image = Image.frombytes("L", (pixmap.width, pixmap.height), pixmap.samples)
        image = image.resize(
            (round(PAGE_WIDTH / 72 * SCAN_DPI), round(PAGE_HEIGHT / 72 * SCAN_DPI)), Image.Resampling.BICUBIC
        )
        skewed_image = image.rotate(
            SCAN_SKEW_DEGREES[page.number % len(SCAN_SKEW_DEGREES)], resample=Image.Resampling.BICUBIC, fillcolor=250
        )
        # Seeded, so that the noise is the same in every PDF.
        noise_bytes = random.Random(page.number).randbytes(skewed_image.width * skewed_image.height)  # noqa: S311 - an image, no secret
        grain_image = Image.frombytes("L", skewed_image.size, noise_bytes)
        jpeg_buffer = io.BytesIO()
        Image.blend(skewed_image, grain_image, 0.09).save(jpeg_buffer, "JPEG", quality=55)
        scanned_page = scanned_pdf.new_page(width=PAGE_WIDTH, height=PAGE_HEIGHT)
        scanned_page.insert_image(scanned_page.rect, stream=jpeg_buffer.getvalue())
    return scanned_pdf
