"""A PostgreSQL database that several machines share: each output folder has a schema of its own in it.

The schema's name is drawn once and lies in the folder (``database.json``): it stays right when the folder is renamed or
mounted elsewhere, and says that claims are not to be looked for in ``evalkit.sqlite``. It holds no address and no password.
"""

from __future__ import annotations

import re
import secrets
from pathlib import Path

import sqlalchemy as sa

from evalkit.errors import StoreError, UsageError
from evalkit.store.files import Files
from evalkit.store.names import DATABASE
from evalkit.store.schema import upgrade

_SECONDS = 30
"""Another's lock, and a free connection, are waited for so long."""
_SCHEMA = re.compile(r"evalkit_[0-9a-f]{16}")


def schema_of(root: Path) -> str | None:
    """The folder's schema, once it has one. StoreError where ``database.json`` cannot be read."""
    files = Files(root)
    if not files.exists(DATABASE):
        return None
    name = files.read(DATABASE).get("schema")
    if not isinstance(name, str) or not _SCHEMA.fullmatch(name):
        raise StoreError(
            f"{DATABASE} names no schema", code="STORE-TORN", remedy="Restore it from a backup of the output folder."
        )
    return name


def opened(root: Path, url: str) -> sa.Engine:
    """The folder's schema in the newest version; made where there is none. StoreError, OSError, SQLAlchemyError."""
    name = schema_of(root)
    if name is None:
        reached(url)  # before the folder says that it belongs there
        join(root, drawn())
        name = str(schema_of(root))  # perhaps another process's, which was a moment earlier
    return of_schema(name, url)


def of_schema(name: str, url: str) -> sa.Engine:
    """The schema of that name; made, or brought to the newest version, where need be. StoreError, SQLAlchemyError."""
    engine = _engine(url, f"-csearch_path={name} -clock_timeout={_SECONDS}s -csynchronous_commit=on")
    upgrade(engine, lambda connection: _make(connection, name))
    return engine


def drawn() -> str:
    """A name that no other folder's schema has."""
    return f"evalkit_{secrets.token_hex(8)}"


def join(root: Path, name: str) -> bool:
    """Write down that the folder's schema is that one. False, and nothing changed, where it has one."""
    return Files(root).create(DATABASE, {"schema_version": 1, "schema": name})


def reached(url: str) -> str:
    """The server's version, where it can be reached. SQLAlchemyError."""
    engine = _engine(url, "")
    try:
        with engine.connect() as connection:
            return str(connection.exec_driver_sql("SHOW server_version").scalar_one())
    finally:
        engine.dispose()


def shown(url: str) -> str:
    """The address, without a password."""
    parts = sa.make_url(url)
    return parts.set(query={}).render_as_string(hide_password=True)


def _engine(url: str, options: str) -> sa.Engine:
    """It asks whether a connection still lives before each use, and keeps values out of its errors."""
    parts = sa.make_url(url)
    given = parts.query.get("options", "")
    try:
        import psycopg  # noqa: F401 - SQLAlchemy would say that in a language of its own
    except ModuleNotFoundError as error:
        raise UsageError(
            "psycopg, by which PostgreSQL is reached, is not installed",
            code="DATABASE",
            remedy='Run `pip install "evalkit[postgresql]"`.',
        ) from error
    return sa.create_engine(
        parts.set(drivername="postgresql+psycopg").difference_update_query(["options"]),
        connect_args={
            "options": f"{given if isinstance(given, str) else ' '.join(given)} {options}".strip(),
            "connect_timeout": 10,
            "fallback_application_name": "evalkit",
        },
        # One page of the workbench needs one; a run's threads need more for a moment.
        pool_size=1,
        max_overflow=9,
        pool_timeout=_SECONDS,
        pool_pre_ping=True,
        hide_parameters=True,
    )


def _make(connection: sa.Connection, name: str) -> None:
    # Until the transaction ends; the schemas of other folders wait as well, for the moment that it takes.
    connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
    if name not in sa.inspect(connection).get_schema_names():
        connection.execute(sa.schema.CreateSchema(name))


_LOCK = 0x6576616C  # "eval"
