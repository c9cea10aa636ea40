"""Drafts: what somebody has not submitted yet."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import sqlalchemy as sa

from evalkit.store import database_tables
from evalkit.store.database import Database


@dataclass(frozen=True)
class StoredDraft:
    """What a reviewer has said about a case in one tab and not submitted yet."""

    case_id: str
    reviewer: str
    session: str
    packet_sha256: str
    """The packet that was on the screen."""
    draft: str
    """JSON. It is about a patient."""
    saved_at: str


@dataclass(frozen=True)
class StoredDrafts:
    """Unsubmitted work. On disk before ``save_draft`` returns; it needs no claim and outlives one."""

    _database: Database

    def save_draft(self, draft: StoredDraft) -> None:
        """Insert or replace the draft of that case, reviewer and tab."""
        self._database.execute(self._database.build_upsert(database_tables.drafts, asdict(draft)))

    def find_newest_draft(self, case_id: str, reviewer: str, preferred_tab_id: str) -> StoredDraft | None:
        """The reviewer's newest draft of the case from any tab; of equally new ones that of ``preferred_tab_id``."""
        row = database_tables.drafts.c
        query = (
            sa.select(database_tables.drafts)
            .where(row.case_id == case_id, row.reviewer == reviewer)
            .order_by(row.saved_at.desc(), sa.desc(row.session == preferred_tab_id), row.session)
            .limit(1)
        )
        return next((StoredDraft(**draft_row) for draft_row in self._database.fetch_rows(query)), None)

    def remove_tab_and_older_drafts(
        self, case_id: str, reviewer: str, tab_id: str, *, other_tabs_saved_until: str
    ) -> None:
        """Remove the tab's draft of the case, and those of the reviewer's other tabs saved up to ``other_tabs_saved_until``."""
        row = database_tables.drafts.c
        query = sa.delete(database_tables.drafts).where(
            row.case_id == case_id,
            row.reviewer == reviewer,
            sa.or_(row.session == tab_id, row.saved_at <= other_tabs_saved_until),
        )
        self._database.execute(query)

    def remove_case_drafts(self, case_id: str) -> None:
        """Remove all drafts of the case, whoever's."""
        self._database.execute(sa.delete(database_tables.drafts).where(database_tables.drafts.c.case_id == case_id))
