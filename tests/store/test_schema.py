"""Schemas: every file that an evalkit ever made is brought to the newest, once, whoever opens it at the same moment."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from review.racing import together
from servers.postgresql import PostgreSQLServer

from evalkit.errors import StoreError
from evalkit.store import Index, Moments, schema, tables
from evalkit.store.database import folded
from evalkit.store.postgresql import drawn, join, of_schema
from evalkit.store.sqlite import opened

UNNUMBERED = (Path(__file__).parent / "unnumbered.sql").read_text()
"""The tables as the last evalkit made them whose schema had no number."""
CAME = (
    ("TABLE claims", "TABLE drafts", "TABLE closings"),
    ("TABLE calls",),
    ("TABLE fresh",),
    (
        *("TABLE deferrals", "INDEX ix_cases_worst", "COLUMN closings.seconds_active"),
        *(f"COLUMN cases.{name}" for name in ("created_at", "dominant_type", "agents", "source", "is_blind", "barred")),
    ),
    ("COLUMN cases.shows",),
    (
        *("INDEX ix_cases_told", "INDEX ix_cases_listed"),
        *(f"COLUMN cases.{name}" for name in ("standing", "is_hidden", "told_severity", "told_type", "told_agents")),
    ),
)
"""What they came to have, one evalkit after the other."""
OLDER = range(len(CAME) + 1)


def made_by_an_older(folder: Path, generation: int) -> sqlite3.Connection:
    """The database of the evalkit that had so much of it."""
    connection = sqlite3.connect(folder / "evalkit.sqlite")
    connection.executescript("PRAGMA journal_mode=WAL;" + UNNUMBERED)
    for kind, _, name in (thing.partition(" ") for things in reversed(CAME[generation:]) for thing in things):
        table, _, column = name.partition(".")
        connection.execute(f"ALTER TABLE {table} DROP COLUMN {column}" if column else f"DROP {kind} {name}")
    return connection


AT = Moments("2025-01-03", "2025-01-02", "2025-01-01")
PROCESSES = 4


NUMBERED = range(1, schema.NEWEST)
_TOLD = {str: "Ünal {}".format, int: lambda _: 7, bool: lambda _: False, float: lambda _: 1.5}
"""By a column's kind what it is given."""


def held(connection: sa.Connection) -> dict[str, list[dict[str, Any]]]:
    """By table its rows."""
    return {
        table.name: [dict(row) for row in connection.execute(table.select()).mappings()] for table in of(connection)
    }


def of(connection: sa.Connection) -> list[sa.Table]:
    """The tables that hold something of somebody."""
    found = sa.MetaData()
    found.reflect(connection)
    return [table for table in found.sorted_tables if table.name != "alembic_version"]


def fill(connection: sa.Connection) -> None:
    """Put a row into each table."""
    for table in of(connection):
        given = [column for column in table.columns if column.computed is None]
        row = {column.name: _TOLD[column.type.python_type](column.name) for column in given}
        folds = {"folded_name": "ünal pdf_filename", "folded_id": "ünal case_id"}
        connection.execute(table.insert(), row | {name: text for name, text in folds.items() if name in row})


def is_kept(before: dict[str, list[dict[str, Any]]], after: dict[str, list[dict[str, Any]]]) -> bool:
    """Whether everything is still there that was; what nobody knew then may be there too."""
    return all(
        [{name: row[name] for name in kept[0]} for row in after[table]] == kept for table, kept in before.items()
    )


@pytest.fixture(params=[*(("unnumbered", one) for one in OLDER), *(("numbered", one) for one in NUMBERED)], ids=str)
def older(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder with the database of an old evalkit, and a row in each table."""
    kind, number = request.param
    if kind == "unnumbered":
        made_by_an_older(tmp_path, number).close()
    engine = plain(tmp_path)
    with engine.begin() as connection:
        if kind == "numbered":
            schema.migrate(connection, number)
        fill(connection)
    engine.dispose()
    return tmp_path


def plain(folder: Path) -> sa.Engine:
    """The file as it is: nothing is brought to anything."""
    return sa.create_engine(f"sqlite:///{folder / 'evalkit.sqlite'}")


def rows(folder: Path) -> dict[str, list[dict[str, Any]]]:
    engine = plain(folder)
    with engine.connect() as connection:
        found = held(connection)
    engine.dispose()
    return found


def number_of(folder: Path) -> int:
    engine = plain(folder)
    with engine.connect() as connection:
        found = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar_one()
    engine.dispose()
    return int(found)


def shape(engine: sa.Engine) -> dict[str, Any]:
    """What a database is made of, whatever the order of columns."""
    with engine.connect() as connection:
        found = sa.inspect(connection)
        return {
            table: (
                sorted(
                    (column["name"], str(column["type"]), column["nullable"]) for column in found.get_columns(table)
                ),
                found.get_pk_constraint(table)["constrained_columns"],
                sorted((index["name"], index["column_names"]) for index in found.get_indexes(table)),
            )
            for table in found.get_table_names()
            if table != "alembic_version"
        }


def test_what_an_older_file_held_is_still_there(older: Path) -> None:
    before = rows(older)
    Index(older).close()
    assert all(before.values())
    assert is_kept(before, rows(older))


@pytest.mark.parametrize("number", NUMBERED)
def test_what_an_older_schema_of_postgresql_held_is_still_there(number: int, postgresql: PostgreSQLServer) -> None:
    name = f"evalkit_{number:016x}"
    url = sa.make_url(postgresql.url).set(drivername="postgresql+psycopg")
    engine = sa.create_engine(url, connect_args={"options": f"-csearch_path={name}"})
    with engine.begin() as connection:
        connection.execute(sa.schema.CreateSchema(name))
        schema.migrate(connection, number)
        fill(connection)
        before = held(connection)
    of_schema(name, postgresql.url, make=True).dispose()
    with engine.connect() as connection:
        after = held(connection)
    assert all(before.values())
    assert is_kept(before, after)
    assert differences(engine) == []


def varied() -> list[dict[str, Any]]:
    """Cases as older evalkits wrote them, no two counted alike."""
    long = "".join(random.Random(3).choices("न漢éab", k=9000))
    plain = {
        "pdf_filename": "a.pdf",
        **dict.fromkeys(("pages", "blocker", "major", "minor"), 0),
        "review_reason": "escalated",
        "review_status": "pending",
        "kind": "classification",
        "created_at": "2025-01-01",
        "dominant_type": "Other",
        "agents": "V1,V4",
        "source": "embedded",
        "is_blind": False,
        "barred": "",
        "shows": "",
        "doc_id": "doc",
    }
    others: list[dict[str, Any]] = [
        {"created_at": None, "dominant_type": ""},
        {"dominant_type": "", "blocker": 1, "agents": ""},
        {"is_blind": True, "major": 1},
        {"is_blind": True, "major": 1, "review_status": "completed"},
        {"review_status": "deferred", "minor": 2, "kind": None, "review_reason": None},
        {"source": "one\x1ftwo", "dominant_type": "three\x1ffour"},
        {"pdf_filename": long, "source": long[:300], "dominant_type": long[300:600]},
    ]
    return [plain | one | {"case_id": f"case_{number}"} for number, one in enumerate(others)]


@pytest.mark.parametrize("number", NUMBERED)
@pytest.mark.parametrize("is_server", [False, True], ids=["sqlite", "postgresql"])
def test_the_cases_of_an_older_schema_are_counted_as_if_they_were_put_anew(
    is_server: bool, number: int, tmp_path: Path, postgresql: PostgreSQLServer
) -> None:
    url, engine = None, plain(tmp_path)
    if is_server:
        name, url = drawn(), postgresql.url
        join(tmp_path, name)
        parts = sa.make_url(url).set(drivername="postgresql+psycopg")
        engine = sa.create_engine(parts, connect_args={"options": f"-csearch_path={name}"})
    with engine.begin() as connection:
        if is_server:
            connection.execute(sa.schema.CreateSchema(name))
        schema.migrate(connection, number)
        cases = next(table for table in of(connection) if table.name == "cases")
        for row in varied():
            folds = {"folded_name": folded(row["pdf_filename"]), "folded_id": folded(row["case_id"])}
            connection.execute(cases.insert(), {key: value for key, value in (row | folds).items() if key in cases.c})
    engine.dispose()
    index = Index(tmp_path, url)
    upgraded = index.case_list.groups(AT, is_finished_shown=True)
    with index._database.statement() as connection:
        told = tables.cases.c.told.computed.sqltext
        assert connection.execute(sa.select(sa.func.count()).where(tables.cases.c.told == told)).scalar() == 7
    for row in varied():
        index.put_case(row)

    def comparable(groups: list[dict[str, Any]]) -> list[list[str]]:
        return sorted([str(value)[:40] for value in group.values()] for group in groups)

    assert comparable(index.case_list.groups(AT, is_finished_shown=True)) == comparable(upgraded)
    assert sum(group["count"] for group in upgraded) == 7
    index.close()


def test_an_older_file_becomes_what_a_new_one_is(older: Path, tmp_path: Path) -> None:
    new, old = opened(tmp_path / "new"), opened(older)
    assert shape(old) == shape(new)
    for engine in (new, old):
        engine.dispose()


def test_what_an_older_file_held_is_found_by_a_search(older: Path) -> None:
    index = Index(older)
    for search in ("ünal PDF", "U\u0308NAL CASE"):
        (row,) = index.case_list.page(
            AT, is_finished_shown=True, search=search, facets={}, order="name", limit=9, offset=0
        )
        assert row["case_id"] == "Ünal case_id"
        (group,) = index.case_list.groups(AT, is_finished_shown=True, search=search)
        assert (group["count"], group["kind"], group["severity"]) == (1, row["kind"], row["severity"])
    index.close()


@pytest.mark.parametrize("is_older", [False, True])
def test_processes_that_open_at_once_upgrade_once(is_older: bool, tmp_path: Path) -> None:
    with ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn")) as pool:
        for turn in range(5):
            folder = tmp_path / str(turn)
            folder.mkdir()
            if is_older:
                made_by_an_older(folder, turn).close()
            assert list(pool.map(opened_after, [folder] * PROCESSES)) == [schema.NEWEST] * PROCESSES


def opened_after(folder: Path) -> int:
    Index(folder).close()
    return number_of(folder)


def test_threads_that_open_an_older_file_at_once_upgrade_once(older: Path) -> None:
    opened = together(*(partial(Index, older) for _ in range(4)))
    assert [type(one) for one in opened] == [Index] * 4
    for one in opened:
        one.close()


def test_the_file_of_a_newer_evalkit_is_left_alone(tmp_path: Path) -> None:
    Index(tmp_path).close()
    with sqlite3.connect(tmp_path / "evalkit.sqlite") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '999'")
    connection.close()
    with pytest.raises(StoreError, match="schema 999") as refused:
        Index(tmp_path)
    assert refused.value.code == "STORE-NEWER"
    assert number_of(tmp_path) == 999


def test_the_newest_number_is_the_newest_revision() -> None:
    versions = Path(schema.__file__).parent / "migrations" / "versions"
    assert {path.name.partition("_")[0] for path in versions.glob("*.py")} == {
        f"v{number}" for number in range(1, schema.NEWEST + 1)
    }


def differences(engine: sa.Engine) -> list[Any]:
    """Between the database and ``tables``; what runs downwards in an index of SQLite cannot be read back.

    An index that only the other kind of database has is left out, unless it is there.
    """

    def is_compared(one: Any, name: str | None, kind: str, is_there: bool, _: Any) -> bool:
        if kind != "index":
            return True
        others = getattr(one, "_ddl_if", None)
        if others and others.dialect != engine.dialect.name:
            return is_there
        return not (engine.dialect.name == "sqlite" and name in {"ix_cases_worst", "ix_cases_listed"})

    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"include_object": is_compared})
        found = compare_metadata(context, tables.metadata)
    engine.dispose()
    return list(found)


@pytest.mark.filterwarnings("ignore:autogenerate skipping metadata-specified expression-based index")
def test_sqlite_is_migrated_to_what_the_tables_say(tmp_path: Path) -> None:
    assert differences(opened(tmp_path)) == []


def test_postgresql_is_migrated_to_what_the_tables_say(postgresql: PostgreSQLServer) -> None:
    assert differences(of_schema("evalkit_0123456789abcdef", postgresql.url, make=True)) == []


def test_opening_what_is_there_does_not_load_alembic(tmp_path: Path) -> None:
    Index(tmp_path).close()
    program = "import sys; from evalkit.store import Index; Index(sys.argv[1]).close(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program, tmp_path], capture_output=True, text=True, check=True)
    assert {"alembic", "psycopg", "mako", "sqlalchemy.dialects.postgresql"}.isdisjoint(done.stdout.split())
