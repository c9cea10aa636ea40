"""Migration of ``evalkit.sqlite`` to PostgreSQL: all rows, in one transaction."""

from __future__ import annotations

import sqlalchemy as sa

from evalkit.errors import StoreError, UsageError
from evalkit.store import database_tables, postgresql, sqlite
from evalkit.store.database import build_connection_error, copy_table
from evalkit.store.file_names import DATABASE_SCHEMA_FILE, MOVED_SQLITE_FILE, SQLITE_FILE
from evalkit.store.local_folder import require_local_folder
from evalkit.store.output_folder import OutputFolder


def migrate_sqlite_to_postgresql(output_folder: OutputFolder, url: str) -> dict[str, int]:
    """Move all rows of ``evalkit.sqlite`` to PostgreSQL; return their number by table.

    The caller holds the run lock and the write lock. UsageError if the folder has no ``evalkit.sqlite``; StoreError if
    another process has it open, or the server cannot be reached: nothing has changed then.
    """
    if not output_folder.has_file(SQLITE_FILE):
        database_state = "already in PostgreSQL" if output_folder.has_file(DATABASE_SCHEMA_FILE) else "not created yet"
        raise UsageError(
            f"the database of this output folder is {database_state}",
            code="DATABASE",
            remedy="There is nothing to move.",
        )
    local_folder = require_local_folder(output_folder)
    sqlite_path = local_folder.local_path(SQLITE_FILE)
    row_counts: dict[str, int] = {}
    if not output_folder.has_file(
        DATABASE_SCHEMA_FILE
    ):  # otherwise an earlier move was killed just before its last step
        source_engine = sqlite.open_or_create_sqlite_engine(local_folder.root)
        try:
            row_counts = _copy_database(source_engine, local_folder, url)
        except sa.exc.SQLAlchemyError as error:
            raise build_connection_error(url, error) from None
        finally:
            source_engine.dispose()
    sqlite_path.rename(local_folder.local_path(MOVED_SQLITE_FILE))
    return row_counts


def _copy_database(source_engine: sa.Engine, output_folder: OutputFolder, url: str) -> dict[str, int]:
    with source_engine.connect() as source_connection:
        _lock_sqlite_exclusively(source_connection)
        schema = postgresql.generate_schema_name()
        target_engine = postgresql.open_schema_engine(schema, url, create_missing=True)
        try:
            with target_engine.begin() as target_connection:
                row_counts = {
                    table.name: copy_table(source_connection, target_connection, table)
                    for table in database_tables.metadata.sorted_tables
                }
                for table in database_tables.AUTONUMBERED_TABLES:
                    _continue_numbering(target_connection, table)
                target_connection.exec_driver_sql(f"ANALYZE {', '.join(row_counts)}")
            postgresql.try_record_schema_name(output_folder, schema)
        except BaseException:
            postgresql.drop_schema(target_engine, schema)
            raise
        finally:
            target_engine.dispose()
    return row_counts


def _lock_sqlite_exclusively(connection: sa.Connection) -> None:
    """Leave WAL mode, which fails while others use the file, and lock the file."""
    try:
        connection.exec_driver_sql("PRAGMA busy_timeout=1000")
        connection.exec_driver_sql("PRAGMA journal_mode=DELETE")
        connection.exec_driver_sql("BEGIN EXCLUSIVE")
    except sa.exc.OperationalError:
        raise StoreError(
            f"another process has {SQLITE_FILE} open",
            code="STORE-BUSY",
            remedy="End `evalkit review` and all other processes that use the folder, then run the command again.",
        ) from None


def _continue_numbering(target_connection: sa.Connection, table: sa.Table) -> None:
    last_number = sa.select(sa.func.max(table.c.number)).scalar_subquery()
    sequence = sa.func.pg_get_serial_sequence(table.name, "number")
    target_connection.execute(
        sa.select(sa.func.setval(sequence, sa.func.coalesce(last_number, 1), last_number.is_not(None)))
    )
