"""Drafts: answers that a reviewer has not submitted yet."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import sqlalchemy as sa

from evalkit.store import database_tables
from evalkit.store.database import Database


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
class StoredDrafts:
    """Table of drafts; a saved draft is on disk before ``save_draft`` returns.

    A draft needs no claim on its case, and is kept when a claim ends.
    """

    _database: Database

    def save_draft(self, draft: StoredDraft) -> None:
        """Save a draft, replacing the earlier one of the same case, reviewer and tab."""
        self._database.execute(self._database.build_upsert(database_tables.drafts, asdict(draft)))

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
        return next((StoredDraft(**draft_row) for draft_row in self._database.fetch_rows(query)), None)

    def remove_tab_and_older_drafts(
        self, case_id: str, reviewer: str, tab_id: str, *, other_tabs_saved_until: str
    ) -> None:
        """Remove a tab's draft of the case, and older ones of the reviewer's other tabs.

        Drafts of other tabs are removed if they were saved up to ``other_tabs_saved_until``.
        """
        row = database_tables.drafts.c
        query = sa.delete(database_tables.drafts).where(
            row.case_id == case_id,
            row.reviewer == reviewer,
            sa.or_(row.session == tab_id, row.saved_at <= other_tabs_saved_until),
        )
        self._database.execute(query)

    def remove_case_drafts(self, case_id: str) -> None:
        """Remove all reviewers' drafts of a case."""
        self._database.execute(sa.delete(database_tables.drafts).where(database_tables.drafts.c.case_id == case_id))
