"""Patient keys: salted hashes that link a patient's documents without a name.

Source: contract ruling 22. ``name_key`` hashes name and birth date, ``number_key`` record number and issuer. Both are
keyed hashes (HMAC-SHA-256), so that nobody can try names without the salt. All pages of a person in a file get the
same keys, even if some are misread; a page range gets a key only if its own pages print the hashed facts.
"""

import hmac
import re
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from evalkit.classification.schema import ClassificationOutput, ReviewedClassification, ReviewedSegment
from evalkit.core.records import StrictRecord
from evalkit.documents.bundle import Identifier, IdentifierKind
from evalkit.documents.identity.file_persons import FilePerson, PagePatientIdentity, find_page_range_owner
from evalkit.documents.identity.person_name import (
    drop_umlaut_e,
    fold_confused_letters,
    get_word_list_for_names,
    parse_person_name,
)
from evalkit.documents.identity.same_person import fold_issuer, parse_birth_date
from evalkit.errors import UsageError
from evalkit.settings import PATIENT_SALT_VARIABLE, read_patient_salt
from evalkit.store import PATIENT_SALT_FILE, RESULTS_FOLDER, OutputFolder, encode_canonical_json

#: Number of hexadecimal digits of a key.
_KEY_LENGTH = 32
_SALT_BYTES = 32

#: First and last page, both included.
PageRange = tuple[int, int]


class PatientKeys(StrictRecord):
    """Keys of the patient whom a page range is about."""

    name_key: str | None
    """Hash of name and birth date; None if the pages do not print both."""
    number_key: str | None
    """Hash of record number and institution; None if the pages do not show both."""
    fields_seen: tuple[IdentifierKind, ...]
    """Kinds of patient identifiers on the pages, sorted."""


class KeyedSegment(ReviewedSegment):
    """A stored segment, with the keys of its patient."""

    patient: PatientKeys | None = None
    """Keys computed from the segment's pages, never asked from a model; None if the pages name no patient."""


class KeyedClassification(ReviewedClassification):
    """A stored classification, with the keys of each segment's patient."""

    segments: tuple[KeyedSegment, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the classification as JSON values, without patient keys."""
        return self.model_dump(mode="json", exclude={"segments": {"__all__": {"patient"}}})

    @property
    def patient_keys_by_page_range(self) -> dict[PageRange, PatientKeys | None]:
        """Page range of each segment → keys of its patient."""
        return {(segment.start_page, segment.end_page): segment.patient for segment in self.segments}


def load_or_create_patient_salt(output_folder: OutputFolder) -> bytes:
    """Load the secret salt of the patient keys; create it on the first call.

    If ``EVALKIT_PATIENT_SALT`` is set, its value is used and only a check value is stored. UsageError if the variable later
    differs or is missing, or if the folder has results and has lost its salt: keys of different salts cannot be compared.
    """
    salt = read_patient_salt()
    if not output_folder.has_file(PATIENT_SALT_FILE):
        if not salt and output_folder.list_json_files(RESULTS_FOLDER):
            raise UsageError(
                f"{PATIENT_SALT_FILE} is missing in {output_folder.root}, with which its patient keys were computed",
                code="PATIENT-SALT",
                remedy=f"Restore the file from a backup. Without a backup, set {PATIENT_SALT_VARIABLE} to a new secret and run all documents with --fresh; patients can then no longer be found by their old keys.",
            )
        new_salt = salt or secrets.token_hex(_SALT_BYTES)
        record = {
            "schema_version": 1,
            "salt": None if salt else new_salt,
            "check": _hash_facts(new_salt.encode(), "salt"),
        }
        output_folder.create_json_if_absent(PATIENT_SALT_FILE, record)  # another run may have created the file first
    stored = output_folder.read_json(PATIENT_SALT_FILE)
    salt = salt or str(stored.get("salt") or "")
    if _hash_facts(salt.encode(), "salt") != stored.get("check"):
        raise UsageError(
            f"{PATIENT_SALT_VARIABLE} is missing or is not the salt of the patient keys in {output_folder.root}",
            code="PATIENT-SALT",
            remedy=f"Set {PATIENT_SALT_VARIABLE} to the first run's value; unset it if the file {PATIENT_SALT_FILE} contains a salt.",
        )
    return salt.encode()


def compute_patient_keys_by_page_range(
    answer: ClassificationOutput, persons: Sequence[FilePerson], salt: bytes
) -> dict[PageRange, PatientKeys | None]:
    """Compute the patient keys of each segment: page range → keys.

    A segment's patient is the person of most of its pages. ``persons``: all persons of the file.
    """
    page_ranges = [(segment.start_page, segment.end_page) for segment in answer.segments]
    owners = [find_page_range_owner(persons, *page_range) for page_range in page_ranges]
    return {
        page_range: _compute_keys(owner, owner.list_pages(*page_range), salt) if owner else None
        for page_range, owner in zip(page_ranges, owners, strict=True)
    }


def list_person_keys(person: FilePerson, salt: bytes) -> set[str]:
    """List all keys that page ranges about one person in a file can have."""
    name_key = _compute_keys(person, person.pages, salt).name_key
    numbers = _list_facts(person.pages, _fold_record_number)
    return {_hash_facts(salt, "number", number) for number in numbers} | ({name_key} if name_key else set())


def attach_patient_keys(
    answer: ClassificationOutput, patient_keys_by_page_range: Mapping[PageRange, PatientKeys | None]
) -> KeyedClassification:
    """Return the answer with these patient keys in place of earlier keys."""
    segments = tuple(
        KeyedSegment.model_validate(segment).model_copy(
            update={"patient": patient_keys_by_page_range.get((segment.start_page, segment.end_page))}
        )
        for segment in answer.segments
    )
    return KeyedClassification.model_validate(answer).model_copy(update={"segments": segments})


def drop_patient_keys(answer: ClassificationOutput) -> ReviewedClassification:
    """Return the answer without patient keys."""
    if type(answer) is ReviewedClassification and all(type(segment) is ReviewedSegment for segment in answer.segments):
        return answer
    return ReviewedClassification(
        **dict(answer) | {"segments": tuple(ReviewedSegment(**dict(segment)) for segment in answer.segments)}
    )


def _compute_keys(person: FilePerson, pages: Sequence[PagePatientIdentity], salt: bytes) -> PatientKeys:
    has_name_and_birth = all(_list_facts(pages, fold) for fold in (_fold_patient_name, _fold_birth_date))
    name, birth_date = (
        _find_commonest(_list_facts(person.pages, fold)) for fold in (_fold_patient_name, _fold_birth_date)
    )
    number = _find_commonest(_list_facts(pages, _fold_record_number))
    return PatientKeys(
        name_key=_hash_facts(salt, "name", name, birth_date) if has_name_and_birth else None,
        number_key=_hash_facts(salt, "number", number) if number else None,
        fields_seen=tuple(sorted({identifier.kind for page in pages for identifier in page.identifiers})),
    )


_Facts = Mapping[IdentifierKind, Identifier]


def _list_facts(pages: Iterable[PagePatientIdentity], fold: Callable[[_Facts], str | None]) -> list[str]:
    facts_by_page = ({identifier.kind: identifier for identifier in page.identifiers} for page in pages)
    return [fact for facts in facts_by_page if (fact := fold(facts))]


def _find_commonest(facts: Iterable[str]) -> str | None:
    return next((fact for fact, _ in Counter(facts).most_common(1)), None)


def _fold_patient_name(facts: _Facts) -> str | None:
    """Normalise a patient's name to first given and last family name, sorted.

    Sorted, because the reader may confuse their order. None if less than two words have more than one letter, or if the
    name is unknown. All words of a newborn's name count: "Baby Girl A" and "Baby Girl B" are twins.
    """
    name = parse_person_name(facts["patient"].value) if "patient" in facts else None
    if name is None:
        return None
    words = [*name.given_names, *name.family_names]
    if get_word_list_for_names("placeholders").isdisjoint(words):
        long_words = [word for word in words if len(word) > 1]
        words = [long_words[0], *long_words[1:][-1:]]
    if len(words) < 2 or "UNKNOWN" in words:
        return None
    return " ".join(sorted(fold_confused_letters(drop_umlaut_e(word)) for word in words))


def _fold_birth_date(facts: _Facts) -> str | None:
    birth = facts.get("date_of_birth")
    written = parse_birth_date(birth, facts.get("age")) if birth else None
    return written.iso if written else None


def _fold_record_number(facts: _Facts) -> str | None:
    """Normalise record number and issuer to one text; None if the issuer is unknown."""
    number = facts.get("mrn")
    if number is None or not number.issuer:
        return None
    digits = fold_confused_letters(re.sub(r"^(?:MRN?)?0*", "", number.normal))
    return " ".join([digits, *sorted(fold_issuer(number.issuer).split())])


def _hash_facts(salt: bytes, *facts: str | None) -> str:
    return hmac.digest(salt, encode_canonical_json(facts), "sha256").hex()[:_KEY_LENGTH]
