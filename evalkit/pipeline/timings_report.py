"""What of the last run was slow, and why: from the seconds that each document's files have under ``times``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePath

from evalkit.core.timings import FAILED_STEP, Times
from evalkit.errors import NotFound, StoreError
from evalkit.review.loaders import read_extractions, read_result
from evalkit.store import EXTRACTIONS_FOLDER, RESULTS_FOLDER, OutputFolder

#: A step that takes this share of all seconds is said to be why.
_REASON_SHARE = 0.3
_SLOWEST_COUNT = 5
_REQUIRED_TIMES = {"run_started_at", "finished_at", "seconds"}
"""Of the clocks of a result."""

#: What takes long, and what makes it shorter; in the order of a document's way.
STEP_EXPLANATIONS = {
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
    FAILED_STEP: (
        "documents that could not be read in the end",
        "The run's summary names them with what mends each. Of those that ran out of time, read_seconds says how long one may take.",
    ),
}


@dataclass(frozen=True)
class SlowDocument:
    """One of the documents that took longest."""

    doc_id: str
    seconds: float
    step: str
    """Which took the most of it."""
    share: float


@dataclass(frozen=True)
class RunTimings:
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
    slowest: tuple[SlowDocument, ...]

    @property
    def reasons(self) -> list[tuple[str, str]]:
        """What took a large part, with its share, and what would help."""
        total_seconds = sum(self.steps[step] for step in STEP_EXPLANATIONS)
        return [
            (f"{self.steps[step] / total_seconds:.0%} of the seconds: {explanation}", remedy)
            for step, (explanation, remedy) in STEP_EXPLANATIONS.items()
            if total_seconds and self.steps[step] >= _REASON_SHARE * total_seconds
        ]


def summarise_last_run(output_folder: OutputFolder) -> RunTimings:
    """The pace of the last run in that folder. NotFound where none has left its seconds."""
    timed_documents = [times for times in _read_times(output_folder) if times[1].keys() >= _REQUIRED_TIMES]
    if not timed_documents:
        raise NotFound(
            f"no run in {output_folder.root} has left its times",
            code="RUN-TIMES",
            remedy="Run it again, with --fresh if need be.",
        )
    run_started_at = max(times["run_started_at"] for _, times in timed_documents)
    waiting_seconds = 0.0
    seconds_by_document: dict[str, dict[str, float]] = defaultdict(lambda: dict.fromkeys(STEP_EXPLANATIONS, 0.0))
    for doc_id, times in timed_documents:
        if times["run_started_at"] == run_started_at:
            waiting_seconds += times["seconds"].get("waiting", 0.0)
            for step in STEP_EXPLANATIONS:
                seconds_by_document[doc_id][step] += times["seconds"].get(step, 0.0)
    finished_at = max(times["finished_at"] for _, times in timed_documents if times["run_started_at"] == run_started_at)
    seconds_by_step = {
        step: round(sum(seconds[step] for seconds in seconds_by_document.values()), 3) for step in STEP_EXPLANATIONS
    }
    elapsed = (datetime.fromisoformat(finished_at) - datetime.fromisoformat(run_started_at)).total_seconds()
    return RunTimings(
        run_started_at,
        len(seconds_by_document),
        round(elapsed, 3),
        round(waiting_seconds, 3),
        seconds_by_step,
        _find_slowest_documents(seconds_by_document),
    )


def _read_times(output_folder: OutputFolder) -> Iterator[tuple[str, Times]]:
    for name in output_folder.list_json_files(RESULTS_FOLDER):
        with suppress(StoreError):
            result = read_result(output_folder, PurePath(name).stem)
            yield result.doc_id, result.times
    for name in output_folder.list_json_files(EXTRACTIONS_FOLDER):
        with suppress(StoreError):
            document_extractions = read_extractions(output_folder, PurePath(name).stem)
            yield document_extractions.doc_id, document_extractions.times


def _find_slowest_documents(seconds_by_document: Mapping[str, Mapping[str, float]]) -> tuple[SlowDocument, ...]:
    slow_documents = []
    for doc_id, seconds in seconds_by_document.items():
        seconds_by_step = {step: seconds[step] for step in STEP_EXPLANATIONS}
        total_seconds = sum(seconds_by_step.values())
        step = max(seconds_by_step, key=lambda candidate: seconds_by_step[candidate])
        slow_documents.append(
            SlowDocument(
                doc_id,
                round(total_seconds, 3),
                step,
                round(seconds_by_step[step] / total_seconds, 3) if total_seconds else 0.0,
            )
        )
    return tuple(sorted(slow_documents, key=lambda candidate: (-candidate.seconds, candidate.doc_id))[:_SLOWEST_COUNT])
