"""Rebuild of the index from the files, and move of the database."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import chain, groupby
from pathlib import PurePath
from typing import Any

from loky.process_executor import BrokenProcessPool

from evalkit.classification.document_result import DocumentFailure
from evalkit.core.clocks import format_iso_seconds, utc_now
from evalkit.errors import StoreError
from evalkit.pipeline.executor.reader_pool import create_process_pool
from evalkit.review.attention_checks import map_check_case_ids_by_doc_id
from evalkit.review.claiming import recompute_and_save_case_status
from evalkit.review.loaders import read_result, read_source_file_path
from evalkit.review.opinions import queue_or_withdraw_attention_checks, rebuild_case_files_and_list_index_rows
from evalkit.review.packet import get_base_case_id
from evalkit.review.queue import derive_closed_case_rows, derive_review_chain_heads, list_case_ids_with_packet
from evalkit.review.write_lock import get_write_lock_key, hold_case_write_lock
from evalkit.store import RESULTS_FOLDER, OutputFolder, OutputIndex, migrate_sqlite_to_postgresql

_IndexRows = list[dict[str, Any]]

#: Number of results or cases per chunk.
_CHUNK_SIZE = 500
#: Number of chunks from which further processes pay off: a process takes a second to start.
_MIN_PARALLEL_CHUNKS = 8
#: Maximum number of processes; more would wait for the one that writes the database.
_MAX_WORKERS = 4


def reindex(output_folder: OutputFolder) -> tuple[int, int]:
    """Rebuild the index from the files; return the numbers of documents and cases.

    Files derived from reviews (ground truth, a packet's status) are rewritten too, which repairs them after a crash.
    StoreError naming a file that cannot be read.
    """
    with output_folder.hold_run_lock(), OutputIndex(output_folder) as index:
        return rebuild_and_count_documents_and_cases(output_folder, index)


def move_database(output_folder: OutputFolder, database_url: str) -> dict[str, int]:
    """Move ``evalkit.sqlite`` to PostgreSQL; return the number of moved rows by table.

    UsageError, StoreError: nothing has changed then.
    """
    with output_folder.hold_run_lock(), hold_case_write_lock(output_folder):
        return migrate_sqlite_to_postgresql(output_folder, database_url)


def rebuild_and_count_documents_and_cases(output_folder: OutputFolder, index: OutputIndex) -> tuple[int, int]:
    """Rebuild the index as ``reindex`` does, for a caller that holds the run lock."""
    result_names = output_folder.list_json_files(RESULTS_FOLDER)
    with hold_case_write_lock(output_folder):  # no review may be saved between reading and rebuilding
        chunks = [result_names[start : start + _CHUNK_SIZE] for start in range(0, len(result_names), _CHUNK_SIZE)]
        # Closed under the lock: after a failure, its processes may still be writing files.
        with (
            closing(_read_rows_in_parallel(partial(_read_document_rows, output_folder), chunks)) as document_rows,
            closing(
                _read_rows_in_parallel(
                    partial(_rebuild_cases_and_list_rows, output_folder),
                    list(_chunk_related_base_cases(list_case_ids_with_packet(output_folder))),
                )
            ) as case_rows,
        ):
            index.rebuild(document_rows, case_rows, derive_closed_case_rows(output_folder))
        index.review_heads.save_missing_or_newer_heads(derive_review_chain_heads(output_folder))
        queue_or_withdraw_attention_checks(
            output_folder, index, format_iso_seconds(utc_now())
        )  # they depend on the ground truth that was just rewritten
        for case_id in [deferral.case_id for deferral in index.deferrals.list_all()]:
            recompute_and_save_case_status(output_folder, index, case_id, format_iso_seconds(utc_now()))
    return len(result_names), sum(index.case_list.count_by_status().values())


def _read_rows_in_parallel(
    read_chunk: Callable[[Sequence[str]], _IndexRows], chunks: Sequence[Sequence[str]]
) -> Generator[dict[str, Any], None, None]:
    """Yield the rows of all chunks in order, read in parallel if there are many."""
    if len(chunks) < _MIN_PARALLEL_CHUNKS:
        yield from chain.from_iterable(map(read_chunk, chunks))
        return
    try:
        # Two processes per processor, since one of them usually waits for the disk.
        with create_process_pool(min(2 * (os.cpu_count() or 1), _MAX_WORKERS)) as process_pool:
            yield from chain.from_iterable(process_pool.map(read_chunk, chunks))
    except BrokenProcessPool as error:
        raise StoreError(
            "a process that read the folder was killed; the index is unchanged",
            code="REINDEX-ENDED",
            remedy="Free some memory, and run `evalkit reindex` again.",
        ) from error


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


def _rebuild_cases_and_list_rows(output_folder: OutputFolder, case_ids: Sequence[str]) -> _IndexRows:
    checks_by_document = map_check_case_ids_by_doc_id(output_folder)
    return [
        row
        for case_id in case_ids
        for row in rebuild_case_files_and_list_index_rows(output_folder, case_id, checks_by_document)
    ]


def _read_document_rows(output_folder: OutputFolder, result_names: Sequence[str]) -> _IndexRows:
    return [_read_document_row(output_folder, result_name) for result_name in result_names]


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
