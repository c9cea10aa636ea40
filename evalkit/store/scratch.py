"""What is written before it has its name: who writes it stands in its own, so that what a killed one left can be told."""

from __future__ import annotations

import os
import platform
import re
import secrets
import time
import zlib
from functools import cache
from pathlib import Path

_WRITTEN_BY = re.compile(r"(?:([0-9a-f]{8})\.)?(\d+)-")
_ABANDONED = 86_400
"""Seconds after which nobody writes a file any more that has no name yet."""


def scratch_name() -> str:
    """A name that nobody else takes, of this process on this machine."""
    return f"{_machine()}.{os.getpid()}-{secrets.token_hex(8)}"


def is_left(path: Path) -> bool:
    """Whether the writer of that file ended without it. OSError where that cannot be seen.

    Several machines may work in one folder, and each numbers its processes for itself: of another's the age tells.
    """
    written = _WRITTEN_BY.match(path.name)
    if written is None:
        return False
    if written[1] == _machine():
        return not _alive(int(written[2]))
    return time.time() - path.lstat().st_mtime > _ABANDONED


@cache
def _machine() -> str:
    """Those whose processes are numbered together: on Linux one start of a machine, and one container in it."""
    try:
        told = Path("/proc/sys/kernel/random/boot_id").read_text("ascii") + str(Path("/proc/self/ns/pid").stat().st_ino)
    except OSError:
        told = platform.node()
    return f"{zlib.crc32(told.encode()):08x}"


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True
