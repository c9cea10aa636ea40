"""The index, rebuilt from the files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from evalkit.classification.result import SCHEMA_VERSION, DocumentFailure, DocumentResult
from evalkit.documents.bundle import DocumentBundle
from evalkit.errors import NotFound, StoreError
from evalkit.review.ground_truth import reproject
from evalkit.review.lock import writing
from evalkit.review.queue import case_ids, rebuild_rows
from evalkit.store import RESULTS, Files, Index, bundle_name


def reindex(output: Path | str) -> tuple[int, int]:
    """Rebuild the tables of documents and cases; how many of each there are.

    What follows from reviews (ground truth, a packet's status) is made again too, which heals a crash in between.
    StoreError naming a file that cannot be read.
    """
    files = Files(output)
    with files.run_lock():
        for case_id in case_ids(files):
            reproject(files, case_id)
        index = Index(output)
        try:
            with writing(files):  # no review may be saved between reading and rebuilding
                documents = _marked([_row(files, name) for name in files.names(RESULTS)])
                cases = rebuild_rows(files)
                index.rebuild(documents, cases)
        finally:
            index.close()
    return len(documents), len(cases)


def _row(files: Files, name: str) -> dict[str, Any]:
    stored = files.read(name, schema_version=SCHEMA_VERSION)
    try:
        if "error" in stored:
            failure = DocumentFailure.model_validate(stored)
            return _columns(failure.doc_id, failure.sha256, failure.fingerprint, error_code=failure.error.code)
        result = DocumentResult.model_validate(stored)
        bundle = DocumentBundle.model_validate(files.read(bundle_name(result.doc_id)))
    except (ValidationError, NotFound) as error:
        raise StoreError(
            f"{name} or its bundle cannot be read ({type(error).__name__})",
            code="STORE-TORN",
            remedy="Remove it and run the document again.",
        ) from None
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
