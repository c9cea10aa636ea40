"""Reviews are immutable files; ground truth is the newest of them, projected.

``reviews/{case_id}/0001.json``, ``0002.json`` … are created exclusively (that creation is the compare-and-swap), and
each carries the SHA-256 of the one before it. ``ground_truth/gt_{case_id}.json`` can be made again from them at any
time (``opinions`` does); only a silver record, an accepted classification that nobody has looked at, comes from a
result instead.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Container, Iterable, Sequence
from operator import not_
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationError

from evalkit.classification.autofix import Repair
from evalkit.classification.document_result import DocumentResult
from evalkit.classification.patient_keys import KeyedClassification, attach_patient_keys, drop_patient_keys
from evalkit.classification.schema import ClassificationOutput
from evalkit.classification.v5_arbiter import Decision
from evalkit.core.records import StrictRecord
from evalkit.core.schema_by_reference import SchemaByReference
from evalkit.errors import NotFound, ReviewConflict, ReviewRefused, StoreError
from evalkit.extraction.extraction_schema import Extraction, Extractions
from evalkit.review.corrections import ClassificationPart
from evalkit.review.field_answers import ExtractedFields, FieldKey, find_extraction_template
from evalkit.review.packet import EXTRACTION_SUFFIX, ReviewStatus, SMEPacket, is_extraction_review_required
from evalkit.review.permissions import ReviewerRole
from evalkit.review.write_lock import hold_case_write_lock
from evalkit.statements.statement_template import StatementTemplate
from evalkit.store import (
    REVIEWS_FOLDER,
    OutputFolder,
    ReviewChainHead,
    ground_truth_file_name,
    parse_stored_record,
    review_file_name,
)

SCHEMA_VERSION = 1

ReviewOutcome = Literal["validated", "corrected", "undeterminable", "reopened"]
GroundTruthSource = Literal["SME_VALIDATED", "SME_CORRECTED", "AUTO_ACCEPTED"]

#: What becomes of the ground truth after each outcome; None: there is none.
SOURCE_BY_OUTCOME: dict[ReviewOutcome, GroundTruthSource | None] = {
    "validated": "SME_VALIDATED",
    "corrected": "SME_CORRECTED",
    "undeterminable": None,
    "reopened": None,
}
#: Where a case stands after each outcome.
STATUS_BY_OUTCOME: dict[ReviewOutcome, ReviewStatus] = {
    "validated": "completed",
    "corrected": "completed",
    "undeterminable": "completed",
    "reopened": "pending",
}

#: Reviews made by a program, for demonstrations and tests; they are marked in everything that is shown or exported.
SIMULATED_PREFIX = "simulated_"

#: What a reviewed case says: a classification, the fields of each report and form, or a statement template.
ReviewedAnswer = (
    Annotated[ClassificationOutput, AfterValidator(drop_patient_keys)]
    | Annotated[tuple[ExtractedFields, ...], Field(min_length=1)]
    | Annotated[StatementTemplate, SchemaByReference()]
)
#: What an expert stands for in a case about a template: all of it.
TemplatePart = Literal["template"]

_REVIEW_FILE_PATTERN = re.compile(r"(\d{4,})\.json")


class IssueVerdict(StrictRecord):
    """What the expert says about one issue."""

    issue_id: str
    """The issue in the packet."""
    verdict: Literal["confirmed", "dismissed"]
    """Whether it is a real fault."""
    note: str = ""
    """Why, in the expert's words."""


class ShownMachineAnswers(StrictRecord):
    """What the expert saw of the machines' opinions."""

    agent: bool = True
    """Whether the agent's classification was on screen before the decision."""
    production: Literal["before", "after"] = "after"
    """Whether the production classifier's label was shown before or after the decision."""


class Review(StrictRecord):
    """One submitted review of one case: ``reviews/{case_id}/NNNN.json``."""

    schema_version: int = SCHEMA_VERSION
    reviewer: str
    """Who submitted it."""
    role: ReviewerRole = Field(default="expert", exclude_if=lambda role: role == "expert")
    """Theirs by then. Written down only where it is another than an expert's."""
    submitted_at: str
    """When (ISO 8601, UTC)."""
    seconds_active: float | None
    """How long the expert worked on it; None where nobody measured."""
    outcome: ReviewOutcome
    """What was decided."""
    before: ReviewedAnswer | None
    """The packet's classification, its fields or its template."""
    after: ReviewedAnswer | None
    """The classification, the fields or the template in the ground truth; None where there is none."""
    repairs_applied: tuple[Repair, ...] = ()
    """What validating mended by arithmetic."""
    correction_notes: str = ""
    """The expert's words; of ``undeterminable`` and ``reopened`` the reason."""
    issue_verdicts: tuple[IssueVerdict, ...] = ()
    """What the expert said about single issues."""
    vouched: tuple[ClassificationPart | TemplatePart | FieldKey, ...] = ()
    """What the expert stands for: parts of a classification, fields by their keys (``1.wages_tips``), or ``template``."""
    unmet_sums: str = Field(default="", exclude_if=not_)
    """Why a template was approved although sums are not met. Written down only where it is so."""
    pages_seen: tuple[int, ...] = ()
    """The pages that were on screen, from 1."""
    evidence_seen: tuple[str, ...] = ()
    """The ids of the issues whose place was on screen."""
    shown: ShownMachineAnswers = ShownMachineAnswers()
    """What the expert saw of the machines' opinions."""
    segment_flags: tuple[dict[str, Any], ...] = ()
    """Remarks about single segments: ``{segment_index, start_page, end_page}`` with a ``flag``, a ``note`` or both."""
    second_opinion: str = ""
    """Why the expert asks a colleague to answer the case too; empty where they do not."""
    seeded: bool = Field(default=False, exclude_if=not_)
    """Whether the shown answer was wrong on purpose: such a review measures its writer and is no word about the document.
    Written down only where it is so."""
    packet_sha256: str
    """What the expert had before their eyes."""
    prev_sha256: str | None = None
    """SHA-256 of the bytes of the review before this one; None for the first. Set on writing."""
    versions: dict[str, str]
    """Of evalkit and of the definitions of the types."""


class _GroundTruthRecord(StrictRecord):
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
    """The revision that it replaces (0: a silver record); None where it is the first."""


class GroundTruth(_GroundTruthRecord):
    """What is true about one document, and who says so: ``ground_truth/gt_{doc_id}.json``."""

    ground_truth_classification: KeyedClassification
    """The classification; only its ``vouched`` parts were looked at."""
    corrected_dominant_type: str | None
    """The overall type of a correction; None where nothing was corrected."""
    vouched: tuple[ClassificationPart, ...]
    """What the expert stands for; nothing for silver."""


class FieldsGroundTruth(_GroundTruthRecord):
    """What a document's fields truly are, and who says so: ``ground_truth/gt_{doc_id}.extraction.json``."""

    ground_truth_fields: tuple[ExtractedFields, ...]
    """By report and form; only the ``vouched`` ones were looked at."""
    vouched: tuple[FieldKey, ...]
    """The fields that the expert stands for, by their keys (``1.wages_tips``); none for silver."""


class TemplateGroundTruth(_GroundTruthRecord):
    """How a bank's statements are read, and who says so: ``ground_truth/gt_{template_id}.statement_template.json``."""

    ground_truth_template: Annotated[StatementTemplate, SchemaByReference()]
    """As ``templates/{template_id}.toml`` has it from then on: stable."""
    unmet_sums: str
    """Why it was approved although sums are not met; empty where they are."""
    vouched: tuple[TemplatePart, ...]
    """The expert stands for all of it."""


def is_simulated_reviewer(reviewer: str | None) -> bool:
    """Whether a program reviewed, not a person: the name tells."""
    return reviewer is not None and reviewer.startswith(SIMULATED_PREFIX)


def list_revisions(output_folder: OutputFolder, case_id: str) -> list[int]:
    """The numbers of a case's reviews, in order."""
    names = (name.rpartition("/")[2] for name in output_folder.list_json_files(f"{REVIEWS_FOLDER}/{case_id}"))
    return sorted(int(match[1]) for name in names if (match := _REVIEW_FILE_PATTERN.fullmatch(name)))


def find_newest_revision(output_folder: OutputFolder, case_id: str) -> int:
    """The number of a case's newest review; 0 where there is none."""
    return max(list_revisions(output_folder, case_id), default=0)


def read_review(output_folder: OutputFolder, case_id: str, revision: int) -> Review:
    """One review. NotFound; StoreError if it cannot be read."""
    name = review_file_name(case_id, revision)
    return parse_stored_record(
        Review, output_folder.read_json(name, max_schema_version=SCHEMA_VERSION), name, "Restore it from a backup."
    )


def read_numbered_reviews(output_folder: OutputFolder, case_id: str) -> list[tuple[int, Review]]:
    """A case's reviews with their numbers, oldest first."""
    return [(number, read_review(output_folder, case_id, number)) for number in list_revisions(output_folder, case_id)]


def derive_review_status(newest_review: Review | None) -> ReviewStatus:
    """Where a case with that newest review stands."""
    return STATUS_BY_OUTCOME[newest_review.outcome] if newest_review else "pending"


def append_chained_review(output_folder: OutputFolder, case_id: str, review: Review, *, base_revision: int) -> Review:
    """Write the review that follows ``base_revision`` (0: none yet), chained to it by hash; give it as it was written.

    ReviewConflict, and nothing written, if that one is not, or at this moment no longer, the newest.
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
    """SHA-256 (hex) of the bytes of a review's file: what the next one is chained to. NotFound; StoreError."""
    return hashlib.sha256(output_folder.read_bytes(review_file_name(case_id, revision))).hexdigest()


def is_newest_review_unchanged(output_folder: OutputFolder, head: ReviewChainHead) -> bool:
    """Whether the review that was the newest of its case is there, and is what it was. StoreError where nobody can tell."""
    try:
        return hash_review_file(output_folder, head.case_id, head.revision) == head.sha256
    except NotFound:
        return False


def project_ground_truth(
    packet: SMEPacket,
    numbered_reviews: Sequence[tuple[int, Review]],
    *,
    non_ground_truth_revisions: Container[int] = (),
) -> GroundTruth | FieldsGroundTruth | TemplateGroundTruth | None:
    """The ground truth of a case from its numbered reviews, oldest first; None where the newest leaves none.

    It supersedes the newest earlier review that gave ground truth, also one that was reopened since, but none of those
    that are ``non_ground_truth_revisions``; failing that the silver record (0) of a document that was accepted. An attention check has none,
    whatever was said about it. Whom a segment is about is known where the packet has one of the same pages.
    """
    if not numbered_reviews or packet.is_attention_check or any(review.seeded for _, review in numbered_reviews):
        return None
    revision, newest_review = numbered_reviews[-1]
    source = SOURCE_BY_OUTCOME[newest_review.outcome]
    if source is None or newest_review.after is None:
        return None
    earlier_revisions = [
        number
        for number, review in numbered_reviews[:-1]
        if SOURCE_BY_OUTCOME[review.outcome] and number not in non_ground_truth_revisions
    ]
    silver_revision = 0 if packet.v5_decision is Decision.AUTO_ACCEPT else None
    common_fields: dict[str, Any] = {
        "doc_id": packet.doc_id,
        "ground_truth_source": source,
        "correction_notes": newest_review.correction_notes,
        "reviewer": newest_review.reviewer,
        "reviewed_at": newest_review.submitted_at,
        "vouched": newest_review.vouched,
        "review_reason": packet.review_reason,
        "inclusion_probability": packet.inclusion_probability,
        "packet_sha256": newest_review.packet_sha256,
        "revision": revision,
        "supersedes": max(earlier_revisions, default=silver_revision),
    }
    if isinstance(newest_review.after, tuple):
        return FieldsGroundTruth(ground_truth_fields=newest_review.after, **common_fields)
    if isinstance(newest_review.after, StatementTemplate):
        return TemplateGroundTruth(
            ground_truth_template=newest_review.after, unmet_sums=newest_review.unmet_sums, **common_fields
        )
    is_corrected = source == "SME_CORRECTED"
    return GroundTruth(
        ground_truth_classification=attach_patient_keys(
            newest_review.after, packet.classification.patient_keys_by_page_range if packet.classification else {}
        ),
        corrected_dominant_type=newest_review.after.dominant_type_overall if is_corrected else None,
        **common_fields,
    )


def write_silver_ground_truth(
    output_folder: OutputFolder, result: DocumentResult, *, accepted_at: str, inclusion_probability: float | None = None
) -> bool:
    """Write an accepted result as silver ground truth; whether anything was written.

    Never where any review exists, whatever its outcome. A record that is equal but for its clock stays as it is.
    ``accepted_at`` is ISO 8601 in UTC; ``inclusion_probability`` is that of being drawn for an audit, 0..1.
    ReviewRefused for a result that was not accepted.
    """
    record = build_silver_ground_truth(result, accepted_at=accepted_at, inclusion_probability=inclusion_probability)
    return _write_silver_record(output_folder, result.doc_id, record)


def build_silver_ground_truth(
    result: DocumentResult, *, accepted_at: str, inclusion_probability: float | None
) -> GroundTruth:
    """An accepted result as silver ground truth; arguments and ReviewRefused as of ``write_silver_ground_truth``."""
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
    """Write fields of which no report or form goes to a person as silver ground truth; as ``write_silver_ground_truth``.

    Accepted fields are not drawn for audits: the probability is 0. ReviewRefused where some go to a person, or there
    are none.
    """
    return _write_silver_record(
        output_folder,
        document_extractions.doc_id + EXTRACTION_SUFFIX,
        build_silver_fields(document_extractions, accepted_at=accepted_at),
    )


def build_silver_fields(document_extractions: Extractions, *, accepted_at: str) -> FieldsGroundTruth:
    """Accepted fields as silver ground truth; ReviewRefused as of ``write_silver_fields_if_unreviewed``."""
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
    """With which probability an accepted document could be drawn for an audit; None without a silver record."""
    stored = _read_silver_record(output_folder, ground_truth_file_name(doc_id))
    probability = stored.get("inclusion_probability") if stored else None
    if isinstance(probability, bool) or not isinstance(probability, int | float):
        return None
    return float(probability) if 0 <= probability <= 1 else None


def withdraw_silver_ground_truth(output_folder: OutputFolder, case_id: str) -> bool:
    """Remove the silver record of what is no longer accepted; whether there was one. Others stay."""
    name = ground_truth_file_name(case_id)
    with hold_case_write_lock(output_folder, case_id):
        return _read_silver_record(output_folder, name) is not None and output_folder.remove_file(name)


def _read_silver_record(output_folder: OutputFolder, name: str) -> dict[str, Any] | None:
    """A silver record; None where there is none, it is torn, or an expert's is in its place."""
    stored = read_json_unless_missing_or_torn(output_folder, name)
    return stored if stored and stored.get("ground_truth_source") == "AUTO_ACCEPTED" else None


def has_types_matching_ground_truth(
    output_folder: OutputFolder, doc_id: str, forms: Iterable[ExtractedFields | Extraction]
) -> bool:
    """Whether the reports are of the types that the document's own ground truth has on their pages.

    Fields of a type that waits for a person, or that an expert has corrected since, are those of another document. A form
    names its type itself.
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
    """Remove the silver record of a document's fields once its types differ from the ground truth; the caller holds the lock."""
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
    """A file that can be made again; None where there is none, or it is torn."""
    try:
        return output_folder.read_json(name, max_schema_version=SCHEMA_VERSION)
    except StoreError as error:
        if error.code in ("STORE-NOT-FOUND", "STORE-TORN"):
            return None
        raise
