"""Comparison and rebuild of the database index; migration of the database."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import PurePath
from typing import Any, Self, TypeVar

from loky.process_executor import BrokenProcessPool, ProcessPoolExecutor

from evalkit.classification.document_result import DocumentFailure
from evalkit.classification.v5_arbiter import Decision
from evalkit.core.clocks import format_iso_seconds, utc_now
from evalkit.core.process_pool import create_process_pool
from evalkit.core.wording import format_count
from evalkit.errors import StoreError
from evalkit.review.attention_checks import map_check_case_ids_by_doc_id
from evalkit.review.claiming import recompute_and_save_case_status
from evalkit.review.loaders import read_result, read_source_file_path
from evalkit.review.opinions import (
    list_index_rows,
    queue_or_withdraw_attention_checks,
    rebuild_case_files_and_list_index_rows,
)
from evalkit.review.packet import get_base_case_id
from evalkit.review.queue import (
    derive_closed_case_rows,
    derive_review_chain_heads,
    list_case_ids_with_packet,
    list_ids_in_file_names,
)
from evalkit.review.write_lock import get_write_lock_key, hold_case_write_lock
from evalkit.store import (
    PACKETS_FOLDER,
    PURGE_INTENT_FILE,
    RESULTS_FOLDER,
    REVIEWS_FOLDER,
    SQLITE_FILE,
    OutputFolder,
    OutputIndex,
    is_sqlite_missing,
    migrate_sqlite_to_postgresql,
    packet_file_name,
    result_file_name,
    review_file_name,
)
from evalkit.store.file_names import NAME_PART_PATTERN
from evalkit.store.index import CHANGES_HEAD_ID

log = logging.getLogger(__name__)

_IndexRows = list[dict[str, Any]]
_ReadChunks = Callable[[Callable[[Sequence[str]], _IndexRows], Sequence[Sequence[str]]], Iterator[dict[str, Any]]]
_Rows = TypeVar("_Rows")

#: Number of results or cases per chunk.
_CHUNK_SIZE = 500
#: Number of chunks from which further processes pay off: a process takes a second to start.
_MIN_PARALLEL_CHUNKS = 8
#: Maximum number of processes; more would wait for the one that writes the database.
_MAX_WORKERS = 4


#: Number of differences up to which single rows are corrected; beyond it, the whole index is rebuilt.
_MAX_SINGLE_CORRECTIONS = 200
#: Number of cases and documents up to which the files in a bucket are listed when the index is opened.
_MAX_LISTED_IN_BUCKET = 20_000
#: Seconds after which a difference counts: before that, another process may still be writing.
_SETTLING_SECONDS = 0.5


@dataclass(frozen=True)
class IndexDifferences:
    """Documents, cases and reviews that only the index or only the folder has."""

    unindexed_cases: frozenset[str] = frozenset()
    """Cases with a packet and without a row."""
    lost_cases: frozenset[str] = frozenset()
    """Cases with a row and without a packet."""
    unindexed_results: frozenset[str] = frozenset()
    """Documents with a result and without a row."""
    lost_results: frozenset[str] = frozenset()
    """Documents with a row and without a result; the rows are kept, since nothing else may know of them."""
    unindexed_reviews: frozenset[str] = frozenset()
    """Cases with a review newer than the newest one that the index knows."""
    lost_reviews: frozenset[str] = frozenset()
    """Cases of which the newest review that the index knows has no file; nothing else may know of it."""
    is_index_empty: bool = False

    @classmethod
    def find(cls, output_folder: OutputFolder, index: OutputIndex) -> Self:
        """Compare file names in the folder with index rows; no file is read.

        In a bucket, where a list of a thousand names takes a request, a large index is compared only if it is empty.
        """
        case_count = sum(index.case_list.count_by_status().values())
        decision_by_doc_id = index.map_decisions_by_doc_id()
        document_count = len(decision_by_doc_id)
        is_empty = not case_count and not document_count
        is_in_bucket = isinstance(output_folder.root, str)
        if is_in_bucket and case_count + document_count > _MAX_LISTED_IN_BUCKET:
            return cls()
        # Of 100,000 documents and cases all names at once would take 75 MB: those of documents go before cases are read.
        result_ids = list_ids_in_file_names(output_folder, RESULTS_FOLDER)
        unindexed_results = frozenset(result_ids - decision_by_doc_id.keys())
        lost_results = frozenset(decision_by_doc_id.keys() - result_ids)
        escalated_ids = {
            doc_id for doc_id in result_ids if decision_by_doc_id.get(doc_id) == Decision.ESCALATE_TO_SME.value
        }
        has_result, has_known_result = bool(result_ids), len(result_ids) > len(unindexed_results)
        del decision_by_doc_id, result_ids
        # Rows first: a packet is written before its row, and so the packet of a row that is listed is found.
        indexed_cases, packet_ids = {*index.list_case_ids()}, {*list_case_ids_with_packet(output_folder)}
        head_by_case = {head.case_id: head.revision for head in index.review_heads.list_all()}
        if is_in_bucket:
            review_names = output_folder.map_file_versions(REVIEWS_FOLDER).keys()
            case_names = {PurePath(name).parent.name for name in review_names}
            has_review: Callable[[str], bool] = review_names.__contains__
        else:
            has_review = output_folder.has_file
            case_names = output_folder.list_file_and_folder_names(REVIEWS_FOLDER)
        reviewed_ids = set(filter(NAME_PART_PATTERN.fullmatch, case_names))
        has_known_file = has_known_result or not indexed_cases.isdisjoint(packet_ids)
        if not is_empty and (has_result or packet_ids) and not has_known_file:
            raise StoreError(
                f"the database is of another output folder: none of its {len(indexed_cases)} cases and {document_count} documents is in this folder",
                code="STORE-FOREIGN",
                remedy=f"Restore the folder's own database from a backup. If there is none, move {SQLITE_FILE} out of the output folder: the next command writes a new one from the files.",
            )
        return cls(
            unindexed_cases=frozenset(packet_ids - indexed_cases),
            lost_cases=frozenset((indexed_cases - packet_ids) | (escalated_ids - packet_ids))
            | {name for name in reviewed_ids - packet_ids if has_review(review_file_name(name, 1))},
            unindexed_results=unindexed_results,
            lost_results=lost_results,
            unindexed_reviews=frozenset(
                case_id
                for case_id in reviewed_ids
                if case_id in packet_ids and has_review(review_file_name(case_id, head_by_case.get(case_id, 0) + 1))
            ),
            lost_reviews=frozenset(
                case_id
                for case_id, revision in head_by_case.items()
                if case_id != CHANGES_HEAD_ID and not has_review(review_file_name(case_id, revision))
            ),
            is_index_empty=is_empty,
        )

    def keep_common(self, later: IndexDifferences) -> IndexDifferences:
        """Keep only the differences that a later comparison found again."""
        return replace(later, **{name: getattr(self, name) & getattr(later, name) for name in _COUNTED_DIFFERENCES})

    def count_correctable(self) -> int:
        """Count the differences that can be corrected from the files."""
        return len(replace(self, lost_results=frozenset(), lost_reviews=frozenset()))

    def __len__(self) -> int:
        return sum(len(getattr(self, name)) for name in _COUNTED_DIFFERENCES)

    def describe(self, unreadable_count: int, *, is_stored: bool, is_missing: bool, is_purging: bool) -> str:
        """Describe how many differences were found, and what was done about them."""
        if self.is_index_empty:
            text = f"the index was rebuilt from {format_count(len(self.unindexed_cases), 'packet')} and {format_count(len(self.unindexed_results), 'result')}"
            text += ". What only the database held is missing: claims, drafts, deferrals, replies, paid answers of language models, the view log"
        else:
            counts = [
                f"{format_count(len(getattr(self, name)), noun)} {what}"
                for name, (noun, what) in _COUNTED_DIFFERENCES.items()
                if getattr(self, name)
            ]
            text = f"the index did not agree with the folder, whose files count: {', '.join(counts)}"
        if is_purging:
            text += ". A purge is unfinished or still running: wait for it, or run `evalkit purge` without a name to finish it. Restore only what is missing after it"
        else:
            text += "".join(
                f". Restore {folder}/ from a backup{alternative}"
                for folder, lost, alternative in (
                    (PACKETS_FOLDER, self.lost_cases, ", or run the documents again"),
                    (RESULTS_FOLDER, self.lost_results, ", or run the documents again"),
                    (REVIEWS_FOLDER, self.lost_reviews, ": nothing else makes reviews again"),
                )
                if lost
            )
        if unreadable_count:
            text += f". {format_count(unreadable_count, 'file')} could not be read: `evalkit audit verify` names them. Restore them from a backup, or move them out of the folder"
        if is_missing:
            return f"{SQLITE_FILE} is missing: {text}. Run `evalkit reindex` to write a new one"
        return text if is_stored or not self.count_correctable() else text + _REINDEX_WRITES


_REINDEX_WRITES = ". The database was left as it is: `evalkit reindex` writes the index"
#: Noun and description of each kind of difference.
_COUNTED_DIFFERENCES = {
    "unindexed_cases": ("packet", "had no case in the index"),
    "lost_cases": ("case", "had no packet and cannot be listed"),
    "unindexed_results": ("result", "had no document in the index"),
    "lost_results": ("document", "had no result file and cannot be shown"),
    "unindexed_reviews": ("case", "had a newer review than the index knew"),
    "lost_reviews": ("case", "had a review whose file is missing"),
}

_DAMAGED_INDEX_WARNING = f"the search index in {SQLITE_FILE} was damaged: the index was rebuilt from its rows, and nothing is lost. Check the disk"


def open_index(output_folder: OutputFolder, *, read_only: bool = False) -> OutputIndex:
    """Open the index of an output folder after correcting it from the files.

    The files are the truth: a database that is new, empty or older than the files is rebuilt or corrected, and a
    warning says so in counts; ``lost_case_ids`` of the index are cases whose packets are missing. With ``read_only`` that
    is done in memory, and nothing in the folder changes. UsageError; StoreError if the database cannot be used, is damaged
    or is of another folder, or if a file cannot be read.
    """
    index = OutputIndex(output_folder, read_only=read_only)
    try:
        if index.has_damaged_index():
            index.check_rows()
            if read_only:
                index.move_to_memory()
            else:
                index.rewrite_search_indexes()
            log.warning("%s", _DAMAGED_INDEX_WARNING + (_REINDEX_WRITES if read_only else ""))
        differences = _find_lasting_differences(output_folder, index)
        if differences:
            index.check_rows()
            if read_only:
                index.move_to_memory()
            _correct(output_folder, index, differences, read_only=read_only)
            remaining = IndexDifferences.find(output_folder, index)
            differences = replace(differences, lost_cases=differences.lost_cases | remaining.lost_cases)
            index.lost_case_ids = differences.lost_cases
            unreadable_count = len(remaining.unindexed_cases) + len(remaining.unindexed_results)
            is_missing = is_sqlite_missing(output_folder)
            is_purging = output_folder.has_file(PURGE_INTENT_FILE)
            log.warning(
                "%s",
                differences.describe(
                    unreadable_count, is_stored=not read_only, is_missing=is_missing, is_purging=is_purging
                ),
            )
        if read_only:
            index.refuse_changes()
    except BaseException:
        index.close()
        raise
    return index


def warn_of_differences(output_folder: OutputFolder, index: OutputIndex) -> None:
    """Warn how many entries index and folder do not share; correct nothing."""
    differences = _find_lasting_differences(output_folder, index)
    if differences and not differences.is_index_empty:
        is_purging = output_folder.has_file(PURGE_INTENT_FILE)
        log.warning("%s", differences.describe(0, is_stored=True, is_missing=False, is_purging=is_purging))


def _find_lasting_differences(output_folder: OutputFolder, index: OutputIndex) -> IndexDifferences:
    differences = IndexDifferences.find(output_folder, index)
    if differences and not differences.is_index_empty:
        time.sleep(_SETTLING_SECONDS)
        differences = differences.keep_common(IndexDifferences.find(output_folder, index))
    return differences


def _correct(
    output_folder: OutputFolder, index: OutputIndex, differences: IndexDifferences, *, read_only: bool
) -> None:
    """Make the index agree with the files."""
    if differences.count_correctable() > _MAX_SINGLE_CORRECTIONS or differences.is_index_empty:
        _rebuild(output_folder, index, read_only=read_only, skips_unreadable=True)
        return
    with nullcontext() if read_only else hold_case_write_lock(output_folder):
        packet_ids = {*list_case_ids_with_packet(output_folder)}
        changed_ids = sorted(packet_ids & (differences.unindexed_cases | differences.unindexed_reviews))
        index.correct(
            _read_document_rows(
                output_folder, map(result_file_name, sorted(differences.unindexed_results)), skips_unreadable=True
            ),
            _read_case_rows(
                output_folder,
                sorted({*map(get_base_case_id, changed_ids)} & packet_ids),
                read_only=read_only,
                skips_unreadable=True,
            ),
            derive_closed_case_rows(output_folder, changed_ids),
            sorted(differences.lost_cases - packet_ids),
        )
        if not read_only:
            index.review_heads.save_missing_or_newer_heads(derive_review_chain_heads(output_folder, changed_ids))
        _recompute_deferred_statuses(output_folder, index, read_only=read_only)


def reindex(output_folder: OutputFolder) -> tuple[int, int]:
    """Rebuild the index from the files; return the numbers of documents and cases.

    Files derived from reviews (ground truth, a packet's status) are rewritten too, which repairs them after a crash.
    StoreError naming a file that cannot be read, or if the database is of another folder.
    """
    with output_folder.hold_run_lock(), OutputIndex(output_folder) as index:
        index.rewrite_search_indexes()
        IndexDifferences.find(output_folder, index)  # another folder's database may be the only one with its drafts
        return _rebuild(output_folder, index)


def move_database(output_folder: OutputFolder, database_url: str) -> dict[str, int]:
    """Move ``evalkit.sqlite`` to PostgreSQL; return the number of moved rows by table.

    UsageError, StoreError: nothing has changed then.
    """
    with output_folder.hold_run_lock(), hold_case_write_lock(output_folder):
        return migrate_sqlite_to_postgresql(output_folder, database_url)


def _rebuild(
    output_folder: OutputFolder, index: OutputIndex, *, read_only: bool = False, skips_unreadable: bool = False
) -> tuple[int, int]:
    """Rebuild the index in one transaction, as ``reindex`` does.

    With ``read_only`` no file is written, and the heads of reviews stay those that the database had.
    """
    result_names = output_folder.list_json_files(RESULTS_FOLDER)
    read_documents = partial(_read_document_rows, output_folder, skips_unreadable=skips_unreadable)
    read_cases = partial(_read_case_rows, output_folder, read_only=read_only, skips_unreadable=skips_unreadable)
    # No review may be saved between reading and rebuilding, nor may the processes write files after a failure.
    with nullcontext() if read_only else hold_case_write_lock(output_folder):
        base_case_chunks = list(_chunk_related_base_cases(list_case_ids_with_packet(output_folder)))
        with _open_chunk_reader(max(len(base_case_chunks), len(result_names) // _CHUNK_SIZE)) as read_chunks:
            index.rebuild(
                read_chunks(read_documents, _chunk(result_names)),
                read_chunks(read_cases, base_case_chunks),
                read_chunks(
                    partial(_read_closing_rows, output_folder),
                    _chunk(output_folder.list_subfolder_names(REVIEWS_FOLDER)),
                ),
            )
        if not read_only:
            index.review_heads.save_missing_or_newer_heads(derive_review_chain_heads(output_folder))
            queue_or_withdraw_attention_checks(
                output_folder, index, format_iso_seconds(utc_now())
            )  # they depend on the ground truth that was just rewritten
        _recompute_deferred_statuses(output_folder, index, read_only=read_only)
    return len(result_names), sum(index.case_list.count_by_status().values())


def _recompute_deferred_statuses(output_folder: OutputFolder, index: OutputIndex, *, read_only: bool) -> None:
    for case_id in [deferral.case_id for deferral in index.deferrals.list_all()]:
        if output_folder.has_file(packet_file_name(case_id)):
            recompute_and_save_case_status(
                output_folder, index, case_id, format_iso_seconds(utc_now()), writes_packet=not read_only
            )


@contextmanager
def _open_chunk_reader(chunk_count: int) -> Iterator[_ReadChunks]:
    """Yield a reader of chunks' rows in order, in parallel if there are many.

    All reading has ended when the context is left.
    """
    process_pool: ProcessPoolExecutor | None = None
    if chunk_count >= _MIN_PARALLEL_CHUNKS:
        # Two processes per processor, since one of them usually waits for the disk.
        process_pool = create_process_pool(min(2 * (os.cpu_count() or 1), _MAX_WORKERS))

    def read_chunks(
        read_chunk: Callable[[Sequence[str]], _IndexRows], chunks: Sequence[Sequence[str]]
    ) -> Iterator[dict[str, Any]]:
        for rows in process_pool.map(read_chunk, chunks) if process_pool else map(read_chunk, chunks):
            yield from rows

    try:
        with process_pool or nullcontext():
            yield read_chunks
    except BrokenProcessPool as error:
        raise StoreError(
            "a process that read the folder was killed; the index is unchanged",
            code="REINDEX-ENDED",
            remedy="Free some memory, and run `evalkit reindex` again.",
        ) from error


def _chunk(names: Sequence[str]) -> list[Sequence[str]]:
    return [names[start : start + _CHUNK_SIZE] for start in range(0, len(names), _CHUNK_SIZE)]


def _chunk_related_base_cases(case_ids: Iterable[str]) -> Iterator[list[str]]:
    """Split base cases into chunks in which related cases stay together.

    Related cases are those that may follow from each other's reviews.
    """
    chunk: list[str] = []
    base_case_ids = sorted(
        {get_base_case_id(case_id) for case_id in case_ids},
        key=lambda base_case_id: (get_write_lock_key(base_case_id), base_case_id),
    )
    for _, family in groupby(base_case_ids, key=get_write_lock_key):
        chunk += family
        if len(chunk) >= _CHUNK_SIZE:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _read_case_rows(
    output_folder: OutputFolder, case_ids: Iterable[str], *, read_only: bool = False, skips_unreadable: bool = False
) -> _IndexRows:
    """Read the rows of base cases and their opinions.

    Unless ``read_only``, the files that follow from reviews are rebuilt.
    """
    read_rows = partial(
        list_index_rows if read_only else rebuild_case_files_and_list_index_rows,
        output_folder,
        check_case_ids_by_doc_id=map_check_case_ids_by_doc_id(output_folder),
    )
    return [row for rows in _read_each(read_rows, case_ids, skips_unreadable) for row in rows]


def _read_document_rows(
    output_folder: OutputFolder, result_names: Iterable[str], *, skips_unreadable: bool = False
) -> _IndexRows:
    return list(_read_each(partial(_read_document_row, output_folder), result_names, skips_unreadable))


def _read_closing_rows(output_folder: OutputFolder, case_ids: Iterable[str]) -> _IndexRows:
    return list(derive_closed_case_rows(output_folder, case_ids))


def _read_each(read: Callable[[str], _Rows], names: Iterable[str], skips_unreadable: bool) -> Iterator[_Rows]:
    for name in names:
        with suppress(StoreError) if skips_unreadable else nullcontext():
            yield read(name)


def _read_document_row(output_folder: OutputFolder, result_name: str) -> dict[str, Any]:
    result = read_result(output_folder, PurePath(result_name).stem)
    outcome = (
        {"file_path": None, "decision": None, "error_code": result.error.code}
        if isinstance(result, DocumentFailure)
        else {
            "file_path": read_source_file_path(output_folder, result.doc_id),
            "decision": result.decision.value,
            "error_code": None,
        }
    )
    return outcome | {
        "doc_id": result.doc_id,
        "sha256": result.sha256,
        "processed_at": result.times.get("finished_at"),
        "fingerprint": result.fingerprint,
        "replaced": False,  # `OutputIndex.rebuild` changes it if a newer document has the same path
    }
