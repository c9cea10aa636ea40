"""Print on paper, scanned: tilted, turned, noisy or coarse, and where each word stands on the picture all the while."""

from __future__ import annotations

import io
import math
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pymupdf
import pytest
from PIL import Image

from .drawing import HEIGHT, WIDTH, pdf

needs_tesseract = pytest.mark.skipif(not shutil.which("tesseract"), reason="tesseract is not installed")

NOTE = [
    "The specimen was received fresh in the department and was",
    "fixed overnight before it was cut. Sections show an invasive",
    "tumour of the left breast with pushing margins, and a brisk",
    "infiltrate of lymphocytes around it. No vessel is seen to be",
    "invaded in any of the twelve sections. Stains were done on",
    "two of the blocks that hold most of the tumour.",
]

Point = tuple[float, float]
Box = tuple[float, float, float, float]
"""x0, y0, x1, y1 as fractions 0..1 of the page as it is displayed."""


@dataclass(frozen=True)
class Printed:
    """One word, and the line of print it is in."""

    text: str
    line: int
    corners: tuple[Point, ...]
    """Fractions 0..1 of the picture."""


@dataclass(frozen=True)
class Paper:
    """A picture of a page."""

    image: Image.Image
    """Grey."""
    width: float
    """Points."""
    height: float
    words: tuple[Printed, ...]

    def tilted(self, degrees: float) -> Paper:
        """Turned clockwise on the glass by a few degrees; what leaves the glass is lost."""
        image = self.image.rotate(-degrees, Image.Resampling.BICUBIC, fillcolor=255)
        cosine, sine = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))

        def move(x: float, y: float) -> Point:
            right, down = (x - 0.5) * self.width, (y - 0.5) * self.height
            return (
                0.5 + (right * cosine - down * sine) / self.width,
                0.5 + (right * sine + down * cosine) / self.height,
            )

        return self._moved(image, move)

    def turned(self, degrees: int) -> Paper:
        """Turned clockwise by quarter turns."""
        paper = self
        for _ in range(degrees // 90 % 4):
            image = paper.image.transpose(Image.Transpose.ROTATE_270)
            turned = paper._moved(image, lambda x, y: (1 - y, x))
            paper = replace(turned, width=paper.height, height=paper.width)
        return paper

    def noisy(self, sigma: float = 20, seed: int = 1) -> Paper:
        """With grain of so many levels; ``seed`` makes another grain."""
        grain = np.random.default_rng(seed).normal(0, sigma, (self.image.height, self.image.width))
        return replace(self, image=Image.fromarray(np.clip(np.asarray(self.image) + grain, 0, 255).astype(np.uint8)))

    def coarse(self, dpi: int) -> Paper:
        """Scanned with so few dots per inch."""
        size = (round(self.width / 72 * dpi), round(self.height / 72 * dpi))
        return replace(self, image=self.image.resize(size, Image.Resampling.BOX))

    def places(self, phrase: str) -> list[Box]:
        """Where the phrase stands, one box for each line of print it is on."""
        wanted = phrase.split()
        texts = [word.text for word in self.words]
        start = next(at for at in range(len(texts)) if texts[at : at + len(wanted)] == wanted)
        lines: dict[int, list[Point]] = {}
        for word in self.words[start : start + len(wanted)]:
            lines.setdefault(word.line, []).extend(word.corners)
        return [_around(corners) for corners in lines.values()]

    def _moved(self, image: Image.Image, move: Callable[[float, float], Point]) -> Paper:
        words = tuple(replace(word, corners=tuple(move(x, y) for x, y in word.corners)) for word in self.words)
        return replace(self, image=image, words=words)


def printed(*draw: Callable[[Any], object], width: float = WIDTH, height: float = HEIGHT, dpi: int = 150) -> Paper:
    """What is drawn on one page, as a picture; its words are placed by another program than the reader."""
    with pymupdf.open(stream=pdf(lambda page: [one(page) for one in draw], width=width, height=height)) as document:
        page = document[0]
        words = tuple(
            Printed(
                text,
                1000 * block + line,
                tuple((x / width, y / height) for x, y in ((x0, y0), (x1, y0), (x1, y1), (x0, y1))),
            )
            for x0, y0, x1, y1, text, block, line, _ in page.get_text("words")
        )
        pixmap = page.get_pixmap(dpi=dpi, colorspace=pymupdf.csGRAY)
        return Paper(Image.frombytes("L", (pixmap.width, pixmap.height), pixmap.samples), width, height, words)


def png(image: Image.Image) -> bytes:
    """The picture as a file."""
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def show(paper: Paper, area: Box | None = None) -> Callable[[Any], object]:
    """Draw the picture on the whole page, or on an area in points of it."""
    return lambda page: page.insert_image(area or page.rect, stream=png(paper.image))


def layer(texts: Sequence[str], x: float = 72, y: float = 120, size: float = 11) -> Callable[[Any], object]:
    """Write invisibly, as copiers do over what they have scanned."""
    return lambda page: [
        page.insert_text((x, y + number * 1.3 * size), text, fontsize=size, render_mode=3)
        for number, text in enumerate(texts)
    ]


def scan(*papers: Paper, rotation: int = 0) -> bytes:
    """A PDF with one page for each picture; ``rotation`` is its ``/Rotate``, by which each is displayed turned."""
    document = pymupdf.open()
    for paper in papers:
        page = document.new_page(width=paper.width, height=paper.height)
        show(paper)(page)
        page.set_rotation(rotation)
    return bytes(document.tobytes())


def assert_near(found: Sequence[Sequence[float]], true: Sequence[Box], within: float = 0.03) -> None:
    """Together the boxes cover the true ones and nothing else, but for a small part of the page at each side."""
    lines: dict[Box, list[Sequence[float]]] = {truth: [] for truth in true}
    for box in found:
        truth = min(true, key=lambda truth: _beyond(box, truth))
        lines[truth].append(box)
    for truth, boxes in lines.items():
        assert boxes, f"nothing is lit at {truth}"
        hull = _around([corner for x0, y0, x1, y1 in boxes for corner in ((x0, y0), (x1, y1))])
        assert all(abs(one - other) <= within for one, other in zip(hull, truth, strict=True)), (hull, truth)


def _beyond(box: Sequence[float], truth: Box) -> float:
    """How far the box reaches out of the true one."""
    return max(truth[0] - box[0], truth[1] - box[1], box[2] - truth[2], box[3] - truth[3])


def _around(corners: Sequence[Point]) -> Box:
    across, down = zip(*corners, strict=True)
    return min(across), min(down), max(across), max(down)
