"""What others said about the documents: production's labels, true labels, and classifications to be verified."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict

from evalkit.batch.identity import Source
from evalkit.classification.orchestrator import Unparseable
from evalkit.classification.schema import DocumentType
from evalkit.errors import UsageError
from evalkit.regular import read_regular
from evalkit.store import PRODUCTION, Files, canonical, once_each, shaped

SCHEMA_VERSION = 1

Span = tuple[int, int, str | None]
"""First page, last page (both included, the document's first is 1), type; None: cannot tell."""

MOST_PAGES = 100_000
"""No document has more: a segment beyond is a slip of the pen."""

_SPAN = re.compile(r"\s*(\d+)\s*(?:[-–]\s*(\d+))?\s+(.+?)\s*")
_FORM = "segments are written as 1-5 Genomic Report; 6-8 Clinical Note"
_COLUMNS = ("dominant_type", "confidence", "segments")
_BEYOND = "\0beyond the last column"
_NAMED = 5
"""Rows that a problem names."""
_TYPES = tuple(kind.value for kind in DocumentType)


@dataclass(frozen=True)
class GivenLabels:
    """What a file says of documents, each by its ``doc_id`` or by its file name."""

    rows: Mapping[str, Mapping[str, Any]]

    def among(self, sources: Sequence[Source]) -> dict[str, Mapping[str, Any]]:
        """doc_id → label, of the documents that have one; a file name that several of them bear labels none."""
        shared = self._shared(sources)
        found = ((one, self.rows.get(one.doc_id) or self.rows.get(one.path.name)) for one in sources)
        return {
            one.doc_id: row
            for one, row in found
            if row is not None and (one.doc_id in self.rows or one.path.name not in shared)
        }

    def ambiguous(self, sources: Sequence[Source]) -> list[str]:
        """The file names with a row that several documents bear, not all of them with a row by doc_id."""
        open_ones = {one.path.name for one in sources if one.doc_id not in self.rows}
        return sorted(self._shared(sources) & open_ones & self.rows.keys())

    def unmatched(self, doc_ids: Iterable[str], filenames: Iterable[str]) -> list[str]:
        """The doc_ids and file names of rows that belong to none of these documents, in the file's order."""
        known = {*doc_ids, *filenames}
        return [key for key in self.rows if key not in known]

    @staticmethod
    def _shared(sources: Sequence[Source]) -> set[str]:
        return {name for name, times in Counter(one.path.name for one in sources).items() if times > 1}


class _Kind(NamedTuple):
    """What sort of labels a file holds."""

    name: str
    code: str
    is_true: bool


_PRODUCTION = _Kind("production labels", "PRODUCTION-LABELS", is_true=False)
_TRUTH = _Kind("true labels", "TRUTH-LABELS", is_true=True)


def read_production(path: Path) -> GivenLabels:
    """Production's labels from a CSV or JSON file. UsageError naming the file, the row and what is wrong with it.

    Columns: ``doc_id`` or ``filename``, ``dominant_type``, and optionally ``confidence`` and ``segments``. JSON is a
    list of such objects. Production may have types of its own and segments that nobody can read.
    """
    return _labels(path, _PRODUCTION)


def read_truth(path: Path) -> GivenLabels:
    """Labels that are known to be right, from a file as for :func:`read_production`.

    UsageError also for a type that is none of the five and for segments that :func:`spans` refuses.
    """
    return _labels(path, _TRUTH)


def _labels(path: Path, kind: _Kind) -> GivenLabels:
    labels: dict[str, Mapping[str, Any]] = {}
    for number, row in enumerate(_rows(path, kind), 1):
        key = row.get("doc_id") or row.get("filename")
        if not isinstance(key, str) or not isinstance(row.get("dominant_type"), str) or not row["dominant_type"]:
            raise _wrong(path, kind, f"row {number} has no doc_id or filename, or no dominant_type, that is text")
        label = {name: row[name] for name in _COLUMNS if row.get(name) not in (None, "")}
        if kind.is_true and (fault := _fault(label)):
            raise _wrong(path, kind, f"row {number}: {fault}")
        if labels.setdefault(key, label) != label:
            raise _wrong(path, kind, f"row {number} says of {key} something else than a row before it")
    if not labels:
        raise _wrong(path, kind, "it has no rows")
    return GivenLabels(labels)


def _rows(path: Path, kind: _Kind) -> Iterator[Mapping[str, Any]]:
    is_json = path.suffix.lower() == ".json"
    try:
        text = read_regular(path).decode("utf-8-sig")
        table = csv.DictReader(StringIO(text, newline=None), restkey=_BEYOND)
        rows = json.loads(text, object_pairs_hook=once_each) if is_json else list(table)
        canonical(rows)
    except (OSError, ValueError, RecursionError, csv.Error) as error:
        raise _wrong(path, kind, f"it cannot be read ({_reason(error)})") from error
    if not is_json and (twice := _repeated(table.fieldnames or ())):
        raise _wrong(path, kind, f"it has several columns {', '.join(twice)}")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise _wrong(path, kind, "it is not a list of rows")
    for number, row in enumerate(rows, 1):
        if not is_json and any(map(str.strip, row.get(_BEYOND, ()))):  # a comma at the end adds an empty cell only
            raise _wrong(path, kind, f"row {number} has more cells than there are columns")
        yield row


def _repeated(columns: Sequence[str]) -> list[str]:
    """The names that several columns have; those without a name hold nothing that is read."""
    return [name for name, times in Counter(columns).items() if name.strip() and times > 1]


def _fault(label: Mapping[str, Any]) -> str | None:
    """Why the label cannot be true."""
    try:
        kinds = [label["dominant_type"], *(kind for *_, kind in spans(label.get("segments")))]
    except ValueError as error:
        return str(error)
    return next(
        (f"{str(kind)[:60]!r} is none of the types {', '.join(_TYPES)}" for kind in kinds if kind not in _TYPES), None
    )


def _reason(error: Exception) -> str:
    """In words where the system has some; what is wrong with the text is only named, as its own words would quote it."""
    return (isinstance(error, OSError) and error.strerror) or type(error).__name__


def _wrong(path: Path, kind: _Kind, what: str) -> UsageError:
    return UsageError(
        f"{kind.name} {path}: {what}",
        code=kind.code,
        remedy="It needs the columns doc_id or filename, and dominant_type; one label for each document.",
    )


def spans(segments: Any) -> tuple[Span, ...]:
    """Segments as spans by first page, from ``1-5 Genomic Report; 6-8 Clinical Note`` or JSON objects; none of nothing.

    ValueError for anything else, for pages beyond 1 to ``MOST_PAGES`` and for a first page behind the last.

    >>> spans("6 Other; 1-5 Genomic Report")
    ((1, 5, 'Genomic Report'), (6, 6, 'Other'))
    """
    if segments is None:
        return ()
    if isinstance(segments, str):
        found = (_written(one) for one in segments.split(";") if one.strip())
    elif isinstance(segments, Sequence):
        found = (_object(one) for one in segments)
    else:
        raise ValueError(_FORM)  # noqa: TRY004 - a fault of data, not of a call
    return tuple(sorted(map(_checked, found), key=lambda one: one[:2]))


def _written(segment: str) -> Span:
    found = _SPAN.fullmatch(segment)
    if found is None:
        raise ValueError(_FORM)
    return int(found[1]), int(found[2] or found[1]), found[3]


def _object(segment: Any) -> Span:
    try:
        first, last, kind = (segment[name] for name in ("start_page", "end_page", "dominant_type"))
    except (KeyError, TypeError, IndexError) as error:
        raise ValueError("a segment needs start_page, end_page and dominant_type") from error
    if not all(type(page) in (int, str) and str(page).isdecimal() for page in (first, last)):
        raise ValueError("pages of a segment are whole numbers")
    if not isinstance(kind, str | None):
        raise ValueError("the type of a segment is text")  # noqa: TRY004 - a fault of data, not of a call
    return int(first), int(last), kind


def _checked(span: Span) -> Span:
    first, last, _ = span
    if not 1 <= first <= last <= MOST_PAGES:
        raise ValueError(f"there is no segment of pages {first}-{last}")
    return span


class StoredLabel(BaseModel):
    """What production said of a document, as it was given."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    dominant_type: str
    """One of the five types, or a word of production's own."""
    confidence: Any = None
    """In it, 0..1, where it can be read."""
    segments: Any = None
    """As ``1-5 Genomic Report; 6-8 Clinical Note`` or as objects, where they can be read."""


class StoredProduction(BaseModel):
    """``production.json``: the labels that runs were given."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: int = SCHEMA_VERSION
    labels: dict[str, StoredLabel]
    """By doc_id."""


def stored_production(files: Files) -> dict[str, Mapping[str, Any]]:
    """The labels that runs were given, by doc_id. StoreError for a damaged file."""
    if not files.exists(PRODUCTION):
        return {}
    stored = files.read(PRODUCTION, schema_version=SCHEMA_VERSION)
    shaped(StoredProduction, stored, PRODUCTION, "Restore it from a backup.")
    labels: dict[str, Mapping[str, Any]] = stored["labels"]
    return labels


def keep_production(files: Files, labels: Mapping[str, Mapping[str, Any]]) -> None:
    """Remember labels by doc_id: an evaluation needs those of accepted documents too, which have no packet."""
    before = stored_production(files)
    after = before | {doc_id: dict(row) for doc_id, row in labels.items()}
    if after != before:
        files.write(PRODUCTION, {"schema_version": SCHEMA_VERSION, "labels": dict(sorted(after.items()))})


def idle(labels: GivenLabels, sources: Sequence[Source], earlier: Mapping[str, str | None]) -> list[UsageError]:
    """A problem for production's rows that label nothing, or could label several documents.

    ``earlier`` are the documents of earlier runs, doc_id → path, where it is known: rows about them are no slip.
    """
    problems = [
        UsageError(
            f"several documents are called {name}: production's row of that name labels none of them",
            code="PRODUCTION-AMBIGUOUS",
            remedy="Give each a row with its doc_id.",
        )
        for name in labels.ambiguous(sources)
    ]
    doc_ids = [*earlier, *(one.doc_id for one in sources)]
    names = [*(Path(path).name for path in earlier.values() if path), *(one.path.name for one in sources)]
    if unmatched := labels.unmatched(doc_ids, names):
        n = len(unmatched)
        counted = "1 row of production labels belongs" if n == 1 else f"{n} rows of production labels belong"
        problems.append(
            UsageError(
                f"{counted} to no document: {', '.join(unmatched[:_NAMED])}{' …' * (n > _NAMED)}",
                code="PRODUCTION-UNKNOWN",
                remedy="Name documents by doc_id or file name, or leave the rows out.",
            )
        )
    return problems


def read_classifications(folder: Path, sources: Iterable[Source]) -> tuple[dict[str, Any], list[UsageError]]:
    """The supplied classifications by doc_id, and a problem for each file that belongs to no document.

    Files are named ``{doc_id}.json``. One that is not JSON, or says something twice, becomes ``Unparseable``, so that its document escalates
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
            supplied[path.stem] = checked(
                json.loads(read_regular(path).decode("utf-8-sig"), object_pairs_hook=once_each)
            )
        except (OSError, ValueError, RecursionError) as error:
            supplied[path.stem] = Unparseable(f"the file is not readable JSON ({_reason(error)})")
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
