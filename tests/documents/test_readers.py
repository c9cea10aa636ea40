"""Formats: found by their endings, recognised by their content, read by their file in ``readers/``."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalkit.documents import readers
from evalkit.documents.input_format import InputFormat, PagesRead
from evalkit.documents.page_builder import create_failed_page
from evalkit.documents.readers import FORMATS, read_document, resolve_reader_version
from evalkit.errors import DocumentError

from .arrivals.making import cda, mail, section
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


def read_text(content: bytes, name: str) -> str:
    bundle = read_document(Path(name), doc_id="one", processing_timestamp="", file_bytes=content)
    return " ".join(page.text for page in bundle.pages)


@pytest.mark.parametrize("charset", ["iso-8859-1", "windows-1252", "iso-8859-15"])
def test_utf_8_that_is_declared_as_another_charset_is_read(charset: str) -> None:
    content = mail(
        f"From: a@b.invalid\nContent-Type: text/plain; charset={charset}", "\r\n\r\nTemperature 38 °C in Malmö\r\n"
    )
    assert "38 °C in Malmö" in read_text(content, "note.eml")
    assert "38 °C in Malmö" in read_text(content.decode("utf-8").encode("cp1252"), "note.eml")


def test_deleted_text_of_a_clinical_document_is_not_read() -> None:
    narrative = (
        'Penicillin <content revised="delete">mild </content><content revised="insert">severe</content> reaction'
    )
    assert "Penicillin severe reaction" in read_text(cda(section("Allergies", narrative)).encode(), "note.xml")


@pytest.mark.parametrize(
    ("content_type", "is_encrypted"),
    [
        ("application/pkcs7-mime; smime-type=enveloped-data; name=smime.p7m", True),
        ('multipart/encrypted; protocol="application/pgp-encrypted"; boundary=b', True),
        ("application/pkcs7-mime; smime-type=signed-data; name=smime.p7m", False),
    ],
)
def test_an_encrypted_mail_is_named(content_type: str, is_encrypted: bool) -> None:
    content = mail(f"From: a@b.invalid\nSubject: Report\nContent-Type: {content_type}", "\r\n\r\nTUlNRQ==\r\n")
    if not is_encrypted:
        assert "Report" in read_text(content, "note.eml")
        return
    with pytest.raises(DocumentError) as refused:
        read_text(content, "note.eml")
    assert refused.value.code == "READER-ENCRYPTED"


def test_tables_keep_words_whole_and_captions_above() -> None:
    rows = "<tr><th>Drug</th><th>Dose</th><th>Until</th></tr><tr><td>Apixaban</td><td>5 mg</td><td></td></tr>"
    page = f"<html><body><div><table><caption>Current</caption><tbody>{rows}</tbody></table></div></body></html>"
    assert " ".join(read_text(page.encode(), "list.html").split()) == "Current Drug Dose Until Apixaban 5 mg"
