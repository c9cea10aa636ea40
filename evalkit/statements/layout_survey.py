"""Find a statement's columns of dates and amounts, without a template.

The survey does not say what the columns mean; the builder finds that out by comparing sums.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from evalkit.core.grouping import split_into_runs
from evalkit.statements.amounts import DecimalSeparator, parse_amount
from evalkit.statements.bank_vocabulary import load_bank_vocabulary, match_at_line_start
from evalkit.statements.dates import DATE_FORMATS, parse_partial_date
from evalkit.statements.printed_sums import LabelledAmount, find_labelled_amounts
from evalkit.statements.statement_kinds import KindEvidence, find_statement_kind
from evalkit.statements.text_lines import PageWord, TextLine

#: Most words of a date: "Jan 5, 2024".
_MAX_DATE_WORDS = 3
_MAX_AMOUNT_WORDS = 3
#: Smallest share of a date column's dates that are alone in their cells.
_MIN_ALONE_SHARE = 0.7
#: Most lines of a row before its amount.
_MAX_ROW_LINES = 4
#: Most lines from a table header to a row below it.
_MAX_HEADER_DISTANCE = 4
#: Largest distance between a header's lines, in heights of a word.
_MAX_HEADER_LINE_GAP = 1.9
#: If a smaller share of the dated lines with amounts has cents, the statement prints amounts without cents.
_MIN_CENTS_SHARE = 0.3
#: Smallest number of dates in a date column, as a share of the fullest column's dates.
_MIN_SHARE_OF_FULLEST = 0.5
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


@dataclass(frozen=True)
class LayoutSurvey:
    """Columns, header lines and labelled sums found on a statement's pages."""

    lines_by_page: LinesByPage
    decimal_separator: DecimalSeparator
    cents_optional: bool
    date_column: AlignedColumn
    value_date_column: AlignedColumn | None
    amount_columns: tuple[AlignedColumn, ...]
    """The columns of amounts, from the left."""
    header_lines: tuple[TextLine, ...]
    """The lines with the titles of the columns, on all pages."""
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

    def find_row_start_positions(self, lines: Sequence[TextLine]) -> list[int]:
        """Return the positions in ``lines`` of the lines in which a row begins."""
        return [position for position, line in enumerate(lines) if self.is_row_start(line)]


def survey_layout(lines_by_page: LinesByPage) -> LayoutSurvey | None:
    """Find columns, headers and sums; None if dates or amounts form no column."""
    kind_evidence = find_statement_kind(lines_by_page)
    decimal_separator = _detect_decimal_separator(lines_by_page)
    cents_optional = _is_without_cents(lines_by_page, decimal_separator)
    dates_before_amounts = [
        placed_text
        for lines in lines_by_page
        for line in lines
        for placed_text in _find_dates_before_amounts(line, decimal_separator, cents_optional=cents_optional)
    ]
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
    other_date_columns = [column for column in further_columns if _is_date_column(column, header_lines)]
    if _has_value_date_title(date_column, header_lines):
        booking_column = next(
            (column for column in other_date_columns if not _has_value_date_title(column, header_lines)), date_column
        )
        other_date_columns = [column for column in (date_column, *other_date_columns) if column is not booking_column]
        date_column = booking_column
    amount_columns = _find_amount_columns(
        date_column, other_date_columns, header_lines, decimal_separator, cents_optional=cents_optional
    )
    if not amount_columns:
        return None
    row_dates = tuple(
        placed_text
        for lines in lines_by_page
        for position, line in enumerate(lines)
        for placed_text in find_line_dates(line)
        if not _has_date_after_amount(line, decimal_separator, cents_optional=cents_optional)
        and date_column.overlaps(placed_text.x0, placed_text.x1)
        and _has_row_amount(
            amount_columns,
            lines[position : position + _MAX_ROW_LINES],
            decimal_separator,
            cents_optional=cents_optional,
        )
    )
    return LayoutSurvey(
        lines_by_page=lines_by_page,
        decimal_separator=decimal_separator,
        cents_optional=cents_optional,
        date_column=AlignedColumn(date_column.x0, date_column.x1, row_dates),
        value_date_column=other_date_columns[0] if other_date_columns else None,
        amount_columns=amount_columns,
        header_lines=header_lines,
        labelled_amounts=tuple(
            _find_labelled_sums(
                lines_by_page,
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
    for cell in line.cells:
        words = cell.words
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


def find_line_amounts(
    line: TextLine, decimal_separator: DecimalSeparator, *, cents_optional: bool
) -> Iterator[DateOrAmount]:
    """Find the amounts at the end of each cell of the line, from the left."""
    for cell in line.cells:
        placed_amounts: list[DateOrAmount] = []
        end = len(cell.words)
        while end:
            for start in range(max(end - _MAX_AMOUNT_WORDS, 0), end):
                placed_text = DateOrAmount(line, cell.words[start:end])
                if parse_amount(
                    placed_text.text,
                    decimal_separator,
                    cents_optional=cents_optional,
                    is_ocr_text=line.is_ocr_text,
                ):
                    placed_amounts.append(placed_text)
                    end = start
                    break
            else:
                break
        # Without cents, a number at the end of a text may be no amount: all of the cell must be amounts.
        if end == 0 or not cents_optional:
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
    return "," if separator_counts[","] > separator_counts["."] else "."


def _is_without_cents(lines_by_page: LinesByPage, decimal_separator: DecimalSeparator) -> bool:
    date_lines = [line for lines in lines_by_page for line in lines if next(find_line_dates(line), None)]
    lines_with_cents = sum(
        bool(list(find_line_amounts(line, decimal_separator, cents_optional=False))) for line in date_lines
    )
    lines_with_amounts = sum(
        bool(list(find_line_amounts(line, decimal_separator, cents_optional=True))) for line in date_lines
    )
    return lines_with_cents < _MIN_CENTS_SHARE * lines_with_amounts


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


def _has_date_after_amount(line: TextLine, decimal_separator: DecimalSeparator, *, cents_optional: bool) -> bool:
    """Return True if a date follows an amount, as in lists of daily balances."""
    first_amount_x = min(
        (placed_text.x0 for placed_text in find_line_amounts(line, decimal_separator, cents_optional=cents_optional)),
        default=1.0,
    )
    return any(placed_text.x0 > first_amount_x for placed_text in find_line_dates(line))


def _find_dates_before_amounts(
    line: TextLine, decimal_separator: DecimalSeparator, *, cents_optional: bool
) -> list[DateOrAmount]:
    """Return the dates of a line with amounts; empty if a date follows an amount."""
    if _has_date_after_amount(line, decimal_separator, cents_optional=cents_optional) or not next(
        find_line_amounts(line, decimal_separator, cents_optional=cents_optional), None
    ):
        return []
    return list(find_line_dates(line))


def _is_date_column(column: AlignedColumn, header_lines: Sequence[TextLine]) -> bool:
    """Return True if the column has a title for dates, or most dates fill their cells."""
    pattern = f"{load_bank_vocabulary().columns['value_date']}|{load_bank_vocabulary().columns['date']}"
    cells = [cell for line in header_lines for cell in line.cells if column.overlaps(cell.box[0], cell.box[2])]
    alone_count = sum(
        any(cell.words == placed_text.words for cell in placed_text.line.cells)
        for placed_text in column.dates_or_amounts
    )
    return any(match_at_line_start(pattern, cell.text) for cell in cells) or alone_count > _MIN_ALONE_SHARE * len(
        column.dates_or_amounts
    )


def _has_value_date_title(column: AlignedColumn, header_lines: Sequence[TextLine]) -> bool:
    title = " ".join(
        cell.text for line in header_lines for cell in line.cells if column.overlaps(cell.box[0], cell.box[2])
    )
    return match_at_line_start(load_bank_vocabulary().columns["value_date"], title) is not None


def _has_row_amount(
    amount_columns: Sequence[AlignedColumn],
    lines: Sequence[TextLine],
    decimal_separator: DecimalSeparator,
    *,
    cents_optional: bool,
) -> bool:
    """Return True if the row that begins in the first line has an amount.

    The amount may be in that line, or in an undated line below within the same row.
    """
    for line in lines:
        is_below = line is not lines[0]
        if is_below and (line.box[0] < lines[0].words[0].box[2] or next(find_line_dates(line), None)):
            return False
        line_amounts = find_line_amounts(line, decimal_separator, cents_optional=cents_optional)
        if any(
            column.overlaps(placed_amount.x0, placed_amount.x1)
            for placed_amount in line_amounts
            for column in amount_columns
        ):
            return True
    return False


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
        if (
            len(named_columns) < 2
            or len(line.cells) < 2
            or any(re.search(r"\d[.,]\d\d\b", word.text) for word in line.words)
        ):
            continue
        for other_line in lines[max(position - 1, 0) : position + 2]:
            is_near = abs(other_line.deskewed_center_y - line.deskewed_center_y) < _MAX_HEADER_LINE_GAP * line.height
            is_heading = (
                other_line is not line and len(other_line.cells) == 1 and other_line.box[0] < line.cells[0].box[2]
            )
            if (
                is_near
                and not is_heading
                and id(other_line) not in row_line_ids
                and not any(word.text[-1:].isdigit() for word in other_line.words)
            ):
                yield other_line


def _find_amount_columns(
    date_column: AlignedColumn,
    other_date_columns: Sequence[AlignedColumn],
    header_lines: Sequence[TextLine],
    decimal_separator: DecimalSeparator,
    *,
    cents_optional: bool,
) -> tuple[AlignedColumn, ...]:
    """Find the columns of amounts right of the dates.

    A column with a single amount counts only if there is a title above it.
    """
    row_line_by_id = {id(placed_text.line): placed_text.line for placed_text in date_column.dates_or_amounts}
    dates_right_edge = max(
        (
            date_column.x1,
            *(near_column.x1 for near_column in other_date_columns if near_column.x0 < date_column.x1 + 0.1),
        )
    )
    columns = _group_into_columns(
        placed_text
        for line in row_line_by_id.values()
        for placed_text in find_line_amounts(line, decimal_separator, cents_optional=cents_optional)
        if placed_text.x0 > dates_right_edge
        and not any(excluded_column.overlaps(placed_text.x0, placed_text.x1) for excluded_column in other_date_columns)
    )
    title_cells = [cell for line in header_lines for cell in line.cells]
    return tuple(
        column
        for column in columns
        if len(column.dates_or_amounts) > 1 or any(column.overlaps(cell.box[0], cell.box[2]) for cell in title_cells)
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
            if id(line) in header_line_ids:
                continue
            if row_date := row_date_by_line_id.get(
                id(line)
            ):  # "1 May  Opening balance  1,200.00" is a row with a balance
                words_after_date = tuple(word for word in line.words if word.box[0] > row_date.x1)
                labelled_amounts = (
                    find_labelled_amounts(
                        replace(line, words=words_after_date),
                        (),
                        balance_patterns,
                        decimal_separator,
                        cents_optional=cents_optional,
                    )
                    if words_after_date
                    else ()
                )
            else:
                labelled_amounts = find_labelled_amounts(
                    line, lines[position + 1 :], patterns_by_kind, decimal_separator, cents_optional=cents_optional
                )
            yield from ((line, labelled_amount) for labelled_amount in labelled_amounts)
