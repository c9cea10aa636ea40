"""The view log: who opened which case, and when."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import sqlalchemy as sa

from evalkit.store import database_tables
from evalkit.store.database import Database


@dataclass(frozen=True)
class CaseView:
    """One opening of one case."""

    case_id: str
    """The case; for a purged document its SHA-256 and the case's suffix."""
    reviewer: str
    opened_at: str
    """When (ISO 8601, UTC)."""


@dataclass(frozen=True)
class ViewLog:
    """The view log: append-only, but a purge replaces its case names."""

    _database: Database

    def add_view(self, case_view: CaseView) -> None:
        """Append an opening."""
        self._database.execute(sa.insert(database_tables.case_views).values(**asdict(case_view)))

    def list_views(self) -> list[CaseView]:
        """List every opening, oldest first."""
        row = database_tables.case_views.c
        query = sa.select(row.case_id, row.reviewer, row.opened_at).order_by(row.number)
        return [CaseView(**view_row) for view_row in self._database.fetch_rows(query)]
