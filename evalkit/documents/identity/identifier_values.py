"""Printed names, dates, numbers and sexes, brought into a form for comparison."""

from __future__ import annotations

import re
from functools import cache

from evalkit.core.package_tables import load_package_table
from evalkit.documents.bundle import IdentifierKind
from evalkit.documents.identity.person_name import (
    PATTERNS,
    fold_to_plain_capitals,
    get_word_list_for_names,
    parse_person_name,
)
from evalkit.documents.identity.written_dates import (
    parse_written_date,
    replace_letters_misread_for_digits,
)

_FEMALE, _MALE = (
    frozenset({"MRS", "MS", "MISS", "FEMALE", "WOMAN", "GIRL", "F"}),
    frozenset({"MR", "MASTER", "MALE", "MAN", "BOY", "M"}),
)

#: A date before this one is not a patient's birth date; a digit of it is misread.
_EARLIEST_DATE = "1880"


@cache
def load_given_names() -> frozenset[str]:
    """Return common given names, in lower case, from ``given_names.toml``."""
    return frozenset(load_package_table("evalkit.documents.identity", "given_names.toml")["names"].split())


def lowercase_keeping_length(text: str) -> str:
    """Convert to lower case, so that every letter keeps its index."""
    lowered = text.lower()
    return (
        lowered
        if len(lowered) == len(text)
        else "".join(letter.lower() if len(letter.lower()) == 1 else letter for letter in text)
    )


def can_be_person_name(text: str) -> bool:
    """Return True if a value can be a person's name, not a place or institution.

    >>> can_be_person_name("Marsh, Helen A."), can_be_person_name("Brookfield, WI"), can_be_person_name("Evergreen Mutual Insurance")
    (True, False, False)
    """
    _, _, behind_comma = text.upper().partition(",")
    degrees = behind_comma.replace(".", "").split()
    words = fold_to_plain_capitals(re.sub(r"[^\w\s'’-]", " ", text)).split()
    before_comma = fold_to_plain_capitals(text.partition(",")[0]).replace(".", "").split()
    streets = get_word_list_for_names("streets") if "," in text else frozenset()
    if (
        behind_comma.strip(" .") in get_word_list_for_names("states") | (streets - {"LANE"})
        or (degrees and get_word_list_for_names("degrees").issuperset(degrees))
        or get_word_list_for_names("organisations").intersection(words)
        or any(map(str.isdigit, PATTERNS["misread_letter"].sub("", text)))
        or PATTERNS["camel_case"].search(text)
        or ("," in text and len("".join(before_comma)) < 2)  # "I, Helen Marsh, consent"
        # "St. Brendan" is a hospital
        or (words[:1] in (["ST"], ["SAINT"]) and len(words) == 2 and "," not in text)
        or (len(before_comma) > 1 and before_comma[-1] in streets)
    ):
        return False
    name = parse_person_name(text)
    return (
        name is not None
        and any(len(word) > 1 for word in (*name.family_names, *name.given_names))
        and len("".join((*name.family_names, *name.given_names))) > 2
    )


def normalise_identifier(kind: IdentifierKind, printed_value: str, *, is_ocr_text: bool = False) -> str | None:
    """Return a printed value in the form for comparisons; None if it is not valid.

    >>> normalise_identifier("patient", "Helen A. Marsh"), normalise_identifier("mrn", "TM-40917"), normalise_identifier("sex", "female")
    ('MARSH HELEN', 'TM40917', 'F')
    """
    if kind == "patient":
        name = parse_person_name(printed_value)
        return name.normal if name else None
    if kind in ("date_of_birth", "report_date"):
        written = parse_written_date(printed_value) or (
            parse_written_date(replace_letters_misread_for_digits(printed_value)) if is_ocr_text else None
        )
        return written.iso if written and written.iso > _EARLIEST_DATE else None
    if kind == "sex":
        word = printed_value.upper()
        return "F" if word in _FEMALE else "M" if word in _MALE else "X" if word == "X" else None
    if kind == "age":
        return str(int(printed_value)) if int(printed_value) < 130 else None
    return re.sub(r"[\W_]", "", printed_value).upper() or None
