"""Desk: one expert in one browser tab. The widgets show what it gives and pass on what is pressed.

A case is claimed on opening, its draft saved as it changes, and its review submitted on the revision that was on
screen. What people decide is decided here, so that two screens, or a notebook beside a screen, cannot contradict each
other.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from statistics import median

from pydantic import ValidationError

from evalkit.errors import ReviewConflict, ReviewRefused, StoreError, UsageError
from evalkit.review.case import Case, is_blind
from evalkit.review.claims import CLAIM_TIME, Holder, reconcile, show_in_packet, show_status
from evalkit.review.draft import Draft
from evalkit.review.field_case import FieldCase
from evalkit.review.ground_truth import Review, newest_revision
from evalkit.review.helper import at_work
from evalkit.review.lock import writing
from evalkit.review.opinions import Opinions
from evalkit.review.packet import (
    ADJUDICATION,
    ReviewReason,
    SMEPacket,
    base_of,
    moment,
    packet_digest,
    read_bundle,
    read_packet,
)
from evalkit.review.queue import (
    OPEN_STATUSES,
    Progress,
    Queue,
    QueueView,
    listed,
    queue_row,
)
from evalkit.review.roles import Role, Standing
from evalkit.review.roster import Roster
from evalkit.review.seeded import feedback, read_seeded
from evalkit.review.submission import Submission, Submitter, Tab
from evalkit.review.template_case import TemplateReview
from evalkit.store import Claim, Deferral, Files, Index, StoredDraft, Viewed, packet_name

__all__ = ["Case", "Desk", "Submitted"]

_log = logging.getLogger(__name__)

#: The rhythm in which a reviewer gets an audit or sample instead of the worst case, so that they are reached.
ONE_IN = 8
#: A claim that was renewed this short a time ago is not renewed again.
_RENEWED_EVERY = timedelta(seconds=30)
_FIRST_PAGE = QueueView()
_DRAWN: tuple[ReviewReason, ...] = ("audit", "sample")


def _here() -> datetime:
    return datetime.now(UTC).astimezone()


@dataclass(frozen=True)
class Submitted:
    """A review that stands."""

    review: Review
    revision: int
    """Its number, from 1."""
    saved_at: str
    """When (ISO 8601, UTC)."""
    production: str | None
    """The production classifier's type; None where its label is not known."""
    agent: str | None
    """The type that the agent gave the whole document; only of a blind case, and None where it gave none."""
    agrees: bool | None
    """Whether the expert said the same as the agent without having seen it; None but for an answer to a blind case."""
    planted: str = ""
    """What is told of the fault that was planted in the case; empty in any other case."""


@dataclass(frozen=True)
class _Undoable:
    """The last review that was submitted here."""

    case_id: str
    revision: int
    packet_sha256: str
    draft: Draft


@dataclass(frozen=True)
class _Opened:
    """What was on screen when the case was opened."""

    revision: int
    packet_sha256: str
    at: str
    claim: Claim | None
    """As this screen took it last; None where the case is open for reading."""

    @property
    def is_for_reading(self) -> bool:
        return self.claim is None


class Desk:
    """One expert in one browser tab."""

    def __init__(
        self, output: Path | str, reviewer: str, session: str, *, clock: Callable[[], datetime] = _here
    ) -> None:
        """``output`` is the folder of a run; ``session`` the tab's id, which survives a reload of the tab.

        ``clock`` gives moments with their time zone; the zone says when a day begins. UsageError where the reviewer's
        name or the tab's id is empty, or where that is no output folder.
        """
        name = at_work(output, reviewer)
        if not session:
            raise UsageError("the tab has no id", code="REVIEWER-SESSION", remedy="Give session='…', one per tab.")
        self._me = Holder(name, session)
        self._clock = clock
        self._files = Files(output)
        self._index = Index(output)
        self._roster = Roster(self._files)
        self._submitter = Submitter(self._files, self._index, name, clock)
        self._opened: dict[str, _Opened] = {}
        self._last: _Undoable | None = None

    def close(self) -> None:
        """Give back the cases that are open here, and the database.

        What the same tab has opened since then, on a page that was loaded again, stays its own.
        """
        with ExitStack() as leaving:  # what fails with one case keeps none of the others, and is told in the end
            leaving.callback(self._index.close)
            for case_id in self._opened:
                leaving.callback(self.release, case_id)

    @property
    def role(self) -> Role:
        """The reviewer's, as it is now."""
        return self._standing.role

    def queue(self, view: QueueView = _FIRST_PAGE) -> Queue:
        """The part of the queue that the view asks for, and how much was done today."""
        now, standing = self._clock(), self._standing
        reconcile(self._files, self._index, moment(now))
        rows, matching, facets, page = listed(self._index, view, now, self._me.reviewer)
        counts = self._index.case_list.by_status()
        midnight = self._midnight()
        return Queue(
            rows=tuple(queue_row(row, self._me.reviewer, self._me.session, standing) for row in rows),
            pending=counts.get("pending", 0),
            in_review=counts.get("in_review", 0),
            done_today=self._index.closed(since=midnight),
            done_by_me=self._index.closed(since=midnight, reviewer=self._me.reviewer),
            deferred=counts.get("deferred", 0),
            matching=matching,
            facets=facets,
            view=replace(view, page=page),
            role=standing.role,
            only_looks=standing.only_looks,
        )

    def progress(self) -> Progress:
        """How far the work is, and how long a case takes this reviewer."""
        midnight = self._midnight()
        mine = self._me.reviewer
        seconds = self._index.seconds_active(mine, since=midnight) or self._index.seconds_active(mine)
        counts = self._index.case_list.by_status()
        return Progress(
            done_today=self._index.closed(since=midnight),
            done_by_me=self._index.closed(since=midnight, reviewer=mine),
            left=sum(counts.get(status, 0) for status in OPEN_STATUSES),
            median_seconds=median(seconds) if seconds else None,
        )

    def next_case(self) -> str | None:
        """The case to do next, or None: the worst that nobody has open, every eighth time an audit or sample.

        Never one that was put off, or that this reviewer may not do; none for one who may only look.
        """
        reconcile(self._files, self._index, moment(self._clock()))
        standing = self._standing
        if standing.only_looks:
            return None
        worst = partial(
            self._index.case_list.worst,
            barred=self._me.reviewer,
            ending=ADJUDICATION,
            left_to=standing.leaves_to,
        )
        is_turn = self._index.closed(reviewer=self._me.reviewer) % ONE_IN == ONE_IN - 1
        return (worst(reasons=_DRAWN) if is_turn else None) or worst()

    def open(self, case_id: str, *, take_over: bool = False) -> Case:
        """The case, claimed for this tab for 15 minutes, with the draft that was saved.

        A closed case is opened for reading, without a claim, and so is every case for a reviewer who may only look.
        CaseTaken where it is open elsewhere, unless it is taken over; ReviewRefused where it needs another expert's
        opinion than this one's, or an adjudicator's; NotFound, naming it; StoreError where
        its files cannot be read.
        """
        packet = read_packet(self._files, case_id)
        bundle = read_bundle(self._files, packet)  # before the claim: it may fail
        now = self._clock()
        with writing(self._files, case_id):
            packet = read_packet(self._files, case_id)
            opinions = Opinions.read(self._files, case_id)
            opinions.require_not_barred(case_id, self._me.reviewer)
            opinions.require_readable(case_id, self._me.reviewer)
            is_completed = opinions.status(case_id) == "completed"
            standing = self._standing
            claim = None
            is_for_reading = is_completed or standing.only_looks
            if not is_for_reading:
                standing.require(case_id, opinions.barred(case_id))
            with self._index.together():
                if not is_for_reading:
                    claim = self._me.take(self._index, case_id, now, take_over=take_over)
                    self._index.set_status(case_id, "in_review")
                self._index.views.add(Viewed(case_id, self._me.reviewer, moment(now)))
            if not is_for_reading:
                show_in_packet(self._files, case_id, "in_review")
                packet = packet.model_copy(update={"review_status": "in_review"})
            opened = _Opened(newest_revision(self._files, case_id), packet_digest(packet), moment(now), claim)
        self._opened[case_id] = opened
        draft, saved_at = self._draft(packet, opened)
        return _kind(packet)(
            packet,
            bundle,
            opened.revision,
            draft,
            saved_at,
            is_completed,
            opinions.readable(case_id, self._me.reviewer),
            opinions.answers(case_id),
            opinions.request(case_id),
            self._index.deferrals.of(case_id),
            self._planted(packet, opinions.chains[case_id][-1][1]) if is_completed else "",
            only_looks=standing.only_looks,
        )

    def renew(self, case_id: str) -> None:
        """Keep the claim for another 15 minutes; one that has run out is taken again if nobody else has it.

        CaseTaken where somebody else has it; ReviewConflict where the case was reviewed or run anew since it was
        opened. ReviewRefused where it is not open here, or no longer the reviewer's to decide: the claim runs out then. A
        case that is open for reading has no claim to keep.
        """
        opened = self._is_open(case_id)
        if opened.is_for_reading:
            return
        now = self._clock()
        claim = self._claim(case_id, moment(now))
        # The heartbeat comes every few seconds, and each write is a sync of the disk.
        if claim and self._me.has(claim) and claim.expires_at > moment(now + CLAIM_TIME - _RENEWED_EVERY):
            return  # if a page of this tab wrote it that was loaded later, it is that page's to give back
        with writing(self._files, case_id):  # else a closed case might be claimed
            self._check(case_id, opened, self._digest(case_id), moment(now))
            self._standing.require(case_id, Opinions.read(self._files, case_id).barred(case_id))
            claim = self._me.take(self._index, case_id, now)
            self._opened[case_id] = replace(opened, claim=claim)
            show_status(self._files, self._index, case_id, moment(now))

    def save_draft(self, case_id: str, draft: Draft) -> str:
        """Save what was said so far; when (ISO 8601, UTC). It is on disk then. No claim is needed.

        NotFound where there is no such case; ReviewRefused where the reviewer may only look; StoreError where it could
        not be written.
        """
        opened = self._opened.get(case_id)
        if opened is None or opened.is_for_reading:
            self._standing.require_decides(case_id)
        with writing(self._files, case_id):
            return self._keep(case_id, draft)

    def _keep(self, case_id: str, draft: Draft) -> str:
        """As ``save_draft``; the caller holds the lock."""
        opened = self._opened.get(case_id)
        packet_sha256 = opened.packet_sha256 if opened else self._digest(case_id)
        now = moment(self._clock())
        self._put(
            StoredDraft(case_id, self._me.reviewer, self._me.session, packet_sha256, draft.model_dump_json(), now)
        )
        return now

    def _put(self, draft: StoredDraft) -> None:
        """Under the lock, and only of a case that is there: a tab that is still open must not bring back what was purged."""
        if not self._files.exists(packet_name(draft.case_id)):
            read_packet(self._files, draft.case_id)
        self._index.drafts.put(draft)

    def submit(
        self, case_id: str, draft: Draft, *, validate: bool = False, undeterminable: str | None = None
    ) -> Submitted:
        """Close the case: validate it, say why it is undeterminable, or correct what differs from the agent's answer.

        In a blind case the expert only answers: whether that validates or corrects follows from what the agent said.

        CaseTaken where somebody else has it open, ReviewConflict where it was reviewed or run anew since it was opened,
        ReviewRefused where the review cannot stand or something that must be seen was not; nothing was written then.
        Afterwards draft and claim are gone.
        """
        return self._submit(
            case_id, draft, lambda case: case.said(draft, validate=validate, undeterminable=undeterminable)
        )

    def ask_second(self, case_id: str, draft: Draft, reason: str) -> Submitted:
        """Submit one's own answer and ask a colleague, with the reason, to answer the case too: ``….second``.

        A draft that changes nothing validates the case where it may, and else corrects it by its words. The document has no ground truth until
        the colleague agrees, or a third expert has decided. Refused as ``submit``, and without a reason.
        """
        if not reason.strip():
            raise _incomplete("asking for a second opinion needs a reason", "Say what the colleague should look at.")
        if base_of(case_id) != case_id:
            raise ReviewRefused(
                f"case {case_id!r} is itself a further opinion",
                code="REVIEW-NOT-BASE",
                remedy="Answer it yourself; where two answers differ, a third expert decides.",
            )

        def said(case: Case) -> Submission:
            is_correction = case.is_changed(draft) or bool(draft.notes.strip())
            validate = case.why_not_validate(draft) is None or not is_correction
            answer = case.said(draft, validate=validate, undeterminable=None)
            return replace(answer, second_opinion=reason.strip())

        return self._submit(case_id, draft, said)

    def defer(self, case_id: str, draft: Draft, reason: str) -> str:
        """Put the case off: keep the draft, give the claim back, and tell the next reader why; when (ISO 8601, UTC).

        It waits as ``deferred`` whenever nobody has it open, until its next review. CaseTaken, ReviewConflict as in
        ``submit``; ReviewRefused without a reason, or where the case is closed.
        """
        if not reason.strip():
            raise _incomplete("putting a case off needs a reason", "Say what it waits for.")
        opened = self._is_undecided(case_id)
        at = self._clock()
        with writing(self._files, case_id):
            self._check(case_id, opened, self._digest(case_id), moment(at))
            self._standing.require(case_id, Opinions.read(self._files, case_id).barred(case_id))
            self._keep(case_id, draft)  # no claim is given back before the work is on disk
            self._index.deferrals.put(Deferral(case_id, self._me.reviewer, reason.strip(), moment(at)))
            self._index.claims.drop(case_id)
            show_status(self._files, self._index, case_id, moment(at))
        del self._opened[case_id]
        return moment(at)

    def _submit(self, case_id: str, draft: Draft, said: Callable[[Case], Submission]) -> Submitted:
        opened = self._is_undecided(case_id)
        read = self._submitter.read(case_id)
        packet = read.packet
        # Who has the case is said before what is wrong with the draft.
        self._check(case_id, opened, read.packet_sha256, moment(self._clock()))
        case = _kind(packet)(packet, read.bundle, opened.revision, draft, None, is_completed=False, reviews=())
        review = self._submitter.submit(
            read,
            said(case),
            base_revision=opened.revision,
            # A claim that has run out is not taken again: nobody can take the case before the review stands.
            may=partial(self._check, case_id, opened),
            said_in=Tab(self._me.session, opened.at),
        )
        undoable = _Undoable(case_id, opened.revision + 1, opened.packet_sha256, draft)
        self._last = None if packet.is_seeded else undoable  # what was planted is told now
        del self._opened[case_id]
        production, agents = packet.production_classification, packet.classification
        return Submitted(
            review,
            opened.revision + 1,
            review.submitted_at,
            production=production["dominant_type"] if production else None,
            agent=agents.dominant_type_overall if case.is_blind and agents else None,
            agrees=case.agrees(draft) if case.is_blind and review.outcome != "undeterminable" else None,
            planted=self._planted(packet, review),
        )

    @property
    def can_undo(self) -> bool:
        """Whether there is a submission that ``undo_submitted`` would undo."""
        return self._last is not None

    def undo_submitted(self) -> str:
        """Reopen the case that was submitted last here, with the draft that was submitted; its case_id.

        ReviewRefused where there is none; ReviewConflict where the case was reviewed since. The next opening shows the
        draft; a case that was blind is so no longer, since the agent's answer was told after the decision.
        """
        if self._last is None:
            raise ReviewRefused(
                "nothing was submitted here that could be undone",
                code="REVIEW-NOTHING-TO-UNDO",
                remedy="Reopen a closed case with a reason: SMEReviewHelper.reopen(case_id, reason).",
            )
        last = self._last
        now, text = moment(self._clock()), last.draft.model_dump_json()
        # Before the case is open again: the words must not be lost between the two.
        with writing(self._files, last.case_id):
            self._put(StoredDraft(last.case_id, self._me.reviewer, self._me.session, last.packet_sha256, text, now))
        try:
            self._submitter.reopen(last.case_id, "undone by the reviewer", base_revision=last.revision)
        except ReviewRefused:
            self._index.drafts.drop(last.case_id, self._me.reviewer, self._me.session, until=now)
            raise
        self._last = None
        return last.case_id

    def release(self, case_id: str) -> None:
        """Give the case back; its draft stays. Nothing happens where the claim is no longer the one that was taken here."""
        opened = self._opened.get(case_id)
        if opened is not None and opened.claim is not None:
            with writing(self._files, case_id):
                if self._index.claims.give_back(opened.claim):
                    show_status(self._files, self._index, case_id, moment(self._clock()))
        self._opened.pop(case_id, None)

    def _planted(self, packet: SMEPacket, review: Review) -> str:
        if not packet.is_seeded:
            return ""
        try:
            return feedback(read_seeded(self._files, packet.case_id).fault, review)
        except StoreError:  # the review stands, and nobody must take the case for a true one
            return "A fault was planted in this case, as you were told may happen. Which one can no longer be read."

    @property
    def _standing(self) -> Standing:
        """Read whenever it is asked for: another role counts at once."""
        return self._roster.standing(self._me.reviewer)

    def _midnight(self) -> str:
        return moment(self._clock().replace(hour=0, minute=0, second=0, microsecond=0))

    def _claim(self, case_id: str, now: str) -> Claim | None:
        return self._index.claims.live(now, case_id).get(case_id)

    def _digest(self, case_id: str) -> str:
        return packet_digest(read_packet(self._files, case_id))

    def _is_open(self, case_id: str) -> _Opened:
        if case_id not in self._opened:
            raise ReviewRefused(
                f"case {case_id!r} is not open here", code="REVIEW-NOT-OPEN", remedy="Open it from the queue."
            )
        return self._opened[case_id]

    def _is_undecided(self, case_id: str) -> _Opened:
        opened = self._is_open(case_id)
        if opened.is_for_reading:
            self._standing.require_decides(case_id)
            raise ReviewRefused(
                f"case {case_id!r} is closed", code="REVIEW-CLOSED", remedy="Reopen it with a reason first."
            )
        return opened

    def _check(self, case_id: str, opened: _Opened, packet_sha256: str, now: str) -> None:
        """CaseTaken where somebody else has the case; ReviewConflict where it is not the one that was opened."""
        claim = self._claim(case_id, now)
        if claim and not self._me.has(claim):
            raise self._me.refused(claim)
        if newest_revision(self._files, case_id) != opened.revision:
            raise _conflict(f"case {case_id!r} was reviewed since it was opened here")
        if packet_sha256 != opened.packet_sha256:
            raise _conflict(f"case {case_id!r} was run anew since it was opened here")

    def _draft(self, packet: SMEPacket, opened: _Opened) -> tuple[Draft, str | None]:
        """The reviewer's newest draft, moved to the packet as it is now, and when it was saved; else the first one.

        That is what the agent says, or in a blind case nothing.
        """
        hides_agent = is_blind(packet, opened.revision)
        first = Draft.blank(packet.total_pages) if hides_agent else Draft.of(packet)
        stored = self._index.drafts.newest(packet.case_id, self._me.reviewer, self._me.session)
        if stored is None:
            return first, None
        try:
            draft = Draft.model_validate_json(stored.draft)
        except ValidationError:
            # Of an evalkit that shaped drafts otherwise. Without the cause: it would quote the patient's document.
            _log.warning("a draft of another evalkit cannot be read; the case starts anew")
            return first, None
        is_same = stored.packet_sha256 == opened.packet_sha256 and draft.total_pages == packet.total_pages
        return draft if is_same else draft.moved_to(first), stored.saved_at


#: What a case of each kind is on the screen.
_KINDS: dict[str, type[Case]] = {
    "classification": Case,
    "extraction": FieldCase,
    "statement_template": TemplateReview,
}


def _kind(packet: SMEPacket) -> type[Case]:
    return _KINDS[packet.kind]


def _incomplete(message: str, remedy: str) -> ReviewRefused:
    return ReviewRefused(message, code="REVIEW-INCOMPLETE", remedy=remedy)


def _conflict(message: str) -> ReviewConflict:
    return ReviewConflict(message, code="REVIEW-CONFLICT", remedy="Your draft is kept. Open the case again.")
