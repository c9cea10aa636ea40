"""Comparison of a template's rows with an independent audit of the pages.

These are the reviewers' own measurements.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cached_property
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from evalkit.documents.bundle import Box
from evalkit.statements.applied_template import AppliedTemplate, TemplateFinding
from evalkit.statements.audit_directions import (
    ProvenDirection,
    find_balance_orientation,
    prove_directions,
)
from evalkit.statements.reviewer_report import TemplateIssueCategory, TemplateIssueSeverity
from evalkit.statements.statement_audit import (
    ORDERS,
    PERIOD_MARGIN,
    AuditRow,
    AuditSum,
    DateOrder,
    PrintedSumKind,
    StatementAudit,
    audit_lines,
    has_word,
    load_audit_words,
)
from evalkit.statements.statement_parser import Transaction
from evalkit.statements.text_lines import PageWord, TextLine

#: If more than this share of the rows is wrong, the template misreads the statement as a whole.
_WHOLE_STATEMENT_SHARE = 0.3
#: A row dated further than this from most rows has another year.
_MAX_DAYS_FROM_MIDDLE = 300
_PAGE_NUMBER = re.compile(r"(?<![\w/.])(\d{1,3})\s?(?:/|of|von|sur|de|di|van)\s?(\d{1,3})(?![\w/.])", re.IGNORECASE)
_MAX_NAMED_AMOUNTS = 4
_SUM_NAMES: dict[PrintedSumKind, str] = {
    "opening": "opening balance", "closing": "closing balance", "in": "deposits", "out": "withdrawals",
}  # fmt: skip


class _MatchedRow(NamedTuple):
    transaction: Transaction
    row: AuditRow | None
    """The row of the audit in the same line; None if the audit finds none there."""
    direction: ProvenDirection


@dataclass(frozen=True)
class _Comparison:
    applied: AppliedTemplate
    audit: StatementAudit

    @cached_property
    def directions(self) -> tuple[ProvenDirection, ...]:
        return prove_directions(self.audit)

    @cached_property
    def matches(self) -> tuple[_MatchedRow, ...]:
        """Each transaction with the row of the audit that is printed in its lines."""
        free = dict(enumerate(self.audit.rows))
        return tuple(self._match(transaction, free) for transaction in self.applied.statement.transactions)

    def _match(self, transaction: Transaction, free: dict[int, AuditRow]) -> _MatchedRow:
        index = max(
            (index for index, row in free.items() if _is_in_boxes(row.line, transaction.page, transaction.boxes)),
            key=lambda index: abs(transaction.amount) in {amount.value for amount in free[index].amounts},
            default=None,
        )
        if index is None:
            return _MatchedRow(transaction, None, ProvenDirection(0, ""))
        return _MatchedRow(transaction, free.pop(index), self.directions[index])

    @cached_property
    def unread_rows(self) -> tuple[AuditRow, ...]:
        """Rows with amounts that the template did not read; empty if balances add up."""
        if self.applied.is_closed:
            return ()
        read = {id(match.row) for match in self.matches}
        statement = self.applied.statement
        known = [
            text
            for text in (*statement.left_over, *statement.outside)
            if text in statement.outside or text.reason != "it belongs to no transaction"
        ]
        return tuple(
            row
            for row in self.audit.rows
            if id(row) not in read
            and self.audit.find_movement(row)
            and not any(_is_in_boxes(row.line, text.page, (text.box,)) for text in known)
        )

    def is_read_as_sum(self, row: AuditRow) -> bool:
        """Return True if the template takes the row for a printed sum."""
        return any(_is_in_boxes(row.line, each.page, (each.box,)) for each in self.applied.statement.sums)

    @cached_property
    def order(self) -> DateOrder | None:
        """The only order of day and month that fits; None if both or none do."""
        return self.audit.orders[0] if self.audit.orders and not self.audit.is_order_open else None


def _compare(applied: AppliedTemplate) -> _Comparison:
    return _Comparison(applied, audit_lines(applied.lines_by_page))


# Directions


def find_wrong_directions(applied: AppliedTemplate) -> Iterator[TemplateFinding]:
    """Report rows whose direction the page contradicts, or does not prove."""
    comparison = _compare(applied)
    wrong = [each for each in comparison.matches if each.direction.sign * each.transaction.amount < 0]
    if wrong:
        yield TemplateFinding(
            _grade(wrong, comparison.matches), "sign_logic",
            f"signs are inverted: the {wrong[0].direction.proof} of {len(wrong)} rows show the other direction",
            wrong[0].transaction.page, "amounts", "Exchange the directions of these amounts",
            _name_direction(wrong[0].direction.sign), _name_direction(-wrong[0].direction.sign),
        )  # fmt: skip
    open_rows = [each for each in comparison.matches if not each.direction.sign and each.transaction.amount]
    if open_rows and "person" not in applied.template.amounts.sign_proof:
        yield TemplateFinding(
            "high", "sign_logic", f"no mark, title, heading or printed sum proves which way the money of {len(open_rows)} rows went",
            open_rows[0].transaction.page, "amounts", "Decide if these amounts are deposits or withdrawals",
            "a proof on the page", f"{open_rows[0].transaction.amount} and {-open_rows[0].transaction.amount} fit",
        )  # fmt: skip


def find_wrong_balances(applied: AppliedTemplate) -> Iterator[TemplateFinding]:
    """Report balances with the wrong sign, or from another column.

    A balance that is held may be read as a debt, or the other way round.
    """
    comparison = _compare(applied)
    orientation = find_balance_orientation(comparison.audit, comparison.directions)
    pairs = [
        (each, balance.signed_value * (1 if balance.mark in ("in", "out") else orientation), balance.value)
        for each in comparison.matches
        if each.row and each.transaction.balance is not None and (balance := comparison.audit.find_balance(each.row))
    ]
    wrong = [
        (each.transaction, expected) for each, expected, _ in pairs if each.transaction.balance == -expected != expected
    ]
    if wrong:
        yield TemplateFinding(
            _grade(wrong, pairs), "sign_logic",
            "the sign of the balance is inverted: credit is shown as a debt, or the other way round",
            wrong[0][0].page, "column balance", "Exchange held and owed", str(wrong[0][1]), str(wrong[0][0].balance),
        )  # fmt: skip
    other = [
        (each.transaction, value)
        for each, _, value in pairs
        if abs(each.transaction.balance or 0) != value and each.row and not each.row.line.is_ocr_text
    ]
    if other:
        yield TemplateFinding(
            "high", "column_mapping", f"the balances of {len(other)} rows are not those printed in the balance's column",
            other[0][0].page, "column balance", "Move the column balance to its amounts",
            str(other[0][1]), str(other[0][0].balance),
        )  # fmt: skip


# Dates


def find_wrong_dates(applied: AppliedTemplate) -> Iterator[TemplateFinding]:
    """Report open or wrong day-month order, wrong years, and dates out of the period."""
    comparison = _compare(applied)
    audit, order = comparison.audit, comparison.order
    dated = [(each, each.row.dates) for each in comparison.matches if each.row and each.row.dates]
    if audit.is_order_open and dated:
        example = dated[0][1][0]
        yield TemplateFinding(
            "high", "date_format", "two orders of day and month fit all dates of the statement",
            dated[0][0].transaction.page, "dates", "Decide which number is the day",
            *(f"month {month}, day {day}" for month, day in (example.order_parts(each) for each in ORDERS[:2])),
        )  # fmt: skip
    if order:
        period = audit.find_period(order)
        expected = [
            (each, dates[min(audit.booking_index, len(dates) - 1)].resolve(order, period), dates)
            for each, dates in dated
        ]
        wrong = [(each, day) for each, day, _ in expected if day and day.isoformat() != each.transaction.date]
        if wrong:
            yield TemplateFinding(
                _grade(wrong, comparison.matches), "date_format", f"the dates of {len(wrong)} rows are not those that the page shows",
                wrong[0][0].transaction.page, "dates", "Use the order of day and month, the column and the year that the page shows",
                wrong[0][1].isoformat(), wrong[0][0].transaction.date,
            )  # fmt: skip
    yield from _find_dates_outside_period(comparison)
    if (
        dated
        and not any(audit.find_period(each) for each in audit.orders)
        and all(dates[0].year is None for _, dates in dated)
    ):
        yield TemplateFinding(
            "high", "date_format", "the page shows no year for the dates of the rows", dated[0][0].transaction.page, "dates",
            "Name the line that prints the statement's period or date", "", dated[0][0].transaction.date,
        )  # fmt: skip


def _find_dates_outside_period(comparison: _Comparison) -> Iterator[TemplateFinding]:
    periods = [period for order in comparison.audit.orders if (period := comparison.audit.find_period(order))]
    dated = [each for each in comparison.matches if not each.transaction.is_year_open]
    days = [(each, date.fromisoformat(each.transaction.date)) for each in dated]
    middle = sorted(day for _, day in days)[len(days) // 2] if days else date.min
    outside = [
        (each, day)
        for each, day in days
        if (periods and not any(start - PERIOD_MARGIN <= day <= end + PERIOD_MARGIN for start, end in periods))
        or abs((day - middle).days) > _MAX_DAYS_FROM_MIDDLE
    ]
    if outside:
        expected = f"{periods[0][0]} to {periods[0][1]}" if periods else f"near {middle}"
        yield TemplateFinding(
            _grade(outside, days), "date_format", f"{len(outside)} rows are dated outside the statement's period",
            outside[0][0].transaction.page, "dates", "Take the year from the statement's period", expected, outside[0][0].transaction.date,
        )  # fmt: skip


# Amounts and sums


def find_wrong_amounts(applied: AppliedTemplate) -> Iterator[TemplateFinding]:
    """Report amounts taken from another column, or not printed as they are read."""
    comparison = _compare(applied)
    audit = comparison.audit
    wrong = []
    for each in comparison.matches:
        value = abs(each.transaction.amount)
        if (
            each.row is None
            or each.row.line.is_ocr_text
            or not (movement := audit.find_movement(each.row))
            or movement.value == value
        ):
            continue
        columns = [audit.find_column(amount) for amount in each.row.amounts if amount.value == value]
        if not columns or any(column and column.role in ("balance", "foreign", "reference") for column in columns):
            wrong.append((each, movement.value))
    if wrong:
        yield TemplateFinding(
            _grade(wrong, comparison.matches), "column_mapping", f"wrong column mapped to the amount: {len(wrong)} amounts are not those of their rows",
            wrong[0][0].transaction.page, "column amount", "Compare the columns with their titles and the decimal sign with the page",
            str(wrong[0][1]), str(abs(wrong[0][0].transaction.amount)),
        )  # fmt: skip


def find_unused_sums(applied: AppliedTemplate) -> Iterator[TemplateFinding]:
    """Report printed sums that no check uses, and other amounts outside the rows."""
    comparison = _compare(applied)
    used = [(printed.page, abs(printed.value)) for printed in applied.statement.sums]
    unused = [
        each for each in comparison.audit.sums if (each.page, each.amount.value) not in used and each.amount.value
    ]
    checked = {check.account for check in applied.sum_checks}
    accounts = {transaction.account for transaction in applied.statement.transactions}
    suggested_fix = "Name the labels of the printed balances and totals"
    taken = [
        row
        for row in comparison.unread_rows
        if comparison.is_read_as_sum(row) and not is_total(applied, row.line.page_number, row.line.box)
    ]
    if taken:
        yield TemplateFinding(
            "high", "reconciliation_strategy", f"{len(taken)} rows are taken for printed sums", taken[0].line.page_number,
            "reconciliation", "Make the labels of the printed sums more precise",
        )  # fmt: skip
    if accounts - checked or not checked:
        is_printed = bool(comparison.audit.sums)
        message = "no printed sum is used to check the transactions" + (
            ", although there are some" if is_printed else ""
        )
        yield TemplateFinding(
            "high" if is_printed else "medium", "reconciliation_strategy", message, None, "reconciliation", suggested_fix,
            _name_sums(unused), "",
        )  # fmt: skip
        return
    explained = {abs(value) for value in _compute_known_sums(applied)}
    for each in unused:
        is_met = each.amount.value in explained
        is_whole = each.kind in ("in", "out") and (is_met or has_word(each.label, "sum", "total"))
        if is_whole or each.kind in ("opening", "closing"):
            yield TemplateFinding(
                "medium" if is_met else "high", "reconciliation_strategy",
                f"{'a printed sum is not used' if is_met else 'the transactions do not make a printed sum that is not used'}: {_SUM_NAMES[each.kind]}",
                each.page, "reconciliation", suggested_fix, _name_sums([each]), "",
            )  # fmt: skip
    others = [each for each in unused if each.kind == "other" and each.amount.value not in explained]
    if others:
        yield TemplateFinding(
            "low", "reconciliation_strategy", f"{len(others)} printed amounts outside the rows are not used", others[0].page,
            "reconciliation", suggested_fix, _name_sums(others), "",
        )  # fmt: skip


def _compute_known_sums(applied: AppliedTemplate) -> Iterator[Decimal]:
    statement = applied.statement
    yield from (printed.value for printed in statement.sums)
    for row in statement.transactions:
        if row.balance is not None:
            yield from (row.balance, row.balance - row.amount)
    yield from _compute_totals(applied)


def _compute_totals(applied: AppliedTemplate, *, least: int = 1) -> Iterator[Decimal]:
    """Yield sums of rows by account, section or page: both directions, and each alone.

    ``least``: rows that a sum must have.
    """
    statement = applied.statement
    for attribute in ("account", "section", "page"):
        for group in {getattr(row, attribute) for row in statement.transactions}:
            amounts = [row.amount for row in statement.transactions if getattr(row, attribute) == group]
            parts = (
                amounts,
                [amount for amount in amounts if amount > 0],
                [amount for amount in amounts if amount < 0],
            )
            yield from (sum(part, Decimal(0)) for part in parts if len(part) >= least)


def is_total(applied: AppliedTemplate, page: int, box: Box) -> bool:
    """Return True if an undated line prints known sums or balances."""
    audit = _compare(applied).audit
    undated = [
        (row.line.page_number, amount)
        for row in audit.rows
        if not any(day.box[3] > row.line.box[1] for day in row.dates)
        for amount in row.amounts
    ]
    amounts = [
        amount
        for amount_page, amount in (*undated, *((each.page, each.amount) for each in audit.sums))
        if amount_page == page
        and box[0] <= amount.box[0] < box[2]
        and box[1] <= (amount.box[1] + amount.box[3]) / 2 <= box[3]
    ]
    explained = {Decimal(0), *(abs(value) for value in _compute_totals(applied, least=2))}
    explained |= {abs(row.balance) for row in applied.statement.transactions if row.balance is not None}
    # A balance or total that is printed again; what was read in this line itself proves nothing.
    explained |= {
        abs(printed.value)
        for printed in applied.statement.sums
        if printed.page != page or not _overlap_vertically(printed.box, box)
    }
    return bool(amounts) and all(amount.value in explained for amount in amounts)


def _overlap_vertically(box: Box, other: Box) -> bool:
    return box[1] < other[3] and other[1] < box[3]


# Rows


def find_missed_rows(applied: AppliedTemplate) -> Iterator[TemplateFinding]:
    """Report unread rows, by page, and numbered pages that are missing or doubled."""
    comparison = _compare(applied)
    unread = [
        row
        for row in comparison.unread_rows
        if not comparison.is_read_as_sum(row) and not is_total(applied, row.line.page_number, row.line.box)
    ]
    for page, count in sorted(Counter(row.line.page_number for row in unread).items()):
        row = next(row for row in unread if row.line.page_number == page)
        regions = applied.template.find_regions(page, len(applied.lines_by_page))
        is_outside = not any(row.line.clip_to_box(region.box) for region in regions)
        total = sum(each.line.page_number == page for each in comparison.audit.rows)
        yield TemplateFinding(
            "high", "bbox_accuracy" if is_outside else "column_mapping", f"{count} of {total} rows on the page are not read",
            page, "region" if is_outside else "rows", "Move the edge of the region beyond these rows" if is_outside else "Check which rule takes these rows for something else",
            f"{total} rows", f"{total - count} rows",
        )  # fmt: skip
    numbers = list(filter(None, map(_find_page_number, applied.lines_by_page)))
    if (numbers and [int(match[1]) for match in numbers] != list(range(1, len(numbers) + 1))) or any(
        int(match[2]) != len(applied.lines_by_page) for match in numbers[:1]
    ):
        yield TemplateFinding(
            "high", "provenance", "pages of the statement are missing or doubled", 1, "pages", "Use the complete statement",
            numbers[0][0], f"{len(applied.lines_by_page)} pages",
        )  # fmt: skip


def _find_page_number(lines: Sequence[TextLine]) -> re.Match[str] | None:
    return next(
        (
            match
            for line in lines
            if not 0.1 < line.box[1] < 0.9
            and len(line.words) < (12 if "age" in line.text else 5)
            and not re.search(r"\d[.,]\d\d", line.text)  # a date and a balance
            if (match := _PAGE_NUMBER.search(line.text)) and 1 <= int(match[1]) <= int(match[2])
        ),
        None,
    )


def find_wrong_descriptions(applied: AppliedTemplate) -> Iterator[TemplateFinding]:
    """Report descriptions that lack words of their row, or contain lines far below it."""
    comparison = _compare(applied)
    matched = [(each, each.row) for each in comparison.matches if each.row]
    limit = _measure_line_limit(comparison.audit)
    codes = [any(re.search(r"\d", word.text) for word in _list_words_before_date(row)) for _, row in matched]
    has_receipt_numbers = 2 * sum(codes) > len(codes)
    faults: tuple[tuple[list[int], TemplateIssueSeverity, TemplateIssueCategory, str, str, str], ...] = (
        (
            [each.transaction.page for each, row in matched if _has_lost_words(applied, each.transaction, row, has_receipt_numbers=has_receipt_numbers)],
            "high", "multiline_handling", "the descriptions of {count} rows lack words that are printed in the row",
            "column description", "Widen the column of the description",
        ),
        (
            [each.transaction.page for each, row in matched if _has_other_amount(comparison.audit, each.transaction, row)],
            "medium", "column_mapping", "the descriptions of {count} rows contain numbers of another column",
            "column description", "End the column of the description before these numbers",
        ),
        (
            [each.transaction.page for each, _ in matched if _has_joined_words(applied, each.transaction)],
            "medium", "multiline_handling", "words of the descriptions of {count} rows are joined without a blank",
            "rows", "Put a blank between the lines of a description",
        ),
        (
            [each.transaction.page for each, _ in matched if _has_distant_line(each.transaction.boxes, limit)],
            "high", "multiline_handling", "the descriptions of {count} rows contain lines that do not belong to them",
            "rows", "Make the largest distance of a description's next line smaller",
        ),
        (
            [line.page_number for line in _find_lost_lines(comparison, limit)],
            "high", "multiline_handling", "{count} further lines of descriptions are not read",
            "rows", "Check which rule takes these lines for something else",
        ),
    )  # fmt: skip
    for pages, severity, category, message, location, suggested_fix in faults:
        if pages:
            yield TemplateFinding(
                severity, category, message.format(count=len(pages)), pages[0], location, suggested_fix
            )


def _measure_line_limit(audit: StatementAudit) -> float:
    """Return the distance above which a line does not continue the row above it."""
    lines = sorted((row.line.page_number, row.line.deskewed_center_y) for row in audit.rows)
    steps = [below[1] - above[1] for above, below in pairwise(lines) if below[0] == above[0] and below[1] > above[1]]
    return 1.35 * min(median(steps), 2.5 * min(steps)) if steps else 1.0


def _find_lost_lines(comparison: _Comparison, limit: float) -> Iterator[TextLine]:
    """Find unread lines close below a row that begin where descriptions begin."""
    rows = [(each.transaction, each.row.line) for each in comparison.matches if each.row]
    left = median(line.words[0].box[0] for line in _select_texts(comparison.audit)) if rows else 0.0
    for line in comparison.audit.other_lines:
        above = max(
            (
                (box[1] + box[3]) / 2
                for transaction, _ in rows
                if transaction.page == line.page_number
                for box in transaction.boxes
                if (box[1] + box[3]) / 2 < line.deskewed_center_y
            ),
            default=-1.0,
        )
        is_read = any(_is_in_boxes(line, transaction.page, transaction.boxes) for transaction, _ in rows) or any(
            _is_in_boxes(line, printed.page, (printed.amount.box,)) for printed in comparison.audit.sums
        )
        if not is_read and abs(line.box[0] - left) < 0.01 and line.deskewed_center_y - above < limit:
            yield line


def _select_texts(audit: StatementAudit) -> Iterator[TextLine]:
    """Yield the words of each row's text as a line."""
    for row in audit.rows:
        words = tuple(word for word in row.line.words if word.text in row.text.split())
        if words:
            yield TextLine(row.line.page_number, words)


def _has_other_amount(audit: StatementAudit, transaction: Transaction, row: AuditRow) -> bool:
    numbers = {re.sub(r"\D", "", word) for word in transaction.description.split()}
    return any(
        re.sub(r"\D", "", str(amount.value)) in numbers
        and amount != audit.find_movement(row)
        and audit.find_column(amount)
        for amount in row.amounts
    )


def _has_joined_words(applied: AppliedTemplate, transaction: Transaction) -> bool:
    lines = applied.lines_by_page[transaction.page - 1]
    printed = {
        word.text for line in lines if _is_in_boxes(line, transaction.page, transaction.boxes) for word in line.words
    }
    return not printed.issuperset(transaction.description.split())


def _has_lost_words(
    applied: AppliedTemplate, transaction: Transaction, row: AuditRow, *, has_receipt_numbers: bool
) -> bool:
    read = "".join((transaction.description + transaction.check_number).split()).casefold()
    ignored = [
        column.x
        for column in applied.template.columns
        if column.name not in ("description", "debit", "credit", "amount", "balance")
    ]
    currencies = load_audit_words()["account"]["currencies"]
    lost = [
        word
        for word in row.line.words
        if sum(map(str.isalpha, word.text)) > 1
        and word.text not in currencies
        and word.text in row.text.split()
        and word.text.casefold() not in read
        and not any(x[0] <= word.center_x < x[1] for x in ignored)
        # Behind the amounts a short word is a currency.
        and not (len(word.text) < 4 and word.box[0] > max((amount.box[0] for amount in row.amounts), default=1.0))
        and not (has_receipt_numbers and word in _list_words_before_date(row))
    ]
    return bool(lost)


def _list_words_before_date(row: AuditRow) -> list[PageWord]:
    return [word for word in row.line.words if row.dates and word.box[2] < row.dates[0].box[0]]


def _has_distant_line(boxes: Sequence[Box], limit: float) -> bool:
    centres = [(box[1] + box[3]) / 2 for box in boxes]
    return any(below - above > limit for above, below in pairwise(centres))


def find_mixed_accounts(applied: AppliedTemplate) -> Iterator[TemplateFinding]:
    """Report rows of different accounts that were read as one account's rows."""
    comparison = _compare(applied)
    audit = comparison.audit
    #: Numbers of cards and of references have no balance of their own.
    owners = {each.account for each in audit.sums if each.kind in ("opening", "closing", "carried")} | {
        row.account for row in audit.rows if audit.find_balance(row)
    }
    pairs = {
        (each.row.account, each.transaction.account)
        for each in comparison.matches
        if each.row and (each.row.account in owners or not owners)
    }
    printed = Counter(account for account, _ in pairs)
    read = Counter(account for _, account in pairs)
    if any(count > 1 for count in read.values()):
        yield TemplateFinding(
            "high", "reconciliation_strategy", f"the rows of {len(printed)} accounts are read as those of {len(read)}", None,
            "rows", "Name the headings of the accounts", f"{len(printed)} accounts", f"{len(read)} accounts",
        )  # fmt: skip


def _grade(wrong: Sequence[object], rows: Sequence[object]) -> TemplateIssueSeverity:
    return "critical" if len(wrong) > _WHOLE_STATEMENT_SHARE * len(rows) else "high"


def _name_direction(sign: int) -> str:
    return "deposit" if sign > 0 else "withdrawal"


def _name_sums(sums: Iterable[AuditSum]) -> str:
    named = [f"{' '.join(each.label.split())[:40]} {each.amount.value}" for each in sums]
    more = f" and {len(named) - _MAX_NAMED_AMOUNTS} more" if len(named) > _MAX_NAMED_AMOUNTS else ""
    return ", ".join(named[:_MAX_NAMED_AMOUNTS]) + more


def _is_in_boxes(line: TextLine, page: int, boxes: Iterable[Box]) -> bool:
    """Return True if a box has the line's middle and overlaps it horizontally."""
    middle = (line.box[1] + line.box[3]) / 2
    return line.page_number == page and any(
        box[1] <= middle <= box[3] and line.box[0] < box[2] and box[0] < line.box[2] for box in boxes
    )
