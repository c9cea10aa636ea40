"""Bring the dates of a table to its left, whatever the order of its columns on the page."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import median

from evalkit.documents.bundle import Page
from evalkit.statements.amounts import parse_amount
from evalkit.statements.dates import DATE_FORMATS, parse_partial_date
from evalkit.statements.text_lines import TextLine, group_words_into_lines

#: Fewest rows, and smallest share of them, with a text or an amount left of the date: else dates are on the left already.
_MIN_LATE_ROWS, _MIN_LATE_SHARE = 3, 0.3
#: Most lines of titles above the first row of a page.
_MAX_TITLE_LINES = 4
#: Space beside the dates, in page widths.
_MARGIN = 0.003
_LETTERS = re.compile(r"[^\W\d_]{2}")


def group_pages_into_lines(pages: Sequence[Page]) -> tuple[tuple[TextLine, ...], ...]:
    """Group the words of pages into lines, with the dates of rows left of all else.

    The other columns move right by the room of the dates; boxes on the page stay.
    """
    lines_by_page = tuple(map(group_words_into_lines, pages))
    span = _find_late_dates(lines_by_page)
    return tuple(tuple(_move_dates(lines, *span)) for lines in lines_by_page) if span else lines_by_page


def _is_date(cell: TextLine) -> bool:
    return parse_partial_date(cell.text, DATE_FORMATS, is_ocr_text=cell.is_ocr_text) is not None


def _is_amount(cell: TextLine) -> bool:
    return any(parse_amount(cell.text, separator, is_ocr_text=cell.is_ocr_text) for separator in (".", ","))


def _find_late_dates(lines_by_page: Sequence[Sequence[TextLine]]) -> tuple[float, float] | None:
    """Return the horizontal range of dates behind texts or amounts; None if dates come first."""
    dates_of_rows: list[list[TextLine]] = []
    late_dates: list[list[TextLine]] = []
    for line in (line for lines in lines_by_page for line in lines):
        dates = [cell for cell in line.cells if _is_date(cell)]
        if dates and any(_is_amount(cell) and cell not in dates for cell in line.cells):
            dates_of_rows.append(dates)
            first = next(cell for cell in line.cells if cell in dates or _is_amount(cell) or _LETTERS.search(cell.text))
            late_dates += [dates] if first not in dates else []
    if len(late_dates) < max(_MIN_LATE_ROWS, _MIN_LATE_SHARE * len(dates_of_rows)):
        return None
    middle = median(sum(dates[0].box[::2]) / 2 for dates in late_dates)
    dates_there = [cell for dates in late_dates for cell in dates if cell.box[0] < middle < cell.box[2]]
    if len(dates_there) < _MIN_LATE_ROWS:
        return None
    return min(cell.box[0] for cell in dates_there) - _MARGIN, max(cell.box[2] for cell in dates_there) + _MARGIN


def _move_dates(lines: Sequence[TextLine], x0: float, x1: float) -> Iterator[TextLine]:
    def is_row(line: TextLine) -> bool:
        return any(_is_date(cell) for cell in line.cells if x0 <= cell.box[0] and cell.box[2] <= x1)

    def is_table_line(line: TextLine) -> bool:
        return not any(
            cell.box[0] < edge < cell.box[2] or (x0 < cell.box[0] < x1 and any(map(str.isdigit, cell.text)))
            for cell in line.cells
            for edge in (x0, x1)
        )

    first = next((position for position, line in enumerate(lines) if is_row(line)), len(lines)) - _MAX_TITLE_LINES
    for position, line in enumerate(lines):
        if position < first or not (is_row(line) or is_table_line(line)):
            yield line
            continue
        shifts = [-x0 if x0 <= word.center_x <= x1 else (x1 - x0) * (word.center_x < x0) for word in line.words]
        moved = (
            replace(
                word,
                box=(word.box[0] + shift, word.box[1], word.box[2] + shift, word.box[3]),
                page_box=word.page_box or word.box,
            )
            for word, shift in zip(line.words, shifts, strict=True)
        )
        yield replace(line, words=tuple(sorted(moved, key=lambda word: word.box[0])))
