"""Check for pages of other patients in a document or a file.

Source: contract ruling 22. The issues never repeat a name, a date or a number, because they are stored and exported; a
person sees them on the pages.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from evalkit.classification.offline.second_opinion_boundaries import is_continuation_page_of_document
from evalkit.classification.schema import ClassificationOutput, Segment
from evalkit.core.wording import format_page_numbers, format_page_range, join_with_and
from evalkit.documents.bundle import DocumentBundle, Identifier
from evalkit.documents.identity.file_persons import (
    FilePerson,
    PagePatientIdentity,
    compare_page_patients,
    find_page_range_owner,
    group_pages_by_person,
)
from evalkit.documents.identity.person_name import have_same_family_other_given_name, parse_person_name
from evalkit.documents.identity.same_person import PersonComparison, SamePersonVerdict, compare_persons
from evalkit.issue import Issue, IssueSeverity, PageBox

PatientsPerFile = Literal["one", "several"]


@dataclass(frozen=True)
class PatientExpectation:
    """Patients that a file is expected to be about, known before it is read."""

    patients_per_file: PatientsPerFile = "one"
    """Number of patients that a file may be about: "one" or "several"."""
    roster_identity: tuple[Identifier, ...] = ()
    """Identifiers of the patient whom the roster names for this file; empty if the roster names none."""


#: Expectation without a roster: one patient for each file, whoever that is.
ANY_PATIENT = PatientExpectation()
#: Codes of all issues about patients.
PATIENT_CODES = frozenset({"V2-PATIENT-MIXED", "V2-PATIENT-SEVERAL", "V2-PATIENT-OTHER"})


def find_patient_issues(
    answer: ClassificationOutput, bundle: DocumentBundle, expectation: PatientExpectation
) -> Iterator[Issue]:
    """Raise issues about pages of other or several patients.

    By the patient identifiers on the pages, compared within segments, within the file and with the roster.
    """
    persons = group_pages_by_person(bundle.pages)
    if expectation.roster_identity:
        yield from _check_roster(persons, expectation.roster_identity)
    if len(persons) < 2:
        return
    owner_by_segment = {
        segment.segment_index: owner
        for segment in answer.segments
        if (owner := find_page_range_owner(persons, segment.start_page, segment.end_page))
    }
    enclosed_segments = _map_enclosed_segments_to_person(answer, bundle, owner_by_segment)
    for segment in answer.segments:
        owner = owner_by_segment.get(segment.segment_index)
        if owner is None:
            continue
        for person in persons:
            foreign_pages = person.list_telling_pages(segment.start_page, segment.end_page)
            if person is not owner and foreign_pages:
                yield _build_mixed_patients_issue(segment, owner, foreign_pages)
        if (surrounding_owner := enclosed_segments.get(segment.segment_index)) is not None:
            own_pages = owner.list_pages(segment.start_page, segment.end_page)
            yield _build_mixed_patients_issue(segment, surrounding_owner, own_pages)
    owners = [owner for segment_index, owner in owner_by_segment.items() if segment_index not in enclosed_segments]
    if any(owner is not owners[0] for owner in owners):
        yield _build_several_patients_issue(answer, owner_by_segment, expectation.patients_per_file)


def _map_enclosed_segments_to_person(
    answer: ClassificationOutput, bundle: DocumentBundle, owner_by_segment: dict[int, FilePerson]
) -> dict[int, FilePerson]:
    """Find segments inside another person's document: segment index → that person.

    A segment is inside if the previous person's document continues after it, or if its first page continues the page
    before by page count or text although it names another person.
    """
    segments = sorted(answer.segments, key=lambda segment: segment.start_page)
    enclosed: dict[int, FilePerson] = {}
    for position, segment in enumerate(segments[1:], 1):
        owner, previous = owner_by_segment.get(segment.segment_index), segments[position - 1]
        previous_owner = enclosed.get(previous.segment_index) or owner_by_segment.get(previous.segment_index)
        if owner is None or previous_owner is None or owner is previous_owner:
            continue
        earlier_pages = list(bundle.iter_pages(previous.start_page, previous.end_page))
        following = segments[position + 1] if position + 1 < len(segments) else None
        resumes = (
            following is not None
            and owner_by_segment.get(following.segment_index) is previous_owner
            and is_continuation_page_of_document(
                earlier_pages, bundle.page(following.start_page), bundle.total_pages, after_interruption=True
            )
        )
        if resumes or is_continuation_page_of_document(
            earlier_pages, bundle.page(segment.start_page), bundle.total_pages
        ):
            enclosed[segment.segment_index] = previous_owner
    return enclosed


def _find_clearest_difference(
    owner: FilePerson, foreign_pages: Sequence[PagePatientIdentity]
) -> tuple[PagePatientIdentity, PagePatientIdentity, PersonComparison]:
    return max(
        (
            (own_page, foreign_page, compare_page_patients(own_page, foreign_page))
            for own_page in owner.pages
            for foreign_page in foreign_pages
        ),
        key=lambda triple: (
            triple[2].relation is SamePersonVerdict.DIFFERENT,
            triple[2].is_certain,
            len(triple[2].differing),
        ),
    )


def _build_mixed_patients_issue(
    segment: Segment, owner: FilePerson, foreign_pages: Sequence[PagePatientIdentity]
) -> Issue:
    own_page, foreign_page, comparison = _find_clearest_difference(owner, foreign_pages)
    are_relatives = _may_be_relatives(own_page.identifiers, foreign_page.identifiers)
    is_certain = comparison.relation is SamePersonVerdict.DIFFERENT and comparison.is_certain and not are_relatives
    pages = _format_page_numbers([page.page_num for page in foreign_pages])
    return Issue.create(
        "V2",
        "V2-PATIENT-MIXED",
        IssueSeverity.BLOCKER if is_certain else IssueSeverity.MAJOR,
        f"{pages[0].upper()}{pages[1:]} {'is' if len(foreign_pages) == 1 else 'are'} about another patient than page "
        f"{own_page.page_num} of the same document: {_describe_differences(comparison)}",
        location=f"segment {segment.segment_index}",
        suggested_fix="Check whose pages these are, and remove pages of another patient",
        segment_index=segment.segment_index,
        page=foreign_page.page_num,
        boxes=_list_differing_fact_boxes(own_page, foreign_page, comparison),
        facts={"pages": pages, "other_page": own_page.page_num} | _collect_difference_facts(comparison),
    )


def _build_several_patients_issue(
    answer: ClassificationOutput, owner_by_segment: dict[int, FilePerson], patients_per_file: PatientsPerFile
) -> Issue:
    owners = list({id(owner): owner for owner in owner_by_segment.values()}.values())
    own_page, foreign_page, comparison = _find_clearest_difference(owners[0], owners[1].pages)
    segments_by_owner = [
        [segment for segment in answer.segments if owner_by_segment.get(segment.segment_index) is owner]
        for owner in owners
    ]
    descriptions = [
        " and ".join(_format_page_numbers(range(segment.start_page, segment.end_page + 1)) for segment in segments)
        for segments in segments_by_owner
    ]
    return Issue.create(
        "V2",
        "V2-PATIENT-SEVERAL",
        IssueSeverity.MAJOR if patients_per_file == "one" else IssueSeverity.MINOR,
        f"The file has documents of {len(owners)} patients: {'; '.join(descriptions)} "
        f"({_describe_differences(comparison)})",
        location="segments",
        suggested_fix="Check whether these documents belong in one file",
        page=foreign_page.page_num,
        boxes=_list_differing_fact_boxes(own_page, foreign_page, comparison),
        facts={"count": len(owners), "other_page": own_page.page_num} | _collect_difference_facts(comparison),
    )


def _check_roster(persons: Sequence[FilePerson], roster_identity: tuple[Identifier, ...]) -> Iterator[Issue]:
    expected_person = FilePerson([PagePatientIdentity(0, roster_identity, is_ocr_text=False)])
    for person in persons:
        comparisons = [
            (page, compare_persons(page.identifiers, roster_identity, is_ocr_text=page.is_ocr_text))
            for page in person.pages
        ]
        if any(comparison.relation is SamePersonVerdict.SAME for _, comparison in comparisons):
            continue
        different_page = next(
            (
                (page, comparison)
                for page, comparison in comparisons
                if comparison.relation is SamePersonVerdict.DIFFERENT or expected_person.is_other_by_one_fact(page)
            ),
            None,
        )
        if different_page is None:
            continue
        page, comparison = different_page
        pages = _format_page_numbers(sorted(person.page_numbers))
        yield Issue.create(
            "V2",
            "V2-PATIENT-OTHER",
            IssueSeverity.BLOCKER if comparison.relation is SamePersonVerdict.DIFFERENT else IssueSeverity.MAJOR,
            f"{pages[0].upper()}{pages[1:]} {'is' if len(person.pages) == 1 else 'are'} not about the patient whom the roster "
            f"names for this file: {_describe_differences(comparison)}",
            location="document",
            suggested_fix="Check whether the file was filed under the right patient",
            page=page.page_num,
            boxes=tuple((page.page_num, *difference.left.box) for difference in comparison.differing),
            facts={"pages": pages} | _collect_difference_facts(comparison),
        )


def _describe_differences(comparison: PersonComparison) -> str:
    """Name the facts that differ without their values: "name and birth date differ"."""
    facts = [difference.fact for difference in comparison.differing]
    if not facts:
        return "name and numbers agree with another page's"
    return f"{join_with_and(facts)} {'differs' if len(facts) == 1 else 'differ'}"


def _collect_difference_facts(comparison: PersonComparison) -> dict[str, str]:
    return {"differing": _describe_differences(comparison)} if comparison.differing else {}


def _list_differing_fact_boxes(
    own_page: PagePatientIdentity, foreign_page: PagePatientIdentity, comparison: PersonComparison
) -> tuple[PageBox, ...]:
    return (
        *((foreign_page.page_num, *difference.right.box) for difference in comparison.differing),
        *((own_page.page_num, *difference.left.box) for difference in comparison.differing),
    )


def _may_be_relatives(left: Sequence[Identifier], right: Sequence[Identifier]) -> bool:
    """Return True if family names are equal and given names differ.

    Mother and child, for example, may be in one chart.
    """
    names = [
        next((parse_person_name(identifier.value) for identifier in side if identifier.kind == "patient"), None)
        for side in (left, right)
    ]
    return names[0] is not None and names[1] is not None and have_same_family_other_given_name(names[0], names[1])


def _format_page_numbers(page_numbers: Sequence[int]) -> str:
    """Format page numbers in words: "page 3", "pages 3–5", "pages 3, 5 and 8"."""
    numbers = sorted(page_numbers)
    is_gapless = numbers[-1] - numbers[0] == len(numbers) - 1
    return format_page_range(numbers[0], numbers[-1]) if is_gapless else format_page_numbers(numbers)
