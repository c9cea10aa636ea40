"""The schema of a database: its number, and the way from an older one. Alembic is loaded only where there is a way to go."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path

import sqlalchemy as sa

from evalkit.errors import StoreError

#: The newest of ``migrations/versions``.
NEWEST = 6
_ONE_AT_A_TIME = threading.Lock()
"""Alembic keeps what it is about in its modules, for all threads."""
_VERSIONS = sa.table("alembic_version", sa.column("version_num"))


def upgrade(engine: sa.Engine, alone: Callable[[sa.Connection], object]) -> None:
    """Bring the database to the newest schema; one that has it is only asked for its number.

    ``alone`` begins what only one process at a time may do, in the connection's transaction: of several that open an
    older database, one upgrades it. StoreError where a newer evalkit has made it; SQLAlchemyError.
    """
    with engine.connect() as connection:
        if _number(connection) == NEWEST:
            return
    with engine.begin() as connection:
        alone(connection)
        if known_number(connection) < NEWEST:
            migrate(connection, NEWEST)


def known_number(connection: sa.Connection) -> int:
    """The schema's number. StoreError where a newer evalkit has made it; SQLAlchemyError."""
    found = _number(connection)
    if found > NEWEST:
        raise StoreError(
            f"the database has schema {found}; this evalkit knows up to {NEWEST}",
            code="STORE-NEWER",
            remedy="Install the evalkit that made it.",
        )
    return found


def _number(connection: sa.Connection) -> int:
    """0 where nobody has numbered it: it is empty, or the file of an old evalkit."""
    if not sa.inspect(connection).has_table(_VERSIONS.name):
        return 0
    return int(connection.execute(sa.select(_VERSIONS.c.version_num)).scalar_one())


def migrate(connection: sa.Connection, number: int) -> None:
    """Bring the database to the schema of that number, which is newer than what it has. SQLAlchemyError."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    logging.getLogger("alembic").setLevel(logging.WARNING)  # each step of a new folder's is no news
    with _ONE_AT_A_TIME:
        command.upgrade(config, str(number))
