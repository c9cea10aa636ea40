"""Writer of the demo folder: documents, answers, labels, expected decisions."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from evalkit.samples.arriving_formats import draw_file
from evalkit.samples.manuscript import Manuscript

EXPECTED_FILE = "expected.toml"
PRODUCTION_FILE = "production.csv"
TRUTH_FILE = "truth.csv"
CLASSIFICATIONS_FOLDER = "classifications"


def write_demo_folder(folder: Path) -> list[Path]:
    """Write the demo's files into a folder; return the paths of the documents, sorted.

    The folder is created if it is missing. Files: ``{doc_id}.pdf`` or another ending, for some documents
    ``classifications/{doc_id}.json``, ``expected.json``, ``production.csv``, and the true labels in ``truth.csv``.
    Every call writes the same bytes.
    """
    (folder / CLASSIFICATIONS_FOLDER).mkdir(parents=True, exist_ok=True)
    content_folder = files("evalkit.samples") / "content"
    document_paths: list[Path] = []
    for doc_id, manuscript in read_manuscripts(content_folder):
        path = folder / f"{doc_id}.{manuscript.saved_as}"
        path.write_bytes(draw_file(manuscript))
        document_paths.append(path)
    for classification_file in (content_folder / CLASSIFICATIONS_FOLDER).iterdir():
        (folder / CLASSIFICATIONS_FOLDER / classification_file.name).write_bytes(classification_file.read_bytes())
    for table_name in (PRODUCTION_FILE, TRUTH_FILE):
        (folder / table_name).write_bytes((content_folder / table_name).read_bytes())
    # TOML has no null: a document of unknown type has no key "dominant_type".
    rows = tomllib.loads((content_folder / EXPECTED_FILE).read_text("utf-8")).items()
    expected_json = {"schema_version": 1, "documents": {doc_id: _add_null_dominant_type(row) for doc_id, row in rows}}
    (folder / "expected.json").write_text(json.dumps(expected_json, indent=2, sort_keys=True) + "\n", "utf-8")
    return document_paths


def _add_null_dominant_type(row: dict[str, Any]) -> dict[str, Any]:
    return {"dominant_type": None} | {
        key: _add_null_dominant_type(value) if isinstance(value, dict) else value for key, value in row.items()
    }


def read_manuscripts(content_folder: Traversable) -> Iterator[tuple[str, Manuscript]]:
    """Yield (doc_id, manuscript) of each document in the folder, sorted by doc_id."""
    for file in sorted(content_folder.iterdir(), key=lambda file: file.name):
        if file.name.endswith(".toml") and file.name != EXPECTED_FILE:
            yield file.name.removesuffix(".toml"), Manuscript.parse_toml(file.read_text("utf-8"))
