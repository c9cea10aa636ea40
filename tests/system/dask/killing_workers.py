"""Workers of a cluster that are killed while a run goes on, and what the run leaves behind all the same."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from documents.drawing import lines
from documents.scanning import printed, scan
from samples.demo_runs import read_output_files
from system.dask.clusters import Started, cluster
from system.runs.killing import resume_run
from system.runs.live import LINES, gemini_run, journalled, paid_twice, serve_model


def scanned_notes(folder: Path, count: int, pages: int) -> Path:
    """So many scans of notes, no two alike."""
    folder.mkdir()
    for number in range(1, count + 1):
        texts = [line.format(number=number) for line in LINES]
        (folder / f"note_{number:03}.pdf").write_bytes(scan(*[printed(lines(texts))] * pages))
    return folder


@dataclass
class Killed:
    """How often a worker was killed so far."""

    times: int = 0


@contextmanager
def killing(started: Started, seconds: float, seed: int) -> Iterator[Killed]:
    """Kill one of the workers, drawn at random, every so many seconds."""
    killed, ended, drawn = Killed(), threading.Event(), random.Random(seed)

    def kill() -> None:
        while not ended.wait(seconds):
            killed.times += started.kill_one(drawn.randrange(len(started.workers)))

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        ended.set()
        thread.join()


def survive(folder: Path, count: int, *, pages: int, seconds: float, seed: int) -> int:
    """Run over scans while workers are killed; how often one was.

    Nobody is lost and nobody twice: every file as that of a run here that nobody disturbed, every question answered
    once in the journal, and as many calls at the server as there.
    """
    notes = scanned_notes(folder / "notes", count, pages)
    here, there = folder / "here", folder / "there"
    with serve_model(here) as server:
        whole = resume_run(gemini_run(notes, here), here, server.environment)
        asked = len(server.calls)
    with serve_model(there) as server, cluster(folder / "cluster", (1, 1)) as started:
        command = gemini_run(notes, there, "--executor", started.executor)
        with killing(started, seconds, seed) as killed:
            assert resume_run(command, there, server.environment) == whole == read_output_files(there)
        assert len(server.calls) == asked
        assert paid_twice(server, there) == 0
        assert len(journalled(there)) == asked
    assert sum(name.startswith("results/") for name in whole) == count
    return killed.times
