"""Export ground truth in one of the formats of ``exports.formats``.

Each file is written under a temporary name, read back and compared before it is renamed, so a file with the final name
is always complete and correct. Files have mode 0600 and folders 0700, because notes, quotes and texts may identify
patients.
"""

import os
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from evalkit.core.document_cache import keep_results
from evalkit.errors import StoreError, UsageError, choose_disk_remedy
from evalkit.evaluation.exports.content import ExportOptions, collect_content
from evalkit.evaluation.exports.export_folder import is_earlier_export
from evalkit.evaluation.exports.formats import EXPORT_FORMATS, ExportFormatName
from evalkit.evaluation.ground_truth_table import COLUMNS, TableLevel, require_choice
from evalkit.evaluation.splitting import require_valid_split_shares
from evalkit.settings import Settings
from evalkit.store import open_output_folder


@keep_results()
def export_ground_truth(
    output: Path | str,
    to: Path | str | None,
    *,
    file_format: ExportFormatName = "jsonl",
    level: TableLevel = "document",
    silver: bool = False,
    deidentify: bool = False,
    split: Mapping[str, float] | None = None,
    seed: int = 0,
    with_text: bool = False,
    report_split: Callable[[Mapping[str, int]], None] | None = None,
) -> int:
    """Write an output folder's ground truth to a file or folder; return the row count.

    Args:
        output: The output folder.
        to: The file to write; for a format of folders, a folder that does not exist yet or an earlier export, which is
            replaced. None writes to standard output.
        file_format: ``jsonl`` (at level ``document`` the whole records, :class:`ExportedTruth`), ``csv``, ``parquet``,
            ``folder`` (a data card and one Parquet file per part of the split, which Hugging
            Face's ``load_dataset`` opens), ``labelstudio`` (a folder with a task
            per case, the labelling config and pictures of the pages), ``fhir`` (a folder with a FHIR R4 Bundle per
            file), or ``xlsx`` (a workbook of queue, issues, fields, ground truth and report).
        level: One row per document, segment or page.
        silver: Include AUTO_ACCEPTED records, which no expert has reviewed.
        deidentify: Replace the names of documents and reviewers by pseudonyms and mask free text by patterns (no
            guarantee).
        split: Share of the documents in each part, such as ``{"train": 0.8, "test": 0.2}``. Documents of one patient
            and near copies always stay in the same part.
        seed: The random seed of the split.
        with_text: Add the text of the pages.
        report_split: Called with the number of documents in each part of the split, before anything is written. The
            shares that are reached differ from ``split``, because related documents stay together.

    UsageError if options contradict each other or ``to`` cannot be written; EvalkitError if a written file does not
    read back as intended. If documents had to be left out or are incomplete, all others are written first, then a
    StoreError names the problems.
    """
    require_choice("format", file_format, EXPORT_FORMATS)
    require_choice("level", level, COLUMNS)
    export_format = EXPORT_FORMATS[file_format]
    options = ExportOptions(level, silver, deidentify, split, seed, with_text)
    target = None if to is None else Path(os.path.realpath(to))
    _require_usable_options(options, target, file_format)
    content = collect_content(open_output_folder(output, Settings.load().database), options)
    if split is not None and report_split:
        counts = Counter(document.split_part for document in content.documents)
        report_split({part: counts[part] for part in split})
    try:
        row_count = export_format.write(content, target)
    except OSError as error:
        raise UsageError(
            f"{to} cannot be written ({error.strerror or type(error).__name__})",
            code="EXPORT",
            remedy=choose_disk_remedy(error, "Give another file or folder to write."),
        ) from error
    if content.problems:
        raise StoreError(
            f"{row_count} rows were written, but the export is incomplete: {' '.join(content.problems).removesuffix('.')}",
            code="EXPORT-INCOMPLETE",
            remedy="Solve these problems, then export again.",
        )
    return row_count


def _require_usable_options(options: ExportOptions, target: Path | None, file_format: ExportFormatName) -> None:
    export_format = EXPORT_FORMATS[file_format]
    if options.share_by_part is not None:
        require_valid_split_shares(options.share_by_part)
    unused = {
        "--level": options.level != "document",
        "--split": options.share_by_part is not None,
        "--deidentify": options.deidentify,
        "--with-text": options.with_text,
    }
    if not export_format.is_table and any(unused.values()):
        raise UsageError(
            f"{' and '.join(name for name, is_given in unused.items() if is_given)} cannot be used with format "
            f"{file_format}, which writes documents unchanged and complete",
            code="EXPORT",
            remedy="Leave the option out, or choose another format.",
        )
    if target is None and not export_format.is_text:
        raise UsageError(
            f"format {file_format} cannot be written to standard output",
            code="EXPORT",
            remedy="Give the file or folder to write with --to.",
        )
    if target is None or not target.exists():
        return
    if export_format.is_folder and not is_earlier_export(target):
        raise UsageError(
            f"{target} exists already and is not an earlier export, or contains other files too",
            code="EXPORT",
            remedy="Give a folder that does not exist yet.",
        )
    if not export_format.is_folder and not target.is_file():
        raise UsageError(
            f"{target} exists already and is not a file", code="EXPORT", remedy="Name another file with --to."
        )
