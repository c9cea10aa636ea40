"""The words of a form's page, deskewed, in rows, and with neighbours.

A form is read by the positions of its words, not by their order. Skewed scans are deskewed first, by the median slope
between neighbouring words.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median
from typing import Any, TypeVar

import numpy as np

from evalkit.core.grouping import group_by, split_into_runs
from evalkit.core.package_tables import load_package_table
from evalkit.documents.bundle import Page, PageStatus

T = TypeVar("T")

#: Height of a page divided by its width: US letter, as the bundle does not store the size.
_PAGE_ASPECT_RATIO = 792 / 612
#: Characters at either end of a word that OCR reads in place of box borders.
_BORDER_CHARACTERS = "|¦[]{}_—–~`‘“”\\«»"
#: A text between characters that are always box borders.
_TEXT_BETWEEN_BORDERS = re.compile(r"[^|¦_]+")
#: Start and end in the page's text; x0, y0, x1, y1 in page widths; index of the word on the page.
_WordBox = tuple[int, int, float, float, float, float, int]
_LETTERS_OR_DIGITS = re.compile(r"[^\W_]+")
#: A larger slope (about 8°) is taken for an error of the estimate, not for a skewed scan.
_MAX_SKEW_SLOPE = 0.14
#: The change of the slope down the page is measured if the words cover so many page widths.
_MIN_SLOPE_RANGE = 0.3
#: Words are in one row if their middles differ by less than this, in heights of the smaller word.
_ROW_TOLERANCE = 0.55


@dataclass(frozen=True, slots=True)
class FormWord:
    """A word with its deskewed box in page widths; x to the right, y downwards."""

    index: int
    text: str
    """Text of the word, without box borders that OCR read as characters."""
    match_key: str
    """Letters and digits of the text in lower case, for comparisons."""
    x0: float
    y0: float
    x1: float
    y1: float
    start: int
    """Position in ``Page.text``, as ``end``."""
    end: int
    confidence: float
    """OCR confidence, 0..1; 1 if the text does not come from OCR."""
    ruled_cell_number: int = 0
    """Number of the ruled table cell that contains the word, from 1; 0: none."""

    @property
    def center_x(self) -> float:
        """Horizontal middle of the box."""
        return (self.x0 + self.x1) / 2

    @property
    def center_y(self) -> float:
        """Vertical middle of the box."""
        return (self.y0 + self.y1) / 2

    @property
    def height(self) -> float:
        """Height of the box."""
        return self.y1 - self.y0


@dataclass(frozen=True)
class FormSheet:
    """The words of a page, or of one of several forms on a page."""

    page: Page
    words: tuple[FormWord, ...]
    label_cache: dict[Any, Any] = field(init=False, default_factory=dict, compare=False, repr=False)
    """Labels found on the sheet, filled by ``find_labels``."""

    @classmethod
    def from_page(cls, page: Page) -> FormSheet:
        """Build a sheet of all words on a page."""
        return cls(page, tuple(_build_deskewed_words(page)))

    @property
    def is_ocr_text(self) -> bool:
        """True if the page's text comes from OCR."""
        return self.page.status is PageStatus.OCR

    @cached_property
    def line_height(self) -> float:
        """Median height of the words, in page widths."""
        return median(word.height for word in self.words) if self.words else 0.01

    @cached_property
    def rows(self) -> tuple[tuple[FormWord, ...], ...]:
        """Rows of words from top to bottom, each from left to right."""
        rows: list[list[FormWord]] = []
        for word in sorted(self.words, key=lambda word: word.center_y):
            for row in reversed(rows[-4:]):
                nearest_word = min(row, key=lambda other: abs(other.center_x - word.center_x))
                if _is_level_with(nearest_word, word):
                    row.append(word)
                    break
            else:
                rows.append([word])
        return tuple(tuple(sorted(row, key=lambda word: word.x0)) for row in rows)

    @cached_property
    def _words_by_first_letter(self) -> dict[str, list[FormWord]]:
        return group_by(self.words, lambda word: word.match_key[:1])

    def find_words_starting_with(self, *letters: str) -> list[FormWord]:
        """Return the words whose ``match_key`` begins with one of these letters."""
        return [word for letter in dict.fromkeys(letters) for word in self._words_by_first_letter.get(letter, ())]

    @cached_property
    def _center_ys_and_sorted_words(self) -> tuple[list[float], list[FormWord]]:
        words = sorted(self.words, key=lambda word: (word.center_y, word.x0))
        return [word.center_y for word in words], words

    @cached_property
    def _neighbours_by_index(self) -> dict[int, tuple[FormWord | None, tuple[FormWord, ...]]]:
        return {
            word.index: (row[position - 1] if position else None, row[position + 1 : position + 3])
            for row in self.rows
            for position, word in enumerate(row)
        }

    def get_next_two_words(self, word: FormWord) -> tuple[FormWord, ...]:
        """Return the next two words in the word's row, the nearest first."""
        return self._neighbours_by_index[word.index][1]

    def get_word_left_of(self, word: FormWord) -> FormWord | None:
        """Return the word to the left in the word's row; None if it is the first."""
        return self._neighbours_by_index[word.index][0]

    def get_words_within(self, x0: float, y0: float, x1: float, y1: float) -> list[FormWord]:
        """Return the words whose middles are in the rectangle, from top to bottom."""
        centers_y, words = self._center_ys_and_sorted_words
        words_in_band = words[bisect_left(centers_y, y0) : bisect_right(centers_y, y1)]
        return [word for word in words_in_band if x0 <= word.center_x <= x1]


def group_into_rows(words: Iterable[FormWord]) -> list[list[FormWord]]:
    """Group words into rows from top to bottom, each from left to right."""
    rows = split_into_runs(
        sorted(words, key=lambda word: word.center_y), lambda row, word: _is_level_with(row[-1], word)
    )
    return [sorted(row, key=lambda word: word.x0) for row in rows]


def _is_level_with(word: FormWord, other: FormWord) -> bool:
    return abs(word.center_y - other.center_y) < _ROW_TOLERANCE * min(word.height, other.height)


def select_disjoint(candidates: Iterable[T], get_words: Callable[[T], Iterable[FormWord]]) -> list[T]:
    """Select the candidates, in order, that share no word with an earlier candidate."""
    selected: list[T] = []
    taken_indices: set[int] = set()
    for candidate in candidates:
        word_indices = {word.index for word in get_words(candidate)}
        if not word_indices & taken_indices:
            selected.append(candidate)
            taken_indices |= word_indices
    return selected


def make_match_key(text: str) -> str:
    """Reduce a text to lower-case letters and digits, with short words written out.

    >>> make_match_key("PAYER’S name, street"), make_match_key("12a"), make_match_key("$ —"), make_match_key("Soc. sec.")
    ('payersnamestreet', '12a', '', 'socialsecurity')
    """
    full_words = load_package_table("evalkit.extraction.forms", "label_words.toml")["full_words"]
    words = _LETTERS_OR_DIGITS.findall(unicodedata.normalize("NFKD", text).casefold())
    return "".join(full_words.get(word, word) for word in words)


def _build_deskewed_words(page: Page) -> Iterable[FormWord]:
    word_boxes = [
        (
            start,
            end,
            x0 / 10_000,
            y0 * _PAGE_ASPECT_RATIO / 10_000,
            x1 / 10_000,
            y1 * _PAGE_ASPECT_RATIO / 10_000,
            word_index,
        )
        for word_index, (start, end, x0, y0, x1, y1) in enumerate(page.words)
    ]
    ruled_cells = _find_ruled_cells(page)
    top_slope, slope_change = _estimate_skew(word_boxes) if page.status is PageStatus.OCR else (0.0, 0.0)
    confidences = page.confidences
    is_recognised = page.status is PageStatus.OCR
    pieces = (
        piece
        for candidate in word_boxes
        for piece in (_split_at_box_borders(page.text, candidate) if is_recognised else [candidate])
    )
    for number, (start, end, x0, y0, x1, y1, word_index) in enumerate(pieces):
        text = page.text[start:end]
        center_x, center_y = (x0 + x1) / 2, (y0 + y1) / 2
        slope = top_slope + slope_change * center_y
        # The box around a skewed word is higher than the word.
        half_height = max((y1 - y0) - abs(slope) * (x1 - x0), 0.4 * (y1 - y0)) / 2
        deskewed_y = center_y - slope * (center_x - 0.5)
        deskewed_x = center_x + (top_slope + slope_change * _PAGE_ASPECT_RATIO / 2) * center_y
        half_width = (x1 - x0) / 2
        confidence = confidences[word_index] / 100 if word_index < len(confidences) else 1.0
        ruled_cell = next((candidate for first, last, candidate in ruled_cells if first <= start < last), 0)
        yield FormWord(
            number,
            text,
            make_match_key(text),
            deskewed_x - half_width,
            deskewed_y - half_height,
            deskewed_x + half_width,
            deskewed_y + half_height,
            start,
            end,
            confidence,
            ruled_cell,
        )


def _split_at_box_borders(text: str, word_box: _WordBox) -> Iterable[_WordBox]:
    """Remove box borders from an OCR word's ends, and split it at borders inside."""
    start, end, x0, y0, x1, y1, word_index = word_box
    letter_width = (x1 - x0) / max(end - start, 1)
    for match in _TEXT_BETWEEN_BORDERS.finditer(text, start, end):
        stripped = match.group().strip(_BORDER_CHARACTERS)
        if stripped:
            first = match.start() + match.group().index(stripped)
            last = first + len(stripped)
            yield (
                first,
                last,
                x0 + letter_width * (first - start),
                y0,
                x0 + letter_width * (last - start),
                y1,
                word_index,
            )


def _find_ruled_cells(page: Page) -> list[tuple[int, int, int]]:
    """List the page's ruled table cells: start and end in ``Page.text``, and number."""
    cells: list[tuple[int, int, int]] = []
    position = 0
    for block in page.visible_blocks:
        if block.type == "table":
            for cell_match in re.finditer(r"[^\t\n]+", block.text):
                cells.append((position + cell_match.start(), position + cell_match.end(), len(cells) + 1))
        position += len(block.text) + 1
    return cells


def _estimate_skew(word_boxes: Sequence[_WordBox]) -> tuple[float, float]:
    """Estimate the text rows' slope at the top, and its change per page width down.

    The slope changes on photographs, which are taken at an angle. Both are 0 if they cannot be estimated. The first
    estimate uses near words, the second refines it with words farther apart.
    """
    wide_boxes = [word_box for word_box in word_boxes if word_box[4] - word_box[2] > 0.02]
    top_slope, change = 0.0, 0.0
    for max_distance in (0.15, 0.3, 0.6):
        places_and_slopes = []
        for index, word_box in enumerate(wide_boxes):
            expected_slope = top_slope + change * word_box[3]
            for other_box in wide_boxes[index + 1 : index + 12]:
                horizontal_distance = other_box[2] - word_box[2]
                vertical_drop = (other_box[5] + other_box[3] - word_box[5] - word_box[3]) / 2
                height = min(word_box[5] - word_box[3], other_box[5] - other_box[3])
                if (
                    0.03 < horizontal_distance < max_distance
                    and abs(vertical_drop - expected_slope * horizontal_distance) < 0.7 * height
                ):
                    places_and_slopes.append((word_box[3], vertical_drop / horizontal_distance))
        if len(places_and_slopes) < 8:
            break
        places, slopes = np.array(places_and_slopes).T
        if float(np.ptp(places)) > _MIN_SLOPE_RANGE:
            change, top_slope = map(float, np.polyfit(places, slopes, 1))
        else:
            change, top_slope = 0.0, float(np.median(slopes))
    is_plausible = max(abs(top_slope), abs(top_slope + change * _PAGE_ASPECT_RATIO)) < _MAX_SKEW_SLOPE
    return (top_slope, change) if is_plausible else (0.0, 0.0)
