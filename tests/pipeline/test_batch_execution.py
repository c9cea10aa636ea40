"""Documents are begun as there is max_in_flight for them, not before; one that ends the run ends all."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from patience import SECONDS
from places import open_folder

from evalkit.errors import ExecutorError
from evalkit.pipeline.batch_execution import process_documents, run_uninterrupted_storage_operation
from evalkit.pipeline.document_discovery import SourceDocument
from evalkit.pipeline.executor.protocol import InterruptedReadError
from evalkit.pipeline.executor.selection import choose_worker_count


class Roomy:
    """An executor that only says how much room it has."""

    def __init__(self, max_in_flight: int) -> None:
        self.max_in_flight = max_in_flight


@asynccontextmanager
async def held(executor: Any) -> AsyncIterator[Any]:
    yield executor


def sources(number: int) -> list[SourceDocument]:
    return [SourceDocument(f"d{one}", Path(f"/d{one}.pdf"), str(one)) for one in range(number)]


def most_at_once(max_in_flight: int, waiting: int = 0, *, later: int | None = None) -> int:
    """How many of 40 documents were under way at once; ``later``: the max_in_flight after the tenth."""
    executor, under_way, most, done = Roomy(max_in_flight), 0, 0, 0

    async def treat(source: SourceDocument, _: Any) -> str:
        nonlocal under_way, most, done
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.001)
        under_way -= 1
        done += 1
        if done == 10 and later:
            executor.max_in_flight = later
        return source.doc_id

    made = asyncio.run(process_documents(sources(40), held(executor), treat, extra_in_flight=waiting, on_progress=None))
    assert made == [f"d{one}" for one in range(40)]
    return most


def test_as_many_as_there_is_room_for() -> None:
    assert most_at_once(3) == 3
    assert most_at_once(3, waiting=5) == 8


def test_more_when_there_is_more_room() -> None:
    assert most_at_once(2, later=7) == 7


def test_a_document_that_ends_the_run_ends_all() -> None:
    ended: list[str] = []

    async def treat(source: SourceDocument, _: Any) -> str:
        if source.doc_id == "d1":
            raise ExecutorError("gone", code="EXECUTOR-LOST", remedy="Start again.")
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            ended.append(source.doc_id)
            raise
        return source.doc_id

    with pytest.raises(ExecutorError):
        asyncio.run(process_documents(sources(9), held(Roomy(3)), treat, on_progress=None))
    assert sorted(ended) == ["d0", "d2"]


def test_an_interrupted_document_is_processed_alone_at_the_end() -> None:
    under_way: set[str] = set()
    begun: list[tuple[str, bool, int]] = []

    async def treat(source: SourceDocument, executor: Any) -> str:
        begun.append((source.doc_id, executor.reads_alone, len(under_way)))
        under_way.add(source.doc_id)
        try:
            await asyncio.sleep(0.001)
            if source.doc_id in ("d1", "d4") and not executor.reads_alone:
                raise InterruptedReadError("it broke off", code="READER-TIMEOUT", remedy="Again.")
        finally:
            under_way.discard(source.doc_id)
        return source.doc_id

    progress: list[int] = []
    processing = process_documents(
        sources(6), held(Roomy(3)), treat, on_progress=lambda _, number, __: progress.append(number)
    )
    assert asyncio.run(processing) == [f"d{number}" for number in range(6)]
    assert begun[6:] == [("d1", True, 0), ("d4", True, 0)]
    assert not any(reads_alone for _, reads_alone, _ in begun[:6])
    assert progress == [1, 2, 3, 4, 5, 6]


def test_processes_are_started_where_they_are_worth_it(tmp_path: Path) -> None:
    """Few small files are read one after the other; large ones by as many as there are, never more than files."""

    def found(*sizes: int) -> list[Path]:
        made = []
        for number, size in enumerate(sizes):
            path = tmp_path / f"{number}.pdf"
            path.write_bytes(b"x" * size)
            made.append(path)
        return made

    assert choose_worker_count(found(*[3_000] * 12), 8) == 1
    assert choose_worker_count(found(*[3_000] * 40), 8) == 8
    assert choose_worker_count(found(40_000, 40_000), 8) == 2
    assert choose_worker_count(found(), 8) == 1
    assert choose_worker_count([Path("/gone.pdf")] * 3, 8) == 1  # gone meanwhile: whoever reads them says so


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_storage_io_does_not_block_others_and_is_completed(is_cancelled: bool, bucket: str) -> None:
    asked, answered, done = threading.Event(), threading.Event(), []

    def asking(what: str) -> str:
        asked.set()
        assert answered.wait(SECONDS)
        done.append(what)
        return what

    async def both() -> str:
        first = asyncio.create_task(run_uninterrupted_storage_operation(open_folder(bucket), asking, "first"))
        assert await asyncio.to_thread(asked.wait, SECONDS)
        if is_cancelled:
            first.cancel()
            await asyncio.sleep(0)
        answered.set()
        return await first

    if is_cancelled:
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(both())
    else:
        assert asyncio.run(both()) == "first"
    assert done == ["first"]


def test_a_folder_is_written_to_at_once(tmp_path: Path) -> None:
    assert (
        asyncio.run(run_uninterrupted_storage_operation(open_folder(tmp_path), threading.get_ident))
        == threading.get_ident()
    )
