"""Comparison of the patients of two pages: same person, different, or cannot tell.

Source: contract ruling 22. If both name and birth date agree, the person is the same, whatever the numbers. Two differing
facts are needed to call persons different. Record numbers are compared only within one institution; account, accession
and visit numbers change from visit to visit, so that different ones show nothing. On pages read by OCR, characters that
OCR confuses do not count as a difference.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from itertools import product
from typing import Literal

from rapidfuzz import fuzz
from rapidfuzz.distance import OSA

from evalkit.core.document_cache import cache_document_text
from evalkit.documents.bundle import Identifier, IdentifierKind
from evalkit.documents.identity.person_name import (
    compare_names,
    fold_confused_letters,
    fold_to_plain_capitals,
    parse_person_name,
)
from evalkit.documents.identity.written_dates import (
    DateRelation,
    WrittenDate,
    compare_birth_dates,
    parse_written_date,
    replace_letters_misread_for_digits,
    resolve_short_year,
)

NUMBER_KINDS: tuple[IdentifierKind, ...] = ("mrn", "account", "accession", "visit")
#: A value that OCR read with at least this confidence (0..1) counts as certain.
_CERTAIN_CONFIDENCE = 0.9
#: Two names of institutions are one institution if they are at least this similar (0..100).
_MIN_ISSUER_SIMILARITY = 90.0
#: Numbers with at least this many characters are not equal by chance.
_MIN_NUMBER_LENGTH = 4


class SamePersonVerdict(StrEnum):
    """Verdict of a comparison of the patients of two pages, the clearest first."""

    SAME = "same"
    DIFFERENT = "different"
    CANNOT_TELL = "cannot tell"


Fact = Literal["name", "birth date", "sex", "record number"]


@dataclass(frozen=True)
class FactComparison:
    """A fact that both compared patients state, with the value of each."""

    fact: Fact
    left: Identifier
    right: Identifier
    is_certain: bool
    """True if neither value was recognised by OCR with low confidence."""


@dataclass(frozen=True)
class PersonComparison:
    """Comparison of two patients: the verdict, and the facts that agree or differ."""

    relation: SamePersonVerdict
    agreeing: tuple[FactComparison, ...] = ()
    differing: tuple[FactComparison, ...] = ()

    @property
    def is_certain(self) -> bool:
        """True if at least two differing facts were read with certainty."""
        return sum(comparison.is_certain for comparison in self.differing) >= 2


@dataclass(frozen=True)
class _FactOutcome:
    """Result of comparing one fact.

    ``close`` supports SAME only together with other agreeing facts, and never counts as a difference.
    """

    relation: Literal["agree", "close", "unclear", "differ"]
    left: Identifier
    right: Identifier


def compare_persons(
    left: Iterable[Identifier], right: Iterable[Identifier], *, is_ocr_text: bool = False
) -> PersonComparison:
    """Compare the patients of two pages by the facts that each page states.

    ``left`` and ``right`` may also be the facts of groups of pages. With ``is_ocr_text``, one side comes from OCR, even
    if the engine was certain.
    """
    left, right = tuple(left), tuple(right)
    left_by_kind, right_by_kind = ({identifier.kind: identifier for identifier in side} for side in (left, right))
    is_ocr_text = is_ocr_text or any(
        identifier.confidence < 1 for side in (left_by_kind, right_by_kind) for identifier in side.values()
    )
    name = _compare_names(left_by_kind.get("patient"), right_by_kind.get("patient"), is_ocr_text)
    birth = _compare_birth_dates(left_by_kind, right_by_kind, is_ocr_text)
    number = _compare_record_numbers(left, right, is_ocr_text)
    shared_number = _find_shared_number(left_by_kind, right_by_kind)
    sex = _compare_normal_forms(left_by_kind.get("sex"), right_by_kind.get("sex"))
    outcomes: dict[Fact, _FactOutcome | None] = {"name": name, "birth date": birth, "record number": number, "sex": sex}
    agreeing, differing = (
        tuple(
            FactComparison(
                fact,
                outcome.left,
                outcome.right,
                is_certain=min(outcome.left.confidence, outcome.right.confidence) >= _CERTAIN_CONFIDENCE,
            )
            for fact, outcome in outcomes.items()
            if outcome and outcome.relation == wanted
        )
        for wanted in ("agree", "differ")
    )
    return PersonComparison(_decide_same_person(name, birth, number, shared_number, differing), agreeing, differing)


def have_disjoint_record_numbers(left: Iterable[Identifier], right: Iterable[Identifier]) -> bool:
    """Return True if both sides state record numbers but have none in common.

    The institutions do not matter. This is a sign that a new document begins, not that the person is another.
    """
    sides = [[number for number in side if number.kind == "mrn"] for side in (left, right)]
    return all(sides) and not any(are_numbers_equal(*pair, is_ocr_text=False) for pair in product(*sides))


def _decide_same_person(
    name: _FactOutcome | None,
    birth: _FactOutcome | None,
    record_number: _FactOutcome | None,
    shared_number: _FactOutcome | None,
    differing: tuple[FactComparison, ...],
) -> SamePersonVerdict:
    name_relation, birth_relation, number_relation = (
        outcome.relation if outcome else None for outcome in (name, birth, record_number)
    )
    is_number_shared = number_relation == "agree" or shared_number is not None
    if name_relation in ("agree", "close") and birth_relation == "agree":
        return SamePersonVerdict.SAME
    if birth and name_relation == "agree" and birth_relation == "close":
        is_birth_date_unsure = min(birth.left.confidence, birth.right.confidence) < 1
        return SamePersonVerdict.SAME if is_number_shared or is_birth_date_unsure else SamePersonVerdict.CANNOT_TELL
    if birth_relation == "agree" and is_number_shared:  # the name may have changed, e.g. by marriage
        is_name_open = name_relation in ("close", "unclear", None)
        return SamePersonVerdict.SAME if is_name_open else SamePersonVerdict.CANNOT_TELL
    # "Baby Girl Marsh" and her mother: the names leave the question open, but the birth dates differ.
    if len(differing) >= 2 or (name_relation == "unclear" and birth_relation == "differ"):
        return SamePersonVerdict.DIFFERENT
    is_supported = name_relation in ("agree", "close") or birth_relation in ("agree", "close")
    return (
        SamePersonVerdict.SAME if is_number_shared and not differing and is_supported else SamePersonVerdict.CANNOT_TELL
    )


def _compare_names(left: Identifier | None, right: Identifier | None, is_ocr_text: bool) -> _FactOutcome | None:
    names = (parse_person_name(left.value) if left else None, parse_person_name(right.value) if right else None)
    if left is None or right is None or names[0] is None or names[1] is None:
        return None
    return _FactOutcome(compare_names(names[0], names[1], is_ocr_text=is_ocr_text).value, left, right)


def _compare_birth_dates(
    left: dict[IdentifierKind, Identifier], right: dict[IdentifierKind, Identifier], is_ocr_text: bool
) -> _FactOutcome | None:
    """Compare the birth dates of two sides; None if a side has no valid birth date.

    An age on the page gives the century of a year with two digits.
    """
    left_birth, right_birth = left.get("date_of_birth"), right.get("date_of_birth")
    if left_birth is None or right_birth is None:
        return None
    left_date, right_date = (
        parse_birth_date(birth, side.get("age")) for birth, side in ((left_birth, left), (right_birth, right))
    )
    if left_date is None or right_date is None:
        return None
    relation = compare_birth_dates(left_date, right_date)
    is_exchanged = (
        right_date.iso == left_date.day_month_swapped_iso or left_date.iso == right_date.day_month_swapped_iso
    )
    is_other_day = relation is DateRelation.CLOSE and not (is_ocr_text or is_exchanged)
    return _FactOutcome("differ" if is_other_day else relation.value, left_birth, right_birth)


def parse_birth_date(birth: Identifier, age: Identifier | None) -> WrittenDate | None:
    """Parse a birth date, even with digits misread as letters; None if invalid.

    ``age`` gives the century of a year with two digits.
    """
    written = parse_written_date(birth.value) or parse_written_date(replace_letters_misread_for_digits(birth.value))
    return resolve_short_year(written, int(age.normal) if age else None) if written else None


def _compare_normal_forms(left: Identifier | None, right: Identifier | None) -> _FactOutcome | None:
    if left is None or right is None or "X" in (left.normal, right.normal):
        return None
    return _FactOutcome("agree" if left.normal == right.normal else "differ", left, right)


def _compare_record_numbers(
    left: Iterable[Identifier], right: Iterable[Identifier], is_ocr_text: bool
) -> _FactOutcome | None:
    """Compare the record numbers of two sides; None if they show nothing.

    Different numbers count as a difference only if one institution issued both.
    """
    outcome = None
    for left_number, right_number in product(
        *([number for number in side if number.kind == "mrn"] for side in (left, right))
    ):
        issuers = left_number.issuer, right_number.issuer
        # If no issuer is known, numbers of the same unusual shape ("W99-9999") are taken for one institution's.
        are_issuers_equal = (
            _are_issuers_equal(issuers[0] or "", issuers[1] or "")
            if all(issuers)
            else not any(issuers) and _have_same_unusual_shape(left_number, right_number)
        )
        if are_numbers_equal(left_number, right_number, is_ocr_text=is_ocr_text):
            if are_issuers_equal or not all(issuers):
                return _FactOutcome("agree", left_number, right_number)
        elif are_issuers_equal and not (
            is_ocr_text
            and OSA.distance(left_number.normal, right_number.normal, score_cutoff=1) <= 1  # a misread character
        ):
            outcome = _FactOutcome("differ", left_number, right_number)
    return outcome


def _find_shared_number(
    left: dict[IdentifierKind, Identifier], right: dict[IdentifierKind, Identifier]
) -> _FactOutcome | None:
    for kind in NUMBER_KINDS[1:]:
        left_number, right_number = left.get(kind), right.get(kind)
        if (
            left_number
            and right_number
            and left_number.normal == right_number.normal
            and len(left_number.normal) >= _MIN_NUMBER_LENGTH
            and not (
                left_number.issuer
                and right_number.issuer
                and not _are_issuers_equal(left_number.issuer, right_number.issuer)
            )
        ):
            return _FactOutcome("agree", left_number, right_number)
    return None


def are_numbers_equal(left: Identifier, right: Identifier, *, is_ocr_text: bool) -> bool:
    """Return True if two numbers are equal apart from leading zeros and prefixes.

    With ``is_ocr_text``, characters that OCR confuses count as equal.
    """
    left_number, right_number = (re.sub(r"^([A-Z]*)0+(?=\w)", r"\1", identifier.normal) for identifier in (left, right))
    if left_number == right_number:
        return True
    if left_number.isdigit() != right_number.isdigit():  # "MRN-70021" equals 70021
        left_number, right_number = (
            re.sub(r"^[A-Z]+", "", number).lstrip("0") for number in (left_number, right_number)
        )
        if left_number == right_number:
            return True
    return is_ocr_text and fold_confused_letters(left_number) == fold_confused_letters(right_number)


def get_kind_and_number_shape(identifier: Identifier) -> tuple[str, str]:
    """Return the kind and the shape of a number, e.g. ``("mrn", "TM-99999")``.

    In the shape, each digit is a 9, and each capital directly behind a digit an A; other letters stay.
    """
    number = re.sub(r"(?<!\w\w)\s(?!\w\w)", "", identifier.value)  # one character in each box of a form: "V M H / 5 7"
    return identifier.kind, re.sub(r"\d", "9", re.sub(r"(?<=\d)[A-Z]", "A", number))


def _have_same_unusual_shape(left: Identifier, right: Identifier) -> bool:
    shape = get_kind_and_number_shape(left)
    return shape == get_kind_and_number_shape(right) and re.search(r"[A-Z -]", shape[1]) is not None


@cache_document_text(4096)
def _are_issuers_equal(left: str, right: str) -> bool:
    return fuzz.token_set_ratio(fold_issuer(left), fold_issuer(right)) >= _MIN_ISSUER_SIMILARITY


def fold_issuer(issuer: str) -> str:
    """Normalise an institution's name for comparison: ``SAINT MARY MEDICAL CENTER``.

    The name is in capitals without punctuation, with usual abbreviations expanded.
    """
    words = re.findall(r"\w+", fold_to_plain_capitals(issuer))
    return " ".join(
        {"ST": "SAINT", "CTR": "CENTER", "CENTRE": "CENTER", "MED": "MEDICAL", "HOSP": "HOSPITAL"}.get(word, word)
        for word in words
    )
