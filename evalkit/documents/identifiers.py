"""Whose page is this, and of when? Patient, date of birth, record number and report date as a page's strips give them.

They are data for the person who looks at a packet and for finding where one document ends: another name or another
birthday on the next page is the strongest sign there is. What is found is never taken for proof of anything.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from datetime import date
from operator import itemgetter
from typing import Literal

from evalkit.documents.bundle import Box, Identifier, Word

Kind = Literal["patient", "date_of_birth", "mrn", "report_date"]

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = r"(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]{0,6}\.?"
_DATE = (
    rf"\d{{4}}-\d{{1,2}}-\d{{1,2}}|\d{{1,2}}[/.-]\d{{1,2}}[/.-](?:\d{{4}}|\d{{2}})(?!\d)"
    rf"|\d{{1,2}}[ -]{_MONTH}[ ,-]{{1,2}}\d{{4}}|{_MONTH} \d{{1,2}},? \d{{4}}"
)
# One to four words with a capital, a comma between family and given name or none: "Marsh, Helen A.", "Helen Marsh".
_LABEL_WORD = (
    r"(?:DOB|D\.O\.B|MRN|Sex|Age|Date|Birth|Born|Gender|Ref|Acc|Visit|Exam|Report|Reported|Provider|Phone|Tel|ID)"
)
_NAME = rf"(?-i:[A-Z][\w'’-]*\.?(?:(?:, ?| )(?!{_LABEL_WORD}\b)[A-Z][\w'’-]*\.?){{1,3}})"
_NUMBER = r"(?=[\w-]*\d)[A-Z0-9][\w-]{2,19}"
_END = r"[ \t]*+[:#.]?[ \t]*+[:#]?[ \t\n]*+"

#: Label and value of each kind. Of report dates, the first row that a page has wins over those below it.
_ROWS: tuple[tuple[Kind, str, str], ...] = (
    ("patient", r"(?:patient(?:['’]s)? name|pt\.? name|name of patient|(?:patient|(?<!\w )name)(?=[ ]*[:\t\n]))", _NAME),
    ("date_of_birth", r"(?:d\.?o\.?b\.?|date of birth|birth ?date|born(?: on)?)", _DATE),
    ("mrn", r"(?:mrn|mr ?#|med(?:ical)?\.? rec(?:ord)?\.?(?: (?:no\.?|number|num|#))?|chart (?:no\.?|number|#))", _NUMBER),
    ("report_date", r"(?:reported(?: on)?|report date|date reported|date of report|date of (?:service|visit|exam(?:ination)?)"
                    r"|(?:visit|exam|service|study|signed) date|signed(?: on)?|date)", _DATE),
)  # fmt: skip
_LABELLED = re.compile(
    "|".join(rf"(?<![\w/-])(?P<{kind}_label>{label}){_END}(?P<{kind}>{value})" for kind, label, value in _ROWS),
    re.IGNORECASE,
)
_LABEL_BEGINS = re.compile(
    r"(?<!\w)(?=[bcdemnprsv])"  # as \b, but twice as fast
    r"(?:patient|pt|name|d\.?o\.?b|date|birth|born|mr|med|chart|report|visit|exam|service|study|signed)",
    re.IGNORECASE,
)
#: A running head names the patient without a label, family name first.
_RUNNING = re.compile(r"[^\S\n]*([A-Z][\w'’-]+, [A-Z][\w'’-]+(?: [A-Z]\.?)?)(?=\s|$)")
_HEAD_LINES = 2
#: Characters of a page's text where strips stand: its head and its foot.
_HEAD, _FOOT = 1200, 400
_STATES = frozenset(
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
_NOT_NAMES = frozenset(
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
_ORGANISATIONS = frozenset(
    {"INC", "LLC", "COMPANY", "INSURANCE", "HOSPITAL", "CLINIC", "CENTER", "HEALTH", "LABORATORY", "MEDICARE", "MUTUAL"}
)
_TITLES = frozenset({"MR", "MRS", "MS", "MISS", "DR", "MD", "JR", "SR", "II", "III"})


def identifiers(text: str, words: Sequence[Word]) -> tuple[Identifier, ...]:
    """The first of each kind on a page, in the order of the page's ``text``; ``words`` say where they stand."""
    found: dict[Kind, Identifier] = {}
    foot = max(len(text) - _FOOT, _HEAD)
    for kind, value, start, end in (*_labelled(text, 0, _HEAD), *_running(text), *_labelled(text, foot, len(text))):
        if kind not in found and (normal := _normal(kind, value)):
            found[kind] = Identifier(kind=kind, value=value, normal=normal, box=_box(words, start, end))
    return tuple(sorted(found.values(), key=lambda one: (one.box[1], one.box[0])))


def _labelled(text: str, start: int, end: int) -> Iterator[tuple[Kind, str, int, int]]:
    dates: list[tuple[Kind, str, int, int]] = []
    # Looked for alone, the labels' first letters are found ten times as fast as labels with their values.
    labels = (_LABELLED.match(text, at.start(), end) for at in _LABEL_BEGINS.finditer(text, start, end))
    for match in filter(None, labels):
        for kind, _, _ in _ROWS:
            if match[kind] is not None:
                one: tuple[Kind, str, int, int] = (kind, " ".join(match[kind].split()), match.start(), match.end())
                if kind == "report_date" and match[f"{kind}_label"].casefold() == "date":
                    dates.append(one)  # a date of anything: only where no other says more
                else:
                    yield one
    yield from dates


def _running(text: str) -> Iterator[tuple[Kind, str, int, int]]:
    at = 0
    for line in text.split("\n", _HEAD_LINES)[:_HEAD_LINES]:
        if match := _RUNNING.match(line):
            yield "patient", match[1], at + match.start(1), at + match.end(1)
        at += len(line) + 1


def _normal(kind: Kind, value: str) -> str | None:
    """The form to compare by; None where it is none of the kind after all."""
    if kind == "patient":
        return _name(value)
    if kind == "mrn":
        return re.sub(r"[\W_]", "", value).upper()
    return _iso(value)


def _name(value: str) -> str | None:
    """``MARSH HELEN`` of "Helen A. Marsh", "MARSH, HELEN" and "Ms. Helen Marsh".

    >>> _name("Helen A. Marsh"), _name("MARSH, HELEN"), _name("Brookfield, WI"), _name("Date Reported")
    ('MARSH HELEN', 'MARSH HELEN', None, None)
    """
    family, _, given = value.upper().partition(",")
    parts = [word.strip(".") for word in (given + " " + family if given else family).split()]
    if given and given.strip(" .") in _STATES:
        return None
    if _ORGANISATIONS.intersection(parts):
        return None
    names: list[str] = []
    for word in parts:
        if word in _NOT_NAMES:  # the next label has been taken along
            break
        if word not in _TITLES and len(word) > 1:
            names.append(word)
    return f"{names[-1]} {names[0]}" if len(names) > 1 else None


def _iso(value: str) -> str | None:
    """The date as ISO 8601, month first where both readings are possible; None for a day that never was.

    >>> _iso("03/22/1971"), _iso("22.3.71"), _iso("March 22, 1971"), _iso("22-Mar-1971"), _iso("02/30/2020")
    ('1971-03-22', '1971-03-22', '1971-03-22', '1971-03-22', None)
    """
    parts = re.findall(r"\d+|[a-z]{3,}", value.casefold())
    months = [_MONTHS.index(part[:3]) + 1 for part in parts if part[:3] in _MONTHS]
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


def _box(words: Sequence[Word], start: int, end: int) -> Box:
    inside = words[bisect_right(words, start, key=itemgetter(1)) : bisect_left(words, end, key=itemgetter(0))]
    if not inside:
        return 0.0, 0.0, 0.0, 0.0
    x0, y0 = min(word[2] for word in inside), min(word[3] for word in inside)
    x1, y1 = max(word[4] for word in inside), max(word[5] for word in inside)
    return x0 / 10_000, y0 / 10_000, x1 / 10_000, y1 / 10_000
