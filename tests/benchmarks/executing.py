"""Where documents are read: `PYTHONPATH=tests .venv/bin/python tests/benchmarks/executing.py [--rounds N]`.

One Dask worker beside two on drawn scans (tesseract, one thread each), and one reading process beside two on few small
files: below how many is a second one not worth its start? Wall time, medians; the load of the machine is beside them.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from batch.clusters import Started, cluster
from benchmarks.measuring import TIMESTAMP, Row
from benchmarks.reading import draw_text
from documents.drawing import lines
from documents.scanning import NOTE, printed, scan
from rich.console import Console
from rich.table import Table

from evalkit.batch.dask import Cluster
from evalkit.batch.reading import Executor, How, Readers

_HOW = How(600, "tesseract")
_SCANS = 24
_FEW = (1, 2, 3, 4, 6, 8, 12, 16)


def draw_scans(folder: Path, number: int) -> list[Path]:
    """So many scans of two pages, no two alike."""
    folder.mkdir()
    for one in range(number):
        texts = [f"Accession {1000 + one}", *NOTE, *NOTE]
        (folder / f"scan{one:03}.pdf").write_bytes(scan(*(printed(lines(texts[page:])) for page in range(2))))
    return sorted(folder.iterdir())


async def _all(executor: Executor, paths: Sequence[Path]) -> float:
    """Wall time to read them, as many at once as there is room for."""
    gate = asyncio.Semaphore(executor.room)

    async def one(path: Path) -> None:
        async with gate:
            await executor.read(path, doc_id=path.stem, timestamp=TIMESTAMP)

    began = time.perf_counter()
    await asyncio.gather(*map(one, paths))
    return time.perf_counter() - began


async def _on(started: Started, paths: Sequence[Path], workers: int) -> float:
    async with Cluster(started.executor, _HOW, workers=1, decides=False) as there:
        while there.room < 3 * workers:  # noqa: ASYNC110 - it looks every second
            await asyncio.sleep(0.1)
        await _all(there, paths[: 4 * workers])  # the processes start and load
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


def _with(workers: int, paths: Sequence[Path]) -> float:
    """Wall time of so many processes, their start included."""
    began = time.perf_counter()
    with Readers(workers, How(600)) as readers:
        asyncio.run(_all(readers, paths))
    return time.perf_counter() - began


def few_rows(folder: Path, rounds: int) -> list[Row]:
    rows: list[Row] = []
    for pages in (2, 20):
        paths = []
        for number in range(max(_FEW)):
            paths.append(folder / f"text{pages}-{number}.pdf")
            draw_text(paths[-1], pages)
        for number in _FEW:
            took = [(_with(1, paths[:number]), _with(2, paths[:number])) for _ in range(rounds)]
            one, two = map(statistics.median, zip(*took, strict=True))
            rows.append((f"{number} files of {pages} pages: one process, two", f"{one:.2f} s, {two:.2f} s", _load()))
    return rows


def _load() -> str:
    return f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"


def executing(rounds: int) -> Table:
    table = Table("what", "wall time", "beside", title=f"executors, medians of {rounds}")
    with tempfile.TemporaryDirectory() as name:
        for row in [cluster_row(Path(name), rounds), *few_rows(Path(name), rounds)]:
            table.add_row(*row)
    return table


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=3)
    Console(width=130).print(executing(options.parse_args().rounds))
