"""Collect the documents, rows and records that exports of ground truth write."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from evalkit.classification.document_result import SCHEMA_VERSION as RESULT_VERSION
from evalkit.classification.schema import ReviewedClassification
from evalkit.documents import DocumentBundle
from evalkit.errors import EvalkitError, StoreError
from evalkit.evaluation.deidentify import (
    KnownIdentifiers,
    NamedDocument,
    PseudonymMap,
    deidentify_document,
    mask_text,
)
from evalkit.evaluation.ground_truth_table import (
    COLUMNS,
    FolderGroundTruth,
    GroundTruthDocument,
    GroundTruthRow,
    TableLevel,
    build_ground_truth_rows,
    read_folder_ground_truth,
)
from evalkit.evaluation.splitting import GroupingFeatures, split_documents
from evalkit.review import CaseOpinions, GroundTruth, ReviewerRoster, get_base_case_id, open_index, read_bundle
from evalkit.review.attention_checks.records import map_check_case_ids_by_doc_id
from evalkit.review.queue import list_case_ids_with_packet
from evalkit.store import RESULTS_FOLDER, OutputFolder, result_file_name

#: Separator between the pages in the ``text`` column: a form feed.
PAGE_BREAK = "\f"
_TEXT_MEANING = "The text of the pages, separated by form feeds."
_SPLIT_MEANING = "The part of the split that the document belongs to."


class ExportedTruth(GroundTruth):
    """One exported JSON line: the stored ground truth record and further facts.

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
class ExportDocument:
    """Ground truth, page texts and split part of one exported document."""

    truth: GroundTruthDocument
    page_texts: tuple[str, ...] = ()
    """The text of each page; empty if texts were not requested."""
    split_part: str | None = None
    """The part of the split that the document belongs to; None without a split."""


@dataclass(frozen=True)
class ExportOptions:
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


@dataclass(frozen=True)
class ExportContent:
    """Everything that an export writes, and the problems found."""

    options: ExportOptions
    output_folder: OutputFolder
    documents: tuple[ExportDocument, ...]
    problems: list[str]
    """A sentence for each document that is left out or incomplete; a format's writer adds its own."""

    def iterate_rows(self, documents: Sequence[ExportDocument] | None = None) -> Iterator[GroundTruthRow]:
        """Yield the table's rows for some documents, or for all if None."""
        for document in self.documents if documents is None else documents:
            for row in build_ground_truth_rows([document.truth], self.options.level):
                yield row | self._build_extra_columns(document, row)

    def iterate_records(self) -> Iterator[GroundTruthRow]:
        """Yield the whole record of each document (:class:`ExportedTruth`)."""
        for document in self.documents:
            added_fields = {
                "is_simulated": document.truth.is_simulated,
                "patients_in_file": document.truth.patients_in_file,
                "pages_of_others": document.truth.pages_of_others,
            }
            record = document.truth.record
            record_json = record.model_dump(mode="json")
            record_json["ground_truth_classification"] = record.ground_truth_classification.to_json()  # no keys
            yield record_json | added_fields | self._build_extra_columns(document, {})

    def _build_extra_columns(self, document: ExportDocument, row: GroundTruthRow) -> GroundTruthRow:
        extra_columns: GroundTruthRow = {}
        if self.options.share_by_part:
            extra_columns["split"] = document.split_part
        if self.options.with_text:
            first_page = row.get("page") or row.get("start_page") or 1
            last_page = row.get("page") or row.get("end_page")
            extra_columns["text"] = PAGE_BREAK.join(document.page_texts[max(first_page, 1) - 1 : last_page])
        return extra_columns


def collect_content(output_folder: OutputFolder, options: ExportOptions) -> ExportContent:
    """Collect the documents to export and all data that the options require."""
    folder_truth = read_folder_ground_truth(output_folder.root, include_silver=options.include_silver)
    problems = list(folder_truth.problems)
    if not options.needs_bundles:
        return ExportContent(options, output_folder, tuple(map(ExportDocument, folder_truth.documents)), problems)
    aliases = _create_pseudonym_map(output_folder, folder_truth, problems) if options.deidentify else None
    documents, split_features = [], []
    for truth in folder_truth.documents:
        if truth.sha256 is None:
            continue  # read_folder_ground_truth has already reported that the bundle cannot be read
        try:
            bundle = read_bundle(output_folder, truth.record.doc_id)
        except StoreError as error:
            problems.append(f"{truth.record.doc_id!r}: {error}")
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
    return ExportContent(options, output_folder, tuple(documents), problems)


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
        with open_index(output_folder, read_only=True) as index:
            row_by_doc_id = {row["doc_id"]: row for row in index.list_documents()}
    except StoreError as error:
        collected_problems.append(str(error))
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
    truth: GroundTruthDocument, bundle: DocumentBundle, options: ExportOptions, pseudonym_map: PseudonymMap | None
) -> ExportDocument:
    # form feeds separate pages
    page_texts = tuple(page.text.replace(PAGE_BREAK, " ") for page in (bundle.pages if options.with_text else ()))
    if pseudonym_map is None:
        return ExportDocument(truth, page_texts)
    known_identifiers = replace(KnownIdentifiers.from_bundle(bundle), folder_words=pseudonym_map.folder_words)
    return ExportDocument(
        deidentify_document(truth, known_identifiers, pseudonym_map),
        tuple(mask_text(page, known_identifiers) for page in page_texts),
    )


def iterate_base_cases(content: ExportContent) -> Iterator[CaseOpinions]:
    """Iterate over cases with their opinions, without attention checks.

    A case that cannot be read is named in ``content.problems``.
    """
    check_ids = map_check_case_ids_by_doc_id(content.output_folder)
    for case_id in list_case_ids_with_packet(content.output_folder):
        if case_id != get_base_case_id(case_id):
            continue
        try:
            opinions = CaseOpinions.read(content.output_folder, case_id, check_ids)
        except EvalkitError as error:
            content.problems.append(f"{case_id!r}: {error}")
            continue
        if not opinions.base_packet.is_attention_check:
            yield opinions


def require_same_rows(read_rows: Sequence[Any], expected_rows: Sequence[GroundTruthRow], file_name: str) -> None:
    """Raise an error if rows read back from an export differ from the written rows."""
    for row_number, (read_row, expected_row) in enumerate(zip_longest(read_rows, expected_rows), 1):
        if read_row != expected_row:
            columns = (
                ()
                if not (read_row and expected_row)
                else [column for column in expected_row if read_row.get(column) != expected_row[column]]
            )
            raise EvalkitError(
                f"{file_name} differs from the exported data when it is read again: row {row_number} "
                + (f"differs in {', '.join(columns)}" if columns else "is missing or was added"),
                code="EXPORT-DIFFERS",
                remedy="The file was removed. Export again; if the error repeats, report it.",
            )
