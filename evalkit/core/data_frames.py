"""Tables whose column types do not depend on their rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

#: Dtype of text. It is stored as Python's own strings: file names may have characters that Arrow cannot store.
TEXT = "string[python]"
#: Key of a table's ``attrs`` under which the output folder is found that its documents are in.
OUTPUT_ATTRIBUTE = "output"


def build_frame(
    rows: Iterable[Mapping[str, Any]], dtype_by_column: Mapping[str, str], *, output: Path | str | None = None
) -> pd.DataFrame:
    """Build a table with these columns and dtypes, even if there are no rows.

    ``output`` is the folder of the documents in the table: ``evalkit.show`` opens them there.
    """
    import pandas as pd

    frame = pd.DataFrame(list(rows), columns=list(dtype_by_column), dtype=object).astype(dict(dtype_by_column))
    if output is not None:
        frame.attrs[OUTPUT_ATTRIBUTE] = str(output)
    return frame


def convert_to_records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Convert a table to a list of dictionaries, with None for missing values."""
    object_frame = frame.astype(object)
    return [
        {str(column_name): value for column_name, value in row.items()}
        for row in object_frame.where(object_frame.notna(), None).to_dict("records")
    ]
