"""How many codes are read on printed pages and on faxes, whose identity comes of it, and what a page costs.

``PYTHONPATH=tests python tests/benchmarks/barcodes.py --faxes 3`` sends each page of ``documents/barcode_pages.py`` so many
times in grey and in black and white; ``--faxes 0`` measures printed pages and costs alone.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from pathlib import Path

import pymupdf
from benchmarks.identity_packets import fax
from documents.barcode_pages import PAGES, BarcodePage, draw
from PIL import Image

from evalkit.documents.bundle import Page
from evalkit.documents.identity.barcodes import (
    add_barcode_identifiers,
    find_barcode_areas,
    read_barcodes,
    read_page_barcodes,
)
from evalkit.documents.ocr import resolve_ocr_engine
from evalkit.documents.page_content import read_page_content
from evalkit.documents.readers import read_document
from evalkit.documents.scanned_pages import PageOcrSettings
from evalkit.documents.visibility import PageVisibilityInspector


def read(document: pymupdf.Document, recogniser: PageOcrSettings | None = None) -> Page:
    pdf = document.tobytes()
    timestamp = "2026-01-02T03:04:05Z"
    return read_document(
        Path("x"), file_bytes=pdf, doc_id="x", processing_timestamp=timestamp, ocr_settings=recogniser
    ).page(1)


def score(page: BarcodePage, seen: Page, counts: Counter[str], form: str) -> None:
    identity = {identifier.kind: identifier.normal for identifier in seen.identifiers}
    codes = {identifier.kind for identifier in seen.identifiers if identifier.source == "barcode"}
    wrong = {kind for kind, normal in identity.items() if page.expected.get(kind) != normal}
    counts[f"{form}: pages"] += 1
    counts[f"{form}: identity exactly as expected"] += identity == page.expected
    counts[f"{form}: wrong values"] += len(wrong)
    counts[f"{form}: wrong values by a bar code"] += len(wrong & codes)
    counts[f"{form}: facts that a bar code states"] += len(page.coded)
    counts[f"{form}: of them found"] += sum(identity.get(kind) == page.expected[kind] for kind in page.coded & codes)
    if identity != page.expected:
        print("  differs:", form, "|", page.name, "|", sorted(identity.keys() ^ page.expected.keys()), sorted(wrong))


def read_codes_of(image: Image.Image, page: BarcodePage, counts: Counter[str], form: str) -> None:
    texts = {text for text, _ in read_barcodes(image)}
    counts[f"{form}: codes"] += len(page.codes)
    counts[f"{form}: codes decoded"] += sum(
        " ".join(text.split()) in {" ".join(t.split()) for t in texts} for _, text, _ in page.codes
    )


def draw_picture(document: pymupdf.Document) -> Image.Image:
    pixmap = document[0].get_pixmap(dpi=200, colorspace=pymupdf.csGRAY)
    return Image.frombytes("L", (pixmap.width, pixmap.height), pixmap.samples)


def measure(name: str, action: object, times: int = 30) -> None:
    durations = []
    for _ in range(times):
        started = time.process_time()
        action()  # type: ignore[operator]
        durations.append(time.process_time() - started)
    print(f"{1000 * sorted(durations)[times // 2]:8.3f} ms  {name}")


def measure_costs() -> None:
    text = draw(BarcodePage("", (), {}, prose=28))
    table = draw(BarcodePage("", (), {}, prose=28))
    for number in range(400):
        x, y = 72 + 20 * (number % 20), 72 + 12 * (number // 20)
        table[0].draw_rect(pymupdf.Rect(x, y, x + 20, y + 12), width=0.5)
    sticker = draw(PAGES[0])
    bars = draw(PAGES[0], as_bars=True)
    for name, document in (
        ("text", text),
        ("table of 400 cells", table),
        ("page with a picture", sticker),
        ("page with bars", bars),
    ):
        page = pymupdf.open("pdf", document.tobytes())[0]
        inspector, content, made = PageVisibilityInspector(page), read_page_content(page), read(document)
        measure(f"{name}: look for areas", lambda i=inspector: find_barcode_areas(i.blocks, i.image_areas))
        if content.barcode_areas:
            measure(f"{name}: draw and decode", lambda p=page, c=content: read_page_barcodes(p, c.barcode_areas, {}))
        barcodes = read_page_barcodes(page, content.barcode_areas, {})
        measure(f"{name}: identity of {len(barcodes)} codes", lambda m=made, b=barcodes: add_barcode_identifiers(m, b))
    picture = draw_picture(fax.send(sticker, "FROM {page}/{pages}", random.Random(1), gray=False)).convert("RGB")
    measure("fax of 200 dpi: decode", lambda: read_barcodes(picture))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--faxes", type=int, default=1)
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    for page in PAGES:
        score(page, read(draw(page)), counts, "printed")
        read_codes_of(draw_picture(draw(page)), page, counts, "printed")
    engine = resolve_ocr_engine()
    for seed in range(options.faxes if engine else 0):
        for form in ("grey fax", "black and white fax"):
            for page in PAGES:
                received = fax.send(
                    draw(page), "FROM LAKESIDE CLINIC {page}/{pages}", random.Random(seed), form == "grey fax"
                )
                score(page, read(received, PageOcrSettings(engine, 30)), counts, form)
                read_codes_of(draw_picture(received), page, counts, form)
    for name, count in counts.items():
        print(f"{count:6} {name}")
    measure_costs()


if __name__ == "__main__":
    main()
