"""Ground truth as Parquet with typed lists, structs and times.

DuckDB and pandas read them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalkit.evaluation.exports.content import ExportContent, ExportDocument, require_same_rows
from evalkit.evaluation.ground_truth_table import GroundTruthRow, get_column_dtype
from evalkit.evaluation.private_files import open_private_file, replace_file_atomically

if TYPE_CHECKING:
    import pyarrow as pa

#: Columns with few different words, which Parquet stores once each.
_REPEATED_WORDS = ("ground_truth_source", "dominant_type", "type", "reviewer", "review_reason", "split")


def write_parquet(content: ExportContent, target: Path) -> int:
    """Write the file; return the number of rows."""
    rows = list(iterate_typed_rows(content, content.documents))
    with replace_file_atomically(target) as temporary_path:
        create_parquet(temporary_path, list(content.options.column_meanings), rows, target.name)
    return len(rows)


def iterate_typed_rows(content: ExportContent, documents: Sequence[ExportDocument]) -> Iterator[GroundTruthRow]:
    """Iterate over the rows, with lists and times instead of texts."""
    for document in documents:
        record = document.truth.record
        typed_columns = {
            "reviewed_at": _parse_time(record.reviewed_at),
            "vouched": list(record.vouched),
            "segments": [
                {"start_page": start, "end_page": end, "type": None if kind is None else str(kind)}
                for start, end, kind in record.ground_truth_classification.typed_page_ranges
            ],
        }
        for row in content.iterate_rows([document]):
            yield row | {name: value for name, value in typed_columns.items() if name in row}


def _parse_time(text: str) -> datetime | None:
    """Parse a time (ISO 8601); None for anything else, and UTC without a zone."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)


def create_parquet(path: Path, column_names: Sequence[str], rows: list[GroundTruthRow], shown_name: str) -> None:
    """Create a private Parquet file, read it back and compare."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(column_name, get_arrow_type(column_name)) for column_name in column_names])
    coded = [column_name for column_name in column_names if column_name in _REPEATED_WORDS]
    with os.fdopen(open_private_file(path), "wb") as file:
        pq.write_table(pa.Table.from_pylist(rows, schema), file, use_dictionary=coded)
        file.flush()
        os.fsync(file.fileno())
    require_same_rows(_read_parquet(path), rows, shown_name)


def get_arrow_type(column: str) -> pa.DataType:
    """Return the Arrow type of a column."""
    import pyarrow as pa

    if column == "segments":
        return pa.list_(pa.struct([("start_page", pa.int64()), ("end_page", pa.int64()), ("type", pa.string())]))
    own_types = {"vouched": pa.list_(pa.string()), "reviewed_at": pa.timestamp("us", tz="UTC")}
    types: dict[str, pa.DataType] = {"Int64": pa.int64(), "Float64": pa.float64(), "bool": pa.bool_()}
    return own_types.get(column) or types.get(get_column_dtype(column), pa.string())


def _read_parquet(path: Path) -> list[Any]:
    import pyarrow.parquet as pq

    with path.open("rb") as file:
        return list(pq.read_table(file).to_pylist())
