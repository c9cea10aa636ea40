"""Passages of a page's picture, lit for a person."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from PIL import Image, ImageChops, ImageDraw

from evalkit.documents.bundle import Box

_FOUND = (255, 226, 92)
_NEAR = (214, 120, 0)
_DASH = 8


def light(image: Image.Image, boxes: Iterable[Box], style: Literal["found", "near"]) -> Image.Image:
    """A copy of the image with the boxes (fractions 0..1) lit: filled yellow if found, dashed outline if only near."""
    page = image.convert("RGB")
    layer = Image.new("RGB", page.size, "white")
    draw = ImageDraw.Draw(layer)
    for box in boxes:
        x0, y0, x1, y1 = (side * length for side, length in zip(box, page.size * 2, strict=True))
        if style == "found":
            draw.rectangle((x0, y0, x1, y1), fill=_FOUND)
        else:
            _dashed(draw, x0, y0, x1, y1)
    # Multiplied, as with a marker pen: what is printed black stays black.
    return ImageChops.multiply(page, layer)


def _dashed(draw: ImageDraw.ImageDraw, x0: float, y0: float, x1: float, y1: float) -> None:
    for start in range(int(x0), int(x1), 2 * _DASH):
        for y in (y0, y1):
            draw.line((start, y, min(start + _DASH, x1), y), fill=_NEAR, width=2)
    for start in range(int(y0), int(y1), 2 * _DASH):
        for x in (x0, x1):
            draw.line((x, start, x, min(start + _DASH, y1)), fill=_NEAR, width=2)
