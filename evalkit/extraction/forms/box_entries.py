"""Reader of the entry that belongs to a label of a form.

A box extends from its label to the next label on the right and the next label below. The printed borders are not used,
so scans, which lose borders, are read like digital files. Within the box, the entry is the text in the field's format
that is nearest to the label.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rapidfuzz import fuzz

from evalkit.core.document_cache import cache_document_text
from evalkit.core.grouping import split_into_runs
from evalkit.extraction.field_template import TemplateField
from evalkit.extraction.formats import correct_misread_digits, normalise_currency, normalise_value
from evalkit.extraction.forms.form_labels import FormLabel
from evalkit.extraction.forms.form_sheet import FormSheet, FormWord, group_into_rows, make_match_key
from evalkit.extraction.patterns import get_pattern

#: Farthest distance of an entry below its label, in heights of the label's line.
_MAX_ENTRY_DEPTH = 12.0
#: Farthest distance of a block of several lines, such as an address, below its label, in heights of the label's line.
_MAX_BLOCK_DEPTH = 18.0
#: Labels of the next column count up to this distance above or below a label, in heights of the label's line.
_MAX_COLUMN_DISTANCE = 10.0
#: A value below its label, as in a box, is this near, in heights of the label's line; a value on the label's line, as in
#: a list, may be farther away.
_MAX_BOX_GAP = 2.5
#: A pair of values on a label's line ends within this many page widths after the label's start: forms with such pairs
#: are half a page wide.
_VALUE_PAIR_WIDTH = 0.45
#: Widest gap within an entry, in heights of its words.
_MAX_WORD_GAP = 2.2
#: Widest space between words of a sentence, in heights of a word.
_MAX_SPACE = 0.6
#: Widest gap between a code and its amount, two columns of one box, in heights of a word.
_MAX_CODE_GAP = 7.0
#: An entry is doubtful if OCR read a word with less confidence, or an amount of more digits without separators.
_DOUBTFUL_CONFIDENCE, _MAX_DIGITS_WITHOUT_POINT = 0.3, 5
#: An amount of one or two digits below this OCR confidence may be a speck of dirt.
_SPECK_CONFIDENCE = 0.5
#: A row is the rest of a label if a larger share of its letters is in words printed on the form.
_LABEL_REMNANT_SHARE = 0.55
#: Lines of an address are this near, in heights of a word; a name with address has at most so many.
_MAX_LINE_STEP, _MAX_ADDRESS_LINES = 1.9, 5
#: Printed words with at least this many letters are a passage that ends an entry.
_MIN_PASSAGE_LETTERS = 20
_MAX_RUN_WORDS = 6
#: Values of ``TemplateField.value_position`` for one of several values on the label's line.
_VALUE_NUMBERS = ("first", "second")
#: Farthest distance of a tick from its label, in heights of the label's line.
_MAX_TICK_DISTANCE = 5.0
#: A dollar sign, and what OCR reads in its place.
_DOLLAR_SIGNS = ("$", "S", "§", "8")


@dataclass(frozen=True)
class FormEntry:
    """The entry of one field in a box."""

    rows: tuple[tuple[FormWord, ...], ...]
    """The entry's words, one tuple for each of its lines."""
    value: str
    """The entry as read; its lines are joined by commas."""
    is_valid: bool
    """True if the value is in the field's format."""
    is_ocr_corrected: bool = False
    """True if letters were replaced by the digits that OCR misread."""
    is_ambiguous: bool = False
    """True if another value could be the entry, or the OCR reading is doubtful."""

    @property
    def words(self) -> tuple[FormWord, ...]:
        """All words of the entry."""
        return tuple(word for row in self.rows for word in row)


@dataclass(frozen=True)
class EntryArea:
    """The rectangle in which a label's entry is searched, in page widths."""

    label: FormLabel
    x0: float
    y0: float
    x1: float
    y1: float
    is_right_bounded: bool = True
    """True if a label on the right or a ruled cell limits the area."""
    ruled_cell: int = 0
    """Number of the ruled table cell that contains the label; 0: none."""
    is_cell_shared: bool = False
    """True if the label's ruled cell also contains another label."""
    foreign_cells: frozenset[int] = frozenset()
    """Numbers of ruled cells that contain other labels."""
    printed_words: frozenset[str] = frozenset()
    """Match keys of the words and box numbers printed on the form, which are no entries."""
    line_x1: float = 1.0
    """Start of the next label on the label's line, or the sheet's edge."""

    def list_label_line_words(self, sheet: FormSheet, taken_word_indices: set[int]) -> list[FormWord]:
        """List the words after the label on its line, from left to right."""
        height = self.label.line_height
        words = sheet.get_words_within(
            self.label.x1 - 0.2 * height, self.label.y0 - 0.1 * height, self.line_x1, self.label.y1 + 0.1 * height
        )
        return sorted((word for word in words if word.index not in taken_word_indices), key=lambda word: word.x0)

    def iter_candidate_rows(self, sheet: FormSheet, taken_word_indices: set[int]) -> Iterator[list[list[FormWord]]]:
        """Yield rows of words that may be the entry: first in the ruled cell, then near.

        ``taken_word_indices``: words that are labels or belong to other entries.
        """
        words = [
            word
            for word in sheet.get_words_within(self.x0, self.y0, self.x1, self.y1)
            if word.index not in taken_word_indices
        ]
        if self.ruled_cell:
            limit_y = self.label.y0 - 0.4 * self.label.line_height
            yield group_into_rows(
                word
                for word in sheet.words
                if word.ruled_cell_number == self.ruled_cell
                and word.index not in taken_word_indices
                and word.center_y >= limit_y
                and (not self.is_cell_shared or (word.center_y <= self.y1 and self.x0 < word.center_x < self.x1))
            )
        limit_y = self.label.y1 + 1.6 * _MAX_ENTRY_DEPTH * self.label.line_height
        yield group_into_rows(
            word
            for word in words
            if (not word.ruled_cell_number or word.ruled_cell_number not in self.foreign_cells)
            and (not self.ruled_cell or word.center_y < limit_y)
        )


def locate_entry_area(
    label: FormLabel,
    all_labels: Sequence[FormLabel],
    sheet: FormSheet,
    *,
    is_multi_line: bool,
    entry_height_factor: float = 1.0,
    printed_words: frozenset[str] = frozenset(),
) -> EntryArea:
    """Return the area to search for a label's entry.

    ``is_multi_line``: the entry may have several lines. ``entry_height_factor``: above 1, the area extends farther.
    """
    label_height = label.line_height
    sheet_edge = max((word.x1 for word in sheet.words), default=1.0) + label_height
    depth = (
        (_MAX_BLOCK_DEPTH if is_multi_line else _MAX_ENTRY_DEPTH)
        * entry_height_factor
        * max(label_height, 0.8 * sheet.line_height)
    )
    others = [other for other in all_labels if other is not label]
    bounding_labels = [
        other for other in others if other.form_box is not None or other.letter_count >= _MIN_PASSAGE_LETTERS
    ]
    left_edge = label.x0 - (0.5 if label.has_box_number else 1.0) * label_height
    column_end = _find_next_column_start(label, bounding_labels, sheet_edge)
    lower_edges = [
        other.y0
        for other in others
        if other.y0 > label.y1 - 0.3 * label_height
        and other.x0 < min(column_end - label_height, max(label.x1, label.x0 + 6 * label_height))
        and other.x1 > left_edge
        and (other.form_box is not None or abs(other.x0 - label.x0) < 4 * label_height)
    ]
    ruled_cell = label.words[-1].ruled_cell_number
    # With a label below to limit the area, the entry may be lower.
    bottom_edge = min([*lower_edges, label.y1 + depth * (1.6 if lower_edges or is_multi_line else 1.0)])
    right_edge = min(
        (
            other.x0
            for other in bounding_labels
            if other.x0 > label.x0 + label_height and label.y0 < (other.y0 + other.y1) / 2 < bottom_edge
        ),
        default=sheet_edge,
    )
    label_cells = {word.ruled_cell_number for other in others if other.form_box for word in other.words}
    return EntryArea(
        label,
        x0=left_edge,
        y0=label.y0 - 0.4 * label_height,
        x1=min(right_edge, column_end) - 0.2 * label_height,
        y1=bottom_edge + 0.2 * label_height,
        is_right_bounded=ruled_cell > 0
        or any(
            other.x0 > label.x1 and other.y0 < label.y1 + 1.5 * label_height and other.y1 > label.y0
            for other in bounding_labels
        ),
        ruled_cell=ruled_cell,
        is_cell_shared=ruled_cell > 0 and ruled_cell in label_cells,
        foreign_cells=frozenset(label_cells - {ruled_cell}),
        printed_words=printed_words,
        line_x1=min(
            (other.x0 for other in others if other.x0 >= label.x1 and other.y0 < label.y1 and other.y1 > label.y0),
            default=sheet_edge,
        ),
    )


def _find_next_column_start(label: FormLabel, bounding_labels: Sequence[FormLabel], sheet_edge: float) -> float:
    """Return the x of the next column to the right, by the nearest row of labels.

    ``sheet_edge``: the result if there is no label on the right.
    """
    max_distance = _MAX_COLUMN_DISTANCE * label.line_height
    right_starts = [
        (distance, other.x0)
        for other in bounding_labels
        if other.form_box
        and other.form_box.fields[0].format != "checkbox"
        and other.x0 > label.x1
        and (distance := abs(other.y0 - label.y0)) < max_distance
    ]
    if not right_starts:
        return sheet_edge
    smallest_distance = min(right_starts)[0]
    return min(x0 for distance, x0 in right_starts if distance < smallest_distance + label.line_height)


def read_entry(
    field: TemplateField, area: EntryArea, sheet: FormSheet, taken_word_indices: set[int]
) -> FormEntry | None:
    """Read the field's entry in the area; None if there is none.

    On an OCR page, letters in amounts and numbers are replaced by the digits that they resemble.
    """
    if field.value_position in _VALUE_NUMBERS:
        return _read_entry_on_label_line(field, area, sheet, taken_word_indices)
    best: FormEntry | None = None
    for rows in area.iter_candidate_rows(sheet, taken_word_indices):
        form_entry = (
            _read_text_entry(
                field, area, [row for row in rows if not _is_cut_from_sentence(row, sheet, taken_word_indices)]
            )
            if field.format == "text"
            else _read_formatted_entry(field, area, rows, sheet, taken_word_indices)
        )
        if form_entry and form_entry.is_valid:
            return form_entry
        best = best or form_entry
    return best


def _read_entry_on_label_line(
    field: TemplateField, area: EntryArea, sheet: FormSheet, taken_word_indices: set[int]
) -> FormEntry | None:
    """Read the first or second value after the label."""
    label = area.label
    words_after = sheet.get_words_within(
        label.x1, label.y0 - 0.3 * label.line_height, label.x0 + _VALUE_PAIR_WIDTH, label.y1 + 0.3 * label.line_height
    )
    row = sorted((word for word in words_after if word.index not in taken_word_indices), key=lambda word: word.x0)
    runs = list(_iter_value_runs(field, row, is_ocr_corrected=False))
    run_index = _VALUE_NUMBERS.index(field.value_position)
    if len(runs) <= run_index:
        return None
    return FormEntry((runs[run_index][0],), runs[run_index][1], is_valid=True, is_ambiguous=len(runs) != 2)


def find_ticks(
    labels: Sequence[FormLabel], sheet: FormSheet, taken_word_indices: set[int]
) -> Iterator[tuple[TemplateField, FormEntry, FormLabel]]:
    """Yield the ticked fields: each tick belongs to the nearest label."""
    checkboxes = [
        (label, field)
        for label in labels
        for field in (label.form_box.fields if label.form_box else ())
        if field.format == "checkbox"
    ]
    for mark in sheet.words:
        text = mark.text.strip("[]()")
        if (
            mark.index in taken_word_indices
            or len(text) != 1
            or text.isdigit()
            or normalise_value(text, "checkbox") is None
        ):
            continue
        nearest = min(checkboxes, key=lambda checkbox: _measure_tick_distance(mark, *checkbox), default=None)
        if nearest and _measure_tick_distance(mark, *nearest) < _MAX_TICK_DISTANCE * nearest[0].line_height:
            yield nearest[1], FormEntry(((mark,),), text, is_valid=True), nearest[0]


def _measure_tick_distance(mark: FormWord, label: FormLabel, field: TemplateField) -> float:
    """Return the distance between a tick and a label in page widths.

    Infinite if the tick must stand before the label and does not.
    """
    if field.value_position == "before" and (
        mark.x1 > label.x0 + label.line_height or mark.y1 < label.y0 or mark.y0 > label.y1
    ):
        return float("inf")
    return max(label.x0 - mark.x1, mark.x0 - label.x1, 0.0) + max(label.y0 - mark.y1, mark.y0 - label.y1, 0.0)


# Entries in a format


def _read_formatted_entry(
    field: TemplateField,
    area: EntryArea,
    rows: Sequence[Sequence[FormWord]],
    sheet: FormSheet,
    taken_word_indices: set[int],
) -> FormEntry | None:
    label = area.label
    # The rest of the label's line is read last: an entry is seldom there, often the rest of a label.
    rows_below = [row for row in rows if _compute_center_y(row) > label.y1 - 0.2 * label.line_height]
    label_line_rows = [row for row in rows if _compute_center_y(row) <= label.y1 - 0.2 * label.line_height]
    for is_ocr_corrected in (False, True) if sheet.is_ocr_text else (False,):
        line_candidate = _find_value_after_label(field, area, sheet, taken_word_indices, is_ocr_corrected)
        for row in (*rows_below, *label_line_rows):
            plain_words = [word for word in row if len(word.match_key) > 2 and word.match_key.isalpha()]
            candidates = [
                candidate
                for candidate in _iter_value_runs(field, row, is_ocr_corrected=is_ocr_corrected)
                if not _is_within_sentence(candidate[0], sheet, taken_word_indices)
                # The printed number of a box whose label was not found is no entry.
                and not (
                    field.format in ("currency", "pattern")
                    and len(candidate[0]) == 1
                    and candidate[0][0].text in area.printed_words
                )
                and (field.format != "currency" or sum(word.x1 <= candidate[0][0].x0 for word in plain_words) < 2)
            ]
            if line_candidate and (
                not candidates or _compute_center_y(row) - label.y1 > _MAX_BOX_GAP * label.line_height
            ):
                break
            if candidates:
                best = min(
                    candidates,
                    key=lambda candidate: max(label.x0 - candidate[0][-1].x1, candidate[0][0].x0 - label.x1, 0),
                )
                has_rival = any(not {w.index for w in run} & {w.index for w in best[0]} for run, _ in candidates)
                return _build_formatted_entry(field, best, is_ocr_corrected, has_rival)
            if field.format == "currency" and row in rows_below and len(plain_words) >= 2:
                return None  # words between label and amount: the amount may belong to another field
        if line_candidate:
            return _build_formatted_entry(field, line_candidate, is_ocr_corrected, has_rival=False)
    return _read_misformatted_entry(field, rows_below)


def _build_formatted_entry(
    field: TemplateField, candidate: tuple[tuple[FormWord, ...], str], is_ocr_corrected: bool, has_rival: bool
) -> FormEntry:
    run, value = candidate
    entry_words = tuple(word for word in run if word.text != "$")  # the box has a printed $
    is_doubtful = has_rival or _is_doubtful_reading(field, run, value)
    return FormEntry((entry_words,), value, is_valid=True, is_ocr_corrected=is_ocr_corrected, is_ambiguous=is_doubtful)


def _find_value_after_label(
    field: TemplateField, area: EntryArea, sheet: FormSheet, taken_word_indices: set[int], is_ocr_corrected: bool
) -> tuple[tuple[FormWord, ...], str] | None:
    """Return the value that follows the label on its line, as in a list, or None.

    Between label and value there may be dots, but no words. A currency value needs its cents or a dollar sign.
    """
    words = area.list_label_line_words(sheet, taken_word_indices)
    first = next((index for index, word in enumerate(words) if word.match_key), len(words))
    run, value = next(_iter_value_runs(field, words[first:], is_ocr_corrected=is_ocr_corrected), ((), ""))
    text = "".join(word.text for word in words[max(first - 1, 0) : first + len(run)])
    is_sure = bool(run) and run[0] is words[first] and (field.format != "currency" or bool(set(text) & set(".,$")))
    return (run, value) if is_sure and not _is_within_sentence(run, sheet, taken_word_indices) else None


def _iter_value_runs(
    field: TemplateField, row: Sequence[FormWord], *, is_ocr_corrected: bool
) -> Iterator[tuple[tuple[FormWord, ...], str]]:
    """Yield the row's runs of words that form a value, with the value as text.

    Runs do not overlap, and each is as long as possible.
    """
    if field.format == "pattern":
        row = [word for word in row if word.match_key]  # without lines between code and amount
    start = 0
    while start < len(row):
        for size in range(min(_MAX_RUN_WORDS, len(row) - start), 0, -1):
            run = tuple(row[start : start + size])
            max_gap = _MAX_WORD_GAP if field.format != "pattern" else _MAX_CODE_GAP
            if any(after.x0 - before.x1 > max_gap * before.height for before, after in pairwise(run)):
                continue
            if value := _parse_run(field, run, is_ocr_corrected=is_ocr_corrected):
                yield run, value
                start += size
                break
        else:
            start += 1


def _parse_run(field: TemplateField, run: Sequence[FormWord], *, is_ocr_corrected: bool) -> str | None:
    """Return the run's text if it is in the field's format; None otherwise."""
    text = " ".join(word.text for word in run if word.text not in _DOLLAR_SIGNS or len(run) == 1).strip(" .,;:'")
    if field.format == "currency" and not _is_single_amount(run):
        return None
    if is_ocr_corrected:
        text = correct_misread_digits(text, field.format)
    elif field.format in ("ssn", "ein", "tin"):
        text = re.sub(r"\s*-\s*", "-", text)
        text = text if "-" in text else text.replace(" ", "")
    elif field.format == "currency":
        text = re.sub(r"(?<=[.,])\s+|\s+(?=[.,])", "", text)
    return text if field.normalise(text) and (field.format != "currency" or re.search(r"\d", text)) else None


def _is_single_amount(run: Sequence[FormWord]) -> bool:
    """Return True if the words are one amount that OCR may have split.

    OCR splits an amount only next to a comma, a point, a bracket or the dollar sign.
    """
    if len(run) > 1 and run[-1].text in ("$", "§"):
        return False
    return all(before.text[-1:] in ",.$(-§S" or after.text[:1] in ",.)" for before, after in pairwise(run))


def _is_within_sentence(run: Sequence[FormWord], sheet: FormSheet, taken_word_indices: set[int]) -> bool:
    """Return True if words are close on both sides of the run, as in running text.

    For plain digits, a word on one side is enough.
    """
    before, after = sheet.get_word_left_of(run[0]), sheet.get_next_two_words(run[-1])[:1]
    neighbour_flags = [
        before is not None
        and before.index not in taken_word_indices
        and _is_prose_word(before)
        and run[0].x0 - before.x1 < 1.5 * before.height,
        bool(after)
        and after[0].index not in taken_word_indices
        and _is_prose_word(after[0])
        and after[0].x0 - run[-1].x1 < 1.5 * after[0].height,
    ]
    # "7075 2nd Street": plain digits next to a word are not an amount.
    return any(neighbour_flags) if all(word.text.isdigit() for word in run) else all(neighbour_flags)


def _is_cut_from_sentence(row: Sequence[FormWord], sheet: FormSheet, taken_word_indices: set[int]) -> bool:
    """Return True if words adjoin a row: it is a piece of a longer line."""
    before, after = sheet.get_word_left_of(row[0]), sheet.get_next_two_words(row[-1])[:1]
    gaps = [(before, row[0].x0 - before.x1)] if before else []
    gaps += [(word, word.x0 - row[-1].x1) for word in after]
    return any(
        _is_prose_word(word) and word.index not in taken_word_indices and gap < _MAX_SPACE * word.height
        for word, gap in gaps
    )


def _is_prose_word(word: FormWord) -> bool:
    return len(word.match_key) > 1 and not word.match_key.isdigit()


def _is_doubtful_reading(field: TemplateField, run: Sequence[FormWord], value: str) -> bool:
    """Return True for low OCR confidence, or an amount that may lack its point."""
    if all(word.confidence == 1 for word in run):
        return False
    digit_count, confidence = sum(map(str.isdigit, value)), min(word.confidence for word in run)
    is_amount = field.format == "currency"
    is_point_missing = is_amount and digit_count > _MAX_DIGITS_WITHOUT_POINT and not set(value) & set(".,")
    return (
        confidence < _DOUBTFUL_CONFIDENCE
        or is_point_missing
        or (is_amount and digit_count <= 2 and confidence < _SPECK_CONFIDENCE)
    )


def _compute_center_y(row: Sequence[FormWord]) -> float:
    return sum(word.center_y for word in row) / len(row)


def _read_misformatted_entry(field: TemplateField, rows: Sequence[Sequence[FormWord]]) -> FormEntry | None:
    """Read an entry that is not in the field's format, such as "$ -" for an amount."""
    for row in rows:
        for run in split_into_runs(row, lambda piece, word: word.x0 - piece[-1].x1 < _MAX_WORD_GAP * word.height):
            text = " ".join(word.text for word in run)
            digit_count = sum(map(str.isdigit, text))
            if any(map(str.isalpha, text)):
                continue
            if field.format == "currency" and "$" in text and (digit_count or re.search(r"\$\s*[-–—]", text)):
                return FormEntry((tuple(run),), text, is_valid=False)
            if field.format in ("ssn", "ein", "tin") and digit_count >= 4:
                return FormEntry((tuple(run),), text, is_valid=False)
    return None


# Entries of text


def _read_text_entry(field: TemplateField, area: EntryArea, rows: Sequence[Sequence[FormWord]]) -> FormEntry | None:
    label = area.label
    label_line_rows: list[tuple[FormWord, ...]] = []
    rows_below: list[tuple[FormWord, ...]] = []
    for row in rows:
        is_on_label_line = _compute_center_y(row) <= label.y1 - 0.2 * label.line_height
        min_x = label.x1 - 0.5 * label.line_height if is_on_label_line else float("-inf")
        words_after = [word for word in row if word.x0 > min_x]
        words = tuple(
            word
            for word in _select_words_below_label(words_after, area)
            if word.match_key and (len(word.match_key) > 2 or word.confidence >= 0.5)
        )
        if field.part and (
            len("".join(word.match_key for word in words)) == 1 or normalise_currency(_join_texts(words)) is not None
        ):
            continue  # a speck of dirt, or an amount from a box whose label was not found
        # Rows before the entry may be the rest of a misread label; after the entry, printed words end it.
        if words and rows_below and len(_join_texts(words)) >= _MIN_PASSAGE_LETTERS and _is_label_remnant(words, area):
            break
        if words and not (not rows_below and _is_label_remnant(words, area)):
            (label_line_rows if is_on_label_line else rows_below).append(words)
    rows_under_label = [row for row in rows_below or label_line_rows if row[0].x0 < label.x1]
    candidate_rows = rows_under_label or (rows_below if area.is_right_bounded else [])
    if label_line_rows and not rows_under_label:
        # As in a list: the entry begins on the label's line, and its further lines begin below its first word.
        entry_x0 = label_line_rows[0][0].x0
        aligned_rows = [row for row in rows_below if abs(row[0].x0 - entry_x0) < label.line_height]
        candidate_rows = [*label_line_rows, *aligned_rows]
    entry_rows = _select_connected_rows(candidate_rows, area)
    # No rows, or only specks of dirt.
    if all(len(word.match_key) < 3 and word.confidence < 0.8 for row in entry_rows for word in row):
        return None
    if label.form_box and any(other.row > 1 for other in label.form_box.fields):
        entry_rows = entry_rows[field.row - 1 : field.row]
    lines = [" ".join(word.text for word in row) for row in entry_rows]
    if field.part in ("name", "address"):
        address_start = _find_address_line_index(lines)
        line_numbers = slice(address_start) if field.part == "name" else slice(address_start, None)
        entry_rows, lines = entry_rows[line_numbers], lines[line_numbers]
    if not entry_rows or (
        field.part == "name" and not any(len(word.match_key) > 1 for row in entry_rows for word in row)
    ):
        return None
    is_doubtful = min(word.confidence for row in entry_rows for word in row) < _DOUBTFUL_CONFIDENCE
    return FormEntry(
        tuple(entry_rows), ", ".join(line.strip(" ,;") for line in lines), is_valid=True, is_ambiguous=is_doubtful
    )


def _join_texts(words: Sequence[FormWord]) -> str:
    return "".join(word.text for word in words)


def _is_label_remnant(words: Sequence[FormWord], area: EntryArea) -> bool:
    """Return True if a row is the end of the label, or mostly printed words."""
    if any(map(str.isdigit, _join_texts(words))):
        return False
    match_key = "".join(word.match_key for word in words)
    if area.label.form_box and any(
        make_match_key(text).endswith(match_key) for text in area.label.form_box.label_texts
    ):
        return True
    letter_count = sum(len(word.match_key) for word in words)
    printed_letter_count = sum(
        len(word.match_key) for word in words if _is_printed_word(word.match_key, area.printed_words)
    )
    return printed_letter_count > _LABEL_REMNANT_SHARE * letter_count


@cache_document_text(16384)
def _is_printed_word(match_key: str, printed_words: frozenset[str]) -> bool:
    return match_key in printed_words or (
        len(match_key) > 4 and any(fuzz.ratio(match_key, printed_word) > 80 for printed_word in printed_words)
    )


def _select_words_below_label(row: Sequence[FormWord], area: EntryArea) -> Sequence[FormWord]:
    """Select the words up to the first wide gap.

    If the area is limited on the right, a gap before letters does not count: first and last name may be in two columns,
    but an amount after a gap belongs to another box.
    """
    runs = split_into_runs(
        row,
        lambda run, word: (
            word.x0 - run[-1].x1 <= 3 * run[-1].height or (area.is_right_bounded and word.match_key.isalpha())
        ),
    )
    return runs[0] if runs else ()


def _select_connected_rows(rows: Sequence[tuple[FormWord, ...]], area: EntryArea) -> list[tuple[FormWord, ...]]:
    """Select the first rows without a wide gap between them, if near the label.

    There may be space below a name, but none between the lines of an address.
    """
    blocks = split_into_runs(
        rows,
        lambda block, row: (
            _compute_center_y(row) - _compute_center_y(block[-1])
            <= (7.5 if len(block) == 1 else 4.0) * max(word.height for word in block[-1])
        ),
    )
    is_near_label = blocks and (
        area.ruled_cell or _compute_center_y(rows[0]) - area.label.y1 < _MAX_BLOCK_DEPTH * area.label.line_height
    )
    return blocks[0] if is_near_label else []


def find_address_blocks(sheet: FormSheet, taken_word_indices: set[int]) -> Iterator[list[list[FormWord]]]:
    """Yield the lines of names with addresses that have no label, from the top.

    A block ends with a line of city, state and ZIP code, or with a telephone number below it.
    """
    free_words = [word for word in sheet.words if word.index not in taken_word_indices]
    lines = [
        piece
        for row in group_into_rows(free_words)
        for piece in split_into_runs(row, lambda run, word: word.x0 - run[-1].x1 < _MAX_WORD_GAP * word.height)
    ]
    for number, last_line in enumerate(lines):
        block = [last_line] if get_pattern("city_line").search(" ".join(word.text for word in last_line)) else []
        for line in reversed(lines[:number]) if block else ():
            top, height = block[0][0], block[0][0].height
            if abs(line[0].x0 - top.x0) < height and 0 < top.center_y - line[0].center_y < _MAX_LINE_STEP * height:
                block.insert(0, line)
        if 1 < len(block) <= _MAX_ADDRESS_LINES:
            yield block


def split_address(rows: Sequence[Sequence[FormWord]]) -> tuple[Sequence[Sequence[FormWord]], ...]:
    """Split the lines of a name with address into name, street and city lines."""
    start = _find_address_line_index([" ".join(word.text for word in row) for row in rows])
    end = next(
        (
            number
            for number, row in enumerate(rows)
            if get_pattern("city_line").search(" ".join(word.text for word in row))
        ),
        len(rows),
    )
    return rows[:start], rows[start:end], rows[end : end + 1]


def _find_address_line_index(lines: Sequence[str]) -> int:
    """Return the index of the address's first line; the name has at least one line."""
    further_lines = enumerate(lines[1:], 1)
    return next(
        (
            number
            for number, line in further_lines
            if get_pattern("street_line").match(line) or get_pattern("city_line").search(line)
        ),
        min(len(lines), 1),
    )
