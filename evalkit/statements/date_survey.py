"""Find how a statement writes its dates: one order of day and month for all, and the period that gives the year."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from itertools import pairwise
from typing import Literal, NamedTuple

from evalkit.statements.bank_vocabulary import load_bank_vocabulary
from evalkit.statements.dates import (
    DATE_FORMATS,
    exchange_day_and_month,
    find_dates_in_text,
    has_year,
    parse_partial_date,
    resolve_date,
)
from evalkit.statements.layout_survey import LayoutSurvey, build_pattern_with_any_numbers
from evalkit.statements.statement_period import find_date_labels_and_nearby_texts, find_statement_period
from evalkit.statements.statement_template import DateRules

RowOrder = Literal["oldest_first", "newest_first"]
#: A transaction's date may be this much outside the period, because of late booking or a weekend.
_PERIOD_MARGIN = timedelta(days=7)
#: The longest time that a statement covers, if it prints only its end.
_LONGEST_PERIOD = timedelta(days=100)
#: A period without a label counts as this many misfits if labels are printed.
_UNLABELLED_MISFIT = 0.5
#: Most statements cover a month.
_USUAL_PERIOD = timedelta(days=35)
#: Amounts of these currencies are seldom printed beside dates with the month first.
_DAY_FIRST_CURRENCY = re.compile(r"[€£₹]|\b(?:EUR|GBP|CHF|SGD|INR|AUD|NZD|HKD|ZAR)\b")


class DateHypothesis(NamedTuple):
    """The format of dates, the order of the rows, and a score before reading."""

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
    judged_by_order = [
        judged for day_first in (True, False) if (judged := _judge_rules_of_order(layout, day_first=day_first))
    ]
    judged_by_order.sort(key=lambda judged: (judged[0].misfit_count, judged[0].unlikeliness))
    if len(judged_by_order) > 1 and judged_by_order[0][0].rules.formats == judged_by_order[1][0].rules.formats:
        del judged_by_order[1]  # months with names, or the year first: the order is printed
    fewest_misfits = judged_by_order[0][0].misfit_count
    possible_orders = [judged for judged in judged_by_order if judged[0].misfit_count == fewest_misfits]
    for order_rank, judged_rules in enumerate(judged_by_order):
        alternative_formats = (
            tuple(map(exchange_day_and_month, judged_rules[0].rules.formats)) if len(possible_orders) > 1 else ()
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


def _judge_rules_of_order(layout: LayoutSurvey, *, day_first: bool) -> list[_JudgedRules]:
    """Judge the rules with an order of day and month, by period, best first.

    Empty if no row can be read in this order.
    """
    formats = tuple(date_format for date_format in DATE_FORMATS if is_day_first(date_format) in (day_first, None))
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
            earliest = (period.start or period.end - _LONGEST_PERIOD) - _PERIOD_MARGIN
            misfit_count += sum(not earliest <= day <= period.end + _PERIOD_MARGIN for day in row_dates)
        misfit_count += _UNLABELLED_MISFIT * (judged_rules != [] and not rules.period)
        unlikeliness = _measure_unlikeliness(layout, row_dates, day_first=day_first)
        unlikeliness += 0.1 * (period is None or period.start is None)
        judged_rules.append(_JudgedRules(rules, row_dates, misfit_count, unlikeliness))
    return sorted(judged_rules, key=lambda judged: (judged.misfit_count, judged.unlikeliness))


def is_day_first(date_format: str) -> bool | None:
    """Return True if the day's number is first; None if the format leaves no doubt."""
    exchanged = exchange_day_and_month(date_format)
    if exchanged == date_format or exchanged not in DATE_FORMATS:
        return None
    return date_format.index("%d") < date_format.index("%m")


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


def _measure_unlikeliness(layout: LayoutSurvey, row_dates: Sequence[date], *, day_first: bool) -> float:
    """Measure how unusual the rows' dates are: disorder, a long time, a rare order."""
    steps = [(b - a).days for a, b in pairwise(row_dates)]
    disorder = min(sum(step < 0 for step in steps), sum(step > 0 for step in steps))
    is_long = bool(row_dates) and max(row_dates) - min(row_dates) > _USUAL_PERIOD
    uses_day_first = layout.decimal_separator == "," or any(
        _DAY_FIRST_CURRENCY.search(line.text) for lines in layout.lines_by_page for line in lines
    )
    return disorder + 2.0 * is_long + 0.5 * (uses_day_first != day_first)
