"""Hashes of an output folder's record files, for later comparison.

Names of files may name patients. So a list of digests contains, instead of a document's name, its hash with the folder's
salt: ``reviews/3fa9c27d51be.second/0001.json``.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath
from typing import Any

from typing_extensions import override

from evalkit.classification.document_result import DocumentResult
from evalkit.classification.patient_keys import load_or_create_patient_salt
from evalkit.classification.v5_arbiter import Decision
from evalkit.core.records import StrictRecord
from evalkit.errors import EvalkitError, StoreError
from evalkit.pipeline.audit.verify import IntegrityFault
from evalkit.pipeline.purge import PurgeRecord, read_purge_records
from evalkit.review.attention_checks import get_attention_check_file_name, iterate_check_case_and_doc_ids
from evalkit.review.case_files import read_review_status
from evalkit.review.ground_truth import build_silver_ground_truth, find_newest_revision
from evalkit.review.index_rebuild import open_index
from evalkit.review.loaders import read_result
from evalkit.review.opinions import CaseOpinions
from evalkit.store import (
    ATTENTION_CHECKS_FOLDER,
    BUNDLES_FOLDER,
    CONVERTED_FOLDER,
    EVENTS_FOLDER,
    EXTRACTIONS_FOLDER,
    GROUND_TRUTH_FOLDER,
    INTENDED_USE_FILE,
    PACKETS_FOLDER,
    PRODUCTION_LABELS_FILE,
    PURGE_RECORDS_FOLDER,
    RESULTS_FOLDER,
    REVIEWS_FOLDER,
    ROSTER_FILE,
    RUNS_FOLDER,
    SAMPLE_DRAWS_FOLDER,
    SITE_WEIGHTS_FOLDER,
    TEMPLATE_REVIEWS_FOLDER,
    TEMPLATES_FOLDER,
    OutputFolder,
    ReadOnlyFolder,
    encode_canonical_json,
    encode_indented_json,
)
from evalkit.store.change_chain import HASH_DIGITS, PREFIX_BY_FOLDER, FileNameHasher
from evalkit.store.file_names import CHANGES_FOLDER

#: The folders whose files a list of digests covers, each with what it contains.
COVERED_FOLDERS: Mapping[str, str] = {
    BUNDLES_FOLDER: "texts of documents",
    CONVERTED_FOLDER: "converted documents",
    RESULTS_FOLDER: "results",
    EXTRACTIONS_FOLDER: "extracted fields",
    PACKETS_FOLDER: "cases",
    REVIEWS_FOLDER: "reviews",
    GROUND_TRUTH_FOLDER: "ground truths",
    ATTENTION_CHECKS_FOLDER: "attention checks",
    SAMPLE_DRAWS_FOLDER: "draws",
    EVENTS_FOLDER: "events of the log",
    SITE_WEIGHTS_FOLDER: "proposals of weights",
    PURGE_RECORDS_FOLDER: "records of purges",
    TEMPLATES_FOLDER: "templates",
    TEMPLATE_REVIEWS_FOLDER: "reviews of templates",
    RUNS_FOLDER: "records of runs and replaced results",
    CHANGES_FOLDER: "links of the chain of changes",
}
_COVERED_FILES = (ROSTER_FILE, PRODUCTION_LABELS_FILE, INTENDED_USE_FILE)
#: Files to which entries are added in the course of the work.
_GROWING_PATTERN = re.compile(
    rf"{re.escape(ROSTER_FILE)}|{re.escape(PRODUCTION_LABELS_FILE)}|{RUNS_FOLDER}/[^/]+/run\.json"
)
#: Second set of a file's entries, in the record of a run: the documents, which a later session may decide again.
_DOCUMENTS_SUFFIX = " documents"
_STATUS_PATTERN = re.compile(rb'("review_status": ?")[a-z_]+"')
_SILVER_PATTERN = re.compile(rb'"AUTO_ACCEPTED".*"inclusion_probability": ?([0-9.e-]+)', re.DOTALL)
_STATUSES = (b"pending", b"in_review", b"deferred", b"completed")


class FolderDigests(StrictRecord):
    """Hashes of an output folder's record files at one time."""

    files: dict[str, str]
    """SHA-256 (hex) of each file's bytes, by the file's name with hashed document names."""
    entries: dict[str, tuple[str, ...]]
    """Keyed hash of each entry of the files to which entries are added, by file name."""
    documents: dict[str, str]
    """Beginning of the SHA-256 of each document's bytes, by the hash of its name, so that a purge can be recognised."""
    silver_probabilities: dict[str, float]
    """Probability of an audit of each accepted answer that nobody had reviewed, which later reviews overwrite."""

    def count_by_folder(self) -> Counter[str]:
        """Count the hashed files of each folder."""
        return Counter(name.partition("/")[0] for name in self.files if "/" in name)

    def compute_folder_digest(self, folder: str) -> str:
        """Compute the SHA-256 (hex) of the sorted names and hashes of a folder."""
        lines = sorted(f"{name} {digest}\n" for name, digest in self.files.items() if name.startswith(f"{folder}/"))
        return hashlib.sha256("".join(lines).encode()).hexdigest()


@dataclass(frozen=True)
class FolderChanges:
    """Differences of an output folder from earlier hashes."""

    changed: tuple[IntegrityFault, ...]
    """Files that were changed or removed, except by a purge or by later work."""
    added: Mapping[str, int]
    """Numbers of files that later work added, by what they are, such as ``reviews``."""
    purged_count: int
    """Number of files that recorded purges removed."""
    notes: tuple[str, ...]
    """Sentences about changes that later work explains."""


def create_hasher(output_folder: OutputFolder) -> FileNameHasher:
    """Create the hasher that replaces document names in lists of hashes."""
    return FileNameHasher(load_or_create_patient_salt(output_folder))


def compute_file_digest(content: bytes) -> str:
    """Compute the digest of a file's content: SHA-256 (hex)."""
    return hashlib.sha256(content).hexdigest()


def iterate_record_files(output_folder: OutputFolder) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of every file that is hashed."""
    for folder in COVERED_FOLDERS:
        if output_folder.has_folder(folder):
            yield from output_folder.iterate_files_recursively(folder)
    yield from ((name, output_folder.read_bytes(name)) for name in _COVERED_FILES if output_folder.has_file(name))


def compute_folder_digests(output_folder: OutputFolder, hasher: FileNameHasher) -> FolderDigests:
    """Compute the hashes of an output folder now. UsageError, StoreError."""
    files, silver_probabilities = {}, {}
    entries: dict[str, tuple[str, ...]] = {}
    for name, content in iterate_record_files(output_folder):
        files[hasher.hash_file_name(name)] = compute_file_digest(content)
        if _GROWING_PATTERN.fullmatch(name):
            entries |= _hash_entries(hasher, name, content)
        if name.startswith(GROUND_TRUTH_FOLDER) and (match := _SILVER_PATTERN.search(content)):
            case_id = PurePath(name).stem.removeprefix(PREFIX_BY_FOLDER[GROUND_TRUTH_FOLDER])
            silver_probabilities[hasher.hash_text(case_id)] = float(match[1])
    documents = {}
    with open_index(output_folder, read_only=True) as index:
        sha256_by_doc_id = {row["doc_id"]: str(row["sha256"] or "") for row in index.list_documents()}
    checks = [(case_id, sha256_by_doc_id.get(doc_id, "")) for case_id, doc_id in _list_checks(output_folder)]
    for name, sha256 in (*sha256_by_doc_id.items(), *checks):
        documents[hasher.hash_text(name)] = sha256[:HASH_DIGITS]
    return FolderDigests(files=files, entries=entries, documents=documents, silver_probabilities=silver_probabilities)


def _list_checks(output_folder: OutputFolder) -> list[tuple[str, str]]:
    with suppress(EvalkitError):  # `verify_integrity` reports it
        return list(iterate_check_case_and_doc_ids(output_folder))
    return []


def _hash_entries(hasher: FileNameHasher, name: str, content: bytes) -> dict[str, tuple[str, ...]]:
    """Hash each entry of a file that grows; () if the file is damaged.

    Digests of login codes are left out: a new code changes nothing that a reviewer has signed. So are sessions of runs
    that did not end by themselves: one may be under way.
    """
    rows_by_name: dict[str, list[Any]] = {name: []}
    with suppress(ValueError, AttributeError, RecursionError):
        for table_name, table in json.loads(content).items():
            items: Iterable[tuple[Any, Any]] = table.items() if isinstance(table, dict) else ()
            if table_name == "sessions":
                items = ((number, row) for number, row in enumerate(table) if "finished_at" in row["times"])
            for key, value in items if table_name != "inputs" else ():  # a purge changes inputs
                has_code = (name, table_name) == (ROSTER_FILE, "reviewers")
                suffix = _DOCUMENTS_SUFFIX if table_name == "documents" else ""
                rows_by_name.setdefault(f"{name}{suffix}", []).append([table_name, key, None if has_code else value])
    return {
        rows_name: tuple(sorted(hasher.hash_text(encode_canonical_json(row).decode()) for row in rows))
        for rows_name, rows in rows_by_name.items()
    }


# ------------------------------------------------------------------------------------------------------ comparison


def _build_fault(file_name: str, what: str) -> IntegrityFault:
    return IntegrityFault(
        file_name, what, "Restore the file from a backup, or make a new dossier if the change was intended."
    )


class FolderComparison:
    """Comparison of an output folder with earlier hashes of its files."""

    def __init__(self, output_folder: OutputFolder, recorded: FolderDigests) -> None:
        self._output_folder, self._recorded = output_folder, recorded
        self._hasher = create_hasher(output_folder)
        self._present = compute_folder_digests(output_folder, self._hasher)
        #: The output folder as it was when the digests were taken.
        self.past_folder = PastOutputFolder(output_folder, recorded, self._hasher)
        self._added = self._present.files.keys() - recorded.files.keys()
        self._reviewed_since = {_get_document_hash(name) for name in self._added if name.startswith(REVIEWS_FOLDER)}
        self._reviewed_cases = {name.split("/")[1] for name in recorded.files if name.startswith(REVIEWS_FOLDER)}
        self._new_purges = self._read_new_purges()

    def _read_new_purges(self) -> list[PurgeRecord]:
        old_count = self._recorded.count_by_folder()[PURGE_RECORDS_FOLDER]
        with suppress(StoreError):  # `verify_integrity` reports it
            return read_purge_records(self._output_folder)[old_count:]
        return []

    def find_changes(self) -> FolderChanges:
        """Separate changes that later work or purges explain from other changes."""
        changed: list[IntegrityFault] = []
        notes: list[str] = []
        purged_beginnings = {str(record.sha256)[:HASH_DIGITS] for record in self._new_purges}
        purged_reviews = {
            review.sha256 for record in self._new_purges for chain in record.chains for review in chain.reviews
        }
        purged_count = 0
        for name, digest in self._recorded.files.items():
            present_digest = self._present.files.get(name)
            if present_digest == digest:
                continue
            shown_name = self._hasher.reveal(name)
            folder = name.partition("/")[0]
            is_gone = present_digest is None
            if is_gone and self._recorded.documents.get(_get_document_hash(name)) in purged_beginnings - {""}:
                purged_count += 1
                if folder == RESULTS_FOLDER and _get_document_hash(name) in self._present.documents:
                    changed.append(
                        _build_fault(shown_name, "a record says that it was purged, but the index still lists it")
                    )
                if folder == REVIEWS_FOLDER and digest not in purged_reviews:
                    changed.append(_build_fault(shown_name, "it was changed before the document was purged"))
            elif not is_gone and folder == SAMPLE_DRAWS_FOLDER and self._is_draw_of_purge(name):
                notes.append(f"{name} was changed, as the purge of a document that it lists does")
            elif not is_gone and _GROWING_PATTERN.fullmatch(shown_name):
                changed += self._compare_entries(shown_name, notes)
            elif folder in (GROUND_TRUTH_FOLDER, TEMPLATES_FOLDER) and _get_document_hash(name) in self._reviewed_since:
                pass  # it follows from the reviews, and `verify_integrity` compares it with them
            elif not (folder == PACKETS_FOLDER and self._is_packet_explained(name, shown_name, is_gone=is_gone)):
                what = "it is missing" if is_gone else "it was changed"
                changed.append(_build_fault(shown_name, f"{what} since the dossier was made"))
        added = Counter(
            COVERED_FOLDERS.get(folder, name)
            for name in self._added
            if (folder := name.partition("/")[0]) != CHANGES_FOLDER  # links follow from the other files
        )
        return FolderChanges(tuple(changed), added, purged_count, tuple(notes))

    def _is_draw_of_purge(self, name: str) -> bool:
        number = int(PurePath(name).stem)
        return any(draw.draw == number for record in self._new_purges for draw in record.draws)

    def _compare_entries(self, name: str, notes: list[str]) -> Iterator[IntegrityFault]:
        lost_count, added_count = self._count_lost_and_added(name)
        lost_document_count, _ = self._count_lost_and_added(f"{name}{_DOCUMENTS_SUFFIX}")
        is_purge = bool(self._new_purges) and name != ROSTER_FILE
        if lost_count and not (is_purge and name == PRODUCTION_LABELS_FILE):
            yield _build_fault(name, f"{lost_count} of its entries were changed or removed since the dossier was made")
        elif lost_document_count and not (is_purge or added_count):
            yield _build_fault(name, f"{lost_document_count} of its documents were changed since the dossier was made")
        elif added_count or is_purge or name == ROSTER_FILE:
            notes.append(
                f"{name} was changed: {added_count} entries added, {lost_count + lost_document_count} purged or replaced, or login codes replaced"
            )
        else:
            yield _build_fault(name, "it was changed since the dossier was made")

    def _count_lost_and_added(self, name: str) -> tuple[int, int]:
        recorded, present = (Counter(digests.entries.get(name, ())) for digests in (self._recorded, self._present))
        return (recorded - present).total(), (present - recorded).total()

    def _is_packet_explained(self, name: str, shown_name: str, *, is_gone: bool) -> bool:
        """Return True if only the packet's status differs and it fits the reviews.

        True too if it was an attention check that nobody had answered, and that was withdrawn.
        """
        hashed_case_id, case_id = (
            PurePath(packet_name).stem.removeprefix(PREFIX_BY_FOLDER[PACKETS_FOLDER])
            for packet_name in (name, shown_name)
        )
        if is_gone:
            is_check = self._output_folder.has_file(get_attention_check_file_name(case_id))
            return is_check and hashed_case_id not in self._reviewed_cases
        try:
            status = read_review_status(self._output_folder, case_id)
            stored = self._output_folder.read_json(shown_name, max_schema_version=10**6)
        except EvalkitError:
            return False
        is_same = compute_file_digest(self.past_folder.read_bytes(shown_name)) == self._recorded.files[name]
        return is_same and (stored.get("review_status") == "completed") == (status == "completed")


def _get_document_hash(hashed_name: str) -> str:
    """Get the hash of the document's name in a file name; empty if there is none."""
    hashes = re.findall(rf"[0-9a-f]{{{HASH_DIGITS}}}", hashed_name)
    return hashes[-1] if hashes else ""  # the name of a run, before it, may look like a hash


class PastOutputFolder(ReadOnlyFolder):
    """Read-only view of an output folder as it was when its hashes were computed.

    Files that were added later do not exist in it. The status of a case, and ground truth that later reviews replaced, are
    as they were. Files that were changed in another way are as they are now.
    """

    def __init__(self, output_folder: OutputFolder, recorded: FolderDigests, hasher: FileNameHasher) -> None:
        """``hasher`` must have hashed the names of all present files."""
        super().__init__(output_folder)
        self._recorded, self._hasher = recorded, hasher
        self._past_names = sorted(map(hasher.reveal, recorded.files))

    @override
    def has_file(self, name: str) -> bool:
        if name.partition("/")[0] in COVERED_FOLDERS or name in _COVERED_FILES:
            return self._hasher.hash_file_name(name) in self._recorded.files
        return self._folder.has_file(name)

    @cached_property
    def _names_by_folder(self) -> Mapping[str, frozenset[str]]:
        names_by_folder: dict[str, set[str]] = {}
        for name in self._past_names:
            parts = name.split("/")
            for depth in range(1, len(parts)):
                names_by_folder.setdefault("/".join(parts[:depth]), set()).add(parts[depth])
        return {folder: frozenset(names) for folder, names in names_by_folder.items()}

    @override
    def list_file_and_folder_names(self, subfolder: str | None = None) -> set[str]:
        if subfolder is None:
            return self._folder.list_file_and_folder_names()
        return set(self._names_by_folder.get(subfolder, ()))

    @override
    def list_subfolder_names(self, subfolder: str) -> list[str]:
        names = self.list_file_and_folder_names(subfolder)
        return sorted(name for name in names if f"{subfolder}/{name}" in self._names_by_folder)

    @override
    def read_bytes(self, name: str, max_bytes: int | None = None) -> bytes:
        recorded_digest = self._recorded.files.get(self._hasher.hash_file_name(name))
        folder = name.partition("/")[0]
        if recorded_digest is None or folder not in (PACKETS_FOLDER, GROUND_TRUTH_FOLDER):
            return self._folder.read_bytes(name, max_bytes)
        content = self._folder.read_bytes(name) if self._folder.has_file(name) else b""
        if compute_file_digest(content) != recorded_digest:
            if folder == PACKETS_FOLDER:
                candidates = (_STATUS_PATTERN.sub(rb"\g<1>" + status + b'"', content) for status in _STATUSES)
                content = next(
                    (candidate for candidate in candidates if compute_file_digest(candidate) == recorded_digest),
                    content,
                )
            elif past_truth := self._rebuild_ground_truth(name):
                content = past_truth
        return content[:max_bytes]

    def _rebuild_ground_truth(self, name: str) -> bytes | None:
        """Build ground truth from the reviews of that time, or from the accepted answer.

        None if the reviews left none, or for fields and templates.
        """
        case_id = PurePath(name).stem.removeprefix(PREFIX_BY_FOLDER[GROUND_TRUTH_FOLDER])
        if find_newest_revision(self, case_id):
            record = CaseOpinions.read(self, case_id).build_ground_truth()
        else:
            result = read_result(self, case_id) if self.has_file(f"{RESULTS_FOLDER}/{case_id}.json") else None
            record = (
                build_silver_ground_truth(
                    result,
                    accepted_at=result.times["finished_at"],
                    inclusion_probability=self._recorded.silver_probabilities.get(self._hasher.hash_text(case_id)),
                )
                if isinstance(result, DocumentResult) and result.decision is Decision.AUTO_ACCEPT
                else None
            )
        return encode_indented_json(record.model_dump(mode="json")) if record else None

    @override
    def iterate_files_recursively(self, subfolder: str) -> Iterator[tuple[str, bytes]]:
        yield from ((name, self.read_bytes(name)) for name in self._past_names if name.startswith(f"{subfolder}/"))
