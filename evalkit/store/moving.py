"""From ``evalkit.sqlite`` to PostgreSQL: all tables, in one transaction, row by row as they are."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa

from evalkit.errors import StoreError, UsageError
from evalkit.store import postgresql, sqlite, tables
from evalkit.store.database import unreached
from evalkit.store.files import Files
from evalkit.store.names import DATABASE, MOVED, SQLITE

_AT_ONCE = 1000


def move(root: Path | str, url: str) -> dict[str, int]:
    """Move the folder's database to the one at ``url``; how many rows of each table.

    The caller holds the run's lock and the lock of ``review``. UsageError where the folder has no ``evalkit.sqlite``;
    StoreError where somebody has it open, or the server cannot be reached: everything is as it was then.
    """
    files = Files(root)
    if not files.exists(SQLITE):
        where = "in PostgreSQL already" if files.exists(DATABASE) else "not there yet"
        raise UsageError(
            f"the database of this output folder is {where}", code="DATABASE", remedy="Nothing is to be moved."
        )
    path = files.path(SQLITE)
    folder = path.parent
    moved: dict[str, int] = {}
    if not files.exists(DATABASE):  # else a move ended just before its last step
        source = sqlite.opened(folder)
        try:
            moved = _copied(source, folder, url)
        except sa.exc.SQLAlchemyError as error:
            raise unreached(url, error) from None
        finally:
            source.dispose()
    path.rename(folder / MOVED)
    return moved


def _copied(source: sa.Engine, folder: Path, url: str) -> dict[str, int]:
    with source.connect() as reading:
        _alone(reading)
        name = postgresql.drawn()
        target = postgresql.of_schema(name, url, make=True)
        try:
            with target.begin() as writing:
                moved = {table.name: _table(reading, writing, table) for table in tables.metadata.sorted_tables}
                for table in tables.numbered:
                    _go_on_counting(writing, table)
                writing.exec_driver_sql(f"ANALYZE {', '.join(moved)}")
            postgresql.join(folder, name)
        except BaseException:
            postgresql.drop(target, name)
            raise
        finally:
            target.dispose()
    return moved


def _alone(connection: sa.Connection) -> None:
    """All of it in the one file, and nobody else in it: SQLite leaves WAL only for its last user."""
    try:
        connection.exec_driver_sql("PRAGMA busy_timeout=1000")
        connection.exec_driver_sql("PRAGMA journal_mode=DELETE")
        connection.exec_driver_sql("BEGIN EXCLUSIVE")
    except sa.exc.OperationalError:
        raise StoreError(
            f"somebody has {SQLITE} open",
            code="STORE-BUSY",
            remedy="End `evalkit review` and what else works on the folder, then move it.",
        ) from None


def _go_on_counting(writing: sa.Connection, table: sa.Table) -> None:
    """The next row gets the number after the last one that was moved: the server counts by itself, and began at 1."""
    last = sa.select(sa.func.max(table.c.number)).scalar_subquery()
    sequence = sa.func.pg_get_serial_sequence(table.name, "number")
    writing.execute(sa.select(sa.func.setval(sequence, sa.func.coalesce(last, 1), last.is_not(None))))


def _table(reading: sa.Connection, writing: sa.Connection, table: sa.Table) -> int:
    columns = [column for column in table.columns if column.computed is None]
    count = 0
    for rows in reading.execute(sa.select(*columns)).mappings().partitions(_AT_ONCE):
        writing.execute(sa.insert(table), [dict(row) for row in rows])
        count += len(rows)
    return count
