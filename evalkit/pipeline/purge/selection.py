"""Selection of documents to purge, or to exclude from runs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal

from evalkit.classification.document_result import DocumentResult
from evalkit.classification.patient_keys import list_person_keys, load_or_create_patient_salt
from evalkit.documents.bundle import BUNDLE_SCHEMA_VERSION
from evalkit.documents.identity.file_persons import group_pages_by_person, read_page_facts
from evalkit.errors import NotFound, StoreError, UsageError
from evalkit.pipeline.document_discovery import DiscoveredDocuments
from evalkit.pipeline.purge.folder_contents import FolderContents, read_json_or_empty
from evalkit.pipeline.purge.purge_record import PurgeRecord, is_purge_unfinished, read_intent, read_purge_records
from evalkit.review import Review, find_newest_revision, open_index, read_result, read_review
from evalkit.review.ground_truth import derive_review_status
from evalkit.store import (
    OutputFolder,
    bundle_file_name,
    extraction_file_name,
    packet_file_name,
    result_file_name,
)

_EARLIEST_MOMENT = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class ExpiredDocuments:
    """Documents old enough to purge, by state: finished, waiting or unreadable."""

    finished: tuple[str, ...]
    """Documents without a pending case, sorted."""
    waiting: tuple[str, ...]
    """Documents with a pending case, sorted: they stay until the case is decided, or until a purge names them."""
    unreadable: tuple[str, ...] = ()
    """Documents with an unreadable review, sorted: they stay until the review is restored, or until a purge names them."""


def find_expired_documents(output_folder: OutputFolder, *, unchanged_since: datetime) -> ExpiredDocuments:
    """Find the documents unchanged since a time, by the times in their files."""
    with open_index(output_folder, read_only=True) as index:
        contents = FolderContents.read(output_folder, index)
        doc_ids = contents.list_doc_ids()
        state_by_doc_id = {
            doc_id: assess_expiry(contents, doc_id, contents.list_possible_case_ids(doc_id), unchanged_since)
            for doc_id in doc_ids
        }
    states = ("finished", "waiting", "unreadable")
    return ExpiredDocuments(
        **{
            state: tuple(candidate_id for candidate_id in doc_ids if state_by_doc_id[candidate_id] == state)
            for state in states
        }
    )


def find_doc_ids_of_patient(output_folder: OutputFolder, patient_key: str) -> list[str]:
    """List the documents about the patient with this key, sorted.

    Keys that occur together for one person count as one. Every page is searched, also in another patient's document.
    NotFound if no document has the key.
    """
    salt = load_or_create_patient_salt(output_folder)
    with open_index(output_folder, read_only=True) as index:
        doc_ids = FolderContents.read(output_folder, index).list_doc_ids()
    keys_of_persons = [
        (doc_id, keys) for doc_id in doc_ids for keys in _iterate_person_key_sets(output_folder, doc_id, salt)
    ]
    patient_keys, known_keys = {patient_key}, set[str]()
    while patient_keys != known_keys:
        known_keys = patient_keys
        patient_keys = known_keys.union(*(keys for _, keys in keys_of_persons if not known_keys.isdisjoint(keys)))
    patient_doc_ids = sorted({doc_id for doc_id, keys in keys_of_persons if not known_keys.isdisjoint(keys)})
    if not patient_doc_ids:
        raise NotFound(
            "no document has that patient key",
            code="PURGE-NOT-FOUND",
            remedy="A purge was interrupted: run `evalkit purge` without a name to finish it."
            if is_purge_unfinished(output_folder)
            else "Run `evalkit show DOC_ID` for a document about the patient: it shows the patient's keys.",
        )
    return patient_doc_ids


def _iterate_person_key_sets(output_folder: OutputFolder, doc_id: str, salt: bytes) -> Iterator[set[str]]:
    """Yield the set of keys of each person in a document's pages and result.

    StoreError if a file is damaged.
    """
    with suppress(NotFound):
        name = bundle_file_name(doc_id)
        stored_bundle = output_folder.read_json(name, max_schema_version=BUNDLE_SCHEMA_VERSION)
        try:
            persons = group_pages_by_person(read_page_facts(stored_bundle))
        except (LookupError, TypeError, ValueError):  # without the cause: it would quote the patient's document
            raise StoreError(
                f"{name} cannot be read, so its patient is unknown",
                code="STORE-TORN",
                remedy="Run the document with --fresh, or purge it by its name.",
            ) from None
        yield from (list_person_keys(person, salt) for person in persons)
    with suppress(NotFound):
        result = read_result(output_folder, doc_id)
        if isinstance(result, DocumentResult) and result.classification:
            patients = result.classification.patient_keys_by_page_range.values()
            yield from (
                {key for key in (patient.name_key, patient.number_key) if key} for patient in patients if patient
            )


def find_restored_purged_doc_ids(output_folder: OutputFolder, other_records: Sequence[PurgeRecord] = ()) -> list[str]:
    """List the purged documents that were restored from an older backup.

    ``other_records`` are records that the folder does not have.
    Documents imported again on purpose are left out: their files were written after the purge.
    """
    purged_at_by_sha256 = {
        record.sha256: datetime.fromisoformat(record.purged_at)
        for record in (*other_records, *read_purge_records(output_folder))
        if record.sha256
    }
    with open_index(output_folder, read_only=True) as index:
        contents = FolderContents.read(output_folder, index)
        # A document that was never read, or cannot be, has no SHA-256 to compare.
        purged_at_by_doc_id = {
            doc_id: purged_at_by_sha256[sha256]
            for doc_id in contents.list_doc_ids()
            if (sha256 := contents.find_sha256(doc_id)) in purged_at_by_sha256
        }
        return [
            doc_id for doc_id, purged_at in purged_at_by_doc_id.items() if _is_older_than(contents, doc_id, purged_at)
        ]


def assess_expiry(
    contents: FolderContents, doc_id: str, case_ids: Iterable[str], expired_before: datetime
) -> Literal["finished", "waiting", "young", "unreadable"]:
    """Classify a document for a purge by age: finished, waiting, young or unreadable.

    ``young``: changed at or after ``expired_before``, or deleted already; ``waiting``: old, but a case is pending;
    ``unreadable``: a review cannot be read; ``finished``: may be purged.
    """
    output_folder = contents.output_folder
    file_names = (result_file_name(doc_id), extraction_file_name(doc_id), bundle_file_name(doc_id))
    write_times = [
        written_at for name in file_names if (written_at := output_folder.get_modification_time(name)) is not None
    ]
    # A document that was purged meanwhile has no files left.
    if (
        not write_times
        or _find_last_change_time(contents, doc_id, datetime.fromtimestamp(max(write_times), UTC)) >= expired_before
    ):
        return "young"
    try:
        newest_reviews = _read_newest_reviews(output_folder, case_ids)
    except StoreError:
        return "unreadable"  # the time at which the case was closed is unknown
    if any(datetime.fromisoformat(review.submitted_at) >= expired_before for review in newest_reviews if review):
        return "young"
    return "finished" if all(derive_review_status(review) == "completed" for review in newest_reviews) else "waiting"


def _is_older_than(contents: FolderContents, doc_id: str, moment: datetime) -> bool:
    """Return True if all files of a document are older than ``moment``.

    If the files contain no times, those of its reviews count. False if neither is known because a review cannot be
    read.
    """
    last_change = _find_last_change_time(contents, doc_id, default=_EARLIEST_MOMENT)
    if last_change > _EARLIEST_MOMENT:
        return last_change < moment
    try:
        reviews = _read_newest_reviews(contents.output_folder, contents.list_possible_case_ids(doc_id))
    except StoreError:
        return False
    return all(datetime.fromisoformat(review.submitted_at) < moment for review in reviews if review)


def _find_last_change_time(contents: FolderContents, doc_id: str, default: datetime) -> datetime:
    """Find the newest time that a document's files and index row contain.

    The file system's times are less reliable: in a copied or restored folder they are all new.
    """
    file_names = (
        result_file_name(doc_id),
        extraction_file_name(doc_id),
        *contents.template_review_files_by_sha256.get(contents.find_sha256(doc_id) or "", ()),
    )
    times_of_files = [read_json_or_empty(contents.output_folder, name).get("times") for name in file_names]
    times_of_files.append({"processed_at": contents.row_by_doc_id.get(doc_id, {}).get("processed_at")})
    moments = [moment for times in times_of_files for moment in _parse_aware_datetimes(times)]
    if not moments:  # a statement that was read, but not compared with a template
        stored_bundle = read_json_or_empty(contents.output_folder, bundle_file_name(doc_id))
        moments = [*_parse_aware_datetimes({"read": stored_bundle.get("processing_timestamp")})]
    return max(moments, default=default)


def _parse_aware_datetimes(times_by_name: object) -> Iterator[datetime]:
    for text in times_by_name.values() if isinstance(times_by_name, Mapping) else ():
        with suppress(TypeError, ValueError):
            if (moment := datetime.fromisoformat(text)).tzinfo is not None:
                yield moment


def _read_newest_reviews(output_folder: OutputFolder, case_ids: Iterable[str]) -> list[Review | None]:
    """Read the newest review of each existing case; None for a case without reviews.

    StoreError if a review cannot be read.
    """
    existing_case_ids = [case_id for case_id in case_ids if output_folder.has_file(packet_file_name(case_id))]
    return [
        read_review(output_folder, case_id, revision)
        if (revision := find_newest_revision(output_folder, case_id))
        else None
        for case_id in existing_case_ids
    ]


def exclude_purged(
    output_folder: OutputFolder,
    discovered: DiscoveredDocuments,
    known_sha256s: Iterable[str],
    *,
    even_purged: bool = False,
) -> DiscoveredDocuments:
    """Exclude documents that were purged, and add an error for each of them.

    ``known_sha256s`` are the SHA-256 of documents in the folder: one that was imported again after its purge stays.
    With ``even_purged``, only a document whose purge is not finished is dropped.
    """
    purged_at_by_sha256: dict[str | None, str] = {}
    if not even_purged:
        present_sha256s = set(known_sha256s)
        purged_at_by_sha256 = {
            document.sha256: document.purged_at
            for document in read_purge_records(output_folder)
            if document.sha256 not in present_sha256s
        }
    if is_purge_unfinished(output_folder):
        intent = read_intent(output_folder)
        purged_at_by_sha256[intent.sha256] = intent.purged_at
    purged_at_by_sha256.pop(None, None)
    purged_errors = [
        UsageError(
            f"{document.path.name} was purged on {purged_at_by_sha256[document.sha256][:10]}, and is therefore not processed",
            code="DOCUMENT-PURGED",
            remedy="Remove the file, or process it again with --even-purged.",
        )
        for document in discovered.sources
        if document.sha256 in purged_at_by_sha256
    ]
    return replace(
        discovered,
        sources=tuple(document for document in discovered.sources if document.sha256 not in purged_at_by_sha256),
        problems=(*discovered.problems, *purged_errors),
    )
