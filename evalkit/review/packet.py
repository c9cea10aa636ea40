"""SMEPacket: what an expert is asked, why, and with what evidence.

Source: specification 000, slide 9. A packet is rewritten by a new run until somebody has begun to work with it; then it
is frozen, because a review says by hash what its writer had before their eyes. ``review_status`` alone is a mirror of
claims and reviews: it is rewritten when it changes and left out of the hash.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from operator import not_
from pathlib import PurePath
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from evalkit.classification.autofix import AutoFixEngine, Repair
from evalkit.classification.document_result import SCHEMA_VERSION as RESULT_VERSION
from evalkit.classification.document_result import DocumentResult
from evalkit.classification.patient_keys import KeyedClassification
from evalkit.classification.schema import ClassificationOutput
from evalkit.classification.v5_arbiter import Decision
from evalkit.core.clocks import format_iso_seconds, utc_now
from evalkit.core.gc_pause import pause_gc
from evalkit.core.records import StrictRecord
from evalkit.core.schema_by_reference import SchemaByReference
from evalkit.documents.bundle import DocumentBundle
from evalkit.errors import NotFound, StoreError
from evalkit.extraction.extraction_schema import SCHEMA_VERSION as EXTRACTIONS_VERSION
from evalkit.extraction.extraction_schema import Extraction, Extractions
from evalkit.issue import Agent, Issue, IssueSeverity, sort_by_severity
from evalkit.review.loaders import read_bundle
from evalkit.review.write_lock import hold_case_write_lock
from evalkit.statements.convergence import EscalationReason
from evalkit.statements.review_cycles import TEMPLATE_CASE_SUFFIX, ReportedIssue, TemplateCase
from evalkit.statements.reviewer_report import TemplateIssueSeverity
from evalkit.store import (
    REVIEWS_FOLDER,
    OutputFolder,
    OutputIndex,
    bundle_file_name,
    extraction_file_name,
    hash_canonical_json,
    packet_file_name,
    parse_stored_json,
    parse_stored_record,
    result_file_name,
)

SCHEMA_VERSION = 1

ReviewStatus = Literal["pending", "in_review", "deferred", "completed"]
ReviewReason = Literal["escalated", "audit", "sample", "requested"]

#: What the ids of the cases for further opinions end with.
PATIENT_QUESTIONS = "V2-PATIENT"
"""What the codes of questions whose pages these are begin with; their name in the queue."""
SECOND_SUFFIX, ADJUDICATION_SUFFIX = ".second", ".adjudication"
#: What the id of a case about a document's fields ends with.
EXTRACTION_SUFFIX = ".extraction"
#: ``decision_rule`` of such a case: no row of the arbiter's table.
FIELDS_RULE = "fields"
#: ``decision_rule`` of a case about a statement template.
TEMPLATE_RULE = "statement_template"

_CASE_ID_PATTERN = re.compile(r"[A-Za-z0-9_-]+(\.[a-z_]+)*")
#: Columns of a terminal line of ``issue_text``: what slide 9's example keeps to.
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
    """One case for an expert: ``sme_packets/sme_packet_{case_id}.json``."""

    schema_version: int = SCHEMA_VERSION
    kind: Literal["classification", "extraction", "statement_template"] = "classification"
    """Which task asks."""
    case_id: str
    """The work; for a classification the same as ``doc_id``."""
    doc_id: str
    """The document."""
    pdf_filename: str
    """The PDF's bare name."""
    pdf_path: str
    """Where the PDF was read from."""
    total_pages: int
    """Pages of the PDF."""
    v5_decision: Decision
    """What the arbiter decided."""
    decision_rule: str
    """The arbiter's row ``1`` … ``8``, or ``retries`` or ``cycle``; of a case about fields ``fields``, about a statement
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
    """The agent's answer; None where it gave no usable one."""
    proposed_repairs: tuple[Repair, ...]
    """What arithmetic could repair: done when the case is validated."""
    production_differs: bool | None
    """Whether the production classifier says another type; None where its label, or what it means, is not known."""
    production_classification: dict[str, Any] | None
    """``dominant_type`` (None: none of the five), production's own ``label`` if that is another word and, where known,
    ``confidence`` and ``segments``."""
    document_bundle_path: str
    """The document's text, relative to the output folder."""
    review_status: ReviewStatus
    """Mirror of what claims and reviews say; not part of the packet's hash."""
    review_reason: ReviewReason
    """Why the case is in the queue."""
    inclusion_probability: float
    """The probability with which it was drawn, 0..1; 1 for an escalated case."""
    created_at: str
    """When it was made (ISO 8601, UTC)."""
    extractions: tuple[Extraction, ...] = Field(default=(), exclude_if=not_)
    """Of a case about fields, what was extracted from the document's reports and forms, accepted ones too. Written down
    only in such a case."""
    template_case: Annotated[TemplateCase, SchemaByReference()] | None = Field(default=None, exclude_if=not_)
    """Of a case about a statement template, the template and all that was said of it. Written down only in such a case."""

    @model_validator(mode="after")
    def _require_matching_kind(self) -> Self:
        if (self.kind == "statement_template") != (self.template_case is not None):
            raise ValueError("a case about a statement template has one, and no other case has")
        return self

    @property
    def is_first_review_blind(self) -> bool:
        """Whether its first reviewer answers before the agent's answer is shown: audits, samples, second opinions.

        Never about fields or templates: nobody types a form anew that is read already, or draws boxes that are drawn.
        """
        if self.case_id.endswith(ADJUDICATION_SUFFIX) or self.kind != "classification":
            return False
        return self.review_reason in ("audit", "sample") or self.case_id.endswith(SECOND_SUFFIX)

    @property
    def bundle_doc_id(self) -> str:
        """The document whose pages it shows; for all but attention checks the same as ``doc_id``."""
        return self.document_bundle_path.rpartition("/")[2].removesuffix(".json")

    @property
    def is_attention_check(self) -> bool:
        """Whether the shown answer is wrong on purpose: such a case shows another document's pages under its own name.

        That stands in the packet itself, so that no loss of another file could make a planted answer true.
        """
        return self.bundle_doc_id != self.doc_id

    @property
    def open_issues(self) -> list[Issue]:
        """The issues that the arbiter counted, worst first."""
        return [issue for issue in self.issues if issue.status == "open"]


class SMEPacketGenerator:
    """Makes packets."""

    def packet(
        self,
        result: DocumentResult,
        bundle: DocumentBundle,
        *,
        review_reason: ReviewReason,
        inclusion_probability: float,
        production_row: Mapping[str, Any] | None,
        created_at: str,
    ) -> SMEPacket:
        """The case of one result.

        ``inclusion_probability`` is 0..1; ``production_row`` is the production classifier's row (``dominant_type`` as one
        of the five or None, and perhaps ``label``, ``confidence``, ``segments``) or None; ``created_at`` is ISO 8601 in UTC.
        """
        return _build_packet(
            bundle,
            result.issues,
            result.classification,
            case_id=result.doc_id,
            doc_id=result.doc_id,
            v5_decision=result.decision,
            decision_rule=result.decision_rule,
            decision_reason=result.decision_reason,
            production_differs=_differs_from_production_type(result.classification, production_row),
            production_classification=None if production_row is None else dict(production_row),
            review_reason=review_reason,
            inclusion_probability=inclusion_probability,
            created_at=created_at,
        )

    def fields_packet(self, extractions: Extractions, bundle: DocumentBundle, *, created_at: str) -> SMEPacket:
        """The case of a document's fields, of which some reports or forms go to a person; ``created_at`` as above."""
        return _build_packet(
            bundle,
            [issue for extraction in extractions.extractions for issue in extraction.issues],
            kind="extraction",
            case_id=extractions.doc_id + EXTRACTION_SUFFIX,
            decision_rule=FIELDS_RULE,
            decision_reason=explain_case_escalation(extractions.extractions),
            created_at=created_at,
            extractions=extractions.extractions,
        )

    def template_packet(self, template_case: TemplateCase, bundle: DocumentBundle, *, created_at: str) -> SMEPacket:
        """The case of a statement template that goes to a person, with the statement that it was tried on."""
        return _build_packet(
            bundle,
            map(_convert_template_issue, template_case.issues),
            kind="statement_template",
            case_id=template_case.template_id + TEMPLATE_CASE_SUFFIX,
            decision_rule=TEMPLATE_RULE,
            decision_reason=TEMPLATE_ESCALATION_REASONS[template_case.escalation.escalation_reason],
            created_at=created_at,
            template_case=template_case,
        )


def _build_packet(
    bundle: DocumentBundle,
    issues: Iterable[Issue],
    classification: ClassificationOutput | None = None,
    **case_fields: Any,
) -> SMEPacket:
    """Build a case; what ``case_fields`` leave out is that of a case of which a person is always asked."""
    sorted_issues = sort_by_severity(sorted(issues, key=lambda issue: issue.status != "open"))
    open_issues = [issue for issue in sorted_issues if issue.status == "open"]
    common_fields: dict[str, Any] = {
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
    return SMEPacket(**common_fields | case_fields)


#: How a template's issues rank in the one queue (contract, ruling 19).
TEMPLATE_ISSUE_SEVERITIES: dict[TemplateIssueSeverity, IssueSeverity] = {
    "critical": IssueSeverity.BLOCKER,
    "high":     IssueSeverity.BLOCKER,
    "medium":   IssueSeverity.MAJOR,
    "low":      IssueSeverity.MINOR,
}  # fmt: skip
#: Why a template goes to a person, in words for whoever looks at it.
TEMPLATE_ESCALATION_REASONS: dict[EscalationReason, str] = {
    "max_retries_exceeded":  "after all attempts a reviewer still finds faults in the template",
    "diverging":             "each attempt at the template made it worse",
    "arbitration_uncertain": "the reviewers disagree about the template, and nobody could settle it",
    "reviewer_failed":       "a reviewer of the template gave no answer",
    "critical_disagreement": "only one of two reviewers finds a critical fault in the template",
    "review_disabled":       "only one reviewer looks at templates, so a person approves each",
}  # fmt: skip


def _convert_template_issue(reported_issue: ReportedIssue) -> Issue:
    """One fault, as all tasks tell theirs; what an arbitrator dismissed stays open: no model takes back what was found."""
    template_issue = reported_issue.issue
    return Issue.create(
        reported_issue.reported_by[0] if reported_issue.reported_by else "arbitrator",
        f"TEMPLATE-{template_issue.category.upper().replace('_', '-')}",
        TEMPLATE_ISSUE_SEVERITIES[template_issue.severity],
        template_issue.message,
        location=template_issue.evidence.location,
        suggested_fix=template_issue.suggested_fix,
        page=template_issue.page,
        facts={"part": template_issue.evidence.location} if template_issue.evidence.location else {},
    ).model_copy(update={"issue_id": template_issue.issue_id})


def is_extraction_review_required(extraction: Extraction) -> bool:
    """Whether a person has to look at the report or form."""
    return extraction.decision != Decision.AUTO_ACCEPT


#: Why a report or form goes to a person: the first row that holds, in words for whoever looks at it.
_EXTRACTION_ESCALATION_REASONS: tuple[tuple[Callable[[Extraction], bool], str], ...] = (
    (lambda extraction: _has_open_issue(extraction, "READER-NO-TEXT"),             "not every page could be read"),
    (lambda extraction: _has_open_issue(extraction, "-AGENT-FAILED"),              "a program that should read or check it gave no answer"),
    (lambda extraction: _has_open_issue(extraction, "GRADER-WRONG-YEAR"),          "it is for another tax year"),
    (lambda extraction: _has_open_issue(extraction, "EXTRACTION-NOT-ON-PAGE"),     "a value that was claimed is not on the page"),
    (lambda extraction: _has_open_issue(extraction, "EXTRACTION-NONE"),            "it has none of the fields of such a document"),
    (lambda extraction: not extraction.met_threshold,                   "the programs are not sure enough of what it says"),
    (lambda extraction: _has_open_issue(extraction, "GRADER-INCONSISTENT"),        "amounts on it do not fit together"),
    (lambda extraction: True,                                    "some of its fields have to be looked at"),
)  # fmt: skip


def _has_open_issue(extraction: Extraction, code_suffix: str) -> bool:
    return any(issue.code.endswith(code_suffix) and issue.status == "open" for issue in extraction.issues)


def explain_case_escalation(extractions: Iterable[Extraction]) -> str:
    """Why a person is asked about a document's fields, by the first report or form that they are asked about."""
    escalated_extractions = [extraction for extraction in extractions if is_extraction_review_required(extraction)]
    first_extraction = escalated_extractions[0]
    page_words = (
        f"page {first_extraction.start_page}"
        if first_extraction.start_page == first_extraction.end_page
        else f"pages {first_extraction.start_page}–{first_extraction.end_page}"
    )
    more = f", and {len(escalated_extractions) - 1} more to look at" if len(escalated_extractions) > 1 else ""
    return f"{first_extraction.document_type} on {page_words}: {explain_extraction_escalation(first_extraction)}{more}"


def explain_extraction_escalation(extraction: Extraction) -> str:
    """Why that report or form goes to a person."""
    return next(reason for is_matching, reason in _EXTRACTION_ESCALATION_REASONS if is_matching(extraction))


def _differs_from_production_type(
    classification: ClassificationOutput | None, production_row: Mapping[str, Any] | None
) -> bool | None:
    if production_row is None or production_row["dominant_type"] is None:
        return None
    # No answer, or "cannot tell", is not what production says.
    return classification is None or classification.dominant_type_overall != production_row["dominant_type"]


def issue_text(issue: Issue) -> str:
    """The issue as slide 9 prints it; lines that would be empty are left out.

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
    """The packet as its file has it."""
    return packet.model_dump(mode="json")


def compute_packet_digest(packet: SMEPacket) -> str:
    """``packet_sha256``: SHA-256 (hex) of the canonical JSON without ``review_status``."""
    return hash_canonical_json(_omit_keys(serialise_packet(packet), "review_status"))


def _omit_keys(mapping: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: content for key, content in mapping.items() if key not in keys}


def get_base_case_id(case_id: str) -> str:
    """The case that further opinions are about; a base case itself."""
    return case_id.removesuffix(SECOND_SUFFIX).removesuffix(ADJUDICATION_SUFFIX)


def build_case_index_row(
    packet: SMEPacket, status: ReviewStatus, excluded_reviewers: Iterable[str] = ()
) -> dict[str, Any]:
    """The case's row of the index as far as the packet tells it; counts and agents are of open issues.

    ``excluded_reviewers`` are reviewers who must not answer it.
    """
    counts = {
        severity.value.lower(): sum(issue.severity is severity for issue in packet.open_issues)
        for severity in IssueSeverity
    }
    return {
        "case_id": packet.case_id,
        "doc_id": packet.doc_id,
        "kind": packet.kind,
        "pdf_filename": packet.pdf_filename,
        "pages": packet.total_pages,
        **counts,
        "decision_reason": packet.decision_reason,
        "review_reason": packet.review_reason,
        "review_status": status,
        "barred": ",".join(excluded_reviewers),
        "created_at": packet.created_at,
        "dominant_type": _get_document_type_for_index(packet),
        "agents": ",".join(sorted(_list_issue_sources(packet.open_issues))),
        "is_blind": packet.is_first_review_blind,
        "shows": packet.bundle_doc_id if packet.is_attention_check else "",
    }


def _list_issue_sources(issues: Iterable[Issue]) -> set[str]:
    """Who raised the issues; questions whose pages these are have a name of their own, for they are looked for."""
    return {issue.agent for issue in issues} | {
        PATIENT_QUESTIONS for issue in issues if issue.code.startswith(PATIENT_QUESTIONS)
    }


def _get_document_type_for_index(packet: SMEPacket) -> str:
    """What the agent takes the document for; of fields the report or form, ``several`` where there are more."""
    if packet.kind == "extraction":
        document_types = {extraction.document_type for extraction in packet.extractions}
        return document_types.pop() if len(document_types) == 1 else "several"
    if packet.kind == "statement_template":
        return "Statement template"
    return packet.classification.dominant_type_overall or "" if packet.classification else ""


def read_answering_model_name(output_folder: OutputFolder, packet: SMEPacket) -> str:
    """What gave the answer in a case: the name of a model, ``supplied`` by another system, or empty: not known.

    The document's result or extraction says so; a queue is no place to fail in because that file is gone.
    """
    doc_id = packet.bundle_doc_id
    if packet.kind == "statement_template":
        return ""
    try:
        if packet.kind == "extraction":
            return str(
                output_folder.read_json(extraction_file_name(doc_id), max_schema_version=EXTRACTIONS_VERSION)["model"]
            )
        stored = output_folder.read_json(result_file_name(doc_id), max_schema_version=RESULT_VERSION)
        if "classifier" not in stored["usage"]["by_agent"]:
            return "supplied"
        return str(stored["versions"].get("models", {}).get("classifier", stored["model"]))
    except (StoreError, LookupError, TypeError, AttributeError):
        return ""


def read_packet(output_folder: OutputFolder, case_id: str) -> SMEPacket:
    """The stored packet of a case. NotFound (naming it) if there is none; StoreError if it cannot be read."""
    not_found_error = NotFound(
        f"there is no case {case_id!r}",
        code="CASE-NOT-FOUND",
        remedy="list_pending_reviews() lists what there is; a document that was never run is run with `evalkit run`.",
    )
    if not _CASE_ID_PATTERN.fullmatch(case_id):  # it is a name, never a path
        raise not_found_error
    name = packet_file_name(case_id)
    try:
        packet = _parse_packet_file(name, output_folder.read_bytes(name))
    except NotFound as error:
        raise not_found_error from error
    if packet.case_id != case_id:
        raise StoreError(f"{name} is another case's packet", code="STORE-TORN", remedy="Restore it from a backup.")
    return packet


@lru_cache(maxsize=4)
def _parse_packet_file(name: str, raw_bytes: bytes) -> SMEPacket:
    """A packet's file, as a packet. To save a review reads the same bytes several times: to see that they are the same."""
    return parse_stored_record(
        SMEPacket,
        parse_stored_json(name, raw_bytes, max_schema_version=SCHEMA_VERSION),
        name,
        "Run the document again.",
    )


def read_packet_bundle(output_folder: OutputFolder, packet: SMEPacket) -> DocumentBundle:
    """The document of a packet. NotFound where its file is gone; StoreError if it cannot be read."""
    with pause_gc():
        return read_bundle(output_folder, packet.bundle_doc_id)


def is_packet_frozen(output_folder: OutputFolder, index: OutputIndex, case_id: str, now: str) -> bool:
    """Whether somebody has begun to work with the packet, so that no run may rewrite or withdraw it.

    That is: a review was submitted, or at ``now`` (ISO 8601, UTC, to the second) somebody has it open.
    """
    return bool(
        output_folder.list_json_files(f"{REVIEWS_FOLDER}/{case_id}")
        or index.claims.map_live_claims_by_case_id(now, case_id)
    )


def publish_packet_unless_frozen(
    output_folder: OutputFolder, index: OutputIndex, packet: SMEPacket, *, clock: Callable[[], datetime] = utc_now
) -> bool:
    """Put a case into the queue; whether its file was written.

    A frozen packet stays as it is. One that is equal but for ``created_at`` stays too, with its old clock; its row of
    the index is written again. A case that somebody has put off stays so.
    """
    name = packet_file_name(packet.case_id)
    with hold_case_write_lock(output_folder, packet.case_id):
        if is_packet_frozen(output_folder, index, packet.case_id, format_iso_seconds(clock())):
            return False
        status: ReviewStatus = "deferred" if index.deferrals.find_deferral(packet.case_id) else packet.review_status
        new_json = serialise_packet(packet) | {"review_status": status}
        # The mirror of a claim that has run out is no difference either.
        ignored_keys = ("created_at", "review_status")
        stored_json = output_folder.read_json(name) if output_folder.has_file(name) else None
        is_different = stored_json is None or _omit_keys(new_json, *ignored_keys) != _omit_keys(
            stored_json, *ignored_keys
        )
        if stored_json and stored_json.get("doc_id") != packet.doc_id:
            index.drafts.remove_case_drafts(
                packet.case_id
            )  # their words are about another patient's document: nobody else would
        if is_different:
            output_folder.write_json(name, new_json)
        else:
            write_packet_status(output_folder, packet.case_id, status)
        index.upsert_case(
            {**build_case_index_row(packet, status), "source": read_answering_model_name(output_folder, packet)}
        )
        return is_different


def withdraw_packet_unless_frozen(
    output_folder: OutputFolder, index: OutputIndex, case_id: str, *, clock: Callable[[], datetime] = utc_now
) -> bool:
    """Take a case, which a new run no longer escalates, out of the queue; whether there was one and it could go."""
    with hold_case_write_lock(output_folder, case_id):
        if is_packet_frozen(output_folder, index, case_id, format_iso_seconds(clock())):
            return False
        if get_base_case_id(case_id).endswith(TEMPLATE_CASE_SUFFIX):
            index.drafts.remove_case_drafts(
                case_id
            )  # the case bears the template's name: a purge of the statement would not find them
        is_removed = output_folder.remove_file(packet_file_name(case_id))
        index.remove_cases(case_id)
        return is_removed


def write_packet_status(output_folder: OutputFolder, case_id: str, status: ReviewStatus) -> None:
    """Rewrite the packet's ``review_status``, and nothing else of it, if it differs."""
    name = packet_file_name(case_id)
    stored = output_folder.read_json(name, max_schema_version=SCHEMA_VERSION)
    if stored["review_status"] != status:
        output_folder.write_json(name, {**stored, "review_status": status})
