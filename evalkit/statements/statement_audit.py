"""Independent measurement of a statement's pages, without a template.

Measured are rows, amounts, dates, columns, headings and printed sums. The review compares these measurements with what
the template reads. Nothing here is shared with the modules that build or apply templates, except the grouping of words
into lines: a mistake in both would confirm itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from decimal import Decimal
from functools import cache, cached_property, partial
from itertools import dropwhile, islice, pairwise, takewhile
from statistics import median
from typing import Literal, NamedTuple

from evalkit.core.document_cache import cache_document_text
from evalkit.core.grouping import group_by, split_into_runs
from evalkit.core.package_tables import load_package_table
from evalkit.documents.bundle import Box, enclose_boxes
from evalkit.statements.text_lines import PageWord, TextLine

DateOrder = Literal["day first", "month first", "year first"]
AmountMark = Literal["", "minus", "plus", "in", "out"]
ColumnRole = Literal["debit", "credit", "amount", "balance", "foreign", "reference", ""]
PrintedSumKind = Literal["opening", "closing", "carried", "in", "out", "other"]

#: The orders of day, month and a year of two digits in numbers.
ORDERS: tuple[DateOrder, ...] = ("day first", "month first", "year first")
#: Days by which a row's date may lie outside the printed period.
PERIOD_MARGIN = timedelta(days=7)
#: Longest time before a statement's date that its rows may cover, if only that date is printed.
_LONGEST_PERIOD = timedelta(days=100)
_PERIOD_DAYS = range(5, 101)
#: Dates of one row lie less than this many years apart.
_MAX_YEARS = 3
#: No statement covers more.
_MAX_SPAN = timedelta(days=800)
_CENTURY = 2000
#: Lines with more characters are neither rows nor labels; they are left out.
_MAX_LINE_LENGTH = 1_000
_MAX_HEADING_WORDS = 7
_MAX_TITLE_WORDS = 3
_MAX_TITLE_DISTANCE = 0.06
#: Lines whose dates begin at the same place, within this part of the page's width, are rows of one table.
_EDGE_TOLERANCE = 0.02
#: Largest distance of a code such as CR from its amount, in page widths, unless the code has a cell of its own.
_CODE_DISTANCE = 0.03
#: Largest distance of a row's text from where most rows' texts begin, in page widths.
_MAX_TEXT_INDENT = 0.25
#: Part of the page's width, from the start of a line, in which its dates are.
_DATE_ZONE = 0.2
#: Largest distance of a row without a date from the row above it, in heights of a line.
_MAX_ROW_DISTANCE = 10
#: Number of pairs of rows up to which they do not show whether a statement has rows without a date.
_MAX_UNTOLD_PAIRS = 2
#: Lines above a row that may belong to the header of its table.
_MAX_HEADER_LINES = 5
_DASHES = str.maketrans("−–—‐‑’\u00a0", "-----' ")
_OCR_DIGITS = str.maketrans("OoIl|SB", "0011158")
_MARKS_BEFORE = r"(?P<open>\()?(?P<lead>[-+])?\s?(?:[A-Z]{0,3}[$€£¥₹]|[A-Z]{3}|Fr\.|Rs\.?|kr)?\s?(?P<inner>[-+])?"
_MARKS_BEHIND = r"\s?(?P<trail>[-+](?!\d))?(?:\s?[$€£¥₹])?(?P<close>\))?"
_AMOUNT = re.compile(
    rf"(?<![\w.,'/-]){_MARKS_BEFORE}(?P<digits>(?:\d{{1,3}}(?:[.,' ]\d{{2,3}}){{1,6}}|\d{{1,12}})?[.,]\d\d){_MARKS_BEHIND}(?![\w.,']*\d)(?!%)"
)
_WHOLE_AMOUNT = re.compile(
    rf"(?<![\w.,'/-]){_MARKS_BEFORE}(?P<digits>(?:\d{{1,3}}(?:[.,' ]\d{{3}}){{1,4}}|\d{{1,7}})(?P<cents>[.,]\d\d)?){_MARKS_BEHIND}(?![\w.,']*\d)(?!%)"
)
_WHOLE_NUMBER = re.compile(r"\d{1,3}(?:[.,' ]\d{3})+")
_NUMERIC_DATE = re.compile(r"(?<![\w.,/-])(\d{1,4})([./-]| |\. )(\d{1,2})(?:\2(\d{4}|\d{2}))?\.?(?![\w/-]|[.,]\d)")


@cache
def load_audit_words() -> dict[str, dict[str, list[str]]]:
    """Load the audit's vocabulary: section → name → words."""
    tables = load_package_table("evalkit.statements", "statement_audit.toml")
    return {name: table if isinstance(table, dict) else {"": table} for name, table in tables.items()}


@cache
def _compile_words(section: str, name: str) -> re.Pattern[str]:
    words = (word.replace("*", r"\w*") for word in load_audit_words()[section][name])
    return re.compile(rf"(?<!\w)(?:{'|'.join(sorted(words, key=len, reverse=True))})(?!\w)", re.IGNORECASE)


def has_word(text: str, section: str, name: str) -> bool:
    """Return True if the text contains one of the audit's words of this name."""
    return _compile_words(section, name).search(text) is not None


@cache
def _compile_named_date() -> re.Pattern[str]:
    words = load_audit_words()["date"]
    months = "|".join(prefix for prefixes in words["months"] for prefix in prefixes)
    parts = {name[:end] for names in words["month_names"] for name in names for end in range(3, len(name) + 1)}
    named = "|".join(sorted(parts, key=len, reverse=True))
    month = rf"(?:(?:{months})[^\W\d_]{{0,8}}|(?:{named})(?:ta)?(?![^\W\d_]))"
    year = r"(?:19|20)\d\d|\d\d(?![\d:.,])"
    return re.compile(
        rf"(?<![\w.,/])(?:(?P<day>\d{{1,2}})(?:st|nd|rd|th|er|\.)?[ /.-]{{0,2}}(?:de )?(?P<month>{month})"
        rf"|(?P<month2>{month})\.?[ /-]?(?P<day2>\d{{1,2}})(?!\d)(?:st|nd|rd|th)?)"
        rf"(?:\.?,?[ /-]{{0,2}}(?:de )?(?P<year>{year}))?(?![\w/])",
        re.IGNORECASE,
    )


class PrintedDate(NamedTuple):
    """Date as printed.

    ``first`` and ``second`` are day and month in the statement's order.
    """

    first: int
    second: int
    year: int | None
    is_numeric: bool
    """False if the month is named or a year of four digits comes first, so that only one order is possible (day first)."""
    is_year_short: bool
    box: Box

    def order_parts(self, order: DateOrder) -> tuple[int, int]:
        """Return month and day, for this order of day and month."""
        is_month_first = self.is_numeric and order == "month first"
        return (self.first, self.second) if is_month_first else (self.second, self.first)

    def build_printed(self, order: DateOrder) -> date | None:
        """Return the date in this order if its year is printed and the date exists."""
        if self.year is None:
            return None
        if self.is_numeric and order == "year first":
            return _build_date(_CENTURY + self.first, self.second, self.year - _CENTURY) if self.is_year_short else None
        return _build_date(self.year, *self.order_parts(order))

    def resolve(self, order: DateOrder, period: tuple[date, date] | None) -> date | None:
        """Return the complete date in this order; None if it does not exist.

        Its year is printed, or follows from the period.
        """
        if self.year is not None or period is None:
            return self.build_printed(order)
        month, day = self.order_parts(order)
        candidates = [_build_date(year, month, day) for year in range(period[0].year - 1, period[1].year + 2)]
        return min(filter(None, candidates), key=lambda day: _measure_distance(day, period), default=None)


class PrintedAmount(NamedTuple):
    """An amount as printed."""

    value: Decimal
    """The amount without its sign."""
    mark: AmountMark
    """``in`` and ``out``: a code such as CR or DR."""
    box: Box

    @property
    def signed_value(self) -> Decimal:
        """The value, negative with a minus or a code for money going out."""
        return -self.value if self.mark in ("minus", "out") else self.value


class AuditRow(NamedTuple):
    """Table line with an amount, or a part of a line with several rows."""

    line: TextLine
    dates: tuple[PrintedDate, ...]
    amounts: tuple[PrintedAmount, ...]
    text: str
    """The words that are neither dates nor amounts."""
    heading: str
    """The last heading with a direction above the row; empty if there is none."""
    account: str
    """The account's number or currency, by the last heading that names one."""


class AuditColumn(NamedTuple):
    """A column of amounts: horizontal range, title and role by its title."""

    x: tuple[float, float]
    title: str
    role: ColumnRole


class _Title(NamedTuple):
    overlap: float
    """Width that the title shares with its column, in page widths; negative: the distance between them."""
    text: str


class AuditSum(NamedTuple):
    """An amount printed outside the rows."""

    kind: PrintedSumKind
    label: str
    amount: PrintedAmount
    page: int
    account: str
    position: int
    """Number of rows before it."""


@dataclass(frozen=True, eq=False)
class StatementAudit:
    """The rows, sums, dates and words that the pages show without a template."""

    rows: tuple[AuditRow, ...]
    columns: tuple[AuditColumn, ...]
    sums: tuple[AuditSum, ...]
    other_lines: tuple[TextLine, ...]
    """The lines that are no rows."""
    header_dates: tuple[tuple[str, tuple[PrintedDate, ...]], ...]
    """The dates outside the rows, with the text around them."""
    booking_index: int
    """Position of the booking date among the dates of a row; another is the value date or the posting date."""

    def find_column(self, amount: PrintedAmount) -> AuditColumn | None:
        """Return the column of a row's amount."""
        return max(
            (column for column in self.columns if _overlap(column.x, amount.box) > 0),
            key=lambda column: _overlap(column.x, amount.box),
            default=None,
        )

    def find_balance(self, row: AuditRow) -> PrintedAmount | None:
        """Return the amount of a row in the column of the running balance."""
        return next(
            (
                amount
                for amount in row.amounts
                if (column := self.find_column(amount)) is not None and column.role == "balance"
            ),
            None,
        )

    def find_movement(self, row: AuditRow) -> PrintedAmount | None:
        """Return the amount of a row's transaction, not a balance or another currency's."""
        has_amount_title = any(column.role in ("debit", "credit", "amount") for column in self.columns)
        columns = [(amount, self.find_column(amount)) for amount in row.amounts if amount.value]
        candidates = [
            (amount, column.role if column else "")
            for amount, column in columns
            if not column
            or (
                column.role not in ("balance", "foreign", "reference")
                and not (has_amount_title and not column.role and column.title)
            )
        ]
        titled = [amount for amount, role in candidates if role in ("debit", "credit", "amount")]
        return next(iter(titled), candidates[-1][0] if candidates else None)

    @cached_property
    def is_owed(self) -> bool | None:
        """True on statements of debts, False on accounts, None if unknown."""
        if any(has_word(line.text, "kind", "prepaid") for line in self.other_lines):
            return False
        owed, held = (
            sum(
                (3 if line.page_number == 1 and line.box[1] < 0.3 and len(line.words) < 12 else 1)
                * len({match[0].casefold() for match in _compile_words("kind", kind).finditer(line.text)})
                for line in self.other_lines
            )
            for kind in ("owed", "held")
        )
        return None if owed == held else owed > held

    @cached_property
    def orders(self) -> tuple[DateOrder, ...]:
        """The orders of day and month that fit all dates of rows and headers."""
        dates = [day for row in self.rows for day in row.dates if _is_near_year(day, row.dates[0])] + [
            day for _, days in self.header_dates for day in days if day.year is not None
        ]
        dates = [day for day in dates if any(_is_valid(day, order) for order in ORDERS)]
        valid = tuple(order for order in ORDERS if all(_is_valid(day, order) for day in dates))
        fitting = tuple(order for order in valid if self._fits_period(order))
        return fitting or tuple(order for order in valid if order != "year first") or valid

    def _fits_period(self, order: DateOrder) -> bool:
        period = self.find_period(order)
        days = [row.dates[0].resolve(order, period) for row in self.rows if row.dates]
        known = [*filter(None, (*days, *(period or ())))]
        if known and max(known) - min(known) > _MAX_SPAN:
            return False
        return period is None or all(day and _measure_distance(day, period) <= PERIOD_MARGIN for day in days)

    @cached_property
    def is_order_open(self) -> bool:
        """True if both orders of day and month fit and give different dates."""
        return len(self.orders) != 1 and any(
            row.dates[0].is_numeric and row.dates[0].first != row.dates[0].second for row in self.rows if row.dates
        )

    def find_period(self, order: DateOrder) -> tuple[date, date] | None:
        """Return the statement's period, first and last day.

        None if neither a period nor the statement's date is printed.
        """
        resolved = [
            (text, [day for printed in days if (day := self._resolve_header_date(printed, days, order))])
            for text, days in self.header_dates
            if not has_word(text, "date", "due")
        ]
        for text, days in resolved:
            if len(days) > 1 and (has_word(text, "date", "period") or (max(days) - min(days)).days in _PERIOD_DAYS):
                return min(days), max(days)
        # A date without any words, at the head of a letter, is the statement's.
        dated = [max(days) for text, days in resolved if days and (not text or has_word(text, "date", "statement"))]
        # Without any such date, those with a year count if they are of one time, or a month with its year.
        others = [max(days) for _, days in resolved if days]
        if not dated and others and max(others) - min(others) < _LONGEST_PERIOD:
            dated = others
        dated = dated or list(islice(filter(None, map(_find_month_end, self.other_lines)), 1))
        return (max(dated) - _LONGEST_PERIOD, max(dated)) if dated else None

    def _resolve_header_date(
        self, printed: PrintedDate, others: Sequence[PrintedDate], order: DateOrder
    ) -> date | None:
        years = [other.year for other in others if other.year is not None]
        if printed.year is not None or not years:
            return printed.resolve(order, None)
        month, day = printed.order_parts(order)
        last = max((other.resolve(order, None) for other in others if other.year), key=lambda day: day or date.min)
        this_year = _build_date(max(years), month, day)
        return _build_date(max(years) - 1, month, day) if this_year and last and this_year > last else this_year


@cache_document_text(8)  # both reviewers and every check look at the same pages
def audit_lines(lines_by_page: tuple[tuple[TextLine, ...], ...]) -> StatementAudit:
    """Measure the pages of a statement, given as lines from top to bottom."""
    return _Auditor(lines_by_page).build_audit()


@dataclass
class _ScannedLine:
    """A line, or a side of it, with its dates and amounts."""

    line: TextLine
    dates: list[PrintedDate] = field(default_factory=list)
    amounts: list[PrintedAmount] = field(default_factory=list)
    words: list[PageWord] = field(default_factory=list)
    """The words that are neither dates nor amounts."""
    is_row: bool = False
    is_total: bool = False
    """True if the line prints the total of the rows below it."""
    is_text_first: bool = False
    """True if descriptions are left of the dates."""

    @property
    def text(self) -> str:
        return " ".join(word.text for word in self.words)

    @property
    def is_dated(self) -> bool:
        """True if the line's date is first, or behind a short number or a description."""
        return bool(self.dates) and (
            self.is_text_first or sum(word.box[0] < self.dates[0].box[0] for word in self.words) <= 1
        )


class _Auditor:
    def __init__(self, lines_by_page: Sequence[Sequence[TextLine]]) -> None:
        lines = [
            line
            for lines in lines_by_page
            for line in lines
            if sum(len(word.text) for word in line.words) <= _MAX_LINE_LENGTH
        ]
        texts_by_line = [
            [_mask(text, [match.span() for match, _ in _find_dates(text)]) for text in texts]
            for texts in ([cell.text.translate(_DASHES) for cell in line.cells] for line in lines)
        ]
        # One account of several may have a currency without cents.
        last_texts = [texts[-1] for texts in texts_by_line]
        with_cents = sum(bool(_AMOUNT.search(text)) for text in last_texts)
        without_cents = sum(bool(_WHOLE_NUMBER.fullmatch(text)) for text in last_texts)
        has_cents = without_cents <= with_cents and any(
            _AMOUNT.search(text) for texts in texts_by_line for text in texts
        )
        self._amount_pattern = _AMOUNT if has_cents else _WHOLE_AMOUNT
        scanned_lines = [self._scan_line(line) for line in lines]
        _mark_text_first(scanned_lines)
        self._date_edges = _cluster_edges(line.dates[0].box[0] for line in scanned_lines if line.is_dated)
        self._lines = [part for line in scanned_lines for part in self._split_sides(line)]
        dated = [line for line in self._lines if self._is_dated_row(line)]
        self._date_edges = _cluster_edges(line.dates[0].box[0] for line in dated)
        self._ranges = _cluster_ranges([amount.box for line in dated for amount in line.amounts])

    def build_audit(self) -> StatementAudit:
        self._mark_rows()
        rows: list[AuditRow] = []
        sums: list[AuditSum] = []
        heading = account = ""
        for position, line in enumerate(self._lines):
            if not line.is_row:
                # The second line of a description begins right of the dates.
                if (name := _find_account_name(line)) and (not rows or self._is_left(line)):
                    account, heading = name, heading if name == account else ""
                if line.is_total or self._is_direction_heading(position):
                    heading = line.text
                sums += self._read_sums(position, account, len(rows))
            elif (kind := _classify_sum(line.text)) in ("opening", "closing", "carried") and len(line.amounts) == 1:
                sums.append(AuditSum(kind, line.text, line.amounts[-1], line.line.page_number, account, len(rows)))
            else:
                # Or the dates of the nearest line above that begins with one.
                dates = (line.dates if line.is_dated else []) or next(
                    (
                        other.dates
                        for other in reversed(self._lines[:position])
                        if other.is_dated and (other.is_row or other.is_total or self._is_lone_date(other))
                    ),
                    [],
                )
                rows.append(AuditRow(line.line, tuple(dates), tuple(line.amounts), line.text, heading, account))
        return StatementAudit(
            tuple(rows),
            self._build_columns(),
            tuple(sums),
            tuple(line.line for line in self._lines if not line.is_row),
            tuple(_join_periods(self._find_header_dates())),
            self._find_booking_index(),
        )

    # Words of a line

    def _scan_line(self, line: TextLine) -> _ScannedLine:
        scanned = _ScannedLine(line)
        for cells in split_into_runs(line.cells, lambda run, cell: _is_date_divided(run[-1], cell)):
            words = tuple(word for cell in cells for word in cell.words)
            self._scan_cell(TextLine(line.page_number, words, line.is_ocr_text), scanned, line.box[0])
        if self._amount_pattern is _WHOLE_AMOUNT:
            scanned.amounts = list(_join_cents(scanned.amounts))
        scanned.dates.sort(key=lambda day: day.box[0])
        self._attach_codes(scanned)
        return scanned

    def _scan_cell(self, cell: TextLine, scanned: _ScannedLine, line_start: float) -> None:
        starts = [0]
        for word in cell.words:
            starts.append(starts[-1] + len(word.text) + 1)
        words = cell.text.translate(_DASHES).split(" ")
        text = " ".join(map(_read_digits, words) if cell.is_ocr_text else words)

        def enclose(start: int, end: int) -> Box:
            return enclose_boxes(
                word.box
                for word, begin in zip(cell.words, starts, strict=False)
                if begin < end and start < begin + len(word.text)
            )

        taken: list[tuple[int, int]] = []
        for match, parts in _find_dates(text, is_at_start=cell.box[0] < line_start + _DATE_ZONE):
            if not any(start < match.end() and match.start() < end for start, end in taken):
                scanned.dates.append(PrintedDate(*parts, enclose(*match.span())))
                taken.append(match.span())
        masked = _mask(text, taken)
        for match in self._amount_pattern.finditer(masked):
            mark, end = _read_mark(match, masked)
            digits = re.sub(r"\D", "", match["digits"])
            has_cents = self._amount_pattern is _AMOUNT or match["cents"]
            value = Decimal(digits) / 100 if has_cents else Decimal(digits)
            scanned.amounts.append(PrintedAmount(value, mark, enclose(match.start(), end)))
            taken.append((match.start(), end))
        scanned.words += (
            word
            for word, begin in zip(cell.words, starts, strict=False)
            if not any(start < begin + len(word.text) and begin < end for start, end in taken)
        )

    def _split_sides(self, scanned: _ScannedLine) -> list[_ScannedLine]:
        """Split a line at each date behind an amount with which another row begins."""
        edges = [
            later.box[0]
            for later in scanned.dates
            if any(amount.box[2] < later.box[0] for amount in scanned.amounts)
            and any(amount.box[0] > later.box[2] for amount in scanned.amounts)
            and (
                any(word.box[0] > later.box[2] for word in scanned.words)
                or any(abs(edge - later.box[0]) < _EDGE_TOLERANCE for edge in self._date_edges)
            )
        ]
        if not edges:
            return [scanned]
        bounds = [(0.0, edges[0]), *pairwise(edges), (edges[-1], 2.0)]
        return [_clip_side(scanned, left, right) for left, right in dict.fromkeys(bounds) if left < right]

    @staticmethod
    def _attach_codes(scanned: _ScannedLine) -> None:
        """Attach codes such as D and C to their amounts.

        A currency beside an amount is no word of the row.
        """
        currencies = load_audit_words()["account"]["currencies"]
        scanned.words = [
            word
            for word in scanned.words
            if word.text not in currencies
            or not any(_measure_gap(amount.box, word.box) < _CODE_DISTANCE for amount in scanned.amounts)
        ]
        for word in list(scanned.words):
            code = word.text.translate(_DASHES).strip("()")
            mark = "minus" if code == "-" else _load_mark_by_code().get(code)
            neighbours = [amount for amount in scanned.amounts if not amount.mark]
            if mark is None or not neighbours or word.box[0] < scanned.line.box[0] + 0.1:
                continue
            amount = min(neighbours, key=lambda amount: _measure_gap(amount.box, word.box))
            is_own_cell = any(cell.words == (word,) for cell in scanned.line.cells)
            if is_own_cell or _measure_gap(amount.box, word.box) < _CODE_DISTANCE:
                scanned.amounts[scanned.amounts.index(amount)] = amount._replace(mark=mark)
                scanned.words.remove(word)

    # Rows

    @staticmethod
    def _is_dated_row(line: _ScannedLine) -> bool:
        return (
            line.is_dated
            and any(amount.box[0] > line.dates[0].box[2] for amount in line.amounts)
            and any(character.isalpha() for character in line.text)
        )

    def _mark_rows(self) -> None:
        """Mark the rows of the table.

        They are dated lines, and lines between them with amounts in the columns of dated rows. A line below the last
        dated one is a row only if undated rows stand above dated ones too: else it may be a total of any name.
        """
        for line in self._lines:
            line.is_row = self._is_dated_row(line) and any(
                abs(line.dates[0].box[0] - edge) < _EDGE_TOLERANCE for edge in self._date_edges
            )
        self._drop_rows_beside_labels()
        if self._has_marked_totals():
            return
        for position, line in enumerate(self._lines):
            if line.is_row or line.is_dated or not line.amounts or not self._is_in_columns(line):
                continue
            above = next(
                (
                    other
                    for other in reversed(self._lines[:position])
                    if (other.amounts and self._is_in_columns(other)) or self._is_lone_date(other)
                ),
                None,
            )
            line.is_row = (
                above is not None
                and _is_near(self._lines[position - 1], line)
                and (above.is_row or self._is_lone_date(above) or has_word(above.text, "sum", "carried"))
                and _classify_sum(line.text) not in ("opening", "closing", "carried")
                and not has_word(line.text, "sum", "total")
                and (any(map(str.isalpha, line.text)) or self._is_lone_date(above))
            )
        pairs = list(pairwise(line for line in self._lines if line.is_row))
        has_undated = any(below.is_dated and not row.is_dated and _is_near(row, below) for row, below in pairs)
        if len(pairs) > _MAX_UNTOLD_PAIRS and not has_undated:
            for above, row in pairs:
                row.is_row = row.is_dated or not (above.is_dated or not above.is_row) or _continues_balance(above, row)

    def _has_marked_totals(self) -> bool:
        """Mark marked lines as totals if the unmarked lines below add up to each."""
        after_head = dropwhile(lambda line: not line.is_row, self._lines)
        amounts = [(line, amount) for line in after_head if self._is_in_columns(line) for amount in line.amounts]
        rest = Decimal(0)
        for _, amount in amounts:
            if bool(amount.mark) != (rest == 0):
                return False
            rest = amount.value if amount.mark else rest - amount.value
        for line, amount in amounts if not rest else ():
            line.is_row, line.is_total = not amount.mark, bool(amount.mark)
        return bool(amounts) and not rest

    def _drop_rows_beside_labels(self) -> None:
        """Unmark dates outside the table: their lines lack text where rows have it."""
        rows = [line for line in self._lines if line.is_row]
        # measured from the row's own date: tables may stand side by side
        indents = {
            id(line): min(word.box[0] for word in line.words) - line.dates[0].box[0]
            for line in rows
            if line.words and line.dates
        }
        limit = median(indents.values() or [0.0]) + _MAX_TEXT_INDENT
        for ordered in (rows, rows[::-1]):
            for line in takewhile(lambda line: indents.get(id(line), -1.0) > limit, ordered):
                line.is_row = False

    def _is_lone_date(self, line: _ScannedLine) -> bool:
        return (
            line.is_dated and not line.amounts
            and any(abs(line.dates[0].box[0] - edge) < _EDGE_TOLERANCE for edge in self._date_edges or (line.dates[0].box[0],))
        )  # fmt: skip

    def _is_in_columns(self, line: _ScannedLine) -> bool:
        """Return True if an amount is in a column of the dated rows.

        Also if all amounts are to the right of the first column.
        """
        first_edge = min((left for left, _ in self._ranges), default=1.0)
        return all(amount.box[0] > first_edge for amount in line.amounts) or any(
            _overlap(x, amount.box) > 0 for x in self._ranges for amount in line.amounts
        )

    # Columns

    def _build_columns(self) -> tuple[AuditColumn, ...]:
        rows = [line for line in self._lines if line.is_row]
        ranges = _cluster_ranges([amount.box for row in rows for amount in row.amounts])
        titles: dict[tuple[float, float], _Title] = {}
        for position, line in enumerate(self._lines):
            if line.is_row and not (position and self._lines[position - 1].is_row):
                for x, title in self._read_titles(position, ranges).items():
                    titles[x] = max(titles.get(x, title), title, key=lambda title: title.overlap)
        columns = [
            AuditColumn(x, title.text, _classify_title(title.text))
            for x in ranges
            for title in [titles.get(x, _Title(0.0, ""))]
        ]
        # The column whose differences are the rows' other amounts is the balance, whatever its title says.
        if len(columns) > 1 and (
            balance := next(
                (each for each in columns if each.role != "balance" and _is_running_balance(each, rows)), None
            )
        ):
            columns[columns.index(balance)] = balance._replace(role="balance")
        # If the titles leave no column for the amounts, they belong to other columns.
        if not any(each.role in ("debit", "credit", "amount", "") for each in columns):
            columns = [each if each.role == "balance" else each._replace(role="") for each in columns]
        return tuple(columns)

    def _read_titles(self, position: int, ranges: Sequence[tuple[float, float]]) -> dict[tuple[float, float], _Title]:
        """Return the title of each range in the header above a row."""
        first = self._lines[position].line
        header: list[TextLine] = []
        for line in reversed(self._lines[max(0, position - _MAX_HEADER_LINES) : position]):
            # Directly above the rows may be a balance, whatever its label.
            is_balance = not line.is_row and (
                not header or has_word(line.text, "sum", "balance") or has_word(line.text, "sum", "carried")
            )
            if line.line.page_number != first.page_number or ((line.dates or line.amounts) and not is_balance):
                break
            below = header[0] if header else first
            if below.deskewed_center_y - line.line.deskewed_center_y > 4 * first.height:
                break
            if not line.amounts and (len(line.line.cells) > 1 or len(line.line.words) <= _MAX_TITLE_WORDS):
                header.insert(0, line.line)
        cells = [
            part
            for line in header
            for cell in line.cells
            for part in _split_title(cell, ranges)
            if len(part.words) <= 2 * _MAX_TITLE_WORDS
        ]
        cells_by_range = group_by(cells, lambda cell: _find_nearest_range(cell.box, ranges))
        return {
            x: _Title(max(_overlap(x, cell.box) for cell in nearest), " ".join(cell.text for cell in nearest))
            for x, cells in cells_by_range.items()
            if (nearest := [cell for cell in cells if _is_title_of(x, cell, cells)])
        }

    def _find_booking_index(self) -> int:
        dated = [line for line in self._lines if line.is_row and len(line.dates) > 1]
        if not dated:
            return 0
        ranges = [
            (min(line.dates[index].box[0] for line in dated), max(line.dates[index].box[2] for line in dated))
            for index in (0, 1)
        ]
        titles = self._read_titles(self._lines.index(dated[0]), ranges)
        texts = [titles[x].text if x in titles else "" for x in ranges]
        ranks = [
            0
            if has_word(text, "column", "booking_date")
            else 2 * has_word(text, "column", "value_date") + has_word(text, "column", "posting_date")
            for text in texts
        ]
        if ranks[0] == ranks[1]:  # rows are printed in the order of their booking
            first, second = (_is_in_order([line.dates[index] for line in dated]) for index in (0, 1))
            return int(second and not first)
        return int(ranks[1] < ranks[0])

    # Headings and sums

    def _is_direction_heading(self, position: int) -> bool:
        line = self._lines[position]
        return (
            position > 0  # the first line is the bank's name
            and not line.amounts
            and len(line.line.words) <= _MAX_HEADING_WORDS
            and len(line.line.cells) == 1
            and self._is_left(line)
            and (read_direction(line.text, is_owed=None) != "" or has_word(line.text, "direction", "payment"))
            and not any(has_word(line.text, "legend", name) for name in ("minus", "unmarked"))
            and any(other.is_row for other in self._lines[position + 1 : position + 6])
        )

    def _is_left(self, line: _ScannedLine) -> bool:
        return line.line.box[0] <= min(self._date_edges, default=1.0) + 0.03

    def _read_sums(self, position: int, account: str, row_count: int) -> Iterator[AuditSum]:
        line = self._lines[position]
        for amount in line.amounts:
            left = max((other.box[2] for other in line.amounts if other.box[2] <= amount.box[0]), default=0.0)
            label = " ".join(word.text for word in line.words if left <= word.box[0] < amount.box[0])
            if not any(map(str.isalpha, label)):
                # In a table with the descriptions at the right, the label is behind the amount.
                is_single = len(line.amounts) == 1 and any(map(str.isalpha, line.text))
                label = line.text if is_single else self._find_label_above(position, amount)
            if any(map(str.isalpha, label)):
                yield AuditSum(_classify_sum(label), label, amount, line.line.page_number, account, row_count)

    def _find_label_above(self, position: int, amount: PrintedAmount) -> str:
        page, top = self._lines[position].line.page_number, amount.box[1]
        parts: list[str] = []
        for line in reversed(self._lines[max(0, position - 3) : position]):
            if line.line.page_number != page or line.dates or top - line.line.box[3] > 1.5 * line.line.height:
                break
            cells = [cell for cell in line.line.cells if _overlap((cell.box[0], cell.box[2]), amount.box) > 0]
            if line.amounts:
                continue
            if cells:
                parts.insert(0, cells[0].text)
            top = line.line.box[1]
        return " ".join(parts)

    def _find_header_dates(self) -> Iterator[tuple[str, tuple[PrintedDate, ...]]]:
        """Yield the dates outside the rows, with the words beside and above them."""
        for position, line in enumerate(self._lines):
            if line.is_row or not line.dates:
                continue
            above = self._lines[position - 1] if position else None
            label = line.text
            if above and not label.strip(" :-") and above.line.page_number == line.line.page_number:
                yield from (
                    (
                        " ".join(
                            cell.text for cell in above.line.cells if _overlap((cell.box[0], cell.box[2]), day.box) > 0
                        ),
                        (day,),
                    )
                    for day in line.dates
                )
                continue
            for group in split_into_runs(line.dates, partial(self._continues_dates, line)):
                previous = [
                    other.box[2] for other in line.dates if other.box[2] < group[0].box[0] and other not in group
                ]
                own = [word.text for word in line.words if max(previous, default=0.0) <= word.box[0] < group[-1].box[0]]
                yield " ".join(own) or label, tuple(group)

    @staticmethod
    def _continues_dates(line: _ScannedLine, run: Sequence[PrintedDate], next_day: PrintedDate) -> bool:
        """Return True if no label of its own is printed between a date and the next."""
        day = run[-1]
        between = [
            word.text for word in line.words if day.box[2] <= word.box[0] and word.box[2] <= next_day.box[0] + 0.005
        ]
        text = " ".join(between)
        return len(between) <= 2 and not has_word(text, "date", "due") and not has_word(text, "date", "statement")


def _is_in_order(days: Sequence[PrintedDate]) -> bool:
    """Return True if dates rise or fall in any order of day and month."""
    keys = ([(day.year or 0, *day.order_parts(order)) for day in days] for order in ORDERS[:2])
    return any(key in (sorted(key), sorted(key, reverse=True)) for key in keys)


def _continues_balance(above: _ScannedLine, below: _ScannedLine) -> bool:
    """Return True if a line's amount is the step of its balance from the line above."""
    amounts, before = below.amounts, above.amounts
    return len(amounts) == 2 and len(before) > 1 and amounts[0].value == abs(amounts[1].value - before[-1].value)


def _join_periods(
    header_dates: Iterable[tuple[str, tuple[PrintedDate, ...]]],
) -> Iterator[tuple[str, tuple[PrintedDate, ...]]]:
    """Join a period's first day with its last one on a line of its own."""
    until = load_audit_words()["date"]["until"]
    for run in split_into_runs(
        header_dates,
        lambda run, entry: (
            len(run) == 1
            and entry[0].casefold().strip(" :-") in until
            and run[0][1][-1].box[3] < entry[1][0].box[3]  # not a table of rates with titles "from" and "to"
        ),
    ):
        yield run[0][0], tuple(day for _, days in run for day in days)


def _is_near(above: _ScannedLine, below: _ScannedLine) -> bool:
    """Return True if two lines are no further apart than two rows of a table."""
    return (
        above.line.page_number == below.line.page_number
        and below.line.deskewed_center_y - above.line.deskewed_center_y < _MAX_ROW_DISTANCE * below.line.height
    )


def _mark_text_first(lines: Sequence[_ScannedLine]) -> None:
    """Mark the rows of a table whose dates are between descriptions and amounts."""
    rows = [
        line for line in lines if line.dates and any(amount.box[0] > line.dates[0].box[2] for amount in line.amounts)
    ]
    text_first = [line for line in rows if not line.is_dated and len(line.dates) == 1]
    edges = _cluster_edges(line.dates[0].box[0] for line in text_first)
    if 2 * len(text_first) > len(rows):
        for line in text_first:
            line.is_text_first = any(abs(line.dates[0].box[0] - edge) < _EDGE_TOLERANCE for edge in edges)


def read_direction(text: str, *, is_owed: bool | None) -> str:
    """Return ``in`` or ``out`` if a title or label has only one direction, or empty.

    Payments go out of an account and come in to a card: without knowing which, they have no direction.
    """
    remaining = _compile_words("neutral", "").sub(" ", text)
    directions = {name for name in ("in", "out") if has_word(remaining, "direction", name)}
    if not directions and is_owed is not None and has_word(remaining, "direction", "payment"):
        directions = {"in" if is_owed else "out"}
    return directions.pop() if len(directions) == 1 else ""


def _join_cents(amounts: Sequence[PrintedAmount]) -> Iterator[PrintedAmount]:
    """Join amounts and their cents if the cents are printed in a cell of their own."""
    for run in split_into_runs(
        amounts, lambda run, amount: len(run) == 1 and amount.value < 100 and amount.box[0] - run[0].box[2] < 0.05
    ):
        cents = run[1] if len(run) > 1 else None
        if cents is None or (not cents.mark and run[0].value < cents.value < 10):
            yield from run
        else:
            yield PrintedAmount(
                run[0].value + cents.value / 100, run[0].mark or cents.mark, enclose_boxes([run[0].box, cents.box])
            )


def _is_date_divided(cell: TextLine, next_cell: TextLine) -> bool:
    """Return True if a day and its month are two cells, as recognised words often are."""
    is_near = next_cell.box[0] - cell.box[2] < _EDGE_TOLERANCE
    return (
        is_near
        and re.fullmatch(r"\d{1,2}", cell.words[-1].text) is not None
        and _find_month(next_cell.words[0].text) is not None
    )


def _read_digits(word: str) -> str:
    """Return a recognised word with digits for letters if it is mostly a number."""
    return word.translate(_OCR_DIGITS) if sum(map(str.isdigit, word)) * 2 >= len(word) else word


def _mask(text: str, spans: Iterable[tuple[int, int]]) -> str:
    for start, end in spans:
        text = text[:start] + "\x00" * (end - start) + text[end:]
    return text


def _find_dates(
    text: str, *, is_at_start: bool = False
) -> Iterator[tuple[re.Match[str], tuple[int, int, int | None, bool, bool]]]:
    """Find the dates of a text.

    Day and month divided by a point or a blank alone count only at the start of a line.
    """
    for match in _compile_named_date().finditer(text):
        month = _find_month(match["month"] or match["month2"])
        day = int(match["day"] or match["day2"])
        if month and 1 <= day <= 31:
            yield match, (day, month, _complete_year(match["year"]), False, False)
    for match in _NUMERIC_DATE.finditer(text):
        first, second, third = match[1], int(match[3]), match[4]
        if len(first) == 4 and third and len(third) == 2 and 1 <= second <= 12:
            yield match, (int(third), second, int(first), False, False)
        elif len(first) <= 2 and (
            match[2] in "/-"
            or (third and match[2].startswith("."))
            or (
                is_at_start
                and (match[2] == "." or not match.start())
                and (third or match[0].endswith(".") or len(match[0]) == 5)
            )
        ):
            numbers = sorted((int(first), second))
            if numbers[0] >= 1 and numbers[0] <= 12 and numbers[1] <= 31:
                yield match, (int(first), second, _complete_year(third), True, bool(third and len(third) == 2))


@cache_document_text(256)
def _find_month(name: str) -> int | None:
    folded, words = name.casefold(), load_audit_words()["date"]
    is_meant: tuple[Callable[[Sequence[str], Sequence[str]], bool], ...] = (
        lambda prefixes, _: folded in prefixes,
        lambda _, names: any(name.startswith(folded.removesuffix("ta")) for name in names) and len(folded) > 2,
        lambda prefixes, _: folded.startswith(tuple(prefixes)),
    )
    months = list(enumerate(zip(words["months"], words["month_names"], strict=True), 1))
    return next((number for is_month in is_meant for number, month in months if is_month(*month)), None)


def _find_month_end(line: TextLine) -> date | None:
    """Return the last day of a month that the line prints with its year; None without."""
    # Without a day before it.
    pattern = r"(?<![\w./-])(?<!\d )(?<!\d\. )([^\W\d_]{3,}|\d\d)(?:[.,]? |[/.-])(20\d\d)(?!\w|[.,/-]\d)"
    for match in re.finditer(pattern, line.text):
        month = int(match[1]) if match[1].isdigit() else _find_month(match[1])
        if month and 1 <= month <= 12:
            return date(int(match[2]) + month // 12, month % 12 + 1, 1) - timedelta(days=1)
    return None


def _complete_year(printed: str | None) -> int | None:
    return None if not printed else int(printed) if len(printed) == 4 else _CENTURY + int(printed)


def _read_mark(match: re.Match[str], text: str) -> tuple[AmountMark, int]:
    """Return the mark of an amount, and the end of the amount with its mark."""
    code = re.match(r"\s?(\()?([A-Za-z]{1,5}\.?)(?(1)\)|(?!\w))", text[match.end() : match.end() + 8])
    if code and (mark := _load_mark_by_code().get(code[2])):
        return mark, match.end() + code.end()
    signs = {match["lead"], match["inner"], match["trail"]}
    if (match["open"] and match["close"]) or "-" in signs:
        return "minus", match.end()
    return ("plus" if "+" in signs else ""), match.end()


@cache
def _load_mark_by_code() -> dict[str, AmountMark]:
    codes = load_audit_words()["mark"]
    return {**dict.fromkeys(codes["out"], "out"), **dict.fromkeys(codes["in"], "in")}


def _clip_side(scanned: _ScannedLine, left: float, right: float) -> _ScannedLine:
    words = tuple(word for word in scanned.line.words if left <= word.center_x < right)
    line = TextLine(scanned.line.page_number, words or scanned.line.words, scanned.line.is_ocr_text)
    return _ScannedLine(
        line,
        [day for day in scanned.dates if left <= (day.box[0] + day.box[2]) / 2 < right],
        [amount for amount in scanned.amounts if left <= (amount.box[0] + amount.box[2]) / 2 < right],
        [word for word in scanned.words if left <= word.center_x < right],
        is_text_first=scanned.is_text_first,
    )


def _classify_sum(label: str) -> PrintedSumKind:
    if "%" in label or has_word(label, "sum", "other_period"):
        return "other"
    is_balance, direction = has_word(label, "sum", "balance"), read_direction(label, is_owed=None)
    kinds: tuple[tuple[PrintedSumKind, bool], ...] = (
        ("carried", has_word(label, "sum", "carried")),
        ("opening", is_balance and has_word(label, "sum", "opening")),
        ("closing", is_balance and has_word(label, "sum", "closing")),
        ("in", direction == "in"),
        ("out", direction == "out"),
    )
    return next((kind for kind, is_named in kinds if is_named), "other")


def _classify_title(title: str) -> ColumnRole:
    direction = read_direction(title, is_owed=None)
    roles: tuple[tuple[ColumnRole, bool], ...] = (
        ("balance", has_word(title, "column", "balance")),
        ("foreign", has_word(title, "column", "foreign")),
        ("credit", direction == "in"),
        ("debit", direction == "out"),
        ("reference", has_word(title, "column", "reference") or has_word(title, "column", "check")),
        ("amount", has_word(title, "column", "amount") or has_word(title, "direction", "payment")),
    )
    return next((role for role, is_named in roles if is_named), "")


def _is_title_of(x: tuple[float, float], cell: TextLine, cells: Sequence[TextLine]) -> bool:
    """Return True if a header's cell is above a column, or the nearest to it."""
    overlap = _overlap(x, cell.box)
    is_taken = any(
        _overlap(x, other.box) > 0 and other.box[1] < cell.box[3] and cell.box[1] < other.box[3] for other in cells
    )
    return overlap > 0 or (overlap > -_MAX_TITLE_DISTANCE and not is_taken)


def _find_nearest_range(box: Box, ranges: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return min(ranges, key=lambda x: _measure_gap((x[0], 0, x[1], 0), box))


def _split_title(cell: TextLine, ranges: Sequence[tuple[float, float]]) -> list[TextLine]:
    """Return a title, or its parts if several columns' titles have no gap between."""
    if sum(_overlap(x, cell.box) > 0 for x in ranges) < 2:
        return [cell]
    words_by_range = group_by(cell.words, lambda word: _find_nearest_range(word.box, ranges))
    return [replace(cell, words=tuple(words)) for words in words_by_range.values()]


def _is_running_balance(column: AuditColumn, rows: Sequence[_ScannedLine]) -> bool:
    steps = []
    for row, next_row in pairwise(rows):
        balance, next_balance = (
            next((amount for amount in each.amounts if _overlap(column.x, amount.box) > 0), None)
            for each in (row, next_row)
        )
        if balance and next_balance:
            step = abs(next_balance.signed_value - balance.signed_value)
            others = {
                amount.value
                for each in (row, next_row)
                for amount in each.amounts
                if amount not in (balance, next_balance)
            }
            steps.append(step in others)
    return len(steps) >= 3 and sum(steps) >= 0.7 * len(steps)


def _find_account_name(line: _ScannedLine) -> str:
    """Return the number or currency in an account's heading; empty if there is none."""
    text = _mask(line.line.text, [match.span() for match, _ in _find_dates(line.line.text)])
    if line.amounts or len(line.line.words) > 12 or not has_word(text, "account", "words"):
        return ""
    number = re.search(
        r"(?<!\w)[\dX*x]{0,12}\d{3,}(?:[ -]?\d{2,12}){0,6}(?!\w)|(?<!\w)[A-Z]{2}\d{2}(?: ?\w{2,4}){3,8}", text
    )
    currency = next(
        (code for code in load_audit_words()["account"]["currencies"] if re.search(rf"\b{code}\b", text)), ""
    )
    return number[0] if number else currency


def _cluster_edges(edges: Iterable[float]) -> list[float]:
    """Return the edges at which several rows begin; all if no two begin at the same."""
    runs = split_into_runs(sorted(edges), lambda run, edge: edge - run[-1] < 0.012)
    common = [median(run) for run in runs if len(run) > 1]
    return common or [median(run) for run in runs]


def _cluster_ranges(boxes: Sequence[Box]) -> list[tuple[float, float]]:
    """Return the horizontal ranges of columns.

    Amounts above each other, aligned at either edge, form a column.
    """
    by_edge = split_into_runs(sorted(boxes, key=lambda box: box[2]), lambda run, box: box[2] - run[-1][2] < 0.01)
    merged: list[tuple[float, float]] = []
    for left, right in sorted((min(box[0] for box in run), max(box[2] for box in run)) for run in by_edge):
        if merged and left < merged[-1][1] - 0.25 * min(right - left, merged[-1][1] - merged[-1][0]):
            merged[-1] = (min(left, merged[-1][0]), max(right, merged[-1][1]))
        else:
            merged.append((left, right))
    return merged


def _overlap(x: tuple[float, float], box: Box) -> float:
    return min(x[1], box[2]) - max(x[0], box[0])


def _measure_gap(box: Box, other: Box) -> float:
    return max(0.0, max(box[0], other[0]) - min(box[2], other[2]))


def _build_date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _is_near_year(printed: PrintedDate, other: PrintedDate) -> bool:
    """Return False for a number, such as a sort code, that is a remote date."""
    return printed.year is None or (other.year is not None and abs(printed.year - other.year) < _MAX_YEARS)


def _is_valid(printed: PrintedDate, order: DateOrder) -> bool:
    if printed.year is not None:
        return printed.build_printed(order) is not None
    is_open = printed.is_numeric and order == "year first"
    return not is_open and _build_date(_CENTURY, *printed.order_parts(order)) is not None


def _measure_distance(day: date, period: tuple[date, date]) -> timedelta:
    """Return how far a date lies outside a period."""
    return max(period[0] - day, day - period[1], timedelta(0))
