"""Draws the reports of the field test set, as text PDFs and as faxes.

A report's ``pages`` are lists of pieces, each a mapping with one of these keys: ``head`` (letterhead lines), ``pairs``
(labels with their entries), ``h`` (heading), ``p`` (paragraph), ``lines``, ``table``, ``small``, ``rule``, ``space``,
``box`` (framed text) and ``columns`` (two lists of pieces side by side). ``style`` has the font, its size, the paper
and the look of headings. Pieces that do not fit go to the next sheet.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pymupdf
from PIL import Image

PAPERS = {"letter": (612.0, 792.0), "a4": (595.0, 842.0)}
#: Font name and file of the plain and the bold face; no file: one of the built-in fonts.
_DEJAVU = Path("/usr/share/fonts/truetype/dejavu")
FONTS: dict[str, tuple[tuple[str, Path | None], tuple[str, Path | None]]] = {
    "sans": (("helv", None), ("hebo", None)),
    "serif": (("tiro", None), ("tibo", None)),
    "mono": (("cour", None), ("cobo", None)),
    "dejavu": (("djv", _DEJAVU / "DejaVuSans.ttf"), ("djvb", _DEJAVU / "DejaVuSans-Bold.ttf")),
}
FAX_DPI = (204, 196)
_GREY = (0.9, 0.9, 0.9)
_INK = (0.0, 0.0, 0.0)


class _Sheets:
    """The sheets of one report, with the place where the next piece goes."""

    def __init__(self, style: Mapping[str, Any]) -> None:
        self.style = style
        self.size = float(style.get("size", 10))
        self.width, self.height = PAPERS[style.get("paper", "letter")]
        self.margin = float(style.get("margin", 54))
        faces = FONTS[style.get("font", "sans")]
        self.faces = faces
        self.fonts = [pymupdf.Font(fontfile=str(file)) if file else pymupdf.Font(fontname=name) for name, file in faces]
        self.document = pymupdf.open()
        self.turn_page()

    def turn_page(self) -> None:
        self.page = self.document.new_page(width=self.width, height=self.height)
        self.top = self.margin * 0.8

    def need(self, height: float) -> None:
        if self.top + height > self.height - self.margin * 0.9:
            self.turn_page()

    def measure(self, text: str, size: float, *, bold: bool = False) -> float:
        return float(self.fonts[bold].text_length(text, fontsize=size))

    def write(self, left: float, top: float, text: str, size: float, *, bold: bool = False) -> None:
        name, file = self.faces[bold]
        self.page.insert_text(
            (left, top + size), text, fontsize=size, fontname=name, fontfile=str(file) if file else None
        )

    def wrap(self, text: str, width: float, size: float, *, bold: bool = False) -> list[str]:
        """The text in lines that are no wider than ``width``."""
        lines = []
        for part in text.split("\n"):
            line = ""
            for word in part.split(" "):
                longer = f"{line} {word}" if line else word
                if line and self.measure(longer, size, bold=bold) > width:
                    lines.append(line)
                    line = word
                else:
                    line = longer
            lines.append(line)
        return lines


def draw_report(report: Mapping[str, Any], pdf_path: Path) -> None:
    """Draw the report as a PDF with text."""
    sheets = _Sheets(report.get("style", {}))
    for index, pieces in enumerate(report["pages"]):
        if index:
            sheets.turn_page()
        _draw_pieces(sheets, pieces, sheets.margin, sheets.width - sheets.margin)
    footer = sheets.style.get("footer")
    if footer:
        count = len(sheets.document)
        for index in range(count):
            sheets.page = sheets.document[index]
            text = footer.format(page=index + 1, pages=count)
            sheets.write(sheets.margin, sheets.height - sheets.margin * 0.65, text, 7.5)
    sheets.document.set_metadata({})
    sheets.document.save(pdf_path, no_new_id=True, garbage=3, deflate=True)
    sheets.document.close()


def _draw_pieces(  # noqa: C901, PLR0912
    sheets: _Sheets, pieces: Sequence[Mapping[str, Any]], left: float, right: float
) -> None:
    for piece in pieces:
        if "head" in piece:
            _draw_head(sheets, piece, left, right)
        elif "h" in piece:
            _draw_heading(sheets, piece["h"], left, right)
        elif "p" in piece:
            _draw_text(sheets, piece["p"], left + float(piece.get("indent", 0)), right, bold=piece.get("bold", False))
        elif "lines" in piece:
            for line in piece["lines"]:
                _draw_text(sheets, line, left + float(piece.get("indent", 0)), right, gap=1.0)
            sheets.top += 4
        elif "small" in piece:
            _draw_text(sheets, piece["small"], left, right, size=7.5)
        elif "pairs" in piece:
            _draw_pairs(sheets, piece, left, right)
        elif "table" in piece:
            _draw_table(sheets, piece, left, right)
        elif "box" in piece:
            _draw_box(sheets, piece["box"], left, right)
        elif "columns" in piece:
            _draw_columns(sheets, piece["columns"], left, right)
        elif "space" in piece:
            sheets.top += float(piece["space"])
        elif "rule" in piece:
            sheets.page.draw_line((left, sheets.top + 2), (right, sheets.top + 2), color=_INK, width=0.7)
            sheets.top += 7
        else:
            raise ValueError(f"No such piece: {sorted(piece)}")


def _draw_head(sheets: _Sheets, piece: Mapping[str, Any], left: float, right: float) -> None:
    look = piece.get("look", "left")
    for index, line in enumerate(piece["head"]):
        size = sheets.size + (5 if index == 0 else -1)
        width = sheets.measure(line, size, bold=index == 0)
        if look == "band" and index == 0:
            band = pymupdf.Rect(left, sheets.top, right, sheets.top + size + 8)
            sheets.page.draw_rect(band, color=None, fill=_GREY)
            sheets.top += 3
        start = {"center": (left + right - width) / 2, "right": right - width}.get(look, left + 4 * (look == "band"))
        sheets.write(start, sheets.top, line, size, bold=index == 0)
        sheets.top += size + (6 if look == "band" and index == 0 else 3)
    sheets.top += 6


def _draw_heading(sheets: _Sheets, text: str, left: float, right: float) -> None:
    look, size = sheets.style.get("heading", "bold"), sheets.size + 1
    sheets.need(4 * size)
    sheets.top += 5
    if look == "shaded":
        sheets.page.draw_rect(pymupdf.Rect(left, sheets.top, right, sheets.top + size + 5), color=None, fill=_GREY)
    sheets.write(left + 3 * (look == "shaded"), sheets.top, text, size, bold=look != "plain")
    sheets.top += size + 4
    if look == "underlined":
        end = left + sheets.measure(text, size, bold=True)
        sheets.page.draw_line((left, sheets.top - 1), (end, sheets.top - 1), color=_INK, width=0.6)
    sheets.top += 2


def _draw_text(
    sheets: _Sheets,
    text: str,
    left: float,
    right: float,
    *,
    size: float | None = None,
    bold: bool = False,
    gap: float = 4.0,
) -> None:
    size = size or sheets.size
    for line in sheets.wrap(text, right - left, size, bold=bold):
        sheets.need(size * 1.4)
        sheets.write(left, sheets.top, line, size, bold=bold)
        sheets.top += size * 1.3
    sheets.top += gap


def _draw_pairs(sheets: _Sheets, piece: Mapping[str, Any], left: float, right: float) -> None:
    columns, size = int(piece.get("columns", 2)), sheets.size - 0.5
    width = (right - left) / columns
    pairs = piece["pairs"]
    for start in range(0, len(pairs), columns):
        sheets.need(size * 1.5)
        deepest = 1
        for column, (label, entry) in enumerate(pairs[start : start + columns]):
            corner = left + column * width
            sheets.write(corner, sheets.top, label, size, bold=True)
            indent = max(sheets.measure(label, size, bold=True) + 5, float(piece.get("indent", 0)))
            lines = sheets.wrap(entry, width - indent - 4, size)
            for number, line in enumerate(lines):
                sheets.write(corner + indent, sheets.top + number * size * 1.3, line, size)
            deepest = max(deepest, len(lines))
        sheets.top += size * (1.4 + 1.3 * (deepest - 1))
    sheets.top += 5


def _draw_table(sheets: _Sheets, piece: Mapping[str, Any], left: float, right: float) -> None:
    rows, rules = piece["table"], piece.get("rules", "all")
    shares = piece.get("widths") or [1] * len(rows[0])
    widths = [(right - left) * share / sum(shares) for share in shares]
    size = sheets.size - 0.5
    for number, row in enumerate(rows):
        bold = number == 0 and piece.get("header", True)
        cells = [
            sheets.wrap(cell, width - 7, size, bold=bold) for cell, width in zip(row, widths[: len(row)], strict=True)
        ]
        height = max(len(lines) for lines in cells) * size * 1.25 + (5 if rules != "none" else 2)
        sheets.need(height)
        corner = left
        for lines, width in zip(cells, widths, strict=False):
            for index, line in enumerate(lines):
                sheets.write(corner + 3, sheets.top + 1 + index * size * 1.25, line, size, bold=bold)
            if rules == "all":
                frame = pymupdf.Rect(corner, sheets.top, corner + width, sheets.top + height)
                sheets.page.draw_rect(frame, color=_INK, width=0.5)
            corner += width
        sheets.top += height
        if rules == "rows" or (rules == "header" and number == 0):
            sheets.page.draw_line((left, sheets.top - 1), (right, sheets.top - 1), color=_INK, width=0.4)
    sheets.top += 6


def _draw_box(sheets: _Sheets, text: str, left: float, right: float) -> None:
    lines = sheets.wrap(text, right - left - 16, sheets.size)
    height = len(lines) * sheets.size * 1.3 + 10
    sheets.need(height)
    sheets.page.draw_rect(pymupdf.Rect(left, sheets.top, right, sheets.top + height), color=_INK, width=1)
    for index, line in enumerate(lines):
        sheets.write(left + 8, sheets.top + 4 + index * sheets.size * 1.3, line, sheets.size)
    sheets.top += height + 6


def _draw_columns(sheets: _Sheets, columns: Sequence[Sequence[Mapping[str, Any]]], left: float, right: float) -> None:
    """Draw lists of pieces side by side; they must fit on the sheet."""
    width = (right - left) / len(columns)
    start, lowest = sheets.top, sheets.top
    for index, pieces in enumerate(columns):
        sheets.top = start
        _draw_pieces(sheets, pieces, left + index * width, left + (index + 1) * width - 14)
        lowest = max(lowest, sheets.top)
    sheets.top = lowest


def fax_report(pdf_path: Path, fax_path: Path) -> None:
    """Write the PDF as a fax: 204 x 196 dots an inch, one bit, slight tilt, noise."""
    with pymupdf.open(pdf_path) as source, pymupdf.open() as fax:
        for page in source:
            seed = sum(page.get_text().encode()) + page.number
            dice, noise = random.Random(seed), np.random.default_rng(seed)
            matrix = pymupdf.Matrix(FAX_DPI[0] / 72, FAX_DPI[1] / 72)
            pixmap = page.get_pixmap(matrix=matrix, colorspace=pymupdf.csGRAY)
            picture = Image.frombytes("L", (pixmap.width, pixmap.height), pixmap.samples)
            picture = picture.rotate(dice.uniform(-0.7, 0.7), resample=Image.Resampling.BILINEAR, fillcolor=255)
            grey = np.asarray(picture).astype(np.float32)
            grey += noise.normal(0, 28, grey.shape).astype(np.float32)
            is_white = grey > 150
            # Specks of ink and holes in the letters, as a telephone line makes them.
            is_white &= noise.random(grey.shape) > 0.0004
            is_white |= noise.random(grey.shape) < 0.004
            image = Image.fromarray((is_white * 255).astype(np.uint8)).convert("1")
            path = fax_path.with_suffix(f".{page.number}.png")
            image.save(path)
            sheet = fax.new_page(width=page.rect.width, height=page.rect.height)
            sheet.insert_image(sheet.rect, filename=str(path))
            path.unlink()
        fax.set_metadata({})
        fax.save(fax_path, no_new_id=True, deflate=True)
