"""Heads: the newest review of each case, by its digest. No later review vouches for it, so the database does."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import islice

import sqlalchemy as sa

from evalkit.store import tables
from evalkit.store.database import Database, inserting, replace

_AT_ONCE = 1000
"""Heads that are noted in one transaction."""


@dataclass(frozen=True)
class Head:
    """A case's newest review, as it was when it was saved."""

    case_id: str
    revision: int
    sha256: str
    """Of the bytes of its file."""


class Heads:
    """Noted beside each review, or by the next rebuild of the index where a crash came between."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, head: Head) -> None:
        """Insert or replace a case's head."""
        with self._database.statement() as connection:
            replace(connection, tables.heads, asdict(head))

    def catch_up(self, heads: Iterable[Head]) -> None:
        """Note those of which nothing or an earlier review is noted. None is taken back: its review may have been removed."""
        waiting = iter(heads)
        # In portions: they may be read from files as they come, and nobody else could write all that time.
        while some := [asdict(head) for head in islice(waiting, _AT_ONCE)]:
            with self._database.transaction() as connection:
                putting = inserting(connection, tables.heads)
                later = {"revision": putting.excluded.revision, "sha256": putting.excluded.sha256}
                connection.execute(
                    putting.on_conflict_do_update(
                        index_elements=["case_id"],
                        set_=later,
                        where=tables.heads.c.revision < putting.excluded.revision,
                    ),
                    some,
                )

    def of(self, case_id: str) -> Head | None:
        """A case's head; None where none was noted."""
        query = sa.select(tables.heads).where(tables.heads.c.case_id == case_id)
        with self._database.statement() as connection:
            found = connection.execute(query).mappings().first()
        return None if found is None else Head(**found)

    def all(self) -> list[Head]:
        """Every head, by case_id."""
        query = sa.select(tables.heads).order_by(tables.heads.c.case_id)
        with self._database.statement() as connection:
            return [Head(**row) for row in connection.execute(query).mappings()]
