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

_TEMP_NAME_PATTERN = re.compile(r"(?:([0-9a-f]{8})\.)?(\d+)-")
_ORPHAN_AGE_SECONDS = 86_400
"""Seconds after which nobody writes a file any more that has no name yet."""


def generate_process_temp_name() -> str:
    """A name that nobody else takes, of this process on this machine."""
    return f"{_identify_machine()}.{os.getpid()}-{secrets.token_hex(8)}"


def is_orphaned_temp_file(path: Path) -> bool:
    """Whether the writer of that file ended without it. OSError where that cannot be seen.

    Several machines may work in one folder, and each numbers its processes for itself: of another's the age tells.
    """
    name_match = _TEMP_NAME_PATTERN.match(path.name)
    if name_match is None:
        return False
    if name_match[1] == _identify_machine():
        return not _is_running(int(name_match[2]))
    return time.time() - path.lstat().st_mtime > _ORPHAN_AGE_SECONDS


@cache
def _identify_machine() -> str:
    """Those whose processes are numbered together: on Linux one start of a machine, and one container in it."""
    try:
        machine_identity = Path("/proc/sys/kernel/random/boot_id").read_text("ascii") + str(
            Path("/proc/self/ns/pid").stat().st_ino
        )
    except OSError:
        machine_identity = platform.node()
    return f"{zlib.crc32(machine_identity.encode()):08x}"


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True
