"""Hostile and odd files: nothing hangs, nothing ends the run, no word is lost without a note."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest
from documents.drawing import LEFT, lines, pdf
from PIL import Image

from evalkit.documents.attachments import parse_mail
from evalkit.documents.quality import OcrWord
from evalkit.documents.readers import find_input_format, read_document
from evalkit.documents.second_reading import read_words_again
from evalkit.pipeline.document_discovery import DiscoveredDocuments, discover_documents

HEAD = b"From: a@b.invalid\nTo: c@d.invalid\nSubject: s\nMIME-Version: 1.0\n"
TEXT = b"Content-Type: text/plain\n\nhello\n"
REPORT = b'Content-Type: application/pdf; name="report.pdf"\n\n' + pdf(lines(LEFT)) + b"\n"
WORD_NAMESPACE = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def multipart(kind: str, boundary: str, *parts: bytes) -> bytes:
    mark = boundary.encode()
    head = b"Content-Type: multipart/" + kind.encode() + b"; boundary=" + mark + b"\n\n"
    return head + b"".join(b"--" + mark + b"\n" + part + b"\n" for part in parts) + b"--" + mark + b"--\n"


def read_text(content: bytes, name: str) -> str:
    bundle = read_document(Path(name), doc_id="x", processing_timestamp="t", file_bytes=content)
    return " ".join(" ".join(page.text.split()) for page in bundle.pages)


def discover(folder: Path, mail: bytes, name: str = "mail.eml") -> DiscoveredDocuments:
    (folder / name).write_bytes(HEAD + mail)
    return discover_documents([folder / name], {})


def names(discovered: DiscoveredDocuments) -> list[str]:
    return [source.path.name for source in discovered.sources]


@pytest.mark.parametrize("codec", ["hex", "base64", "zlib", "rot13", "uu", "bz2", "punycode", "unicode_escape", "none"])
def test_a_codec_that_is_no_charset_ends_nothing(codec: str, tmp_path: Path) -> None:
    xml = f'Content-Type: application/xml; name=a.xml\n\n<?xml version="1.0" encoding="{codec}"?><a/>\n'.encode()
    text = f"Content-Type: text/plain; charset={codec}\n\nhello\n".encode()
    assert names(discover(tmp_path, multipart("mixed", "B", text, xml))) == ["mail.eml", "a.xml"]


@pytest.mark.timeout(20)
def test_nested_alternatives_are_decided_once() -> None:
    part = TEXT
    for depth in range(30):
        part = multipart("alternative", f"b{depth}", part)
    assert parse_mail(HEAD + part, "x").bodies == (("plain", "hello\n"),)


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "content", [b"<!---->" * 600 + b"x", b"<" + b"!><" * 20_000, b"<?>" * 20_000, b"<!DOCTYPE [" * 5_000]
)
def test_formats_are_told_in_linear_time(content: bytes) -> None:
    find_input_format(content, "a")


@pytest.mark.timeout(20)
def test_many_parts_and_mails_in_mails_take_no_minutes(tmp_path: Path) -> None:
    part = b"Content-Type: application/pdf; name=a.pdf\n\n"
    assert (
        len(
            parse_mail(
                HEAD + multipart("mixed", "B", *(part + b"%d" % number for number in range(900))), "x"
            ).attachments
        )
        == 900
    )
    inner = HEAD + multipart(
        "mixed", "I", *(b"Content-Type: text/plain; name=f%d.txt\n\nnote %d\n" % (n, n) * 200 for n in range(80))
    )
    assert (
        len(discover(tmp_path, multipart("mixed", "O", TEXT, b"Content-Type: message/rfc822\n\n" + inner)).sources)
        == 82
    )


@pytest.mark.parametrize(
    ("mail", "found"),
    [
        (multipart("alternative", "B", TEXT, REPORT), ["mail.eml", "report.pdf"]),
        (
            multipart("alternative", "A", multipart("mixed", "B", TEXT, REPORT), TEXT.replace(b"plain", b"html")),
            ["mail.eml", "report.pdf"],
        ),
        (
            multipart(
                "mixed",
                "B",
                TEXT,
                b'Content-Type: message/rfc822\nContent-Disposition: attachment; filename="Re Befund"\n\n'
                + HEAD
                + multipart("mixed", "C", TEXT, REPORT),
            ),
            ["mail.eml", "Re Befund.eml", "report.pdf"],
        ),
    ],
)
def test_no_attachment_is_lost(mail: bytes, found: list[str], tmp_path: Path) -> None:
    assert names(discover(tmp_path, mail)) == found


def test_a_mail_named_as_text_has_its_attachments_too(tmp_path: Path) -> None:
    assert names(discover(tmp_path, multipart("mixed", "B", TEXT, REPORT), "note.txt")) == ["note.txt", "report.pdf"]


def test_a_container_without_its_boundary_is_damage() -> None:
    lost = b"Content-Type: multipart/mixed; boundary=WRONG\n\n--C\n" + REPORT + b"\n--C--\n"
    assert parse_mail(HEAD + multipart("mixed", "B", TEXT, lost), "x").is_damaged


def test_small_pictures_are_named_and_large_ones_are_documents() -> None:
    def inline(name: str, width: int, height: int) -> bytes:
        buffer = io.BytesIO()
        Image.new("1", (width, height)).save(buffer, "PNG")
        return f"Content-Type: image/png; name={name}\nContent-ID: <{name}>\n\n".encode() + buffer.getvalue()

    mail = parse_mail(
        HEAD + multipart("related", "B", TEXT, inline("logo.png", 180, 60), inline("lab.png", 1600, 590)), "x"
    )
    assert (list(mail.attachments), mail.logos) == (["lab.png"], ("logo.png",))


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ('<p style="font-size:0">gone <b style="font-size:13px">seen</b> gone</p>', "seen"),
        ('<p style="font-size:0">gone <b style="font-size:100%">gone</b></p><p>seen</p>', "seen"),
        ('<p style="visibility:hidden">gone <b style="visibility:visible">seen</b></p>', "seen"),
        ('<p style="display:none">gone <b style="display:block">gone</b></p><p>seen</p>', "seen"),
        ("<style>@supports (a:b){p{display:none}}</style><p>seen</p>", "seen"),
        ("Smoker: <select><option>Yes</option><option selected>No</option></select>", "Smoker: No"),
        ("Smoker: <select><option>Yes</option><option>No</option></select>", "Smoker: Yes"),
        ("Signs: <select multiple><option>Cough</option><option selected>Fever</option></select>", "Signs: Fever"),
    ],
)
def test_only_what_a_browser_shows_is_read(markup: str, text: str) -> None:
    assert read_text(f"<html><body>{markup}</body></html>".encode(), "a.html") == text


def test_a_page_of_xhtml_is_read() -> None:
    page = b'<?xml version="1.0" encoding="UTF-8"?>\n<html><body><p>Seen today</p></body></html>'
    assert read_text(page, "a.xhtml") == "Seen today"


def test_the_style_of_one_body_hides_no_other() -> None:
    styled = b"Content-Type: text/html\n\n<style>pre, div, b { display: none }</style><p>First</p>\n"
    text = read_text(HEAD + multipart("mixed", "B", styled, TEXT), "a.eml")
    assert all(word in text for word in ("Subject:", "First", "hello"))


def write_docx(body: str) -> bytes:
    parts = {
        "_rels/.rels": '<Relationships><Relationship Id="r" Type="x/officeDocument" Target="word/document.xml"/></Relationships>',
        "word/document.xml": f"<w:document {WORD_NAMESPACE}><w:body>{body}</w:body></w:document>",
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, xml in parts.items():
            archive.writestr(name, xml)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("runs", "text"),
    [
        ('<w:t>Hb </w:t><w:sym w:font="Symbol" w:char="F0B3"/><w:t>12</w:t>', "Hb ≥12"),
        ('<w:t>5 </w:t><w:sym w:font="Symbol" w:char="F06D"/><w:t>g</w:t>', "5 μg"),
        ('<w:sym w:font="Symbol" w:char="F03C"/><w:t>3</w:t>', "<3"),
        ("<w:fldChar><w:ffData><w:checkBox><w:checked/></w:checkBox></w:ffData></w:fldChar><w:t>Yes</w:t>", "☒ Yes"),
        (
            '<w:fldChar><w:ffData><w:checkBox><w:default w:val="0"/></w:checkBox></w:ffData></w:fldChar><w:t>No</w:t>',
            "☐ No",
        ),
    ],
)
def test_signs_of_word_keep_their_meaning(runs: str, text: str) -> None:
    assert read_text(write_docx(f"<w:p><w:r>{runs}</w:r></w:p>"), "a.docx") == text


def test_formulas_of_word_keep_their_meaning() -> None:
    one, two, ten, nine = (f"<m:r><m:t>{digits}</m:t></m:r>" for digits in ("1", "2", "10", "9"))
    math = (
        f'<w:p xmlns:m="m"><m:f><m:num>{one}</m:num><m:den>{two}</m:den></m:f>'
        f"<m:sSup><m:e>{ten}</m:e><m:sup>{nine}</m:sup></m:sSup></w:p>"
    )
    assert read_text(write_docx(math), "a.docx") == "1/2 10^9"


def test_a_file_within_a_letter_is_told_as_lost() -> None:
    content = write_docx("<w:p><w:r><w:t>Intro</w:t></w:r></w:p><w:altChunk/>")
    bundle = read_document(Path("a.docx"), doc_id="x", processing_timestamp="t", file_bytes=content)
    assert bundle.is_repaired
    assert "cannot be shown" in bundle.pages[0].text


class Reader:
    name_and_version = "scripted"

    def __init__(self, text: str) -> None:
        self.text = text

    def read_cut_outs(self, cut_outs: object) -> list[tuple[str, float]]:
        return [(self.text, 1.0)]


@pytest.mark.parametrize(
    ("first", "second", "is_doubtful"),
    [
        ("15", "1,5", True),
        ("1,5", "15", True),
        ("5", ".5", True),
        ("2.5", "-2.5", True),
        ("-2.5", "2.5", True),
        ("25", "2.5", True),
        ("1,500", "1500", False),
        ("(2.5)", "2.5", False),
        ("2.5,", "2.5", False),
        ("–2.5", "-2.5", False),
    ],
)
def test_a_lost_point_comma_or_sign_is_a_doubt(first: str, second: str, is_doubtful: bool) -> None:
    word = OcrWord(first, 0, 0, 60, 20, 97, 0)
    _, doubts = read_words_again([word], Image.new("L", (80, 40), 255), Reader(second))
    assert bool(doubts) is is_doubtful
