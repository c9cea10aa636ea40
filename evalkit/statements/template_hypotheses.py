"""Generate hypotheses about a statement's layout, for the builder to try."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise, product
from typing import Literal

from evalkit.statements.bank_vocabulary import load_bank_vocabulary, match_at_line_start
from evalkit.statements.dates import DATE_FORMATS, parse_partial_date, resolve_date
from evalkit.statements.layout_survey import AlignedColumn, LayoutSurvey, derive_period_patterns_and_formats
from evalkit.statements.reviewer_report import TemplateIssueCategory
from evalkit.statements.statement_parser import find_statement_period
from evalkit.statements.statement_template import AmountRules, ColumnName, DateRules
from evalkit.statements.template_parts import CONTINUATION_GAPS, NARROW_MARGIN, find_direction_headings


@dataclass(frozen=True)
class TemplateHypothesis:
    """One possible meaning of the columns, signs, dates and rows of a statement."""

    column_names: tuple[ColumnName, ...]
    """The meaning of each column of amounts, from the left."""
    amount_rules: AmountRules
    date_formats: tuple[str, ...]
    date_once: bool
    continuation_gap: float
    row_order: Literal["oldest_first", "newest_first"]
    has_wide_regions: bool
    """True: extend the regions by 3 % of the page up and down."""
    initial_score: float
    """Score of the hypothesis before the statement is read with it; usual layouts score higher."""


#: Score for a column whose printed title agrees with its assumed meaning; a met sum scores 1.
_TITLE_WEIGHT = 0.4
#: Most columns of amounts that get a meaning, counted from the right; others are not read.
_MAX_AMOUNT_COLUMNS = 4
#: Sign conventions of a column ``amount`` (marks of deposits and withdrawals, direction of unmarked amounts), with a
#: score for how usual each convention is.
_SIGN_CONVENTIONS: tuple[tuple[AmountRules, float], ...] = (
    (AmountRules(), 0.2),
    (AmountRules(unmarked="withdrawal"), 0.0),
    (
        AmountRules(
            deposit=("minus", "trailing_minus", "parentheses", "cr"), withdrawal=("plus", "dr"), unmarked="withdrawal"
        ),
        -0.2,
    ),
    (AmountRules(unmarked="section"), 0.1),
)


def generate_hypotheses(
    layout: LayoutSurvey, complaints: Mapping[TemplateIssueCategory, float]
) -> Iterator[TemplateHypothesis]:
    """Generate all combinations of possible meanings of columns, signs and dates.

    ``complaints``: weights of the reviewers' issues by category; some categories add wider regions or larger line gaps.
    """
    gaps = CONTINUATION_GAPS if "multiline_handling" in complaints else CONTINUATION_GAPS[:1]
    wide_region_options = (False, True) if "bbox_accuracy" in complaints else (False,)
    has_headings = bool(find_direction_headings(layout))
    date_hypotheses = list(_generate_date_hypotheses(layout))
    date_once_options = (False, True) if _has_undated_rows(layout) else (False,)
    for column_names, title_prior in _generate_column_names(layout):
        for (date_formats, row_order, date_prior), (
            amount_rules,
            sign_prior,
        ), date_once, gap, has_wide_regions in product(
            date_hypotheses,
            _generate_amount_rules(layout, column_names, has_headings=has_headings),
            date_once_options,
            gaps,
            wide_region_options,
        ):
            initial_score = title_prior + date_prior + sign_prior
            yield TemplateHypothesis(
                column_names, amount_rules, date_formats, date_once, gap, row_order, has_wide_regions, initial_score
            )


def _generate_column_names(layout: LayoutSurvey) -> Iterator[tuple[tuple[ColumnName, ...], float]]:
    amount_columns = layout.amount_columns[-_MAX_AMOUNT_COLUMNS:]
    skipped_names: tuple[ColumnName, ...] = tuple("other" for _ in layout.amount_columns[:-_MAX_AMOUNT_COLUMNS])
    title_names = [_match_titles_to_column_names(layout, amount_column) for amount_column in amount_columns]
    usual_combinations: tuple[tuple[ColumnName, ...], ...] = (
        ("amount",),
        ("amount", "balance"),
        ("debit", "credit"),
        ("debit", "credit", "balance"),
    )
    possible_names: tuple[ColumnName, ...] = ("amount", "debit", "credit", "balance", "other")
    for column_names in product(possible_names, repeat=len(amount_columns)):
        used_names = [name for name in column_names if name != "other"]
        if len(used_names) != len(set(used_names)) or not (
            {"amount"} & set(used_names) or {"debit", "credit"} <= set(used_names)
        ):
            continue
        if "amount" in used_names and {"debit", "credit"} & set(used_names):
            continue
        title_score = sum(
            0 if not names_in_title else _TITLE_WEIGHT if name in names_in_title else -_TITLE_WEIGHT
            for name, names_in_title in zip(column_names, title_names, strict=True)
        )
        yield (
            (*skipped_names, *column_names),
            title_score + (0.1 if tuple(used_names) in usual_combinations else 0) - 0.3 * column_names.count("other"),
        )


def _match_titles_to_column_names(layout: LayoutSurvey, amount_column: AlignedColumn) -> set[str]:
    title_names: set[str] = set()
    for line in layout.header_lines:
        for cell in line.cells:
            if amount_column.overlaps(cell.box[0], cell.box[2]):
                matching_names = (
                    name
                    for name, pattern in load_bank_vocabulary().columns.items()
                    if match_at_line_start(pattern, cell.text)
                )
                title_names.update(islice(matching_names, 1))
    return title_names & {"amount", "debit", "credit", "balance"}


def _generate_amount_rules(
    layout: LayoutSurvey, column_names: Sequence[ColumnName], *, has_headings: bool
) -> Iterator[tuple[AmountRules, float]]:
    number_format = {"decimal": layout.decimal_separator, "whole": layout.cents_optional}
    balance_options: tuple[Literal["held", "owed"], ...] = (
        ("held", "owed")
        if any(labelled_amount.kind == "opening" for _, labelled_amount in layout.labelled_amounts)
        or "balance" in column_names
        else ("held",)
    )
    for (amount_rules, prior), balance in product(
        _SIGN_CONVENTIONS if "amount" in column_names else _SIGN_CONVENTIONS[:1], balance_options
    ):
        if amount_rules.unmarked == "section" and not has_headings:
            continue
        yield (
            amount_rules.model_copy(update={**number_format, "balance": balance}),
            prior - (0.1 if balance == "owed" else 0),
        )


def _generate_date_hypotheses(
    layout: LayoutSurvey,
) -> Iterator[tuple[tuple[str, ...], Literal["oldest_first", "newest_first"], float]]:
    """Generate date formats with an order of the rows and its score.

    Formats that read the most dates are tried. If day and month could be exchanged, the format counts with which dates
    are in order and inside the statement's period.
    """
    date_texts = [placed_text.text for placed_text in layout.date_column.dates_or_amounts]
    labels, period_formats = derive_period_patterns_and_formats(layout.lines_by_page)
    match_counts = {
        date_format: sum(parse_partial_date(text, (date_format,), is_ocr_text=True) is not None for text in date_texts)
        for date_format in DATE_FORMATS
    }
    highest_count = max(match_counts.values())
    best_formats = [date_format for date_format in DATE_FORMATS if match_counts[date_format] == highest_count]
    period = find_statement_period(
        DateRules(formats=tuple(best_formats), period=labels, period_formats=period_formats), (), layout.lines_by_page
    )
    is_day_first_usual = layout.decimal_separator == ","
    judged_formats = []
    for date_format in best_formats:
        other_formats = tuple(
            alternative
            for alternative in DATE_FORMATS
            if alternative != date_format and match_counts[alternative] and highest_count < len(date_texts)
        )
        row_dates = [
            resolved_date
            for text in date_texts
            if (day := parse_partial_date(text, (date_format,), is_ocr_text=True))
            and (resolved_date := resolve_date(day, period))
        ]
        unresolved_count = float(highest_count - len(row_dates))
        descending_steps = sum(a > b for a, b in pairwise(row_dates))
        ascending_steps = sum(a < b for a, b in pairwise(row_dates))
        is_usual_order = (
            (date_format.index("%d") < date_format.find("%m")) == is_day_first_usual if "%m" in date_format else True
        )
        outside_period_count = sum(
            period is not None and not (period.start or day) <= day <= period.end for day in row_dates
        )
        disorder = unresolved_count + min(descending_steps, ascending_steps) + outside_period_count
        judged_formats.append(
            (
                (date_format, *other_formats),
                disorder - 0.5 * is_usual_order,
                descending_steps,
                ascending_steps,
            )
        )
    date_formats, _, descending_steps, ascending_steps = min(judged_formats, key=lambda judged: judged[1])
    is_descending = descending_steps > 2 * ascending_steps
    yield date_formats, "newest_first" if is_descending else "oldest_first", 0.0
    if descending_steps and ascending_steps:
        yield date_formats, "oldest_first" if is_descending else "newest_first", -0.2


def _has_undated_rows(layout: LayoutSurvey) -> bool:
    """Return True if a line between two rows has an amount but no date."""
    for lines in layout.lines_by_page:
        row_positions = layout.find_row_start_positions(lines)
        for line in lines[row_positions[0] : row_positions[-1]] if row_positions else ():
            right_edge = line.words[-1].box[2]
            ends_below_amounts = any(
                amount_column.x0 <= right_edge <= amount_column.x1 + NARROW_MARGIN
                for amount_column in layout.amount_columns
            )
            if ends_below_amounts and not layout.is_row_start(line) and not layout.is_sum_line(line):
                return True
    return False
