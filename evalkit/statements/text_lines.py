"""Group the words of a page into lines and cells, as a person sees them.

Boxes are fractions 0..1 of the displayed page. Scanned pages may be skewed: their words are grouped by their height
after deskewing, but keep their boxes on the page as displayed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median

from evalkit.core.grouping import split_into_runs
from evalkit.documents.bundle import Box, Page, PageStatus, enclose_boxes

#: Assumed height of a page in page widths: the bundle does not store it; letter paper has 1.29, A4 1.41.
_PAGE_ASPECT_RATIO = 1.35
#: Largest vertical distance of a word's middle from the line's, in heights of a word.
_SAME_LINE_TOLERANCE = 0.5
#: Smallest gap between two cells, in heights of a word; a blank is about a third of this.
_MIN_CELL_GAP = 0.6
#: Characters that OCR sees in empty areas and printed lines; they are removed at the start and end of words.
_OCR_NOISE_CHARACTERS = "§©®=|¦_~«»‘“”\\"
#: Slopes to try when deskewing, in ten-thousandths of the page's height per page width: up to about 2° either way.
_CANDIDATE_SLOPES = range(-300, 301, 10)


@dataclass(frozen=True, slots=True)
class PageWord:
    """A word of a page, with its box and its height after deskewing."""

    text: str
    box: Box
    """The box on the page as displayed, fractions 0..1."""
    deskewed_center_y: float
    """The vertical middle of the word after deskewing, as a fraction of the page's height."""
    confidence: float = 1.0
    """OCR's confidence in the word, 0..1, halved if a second engine or the first itself doubts it; 1 without OCR."""

    @property
    def center_x(self) -> float:
        """The horizontal middle of the word, as a fraction of the page's width."""
        return (self.box[0] + self.box[2]) / 2

    @property
    def height(self) -> float:
        """The height of the word's box, as a fraction of the page's height."""
        return self.box[3] - self.box[1]


@dataclass(frozen=True)
class TextLine:
    """A line, or a cell of a line: its words from left to right, at least one."""

    page_number: int
    words: tuple[PageWord, ...]
    is_ocr_text: bool = False
    """True if the words come from OCR, so that characters may be misread."""

    @cached_property
    def text(self) -> str:
        """The text of the line: its words with blanks between them."""
        return " ".join(word.text for word in self.words)

    @cached_property
    def deskewed_center_y(self) -> float:
        """The median of the words' vertical middles after deskewing, 0..1."""
        return median(word.deskewed_center_y for word in self.words)

    @cached_property
    def height(self) -> float:
        """The median height of the words, as a fraction of the page's height."""
        return median(word.height for word in self.words)

    @cached_property
    def box(self) -> Box:
        """The box around all words of the line."""
        return enclose_boxes(word.box for word in self.words)

    @cached_property
    def cells(self) -> tuple[TextLine, ...]:
        """The cells of the line: its words, divided where a gap is wider than a blank."""
        runs = split_into_runs(self.words, lambda run, word: not _is_gap_between(run[-1], word))
        return tuple(TextLine(self.page_number, tuple(run), self.is_ocr_text) for run in runs)

    def clip_to_box(self, box: Box) -> TextLine | None:
        """Return the part of the line in the box; None if no word's middle is in it."""
        x0, y0, x1, y1 = box
        words_inside = tuple(
            word for word in self.words if x0 <= word.center_x <= x1 and y0 <= (word.box[1] + word.box[3]) / 2 <= y1
        )
        return TextLine(self.page_number, words_inside, self.is_ocr_text) if words_inside else None


def group_words_into_lines(page: Page) -> tuple[TextLine, ...]:
    """Group the words of a page into lines, from top to bottom.

    OCR pages are deskewed first, and stray marks around their words are removed.
    """
    is_recognised = page.status is PageStatus.OCR
    confidences = [percent / 100 for percent in page.confidences] or [1.0] * len(page.words)
    for position in page.doubtful:
        confidences[position] /= 2
    boxed_texts = [
        (page.text[start:end], (x0 / 10_000, y0 / 10_000, x1 / 10_000, y1 / 10_000), confidence)
        for (start, end, x0, y0, x1, y1), confidence in zip(page.words, confidences, strict=True)
    ]
    slope = _estimate_skew_slope([box for _, box, _ in boxed_texts]) if is_recognised else 0.0
    noise = _OCR_NOISE_CHARACTERS if is_recognised else ""
    words = [
        PageWord(clean_text, box, (box[1] + box[3]) / 2 - slope * (box[0] + box[2]) / 2, confidence)
        for text, box, confidence in boxed_texts
        if (clean_text := text.strip().strip(noise))
    ]
    word_rows = split_into_runs(sorted(words, key=lambda word: word.deskewed_center_y), _is_on_line)
    return tuple(
        TextLine(page.page_num, tuple(sorted(row, key=lambda word: word.box[0])), is_recognised) for row in word_rows
    )


def _is_gap_between(word: PageWord, next_word: PageWord) -> bool:
    min_gap = _MIN_CELL_GAP * _PAGE_ASPECT_RATIO * (word.height + next_word.height) / 2
    return next_word.box[0] - word.box[2] > min_gap


def _is_on_line(line_words: Sequence[PageWord], word: PageWord) -> bool:
    mean_y = sum(line_word.deskewed_center_y for line_word in line_words) / len(line_words)
    return abs(mean_y - word.deskewed_center_y) < _SAME_LINE_TOLERANCE * min(word.height, line_words[-1].height)


def _estimate_skew_slope(boxes: Sequence[Box]) -> float:
    """Estimate the slope of the text lines on a skewed page; 0 for a level page.

    Returns the slope at which the words gather most closely in lines.
    """
    if not boxes:
        return 0.0
    bin_height = median(box[3] - box[1] for box in boxes) / 3
    centres = [((box[0] + box[2]) / 2, (box[1] + box[3]) / 2, box[2] - box[0]) for box in boxes]

    def measure_sharpness(slope: float) -> float:
        weight_by_bin: Counter[int] = Counter()
        for x, y, width in centres:
            weight_by_bin[round((y - slope * x) / bin_height)] += round(1000 * width)
        return sum(count * count for count in weight_by_bin.values())

    best_slope = max(_CANDIDATE_SLOPES, key=lambda slope: (measure_sharpness(slope / 10_000), -abs(slope)))
    return best_slope / 10_000
