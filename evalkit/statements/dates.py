"""How statements write dates, and which year a date without one is of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from functools import cache
from typing import NamedTuple

#: What a builder tries, the usual ones first; ``%b`` is a month's name in any of the languages below.
FORMATS = (
    "%m/%d/%Y", "%d/%m/%Y", "%m/%d/%y", "%d/%m/%y", "%m/%d", "%d/%m",
    "%d.%m.%Y", "%d.%m.%y", "%d.%m.", "%d.%m",
    "%m-%d-%Y", "%d-%m-%Y", "%m-%d-%y", "%d-%m-%y", "%m-%d", "%d-%m",
    "%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d",
    "%b %d, %Y", "%b %d %Y", "%d %b %Y", "%d %b %y", "%d. %b %Y", "%d-%b-%Y", "%d-%b-%y", "%d-%b", "%b-%d",
    "%d/%b/%Y", "%d/%b", "%b %d", "%d %b", "%d. %b",
)  # fmt: skip
_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "jan ene gen", "feb fev fév", "mar mär mrz mrt", "apr abr avr", "may mai mei mag maj", "jun juin giu",
            "jul juil lug", "aug ago aoû aou", "sep set", "oct okt ott out", "nov", "dec dez dic déc",
        ),
        1,
    )
    for name in names.split()
}  # fmt: skip
_PARTS = {
    "%d": r"(?P<d>\d{1,2})",
    "%m": r"(?P<m>\d{1,2})",
    "%b": r"(?P<b>[^\W\d_]{3,9})\.?",
    "%Y": r"(?P<Y>\d{4})",
    "%y": r"(?P<y>\d{2})",
}
_CENTURY = 2000
_DIRT = " .,:;'|_*"
#: A date may lie so many days beside the period: booked later, or a weekend.
_BESIDE = timedelta(days=7)
_YEAR = timedelta(days=366)


class Day(NamedTuple):
    """A date as it is written."""

    year: int | None
    month: int
    day: int

    def of_year(self, year: int) -> date | None:
        """The day in that year; None where there is none, such as 29 February."""
        try:
            return date(year, self.month, self.day)
        except ValueError:
            return None


class Period(NamedTuple):
    """What a statement is about, both ends in; ``start`` is None where only its end is printed."""

    start: date | None
    end: date


def has_year(form: str) -> bool:
    """Whether the format writes the year."""
    return "%Y" in form or "%y" in form


def check_format(form: str) -> str:
    """The format itself. ValueError where it is not of day, month and perhaps year."""
    codes = re.findall(r"%.", form)
    if sorted(code.lower().replace("b", "m") for code in codes if code.lower() != "%y") != ["%d", "%m"] or not set(
        codes
    ) <= set(_PARTS):
        raise ValueError(f"{form!r} is not a format of %d, %m or %b, and perhaps %Y or %y")
    return form


def read_day(text: str, forms: Iterable[str], *, is_recognised: bool = False) -> Day | None:
    """The day that is the whole of ``text``, in the first of the formats that fits.

    ``is_recognised``: dots and lines behind it, which engines see in dirt and rules, do not count.

    >>> read_day("2/6/2020", ["%m/%d/%Y"]), read_day("31.12.", ["%d.%m."]), read_day("5 Mär 24", ["%d %b %y"])
    (Day(year=2020, month=2, day=6), Day(year=None, month=12, day=31), Day(year=2024, month=3, day=5))
    >>> read_day("13/13/2020", ["%m/%d/%Y", "%d/%m/%Y"]), read_day("30 Feb", ["%d %b"]), read_day("4 Foo", ["%d %b"])
    (None, None, None)
    """
    for said in (text.strip(), text.strip(_DIRT)) if is_recognised else (text.strip(),):
        for form in forms:
            found = _compiled(form).fullmatch(said)
            if found and (day := _day(found.groupdict())):
                return day
    return None


def days_in(text: str, forms: Iterable[str]) -> Iterator[Day]:
    """The days that stand in ``text`` in one of the formats, from the left; none within another."""
    placed = sorted(
        ((found.start(), -found.end(), day) for form in forms for found, day in _found(text, form)),
        key=lambda one: one[:2],
    )
    reached = 0
    for start, end, day in placed:
        if start >= reached:
            yield day
            reached = -end


def dated(day: Day, period: Period | None) -> date | None:
    """The date: its own year, else the year that puts it into the period; None where the year cannot be told.

    >>> around_new_year = Period(date(2023, 12, 10), date(2024, 1, 9))
    >>> dated(Day(None, 12, 28), around_new_year), dated(Day(None, 1, 3), around_new_year)
    (datetime.date(2023, 12, 28), datetime.date(2024, 1, 3))
    >>> dated(Day(None, 6, 1), None) is None, dated(Day(2020, 2, 29), None)
    (True, datetime.date(2020, 2, 29))
    """
    if day.year is not None:
        return day.of_year(day.year)
    if period is None:
        return None
    first = (period.start or period.end - _YEAR + _BESIDE) - _BESIDE
    last = period.end + _BESIDE
    fitting = [found for year in (last.year, last.year - 1) if (found := day.of_year(year)) and first <= found <= last]
    return fitting[0] if fitting else None


def _found(text: str, form: str) -> Iterator[tuple[re.Match[str], Day]]:
    for found in re.finditer(rf"(?<![\w.,/-])(?:{_compiled(form).pattern})(?![\w/-]|[.,]\d)", text):
        if day := _day(found.groupdict()):
            yield found, day


def _day(parts: dict[str, str | None]) -> Day | None:
    name = parts.get("b")
    month = _month(name) if name else int(parts.get("m") or 0)
    short = parts.get("y")
    year = int(parts["Y"] or 0) if parts.get("Y") else _CENTURY + int(short) if short else None
    day = Day(year, month, int(parts["d"] or 0))
    return day if month >= 1 and day.of_year(year or _CENTURY) else None  # 2000 has a 29 February


def _month(name: str) -> int:
    small = name.casefold()
    return _MONTHS.get(small[:4], 0) or _MONTHS.get(small[:3], 0)


@cache
def _compiled(form: str) -> re.Pattern[str]:
    pieces = (_PARTS.get(piece) or r"\s*".join(map(re.escape, piece.split(" "))) for piece in re.split(r"(%.)", form))
    return re.compile("".join(pieces))
