"""The index, rebuilt from the files, and the database, moved."""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import Any

from evalkit.classification.result import DocumentFailure
from evalkit.review.claims import show_status
from evalkit.review.lock import writing
from evalkit.review.opinions import reproject, settle_seeded
from evalkit.review.packet import base_of, moment, utc_now
from evalkit.review.queue import case_ids, rebuild_closings, rebuild_rows
from evalkit.review.stored import read_bundle, read_result
from evalkit.store import RESULTS, Files, Index, move


def reindex(output: Path | str) -> tuple[int, int]:
    """Rebuild the tables of documents and cases; how many of each there are.

    What follows from reviews (ground truth, a packet's status) is made again too, which heals a crash in between.
    StoreError naming a file that cannot be read.
    """
    files = Files(output)
    with files.run_lock():
        index = Index(output)
        try:
            return rebuild(files, index)
        finally:
            index.close()


def move_database(output: Path | str, database: str) -> dict[str, int]:
    """Move the folder's ``evalkit.sqlite`` to the PostgreSQL database at that URL; how many rows of each table.

    UsageError, StoreError: everything is as it was then.
    """
    files = Files(output)
    with files.run_lock(), writing(files):
        return move(output, database)


def rebuild(files: Files, index: Index) -> tuple[int, int]:
    """As ``reindex``, for a caller that holds the run's lock."""
    for case_id in sorted({base_of(case_id) for case_id in case_ids(files)}):
        reproject(files, case_id)
    with writing(files):  # no review may be saved between reading and rebuilding
        settle_seeded(files, index, moment(utc_now()))
        documents = _marked([_row(files, name) for name in files.names(RESULTS)])
        cases = rebuild_rows(files)
        index.rebuild(documents, cases, rebuild_closings(files))
        for case_id in index.deferrals.all():
            show_status(files, index, case_id, moment(utc_now()))
    return len(documents), len(cases)


def _row(files: Files, name: str) -> dict[str, Any]:
    result = read_result(files, PurePath(name).stem)
    if isinstance(result, DocumentFailure):
        return _columns(result.doc_id, result.sha256, result.fingerprint, error_code=result.error.code)
    bundle = read_bundle(files, result.doc_id)
    return _columns(
        result.doc_id,
        result.sha256,
        result.fingerprint,
        file_path=bundle.file_path,
        processed_at=result.times["finished_at"],
        decision=result.decision.value,
    )


def _columns(
    doc_id: str,
    sha256: str | None,
    fingerprint: str | None,
    *,
    file_path: str | None = None,
    processed_at: str | None = None,
    decision: str | None = None,
    error_code: str | None = None,
) -> dict[str, Any]:
    return {
        "doc_id": doc_id,
        "sha256": sha256,
        "file_path": file_path,
        "processed_at": processed_at,
        "fingerprint": fingerprint,
        "decision": decision,
        "error_code": error_code,
        "replaced": False,
    }


def _marked(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of several documents from one path, all but the one processed last are marked replaced."""
    newest: dict[str, str] = {}
    for row in rows:
        if row["file_path"]:
            newest[row["file_path"]] = max(newest.get(row["file_path"], ""), row["processed_at"])
    return [
        row | {"replaced": bool(row["file_path"]) and row["processed_at"] < newest[row["file_path"]]} for row in rows
    ]
