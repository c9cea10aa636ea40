"""Pages as pictures."""

from __future__ import annotations

import io
from pathlib import Path

import psutil
import pymupdf
import pytest
from PIL import Image, ImageChops

from evalkit.documents import render
from evalkit.documents.readers import read_document
from evalkit.documents.render import PdfPageRenderer, encode_webp, highlight_boxes, render_page
from evalkit.errors import DocumentError

from .drawing import LEFT, lines, pdf


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """One page on disk."""
    path = tmp_path / "report.pdf"
    path.write_bytes(pdf(lines(LEFT)))
    return path


def test_a_page_has_the_size_of_its_resolution(report: Path) -> None:
    assert render_page(report, 1, max_dpi=72).size == (612, 792)
    assert render_page(report, 1, max_dpi=144).size == (1224, 1584)
    assert render_page(report, 1).mode == "RGB"


def test_a_huge_page_becomes_coarser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(render, "MAX_RENDER_PIXELS", 100_000)
    path = tmp_path / "poster.pdf"
    path.write_bytes(pdf(lines(LEFT), width=14_400, height=7_200))
    image = render_page(path, 1)
    assert image.width * image.height <= 110_000
    assert image.width == pytest.approx(2 * image.height, rel=0.02)


@pytest.mark.parametrize("number", [0, 2, -1])
def test_pages_that_do_not_exist(report: Path, number: int) -> None:
    with pytest.raises(DocumentError, match=f"has no page {number}") as caught:
        render_page(report, number)
    assert caught.value.code == "READER-PAGE"


def test_light_falls_on_the_words(report: Path) -> None:
    image = render_page(report, 1)
    box = read_document(report, doc_id="report", processing_timestamp="").page(1).blocks[0].box
    found, near = highlight_boxes(image, [box], "found"), highlight_boxes(image, [box], "near")
    for lit in (found, near):
        assert lit.size == image.size
        x0, y0, x1, y1 = ImageChops.difference(lit, image).getbbox() or (0, 0, 0, 0)
        edges = (x0 / image.width, y0 / image.height, x1 / image.width, y1 / image.height)
        assert edges == pytest.approx(box, abs=0.005)
    middle = (int(image.width * (box[0] + box[2]) / 2), int(image.height * (box[1] + box[3]) / 2))
    assert found.getpixel(middle) != image.getpixel(middle)
    assert near.getpixel(middle) == image.getpixel(middle)
    assert ImageChops.difference(highlight_boxes(image, [], "found"), image).getbbox() is None


def test_webp(report: Path) -> None:
    data = encode_webp(render_page(report, 1, max_dpi=50))
    assert Image.open(io.BytesIO(data)).format == "WEBP"
    assert len(encode_webp(render_page(report, 1, max_dpi=50), quality=20)) < len(data)


def test_pictures_of_a_file_that_changes_meanwhile_are_refused(report: Path) -> None:
    pictures = PdfPageRenderer(report)
    assert pictures.render_full_size(1) == pictures.render_full_size(1)
    report.write_bytes(pdf(lines(["Another document"]), lines(["of two pages"])))
    with pytest.raises(DocumentError, match="was changed while it was open") as caught:
        pictures.render_thumbnail(1)
    assert caught.value.code == "READER-CHANGED"
    report.unlink()
    with pytest.raises(DocumentError, match="does not exist"):
        pictures.render_preview(1)
    pictures.close()


def test_pictures_of_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="does not exist") as caught:
        PdfPageRenderer(tmp_path / "nowhere.pdf")
    assert caught.value.code == "READER-UNREADABLE"


def test_a_preview_is_between_thumbnail_and_page(report: Path) -> None:
    pictures = PdfPageRenderer(report)
    widths = [
        Image.open(io.BytesIO(draw(1))).width
        for draw in (pictures.render_thumbnail, pictures.render_preview, pictures.render_full_size)
    ]
    pictures.close()
    assert widths == [204, 442, 1190]


def test_two_hundred_openings_leave_memory_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "scans.pdf"
    path.write_bytes(scans(2))

    def look() -> None:
        pictures = PdfPageRenderer(path)
        for number in (1, 2):
            pictures.render_full_size(number)
        pictures.close()

    process = psutil.Process()
    for _ in range(5):
        look()
    before = process.memory_full_info().uss
    for _ in range(195):
        look()
    assert process.memory_full_info().uss - before < 16 * 2**20


def scans(pages: int) -> bytes:
    """Grey noise on every page, another on each: what decoding keeps cannot be shared."""
    document = pymupdf.open()
    for number in range(pages):
        noise = io.BytesIO()
        Image.effect_noise((425, 550), 20 + number).save(noise, "JPEG")
        page = document.new_page(width=200, height=260)
        page.insert_image(page.rect, stream=noise.getvalue())
    return bytes(document.tobytes())
