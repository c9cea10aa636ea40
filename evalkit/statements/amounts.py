"""How statements write amounts: separators, and the marks that say which way the money went."""

from __future__ import annotations

import re
from decimal import Decimal
from functools import cache
from typing import Literal, NamedTuple

DecimalSign = Literal[".", ","]
Mark = Literal["minus", "trailing_minus", "parentheses", "dr", "plus", "cr"]
"""``-5.00``, ``5.00-``, ``(5.00)``, ``5.00 DR``, ``+5.00``, ``5.00 CR``."""

#: Words behind an amount; H and S are the German haben and soll.
_CODES: dict[str, Mark] = {
    "CR": "cr", "C": "cr", "H": "cr",
    "DR": "dr", "DB": "dr", "D": "dr", "S": "dr", "OD": "dr",
}  # fmt: skip
_DASHES = str.maketrans("−–—‐‑", "-----")
_CURRENCY = r"(?:US\$|[$€£¥₹]|(?:USD|EUR|GBP|CHF|CAD|AUD|Fr\.)(?![A-Za-z]))"
_AMOUNT = re.compile(
    rf"(?P<open>\()?\s*(?P<lead>[-+])?\s*{_CURRENCY}?\s*(?P<inner>[-+])?\s*"
    rf"(?P<digits>[\d.,'’](?:[\d.,'’ ]*\d)?)\s*(?P<trail>[-+])?\s*{_CURRENCY}?\s*(?P<close>\))?"
    r"\s*(?P<code>CR|DR|DB|OD|C|D|H|S)?\.?",
    re.IGNORECASE,
)
#: What engines take digits for.
_MISREAD = str.maketrans("OoQIl|SBZ", "000111582")
_DIGITS_AT_LEAST = 0.5
_NUMBER = re.compile(
    r"(?P<before>[^\w.,]*)(?P<digits>[\dOoQIl|SBZ][\dOoQIl|SBZ.,\s]*[\dOoQIl|SBZ])(?P<behind>[-+)]?(?:\s?(?:CR|DR))?)"
)


class Amount(NamedTuple):
    """An amount as it is written; which way the money went, its column or the sign convention says."""

    magnitude: Decimal
    """Never below zero."""
    mark: Mark | None
    has_cents: bool
    is_mended: bool = False
    """A sign that an engine misread was taken for another."""

    def held(self, *, is_owed: bool) -> Decimal:
        """The amount as a balance, debts below zero; ``is_owed``: without a mark it is a debt."""
        is_negative = self.mark in ("minus", "trailing_minus", "parentheses", "dr")
        return -self.magnitude if is_negative != is_owed else self.magnitude


def read_amount(
    text: str,
    decimal: DecimalSign,
    *,
    is_whole: bool = False,
    is_recognised: bool = False,
    is_in_column: bool = False,
) -> Amount | None:
    """The amount that is the whole of ``text``; None where it is not one.

    ``is_whole``: also without cents. ``is_recognised``: letters that engines take digits for are digits, and the last
    separator may be misread, and where amounts stand below one another (``is_in_column``) lost; the amount says so.

    >>> read_amount("$1,234.56", ".")
    Amount(magnitude=Decimal('1234.56'), mark=None, has_cents=True, is_mended=False)
    >>> read_amount("(500.00)", ".")[:2], read_amount("27l97", ".", is_recognised=True, is_in_column=True)[::3]
    ((Decimal('500.00'), 'parentheses'), (Decimal('271.97'), True))
    >>> read_amount("1.234,56-", ",").mark, read_amount("1 234,56 CR", ",").mark, read_amount("-171", ".", is_whole=True).mark
    ('trailing_minus', 'cr', 'minus')
    >>> read_amount("1.234,56", "."), read_amount("12.5", "."), read_amount("171", "."), read_amount("1,23", ".")
    (None, None, None, None)
    """
    cleaned = text.translate(_DASHES).replace("\u00a0", " ").strip()
    if amount := _read(cleaned, decimal, is_whole=is_whole):
        return amount
    if not is_recognised or is_whole or not (mended := _mended(cleaned, decimal, is_in_column=is_in_column)):
        return None
    amount = _read(mended, decimal, is_whole=False)
    return amount and amount._replace(is_mended=True)


def _read(text: str, decimal: DecimalSign, *, is_whole: bool) -> Amount | None:
    found = _AMOUNT.fullmatch(text)
    if not found or bool(found["open"]) != bool(found["close"]):
        return None
    shape = _shape(decimal).fullmatch(found["digits"])
    if not shape or not (shape["cents"] or (is_whole and shape["whole"])):
        return None
    whole = re.sub(r"\D", "", shape["whole"]) or "0"
    return Amount(Decimal(f"{whole}.{shape['cents'] or '00'}"), _mark(found), shape["cents"] is not None)


@cache
def _shape(decimal: DecimalSign) -> re.Pattern[str]:
    groups = {".": "[,'’ ]", ",": "[.'’ ]"}[decimal]
    return re.compile(rf"(?P<whole>\d{{1,3}}(?:{groups}\d{{3}})+|\d*)(?:{re.escape(decimal)}(?P<cents>\d\d))?")


def _mended(text: str, decimal: DecimalSign, *, is_in_column: bool) -> str | None:
    """The text with misread letters as digits, without blanks, and its last separator as it should be."""
    found = _NUMBER.fullmatch(text)
    if not found:
        return None
    digits = re.sub(r"\s", "", found["digits"]).translate(_MISREAD)
    if sum(sign.isdigit() for sign in found["digits"]) < _DIGITS_AT_LEAST * len(digits):
        return None
    has_cents = re.fullmatch(r".*[.,]\d\d", digits) or (is_in_column and re.fullmatch(r"\d{3,}", digits))
    whole = re.sub(r"\D", "", digits[:-2])
    return f"{found['before']}{whole}{decimal}{digits[-2:]}{found['behind']}" if has_cents and whole else None


def _mark(found: re.Match[str]) -> Mark | None:
    if found["open"]:
        return "parentheses"
    if found["code"]:
        return _CODES[found["code"].upper()]
    if found["trail"]:
        return "trailing_minus" if found["trail"] == "-" else "plus"
    sign = found["lead"] or found["inner"]
    return None if sign is None else "minus" if sign == "-" else "plus"
