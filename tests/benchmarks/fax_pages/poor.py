"""Pages whose trouble is to be mastered or named, and look-alikes with which nothing is wrong.

A troubled page passes if its words are found (and in order, where columns are the trouble) or if ``Page.problems`` names the
trouble; handwriting must be named. A look-alike passes if its words are found and ``Page.problems`` is empty.
"""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

import numpy as np
import pymupdf
from benchmarks.fax_pages.listing import read_texts
from benchmarks.fax_pages.scoring import split_words
from benchmarks.fax_pages.spoiling import draw_askew, make_uneven, press_stamps, soften, wrap_picture
from benchmarks.fax_pages.typesetting import (
    ANALYTES,
    HEIGHT,
    HOUSES,
    PLACES,
    SIGNS,
    WIDTH,
    break_lines,
    invent_date,
    invent_digits,
    open_font,
    typeset,
)
from PIL import Image, ImageDraw
from rich.console import Console
from rich.table import Table

from evalkit.documents.bundle import Page

_RECORDS = {
    "open": ("dev_cn_003", "dev_cn_011", "dev_ra_007", "dev_ra_012", "dev_cn_020", "dev_cn_031"),
    "sealed": ("dev_cn_084", "dev_cn_091", "dev_cn_097", "dev_pa_003", "dev_cn_103", "dev_pa_006"),
}
_WRITING = ("handwrit", "hand-writ", "written by hand", "script")
_LIGHT = ("light", "faint", "pale", "weak")


@dataclass(frozen=True)
class PoorPage:
    """A page with a trouble, or a look-alike of one, and what must be true of its reading."""

    half: str
    trouble: str
    picture: Image.Image
    truth: str
    recall: float | None
    """Share of the words that suffices; None if only naming the trouble does."""
    names: tuple[str, ...] = ()
    """Beginnings of words that name the trouble; empty for a look-alike, of which nothing may be said."""
    in_order: bool = False

    def judge(self, page: Page) -> tuple[float, float, bool]:
        """Word recall, share of words in order, and whether the page passes."""
        expected, found = split_words(self.truth), split_words(page.text)
        recall = (Counter(expected) & Counter(found)).total() / max(len(expected), 1)
        order = SequenceMatcher(None, expected, found, autojunk=False).ratio() if self.in_order else 1.0
        is_read = self.recall is not None and recall >= self.recall and order >= (0.85 if self.in_order else 0)
        said = " ".join((*page.problems, page.unread or "")).lower()
        is_named = any(re.search(rf"\b{name}", said) for name in self.names)
        return recall, order, (is_read or is_named) if self.names else (is_read and not page.problems)


def find_words(page: pymupdf.Page) -> str:
    """The words of the page's text layer."""
    return " ".join(word[4] for word in page.get_text("words"))


def write_by_hand(
    picture: Image.Image, rng: random.Random, start: tuple[float, float], width: float, height: float, ink: int
) -> None:
    """Write a line of joined letters, that mean nothing, with an unsteady pen."""
    pen = ImageDraw.Draw(picture)
    x, y = start
    end = x + width
    slant = rng.uniform(0.25, 0.5)
    while x < end - height:
        points: list[tuple[float, float]] = []
        for _ in range(rng.randint(3, 9)):
            form = rng.choice(("arch", "arch", "loop", "bowl", "tall", "tail"))
            reach = (
                {"arch": 1.0, "loop": 1.0, "bowl": 1.0, "tall": 2.1, "tail": -1.3}[form]
                * height
                * rng.uniform(0.8, 1.15)
            )
            step = height * rng.uniform(0.55, 0.9)
            turns = {"arch": 0.0, "loop": 0.45, "bowl": 0.7, "tall": 0.5, "tail": 0.5}[form]
            for tick in range(15):
                part = tick / 14
                rise = reach * math.sin(math.pi * part)
                along = step * part + turns * step * math.sin(2 * math.pi * part)
                points.append((x + along + slant * rise + rng.gauss(0, 0.5), y - rise + rng.gauss(0, 0.5)))
            x += step
            y += rng.gauss(0, height * 0.03)
            if x > end:
                break
        pen.line(points, fill=ink, width=max(round(height / 7), 2), joint="curve")
        if rng.random() < 0.25:
            pen.line((x - height, y - 1.4 * height, x - height * 0.2, y - 1.5 * height), fill=ink, width=2)
        x += height * rng.uniform(0.5, 1.0)


def make_columns(text: str, rng: random.Random, size: float, gap: float) -> pymupdf.Document:
    """Prose in two columns, as in a discharge leaflet."""
    document = pymupdf.open()
    page = document.new_page(width=WIDTH, height=HEIGHT)
    font = open_font(rng.choice(("tiro", "helv")))
    width = (WIDTH - 100 - gap) / 2
    lines = break_lines(text.translate(SIGNS), font, size, width)
    rows = min(-(-len(lines) // 2), 48)
    for column in range(2):
        writer = pymupdf.TextWriter(page.rect)
        for row, line in enumerate(lines[column * rows : (column + 1) * rows]):
            writer.append((50 + column * (width + gap), 90 + row * size * 1.4), line, font=font, fontsize=size)
        writer.write_text(page)
    return document


def make_values(rng: random.Random, *, units: bool) -> pymupdf.Document:
    """A list of values in two blocks with a wide gap: its rows are read across."""
    document = pymupdf.open()
    page = document.new_page(width=WIDTH, height=HEIGHT)
    font = open_font(rng.choice(("helv", "DejaVuSans")))
    writer = pymupdf.TextWriter(page.rect)
    writer.append((60, 70), f"{rng.choice(PLACES)} {rng.choice(HOUSES)} - cumulative report", font=font, fontsize=12)
    for row in range(24):
        name, unit, low, high, places, _ = ANALYTES[row % len(ANALYTES)]
        y = 110 + row * 21
        writer.append((60, y), f"{name} {invent_date(rng)}", font=font, fontsize=10.5)
        writer.append(
            (390, y), f"{rng.uniform(low, high):.{places}f} {unit if units else ''}".strip(), font=font, fontsize=10.5
        )
    writer.write_text(page)
    return document


def make_form(rng: random.Random, *, boxes: bool) -> tuple[pymupdf.Document, list[tuple[float, float, float]]]:
    """An empty printed form; with it the place and width of each line to write on."""
    document = pymupdf.open()
    page = document.new_page(width=WIDTH, height=HEIGHT)
    font, bold = open_font("helv"), open_font("hebo")
    writer = pymupdf.TextWriter(page.rect)
    title = rng.choice(("Pre-admission questionnaire", "Home medication record", "Request for consultation"))
    writer.append((60, 62), f"{rng.choice(PLACES)} {rng.choice(HOUSES)}", font=bold, fontsize=13)
    writer.append((60, 82), f"{title}   Form {rng.randint(1000, 9999)}", font=font, fontsize=11)
    labels = ["Family name", "Given names", "Date of birth", "Reason for admission", "Present medicines", "Allergies",
              "Previous operations", "Smoking, packs a day", "Alcohol", "Next of kin", "Telephone", "Other remarks"]  # fmt: skip
    rng.shuffle(labels)
    places = []
    for row, label in enumerate(labels):
        y = 124 + row * 50
        writer.append((60, y), label, font=font, fontsize=9.5)
        if boxes:
            page.draw_rect(pymupdf.Rect(60, y + 5, WIDTH - 60, y + 33), width=0.7)
        else:
            page.draw_line((190, y + 26), (WIDTH - 60, y + 26), width=0.6)
        places.append((70.0 if boxes else 195.0, y + 25, WIDTH - 140 if boxes else WIDTH - 270))
    writer.write_text(page)
    return document, places


def make_italic(text: str, rng: random.Random, font_name: str) -> pymupdf.Document:
    """A letter that is printed in italics throughout."""
    document = pymupdf.open()
    page = document.new_page(width=WIDTH, height=HEIGHT)
    font = open_font(font_name)
    writer = pymupdf.TextWriter(page.rect)
    lines = [f"{rng.choice(PLACES)} {rng.choice(HOUSES)}", f"{invent_date(rng)}   Our ref. {invent_digits(rng, 6)}"]
    for row, line in enumerate([*lines, *break_lines(text.translate(SIGNS), font, 11, WIDTH - 140)[:30]]):
        writer.append((70, 80 + row * 17), line, font=font, fontsize=11)
    writer.write_text(page)
    return document


def sign(picture: Image.Image, rng: random.Random, dpi: int) -> Image.Image:
    """Put a signature near the foot of the page, where nothing is printed."""
    write_by_hand(picture, rng, (0.55 * picture.width, picture.height - 0.75 * dpi), 1.9 * dpi, 0.11 * dpi, 30)
    return picture


def fade(picture: Image.Image, seed: int, ink: float, roughness: float) -> Image.Image:
    """Print that has only a part of its ink, on rough paper."""
    noise = np.random.default_rng(seed)
    grey = np.asarray(picture, dtype=np.float32)
    shape = (grey.shape[0], grey.shape[1])
    uneven = 0.55 + 0.45 * make_uneven(noise, shape, 5) if roughness else 1.0
    result = 250 - (255 - grey) * ink * uneven + noise.standard_normal(shape, dtype=np.float32) * roughness
    return Image.fromarray(np.clip(result, 0, 255).astype(np.uint8))


def shade(picture: Image.Image, depth: float, edge: float, slope: float) -> Image.Image:
    """The shadow of a hand or a head over a part of a photographed page."""
    grey = np.asarray(picture, dtype=np.float32)
    across = np.arange(grey.shape[1], dtype=np.float32)[None, :] / grey.shape[1]
    down = np.arange(grey.shape[0], dtype=np.float32)[:, None] / grey.shape[0]
    shadow = 1 / (1 + np.exp(-(across + slope * down - edge) * 22))
    lit = soften((235 - 0.8 * (255 - grey)) * (1 - depth * shadow), 1.0, 1.0)
    lit += np.random.default_rng(7).standard_normal(grey.shape, dtype=np.float32) * 5
    return Image.fromarray(np.clip(lit, 0, 255).astype(np.uint8))


def make_pages(half: str) -> Iterator[PoorPage]:
    """The pages of one half: nine troubles, seven look-alikes."""
    first = half == "open"
    rng = random.Random(f"poor {half}")
    seed = 4100 if first else 7300
    records = read_texts()
    texts = [records[name][1] for name in _RECORDS[half]]
    dpi = 200 if first else 150

    def draw(page: pymupdf.Page, degrees: float = 0.0) -> Image.Image:
        return draw_askew(page, (dpi, dpi), degrees, 0)

    sheets = [typeset(text, seed + number) for number, text in enumerate(texts)]
    pages = [sheet[0] for sheet in sheets]
    truths = [find_words(page) for page in pages]

    for degrees in (90, 180) if first else (270, 180):
        picture = draw(pages[degrees // 90 % 2]).rotate(degrees, expand=True)
        yield PoorPage(
            half,
            f"turned by {degrees}",
            picture,
            truths[degrees // 90 % 2],
            0.9,
            ("turn", "rotat", "upside", "sideways"),
        )
    skew = 8.0 if first else -7.5
    yield PoorPage(
        half, f"tilted by {skew}", draw(pages[2], skew), truths[2], 0.9, ("tilt", "skew", "askew", "crooked")
    )
    columns = make_columns(" ".join(texts[1:3]), rng, 9.5 if first else 10.5, 26 if first else 18)
    yield PoorPage(half, "two columns", draw(columns[0]), find_words(columns[0]), 0.9, ("column",), in_order=True)
    depths = sorted(word[3] for word in pages[3].get_text("words"))
    foot = max(round(depths[len(depths) * 17 // 20] * dpi / 72) - 60, HEIGHT * dpi // 72 // 5)
    stamped = press_stamps(draw(pages[3]), rng, 11 if first else 9, 15 if first else 40, foot=int(foot))
    yield PoorPage(half, "stamps over text", stamped, truths[3], 0.97, ("stamp",))
    light = fade(draw(pages[4]), seed, 0.2 if first else 0.26, 13 if first else 16)
    yield PoorPage(half, "light print", light, truths[4], 0.93, _LIGHT)
    note = Image.new("L", (round(WIDTH * dpi / 72), round(HEIGHT * dpi / 72)), 250)
    for row in range(17 if first else 13):
        height = dpi * (0.085 if first else 0.12)
        width = rng.uniform(4.5, 6.6) * dpi
        write_by_hand(note, rng, (0.8 * dpi, (1.2 + row * (0.5 if first else 0.66)) * dpi), width, height, 25)
    yield PoorPage(half, "handwriting", note, "", None, _WRITING)
    form, places = make_form(rng, boxes=first)
    written = draw(form[0])
    for x, y, width in places:
        write_by_hand(
            written, rng, (x * dpi / 72, y * dpi / 72), width * dpi / 72 * rng.uniform(0.6, 1.0), dpi * 0.085, 40
        )
    yield PoorPage(half, "handwriting on a printed form", written, find_words(form[0]), None, _WRITING)
    shadow = shade(draw(pages[5], 0.6), 0.72 if first else 0.8, 0.75 if first else 1.0, 0.3 if first else 0.9)
    yield PoorPage(half, "photograph with a shadow", shadow, truths[5], 0.93, ("shadow", "uneven", "dark", *_LIGHT))

    signed = sign(draw(pages[0]), rng, dpi)
    yield PoorPage(half, "sound: a letter with a signature", signed, truths[0], 0.93)
    italic = make_italic(texts[1], rng, "tiit" if first else "heit")
    yield PoorPage(half, "sound: printed in italics", draw(italic[0]), find_words(italic[0]), 0.93)
    empty, _ = make_form(rng, boxes=not first)
    yield PoorPage(half, "sound: an empty form", draw(empty[0]), find_words(empty[0]), 0.9)
    grey = fade(draw(pages[2]), seed, 0.62 if first else 0.55, 0)
    yield PoorPage(half, "sound: grey print, well legible", grey, truths[2], 0.93)
    yield PoorPage(half, "sound: tilted by a degree", draw(pages[3], 1.0 if first else -0.8), truths[3], 0.93)
    margin = draw(pages[4])
    stamp = Image.new("L", (round(2.9 * dpi), round(0.9 * dpi)), 255)
    margin.paste(press_stamps(stamp, random.Random(seed), 1, 60), (round(4.9 * dpi), round(9.7 * dpi)))
    yield PoorPage(half, "sound: a stamp beside the text", margin, truths[4], 0.93)
    values = make_values(rng, units=first)
    yield PoorPage(half, "sound: values with a wide gap", draw(values[0]), find_words(values[0]), 0.9, in_order=True)


def run_poor_pages(halves: Sequence[str], folder: Path, recognise: Callable[[Path], Page], console: Console) -> None:
    """Draw and read the pages; print what was asked of each and whether it holds."""
    table = Table("half", "page", "word recall", "in order", "asked", "passes", "quality", "said")
    passed = total = 0
    for half in halves:
        for number, poor in enumerate(make_pages(half), 1):
            path = folder / half / f"poor-{number}.pdf"
            path.parent.mkdir(parents=True, exist_ok=True)
            wide, high = (WIDTH, HEIGHT) if poor.picture.height >= poor.picture.width else (HEIGHT, WIDTH)
            path.write_bytes(wrap_picture(poor.picture, wide, high))
            page = recognise(path)
            recall, order, passes = poor.judge(page)
            passed, total = passed + passes, total + 1
            asked = (
                "named"
                if poor.recall is None
                else f"≥ {poor.recall}" + (" or named" if poor.names else ", nothing said")
            )
            table.add_row(
                half, poor.trouble, f"{recall:.3f}" if poor.truth else "–", f"{order:.2f}" if poor.in_order else "–", asked,
                "yes" if passes else "NO", "–" if page.quality is None else f"{page.quality:.2f}", " ".join(page.problems)[:90],
            )  # fmt: skip
    console.print(table)
    console.print(f"{passed} of {total} pages pass")
