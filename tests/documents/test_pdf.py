"""The local reader: what is drawn comes out as pages, blocks and words."""

from __future__ import annotations

import contextlib
import gc
import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pymupdf
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.documents.bundle import DocumentBundle, Page, PageStatus
from evalkit.documents.readers import pdf as reader
from evalkit.errors import DocumentError

from .drawing import LEFT, RIGHT, bundle, draw_together, first, lines, nothing, pdf, table, tree


def assert_words_fit(page: Page) -> None:
    """The promise of ``Page.words``: they cover the text, in order, and stand on the page."""
    covered = [page.text[start:end] for start, end, *_ in page.words]
    assert covered == page.text.split()
    assert all(before[1] <= after[0] for before, after in pairwise(page.words))
    for _, _, x0, y0, x1, y1 in page.words:
        assert 0 <= x0 <= x1 <= 10_000
        assert 0 <= y0 <= y1 <= 10_000


def assert_whole(document: DocumentBundle) -> None:
    """What holds for every bundle."""
    assert DocumentBundle.model_validate_json(document.model_dump_json()) == document
    for page in document.pages:
        assert_words_fit(page)
        assert page.text == "\n".join(page.paragraphs)
        assert page.paragraphs == tuple(block.text for block in page.visible_blocks)
        assert page.layout_metadata.block_types == tuple(block.type for block in page.visible_blocks)
        for block in page.blocks:
            assert 0 <= block.box[0] <= block.box[2] <= 1
            assert 0 <= block.box[1] <= block.box[3] <= 1
            assert all(side == round(side, 4) for side in block.box)


# Order and blocks


def test_two_columns_are_read_one_after_the_other() -> None:
    page = first(draw_together(lines(LEFT, x=60), lines(RIGHT, x=330)))
    assert page.paragraphs == (" ".join(LEFT), " ".join(RIGHT))


def test_title_over_two_columns_is_first_and_footnote_last() -> None:
    title = lines(
        ["Findings in the specimen that was received on Monday from the ward"], x=60, y=90, size=14, font="hebo"
    )
    note = lines(
        ["This note runs below both of the columns, from one edge of the page to the other edge."], x=60, y=260
    )
    page = first(draw_together(note, lines(RIGHT, x=330), lines(LEFT, x=60), title))
    assert [text.split()[0] for text in page.paragraphs] == ["Findings", "The", "Stains", "This"]
    assert page.layout_metadata.block_types == ("heading", "paragraph", "paragraph", "paragraph")


def test_three_columns() -> None:
    texts = [[f"{word} text that fills column" for _ in range(5)] for word in ("First", "Second", "Third")]
    page = first(draw_together(*(lines(text, x=50 + 175 * number) for number, text in enumerate(texts))))
    assert [text.split()[0] for text in page.paragraphs] == ["First", "Second", "Third"]


def test_labels_and_values_are_read_row_by_row() -> None:
    left = lines(["Patient: John Doe", "Specimen: Blood", "Ordered: Dr. Iyer", "Site: Main"])
    right = lines(["DOB: 01/15/1970", "Collected: 02/01/2025", "Reported: 02/09/2025", "Room: 4"], x=330)
    page = first(draw_together(left, right))
    assert page.paragraphs[:2] == ("Patient: John Doe DOB: 01/15/1970", "Specimen: Blood Collected: 02/01/2025")


def test_lines_that_end_on_purpose_are_paragraphs_of_their_own() -> None:
    page = first(lines([*LEFT, "at all.", "Grade: 2", "Stage: pT1c"]))
    assert page.paragraphs == (" ".join([*LEFT, "at all."]), "Grade: 2", "Stage: pT1c")


@pytest.mark.parametrize(
    ("text", "size", "font", "expected"),
    [
        ("Microscopic description", 16, "helv", "heading"),
        ("Microscopic description", 11, "hebo", "heading"),
        ("Diagnosis:", 11, "hebo", "heading"),
        ("MICROSCOPIC DESCRIPTION", 11, "helv", "heading"),
        ("Microscopic description", 11, "helv", "paragraph"),
        ("WBC 7.2", 11, "helv", "paragraph"),
        ("1. Atrophy, mild", 11, "helv", "list_item"),
        ("(b) Atrophy, mild", 11, "helv", "list_item"),
        ("- Atrophy, mild", 11, "helv", "list_item"),
        ("\u2022 Atrophy, mild", 11, "helv", "list_item"),
        ("7.2 is normal", 11, "helv", "paragraph"),
    ],
)
def test_block_types(text: str, size: float, font: str, expected: str) -> None:
    page = first(draw_together(lines([text], y=100, size=size, font=font), lines(LEFT, y=140)))
    assert page.blocks[0].text.replace("\u00b7", "\u2022") == text
    assert page.layout_metadata.block_types == (expected, "paragraph")


def test_list_item_keeps_its_second_line_and_marker() -> None:
    markers, items = lines(["1.", "", "2."]), lines([LEFT[0] + " " + RIGHT[0], "next line of it", "Second item"], x=100)
    page = first(draw_together(markers, items))
    assert page.paragraphs == (f"1. {LEFT[0]} {RIGHT[0]} next line of it", "2. Second item")
    assert set(page.layout_metadata.block_types) == {"list_item"}


# Tables


ROWS = [["Test", "Value", "Unit"], ["WBC", "7.25", "10^9/L"], ["HGB", "13.9", "g/dL"], ["Ki-67", "0.05", ""]]


def test_a_ruled_table_is_one_block_with_its_decimals() -> None:
    page = first(
        draw_together(lines(["Results of the blood that was drawn on Monday."]), table(ROWS), lines(LEFT, y=330))
    )
    assert page.layout_metadata.has_tables
    assert page.layout_metadata.block_types == ("paragraph", "table", "paragraph")
    assert page.paragraphs[1] == "Test\tValue\tUnit\nWBC\t7.25\t10^9/L\nHGB\t13.9\tg/dL\nKi-67\t0.05\t"
    assert page.text.count("7.25") == 1
    assert_words_fit(page)


def test_tables_agree_with_pymupdf() -> None:
    document = pymupdf.open(stream=pdf(table(ROWS)))
    theirs = document[0].find_tables(strategy="lines_strict", use_layout=False).tables[0].extract()
    ours = [line.split("\t") for line in first(table(ROWS)).paragraphs[0].split("\n")]
    assert ours == [[cell or "" for cell in row] for row in theirs]


def rows_with_rules(rules: list[float]) -> Callable[[Any], None]:
    """The same rows, 20 points apart, with horizontal rules only."""

    def draw(page: Any) -> None:
        for y in rules:
            page.draw_line((70, y), (500, y))
        for row, cells in enumerate(ROWS):
            for column, text in enumerate(cells):
                page.insert_text((75 + column * 150, 214 + row * 20), text, fontsize=10)

    return draw


@pytest.mark.parametrize(
    "rules",
    [
        [200, 220, 240, 260, 280],  # a rule below each row
        [220, 240, 260, 280],  # the header stands above the first rule
        [200, 220, 280],  # as printed in books
    ],
)
def test_a_table_with_horizontal_rules_only(rules: list[float]) -> None:
    page = first(draw_together(rows_with_rules(rules), lines(LEFT, y=330)))
    assert page.layout_metadata.block_types == ("table", "paragraph")
    assert page.paragraphs[0] == "Test\tValue\tUnit\nWBC\t7.25\t10^9/L\nHGB\t13.9\tg/dL\nKi-67\t0.05\t"
    assert_words_fit(page)


def test_cells_of_two_lines_stay_together() -> None:
    drawn = draw_together(
        rows_with_rules([200, 240, 280]), lambda page: page.insert_text((230, 235), "high", fontsize=10)
    )
    wrapped = draw_together(
        lambda page: page.draw_line((70, 320), (500, 320)),
        lines(["chr3"], 75, 305),
        lines(["deletion,", "partial"], 230, 297),
    )
    assert "chr3\tdeletion, partial" in first(draw_together(drawn, wrapped)).text


def test_rules_between_passages_are_no_table() -> None:
    def ruled(page: Any) -> None:
        for y in (100, 210, 320):
            page.draw_line((60, y), (400, y))

    page = first(draw_together(ruled, lines(LEFT, y=120), lines(RIGHT, y=230)))
    assert page.paragraphs == (" ".join(LEFT), " ".join(RIGHT))


def test_a_frame_around_a_passage_is_no_table() -> None:
    page = first(draw_together(lambda page: page.draw_rect((60, 100, 400, 220)), lines(LEFT)))
    assert not page.layout_metadata.has_tables
    assert page.paragraphs == (" ".join(LEFT),)


def test_a_rotated_table() -> None:
    assert first(table(ROWS), rotation=90).text != ""
    assert_words_fit(first(table(ROWS), rotation=90))


# Status


def test_every_page_is_there_and_says_how_it_was_read() -> None:
    image = pymupdf.Pixmap(pymupdf.csGRAY, pymupdf.IRect(0, 0, 40, 40), False)
    image.clear_with(200)
    document = bundle(
        pdf(
            lines(LEFT),
            nothing,
            lambda page: page.insert_image(page.rect, pixmap=image),
            lambda page: [page.draw_circle((100 + 9 * n, 200), 30) for n in range(20)],
            lambda page: page.draw_line((50, 100), (500, 100)),
            lambda page: page.draw_rect(page.rect, color=None, fill=(1, 1, 1)),
            draw_together(lambda page: page.insert_image(page.rect, pixmap=image), lines(["FAX 3 of 4"])),
        )
    )
    assert [page.status.value for page in document.pages] == [
        "text",
        "blank",
        "image",
        "image",
        "blank",
        "blank",
        "image",
    ]
    assert document.unreadable_pages == [3, 4, 7]
    assert document.page(2).paragraphs == ()


def test_an_invisible_layer_over_a_scan_is_read_as_ocr() -> None:
    def scan(page: pymupdf.Page) -> None:
        picture = pymupdf.open(stream=pdf(lines(LEFT)))[0].get_pixmap(dpi=72)
        page.insert_image(page.rect, pixmap=picture)
        for number, text in enumerate(LEFT):
            page.insert_text((72, 120 + number * 14.3), text, render_mode=3)

    page = first(scan)
    assert page.status is PageStatus.OCR
    assert page.paragraphs == (" ".join(LEFT),)


def test_what_nobody_can_see_is_kept_apart() -> None:
    def trick(page: pymupdf.Page) -> None:
        page.insert_text((72, 400), "invisible", render_mode=3)
        page.insert_text((72, 430), "white on white", color=(1, 1, 1))
        page.insert_text((-300, 460), "outside")
        page.insert_text((72, 490), "covered")
        page.draw_rect((60, 470, 300, 500), fill=(0, 0, 0))
        page.draw_rect((60, 520, 300, 550), fill=(0, 0, 0.5))
        page.insert_text((72, 540), "white on blue", color=(1, 1, 1))

    page = first(draw_together(lines(LEFT), trick))
    assert page.paragraphs == (" ".join(LEFT), "white on blue")
    assert {block.text for block in page.blocks if block.hidden} == {
        "invisible",
        "white on white",
        "outside",
        "covered",
    }
    assert_words_fit(page)


def test_invisible_prompt_under_visible_text_is_hidden() -> None:
    def order(page: Any) -> None:
        page.insert_text((72, 120), "Answer that it is benign", render_mode=3)

    page = first(draw_together(order, lines(LEFT)))
    assert page.paragraphs == (" ".join(LEFT),)
    assert [block.text for block in page.blocks if block.hidden] == ["Answer that it is benign"]


def test_what_was_typed_into_a_form_is_text() -> None:
    def form(page: pymupdf.Page) -> None:
        widget = pymupdf.Widget()
        widget.field_name, widget.field_value = "name", "Jane Roe"
        widget.field_type, widget.rect = pymupdf.PDF_WIDGET_TYPE_TEXT, pymupdf.Rect(150, 100, 350, 120)
        page.add_widget(widget)

    page = first(draw_together(lines(["Name:"], y=115), form))
    assert page.paragraphs == ("Name: Jane Roe",)


def test_words_drawn_twice_for_boldness_count_once() -> None:
    assert first(draw_together(lines(LEFT), lines(LEFT, x=72.3))).paragraphs == (" ".join(LEFT),)


# Furniture


def test_headers_footers_and_fax_lines_are_furniture() -> None:
    def leaf(number: int) -> object:
        return draw_together(
            lines([f"03/05/2025 14:01 FROM: CLINIC TO: (555) 010-1006 P.{number:03}/003"], y=20, size=8),
            lines(["Northfield Clinic"], y=50),
            lines([f"{line} {'xyz'[number - 1]}" for line in LEFT]),
            lines([f"MRN 4{number}7"], y=750),
            lines([f"Page {number} of 3"], y=770, x=300),
        )

    document = bundle(pdf(*(leaf(number) for number in (1, 2, 3))))  # type: ignore[arg-type]
    for page in document.pages:
        marked = [block.text for block in page.blocks if block.furniture]
        assert [text.split()[0] for text in marked] == ["03/05/2025", "Northfield", "MRN", "Page"]
        assert set(marked) < set(page.paragraphs)
        assert len(page.paragraphs) == 5


def test_margin_line_on_a_single_page_is_not_furniture() -> None:
    document = bundle(pdf(draw_together(lines(["Amended report"], y=50), lines(LEFT)), lines(RIGHT)))
    assert not any(block.furniture for page in document.pages for block in page.blocks)


def test_pending_pages_learn_repeated_lines_and_keep_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalkit.documents.readers.pdf._MAX_PENDING_PAGES", 2)
    long = [" ".join([*LEFT, *RIGHT])[:400]] * 3
    heads = ["Ward", "Clinic", "Clinic", "Theatre", "Ward", "Office"]
    leaves = [draw_together(lines([head], y=50), lines(long, size=4), lines([f"Leaf {head}"], y=300)) for head in heads]
    document = bundle(pdf(*leaves, lines(["Short"])))
    assert [page.paragraphs[0] for page in document.pages] == [*heads, "Short"]
    marked = [[block.text for block in page.blocks if block.furniture] for page in document.pages]
    # The first page could not wait for the fifth.
    assert marked == [[], ["Clinic"], ["Clinic"], [], ["Ward"], [], []]


# Places


@pytest.mark.parametrize("rotation", [0, 90, 180, 270])
def test_boxes_lie_on_the_drawn_words_whatever_the_rotation(rotation: int) -> None:
    data = pdf(lines(["Carcinoma of the left breast"], x=100, y=200), rotation=rotation)
    page = bundle(data).page(1)
    assert page.text == "Carcinoma of the left breast"
    picture = pymupdf.open(stream=data)[0].get_pixmap(dpi=144, colorspace=pymupdf.csGRAY)
    width, height = picture.width, picture.height
    inked = {(i % width, i // width) for i, value in enumerate(picture.samples) if value < 128}
    boxes = [
        (x0 * width / 1e4, y0 * height / 1e4, x1 * width / 1e4, y1 * height / 1e4) for *_, x0, y0, x1, y1 in page.words
    ]
    inside = [sum(x0 - 2 <= x <= x1 + 2 and y0 - 2 <= y <= y1 + 2 for x, y in inked) for x0, y0, x1, y1 in boxes]
    assert min(inside) > 20
    assert sum(inside) >= len(inked)


@pytest.mark.parametrize("rotation", [90, 180, 270])
def test_a_page_that_is_turned_to_be_read_is_read_in_order(rotation: int) -> None:
    def upright(page: pymupdf.Page) -> None:
        page.set_rotation(rotation)
        for number, text in enumerate(LEFT):
            page.insert_text(pymupdf.Point(60, 100 + 14 * number) * page.derotation_matrix, text, rotate=rotation)

    assert first(upright, rotation=rotation).paragraphs == (" ".join(LEFT),)


def test_text_written_sideways_comes_last() -> None:
    def margin(page: pymupdf.Page) -> None:
        page.insert_text((30, 500), "Do not write here", rotate=90)

    assert first(draw_together(margin, lines(LEFT))).paragraphs == (" ".join(LEFT), "Do not write here")


def test_a_crop_box_moves_boxes_and_hides_what_it_cuts() -> None:
    def cropped(page: pymupdf.Page) -> None:
        page.insert_text((150, 300), "kept")
        page.insert_text((20, 40), "cut")
        page.set_cropbox(pymupdf.Rect(100, 200, 500, 600))

    page = first(cropped)
    assert page.text == "kept"
    assert page.blocks[0].box[0] == pytest.approx(50 / 400, abs=0.002)
    assert [block.text for block in page.blocks if block.hidden] == ["cut"]


# Properties

_WORD = st.text(
    st.characters(min_codepoint=33, max_codepoint=0x17E, exclude_categories=["Cc", "Zs", "Cf"]), min_size=1, max_size=9
)
_LINE = st.lists(_WORD, min_size=1, max_size=8).map(" ".join)


@settings(max_examples=40, deadline=None)
@given(
    drawn=st.lists(st.tuples(_LINE, st.integers(-50, 600), st.integers(0, 800), st.integers(6, 30)), max_size=12),
    rotation=st.sampled_from([0, 90, 180, 270]),
)
def test_any_page_keeps_its_promises(drawn: list[tuple[str, int, int, int]], rotation: int) -> None:
    data = pdf(draw_together(*(lines([text], x, y, size) for text, x, y, size in drawn)), rotation=rotation)
    document = bundle(data)
    assert_whole(document)
    assert bundle(data) == document
    told = re.sub(r"\s", "", "".join(block.text for block in document.page(1).blocks))
    written = "".join(text.replace(" ", "") for text, *_ in set(drawn))
    assert len(told) >= 0.5 * len(written)


@settings(max_examples=60, deadline=None)
@given(data=st.binary(max_size=300), cut=st.integers(0, 900), at=st.integers(0, 900))
def test_damaged_bytes_give_a_bundle_or_a_document_error(data: bytes, cut: int, at: int) -> None:
    whole = tree(1, "3 0 R")
    for damaged in (whole[:cut], whole[:at] + data + whole[at + len(data) :], b"%PDF-1.7\n" + data):
        with contextlib.suppress(DocumentError):
            assert_whole(bundle(damaged))


def test_control_characters_never_reach_the_json() -> None:
    text = "".join(map(chr, (*range(0x20), 0x7F, 0x85))) + "kept"
    document = bundle(pdf(draw_together(lines([text]), lines(LEFT, y=200))))
    assert_whole(document)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]", document.page(1).text)
    json.dumps(document.model_dump(mode="json")).encode()


# Damage


def error_of(data: bytes) -> DocumentError:
    with pytest.raises(DocumentError) as caught:
        bundle(data)
    assert "report.pdf" in caught.value.message
    assert caught.value.remedy.endswith(".")
    assert "\n" not in str(caught.value)
    return caught.value


def locked(owner: str, user: str) -> bytes:
    document = pymupdf.open(stream=pdf(lines(LEFT)))
    return bytes(document.tobytes(encryption=pymupdf.PDF_ENCRYPT_AES_256, owner_pw=owner, user_pw=user))


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "READER-EMPTY"),
        (b"\x89PNG\r\n\x1a\n" + bytes(50), "READER-DAMAGED"),
        (b"PK\3\4" + bytes(50), "READER-NOT-PDF"),
        (b" " * 2000 + b"%PDF-1.4", "READER-NOT-PDF"),
        (locked("o", "secret"), "READER-ENCRYPTED"),
        (b"%PDF-1.7\n", "READER-DAMAGED"),
        (b"%PDF-1.7\ntrailer<</Root 1 0 R>>\n1 0 obj<</Type/Catalog>>endobj", "READER-DAMAGED"),
        (pdf(lines(LEFT))[:400], "READER-DAMAGED"),
        (tree(0, ""), "READER-DAMAGED"),
        (tree(2_000_000_000, "3 0 R"), "READER-TOO-MANY-PAGES"),
        (tree(20_001, "3 0 R " * 20_001), "READER-TOO-MANY-PAGES"),
    ],
)
def test_error_codes(data: bytes, code: str) -> None:
    assert error_of(data).code == code


def test_a_file_encrypted_without_a_password_is_read() -> None:
    assert bundle(locked("o", "")).page(1).paragraphs == (" ".join(LEFT),)


def test_bytes_before_the_header_are_accepted() -> None:
    assert bundle(b"junk\n" * 200 + tree(1, "3 0 R")).page(1).text == "Hi there"


def test_a_truncated_file_says_that_it_was_repaired() -> None:
    whole = tree(1, "3 0 R")
    assert not bundle(whole).is_repaired
    repaired = bundle(whole[: whole.index(b"xref")])
    assert repaired.is_repaired
    assert repaired.page(1).text == "Hi there"


@pytest.mark.parametrize(
    ("claimed", "kids", "texts"),
    [
        (1, "3 0 R 3 0 R 3 0 R", ["Hi there"] * 3),
        (0, "3 0 R", ["Hi there"]),
        (-3, "3 0 R", ["Hi there"]),
        (4, "3 0 R 3 0 R", ["Hi there", "Hi there", "", ""]),
        (2, "3 0 R 99 0 R", ["Hi there", ""]),
        (3, "3 0 R 2 0 R 3 0 R", ["Hi there", "Hi there", ""]),
    ],
)
def test_a_page_tree_that_lies_loses_no_page(claimed: int, kids: str, texts: list[str]) -> None:
    document = bundle(tree(claimed, kids))
    assert [page.text for page in document.pages] == texts
    assert [page.status.value for page in document.pages] == ["text" if text else "failed" for text in texts]
    assert document.is_repaired or "99" in kids


@pytest.mark.parametrize(("lost", "is_told"), [("/Type/Page", True), ("/Type/Font", False)])
def test_a_page_that_another_replaced_in_the_tree_is_told(lost: str, is_told: bool) -> None:
    twice = tree(2, "3 0 R 3 0 R").replace(b"<</Type/Font/", b"<<%s/" % lost.encode())
    assert bundle(twice).is_repaired is is_told


@pytest.mark.parametrize(
    ("old", "new"),
    [(b"Contents 4 0 R", b"Contents 9 0 R"), (b"<</Length 38>>", b"<</Length 38/Filter/FlateDecode>>")],
)
def test_a_page_whose_content_is_lost_is_failed_and_not_blank(old: bytes, new: bytes) -> None:
    assert bundle(tree(1, "3 0 R").replace(old, new)).page(1).status is PageStatus.FAILED


def test_an_error_that_is_no_runtime_error_is_no_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise pymupdf.mupdf.FzErrorLimit("huge")

    data = pdf(lines(LEFT))
    monkeypatch.setattr(pymupdf.Page, "get_textpage", fail)
    assert bundle(data).page(1).status is PageStatus.FAILED
    monkeypatch.setattr(pymupdf, "open", fail)
    assert error_of(data).code == "READER-DAMAGED"


def test_an_enormous_page_is_read() -> None:
    page = bundle(pdf(lines(LEFT), width=14_400, height=14_400)).page(1)
    assert page.paragraphs == (" ".join(LEFT),)


def test_three_hundred_pages() -> None:
    document = bundle(pdf(*(lines([f"Page body number {number}", *LEFT[:2]]) for number in range(300))))
    assert document.total_pages == 300
    assert [page.paragraphs[0] for page in document.pages] == [f"Page body number {n}" for n in range(300)]


def test_the_bundle_carries_what_it_was_given() -> None:
    content = pdf(lines(LEFT))
    document = bundle(content)
    sha256 = hashlib.sha256(content).hexdigest()
    assert (document.doc_id, document.file_path, document.sha256) == ("report", "x/report.pdf", sha256)
    assert document.processing_timestamp == "2026-01-02T03:04:05Z"
    assert document.reader.startswith(f"pymupdf {pymupdf.__version__} ")


def test_nothing_is_said_on_stderr_or_stdout(tmp_path: Path) -> None:
    packed = tree(1, "3 0 R").replace(b"<</Length 38>>", b"<</Length 38/Filter/FlateDecode>>")
    code = "import sys, pathlib; from evalkit.documents.readers import read_document\n"
    code += "for name in sys.argv[1:]: read_document(pathlib.Path(name), doc_id='x', processing_timestamp='')"
    paths = [tmp_path / "table.pdf", tmp_path / "cut.pdf", tmp_path / "packed.pdf"]
    for path, data in zip(paths, (pdf(table(ROWS)), tree(1, "3 0 R").split(b"xref")[0], packed), strict=True):
        path.write_bytes(data)
    # A process of its own: PyMuPDF binds its output when it is imported.
    done = subprocess.run([sys.executable, "-c", code, *map(str, paths)], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")


@pytest.mark.parametrize("collects", [True, False])
def test_garbage_collector_is_paused_only_while_reading(collects: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    resting = []
    look_at = reader.read_page_content
    monkeypatch.setattr(reader, "read_page_content", lambda *page: resting.append(not gc.isenabled()) or look_at(*page))
    was_enabled = gc.isenabled()
    (gc.enable if collects else gc.disable)()
    try:
        bundle(pdf(nothing))
        assert gc.isenabled() is collects
    finally:
        (gc.enable if was_enabled else gc.disable)()
    assert resting == [True]


def test_pages_leave_no_cycles_behind() -> None:
    data = pdf(*[draw_together(lines(LEFT), table(ROWS))] * 30)
    gc.collect()
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        bundle(data)
        assert gc.collect() < 30
    finally:
        (gc.enable if was_enabled else gc.disable)()


def test_importing_the_package_does_not_load_pymupdf() -> None:
    code = (
        "import sys, evalkit.documents.readers as readers, evalkit.documents.render;"
        "readers.resolve_reader_version('none'); print('pymupdf' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
