"""The database of an output folder: which one it is, and its transactions."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import sqlalchemy as sa

from evalkit.errors import StoreError, UsageError
from evalkit.store import postgresql, sqlite, tables
from evalkit.store.files import Files
from evalkit.store.names import DATABASE, SQLITE
from evalkit.store.place import located

if TYPE_CHECKING:
    from sqlalchemy.dialects.postgresql import Insert as PostgreSQLInsert
    from sqlalchemy.dialects.sqlite import Insert as SQLiteInsert

#: Where a database is set; ``Settings`` reads both.
_FILE, _VARIABLE = "evalkit.toml", "EVALKIT_DATABASE"

_AT_ONCE = 1000
"""Rows that are given to the database in one go."""

_joined: ContextVar[sa.Connection | None] = ContextVar("joined", default=None)


class Database:
    """``evalkit.sqlite`` of one output folder, or the folder's schema in a PostgreSQL database."""

    def __init__(self, root: Path | str, url: str | None = None) -> None:
        """Open it; made where there is none. ``url`` is the setting ``database`` unless it is given.

        UsageError where the folder belongs to another database than the one that is set; StoreError where it cannot be
        opened.
        """
        address = chosen(root, url)
        try:
            self._engine = postgresql.opened(root, address) if address else sqlite.opened(Path(root))
        except (OSError, sa.exc.SQLAlchemyError) as error:
            raise (unreached(address, error) if address else _damaged(Path(root) / SQLITE, error)) from None
        self._autocommit = self._engine.execution_options(isolation_level="AUTOCOMMIT") if address else self._engine

    def close(self) -> None:
        """Give the database file, or the connections, back."""
        self._engine.dispose()

    @contextmanager
    def transaction(self) -> Iterator[sa.Connection]:
        """All of it or nothing, on disk when it ends. StoreError where the database cannot be read or written."""
        with self._connected(self._engine) as connection:
            yield connection

    @contextmanager
    def statement(self) -> Iterator[sa.Connection]:
        """As ``transaction``, for one statement: a server is asked once, not also to begin and to commit.

        Each document is worked on under its lock, and each question to a server is a way there and back.
        """
        with self._connected(self._autocommit) as connection:
            yield connection

    @contextmanager
    def reading_most(self) -> Iterator[sa.Connection]:
        """As ``statement``, for one that reads most rows of a table, and for which an index holds all that it asks for.

        A server expects a page of an index to take four times as long as one of the table, as on a turning disk, and
        would read the table. Inside ``together`` that is set until the transaction ends.
        """
        if self._engine.dialect.name == "sqlite":
            with self.statement() as connection:
                yield connection
            return
        with self.transaction() as connection:
            connection.exec_driver_sql("SET LOCAL random_page_cost = 1.1")
            yield connection

    @contextmanager
    def _connected(self, engine: sa.Engine) -> Iterator[sa.Connection]:
        joined = _joined.get()
        if joined is not None and joined.engine is self._engine:
            yield joined
            return
        try:
            with engine.begin() as connection:
                yield connection
        except sa.exc.SQLAlchemyError as error:
            is_file = self._engine.dialect.name == "sqlite"
            # Without the cause: PostgreSQL quotes the row, which may be a patient's.
            raise StoreError(
                f"the database of the output folder could not be read or written ({_name(error)})",
                code="STORE-INDEX",
                remedy="Nothing of it was saved: free some space or mend the folder's rights, then try again."
                if is_file
                else "Nothing of it was saved: see that the PostgreSQL server runs, then try again.",
            ) from None

    def scrub(self) -> bool:
        """Write the tables anew without what was removed; False where a reader kept the write-ahead log from emptying.

        A server's own log and its backups are its keeper's.
        """
        try:
            with self._engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                if connection.dialect.name == "postgresql":
                    names = ", ".join(table.name for table in tables.metadata.sorted_tables)
                    connection.exec_driver_sql(f"VACUUM (FULL) {names}")
                    return True
                connection.exec_driver_sql("VACUUM")
                is_busy, *_ = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()
        except sa.exc.SQLAlchemyError as error:
            raise StoreError(
                f"the database of the output folder could not be written anew ({_name(error)})",
                code="STORE-INDEX",
                remedy="Free as much space as it takes, end what else uses the folder, and try again.",
            ) from None
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

    @contextmanager
    def exchanging(self, rows: Mapping[sa.Table, Iterable[Mapping[str, Any]]]) -> Iterator[sa.Connection]:
        """A transaction in which these rows, and no others, are in their tables; of one table all have the same columns.

        They are taken as they come, which may take minutes, and put aside: others write meanwhile, and wait only while
        the rows take their place.
        """
        names = ", ".join(table.name for table in rows)
        with self.transaction() as connection:
            aside = {table: _put_aside(connection, table, some) for table, some in rows.items()}
            if connection.dialect.name == "postgresql":
                connection.exec_driver_sql(f"LOCK TABLE {names} IN SHARE ROW EXCLUSIVE MODE")
            for table, waiting in aside.items():
                connection.execute(sa.delete(table))
                if waiting is not None:
                    columns = [column.name for column in waiting.columns]
                    connection.execute(sa.insert(table).from_select(columns, sa.select(waiting)))
                    waiting.drop(connection)
            yield connection
        if self._engine.dialect.name == "postgresql":
            with self.statement() as connection:
                # Else the first minute's queries would be planned for the rows that were there before, and look at each
                # row that an index has found, to see whether it is there.
                connection.exec_driver_sql(f"VACUUM (ANALYZE) {names}")


def _put_aside(connection: sa.Connection, table: sa.Table, rows: Iterable[Mapping[str, Any]]) -> sa.Table | None:
    """The rows in a table that only this connection has; None where there are none."""
    waiting = iter(rows)
    first = list(islice(waiting, _AT_ONCE))
    if not first:
        return None
    columns = (sa.Column(name, table.columns[name].type) for name in first[0])
    aside = sa.Table(f"aside_{table.name}", sa.MetaData(), *columns, prefixes=["TEMPORARY"])
    connection.execute(sa.schema.DropTable(aside, if_exists=True))  # of one that failed: SQLite has kept it
    aside.create(connection)
    for some in chain([first], iter(lambda: list(islice(waiting, _AT_ONCE)), [])):
        connection.execute(sa.insert(aside), some)
    return aside


def chosen(root: Path | str, url: str | None = None) -> str | None:
    """The PostgreSQL database that the folder belongs to; None for ``evalkit.sqlite``. UsageError; nothing is made.

    A folder stays with the database that it has: people who looked for claims in two places would do a case twice.
    """
    address = url or _set()
    if isinstance(located(root), str):
        if address is None:
            raise UsageError(
                "an output folder in a bucket needs a PostgreSQL database for claims, drafts, journal and index",
                code="DATABASE",
                remedy="Set EVALKIT_DATABASE, or `database` in evalkit.toml, to postgresql://USER@HOST/NAME.",
            )
        return address
    if address is None and (Path(root) / DATABASE).exists():
        raise UsageError(
            "the claims, drafts and journal of this output folder are in a PostgreSQL database",
            code="DATABASE",
            remedy="Set EVALKIT_DATABASE, or `database` in evalkit.toml, to its address.",
        )
    if address is not None and (Path(root) / SQLITE).exists():
        raise UsageError(
            f"the claims, drafts and journal of this output folder are in its {SQLITE}",
            code="DATABASE",
            remedy="Run `evalkit move-database` while nobody reviews, or unset the database.",
        )
    return address


def _set() -> str | None:
    # An expert's kernel would hold 2 MB of settings for this one answer: where nothing can be set, nothing is loaded.
    if not Path(_FILE).exists() and not any(name.upper() == _VARIABLE for name in os.environ):
        return None
    from evalkit.settings import Settings

    return Settings.load().database


def described(root: Path | str, url: str | None = None) -> str:
    """Which database the folder has, and that it can be reached; nothing is made. UsageError, StoreError."""
    address = chosen(root, url)
    if address is None:
        if not (Path(root) / SQLITE).exists():
            return f"{SQLITE} in the output folder, once there is a run"
        try:
            sqlite.look_at(Path(root))
        except sa.exc.SQLAlchemyError as error:
            raise _damaged(Path(root) / SQLITE, error) from None
        return f"{SQLITE} in the output folder"
    schema = postgresql.schema_of(root)
    try:
        version = postgresql.reached(address, schema)
    except sa.exc.SQLAlchemyError as error:
        raise unreached(address, error) from None
    where = f"schema {schema}" if schema else "a schema for the output folder, once there is a run"
    return f"PostgreSQL {version}, {postgresql.shown(address)}, {where}"


def is_there(root: Path | str) -> bool:
    """Whether the folder has a database already."""
    files = Files(root)
    return any(files.exists(name) for name in (DATABASE, SQLITE))


def inserting(connection: sa.Connection, table: sa.Table) -> SQLiteInsert | PostgreSQLInsert:
    """The insert of the connection's dialect: both can do something else where the key is there already."""
    if connection.dialect.name == "sqlite":
        from sqlalchemy.dialects.sqlite import insert

        return insert(table)
    from sqlalchemy.dialects import postgresql as dialect  # 3 MB of each kernel

    return dialect.insert(table)


def replace(connection: sa.Connection, table: sa.Table, row: Mapping[str, Any]) -> None:
    """Put a row in the place of the one with its key."""
    putting = inserting(connection, table).values(**row)
    keys = [column.name for column in table.primary_key.columns]
    others = {column.name: putting.excluded[column.name] for column in table.columns if column.name not in keys}
    connection.execute(putting.on_conflict_do_update(index_elements=keys, set_=others))


def folded(text: str | None) -> str:
    """A text as it is compared in a search: capitals and ways to write an accent make no difference."""
    # No text of PostgreSQL holds a NUL; no file name does either.
    return unicodedata.normalize("NFC", text or "").casefold().replace("\0", "\ufffd")


def _damaged(path: Path, error: Exception) -> StoreError:
    return StoreError(
        f"the index {path} cannot be opened ({_name(error)})",
        code="STORE-INDEX",
        remedy="Mend the folder's rights; if the file is damaged, put back its backup and run `evalkit reindex`. Without "
        "one, delete it: drafts, what was put off, the paid answers of language models and who opened what go with it.",
    )


def unreached(url: str, error: Exception) -> StoreError:
    """What is said of a PostgreSQL database that cannot be used, without its password."""
    said = getattr(error, "orig", None)
    is_let_in = getattr(said, "sqlstate", None) is not None  # what a statement then met has a number
    row = None if is_let_in else next((row for row in _REFUSALS if row.sign in str(said)), None)
    return StoreError(
        f"the database {postgresql.shown(url)} cannot be opened ({row.why if row else _name(error)})",
        code="STORE-INDEX",
        remedy=row.remedy
        if row
        else "See that the PostgreSQL server runs and lets this user in and make a schema; `evalkit doctor` tells.",
    )


class _Refusal(NamedTuple):
    sign: str
    """What the driver or the server says; a server that speaks another language has the general remedy."""
    why: str
    remedy: str


_SILENT = "the server does not answer"
_RUNS = "See that it runs, and listens where the address says."
_REFUSALS = (
    _Refusal(
        "no password supplied",
        "no password was given",
        "Put it into ~/.pgpass as HOST:PORT:NAME:USER:PASSWORD, a file that only you can read (chmod 600).",
    ),
    _Refusal(
        "password authentication failed",
        "there is no such user, or the password is wrong",
        "Mend it in ~/.pgpass (a `:` or `\\` in it wants a `\\` before it), or make the user: createuser --pwprompt USER.",
    ),
    _Refusal("does not exist", "there is no such database or user", "Make it: createdb --owner USER NAME."),
    _Refusal(
        "no pg_hba.conf entry", "the server lets nobody in like this", "Let this user in from here, in its pg_hba.conf."
    ),
    _Refusal("Connection refused", _SILENT, _RUNS),
    _Refusal("failed to resolve host", _SILENT, _RUNS),
    _Refusal("timeout expired", _SILENT, _RUNS),
)


def _name(error: Exception) -> str:
    """What went wrong, by the driver's own name for it."""
    return type(getattr(error, "orig", None) or error).__name__
