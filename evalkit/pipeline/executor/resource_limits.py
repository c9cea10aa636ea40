"""Resource limits of a reading process, so that a malicious file ends only itself."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_MEGABYTE = 2**20
#: Maximum bytes of a file that a reading process may write; it only writes images for an OCR engine.
_MAX_FILE_BYTES = 1024 * _MEGABYTE


@contextmanager
def limit_process_resources(max_memory_mb: int) -> Iterator[int | None]:
    """Limit address space (0: no limit) and file size, and disable core dumps.

    Yields the effective limit in megabytes, which is lower if the process has a narrower limit already; None if there
    is no limit. The former limits are restored afterwards. Processor time has no limit: the caller has a time limit.
    Child processes are limited as well. MemoryError if the address space is used up.
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
