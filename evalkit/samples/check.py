"""Whether a run decided the demo's documents as it should."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from evalkit.classification.result import SCHEMA_VERSION, DocumentResult
from evalkit.errors import EvalkitError
from evalkit.issue import IssueSeverity
from evalkit.store import Files, result_name


def differences(folder: Path, output: Path) -> list[str]:
    """One line per document of ``{folder}/expected.json`` that was decided otherwise in ``output``."""
    rows = json.loads((folder / "expected.json").read_text("utf-8"))["documents"]
    results = {doc_id: _result(Files(output), doc_id) for doc_id in rows}
    expected = {doc_id: _expected(row, results[doc_id]) for doc_id, row in rows.items()}
    found = {doc_id: _found(result) for doc_id, result in results.items()}
    return [
        f"{doc_id}: expected {expected[doc_id]}, found {found[doc_id]}"
        for doc_id in sorted(expected)
        if expected[doc_id] != found[doc_id]
    ]


def _expected(row: dict[str, Any], result: DocumentResult | str) -> dict[str, Any]:
    """The row, or what it says of readings without OCR if this was one."""
    has_ocr = isinstance(result, DocumentResult) and ", " in result.reader
    other = row.get("without_ocr")
    return other if other and not has_ocr else {key: value for key, value in row.items() if key != "without_ocr"}


def _result(files: Files, doc_id: str) -> DocumentResult | str:
    """The document's result, or the code of what went wrong."""
    try:
        stored = files.read(result_name(doc_id), schema_version=SCHEMA_VERSION)
    except EvalkitError as error:
        return error.code
    return str(stored["error"]["code"]) if "error" in stored else DocumentResult.model_validate(stored)


def _found(result: DocumentResult | str) -> dict[str, Any]:
    if isinstance(result, str):
        return {"error": result}
    answer = result.classification
    weighty = {issue.code for issue in result.open_issues if issue.severity is not IssueSeverity.MINOR}
    return {
        "decision": result.decision.value,
        "decision_rule": result.decision_rule,
        "attempts": len(result.attempts),
        "dominant_type": answer.dominant_type_overall if answer else None,
        "codes": sorted(weighty),
    }
