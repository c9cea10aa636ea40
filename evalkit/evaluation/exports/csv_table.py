"""Ground truth as CSV, safe to open in a spreadsheet."""

import csv
import sys
from pathlib import Path
from typing import Any

from evalkit.evaluation.exports.content import ExportContent, require_same_rows
from evalkit.evaluation.private_files import create_private_file, format_cells, format_csv, replace_file_atomically

#: Columns of a CSV with one row per document. Format of ``segments``: ``1-5 Genomic Report; 6-8 Clinical Note``; the
#: parts in ``vouched`` are separated by spaces.
CSV_COLUMNS = (
    "doc_id",
    "ground_truth_source",
    "dominant_type",
    "number_of_segments",
    "segments",
    "patients_in_file",
    "pages_of_others",
    "vouched",
    "reviewer",
    "reviewed_at",
    "review_reason",
    "inclusion_probability",
    "revision",
    "correction_notes",
    "is_simulated",
)


def write_csv(content: ExportContent, target: Path | None) -> int:
    """Write the file, or standard output if None; return the number of rows."""
    column_names, rows = _get_column_names(content), list(content.iterate_rows())
    text = format_csv(column_names, rows)
    if target is None:
        sys.stdout.write(text)
        return len(rows)
    with replace_file_atomically(target) as temporary_path:
        create_private_file(temporary_path, text)
        require_same_rows(_read_csv(temporary_path), [format_cells(column_names, row) for row in rows], target.name)
    return len(rows)


def _get_column_names(content: ExportContent) -> list[str]:
    column_names = list(content.options.column_meanings)
    if content.options.level != "document":
        return column_names
    return [*CSV_COLUMNS, *(name for name in ("split", "text") if name in column_names)]


def _read_csv(path: Path) -> list[Any]:
    with path.open(encoding="utf-8", newline="") as file:
        csv.field_size_limit(sys.maxsize)  # a document's text may exceed the default limit
        return list(csv.DictReader(file))
