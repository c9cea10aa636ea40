"""Creation of a database's tables, and check of their version number."""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sa

from evalkit.errors import StoreError
from evalkit.store import database_tables

#: Version of the tables. Increase it when a table changes, and migrate older databases; no other number was released
#: yet.
SCHEMA_NUMBER = 1


def create_or_verify_tables(engine: sa.Engine, acquire_lock: Callable[[sa.Connection], object]) -> None:
    """Create the tables, or check their version if the database has them already.

    ``acquire_lock`` waits, in the connection's transaction, until no other process creates the tables. StoreError if
    another version of evalkit created the database; SQLAlchemyError.
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
    """Return the version of the database's tables; None if the database is empty.

    StoreError if another version of evalkit created the database; SQLAlchemyError.
    """
    number = _read_tables_version(connection)
    if number not in (SCHEMA_NUMBER, None):
        raise StoreError(
            f"the database's tables have version {number}; this evalkit knows version {SCHEMA_NUMBER}",
            code="STORE-NEWER",
            remedy="Install the version of evalkit that created the database.",
        )
    return number


def _read_tables_version(connection: sa.Connection) -> int | None:
    if not sa.inspect(connection).has_table(database_tables.schema_number.name):
        return None
    return int(connection.execute(sa.select(database_tables.schema_number.c.number)).scalar_one())
