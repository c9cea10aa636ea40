"""Ruled tables: from the lines that are drawn on a page to the cells they enclose. Pure geometry, lengths in points.

PyMuPDF's ``find_tables`` is not used: it takes 70 to 300 ms a page, rewrites rotated pages, and extracts the cells'
text a second time, apart from the words whose places we need.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import NamedTuple

#: Lines this near to each other are one line; ends this near to a line touch it.
_NEAR = 2.5
#: Beyond this many lines it is a drawing or a diagram, and the search would take seconds.
_MAX_RULES = 1_500


class Rule(NamedTuple):
    """A straight line along an axis."""

    at: float
    """y of a horizontal rule, x of a vertical one."""
    start: float
    end: float


class Cell(NamedTuple):
    """A rectangle without a line inside it."""

    x0: float
    y0: float
    x1: float
    y1: float


@dataclass(frozen=True)
class Grid:
    """Cells that hang together, at least two rows and two columns of them."""

    cells: tuple[Cell, ...]

    @cached_property
    def box(self) -> tuple[float, float, float, float]:
        """x0, y0, x1, y1 around all cells."""
        lefts, tops, rights, bottoms = zip(*self.cells, strict=True)
        return min(lefts), min(tops), max(rights), max(bottoms)

    @cached_property
    def columns(self) -> list[float]:
        """The left edges of the columns, ascending."""
        return sorted({cell.x0 for cell in self.cells})

    @cached_property
    def rows(self) -> list[float]:
        """The upper edges of the rows, ascending."""
        return sorted({cell.y0 for cell in self.cells})

    @cached_property
    def _by_corner(self) -> dict[tuple[float, float], Cell]:
        return {(cell.x0, cell.y0): cell for cell in self.cells}

    def cell_at(self, x: float, y: float) -> Cell:
        """The cell that the point is in, or the nearest one."""
        column, row = bisect_left(self.columns, x), bisect_left(self.rows, y)
        if column and row:
            likely = self._by_corner.get((self.columns[column - 1], self.rows[row - 1]))
            if likely and x <= likely.x1 and y <= likely.y1:
                return likely
        # It is in a cell that reaches over several rows or columns, or beside the table.
        return min(self.cells, key=lambda cell: _distance(cell, x, y))


def find_grids(horizontal: Iterable[Rule], vertical: Iterable[Rule]) -> list[Grid]:
    """The ruled tables that these lines draw, from the top down. None if there are too many lines for a table."""
    across, down = _joined(horizontal), _joined(vertical)
    if len(across) < 3 or len(down) < 3 or len(across) + len(down) > _MAX_RULES:
        return []
    groups = _touching(_cells(across, down))
    grids = [Grid(tuple(sorted(group, key=lambda cell: (cell.y0, cell.x0)))) for group in groups]
    tables = [grid for grid in grids if len(grid.rows) >= 2 and len(grid.columns) >= 2]
    return sorted(tables, key=lambda grid: (grid.box[1], grid.box[0]))


def find_stacks(horizontal: Iterable[Rule]) -> list[list[Rule]]:
    """Three or more horizontal rules of equal extent, one below the other: a table that has no vertical lines."""
    stacks: list[list[Rule]] = []
    for rule in _joined(horizontal):
        for stack in stacks:
            if abs(stack[-1].start - rule.start) < 2 * _NEAR and abs(stack[-1].end - rule.end) < 2 * _NEAR:
                stack.append(rule)
                break
        else:
            stacks.append([rule])
    return [stack for stack in stacks if len(stack) >= 3]


def _joined(rules: Iterable[Rule]) -> list[Rule]:
    """Rules at nearly the same place become one; pieces in a row become one long rule."""
    result: list[Rule] = []
    for at, level in _levels(sorted(rules)):
        pieces = sorted(level, key=lambda rule: rule.start)
        start, end = pieces[0].start, pieces[0].end
        for rule in pieces[1:]:
            if rule.start > end + _NEAR:
                result.append(Rule(at, start, end))
                start, end = rule.start, rule.end
            end = max(end, rule.end)
        result.append(Rule(at, start, end))
    return result


def _levels(rules: list[Rule]) -> Iterator[tuple[float, list[Rule]]]:
    """Rules of one level, with the level's place; ``rules`` are sorted."""
    level: list[Rule] = []
    for rule in rules:
        if level and rule.at - level[-1].at > _NEAR:
            yield level[0].at, level
            level = []
        level.append(rule)
    if level:
        yield level[0].at, level


def _cells(across: list[Rule], down: list[Rule]) -> list[Cell]:
    """Each corner's smallest rectangle to the right and below whose four sides are drawn."""
    crossings = {
        (x, y): (column, row)
        for column, (x, top, bottom) in enumerate(down)
        for row, (y, left, right) in enumerate(across)
        if left - _NEAR <= x <= right + _NEAR and top - _NEAR <= y <= bottom + _NEAR
    }
    rights, belows = _following(crossings, rule=1, along=0), _following(crossings, rule=0, along=1)
    cells = (_smallest(*corner, rights[corner], belows[corner], crossings) for corner in crossings)
    return [cell for cell in cells if cell]


def _following(
    crossings: dict[tuple[float, float], tuple[int, int]], *, rule: int, along: int
) -> dict[tuple[float, float], list[tuple[float, float]]]:
    """For each crossing those that come after it on the same rule, the nearest first.

    ``rule`` is the place of the rule's number among the two of a crossing, ``along`` that of the coordinate.
    """
    on_rule: dict[int, list[tuple[float, float]]] = {}
    for point, rules in crossings.items():
        on_rule.setdefault(rules[rule], []).append(point)
    following: dict[tuple[float, float], list[tuple[float, float]]] = {}
    for points in on_rule.values():
        points.sort(key=itemgetter(along))
        following |= {point: points[number:] for number, point in enumerate(points, 1)}
    return following


def _smallest(
    x: float,
    y: float,
    rights: list[tuple[float, float]],
    belows: list[tuple[float, float]],
    crossings: dict[tuple[float, float], tuple[int, int]],
) -> Cell | None:
    for below in belows:
        for right in rights:
            corner = crossings.get((right[0], below[1]))
            # The far corner must hang on the same two rules as its neighbours, not on others at the same level.
            if corner and corner[0] == crossings[right][0] and corner[1] == crossings[below][1]:
                return Cell(x, y, right[0], below[1])
    return None


def _touching(cells: list[Cell]) -> list[list[Cell]]:
    """Cells in groups that share corners."""
    at_corner: dict[tuple[float, float], list[Cell]] = {}
    for cell in cells:
        for corner in _corners(cell):
            at_corner.setdefault(corner, []).append(cell)
    groups: list[list[Cell]] = []
    grouped: set[Cell] = set()
    for first in cells:
        if first in grouped:
            continue
        group, waiting = [], [first]
        grouped.add(first)
        while waiting:
            cell = waiting.pop()
            group.append(cell)
            neighbours = {near for corner in _corners(cell) for near in at_corner[corner]} - grouped
            grouped |= neighbours
            waiting.extend(neighbours)
        groups.append(group)
    return groups


def _corners(cell: Cell) -> tuple[tuple[float, float], ...]:
    return (cell.x0, cell.y0), (cell.x1, cell.y0), (cell.x0, cell.y1), (cell.x1, cell.y1)


def _distance(cell: Cell, x: float, y: float) -> float:
    return max(cell.x0 - x, 0.0, x - cell.x1) + max(cell.y0 - y, 0.0, y - cell.y1)
