"""Ground truth, fields and open cases as FHIR R4: a transaction Bundle per file.

Each segment is a document of its own with a PDF of its pages alone. Patients have identifiers, but no names; the PDFs show
them, as the files do.
"""

import json
import secrets
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from evalkit.classification.document_result import DocumentResult
from evalkit.classification.patient_keys import KeyedSegment, load_or_create_patient_salt
from evalkit.core.grouping import group_by
from evalkit.documents.bundle import DocumentBundle
from evalkit.documents.page_cutting import cut_pages
from evalkit.errors import EvalkitError, StoreError
from evalkit.evaluation.deidentify import create_document_pseudonym
from evalkit.evaluation.exports.content import ExportContent, iterate_base_cases, require_same_rows
from evalkit.evaluation.exports.export_folder import replace_export_folder
from evalkit.evaluation.fhir.bundle_reader import BUNDLES_FOLDER, FACTS, read_truth
from evalkit.evaluation.fhir.resources import BundleBuilder, FileRecord
from evalkit.evaluation.fhir.subjects import FileSubjects, identify_subjects
from evalkit.evaluation.ground_truth_table import GroundTruthDocument
from evalkit.evaluation.private_files import create_private_file
from evalkit.review import (
    ADJUDICATION_SUFFIX,
    EXTRACTION_SUFFIX,
    FieldsGroundTruth,
    GroundTruth,
    GroundTruthRecord,
    Review,
    SMEPacket,
    is_simulated_reviewer,
    read_bundle,
    read_packet,
    read_result,
)
from evalkit.review.case_files import read_numbered_reviews
from evalkit.review.ground_truth import SCHEMA_VERSION
from evalkit.review.review_plan import find_asked_part
from evalkit.review.shown_documents import load_shown_pdf
from evalkit.store import GROUND_TRUTH_FOLDER, PATIENT_SALT_FILE, OutputFolder, parse_stored_record


def write_fhir_folder(content: ExportContent, target: Path) -> int:
    """Write a FHIR Bundle per file (truth, fields, open case); return the number.

    A file whose pages cannot be cut is left out, and named in ``content.problems``; so are PDF and quotes of a segment
    whose pages are not all about one patient. Bundles have the documents' pseudonyms: a file's name may be a patient's.
    """
    output_folder = content.output_folder
    truths = {document.truth.record.doc_id: document.truth for document in content.documents if document.truth.sha256}
    cases = group_by(_iterate_open_cases(content), lambda packet: packet.doc_id)
    fields = dict(_iterate_fields(content))
    doc_ids = sorted({*truths, *cases, *fields})
    subjects = identify_subjects(_iterate_bundles(content, doc_ids), _load_salt(output_folder))
    count = 0
    with replace_export_folder(target, "fhir") as folder:
        (folder / BUNDLES_FOLDER).mkdir(mode=0o700)
        for doc_id in doc_ids:
            try:
                bundle = read_bundle(output_folder, doc_id)
                record = _collect_record(
                    content,
                    bundle,
                    subjects[bundle.sha256],
                    truths.get(doc_id),
                    fields.get(doc_id),
                    tuple(cases.get(doc_id, ())),
                )
                path = folder / BUNDLES_FOLDER / f"{record.bundle.doc_id}.json"
                create_private_file(path, _serialise_bundle(BundleBuilder(record).build()))
                _require_same_truth(path, record)
                count += 1
            except EvalkitError as error:
                content.problems.append(f"{doc_id!r}: {error}")
    return count


def _load_salt(output_folder: OutputFolder) -> bytes:
    """Load the salt of the patients' keys.

    Without it, patients have other identifiers in each export.
    """
    if output_folder.has_file(PATIENT_SALT_FILE):
        return load_or_create_patient_salt(output_folder)
    return secrets.token_bytes(32)


def _iterate_bundles(content: ExportContent, doc_ids: list[str]) -> Iterator[DocumentBundle]:
    for doc_id in doc_ids:
        try:
            yield read_bundle(content.output_folder, doc_id)
        except StoreError:
            continue  # reported when the file's Bundle is built


def _iterate_open_cases(content: ExportContent) -> Iterator[SMEPacket]:
    """Iterate the cases that wait for an expert, except attention checks."""
    for opinions in iterate_base_cases(content):
        if opinions.base_packet.kind == "statement_template":
            continue
        for packet in (opinions.base_packet, *opinions.further_packet_by_case_id.values()):
            if opinions.get_status(packet.case_id) != "completed":
                yield packet


def _iterate_fields(content: ExportContent) -> Iterator[tuple[str, FieldsGroundTruth]]:
    ending = f"{EXTRACTION_SUFFIX}.json"
    for name in content.output_folder.list_json_files(GROUND_TRUTH_FOLDER):
        if not name.endswith(ending):
            continue
        try:
            stored = content.output_folder.read_json(name, max_schema_version=SCHEMA_VERSION)
            truth = parse_stored_record(FieldsGroundTruth, stored, name, "Restore the file from a backup.")
        except StoreError as error:
            content.problems.append(str(error))
            continue
        if content.options.include_silver or truth.vouched:
            yield truth.doc_id, truth


def _collect_record(
    content: ExportContent,
    bundle: DocumentBundle,
    subjects: FileSubjects,
    truth: GroundTruthDocument | None,
    fields: FieldsGroundTruth | None,
    open_cases: tuple[SMEPacket, ...],
) -> FileRecord:
    output_folder, doc_id = content.output_folder, bundle.doc_id
    reviews: dict[str, Review | None] = {
        "classification": _find_review(output_folder, doc_id, truth.record if truth else None),
        "fields": _find_review(output_folder, doc_id + EXTRACTION_SUFFIX, fields),
    }
    pseudonym = {"doc_id": create_document_pseudonym(bundle.sha256)}
    exported_truth, cut_pdfs = (
        _cut_segments(content, bundle, subjects, truth.record, reviews["classification"]) if truth else (None, {})
    )
    return FileRecord(
        bundle=bundle.model_copy(update=pseudonym),
        subjects=subjects,
        program=_describe_program(output_folder, doc_id),
        truth=exported_truth and exported_truth.model_copy(update=pseudonym),
        facts={name: getattr(truth, name) for name in FACTS} if truth else {},
        fields=fields,
        reviews={topic: review for topic, review in reviews.items() if review},
        open_cases=open_cases,
        cut_pdfs=cut_pdfs,
        include_silver=content.options.include_silver,
        is_test_data=bool(truth and truth.is_simulated) or bool(fields and is_simulated_reviewer(fields.reviewer)),
    )


def _cut_segments(
    content: ExportContent, bundle: DocumentBundle, subjects: FileSubjects, truth: GroundTruth, review: Review | None
) -> tuple[GroundTruth, dict[tuple[int, int], bytes]]:
    """Cut the segments' PDFs; leave out those, and words, with another patient's page."""
    pdf = load_shown_pdf(content.output_folder, bundle)
    one_patient_pages = _list_one_patient_pages(content.output_folder, bundle.doc_id, review)
    segments: list[KeyedSegment] = []
    cut_pdfs = {}
    for segment in truth.ground_truth_classification.segments:
        pages = segment.start_page, segment.end_page
        if others := subjects.list_pages_of_others(*pages, one_patient_pages):
            content.problems.append(
                f"{bundle.doc_id!r}: the PDF and the quotes of {segment.page_range_text} are left out, because page "
                f"{others[0]} names another patient than most of these pages. Check them by hand."
            )
            segments.append(_strike_words(segment))
            continue
        segments.append(segment)
        if any(bundle.iter_pages(*pages)):
            cut_pdfs[pages] = cut_pages(pdf, bundle.iter_pages(*pages))
    classification = truth.ground_truth_classification.model_copy(update={"segments": tuple(segments)})
    return truth.model_copy(update={"ground_truth_classification": classification}), cut_pdfs


def _strike_words(segment: KeyedSegment) -> KeyedSegment:
    """Return the segment without quotes and reasoning, which may be another patient's."""
    composition = tuple(presence.model_copy(update={"top_evidence": ()}) for presence in segment.segment_composition)
    return segment.model_copy(update={"reasoning": "", "segment_composition": composition})


def _list_one_patient_pages(output_folder: OutputFolder, doc_id: str, review: Review | None) -> set[frozenset[int]]:
    """List the pairs of pages that the expert said are about one patient.

    A question about three patients shows pages of two, so its answer does not count.
    """
    verdicts = {answer.issue_id: answer.verdict for answer in review.issue_verdicts} if review else {}
    return {
        frozenset((issue.page, int(issue.facts["other_page"])))
        for issue in (read_packet(output_folder, doc_id).issues if verdicts else ())
        if verdicts.get(issue.issue_id) == "dismissed"
        and find_asked_part(issue) == "patients"
        and issue.page
        and "other_page" in issue.facts
    }


def _find_review(output_folder: OutputFolder, case_id: str, truth: GroundTruthRecord | None) -> Review | None:
    """Find the review from which a record was made.

    None for silver, or if its file is missing.
    """
    if truth is None or truth.reviewer is None:
        return None
    reviews = (
        review
        for suffix in (ADJUDICATION_SUFFIX, "")
        for _, review in read_numbered_reviews(output_folder, case_id + suffix)
    )
    return next(
        (
            review
            for review in reviews
            if (review.reviewer, review.submitted_at, review.packet_sha256)
            == (truth.reviewer, truth.reviewed_at, truth.packet_sha256)
        ),
        None,
    )


def _describe_program(output_folder: OutputFolder, doc_id: str) -> str:
    """Describe the program that gave the answers: its version and model."""
    try:
        result = read_result(output_folder, doc_id)
    except StoreError:
        return f"evalkit {version('evalkit')}"
    if isinstance(result, DocumentResult):
        return f"evalkit {result.versions.get('evalkit', version('evalkit'))}, model {result.model}"
    return f"evalkit {version('evalkit')}"


def _serialise_bundle(bundle_json: dict[str, Any]) -> str:
    """Validate a Bundle by FHIR's own models, and return it as JSON."""
    from fhir.resources.R4B.bundle import Bundle  # 0.6 s, and no other export needs it

    return str(Bundle.model_validate(bundle_json).model_dump_json())


def _require_same_truth(path: Path, record: FileRecord) -> None:
    """Raise an EvalkitError if the written Bundle differs from what was meant."""
    truth = read_truth(json.loads(path.read_bytes()), path.name)
    expected = [record.truth.model_dump(mode="json") | dict(record.facts)] if record.truth else []
    for row in expected:
        for segment in row["ground_truth_classification"]["segments"]:
            segment["patient"] = None  # never exported
    read_rows = [truth.record.model_dump(mode="json") | truth.facts] if truth else []
    require_same_rows(read_rows, expected, path.name)
