"""Creation of a database's tables, and check of their version number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from evalkit.errors import StoreError
from evalkit.store import database_tables

#: Version of the tables. Increase it when a table changes, and migrate older databases.
SCHEMA_NUMBER = 2

#: Task of the cases of a version 1 database, whose list had no tasks; ``evalkit reindex`` reads it from the packets.
_TASK_OF_OLDER_CASES = {"classification": "clinical", "statement_template": "bank"}
_CLINICAL_CASE_TYPES = (
    "Clinical Note",
    "Pathology Report",
    "Genomic Report",
    "Radiology Report",
    "Other",
    "several",
    "",
)


def create_or_verify_tables(engine: sa.Engine, acquire_lock: Callable[[sa.Connection], object]) -> None:
    """Create the tables, migrate older ones, or check their version.

    ``acquire_lock`` waits, in the connection's transaction, until no other process creates the tables. StoreError if
    a newer version of evalkit created the database; SQLAlchemyError.
    """
    with engine.connect() as connection:
        if _read_tables_version(connection) == SCHEMA_NUMBER:
            return
    with engine.begin() as connection:
        acquire_lock(connection)
        number = require_known_tables_or_none(connection)
        if number == SCHEMA_NUMBER:
            return
        older_cases = _take_cases_of_version_1(connection) if number else []
        database_tables.metadata.create_all(connection)
        database_tables.schema_number.create(connection, checkfirst=True)
        if older_cases:
            connection.execute(sa.insert(database_tables.cases), older_cases)
        connection.execute(sa.delete(database_tables.schema_number))
        connection.execute(sa.insert(database_tables.schema_number).values(number=SCHEMA_NUMBER))


def _take_cases_of_version_1(connection: sa.Connection) -> list[dict[str, Any]]:
    """Drop the list of cases, whose columns changed, and return its rows with a task."""
    columns = [column.name for column in database_tables.cases.columns if column.computed is None]
    rows = [
        {name: row[name] for name in columns if name in row}
        for row in connection.execute(sa.text("SELECT * FROM cases")).mappings()
    ]
    connection.execute(sa.text("DROP TABLE cases"))
    return [
        row
        | {
            "task": _TASK_OF_OLDER_CASES.get(
                row["kind"], "clinical" if row["dominant_type"] in _CLINICAL_CASE_TYPES else "tax"
            )
        }
        for row in rows
    ]


def require_known_tables_or_none(connection: sa.Connection) -> int | None:
    """Return the version of the database's tables; None if the database is empty.

    StoreError if a newer version of evalkit created the database; SQLAlchemyError.
    """
    number = _read_tables_version(connection)
    if number is not None and not 1 <= number <= SCHEMA_NUMBER:
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
