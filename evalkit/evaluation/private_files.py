"""Files only their owner may read (0600, folders 0700), replaced atomically.

Everything that evalkit writes for a person may identify patients.
"""

from __future__ import annotations

import csv
import json
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalkit.core.data_frames import convert_to_records
from evalkit.core.spreadsheets import escape_formula
from evalkit.errors import UsageError, choose_disk_remedy

if TYPE_CHECKING:
    import pandas as pd


def write_private_csv(table: pd.DataFrame, csv_path: Path | str) -> None:
    """Write a table as a private CSV file (0600), safe to open in a spreadsheet.

    Text that a spreadsheet would run as a formula gets a leading apostrophe. UsageError if the file cannot be written.
    """
    write_private_file(format_csv(list(map(str, table.columns)), convert_to_records(table)), csv_path)


def write_private_json(value: Any, json_path: Path | str) -> None:
    """Write a value as a private JSON file (0600). UsageError if it cannot be written."""
    write_private_file(json.dumps(value, ensure_ascii=False, indent=2) + "\n", json_path)


def write_private_file(
    content: str | bytes, path: Path | str, *, error_code: str = "EXPORT", remedy: str = "Give another file to write."
) -> None:
    """Write a private file (0600) atomically; text as UTF-8.

    UsageError with ``error_code`` and ``remedy`` if it cannot be written.
    """
    try:
        with replace_file_atomically(Path(path)) as temporary_path:
            create_private_file(temporary_path, content)
    except OSError as error:
        raise UsageError(
            f"{path} cannot be written ({error.strerror})", code=error_code, remedy=choose_disk_remedy(error, remedy)
        ) from error


def format_csv(column_names: Sequence[str], records: Iterable[Mapping[str, Any]]) -> str:
    """Format rows as CSV with a header, safe to open in a spreadsheet."""
    buffer = StringIO(newline="")
    writer = csv.DictWriter(buffer, column_names)
    writer.writeheader()
    writer.writerows(format_cells(column_names, row) for row in records)
    return buffer.getvalue()


def format_cells(column_names: Iterable[str], row: Mapping[str, Any]) -> dict[str, str]:
    """Format a row's values as text cells without formulas; None becomes empty."""
    return {
        column_name: escape_formula(cell)
        if isinstance(cell := row[column_name], str)
        else ""
        if cell is None
        else str(cell)
        for column_name in column_names
    }


def create_private_file(path: Path, content: str | bytes) -> None:
    """Create a new private file (0600), text as UTF-8, and sync it to disk.

    OSError if the file exists or cannot be created.
    """
    with os.fdopen(open_private_file(path), "wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
        file.flush()
        os.fsync(file.fileno())


def open_private_file(path: Path) -> int:
    """Create a private file; return its descriptor. OSError if the file exists."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)


@contextmanager
def replace_file_atomically(replaced_path: Path) -> Iterator[Path]:
    """Yield a temporary path that replaces ``replaced_path`` when the block ends.

    If the block raises, the temporary file is removed and ``replaced_path`` stays as it was.
    """
    temporary_path = replaced_path.with_name(f".evalkit-{os.getpid()}-{secrets.token_hex(8)}")
    try:
        yield temporary_path
        os.replace(temporary_path, replaced_path)
    finally:
        temporary_path.unlink(missing_ok=True)


@contextmanager
def replace_folder_atomically(replaced_path: Path) -> Iterator[Path]:
    """Yield a new private folder that replaces ``replaced_path`` when the block ends.

    If the block raises, the new folder is removed and ``replaced_path`` stays as it was.
    """
    temporary_folder = replaced_path.with_name(f".evalkit-{os.getpid()}-{secrets.token_hex(8)}")
    try:
        temporary_folder.mkdir(mode=0o700)
        yield temporary_folder
        _replace_folder(temporary_folder, replaced_path)
    finally:
        shutil.rmtree(temporary_folder, ignore_errors=True)


def _replace_folder(temporary_folder: Path, target: Path) -> None:
    old_folder = temporary_folder.with_name(f"{temporary_folder.name}-old")
    if not target.exists():
        temporary_folder.rename(target)
        return
    target.rename(old_folder)
    try:
        temporary_folder.rename(target)
    except OSError:
        old_folder.rename(target)
        raise
    shutil.rmtree(old_folder)
