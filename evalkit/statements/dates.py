"""Parse printed dates, and find the year of a date that is printed without it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from functools import cache
from typing import NamedTuple

#: Formats that the builder tries, most usual first; ``%b`` is a month's name in a language of ``_MONTH_BY_NAME``.
DATE_FORMATS = (
    "%m/%d/%Y", "%d/%m/%Y", "%m/%d/%y", "%d/%m/%y", "%m/%d", "%d/%m",
    "%d.%m.%Y", "%d.%m.%y", "%d.%m.", "%d.%m",
    "%m-%d-%Y", "%d-%m-%Y", "%m-%d-%y", "%d-%m-%y", "%m-%d", "%d-%m",
    "%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%y/%m/%d", "%y-%m-%d", "%y.%m.%d",
    "%b %d, %Y", "%b %d %Y", "%d %b %Y", "%d %b %y", "%d. %b %Y", "%d-%b-%Y", "%d-%b-%y", "%d-%b", "%b-%d",
    "%d/%b/%Y", "%d/%b", "%b %d", "%d %b", "%d. %b", "%d %b, %Y", "%d.%b.%Y", "%Y %b %d", "%d %m %Y", "%d. %m. %Y", "%d %m",
)  # fmt: skip
_MONTH_BY_NAME = {
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
_MONTH_BY_FULL_NAME = {
    name: number
    for number, names in enumerate(
        (
            "january januar janvier enero gennaio januari janeiro stycznia styczeń leden ledna január ocak tammikuuta ianuarie jaanuar janvāris sausis janúar ιανουαρίου января януари січня gener ιανουάριος", "february februar février febrero febbraio februari fevereiro lutego luty únor února február şubat helmikuuta februarie veebruar februāris vasaris φεβρουαρίου февраля февруари лютого febrer φεβρουάριος",
            "march märz mars marzo maart março marca marzec březen března március mart maaliskuuta martie märts marts kovas mac μαρτίου марта март березня març machi μάρτιος", "april avril abril aprile kwietnia kwiecień duben dubna április nisan huhtikuuta aprilie aprīlis balandis apríl απριλίου апреля април квітня aprili απρίλιος", "may mai mayo maggio mei maio maja květen května május mayıs toukokuuta maijs gegužė maí μαΐου мая май травня maig μάιος",
            "june juni juin junio giugno junho czerwca czerwiec červen června június haziran kesäkuuta iunie juuni jūnijs birželis júní ιουνίου июня юни червня juny ιούνιος", "july juli juillet julio luglio julho lipca lipiec červenec července július temmuz heinäkuuta iulie juuli jūlijs liepa júlí julai ιουλίου июля юли липня juliol ιούλιος", "august août agosto augustus augusti sierpnia sierpień srpen srpna augusztus ağustos elokuuta augusts rugpjūtis ágúst avgust agustus ogos αυγούστου августа август серпня agost agosti ags αύγουστος",
            "september septembre septiembre settembre setembro września wrzesień září szeptember eylül syyskuuta septembrie rugsėjis σεπτεμβρίου сентября септември вересня setembre septemba σεπτέμβριος", "october oktober octobre octubre ottobre outubro października październik říjen října október ekim lokakuuta octombrie oktoober oktobris spalis οκτωβρίου октября октомври жовтня oktoba οκτώβριος",
            "november novembre noviembre novembro listopada listopad kasım marraskuuta noiembrie lapkritis nóvember νοεμβρίου ноября ноември листопада novemba νοέμβριος", "december dezember décembre diciembre dicembre dezembro grudnia grudzień prosinec prosince aralık joulukuuta decembrie detsember gruodis desember disember δεκεμβρίου декабря декември грудня desembre desemba δεκέμβριος",
        ),
        1,
    )
    for name in names.split()
}  # fmt: skip
_PATTERN_BY_CODE = {
    "%d": r"(?P<d>\d{1,2})",
    "%m": r"(?P<m>\d{1,2})",
    "%b": r"(?P<b>[^\W\d_]{3,12})\.?",
    "%Y": r"(?P<Y>(?:19|20)\d\d)",
    "%y": r"(?P<y>\d{2})",
}
_CURRENT_CENTURY = 2000
#: The day of the week may be printed before a date that begins with a number.
_WEEKDAY = (
    r"(?:(?i:mon|tue|wed|thu|fri|sat|sun|mo|di|mi|do|fr|sa|so|lun|mar|mer|jeu|ven|sam|dim|mi[eé]|jue|vie|s[aá]b|dom|gio|"
    r"seg|ter|qua|qui|sex|ma|wo|vr|za|zo|man|tir|ons|tor|fre|l[øö]r|s[øö]n|pon|wto?|[śs]r|czw|pt|ndz|po|[úu]t|st|[čc]t|p[áa]|ne)"
    r"[.,]{0,2}\s)?"
)
_WEEKDAY_NAME = r"[^\W\d_]{2,7}(?i:day|di|dì|tag|dag|woch|feira|coles|nes)"
_OCR_NOISE_CHARACTERS = " .,:;'|_*"
#: The time of day and marks of footnotes behind a date.
_DATE_TAIL = re.compile(r"(?:[ T]\d{1,2}:\d\d(?::\d\d)?(?: ?[AaPp][Mm])?)?[ *†‡#]*$")
#: What is printed between the numbers and the month, or behind the first day: "3rd of March", "1er mars", "3 de abril".
_DATE_LINKS = re.compile(r"(?<=\d)(?:st|nd|rd|th|er|º|ª)(?=[\s,]|$)|(?<=[\w.])\s(?:de|del|of)(?=\s\w)", re.IGNORECASE)
_IDEOGRAPHIC_DATE = re.compile(r"(\d{4})年\s?(\d{1,2})月\s?(\d{1,2})日")
#: A period within one month, whose name and year are printed once.
_UNTIL = r"\s?(?:-|–|to|through|bis|au|al?|t/m)\s?"
_MONTH_BEFORE_DAYS = re.compile(rf"\b([^\W\d_]{{3,9}}) (\d{{1,2}}){_UNTIL}(\d{{1,2}}),? ((?:19|20)\d\d)\b")
_MONTH_BEHIND_DAYS = re.compile(rf"\b(\d{{1,2}})\.?{_UNTIL}(\d{{1,2}})\.? ([^\W\d_]{{3,9}}) ((?:19|20)\d\d)\b")
_MONTH_WITH_YEAR = re.compile(
    r"(?<![\w.,/-])(?<!\d )(?<!\d\. )(?:(?P<month>[^\W\d_]{3,12}|\d\d)(?:[/-]|[.,]{0,2} )(?P<year>20\d\d)"
    r"|(?P<first_year>20\d\d)[/.-](?P<number>\d\d))(?!\w|[.,/-]\d)"
)
#: A transaction's date may be this much outside the statement's period, because of late booking or a weekend.
PERIOD_MARGIN = timedelta(days=7)
_YEAR_LENGTH = timedelta(days=366)


class PartialDate(NamedTuple):
    """A date as printed; ``year`` is None if no year is printed."""

    year: int | None
    month: int
    day: int

    def resolve_in_year(self, year: int) -> date | None:
        """Return the date in this year; None if the year has no such day (29 February)."""
        try:
            return date(year, self.month, self.day)
        except ValueError:
            return None


class StatementPeriod(NamedTuple):
    """The period of a statement, first and last day; ``start`` is None if not printed."""

    start: date | None
    end: date


def has_year(date_format: str) -> bool:
    """Return True if the format contains a year."""
    return "%Y" in date_format or "%y" in date_format


def validate_date_format(date_format: str) -> str:
    """Return a valid format unchanged.

    ValueError if the format lacks day or month, or has a code other than day, month and year.
    """
    codes = re.findall(r"%.", date_format)
    if sorted(code.lower().replace("b", "m") for code in codes if code.lower() != "%y") != ["%d", "%m"] or not set(
        codes
    ) <= set(_PATTERN_BY_CODE):
        raise ValueError(
            f"{date_format!r} is not a date format: it must have %d, and %m or %b, and may have %Y or %y, but no other code"
        )
    return date_format


def exchange_day_and_month(date_format: str) -> str:
    """Exchange the numbers of day and month; a format with a month's name stays.

    >>> exchange_day_and_month("%d/%m/%Y"), exchange_day_and_month("%d %b %Y")
    ('%m/%d/%Y', '%d %b %Y')
    """
    if "%m" not in date_format:
        return date_format
    return re.sub("%[dm]", lambda code: "%m" if code[0] == "%d" else "%d", date_format)


def parse_partial_date(text: str, date_formats: Iterable[str], *, is_ocr_text: bool = False) -> PartialDate | None:
    """Parse ``text`` as a date, in the first format that fits; None if none fits.

    ``is_ocr_text``: ignore punctuation before and after the date, which OCR sees in dirt and printed lines.

    >>> parse_partial_date("2/6/2020", ["%m/%d/%Y"]), parse_partial_date("31.12.", ["%d.%m."]), parse_partial_date("5 Mär 24", ["%d %b %y"])
    (PartialDate(year=2020, month=2, day=6), PartialDate(year=None, month=12, day=31), PartialDate(year=2024, month=3, day=5))
    >>> parse_partial_date("3 de abril de 2024", DATE_FORMATS), parse_partial_date("lundi 1er mars", DATE_FORMATS)
    (PartialDate(year=2024, month=4, day=3), PartialDate(year=None, month=3, day=1))
    >>> parse_partial_date("13/13/2020", ["%m/%d/%Y", "%d/%m/%Y"]), parse_partial_date("30 Feb", ["%d %b"]), parse_partial_date("4 Foo", ["%d %b"])
    (None, None, None)
    """
    printed = _DATE_TAIL.sub("", _drop_date_links(text.strip()), count=1)
    for candidate in (printed, printed.strip(_OCR_NOISE_CHARACTERS)) if is_ocr_text else (printed,):
        for date_format in date_formats:
            match = _compile_date_format(date_format).fullmatch(candidate)
            if match and (day := _build_partial_date(match.groupdict())):
                return day
    return None


def find_dates_in_text(text: str, date_formats: Iterable[str]) -> Iterator[PartialDate]:
    """Find the dates in ``text`` in any format, from the left, without overlap.

    Two days of one month are two dates: "March 1 to 31, 2024", "1 to 31 March 2024".

    >>> [day.day for day in find_dates_in_text("March 1 to 31, 2024", ["%b %d, %Y"])]
    [1, 31]
    """
    text = _drop_date_links(text)
    text = _MONTH_BEFORE_DAYS.sub(r"\1 \2, \4 - \1 \3, \4", text)
    text = _MONTH_BEHIND_DAYS.sub(r"\1 \3 \4 - \2 \3 \4", text)
    date_spans = sorted(
        (
            (match.start(), -match.end(), day)
            for date_format in date_formats
            for match in re.finditer(
                rf"(?<![\w.,/-])(?:{_compile_date_format(date_format).pattern})(?![\w/-]|[.,]\d)", text
            )
            if (day := _build_partial_date(match.groupdict()))
        ),
        key=lambda date_span: date_span[:2],
    )
    covered_end = 0
    for start, end, day in date_spans:
        if start >= covered_end:
            yield day
            covered_end = -end


def find_named_month(text: str) -> StatementPeriod | None:
    """Return the first month in the text that is printed by name with its year.

    >>> find_named_month("Statement for February 2024")
    StatementPeriod(start=datetime.date(2024, 2, 1), end=datetime.date(2024, 2, 29))
    >>> find_named_month("Margin 2020 of 5 Marches 1") is None
    True
    """
    for match in _MONTH_WITH_YEAR.finditer(_drop_date_links(text[:500])):
        name, year = match["month"] or match["number"], int(match["year"] or match["first_year"])
        month = int(name) if name.isdigit() else _find_named_month(name.casefold(), is_exact=True)
        if month and 1 <= month <= 12:
            following_month = date(year + month // 12, month % 12 + 1, 1)
            return StatementPeriod(date(year, month, 1), following_month - timedelta(days=1))
    return None


def resolve_date(partial_date: PartialDate, period: StatementPeriod | None) -> date | None:
    """Complete a date by its printed year, or else by the statement's period.

    None if the year is unknown, or if no year puts the date near the period.

    >>> around_new_year = StatementPeriod(date(2023, 12, 10), date(2024, 1, 9))
    >>> resolve_date(PartialDate(None, 12, 28), around_new_year), resolve_date(PartialDate(None, 1, 3), around_new_year)
    (datetime.date(2023, 12, 28), datetime.date(2024, 1, 3))
    >>> resolve_date(PartialDate(None, 6, 1), None) is None, resolve_date(PartialDate(2020, 2, 29), None)
    (True, datetime.date(2020, 2, 29))
    """
    if partial_date.year is not None:
        return partial_date.resolve_in_year(partial_date.year)
    if period is None:
        return None
    earliest = (period.start or period.end - _YEAR_LENGTH + PERIOD_MARGIN) - PERIOD_MARGIN
    latest = period.end + PERIOD_MARGIN
    candidates = [
        candidate
        for year in (latest.year, latest.year - 1)
        if (candidate := partial_date.resolve_in_year(year)) and earliest <= candidate <= latest
    ]
    # Of two years, that of the period itself: 5 January of a whole year is not that of the next.
    return max(candidates, key=lambda day: (day <= period.end, day), default=None)


def _drop_date_links(text: str) -> str:
    return _IDEOGRAPHIC_DATE.sub(r"\1-\2-\3", _DATE_LINKS.sub("", text))


@cache
def _find_named_month(name: str, *, is_exact: bool = False) -> int | None:
    """Return the month of a name; its first letters suffice unless ``is_exact``."""
    named = (month for full_name, month in _MONTH_BY_FULL_NAME.items() if full_name.startswith(name))
    month = _MONTH_BY_NAME.get(name) or next(named, None)
    return month if month or is_exact else _MONTH_BY_NAME.get(name[:4]) or _MONTH_BY_NAME.get(name[:3])


def _build_partial_date(parts: dict[str, str | None]) -> PartialDate | None:
    month_name = (parts.get("b") or "").casefold()
    named_month = _find_named_month(month_name) if month_name else None
    month = named_month or int(parts.get("m") or 0)
    short_year = parts.get("y")
    year = int(parts["Y"] or 0) if parts.get("Y") else _CURRENT_CENTURY + int(short_year) if short_year else None
    day = PartialDate(year, month, int(parts["d"] or 0))
    return (
        day if month >= 1 and day.resolve_in_year(year or _CURRENT_CENTURY) else None
    )  # without a year: check against 2000, a leap year


@cache
def _compile_date_format(date_format: str) -> re.Pattern[str]:
    # OCR loses blanks, but of three numbers without any nobody knows where one ends.
    blank = r"\s+" if "%b" not in date_format else r"\s*"
    pieces = (
        _PATTERN_BY_CODE.get(piece) or blank.join(map(re.escape, piece.split(" ")))
        for piece in re.split(r"(%.)", date_format)
    )
    pattern = "".join(pieces)
    if "." in date_format:  # a blank behind each point, and a point behind the date, are a matter of taste
        pattern = re.sub(r"\\\.(?=\()", r"\\.\\s?", pattern) + (r"\.?" if not date_format.endswith(".") else "")
    # Before a month's name the day of the week may be written out, with a comma.
    weekday = rf"(?:[^\W\d_]{{4,14}}, |{_WEEKDAY_NAME} )?{_WEEKDAY}" if "%b" in date_format else _WEEKDAY
    return re.compile(pattern if date_format.startswith("%b") else f"{weekday}{pattern}")
