"""Files as they arrive: each is read as a person sees it, or refused by name; none is passed over or read in part."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pymupdf
import pytest
from documents.arrivals.arrival import Arrival
from documents.arrivals.build_open import build
from documents.arrivals.judging import judge

from evalkit.documents import PageStatus
from evalkit.documents.input_format import PagesRead, ReaderOptions
from evalkit.documents.readers import FORMATS
from evalkit.documents.readers.pdf import LocalPdfReader

OPTIONS = ReaderOptions(pdf_reader=LocalPdfReader(None))
#: The formats of this page; mails have their own.
OURS = ("TIFF", "JPEG", "PNG", "DOCX", "DOC", "HTML", "TXT", "RTF", "C-CDA", "ZIP", "PDF")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield tmp_path_factory.mktemp("arrivals")
    arrivals.cache_clear()


@cache
def arrivals(folder: Path) -> tuple[Arrival, ...]:
    return tuple(build(folder))


@pytest.mark.skipif(not shutil.which("tesseract"), reason="tesseract is not installed")
@pytest.mark.parametrize("name", OURS)
def test_files_are_read_or_named(folder: Path, name: str) -> None:
    outcomes = {arrival.file: judge(arrival, folder) for arrival in arrivals(folder) if arrival.format == name}
    assert outcomes
    assert {file: outcome.faults for file, outcome in outcomes.items() if outcome.faults} == {}


def converted(content: bytes) -> bytes:
    reader = next(row for row in FORMATS.values() if row.has_signature(content)).create_reader(OPTIONS)
    pdf = reader.read_pages(content, "letter").converted_pdf
    assert pdf
    return pdf


@pytest.mark.parametrize("name", ["letter.docx", "table.html", "ccd.xml", "columns.txt", "palette.png", "grey.jpeg"])
def test_equal_bytes_give_an_equal_converted_pdf(folder: Path, name: str) -> None:
    assert arrivals(folder)
    content = (folder / name).read_bytes()
    first, second = converted(content), converted(content)
    assert hashlib.sha256(first).hexdigest() == hashlib.sha256(second).hexdigest()
    assert b"CreationDate" not in first


def test_a_fax_keeps_its_bits_and_its_shape(folder: Path) -> None:
    assert arrivals(folder)
    with pymupdf.open(stream=converted((folder / "FAX00017.TIF").read_bytes())) as document:
        (image,) = document[0].get_images()
        assert image[4] == 1
        assert document[0].rect.height / document[0].rect.width == pytest.approx(842 / 595, rel=0.01)


def test_a_jpeg_is_copied_unchanged(folder: Path) -> None:
    assert arrivals(folder)
    content = (folder / "grey.jpeg").read_bytes()
    with pymupdf.open(stream=converted(content)) as document:
        assert document.xref_stream_raw(document[0].get_images()[0][0]) == content


def read_fax(folder: Path, start: int, end: int, filling: bytes) -> PagesRead:
    """Read the TIFF of three pages after bytes of it were overwritten."""
    assert arrivals(folder)
    content = bytearray((folder / "inbox-3-pages.tiff").read_bytes())
    content[start:end] = filling * (end - start)
    return FORMATS["images"].create_reader(OPTIONS).read_pages(bytes(content), "fax.tif")


def test_a_lost_page_of_a_tiff_is_failed_and_the_others_stay(folder: Path) -> None:
    read = read_fax(folder, 15_992, 30_000, b"\0")
    assert [page.status for page in read.pages] == [PageStatus.IMAGE, PageStatus.IMAGE, PageStatus.FAILED]
    assert read.is_repaired


@pytest.mark.parametrize(("start", "end", "filling"), [(1_629, 4_993, b"\0"), (5_704, 11_169, b"\x55")])
def test_lost_lines_of_a_fax_page_are_told(folder: Path, start: int, end: int, filling: bytes) -> None:
    assert read_fax(folder, start, end, filling).is_repaired
    assert not read_fax(folder, 0, 0, b"").is_repaired
