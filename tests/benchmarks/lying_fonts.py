"""How many fonts that show one thing and say another are told, and how many honest ones are suspected.

    PYTHONPATH=tests python -m benchmarks.lying_fonts [--half open|sealed] [--folder FOLDER] [--ocr] [--wrong]

A lie is told if the file or one of its pages is called damaged, or if what is read does not have the words of the lie: it
was hidden, or read as it is shown. An honest file is suspected if it is called damaged, or has a page that failed.
"""

from __future__ import annotations

import argparse
import importlib
import re
import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from benchmarks.first_contact.lying_fonts.making import LyingFont, plain
from rich.console import Console
from rich.table import Table

from evalkit.documents.bundle import DocumentBundle, PageStatus
from evalkit.documents.ocr import resolve_ocr_engine
from evalkit.documents.readers import read_document
from evalkit.documents.scanned_pages import PageOcrSettings
from evalkit.errors import DocumentError


class Verdict(NamedTuple):
    """What was made of one file."""

    font: LyingFont
    is_told: bool
    """The file or a page is called damaged."""
    told_words: int
    """Words of the lie that were read."""
    lost_words: int
    """Words that an honest file says and that were not read."""


def words(text: str) -> Counter[str]:
    return Counter(plain(text).split())


def is_told(bundle: DocumentBundle) -> bool:
    """Return whether the file or one of its pages is called damaged."""
    return bundle.is_repaired or any(
        page.status is PageStatus.FAILED or bool(getattr(page, "damage", ())) for page in bundle.pages
    )


def lost(said: str, read: str) -> int:
    """Count the words said but not read. A word read in two pieces, or joined with another, is not lost."""
    kept = Counter(re.findall(r"\w+(?:[.,]\w+)*", plain(read)))
    squeezed = re.sub(r"[\s-]+", "", plain(read))
    missing = Counter(re.findall(r"\w+(?:[.,]\w+)*", plain(said))) - kept
    return sum(count for word, count in missing.items() if word.isascii() and word not in squeezed)


def judge(font: LyingFont, recogniser: PageOcrSettings | None) -> Verdict:
    """Read one file and compare it with what it shows and says."""
    try:
        bundle = read_document(font.file, doc_id=font.file.stem, processing_timestamp="", ocr_settings=recogniser)
    except DocumentError:
        return Verdict(font, True, 0, 0 if font.lies else lost(font.read, ""))
    read = "\n".join(page.text for page in bundle.pages)
    excess = words(font.read) - words(font.shown)
    squeezed, shown = (re.sub(r"\s+", "", plain(text)) for text in (read, font.shown))
    told = sum(((words(read) - words(font.shown)) & excess).values())
    told += sum(len(word) > 3 and squeezed.count(word) > shown.count(word) for word in excess)
    return Verdict(font, is_told(bundle), told, 0 if font.lies else lost(font.read, read))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--half", choices=("open", "sealed"), default="open")
    parser.add_argument("--folder", type=Path, help="keep the files here")
    parser.add_argument("--ocr", action="store_true", help="recognise what has no text")
    parser.add_argument("--wrong", action="store_true", help="name the files that were judged wrong")
    asked = parser.parse_args()
    engine = resolve_ocr_engine("auto") if asked.ocr else None
    recogniser = PageOcrSettings(engine, 60) if engine else None
    with tempfile.TemporaryDirectory() as kept:
        folder = asked.folder or Path(kept)
        folder.mkdir(parents=True, exist_ok=True)
        fonts = importlib.import_module(f"benchmarks.first_contact.lying_fonts.build_{asked.half}").build(folder)
        verdicts = [judge(font, recogniser) for font in fonts]
    lies = [verdict for verdict in verdicts if verdict.font.lies]
    honest = [verdict for verdict in verdicts if not verdict.font.lies]
    caught = [verdict for verdict in lies if verdict.is_told or not verdict.told_words]
    table = Table("what", "files", "of")
    table.add_row("lies told", str(len(caught)), str(len(lies)))
    table.add_row("  of these called damaged", str(sum(verdict.is_told for verdict in lies)), str(len(lies)))
    table.add_row("honest files suspected", str(sum(verdict.is_told for verdict in honest)), str(len(honest)))
    table.add_row("honest files with words lost", str(sum(bool(one.lost_words) for one in honest)), str(len(honest)))
    table.add_row("words lost on honest files", str(sum(one.lost_words for one in honest)), "")
    Console().print(table)
    if asked.wrong:
        for verdict in verdicts:
            is_right = verdict in caught if verdict.font.lies else not (verdict.is_told or verdict.lost_words)
            if not is_right:
                print(f"{verdict.font.file.stem}: {verdict.font.what}")


if __name__ == "__main__":
    main()
