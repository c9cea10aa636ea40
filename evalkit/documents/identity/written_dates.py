"""Dates as charts write them: parsing, and comparison of birth dates."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

from rapidfuzz.distance import OSA

from evalkit.core.document_cache import cache_document_text

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH_PATTERN = r"(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]{0,6}\.?"
_ORDINAL = r"(?:st|nd|rd|th)?"
#: All forms of dates that charts use, without the day of the week.
WRITTEN_DATE_PATTERN = (
    rf"(?:\d{{4}}[-/.]\d{{1,2}}[-/.]\d{{1,2}}(?!\d)|\d{{1,2}} ?[/.-] ?\d{{1,2}} ?[/.-] ?(?:\d{{4}}|['’]?\d{{2}})(?!\d)"
    rf"|\d{{1,2}}{_ORDINAL}(?: of)?[ /.-]*{_MONTH_PATTERN}[ /,.-]*(?:\d{{4}}|['’]?\d{{2}})(?!\d)|{_MONTH_PATTERN}[ -]*\d{{1,2}}{_ORDINAL}[ ,.-]+\d{{4}}(?!\d)"
    rf"|\d{{4}}[ -]{_MONTH_PATTERN}[ -]\d{{1,2}}(?!\d)|(?:19|20)\d{{6}}(?!\d))"
)
_WRITTEN_DATE = re.compile(WRITTEN_DATE_PATTERN, re.IGNORECASE)
#: Letters and signs as which OCR misreads digits, with the digits.
_DIGIT_BY_CONFUSED_LETTER = str.maketrans("OoQDIl|!iSsBZzG", "000011111558226")


#: Years in which a page with a birth date and an age may have been written.
_EARLIEST_CHART_YEAR, _LATEST_CHART_YEAR = 1985, 2060


class DateRelation(StrEnum):
    """Result of comparing two birth dates."""

    AGREE = "agree"
    CLOSE = "close"
    """The dates differ, but day and month may be exchanged, or one digit misread."""
    DIFFER = "differ"


@dataclass(frozen=True)
class WrittenDate:
    """A parsed date; if month and day could be exchanged, the first is the month."""

    iso: str
    day_month_swapped_iso: str | None = None
    """The date with day and month exchanged (ISO 8601); None unless both readings are possible."""
    has_short_year: bool = False


@cache_document_text(4096)
def parse_written_date(text: str) -> WrittenDate | None:
    """Parse a written date; None if the text is no date or the day does not exist.

    >>> parse_written_date("03/22/1971").iso, parse_written_date("22.3.71").iso, parse_written_date("22nd of March 1971").iso
    ('1971-03-22', '1971-03-22', '1971-03-22')
    >>> parse_written_date("04/03/1971").day_month_swapped_iso, parse_written_date("04.03.1971").iso, parse_written_date("02/30/2020")
    ('1971-03-04', '1971-03-04', None)
    """
    text = re.sub(r"(?<=[/.-]) +(?=\d)", "", text)
    matched_date = _WRITTEN_DATE.match(text.strip())
    if matched_date is None:
        return None
    text = matched_date.group()  # without text behind the date, such as "(67 yrs)"
    parts = re.findall(r"\d+|[a-z]{3,}", text.casefold())
    months = [_MONTHS.index(part[:3]) + 1 for part in parts if part[:3] in _MONTHS]
    numbers = [int(part) for part in parts if part.isdigit()]
    exchanged: tuple[int, int, int] | None = None
    if months and len(numbers) == 2:
        day, month = min(numbers) if max(numbers) > 31 else numbers[0], months[0]
        year = numbers[0] if numbers[0] > day else numbers[1]
    elif len(numbers) == 1 and len(parts[0]) == 8:
        year, month, day = numbers[0] // 10_000, numbers[0] // 100 % 100, numbers[0] % 100
    elif len(numbers) == 3 and len(parts[0]) == 4:
        year, month, day = numbers
    elif len(numbers) == 3:
        is_day_first = numbers[0] > 12 or ("." in text and numbers[1] <= 12)
        month, day, year = (numbers[1], numbers[0], numbers[2]) if is_day_first else numbers
        if max(month, day) <= 12 and month != day and "." not in text:
            exchanged = year, day, month
    else:
        return None
    iso = _build_iso_date(year, month, day)
    exchanged_iso = _build_iso_date(*exchanged) if exchanged else None
    return WrittenDate(iso, exchanged_iso, has_short_year=year < 100) if iso else None


def _build_iso_date(year: int, month: int, day: int) -> str | None:
    if year < 100:  # two digits: 1931 to 2030, as no birthday or report is far in the future
        year += 1900 if year > 30 else 2000
    try:
        return date(year, month, day).isoformat()
    except ValueError:
        return None


def replace_letters_misread_for_digits(text: str) -> str:
    """Replace letters that OCR read for digits (O for 0), and remove spaces."""
    return re.sub(r"\s+", "", re.sub("[:;,]", ".", text.translate(_DIGIT_BY_CONFUSED_LETTER)))


def resolve_short_year(written: WrittenDate, age: int | None) -> WrittenDate:
    """Set the century of a date with a two-digit year so that it fits an age in years.

    Unchanged if the year has four digits, or if ``age`` is None.

    >>> resolve_short_year(parse_written_date("05/14/21"), 104).iso
    '1921-05-14'
    """
    if age is None or not written.has_short_year:
        return written
    for century in ("19", "20"):
        if _EARLIEST_CHART_YEAR <= int(century + written.iso[2:4]) + age <= _LATEST_CHART_YEAR:
            return WrittenDate(century + written.iso[2:])
    return written


def compare_birth_dates(left: WrittenDate, right: WrittenDate) -> DateRelation:
    """Compare two birth dates, which may have years with two or four digits."""
    left_digits, right_digits = left.iso.replace("-", ""), right.iso.replace("-", "")
    if left.has_short_year or right.has_short_year:
        left_digits, right_digits = left_digits[2:], right_digits[2:]
    if left_digits == right_digits:
        return DateRelation.AGREE
    is_swapped = left.day_month_swapped_iso == right.iso or right.day_month_swapped_iso == left.iso
    is_close = is_swapped or OSA.distance(left_digits, right_digits) <= 1
    return DateRelation.CLOSE if is_close else DateRelation.DIFFER
