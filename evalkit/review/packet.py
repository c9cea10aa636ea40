"""The packet: a case as stored, with answer, issues and reason.

Source: specification 000, slide 9. A run may rewrite a packet until an expert has begun to work on it. Then the packet is
frozen, because the review stores the hash of the packet that its author saw. Only ``review_status`` still changes: it
mirrors claims and reviews and is not part of the hash. Each kind of case has its own subclass in ``kinds``.
"""

import math
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any, ClassVar, Literal, Self

from pydantic import Field

from evalkit.classification.autofix import AutoFixEngine, Repair
from evalkit.classification.patient_keys import KeyedClassification
from evalkit.classification.schema import ClassificationOutput, Segment
from evalkit.classification.v5_arbiter import Decision
from evalkit.core.records import StrictRecord
from evalkit.documents.bundle import DocumentBundle
from evalkit.documents.mupdf import MAX_PAGES
from evalkit.issue import Agent, Issue, IssueSeverity, sort_by_severity
from evalkit.review.review_plan import AskedPart, ReviewCosts, ReviewPlan, plan_issue_review
from evalkit.store import (
    REVIEWS_FOLDER,
    OutputFolder,
    OutputIndex,
    bundle_file_name,
    converted_file_name,
    hash_canonical_json,
    packet_file_name,
)

SCHEMA_VERSION = 1

ReviewStatus = Literal["pending", "in_review", "deferred", "completed"]
#: What reviewers are asked about: clinical documents, tax forms, statements of banks.
ReviewTask = Literal["clinical", "tax", "bank"]
ReviewReason = Literal["escalated", "audit", "sample", "requested"]

#: Endings of the case_id of a second opinion and of an adjudication.
SECOND_SUFFIX, ADJUDICATION_SUFFIX = ".second", ".adjudication"
#: Ending of the case_id of a case about a document's fields.
EXTRACTION_SUFFIX = ".extraction"

#: The width of a line of ``issue_text`` in columns, as in the example of slide 9.
_LINE_WIDTH = 70


class IssueSummary(StrictRecord):
    """One line in a case's list of open issues."""

    severity: IssueSeverity
    """BLOCKER, MAJOR or MINOR."""
    agent: Agent
    """The check that raised the issue."""
    issue_id: str
    """Id of the issue in ``SMEPacket.issues``."""
    message: str
    """The issue's message."""


class SMEPacket(StrictRecord):
    """One case for an expert, as stored in ``sme_packets/``.

    Each kind of case adds its own fields in a subclass.
    """

    has_attention_checks: ClassVar[bool] = False
    """True if attention checks exist for this kind of case."""

    schema_version: int = SCHEMA_VERSION
    kind: str
    """The kind of case: a key of ``kinds.CASE_KINDS``."""
    case_id: str
    """The case's id; for the base case of a classification the same as ``doc_id``."""
    doc_id: str
    """The document's id."""
    pdf_filename: str
    """The PDF's file name without its folder."""
    pdf_path: str
    """The path from which the PDF was read."""
    total_pages: int = Field(ge=0, le=MAX_PAGES)
    """Number of pages of the PDF."""
    v5_decision: Decision
    """The arbiter's decision."""
    decision_rule: str
    """The arbiter's rule ``1`` … ``8``, ``retries`` or ``cycle``; ``fields`` in a case about fields, ``statement_template`` in
    a case about a statement template."""
    decision_reason: str
    """A sentence that says why a person is asked."""
    total_issues: int
    """Number of open issues."""
    issues_summary: tuple[IssueSummary, ...]
    """The open issues in short form, worst first."""
    issues: tuple[Issue, ...]
    """All issues, worst first; within a severity, open issues before repaired ones."""
    classification: KeyedClassification | None
    """The agent's classification; None if the agent gave no usable answer, or in a case of another kind."""
    proposed_repairs: tuple[Repair, ...]
    """Automatic repairs that are applied when the case is validated."""
    production_differs: bool | None
    """True if the production classifier gave another type than the agent; None if the production type is unknown."""
    production_classification: dict[str, Any] | None
    """The production classifier's answer: ``dominant_type`` (None: none of the five types), ``label`` if production uses
    another word and, if known, ``confidence`` and ``segments``. None if there is no such answer."""
    document_bundle_path: str
    """Path of the document's bundle (pages and text), relative to the output folder."""
    review_status: ReviewStatus
    """The case's status, copied from claims and reviews; not part of the packet's hash."""
    review_reason: ReviewReason
    """The reason why the case is in the queue."""
    inclusion_probability: float
    """The probability (0..1) with which the case was drawn for review; 1 for an escalated case."""
    created_at: str
    """Time at which the packet was created (ISO 8601, UTC)."""
    review_plan: ReviewPlan | None = Field(default=None, exclude_if=lambda plan: plan is None)
    """What the expert is asked, and how long it takes; None in a blind case, in further opinions, and in older packets."""

    def plan_review(self, costs: ReviewCosts, source: str = "") -> ReviewPlan:  # noqa: ARG002 - for the kinds that need it
        """Plan the review of this case; ``source`` is the model that gave the answer."""
        return plan_issue_review(self.kind, self.open_issues, self.total_pages, costs)

    @property
    def errors_per_minute(self) -> float:
        """Number of errors that the expert is expected to find per minute.

        Infinite with a BLOCKER that a rule found.
        """
        if any(issue.severity is IssueSeverity.BLOCKER and issue.origin == "rule" for issue in self.open_issues):
            return math.inf
        plan = self.review_plan or self.plan_review(ReviewCosts())
        return plan.expected_errors / plan.expected_minutes if plan.expected_minutes else 0.0

    @property
    def asked_parts(self) -> tuple[AskedPart, ...]:
        """The parts that the expert is asked about; empty if the whole case is shown."""
        return self.review_plan.asked if self.review_plan and not self.review_plan.is_shown_whole else ()

    def with_asked_questions(self) -> Self:
        """Return the case with a question for each asked part that has no issue."""
        return self

    @property
    def is_first_review_blind(self) -> bool:
        """True if the first reviewer must answer before the agent's answer is shown."""
        return False

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The segments of the agent's classification; empty without one."""
        return self.classification.segments if self.classification else ()

    @property
    def agent_answer(self) -> object:
        """The agent's answer in the form of ``Review.before``; None if there is no answer."""
        return self.classification

    @property
    def asked_question(self) -> str:
        """The case's question in the queue, or the reason why an expert is asked."""
        return self.decision_reason

    @property
    def indexed_type(self) -> str:
        """The agent's type, for the queue's filter; empty if the agent cannot tell."""
        return ""

    @property
    def task(self) -> ReviewTask:
        """The task (clinical, tax or bank) of reviewers who get the case."""
        return "clinical"

    @property
    def bundle_doc_id(self) -> str:
        """Id of the document whose pages are shown: ``doc_id`` except in attention checks."""
        return self.document_bundle_path.rpartition("/")[2].removesuffix(".json")

    @property
    def is_attention_check(self) -> bool:
        """True if the shown answer contains a planted fault.

        The packet itself reveals this, because it shows another document's pages under its own doc_id. So the loss of the
        check's record cannot turn a planted answer into ground truth.
        """
        return self.bundle_doc_id != self.doc_id

    @property
    def open_issues(self) -> list[Issue]:
        """The issues that are still open, worst first."""
        return [issue for issue in self.issues if issue.status == "open"]


def build_packet_fields(
    bundle: DocumentBundle, issues: Iterable[Issue], classification: ClassificationOutput | None = None
) -> dict[str, Any]:
    """Build the fields that all kinds of case share, for a newly escalated case."""
    sorted_issues = sort_by_severity(sorted(issues, key=lambda issue: issue.status != "open"))
    open_issues = [issue for issue in sorted_issues if issue.status == "open"]
    return {
        "doc_id": bundle.doc_id,
        "pdf_filename": PurePath(bundle.file_path).name,
        "pdf_path": converted_file_name(bundle.doc_id) if bundle.is_converted else bundle.file_path,
        "total_pages": bundle.total_pages,
        "v5_decision": Decision.ESCALATE_TO_SME,
        "total_issues": len(open_issues),
        "issues_summary": tuple(
            IssueSummary(severity=issue.severity, agent=issue.agent, issue_id=issue.issue_id, message=issue.message)
            for issue in open_issues
        ),
        "issues": tuple(sorted_issues),
        "classification": classification,
        "proposed_repairs": tuple(AutoFixEngine().propose(classification, open_issues)) if classification else (),
        "production_differs": None,
        "production_classification": None,
        "document_bundle_path": bundle_file_name(bundle.doc_id),
        "review_status": "pending",
        "review_reason": "escalated",
        "inclusion_probability": 1.0,
    }


def issue_text(issue: Issue) -> str:
    """Format an issue as the specification shows it, without empty lines.

    ::

        [BLOCKER] V3-0001 (Agent: V3)
          Message:   Routine lab vendor detected (Quest Diagnostics) but
                     Genomic Report marked PRIMARY
          Location:  document_mixture → Genomic Report
          Fix:       Reclassify as 'Other' or downgrade to MENTION_ONLY
    """
    rows = (("Message:", issue.message), ("Location:", issue.location), ("Fix:", issue.suggested_fix))
    head = f"[{issue.severity.value}] {issue.issue_id} (Agent: {issue.agent})"
    return "\n".join([head, *(_wrap_labelled_text(label, text) for label, text in rows if text.strip())])


def _wrap_labelled_text(label: str, text: str) -> str:
    # Text from a document or a model must not send control sequences to a terminal.
    words = (
        "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in word)
        for word in text.split()
    )
    prefix = f"  {label:<11}"
    return textwrap.fill(
        " ".join(words),
        _LINE_WIDTH,
        initial_indent=prefix,
        subsequent_indent=" " * len(prefix),
        break_long_words=False,
        break_on_hyphens=False,
    )


def serialise_packet(packet: SMEPacket) -> dict[str, Any]:
    """Convert a case to the JSON object of its file."""
    return packet.model_dump(mode="json")


def compute_packet_digest(packet: SMEPacket) -> str:
    """Compute the SHA-256 (hex) of a case file's canonical JSON without its status."""
    return hash_canonical_json(omit_keys(serialise_packet(packet), "review_status"))


def omit_keys(mapping: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """Copy a mapping without the given keys."""
    return {key: content for key, content in mapping.items() if key not in keys}


def get_base_case_id(case_id: str) -> str:
    """Get a case_id without the suffix of a second opinion or adjudication."""
    return case_id.removesuffix(SECOND_SUFFIX).removesuffix(ADJUDICATION_SUFFIX)


def is_packet_frozen(output_folder: OutputFolder, index: OutputIndex, case_id: str, now: str) -> bool:
    """Return True if an expert has begun to work on the case, so it must not change.

    No run may rewrite such a packet. This is so if a review was submitted, or if a claim is live at ``now`` (ISO 8601, UTC, to the second).
    """
    return bool(
        output_folder.list_json_files(f"{REVIEWS_FOLDER}/{case_id}")
        or index.claims.map_live_claims_by_case_id(now, case_id)
    )


def write_packet_status(output_folder: OutputFolder, case_id: str, status: ReviewStatus) -> None:
    """Change only ``review_status`` in the case's file, if it differs."""
    name = packet_file_name(case_id)
    stored = output_folder.read_json(name, max_schema_version=SCHEMA_VERSION)
    if stored["review_status"] != status:
        output_folder.write_json(name, {**stored, "review_status": status}, is_recorded=False)
