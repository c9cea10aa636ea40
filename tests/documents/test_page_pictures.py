"""Which pages a seeing model is shown, how many, and how large."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from evalkit.documents import page_pictures
from evalkit.documents.bundle import DocumentBundle, LayoutMetadata, PageStatus
from evalkit.documents.mupdf import open_pdf
from evalkit.documents.page_pictures import PageImage, choose_and_render_page_images, find_picture_reasons
from evalkit.documents.render import render_opened_page

from .drawing import LEFT, bundle, draw_together, lines, nothing, pdf, table
from .scanning import printed, scan, show

Draw = Callable[[Any], object]


def tick_boxes(count: int, *, labelled: bool = True, filled: bool = False, side: float = 8) -> Draw:
    """Boxes below each other, the first ticked."""

    def draw(page: Any) -> None:
        for number in range(count):
            x, y = 80, 400 + 20 * number
            page.draw_rect((x, y, x + side, y + side), width=0.8, fill=(0, 0, 0) if filled else None)
            if labelled:
                page.insert_text((x + side + 5, y + side), "released to the clinic", fontsize=10)
        page.draw_line((80, 400), (80 + side, 400 + side))

    return draw


def stamp(x: float = 300, y: float = 500, degrees: float = 12) -> Draw:
    """A frame with words in it, tilted, as a picture."""
    paper = printed(
        lambda page: page.draw_rect((4, 4, 156, 46), width=2),
        lines(["RECEIVED", "MAR 05 2025"], x=20, y=20, size=13),
        width=160,
        height=50,
    ).tilted(degrees)
    return show(paper, (x, y, x + 160, y + 50))


def signature(page: Any) -> None:
    """A pen's strokes."""
    points = [(90 + 2 * step, 600 + 14 * math.sin(step / 2.0)) for step in range(60)]
    page.draw_polyline(points, width=1.2)


def reasons(data: bytes, read: DocumentBundle | None = None) -> Mapping[int, tuple[str, ...]]:
    opened = open_pdf(data, "drawn.pdf")
    with opened.document:
        return find_picture_reasons(opened, Path("drawn.pdf"), read or bundle(data))


@pytest.mark.parametrize(
    ("draw", "expected"),
    [
        ([lines(LEFT)], ()),
        ([nothing], ()),
        ([lines(LEFT), table([["WBC", "5.2"], ["HGB", "13.1"]])], ()),
        ([lines(LEFT), tick_boxes(3)], ("tick_boxes",)),
        ([lines(LEFT), tick_boxes(2, side=12)], ("tick_boxes",)),
        ([lines(LEFT), tick_boxes(1)], ()),
        ([lines(LEFT), tick_boxes(4, labelled=False)], ()),
        ([lines(LEFT), tick_boxes(4, filled=True)], ()),
        ([lines(LEFT), tick_boxes(4, side=3)], ()),
        ([lines(["O D 0 B 8 D O Q", "D O D O 8 0 B D"] * 4, size=14)], ()),
        ([lines(LEFT), stamp()], ("stamp",)),
        ([lines(LEFT), signature], ("stamp",)),
        ([lines(LEFT), tick_boxes(3), stamp()], ("tick_boxes", "stamp")),
        ([lines(LEFT), lambda page: page.draw_line((72, 300), (540, 300), width=2)], ()),
        ([lines(LEFT), lambda page: page.draw_rect((60, 100, 550, 220))], ()),
    ],
)
def test_what_is_drawn_on_a_page_of_text(draw: list[Draw], expected: tuple[str, ...]) -> None:
    assert reasons(pdf(draw_together(*draw))).get(1, ()) == expected


@pytest.mark.parametrize(
    ("update", "expected"),
    [
        ({"status": PageStatus.IMAGE, "text": ""}, ("image",)),
        ({"status": PageStatus.OCR, "quality": 0.74}, ("poor",)),
        ({"status": PageStatus.OCR, "quality": 0.75}, ()),
        ({"status": PageStatus.IMAGE, "quality": 0.2}, ("image", "poor")),
        ({"unread": "the words in a picture could not be recognised"}, ("poor",)),
        ({"damage": ("letters are lost",)}, ("poor",)),
        ({"status": PageStatus.OCR, "problems": ("the page is blurred",)}, ("poor",)),
        ({"status": PageStatus.OCR, "layout_metadata": LayoutMetadata(block_types=(), has_tables=True)}, ("table",)),
        ({"status": PageStatus.TEXT, "layout_metadata": LayoutMetadata(block_types=(), has_tables=True)}, ()),
        ({"status": PageStatus.FAILED, "quality": 0.1}, ()),
        ({"status": PageStatus.BLANK, "quality": 0.1}, ()),
    ],
)
def test_how_a_page_was_read(update: dict[str, Any], expected: tuple[str, ...]) -> None:
    data = pdf(lines(LEFT))
    read = bundle(data)
    changed = read.model_copy(update={"pages": (read.page(1).model_copy(update=update),)})
    assert reasons(data, changed).get(1, ()) == expected


def test_tick_boxes_and_stamps_of_a_scan_are_found() -> None:
    form = draw_together(lines(LEFT), tick_boxes(3))
    data = scan(printed(form, dpi=200), printed(lines(LEFT), dpi=200))
    read = bundle(pdf(form, lines(LEFT)))  # what a perfect engine would have read
    pages = tuple(page.model_copy(update={"status": PageStatus.OCR, "quality": 0.9}) for page in read.pages)
    assert reasons(data, read.model_copy(update={"pages": pages})) == {1: ("tick_boxes",)}


def test_a_page_of_words_and_rules_is_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []

    def count(opened_pdf: Any, path: Path, page_num: int, *options: Any, **more: Any) -> Image.Image:
        drawn.append(page_num)
        return render_opened_page(opened_pdf, path, page_num, *options, **more)

    monkeypatch.setattr(page_pictures, "render_opened_page", count)
    ruled = draw_together(lines(LEFT), table([["WBC", "5.2"], ["HGB", "13.1"]]))
    assert reasons(pdf(lines(LEFT), ruled, draw_together(lines(LEFT), signature))) == {3: ("stamp",)}
    assert drawn == [3]


def test_a_logo_on_several_pages_is_no_stamp() -> None:
    page = draw_together(lines(LEFT), stamp(x=60, y=30, degrees=0))
    assert reasons(pdf(page, page)) == {}
    assert reasons(pdf(page, draw_together(lines(LEFT), stamp()))) == {1: ("stamp",), 2: ("stamp",)}


def test_only_the_most_useful_pictures_are_drawn_and_no_larger_than_allowed() -> None:
    data = pdf(*[draw_together(lines(LEFT), tick_boxes(2))] * 3, draw_together(lines(LEFT), signature), lines(LEFT))
    read = bundle(data)
    pages = (*read.pages[:2], read.page(3).model_copy(update={"status": PageStatus.IMAGE}), *read.pages[3:])
    read = read.model_copy(update={"pages": pages})
    images = choose_and_render_page_images(data, read, max_images=3, max_pixels=200_000)
    assert [(image.page_number, image.reasons[0]) for image in images] == [
        (1, "tick_boxes"),
        (2, "tick_boxes"),
        (3, "image"),
    ]
    for image in images:
        with Image.open(io.BytesIO(image.png)) as picture:
            assert 150_000 < picture.width * picture.height <= 200_000
    assert [image.page_number for image in choose_and_render_page_images(data, read, 9, 200_000)] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("found", "may"),
    [((), False), (("table",), False), (("stamp", "table"), True), (("tick_boxes",), True), (("image",), True)],
)
def test_a_table_alone_shows_no_unread_words(found: tuple[Any, ...], may: bool) -> None:
    assert PageImage(1, b"", found).may_show_unread_words is may
