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
    expected = json.loads((folder / "expected.json").read_text("utf-8"))["documents"]
    found = {doc_id: _found(Files(output), doc_id) for doc_id in expected}
    return [
        f"{doc_id}: expected {expected[doc_id]}, found {found[doc_id]}"
        for doc_id in sorted(expected)
        if expected[doc_id] != found[doc_id]
    ]


def _found(files: Files, doc_id: str) -> dict[str, Any]:
    try:
        stored = files.read(result_name(doc_id), schema_version=SCHEMA_VERSION)
    except EvalkitError as error:
        return {"error": error.code}
    if "error" in stored:
        return {"error": stored["error"]["code"]}
    result = DocumentResult.model_validate(stored)
    answer = result.classification
    weighty = {issue.code for issue in result.open_issues if issue.severity is not IssueSeverity.MINOR}
    return {
        "decision": result.decision.value,
        "decision_rule": result.decision_rule,
        "attempts": len(result.attempts),
        "dominant_type": answer.dominant_type_overall if answer else None,
        "codes": sorted(weighty),
    }
