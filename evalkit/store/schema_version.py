"""Create a database's tables, or check the number that says which they are."""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sa

from evalkit.errors import StoreError
from evalkit.store import database_tables

SCHEMA_NUMBER = 1
"""Nothing was released with another number; an evalkit that changes a table increases it and migrates older ones."""


def create_or_verify_tables(engine: sa.Engine, acquire_lock: Callable[[sa.Connection], object]) -> None:
    """Create the tables, or only check the number of a database that has them.

    ``acquire_lock`` waits, in the connection's transaction, until no other process creates the tables. StoreError if
    the database is another evalkit's; SQLAlchemyError.
    """
    with engine.connect() as connection:
        if _read_tables_version(connection) == SCHEMA_NUMBER:
            return
    with engine.begin() as connection:
        acquire_lock(connection)
        if require_known_tables_or_none(connection) is None:
            database_tables.metadata.create_all(connection)
            database_tables.schema_number.create(connection)
            connection.execute(sa.insert(database_tables.schema_number).values(number=SCHEMA_NUMBER))


def require_known_tables_or_none(connection: sa.Connection) -> int | None:
    """Return the schema's number, None for an empty database.

    StoreError if another evalkit created it; SQLAlchemyError.
    """
    number = _read_tables_version(connection)
    if number not in (SCHEMA_NUMBER, None):
        raise StoreError(
            f"the database has schema {number}; this evalkit knows schema {SCHEMA_NUMBER}",
            code="STORE-NEWER",
            remedy="Install the evalkit that created it.",
        )
    return number


def _read_tables_version(connection: sa.Connection) -> int | None:
    if not sa.inspect(connection).has_table(database_tables.schema_number.name):
        return None
    return int(connection.execute(sa.select(database_tables.schema_number.c.number)).scalar_one())
