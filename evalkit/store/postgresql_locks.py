"""Locks of an output folder in a bucket, by PostgreSQL's advisory locks."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import sqlalchemy as sa

from evalkit.errors import StoreError
from evalkit.store import postgresql
from evalkit.store.database import build_connection_error, get_driver_error_type_name, resolve_postgresql_url
from evalkit.store.output_folder import OutputFolder, build_run_lock_held_error

log = logging.getLogger(__name__)

_LockConnection = TypeVar("_LockConnection", sa.Connection, sa.Connection | None)


@dataclass
class PostgreSQLLocks:
    """Run lock and write locks of one output folder, by PostgreSQL.

    The folder's schema is looked up on first use.
    """

    _schema_and_url: tuple[str, str] | None = None

    @contextmanager
    def hold_run_lock(self, output_folder: OutputFolder) -> Iterator[None]:
        """Hold the folder's run lock. UsageError if another run holds it."""
        lock_connection = self._acquire_lock(output_folder, postgresql.try_connect_with_run_lock)
        if lock_connection is None:
            raise build_run_lock_held_error(output_folder.root)
        try:
            yield
        finally:
            _release_lock_or_warn(
                lock_connection, "during the run: check that no other run wrote to the output folder meanwhile"
            )

    @contextmanager
    def hold_write_lock(self, output_folder: OutputFolder, document_key: str | None) -> Iterator[None]:
        """Hold the write lock of one document or, without a key, of the whole folder."""
        lock_connection = self._acquire_lock(
            output_folder, partial(postgresql.connect_with_write_lock, document_key=document_key)
        )
        try:
            yield
        finally:
            _release_lock_or_warn(
                lock_connection,
                "while files were written: run `evalkit reindex`, which rewrites the files derived from reviews",
            )

    def _acquire_lock(
        self, output_folder: OutputFolder, acquire: Callable[[str, str], _LockConnection]
    ) -> _LockConnection:
        if self._schema_and_url is None:
            self._schema_and_url = _ensure_schema_and_get_url(output_folder)
        schema, url = self._schema_and_url
        try:
            return acquire(schema, url)
        except sa.exc.SQLAlchemyError as error:
            if get_driver_error_type_name(error) == "LockNotAvailable":
                raise StoreError(
                    f"other processes have held the write lock of {output_folder.root} for too long",
                    code="STORE-BUSY",
                    remedy="Nothing was saved: try again, and check that no evalkit process hangs.",
                ) from None
            raise build_connection_error(url, error) from None


def _ensure_schema_and_get_url(output_folder: OutputFolder) -> tuple[str, str]:
    url = resolve_postgresql_url(output_folder)
    assert url is not None  # noqa: S101 - a bucket without PostgreSQL is refused
    try:
        return postgresql.ensure_schema(output_folder, url), url
    except sa.exc.SQLAlchemyError as error:
        raise build_connection_error(url, error) from None


def _release_lock_or_warn(lock_connection: sa.Connection, lost_lock_warning: str) -> None:
    """Release a lock; warn if it was lost earlier, so that others may have written."""
    try:
        lock_connection.exec_driver_sql("SELECT 1")
    except sa.exc.SQLAlchemyError:
        log.warning("the connection to the database was lost %s", lost_lock_warning)
    with suppress(sa.exc.SQLAlchemyError):
        lock_connection.close()
