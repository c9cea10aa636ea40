"""What is called saved outlives a power cut, on each database."""

from pathlib import Path

import pytest
from places import open_index
from servers.postgresql import PostgreSQLServer, programs


def test_sqlite_syncs_every_write(tmp_path: Path) -> None:
    index = open_index(tmp_path)
    with index.claims._database._engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar() >= 5000
    index.close()


@pytest.mark.skipif(programs() is None, reason="Debian's postgresql is not installed")
def test_postgresql_syncs_every_write_whatever_its_default_is(tmp_path: Path) -> None:
    server = PostgreSQLServer()
    server.execute("ALTER DATABASE evalkit SET synchronous_commit = off")
    index = open_index(tmp_path, server.url)
    for database in (index.claims._database._engine, index.claims._database._autocommit_engine):
        with database.connect() as connection:
            assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == "on"
            assert connection.exec_driver_sql("SHOW lock_timeout").scalar() == "30s"
    index.close()
    server.remove()
