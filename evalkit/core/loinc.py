"""Codes of public terminologies, above all LOINC, with their check digits."""

import re
from typing import Self

from pydantic import Field, model_validator

from evalkit.core.records import StrictRecord

LOINC_SYSTEM = "http://loinc.org"
_LOINC_TERM = re.compile(r"([0-9]{1,7})-([0-9])")
#: A part, answer, answer list or group of LOINC; their check digits follow no published rule.
_LOINC_PART = re.compile(r"L[PALG][0-9]{1,7}-[0-9]")


class Coding(StrictRecord):
    """A code with its name and code system, as FHIR's ``Coding``."""

    code: str = Field(min_length=1, max_length=20)
    display: str | None = Field(None, min_length=1, max_length=255)
    system: str = LOINC_SYSTEM

    @model_validator(mode="after")
    def _require_loinc_form(self) -> Self:
        if self.system == LOINC_SYSTEM and not _LOINC_PART.fullmatch(self.code):
            require_loinc_term(self.code)
        return self


def require_loinc_term(code: str) -> None:
    """Raise ValueError unless the text has the form and check digit of a LOINC term.

    The check digit is computed by the Mod 10 algorithm of the LOINC Users' Guide, appendix C.

    >>> require_loinc_term("18842-5")
    >>> require_loinc_term("18842-6")
    Traceback (most recent call last):
    ValueError: 18842-6 is no LOINC code: the check digit of 18842 is 5
    """
    term = _LOINC_TERM.fullmatch(code)
    if term is None:
        raise ValueError(f"{code!a} is no LOINC code: write up to seven digits, a hyphen and a check digit")
    if (check_digit := compute_check_digit(term[1])) != int(term[2]):
        raise ValueError(f"{code} is no LOINC code: the check digit of {term[1]} is {check_digit}")


def compute_check_digit(digits: str) -> int:
    """Compute the Mod 10 check digit of a number, by doubling every other digit.

    >>> compute_check_digit("12345")
    5
    """
    return -sum(map(int, str(2 * int(digits[::-2][::-1])) + digits[-2::-2])) % 10
