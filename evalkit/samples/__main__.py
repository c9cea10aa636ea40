"""``python -m evalkit.samples SAMPLES OUTPUT``: check a run of the demo."""

import json
import sys
from pathlib import Path
from typing import Any

from evalkit.classification.document_result import SCHEMA_VERSION, DocumentResult
from evalkit.errors import EvalkitError
from evalkit.issue import IssueSeverity
from evalkit.store import OutputFolder, open_output_folder, result_file_name


def describe_wrong_decisions(samples_folder: Path, output_path: Path) -> list[str]:
    """Return a line for each document whose decision differs from ``expected.json``."""
    expected_rows = json.loads((samples_folder / "expected.json").read_text("utf-8"))["documents"]
    result_by_doc_id = {
        doc_id: _load_result_or_error_code(open_output_folder(output_path), doc_id) for doc_id in expected_rows
    }
    expected_by_doc_id = {
        doc_id: _select_expected_row(row, result_by_doc_id[doc_id]) for doc_id, row in expected_rows.items()
    }
    actual_by_doc_id = {doc_id: _summarise_result(result) for doc_id, result in result_by_doc_id.items()}
    return [
        f"{doc_id}: expected {expected_by_doc_id[doc_id]}, found {actual_by_doc_id[doc_id]}"
        for doc_id in sorted(expected_by_doc_id)
        if expected_by_doc_id[doc_id] != actual_by_doc_id[doc_id]
    ]


def _select_expected_row(row: dict[str, Any], result: DocumentResult | str) -> dict[str, Any]:
    """Return the expected row, or its ``without_ocr`` if OCR did not read the file."""
    has_ocr = isinstance(result, DocumentResult) and ", " in result.reader
    row_without_ocr = row.get("without_ocr")
    return (
        row_without_ocr
        if row_without_ocr and not has_ocr
        else {key: value for key, value in row.items() if key != "without_ocr"}
    )


def _load_result_or_error_code(output_folder: OutputFolder, doc_id: str) -> DocumentResult | str:
    """Load the document's result, or return the error code if there is none."""
    try:
        stored_json = output_folder.read_json(result_file_name(doc_id), max_schema_version=SCHEMA_VERSION)
    except EvalkitError as error:
        return error.code
    return str(stored_json["error"]["code"]) if "error" in stored_json else DocumentResult.model_validate(stored_json)


def _summarise_result(result: DocumentResult | str) -> dict[str, Any]:
    if isinstance(result, str):
        return {"error": result}
    classification = result.classification
    return {
        "decision": result.decision.value,
        "decision_rule": result.decision_rule,
        "attempts": len(result.attempts),
        "dominant_type": classification.dominant_type_overall if classification else None,
        "codes": sorted({issue.code for issue in result.open_issues if issue.severity is not IssueSeverity.MINOR}),
    }


def main(samples_folder: Path, output_path: Path) -> int:
    """Print the documents with an unexpected decision, and their number.

    Return the exit status: 1 if any decision differs, else 0.
    """
    wrong_decisions = describe_wrong_decisions(samples_folder, output_path)
    total = len(json.loads((samples_folder / "expected.json").read_text("utf-8"))["documents"])
    sys.stdout.write("".join(f"{line}\n" for line in wrong_decisions))
    sys.stdout.write(
        f"{total - len(wrong_decisions)} of {total} documents decided as {samples_folder / 'expected.json'} says\n"
    )
    return 1 if wrong_decisions else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
