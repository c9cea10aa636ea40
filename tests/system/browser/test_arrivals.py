"""One file of each format that arrives, from the folder to the expert's screen: each page is painted, its quote is lit."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pymupdf
import pytest
from builders import NOTE, evidence, one_segment
from documents.arrivals.making import attached, cda, docx, mail, multipart, para, saved, section, text_part
from documents.drawing import lines, pdf
from documents.scanning import assert_near, needs_tesseract, printed
from system.browser.screen import Screen, find_highlights
from system.browser.server import Serve, Served

import evalkit

pytestmark = needs_tesseract

LETTER = [
    "PROGRESS NOTE",
    "Chief complaint: breast lump noticed two weeks ago.",
    "The patient reports no pain and has had no fever since then.",
    "Blood pressure 128/76, pulse 72.",
    "Tamoxifen 20 mg daily by mouth was begun this week.",
    "She will return for follow-up in six weeks.",
]
GENUINE = "The patient reports no pain and has had no fever"
ALTERED = "Tamoxifen 40 mg daily by mouth was begun"
PRINTED = "Tamoxifen 20 mg daily by mouth was begun"
PAPER = printed(lines(LETTER, size=13), dpi=200)
PICTURES = ("fax", "photo", "screenshot")
#: The report is attached to the mail.
DOCUMENTS = ("ccd", "fax", "letter", "message", "note", "photo", "portal", "report", "screenshot", "summary")


def _write_arrivals(folder: Path) -> None:
    paragraphs = "".join(f"<p>{line}</p>" for line in LETTER)
    black_and_white = PAPER.image.point(lambda grey: 255 * (grey > 160), "1")
    headings = "From: ward@example.org\nTo: records@example.org\nSubject: Progress note"
    parts = (text_part("\n".join(LETTER)), attached("report.pdf", "application/pdf", pdf(lines(LETTER, size=13))))
    files = {
        "ccd.xml": cda(section("Progress note", "".join(f"<paragraph>{line}</paragraph>" for line in LETTER))).encode(),
        "fax.tif": saved(black_and_white, "TIFF", compression="group4", dpi=(200, 200)),
        "letter.docx": docx("".join(map(para, LETTER))),
        "message.eml": mail(headings, multipart("mixed", *parts)),
        "note.txt": "\n".join(LETTER).encode(),
        "photo.jpg": saved(PAPER.image, "JPEG", quality=85, dpi=(200, 200)),
        "portal.html": f"<!DOCTYPE html><title>Portal</title>{paragraphs}".encode(),
        "screenshot.png": saved(PAPER.image, "PNG", dpi=(200, 200)),
        "summary.pdf": pdf(lines(LETTER, size=13)),
        "sheet.xlsx": b"PK\x03\x04",
    }
    for name, content in files.items():
        (folder / name).write_bytes(content)


@pytest.fixture(scope="module")
def review_server(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server over a run of the folder; in each document one dose is not the one that is written there."""
    folder = tmp_path_factory.mktemp("arrivals")
    inbox, answers, output = (folder / name for name in ("inbox", "answers", "output"))
    inbox.mkdir()
    answers.mkdir()
    _write_arrivals(inbox)
    classification = one_segment(NOTE, 1, evidence(ALTERED, 1, "Tamoxifen"), evidence(GENUINE, 1, "fever"))
    for doc_id in DOCUMENTS:
        (answers / f"{doc_id}.json").write_text(json.dumps(classification))
    summary = evalkit.run([inbox], output=output, classifications=answers)
    decisions = {document.doc_id: document.decision for document in summary.documents}
    assert decisions == dict.fromkeys(DOCUMENTS, "ESCALATE_TO_SME")
    assert [skipped.file for skipped in summary.skipped] == [str(inbox / "sheet.xlsx")]
    with serve(output, ["dr_lee"]) as server:
        yield server


@pytest.fixture
def screen(login: Callable[..., Screen]) -> Screen:
    return login()


def _assert_lit(screen: Screen, output: Path, doc_id: str, quote: str) -> None:
    """The marks on screen cover the quote and little else, as another program than the reader finds it there."""
    converted = output / "converted" / f"{doc_id}.pdf"
    with pymupdf.open(converted if converted.exists() else output.with_name("inbox") / f"{doc_id}.pdf") as document:
        boxes = document[0].search_for(quote)
        width, height = document[0].rect[2:]
    places = [(x0 / width, y0 / height, x1 / width, y1 / height) for x0, y0, x1, y1 in boxes]
    assert bool(places) != (doc_id in PICTURES), "what a picture shows is no text of the PDF"
    assert_near(find_highlights(screen), places or PAPER.places(quote))


def test_the_queue_lists_a_case_for_each_file_that_can_be_read(screen: Screen) -> None:
    assert sorted(screen.cases()) == list(DOCUMENTS)


@pytest.mark.parametrize("doc_id", DOCUMENTS)
def test_its_page_is_painted_and_its_quotes_are_lit(
    screen: Screen, review_server: Served, doc_id: str, shots: Path | None
) -> None:
    screen.open(doc_id)
    page = screen.page
    page.wait_for_selector('.ek-pane[data-painted$=":1"]')
    page.wait_for_selector(".ek-mark-near")
    assert "The quote says “40”; page 1" in page.locator(".ek-selected").inner_text()
    _assert_lit(screen, review_server.output, doc_id, PRINTED)
    screen.shot(shots, f"arrival-{doc_id}-1440")
    page.get_by_text("What the program claims").click()
    page.locator(".ek-evidence", has_text=GENUINE).click()
    page.wait_for_selector(".ek-mark-found")
    page.wait_for_function("() => !document.querySelector('.ek-mark-near')")
    _assert_lit(screen, review_server.output, doc_id, GENUINE)
    page.set_viewport_size({"width": 1280, "height": 720})
    screen.settle()
    screen.shot(shots, f"arrival-{doc_id}-1280")
