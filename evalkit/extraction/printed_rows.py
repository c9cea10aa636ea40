"""Rows of cells on a printed page, found by the positions of its words.

A cell ends at a tab, at a row of dots, and at a gap wider than a letter. Both the readers of tables and the judge of
the fields use these rows: they hold no word of any language.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from evalkit.core.grouping import split_into_runs
from evalkit.documents.bundle import Page, WordPosition

#: A gap of more than this many mean letters separates cells; a space of a typewriter is one letter wide.
_MIN_GAP = 1.3
_LEADER = re.compile(r"[.…_·]{3,}")


class PrintedCell(NamedTuple):
    """Words side by side without a wide gap."""

    start: int
    """Position in ``Page.text``, as ``end``."""
    end: int
    text: str
    left: int
    """Place on the page in ten-thousandths of its width, as ``right``."""
    right: int
    tabs: int
    """Number of tabs before the cell in its line; -1 in a line without tabs."""


PrintedRow = tuple[PrintedCell, ...]


class PrintedPage:
    """A page's text, divided into printed rows."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self._words = sorted(page.words)
        self._starts = [word[0] for word in self._words]

    def split_into_rows(self, start: int, end: int) -> list[PrintedRow]:
        """Split a span of the page's text into rows, from the top.

        A line with tabs is one row of a table, whose cells may be wrapped.
        """
        rows: list[PrintedRow] = []
        for line in re.finditer(r"[^\n]+", self.page.text[start:end]):
            first, last = start + line.start(), start + line.end()
            if "\t" not in line.group():
                words = self._words[bisect_left(self._starts, first) : bisect_left(self._starts, last)]
                rows += [self._split_into_cells(run, -1) for run in split_into_runs(words, _is_in_row)]
                continue
            row: list[PrintedCell] = []
            for column, cell in enumerate(re.finditer(r"[^\t]*(?:\t|$)", line.group())):
                words = self._words[
                    bisect_left(self._starts, first + cell.start()) : bisect_left(self._starts, first + cell.end())
                ]
                row += self._split_into_cells(words, column)
            rows.append(tuple(row))
        return [row for row in rows if row]

    def _split_into_cells(self, words: list[WordPosition], tabs: int) -> PrintedRow:
        letter_width = sum(word[4] - word[2] for word in words) / max(1, sum(word[1] - word[0] for word in words))
        words = [word for word in words if not _LEADER.fullmatch(self.page.text[word[0] : word[1]])]
        cells = split_into_runs(
            words,
            lambda cell, word: (
                not (
                    _LEADER.search(self.page.text, cell[-1][1], word[0])
                    or (_is_in_row(cell, word) and word[2] - cell[-1][4] > _MIN_GAP * letter_width)
                )
            ),
        )
        return tuple(
            PrintedCell(
                cell[0][0],
                cell[-1][1],
                self.page.text[cell[0][0] : cell[-1][1]],
                min(word[2] for word in cell),
                max(word[4] for word in cell),
                tabs,
            )
            for cell in cells
        )


def find_columns(header: PrintedRow, rows: Sequence[PrintedRow]) -> list[list[PrintedCell | None]]:
    """Arrange cells in columns from the left, each with heading and cells.

    None is an empty cell. The rows with most cells show where the columns are; two cells of a row in one column are
    joined.
    """
    counts = sorted(map(len, rows))
    full_rows = [row for row in rows if len(row) >= counts[len(counts) // 2]]
    spans: list[tuple[int, int, int]] = []
    for tabs in sorted({cell.tabs for row in rows for cell in row}):
        is_whole = tabs >= 0 and all(sum(cell.tabs == tabs for cell in row) < 2 for row in rows)
        first = len(spans)
        for cell in sorted(
            (cell for row in full_rows for cell in row if cell.tabs == tabs), key=lambda cell: cell.left
        ):
            if len(spans) > first and (is_whole or cell.left <= spans[-1][2]):
                spans[-1] = (tabs, spans[-1][1], max(spans[-1][2], cell.right))
            else:
                spans.append((tabs, cell.left, cell.right))
    columns: list[list[PrintedCell | None]] = [[None] * (len(rows) + 1) for _ in spans]
    for number, row in enumerate((header, *rows)):
        for cell in row:
            places = [
                (min(cell.right, right) - max(cell.left, left), column)
                for column, (tabs, left, right) in enumerate(spans)
                if tabs == cell.tabs
            ]
            if places:
                _, column = max(places)
                columns[column][number] = _join_cells(columns[column][number], cell)
    return columns


def _join_cells(left: PrintedCell | None, right: PrintedCell) -> PrintedCell:
    """Join a cell with the one behind it."""
    if left is None:
        return right
    return left._replace(end=right.end, text=f"{left.text} {right.text}", right=right.right)


def _is_in_row(run: list[WordPosition], word: WordPosition) -> bool:
    """Return True if a word follows the last one on the same height."""
    last = run[-1]
    return word[2] >= last[2] and 2 * word[3] < last[3] + last[5] and last[3] < word[5]
