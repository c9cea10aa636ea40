"""One submitted review: what was said is checked, written as a file that never changes, and carried out."""

from __future__ import annotations

import importlib.metadata
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, Self, cast

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, model_validator

from evalkit.classification.autofix import Repair
from evalkit.classification.schema import ClassificationOutput, type_definitions
from evalkit.documents.bundle import DocumentBundle
from evalkit.errors import ReviewRefused, StoreError
from evalkit.review.corrections import PARTS, Part, corrected, given_parts, validated
from evalkit.review.draft import FLAGS, Flag, covering
from evalkit.review.fields import FormFields, answers, forms, keyed, named
from evalkit.review.fields import corrected as corrected_fields
from evalkit.review.ground_truth import (
    Answered,
    IssueVerdict,
    Outcome,
    Review,
    Shown,
    append,
    is_as_saved,
    review_sha256,
)
from evalkit.review.lock import writing
from evalkit.review.opinions import Opinions, enter, settle, settle_seeded
from evalkit.review.packet import (
    SMEPacket,
    moment,
    packet_digest,
    read_bundle,
    read_packet,
)
from evalkit.review.queue import review_status
from evalkit.review.roles import Role
from evalkit.review.roster import Roster
from evalkit.review.templates import approved, given_template, template_of, unmet
from evalkit.statements.reading import Reading
from evalkit.statements.template import StatementTemplate
from evalkit.store import Files, Head, Index, canonical, review_name

log = logging.getLogger(__name__)

_VERDICTS = TypeAdapter(tuple[IssueVerdict, ...])


class _GivenFlag(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    segment_index: int
    start_page: int | None = None
    end_page: int | None = None
    flag: Flag | None = None
    note: str | None = None

    @model_validator(mode="after")
    def _say_something(self) -> Self:
        if self.flag is None and not (self.note or "").strip():
            raise ValueError("it has neither a flag nor a note")
        return self


_FLAGS = TypeAdapter(tuple[_GivenFlag, ...])

#: What a validation stands for, unless it is said.
VALIDATED_PARTS: tuple[Part, ...] = ("dominant_type", "segments")


@dataclass(frozen=True)
class Submission:
    """What an expert says about a case; the fields are ``SMEReviewHelper.save_review``'s arguments."""

    agrees: bool | None = None
    corrected_dominant_type: str | None = None
    corrected_segments: Sequence[Any] | None = None
    corrected_mixture: Sequence[Any] | None = None
    corrected_fields: Mapping[str, Any] | None = None
    corrected_template: StatementTemplate | str | None = None
    unmet_sums: str = ""
    correction_notes: str = ""
    issue_verdicts: Iterable[IssueVerdict | Mapping[str, Any]] = ()
    undeterminable: str | None = None
    vouched: Iterable[str] | None = None
    seconds_active: float | None = None
    pages_seen: Iterable[int] = ()
    evidence_seen: Iterable[str] = ()
    shown: Shown | None = None
    segment_flags: Iterable[Mapping[str, Any]] = ()
    second_opinion: str = ""
    """Why a colleague is to answer the case too; only a ``Desk`` asks."""

    @property
    def corrects(self) -> tuple[Part, ...]:
        """The parts of a classification that it corrects."""
        return given_parts(self.corrected_dominant_type, self.corrected_segments, self.corrected_mixture)


@dataclass(frozen=True)
class Tab:
    """The browser tab in which something was said; its draft, and the reviewer's older ones, go with the review."""

    session: str
    """The tab's id."""
    opened_at: str
    """When the case was opened there (ISO 8601, UTC)."""


@dataclass(frozen=True)
class Read:
    """A case as it was read before anything was said about it."""

    packet: SMEPacket
    packet_sha256: str
    bundle: DocumentBundle
    """What stands in the document."""


@dataclass(frozen=True)
class Submitter:
    """Who submits, where and when."""

    files: Files
    index: Index
    reviewer: str
    clock: Callable[[], datetime]

    def read(self, case_id: str) -> Read:
        """The case, to say something about. NotFound; StoreError where a file cannot be read."""
        packet = read_packet(self.files, case_id)
        return Read(packet, packet_digest(packet), read_bundle(self.files, packet))

    def submit(
        self,
        read: Read,
        said: Submission,
        *,
        base_revision: int | None,
        may: Callable[[str, str], None],
        said_in: Tab | None = None,
    ) -> Review:
        """Save a review on ``base_revision`` (None: whatever is the newest) and all that follows from it.

        The drafts of the tab ``said_in`` go. ``may`` is called while nobody else can write, with the digest of the packet
        as it is by then and the moment (ISO 8601, UTC), and raises what forbids saving. ReviewRefused, ReviewConflict; nothing was written then.
        """
        outcome = _outcome(said)
        _require_of_its_kind(read.packet, said)
        kind = read.packet.kind
        vouch: tuple[str, ...] = ()
        stands_for: tuple[Part, ...] = ()
        if kind == "extraction":
            vouch = _vouched_fields(read.packet, said, outcome)
        elif kind == "statement_template":
            vouch = () if outcome == "undeterminable" else ("template",)
        else:
            stands_for = _vouched(said.vouched, outcome, said.corrects)
        # Before anybody has to wait: reading a statement takes a while.
        template = _decided_template(outcome, said, read) if kind == "statement_template" else None
        with writing(self.files, read.packet.case_id):
            packet = read_packet(self.files, read.packet.case_id)
            packet_sha256, now = self._digest(packet, read), moment(self.clock())
            may(packet_sha256, now)
            after: Answered | None
            repairs: list[Repair] = []
            if kind == "extraction":
                after = _decided_fields(outcome, said, packet, read.bundle)
            elif kind == "statement_template":
                after = template
            else:
                after, repairs = _decided(outcome, said, packet, read.bundle, stands_for)
            return self._save(
                packet,
                base_revision,
                said_in,
                packet_sha256=packet_sha256,
                submitted_at=now,
                seconds_active=said.seconds_active,
                outcome=outcome,
                after=after,
                repairs_applied=tuple(repairs),
                correction_notes="\n".join(filter(None, [(said.undeterminable or "").strip(), said.correction_notes])),
                issue_verdicts=_verdicts(packet, said.issue_verdicts),
                vouched=vouch or stands_for,
                pages_seen=tuple(said.pages_seen),
                evidence_seen=tuple(said.evidence_seen),
                shown=said.shown or Shown(),
                segment_flags=_segment_flags(
                    said.segment_flags, after if isinstance(after, ClassificationOutput) else None, packet.total_pages
                ),
                unmet_sums=said.unmet_sums.strip() if template else "",
                second_opinion=said.second_opinion,
            )

    def reopen(self, case_id: str, reason: str, *, base_revision: int | None) -> Review:
        """Undo: the case waits again. ReviewRefused, NotFound, ReviewConflict; in each case nothing was written."""
        if not reason.strip():
            raise _refused("reopening needs a reason", "Say why the review cannot stand.")
        with writing(self.files, case_id):
            packet = read_packet(self.files, case_id)
            if review_status(self.files, case_id) != "completed":
                raise _refused(f"case {case_id!r} is not closed, so there is nothing to undo", "Save a review instead.")
            return self._save(
                packet,
                base_revision,
                None,
                packet_sha256=packet_digest(packet),
                submitted_at=moment(self.clock()),
                seconds_active=None,
                outcome="reopened",
                after=None,
                correction_notes=reason.strip(),
            )

    def _digest(self, packet: SMEPacket, read: Read) -> str:
        """The packet's; that of an equal one is known already. Their status does not count."""
        is_same = packet.model_copy(update={"review_status": read.packet.review_status}) == read.packet
        return read.packet_sha256 if is_same else packet_digest(packet)

    def _save(self, packet: SMEPacket, base_revision: int | None, said_in: Tab | None, **said: Any) -> Review:
        """Write the review and what follows from it; the lock is held."""
        case_id = packet.case_id
        before = Opinions.read(self.files, case_id)
        standing = Roster(self.files).standing(self.reviewer)
        standing.require(case_id, before.barred(case_id))
        before.require_writable(
            self.files, self.index, case_id, self.reviewer, said["submitted_at"], is_undo=said["outcome"] == "reopened"
        )
        self._require_as_saved(case_id)
        base = before.revision(case_id) if base_revision is None else base_revision
        review = append(self.files, case_id, self._review(packet, standing.role, said), base_revision=base)
        # From here on the review stands: an error must not invite anybody to save it a second time.
        try:
            opinions = before.with_review(case_id, review)
            there = settle(self.files, opinions)
        except StoreError as error:
            raise StoreError(
                f"the review was saved, but what follows from it was not: {error.message}",
                code=error.code,
                remedy="Do not save it again: mend the folder, then run `evalkit reindex`.",
            ) from error
        try:
            with self.index.together():
                self._enter(case_id, review, opinions, there)
                if said_in:
                    self.index.drafts.drop(case_id, self.reviewer, said_in.session, until=said_in.opened_at)
        except StoreError:
            log.warning("the index did not take a saved review; its draft stays, and `evalkit reindex` catches up")
        # In no other answer faults are planted; and a template's turn is not that of the statement's cases.
        if packet.kind != "classification":
            return review
        try:
            settle_seeded(self.files, self.index, review.submitted_at, opinions.base.doc_id)
        except StoreError:
            log.warning("seeded cases of a reviewed document were not looked over; `evalkit reindex` catches up")
        return review

    def _require_as_saved(self, case_id: str) -> None:
        """The next review vouches for the one before it: never for one that somebody has put in its place. StoreError."""
        head = self.index.heads.of(case_id)
        if head and not is_as_saved(self.files, head):
            raise StoreError(
                f"{review_name(case_id, head.revision)} is not the review that was saved, or is gone",
                code="REVIEW-CHANGED",
                remedy="Nothing was saved. Restore that file from a backup; `evalkit audit verify` names all such files.",
            )

    def _enter(self, case_id: str, review: Review, opinions: Opinions, there: frozenset[str]) -> None:
        """Tell the index, which can be made again, what the files say; and what vouches for the newest of them."""
        revision = opinions.revision(case_id)
        self.index.heads.put(Head(case_id, revision, review_sha256(self.files, case_id, revision)))
        self.index.deferrals.drop(case_id)
        enter(self.files, self.index, opinions, there)
        if opinions.status(case_id) == "completed":
            self.index.put_closing(case_id, review.reviewer, review.submitted_at, review.seconds_active)
            self.index.claims.drop(case_id)  # nobody works on a closed case
        else:
            self.index.drop_closing(case_id)

    def _review(self, packet: SMEPacket, role: Role, said: Mapping[str, Any]) -> Review:
        try:
            review = Review(
                reviewer=self.reviewer,
                role=role,
                before=_before(packet),
                seeded=packet.is_seeded,
                versions=dict(_versions()),
                **said,
            )
            canonical(review.model_dump(mode="json"))
        except ValidationError as error:
            raise _misshapen("", error, "See save_review's documentation.") from None
        except ValueError:
            raise ReviewRefused(
                "the review holds what JSON cannot carry",
                code="REVIEW-SHAPE",
                remedy="Give plain text, numbers and lists.",
            ) from None
        return review


def _before(packet: SMEPacket) -> Answered | None:
    """What the agent had said."""
    if packet.kind == "statement_template":
        return template_of(packet)
    return forms(packet) or packet.classification


@cache
def _versions() -> Mapping[str, str]:
    try:
        installed = importlib.metadata.version("evalkit")
    except importlib.metadata.PackageNotFoundError:  # run from a checkout that was never installed
        installed = "source"
    return {"evalkit": installed, "types": str(type_definitions()["version"])}


def _decided(
    outcome: Outcome, said: Submission, packet: SMEPacket, bundle: DocumentBundle, stands_for: Iterable[Part]
) -> tuple[ClassificationOutput | None, list[Repair]]:
    """The classification that the review leaves, and the repairs in it."""
    if outcome == "validated":
        return validated(packet.classification, packet.open_issues, bundle, stands_for)
    if outcome == "undeterminable":
        return None, []
    answer = corrected(
        packet.classification,
        bundle,
        dominant_type=said.corrected_dominant_type,
        segments=said.corrected_segments,
        mixture=said.corrected_mixture,
        vouched=stands_for,
    )
    return answer, []


def _decided_fields(
    outcome: Outcome, said: Submission, packet: SMEPacket, bundle: DocumentBundle
) -> tuple[FormFields, ...] | None:
    """The fields that the review leaves."""
    told = forms(packet)
    if outcome == "undeterminable":
        return None
    if outcome == "validated" and not any(one.history for one in packet.extractions):
        raise ReviewRefused(
            "no fields could be extracted, so there is nothing to agree with",
            code="REVIEW-NOTHING-TO-VALIDATE",
            remedy="Give corrected_fields, or say why it is undeterminable.",
        )
    return corrected_fields(told, answers(packet, said.corrected_fields or {}), bundle)


def _decided_template(outcome: Outcome, said: Submission, read: Read) -> StatementTemplate | None:
    """The template that the review leaves: stable. ReviewRefused where its sums are not met and nobody says why."""
    if outcome == "undeterminable":
        return None
    agents = template_of(read.packet)
    left = agents if said.corrected_template is None else given_template(read.packet, said.corrected_template)
    reading = Reading.of(left, read.bundle)
    if not reading.statement.transactions:
        raise _refused("the template reads no transaction", "Correct it, or say why it cannot be used.")
    if (wrong := unmet(reading.reconciliation)) and not said.unmet_sums.strip():
        raise _refused(wrong, "Say why the template may be approved all the same (unmet_sums), or correct it.")
    if not wrong and said.unmet_sums.strip():
        raise _refused("all sums are met", "Leave unmet_sums out.")
    return approved(agents, left)


def _vouched_fields(packet: SMEPacket, said: Submission, outcome: Outcome) -> tuple[str, ...]:
    """The keys of the fields that the expert stands for, in the packet's order: all, or the corrected ones, if not said."""
    keys = keyed(forms(packet))
    if outcome == "undeterminable":
        return ()
    if said.vouched is None:
        words = set(keys) if outcome == "validated" else {named(packet, name) for name in said.corrected_fields or {}}
    else:
        words = {named(packet, name) for name in said.vouched}
    return tuple(key for key in keys if key in words)


def _require_of_its_kind(packet: SMEPacket, said: Submission) -> None:
    """ReviewRefused where something is corrected that the case is not about."""
    given = {
        "classification": bool(said.corrects),
        "extraction": said.corrected_fields is not None,
        "statement_template": said.corrected_template is not None or bool(said.unmet_sums.strip()),
    }
    for kind, is_given in given.items():
        if is_given and kind != packet.kind:
            about, remedy = _ABOUT[packet.kind]
            raise _refused(f"case {packet.case_id!r} is about {about}, not about {_ABOUT[kind][0]}", remedy)


#: What each kind of case is about, and how it is corrected.
_ABOUT = {
    "classification": ("a document's types", "Give corrected_dominant_type or corrected_segments."),
    "extraction": ("fields", "Give corrected_fields."),
    "statement_template": ("a statement template", "Give corrected_template."),
}


def _outcome(said: Submission) -> Outcome:
    outcomes: list[Outcome] = []
    if said.agrees:
        outcomes.append("validated")
    if said.corrects or said.corrected_fields or said.corrected_template is not None:
        outcomes.append("corrected")
    if said.undeterminable is not None:
        outcomes.append("undeterminable")
    if len(outcomes) != 1:
        fault = f"a review cannot be {' and '.join(outcomes)} at once" if outcomes else "the review decides nothing"
        raise _refused(fault, "Give exactly one of agrees=True, corrected_…, or undeterminable with a reason.")
    if said.undeterminable is not None and not said.undeterminable.strip():
        raise _refused("undeterminable has no reason", "Say why nobody can tell, such as 'illegible scan'.")
    return outcomes[0]


def _vouched(given: Iterable[str] | None, outcome: Outcome, parts: Sequence[Part]) -> tuple[Part, ...]:
    """The parts that the expert stands for, in the order of ``PARTS``."""
    words: set[Part]
    if outcome == "undeterminable":
        words = set()
    elif given is None:
        # Segments say the document's type, too: it is the one of most pages.
        implied: Sequence[Part] = ("dominant_type",) if "segments" in parts else ()
        words = set(VALIDATED_PARTS) if outcome == "validated" else {*parts, *implied}
    else:
        words = cast("set[Part]", set(given))
    if unknown := words - set(PARTS):
        raise _refused(f"{sorted(unknown)!r} cannot be vouched for", f"The parts are {', '.join(PARTS)}.")
    return tuple(part for part in PARTS if part in words)


def _verdicts(packet: SMEPacket, given: Iterable[IssueVerdict | Mapping[str, Any]]) -> tuple[IssueVerdict, ...]:
    shape = "Each is a dict with issue_id (one of the packet's), verdict (confirmed or dismissed) and perhaps note."
    try:
        verdicts = _VERDICTS.validate_python(tuple(given))
    except ValidationError as error:
        raise _misshapen("issue_verdicts", error, shape) from None
    known = {issue.issue_id for issue in packet.issues}
    named = [verdict.issue_id for verdict in verdicts]
    if unknown := [name for name in named if name not in known]:
        raise _refused(f"case {packet.case_id!r} has no issue {unknown[0]!r}", shape)
    if len(set(named)) < len(named):
        raise _refused("an issue has two verdicts", shape)
    return verdicts


def _segment_flags(
    given: Iterable[Mapping[str, Any]], after: ClassificationOutput | None, total_pages: int
) -> tuple[dict[str, Any], ...]:
    """The rows with their pages; each names a segment that the review leaves.

    Where these do not cover the pages, or there are none, it says which pages it means.
    """
    shape = (
        "Each is a dict with segment_index (from 1, in the order of the pages), flag "
        f"({', '.join(FLAGS)}) or note, and start_page and end_page where the review leaves no segments that cover the pages."
    )
    try:
        read = _FLAGS.validate_python(tuple(given))
    except ValidationError as error:
        raise _misshapen("segment_flags", error, shape) from None
    left = dict(enumerate(((one.start_page, one.end_page) for one in covering(after, total_pages)), 1))
    rows = []
    for place, one in enumerate(read):
        start, end = left.get(one.segment_index, (0, 0)) if left else (one.start_page or 0, one.end_page or 0)
        is_there = one.segment_index >= 1 and 1 <= start <= end <= total_pages
        if not is_there or one.start_page not in (None, start) or one.end_page not in (None, end):
            raise _refused(f"segment_flags.{place}: the review has no such segment", shape)
        rows.append(one.model_dump(exclude_none=True) | {"start_page": start, "end_page": end})
    return tuple(rows)


def _misshapen(where: str, error: ValidationError, remedy: str) -> ReviewRefused:
    """The first fault, without the value, which may be a patient's."""
    first = error.errors(include_url=False, include_input=False)[0]
    at = ".".join([*([where] if where else []), *(str(step) for step in first["loc"])])
    return _refused(f"{at}: {first['msg']}", remedy)


def _refused(message: str, remedy: str) -> ReviewRefused:
    return ReviewRefused(message, code="REVIEW-INCOMPLETE", remedy=remedy)
