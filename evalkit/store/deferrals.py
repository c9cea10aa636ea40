"""Deferrals: postponed cases, and why."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import sqlalchemy as sa

from evalkit.store import database_tables
from evalkit.store.database import Database


@dataclass(frozen=True)
class Deferral:
    """The deferral of a case by a reviewer."""

    case_id: str
    reviewer: str
    reason: str
    """The reviewer's words, for the next reviewer."""
    deferred_at: str


@dataclass(frozen=True)
class Deferrals:
    """The deferrals. One outlives claims, and ends with the case's next review."""

    _database: Database

    def save_deferral(self, deferral: Deferral) -> None:
        """Insert or replace a case's deferral."""
        self._database.execute(self._database.build_upsert(database_tables.deferrals, asdict(deferral)))

    def find_deferral(self, case_id: str) -> Deferral | None:
        """Find the deferral of a case, if any."""
        query = sa.select(database_tables.deferrals).where(database_tables.deferrals.c.case_id == case_id)
        return next((Deferral(**row) for row in self._database.fetch_rows(query)), None)

    def list_deferrals(self) -> dict[str, Deferral]:
        """List all deferrals, by case_id."""
        rows = self._database.fetch_rows(sa.select(database_tables.deferrals))
        return {row["case_id"]: Deferral(**row) for row in rows}

    def remove_deferral(self, case_id: str) -> None:
        """End the deferral of a case, if any."""
        self._database.execute(
            sa.delete(database_tables.deferrals).where(database_tables.deferrals.c.case_id == case_id)
        )
