"""Search for a statement's date format, day-month order and period.

The order is the same for all dates, and the period gives the year.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from itertools import pairwise, zip_longest
from typing import Literal, NamedTuple, get_args

from evalkit.statements.bank_vocabulary import load_bank_vocabulary, match_at_line_start, search_in_line
from evalkit.statements.dates import (
    DATE_FORMATS,
    PERIOD_MARGIN,
    PartialDate,
    StatementPeriod,
    exchange_day_and_month,
    find_dates_in_text,
    find_named_month,
    has_year,
    parse_partial_date,
    resolve_date,
)
from evalkit.statements.layout_survey import LayoutSurvey, build_pattern_with_any_numbers
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


RowOrder = Literal["oldest_first", "newest_first"]
FirstNumber = Literal["day", "month", "year"]
#: No statement covers more: dates further apart are read in a wrong order.
_LONGEST_SPAN = timedelta(days=800)
#: The longest time that a statement covers, if it prints only its end.
_LONGEST_PERIOD = timedelta(days=100)
#: A period without a label counts as this many misfits if labels are printed.
_UNLABELLED_MISFIT = 0.5
#: Most statements cover a month.
_USUAL_PERIOD = timedelta(days=35)
#: Amounts of these currencies are seldom printed beside dates with the month first.
_DAY_FIRST_CURRENCY = re.compile(r"[€£₹]|\b(?:EUR|GBP|CHF|SGD|INR|AUD|NZD|HKD|ZAR)\b")


class DateHypothesis(NamedTuple):
    """A possible date format and row order, with a score."""

    rules: DateRules
    row_order: RowOrder
    prior: float


class _JudgedRules(NamedTuple):
    rules: DateRules
    row_dates: tuple[date, ...]
    misfit_count: float
    """Dates without a year, or outside the period, and dates on the page that this order of day and month cannot read."""
    unlikeliness: float


def generate_date_hypotheses(layout: LayoutSurvey) -> Iterator[DateHypothesis]:
    """Generate the ways to read the statement's dates, the most probable first.

    The order of day and month holds for all dates on the pages. If both orders fit, each hypothesis names the other
    order's formats in ``alternative_formats``. Other periods, and the opposite order of the rows, have lower scores.
    """
    judged_orders = [judged for first in get_args(FirstNumber) if (judged := _judge_rules_of_order(layout, first))]
    judged_orders.sort(key=lambda judged: (judged[0].misfit_count, judged[0].unlikeliness))
    # Months with names, or the year in four digits first: the order is printed.
    judged_by_order = list({judged[0].rules.formats: judged for judged in reversed(judged_orders)}.values())[::-1]
    fewest_misfits = judged_by_order[0][0].misfit_count
    possible_formats = [
        judged[0].rules.formats for judged in judged_by_order if judged[0].misfit_count == fewest_misfits
    ]
    for order_rank, judged_rules in enumerate(judged_by_order):
        alternative_formats = next(
            (formats for formats in possible_formats if formats != judged_rules[0].rules.formats), ()
        )
        for period_rank, (judged_rule, row_dates, *_) in enumerate(judged_rules):
            rules = judged_rule.model_copy(update={"alternative_formats": alternative_formats})
            descending_steps = sum(a > b for a, b in pairwise(row_dates))
            ascending_steps = sum(a < b for a, b in pairwise(row_dates))
            row_orders: list[RowOrder] = ["oldest_first", "newest_first"]
            if descending_steps > 2 * ascending_steps:
                row_orders.reverse()
            for row_order in row_orders if descending_steps and ascending_steps else row_orders[:1]:
                is_usual = row_order == row_orders[0]
                yield DateHypothesis(rules, row_order, -2.0 * order_rank - 0.5 * period_rank - 0.2 * (not is_usual))


def _judge_rules_of_order(layout: LayoutSurvey, first_number: FirstNumber) -> list[_JudgedRules]:
    """Judge the rules with an order of day, month and year, by period, best first.

    Empty if no row can be read in this order.
    """
    formats = tuple(
        date_format for date_format in DATE_FORMATS if _find_first_number(date_format) in (first_number, None)
    )
    date_texts = [placed_text.text for placed_text in layout.date_column.dates_or_amounts]
    match_counts = {
        date_format: sum(parse_partial_date(text, (date_format,), is_ocr_text=True) is not None for text in date_texts)
        for date_format in formats
    }
    highest_count = max(match_counts.values())
    if not highest_count:
        return []
    main_format = next(date_format for date_format in formats if match_counts[date_format] == highest_count)
    further_formats = (
        date_format
        for date_format in formats
        if date_format != main_format and match_counts[date_format] and highest_count < len(date_texts)
    )
    row_formats = (main_format, *further_formats)
    impossible_count = sum(
        parse_partial_date(placed_date.text, formats, is_ocr_text=True) is None
        for column in filter(None, (layout.date_column, layout.value_date_column))
        for placed_date in column.dates_or_amounts
    ) + sum(
        max(_count_dates(text, DATE_FORMATS) - _count_dates(text, formats), 0)
        for _, text in _find_period_labels(layout)
    )
    judged_rules: list[_JudgedRules] = []
    for rules in _generate_period_rules(layout, row_formats, formats):
        period = find_statement_period(rules, (load_bank_vocabulary().closing,), layout.lines_by_page)
        row_dates = tuple(
            resolved_date
            for text in date_texts
            if (day := parse_partial_date(text, row_formats, is_ocr_text=True))
            and (resolved_date := resolve_date(day, period))
        )
        misfit_count: float = impossible_count + len(date_texts) - len(row_dates)
        if period and (rules.period or period.start):  # else the period's end may be the date of a row
            earliest = (period.start or period.end - _LONGEST_PERIOD) - PERIOD_MARGIN
            misfit_count += sum(not earliest <= day <= period.end + PERIOD_MARGIN for day in row_dates)
        if row_dates and max(row_dates) - min(row_dates) > _LONGEST_SPAN:
            misfit_count += len(row_dates)
        misfit_count += _UNLABELLED_MISFIT * (judged_rules != [] and not rules.period)
        unlikeliness = _measure_unlikeliness(layout, row_dates, first_number)
        unlikeliness += 0.1 * (period is None or period.start is None)
        judged_rules.append(_JudgedRules(rules, row_dates, misfit_count, unlikeliness))
    return sorted(judged_rules, key=lambda judged: (judged.misfit_count, judged.unlikeliness))


def _find_first_number(date_format: str) -> FirstNumber | None:
    """Return which number the format has first; None if the date is in no doubt."""
    if date_format.startswith("%y"):
        return "year"
    exchanged = exchange_day_and_month(date_format)
    if exchanged == date_format or exchanged not in DATE_FORMATS:
        return None
    return "day" if date_format.startswith("%d") else "month"


def _generate_period_rules(
    layout: LayoutSurvey, row_formats: tuple[str, ...], formats: Sequence[str]
) -> Iterator[DateRules]:
    """Generate rules for each line that may print the period, then without a label."""
    formats_with_year = [date_format for date_format in formats if has_year(date_format)]
    text_by_label: dict[str, str] = {}
    for label, text in _find_period_labels(layout):
        if _count_dates(text, formats_with_year) > _count_dates(text_by_label.get(label, ""), formats_with_year):
            text_by_label[label] = text
    ranked_texts = sorted(
        text_by_label.items(),
        key=lambda label_and_text: -min(_count_dates(label_and_text[1], formats_with_year), 2),
    )
    for label, text in ranked_texts:
        yield DateRules(formats=row_formats, period=(label,), period_formats=_detect_date_formats(text, formats))
    lines = [line for lines in layout.lines_by_page for line in lines]
    text_outside_rows = "\n".join(line.text for line in lines if not layout.is_row_start(line))
    if not _count_dates(text_outside_rows, formats_with_year):
        text_outside_rows = "\n".join(line.text for line in lines)
    yield DateRules(formats=row_formats, period_formats=_detect_date_formats(text_outside_rows, formats))


def _find_period_labels(layout: LayoutSurvey) -> Iterator[tuple[str, str]]:
    labels_and_texts = find_date_labels_and_nearby_texts(layout.lines_by_page, (load_bank_vocabulary().period,))
    return ((build_pattern_with_any_numbers(label), text) for label, text in labels_and_texts)


def _count_dates(text: str, formats: Sequence[str]) -> int:
    return len(list(find_dates_in_text(text, formats)))


def _detect_date_formats(text: str, formats: Sequence[str]) -> tuple[str, ...]:
    """Return formats with a year that fit most dates in the text, then yearless ones."""
    match_counts = {date_format: _count_dates(text, [date_format]) for date_format in formats if has_year(date_format)}
    highest_count = max(match_counts.values())
    yearless_formats = [date_format for date_format in ("%b %d", "%d %b") if _count_dates(text, [date_format])]
    return (
        *(date_format for date_format, count in match_counts.items() if count == highest_count),
        *yearless_formats,
    )


def _measure_unlikeliness(layout: LayoutSurvey, row_dates: Sequence[date], first_number: FirstNumber) -> float:
    """Measure how unusual the rows' dates are: disorder, a long time, a rare order."""
    steps = [(b - a).days for a, b in pairwise(row_dates)]
    disorder = min(sum(step < 0 for step in steps), sum(step > 0 for step in steps))
    is_long = bool(row_dates) and max(row_dates) - min(row_dates) > _USUAL_PERIOD
    uses_day_first = layout.decimal_separator == "," or any(
        _DAY_FIRST_CURRENCY.search(line.text) for lines in layout.lines_by_page for line in lines
    )
    return disorder + 2.0 * is_long + 0.5 * (uses_day_first == (first_number == "month"))
