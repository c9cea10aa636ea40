"""A document whose reading breaks off is read again alone; what ended it decides what follows."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest
from patience import eventually
from places import open_folder

import evalkit
from evalkit.errors import DocumentError
from evalkit.pipeline.executor import reader_pool
from evalkit.pipeline.executor.protocol import InterruptedReadError, ReaderConfig
from evalkit.pipeline.executor.reader_pool import (
    ReaderPool,
    WorkerReadResult,
    WorkerShare,
    await_read_result,
    read_with_limits,
)
from evalkit.review.case_files import read_packet
from evalkit.settings import Settings
from evalkit.store import packet_file_name

#: Code by how a file breaks off.
CODES = {"burn": "READER-TOO-SLOW", "sleep": "READER-TIMEOUT", "crash": "READER-CRASHED"}


def broken_read(config: ReaderConfig, path: Path, doc_id: str, timestamp: str) -> WorkerReadResult:
    """Read a file, or break off as its name says; a busy machine takes minutes for a second of processor time."""
    if path.stem == "burn":
        reader_pool.read_document = _burn
        config = ReaderConfig(processor_seconds=1, hang_factor=600)
    if path.stem == "sleep":
        reader_pool.read_document = lambda *_, **__: time.sleep(600)
        config = ReaderConfig(processor_seconds=2, hang_factor=1)
    if path.stem == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    return read_with_limits(config, path, doc_id, timestamp)


def _burn(*_: object, **__: object) -> None:
    while True:
        pass


@pytest.fixture
def breaking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_pool, "read_with_limits", broken_read)


@pytest.mark.parametrize("name", CODES)
def test_each_way_to_break_off_has_its_own_code(name: str, samples: Path, breaking: None) -> None:
    async def read_both() -> DocumentError:
        with ReaderPool(1, ReaderConfig(processor_seconds=60)) as pool:
            with pytest.raises(DocumentError) as broken:
                await pool.read(Path(f"{name}.pdf"), doc_id=name, processing_timestamp="t")
            pool.reads_alone = False
            with pytest.raises(InterruptedReadError) as interrupted:
                await pool.read(Path(f"{name}.pdf"), doc_id=name, processing_timestamp="t")
            assert interrupted.value.code == broken.value.code
            following = await pool.read(samples / "quest_cbc.pdf", doc_id="next", processing_timestamp="t")
            assert following.bundle.total_pages == 2
            return broken.value

    error = asyncio.run(read_both())
    assert error.code == CODES[name]
    assert f"{name}.pdf" in error.message


def test_page_out_of_time_interrupts_unless_read_alone() -> None:
    async def read(*, reads_alone: bool) -> object:
        future: asyncio.Future[WorkerReadResult] = asyncio.get_running_loop().create_future()
        future.set_result(WorkerReadResult("bundle", 2.0, 1.0, has_slow_pages=True))  # type: ignore[arg-type]
        return (await await_read_result(future, "x.pdf", ReaderConfig(1), reads_alone=reads_alone)).bundle

    assert asyncio.run(read(reads_alone=True)) == "bundle"
    with pytest.raises(InterruptedReadError):
        asyncio.run(read(reads_alone=False))


def test_a_document_uses_only_workers_without_a_file(tmp_path: Path) -> None:
    count_path = tmp_path / "count"

    def count_with(busy_count: int) -> int:
        count_path.write_bytes(b"%4d" % busy_count)
        return WorkerShare(str(count_path), 8).count_workers()

    assert [count_with(busy_count) for busy_count in (1, 2, 3, 5, 8)] == [8, 4, 2, 1, 1]


def test_pool_tells_its_processes_how_many_are_busy(tmp_path: Path) -> None:
    (tmp_path / "alone").mkdir()

    async def count_alone_and_together() -> list[int]:
        with ReaderPool(2, ReaderConfig(processor_seconds=60), page_worker_count=4) as pool:
            alone = await pool.run_in_worker(_count_workers, tmp_path / "alone", "0", 1)
            together = (pool.run_in_worker(_count_workers, tmp_path, f"{number}", 2) for number in range(2))
            return [alone, *await asyncio.gather(*together)]

    assert asyncio.run(count_alone_and_together()) == [4, 2, 2]


def _count_workers(folder: Path, name: str, process_count: int) -> int:
    """Count the workers while so many processes do."""
    for step in ("begun", "counted"):
        (folder / f"{name}.{step}").touch()
        assert eventually(lambda step=step: len(list(folder.glob(f"*.{step}"))) >= process_count)
        if step == "begun":
            assert reader_pool._worker_share
            count = reader_pool._worker_share.count_workers()
    return count


def _run(samples: Path, folder: Path, name: str) -> evalkit.RunSummary:
    path = folder / f"{name}.pdf"
    path.write_bytes((samples / "quest_cbc.pdf").read_bytes() + b"\n%" + name.encode())
    settings = Settings(workers=1, output=str(folder / "output"))
    return evalkit.run([path, samples / "requisition.pdf"], settings=settings)


def test_a_slow_document_goes_to_a_person(samples: Path, tmp_path: Path, breaking: None) -> None:
    run = _run(samples, tmp_path, "burn")
    slow = next(document for document in run.documents if document.doc_id == "burn")
    assert slow.error is None
    assert (run.exit_status, slow.decision, slow.pages, slow.major, slow.blocker) == (0, "ESCALATE_TO_SME", 2, 1, 0)
    packet = read_packet(open_folder(tmp_path / "output"), "burn")
    assert [issue.code for issue in packet.issues] == ["READER-TOO-SLOW"]
    again = _run(samples, tmp_path, "burn")
    assert all(document.resumed for document in again.documents)


def test_a_busy_machine_makes_no_packet_until_its_second_run(samples: Path, tmp_path: Path, breaking: None) -> None:
    output_folder = open_folder(tmp_path / "output")
    first = _run(samples, tmp_path, "sleep")
    assert [document.doc_id for document in first.failed] == ["sleep"]
    assert first.exit_status == 1
    assert not output_folder.has_file(packet_file_name("sleep"))
    second = _run(samples, tmp_path, "sleep")
    assert second.exit_status == 0
    packet = read_packet(output_folder, "sleep")
    assert [issue.code for issue in packet.issues] == ["READER-TOO-SLOW"]
