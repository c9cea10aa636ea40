"""What of the last run was slow, and why: from the seconds that each document's result has under ``times``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePath
from typing import Any

from evalkit.classification.result import DocumentResult
from evalkit.errors import NotFound, StoreError
from evalkit.review.stored import read_result
from evalkit.store import RESULTS, Files

#: A step that takes this share of all seconds is said to be why.
_MUCH = 0.3
_SLOWEST = 5

#: What takes long, and what makes it shorter; in the order of a document's way.
STEPS = {
    "waiting": (
        "documents waited for a process that reads them",
        "More processes (--workers, where cores are idle) or machines (--executor) read more at once.",
    ),
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
        "It is one process here; on the workers of a Dask cluster (--executor) it is as many as read.",
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
    """That this run decided; not those that were finished before, nor those that failed."""
    seconds: float
    """From its beginning to its last document."""
    steps: dict[str, float]
    """Seconds of all documents together, by step; many are under way at once, so that the sum is more than ``seconds``."""
    slowest: tuple[Slow, ...]

    @property
    def reasons(self) -> list[tuple[str, str]]:
        """What took a large part, with its share, and what would help."""
        whole = sum(self.steps.values())
        return [
            (f"{self.steps[step] / whole:.0%} of the seconds: {what}", remedy)
            for step, (what, remedy) in STEPS.items()
            if whole and self.steps.get(step, 0.0) >= _MUCH * whole
        ]


def pace(output: Path | str) -> Pace:
    """The pace of the last run in that folder. NotFound where none has left its seconds."""
    timed = [times for times in _times(Files(output)) if times[1].get("seconds")]
    if not timed:
        raise NotFound(
            f"no run in {output} has left its times", code="RUN-TIMES", remedy="Run it again, with --fresh if need be."
        )
    began = max(str(times["run_started_at"]) for _, times in timed)
    last = [(doc_id, times) for doc_id, times in timed if times["run_started_at"] == began]
    ended = max(str(times["finished_at"]) for _, times in last)
    steps = {step: round(sum(times["seconds"].get(step, 0.0) for _, times in last), 3) for step in STEPS}
    took = (datetime.fromisoformat(ended) - datetime.fromisoformat(began)).total_seconds()
    return Pace(began, len(last), round(took, 3), steps, _slowest(last))


def _times(files: Files) -> list[tuple[str, dict[str, Any]]]:
    found: list[tuple[str, dict[str, Any]]] = []
    for name in files.names(RESULTS):
        try:
            result = read_result(files, PurePath(name).stem)
        except StoreError:
            continue
        if isinstance(result, DocumentResult):
            found.append((result.doc_id, result.times))
    return found


def _slowest(timed: Sequence[tuple[str, dict[str, Any]]]) -> tuple[Slow, ...]:
    told = []
    for doc_id, times in timed:
        own = {step: took for step, took in times["seconds"].items() if step != "waiting"}
        whole = sum(own.values())
        step = max(own, key=lambda one: own[one])
        told.append(Slow(doc_id, round(whole, 3), step, round(own[step] / whole, 3) if whole else 0.0))
    return tuple(sorted(told, key=lambda one: (-one.seconds, one.doc_id))[:_SLOWEST])
