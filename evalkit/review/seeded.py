"""Seeded cases: cases whose shown answer is wrong on purpose, to measure how often experts notice.

``seeded/{case_id}.json`` says of which document a case was made, what was planted in it and where; it is written once,
before the case's packet, so that the packet can be made again. The packet shows the document's pages under a name of its
own (``SMEPacket.is_seeded``): to whoever answers it is a case like any other, and no answer to it is about the document.
Source: threat image projection in airport screening: faults whose place is known, mixed into the daily work so that
attention can be measured (Cutler and Paddock, IEEE Carnahan Conference 2009).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, Self

from pydantic import ValidationError, model_validator

from evalkit.classification.result import DocumentFailure, DocumentResult
from evalkit.classification.schema import ClassificationOutput, DocumentType
from evalkit.errors import StoreError
from evalkit.frozen import Frozen
from evalkit.review.ground_truth import GroundTruth, Review, if_readable, newest_revision
from evalkit.review.packet import SMEPacket, read_packet
from evalkit.review.stored import read_result
from evalkit.store import SEEDED, Files, digest, ground_truth_name, packet_name, result_name, seeded_name, shaped

SCHEMA_VERSION = 1

FaultKind = Literal["type", "boundary", "joined"]

_NAME = re.compile(rf"{SEEDED}/((.+)-[0-9a-f]{{8}})\.json")


class Fault(Frozen):
    """What is wrong on purpose in a shown answer."""

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


class Seeded(Frozen):
    """One seeded case: ``seeded/{case_id}.json``."""

    schema_version: int = SCHEMA_VERSION
    doc_id: str
    """The document whose pages are shown; the case has another name."""
    fault: Fault
    """What was planted."""
    truth_sha256: str
    """Of the ground truth (canonical JSON) that it was planted in; where that is another by now, what the fault hides must
    still be true, or nothing follows."""
    drawn_at: str
    """When (ISO 8601, UTC)."""
    packet: SMEPacket
    """The case, as it is put into the queue."""

    @model_validator(mode="after")
    def _is_marked(self) -> Self:
        if not self.packet.is_seeded or self.packet.shown_doc_id != self.doc_id:
            raise ValueError("the packet does not show that document's pages under another name")
        return self


def read_seeded(files: Files, case_id: str) -> Seeded:
    """What was planted in a case. NotFound; StoreError if it cannot be read, or is about another case."""
    name, remedy = seeded_name(case_id), "Restore it from a backup."
    seeded = shaped(Seeded, files.read(name, schema_version=SCHEMA_VERSION), name, remedy)
    if seeded.packet.case_id != case_id or case_id.rpartition("-")[0] != seeded.doc_id:
        raise StoreError(f"{name} is about another case", code="STORE-TORN", remedy=remedy)
    return seeded


def shown_document(files: Files, name: str) -> str:
    """The document whose pages go by that name: the one that a seeded case shows, else of that very name."""
    if files.exists(result_name(name)) or not files.exists(packet_name(name)):
        return name
    packet = read_packet(files, name)
    return packet.shown_doc_id if packet.is_seeded else name


def shown_result(files: Files, name: str) -> DocumentResult | DocumentFailure:
    """A document's result; of a seeded case what it shows as one, so that looking it up does not tell it apart.

    NotFound; StoreError where a file cannot be read.
    """
    doc_id = shown_document(files, name)
    result = read_result(files, doc_id)
    if doc_id == name or isinstance(result, DocumentFailure):
        return result
    packet = read_packet(files, name)
    return result.model_copy(
        update={
            "doc_id": name,
            "classification": packet.classification,
            "issues": packet.issues,
            "decision": packet.v5_decision,
            "decision_rule": packet.decision_rule,
            "decision_reason": packet.decision_reason,
        }
    )


def seeded_cases(files: Files) -> Iterator[tuple[str, str]]:
    """The case_ids of all seeded cases, in order, each with the doc_id of its document."""
    for name in files.names(SEEDED):
        if match := _NAME.fullmatch(name):
            yield match[1], match[2]


def seeded_by_document(files: Files) -> dict[str, list[str]]:
    """The case_ids of the seeded cases that show a document's pages, by its doc_id."""
    found: dict[str, list[str]] = {}
    for case_id, doc_id in seeded_cases(files):
        found.setdefault(doc_id, []).append(case_id)
    return found


def waits(files: Files, case_id: str) -> bool:
    """Whether a seeded case is in the queue and was not answered yet."""
    return files.exists(packet_name(case_id)) and not newest_revision(files, case_id)


def still_holds(files: Files, seeded: Seeded) -> bool:
    """Whether what the fault hides is still true: a revision of the document's other parts does not matter."""
    record = if_readable(files, ground_truth_name(seeded.doc_id))
    if record is None or digest(record) == seeded.truth_sha256:
        return record is not None
    try:
        truth = GroundTruth.model_validate(record)
    except ValidationError:
        return False
    return {"dominant_type", "segments"} <= {*truth.vouched} and _is_true(
        seeded.fault, truth.ground_truth_classification
    )


def _is_true(fault: Fault, truth: ClassificationOutput) -> bool:
    if fault.kind == "type":
        return (_types(truth, fault), truth.dominant_type_overall) == ({fault.true_type}, fault.true_dominant)
    starts = {one.start_page for one in truth.segments}
    return fault.true_start in starts and fault.shown_start not in starts


def is_noticed(fault: Fault, review: Review) -> bool:
    """Whether the answer corrects what was planted; whatever else it says does not matter.

    A type counts as corrected where none of its pages has the planted one any more, or where the file's type alone was
    corrected, to the true one; a beginning where the answer has the true one, and not the planted.
    """
    before, after = review.before, review.after
    if (
        review.outcome != "corrected"
        or not isinstance(after, ClassificationOutput)
        or not isinstance(before, ClassificationOutput)
    ):
        return False
    if fault.kind != "type":
        starts = {one.start_page for one in after.segments}
        return fault.true_start in starts and fault.shown_start not in starts
    if after.segments == before.segments:
        return before.dominant_type_overall != fault.true_dominant == after.dominant_type_overall
    return fault.shown_type not in _types(after, fault)


def _types(answer: ClassificationOutput, fault: Fault) -> set[DocumentType | None]:
    """The types of the segments that have a page of the fault's."""
    return {
        one.dominant_type
        for one in answer.segments
        if one.start_page <= fault.end_page and fault.start_page <= one.end_page
    }


def described(fault: Fault) -> str:
    """What was planted, in a sentence.

    >>> described(Fault(kind="boundary", start_page=5, end_page=5, shown_start=5, true_start=6))
    'A document was shown to begin on page 5; it begins on page 6.'
    """
    one_page = fault.start_page == fault.end_page
    pages = f"Page {fault.start_page}" if one_page else f"Pages {fault.start_page}–{fault.end_page}"
    if fault.kind == "type":
        shown, true = ("was shown as", "it is") if one_page else ("were shown as", "they are")
        return f"{pages} {shown} {fault.shown_type}; {true} {fault.true_type}."
    if fault.kind == "boundary":
        return f"A document was shown to begin on page {fault.shown_start}; it begins on page {fault.true_start}."
    return f"{pages} were shown as one document; another begins on page {fault.true_start}."


def feedback(fault: Fault, review: Review) -> str:
    """What its expert is told of a seeded case once it is answered."""
    seen = (
        "You saw it. Thank you."
        if is_noticed(fault, review)
        else "It went uncorrected this time, as it does to everybody now and then."
    )
    return (
        f"One fault was planted in this case, as you were told may happen. {described(fault)} {seen} "
        "Nothing that you said here changes the document."
    )
