"""Labelled texts to learn from, read from files and cut into pages."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalkit.classification.schema import DocumentType
from evalkit.documents.bundle import Block, LayoutMetadata, Page, PageStatus
from evalkit.documents.furniture import find_stamp_line_indices
from evalkit.errors import UsageError

DOCUMENT_TYPES = tuple(DocumentType)
PAGE_LENGTH = 3000
"""Characters after which a text without pages gets a new page."""


@dataclass(frozen=True)
class LabelledText:
    """A labelled text."""

    id: str
    document_type: DocumentType
    text: str
    group: str
    """Group of records that resemble each other: the same patient, source or report."""
    source: str = ""


def read_labelled_texts(paths: Iterable[Path]) -> list[LabelledText]:
    """Read all labelled texts under these paths.

    UsageError that names the file and row of anything else.
    """
    labelled_texts = [example for path in paths for example in _read_labelled_path(path)]
    missing_types = [
        kind.value
        for kind in DOCUMENT_TYPES
        if not any(labelled_text.document_type is kind for labelled_text in labelled_texts)
    ]
    if missing_types:
        raise _build_training_input_error("the examples", f"have none of type {', '.join(missing_types)}")
    if len({labelled_text.group for labelled_text in labelled_texts}) < 2:
        raise _build_training_input_error(
            "the examples", "are all of one group, and none is judged by what was learned from its own"
        )
    return labelled_texts


def _read_labelled_path(path: Path) -> Iterator[LabelledText]:
    if path.is_dir():
        for file in sorted(path.glob("*/*.txt")):
            location = str(file.relative_to(path))
            try:
                text = file.read_text("utf-8")
            except (OSError, ValueError) as error:
                raise _build_training_input_error(location, "cannot be read as text in UTF-8") from error
            yield _parse_labelled_row(location, {"id": file.stem, "type": file.parent.name, "text": text})
        return
    try:
        text = path.read_text("utf-8")
        rows = (
            tomllib.loads(text).get("document", [])
            if path.suffix == ".toml"
            else [json.loads(line) for line in text.splitlines() if line.strip()]
        )
    except (OSError, ValueError) as error:
        raise _build_training_input_error(path.name, "cannot be read as JSON Lines or TOML") from error
    if not isinstance(rows, list):
        raise _build_training_input_error(path.name, "has no rows [[document]]")
    for number, row in enumerate(rows, 1):
        yield _parse_labelled_row(f"{path.name}, row {number}", row)


def _parse_labelled_row(location: str, row: Any) -> LabelledText:
    if not isinstance(row, Mapping) or not all(isinstance(row.get(key), str) for key in ("type", "text")):
        raise _build_training_input_error(location, "has no type or no text")
    if row["type"] not in [kind.value for kind in DOCUMENT_TYPES]:
        raise _build_training_input_error(location, "has none of the five types")
    name = str(row.get("id") or row.get("doc_id") or hashlib.sha256(row["text"].encode()).hexdigest()[:12])
    return LabelledText(
        name, DocumentType(row["type"]), row["text"], str(row.get("group") or name), str(row.get("source") or "")
    )


def _build_training_input_error(location: str, problem: str) -> UsageError:
    return UsageError(f"{location} {problem}", code="LEARNING-INPUT", remedy="Give rows with type, text and group.")


def build_pages_from_text(text: str) -> tuple[Page, ...]:
    """Build pages of lines from a text, as of a file without layout."""
    pages: list[list[str]] = [[]]
    for line in text.split("\n"):
        if not line.strip():
            continue
        if pages[-1] and sum(map(len, pages[-1])) + len(line) > PAGE_LENGTH:
            pages.append([])
        pages[-1].append(line)
    return tuple(_build_page(number, lines) for number, lines in enumerate(pages, 1))


def _build_page(number: int, lines: Sequence[str]) -> Page:
    stamps = find_stamp_line_indices(lines)
    return Page(
        page_num=number,
        status=PageStatus.TEXT if lines else PageStatus.BLANK,
        text="\n".join(lines),
        paragraphs=tuple(lines),
        layout_metadata=LayoutMetadata(block_types=("paragraph",) * len(lines), has_tables=False),
        blocks=tuple(
            Block(type="paragraph", text=line, box=(0.0, 0.0, 1.0, 1.0), furniture=index in stamps)
            for index, line in enumerate(lines)
        ),
    )
