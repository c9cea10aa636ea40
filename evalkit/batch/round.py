"""One round over many documents: so many under way at once, and what became of all of them."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar

from evalkit.batch.identity import Found, Source
from evalkit.batch.reading import Executor, How, Readers
from evalkit.errors import UsageError
from evalkit.extras import installing
from evalkit.llm.model import Usage
from evalkit.settings import LOCAL, Settings
from evalkit.store import Files

if TYPE_CHECKING:
    from evalkit.batch.dask import Cluster

_BREAK_EVEN = 64 * 1024
"""Bytes of documents below which one process reads them one after the other.

A second one costs 0.4 s of processor time to start and saves half of the reading: 16 ms for a small file of text of two
pages, 8 ms for a page of a real one, so that it pays from some 40 small files. A page that is a picture has 30 KiB and
more and takes a second: with 64 KiB no more than two or three of those wait for each other. Measured by
``tests/benchmarks/executing.py``.
"""
_LOOK = 1.0
"""Seconds between looks at whether an executor has more room."""


class Treated(Protocol):
    """What became of one document."""

    @property
    def error(self) -> str | None:
        """Why it failed, and the remedy."""


D = TypeVar("D", bound=Treated)
E = TypeVar("E")


@dataclass(frozen=True)
class Summary(Generic[D]):
    """What became of a round."""

    documents: tuple[D, ...]
    """Sorted by path, as they were found."""
    problems: tuple[str, ...]
    """What else was wrong with the input: one line each."""
    copies: tuple[str, ...]
    """Files that are another document's bytes again: one line each."""
    output: str
    seconds: float
    by_agent: Mapping[str, Usage] = field(default_factory=dict)
    """What language models were asked and paid by this round."""

    @classmethod
    def of(
        cls,
        documents: Iterable[D],
        found: Found,
        *,
        output: Path | str,
        began: float,
        by_agent: Mapping[str, Usage],
        more: Iterable[object] = (),
    ) -> Self:
        """The summary of a round that began at that moment of ``time.monotonic``; ``more`` are further problems."""
        return cls(
            documents=tuple(documents),
            problems=tuple(map(str, (*found.problems, *more))),
            copies=tuple(f"{path} is the same document as {doc_id}" for path, doc_id in found.copies),
            output=str(output),
            seconds=round(time.monotonic() - began, 3),
            by_agent=by_agent,
        )

    @property
    def failed(self) -> list[D]:
        """The documents with which nothing could be done."""
        return [document for document in self.documents if document.error]

    @property
    def exit_status(self) -> int:
        """0: all done; 1: something failed, and is named."""
        return 1 if self.failed or self.problems else 0

    def to_json(self, document: Callable[[D], dict[str, Any]]) -> dict[str, Any]:
        """As a program reads it, each document as ``document`` has it."""
        return {
            "documents": [document(one) for one in self.documents],
            "problems": list(self.problems),
            "copies": list(self.copies),
            "output": self.output,
            "seconds": self.seconds,
            "by_agent": {agent: vars(usage) for agent, usage in self.by_agent.items()},
        }


async def each(
    sources: Sequence[Source],
    executor: AbstractAsyncContextManager[Executor],
    treat: Callable[[Source, Executor], Awaitable[E]],
    *,
    waiting: int = 0,
    on_progress: Callable[[E, int, int], None] | None,
) -> list[E]:
    """What ``treat`` makes of each document, in their order.

    ``waiting`` more documents are under way than the executor has room for, because they wait for somebody else's
    answer. ``on_progress`` is told each outcome, how many are done, how many there are. Where one raises, all end.
    """
    made: dict[int, E] = {}

    async def one(number: int, readers: Executor) -> None:
        made[number] = await treat(sources[number], readers)
        if on_progress:
            on_progress(made[number], len(made), len(sources))

    async with executor as readers:
        under_way: set[asyncio.Task[None]] = set()
        try:
            for number in range(len(sources)):
                # Begun one by one, so that ten thousand documents do not wait in memory.
                while len(under_way) >= readers.room + waiting:
                    under_way = await _some_done(under_way)
                under_way.add(asyncio.create_task(one(number, readers)))
            while under_way:
                under_way = await _some_done(under_way)
        finally:
            for task in under_way:
                task.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)
    return [made[number] for number in range(len(sources))]


async def _some_done(under_way: set[asyncio.Task[None]]) -> set[asyncio.Task[None]]:
    """Those that are still under way when some have ended, or when it is time to look whether there is more room."""
    ended, still = await asyncio.wait(under_way, timeout=_LOOK, return_when=asyncio.FIRST_COMPLETED)
    for task in ended:
        task.result()
    return still


async def beside(files: Files, work: Callable[..., E], *given: Any) -> E:
    """What a piece of work with the output folder gives; it is done to its end, also where this is cancelled.

    A disk answers at once. Each request to a bucket is a way there and back, in which the other documents are gone on with.
    """
    if not isinstance(files.root, str):
        return work(*given)
    working = asyncio.ensure_future(asyncio.to_thread(work, *given))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        await asyncio.wait({working})  # the folder's lock is held for it
        raise


def processes_for(sources: Sequence[Source], most: int) -> int:
    """How many processes are worth starting to read these, at least one.

    One even for a single document: a file that kills its reader must not end the run.
    """
    waiting = 0
    for source in sources:
        with suppress(OSError):  # whoever reads it says so
            waiting += source.path.stat().st_size
        if waiting >= _BREAK_EVEN:
            return max(min(most, len(sources)), 1)
    return 1


@asynccontextmanager
async def executor_of(
    settings: Settings, how: How, sources: Sequence[Source], *, decides: bool
) -> AsyncIterator[Executor]:
    """What reads, and ``decides`` where it may, as the settings say.

    UsageError where a cluster cannot be used; ExecutorError where it is lost meanwhile.
    """
    if settings.executor == LOCAL:
        with Readers(processes_for(sources, _most(settings)), how) as readers:
            yield readers
        return
    async with cluster_of(settings, how, decides=decides) as cluster:
        yield cluster


def cluster_of(settings: Settings, how: How, *, decides: bool) -> Cluster:
    """The Dask cluster that the settings name. UsageError where Dask is not installed, or its own settings are broken."""
    try:
        from evalkit.batch.dask import Cluster
    except ImportError as error:
        raise UsageError(
            "Dask is not installed",
            code="EXECUTOR-MISSING",
            remedy=f"Run {installing('dask')}, or take --executor local.",
        ) from error
    except ValueError as error:
        raise UsageError(
            "Dask's own settings cannot be read",
            code="EXECUTOR-SETTINGS",
            remedy="Correct the YAML files in ~/.config/dask, or in the folder that DASK_CONFIG names.",
        ) from error
    return Cluster(settings.executor, how, workers=_most(settings), decides=decides)


def _most(settings: Settings) -> int:
    """How many processes of this machine may read."""
    return settings.workers or os.cpu_count() or 1
