"""PostgreSQL database shared by several machines; one schema per output folder.

The schema's name is generated once and stored in the folder (``database.json``): it stays right when the folder is
renamed or mounted elsewhere, and it shows that claims are not in ``evalkit.sqlite``. The file holds no address and no
password.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from functools import lru_cache
from typing import Any

import sqlalchemy as sa

from evalkit.core.install_hint import format_install_hint
from evalkit.errors import NotFound, StoreError, UsageError
from evalkit.store.file_names import DATABASE_SCHEMA_FILE
from evalkit.store.output_folder import OutputFolder
from evalkit.store.schema_version import create_or_verify_tables

#: Seconds to wait for a lock that another connection holds, or for a free connection.
_LOCK_TIMEOUT_SECONDS = 30
_SCHEMA_NAME_PATTERN = re.compile(r"evalkit_[0-9a-f]{16}")


def read_schema_name(output_folder: OutputFolder) -> str | None:
    """Read the name of the folder's schema; None if the folder has no schema yet.

    StoreError if ``database.json`` is damaged.
    """
    try:
        schema = output_folder.read_json(DATABASE_SCHEMA_FILE).get("schema")
    except NotFound:
        return None
    if not isinstance(schema, str) or not _SCHEMA_NAME_PATTERN.fullmatch(schema):
        raise StoreError(
            f"{DATABASE_SCHEMA_FILE} does not name a valid database schema",
            code="STORE-TORN",
            remedy="Restore the file from a backup of the output folder.",
        )
    return schema


def ensure_schema(output_folder: OutputFolder, url: str) -> str:
    """Return the name of the folder's schema, creating the schema if there is none.

    StoreError, SQLAlchemyError.
    """
    schema = read_schema_name(output_folder)
    if schema is None:
        schema = generate_schema_name()
        new_engine = open_schema_engine(schema, url, create_missing=True)  # before the folder records its name
        try:
            if not try_record_schema_name(output_folder, schema):  # another process recorded a schema a moment earlier
                drop_schema(new_engine, schema)
                schema = str(read_schema_name(output_folder))
        finally:
            new_engine.dispose()
    return schema


def drop_schema(engine: sa.Engine, schema: str) -> None:
    """Remove a schema with all its tables. SQLAlchemyError if that fails."""
    with engine.begin() as connection:
        connection.execute(sa.schema.DropSchema(schema, cascade=True))


def has_schema(connection: sa.Connection, schema: str) -> bool:
    """Return True if the database has a schema of this name."""
    return schema in sa.inspect(connection).get_schema_names()


def open_schema_engine(schema: str, url: str, *, create_missing: bool = False) -> sa.Engine:
    """Open a schema, and create its tables if they are missing.

    A missing schema is created with ``create_missing``; otherwise UsageError. StoreError, SQLAlchemyError.
    """
    engine = _create_schema_engine(schema, url)
    create_or_verify_tables(
        engine, lambda connection: _lock_and_ensure_schema(connection, schema, create_missing=create_missing)
    )
    return engine


def open_existing_schema_engine(schema: str, url: str) -> sa.Engine:
    """Open a schema without changing it. UsageError if it is missing; SQLAlchemyError."""
    engine = _create_schema_engine(schema, url)
    with engine.connect() as connection:
        if not has_schema(connection, schema):
            raise build_missing_schema_error(schema)
    return engine


def _create_schema_engine(schema: str, url: str) -> sa.Engine:
    session_options = f"-csearch_path={schema} -clock_timeout={_LOCK_TIMEOUT_SECONDS}s -csynchronous_commit=on"
    # Parallel workers take longer to start than they save for the queue; and a generic plan
    # expects a search to find a third of the rows although it may find most of them.
    planner_options = "-cmax_parallel_workers_per_gather=0 -cplan_cache_mode=force_custom_plan"
    return _create_engine(url, f"{session_options} {planner_options}")


def generate_schema_name() -> str:
    """Generate a unique name for a folder's schema."""
    return f"evalkit_{secrets.token_hex(8)}"


def try_record_schema_name(output_folder: OutputFolder, schema: str) -> bool:
    """Record the folder's schema name; return False, changing nothing, if it has one."""
    return output_folder.create_json_if_absent(DATABASE_SCHEMA_FILE, {"schema_version": 1, "schema": schema})


def check_server_and_get_version(url: str, schema: str | None) -> str:
    """Check that the server has the schema, or may create one; return its version.

    UsageError, StoreError, SQLAlchemyError.
    """
    engine = _create_engine(url, "")
    try:
        with engine.connect() as connection:
            if schema and not has_schema(connection, schema):
                raise build_missing_schema_error(schema)
            may_create_schema = sa.func.has_database_privilege(sa.func.current_database(), "CREATE")
            if not schema and not connection.execute(sa.select(may_create_schema)).scalar_one():
                raise StoreError(
                    f"the database {redact_url(url)} does not let this user create a schema",
                    code="STORE-INDEX",
                    remedy="As the database's owner, run: GRANT CREATE ON DATABASE NAME TO USER.",
                )
            return str(connection.exec_driver_sql("SHOW server_version").scalar_one())
    finally:
        engine.dispose()


def measure_clock_skew(url: str) -> float:
    """Return the seconds by which the server's clock is ahead. SQLAlchemyError."""
    engine = _create_engine(url, "")
    try:
        with engine.connect() as connection:
            server_time = connection.exec_driver_sql("SELECT extract(epoch FROM clock_timestamp())").scalar_one()
            return float(server_time) - time.time()
    finally:
        engine.dispose()


def connect_with_write_lock(schema: str, url: str, *, document_key: str | None) -> sa.Connection:
    """Wait for the write lock of a schema or document; return the locking connection.

    The lock ends with the connection's transaction, or with its process. SQLAlchemyError.
    """
    connection = _get_lock_engine(url).connect()
    try:
        if document_key is None:
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_hash_lock_id(schema, "turn"))))
        else:
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock_shared(_hash_lock_id(schema, "turn"))))
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_hash_lock_id(schema, f"turn {document_key}"))))
    except BaseException:
        connection.close()
        raise
    return connection


def connect_with_save_lock(schema: str, url: str, *, is_exclusive: bool) -> sa.Connection:
    """Wait for a schema's save lock; return its connection. SQLAlchemyError."""
    # Connections of its own: who waits for a write lock while it holds this lock must not use up that lock's.
    connection = _get_lock_engine(url, "save").connect()
    acquire = sa.func.pg_advisory_xact_lock if is_exclusive else sa.func.pg_advisory_xact_lock_shared
    try:
        connection.execute(sa.select(acquire(_hash_lock_id(schema, "save"))))
    except BaseException:
        connection.close()
        raise
    return connection


def try_connect_with_run_lock(schema: str, url: str) -> sa.Connection | None:
    """Return a connection that holds a schema's run lock; None if another run has it.

    Closing the connection releases the lock. SQLAlchemyError.
    """
    # The connection is idle for the whole run: without keepalives a firewall or a NAT router would drop it.
    keepalive_options = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 6}
    engine = _create_engine(url, "", connect_args=keepalive_options, poolclass=sa.NullPool)
    connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
    try:
        is_acquired = connection.execute(
            sa.select(sa.func.pg_try_advisory_lock(_hash_lock_id(schema, "run")))
        ).scalar_one()
    except BaseException:
        connection.close()
        raise
    if is_acquired:
        return connection
    connection.close()
    return None


@lru_cache(maxsize=8)
def _get_lock_engine(url: str, _purpose: str = "write") -> sa.Engine:
    """Return an engine that is kept, as connecting takes longer than most locks last."""
    return _create_engine(url, f"-clock_timeout={_LOCK_TIMEOUT_SECONDS}s")


def _hash_lock_id(schema: str, purpose: str) -> int:
    """Hash a schema and a purpose to the 64-bit number of an advisory lock."""
    return int.from_bytes(hashlib.sha256(f"{schema} {purpose}".encode()).digest()[:8], signed=True)


def redact_url(url: str) -> str:
    """Return a database's address without its password and options."""
    return sa.make_url(url).set(query={}).render_as_string(hide_password=True)


def _create_engine(
    url: str, session_options: str, connect_args: dict[str, Any] | None = None, **pool_options: Any
) -> sa.Engine:
    """Create an engine that tests connections and keeps row values out of errors."""
    parsed_url = sa.make_url(url)
    url_options = parsed_url.query.get("options", "")
    try:
        import psycopg  # noqa: F401 - SQLAlchemy's own error is harder to understand
    except ModuleNotFoundError as error:
        raise UsageError(
            "psycopg, the driver for PostgreSQL, is not installed",
            code="DATABASE",
            remedy=f"Run {format_install_hint('postgresql')}.",
        ) from error
    return sa.create_engine(
        parsed_url.set(drivername="postgresql+psycopg").difference_update_query(["options"]),
        connect_args={
            "options": f"{url_options if isinstance(url_options, str) else ' '.join(url_options)} {session_options}".strip(),
            "connect_timeout": 10,
            "fallback_application_name": "evalkit",
            **(connect_args or {}),
        },
        pool_pre_ping=True,
        hide_parameters=True,
        # A page of the workbench needs one connection; a run's threads need more for a moment.
        **(pool_options or {"pool_size": 1, "max_overflow": 9, "pool_timeout": _LOCK_TIMEOUT_SECONDS}),
    )


def _lock_and_ensure_schema(connection: sa.Connection, schema: str, *, create_missing: bool) -> None:
    # Locked until the transaction ends; other folders' schemas wait as well, for a moment.
    connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_SCHEMA_LOCK_ID)))
    if has_schema(connection, schema):
        return
    if not create_missing:  # a new schema would be a second queue, so that a case could be claimed twice
        raise build_missing_schema_error(schema)
    connection.execute(sa.schema.CreateSchema(schema))


def build_missing_schema_error(schema: str) -> UsageError:
    """Build the error for a folder whose schema is not in the database."""
    return UsageError(
        f"the schema {schema} of this output folder is not in the configured database",
        code="DATABASE",
        remedy="Set the database that contains the schema, or restore the schema's dump. If the schema is lost, remove "
        "database.json and run `evalkit reindex`: claims, drafts, paid answers of language models and the view log are lost.",
    )


_SCHEMA_LOCK_ID = 0x6576616C  # "eval"
