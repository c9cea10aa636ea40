"""Move the dates of a table to its left, whatever the order of its columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import median
from typing import Literal

from evalkit.documents.bundle import Page
from evalkit.statements.amounts import parse_amount
from evalkit.statements.dates import DATE_FORMATS, parse_partial_date
from evalkit.statements.text_lines import TextLine, group_words_into_lines, shift_word

#: Fewest rows, and smallest share of them, with a text or an amount left of the date: else dates are on the left already.
_MIN_LATE_ROWS, _MIN_LATE_SHARE = 3, 0.3
#: The date of booking and the value date.
_MAX_DATE_COLUMNS = 2
#: Most lines of titles above the first row of a page.
_MAX_TITLE_LINES = 4
#: Space beside the dates, and between them and the next column, in page widths.
_MARGIN, _GAP = 0.003, 0.02
_LETTERS = re.compile(r"[^\W\d_]{2}")


def group_pages_into_lines(pages: Sequence[Page]) -> tuple[tuple[TextLine, ...], ...]:
    """Group the words of pages into lines, with the dates of rows left of all else.

    The other columns move right by the room of the dates; boxes on the page stay.
    """
    lines_by_page = tuple(map(group_words_into_lines, pages))
    for _ in range(_MAX_DATE_COLUMNS):
        if (span := _find_late_dates(lines_by_page)) is None:
            break
        lines_by_page = tuple(tuple(_move_dates(lines, *span)) for lines in lines_by_page)
    return lines_by_page


def _is_date(cell: TextLine) -> bool:
    return parse_partial_date(cell.text, DATE_FORMATS, is_ocr_text=cell.is_ocr_text) is not None


def _name_kind(cell: TextLine) -> Literal["date", "amount", "text", "number"]:
    if _is_date(cell):
        return "date"
    if any(parse_amount(cell.text, separator, is_ocr_text=cell.is_ocr_text) for separator in (".", ",")):
        return "amount"
    return "text" if _LETTERS.search(cell.text) else "number"


def _find_late_dates(lines_by_page: Sequence[Sequence[TextLine]]) -> tuple[float, float, float] | None:
    """Find dates behind texts or amounts: their new place and horizontal range.

    None if dates come first.
    """
    rows = [line for lines in lines_by_page for line in lines if {"date", "amount"} <= set(map(_name_kind, line.cells))]
    late_dates = list(filter(None, map(_find_late_date, rows)))
    if len(late_dates) < max(_MIN_LATE_ROWS, _MIN_LATE_SHARE * len(rows)):
        return None
    middle = median(sum(cell.box[::2]) / 2 for cell in late_dates)
    column = [cell for cell in late_dates if cell.box[0] < middle < cell.box[2]]
    if len(column) < _MIN_LATE_ROWS:
        return None
    # Behind the date that comes first.
    left = median(row.cells[0].box[2] if _is_date(row.cells[0]) else 0.0 for row in rows if _find_late_date(row))
    return left, min(cell.box[0] for cell in column) - _MARGIN, max(cell.box[2] for cell in column) + _MARGIN


def _find_late_date(row: TextLine) -> TextLine | None:
    """Return the row's first date behind its amount or text.

    Without what follows another date: a table beside, or a list of daily balances.
    """
    kinds = [_name_kind(cell) for cell in row.cells]
    for position, (cell, kind) in enumerate(zip(row.cells, kinds, strict=True)):
        before, behind = kinds[:position], kinds[position + 1 :]
        # A code may be printed before the date of a row that has its text behind it.
        is_behind = "amount" in before or ("text" in before and "text" not in behind)
        is_other_row = {"date", "amount"} <= set(before) and ("amount" in behind or "text" not in kinds)
        if kind == "date" and is_behind and not is_other_row:
            return cell
    return None


def _move_dates(lines: Sequence[TextLine], left: float, x0: float, x1: float) -> Iterator[TextLine]:
    def is_row(line: TextLine) -> bool:
        return any(_is_date(cell) for cell in line.cells if x0 <= cell.box[0] and cell.box[2] <= x1)

    def is_table_line(line: TextLine) -> bool:
        return not any(
            (cell.box[0] < edge < cell.box[2] or x0 < cell.box[0] < x1) and any(map(str.isdigit, cell.text))
            for cell in line.cells
            for edge in (x0, x1)
        )

    def compute_shift(x: float) -> float:
        if x < left:
            return 0.0
        return x0 - left - _GAP * (left > 0) if x0 <= x <= x1 else (x0 - x1 if x < x0 else 0) - 2 * _GAP

    first = next((position for position, line in enumerate(lines) if is_row(line)), len(lines)) - _MAX_TITLE_LINES
    for position, line in enumerate(lines):
        if position < first or not (is_row(line) or is_table_line(line)):
            yield line
            continue
        # A title may be wider than its dates.
        moved = [
            shift_word(word, compute_shift(word.center_x if is_row(line) else sum(cell.box[::2]) / 2))
            for cell in line.cells
            for word in cell.words
        ]
        yield replace(line, words=tuple(sorted(moved, key=lambda word: word.box[0])))
