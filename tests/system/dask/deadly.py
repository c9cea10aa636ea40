"""Reading that goes wrong on purpose, by the name of the file; importable by the workers."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import psutil

from evalkit.pipeline.executor.protocol import ReaderConfig
from evalkit.pipeline.executor.reader_pool import WorkerReadResult, read_with_limits


def deadly_read(
    how: ReaderConfig, path: Path, doc_id: str, timestamp: str, data: bytes | None = None
) -> WorkerReadResult:
    """``crash…`` ends its process, ``hang…`` never ends, ``slow…`` takes half a second, ``first…`` kills its worker once,
    ``kill…`` kills its worker whenever there is one."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    if path.stem.startswith("crash"):
        os.kill(os.getpid(), signal.SIGSEGV)
    if path.stem.startswith("hang"):
        signal.alarm(how.processor_seconds)
        time.sleep(60)
    if path.stem.startswith("slow"):
        time.sleep(0.5)
    if path.stem.startswith("first"):
        mark = path.with_suffix(".done")
        if not mark.exists():
            mark.touch()
            _end_worker()
    if path.stem.startswith("kill"):
        _end_worker()
    return read_with_limits(how, path, doc_id, timestamp, data)


def _end_worker() -> None:
    """Where there is none, this process ends."""
    parent = psutil.Process(os.getppid())
    is_worker = "spawn_main" in " ".join(parent.cmdline())
    os.kill(parent.pid if is_worker else os.getpid(), signal.SIGKILL)
    time.sleep(10)
