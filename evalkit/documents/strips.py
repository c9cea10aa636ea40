"""Whose page is this, and is it the same patient's as the page before? One line for each page, to be shown beside it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Literal

from evalkit.documents.bundle import DocumentBundle, Identifier
from evalkit.documents.identifiers import Kind

Relation = Literal["first", "same", "doubtful", "other", "none"]

#: What tells patients apart, in the order in which it is said; a report's date tells nothing about whose it is.
_WHO: dict[Kind, str] = {"patient": "name", "date_of_birth": "date of birth", "mrn": "record number"}
_ALONE: tuple[Relation, str] = ("first", "")
_NAMELESS: tuple[Relation, str] = ("none", "")


@dataclass(frozen=True)
class Strip:
    """Name and dates of one page, and how they agree with those of the page before."""

    text: str
    """``DOE, JOHN · 01/15/1970``: in one form, so that two pages can be compared at a glance."""
    relation: Relation
    """``first``: no earlier page to compare with; ``doubtful``: one thing agrees, another differs; ``none``: no name."""
    words: str
    """``same as page 2``, ``another patient than page 2`` …; empty where there is nothing to compare."""
    identifiers: tuple[Identifier, ...]
    """What it was made of, with the place on the page, where a person can see whether it was read rightly."""


def strips(bundle: DocumentBundle) -> tuple[Strip, ...]:
    """The strip of every page, in order. A page is compared with the last one before it that says the same kind of thing."""
    return tuple(_strips(bundle))


def strip(bundle: DocumentBundle, page: int) -> Strip:
    """The strip of one page, from 1. KeyError if the document has no such page."""
    bundle.page(page)
    return strips(bundle)[page - 1]


def _strips(bundle: DocumentBundle) -> Iterator[Strip]:
    last: dict[Kind, tuple[int, str]] = {}
    for page in bundle.pages:
        here: dict[Kind, str] = {one.kind: one.normal for one in page.identifiers}
        who: list[Kind] = [kind for kind in _WHO if kind in here]
        before = {kind: last[kind] for kind in who if kind in last}
        compared = _compared(here, before) if before else _ALONE if who else _NAMELESS
        yield Strip(_text(here), *compared, page.identifiers)
        last.update({kind: (page.page_num, here[kind]) for kind in who})


def _compared(here: dict[Kind, str], before: dict[Kind, tuple[int, str]]) -> tuple[Relation, str]:
    """Each kind with the last page that has it: between two names there may be pages with a number alone."""
    different = [kind for kind, (_, said) in before.items() if here[kind] != said]
    page = max(before[kind][0] for kind in different or before)
    if not different:
        return "same", f"same as page {page}"
    if len(different) < len(before):
        return "doubtful", f"another {' and '.join(_WHO[kind] for kind in different)} than page {page}"
    return "other", f"another patient than page {page}"


def _text(here: dict[Kind, str]) -> str:
    """One form for every page.

    >>> _text({"patient": "DOE JOHN", "date_of_birth": "1970-01-15"}), _text({"mrn": "TM409"}), _text({})
    ('DOE, JOHN · 01/15/1970', 'no name on this page · record TM409', 'no name on this page')
    """
    said = [here["patient"].replace(" ", ", ", 1) if "patient" in here else "no name on this page"]
    if "date_of_birth" in here:
        said.append(_day(here["date_of_birth"]))
    elif "report_date" in here:
        said.append(f"dated {_day(here['report_date'])}")
    if "patient" not in here and "mrn" in here:
        said.append(f"record {here['mrn']}")
    return " · ".join(said)


def _day(iso: str) -> str:
    return date.fromisoformat(iso).strftime("%m/%d/%Y")
