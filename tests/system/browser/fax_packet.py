"""A fax of 39 pages such as a records department sends; drawn, and nobody in it exists.

Two patients (the other one's discharge summary lies in the middle), a report that was sent twice, a page that went
through the machine upside down, a page written by hand, the empty back of a form; a cover sheet and all five types.
The machine's strip counts the sheets of the fax; each document's footer counts its own. Only the two pages that need
it are pictures: recognising 39 would be minutes of each test run.
"""

from __future__ import annotations

import json
import math
import random
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pymupdf
from builders import (
    GENOMIC,
    NOTE,
    OTHER,
    PATHOLOGY,
    PRIMARY,
    RADIOLOGY,
    TYPES,
    Json,
    answer,
    compose_single_type,
    evidence,
    mixture,
    segment,
)
from documents.drawing import HEIGHT, WIDTH
from documents.scanning import printed, show

import evalkit
from evalkit.pipeline import RunSummary
from evalkit.samples.manuscript import Manuscript
from evalkit.samples.pdf_drawing import draw_pdf

DOC_ID = "fax_packet"
STRIP = "MAR-04-2025 09:12   LINDEN VALLEY HOSPITAL RECORDS   555-0126"
INK = (0.1, 0.12, 0.35)


@dataclass(frozen=True)
class Piece:
    """One source document of the packet, as it truly is."""

    start_page: int
    end_page: int
    document_type: str
    flags: tuple[str, ...] = ()


TRUTH = (
    Piece(1, 1, OTHER),  # the cover sheet
    Piece(2, 5, NOTE),
    Piece(6, 8, PATHOLOGY),
    Piece(9, 15, GENOMIC),
    Piece(16, 17, RADIOLOGY),
    Piece(18, 18, NOTE),  # written by hand
    Piece(19, 22, NOTE, ("other_patient",)),
    Piece(23, 25, OTHER),  # a consent form and its empty back
    Piece(26, 28, PATHOLOGY, ("duplicate",)),
    Piece(29, 31, NOTE),
    Piece(32, 34, RADIOLOGY),
    Piece(35, 36, OTHER),  # a blood count
    Piece(37, 39, PATHOLOGY),
)
TOTAL_PAGES = 39
UPSIDE_DOWN = 12
BY_HAND = 18
BLANK = 25
SENT_TWICE = (TRUTH[2], TRUTH[8])

#: What another system made of it: page 16 still belongs to the report before it, the other patient's pages to the note
#: that was written by hand, and the consent form is a note. Quotes are of the page that they name.
CLAIMS: tuple[tuple[int, int, str, int, str, str], ...] = (
    (1, 1, OTHER, 1, "FAX COVER SHEET", "FAX COVER SHEET"),
    (2, 5, NOTE, 2, "Lump in the left breast, noticed three weeks ago.", "Lump"),
    (6, 8, PATHOLOGY, 7, "five cores of tan-yellow tissue, the longest 1.6 cm", "cores"),
    (9, 16, GENOMIC, 10, "The allele fraction of the PALB2 variant is 0.49", "allele fraction"),
    (17, 17, RADIOLOGY, 17, "Known malignancy of the left breast, 21 mm, BI-RADS 6.", "BI-RADS"),
    (18, 22, NOTE, 19, "Cough and fever for four days.", "fever"),
    (23, 25, NOTE, 23, "the operation, its risks and the alternatives were explained to me", "operation"),
    (26, 28, PATHOLOGY, 27, "five cores of tan-yellow tissue, the longest 1.6 cm", "cores"),
    (29, 31, NOTE, 29, "She sleeps poorly and is worried about her daughters.", "sleeps poorly"),
    (32, 34, RADIOLOGY, 33, "no nodule, no pleural effusion", "pleural effusion"),
    (35, 36, OTHER, 35, "Complete Blood Count", "Complete Blood Count"),
    (37, 39, PATHOLOGY, 37, "outside slides: invasive ductal carcinoma, grade 2", "carcinoma"),
)


@cache
def draw() -> bytes:
    """The PDF, the same bytes each time."""
    written = Manuscript.parse_toml(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    sent_twice, its_copy = (TRUTH.index(piece) for piece in SENT_TWICE)
    parts = [*written.part[:its_copy], written.part[sent_twice], *written.part[its_copy:]]
    clean = pymupdf.open(stream=draw_pdf(written.model_copy(update={"part": tuple(parts)})))
    packet = pymupdf.open()
    for number in range(1, TOTAL_PAGES + 1):
        sheet = packet.new_page(width=WIDTH, height=HEIGHT)
        if number == UPSIDE_DOWN:
            show(printed(lambda page: page.show_pdf_page(page.rect, clean, UPSIDE_DOWN - 1)).turned(180))(sheet)
        elif number == BY_HAND:
            show(printed(_scrawl))(sheet)
        elif number != BLANK:
            sheet.show_pdf_page(sheet.rect, clean, number - 1)
        sheet.insert_text((54, 18), f"{STRIP}   p. {number}/{TOTAL_PAGES}", fontname="cour", fontsize=7.5)
    packet.set_metadata({"title": written.title, "author": "no real patient"})
    return bytes(packet.tobytes(garbage=3, deflate=True, no_new_id=True))


def classification() -> Json:
    """The other system's answer, with nothing wrong in its arithmetic."""
    shares = dict.fromkeys(TYPES, 0.0)
    for start, end, kind, *_ in CLAIMS:
        shares[kind] += (end - start + 1) / TOTAL_PAGES
    made = answer(
        *(
            segment(index, start, end, kind, compose_single_type(kind, evidence(quote, page, anchor)))
            for index, (start, end, kind, page, quote, anchor) in enumerate(CLAIMS, 1)
        ),
        overall=max(shares, key=shares.__getitem__),
        shares=shares,
    )
    made["document_mixture"] = mixture(_rounded(shares), dict.fromkeys(TYPES, PRIMARY))
    return made


def run(folder: Path) -> RunSummary:
    """Draw the packet into the folder and let evalkit judge the other system's answer; ``folder/output`` is its output."""
    (folder / "classifications").mkdir()
    (folder / f"{DOC_ID}.pdf").write_bytes(draw())
    (folder / "classifications" / f"{DOC_ID}.json").write_text(json.dumps(classification()))
    return evalkit.run([folder / f"{DOC_ID}.pdf"], output=folder / "output", classifications=folder / "classifications")


def _rounded(shares: dict[str, float]) -> dict[str, float]:
    """To 4 decimals, exactly 1 together: the largest share takes what rounding left."""
    rounded = {kind: round(share, 4) for kind, share in shares.items()}
    largest = max(rounded, key=rounded.__getitem__)
    return rounded | {largest: round(rounded[largest] + 1 - sum(rounded.values()), 4)}


def _scrawl(page: Any) -> None:
    """Loops and strokes in lines, such as a hurried hand leaves; no letter is among them."""
    chance = random.Random(BY_HAND)
    for line in range(14):
        x, base = 60 + chance.uniform(0, 12), 110 + 42 * line + chance.uniform(-4, 4)
        while x < 500 - 60 * (line % 3 == 2):
            x = _word(page, chance, x, base) + chance.uniform(10, 16)
            base += chance.uniform(-1.5, 1.2)


def _word(page: Any, chance: random.Random, x: float, base: float) -> float:
    """One word's trace from ``x`` on; where it ends."""
    points = []
    for _ in range(chance.randint(2, 7)):
        height, width = chance.choice((7, 8, 9, 16, -10)), chance.uniform(6, 11)
        for step in range(8):
            turn = step / 8 * 2 * math.pi
            points.append((x + width * step / 8 - 3 * math.sin(turn), base - height * (1 - math.cos(turn)) / 2))
        x += width
    page.draw_polyline(points, color=INK, width=chance.uniform(0.9, 1.6))
    return x
