"""Pages as a fax machine leaves them: no text layer, 200 dpi, a header line, a slight skew, noise."""

from __future__ import annotations

import io
import random

import numpy as np
import pymupdf
from PIL import Image, ImageDraw, ImageFilter, ImageFont

DPI = 200


def send(pdf: pymupdf.Document, header: str, rng: random.Random, gray: bool) -> pymupdf.Document:
    """The document as received; `header` holds {page} and {pages}."""
    received = pymupdf.open()
    noise = np.random.default_rng(rng.getrandbits(32))
    skew = rng.uniform(-1, 1)
    specks = rng.uniform(0.0002, 0.0015)
    font = ImageFont.load_default(size=24)
    for at, page in enumerate(pdf, start=1):
        seen = page.get_pixmap(dpi=DPI, colorspace=pymupdf.csGRAY)
        picture = Image.frombytes("L", (seen.width, seen.height), seen.samples)
        picture = picture.rotate(skew + rng.uniform(-0.15, 0.15), resample=Image.Resampling.BILINEAR, fillcolor=255)
        picture = picture.filter(ImageFilter.GaussianBlur(rng.uniform(0.3, 0.7)))
        ImageDraw.Draw(picture).text(
            (70, 22), header.format(page=f"{at:03}", pages=f"{len(pdf):03}"), fill=0, font=font
        )
        dots = np.asarray(picture, dtype=np.float32) + noise.standard_normal(
            (picture.height, picture.width), dtype=np.float32
        ) * (14 if gray else 20)
        dots[noise.random(dots.shape, dtype=np.float32) < specks] = 0
        if not gray and rng.random() < 0.3:
            dots[:, rng.randrange(60, picture.width - 60)] = 40
        store = io.BytesIO()
        if gray:
            Image.fromarray(np.clip(dots, 0, 255).astype(np.uint8)).save(store, "JPEG", quality=55)
        else:
            Image.fromarray(((dots > 150) * 255).astype(np.uint8)).convert("1", dither=Image.Dither.NONE).save(
                store, "PNG"
            )
        leaf = received.new_page(width=page.rect.width, height=page.rect.height)
        leaf.insert_image(leaf.rect, stream=store.getvalue())
    return received
