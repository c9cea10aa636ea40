"""Ground truth as Parquet, with typed columns."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalkit.evaluation.exports.content import ExportContent, require_same_rows
from evalkit.evaluation.ground_truth_table import GroundTruthRow, get_column_dtype
from evalkit.evaluation.private_files import open_private_file, replace_file_atomically

if TYPE_CHECKING:
    import pyarrow as pa


def write_parquet(content: ExportContent, target: Path) -> int:
    """Write the file; return the number of rows."""
    rows = list(content.iterate_rows())
    with replace_file_atomically(target) as temporary_path:
        _create_parquet(temporary_path, list(content.options.column_meanings), rows)
        require_same_rows(_read_parquet(temporary_path), rows, target.name)
    return len(rows)


def _create_parquet(path: Path, column_names: list[str], rows: list[GroundTruthRow]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(column_name, _get_arrow_type(column_name)) for column_name in column_names])
    with os.fdopen(open_private_file(path), "wb") as file:
        pq.write_table(pa.Table.from_pylist(rows, schema), file)
        file.flush()
        os.fsync(file.fileno())


def _get_arrow_type(column: str) -> pa.DataType:
    import pyarrow as pa

    types: dict[str, pa.DataType] = {"Int64": pa.int64(), "Float64": pa.float64(), "bool": pa.bool_()}
    return types.get(get_column_dtype(column), pa.string())


def _read_parquet(path: Path) -> list[Any]:
    import pyarrow.parquet as pq

    with path.open("rb") as file:
        return list(pq.read_table(file).to_pylist())
