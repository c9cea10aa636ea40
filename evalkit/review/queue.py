"""Which cases wait for an expert, by their reviews alone; ``claims`` says who has one open."""

from __future__ import annotations

from typing import Any

from evalkit.review.ground_truth import Review, newest_revision, read_review, status_after
from evalkit.review.packet import ReviewStatus, case_row, read_packet
from evalkit.store import PACKETS, Files, Index

#: A case in one of these waits; only ``completed`` ones do not.
OPEN_STATUSES: tuple[ReviewStatus, ...] = ("pending", "in_review", "deferred")

_PREFIX = f"{PACKETS}/sme_packet_"


def pending(index: Index) -> list[dict[str, Any]]:
    """The rows (``store.CASE_COLUMNS``) of the cases that wait, strictly worst first."""
    return index.cases(*OPEN_STATUSES)


def case_ids(files: Files) -> list[str]:
    """All cases that have a packet, sorted."""
    names = files.names(PACKETS)
    return sorted(name.removeprefix(_PREFIX).removesuffix(".json") for name in names if name.startswith(_PREFIX))


def review_status(files: Files, case_id: str) -> ReviewStatus:
    """Where a case stands, by its reviews: a reopened one waits again, an undeterminable one does not."""
    return status_after(_newest(files, case_id))


def rebuild_rows(files: Files) -> list[dict[str, Any]]:
    """The index's rows of all cases, from the packet and review files alone; sorted by case_id."""
    return [case_row(read_packet(files, case_id), review_status(files, case_id)) for case_id in case_ids(files)]


def rebuild_closings(files: Files) -> list[dict[str, Any]]:
    """The index's rows of closed cases (who, when), from the packet and review files alone; sorted by case_id."""
    newest = ((case_id, _newest(files, case_id)) for case_id in case_ids(files))
    return [
        {"case_id": case_id, "reviewer": review.reviewer, "closed_at": review.submitted_at}
        for case_id, review in newest
        if review and status_after(review) == "completed"
    ]


def _newest(files: Files, case_id: str) -> Review | None:
    newest = newest_revision(files, case_id)
    return read_review(files, case_id, newest) if newest else None
