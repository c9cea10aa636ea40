"""The schema: made once, whoever opens a new database at the same moment; one of another evalkit is refused by name."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import pytest
import sqlalchemy as sa
from places import open_index
from review.racing import run_together
from servers.postgresql import PostgreSQLServer

from evalkit.errors import StoreError
from evalkit.store import OutputIndex, database_tables, schema_version
from evalkit.store.postgresql import open_schema_engine
from evalkit.store.sqlite import open_or_create_sqlite_engine

PROCESSES = 4


def open_and_close(folder: Path) -> int:
    open_index(folder).close()
    return stored_number(folder)


def stored_number(folder: Path) -> int:
    with sqlite3.connect(folder / "evalkit.sqlite") as connection:
        return int(connection.execute("SELECT number FROM schema_number").fetchone()[0])


def create_version_1(folder: Path) -> None:
    """The database of an evalkit of version 1: cases of each kind, and a deferral."""
    with sqlite3.connect(folder / "evalkit.sqlite") as connection:
        connection.executescript((Path(__file__).parent / "version_1.sql").read_text())
        connection.execute("INSERT INTO schema_number VALUES (1)")
        for case_id, kind, document_type in (
            ("a", "classification", "Other"),
            ("b.extraction", "extraction", "W-2"),
            ("c.extraction", "extraction", "Pathology Report"),
            ("d.statement_template", "statement_template", ""),
        ):
            connection.execute(
                "INSERT INTO cases (case_id, doc_id, kind, review_status, dominant_type) VALUES (?, ?, ?, 'pending', ?)",
                (case_id, case_id[0], kind, document_type),
            )
        connection.execute("INSERT INTO deferrals VALUES ('a', 'dr_lee', 'ask the ward', '2026-11-27T08:00:00Z')")
    connection.close()


def read_tasks_and_reasons(folder: Path) -> tuple[list[tuple[str, str]], list[tuple[str]]]:
    with closing(sqlite3.connect(folder / "evalkit.sqlite")) as connection:
        tasks = connection.execute("SELECT case_id, task FROM cases ORDER BY case_id").fetchall()
        return tasks, connection.execute("SELECT reason FROM deferrals").fetchall()


#: The tasks that version 1 did not have, and the reasons for deferrals that it had.
MIGRATED = (
    [("a", "clinical"), ("b.extraction", "tax"), ("c.extraction", "clinical"), ("d.statement_template", "bank")],
    [("ask the ward",)],
)


@pytest.mark.parametrize(("is_older", "rows"), [(False, ([], [])), (True, MIGRATED)])
def test_processes_that_open_at_once_make_the_tables_once(tmp_path: Path, is_older: bool, rows: object) -> None:
    with ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn")) as pool:
        for turn in range(5):
            folder = tmp_path / str(turn)
            folder.mkdir()
            if is_older:
                create_version_1(folder)
            assert list(pool.map(open_and_close, [folder] * PROCESSES)) == [schema_version.SCHEMA_NUMBER] * PROCESSES
            assert read_tasks_and_reasons(folder) == rows


def test_threads_that_open_at_once_make_the_tables_once(tmp_path: Path) -> None:
    indexes = run_together(*(partial(open_index, tmp_path) for _ in range(4)))
    assert [type(index) for index in indexes] == [OutputIndex] * 4
    for index in indexes:
        index.close()


def test_another_evalkits_file_is_left_alone(tmp_path: Path) -> None:
    open_index(tmp_path).close()
    with sqlite3.connect(tmp_path / "evalkit.sqlite") as connection:
        connection.execute("UPDATE schema_number SET number = 999")
    connection.close()
    with pytest.raises(StoreError, match="version 999") as refused:
        open_index(tmp_path)
    assert refused.value.code == "STORE-NEWER"
    assert stored_number(tmp_path) == 999


def table_names(engine: sa.Engine) -> set[str]:
    with engine.connect() as connection:
        names = set(sa.inspect(connection).get_table_names())
    engine.dispose()
    return names


def test_both_databases_have_every_table(tmp_path: Path, postgresql: PostgreSQLServer) -> None:
    expected = {*database_tables.metadata.tables, "schema_number"}
    assert table_names(open_or_create_sqlite_engine(tmp_path)) == expected
    assert table_names(open_schema_engine("evalkit_0123456789abcdef", postgresql.url, create_missing=True)) == expected


def test_opening_sqlite_loads_nothing_of_a_server(tmp_path: Path) -> None:
    program = "import sys; from evalkit.store import OutputIndex, open_output_folder; OutputIndex(open_output_folder(sys.argv[1])).close(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program, tmp_path], capture_output=True, text=True, check=True)
    assert {"psycopg", "sqlalchemy.dialects.postgresql"}.isdisjoint(done.stdout.split())


def test_version_1_keeps_every_row_and_gets_tasks(tmp_path: Path) -> None:
    create_version_1(tmp_path)
    assert open_and_close(tmp_path) == schema_version.SCHEMA_NUMBER
    assert read_tasks_and_reasons(tmp_path) == MIGRATED
