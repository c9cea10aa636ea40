"""Where documents are read: `PYTHONPATH=tests .venv/bin/python tests/benchmarks/executing.py [--rounds N]`.

One Dask worker beside two on drawn scans (tesseract, one thread each): wall time, the load of the machine beside it. And
below how much is a second reading process not worth its start? Processor time. Medians.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measuring import TIMESTAMP, Row
from benchmarks.reading import draw_text
from documents.drawing import lines
from documents.scanning import NOTE, printed, scan
from rich.console import Console
from rich.table import Table
from system.dask.clusters import Started, cluster

from evalkit.pipeline.executor.dask import DaskCluster
from evalkit.pipeline.executor.protocol import Executor, ReaderConfig
from evalkit.pipeline.executor.reader_pool import ReaderPool

_HOW = ReaderConfig(600, "tesseract")
_SCANS = 24
_FEW = 17


def draw_scans(folder: Path, number: int) -> list[Path]:
    """So many scans of two pages, no two alike."""
    folder.mkdir()
    for one in range(number):
        texts = [f"Accession {1000 + one}", *NOTE, *NOTE]
        (folder / f"scan{one:03}.pdf").write_bytes(scan(*(printed(lines(texts[page:])) for page in range(2))))
    return sorted(folder.iterdir())


async def _all(executor: Executor, paths: Sequence[Path]) -> float:
    """Wall time to read them, as many at once as there is room for."""
    gate = asyncio.Semaphore(executor.max_in_flight)

    async def one(path: Path) -> None:
        async with gate:
            await executor.read(path, doc_id=path.stem, processing_timestamp=TIMESTAMP)

    began = time.perf_counter()
    await asyncio.gather(*map(one, paths))
    return time.perf_counter() - began


async def _on(started: Started, paths: Sequence[Path], workers: int) -> float:
    async with DaskCluster(started.executor, _HOW, local_workers=1, decides_on_workers=False) as there:
        while there.max_in_flight < 3 * workers:  # noqa: ASYNC110 - it looks every second
            await asyncio.sleep(0.1)
        await _all(there, paths[: 2 * workers])  # the processes start and load
        return await _all(there, paths)


def cluster_row(folder: Path, rounds: int) -> Row:
    paths = draw_scans(folder / "scans", _SCANS)
    took: dict[int, list[float]] = {1: [], 2: []}
    with cluster(folder / "one", (1,)) as one, cluster(folder / "two", (1, 1)) as two:
        for _ in range(rounds):
            took[1].append(asyncio.run(_on(one, paths, 1)))
            took[2].append(asyncio.run(_on(two, paths, 2)))
    ratio = statistics.median(first / second for first, second in zip(took[1], took[2], strict=True))
    first, second = (statistics.median(took[workers]) for workers in (1, 2))
    return (
        f"{_SCANS} scans of 2 pages: two Dask workers, not one",
        f"{ratio:.2f} times as fast",
        f"{first:.1f} s, {second:.1f} s, {rounds} rounds; goal 1.6; {_load()}",
    )


def few_rows(folder: Path, rounds: int) -> list[Row]:
    """What a second process costs, and what reading a small file does, in processor time."""
    paths = [folder / f"text{number}.pdf" for number in range(_FEW)]
    for path in paths:
        draw_text(path, 2)
    took = [(_cpu(1, paths[:1]), _cpu(1, paths), _cpu(2, paths)) for _ in range(rounds)]
    first, one, two = map(statistics.median, zip(*took, strict=True))
    each, start = (one - first) / (_FEW - 1), two - one
    size = sum(path.stat().st_size for path in paths) / _FEW / 1024
    return [
        ("starting a second reading process", f"{start:.2f} s CPU", ""),
        ("reading a file of text of 2 pages", f"{1000 * each:.1f} ms CPU", f"{size:.1f} KiB"),
        ("a second process pays from", f"{2 * start / each:.0f} such files", f"{2 * start / each * size:.0f} KiB"),
    ]


def _cpu(workers: int, paths: Sequence[Path]) -> float:
    """Processor time of so many reading processes over these files, their start included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with ReaderPool(workers, ReaderConfig(600)) as readers:
        asyncio.run(_all(readers, paths))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _load() -> str:
    return f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"


def executing(rounds: int) -> Table:
    table = Table("what", "evalkit", "beside", title=f"executors, medians of {rounds}")
    with tempfile.TemporaryDirectory() as name:
        for row in [cluster_row(Path(name), rounds), *few_rows(Path(name), rounds)]:
            table.add_row(*row)
    return table


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=3)
    Console(width=130).print(executing(options.parse_args().rounds))
