"""The table of export formats; a new format is one module and one row."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from evalkit.evaluation.exports.content import ExportContent
from evalkit.evaluation.exports.csv_table import write_csv
from evalkit.evaluation.exports.dataset_folder import write_dataset_folder
from evalkit.evaluation.exports.fhir import write_fhir_folder
from evalkit.evaluation.exports.jsonl import write_jsonl
from evalkit.evaluation.exports.label_studio import write_label_studio_folder
from evalkit.evaluation.exports.parquet import write_parquet
from evalkit.evaluation.exports.workbook import write_workbook

ExportFormatName = Literal["jsonl", "csv", "parquet", "folder", "labelstudio", "fhir", "xlsx"]


@dataclass(frozen=True)
class ExportFormat:
    """Format of an export: its writer, and what the writer needs."""

    write: Callable[[ExportContent, Any], int]
    """Write the file or folder atomically; return the number of rows (for a folder of files: of documents)."""
    is_text: bool = False
    """True if the format can be written to standard output: ``write`` accepts None."""
    is_folder: bool = False
    """True if a folder is written, with ``replace_export_folder``."""
    is_table: bool = True
    """False if the format holds whole documents or the whole folder, so that there is no level, split or text column, and no masking."""


EXPORT_FORMATS: dict[ExportFormatName, ExportFormat] = {
    "jsonl": ExportFormat(write_jsonl, is_text=True),
    "csv": ExportFormat(write_csv, is_text=True),
    "parquet": ExportFormat(write_parquet),
    "folder": ExportFormat(write_dataset_folder, is_folder=True),
    "xlsx": ExportFormat(write_workbook, is_table=False),
    "labelstudio": ExportFormat(write_label_studio_folder, is_folder=True, is_table=False),
    "fhir": ExportFormat(write_fhir_folder, is_folder=True, is_table=False),
}
