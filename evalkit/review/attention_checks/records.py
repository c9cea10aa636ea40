"""Attention checks: cases whose shown answer is wrong on purpose, to measure how often experts notice.

``seeded/{case_id}.json`` records the document of a case, what was planted in it and where; it is written once,
before the case's packet, so that the packet can be made again. The packet shows the document's pages under a name of its
own (``SMEPacket.is_attention_check``): for its expert it is a case like any other, and no answer to it counts for the
document.
Source: threat image projection in airport screening: faults whose place is known, mixed into the daily work so that
attention can be measured (Cutler and Paddock, IEEE Carnahan Conference 2009).
"""

from __future__ import annotations

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
    """A segment of another type, a document that begins on another page, two documents as one."""
    start_page: int
    """The first page that the fault is about, from 1."""
    end_page: int
    """The last one."""
    shown_type: DocumentType | None = None
    """Of ``type``: what these pages are shown as …"""
    true_type: DocumentType | None = None
    """… and what they are."""
    true_dominant: DocumentType | None = None
    """Of ``type``: what the whole file is."""
    shown_start: int | None = None
    """Of ``boundary``: the page on which the answer lets a document begin."""
    true_start: int | None = None
    """Of ``boundary`` and ``joined``: the page on which it begins."""


class AttentionCheck(StrictRecord):
    """One seeded case: ``seeded/{case_id}.json``."""

    schema_version: int = SCHEMA_VERSION
    doc_id: str
    """The document whose pages are shown; the case has another name."""
    fault: PlantedFault
    """The planted fault."""
    truth_sha256: str
    """SHA-256 of the ground truth (canonical JSON) that it was planted in; if that has changed, the truth that the fault
    hides must be unchanged."""
    drawn_at: str
    """When (ISO 8601, UTC)."""
    packet: ClassificationPacket
    """The case, as it is put into the queue."""

    @model_validator(mode="after")
    def _require_other_document(self) -> Self:
        if not self.packet.is_attention_check or self.packet.bundle_doc_id != self.doc_id:
            raise ValueError("the packet does not show that document's pages under another name")
        return self


def get_attention_check_file_name(case_id: str) -> str:
    """Get the name of the file that records what was planted in an attention check."""
    return f"{ATTENTION_CHECKS_FOLDER}/{case_id}.json"


def read_attention_check(output_folder: OutputFolder, case_id: str) -> AttentionCheck:
    """Read what was planted in a case.

    NotFound; StoreError if it is unreadable or another case's.
    """
    name, remedy = get_attention_check_file_name(case_id), "Restore it from a backup."
    attention_check = parse_stored_record(
        AttentionCheck, output_folder.read_json(name, max_schema_version=SCHEMA_VERSION), name, remedy
    )
    if attention_check.packet.case_id != case_id or case_id.rpartition("-")[0] != attention_check.doc_id:
        raise StoreError(f"{name} is about another case", code="STORE-TORN", remedy=remedy)
    return attention_check


def iterate_check_case_and_doc_ids(output_folder: OutputFolder) -> Iterator[tuple[str, str]]:
    """List case_id and doc_id of every attention check, in order."""
    for name in output_folder.list_json_files(ATTENTION_CHECKS_FOLDER):
        if match := _RECORD_PATTERN.fullmatch(name):
            yield match[1], match[2]


def map_check_case_ids_by_doc_id(output_folder: OutputFolder) -> dict[str, list[str]]:
    """Map each doc_id to the case_ids of the attention checks that show its pages."""
    return group_pairs((doc_id, case_id) for case_id, doc_id in iterate_check_case_and_doc_ids(output_folder))


def list_stray_attention_check_files(output_folder: OutputFolder) -> list[str]:
    """List the files in the folder of attention checks that are none."""
    return [
        name for name in output_folder.list_json_files(ATTENTION_CHECKS_FOLDER) if not _RECORD_PATTERN.fullmatch(name)
    ]


def is_attention_check(output_folder: OutputFolder, packet: SMEPacket) -> bool:
    """Decide by packet or record whether a case is an attention check."""
    return packet.is_attention_check or output_folder.has_file(get_attention_check_file_name(packet.case_id))


def find_attention_check_damage(output_folder: OutputFolder, packet: SMEPacket) -> tuple[str, str] | None:
    """Compare an attention check with its record; return the damaged file, and how."""
    record_name = get_attention_check_file_name(packet.case_id)
    if not output_folder.has_file(record_name):
        return record_name, "it is gone, and its case is there"
    recorded_packet = read_attention_check(output_folder, packet.case_id).packet
    if serialise_packet(recorded_packet) == serialise_packet(packet) | {"review_status": recorded_packet.review_status}:
        return None
    return packet_file_name(packet.case_id), f"it is not what {record_name} says"


def is_attention_check_review(stored_review: Mapping[str, Any]) -> bool:
    """Decide whether a review was of an attention check, and so not about a document."""
    return stored_review.get("seeded") is True


def is_attention_check_unanswered(output_folder: OutputFolder, case_id: str) -> bool:
    """Decide whether an attention check is in the queue and not answered yet."""
    return output_folder.has_file(packet_file_name(case_id)) and not find_newest_revision(output_folder, case_id)


def is_hidden_truth_current(output_folder: OutputFolder, attention_check: AttentionCheck) -> bool:
    """Decide whether the truth that the fault hides is unchanged.

    Other parts may differ.
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
    """Decide whether the answer corrects the planted fault; the rest does not matter.

    A type counts as corrected if none of its pages has the planted one any more, or if the file's type alone was
    corrected to the true one; a beginning if the answer has the true one, and not the planted one.
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
    if after.segments == before.segments:
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
    """Describe in a sentence what was planted.

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
    """Format what the expert learns about an attention check after answering it."""
    result_sentence = (
        "You saw it. Thank you."
        if is_fault_corrected(fault, review)
        else "You did not correct it this time, as happens to everyone now and then."
    )
    return (
        f"This case had a planted fault, as announced. {describe_fault(fault)} {result_sentence} "
        "Your answer does not change the document."
    )


def read_attention_check_feedback(output_folder: OutputFolder, packet: SMEPacket, review: Review) -> str:
    """Read what the expert learns after answering a case.

    Empty unless it is an attention check.
    """
    if not packet.is_attention_check:
        return ""
    try:
        return format_attention_check_feedback(read_attention_check(output_folder, packet.case_id).fault, review)
    except StoreError:  # the review is saved, and nobody may take the case for a true one
        return "This case had a planted fault, as announced. The record of the fault can no longer be read."
