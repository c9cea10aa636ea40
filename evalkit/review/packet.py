"""SMEPacket: what an expert is asked, why, and with what evidence.

Source: specification 000, slide 9. A packet is rewritten by a new run until somebody has begun to work with it; then it
is frozen, because a review says by hash what its writer had before their eyes. ``review_status`` alone is a mirror of
claims and reviews: it is rewritten when it changes and left out of the hash.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import PurePath
from typing import Annotated, Any, Literal, Self

from pydantic import SerializerFunctionWrapHandler, model_serializer, model_validator

from evalkit.apart import Apart
from evalkit.classification.autofix import AutoFixEngine, Repair
from evalkit.classification.result import SCHEMA_VERSION as RESULT_VERSION
from evalkit.classification.result import DocumentResult
from evalkit.classification.schema import ClassificationOutput
from evalkit.classification.v5_arbiter import Decision
from evalkit.collector import resting
from evalkit.documents.bundle import SCHEMA_VERSION as BUNDLE_VERSION
from evalkit.documents.bundle import DocumentBundle, packed
from evalkit.errors import NotFound, StoreError
from evalkit.extraction.schema import SCHEMA_VERSION as EXTRACTIONS_VERSION
from evalkit.extraction.schema import Extraction, Extractions
from evalkit.frozen import Frozen
from evalkit.issue import Agent, Issue, IssueSeverity, by_severity
from evalkit.review.lock import writing
from evalkit.statements.convergence import Reason
from evalkit.statements.record import STATEMENT_TEMPLATE, TemplateCase, ToldIssue
from evalkit.statements.report import Severity
from evalkit.store import (
    REVIEWS,
    Files,
    Index,
    bundle_name,
    digest,
    extraction_name,
    packet_name,
    parsed,
    result_name,
    shaped,
)

SCHEMA_VERSION = 1

ReviewStatus = Literal["pending", "in_review", "deferred", "completed"]
ReviewReason = Literal["escalated", "audit", "sample", "requested"]

#: What the ids of the cases for further opinions end with.
SECOND, ADJUDICATION = ".second", ".adjudication"
#: What the id of a case about a document's fields ends with.
EXTRACTION = ".extraction"
#: ``decision_rule`` of such a case: no row of the arbiter's table.
FIELDS_RULE = "fields"
#: ``decision_rule`` of a case about a statement template.
TEMPLATE_RULE = "statement_template"

_CASE_ID = re.compile(r"[A-Za-z0-9_-]+(\.[a-z_]+)*")
#: Columns of a terminal line of ``issue_text``: what slide 9's example keeps to.
_WIDTH = 70


class IssueSummary(Frozen):
    """One line of the packet's summary."""

    severity: IssueSeverity
    """BLOCKER, MAJOR or MINOR."""
    agent: Agent
    """Who raised it."""
    issue_id: str
    """The issue in ``issues``."""
    message: str
    """One sentence for a clinician."""


class SMEPacket(Frozen):
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
    classification: ClassificationOutput | None
    """The agent's answer; None where it gave no usable one."""
    proposed_repairs: tuple[Repair, ...]
    """What arithmetic could mend: done when the case is validated."""
    production_differs: bool | None
    """Whether the production classifier says another type; None where its label is not known."""
    production_classification: dict[str, Any] | None
    """``dominant_type`` and, where known, ``confidence`` and ``segments``."""
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
    extractions: tuple[Extraction, ...] = ()
    """Of a case about fields, what was extracted from the document's reports and forms, accepted ones too. Written down
    only in such a case."""
    template_case: Annotated[TemplateCase, Apart()] | None = None
    """Of a case about a statement template, the template and all that was said of it. Written down only in such a case."""

    @model_validator(mode="after")
    def _has_what_it_asks_about(self) -> Self:
        if (self.kind == "statement_template") != (self.template_case is not None):
            raise ValueError("a case about a statement template has one, and no other case has")
        return self

    @model_serializer(mode="wrap")
    def _as_stored(self, serialised: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields: dict[str, Any] = serialised(self)
        return _without(fields, *(name for name in ("extractions", "template_case") if not getattr(self, name)))

    @property
    def is_asked_blind(self) -> bool:
        """Whether its first reviewer answers before the agent's answer is shown: audits, samples, second opinions.

        Never about fields or templates: nobody types a form anew that is read already, or draws boxes that are drawn.
        """
        if self.case_id.endswith(ADJUDICATION) or self.kind != "classification":
            return False
        return self.review_reason in ("audit", "sample") or self.case_id.endswith(SECOND)

    @property
    def shown_doc_id(self) -> str:
        """The document whose pages it shows; for all but seeded cases the same as ``doc_id``."""
        return self.document_bundle_path.rpartition("/")[2].removesuffix(".json")

    @property
    def is_seeded(self) -> bool:
        """Whether the shown answer is wrong on purpose: such a case shows another document's pages under its own name.

        That stands in the packet itself, so that no loss of another file could make a planted answer true.
        """
        return self.shown_doc_id != self.doc_id

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
        production: Mapping[str, Any] | None,
        created_at: str,
    ) -> SMEPacket:
        """The case of one result.

        ``inclusion_probability`` is 0..1; ``production`` is the production classifier's row (``dominant_type`` and
        perhaps ``confidence``, ``segments``) or None; ``created_at`` is ISO 8601 in UTC.
        """
        issues = by_severity(sorted(result.issues, key=lambda issue: issue.status != "open"))
        still_open = [issue for issue in issues if issue.status == "open"]
        answer = result.classification
        return SMEPacket(
            case_id=result.doc_id,
            doc_id=result.doc_id,
            pdf_filename=PurePath(bundle.file_path).name,
            pdf_path=bundle.file_path,
            total_pages=bundle.total_pages,
            v5_decision=result.decision,
            decision_rule=result.decision_rule,
            decision_reason=result.decision_reason,
            total_issues=len(still_open),
            issues_summary=tuple(_summary(issue) for issue in still_open),
            issues=tuple(issues),
            classification=answer,
            proposed_repairs=tuple(AutoFixEngine().propose(answer, still_open)) if answer else (),
            production_differs=None if production is None else _differs(answer, production),
            production_classification=None if production is None else dict(production),
            document_bundle_path=bundle_name(result.doc_id),
            review_status="pending",
            review_reason=review_reason,
            inclusion_probability=inclusion_probability,
            created_at=created_at,
        )

    def fields_packet(self, made: Extractions, bundle: DocumentBundle, *, created_at: str) -> SMEPacket:
        """The case of a document's fields, of which some reports or forms go to a person; ``created_at`` as above."""
        issues = by_severity(
            sorted(
                (issue for one in made.extractions for issue in one.issues), key=lambda issue: issue.status != "open"
            )
        )
        return _escalated(
            bundle,
            issues,
            kind="extraction",
            case_id=made.doc_id + EXTRACTION,
            decision_rule=FIELDS_RULE,
            decision_reason=why_asked(made.extractions),
            created_at=created_at,
            extractions=made.extractions,
        )

    def template_packet(self, case: TemplateCase, bundle: DocumentBundle, *, created_at: str) -> SMEPacket:
        """The case of a statement template that goes to a person, with the statement that it was tried on."""
        return _escalated(
            bundle,
            by_severity(map(_template_issue, case.issues)),
            kind="statement_template",
            case_id=case.template_id + STATEMENT_TEMPLATE,
            decision_rule=TEMPLATE_RULE,
            decision_reason=TEMPLATE_REASONS[case.escalation.escalation_reason],
            created_at=created_at,
            template_case=case,
        )


def _escalated(bundle: DocumentBundle, issues: Iterable[Issue], **own: Any) -> SMEPacket:
    """A case without a classification, of which a person is always asked; ``issues`` worst first."""
    issues = tuple(issues)
    still_open = [issue for issue in issues if issue.status == "open"]
    return SMEPacket(
        doc_id=bundle.doc_id,
        pdf_filename=PurePath(bundle.file_path).name,
        pdf_path=bundle.file_path,
        total_pages=bundle.total_pages,
        v5_decision=Decision.ESCALATE_TO_SME,
        total_issues=len(still_open),
        issues_summary=tuple(_summary(issue) for issue in still_open),
        issues=issues,
        classification=None,
        proposed_repairs=(),
        production_differs=None,
        production_classification=None,
        document_bundle_path=bundle_name(bundle.doc_id),
        review_status="pending",
        review_reason="escalated",
        inclusion_probability=1.0,
        **own,
    )


#: How a template's issues rank in the one queue (contract, ruling 19).
TEMPLATE_RANKS: dict[Severity, IssueSeverity] = {
    "critical": IssueSeverity.BLOCKER,
    "high":     IssueSeverity.BLOCKER,
    "medium":   IssueSeverity.MAJOR,
    "low":      IssueSeverity.MINOR,
}  # fmt: skip
#: Why a template goes to a person, in words for whoever looks at it.
TEMPLATE_REASONS: dict[Reason, str] = {
    "max_retries_exceeded":  "after all attempts a reviewer still finds faults in the template",
    "diverging":             "each attempt at the template made it worse",
    "arbitration_uncertain": "the reviewers disagree about the template, and nobody could settle it",
    "reviewer_failed":       "a reviewer of the template gave no answer",
    "critical_disagreement": "only one of two reviewers finds a critical fault in the template",
    "review_disabled":       "only one reviewer looks at templates, so a person approves each",
}  # fmt: skip


def _template_issue(told: ToldIssue) -> Issue:
    """One fault, as all tasks tell theirs; what an arbitrator dismissed stays open: no model takes back what was found."""
    one = told.issue
    return Issue.of(
        told.reported_by[0] if told.reported_by else "arbitrator",
        f"TEMPLATE-{one.category.upper().replace('_', '-')}",
        TEMPLATE_RANKS[one.severity],
        one.message,
        location=one.evidence.location,
        suggested_fix=one.suggested_fix,
        page=one.page,
    ).model_copy(update={"issue_id": one.issue_id})


def is_for_a_person(extraction: Extraction) -> bool:
    """Whether a person has to look at the report or form."""
    return extraction.decision != Decision.AUTO_ACCEPT


#: Why a report or form goes to a person: the first row that holds, in words for whoever looks at it.
_WHY: tuple[tuple[Callable[[Extraction], bool], str], ...] = (
    (lambda one: _has(one, "READER-NO-TEXT"),             "not every page could be read"),
    (lambda one: _has(one, "-AGENT-FAILED"),              "a program that should read or check it gave no answer"),
    (lambda one: _has(one, "GRADER-WRONG-YEAR"),          "it is for another tax year"),
    (lambda one: _has(one, "EXTRACTION-NOT-ON-PAGE"),     "a value that was claimed is not on the page"),
    (lambda one: _has(one, "EXTRACTION-NONE"),            "it has none of the fields of such a document"),
    (lambda one: not one.met_threshold,                   "the programs are not sure enough of what it says"),
    (lambda one: _has(one, "GRADER-INCONSISTENT"),        "amounts on it do not fit together"),
    (lambda one: True,                                    "some of its fields have to be looked at"),
)  # fmt: skip


def _has(extraction: Extraction, ending: str) -> bool:
    return any(issue.code.endswith(ending) and issue.status == "open" for issue in extraction.issues)


def why_asked(extractions: Iterable[Extraction]) -> str:
    """Why a person is asked about a document's fields, by the first report or form that they are asked about."""
    asked = [one for one in extractions if is_for_a_person(one)]
    first = asked[0]
    where = (
        f"page {first.start_page}"
        if first.start_page == first.end_page
        else f"pages {first.start_page}–{first.end_page}"
    )
    more = f", and {len(asked) - 1} more to look at" if len(asked) > 1 else ""
    return f"{first.document_type} on {where}: {why(first)}{more}"


def why(extraction: Extraction) -> str:
    """Why that report or form goes to a person."""
    return next(words for holds, words in _WHY if holds(extraction))


def _summary(issue: Issue) -> IssueSummary:
    return IssueSummary(severity=issue.severity, agent=issue.agent, issue_id=issue.issue_id, message=issue.message)


def _differs(answer: ClassificationOutput | None, production: Mapping[str, Any]) -> bool:
    # No answer, or "cannot tell", is not what production says.
    return answer is None or answer.dominant_type_overall != production["dominant_type"]


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
    return "\n".join([head, *(_wrapped(label, text) for label, text in rows if text.strip())])


def _wrapped(label: str, text: str) -> str:
    # Words of a document or a model must not reach a terminal as control sequences.
    words = ("".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in w) for w in text.split())
    start = f"  {label:<11}"
    return textwrap.fill(
        " ".join(words),
        _WIDTH,
        initial_indent=start,
        subsequent_indent=" " * len(start),
        break_long_words=False,
        break_on_hyphens=False,
    )


def to_json(packet: SMEPacket) -> dict[str, Any]:
    """The packet as its file has it."""
    return packet.model_dump(mode="json")


def packet_digest(packet: SMEPacket) -> str:
    """``packet_sha256``: SHA-256 (hex) of the canonical JSON without ``review_status``."""
    return digest(_without(to_json(packet), "review_status"))


def _without(value: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: inner for key, inner in value.items() if key not in keys}


def base_of(case_id: str) -> str:
    """The case that further opinions are about; a base case itself."""
    return case_id.removesuffix(SECOND).removesuffix(ADJUDICATION)


def case_row(packet: SMEPacket, status: ReviewStatus, barred: Iterable[str] = ()) -> dict[str, Any]:
    """The case's row of the index as far as the packet tells it; counts and agents are of open issues.

    ``barred`` are reviewers who must not answer it.
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
        "barred": ",".join(barred),
        "created_at": packet.created_at,
        "dominant_type": _type_of(packet),
        "agents": ",".join(sorted({issue.agent for issue in packet.open_issues})),
        "is_blind": packet.is_asked_blind,
        "shows": packet.shown_doc_id if packet.is_seeded else "",
    }


def _type_of(packet: SMEPacket) -> str:
    """What the agent takes the document for; of fields the report or form, ``several`` where there are more."""
    if packet.kind == "extraction":
        types = {one.document_type for one in packet.extractions}
        return types.pop() if len(types) == 1 else "several"
    if packet.kind == "statement_template":
        return "Statement template"
    return packet.classification.dominant_type_overall or "" if packet.classification else ""


def source(files: Files, packet: SMEPacket) -> str:
    """What gave the answer in a case: the name of a model, ``supplied`` by another system, or empty: not known.

    The document's result or extraction says so; a queue is no place to fail in because that file is gone.
    """
    doc_id = packet.shown_doc_id
    if packet.kind == "statement_template":
        return ""
    try:
        if packet.kind == "extraction":
            return str(files.read(extraction_name(doc_id), schema_version=EXTRACTIONS_VERSION)["model"])
        stored = files.read(result_name(doc_id), schema_version=RESULT_VERSION)
        if "classifier" not in stored["usage"]["by_agent"]:
            return "supplied"
        return str(stored["versions"].get("models", {}).get("classifier", stored["model"]))
    except (StoreError, LookupError, TypeError, AttributeError):
        return ""


def read_packet(files: Files, case_id: str) -> SMEPacket:
    """The stored packet of a case. NotFound (naming it) if there is none; StoreError if it cannot be read."""
    missing = NotFound(
        f"there is no case {case_id!r}",
        code="CASE-NOT-FOUND",
        remedy="list_pending_reviews() lists what there is; a document that was never run is run with `evalkit run`.",
    )
    if not _CASE_ID.fullmatch(case_id):  # it is a name, never a path
        raise missing
    name = packet_name(case_id)
    try:
        packet = _shaped(name, files.raw(name))
    except NotFound as error:
        raise missing from error
    if packet.case_id != case_id:
        raise StoreError(f"{name} is another case's packet", code="STORE-TORN", remedy="Restore it from a backup.")
    return packet


@lru_cache(maxsize=4)
def _shaped(name: str, raw: bytes) -> SMEPacket:
    """A packet's file, as a packet. To save a review reads the same bytes several times: to see that they are the same."""
    return shaped(SMEPacket, parsed(name, raw, schema_version=SCHEMA_VERSION), name, "Run the document again.")


def read_bundle(files: Files, packet: SMEPacket) -> DocumentBundle:
    """The document of a packet. NotFound where its file is gone; StoreError if it cannot be read."""
    name = packet.document_bundle_path
    with resting():
        stored = files.read(name, schema_version=BUNDLE_VERSION, each=packed)
        return shaped(DocumentBundle, stored, name, "Run the document again.")


def utc_now() -> datetime:
    """The clock, unless another is given."""
    return datetime.now(UTC)


def moment(at: datetime) -> str:
    """A moment as it is stored: ISO 8601 in UTC, to the second, so that moments compare as text."""
    return at.astimezone(UTC).isoformat(timespec="seconds")


def is_frozen(files: Files, index: Index, case_id: str, now: str) -> bool:
    """Whether somebody has begun to work with the packet, so that no run may rewrite or withdraw it.

    That is: a review was submitted, or at ``now`` (ISO 8601, UTC, to the second) somebody has it open.
    """
    return bool(files.names(f"{REVIEWS}/{case_id}") or index.claims.live(now, case_id))


def publish(files: Files, index: Index, packet: SMEPacket, *, clock: Callable[[], datetime] = utc_now) -> bool:
    """Put a case into the queue; whether its file was written.

    A frozen packet stays as it is. One that is equal but for ``created_at`` stays too, with its old clock; its row of
    the index is written again. A case that somebody has put off stays so.
    """
    name = packet_name(packet.case_id)
    with writing(files, packet.case_id):
        if is_frozen(files, index, packet.case_id, moment(clock())):
            return False
        status: ReviewStatus = "deferred" if index.deferrals.of(packet.case_id) else packet.review_status
        new = to_json(packet) | {"review_status": status}
        # The mirror of a claim that has run out is no difference either.
        passing = ("created_at", "review_status")
        before = files.read(name) if files.exists(name) else None
        is_new = before is None or _without(new, *passing) != _without(before, *passing)
        if before and before.get("doc_id") != packet.doc_id:
            index.drafts.forget(packet.case_id)  # their words are about another patient's document: nobody else would
        if is_new:
            files.write(name, new)
        else:
            mirror_status(files, packet.case_id, status)
        index.put_case({**case_row(packet, status), "source": source(files, packet)})
        return is_new


def withdraw(files: Files, index: Index, case_id: str, *, clock: Callable[[], datetime] = utc_now) -> bool:
    """Take a case, which a new run no longer escalates, out of the queue; whether there was one and it could go."""
    with writing(files, case_id):
        if is_frozen(files, index, case_id, moment(clock())):
            return False
        if base_of(case_id).endswith(STATEMENT_TEMPLATE):
            index.drafts.forget(
                case_id
            )  # the case bears the template's name: a purge of the statement would not find them
        was_there = files.remove(packet_name(case_id))
        index.drop_cases(case_id)
        return was_there


def mirror_status(files: Files, case_id: str, status: ReviewStatus) -> None:
    """Rewrite the packet's ``review_status``, and nothing else of it, if it differs."""
    name = packet_name(case_id)
    stored = files.read(name, schema_version=SCHEMA_VERSION)
    if stored["review_status"] != status:
        files.write(name, {**stored, "review_status": status})
