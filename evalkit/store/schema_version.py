"""Creation of a database's tables, and check of their version number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from evalkit.errors import StoreError
from evalkit.store import database_tables
from evalkit.store.file_names import SQLITE_FILE

#: Version of the tables. Increase it when a table changes, and migrate older databases.
SCHEMA_NUMBER = 4

#: Tables whose columns changed since version 1.
VERSIONED_TABLES = (database_tables.cases, database_tables.closings)

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
    """Create the tables, migrate older tables, or check their version.

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
        older_rows = {table: _take_older_rows(connection, table) for table in VERSIONED_TABLES if number}
        database_tables.metadata.create_all(connection)
        database_tables.schema_number.create(connection, checkfirst=True)
        for table, rows in older_rows.items():
            if rows:
                connection.execute(sa.insert(table), rows)
        connection.execute(sa.delete(database_tables.schema_number))
        connection.execute(sa.insert(database_tables.schema_number).values(number=SCHEMA_NUMBER))


def _take_older_rows(connection: sa.Connection, table: sa.Table) -> list[dict[str, Any]]:
    """Drop a table whose columns changed, and return its rows; a case gets a task."""
    columns = [column.name for column in table.columns if column.computed is None]
    rows = [
        {name: row[name] for name in columns if name in row}
        for row in connection.execute(sa.select(sa.text("*")).select_from(sa.text(table.name))).mappings()
    ]
    table.drop(connection)
    return [_find_task(row) | row if table is database_tables.cases else row for row in rows]


def _find_task(row: dict[str, Any]) -> dict[str, str]:
    is_clinical = row["dominant_type"] in _CLINICAL_CASE_TYPES
    return {"task": _TASK_OF_OLDER_CASES.get(row["kind"], "clinical" if is_clinical else "tax")}


def require_known_tables_or_none(connection: sa.Connection) -> int | None:
    """Return the version of the database's tables; None if the database is empty.

    StoreError if a newer version of evalkit or another program created the database; SQLAlchemyError.
    """
    number = _read_tables_version(connection)
    if number is not None and not 1 <= number <= SCHEMA_NUMBER:
        raise StoreError(
            f"the database's tables have version {number}; this evalkit knows version {SCHEMA_NUMBER}",
            code="STORE-NEWER",
            remedy="Install the version of evalkit that created the database.",
        )
    if number is None and sa.inspect(connection).get_table_names():
        raise StoreError(
            "the database has tables of another program, and none of evalkit's",
            code="STORE-FOREIGN",
            remedy=f"If the output folder has a file {SQLITE_FILE}-wal, move that file out and try again: it may belong to another database. Otherwise move the database out, and restore the folder's own database from a backup.",
        )
    return number


def _read_tables_version(connection: sa.Connection) -> int | None:
    if not sa.inspect(connection).has_table(database_tables.schema_number.name):
        return None
    return int(connection.execute(sa.select(database_tables.schema_number.c.number)).scalar_one())
