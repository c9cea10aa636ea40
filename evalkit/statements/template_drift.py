"""Check if a bank's next statements still fit a stable template."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import date

from evalkit.statements.applied_template import AppliedTemplate
from evalkit.statements.dates import DATE_FORMATS, PERIOD_MARGIN, parse_partial_date
from evalkit.statements.layout_survey import LayoutSurvey, survey_layout
from evalkit.statements.statement_template import TemplateStatus

#: What to do about drift, for a person.
DRIFT_REMEDY = "Compare the rows with the pages, or draft a template from this statement: `evalkit build-template`, then `evalkit review-template`."
_TEXT_COLUMNS = ("date", "value_date", "description")
#: Lines that are left over for these reasons cost no transaction.
_HARMLESS_REASONS = ("it belongs to no transaction", "it stands in no column")
_WORD_BY_CODE = {"%d": "day", "%m": "month", "%b": "month's name", "%Y": "year", "%y": "year"}


def find_template_drift(applied: AppliedTemplate, statement_sha256: str) -> list[str]:
    """List the parts of a stable template that do not fit another statement.

    Empty for a draft. Each sentence quotes column titles and labels, but no transaction. ``statement_sha256``: hash of
    the read statement; the statement that the template was built from has no drift.
    """
    template = applied.template
    if template.status is not TemplateStatus.STABLE or template.identity.built_from == statement_sha256:
        return []
    layout = survey_layout(applied.lines_by_page)
    survey_drifts = [*_find_changed_columns(applied, layout), *_find_changed_dates(applied, layout)] if layout else []
    return [*survey_drifts, *_find_moved_regions(applied), *_find_unread_rows(applied), *_find_unmet_sums(applied)]


def _find_changed_columns(applied: AppliedTemplate, layout: LayoutSurvey) -> Iterator[str]:
    columns = applied.template.columns
    title_words = {column.name: set(column.title.casefold().split()) for column in columns}
    words = [word for line in layout.header_lines for word in line.words]
    for column in columns:
        positions = [word.center_x for word in words if word.text.casefold() in title_words[column.name]]
        if positions and not any(column.x[0] <= position < column.x[1] for position in positions):
            shift = positions[0] - sum(column.x) / 2
            side = "right" if shift > 0 else "left"
            yield f"the column “{column.title}” is printed {abs(shift):.0%} of the page's width further {side}"
    known_words = set().union(*title_words.values())
    new_titles = (cell.text for line in layout.header_lines for cell in line.cells)
    for title in dict.fromkeys(new_titles) if known_words else ():
        if not known_words & set(title.casefold().split()):
            yield f"the table has a column “{title}” that the template does not know"
    for amount_column in layout.amount_columns:
        if not any(column.name not in _TEXT_COLUMNS and amount_column.overlaps(*column.x) for column in columns):
            place = f"{amount_column.x0:.0%} to {amount_column.x1:.0%} of the page's width"
            yield f"amounts are printed at {place}, where the template has no column for them"


def _find_changed_dates(applied: AppliedTemplate, layout: LayoutSurvey) -> Iterator[str]:
    """Report dates that another format reads better, in number or within the period."""
    texts = [placed_date.text for placed_date in layout.date_column.dates_or_amounts]
    formats = applied.template.dates.formats
    counts = {name: sum(parse_partial_date(text, (name,)) is not None for text in texts) for name in DATE_FORMATS}
    own_count = sum(parse_partial_date(text, formats) is not None for text in texts)
    best_format = max(counts, key=lambda name: counts[name])
    if counts[best_format] > own_count:
        order = ", ".join(_WORD_BY_CODE[code] for code in re.findall("%.", best_format))
        yield f"{len(texts) - own_count} of {len(texts)} dates are printed in another order: {order}"
        return
    if count := _count_rows_outside_period(applied):
        yield f"the dates of {count} rows have no year or are outside the statement's period"


def _count_rows_outside_period(applied: AppliedTemplate) -> int:
    """Count rows without a year, or dated over a week outside the statement's period."""
    start, end = applied.statement.period_start, applied.statement.period_end
    earliest, latest = date.min, date.max
    if start and end:
        earliest, latest = date.fromisoformat(start) - PERIOD_MARGIN, date.fromisoformat(end) + PERIOD_MARGIN
    return sum(not str(earliest) <= row.date <= str(latest) for row in applied.statement.transactions)


def _find_moved_regions(applied: AppliedTemplate) -> Iterator[str]:
    outside = applied.statement.outside
    for page in sorted({line.page for line in outside}):
        count = sum(line.page == page for line in outside)
        yield f"the table on page {page} is printed elsewhere: {count} rows are outside the template's region"
    if not outside and not applied.statement.transactions:
        yield "the template reads no row of this statement"


def _find_unread_rows(applied: AppliedTemplate) -> Iterator[str]:
    counts = Counter(leftover.reason for leftover in applied.statement.left_over)
    for reason, count in counts.items():
        if reason not in _HARMLESS_REASONS:
            yield f"{count} lines of the table are not read: {reason}"


def _find_unmet_sums(applied: AppliedTemplate) -> Iterator[str]:
    sums = applied.template.reconciliation
    if (sums.opening or sums.closing or sums.total) and not applied.sum_checks:
        yield "none of the printed sums that the template names is found"
    for check in applied.sum_checks:
        if not check.is_met:
            yield f"a printed sum is no longer met: {check.name.replace('_', ' ')}, {check.message}"
