"""Real and broken files from outside the repository: what becomes of each."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymupdf
import pytest

from evalkit.documents.bundle import DocumentBundle
from evalkit.documents.input_files import list_input_files
from evalkit.documents.readers import read_document
from evalkit.pipeline.executor.protocol import ReaderConfig
from evalkit.pipeline.executor.reader_pool import ReaderPool

from .nasty import DATA, FOLDER, SECONDS, Reading, effort, golden, outcome, read_all_in_a_child
from .scanning import needs_tesseract
from .test_pdf import assert_whole

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the developers' data (../shared/data) is not there")

WITHOUT_OCR = golden(ocr=False)


@pytest.mark.parametrize("name", WITHOUT_OCR)
def test_outcome(name: str) -> None:
    started = effort()
    assert outcome(FOLDER / name) == WITHOUT_OCR[name]
    assert effort() - started < SECONDS


def test_the_table_is_complete() -> None:
    assert {path.name for path in list_input_files([FOLDER])} == set(WITHOUT_OCR)


@pytest.fixture(scope="module")
def with_tesseract() -> Reading:
    return read_all_in_a_child()


@needs_tesseract
def test_outcomes_with_tesseract(with_tesseract: Reading) -> None:
    assert with_tesseract.outcomes == golden(ocr=True)


@needs_tesseract
def test_tesseract_takes_neither_long_nor_much_memory(with_tesseract: Reading) -> None:
    assert {name: spent for name, spent in with_tesseract.seconds.items() if spent > SECONDS} == {}
    assert with_tesseract.peak < 1e9


@pytest.mark.parametrize("folder", ["tax", "bank"])
def test_real_documents_keep_the_promises(folder: str) -> None:
    for path in list_input_files([DATA / folder])[::3]:
        assert_whole(read_document(path, doc_id=path.stem, processing_timestamp="2026-01-02T03:04:05Z"))


def labelled() -> Iterator[tuple[Path, dict[str, Any]]]:
    """The clinical documents, with what is known about each."""
    folder = DATA / "clinical_pdf"
    for label in map(json.loads, (folder / "labels.jsonl").read_text(encoding="utf-8").splitlines()):
        yield next(folder.rglob(Path(label["file"]).name)), label


def test_scans_are_told_from_text() -> None:
    for path, label in labelled():
        bundle = read_document(path, doc_id=path.stem, processing_timestamp="")
        assert_whole(bundle)
        assert bundle.total_pages == label["pages"]
        assert {page.status.value for page in bundle.pages} == ({"image"} if label.get("scan") else {"text"})


@needs_tesseract
def test_scans_are_read(tmp_path: Path) -> None:
    """As a run reads them; the first two pages of each stand for the others."""
    scans = []
    for path, label in labelled():
        if label.get("scan"):
            with pymupdf.open(path) as document:
                document.select(range(min(label["pages"], 2)))
                document.save(tmp_path / path.name)
            scans.append(tmp_path / path.name)

    async def all_read() -> list[DocumentBundle]:
        with ReaderPool(2, ReaderConfig(300, ocr_engine="tesseract")) as readers:
            made = await asyncio.gather(
                *(readers.read(path, doc_id=path.stem, processing_timestamp="") for path in scans)
            )
            return [one.bundle for one in made]

    bundles = asyncio.run(all_read())
    assert len(bundles) == 5
    for bundle in bundles:
        assert_whole(bundle)
        assert {page.status.value for page in bundle.pages} == {"ocr"}, bundle.file_path
