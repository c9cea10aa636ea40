"""Labelled texts for training: reading from files, division into pages, variants."""

import hashlib
import json
import random
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from evalkit.classification.schema import DocumentType
from evalkit.core.grouping import group_by, split_into_runs
from evalkit.document_types import FIVE_TYPES
from evalkit.documents.bundle import Block, LayoutMetadata, Page, PageStatus
from evalkit.documents.furniture import find_stamp_line_indices
from evalkit.errors import UsageError

DOCUMENT_TYPES = FIVE_TYPES
#: Number of characters after which a new page begins in a text without pages.
PAGE_LENGTH = 3000


@dataclass(frozen=True)
class LabelledText:
    """Training text with its document type, group and source."""

    id: str
    document_type: DocumentType
    text: str
    group: str
    """Group of records that resemble each other, such as those of one patient or report."""
    source: str = ""


def read_labelled_texts(paths: Iterable[Path]) -> list[LabelledText]:
    """Read all labelled texts of these files and folders.

    UsageError that names the file and row if a row is wrong, if a type has no text, or if there is only one group.
    """
    labelled_texts = [example for path in paths for example in _read_labelled_path(path)]
    missing_types = [
        kind.value
        for kind in DOCUMENT_TYPES
        if not any(labelled_text.document_type is kind for labelled_text in labelled_texts)
    ]
    if missing_types:
        raise _build_training_input_error("the examples", f"have no text of type {', '.join(missing_types)}")
    if len({labelled_text.group for labelled_text in labelled_texts}) < 2:
        raise _build_training_input_error(
            "the examples",
            "all have the same `group` (a patient or source), but two are needed: each text is tested with weights learned from the others",
        )
    return labelled_texts


def _read_labelled_path(path: Path) -> Iterator[LabelledText]:
    if path.is_dir():
        for file in sorted(path.glob("*/*.txt")):
            location = str(file.relative_to(path))
            try:
                text = file.read_text("utf-8")
            except (OSError, ValueError) as error:
                raise _build_training_input_error(location, "cannot be read as UTF-8 text") from error
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
        raise _build_training_input_error(location, "has a type that is not one of the five document types")
    name = str(row.get("id") or row.get("doc_id") or hashlib.sha256(row["text"].encode()).hexdigest()[:12])
    return LabelledText(
        name, DocumentType(row["type"]), row["text"], str(row.get("group") or name), str(row.get("source") or "")
    )


def _build_training_input_error(location: str, problem: str) -> UsageError:
    return UsageError(
        f"{location} {problem}",
        code="LEARNING-INPUT",
        remedy="Give each row a document type, a text and a group, and have at least two groups.",
    )


def build_pages_from_text(text: str) -> tuple[Page, ...]:
    """Build pages from a text, as if a file without layout had been read."""
    pages = split_into_runs(
        filter(str.strip, text.split("\n")), lambda page, line: sum(map(len, page)) + len(line) <= PAGE_LENGTH
    )
    return tuple(_build_page(number, lines) for number, lines in enumerate(pages or [[]], 1))


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


_LONG_TEXT_LENGTH = 1200
_SEED = 5
_LABEL_PATTERN = re.compile(r"(?m)^[ \t]*[-•*]?[ \t]*[^\n:]{2,70}:[ \t]*|[A-Z][A-Z /&-]{3,40}:")
_OCR_CONFUSIONS = dict(
    zip("lieahtcugsoBSIO", ("1", "l", "c", "o", "b", "f", "e", "v", "q", "5", "0", "8", "5", "l", "0"), strict=True)
)


class TextVariant(NamedTuple):
    """A training text, or a variation of a training text.

    Variations are parts, the text without labels or line breaks, with OCR errors, or with a quoted report.
    """

    name: str
    original: LabelledText
    text: str
    quoted_report: LabelledText | None = None
    """Report whose text was inserted as a quote; None for the other variants."""


def create_text_variants(labelled_texts: Sequence[LabelledText], fold_by_group: Mapping[str, int]) -> list[TextVariant]:
    """Create the variants of all texts; the same at each call.

    A report that is quoted in a note is from the note's fold and, if possible, from its source.
    """
    text_variants: list[TextVariant] = []
    texts_by_fold_and_type = group_by(labelled_texts, lambda text: (fold_by_group[text.group], text.document_type))
    for labelled_text in labelled_texts:
        random_source = random.Random(f"{_SEED} {labelled_text.id}")  # noqa: S311 - the same variants each time
        text_variants += [
            TextVariant(name, labelled_text, text) for name, text in _vary_text(labelled_text, random_source)
        ]
        text_variants += _insert_quoted_reports(
            labelled_text, texts_by_fold_and_type, fold_by_group[labelled_text.group], random_source
        )
    return text_variants


def _vary_text(labelled_text: LabelledText, random_source: random.Random) -> Iterator[tuple[str, str]]:
    text = labelled_text.text
    yield "whole", text
    if len(text) > _LONG_TEXT_LENGTH / 2:
        yield "beginning", text[:500]
    if len(text) > _LONG_TEXT_LENGTH:
        yield "middle", text[len(text) // 3 : len(text) // 3 + 900]
        yield "end", text[-700:]
    if len(unlabelled := _LABEL_PATTERN.sub("", text)) > 100:
        yield "no labels", unlabelled
    yield "one line", " ".join(text.split())
    yield "misread", simulate_ocr_errors(text, 0.08, random_source)


def _insert_quoted_reports(
    labelled_text: LabelledText,
    texts_by_fold_and_type: Mapping[tuple[int, DocumentType], Sequence[LabelledText]],
    fold: int,
    random_source: random.Random,
) -> Iterator[TextVariant]:
    text = labelled_text.text
    if labelled_text.document_type is not DocumentType.CLINICAL_NOTE or len(text) <= 300:
        return
    for kind in (DocumentType.RADIOLOGY_REPORT, DocumentType.PATHOLOGY_REPORT, DocumentType.GENOMIC_REPORT):
        if candidates := texts_by_fold_and_type.get((fold, kind)):
            # A source quotes at most one other source, because each pair of sources needs a training run without both.
            source = max(
                {candidate.source for candidate in candidates}, key=lambda name: (name == labelled_text.source, name)
            )
            quoted_report = random_source.choice([candidate for candidate in candidates if candidate.source == source])
            excerpt = quoted_report.text[: int(len(text) * random_source.choice((0.3, 0.5)))]
            insert_position = text.find("\n", len(text) // 2)
            insert_position = len(text) // 2 if insert_position < 0 else insert_position
            yield TextVariant(
                f"quotes {kind.value}",
                labelled_text,
                f"{text[:insert_position]}\nRESULTS:\n{excerpt}\n{text[insert_position:]}",
                quoted_report,
            )


def simulate_ocr_errors(text: str, error_rate: float, random_source: random.Random) -> str:
    """Return the text with OCR errors: confused, dropped and split characters.

    ``error_rate``: share of letters and digits that are changed.
    """
    characters: list[str] = []
    for character in text:
        if not character.isalnum() or random_source.random() >= error_rate:
            characters.append(character)
            continue
        draw = random_source.random()
        if draw < 0.6:
            characters.append(_OCR_CONFUSIONS.get(character, character))
        elif draw < 0.8:
            characters.append(character + " ")
    return "".join(characters)
