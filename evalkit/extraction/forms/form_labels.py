"""Search for a form's labels: the printed words next to its entries.

A label is matched word by word, to the right and on the line below, comparing only letters and digits. So labels are
found even if OCR split or joined words or lost a letter, or if a narrow box breaks the label into lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise

from rapidfuzz.distance import Levenshtein

from evalkit.core.document_cache import cache_document_text
from evalkit.core.grouping import group_by
from evalkit.extraction.field_template import FieldTemplate, TemplateField
from evalkit.extraction.forms.form_sheet import FormSheet, FormWord, make_match_key, select_disjoint

#: Letters that OCR reads in place of digits in a box number.
_CONFUSED_CHARACTERS = str.maketrans("ilo|", "1100")
_BOX_NUMBER = re.compile(r"\d{1,2}[a-f]?|[a-f]")
#: Widest gap between a label's words, in heights of a word.
_MAX_WORD_GAP = 3.0
#: Widest gap between a box's number and its label, in heights of a word: a list may have a column of numbers.
_MAX_NUMBER_GAP = 6.0
#: Largest distance between a label's lines, in heights of a word.
_MAX_LINE_DISTANCE = 1.9
#: Words this many times higher than the median are a title, not a label.
_TITLE_HEIGHT_FACTOR = 1.5
#: A label with at least this many letters still matches if OCR misread a short word in it.
_LONG_LABEL_LETTERS = 20
#: Limit of steps when a label is matched from one word.
_MAX_BRANCHES = 400


@dataclass(frozen=True)
class TemplateBox:
    """A box of a form: the template's fields with the same box number and labels."""

    fields: tuple[TemplateField, ...]
    number: str
    """The number printed in the box: ``12a``; empty if the box has none."""
    label_texts: tuple[str, ...]


@dataclass(frozen=True)
class FormLabel:
    """A label found on a page of a form."""

    form_box: TemplateBox | None
    """The box that the label belongs to; None: printed words outside all boxes."""
    words: tuple[FormWord, ...]
    match_score: float
    """Share of the label's letters that were found, 0..1, minus small penalties."""
    letter_count: int
    has_box_number: bool
    """True if the box's number is before the label."""
    text: str = ""
    """The label's wording in the template."""
    x0: float = field(init=False)
    y0: float = field(init=False)
    x1: float = field(init=False)
    y1: float = field(init=False)

    def __post_init__(self) -> None:
        for name, pick in (("x0", min), ("y0", min), ("x1", max), ("y1", max)):
            object.__setattr__(self, name, pick(getattr(word, name) for word in self.words))

    @property
    def line_height(self) -> float:
        """Median height of the label's words, in page widths."""
        return sorted(word.height for word in self.words)[len(self.words) // 2]


@cache
def group_fields_by_box(template: FieldTemplate) -> tuple[TemplateBox, ...]:
    """Group the fields by box; fields with neither label nor number are left out."""
    fields_by_box = group_by(
        (template_field for template_field in template.fields if template_field.labels or template_field.box),
        lambda template_field: (template_field.box, template_field.labels),
    )
    return tuple(TemplateBox(tuple(fields), box, labels) for (box, labels), fields in fields_by_box.items())


def find_labels(sheet: FormSheet, template: FieldTemplate, *, allow_misspellings: bool) -> tuple[FormLabel, ...]:
    """Find the template's labels on a page; no word belongs to two labels.

    ``allow_misspellings``: also accept worse spellings, lost words, and labels of which only the beginning was found.
    """
    # Cached: detecting the form, splitting the page and every attempt need the labels.
    cache_key = (template.name, allow_misspellings)
    labels: tuple[FormLabel, ...] | None = sheet.label_cache.get(cache_key)
    if labels is None:
        labels = sheet.label_cache[cache_key] = _match_labels(sheet, template, allow_misspellings=allow_misspellings)
    return labels


def _match_labels(sheet: FormSheet, template: FieldTemplate, *, allow_misspellings: bool) -> tuple[FormLabel, ...]:
    min_score = 0.72 if allow_misspellings else 0.84
    labels: list[FormLabel] = []
    for form_box in group_fields_by_box(template):
        for rank, text in enumerate(form_box.label_texts):
            matches = _find_text_matches(sheet, text, form_box, allow_misspellings=allow_misspellings)
            # If two wordings match equally well, prefer the first in the template.
            labels += [
                replace(label, match_score=label.match_score - 0.001 * rank)
                for label in matches
                if label.match_score >= min_score
            ]
        if form_box.number and (not form_box.label_texts or "" in form_box.label_texts):
            labels += _match_bare_numbers(sheet, form_box)
    labels += [
        label
        for text in (*template.signs[:1], *template.printed)
        for label in _find_text_matches(sheet, text, None, allow_misspellings=allow_misspellings)
        if label.match_score >= max(min_score, 0.8)
    ]
    # Best and longest first, numbered preferred.
    labels.sort(
        key=lambda label: (
            label.match_score * label.letter_count + (6 if label.has_box_number else 0),
            label.match_score,
        ),
        reverse=True,
    )
    disjoint_labels = select_disjoint(labels, lambda label: label.words)
    return (*disjoint_labels, *_match_boxes_by_number(sheet, template, disjoint_labels))


def _match_boxes_by_number(
    sheet: FormSheet, template: FieldTemplate, labels: Sequence[FormLabel]
) -> Iterator[FormLabel]:
    """Find boxes by their printed number if their label was not found.

    The number must be aligned at the left with the numbers of two other boxes.
    """
    taken_indices = collect_word_indices(labels)
    matched_boxes = {label.form_box for label in labels}
    number_edges = [label.x0 for label in labels if label.has_box_number]
    top = min((label.y0 for label in labels if label.has_box_number), default=0.0)
    for form_box in group_fields_by_box(template):
        if form_box in matched_boxes or not form_box.number[:1].isdigit():
            continue
        for word in sheet.words:
            if (
                word.index not in taken_indices
                and word.y0 > top - word.height  # above all boxes it is the number of a house
                and word.text.strip(".") == form_box.number
                and sum(abs(word.x0 - edge) < 0.6 * word.height for edge in number_edges) >= 2
            ):
                taken_indices.add(word.index)
                yield FormLabel(form_box, (word,), 0.8, len(form_box.number), has_box_number=True)
                break


def _find_text_matches(
    sheet: FormSheet, text: str, form_box: TemplateBox | None, *, allow_misspellings: bool
) -> Iterator[FormLabel]:
    text_key = make_match_key(text)
    if not text_key:
        return
    box_number = make_match_key(form_box.number) if form_box else ""
    # Only the second reading starts at every word, because that is slow: the first letter may be misread.
    candidates = sheet.words if allow_misspellings else sheet.find_words_starting_with(text_key[0], *box_number[:1])
    for word in candidates:
        for start_letters, has_joined_number in _match_label_start(
            word, text_key, box_number, allow_misspellings=allow_misspellings
        ):
            best = _match_label_from_word(sheet, word, start_letters, text_key, allow_misspellings=allow_misspellings)
            if best is None:
                continue
            matched, words = best
            numbered_match = _attach_box_number(sheet, words, box_number, has_joined_number=has_joined_number)
            # A short and inexact label, or a title: only the box's number shows that it is a label.
            needs_number = word.height > _TITLE_HEIGHT_FACTOR * sheet.line_height or (
                len(text_key) < 8 and word.match_key != text_key and not allow_misspellings
            )
            if numbered_match is None or (box_number and not numbered_match[1] and needs_number):
                continue
            words, has_box_number = numbered_match
            yield FormLabel(
                form_box,
                _add_symbols_between(sheet, words),
                matched / len(text_key),
                len(text_key),
                has_box_number,
                text,
            )


def _attach_box_number(
    sheet: FormSheet, words: tuple[FormWord, ...], box_number: str, *, has_joined_number: bool
) -> tuple[tuple[FormWord, ...], bool] | None:
    """Add the box's number to the label's words; None if the number is another box's.

    The result's second part is True if the number was found.
    """
    first_word = words[0]
    number_word = sheet.get_word_left_of(first_word) if box_number and not has_joined_number else None
    if number_word is None or first_word.x0 - number_word.x1 >= _MAX_NUMBER_GAP * first_word.height:
        return words, has_joined_number
    numbers = {make_match_key(number).translate(_CONFUSED_CHARACTERS) for number in number_word.text.split("/")}
    if box_number.translate(_CONFUSED_CHARACTERS) in numbers:
        word_before = sheet.get_word_left_of(number_word)
        return (*((word_before,) if word_before and word_before.match_key == "box" else ()), number_word, *words), True
    if sheet.is_ocr_text and len(number_word.text) <= 3:
        return (number_word, *words), False  # a misread number, which is no entry
    return None if _BOX_NUMBER.fullmatch(number_word.match_key) and len(number_word.text) <= 3 else (words, False)


def _add_symbols_between(sheet: FormSheet, words: tuple[FormWord, ...]) -> tuple[FormWord, ...]:
    symbols = [
        neighbour
        for word, next_word in pairwise(words)
        for neighbour in sheet.get_next_two_words(word)
        if not neighbour.match_key and neighbour.x0 < next_word.x0
    ]
    return (*words, *symbols)


def _match_label_start(
    word: FormWord, text_key: str, box_number: str, *, allow_misspellings: bool
) -> Iterator[tuple[int, bool]]:
    """Yield how many of the label's first letters the word matches, if any.

    The second part is True if OCR joined the box's number to the word.
    """
    if letter_count := _count_matching_letters(word.match_key, text_key, 0, allow_misspellings=allow_misspellings):
        yield letter_count, False
    elif box_number and word.match_key.startswith(box_number) and len(word.match_key) > len(box_number):
        rest = word.match_key[len(box_number) :]
        if letter_count := _count_matching_letters(rest, text_key, 0, allow_misspellings=allow_misspellings):
            yield letter_count, True


@cache_document_text(65536)
def _count_matching_letters(word_key: str, text_key: str, position: int, *, allow_misspellings: bool) -> int:
    """Return how many letters from ``position`` the word matches; 0: no match."""
    word_length = len(word_key)
    if not word_length:
        return 0
    if text_key.startswith(word_key, position):
        return word_length
    if (
        word_length < (4 if allow_misspellings else 5) or len(text_key) < 8
    ):  # one letter more or less turns a short word into another
        return 0
    max_distance = max(1, word_length // (3 if allow_misspellings else 5))
    best_distance, matched_length = max_distance + 1, 0
    for piece_length in (word_length, word_length - 1, word_length + 1):
        piece = text_key[position : position + piece_length]
        if len(piece) < 3:
            continue
        distance = Levenshtein.distance(word_key, piece, score_cutoff=max_distance)
        if distance < best_distance:
            best_distance, matched_length = distance, len(piece)
    return matched_length


def _match_label_from_word(
    sheet: FormSheet, word: FormWord, start_letters: int, text_key: str, *, allow_misspellings: bool
) -> tuple[float, tuple[FormWord, ...]] | None:
    """Match the label from this word on; return matched letters and words, or None.

    ``start_letters``: letters of the label that this word matches.
    """
    best: tuple[float, tuple[FormWord, ...]] = (0.0, ())
    first_penalty = 0.0 if word.match_key.endswith(text_key[:start_letters]) else 0.1
    stack: list[tuple[int, float, tuple[FormWord, ...]]] = [(start_letters, start_letters - first_penalty, (word,))]
    for _ in range(_MAX_BRANCHES):
        if not stack:
            break
        position, matched, words = stack.pop()
        if matched > best[0]:
            best = matched, words
        if position >= len(text_key):
            break
        for next_word, skipped_words in _iter_next_words(sheet, words):
            if step := _count_matching_letters(
                next_word.match_key, text_key, position, allow_misspellings=allow_misspellings
            ):
                # Prefer the path with the exact spelling.
                penalty = 0.02 * skipped_words + (0.0 if text_key.startswith(next_word.match_key, position) else 0.1)
                stack.append((position + step, matched + step - penalty, (*words, next_word)))
                break
            if sheet.is_ocr_text and (step := _count_letters_of_misread_word(next_word.match_key, text_key, position)):
                stack.append((position + step, matched + step - 1, (*words, next_word)))
                break
            # OCR may have lost one word of the label: go on after it.
            if allow_misspellings and (next_position := _get_position_after_lost_word(next_word, text_key, position)):
                stack.append((next_position, matched + next_position - position - 4, (*words, next_word)))
                break
    min_share = 0.6 if allow_misspellings else 0.75
    return best if best[0] >= min_share * len(text_key) else None


def _count_letters_of_misread_word(word_key: str, text_key: str, position: int) -> int:
    """Return the length of a short word misread in a long label ("of" for "or"), or 0."""
    end = position + len(word_key)
    is_candidate = 2 <= len(word_key) <= 4 and len(text_key) >= _LONG_LABEL_LETTERS and end < len(text_key)
    return len(word_key) if is_candidate and Levenshtein.distance(word_key, text_key[position:end]) == 1 else 0


def _get_position_after_lost_word(word: FormWord, text_key: str, position: int) -> int:
    if len(word.match_key) < 5:
        return 0
    place = text_key.find(word.match_key, position, position + len(word.match_key) + 12)
    return place + len(word.match_key) if place >= 0 else 0


def _iter_next_words(sheet: FormSheet, words: tuple[FormWord, ...]) -> Iterator[tuple[FormWord, int]]:
    """Yield words that may continue a label, with the number of words skipped.

    Words to the right come first, then words on the line below.
    """
    last_word = words[-1]
    for skipped_words, neighbour in enumerate(sheet.get_next_two_words(last_word)):
        if neighbour.x0 - last_word.x1 > _MAX_WORD_GAP * last_word.height:
            break
        yield neighbour, skipped_words
        if neighbour.match_key and len(neighbour.match_key) > 2:
            break
    x0, x1 = min(word.x0 for word in words), max(word.x1 for word in words)
    line_reach = last_word.height * _MAX_LINE_DISTANCE
    words_below = sheet.get_words_within(
        x0 - 2 * last_word.height,
        last_word.center_y + 0.5 * last_word.height,
        x1 + last_word.height,
        last_word.center_y + line_reach,
    )
    next_line_y = words_below[0].center_y + 0.5 * last_word.height if words_below else 0.0
    in_reading_order = sorted(words_below, key=lambda word: (word.center_y > next_line_y, word.x0))
    for number, word in enumerate(in_reading_order[:4]):
        yield word, number
        if len(word.match_key) > 2 and word.x0 > x0 - 0.5 * word.height and not sheet.is_ocr_text:
            break


def _match_bare_numbers(sheet: FormSheet, form_box: TemplateBox) -> Iterator[FormLabel]:
    """Match boxes that have only a number printed in them, no label."""
    for word in sheet.words:
        if word.match_key == form_box.number and len(form_box.number) > 1:
            yield FormLabel(form_box, (word,), 0.9, len(form_box.number), has_box_number=True)


@cache
def collect_printed_words(template: FieldTemplate) -> frozenset[str]:
    """Return the match keys, of 3 or more letters, of all words printed on the form."""
    texts = [*template.printed, *(text for form_box in group_fields_by_box(template) for text in form_box.label_texts)]
    return frozenset(key for text in texts for word in text.split() if len(key := make_match_key(word)) > 2)


def is_only_form_print(text: str, field: TemplateField, template: FieldTemplate) -> bool:
    """Return True if a field's supposed entry is only text printed on the form.

    Printed on the form are the box's number and the words of the labels. Words of one or two letters do not count as
    printed, because a state's abbreviation may be an entry.
    """
    word_keys = [key for key in map(make_match_key, text.split()) if key]
    if field.box and "".join(word_keys) == make_match_key(field.box):
        return field.format not in ("checkbox", "pattern")
    return field.format == "text" and bool(word_keys) and collect_printed_words(template).issuperset(word_keys)


def collect_word_indices(labels: Iterable[FormLabel]) -> set[int]:
    """Return the indices of all words that belong to the labels."""
    return {word.index for label in labels for word in label.words}


def find_best_text_occurrence(sheet: FormSheet, text: str) -> tuple[FormWord, ...]:
    """Return the words that match a printed text best; empty if none match well."""
    best = max(
        _find_text_matches(sheet, text, None, allow_misspellings=False),
        key=lambda label: label.match_score,
        default=None,
    )
    return best.words if best and best.match_score > 0.84 else ()
