"""Pages of a file grouped by person."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from evalkit.core.grouping import group_pairs
from evalkit.documents.bundle import Identifier, Page, PageStatus
from evalkit.documents.identity.person_name import PersonName, have_common_word, parse_person_name
from evalkit.documents.identity.same_person import (
    NUMBER_KINDS,
    PersonComparison,
    SamePersonVerdict,
    compare_persons,
    get_kind_and_number_shape,
)

#: A page that states at least two of these facts identifies its patient without other pages.
_STRONG_FACTS = frozenset({"patient", "date_of_birth", "mrn"})

_QUOTED_NOWHERE_KINDS = frozenset({"date_of_birth", "mrn", "account", "accession", "visit"})


@dataclass(frozen=True)
class PagePatientIdentity:
    """Facts that one page states about its patient."""

    page_num: int
    identifiers: tuple[Identifier, ...]
    is_ocr_text: bool

    @property
    def is_strong(self) -> bool:
        """True if the page identifies its patient without the help of other pages."""
        return len({identifier.kind for identifier in self.identifiers} & _STRONG_FACTS) > 1

    @property
    def name(self) -> PersonName | None:
        """Patient's name on the page."""
        return next((parse_person_name(fact.value) for fact in self.identifiers if fact.kind == "patient"), None)

    @property
    def has_full_name_in_field(self) -> bool:
        """True if a label or strip names the patient by family and given name."""
        is_in_field = any(fact.kind == "patient" and fact.source != "running_text" for fact in self.identifiers)
        return is_in_field and self.name is not None and self.name.is_full

    @property
    def numbers(self) -> frozenset[tuple[str, str]]:
        """Kind and normal form of each number, also of a visit or a specimen."""
        return frozenset((fact.kind, fact.normal) for fact in self.identifiers if fact.kind in NUMBER_KINDS)


@dataclass
class FilePerson:
    """One person in a file, with the pages that state facts about this person."""

    pages: list[PagePatientIdentity] = field(default_factory=list)

    @property
    def page_numbers(self) -> set[int]:
        """Numbers of the pages that state facts about this person."""
        return {page.page_num for page in self.pages}

    def list_telling_pages(self, start_page: int, end_page: int) -> list[PagePatientIdentity]:
        """List pages of a range whose facts alone identify this person as their patient.

        Not pages with a number alone that no other of this person's pages has: they are here only because they are near.
        """
        return [
            page
            for page in self.list_pages(start_page, end_page)
            if any(fact.kind in _STRONG_FACTS for fact in page.identifiers)
            or any(not page.numbers.isdisjoint(other.numbers) for other in self.pages if other is not page)
        ]

    def list_pages(self, start_page: int, end_page: int) -> list[PagePatientIdentity]:
        """List this person's pages from ``start_page`` to ``end_page``, both included."""
        return [page for page in self.pages if start_page <= page.page_num <= end_page]

    def compare(self, page: PagePatientIdentity) -> PersonComparison:
        """Compare a page with each page of this person, and return the clearest result.

        SAME comes before DIFFERENT, and DIFFERENT before CANNOT_TELL; then more agreeing facts decide.
        """
        comparisons = [compare_page_patients(own_page, page) for own_page in self._list_distinct_pages()]
        return max(
            comparisons,
            key=lambda comparison: (-list(SamePersonVerdict).index(comparison.relation), len(comparison.agreeing)),
            default=PersonComparison(SamePersonVerdict.CANNOT_TELL),
        )

    def is_other_by_one_fact(self, page: PagePatientIdentity) -> bool:
        """Return True if a birth date or a full name alone shows a different person.

        The page must share no number with this person. Either all birth dates differ, even if one was misread, or full
        names in fields have no word in common.
        """
        own_pages = self._list_distinct_pages()
        if any(not own.numbers.isdisjoint(page.numbers) for own in own_pages):
            return False
        comparisons = [compare_persons(own.identifiers, page.identifiers, is_ocr_text=True) for own in own_pages]
        agreeing = {outcome.fact for comparison in comparisons for outcome in comparison.agreeing}
        if not agreeing.isdisjoint({"birth date", "record number"}):
            return False
        differing = [fact.fact for comparison in comparisons for fact in comparison.differing if fact.is_certain]
        birth_date_count = sum(any(fact.kind == "date_of_birth" for fact in own.identifiers) for own in own_pages)
        are_full_names_known = page.has_full_name_in_field and any(own.has_full_name_in_field for own in own_pages)
        return 0 < birth_date_count == differing.count("birth date") or (
            are_full_names_known
            and not any(own.name and page.name and have_common_word(own.name, page.name) for own in own_pages)
        )

    def _list_distinct_pages(self) -> Collection[PagePatientIdentity]:
        """List a page for each set of facts that this person's pages state."""
        return {
            tuple((identifier.kind, identifier.value) for identifier in own_page.identifiers): own_page
            for own_page in self.pages
        }.values()


class PageFacts(NamedTuple):
    """Facts that a stored page states about its patient, and how it was read."""

    page_num: int
    status: PageStatus
    language: str | None
    identifiers: tuple[Identifier, ...]


def get_page_patient_identity(page: Page | PageFacts) -> PagePatientIdentity | None:
    """Return the facts that a page states about its patient.

    None if the page states none, or only sex and age.
    """
    personal = tuple(identifier for identifier in page.identifiers if identifier.kind != "report_date")
    is_named = any(identifier.kind not in ("sex", "age") for identifier in personal)
    return PagePatientIdentity(page.page_num, personal, page.status is PageStatus.OCR) if is_named else None


def find_page_range_owner(persons: Iterable[FilePerson], start_page: int, end_page: int) -> FilePerson | None:
    """Return the person with the most pages from ``start_page`` to ``end_page``.

    If two persons have equally many pages, the one whose page comes first. None if no page states an identity.
    """
    pages_by_person = ((person, person.list_pages(start_page, end_page)) for person in persons)
    return max(
        ((person, pages) for person, pages in pages_by_person if pages),
        key=lambda pair: (len(pair[1]), -pair[1][0].page_num),
        default=(None, None),
    )[0]


def compare_page_patients(left: PagePatientIdentity, right: PagePatientIdentity) -> PersonComparison:
    """Compare the patients of two pages: same person, different, or cannot tell."""
    return compare_persons(left.identifiers, right.identifiers, is_ocr_text=left.is_ocr_text or right.is_ocr_text)


def group_pages_by_person(pages: Iterable[Page | PageFacts]) -> list[FilePerson]:
    """Group pages with patient facts by person, in the order of first appearance.

    Only pages that identify their patient without other pages start groups (if there is no such page, all do). Every
    other page joins the group with which most of its facts agree, the nearest one if several do. Without such a group, it
    starts one if its full name is unlike all others; else it joins the group of the nearest page before it (or else behind it).
    """
    page_identities = map(get_page_patient_identity, pages)
    identities = _fill_in_missing_issuers([identity for identity in page_identities if identity])
    strong_pages = [identity for identity in identities if identity.is_strong]
    persons: list[FilePerson] = []
    for identity in strong_pages or identities:
        person = _find_same_or_likeliest_person(persons, identity)
        if person is None:
            persons.append(person := FilePerson())
        person.pages.append(identity)
    for identity in identities if strong_pages else ():
        if not identity.is_strong:
            agreement, _, person = max(_rank_persons(persons, identity), key=lambda rank: rank[:2])
            if not agreement and all(other.is_other_by_one_fact(identity) for other in persons):
                persons.append(person := FilePerson())
            person.pages.append(identity)
    for person in persons:
        person.pages.sort(key=lambda identity: identity.page_num)
    return sorted(persons, key=lambda person: person.pages[0].page_num)


def _fill_in_missing_issuers(identities: Sequence[PagePatientIdentity]) -> list[PagePatientIdentity]:
    """Give numbers without issuer the issuer of a number of equal kind and shape.

    The nearest earlier page with such a number counts; without one, the first page.
    """
    issuers_by_form = group_pairs(
        (get_kind_and_number_shape(identifier), (identity.page_num, identifier.issuer))
        for identity in identities
        for identifier in identity.identifiers
        if identifier.issuer
    )

    def complete(identifier: Identifier, page_num: int) -> Identifier:
        issuers = issuers_by_form.get(get_kind_and_number_shape(identifier))
        if identifier.issuer or not issuers:
            return identifier
        earlier_issuers = [issuer for issuer_page, issuer in issuers if issuer_page < page_num]
        return identifier.model_copy(update={"issuer": earlier_issuers[-1] if earlier_issuers else issuers[0][1]})

    return [
        replace(
            identity,
            identifiers=tuple(complete(identifier, identity.page_num) for identifier in identity.identifiers),
        )
        for identity in identities
    ]


def has_patient_identifier(text: str, page: Page) -> bool:
    """Return True if the text has facts of the page's patient.

    Such facts are a word of the patient's name, the birth date, or a record, account, accession or visit number.
    """
    words = {word.capitalize() for word in re.findall(r"[^\W\d_]+", text) if word[0].isupper()}
    return any(
        not words.isdisjoint(word.capitalize() for word in re.findall(r"[^\W\d_]{3,}", identifier.value))
        if identifier.kind == "patient"
        else identifier.kind in _QUOTED_NOWHERE_KINDS and identifier.value in text
        for identifier in page.identifiers
    )


def count_pages_of_other_persons(persons: Sequence[FilePerson]) -> int:
    """Count the pages of all persons except the person with the most pages."""
    page_counts = [len(person.pages) for person in persons]
    return sum(page_counts) - max(page_counts, default=0)


def read_page_facts(stored_bundle: Mapping[str, Any]) -> list[PageFacts]:
    """Read only the patient facts of a stored bundle's pages.

    LookupError or ValueError if the bundle is damaged.
    """
    return [
        PageFacts(
            page["page_num"],
            PageStatus(page["status"]),
            page.get("language"),
            tuple(map(Identifier.model_validate, page["identifiers"])),
        )
        for page in stored_bundle["pages"]
    ]


def _find_same_or_likeliest_person(persons: Sequence[FilePerson], identity: PagePatientIdentity) -> FilePerson | None:
    """Return the person of a page; None if the page is about a new person.

    If no person is surely the same, the person with the most agreeing facts among those that may be the same.
    """
    comparisons = [(person, person.compare(identity)) for person in reversed(persons)]
    for person, comparison in comparisons:
        if comparison.relation is SamePersonVerdict.SAME:
            return person
    open_comparisons = [
        (person, comparison)
        for person, comparison in comparisons
        if comparison.relation is SamePersonVerdict.CANNOT_TELL
        and (comparison.agreeing or len(persons) == 1)
        and not person.is_other_by_one_fact(identity)
    ]
    return max(open_comparisons, key=lambda pair: _count_net_agreement(pair[1]), default=(None, None))[0]


def _count_net_agreement(comparison: PersonComparison) -> int:
    return len(comparison.agreeing) - len(comparison.differing)


def _rank_persons(
    persons: Sequence[FilePerson], identity: PagePatientIdentity
) -> Iterator[tuple[int, int, FilePerson]]:
    """Yield for each person how many facts agree, and how near a page is.

    Facts count at least 0; earlier pages are nearer.
    """
    for person in persons:
        distances = [identity.page_num - page.page_num for page in person.pages]
        nearness = max(-distance if distance > 0 else distance - 10_000 for distance in distances)
        yield max(0, _count_net_agreement(person.compare(identity))), nearness, person
