"""What a process may take of the machine while it reads one file: a bomb ends its own reading, and nothing else."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_MEGABYTE = 2**20
_MAX_FILE_BYTES = 1024 * _MEGABYTE
"""What a reader may write; it writes nothing but pictures for an OCR engine."""


@contextmanager
def limit_process_resources(max_memory_mb: int) -> Iterator[int | None]:
    """So much address space at most (0: as much as there is), no large files, and no memory written to disk in a crash.

    It gives the megabytes that hold, fewer where the process has a narrower limit already; None: there is no limit.

    Afterwards all is as it was. Processor time has no limit of its own: whoever waits for the file gives up on it. Programs
    that are started meanwhile are confined as well. MemoryError where the space is used up.
    """
    wanted_limits = {resource.RLIMIT_CORE: 0, resource.RLIMIT_FSIZE: _MAX_FILE_BYTES}
    if max_memory_mb:
        wanted_limits[resource.RLIMIT_AS] = max_memory_mb * _MEGABYTE
    limits_before = {resource_kind: resource.getrlimit(resource_kind) for resource_kind in wanted_limits}
    try:
        for resource_kind, limit in wanted_limits.items():
            _set_limit(resource_kind, limit, limits_before[resource_kind])
        effective_limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        yield None if effective_limit == resource.RLIM_INFINITY else effective_limit // _MEGABYTE
    finally:
        for resource_kind, limits in limits_before.items():
            with suppress(ValueError, OSError):
                resource.setrlimit(resource_kind, limits)


def _set_limit(resource_kind: int, limit: int, limits_before: tuple[int, int]) -> None:
    narrowest = min(
        (candidate for candidate in (limit, *limits_before) if candidate != resource.RLIM_INFINITY), default=limit
    )
    with suppress(ValueError, OSError):  # not every system has every limit
        resource.setrlimit(resource_kind, (narrowest, limits_before[1]))
