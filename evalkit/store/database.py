"""The database of an output folder, and its transactions."""

from __future__ import annotations

import errno
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import sqlalchemy as sa

from evalkit.errors import StoreError, UsageError
from evalkit.store import database_tables, postgresql, sqlite
from evalkit.store.file_names import DATABASE_SCHEMA_FILE, SQLITE_FILE
from evalkit.store.output_folder import OutputFolder
from evalkit.store.schema_version import (
    SCHEMA_NUMBER,
    VERSIONED_TABLES,
    create_or_verify_tables,
    require_known_tables_or_none,
)

if TYPE_CHECKING:
    from sqlalchemy.dialects.postgresql import Insert as PostgreSQLInsert
    from sqlalchemy.dialects.sqlite import Insert as SQLiteInsert

#: Number of rows inserted by one statement.
_ROWS_PER_BATCH = 1000

_current_connection: ContextVar[sa.Connection | None] = ContextVar("joined", default=None)


class Database:
    """Database of an output folder: ``evalkit.sqlite`` or a schema in PostgreSQL."""

    def __init__(self, output_folder: OutputFolder, *, read_only: bool = False) -> None:
        """Open the output folder's database, creating it if missing.

        With ``read_only`` nothing is created or changed: a database that is missing or empty, or has the tables of an
        older evalkit, is answered for by one in memory. UsageError if the folder belongs to another database than the
        configured one; StoreError if the database cannot be opened.
        """
        self._url, self._root = resolve_postgresql_url(output_folder), output_folder.root
        try:
            self._engine = self._open_for_reading(output_folder) if read_only else self._open_or_create(output_folder)
        except (OSError, sa.exc.SQLAlchemyError) as error:
            raise self._build_error(error) from None
        self._autocommit_engine = (
            self._engine.execution_options(isolation_level="AUTOCOMMIT") if self._is_on_server else self._engine
        )
        self._inode = self._find_inode()

    def _open_or_create(self, output_folder: OutputFolder) -> sa.Engine:
        if self._url is None:
            return sqlite.open_or_create_sqlite_engine(Path(self._root))
        return postgresql.open_schema_engine(postgresql.ensure_schema(output_folder, self._url), self._url)

    def _open_for_reading(self, output_folder: OutputFolder) -> sa.Engine:
        if self._url is None:
            engine = sqlite.open_for_reading_or_none(Path(self._root))
        else:
            schema = postgresql.read_schema_name(output_folder)
            engine = postgresql.open_existing_schema_engine(schema, self._url) if schema else None
        number = None
        if engine is not None:
            with engine.connect() as connection:
                number = require_known_tables_or_none(connection)
        return engine if engine is not None and number == SCHEMA_NUMBER else _copy_to_memory(engine, number)

    def move_to_memory(self) -> None:
        """Use a copy in memory from now on, and leave the database file unchanged.

        StoreError.
        """
        try:
            self._engine = self._autocommit_engine = _copy_to_memory(self._engine, SCHEMA_NUMBER)
        except sa.exc.SQLAlchemyError as error:
            raise self._build_error(error) from None
        self._inode = None

    def refuse_changes(self) -> None:
        """Refuse changes of a copy in memory, because they would be lost."""
        if self._engine.dialect.name == "sqlite":
            with self.open_autocommit_connection() as connection:
                connection.exec_driver_sql("PRAGMA query_only=ON")

    def check_rows(self) -> None:
        """Raise StoreError if a table of a SQLite file is damaged."""
        if not self._is_on_server:
            with self.open_autocommit_connection() as connection:
                sqlite.check_rows(connection)

    def has_damaged_index(self, *tables: sa.Table) -> bool:
        """Return True if searches in these tables give other rows than a full scan."""
        if self._is_on_server:
            return False
        with self.transaction() as connection:
            return sqlite.has_damaged_index(connection, (table.name for table in tables))

    def rewrite_search_indexes(self) -> None:
        """Rebuild the search indexes from the rows. StoreError."""
        if not self._is_on_server:
            with self.transaction() as connection:
                connection.exec_driver_sql("REINDEX")

    @property
    def _is_on_server(self) -> bool:
        return self._engine.dialect.name == "postgresql"

    def _build_error(self, error: Exception) -> StoreError:
        return (
            build_connection_error(self._url, error)
            if self._url
            else sqlite.build_database_error(Path(self._root), error)
        )

    def _find_inode(self) -> int | None:
        """Return the number of the database file; None if the database is elsewhere."""
        with suppress(OSError):
            return (
                None
                if self._is_on_server or self._engine.url.database is None
                else (Path(self._root) / SQLITE_FILE).stat().st_ino
            )
        return 0

    def close(self) -> None:
        """Close all connections to the database."""
        self._engine.dispose()

    def transaction(self) -> AbstractContextManager[sa.Connection]:
        """Open a connection whose statements are committed to disk together at the end.

        StoreError if the database fails.
        """
        return self._begin_or_join_transaction(self._engine)

    def open_autocommit_connection(self) -> AbstractContextManager[sa.Connection]:
        """Open a connection for a single statement, which is committed at once.

        A server gets the statement in one round trip. That matters, because each document is processed under its lock.
        """
        return self._begin_or_join_transaction(self._autocommit_engine)

    def execute(self, statement: sa.UpdateBase) -> int:
        """Run a statement that changes rows, and return the number of changed rows."""
        with self.open_autocommit_connection() as connection:
            return connection.execute(statement).rowcount

    def fetch_rows(self, query: sa.Select[Any]) -> list[dict[str, Any]]:
        """Run a query, and return its rows as dicts by column name."""
        with self.open_autocommit_connection() as connection:
            result = connection.execute(query)
            columns = tuple(result.keys())  # once: a mapping of each row is several times slower
            return [dict(zip(columns, row, strict=True)) for row in result]

    def fetch_column(self, query: sa.Select[Any] | sa.CompoundSelect[Any]) -> list[Any]:
        """Run a query, and return the values of its first column."""
        with self.open_autocommit_connection() as connection:
            return list(connection.execute(query).scalars())

    @contextmanager
    def open_index_scan_connection(self) -> Iterator[sa.Connection]:
        """Yield a connection whose queries prefer an index to reading the whole table.

        PostgreSQL expects reading a page of an index to take four times as long as a page of the table, as on a
        rotating disk, and would read the table. Inside ``batch_into_one_transaction`` the setting lasts until the
        transaction ends.
        """
        if self._engine.dialect.name == "sqlite":
            with self.open_autocommit_connection() as connection:
                yield connection
            return
        with self.transaction() as connection:
            connection.exec_driver_sql("SET LOCAL random_page_cost = 1.1")
            yield connection

    @contextmanager
    def _begin_or_join_transaction(self, engine: sa.Engine) -> Iterator[sa.Connection]:
        shared_connection = _current_connection.get()
        if shared_connection is not None and shared_connection.engine is self._engine:
            yield shared_connection
            return
        if self._find_inode() != self._inode:  # what is written to a removed file is lost
            raise self._build_error(OSError(errno.ESTALE, "the database file was replaced by another file"))
        try:
            with engine.begin() as connection:
                yield connection
        except sa.exc.SQLAlchemyError as error:
            if not self._url:
                raise self._build_error(error) from None
            # Without the cause: PostgreSQL quotes the row, which may be a patient's.
            raise StoreError(
                f"the database of the output folder could not be read or written ({get_driver_error_type_name(error)})",
                code="STORE-INDEX",
                remedy="Nothing was saved: check that the PostgreSQL server runs, then try again.",
            ) from None

    def build_insert(self, table: sa.Table) -> SQLiteInsert | PostgreSQLInsert:
        """Build an insert to which ``on_conflict_do_update`` can be added."""
        if self._engine.dialect.name == "sqlite":
            from sqlalchemy.dialects.sqlite import insert

            return insert(table)
        from sqlalchemy.dialects import postgresql as dialect  # imported only here: it takes 3 MB of each kernel

        return dialect.insert(table)

    def build_upsert(self, table: sa.Table, row: Mapping[str, Any]) -> sa.Insert:
        """Build a statement that inserts a row, or updates its columns if the key exists.

        UsageError if a column is missing or unknown.
        """
        names = table.columns.keys()
        required = {
            column.name
            for column in table.columns
            if not (column.nullable or column.default or column.server_default or column is table.autoincrement_column)
        }
        if not required <= row.keys() <= {*names}:
            missing_names = ", ".join(sorted(required - row.keys()))
            raise UsageError(
                f"a row for {table.name} " + (f"lacks {missing_names}" if missing_names else "has an unknown column"),
                code="INDEX-ROW",
                remedy=f"It may have the columns {', '.join(names)}.",
            )
        upsert = self.build_insert(table).values(**row)
        return upsert.on_conflict_do_update(index_elements=[*table.primary_key.columns], set_=row)

    def vacuum(self) -> bool:
        """Rewrite the database's files, so that they no longer contain deleted rows.

        False if a reader kept the write-ahead log from being emptied. A PostgreSQL server's own log and backups are up
        to its operator.
        """
        try:
            with self._engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                if connection.dialect.name == "postgresql":
                    table_names = ", ".join(table.name for table in database_tables.metadata.sorted_tables)
                    connection.exec_driver_sql(f"VACUUM (FULL) {table_names}")
                    return True
                connection.exec_driver_sql("VACUUM")
                is_busy, *_ = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()
        except sa.exc.SQLAlchemyError as error:
            raise self._build_error(error) from None
        return not is_busy

    @contextmanager
    def hold_snapshot(self) -> Iterator[Callable[[Path], None]]:
        """Yield a function that writes the database, as it is now, to a new SQLite file.

        Other processes may write meanwhile. OSError if the disk is full; StoreError.
        """
        try:
            with self._engine.connect() as connection:
                is_sqlite = connection.dialect.name == "sqlite"
                connection.exec_driver_sql("BEGIN" if is_sqlite else "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                connection.exec_driver_sql("SELECT count(*) FROM schema_number")  # from here on, nothing changes
                yield partial(sqlite.copy_into_new_file if is_sqlite else _copy_all_tables, connection)
        except sa.exc.SQLAlchemyError as error:
            raise self._build_error(error) from None

    @contextmanager
    def batch_into_one_transaction(self) -> Iterator[None]:
        """Run all statements of this thread in one transaction, with a single disk sync."""
        with self.transaction() as connection:
            context_token = _current_connection.set(connection)
            try:
                yield
            finally:
                _current_connection.reset(context_token)

    @contextmanager
    def replace_all_rows(
        self, rows_by_table: Mapping[sa.Table, Iterable[Mapping[str, Any]]]
    ) -> Iterator[sa.Connection]:
        """Replace all rows of these tables in one transaction; yield its connection.

        All rows of a table have the same columns. They are first copied to temporary tables, which may take minutes;
        other processes can write meanwhile, and wait only while the new rows replace the old ones.
        """
        table_names = ", ".join(table.name for table in rows_by_table)
        with self.transaction() as connection:
            staged_tables = {
                table: _copy_rows_to_temp_table(connection, table, table_rows)
                for table, table_rows in rows_by_table.items()
            }
            if connection.dialect.name == "postgresql":
                connection.exec_driver_sql(f"LOCK TABLE {table_names} IN SHARE ROW EXCLUSIVE MODE")
            for table, staged_table in staged_tables.items():
                connection.execute(sa.delete(table))
                if staged_table is not None:
                    column_names = [column.name for column in staged_table.columns]
                    connection.execute(sa.insert(table).from_select(column_names, sa.select(staged_table)))
                    staged_table.drop(connection)
            yield connection
        if self._engine.dialect.name == "postgresql":
            with self.open_autocommit_connection() as connection:
                # Otherwise the first minute's queries would be planned for the former rows, and check the visibility of
                # each row that an index finds.
                connection.exec_driver_sql(f"VACUUM (ANALYZE) {table_names}")


def _copy_all_tables(connection: sa.Connection, path: Path) -> None:
    target_engine = sqlite.create_tables_in_new_file(path)
    try:
        with target_engine.begin() as target_connection:
            for table in database_tables.metadata.sorted_tables:
                copy_table(connection, target_connection, table)
    finally:
        target_engine.dispose()


def copy_table(source_connection: sa.Connection, target_connection: sa.Connection, table: sa.Table) -> int:
    """Copy a table's rows to another database; return their number."""
    columns = [column for column in table.columns if column.computed is None]
    count = 0
    for rows in source_connection.execute(sa.select(*columns)).mappings().partitions(_ROWS_PER_BATCH):
        target_connection.execute(sa.insert(table), [dict(row) for row in rows])
        count += len(rows)
    return count


def _copy_rows_to_temp_table(
    connection: sa.Connection, table: sa.Table, rows: Iterable[Mapping[str, Any]]
) -> sa.Table | None:
    row_iterator = iter(rows)
    first_batch = list(islice(row_iterator, _ROWS_PER_BATCH))
    if not first_batch:
        return None
    columns = (sa.Column(column_name, table.columns[column_name].type) for column_name in first_batch[0])
    staged_table = sa.Table(f"aside_{table.name}", sa.MetaData(), *columns, prefixes=["TEMPORARY"])
    connection.execute(sa.schema.DropTable(staged_table, if_exists=True))  # SQLite keeps the one of a failed rebuild
    staged_table.create(connection)
    for batch in chain([first_batch], iter(lambda: list(islice(row_iterator, _ROWS_PER_BATCH)), [])):
        connection.execute(sa.insert(staged_table), batch)
    return staged_table


def _copy_to_memory(engine: sa.Engine | None, number: int | None) -> sa.Engine:
    """Copy a database into memory, without its model calls; an empty one if None.

    Tables of another version than this evalkit's (``number``) are copied if their columns are the same. The engine is
    disposed of.
    """
    memory = sqlite.create_memory_engine()
    create_or_verify_tables(memory, lambda _connection: None)
    if engine is not None:
        with engine.connect() as source, memory.begin() as target:
            existing_names = sa.inspect(source).get_table_names() if number else ()
            for table in database_tables.metadata.sorted_tables:
                is_current = number == SCHEMA_NUMBER or table not in VERSIONED_TABLES
                if is_current and table is not database_tables.model_calls and table.name in existing_names:
                    copy_table(source, target, table)
        engine.dispose()
    return memory


def resolve_postgresql_url(output_folder: OutputFolder) -> str | None:
    """Return the URL of the folder's PostgreSQL database; None for ``evalkit.sqlite``.

    UsageError if the folder belongs to the other kind of database, or needs one that is not set. A folder stays with
    its database: with claims in two databases, two people would do the same case.
    """
    root, database_url = output_folder.root, output_folder.database_url
    if isinstance(root, str):
        if database_url is None:
            raise UsageError(
                "an output folder in a bucket needs a PostgreSQL database for claims, drafts, journal and index",
                code="DATABASE",
                remedy="Set EVALKIT_DATABASE, or `database` in evalkit.toml, to postgresql://USER@HOST/NAME.",
            )
        return database_url
    if database_url is None and (root / DATABASE_SCHEMA_FILE).exists():
        raise UsageError(
            "the claims, drafts and journal of this output folder are in a PostgreSQL database",
            code="DATABASE",
            remedy="Set EVALKIT_DATABASE, or `database` in evalkit.toml, to its address.",
        )
    if database_url is not None and (root / SQLITE_FILE).exists():
        raise UsageError(
            f"the claims, drafts and journal of this output folder are in its {SQLITE_FILE}",
            code="DATABASE",
            remedy="Run `evalkit move-database` while nobody reviews, or unset the database.",
        )
    return database_url


def check_and_describe_database(output_folder: OutputFolder, *, is_thorough: bool = True) -> str:
    """Check a folder's database without changing it, and return its description.

    UsageError, StoreError. ``is_thorough``: also look for damage in all of ``evalkit.sqlite``.
    """
    database_url, root = resolve_postgresql_url(output_folder), output_folder.root
    if database_url is None:
        if not (Path(root) / SQLITE_FILE).exists():
            return f"{SQLITE_FILE} in the output folder, once there is a run"
        try:
            sqlite.verify_database(Path(root), is_thorough=is_thorough)
        except (OSError, sa.exc.SQLAlchemyError) as error:
            raise sqlite.build_database_error(Path(root), error) from None
        return f"{SQLITE_FILE} in the output folder"
    schema = postgresql.read_schema_name(output_folder)
    try:
        server_version = postgresql.check_server_and_get_version(database_url, schema)
    except sa.exc.SQLAlchemyError as error:
        raise build_connection_error(database_url, error) from None
    schema_text = f"schema {schema}" if schema else "a schema for the output folder, once there is a run"
    return f"PostgreSQL {server_version}, {postgresql.redact_url(database_url)}, {schema_text}"


def is_sqlite_missing(output_folder: OutputFolder) -> bool:
    """Return True if the folder's database belongs in SQLite, but has no file."""
    root = output_folder.root
    return resolve_postgresql_url(output_folder) is None and not (Path(root) / SQLITE_FILE).exists()


def measure_database_clock_skew(output_folder: OutputFolder) -> float:
    """Return the seconds by which a database server's clock is ahead; 0 for SQLite.

    Also 0 if the server does not answer, which ``check_and_describe_database`` tells.
    """
    database_url = resolve_postgresql_url(output_folder)
    with suppress(sa.exc.SQLAlchemyError):
        return postgresql.measure_clock_skew(database_url) if database_url else 0.0
    return 0.0


def fold_for_search(text: str | None) -> str:
    """Normalise text for searches: ignore case, compose accents; None becomes empty."""
    # No text of PostgreSQL holds a NUL; no file name does either.
    return unicodedata.normalize("NFC", text or "").casefold().replace("\0", "\ufffd")


def build_connection_error(url: str, error: Exception) -> StoreError:
    """Build the error for a PostgreSQL database that cannot be used.

    It shows no password.
    """
    driver_error = getattr(error, "orig", None)
    is_connected = getattr(driver_error, "sqlstate", None) is not None  # only errors of a statement have an SQLSTATE
    refusal = (
        None
        if is_connected
        else next((refusal for refusal in _KNOWN_REFUSALS if refusal.message_part in str(driver_error)), None)
    )
    return StoreError(
        f"the database {postgresql.redact_url(url)} cannot be opened ({refusal.reason if refusal else get_driver_error_type_name(error)})",
        code="STORE-INDEX",
        remedy=refusal.remedy
        if refusal
        else "Check that the PostgreSQL server runs and lets this user connect and create a schema: run `evalkit doctor`.",
    )


class _ConnectionRefusal(NamedTuple):
    message_part: str
    """Part of the driver's or server's English message; messages in other languages get the general remedy."""
    reason: str
    remedy: str


_NO_ANSWER = "the server does not answer"
_CHECK_SERVER_REMEDY = "Check that the server runs, and listens at that address."
_KNOWN_REFUSALS = (
    _ConnectionRefusal(
        "no password supplied",
        "no password was supplied",
        "Put the password into ~/.pgpass as HOST:PORT:NAME:USER:PASSWORD, a file that only you can read (chmod 600).",
    ),
    _ConnectionRefusal(
        "password authentication failed",
        "there is no such user, or the password is wrong",
        "Correct the password in ~/.pgpass (write `\\` before a `:` or `\\`), or create the user: createuser --pwprompt USER.",
    ),
    _ConnectionRefusal(
        "does not exist",
        "there is no such database or user",
        "Create the database (createdb --owner USER NAME) or the user (createuser --pwprompt USER).",
    ),
    _ConnectionRefusal(
        "no pg_hba.conf entry",
        "the server does not allow this connection",
        "Allow this user and machine in the server's pg_hba.conf.",
    ),
    _ConnectionRefusal("Connection refused", _NO_ANSWER, _CHECK_SERVER_REMEDY),
    _ConnectionRefusal("failed to resolve host", _NO_ANSWER, _CHECK_SERVER_REMEDY),
    _ConnectionRefusal("timeout expired", _NO_ANSWER, _CHECK_SERVER_REMEDY),
)


def get_driver_error_type_name(error: Exception) -> str:
    """Return the name of the database driver's error type, e.g. ``LockNotAvailable``."""
    return type(getattr(error, "orig", None) or error).__name__
