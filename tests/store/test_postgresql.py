"""PostgreSQL: what SQLite has no counterpart of. All else is tested on both, by the fixture ``database``."""

from __future__ import annotations

import json
import logging
import sqlite3
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from commands import evalkit_command
from patience import SECONDS, eventually
from places import open_folder, open_index
from review.racing import run_together
from servers.postgresql import PASSWORD, PostgreSQLServer, programs

from evalkit.doctor import run_doctor_checks
from evalkit.errors import EvalkitError, StoreError, UsageError
from evalkit.review.index_rebuild import reindex
from evalkit.settings import Settings
from evalkit.store import CaseAgeCutoffs, CaseClaim, ModelCall, OutputIndex, StoredDraft, open_output_folder, postgresql
from evalkit.store.database import check_and_describe_database, resolve_postgresql_url

PATIENT = "John Doe, born 1950"
NOW, LATER = "2025-01-02T00:00:00+00:00", "2025-01-02T00:15:00+00:00"
OTHER = PASSWORD[::-1]
SECRETS = (PASSWORD, "p@ss:word")


@pytest.fixture
def url(postgresql: PostgreSQLServer, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("EVALKIT_DATABASE", postgresql.url)
    return postgresql.url


@pytest.fixture
def index(url: str, tmp_path: Path) -> Iterator[OutputIndex]:
    made = open_index(tmp_path / "output")
    yield made
    made.close()


@pytest.fixture
def own() -> Iterator[PostgreSQLServer]:
    """A server that the test may stop."""
    if programs() is None:
        pytest.skip("Debian's postgresql is not installed")
    server = PostgreSQLServer()
    yield server
    server.remove()


def schema(folder: Path) -> str:
    found = postgresql.read_schema_name(open_folder(folder))
    assert found is not None
    return found


def draft(case_id: str = "a") -> StoredDraft:
    return StoredDraft(case_id, "dr_lee", "tab", "0" * 64, json.dumps({"notes": PATIENT}), NOW)


def told(error: BaseException) -> str:
    return f"{error!r} {error} " + "".join(traceback.format_exception(error))


# --- which database ------------------------------------------------------------------------------------------------


def test_folders_in_one_database_do_not_mix(url: str, tmp_path: Path) -> None:
    one, other = open_index(tmp_path / "one"), open_index(tmp_path / "other")
    one.upsert_case({"case_id": "a", "review_status": "pending"})
    one.claims.acquire_or_get_live_claim(CaseClaim("a", "dr_lee", "tab", NOW, LATER), now=NOW)
    assert other.list_cases_worst_first() == []
    assert other.claims.map_live_claims_by_case_id(NOW) == {}
    one.close()
    other.close()


def test_a_folder_may_be_renamed(url: str, tmp_path: Path) -> None:
    index = open_index(tmp_path / "one")
    index.upsert_case({"case_id": "a", "review_status": "pending"})
    index.close()
    (tmp_path / "one").rename(tmp_path / "other")
    index = open_index(tmp_path / "other")
    assert [row["case_id"] for row in index.list_cases_worst_first()] == ["a"]
    index.close()


def test_threads_that_open_a_new_folder_at_once_share_one_schema(url: str, tmp_path: Path) -> None:
    for turn in range(5):
        opened = run_together(*(lambda turn=turn: open_index(tmp_path / str(turn)) for _ in range(4)))
        assert [type(one) for one in opened] == [OutputIndex] * 4
        opened[0].upsert_case({"case_id": "a", "review_status": "pending"})
        for one in opened:
            assert [row["case_id"] for row in one.list_cases_worst_first()] == ["a"]
            one.close()


def test_no_file_of_the_folder_holds_the_address(index: OutputIndex, tmp_path: Path) -> None:
    files = {path.name: path.read_text() for path in (tmp_path / "output").rglob("*") if path.is_file()}
    assert set(files) == {"database.json"}
    assert set(json.loads(files["database.json"])) == {"schema_version", "schema"}


def test_a_folder_in_postgresql_is_not_opened_without_it(
    index: OutputIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EVALKIT_DATABASE")
    with pytest.raises(UsageError, match="Set EVALKIT_DATABASE"):
        open_index(tmp_path / "output")
    assert not (tmp_path / "output" / "evalkit.sqlite").exists()


def test_a_folder_with_a_file_is_not_opened_in_postgresql(postgresql: PostgreSQLServer, tmp_path: Path) -> None:
    open_index(tmp_path).close()
    with pytest.raises(UsageError, match="move-database"):
        open_index(tmp_path, postgresql.url)
    assert not (tmp_path / "database.json").exists()


def test_a_torn_name_is_not_taken_for_a_schema(index: OutputIndex, tmp_path: Path) -> None:
    path = tmp_path / "output" / "database.json"
    path.write_text(json.dumps({"schema_version": 1, "schema": "public -cfsync=off"}))
    with pytest.raises(StoreError, match=r"database\.json does not name a valid database schema"):
        open_index(tmp_path / "output")


@pytest.mark.parametrize("wrong", ["sqlite:///x", "mysql://u:hidden@h/d", "hidden", ""])
def test_other_databases_are_refused_without_being_quoted(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALKIT_DATABASE", wrong)
    with pytest.raises(UsageError, match="setting database") as refused:
        Settings.load()
    assert "hidden" not in told(refused.value)


@pytest.mark.parametrize("name", ["EVALKIT_DATABASE", "evalkit_database", None])
def test_a_database_is_found_wherever_it_is_set(
    name: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EVALKIT_DATABASE", raising=False)
    assert Settings.load().database is None
    if name:
        monkeypatch.setenv(name, "postgresql://db/evalkit")
    else:
        Path("evalkit.toml").write_text('database = "postgresql://db/evalkit"')
    assert Settings.load().database == "postgresql://db/evalkit"


def test_the_password_is_not_shown(url: str) -> None:
    settings = Settings.load()
    assert settings.database == url
    assert not any(secret in repr(settings) for secret in SECRETS)


# --- what can go wrong ---------------------------------------------------------------------------------------------


def test_a_server_that_is_not_there_is_said_without_the_password(own: PostgreSQLServer, tmp_path: Path) -> None:
    own.stop()
    began = time.monotonic()
    with pytest.raises(StoreError, match="cannot be opened") as refused:
        open_index(tmp_path, own.url)
    assert time.monotonic() - began < SECONDS
    assert refused.value.code == "STORE-INDEX"
    assert not any(secret in told(refused.value) for secret in SECRETS)
    assert not (tmp_path / "database.json").exists()
    own.start()


def test_a_folder_is_not_looked_for_in_another_database(own: PostgreSQLServer, tmp_path: Path) -> None:
    """Two queues, in each of which a case could be claimed; and a mere look must not make the second one."""
    output = tmp_path / "output"
    open_index(output, own.url).close()
    own.execute("CREATE DATABASE elsewhere OWNER evalkit")
    other = own.url.removesuffix("/evalkit") + "/elsewhere"
    for look in (OutputIndex, check_and_describe_database):
        with pytest.raises(UsageError, match="is not in the configured database") as refused:
            look(open_folder(output, other))
        assert not any(secret in told(refused.value) for secret in SECRETS)
    assert "evalkit_" not in own.execute("SELECT string_agg(nspname, ' ') FROM pg_namespace", "elsewhere")
    open_index(output, own.url).close()


def test_folder_is_not_bound_if_the_schema_cannot_be_created(own: PostgreSQLServer, tmp_path: Path) -> None:
    own.execute("CREATE DATABASE locked")
    locked = own.url.removesuffix("/evalkit") + "/locked"
    with pytest.raises(StoreError):
        open_index(tmp_path, locked)
    assert not (tmp_path / "database.json").exists()
    with pytest.raises(StoreError, match="does not let this user create a schema"):
        check_and_describe_database(open_folder(tmp_path, locked))
    open_index(tmp_path).close()


def test_of_two_that_make_the_schema_at_once_one_is_left(own: PostgreSQLServer, tmp_path: Path) -> None:
    schemas = "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'evalkit_%'"
    before = int(own.execute(schemas, "evalkit"))
    with ThreadPoolExecutor(4) as pool:
        names = {*pool.map(lambda _: postgresql.ensure_schema(open_folder(tmp_path), own.url), range(4))}
    assert len(names) == 1
    assert int(own.execute(schemas, "evalkit")) == before + 1


@pytest.mark.parametrize(
    "given", ["evalkit:p@s3cret@db/evalkit", "evalkit:p/s3cret@db/evalkit", "evalkit:s3cret@db:port/evalkit"]
)
def test_ambiguous_address_is_refused_and_not_repeated(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALKIT_DATABASE", f"postgresql://{given}")
    with pytest.raises(UsageError, match="write postgresql://USER@HOST:PORT/NAME") as refused:
        Settings.load()
    assert "s3cret" not in told(refused.value)


def test_a_driver_that_is_not_installed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(UsageError, match="make install EXTRAS=postgresql"):
        open_index(tmp_path, "postgresql://evalkit@127.0.0.1/evalkit")
    assert not (tmp_path / "database.json").exists()


def test_a_wrong_password_is_said_without_it(url: str, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be opened") as refused:
        open_index(tmp_path, url.replace(PASSWORD, OTHER))
    assert OTHER not in told(refused.value)


@pytest.mark.parametrize(
    ("address", "why", "remedy"),
    [
        ("postgresql://evalkit@127.0.0.1:{port}/evalkit", "no password was supplied", "~/.pgpass"),
        ("postgresql://evalkit:x@127.0.0.1:{port}/evalkit", "the password is wrong", "~/.pgpass"),
        ("postgresql://evalkit:{password}@127.0.0.1:{port}/other", "no such database", "createdb"),
        ("postgresql://nobody:x@127.0.0.1:{port}/evalkit", "does not allow this connection", "pg_hba.conf"),
        ("postgresql://evalkit@127.0.0.1:1/evalkit", "does not answer", "listens"),
    ],
)
def test_what_is_missing_is_said_with_what_mends_it(
    address: str, why: str, remedy: str, postgresql: PostgreSQLServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSFILE", "/nonexistent")
    given = address.format(port=postgresql.port, password=PASSWORD)
    with pytest.raises(StoreError, match=why) as refused:
        check_and_describe_database(open_folder(tmp_path, given))
    assert remedy in refused.value.remedy
    assert not any(secret in told(refused.value) for secret in SECRETS)


def test_a_server_that_was_restarted_is_simply_used_again(own: PostgreSQLServer, tmp_path: Path) -> None:
    index = open_index(tmp_path, own.url)
    index.drafts.save(draft())
    own.stop()
    with pytest.raises(StoreError, match="could not be read or written") as refused:
        index.drafts.save(draft("b"))
    assert PATIENT not in told(refused.value)
    own.start()
    index.drafts.save(draft("b"))
    assert index.drafts.find_newest_draft("a", "dr_lee", "tab") == draft()
    own.stop()
    own.start()
    index.drafts.save(draft("c"))  # nobody was told of the loss, as nobody had asked meanwhile
    index.close()


def test_connection_lost_in_a_transaction_saves_nothing(index: OutputIndex, postgresql: PostgreSQLServer) -> None:
    def lost() -> None:
        with index.batch_into_one_transaction():
            index.drafts.save(draft())
            postgresql.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'evalkit'")
            index.drafts.save(draft("b"))

    with pytest.raises(StoreError, match="could not be read or written"):
        lost()
    assert index.drafts.find_newest_draft("a", "dr_lee", "tab") is None
    index.drafts.save(draft())


def test_another_s_lock_is_not_waited_for_for_ever(
    index: OutputIndex, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgresql, "_LOCK_TIMEOUT_SECONDS", 1)
    impatient = open_index(tmp_path / "output")
    holds, done = threading.Event(), threading.Event()

    def hold() -> None:
        with index.batch_into_one_transaction():
            index.claims.acquire_or_get_live_claim(CaseClaim("a", "dr_lee", "tab", NOW, LATER), now=NOW)
            holds.set()
            done.wait(SECONDS)

    holder = threading.Thread(target=hold)
    holder.start()
    holds.wait(SECONDS)
    began = time.monotonic()
    with pytest.raises(StoreError, match="LockNotAvailable"):
        impatient.claims.acquire_or_get_live_claim(CaseClaim("a", "dr_kim", "tab", NOW, LATER), now=NOW)
    assert 0.9 < time.monotonic() - began < SECONDS
    done.set()
    holder.join()
    assert (
        impatient.claims.acquire_or_get_live_claim(CaseClaim("a", "dr_kim", "tab", NOW, LATER), now=NOW).reviewer
        == "dr_lee"
    )
    impatient.close()


def test_a_row_that_is_refused_is_not_quoted(index: OutputIndex, postgresql: PostgreSQLServer, tmp_path: Path) -> None:
    name = schema(tmp_path / "output")
    postgresql.execute(f"ALTER TABLE {name}.drafts ADD CHECK (case_id <> 'a')", "evalkit")
    with pytest.raises(EvalkitError, match="CheckViolation") as refused:
        index.drafts.save(draft())
    assert PATIENT not in told(refused.value)


def somebody_waits(server: PostgreSQLServer) -> bool:
    """Whether a transaction waits for what another one holds."""
    return server.execute("SELECT count(*) FROM pg_locks WHERE NOT granted") != "0"


def test_claim_acquired_by_another_transaction_is_kept(
    index: OutputIndex, postgresql: PostgreSQLServer, tmp_path: Path
) -> None:
    """Compared with what stands when the other has committed, not with what stood when the statement began."""
    other = open_index(tmp_path / "output")
    old = CaseClaim("a", "dr_old", "tab", "2025-01-01T00:00:00+00:00", NOW)
    index.claims.acquire_or_get_live_claim(old, now="2025-01-01T00:00:00+00:00")
    holds = threading.Event()
    got: list[CaseClaim] = []

    def take() -> None:
        holds.wait(SECONDS)
        got.append(other.claims.acquire_or_get_live_claim(CaseClaim("a", "dr_kim", "tab", NOW, LATER), now=NOW))

    waiting = threading.Thread(target=take)
    waiting.start()
    with index.batch_into_one_transaction():
        assert (
            index.claims.acquire_or_get_live_claim(CaseClaim("a", "dr_lee", "tab", NOW, LATER), now=NOW).reviewer
            == "dr_lee"
        )
        holds.set()
        assert eventually(partial(somebody_waits, postgresql))
        assert got == []
    waiting.join()
    assert [claim.reviewer for claim in got] == ["dr_lee"]
    other.close()


def test_a_rebuild_waits_for_who_writes_and_keeps_none_of_it(
    index: OutputIndex, postgresql: PostgreSQLServer, tmp_path: Path
) -> None:
    other = open_index(tmp_path / "output")
    row = {"case_id": "a", "review_status": "pending"}
    outcomes: list[Any] = []
    rebuilding = threading.Thread(target=lambda: outcomes.extend(run_together(lambda: index.rebuild([], [row], []))))
    with other.batch_into_one_transaction():
        other.upsert_case({"case_id": "a", "review_status": "completed"})
        rebuilding.start()
        assert eventually(partial(somebody_waits, postgresql))
        assert outcomes == []
    rebuilding.join()
    assert outcomes == [None]
    assert [one["review_status"] for one in other.list_cases_worst_first()] == ["pending"]
    other.close()


# --- what a text may hold ------------------------------------------------------------------------------------------


def test_what_no_text_of_postgresql_holds_is_replaced(index: OutputIndex) -> None:
    call = ModelCall("q", "d", "v2", "m", NOW, 1.0, "torn \0 answer", None, 1, 1, 0, 0, None)
    index.call_journal.add_call(call)
    assert index.call_journal.find_calls("q")[0].answer == "torn \ufffd answer"
    at = CaseAgeCutoffs(NOW, NOW, NOW)
    page = index.case_list.list_queue_page(
        at, include_finished=True, name_search="\0", facet_values={}, order="name", limit=9, offset=0
    )
    assert page == []


def test_long_paths_are_indexed(index: OutputIndex) -> None:
    folders = "/".join(f"{number:x}" * 20 for number in range(90_000, 90_040))
    index.upsert_document_and_mark_replaced(
        {"doc_id": "a", "file_path": f"/{folders}/a.pdf", "sha256": "a", "replaced": False}
    )
    index.upsert_document_and_mark_replaced(
        {"doc_id": "b", "file_path": f"/{folders}/a.pdf", "sha256": "b", "replaced": False}
    )
    assert [row["replaced"] for row in index.list_documents()] == [True, False]


# --- who opens it --------------------------------------------------------------------------------------------------


def test_doctor_says_which_database_it_is(url: str, own: PostgreSQLServer, tmp_path: Path) -> None:
    def line(**given: Any) -> Any:
        settings = Settings.load(output=str(tmp_path), **given)
        (found,) = (one for one in run_doctor_checks(settings) if one.name == "database")
        assert not any(secret in f"{found}" for secret in SECRETS)
        return found

    assert line().is_fine
    assert "once there is a run" in line().found
    assert not list(tmp_path.iterdir())  # it only looks
    open_index(tmp_path).close()
    assert schema(tmp_path) in line().found
    own.stop()
    gone = line(database=own.url)
    assert not gone.is_fine
    assert "does not answer" in gone.found
    own.start()


def test_doctor_says_that_it_is_the_file(tmp_path: Path) -> None:
    open_index(tmp_path).close()
    (found,) = (one for one in run_doctor_checks(Settings.load(output=str(tmp_path))) if one.name == "database")
    assert (found.is_fine, found.found) == (True, "evalkit.sqlite in the output folder")


@pytest.mark.parametrize("is_newer", [True, False])
def test_doctor_looks_into_the_file_and_leaves_it_as_it_is(tmp_path: Path, is_newer: bool) -> None:
    open_index(tmp_path).close()
    path = tmp_path / "evalkit.sqlite"
    if is_newer:
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE schema_number SET number = 99")
    else:
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    before = path.read_bytes()
    (found,) = (one for one in run_doctor_checks(Settings.load(output=str(tmp_path))) if one.name == "database")
    assert not found.is_fine
    assert ("version 99" if is_newer else "it is damaged") in found.found
    assert path.read_bytes() == before


def test_a_run_and_a_reindex_use_what_is_set(samples: Path, url: str, tmp_path: Path) -> None:
    output = tmp_path / "output"
    path = sorted(samples.glob("*.pdf"))[0]
    done = evalkit_command("run", path, "--output", output)
    assert done.returncode in (0, 1), done.stderr
    assert not (output / "evalkit.sqlite").exists()
    index = open_index(output)
    (document,), cases = index.list_documents(), index.list_cases_worst_first()
    assert document["file_path"] == str(path)
    assert reindex(open_folder(output)) == (1, len(cases))
    assert index.list_cases_worst_first() == cases
    index.close()


def test_nothing_of_the_address_is_logged(url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        index = open_index(tmp_path)
        index.drafts.save(draft())
        index.close()
    assert not any(text in caplog.text for text in (*SECRETS, PATIENT))


def test_the_store_reads_no_setting(url: str, tmp_path: Path) -> None:
    assert resolve_postgresql_url(open_output_folder(tmp_path)) is None
    assert resolve_postgresql_url(open_output_folder(tmp_path, url)) == url
