"""The database of an output folder: its connections, its transactions, and how an older one gets what it lacks."""

from __future__ import annotations

import errno
import os
import secrets
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.schema import CreateColumn, CreateIndex, CreateTable

from evalkit.errors import StoreError
from evalkit.store import tables
from evalkit.store.files import private_folder, sync_folder
from evalkit.store.names import SCRATCH

_joined: ContextVar[sa.Connection | None] = ContextVar("joined", default=None)


class Database:
    """``evalkit.sqlite`` of one output folder."""

    def __init__(self, root: Path | str) -> None:
        """Open it; made where there is none. StoreError where it cannot be opened."""
        path = Path(root) / "evalkit.sqlite"
        try:
            if path.is_symlink():
                raise FileExistsError(errno.ELOOP, "it is a link")
            if not path.exists():
                _new_database(path)
            self._engine = _engine(path)
            _prepare(self._engine)
        except (OSError, sa.exc.SQLAlchemyError) as error:
            raise StoreError(
                f"the index {path} cannot be opened ({type(error).__name__})",
                code="STORE-INDEX",
                remedy="Mend the folder's rights; if the file is damaged, delete it (open drafts and the paid answers of "
                "language models go with it) and run `evalkit reindex`.",
            ) from error

    def close(self) -> None:
        """Give the database file back."""
        self._engine.dispose()

    @contextmanager
    def transaction(self) -> Iterator[sa.Connection]:
        """All of it or nothing, on disk when it ends. StoreError where the database cannot be read or written."""
        joined = _joined.get()
        if joined is not None and joined.engine is self._engine:
            yield joined
            return
        try:
            with self._engine.begin() as connection:
                yield connection
        except sa.exc.SQLAlchemyError as error:
            raise StoreError(
                f"the database of the output folder could not be read or written ({type(error).__name__})",
                code="STORE-INDEX",
                remedy="Nothing of it was saved: free some space or mend the folder's rights, then try again.",
            ) from error

    def scrub(self) -> bool:
        """Write the file anew without its free pages, and empty the write-ahead log; False where a reader held it up."""
        try:
            with self._engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                connection.exec_driver_sql("VACUUM")
                is_busy, *_ = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()
        except sa.exc.SQLAlchemyError as error:
            raise StoreError(
                f"the database of the output folder could not be written anew ({type(error).__name__})",
                code="STORE-INDEX",
                remedy="Free as much space as it takes, end what else uses the folder, and try again.",
            ) from error
        return not is_busy

    @contextmanager
    def together(self) -> Iterator[None]:
        """What this thread does with the database inside is one transaction: one sync of the disk instead of many."""
        with self.transaction() as connection:
            joined = _joined.set(connection)
            try:
                yield
            finally:
                _joined.reset(joined)


def replace(connection: sa.Connection, table: sa.Table, row: dict[str, Any]) -> None:
    """Put a row in the place of the one with its key."""
    key = next(iter(table.primary_key.columns))
    connection.execute(sa.delete(table).where(key == row[key.name]))
    connection.execute(sa.insert(table).values(**row))


def folded(text: str | None) -> str:
    """A text as it is compared in a search: capitals and ways to write an accent make no difference."""
    return unicodedata.normalize("NFC", text or "").casefold()


def _engine(path: Path) -> sa.Engine:
    """The database: waits 30 s for other writers, and keeps values, which may be a patient's, out of its errors."""
    engine = sa.create_engine(f"sqlite:///{path}", connect_args={"timeout": 30}, hide_parameters=True)
    sa.event.listen(engine, "connect", _connected)
    return engine


def _connected(connection: Any, _record: object) -> None:
    # What is called saved must outlive a power cut; WAL alone syncs only now and then.
    connection.execute("PRAGMA synchronous=FULL")
    connection.create_function("folded", 1, folded, deterministic=True)


def _new_database(path: Path) -> None:
    """Put an empty database there, private, unless somebody else just did.

    It is made under another name: of two that switch a new database to WAL at once, SQLite fails one; and closing the
    file that others have open already would take their locks away.
    """
    temporary = path.parent / SCRATCH / f"{os.getpid()}-{secrets.token_hex(8)}"
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
    with engine.begin() as connection:
        connection.exec_driver_sql("PRAGMA journal_mode=WAL")
        # MetaData.create_all looks first and creates then: of two that add a table at once, one would fail.
        for table in tables.metadata.sorted_tables:
            connection.execute(CreateTable(table, if_not_exists=True))
        if _missing(connection):
            connection.exec_driver_sql("BEGIN IMMEDIATE")  # of two that open an older database, one adds the columns
            for column in _missing(connection):
                described = CreateColumn(column).compile(dialect=connection.dialect)
                connection.exec_driver_sql(f"ALTER TABLE {column.table.name} ADD COLUMN {described}")
        for table in tables.metadata.sorted_tables:
            for index in table.indexes:
                connection.execute(CreateIndex(index, if_not_exists=True))


def _missing(connection: sa.Connection) -> list[sa.Column[Any]]:
    """The columns that the database of an older evalkit lacks; it has its rows and keeps them."""
    there = {
        table.name: {row[1] for row in connection.exec_driver_sql(f"PRAGMA table_xinfo({table.name})")}
        for table in tables.metadata.sorted_tables
    }
    return [
        column
        for table in tables.metadata.sorted_tables
        for column in table.columns
        if column.name not in there[table.name]
    ]
