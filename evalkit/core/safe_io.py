"""Safe reading of untrusted files: regular files, non-blocking open, size limit.

A file name may lead to a pipe, where opening waits for a writer, or to a device, which never ends.
"""

import errno
import os
import stat
from io import BufferedReader, FileIO
from pathlib import Path

#: Maximum bytes of an input file that is not a document; a file with a million labels is smaller.
MAX_FILE_BYTES = 256 * 1024**2


class NotARegularFile(OSError):
    """Error for a file that is a pipe, a socket or a device."""


class FileTooLarge(OSError):
    """Error for a file that is larger than the caller allows."""


def open_regular_file(path: Path | str, max_bytes: int) -> FileIO:
    """Open a regular file of at most ``max_bytes`` for reading, without a buffer.

    Raise OSError as ``open`` does; NotARegularFile; FileTooLarge if the file system reports a larger size.
    """
    file = FileIO(path, opener=_open_nonblocking)
    file_status = os.fstat(file.fileno())
    if stat.S_ISREG(file_status.st_mode) and file_status.st_size <= max_bytes:
        return file
    file.close()
    raise _build_too_large_error(max_bytes) if stat.S_ISREG(file_status.st_mode) else _build_not_regular_error()


def read_regular_file(path: Path | str, max_bytes: int = MAX_FILE_BYTES) -> bytes:
    """Read a whole regular file of at most ``max_bytes``.

    Raise OSError as ``open_regular_file`` does; FileTooLarge also if the file reports no size, or grows.
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
        if error.errno == errno.ENXIO:  # a socket, or a device that does not exist
            raise _build_not_regular_error() from error
        raise


def _build_not_regular_error() -> NotARegularFile:
    return NotARegularFile(errno.EINVAL, "it is a pipe or device, not a file")


def _build_too_large_error(max_bytes: int) -> FileTooLarge:
    return FileTooLarge(errno.EFBIG, f"it is larger than {max_bytes // 1024**2} MB")
