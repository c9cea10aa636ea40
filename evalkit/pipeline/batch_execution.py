"""Processing of documents with bounded concurrency, and the summary of a batch."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, Self, TypeVar, cast

from evalkit.core.document_cache import forget_document_texts
from evalkit.documents.input_files import SkippedFile
from evalkit.errors import ModelSetupError, RunStopped
from evalkit.llm.model import Usage
from evalkit.pipeline.document_discovery import DiscoveredDocuments, SourceDocument
from evalkit.pipeline.executor.protocol import Executor, InterruptedReadError
from evalkit.store import OutputFolder

#: Seconds between checks whether the executor can take more documents.
_CAPACITY_POLL_SECONDS = 1.0


class ProcessedDocument(Protocol):
    """Interface of a document's outcome: its error, and the cost of model calls."""

    @property
    def doc_id(self) -> str:
        """Name of the document in the output folder."""

    @property
    def error(self) -> str | None:
        """Reason why the document failed, and the remedy; None if it succeeded."""

    @property
    def calls(self) -> int:
        """Number of calls of models."""

    @property
    def tokens(self) -> int:
        """Number of input and output tokens of these calls."""

    @property
    def cost_usd(self) -> str | None:
        """Cost in US dollars, as decimal text; None if a price is unknown."""


DocumentT = TypeVar("DocumentT", bound=ProcessedDocument)
OutcomeT = TypeVar("OutcomeT")


@dataclass(frozen=True)
class BatchSummary(Generic[DocumentT]):
    """Summary of a batch: the outcome of each document, problems and duration."""

    documents: tuple[DocumentT, ...]
    """The outcomes of the documents, sorted by path."""
    problems: tuple[str, ...]
    """Problems of inputs, such as paths and rows of tables, that belong to no processed document: one line each."""
    copies: tuple[str, ...]
    """Files with the same bytes as another document: one line each."""
    output: str
    seconds: float
    skipped: tuple[SkippedFile, ...] = ()
    """Files in folders and mails that were not read because of their format."""
    by_agent: Mapping[str, Usage] = field(default_factory=dict)
    """The usage of language models by role."""

    @classmethod
    def create(
        cls,
        documents: Iterable[DocumentT],
        discovered: DiscoveredDocuments,
        *,
        output: Path | str,
        monotonic_start: float,
        by_agent: Mapping[str, Usage],
        further_problems: Iterable[object] = (),
    ) -> Self:
        """Build the summary of a batch that has just ended.

        ``monotonic_start`` is ``time.monotonic()`` at the batch's start.
        """
        return cls(
            documents=tuple(documents),
            problems=tuple(map(str, (*discovered.problems, *further_problems))),
            copies=tuple(
                f"{path} is the same document as {doc_id}" for path, doc_id in discovered.duplicate_paths_and_doc_ids
            ),
            skipped=discovered.skipped,
            output=str(output),
            seconds=round(time.monotonic() - monotonic_start, 3),
            by_agent=by_agent,
        )

    @property
    def failed(self) -> list[DocumentT]:
        """The documents that could not be processed."""
        return [document for document in self.documents if document.error]

    def list_failure_lines(self) -> list[str]:
        """List a line for each failed document, each problem and each duplicate."""
        return [*(f"{document.doc_id}: {document.error}" for document in self.failed), *self.problems, *self.copies]

    @property
    def exit_status(self) -> int:
        """Exit status of the command: 0 if all succeeded, 1 if there is any problem."""
        return 1 if self.failed or self.problems else 0

    def to_json(self, document_to_json: Callable[[DocumentT], dict[str, Any]]) -> dict[str, Any]:
        """Return the summary as a JSON object; ``document_to_json`` converts each outcome."""
        return {
            "documents": [document_to_json(outcome) for outcome in self.documents],
            "problems": list(self.problems),
            "copies": list(self.copies),
            "skipped": [skipped_file._asdict() for skipped_file in self.skipped],
            "output": self.output,
            "seconds": self.seconds,
            "by_agent": {agent: vars(usage) for agent, usage in self.by_agent.items()},
        }


async def process_documents(
    sources: Sequence[SourceDocument],
    executor: AbstractAsyncContextManager[Executor],
    process_document: Callable[[SourceDocument, Executor], Awaitable[OutcomeT]],
    *,
    extra_in_flight: int = 0,
    on_progress: Callable[[OutcomeT, int, int], None] | None,
    find_setup_error: Callable[[], ModelSetupError | None] = lambda: None,
) -> list[OutcomeT]:
    """Process documents concurrently; return the outcomes in the order of ``sources``.

    ``extra_in_flight`` documents more than the executor has room for are processed at a time, because they wait for a
    language model. ``on_progress`` is called with each outcome, the number of finished documents, and the number of
    all. If ``process_document`` raises, all others are cancelled; after InterruptedReadError the document is processed
    again at the end, alone. If no document succeeds, the error that ``find_setup_error`` returns is raised.
    """
    outcome_by_number: dict[int, OutcomeT] = {}
    interrupted_numbers: list[int] = []

    async def process_numbered(number: int, active_executor: Executor) -> None:
        try:
            outcome_by_number[number] = await process_document(sources[number], active_executor)
        except InterruptedReadError:
            interrupted_numbers.append(number)
            return
        finally:
            forget_document_texts()
        if on_progress:
            on_progress(outcome_by_number[number], len(outcome_by_number), len(sources))

    async with executor as active_executor:
        active_executor.reads_alone = False
        running_tasks: set[asyncio.Task[None]] = set()
        try:
            for number in range(len(sources)):
                # Tasks are started one by one, so that ten thousand documents do not wait in memory.
                while len(running_tasks) >= active_executor.max_in_flight + extra_in_flight:
                    running_tasks = await _wait_and_list_pending_tasks(running_tasks)
                running_tasks.add(asyncio.create_task(process_numbered(number, active_executor)))
            while running_tasks:
                running_tasks = await _wait_and_list_pending_tasks(running_tasks)
        except RunStopped:
            _raise_if_none_succeeded(find_setup_error(), outcome_by_number.values())
            raise
        finally:
            for task in running_tasks:
                task.cancel()
            await asyncio.gather(*running_tasks, return_exceptions=True)
        active_executor.reads_alone = True
        for number in sorted(interrupted_numbers):
            await process_numbered(number, active_executor)
    _raise_if_none_succeeded(find_setup_error(), outcome_by_number.values())
    return [outcome_by_number[number] for number in range(len(sources))]


def _raise_if_none_succeeded(setup_error: ModelSetupError | None, outcomes: Iterable[object]) -> None:
    if setup_error and all(cast("ProcessedDocument", outcome).error for outcome in outcomes):
        raise setup_error from None


async def _wait_and_list_pending_tasks(running_tasks: set[asyncio.Task[None]]) -> set[asyncio.Task[None]]:
    """Wait until a task ends or the poll interval is over; return the pending tasks."""
    finished_tasks, pending_tasks = await asyncio.wait(
        running_tasks, timeout=_CAPACITY_POLL_SECONDS, return_when=asyncio.FIRST_COMPLETED
    )
    for task in finished_tasks:
        task.result()
    return pending_tasks


async def run_uninterrupted_storage_operation(
    output_folder: OutputFolder, operation: Callable[..., OutcomeT], *arguments: Any
) -> OutcomeT:
    """Run an operation on the output folder to its end, even if cancelled.

    On a disk the operation runs at once. On a bucket it runs in a thread, and other documents go on meanwhile. A backup
    has all that the operation writes, or nothing of it.
    """

    def execute() -> OutcomeT:
        with output_folder.hold_save_lock():
            return operation(*arguments)

    if not isinstance(output_folder.root, str):
        return execute()
    storage_task = asyncio.ensure_future(asyncio.to_thread(execute))
    try:
        return await asyncio.shield(storage_task)
    except asyncio.CancelledError:
        await asyncio.wait({storage_task})  # the operation still needs the folder's lock
        raise
