"""Bytes and SHA-256 of a source file, with a size limit and clear errors."""

from __future__ import annotations

import hashlib
from pathlib import Path

from evalkit.core.safe_io import FileTooLarge, NotARegularFile, open_regular_file, read_regular_file
from evalkit.errors import DocumentError

MAX_FILE_BYTES = 512 * 1024 * 1024


def read_source_file(path: Path) -> bytes:
    """Return all bytes of a file. DocumentError: READER-UNREADABLE, READER-TOO-LARGE."""
    try:
        return read_regular_file(path, MAX_FILE_BYTES)
    except OSError as error:
        raise build_read_error(path, error) from error


def hash_source_file(path: Path) -> str:
    """Return a file's SHA-256 as 64 hex digits, without loading the whole file.

    DocumentError: READER-UNREADABLE, READER-TOO-LARGE.
    """
    try:
        with open_regular_file(path, MAX_FILE_BYTES) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise build_read_error(path, error) from error


def build_read_error(path: Path, error: OSError) -> DocumentError:
    """Return the DocumentError for an OSError that opening or reading a file raised.

    Its code is READER-TOO-LARGE or READER-UNREADABLE.
    """
    if isinstance(error, FileTooLarge):
        return DocumentError(
            f"{path.name} is larger than {MAX_FILE_BYTES // 1024**2} MB",
            code="READER-TOO-LARGE",
            remedy="Split the file into smaller files, or export it with smaller images.",
        )
    reason = {
        FileNotFoundError: "does not exist",
        IsADirectoryError: "is a folder",
        NotARegularFile: "is a pipe or device, not a file",
        PermissionError: "may not be read by this user",
    }.get(type(error), "could not be read from the disk")
    return DocumentError(
        f"{path.name} {reason}",
        code="READER-UNREADABLE",
        remedy="Check that the file exists and that you may open it, then run again.",
    )
