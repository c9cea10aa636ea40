"""Highlighted passages on the picture of a page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from PIL import Image, ImageChops, ImageDraw

from evalkit.documents.bundle import Box

_FOUND_COLOUR = (255, 226, 92)
_NEAR_COLOUR = (214, 120, 0)
_DASH_LENGTH = 8


def highlight_boxes(image: Image.Image, boxes: Iterable[Box], style: Literal["found", "near"]) -> Image.Image:
    """Return a copy of the page's image with highlighted boxes (fractions 0..1).

    Style ``found`` fills a box in yellow, for a passage that was found; ``near`` draws a dashed outline, for a passage
    that is only similar.
    """
    page_image = image.convert("RGB")
    highlight_layer = Image.new("RGB", page_image.size, "white")
    draw = ImageDraw.Draw(highlight_layer)
    for box in boxes:
        x0, y0, x1, y1 = (coordinate * length for coordinate, length in zip(box, page_image.size * 2, strict=True))
        if style == "found":
            draw.rectangle((x0, y0, x1, y1), fill=_FOUND_COLOUR)
        else:
            _draw_dashed_rectangle(draw, x0, y0, x1, y1)
    # Colours are multiplied, as with a marker pen, so that black print stays black.
    return ImageChops.multiply(page_image, highlight_layer)


def _draw_dashed_rectangle(draw: ImageDraw.ImageDraw, x0: float, y0: float, x1: float, y1: float) -> None:
    for start in range(int(x0), int(x1), 2 * _DASH_LENGTH):
        for y in (y0, y1):
            draw.line((start, y, min(start + _DASH_LENGTH, x1), y), fill=_NEAR_COLOUR, width=2)
    for start in range(int(y0), int(y1), 2 * _DASH_LENGTH):
        for x in (x0, x1):
            draw.line((x, start, x, min(start + _DASH_LENGTH, y1)), fill=_NEAR_COLOUR, width=2)
