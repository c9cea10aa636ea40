"""Measure whether a document in another language than English is told, and whether English ones are left alone.

From ``tests``: ``python -m benchmarks.languages [--half open|sealed] [--misses] [--folder FOLDER]``. Each item is drawn
as a PDF with a text layer and read as any document. An item that raises is right where another language is told; any
other is right where none is, be it English, a table of names and codes, or numbers alone. The items' author has not
read the rules. ``--folder`` keeps the PDFs.
"""

from __future__ import annotations

import argparse
import html
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pymupdf
from rich.console import Console
from rich.table import Table

from evalkit.documents.readers import read_document

FOLDER = Path(__file__).parent / "first_contact" / "languages"
TIMESTAMP = "2026-01-01T00:00:00Z"
CODE = "READER-LANGUAGE"
UNNAMED = "(not named)"
_NOT_TOLD = frozenset({"", "en", "eng", "english", "none", "und", "unknown"})
_SAME_LANGUAGE = {"nb": "no", "nn": "no"}  # both written forms of Norwegian
_RIGHT_TO_LEFT = re.compile(r"[\u0590-\u06ff]")
_CELL = re.compile(r"\S+(?: \S+)*")  # two spaces or more stand between columns
_DEJAVU = Path("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf")
_MARGIN, _TOP, _SIZE, _LEADING = 50.0, 64.0, 10.0, 15.0
_WIDTH = 595.0 - 2 * _MARGIN


@dataclass(frozen=True)
class Item:
    """One document: the text of its pages, its language, and whether a person must be told of another than English."""

    id: str
    kind: str
    typing: str
    what: str
    pages: tuple[str, ...]
    language: str
    raises: bool


def load_items(half: str) -> list[Item]:
    lines = (FOLDER / f"{half}.jsonl").read_text(encoding="utf-8").splitlines()
    rows: list[dict[str, Any]] = [json.loads(line) for line in lines]
    return [Item(**{**row, "pages": tuple(row["pages"])}) for row in rows]


def draw(item: Item) -> bytes:
    """The item as a PDF, one page for each of its texts."""
    with pymupdf.open() as document:
        for text in item.pages:
            page = document.new_page()
            if _RIGHT_TO_LEFT.search(text):
                _draw_right_to_left(page, text)
            else:
                _draw_lines(page, text.split("\n"))
        return bytes(document.tobytes(garbage=3, deflate=True, no_new_id=True))


def _draw_lines(page: pymupdf.Page, lines: list[str]) -> None:
    """Write the lines with their columns in place, smaller where they would not fit."""
    cells = [[(match.start(), match.group()) for match in _CELL.finditer(line)] for line in lines]
    column = max((_width(text) / (len(text) + 1) for row in cells for _, text in row[:-1]), default=0.0)
    column = max(column, 0.5 * _SIZE)
    widest = max((start * column + _width(text) for row in cells for start, text in row), default=1.0)
    scale = min(1.0, _WIDTH / widest)
    writer = pymupdf.TextWriter(page.rect)
    for number, row in enumerate(cells):
        for start, text in row:
            x = _MARGIN + scale * start * column
            for font, run in _split_by_font(text):
                writer.append((x, _TOP + number * _LEADING), run, font=font, fontsize=scale * _SIZE)
                x += font.text_length(run, fontsize=scale * _SIZE)
    writer.write_text(page)


def _draw_right_to_left(page: pymupdf.Page, text: str) -> None:
    """Write Arabic or Hebrew, whose letters must be joined and ordered; columns keep a gap."""
    body = html.escape(text).replace("  ", "&nbsp; ").replace("\n", "<br/>")
    page.insert_htmlbox(
        pymupdf.Rect(_MARGIN, _TOP, _MARGIN + _WIDTH, 780),
        f'<div dir="rtl" style="text-align: right">{body}</div>',
        css=f"@font-face {{font-family: drawn; src: url({_DEJAVU.name});}} div {{font: {_SIZE}pt drawn;}}",
        archive=pymupdf.Archive(str(_DEJAVU.parent)),
    )


@lru_cache(maxsize=1)
def _load_fonts() -> tuple[pymupdf.Font, ...]:
    return pymupdf.Font("helv"), pymupdf.Font(fontfile=str(_DEJAVU)), pymupdf.Font("cjk")


def _split_by_font(text: str) -> Iterator[tuple[pymupdf.Font, str]]:
    """The text whole in the first font with all its letters, else in runs of one font each."""
    for font in _load_fonts():
        if all(font.has_glyph(ord(letter)) for letter in text):
            yield font, text
            return
    run, of_run = "", _load_fonts()[0]
    for letter in text:
        font = next(font for font in _load_fonts() if font.has_glyph(ord(letter)))
        if run and font is not of_run:
            yield of_run, run
            run = ""
        run, of_run = run + letter, font
    yield of_run, run


def _width(text: str) -> float:
    return sum(font.text_length(run, fontsize=_SIZE) for font, run in _split_by_font(text))


def find_told_language(bundle: Any) -> str | None:
    """The language of which the reader tells, or None where it tells of none."""
    named = str(getattr(bundle, "language", None) or "").lower()
    if any(getattr(issue, "code", None) == CODE for issue in getattr(bundle, "issues", None) or ()):
        return named or UNNAMED
    return None if named in _NOT_TOLD else named


def judge(item: Item, folder: Path | None = None) -> str | None:
    """What language the reader tells of, for the item drawn and read."""
    pdf = draw(item)
    if folder is not None:
        (folder / f"{item.id}.pdf").write_bytes(pdf)
    return find_told_language(
        read_document(Path(f"{item.id}.pdf"), file_bytes=pdf, doc_id=item.id, processing_timestamp=TIMESTAMP)
    )


def is_named_rightly(item: Item, told: str) -> bool:
    short = told[:2]
    return _SAME_LANGUAGE.get(short, short) == item.language


def measure_items(items: Iterable[Item], console: Console, *, has_misses: bool, folder: Path | None) -> None:
    others: Counter[tuple[str, str]] = Counter()
    told_others: Counter[tuple[str, str]] = Counter()
    named: Counter[tuple[str, str]] = Counter()
    english: Counter[tuple[str, str]] = Counter()
    false_alarms: Counter[tuple[str, str]] = Counter()
    for item in items:
        told = judge(item, folder)
        for group in (("kind", item.kind), ("typing", item.typing), ("", "all")):
            if item.raises:
                others[group] += 1
                told_others[group] += told is not None
                named[group] += told is not None and is_named_rightly(item, told)
            else:
                english[group] += 1
                false_alarms[group] += told is not None
        if has_misses and item.raises != (told is not None):
            console.print(f"{item.id} ({item.language}, {item.kind}): {item.what}: told {told}", markup=False)
    table = Table("by", "group", "other languages", "told", "named rightly", "English or none", "false alarms")
    for group in sorted(others.keys() | english.keys(), key=lambda group: (group == ("", "all"), group)):
        counts = (counter[group] for counter in (others, told_others, named, english, false_alarms))
        table.add_row(*group, *map(str, counts))
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--half", choices=("open", "sealed"), default="open")
    parser.add_argument("--misses", action="store_true", help="show what was judged wrongly")
    parser.add_argument("--folder", type=Path, help="keep the drawn PDFs here")
    chosen = parser.parse_args()
    if chosen.folder is not None:
        chosen.folder.mkdir(parents=True, exist_ok=True)
    measure_items(load_items(chosen.half), Console(width=150), has_misses=chosen.misses, folder=chosen.folder)


if __name__ == "__main__":
    main()
