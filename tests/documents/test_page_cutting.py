"""Cut PDFs hold what a person sees of their pages, and nothing of another page, however the source shares it."""

from __future__ import annotations

import io
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pymupdf
import pytest
from PIL import Image, ImageChops, ImageDraw, ImageFont, ImageStat

from evalkit.documents.page_cutting import cut_pages
from evalkit.documents.readers import read_document
from evalkit.documents.render import render_page
from evalkit.errors import DocumentError

OWN, FOREIGN = "Zwetschge", "Quaggamuschel"


def read_pages(path: Path) -> Any:
    return read_document(path, doc_id="source", processing_timestamp="").pages


def cut_first_page(path: Path) -> bytes:
    return cut_pages(path, read_pages(path)[:1])


def reveal(pdf: bytes) -> str:
    """All letters of a file: of its bytes, its unpacked streams, and its strings in hexadecimal digits."""
    streams = []
    for match in re.finditer(rb"stream\r?\n", pdf):
        try:
            streams.append(zlib.decompressobj().decompress(pdf[match.end() :]))
        except zlib.error:
            continue
    texts = [pdf, *streams]
    hexadecimal = [
        bytes.fromhex(code.decode()) for text in texts for code in re.findall(rb"<((?:[0-9a-fA-F]{2})+)>", text)
    ]
    return b" ".join([*texts, *hexadecimal]).replace(b"\0", b"").decode("latin-1")


def draw_own_and_foreign_page() -> Any:
    document = pymupdf.open()
    for word in (OWN, FOREIGN):
        document.new_page().insert_text((72, 100), f"A page about {word} and nothing else", fontsize=14)
    return document


def add_hidden_text(document: Any) -> None:
    document[0].insert_text((72, 300), FOREIGN, render_mode=3)


def add_white_text(document: Any) -> None:
    document[0].insert_text((72, 300), FOREIGN, color=(1, 1, 1))


def add_text_below_picture(document: Any) -> None:
    document[0].insert_text((72, 300), FOREIGN)
    document[0].draw_rect(pymupdf.Rect(60, 280, 300, 320), fill=(0.9, 0.9, 0.9), color=None)


def add_text_outside_crop_box(document: Any) -> None:
    document[0].insert_text((72, 700), FOREIGN)
    document[0].set_cropbox(pymupdf.Rect(0, 0, 595, 600))


def split_a_spread(document: Any) -> None:
    """Both pages draw the same form, on which each has its half."""
    spread = pymupdf.open()
    spread.new_page(width=595, height=842)
    for page_number, word in enumerate((OWN, FOREIGN)):
        spread[0].insert_text((72, 100 + 421 * page_number), f"A page about {word} and nothing else", fontsize=14)
    document.delete_pages([0, 1])
    for half in (0, 1):
        page = document.new_page(width=595, height=421)
        page.show_pdf_page(pymupdf.Rect(0, -421 * half, 595, 842 - 421 * half), spread, 0)


def share_a_scan(document: Any) -> None:
    """Both pages show a part of one large picture."""
    scan = Image.new("L", (800, 1600), "white")
    ImageDraw.Draw(scan).text((60, 1200), FOREIGN, font=ImageFont.load_default(60), fill="black")
    for page in document:
        place = pymupdf.Rect(72, 600, 322, 1100) - (0, 400 * page.number) * 2
        xref = page.insert_image(place, stream=to_png(scan), overlay=False)
        document.xref_set_key(xref, "Comment", f"({FOREIGN})")


def to_png(picture: Image.Image) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    return buffer.getvalue()


def add_comment(document: Any) -> None:
    annotation = document[0].add_text_annot((300, 300), FOREIGN)
    annotation.set_info(title=FOREIGN, subject=FOREIGN)


def add_link(document: Any) -> None:
    document[0].insert_link(
        {"kind": pymupdf.LINK_URI, "from": pymupdf.Rect(0, 0, 50, 50), "uri": f"https://x.test/{FOREIGN}"}
    )


def add_outline_and_properties(document: Any) -> None:
    document.set_toc([[1, OWN, 1], [1, FOREIGN, 2]])
    document.set_metadata({"title": FOREIGN, "author": FOREIGN})
    document.set_xml_metadata(f"<x:xmpmeta xmlns:x='adobe:ns:meta/'>{FOREIGN}</x:xmpmeta>")
    document.set_page_labels([{"startpage": 0, "prefix": FOREIGN, "style": "D", "firstpagenum": 1}])


def add_attachment_and_script(document: Any) -> None:
    document.embfile_add(FOREIGN, FOREIGN.encode())
    catalog = document.pdf_catalog()
    document.xref_set_key(catalog, "OpenAction", f"<</S/JavaScript/JS(app.alert\\('{FOREIGN}'\\))>>")
    document.xref_set_key(catalog, "Names/Dests", f"<</Names[({FOREIGN}) [0 /Fit]]>>")


def add_field(document: Any) -> None:
    for page in document:
        widget = pymupdf.Widget()
        widget.field_name, widget.field_type, widget.rect = (
            FOREIGN,
            pymupdf.PDF_WIDGET_TYPE_TEXT,
            pymupdf.Rect(72, 400, 200, 420),
        )
        widget.field_value = FOREIGN if page.number else ""
        page.add_widget(widget)


def add_hidden_layer(document: Any) -> None:
    document[0].insert_text((72, 300), FOREIGN, oc=document.add_ocg(FOREIGN, on=False))


def add_font_name(document: Any) -> None:
    for xref in range(1, document.xref_length()):
        if document.xref_get_key(xref, "Type")[1] == "/Font":
            document.xref_set_key(xref, "BaseFont", f"/{FOREIGN}")


SHARING = (
    add_hidden_text,
    add_white_text,
    add_text_below_picture,
    add_text_outside_crop_box,
    split_a_spread,
    share_a_scan,
    add_comment,
    add_link,
    add_outline_and_properties,
    add_attachment_and_script,
    add_field,
    add_hidden_layer,
    add_font_name,
)


@pytest.mark.parametrize("share", SHARING, ids=lambda share: share.__name__)
def test_cut_holds_nothing_of_another_page(share: Callable[[Any], None], tmp_path: Path) -> None:
    document = draw_own_and_foreign_page()
    share(document)
    path = tmp_path / "source.pdf"
    path.write_bytes(document.tobytes(deflate=True))
    assert FOREIGN in reveal(path.read_bytes()), "the source does not hold the word, so the test could not fail"
    cut = cut_first_page(path)
    assert FOREIGN not in reveal(cut)
    assert max(pixel_differences(path, cut)) < 3
    with pymupdf.open(stream=cut) as cut_document:
        assert cut_document.page_count == 1
        assert OWN in cut_document[0].get_text()


def pixel_differences(path: Path, cut: bytes) -> list[float]:
    """Mean difference of each colour between the first pages as a viewer draws them."""
    drawn, cut_drawn = render_page(path, 1, 100), render_page(cut, 1, 100)
    assert max(abs(a - b) for a, b in zip(drawn.size, cut_drawn.size, strict=True)) <= 1
    return ImageStat.Stat(ImageChops.difference(drawn, cut_drawn.resize(drawn.size))).mean


def test_older_versions_of_a_file_stay_behind(tmp_path: Path) -> None:
    path = tmp_path / "source.pdf"
    draw_own_and_foreign_page().save(path)
    with pymupdf.open(path) as document:
        document.delete_page(1)
        document.saveIncr()
    assert FOREIGN in reveal(path.read_bytes())
    assert FOREIGN not in reveal(cut_first_page(path))


def test_words_lie_where_they_are_seen(tmp_path: Path) -> None:
    path = tmp_path / "source.pdf"
    draw_own_and_foreign_page().save(path)
    with pymupdf.open(path) as source, pymupdf.open(stream=cut_first_page(path)) as cut:
        (seen,), (laid,) = source[0].search_for(OWN), cut[0].search_for(OWN)
        assert abs(seen & laid) > 0.7 * abs(seen)


@pytest.mark.parametrize("rotation", [0, 90, 180, 270])
def test_turned_pages_are_cut_upright(rotation: int, tmp_path: Path) -> None:
    path = tmp_path / "source.pdf"
    document = draw_own_and_foreign_page()
    document[0].set_rotation(rotation)
    document.save(path)
    assert max(pixel_differences(path, cut_first_page(path))) < 3


def test_words_beyond_latin_are_searchable(tmp_path: Path) -> None:
    path = tmp_path / "source.pdf"
    document = pymupdf.open()
    writer = pymupdf.TextWriter(document.new_page().rect)
    writer.append((72, 100), "Größe Ωμέγα", font=pymupdf.Font("cjk"))
    writer.write_text(document[0])
    document.save(path)
    with pymupdf.open(stream=cut_first_page(path)) as cut:
        assert cut[0].get_text().split() == ["Größe", "Ωμέγα"]


def test_unverified_text_layer_of_a_scan_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "source.pdf"
    document = pymupdf.open()
    page = document.new_page()
    page.insert_image(page.rect, stream=to_png(Image.effect_noise((300, 420), 30)))
    page.insert_text((72, 100), f"A text layer about {FOREIGN}", render_mode=3)
    document.save(path)
    assert FOREIGN in read_pages(path)[0].text
    assert FOREIGN not in reveal(cut_first_page(path))


def test_scans_are_stored_with_few_bytes(tmp_path: Path) -> None:
    path = tmp_path / "source.pdf"
    document = pymupdf.open()
    document.new_page().insert_image(pymupdf.Rect(0, 0, 595, 842), stream=to_png(Image.effect_noise((1650, 2340), 12)))
    document.save(path)
    cut = cut_first_page(path)
    assert b"/DCTDecode" in cut
    assert len(cut) < len(path.read_bytes())


def test_cutting_twice_gives_equal_bytes(tmp_path: Path) -> None:
    path = tmp_path / "source.pdf"
    draw_own_and_foreign_page().save(path)
    assert cut_first_page(path) == cut_first_page(path)


def test_broken_page_becomes_a_note(tmp_path: Path) -> None:
    path = tmp_path / "source.pdf"
    draw_own_and_foreign_page().save(path)
    pages = read_pages(path)
    with pymupdf.open(path) as document:
        document.delete_page(1)
        document.save(tmp_path / "shorter.pdf")
    with pymupdf.open(stream=cut_pages(tmp_path / "shorter.pdf", pages)) as cut:
        assert OWN in cut[0].get_text()
        assert "cannot be shown" in cut[1].get_text()


def test_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="does not exist"):
        cut_pages(tmp_path / "none.pdf", [])
