"""What others said about the documents: production's labels, and classifications to be verified."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalkit.batch.identity import Source
from evalkit.classification.orchestrator import Unparseable
from evalkit.errors import StoreError, UsageError
from evalkit.store import PRODUCTION, Files, canonical

Span = tuple[int, int, str | None]
"""First page, last page (both included, the document's first is 1), type; None: cannot tell."""

_SPAN = re.compile(r"\s*(\d+)\s*(?:[-–]\s*(\d+))?\s+(.+?)\s*")
_COLUMNS = ("dominant_type", "confidence", "segments")


@dataclass(frozen=True)
class ProductionLabels:
    """Production's label of each document, by ``doc_id`` or by file name."""

    rows: Mapping[str, Mapping[str, Any]]

    def label(self, source: Source) -> Mapping[str, Any] | None:
        """The label of a document; None without a row."""
        return self.rows.get(source.doc_id) or self.rows.get(source.path.name)


def read_production(path: Path) -> ProductionLabels:
    """Labels from a CSV or JSON file. UsageError naming the file and what is wrong with it.

    Columns: ``doc_id`` or ``filename``, ``dominant_type``, and optionally ``confidence`` and ``segments``. JSON is a
    list of such objects.
    """
    try:
        text = path.read_text("utf-8-sig")
        rows = json.loads(text) if path.suffix.lower() == ".json" else list(csv.DictReader(text.splitlines()))
        canonical(rows)
    except (OSError, ValueError, RecursionError, csv.Error) as error:
        raise _wrong(path, f"it cannot be read ({type(error).__name__})") from error
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise _wrong(path, "it is not a list of rows")
    labels = {}
    for number, row in enumerate(rows, 1):
        key = row.get("doc_id") or row.get("filename")
        if not isinstance(key, str) or not isinstance(row.get("dominant_type"), str) or not row["dominant_type"]:
            raise _wrong(path, f"row {number} has no doc_id or filename, or no dominant_type")
        labels[key] = {name: row[name] for name in _COLUMNS if row.get(name) not in (None, "")}
    if not labels:
        raise _wrong(path, "it has no rows")
    return ProductionLabels(labels)


def spans(segments: Any) -> tuple[Span, ...]:
    """Segments as spans, from ``1-5 Genomic Report; 6-8 Clinical Note`` or from JSON objects; none where nothing is said.

    ValueError for anything else.

    >>> spans("1-5 Genomic Report; 6 Other")
    ((1, 5, 'Genomic Report'), (6, 6, 'Other'))
    """
    if not segments:
        return ()
    if isinstance(segments, str):
        found = [_SPAN.fullmatch(one) for one in segments.split(";") if one.strip()]
        if not all(found):
            raise ValueError("segments are written as 1-5 Genomic Report; 6-8 Clinical Note")
        return tuple((int(one[1]), int(one[2] or one[1]), one[3]) for one in found if one)
    if isinstance(segments, Sequence) and all(isinstance(one, Mapping) for one in segments):
        try:
            return tuple((int(one["start_page"]), int(one["end_page"]), one["dominant_type"]) for one in segments)
        except (KeyError, TypeError) as error:
            raise ValueError("a segment needs start_page, end_page and dominant_type") from error
    raise ValueError("segments are written as 1-5 Genomic Report; 6-8 Clinical Note")


def stored_production(files: Files) -> dict[str, Mapping[str, Any]]:
    """The labels that runs were given, by doc_id. StoreError for a damaged file."""
    if not files.exists(PRODUCTION):
        return {}
    labels = files.read(PRODUCTION).get("labels")
    if not isinstance(labels, dict):
        raise StoreError(f"{PRODUCTION} holds no labels", code="STORE-TORN", remedy="Run with --production again.")
    return labels


def keep_production(files: Files, labels: ProductionLabels, sources: Iterable[Source]) -> None:
    """Remember the labels of these documents: an evaluation needs those of accepted ones too, which have no packet."""
    before = stored_production(files)
    after = before | {one.doc_id: dict(row) for one in sources if (row := labels.label(one)) is not None}
    if after != before:
        files.write(PRODUCTION, {"schema_version": 1, "labels": dict(sorted(after.items()))})


def _wrong(path: Path, what: str) -> UsageError:
    return UsageError(
        f"production labels {path}: {what}",
        code="PRODUCTION-LABELS",
        remedy="It needs the columns doc_id or filename, and dominant_type.",
    )


def read_classifications(folder: Path, sources: Iterable[Source]) -> tuple[dict[str, Any], list[UsageError]]:
    """The supplied classifications by doc_id, and a problem for each file that belongs to no document.

    Files are named ``{doc_id}.json``. One that is not JSON becomes ``Unparseable``, so that its document escalates
    instead of being classified by somebody else. UsageError where the folder is not there.
    """
    if not folder.is_dir():
        raise UsageError(
            f"{folder} is not a folder of classifications",
            code="CLASSIFICATIONS",
            remedy="Name a folder with {doc_id}.json files.",
        )
    wanted = {source.doc_id for source in sources}
    supplied: dict[str, Any] = {}
    problems = []
    for path in sorted(folder.glob("*.json")):
        if path.stem not in wanted:
            problems.append(
                UsageError(
                    f"{path} belongs to no document of this run",
                    code="CLASSIFICATIONS-UNKNOWN",
                    remedy="Name it after the document's doc_id, or leave it out.",
                )
            )
            continue
        try:
            supplied[path.stem] = checked(json.loads(path.read_text("utf-8-sig")))
        except (OSError, ValueError, RecursionError) as error:
            supplied[path.stem] = Unparseable(f"the file is not readable JSON ({type(error).__name__})")
    return supplied, problems


def checked(value: Any) -> Any:
    """A supplied classification that can be hashed and written down, or ``Unparseable``."""
    if value is None:  # it would read as "nothing was supplied", and another model would be asked instead
        return Unparseable("it is null")
    try:
        canonical(value)
    except (TypeError, ValueError, RecursionError) as error:
        return Unparseable(f"it holds what JSON cannot carry ({type(error).__name__})")
    return value


