"""The view log: who opened which case, and when."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import sqlalchemy as sa

from evalkit.store import database_tables
from evalkit.store.database import Database


@dataclass(frozen=True)
class CaseView:
    """Record that a reviewer opened a case."""

    case_id: str
    """The case's id; after a purge, the document's SHA-256 followed by the case's suffix."""
    reviewer: str
    opened_at: str
    """The time of opening (ISO 8601, UTC)."""


@dataclass(frozen=True)
class ViewLog:
    """Log of opened cases: append-only, except that a purge replaces case ids."""

    _database: Database

    def add_view(self, case_view: CaseView) -> None:
        """Append the record that a case was opened."""
        self._database.execute(sa.insert(database_tables.case_views).values(**asdict(case_view)))

    def list_views(self) -> list[CaseView]:
        """List all records of opened cases, oldest first."""
        row = database_tables.case_views.c
        query = sa.select(row.case_id, row.reviewer, row.opened_at).order_by(row.number)
        return [CaseView(**view_row) for view_row in self._database.fetch_rows(query)]
