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


class Amount(NamedTuple):
    """An amount as it is written; which way the money went, its column or the sign convention says."""

    magnitude: Decimal
    """Never below zero."""
    mark: Mark | None
    has_cents: bool


def read_amount(
    text: str, decimal: DecimalSign, *, is_whole: bool = False, is_recognised: bool = False
) -> Amount | None:
    """The amount that is the whole of ``text``; None where it is not one.

    ``is_whole``: also without cents. ``is_recognised``: letters that engines take digits for are digits, and the last
    separator may be misread.

    >>> read_amount("$1,234.56", "."), read_amount("(500.00)", ".")
    (Amount(magnitude=Decimal('1234.56'), mark=None, has_cents=True), Amount(magnitude=Decimal('500.00'), mark='parentheses', has_cents=True))
    >>> read_amount("1.234,56-", ",").mark, read_amount("1 234,56 CR", ",").mark, read_amount("-171", ".", is_whole=True).mark
    ('trailing_minus', 'cr', 'minus')
    >>> read_amount("1.234,56", "."), read_amount("12.5", "."), read_amount("171", "."), read_amount("1,23", ".")
    (None, None, None, None)
    """
    cleaned = text.translate(_DASHES).replace("\u00a0", " ").strip()
    found = _AMOUNT.fullmatch(cleaned) or (_AMOUNT.fullmatch(_mended(cleaned)) if is_recognised else None)
    if not found or bool(found["open"]) != bool(found["close"]):
        return None
    digits = "".join(found["digits"].split()) if is_recognised else found["digits"]
    shape = _shape(decimal).fullmatch(digits)
    if shape is None and is_recognised:
        digits = re.sub(r"[.,](?=\d\d$)", decimal, digits)
        shape = _shape(decimal).fullmatch(digits)
    if not shape or not (shape["cents"] or (is_whole and shape["whole"])):
        return None
    whole = re.sub(r"\D", "", shape["whole"]) or "0"
    return Amount(Decimal(f"{whole}.{shape['cents'] or '00'}"), _mark(found), shape["cents"] is not None)


@cache
def _shape(decimal: DecimalSign) -> re.Pattern[str]:
    groups = {".": "[,'’ ]", ",": "[.'’ ]"}[decimal]
    return re.compile(rf"(?P<whole>\d{{1,3}}(?:{groups}\d{{3}})+|\d*)(?:{re.escape(decimal)}(?P<cents>\d\d))?")


def _mended(text: str) -> str:
    signs = [sign for sign in text if not sign.isspace()]
    if sum(sign.isdigit() for sign in signs) < _DIGITS_AT_LEAST * len(signs):
        return text
    return text.translate(_MISREAD)


def _mark(found: re.Match[str]) -> Mark | None:
    if found["open"]:
        return "parentheses"
    if found["code"]:
        return _CODES[found["code"].upper()]
    if found["trail"]:
        return "trailing_minus" if found["trail"] == "-" else "plus"
    sign = found["lead"] or found["inner"]
    return None if sign is None else "minus" if sign == "-" else "plus"
