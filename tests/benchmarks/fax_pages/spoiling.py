"""What fax machines and cameras do to a page: one seeded function for each kind of picture.

``strength`` is 0 for a clean page; each page has its own mixture of the troubles, of which the strength is the common factor.
"""

from __future__ import annotations

import io
import random
from collections.abc import Callable

import numpy as np
import pymupdf
from benchmarks.fax_pages.typesetting import DEJAVU
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter, ImageFont

Grey = NDArray[np.float32]
STAMPS = ("RECEIVED", "COPY", "ENTERED", "SCANNED", "FAXED", "CONFIDENTIAL", "REVIEWED", "DUPLICATE")


def draw_askew(page: pymupdf.Page, dpi: tuple[float, float], degrees: float, shear: float) -> Image.Image:
    """Draw a page in grey, turned and sheared about its centre, on a sheet of its own size."""
    width, height = (round(side * one / 72) for side, one in zip((page.rect.width, page.rect.height), dpi, strict=True))
    matrix = pymupdf.Matrix(1, 0, shear, 1, 0, 0) * pymupdf.Matrix(degrees) * pymupdf.Matrix(dpi[0] / 72, dpi[1] / 72)
    drawn = page.get_pixmap(matrix=matrix, colorspace=pymupdf.csGRAY, alpha=False)
    picture = Image.frombytes("L", (drawn.width, drawn.height), drawn.samples)
    sheet = Image.new("L", (width, height), 255)
    sheet.paste(picture, ((width - drawn.width) // 2, (height - drawn.height) // 2))
    return sheet


def press_stamps(
    picture: Image.Image, rng: random.Random, count: int, ink: int, squash: float = 1.0, foot: int = 0
) -> Image.Image:
    """Press office stamps onto the picture, over the text.

    ``squash`` is the vertical share of a square pixel, ``foot`` the lowest row with which a stamp may begin.
    """
    result = np.asarray(picture)
    for _ in range(count):
        font = ImageFont.truetype(str(DEJAVU / "DejaVuSans-Bold.ttf"), rng.randint(34, 58))
        text = rng.choice(STAMPS)
        wide, high = round(font.getlength(text)) + 40, font.size + 36
        stamp = Image.new("L", (wide, high), 0)
        pen = ImageDraw.Draw(stamp)
        pen.text((20, 12), text, font=font, fill=255)
        pen.rectangle((3, 3, wide - 4, high - 4), outline=255, width=rng.choice((3, 5)))
        stamp = stamp.rotate(rng.uniform(-24, 24), expand=True, resample=Image.Resampling.BILINEAR)
        stamp = stamp.resize((stamp.width, max(round(stamp.height * squash), 1)))
        layer = Image.new("L", picture.size, 0)
        place = (
            rng.randint(0, max(picture.width - stamp.width, 1)),
            rng.randint(picture.height // 6, foot or picture.height * 4 // 5),
        )
        layer.paste(stamp, place)
        result = np.minimum(result, 255 - (255 - ink) * (np.asarray(layer) / 255.0)).astype(np.uint8)
    return Image.fromarray(result)


def make_uneven(noise: np.random.Generator, shape: tuple[int, int], cells: int) -> Grey:
    """A smooth field between 0 and 1, as of a worn drum or a lamp."""
    coarse = Image.fromarray((noise.random((cells, cells)) * 255).astype(np.uint8))
    return np.asarray(coarse.resize((shape[1], shape[0]), Image.Resampling.BICUBIC), dtype=np.float32) / 255


def soften(ink: Grey, across: float, down: float) -> Grey:
    """Blur with a width of its own across and down."""
    picture = Image.fromarray(np.clip(ink, 0, 255).astype(np.uint8))
    return np.asarray(picture.filter(ImageFilter.GaussianBlur((across, down))), dtype=np.float32)


def send_by_fax(page: pymupdf.Page, strength: float, seed: int, *, fine: bool) -> Image.Image:
    """Scan a page with 204 × 196 dots an inch, or 204 × 98, in black and white."""
    rng, noise = random.Random(seed), np.random.default_rng(seed)
    shares = {
        name: strength * rng.uniform(0.4, 1.6)
        for name in ("tilt", "skew", "light", "blur", "noise", "specks", "lines", "stamps")
    }
    squash = 1.0 if fine else 0.5
    picture = draw_askew(
        page,
        (204, 196 * squash),
        rng.choice((-1, 1)) * 1.8 * shares["tilt"],
        rng.choice((-1, 1)) * 0.02 * shares["skew"],
    )
    picture = press_stamps(picture, rng, round(2.2 * shares["stamps"]), rng.randint(60, 130), squash)
    ink = 255 - np.asarray(picture, dtype=np.float32)
    shape = (ink.shape[0], ink.shape[1])
    light = max(1 - 0.45 * shares["light"], 0.25)
    ink *= light * (1 - 0.35 * min(shares["light"], 1.6) * make_uneven(noise, shape, 6))
    ink = soften(ink, 0.8 * shares["blur"], 0.8 * shares["blur"] * squash)
    ink += noise.standard_normal(shape, dtype=np.float32) * 34 * shares["noise"]
    black = ink > 128 * (0.35 + 0.65 * light)
    specks = noise.random(shape) < 0.0035 * shares["specks"]
    specks[1:] |= specks[:-1] & (noise.random((shape[0] - 1, shape[1])) < 0.5)
    specks[:, 1:] |= specks[:, :-1] & (noise.random((shape[0], shape[1] - 1)) < 0.6)
    black |= specks
    black &= noise.random(shape) >= 0.02 * shares["specks"]
    for _ in range(round(9 * squash * shares["lines"])):
        row = rng.randrange(shape[0] - 3)
        black[row] = False if rng.random() < 0.5 else black[row - 1]
    for _ in range(round(6 * shares["lines"])):
        row = rng.randrange(shape[0] - 40)
        end = row + rng.randint(1, 30)
        black[row:end] = np.roll(black[row:end], rng.choice((-2, -1, 1, 2)), axis=1)
    if shares["lines"] > 0.9:
        column = rng.randrange(40, shape[1] - 40)
        black[:, column : column + 2] |= noise.random((shape[0], 1)) < 0.8
    return Image.fromarray(~black)


def solve_perspective(target: list[tuple[float, float]], source: list[tuple[float, float]]) -> list[float]:
    """The eight numbers with which Pillow takes each of ``target``'s corners from ``source``."""
    rows: list[list[float]] = []
    for (x, y), (u, v) in zip(target, source, strict=True):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
    values = [one for pair in source for one in pair]
    return [float(one) for one in np.linalg.solve(np.array(rows), np.array(values))]


def take_photo(page: pymupdf.Page, strength: float, seed: int) -> Image.Image:
    """Photograph a page on a desk: perspective, uneven light, blur, noise, JPEG."""
    rng, noise = random.Random(seed), np.random.default_rng(seed)
    shares = {
        name: strength * rng.uniform(0.4, 1.6)
        for name in ("bend", "light", "blur", "noise", "stamps", "jpeg", "tilt", "specks")
    }
    picture = draw_askew(page, (170, 170), rng.choice((-1, 1)) * 1.8 * shares["tilt"], 0)
    picture = press_stamps(picture, rng, round(1.8 * shares["stamps"]), rng.randint(70, 140))
    wide, high = picture.size
    reach = 0.045 * (0.15 + shares["bend"])
    source: list[tuple[float, float]] = [(0, 0), (wide, 0), (wide, high), (0, high)]
    signs = ((1, 1), (-1, 1), (-1, -1), (1, -1))
    target = [
        (x + sx * (0.015 + rng.random() * reach) * wide, y + sy * (0.015 + rng.random() * reach) * high)
        for (x, y), (sx, sy) in zip(source, signs, strict=True)
    ]
    desk = rng.choice((60, 95, 140))
    picture = picture.transform(
        picture.size,
        Image.Transform.PERSPECTIVE,
        solve_perspective(target, source),
        Image.Resampling.BICUBIC,
        fillcolor=desk,
    )
    paper = np.asarray(picture, dtype=np.float32)
    shape = (paper.shape[0], paper.shape[1])
    ink = (255 - paper) * max(1 - 0.4 * shares["light"], 0.3)
    lamp = 1 - 0.55 * min(0.2 + shares["light"], 1.5) * make_uneven(noise, shape, rng.choice((2, 3)))
    seen = soften((245 - ink) * np.clip(lamp, 0.2, 1), 1.15 * shares["blur"], 1.15 * shares["blur"])
    seen += noise.standard_normal(shape, dtype=np.float32) * (2 + 20 * shares["noise"])
    seen[noise.random(shape) < 0.0015 * shares["specks"]] = 50
    grey = np.clip(seen, 0, 255)
    tint = np.stack([grey, grey * rng.uniform(0.94, 1), grey * rng.uniform(0.82, 0.97)], axis=-1).astype(np.uint8)
    stream = io.BytesIO()
    Image.fromarray(tint).save(stream, "JPEG", quality=max(round(82 - 40 * shares["jpeg"]), 18))
    return Image.open(stream)


SPOIL: dict[str, Callable[[pymupdf.Page, float, int], Image.Image]] = {
    "fine": lambda page, strength, seed: send_by_fax(page, strength, seed, fine=True),
    "standard": lambda page, strength, seed: send_by_fax(page, strength, seed, fine=False),
    "photo": take_photo,
}


def wrap_picture(picture: Image.Image, width: float, height: float) -> bytes:
    """A PDF of one page that shows the picture and has no text."""
    stream = io.BytesIO()
    if picture.format == "JPEG":
        picture.save(stream, "JPEG", quality="keep")
    else:
        picture.save(stream, "PNG")
    with pymupdf.open() as document:
        page = document.new_page(width=width, height=height)
        page.insert_image(page.rect, stream=stream.getvalue(), keep_proportion=False)
        data: bytes = document.tobytes(no_new_id=True)
    return data
