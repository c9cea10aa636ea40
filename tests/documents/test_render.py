"""Pages as pictures."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from PIL import Image, ImageChops

from evalkit.documents import render
from evalkit.documents.ingest import read
from evalkit.documents.render import jpeg, light, render_page
from evalkit.errors import DocumentError

from .drawing import LEFT, lines, pdf


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """One page on disk."""
    path = tmp_path / "report.pdf"
    path.write_bytes(pdf(lines(LEFT)))
    return path


def test_a_page_has_the_size_of_its_resolution(report: Path) -> None:
    assert render_page(report, 1, dpi=72).size == (612, 792)
    assert render_page(report, 1, dpi=144).size == (1224, 1584)
    assert render_page(report, 1).mode == "RGB"


def test_a_huge_page_becomes_coarser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(render, "MAX_PIXELS", 100_000)
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
    box = read(report, doc_id="report", timestamp="").page(1).blocks[0].box
    found, near = light(image, [box], "found"), light(image, [box], "near")
    for lit in (found, near):
        assert lit.size == image.size
        x0, y0, x1, y1 = ImageChops.difference(lit, image).getbbox() or (0, 0, 0, 0)
        edges = (x0 / image.width, y0 / image.height, x1 / image.width, y1 / image.height)
        assert edges == pytest.approx(box, abs=0.005)
    middle = (int(image.width * (box[0] + box[2]) / 2), int(image.height * (box[1] + box[3]) / 2))
    assert found.getpixel(middle) != image.getpixel(middle)
    assert near.getpixel(middle) == image.getpixel(middle)
    assert ImageChops.difference(light(image, [], "found"), image).getbbox() is None


def test_jpeg(report: Path) -> None:
    data = jpeg(render_page(report, 1, dpi=50))
    assert Image.open(io.BytesIO(data)).format == "JPEG"
    assert len(jpeg(render_page(report, 1, dpi=50), quality=20)) < len(data)
