"""Formats: found by their endings, recognised by their content, read by their file in ``readers/``."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalkit.documents import readers
from evalkit.documents.input_format import InputFormat, PagesRead
from evalkit.documents.page_builder import create_failed_page
from evalkit.documents.readers import FORMATS, read_document, resolve_reader_version
from evalkit.errors import DocumentError

from .drawing import LEFT, lines, pdf


class SlideReader:
    """Of an imaginary format: as many pages as bytes."""

    reader_version = "slides 3"

    def read_pages(self, content: bytes, file_name: str) -> PagesRead:
        assert file_name == "talk.pdf"
        return PagesRead(tuple(create_failed_page(number) for number in range(1, len(content) + 1)))


@pytest.fixture
def slides(monkeypatch: pytest.MonkeyPatch) -> None:
    slides = InputFormat("slides", (".sld",), lambda content: content.startswith(b"SLD\0"), lambda _: SlideReader())
    monkeypatch.setattr(readers, "FORMATS", {**FORMATS, "slides": slides})


def test_every_file_of_the_folder_is_a_format() -> None:
    folder = Path(readers.__file__).parent
    assert set(FORMATS) == {path.stem for path in folder.glob("*.py")} - {"__init__"}


@pytest.mark.usefixtures("slides")
def test_content_decides_the_format_whatever_the_name() -> None:
    bundle = read_document(Path("x/talk.pdf"), doc_id="talk", processing_timestamp="", file_bytes=b"SLD\0 ")
    assert (bundle.total_pages, bundle.file_path) == (5, "x/talk.pdf")


@pytest.mark.usefixtures("slides")
def test_bundles_name_the_readers_of_all_formats() -> None:
    bundle = read_document(Path("x/talk.pdf"), doc_id="talk", processing_timestamp="", file_bytes=pdf(lines(LEFT)))
    assert bundle.reader == resolve_reader_version("none")
    assert bundle.reader.endswith(", slides 3")


@pytest.mark.usefixtures("slides")
def test_unknown_content_is_refused_as_no_pdf() -> None:
    with pytest.raises(DocumentError) as refused:
        read_document(Path("x/talk.pdf"), doc_id="talk", processing_timestamp="", file_bytes=b"PK\3\4")
    assert refused.value.code == "READER-NOT-PDF"
