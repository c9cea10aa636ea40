"""Detect the forms on a page and read their entries offline.

A form is recognised by its title and its labels together: a letter that only mentions a W-2 has the title but not the
labels. A page may contain several forms; each is read on its own part of the sheet.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from itertools import pairwise

from evalkit.core.grouping import split_into_runs
from evalkit.documents.bundle import Page
from evalkit.extraction.field_template import (
    FieldNeed,
    FieldTemplate,
    TemplateField,
    get_field_template,
    list_field_templates,
)
from evalkit.extraction.formats import FieldFormat, normalise_value
from evalkit.extraction.forms.box_entries import (
    EntryArea,
    FormEntry,
    find_address_blocks,
    find_ticks,
    locate_entry_area,
    read_entry,
    split_address,
)
from evalkit.extraction.forms.form_labels import (
    FormLabel,
    TemplateBox,
    collect_printed_words,
    collect_word_indices,
    find_best_text_occurrence,
    find_labels,
    group_fields_by_box,
)
from evalkit.extraction.forms.form_sheet import FormSheet, FormWord, make_match_key, select_disjoint
from evalkit.extraction.patterns import get_pattern

#: Template and type of documents that fit no other template.
GENERIC_FORM = "OTHER"
#: Fields whose value is printed on the blank form: a form with no other values is blank.
PRINTED_FIELDS = frozenset(("tax_year", "document_title"))

#: A template with less evidence on the sheet (0..1, see ``_measure_evidence``) is not detected.
_MIN_EVIDENCE = 0.3
#: A template with a smaller share of its labels on the sheet is not detected, even if its title is there; so many labels
#: are enough.
_MIN_LABEL_SHARE, _MIN_LABELS = 0.2, 4
#: Share of labels that is enough to detect a form without its title.
_MIN_UNTITLED_LABEL_SHARE = 0.6
#: The tax year of an official form is more than this many times higher than the median word.
_LARGE_PRINT_FACTOR = 1.3
#: Farthest distance of a second line of entries below the first, in heights of a word.
_MAX_ROW_DISTANCE = 2.6
#: Confidence of an amount that was assigned to a box only because no other box has it.
_LEFT_OVER_CONFIDENCE = 0.6
#: Confidence of a name or an address without a label of its own.
_UNLABELLED_CONFIDENCE = 0.92
#: Widest space between words of a sentence, in heights of a word.
_MAX_SPACE = 0.6
#: Evidence from which the confidence in the form's type is 1.
_CERTAIN_EVIDENCE = 0.6


@dataclass(frozen=True)
class DetectedForm:
    """A form found on a page, and the template that fits best."""

    sheet: FormSheet
    template_name: str
    evidence: float
    """Share of the template's title and labels that are on the sheet, 0..1."""
    alternative_templates: tuple[str, ...] = ()
    """Other templates with enough evidence, the most likely first."""

    @property
    def confidence(self) -> float:
        """Confidence in the form's type, 0..1."""
        return min(1.0, self.evidence / _CERTAIN_EVIDENCE)


@dataclass(frozen=True)
class FormFieldReading:
    """The offline reader's entry for one field."""

    entry: FormEntry
    confidence: float


def detect_forms(page: Page) -> list[DetectedForm]:
    """Detect the forms on a page, from the top; copies of a form are left out."""
    sheet = FormSheet.from_page(page)
    likely_templates = _find_likely_templates(sheet)
    if not likely_templates:
        return []
    parts = _split_sheet_by_form(sheet, likely_templates)
    detected_forms = (_detect_form(part, likely_templates) for part in parts)
    return _drop_duplicate_forms([form for form in detected_forms if form is not None])


def is_continuation_page(page: Page, template: FieldTemplate) -> bool:
    """Return True if a page without a form belongs to the form on the page before.

    The page is blank, has an instructions heading, or names the form of ``template``.
    """
    text = page.text[:4000]
    return (
        bool(get_pattern("form_instructions").search(text))
        or not page.text.strip()
        or make_match_key(template.name) in make_match_key(text)
    )


def read_form(
    sheet: FormSheet, template: FieldTemplate, *, allow_misspellings: bool, entry_height_factor: float = 1.0
) -> dict[str, FormFieldReading]:
    """Read the entries of the template's fields; fields without an entry are left out.

    ``allow_misspellings``: accept worse spellings of labels, for a second reading. ``entry_height_factor``: above 1,
    search entries farther below their labels.
    """
    found_labels = find_labels(sheet, template, allow_misspellings=allow_misspellings)
    taken_indices = collect_word_indices(found_labels)
    best_labels = list(_select_best_labels(found_labels))
    second_labels = _find_second_labels(found_labels, best_labels, template)
    labels = [*best_labels, *second_labels.values(), *(label for label in found_labels if label.form_box is None)]
    found_numbers = {label.form_box.number for label in best_labels if label.form_box and label.has_box_number}
    printed_words = collect_printed_words(template) | {
        form_box.number for form_box in group_fields_by_box(template) if form_box.number not in found_numbers
    }
    readings: dict[str, FormFieldReading] = {}
    name_blocks: list[tuple[TemplateField, FormEntry]] = []
    year_reading = (
        _read_tax_year(sheet, template, taken_indices, allow_misspellings=allow_misspellings)
        if template.get_field("tax_year")
        else None
    )
    taken_indices |= {word.index for word in year_reading.entry.words} if year_reading else set()
    for field, tick, label in find_ticks(best_labels, sheet, taken_indices):
        readings.setdefault(field.name, FormFieldReading(tick, _compute_confidence(tick, label)))
    for label in best_labels:
        form_box = label.form_box
        is_block = form_box is not None and (
            any(field.part for field in form_box.fields) or form_box.fields[0].format == "text"
        )
        area_of = partial(
            locate_entry_area,
            all_labels=labels,
            sheet=sheet,
            is_multi_line=is_block,
            entry_height_factor=entry_height_factor,
            printed_words=printed_words,
        )
        name_field = form_box.fields[0] if form_box and form_box.fields[0].part == "name" else None
        block_field = name_field.model_copy(update={"part": "block"}) if name_field else None
        if name_field and block_field and (block := read_entry(block_field, area_of(label), sheet, taken_indices)):
            name_blocks.append((name_field, block))
        for name, form_entry in _iter_box_entries(label, second_labels, area_of, sheet, taken_indices):
            readings[name] = FormFieldReading(form_entry, _compute_confidence(form_entry, label))
    if year_reading:
        readings["tax_year"] = year_reading
    for field, block in name_blocks:
        readings |= _split_address_fields(field, block.rows, template, readings)
    readings |= _read_addresses(sheet, template, readings, taken_indices)
    readings = _give_words_to_surest_field(readings)
    if allow_misspellings or sheet.is_ocr_text:
        readings |= _read_left_over_amount(sheet, template, readings, taken_indices)
    return readings


def _find_second_labels(
    found_labels: Sequence[FormLabel], best_labels: Sequence[FormLabel], template: FieldTemplate
) -> dict[TemplateBox | None, FormLabel]:
    """Return the further labels of boxes that may have two lines, such as two states.

    Empty if the sheet may hold several copies of the form, which repeat all labels.
    """
    first_box = group_fields_by_box(template)[0]
    if sum(label.form_box is first_box for label in found_labels) > 1:
        return {}
    return {
        label.form_box: label
        for label in reversed(found_labels)
        if label.form_box and label.form_box.fields[-1].row > 1 and label not in best_labels
    }


def _iter_box_entries(
    label: FormLabel,
    second_labels: Mapping[TemplateBox | None, FormLabel],
    area_of: Callable[[FormLabel], EntryArea],
    sheet: FormSheet,
    taken_word_indices: set[int],
) -> Iterator[tuple[str, FormEntry]]:
    """Yield the entries in a label's box, each with its field's name."""
    first_row: FormEntry | None = None
    for field in label.form_box.fields if label.form_box else ():
        second_label = second_labels.get(label.form_box)
        if field.format == "checkbox" or (field.row > 1 and not first_row):
            continue
        if field.row > 1 and second_label:
            form_entry = read_entry(
                field.model_copy(update={"row": 1}), area_of(second_label), sheet, taken_word_indices
            )
        elif first_row and field.row > 1 and field.format != "text":
            words = {word.index for word in first_row.words}
            form_entry = read_entry(field, area_of(label), sheet, taken_word_indices | words)
            if form_entry and not _is_second_line(form_entry, first_row, field):
                continue
        else:
            form_entry = read_entry(field, area_of(label), sheet, taken_word_indices)
        first_row = first_row or form_entry
        if form_entry:
            yield field.name, form_entry


def _is_second_line(form_entry: FormEntry, first_row: FormEntry, field: TemplateField) -> bool:
    """Return True if an entry is just below another one.

    If it should be an amount, it must surely be one.
    """
    drop = form_entry.words[0].center_y - first_row.words[0].center_y
    is_sure = field.format != "currency" or bool(set(form_entry.value) & set(".,$"))
    return is_sure and 0.5 < drop / first_row.words[0].height < _MAX_ROW_DISTANCE


def _read_addresses(
    sheet: FormSheet, template: FieldTemplate, readings: Mapping[str, FormFieldReading], taken_word_indices: set[int]
) -> dict[str, FormFieldReading]:
    """Read names that have no label of their own, and addresses below their names.

    In a letter, the sender's address is first. Empty if there are not as many addresses as names are missing.
    """
    name_fields = [field for field in template.fields if field.part and field.name.endswith("_name")]
    added: dict[str, FormFieldReading] = {}
    used_indices = taken_word_indices | {word.index for reading in readings.values() for word in reading.entry.words}
    blocks = list(find_address_blocks(sheet, used_indices))
    missing_fields = [field for field in name_fields if field.name not in readings]
    if not any(field.part == "block" for field in name_fields) or len(blocks) != len(missing_fields):
        blocks = []
    for field, block in zip(missing_fields, blocks, strict=False):
        rows = block if field.part == "block" else split_address(block)[0]
        added[field.name] = FormFieldReading(_build_rows_entry(rows), _UNLABELLED_CONFIDENCE)
        added |= _split_address_fields(field, block, template, readings)
    return added


def _split_address_fields(
    name_field: TemplateField,
    rows: Sequence[Sequence[FormWord]],
    template: FieldTemplate,
    readings: Mapping[str, FormFieldReading],
) -> dict[str, FormFieldReading]:
    """Return street and city of a name's lines, for fields that have no entry."""
    names = [name_field.name.removesuffix("name") + part for part in ("street", "city")]
    return {
        name: FormFieldReading(_build_rows_entry(lines), _UNLABELLED_CONFIDENCE)
        for name, lines in zip(names, split_address(rows)[1:], strict=True)
        if template.get_field(name) and name not in readings and lines
    }


def _build_rows_entry(rows: Sequence[Sequence[FormWord]]) -> FormEntry:
    lines = [" ".join(word.text for word in row).strip(" ,;") for row in rows]
    return FormEntry(tuple(map(tuple, rows)), ", ".join(lines), is_valid=True)


def _read_left_over_amount(
    sheet: FormSheet, template: FieldTemplate, readings: Mapping[str, FormFieldReading], taken_word_indices: set[int]
) -> dict[str, FormFieldReading]:
    """Assign the only unassigned amount to the only required amount without a value.

    Empty if there is not exactly one of each.
    """
    missing_fields = [
        candidate
        for candidate in template.get_fields_by_need(FieldNeed.REQUIRED)
        if candidate.format == "currency" and candidate.name not in readings
    ]
    used_indices = taken_word_indices | {
        word.index for candidate in readings.values() for word in candidate.entry.words
    }
    if len(missing_fields) != 1:
        return {}
    free_amounts = [
        candidate
        for candidate in _find_amounts(missing_fields[0].format, sheet, require_cents=False)
        if not used_indices & {word.index for word in candidate.words}
    ]
    return (
        {missing_fields[0].name: FormFieldReading(free_amounts[0], _LEFT_OVER_CONFIDENCE)}
        if len(free_amounts) == 1
        else {}
    )


def count_stray_amounts(sheet: FormSheet, template: FieldTemplate, used_texts: Iterable[str]) -> int:
    """Count the amounts on a page that belong to no extracted value.

    ``used_texts``: the extracted values in the page's words.
    """
    known_counts = Counter(_keep_digits(word) for text in used_texts for word in text.split())
    written_counts = Counter(
        _keep_digits(amount.words[0].text) for amount in _find_amounts("currency", sheet, require_cents=False)
    )
    printed_words = collect_printed_words(template)
    return sum(count for digits, count in (written_counts - known_counts).items() if digits not in printed_words)


def _keep_digits(text: str) -> str:
    return re.sub(r"\D", "", text)


def is_tax_office_form_page(page: Page) -> bool:
    """Return True if the page names the IRS or the Treasury, as official forms do."""
    return bool(get_pattern("tax_office").search(page.text))


def read_generic_form(page: Page, template: FieldTemplate, *, is_official_form: bool) -> dict[str, FormFieldReading]:
    """Read title, year, issuer, recipient and largest amount from any document.

    ``is_official_form``: printed words and entries cannot be told apart without a template, so only a large year and
    amounts with cents are read, no names.
    """
    sheet = FormSheet.from_page(page)
    readings: dict[str, FormFieldReading] = {}
    if not is_official_form:
        form_readings = read_form(sheet, template, allow_misspellings=False)
        readings = {
            name: candidate for name, candidate in form_readings.items() if name in ("issuer_name", "recipient_name")
        }
    if title_words := _find_title_words(sheet):
        readings["document_title"] = FormFieldReading(_build_valid_entry(title_words), 0.6)
    year_reading = _read_tax_year(sheet, template, set(), allow_misspellings=False)
    if year_reading and (
        not is_official_form or year_reading.entry.words[0].height > _LARGE_PRINT_FACTOR * sheet.line_height
    ):
        readings["tax_year"] = year_reading
    field = template.get_field("any_amounts")
    amounts = list(_find_amounts(field.format, sheet, require_cents=is_official_form)) if field else []
    if field and amounts:
        largest_amount = max(amounts, key=lambda amount: abs(Decimal(field.normalise(amount.value) or 0)))
        readings["any_amounts"] = FormFieldReading(largest_amount, 0.6)
    return readings


def _find_title_words(sheet: FormSheet) -> tuple[FormWord, ...]:
    """Return the words of the row with the largest print near the top of the sheet."""
    rows = [tuple(word for word in row if word.match_key) for row in sheet.rows]
    rows = [
        row
        for row in rows
        if len(row) > 1
        and sum(len(word.match_key) for word in row) > 7
        and row[0].center_y < sheet.rows[0][0].center_y + 0.35
    ]
    return max(rows[:15], key=lambda row: round(sorted(w.height for w in row)[len(row) // 2], 3), default=())


# The form's type


def _find_likely_templates(sheet: FormSheet) -> list[FieldTemplate]:
    """List the templates that the page's words may fit, the most likely first."""
    sheet_key = "".join(word.match_key for word in sheet.words)
    rough_scores = {
        template: sum(make_match_key(sign) in sheet_key for sign in template.signs)
        + (make_match_key(template.signs[0]) in sheet_key)
        for template in list_field_templates("tax")
        if template.signs
    }
    likely_templates = [template for template, count in rough_scores.items() if count] or (
        list(rough_scores) if sheet.is_ocr_text else []
    )
    min_hits = (
        2
        if sheet.is_ocr_text
        else 0.1 * max((len(group_fields_by_box(template)) for template in likely_templates), default=0)
    )
    likely_templates = [
        template for template in likely_templates if _count_matching_boxes(sheet_key, template) >= min_hits
    ]
    return sorted(likely_templates, key=lambda template: -rough_scores[template])


def _count_matching_boxes(sheet_key: str, template: FieldTemplate) -> int:
    """Count the template's boxes with a label in ``sheet_key``, a sheet's letters."""
    return sum(
        any(key in sheet_key for key in map(make_match_key, box.label_texts) if len(key) > 7)
        for box in group_fields_by_box(template)
    )


def _detect_form(sheet: FormSheet, likely_templates: Sequence[FieldTemplate]) -> DetectedForm | None:
    scored = [(_measure_evidence(sheet, candidate), candidate.name) for candidate in likely_templates]
    scored = sorted((candidate for candidate in scored if candidate[0] >= _MIN_EVIDENCE), reverse=True)
    if not scored:
        return None
    (evidence, template_name), *others = scored
    return DetectedForm(sheet, template_name, evidence, tuple(name for _, name in others))


def _measure_evidence(sheet: FormSheet, template: FieldTemplate) -> float:
    """Return how much of a template is on the sheet, 0..1: half title, half labels.

    0 if too few labels were found, or if another form's number is there instead of the title.
    """
    # Without fields read on the label's line: their labels are short, and some forms of the type lack them.
    boxes = [
        box
        for box in group_fields_by_box(template)
        if box.label_texts and box.label_texts[0] and not box.fields[0].value_position
    ]
    labels = find_labels(sheet, template, allow_misspellings=False)
    found_names = {
        label.form_box.fields[0].name
        for label in labels
        if label.form_box and (label.has_box_number or label.letter_count >= 8)
    }
    found_count = sum(box.fields[0].name in found_names for box in boxes)
    label_share = found_count / len(boxes)
    if found_count < min(_MIN_LABEL_SHARE * len(boxes), _MIN_LABELS):
        return 0.0
    sign_hits = [bool(find_best_text_occurrence(sheet, sign)) for sign in template.signs]
    if not sign_hits[0] and (label_share < _MIN_UNTITLED_LABEL_SHARE or _has_other_form_number(sheet, template)):
        return 0.0
    title_score = 0.6 * sign_hits[0] + 0.4 * sum(sign_hits[1:]) / max(len(sign_hits) - 1, 1)
    return 0.5 * title_score + 0.5 * min(1.0, label_share / 0.8)


def _has_other_form_number(sheet: FormSheet, template: FieldTemplate) -> bool:
    own_key = make_match_key(template.signs[0])
    return any(
        get_pattern("form_number").fullmatch(next_word.text.strip(",.")) and make_match_key(next_word.text) != own_key
        for word in sheet.words
        if word.match_key == "form"
        for next_word in sheet.get_next_two_words(word)[:1]
    )


# Several forms on one page


def _split_sheet_by_form(sheet: FormSheet, likely_templates: Sequence[FieldTemplate]) -> list[FormSheet]:
    """Split a sheet with several forms into one sheet for each form.

    Every form prints the label of a required field once, which marks its position.
    """
    labels_by_template = {
        template: [
            label
            for label in find_labels(sheet, template, allow_misspellings=False)
            if label.form_box and label.match_score > 0.9
        ]
        for template in likely_templates
        if _measure_evidence(sheet, template) >= _MIN_EVIDENCE
    }
    labels = [label for template_labels in labels_by_template.values() for label in template_labels]
    candidates = [
        label for template, own in labels_by_template.items() for label in _select_anchor_labels(own, template)
    ]
    anchors = select_disjoint(sorted(candidates, key=lambda label: (label.y0, label.x0)), lambda label: label.words)
    if len(anchors) < 2:
        return _split_sheet_by_title(sheet, likely_templates)
    line_height = sheet.line_height
    bands = split_into_runs(anchors, lambda band, anchor: anchor.y0 - band[0].y0 < 3 * line_height)
    cuts = [_find_lower_form_top(sheet, labels, above[0], below[0]) for above, below in pairwise(bands)]
    band_edges = [float("-inf"), *cuts, float("inf")]
    parts = []
    for band, (top, bottom) in zip(bands, pairwise(band_edges), strict=True):
        words = [word for word in sheet.words if top <= word.center_y < bottom]
        columns = sorted(band, key=lambda label: label.x0)
        column_edges = [
            float("-inf"),
            *(_find_gutter(words, left, right) for left, right in pairwise(columns)),
            float("inf"),
        ]
        parts += [
            replace(sheet, words=tuple(word for word in words if left <= word.center_x < right))
            for left, right in pairwise(column_edges)
        ]
    return parts


def _split_sheet_by_title(sheet: FormSheet, likely_templates: Sequence[FieldTemplate]) -> list[FormSheet]:
    """Split a statement of forms below one another that share one head.

    Each part has the head and the words from its form's title to the next title.
    """
    titles = sorted(
        (title_words[0].y0 - 0.3 * title_words[0].height, template.name)
        for template in likely_templates
        if (title_words := find_best_text_occurrence(sheet, template.signs[0]))
    )
    tops = [top for top, _ in titles]
    if len(tops) < 2:
        return [sheet]
    parts = [
        replace(
            sheet,
            words=tuple(word for word in sheet.words if word.center_y < tops[0] or top <= word.center_y < bottom),
        )
        for top, bottom in pairwise([*tops, float("inf")])
    ]
    detected = [_detect_form(part, likely_templates) for part in parts]
    return (
        parts
        if all(form and form.template_name == name for form, (_, name) in zip(detected, titles, strict=True))
        else [sheet]
    )


def _select_anchor_labels(labels: Sequence[FormLabel], template: FieldTemplate) -> list[FormLabel]:
    """Select the labels of a required field that each form prints once.

    This is the first field, unless OCR lost its label on some of the forms.
    """
    required_names = [field.name for field in template.get_fields_by_need(FieldNeed.REQUIRED)]
    labels_by_name = {
        name: [
            label
            for label in labels
            if label.form_box and label.form_box.fields[0].name == name and label.letter_count >= 8
        ]
        for name in required_names
    }
    usual_count = sorted(map(len, labels_by_name.values()))[-2]
    return min(labels_by_name.values(), key=lambda group: abs(len(group) - usual_count))


def _find_lower_form_top(sheet: FormSheet, labels: Sequence[FormLabel], above: FormLabel, below: FormLabel) -> float:
    """Return the y at which to cut between two forms, one above the other.

    The cut is the widest gap before the first label that repeats one of the upper form.
    """
    labels_between = sorted(
        (candidate for candidate in labels if above.y0 < candidate.y0 <= below.y0), key=lambda label: label.y0
    )
    seen_texts = {candidate.text for candidate in labels if candidate.y0 <= above.y0}
    lower_start = below.y0
    for candidate in labels_between:
        if candidate.text in seen_texts:
            lower_start = candidate.y0
            break
        if candidate.y0 > above.y0 + sheet.line_height:
            seen_texts.add(candidate.text)
    word_edges = sorted((word.y0, word.y1) for word in sheet.words if above.y1 < word.center_y < lower_start)
    search_top = lower_start - 8 * sheet.line_height
    best_gap, cut, gap_top = 0.0, lower_start - 0.3 * sheet.line_height, max(above.y1, search_top)
    for top, bottom in [
        *(candidate for candidate in word_edges if candidate[1] > search_top),
        (lower_start, lower_start),
    ]:
        if top - gap_top > best_gap:
            best_gap, cut = top - gap_top, (top + gap_top) / 2
        gap_top = max(gap_top, bottom)
    return cut


def _find_gutter(words: Sequence[FormWord], left: FormLabel, right: FormLabel) -> float:
    """Return the x of the middle of the widest gap between two forms side by side."""
    spans = sorted((word.x0, word.x1) for word in words if left.x1 < word.x1 and word.x0 < right.x1)
    best_gap, middle, gap_start = 0.0, (left.x1 + right.x0) / 2, left.x1
    for x0, x1 in spans:
        if x0 - gap_start > best_gap and x0 <= right.x0:
            best_gap, middle = x0 - gap_start, (x0 + gap_start) / 2
        gap_start = max(gap_start, x1)
    return middle


def _drop_duplicate_forms(forms: list[DetectedForm]) -> list[DetectedForm]:
    """Drop forms with the same entries as an earlier form, such as copies for a state."""
    distinct_forms: list[DetectedForm] = []
    seen_entries: set[tuple[str, ...]] = set()
    for form in forms:
        if len(forms) > 1:
            readings = read_form(form.sheet, get_field_template(form.template_name), allow_misspellings=False)
            entries = (
                form.template_name,
                *sorted(f"{name}={reading.entry.value}" for name, reading in readings.items()),
            )
            if len(entries) > 2 and entries in seen_entries:
                continue
            seen_entries.add(entries)
        distinct_forms.append(form)
    return distinct_forms


# Entries


def _select_best_labels(labels: Sequence[FormLabel]) -> Iterator[FormLabel]:
    seen_boxes: set[tuple[str, tuple[str, ...]]] = set()
    for label in sorted(
        labels, key=lambda candidate: (not candidate.has_box_number, -candidate.match_score * candidate.letter_count)
    ):
        if label.form_box and (label.form_box.number, label.form_box.label_texts) not in seen_boxes:
            seen_boxes.add((label.form_box.number, label.form_box.label_texts))
            yield label


def _compute_confidence(form_entry: FormEntry, label: FormLabel) -> float:
    word_confidence = min(word.confidence for word in form_entry.words)
    factor = 0.97 if label.has_box_number or label.match_score > 0.95 else 0.9
    if form_entry.is_ocr_corrected:
        factor *= 0.75
    if form_entry.is_ambiguous:
        factor *= 0.6
    return round(factor * (0.4 + 0.6 * word_confidence), 3)


def _give_words_to_surest_field(readings: dict[str, FormFieldReading]) -> dict[str, FormFieldReading]:
    """Drop fields that share words with a field of higher confidence."""
    surest_first = sorted(readings, key=lambda name: -readings[name].confidence)
    undisputed_names = select_disjoint(surest_first, lambda name: readings[name].entry.words)
    return {name: readings[name] for name in readings if name in undisputed_names}


def _read_tax_year(
    sheet: FormSheet, template: FieldTemplate, taken_word_indices: set[int], *, allow_misspellings: bool
) -> FormFieldReading | None:
    """Read the tax year: prefer a large year near the title.

    Years within dates, running text or "Rev. January 2022" do not count. None if there is no year.
    """
    title_words = [word for sign in template.signs[:2] for word in find_best_text_occurrence(sheet, sign)]
    candidates: list[tuple[float, FormEntry]] = []
    for row in sheet.rows:
        for run in _iter_year_runs(row, allow_misspellings=allow_misspellings):
            word_before = sheet.get_word_left_of(run[0])
            if any(word.index in taken_word_indices for word in run) or _is_part_of_date(sheet, run, word_before):
                continue
            relative_height = max(word.height for word in run) / sheet.line_height
            title_distance = min(
                (
                    abs(run[0].center_y - title_word.center_y) + 0.3 * abs(run[0].center_x - title_word.center_x)
                    for title_word in title_words
                ),
                default=0.5,
            )
            label_bonus = 1.0 if word_before is not None and word_before.match_key in ("year", "calendar") else 0.0
            score = min(relative_height, 3.0) - 2 * title_distance + label_bonus
            candidates.append((score, _build_valid_entry(run, "".join(word.text for word in run).strip("().,;:"))))
    if not candidates:
        return None
    entry = max(candidates, key=lambda candidate: candidate[0])[1]
    return FormFieldReading(entry, round(0.95 * (0.4 + 0.6 * min(word.confidence for word in entry.words)), 3))


def _is_part_of_date(sheet: FormSheet, run: Sequence[FormWord], word_before: FormWord | None) -> bool:
    """Return True if a month or a revision is before a year, or a dash behind it."""
    next_words = sheet.get_next_two_words(run[-1])[:1]
    return (
        word_before is not None
        and run[0].x0 - word_before.x1 < 2 * run[0].height
        and bool(
            get_pattern("month_or_revision").fullmatch(word_before.text.strip("(,")) or word_before.text.endswith("/")
        )
    ) or any(word.text.startswith(("-", "/")) and word.x0 - run[-1].x1 < run[-1].height for word in next_words)


def _iter_year_runs(row: Sequence[FormWord], *, allow_misspellings: bool) -> Iterator[tuple[FormWord, ...]]:
    """Yield the years in a row that is no running text.

    A year is one word, two halves, or four single digits.
    """
    for start, word in enumerate(row if not _is_prose_row(row) else ()):
        for size in (1, 2, 4) if allow_misspellings or word.height > 0.012 else (1, 2):
            run = tuple(row[start : start + size])
            if len(run) < size or any(b.x0 - a.x1 > 0.9 * a.height for a, b in pairwise(run)):
                continue
            if size > 1 and any(len(piece.text) != 4 // size for piece in run):
                continue
            if get_pattern("form_year").fullmatch("".join(piece.text for piece in run).strip("().,;:")):
                yield run


def _is_prose_row(row: Sequence[FormWord]) -> bool:
    """Return True if a row is running text: many words, mostly in lower case."""
    words = [word for word in row if word.match_key.isalpha()]
    return len(words) > 9 and sum(word.text.islower() for word in words) > 0.6 * len(words)


def _find_amounts(value_format: FieldFormat, sheet: FormSheet, *, require_cents: bool) -> Iterator[FormEntry]:
    """Yield amounts with cents or a dollar sign, outside running text.

    ``require_cents``: only amounts with cents.
    """
    for row in sheet.rows:
        for word_before, word in pairwise((None, *row)) if not _is_prose_row(row) else ():
            text = word.text.strip(";:") if word else ""
            if word is None or normalise_value(text, value_format) is None:
                continue
            if word_before and word_before.text.islower() and word.x0 - word_before.x1 < _MAX_SPACE * word.height:
                continue  # "limited to $19,500"
            has_dollar_sign = "$" in text or (word_before is not None and word_before.text == "$")
            if re.search(r"\d\.\d\d\b", text) or (has_dollar_sign and not require_cents):
                yield _build_valid_entry((word,), text)


def _build_valid_entry(words: tuple[FormWord, ...], text: str | None = None) -> FormEntry:
    return FormEntry((words,), text or " ".join(word.text for word in words), is_valid=True)
