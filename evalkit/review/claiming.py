"""Claims: a reviewer's temporary lock on a case, so that no two edit it.

A claim is taken when a case is opened, renewed by the screen's heartbeat, and expires by itself. It only saves time: which
of two reviews is saved is decided by the revision. While a claim is live, no run rewrites the packet, and the case's
status is ``in_review``. A deferred case has the status ``deferred`` whenever nobody has it open.
"""

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from evalkit.core.clocks import format_iso_seconds
from evalkit.errors import CaseTaken, StoreError
from evalkit.review.case_files import read_review_status
from evalkit.review.packet import ReviewStatus, write_packet_status
from evalkit.review.write_lock import hold_case_write_lock
from evalkit.store import CaseClaim, OutputFolder, OutputIndex

#: Time after which a claim expires unless it is renewed.
CLAIM_DURATION = timedelta(minutes=15)
#: Time without a heartbeat after which a reviewer's own claim in another tab counts as abandoned.
_LONGEST_SILENCE = timedelta(seconds=40)


def compute_abandoned_expiry(now: datetime) -> str:
    """Compute the expiry time up to which a claim's browser tab counts as closed."""
    return format_iso_seconds(now + CLAIM_DURATION - _LONGEST_SILENCE)


def require_not_taken(index: OutputIndex, case_id: str, reviewer: str, now: str) -> None:
    """Raise CaseTaken if another reviewer has the case open at ``now``.

    ``now`` is ISO 8601 in UTC.
    """
    claim = index.claims.map_live_claims_by_case_id(now, case_id).get(case_id)
    if claim and claim.reviewer != reviewer:
        raise CaseTaken(claim.reviewer, claim.since, same_reviewer=False)


@dataclass(frozen=True)
class ClaimHolder:
    """A reviewer in one browser tab, the owner of a claim."""

    reviewer: str
    tab_id: str

    def is_holder_of(self, claim: CaseClaim | None) -> bool:
        """Return True if the claim belongs to this reviewer and this browser tab."""
        return claim is not None and (claim.reviewer, claim.session) == (self.reviewer, self.tab_id)

    def acquire_or_renew_claim(
        self, index: OutputIndex, case_id: str, now: datetime, *, take_over: bool = False
    ) -> CaseClaim:
        """Claim the case, or renew this tab's claim; return the claim.

        CaseTaken if another tab has a live claim and ``take_over`` is False. A claim of this reviewer in a tab that no longer
        answers is taken back.
        """
        claim = index.claims.acquire_or_get_live_claim(
            CaseClaim(
                case_id, self.reviewer, self.tab_id, format_iso_seconds(now), format_iso_seconds(now + CLAIM_DURATION)
            ),
            now=format_iso_seconds(now),
            own_abandoned_until=compute_abandoned_expiry(now),
            take_over=take_over,
        )
        if not self.is_holder_of(claim):
            raise self.build_case_taken_error(claim)
        return claim

    def build_case_taken_error(self, claim: CaseClaim) -> CaseTaken:
        """Build the error that names the reviewer who has claimed the case."""
        return CaseTaken(claim.reviewer, claim.since, same_reviewer=claim.reviewer == self.reviewer)


def recompute_and_save_case_status(
    output_folder: OutputFolder, index: OutputIndex, case_id: str, now: str, *, writes_packet: bool = True
) -> None:
    """Derive a case's status from its reviews, claims and deferrals, and save it.

    The status goes into the index and, if possible and wanted, into the packet. Claims count if they are live at ``now`` (ISO 8601,
    UTC). The caller holds the write lock.
    """
    status: ReviewStatus = read_review_status(output_folder, case_id)
    if status == "pending" and index.claims.map_live_claims_by_case_id(now, case_id):
        status = "in_review"
    elif status == "pending" and index.deferrals.find(case_id):
        status = "deferred"
    index.set_review_status(case_id, status)
    if writes_packet:
        try_write_packet_status(output_folder, case_id, status)


def try_write_packet_status(output_folder: OutputFolder, case_id: str, status: ReviewStatus) -> None:
    """Write a case's status into its file; ignore errors. The caller holds the lock."""
    # The status in the packet is only a copy: a damaged packet or a full disk is reported when a review is saved.
    with suppress(StoreError):
        write_packet_status(output_folder, case_id, status)


def reconcile_statuses_with_claims(output_folder: OutputFolder, index: OutputIndex, now: str) -> None:
    """Correct the status of each case whose index row contradicts its claims.

    A claim counts if it is live at ``now`` (ISO 8601, UTC). Cases with unreadable reviews are skipped.
    """
    for case_id in index.case_list.find_case_ids_contradicting_claims(now):
        # An unreadable review is reported when its case is opened; it must not keep the other cases from correction.
        with suppress(StoreError), hold_case_write_lock(output_folder, case_id):
            recompute_and_save_case_status(output_folder, index, case_id, now)
