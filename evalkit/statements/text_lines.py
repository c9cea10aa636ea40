"""Grouping of a page's words into lines and cells, as a person sees them.

What is printed side by side is separated. Boxes are fractions 0..1 of the displayed page. Scanned pages may be skewed:
their words are grouped by their height after deskewing, but keep their boxes on the page as displayed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from statistics import median
from typing import Literal, NamedTuple

from evalkit.core.grouping import group_by, split_into_runs
from evalkit.documents.bundle import Box, Page, PageStatus, enclose_boxes
from evalkit.statements.amounts import get_sign_mark
from evalkit.statements.dates import DATE_FORMATS, parse_partial_date
from evalkit.statements.statement_template import Region

#: Assumed height of a page in page widths: the bundle does not store it; letter paper has 1.29, A4 1.41.
_PAGE_ASPECT_RATIO = 1.35
#: Largest vertical distance of a word's middle from the line's, in heights of a word.
_SAME_LINE_TOLERANCE = 0.5
#: A word of a lower height, such as a dash, counts as this much of the words' median height.
_MIN_HEIGHT_SHARE = 0.7
#: Smallest gap between two cells, in heights of a word; a blank is about a third of this.
_MIN_CELL_GAP = 0.6
_MIN_SIDEWAYS_WORDS = 5
#: Largest gap between an amount and the mark of its direction, in heights of a word.
_MAX_MARK_GAP = 5.0
#: Largest distance of an amount's mark below it, in heights of a word, from middle to middle.
_MAX_MARK_DISTANCE = 2.2
#: A whole amount, and its cents in a cell of their own, with the largest gap between them.
_WHOLE_AMOUNT, _CENTS, _MAX_CENTS_GAP = re.compile(r"\W?\d{1,3}(?:[.,'’]?\d{3})*"), re.compile(r"\d\d[-+)]?"), 2.5
_AMOUNT_END, _PRINTED_CENTS = re.compile(r"\d[.,' ]\d\d\)?$"), re.compile(r"\d[.,' ]\d\d\b")
#: Characters that OCR sees in empty areas and printed lines; they are removed at the start and end of words.
_OCR_NOISE_CHARACTERS = "§©®=|¦_~«»‘“”\\[]{}"
#: Slopes to try when deskewing, in ten-thousandths of the page's height per page width: up to about 2° either way.
_CANDIDATE_SLOPES = range(-300, 301, 10)


@dataclass(frozen=True, slots=True)
class PageWord:
    """A word of a page, with its box and its height after deskewing."""

    text: str
    box: Box
    """The box on the page, fractions 0..1."""
    deskewed_center_y: float
    """The vertical middle of the word after deskewing, as a fraction of the page's height."""
    confidence: float = 1.0
    """OCR's confidence in the word, 0..1, halved if a second engine or the first itself doubts it; 1 without OCR."""
    page_box: Box | None = None
    """The box on the page, if ``box`` is where the word would be on a page that is turned or has one table only."""

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

    @property
    def page_box(self) -> Box:
        """The box around all words of the line on the page as displayed."""
        return enclose_boxes(word.page_box or word.box for word in self.words)

    @cached_property
    def cells(self) -> tuple[TextLine, ...]:
        """The cells of the line: its words, divided where a gap is wider than a blank.

        The mark of an amount's direction, printed after the amount in a column of its own, belongs to its cell.
        """
        runs = split_into_runs(
            self.words,
            lambda run, word: (
                word.box[0] - run[-1].box[2] <= _MIN_CELL_GAP * _PAGE_ASPECT_RATIO * (run[-1].height + word.height) / 2
            ),
        )
        for position in range(len(runs) - 1, 0, -1):
            if _is_mark_after_amount(runs[position - 1], runs[position]):
                runs[position - 1 : position + 1] = [[*runs[position - 1], *runs[position]]]
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
    page_boxes = [(x0 / 10_000, y0 / 10_000, x1 / 10_000, y1 / 10_000) for _, _, x0, y0, x1, y1 in page.words]
    turn = _find_text_turn([box for word, box in zip(page.words, page_boxes, strict=True) if word[1] - word[0] > 2])
    boxes = [_turn_box(box, turn) for box in page_boxes] if turn else page_boxes
    confidences = [percent / 100 for percent in page.confidences] or [1.0] * len(page.words)
    for position in page.doubtful:
        confidences[position] /= 2
    slope = _estimate_skew_slope(boxes) if is_recognised else 0.0
    noise = _OCR_NOISE_CHARACTERS if is_recognised else ""
    words = [
        PageWord(
            clean_text,
            box,
            (box[1] + box[3]) / 2 - slope * (box[0] + box[2]) / 2,
            confidence,
            page_box if turn else None,
        )
        for (start, end, *_), box, page_box, confidence in zip(page.words, boxes, page_boxes, confidences, strict=True)
        if (clean_text := page.text[start:end].strip().strip(noise))
    ]
    min_height = _MIN_HEIGHT_SHARE * median([word.height for word in words] or [0.0])
    word_rows = split_into_runs(
        sorted(words, key=lambda word: word.deskewed_center_y), lambda row, word: _is_on_line(row, word, min_height)
    )
    for upper_row, row in pairwise(word_rows):
        if len(row) == 1 and (marked_word := _find_amount_above(upper_row, row[0])):
            # The mark of an amount may be printed below it.
            upper_row.append(replace(row.pop(), deskewed_center_y=marked_word.deskewed_center_y))
    lines = [
        TextLine(page.page_num, tuple(sorted(row, key=lambda word: word.box[0])), is_recognised)
        for row in word_rows
        if row
    ]
    return tuple(_move_day_headings(lines))


def _move_day_headings(lines: Sequence[TextLine]) -> Iterator[TextLine]:
    """Move dates that are lines of their own into the rows below, left of all text.

    Only on pages whose amounts are all in lines without a date.
    """

    def is_date(line: TextLine) -> bool:
        return parse_partial_date(line.text, DATE_FORMATS, is_ocr_text=line.is_ocr_text) is not None

    rows = [len(line.cells) > 1 and _PRINTED_CENTS.search(line.cells[-1].text) is not None for line in lines]
    undated = [is_row and not is_date(line.cells[0]) for line, is_row in zip(lines, rows, strict=True)]
    headings = [is_row and is_date(line) for line, is_row in zip(lines, [*undated[1:], False], strict=False)]
    if undated != rows:
        headings = [False] * len(lines)
    margin = min((line.box[0] for line in lines), default=0.0)
    for line, above, is_heading, is_moved in zip(lines, [None, *lines], headings, [False, *headings], strict=False):
        if is_moved and above:
            width = margin / (len(above.words) + 1)
            moved = (
                replace(
                    word,
                    box=(place * width, line.box[1], (place + 1) * width, line.box[3]),
                    deskewed_center_y=line.deskewed_center_y,
                    page_box=word.page_box or word.box,
                )
                for place, word in enumerate(above.words)
            )
            yield replace(line, words=(*moved, *line.words))
        elif not is_heading:
            yield line


def _find_amount_above(words: Sequence[PageWord], mark: PageWord) -> PageWord | None:
    """Return the amount right above a lone mark of its direction; or None."""
    if get_sign_mark(mark.text) not in ("cr", "dr"):
        return None
    return next(
        (
            word
            for word in words
            if _AMOUNT_END.search(word.text)
            and word.box[0] < mark.box[0] < word.box[2]
            and mark.deskewed_center_y - word.deskewed_center_y < _MAX_MARK_DISTANCE * word.height
        ),
        None,
    )


def join_cents(lines: Sequence[TextLine]) -> list[TextLine]:
    """Join whole amounts with their cents if the cents have a separate cell."""
    return [
        replace(line, words=joined_words)
        if len(joined_words := tuple(_join_cents_of_line(line.words))) < len(line.words)
        else line
        for line in lines
    ]


def _join_cents_of_line(words: Sequence[PageWord]) -> Iterator[PageWord]:
    runs = split_into_runs(
        words,
        lambda run, word: (
            len(run) == 1
            and bool(_WHOLE_AMOUNT.fullmatch(run[0].text) and _CENTS.fullmatch(word.text))
            and word.box[0] - run[0].box[2] < _MAX_CENTS_GAP * _PAGE_ASPECT_RATIO * word.height
        ),
    )
    for first_word, *cents in runs:
        yield (
            replace(
                first_word,
                text=" ".join((first_word.text, *(word.text for word in cents))),
                box=enclose_boxes(word.box for word in (first_word, *cents)),
                page_box=enclose_boxes(word.page_box or word.box for word in (first_word, *cents)),
            )
            if cents
            else first_word
        )


def _find_text_turn(boxes: Sequence[Box]) -> Literal["up", "down"] | None:
    """Return where the text of a sideways page runs to; None if it is level.

    ``boxes``: of the words with three or more characters, which are wider than high unless the text is sideways.
    """
    upright_count = sum((box[3] - box[1]) * _PAGE_ASPECT_RATIO > 1.2 * (box[2] - box[0]) for box in boxes)
    if len(boxes) < _MIN_SIDEWAYS_WORDS or upright_count <= len(boxes) / 2:
        return None
    steps = [
        next_box[1] - box[1] for box, next_box in pairwise(boxes) if abs(next_box[0] - box[0]) < (box[2] - box[0]) / 2
    ]
    return "up" if sum(step < 0 for step in steps) > sum(step > 0 for step in steps) else "down"


def _turn_box(box: Box, turn: Literal["up", "down"]) -> Box:
    """Turn the page so that text that ran up or down runs to the right."""
    x0, y0, x1, y1 = box
    return (1 - y1, x0, 1 - y0, x1) if turn == "up" else (y0, 1 - x1, y1, 1 - x0)


def _is_mark_after_amount(words: Sequence[PageWord], next_words: Sequence[PageWord]) -> bool:
    gap = next_words[0].box[0] - words[-1].box[2]
    return (
        len(next_words) == 1
        and gap < _MAX_MARK_GAP * _PAGE_ASPECT_RATIO * words[-1].height
        and _AMOUNT_END.search(words[-1].text) is not None
        and get_sign_mark(next_words[0].text) is not None
    )


def _is_on_line(line_words: Sequence[PageWord], word: PageWord, min_height: float) -> bool:
    """Return True if the word is on the line.

    OCR's boxes of dashes are lower than ``min_height``.
    """
    mean_y = sum(line_word.deskewed_center_y for line_word in line_words) / len(line_words)
    height = max(min(word.height, line_words[-1].height), min_height)
    return abs(mean_y - word.deskewed_center_y) < _SAME_LINE_TOLERANCE * height


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


_AMOUNTS_ONLY = re.compile(r"[^\w]*(?:[A-Z]{1,3}\b\s*)?\d[\d.,' ]*[.,]\d\d\b[^\w]*(?:[A-Z]{1,3})?")


class PlacedLine(NamedTuple):
    """A line of a page, or the part of a line in one panel of the page."""

    line: TextLine
    """The line as printed; of a line that was divided, the part."""
    line_in_panel: TextLine | None
    """Its words inside the panel, where they would be in the first panel; None outside all panels."""


def split_lines_into_panels(lines: Sequence[TextLine], panels: Sequence[Region]) -> list[PlacedLine]:
    """Order a page's lines by panel (column of text), dividing lines across panels.

    A line with a cell across the edge of a panel, or with a label and an amount on either side, is not divided: it ends
    the rows above it in all panels.
    """
    placed_lines: list[PlacedLine] = []
    #: The lines of each panel since the last undivided line; the last list: lines beside all panels.
    pending: list[list[PlacedLine]] = [[] for _ in (*panels, None)]
    for line in lines:
        parts = _divide_line(line, panels)
        is_inside = any(position < len(panels) for position in parts)
        is_level = any(panel.box[1] <= line.deskewed_center_y <= panel.box[3] for panel in panels)
        if (is_inside or is_level) and not (len(parts) > 1 and _is_undivided(line, list(parts.values()))):
            for position, part in parts.items():
                part_in_panel = None if position == len(panels) else shift_line(part, panels[position].shift)
                pending[position].append(PlacedLine(part, part_in_panel))
            continue
        placed_lines += (pending_line for panel_lines in pending for pending_line in panel_lines)
        pending = [[] for _ in pending]
        first_part = next((line.clip_to_box(panel.box) for panel in panels if line.clip_to_box(panel.box)), None)
        placed_lines.append(PlacedLine(line, first_part))
    return [*placed_lines, *(pending_line for panel_lines in pending for pending_line in panel_lines)]


def shift_line(line: TextLine, shift: float) -> TextLine:
    """Move a line left by a share of the page's width.

    Its boxes on the page stay.
    """
    return replace(line, words=tuple(shift_word(word, shift) for word in line.words)) if shift else line


def shift_word(word: PageWord, shift: float) -> PageWord:
    """Move a word left by a share of the page's width; its box on the page stays."""
    x0, y0, x1, y1 = word.box
    return replace(word, box=(x0 - shift, y0, x1 - shift, y1), page_box=word.page_box or word.box)


def _divide_line(line: TextLine, panels: Sequence[Region]) -> dict[int, TextLine]:
    """Divide a line by panel, from the left.

    The last position is for words outside all panels.
    """
    words_by_position = group_by(
        line.words,
        lambda word: next(
            (
                number
                for number, (x0, y0, x1, y1) in enumerate(panel.box for panel in panels)
                if x0 <= word.center_x <= x1 and y0 <= (word.box[1] + word.box[3]) / 2 <= y1
            ),
            len(panels),
        ),
    )
    if len(words_by_position) == 1:
        return dict.fromkeys(words_by_position, line)
    return {position: replace(line, words=tuple(words)) for position, words in words_by_position.items()}


def _is_undivided(line: TextLine, parts: Sequence[TextLine]) -> bool:
    """Return True if a cell is in two parts, or a label apart from its amount."""
    part_by_word_id = {id(word): part for part in parts for word in part.words}
    if any(len({id(part_by_word_id[id(word)]) for word in cell.words}) > 1 for cell in line.cells):
        return True
    *left_parts, last_part = sorted(parts, key=lambda part: part.box[0])
    return bool(_AMOUNTS_ONLY.fullmatch(last_part.text)) and not any(
        re.search(r"\d[.,]\d\d\b", part.text) for part in left_parts
    )
