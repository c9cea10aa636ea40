"""Patients of exported documents, without names: pages about the same person.

Source: contract ruling 22. Two persons of one file are never one patient, whatever their numbers; persons of two files are
one only if a page of each shows the same person. An identifier is derived from the salted keys, and tells nobody the
keys or a name.
"""

import hmac
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from evalkit.classification.patient_keys import list_person_keys
from evalkit.documents.bundle import DocumentBundle
from evalkit.documents.identity.file_persons import FilePerson, find_page_range_owner, group_pages_by_person
from evalkit.documents.identity.same_person import SamePersonVerdict

_IDENTIFIER_DIGITS = 32


@dataclass
class _Patient:
    """A person, as the pages of one or more files show this person."""

    identifier: str
    persons_by_sha256: dict[str, FilePerson] = field(default_factory=dict)

    def is_same_person(self, sha256: str, person: FilePerson) -> bool:
        return sha256 not in self.persons_by_sha256 and all(
            any(other.compare(page).relation is SamePersonVerdict.SAME for page in person.pages)
            for other in self.persons_by_sha256.values()
        )


@dataclass(frozen=True)
class FileSubjects:
    """The patients of one file."""

    sha256: str
    persons: tuple[FilePerson, ...]
    identifiers: tuple[str, ...]
    """The identifier of each of ``persons``."""

    def find_subject(self, start_page: int, end_page: int) -> str:
        """Return the identifier of a page range's patient.

        Pages that do not say whose they are have a patient of their own: nothing shows that it is one of the others.
        """
        owner = find_page_range_owner(self.persons, start_page, end_page)
        if owner is None:
            return f"{self.sha256[:_IDENTIFIER_DIGITS]}.{start_page}-{end_page}"
        return self.identifiers[[person is owner for person in self.persons].index(True)]

    def list_pages_of_others(
        self, start_page: int, end_page: int, one_patient_pages: Collection[frozenset[int]] = ()
    ) -> list[int]:
        """List the pages of a range that name another person than most pages do.

        ``one_patient_pages``: pairs of pages of which an expert said that they are about one patient, whatever they name.
        """
        owner = find_page_range_owner(self.persons, start_page, end_page)
        others = (
            person
            for person in self.persons
            if owner
            and person is not owner
            and not any(pair & owner.page_numbers and pair & person.page_numbers for pair in one_patient_pages)
        )
        return sorted(page.page_num for person in others for page in person.list_pages(start_page, end_page))


def identify_subjects(bundles: Iterable[DocumentBundle], salt: bytes) -> Mapping[str, FileSubjects]:
    """Find the patients of all files; return those of each file by its SHA-256."""
    patients_by_key: dict[str, list[_Patient]] = {}
    subjects: dict[str, FileSubjects] = {}
    for bundle in bundles:
        persons = group_pages_by_person(bundle.pages)
        patients = []
        for person in persons:
            keys = sorted(list_person_keys(person, salt))
            candidates = (patient for key in keys for patient in patients_by_key.get(key, ()))
            patient = next(
                (candidate for candidate in candidates if candidate.is_same_person(bundle.sha256, person)), None
            )
            if patient is None:
                place = (bundle.sha256, str(min(person.page_numbers)))
                # Only of two persons that share a key does the identifier depend on the file.
                is_key_free = keys and keys[0] not in patients_by_key
                patient = _Patient(_derive_identifier(salt, *(keys[:1] if is_key_free else [*keys[:1], *place])))
            patient.persons_by_sha256[bundle.sha256] = person
            patients.append(patient)
            for key in keys:
                patients_of_key = patients_by_key.setdefault(key, [])
                if patient not in patients_of_key:
                    patients_of_key.append(patient)
        subjects[bundle.sha256] = FileSubjects(
            bundle.sha256, tuple(persons), tuple(patient.identifier for patient in patients)
        )
    return subjects


def _derive_identifier(salt: bytes, *facts: str) -> str:
    return hmac.digest(salt, "\n".join(("patient in FHIR", *facts)).encode(), "sha256").hex()[:_IDENTIFIER_DIGITS]
