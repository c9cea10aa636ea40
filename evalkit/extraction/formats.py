"""How the values of fields are written: pure predicates, and the one normal form of each.

Source: specification 003, "Format validators"; wider where real forms are (masks of X, accounting brackets, ISO dates).
A predicate says whether a text is written as such a value, never whether the value is true.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from functools import lru_cache
from typing import Literal

from evalkit.extraction import clinical_formats

Format = Literal[
    "text", "ssn", "ein", "tin", "currency", "date", "percentage", "measurement", "number", "checkbox", "pattern",
    "grade", "margin", "marker", "stage", "msi", "tmb", "variant", "gene", "lab",
]  # fmt: skip
"""``pattern`` is the field's own regular expression; ``tin`` an SSN or an EIN."""

_DASHES = dict.fromkeys(map(ord, "‐‑‒–—―−"), "-")
#: Letters' own in some scripts, though nothing is to be seen of them.
_JOINERS = "\u200c\u200d"
#: The exponent of a unit, which would become part of its ten.
_POWER = re.compile(r"(?<=10)[⁰¹²³⁴-⁹]+")
_SSN = re.compile(r"\d{3}-?\d{2}-?\d{4}")
_MASKED_SSN = re.compile(r"[*xX•#]{3}-?[*xX•#]{2}-?\d{4}")
_EIN = re.compile(r"\d{2}-?\d{7}")
_CURRENCY = re.compile(
    r"(?P<minus>-)?\$?(?P<inner>-)?(?P<amount>(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d{0,2})?|\.\d{1,2})(?P<behind>-)?"
)
_PERCENTAGE = re.compile(r"(\d+(?:\.\d+)?|\.\d+)%?")
_NUMBER = re.compile(r"-?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?(?<=\d)")
# A unit ends where its letters do: of "mm", half is a metre.
_UNIT = r"(?:(?i:mm|cm)|m|in|µm|um|mg|g|kg|ml|mL|cc|HU)(?![A-Za-z])"
_SIZE = r"\d+(?:\.\d+)?"
_MEASUREMENT = re.compile(
    rf"(?P<first>{_SIZE})(?:\s*{_UNIT})?(?P<more>(?:\s*[x×X*]\s*{_SIZE}(?:\s*{_UNIT})?)*)\s*(?P<unit>{_UNIT})"
)
_MONTHS = {
    name: number
    for number, names in enumerate(
        ("jan january", "feb february", "mar march", "apr april", "may", "jun june", "jul july", "aug august",
         "sep sept september", "oct october", "nov november", "dec december"),
        1,
    )
    for name in names.split()
}  # fmt: skip
_ISO = re.compile(r"(?P<y>\d{4})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})(?:T[\d:.]+Z?)?")
_AMERICAN = re.compile(r"(?P<m>\d{1,2})[-/.](?P<d>\d{1,2})[-/.](?P<y>\d{4}|\d{2})")
_MONTH_FIRST = re.compile(r"(?P<m>[A-Za-z]+)\.? (?P<d>\d{1,2})(?:st|nd|rd|th)?,? (?P<y>\d{4})")
_DAY_FIRST = re.compile(r"(?P<d>\d{1,2})(?:st|nd|rd|th)?[ -](?P<m>[A-Za-z]+)\.?,?[ -](?P<y>\d{4}|\d{2})")
#: What engines take for one another: letters that stand among digits.
_MISREAD = str.maketrans("OoQDIl|iSsBZzGg", "000011115582269")
_NUMERIC = frozenset(("ssn", "ein", "tin", "currency", "number"))
_DIGITS_AT_LEAST = 3
_CHECKED = frozenset(("x", "✓", "✔", "☑", "☒", "■", "yes", "on", "true", "1"))


def is_ssn(text: str) -> bool:
    """A social security number, with or without dashes, or masked but for its last four digits.

    >>> is_ssn("554-03-0876"), is_ssn("554030876"), is_ssn("***-**-0876"), is_ssn("XXX-XX-0876")
    (True, True, True, True)
    >>> is_ssn("55-4030876"), is_ssn("554-03-087"), is_ssn("***-**-****")
    (False, False, False)
    """
    return _ssn(text) is not None


def is_ein(text: str) -> bool:
    """An employer identification number.

    >>> is_ein("63-0065650"), is_ein("746552769")
    (True, True)
    >>> is_ein("554-03-0876"), is_ein("63-006565")
    (False, False)
    """
    return _ein(text) is not None


def is_tin(text: str) -> bool:
    """Either of the two.

    >>> is_tin("63-0065650"), is_tin("554-03-0876"), is_tin("12-34")
    (True, True, False)
    """
    return is_ein(text) or is_ssn(text)


def is_currency(text: str) -> bool:
    """An amount of dollars; brackets, or a minus on either side, mean that it is negative.

    >>> [is_currency(text) for text in ("$1,234.56", "1234.5", "1,234", "-171.00", "(500.00)", "$ 32", "$-12")]
    [True, True, True, True, True, True, True]
    >>> [is_currency(text) for text in ("$-", "$", "-", "1,23", "1.234", "none", "1 234", "12.3.4")]
    [False, False, False, False, False, False, False, False]
    """
    return _currency(text) is not None


def is_date(text: str) -> bool:
    """A day of the calendar: ISO, American, or with the month's name.

    >>> [is_date(text) for text in ("2025-02-01", "2/1/2025", "02/01/25", "Feb 1, 2025", "1 February 2025")]
    [True, True, True, True, True]
    >>> [is_date(text) for text in ("2025-02-30", "13/13/2025", "2025", "Febr 1, 2025", "soon")]
    [False, False, False, False, False]
    """
    return _date(text) is not None


def is_percentage(text: str) -> bool:
    """A number of hundredths, with or without its sign.

    >>> is_percentage("12.5%"), is_percentage("40"), is_percentage("12.5.1%"), is_percentage("%")
    (True, True, False, False)
    """
    return _percentage(text) is not None


def is_number(text: str) -> bool:
    """A plain number.

    >>> is_number("1,204"), is_number("-3.5"), is_number("3 mm"), is_number("")
    (True, True, False, False)
    """
    return _number(text) is not None


def is_measurement(text: str) -> bool:
    """A size with its unit, in one to three directions.

    >>> is_measurement("1.2 cm"), is_measurement("3 x 2 x 1.5 mm"), is_measurement("1.2"), is_measurement("cm")
    (True, True, False, False)
    >>> normalise("6 mm", "measurement"), normalise("2.5 CM", "measurement"), normalise("3 mm x 2 cm", "measurement")
    ('6 mm', '2.5 cm', '3 mm x 2 cm')
    """
    return _measurement(text) is not None


def is_checkbox(text: str) -> bool:
    """The mark of a box that is ticked.

    >>> is_checkbox("X"), is_checkbox("☒"), is_checkbox("no")
    (True, True, False)
    """
    return _checkbox(text) is not None


def is_valid(text: str, form: Format, pattern: str | None = None) -> bool:
    r"""Whether the text is written in that format.

    >>> is_valid("2020", "pattern", r"20\d{2}"), is_valid("$-", "currency"), is_valid("Lee & Co.", "text")
    (True, False, True)
    """
    return normalise(text, form, pattern) is not None


def normalise(text: str, form: Format, pattern: str | None = None) -> str | None:
    r"""The one way in which a value of that format is kept; None where it is not written in the format.

    >>> normalise("$1,234.5", "currency"), normalise("(32)", "currency"), normalise("Feb 1, 2025", "date")
    ('1234.50', '-32.00', '2025-02-01')
    >>> normalise("746552769", "ein"), normalise("XXX-XX-0876", "ssn"), normalise("4 x 3 cm", "measurement")
    ('74-6552769', '***-**-0876', '4 x 3 cm')
    >>> normalise(" NORTH   312 ", "text"), normalise("  ", "text")
    ('NORTH 312', None)
    >>> normalise("5.2 x10⁹/L", "lab")
    '5.2 x10^9/L'
    >>> normalise("\u202e50.5", "number"), normalise("\x1b[2Kab\u00adc", "text"), normalise("\u200b", "text")
    ('50.5', '[2Kabc', None)
    """
    plain = _plain(_POWER.sub(r"^\g<0>", text) if form == "lab" else text)
    if form == "pattern":
        return plain if plain and re.fullmatch(pattern or ".*", plain) else None
    return _NORMAL[form](plain)


def misread(text: str, form: Format) -> str:
    """A number as it may have been printed where an engine read letters for its digits, or comma and point for another.

    Only what looks like a number already is read so; every other format is left as it is.

    >>> misread("24,4l0.OO", "currency"), misread("23,677,70", "currency"), misread("1, 513.42", "currency")
    ('24,410.00', '23677.70', '1,513.42')
    >>> misread("S54-O3-0876", "ssn"), misread("Oslo", "currency"), misread("SSO", "text")
    ('554-03-0876', 'Oslo', 'SSO')
    """
    if form not in _NUMERIC or sum(map(str.isdigit, text)) < _DIGITS_AT_LEAST:
        return text
    digits = text.strip().translate(_MISREAD)
    if form != "currency":
        return re.sub(r"\s+", "", digits)
    amount = re.sub(r"\s*([.,])\s*", r"\1", re.sub(r"[^\d.,()$\s-]", "", digits)).strip(" .,")
    cents = re.fullmatch(r"(.*\d)[.,](\d\d)", amount)
    if cents and not is_currency(amount):
        return f"{re.sub(r'[.,](?=[0-9])', '', cents[1])}.{cents[2]}"
    return amount


def problem(text: str, form: Format) -> str:
    """What to tell about a text that is not in the format, in the specification's words.

    >>> problem("$-", "currency")
    '"$-" is not a valid currency amount'
    """
    return f'"{text}" {complaint(form)}'


def complaint(form: Format) -> str:
    """What is said behind a text that is not in the format.

    >>> complaint("ein")
    'is not a valid EIN format'
    """
    return _PROBLEMS[form]


def example(form: Format) -> str:
    """How a value of the format is written; empty where any text is one, or only the field knows.

    >>> example("currency"), example("text")
    ('1,234.50', '')
    """
    return _EXAMPLES.get(form, "")


@lru_cache(maxsize=4096)
def _plain(text: str) -> str:
    words = " ".join(unicodedata.normalize("NFKC", text).translate(_DASHES).split())
    if words.isprintable():
        return words
    # What no page shows would turn around digits beside it, steer a terminal, or pass for a value of its own.
    unseen = (sign for sign in words if unicodedata.category(sign) in ("Cc", "Cf") and sign not in _JOINERS)
    return " ".join(words.translate(dict.fromkeys(map(ord, unseen))).split())


def _text(text: str) -> str | None:
    return _plain(text) or None


def _ssn(text: str) -> str | None:
    digits = "".join(text.split())
    if _SSN.fullmatch(digits):
        bare = digits.replace("-", "")
        return f"{bare[:3]}-{bare[3:5]}-{bare[5:]}"
    return f"***-**-{digits[-4:]}" if _MASKED_SSN.fullmatch(digits) else None


def _ein(text: str) -> str | None:
    digits = "".join(text.split())
    if not _EIN.fullmatch(digits):
        return None
    bare = digits.replace("-", "")
    return f"{bare[:2]}-{bare[2:]}"


def _tin(text: str) -> str | None:
    bare = "".join(text.split())
    # Nine digits without a dash are either; what a payer has is an EIN.
    return _ein(bare) or _ssn(bare)


def _currency(text: str) -> str | None:
    signed = re.sub(r"(?<=[-$(])\s+|\s+(?=[-)])", "", text)
    bracketed = signed.startswith("(") and signed.endswith(")")
    found = _CURRENCY.fullmatch(signed[1:-1] if bracketed else signed)
    if found is None:
        return None
    minuses = sum(bool(found[name]) for name in ("minus", "inner", "behind")) + bracketed
    if minuses > 1:
        return None
    amount = Decimal(found["amount"].replace(",", ""))
    return f"{-amount if minuses and amount else amount:.2f}"


def _percentage(text: str) -> str | None:
    found = _PERCENTAGE.fullmatch(re.sub(r"\s+(?=%)", "", text))
    return found[1] if found else None


def _number(text: str) -> str | None:
    return text.replace(",", "") if _NUMBER.fullmatch(text) and text else None


def _measurement(text: str) -> str | None:
    found = _MEASUREMENT.fullmatch(text)
    if found is None:
        return None
    units = {unit.lower() for unit in re.findall(_UNIT, text)}
    if len(units) > 1:
        return " ".join(text.split())
    sizes = re.findall(_SIZE, found["first"] + found["more"])
    unit = found["unit"]
    return f"{' x '.join(sizes)} {unit.lower() if unit.lower() in ('mm', 'cm') else unit}"


def _date(text: str) -> str | None:
    for shape in (_ISO, _AMERICAN, _MONTH_FIRST, _DAY_FIRST):
        if found := shape.fullmatch(text):
            return _day(found["y"], found["m"], found["d"])
    return None


def _day(year: str, month: str, day: str) -> str | None:
    number = int(month) if month.isdigit() else _MONTHS.get(month.lower(), 0)
    # Of two digits as POSIX has it: 69 is 1969, 68 is 2068.
    century = 0 if len(year) == 4 else 1900 if int(year) > 68 else 2000
    try:
        return date(int(year) + century, number, int(day)).isoformat()
    except ValueError:
        return None


def _checkbox(text: str) -> str | None:
    return "X" if text.lower() in _CHECKED else None


_NORMAL: Mapping[str, Callable[[str], str | None]] = {
    "text": _text,
    "ssn": _ssn,
    "ein": _ein,
    "tin": _tin,
    "currency": _currency,
    "date": _date,
    "percentage": _percentage,
    "measurement": _measurement,
    "number": _number,
    "checkbox": _checkbox,
    **clinical_formats.NORMAL,
}
_PROBLEMS: Mapping[str, str] = {
    "text": "is empty",
    "ssn": "is not a valid SSN format",
    "ein": "is not a valid EIN format",
    "tin": "is not a valid SSN or EIN format",
    "currency": "is not a valid currency amount",
    "date": "is not a valid date",
    "percentage": "is not a valid percentage",
    "measurement": "is not a size with its unit",
    "number": "is not a number",
    "checkbox": "is not a ticked box",
    "pattern": "doesn't match expected format",
    **clinical_formats.PROBLEMS,
}
_EXAMPLES: Mapping[str, str] = {
    "ssn": "554-03-0876",
    "ein": "63-0065650",
    "tin": "63-0065650 or 554-03-0876",
    "currency": "1,234.50",
    "date": "2/1/2025",
    "percentage": "12.5%",
    "measurement": "1.2 x 0.8 cm",
    "number": "12",
    "checkbox": "X",
}
