"""Records of attention checks: planted fault, shown document, and feedback.

``seeded/{case_id}.json`` is written once, before the case's packet, so that the packet can be rebuilt from it. The packet
shows the document's pages under another case_id (``SMEPacket.is_attention_check``): to its expert it looks like any other
case, and an answer to it never changes the document's ground truth.

Source: threat image projection in airport screening: faults whose place is known are mixed into the daily work so that
attention can be measured (Cutler and Paddock, IEEE Carnahan Conference 2009).
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal, Self

from pydantic import ValidationError, model_validator

from evalkit.classification.schema import ClassificationOutput, DocumentType
from evalkit.core.grouping import group_pairs
from evalkit.core.records import StrictRecord
from evalkit.errors import StoreError
from evalkit.review.ground_truth import GroundTruth, Review, find_newest_revision, read_json_unless_missing_or_torn
from evalkit.review.kinds.classification import ClassificationPacket
from evalkit.review.packet import SMEPacket, serialise_packet
from evalkit.store import (
    ATTENTION_CHECKS_FOLDER,
    OutputFolder,
    ground_truth_file_name,
    hash_canonical_json,
    packet_file_name,
    parse_stored_record,
)

SCHEMA_VERSION = 1

FaultKind = Literal["type", "boundary", "joined"]

_RECORD_PATTERN = re.compile(rf"{ATTENTION_CHECKS_FOLDER}/((.+)-[0-9a-f]{{8}})\.json")


class PlantedFault(StrictRecord):
    """The fault that was planted in a shown answer."""

    kind: FaultKind
    """``type``: wrong type shown; ``boundary``: wrong first page shown; ``joined``: two documents shown as one."""
    start_page: int
    """The first page that is shown wrongly, from 1."""
    end_page: int
    """The last page that is shown wrongly, itself included."""
    shown_type: DocumentType | None = None
    """The wrong type shown for these pages; only for ``type``."""
    true_type: DocumentType | None = None
    """The true type of these pages; only for ``type``."""
    true_dominant: DocumentType | None = None
    """The true type of the whole file; only for ``type``."""
    shown_start: int | None = None
    """The page on which a document is wrongly shown to begin; only for ``boundary``."""
    true_start: int | None = None
    """The page on which that document really begins; only for ``boundary`` and ``joined``."""


class AttentionCheck(StrictRecord):
    """Record of one attention check, stored as ``seeded/{case_id}.json``."""

    schema_version: int = SCHEMA_VERSION
    doc_id: str
    """The document whose pages are shown; the case_id is a different one."""
    fault: PlantedFault
    """The fault in the shown answer."""
    truth_sha256: str
    """SHA-256 (hex) of the canonical JSON of the ground truth from which the faulty answer was made. If the ground truth
    changes later, the check stays valid only while the true answer that the fault hides is the same."""
    drawn_at: str
    """Time at which the document was drawn for the check (ISO 8601, UTC)."""
    packet: ClassificationPacket
    """The packet that is put into the queue."""

    @model_validator(mode="after")
    def _require_other_document(self) -> Self:
        if not self.packet.is_attention_check or self.packet.bundle_doc_id != self.doc_id:
            raise ValueError("the case must be an attention check about the document doc_id")
        return self


def get_attention_check_file_name(case_id: str) -> str:
    """Get the output folder's file name for the record of an attention check."""
    return f"{ATTENTION_CHECKS_FOLDER}/{case_id}.json"


def read_attention_check(output_folder: OutputFolder, case_id: str) -> AttentionCheck:
    """Read the record of an attention check.

    NotFound if there is no record of this case; StoreError if the record is unreadable or belongs to another case.
    """
    name, remedy = get_attention_check_file_name(case_id), "Restore the file from a backup."
    attention_check = parse_stored_record(
        AttentionCheck, output_folder.read_json(name, max_schema_version=SCHEMA_VERSION), name, remedy
    )
    if attention_check.packet.case_id != case_id or case_id.rpartition("-")[0] != attention_check.doc_id:
        raise StoreError(f"{name} contains the record of another case", code="STORE-TORN", remedy=remedy)
    return attention_check


def iterate_check_case_and_doc_ids(output_folder: OutputFolder) -> Iterator[tuple[str, str]]:
    """Yield case_id and doc_id of every attention check, sorted by case_id."""
    for name in output_folder.list_json_files(ATTENTION_CHECKS_FOLDER):
        if match := _RECORD_PATTERN.fullmatch(name):
            yield match[1], match[2]


def map_check_case_ids_by_doc_id(output_folder: OutputFolder) -> dict[str, list[str]]:
    """Map each doc_id to the case_ids of the attention checks that show its pages."""
    return group_pairs((doc_id, case_id) for case_id, doc_id in iterate_check_case_and_doc_ids(output_folder))


def list_stray_attention_check_files(output_folder: OutputFolder) -> list[str]:
    """List files in the folder ``seeded`` that are not records of attention checks."""
    return [
        name for name in output_folder.list_json_files(ATTENTION_CHECKS_FOLDER) if not _RECORD_PATTERN.fullmatch(name)
    ]


def is_attention_check(output_folder: OutputFolder, packet: SMEPacket) -> bool:
    """Return True if the case's file or a record marks it as an attention check."""
    return packet.is_attention_check or output_folder.has_file(get_attention_check_file_name(packet.case_id))


def find_attention_check_damage(output_folder: OutputFolder, packet: SMEPacket) -> tuple[str, str] | None:
    """Find the first damaged file of an attention check, and describe the damage.

    None if the packet agrees with its record.
    """
    record_name = get_attention_check_file_name(packet.case_id)
    if not output_folder.has_file(record_name):
        return record_name, "the file is gone, but its case still exists"
    recorded_packet = read_attention_check(output_folder, packet.case_id).packet
    if serialise_packet(recorded_packet) == serialise_packet(packet) | {"review_status": recorded_packet.review_status}:
        return None
    return packet_file_name(packet.case_id), f"the packet differs from the one in {record_name}"


def is_attention_check_review(stored_review: Mapping[str, Any]) -> bool:
    """Return True if a stored review answers an attention check, not a real case."""
    return stored_review.get("seeded") is True


def is_attention_check_unanswered(output_folder: OutputFolder, case_id: str) -> bool:
    """Return True if an attention check is in the queue and nobody has answered it."""
    return output_folder.has_file(packet_file_name(case_id)) and not find_newest_revision(output_folder, case_id)


def is_hidden_truth_current(output_folder: OutputFolder, attention_check: AttentionCheck) -> bool:
    """Return True if the right answer behind the fault is still the ground truth.

    Other parts of the ground truth may have changed since the fault was planted.
    """
    record = read_json_unless_missing_or_torn(output_folder, ground_truth_file_name(attention_check.doc_id))
    if record is None or hash_canonical_json(record) == attention_check.truth_sha256:
        return record is not None
    try:
        truth = GroundTruth.model_validate(record)
    except ValidationError:
        return False
    return {"dominant_type", "segments"} <= {*truth.vouched} and _is_hidden_answer_true(
        attention_check.fault, truth.ground_truth_classification
    )


def _is_hidden_answer_true(fault: PlantedFault, truth: ClassificationOutput) -> bool:
    if fault.kind == "type":
        return (_collect_types_on_fault_pages(truth, fault), truth.dominant_type_overall) == (
            {fault.true_type},
            fault.true_dominant,
        )
    first_pages = {segment.start_page for segment in truth.segments}
    return fault.true_start in first_pages and fault.shown_start not in first_pages


def is_fault_corrected(fault: PlantedFault, review: Review) -> bool:
    """Return True if the review corrects the planted fault, whatever else it changes.

    A wrong type counts as corrected if none of the pages concerned still has it, or if only the type of the whole file was
    corrected, to the true one. A wrong boundary counts as corrected if the answer begins a document on the true page and
    none on the planted page.
    """
    before, after = review.before, review.after
    if (
        review.outcome != "corrected"
        or not isinstance(after, ClassificationOutput)
        or not isinstance(before, ClassificationOutput)
    ):
        return False
    if fault.kind != "type":
        first_pages = {segment.start_page for segment in after.segments}
        return fault.true_start in first_pages and fault.shown_start not in first_pages
    if after.typed_page_ranges == before.typed_page_ranges:
        return before.dominant_type_overall != fault.true_dominant == after.dominant_type_overall
    return fault.shown_type not in _collect_types_on_fault_pages(after, fault)


def _collect_types_on_fault_pages(
    classification: ClassificationOutput, fault: PlantedFault
) -> set[DocumentType | None]:
    return {
        segment.dominant_type
        for segment in classification.segments
        if segment.start_page <= fault.end_page and fault.start_page <= segment.end_page
    }


def describe_fault(fault: PlantedFault) -> str:
    """Describe the planted fault and the truth in one sentence.

    >>> describe_fault(PlantedFault(kind="boundary", start_page=5, end_page=5, shown_start=5, true_start=6))
    'A document was shown to begin on page 5; it begins on page 6.'
    """
    is_single_page = fault.start_page == fault.end_page
    pages = f"Page {fault.start_page}" if is_single_page else f"Pages {fault.start_page}–{fault.end_page}"
    if fault.kind == "type":
        shown_words, true_words = ("was shown as", "it is") if is_single_page else ("were shown as", "they are")
        return f"{pages} {shown_words} {fault.shown_type}; {true_words} {fault.true_type}."
    if fault.kind == "boundary":
        return f"A document was shown to begin on page {fault.shown_start}; it begins on page {fault.true_start}."
    return f"{pages} were shown as one document; another begins on page {fault.true_start}."


def format_attention_check_feedback(fault: PlantedFault, review: Review) -> str:
    """Format the feedback that an expert reads after answering an attention check."""
    result_sentence = (
        "You noticed it. Thank you."
        if is_fault_corrected(fault, review)
        else "You did not correct it this time. This happens to everyone now and then."
    )
    return (
        f"This case had a planted fault, as announced. {describe_fault(fault)} {result_sentence} "
        "Your answer does not change the document."
    )


def read_attention_check_feedback(output_folder: OutputFolder, packet: SMEPacket, review: Review) -> str:
    """Build the feedback on an answered case; empty if it is no attention check."""
    if not packet.is_attention_check:
        return ""
    try:
        return format_attention_check_feedback(read_attention_check(output_folder, packet.case_id).fault, review)
    except StoreError:  # the review is saved, and the expert must still learn that the case was an attention check
        return "This case had a planted fault, as announced. The record of the fault can no longer be read."
