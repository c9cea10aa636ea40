"""Choice of the executor that the settings name."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from evalkit.core.install_hint import format_install_hint
from evalkit.errors import UsageError
from evalkit.pipeline.executor.protocol import Executor, ReaderConfig
from evalkit.pipeline.executor.reader_pool import ReaderPool
from evalkit.settings import LOCAL_EXECUTOR, Settings

if TYPE_CHECKING:
    from evalkit.pipeline.executor.dask import DaskCluster

#: Total bytes of documents below which a single process reads all of them. A second process costs 0.4 s of processor
#: time to start and saves half of the reading: 16 ms for a small text file of two pages, 8 ms for a page of a real one,
#: so that it pays from some 40 small files. A scanned page has 30 KiB and more and takes a second: below 64 KiB at most
#: two or three of those wait for each other. Measured by ``tests/benchmarks/executing.py``.
_PARALLEL_THRESHOLD_BYTES = 64 * 1024


def choose_worker_count(paths: Sequence[Path], max_workers: int) -> int:
    """Return the number of processes worth starting to read these files, at least 1.

    Even a single document is read in another process: a file that crashes its reader must not end the run.
    """
    total_bytes = 0
    for path in paths:
        with suppress(OSError):  # reading it reports the error
            total_bytes += path.stat().st_size
        if total_bytes >= _PARALLEL_THRESHOLD_BYTES:
            return max(min(max_workers, len(paths)), 1)
    return 1


@asynccontextmanager
async def open_executor(
    settings: Settings, reader_config: ReaderConfig, paths: Sequence[Path], *, decides_on_workers: bool
) -> AsyncIterator[Executor]:
    """Open the executor that the settings name: a local pool or a Dask cluster.

    ``decides_on_workers``: a cluster's workers may decide, too. UsageError if a cluster cannot be used; ExecutorError
    if the cluster is lost meanwhile.
    """
    if settings.executor == LOCAL_EXECUTOR:
        max_workers = _get_max_workers(settings)
        worker_count = choose_worker_count(paths, max_workers)
        with ReaderPool(worker_count, reader_config, page_worker_count=max_workers) as reader_pool:
            yield reader_pool
        return
    async with create_cluster(settings, reader_config, decides_on_workers=decides_on_workers) as cluster:
        yield cluster


def create_cluster(settings: Settings, reader_config: ReaderConfig, *, decides_on_workers: bool) -> DaskCluster:
    """Create the Dask cluster that the settings name, without connecting yet.

    UsageError if Dask is not installed, or if Dask's own settings are broken.
    """
    try:
        from evalkit.pipeline.executor.dask import DaskCluster
    except ImportError as error:
        raise UsageError(
            "Dask is not installed",
            code="EXECUTOR-MISSING",
            remedy=f"Run {format_install_hint('dask')}, or use --executor local.",
        ) from error
    except ValueError as error:
        raise UsageError(
            "Dask's own settings cannot be read",
            code="EXECUTOR-SETTINGS",
            remedy="Correct the YAML files in ~/.config/dask, or in the folder that DASK_CONFIG names.",
        ) from error
    return DaskCluster(
        settings.executor,
        reader_config,
        local_workers=_get_max_workers(settings),
        decides_on_workers=decides_on_workers,
    )


def _get_max_workers(settings: Settings) -> int:
    return settings.workers or os.cpu_count() or 1
