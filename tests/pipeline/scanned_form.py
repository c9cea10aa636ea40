"""A scan of two pages, whose tick boxes and stamp only a picture shows, and a model that reads them there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pymupdf
import pytest
from builders import NOTE, OTHER, answer, compose_single_type, segment
from documents.drawing import draw_together, lines
from documents.scanning import printed, scan
from servers.gemini import Call, GeminiServer

import evalkit

FORM = [
    "AUTHORIZATION TO RELEASE MEDICAL RECORDS",
    "",
    "I authorize the hospital to release the records of my treatment",
    "to the clinic that is named below. This form is valid for one year",
    "and may be revoked in writing at any time.",
    "",
    "Records to be released:",
]
NOTE_PAGE = [
    "PROGRESS NOTE",
    "",
    "Chief complaint: breast lump noticed two weeks ago.",
    "The patient was seen today. On examination there is a mobile mass in",
    "the upper outer quadrant of the left breast. No axillary nodes are felt.",
    "",
    "Assessment and plan: mammography and return in six weeks.",
]
LABELS = ("Pathology reports only", "Radiology reports only", "All records of the treatment")
STAMPED = "RECEIVED MAR 05 2025"


def tick_boxes(page: Any) -> None:
    """Three boxes; a pen has ticked the last."""
    for number, label in enumerate(LABELS):
        x, y = 90, 250 + 26 * number
        page.draw_rect((x, y, x + 11, y + 11), width=1)
        page.insert_text((x + 20, y + 10), label, fontsize=12)
    page.draw_polyline([(91, 306), (96, 312), (104, 296)], width=1.6)


def stamp(page: Any) -> None:
    """A stamp, tilted so far that no engine reads it."""
    paper = printed(
        lambda sheet: sheet.draw_rect((4, 4, 196, 66), width=2.5),
        lines(["RECEIVED", "MAR 05 2025"], x=24, y=29, size=19, font="hebo"),
        width=200,
        height=70,
        dpi=200,
    )
    image = paper.image.rotate(32, expand=True, fillcolor=255)
    page.insert_image((300, 420, 500, 420 + 200 * image.height / image.width), pixmap=_to_pixmap(image))


def _to_pixmap(image: Any) -> Any:
    return pymupdf.Pixmap(pymupdf.csGRAY, image.width, image.height, image.tobytes(), False)


def write_scan(folder: Path) -> Path:
    """The scan, as ``release.pdf``."""
    drawn = [draw_together(lines(FORM, size=12), tick_boxes, stamp), lines(NOTE_PAGE, size=12)]
    path = folder / "release.pdf"
    path.write_bytes(scan(*(printed(draw, dpi=200) for draw in drawn)))
    return path


def classify(call: Call) -> str:
    """What a model that sees the pictures would say; a blind one says nothing of them."""
    if call.role != "classifier":
        return '{"findings": []}'
    words = [f"[x] {LABELS[2]}", STAMPED] if call.images else []
    seen = [{"page": 1, "words_in_picture": quote, "anchors_found": []} for quote in words]
    printed_title = {
        "page": 1,
        "paragraph": 1,
        "first_words": "AUTHORIZATION TO RELEASE",
        "last_words": "MEDICAL RECORDS",
    }
    complaint = {"page": 2, "paragraph": None, "first_words": "Chief complaint", "last_words": "two weeks ago"}
    return json.dumps(
        answer(
            segment(1, 1, 1, OTHER, compose_single_type(OTHER, printed_title, *seen)),
            segment(2, 2, 2, NOTE, compose_single_type(NOTE, complaint)),
            overall=NOTE,
            shares={NOTE: 0.5, OTHER: 0.5},
        )
    )


def run_with_model(model: str, source: Path, output: Path, **options: Any) -> list[Call]:
    """Run the scan with a scripted model; what the model was asked."""
    with GeminiServer(classify) as server, pytest.MonkeyPatch.context() as environment:
        environment.setenv("EVALKIT_GEMINI_BASE_URL", server.url)
        environment.setenv("GEMINI_API_KEY", "key-of-the-test")
        run = evalkit.run([source], output=output, model=model, **options)
        assert [document.error for document in run.documents] == [None]
        return list(server.calls)
