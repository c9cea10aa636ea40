"""Find values at labels in the lines and tables of a clinical report."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from evalkit.documents.bundle import Page
from evalkit.extraction.clinical.report_structure import ClinicalReport, PageTextSpan, ReportLine
from evalkit.extraction.field_template import TemplateField
from evalkit.extraction.patterns import get_pattern

#: Confidence of values found at a label, by a wording, and only by the second pass. These rank values; they are not
#: measured probabilities.
SURE_CONFIDENCE, LIKELY_CONFIDENCE, GUESSED_CONFIDENCE = 0.95, 0.9, 0.8


def extract_sentence_parts(text: str, start: int, end: int, reach: int = 200) -> tuple[str, str]:
    """Return the words of a sentence or table cell before and after ``text[start:end]``.

    ``reach``: most characters of each. A line break before a small letter ends no sentence.
    """
    first, last = max(start - reach, 0), end + reach
    first = max((match.end() for match in get_pattern("sentence_break").finditer(text, first, start)), default=first)
    end_match = get_pattern("sentence_break").search(text, end, last)
    return text[first:start], text[end : end_match.start() if end_match else last]


class StatementRole(StrEnum):
    """Role of a statement about the field, the most recent first."""

    CORRECTED = "corrected"
    """The report says that this replaces an earlier statement."""
    ADDED = "added"
    """An addendum says so, without saying that it corrects something."""
    STATED = "stated"
    SUPERSEDED = "superseded"
    """The report says that this was replaced."""
    ASIDE = "aside"
    """History, another examination, a control, a method or a definition: not a statement about this report's field."""


@dataclass(frozen=True)
class LocatedClinicalValue:
    """A value in a report, with its place: ``start`` and ``end`` in ``Page.text``."""

    page: Page
    start: int
    end: int
    confidence: float
    item: str = ""
    """For a multi-value field: the name of this value, such as ``ER``."""
    continued_spans: tuple[PageTextSpan, ...] = ()
    """Further parts of a long text, on the following pages; or of a value on several lines."""
    role: StatementRole = StatementRole.STATED

    @property
    def spans(self) -> tuple[PageTextSpan, ...]:
        """All parts of the value, one for each page."""
        return ((self.page, self.start, self.end), *self.continued_spans)

    @property
    def text(self) -> str:
        """The value in the report's words."""
        return "\n".join(page.text[start:end] for page, start, end in self.spans)


def read_labelled_values(
    field: TemplateField, report: ClinicalReport, is_second_pass: bool
) -> Iterator[LocatedClinicalValue]:
    """Read the values in the field's format at its labels."""
    for line, start, end in find_labelled_text(field, report, is_second_pass):
        if field.format == "measurement" and get_pattern("specimen_before").search(
            line.page.text, max(start - 50, line.start), start
        ):
            continue
        if span := find_formatted_span(field, line.page, start, end):
            yield LocatedClinicalValue(line.page, *span, SURE_CONFIDENCE if not is_second_pass else GUESSED_CONFIDENCE)


def find_labelled_text(
    field: TemplateField, report: ClinicalReport, is_second_pass: bool
) -> Iterator[tuple[ReportLine, int, int]]:
    """Find the text at each label of the field: line, and start and end on the page.

    The second pass also uses ``more_labels``, all body lines, and the lines next to a label.
    """
    labels = (*field.labels, *field.more_labels) if is_second_pass else field.labels
    if not labels:
        return
    lines = (report.body_lines if is_second_pass else report.finding_lines) + report.furniture_lines
    for line_number, line in enumerate(lines):
        if line.group == "history":
            continue
        if line.kind == "row":
            yield from _find_text_in_cells(line, labels)
            continue
        for label_match in _compile_label_pattern(labels, is_second_pass).finditer(line.text):
            start = line.start + label_match.end()
            if line.page.text[start : line.end].strip(" .:\t"):
                yield line, start, line.end
            elif is_second_pass or line.kind == "heading":
                yield from _find_text_in_adjacent_lines(lines, line_number)


def _find_text_in_cells(line: ReportLine, labels: Iterable[str]) -> Iterator[tuple[ReportLine, int, int]]:
    """Find texts in a table row: after a label, below a label, or in the label's cell."""
    label_only_pattern = _compile_label_only_pattern(tuple(labels))
    label_pattern = _compile_label_pattern(tuple(labels), False)
    for number, cell in enumerate(line.cells):
        cells_after = [next_cell for next_cell in line.cells[number + 1 :] if next_cell.text]
        if label_only_pattern.match(cell.text):
            if cells_after:
                yield line, cells_after[0].start, cells_after[0].end
                yield line, cells_after[0].start, cells_after[-1].end
        elif label_match := label_pattern.search(cell.text):
            yield line, cell.start + label_match.end(), cell.end
        elif cell.text and label_only_pattern.match(cell.column_header):
            yield line, cell.start, cell.end


def _find_text_in_adjacent_lines(
    lines: tuple[ReportLine, ...], line_number: int
) -> Iterator[tuple[ReportLine, int, int]]:
    """Find the line below a label, then the line above, if on the same page."""
    for adjacent_number in (line_number + 1, line_number - 1):
        if (
            0 <= adjacent_number < len(lines)
            and lines[adjacent_number].kind != "heading"
            and lines[adjacent_number].page is lines[line_number].page
        ):
            line = lines[adjacent_number]
            first_cell = next((cell for cell in line.cells if cell.text), None)
            yield (line, first_cell.start, first_cell.end) if first_cell else (line, line.start, line.end)


@cache
def _compile_label_pattern(labels: tuple[str, ...], is_loose: bool) -> re.Pattern[str]:
    words = "|".join(re.escape(label) for label in sorted(labels, key=len, reverse=True))
    separator = r"(?:\s*\.{2,}[:\s]*|\s*[:=]\s*|\s+[-–]\s+|\s+(?:is|was|are|were)\s+)"
    qualifier = r"(?:\s*\([^()]{1,30}\))?"
    label_only, label_start = rf"^\W*(?:{words}){qualifier}\s*$", rf"(?<![\w-])(?<!nuclear )(?:{words})"
    return re.compile(
        rf"(?i){label_start}{qualifier}{separator}|{label_only}" + (rf"|{label_start}\s+(?=\S)" if is_loose else "")
    )


@cache
def _compile_label_only_pattern(labels: tuple[str, ...]) -> re.Pattern[str]:
    words = "|".join(re.escape(label) for label in sorted(labels, key=len, reverse=True))
    return re.compile(rf"(?i)^(?:{words})(?:\s*\([^()]{{1,30}}\))?\s*:?$")


def find_formatted_span(field: TemplateField, page: Page, start: int, end: int) -> tuple[int, int] | None:
    """Find a text in the field's format within ``Page.text[start:end]``; or None."""
    text = page.text[start:end]
    if get_pattern("untold").match(text.strip(" :-")):
        return None
    if pattern_name := _EMBEDDED_PATTERNS.get(field.format):
        match = get_pattern(pattern_name).search(text)
        is_valid = match is not None and field.normalise(match.group()) is not None
        return (start + match.start(), start + match.end()) if match and is_valid else None
    end_pattern = get_pattern("next_label") if field.format == "margin" else get_pattern("sentence_end")
    end_match = end_pattern.search(text)
    clause = text[: end_match.start()] if end_match and end_match.start() else text
    for candidate in dict.fromkeys((clause, text)):
        stripped = candidate.strip(" \t\n.,;:")
        if (
            stripped
            and field.normalise(stripped) is not None
            and len(stripped) <= _MAX_VALUE_LENGTHS.get(field.format, 200)
        ):
            position = start + text.index(stripped)
            return position, position + len(stripped)
    return None


#: Patterns of formats that may be anywhere in the text at a label; other formats begin at the label.
_EMBEDDED_PATTERNS: Mapping[str, str] = {"date": "printed_date", "measurement": "lesion_size"}
_MAX_VALUE_LENGTHS: Mapping[str, int] = {"margin": 160, "grade": 60, "msi": 80, "tmb": 80, "stage": 60}
#: Function that yields a field's values in a report; the third argument is True in the second pass.
FieldReader = Callable[[TemplateField, ClinicalReport, bool], Iterator[LocatedClinicalValue]]
