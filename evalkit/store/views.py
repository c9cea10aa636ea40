"""Views: who opened which case, and when."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import sqlalchemy as sa

from evalkit.store import tables
from evalkit.store.database import Database


@dataclass(frozen=True)
class Viewed:
    """One opening of one case."""

    case_id: str
    """The case; of a purged document its SHA-256 and what the case was called behind the document's name."""
    reviewer: str
    opened_at: str
    """When (ISO 8601, UTC)."""


class Views:
    """The view log: it is only added to, and a purge takes the names out of it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, viewed: Viewed) -> None:
        """Append it."""
        with self._database.statement() as connection:
            connection.execute(sa.insert(tables.views).values(**asdict(viewed)))

    def all(self) -> list[Viewed]:
        """Every opening, oldest first."""
        row = tables.views.c
        query = sa.select(row.case_id, row.reviewer, row.opened_at).order_by(row.number)
        with self._database.statement() as connection:
            return [Viewed(**one) for one in connection.execute(query).mappings()]
