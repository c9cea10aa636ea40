"""Desk: one expert in one browser tab. The widgets show what it gives and pass on what is pressed.

A case is claimed on opening, its draft saved as it changes, and its review submitted on the revision that was on
screen. What people decide is decided here, so that two screens, or a notebook beside a screen, cannot contradict each
other.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from evalkit.errors import ReviewConflict, ReviewRefused, UsageError
from evalkit.review.case import Case
from evalkit.review.claims import CLAIM_TIME, Holder, reconcile, show_status
from evalkit.review.draft import Draft
from evalkit.review.ground_truth import Review, newest_revision, reviews, status_after
from evalkit.review.helper import at_work
from evalkit.review.lock import writing
from evalkit.review.packet import ReviewReason, SMEPacket, moment, packet_digest, read_bundle, read_packet
from evalkit.review.submission import Submitter
from evalkit.store import Claim, Files, Index, StoredDraft

__all__ = ["Case", "Desk", "Queue", "QueueRow", "Submitted"]

_log = logging.getLogger(__name__)

#: The rhythm in which a reviewer gets an audit or sample instead of the worst case, so that they are reached.
ONE_IN = 8
#: A claim that was renewed this short a time ago is not renewed again.
_RENEWED_EVERY = timedelta(seconds=30)
_DRAWN: tuple[ReviewReason, ...] = ("audit", "sample")


def _here() -> datetime:
    return datetime.now(UTC).astimezone()


@dataclass(frozen=True)
class QueueRow:
    """One case that waits or is worked on."""

    case_id: str
    doc_id: str
    pdf_filename: str
    pages: int
    blocker: int
    """Open issues of that severity."""
    major: int
    minor: int
    decision_reason: str
    """The arbiter's sentence."""
    review_reason: ReviewReason
    status: Literal["pending", "in_review"]
    holder: str | None
    """The reviewer who has it open."""
    since: str | None
    """Since when (ISO 8601, UTC)."""
    is_mine: bool
    """Whether this very tab has it open."""


@dataclass(frozen=True)
class Queue:
    """What there is to do."""

    rows: tuple[QueueRow, ...]
    """Strictly worst first."""
    pending: int
    """How many wait."""
    in_review: int
    """How many are open somewhere."""
    done_today: int
    """How many cases were closed since midnight, by the desk's clock."""
    done_by_me: int
    """How many of these by this reviewer."""


@dataclass(frozen=True)
class Submitted:
    """A review that stands."""

    review: Review
    revision: int
    """Its number, from 1."""
    saved_at: str
    """When (ISO 8601, UTC)."""


@dataclass(frozen=True)
class _Opened:
    """What was on screen when the case was opened."""

    revision: int
    packet_sha256: str
    at: str
    is_completed: bool


class Desk:
    """One expert in one browser tab."""

    def __init__(
        self, output: Path | str, reviewer: str, session: str, *, clock: Callable[[], datetime] = _here
    ) -> None:
        """``output`` is the folder of a run; ``session`` the tab's id, which survives a reload of the tab.

        ``clock`` gives moments with their time zone; the zone says when a day begins. UsageError where the reviewer's
        name or the tab's id is empty, or where there is no such folder.
        """
        name = at_work(output, reviewer)
        if not session:
            raise UsageError("the tab has no id", code="REVIEWER-SESSION", remedy="Give session='…', one per tab.")
        self._me = Holder(name, session)
        self._clock = clock
        self._files = Files(output)
        self._index = Index(output)
        self._submitter = Submitter(self._files, self._index, name, clock)
        self._opened: dict[str, _Opened] = {}

    def close(self) -> None:
        """Give the database back. Claims stay: a reload of the tab may have renewed them already; they run out."""
        self._index.close()

    def queue(self) -> Queue:
        """What waits and what is open, and how much was done today."""
        rows = self._rows()
        now = self._clock()
        midnight = moment(now.replace(hour=0, minute=0, second=0, microsecond=0))
        pending = sum(row.status == "pending" for row in rows)
        return Queue(
            rows=rows,
            pending=pending,
            in_review=len(rows) - pending,
            done_today=self._index.closed(since=midnight),
            done_by_me=self._index.closed(since=midnight, reviewer=self._me.reviewer),
        )

    def next_case(self) -> str | None:
        """The case to do next, or None: the worst that nobody has open, every eighth time an audit or sample."""
        free = [row for row in self._rows() if row.status == "pending"]
        is_turn = self._index.closed(reviewer=self._me.reviewer) % ONE_IN == ONE_IN - 1
        drawn = [row for row in free if is_turn and row.review_reason in _DRAWN]
        return next((row.case_id for row in drawn or free), None)

    def open(self, case_id: str, *, take_over: bool = False) -> Case:
        """The case, claimed for this tab for 15 minutes, with the draft that was saved.

        A closed case is opened for reading, without a claim. CaseTaken where it is open elsewhere, unless it is taken
        over; NotFound, naming it; StoreError where its files cannot be read.
        """
        bundle = read_bundle(self._files, read_packet(self._files, case_id))  # before the claim: it may fail
        now = self._clock()
        with writing(self._files):
            packet = read_packet(self._files, case_id)
            chain = tuple(reviews(self._files, case_id))
            is_completed = status_after(chain[-1] if chain else None) == "completed"
            if not is_completed:
                self._me.take(self._index, case_id, now, take_over=take_over)
                show_status(self._files, self._index, case_id, moment(now))
                packet = packet.model_copy(update={"review_status": "in_review"})
            opened = _Opened(newest_revision(self._files, case_id), packet_digest(packet), moment(now), is_completed)
        self._opened[case_id] = opened
        draft, saved_at = self._draft(packet, opened.packet_sha256)
        return Case(packet, bundle, opened.revision, draft, saved_at, is_completed, chain)

    def renew(self, case_id: str) -> None:
        """Keep the claim for another 15 minutes; one that has run out is taken again if nobody else has it.

        CaseTaken where somebody else has it; ReviewConflict where the case was reviewed or run anew since it was
        opened. ReviewRefused where it is not open here. A case that is open for reading has no claim to keep.
        """
        opened = self._is_open(case_id)
        if opened.is_completed:
            return
        now = self._clock()
        claim = self._claim(case_id, now)
        # The heartbeat comes every few seconds, and each write is a sync of the disk.
        if claim and self._me.has(claim) and claim.expires_at > moment(now + CLAIM_TIME - _RENEWED_EVERY):
            return
        with writing(self._files):
            self._hold(read_packet(self._files, case_id), opened, now)
            show_status(self._files, self._index, case_id, moment(now))

    def save_draft(self, case_id: str, draft: Draft) -> str:
        """Save what was said so far; when (ISO 8601, UTC). It is on disk then. No claim is needed.

        NotFound where there is no such case; StoreError where it could not be written.
        """
        opened = self._opened.get(case_id)
        packet_sha256 = opened.packet_sha256 if opened else packet_digest(read_packet(self._files, case_id))
        now = moment(self._clock())
        text = draft.model_dump_json()
        self._index.drafts.put(StoredDraft(case_id, self._me.reviewer, self._me.session, packet_sha256, text, now))
        return now

    def submit(
        self, case_id: str, draft: Draft, *, validate: bool = False, undeterminable: str | None = None
    ) -> Submitted:
        """Close the case: validate it, say why it is undeterminable, or correct what differs from the agent's answer.

        CaseTaken where somebody else has it open, ReviewConflict where it was reviewed or run anew since it was opened,
        ReviewRefused where the review cannot stand or something that must be seen was not; nothing was written then.
        Afterwards draft and claim are gone.
        """
        opened = self._is_open(case_id)
        if opened.is_completed:
            raise ReviewRefused(
                f"case {case_id!r} is closed", code="REVIEW-CLOSED", remedy="Reopen it with a reason first."
            )
        packet = read_packet(self._files, case_id)
        self._check(packet, opened, self._clock())  # who has the case is said before what is wrong with the draft
        case = Case(
            packet, read_bundle(self._files, packet), opened.revision, draft, None, is_completed=False, reviews=()
        )
        review = self._submitter.submit(
            case_id,
            case.said(draft, validate=validate, undeterminable=undeterminable),
            base_revision=opened.revision,
            may=lambda current, now: self._hold(current, opened, datetime.fromisoformat(now)),
        )
        self._index.drafts.drop(case_id, self._me.reviewer, self._me.session, until=opened.at)
        del self._opened[case_id]
        return Submitted(review, opened.revision + 1, review.submitted_at)

    def release(self, case_id: str) -> None:
        """Give the case back; its draft stays. Nothing happens where this tab has no claim on it."""
        self._opened.pop(case_id, None)
        with writing(self._files):
            if self._index.claims.drop(case_id, reviewer=self._me.reviewer, session=self._me.session):
                show_status(self._files, self._index, case_id, moment(self._clock()))

    def _rows(self) -> tuple[QueueRow, ...]:
        now = moment(self._clock())
        reconcile(self._files, self._index, now)
        claims = self._index.claims.live(now)
        return tuple(self._row(row, claims.get(row["case_id"])) for row in self._index.cases("pending", "in_review"))

    def _row(self, row: dict[str, Any], claim: Claim | None) -> QueueRow:
        names = ("case_id", "doc_id", "pdf_filename", "pages", "blocker", "major", "minor")
        return QueueRow(
            **{name: row[name] for name in (*names, "decision_reason", "review_reason")},
            status="in_review" if claim else "pending",
            holder=claim.reviewer if claim else None,
            since=claim.since if claim else None,
            is_mine=self._me.has(claim),
        )

    def _claim(self, case_id: str, now: datetime) -> Claim | None:
        return self._index.claims.live(moment(now), case_id).get(case_id)

    def _is_open(self, case_id: str) -> _Opened:
        if case_id not in self._opened:
            raise ReviewRefused(
                f"case {case_id!r} is not open here", code="REVIEW-NOT-OPEN", remedy="Open it from the queue."
            )
        return self._opened[case_id]

    def _check(self, packet: SMEPacket, opened: _Opened, now: datetime) -> None:
        """CaseTaken where somebody else has the case; ReviewConflict where it is not the one that was opened."""
        claim = self._claim(packet.case_id, now)
        if claim and not self._me.has(claim):
            raise self._me.refused(claim)
        if newest_revision(self._files, packet.case_id) != opened.revision:
            raise _conflict(f"case {packet.case_id!r} was reviewed since it was opened here")
        if packet_digest(packet) != opened.packet_sha256:
            raise _conflict(f"case {packet.case_id!r} was run anew since it was opened here")

    def _hold(self, packet: SMEPacket, opened: _Opened, now: datetime) -> None:
        """Check, and claim the case again if need be; only under the lock, or a closed case might be claimed."""
        self._check(packet, opened, now)
        self._me.take(self._index, packet.case_id, now)

    def _draft(self, packet: SMEPacket, packet_sha256: str) -> tuple[Draft, str | None]:
        """The reviewer's newest draft, moved to the packet as it is now, and when it was saved; else the agent's."""
        stored = self._index.drafts.newest(packet.case_id, self._me.reviewer, self._me.session)
        if stored is None:
            return Draft.of(packet), None
        try:
            draft = Draft.model_validate_json(stored.draft)
        except ValidationError:
            # Of an evalkit that shaped drafts otherwise. Without the cause: it would quote the patient's document.
            _log.warning("a draft of another evalkit cannot be read; the case starts anew")
            return Draft.of(packet), None
        is_same = stored.packet_sha256 == packet_sha256 and draft.total_pages == packet.total_pages
        return draft if is_same else draft.moved_to(packet), stored.saved_at


def _conflict(message: str) -> ReviewConflict:
    return ReviewConflict(message, code="REVIEW-CONFLICT", remedy="Your draft is kept. Open the case again.")
