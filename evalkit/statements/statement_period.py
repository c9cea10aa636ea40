"""Find the period of a statement, from which dates printed without a year get theirs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from evalkit.statements.bank_vocabulary import load_bank_vocabulary, match_at_line_start, search_in_line
from evalkit.statements.dates import (
    DATE_FORMATS,
    PartialDate,
    StatementPeriod,
    find_dates_in_text,
    find_named_month,
    parse_partial_date,
    resolve_date,
)
from evalkit.statements.statement_template import DateRules
from evalkit.statements.text_lines import TextLine

#: Two dates in a line of the first page are the statement's period if they are this many days apart.
_PERIOD_LENGTH_DAYS = range(5, 100)
#: Text that begins with a number, or with one word and a number: "5 Jan", "Jan 5", not "Balance of 5 Jan".
_STARTS_WITH_DATE = re.compile(r"\W*(?:[^\W\d_]{3,9}\.? )?\d")
_AMOUNT_WORD = re.compile(r"\W*\d[\d.,']*[.,]\d\d\W*")


def find_statement_period(
    dates: DateRules, closing_labels: Sequence[str], lines_by_page: Sequence[Sequence[TextLine]]
) -> StatementPeriod | None:
    """Return the statement's period; None if no page prints it.

    ``closing_labels``: label patterns of closing balances, whose date is the end of the period if no period is
    labelled. A date at which a payment is due is no period.
    """
    date_formats = dates.period_formats or dates.formats
    if not dates.period:
        return _find_unlabelled_period(closing_labels, lines_by_page, date_formats)
    texts = (text for _, text in find_date_labels_and_nearby_texts(lines_by_page, dates.period))
    periods = (build_statement_period(list(find_dates_in_text(text, date_formats))) for text in texts)
    return next(filter(None, periods), None)


def find_date_labels_and_nearby_texts(
    lines_by_page: Sequence[Sequence[TextLine]], label_patterns: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Find labels at the start of cells, with the texts that may contain their dates.

    Each label comes twice: with the text from its cell to the line's end, and with the cells of the line below that
    begin with a date. Texts end where a payment's due date begins.
    """
    for line, line_below in (pair for lines in lines_by_page for pair in zip_longest(lines, lines[1:])):
        cells = line.cells
        due_positions = [position for position, cell in enumerate(cells) if _is_due_label(cell.text)]
        dates_below = [
            cell.text
            for cell in (line_below.cells if line_below else ())
            if _STARTS_WITH_DATE.match(cell.text) and _find_nearest_cell(cells, cell) not in due_positions
        ]
        for position, cell in enumerate(cells):
            if label := next(
                (match.group() for pattern in label_patterns if (match := match_at_line_start(pattern, cell.text))),
                None,
            ):
                yield label, _cut_at_due_date(" ".join(other_cell.text for other_cell in cells[position:]))
                yield label, " ".join(dates_below)


def build_statement_period(partial_dates: Sequence[PartialDate]) -> StatementPeriod | None:
    """Build the period from earliest to latest date; None if no date has a year."""
    known_dates = [resolved_date for day in partial_dates if (resolved_date := resolve_date(day, None))]
    if not known_dates:
        return None
    latest = max(known_dates)
    yearless_dates = [resolve_date(day, StatementPeriod(None, latest)) for day in partial_dates if day.year is None]
    earlier_dates = [
        resolved_date for resolved_date in (*known_dates, *yearless_dates) if resolved_date and resolved_date < latest
    ]
    return StatementPeriod(min(earlier_dates) if earlier_dates else None, latest)


def _find_unlabelled_period(
    closing_labels: Sequence[str], lines_by_page: Sequence[Sequence[TextLine]], date_formats: Sequence[str]
) -> StatementPeriod | None:
    """Return the period by dates without a label; None if there are no dates.

    Two dates of one line of page 1 if they are 5 to 99 days apart, else only the end: the latest date at a closing
    balance, on page 1, or on any page; else a month with its year.
    """
    first_page_lines = lines_by_page[0] if lines_by_page else ()
    all_lines = [line for lines in lines_by_page for line in lines]
    for line in first_page_lines:
        if any(
            _AMOUNT_WORD.fullmatch(word.text) and not parse_partial_date(word.text, DATE_FORMATS) for word in line.words
        ):
            continue  # a transaction with its booking date and its value date
        period = build_statement_period(list(find_dates_in_text(_cut_at_due_date(line.text), date_formats)))
        if period and period.start and (period.end - period.start).days in _PERIOD_LENGTH_DAYS:
            return period
    closing_balance_lines = [
        line
        for line in all_lines
        if any(match_at_line_start(pattern, cell.text) for pattern in closing_labels for cell in line.cells)
    ]
    for candidate_lines in (closing_balance_lines, first_page_lines, all_lines):
        known_dates = [
            resolved_date
            for line in candidate_lines
            for day in find_dates_in_text(_cut_at_due_date(line.text), date_formats)
            if (resolved_date := resolve_date(day, None))
        ]
        if known_dates:
            return StatementPeriod(None, max(known_dates))
    return next(filter(None, (find_named_month(_cut_at_due_date(line.text)) for line in first_page_lines)), None)


def _is_due_label(text: str) -> bool:
    match = search_in_line(load_bank_vocabulary().due_date, text)
    return match is not None and not text[: match.start()].strip(" -:*")


def _cut_at_due_date(text: str) -> str:
    """Cut the text where a payment's due date, or the next statement's date, begins."""
    match = search_in_line(load_bank_vocabulary().due_date, text)
    return text[: match.start()] if match else text


def _find_nearest_cell(cells: Sequence[TextLine], cell: TextLine) -> int:
    """Return the position of the cell whose middle or edges are nearest to ``cell``'s."""
    return min(
        range(len(cells)),
        key=lambda position: min(
            abs(cells[position].box[0] - cell.box[0]),
            abs(cells[position].box[2] - cell.box[2]),
            abs(sum(cells[position].box[::2]) - sum(cell.box[::2])) / 2,
        ),
    )
