"""Tables for spreadsheets, in which no text is run as a formula."""

import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import product
from typing import Any, NamedTuple

#: Text that a spreadsheet would run as a formula, also behind blanks; apostrophes before it are escapes.
_FORMULA = re.compile(r"'*\s*[=+\-@\t\r]")


def escape_formula(text: str) -> str:
    """Prefix text with an apostrophe if a spreadsheet would run it as a formula.

    >>> escape_formula("=1+1"), escape_formula("'=1+1"), escape_formula("a = b"), escape_formula("'tis")
    ("'=1+1", "''=1+1", 'a = b', "'tis")
    """
    return f"'{text}" if _FORMULA.match(text) else text


def unescape_formula(text: str) -> str:
    """Return the text that ``escape_formula`` was given.

    >>> unescape_formula("'=1+1"), unescape_formula("''=1+1"), unescape_formula("'tis")
    ('=1+1', "'=1+1", "'tis")
    """
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


#: What a cell may hold; a time is written in UTC, because cells have no zone.
Cell = str | int | float | Decimal | date | datetime | bool | None
#: Widest column, in characters, and the most rows from which the width is estimated.
_MAX_WIDTH, _SAMPLED_ROWS = 60, 500
#: Spreadsheets hold no longer text, and no more rows.
_MAX_CELL_CHARACTERS, MAX_SHEET_ROWS = 32_767, 1_048_575
_FORMAT_BY_KIND: dict[type, str] = {datetime: "yyyy-mm-dd hh:mm", date: "yyyy-mm-dd"}


class Sheet(NamedTuple):
    """One table of a workbook."""

    name: str
    column_names: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    number_formats: Mapping[str, str] = {}
    """The format of the numbers in a column, such as ``0.00``; others are general."""


def render_workbook(sheets: Iterable[Sheet]) -> bytes:
    """Render a workbook (XLSX) with frozen headers, filters and wrapped text.

    No text becomes a formula. A text that is too long for a cell ends with an ellipsis. ValueError if a sheet has more
    rows than a spreadsheet holds.
    """
    import xlsxwriter  # imported late: few commands need it

    buffer = io.BytesIO()
    with xlsxwriter.Workbook(buffer, {"in_memory": True}) as workbook:
        head = workbook.add_format({"bold": True, "bottom": 1, "valign": "top"})
        formats: dict[tuple[str, bool], Any] = {}
        for table in sheets:
            if len(table.rows) > MAX_SHEET_ROWS:
                raise ValueError(f"the sheet {table.name} has more than {MAX_SHEET_ROWS:,} rows")
            sheet = workbook.add_worksheet(table.name)
            sheet.freeze_panes(1, 1)
            sheet.autofilter(0, 0, len(table.rows), max(len(table.column_names) - 1, 0))
            for column, name in enumerate(table.column_names):
                shown = [name, *(_shorten_cell(row[column]) for row in table.rows[:_SAMPLED_ROWS])]
                sheet.set_column(column, column, min(max(map(len, shown)) + 3, _MAX_WIDTH))
                sheet.write_string(0, column, name, head)
            for (row, cells), (column, name) in product(enumerate(table.rows, 1), enumerate(table.column_names)):
                cell = cells[column]
                is_literal = isinstance(cell, str) and escape_formula(cell) != cell
                number_format = _FORMAT_BY_KIND.get(type(cell)) or table.number_formats.get(name, "General")
                key = number_format, is_literal
                if key not in formats:
                    # A literal stays text when a person edits the cell.
                    layout = {"num_format": number_format, "valign": "top", "text_wrap": True}
                    formats[key] = workbook.add_format(layout | {"quote_prefix": is_literal})
                _write_cell(sheet, row, column, cell, formats[key])
    return buffer.getvalue()


def _shorten_cell(cell: Cell) -> str:
    return "" if cell is None else max(str(cell)[: _MAX_WIDTH * 4].split("\n"), key=len)


def _write_cell(sheet: Any, row: int, column: int, cell: Cell, layout: Any) -> None:
    if isinstance(cell, str):
        text = cell.encode("utf-8", "replace").decode()  # a lone surrogate cannot be written
        if len(text) > _MAX_CELL_CHARACTERS:
            text = f"{text[: _MAX_CELL_CHARACTERS - 1]}…"
        sheet.write_string(row, column, text, layout)
    elif isinstance(cell, bool):
        sheet.write_boolean(row, column, cell, layout)
    elif isinstance(cell, datetime):
        sheet.write_datetime(row, column, cell.astimezone(UTC).replace(tzinfo=None), layout)
    elif isinstance(cell, date):
        sheet.write_datetime(row, column, cell, layout)
    elif cell is not None and math.isfinite(cell):
        sheet.write_number(row, column, cell, layout)
