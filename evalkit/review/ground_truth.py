"""Reviews are immutable files; ground truth is projected from the newest of them.

``reviews/{case_id}/0001.json``, ``0002.json`` … are created exclusively (that creation is the compare-and-swap), and
each carries the SHA-256 of the one before it. ``ground_truth/gt_{case_id}.json`` can be made again from them at any
time (``opinions`` does); only a silver record, an accepted classification that nobody has reviewed, comes from a result
instead.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from operator import not_
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationError

from evalkit.classification.autofix import Repair
from evalkit.classification.document_result import DocumentResult
from evalkit.classification.patient_keys import KeyedClassification, drop_patient_keys
from evalkit.classification.schema import ClassificationOutput
from evalkit.classification.v5_arbiter import Decision
from evalkit.core.records import StrictRecord
from evalkit.core.schema_by_reference import SchemaByReference
from evalkit.errors import NotFound, ReviewConflict, ReviewRefused, StoreError
from evalkit.extraction.extraction_schema import Extraction, Extractions
from evalkit.review.corrections import ClassificationPart
from evalkit.review.field_answers import (
    ExtractedFields,
    FieldKey,
    find_extraction_template,
    is_extraction_review_required,
)
from evalkit.review.packet import EXTRACTION_SUFFIX, ReviewStatus
from evalkit.review.permissions import ReviewerRole
from evalkit.review.write_lock import hold_case_write_lock
from evalkit.statements.statement_template import StatementTemplate
from evalkit.store import (
    REVIEWS_FOLDER,
    OutputFolder,
    ReviewChainHead,
    ground_truth_file_name,
    review_file_name,
)

SCHEMA_VERSION = 1

ReviewOutcome = Literal["validated", "corrected", "undeterminable", "reopened"]
GroundTruthSource = Literal["SME_VALIDATED", "SME_CORRECTED", "AUTO_ACCEPTED"]

#: The source of the ground truth after each outcome; None: there is none.
SOURCE_BY_OUTCOME: dict[ReviewOutcome, GroundTruthSource | None] = {
    "validated": "SME_VALIDATED",
    "corrected": "SME_CORRECTED",
    "undeterminable": None,
    "reopened": None,
}
#: The status of a case after each outcome.
STATUS_BY_OUTCOME: dict[ReviewOutcome, ReviewStatus] = {
    "validated": "completed",
    "corrected": "completed",
    "undeterminable": "completed",
    "reopened": "pending",
}

#: Reviews made by a program, for demonstrations and tests; they are marked in everything that is shown or exported.
SIMULATED_PREFIX = "simulated_"

#: A reviewed answer: a classification, the fields of each report and form, or a statement template.
ReviewedAnswer = (
    Annotated[ClassificationOutput, AfterValidator(drop_patient_keys)]
    | Annotated[tuple[ExtractedFields, ...], Field(min_length=1)]
    | Annotated[StatementTemplate, SchemaByReference()]
)
#: The part of a template that an expert vouches for: all of it.
TemplatePart = Literal["template"]

_REVIEW_FILE_PATTERN = re.compile(r"(\d{4,})\.json")


class IssueVerdict(StrictRecord):
    """The expert's verdict on an issue."""

    issue_id: str
    """The issue in the packet."""
    verdict: Literal["confirmed", "dismissed"]
    """``confirmed`` if it is a real fault."""
    note: str = ""
    """Why, in the expert's words."""


class ShownMachineAnswers(StrictRecord):
    """The machines' answers that the expert saw."""

    agent: bool = True
    """True if the agent's classification was on screen before the decision."""
    production: Literal["before", "after"] = "after"
    """When the production classifier's label was shown."""


class Review(StrictRecord):
    """One submitted review of one case: ``reviews/{case_id}/NNNN.json``."""

    schema_version: int = SCHEMA_VERSION
    reviewer: str
    """Who submitted it."""
    role: ReviewerRole = Field(default="expert", exclude_if=lambda role: role == "expert")
    """Their role by then. Written only if it is not an expert's."""
    submitted_at: str
    """When (ISO 8601, UTC)."""
    seconds_active: float | None
    """Active seconds; None if not measured."""
    outcome: ReviewOutcome
    """The decision."""
    before: ReviewedAnswer | None
    """The packet's classification, its fields or its template."""
    after: ReviewedAnswer | None
    """The classification, the fields or the template in the ground truth; None if there is none."""
    repairs_applied: tuple[Repair, ...] = ()
    """The repairs by arithmetic that validating applied."""
    correction_notes: str = ""
    """The expert's words; of ``undeterminable`` and ``reopened`` the reason."""
    issue_verdicts: tuple[IssueVerdict, ...] = ()
    """The expert's verdicts on single issues."""
    vouched: tuple[ClassificationPart | TemplatePart | FieldKey, ...] = ()
    """The vouched parts: those of a classification, fields by their keys (``1.wages_tips``), or ``template``."""
    unmet_sums: str = Field(default="", exclude_if=not_)
    """Why a template was approved although sums are not met. Written only if it was."""
    pages_seen: tuple[int, ...] = ()
    """The pages that were on screen, from 1."""
    evidence_seen: tuple[str, ...] = ()
    """The ids of the issues whose place was on screen."""
    shown: ShownMachineAnswers = ShownMachineAnswers()
    """The machines' answers that the expert saw."""
    segment_flags: tuple[dict[str, Any], ...] = ()
    """Remarks about single segments: ``{segment_index, start_page, end_page}`` with a ``flag``, a ``note`` or both."""
    second_opinion: str = ""
    """Why the expert asks a colleague to answer the case too; empty if they do not."""
    seeded: bool = Field(default=False, exclude_if=not_)
    """True if the shown answer was wrong on purpose: such a review measures its writer and does not count for the document.
    Written only if true."""
    packet_sha256: str
    """The packet that the expert saw."""
    prev_sha256: str | None = None
    """SHA-256 of the bytes of the review before this one; None for the first. Set on writing."""
    versions: dict[str, str]
    """Of evalkit and of the definitions of the types."""


class GroundTruthRecord(StrictRecord):
    """The part of a ground truth record that every kind of case has."""

    schema_version: int = SCHEMA_VERSION
    doc_id: str
    """The document."""
    ground_truth_source: GroundTruthSource
    """An expert agreed, an expert corrected, or (silver) nobody looked."""
    correction_notes: str
    """The expert's words."""
    reviewer: str | None
    """None for silver."""
    reviewed_at: str
    """When it was reviewed or accepted (ISO 8601, UTC)."""
    review_reason: str | None
    """Why the case was in the queue; None for silver."""
    inclusion_probability: float | None
    """The probability with which it was drawn; of silver, with which it could have been drawn for an audit."""
    packet_sha256: str | None
    """The packet that was reviewed; None for silver."""
    revision: int
    """The number of the review, an adjudication's counted on from the case's own; 0 for silver."""
    supersedes: int | None
    """The revision that it replaces (0: a silver record); None if it is the first."""


class GroundTruth(GroundTruthRecord):
    """The true types of a document, with their source.

    ``ground_truth/gt_{doc_id}.json``.
    """

    ground_truth_classification: KeyedClassification
    """The classification; only its ``vouched`` parts were looked at."""
    corrected_dominant_type: str | None
    """The overall type of a correction; None if nothing was corrected."""
    vouched: tuple[ClassificationPart, ...]
    """The parts that the expert vouches for; none for silver."""


class FieldsGroundTruth(GroundTruthRecord):
    """The true fields of a document, with their source.

    ``ground_truth/gt_{doc_id}.extraction.json``.
    """

    ground_truth_fields: tuple[ExtractedFields, ...]
    """By report and form; only the ``vouched`` ones were looked at."""
    vouched: tuple[FieldKey, ...]
    """The fields that the expert vouches for, by their keys (``1.wages_tips``); none for silver."""


class TemplateGroundTruth(GroundTruthRecord):
    """The approved template of a bank's statements.

    ``ground_truth/gt_{template_id}.statement_template.json``.
    """

    ground_truth_template: Annotated[StatementTemplate, SchemaByReference()]
    """As ``templates/{template_id}.toml`` has it from then on: stable."""
    unmet_sums: str
    """Why it was approved although sums are not met; empty if they are."""
    vouched: tuple[TemplatePart, ...]
    """The expert vouches for all of it."""


def is_simulated_reviewer(reviewer: str | None) -> bool:
    """Decide by the name whether a program reviewed, not a person."""
    return reviewer is not None and reviewer.startswith(SIMULATED_PREFIX)


def list_revisions(output_folder: OutputFolder, case_id: str) -> list[int]:
    """List the numbers of a case's reviews, in order."""
    names = (name.rpartition("/")[2] for name in output_folder.list_json_files(f"{REVIEWS_FOLDER}/{case_id}"))
    return sorted(int(match[1]) for name in names if (match := _REVIEW_FILE_PATTERN.fullmatch(name)))


def find_newest_revision(output_folder: OutputFolder, case_id: str) -> int:
    """Find the number of a case's newest review; 0 if there is none."""
    return max(list_revisions(output_folder, case_id), default=0)


def derive_review_status(newest_review: Review | None) -> ReviewStatus:
    """Derive the status of a case from its newest review."""
    return STATUS_BY_OUTCOME[newest_review.outcome] if newest_review else "pending"


def append_chained_review(output_folder: OutputFolder, case_id: str, review: Review, *, base_revision: int) -> Review:
    """Write the review after ``base_revision`` (0: none yet), chained to it by hash.

    Return it. ReviewConflict, and nothing is written, if that one is not or no longer the newest.
    """
    conflict_error = ReviewConflict(
        f"the newest review of case {case_id!r} is not, or no longer, revision {base_revision}",
        code="REVIEW-CONFLICT",
        remedy="Load the case again and look at its newest review before you save.",
    )
    if find_newest_revision(output_folder, case_id) != base_revision:
        raise conflict_error
    previous_sha256 = hash_review_file(output_folder, case_id, base_revision) if base_revision else None
    chained_review = review.model_copy(update={"prev_sha256": previous_sha256})
    if not output_folder.create_json_if_absent(
        review_file_name(case_id, base_revision + 1), chained_review.model_dump(mode="json")
    ):
        raise conflict_error
    return chained_review


def hash_review_file(output_folder: OutputFolder, case_id: str, revision: int) -> str:
    """Hash the bytes of a review's file (SHA-256, hex) for the next one's chain.

    NotFound; StoreError.
    """
    return hashlib.sha256(output_folder.read_bytes(review_file_name(case_id, revision))).hexdigest()


def is_newest_review_unchanged(output_folder: OutputFolder, head: ReviewChainHead) -> bool:
    """Decide whether a case's newest review is still there and unchanged.

    StoreError if unreadable.
    """
    try:
        return hash_review_file(output_folder, head.case_id, head.revision) == head.sha256
    except NotFound:
        return False


def write_silver_ground_truth(
    output_folder: OutputFolder, result: DocumentResult, *, accepted_at: str, inclusion_probability: float | None = None
) -> bool:
    """Write an accepted result as silver ground truth.

    Return whether anything was written. Nothing is written if any review exists, or if the record differs only in
    its time. ``accepted_at`` is ISO 8601 in UTC; ``inclusion_probability`` is that of being drawn for an audit,
    0..1. ReviewRefused for a result that was not accepted.
    """
    record = build_silver_ground_truth(result, accepted_at=accepted_at, inclusion_probability=inclusion_probability)
    return _write_silver_record(output_folder, result.doc_id, record)


def build_silver_ground_truth(
    result: DocumentResult, *, accepted_at: str, inclusion_probability: float | None
) -> GroundTruth:
    """Build silver ground truth.

    Arguments and ReviewRefused as of ``write_silver_ground_truth``.
    """
    if result.decision is not Decision.AUTO_ACCEPT or result.classification is None:
        raise ReviewRefused(
            f"document {result.doc_id!r} was not accepted", code="REVIEW-NOT-ACCEPTED", remedy="Let an expert decide."
        )
    return GroundTruth(
        ground_truth_classification=result.classification,
        corrected_dominant_type=None,
        **_build_silver_header(result.doc_id, accepted_at, inclusion_probability),
    )


def write_silver_fields_if_unreviewed(
    output_folder: OutputFolder, document_extractions: Extractions, *, accepted_at: str
) -> bool:
    """Write fields that need no person as silver ground truth.

    As ``write_silver_ground_truth``. Accepted fields are not drawn for audits: the probability is 0. ReviewRefused
    if some need a person, or there are none.
    """
    return _write_silver_record(
        output_folder,
        document_extractions.doc_id + EXTRACTION_SUFFIX,
        build_silver_fields(document_extractions, accepted_at=accepted_at),
    )


def build_silver_fields(document_extractions: Extractions, *, accepted_at: str) -> FieldsGroundTruth:
    """Build silver fields; ReviewRefused as of ``write_silver_fields_if_unreviewed``."""
    if not document_extractions.extractions or any(
        map(is_extraction_review_required, document_extractions.extractions)
    ):
        raise ReviewRefused(
            f"the fields of document {document_extractions.doc_id!r} were not accepted",
            code="REVIEW-NOT-ACCEPTED",
            remedy="Let an expert decide.",
        )
    return FieldsGroundTruth(
        ground_truth_fields=tuple(map(ExtractedFields.from_extraction, document_extractions.extractions)),
        **_build_silver_header(document_extractions.doc_id, accepted_at, 0.0),
    )


def _build_silver_header(doc_id: str, accepted_at: str, inclusion_probability: float | None) -> dict[str, Any]:
    return {
        "doc_id": doc_id,
        "ground_truth_source": "AUTO_ACCEPTED",
        "correction_notes": "",
        "reviewer": None,
        "reviewed_at": accepted_at,
        "vouched": (),
        "review_reason": None,
        "inclusion_probability": inclusion_probability,
        "packet_sha256": None,
        "revision": 0,
        "supersedes": None,
    }


def _write_silver_record(output_folder: OutputFolder, case_id: str, truth: GroundTruth | FieldsGroundTruth) -> bool:
    name, record = ground_truth_file_name(case_id), truth.model_dump(mode="json")
    with hold_case_write_lock(output_folder, case_id):
        if list_revisions(output_folder, case_id):
            return False
        stored = read_json_unless_missing_or_torn(output_folder, name)
        if stored is not None and {**stored, "reviewed_at": record["reviewed_at"]} == record:
            return False
        output_folder.write_json(name, record)
        return True


def read_silver_audit_probability(output_folder: OutputFolder, doc_id: str) -> float | None:
    """Read the audit probability of an accepted document.

    None without a silver record.
    """
    stored = _read_silver_record(output_folder, ground_truth_file_name(doc_id))
    probability = stored.get("inclusion_probability") if stored else None
    if isinstance(probability, bool) or not isinstance(probability, int | float):
        return None
    return float(probability) if 0 <= probability <= 1 else None


def withdraw_silver_ground_truth(output_folder: OutputFolder, case_id: str) -> bool:
    """Remove the silver record of a case that is no longer accepted.

    Return whether there was one.
    """
    name = ground_truth_file_name(case_id)
    with hold_case_write_lock(output_folder, case_id):
        return _read_silver_record(output_folder, name) is not None and output_folder.remove_file(name)


def _read_silver_record(output_folder: OutputFolder, name: str) -> dict[str, Any] | None:
    """Read a silver record; None if it is missing, torn, or replaced by an expert's."""
    stored = read_json_unless_missing_or_torn(output_folder, name)
    return stored if stored and stored.get("ground_truth_source") == "AUTO_ACCEPTED" else None


def has_types_matching_ground_truth(
    output_folder: OutputFolder, doc_id: str, forms: Iterable[ExtractedFields | Extraction]
) -> bool:
    """Decide whether the reports' types are those of the ground truth.

    Fields of a type that waits for a person, or that was corrected since, are those of another document. A form names
    its type itself.
    """
    reports = [
        form
        for form in forms
        if (form_template := find_extraction_template(form)) is None or form_template.kind != "tax"
    ]
    if not reports:
        return True
    stored = read_json_unless_missing_or_torn(output_folder, ground_truth_file_name(doc_id))
    try:
        segments = GroundTruth.model_validate(stored).ground_truth_classification.segments
    except ValidationError:  # there is none, or it is torn
        return False
    return all(
        any(
            segment.start_page <= form.start_page
            and form.end_page <= segment.end_page
            and segment.dominant_type == form.document_type
            for segment in segments
        )
        for form in reports
    )


def remove_mismatched_silver_fields(output_folder: OutputFolder, doc_id: str) -> None:
    """Remove a document's silver fields once its types differ.

    The caller holds the lock.
    """
    name = ground_truth_file_name(doc_id + EXTRACTION_SUFFIX)
    stored = _read_silver_record(output_folder, name)
    if stored is None:
        return
    try:
        forms = FieldsGroundTruth.model_validate(stored).ground_truth_fields
    except ValidationError:
        forms = ()
    if not forms or not has_types_matching_ground_truth(output_folder, doc_id, forms):
        output_folder.remove_file(name)


def read_json_unless_missing_or_torn(output_folder: OutputFolder, name: str) -> dict[str, Any] | None:
    """Read a file that can be made again; None if it is missing or torn."""
    try:
        return output_folder.read_json(name, max_schema_version=SCHEMA_VERSION)
    except StoreError as error:
        if error.code in ("STORE-NOT-FOUND", "STORE-TORN"):
            return None
        raise
