"""Export of ground truth: JSON Lines, CSV, Parquet, or a dataset folder.

Each file is written under a temporary name, read back and compared before it is renamed, so a file with the final name
is always complete and correct. Files have mode 0600 and folders 0700, because notes, quotes and texts may identify
patients.
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
from evalkit.classification.schema import ReviewedClassification
from evalkit.core.spreadsheets import escape_formula
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
from evalkit.evaluation.splitting import GroupingFeatures, require_valid_split_shares, split_documents
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

#: Columns of a CSV with one row per document. Format of ``segments``: ``1-5 Genomic Report; 6-8 Clinical Note``; the
#: parts in ``vouched`` are separated by spaces.
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

#: Separator between the pages in the ``text`` column: a form feed.
PAGE_BREAK = "\f"
_TEXT_MEANING = "The text of the pages, separated by form feeds."
_SPLIT_MEANING = "The part of the split that the document belongs to."

#: Name of the only part if a dataset folder is exported without a split.
_UNDIVIDED_PART = "train"
#: Number of identifiers per kind planted to measure what masking misses, their random seed, and the maximum number of
#: documents searched for needlessly masked medical terms.
_PLANTED_PER_KIND, _PLANTED_SEED, _MAX_HARM_TEXTS = 200, 0, 200


class ExportedTruth(GroundTruth):
    """One exported JSON line: the stored ground-truth record and added facts.

    ``schema_version`` is that of the stored record. The patient keys of the record are not exported.
    """

    ground_truth_classification: ReviewedClassification  # type: ignore[assignment]  # without the keys, on purpose
    """The classification; an expert reviewed only the parts listed in ``vouched`` and the quotes with ``vouched``."""
    is_simulated: bool
    """True if a simulated reviewer (a program) answered any case of the document, for a demonstration or test."""
    patients_in_file: int | None = None
    """Number of different patients named on the pages; None if the bundle cannot be read."""
    pages_of_others: int | None = None
    """Number of pages that name a different patient than most pages do; None if the bundle cannot be read."""
    split: str | None = None
    """The part of the split (``train``, ``test`` …) that the document belongs to; None if no split was requested."""
    text: str | None = None
    """The text of the pages, separated by form feeds; None if texts were not requested."""


@dataclass(frozen=True)
class _ExportDocument:
    """Ground truth, page texts and split part of one document to export."""

    truth: GroundTruthDocument
    page_texts: tuple[str, ...] = ()
    """The text of each page; empty if texts were not requested."""
    split_part: str | None = None
    """The part of the split that the document belongs to; None without a split."""


@dataclass(frozen=True)
class _ExportOptions:
    """Validated options of :func:`export_ground_truth`."""

    level: TableLevel
    include_silver: bool
    deidentify: bool
    share_by_part: Mapping[str, float] | None
    seed: int
    with_text: bool

    @property
    def needs_bundles(self) -> bool:
        """True if the export needs the documents' page texts, not only the ground truth."""
        return self.deidentify or self.with_text or self.share_by_part is not None

    @property
    def column_meanings(self) -> dict[str, str]:
        """The exported columns, in order, with a sentence that explains each."""
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
        to: The file to write; for format ``folder``, a folder that does not exist yet or an earlier export, which is
            replaced. None writes to standard output.
        file_format: ``jsonl`` (at level ``document`` the whole records, :class:`ExportedTruth`), ``csv``, ``parquet``,
            or ``folder``: a data card and one JSON Lines file per part of the split.
        level: One row per document, segment or page.
        silver: Include AUTO_ACCEPTED records, which no expert has reviewed.
        deidentify: Replace the names of documents and reviewers by pseudonyms and mask free text by patterns (no
            guarantee).
        split: Share of the documents in each part, such as ``{"train": 0.8, "test": 0.2}``. Documents of one patient
            and near copies always stay in the same part.
        seed: The random seed of the split.
        with_text: Add the text of the pages.

    UsageError if options contradict each other or ``to`` cannot be written; EvalkitError if a written file does not
    read back as intended. If documents had to be left out or are incomplete, all others are written first, then a
    StoreError names the problems.
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
            remedy="Give another file or folder to write.",
        ) from error
    if export_content.problems:
        raise StoreError(
            f"{row_count} rows were written, but the export is incomplete: {'; '.join(export_content.problems)}",
            code="EXPORT-INCOMPLETE",
            remedy="Restore the named files from a backup or run their documents with --fresh, then export again.",
        )
    return row_count


def _require_usable_options(options: _ExportOptions, target: Path | None, file_format: ExportFileFormat) -> None:
    if options.share_by_part is not None:
        require_valid_split_shares(options.share_by_part)
    if target is None and file_format in ("parquet", "folder"):
        raise UsageError(
            f"format {file_format} cannot be written to standard output",
            code="EXPORT",
            remedy="Give the file or folder to write with --to.",
        )
    if target is None or not target.exists():
        return
    if file_format == "folder" and not _is_export_folder(target):
        raise UsageError(
            f"{target} exists already and is not an earlier export, or contains other files too",
            code="EXPORT",
            remedy="Give a folder that does not exist yet.",
        )
    if file_format != "folder" and not target.is_file():
        raise UsageError(f"{target} exists already and is not a file", code="EXPORT", remedy="Give another file.")


# --- what is written ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _ExportContent:
    """Everything that an export writes, and the problems met."""

    documents: tuple[_ExportDocument, ...]
    problems: tuple[str, ...]
    """A sentence for each document that is left out or incomplete."""
    folder_words: frozenset[str] = frozenset()
    """Identifying words of file and reviewer names, which are masked in all texts (``PseudonymMap.folder_words``)."""


def _collect_content(output_folder: OutputFolder, options: _ExportOptions) -> _ExportContent:
    folder_truth = read_folder_ground_truth(output_folder.root, include_silver=options.include_silver)
    problems = list(folder_truth.problems)
    if not options.needs_bundles:
        return _ExportContent(tuple(_ExportDocument(truth) for truth in folder_truth.documents), folder_truth.problems)
    aliases = _create_pseudonym_map(output_folder, folder_truth, problems) if options.deidentify else None
    documents, split_features = [], []
    for truth in folder_truth.documents:
        if truth.sha256 is None:
            continue  # read_folder_ground_truth has already reported that the bundle cannot be read
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
        doc_ids_by_part = split_documents(split_features, options.share_by_part, seed=options.seed)
        part_by_doc_id = {doc_id: part_name for part_name, doc_ids in doc_ids_by_part.items() for doc_id in doc_ids}
        documents = [
            replace(export_document, split_part=part_by_doc_id[export_document.truth.record.doc_id])
            for export_document in documents
        ]
    return _ExportContent(tuple(documents), tuple(problems), aliases.folder_words if aliases else frozenset())


def _create_pseudonym_map(
    output_folder: OutputFolder, folder_truth: FolderGroundTruth, collected_problems: list[str]
) -> PseudonymMap:
    """Create pseudonyms for all documents and reviewers of the output folder.

    Documents that are not exported are included, because notes may mention them.
    """
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
    """Read the PDF's SHA-256 from a document's stored result; None if it is not there."""
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
    """Replace lone surrogates by ``?`` and form feeds by spaces in a page's text."""
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
        column_name: escape_formula(cell)
        if isinstance(cell := row[column_name], str)
        else ""
        if cell is None
        else str(cell)
        for column_name in column_names
    }


def write_private_csv(table: pd.DataFrame, csv_path: Path | str) -> None:
    """Write a table as a private CSV file (0600), safe to open in a spreadsheet.

    Text that a spreadsheet would run as a formula gets a leading apostrophe. UsageError if the file cannot be written.
    """
    object_frame = table.astype(object)
    records = object_frame.where(object_frame.notna(), None).to_dict(
        "records"
    )  # missing values become empty cells, not the word "nan"
    named_records = [{str(column_name): value for column_name, value in row.items()} for row in records]
    write_private_file(_format_csv(list(map(str, table.columns)), named_records), csv_path)


def write_private_json(value: Any, json_path: Path | str) -> None:
    """Write a value as a private JSON file (0600). UsageError if it cannot be written."""
    write_private_file(json.dumps(value, ensure_ascii=False, indent=2) + "\n", json_path)


def write_private_file(
    content: str | bytes, path: Path | str, *, error_code: str = "EXPORT", remedy: str = "Give another file to write."
) -> None:
    """Write a private file (0600) atomically; text as UTF-8.

    UsageError with ``error_code`` and ``remedy`` if it cannot be written.
    """
    try:
        with replace_file_atomically(Path(path)) as temporary_path:
            create_private_file(temporary_path, content)
    except OSError as error:
        raise UsageError(f"{path} cannot be written ({error.strerror})", code=error_code, remedy=remedy) from error


def _read_jsonl(path: Path) -> list[Any]:
    with path.open(encoding="utf-8", newline="\n") as lines:
        return [json.loads(line) for line in lines]


def _read_csv(path: Path) -> list[Any]:
    with path.open(encoding="utf-8", newline="") as file:
        csv.field_size_limit(sys.maxsize)  # a document's text may exceed the default limit
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
    """Raise an EvalkitError naming row and columns if the rows read back differ."""
    for row_number, (read_row, expected_row) in enumerate(zip_longest(read_rows, expected_rows), 1):
        if read_row != expected_row:
            columns = (
                ()
                if not (read_row and expected_row)
                else [column for column in expected_row if read_row.get(column) != expected_row[column]]
            )
            raise EvalkitError(
                f"{file_name} does not read back as written: row {row_number} "
                + (f"differs in {', '.join(columns)}" if columns else "is missing or superfluous"),
                code="EXPORT-DIFFERS",
                remedy="The file was removed. Export again; if the error repeats, report it.",
            )


def create_private_file(path: Path, content: str | bytes) -> None:
    """Create a new private file (0600), text as UTF-8, and sync it to disk.

    OSError if the file exists or cannot be created.
    """
    with os.fdopen(_open_private_file(path), "wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
        file.flush()
        os.fsync(file.fileno())


def _open_private_file(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)


@contextmanager
def replace_file_atomically(replaced_path: Path) -> Iterator[Path]:
    """Yield a temporary path that replaces ``replaced_path`` when the block ends.

    If the block raises, the temporary file is removed and ``replaced_path`` stays as it was.
    """
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
    """Yield the texts of up to 200 documents: always those with the smallest hashes."""
    truths = [
        candidate
        for candidate in read_folder_ground_truth(output_folder.root, include_silver=options.include_silver).documents
        if candidate.sha256
    ]
    for truth in sorted(truths, key=lambda candidate: candidate.sha256 or "")[:_MAX_HARM_TEXTS]:
        try:
            yield "\n".join(page.text for page in read_bundle(output_folder, truth.record.doc_id).pages)
        except StoreError:
            continue  # already reported when the documents were collected


def _is_export_folder(folder: Path) -> bool:
    """Return True if a folder holds one export and nothing else: it may be replaced."""
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
