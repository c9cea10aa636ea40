"""A bomb ends its own reader_pool, and nothing else: the machine lives, the others are finished, the remedy is named."""

from __future__ import annotations

import asyncio
import os
import resource
from pathlib import Path

import pytest
from documents.bombs import BOMBS, packed, page
from warm_pools import create_cold_pool

import evalkit
from evalkit.documents.source_file import MAX_FILE_BYTES
from evalkit.errors import DocumentError
from evalkit.pipeline.executor import reader_pool
from evalkit.pipeline.executor.protocol import ReaderConfig
from evalkit.pipeline.executor.reader_pool import ReaderPool, limit_process_resources
from evalkit.settings import Settings

WORDS = b"BT /F 9 Tf 10 10 Td (hello there) Tj ET\n"


def limits() -> dict[int, tuple[int, int]]:
    return {
        kind: resource.getrlimit(kind) for kind in (resource.RLIMIT_AS, resource.RLIMIT_FSIZE, resource.RLIMIT_CORE)
    }


def test_limits_hold_inside_and_are_gone_afterwards(tmp_path: Path) -> None:
    before = limits()
    with limit_process_resources(2048):
        assert resource.getrlimit(resource.RLIMIT_CORE)[0] == 0
        with pytest.raises(MemoryError):
            bytearray(4 * 2**30)
        with (tmp_path / "large").open("wb") as file, pytest.raises(OSError, match="large"):
            file.truncate(2 * 2**30)
    assert limits() == before
    with limit_process_resources(0):
        assert resource.getrlimit(resource.RLIMIT_AS) == before[resource.RLIMIT_AS]


def test_a_file_that_takes_more_memory_than_it_may_fails_alone(
    samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A process that read for other tests holds their memory.
    monkeypatch.setattr(reader_pool, "create_process_pool", create_cold_pool)
    (tmp_path / "bomb.pdf").write_bytes(page(packed(WORDS, 90)))

    async def both() -> tuple[DocumentError, int]:
        with ReaderPool(1, ReaderConfig(processor_seconds=60, memory_limit_mb=1200)) as readers:
            with pytest.raises(DocumentError) as refused:
                await readers.read(tmp_path / "bomb.pdf", doc_id="bomb", processing_timestamp="t")
            after = await readers.read(samples / "quest_cbc.pdf", doc_id="next", processing_timestamp="t")
            return refused.value, after.bundle.total_pages

    refused, pages = asyncio.run(both())
    assert refused.code == "READER-MEMORY"
    assert "1200 MB" in refused.message
    assert "read_memory_mb" in refused.remedy
    assert pages == 2


@pytest.mark.parametrize(("memory_mb", "held"), [(80_000, "64000 MB"), (0, "64000 MB"), (48_000, "48000 MB")])
def test_the_limit_that_holds_is_the_one_that_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, memory_mb: int, held: str
) -> None:
    def read(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(reader_pool, "read_document", read)
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (64_000 * 2**20, hard))  # as `ulimit -S -v` does
    try:
        with pytest.raises(DocumentError) as refused:
            reader_pool.read_with_limits(
                ReaderConfig(processor_seconds=60, memory_limit_mb=memory_mb), tmp_path / "a.pdf", "a", "t"
            )
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    assert held in refused.value.message
    assert ("ulimit" if held == "64000 MB" else "read_memory_mb") in refused.value.remedy


@pytest.mark.stress
def test_bombs_among_documents(samples: Path, tmp_path: Path) -> None:
    for number, bomb in enumerate(BOMBS.values()):
        (tmp_path / f"bomb{number:02}.pdf").write_bytes(bomb(1))
    os.truncate(os.open(tmp_path / "sparse.pdf", os.O_CREAT | os.O_WRONLY), 2**30)
    output = tmp_path / "output"
    settings = Settings.load(read_memory_mb=900, read_seconds=3, ocr="none", workers=2, output=str(output))
    good = ["quest_cbc", "clinical_note"]
    run = evalkit.run([tmp_path, *(samples / f"{name}.pdf" for name in good)], output=output, settings=settings)
    by_id = {one.doc_id: one for one in run.documents}
    assert {name: by_id[name].decision for name in good} == dict.fromkeys(good, "AUTO_ACCEPT")
    assert len(by_id) == len(BOMBS) + 3
    for one in by_id.values():
        assert one.decision or (one.error and one.pdf_filename in one.error), one
        assert one.decision != "AUTO_ACCEPT" or one.doc_id in good
    assert "larger than" in (by_id["sparse"].error or "")
    assert "100,000 pages" in (by_id[f"bomb{len(BOMBS) - 1:02}"].error or "")
    assert MAX_FILE_BYTES < 2**30
