"""Printed forms, filled by typewriter with the data of invented people."""

from __future__ import annotations

import random
from pathlib import Path

import pymupdf
from benchmarks.fax_pages.typesetting import FIRST, LAST, STREETS, TOWNS, invent_date, invent_digits


def invent_entry(rng: random.Random, width: float, longest: int) -> str:
    """An entry that fits a field of that width in points."""
    if longest or width < 60:
        return invent_digits(rng, min(longest or 3, max(int(width / 6), 1)))
    if width < 150:
        return rng.choice(
            (
                f"{rng.randint(10, 98000):,}.{invent_digits(rng, 2)}",
                invent_date(rng),
                f"{invent_digits(rng, 2)}-{invent_digits(rng, 7)}",
            )
        )
    return rng.choice(
        (
            f"{rng.choice(FIRST)} {rng.choice(LAST)}",
            f"{rng.randint(3, 9800)} {rng.choice(STREETS)}",
            rng.choice(TOWNS),
            f"{rng.choice(LAST)} Trust No. {rng.randint(100, 99999)}",
        )
    )


def open_form(path: Path, page_number: int, seed: int) -> pymupdf.Document:
    """One page of a PDF, its empty text fields filled and made part of the page."""
    rng = random.Random(seed)
    document = pymupdf.open(path)
    document.select([page_number - 1])
    for field in document[0].widgets():
        if field.field_type == pymupdf.PDF_WIDGET_TYPE_TEXT and not field.field_value and rng.random() < 0.8:
            field.field_value = invent_entry(rng, field.rect.width, field.text_maxlen)
            field.text_fontsize = min(9.0, field.rect.height * 0.75)
            field.update()
    document.bake()
    return document
