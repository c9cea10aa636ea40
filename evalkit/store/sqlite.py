"""The database file ``evalkit.sqlite`` in the output folder."""

from __future__ import annotations

import errno
import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from evalkit.store.file_names import SQLITE_FILE, TEMP_FOLDER
from evalkit.store.local_folder import fsync_folder, generate_process_temp_name, make_private_folder_and_parents
from evalkit.store.schema_version import create_or_verify_tables, require_known_tables_or_none


def open_or_create_sqlite_engine(root: Path) -> sa.Engine:
    """Open ``evalkit.sqlite`` in the folder ``root``, creating it if missing.

    OSError, SQLAlchemyError.
    """
    path = root / SQLITE_FILE
    if path.is_symlink():
        raise FileExistsError(errno.ELOOP, "it is a link")
    if not path.exists():
        _create_database_file(path)
    engine = _create_engine(path)
    _enable_wal_and_create_tables(engine)
    return engine


def verify_database(root: Path, *, is_thorough: bool) -> None:
    """Check that ``evalkit.sqlite`` has tables that this evalkit knows, and is intact if ``is_thorough``.

    StoreError if another version of evalkit created it; SQLAlchemyError if it is damaged.
    """
    path = (root / SQLITE_FILE).absolute()
    engine = sa.create_engine(f"sqlite:///{path.as_uri()}?mode=ro&uri=true", hide_parameters=True)
    try:
        with engine.connect() as connection:
            if is_thorough and connection.exec_driver_sql("PRAGMA quick_check(1)").scalar_one() != "ok":
                raise sa.exc.DatabaseError("quick_check", None, sqlite3.DatabaseError())
            require_known_tables_or_none(connection)
    finally:
        engine.dispose()


def copy_into_new_file(connection: sa.Connection, path: Path) -> None:
    """Copy the SQLite database of a connection, as its transaction sees it, to a new file.

    OSError if the disk is full; SQLAlchemyError.
    """
    source = connection.connection.driver_connection
    assert isinstance(source, sqlite3.Connection)  # noqa: S101 - the caller asks only for SQLite
    try:
        with closing(sqlite3.connect(path)) as target:
            source.backup(target)
            target.execute("PRAGMA journal_mode=DELETE")  # a file that is only read must need no file beside it
    except sqlite3.OperationalError as error:
        if error.sqlite_errorname != "SQLITE_FULL":
            raise sa.exc.OperationalError("backup", None, error) from None
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from None


def create_tables_in_new_file(path: Path) -> sa.Engine:
    """Create a database file with empty tables, and return its engine. SQLAlchemyError."""
    engine = _create_engine(path)
    create_or_verify_tables(engine, lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    return engine


def _create_engine(path: Path) -> sa.Engine:
    """Create an engine that waits 30 s for writers and keeps row values out of errors."""
    engine = sa.create_engine(f"sqlite:///{path}", connect_args={"timeout": 30}, hide_parameters=True)
    sa.event.listen(engine, "connect", _enable_full_sync)
    return engine


def _enable_full_sync(connection: Any, _record: object) -> None:
    # Saved work must outlive a power cut; WAL alone syncs only now and then.
    connection.execute("PRAGMA synchronous=FULL")


def _create_database_file(path: Path) -> None:
    """Create an empty database with mode 0600, unless another process just did.

    The database is created under another name: if two processes switch a new database to WAL at once, SQLite fails one
    of them; and closing a file that others have open already would release their locks.
    """
    temp_path = path.parent / TEMP_FOLDER / generate_process_temp_name()
    make_private_folder_and_parents(temp_path.parent, path.parent)
    os.close(os.open(temp_path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    try:
        engine = _create_engine(temp_path)
        _enable_wal_and_create_tables(engine)
        engine.dispose()
        with suppress(FileExistsError):
            os.link(temp_path, path)
        fsync_folder(path.parent)
    finally:
        temp_path.unlink(missing_ok=True)


def _enable_wal_and_create_tables(engine: sa.Engine) -> None:
    with engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA journal_mode=WAL")
    create_or_verify_tables(engine, lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
