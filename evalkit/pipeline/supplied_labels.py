"""Readers of production labels, true labels, and supplied classifications."""

import csv
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

from evalkit.classification.orchestrator import UnparseableClassification
from evalkit.core.records import StrictRecord
from evalkit.core.safe_io import read_regular_file
from evalkit.document_types import list_type_names
from evalkit.errors import UsageError
from evalkit.pipeline.document_discovery import SourceDocument
from evalkit.store import (
    PRODUCTION_LABELS_FILE,
    OutputFolder,
    build_dict_without_duplicate_keys,
    encode_canonical_json,
    parse_stored_record,
)

SCHEMA_VERSION = 1

#: First page, last page (both included, counted from 1), and the type of these pages; None: cannot tell.
TypedPageRange = tuple[int, int, str | None]

#: What a label of an unknown type is called in texts.
CANNOT_TELL_LABEL = "cannot tell"
#: Largest page number that labels may contain: no document has more pages, so a larger number is a typing error.
MAX_PAGE_NUMBER = 100_000

_SPAN_PATTERN = re.compile(r"\s*(\d+)\s*(?:[-–]\s*(\d+))?\s+(.+?)\s*")
_SEGMENTS_FORMAT = "segments must be written as 1-5 Genomic Report; 6-8 Clinical Note"
_LABEL_COLUMNS = ("dominant_type", "confidence", "segments")
_OVERFLOW_KEY = "\0beyond the last column"
#: Maximum number of rows that a problem names.
_MAX_NAMED_ROWS = 5


@dataclass(frozen=True)
class SuppliedLabels:
    """Labels from a file, each for a document's ``doc_id`` or file name."""

    label_by_key: Mapping[str, Mapping[str, Any]]

    def map_labels_by_doc_id(self, sources: Sequence[SourceDocument]) -> dict[str, Mapping[str, Any]]:
        """Map doc_ids to labels; file names of several documents match none."""
        shared_names = self._find_shared_names(sources)
        source_labels = (
            (source, self.label_by_key.get(source.doc_id) or self.label_by_key.get(source.path.name))
            for source in sources
        )
        return {
            source.doc_id: label
            for source, label in source_labels
            if label is not None and (source.doc_id in self.label_by_key or source.path.name not in shared_names)
        }

    def find_ambiguous_names(self, sources: Sequence[SourceDocument]) -> list[str]:
        """List the labelled file names that several documents share, sorted.

        A name is left out if all its documents have a row by doc_id.
        """
        unlabelled_names = {source.path.name for source in sources if source.doc_id not in self.label_by_key}
        return sorted(self._find_shared_names(sources) & unlabelled_names & self.label_by_key.keys())

    def find_unmatched_keys(self, doc_ids: Iterable[str], filenames: Iterable[str]) -> list[str]:
        """List the doc_ids and file names of rows that match no document, in file order."""
        known_keys = {*doc_ids, *filenames}
        return [key for key in self.label_by_key if key not in known_keys]

    @staticmethod
    def _find_shared_names(sources: Sequence[SourceDocument]) -> set[str]:
        return {name for name, count in Counter(source.path.name for source in sources).items() if count > 1}


class TableKind(NamedTuple):
    """Kind of table that a file contains, with the code and remedy of its errors."""

    name: str
    error_code: str
    remedy: str
    is_confidential: bool = False
    """True if errors name no column: a file without a header has a patient's name there."""

    def create_error(self, path: Path, problem: str) -> UsageError:
        """Create the UsageError for a file of this kind that cannot be used."""
        return UsageError(f"{self.name} {path}: {problem}", code=self.error_code, remedy=self.remedy)


_LABEL_REMEDY = "The file needs the columns doc_id or filename, and dominant_type; one label for each document."
_PRODUCTION_LABELS = TableKind("production labels", "PRODUCTION-LABELS", _LABEL_REMEDY)
_TRUE_LABELS = TableKind("true labels", "TRUTH-LABELS", _LABEL_REMEDY)


def read_production_labels(path: Path) -> SuppliedLabels:
    """Read the production classifier's labels from a CSV or JSON file.

    UsageError naming file, row and fault. Columns: ``doc_id`` or ``filename``, ``dominant_type``, and optionally
    ``confidence`` and ``segments``. JSON is a list of such objects. Types other than the five, and unreadable segments,
    are accepted.
    """
    return _read_labels(path, _PRODUCTION_LABELS)


def read_true_labels(path: Path) -> SuppliedLabels:
    """Read true labels from a CSV or JSON file, and check their types and segments.

    Columns as for :func:`read_production_labels`. UsageError also for a type that is none of the five and for segments
    that :func:`parse_typed_page_ranges` refuses.
    """
    return _read_labels(path, _TRUE_LABELS)


def _read_labels(path: Path, table_kind: TableKind) -> SuppliedLabels:
    label_by_key: dict[str, Mapping[str, Any]] = {}
    for row_number, row in enumerate(read_table_rows(path, table_kind), 1):
        key = row.get("doc_id") or row.get("filename")
        if not isinstance(key, str) or not isinstance(row.get("dominant_type"), str) or not row["dominant_type"]:
            raise table_kind.create_error(
                path, f"row {row_number} needs text in the columns doc_id or filename, and dominant_type"
            )
        label = {column: row[column] for column in _LABEL_COLUMNS if row.get(column) not in (None, "")}
        if table_kind is _TRUE_LABELS and (fault := _find_label_fault(label)):
            raise table_kind.create_error(path, f"row {row_number}: {fault}")
        if label_by_key.setdefault(key, label) != label:
            raise table_kind.create_error(path, f"row {row_number} contradicts an earlier row about {key}")
    if not label_by_key:
        raise table_kind.create_error(path, "the table has no rows")
    return SuppliedLabels(label_by_key)


def read_table_rows(path: Path, table_kind: TableKind) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of a CSV or JSON file as dicts by column name.

    UsageError if the file is not such a table.
    """
    is_json = path.suffix.lower() == ".json"
    try:
        text = read_regular_file(path).decode("utf-8-sig")
        csv_reader = csv.DictReader(StringIO(text, newline=None), restkey=_OVERFLOW_KEY)
        rows = json.loads(text, object_pairs_hook=build_dict_without_duplicate_keys) if is_json else list(csv_reader)
        encode_canonical_json(rows)
    except (OSError, ValueError, RecursionError, csv.Error) as error:
        raise table_kind.create_error(path, f"the file cannot be read ({_describe_error(error)})") from (
            None if table_kind.is_confidential else error
        )
    repeated_columns = [name for name, count in Counter(csv_reader.fieldnames).items() if name.strip() and count > 1]
    if not is_json and repeated_columns:
        shown_columns = "(not shown)" if table_kind.is_confidential else ", ".join(repeated_columns)
        raise table_kind.create_error(path, f"several columns have the same name: {shown_columns}")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise table_kind.create_error(path, "the file is not a list of rows")
    for row_number, row in enumerate(rows, 1):
        if not is_json and any(map(str.strip, row.get(_OVERFLOW_KEY, ()))):  # a trailing comma only adds an empty cell
            raise table_kind.create_error(path, f"row {row_number} has more cells than there are columns")
        yield row


def _find_label_fault(label: Mapping[str, Any]) -> str | None:
    try:
        document_types = [
            label["dominant_type"],
            *(document_type for *_, document_type in parse_typed_page_ranges(label.get("segments"))),
        ]
    except ValueError as error:
        return str(error)
    return next(
        (
            f"{str(document_type)[:60]!r} is none of the types {', '.join(list_type_names())}"
            for document_type in document_types
            if document_type not in list_type_names()
        ),
        None,
    )


def _describe_error(error: Exception) -> str:
    """Describe an error of the system by its message, and any other by its type.

    The message of any other error would quote the text.
    """
    return (isinstance(error, OSError) and error.strerror) or type(error).__name__


def parse_typed_page_ranges(segments: Any) -> tuple[TypedPageRange, ...]:
    """Parse segments such as ``1-5 Genomic Report; 6 Other``, or JSON objects.

    Returns the page ranges sorted by first page. ValueError for anything else, for pages beyond 1 to
    ``MAX_PAGE_NUMBER`` and for a first page behind the last.

    >>> parse_typed_page_ranges("6 Other; 1-5 Genomic Report")
    ((1, 5, 'Genomic Report'), (6, 6, 'Other'))
    """
    if segments is None:
        return ()
    if isinstance(segments, str):
        unchecked_spans = (_parse_typed_page_range_text(segment) for segment in segments.split(";") if segment.strip())
    elif isinstance(segments, Sequence):
        unchecked_spans = (_parse_typed_page_range_object(segment) for segment in segments)
    else:
        raise ValueError(_SEGMENTS_FORMAT)  # noqa: TRY004 - a fault of data, not of a call
    return tuple(sorted(map(_validate_typed_page_range, unchecked_spans), key=lambda span: span[:2]))


def format_typed_page_ranges(page_ranges: Iterable[TypedPageRange]) -> str:
    """Format segments as in a file of labels, sorted by first page.

    >>> format_typed_page_ranges([(3, 3, None), (1, 2, "Clinical Note")])
    '1-2 Clinical Note; 3 cannot tell'
    """
    return "; ".join(
        f"{first_page if first_page == last_page else f'{first_page}-{last_page}'} {type_name or CANNOT_TELL_LABEL}"
        for first_page, last_page, type_name in sort_typed_page_ranges(page_ranges)
    )


def sort_typed_page_ranges(page_ranges: Iterable[TypedPageRange]) -> tuple[TypedPageRange, ...]:
    """Sort segments by first page, then last page and type."""
    return tuple(sorted(page_ranges, key=lambda span: (*span[:2], span[2] or "")))


def _parse_typed_page_range_text(segment: str) -> TypedPageRange:
    match = _SPAN_PATTERN.fullmatch(segment)
    if match is None:
        raise ValueError(_SEGMENTS_FORMAT)
    return int(match[1]), int(match[2] or match[1]), match[3]


def _parse_typed_page_range_object(segment: Any) -> TypedPageRange:
    try:
        first_page, last_page, document_type = (segment[key] for key in ("start_page", "end_page", "dominant_type"))
    except (KeyError, TypeError, IndexError) as error:
        raise ValueError("a segment needs start_page, end_page and dominant_type") from error
    if not all(type(page) in (int, str) and str(page).isdecimal() for page in (first_page, last_page)):
        raise ValueError("start_page and end_page of a segment must be whole numbers")
    if not isinstance(document_type, str | None):
        raise ValueError("dominant_type of a segment must be text")  # noqa: TRY004 - a fault of data, not of a call
    return int(first_page), int(last_page), document_type


def _validate_typed_page_range(span: TypedPageRange) -> TypedPageRange:
    first_page, last_page, _ = span
    if not 1 <= first_page <= last_page <= MAX_PAGE_NUMBER:
        raise ValueError(
            f"a segment has the pages {first_page}-{last_page}, but the first must be from 1 up, the last not before it and at most {MAX_PAGE_NUMBER}"
        )
    return span


class StoredLabel(StrictRecord):
    """The production classifier's label of a document, as supplied."""

    dominant_type: str
    """One of the five types, or another word of production."""
    confidence: Any = None
    """Production's confidence as supplied: 0..1, if readable."""
    segments: Any = None
    """Page ranges as supplied: ``1-5 Genomic Report; 6-8 Clinical Note`` or objects, if readable."""


class StoredProductionLabels(StrictRecord):
    """Content of ``production.json``: the labels that were supplied to runs."""

    schema_version: int = SCHEMA_VERSION
    labels: dict[str, StoredLabel]
    """The labels by doc_id."""


def read_stored_production_labels(output_folder: OutputFolder) -> dict[str, Mapping[str, Any]]:
    """Read the labels that were supplied to runs, by doc_id; empty if there are none.

    StoreError if ``production.json`` is damaged.
    """
    if not output_folder.has_file(PRODUCTION_LABELS_FILE):
        return {}
    stored_json = output_folder.read_json(PRODUCTION_LABELS_FILE, max_schema_version=SCHEMA_VERSION)
    parse_stored_record(StoredProductionLabels, stored_json, PRODUCTION_LABELS_FILE, "Restore the file from a backup.")
    labels: dict[str, Mapping[str, Any]] = stored_json["labels"]
    return labels


def translate_production_type(label: str | None, foreign_types: Mapping[str, str]) -> str | None:
    """Map a production label to one of the five types; None if unknown or missing.

    ``foreign_types`` maps further words of production to types. Case and spaces around and between words do not matter.

    >>> translate_production_type(" clinical  note", {}), translate_production_type("gen", {"GEN": "Genomic Report"})
    ('Clinical Note', 'Genomic Report')
    """
    type_by_word = {_fold_label(type_name): type_name for type_name in list_type_names()} | {
        _fold_label(foreign_label): type_name for foreign_label, type_name in foreign_types.items()
    }
    return None if label is None else type_by_word.get(_fold_label(label))


def _fold_label(label: str) -> str:
    return " ".join(label.split()).casefold()


def get_production_label(row: Mapping[str, Any]) -> str:
    """Return the production classifier's type label in this row.

    The row may or may not have been through :func:`translate_production_row`.
    """
    return str(row.get("label") or row["dominant_type"])


def translate_production_row(row: Mapping[str, Any], foreign_types: Mapping[str, str]) -> dict[str, Any]:
    """Return a row whose ``dominant_type`` is mapped to one of the five types.

    ``label`` keeps production's word if it differs from the type.
    """
    word = get_production_label(row)
    type_name = translate_production_type(word, foreign_types)
    return {**row, "dominant_type": type_name} | ({} if word == type_name else {"label": word})


def list_unknown_production_labels(
    rows: Iterable[Mapping[str, Any]], foreign_types: Mapping[str, str]
) -> tuple[str, ...]:
    """List the production labels that map to none of the five types, each once."""
    words = dict.fromkeys(map(get_production_label, rows))
    return tuple(word for word in words if translate_production_type(word, foreign_types) is None)


def merge_stored_production_labels(
    output_folder: OutputFolder, label_by_doc_id: Mapping[str, Mapping[str, Any]]
) -> None:
    """Add labels to ``production.json``, replacing earlier labels of the documents.

    An evaluation needs the labels of accepted documents too, which have no packet.
    """
    stored_labels = read_stored_production_labels(output_folder)
    merged_labels = stored_labels | {doc_id: dict(label) for doc_id, label in label_by_doc_id.items()}
    if merged_labels != stored_labels:
        output_folder.write_json(
            PRODUCTION_LABELS_FILE, {"schema_version": SCHEMA_VERSION, "labels": dict(sorted(merged_labels.items()))}
        )


def list_unused_label_problems(
    labels: SuppliedLabels, sources: Sequence[SourceDocument], path_by_earlier_doc_id: Mapping[str, str | None]
) -> list[UsageError]:
    """List an error for each production row that matches no document, or several.

    ``path_by_earlier_doc_id`` has the documents of earlier runs, doc_id → path, if known: rows about them are no
    problem.
    """
    problems = [
        UsageError(
            f"several documents are called {name}: the production label for this name is used for none of them",
            code="PRODUCTION-AMBIGUOUS",
            remedy="Give each of these documents a row with its doc_id.",
        )
        for name in labels.find_ambiguous_names(sources)
    ]
    doc_ids = [*path_by_earlier_doc_id, *(source.doc_id for source in sources)]
    file_names = [
        *(Path(path).name for path in path_by_earlier_doc_id.values() if path),
        *(source.path.name for source in sources),
    ]
    if unmatched_keys := labels.find_unmatched_keys(doc_ids, file_names):
        unmatched_count = len(unmatched_keys)
        subject = (
            "1 row of production labels belongs"
            if unmatched_count == 1
            else f"{unmatched_count} rows of production labels belong"
        )
        problems.append(
            UsageError(
                f"{subject} to no document: {', '.join(unmatched_keys[:_MAX_NAMED_ROWS])}{' …' * (unmatched_count > _MAX_NAMED_ROWS)}",
                code="PRODUCTION-UNKNOWN",
                remedy="Correct the doc_id or file name in these rows, or remove the rows.",
            )
        )
    return problems


def read_supplied_classifications(
    folder: Path, sources: Iterable[SourceDocument]
) -> tuple[dict[str, Any], list[UsageError]]:
    """Read classifications by doc_id, and list an error for each unmatched file.

    Files are named ``{doc_id}.json``. A file that is not text becomes ``UnparseableClassification``, so that its
    document is escalated instead of being classified by another model. UsageError if the folder does not exist.
    """
    if not folder.is_dir():
        raise UsageError(
            f"{folder} is not a folder of classifications",
            code="CLASSIFICATIONS",
            remedy="Name a folder with {doc_id}.json files.",
        )
    doc_ids = {source.doc_id for source in sources}
    classification_by_doc_id: dict[str, Any] = {}
    problems = []
    for path in sorted(folder.glob("*.json")):
        if path.stem not in doc_ids:
            problems.append(
                UsageError(
                    f"{path} belongs to no document of this run",
                    code="CLASSIFICATIONS-UNKNOWN",
                    remedy="Name the file after the document's doc_id, or remove the file.",
                )
            )
            continue
        try:
            file_bytes = read_regular_file(path)
            classification_by_doc_id[path.stem] = file_bytes.decode(json.detect_encoding(file_bytes))
        except (OSError, ValueError) as error:
            classification_by_doc_id[path.stem] = UnparseableClassification(
                f"the file is not readable text ({_describe_error(error)})"
            )
    return classification_by_doc_id, problems


def make_storable_classification(classification: Any) -> Any:
    """Return a supplied classification if it can be hashed and stored as JSON.

    Otherwise return ``UnparseableClassification`` with the reason.
    """
    if classification is None:  # None means "nothing was supplied": a model would be asked instead
        return UnparseableClassification("it is null")
    try:
        encode_canonical_json(classification)
    except (TypeError, ValueError, RecursionError) as error:
        return UnparseableClassification(f"it has a value that JSON cannot express ({type(error).__name__})")
    return classification
