"""Normal forms of field values, one for each format.

Source: specification 003, "Format validators"; beyond it, forms that real documents use are accepted (SSNs masked by X,
amounts in accounting brackets, ISO dates). Only the way of writing is checked, never whether a value is true.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from typing import Literal

from evalkit.core.document_cache import cache_document_text
from evalkit.extraction import clinical_formats
from evalkit.extraction.patterns import get_pattern

#: Formats of fields; ``pattern`` is the field's own regular expression, ``tin`` an SSN or an EIN.
FieldFormat = Literal[
    "text", "ssn", "ein", "tin", "currency", "date", "percentage", "measurement", "number", "checkbox", "pattern",
    "grade", "margin", "marker", "stage", "msi", "tmb", "variant", "gene", "lab",
]  # fmt: skip

_DASH_TRANSLATION = dict.fromkeys(map(ord, "‐‑‒–—―−"), "-")
#: Invisible characters (joiners) that some scripts need, so they are kept.
_JOINER_CHARACTERS = "\u200c\u200d"
_MONTHS = {
    name: number
    for number, names in enumerate(
        ("jan january", "feb february", "mar march", "apr april", "may", "jun june", "jul july", "aug august",
         "sep sept september", "oct october", "nov november", "dec december"),
        1,
    )
    for name in names.split()
}  # fmt: skip
#: Letters that OCR reads in place of digits.
_MISREAD_CHARACTERS = str.maketrans("OoQDIl|iSsBZzGg", "000011115582269")
_NUMERIC_FORMATS = frozenset(("ssn", "ein", "tin", "currency", "number"))
_MIN_DIGITS = 3
_TICK_MARKS = frozenset(("x", "✓", "✔", "☑", "☒", "■", "yes", "on", "true", "1"))


def normalise_value(text: str, value_format: FieldFormat, pattern: re.Pattern[str] | None = None) -> str | None:
    r"""Return the normal form of a text in a format; None if it is not in the format.

    ``pattern``: the regular expression of the format ``pattern``; None accepts any text.

    >>> normalise_value("$1,234.5", "currency"), normalise_value("(32)", "currency"), normalise_value("Feb 1, 2025", "date")
    ('1234.50', '-32.00', '2025-02-01')
    >>> normalise_value("746552769", "ein"), normalise_value("XXX-XX-0876", "ssn"), normalise_value("4 x 3 cm", "measurement")
    ('74-6552769', '***-**-0876', '4 x 3 cm')
    >>> normalise_value(" NORTH   312 ", "text"), normalise_value("  ", "text")
    ('NORTH 312', None)
    >>> normalise_value("5.2 x10⁹/L", "lab")
    '5.2 x10^9/L'
    >>> normalise_value("\u202e50.5", "number"), normalise_value("\x1b[2Kab\u00adc", "text"), normalise_value("\u200b", "text")
    ('50.5', '[2Kabc', None)
    """
    cleaned = clean_text(get_pattern("ten_exponent").sub(r"^\g<0>", text) if value_format == "lab" else text)
    if value_format == "pattern":
        return cleaned if cleaned and (pattern is None or pattern.fullmatch(cleaned)) else None
    return _NORMALISERS[value_format](cleaned)


def correct_misread_digits(text: str, value_format: FieldFormat) -> str:
    """Correct a number in which OCR read letters for digits, or a comma for a point.

    Texts that do not look like a number, and all other formats, are returned unchanged.

    >>> correct_misread_digits("24,4l0.OO", "currency"), correct_misread_digits("23,677,70", "currency"), correct_misread_digits("1, 513.42", "currency")
    ('24,410.00', '23677.70', '1,513.42')
    >>> correct_misread_digits("S54-O3-0876", "ssn"), correct_misread_digits("Oslo", "currency"), correct_misread_digits("SSO", "text")
    ('554-03-0876', 'Oslo', 'SSO')
    """
    if value_format not in _NUMERIC_FORMATS or sum(map(str.isdigit, text)) < _MIN_DIGITS:
        return text
    digits = text.strip().translate(_MISREAD_CHARACTERS)
    if value_format != "currency":
        return re.sub(r"\s+", "", digits)
    amount = re.sub(r"\s*([.,])\s*", r"\1", re.sub(r"[^\d.,()$\s-]", "", digits)).strip(" .,")
    cents_match = re.fullmatch(r"(.*\d)[.,](\d\d)", amount)
    if cents_match and normalise_currency(amount) is None:
        return f"{re.sub(r'[.,](?=[0-9])', '', cents_match[1])}.{cents_match[2]}"
    return amount


def get_format_error_phrase(value_format: FieldFormat) -> str:
    """Return the phrase that says why a text is not in the format.

    >>> get_format_error_phrase("ein")
    'is not a valid EIN format'
    """
    return _FORMAT_ERRORS[value_format]


def get_format_example(value_format: FieldFormat) -> str:
    """Return an example of a value as people write it; empty if there is none.

    >>> get_format_example("currency"), get_format_example("text")
    ('1,234.50', '')
    """
    return _FORMAT_EXAMPLES.get(value_format, "")


@cache_document_text(4096)
def clean_text(text: str) -> str:
    """Return a text in one line, with plain dashes and without invisible characters."""
    cleaned = " ".join(unicodedata.normalize("NFKC", text).translate(_DASH_TRANSLATION).split())
    if cleaned.isprintable():
        return cleaned
    # Invisible characters could reorder digits, control a terminal, or make an empty text look like a value.
    invisible_characters = (
        character
        for character in cleaned
        if unicodedata.category(character) in ("Cc", "Cf") and character not in _JOINER_CHARACTERS
    )
    return " ".join(cleaned.translate(dict.fromkeys(map(ord, invisible_characters))).split())


def _normalise_ssn(text: str) -> str | None:
    """Normalise a social security number; dashes are optional, digits may be masked.

    >>> [_normalise_ssn(text) for text in ("554-03-0876", "554030876", "***-**-0876", "XXX-XX-0876")]
    ['554-03-0876', '554-03-0876', '***-**-0876', '***-**-0876']
    >>> [_normalise_ssn(text) for text in ("55-4030876", "554-03-087", "***-**-****")]
    [None, None, None]
    """
    digits = "".join(text.split())
    if get_pattern("ssn").fullmatch(digits):
        bare = digits.replace("-", "")
        return f"{bare[:3]}-{bare[3:5]}-{bare[5:]}"
    return f"***-**-{digits[-4:]}" if get_pattern("masked_ssn").fullmatch(digits) else None


def _normalise_ein(text: str) -> str | None:
    """Normalise an employer identification number to NN-NNNNNNN.

    >>> [_normalise_ein(text) for text in ("63-0065650", "746552769", "554-03-0876", "63-006565")]
    ['63-0065650', '74-6552769', None, None]
    """
    digits = "".join(text.split())
    bare = digits.replace("-", "")
    return f"{bare[:2]}-{bare[2:]}" if get_pattern("ein").fullmatch(digits) else None


def _normalise_tin(text: str) -> str | None:
    """Normalise a taxpayer identification number: an EIN or an SSN.

    >>> [_normalise_tin(text) for text in ("63-0065650", "554-03-0876", "12-34")]
    ['63-0065650', '554-03-0876', None]
    """
    # Nine digits without a dash could be an EIN or an SSN; most payers have an EIN, so it is tried first.
    return _normalise_ein(text) or _normalise_ssn(text)


def normalise_currency(text: str) -> str | None:
    """Normalise a dollar amount to 1234.50; brackets or a minus sign make it negative.

    >>> [normalise_currency(text) for text in ("$1,234.56", "1234.5", "1,234", "-171.00", "(500.00)", "$ 32", "$-12")]
    ['1234.56', '1234.50', '1234.00', '-171.00', '-500.00', '32.00', '-12.00']
    >>> {normalise_currency(text) for text in ("$-", "$", "-", "1,23", "1.234", "none", "1 234", "12.3.4")}
    {None}
    """
    compact = re.sub(r"(?<=[-$(])\s+|\s+(?=[-)])", "", text)
    is_bracketed = compact.startswith("(") and compact.endswith(")")
    match = get_pattern("currency").fullmatch(compact[1:-1] if is_bracketed else compact)
    if match is None:
        return None
    minus_count = sum(bool(match[name]) for name in ("minus", "inner", "behind")) + is_bracketed
    if minus_count > 1:
        return None
    amount = Decimal(match["amount"].replace(",", ""))
    return f"{-amount if minus_count and amount else amount:.2f}"


def _normalise_percentage(text: str) -> str | None:
    """Normalise a percentage to its number; the percent sign is optional.

    >>> [_normalise_percentage(text) for text in ("12.5%", "40", "12.5.1%", "%")]
    ['12.5', '40', None, None]
    """
    match = get_pattern("percentage").fullmatch(re.sub(r"\s+(?=%)", "", text))
    return match[1] if match else None


def _normalise_number(text: str) -> str | None:
    """Normalise a number: remove thousands separators.

    >>> [_normalise_number(text) for text in ("1,204", "-3.5", "3 mm", "")]
    ['1204', '-3.5', None, None]
    """
    return text.replace(",", "") if get_pattern("number").fullmatch(text) and text else None


def _normalise_measurement(text: str) -> str | None:
    """Normalise a size with its unit, in one to three dimensions.

    >>> [_normalise_measurement(text) for text in ("1.2 cm", "3 x 2 x 1.5 mm", "3 mm x 2 cm", "2.5 CM", "6-millimeter", "1.2", "cm")]
    ['1.2 cm', '3 x 2 x 1.5 mm', '3 mm x 2 cm', '2.5 cm', '6 mm', None, None]
    """
    match = get_pattern("measurement").fullmatch(text)
    if match is None:
        return None
    units = {_shorten_size_unit(unit) for unit in re.findall(get_pattern("size_unit"), text)}
    if len(units) > 1:
        return " ".join(text.split())
    sizes = re.findall(get_pattern("size_number"), match["first"] + match["more"])
    return f"{' x '.join(sizes)} {units.pop()}"


def _shorten_size_unit(unit: str) -> str:
    """Return ``mm`` or ``cm`` for any spelling of these; another unit as it is."""
    is_metric = re.fullmatch(r"(?i)(?:m|milli|c|centi)(?:m|met(?:er|re)s?)", unit)
    return f"{unit[0].lower()}m" if is_metric else unit


def _normalise_date(text: str) -> str | None:
    """Normalise a date (ISO, American, or with the month's name) to YYYY-MM-DD.

    >>> {_normalise_date(text) for text in ("2025-02-01", "2/1/2025", "02/01/25", "Feb 1, 2025", "1 February 2025")}
    {'2025-02-01'}
    >>> _normalise_date("27/03/2025")
    '2025-03-27'
    >>> {_normalise_date(text) for text in ("2025-02-30", "13/13/2025", "2025", "Febr 1, 2025", "soon")}
    {None}
    """
    for date_form in ("iso_date", "american_date", "month_first_date", "day_first_date"):
        if match := get_pattern(date_form).fullmatch(text):
            iso_date = _to_iso_date(match["y"], match["m"], match["d"])
            # 27/03/2024 has the day first.
            is_day_first = iso_date is None and date_form == "american_date"
            return _to_iso_date(match["y"], match["d"], match["m"]) if is_day_first else iso_date
    return None


def _to_iso_date(year: str, month: str, day: str) -> str | None:
    number = int(month) if month.isdigit() else _MONTHS.get(month.lower(), 0)
    # Two-digit years as in POSIX: 69 is 1969, 68 is 2068.
    century = 0 if len(year) == 4 else 1900 if int(year) > 68 else 2000
    try:
        return date(int(year) + century, number, int(day)).isoformat()
    except ValueError:
        return None


def _normalise_checkbox(text: str) -> str | None:
    """Normalise the mark in a checkbox to X; None if the box is not ticked.

    >>> [_normalise_checkbox(text) for text in ("X", "☒", "no")]
    ['X', 'X', None]
    """
    return "X" if text.lower() in _TICK_MARKS else None


_NORMALISERS: Mapping[str, Callable[[str], str | None]] = {
    "text": lambda text: clean_text(text) or None,
    "ssn": _normalise_ssn,
    "ein": _normalise_ein,
    "tin": _normalise_tin,
    "currency": normalise_currency,
    "date": _normalise_date,
    "percentage": _normalise_percentage,
    "measurement": _normalise_measurement,
    "number": _normalise_number,
    "checkbox": _normalise_checkbox,
    **clinical_formats.CLINICAL_NORMALISERS,
}
_FORMAT_ERRORS: Mapping[str, str] = {
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
    **clinical_formats.CLINICAL_FORMAT_ERRORS,
}
_FORMAT_EXAMPLES: Mapping[str, str] = {
    "ssn": "554-03-0876",
    "ein": "63-0065650",
    "tin": "63-0065650 or 554-03-0876",
    "currency": "1,234.50",
    "date": "2025-02-01",
    "percentage": "12.5%",
    "measurement": "1.2 x 0.8 cm",
    "number": "12",
    "checkbox": "X",
    "grade": "2 or moderately differentiated",
    "margin": "negative, 4 mm",
    "marker": "positive, 3+, 95%",
    "stage": "pT2 pN0 or Stage IIA",
    "variant": "BRAF V600E",
    "lab": "14.9 g/dL (13.2-17.1)",
}
