"""Page segmentation: the lines of a page become blocks in reading order.

Pure geometry; lengths are in points.

Three rules do most of the work:

- A gap separates columns only if prose is on both sides of the gap. Labels and their values, and tables without
  rules, are read row by row.
- If the first word of the next line would still have fitted on a line, the line was ended on purpose: it is the last
  of its paragraph.
- A heading is larger or bolder than most text of the page, or short and in capitals.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from statistics import median
from typing import Literal

from evalkit.core.grouping import group_by, split_into_runs
from evalkit.documents.aligned_tables import TextRow, find_aligned_tables
from evalkit.documents.bundle import BlockType, enclose_boxes
from evalkit.documents.furniture import find_stamp_line_indices, is_stamp_line
from evalkit.documents.page_content import PageContent, PageLine, PageToken, is_token_centre_in_box
from evalkit.documents.ruled_tables import GridCell, RulingLine, TableGrid, find_rule_stacks

#: Headers and footers are searched for in this share of the page's height at the top and at the bottom.
MARGIN_SHARE = 0.09
_LIST_MARKER = re.compile(
    r"[•◦▪▫‣⁃∙·●○■□❑☐☑☒✓✔➢►\uf0a7\uf0b7\uf0d8*–—-]"  # \uf0…: bullets of the fonts Wingdings and Symbol
    r"|\(?(\d{1,2}|[A-Za-z]|[ivx]{1,5})[.)]"
)
_PAGE_NUMBER = re.compile(r"\W*((page|pg\.?|p\.)\s*)?\d{1,4}(\s*(of|/)\s*\d{1,4})?\W*", re.IGNORECASE)
#: A frame with more words than this in a cell holds whole passages: it is a form's layout, not a table.
_MAX_CELL_WORDS = 80
_MIN_CELL_GAP = 1.5
_MAX_DEPTH = 8


@dataclass(frozen=True)
class LayoutBlock:
    """A heading, paragraph, list item or table, as rows of cells of words.

    Blocks other than tables have one row with one cell.
    """

    type: BlockType
    rows: tuple[tuple[tuple[PageToken, ...], ...], ...]
    is_furniture: bool = False

    @property
    def tokens(self) -> Sequence[PageToken]:
        """All words of the block, in reading order."""
        if self.type != "table":
            return self.rows[0][0]
        return [token for row in self.rows for cell in row for token in cell]

    def map_tokens(self, move: Callable[[PageToken], PageToken]) -> LayoutBlock:
        """Return a copy of the block in which ``move`` has replaced every word."""
        return replace(self, rows=tuple(tuple(tuple(map(move, cell)) for cell in row) for row in self.rows))


@dataclass(frozen=True)
class _PlacedTable:
    """A table with its words and box, to be arranged among the page's lines."""

    block: LayoutBlock
    x0: float
    y0: float
    x1: float
    y1: float


_Element = PageLine | _PlacedTable


@dataclass(frozen=True)
class PrevailingTypography:
    """Font size and style of most of a page's text, from which headings differ."""

    font_size: float
    """The commonest font size, in points."""
    is_bold: bool
    is_capitals: bool


class TypographyStats(Counter[tuple[float, float, bool]]):
    """Character counts by font size, by the line's bold share, and by capitals."""

    @property
    def typography(self) -> PrevailingTypography:
        """The most frequent font size; bold or capitals if most of the text is so."""
        characters_by_size: Counter[float] = Counter()
        for (font_size, _, _), length in self.items():
            characters_by_size[font_size] += length
        bold_length = sum(length * bold_share for (_, bold_share, _), length in self.items())
        return PrevailingTypography(
            max(characters_by_size, key=lambda size: (characters_by_size[size], -size), default=0.0),
            2 * bold_length > self.total(),
            2 * sum(length for (_, _, is_capitals), length in self.items() if is_capitals) > self.total(),
        )


def measure_typography(lines: Iterable[PageLine]) -> TypographyStats:
    """Count the characters of lines by font size (rounded to half points) and style."""
    stats = TypographyStats()
    for line in lines:
        stats[round(2 * line.font_size) / 2, line.bold_share, line.text.isupper()] += len(line.text)
    return stats


def collect_masked_margin_texts(page: PageContent) -> set[tuple[str, str]]:
    """Collect the texts in a page's margins, each with ``top`` or ``bottom``.

    Digits are masked and case is folded, so that running page numbers are equal. A row that also appears on another
    page is a header or footer.
    """
    return {
        (zone, fold_case_and_mask_digits(_join_row_text(row)))
        for zone, row in _find_rows_in_margins(_select_upright_lines(page), page)
    }


def fold_case_and_mask_digits(text: str) -> str:
    """Replace numbers by ``#`` and ignore case, so that page numbers compare equal."""
    return re.sub(r"\d+", "#", text).casefold()


def lay_out_blocks(
    page: PageContent, repeated_margin_keys: set[tuple[str, str]], typography: PrevailingTypography
) -> list[LayoutBlock]:
    """Arrange a page's visible lines as blocks: header, body, footer, sideways text.

    ``repeated_margin_keys`` are the keys that :func:`collect_masked_margin_texts` returned for more than one page;
    ``typography`` describes most of the text, from which headings differ.
    """
    header_blocks: list[LayoutBlock] = []
    footer_blocks: list[LayoutBlock] = []
    upright_lines = _select_upright_lines(page)
    furniture_line_ids: set[int] = set()
    for is_header, row in _find_furniture_rows(upright_lines, page, repeated_margin_keys):
        (header_blocks if is_header else footer_blocks).append(
            LayoutBlock(_classify_block([row], typography), ((_join_row_tokens([row]),),), is_furniture=True)
        )
        furniture_line_ids.update(map(id, row))
    tables, free_lines = _fill_tables(
        page.grids, [line for line in upright_lines if id(line) not in furniture_line_ids]
    )
    open_tables, free_lines = _fill_tables(
        (
            grid
            for stack in find_rule_stacks(page.horizontal_rules)
            for grid in _build_grid_of_rule_stack(stack, free_lines)
        ),
        free_lines,
    )
    tables += open_tables
    blocks = [
        block
        for region in _split_into_reading_regions([*free_lines, *tables])
        for block in _build_blocks(region, typography)
    ]
    return [*header_blocks, *blocks, *footer_blocks, *_lay_out_sideways(page, typography)]


def _select_upright_lines(page: PageContent) -> list[PageLine]:
    return [line for line in page.visible_lines if line.quarter_turns == 0]


def _lay_out_sideways(page: PageContent, typography: PrevailingTypography) -> Iterator[LayoutBlock]:
    """Build the blocks of sideways, upside-down and oblique text.

    The lines of each direction are arranged as if the page were turned upright, and then turned back. Sideways text
    runs along a page's edges, or the page is a landscape page that was not rotated.
    """
    for quarter_turns in (1, 2, 3):
        upright_lines: list[_Element] = [
            PageLine(
                tuple(_rotate_token(token, 4 - quarter_turns, page.width, page.height) for token in line.tokens),
                line.font_size,
                line.bold_share,
            )
            for line in page.visible_lines
            if line.quarter_turns == quarter_turns
        ]
        width, height = (page.height, page.width) if quarter_turns % 2 else (page.width, page.height)
        rotate_back = partial(_rotate_token, quarter_turns=quarter_turns, width=width, height=height)
        for region in _split_into_reading_regions(upright_lines):
            yield from (block.map_tokens(rotate_back) for block in _build_blocks(region, typography))
    yield from (
        LayoutBlock("paragraph", ((line.tokens,),)) for line in page.visible_lines if line.quarter_turns is None
    )


def _rotate_token(token: PageToken, quarter_turns: int, width: float, height: float) -> PageToken:
    text, x0, y0, x1, y1 = token
    for _ in range(quarter_turns):
        x0, y0, x1, y1 = height - y1, x0, height - y0, x1
        width, height = height, width
    return PageToken(text, x0, y0, x1, y1)


# Furniture


def _find_rows_in_margins(
    lines: Sequence[PageLine], page: PageContent
) -> Iterator[tuple[Literal["top", "bottom"], TextRow]]:
    top_limit, bottom_limit = MARGIN_SHARE * page.height, (1 - MARGIN_SHARE) * page.height
    for row in _group_rows(line for line in lines if line.y0 <= top_limit):
        if all(line.y1 <= top_limit for line in row):
            yield "top", row
    for row in _group_rows(line for line in lines if line.y1 >= bottom_limit):
        if all(line.y0 >= bottom_limit for line in row):
            yield "bottom", row


def _find_furniture_rows(
    lines: Sequence[PageLine], page: PageContent, repeated_margin_keys: set[tuple[str, str]]
) -> Iterator[tuple[bool, TextRow]]:
    """Find header and footer rows from the top down; True for rows in the upper half.

    A row counts if it is in a margin and repeats on other pages, is a page number or looks like a stamp; or if it is a
    stamp near the top or bottom of a page with enough other text.
    """
    margin_line_ids = {
        id(line)
        for zone, row in _find_rows_in_margins(lines, page)
        if (zone, fold_case_and_mask_digits(_join_row_text(row))) in repeated_margin_keys
        or _PAGE_NUMBER.fullmatch(_join_row_text(row))
        or is_stamp_line(_join_row_text(row))
        for line in row
    }
    rows = _group_rows(lines)
    stamps = find_stamp_line_indices([_join_row_text(row) for row in rows])
    for index, row in enumerate(rows):
        if index in stamps or all(id(line) in margin_line_ids for line in row):
            yield 2 * index < len(rows), row


def mark_stamps(blocks: Sequence[LayoutBlock]) -> list[LayoutBlock]:
    """Return a page's blocks in reading order, with stamps marked as page furniture."""
    stamps = find_stamp_line_indices([" ".join(token.text for token in block.tokens) for block in blocks])
    return [replace(block, is_furniture=block.is_furniture or index in stamps) for index, block in enumerate(blocks)]


def _join_row_tokens(rows: Iterable[TextRow]) -> tuple[PageToken, ...]:
    return tuple(token for row in rows for line in row for token in line.tokens)


def _join_row_text(row: TextRow) -> str:
    return " ".join(line.text for line in row)


# Tables


def _fill_tables(grids: Iterable[TableGrid], lines: Sequence[PageLine]) -> tuple[list[_PlacedTable], list[PageLine]]:
    """Build the tables of these grids; also return the lines that are outside of them.

    Each word is put into one table only. Lines that cross a table's edge are split there.
    """
    free_lines = list(lines)
    tables: list[_PlacedTable] = []
    # The smallest of nested frames comes first, so that the words inside it are no longer available to larger frames.
    for grid in sorted(grids, key=lambda grid: (grid.box[2] - grid.box[0]) * (grid.box[3] - grid.box[1])):
        inner_lines, outer_lines = _split_lines_by_box(free_lines, grid.box)
        block = _build_table_block(grid, inner_lines)
        if block:
            tables.append(_PlacedTable(block, *grid.box))
            free_lines = outer_lines
    return tables, free_lines


def _split_lines_by_box(
    lines: Iterable[PageLine], box: tuple[float, float, float, float]
) -> tuple[list[PageLine], list[PageLine]]:
    inner_lines: list[PageLine] = []
    outer_lines: list[PageLine] = []
    x0, y0, x1, y1 = box
    for line in lines:
        if line.x0 >= x0 and line.y0 >= y0 and line.x1 <= x1 and line.y1 <= y1:
            inner_lines.append(line)
        elif line.x0 > x1 + 1 or line.y0 > y1 + 1 or line.x1 < x0 - 1 or line.y1 < y0 - 1:
            outer_lines.append(line)
        else:
            inner_tokens = tuple(token for token in line.tokens if is_token_centre_in_box(token, box))
            outer_tokens = tuple(token for token in line.tokens if not is_token_centre_in_box(token, box))
            inner_lines += [PageLine(inner_tokens, line.font_size, line.bold_share)] if inner_tokens else []
            outer_lines += [PageLine(outer_tokens, line.font_size, line.bold_share)] if outer_tokens else []
    return inner_lines, outer_lines


def _build_table_block(grid: TableGrid, lines: Sequence[PageLine]) -> LayoutBlock | None:
    """Build a table from a grid and the lines in it.

    None if a cell holds prose, if most words are alone in their row, or if fewer than two rows or columns have words.
    """
    lines_by_cell: dict[tuple[float, float], list[PageLine]] = {}
    for line in lines:
        tokens_by_cell = group_by(
            line.tokens,
            lambda token: grid.find_nearest_cell((token.x0 + token.x1) / 2, (token.y0 + token.y1) / 2),
        )
        for cell, tokens in tokens_by_cell.items():
            cell_line = line if len(tokens_by_cell) == 1 else PageLine(tuple(tokens), line.font_size, line.bold_share)
            lines_by_cell.setdefault((cell.y0, cell.x0), []).append(cell_line)
    word_counts = {corner: sum(len(line.tokens) for line in cell_lines) for corner, cell_lines in lines_by_cell.items()}
    if max(word_counts.values(), default=0) > _MAX_CELL_WORDS:
        return None
    cells_per_row, used_columns = Counter(y for y, _ in lines_by_cell), {x for _, x in lines_by_cell}
    columns = [x for x in grid.column_edges if x in used_columns]
    rows = [y for y in grid.row_edges if y in cells_per_row]
    lone_word_count = sum(count for (y, _), count in word_counts.items() if cells_per_row[y] == 1)
    # If most words are in rows with one filled cell, the frame is a form's layout, too.
    if len(columns) < 2 or len(rows) < 2 or 2 * lone_word_count > sum(word_counts.values()):
        return None
    return LayoutBlock(
        "table",
        tuple(tuple(_join_row_tokens(_group_rows(lines_by_cell.get((y, x), []))) for x in columns) for y in rows),
    )


def _build_grid_of_rule_stack(rule_stack: Sequence[RulingLine], lines: Sequence[PageLine]) -> Iterator[TableGrid]:
    """Yield the grid of a table with horizontal rules only, or nothing.

    Columns are separated by gaps that no word of the table crosses; with a single column there is no table.
    """
    left, right = rule_stack[0].start, rule_stack[0].end
    rule_heights = [rule.position for rule in rule_stack]
    header_top = rule_heights[0] - min(1.5 * max(below - above for above, below in pairwise(rule_heights)), 40)
    lines_in_width = [line for line in lines if left - 2 <= line.x0 and line.x1 <= right + 2]
    header_rows = _group_rows(
        line for line in lines_in_width if header_top <= line.y0 and line.y1 <= rule_heights[0] + 1
    )
    while header_rows and not _is_tabular(header_rows[0]):
        header_rows.pop(0)
    table_lines = [
        line for line in lines_in_width if rule_heights[0] <= _compute_vertical_middle(line) <= rule_heights[-1]
    ]
    if header_rows:
        rule_heights.insert(0, min(line.y0 for row in header_rows for line in row) - 1)
        table_lines += [line for row in header_rows for line in row]
    column_edges = _find_column_edges(table_lines, left)
    if len(column_edges) > 1:
        row_tops = [
            y
            for above, below in pairwise(rule_heights)
            for y in _find_row_tops(table_lines, above, below, column_edges)
        ]
        column_spans = list(pairwise([*column_edges, right]))
        yield TableGrid(
            tuple(
                GridCell(x0, y0, x1, y1)
                for y0, y1 in pairwise([*row_tops, rule_heights[-1]])
                for x0, x1 in column_spans
            )
        )


def _find_column_edges(lines: Sequence[PageLine], left: float) -> list[float]:
    tokens = sorted((token for line in lines for token in line.tokens), key=lambda token: token.x0)
    min_gap = max(4.0, 0.5 * median(line.font_size for line in lines)) if lines else 0.0
    edges, rightmost_edge = [left], tokens[0].x1 if tokens else left
    for token in tokens:
        if token.x0 - rightmost_edge >= min_gap:
            edges.append(token.x0 - min_gap / 2)
        rightmost_edge = max(rightmost_edge, token.x1)
    return edges


def _find_row_tops(
    lines: Sequence[PageLine], upper_rule_y: float, lower_rule_y: float, column_edges: Sequence[float]
) -> Iterator[float]:
    """Find the top edges of the rows between two rules.

    Each line of text is a row if several of these lines have words in nearly all columns; otherwise there is one row.
    """
    yield upper_rule_y
    rows = _group_rows(line for line in lines if upper_rule_y <= _compute_vertical_middle(line) < lower_rule_y)
    filled_columns = [
        len({sum(edge <= token.x0 for edge in column_edges) for line in row for token in line.tokens}) for row in rows
    ]
    if sum(count >= max(2, len(column_edges) - 1) for count in filled_columns) > 1:
        yield from (min(line.y0 for line in row) for row in rows[1:])


# Reading order


def _split_into_reading_regions(elements: list[_Element], depth: int = 0) -> Iterator[list[_Element]]:
    if not elements:
        return
    gutter = _find_gutter(elements) if depth < _MAX_DEPTH else None
    if gutter is None:
        yield from _split_regions_by_strips(elements, depth)
        return
    for band, has_columns in _split_into_column_bands(elements, gutter):
        left_elements = [element for element in band if (element.x0 + element.x1) / 2 < gutter]
        right_elements = [element for element in band if (element.x0 + element.x1) / 2 >= gutter]
        for part_elements in (left_elements, right_elements) if has_columns else (band,):
            yield from _split_into_reading_regions(part_elements, depth + 1)


def _split_regions_by_strips(elements: list[_Element], depth: int) -> Iterator[list[_Element]]:
    """Split elements that have no gap between columns from top to bottom.

    The elements are divided into horizontal strips, because a strip may have columns of its own.
    """
    strips = _split_at_horizontal_gaps(elements) if depth < _MAX_DEPTH else [elements]
    pieces = [(strip, len(strips) > 1 and _find_gutter(strip) is not None) for strip in strips]
    for strip, has_columns in _join_pieces_without_columns(pieces):
        if has_columns:
            yield from _split_into_reading_regions(strip, depth + 1)
        else:
            yield strip


def _join_pieces_without_columns(
    pieces: Iterable[tuple[list[_Element], bool]],
) -> Iterator[tuple[list[_Element], bool]]:
    """Join neighbouring pieces of a page that have no columns, and drop empty ones.

    Each piece comes with True if it has columns.
    """
    for run in split_into_runs(pieces, lambda run, piece: not (run[-1][1] or piece[1])):
        if joined_elements := [element for elements, _ in run for element in elements]:
            yield joined_elements, run[0][1]


def _split_at_horizontal_gaps(elements: Sequence[_Element]) -> list[list[_Element]]:
    strips: list[list[_Element]] = []
    lowest_edge = 0.0
    for element in sorted(elements, key=lambda element: element.y0):
        if strips and element.y0 - lowest_edge < 2:
            strips[-1].append(element)
        else:
            strips.append([element])
        lowest_edge = max(lowest_edge, element.y1) if len(strips[-1]) > 1 else element.y1
    return strips


def _find_gutter(elements: Sequence[_Element]) -> float | None:
    """Return the x of the best gap between two columns; None without columns."""
    lines = [element for element in elements if isinstance(element, PageLine)]
    if len(lines) < 6:
        return None
    left, right = min(element.x0 for element in elements), max(element.x1 for element in elements)
    font_size = median(line.font_size for line in lines)
    for width, gap_centre in _find_gap_widths_and_centres(elements, left, right):
        if width >= max(0.8 * font_size, 6) and any(
            has_columns for _, has_columns in _split_into_column_bands(elements, gap_centre)
        ):
            return gap_centre
    return None


def _find_gap_widths_and_centres(elements: Sequence[_Element], left: float, right: float) -> list[tuple[float, float]]:
    """Find up to 6 vertical gaps: width and x of the middle, least crossed first.

    Of gaps that are crossed by equally many elements, the widest comes first.
    """
    extent = int(right - left) + 2
    crossing_changes: Counter[int] = Counter()
    for element in elements:
        crossing_changes[max(int(element.x0 - left), 0)] += 1
        crossing_changes[min(int(element.x1 - left) + 1, extent)] -= 1
    runs: list[tuple[int, int, int]] = []
    crossing, start = 0, 0
    for x in sorted(crossing_changes):
        if x < extent and crossing_changes[x]:
            runs.append((crossing, start, x))
            crossing, start = crossing + crossing_changes[x], x
    max_crossing = 0.4 * len(elements)
    inner_runs = [run for run in runs if run[0] <= max_crossing and 0.1 < (run[1] + run[2]) / 2 / extent < 0.9]
    inner_runs.sort(key=lambda run: (run[0], run[1] - run[2]))
    return [(end - start, left + (start + end) / 2) for _, start, end in inner_runs[:6]]


def _split_into_column_bands(elements: Sequence[_Element], gutter: float) -> list[tuple[list[_Element], bool]]:
    """Split elements into horizontal bands, each with True if it has two columns.

    Bands come from the top down. ``gutter`` is the x coordinate between the columns; the other bands are read across it.
    """
    spanning_elements = sorted(
        (element for element in elements if element.x0 < gutter < element.x1), key=_compute_vertical_middle
    )
    spanning_heights = [_compute_vertical_middle(element) for element in spanning_elements]
    column_elements = [element for element in elements if not element.x0 < gutter < element.x1]
    elements_by_index = group_by(
        column_elements, lambda element: bisect_left(spanning_heights, _compute_vertical_middle(element))
    )
    pieces: list[tuple[list[_Element], bool]] = []
    for index in range(len(spanning_elements) + 1):
        elements_between = elements_by_index.get(index, [])
        pieces += [
            (elements_between, _has_columns(elements_between, gutter)),
            (spanning_elements[index : index + 1], False),
        ]
    return list(_join_pieces_without_columns(pieces))


def _compute_vertical_middle(element: _Element) -> float:
    return (element.y0 + element.y1) / 2


def _has_columns(elements: Sequence[_Element], gutter: float) -> bool:
    """Return True if elements left and right of ``gutter`` are two columns of text.

    They are if both sides are prose, or if lines left and right are mostly not at the same heights.
    """
    left = [element for element in elements if element.x1 <= gutter]
    right = [element for element in elements if element.x0 >= gutter]
    if min(len(left), len(right)) < 3:
        return False
    top = max(min(element.y0 for element in side) for side in (left, right))
    bottom = min(max(element.y1 for element in side) for side in (left, right))
    shorter_extent = min(
        max(element.y1 for element in side) - min(element.y0 for element in side) for side in (left, right)
    )
    if bottom - top < 0.5 * shorter_extent:
        return False
    if all(_is_prose(side) for side in (left, right)):
        return True
    heights = [element.y1 for element in left]
    aligned_count = sum(any(abs(element.y1 - height) < 3 for height in heights) for element in right)
    return aligned_count < 0.4 * min(len(left), len(right)) and all(
        _compute_mean_words_per_line(side) >= 2 for side in (left, right)
    )


def _is_prose(elements: Sequence[_Element]) -> bool:
    widths = [element.x1 - element.x0 for element in elements]
    return _compute_mean_words_per_line(elements) >= 3.5 and sum(widths) / len(widths) >= 0.5 * max(widths)


def _compute_mean_words_per_line(elements: Sequence[_Element]) -> float:
    return sum(len(element.tokens) if isinstance(element, PageLine) else 10 for element in elements) / len(elements)


def _group_rows(lines: Iterable[PageLine]) -> list[TextRow]:
    rows: list[TextRow] = []
    bounds: list[tuple[float, float]] = []
    for line in sorted(lines, key=lambda line: (_compute_vertical_middle(line), line.x0)):
        for index in range(len(rows) - 1, max(len(rows) - 4, -1), -1):
            top, bottom = bounds[index]
            overlap = min(bottom, line.y1) - max(top, line.y0)
            if overlap >= 0.5 * min(bottom - top, line.y1 - line.y0) and not any(
                min(line.x1, other.x1) - max(line.x0, other.x0) > 0.5 * line.font_size for other in rows[index]
            ):
                rows[index].append(line)
                break
        else:
            rows.append([line])
            bounds.append((line.y0, line.y1))
    return [sorted(row, key=lambda line: line.x0) for row in rows]


# Blocks


def _build_blocks(region: Sequence[_Element], typography: PrevailingTypography) -> Iterator[LayoutBlock]:
    tables = [element for element in region if isinstance(element, _PlacedTable)]
    rows = _group_rows(element for element in region if isinstance(element, PageLine))
    for aligned_table in reversed(list(find_aligned_tables(rows))):
        block = LayoutBlock("table", aligned_table.cells)
        tables.append(_PlacedTable(block, *enclose_boxes(token[1:] for token in block.tokens)))
        del rows[aligned_table.first_row : aligned_table.end_row]
    tables.sort(key=lambda table: table.y0)
    for paragraph_rows in _split_paragraphs(rows, [table.y0 for table in tables]):
        while tables and tables[0].y0 < paragraph_rows[0][0].y0:
            yield tables.pop(0).block
        yield LayoutBlock(_classify_block(paragraph_rows, typography), ((_join_row_tokens(paragraph_rows),),))
    yield from (table.block for table in tables)


def _split_paragraphs(rows: list[TextRow], forced_break_heights: Sequence[float]) -> list[list[TextRow]]:
    """Group rows into paragraphs; each y of ``forced_break_heights`` ends a paragraph."""
    if not rows:
        return []
    line_pitch = _measure_line_pitch(rows)

    def is_continuation(paragraph: list[tuple[TextRow, float]], row_and_edge: tuple[TextRow, float]) -> bool:
        (above, right_edge), (below, _) = paragraph[-1], row_and_edge
        return not any(above[0].y0 < stop <= below[0].y0 for stop in forced_break_heights) and not _is_paragraph_break(
            above, below, [row for row, _ in paragraph[:2]], right_edge, line_pitch
        )

    rows_and_edges = zip(rows, _estimate_right_edges(rows, line_pitch), strict=True)
    return [[row for row, _ in paragraph] for paragraph in split_into_runs(rows_and_edges, is_continuation)]


def _is_paragraph_break(
    above: TextRow, below: TextRow, paragraph_rows: list[TextRow], right_edge: float, line_pitch: float
) -> bool:
    font_size = above[0].font_size
    # A bold phrase may continue on the next line, so a partly bold line belongs to bold as well as to plain lines.
    is_weight_changed = {_classify_font_weight(above), _classify_font_weight(below)} == {"bold", "plain"}
    first_token = below[0].tokens[0]
    slack = font_size + 0.03 * (right_edge - paragraph_rows[0][0].x0)
    had_room = first_token.x1 - first_token.x0 + 0.3 * font_size < right_edge - above[-1].x1 - slack
    # An indented line begins a paragraph, except in a list item, whose lines after the first are all indented.
    is_indented = below[0].x0 > above[0].x0 + font_size and len(paragraph_rows) > 1
    return (
        _is_tabular(above)
        or _is_tabular(below)
        or _has_list_marker(below)
        or _has_size_change_or_gap(above, below, line_pitch)
        or is_weight_changed
        or had_room
        or (is_indented and not _has_list_marker(paragraph_rows[0]))
    )


def _estimate_right_edges(rows: list[TextRow], line_pitch: float) -> list[float]:
    """Estimate for each row the x at which its text could end at most.

    The estimate is the widest of the neighbouring rows with equal font size and line distance.
    """
    edges: list[float] = []
    left = min(row[0].x0 for row in rows)
    widest_edge = max((row[-1].x1 for row in rows if not _is_tabular(row)), default=0.0)
    for section in split_into_runs(
        rows, lambda section, row: not _has_size_change_or_gap(section[-1], row, line_pitch)
    ):
        section_edge = max((row[-1].x1 for row in section if not _is_tabular(row)), default=0.0)
        # Short labels do not show where their lines could end; then the widest row of all counts.
        is_representative = section_edge - left >= 0.6 * (widest_edge - left)
        edges += [section_edge if is_representative else widest_edge] * len(section)
    return edges


def _has_size_change_or_gap(above: TextRow, below: TextRow, line_pitch: float) -> bool:
    font_size, step = above[0].font_size, below[0].y1 - above[0].y1
    return abs(below[0].font_size - font_size) > 0.1 * font_size or step > 1.3 * line_pitch or step < 0


def _measure_line_pitch(rows: list[TextRow]) -> float:
    """Return the usual distance between lines, in points.

    Distances over 2.2 times the font size are gaps between paragraphs and do not count.
    """
    font_size = median(row[0].font_size for row in rows)
    steps = [below[0].y1 - above[0].y1 for above, below in pairwise(rows)]
    line_steps = [step for step in steps if 0.8 * font_size <= step <= 2.2 * font_size]
    return median(line_steps) if line_steps else 1.3 * font_size


def _is_tabular(row: TextRow) -> bool:
    """Return True if wide gaps (except after a bullet) divide the row into cells."""
    if len(row) == 1:
        return False
    cells = row[1:] if len(row[0].tokens) == 1 and _LIST_MARKER.fullmatch(row[0].text) else row
    return any(right.x0 - left.x1 >= _MIN_CELL_GAP * left.font_size for left, right in pairwise(cells))


def _has_list_marker(row: TextRow) -> bool:
    has_text_behind = len(row) > 1 or len(row[0].tokens) > 1
    return has_text_behind and _LIST_MARKER.fullmatch(row[0].tokens[0].text) is not None


def _classify_font_weight(row: TextRow) -> Literal["bold", "plain", "mixed"]:
    if all(line.bold_share >= 0.9 for line in row):
        return "bold"
    return "plain" if all(line.bold_share <= 0.1 for line in row) else "mixed"


def _classify_block(paragraph_rows: list[TextRow], typography: PrevailingTypography) -> BlockType:
    default_type: BlockType = "list_item" if _has_list_marker(paragraph_rows[0]) else "paragraph"
    if len(paragraph_rows) > 3:
        return default_type
    text = " ".join(_join_row_text(row) for row in paragraph_rows)
    word_count = text.count(" ") + 1
    is_short = len(text) <= 120 and word_count <= 15
    if not is_short or not any(map(str.isalpha, text)) or any(_is_tabular(row) for row in paragraph_rows):
        return default_type
    is_large = min(row[0].font_size for row in paragraph_rows) >= 1.15 * typography.font_size
    is_bold = all(_classify_font_weight(row) == "bold" for row in paragraph_rows) and not typography.is_bold
    is_emphasised = (is_large or is_bold) and not (text.endswith((".", ",", ";")) and word_count > 6)
    is_title = default_type == "paragraph" and not typography.is_capitals and _is_capital_title(text)
    return "heading" if is_emphasised or is_title else default_type


def _is_capital_title(text: str) -> bool:
    """Return True for a title in capitals, no abbreviation or number with a unit."""
    letter_count = sum(map(str.isalpha, text))
    return (
        text.isupper() and letter_count >= 5 and len(text.split()) <= 8 and letter_count > sum(map(str.isdigit, text))
    )
