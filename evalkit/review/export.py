"""Ground truth as data for an analyst: one flat row per document, or the whole records."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, TextIO

from evalkit.errors import UsageError
from evalkit.review.ground_truth import ground_truth_records
from evalkit.store import Files

COLUMNS = (
    "doc_id",
    "ground_truth_source",
    "dominant_type",
    "number_of_segments",
    "segments",
    "vouched",
    "reviewer",
    "reviewed_at",
    "review_reason",
    "inclusion_probability",
    "revision",
    "correction_notes",
)
"""Columns of the CSV. ``segments`` reads ``1-5 Genomic Report; 6-8 Clinical Note``; ``vouched`` is separated by
spaces."""

Format = Literal["jsonl", "csv"]


def row(record: Mapping[str, Any]) -> dict[str, Any]:
    """A ground-truth record as one flat row."""
    truth = record["ground_truth_classification"]
    segments = truth["segments"]
    return {name: record[name] for name in COLUMNS if name in record} | {
        "dominant_type": truth["dominant_type_overall"],
        "number_of_segments": len(segments),
        "segments": "; ".join(f"{one['start_page']}-{one['end_page']} {one['dominant_type']}" for one in segments),
        "vouched": " ".join(record["vouched"]),
    }


def export_ground_truth(
    output: Path | str, to: Path | str, *, file_format: Format = "jsonl", silver: bool = False
) -> int:
    """Write the ground truth of an output folder to a file (mode 0600); how many records there were.

    ``silver`` takes the AUTO_ACCEPTED records too, which no expert has seen. UsageError where ``to`` cannot be written.
    """
    try:
        handle = os.open(to, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)  # notes may name patients
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            return write_records(ground_truth_records(Files(output), silver=silver), file, file_format)
    except OSError as error:
        raise UsageError(
            f"{to} cannot be written ({error.strerror})", code="EXPORT", remedy="Name another file."
        ) from error


def write_records(records: Iterable[Mapping[str, Any]], to: TextIO, file_format: Format) -> int:
    """Write the records as JSON Lines (whole records) or CSV (flat rows); how many there were."""
    count = 0
    table = csv.DictWriter(to, COLUMNS)
    if file_format == "csv":
        table.writeheader()
    for record in records:
        if file_format == "csv":
            table.writerow({name: _inert(value) for name, value in row(record).items()})
        else:
            to.write(json.dumps(record, ensure_ascii=False) + "\n")
        count += 1
    return count


def _inert(value: Any) -> Any:
    """Free text that a spreadsheet would run as a formula is quoted."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
