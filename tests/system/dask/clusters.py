"""Dask clusters of real processes on 127.0.0.1, started as evalkit/docs/operations.md says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
from patience import SECONDS, eventually

ROOT = Path(__file__).parents[3]
_DASHBOARD = ("--no-dashboard", "--dashboard-address", "127.0.0.1:0")
"""None; what is left of its server would listen on all networks."""


def kill_processes(started: Iterable[subprocess.Popen[bytes]]) -> None:
    """Kill these processes, and all that they have started."""
    processes = [process for process in started if process.poll() is None]
    family = [psutil.Process(process.pid) for process in processes]
    family += [child for one in family for child in one.children(recursive=True)]
    for one in family:
        with suppress(psutil.NoSuchProcess):
            one.kill()
    for process in processes:
        process.wait()
    psutil.wait_procs(family, timeout=SECONDS)


class Started:
    """A scheduler and its workers."""

    def __init__(self, folder: Path, environment: dict[str, str] | None = None) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        paths = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
        self._environment = os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"} | (environment or {})
        self._file = folder / "scheduler.json"
        self.scheduler = self._run("scheduler", "--host", "127.0.0.1", "--port", "0", *_DASHBOARD)
        self.workers: list[subprocess.Popen[bytes]] = []

    @property
    def executor(self) -> str:
        """As ``--executor`` takes it."""
        found: list[str] = []

        def is_there() -> bool:
            with suppress(OSError, ValueError):
                found.append(json.loads(self._file.read_text())["address"])
            return bool(found)

        assert eventually(is_there), "the scheduler did not start"
        return found[0].replace("tcp://", "dask://")

    def add(self, *options: str, threads: int = 1) -> subprocess.Popen[bytes]:
        """Start one more worker, behind a nanny that starts it again when it is killed."""
        options = options or ("--memory-limit", "0")
        more = ("--nthreads", str(threads), *_DASHBOARD, "--host", "127.0.0.1", *options)
        worker = self._run("worker", *more, "--local-directory", str(self.folder / f"worker{len(self.workers)}"))
        self.workers.append(worker)
        return worker

    def kill_one(self, number: int) -> bool:
        """Kill a worker, not its nanny, with all that it has started; whether there was one."""
        for child in psutil.Process(self.workers[number].pid).children():
            if "spawn_main" in " ".join(child.cmdline()):
                child.kill()
                return True
        return False

    def logs(self) -> str:
        """Everything that the scheduler and the workers have written."""
        return "\n".join(path.read_text(errors="replace") for path in sorted(self.folder.glob("*.log")))

    def stop(self) -> None:
        """End all of it at once; a worker that is asked to end while its scheduler ends waits for eight seconds."""
        kill_processes((*self.workers, self.scheduler))

    def _run(self, what: str, *options: str) -> subprocess.Popen[bytes]:
        number = len(list(self.folder.glob("*.log")))
        command = [sys.executable, "-m", "dask", what, "--scheduler-file", str(self._file), *options]
        with (self.folder / f"{what}{number}.log").open("wb") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, env=self._environment, cwd=self.folder)


@contextmanager
def cluster(
    folder: Path, workers: Sequence[int] = (1, 1), environment: dict[str, str] | None = None
) -> Iterator[Started]:
    """A scheduler, and a worker for each of these numbers of threads."""
    started = Started(folder, environment)
    try:
        for threads in workers:
            started.add(threads=threads)
        yield started
    finally:
        started.stop()
