"""The words of a page as they lie on a sheet of paper: levelled, in units of one page width, with their neighbours.

A form is read by where its words stand, not by their order. Pages that were scanned aslant are levelled first: the
angle is the one that lets the words lie in the sharpest rows.
"""

from __future__ import annotations

import math
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median
from typing import Any

from evalkit.documents.bundle import Page, PageStatus

#: A sheet's height in page widths: US letter. Forms are printed on it, and the bundle does not keep the size.
_ASPECT = 792 / 612
#: What engines take the borders of boxes for, at either end of a word.
_BORDERS = "|¦[]{}_—–~`‘“”\\«»"
#: Between borders.
_INK = re.compile(r"[^|¦_]+")
_Placed = tuple[int, int, float, float, float, float, int]
"""Start and end in the page's text, box, number of the word."""
_LETTER = re.compile(r"[^\W_]+")
#: Slopes beyond this (about 8°) are no scan put askew by hand.
_STEEPEST = 0.14
#: A word belongs to a row if their middles are so near, in heights of a word.
_ROW = 0.55


@dataclass(frozen=True, slots=True)
class Word:
    """One word. Lengths are in page widths, x to the right, y downwards, after levelling."""

    at: int
    """Its number on the sheet."""
    text: str
    """Without what looks like a box's border."""
    key: str
    """Letters and digits in small letters, for comparing."""
    x0: float
    y0: float
    x1: float
    y1: float
    start: int
    """Characters of ``Page.text``."""
    end: int
    sureness: float
    """How sure the OCR engine is of it, 0..1; 1 where the text was read."""
    cell: int = 0
    """Number of the cell of a ruled table that it stands in; 0: in none."""

    @property
    def x(self) -> float:
        """Middle."""
        return (self.x0 + self.x1) / 2

    @property
    def y(self) -> float:
        """Middle."""
        return (self.y0 + self.y1) / 2

    @property
    def height(self) -> float:
        """Of its box."""
        return self.y1 - self.y0


@dataclass(frozen=True)
class Sheet:
    """A page's words, or those of one of several forms on it."""

    page: Page
    words: tuple[Word, ...]

    @classmethod
    def of(cls, page: Page) -> Sheet:
        """All words of a page."""
        return cls(page, tuple(_levelled(page)))

    def part(self, words: Iterable[Word]) -> Sheet:
        """The same sheet with these words only."""
        kept = {word.at for word in words}
        return Sheet(self.page, tuple(word for word in self.words if word.at in kept))

    @property
    def is_recognised(self) -> bool:
        """Whether it comes from OCR."""
        return self.page.status is PageStatus.OCR

    @cached_property
    def kept(self) -> dict[Any, Any]:
        """What was found on it, by what it was looked for with."""
        return {}

    @cached_property
    def line_height(self) -> float:
        """The height of most words."""
        return median(word.height for word in self.words) if self.words else 0.01

    @cached_property
    def rows(self) -> tuple[tuple[Word, ...], ...]:
        """The words in rows from the top, each from the left."""
        rows: list[list[Word]] = []
        for word in sorted(self.words, key=lambda word: word.y):
            for row in reversed(rows[-4:]):
                last = min(row, key=lambda other: abs(other.x - word.x))
                if abs(last.y - word.y) < _ROW * min(last.height, word.height):
                    row.append(word)
                    break
            else:
                rows.append([word])
        return tuple(tuple(sorted(row, key=lambda word: word.x0)) for row in rows)

    @cached_property
    def _by_letter(self) -> dict[str, list[Word]]:
        found: dict[str, list[Word]] = {}
        for word in self.words:
            found.setdefault(word.key[:1], []).append(word)
        return found

    def beginning(self, *letters: str) -> list[Word]:
        """The words that begin with one of these letters."""
        return [word for letter in dict.fromkeys(letters) for word in self._by_letter.get(letter, ())]

    @cached_property
    def _by_height(self) -> tuple[list[float], list[Word]]:
        words = sorted(self.words, key=lambda word: (word.y, word.x0))
        return [word.y for word in words], words

    @cached_property
    def _rights(self) -> dict[int, tuple[Word, ...]]:
        return {row[at].at: row[at + 1 : at + 3] for row in self.rows for at in range(len(row))}

    @cached_property
    def _lefts(self) -> dict[int, Word]:
        return {row[at].at: row[at - 1] for row in self.rows for at in range(1, len(row))}

    def right_of(self, word: Word) -> tuple[Word, ...]:
        """The next words of its row, the nearest first."""
        return self._rights[word.at]

    def left_of(self, word: Word) -> Word | None:
        """The word before it in its row."""
        return self._lefts.get(word.at)

    def within(self, x0: float, y0: float, x1: float, y1: float) -> list[Word]:
        """The words whose middles lie in the rectangle, by rows."""
        heights, words = self._by_height
        among = words[bisect_left(heights, y0) : bisect_right(heights, y1)]
        return [word for word in among if x0 <= word.x <= x1]


def in_rows(words: Iterable[Word]) -> list[list[Word]]:
    """The words in rows from the top, each from the left."""
    rows: list[list[Word]] = []
    for word in sorted(words, key=lambda word: word.y):
        if rows and abs(rows[-1][-1].y - word.y) < _ROW * min(rows[-1][-1].height, word.height):
            rows[-1].append(word)
        else:
            rows.append([word])
    return [sorted(row, key=lambda word: word.x0) for row in rows]


def key_of(text: str) -> str:
    """Letters and digits in small letters, without accents: what is left when an engine misreads spaces and signs.

    >>> key_of("PAYER’S name, street"), key_of("12a"), key_of("$ —")
    ('payersnamestreet', '12a', '')
    """
    folded = unicodedata.normalize("NFKD", text).casefold()
    return "".join(_LETTER.findall(folded))


def _levelled(page: Page) -> Iterable[Word]:
    placed = [
        (start, end, x0 / 10_000, y0 * _ASPECT / 10_000, x1 / 10_000, y1 * _ASPECT / 10_000, at)
        for at, (start, end, x0, y0, x1, y1) in enumerate(page.words)
    ]
    borders = _cells(page)
    slope = _slope(placed) if page.status is PageStatus.OCR else 0.0
    sure = page.confidences
    is_recognised = page.status is PageStatus.OCR
    pieces = (piece for one in placed for piece in (_pieces(page.text, one) if is_recognised else [one]))
    for number, (start, end, x0, y0, x1, y1, at) in enumerate(pieces):
        text = page.text[start:end]
        x, y = (x0 + x1) / 2, (y0 + y1) / 2
        # A box around a slanting word is higher than the word.
        half = max((y1 - y0) - abs(slope) * (x1 - x0), 0.4 * (y1 - y0)) / 2
        level = y - slope * x
        across = x + slope * y
        wide = (x1 - x0) / 2
        confidence = sure[at] / 100 if at < len(sure) else 1.0
        cell = next((one for first, last, one in borders if first <= start < last), 0)
        yield Word(
            number,
            text,
            key_of(text),
            across - wide,
            level - half,
            across + wide,
            level + half,
            start,
            end,
            confidence,
            cell,
        )


def _pieces(text: str, placed: _Placed) -> Iterable[_Placed]:
    """A recognised word without the borders of boxes at its ends, and divided where they stand within it."""
    start, end, x0, y0, x1, y1, at = placed
    wide = (x1 - x0) / max(end - start, 1)
    for found in _INK.finditer(text, start, end):
        bare = found.group().strip(_BORDERS)
        if bare:
            first = found.start() + found.group().index(bare)
            last = first + len(bare)
            yield first, last, x0 + wide * (first - start), y0, x0 + wide * (last - start), y1, at


def _cells(page: Page) -> list[tuple[int, int, int]]:
    """Start, end and number of the ruled cells in the page's text: tables have tabs and line breaks between them."""
    found: list[tuple[int, int, int]] = []
    at = 0
    for block in page.visible_blocks:
        if block.type == "table":
            for piece in re.finditer(r"[^\t\n]+", block.text):
                found.append((at + piece.start(), at + piece.end(), len(found) + 1))
        at += len(block.text) + 1
    return found


def _slope(placed: Sequence[_Placed]) -> float:
    """How far rows sink per page width to the right: the median of neighbours in reading order, then of far ones."""
    wide = [one for one in placed if one[4] - one[2] > 0.02]
    if len(wide) < 8:
        return 0.0
    found = 0.0
    for reach in (0.15, 0.5):
        slopes = []
        for at, one in enumerate(wide):
            for other in wide[at + 1 : at + 12]:
                run = other[2] - one[2]
                fall = (other[5] + other[3] - one[5] - one[3]) / 2
                height = min(one[5] - one[3], other[5] - other[3])
                if 0.03 < run < reach and abs(fall - found * run) < 0.7 * height:
                    slopes.append(fall / run)
        if len(slopes) < 8:
            break
        found = median(slopes)
    return found if abs(found) < _STEEPEST and math.isfinite(found) else 0.0
