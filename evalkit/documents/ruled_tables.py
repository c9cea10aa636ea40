"""Cells of tables, found from the ruling lines on a page (geometry in points).

PyMuPDF's ``find_tables`` is not used: it takes 70 to 300 ms a page, rewrites rotated pages, and extracts the cells'
text again, without the words' places, which we need.
"""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import NamedTuple

from evalkit.core.grouping import group_by, group_pairs, split_into_runs

#: Points: parallel lines nearer to each other are one line, and a line that ends nearer to another touches it.
_TOLERANCE = 2.5
#: A page with more lines than this shows a drawing or a diagram, and the search for tables would take seconds.
_MAX_RULES = 1_500


class RulingLine(NamedTuple):
    """A horizontal or vertical straight line."""

    position: float
    """The y coordinate of a horizontal line, the x coordinate of a vertical line."""
    start: float
    end: float


class GridCell(NamedTuple):
    """A table cell: a rectangle between four drawn lines."""

    x0: float
    y0: float
    x1: float
    y1: float


@dataclass(frozen=True)
class TableGrid:
    """A table: connected cells in at least two rows and two columns."""

    cells: tuple[GridCell, ...]

    @cached_property
    def box(self) -> tuple[float, float, float, float]:
        """The rectangle x0, y0, x1, y1 around all cells."""
        lefts, tops, rights, bottoms = zip(*self.cells, strict=True)
        return min(lefts), min(tops), max(rights), max(bottoms)

    @cached_property
    def column_edges(self) -> list[float]:
        """The x coordinate of each column's left edge, ascending."""
        return sorted({cell.x0 for cell in self.cells})

    @cached_property
    def row_edges(self) -> list[float]:
        """The y coordinate of each row's upper edge, ascending."""
        return sorted({cell.y0 for cell in self.cells})

    @cached_property
    def _cells_by_corner(self) -> dict[tuple[float, float], GridCell]:
        return {(cell.x0, cell.y0): cell for cell in self.cells}

    def find_nearest_cell(self, x: float, y: float) -> GridCell:
        """Return the cell that contains the point, or else the nearest cell."""
        column, row = bisect_left(self.column_edges, x), bisect_left(self.row_edges, y)
        if column and row:
            likely_cell = self._cells_by_corner.get((self.column_edges[column - 1], self.row_edges[row - 1]))
            if likely_cell and x <= likely_cell.x1 and y <= likely_cell.y1:
                return likely_cell
        # The point is in a cell that spans rows or columns, or outside the table.
        return min(self.cells, key=lambda cell: max(cell.x0 - x, 0.0, x - cell.x1) + max(cell.y0 - y, 0.0, y - cell.y1))


def find_grids(horizontal_rules: Iterable[RulingLine], vertical_rules: Iterable[RulingLine]) -> list[TableGrid]:
    """Find the tables that ruling lines on a page form, from top to bottom.

    Empty also if the page has so many lines that it shows a drawing.
    """
    merged_horizontal, merged_vertical = _merge_rules(horizontal_rules), _merge_rules(vertical_rules)
    if (
        len(merged_horizontal) < 3
        or len(merged_vertical) < 3
        or len(merged_horizontal) + len(merged_vertical) > _MAX_RULES
    ):
        return []
    cell_groups = _group_touching_cells(_find_cells(merged_horizontal, merged_vertical))
    grids = [TableGrid(tuple(sorted(group, key=lambda cell: (cell.y0, cell.x0)))) for group in cell_groups]
    tables = [grid for grid in grids if len(grid.row_edges) >= 2 and len(grid.column_edges) >= 2]
    return sorted(tables, key=lambda grid: (grid.box[1], grid.box[0]))


def find_rule_stacks(horizontal_rules: Iterable[RulingLine]) -> list[list[RulingLine]]:
    """Find tables without vertical lines, each as the list of its horizontal rules.

    A table has three or more rules of nearly equal start and end.
    """
    stacks: list[list[RulingLine]] = []
    for rule in _merge_rules(horizontal_rules):
        for stack in stacks:
            if abs(stack[-1].start - rule.start) < 2 * _TOLERANCE and abs(stack[-1].end - rule.end) < 2 * _TOLERANCE:
                stack.append(rule)
                break
        else:
            stacks.append([rule])
    return [stack for stack in stacks if len(stack) >= 3]


def _merge_rules(rules: Iterable[RulingLine]) -> list[RulingLine]:
    """Merge parallel rules that are nearly at one position and overlap or touch."""
    merged_rules: list[RulingLine] = []
    for level_rules in split_into_runs(
        sorted(rules), lambda level, rule: rule.position - level[-1].position <= _TOLERANCE
    ):
        position = level_rules[0].position
        for rule in sorted(level_rules, key=lambda rule: rule.start):
            last = merged_rules[-1] if merged_rules else None
            if last and last.position == position and rule.start <= last.end + _TOLERANCE:
                merged_rules[-1] = last._replace(end=max(last.end, rule.end))
            else:
                merged_rules.append(RulingLine(position, rule.start, rule.end))
    return merged_rules


def _find_cells(horizontal_rules: list[RulingLine], vertical_rules: list[RulingLine]) -> list[GridCell]:
    """Find the cells between rules, as the smallest rectangles with four drawn sides.

    Each crossing of two rules is tried as the upper left corner.
    """
    crossings = {
        (x, y): (column, row)
        for column, (x, top, bottom) in enumerate(vertical_rules)
        for row, (y, left, right) in enumerate(horizontal_rules)
        if left - _TOLERANCE <= x <= right + _TOLERANCE and top - _TOLERANCE <= y <= bottom + _TOLERANCE
    }
    right_corners, lower_corners = (
        _find_following_crossings(crossings, rule_index=1, coordinate_index=0),
        _find_following_crossings(crossings, rule_index=0, coordinate_index=1),
    )
    cells = (
        _find_smallest_cell(*corner, right_corners[corner], lower_corners[corner], crossings) for corner in crossings
    )
    return [cell for cell in cells if cell]


def _find_following_crossings(
    crossings: dict[tuple[float, float], tuple[int, int]], *, rule_index: int, coordinate_index: int
) -> dict[tuple[float, float], list[tuple[float, float]]]:
    """List, for each crossing, those behind it on one of its rules, nearest first.

    ``crossings`` has, by x and y, the index of the vertical and of the horizontal rule. ``rule_index`` selects the rule
    of each such pair (0 or 1), ``coordinate_index`` the coordinate that grows along the rule (0 for x, 1 for y).
    """
    following_points: dict[tuple[float, float], list[tuple[float, float]]] = {}
    for points in group_by(crossings, lambda point: crossings[point][rule_index]).values():
        points.sort(key=itemgetter(coordinate_index))
        following_points |= {point: points[index:] for index, point in enumerate(points, 1)}
    return following_points


def _find_smallest_cell(
    x: float,
    y: float,
    right_corners: list[tuple[float, float]],
    lower_corners: list[tuple[float, float]],
    crossings: dict[tuple[float, float], tuple[int, int]],
) -> GridCell | None:
    # The fourth corner must be on the same two rules as the second and third, not on other rules in line with these.
    return next(
        (
            GridCell(x, y, right_corner[0], lower_corner[1])
            for lower_corner in lower_corners
            for right_corner in right_corners
            if crossings.get((right_corner[0], lower_corner[1]))
            == (crossings[right_corner][0], crossings[lower_corner][1])
        ),
        None,
    )


def _group_touching_cells(cells: list[GridCell]) -> list[list[GridCell]]:
    cells_by_corner = group_pairs((corner, cell) for cell in cells for corner in _list_corners(cell))
    cell_groups: list[list[GridCell]] = []
    grouped_cells: set[GridCell] = set()
    for first_cell in cells:
        if first_cell in grouped_cells:
            continue
        group = [first_cell]
        grouped_cells.add(first_cell)
        for cell in group:  # which grows while it is read
            neighbours = {
                neighbour for corner in _list_corners(cell) for neighbour in cells_by_corner[corner]
            } - grouped_cells
            grouped_cells |= neighbours
            group += neighbours
        cell_groups.append(group)
    return cell_groups


def _list_corners(cell: GridCell) -> tuple[tuple[float, float], ...]:
    return (cell.x0, cell.y0), (cell.x1, cell.y0), (cell.x0, cell.y1), (cell.x1, cell.y1)
