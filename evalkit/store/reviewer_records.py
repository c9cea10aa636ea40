"""Reviewers' records: claims, drafts, deferrals, replies, views and others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import sqlalchemy as sa

from evalkit.store import database_tables
from evalkit.store.database import Database

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

RecordT = TypeVar("RecordT", bound="DataclassInstance")
#: Number of heads saved in one transaction.
_HEADS_PER_BATCH = 1000


@dataclass(frozen=True)
class CaseClaim:
    """Claim on a case, which one reviewer has open in one browser tab."""

    case_id: str
    reviewer: str
    session: str
    """The browser tab's id, which stays the same when the tab is reloaded."""
    since: str
    expires_at: str
    """The time from which anyone may take the case."""


@dataclass(frozen=True)
class StoredDraft:
    """Unsubmitted work of a reviewer on a case in one browser tab."""

    case_id: str
    reviewer: str
    session: str
    packet_sha256: str
    """The SHA-256 of the packet that was on the screen."""
    draft: str
    """The draft as JSON, which may contain a patient's data."""
    saved_at: str


@dataclass(frozen=True)
class Deferral:
    """Reviewer's postponement of a case, and its reason, until the next review."""

    case_id: str
    reviewer: str
    reason: str
    """The reviewer's explanation, for the next reviewer."""
    deferred_at: str


@dataclass(frozen=True)
class QueuePlace:
    """A reviewer's last search, filters, order and page of the queue."""

    reviewer: str
    query: str
    """Filters, order and page as JSON."""
    case_id: str
    """The case after which the reviewer goes on; empty for the top of the list."""


@dataclass(frozen=True)
class ColleagueReply:
    """A reviewer's reply to a colleague's question about a case."""

    case_id: str
    asker: str
    reviewer: str
    sentence: str
    replied_at: str


@dataclass(frozen=True)
class CaseView:
    """Record that a reviewer opened a case."""

    case_id: str
    """The case's id; after a purge, the document's SHA-256 followed by the case's suffix."""
    reviewer: str
    opened_at: str
    """The time of opening (ISO 8601, UTC)."""


@dataclass(frozen=True)
class ReviewChainHead:
    """Hash of a case's newest review, stored when the review was saved."""

    case_id: str
    revision: int
    sha256: str
    """SHA-256 of the bytes of the review's file."""


@dataclass(frozen=True)
class RecordTable(Generic[RecordT]):
    """Table of records of one class; ``save`` returns once a record is on disk."""

    _database: Database
    _table: sa.Table
    _record_class: type[RecordT]

    def save(self, record: RecordT) -> None:
        """Save a record, replacing an earlier one with the same key."""
        self._database.execute(self._database.build_upsert(self._table, asdict(record)))

    def find(self, key: str) -> RecordT | None:
        """Find the record with this case_id or, in a table of reviewers, of this name."""
        return next(iter(self._fetch(sa.select(self._table).where(self._first_key == key))), None)

    def list_all(self) -> list[RecordT]:
        """List all records, sorted by their key: case_id, reviewer, or order of entry."""
        names = [column for column in self._table.columns if column.name in self._record_class.__dataclass_fields__]
        return self._fetch(sa.select(*names).order_by(self._first_key))

    def remove(self, key: str) -> None:
        """Remove the records with this case_id, if there are any."""
        self._database.execute(sa.delete(self._table).where(self._first_key == key))

    @property
    def _first_key(self) -> sa.Column[Any]:
        return next(iter(self._table.primary_key.columns))

    def _fetch(self, query: sa.Select[Any]) -> list[RecordT]:
        return [self._record_class(**row) for row in self._database.fetch_rows(query)]


class CaseClaims(RecordTable[CaseClaim]):
    """Table of claims; a case has at most one, which is void once it expires."""

    def acquire_or_get_live_claim(
        self, wanted_claim: CaseClaim, *, now: str, own_abandoned_until: str = "", take_over: bool = False
    ) -> CaseClaim:
        """Acquire a claim, or return another reviewer's claim if it is still valid.

        One statement compares and writes, so of several threads or processes exactly one gets a free case. The same tab
        renews its claim, which keeps its ``since``; ``take_over`` replaces the claim of anyone. A claim of the same
        reviewer in another tab is replaced if it expires at ``own_abandoned_until`` or before.
        """
        row = database_tables.claims.c
        is_live = row.expires_at > now
        is_own = sa.and_(row.reviewer == wanted_claim.reviewer, row.session == wanted_claim.session)
        is_abandoned = sa.and_(row.reviewer == wanted_claim.reviewer, row.expires_at <= own_abandoned_until)
        since = sa.case((sa.and_(is_own, is_live), row.since), else_=wanted_claim.since)
        with self._database.transaction() as connection:
            upsert = self._database.build_insert(database_tables.claims).values(**asdict(wanted_claim))
            conditional_upsert = upsert.on_conflict_do_update(
                index_elements=[row.case_id],
                set_={**asdict(wanted_claim), "since": since},
                where=sa.true() if take_over else sa.or_(is_own, is_abandoned, sa.not_(is_live)),
            ).returning(database_tables.claims)
            # If the statement wrote nothing, the transaction still holds a lock (SQLite the only writer's, PostgreSQL
            # that of the row, which it takes before it compares), so the other claim is still there.
            claim_row = (
                connection.execute(conditional_upsert).mappings().first()
                or connection.execute(sa.select(database_tables.claims).where(row.case_id == wanted_claim.case_id))
                .mappings()
                .one()
            )
            return CaseClaim(**claim_row)

    def map_live_claims_by_case_id(self, now: str, case_id: str | None = None) -> dict[str, CaseClaim]:
        """Map case_ids to their valid claims; only ``case_id`` if it is given."""
        query = sa.select(database_tables.claims).where(database_tables.claims.c.expires_at > now)
        if case_id is not None:
            query = query.where(database_tables.claims.c.case_id == case_id)
        return {claim.case_id: claim for claim in self._fetch(query)}

    def release_claim_if_unchanged(self, claim: CaseClaim) -> bool:
        """Remove this claim; return False if it has been renewed or taken over."""
        query = sa.delete(database_tables.claims).where(
            *(column == getattr(claim, column.name) for column in database_tables.claims.columns)
        )
        return self._database.execute(query) > 0


class StoredDrafts(RecordTable[StoredDraft]):
    """Table of drafts.

    A draft needs no claim on its case, and is kept when a claim ends.
    """

    def find_newest_draft(self, case_id: str, reviewer: str, preferred_tab_id: str) -> StoredDraft | None:
        """Find the reviewer's newest draft of a case; None if there is none.

        Of drafts saved at the same time, that of ``preferred_tab_id`` is preferred.
        """
        row = database_tables.drafts.c
        query = (
            sa.select(database_tables.drafts)
            .where(row.case_id == case_id, row.reviewer == reviewer)
            .order_by(row.saved_at.desc(), sa.desc(row.session == preferred_tab_id), row.session)
            .limit(1)
        )
        return next(iter(self._fetch(query)), None)

    def remove_tab_and_older_drafts(
        self, case_id: str, reviewer: str, tab_id: str, *, other_tabs_saved_until: str
    ) -> None:
        """Remove a tab's draft of the case, and the reviewer's older drafts of it.

        Drafts of other tabs are removed if they were saved up to ``other_tabs_saved_until``.
        """
        row = database_tables.drafts.c
        query = sa.delete(database_tables.drafts).where(
            row.case_id == case_id,
            row.reviewer == reviewer,
            sa.or_(row.session == tab_id, row.saved_at <= other_tabs_saved_until),
        )
        self._database.execute(query)


class ColleagueReplies(RecordTable[ColleagueReply]):
    """Table of replies; a case has at most one."""

    def list_replies(self, asker: str) -> list[ColleagueReply]:
        """List the replies to a reviewer about cases that are not closed, newest first."""
        row = database_tables.replies.c
        query = (
            sa.select(database_tables.replies)
            .join(database_tables.cases, database_tables.cases.c.case_id == row.case_id)
            .where(row.asker == asker, database_tables.cases.c.review_status != "completed")
            .order_by(row.replied_at.desc(), row.case_id)
        )
        return self._fetch(query)


class ReviewChainHeads(RecordTable[ReviewChainHead]):
    """Table with the hash of each case's newest review.

    No later review's digest protects them. A head is saved with each review, or by a rebuild of the index after a crash.
    """

    def save_missing_or_newer_heads(self, heads: Iterable[ReviewChainHead]) -> None:
        """Save each hash, unless the table has the same or a newer revision.

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
