"""Cases for "ask only what is in doubt": an answer over a packet, which of its parts are wrong, and where that is seen."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.first_contact.papers import draw_pages, read_rows

Case = dict[str, Any]


class CaseFolders(NamedTuple):
    """Folders for ``evalkit.run([pdfs], classifications=answers)``."""

    pdfs: Path
    answers: Path


def read_cases(half: str = "open") -> list[Case]:
    """Read one half: ``id``, ``pages``, ``answer``, ``truth``, ``wrong`` and ``needed`` of each case."""
    return read_rows("in_doubt", half)


def write_cases(cases: Iterable[Case], folder: Path) -> CaseFolders:
    """Draw each case as a PDF and write its answer under the PDF's name."""
    folders = CaseFolders(folder / "pdfs", folder / "classifications")
    for path in folders:
        path.mkdir(parents=True, exist_ok=True)
    for case in cases:
        with draw_pages(case["pages"]) as document:
            document.save(folders.pdfs / f"{case['id']}.pdf", no_new_id=True)
        (folders.answers / f"{case['id']}.json").write_text(json.dumps(case["answer"], ensure_ascii=False), "utf-8")
    return folders


def find_missed_parts(case: Case, asked: Iterable[str], pages_seen: Iterable[int]) -> list[str]:
    """Find the wrong parts that an expert misses who is asked about these parts only and sees these pages only.

    An error in a part that was asked about is noticed if one of the pages needed for it was seen and, for a boundary
    or the patients, all of them.
    """
    parts, seen = set(asked), set(pages_seen)
    missed = []
    for part in case["wrong"]:
        needed = set(case["needed"][part])
        is_shown = bool(needed & seen) if part.startswith("segment") else needed <= seen
        if part not in parts or not is_shown:
            missed.append(part)
    return missed


def find_wrong_parts(answer_segments: Sequence[dict[str, Any]], truth: dict[str, Any]) -> set[str]:
    """Derive the wrong boundaries, segments and patients from the pages and the truth; not the mixture."""
    true_segments = truth["segments"]
    begins = {segment["start_page"] for segment in answer_segments}
    wrong = {f"boundary:{page}" for page in begins ^ {first for first, _, _ in true_segments}}
    for segment in answer_segments:
        first, last = segment["start_page"], segment["end_page"]
        overlaps = [min(last, end) - max(first, start) for start, end, _ in true_segments]
        if segment["dominant_type"] != true_segments[overlaps.index(max(overlaps))][2]:
            wrong.add(f"segment:{segment['segment_index']}")
    return wrong | ({"patients"} if len(set(truth["persons"]) - {None}) > 1 else set())
