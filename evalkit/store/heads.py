"""Heads: the newest review of each case, by its digest. No later review vouches for it, so the database does."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import sqlalchemy as sa

from evalkit.store import tables
from evalkit.store.database import Database, replace


@dataclass(frozen=True)
class Head:
    """A case's newest review, as it was when it was saved."""

    case_id: str
    revision: int
    sha256: str
    """Of the bytes of its file."""


class Heads:
    """Noted beside each review. One that a crash kept from being noted is vouched for by the next."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, head: Head) -> None:
        """Insert or replace a case's head."""
        with self._database.transaction() as connection:
            replace(connection, tables.heads, asdict(head))

    def all(self) -> list[Head]:
        """Every head, by case_id."""
        query = sa.select(tables.heads).order_by(tables.heads.c.case_id)
        with self._database.transaction() as connection:
            return [Head(**row) for row in connection.execute(query).mappings()]
