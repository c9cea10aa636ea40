"""One round over many documents: so many under way at once, and what became of all of them."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, Self, TypeVar

from evalkit.batch.identity import Found, Source
from evalkit.batch.reading import How, Readers
from evalkit.llm.model import Usage

#: Documents under way at once, per reading process: enough that none waits for the others' writing.
_IN_FLIGHT = 3


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
    how: How,
    treat: Callable[[Source, Readers], Awaitable[E]],
    *,
    workers: int,
    waiting: int = 0,
    on_progress: Callable[[E, int, int], None] | None,
) -> list[E]:
    """What ``treat`` makes of each document, in their order.

    ``workers`` processes read, 0: one per core; ``waiting`` more documents are under way that wait for somebody else's
    answer. ``on_progress`` is told each outcome, how many are done, how many there are.
    """
    processes = min(workers or os.cpu_count() or 1, max(len(sources), 1))
    gate = asyncio.Semaphore(processes * _IN_FLIGHT + waiting)
    done = 0

    async def one(source: Source, readers: Readers) -> E:
        nonlocal done
        async with gate:
            made = await treat(source, readers)
        done += 1
        if on_progress:
            on_progress(made, done, len(sources))
        return made

    with Readers(processes, how) as readers:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(source, readers)) for source in sources]
    return [task.result() for task in tasks]
