"""Labelled values in a report's lines and tables; its passages and statements.

A statement may be about this examination, an earlier one, a method. The words that decide are in ``patterns.toml``.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache, cached_property
from itertools import pairwise

from evalkit.documents.bundle import Page
from evalkit.extraction.clinical.report_structure import ClinicalReport, PageTextSpan, ReportLine
from evalkit.extraction.field_template import TemplateField
from evalkit.extraction.patterns import get_pattern

#: Confidence of values found at a label, by a wording, and only by the second pass. These rank values; they are not
#: measured probabilities.
SURE_CONFIDENCE, LIKELY_CONFIDENCE, GUESSED_CONFIDENCE = 0.95, 0.9, 0.8


def extract_sentence_parts(text: str, start: int, end: int, reach: int = 200) -> tuple[str, str]:
    """Return the words of a sentence or cell before and after ``text[start:end]``.

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
    GROSS = "gross"
    """Seen with the naked eye: only a size counts, if nothing else states one."""
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
    # "Histologic type Invasive carcinoma": a label of two words needs no mark behind it.
    two_words = "|".join(re.escape(label) for label in labels if " " in label) or "(?!)"
    separator = r"(?:\s*\.{2,}[:\s]*|\s*[:=]\s*|\s+[-–]\s+|\s+(?:is|was|are|were)\s+)"
    qualifier = r"(?:\s*\([^()]{1,30}\))?"
    label_only, label_start = rf"^\W*(?:{words}){qualifier}\s*$", rf"(?<![\w-])(?<!nuclear )(?:{words})"
    return re.compile(
        rf"(?i){label_start}{qualifier}{separator}|{label_only}|^\W*(?:{two_words})\s+(?=(?-i:[A-Z][a-z]))"
        + (rf"|{label_start}\s+(?=\S)" if is_loose else "")
    )


@cache
def _compile_label_only_pattern(labels: tuple[str, ...]) -> re.Pattern[str]:
    words = "|".join(re.escape(label) for label in sorted(labels, key=len, reverse=True))
    return re.compile(rf"(?i)^(?:{words})(?:\s*\([^()]{{1,30}}\))?\s*:?$")


def find_formatted_span(field: TemplateField, page: Page, start: int, end: int) -> tuple[int, int] | None:
    """Find text in the field's format within ``Page.text[start:end]``, or None."""
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


#: Characters of a passage, to bound the time of pattern searches.
_MAX_PASSAGE_LENGTH = 1_000


@dataclass(frozen=True)
class ReportPassage:
    """Lines of a report that belong together: a paragraph, a list line or a table row."""

    page: Page
    start: int
    """Position in ``Page.text``, as ``end``."""
    end: int
    topic: str
    """The label or heading that the passage is under, in small letters: ``margins``."""
    role: StatementRole
    """The role of statements in the passage, if their own sentence does not say otherwise."""

    @cached_property
    def text(self) -> str:
        """The passage as one line, with colons instead of dot leaders.

        It is as long as on the page.
        """
        text = self.page.text[self.start : self.end].replace("\n", " ")
        return get_pattern("dot_leader").sub(lambda dots: f":{' ' * (len(dots.group()) - 1)}", text)

    def iter_clauses(self) -> Iterator[tuple[int, int]]:
        """Iterate each clause's start and end in ``text``; a table row is one clause."""
        position = 0
        for clause_end in get_pattern("clause_end").finditer(self.text) if "\t" not in self.text else ():
            yield position, clause_end.start()
            position = clause_end.end()
        yield position, len(self.text)


def get_passages(report: ClinicalReport) -> tuple[ReportPassage, ...]:
    """Return the passages of a report, computed once."""
    return report.remember(get_passages, lambda: _mark_corrections(list(_iter_passages(report))))


def _iter_passages(report: ClinicalReport) -> Iterator[ReportPassage]:
    topic, is_bulleted, role = "", False, StatementRole.STATED
    pending: ReportPassage | None = None
    for line in _iter_lines_split_at_addenda(report):
        if pending and _continues(pending, line):
            pending = replace(pending, end=line.end)
            continue
        if pending:
            yield pending
        role = _find_line_role(line, role)
        label_match, last_label_match = (
            get_pattern("passage_label").match(line.text),
            get_pattern("last_label").search(line.text),
        )
        starts_subject = get_pattern("statement_subject").match(line.text)
        if line.kind == "heading" or starts_subject or (is_bulleted and not get_pattern("bullet").match(line.text)):
            topic, is_bulleted = line.text.lower() if line.kind == "heading" else "", False
        elif topic and not is_bulleted:
            is_bulleted = bool(get_pattern("bullet").match(line.text))
        own_topic = " ".join((topic, label_match["label"].lower() if label_match else "", *line.column_headers))
        is_gross = line.section.startswith(("gross", "macro"))
        own_role = (
            StatementRole.GROSS if is_gross else StatementRole.ASIDE if line.group in ("history", "method") else role
        )
        pending = ReportPassage(line.page, line.start, line.end, own_topic, own_role)
        if last_label_match:
            topic, is_bulleted = last_label_match["label"].lower(), False
    if pending:
        yield pending


def _iter_lines_split_at_addenda(report: ClinicalReport) -> Iterator[ReportLine]:
    for line in report.body_lines:
        cuts = [0, *(match.end() for match in get_pattern("inline_addendum").finditer(line.text)), len(line.text)]
        for first, last in pairwise(cuts):
            yield replace(line, start=line.start + first, end=line.start + last) if len(cuts) > 2 else line


def _continues(passage: ReportPassage, line: ReportLine) -> bool:
    """Return True if a line goes on with the passage's sentence."""
    return (
        line.kind == "text"
        and passage.page is line.page
        and line.end - passage.start < _MAX_PASSAGE_LENGTH
        and "\t" not in passage.text
        and passage.text.rstrip()[-1:] not in ".:"
        and not get_pattern("statement_addendum_line").match(line.text)
        and re.match(r"\s*[a-z(0-9]", line.text) is not None
        and get_pattern("statement_subject").match(line.text) is None
    )


def _find_line_role(line: ReportLine, role: StatementRole) -> StatementRole:
    if get_pattern("statement_addendum_line").match(line.text):
        return StatementRole.ADDED
    if get_pattern("statement_superseded_line").match(line.text):
        return StatementRole.SUPERSEDED
    is_new_part = line.kind == "heading" and get_pattern("statement_first_part").match(line.text)
    return StatementRole.STATED if is_new_part else role


def _mark_corrections(passages: Sequence[ReportPassage]) -> tuple[ReportPassage, ...]:
    """Mark an addendum's statements as corrections if any says that it corrects."""
    is_correction = any(
        passage.role is StatementRole.ADDED and get_pattern("statement_correction").search(passage.text)
        for passage in passages
    )
    if not is_correction:
        return tuple(passages)
    return tuple(
        replace(passage, role=StatementRole.CORRECTED) if passage.role is StatementRole.ADDED else passage
        for passage in passages
    )


def find_statement_role(report: ClinicalReport, page: Page, start: int, end: int) -> StatementRole:
    """Find the role of ``page.text[start:end]`` from the words around it.

    Text outside the report's body, as in a page's header, is STATED.
    """
    passages = get_passages(report)
    number = (
        bisect_right(passages, (page.page_num, start), key=lambda passage: (passage.page.page_num, passage.start)) - 1
    )
    if number < 0 or passages[number].page is not page or start >= passages[number].end:
        return StatementRole.STATED
    passage = passages[number]
    if passage.role in (StatementRole.ASIDE, StatementRole.SUPERSEDED):
        return passage.role
    text, first, last = passage.text, start - passage.start, min(end, passage.end) - passage.start
    cuts = [0, *(cut.end() for cut in get_pattern("passage_sentence_end").finditer(text)), len(text)]
    sentence_start = max(cut for cut in cuts if cut <= first)
    # In a row of a table, cells behind the value are of other columns, such as a cut-off.
    cell_end = text.find("\t", last) % (len(text) + 1)
    sentence_end = min((cut for cut in (*cuts, cell_end) if cut >= last), default=len(text))
    # The words before the number of "was typed as 4%" say what it is.
    number_words = re.match(r"\D*(?=\d+\D*$)", text[first:last])
    before, after = text[sentence_start : first + (number_words.end() if number_words else 0)], text[last:sentence_end]
    roles = (
        ("superseded_before", StatementRole.SUPERSEDED, before),
        ("superseded_after", StatementRole.SUPERSEDED, after),
        ("aside", StatementRole.ASIDE, text[sentence_start:sentence_end]),
        (
            "aside_before",
            StatementRole.ASIDE,
            f"{passage.topic if sentence_start == 0 else ''} {text[sentence_start:last]}",
        ),
        ("aside_from", StatementRole.ASIDE, text[first:sentence_end]),
        ("aside_after", StatementRole.ASIDE, after),
        ("correction", StatementRole.CORRECTED, text[sentence_start:sentence_end]),
    )
    return next((role for name, role, words in roles if get_pattern(f"statement_{name}").search(words)), passage.role)
