"""What a process may take of the machine while it reads one file: a bomb ends its own reading, and nothing else."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_MEGABYTE = 2**20
_LARGEST_FILE = 1024 * _MEGABYTE
"""What a reader may write; it writes nothing but pictures for an OCR engine."""


@contextmanager
def confined(memory_mb: int) -> Iterator[int | None]:
    """So much address space at most (0: as much as there is), no large files, and no memory written to disk in a crash.

    It gives the megabytes that hold, fewer where the process has a narrower limit already; None: there is no limit.

    Afterwards all is as it was. Processor time has no limit of its own: whoever waits for the file gives up on it. Programs
    that are started meanwhile are confined as well. MemoryError where the space is used up.
    """
    wanted = {resource.RLIMIT_CORE: 0, resource.RLIMIT_FSIZE: _LARGEST_FILE}
    if memory_mb:
        wanted[resource.RLIMIT_AS] = memory_mb * _MEGABYTE
    before = {kind: resource.getrlimit(kind) for kind in wanted}
    try:
        for kind, limit in wanted.items():
            _set(kind, limit, before[kind])
        held = resource.getrlimit(resource.RLIMIT_AS)[0]
        yield None if held == resource.RLIM_INFINITY else held // _MEGABYTE
    finally:
        for kind, limits in before.items():
            with suppress(ValueError, OSError):
                resource.setrlimit(kind, limits)


def _set(kind: int, limit: int, before: tuple[int, int]) -> None:
    narrowest = min((one for one in (limit, *before) if one != resource.RLIM_INFINITY), default=limit)
    with suppress(ValueError, OSError):  # not every system has every limit
        resource.setrlimit(kind, (narrowest, before[1]))
