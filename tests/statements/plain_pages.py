"""Statements of one page that a test writes down line by line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pymupdf
from statements.drawn import Drawn
from statements.measuring import bundle_of

from evalkit.statements.applied_template import AppliedTemplate
from evalkit.statements.template_builder import build_draft_template

Cell = tuple[float, str]
#: Left edges of dates and descriptions, right edges of the columns of amounts, in points.
_DATE_X, _TEXT_X, _AMOUNT_EDGES = 50.0, 130.0, (400.0, 480.0, 560.0)


def row(day: str, description: str, *amounts: str) -> list[Cell]:
    """Place a row's cells; the last amount is in the rightmost column."""
    cells = [(_DATE_X, day), (_TEXT_X, description)]
    for edge, amount in zip(_AMOUNT_EDGES[-len(amounts) :], amounts, strict=True):
        cells.append((edge - pymupdf.get_text_length(amount, fontsize=9), amount))
    return cells


def build_from_lines(lines: Sequence[str | list[Cell]], folder: Path) -> AppliedTemplate:
    """Draw the lines on a page and build the template that reads them."""
    document = pymupdf.open()
    page = document.new_page(width=612, height=792)
    for number, line in enumerate(lines):
        for x, text in [(_DATE_X, line)] if isinstance(line, str) else line:
            page.insert_text((x, 60 + 16 * number), text, fontsize=9)
    return build_draft_template(bundle_of(Drawn(document.tobytes(), (), 0), folder))
