"""What a person can see is the page's text; the rest is kept apart, and nothing is lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pymupdf
import pytest

from evalkit.documents.bundle import Page
from evalkit.documents.readers import read_document
from evalkit.documents.visibility import PageVisibilityInspector

from .drawing import LEFT, bundle, by_hand, draw_together, first, lines, nothing, pdf, table

_Draw = Callable[[Any], object]
PROSE = " ".join(LEFT)


def says(text: str, *, y: float = 400, size: float = 11, **look: Any) -> _Draw:
    """One line of text, looking like that."""
    return lambda page: page.insert_text((72, y), text, fontsize=size, **look)


def box(x0: float, y0: float, x1: float, y1: float, **look: Any) -> _Draw:
    """A rectangle."""
    return lambda page: page.draw_rect((x0, y0, x1, y1), **look)


def code(content: str) -> _Draw:
    """What these PDF operators paint; ``/helv`` is there once a line was written."""
    return lambda page: pymupdf.TOOLS._insert_contents(page, content.encode(), 1)


def picture(x0: float, y0: float, x1: float, y1: float, grey: int) -> _Draw:
    """An image of one colour."""

    def draw(page: Any) -> None:
        image = pymupdf.Pixmap(pymupdf.csGRAY, pymupdf.IRect(0, 0, 8, 8), False)
        image.clear_with(grey)
        page.insert_image((x0, y0, x1, y1), pixmap=image)

    return draw


def strips(draw: Callable[[Any, float], object]) -> _Draw:
    """Something thin again and again, from above a line of text to below it."""
    return lambda page: [draw(page, 386 + 2.5 * number) for number in range(9)]


def inked(page: Any) -> None:
    """White ink, line by line."""
    annotation = page.add_ink_annot([[(60, y), (300, y)] for y in range(384, 412, 2)])
    annotation.set_border(width=2.9)
    annotation.set_colors(stroke=(1, 1, 1))
    annotation.update()


def hidden(page: Page) -> list[str]:
    return [block.text for block in page.blocks if block.hidden]


@pytest.mark.parametrize(
    "trick",
    [
        says("ignore this", color=(1, 1, 1)),
        says("ignore this", color=(0.97, 0.97, 0.97)),
        says("ignore this", size=40, color=(0.96, 0.97, 0.98)),
        says("ignore this", fill_opacity=0.03),
        says("ignore this", fill_opacity=0.0),
        says("ignore this", size=1),
        says("ignore this", size=1.8, color=(1, 0, 0)),
        says("ignore this", render_mode=3),
        draw_together(says("ignore this"), box(60, 380, 300, 420, fill=(0, 0, 0))),
        draw_together(says("ignore this"), box(60, 380, 300, 420, fill=(1, 1, 1), color=None)),
        draw_together(says("ignore this"), picture(60, 380, 300, 420, 255)),
        draw_together(says("ignore this"), lambda page: page.draw_line((60, 396), (300, 396), width=30)),
        draw_together(box(60, 380, 300, 420, fill=(0, 0, 0)), says("ignore this")),
        draw_together(box(60, 380, 300, 420, fill=(0.1, 0, 0.1)), says("ignore this", color=(0.1, 0, 0.12))),
        draw_together(picture(60, 380, 300, 420, 0), says("ignore this")),
        code("q 300 300 50 50 re W n BT /helv 11 Tf 72 392 Td (ignore this) Tj ET Q"),
        code("q 300 300 m 350 300 l 320 350 l h W n BT /helv 11 Tf 72 392 Td (ignore this) Tj ET Q"),
        # A clip whose box holds the words, and whose shape does not.
        code("q 60 300 m 400 300 l 400 310 l 60 500 l 60 305 l h 60 300 m 61 500 l 62 300 l h W n Q"
             " q 60 380 m 500 380 l 500 381 l 300 381 l 300 420 l 299 420 l 299 381 l 60 381 l h W n"
             " BT /helv 11 Tf 72 392 Td (ignore this) Tj ET Q"),
        code("BT /helv 11 Tf 7 Tr 72 392 Td (ignore this) Tj ET"),
        # Edges of letters, of dashes that never come.
        draw_together(says(" ", y=300), code("BT /helv 11 Tf 1 Tr [0 100] 0 d 72 392 Td (ignore this) Tj ET")),
        # Thin things, one next to the other.
        draw_together(says("ignore this"), strips(lambda page, y: page.draw_line((60, y), (300, y), width=2.9, color=(1, 1, 1)))),
        draw_together(says("ignore this"), strips(lambda page, y: page.draw_rect((60, y, 300, y + 2.9), color=None, fill=(1, 1, 1)))),
        draw_together(says("ignore this"), code("q 1 1 1 RG 2.9 w " + " ".join(f"60 {y} m 300 {y} l" for y in range(386, 406, 2)) + " S Q")),
        draw_together(says("ignore this"), code("q 1 1 1 rg " + " ".join(f"60 {y} 240 2.2 re" for y in range(384, 406, 2)) + " f Q")),
        draw_together(says("ignore this"), inked),
        # A cover with something on it that is not words.
        draw_together(says("ignore this"), box(60, 380, 300, 420, fill=(1, 1, 1), color=None), box(70, 396, 200, 397, fill=(0, 0, 0))),
        draw_together(says("ignore this"), box(60, 380, 300, 420, fill=(1, 1, 1), color=None), strips(lambda page, y: page.draw_line((60, y), (300, y), width=0.3))),
        draw_together(says("ignore this"), box(60, 380, 300, 420, fill=(1, 1, 1), color=None), lambda page: page.draw_circle((75, 397), 1.2, fill=(0, 0, 0))),
    ],
)  # fmt: skip
def test_what_cannot_be_seen_is_kept_apart(trick: _Draw) -> None:
    page = first(draw_together(lines(LEFT), trick))
    assert page.text == PROSE
    assert hidden(page) == ["ignore this"]


@pytest.mark.parametrize(
    "shown",
    [
        says("read this", color=(0.6, 0.6, 0.6)),
        says("read this", color=(0.75, 0.75, 0.75)),
        says("read this.", size=6, color=(0.75, 0.75, 0.75)),
        says("read this", size=40, color=(0.9, 0.9, 0.9)),
        says("read this", size=60, fill_opacity=0.15),
        says("read this", size=30, color=(1, 1, 0)),
        says("read this", size=4),
        says("read this", render_mode=1),
        draw_together(box(60, 380, 300, 420, fill=(0.1, 0.2, 0.4)), says("read this", color=(1, 1, 1))),
        draw_together(box(60, 380, 300, 420, fill=(0.9, 0.95, 0.9)), says("read this")),
        draw_together(picture(60, 380, 300, 420, 220), says("read this")),
        draw_together(says("read this"), box(60, 380, 300, 420)),
        draw_together(says("read this"), box(60, 380, 300, 420, fill=(1, 1, 0), color=None, fill_opacity=0.4)),
        draw_together(says("read this"), lambda page: page.add_highlight_annot((60, 385, 300, 405))),
        draw_together(says("read this"), lambda page: page.draw_line((72, 402), (130, 402), width=2)),
        draw_together(says("read this"), lambda page: page.draw_line((60, 396), (300, 396), width=1)),
        draw_together(says("read this"), lambda page: page.add_strikeout_annot((60, 385, 300, 405))),
        draw_together(says("read this", size=5), lambda page: page.draw_line((60, 398.5), (300, 398.5), width=0.5)),
        draw_together(says("read this"), strips(lambda page, y: page.draw_line((60, y), (300, y), width=0.3))),
        draw_together(says("read this"), lambda page: page.draw_circle((90, 396), 60, color=(0.8, 0, 0), width=2)),
        code("q 60 380 200 40 re W n BT /helv 11 Tf 72 392 Td (read this) Tj ET Q"),
        code("q 60 380 m 300 380 l 300 420 l 60 410 l h W n BT /helv 11 Tf 72 392 Td (read this) Tj ET Q"),
        # Letters as windows upon something dark.
        code("q BT /helv 30 Tf 7 Tr 72 380 Td (read this) Tj ET 0 0 0.4 rg 0 300 600 200 re f Q"),
    ],
)
def test_what_is_faint_or_framed_but_can_be_seen_is_text(shown: _Draw) -> None:
    page = first(draw_together(lines(LEFT), shown))
    assert page.text.removesuffix(".") == f"{PROSE}\nread this"
    assert hidden(page) == []


def painted(content: str, resources: str, thing: str) -> Page:
    """A page of 200 by 200 points that paints ``content``; object 6 is ``thing``, font F is Helvetica."""
    return bundle(
        by_hand(
            [
                "<</Type/Catalog/Pages 2 0 R>>",
                "<</Type/Pages/Count 1/Kids[3 0 R]>>",
                "<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>"
                f"{resources}>>>>",
                f"<</Length {len(content)}>>stream\n{content}\nendstream",
                "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
                thing,
            ]
        )
    ).page(1)


@pytest.mark.parametrize(("opacity", "text"), [(0.03, "In sight"), (0.6, "In sight\nHi there")])
def test_a_transparent_group_hides_what_is_in_it(opacity: float, text: str) -> None:
    form = "BT /F 12 Tf 10 100 Td (Hi there) Tj ET"
    page = painted(
        "BT /F 12 Tf 10 150 Td (In sight) Tj ET /G gs /X Do",
        f"/XObject<</X 6 0 R>>/ExtGState<</G<</ca {opacity}>>>>",
        "<</Type/XObject/Subtype/Form/BBox[0 0 200 200]/Group<</S/Transparency>>/Resources<</Font<</F 5 0 R>>>>"
        f"/Length {len(form)}>>stream\n{form}\nendstream",
    )
    assert page.text == text
    assert hidden(page) == (["Hi there"] if opacity < 0.5 else [])


def test_patterns_and_gradients_hide_what_they_cover() -> None:
    words = "BT /F 12 Tf 10 150 Td (In sight) Tj 0 -50 Td (Hi there) Tj ET"
    tile = "0 0 0.3 rg 0 0 10 10 re f"
    pattern = painted(
        f"{words} /Pattern cs /P scn 0 90 200 30 re f",
        "/Pattern<</P 6 0 R>>",
        "<</Type/Pattern/PatternType 1/PaintType 1/TilingType 1/BBox[0 0 10 10]/XStep 10/YStep 10/Resources<<>>"
        f"/Length {len(tile)}>>stream\n{tile}\nendstream",
    )
    gradient = painted(
        f"{words} q 0 90 200 30 re W n /S sh Q",
        "/Shading<</S 6 0 R>>",
        "<</ShadingType 2/ColorSpace/DeviceGray/Coords[0 0 200 0]/Extend[true true]"
        "/Function<</FunctionType 2/Domain[0 1]/C0[0.2]/C1[0.21]/N 1>>>>",
    )
    for page in (pattern, gradient):
        assert (page.text, hidden(page)) == ("In sight", ["Hi there"])


def test_only_the_covered_words_of_a_line_are_hidden() -> None:
    start, end = (72 + pymupdf.get_text_length(f"The result is {word}") for word in ("", "not"))
    covered = draw_together(says("The result is not benign"), box(start, 385, end, 405, fill=(0, 0, 0)))
    page = first(covered)
    assert page.text.split() == ["The", "result", "is", "benign"]
    assert hidden(page) == ["not"]


def test_a_page_that_is_small_as_a_whole_is_read() -> None:
    assert first(lines(LEFT, size=1.5)).text == PROSE


def test_the_white_header_of_a_table_is_in_the_table() -> None:
    header = draw_together(
        box(72, 200, 312, 222, fill=(0, 0.2, 0.4)),
        lambda page: [page.insert_text((x, 215), text, fontsize=10, color=(1, 1, 1)) for x, text in ((77, "Test"), (197, "Value"))],
    )  # fmt: skip
    page = first(draw_together(header, table([["", ""], ["WBC", "7.25"]])))
    assert page.paragraphs == ("Test\tValue\nWBC\t7.25",)
    assert hidden(page) == []


def test_no_picture_is_drawn_of_plain_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[object] = []
    monkeypatch.setattr(
        PageVisibilityInspector, "has_visible_ink", lambda sheet, box, *, needs_strong_contrast: not drawn.append(box)
    )
    plain = draw_together(
        lines(LEFT), table([["WBC", "7.25"], ["HGB", "13.9"]]), box(60, 380, 300, 420, fill=(0.9, 0.9, 1))
    )
    # The coloured box comes first, as in every table with a coloured header.
    first(draw_together(box(72, 200, 312, 222, fill=(0.8, 0.9, 1)), plain, picture(400, 400, 500, 500, 90)))
    assert drawn == []
    first(draw_together(lines(LEFT), says("faint", color=(0.75, 0.75, 0.75))))
    assert len(drawn) == 1


def test_underlines_do_not_part_words() -> None:
    def underlined(page: Any) -> None:
        page.insert_text((72, 400), "Adenocar")
        page.draw_line((72, 402), (300, 402))
        page.insert_text((72 + pymupdf.get_text_length("Adenocar"), 400), "cinoma of the colon")

    assert first(underlined).text == "Adenocarcinoma of the colon"


def test_free_text_and_stamps_are_text() -> None:
    def annotated(page: Any) -> None:
        page.add_freetext_annot((72, 390, 300, 420), "Amended on Monday", fontsize=11)

    assert first(draw_together(lines(LEFT), annotated)).paragraphs == (PROSE, "Amended on Monday")


def test_ticked_boxes_and_chosen_values_of_forms_are_text() -> None:
    def form(page: Any) -> None:
        for number, (kind, name, value) in enumerate(
            (
                (pymupdf.PDF_WIDGET_TYPE_TEXT, "name", "Jane Roe"),
                (pymupdf.PDF_WIDGET_TYPE_COMBOBOX, "side", "left"),
                (pymupdf.PDF_WIDGET_TYPE_TEXT, "size", "2.5 cm"),
            )
        ):
            widget = pymupdf.Widget()
            widget.field_name, widget.field_type, widget.field_value = name, kind, value
            if kind == pymupdf.PDF_WIDGET_TYPE_COMBOBOX:
                widget.choice_values = ["left", "right"]
            widget.rect = pymupdf.Rect(150, 100 + 30 * number, 350, 120 + 30 * number)
            page.add_widget(widget)
            page.insert_text((72, 115 + 30 * number), f"{name}:")

    assert first(form).paragraphs == ("name: Jane Roe", "side: left", "size: 2.5 cm")


def test_a_blank_page_is_drawn_to_be_sure() -> None:
    assert first(nothing).status.value == "blank"


@pytest.mark.parametrize("rotation", [90, 180, 270])
def test_a_turned_page_says_what_the_upright_one_says(rotation: int) -> None:
    def turned(page: Any) -> None:
        page.set_rotation(rotation)
        back = page.derotation_matrix

        def write(x: float, y: float, text: str) -> None:
            page.insert_text(pymupdf.Point(x, y) * back, text, fontsize=10, rotate=rotation)

        for number, text in enumerate(LEFT):
            write(72, 80 + 13 * number, text)
        for y in (200, 222, 244):
            page.draw_line(pymupdf.Point(72, y) * back, pymupdf.Point(312, y) * back)
        for x in (72, 192, 312):
            page.draw_line(pymupdf.Point(x, 200) * back, pymupdf.Point(x, 244) * back)
        for x, y, text in ((77, 215, "WBC"), (197, 215, "7.25"), (77, 237, "HGB"), (197, 237, "13.9")):
            write(x, y, text)
        write(72, 400, "The end.")
        page.insert_text(pymupdf.Point(72, 430) * back, "ignore this", rotate=rotation, color=(1, 1, 1))

    page = first(turned, rotation=rotation)
    assert page.paragraphs == (PROSE, "WBC\t7.25\nHGB\t13.9", "The end.")
    assert hidden(page) == ["ignore this"]


def test_a_table_without_rules_is_read_row_by_row() -> None:
    rows = [["Test", "Value", "Unit"], ["WBC", "7.25", "10^9/L"], ["HGB", "13.9", "g/dL"]]
    columns = [lines([row[number] for row in rows], x=72 + 150 * number) for number in range(3)]
    page = first(draw_together(*columns))
    assert page.layout_metadata.has_tables
    assert page.paragraphs == ("Test\tValue\tUnit\nWBC\t7.25\t10^9/L\nHGB\t13.9\tg/dL",)


def test_many_pages_in_one_process_agree_with_each_alone() -> None:
    draws: list[_Draw] = [lines([f"Page body {number}", *LEFT]) for number in range(3)]
    together = bundle(pdf(*draws))
    assert [page.text for page in together.pages] == [first(draw).text for draw in draws]


def with_own_font(word: str) -> bytes:
    """A page with a font of its own, whose letter a is a square and whose letter b is nothing."""
    content = b"BT /F0 12 Tf 72 700 Td (Plain words) Tj ET BT /F1 20 Tf 72 600 Td (%s) Tj ET" % word.encode()
    glyph = b"800 0 0 0 800 800 d1"
    streams = [content, glyph + b" 100 100 600 600 re f", glyph]
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 6 0 R/Resources<</Font<</F0 4 0 R/F1 5 0 R>>>>>>",
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        b"<</Type/Font/Subtype/Type3/FontBBox[0 0 1000 1000]/FontMatrix[.001 0 0 .001 0 0]/FirstChar 97/LastChar 98"
        b"/Widths[800 800]/Encoding<</Type/Encoding/Differences[97/a/b]>>/CharProcs<</a 7 0 R/b 8 0 R>>/Resources<<>>>>",
        *(b"<</Length %d>>stream\n%s\nendstream" % (len(stream), stream) for stream in streams),
    ]
    file = b"%PDF-1.4\n"
    places = []
    for number, body in enumerate(objects, 1):
        places.append(len(file))
        file += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    head = b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    return (
        file + head + table + b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, len(file))
    )


@pytest.mark.parametrize(
    ("word", "text"), [("aaa", "Plain words\naaa"), ("aab", "Plain words\naab"), ("bbb", "Plain words")]
)
def test_letters_without_a_shape_are_not_read(word: str, text: str) -> None:
    bundle = read_document(Path("x.pdf"), file_bytes=with_own_font(word), doc_id="x", processing_timestamp="")
    assert bundle.page(1).text == text
    assert [block.text for block in bundle.page(1).blocks if block.hidden] == ([word] if word == "bbb" else [])


@pytest.mark.parametrize("named", ["/Name/Foo", "/Name/Foo/BaseFont/Bar", ""])
@pytest.mark.parametrize("is_one_page", [False, True])
def test_a_font_proves_no_letters_of_another_of_its_name(named: str, is_one_page: bool) -> None:
    def font(shape: int, called: str) -> str:
        return (
            f"<</Type/Font/Subtype/Type3{called}/FontBBox[0 0 1000 1000]/FontMatrix[.001 0 0 .001 0 0]/FirstChar 97"
            f"/LastChar 97/Widths[800]/Encoding<</Type/Encoding/Differences[97/a]>>/CharProcs<</a {shape} 0 R>>"
            "/Resources<<>>>>"
        )

    def stream(content: str) -> str:
        return f"<</Length {len(content)}>>stream\n{content}\nendstream"

    fonts = "/Resources<</Font<</F1 7 0 R/F2 8 0 R>>>>/MediaBox[0 0 200 200]/Parent 2 0 R"
    shown, unseen = "BT /F1 12 Tf 20 150 Td (aaa) Tj ET", "BT /F2 12 Tf 20 90 Td (aaaa) Tj ET"
    glyph = "800 0 0 0 800 800 d1"
    read = bundle(
        by_hand(
            [
                "<</Type/Catalog/Pages 2 0 R>>",
                "<</Type/Pages/Count 2/Kids[3 0 R 5 0 R]>>",
                f"<</Type/Page{fonts}/Contents 4 0 R>>",
                stream(f"{shown} {unseen}" if is_one_page else shown),
                f"<</Type/Page{fonts}/Contents 6 0 R>>",
                stream(unseen),
                font(9, named),
                font(10, named.removesuffix("/BaseFont/Bar")),
                stream(f"{glyph} 100 100 600 600 re f"),
                stream(glyph),
            ]
        )
    )
    assert [page.text for page in read.pages] == ["aaa", ""]


@pytest.mark.parametrize("rotation", [0, 90, 180, 270])
def test_what_was_whited_out_and_written_over_is_hidden(rotation: int) -> None:
    page = first(
        draw_together(
            says("Diagnosis: malignant melanoma"),
            box(120, 385, 300, 408, color=None, fill=(1, 1, 1)),
            lambda page: page.insert_text((128, 400), "benign nevus", fontsize=11),
        ),
        rotation=rotation,
    )
    assert "benign nevus" in page.text
    assert "malignant" not in page.text
    assert any("malignant" in block.text for block in page.blocks if block.hidden)


def test_words_under_a_high_contrast_picture_are_hidden() -> None:
    def stripes(page: Any) -> None:
        image = pymupdf.Pixmap(pymupdf.csGRAY, pymupdf.IRect(0, 0, 64, 64), False)
        for y in range(64):
            for x in range(64):
                image.set_pixel(x, y, (0 if x % 8 < 4 else 255,))
        page.insert_image((60, 380, 400, 420), pixmap=image)

    page = first(draw_together(lines(LEFT), says("benign and harmless"), stripes))
    assert "benign" not in page.text
    assert any("benign" in block.text for block in page.blocks if block.hidden)


def test_what_signs_are_said_to_stand_for_is_not_read() -> None:
    lie = b"/Span <</ActualText (benign)>> BDC BT /helv 11 Tf 72 300 Td (malignant) Tj ET EMC"
    page = first(draw_together(says("Diagnosis"), code(lie.decode())))
    assert "malignant" in page.text
    assert "benign" not in page.text


@pytest.mark.parametrize(
    ("encoding", "said", "status"),
    [
        ("<</Differences[97/m/a/l]>>", "<61> <0062> <62> <0065> <63> <006E>", "image"),
        ("<</Differences[97/b/e/n]>>", "<61> <0062> <62> <0065> <63> <006E>", "text"),
        ("<</Differences[97/B/G12/n]>>", "<61> <0062> <62> <0065> <63> <006E>", "text"),  # small capitals, no name
        ("/WinAnsiEncoding", "<61> <0062> <62> <0065> <63> <006E>", "image"),
        ("/WinAnsiEncoding", "<61> <0061> <62> <0062> <63> <0063>", "text"),
        ("/WinAnsiEncoding", "<7A> <0077>", "text"),  # a letter that the page has not
    ],
)
def test_page_with_spoofed_font_counts_as_picture(encoding: str, said: str, status: str) -> None:
    content = "BT /F 12 Tf 20 100 Td (abc) Tj ET"
    cmap = f"1 begincodespacerange <00> <FF> endcodespacerange 3 beginbfchar {said} endbfchar"
    read = by_hand(
        [
            "<</Type/Catalog/Pages 2 0 R>>",
            "<</Type/Pages/Count 1/Kids[3 0 R]>>",
            "<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>",
            f"<</Length {len(content)}>>stream\n{content}\nendstream",
            f"<</Type/Font/Subtype/Type1/BaseFont/Courier/Encoding{encoding}/ToUnicode 6 0 R>>",
            f"<</Length {len(cmap)}>>stream\n{cmap}\nendstream",
        ]
    )
    page = bundle(read).page(1)
    assert page.status.value == status
    assert bool(page.text) == (status == "text")
    assert bool(hidden(page)) == (status == "image")
    assert bool(page.damage) == (status == "image")


def test_no_page_is_too_large_to_tell_what_is_white() -> None:
    document = pymupdf.open()
    page = document.new_page(width=5000, height=5000)
    page.insert_text((100, 400), "Visible report text", fontsize=80)
    page.insert_text((100, 900), "WHITE INJECTION", fontsize=80, color=(1, 1, 1))
    bundle = read_document(Path("x.pdf"), file_bytes=document.tobytes(), doc_id="x", processing_timestamp="")
    assert bundle.page(1).text == "Visible report text"
