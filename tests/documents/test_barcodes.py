"""Whose page it is, by the bar codes of cover sheets and stickers."""

from __future__ import annotations

import random
import time
from pathlib import Path

import numpy as np
import pymupdf
import pytest
from benchmarks.identity_packets import fax
from PIL import Image

from evalkit.documents.bundle import Page, PageStatus
from evalkit.documents.identity.barcodes import add_barcode_identifiers, read_barcodes
from evalkit.documents.identity.page_identity import find_patient_identifiers
from evalkit.documents.ocr import resolve_ocr_engine
from evalkit.documents.readers import read_document
from evalkit.documents.scanned_pages import PageOcrSettings

from .barcode_pages import BIRTH_LINE, HELEN, NAME_LINE, PAGES, SQUARE, WIDE, BarcodePage, draw, head, picture
from .scanning import needs_tesseract

ENGINE = resolve_ocr_engine("auto")
#: `benchmarks/barcodes.py` sends all of them.
FAXED = [
    page
    for page in PAGES
    if page.name
    in (
        "labelled number, Code128",
        "segment PID",
        "label above",
        "another number than the printed one",
        "another patient's label and the right one",
        "the fax system's",
        "a separator sheet",
    )
]
by_name = pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])


def read(document: pymupdf.Document, recogniser: PageOcrSettings | None = None) -> Page:
    bundle = read_document(
        Path("x/cover.pdf"),
        file_bytes=document.tobytes(),
        doc_id="cover",
        processing_timestamp="2026-01-02T03:04:05Z",
        ocr_settings=recogniser,
    )
    return bundle.page(1)


def send(document: pymupdf.Document, seed: int = 3, *, gray: bool = True) -> Page:
    """The page as a fax, recognised."""
    assert ENGINE
    received = fax.send(document, "FROM LAKESIDE CLINIC {page}/{pages}", random.Random(seed), gray)
    return read(received, PageOcrSettings(ENGINE, 30))


def identity(page: Page) -> dict[str, str]:
    return {identifier.kind: identifier.normal for identifier in page.identifiers}


def coded(page: Page) -> set[str]:
    assert all(identifier.confidence == 1 for identifier in page.identifiers if identifier.source == "barcode")
    return {identifier.kind for identifier in page.identifiers if identifier.source == "barcode"}


@by_name
def test_identity_of_a_printed_page(page: BarcodePage) -> None:
    printed = read(draw(page))
    assert identity(printed) == page.expected
    assert coded(printed) == page.coded


@pytest.mark.parametrize("form", ["Code128", "Code39", "ITF", "QRCode", "DataMatrix", "Aztec"])
def test_bars_drawn_as_areas_are_read(form: str) -> None:
    place = WIDE if form in ("Code128", "Code39", "ITF") else SQUARE
    page = BarcodePage("", ((form, "40917123", place),), {}, printed=head(NAME_LINE, BIRTH_LINE, "MRN: 40917123"))
    assert coded(read(draw(page, as_bars=True))) == {"mrn"}


@needs_tesseract
@pytest.mark.parametrize("page", FAXED, ids=[page.name for page in FAXED])
def test_identity_of_a_fax(page: BarcodePage) -> None:
    received = send(draw(page))
    assert page.coded <= coded(received) <= {*page.coded, *HELEN, "mrn"}
    assert identity(received) == page.expected


@needs_tesseract
def test_misread_digits_are_corrected_by_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ENGINE
    recognise = type(ENGINE).recognise_words

    def misread(self, image, *, dpi, time_limit_seconds):
        words = recognise(self, image, dpi=dpi, time_limit_seconds=time_limit_seconds)
        return [word._replace(text=word.text.replace("40917123", "4O9I7I23"), confidence=60) for word in words]

    monkeypatch.setattr(type(ENGINE), "recognise_words", misread)
    (page,) = (page for page in PAGES if page.name == "labelled number, Code128")
    number = next(identifier for identifier in send(draw(page)).identifiers if identifier.kind == "mrn")
    assert (number.value, number.normal, number.source, number.confidence) == ("40917123", "40917123", "barcode", 1)
    assert number.box[1] < 0.14  # around the label and the printed number, as before


@pytest.mark.parametrize("rotation", [0, 90, 180, 270])
def test_the_code_has_a_place_on_the_displayed_page(rotation: int) -> None:
    document = draw(BarcodePage("", (("Code128", "MRN:40917123", WIDE),), {}))
    document[0].set_rotation(rotation)
    (number,) = read(document).identifiers
    corners = pymupdf.Rect(WIDE) * document[0].rotation_matrix
    corners.normalize()
    width, height = document[0].rect.width, document[0].rect.height
    place = (corners.x0 / width, corners.y0 / height, corners.x1 / width, corners.y1 / height)
    assert number.box == pytest.approx(place, abs=0.03)


def test_numbers_of_a_label_have_the_letterheads_issuer() -> None:
    lines = head("Thornton Memorial Hospital", NAME_LINE, BIRTH_LINE, "Account number: 55120077")
    page = BarcodePage("", (("QRCode", "MRN:40917123", SQUARE),), {}, printed=lines)
    issuers = {identifier.kind: identifier.issuer for identifier in read(draw(page)).identifiers}
    assert issuers["mrn"] == issuers["account"] == "Thornton Memorial Hospital"


@pytest.mark.parametrize(
    "text",
    [
        "MRN:" + "4" * 2900,
        "\x00\x01\x02MRN\x1b:\x7f4\x08",
        "MRN:\x00\x00\x00",
        "|" * 2000,
        "^" * 2000,
        "{" * 2000,
        "PID|" + "~^" * 900,
        "MRN:40917123\n" * 200,
        "," + " " * 990,
        "A^" + "A" * 990 + "!",
        " " * 990 + "A",
        ";".join(f"NAME=ROE{number}^A;MRN=77{number}" for number in range(90)),
    ],
)
def test_hostile_texts_are_bounded(text: str) -> None:
    started = time.process_time()
    page = read(draw(BarcodePage("", (("QRCode", text, (72, 100, 372, 400)),), {}, prose=0)))
    assert time.process_time() - started < 3
    assert all(len(identifier.value) <= 60 and identifier.value.isprintable() for identifier in page.identifiers)


def test_hundreds_of_codes_are_bounded() -> None:
    code = np.asarray(picture("QRCode", "MRN:40917123", scale=2))
    sheet = Image.fromarray(np.tile(code, (30, 25)))
    started = time.process_time()
    assert len(read_barcodes(sheet)) <= 20
    assert time.process_time() - started < 3


def test_a_huge_picture_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    document = draw(BarcodePage("", (), {}))
    huge = Image.new("1", (12_000, 9_000), 1)
    huge.paste(picture("Code128", "MRN:40917123").convert("1"), (50, 50))
    document[0].insert_image(
        pymupdf.Rect(72, 100, 172, 180), pixmap=pymupdf.Pixmap(pymupdf.csGRAY, pymupdf.Pixmap(_png(huge)))
    )
    monkeypatch.setattr("evalkit.documents.identity.barcodes.read_barcodes", lambda *_: pytest.fail("it was drawn"))
    assert read(document).identifiers == ()


def _png(image: Image.Image) -> bytes:
    from evalkit.documents.render import encode_png

    return encode_png(image)


def test_text_and_tables_alone_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    document = draw(BarcodePage("", (), {}, printed=head(NAME_LINE, BIRTH_LINE)))
    for row in range(20):
        for column in range(12):
            cell = pymupdf.Rect(72 + 30 * column, 120 + 9 * row, 102 + 30 * column, 129 + 9 * row)
            document[0].draw_rect(cell, width=0.5)
            document[0].draw_rect((cell.x0, cell.y0, cell.x0 + 0.5, cell.y1), fill=(0, 0, 0), width=0)
    monkeypatch.setattr("evalkit.documents.identity.barcodes.read_barcodes", lambda *_: pytest.fail("it was drawn"))
    assert identity(read(document)) == HELEN


def test_a_nations_number_stays_beside_the_institutions() -> None:
    text = "Summit Ridge Hospital\nPatient Name: Marsh, Helen\nMRN: 40917123\nNHS No: 943 476 5919"
    page = Page.model_construct(
        page_num=1, status=PageStatus.TEXT, text=text, identifiers=find_patient_identifiers(text, ())
    )
    numbers = [(number.value, number.issuer) for number in page.identifiers if number.kind == "mrn"]
    assert numbers == [("40917123", "Summit Ridge Hospital"), ("943 476 5919", "NHS")]
    assert add_barcode_identifiers(page, ()) == page
    coded = add_barcode_identifiers(page, [("MRN:40917123", (0.1, 0.1, 0.2, 0.2))])
    assert {(number.value, number.issuer) for number in coded.identifiers if number.kind == "mrn"} == set(numbers)
