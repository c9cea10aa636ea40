"""A template reads a statement: transactions, the sums that it prints, and whatever was left over.

Nothing is lost silently: each line within a region is a transaction's, or is known (a heading, furniture, a printed
sum), or is left over with the reason; rows that look like transactions outside of all regions are told as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Literal

from pydantic import BaseModel, ConfigDict

from evalkit.documents.bundle import Box, DocumentBundle
from evalkit.statements.amounts import Amount
from evalkit.statements.dates import Day, Period, dated, days_in, read_day
from evalkit.statements.lines import Line, Word, around, lines_of
from evalkit.statements.printed import Value, tail_amount, values_on
from evalkit.statements.template import ColumnName, StatementTemplate
from evalkit.statements.wording import matches

Reason = Literal[
    "it belongs to no transaction",
    "its date cannot be read",
    "its year is not known",
    "it has an amount and no date",
    "it has a date and no amount",
    "no heading says which way the money went",
    "it stands in no column",
]
#: The first so many rules hold outside of regions too: headings and sums stand above the table, or on another page.
_EVERYWHERE = 4
#: Of a table of transactions, in the order that other programs rely on.
CSV_COLUMNS = ("date", "description", "amount", "balance", "page")
SumKind = Literal["opening", "closing", "deposits", "withdrawals", "carried"]
_SUMS: tuple[ColumnName, ...] = ("debit", "credit", "amount")
#: What a header says on the pages after the first of an account.
_CONTINUED = re.compile(r"[\s(–-]*continued\)?$", re.IGNORECASE)


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Transaction(_Frozen):
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


class LeftOver(_Frozen):
    """Words that no transaction took."""

    page: int
    text: str
    box: Box
    reason: Reason


class Sum(_Frozen):
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


class Statement(_Frozen):
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
        ends = [day for line in (pages[0] if pages else ()) for day in days_in(line.text, forms)]
        known = [found for day in ends if (found := dated(day, None))]
        return Period(None, max(known)) if known else None
    for lines in pages:
        for line, below in zip(lines, [*lines[1:], None], strict=True):
            for text in period_texts(line, below, template.dates.period):
                if period := period_of(list(days_in(text, forms))):
                    return period
    return None


def period_texts(line: Line, below: Line | None, labels: Sequence[str]) -> Iterator[str]:
    """What stands behind each cell of the line that begins with a label, the cell included, then the line below."""
    for at, cell in enumerate(line.cells):
        if any(matches(one, cell.text) for one in labels):
            yield " ".join(other.text for other in line.cells[at:])
            yield below.text if below else ""


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
    amount: Decimal | None = None
    balance: Decimal | None = None
    check_number: str = ""
    boxes: list[Box] = field(default_factory=list)
    y: float = 0.0


class _Walk:
    """Goes through the lines from the first page to the last."""

    def __init__(self, template: StatementTemplate, period: Period | None) -> None:
        self._template = template
        self._period = period
        self._account = ""
        self._section = ""
        self._direction: str | None = None
        self._open: _Open | None = None
        self._day: Day | None = None
        self._is_inside = False
        self._below: Sequence[Line] = ()
        self._recognised = False
        self._transactions: list[Transaction] = []
        self._sums: list[Sum] = []
        self._left: list[LeftOver] = []
        self._outside: list[LeftOver] = []
        made = template.reconciliation
        self._patterns = {
            "opening": made.opening,
            "closing": made.closing,
            **{f"total {at}": (total.label,) for at, total in enumerate(made.total)},
        }
        self._titles = {column.name: set(column.title.casefold().split()) for column in template.columns}
        #: The first that takes a line is its meaning.
        self._rules: tuple[Callable[[Line], bool], ...] = (
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
        self._is_inside, self._below = inside is not None, below
        if inside is not None:
            if not any(rule(inside) for rule in self._rules):
                self._leave(inside, "it belongs to no transaction")
        elif not any(rule(line) for rule in self._rules[:_EVERYWHERE]) and self._looks_like_one(line):
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

    def _is_header(self, line: Line) -> bool:
        cells = self._cells(line)
        return all(
            name is not None and self._titles[name].issuperset(word.text.casefold() for word in words)
            for name, words in cells.items()
        )

    def _is_account(self, line: Line) -> bool:
        if not any(matches(one, line.text) for one in self._template.rows.accounts) or self._has_sum(line):
            return False
        self._close()
        account = _without_continued(line.text)
        if account != self._account:
            self._account, self._section, self._direction, self._day = account, "", None, None
        return True

    def _is_section(self, line: Line) -> bool:
        if self._day_of(line) or self._has_sum(line):
            return False
        for section in self._template.rows.section:
            if matches(section.heading, line.text):
                self._close()
                self._section, self._direction = _without_continued(line.text), section.direction
                return True
        return False

    def _is_sum(self, line: Line) -> bool:
        if self._day_of(line):
            return self._is_balance_row(line)
        amounts = self._template.amounts
        found = list(values_on(line, self._below, self._patterns, amounts.decimal, is_whole=amounts.whole))
        for value in found:
            self._add_sum(value, line)
        return bool(found)

    def _is_balance_row(self, line: Line) -> bool:
        """Whether a row with a date only tells a balance: "1 May Opening balance 1,200.00"."""
        cells = self._cells(line)
        text = " ".join(word.text for word in cells.get("description", ()))
        kind = next(
            (kind for kind in ("opening", "closing") if any(matches(one, text) for one in self._patterns[kind])), None
        )
        amount = next((found for name in ("balance", *_SUMS) if (found := self._amount(cells, name)[0])), None)
        if kind is None or amount is None:
            return False
        self._add_sum(Value(kind, text, amount, line.box), line)
        return True

    def _is_furniture(self, line: Line) -> bool:
        if self._day_of(line) or not any(matches(one, line.text) for one in self._template.rows.furniture):
            return False
        if balance := self._amount(self._cells(line), "balance")[0]:
            self._add_sum(Value("carried", line.text, balance, line.box), line)
        return True

    def _is_transaction(self, line: Line) -> bool:
        cells = self._cells(line)
        written = bool(cells.get("date"))
        day, rest = self._date(cells)
        amount, direction_known, spilled = self._signed(cells)
        if day is None and amount is None:
            return False
        if day is None and written:
            return self._leave(line, "its date cannot be read")
        if not direction_known:
            return self._leave(line, "no heading says which way the money went")
        if day is None and self._open and self._open.amount is None:
            one = self._open
        elif day is None and not (self._template.rows.date_once and self._day):
            return self._leave(line, "it has an amount and no date")
        else:
            self._close()
            self._day = day or self._day
            assert self._day is not None  # noqa: S101 - one of the two is
            one = self._open = _Open(self._day, line, self._section)
        balance, more = self._amount(cells, "balance")
        one.amount = amount
        one.balance = self._balance(balance) if balance else None
        one.check_number = " ".join(word.text for word in cells.get("check_number", ()))
        described = sorted((*rest, *cells.get("description", ()), *spilled, *more), key=lambda word: word.box[0])
        self._extend(one, line, described)
        if lost := cells.get(None):
            self._leave(Line(line.page, lost, line.is_recognised), "it stands in no column")
        return True

    def _is_continuation(self, line: Line) -> bool:
        one, rows = self._open, self._template.rows
        if one is None or rows.continuation == "none" or line.page != one.first.page:
            return False
        cells = self._cells(line)
        if line.y - one.y > rows.gap * one.first.height or not set(cells) <= {"description", "other"}:
            return False
        self._extend(one, line, cells.get("description", ()))
        return True

    def _looks_like_one(self, line: Line) -> bool:
        cells = self._cells(line)
        return self._date(cells)[0] is not None and any(self._amount(cells, name)[0] for name in _SUMS)

    # What stands in a line

    def _cells(self, line: Line) -> dict[ColumnName | None, tuple[Word, ...]]:
        """The line's words by the columns that their middles are in; None: in none."""
        found: dict[ColumnName | None, tuple[Word, ...]] = {}
        for word in line.words:
            name = next((one.name for one in self._template.columns if one.x[0] <= word.x < one.x[1]), None)
            found[name] = (*found.get(name, ()), word)
        self._recognised = line.is_recognised
        return found

    def _day_of(self, line: Line) -> Day | None:
        return self._date(self._cells(line))[0]

    def _date(self, cells: dict[ColumnName | None, tuple[Word, ...]]) -> tuple[Day | None, tuple[Word, ...]]:
        """The date at the beginning of its cell, and the words behind it."""
        words = cells.get("date", ())
        for end in range(len(words), 0, -1):
            text = " ".join(word.text for word in words[:end])
            if day := read_day(text.strip(" |*"), self._template.dates.formats):
                return day, words[end:]
        return None, ()

    def _has_sum(self, line: Line) -> bool:
        return any(tail_amount(cell, self._template.amounts.decimal, is_whole=False) for cell in line.cells)

    def _amount(
        self, cells: dict[ColumnName | None, tuple[Word, ...]], name: ColumnName
    ) -> tuple[Amount | None, tuple[Word, ...]]:
        """The amount at the end of the column's cell, and the words before it: text that reaches over from the left."""
        words = cells.get(name, ())
        amounts = self._template.amounts
        tail = tail_amount(Line(0, words, self._recognised), amounts.decimal, is_whole=amounts.whole) if words else None
        return (tail[0], words[: tail[1]]) if tail else (None, words)

    def _signed(
        self, cells: dict[ColumnName | None, tuple[Word, ...]]
    ) -> tuple[Decimal | None, bool, tuple[Word, ...]]:
        """The row's amount, whether its direction is known, and the words that stand before it in its cells."""
        debit, credit, amount = (self._amount(cells, name) for name in _SUMS)
        spilled = (*debit[1], *credit[1], *amount[1])
        if debit[0] or credit[0]:
            value = (credit[0].magnitude if credit[0] else Decimal(0)) - (
                debit[0].magnitude if debit[0] else Decimal(0)
            )
            return value, True, spilled
        if amount[0] is None:
            return None, True, spilled
        direction = self._meaning(amount[0])
        return amount[0].magnitude * (-1 if direction == "withdrawal" else 1), direction is not None, spilled

    def _meaning(self, amount: Amount) -> str | None:
        amounts = self._template.amounts
        if amount.mark in amounts.deposit:
            return "deposit"
        if amount.mark in amounts.withdrawal:
            return "withdrawal"
        return self._direction if amounts.unmarked == "section" else amounts.unmarked

    def _balance(self, amount: Amount) -> Decimal:
        return Value("", "", amount, (0, 0, 0, 0)).signed(is_owed=self._template.amounts.balance == "owed")

    # What becomes of it

    def _extend(self, one: _Open, line: Line, words: Sequence[Word]) -> None:
        one.text += [word.text for word in words]
        one.boxes.append(line.box)
        one.y = line.y

    def _close(self) -> None:
        one, self._open = self._open, None
        if one is None:
            return
        when: date | None = dated(one.day, self._period)
        if one.amount is None or when is None:
            words = tuple(one.first.words)
            reason: Reason = "its year is not known" if one.amount is not None else "it has a date and no amount"
            self._left.append(_left(Line(one.first.page, words), reason))
            return
        self._transactions.append(
            Transaction(
                date=when.isoformat(),
                description=" ".join(one.text),
                amount=one.amount,
                balance=one.balance,
                check_number=one.check_number,
                page=one.first.page,
                boxes=tuple(one.boxes),
                account=self._account,
                section=one.section,
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
            kind, is_part = total.of, total.part
        else:
            kind = {"opening": "opening", "closing": "closing"}.get(value.kind, "carried")  # type: ignore[assignment]
        self._sums.append(
            Sum(
                kind=kind,
                value=value.amount.magnitude if kind in ("deposits", "withdrawals") else value.signed(is_owed=is_owed),
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
