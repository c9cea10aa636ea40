"""A template reads a statement: transactions, the sums that it prints, and whatever was left over.

Nothing is lost silently: each line within a region is a transaction's, or is known (a heading, furniture, a printed
sum), or is left over with the reason; rows that look like transactions outside of all regions are told as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from itertools import zip_longest
from typing import Literal

from evalkit.documents.bundle import Box, DocumentBundle
from evalkit.frozen import FrozenLater
from evalkit.statements.dates import Day, Period, dated, days_in
from evalkit.statements.lines import Line, Word, around, lines_of
from evalkit.statements.printed import Value, labelled_texts, tail_amount, values_on
from evalkit.statements.row import Row
from evalkit.statements.template import ColumnName, Direction, StatementTemplate
from evalkit.statements.wording import matches

Reason = Literal[
    "it belongs to no transaction",
    "its date cannot be read",
    "its year is not known",
    "it has an amount and no date",
    "it has a date and no amount",
    "no heading says which way the money went",
    "it stands in no column",
    "it has dates behind its amounts",
    "it does not say what it was",
]
#: The first so many rules hold outside of regions too: headings and sums stand above the table, or on another page.
_EVERYWHERE = 4
#: Two dates that are so many days apart are a statement's period.
_PERIOD_DAYS = range(5, 100)
#: Of a table of transactions, in the order that other programs rely on.
CSV_COLUMNS = ("date", "description", "amount", "balance", "page")
SumKind = Literal["opening", "closing", "deposits", "withdrawals", "carried"]
_KINDS: dict[str, SumKind] = {
    "opening": "opening", "closing": "closing", "deposits": "deposits", "withdrawals": "withdrawals",
}  # fmt: skip
#: What a header says on the pages after the first of an account.
_CONTINUED = re.compile(r"[\s(–-]*continued\)?$", re.IGNORECASE)


class Transaction(FrozenLater):
    """One row of a statement."""

    date: str
    """ISO 8601."""
    description: str
    amount: Decimal
    """Deposits above zero, withdrawals below."""
    balance: Decimal | None = None
    """As printed beside it; debts below zero."""
    check_number: str = ""
    page: int
    boxes: tuple[Box, ...]
    """One for each of its lines."""
    account: str = ""
    """The heading of its account; empty where the statement is of one account."""
    section: str = ""
    """The heading above it."""
    is_mended: bool = False
    """A sign of an amount that the engine misread was taken for another."""


class LeftOver(FrozenLater):
    """Words that no transaction took."""

    page: int
    text: str
    box: Box
    reason: Reason


class Sum(FrozenLater):
    """A sum that the statement prints."""

    kind: SumKind
    value: Decimal
    """Deposits and withdrawals without a sign; balances with debts below zero."""
    label: str
    page: int
    box: Box
    account: str = ""
    section: str = ""
    """The heading that it closes; empty outside of the table."""
    after: int = 0
    """How many transactions of its account stand before it."""
    is_part: bool = False
    """Of deposits or withdrawals: all parts together are the sum."""


class Statement(FrozenLater):
    """What a template read."""

    template_id: str
    version: int
    period_start: str | None = None
    period_end: str | None = None
    transactions: tuple[Transaction, ...] = ()
    sums: tuple[Sum, ...] = ()
    left_over: tuple[LeftOver, ...] = ()
    """Within the regions."""
    outside: tuple[LeftOver, ...] = ()
    """Rows with a date and an amount in their columns that stand in no region."""


def apply(template: StatementTemplate, bundle: DocumentBundle) -> Statement:
    """The statement as the template reads it."""
    return apply_to_lines(template, tuple(lines_of(page) for page in bundle.pages))


def apply_to_lines(template: StatementTemplate, pages: Sequence[Sequence[Line]]) -> Statement:
    """As ``apply``, of pages whose words are in lines already."""
    period = find_period(template, pages)
    walk = _Walk(template, period)
    for number, lines in enumerate(pages, 1):
        boxes = template.boxes(number, len(pages))
        for at, line in enumerate(lines):
            inside = next((part for box in boxes if (part := line.within(box))), None)
            walk.take(line, inside, lines[at + 1 :])
    return walk.done()


def find_period(template: StatementTemplate, pages: Sequence[Sequence[Line]]) -> Period | None:
    """What the statement says it is about; None where no page does."""
    forms = template.dates.period_formats or template.dates.formats
    if not template.dates.period:
        return _unlabelled(template, pages, forms)
    for lines in pages:
        for line, below in zip_longest(lines, lines[1:]):
            for _, text in labelled_texts(line, below, template.dates.period):
                if period := period_of(list(days_in(text, forms))):
                    return period
    return None


def _unlabelled(template: StatementTemplate, pages: Sequence[Sequence[Line]], forms: Sequence[str]) -> Period | None:
    """The first line of the first page with two dates, else the latest date beside a closing balance, or of the page."""
    first = pages[0] if pages else ()
    for line in first:
        period = period_of(list(days_in(line.text, forms)))
        if period and period.start and (period.end - period.start).days in _PERIOD_DAYS:
            return period
    closing = (
        line
        for lines in pages
        for line in lines
        if any(matches(one, cell.text) for one in template.reconciliation.closing for cell in line.cells)
    )
    for some in (closing, first):
        known = [found for line in some for day in days_in(line.text, forms) if (found := dated(day, None))]
        if known:
            return Period(None, max(known))
    return None


def period_of(days: Sequence[Day]) -> Period | None:
    """From the first to the last of the days; a first day without a year is of the year before the last, or its own."""
    known = [found for day in days if (found := dated(day, None))]
    if not known:
        return None
    end = max(known)
    bare = [dated(day, Period(None, end)) for day in days if day.year is None]
    starts = [found for found in (*known, *bare) if found and found < end]
    return Period(min(starts) if starts else None, end)


@dataclass
class _Open:
    """A transaction whose lines are being read."""

    day: Day
    first: Line
    section: str
    text: list[str] = field(default_factory=list)
    """What it was, line by line."""
    amount: Decimal | None = None
    balance: Decimal | None = None
    check_number: str = ""
    is_mended: bool = False
    boxes: list[Box] = field(default_factory=list)
    y: float = 0.0

    def extend(self, line: Line, words: Sequence[Word]) -> None:
        """A further line, and its words that say what it was."""
        if text := " ".join(word.text for word in words):
            self.text.append(text)
        self.boxes.append(line.box)
        self.y = line.y


class _Walk:
    """Goes through the lines from the first page to the last."""

    def __init__(self, template: StatementTemplate, period: Period | None) -> None:
        self._template = template
        self._period = period
        self._account = ""
        self._section = ""
        self._direction: Direction | None = None
        self._open: _Open | None = None
        self._day: Day | None = None
        self._is_inside = self._has_ended = False
        self._page = 0
        self._below: Sequence[Line] = ()
        self._transactions: list[Transaction] = []
        self._sums: list[Sum] = []
        self._left: list[LeftOver] = []
        self._outside: list[LeftOver] = []
        made = template.reconciliation
        self._patterns = {
            "opening": made.opening,
            "closing": made.closing,
            **{f"total {at}": (total.label,) for at, total in enumerate(made.total) if total.of != "columns"},
        }
        self._titles = {column.name: set(column.title.casefold().split()) for column in template.columns}
        #: The first that takes a line is its meaning.
        self._rules: tuple[Callable[[Row], bool], ...] = (
            self._is_header,
            self._is_account,
            self._is_section,
            self._is_sum,
            self._is_furniture,
            self._is_transaction,
            self._is_continuation,
        )

    def take(self, line: Line, inside: Line | None, below: Sequence[Line]) -> None:
        """One line, the words of it that stand in a region, and the lines below it."""
        if line.page != self._page:
            self._page, self._has_ended = line.page, False
        self._below = below
        row = Row(self._template, inside or line)
        if inside and (self._is_header(row) or self._is_account(row) or self._is_section(row)):
            self._has_ended = False
            return
        self._has_ended = self._has_ended or any(matches(one, line.text) for one in self._template.rows.ends)
        self._is_inside = inside is not None and not self._has_ended
        if self._is_inside:
            if not any(rule(row) for rule in self._rules):
                self._leave(row.line, "it belongs to no transaction")
        elif not any(rule(row) for rule in self._rules[:_EVERYWHERE]) and self._looks_like_one(row):
            self._outside.append(_left(line, "it belongs to no transaction"))

    def done(self) -> Statement:
        """All that was read."""
        self._close()
        period = self._period
        return Statement(
            template_id=self._template.template_id,
            version=self._template.version,
            period_start=period.start.isoformat() if period and period.start else None,
            period_end=period.end.isoformat() if period else None,
            transactions=tuple(self._transactions),
            sums=tuple(self._sums),
            left_over=tuple(self._left),
            outside=tuple(self._outside),
        )

    # What a line may be

    def _is_header(self, row: Row) -> bool:
        return all(
            name is not None and self._titles[name].issuperset(word.text.casefold() for word in words)
            for name, words in row.cells.items()
        )

    def _is_account(self, row: Row) -> bool:
        text = row.line.text
        if not any(matches(one, text) for one in self._template.rows.accounts) or self._has_sum(row.line):
            return False
        self._close()
        account = _without_continued(text)
        if account != self._account:
            self._account, self._section, self._direction, self._day = account, "", None, None
        return True

    def _is_section(self, row: Row) -> bool:
        if row.day or self._has_sum(row.line):
            return False
        for section in self._template.rows.section:
            if matches(section.heading, row.line.text):
                self._close()
                self._section, self._direction = _without_continued(row.line.text), section.direction
                return True
        return False

    def _is_sum(self, row: Row) -> bool:
        if row.day:
            return self._is_balance_row(row)
        if self._is_column_total(row):
            return True
        amounts = self._template.amounts
        found = list(values_on(row.line, self._below, self._patterns, amounts.decimal, is_whole=amounts.whole))
        for value in found:
            self._add_sum(value, row.line)
        return bool(found)

    def _is_column_total(self, row: Row) -> bool:
        """Whether the totals of the debits and of the credits stand below them."""
        labels = (one.label for one in self._template.reconciliation.total if one.of == "columns")
        if not any(matches(label, row.line.text) for label in labels):
            return False
        sides: tuple[tuple[ColumnName, str], ...] = (("debit", "withdrawals"), ("credit", "deposits"))
        label = " ".join(word.text for word in row.description)
        found = [Value(kind, label, row.amounts[name], row.line.box) for name, kind in sides if name in row.amounts]
        for value in found:
            self._add_sum(value, row.line)
        return bool(found)

    def _is_balance_row(self, row: Row) -> bool:
        """Whether a row with a date only tells a balance: "1 May Opening balance 1,200.00"."""
        text = " ".join(word.text for word in row.description)
        kinds = (kind for kind in ("opening", "closing") if any(matches(one, text) for one in self._patterns[kind]))
        kind, amount = next(kinds, None), row.amounts.get("balance") or next(iter(row.amounts.values()), None)
        if kind is None or amount is None:
            return False
        self._add_sum(Value(kind, text, amount, row.line.box), row.line)
        return True

    def _is_furniture(self, row: Row) -> bool:
        # A row with a date only tells a balance: "1 May Balance brought forward 1,200.00".
        text = " ".join(word.text for word in row.description) if row.day else row.line.text
        if (row.day and row.has_amount) or not any(matches(one, text) for one in self._template.rows.furniture):
            return False
        if balance := row.amounts.get("balance"):
            self._add_sum(Value("carried", row.line.text, balance, row.line.box), row.line)
        return True

    def _is_transaction(self, row: Row) -> bool:
        if row.day is None and not row.has_amount:
            return False
        if row.day is None and "date" in row.cells:
            return self._leave(row.line, "its date cannot be read")
        if row.has_dates_behind:
            return self._leave(row.line, "it has dates behind its amounts")
        moved = row.moved(self._direction)
        if row.has_amount and moved is None:
            return self._leave(row.line, "no heading says which way the money went")
        if row.day is None and self._open and self._open.amount is None:
            one = self._open
        else:
            if row.day is None and not (self._template.rows.date_once and self._day):
                return self._leave(row.line, "it has an amount and no date")
            self._close()
            self._day = row.day or self._day
            assert self._day is not None  # noqa: S101 - one of the two is
            one = self._open = _Open(self._day, row.line, self._section)
        one.amount, one.balance = moved, row.balance()
        one.check_number, one.is_mended = row.text("check_number") or one.check_number, row.is_mended
        one.extend(row.line, row.description)
        if lost := row.cells.get(None):
            self._leave(Line(row.line.page, lost, row.line.is_recognised), "it stands in no column")
        return True

    def _is_continuation(self, row: Row) -> bool:
        one, rows = self._open, self._template.rows
        if one is None or rows.continuation == "none" or row.line.page != one.first.page:
            return False
        if row.line.y - one.y > rows.gap * one.first.height or not set(row.cells) <= {"description", "other"}:
            return False
        one.extend(row.line, row.description)
        return True

    def _looks_like_one(self, row: Row) -> bool:
        return row.day is not None and row.has_amount

    def _has_sum(self, line: Line) -> bool:
        return any(tail_amount(cell, self._template.amounts.decimal, is_whole=False) for cell in line.cells)

    # What becomes of it

    def _close(self) -> None:
        one, self._open = self._open, None
        if one is None:
            return
        when: date | None = dated(one.day, self._period)
        reason: Reason | None = None
        if one.amount is None:
            reason = "it has a date and no amount"
        elif not one.text and self._template.column("description"):
            reason = "it does not say what it was"
        elif when is None:
            reason = "its year is not known"
        if reason or one.amount is None or when is None:
            self._left.append(_left(one.first, reason or "its year is not known"))
            return
        self._transactions.append(
            Transaction(
                date=when.isoformat(),
                description=self._template.rows.joint.join(one.text),
                amount=one.amount,
                balance=one.balance,
                check_number=one.check_number,
                page=one.first.page,
                boxes=tuple(one.boxes),
                account=self._account,
                section=one.section,
                is_mended=one.is_mended,
            )
        )

    def _leave(self, line: Line, reason: Reason) -> bool:
        self._left.append(_left(line, reason))
        return True

    def _add_sum(self, value: Value, line: Line) -> None:
        self._close()
        kind: SumKind
        is_part = False
        is_owed = self._template.amounts.balance == "owed"
        if value.kind.startswith("total "):
            total = self._template.reconciliation.total[int(value.kind.split()[1])]
            kind, is_part = _KINDS[total.of], total.part
        else:
            kind = _KINDS.get(value.kind, "carried")
            # Where both are called "Balance on …", the first is the opening one.
            is_both = kind == "opening" and any(matches(one, value.label) for one in self._patterns["closing"])
            if is_both and any(one.kind == "opening" and one.account == self._account for one in self._sums):
                kind = "closing"
        self._sums.append(
            Sum(
                kind=kind,
                value=value.amount.magnitude
                if kind in ("deposits", "withdrawals")
                else value.amount.held(is_owed=is_owed),
                label=value.label,
                page=line.page,
                box=value.box,
                account=self._account,
                section=self._section if self._is_inside else "",
                after=sum(one.account == self._account for one in self._transactions),
                is_part=is_part,
            )
        )


def _left(line: Line, reason: Reason) -> LeftOver:
    return LeftOver(page=line.page, text=line.text, box=around(word.box for word in line.words), reason=reason)


def _without_continued(text: str) -> str:
    return _CONTINUED.sub("", text).strip()
