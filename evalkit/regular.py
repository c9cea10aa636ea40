"""Files that somebody else has put there, read without waiting and within bounds.

Any name may lead to a pipe, which waits for whoever writes, or to a device, which has no end.
"""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader, FileIO
from pathlib import Path

MOST = 256 * 1024**2
"""Bytes of a file beside the documents: labels of a million documents have fewer."""


class NotRegular(OSError):
    """There is a pipe, a socket or a device in the place of the file."""


class TooLarge(OSError):
    """The file is larger than whoever reads it can use."""


def opened(path: Path | str, at_most: int) -> FileIO:
    """The file, without a buffer. OSError as of ``open``; NotRegular; TooLarge where it says that it has more bytes."""
    file = FileIO(path, opener=_at_once)
    found = os.fstat(file.fileno())
    if stat.S_ISREG(found.st_mode) and found.st_size <= at_most:
        return file
    file.close()
    raise _too_large(at_most) if stat.S_ISREG(found.st_mode) else _not_regular()


def read_regular(path: Path | str, at_most: int = MOST) -> bytes:
    """All bytes of the file. OSError as ``opened``; TooLarge also for one that says nothing of its size, or grows."""
    with BufferedReader(opened(path, at_most)) as file:
        data = file.read(at_most + 1)
    if len(data) > at_most:
        raise _too_large(at_most)
    return data


def _at_once(path: str, flags: int) -> int:
    try:
        return os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket, or a device that is not there
            raise _not_regular() from error
        raise


def _not_regular() -> NotRegular:
    return NotRegular(errno.EINVAL, "it is a pipe or device, not a file")


def _too_large(at_most: int) -> TooLarge:
    return TooLarge(errno.EFBIG, f"it is larger than {at_most // 1024**2} MB")
