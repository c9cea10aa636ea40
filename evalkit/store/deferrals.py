"""Deferrals: what somebody has put off and why."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import sqlalchemy as sa

from evalkit.store import database_tables
from evalkit.store.database import Database, upsert_row


@dataclass(frozen=True)
class Deferral:
    """Who has put off a case, and why."""

    case_id: str
    reviewer: str
    reason: str
    """The reviewer's words, for whoever takes the case next."""
    deferred_at: str


class Deferrals:
    """Cases that somebody has put off. A deferral outlives claims; it ends with the case's next review."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def save_deferral(self, deferral: Deferral) -> None:
        """Insert or replace a case's deferral."""
        with self._database.single_statement() as connection:
            upsert_row(connection, database_tables.deferrals, asdict(deferral))

    def find_deferral(self, case_id: str) -> Deferral | None:
        """The deferral of a case, if it was put off."""
        query = sa.select(database_tables.deferrals).where(database_tables.deferrals.c.case_id == case_id)
        with self._database.single_statement() as connection:
            deferral_row = connection.execute(query).mappings().first()
        return None if deferral_row is None else Deferral(**deferral_row)

    def list_deferrals(self) -> dict[str, Deferral]:
        """All deferrals, by case_id."""
        with self._database.single_statement() as connection:
            return {
                row["case_id"]: Deferral(**row)
                for row in connection.execute(sa.select(database_tables.deferrals)).mappings()
            }

    def remove_deferral(self, case_id: str) -> None:
        """End the deferral of a case, if there is one."""
        with self._database.single_statement() as connection:
            connection.execute(
                sa.delete(database_tables.deferrals).where(database_tables.deferrals.c.case_id == case_id)
            )
