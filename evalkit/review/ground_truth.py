"""Records of reviews (immutable) and of the ground truth derived from them.

``reviews/{case_id}/0001.json``, ``0002.json`` … are created exclusively (the creation is the compare-and-swap), and each
contains the SHA-256 of the previous one. ``ground_truth/gt_{case_id}.json`` can be rebuilt from the reviews at any time
(``opinions`` does so). Only a silver record, for an accepted answer that nobody has reviewed, is built from the result
instead.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from operator import not_
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationError

from evalkit.classification.autofix import Repair
from evalkit.classification.document_result import DocumentResult
from evalkit.classification.patient_keys import KeyedClassification, drop_patient_keys
from evalkit.classification.schema import DocumentType, ReviewedClassification
from evalkit.classification.v5_arbiter import Decision
from evalkit.core.package_tables import load_package_table
from evalkit.core.records import SchemaByReference, StrictRecord
from evalkit.errors import NotFound, ReviewConflict, ReviewRefused, StoreError
from evalkit.extraction.extraction_schema import Extraction, Extractions
from evalkit.review.corrections import ClassificationPart
from evalkit.review.field_answers import (
    ExtractedFields,
    FieldKey,
    find_extraction_template,
)
from evalkit.review.packet import EXTRACTION_SUFFIX, ReviewStatus
from evalkit.review.permissions import ReviewerRole
from evalkit.review.review_plan import QuestionPart
from evalkit.review.write_lock import hold_case_write_lock
from evalkit.statements.statement_template import StatementTemplate
from evalkit.store import (
    REVIEWS_FOLDER,
    OutputFolder,
    ReviewChainHead,
    ground_truth_file_name,
    hash_canonical_json,
    review_file_name,
)

SCHEMA_VERSION = 1

ReviewOutcome = Literal["validated", "corrected", "undeterminable", "reopened"]
GroundTruthSource = Literal["SME_VALIDATED", "SME_CORRECTED", "AUTO_ACCEPTED"]

#: The source of the ground truth after a review with each outcome; None if the outcome leaves no ground truth.
SOURCE_BY_OUTCOME: dict[ReviewOutcome, GroundTruthSource | None] = {
    "validated": "SME_VALIDATED",
    "corrected": "SME_CORRECTED",
    "undeterminable": None,
    "reopened": None,
}
#: The status of a case after a review with each outcome.
STATUS_BY_OUTCOME: dict[ReviewOutcome, ReviewStatus] = {
    "validated": "completed",
    "corrected": "completed",
    "undeterminable": "completed",
    "reopened": "pending",
}

#: Prefix of the names of reviewers that are programs, for demonstrations and tests; reports and exports mark their reviews.
SIMULATED_PREFIX = "simulated_"

#: Answer of a case: a classification, the fields of each report and form, or a statement template.
ReviewedAnswer = (
    Annotated[ReviewedClassification, AfterValidator(drop_patient_keys)]
    | Annotated[tuple[ExtractedFields, ...], Field(min_length=1)]
    | Annotated[StatementTemplate, SchemaByReference()]
)
#: The only part of a template for which an expert can vouch: the whole template.
TemplatePart = Literal["template"]
_REVIEW_FILE_PATTERN = re.compile(r"(\d{4,})\.json")


class IssueVerdict(StrictRecord):
    """An expert's verdict on one issue of a case."""

    issue_id: str
    """Id of the issue in the packet."""
    verdict: Literal["confirmed", "dismissed"]
    """``confirmed`` if the issue names a real fault, else ``dismissed``."""
    note: str = ""
    """The expert's reason."""


class RefutedQuote(StrictRecord):
    """A quote of the agent's answer that an expert struck out."""

    segment: int
    """The segment's number in the agent's answer."""
    document_type: DocumentType
    """The type for which the words were quoted."""
    snippet: str
    """The words. All quotes of them for this type in this segment are struck, whatever page they name."""


class ShownMachineAnswers(StrictRecord):
    """Record of which of the program's answers the expert saw, and when."""

    agent: bool = True
    """True if the agent's classification was on screen before the decision."""
    production: Literal["before", "after"] = "after"
    """Time at which the production classifier's label was shown: before or after the expert's decision."""
    form: Literal["whole", "short"] = Field(default="whole", exclude_if=lambda form: form == "whole")
    """``short`` if the expert was asked only about the parts in doubt, and did not open the rest. Not written if whole."""


class Signature(StrictRecord):
    """Reviewer's signed statement, linked by hash to the review and earlier ones.

    The reviewer's name and the time are fields of the review. Source: 21 CFR 11.50 and 11.70.
    """

    meaning: str
    """The statement that was on screen beside the button: a text of ``signature_meanings.toml``. An imported answer has
    one that says so, because nobody signed it in evalkit."""
    document_sha256: str | None
    """SHA-256 (hex) of the document's bytes; None for a case that was reopened."""
    record_sha256: str = ""
    """SHA-256 (hex) of the canonical JSON of the review, with this field empty. Set when the file is written."""


class ImportedAnswer(StrictRecord):
    """Origin of a review that was given in another tool, not on evalkit's screen."""

    tool: str
    """Name of the tool."""
    annotator: str
    """The annotator's e-mail address or number in the tool."""
    annotation_id: str
    """The annotation's number in the tool."""
    answered_at: str | None
    """Time of the answer by the tool's clock (ISO 8601, UTC); None if the tool gave none."""
    answer_sha256: str
    """SHA-256 (hex) of the canonical JSON of the answer, by which one that comes again is recognised."""


class Review(StrictRecord):
    """One submitted review of one case, stored as ``reviews/{case_id}/NNNN.json``."""

    schema_version: int = SCHEMA_VERSION
    reviewer: str
    """Name of the reviewer who submitted the review."""
    role: ReviewerRole = Field(default="expert", exclude_if=lambda role: role == "expert")
    """The reviewer's role at that time; not written for an expert."""
    submitted_at: str
    """Time of submission (ISO 8601, UTC)."""
    seconds_active: float | None
    """Seconds for which the reviewer actively worked on the case; None if not measured."""
    outcome: ReviewOutcome
    """The reviewer's decision."""
    before: ReviewedAnswer | None
    """The agent's answer in the packet: classification, fields or template."""
    after: ReviewedAnswer | None
    """The answer that the review declares true; None if the review leaves no ground truth."""
    repairs_applied: tuple[Repair, ...] = ()
    """The automatic repairs that were applied because the reviewer validated the answer."""
    correction_notes: str = ""
    """The reviewer's notes; for ``undeterminable`` and ``reopened``, the reason comes first."""
    issue_verdicts: tuple[IssueVerdict, ...] = ()
    """The reviewer's verdicts on single issues."""
    vouched: tuple[ClassificationPart | TemplatePart | FieldKey | QuestionPart, ...] = ()
    """The parts for which the reviewer vouches: parts of a classification, field keys (``1.wages_tips``), or ``template``."""
    refuted: tuple[RefutedQuote, ...] = Field(default=(), exclude_if=not_)
    """The quotes that the reviewer struck; they are in ``before`` and not in ``after``. Not written if empty."""
    changes: tuple[str, ...] = Field(default=(), exclude_if=not_)
    """The differences of ``after`` from ``before`` that follow from the reviewer's answers, a line each. Not written if empty."""
    unmet_sums: str = Field(default="", exclude_if=not_)
    """The reason for approving a template although its sums do not add up; not written if empty."""
    pages_seen: tuple[int, ...] = ()
    """The pages that were on screen, from 1."""
    evidence_seen: tuple[str, ...] = ()
    """The ids of the issues whose place in the document was on screen."""
    shown: ShownMachineAnswers = ShownMachineAnswers()
    """The automatic answers that the reviewer saw."""
    segment_flags: tuple[dict[str, Any], ...] = ()
    """Remarks about single segments: ``{segment_index, start_page, end_page}`` with a ``flag``, a ``note`` or both."""
    second_opinion: str = ""
    """The reason why the reviewer asks a colleague to answer the case too; empty if no second opinion is asked for."""
    seeded: bool = Field(default=False, exclude_if=not_)
    """True if the case was an attention check: the review measures the reviewer and never becomes ground truth. Not written
    if False."""
    unblinded: bool = Field(default=False, exclude_if=not_)
    """True if this answer replaces one that the same reviewer gave before the program's answer was shown. Estimates and
    agreement count the blind answer, ground truth is this one. Not written if False."""
    imported: ImportedAnswer | None = Field(default=None, exclude_if=not_)
    """Where the answer was given, if not on evalkit's screen or in a notebook. Not written otherwise."""
    packet_sha256: str
    """SHA-256 (hex) of the packet that the reviewer saw."""
    prev_sha256: str | None = None
    """SHA-256 (hex) of the bytes of the previous review's file; None for the first review. Set when the file is written."""
    versions: dict[str, str]
    """Versions of evalkit and of the type definitions."""
    signature: Signature | None = Field(default=None, exclude_if=not_)
    """The reviewer's statement. None, and not written, in reviews of older versions of evalkit."""

    def compute_record_digest(self) -> str:
        """Compute ``signature.record_sha256``: SHA-256 (hex) of all other content."""
        record = self.model_dump(mode="json")
        return hash_canonical_json(record | {"signature": record["signature"] | {"record_sha256": ""}})


class GroundTruthRecord(StrictRecord):
    """Fields of a ground truth record that all kinds of case share."""

    schema_version: int = SCHEMA_VERSION
    doc_id: str
    """The document's id."""
    ground_truth_source: GroundTruthSource
    """Origin of the record: an expert validated, an expert corrected, or accepted without review (silver)."""
    correction_notes: str
    """The reviewer's notes; empty for silver."""
    reviewer: str | None
    """Name of the reviewer; None for silver."""
    reviewed_at: str
    """Time of the review or, for silver, of the acceptance (ISO 8601, UTC)."""
    review_reason: str | None
    """The reason why the case was in the queue; None for silver."""
    inclusion_probability: float | None
    """The probability (0..1) with which the case was drawn for review; for silver, with which an audit could have drawn it."""
    packet_sha256: str | None
    """SHA-256 (hex) of the reviewed packet; None for silver."""
    revision: int
    """Number of the review; an adjudication's number continues the base case's numbers. 0 for silver."""
    supersedes: int | None
    """The revision that this record replaces (0: a silver record); None if it replaces none."""


class GroundTruth(GroundTruthRecord):
    """Ground truth of a classification: ``ground_truth/gt_{doc_id}.json``."""

    ground_truth_classification: KeyedClassification
    """The true classification; the expert has checked only its ``vouched`` parts and quotes."""
    corrected_dominant_type: str | None
    """The overall type if the expert corrected the classification; None otherwise."""
    vouched: tuple[ClassificationPart | QuestionPart, ...]
    """The parts for which the expert vouches; empty for silver."""


class FieldsGroundTruth(GroundTruthRecord):
    """Ground truth of fields: ``ground_truth/gt_{doc_id}.extraction.json``."""

    ground_truth_fields: tuple[ExtractedFields, ...]
    """The true fields of each report and form; the expert has checked only the ``vouched`` fields."""
    vouched: tuple[FieldKey, ...]
    """The keys (``1.wages_tips``) of the fields for which the expert vouches; empty for silver."""


class TemplateGroundTruth(GroundTruthRecord):
    """Approved template: ``ground_truth/gt_{template_id}.statement_template.json``."""

    ground_truth_template: Annotated[StatementTemplate, SchemaByReference()]
    """The approved template, also written to ``templates/{template_id}.toml`` with the status stable."""
    unmet_sums: str
    """The reason for approving the template although its sums do not add up; empty if they do."""
    vouched: tuple[TemplatePart, ...]
    """``template``: the expert vouches for the whole template."""


def is_simulated_reviewer(reviewer: str | None) -> bool:
    """Return True if the reviewer's name marks a program, not a person."""
    return reviewer is not None and reviewer.startswith(SIMULATED_PREFIX)


def load_signature_meanings() -> Mapping[str, str]:
    """Load the statement that a reviewer signs, by the review's outcome."""
    return load_package_table("evalkit.review", "signature_meanings.toml")


def list_revisions(output_folder: OutputFolder, case_id: str) -> list[int]:
    """List the numbers of a case's reviews, ascending from 1."""
    names = (name.rpartition("/")[2] for name in output_folder.list_json_files(f"{REVIEWS_FOLDER}/{case_id}"))
    return sorted(int(match[1]) for name in names if (match := _REVIEW_FILE_PATTERN.fullmatch(name)))


def find_newest_revision(output_folder: OutputFolder, case_id: str) -> int:
    """Find the number of a case's newest review; 0 if there is none."""
    return max(list_revisions(output_folder, case_id), default=0)


def derive_review_status(newest_review: Review | None) -> ReviewStatus:
    """Derive the status of a case from its newest review; None means no review."""
    return STATUS_BY_OUTCOME[newest_review.outcome] if newest_review else "pending"


def append_chained_review(output_folder: OutputFolder, case_id: str, review: Review, *, base_revision: int) -> Review:
    """Write and return a case's next review, chained by hash to ``base_revision``.

    ``base_revision`` is 0 for the first review. ReviewConflict, and nothing is written, if ``base_revision`` is not the
    newest review.
    """
    conflict_error = ReviewConflict(
        f"the newest review of case {case_id!r} is not revision {base_revision}, on which this review is based",
        code="REVIEW-CONFLICT",
        remedy="Load the case again, read its newest review, and save with that revision.",
    )
    if find_newest_revision(output_folder, case_id) != base_revision:
        raise conflict_error
    previous_sha256 = hash_review_file(output_folder, case_id, base_revision) if base_revision else None
    chained_review = review.model_copy(update={"prev_sha256": previous_sha256})
    if signature := chained_review.signature:
        chained_review = chained_review.model_copy(
            update={"signature": signature.model_copy(update={"record_sha256": chained_review.compute_record_digest()})}
        )
    if not output_folder.create_json_if_absent(
        review_file_name(case_id, base_revision + 1), chained_review.model_dump(mode="json")
    ):
        raise conflict_error
    return chained_review


def hash_review_file(output_folder: OutputFolder, case_id: str, revision: int) -> str:
    """Compute the SHA-256 (hex) of a review file, which the next review stores.

    NotFound if the file does not exist; StoreError if it cannot be read.
    """
    return hashlib.sha256(output_folder.read_bytes(review_file_name(case_id, revision))).hexdigest()


def is_newest_review_unchanged(output_folder: OutputFolder, head: ReviewChainHead) -> bool:
    """Return True if the newest review's file still has its recorded hash.

    StoreError if the file cannot be read.
    """
    try:
        return hash_review_file(output_folder, head.case_id, head.revision) == head.sha256
    except NotFound:
        return False


def write_silver_ground_truth(
    output_folder: OutputFolder, result: DocumentResult, *, accepted_at: str, inclusion_probability: float | None = None
) -> bool:
    """Save an accepted, unreviewed result as silver ground truth; True if written.

    Nothing is written if the case has a review, or if the stored record differs only in its time. ``accepted_at`` is ISO
    8601 in UTC; ``inclusion_probability`` (0..1) is the probability that an audit draws the document. ReviewRefused if the
    result was not accepted.
    """
    record = build_silver_ground_truth(result, accepted_at=accepted_at, inclusion_probability=inclusion_probability)
    return _write_silver_record(output_folder, result.doc_id, record)


def build_silver_ground_truth(
    result: DocumentResult, *, accepted_at: str, inclusion_probability: float | None
) -> GroundTruth:
    """Build the silver ground truth record of an accepted, unreviewed result."""
    if result.decision is not Decision.AUTO_ACCEPT or result.classification is None:
        raise ReviewRefused(
            f"document {result.doc_id!r} was not accepted",
            code="REVIEW-NOT-ACCEPTED",
            remedy="An expert must review it first.",
        )
    return GroundTruth(
        ground_truth_classification=result.classification,
        corrected_dominant_type=None,
        **_build_silver_header(result.doc_id, accepted_at, inclusion_probability),
    )


def write_silver_fields_if_unreviewed(
    output_folder: OutputFolder, document_extractions: Extractions, *, accepted_at: str
) -> bool:
    """Save accepted fields as silver ground truth; return True if written.

    Nothing is written in the cases that ``write_silver_ground_truth`` names. Audits never draw fields, so the inclusion
    probability is 0. ReviewRefused if a report or form was not accepted, or if there is none.
    """
    return _write_silver_record(
        output_folder,
        document_extractions.doc_id + EXTRACTION_SUFFIX,
        build_silver_fields(document_extractions, accepted_at=accepted_at),
    )


def build_silver_fields(document_extractions: Extractions, *, accepted_at: str) -> FieldsGroundTruth:
    """Build the silver ground truth record of accepted, unreviewed fields."""
    decisions = {extraction.decision for extraction in document_extractions.extractions}
    if decisions - {None} != {Decision.AUTO_ACCEPT}:
        raise ReviewRefused(
            f"the fields of document {document_extractions.doc_id!r} were not accepted",
            code="REVIEW-NOT-ACCEPTED",
            remedy="An expert must review them first.",
        )
    return FieldsGroundTruth(
        ground_truth_fields=tuple(
            ExtractedFields.from_extraction(extraction)
            for extraction in document_extractions.extractions
            if extraction.decision
        ),
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
    """Read the probability (0..1) that an accepted document is audited.

    None if the document has no silver record or the record has no valid probability.
    """
    stored = _read_silver_record(output_folder, ground_truth_file_name(doc_id))
    probability = stored.get("inclusion_probability") if stored else None
    if isinstance(probability, bool) or not isinstance(probability, int | float):
        return None
    return float(probability) if 0 <= probability <= 1 else None


def withdraw_silver_ground_truth(output_folder: OutputFolder, case_id: str) -> bool:
    """Delete the silver record of a case, an accepted answer without a review.

    Return True if a record was removed.
    """
    name = ground_truth_file_name(case_id)
    with hold_case_write_lock(output_folder, case_id):
        return _read_silver_record(output_folder, name) is not None and output_folder.remove_file(name)


def _read_silver_record(output_folder: OutputFolder, name: str) -> dict[str, Any] | None:
    """Read a silver record; None if missing, damaged or an expert's record."""
    stored = read_json_unless_missing_or_torn(output_folder, name)
    return stored if stored and stored.get("ground_truth_source") == "AUTO_ACCEPTED" else None


def has_types_matching_ground_truth(
    output_folder: OutputFolder, doc_id: str, forms: Iterable[ExtractedFields | Extraction]
) -> bool:
    """Return True if each report's pages and type agree with the ground truth.

    False as well if the document has no ground truth yet: the fields may have been read with the wrong template. Tax forms
    are not compared, because a form names its own type.
    """
    reports = [
        form
        for form in forms
        if (form_template := find_extraction_template(form)) is None or form_template.kind != "tax"
    ]
    if not reports:
        return True
    truth = _load_classification_truth(output_folder, doc_id)
    return truth is not None and all(
        any(
            segment.start_page <= form.start_page
            and form.end_page <= segment.end_page
            and segment.dominant_type == form.document_type
            for segment in truth.ground_truth_classification.segments
        )
        for form in reports
    )


def _load_classification_truth(output_folder: OutputFolder, doc_id: str) -> GroundTruth | None:
    """Load the ground truth of a document's types; None if it is missing or damaged."""
    stored = read_json_unless_missing_or_torn(output_folder, ground_truth_file_name(doc_id))
    try:
        return GroundTruth.model_validate(stored)
    except ValidationError:
        return None


def load_expert_classification(output_folder: OutputFolder, doc_id: str) -> KeyedClassification | None:
    """Load the types that an expert confirmed or corrected; None if no expert did."""
    truth = _load_classification_truth(output_folder, doc_id)
    is_expert_truth = truth is not None and truth.ground_truth_source != "AUTO_ACCEPTED"
    return truth.ground_truth_classification if truth and is_expert_truth else None


def remove_mismatched_silver_fields(output_folder: OutputFolder, doc_id: str) -> None:
    """Remove unreviewed fields if the document's types no longer match.

    The caller holds the write lock.
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
    """Read a JSON file of the output folder; None if missing or incomplete.

    Only for files that can be rebuilt. StoreError for any other failure.
    """
    try:
        return output_folder.read_json(name, max_schema_version=SCHEMA_VERSION)
    except StoreError as error:
        if error.code in ("STORE-NOT-FOUND", "STORE-TORN"):
            return None
        raise
