"""Digest of each case's newest review, which no later review's digest protects."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import islice

import sqlalchemy as sa

from evalkit.store import database_tables
from evalkit.store.database import Database

#: Number of heads saved in one transaction.
_HEADS_PER_BATCH = 1000


@dataclass(frozen=True)
class ReviewChainHead:
    """Digest of a case's newest review, as it was when the review was saved."""

    case_id: str
    revision: int
    sha256: str
    """SHA-256 of the bytes of the review's file."""


@dataclass(frozen=True)
class ReviewChainHeads:
    """Table of the digests of each case's newest review (heads).

    A head is saved with each review, or by a rebuild of the index after a crash.
    """

    _database: Database

    def save_head(self, head: ReviewChainHead) -> None:
        """Save the digest of a case's newest review, replacing the earlier one."""
        self._database.execute(self._database.build_upsert(database_tables.review_heads, asdict(head)))

    def save_missing_or_newer_heads(self, heads: Iterable[ReviewChainHead]) -> None:
        """Save each head, unless the table has the same or a newer revision of the case.

        No head is removed: its review may be lost, which the head then shows.
        """
        head_iterator = iter(heads)
        # In batches: the heads may be read from files one by one, and a transaction keeps other writers waiting.
        while batch := [asdict(head) for head in islice(head_iterator, _HEADS_PER_BATCH)]:
            with self._database.transaction() as connection:
                upsert = self._database.build_insert(database_tables.review_heads)
                updated_columns = {"revision": upsert.excluded.revision, "sha256": upsert.excluded.sha256}
                connection.execute(
                    upsert.on_conflict_do_update(
                        index_elements=["case_id"],
                        set_=updated_columns,
                        where=database_tables.review_heads.c.revision < upsert.excluded.revision,
                    ),
                    batch,
                )

    def find_head(self, case_id: str) -> ReviewChainHead | None:
        """Find the digest of a case's newest review; None if none was saved."""
        query = sa.select(database_tables.review_heads).where(database_tables.review_heads.c.case_id == case_id)
        return next((ReviewChainHead(**row) for row in self._database.fetch_rows(query)), None)

    def list_heads(self) -> list[ReviewChainHead]:
        """List the digests of all cases' newest reviews, sorted by case_id."""
        query = sa.select(database_tables.review_heads).order_by(database_tables.review_heads.c.case_id)
        return [ReviewChainHead(**row) for row in self._database.fetch_rows(query)]
