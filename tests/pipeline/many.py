"""Runs over very many small documents: how fast the first were done and the last, and what the run held in memory."""

from __future__ import annotations

import hashlib
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
import pymupdf
from system.runs.live import LINES

import evalkit
from evalkit.pipeline.run_summary import DocumentSummary


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
    yardstick: float
    """Of these, what the same piece of work took that was done again and again between documents."""
    memory: int
    """Bytes that the run's own process holds."""

    @property
    def effort(self) -> float:
        """What the documents took, in pieces of the yardstick's work: how fast the machine was just then is no part of it.

        Who shares its cores and caches makes every second of work longer, that of the yardstick as well.
        """
        return (self.cpu - self.yardstick) / self.yardstick


@dataclass(frozen=True)
class Long:
    """A run, and its marks at every part of it."""

    documents: tuple[DocumentSummary, ...]
    marks: list[Mark]

    def took(self, part: int, idle: float = 0.0) -> Mark:
        """Of that part, counted from 0, or from the end: what it took, and what was gained in memory since the first.

        ``idle``: seconds of processor time a second that what reads takes when there is nothing to read, which are no
        document's.
        """
        at = range(len(self.marks))[part]
        begun, ended = self.marks[at - 1] if at else self.marks[0], self.marks[at]
        wall = ended.wall - begun.wall
        return Mark(
            wall,
            ended.cpu - begun.cpu - idle * wall,
            ended.yardstick - begun.yardstick,
            ended.memory - self.marks[1].memory,
        )


def long_run(folder: Path, output: Path, part: int, **options: object) -> Long:
    """Run over the folder; a mark when the first document is done, and after every ``part`` more."""
    marks: list[Mark] = []
    yardstick = 0.0

    def told(_: DocumentSummary, done: int, of: int) -> None:
        nonlocal yardstick
        if done % _EACH == 0:
            yardstick += _yardstick()
        if done == 1 or done % part == 0:
            marks.append(_mark(yardstick))

    documents = evalkit.run([folder], output=output, on_progress=told, **options).documents  # type: ignore[arg-type]
    return Long(documents, marks)


def idle_cpu(seconds: float) -> float:
    """Processor time a second of this process's children, while nobody gives them anything to do."""
    before = _mark(0.0)
    time.sleep(seconds)
    after = _mark(0.0)
    return (after.cpu - before.cpu) / (after.wall - before.wall)


_EACH = 10
"""Documents from one piece of the yardstick's work to the next."""


def _yardstick() -> float:
    """A few milliseconds of what a run does with a document, always the same; the seconds of processor time it took."""
    began = time.thread_time()
    for _ in range(40):
        text = json.dumps({str(number): [number, str(number) * 3] for number in range(100)}, indent=2)
        hashlib.sha256(json.dumps(json.loads(text), sort_keys=True).encode()).hexdigest()
    return time.thread_time() - began


def _mark(yardstick: float) -> Mark:
    here = psutil.Process(os.getpid())
    cpu = sum(sum(one.cpu_times()[:2]) for one in (here, *here.children(recursive=True)))
    return Mark(time.monotonic(), cpu, yardstick, here.memory_info().rss)
