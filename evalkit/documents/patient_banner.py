"""One line about each page's patient, compared with earlier pages."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal

from evalkit.core.grouping import group_pairs, split_into_runs
from evalkit.documents.bundle import DocumentBundle, Identifier, IdentifierKind
from evalkit.documents.identity.file_persons import (
    PagePatientIdentity,
    compare_page_patients,
    get_page_patient_identity,
    group_pages_by_person,
)
from evalkit.documents.identity.same_person import FactComparison, PersonComparison, SamePersonVerdict

PatientRelation = Literal["first", "same", "doubtful", "other", "none"]
#: Numbers of the first and the last page, from 1.
PageRange = tuple[int, int]


@dataclass(frozen=True)
class PatientBanner:
    """A page's patient in one line, compared with the patient of an earlier page."""

    text: str
    """Name and birth date in one fixed form, so that a person can compare pages at a glance:
    ``DOE, JOHN · 01/15/1970``."""
    relation: PatientRelation
    """Result of the comparison. ``first``: no earlier page can be compared; ``same``: no fact differs, or the patient
    is certainly the same; ``other``: another patient; ``doubtful``: facts differ, but not enough for another patient;
    ``none``: the page identifies nobody."""
    relation_text: str
    """The result in words, e.g. ``same as page 2`` or ``name read differently: … / …``; empty if nothing was
    compared."""
    identifiers: tuple[Identifier, ...]
    """Patient facts of this page, with their places on the page, so that a person can check them."""
    compared_page: int | None = None
    """Number of the earlier page with which this page is compared; None if there is none."""
    differences: tuple[FactComparison, ...] = ()
    """Facts that differ: ``left`` is from ``compared_page``, ``right`` from this page."""


def build_patient_banners(bundle: DocumentBundle) -> Iterator[PatientBanner]:
    """Describe the patient of each page in one line (banner), in page order.

    Each page is compared with one earlier page: the nearest of the same patient; else the nearest of another patient;
    else the nearest with at least one fact that both pages state.
    """
    person_by_page = _index_person_by_page(bundle)
    # Of earlier pages that state equal facts, only the last is compared.
    earlier_pages: dict[object, PagePatientIdentity] = {}
    for page in bundle.pages:
        identity = get_page_patient_identity(page)
        compared_page, comparison = (
            _choose_deciding_earlier_page(tuple(earlier_pages.values()), identity) if identity else (None, None)
        )
        relation, relation_text = _describe_relation(compared_page, comparison)
        if (
            relation == "other"
            and compared_page
            and person_by_page[compared_page.page_num] == person_by_page[page.page_num]
        ):
            relation = "doubtful"  # other pages show that both pages are about one person
        yield PatientBanner(
            _format_identity({identifier.kind: identifier.normal for identifier in page.identifiers}),
            relation if identity else "none",
            relation_text,
            page.identifiers,
            compared_page.page_num if compared_page else None,
            comparison.differing if comparison and relation in ("other", "doubtful") else (),
        )
        if identity:
            key = tuple((identifier.kind, identifier.value, identifier.issuer) for identifier in identity.identifiers)
            earlier_pages.pop(key, None)
            earlier_pages[key] = identity


def list_page_ranges_by_person(bundle: DocumentBundle) -> list[tuple[PageRange, ...]]:
    """List the page ranges of each person, persons in the order of first appearance.

    A range begins and ends with a page that identifies the person. Pages in between that identify nobody belong to the
    range; a page about another person ends it.
    """
    person_by_page = _index_person_by_page(bundle)
    runs = split_into_runs(sorted(person_by_page), lambda run, page: person_by_page[page] == person_by_page[run[-1]])
    ranges = group_pairs((person_by_page[run[0]], (run[0], run[-1])) for run in runs)
    return [tuple(ranges[person_index]) for person_index in sorted(ranges)]


def _index_person_by_page(bundle: DocumentBundle) -> dict[int, int]:
    return {
        page_num: person_index
        for person_index, person in enumerate(group_pages_by_person(bundle.pages))
        for page_num in person.page_numbers
    }


def _choose_deciding_earlier_page(
    earlier_pages: Sequence[PagePatientIdentity], identity: PagePatientIdentity
) -> tuple[PagePatientIdentity | None, PersonComparison | None]:
    best: tuple[PagePatientIdentity | None, PersonComparison | None] = (None, None)
    for page in reversed(earlier_pages):
        comparison = compare_page_patients(page, identity)
        if comparison.relation is SamePersonVerdict.SAME:
            return page, comparison
        is_better = best[1] is None or (
            comparison.relation is SamePersonVerdict.DIFFERENT and best[1].relation is SamePersonVerdict.CANNOT_TELL
        )
        if is_better and (comparison.agreeing or comparison.differing):
            best = page, comparison
    return best


def _describe_relation(
    compared_page: PagePatientIdentity | None, comparison: PersonComparison | None
) -> tuple[PatientRelation, str]:
    if compared_page is None or comparison is None:
        return "first", ""
    if comparison.relation is SamePersonVerdict.DIFFERENT:
        facts = " · ".join(_format_fact(difference.left) for difference in comparison.differing[:2])
        return "other", f"another patient than page {compared_page.page_num}: {facts}"
    if comparison.relation is SamePersonVerdict.SAME or not comparison.differing:
        return "same", f"same as page {compared_page.page_num}"
    difference = comparison.differing[0]
    left, right = (_format_fact(identifier) for identifier in (difference.left, difference.right))
    return "doubtful", f"{difference.fact} read differently: {left} / {right}"


def _format_fact(identifier: Identifier) -> str:
    if identifier.kind == "patient":
        return identifier.normal.replace(" ", ", ", 1)
    return _format_us_date(identifier.normal) if identifier.kind == "date_of_birth" else identifier.value


def _format_identity(identity: dict[IdentifierKind, str]) -> str:
    parts = [identity["patient"].replace(" ", ", ", 1) if "patient" in identity else "no patient name read"]
    if "date_of_birth" in identity:
        parts.append(_format_us_date(identity["date_of_birth"]))
    elif "report_date" in identity:
        parts.append(f"dated {_format_us_date(identity['report_date'])}")
    if "patient" not in identity and "mrn" in identity:
        parts.append(f"record {identity['mrn']}")
    return " · ".join(parts)


def _format_us_date(iso_date: str) -> str:
    return date.fromisoformat(iso_date).strftime("%m/%d/%Y")
