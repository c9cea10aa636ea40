"""Purging: a patient's document goes, and everything that was made of it; what stays is digests.

``purged/0001.json``, ``0002.json`` …: one record each, never changed, chained by hash. A record has no name and no word of
the document: its SHA-256, and of each review that there was the SHA-256 of its bytes, the one that it was chained to, who
submitted it, when and with what outcome. So a chain that was purged still verifies, one that somebody has removed does
not, and a later run of the same bytes is told.

What is being purged stands in ``purging.json`` until all is done: killed midway, the next purge finishes it first.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path, PurePath
from typing import Any, Literal

from evalkit.classification.document_result import DocumentResult
from evalkit.classification.patient_keys import list_person_keys, load_or_create_patient_salt
from evalkit.core.records import StrictRecord
from evalkit.documents.bundle import BUNDLE_SCHEMA_VERSION
from evalkit.documents.identity.file_persons import group_stored_pages_by_person
from evalkit.errors import NotFound, StoreError, UsageError
from evalkit.pipeline.document_discovery import DiscoveredDocuments
from evalkit.pipeline.document_registries import ProductionLabelsAndDraws
from evalkit.review.attention_checks import get_attention_check_file_name, map_check_case_ids_by_doc_id
from evalkit.review.case_files import read_review
from evalkit.review.ground_truth import (
    Review,
    derive_review_status,
    find_newest_revision,
    hash_review_file,
    list_revisions,
)
from evalkit.review.kinds import find_case_kind, list_document_case_ids
from evalkit.review.loaders import read_result
from evalkit.review.packet import ADJUDICATION_SUFFIX, SECOND_SUFFIX, get_base_case_id
from evalkit.review.permissions import ReviewerRole
from evalkit.review.write_lock import hold_case_write_lock
from evalkit.store import (
    BUNDLES_FOLDER,
    EXTRACTIONS_FOLDER,
    GROUND_TRUTH_FOLDER,
    MOVED_SQLITE_FILE,
    PACKETS_FOLDER,
    PURGE_INTENT_FILE,
    PURGE_RECORDS_FOLDER,
    RESULTS_FOLDER,
    REVIEWS_FOLDER,
    SAMPLE_DRAWS_FOLDER,
    TEMPLATE_REVIEWS_FOLDER,
    TEMPLATES_FOLDER,
    LocalOutputFolder,
    OutputFolder,
    OutputIndex,
    bundle_file_name,
    extraction_file_name,
    ground_truth_file_name,
    list_numbered_files_or_raise_on_gap,
    packet_file_name,
    parse_stored_record,
    purge_record_file_name,
    result_file_name,
    review_file_name,
    template_file_name,
)

SCHEMA_VERSION = 2
"""With the reviewers' roles."""

_ORPHAN_AGE_SECONDS = 60
"""Seconds after which what was written and has no name yet never will have one: nobody else writes meanwhile."""
_REGISTRY_BATCH_SIZE = 200
"""Documents that are taken out of the lists in one go: each of them has a row for every document that there is."""
_FREE_TEXT_FOLDERS = (
    REVIEWS_FOLDER,
    GROUND_TRUTH_FOLDER,
    SAMPLE_DRAWS_FOLDER,
    TEMPLATES_FOLDER,
    TEMPLATE_REVIEWS_FOLDER,
)
"""Where somebody may have named a document in their own words."""


class PurgedReview(StrictRecord):
    """What stays of a review."""

    revision: int
    sha256: str
    """Of the bytes of its file."""
    prev_sha256: str | None
    """Of the review before it, as its file said; None for the first, or where its file could not be read."""
    packet_sha256: str | None = None
    reviewer: str | None = None
    submitted_at: str | None = None
    outcome: str | None = None
    seconds_active: float | None = None
    versions: dict[str, str] = {}
    role: ReviewerRole | None = None
    """What the reviewer was then; None where it is not known."""
    seeded: bool = False
    """Whether it was of a case with a planted fault."""


class PurgedChain(StrictRecord):
    """What stays of the reviews of one case."""

    case: str
    """What its name has behind the document's: nothing, ``.extraction``, ``.second``, ``-1a2b3c4d`` …"""
    reviews: tuple[PurgedReview, ...]


class PurgedDraw(StrictRecord):
    """That the document could have been drawn, and with what probability."""

    draw: int
    probability: float
    was_drawn: bool


class PurgeRecord(StrictRecord):
    """One purge: ``purged/NNNN.json``."""

    schema_version: int = SCHEMA_VERSION
    sha256: str | None
    """Of the document; None where its bytes never could be read."""
    purged_at: str
    """When (ISO 8601, UTC)."""
    chains: tuple[PurgedChain, ...]
    draws: tuple[PurgedDraw, ...]
    prev_sha256: str | None
    """Of the bytes of the record before this one; None for the first."""


class _PurgeIntent(StrictRecord):
    """``purging.json``: what a purge has begun with. The one place that still names the document, and the last to go."""

    schema_version: int = SCHEMA_VERSION
    doc_id: str | None
    """None: the files are gone, and only the database's file is still to be written anew."""
    sha256: str | None = None
    cases: tuple[str, ...] = ()
    number: int = 0
    """Of the record."""
    listed: tuple[str, ...] = ()
    """Documents that were purged before it, and still stand in the lists of many."""
    purged_at: str = ""


@dataclass(frozen=True)
class PurgedDocument:
    """What a purge removed."""

    doc_id: str
    sha256: str | None
    removed_files: tuple[str, ...]
    """The files below the output folder that are gone."""
    deleted_row_counts: Mapping[str, int]
    """Rows of the database, by table; of ``production`` and ``draws`` entries of those files."""
    digested_review_count: int
    """How many reviews left their digests."""
    open_case_notes: tuple[str, ...]
    """Who had one of its cases open; they are told when they save."""
    remaining_traces: tuple[str, ...]
    """A sentence for each thing that was left and may be about the document."""

    def to_json(self) -> dict[str, Any]:
        """For a program."""
        return {
            "doc_id": self.doc_id,
            "sha256": self.sha256,
            "files": list(self.removed_files),
            "rows": dict(self.deleted_row_counts),
            "reviews": self.digested_review_count,
            "was_open": list(self.open_case_notes),
            "stays": list(self.remaining_traces),
        }


@dataclass(frozen=True)
class ExpiredDocuments:
    """The documents that are old enough to go."""

    finished: tuple[str, ...]
    """Those of which no case waits, sorted."""
    waiting: tuple[str, ...]
    """Those that somebody is still to decide about, sorted: they stay until then, or until they are named."""
    unreadable: tuple[str, ...] = ()
    """Those of which a review cannot be read, sorted: they stay until it is restored, or until they are named."""


def purge(
    output_folder: OutputFolder,
    doc_ids: Iterable[str],
    *,
    purged_at: str,
    expired_ids: Iterable[str] = (),
    expired_before: datetime | None = None,
) -> list[PurgedDocument]:
    """Remove documents and all that was made of them; what was removed, a purge that was killed before first.

    ``purged_at`` is ISO 8601 in UTC. ``expired_ids`` are those that ``find_expired_documents`` gave for ``expired_before``: when it is its turn, one
    that somebody has reopened since stays. NotFound for a document of which there is nothing; UsageError where a run is
    writing; StoreError where something could not be removed, or a reader of the database held it up: the same call goes on
    from there.
    """
    with output_folder.hold_run_lock(), OutputIndex(output_folder) as index:
        contents = _FolderContents.read(output_folder, index)
        purged_documents = [*_finish_interrupted_purge(contents)]
        requested_ids = [
            candidate_id
            for candidate_id in dict.fromkeys(doc_ids)
            if candidate_id not in {purged.doc_id for purged in purged_documents}
        ]
        for doc_id in requested_ids:  # a slip of the pen is told before anything is gone
            contents.require_document_case_ids(doc_id)
        limit_by_doc_id: dict[str, datetime | None] = dict.fromkeys(requested_ids)
        limit_by_doc_id |= {
            candidate_id: expired_before
            for candidate_id in expired_ids
            if expired_before and candidate_id not in limit_by_doc_id
        }
        if limit_by_doc_id:
            purged_documents += _purge_documents(contents, limit_by_doc_id, purged_at)
        if purged_documents:
            purged_documents = _add_remaining_traces(contents, purged_documents)
            # Only now: killed before, the last of them is purged again, and what stays of it is told.
            output_folder.write_json(PURGE_INTENT_FILE, _PurgeIntent(doc_id=None).model_dump(mode="json"))
        if output_folder.has_file(PURGE_INTENT_FILE) and not index.document_erasure.vacuum():
            raise StoreError(
                "the files are gone, but somebody was reading the database: its log may still have their words",
                code="PURGE-BUSY",
                remedy="End what else uses the folder, and purge again: without a name it finishes what is left.",
            )
        output_folder.remove_file(PURGE_INTENT_FILE)
    return purged_documents


def _purge_documents(
    contents: _FolderContents, expiry_limit_by_doc_id: Mapping[str, datetime | None], purged_at: str
) -> Iterator[PurgedDocument]:
    """Purge those of these documents that may go: all, or where there is a limit those that are finished and older."""
    output_folder = contents.output_folder
    registries, record_number = ProductionLabelsAndDraws(output_folder), len(read_purge_records(output_folder))
    unregistered_ids: list[str] = []
    for doc_id, time_limit in expiry_limit_by_doc_id.items():
        # Nobody may submit, draft, open or reopen anything from the question whether it may go until it is gone.
        with hold_case_write_lock(output_folder):
            case_ids = contents.list_possible_case_ids(doc_id)
            if time_limit is not None and contents.assess_expiry(doc_id, case_ids, time_limit) != "finished":
                continue
            record_number += 1
            intent = _PurgeIntent(
                doc_id=doc_id,
                sha256=contents.find_sha256(doc_id),
                cases=case_ids,
                number=record_number,
                purged_at=purged_at,
                listed=tuple(unregistered_ids),
            )
            output_folder.write_json(PURGE_INTENT_FILE, intent.model_dump(mode="json"))
            purged_document = _execute_purge(contents, registries, intent)
        yield purged_document
        unregistered_ids.append(doc_id)
        if len(unregistered_ids) == _REGISTRY_BATCH_SIZE:
            registries.rewrite_files_without_documents(unregistered_ids)
            unregistered_ids.clear()
    registries.rewrite_files_without_documents(unregistered_ids)


def is_purge_unfinished(output_folder: OutputFolder) -> bool:
    """Whether a purge was killed, and is to be finished."""
    return output_folder.has_file(PURGE_INTENT_FILE)


def map_purge_file_names_by_doc_id(output_folder: OutputFolder, doc_ids: Iterable[str]) -> dict[str, list[str]]:
    """The files that ``purge`` would remove, sorted, by document. NotFound as there."""
    with OutputIndex(output_folder) as index:
        contents = _FolderContents.read(output_folder, index)
        return {doc_id: sorted(_list_present_files(contents, doc_id)) for doc_id in doc_ids}


def _list_present_files(contents: _FolderContents, doc_id: str) -> Iterator[str]:
    case_ids = contents.require_document_case_ids(doc_id)
    return filter(
        contents.output_folder.has_file,
        (*contents.list_possible_document_files(doc_id, contents.find_sha256(doc_id), case_ids), MOVED_SQLITE_FILE),
    )


def find_expired_documents(output_folder: OutputFolder, *, unchanged_since: datetime) -> ExpiredDocuments:
    """The documents of which nothing was made or said since that moment, as their files note it, by whether a case waits."""
    with OutputIndex(output_folder) as index:
        contents = _FolderContents.read(output_folder, index)
        doc_ids = contents.list_doc_ids()
        state_by_doc_id = {
            doc_id: contents.assess_expiry(doc_id, contents.list_possible_case_ids(doc_id), unchanged_since)
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
    """The documents about the patient of a key, and of the keys that appear with it for one person; sorted.

    Looked for on every page, also where a page lies in another patient's document. NotFound where no document has the key.
    """
    salt = load_or_create_patient_salt(output_folder)
    with OutputIndex(output_folder) as index:
        doc_ids = _FolderContents.read(output_folder, index).list_doc_ids()
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
            remedy="`evalkit show DOC_ID` shows the keys of a document that is about the patient.",
        )
    return patient_doc_ids


def _iterate_person_key_sets(output_folder: OutputFolder, doc_id: str, salt: bytes) -> Iterator[set[str]]:
    """The keys of each person of a document: by its pages, and by its result. StoreError where a file is damaged."""
    with suppress(NotFound):
        name = bundle_file_name(doc_id)
        stored_bundle = output_folder.read_json(name, max_schema_version=BUNDLE_SCHEMA_VERSION)
        try:
            persons = group_stored_pages_by_person(stored_bundle)
        except (LookupError, TypeError, ValueError):  # without the cause: it would quote the patient's document
            raise StoreError(
                f"{name} cannot be read: nobody can tell whose it is",
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


def find_restored_purged_doc_ids(output_folder: OutputFolder) -> list[str]:
    """The documents that are there again although they were purged: a backup that is older than the purge was restored.

    One that was let in again on purpose, and so was written after its purge, is none of them.
    """
    purged_at_by_sha256 = {
        record.sha256: datetime.fromisoformat(record.purged_at)
        for record in read_purge_records(output_folder)
        if record.sha256
    }
    with OutputIndex(output_folder) as index:
        contents = _FolderContents.read(output_folder, index)
        # Of what was never read, or cannot be, nobody knows which document it is.
        purged_at_by_doc_id = {
            doc_id: purged_at_by_sha256[sha256]
            for doc_id in contents.list_doc_ids()
            if (sha256 := contents.find_sha256(doc_id)) in purged_at_by_sha256
        }
        return [
            doc_id for doc_id, purged_at in purged_at_by_doc_id.items() if contents.is_older_than(doc_id, purged_at)
        ]


def read_purge_records(output_folder: OutputFolder) -> list[PurgeRecord]:
    """All records of purges, oldest first. StoreError for a damaged one, for one that is lost, and for one that is none."""
    return [
        _read_record(output_folder, file_name)
        for file_name in list_numbered_files_or_raise_on_gap(
            output_folder, PURGE_RECORDS_FOLDER, purge_record_file_name
        )
    ]


def _read_record(output_folder: OutputFolder, name: str) -> PurgeRecord:
    return parse_stored_record(
        PurgeRecord, output_folder.read_json(name, max_schema_version=SCHEMA_VERSION), name, "Restore it from a backup."
    )


def exclude_purged(
    output_folder: OutputFolder,
    discovered: DiscoveredDocuments,
    known_sha256s: Iterable[str],
    *,
    even_purged: bool = False,
) -> DiscoveredDocuments:
    """What was found, without the documents that were purged; each of them is a problem that says so.

    ``known_sha256s`` are the SHA-256 of documents that are there: one that was let in again after its purge stays in.
    ``even_purged`` lets all in but the one whose purge is not finished.
    """
    purged_at_by_sha256: dict[str | None, str] = {}
    if not even_purged:
        present_sha256s = set(known_sha256s)
        purged_at_by_sha256 = {
            document.sha256: document.purged_at
            for document in read_purge_records(output_folder)
            if document.sha256 not in present_sha256s
        }
    if output_folder.has_file(PURGE_INTENT_FILE):
        intent = _read_intent(output_folder)
        purged_at_by_sha256[intent.sha256] = intent.purged_at
    purged_at_by_sha256.pop(None, None)
    purged_sources = [document for document in discovered.sources if document.sha256 in purged_at_by_sha256]
    return replace(
        discovered,
        sources=tuple(document for document in discovered.sources if document.sha256 not in purged_at_by_sha256),
        problems=(
            *discovered.problems,
            *(_create_purged_error(document.path, purged_at_by_sha256[document.sha256]) for document in purged_sources),
        ),
    )


def _create_purged_error(path: Path, purged_at: str) -> UsageError:
    return UsageError(
        f"{path.name} was purged on {purged_at[:10]}, and is left out",
        code="DOCUMENT-PURGED",
        remedy="Take the file away; if it is to be processed again, say so with --even-purged.",
    )


# ------------------------------------------------------------------------------------------------ what there is


@dataclass(frozen=True)
class _FolderContents:
    """An output folder, with what is in it of all documents read once for however many are asked about.

    Under the run lock that holds until its end: runs, draws, planted faults and templates, which add documents and cases,
    take it too. All that experts begin beside it are further opinions.
    """

    output_folder: OutputFolder
    index: OutputIndex
    row_by_doc_id: Mapping[str, Mapping[str, Any]]
    """The rows of the index, by document, as they were at first: what is purged stays in here."""
    case_ids_by_stem: Mapping[str, list[str]]
    """The case_ids by the part before the first dot, which is the document's name or an attention check's."""
    check_case_ids_by_doc_id: Mapping[str, list[str]]
    """The attention checks, by document."""
    template_case_ids_by_doc_id: Mapping[str, list[str]]
    """By the document that a template was tried on: these cases bear the template's name."""

    @classmethod
    def read(cls, output_folder: OutputFolder, index: OutputIndex) -> _FolderContents:
        case_ids_by_stem, template_case_ids_by_doc_id = defaultdict(list), defaultdict(list)
        for case_id in output_folder.list_subfolder_names(REVIEWS_FOLDER):
            case_ids_by_stem[case_id.partition(".")[0]].append(case_id)
        for subfolder, prefix in ((PACKETS_FOLDER, "sme_packet_"), (GROUND_TRUTH_FOLDER, "gt_")):
            for name in output_folder.list_json_files(subfolder):
                case_id = PurePath(name).name.removeprefix(prefix).removesuffix(".json")
                case_ids_by_stem[case_id.partition(".")[0]].append(case_id)
                if not find_case_kind(case_id).is_named_after_document:
                    doc_id = _read_json_or_empty(output_folder, name).get("doc_id")
                    if isinstance(doc_id, str):
                        template_case_ids_by_doc_id[doc_id].append(case_id)
        return cls(
            output_folder,
            index,
            {row["doc_id"]: row for row in index.list_documents()},
            case_ids_by_stem,
            map_check_case_ids_by_doc_id(output_folder),
            template_case_ids_by_doc_id,
        )

    @cached_property
    def template_review_files_by_sha256(self) -> Mapping[str, list[str]]:
        """The reviews of templates, by the SHA-256 of the statement that the template was tried on."""
        names_by_sha256 = defaultdict(list)
        for template_id in self.output_folder.list_subfolder_names(TEMPLATE_REVIEWS_FOLDER):
            for name in self.output_folder.list_json_files(f"{TEMPLATE_REVIEWS_FOLDER}/{template_id}"):
                sha256 = _read_json_or_empty(self.output_folder, name).get("statement_sha256")
                if isinstance(sha256, str):
                    names_by_sha256[sha256].append(name)
        return names_by_sha256

    def list_doc_ids(self) -> list[str]:
        """All documents of which there is anything but what people said, sorted: of statements only the bundle is there."""
        file_names = (
            name
            for subfolder in (RESULTS_FOLDER, EXTRACTIONS_FOLDER, BUNDLES_FOLDER)
            for name in self.output_folder.list_json_files(subfolder)
        )
        return sorted({*self.row_by_doc_id, *(PurePath(name).stem for name in file_names)})

    def find_last_change_time(self, doc_id: str, default: datetime) -> datetime:
        """When the newest of what was made of a document was, by what its files and the index say of their making.

        The files' own times say less: a folder that is copied, or restored from a backup, is all new.
        """
        file_names = (
            result_file_name(doc_id),
            extraction_file_name(doc_id),
            *self.template_review_files_by_sha256.get(self.find_sha256(doc_id) or "", ()),
        )
        times_of_files = [_read_json_or_empty(self.output_folder, name).get("times") for name in file_names]
        times_of_files.append({"processed_at": self.row_by_doc_id.get(doc_id, {}).get("processed_at")})
        moments = [moment for times in times_of_files for moment in _parse_aware_datetimes(times)]
        if not moments:  # of a statement that was read, and not compared with its template
            moments = [
                *_parse_aware_datetimes(
                    {
                        "read": _read_json_or_empty(self.output_folder, bundle_file_name(doc_id)).get(
                            "processing_timestamp"
                        )
                    }
                )
            ]
        return max(moments, default=default)

    def is_older_than(self, doc_id: str, moment: datetime) -> bool:
        """Whether all that was made of a document is older; where no file notes it, whether all that was said of it is.

        False where neither can be told, because somebody's review cannot be read.
        """
        last_change = self.find_last_change_time(doc_id, default=_EARLIEST_MOMENT)
        if last_change > _EARLIEST_MOMENT:
            return last_change < moment
        try:
            reviews = self._read_newest_reviews(self.list_possible_case_ids(doc_id))
        except StoreError:
            return False
        return all(datetime.fromisoformat(review.submitted_at) < moment for review in reviews if review)

    def assess_expiry(
        self, doc_id: str, case_ids: Iterable[str], expired_before: datetime
    ) -> Literal["finished", "waiting", "young", "unreadable"]:
        """Whether a document with these cases is old enough to go, and if so whether it may."""
        output_folder = self.output_folder
        file_names = (result_file_name(doc_id), extraction_file_name(doc_id), bundle_file_name(doc_id))
        write_times = [
            written_at for name in file_names if (written_at := output_folder.get_modification_time(name)) is not None
        ]
        # Of what was purged meanwhile nothing is old.
        if (
            not write_times
            or self.find_last_change_time(doc_id, datetime.fromtimestamp(max(write_times), UTC)) >= expired_before
        ):
            return "young"
        try:
            newest_reviews = self._read_newest_reviews(case_ids)
        except StoreError:
            return "unreadable"  # nobody knows when it was closed
        if any(datetime.fromisoformat(review.submitted_at) >= expired_before for review in newest_reviews if review):
            return "young"
        return (
            "finished" if all(derive_review_status(review) == "completed" for review in newest_reviews) else "waiting"
        )

    def _read_newest_reviews(self, case_ids: Iterable[str]) -> list[Review | None]:
        """The newest review of each of these cases that is there; None where it has none. StoreError."""
        output_folder = self.output_folder
        open_case_ids = [case_id for case_id in case_ids if output_folder.has_file(packet_file_name(case_id))]
        return [
            read_review(output_folder, case_id, revision)
            if (revision := find_newest_revision(output_folder, case_id))
            else None
            for case_id in open_case_ids
        ]

    def list_possible_case_ids(self, doc_id: str) -> tuple[str, ...]:
        """The case_ids of everything that people were or could be asked about the document.

        With the further opinions on each, whether there are any: one may come at any time, and of one that was withdrawn
        the database still has what was said in it.
        """
        check_ids = {
            *self.check_case_ids_by_doc_id.get(doc_id, ()),
            *self.index.document_erasure.list_case_ids_showing_document(doc_id),
        }
        own_ids = (case_id for name in (doc_id, *check_ids) for case_id in self.case_ids_by_stem.get(name, ()))
        base_ids = {
            *list_document_case_ids(doc_id),
            *check_ids,
            *own_ids,
            *self.template_case_ids_by_doc_id.get(doc_id, ()),
        }
        return tuple(
            sorted(
                {
                    get_base_case_id(base_id) + suffix
                    for base_id in base_ids
                    for suffix in ("", SECOND_SUFFIX, ADJUDICATION_SUFFIX)
                }
            )
        )

    def require_document_case_ids(self, doc_id: str) -> tuple[str, ...]:
        """The document's cases. NotFound where there is nothing of it."""
        if re.fullmatch(r"[A-Za-z0-9_-]+", doc_id):
            case_ids = self.list_possible_case_ids(doc_id)
            if doc_id in self.row_by_doc_id or any(
                map(self.output_folder.has_file, self.list_possible_document_files(doc_id, None, case_ids))
            ):
                return case_ids
        raise NotFound(
            f"there is no document {doc_id!r}",
            code="PURGE-NOT-FOUND",
            remedy="Name it as `evalkit run` does: the file's name without its ending. All its cases go with it.",
        )

    def list_possible_document_files(self, doc_id: str, sha256: str | None, case_ids: Iterable[str]) -> Iterator[str]:
        """The names of all files that are about the document; some may not be there.

        In the order in which they may go: an attention check's packet would be made again from its record, and results are
        looked up in bundles.
        """
        all_case_ids = tuple(case_ids)
        yield from map(get_attention_check_file_name, all_case_ids)
        yield from map(packet_file_name, all_case_ids)
        yield from (
            review_file_name(case_id, revision)
            for case_id in all_case_ids
            for revision in list_revisions(self.output_folder, case_id)
        )
        yield from map(ground_truth_file_name, all_case_ids)
        yield from (extraction_file_name(doc_id), result_file_name(doc_id), bundle_file_name(doc_id))
        if sha256 is not None:
            yield from self.template_review_files_by_sha256.get(sha256, ())

    def find_sha256(self, doc_id: str) -> str | None:
        """The document's SHA-256, from whatever still knows it."""
        if (row := self.row_by_doc_id.get(doc_id)) and row["sha256"]:
            return str(row["sha256"])
        for name in (result_file_name(doc_id), extraction_file_name(doc_id), bundle_file_name(doc_id)):
            stored_sha256 = _read_json_or_empty(self.output_folder, name).get("sha256")
            if isinstance(stored_sha256, str):
                return stored_sha256
        return None


def _read_json_or_empty(output_folder: OutputFolder, name: str) -> Mapping[str, Any]:
    """What a file has; nothing, where it cannot be read: `audit verify` names it."""
    try:
        return output_folder.read_json(name, max_schema_version=_ANY_VERSION)
    except StoreError:
        return {}


def _parse_aware_datetimes(times_by_name: object) -> Iterator[datetime]:
    """Those that a file has under ``times_by_name``."""
    for text in times_by_name.values() if isinstance(times_by_name, Mapping) else ():
        with suppress(TypeError, ValueError):
            if (moment := datetime.fromisoformat(text)).tzinfo is not None:
                yield moment


_EARLIEST_MOMENT = datetime.min.replace(tzinfo=UTC)
_ANY_VERSION = 1 << 31
"""What a newer evalkit wrote is purged too."""


# ---------------------------------------------------------------------------------------------- what is done


def _read_intent(output_folder: OutputFolder) -> _PurgeIntent:
    return parse_stored_record(
        _PurgeIntent,
        output_folder.read_json(PURGE_INTENT_FILE, max_schema_version=SCHEMA_VERSION),
        PURGE_INTENT_FILE,
        "Remove it, and purge the document again.",
    )


def _finish_interrupted_purge(contents: _FolderContents) -> Iterator[PurgedDocument]:
    """What a purge that was killed had begun with, done to the end."""
    output_folder = contents.output_folder
    if not output_folder.has_file(PURGE_INTENT_FILE):
        return
    intent = _read_intent(output_folder)
    doc_id = intent.doc_id
    if doc_id is None:
        return
    with hold_case_write_lock(output_folder):
        # A case that came since is written down too: its packet, by which it is found, is the first to go.
        case_ids = tuple(sorted({*intent.cases, *contents.list_possible_case_ids(doc_id)}))
        intent = intent.model_copy(update={"cases": case_ids})
        output_folder.write_json(PURGE_INTENT_FILE, intent.model_dump(mode="json"))
        registries = ProductionLabelsAndDraws(output_folder)
        purged_document = _execute_purge(contents, registries, intent)
    registries.rewrite_files_without_documents((doc_id, *intent.listed))
    yield purged_document


def _execute_purge(
    contents: _FolderContents, registries: ProductionLabelsAndDraws, intent: _PurgeIntent
) -> PurgedDocument:
    """What the intent says, done but for the lists, which are written for many documents at once; for whoever has the
    writers' turn. What stays is not looked for yet.
    """
    output_folder, index = contents.output_folder, contents.index
    doc_id, case_ids = intent.doc_id or "", intent.cases
    claim_by_case = index.claims.map_live_claims_by_case_id(intent.purged_at)
    open_case_notes = tuple(
        f"{claim_by_case[affected_case].reviewer} had {affected_case} open"
        for affected_case in case_ids
        if affected_case in claim_by_case
    )
    # Without their packets nothing more can be said in these cases: what the record has is all that there was.
    removed_files = [
        name
        for name in (*map(get_attention_check_file_name, case_ids), *map(packet_file_name, case_ids))
        if output_folder.remove_file(name)
    ]
    if not output_folder.has_file(purge_record_file_name(intent.number)):
        output_folder.create_json_if_absent(
            purge_record_file_name(intent.number),
            _create_purge_record(output_folder, registries, intent).model_dump(mode="json"),
        )
    for case_id in case_ids:
        removed_files += output_folder.remove_folder(f"{REVIEWS_FOLDER}/{case_id}")
    removed_files += [
        name
        for name in (*contents.list_possible_document_files(doc_id, intent.sha256, case_ids), MOVED_SQLITE_FILE)
        if output_folder.remove_file(name)
    ]
    new_name_by_case = {
        affected_case: f"{intent.sha256 or f'purge-{intent.number}'}{_get_case_suffix(doc_id, affected_case)}"
        for affected_case in case_ids
    }
    deleted_row_counts = registries.count_naming_files_by_kind(doc_id) | index.document_erasure.delete_document_rows(
        doc_id, case_ids, intent.sha256, new_name_by_case
    )
    if isinstance(output_folder, LocalOutputFolder):
        output_folder.remove_old_temp_files(time.time() - _ORPHAN_AGE_SECONDS)
    record = _read_record(output_folder, purge_record_file_name(intent.number))
    review_count = sum(len(chain.reviews) for chain in record.chains)
    return PurgedDocument(
        doc_id,
        intent.sha256,
        tuple(sorted(removed_files)),
        deleted_row_counts,
        review_count,
        open_case_notes,
        remaining_traces=(),
    )


def _create_purge_record(
    output_folder: OutputFolder, registries: ProductionLabelsAndDraws, intent: _PurgeIntent
) -> PurgeRecord:
    doc_id = intent.doc_id or ""
    previous_number = intent.number - 1
    reviews_by_case = ((subject, tuple(_create_purged_reviews(output_folder, subject))) for subject in intent.cases)
    return PurgeRecord(
        sha256=intent.sha256,
        purged_at=intent.purged_at,
        chains=tuple(
            PurgedChain(case=_get_case_suffix(doc_id, subject), reviews=purged_reviews)
            for subject, purged_reviews in reviews_by_case
            if purged_reviews
        ),
        draws=tuple(
            PurgedDraw(draw=draw_number, probability=subject.probability[doc_id], was_drawn=doc_id in subject.drawn)
            for draw_number, subject in registries.iterate_draw_numbers_and_strata(doc_id)
        ),
        prev_sha256=hashlib.sha256(output_folder.read_bytes(purge_record_file_name(previous_number))).hexdigest()
        if previous_number
        else None,
    )


def _get_case_suffix(doc_id: str, case_id: str) -> str:
    """What a case's name has behind the document's. Templates bear a name of their own, which may be a patient's too."""
    return case_id.removeprefix(doc_id) if case_id.startswith(doc_id) else case_id[len(case_id.partition(".")[0]) :]


def _create_purged_reviews(output_folder: OutputFolder, case_id: str) -> Iterator[PurgedReview]:
    for revision in list_revisions(output_folder, case_id):
        sha256 = hash_review_file(output_folder, case_id, revision)
        try:
            review = read_review(output_folder, case_id, revision)
        except StoreError:  # a damaged review goes as well, and its chain does not verify
            yield PurgedReview(revision=revision, sha256=sha256, prev_sha256=None)
            continue
        yield PurgedReview(
            revision=revision,
            sha256=sha256,
            prev_sha256=review.prev_sha256,
            packet_sha256=review.packet_sha256,
            reviewer=review.reviewer,
            submitted_at=review.submitted_at,
            outcome=review.outcome,
            seconds_active=review.seconds_active,
            versions=review.versions,
            role=review.role,
            seeded=review.seeded,
        )


# ------------------------------------------------------------------------------------------------ what stays


def _add_remaining_traces(
    contents: _FolderContents, purged_documents: Sequence[PurgedDocument]
) -> list[PurgedDocument]:
    """What was purged, each with a sentence for everything that is left and may be about it."""
    output_folder, purged_ids = contents.output_folder, {document.doc_id for document in purged_documents}
    path_by_doc_id = {
        document: str(row["file_path"])
        for document, row in contents.row_by_doc_id.items()
        if row["file_path"] is not None
    }
    ids_by_shared_path = defaultdict(list)
    for doc_id, path in path_by_doc_id.items():
        if doc_id not in purged_ids:
            ids_by_shared_path[path].append(doc_id)
    mentions_by_doc_id = _map_mentions_by_doc_id(
        output_folder,
        {
            document: PurePath(path_by_doc_id[document]).name if document in path_by_doc_id else None
            for document in purged_ids
        },
    )
    return [
        replace(
            document,
            remaining_traces=(
                *_describe_remaining_traces(
                    output_folder, document.doc_id, path_by_doc_id.get(document.doc_id), ids_by_shared_path
                ),
                *mentions_by_doc_id[document.doc_id],
            ),
        )
        for document in purged_documents
    ]


def _describe_remaining_traces(
    output_folder: OutputFolder, doc_id: str, pdf_path: str | None, ids_by_shared_path: Mapping[str, list[str]]
) -> Iterator[str]:
    if pdf_path is not None:
        yield f"the PDF itself, {pdf_path}: only what is below the output folder was removed"
        for other_id in ids_by_shared_path.get(pdf_path, ()):
            yield f"document {other_id}, which was read from the same path: purge it too if it is the same patient's"
    if isinstance(output_folder.root, str):
        yield "what the bucket keeps of objects that were removed (versions, soft delete, replicas): remove it there"
    if output_folder.has_file(template_file_name(doc_id)):
        yield f"{template_file_name(doc_id)}, a bank's wording under the document's name: remove it if nobody needs it"


def _map_mentions_by_doc_id(
    output_folder: OutputFolder, filename_by_doc_id: Mapping[str, str | None]
) -> Mapping[str, list[str]]:
    """By document what somebody names it in, a sentence each; all is read once. ``filename_by_doc_id`` has each one's PDF."""
    encoded_filenames = {
        candidate_id: json.dumps(file_name, ensure_ascii=False)[1:-1].encode()
        for candidate_id, file_name in filename_by_doc_id.items()
        if file_name
    }
    id_by_encoded_id = {candidate_id.encode(): candidate_id for candidate_id in filename_by_doc_id}
    mentions_by_doc_id: dict[str, list[str]] = {candidate_id: [] for candidate_id in filename_by_doc_id}
    for subfolder in _FREE_TEXT_FOLDERS:
        for file_name, content in output_folder.iterate_files_recursively(subfolder):
            mentioned_ids = {
                id_by_encoded_id[candidate_id]
                for candidate_id in _extract_name_candidates(content) & id_by_encoded_id.keys()
            }
            for doc_id in mentioned_ids | {
                candidate_id for candidate_id, filename in encoded_filenames.items() if filename in content
            }:
                mentions_by_doc_id[doc_id].append(f"{file_name}, in which somebody names the document: look at it")
    return mentions_by_doc_id


def _extract_name_candidates(content: bytes) -> set[bytes]:
    r"""What a JSON file has that may be a document's name: no part of another, and a plain word in quotes only.

    >>> sorted(_extract_name_candidates(b'{"notes": "see:\\nscan_2 or my scan-3", "of": "scan"}'))
    [b'notes', b'of', b'scan', b'scan-3', b'scan_2']
    """
    candidates = {
        candidate for candidate in _NAME_PATTERN.findall(content) if candidate and not _PLAIN_WORD.fullmatch(candidate)
    }
    return candidates | {*_QUOTED_WORD.findall(content)}


#: The letter of an escape is no part of the name that follows it.
_NAME_PATTERN = re.compile(rb"\\[\\bfnrt]|([A-Za-z0-9_-]+)")
_PLAIN_WORD, _QUOTED_WORD = re.compile(rb"[a-z]+"), re.compile(rb'(?<=")[a-z]+(?=")')
