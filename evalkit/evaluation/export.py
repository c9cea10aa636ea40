"""Export of ground truth: JSON Lines, CSV, Parquet, or a dataset folder.

What is written is read again and compared before it takes its name, so that a file of that name is always a whole and
right export. Files are 0600 in folders of 0700: notes, quotes and texts may tell who a patient is.
"""

from __future__ import annotations

import csv
import json
import os
import secrets
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import StringIO
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from evalkit.classification.document_result import SCHEMA_VERSION as RESULT_VERSION
from evalkit.classification.schema import ClassificationOutput
from evalkit.errors import EvalkitError, StoreError, UsageError
from evalkit.evaluation.data_card import EXPORT_MARKER, DataCardFacts, render_data_card
from evalkit.evaluation.deidentify import (
    KnownIdentifiers,
    NamedDocument,
    PseudonymMap,
    deidentify_document,
    mask_text,
    measure_masked_medical_terms,
    measure_missed_planted_identifiers,
)
from evalkit.evaluation.ground_truth_table import (
    COLUMNS,
    FolderGroundTruth,
    GroundTruthDocument,
    GroundTruthRow,
    TableLevel,
    build_ground_truth_rows,
    get_column_dtype,
    read_folder_ground_truth,
)
from evalkit.evaluation.splitting import GroupingFeatures, require_valid_split_shares
from evalkit.evaluation.splitting import split_documents as divided
from evalkit.review.ground_truth import GroundTruth
from evalkit.review.loaders import read_bundle
from evalkit.review.roster import ReviewerRoster
from evalkit.settings import Settings
from evalkit.store import RESULTS_FOLDER, OutputFolder, OutputIndex, has_database, open_output_folder, result_file_name

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from evalkit.documents.bundle import DocumentBundle

ExportFileFormat = Literal["jsonl", "csv", "parquet", "folder"]

#: Columns of the CSV of documents. ``segments`` reads ``1-5 Genomic Report; 6-8 Clinical Note``; ``vouched`` is
#: separated by spaces.
CSV_COLUMNS = (
    "doc_id",
    "ground_truth_source",
    "dominant_type",
    "number_of_segments",
    "segments",
    "patients_in_file",
    "pages_of_others",
    "vouched",
    "reviewer",
    "reviewed_at",
    "review_reason",
    "inclusion_probability",
    "revision",
    "correction_notes",
    "is_simulated",
)

#: Between the pages of a text.
PAGE_BREAK = "\f"
_TEXT_MEANING = "The text of the pages; a form feed between two."
_SPLIT_MEANING = "The part of the split that the document belongs to."

#: The one part of a folder whose documents are not divided.
_UNDIVIDED_PART = "train"
#: Identifiers of each kind, planted to measure what de-identifying misses; their seed; documents looked at for harm.
_PLANTED_PER_KIND, _PLANTED_SEED, _MAX_HARM_TEXTS = 200, 0, 200


class ExportedTruth(GroundTruth):
    """One exported line: the stored record, and what only the whole folder shows.

    ``schema_version`` is that of the record; what is added here changes nothing of it. Patients' keys stay behind.
    """

    ground_truth_classification: ClassificationOutput  # type: ignore[assignment]  # without the keys, on purpose
    """The classification; only its ``vouched`` parts were looked at."""
    is_simulated: bool
    """Whether a program answered any case of the document, for a demonstration or test."""
    patients_in_file: int | None = None
    """How many patients the pages name; None where the bundle cannot be read."""
    pages_of_others: int | None = None
    """How many pages name another patient than most pages do; None likewise."""
    split: str | None = None
    """The part of the split that the document belongs to, where one was asked for."""
    text: str | None = None
    """The text of the pages, a form feed between two, where it was asked for."""


@dataclass(frozen=True)
class _ExportDocument:
    """One document of an export."""

    truth: GroundTruthDocument
    page_texts: tuple[str, ...] = ()
    """What they say, if that is wanted."""
    split_part: str | None = None
    """Of the split."""


@dataclass(frozen=True)
class _ExportOptions:
    """Options of an export."""

    level: TableLevel
    include_silver: bool
    deidentify: bool
    share_by_part: Mapping[str, float] | None
    seed: int
    with_text: bool

    @property
    def needs_bundles(self) -> bool:
        """True if the documents' own text matters, not only the answers about them."""
        return self.deidentify or self.with_text or self.share_by_part is not None

    @property
    def column_meanings(self) -> dict[str, str]:
        """The columns of a row, and what they mean."""
        split_column = {"split": _SPLIT_MEANING} if self.share_by_part else {}
        return COLUMNS[self.level] | split_column | ({"text": _TEXT_MEANING} if self.with_text else {})


def export_ground_truth(
    output: Path | str,
    to: Path | str | None,
    *,
    file_format: ExportFileFormat = "jsonl",
    level: TableLevel = "document",
    silver: bool = False,
    deidentify: bool = False,
    split: Mapping[str, float] | None = None,
    seed: int = 0,
    with_text: bool = False,
) -> int:
    """Write an output folder's ground truth to a file or folder; return the row count.

    Args:
        output: The output folder.
        to: The file; of ``folder`` a folder that is not there yet, or an earlier export; None is standard output.
        file_format: ``jsonl`` (of documents the whole records, :class:`ExportedTruth`), ``csv``, ``parquet``, or ``folder``: a data card and
            one JSON Lines file per part of the split.
        level: One row per document, segment or page.
        silver: The AUTO_ACCEPTED records too, which no expert has seen.
        deidentify: Documents and reviewers under other names, free text masked by patterns (no guarantee).
        split: Shares by part, such as ``{"train": 0.8, "test": 0.2}``; a patient, or near copies, are never divided.
        seed: Of the split.
        with_text: What the pages say, too.

    UsageError where the options do not fit or ``to`` cannot be written; EvalkitError where what was written does not
    read as it was meant. Where documents had to be left out or lack something, all others are written, and then a
    StoreError names them.
    """
    options = _ExportOptions(level, silver, deidentify, split, seed, with_text)
    target = None if to is None else Path(os.path.realpath(to))
    _require_usable_options(options, target, file_format)
    output_folder = open_output_folder(output, Settings.load().database)
    export_content = _collect_content(output_folder, options)
    try:
        if file_format == "folder":
            assert target is not None  # noqa: S101 - _require_usable_options
            row_count = _write_export_folder(export_content, options, target, output_folder)
        else:
            row_count = _write_file(export_content.documents, options, target, file_format)
    except OSError as error:
        raise UsageError(
            f"{to} cannot be written ({error.strerror or type(error).__name__})",
            code="EXPORT",
            remedy="Name another file or folder.",
        ) from error
    if export_content.problems:
        raise StoreError(
            f"{row_count} rows were written, but not all is there: {'; '.join(export_content.problems)}",
            code="EXPORT-INCOMPLETE",
            remedy="Restore these files from a backup or run the documents with --fresh, then export again.",
        )
    return row_count


def _require_usable_options(options: _ExportOptions, target: Path | None, file_format: ExportFileFormat) -> None:
    if options.share_by_part is not None:
        require_valid_split_shares(options.share_by_part)
    if target is None and file_format in ("parquet", "folder"):
        raise UsageError(f"{file_format} needs a place to be written to", code="EXPORT", remedy="Name one with --to.")
    if target is None or not target.exists():
        return
    if file_format == "folder" and not _is_export_folder(target):
        raise UsageError(
            f"{target} is there already and is no export, or holds more than one",
            code="EXPORT",
            remedy="Name a folder that is not there yet.",
        )
    if file_format != "folder" and not target.is_file():
        raise UsageError(f"{target} is there already and is no file", code="EXPORT", remedy="Name another file.")


# --- what is written ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _ExportContent:
    """Contents of an export."""

    documents: tuple[_ExportDocument, ...]
    problems: tuple[str, ...]
    """A sentence for each document that is left out or lacks something."""
    folder_words: frozenset[str] = frozenset()
    """Masked everywhere: those of the folder's names."""


def _collect_content(output_folder: OutputFolder, options: _ExportOptions) -> _ExportContent:
    folder_truth = read_folder_ground_truth(output_folder.root, include_silver=options.include_silver)
    problems = list(folder_truth.problems)
    if not options.needs_bundles:
        return _ExportContent(tuple(_ExportDocument(truth) for truth in folder_truth.documents), folder_truth.problems)
    aliases = _create_pseudonym_map(output_folder, folder_truth, problems) if options.deidentify else None
    documents, split_features = [], []
    for truth in folder_truth.documents:
        if truth.sha256 is None:
            continue  # named by read_truths
        try:
            bundle = read_bundle(output_folder, truth.record.doc_id)
        except StoreError as error:
            problems.append(f"{truth.record.doc_id!r}: {error.message}")
            continue
        document = _build_export_document(truth, bundle, options, aliases)
        documents.append(document)
        if options.share_by_part is not None:
            split_features.append(replace(GroupingFeatures.from_bundle(bundle), doc_id=document.truth.record.doc_id))
    if options.share_by_part is not None:
        doc_ids_by_part = divided(split_features, options.share_by_part, seed=options.seed)
        part_by_doc_id = {doc_id: part_name for part_name, doc_ids in doc_ids_by_part.items() for doc_id in doc_ids}
        documents = [
            replace(export_document, split_part=part_by_doc_id[export_document.truth.record.doc_id])
            for export_document in documents
        ]
    return _ExportContent(tuple(documents), tuple(problems), aliases.folder_words if aliases else frozenset())


def _create_pseudonym_map(
    output_folder: OutputFolder, folder_truth: FolderGroundTruth, collected_problems: list[str]
) -> PseudonymMap:
    """Create pseudonyms for all the folder's documents and reviewers, exported or not."""
    row_by_doc_id: dict[str, dict[str, Any]] = {}
    reviewers = set(folder_truth.reviewers)
    try:
        reviewers.update(ReviewerRoster(output_folder).list_reviewers())
        if has_database(output_folder):
            with OutputIndex(output_folder) as index:
                row_by_doc_id = {row["doc_id"]: row for row in index.list_documents()}
    except StoreError as error:
        collected_problems.append(error.message)
    hash_by_doc_id = {truth.record.doc_id: truth.sha256 for truth in folder_truth.documents}
    result_doc_ids = {
        name.rpartition("/")[2].removesuffix(".json") for name in output_folder.list_json_files(RESULTS_FOLDER)
    }
    named_files = []
    for doc_id in sorted(result_doc_ids | row_by_doc_id.keys() | hash_by_doc_id.keys()):
        row = row_by_doc_id.get(doc_id, {})
        sha256 = (
            hash_by_doc_id.get(doc_id) or row.get("sha256") or _read_document_hash_from_result(output_folder, doc_id)
        )
        named_files.append(NamedDocument(doc_id, Path(row.get("file_path") or f"{doc_id}.pdf").name, sha256))
    return PseudonymMap(named_files, reviewers)


def _read_document_hash_from_result(output_folder: OutputFolder, doc_id: str) -> str | None:
    """Read the hash of a document that the index does not know from its result."""
    try:
        sha256 = output_folder.read_json(result_file_name(doc_id), max_schema_version=RESULT_VERSION).get("sha256")
    except StoreError:
        return None
    return sha256 if isinstance(sha256, str) else None


def _build_export_document(
    truth: GroundTruthDocument, bundle: DocumentBundle, options: _ExportOptions, pseudonym_map: PseudonymMap | None
) -> _ExportDocument:
    page_texts = tuple(_clean_page_text(page.text) for page in bundle.pages) if options.with_text else ()
    if pseudonym_map is None:
        return _ExportDocument(truth, page_texts)
    known_identifiers = replace(KnownIdentifiers.from_bundle(bundle), folder_words=pseudonym_map.folder_words)
    return _ExportDocument(
        deidentify_document(truth, known_identifiers, pseudonym_map),
        tuple(mask_text(page, known_identifiers) for page in page_texts),
    )


def _clean_page_text(page_text: str) -> str:
    """Clean a page's text of lone surrogates and page separators."""
    return page_text.encode("utf-8", "replace").decode().replace(PAGE_BREAK, " ")


def _iterate_rows(documents: Iterable[_ExportDocument], options: _ExportOptions) -> Iterator[GroundTruthRow]:
    for document in documents:
        for row in build_ground_truth_rows([document.truth], options.level):
            yield row | _build_extra_columns(document, options, row)


def _iterate_records(documents: Iterable[_ExportDocument], options: _ExportOptions) -> Iterator[GroundTruthRow]:
    for document in documents:
        added_fields = {
            "is_simulated": document.truth.is_simulated,
            "patients_in_file": document.truth.patients_in_file,
            "pages_of_others": document.truth.pages_of_others,
        }
        record = document.truth.record
        record_json = record.model_dump(mode="json")
        record_json["ground_truth_classification"] = record.ground_truth_classification.to_json()  # without the keys
        yield record_json | added_fields | _build_extra_columns(document, options, {})


def _build_extra_columns(document: _ExportDocument, options: _ExportOptions, row: GroundTruthRow) -> GroundTruthRow:
    extra_columns: GroundTruthRow = {}
    if options.share_by_part:
        extra_columns["split"] = document.split_part
    if options.with_text:
        first_page, last_page = row.get("page") or row.get("start_page") or 1, row.get("page") or row.get("end_page")
        extra_columns["text"] = PAGE_BREAK.join(document.page_texts[max(first_page, 1) - 1 : last_page])
    return extra_columns


# --- files ----------------------------------------------------------------------------------------------------------


def _write_file(
    documents: Sequence[_ExportDocument], options: _ExportOptions, target: Path | None, file_format: ExportFileFormat
) -> int:
    has_whole_records = file_format == "jsonl" and options.level == "document"
    records = list(_iterate_records(documents, options) if has_whole_records else _iterate_rows(documents, options))
    column_names = list(options.column_meanings)
    if file_format == "csv" and options.level == "document":
        column_names = [
            *CSV_COLUMNS,
            *(column_name for column_name in ("split", "text") if column_name in column_names),
        ]
    if target is None:
        sys.stdout.write(_format_jsonl(records) if file_format == "jsonl" else _format_csv(column_names, records))
        return len(records)
    with replace_file_atomically(target) as temporary_path:
        if file_format == "parquet":
            _write_parquet(temporary_path, column_names, records)
            _require_same_rows(_read_parquet(temporary_path), records, target.name)
        elif file_format == "csv":
            create_private_file(temporary_path, _format_csv(column_names, records))
            _require_same_rows(
                _read_csv(temporary_path), [_format_cells(column_names, row) for row in records], target.name
            )
        else:
            create_private_file(temporary_path, _format_jsonl(records))
            _require_same_rows(_read_jsonl(temporary_path), records, target.name)
    return len(records)


def _format_jsonl(records: Iterable[GroundTruthRow]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in records)


def _format_csv(column_names: Sequence[str], records: Iterable[GroundTruthRow]) -> str:
    buffer = StringIO(newline="")
    writer = csv.DictWriter(buffer, column_names)
    writer.writeheader()
    writer.writerows(_format_cells(column_names, row) for row in records)
    return buffer.getvalue()


def _format_cells(column_names: Iterable[str], row: GroundTruthRow) -> dict[str, str]:
    return {
        column_name: "" if row[column_name] is None else str(_escape_formula(row[column_name]))
        for column_name in column_names
    }


def write_private_csv(table: pd.DataFrame, csv_path: Path | str) -> None:
    """Write a CSV (0600) in which no text runs as a formula. UsageError: not writable."""
    target = Path(csv_path)
    with _convert_write_errors(target), replace_file_atomically(target) as temporary_path:
        object_frame = table.astype(object)
        records = object_frame.where(object_frame.notna(), None).to_dict(
            "records"
        )  # what is missing is empty, not the word nan
        named_records = [{str(column_name): value for column_name, value in row.items()} for row in records]
        create_private_file(temporary_path, _format_csv(list(map(str, table.columns)), named_records))


def write_private_json(value: Any, json_path: Path | str) -> None:
    """Write a JSON file (0600). UsageError: not writable."""
    target = Path(json_path)
    with _convert_write_errors(target), replace_file_atomically(target) as temporary_path:
        create_private_file(temporary_path, json.dumps(value, ensure_ascii=False, indent=2) + "\n")


@contextmanager
def _convert_write_errors(target: Path) -> Iterator[None]:
    """Convert write errors to a UsageError that names the file."""
    try:
        yield
    except OSError as error:
        raise UsageError(
            f"{target} cannot be written ({error.strerror})", code="EXPORT", remedy="Name another file."
        ) from error


def _escape_formula(value: Any) -> Any:
    """Free text that a spreadsheet would run as a formula is quoted."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value


def _read_jsonl(path: Path) -> list[Any]:
    with path.open(encoding="utf-8", newline="\n") as lines:
        return [json.loads(line) for line in lines]


def _read_csv(path: Path) -> list[Any]:
    with path.open(encoding="utf-8", newline="") as file:
        csv.field_size_limit(sys.maxsize)  # the text of a document is longer than the default
        return list(csv.DictReader(file))


def _write_parquet(path: Path, column_names: Iterable[str], records: list[GroundTruthRow]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(column_name, _get_arrow_type(column_name)) for column_name in column_names])
    with os.fdopen(_open_private_file(path), "wb") as file:
        pq.write_table(pa.Table.from_pylist(records, schema), file)
        file.flush()
        os.fsync(file.fileno())


def _get_arrow_type(column: str) -> pa.DataType:
    import pyarrow as pa

    types: dict[str, pa.DataType] = {"Int64": pa.int64(), "Float64": pa.float64(), "bool": pa.bool_()}
    return types.get(get_column_dtype(column), pa.string())


def _read_parquet(path: Path) -> list[Any]:
    import pyarrow.parquet as pq

    with path.open("rb") as file:
        return list(pq.read_table(file).to_pylist())


def _require_same_rows(read_rows: Sequence[Any], expected_rows: Sequence[GroundTruthRow], file_name: str) -> None:
    """Require that the rows read back are those written. EvalkitError: row, column."""
    for row_number, (read_row, expected_row) in enumerate(zip_longest(read_rows, expected_rows), 1):
        if read_row != expected_row:
            columns = (
                ()
                if not (read_row and expected_row)
                else [column for column in expected_row if read_row.get(column) != expected_row[column]]
            )
            raise EvalkitError(
                f"{file_name} does not read as it was meant: row {row_number} {', '.join(columns) or 'is missing or too many'}",
                code="EXPORT-DIFFERS",
                remedy="Nothing was left behind. Export again, and report it if it happens again.",
            )


def create_private_file(path: Path, text: str) -> None:
    """Create a new file (0600) and sync it. OSError if it exists or cannot be made."""
    with os.fdopen(_open_private_file(path), "w", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _open_private_file(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)


@contextmanager
def replace_file_atomically(replaced_path: Path) -> Iterator[Path]:
    """Yield a temporary name that replaces the target at the end, or leaves nothing."""
    temporary_path = replaced_path.with_name(f".evalkit-{os.getpid()}-{secrets.token_hex(8)}")
    try:
        yield temporary_path
        os.replace(temporary_path, replaced_path)
    finally:
        temporary_path.unlink(missing_ok=True)


# --- folders --------------------------------------------------------------------------------------------------------


def _write_export_folder(
    export_content: _ExportContent, options: _ExportOptions, target: Path, output_folder: OutputFolder
) -> int:
    documents_by_part = {name: list[_ExportDocument]() for name in options.share_by_part or [_UNDIVIDED_PART]}
    for document in export_content.documents:
        documents_by_part[document.split_part or _UNDIVIDED_PART].append(document)
    rows_by_part = {
        name: list(_iterate_rows(part_documents, options)) for name, part_documents in documents_by_part.items()
    }
    card = render_data_card(
        DataCardFacts(
            level=options.level,
            documents_by_split={
                name: tuple(export_document.truth for export_document in part_documents)
                for name, part_documents in documents_by_part.items()
            },
            row_counts={name: len(part_rows) for name, part_rows in rows_by_part.items()},
            column_descriptions={
                name: (get_column_dtype(name), meaning) for name, meaning in options.column_meanings.items()
            },
            unreadable_count=len(export_content.problems),
            is_split=options.share_by_part is not None,
            missed_identifiers=measure_missed_planted_identifiers(_PLANTED_SEED, _PLANTED_PER_KIND)
            if options.deidentify
            else None,
            needless_masking=measure_masked_medical_terms(
                _iterate_sample_texts(output_folder, options), export_content.folder_words
            )
            if options.deidentify
            else None,
        )
    )
    temporary_folder = target.with_name(f".evalkit-{os.getpid()}-{secrets.token_hex(8)}")
    try:
        temporary_folder.mkdir(mode=0o700)
        (temporary_folder / "data").mkdir(mode=0o700)
        for name, part_rows in rows_by_part.items():
            path = temporary_folder / "data" / f"{name}.jsonl"
            create_private_file(path, _format_jsonl(part_rows))
            _require_same_rows(_read_jsonl(path), part_rows, path.name)
        create_private_file(temporary_folder / "README.md", card)
        _replace_folder(temporary_folder, target)
    finally:
        shutil.rmtree(temporary_folder, ignore_errors=True)
    return sum(map(len, rows_by_part.values()))


def _iterate_sample_texts(output_folder: OutputFolder, options: _ExportOptions) -> Iterator[str]:
    """Yield texts of the documents with the smallest hashes: always the same ones."""
    truths = [
        candidate
        for candidate in read_folder_ground_truth(output_folder.root, include_silver=options.include_silver).documents
        if candidate.sha256
    ]
    for truth in sorted(truths, key=lambda candidate: candidate.sha256 or "")[:_MAX_HARM_TEXTS]:
        try:
            yield "\n".join(page.text for page in read_bundle(output_folder, truth.record.doc_id).pages)
        except StoreError:
            continue  # named with the documents


def _is_export_folder(folder: Path) -> bool:
    """Return True if a folder is an export only, so that another may replace it."""
    try:
        inner_names = {str(path.relative_to(folder)) for path in folder.rglob("*")}
        other_names = {inner_name for inner_name in inner_names if inner_name not in ("README.md", "data")}
        return all(
            Path(inner_name).parent == Path("data") and inner_name.endswith(".jsonl") for inner_name in other_names
        ) and EXPORT_MARKER in (folder / "README.md").read_text("utf-8").split("\n---\n")[0].split("\n")
    except (OSError, ValueError):
        return False


def _replace_folder(temporary_folder: Path, target: Path) -> None:
    old_folder = temporary_folder.with_name(f"{temporary_folder.name}-old")
    if not target.exists():
        temporary_folder.rename(target)
        return
    target.rename(old_folder)
    try:
        temporary_folder.rename(target)
    except OSError:
        old_folder.rename(target)
        raise
    shutil.rmtree(old_folder)
