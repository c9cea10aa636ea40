"""The Document AI reader against a real server on this machine: what it makes of answers, of faults and of nonsense."""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import os
import pickle
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pymupdf
import pytest
from google.cloud import documentai
from hypothesis import given, settings
from hypothesis import strategies as st
from patience import SECONDS
from requests import Timeout
from servers.documentai import (
    PROCESSOR,
    VERSION,
    Block,
    DocumentAiServer,
    Fault,
    Layout,
    bullets,
    derived,
    laid_out,
    paragraph,
    polygon,
    span,
    table,
)

from evalkit.core.remote_services import parse_retry_after
from evalkit.documents.bundle import DocumentBundle, Page, PageStatus
from evalkit.documents.readers import read_document
from evalkit.documents.readers.documentai.reader import (
    DocumentAiReader,
    _extract_pages_as_pdf,
    _get_requested_wait_seconds,
)
from evalkit.errors import DocumentError, UsageError

from .drawing import LEFT, RIGHT, bundle, draw_together, lines, nothing, pdf, tree
from .test_pdf import assert_whole, locked

PATH = Path("x/report.pdf")
GIVEN = {"doc_id": "report", "processing_timestamp": "2026-01-02T03:04:05Z"}
ONE = pdf(lines(LEFT))
TOP = (0.1, 0.1, 0.9, 0.3)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalkit.documents.readers.documentai.reader._FIRST_WAIT", 0.001)


SERVER = DocumentAiServer()


@pytest.fixture(scope="module", autouse=True)
def _served() -> Iterator[None]:
    with SERVER:
        yield


@pytest.fixture
def server() -> DocumentAiServer:
    """As new: nothing asked, nothing planned."""
    SERVER.calls, SERVER.script, SERVER.layout = [], [], Layout()
    SERVER.default_version, SERVER.processor_fault = VERSION, None
    return SERVER


def reader(server: DocumentAiServer, processor: str = VERSION, **how: Any) -> DocumentAiReader:
    return DocumentAiReader(processor, endpoint=server.url, **how)


def read(data: bytes, *script: Any, layout: Layout | None = None, **how: Any) -> DocumentBundle:
    """The bundle of the PDF; the server answers by the script, or derives its answer from the PDF."""
    SERVER.calls, SERVER.script, SERVER.layout = [], list(script), layout or Layout()
    return read_by(reader(SERVER, **how), data)


def read_by(reader: DocumentAiReader, data: bytes, path: Path = PATH) -> DocumentBundle:
    return read_document(path, documentai=reader, file_bytes=data, **GIVEN)


def page(data: bytes, *blocks: Any) -> Page:
    """The only page, of which the server says these blocks."""
    return read(data, laid_out(*blocks)).page(1)


def scanned(*draw: Callable[[Any], object]) -> bytes:
    """The pages as pictures."""
    document = pymupdf.open()
    with pymupdf.open(stream=pdf(*draw)) as printed:
        for one in printed:
            leaf = document.new_page(width=one.rect.width, height=one.rect.height)
            leaf.insert_image(leaf.rect, pixmap=one.get_pixmap(dpi=60))
    return bytes(document.tobytes())


def boxes(page: Page, of: str) -> set[tuple[int, ...]]:
    return {word[2:] for word in page.words if page.text[word[0] : word[1]] == of}


def shares(box: tuple[float, ...]) -> tuple[int, ...]:
    return tuple(round(10_000 * side) for side in box)


# Pages


def test_a_file_of_text_is_read_like_the_local_reader_reads_it() -> None:
    data = pdf(draw_together(lines(["PATHOLOGY REPORT"], y=60), lines(LEFT)), lines(RIGHT))
    read_here, read_there = bundle(data), read(data)
    assert_whole(read_there)
    for here, there in zip(read_here.pages, read_there.pages, strict=True):
        assert (there.text, there.paragraphs, there.status) == (here.text, here.paragraphs, PageStatus.TEXT)
        assert there.layout_metadata == here.layout_metadata
        assert there.words == here.words
        assert there.confidences == ()


def test_the_bundle_carries_what_it_was_given_and_what_read_it(server: DocumentAiServer) -> None:
    document = read_by(reader(server), ONE)
    assert (document.doc_id, document.file_path, document.sha256) == (
        "report",
        "x/report.pdf",
        hashlib.sha256(ONE).hexdigest(),
    )
    assert document.processing_timestamp == "2026-01-02T03:04:05Z"
    assert document.reader.startswith(reader(server).reader_version + ", ")
    assert re.fullmatch(
        r"documentai [\d.]+ pretrained-layout-parser-v1.0-2024-06-03 walk \d+, pymupdf .+", document.reader
    )


def test_what_is_asked_for(server: DocumentAiServer) -> None:
    read_by(reader(server), ONE)
    (call,) = server.calls
    assert (call.name, call.pages) == (VERSION, 1)
    layout = call.options["layout_config"]
    assert layout.pop("return_bounding_boxes")
    assert not any(layout.values())  # no pictures, no chunks, nothing that a model writes
    assert "document_layout" in call.mask
    assert "pages.tokens" in call.mask
    assert not {"chunked_document", "blob_assets", "pages", "pages.image"} & set(call.mask)


def test_pages_come_from_the_pdf_and_blank_ones_stay_blank() -> None:
    document = read(pdf(lines(LEFT), nothing, lines(RIGHT), nothing))
    assert [page.status.value for page in document.pages] == ["text", "blank", "text", "blank"]
    assert [page.text[:3] for page in document.pages] == ["The", "", "Sta", ""]


def test_a_file_of_blank_pages_is_not_sent(server: DocumentAiServer) -> None:
    document = read_by(reader(server), pdf(nothing, nothing))
    assert [page.status for page in document.pages] == [PageStatus.BLANK] * 2
    assert server.calls == []


@pytest.mark.parametrize(
    ("data", "is_problem"),
    [(pdf(lines(LEFT)), True), (scanned(lines(LEFT)), True), (pdf(nothing, lines(LEFT)), True)],
    ids=["text", "scan", "blank first"],
)
def test_page_missing_in_answer_is_unread_unless_blank(data: bytes, is_problem: bool) -> None:
    last = read(data, laid_out()).pages[-1]
    assert (last.status, last.text, last.quality) == (PageStatus.IMAGE, "", 0.0)
    assert "scan it again" in last.problems[0]


def test_page_without_blocks_uses_recognised_text() -> None:
    data = pdf(draw_together(lines(LEFT), lines(RIGHT, y=400)), nothing, lines(RIGHT))
    document = read(data, layout=Layout(blocks=False))
    assert_whole(document)
    assert document.page(1).paragraphs == (" ".join(LEFT), " ".join(RIGHT))
    assert [page.status.value for page in document.pages] == ["text", "blank", "text"]


@pytest.mark.parametrize("field", ["paragraphs", "lines", "blocks", "layout"])
def test_the_fallback_takes_what_there_is(field: str) -> None:
    anchor = {"text_anchor": {"text_segments": [{"end_index": 4}, {"start_index": 5, "end_index": 12}]}}
    told = {"page_number": 1, field: anchor if field == "layout" else [{"layout": anchor}]}
    answer = documentai.Document(text="The?specimen was", pages=[told])
    assert read(scanned(lines(LEFT)), answer).page(1).paragraphs == ("The?pecimen",)


def test_page_with_only_a_model_description_is_filled() -> None:
    image = Block(image_block=Block.LayoutImageBlock(image_text="A picture of a scan"), page_span=span(1))
    answer = laid_out(image)
    answer.text, answer.pages = "The specimen", [{"layout": {"text_anchor": {"text_segments": [{"end_index": 12}]}}}]
    assert read(scanned(lines(LEFT)), answer).page(1).paragraphs == ("The specimen",)


def test_one_page_of_blocks_and_one_without() -> None:
    first = laid_out(paragraph("From the tree", 1))
    first.text, first.pages = (
        "From the page",
        [{"page_number": 2, "layout": {"text_anchor": {"text_segments": [{"end_index": 13}]}}}],
    )
    document = read(scanned(lines(LEFT), lines(RIGHT)), first)
    assert [page.text for page in document.pages] == ["From the tree", "From the page"]


# Blocks


@pytest.mark.parametrize(
    ("kind", "expected", "furniture"),
    [
        ("paragraph", "paragraph", False),
        ("heading-1", "heading", False),
        ("heading-5", "heading", False),
        ("subtitle", "heading", False),
        ("title", "heading", False),
        ("header", "paragraph", True),
        ("footer", "paragraph", True),
        ("", "paragraph", False),
        ("something new", "paragraph", False),
    ],
)
def test_types_of_text(kind: str, expected: str, furniture: bool) -> None:
    (block,) = page(ONE, paragraph("The specimen", kind=kind)).blocks
    assert (block.type, block.text, block.furniture) == (expected, "The specimen", furniture)


def test_a_stamp_of_any_type_is_furniture() -> None:
    stamp = "06/11/2023 08:04 FROM: HARBOR CLINIC TO: 555-0190 P.02/09"
    texts = [stamp, *LEFT, *RIGHT]
    found = page(ONE, *(paragraph(text, 0) for text in texts))
    assert [block.text for block in found.blocks if block.furniture] == [stamp]


def test_a_heading_comes_before_what_is_below_it() -> None:
    below = [paragraph("First", 0), paragraph("Second", 0, kind="heading-2", blocks=[paragraph("Third", 0)])]
    found = page(ONE, paragraph("Top", kind="heading-1", blocks=below), paragraph("Last", 0))
    assert found.paragraphs == ("Top", "First", "Second", "Third", "Last")
    assert found.layout_metadata.block_types == ("heading", "paragraph", "heading", "paragraph", "paragraph")


def test_nested_blocks_give_the_same_text() -> None:
    data = pdf(draw_together(lines(["TITLE"], y=60), lines(LEFT), lines(RIGHT, y=400)))
    assert read(data, layout=Layout(nested=True)).page(1).paragraphs == read(data).page(1).paragraphs


def test_entries_of_lists_are_list_items_also_of_lists_in_lists() -> None:
    inner = bullets([[paragraph("deep")]])
    found = page(ONE, bullets([[paragraph("one"), inner], [paragraph("two", kind="heading-3")]]), paragraph("end"))
    assert found.paragraphs == ("one", "deep", "two", "end")
    assert found.layout_metadata.block_types == ("list_item", "list_item", "heading", "paragraph")


def cell(text: str, *, across: int = 0, down: int = 0) -> Any:
    blocks = [paragraph(text)] if text else []
    return Block.LayoutTableCell(blocks=blocks, col_span=across, row_span=down)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([["Test", "Value"], ["WBC", "7.25"]], "Test\tValue\nWBC\t7.25"),
        ([["Test", ""], ["WBC", "7.25"]], "Test\t\nWBC\t7.25"),
        ([["Test", "Value", "Unit"], ["WBC"]], "Test\tValue\tUnit\nWBC\t\t"),
        ([["Test"], [], ["WBC"]], "Test\nWBC"),
        ([[cell("Blood", across=2)], ["WBC", "7.25"]], "Blood\t\nWBC\t7.25"),
        ([[cell("Blood", down=2), "WBC"], ["RBC"]], "Blood\tWBC\n\tRBC"),
        ([["A", cell("B", across=2, down=3)], ["C"], ["D"], ["E", "F", "G"]], "A\tB\t\nC\t\t\nD\t\t\nE\tF\tG"),
        ([[cell("A", across=100, down=2**31 - 1)], ["B"]], "A" + 100 * "\t" + "\n" + 100 * "\t" + "B"),
        ([[[paragraph("two"), paragraph("blocks", blocks=[paragraph("below")])], "x"]], "two blocks below\tx"),
        ([[[bullets([[paragraph("one")], [paragraph("two")]])], "x"]], "one two\tx"),
        ([[[table([["in", "side"]])], "x"]], "in side\tx"),
    ],
)
def test_tables(rows: list[list[Any]], expected: str) -> None:
    found = page(ONE, table(rows))
    assert found.paragraphs == (expected,)
    assert found.layout_metadata.block_types == ("table",)
    assert found.layout_metadata.has_tables


@pytest.mark.parametrize("rows", [[], [[]], [[""]], [["", ""], [""]]])
def test_a_table_that_says_nothing_is_none(rows: list[list[Any]]) -> None:
    found = page(ONE, table(rows), paragraph("end"))
    assert found.paragraphs == ("end",)
    assert not found.layout_metadata.has_tables


def test_a_table_over_two_pages_is_parted_by_rows() -> None:
    rows = [[[paragraph("Test", 1)], [paragraph("Value", 1)]], [[paragraph("WBC", 2)], [paragraph("7", 2)]]]
    both_pages = table(rows)
    both_pages.page_span = span(1, 2)
    document = read(pdf(lines(LEFT), lines(RIGHT)), laid_out(both_pages))
    assert [page.paragraphs for page in document.pages] == [("Test\tValue",), ("WBC\t7",)]


# Places on pages: what runs over a page's end


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (1, 2, [" ".join(LEFT), " ".join(RIGHT)]),
        (1, 0, [" ".join(LEFT + RIGHT), ""]),
        (1, 3, [" ".join(LEFT + RIGHT), ""]),
    ],
)
def test_paragraph_over_page_break_is_split_by_page_words(start: int, end: int, expected: list[str]) -> None:
    joined = paragraph(" ".join(LEFT + RIGHT), start, end=end, box=TOP)
    document = read(pdf(lines(LEFT), lines(RIGHT), lines(["Unrelated"])), laid_out(joined))
    assert [page.text for page in document.pages[:2]] == expected


def test_scanned_paragraph_over_page_break_stays_on_first_page() -> None:
    document = read(scanned(lines(LEFT), lines(RIGHT)), laid_out(paragraph(" ".join(LEFT + RIGHT), 1, end=2, box=TOP)))
    assert document.page(1).text == " ".join(LEFT + RIGHT)
    assert document.page(1).words == ()  # the box may be on either page
    assert document.page(2).status is PageStatus.IMAGE


# What a model wrote


def test_what_a_model_wrote_is_no_text() -> None:
    planted = "The picture shows metastatic melanoma in Jane Doe"
    document = read(pdf(lines(LEFT), lines(RIGHT)), layout=Layout(annotations=planted, pages=True))
    assert [page.paragraphs for page in document.pages] == [(" ".join(LEFT),), (" ".join(RIGHT),)]
    assert "melanoma" not in document.model_dump_json()


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("The specimen", ["Table", "The specimen", "a\tb"]),
        ("The mysterious specimen", ["Table", "a\tb"]),
        ("Table", ["Table", "a\tb"]),
    ],
)
def test_captions_count_if_they_are_printed_and_not_said_already(said: str, expected: list[str]) -> None:
    data = pdf(draw_together(lines(["Table"], y=60), lines(["The specimen"]), lines(["a b"], y=200)))
    assert list(page(data, paragraph("Table"), table([["a", "b"]], caption=said)).paragraphs) == expected


def test_text_of_images_counts_if_it_was_recognised_on_the_page() -> None:
    image = Block(image_block=Block.LayoutImageBlock(image_text="The specimen"), page_span=span(1))
    assert page(scanned(lines(LEFT)), image, paragraph("Note")).paragraphs == ("Note",)
    with_tokens = laid_out(image, paragraph("Note"))
    token = {"layout": {"bounding_poly": polygon(TOP), "text_anchor": {"text_segments": [{"end_index": 12}]}}}
    with_tokens.text, with_tokens.pages = "The specimen", [{"page_number": 1, "tokens": [token]}]
    assert read(scanned(lines(LEFT)), with_tokens).page(1).paragraphs == ("The specimen", "Note")


# Hidden


def test_what_the_pdf_hides_is_kept_out_though_the_answer_has_it() -> None:
    def secret(leaf: Any) -> None:
        leaf.insert_text((72, 500), "Approve melanoma everywhere", color=(1, 1, 1))
        leaf.insert_text((72, 520), "Ignore what was specimen", render_mode=3)

    found = read(pdf(draw_together(lines(LEFT), secret))).page(1)
    # "what" and "was" stand on the page too.
    assert not {"Approve", "melanoma", "Ignore"} & set(found.text.split())
    assert found.status is PageStatus.TEXT
    hidden = [block.text for block in found.blocks if block.hidden]
    assert hidden == ["Approve melanoma everywhere", "Ignore what was specimen"]


def test_layers_that_are_switched_off_stay_off_in_what_is_sent(server: DocumentAiServer) -> None:
    def layered(leaf: Any) -> None:
        off = leaf.parent.add_ocg("Draft", on=False)
        leaf.insert_text((72, 500), "Withdrawn diagnosis", oc=off)

    read_by(reader(server), pdf(draw_together(lines(LEFT), layered)))
    with pymupdf.open(stream=server.calls[0].data) as sent:
        assert "Withdrawn" not in sent[0].get_text()
        assert "specimen" in sent[0].get_text()


def test_nothing_but_pages_is_sent(server: DocumentAiServer) -> None:
    document = pymupdf.open(stream=pdf(lines(LEFT), lines(RIGHT)))
    document.set_metadata({"title": "Jane Doe, melanoma"})
    document.set_toc([[1, "Jane Doe", 1]])
    document.embfile_add("other.txt", b"Jane Doe")
    read_by(reader(server), document.tobytes(encryption=pymupdf.PDF_ENCRYPT_AES_256, owner_pw="x", user_pw=""))
    with pymupdf.open(stream=server.calls[0].data) as sent:
        assert sent.xref_get_key(-1, "Encrypt")[0] == "null"
        everything = " ".join(sent.xref_object(number) for number in range(1, sent.xref_length()))
        assert (sent.metadata or {}).get("title") == ""
        assert sent.get_toc() == []
        assert sent.embfile_count() == 0
        assert "Doe" not in everything


# Words


def test_words_have_the_boxes_of_tokens() -> None:
    data = scanned(lines(LEFT))
    with pymupdf.open(stream=pdf(lines(LEFT))) as printed:
        place = next(word for word in printed[0].get_text("words") if word[4] == "tumour")
    said = read_printed(layout=Layout(tokens=True, confidence=0.87), data=data)
    assert said.status is PageStatus.OCR
    assert boxes(said, "tumour") == {
        shares((place[0] / 612, place[1] / 792, place[2] / 612, place[3] / 792)),
    }
    assert said.confidences == (87,) * len(said.words)
    assert said.quality == 0.87


def read_printed(layout: Layout, data: bytes) -> Page:
    """A scan, of which the server says what was printed on it."""
    return read(data, derived(pdf(lines(LEFT)), layout)).page(1)


def test_scanned_words_without_tokens_have_paragraph_box() -> None:
    found = page(scanned(lines(LEFT)), paragraph("One two", box=TOP), paragraph("three", 1))
    assert boxes(found, "One") == boxes(found, "two") == {shares(TOP)}
    assert boxes(found, "three") == set()
    assert found.blocks[0].box == TOP
    assert found.blocks[1].box == (0, 0, 0, 0)
    assert (found.status, found.confidences, found.quality) == (PageStatus.OCR, (), None)


def test_ambiguous_word_has_its_paragraphs_box() -> None:
    data = pdf(draw_together(lines(["Lymph node negative", "Margin negative"]), lines(["Receptor negative"], y=500)))
    upper, lower = (0.1, 0.1, 0.9, 0.3), (0.1, 0.6, 0.9, 0.7)
    found = page(
        data, paragraph("Margin: negative Lymph node negative", box=upper), paragraph("Receptor negative", box=lower)
    )
    own = {data_word(data, number)[4]: data_word(data, number) for number in (0, 1, 3, 5)}
    # "Margin:" is not what is printed, so which "negative" follows it is not certain; the other one follows "node".
    negatives = [word[2:] for word in found.words if found.text[word[0] : word[1]] == "negative"]
    assert negatives == [
        shares(upper),
        place_of(data_word(data, 2)),
        place_of(data_word(data, 6)),
    ]
    assert boxes(found, "Lymph") == {place_of(own["Lymph"])}
    assert boxes(found, "Margin:") == {shares(upper)}


def data_word(data: bytes, number: int) -> Any:
    with pymupdf.open(stream=data) as document:
        return document[0].get_text("words")[number]


def place_of(word: Any) -> tuple[int, ...]:
    return shares((word[0] / 612, word[1] / 792, word[2] / 612, word[3] / 792))


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (["negative Margin negative"], [None, 0, 1]),  # said twice, printed once in that box
        (["negative", "negative"], [1, 3]),
        (["negative again negative"], [None, None, None]),
    ],
)
def test_only_what_is_certain_has_a_place_of_its_own(said: list[str], expected: list[int | None]) -> None:
    data = pdf(draw_together(lines(["Margin negative"], y=120), lines(["Receptor negative"], y=500)))
    both_boxes = [(0.1, 0.1, 0.9, 0.3), (0.1, 0.6, 0.9, 0.7)]
    found = page(data, *(paragraph(text, box=box) for text, box in zip(said, both_boxes, strict=False)))
    places = [shares(both_boxes[0]) if number is None else place_of(data_word(data, number)) for number in expected]
    assert [word[2:] for word in found.words] == places


def test_a_word_that_is_printed_twice_is_neither() -> None:
    data = pdf(lines(["Margin negative", "Receptor negative"]))
    assert boxes(page(data, paragraph("negative", box=TOP)), "negative") == {shares(TOP)}


def test_word_without_position_has_its_paragraphs_box() -> None:
    found = page(ONE, paragraph(" ".join(LEFT).replace("brisk", "risk")))
    assert boxes(found, "risk") == {shares(bundle(ONE).page(1).blocks[0].box)}
    assert found.blocks[0].box == bundle(ONE).page(1).blocks[0].box


def test_block_on_another_page_does_not_inherit_parent_box() -> None:
    below = [paragraph("here", 0), paragraph("there", 2)]
    document = read(scanned(lines(LEFT), lines(RIGHT)), laid_out(paragraph("Top", 1, box=TOP, blocks=below)))
    assert [len(page.words) for page in document.pages] == [2, 0]


def test_places_may_be_told_in_pixels() -> None:
    corners = {"vertices": [{"x": 20, "y": 10}, {"x": 180, "y": 30}]}
    layout = {"bounding_poly": corners, "text_anchor": {"text_segments": [{"end_index": 5}]}}
    told = {"page_number": 1, "dimension": {"width": 200, "height": 300}, "paragraphs": [{"layout": layout}]}
    found = read(scanned(lines(LEFT)), documentai.Document(text="Grade", pages=[told])).page(1)
    assert boxes(found, "Grade") == {(1000, 333, 9000, 1000)}


def test_cells_of_a_table_take_no_place_of_another_cell() -> None:
    data = pdf(draw_together(lines(["Estrogen", "Progesterone"]), lines(["positive", "positive"], x=300)))
    found = page(data, table([["Estrogen", "positive"], ["Progesterone", "positive"]], box=TOP))
    assert boxes(found, "positive") == {shares(TOP)}  # the PDF tells them column by column
    assert boxes(found, "Estrogen") == {place_of(data_word(data, 0))}


def test_tokens_are_joined_to_words_and_doubtful_ones_tell() -> None:
    answer = laid_out(paragraph("Grade 2, (high) grade", box=TOP))
    answer.text = "Grade 2, (high)"
    parts = [(0, 6, 0.1, 1.7), (6, 7, 0.2, 0.8), (7, 9, 0.22, 0.5), (9, 10, 0.3, 0.9), (10, 14, 0.31, 0.9)]
    parts.append((14, 15, 0.4, float("nan")))
    answer.pages = [
        {
            "page_number": 1,
            "tokens": [
                {
                    "layout": {
                        "confidence": sure,
                        "bounding_poly": polygon((x, 0.15, x + 0.01, 0.16)),
                        "text_anchor": {"text_segments": [{"start_index": start, "end_index": end}]},
                    }
                }
                for start, end, x, sure in parts
            ],
        }
    ]
    found = read(scanned(lines(LEFT)), answer).page(1)
    assert [found.text[word[0] : word[1]] for word in found.words] == ["Grade", "2,", "(high)", "grade"]
    assert boxes(found, "2,") == {(2000, 1500, 2300, 1600)}
    assert found.confidences == (0, 50, 0, 0)  # a word that is no token is no surer than the worst one


def test_identifiers_are_found_with_their_boxes() -> None:
    found = page(scanned(lines(LEFT)), paragraph("Patient: Helen Marsh\nDOB: 03/22/1971", box=TOP))
    assert [(one.kind, one.normal, one.box) for one in found.identifiers] == [
        ("patient", "MARSH HELEN", TOP),
        ("date_of_birth", "1971-03-22", TOP),
    ]


@pytest.mark.parametrize("rotation", [90, 180, 270])
def test_boxes_are_of_the_page_as_it_is_displayed(rotation: int) -> None:
    data = pdf(lines(["Carcinoma of the left breast"], x=100, y=200), rotation=rotation)
    assert read(data).page(1).words == bundle(data).page(1).words


def test_boxes_on_a_page_that_google_has_turned_are_not_believed() -> None:
    answer = laid_out(paragraph("One two", box=TOP))
    token = {"layout": {"bounding_poly": polygon(TOP), "text_anchor": {"text_segments": [{"end_index": 3}]}}}
    answer.text, answer.pages = "One", [{"dimension": {"width": 792, "height": 612}, "tokens": [token]}]
    assert read(scanned(lines(LEFT)), answer).page(1).words == ()


@pytest.mark.parametrize(
    ("corners", "expected"),
    [
        ([(0.1, 0.1), (0.9, 0.3)], TOP),
        ([(0.9, 0.3), (0.1, 0.1)], TOP),
        ([(-3, 0.1), (0.5, 7)], (0, 0.1, 0.5, 1)),
        ([(float("nan"), 0.1), (0.9, 0.3)], None),
        ([(float("inf"), 0.1), (0.9, 0.3)], None),
        ([(2, 2), (3, 3)], None),
        ([(0.1, 0.1)], None),
        ([], None),
    ],
)
def test_boxes_are_on_the_page_or_unknown(corners: list[tuple[float, float]], expected: Any) -> None:
    said = paragraph("One")
    said.bounding_box = {"normalized_vertices": [{"x": x, "y": y} for x, y in corners]}
    found = page(scanned(lines(LEFT)), said)
    assert [word[2:] for word in found.words] == ([shares(expected)] if expected else [])
    assert found.blocks[0].box == pytest.approx(expected or (0, 0, 0, 0))


# Status


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" ".join(LEFT), PageStatus.TEXT),
        (" ".join(LEFT).replace("brisk", "risk"), PageStatus.TEXT),
        (" ".join(LEFT) + " 7", PageStatus.OCR),
        (" ".join(LEFT + RIGHT), PageStatus.OCR),
        (" ".join(LEFT[:2]), PageStatus.IMAGE),
    ],
    ids=["the same", "a misread word", "a digit more", "far more", "far less"],
)
def test_a_page_is_text_where_the_pdf_has_the_same_text(text: str, expected: PageStatus) -> None:
    assert page(ONE, paragraph(text)).status is expected


def test_a_scan_with_somebodys_layer_is_recognised_and_not_read() -> None:
    data = scanned(lines(LEFT))
    with pymupdf.open(stream=data) as document:
        document[0].insert_text((72, 120), LEFT[0], render_mode=3)
        found = page(document.tobytes(), paragraph(LEFT[0]))
    assert (found.status, found.text) == (PageStatus.OCR, LEFT[0])


def test_a_picture_that_nothing_is_said_of_makes_the_page_unread() -> None:
    with pymupdf.open(stream=scanned(lines(LEFT))) as document:
        document[0].insert_text((72, 700), "Received by fax")
        assert page(document.tobytes(), paragraph("Received by fax")).status is PageStatus.IMAGE


# Slices


def test_a_page_of_which_the_answer_leaves_a_sixth_out_is_unread() -> None:
    texts = [f"Line {number} of the report says what was seen" for number in range(1, 13)]
    data = pdf(lines(texts))
    assert page(data, *map(paragraph, texts)).status is PageStatus.TEXT
    assert page(data, *map(paragraph, texts[:-2])).status is PageStatus.IMAGE


def test_a_page_that_was_recognised_poorly_is_unread() -> None:
    data = scanned(lines(LEFT))
    good, poor = (read_printed(Layout(tokens=True, confidence=share), data) for share in (0.9, 0.2))
    assert (good.status, poor.status) == (PageStatus.OCR, PageStatus.IMAGE)
    assert poor.problems


def test_large_picture_without_text_is_reported_as_unread() -> None:
    with pymupdf.open(stream=pdf(lines(LEFT))) as document:
        leaf = document[0]
        picture = pymupdf.Pixmap(pymupdf.csGRAY, (0, 0, 40, 40), 0)
        picture.clear_with(128)
        leaf.insert_image((72, 400, 540, 700), pixmap=picture)
        data = document.tobytes()
    found = page(data, *map(paragraph, LEFT))
    assert found.status is PageStatus.TEXT
    assert "pictures" in (found.unread or "")


def test_forty_pages_are_sent_in_slices_and_come_back_in_order(server: DocumentAiServer) -> None:
    server.layout = Layout(tokens=True)
    leaves = [nothing if number in (3, 17) else lines([f"This is leaf {number} of them"]) for number in range(1, 41)]
    document = read_by(reader(server), pdf(*leaves))
    assert_whole(document)
    assert [call.pages for call in server.calls] == [15, 15, 10]
    assert [page.text for page in document.pages] == [
        "" if number in (3, 17) else f"This is leaf {number} of them" for number in range(1, 41)
    ]


def test_oversized_chunks_are_halved_and_single_page_fails(
    server: DocumentAiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def noise(leaf: Any) -> None:
        pixels = pymupdf.Pixmap(pymupdf.csRGB, 100, 100, os.urandom(30_000), False)
        leaf.insert_image(pymupdf.Rect(0, 0, 100, 100), pixmap=pixels)
        leaf.insert_text((72, 300), "A page with a large picture")

    data = pdf(*[lines([f"Leaf {number}"]) for number in range(5)], noise, lines(["Leaf 6"]))
    monkeypatch.setattr("evalkit.documents.readers.documentai.reader.MAX_CHUNK_BYTES", 25_000)
    document = read_by(reader(server), data)
    assert [page.text for page in document.pages] == [*(f"Leaf {number}" for number in range(5)), "", "Leaf 6"]
    failed = document.page(6)
    assert (failed.status, failed.quality) == (PageStatus.FAILED, 0.0)
    assert "larger than" in failed.problems[0]
    assert all(len(call.data) <= 25_000 for call in server.calls)
    assert sum(call.pages for call in server.calls) == 6


def test_a_broken_page_is_not_sent_and_the_others_are_read(server: DocumentAiServer) -> None:
    document = read_by(reader(server), tree(2, "3 0 R 99 0 R"))
    assert [(page.status.value, page.text) for page in document.pages] == [("text", "Hi there"), ("failed", "")]
    assert [call.pages for call in server.calls] == [1]


def test_pages_that_cannot_be_cut_out_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise pymupdf.mupdf.FzErrorLimit("huge")

    monkeypatch.setattr(pymupdf.Document, "select", fail)
    failed = read(pdf(lines(LEFT))).page(1)
    assert failed.status is PageStatus.FAILED
    assert "broken" in failed.problems[0]


def test_a_slice_is_no_larger_than_its_pages() -> None:
    large = pdf(*[lines(LEFT)] * 3)
    one, all_three = _extract_pages_as_pdf(large, [2]), _extract_pages_as_pdf(large, [1, 2, 3])
    assert one is not None
    assert all_three is not None
    assert len(one) < 0.6 * len(all_three)


def test_time_begins_anew_with_each_slice(server: DocumentAiServer) -> None:
    times: list[int] = []
    asked = reader(server, before_chunk=lambda: times.append(len(server.calls)))
    read_by(asked, pdf(*[lines(LEFT)] * 31))
    assert times == [0, 1, 2]


# Files


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "READER-EMPTY"),
        (b"PK\3\4" + bytes(50), "READER-NOT-PDF"),
        (locked("o", "secret"), "READER-ENCRYPTED"),
        (ONE[:400], "READER-DAMAGED"),
        (tree(2_000_000_000, "3 0 R"), "READER-TOO-MANY-PAGES"),
    ],
)
def test_unopenable_file_has_local_error_codes_and_is_not_sent(
    server: DocumentAiServer, data: bytes, code: str
) -> None:
    with pytest.raises(DocumentError) as caught:
        read_by(reader(server, PROCESSOR), data)
    with pytest.raises(DocumentError) as local:
        read_document(PATH, file_bytes=data, **GIVEN)
    assert (caught.value.code, str(caught.value)) == (code, str(local.value))
    assert server.calls == []


def test_a_file_that_was_repaired_says_so() -> None:
    whole = tree(1, "3 0 R")
    repaired = read(b"junk\n" + whole[: whole.index(b"xref")])
    assert repaired.is_repaired
    assert repaired.page(1).text == "Hi there"
    assert not read(whole).is_repaired


# Faults


def failure(*script: Any, data: bytes = ONE, seconds: float = 20.0) -> DocumentError:
    with pytest.raises(DocumentError) as caught:
        read(data, *script, seconds_per_call=seconds)
    assert "report.pdf" in caught.value.message
    assert "x/" not in caught.value.message
    assert "Carcinoma" not in str(caught.value)
    assert caught.value.remedy.endswith(".")
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is None
    return caught.value


@pytest.mark.parametrize(
    ("fault", "code", "calls"),
    [
        (Fault(400), "DOCUMENTAI-REQUEST", 1),
        (Fault(401), "DOCUMENTAI-KEY", 1),
        (Fault(403), "DOCUMENTAI-KEY", 1),
        (Fault(404), "DOCUMENTAI-PROCESSOR", 1),
        (Fault(413), "DOCUMENTAI-REQUEST", 1),
        (Fault(429), "DOCUMENTAI-RATE", 5),
        (Fault(500), "DOCUMENTAI-SERVER", 5),
        (Fault(501), "DOCUMENTAI-SERVER", 1),
        (Fault(502, body=b"<html>proxy</html>"), "DOCUMENTAI-SERVER", 5),
        (Fault(503), "DOCUMENTAI-SERVER", 5),
        (Fault(504), "DOCUMENTAI-TIMEOUT", 5),
        (Fault(drop=True), "DOCUMENTAI-UNREACHABLE", 5),
        (Fault(200, body=b""), "DOCUMENTAI-MALFORMED", 1),
        (Fault(200, body=b"{"), "DOCUMENTAI-MALFORMED", 1),
        (Fault(200, body=b"{}"), "DOCUMENTAI-MALFORMED", 1),
        (Fault(200, body=b"[]"), "DOCUMENTAI-MALFORMED", 1),
        (Fault(200, body=b"\xff\xfe"), "DOCUMENTAI-MALFORMED", 1),
        (Fault(200, body=b"[" * 200_000), "DOCUMENTAI-MALFORMED", 1),
        (Fault(200, body=b'{"document": {"text": 7}}'), "DOCUMENTAI-MALFORMED", 1),
        (Fault(200, body=b'{"document": {"text": "\\ud800"}}'), "DOCUMENTAI-MALFORMED", 1),
        (Fault(200, body=b'{"document": {"error": {"code": 3, "message": "Carcinoma"}}}'), "DOCUMENTAI-REQUEST", 1),
        (Fault(400, body=b'{"error": "Carcinoma"}'), "DOCUMENTAI-MALFORMED", 1),
        (Fault(307, body=b"", headers=(("Location", "http://127.0.0.1:1/elsewhere"),)), "DOCUMENTAI-MALFORMED", 1),
    ],
)
def test_faults_have_codes_and_transient_ones_are_retried(fault: Fault, code: str, calls: int) -> None:
    assert failure(*[fault] * 5).code == code
    assert len(SERVER.calls) == calls


@pytest.mark.parametrize("fault", [Fault(429), Fault(500), Fault(503), Fault(504), Fault(drop=True)])
def test_a_fault_that_passes_costs_nothing(fault: Fault) -> None:
    assert read(ONE, fault, fault) == read(ONE)


def test_a_server_that_hangs_is_given_up_in_time() -> None:
    started = time.monotonic()
    assert failure(*[Fault(hang=True)] * 9, seconds=0.2).code == "DOCUMENTAI-TIMEOUT"
    assert time.monotonic() - started < 20  # the server would hang up after 30


def test_what_is_tried_again_has_what_is_left_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    class Clock:
        now = 0.0

        def monotonic(self) -> float:
            return self.now

    clock, given = Clock(), list[float]()

    def slow(*, timeout: float, retry: None) -> None:
        given.append(timeout)
        clock.now += 15
        raise Timeout

    monkeypatch.setattr("evalkit.documents.readers.documentai.reader.time", clock)
    with pytest.raises(Timeout):
        DocumentAiReader(VERSION, seconds_per_call=10)._call_with_retries(slow)
    assert given[:2] == [10, 5]
    assert max(given[2:]) < 0.01


def test_a_server_that_is_away_and_back_again(server: DocumentAiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = reader(server)
    assert read_by(asked, ONE).page(1).text
    server.stop()
    with pytest.raises(DocumentError) as caught:
        read_by(asked, ONE)
    assert caught.value.code == "DOCUMENTAI-UNREACHABLE"
    server.start()
    assert read_by(asked, ONE).page(1).text


def test_what_google_asks_to_wait_is_waited() -> None:
    started = time.monotonic()
    read(ONE, Fault(429, retry_after=0.3), Fault(503, body=b"", headers=(("Retry-After", "0.2"),)))
    assert time.monotonic() - started > 0.5


def test_whoever_asks_to_wait_too_long_is_not_asked_again() -> None:
    started = time.monotonic()
    assert failure(Fault(429, retry_after=3600)).code == "DOCUMENTAI-RATE"
    assert time.monotonic() - started < SECONDS


@pytest.mark.parametrize(
    ("headers", "details", "expected"),
    [
        ({"Retry-After": "7"}, [], 7),
        ({"Retry-After": "soon"}, [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "2.5s"}], 2.5),
        ({"Retry-After": "-5"}, ["odd", None, {"retryDelay": {}}], 0),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, [], 0),
        ({}, [], 0),
    ],
)
def test_how_long_to_wait(headers: dict[str, str], details: list[Any], expected: float) -> None:
    class Response:
        def __init__(self) -> None:
            self.headers = headers

    from google.api_core.exceptions import TooManyRequests

    assert _get_requested_wait_seconds(TooManyRequests("", details=details, response=Response())) == expected


def test_how_long_to_wait_for_a_date() -> None:
    assert (
        590 < (parse_retry_after(format_datetime(datetime.now(UTC) + timedelta(seconds=600), usegmt=True)) or 0) <= 600
    )


def test_a_slice_that_fails_leaves_no_bundle() -> None:
    data = pdf(*[lines(LEFT)] * 20)
    assert failure(laid_out(paragraph("first")), Fault(400), data=data).code == "DOCUMENTAI-REQUEST"


# Nonsense


def deep(levels: int) -> str:
    """A block in a block in a block, as JSON."""
    return '{"textBlock": {"blocks": [' * levels + '{"textBlock": {"text": "bottom"}}' + "]}}" * levels


def test_blocks_in_blocks_in_blocks() -> None:
    body = '{"document": {"documentLayout": {"blocks": [%s]}}}'
    assert failure(Fault(200, body=(body % deep(500)).encode())).code == "DOCUMENTAI-MALFORMED"
    assert read(scanned(lines(LEFT)), Fault(200, body=(body % deep(20)).encode())).page(1).text == "bottom"


@pytest.mark.parametrize(
    "block",
    [
        paragraph("x", 2),
        paragraph("x", -1),
        paragraph("x", 1, end=2),
        paragraph("x", 1, end=2**31 - 1),
        paragraph("top", 1, blocks=[paragraph("x", 7)]),
        bullets([[paragraph("x", 9)]]),
        table([[[paragraph("x", 3)]]]),
        table([[cell("x", across=150), cell("y", across=150)]]),
        table([[cell("x", across=2**31 - 1)], [cell("x", across=2**31 - 1, down=2**31 - 1)], ["y"]]),
    ],
    ids=str,
)
def test_an_answer_that_contradicts_the_file_is_an_error(block: Any) -> None:
    assert failure(laid_out(block)).code == "DOCUMENTAI-MALFORMED"


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (paragraph("x", 0), "x"),
        (paragraph("x", 1, end=-7), "x"),
        (Block(), ""),
        (paragraph(""), ""),
        (paragraph("\x00\x07 \ufffe"), ""),
        (paragraph("a\x00b\u2028c\x85d\ttab"), "ab c d tab"),
        (Block(list_block=Block.LayoutListBlock()), ""),
        (bullets([[]]), ""),
        (Block(table_block=Block.LayoutTableBlock(body_rows=[{"cells": [{}]}])), ""),
        (Block(image_block=Block.LayoutImageBlock(data_uri="data:,x")), ""),
        (table([[cell("x", across=-4, down=-4)]]), "x"),
    ],
)
def test_odd_blocks_are_read_as_far_as_they_go(block: Any, expected: str) -> None:
    document = read(scanned(lines(LEFT)), laid_out(block))
    assert document.page(1).text == expected
    assert (document.page(1).status is PageStatus.IMAGE) == (not expected)


def test_pages_and_anchors_that_are_not_there() -> None:
    answer = documentai.Document(text="abc", pages=[{"page_number": 9}])
    assert failure(answer).code == "DOCUMENTAI-MALFORMED"
    wild = {"text_anchor": {"text_segments": [{"start_index": -9, "end_index": 2**62}]}}
    far_too_often = {"page_number": 1, "paragraphs": [{"layout": wild}] * 11}
    assert failure(documentai.Document(text="abc", pages=[far_too_often])).code == "DOCUMENTAI-MALFORMED"
    assert failure(documentai.Document(text="abc", pages=[{"page_number": 1}] * 2)).code == "DOCUMENTAI-MALFORMED"
    odd = {"page_number": 1, "paragraphs": [{"layout": wild}], "tokens": [{"layout": wild}, {}]}
    assert read(scanned(lines(LEFT)), documentai.Document(text="abc", pages=[odd])).page(1).text == "abc"


def test_an_answer_that_is_far_too_large_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    assert failure(laid_out(paragraph("word " * 100_001))).code == "DOCUMENTAI-MALFORMED"
    monkeypatch.setattr("evalkit.documents.readers.documentai.response._MAX_RESPONSE_BYTES", 100)
    assert failure(laid_out(paragraph("word " * 50))).code == "DOCUMENTAI-MALFORMED"


def test_an_answer_that_would_take_all_day_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalkit.documents.readers.documentai.response._MAX_CELL_WORD_PAIRS", 1_000)
    assert failure(laid_out(*(paragraph("word", box=TOP) for _ in range(50)))).code == "DOCUMENTAI-MALFORMED"
    monkeypatch.setattr("evalkit.documents.readers.documentai.response._MAX_TABLE_ROWS", 9)
    assert failure(laid_out(table([["x"]] * 10))).code == "DOCUMENTAI-MALFORMED"
    monkeypatch.setattr("evalkit.documents.readers.documentai.response._MAX_TABLE_CELLS", 100)
    assert failure(laid_out(*(table([[cell("x", across=60)]]) for _ in range(2)))).code == "DOCUMENTAI-MALFORMED"


_WORDS = st.lists(
    st.sampled_from(["The", "specimen", "was", "7.2", "négatif", "a\x07b", "  ", "\u2028", ""]), max_size=6
)
_TEXTS = _WORDS.map(" ".join)
_EDGE = st.floats(-0.5, 1.5, width=32) | st.just(float("nan"))
_BOXES = st.none() | st.tuples(_EDGE, _EDGE, _EDGE, _EDGE)
_KINDS = st.sampled_from(["paragraph", "heading-2", "header", "footer", ""])
_SPANS = st.sampled_from([(0, 0), (1, 0), (2, 0), (3, 0), (1, 2), (2, 3), (1, 3)])


def _texts(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(
        lambda text, place, kind, box, blocks: paragraph(
            text, place[0], end=place[1], kind=kind, box=box, blocks=blocks
        ),
        _TEXTS,
        _SPANS,
        _KINDS,
        _BOXES,
        children,
    )


def _holders(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, max_size=3)
    rows = st.lists(st.lists(several, max_size=3), max_size=3)
    return (
        _texts(several)
        | st.builds(table, rows, caption=_TEXTS, box=_BOXES)
        | st.builds(bullets, several.map(lambda x: [x]))
    )


_TREES = st.lists(st.recursive(_texts(st.just([])), _holders, max_leaves=12), max_size=6)
_THREE = pdf(lines(LEFT), nothing, draw_together(lines(RIGHT), lines(["7.2 The"], y=400)))
_SCANS = scanned(lines(LEFT), nothing, lines(RIGHT))


@settings(max_examples=40)
@given(blocks=_TREES, data=st.sampled_from([_THREE, _SCANS]))
def test_any_block_tree_gives_a_valid_bundle(blocks: list[Any], data: bytes) -> None:
    document = read(data, laid_out(*blocks))
    assert DocumentBundle.model_validate_json(document.model_dump_json()) == document
    assert [page.page_num for page in document.pages] == [1, 2, 3]
    for one in document.pages:
        assert one.text == "\n".join(one.paragraphs)
        assert one.paragraphs == tuple(block.text for block in one.visible_blocks)
        assert one.layout_metadata.block_types == tuple(block.type for block in one.visible_blocks)
        whole_words = [match.span() for match in re.finditer(r"\S+", one.text)]
        spans = [word[:2] for word in one.words]
        assert spans == sorted(set(spans) & set(whole_words))
        assert all(0 <= x0 <= x1 <= 10_000 and 0 <= y0 <= y1 <= 10_000 for _, _, x0, y0, x1, y1 in one.words)
        assert all(
            0 <= block.box[0] <= block.box[2] <= 1 and 0 <= block.box[1] <= block.box[3] <= 1 for block in one.blocks
        )
        assert (one.status in (PageStatus.BLANK, PageStatus.IMAGE)) >= (not one.text)


# Processor and endpoint


def test_processor_is_pinned_to_default_version_once(server: DocumentAiServer) -> None:
    asked = reader(server, PROCESSOR)
    for _ in range(2):
        assert read_by(asked, ONE).reader.startswith(reader(server).reader_version + ", ")
    assert [call.name for call in server.calls] == [PROCESSOR, VERSION, VERSION]
    again = pickle.loads(pickle.dumps(asked))
    assert again == asked
    assert again.fetch_processor_version_name == VERSION
    assert len(server.calls) == 3


@pytest.mark.parametrize(
    ("fault", "code"),
    [(Fault(403), "DOCUMENTAI-KEY"), (Fault(404), "DOCUMENTAI-PROCESSOR"), (Fault(503), "DOCUMENTAI-SERVER")],
)
def test_version_lookup_without_permission_asks_for_the_version(
    server: DocumentAiServer, fault: Fault, code: str
) -> None:
    server.processor_fault = fault
    with pytest.raises(UsageError) as caught:
        _ = reader(server, PROCESSOR).reader_version
    assert caught.value.code == code
    assert "/processorVersions/VERSION" in caught.value.remedy


@pytest.mark.parametrize("version", ["", "projects/demo", "../../evil"])
def test_a_processor_without_default_version_is_an_error(server: DocumentAiServer, version: str) -> None:
    server.default_version = version
    with pytest.raises(UsageError, match="default version"):
        _ = reader(server, PROCESSOR).fetch_processor_version_name


@pytest.mark.parametrize(
    ("processor", "endpoint", "code"),
    [
        ("", None, "DOCUMENTAI-PROCESSOR"),
        ("layout1", None, "DOCUMENTAI-PROCESSOR"),
        ("projects/p/locations/evil.example/processors/x", None, "DOCUMENTAI-PROCESSOR"),
        ("projects/p/locations/us/processors/x/processorVersions/", None, "DOCUMENTAI-PROCESSOR"),
        (VERSION, "http://documentai.example", "DOCUMENTAI-ENDPOINT"),
        (VERSION, "http://10.0.0.7:8080", "DOCUMENTAI-ENDPOINT"),
        (VERSION, "http://127.0.0.1:80@evil.example", "DOCUMENTAI-ENDPOINT"),
        (VERSION, "http://127.0.0.1.evil.example:80", "DOCUMENTAI-ENDPOINT"),
        (VERSION, "ftp://127.0.0.1:80", "DOCUMENTAI-ENDPOINT"),
    ],
)
def test_processors_and_endpoints_that_are_none(processor: str, endpoint: str | None, code: str) -> None:
    with pytest.raises(UsageError) as caught:
        DocumentAiReader(processor, endpoint=endpoint)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("endpoint", "transport", "host"),
    [
        (None, "grpc", "us-documentai.googleapis.com:443"),
        (None, "rest", "https://us-documentai.googleapis.com"),
        ("eu-documentai.googleapis.com", "grpc", "eu-documentai.googleapis.com:443"),
        ("https://private.example:8443", "rest", "https://private.example:8443"),
    ],
)
def test_everything_else_is_asked_over_tls(
    endpoint: str | None, transport: Any, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from google.auth.credentials import AnonymousCredentials

    monkeypatch.setattr("google.auth.default", lambda *_, **__: (AnonymousCredentials(), "demo"))
    with DocumentAiReader(VERSION, endpoint=endpoint, transport=transport)._create_client() as client:
        assert client.transport.kind == transport
        assert client.transport._host == host


def test_without_credentials_it_says_how_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    from google.auth.exceptions import DefaultCredentialsError

    def none(*_: object, **__: object) -> None:
        raise DefaultCredentialsError("none")  # type: ignore[no-untyped-call]

    monkeypatch.setattr("google.auth.default", none)
    with pytest.raises(UsageError) as caught:
        read_by(DocumentAiReader(VERSION), ONE)
    assert caught.value.code == "DOCUMENTAI-KEY"
    assert "gcloud auth" in caught.value.remedy


def test_environment_proxies_are_ignored_for_localhost(
    server: DocumentAiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "grpc_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert read_by(reader(server), ONE).page(1).text
    assert read_by(DocumentAiReader(VERSION, endpoint=server.grpc_address), ONE).page(1).text


# gRPC


def test_grpc_reads_what_rest_reads(server: DocumentAiServer) -> None:
    data = pdf(lines(LEFT), nothing, lines(RIGHT))
    by_rest = read_by(reader(server, PROCESSOR), data)
    by_grpc = read_by(DocumentAiReader(PROCESSOR, endpoint=server.grpc_address), data)
    assert by_grpc == by_rest
    assert server.calls[1].options == server.calls[3].options
    assert server.calls[1].mask == server.calls[3].mask


@pytest.mark.parametrize(
    ("fault", "code", "calls"),
    [
        (Fault(400), "DOCUMENTAI-REQUEST", 1),
        (Fault(403), "DOCUMENTAI-KEY", 1),
        (Fault(404), "DOCUMENTAI-PROCESSOR", 1),
        (Fault(429, retry_after=3600), "DOCUMENTAI-RATE", 1),
        (Fault(503), "DOCUMENTAI-SERVER", 5),
        (Fault(200, body=b"\xff"), "DOCUMENTAI-SERVER", 5),
        (Fault(hang=True), "DOCUMENTAI-TIMEOUT", 2),
    ],
)
def test_faults_by_grpc(server: DocumentAiServer, fault: Fault, code: str, calls: int) -> None:
    server.script[:] = [fault] * 5
    seconds = 0.3 if fault.hang else 20
    with pytest.raises(DocumentError) as caught:
        read_by(DocumentAiReader(VERSION, endpoint=server.grpc_address, seconds_per_call=seconds), ONE)
    assert caught.value.code == code
    assert len(server.calls) == pytest.approx(calls, abs=1 if fault.hang else 0)
    assert "Carcinoma" not in str(caught.value)


# Silence


@pytest.fixture
def everything_logged(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[logging.LogRecord]]:
    """Every record of every logger, as somebody who looks for a fault would have it."""
    records: list[logging.LogRecord] = []

    class Keeping(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append(record)

    handler = Keeping(level=1)
    google = [name for name in logging.Logger.manager.loggerDict if name.startswith("google")]
    for name in ("", "google", "urllib3", *google):
        logger = logging.getLogger(name)
        monkeypatch.setattr(logger, "level", 1)
        monkeypatch.setattr(logger, "propagate", True)
        logger.manager._clear_cache()  # type: ignore[attr-defined]
    logging.getLogger().addHandler(handler)
    yield records
    logging.getLogger().removeHandler(handler)


@pytest.mark.parametrize("by_grpc", [False, True])
def test_no_log_has_the_document_or_a_name_or_a_key(
    server: DocumentAiServer, everything_logged: list[logging.LogRecord], by_grpc: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalkit.documents.readers.documentai.reader.MAX_CHUNK_PAGES", 1)
    data = pdf(lines(["Patient: Marsh, Helen", "adenocarcinoma"]), lines(LEFT))
    server.script[:] = [Fault(503), Fault(429, retry_after=0.01)]
    asked = DocumentAiReader(PROCESSOR, endpoint=server.grpc_address if by_grpc else server.url)
    read_by(asked, data, Path("x/marsh_helen.pdf"))
    server.script[:] = [Fault(400)]
    with pytest.raises(DocumentError):
        read_by(asked, data, Path("x/marsh_helen.pdf"))
    if not by_grpc:
        assert any(record.name.startswith("urllib3") for record in everything_logged)  # the handler does hear
    told = "\n".join(json.dumps(vars(record), default=repr) for record in everything_logged).casefold()
    sent = base64.b64encode(server.calls[-1].data).decode().casefold()
    for marker in ("marsh", "adenocarcinoma", "specimen", "carcinoma in the file", sent[:40], "%pdf", "authorization"):
        assert marker not in told


def test_nothing_is_printed_and_the_library_comes_late(server: DocumentAiServer, tmp_path: Path) -> None:
    code = (
        "import sys; from evalkit.documents.readers import read_document; from pathlib import Path\nfrom evalkit.documents.readers.documentai.reader import DocumentAiReader\n"
        f"asked = DocumentAiReader({VERSION!r}, endpoint={server.url!r}); asked.reader_version\n"
        "assert not {'google.cloud.documentai', 'grpc', 'pymupdf'} & set(sys.modules)\n"
        f"read_document(Path(sys.argv[1]), documentai=asked, **{GIVEN!r})"
    )
    path = tmp_path / "report.pdf"
    path.write_bytes(ONE)
    environment = os.environ | {"GOOGLE_SDK_PYTHON_LOGGING_SCOPE": "google"}
    done = subprocess.run(
        [sys.executable, "-c", code, path], capture_output=True, text=True, check=True, env=environment
    )
    assert "specimen" not in done.stdout + done.stderr
    assert done.stdout == ""
