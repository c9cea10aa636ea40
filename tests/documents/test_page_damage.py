"""Damaged pages are told: every warning of the table has a file that loses text, and sound files have none."""

from __future__ import annotations

import base64
import io
import random
import zlib
from collections.abc import Callable
from pathlib import Path

import pymupdf
import pytest
from benchmarks.damaging import KINDS, damaged, loses_text, target
from builders import document, page
from PIL import Image, ImageDraw

from evalkit.classification.orchestrator import collect_reader_issues
from evalkit.core.package_tables import load_package_table
from evalkit.documents.bundle import Block, DocumentBundle, Page, PageStatus
from evalkit.documents.ocr import resolve_ocr_engine
from evalkit.documents.page_damage import MISLEADING_FONT, find_losses, take_drawing_warnings, take_warnings
from evalkit.documents.readers import read_document
from evalkit.documents.scanned_pages import PageOcrSettings
from evalkit.review.plain_sentences import describe_issue, get_issue_answers

from .scanning import needs_tesseract

LINES = [f"({number} nodes of 18 with metastasis) Tj 0 -14 Td" for number in range(1, 31)]
TEXT = ("BT /F1 11 Tf 72 700 Td 13 TL " + "\n".join(LINES) + " ET").encode()
FONT = "/Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >> >>"


def jpeg() -> bytes:
    image = Image.new("L", (400, 400), 255)
    for row in range(0, 400, 20):
        ImageDraw.Draw(image).text((10, row), "2 nodes of 18 with metastasis")
    with io.BytesIO() as out:
        image.save(out, "JPEG")
        return out.getvalue()


def picture(packed: bytes, filter_name: str = "/DCTDecode") -> tuple[bytes, str, str]:
    head = f"<< /Type /XObject /Subtype /Image /Width 400 /Height 400 /BitsPerComponent 8 /ColorSpace /DeviceGray /Filter {filter_name}"
    return packed, head, "q 400 0 0 400 72 300 cm /P Do Q"


def write(path: Path, content: bytes, head: str = "<<", *, resources: str = FONT, contents: str = "4 0 R",
          extra: tuple[bytes, str] | None = None) -> Path:  # fmt: skip
    """Write a PDF with one page; ``head`` opens the dictionary of its content, ``extra`` is a stream 5."""
    bodies = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {contents} /Resources << {resources} >> >>".encode(),
        f"{head} /Length {len(content)} >>\nstream\n".encode() + content + b"\nendstream",
    ]
    if extra:
        bodies.append(f"{extra[1]} /Length {len(extra[0])} >>\nstream\n".encode() + extra[0] + b"\nendstream")
    out, places = bytearray(b"%PDF-1.7\n"), []
    for number, body in enumerate(bodies, start=1):
        places.append(len(out))
        out += b"%d 0 obj\n" % number + body + b"\nendobj\n"
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(places) + 1) + b"".join(
        b"%010d 00000 n \n" % place for place in places
    )
    out += b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(places) + 1, start)
    path.write_bytes(out)
    return path


def write_picture(path: Path, packed: bytes, filter_name: str = "/DCTDecode") -> Path:
    packed, head, content = picture(packed, filter_name)
    return write(path, content.encode(), resources="/XObject << /P 5 0 R >>", extra=(packed, head))


PACKED = zlib.compress(TEXT)
FLATE = "<< /Filter /FlateDecode"
UNSET = b"BT 72 700 Td (18 nodes) Tj ET"
BROKEN_FONT = (
    "/Font << /F1 << /Type /Font /Subtype /TrueType /BaseFont /ABCDEF+Own /FirstChar 32 /LastChar 32 /Widths [500] "
    "/FontDescriptor << /Type /FontDescriptor /FontName /ABCDEF+Own /Flags 4 /FontFile2 5 0 R >> >> >>"
)
FILES: dict[str, Callable[[Path], Path]] = {
    "premature end of data in flate filter": lambda path: write(path, PACKED[: len(PACKED) * 7 // 10], FLATE),
    "premature end in lzw decode": lambda path: write(path, b"\x80\x0b\x60\x50\x22\x0c", "<< /Filter /LZWDecode"),
    "read error; treating as end of file": lambda path: write(path, PACKED[:100] + bytes(60) + PACKED[160:], FLATE),
    "zlib error": lambda path: write(path, zlib.compress(TEXT[:300]) [:-4] + b"abcd", FLATE),
    "unknown filter name": lambda path: write(path, PACKED, "<< /Filter /XlateDecodk"),
    "syntax error": lambda path: write(path, TEXT.replace(b"(7 nodes", b"[ << (7 nodes").replace(b"Td (9", b">] (9")),
    "invalid character in hex string": lambda path: write(path, b"BT /F1 11 Tf 72 700 Td <313zx0> Tj ET"),
    "cannot draw text since font and size not set": lambda path: write(path, UNSET),
    "cannot load content stream part": lambda path: write(path, TEXT, contents="[4 0 R 9 0 R]"),
    "content stream is not a stream": lambda path: write(path, TEXT, contents="2 0 R"),
    "cannot find XObject resource": lambda path: write(path, TEXT + b" /Part Do"),
    "no XObject subtype specified": lambda path: write(path, TEXT + b" /P Do", resources=f"{FONT} /XObject << /P 9 0 R >>"),
    "is no font dict": lambda path: write(path, TEXT, resources="/Font << /F1 9 0 R >>"),
    "ignored error when loading embedded font": lambda path: write(path, TEXT, resources=BROKEN_FONT, extra=(b"no font", "<<")),
    "premature end of file in jpeg": lambda path: write_picture(path, jpeg()[:3000]),
    "jpeg error": lambda path: write_picture(path, b"\0" * 40 + jpeg()),
    "padding truncated image": lambda path: write_picture(path, zlib.compress(bytes(9000)), "/FlateDecode"),
}  # fmt: skip
WARNINGS = [
    warning
    for loss in load_package_table("evalkit.documents", "page_damage.toml")["loss"]
    for warning in loss["warnings"]
]


def read(path: Path) -> DocumentBundle:
    return read_document(path, doc_id="doc", processing_timestamp="", ocr_settings=None)


def test_each_listed_warning_has_a_file() -> None:
    assert sorted(WARNINGS) == sorted(FILES)


@pytest.mark.parametrize("warning", FILES)
def test_a_listed_warning_means_that_something_is_lost(warning: str, tmp_path: Path) -> None:
    path = FILES[warning](tmp_path / "damaged.pdf")
    take_warnings()
    with pymupdf.open(path) as opened:
        opened[0].get_fonts()
        opened[0].get_pixmap(dpi=40)
    warnings = take_warnings()
    assert warning in warnings
    assert find_losses(warnings)
    assert find_losses(warning)


@pytest.mark.parametrize("warning", [warning for warning in FILES if "jpeg" not in warning and "image" not in warning])
def test_a_page_that_lost_text_is_told(warning: str, tmp_path: Path) -> None:
    bundle = read(FILES[warning](tmp_path / "damaged.pdf"))
    assert bundle.pages[0].damage or bundle.pages[0].status is PageStatus.FAILED


def test_eight_kinds_of_damage_are_told(tmp_path: Path) -> None:
    sound_path = write(tmp_path / "sound.pdf", PACKED, FLATE)
    sound = read(sound_path)
    assert not sound.pages[0].damage
    one = target(sound_path)
    assert one is not None
    kinds = []
    for kind, content in damaged(one):
        if "no goal" in kind or kind in ("page tree broken", "file truncated"):
            continue  # told otherwise: tests/documents/test_pdf.py
        path = tmp_path / "damaged.pdf"
        path.write_bytes(content)
        bundle = read(path)
        assert loses_text(sound, bundle), kind
        assert bundle.pages[0].damage or bundle.pages[0].status is PageStatus.FAILED, kind
        kinds.append(kind)
    assert len(kinds) == len(KINDS) - 3


def test_a_page_without_content_is_blank_and_a_null_one_broken(tmp_path: Path) -> None:
    with pymupdf.open() as empty:
        empty.new_page()
        empty.save(tmp_path / "empty.pdf")
    assert read(tmp_path / "empty.pdf").pages[0].status is PageStatus.BLANK
    assert read(write(tmp_path / "null.pdf", TEXT, contents="null")).pages[0].status is PageStatus.FAILED


@needs_tesseract
def test_a_broken_picture_on_a_recognised_page_is_told(tmp_path: Path) -> None:
    engine = resolve_ocr_engine("auto")
    assert engine is not None
    settings = PageOcrSettings(engine, 60)
    path = FILES["premature end of file in jpeg"](tmp_path / "damaged.pdf")
    bundle = read_document(path, doc_id="doc", processing_timestamp="", ocr_settings=settings)
    assert "picture" in bundle.pages[0].damage[0]


@pytest.mark.parametrize(
    ("damage", "cause", "answer"),
    [
        (("a font is missing",), "loss", "Nothing important is lost"),
        ((MISLEADING_FONT,), "font", "The file is genuine"),
        ((MISLEADING_FONT, "a font is missing"), "loss", "Nothing important is lost"),
    ],
)
def test_a_damaged_page_goes_to_a_person(damage: tuple[str, ...], cause: str, answer: str) -> None:
    damaged_page = Page.model_validate(page(2, "Stage: not stated").model_dump() | {"damage": damage})
    (issue,) = collect_reader_issues(document("Text", damaged_page))
    assert (issue.code, issue.severity, issue.page) == ("READER-PAGE-DAMAGED", "MAJOR", 2)
    assert issue.facts == {"pages": "2", "losses": "; ".join(damage), "cause": cause}
    assert get_issue_answers(issue).keep == answer
    assert describe_issue(issue).endswith("Is the file genuine?" if cause == "font" else "Is anything important lost?")
    assert not list(collect_reader_issues(document("Text")))


def test_a_misleading_page_is_asked_about_with_the_words_that_differ() -> None:
    shown = page(2, "Tumor size 5.2 cm, stage 4 disease is seen here")
    text = Block(type="paragraph", text="Tumor size 1.3 cm, stage 1 disease is seen", box=(0, 0, 1, 1), hidden=True)
    misleading = shown.model_copy(update={"damage": (MISLEADING_FONT,), "blocks": (*shown.blocks, text)})
    (issue,) = collect_reader_issues(document("Text", misleading))
    assert describe_issue(issue).startswith("Page 2 shows “5.2 … 4”, but the file's own text says “1.3 … 1”")
    assert issue.boxes == ((2, 0.109, 0.05, 0.136, 0.07), (2, 0.235, 0.05, 0.244, 0.07))
    assert "5.2" not in issue.message


def test_damage_is_written_only_if_there_is_any() -> None:
    assert "damage" not in page(1, "Text").model_dump()


@pytest.mark.parametrize(
    ("options", "is_text"),
    [
        ({}, False),
        ({"optimize": True}, False),
        ({"progressive": True}, False),
        ({"restart_marker_rows": 1}, False),
        ({"quality": 95}, False),
        ({}, True),
    ],
    ids=str,
)
def test_a_zeroed_jpeg_is_told_and_a_sound_one_is_not(
    options: dict[str, object], is_text: bool, tmp_path: Path
) -> None:
    exif = Image.Exif()
    exif[0x9286] = bytes(200) + jpeg()  # zeros and a small picture in the head
    grain = Image.frombytes("L", (400, 400), random.Random(1).randbytes(160_000))
    with Image.open(io.BytesIO(jpeg())) as print_image, io.BytesIO() as out:
        image = grain if "quality" in options else print_image
        image.save(out, "JPEG", exif=exif, **options)
        sound = out.getvalue()
    start = sound.rindex(b"\xff\xda") + 100
    filters = "/DCTDecode"
    if is_text:
        sound, filters, start = base64.a85encode(sound) + b"~>", "[/ASCII85Decode /DCTDecode]", start * 5 // 4
    size = (len(sound) - start) // 4
    for content, is_damaged in ((sound, False), (sound[:start] + bytes(size) + sound[start + size :], True)):
        with pymupdf.open(write_picture(tmp_path / "scan.pdf", content, filters)) as opened:
            take_warnings()
            opened[0].get_pixmap(dpi=40)
            assert bool(find_losses(take_drawing_warnings(opened[0]))) is is_damaged


def test_zeros_that_mean_an_even_surface_are_no_damage(tmp_path: Path) -> None:
    with io.BytesIO() as out:
        image = Image.new("L", (2000, 2000), 255)
        image.putpixel((0, 0), 0)
        image.save(out, "JPEG", optimize=True)
        assert bytes(64) in out.getvalue()
        with pymupdf.open(write_picture(tmp_path / "white.pdf", out.getvalue())) as opened:
            assert not find_losses(take_drawing_warnings(opened[0]))
