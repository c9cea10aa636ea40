"""Tables without ruling lines: columns of words that are aligned under a header.

Pure geometry in points.

A header is what tells a table from an address block, a form or a list in columns: short cells that name columns
(``aligned_tables.toml``) or have no digit above a column of numbers. Without a header, rows stay lines of text.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from evalkit.core.grouping import split_into_runs
from evalkit.core.package_tables import PatternTable, load_package_table
from evalkit.documents.page_content import PageLine, PageToken

TextRow = list[PageLine]
"""Lines side by side at one height, from the left."""

#: Shares of the font size: words this far apart are in different cells of a row, unless columns show that they are not
#: (a space of a typewriter font is 0.6 wide); a gap of the second width in the header always separates columns.
_MIN_CELL_GAP, _MIN_GUTTER = 0.5, 0.8
#: Rows farther apart than these multiples of the font size (below the header) or of the smallest step between rows
#: belong to different tables; a blank line between groups of rows is allowed.
_MAX_HEADER_STEP, _MAX_ROW_STEP = 3.2, 2.6
#: Lines nearer to each other than this multiple of the font size overlap: they are one row with centred cells.
_OVERLAP_STEP = 0.75
#: Steps between the lines of a cell are at most 1.06 times the smallest step; steps between rows are larger by at least
#: the first and at most the second factor (a larger step is a blank line).
_MIN_SPACING, _MAX_SPACING = 1.2, 1.85
#: Cells with more words in a line than this are prose; headings of columns are shorter.
_MAX_LINE_WORDS, _MAX_HEADING_WORDS = 12, 6
#: Patterns of ``aligned_tables.toml`` by name.
PATTERNS = PatternTable("evalkit.documents", "aligned_tables.toml")

_Cell = tuple[PageToken, ...]
_Span = tuple[float, float]
#: A gap of the header between the headings left and right of it: outer left, left, right, outer right x.
_Gutter = tuple[float, float, float, float]


class AlignedTable(NamedTuple):
    """A table without ruling lines: its cells, and the rows of text it replaces."""

    first_row: int
    end_row: int
    cells: tuple[tuple[_Cell, ...], ...]
    """Rows of cells from the top left; a cell may be empty, all rows have equally many."""


class _Row(NamedTuple):
    """A row of text, split at every gap that may separate cells."""

    lines: TextRow
    cells: list[_Cell]
    text: str
    bottom: float
    font_size: float


@cache
def _load_header_words() -> frozenset[str]:
    return frozenset(load_package_table("evalkit.documents", "aligned_tables.toml")["header_words"].split())


def find_aligned_tables(text_rows: Sequence[TextRow]) -> Iterator[AlignedTable]:
    """Find the tables without ruling lines in rows of text, from top to bottom."""
    rows = [
        _Row(
            row,
            [cell for line in row for cell in _split_into_cells(line)],
            "  ".join(line.text for line in row),
            median(line.y1 for line in row),
            median(line.font_size for line in row),
        )
        for row in text_rows
    ]
    index = 0
    while index < len(rows) - 2:
        table = _read_table(rows, index) if len(rows[index].cells) > 1 else None
        if table:
            yield table
        index = table.end_row if table else index + 1


def _split_into_cells(line: PageLine) -> list[_Cell]:
    min_gap = _MIN_CELL_GAP * line.font_size
    runs = split_into_runs(line.tokens, lambda cell, token: token.x0 - cell[-1].x1 < min_gap)
    return [tuple(run) for run in runs]


def _read_table(rows: Sequence[_Row], first: int) -> AlignedTable | None:
    """Read the table whose header begins with row ``first``; None if it does not."""
    header = rows[first]
    if PATTERNS["label"].search(header.text) or PATTERNS["form_or_list"].search(header.text):
        return None
    end, spans = _find_extent(rows, first)
    if end - first < 3:
        return None
    header_end = _find_header_end(rows, first, end, spans[0][1])
    columns = _join_columns(spans, rows[first:header_end], rows[header_end:end])
    if len(columns) < 2:
        return None
    lines = [_assign_cells(row, columns) for row in rows[first:end]]
    starts = [0, *_find_row_starts(rows[first:end], lines, header_end - first)]
    cells = [
        tuple(tuple(token for line in lines[start:stop] for token in line[column]) for column in range(len(columns)))
        for start, stop in pairwise([*starts, len(lines)])
    ]
    while len(cells) > 1 and sum(map(bool, cells[-1])) < 2:  # a note below the table
        cells.pop()
        end = first + starts.pop()
    is_bold = all(line.bold_share > 0.9 for line in header.lines) and rows[header_end].lines[0].bold_share < 0.1
    texts = [[_join_text(cell) for cell in row] for row in cells]
    return AlignedTable(first, end, tuple(cells)) if _has_header(texts, is_bold=is_bold) else None


def _find_extent(rows: Sequence[_Row], first: int) -> tuple[int, list[_Span]]:
    """Find the end of the rows that keep the header's columns apart.

    Also returns the spans of x that words of these rows cover.
    """
    font_size = rows[first].font_size
    spans = _merge_spans(_measure_spans(rows[first]), 0.1 * font_size)
    gutters = [(*left, *right) for left, right in pairwise(spans) if right[0] - left[1] >= _MIN_GUTTER * font_size]
    end, step_limit = first + 1, _MAX_HEADER_STEP * font_size
    for index in range(first + 1, len(rows) if gutters else 0):
        row, step = rows[index], rows[index].bottom - rows[index - 1].bottom
        if (
            step > step_limit
            or not 0.5 < row.font_size / font_size < 2
            or any(len(cell) > _MAX_LINE_WORDS for cell in row.cells)  # prose
            or PATTERNS["form_or_list"].search(row.text)
        ):
            break
        row_spans = _measure_spans(row)
        if len(row_spans) > 1:
            row_spans = [_clip_span(span, gutters) for span in row_spans]
        wider_spans = _merge_spans([*spans, *row_spans], 0.1 * font_size)
        gaps = [(left[1], right[0]) for left, right in pairwise(wider_spans)]
        if all(any(start < right and end > left for start, end in gaps) for _, left, right, _ in gutters):
            if index > first + 1 and _repeats_header(row):
                break
            spans, end = wider_spans, index + 1
        elif len(row.lines) > 1 or end < index or index == first + 1:
            break
        # Else a line crosses columns. It is a heading within the table if the table goes on below.
        if index > first + 1 and step > _OVERLAP_STEP * font_size:
            step_limit = min(step_limit, _MAX_ROW_STEP * step)
    return end, spans


def _repeats_header(row: _Row) -> bool:
    texts = [_join_text(cell) for cell in row.cells]
    return not any(map(str.isdigit, row.text)) and sum(map(_names_column, texts)) >= max(2, 0.6 * len(texts))


def _measure_spans(row: _Row) -> list[_Span]:
    return [(cell[0].x0, cell[-1].x1) for cell in row.cells]


def _merge_spans(spans: Sequence[_Span], min_gap: float) -> list[_Span]:
    runs = split_into_runs(sorted(spans), lambda run, span: span[0] - max(x1 for _, x1 in run) < min_gap)
    return [(run[0][0], max(x1 for _, x1 in run)) for run in runs]


def _clip_span(span: _Span, gutters: Sequence[_Gutter]) -> _Span:
    """Clip a cell that reaches a little below or above the heading of the next column.

    The next column's own cells leave room for it.
    """
    x0, x1 = span
    for outer_left, left, right, outer_right in gutters:
        middle = (left + right) / 2
        if x0 < middle < x1 and x1 > right and x1 - right < (outer_right - right) / 2:
            x1 = middle
        elif x0 < left and middle < x1 and left - x0 < (left - outer_left) / 2:
            x0 = middle
    return x0, x1


def _find_header_end(rows: Sequence[_Row], first: int, end: int, label_right: float) -> int:
    """Find the row after the header, whose cells may have several lines.

    ``label_right``: right edge of the first column, in which one line of the header has a word.
    """
    header_end = first + 1
    has_label = rows[first].cells[0][0].x0 <= label_right
    while header_end < end - 2 and not any(map(str.isdigit, rows[header_end].text)):
        row_has_label = rows[header_end].cells[0][0].x0 <= label_right
        step = rows[header_end].bottom - rows[header_end - 1].bottom
        if (row_has_label and has_label) or step > 1.7 * rows[first].font_size:
            break
        has_label |= row_has_label
        header_end += 1
    return header_end if has_label else first + 1


def _join_columns(spans: Sequence[_Span], header: Sequence[_Row], body: Sequence[_Row]) -> list[_Span]:
    """Join spans that are one column.

    A narrow gap separates columns only if both have a heading and cells. A heading beside its column (left above right-aligned
    numbers) is joined with it.
    """
    columns: list[tuple[_Span, bool, bool]] = []
    for span in spans:
        column = (span, _has_cell(span, header), _has_cell(span, body))
        if columns:
            left_span, has_heading, has_cells = columns[-1]
            is_narrow = span[0] - left_span[1] < _MIN_GUTTER * header[0].font_size
            if (is_narrow and not (has_heading and has_cells and column[1] and column[2])) or (
                has_heading != column[1] and has_cells != column[2] and has_heading != has_cells
            ):
                columns.pop()
                column = ((left_span[0], span[1]), has_heading or column[1], has_cells or column[2])
        columns.append(column)
    return [column[0] for column in columns]


def _has_cell(span: _Span, rows: Sequence[_Row]) -> bool:
    return any(_covers(span, cell) for row in rows for cell in _measure_spans(row))


def _covers(span: _Span, other_span: _Span) -> bool:
    """Return True if the spans have more than half of the narrower one in common."""
    return _overlap(span, other_span) > 0.5 * min(span[1] - span[0], other_span[1] - other_span[0])


def _overlap(span: _Span, other_span: _Span) -> float:
    return min(span[1], other_span[1]) - max(span[0], other_span[0])


def _assign_cells(row: _Row, columns: Sequence[_Span]) -> list[list[PageToken]]:
    """Assign a row's words to columns; a cell across columns belongs to the first."""
    assigned_tokens: list[list[PageToken]] = [[] for _ in columns]
    for cell, span in zip(row.cells, _measure_spans(row), strict=True):
        index = next(
            (index for index, column in enumerate(columns) if _covers(column, span)),
            max(range(len(columns)), key=lambda index: _overlap(columns[index], span)),
        )
        assigned_tokens[index] += cell
    return assigned_tokens


def _find_row_starts(rows: Sequence[_Row], lines: Sequence[list[list[PageToken]]], header_end: int) -> Iterator[int]:
    """Find the text rows, after the first, with which rows of the table begin.

    The other text rows continue the cells above.
    """
    yield header_end
    indices = range(header_end + 1, len(rows))
    steps = {index: rows[index].bottom - rows[index - 1].bottom for index in indices}
    smallest_step = min((step for step in steps.values() if step > _OVERLAP_STEP * rows[0].font_size), default=0.0)
    close_rows = [index for index in indices if steps[index] <= 1.06 * smallest_step]
    wider_steps = [step for step in steps.values() if step > 1.06 * smallest_step]
    has_spacing = (
        2 * len(wider_steps) >= len(close_rows)
        and _MIN_SPACING * smallest_step <= min(wider_steps, default=0.0) <= _MAX_SPACING * smallest_step
        and 2 * sum(all(lines[index]) for index in close_rows) <= len(close_rows)
    )
    for index in indices:
        filled_cells = [cell for cell in lines[index] if cell]
        number_count = sum(any(map(str.isdigit, cell[0].text)) for cell in filled_cells)
        is_continued = (
            steps[index] < _OVERLAP_STEP * rows[index].font_size
            or (has_spacing and index in close_rows)
            or (not lines[index][0] and (number_count < 2 or 2 * len(filled_cells) < len(lines[index])))
            or (index in close_rows and all(cell[0].text[0].islower() for cell in filled_cells))
        )
        if not is_continued:
            yield index


def _has_header(texts: Sequence[Sequence[str]], *, is_bold: bool) -> bool:
    """Return True if the first row of cells names the columns of the others."""
    header, body = texts[0], [row for row in texts[1:] if sum(map(bool, row)) > 1]
    label_count = sum(any(map(PATTERNS["label"].search, row)) for row in body)
    has_numbers = any(map(str.isdigit, "".join(cell for row in body for cell in row)))
    if (
        len(body) < (2 if has_numbers and len(header) > 2 else 3)
        or 2 * len(body) < len(texts) - 1
        or 3 * label_count >= len(body)
        or sum(map(bool, header)) < max(2, len(header) - 1)
        or any(len(heading.split()) > _MAX_HEADING_WORDS for heading in header)
    ):
        return False
    evidence = sum(
        _weigh_heading(heading, [cell for cell in cells if cell])
        for heading, cells in zip(header, zip(*body, strict=True), strict=True)
        if heading
    )
    return evidence + is_bold >= 2 and (is_bold or any(map(_names_column, filter(None, header))))


def _weigh_heading(heading: str, cells: Sequence[str]) -> int:
    """Return 1 if a text is the heading of the cells below, -1 if it is like them."""
    if _names_column(heading) and heading not in cells:
        return 1
    number_count = sum(any(map(str.isdigit, cell)) for cell in cells)
    is_text = not any(map(str.isdigit, heading))
    return -1 if PATTERNS["value_start"].match(heading) else int(is_text and number_count >= max(2, 0.8 * len(cells)))


def _names_column(text: str) -> bool:
    """Return True if at least half of a cell's words are usual in headings of columns."""
    words = re.findall(r"[^\W\d_]+", text.casefold())
    known_count = len([word for word in words if word in _load_header_words()])
    return bool(PATTERNS["header_with_digits"].fullmatch(text)) or 2 * known_count >= max(len(words), 1)


def _join_text(cell: Sequence[PageToken]) -> str:
    return " ".join(token.text for token in cell)
