"""Drawing of the pages of the bench of aligned tables, as text and as scans."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pymupdf
from PIL import Image

Item = dict[str, Any]
Piece = dict[str, Any]

FOLDER = Path(__file__).parent
PAGE_WIDTH, PAGE_HEIGHT = 595, 842
_ROTATION_FILL = 255


def load_items(half: str) -> list[Item]:
    """Return the items of a half, ``open`` or ``sealed``."""
    text = (FOLDER / f"{half}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def text_width(text: str, font: str, size: float) -> float:
    """Return the width of a text in points."""
    return float(pymupdf.get_text_length(text, fontname=font, fontsize=size))


def wrap_text(text: str, width: float, font: str, size: float) -> list[list[str]]:
    """Break a text into lines of words no wider than ``width``."""
    lines: list[list[str]] = []
    line: list[str] = []
    for word in text.split():
        if line and text_width(" ".join([*line, word]), font, size) > width:
            lines.append(line)
            line = []
        line.append(word)
    return [*lines, line] if line else lines


def draw_page(item: Item, pdf_path: Path) -> None:
    """Draw an item's page as a PDF with a text layer."""
    with pymupdf.open() as document:
        page = document.new_page(width=PAGE_WIDTH, height=PAGE_HEIGHT)
        for piece in item["layout"]:
            _PAINTERS[piece["kind"]](page, piece)
        document.save(pdf_path, no_new_id=True)


def scan_page(
    pdf_path: Path, image_pdf_path: Path, dpi: int = 200, noise: float = 8.0, tilt: float = 0.0, seed: int = 34
) -> None:
    """Make a scanned twin of a page: a grey picture with noise and tilt (degrees)."""
    with pymupdf.open(pdf_path) as document:
        pixmap = document[0].get_pixmap(dpi=dpi, colorspace=pymupdf.csGRAY)
    picture = Image.frombytes("L", (pixmap.width, pixmap.height), pixmap.samples)
    if tilt:
        picture = picture.rotate(tilt, resample=Image.Resampling.BICUBIC, fillcolor=_ROTATION_FILL)
    grain = np.random.default_rng(seed).normal(0.0, noise, (picture.height, picture.width))
    pixels = np.clip(np.asarray(picture, dtype=np.float64) + grain, 0, 255).astype(np.uint8)
    Image.fromarray(pixels).save(image_pdf_path, format="PDF", resolution=dpi, quality=85)


def _insert(page: Any, x: float, y: float, text: str, piece: Piece, bold: bool = False) -> None:
    if text:
        font = _BOLD_FONTS[_font(piece)] if bold else _font(piece)
        page.insert_text((x, y), text, fontname=font, fontsize=_size(piece))


def _font(piece: Piece) -> str:
    return str(piece.get("font", "helv"))


def _size(piece: Piece) -> float:
    return float(piece.get("size", 10))


def _leading(piece: Piece) -> float:
    return float(piece.get("leading", round(_size(piece) * 1.4, 1)))


def _draw_lines(page: Any, piece: Piece) -> None:
    """Draw lines of text as they are: flush left, right or centred at ``x``."""
    for number, line in enumerate(piece["lines"]):
        width = text_width(line, _font(piece), _size(piece))
        shift = {"l": 0.0, "r": width, "c": width / 2}[piece.get("align", "l")]
        y = piece["y"] + number * _leading(piece)
        _insert(page, piece["x"] - shift, y, line, piece, bold=bool(piece.get("bold")))


def _draw_prose(page: Any, piece: Piece) -> None:
    """Draw a wrapped paragraph, justified if asked, with an optional hanging label."""
    _insert(page, piece["x"] - float(piece.get("hang", 0)), piece["y"], str(piece.get("label", "")), piece)
    lines = wrap_text(piece["text"], piece["width"], _font(piece), _size(piece))
    for number, words in enumerate(lines):
        y = piece["y"] + number * _leading(piece)
        if not piece.get("justify") or number == len(lines) - 1 or len(words) == 1:
            _insert(page, piece["x"], y, " ".join(words), piece)
            continue
        widths = [text_width(word, _font(piece), _size(piece)) for word in words]
        gap = (piece["width"] - sum(widths)) / (len(words) - 1)
        x = piece["x"]
        for word, width in zip(words, widths, strict=True):
            _insert(page, x, y, word, piece)
            x += width + gap


def _draw_columns(page: Any, piece: Piece) -> None:
    """Draw rows of cells aligned at the columns' ``x``: l, r, c or d (decimal point)."""
    y = piece["y"]
    for number, row in enumerate(piece["rows"]):
        is_bold = number == 0 and bool(piece.get("bold"))
        for x, align, cell in zip(piece["x"], piece["align"], row, strict=True):
            for line_number, line in enumerate(cell.split("\n")):
                left = x - _shift(line, "r" if align == "d" and number == 0 else align, piece, is_bold)
                _insert(page, left, y + line_number * _leading(piece), line, piece, is_bold)
        y += max(cell.count("\n") + 1 for cell in row) * _leading(piece) + float(piece.get("gap", 0))


def _shift(line: str, align: str, piece: Piece, bold: bool) -> float:
    font = _BOLD_FONTS[_font(piece)] if bold else _font(piece)
    if align == "d":
        return text_width(line.split(".", maxsplit=1)[0], font, _size(piece))
    return text_width(line, font, _size(piece)) * {"l": 0.0, "c": 0.5, "r": 1.0}[align]


def _draw_leaders(page: Any, piece: Piece) -> None:
    """Draw rows of two parts joined by dots."""
    font, size = _font(piece), _size(piece)
    for number, (left, right) in enumerate(piece["rows"]):
        y = piece["y"] + number * _leading(piece)
        end = piece["right"] - text_width(right, font, size)
        start = piece["x"] + text_width(left, font, size) + 4
        dots = "." * max(int((end - 4 - start) / text_width(".", font, size)), 0)
        _insert(page, piece["x"], y, left, piece)
        _insert(page, end - 4 - text_width(dots, font, size), y, dots, piece)
        _insert(page, end, y, right, piece)


def _draw_boxes(page: Any, piece: Piece) -> None:
    """Draw tick boxes, each with its words; ticked ones are crossed."""
    for x, y, words, ticked in piece["boxes"]:
        square = pymupdf.Rect(x, y - 8, x + 8, y)
        page.draw_rect(square, width=0.7)
        if ticked:
            page.draw_line(square.tl, square.br, width=0.7)
            page.draw_line(square.bl, square.tr, width=0.7)
        _insert(page, x + 13, y, words, piece)


def _draw_rule(page: Any, piece: Piece) -> None:
    """Draw one level line, as beneath a letterhead or above a signature."""
    page.draw_line((piece["x"], piece["y"]), (piece["right"], piece["y"]), width=0.7)


_BOLD_FONTS = {"helv": "hebo", "tiro": "tibo", "cour": "cobo"}
_PAINTERS = {
    "lines": _draw_lines,
    "prose": _draw_prose,
    "columns": _draw_columns,
    "leaders": _draw_leaders,
    "boxes": _draw_boxes,
    "rule": _draw_rule,
}
