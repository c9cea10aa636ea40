"""A PostgreSQL database that several machines share: each output folder has a schema of its own in it.

The schema's name is drawn once and lies in the folder (``database.json``): it stays right when the folder is renamed or
mounted elsewhere, and says that claims are not to be looked for in ``evalkit.sqlite``. It holds no address and no password.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from functools import lru_cache
from typing import Any

import sqlalchemy as sa

from evalkit.core.install_hint import format_install_hint
from evalkit.errors import NotFound, StoreError, UsageError
from evalkit.store.file_names import DATABASE_SCHEMA_FILE
from evalkit.store.output_folder import OutputFolder
from evalkit.store.schema_version import create_or_verify_tables

_LOCK_TIMEOUT_SECONDS = 30
"""Another's lock, and a free connection, are waited for so long."""
_SCHEMA_NAME_PATTERN = re.compile(r"evalkit_[0-9a-f]{16}")


def read_schema_name(output_folder: OutputFolder) -> str | None:
    """The folder's schema, once it has one. StoreError where ``database.json`` cannot be read."""
    try:
        schema = output_folder.read_json(DATABASE_SCHEMA_FILE).get("schema")
    except NotFound:
        return None
    if not isinstance(schema, str) or not _SCHEMA_NAME_PATTERN.fullmatch(schema):
        raise StoreError(
            f"{DATABASE_SCHEMA_FILE} names no schema",
            code="STORE-TORN",
            remedy="Restore it from a backup of the output folder.",
        )
    return schema


def open_or_create_schema_engine(output_folder: OutputFolder, url: str) -> sa.Engine:
    """The folder's schema in the newest version; made where the folder has none.

    UsageError where the folder's schema is not in this database; StoreError, OSError, SQLAlchemyError.
    """
    return open_schema_engine(ensure_schema(output_folder, url), url)


def ensure_schema(output_folder: OutputFolder, url: str) -> str:
    """The name of the folder's schema; drawn, and the schema made, where it has none. StoreError, SQLAlchemyError."""
    schema = read_schema_name(output_folder)
    if schema is None:
        schema = generate_schema_name()
        new_engine = open_schema_engine(
            schema, url, create_missing=True
        )  # before the folder says that it belongs there
        try:
            if not try_record_schema_name(output_folder, schema):  # another process was a moment earlier
                drop_schema(new_engine, schema)
                schema = str(read_schema_name(output_folder))
        finally:
            new_engine.dispose()
    return schema


def drop_schema(engine: sa.Engine, schema: str) -> None:
    """Remove a schema with all that is in it. SQLAlchemyError."""
    with engine.begin() as connection:
        connection.execute(sa.schema.DropSchema(schema, cascade=True))


def has_schema(connection: sa.Connection, schema: str) -> bool:
    """Whether the database has the schema of that name."""
    return schema in sa.inspect(connection).get_schema_names()


def open_schema_engine(schema: str, url: str, *, create_missing: bool = False) -> sa.Engine:
    """The schema of that name, brought to the newest version where need be, and made only if told so.

    UsageError where it is not there; StoreError, SQLAlchemyError.
    """
    session_options = f"-csearch_path={schema} -clock_timeout={_LOCK_TIMEOUT_SECONDS}s -csynchronous_commit=on"
    # To start processes of its own for a look at the queue takes longer than they save; and a plan for any values at all
    # expects a third of the rows where a search finds most of them.
    planner_options = "-cmax_parallel_workers_per_gather=0 -cplan_cache_mode=force_custom_plan"
    engine = _create_engine(url, f"{session_options} {planner_options}")
    create_or_verify_tables(
        engine, lambda connection: _lock_and_ensure_schema(connection, schema, create_missing=create_missing)
    )
    return engine


def generate_schema_name() -> str:
    """A name that no other folder's schema has."""
    return f"evalkit_{secrets.token_hex(8)}"


def try_record_schema_name(output_folder: OutputFolder, schema: str) -> bool:
    """Write down that the folder's schema is that one. False, and nothing changed, where it has one."""
    return output_folder.create_json_if_absent(DATABASE_SCHEMA_FILE, {"schema_version": 1, "schema": schema})


def check_server_and_get_version(url: str, schema: str | None) -> str:
    """The server's version, where it can be reached, and has the schema of that name, or lets one be made.

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
                    f"the database {redact_url(url)} lets this user make no schema",
                    code="STORE-INDEX",
                    remedy="As its owner: GRANT CREATE ON DATABASE NAME TO USER.",
                )
            return str(connection.exec_driver_sql("SHOW server_version").scalar_one())
    finally:
        engine.dispose()


def connect_with_write_lock(schema: str, url: str, *, document_key: str | None) -> sa.Connection:
    """A connection that has the turn of whoever works with that schema, or with one thing in it, once it is free.

    It ends with the connection's transaction, or with its process. SQLAlchemyError.
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


def try_connect_with_run_lock(schema: str, url: str) -> sa.Connection | None:
    """A connection that has the one run there may be with that schema, until it is closed; None where another has it.

    SQLAlchemyError.
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
def _get_lock_engine(url: str) -> sa.Engine:
    """One for the process: to connect anew for each turn would take longer than most turns."""
    return _create_engine(url, f"-clock_timeout={_LOCK_TIMEOUT_SECONDS}s")


def _hash_lock_id(schema: str, purpose: str) -> int:
    """PostgreSQL's advisory locks are numbers of 64 bits."""
    return int.from_bytes(hashlib.sha256(f"{schema} {purpose}".encode()).digest()[:8], signed=True)


def redact_url(url: str) -> str:
    """The address, without a password."""
    parsed_url = sa.make_url(url)
    return parsed_url.set(query={}).render_as_string(hide_password=True)


def _create_engine(
    url: str, session_options: str, connect_args: dict[str, Any] | None = None, **pool_options: Any
) -> sa.Engine:
    """It asks whether a connection still lives before each use, and keeps values out of its errors."""
    parsed_url = sa.make_url(url)
    url_options = parsed_url.query.get("options", "")
    try:
        import psycopg  # noqa: F401 - SQLAlchemy would say that in a language of its own
    except ModuleNotFoundError as error:
        raise UsageError(
            "psycopg, by which PostgreSQL is reached, is not installed",
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
        # One page of the workbench needs one; a run's threads need more for a moment.
        **(pool_options or {"pool_size": 1, "max_overflow": 9, "pool_timeout": _LOCK_TIMEOUT_SECONDS}),
    )


def _lock_and_ensure_schema(connection: sa.Connection, schema: str, *, create_missing: bool) -> None:
    # Until the transaction ends; the schemas of other folders wait as well, for the moment that it takes.
    connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_SCHEMA_LOCK_ID)))
    if has_schema(connection, schema):
        return
    if not create_missing:  # made anew it would be a second queue: a case could be claimed in each
        raise build_missing_schema_error(schema)
    connection.execute(sa.schema.CreateSchema(schema))


def build_missing_schema_error(schema: str) -> UsageError:
    """A folder belongs to a schema that the database which is set does not have."""
    return UsageError(
        f"the schema {schema} of this output folder is not in the database that is set",
        code="DATABASE",
        remedy="Set the database that it is in, or restore its dump there. If it is lost for good, remove database.json and "
        "run `evalkit reindex`: claims, drafts, the paid answers of language models and the view log are lost with it.",
    )


_SCHEMA_LOCK_ID = 0x6576616C  # "eval"
