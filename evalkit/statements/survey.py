"""What lies on a statement's pages before anybody knows how to read it: dates and amounts that stand below one another.

Pure facts for the builder; which of them mean what, it finds out by making sums meet.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest

from evalkit.statements.amounts import Amount, DecimalSign, Mark, read_amount
from evalkit.statements.dates import FORMATS, days_in, has_year, read_day
from evalkit.statements.lines import Line, Word
from evalkit.statements.printed import Value, labelled_texts, values_on
from evalkit.statements.wording import matches, wording

#: A date is written in at most so many words: "Jan 5, 2024".
_DATE_WORDS = 3
_AMOUNT_WORDS = 3
#: A column of dates has so many of them alone in their cells.
_ALONE = 0.7
#: A row's amount stands in its first line, or in one of so many.
_ROW_LINES = 4
#: A header's line stands at most so many lines above the first row.
_HEADER_ABOVE = 4
#: A header's titles stand on lines that are so near, in heights of a word.
_SAME_HEADER = 1.9
#: Fewer of the dated lines than this have amounts with cents: the statement is without.
_CENTS = 0.3
#: A column of dates has this share of the dates of the fullest.
_MANY = 0.5
Pages = Sequence[Sequence[Line]]


@dataclass(frozen=True)
class Placed:
    """A date or an amount in a line."""

    line: Line
    words: tuple[Word, ...]
    amount: Amount | None = None

    @property
    def text(self) -> str:
        """As it is written."""
        return _text(self.words)

    @property
    def x0(self) -> float:
        """Left edge."""
        return self.words[0].box[0]

    @property
    def x1(self) -> float:
        """Right edge."""
        return self.words[-1].box[2]


@dataclass(frozen=True)
class Stack:
    """Dates or amounts that stand below one another."""

    x0: float
    x1: float
    placed: tuple[Placed, ...]

    def overlaps(self, x0: float, x1: float) -> bool:
        """Whether it reaches into that range."""
        return self.x0 < x1 and x0 < self.x1


@dataclass(frozen=True)
class Survey:
    """Everything that was seen."""

    pages: Pages
    decimal: DecimalSign
    is_whole: bool
    dates: Stack
    """Of the rows."""
    value_dates: Stack | None
    amounts: tuple[Stack, ...]
    """From the left."""
    headers: tuple[Line, ...]
    """The lines with the columns' titles, on all pages."""
    values: tuple[tuple[Line, Value], ...]
    """Labelled sums."""
    marks: frozenset[Mark] = field(default=frozenset())
    """Of all amounts of rows."""

    def is_dated(self, line: Line) -> bool:
        """Whether a row begins in the line."""
        return id(line) in {id(placed.line) for placed in self.dates.placed}


def survey(pages: Pages) -> Survey | None:
    """What was seen; None where no dates and amounts stand below one another."""
    decimal = _decimal(pages)
    is_whole = _is_whole(pages, decimal)
    beside = [
        placed
        for lines in pages
        for line in lines
        for placed in _dates_before_amounts(line, decimal, is_whole=is_whole)
    ]
    stacks = _stacks(beside)
    if not stacks:
        return None
    fullest = max(len(stack.placed) for stack in stacks)
    dates, *more = sorted((one for one in stacks if len(one.placed) >= _MANY * fullest), key=lambda one: one.x0)
    headers = tuple(line for lines in pages for line in _headers(lines, dates.placed))
    others = [stack for stack in more if _is_column(stack, headers)]
    amounts = _amount_stacks(dates, others, headers, decimal, is_whole=is_whole)
    if not amounts:
        return None
    dated = tuple(
        placed
        for lines in pages
        for at, line in enumerate(lines)
        for placed in dates_in(line)
        if not _has_dates_behind(line, decimal, is_whole=is_whole)
        and dates.overlaps(placed.x0, placed.x1)
        and _ends_in(amounts, lines[at : at + _ROW_LINES], decimal, is_whole=is_whole)
    )
    return Survey(
        pages=pages,
        decimal=decimal,
        is_whole=is_whole,
        dates=Stack(dates.x0, dates.x1, dated),
        value_dates=others[0] if others else None,
        amounts=amounts,
        headers=headers,
        values=tuple(_values(pages, dated, headers, decimal, is_whole=is_whole)),
        marks=frozenset(one.amount.mark for stack in amounts for one in stack.placed if one.amount and one.amount.mark),
    )


def dates_in(line: Line) -> Iterator[Placed]:
    """The dates that begin a cell of the line."""
    for cell in line.cells:
        at = 0
        while at < len(cell.words):
            run = next(
                (
                    cell.words[at : at + size]
                    for size in range(min(_DATE_WORDS, len(cell.words) - at), 0, -1)
                    if read_day(_text(cell.words[at : at + size]), FORMATS, is_recognised=line.is_recognised)
                ),
                None,
            )
            if run is None:
                break
            yield Placed(line, run)
            at += len(run)  # two dates may stand close together


def _text(words: Sequence[Word]) -> str:
    return " ".join(word.text for word in words)


def amounts_in(line: Line, decimal: DecimalSign, *, is_whole: bool) -> Iterator[Placed]:
    """The amounts at the ends of the line's cells, and those that are all of a cell, from the left."""
    for cell in line.cells:
        found: list[Placed] = []
        end = len(cell.words)
        while end:
            for start in range(max(end - _AMOUNT_WORDS, 0), end):
                words = cell.words[start:end]
                amount = read_amount(_text(words), decimal, is_whole=is_whole, is_recognised=line.is_recognised)
                if amount:
                    found.append(Placed(line, words, amount))
                    end = start
                    break
            else:
                break
        # Without cents, any number may be at the end of a text.
        if end == 0 or not is_whole:
            yield from reversed(found)


def period_labels(pages: Pages) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The labels of the statement's period as printed, and the formats of its dates; empty where there are none."""
    full = [form for form in FORMATS if has_year(form)]
    best: tuple[int, str, str] | None = None
    for lines in pages:
        for line, below in zip_longest(lines, lines[1:]):
            for label, text in labelled_texts(line, below, (wording().period,)):
                count = len(list(days_in(text, full)))
                if count and (best is None or min(count, 2) > best[0]):
                    best = min(count, 2), label, text
    if best is None:
        return (), _forms_of("\n".join(line.text for lines in pages for line in lines))
    _, label_text, text = best
    forms = _forms_of(text)
    return (literal(label_text),), forms


def _forms_of(text: str) -> tuple[str, ...]:
    """The formats that find the most dates in the text; those without a year behind."""
    full = [form for form in FORMATS if has_year(form)]
    counts = {form: len(list(days_in(text, [form]))) for form in full}
    most = max(counts.values())
    bare = [form for form in ("%b %d", "%d %b") if list(days_in(text, [form]))]
    return (*(form for form in full if counts[form] == most), *bare)


def literal(text: str) -> str:
    r"""A pattern of the text's words; numbers are any number.

    >>> print(literal("Balance on 1 May (total)"))
    Balance on \d+ May \(total\)
    """
    words = (re.sub(r"\\?\d+", lambda _: r"\d+", re.escape(word)) for word in text.split())
    return " ".join(words).replace("\\-", "-").replace("\\#", "#").replace("\\&", "&")


def _decimal(pages: Pages) -> DecimalSign:
    ends = Counter(
        word.text.rstrip("-+)CRDHS")[-3:-2]
        for lines in pages
        for line in lines
        for word in line.words
        if re.fullmatch(r".*\d[.,]\d\d[-+)]?(?:CR|DR|C|D|H|S)?", word.text) and not read_day(word.text, FORMATS)
    )
    return "," if ends[","] > ends["."] else "."


def _is_whole(pages: Pages, decimal: DecimalSign) -> bool:
    dated = [line for lines in pages for line in lines if next(dates_in(line), None)]
    cents = sum(bool(list(amounts_in(line, decimal, is_whole=False))) for line in dated)
    whole = sum(bool(list(amounts_in(line, decimal, is_whole=True))) for line in dated)
    return cents < _CENTS * whole


def _stacks(placed: Iterable[Placed]) -> list[Stack]:
    """Those that overlap from above, from the left."""
    stacks: list[list[Placed]] = []
    reached = 0.0
    for one in sorted(placed, key=lambda one: one.x0):
        if stacks and one.x0 < reached:
            stacks[-1].append(one)
            reached = max(reached, one.x1)
        else:
            stacks.append([one])
            reached = one.x1
    return [Stack(min(one.x0 for one in some), max(one.x1 for one in some), tuple(some)) for some in stacks]


def _has_dates_behind(line: Line, decimal: DecimalSign, *, is_whole: bool) -> bool:
    """Whether a date stands right of an amount: a list of daily balances or of checks, several to a line."""
    first = min((one.x0 for one in amounts_in(line, decimal, is_whole=is_whole)), default=1.0)
    return any(one.x0 > first for one in dates_in(line))


def _dates_before_amounts(line: Line, decimal: DecimalSign, *, is_whole: bool) -> list[Placed]:
    """The dates of a row; none where dates stand behind amounts, as in lists of daily balances."""
    if _has_dates_behind(line, decimal, is_whole=is_whole) or not next(
        amounts_in(line, decimal, is_whole=is_whole), None
    ):
        return []
    return list(dates_in(line))


def _is_column(stack: Stack, headers: Sequence[Line]) -> bool:
    """Whether further dates are a column, and not the beginnings of descriptions: titled, or alone in their cells."""
    pattern = f"{wording().columns['value_date']}|{wording().columns['date']}"
    cells = [cell for line in headers for cell in line.cells if stack.overlaps(cell.box[0], cell.box[2])]
    alone = sum(any(cell.words == placed.words for cell in placed.line.cells) for placed in stack.placed)
    return any(matches(pattern, cell.text) for cell in cells) or alone > _ALONE * len(stack.placed)


def _ends_in(amounts: Sequence[Stack], lines: Sequence[Line], decimal: DecimalSign, *, is_whole: bool) -> bool:
    """Whether the first line has an amount where the others have theirs, or a line below it that has no date."""
    for line in lines:
        is_below = line is not lines[0]
        if is_below and (line.box[0] < lines[0].words[0].box[2] or next(dates_in(line), None)):
            return False
        found = amounts_in(line, decimal, is_whole=is_whole)
        if any(stack.overlaps(one.x0, one.x1) for one in found for stack in amounts):
            return True
    return False


def _headers(lines: Sequence[Line], dated: Sequence[Placed]) -> Iterator[Line]:
    """Lines of titles above the first row, and between rows where a table begins anew."""
    rows = {id(placed.line) for placed in dated}
    columns = wording().columns
    for at, line in enumerate(lines):
        # What is followed by a row within a few lines.
        if id(line) in rows or not any(id(other) in rows for other in lines[at + 1 : at + 1 + _HEADER_ABOVE]):
            continue
        named = {name for cell in line.cells for name, pattern in columns.items() if matches(pattern, cell.text)}
        if len(named) < 2 or len(line.cells) < 2 or any(re.search(r"\d[.,]\d\d\b", word.text) for word in line.words):
            continue
        for other in lines[max(at - 1, 0) : at + 2]:
            is_near = abs(other.y - line.y) < _SAME_HEADER * line.height
            is_heading = other is not line and len(other.cells) == 1 and other.box[0] < line.cells[0].box[2]
            if (
                is_near
                and not is_heading
                and id(other) not in rows
                and not any(word.text[-1:].isdigit() for word in other.words)
            ):
                yield other


def _amount_stacks(
    dates: Stack,
    others: Sequence[Stack],
    headers: Sequence[Line],
    decimal: DecimalSign,
    *,
    is_whole: bool,
) -> tuple[Stack, ...]:
    """Of the rows' own lines: what stands right of the dates; a single amount counts below a title."""
    rows = {id(placed.line): placed.line for placed in dates.placed}
    right = max((dates.x1, *(one.x1 for one in others if one.x0 < dates.x1 + 0.1)))
    stacks = _stacks(
        placed
        for line in rows.values()
        for placed in amounts_in(line, decimal, is_whole=is_whole)
        if placed.x0 > right and not any(other.overlaps(placed.x0, placed.x1) for other in others)
    )
    titles = [cell for line in headers for cell in line.cells]
    return tuple(
        stack
        for stack in stacks
        if len(stack.placed) > 1 or any(stack.overlaps(cell.box[0], cell.box[2]) for cell in titles)
    )


def _values(
    pages: Pages, dated: Sequence[Placed], headers: Sequence[Line], decimal: DecimalSign, *, is_whole: bool
) -> Iterator[tuple[Line, Value]]:
    said = wording()
    patterns: Mapping[str, tuple[str, ...]] = {
        "opening": (said.opening,),
        "closing": (said.closing,),
        "deposits": (said.deposits,),
        "withdrawals": (said.withdrawals,),
    }
    balances = {kind: patterns[kind] for kind in ("opening", "closing")}
    rows = {id(placed.line): placed for placed in dated}
    titles = {id(line) for line in headers}
    for lines in pages:
        for at, line in enumerate(lines):
            if id(line) in titles:
                continue
            if row := rows.get(id(line)):  # "1 May  Opening balance  1,200.00" is a row that tells a balance
                behind = tuple(word for word in line.words if word.box[0] > row.x1)
                found = (
                    values_on(replace(line, words=behind), (), balances, decimal, is_whole=is_whole) if behind else ()
                )
            else:
                found = values_on(line, lines[at + 1 :], patterns, decimal, is_whole=is_whole)
            yield from ((line, value) for value in found)
