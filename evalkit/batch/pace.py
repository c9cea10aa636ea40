"""What of the last run was slow, and why: from the seconds that each document's files have under ``times``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePath

from evalkit.errors import NotFound, StoreError
from evalkit.review.stored import read_extractions, read_result
from evalkit.store import EXTRACTIONS, RESULTS, Files
from evalkit.times import FAILING, Times

#: A step that takes this share of all seconds is said to be why.
_MUCH = 0.3
_SLOWEST = 5
_NEEDED = {"run_started_at", "finished_at", "seconds"}
"""Of the clocks of a result."""

#: What takes long, and what makes it shorter; in the order of a document's way.
STEPS = {
    "reading": (
        "reading PDFs",
        "More processes (--workers, where cores are idle) or machines (--executor) read more at once.",
    ),
    "recognising": (
        "recognising pages that are pictures",
        "Each such page costs seconds of one core: more cores (--workers) or machines (--executor) help, or files with "
        "text in them.",
    ),
    "asking": (
        "documents waited for language models",
        "Raise calls_in_flight if the provider allows it, take a quicker model, or --profile lean.",
    ),
    "deciding": (
        "the checks, and the built-in model",
        "It is one process here; on a Dask cluster (--executor) every worker does it, and the wait for one counts.",
    ),
    "extracting": (
        "the fields of reports and forms",
        "It is one process here; on a Dask cluster (--executor) every worker does it, and the wait for one counts. Without "
        "--extract a run leaves them to `evalkit extract`.",
    ),
    FAILING: (
        "documents that could not be read in the end",
        "The run's summary names them with what mends each. Of those that ran out of time, read_seconds says how long one may take.",
    ),
}


@dataclass(frozen=True)
class Slow:
    """One of the documents that took longest."""

    doc_id: str
    seconds: float
    step: str
    """Which took the most of it."""
    share: float


@dataclass(frozen=True)
class Pace:
    """Where the seconds of a run went."""

    began_at: str
    documents: int
    """That this run decided, or could not read; not those that were finished before."""
    seconds: float
    """From its beginning to its last document."""
    waiting: float
    """Seconds that all documents together waited for a process that reads. There are always more of them under way than
    processes, so that it says nothing of what is slow."""
    steps: dict[str, float]
    """Seconds of all documents together, by step; many are under way at once, so that the sum is more than ``seconds``."""
    slowest: tuple[Slow, ...]

    @property
    def reasons(self) -> list[tuple[str, str]]:
        """What took a large part, with its share, and what would help."""
        whole = sum(self.steps[step] for step in STEPS)
        return [
            (f"{self.steps[step] / whole:.0%} of the seconds: {what}", remedy)
            for step, (what, remedy) in STEPS.items()
            if whole and self.steps[step] >= _MUCH * whole
        ]


def pace(output: Path | str) -> Pace:
    """The pace of the last run in that folder. NotFound where none has left its seconds."""
    timed = [times for times in _times(Files(output)) if times[1].keys() >= _NEEDED]
    if not timed:
        raise NotFound(
            f"no run in {output} has left its times", code="RUN-TIMES", remedy="Run it again, with --fresh if need be."
        )
    began = max(times["run_started_at"] for _, times in timed)
    waiting = 0.0
    last: dict[str, dict[str, float]] = defaultdict(lambda: dict.fromkeys(STEPS, 0.0))
    for doc_id, times in timed:
        if times["run_started_at"] == began:
            waiting += times["seconds"].get("waiting", 0.0)
            for step in STEPS:
                last[doc_id][step] += times["seconds"].get(step, 0.0)
    ended = max(times["finished_at"] for _, times in timed if times["run_started_at"] == began)
    steps = {step: round(sum(seconds[step] for seconds in last.values()), 3) for step in STEPS}
    took = (datetime.fromisoformat(ended) - datetime.fromisoformat(began)).total_seconds()
    return Pace(began, len(last), round(took, 3), round(waiting, 3), steps, _slowest(last))


def _times(files: Files) -> Iterator[tuple[str, Times]]:
    for name in files.names(RESULTS):
        with suppress(StoreError):
            result = read_result(files, PurePath(name).stem)
            yield result.doc_id, result.times
    for name in files.names(EXTRACTIONS):
        with suppress(StoreError):
            made = read_extractions(files, PurePath(name).stem)
            yield made.doc_id, made.times


def _slowest(timed: Mapping[str, Mapping[str, float]]) -> tuple[Slow, ...]:
    told = []
    for doc_id, seconds in timed.items():
        own = {step: seconds[step] for step in STEPS}
        whole = sum(own.values())
        step = max(own, key=lambda one: own[one])
        told.append(Slow(doc_id, round(whole, 3), step, round(own[step] / whole, 3) if whole else 0.0))
    return tuple(sorted(told, key=lambda one: (-one.seconds, one.doc_id))[:_SLOWEST])
