"""Tables without ruling lines, found from columns of words that are aligned under a header. Pure geometry in points.

A header is what tells a table from an address block, a form or a list in columns: short cells that name columns
(``aligned_tables.toml``) or have no digit above a column of numbers. Without a header, rows stay lines of text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import Annotated, NamedTuple

from pydantic import BeforeValidator

from evalkit.core.package_tables import load_package_table
from evalkit.core.records import StrictRecord
from evalkit.documents.page_content import PageLine, PageToken

TextRow = list[PageLine]
"""Lines side by side at one height, from the left."""

#: Shares of the font size: columns are at least so far apart; a gap of this width in the header always separates
#: columns, a narrower one only if no cell crosses it (a space of a typewriter font is 0.6 wide).
_MIN_GUTTER, _SURE_GUTTER = 0.45, 1.0
#: Rows farther apart than these multiples of the font size (below the header) or of the smallest step between rows
#: belong to different tables; a blank line between groups of rows is allowed.
_MAX_HEADER_STEP, _MAX_ROW_STEP = 3.2, 2.3
#: Lines nearer to each other than this multiple of the font size overlap: they are one row with centred cells.
_OVERLAP_STEP = 0.75
#: Cells with more words than this are prose; header cells are shorter.
_MAX_LINE_WORDS, _MAX_HEADER_WORDS = 12, 6
#: Blank lines to fill in and dotted leaders belong to forms and tables of contents.
_FILL_LINE = re.compile(r"_{3,}|\.{4,}|[.…]{4,}")
_LABEL_END = re.compile(r":(?!\d)")
_BULLET = re.compile(r"[•◦▪▫‣∙·●○■□❑☐☑☒➢►\uf0a7\uf0b7]")
_VALUE_START = re.compile(r"[\d<>≤≥$€£]")


class AlignedTable(NamedTuple):
    """A table without rules: cells of words, and the rows of text that it replaces."""

    first_row: int
    end_row: int
    cells: tuple[tuple[tuple[PageToken, ...], ...], ...]
    """Rows of cells from the top left; a cell may be empty, all rows have equally many."""


class _HeaderTable(StrictRecord):
    header_words: Annotated[frozenset[str], BeforeValidator(lambda words: frozenset(words.split()))]
    header_with_digits: Annotated[re.Pattern[str], BeforeValidator(lambda pattern: re.compile(pattern, re.IGNORECASE))]


@cache
def _load_header_table() -> _HeaderTable:
    return _HeaderTable.model_validate(load_package_table("evalkit.documents", "aligned_tables.toml"))


def find_aligned_tables(rows: Sequence[TextRow]) -> Iterator[AlignedTable]:
    """Find the tables without rules in rows of text, from the top down."""
    index = 0
    while index < len(rows) - 2:
        table = _read_table(rows, index) if len(rows[index]) > 1 else None
        if table:
            yield table
        index = table.end_row if table else index + 1


def _read_table(rows: Sequence[TextRow], first: int) -> AlignedTable | None:
    """Read the table whose header is row ``first``; None if that row is no header."""
    if not _may_be_header(rows[first]):
        return None
    end, spans = _find_extent(rows, first)
    if end - first < 3:
        return None
    header_end = _find_header_end(rows, first, end, spans)
    edges = _find_column_edges(spans, [rows[first:header_end], rows[header_end:end]], rows[first][0].font_size)
    if len(edges) < 2:
        return None
    lines = [_assign_tokens(row, edges) for row in rows[first:end]]
    starts = [0, *_find_row_starts(rows[first:end], lines, header_end - first)]
    cells = [
        tuple(tuple(token for line in lines[start:stop] for token in line[column]) for column in range(len(edges)))
        for start, stop in pairwise([*starts, len(lines)])
    ]
    while len(cells) > 1 and sum(map(bool, cells[-1])) < 2:  # a note below the table
        cells.pop()
        end = first + starts.pop()
    is_bold = all(line.bold_share > 0.9 for line in rows[first]) and rows[header_end][0].bold_share < 0.1
    texts = [[" ".join(token.text for token in cell) for cell in row] for row in cells]
    return AlignedTable(first, end, tuple(cells)) if _has_header(texts, is_bold=is_bold) else None


def _may_be_header(row: TextRow) -> bool:
    return not any(
        _LABEL_END.search(line.text) or _FILL_LINE.search(line.text) or _BULLET.match(line.text) for line in row
    )


def _find_extent(rows: Sequence[TextRow], first: int) -> tuple[int, list[tuple[float, float]]]:
    """Find the end of the rows that keep the header's columns apart.

    Also returns the spans of x that words of these rows cover.
    """
    font_size = rows[first][0].font_size
    spans = _merge_spans([], rows[first], _MIN_GUTTER * font_size)
    gutters = [(left[1], right[0]) for left, right in pairwise(spans) if right[0] - left[1] >= _SURE_GUTTER * font_size]
    step_limit = _MAX_HEADER_STEP * font_size
    end = first + 1
    for index in range(first + 1, len(rows)):
        row, step = rows[index], rows[index][0].y1 - rows[index - 1][0].y1
        if step > step_limit or not 0.6 < row[0].font_size / font_size < 1.6 or _is_prose_or_form(row):
            break
        wider_spans = _merge_spans(spans, row, _MIN_GUTTER * font_size)
        if _keeps_open(gutters, wider_spans):
            if index > first + 1 and len(row) > 1 and _count_header_words(row) >= max(2, 0.6 * len(row)):
                break
            spans, end = wider_spans, index + 1
        elif len(row) > 1 or end < index or index < first + 2:
            break
        # A line that crosses columns is a heading within the table only if the table goes on below.
        if index > first + 1 and step > _OVERLAP_STEP * font_size:
            step_limit = min(step_limit, _MAX_ROW_STEP * step)
    return end, spans


def _is_prose_or_form(row: TextRow) -> bool:
    return any(
        len(line.tokens) > _MAX_LINE_WORDS or _FILL_LINE.search(line.text) or _BULLET.match(line.text) for line in row
    )


def _merge_spans(spans: Sequence[tuple[float, float]], row: TextRow, min_gutter: float) -> list[tuple[float, float]]:
    """Merge spans of x with those of a row's words; smaller gaps than ``min_gutter`` close."""
    merged_spans: list[tuple[float, float]] = []
    for x0, x1 in sorted([*spans, *((token.x0, token.x1) for line in row for token in line.tokens)]):
        if merged_spans and x0 - merged_spans[-1][1] < min_gutter:
            merged_spans[-1] = (merged_spans[-1][0], max(x1, merged_spans[-1][1]))
        else:
            merged_spans.append((x0, x1))
    return merged_spans


def _keeps_open(gutters: Iterable[tuple[float, float]], spans: Sequence[tuple[float, float]]) -> bool:
    gaps = [(left[1], right[0]) for left, right in pairwise(spans)]
    return all(any(start < right and end > left for start, end in gaps) for left, right in gutters)


def _count_header_words(row: TextRow) -> int:
    return sum(_names_column(line.text) for line in row)


def _names_column(text: str) -> bool:
    """Return True if at least half of a cell's words are usual in column headings."""
    table = _load_header_table()
    if table.header_with_digits.fullmatch(text):
        return True
    words = re.findall(r"[^\W\d_]+", text.casefold())
    return 2 * sum(word in table.header_words for word in words) >= max(len(words), 1)


def _find_header_end(rows: Sequence[TextRow], first: int, end: int, spans: Sequence[tuple[float, float]]) -> int:
    """Find the row after the header, whose cells may have several lines."""
    header_end = first + 1
    is_label_seen = rows[first][0].x0 <= spans[0][1]
    while header_end < end - 2 and not any(map(str.isdigit, _join_text(rows[header_end]))):
        has_label = rows[header_end][0].x0 <= spans[0][1]
        step = rows[header_end][0].y1 - rows[header_end - 1][0].y1
        if (has_label and is_label_seen) or step > 1.7 * rows[first][0].font_size:
            break
        is_label_seen |= has_label
        header_end += 1
    return header_end if is_label_seen else first + 1


def _join_text(row: TextRow) -> str:
    return " ".join(line.text for line in row)


def _find_column_edges(
    spans: Sequence[tuple[float, float]], parts: Sequence[Sequence[TextRow]], font_size: float
) -> list[float]:
    """Find the left edges of the columns. ``parts``: rows of the header and of the body.

    A narrow gap separates columns if both have a heading; a heading beside its column (left above right-aligned
    numbers) is joined with it.
    """
    columns = [
        (
            x0,
            x1,
            *(any(x0 <= token.x0 <= x1 for row in part for line in row for token in line.tokens) for part in parts),
        )
        for x0, x1 in spans
    ]
    index = 1
    while index < len(columns):
        left, right = columns[index - 1], columns[index]
        is_narrow = right[0] - left[1] < _SURE_GUTTER * font_size
        if (is_narrow and not (left[2] and right[2])) or {left[2:], right[2:]} == {(True, False), (False, True)}:
            columns[index - 1 : index + 1] = [(left[0], right[1], left[2] or right[2], left[3] or right[3])]
        else:
            index += 1
    return [column[0] for column in columns]


def _assign_tokens(row: TextRow, edges: Sequence[float]) -> list[list[PageToken]]:
    """Assign a row's words to columns; words after a usual space stay with the word before."""
    cells: list[list[PageToken]] = [[] for _ in edges]
    for line in row:
        right, column = -1e9, 0
        for token in line.tokens:
            if token.x0 - right >= _MIN_GUTTER * line.font_size:
                column = max(bisect_right(edges, token.x0 + 0.01) - 1, 0)
            cells[column].append(token)
            right = token.x1
    return cells


def _find_row_starts(rows: Sequence[TextRow], lines: Sequence[list[list[PageToken]]], header_end: int) -> Iterator[int]:
    """Find the text rows, after the first, with which rows of the table begin.

    Other text rows continue the cells above.
    """
    for index in range(header_end, len(rows)):
        step, font_size = rows[index][0].y1 - rows[index - 1][0].y1, rows[index][0].font_size
        filled_cells = [cell for cell in lines[index] if cell]
        number_count = sum(any(map(str.isdigit, token.text)) for cell in filled_cells for token in cell[:1])
        is_continued = (
            step < _OVERLAP_STEP * font_size
            or (not lines[index][0] and (number_count < 2 or 2 * len(filled_cells) < len(lines[index])))
            or all(cell[0].text[0].islower() for cell in filled_cells)
        )
        if index == header_end or not is_continued:
            yield index


def _has_header(texts: Sequence[Sequence[str]], *, is_bold: bool) -> bool:
    """Return True if the first row of cells names the columns of the others."""
    header, body = texts[0], [row for row in texts[1:] if sum(map(bool, row)) > 1]
    column_count = len(header)
    label_count = sum(any(cell.endswith(":") for cell in row) for row in body)
    if (
        len(body) < (3 if column_count == 2 else 2)
        or 2 * len(body) < len(texts) - 1
        or 3 * label_count >= len(body)
        or sum(map(bool, header)) < max(2, column_count - 1)
        or any(len(cell.split()) > _MAX_HEADER_WORDS for cell in header)
    ):
        return False
    columns = [[cell for cell in column if cell] for column in zip(*body, strict=True)]
    named_count = sum(map(_names_column, filter(None, header)))
    evidence = sum(_weigh_heading(heading, cells) for heading, cells in zip(header, columns, strict=True))
    return evidence + is_bold >= 2 and (named_count > 0 or is_bold)


def _weigh_heading(heading: str, cells: Sequence[str]) -> int:
    """Return 1 if a cell is the heading of the cells below, -1 if it is like them."""
    if heading and _reduce_to_shape(heading) in map(_reduce_to_shape, cells) and any(map(str.isdigit, heading)):
        return -1
    if _names_column(heading) and heading:
        return 1
    if _VALUE_START.match(heading):
        return -1
    number_count = sum(any(map(str.isdigit, cell)) for cell in cells)
    return int(
        bool(heading) and not any(map(str.isdigit, heading)) and number_count > 1 and number_count >= 0.8 * len(cells)
    )


def _reduce_to_shape(text: str) -> str:
    return re.sub(r"\d+", "9", re.sub(r"[^\W\d_]+", "a", text))
