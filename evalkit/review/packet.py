"""The packet: what an expert is asked, why, and with what evidence.

Source: specification 000, slide 9. A run may rewrite a packet until an expert has begun to work on it. Then it is frozen,
because a review names by its hash what its writer saw. Only ``review_status`` mirrors claims and reviews: it is rewritten
when it changes, and the hash leaves it out. Each kind of case has its own subclass in ``kinds``.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any, ClassVar, Literal

from evalkit.classification.autofix import AutoFixEngine, Repair
from evalkit.classification.patient_keys import KeyedClassification
from evalkit.classification.schema import ClassificationOutput
from evalkit.classification.v5_arbiter import Decision
from evalkit.core.records import StrictRecord
from evalkit.documents.bundle import DocumentBundle
from evalkit.issue import Agent, Issue, IssueSeverity, sort_by_severity
from evalkit.store import (
    REVIEWS_FOLDER,
    OutputFolder,
    OutputIndex,
    bundle_file_name,
    hash_canonical_json,
    packet_file_name,
)

SCHEMA_VERSION = 1

ReviewStatus = Literal["pending", "in_review", "deferred", "completed"]
ReviewReason = Literal["escalated", "audit", "sample", "requested"]

#: How the ids of cases for further opinions end.
SECOND_SUFFIX, ADJUDICATION_SUFFIX = ".second", ".adjudication"
#: How the id of a case about a document's fields ends.
EXTRACTION_SUFFIX = ".extraction"

#: The width of a line of ``issue_text`` in columns, as in the example of slide 9.
_LINE_WIDTH = 70


class IssueSummary(StrictRecord):
    """One line of the packet's summary."""

    severity: IssueSeverity
    """BLOCKER, MAJOR or MINOR."""
    agent: Agent
    """Who raised it."""
    issue_id: str
    """The issue in ``issues``."""
    message: str
    """One sentence for a clinician."""


class SMEPacket(StrictRecord):
    """One case for an expert: ``sme_packets/sme_packet_{case_id}.json``.

    A subclass a kind adds that kind's keys.
    """

    has_attention_checks: ClassVar[bool] = False
    """True if faults are planted in answers of this kind."""

    schema_version: int = SCHEMA_VERSION
    kind: str
    """The task that asks: a key of ``kinds.CASE_KINDS``."""
    case_id: str
    """The name of the case; of a classification the same as ``doc_id``."""
    doc_id: str
    """The document."""
    pdf_filename: str
    """The PDF's bare name."""
    pdf_path: str
    """Where the PDF was read from."""
    total_pages: int
    """Pages of the PDF."""
    v5_decision: Decision
    """The arbiter's decision."""
    decision_rule: str
    """The arbiter's row ``1`` … ``8``, or ``retries`` or ``cycle``; in a case about fields ``fields``, about a statement
    template ``statement_template``."""
    decision_reason: str
    """The row's sentence: why a person is asked."""
    total_issues: int
    """How many issues are open."""
    issues_summary: tuple[IssueSummary, ...]
    """The open issues, worst first."""
    issues: tuple[Issue, ...]
    """All issues of the result, worst first, repaired ones after the open ones of their severity."""
    classification: KeyedClassification | None
    """The agent's answer; None if it gave no usable one, and in cases of other kinds."""
    proposed_repairs: tuple[Repair, ...]
    """Repairs by arithmetic, applied when the case is validated."""
    production_differs: bool | None
    """True if the production classifier gave another type; None if its label, or its meaning, is unknown."""
    production_classification: dict[str, Any] | None
    """``dominant_type`` (None: none of the five), production's own ``label`` if that is another word and, if known,
    ``confidence`` and ``segments``."""
    document_bundle_path: str
    """The document's text, relative to the output folder."""
    review_status: ReviewStatus
    """Mirror of claims and reviews; not part of the packet's hash."""
    review_reason: ReviewReason
    """Why the case is in the queue."""
    inclusion_probability: float
    """The probability with which it was drawn, 0..1; 1 for an escalated case."""
    created_at: str
    """When it was made (ISO 8601, UTC)."""

    @property
    def is_first_review_blind(self) -> bool:
        """True if the first reviewer answers before the agent's answer is shown."""
        return False

    @property
    def agent_answer(self) -> object:
        """The answer that the agent proposes, as ``Review.before`` has it.

        None if there is none.
        """
        return self.classification

    @property
    def indexed_type(self) -> str:
        """The type in the queue: what the agent takes the document for.

        Empty if it cannot tell.
        """
        return ""

    @property
    def bundle_doc_id(self) -> str:
        """The document whose pages it shows: ``doc_id``, except for attention checks."""
        return self.document_bundle_path.rpartition("/")[2].removesuffix(".json")

    @property
    def is_attention_check(self) -> bool:
        """True if the shown answer is wrong on purpose.

        Such a case shows another document's pages under its own name. The packet itself says so: losing another file
        must never make a planted answer true.
        """
        return self.bundle_doc_id != self.doc_id

    @property
    def open_issues(self) -> list[Issue]:
        """The open issues, which the arbiter counted, worst first."""
        return [issue for issue in self.issues if issue.status == "open"]


def build_packet_fields(
    bundle: DocumentBundle, issues: Iterable[Issue], classification: ClassificationOutput | None = None
) -> dict[str, Any]:
    """Build the fields of a packet that all kinds have.

    The status is that of a new, escalated case.
    """
    sorted_issues = sort_by_severity(sorted(issues, key=lambda issue: issue.status != "open"))
    open_issues = [issue for issue in sorted_issues if issue.status == "open"]
    return {
        "doc_id": bundle.doc_id,
        "pdf_filename": PurePath(bundle.file_path).name,
        "pdf_path": bundle.file_path,
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
    """Format an issue as slide 9 prints it, without the lines that would be empty.

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
    # Words of a document or a model must not reach a terminal as control sequences.
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
    """Return the packet as its file has it."""
    return packet.model_dump(mode="json")


def compute_packet_digest(packet: SMEPacket) -> str:
    """Compute ``packet_sha256``.

    SHA-256 (hex) of the canonical JSON without ``review_status``.
    """
    return hash_canonical_json(omit_keys(serialise_packet(packet), "review_status"))


def omit_keys(mapping: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """Copy a mapping without these keys."""
    return {key: content for key, content in mapping.items() if key not in keys}


def get_base_case_id(case_id: str) -> str:
    """Get the case that further opinions are about; of a base case its own id."""
    return case_id.removesuffix(SECOND_SUFFIX).removesuffix(ADJUDICATION_SUFFIX)


def is_packet_frozen(output_folder: OutputFolder, index: OutputIndex, case_id: str, now: str) -> bool:
    """Decide whether an expert has begun to work on the packet.

    No run may rewrite it then. That is: a review was submitted, or the case is open at ``now`` (ISO 8601, UTC, to
    the second).
    """
    return bool(
        output_folder.list_json_files(f"{REVIEWS_FOLDER}/{case_id}")
        or index.claims.map_live_claims_by_case_id(now, case_id)
    )


def write_packet_status(output_folder: OutputFolder, case_id: str, status: ReviewStatus) -> None:
    """Rewrite the packet's ``review_status``, and nothing else of it, if it differs."""
    name = packet_file_name(case_id)
    stored = output_folder.read_json(name, max_schema_version=SCHEMA_VERSION)
    if stored["review_status"] != status:
        output_folder.write_json(name, {**stored, "review_status": status})
