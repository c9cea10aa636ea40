"""Name temporary files after their writer, to recognise a killed writer's."""

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
"""Seconds after which a file without its final name is orphaned."""


def generate_process_temp_name() -> str:
    """Generate a unique name that contains this process and machine."""
    return f"{_identify_machine()}.{os.getpid()}-{secrets.token_hex(8)}"


def is_orphaned_temp_file(path: Path) -> bool:
    """Tell whether the writer of that file has ended.

    OSError if its times are unknown. Several machines may work in one folder, each with its own process numbers: for
    another machine's file the age decides.
    """
    name_match = _TEMP_NAME_PATTERN.match(path.name)
    if name_match is None:
        return False
    if name_match[1] == _identify_machine():
        return not _is_running(int(name_match[2]))
    return time.time() - path.lstat().st_mtime > _ORPHAN_AGE_SECONDS


@cache
def _identify_machine() -> str:
    """Identify the process numbering: one boot of a machine, one container."""
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
