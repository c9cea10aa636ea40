"""Whose page is this, and of when? Patient, date of birth, record number and report date as a page's strips give them.

They are data for the person who looks at a packet and for finding where one document ends: another name or another
birthday on the next page is the strongest sign there is. What is found is never taken for proof of anything.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from operator import itemgetter
from typing import Literal

from evalkit.documents.bundle import Box, Identifier, WordPosition

IdentifierKind = Literal["patient", "date_of_birth", "mrn", "report_date"]

_MONTH_ABBREVIATIONS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH_PATTERN = r"(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]{0,6}\.?"
_DATE_PATTERN = (
    rf"\d{{4}}-\d{{1,2}}-\d{{1,2}}|\d{{1,2}}[/.-]\d{{1,2}}[/.-](?:\d{{4}}|\d{{2}})(?!\d)"
    rf"|\d{{1,2}}[ -]{_MONTH_PATTERN}[ ,-]{{1,2}}\d{{4}}|{_MONTH_PATTERN} \d{{1,2}},? \d{{4}}"
)
# One to four words with a capital, a comma between family and given name or none: "Marsh, Helen A.", "Helen Marsh".
_LABEL_WORD_PATTERN = (
    r"(?:DOB|D\.O\.B|MRN|Sex|Age|Date|Birth|Born|Gender|Ref|Acc|Visit|Exam|Report|Reported|Provider|Phone|Tel|ID)"
)
_NAME_PATTERN = rf"(?-i:[A-Z][\w'’-]*\.?(?:(?:, ?| )(?!{_LABEL_WORD_PATTERN}\b)[A-Z][\w'’-]*\.?){{1,3}})"
_NUMBER_PATTERN = r"(?=[\w-]*\d)[A-Z0-9][\w-]{2,19}"
_LABEL_END_PATTERN = r"[ \t]*+[:#.]?[ \t]*+[:#]?[ \t\n]*+"

#: Label and value of each kind. Of report dates, the first row that a page has wins over those below it.
_LABEL_PATTERNS: tuple[tuple[IdentifierKind, str, str], ...] = (
    ("patient", r"(?:patient(?:['’]s)? name|pt\.? name|name of patient|(?:patient|(?<!\w )name)(?=[ ]*[:\t\n]))", _NAME_PATTERN),
    ("date_of_birth", r"(?:d\.?o\.?b\.?|date of birth|birth ?date|born(?: on)?)", _DATE_PATTERN),
    ("mrn", r"(?:mrn|mr ?#|med(?:ical)?\.? rec(?:ord)?\.?(?: (?:no\.?|number|num|#))?|chart (?:no\.?|number|#))", _NUMBER_PATTERN),
    ("report_date", r"(?:reported(?: on)?|report date|date reported|date of report|date of (?:service|visit|exam(?:ination)?)"
                    r"|(?:visit|exam|service|study|signed) date|signed(?: on)?|date)", _DATE_PATTERN),
)  # fmt: skip
_LABELLED_VALUE = re.compile(
    "|".join(
        rf"(?<![\w/-])(?P<{kind}_label>{label}){_LABEL_END_PATTERN}(?P<{kind}>{value})"
        for kind, label, value in _LABEL_PATTERNS
    ),
    re.IGNORECASE,
)
_LABEL_START = re.compile(
    r"(?<!\w)(?=[bcdemnprsv])"  # as \b, but twice as fast
    r"(?:patient|pt|name|d\.?o\.?b|date|birth|born|mr|med|chart|report|visit|exam|service|study|signed)",
    re.IGNORECASE,
)
#: A running head names the patient without a label, family name first.
_RUNNING_HEAD_NAME = re.compile(r"[^\S\n]*([A-Z][\w'’-]+, [A-Z][\w'’-]+(?: [A-Z]\.?)?)(?=\s|$)")
_HEAD_LINES = 2
#: Characters of a page's text where strips stand: its head and its foot.
_HEAD_LENGTH, _FOOT_LENGTH = 1200, 400
_STATES_AND_DEGREES = frozenset(
    {
        "AL",
        "AK",
        "AZ",
        "AR",
        "CA",
        "CO",
        "CT",
        "DE",
        "FL",
        "GA",
        "HI",
        "ID",
        "IL",
        "IN",
        "IA",
        "KS",
        "KY",
        "LA",
        "ME",
        "MD",
        "MA",
        "MI",
        "MN",
        "MS",
        "MO",
        "MT",
        "NE",
        "NV",
        "NH",
        "NJ",
        "NM",
        "NY",
        "NC",
        "ND",
        "OH",
        "OK",
        "OR",
        "PA",
        "RI",
        "SC",
        "SD",
        "TN",
        "TX",
        "UT",
        "VT",
        "VA",
        "WA",
        "WV",
        "WI",
        "WY",
        "DC",
        "PHD",
        "RN",
        "DO",
        "NP",
    }
)
_NON_NAME_WORDS = frozenset(
    {
        "PATIENT",
        "NAME",
        "DOB",
        "DATE",
        "BIRTH",
        "MRN",
        "SEX",
        "AGE",
        "GENDER",
        "MALE",
        "FEMALE",
        "ID",
        "PHONE",
        "ADDRESS",
        "REPORT",
        "PAGE",
        "ACCOUNT",
        "PROVIDER",
        "PHYSICIAN",
        "STATUS",
        "HISTORY",
        "INFORMATION",
        "SIGNATURE",
        "EDUCATION",
        "COMPLAINT",
        "CARE",
        "CENTER",
        "TEST",
        "THE",
        "THIS",
        "IS",
        "WAS",
        "HAS",
        "SPECIMEN",
        "RECORD",
        "NUMBER",
        "VISIT",
        "COLLECTED",
        "RECEIVED",
        "REPORTED",
        "ORDERED",
        "MEDICAL",
        "REFERRING",
        "ATTENDING",
    }
)
_ORGANISATION_WORDS = frozenset(
    {"INC", "LLC", "COMPANY", "INSURANCE", "HOSPITAL", "CLINIC", "CENTER", "HEALTH", "LABORATORY", "MEDICARE", "MUTUAL"}
)
_TITLES = frozenset({"MR", "MRS", "MS", "MISS", "DR", "MD", "JR", "SR", "II", "III"})


def find_identifiers(text: str, words: Sequence[WordPosition]) -> tuple[Identifier, ...]:
    """The first of each kind on a page, in the order of the page's ``text``; ``words`` say where they stand."""
    first_by_kind: dict[IdentifierKind, Identifier] = {}
    foot_start = max(len(text) - _FOOT_LENGTH, _HEAD_LENGTH)
    for kind, raw_text, start, end in (
        *_find_labelled_identifiers(text, 0, _HEAD_LENGTH),
        *_find_running_names(text),
        *_find_labelled_identifiers(text, foot_start, len(text)),
    ):
        if kind not in first_by_kind and (normal_form := _NORMALISE_BY_KIND[kind](raw_text)):
            first_by_kind[kind] = Identifier(
                kind=kind, value=raw_text, normal=normal_form, box=_enclose_words(words, start, end)
            )
    return tuple(sorted(first_by_kind.values(), key=lambda identifier: (identifier.box[1], identifier.box[0])))


def _find_labelled_identifiers(text: str, start: int, end: int) -> Iterator[tuple[IdentifierKind, str, int, int]]:
    plain_dates: list[tuple[IdentifierKind, str, int, int]] = []
    # Looked for alone, the labels' first letters are found ten times as fast as labels with their values.
    matches = (
        _LABELLED_VALUE.match(text, label_start.start(), end) for label_start in _LABEL_START.finditer(text, start, end)
    )
    for match in filter(None, matches):
        for kind, _, _ in _LABEL_PATTERNS:
            if match[kind] is not None:
                candidate: tuple[IdentifierKind, str, int, int] = (
                    kind,
                    " ".join(match[kind].split()),
                    match.start(),
                    match.end(),
                )
                if kind == "report_date" and match[f"{kind}_label"].casefold() == "date":
                    plain_dates.append(candidate)  # a date of anything: only where no other says more
                else:
                    yield candidate
    yield from plain_dates


def _find_running_names(text: str) -> Iterator[tuple[IdentifierKind, str, int, int]]:
    line_start = 0
    for line in text.split("\n", _HEAD_LINES)[:_HEAD_LINES]:
        if match := _RUNNING_HEAD_NAME.match(line):
            yield "patient", match[1], line_start + match.start(1), line_start + match.end(1)
        line_start += len(line) + 1


def _normalise_name(name: str) -> str | None:
    """``MARSH HELEN`` of "Helen A. Marsh", "MARSH, HELEN" and "Ms. Helen Marsh".

    >>> _normalise_name("Helen A. Marsh"), _normalise_name("MARSH, HELEN"), _normalise_name("Brookfield, WI"), _normalise_name("Date Reported")
    ('MARSH HELEN', 'MARSH HELEN', None, None)
    """
    family, _, given_names = name.upper().partition(",")
    words = [word.strip(".") for word in (given_names + " " + family if given_names else family).split()]
    if given_names and given_names.strip(" .") in _STATES_AND_DEGREES:
        return None
    if _ORGANISATION_WORDS.intersection(words):
        return None
    names: list[str] = []
    for word in words:
        if word in _NON_NAME_WORDS:  # the next label has been taken along
            break
        if word not in _TITLES and len(word) > 1:
            names.append(word)
    return f"{names[-1]} {names[0]}" if len(names) > 1 else None


def _normalise_date(text: str) -> str | None:
    """The date as ISO 8601, month first where both readings are possible; None for a day that never was.

    >>> _normalise_date("03/22/1971"), _normalise_date("22.3.71"), _normalise_date("March 22, 1971"), _normalise_date("22-Mar-1971"), _normalise_date("02/30/2020")
    ('1971-03-22', '1971-03-22', '1971-03-22', '1971-03-22', None)
    """
    parts = re.findall(r"\d+|[a-z]{3,}", text.casefold())
    months = [_MONTH_ABBREVIATIONS.index(part[:3]) + 1 for part in parts if part[:3] in _MONTH_ABBREVIATIONS]
    numbers = [int(part) for part in parts if part.isdigit()]
    if months and len(numbers) == 2:
        day, year, month = numbers[0], numbers[1], months[0]
    elif len(numbers) == 3 and len(parts[0]) == 4:
        year, month, day = numbers
    elif len(numbers) == 3:
        month, day, year = numbers if numbers[0] <= 12 else (numbers[1], numbers[0], numbers[2])
    else:
        return None
    if year < 100:  # nobody's birthday or report lies far ahead
        year += 1900 if year > 30 else 2000
    try:
        return date(year, month, day).isoformat()
    except ValueError:
        return None


#: What makes the form to compare by; None where it is none of the kind after all.
_NORMALISE_BY_KIND: dict[IdentifierKind, Callable[[str], str | None]] = {
    "patient": _normalise_name,
    "mrn": lambda number: re.sub(r"[\W_]", "", number).upper(),
    "date_of_birth": _normalise_date,
    "report_date": _normalise_date,
}


def _enclose_words(words: Sequence[WordPosition], start: int, end: int) -> Box:
    covered_words = words[bisect_right(words, start, key=itemgetter(1)) : bisect_left(words, end, key=itemgetter(0))]
    if not covered_words:
        return 0.0, 0.0, 0.0, 0.0
    x0, y0 = min(word[2] for word in covered_words), min(word[3] for word in covered_words)
    x1, y1 = max(word[4] for word in covered_words), max(word[5] for word in covered_words)
    return x0 / 10_000, y0 / 10_000, x1 / 10_000, y1 / 10_000
