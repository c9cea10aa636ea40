"""Ground truth as a dataset folder: data card, one Parquet file per split part.

``datasets.load_dataset(folder)`` of Hugging Face opens it, with the parts and the types of the columns.
"""

from pathlib import Path

from evalkit.evaluation.data_card import render_data_card
from evalkit.evaluation.exports.content import ExportContent, ExportDocument
from evalkit.evaluation.exports.export_folder import replace_export_folder
from evalkit.evaluation.exports.parquet import create_parquet, get_arrow_type, iterate_typed_rows
from evalkit.evaluation.ground_truth_table import GroundTruthRow
from evalkit.evaluation.private_files import create_private_file

#: Name of the only part if a dataset folder is exported without a split.
_UNDIVIDED_PART = "train"


def write_dataset_folder(content: ExportContent, target: Path) -> int:
    """Write the folder; return the number of rows."""
    documents_by_part = {name: list[ExportDocument]() for name in content.options.share_by_part or [_UNDIVIDED_PART]}
    for document in content.documents:
        documents_by_part[document.split_part or _UNDIVIDED_PART].append(document)
    rows_by_part = {name: list(iterate_typed_rows(content, documents)) for name, documents in documents_by_part.items()}
    card = _render_card(content, documents_by_part, rows_by_part)
    with replace_export_folder(target, "folder") as folder:
        (folder / "data").mkdir(mode=0o700)
        for name, rows in rows_by_part.items():
            file_name = f"{name}.parquet"
            create_parquet(folder / "data" / file_name, list(content.options.column_meanings), rows, file_name)
        create_private_file(folder / "README.md", card)
    return sum(map(len, rows_by_part.values()))


def _render_card(
    content: ExportContent,
    documents_by_part: dict[str, list[ExportDocument]],
    rows_by_part: dict[str, list[GroundTruthRow]],
) -> str:
    options = content.options
    return render_data_card(
        level=options.level,
        documents_by_split={
            name: tuple(document.truth for document in documents) for name, documents in documents_by_part.items()
        },
        row_counts={name: len(rows) for name, rows in rows_by_part.items()},
        column_descriptions={
            name: (str(get_arrow_type(name)), meaning) for name, meaning in options.column_meanings.items()
        },
        unreadable_count=len(content.problems),
        is_split=options.share_by_part is not None,
        is_masked=options.deidentify,
    )
