"""Runs over very many small documents: how fast the first were done and the last, and what the run held in memory."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
import pymupdf
from demo.live import LINES

import evalkit
from evalkit.batch.runner import DocumentSummary


def tiny_notes(folder: Path, count: int) -> Path:
    """So many notes of one page, no two alike, a thousand to a folder."""
    with pymupdf.open() as document:
        page = document.new_page()
        for row, line in enumerate(LINES):
            page.insert_text((72, 90 + 22 * row), line.format(number=7), fontsize=11)
        data = document.tobytes(no_new_id=True)
    for number in range(count):
        part = folder / f"part{number // 1000}"
        part.mkdir(parents=True, exist_ok=True)
        (part / f"note_{number:05}.pdf").write_bytes(data + b"\n%" + str(number).encode())
    return folder


@dataclass(frozen=True)
class Mark:
    """How it stood when so many documents were done."""

    wall: float
    cpu: float
    """Seconds of processor time, of the run and of the processes that read for it."""
    memory: int
    """Bytes that the run's own process holds."""


@dataclass(frozen=True)
class Long:
    """A run, and its marks at every part of it."""

    documents: tuple[DocumentSummary, ...]
    marks: list[Mark]

    def took(self, part: int) -> Mark:
        """Of that part, counted from 0, or from the end: what it took, and what was gained in memory since the first."""
        at = range(len(self.marks))[part]
        begun, ended = self.marks[at - 1] if at else self.marks[0], self.marks[at]
        return Mark(ended.wall - begun.wall, ended.cpu - begun.cpu, ended.memory - self.marks[1].memory)


def long_run(folder: Path, output: Path, part: int, **options: object) -> Long:
    """Run over the folder; a mark when the first document is done, and after every ``part`` more."""
    marks: list[Mark] = []

    def told(_: DocumentSummary, done: int, of: int) -> None:
        if done == 1 or done % part == 0:
            marks.append(_mark())

    documents = evalkit.run([folder], output=output, on_progress=told, **options).documents  # type: ignore[arg-type]
    return Long(documents, marks)


def _mark() -> Mark:
    here = psutil.Process(os.getpid())
    cpu = sum(sum(one.cpu_times()[:2]) for one in (here, *here.children(recursive=True)))
    return Mark(time.monotonic(), cpu, here.memory_info().rss)
