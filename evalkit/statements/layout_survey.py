"""Search for a statement's columns of dates and amounts, without a template.

The survey does not say what the columns mean; the builder finds that out by comparing sums.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import dropwhile, pairwise, takewhile, zip_longest
from statistics import median
from typing import NamedTuple

from evalkit.core.grouping import split_into_runs
from evalkit.statements.amounts import Amount, DecimalSeparator, get_sign_mark, parse_amount
from evalkit.statements.bank_vocabulary import load_bank_vocabulary, match_at_line_start, search_in_line
from evalkit.statements.dates import DATE_FORMATS, parse_partial_date
from evalkit.statements.statement_kinds import KindEvidence, find_statement_kind
from evalkit.statements.statement_template import Region
from evalkit.statements.table_row import (
    MAX_TEXT_INDENT,
    LabelledAmount,
    find_labelled_amounts,
    parse_trailing_amount,
)
from evalkit.statements.text_lines import PageWord, TextLine, join_cents, split_lines_into_panels

#: Most words of a date with a time: "Fri 5 Jan 2024 10:30 pm".
_MAX_DATE_WORDS = 6
_MAX_AMOUNT_WORDS = 3
#: Smallest share of a date column's dates that are alone in their cells.
_MIN_ALONE_SHARE = 0.7
#: Most lines of a row before its amount.
_MAX_ROW_LINES = 4
#: Most lines from a table header to a row below it.
_MAX_HEADER_DISTANCE = 4
#: Largest distance of a description's next line, in heights of a word; and how much further than usual it may be.
_CONTINUATION_GAP, _APART = 2.2, 1.35
#: Smallest number of titles in a header whose words are not known.
_MIN_TITLES = 3
#: Largest distance between a header's lines, in heights of a word.
_MAX_HEADER_LINE_GAP = 1.9
#: If a smaller share of the dated lines with amounts has cents, the statement prints amounts without cents.
_MIN_CENTS_SHARE = 0.3
#: Smallest number of dates in a date column, as a share of the fullest column's dates.
_MIN_SHARE_OF_FULLEST = 0.5
#: Smallest share of all rows in a panel, and largest share of rows with something beside them that is no part of them.
_MIN_PANEL_SHARE, _MAX_BESIDE_SHARE = 0.1, 0.8
#: Space left of a panel's dates, and largest difference of the widths of panels, in page widths.
_PANEL_MARGIN, _PANEL_TOLERANCE = 0.012, 0.04
#: A number that says nothing about money, and how many of them make a column, aligned this well, in page widths.
_REFERENCE_NUMBER, _MIN_REFERENCE_NUMBERS, _ALIGNMENT_TOLERANCE = re.compile(r"\d[\d.,/-]*"), 3, 0.008
#: Smallest distance of such a column from the dates, in page widths: check numbers are printed nearer.
_MIN_REFERENCE_DISTANCE = 0.12
_PRINTED_AMOUNT = re.compile(r"\d[.,]\d\d\b")
_GROUPED_NUMBER = re.compile(r"\d{1,3}(?:([.,])\d{3})+")
_LONE_DAY = re.compile(r"\d{1,2}")
_LETTERS, _WORD = re.compile(r"[^\W\d_]{2}"), re.compile(r"[^\W\d_]{4}")
LinesByPage = Sequence[Sequence[TextLine]]


@dataclass(frozen=True)
class DateOrAmount:
    """A date or an amount in a line, with its words and position."""

    line: TextLine
    words: tuple[PageWord, ...]

    @property
    def text(self) -> str:
        """The date or amount as printed."""
        return " ".join(word.text for word in self.words)

    @property
    def x0(self) -> float:
        """Left edge, as a fraction of the page's width."""
        return self.words[0].box[0]

    @property
    def x1(self) -> float:
        """Right edge, as a fraction of the page's width."""
        return self.words[-1].box[2]


@dataclass(frozen=True)
class AlignedColumn:
    """A column of dates or amounts that are printed below one another."""

    x0: float
    x1: float
    dates_or_amounts: tuple[DateOrAmount, ...]

    def overlaps(self, x0: float, x1: float) -> bool:
        """Return True if the column overlaps the horizontal range x0..x1."""
        return self.x0 < x1 and x0 < self.x1

    def list_titles(self, header_lines: Iterable[TextLine]) -> list[str]:
        """List the cells of table headers that are above or below the column."""
        return [cell.text for line in header_lines for cell in line.cells if self.overlaps(cell.box[0], cell.box[2])]


class PlacedAmount(NamedTuple):
    """An amount outside the rows, with a pattern of the words next to it."""

    label: str
    amount: Amount
    is_above_rows: bool
    is_below_rows: bool


@dataclass(frozen=True)
class LayoutSurvey:
    """Columns, header lines and labelled sums found on a statement's pages."""

    lines_by_page: LinesByPage
    """The lines of each page; those of tables that are printed side by side follow one another."""
    panels: tuple[Region, ...]
    """The horizontal ranges of the tables that are printed side by side; empty if nothing is beside the rows."""
    decimal_separator: DecimalSeparator
    cents_optional: bool
    date_column: AlignedColumn
    value_date_column: AlignedColumn | None
    amount_columns: tuple[AlignedColumn, ...]
    """The columns of amounts, from the left."""
    header_lines: tuple[TextLine, ...]
    """The lines with the titles of the columns, on all pages."""
    direction_column: AlignedColumn | None
    """The column of marks that say the direction of the row's amount."""
    reference_columns: tuple[AlignedColumn, ...]
    """Columns of numbers that are no amounts, such as receipts' numbers, and of towns behind the descriptions."""
    labelled_amounts: tuple[tuple[TextLine, LabelledAmount], ...]
    kind_evidence: KindEvidence

    def is_row_start(self, line: TextLine) -> bool:
        """Return True if a row of the table begins in the line."""
        return any(placed_text.line is line for placed_text in self.date_column.dates_or_amounts)

    def is_header_line(self, line: TextLine) -> bool:
        """Return True if the line has titles of columns."""
        return any(header_line is line for header_line in self.header_lines)

    def is_sum_line(self, line: TextLine) -> bool:
        """Return True if the line has a labelled sum, such as a closing balance."""
        return any(sum_line is line for sum_line, _ in self.labelled_amounts)

    @cached_property
    def continuation_gap(self) -> float:
        """The largest distance of a description's next line, in heights of a word.

        Within a table no line of a row is much further from the one above than most lines are.
        """
        steps = [
            (below.deskewed_center_y - above.deskewed_center_y) / above.height
            for lines, row_positions in self.row_positions_by_page.values()
            for above, below in pairwise(lines[row_positions[0] : row_positions[-1] + 1])
        ]
        return min(_CONTINUATION_GAP, _APART * median(steps)) if len(steps) > 1 else _CONTINUATION_GAP

    @cached_property
    def row_positions_by_page(self) -> dict[int, tuple[Sequence[TextLine], list[int]]]:
        """Lines of each page with rows, and the positions at which rows begin.

        They are by page number.
        """
        positions_by_page = {
            page_number: (lines, [position for position, line in enumerate(lines) if self.is_row_start(line)])
            for page_number, lines in enumerate(self.lines_by_page, 1)
        }
        return {page_number: page for page_number, page in positions_by_page.items() if page[1]}

    @cached_property
    def amounts_of_any_label(self) -> tuple[PlacedAmount, ...]:
        """Amounts outside the rows next to words of no known sum, top to bottom."""
        lines = [
            (line, page_lines[position + 1 :])
            for page_lines in self.lines_by_page
            for position, line in enumerate(page_lines)
        ]
        row_positions = [position for position, (line, _) in enumerate(lines) if self.is_row_start(line)]
        return tuple(
            PlacedAmount(
                build_pattern_with_any_numbers(labelled.label),
                labelled.amount,
                is_above_rows=position < row_positions[0],
                is_below_rows=position > row_positions[-1],
            )
            for position, (line, lines_below) in enumerate(lines)
            if not (self.is_row_start(line) or self.is_header_line(line) or self.is_sum_line(line))
            for labelled in find_labelled_amounts(
                line,
                lines_below,
                {"any": (r"[^\W\d_]{2}",)},
                self.decimal_separator,
                cents_optional=self.cents_optional,
            )
        )

    def select_table_lines(self, page_number: int) -> Sequence[TextLine]:
        """Return a page's lines from the first row to the line below the last."""
        lines, row_positions = self.row_positions_by_page[page_number]
        return lines[row_positions[0] : row_positions[-1] + 2]


def survey_layout(lines_by_page: LinesByPage) -> LayoutSurvey | None:
    """Find columns, headers and sums; None if dates or amounts form no column."""
    kind_evidence = find_statement_kind(lines_by_page)
    decimal_separator = _detect_decimal_separator(lines_by_page)
    if decimal_separator == " ":
        lines_by_page = [join_cents(lines) for lines in lines_by_page]
    cents_optional = _is_without_cents(lines_by_page, decimal_separator)
    panels = _find_panels(lines_by_page, decimal_separator, cents_optional=cents_optional)
    lines_beside: LinesByPage = ()
    if panels:
        ordered_lines = [_order_lines_by_panel(lines, panels, decimal_separator) for lines in lines_by_page]
        lines_by_page, lines_beside = zip(*ordered_lines, strict=True)
    list_line_ids = {
        id(line)
        for lines in lines_by_page
        for line in _find_list_lines(lines, decimal_separator, cents_optional=cents_optional)
    }
    dates_before_amounts = _drop_dates_beside_labels(
        [
            placed_text
            for lines in lines_by_page
            for line in lines
            if id(line) not in list_line_ids
            and next(find_line_amounts(line, decimal_separator, cents_optional=cents_optional), None)
            for placed_text in find_line_dates(line)
        ]
    )
    date_columns = _group_into_columns(dates_before_amounts)
    if not date_columns:
        return None
    fullest_count = max(len(column.dates_or_amounts) for column in date_columns)
    date_column, *further_columns = sorted(
        (
            candidate
            for candidate in date_columns
            if len(candidate.dates_or_amounts) >= _MIN_SHARE_OF_FULLEST * fullest_count
        ),
        key=lambda candidate: candidate.x0,
    )
    header_lines = tuple(
        line for lines in lines_by_page for line in _find_header_lines(lines, date_column.dates_or_amounts)
    )
    date_columns = [date_column, *(column for column in further_columns if _is_date_column(column, header_lines))]
    date_column = _find_booking_column(date_columns, header_lines)
    other_date_columns = [column for column in date_columns if column is not date_column]
    table_lines = [line for lines in lines_by_page for line in _select_table_lines(lines, date_column)]
    amount_columns = _find_amount_columns(
        table_lines, date_column, other_date_columns, header_lines, decimal_separator, cents_optional=cents_optional
    )
    if not amount_columns:
        return None
    row_dates = _drop_dates_beside_labels(
        [
            placed_text
            for lines in lines_by_page
            for position, line in enumerate(lines)
            for placed_text in find_line_dates(line)
            if id(line) not in list_line_ids
            and date_column.overlaps(placed_text.x0, placed_text.x1)
            and _has_row_amount(
                placed_text,
                amount_columns,
                lines[position : position + _MAX_ROW_LINES],
                decimal_separator,
                cents_optional=cents_optional,
            )
        ]
    )
    return LayoutSurvey(
        lines_by_page=lines_by_page,
        panels=panels,
        decimal_separator=decimal_separator,
        cents_optional=cents_optional,
        date_column=AlignedColumn(date_column.x0, date_column.x1, row_dates),
        value_date_column=other_date_columns[0] if other_date_columns else None,
        amount_columns=amount_columns,
        header_lines=header_lines,
        direction_column=_find_direction_column(row_dates, amount_columns),
        reference_columns=(
            *_find_reference_columns(
                [placed_date.line for placed_date in row_dates],
                date_column.x1 + _MIN_REFERENCE_DISTANCE,
                (*amount_columns, *other_date_columns),
            ),
            *_find_other_text_columns(row_dates, header_lines, amount_columns, other_date_columns),
        ),
        labelled_amounts=tuple(
            _find_labelled_sums(
                (*lines_by_page, *lines_beside),
                row_dates,
                header_lines,
                kind_evidence,
                decimal_separator,
                cents_optional=cents_optional,
            )
        ),
        kind_evidence=kind_evidence,
    )


def find_line_dates(line: TextLine) -> Iterator[DateOrAmount]:
    """Find the dates at the start of each cell of the line, from the left."""
    for cell, next_cell in zip_longest(line.cells, line.cells[1:]):
        # In scans a day and its month may be apart.
        is_divided = line.is_ocr_text and next_cell is not None and _LONE_DAY.fullmatch(cell.text) is not None
        words = (*cell.words, *next_cell.words) if is_divided and next_cell else cell.words
        while words:
            candidates = (DateOrAmount(line, words[:size]) for size in range(min(_MAX_DATE_WORDS, len(words)), 0, -1))
            placed_date = next(
                (
                    candidate
                    for candidate in candidates
                    if parse_partial_date(candidate.text, DATE_FORMATS, is_ocr_text=line.is_ocr_text)
                ),
                None,
            )
            if placed_date is None:
                break
            yield placed_date
            words = words[len(placed_date.words) :]  # a second date may follow in the same cell


def _drop_dates_beside_labels(dates: Sequence[DateOrAmount]) -> tuple[DateOrAmount, ...]:
    """Leave out dates outside the rows whose lines lack text where rows have it.

    Such a date is printed beside the labels of a summary, or in a table of rates.
    """
    text_x0 = {id(placed_date): _find_text_x0(placed_date) for placed_date in dates}
    limit = median(text_x0.values() or [0.0]) + MAX_TEXT_INDENT

    def is_beside_label(placed_date: DateOrAmount) -> bool:
        return text_x0[id(placed_date)] > limit

    after_head = [*dropwhile(is_beside_label, dates)]
    return tuple([*dropwhile(is_beside_label, reversed(after_head))][::-1])


def _find_text_x0(placed_date: DateOrAmount) -> float:
    """Return the left edge of the first other word behind a date, or infinity."""
    date_word_ids = {id(word) for other_date in find_line_dates(placed_date.line) for word in other_date.words}
    return next(
        (
            word.box[0]
            for word in placed_date.line.words
            if word.box[0] > placed_date.x1 and id(word) not in date_word_ids and _LETTERS.search(word.text)
        ),
        math.inf,
    )


def find_line_amounts(
    line: TextLine, decimal_separator: DecimalSeparator, *, cents_optional: bool
) -> Iterator[DateOrAmount]:
    """Find the amounts at the end of each cell of the line, from the left."""
    for cell in line.cells:
        placed_amounts: list[DateOrAmount] = []
        words = cell.words
        while words and (
            trailing_amount := parse_trailing_amount(
                replace(cell, words=words),
                decimal_separator,
                cents_optional=cents_optional,
                max_words=_MAX_AMOUNT_WORDS,
            )
        ):
            placed_amounts.append(DateOrAmount(line, words[trailing_amount[1] :]))
            words = words[: trailing_amount[1]]
        # Without cents, a number at the end of a text may be no amount: all of the cell must be amounts.
        if not words or not cents_optional:
            yield from reversed(placed_amounts)


def build_pattern_with_any_numbers(text: str) -> str:
    r"""Build a pattern of the text's words in which any number matches.

    >>> print(build_pattern_with_any_numbers("Balance on 1 May (total)"))
    Balance on \d+ May \(total\)
    """
    words = (re.sub(r"\\?\d+", lambda _: r"\d+", re.escape(word)) for word in text.split())
    return " ".join(words).replace("\\-", "-").replace("\\#", "#").replace("\\&", "&")


def _detect_decimal_separator(lines_by_page: LinesByPage) -> DecimalSeparator:
    separator_counts = Counter(
        word.text.rstrip("-+)CRDHS")[-3:-2]
        for lines in lines_by_page
        for line in lines
        for word in line.words
        if re.fullmatch(r".*\d[.,]\d\d[-+)]?(?:CR|DR|C|D|H|S)?", word.text)
        and not parse_partial_date(word.text, DATE_FORMATS)
    )
    cents_apart_count = sum(
        " " in word.text for lines in lines_by_page for line in join_cents(lines) for word in line.words
    )
    if cents_apart_count > 2 * separator_counts.total():
        return " "
    # Without cents, a point between thousands leaves the comma for them.
    separator_counts.update(
        {".": ",", ",": "."}[match[1]]
        for lines in lines_by_page
        for line in lines
        for word in line.words
        if (match := _GROUPED_NUMBER.fullmatch(word.text))
    )
    return "," if separator_counts[","] > separator_counts["."] else "."


def _is_without_cents(lines_by_page: LinesByPage, decimal_separator: DecimalSeparator) -> bool:
    date_lines = [line for lines in lines_by_page for line in lines if next(find_line_dates(line), None)]
    count_with_cents, count = (
        sum(any(find_line_amounts(line, decimal_separator, cents_optional=is_optional)) for line in date_lines)
        for is_optional in (False, True)
    )
    return count_with_cents < _MIN_CENTS_SHARE * count


def _group_into_columns(dates_or_amounts: Iterable[DateOrAmount]) -> list[AlignedColumn]:
    groups = split_into_runs(
        sorted(dates_or_amounts, key=lambda placed_text: placed_text.x0),
        lambda group, placed_text: placed_text.x0 < _find_right_edge(group),
    )
    return [
        AlignedColumn(min(placed_text.x0 for placed_text in group), _find_right_edge(group), tuple(group))
        for group in groups
    ]


def _find_right_edge(dates_or_amounts: Iterable[DateOrAmount]) -> float:
    return max(placed_text.x1 for placed_text in dates_or_amounts)


def _find_list_lines(
    lines: Sequence[TextLine], decimal_separator: DecimalSeparator, *, cents_optional: bool
) -> Iterator[TextLine]:
    """Find the lines of lists of daily balances; the last one may have a single date."""
    is_in_list = False
    for line in lines:
        is_in_list = _has_date_after_amount(line, decimal_separator, cents_optional=cents_optional) or (
            is_in_list and not _LETTERS.search(line.text)
        )
        if is_in_list:
            yield line


def _has_date_after_amount(line: TextLine, decimal_separator: DecimalSeparator, *, cents_optional: bool) -> bool:
    """Return True if a date follows an amount without a text."""
    first_amount_x = min(
        (placed_text.x0 for placed_text in find_line_amounts(line, decimal_separator, cents_optional=cents_optional)),
        default=1.0,
    )
    dates = _find_certain_dates(line, decimal_separator)
    return any(placed_date.x0 > first_amount_x for placed_date in dates) and not any(
        dates[0].x1 < word.box[0] < first_amount_x and _LETTERS.search(word.text) for word in line.words
    )


def _find_certain_dates(line: TextLine, decimal_separator: DecimalSeparator) -> list[DateOrAmount]:
    """Return the dates of a line without those that may be amounts, such as 24.08."""
    return [
        placed_date
        for placed_date in find_line_dates(line)
        if placed_date.words[0] is line.words[0] or not parse_amount(placed_date.text, decimal_separator)
    ]


@dataclass
class _LinePart:
    """Words of a line that may be a row: a date, a text and amounts, in this order."""

    line: TextLine
    date: DateOrAmount | None
    text_x: float | None = None
    """Left edge of the first word with letters."""
    amounts: list[DateOrAmount] = field(default_factory=list)

    @property
    def left_edge(self) -> float:
        """Left edge of the date, or of the text."""
        return self.date.x0 if self.date else self.text_x or 0.0

    @property
    def is_row(self) -> bool:
        """True if the words have all that a transaction has."""
        return self.date is not None and self.text_x is not None and bool(self.amounts)


def _split_line_into_parts(
    line: TextLine, decimal_separator: DecimalSeparator, *, cents_optional: bool
) -> list[_LinePart]:
    """Divide a line before each date or text that follows an amount."""
    dates = {id(placed_date.words[0]): placed_date for placed_date in _find_certain_dates(line, decimal_separator)}
    amounts = list(find_line_amounts(line, decimal_separator, cents_optional=cents_optional))
    amount_by_word_id = {id(word): amount for amount in amounts for word in amount.words}
    date_word_ids = {id(word) for placed_date in dates.values() for word in placed_date.words}
    parts = [_LinePart(line, None)]
    for word in line.words:
        if placed_date := dates.get(id(word)):
            if parts[-1].amounts or (parts[-1].date is None and parts[-1].text_x is not None):
                parts.append(_LinePart(line, placed_date))
            elif parts[-1].date is None:
                parts[-1].date = placed_date
        elif amount := amount_by_word_id.get(id(word)):
            if amount not in parts[-1].amounts:
                parts[-1].amounts.append(amount)
        elif id(word) not in date_word_ids and _LETTERS.search(word.text):
            if parts[-1].amounts:
                parts.append(_LinePart(line, None))
            if parts[-1].text_x is None:
                parts[-1].text_x = word.box[0]
    return parts


def _find_panels(
    lines_by_page: LinesByPage, decimal_separator: DecimalSeparator, *, cents_optional: bool
) -> tuple[Region, ...]:
    """Find the horizontal ranges of tables that are printed side by side.

    A single range if only the words beside it, such as a list of daily balances, are no part of the table; none if the
    rows have nothing beside them.
    """
    parts_by_line = [
        _split_line_into_parts(line, decimal_separator, cents_optional=cents_optional)
        for lines in lines_by_page
        for line in lines
    ]
    row_parts = [part for parts in parts_by_line for part in parts if part.is_row]
    columns = sorted(
        _group_into_columns(part.date for part in row_parts if part.date),
        key=lambda column: -len(column.dates_or_amounts),
    )
    if not columns:
        return ()
    panels: list[tuple[float, float, list[_LinePart]]] = []
    for column in columns:
        column_parts = [part for part in row_parts if part.date in column.dates_or_amounts]
        right_edge = max(amount.x1 for part in column_parts for amount in part.amounts)
        if len(column_parts) > max(1, _MIN_PANEL_SHARE * len(row_parts)) and not any(
            column.x0 < x1 and x0 < right_edge for x0, x1, _ in panels
        ):
            panels.append((column.x0, right_edge, column_parts))
    main_x0, main_right_edge, main_parts = panels[0]
    ranges = sorted((x0, x1) for x0, x1, _ in panels if abs((x1 - x0) - (main_right_edge - main_x0)) < _PANEL_TOLERANCE)
    # What follows a row's amounts on few lines only, and has amounts of its own, is no part of the row.
    foreign_parts = [
        (part.left_edge, part is not parts[0] and parts[0].is_row)
        for parts in parts_by_line
        for part in parts
        if (part.amounts or part.date)
        and (part.date is None) != (part.text_x is None)
        and part.left_edge > ranges[-1][1]
    ]
    rows_with_foreign_part = sum(is_behind_row for _, is_behind_row in foreign_parts)
    right_edge = (
        min(x0 for x0, _ in foreign_parts) - _PANEL_MARGIN
        if len(foreign_parts) > 1 and rows_with_foreign_part < _MAX_BESIDE_SHARE * len(main_parts)
        else 1.0
    )
    has_left_part = any(
        len(parts) > 1 and parts[1].is_row and parts[0].date is None and parts[0].amounts for parts in parts_by_line
    )
    if len(ranges) == 1 and right_edge == 1.0 and not has_left_part:
        return ()
    edges = [*(x0 - _PANEL_MARGIN for x0, _ in ranges), right_edge]
    return tuple(
        Region(box=(max(left_edge, 0.0), 0.0, next_edge, 1.0), shift=panel_x0 - ranges[0][0])
        for (panel_x0, _), (left_edge, next_edge) in zip(ranges, pairwise(edges), strict=True)
    )


def _order_lines_by_panel(
    lines: Sequence[TextLine], panels: Sequence[Region], decimal_separator: DecimalSeparator
) -> tuple[list[TextLine], list[TextLine]]:
    """Order a page's lines: above the rows, each panel, below.

    Lines beside the rows are returned apart.
    """
    row_positions = [
        position
        for position, line in enumerate(lines)
        if any(part.is_row for part in _split_line_into_parts(line, decimal_separator, cents_optional=False))
    ]
    if not row_positions:
        return list(lines), []
    first = row_positions[0]
    while first > max(row_positions[0] - _MAX_HEADER_DISTANCE, 0) and not next(
        find_line_amounts(lines[first - 1], decimal_separator, cents_optional=False), None
    ):
        first -= 1
    last = row_positions[-1]
    while (
        last + 1 < len(lines)
        and lines[last + 1].deskewed_center_y - lines[last].deskewed_center_y
        < _MAX_HEADER_LINE_GAP * lines[last].height
    ):
        last += 1
    placed_lines = split_lines_into_panels(lines[first : last + 1], panels)
    table_lines = [line_in_panel for _, line_in_panel in placed_lines if line_in_panel]
    lines_beside = [line for line, line_in_panel in placed_lines if line_in_panel is None]
    return [*lines[:first], *table_lines, *lines[last + 1 :]], lines_beside


def _find_direction_column(
    row_dates: Sequence[DateOrAmount], amount_columns: Sequence[AlignedColumn]
) -> AlignedColumn | None:
    """Find the column of marks for the amounts' direction, left of the amounts."""
    lines = [placed_text.line for placed_text in row_dates]
    marks = [
        DateOrAmount(line, cell.words)
        for line in lines
        for cell in line.cells
        if len(cell.words) == 1 and get_sign_mark(cell.text)
    ]
    return next(
        (
            column
            for column in _group_into_columns(marks)
            if len(column.dates_or_amounts) > 1
            and not any(amount_column.overlaps(column.x0, column.x1) for amount_column in amount_columns)
            and all(
                get_sign_mark(word.text)
                for line in lines
                for word in line.words
                if column.overlaps(word.box[0], word.box[2])
            )
        ),
        None,
    )


def _is_date_column(column: AlignedColumn, header_lines: Sequence[TextLine]) -> bool:
    """Return True if the column has a title for dates, or most dates fill their cells."""
    pattern = f"{load_bank_vocabulary().columns['value_date']}|{load_bank_vocabulary().columns['date']}"
    alone_count = sum(
        any(cell.words == placed_text.words for cell in placed_text.line.cells)
        for placed_text in column.dates_or_amounts
    )
    return any(
        match_at_line_start(pattern, title) for title in column.list_titles(header_lines)
    ) or alone_count > _MIN_ALONE_SHARE * len(column.dates_or_amounts)


def _has_value_date_title(column: AlignedColumn, header_lines: Sequence[TextLine]) -> bool:
    title = " ".join(column.list_titles(header_lines))
    return match_at_line_start(load_bank_vocabulary().columns["value_date"], title) is not None


def _find_booking_column(columns: Sequence[AlignedColumn], header_lines: Sequence[TextLine]) -> AlignedColumn:
    """Find the first column of no value dates; without known titles the one in order.

    Rows are printed in the order of their booking.
    """
    pattern = load_bank_vocabulary().columns["date"]
    titles = [title for column in columns for title in column.list_titles(header_lines)]
    is_named = any(match_at_line_start(pattern, title) for title in titles)
    return min(
        columns,
        key=lambda column: (_has_value_date_title(column, header_lines), not is_named and _count_disorder(column)),
    )


def _count_disorder(column: AlignedColumn) -> int:
    """Count dates against the order of most, in the better order of day and month."""
    placed_dates = sorted(
        column.dates_or_amounts, key=lambda placed: (placed.line.page_number, placed.line.deskewed_center_y)
    )
    counts: list[int] = []
    for first_code in ("%d", "%m"):
        formats = sorted(DATE_FORMATS, key=lambda name: not name.startswith(first_code))
        days = [parse_partial_date(placed.text, formats) for placed in placed_dates]
        steps = [(a.year or 0, *a[1:]) < (b.year or 0, *b[1:]) for a, b in pairwise(filter(None, days)) if a != b]
        counts += (steps.count(True), steps.count(False))
    return min(counts)


def _has_row_amount(
    placed_date: DateOrAmount,
    amount_columns: Sequence[AlignedColumn],
    lines: Sequence[TextLine],
    decimal_separator: DecimalSeparator,
    *,
    cents_optional: bool,
) -> bool:
    """Return True if the row that begins in the first line has an amount.

    The amount may be in that line, or in an undated line below within the same row.
    """
    row_lines = takewhile(
        lambda line: line is lines[0] or not (line.box[0] < placed_date.x1 or next(find_line_dates(line), None)),
        lines,
    )
    return any(
        column.overlaps(placed_amount.x0, placed_amount.x1)
        for line in row_lines
        for placed_amount in find_line_amounts(line, decimal_separator, cents_optional=cents_optional)
        for column in amount_columns
    )


def _find_header_lines(lines: Sequence[TextLine], row_dates: Sequence[DateOrAmount]) -> Iterator[TextLine]:
    """Find the lines of table headers, above the first row or between rows."""
    row_line_ids = {id(placed_text.line) for placed_text in row_dates}
    title_patterns = load_bank_vocabulary().columns
    for position, line in enumerate(lines):
        # A line without a row within the next few lines is no header.
        if id(line) in row_line_ids or not any(
            id(other_line) in row_line_ids for other_line in lines[position + 1 : position + 1 + _MAX_HEADER_DISTANCE]
        ):
            continue
        named_columns = {
            name
            for cell in line.cells
            for name, pattern in title_patterns.items()
            if match_at_line_start(pattern, cell.text)
        }
        next_line = lines[position + 1] if position + 1 < len(lines) else None
        rows_below = [other_line for other_line in lines[position + 1 :] if id(other_line) in row_line_ids]
        if (
            not ((len(named_columns) > 1 and len(line.cells) > 1) or _is_above_columns(line, rows_below))
            or any(_PRINTED_AMOUNT.search(word.text) for word in line.words)
            # A summary of labels above their amounts is no header.
            or (
                next_line
                and id(next_line) not in row_line_ids
                and all(_PRINTED_AMOUNT.search(cell.text) and not _WORD.search(cell.text) for cell in next_line.cells)
            )
        ):
            continue
        for other_line in lines[max(position - 2, 0) : position + 3]:
            is_near = abs(other_line.deskewed_center_y - line.deskewed_center_y) < _MAX_HEADER_LINE_GAP * line.height
            # On later pages the end of a row may follow the header.
            is_heading = (
                other_line is not line
                and len(other_line.cells) == 1
                and (
                    other_line.box[0] < line.cells[0].box[2]
                    or (
                        line.page_number > 1
                        and not any(
                            match_at_line_start(pattern, other_line.text) for pattern in title_patterns.values()
                        )
                    )
                )
            )
            if (
                is_near
                and not is_heading
                and id(other_line) not in row_line_ids
                and not any(map(str.isdigit, other_line.text))
            ):
                yield other_line


def _is_above_columns(line: TextLine, rows_below: Sequence[TextLine]) -> bool:
    """Return True if a line's words span the first to the last column of rows."""
    cells = line.cells
    firsts, lasts = ([row.cells[index].box for row in rows_below if _LETTERS.search(row.text)] for index in (0, -1))
    return (
        len(cells) >= _MIN_TITLES
        and not any(map(str.isdigit, line.text))
        and all(
            any(title.box[0] < box[2] and box[0] < title.box[2] for box in boxes)
            for title, boxes in ((cells[0], firsts), (cells[-1], lasts))
        )
    )


def _select_table_lines(lines: Sequence[TextLine], date_column: AlignedColumn) -> Sequence[TextLine]:
    """Select lines from the first to the last dated row, and those right after it."""
    row_line_ids = {id(placed_text.line) for placed_text in date_column.dates_or_amounts}
    row_positions = [position for position, line in enumerate(lines) if id(line) in row_line_ids]
    if not row_positions:
        return ()
    end = row_positions[-1] + 1
    while (
        end < len(lines)
        and lines[end].deskewed_center_y - lines[end - 1].deskewed_center_y < _MAX_HEADER_LINE_GAP * lines[end].height
    ):
        end += 1
    return lines[row_positions[0] : end]


def _find_reference_columns(
    table_lines: Sequence[TextLine], left_edge: float, taken_columns: Sequence[AlignedColumn]
) -> tuple[AlignedColumn, ...]:
    """Find columns of numbers that are no amounts, such as receipts' numbers.

    Right of ``left_edge``, aligned at one side, with nothing else printed below one another.
    """
    cells = [cell for line in table_lines for cell in line.cells]
    numbers = [
        DateOrAmount(cell, cell.words)
        for cell in cells
        if cell.box[0] > left_edge
        and _REFERENCE_NUMBER.fullmatch(cell.text)
        and not any(column.overlaps(cell.box[0], cell.box[2]) for column in taken_columns)
    ]
    return tuple(
        column
        for column in _group_into_columns(numbers)
        if len(column.dates_or_amounts) >= _MIN_REFERENCE_NUMBERS
        and min(
            max(edges) - min(edges)
            for edges in (
                [placed_text.x0 for placed_text in column.dates_or_amounts],
                [placed_text.x1 for placed_text in column.dates_or_amounts],
            )
        )
        < _ALIGNMENT_TOLERANCE
        and sum(column.overlaps(cell.box[0], cell.box[2]) for cell in cells) == len(column.dates_or_amounts)
    )


def _find_other_text_columns(
    row_dates: Sequence[DateOrAmount],
    header_lines: Sequence[TextLine],
    amount_columns: Sequence[AlignedColumn],
    other_date_columns: Sequence[AlignedColumn],
) -> Iterator[AlignedColumn]:
    """Find columns of text other than the descriptions: towns, codes, times.

    Without a title of descriptions, theirs is the one with the most text below it.
    """
    taken_columns, patterns = (*amount_columns, *other_date_columns), load_bank_vocabulary().columns

    def find_texts_below(title: TextLine) -> list[DateOrAmount]:
        return [
            DateOrAmount(cell, cell.words)
            for placed_date in row_dates
            for cell in placed_date.line.cells
            if abs(cell.box[0] - title.box[0]) < _ALIGNMENT_TOLERANCE
            and placed_date.x1 < cell.box[0]
            and not any(column.overlaps(cell.box[0], cell.box[2]) for column in taken_columns)
        ]

    columns = [
        ({name for name, pattern in patterns.items() if match_at_line_start(pattern, title.text)}, texts)
        for line in header_lines
        for title in line.cells
        if (texts := find_texts_below(title))
    ]
    descriptions = [texts for names, texts in columns if "description" in names] or sorted(
        (texts for names, texts in columns if not names), key=lambda texts: -sum(len(text.text) for text in texts)
    )
    texts = [
        text
        for names, texts in columns
        if "place" in names or (descriptions and names <= {"reference"} and texts[0].words != descriptions[0][0].words)
        for text in texts
    ]
    return (column for column in _group_into_columns(texts) if column.x1 < amount_columns[0].x1)


def _find_amount_columns(
    table_lines: Sequence[TextLine],
    date_column: AlignedColumn,
    other_date_columns: Sequence[AlignedColumn],
    header_lines: Sequence[TextLine],
    decimal_separator: DecimalSeparator,
    *,
    cents_optional: bool,
) -> tuple[AlignedColumn, ...]:
    """Find the columns of amounts right of the dates.

    A column with a single amount counts only if it is a row's, and there is a title above it.
    """
    row_line_ids = {id(placed_text.line) for placed_text in date_column.dates_or_amounts}
    dates_right_edge = max(
        (
            date_column.x1,
            *(near_column.x1 for near_column in other_date_columns if near_column.x0 < date_column.x1 + 0.1),
        )
    )
    columns = _group_into_columns(
        placed_text
        for line in table_lines
        if id(line) in row_line_ids or not next(find_line_dates(line), None)
        for placed_text in find_line_amounts(line, decimal_separator, cents_optional=cents_optional)
        if placed_text.x0 > dates_right_edge
        and not any(excluded_column.overlaps(placed_text.x0, placed_text.x1) for excluded_column in other_date_columns)
    )
    columns_of_rows = [
        column
        for column in columns
        if any(id(placed_amount.line) in row_line_ids for placed_amount in column.dates_or_amounts)
    ]
    # Beside rows with amounts, amounts in further lines only are part of the descriptions.
    return tuple(
        column
        for column in columns_of_rows or columns
        if len(column.dates_or_amounts) > 1 or (column.list_titles(header_lines) and columns_of_rows)
    )


def _find_labelled_sums(
    lines_by_page: LinesByPage,
    row_dates: Sequence[DateOrAmount],
    header_lines: Sequence[TextLine],
    kind_evidence: KindEvidence,
    decimal_separator: DecimalSeparator,
    *,
    cents_optional: bool,
) -> Iterator[tuple[TextLine, LabelledAmount]]:
    vocabulary = load_bank_vocabulary()
    kind = kind_evidence.kind
    patterns_by_kind: Mapping[str, tuple[str, ...]] = {
        "opening": (vocabulary.opening,),
        "closing": (vocabulary.closing,),
        "deposits": ((kind and kind.deposits) or vocabulary.deposits,),
        "withdrawals": ((kind and kind.withdrawals) or vocabulary.withdrawals,),
    }
    balance_patterns = {kind: patterns_by_kind[kind] for kind in ("opening", "closing")}
    row_date_by_line_id = {id(placed_text.line): placed_text for placed_text in row_dates}
    header_line_ids = {id(line) for line in header_lines}
    for lines in lines_by_page:
        for position, line in enumerate(lines):
            label_line, lines_below, patterns = line, lines[position + 1 :], patterns_by_kind
            if row_date := row_date_by_line_id.get(id(line)):
                # "1 May  Opening balance  1,200.00" is a row with a balance.
                words_after_date = tuple(word for word in line.words if word.box[0] > row_date.x1)
                label_line, lines_below, patterns = replace(line, words=words_after_date), (), balance_patterns
            if label_line.words and id(line) not in header_line_ids:
                labelled_amounts = find_labelled_amounts(
                    label_line, lines_below, patterns, decimal_separator, cents_optional=cents_optional
                )
                yield from (
                    (line, labelled_amount)
                    for labelled_amount in labelled_amounts
                    if not search_in_line(vocabulary.other_period, labelled_amount.label)
                )
