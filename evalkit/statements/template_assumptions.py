"""Describe in plain words what a template assumes about a statement."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from evalkit.statements.statement_template import StatementTemplate

_WORD_BY_DATE_CODE = {"%d": "day", "%m": "month", "%b": "month's name", "%Y": "year", "%y": "year of two digits"}
_PAGES_BY_KIND = {
    "first": "the first page", "middle": "pages between", "last": "the last page", "later": "later pages", "any": "each page",
}  # fmt: skip


def list_assumptions(template: StatementTemplate) -> tuple[str, ...]:
    """List what a template assumes, one sentence for each part, always in the same order.

    Two templates with equal lists are the same hypothesis.
    """
    return tuple(_describe_parts(template))


def list_differing_assumptions(attempts: Sequence[Sequence[str]]) -> Iterator[str]:
    """Describe each attempt by the assumptions that not all attempts share."""
    for assumptions in attempts:
        differing = [assumption for assumption in assumptions if not all(assumption in other for other in attempts)]
        yield "; ".join(differing or assumptions)


def _describe_parts(template: StatementTemplate) -> Iterator[str]:
    dates, amounts, rows, sums = template.dates, template.amounts, template.rows, template.reconciliation
    for region in template.regions:
        left, top, right, bottom = (f"{100 * edge:.1f}" for edge in region.box)
        yield (
            f"the table on {_PAGES_BY_KIND[region.pages]} reaches from {top} to {bottom} % of the page's height and from "
            f"{left} to {right} % of its width"
        )
    yield "columns: " + ", ".join(f"{column.name} {column.x[0]:.1%}–{column.x[1]:.1%}" for column in template.columns)
    yield "dates are printed as " + " or ".join(map(_describe_date_format, dates.formats))
    yield f"the period is printed at {_quote(dates.period)}" if dates.period else "no label names the period"
    if dates.period_formats:
        yield "its dates as " + " or ".join(map(_describe_date_format, dates.period_formats))
    meaning = {"section": "go the way that the heading above says", "balance": "go the way that the balance changes"}
    yield f"amounts without a mark {meaning.get(amounts.unmarked, f'are {amounts.unmarked}s')}"
    yield f"deposits are marked {_quote(amounts.deposit)}, withdrawals {_quote(amounts.withdrawal)}"
    yield f"a balance without a mark is {amounts.balance}"
    yield f"decimals follow “{amounts.decimal}”" + (", cents may be missing" if amounts.whole else "")
    yield (
        f"further lines of a description are at most {rows.gap:g} line heights below"
        if rows.continuation == "below"
        else "each description has one line"
    )
    yield "a date counts for the rows until the next date" if rows.date_once else "each row has its date"
    yield f"rows are printed {rows.order.replace('_', ' ')}"
    yield f"lines of the table without a transaction: {_quote(rows.furniture)}"
    yield f"lines that end the table: {_quote(rows.ends)}"
    yield f"headings: {_quote([*(section.heading for section in rows.section), *rows.accounts])}"
    yield f"printed sums: {_quote([*sums.opening, *sums.closing, *(total.label for total in sums.total)])}"


def _describe_date_format(date_format: str) -> str:
    return re.sub("%[dmbYy]", lambda code: _WORD_BY_DATE_CODE[code.group()], date_format)


def _quote(patterns: Sequence[str]) -> str:
    """Quote patterns as words; numbers, which change monthly, become an ellipsis."""
    words = (pattern.replace("\\d+", "…").replace("\\", "") for pattern in patterns)
    return ", ".join(f"“{word}”" for word in words) or "none"
