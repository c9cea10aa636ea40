"""Which cases wait for an expert. Claims and drafts will live in the database; the rest follows from the files."""

from __future__ import annotations

from typing import Any

from evalkit.review.ground_truth import newest_revision, read_review, status_after
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
    newest = newest_revision(files, case_id)
    return status_after(read_review(files, case_id, newest) if newest else None)


def rebuild_rows(files: Files) -> list[dict[str, Any]]:
    """The index's rows of all cases, from the packet and review files alone; sorted by case_id."""
    return [case_row(read_packet(files, case_id), review_status(files, case_id)) for case_id in case_ids(files)]
