"""Deferrals: postponed cases, and why."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import sqlalchemy as sa

from evalkit.store import database_tables
from evalkit.store.database import Database


@dataclass(frozen=True)
class Deferral:
    """Record that a reviewer postponed a case, and why."""

    case_id: str
    reviewer: str
    reason: str
    """The reviewer's explanation, for the next reviewer."""
    deferred_at: str


@dataclass(frozen=True)
class Deferrals:
    """Table of deferrals; each lasts until the case's next review."""

    _database: Database

    def save_deferral(self, deferral: Deferral) -> None:
        """Save the deferral of a case, replacing an earlier one."""
        self._database.execute(self._database.build_upsert(database_tables.deferrals, asdict(deferral)))

    def find_deferral(self, case_id: str) -> Deferral | None:
        """Find the deferral of a case; None if the case is not deferred."""
        query = sa.select(database_tables.deferrals).where(database_tables.deferrals.c.case_id == case_id)
        return next((Deferral(**row) for row in self._database.fetch_rows(query)), None)

    def list_deferrals(self) -> dict[str, Deferral]:
        """Return the deferrals of all cases, by case_id."""
        rows = self._database.fetch_rows(sa.select(database_tables.deferrals))
        return {row["case_id"]: Deferral(**row) for row in rows}

    def remove_deferral(self, case_id: str) -> None:
        """Remove the deferral of a case, if there is one."""
        self._database.execute(
            sa.delete(database_tables.deferrals).where(database_tables.deferrals.c.case_id == case_id)
        )
