"""Papers by authors who have not read the rules: texts as PDFs, as they are and as a fax, and read as any other file.

Each ``*.jsonl`` has an open and a sealed half. What was recognised of a fax is kept under ``.bench``: it takes seconds a page.
"""

from __future__ import annotations

import hashlib
import json
import random
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pymupdf
from benchmarks.identity_packets import fax
from benchmarks.measuring import ROOT, TIMESTAMP

from evalkit.classification.schema import DocumentType, PresenceLevel
from evalkit.documents import DocumentBundle
from evalkit.documents.ocr import resolve_ocr_engine
from evalkit.documents.readers import read_document
from evalkit.documents.scanned_pages import PageOcrSettings

HERE = Path(__file__).parent
CACHE = ROOT / ".bench" / "first_contact"
TIE = 0.01
FONT_SIZE, LINE_HEIGHT, MARGIN = 9, 11.6, 46
#: Characters that fit on a line; longer lines are wrapped.
LINE_LENGTH = 95


def read_rows(folder: str, half: str) -> list[dict[str, Any]]:
    """The rows of one half of a set."""
    return [json.loads(line) for line in (HERE / folder / f"{half}.jsonl").read_text("utf-8").splitlines() if line]


def draw_pages(pages: Sequence[str]) -> pymupdf.Document:
    """The texts as pages of a typewriter's letters."""
    document = pymupdf.open()
    font = pymupdf.Font("cour")
    for text in pages:
        page = document.new_page(width=612, height=792)
        writer = pymupdf.TextWriter(page.rect)
        lines = [part for line in text.split("\n") for part in textwrap.wrap(line, LINE_LENGTH) or [line]]
        for number, line in enumerate(lines):
            if line.strip():
                indent = len(line) - len(line.lstrip())
                place = (MARGIN + indent * FONT_SIZE * 0.6, MARGIN + LINE_HEIGHT * number)
                writer.append(place, line.strip(), font=font, fontsize=FONT_SIZE)
        writer.write_text(page)
    return document


def read_paper(name: str, pages: Sequence[str], *, as_fax: bool = False) -> DocumentBundle:
    """The bundle of the texts, printed and read again."""
    wrapped = [LINE_LENGTH] if any(len(line) > LINE_LENGTH for page in pages for line in page.split("\n")) else []
    key = hashlib.sha256(json.dumps([list(pages), as_fax, *wrapped]).encode()).hexdigest()[:24]
    cached = CACHE / f"{key}.json"
    if cached.exists():
        return DocumentBundle.model_validate_json(cached.read_text("utf-8"))
    document = draw_pages(pages)
    engine = resolve_ocr_engine()
    if as_fax:
        document = fax.send(document, "FROM: 555 0100   PAGE {page} OF {pages}", random.Random(key), gray=False)
    bundle = read_document(
        Path(f"{name}.pdf"),
        file_bytes=document.tobytes(),
        doc_id=name,
        processing_timestamp=TIMESTAMP,
        ocr_settings=PageOcrSettings(engine, seconds_per_page=60) if engine else None,
    ).model_copy(update={"sha256": hashlib.sha256(key.encode()).hexdigest()})
    CACHE.mkdir(parents=True, exist_ok=True)
    cached.write_text(bundle.model_dump_json(), "utf-8")
    return bundle


def choose_long_sentences(bundle: DocumentBundle, pages: range, count: int = 2) -> list[tuple[str, int]]:
    """The longest sentences or lines of at most 40 words on these pages, with their pages, as true quotes."""
    candidates = [
        (sentence.strip(), number)
        for number in pages
        for paragraph in bundle.page(number).paragraphs
        for sentence in paragraph.replace("\n", " ").split(". ")
        if 5 <= len(sentence.split()) <= 40
    ] or [(" ".join(bundle.page(number).text.split()[:20]), number) for number in pages]
    return sorted(candidates, key=lambda candidate: -len(candidate[0]))[:count]


def build_answer(
    bundle: DocumentBundle, segments: Sequence[tuple[int, int, str]], confidence: float = 0.93
) -> dict[str, Any]:
    """Another system's answer: these segments, each with its type alone and two true quotes."""
    total = bundle.total_pages
    shares = {
        kind.value: sum(end - start + 1 for start, end, name in segments if name == kind.value) / total
        for kind in DocumentType
    }
    # As ruling 12 decides ties: more pages, report before Other, then the first.
    largest = max(shares.values())
    order = [name for _, _, name in segments]
    dominant_type = min(
        (name for name in shares if largest - shares[name] <= TIE),
        key=lambda name: (-round(shares[name] * total), name == DocumentType.OTHER, order.index(name)),
    )
    return {
        "dominant_type_overall": dominant_type,
        "number_of_segments": len(segments),
        "segments": [
            {
                "segment_index": index,
                "start_page": start,
                "end_page": end,
                "segment_page_count": end - start + 1,
                "dominant_type": name,
                "reasoning": f"The pages read like {name}.",
                "segment_composition": list(_compose(bundle, range(start, end + 1), name, confidence)),
            }
            for index, (start, end, name) in enumerate(segments, 1)
        ],
        "document_mixture": [
            {
                "document_type": name,
                "presence_level": PresenceLevel.PRIMARY if share else PresenceLevel.NO_EVIDENCE,
                "confidence": confidence if share else 0.0,
                "overall_share": round(share, 4),
            }
            for name, share in shares.items()
        ],
        "vendor_signals": [],
        "self_evaluation": None,
    }


def _compose(bundle: DocumentBundle, pages: range, name: str, confidence: float) -> Iterator[dict[str, Any]]:
    for kind in DocumentType:
        is_type = kind.value == name
        quotes = choose_long_sentences(bundle, pages) if is_type else []
        yield {
            "document_type": kind.value,
            "presence_level": PresenceLevel.PRIMARY if is_type else PresenceLevel.NO_EVIDENCE,
            "confidence": confidence if is_type else 0.0,
            "segment_share": 1.0 if is_type else 0.0,
            "top_evidence": [{"snippet": quote, "page": page, "anchors_found": []} for quote, page in quotes],
        }
