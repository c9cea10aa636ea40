"""``evalkit.sqlite`` in the output folder."""

from __future__ import annotations

import errno
import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from evalkit.store.files import private_folder, sync_folder
from evalkit.store.names import SCRATCH, SQLITE
from evalkit.store.schema import prepare_schema, require_known_schema
from evalkit.store.scratch import scratch_name


def opened(root: Path) -> sa.Engine:
    """The database of that folder with its tables; made where there is none. OSError, SQLAlchemyError."""
    path = root / SQLITE
    if path.is_symlink():
        raise FileExistsError(errno.ELOOP, "it is a link")
    if not path.exists():
        _make(path)
    engine = _engine(path)
    _prepare(engine)
    return engine


def look_at(root: Path) -> None:
    """See that the database of that folder can be used as it is; nothing is changed. StoreError, SQLAlchemyError."""
    path = (root / SQLITE).absolute()
    engine = sa.create_engine(f"sqlite:///{path.as_uri()}?mode=ro&uri=true", hide_parameters=True)
    try:
        with engine.connect() as connection:
            if connection.exec_driver_sql("PRAGMA quick_check(1)").scalar_one() != "ok":
                raise sa.exc.DatabaseError("quick_check", None, sqlite3.DatabaseError())
            require_known_schema(connection)
    finally:
        engine.dispose()


def _engine(path: Path) -> sa.Engine:
    """It waits 30 s for other writers, and keeps values, which may be a patient's, out of its errors."""
    engine = sa.create_engine(f"sqlite:///{path}", connect_args={"timeout": 30}, hide_parameters=True)
    sa.event.listen(engine, "connect", _connected)
    return engine


def _connected(connection: Any, _record: object) -> None:
    # What is called saved must outlive a power cut; WAL alone syncs only now and then.
    connection.execute("PRAGMA synchronous=FULL")


def _make(path: Path) -> None:
    """Put an empty database there, private, unless somebody else just did.

    It is made under another name: of two that switch a new database to WAL at once, SQLite fails one; and closing the
    file that others have open already would take their locks away.
    """
    temporary = path.parent / SCRATCH / scratch_name()
    private_folder(temporary.parent, path.parent)
    os.close(os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    try:
        engine = _engine(temporary)
        _prepare(engine)
        engine.dispose()
        with suppress(FileExistsError):
            os.link(temporary, path)
        sync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def _prepare(engine: sa.Engine) -> None:
    with engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA journal_mode=WAL")
    prepare_schema(engine, lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
