"""Documents are begun as there is room for them, not before; one that ends the run ends all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from evalkit.batch.identity import Source
from evalkit.batch.round import each
from evalkit.errors import ExecutorError


class Roomy:
    """An executor that only says how much room it has."""

    def __init__(self, room: int) -> None:
        self.room = room


@asynccontextmanager
async def held(executor: Any) -> AsyncIterator[Any]:
    yield executor


def sources(number: int) -> list[Source]:
    return [Source(f"d{one}", Path(f"/d{one}.pdf"), str(one)) for one in range(number)]


def most_at_once(room: int, waiting: int = 0, *, later: int | None = None) -> int:
    """How many of 40 documents were under way at once; ``later``: the room after the tenth."""
    executor, under_way, most, done = Roomy(room), 0, 0, 0

    async def treat(source: Source, _: Any) -> str:
        nonlocal under_way, most, done
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.001)
        under_way -= 1
        done += 1
        if done == 10 and later:
            executor.room = later
        return source.doc_id

    made = asyncio.run(each(sources(40), held(executor), treat, waiting=waiting, on_progress=None))
    assert made == [f"d{one}" for one in range(40)]
    return most


def test_as_many_as_there_is_room_for() -> None:
    assert most_at_once(3) == 3
    assert most_at_once(3, waiting=5) == 8


def test_more_when_there_is_more_room() -> None:
    assert most_at_once(2, later=7) == 7


def test_a_document_that_ends_the_run_ends_all() -> None:
    ended: list[str] = []

    async def treat(source: Source, _: Any) -> str:
        if source.doc_id == "d1":
            raise ExecutorError("gone", code="EXECUTOR-LOST", remedy="Start again.")
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            ended.append(source.doc_id)
            raise
        return source.doc_id

    with pytest.raises(ExecutorError):
        asyncio.run(each(sources(9), held(Roomy(3)), treat, on_progress=None))
    assert ended == ["d0", "d2"]
