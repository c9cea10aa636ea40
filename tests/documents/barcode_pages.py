"""Pages with bar codes, drawn for the tests, and the identity that each states; all persons are invented."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pymupdf
import zxingcpp
from PIL import Image

HEIGHT = 792
PROSE = "The patient was seen in clinic today and feels well; no new complaints were reported since the last visit."
NAME_LINE, BIRTH_LINE = "Patient name: Marsh, Helen A", "Date of birth: 03/22/1971"
HELEN = {"patient": "MARSH HELEN", "date_of_birth": "1971-03-22"}
PID = "PID|1||40917123^^^TMH^MR~55120077^^^TMH^AN||MARSH^HELEN^A||19710322|F|||12 ELM ST"
Place = tuple[float, float, float, float]
WIDE, SQUARE, FLAT = (72, 150, 262, 190), (72, 150, 162, 240), (72, 150, 292, 220)
"""Where a code is drawn, in points."""


@dataclass(frozen=True)
class BarcodePage:
    """What is printed and coded on a page, and who it is about."""

    name: str
    codes: tuple[tuple[str, str, Place], ...]
    """Format, text and place of each."""
    expected: Mapping[str, str]
    """By kind, the form to compare by."""
    coded: frozenset[str] = frozenset()
    """The kinds whose source is a bar code."""
    printed: tuple[tuple[float, float, str], ...] = ()
    """x, y (points) and text of each line."""
    prose: int = 20
    """Lines of prose below."""


def head(*lines: str) -> tuple[tuple[float, float, str], ...]:
    return tuple((72, 60 + 18 * number, line) for number, line in enumerate(lines))


PAGES = [
    # A number that is printed with its label.
    *(
        BarcodePage(
            f"labelled number, {form}",
            ((form, "40917123", place),),
            {**HELEN, "mrn": "40917123"},
            frozenset({"mrn"}),
            head(NAME_LINE, BIRTH_LINE, "MRN: 40917123"),
        )
        for form, place in (
            ("Code128", WIDE),
            ("Code39", (72, 150, 312, 190)),
            ("ITF", WIDE),
            ("QRCode", SQUARE),
            ("DataMatrix", SQUARE),
            ("PDF417", FLAT),
            ("Aztec", SQUARE),
        )
    ),
    BarcodePage(
        "two labelled numbers",
        (("Code128", "40917123", WIDE), ("Code128", "55120077", (332, 150, 522, 190))),
        {**HELEN, "mrn": "40917123", "account": "55120077"},
        frozenset({"mrn", "account"}),
        head(NAME_LINE, BIRTH_LINE, "MRN: 40917123", "Account number: 55120077"),
    ),
    BarcodePage(
        "the code writes zeros before the number",
        (("Code128", "0040917123", WIDE),),
        {**HELEN, "mrn": "40917123"},
        printed=head(NAME_LINE, BIRTH_LINE, "MRN: 40917123"),
    ),
    # Codes that say what they hold.
    BarcodePage("label inside", (("Code128", "MRN:40917123", WIDE),), {"mrn": "40917123"}, frozenset({"mrn"})),
    BarcodePage(
        "account inside", (("QRCode", "ACCT#55120077", SQUARE),), {"account": "55120077"}, frozenset({"account"})
    ),
    BarcodePage("visit inside", (("QRCode", "CSN: 300412288", SQUARE),), {"visit": "300412288"}, frozenset({"visit"})),
    BarcodePage(
        "name, birth date and sex in the form of HL7",
        (("DataMatrix", "MARSH^HELEN^A|19710322|F", SQUARE),),
        {**HELEN, "sex": "F"},
        frozenset({*HELEN, "sex"}),
    ),
    BarcodePage(
        "segment PID",
        (("PDF417", PID, (72, 150, 392, 260)),),
        {**HELEN, "sex": "F", "mrn": "40917123", "account": "55120077"},
        frozenset({*HELEN, "sex", "mrn", "account"}),
    ),
    BarcodePage(
        "JSON",
        (
            (
                "QRCode",
                '{"mrn":"40917123","patientName":"Marsh, Helen A","birthDate":"1971-03-22","gender":"female"}',
                SQUARE,
            ),
        ),
        {**HELEN, "sex": "F", "mrn": "40917123"},
        frozenset({*HELEN, "sex", "mrn"}),
    ),
    BarcodePage(
        "pairs of key and value",
        (("Aztec", "NAME=MARSH^HELEN;DOB=19710322;MRN=40917123", SQUARE),),
        {**HELEN, "mrn": "40917123"},
        frozenset({*HELEN, "mrn"}),
    ),
    BarcodePage(
        "lines",
        (("QRCode", "Patient Name: Marsh, Helen A\nDOB: 03/22/1971\nAccession #: S24-10771", SQUARE),),
        {**HELEN, "accession": "S2410771"},
        frozenset({*HELEN, "accession"}),
    ),
    # A bare number is of the kind that the label at its side names.
    BarcodePage(
        "label above",
        (("Code128", "40917123", WIDE),),
        {"mrn": "40917123"},
        frozenset({"mrn"}),
        ((82, 145, "Medical Record Number"),),
    ),
    BarcodePage(
        "label below",
        (("Code128", "55120077", WIDE),),
        {"account": "55120077"},
        frozenset({"account"}),
        ((82, 203, "Account No."),),
    ),
    BarcodePage(
        "label to the left",
        (("Code128", "300412288", WIDE),),
        {"visit": "300412288"},
        frozenset({"visit"}),
        ((20, 173, "CSN:"),),
    ),
    BarcodePage("no label", (("Code128", "40917123", WIDE),), HELEN, printed=head(NAME_LINE, BIRTH_LINE)),
    BarcodePage(
        "labels of two kinds",
        (("Code128", "40917123", WIDE),),
        {},
        printed=((82, 145, "Account No."), (82, 203, "Encounter No.")),
    ),
    BarcodePage(
        "label of somebody else",
        (("Code128", "40917123", WIDE),),
        {},
        printed=((82, 145, "Mother's MRN"),),
    ),
    # Codes that lie, and codes of somebody else.
    BarcodePage(
        "another number than the printed one",
        (("Code128", "MRN:77340021", WIDE),),
        {**HELEN, "mrn": "40917123"},
        printed=head(NAME_LINE, BIRTH_LINE, "MRN: 40917123"),
    ),
    BarcodePage(
        "the number of the newborn's mother, one higher",
        (("Code128", "40917124", WIDE),),
        {**HELEN, "mrn": "40917123"},
        printed=head(NAME_LINE, BIRTH_LINE, "MRN: 40917123"),
    ),
    BarcodePage(
        "another patient's label: nothing of it is the page's",
        (("DataMatrix", "MRN:77340021|ROE^PETER^J|19480105|M", SQUARE),),
        HELEN,
        printed=head(NAME_LINE, BIRTH_LINE),
    ),
    BarcodePage(
        "another patient's label and the right one",
        (
            ("DataMatrix", "MRN:77340021|ROE^PETER^J|19480105|M", SQUARE),
            ("QRCode", "MRN:40917123|MARSH^HELEN^A|19710322|F", (332, 150, 422, 240)),
        ),
        {**HELEN, "sex": "F", "mrn": "40917123"},
        frozenset({*HELEN, "sex", "mrn"}),
        head(NAME_LINE, BIRTH_LINE),
    ),
    BarcodePage(
        "labels of two patients, and no print to tell",
        (
            ("DataMatrix", "MRN:77340021|ROE^PETER^J|19480105|M", SQUARE),
            ("QRCode", "MRN:40917123|MARSH^HELEN^A|19710322|F", (332, 150, 422, 240)),
        ),
        {},
    ),
    BarcodePage(
        "the newborn's label on the mother's page",
        (("DataMatrix", "MARSH^BABYGIRL|20240301|F", SQUARE),),
        {"patient": "MARSH HELEN"},
        printed=head(NAME_LINE),
    ),
    BarcodePage(
        "a surname like a fax's words",
        (("DataMatrix", "PAGE^THOMAS|19710322|M", SQUARE),),
        {"patient": "PAGE THOMAS", "date_of_birth": "1971-03-22", "sex": "M"},
        frozenset({*HELEN, "sex"}),
    ),
    # What belongs to the sender, the fax system or the scanner.
    BarcodePage("a web address", (("QRCode", "https://portal.example/p?mrn=40917123&dob=1971-03-22", SQUARE),), {}),
    BarcodePage("the fax system's", (("QRCode", "FAX JOB 88123;ACCT:55120077;FROM:+13125550147;PAGES:4", SQUARE),), {}),
    BarcodePage("a separator sheet", (("Code39", "PATCH T", WIDE),), {}, prose=0),
    BarcodePage("the scanner's number", (("Code128", "BATCH:2024-0081734", WIDE),), {}),
    BarcodePage(
        "a postal code",
        (("Code128", "42060614", WIDE),),
        HELEN,
        printed=head(NAME_LINE, BIRTH_LINE, "Chicago, IL 60614"),
    ),
    BarcodePage(
        "a calling card",
        (("QRCode", "BEGIN:VCARD\nN:Hale;Susan\nFN:Name: Hale, Susan\nBDAY:1970-01-02\nEND:VCARD", SQUARE),),
        {},
    ),
    BarcodePage("the doctor's", (("QRCode", "Provider: Hale, Susan MD; NPI: 1234567893", SQUARE),), {}),
]


def picture(form: str, text: str, scale: int = 4) -> Image.Image:
    code = zxingcpp.create_barcode(text, getattr(zxingcpp.BarcodeFormat, form))
    return Image.fromarray(np.asarray(code.to_image(scale=scale)))


def draw_code(page: Any, form: str, text: str, place: Place) -> None:
    file = io.BytesIO()
    picture(form, text).save(file, "PNG")
    page.insert_image(pymupdf.Rect(place), stream=file.getvalue(), keep_proportion=False)


def draw_bars(page: Any, form: str, text: str, place: Place) -> None:
    """As areas, one for each run of dark dots, in place of a picture."""
    dots = np.asarray(picture(form, text, scale=1)) < 128
    rows = dots if form in ("QRCode", "DataMatrix", "Aztec") else dots[len(dots) // 2 :][:1]
    x0, y0, x1, y1 = place
    across, down = (x1 - x0) / rows.shape[1], (y1 - y0) / rows.shape[0]
    for number, row in enumerate(rows):
        edges = np.flatnonzero(np.diff(np.concatenate(([0], row.astype(int), [0]))))
        for start, end in edges.reshape(-1, 2):
            bar = (x0 + start * across, y0 + number * down, x0 + end * across, y0 + (number + 1) * down)
            page.draw_rect(pymupdf.Rect(bar), color=None, fill=(0, 0, 0), width=0)


def draw(page: BarcodePage, *, as_bars: bool = False) -> pymupdf.Document:
    document = pymupdf.open()
    sheet = document.new_page(width=612, height=HEIGHT)
    for x, y, text in page.printed:
        sheet.insert_text((x, y), text, fontsize=11)
    for form, text, place in page.codes:
        (draw_bars if as_bars else draw_code)(sheet, form, text, place)
    for number in range(page.prose):
        sheet.insert_text((72, 320 + 16 * number), PROSE, fontsize=9)
    return document
