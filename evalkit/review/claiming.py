"""Claims: who has which case open, so that two people do not work on the same case.

A claim is taken on opening, renewed by the screen's heartbeat, and ends by itself; what decides in the end is the
review's revision, so a claim that is lost costs nobody anything but time. While it lives no run rewrites the packet,
and packet and index say ``in_review``; a deferred case is ``deferred`` whenever nobody has it open.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from evalkit.core.clocks import format_iso_seconds
from evalkit.errors import CaseTaken, StoreError
from evalkit.review.packet import ReviewStatus, write_packet_status
from evalkit.review.queue import read_review_status
from evalkit.review.write_lock import hold_case_write_lock
from evalkit.store import CaseClaim, OutputFolder, OutputIndex

#: How long a claim lives unless it is renewed.
CLAIM_DURATION = timedelta(minutes=15)


@dataclass(frozen=True)
class ClaimHolder:
    """One reviewer in one browser tab."""

    reviewer: str
    tab_id: str

    def is_holder_of(self, claim: CaseClaim | None) -> bool:
        """Decide whether the claim is this very tab's."""
        return claim is not None and (claim.reviewer, claim.session) == (self.reviewer, self.tab_id)

    def acquire_or_renew_claim(
        self, index: OutputIndex, case_id: str, now: datetime, *, take_over: bool = False
    ) -> CaseClaim:
        """Claim the case, or renew the claim.

        CaseTaken if another's is alive, unless taken over.
        """
        new_claim = CaseClaim(
            case_id, self.reviewer, self.tab_id, format_iso_seconds(now), format_iso_seconds(now + CLAIM_DURATION)
        )
        claim = index.claims.acquire_or_get_live_claim(new_claim, now=format_iso_seconds(now), take_over=take_over)
        if not self.is_holder_of(claim):
            raise self.build_case_taken_error(claim)
        return claim

    def build_case_taken_error(self, claim: CaseClaim) -> CaseTaken:
        """Build the error that names the holder of another claim."""
        return CaseTaken(claim.reviewer, claim.since, same_reviewer=claim.reviewer == self.reviewer)


def recompute_and_save_case_status(output_folder: OutputFolder, index: OutputIndex, case_id: str, now: str) -> None:
    """Save the case's status at ``now`` (ISO 8601, UTC); the caller holds the lock."""
    status: ReviewStatus = read_review_status(output_folder, case_id)
    if status == "pending" and index.claims.map_live_claims_by_case_id(now, case_id):
        status = "in_review"
    elif status == "pending" and index.deferrals.find_deferral(case_id):
        status = "deferred"
    index.set_review_status(case_id, status)
    try_write_packet_status(output_folder, case_id, status)


def try_write_packet_status(output_folder: OutputFolder, case_id: str, status: ReviewStatus) -> None:
    """Write the status into the packet alone; the caller holds the lock."""
    # A mirror that cannot be written must not stop the work: saving reports a torn packet or a full disk.
    with suppress(StoreError):
        write_packet_status(output_folder, case_id, status)


def reconcile_statuses_with_claims(output_folder: OutputFolder, index: OutputIndex, now: str) -> None:
    """Release cases with a claim that expired by ``now``; restore hidden claims."""
    for case_id in index.case_list.find_case_ids_contradicting_claims(now):
        # An unreadable review is reported when its case is opened; other cases must not wait for that.
        with suppress(StoreError), hold_case_write_lock(output_folder, case_id):
            recompute_and_save_case_status(output_folder, index, case_id, now)
