"""Read untrusted files safely: regular files only, non-blocking open, size limit.

Any name may lead to a pipe, which waits for a writer, or to a device, which has no end.
"""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader, FileIO
from pathlib import Path

MAX_FILE_BYTES = 256 * 1024**2
"""Bytes of a file other than a document: a million labels have fewer."""


class NotARegularFile(OSError):
    """The file is a pipe, a socket or a device."""


class FileTooLarge(OSError):
    """The file is larger than the caller allows."""


def open_regular_file(path: Path | str, max_bytes: int) -> FileIO:
    """Open a file without a buffer.

    OSError as of ``open``; NotARegularFile; FileTooLarge by the size that the file system reports.
    """
    file = FileIO(path, opener=_open_nonblocking)
    file_status = os.fstat(file.fileno())
    if stat.S_ISREG(file_status.st_mode) and file_status.st_size <= max_bytes:
        return file
    file.close()
    raise _build_too_large_error(max_bytes) if stat.S_ISREG(file_status.st_mode) else _build_not_regular_error()


def read_regular_file(path: Path | str, max_bytes: int = MAX_FILE_BYTES) -> bytes:
    """Read a whole file. OSError as for ``open_regular_file``.

    FileTooLarge also for a file that reports no size, or grows.
    """
    with BufferedReader(open_regular_file(path, max_bytes)) as file:
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise _build_too_large_error(max_bytes)
    return content


def _open_nonblocking(path: str, flags: int) -> int:
    try:
        return os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket, or a device that is not there
            raise _build_not_regular_error() from error
        raise


def _build_not_regular_error() -> NotARegularFile:
    return NotARegularFile(errno.EINVAL, "it is a pipe or device, not a file")


def _build_too_large_error(max_bytes: int) -> FileTooLarge:
    return FileTooLarge(errno.EFBIG, f"it is larger than {max_bytes // 1024**2} MB")
