"""The demo's folder: PDFs, what another system answered about some of them, what is expected, production's labels."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from evalkit.samples.manuscript import Manuscript
from evalkit.samples.paper import draw_pdf

EXPECTED = "expected.toml"
PRODUCTION = "production.csv"
TRUTH = "truth.csv"
CLASSIFICATIONS = "classifications"


def draw(folder: Path) -> list[Path]:
    """Write the demo into a folder, which is made if need be; returns the PDFs, sorted.

    ``{doc_id}.pdf``, ``classifications/{doc_id}.json`` for some, ``expected.json``, ``production.csv``, and what is
    true of them in ``truth.csv``. Two draws are equal to the byte.
    """
    (folder / CLASSIFICATIONS).mkdir(parents=True, exist_ok=True)
    content = files("evalkit.samples") / "content"
    drawn: list[Path] = []
    for doc_id, manuscript in manuscripts(content):
        path = folder / f"{doc_id}.pdf"
        path.write_bytes(draw_pdf(manuscript))
        drawn.append(path)
    for supplied in (content / CLASSIFICATIONS).iterdir():
        (folder / CLASSIFICATIONS / supplied.name).write_bytes(supplied.read_bytes())
    for table in (PRODUCTION, TRUTH):
        (folder / table).write_bytes((content / table).read_bytes())
    # TOML has no null: a document whose type nobody can tell has no such key.
    rows = tomllib.loads((content / EXPECTED).read_text("utf-8")).items()
    expected = {"schema_version": 1, "documents": {doc_id: _whole(row) for doc_id, row in rows}}
    (folder / "expected.json").write_text(json.dumps(expected, indent=2, sort_keys=True) + "\n", "utf-8")
    return drawn


def _whole(row: dict[str, Any]) -> dict[str, Any]:
    return {"dominant_type": None} | {
        key: _whole(value) if isinstance(value, dict) else value for key, value in row.items()
    }


def manuscripts(content: Traversable) -> Iterator[tuple[str, Manuscript]]:
    """Every manuscript with its doc_id, sorted."""
    for file in sorted(content.iterdir(), key=lambda file: file.name):
        if file.name.endswith(".toml") and file.name != EXPECTED:
            yield file.name.removesuffix(".toml"), Manuscript.parse(file.read_text("utf-8"))
