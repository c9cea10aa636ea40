"""A PostgreSQL database that several machines share: each output folder has a schema of its own in it.

The schema's name is drawn once and lies in the folder (``database.json``): it stays right when the folder is renamed or
mounted elsewhere, and says that claims are not to be looked for in ``evalkit.sqlite``. It holds no address and no password.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from functools import lru_cache
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from evalkit.errors import NotFound, StoreError, UsageError
from evalkit.extras import installing
from evalkit.store.files import Files
from evalkit.store.names import DATABASE
from evalkit.store.schema import prepare_schema

_SECONDS = 30
"""Another's lock, and a free connection, are waited for so long."""
_SCHEMA = re.compile(r"evalkit_[0-9a-f]{16}")


def schema_of(root: Path | str) -> str | None:
    """The folder's schema, once it has one. StoreError where ``database.json`` cannot be read."""
    try:
        name = Files(root).read(DATABASE).get("schema")
    except NotFound:
        return None
    if not isinstance(name, str) or not _SCHEMA.fullmatch(name):
        raise StoreError(
            f"{DATABASE} names no schema", code="STORE-TORN", remedy="Restore it from a backup of the output folder."
        )
    return name


def opened(root: Path | str, url: str) -> sa.Engine:
    """The folder's schema in the newest version; made where the folder has none.

    UsageError where the folder's schema is not in this database; StoreError, OSError, SQLAlchemyError.
    """
    return of_schema(joined(root, url), url)


def joined(root: Path | str, url: str) -> str:
    """The name of the folder's schema; drawn, and the schema made, where it has none. StoreError, SQLAlchemyError."""
    name = schema_of(root)
    if name is None:
        name = drawn()
        made = of_schema(name, url, make=True)  # before the folder says that it belongs there
        try:
            if not join(root, name):  # another process was a moment earlier
                drop(made, name)
                name = str(schema_of(root))
        finally:
            made.dispose()
    return name


def drop(engine: sa.Engine, name: str) -> None:
    """Remove a schema with all that is in it. SQLAlchemyError."""
    with engine.begin() as connection:
        connection.execute(sa.schema.DropSchema(name, cascade=True))


def is_in(connection: sa.Connection, name: str) -> bool:
    """Whether the database has the schema of that name."""
    return name in sa.inspect(connection).get_schema_names()


def of_schema(name: str, url: str, *, make: bool = False) -> sa.Engine:
    """The schema of that name, brought to the newest version where need be, and made only if told so.

    UsageError where it is not there; StoreError, SQLAlchemyError.
    """
    settings = f"-csearch_path={name} -clock_timeout={_SECONDS}s -csynchronous_commit=on"
    # To start processes of its own for a look at the queue takes longer than they save; and a plan for any values at all
    # expects a third of the rows where a search finds most of them.
    planning = "-cmax_parallel_workers_per_gather=0 -cplan_cache_mode=force_custom_plan"
    engine = _engine(url, f"{settings} {planning}")
    prepare_schema(engine, lambda connection: _take(connection, name, make=make))
    return engine


def drawn() -> str:
    """A name that no other folder's schema has."""
    return f"evalkit_{secrets.token_hex(8)}"


def join(root: Path | str, name: str) -> bool:
    """Write down that the folder's schema is that one. False, and nothing changed, where it has one."""
    return Files(root).create(DATABASE, {"schema_version": 1, "schema": name})


def reached(url: str, name: str | None) -> str:
    """The server's version, where it can be reached, and has the schema of that name, or lets one be made.

    UsageError, StoreError, SQLAlchemyError.
    """
    engine = _engine(url, "")
    try:
        with engine.connect() as connection:
            if name and not is_in(connection, name):
                raise absent(name)
            may_make = sa.func.has_database_privilege(sa.func.current_database(), "CREATE")
            if not name and not connection.execute(sa.select(may_make)).scalar_one():
                raise StoreError(
                    f"the database {shown(url)} lets this user make no schema",
                    code="STORE-INDEX",
                    remedy="As its owner: GRANT CREATE ON DATABASE NAME TO USER.",
                )
            return str(connection.exec_driver_sql("SHOW server_version").scalar_one())
    finally:
        engine.dispose()


def turn_of(name: str, url: str, *, about: str | None) -> sa.Connection:
    """A connection that has the turn of whoever works with that schema, or with one thing in it, once it is free.

    It ends with the connection's transaction, or with its process. SQLAlchemyError.
    """
    connection = _turns(url).connect()
    try:
        if about is None:
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_number(name, "turn"))))
        else:
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock_shared(_number(name, "turn"))))
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_number(name, f"turn {about}"))))
    except BaseException:
        connection.close()
        raise
    return connection


def run_of(name: str, url: str) -> sa.Connection | None:
    """A connection that has the one run there may be with that schema, until it is closed; None where another has it.

    SQLAlchemyError.
    """
    # It says nothing for as long as the run takes: who stands between would forget it.
    kept = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 6}
    engine = _engine(url, "", connect_args=kept, poolclass=sa.NullPool)
    connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
    try:
        is_ours = connection.execute(sa.select(sa.func.pg_try_advisory_lock(_number(name, "run")))).scalar_one()
    except BaseException:
        connection.close()
        raise
    if is_ours:
        return connection
    connection.close()
    return None


@lru_cache(maxsize=8)
def _turns(url: str) -> sa.Engine:
    """One for the process: to connect anew for each turn would take longer than most turns."""
    return _engine(url, f"-clock_timeout={_SECONDS}s")


def _number(name: str, what: str) -> int:
    """PostgreSQL's advisory locks are numbers of 64 bits."""
    return int.from_bytes(hashlib.sha256(f"{name} {what}".encode()).digest()[:8], signed=True)


def shown(url: str) -> str:
    """The address, without a password."""
    parts = sa.make_url(url)
    return parts.set(query={}).render_as_string(hide_password=True)


def _engine(url: str, options: str, connect_args: dict[str, Any] | None = None, **pool: Any) -> sa.Engine:
    """It asks whether a connection still lives before each use, and keeps values out of its errors."""
    parts = sa.make_url(url)
    given = parts.query.get("options", "")
    try:
        import psycopg  # noqa: F401 - SQLAlchemy would say that in a language of its own
    except ModuleNotFoundError as error:
        raise UsageError(
            "psycopg, by which PostgreSQL is reached, is not installed",
            code="DATABASE",
            remedy=f"Run {installing('postgresql')}.",
        ) from error
    return sa.create_engine(
        parts.set(drivername="postgresql+psycopg").difference_update_query(["options"]),
        connect_args={
            "options": f"{given if isinstance(given, str) else ' '.join(given)} {options}".strip(),
            "connect_timeout": 10,
            "fallback_application_name": "evalkit",
            **(connect_args or {}),
        },
        pool_pre_ping=True,
        hide_parameters=True,
        # One page of the workbench needs one; a run's threads need more for a moment.
        **(pool or {"pool_size": 1, "max_overflow": 9, "pool_timeout": _SECONDS}),
    )


def _take(connection: sa.Connection, name: str, *, make: bool) -> None:
    # Until the transaction ends; the schemas of other folders wait as well, for the moment that it takes.
    connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
    if is_in(connection, name):
        return
    if not make:  # made anew it would be a second queue: a case could be claimed in each
        raise absent(name)
    connection.execute(sa.schema.CreateSchema(name))


def absent(name: str) -> UsageError:
    """A folder belongs to a schema that the database which is set does not have."""
    return UsageError(
        f"the schema {name} of this output folder is not in the database that is set",
        code="DATABASE",
        remedy="Set the database that it is in, or restore its dump there. If it is lost for good, remove database.json and "
        "run `evalkit reindex`: claims, drafts, the paid answers of language models and the view log are lost with it.",
    )


_LOCK = 0x6576616C  # "eval"
