"""Reader of laboratory tables: the role of a column follows from its content.

Names, results, units, ranges and flags may be in any order, with a header in any language or none. A header only
decides between several columns of results.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from evalkit.core.grouping import split_into_runs
from evalkit.documents.bundle import Page
from evalkit.extraction.clinical.report_statements import (
    GUESSED_CONFIDENCE,
    LIKELY_CONFIDENCE,
    SURE_CONFIDENCE,
    LocatedClinicalValue,
)
from evalkit.extraction.clinical.report_structure import ClinicalReport, ReportLine
from evalkit.extraction.formats import normalise_value
from evalkit.extraction.patterns import get_pattern
from evalkit.extraction.printed_rows import PrintedCell, PrintedPage, PrintedRow, find_columns

#: Kinds of cells by their patterns, in this order; a cell without any is text.
_KINDS = {
    "range": "lab_range_cell",
    "limit": "lab_limit_cell",
    "result": "lab_result_cell",
    "word": "lab_word_cell",
    "unit": "lab_unit_cell",
    "flag": "lab_flag_cell",
}
_RESULTS = ("result", "limit", "word")
#: Names are different from each other in at least this share of their column, and in most rows.
_MIN_NAMES = 0.7
_MAX_NAME_LENGTH = 60


class _Column(NamedTuple):
    heading: str
    cells: Sequence[PrintedCell | None]
    role: str
    """``result``, ``range``, ``unit``, ``flag`` or ``text``."""


class _Table(NamedTuple):
    page: Page
    header: PrintedRow
    """Cells above the first row; empty without a header."""
    rows: Sequence[PrintedRow]


def read_laboratory_tables(report: ClinicalReport, is_second_pass: bool) -> Iterator[LocatedClinicalValue]:
    """Read the test results in tables outside the history and method sections.

    The first pass skips tables without any unit, range or heading of results.
    """
    for table in report.remember(_iter_tables, lambda: list(_iter_tables(report))):
        columns = [
            _Column(heading, cells[1:], _find_role(heading, cells[1:]))
            for cells in find_columns(table.header, table.rows)
            for heading in [cells[0].text if cells[0] else ""]
        ]
        columns = [
            column._replace(role="range")
            if column.role == "limit" and sum(other.role in _RESULTS for other in columns) > 1
            else column
            for column in columns
        ]
        for panel in _split_into_panels(columns):
            yield from _read_panel(table.page, panel, is_second_pass)


def _iter_tables(report: ClinicalReport) -> Iterator[_Table]:
    pages = {page.page_num: PrintedPage(page) for page in report.pages}
    header: PrintedRow = ()
    for lines in split_into_runs(report.finding_lines, lambda run, line: line.page is run[0].page):
        page = pages[lines[0].page.page_num]
        rows = [
            row
            for line, last_line in zip(lines, [None, *lines], strict=False)
            for row in page.split_into_rows(_find_start(line, last_line), line.end)
        ]
        for run in split_into_runs(rows, _continues_table):
            if len(run[0]) > 1 and not _has_result(run[0]):
                header = run[0]
            if body := [row for row in run if _has_result(row) or (_has_result_heading(run[0]) and row is not run[0])]:
                has_header = bool(header) and (header[0].tabs < 0) == (body[0][0].tabs < 0)
                yield _Table(page.page, header if has_header else (), body)


def _find_start(line: ReportLine, last_line: ReportLine | None) -> int:
    """Return where a line starts; of a table's first row, where its header does."""
    is_below_header = line.column_headers and (last_line is None or line.column_headers is not last_line.column_headers)
    return line.page.text.rfind("\n", 0, line.start - 1) + 1 if is_below_header else line.start


def _continues_table(run: Sequence[PrintedRow], row: PrintedRow) -> bool:
    """Return True unless a row is a new header, or is written in another way.

    Under a heading of results, any words are a result, but no sentence.
    """
    is_headed = (
        row[0].tabs >= 0
        and _has_result_heading(run[0])
        and not _has_result_heading(row)
        and not any(cell.text.endswith((".", ",", ";", ":")) for cell in row)
    )
    return (len(row) < 2 or is_headed or _has_result(row)) and (row[0].tabs < 0) == (run[-1][0].tabs < 0)


def _has_result_heading(row: PrintedRow) -> bool:
    return len(row) > 1 and any(get_pattern("result_column").match(cell.text) for cell in row)


def _has_result(row: PrintedRow) -> bool:
    return len(row) > 1 and any(_find_kind(cell.text) in ("range", "unit", *_RESULTS) for cell in row)


def _find_kind(text: str) -> str:
    return next((kind for kind, name in _KINDS.items() if get_pattern(name).fullmatch(text)), "text")


def _find_role(heading: str, cells: Sequence[PrintedCell | None]) -> str:
    """Find what a column's heading says or most cells are.

    ``limit``: results or ranges.
    """
    if get_pattern("result_column").match(heading):
        return "result"
    if get_pattern("range_column").search(heading):
        return "range"
    kinds = Counter(_find_kind(cell.text) for cell in cells if cell)
    half = kinds.total() / 2
    if kinds["limit"] + kinds["range"] > half:
        return "range" if kinds["range"] else "limit"
    if sum(kinds[kind] for kind in _RESULTS) >= half:
        return "result"
    return next((role for role in ("unit", "flag") if kinds[role] >= half), "text")


def _is_column_of_names(column: _Column) -> bool:
    names = [cell.text for cell in column.cells if cell and re.search(r"[^\W\d_]", cell.text)]
    return (
        column.role == "text"
        and len(names) > len(column.cells) / 2
        and len({*names}) >= _MIN_NAMES * len(names)
        and max(map(len, names)) <= _MAX_NAME_LENGTH
    )


def _split_into_panels(columns: Sequence[_Column]) -> list[Sequence[_Column]]:
    """Split a table that has tests with results side by side, each named first."""
    starts = [number for number, column in enumerate(columns) if _is_column_of_names(column)]
    if not starts:
        return []
    cuts = [*starts, len(columns)]
    panels = [columns[first:last] for first, last in pairwise(cuts)]
    roles = [[column.role for column in panel] for panel in panels]
    if len(panels) > 1 and "result" in roles[0] and all(row == roles[0] for row in roles):
        return panels
    names = columns[starts[0]]
    return [[names, *(column for column in columns if column is not names)]]


def _read_panel(page: Page, panel: Sequence[_Column], is_second_pass: bool) -> Iterator[LocatedClinicalValue]:
    names, *columns = panel
    results = _choose_results([column for column in columns if column.role in ("result", "limit")])
    headed = [column for column in results if get_pattern("result_column").match(column.heading)]
    for number, name_cell in enumerate(names.cells):
        cells = [
            cell
            for column in results
            if (cell := column.cells[number])
            and (
                _find_kind(cell.text) in _RESULTS
                or (column in headed and get_pattern("lab_words").fullmatch(cell.text))
            )
        ]
        if not cells or not name_cell or not get_pattern("lab_name_cell").match(name_cell.text):
            continue
        name_unit = get_pattern("lab_unit_of_name").search(name_cell.text)
        others = [
            (cell.start, cell.end)
            for role in ("flag", "unit", "range")
            for column in columns
            if column.role == role and (cell := column.cells[number]) and _find_kind(cells[0].text) != "text"
        ]
        if name_unit:
            others.insert(0, (name_cell.start + name_unit.start("unit"), name_cell.start + name_unit.end("unit")))
        value = LocatedClinicalValue(
            page,
            cells[0].start,
            cells[0].end,
            GUESSED_CONFIDENCE if len(cells) > 1 else SURE_CONFIDENCE if headed else LIKELY_CONFIDENCE,
            clean_test_name(name_cell.text[: name_unit.start()] if name_unit else name_cell.text),
            tuple((page, *span) for span in others),
        )
        is_result = (
            headed or get_pattern("lab_unit").search(value.text) or get_pattern("reference_range").search(value.text, 1)
        )
        if is_second_pass or (is_result and len(cells) == 1):
            yield value


def _choose_results(columns: list[_Column]) -> list[_Column]:
    """Drop the columns of earlier results and of limits; several may be left."""
    present = [column for column in columns if not get_pattern("earlier_column").match(column.heading)]
    headed = [column for column in present if get_pattern("result_column").match(column.heading)]
    if len(present) < 2 or headed:
        return headed or present
    dates = [
        normalise_value(date.group(), "date") or ""
        for column in present
        if (date := get_pattern("printed_date").search(column.heading))
    ]
    if len(dates) == len(present):
        return [present[dates.index(max(dates))]]
    limits = {
        number + side
        for number in range(len(present) - 1)
        if _are_limits(*present[number : number + 2])
        for side in (0, 1)
    }
    results = [column for number, column in enumerate(present) if number not in limits]
    return results if len(results) == 1 else present


def _are_limits(low: _Column, high: _Column) -> bool:
    """Return True if two columns are the lower and the upper limits of a range."""
    pairs = [
        (low_cell, high_cell)
        for low_cell, high_cell in zip(low.cells, high.cells, strict=True)
        if low_cell and high_cell
    ]
    numbers = [
        [float(cell.text.replace(",", ".")) for cell in pair if re.fullmatch(r"\d+(?:[.,]\d+)?", cell.text)]
        for pair in pairs
    ]
    return len(pairs) > 1 and all(len(pair) == 2 and pair[0] < pair[1] for pair in numbers)


def clean_test_name(text: str) -> str:
    """Remove words around a test's name that are not part of it."""
    name = re.sub(
        r"(?i)^(?:(?:and|cbc|the|corrected)\s+)+|\s+(?:from|on|in) an? (?:new|fresh|second) .*",
        "",
        " ".join(text.split()),
    )
    return name.strip(" .,:;-")[:_MAX_NAME_LENGTH]
