"""Split a clinical report into lines, table cells and sections."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import pairwise
from typing import Any, Literal, NamedTuple, TypeVar

from evalkit.core.grouping import split_into_runs
from evalkit.core.package_tables import load_package_table
from evalkit.documents.bundle import Block, Page
from evalkit.extraction.patterns import get_pattern

_Result = TypeVar("_Result")
#: Subject of a section: patient history, method, or other (such as findings); ``""`` before any heading.
SectionGroup = Literal["history", "method", "other", ""]

#: Characters of a line; longer lines are cut between sentences.
_MAX_LINE_LENGTH = 1_000


class ReportCell(NamedTuple):
    """A cell of a table row. ``start`` and ``end`` are positions in ``Page.text``."""

    start: int
    end: int
    text: str
    column_header: str
    """Text of the column's header; empty if the table has no header row."""


@dataclass(frozen=True)
class ReportLine:
    """A heading, a table row, or a line of text up to any heading inside it."""

    page: Page
    start: int
    """Position in ``Page.text``, as ``end``."""
    end: int
    kind: Literal["heading", "text", "row"]
    section: str
    """The section's name in small letters; empty before the first heading."""
    group: SectionGroup
    column_headers: tuple[str, ...] = ()
    """For a table row: the cells of the table's header row; empty if the table has none."""

    @cached_property
    def text(self) -> str:
        """Text of the line."""
        return self.page.text[self.start : self.end]

    @cached_property
    def cells(self) -> tuple[ReportCell, ...]:
        """Cells of a table row; empty for other lines."""
        if self.kind != "row":
            return ()
        cells, position = [], self.start
        for number, text in enumerate(self.text.split("\t")):
            cell_start = position + len(text) - len(text.lstrip())
            column_header = self.column_headers[number] if number < len(self.column_headers) else ""
            cells.append(ReportCell(cell_start, cell_start + len(text.strip()), text.strip(), column_header))
            position += len(text) + 1
        return tuple(cells)


#: A page, and start and end of a span of its text.
PageTextSpan = tuple[Page, int, int]


class ReportSection(NamedTuple):
    """The text below a heading, up to the next heading; one span for each page."""

    name: str
    spans: tuple[PageTextSpan, ...]


class ClinicalReport:
    """The lines and sections of one report's readable pages, computed on first use."""

    def __init__(self, pages: Sequence[Page]) -> None:
        self.pages = tuple(pages)
        self._remembered: dict[object, Any] = {}

    def remember(self, key: Hashable, compute: Callable[[], _Result]) -> _Result:
        """Return the cached result of ``compute`` for this key, or compute it.

        Several steps need the same.
        """
        result: _Result | None = self._remembered.get(key)
        if result is None:
            result = self._remembered[key] = compute()
        return result

    @cached_property
    def body_lines(self) -> tuple[ReportLine, ...]:
        """Lines in reading order, without page headers and footers."""
        return tuple(_iter_lines(self.pages))

    @cached_property
    def furniture_lines(self) -> tuple[ReportLine, ...]:
        """Page headers, footers and stamps, which may contain a label with its value."""
        return tuple(
            ReportLine(page, start, start + len(block.text), "text", "", "")
            for page in self.pages
            for block, start in _iter_blocks_with_starts(page)
            if block.furniture
        )

    @cached_property
    def sections(self) -> tuple[ReportSection, ...]:
        """Sections in reading order; a section may continue on the next page."""
        lines = [line for line in self.body_lines if line.section and line.kind != "heading"]
        sections = []
        for section_lines in split_into_runs(lines, lambda run, line: line.section == run[0].section):
            pages = split_into_runs(section_lines, lambda run, line: line.page is run[0].page)
            spans = tuple((page_lines[0].page, page_lines[0].start, page_lines[-1].end) for page_lines in pages)
            sections.append(ReportSection(section_lines[0].section, spans))
        return tuple(sections)

    @cached_property
    def finding_lines(self) -> tuple[ReportLine, ...]:
        """Body lines outside history and method sections, which may state a finding."""
        return tuple(line for line in self.body_lines if line.group not in ("history", "method"))


#: Load ``clinical.toml``: the words of reports, such as headings and stain names.
load_clinical_lexicon = partial(load_package_table, "evalkit.extraction.clinical", "clinical.toml")


@cache
def _load_section_groups() -> dict[str, SectionGroup]:
    return {
        name: group for group in ("other", "method", "history") for name in load_clinical_lexicon()["sections"][group]
    }


@cache
def _compile_heading(pattern_name: str) -> re.Pattern[str]:
    """Compile a heading pattern: section names replace its words in capitals."""
    main_names = load_clinical_lexicon()["sections"]["inside"]
    names = "|".join(map(re.escape, sorted(_load_section_groups(), key=len, reverse=True)))
    alternatives = {
        "ANY_NAME": names,
        "ANY_CAPITALS": names.upper(),
        "MAIN_NAME": "|".join(map(str.capitalize, main_names)),
        "MAIN_CAPITALS": "|".join(map(str.upper, main_names)),
    }
    return re.compile(
        re.sub("|".join(alternatives), lambda word: alternatives[word.group()], get_pattern(pattern_name).pattern)
    )


def _match_heading(text: str) -> re.Match[str] | None:
    """Match a line that is only a heading."""
    return _compile_heading("heading_alone").match(text) or _compile_heading("heading_in_capitals").match(text)


def _iter_lines(pages: Sequence[Page]) -> Iterator[ReportLine]:
    tracker = _SectionTracker()
    for page in pages:
        printed_starts = list(_iter_printed_line_starts(page))
        for block, start in _iter_blocks_with_starts(page):
            if not block.furniture:
                yield from tracker.split_block_into_lines(page, block, start, printed_starts)


def _iter_printed_line_starts(page: Page) -> Iterator[int]:
    """Find where each line, as it is printed, begins in ``Page.text``."""
    last_left = last_middle = float("inf")
    for start, _, left, top, _, bottom in page.words:
        if left < last_left or top > last_middle:
            yield start
        last_left, last_middle = left, (top + bottom) / 2


def _iter_blocks_with_starts(page: Page) -> Iterator[tuple[Block, int]]:
    position = 0
    for block in page.visible_blocks:
        yield block, position
        position += len(block.text) + 1


class _SectionTracker:
    def __init__(self) -> None:
        self._section = ""
        self._group: SectionGroup = ""

    def split_block_into_lines(
        self, page: Page, block: Block, start: int, printed_starts: Sequence[int]
    ) -> Iterator[ReportLine]:
        """Split a block into lines, and track the current section.

        ``start``: position of the block's text in ``Page.text``. ``printed_starts``: where each line, as it is printed,
        begins there.
        """
        if block.type == "table":
            yield from _iter_table_rows(page, block.text, start, self._section, self._group)
        elif block.type == "heading" and not _compile_heading("heading_leading").match(block.text):
            self._track_heading(block.text)
            yield self._build_line(page, start, start + len(block.text), "heading")
        else:
            for first, last in _split_at_headings(page, block.text, start, printed_starts):
                yield from self._split_paragraph(page, start + first, start + last)

    def _track_heading(self, text: str) -> None:
        if heading_match := _match_heading(text):
            self._enter_section(heading_match["name"])
        elif get_pattern("negative_heading").search(text):
            self._section, self._group = text.lower(), "method"
        elif self._group in ("history", "method"):  # an unknown heading ends the section
            self._section, self._group = "", ""

    def _enter_section(self, section_name: str) -> None:
        self._section = section_name.lower()
        self._group = _load_section_groups()[self._section]

    def _split_paragraph(self, page: Page, start: int, end: int) -> Iterator[ReportLine]:
        text = page.text[start:end]
        if heading_match := _match_heading(text):
            self._enter_section(heading_match["name"])
            yield self._build_line(page, start, end, "heading")
            return
        if heading_match := _compile_heading("heading_leading").match(text):
            self._enter_section(heading_match["name"])
            yield self._build_line(page, start, start + heading_match.end(), "heading")
            start += heading_match.end()
        elif self._section and get_pattern("signature_line").match(text):
            self._section, self._group = "", ""
        if page.text[start:end].strip():
            yield self._build_line(page, start, end, "text")

    def _build_line(self, page: Page, start: int, end: int, kind: Literal["heading", "text"]) -> ReportLine:
        return ReportLine(page, start, end, kind, self._section, self._group)


def _split_at_headings(page: Page, text: str, start: int, printed_starts: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Split a text at line breaks and headings; yield start and end.

    ``start``: position of the text in ``Page.text``. A line that is printed alone and is a heading counts as one, even
    if the reader joined it to the line before.
    """
    position = 0
    for line in text.split("\n"):
        line_start, line_end = start + position, start + position + len(line)
        starts = [
            *printed_starts[bisect_left(printed_starts, line_start) : bisect_left(printed_starts, line_end)],
            line_end,
        ]
        printed_lines = [(first - line_start, page.text[first:last]) for first, last in pairwise(starts)]
        heading_cuts = {
            cut
            for first, printed_line in printed_lines
            if printed_line[0].isupper()
            for cut in _list_cuts_around_heading(first, printed_line, line[:first].rstrip()[-1:] in ".:;=_*")
        }
        embedded_cuts = {match.start() for match in _compile_heading("heading_embedded").finditer(line)}
        cuts = sorted({0, len(line)} | heading_cuts | embedded_cuts)
        for first, last in pairwise(cuts):
            if line[first:last].strip():
                yield from _split_long_line(line, position, first, last)
        position += len(line) + 1


def _list_cuts_around_heading(start: int, printed_line: str, is_after_sentence: bool) -> tuple[int, ...]:
    """Return where a heading or signature begins.

    Also where it ends, if it is the whole line.
    """
    if _match_heading(printed_line):
        return start, start + len(printed_line)
    is_signature = is_after_sentence and get_pattern("signature_line").match(printed_line.rstrip())
    return (start,) if is_signature or _compile_heading("heading_leading").match(printed_line) else ()


def _split_long_line(line: str, line_start: int, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Split a long line between sentences, to bound the time of pattern searches."""
    while stop - start > _MAX_LINE_LENGTH:
        window = line[start : start + _MAX_LINE_LENGTH]
        end = max(window.rfind(". ") + 1, window.rfind("; ") + 1) or window.rfind(" ") or _MAX_LINE_LENGTH
        end = end if end > 0 else _MAX_LINE_LENGTH
        yield line_start + start, line_start + start + end
        start += end
    if line[start:stop].strip():
        yield line_start + start, line_start + stop


def _iter_table_rows(page: Page, text: str, start: int, section: str, group: SectionGroup) -> Iterator[ReportLine]:
    rows = text.split("\n")
    header_cells = tuple(cell.strip() for cell in rows[0].split("\t"))
    is_header = len(rows) > 1 and _is_header_row(header_cells)
    position = start
    for number, row in enumerate(rows):
        if not (is_header and number == 0):
            yield ReportLine(
                page, position, position + len(row), "row", section, group, header_cells if is_header else ()
            )
        position += len(row) + 1


def _is_header_row(cells: Sequence[str]) -> bool:
    """Return True if a table's first row has a known column title and no value."""
    has_value = any(
        re.search(r":\s*\S|^[<>]?\d+(?:\.\d+)?(?!\d*[/-]\d)|[A-Z][a-z]{2,8}\.? \d{1,2},? (?:19|20)\d\d", cell)
        for cell in cells
    )
    return not has_value and any(cell.lower() in load_clinical_lexicon()["tables"]["header"] for cell in cells)
