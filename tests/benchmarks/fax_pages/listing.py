"""The fixed list of pages: what each is made from, how it is sent, and which half it belongs to.

``pages.jsonl`` is made once by ``python -m benchmarks.fax_pages.listing`` and committed; whole sources of texts lie in one half.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import cycle
from pathlib import Path

import pymupdf

HERE = Path(__file__).parent
DATA = Path(__file__).parents[3].parent / "shared" / "data"
LIST = HERE / "pages.jsonl"
KINDS = ("fine", "standard", "photo")
HALVES = ("open", "sealed")
BANDS = range(1, 8)
WINDOW = 1500
#: A page that was read in full or not at all with hardly another severity got the next seed when the severity was fixed.
RESEEDED = {"open-fine-7-2": 1}
SOURCES = {
    "raulista1997": "mtsamples",
    "wyim": "aci",
    "riyaaap": "tcga",
    "HL7": "hl7",
    "JoshuaSardinha": "synthetic",
    "jmandel": "roi",
    "GoogleCloudPlatform": "docai",
}
#: Pages of texts by source, for each half: 84, four for each kind and band.
TYPESET = {
    "open": {"mtsamples": 63, "hl7": 21},
    "sealed": {"synthetic": 42, "tcga": 16, "aci": 14, "roi": 12},
}


@dataclass(frozen=True)
class ListedPage:
    """A page of the bench: a text to typeset, or a page of a PDF, and how it is sent."""

    id: str
    half: str
    kind: str
    band: int
    seed: int
    source: str
    text: str = ""
    """Record of ``clinical_text.jsonl``; empty for a page of a PDF."""
    start: int = 0
    """Character of the text with which the page begins."""
    pdf: str = ""
    page: int = 0


def read_pages() -> list[ListedPage]:
    """The committed list."""
    return [ListedPage(**json.loads(line)) for line in LIST.read_text("utf-8").splitlines()]


def read_texts() -> dict[str, tuple[str, str]]:
    """Source and text of each record of the labelled texts."""
    rows = [json.loads(line) for line in (DATA / "clinical_text.jsonl").read_text("utf-8").splitlines()]
    return {row["id"]: (SOURCES[row["source"].split(":")[1].split("/")[0]], row["text"]) for row in rows}


def choose_windows(
    texts: dict[str, tuple[str, str]], source: str, count: int, rng: random.Random
) -> list[tuple[str, int]]:
    """Records of a source and where in them a page begins: first each record's fullest part, then others, no part twice."""
    windows: list[list[tuple[int, str, int]]] = []
    for name, (of, text) in texts.items():
        if of != source or name in {"dev_ge_002", "dev_ge_003", "dev_ge_004", "dev_ge_006", "dev_ge_007", "dev_ge_008"}:
            continue  # excerpts of the two reports
        found = []
        for start in range(0, max(len(text) - WINDOW // 3, 1), WINDOW):
            begin = text.find("\n", start) + 1 if start else 0
            digits = sum(map(str.isdigit, text[begin : begin + WINDOW]))
            found.append((digits, name, begin))
        windows.append(sorted(found, reverse=True))
    rng.shuffle(windows)
    chosen: list[tuple[str, int]] = []
    while len(chosen) < count and any(windows):
        for one in windows:
            if one and len(chosen) < count:
                _, name, begin = one.pop(0)
                chosen.append((name, begin))
    return chosen


def list_pdf_pages(half: str) -> list[tuple[str, str, int]]:
    """Source, file and page of the PDFs of a half: those with a text layer, and the forms."""
    labels = [json.loads(line) for line in (DATA / "clinical_pdf" / "labels.jsonl").read_text("utf-8").splitlines()]
    found = []
    for label in labels:
        name = f"clinical_pdf/{label['file']}"
        if label["kind"] != "single" or label["scan"]:
            continue
        source = SOURCES[label["source"].split(":")[1].split("/")[0]]
        if source in TYPESET[half]:
            with pymupdf.open(DATA / name) as document:
                found += [
                    (source, name, page.number + 1) for page in document if 60 <= len(page.get_text().split()) <= 620
                ]
    forms = ("irs_blank_W-9", "irs_blank_W-8BEN", "irs_blank_1042-S") if half == "open" else ()
    forms = forms or ("docai_W-2", "docai_1099-DIV", "docai_1099-INT", "docai_1099-MISC", "docai_1099-NEC")
    return [*found, *(("irs" if half == "open" else "docai", f"tax/{name}.pdf", 1) for name in forms)]


def make_list() -> Iterator[ListedPage]:
    """Five pages for each half, kind and band: four texts and a page of a PDF."""
    texts = read_texts()
    for half in HALVES:
        rng = random.Random(f"fax pages {half}")
        typeset = [
            (source, name, start)
            for source, count in TYPESET[half].items()
            for name, start in choose_windows(texts, source, count, rng)
        ]
        rng.shuffle(typeset)
        papers = list_pdf_pages(half)
        rng.shuffle(papers)
        again, sheets = cycle(typeset), cycle(papers)
        for band in BANDS:
            for kind in KINDS:
                for number in range(1, 6):
                    name = f"{half}-{kind}-{band}-{number}"
                    seed = rng.randrange(10**6) + RESEEDED.get(name, 0)
                    if number == 5:
                        source, pdf, page = next(sheets)
                        yield ListedPage(name, half, kind, band, seed, source, pdf=pdf, page=page)
                    else:
                        source, text, start = next(again)
                        yield ListedPage(name, half, kind, band, seed, source, text, start)


if __name__ == "__main__":
    rows = ({name: value for name, value in asdict(one).items() if value} for one in make_list())
    LIST.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
