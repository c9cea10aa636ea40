"""The words of a page in lines and cells, as a person sees them: the ground that a statement is read on.

Boxes stay fractions 0..1 of the displayed page. Pages that were recognised may lie aslant; their words are put in lines
by levelled heights, and keep the boxes that they have on the page.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from statistics import median

from evalkit.documents.bundle import Box, Page, PageStatus

#: The bundle does not keep a page's size; statements are printed on letter or A4, whose sides differ by 1.29 and 1.41.
_ASPECT = 1.35
#: Words of one line have middles so near, in heights of a word.
_SAME_LINE = 0.5
#: A gap so wide, in heights of a word, parts two cells: a blank has a third of it, columns stand further apart.
_NEW_CELL = 0.6
#: What engines see in the white before a word and in the rules beside it; none of it begins or ends a statement's word.
_DIRT = "§©®=|¦_~«»‘“”\\"
#: Slopes that are tried, in ten-thousandths of the page's height for its width: about 2° either way.
_SLOPES = range(-300, 301, 10)


@dataclass(frozen=True, slots=True)
class Word:
    """One word."""

    text: str
    box: Box
    """On the page."""
    y: float
    """Its middle after levelling, 0..1."""

    @property
    def x(self) -> float:
        """Middle."""
        return (self.box[0] + self.box[2]) / 2

    @property
    def height(self) -> float:
        """Of its box."""
        return self.box[3] - self.box[1]


@dataclass(frozen=True)
class Line:
    """Words beside one another, from the left; at least one."""

    page: int
    words: tuple[Word, ...]
    is_recognised: bool = False
    """Whether the words come from OCR, so that a letter may be misread."""

    @cached_property
    def text(self) -> str:
        """The words, with blanks between them."""
        return " ".join(word.text for word in self.words)

    @cached_property
    def y(self) -> float:
        """The middle of most words after levelling, 0..1."""
        return median(word.y for word in self.words)

    @cached_property
    def height(self) -> float:
        """Of most words, as a fraction of the page."""
        return median(word.height for word in self.words)

    @cached_property
    def box(self) -> Box:
        """Around all words."""
        return around(word.box for word in self.words)

    @cached_property
    def cells(self) -> tuple[Line, ...]:
        """The line, parted where gaps are wider than blanks."""
        runs = [[self.words[0]]]
        for before, word in pairwise(self.words):
            if word.box[0] - before.box[2] > _NEW_CELL * _ASPECT * (before.height + word.height) / 2:
                runs.append([])
            runs[-1].append(word)
        return tuple(Line(self.page, tuple(run), self.is_recognised) for run in runs)

    def within(self, box: Box) -> Line | None:
        """The words whose middles lie in the box; None where there are none."""
        x0, y0, x1, y1 = box
        kept = tuple(word for word in self.words if x0 <= word.x <= x1 and y0 <= (word.box[1] + word.box[3]) / 2 <= y1)
        return Line(self.page, kept, self.is_recognised) if kept else None


def lines_of(page: Page) -> tuple[Line, ...]:
    """The page's words in lines, from the top; empty where it has none."""
    is_recognised = page.status is PageStatus.OCR
    placed = [(page.text[word[0] : word[1]], _fractions(word[2:])) for word in page.words]
    slope = _slope([box for _, box in placed]) if is_recognised else 0.0
    dirt = _DIRT if is_recognised else ""
    words = [
        Word(clean, box, (box[1] + box[3]) / 2 - slope * (box[0] + box[2]) / 2)
        for text, box in placed
        if (clean := text.strip().strip(dirt))
    ]
    rows: list[list[Word]] = []
    for word in sorted(words, key=lambda one: one.y):
        if rows and abs(_level(rows[-1]) - word.y) < _SAME_LINE * min(word.height, rows[-1][-1].height):
            rows[-1].append(word)
        else:
            rows.append([word])
    return tuple(Line(page.page_num, tuple(sorted(row, key=lambda one: one.box[0])), is_recognised) for row in rows)


def around(boxes: Iterable[Box]) -> Box:
    """The smallest box around all of them. ValueError where there are none."""
    x0, y0, x1, y1 = zip(*boxes, strict=True)
    return min(x0), min(y0), max(x1), max(y1)


def _level(row: Sequence[Word]) -> float:
    return sum(word.y for word in row) / len(row)


def _fractions(box: Sequence[int]) -> Box:
    x0, y0, x1, y1 = (value / 10_000 for value in box)
    return x0, y0, x1, y1


def _slope(boxes: Sequence[Box]) -> float:
    """How far lines sink from the left edge to the right: the slope at which words lie in the sharpest lines."""
    if not boxes:
        return 0.0
    bin_height = median(box[3] - box[1] for box in boxes) / 3
    middles = [((box[0] + box[2]) / 2, (box[1] + box[3]) / 2, box[2] - box[0]) for box in boxes]

    def sharpness(slope: float) -> float:
        filled: Counter[int] = Counter()
        for x, y, width in middles:
            filled[round((y - slope * x) / bin_height)] += round(1000 * width)
        return sum(count * count for count in filled.values())

    best = max(_SLOPES, key=lambda slope: (sharpness(slope / 10_000), -abs(slope)))
    return best / 10_000
