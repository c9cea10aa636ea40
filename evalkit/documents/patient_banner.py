"""Whose page is this, and is it the same patient's as the page before? One line for each page, to be shown beside it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Literal

from evalkit.documents.bundle import DocumentBundle, Identifier, IdentifierKind

PatientRelation = Literal["first", "same", "doubtful", "other", "none"]

#: What tells patients apart, in the order in which it is said; a report's date tells nothing about whose it is.
_IDENTIFYING_KINDS: dict[IdentifierKind, str] = {
    "patient": "name",
    "date_of_birth": "date of birth",
    "mrn": "record number",
}


@dataclass(frozen=True)
class PatientBanner:
    """Name and dates of one page, and how they agree with those of the page before."""

    text: str
    """``DOE, JOHN · 01/15/1970``: in one form, so that two pages can be compared at a glance."""
    relation: PatientRelation
    """``first``: no earlier page to compare with; ``doubtful``: one thing agrees, another differs; ``none``: no name."""
    relation_text: str
    """``same as page 2``, ``another patient than page 2`` …; empty where there is nothing to compare."""
    identifiers: tuple[Identifier, ...]
    """What it was made of, with the place on the page, where a person can see whether it was read rightly."""


def build_patient_banners(bundle: DocumentBundle) -> Iterator[PatientBanner]:
    """Describe the patient of every page, in order, compared with the pages before.

    A page is compared with the last one before it that says the same kind of thing.
    """
    latest_by_kind: dict[IdentifierKind, tuple[int, str]] = {}
    for page in bundle.pages:
        identity: dict[IdentifierKind, str] = {identifier.kind: identifier.normal for identifier in page.identifiers}
        identifying_kinds: list[IdentifierKind] = [kind for kind in _IDENTIFYING_KINDS if kind in identity]
        previous_by_kind = {kind: latest_by_kind[kind] for kind in identifying_kinds if kind in latest_by_kind}
        relation, relation_text = _compare_identity(identity, previous_by_kind)
        yield PatientBanner(_format_identity(identity), relation, relation_text, page.identifiers)
        latest_by_kind.update({kind: (page.page_num, identity[kind]) for kind in identifying_kinds})


def _compare_identity(
    identity: dict[IdentifierKind, str], previous_by_kind: dict[IdentifierKind, tuple[int, str]]
) -> tuple[PatientRelation, str]:
    """Each kind with the last page that has it: between two names there may be pages with a number alone."""
    differing_kinds = [
        kind for kind, (_, previous_normal) in previous_by_kind.items() if identity[kind] != previous_normal
    ]
    if not previous_by_kind:
        return ("first" if not identity.keys().isdisjoint(_IDENTIFYING_KINDS) else "none"), ""
    page_num = max(previous_by_kind[kind][0] for kind in differing_kinds or previous_by_kind)
    if not differing_kinds:
        return "same", f"same as page {page_num}"
    if len(differing_kinds) < len(previous_by_kind):
        return (
            "doubtful",
            f"another {' and '.join(_IDENTIFYING_KINDS[kind] for kind in differing_kinds)} than page {page_num}",
        )
    return "other", f"another patient than page {page_num}"


def _format_identity(identity: dict[IdentifierKind, str]) -> str:
    """One form for every page.

    >>> _format_identity({"patient": "DOE JOHN", "date_of_birth": "1970-01-15"}), _format_identity({"mrn": "TM409"}), _format_identity({})
    ('DOE, JOHN · 01/15/1970', 'no name on this page · record TM409', 'no name on this page')
    """
    parts = [identity["patient"].replace(" ", ", ", 1) if "patient" in identity else "no name on this page"]
    if "date_of_birth" in identity:
        parts.append(_format_us_date(identity["date_of_birth"]))
    elif "report_date" in identity:
        parts.append(f"dated {_format_us_date(identity['report_date'])}")
    if "patient" not in identity and "mrn" in identity:
        parts.append(f"record {identity['mrn']}")
    return " · ".join(parts)


def _format_us_date(iso_date: str) -> str:
    return date.fromisoformat(iso_date).strftime("%m/%d/%Y")
