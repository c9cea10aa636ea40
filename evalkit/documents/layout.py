"""From lines on a page to blocks in reading order: columns, paragraphs, headings, lists, tables. Pure geometry, points.

Three rules do most of the work:

- A gap is a gutter between columns only if prose stands on both sides of it. Labels and their values, and tables
  without rules, are read row by row.
- Where the next line's first word would still have fitted on a line, the line was ended on purpose, and so is the
  paragraph.
- A heading is larger or bolder than what most of the page is set in, or short and in capitals.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import Literal

from evalkit.documents.bundle import BlockType
from evalkit.documents.drawn import Drawn, Line, Token
from evalkit.documents.tables import Cell, Grid, Rule, find_stacks

#: The share of the page's height at top and at bottom where headers and footers stand.
MARGIN = 0.09
_MARKER = re.compile(
    r"[•◦▪▫‣⁃∙·●○■□❑☐☑☒✓✔➢►\uf0a7\uf0b7\uf0d8*–—-]"  # the \uf0… are bullets of Wingdings and Symbol
    r"|\(?(\d{1,2}|[A-Za-z]|[ivx]{1,5})[.)]"
)
_PAGE_NUMBER = re.compile(r"\W*((page|pg\.?|p\.)\s*)?\d{1,4}(\s*(of|/)\s*\d{1,4})?\W*", re.IGNORECASE)
_PAGE_OF = re.compile(r"\b(page|pg\.?|p\.)\s*\d{1,4}(\s*(of|/)\s*\d{1,4})?\b", re.IGNORECASE)
_CLOCK = re.compile(r"\b\d{1,2}:\d{2}\b")
_FAX = re.compile(r"\bfax\b", re.IGNORECASE)
#: A frame around whole passages is a form's layout, not a table: so many words are in one of its cells.
_PROSE_IN_CELL = 80
_WIDE_GAP = 1.5
_DEPTH = 8


@dataclass(frozen=True)
class LaidBlock:
    """One block: rows of cells of words. Everything but a table is one row of one cell."""

    type: BlockType
    rows: tuple[tuple[tuple[Token, ...], ...], ...]
    furniture: bool = False

    @property
    def tokens(self) -> Sequence[Token]:
        """All words, in reading order."""
        if self.type != "table":
            return self.rows[0][0]
        return [token for row in self.rows for cell in row for token in cell]


@dataclass(frozen=True)
class _Table:
    """A ruled table with its words, placed like a line."""

    block: LaidBlock
    x0: float
    y0: float
    x1: float
    y1: float


_Element = Line | _Table
_Row = list[Line]


@dataclass(frozen=True)
class Typography:
    """What most of a page is set in; headings stand out against it."""

    size: float
    """Points."""
    bold: bool
    capitals: bool


@dataclass
class Setting:
    """How much text is set in which way; grows page by page."""

    sizes: Counter[float] = field(default_factory=Counter)
    """Characters of each size, in half points."""
    bold: float = 0.0
    capitals: int = 0
    characters: int = 0

    def add(self, other: Setting) -> None:
        """Count the other's text in."""
        self.sizes.update(other.sizes)
        self.bold += other.bold
        self.capitals += other.capitals
        self.characters += other.characters

    @property
    def typography(self) -> Typography:
        """The commonest size, and whether most characters are bold, and most lines in capitals."""
        size = max(self.sizes, key=lambda size: (self.sizes[size], -size), default=0.0)
        return Typography(size, 2 * self.bold > self.characters, 2 * self.capitals > self.characters)


def setting(lines: Iterable[Line]) -> Setting:
    """How these lines are set."""
    result = Setting()
    for line in lines:
        weight = len(line.text)
        result.sizes[round(2 * line.size) / 2] += weight
        result.bold += weight * line.bold
        result.capitals += weight * line.text.isupper()
        result.characters += weight
    return result


def margin_keys(page: Drawn) -> set[tuple[str, str]]:
    """What stands in the page's margins, digits masked: the same key on another page makes it furniture."""
    return {(zone, masked(_row_text(row))) for zone, row in _margin_rows(_upright(page), page)}


def masked(text: str) -> str:
    """The text with digits as ``#`` and without case, so that running numbers and dates compare equal."""
    return re.sub(r"\d+", "#", text).casefold()


def lay_out(page: Drawn, repeated: set[tuple[str, str]], usual: Typography) -> list[LaidBlock]:
    """The page's visible blocks in reading order: header, body, footer, then what is written sideways.

    ``repeated`` are the :func:`margin_keys` found on more than one page; ``usual`` is how the text is set.
    """
    header: list[LaidBlock] = []
    footer: list[LaidBlock] = []
    body = _upright(page)
    for zone, row in _margin_rows(body, page):
        if _is_furniture(zone, _row_text(row), repeated):
            tokens = tuple(token for line in row for token in line.tokens)
            (header if zone == "top" else footer).append(
                LaidBlock(_type_of([row], usual), ((tokens,),), furniture=True)
            )
            taken = set(map(id, row))
            body = [line for line in body if id(line) not in taken]
    tables, free = _tables(page.grids, body)
    open_tables, free = _tables((grid for stack in find_stacks(page.rules) for grid in _open_grid(stack, free)), free)
    tables += open_tables
    blocks = [block for region in _regions([*free, *tables]) for block in _blocks(region, usual)]
    return [*header, *blocks, *footer, *_sideways(page, usual)]


def _upright(page: Drawn) -> list[Line]:
    return [line for line in page.lines if line.turn == 0]


def _sideways(page: Drawn, usual: Typography) -> Iterator[LaidBlock]:
    """Text along the edges and landscape pages that nobody turned, laid out as if the page were turned upright."""
    for turn in (1, 2, 3):
        turned = [_turned(line, turn, page) for line in page.lines if line.turn == turn]
        for region in _regions(list(turned)):
            for block in _blocks(region, usual):
                rows = tuple(tuple(tuple(_back(t, turn, page) for t in cell) for cell in row) for row in block.rows)
                yield LaidBlock(block.type, rows)
    for line in page.lines:
        if line.turn is None:
            yield LaidBlock("paragraph", ((line.tokens,),))


def _turned(line: Line, turn: int, page: Drawn) -> Line:
    """The line as if it were written upright: the page turned back by so many quarters."""
    return Line(
        tuple(_rotated(token, 4 - turn, page.width, page.height) for token in line.tokens), line.size, line.bold
    )


def _back(token: Token, turn: int, page: Drawn) -> Token:
    sides = (page.height, page.width) if turn % 2 else (page.width, page.height)
    return _rotated(token, turn, *sides)


def _rotated(token: Token, quarters: int, width: float, height: float) -> Token:
    """The token on a page of that width and height after so many quarter turns clockwise."""
    text, x0, y0, x1, y1 = token
    for _ in range(quarters):
        x0, y0, x1, y1 = height - y1, x0, height - y0, x1
        width, height = height, width
    return Token(text, x0, y0, x1, y1)


# Furniture


def _margin_rows(lines: Sequence[Line], page: Drawn) -> Iterator[tuple[Literal["top", "bottom"], _Row]]:
    """The rows that lie in the page's margins as a whole."""
    upper, lower = MARGIN * page.height, (1 - MARGIN) * page.height
    for row in _rows(line for line in lines if line.y0 <= upper):
        if all(line.y1 <= upper for line in row):
            yield "top", row
    for row in _rows(line for line in lines if line.y1 >= lower):
        if all(line.y0 >= lower for line in row):
            yield "bottom", row


def _is_furniture(zone: str, text: str, repeated: set[tuple[str, str]]) -> bool:
    if (zone, masked(text)) in repeated or _PAGE_NUMBER.fullmatch(text):
        return True
    is_strip = _CLOCK.search(text) and (_FAX.search(text) or _PAGE_OF.search(text))
    return bool(is_strip or (_PAGE_OF.search(text) and len(text.split()) <= 14))


def _row_text(row: _Row) -> str:
    return " ".join(line.text for line in row)


# Tables


def _tables(grids: Iterable[Grid], lines: Sequence[Line]) -> tuple[list[_Table], list[Line]]:
    """The tables with their words, and the lines that are in none. A word is in one place only."""
    free = list(lines)
    tables: list[_Table] = []
    # The innermost of nested frames first: the outer one then is left without words of its own.
    for grid in sorted(grids, key=lambda grid: (grid.box[2] - grid.box[0]) * (grid.box[3] - grid.box[1])):
        inside, outside = _split(free, grid.box)
        block = _table_block(grid, inside)
        if block:
            tables.append(_Table(block, *grid.box))
            free = outside
    return tables, free


def _split(lines: Iterable[Line], box: tuple[float, float, float, float]) -> tuple[list[Line], list[Line]]:
    """Lines cut into what is inside the box and what is not."""
    inside: list[Line] = []
    outside: list[Line] = []
    x0, y0, x1, y1 = box
    for line in lines:
        if line.x0 >= x0 and line.y0 >= y0 and line.x1 <= x1 and line.y1 <= y1:
            inside.append(line)
        elif line.x0 > x1 + 1 or line.y0 > y1 + 1 or line.x1 < x0 - 1 or line.y1 < y0 - 1:
            outside.append(line)
        else:
            within = tuple(token for token in line.tokens if _is_within(token, box))
            without = tuple(token for token in line.tokens if not _is_within(token, box))
            inside += [Line(within, line.size, line.bold)] if within else []
            outside += [Line(without, line.size, line.bold)] if without else []
    return inside, outside


def _is_within(token: Token, box: tuple[float, float, float, float]) -> bool:
    x, y = (token.x0 + token.x1) / 2, (token.y0 + token.y1) / 2
    return box[0] - 1 <= x <= box[2] + 1 and box[1] - 1 <= y <= box[3] + 1


def _table_block(grid: Grid, lines: Sequence[Line]) -> LaidBlock | None:
    """The table, or None where the frame holds passages or next to nothing."""
    cells: dict[tuple[float, float], list[Line]] = {}
    for line in lines:
        by_cell: dict[tuple[float, float], list[Token]] = {}
        for token in line.tokens:
            cell = grid.cell_at((token.x0 + token.x1) / 2, (token.y0 + token.y1) / 2)
            by_cell.setdefault((cell.y0, cell.x0), []).append(token)
        for place, tokens in by_cell.items():
            part = line if len(by_cell) == 1 else Line(tuple(tokens), line.size, line.bold)
            cells.setdefault(place, []).append(part)
    words = {place: sum(len(line.tokens) for line in inside) for place, inside in cells.items()}
    if max(words.values(), default=0) > _PROSE_IN_CELL:
        return None
    used_rows, used_columns = Counter(y for y, _ in cells), {x for _, x in cells}
    columns = [x for x in grid.columns if x in used_columns]
    rows = [y for y in grid.rows if y in used_rows]
    if len(columns) < 2 or len(rows) < 2:
        return None
    # A frame whose words mostly stand alone in their row is a form's layout too.
    if 2 * sum(count for (y, _), count in words.items() if used_rows[y] == 1) > sum(words.values()):
        return None
    return LaidBlock("table", tuple(tuple(_cell_tokens(cells.get((y, x), [])) for x in columns) for y in rows))


def _open_grid(stack: Sequence[Rule], lines: Sequence[Line]) -> Iterator[Grid]:
    """The grid of a table that has horizontal rules only: its columns are where no word crosses. None, or one."""
    left, right = stack[0].start, stack[0].end
    heights = [rule.at for rule in stack]
    top = heights[0] - min(1.5 * max(below - above for above, below in pairwise(heights)), 40)
    beside = [line for line in lines if left - 2 <= line.x0 and line.x1 <= right + 2]
    header = _rows(line for line in beside if top <= line.y0 and line.y1 <= heights[0] + 1)
    while header and not _is_tabular(header[0]):
        header.pop(0)
    inside = [line for line in beside if heights[0] <= _middle(line) <= heights[-1]]
    if header:
        heights.insert(0, min(line.y0 for row in header for line in row) - 1)
        inside += [line for row in header for line in row]
    columns = _columns(inside, left)
    if len(columns) > 1:
        rows = [y for above, below in pairwise(heights) for y in _row_tops(inside, above, below, columns)]
        spans = list(pairwise([*columns, right]))
        yield Grid(tuple(Cell(x0, y0, x1, y1) for y0, y1 in pairwise([*rows, heights[-1]]) for x0, x1 in spans))


def _columns(lines: Sequence[Line], left: float) -> list[float]:
    """The left edges of columns, where a gap runs down between all words."""
    tokens = sorted((token for line in lines for token in line.tokens), key=lambda token: token.x0)
    gap = max(4.0, 0.5 * median(line.size for line in lines)) if lines else 0.0
    edges, reach = [left], tokens[0].x1 if tokens else left
    for token in tokens:
        if token.x0 - reach >= gap:
            edges.append(token.x0 - gap / 2)
        reach = max(reach, token.x1)
    return edges


def _row_tops(lines: Sequence[Line], above: float, below: float, columns: Sequence[float]) -> Iterator[float]:
    """Where rows begin between two rules: one row, or each line of words if these fill the columns by themselves."""
    yield above
    rows = _rows(line for line in lines if above <= _middle(line) < below)
    full = [len({sum(edge <= token.x0 for edge in columns) for line in row for token in line.tokens}) for row in rows]
    if sum(count >= max(2, len(columns) - 1) for count in full) > 1:
        yield from (min(line.y0 for line in row) for row in rows[1:])


def _cell_tokens(lines: list[Line]) -> tuple[Token, ...]:
    if len(lines) == 1:
        return lines[0].tokens
    return tuple(token for row in _rows(lines) for line in row for token in line.tokens)


# Reading order


def _regions(elements: list[_Element], depth: int = 0) -> Iterator[list[_Element]]:
    """Groups of elements that are read row by row, in reading order."""
    if not elements:
        return
    gutter = _gutter(elements) if depth < _DEPTH else None
    if gutter is None:
        yield from _strip_regions(elements, depth)
        return
    for band, is_columns in _bands(elements, gutter):
        left = [element for element in band if (element.x0 + element.x1) / 2 < gutter]
        right = [element for element in band if (element.x0 + element.x1) / 2 >= gutter]
        for part in (left, right) if is_columns else (band,):
            yield from _regions(part, depth + 1)


def _strip_regions(elements: list[_Element], depth: int) -> Iterator[list[_Element]]:
    """The same for elements without a common gutter: a strip between two gaps may have one of its own."""
    strips = _strips(elements) if depth < _DEPTH else [elements]
    together: list[_Element] = []
    for strip in strips:
        if len(strips) > 1 and _gutter(strip) is not None:
            if together:
                yield together
            yield from _regions(strip, depth + 1)
            together = []
        else:
            together += strip
    if together:
        yield together


def _strips(elements: Sequence[_Element]) -> list[list[_Element]]:
    """The elements between horizontal gaps, from the top down."""
    strips: list[list[_Element]] = []
    lower = 0.0
    for element in sorted(elements, key=lambda element: element.y0):
        if strips and element.y0 - lower < 2:
            strips[-1].append(element)
        else:
            strips.append([element])
        lower = max(lower, element.y1) if len(strips[-1]) > 1 else element.y1
    return strips


def _gutter(elements: Sequence[_Element]) -> float | None:
    """The x of the best gap between two columns of prose; None if there is none."""
    lines = [element for element in elements if isinstance(element, Line)]
    if len(lines) < 6:
        return None
    left, right = min(element.x0 for element in elements), max(element.x1 for element in elements)
    size = median(line.size for line in lines)
    for width, middle in _gaps(elements, left, right):
        if width >= max(0.8 * size, 6) and any(is_columns for _, is_columns in _bands(elements, middle)):
            return middle
    return None


def _gaps(elements: Sequence[_Element], left: float, right: float) -> list[tuple[float, float]]:
    """Width and middle of x-ranges that few elements cross, the least crossed and widest first; at most 6."""
    size = int(right - left) + 2
    change: Counter[int] = Counter()
    for element in elements:
        change[max(int(element.x0 - left), 0)] += 1
        change[min(int(element.x1 - left) + 1, size)] -= 1
    runs: list[tuple[int, int, int]] = []
    crossing, start = 0, 0
    for x in sorted(change):
        if x < size and change[x]:
            runs.append((crossing, start, x))
            crossing, start = crossing + change[x], x
    limit = 0.4 * len(elements)
    inner = [run for run in runs if run[0] <= limit and 0.1 < (run[1] + run[2]) / 2 / size < 0.9]
    inner.sort(key=lambda run: (run[0], run[1] - run[2]))
    return [(end - start, left + (start + end) / 2) for _, start, end in inner[:6]]


def _bands(elements: Sequence[_Element], gutter: float) -> list[tuple[list[_Element], bool]]:
    """The elements in bands from top to bottom: columns beside the gutter (True), or rows across it (False)."""
    spanning = sorted((element for element in elements if element.x0 < gutter < element.x1), key=_middle)
    heights = [_middle(element) for element in spanning]
    between: list[list[_Element]] = [[] for _ in range(len(spanning) + 1)]
    for element in elements:
        if not element.x0 < gutter < element.x1:
            between[bisect_left(heights, _middle(element))].append(element)
    bands: list[tuple[list[_Element], bool]] = []
    across: list[_Element] = []
    for number, beside in enumerate(between):
        if _is_columns(beside, gutter):
            bands += [(across, False)] if across else []
            bands.append((beside, True))
            across = []
        else:
            across += beside
        across += spanning[number : number + 1]
    return [*bands, (across, False)] if across else bands


def _middle(element: _Element) -> float:
    return (element.y0 + element.y1) / 2


def _is_columns(elements: Sequence[_Element], gutter: float) -> bool:
    """Whether two columns stand side by side: prose on both sides, or lines at heights of their own."""
    left = [element for element in elements if element.x1 <= gutter]
    right = [element for element in elements if element.x0 >= gutter]
    if min(len(left), len(right)) < 3:
        return False
    top = max(min(element.y0 for element in side) for side in (left, right))
    bottom = min(max(element.y1 for element in side) for side in (left, right))
    shorter = min(max(element.y1 for element in side) - min(element.y0 for element in side) for side in (left, right))
    if bottom - top < 0.5 * shorter:
        return False
    if all(_is_prose(side) for side in (left, right)):
        return True
    heights = [element.y1 for element in left]
    aligned = sum(any(abs(element.y1 - height) < 3 for height in heights) for element in right)
    return aligned < 0.4 * min(len(left), len(right)) and all(_words_a_line(side) >= 2 for side in (left, right))


def _is_prose(side: Sequence[_Element]) -> bool:
    widths = [element.x1 - element.x0 for element in side]
    return _words_a_line(side) >= 3.5 and sum(widths) / len(widths) >= 0.5 * max(widths)


def _words_a_line(side: Sequence[_Element]) -> float:
    return sum(len(element.tokens) if isinstance(element, Line) else 10 for element in side) / len(side)


def _rows(lines: Iterable[Line]) -> list[_Row]:
    """Lines at the same height in rows, top to bottom, left to right."""
    rows: list[_Row] = []
    bounds: list[tuple[float, float]] = []
    for line in sorted(lines, key=lambda line: (_middle(line), line.x0)):
        for number in range(len(rows) - 1, max(len(rows) - 4, -1), -1):
            top, bottom = bounds[number]
            shared = min(bottom, line.y1) - max(top, line.y0)
            if shared >= 0.5 * min(bottom - top, line.y1 - line.y0) and not _collides(line, rows[number]):
                rows[number].append(line)
                break
        else:
            rows.append([line])
            bounds.append((line.y0, line.y1))
    return [sorted(row, key=lambda line: line.x0) for row in rows]


def _collides(line: Line, row: _Row) -> bool:
    """Whether the line would lie on top of the row's words."""
    return any(min(line.x1, other.x1) - max(line.x0, other.x0) > 0.5 * line.size for other in row)


# Blocks


def _blocks(region: Sequence[_Element], usual: Typography) -> Iterator[LaidBlock]:
    """A region's paragraphs, headings, list items and tables, from the top down."""
    tables = sorted((element for element in region if isinstance(element, _Table)), key=lambda table: table.y0)
    rows = _rows(element for element in region if isinstance(element, Line))
    for group in _paragraphs(rows, [table.y0 for table in tables]):
        while tables and tables[0].y0 < group[0][0].y0:
            yield tables.pop(0).block
        tokens = tuple(token for row in group for line in row for token in line.tokens)
        yield LaidBlock(_type_of(group, usual), ((tokens,),))
    for table in tables:
        yield table.block


def _paragraphs(rows: list[_Row], stops: Sequence[float]) -> Iterator[list[_Row]]:
    """Rows in groups, one for each paragraph; none runs across a height of ``stops``."""
    if not rows:
        return
    pitch = _usual_pitch(rows)
    right = _right_edges(rows, pitch)
    group = [rows[0]]
    for number, (above, below) in enumerate(pairwise(rows)):
        is_stopped = any(above[0].y0 < stop <= below[0].y0 for stop in stops)
        if is_stopped or _is_new(above, below, group, right[number], pitch):
            yield group
            group = []
        group.append(below)
    yield group


def _is_new(above: _Row, below: _Row, group: list[_Row], right: float, pitch: float) -> bool:
    """Whether a paragraph ends between two rows."""
    size = above[0].size
    if _is_tabular(above) or _is_tabular(below) or _has_marker(below):
        return True
    # A bold phrase may run over a line's end, so lines that are partly bold go with both kinds.
    if _is_apart(above, below, pitch) or {_weight(above), _weight(below)} == {"bold", "plain"}:
        return True
    room = right - above[-1].x1
    first = below[0].tokens[0]
    slack = size + 0.03 * (right - group[0][0].x0)
    if first.x1 - first.x0 + 0.3 * size < room - slack:
        return True
    # An indented first line; the lines of a list item after its first are indented too, but all alike.
    return not _has_marker(group[0]) and below[0].x0 > above[0].x0 + size and len(group) > 1


def _right_edges(rows: list[_Row], pitch: float) -> list[float]:
    """For each row, how far to the right the text around it goes that is set alike."""
    edges: list[float] = []
    left = min(row[0].x0 for row in rows)
    widest = max((row[-1].x1 for row in rows if not _is_tabular(row)), default=0.0)
    start = 0
    for number in range(1, len(rows) + 1):
        if number == len(rows) or _is_apart(rows[number - 1], rows[number], pitch):
            own = max((row[-1].x1 for row in rows[start:number] if not _is_tabular(row)), default=0.0)
            # A stack of short labels says nothing about where its lines might have ended; wider text near it does.
            edges += [own if own - left >= 0.6 * (widest - left) else widest] * (number - start)
            start = number
    return edges


def _is_apart(above: _Row, below: _Row, pitch: float) -> bool:
    """Whether two rows differ in size or have a gap between them."""
    size, step = above[0].size, below[0].y1 - above[0].y1
    return abs(below[0].size - size) > 0.1 * size or step > 1.3 * pitch or step < 0


def _usual_pitch(rows: list[_Row]) -> float:
    """The usual distance from line to line, at most 2.2 times the font size (wider is space between paragraphs)."""
    size = median(row[0].size for row in rows)
    steps = [below[0].y1 - above[0].y1 for above, below in pairwise(rows)]
    close = [step for step in steps if 0.8 * size <= step <= 2.2 * size]
    return median(close) if close else 1.3 * size


def _is_tabular(row: _Row) -> bool:
    """Whether wide gaps divide the row into cells; the gap after a bullet does not count."""
    if len(row) == 1:
        return False
    cells = row[1:] if len(row[0].tokens) == 1 and _MARKER.fullmatch(row[0].text) else row
    return any(right.x0 - left.x1 >= _WIDE_GAP * left.size for left, right in pairwise(cells))


def _has_marker(row: _Row) -> bool:
    is_alone = len(row) == 1 and len(row[0].tokens) == 1
    return not is_alone and _MARKER.fullmatch(row[0].tokens[0].text) is not None


def _weight(row: _Row) -> Literal["bold", "plain", "mixed"]:
    if all(line.bold >= 0.9 for line in row):
        return "bold"
    return "plain" if all(line.bold <= 0.1 for line in row) else "mixed"


def _type_of(group: list[_Row], usual: Typography) -> BlockType:
    otherwise: BlockType = "list_item" if _has_marker(group[0]) else "paragraph"
    if len(group) > 3:
        return otherwise
    text = " ".join(_row_text(row) for row in group)
    words = text.count(" ") + 1
    is_short = len(text) <= 120 and words <= 15
    if not is_short or not any(map(str.isalpha, text)) or any(_is_tabular(row) for row in group):
        return otherwise
    is_large = min(row[0].size for row in group) >= 1.15 * usual.size
    is_bold = all(_weight(row) == "bold" for row in group) and not usual.bold
    if (is_large or is_bold) and not (text.endswith((".", ",", ";")) and words > 6):
        return "heading"
    return "heading" if otherwise == "paragraph" and not usual.capitals and _is_capitals(text) else otherwise


def _is_capitals(text: str) -> bool:
    """Whether it is a title in capitals, no abbreviation and no number with a unit."""
    letters = sum(map(str.isalpha, text))
    return text.isupper() and letters >= 5 and len(text.split()) <= 8 and letters > sum(map(str.isdigit, text))
