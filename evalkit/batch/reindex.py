"""The index, rebuilt from the files, and the database, moved."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import chain, groupby
from pathlib import Path, PurePath
from typing import Any

from loky.process_executor import BrokenProcessPool

from evalkit.batch.reading import processes
from evalkit.classification.result import DocumentFailure, DocumentResult
from evalkit.errors import StoreError
from evalkit.review.claims import show_status
from evalkit.review.lock import stem, writing
from evalkit.review.opinions import reproject, settle_seeded
from evalkit.review.packet import base_of, moment, utc_now
from evalkit.review.queue import case_ids, newest_heads, rebuild_closings
from evalkit.review.seeded import seeded_by_document
from evalkit.review.stored import read_file_path, read_result
from evalkit.store import RESULTS, Files, Index, move

_Rows = list[dict[str, Any]]

_SHARE = 500
"""So many results or cases are read in one go."""
_WORTH_IT = 8
"""Shares: a process takes a second to begin, and to read so many takes longer."""
_WORKERS = 4
"""More would wait for the database, which one process writes."""


def reindex(output: Path | str) -> tuple[int, int]:
    """Rebuild the tables of documents and cases; how many of each there are.

    What follows from reviews (ground truth, a packet's status) is made again too, which heals a crash in between.
    StoreError naming a file that cannot be read.
    """
    files = Files(output)
    with files.run_lock(), Index(output) as index:
        return rebuild(files, index)


def move_database(output: Path | str, database: str) -> dict[str, int]:
    """Move the folder's ``evalkit.sqlite`` to the PostgreSQL database at that URL; how many rows of each table.

    UsageError, StoreError: everything is as it was then.
    """
    files = Files(output)
    with files.run_lock(), writing(files):
        return move(output, database)


def rebuild(files: Files, index: Index) -> tuple[int, int]:
    """As ``reindex``, for a caller that holds the run's lock."""
    results = files.names(RESULTS)
    with writing(files):  # no review may be saved between reading and rebuilding
        shares = [results[at : at + _SHARE] for at in range(0, len(results), _SHARE)]
        # Ended while nobody else may write: of a rebuild that fails, other processes may be making files just then.
        with (
            closing(_read(partial(_documents, files), shares)) as documents,
            closing(_read(partial(_settled, files), list(_families(case_ids(files))))) as cases,
        ):
            index.rebuild(documents, cases, rebuild_closings(files))
        index.heads.catch_up(newest_heads(files))
        settle_seeded(files, index, moment(utc_now()))  # by the ground truth as it is only now
        for case_id in index.deferrals.all():
            show_status(files, index, case_id, moment(utc_now()))
    return len(results), sum(index.case_list.by_status().values())


def _read(
    read: Callable[[Sequence[str]], _Rows], shares: Sequence[Sequence[str]]
) -> Generator[dict[str, Any], None, None]:
    """The rows of all shares, one share after the other; read by several processes where it is worth to begin some."""
    if len(shares) < _WORTH_IT:
        yield from chain.from_iterable(map(read, shares))
        return
    try:
        # Two for each processor: one of them waits for the disk.
        with processes(min(2 * (os.cpu_count() or 1), _WORKERS)) as pool:
            yield from chain.from_iterable(pool.map(read, shares))
    except BrokenProcessPool as error:
        raise StoreError(
            "a process that read the folder for the index was ended from outside; the index is as it was",
            code="REINDEX-ENDED",
            remedy="See that there is memory left, and run `evalkit reindex` again.",
        ) from error


def _families(case_ids: Iterable[str]) -> Iterator[list[str]]:
    """The base cases in shares; those that can follow from each other's reviews are in one."""
    share: list[str] = []
    bases = sorted({base_of(case_id) for case_id in case_ids}, key=lambda one: (stem(one), one))
    for _, family in groupby(bases, key=stem):
        share += family
        if len(share) >= _SHARE:
            yield share
            share = []
    if share:
        yield share


def _settled(files: Files, case_ids: Sequence[str]) -> _Rows:
    """The rows of these base cases and of what is about them; what follows from their reviews is made again before."""
    seeded = seeded_by_document(files)
    return [row for case_id in case_ids for row in reproject(files, case_id, seeded)]


def _documents(files: Files, names: Sequence[str]) -> _Rows:
    return [_row(files, name) for name in names]


def _row(files: Files, name: str) -> dict[str, Any]:
    result = read_result(files, PurePath(name).stem)
    if isinstance(result, DocumentFailure):
        return _columns(result, error_code=result.error.code)
    return _columns(result, file_path=read_file_path(files, result.doc_id), decision=result.decision.value)


def _columns(
    result: DocumentResult | DocumentFailure,
    *,
    file_path: str | None = None,
    decision: str | None = None,
    error_code: str | None = None,
) -> dict[str, Any]:
    return {
        "doc_id": result.doc_id,
        "sha256": result.sha256,
        "file_path": file_path,
        "processed_at": result.times.get("finished_at"),
        "fingerprint": result.fingerprint,
        "decision": decision,
        "error_code": error_code,
        "replaced": False,  # unless there is a newer one from its path
    }
