"""PDFs drawn for the tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pymupdf

from evalkit.documents.bundle import DocumentBundle, Page
from evalkit.documents.readers import read_document

WIDTH, HEIGHT = 612, 792

LEFT = [
    "The specimen was received fresh in the",
    "department and was fixed overnight before",
    "it was cut. Sections show an invasive tumour",
    "with pushing margins and a brisk infiltrate",
    "of lymphocytes around it. No vessel is seen",
    "to be invaded in any of the twelve sections.",
]
RIGHT = [
    "Stains were done on two of the blocks that",
    "hold most of the tumour. The nuclei stain",
    "strongly for the receptor in nine of ten",
    "cells. The second stain is negative, and so",
    "is the third one. A control was run with",
    "each of them and came out as it should do.",
]


def pdf(*draw: Callable[[Any], object], rotation: int = 0, width: float = WIDTH, height: float = HEIGHT) -> bytes:
    """A PDF with one page for each drawing function."""
    document = pymupdf.open()
    for each in draw:
        page = document.new_page(width=width, height=height)
        each(page)
        page.set_rotation(rotation)
    return bytes(document.tobytes())


def nothing(page: Any) -> None:
    """Leave the page blank."""


def lines(
    texts: list[str], x: float = 72, y: float = 120, size: float = 11, font: str = "helv"
) -> Callable[[Any], None]:
    """Draw lines one below the other; ``y`` is the first baseline."""

    def draw(page: Any) -> None:
        for number, text in enumerate(texts):
            page.insert_text((x, y + number * 1.3 * size), text, fontsize=size, fontname=font)

    return draw


def draw_together(*draw: Callable[[Any], object]) -> Callable[[Any], None]:
    """Several drawings on one page."""

    def each(page: Any) -> None:
        for one in draw:
            one(page)

    return each


def table(
    rows: list[list[str]], x: float = 72, y: float = 200, width: float = 120, height: float = 22
) -> Callable[[Any], None]:
    """Draw a table with all its lines."""

    def draw(page: Any) -> None:
        columns = len(rows[0])
        for number in range(len(rows) + 1):
            page.draw_line((x, y + number * height), (x + columns * width, y + number * height))
        for number in range(columns + 1):
            page.draw_line((x + number * width, y), (x + number * width, y + len(rows) * height))
        for row, cells in enumerate(rows):
            for column, text in enumerate(cells):
                page.insert_text((x + column * width + 5, y + row * height + 15), text, fontsize=10)

    return draw


def bundle(data: bytes) -> DocumentBundle:
    """The bytes, read."""
    return read_document(
        Path("x/report.pdf"),
        file_bytes=data,
        doc_id="report",
        processing_timestamp="2026-01-02T03:04:05Z",
    )


def first(*draw: Callable[[Any], object], rotation: int = 0) -> Page:
    """The first page of what was drawn, read."""
    return bundle(pdf(*draw, rotation=rotation)).page(1)


def by_hand(objects: list[str], *, root: int = 1) -> bytes:
    """A PDF from its objects' text, numbered from 1, with a correct cross-reference table."""
    out = b"%PDF-1.4\n"
    offsets = []
    for number, text in enumerate(objects, 1):
        offsets.append(len(out))
        out += f"{number} 0 obj\n{text}\nendobj\n".encode()
    start = len(out)
    out += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    out += b"".join(f"{offset:010d} 00000 n \n".encode() for offset in offsets)
    out += f"trailer<</Size {len(objects) + 1}/Root {root} 0 R>>\nstartxref\n{start}\n%%EOF".encode()
    return out


def tree(count: int, kids: str) -> bytes:
    """A PDF whose page tree claims ``count`` pages and lists ``kids``; object 3 is a page that says ``Hi there``."""
    return by_hand(
        [
            "<</Type/Catalog/Pages 2 0 R>>",
            f"<</Type/Pages/Count {count}/Kids[{kids}]>>",
            "<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>",
            "<</Length 38>>stream\nBT /F 12 Tf 10 100 Td (Hi there) Tj ET\nendstream",
            "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        ]
    )
