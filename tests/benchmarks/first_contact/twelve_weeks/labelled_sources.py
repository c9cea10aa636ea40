"""The labelled texts beside the checkout, by source. Nothing of them is kept in the project."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pymupdf

_ROOT = Path(__file__).parents[4]
_PLACES = [folder / "shared" / "data" for folder in (_ROOT.parent, _ROOT.parent.parent)]
DATA = next((place for place in _PLACES if place.is_dir()), _PLACES[0])
"""Beside the checkout, or beside the folder of a worktree."""
ABSENT = "the labelled texts are not beside this checkout (../shared/data)"
FEWEST = 6
"""A source with fewer texts cannot fill twelve weeks."""
_REPOSITORIES = {
    "raulista1997": "mtsamples",
    "wyim": "aci-bench",
    "riyaaap": "tcga",
    "HL7": "hl7",
    "JoshuaSardinha": "synthetic",
    "jmandel": "blank forms",
}
_OWNER = re.compile(r"github:([^/]+)/")


@dataclass(frozen=True)
class Record:
    """A labelled text."""

    id: str
    type: str
    text: str


@cache
def read_sources() -> dict[str, tuple[Record, ...]]:
    """Read all labelled texts by the name of their source; empty if the data are absent."""
    sources: dict[str, list[Record]] = {}
    texts = DATA / "clinical_text.jsonl"
    for line in texts.read_text("utf-8").splitlines() if texts.exists() else ():
        row = json.loads(line)
        owner = _OWNER.match(row["source"])
        if owner and owner[1] in _REPOSITORIES:
            sources.setdefault(_REPOSITORIES[owner[1]], []).append(Record(row["id"], row["type"], row["text"]))
    folder = DATA / "clinical_more"
    labels = folder / "labels.jsonl"
    for line in labels.read_text("utf-8").splitlines() if labels.exists() else ():
        row = json.loads(line)
        if len(row["segments"]) == 1 and not row["scan"]:
            with pymupdf.open(folder / row["file"]) as pdf:
                text = "\n".join(page.get_text() for page in pdf)
            record = Record(row["file"].removesuffix(".pdf"), row["segments"][0]["type"], text)
            sources.setdefault(row["file"].split("__")[0], []).append(record)
    return {name: tuple(records) for name, records in sources.items() if len(records) >= FEWEST}


def list_sources() -> list[str]:
    """List the sources that can be left out and replayed; empty if the data are absent."""
    return sorted(read_sources())
