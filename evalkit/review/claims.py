"""Claims: who has which case open, so that two people do not do one case's work.

A claim is taken on opening, renewed by the screen's heartbeat, and ends by itself; what decides in the end is the
review's revision, so a claim that is lost costs nobody anything but time. While it lives no run rewrites the packet,
and packet and index say ``in_review``; a case that somebody has put off is ``deferred`` whenever nobody has it open.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from evalkit.errors import CaseTaken, StoreError
from evalkit.review.lock import writing
from evalkit.review.packet import ReviewStatus, mirror_status, moment
from evalkit.review.queue import review_status
from evalkit.store import Claim, Files, Index

#: How long a claim lives unless it is renewed.
CLAIM_TIME = timedelta(minutes=15)


@dataclass(frozen=True)
class Holder:
    """One reviewer in one browser tab."""

    reviewer: str
    session: str

    def has(self, claim: Claim | None) -> bool:
        """Whether the claim is this very tab's."""
        return claim is not None and (claim.reviewer, claim.session) == (self.reviewer, self.session)

    def take(self, index: Index, case_id: str, now: datetime, *, take_over: bool = False) -> Claim:
        """Claim the case or renew the claim; the claim. CaseTaken where another's lives, unless it is taken over on purpose."""
        wanted = Claim(case_id, self.reviewer, self.session, moment(now), moment(now + CLAIM_TIME))
        claim = index.claims.take(wanted, now=moment(now), take_over=take_over)
        if not self.has(claim):
            raise self.refused(claim)
        return claim

    def refused(self, claim: Claim) -> CaseTaken:
        """What this tab is told about another's claim."""
        return CaseTaken(claim.reviewer, claim.since, same_reviewer=claim.reviewer == self.reviewer)


def show_status(files: Files, index: Index, case_id: str, now: str) -> None:
    """Write where the case stands at ``now`` (ISO 8601, UTC) into index and packet; the caller holds the lock."""
    status: ReviewStatus = review_status(files, case_id)
    if status == "pending" and index.claims.live(now, case_id):
        status = "in_review"
    elif status == "pending" and index.deferrals.of(case_id):
        status = "deferred"
    index.set_status(case_id, status)
    show_in_packet(files, case_id, status)


def show_in_packet(files: Files, case_id: str, status: ReviewStatus) -> None:
    """Write where the case stands into the packet alone; the caller holds the lock."""
    # A mirror that cannot be written must not stop the work: its packet is torn, or the disk full, which saving tells.
    with suppress(StoreError):
        mirror_status(files, case_id, status)


def reconcile(files: Files, index: Index, now: str) -> None:
    """Let cases whose claim has run out by ``now`` (ISO 8601, UTC) wait again, and show claims that a rebuild hid."""
    for case_id in index.case_list.contradicting_claims(now):
        # A review that cannot be read is told when its case is opened; the others' cases must not wait for that.
        with suppress(StoreError), writing(files, case_id):
            show_status(files, index, case_id, now)
