"""Names of temporary files, by which the files of a killed process are recognised."""

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
#: Seconds after which another machine's temporary file counts as left behind.
_ORPHAN_AGE_SECONDS = 86_400


def generate_process_temp_name() -> str:
    """Generate a unique file name that identifies this machine and process."""
    return f"{_identify_machine()}.{os.getpid()}-{secrets.token_hex(8)}"


def is_orphaned_temp_file(path: Path) -> bool:
    """Return True if the process that wrote a temporary file has ended.

    OSError if the file's times are unknown. Several machines may work in one folder, each with its own process numbers:
    for another machine's file the age decides.
    """
    name_match = _TEMP_NAME_PATTERN.match(path.name)
    if name_match is None:
        return False
    if name_match[1] == _identify_machine():
        return not _is_running(int(name_match[2]))
    return time.time() - path.lstat().st_mtime > _ORPHAN_AGE_SECONDS


@cache
def _identify_machine() -> str:
    """Return a hash that identifies this boot of the machine, or this container."""
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
