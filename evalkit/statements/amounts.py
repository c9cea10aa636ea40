"""Parse printed amounts: separators, OCR errors, signs and marks such as CR."""

from __future__ import annotations

import re
from decimal import Decimal
from functools import cache
from typing import Literal, NamedTuple

from evalkit.core.document_cache import cache_document_text
from evalkit.core.package_tables import load_package_table

#: A blank: the cents are in a cell of their own, without a separator.
DecimalSeparator = Literal[".", ",", " "]
#: The mark of a printed amount: ``-5.00``, ``5.00-``, ``(5.00)``, ``5.00 DR``, ``+5.00``, ``5.00 CR``.
SignMark = Literal["minus", "trailing_minus", "parentheses", "dr", "plus", "cr"]
MINUS_MARKS: tuple[SignMark, ...] = ("minus", "trailing_minus", "parentheses")

_MARKS: dict[str, str] = load_package_table("evalkit.statements", "amount_marks.toml")
_SIGN_MARK_BY_CODE: dict[str, SignMark] = {
    **dict.fromkeys(_MARKS["credit"].split(), "cr"), **dict.fromkeys(_MARKS["debit"].split(), "dr"), "+": "plus", "-": "minus"
}  # fmt: skip
#: Codes that may follow an amount; longer words are marks only in a column of their own.
_CODE_PATTERN = "|".join(
    re.escape(code) for code in sorted(_SIGN_MARK_BY_CODE, key=len, reverse=True) if code.isalpha() and len(code) <= 3
)
_NORMALISED_CHARACTERS = str.maketrans("−–—‐‑\u00a0\u202f\u2009\u2007’`´", "-----    '''")
_CURRENCY_PATTERN = rf"(?:(?:{_MARKS['symbols']}|{'|'.join(_MARKS['currencies'].split())})(?![A-Za-z]))"
_AMOUNT_PATTERN = re.compile(
    rf"=?\s*(?P<open>\()?\s*(?P<lead>[-+])?\s*{_CURRENCY_PATTERN}?\s*(?P<inner>[-+])?\s*{_CURRENCY_PATTERN}?"
    rf"(?P<digits>[\d.,'](?:[\d.,' ]*\d)?)\s*(?P<trail>[-+])?\s*{_CURRENCY_PATTERN}?\s*(?P<behind>[-+])?(?P<close>\))?\s*{_CURRENCY_PATTERN}?"
    # A single letter that is no code has a meaning that only balances show.
    rf"\s*(?P<bracket>\()?(?:(?P<code>{_CODE_PATTERN})|[A-Z])?\.?(?(bracket)\))",
    re.IGNORECASE,
)
#: The digits for letters that OCR confuses with them.
_OCR_DIGIT_FIXES = str.maketrans("OoQIl|SBZ", "000111582")
_MIN_DIGIT_SHARE = 0.5
#: Longer texts are no amount, and would be slow to match.
_MAX_AMOUNT_LENGTH = 60
_MISREAD_NUMBER_PATTERN = re.compile(
    r"(?P<before>[^\w.,]*)(?P<digits>[\dOoQIl|SBZ][\dOoQIl|SBZ.,:;\s]*[\dOoQIl|SBZ])(?P<behind>[-+)]?(?:\s?(?:CR|DR))?)"
)


class Amount(NamedTuple):
    """A printed amount without a direction.

    The column, or the template's rules for marks, say if the amount is a deposit or a withdrawal.
    """

    magnitude: Decimal
    """The amount without its sign, never below zero."""
    sign_mark: SignMark | None
    is_ocr_corrected: bool = False
    """True if a character misread by OCR was corrected."""

    def compute_signed_balance(self, *, is_debt_if_unmarked: bool) -> Decimal:
        """Return the amount as a balance: negative if it is a debt.

        ``is_debt_if_unmarked``: True on credit cards, where an amount without a mark is a debt, and one with a minus is
        not. CR, DR and a plus mean the same everywhere.

        >>> Amount(Decimal(5), "cr").compute_signed_balance(is_debt_if_unmarked=True)
        Decimal('5')
        """
        if self.sign_mark in ("cr", "dr", "plus"):
            return -self.magnitude if self.sign_mark == "dr" else self.magnitude
        is_negative = self.sign_mark in MINUS_MARKS
        return -self.magnitude if is_negative != is_debt_if_unmarked else self.magnitude


@cache_document_text(8192)  # the builder reads the same words for every hypothesis
def parse_amount(
    text: str,
    decimal_separator: DecimalSeparator,
    *,
    cents_optional: bool = False,
    is_ocr_text: bool = False,
    is_in_column: bool = False,
) -> Amount | None:
    """Parse ``text`` as an amount; None if the text is not exactly one amount.

    ``cents_optional``: accept amounts without cents. ``is_ocr_text``: correct letters that stand for digits, and a
    misread decimal separator; with ``is_in_column`` also restore a missing decimal separator. ``is_ocr_corrected`` of
    the result says if anything was corrected.

    >>> parse_amount("$1,234.56", ".")
    Amount(magnitude=Decimal('1234.56'), sign_mark=None, is_ocr_corrected=False)
    >>> parse_amount("(500.00)", ".")[:2], parse_amount("27l97", ".", is_ocr_text=True, is_in_column=True)[::2]
    ((Decimal('500.00'), 'parentheses'), (Decimal('271.97'), True))
    >>> parse_amount("1.234,56-", ",").sign_mark, parse_amount("1 234,56 CR", ",").sign_mark, parse_amount("-171", ".", cents_optional=True).sign_mark
    ('trailing_minus', 'cr', 'minus')
    >>> parse_amount("1.234,56", "."), parse_amount("12.5", "."), parse_amount("171", "."), parse_amount("1,23", ".")
    (None, None, None, None)
    """
    normalised = text.translate(_NORMALISED_CHARACTERS).strip()
    if len(normalised) > _MAX_AMOUNT_LENGTH:
        return None
    if amount := _parse_exact_amount(normalised, decimal_separator, cents_optional=cents_optional):
        return amount
    if (
        not is_ocr_text
        or cents_optional
        or not (corrected := _correct_ocr_misreads(normalised, decimal_separator, is_in_column=is_in_column))
    ):
        return None
    amount = _parse_exact_amount(corrected, decimal_separator, cents_optional=False)
    return amount and amount._replace(is_ocr_corrected=True)


def find_currency_codes(text: str) -> list[str]:
    """Find the codes of currencies in a text: "USD" in "Account USD 12"."""
    return re.findall(rf"\b(?:{'|'.join(_MARKS['currencies'].split())})\b", text)


def get_sign_mark(text: str) -> SignMark | None:
    """Return the mark for a single code or word for a direction; None if unknown.

    >>> get_sign_mark("Haben"), get_sign_mark("dr."), get_sign_mark("–"), get_sign_mark("Shop")
    ('cr', 'dr', 'minus', None)
    >>> get_sign_mark("Cc"), get_sign_mark("CC")
    ('cr', None)
    """
    code = text.translate(_NORMALISED_CHARACTERS).strip(" .()")
    # In scans a letter may be recognised twice; "CC" and "DD" have meanings of their own.
    is_recognised_twice = len(code) == 2 and code.upper() == 2 * code[0].upper() and not code.isupper()
    return _SIGN_MARK_BY_CODE.get(code[: 1 if is_recognised_twice else None].upper())


def _parse_exact_amount(text: str, decimal_separator: DecimalSeparator, *, cents_optional: bool) -> Amount | None:
    match = _AMOUNT_PATTERN.fullmatch(text)
    if not match or bool(match["open"]) != bool(match["close"]):
        return None
    digits_match = _compile_digits_pattern(decimal_separator).fullmatch(match["digits"])
    if not digits_match or not (digits_match["cents"] or (cents_optional and digits_match["whole"])):
        return None
    whole = re.sub(r"\D", "", digits_match["whole"]) or "0"
    return Amount(Decimal(f"{whole}.{digits_match['cents'] or '00'}"), _find_sign_mark(match))


@cache
def _compile_digits_pattern(decimal_separator: DecimalSeparator) -> re.Pattern[str]:
    group_separator = {".": "[,' ]", ",": "[.' ]", " ": "[.,' ]"}[decimal_separator]
    #: In India lakhs and crores are groups of two digits: 12,34,567.89.
    whole = rf"\d{{1,3}}(?:{group_separator}\d{{3}})+|\d{{1,2}}(?:,\d\d)+,\d{{3}}|\d*"
    return re.compile(rf"(?P<whole>{whole})(?:{re.escape(decimal_separator)}(?P<cents>\d\d))?")


def _correct_ocr_misreads(text: str, decimal_separator: DecimalSeparator, *, is_in_column: bool) -> str | None:
    """Correct an amount misread by OCR; None if it cannot be one.

    Replaces letters by digits, removes blanks and restores the decimal separator before the last two digits.
    """
    match = _MISREAD_NUMBER_PATTERN.fullmatch(text)
    if not match:
        return None
    # A line is ruled before cents that are apart.
    ruled_lines = r"[\s|]" if decimal_separator == " " else r"\s"
    digits = re.sub(ruled_lines, "", match["digits"]).translate(_OCR_DIGIT_FIXES)
    if sum(character.isdigit() for character in match["digits"]) < _MIN_DIGIT_SHARE * len(digits):
        return None
    has_cents = re.fullmatch(r".*[.,]\d\d", digits) or (is_in_column and re.fullmatch(r"\d{3,}|.*[:;]\d\d", digits))
    whole = re.sub(r"\D", "", digits[:-2])
    return f"{match['before']}{whole}{decimal_separator}{digits[-2:]}{match['behind']}" if has_cents and whole else None


def _find_sign_mark(match: re.Match[str]) -> SignMark | None:
    if match["open"]:
        return "parentheses"
    if match["code"]:
        return _SIGN_MARK_BY_CODE[match["code"].upper()]
    if trail := match["trail"] or match["behind"]:
        return "trailing_minus" if trail == "-" else "plus"
    sign = match["lead"] or match["inner"]
    return None if sign is None else "minus" if sign == "-" else "plus"
