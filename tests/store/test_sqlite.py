"""The database file: read without a trace, made whole or not at all, and every failure told by its own name."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest
import sqlalchemy as sa
from benchmarks.first_contact.broken_folders.faults import compile_library, find_page
from benchmarks.first_contact.broken_folders.sealed import BAD_SECTOR
from places import open_folder, open_index
from stress.full_disks import mount_small_disk

from evalkit.errors import StoreError
from evalkit.store import OutputIndex, sqlite
from evalkit.store.sqlite import build_database_error

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
IS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user or mounts a disk")


def failure(name: str) -> sa.exc.OperationalError:
    original = sqlite3.OperationalError("of John Smith")
    original.sqlite_errorname = name
    return sa.exc.OperationalError("INSERT", None, original)


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("SQLITE_FULL", "STORE-FULL", "disk is full"),
        ("SQLITE_NOTADB", "STORE-DAMAGED", "not an SQLite database"),
        ("SQLITE_BUSY_SNAPSHOT", "STORE-BUSY", "another process"),
        ("SQLITE_LOCKED", "STORE-BUSY", "locked"),
        ("SQLITE_IOERR_READ", "STORE-IO", "disk or network drive"),
        ("SQLITE_READONLY_DBMOVED", "STORE-READ-ONLY", "may not write"),
        ("SQLITE_CANTOPEN", "STORE-DENIED", "cannot be opened"),
        ("SQLITE_NOMEM", "STORE-MEMORY", "memory"),
        ("SQLITE_ERROR", "STORE-INDEX", "could not be read or written"),
    ],
)
def test_each_error_of_sqlite_has_a_name_and_remedy(tmp_path: Path, name: str, code: str, words: str) -> None:
    open_index(tmp_path).close()
    told = build_database_error(tmp_path, failure(name))
    assert told.code == code
    assert words in told.message
    assert told.remedy
    assert "John Smith" not in str(told)
    assert "delete" not in str(told).lower()


def test_a_disk_without_locks_is_not_called_busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    (tmp_path / ".review.lock").touch()
    assert build_database_error(tmp_path, failure("SQLITE_BUSY")).code == "STORE-BUSY"
    monkeypatch.setattr(fcntl, "flock", refuse)
    assert build_database_error(tmp_path, failure("SQLITE_BUSY")).code == "STORE-LOCKS"


def test_intact_database_is_never_called_damaged(tmp_path: Path) -> None:
    open_index(tmp_path).close()
    assert build_database_error(tmp_path, failure("SQLITE_CORRUPT")).code == "STORE-INDEX"
    path = tmp_path / "evalkit.sqlite"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    told = build_database_error(tmp_path, failure("SQLITE_CORRUPT"))
    assert told.code == "STORE-DAMAGED"
    assert all(word in told.remedy for word in ("-wal", "backup", "drafts", "view log"))


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a compiler")
def test_a_disk_that_cannot_be_read_is_not_called_damage(tmp_path: Path) -> None:
    output = tmp_path / "output"
    open_index(output).close()
    offset, _ = find_page(output / "evalkit.sqlite", "cases")
    library = compile_library(tmp_path, BAD_SECTOR.replace("OFFSET", str(offset)))
    code = "import sys; from pathlib import Path; from evalkit.store import *; OutputIndex(open_output_folder(sys.argv[1])).list_case_ids()"
    command = [sys.executable, "-c", code, str(output)]
    environment = os.environ | {"LD_PRELOAD": str(library)}
    shown = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert "the disk or network drive reports an error" in shown.stderr
    assert "damaged" not in shown.stderr


def test_exhausted_limits_are_told_instead_of_permissions(tmp_path: Path) -> None:
    open_index(tmp_path).close()
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 40, limit[1]))
    try:
        assert "ulimit -f" in build_database_error(tmp_path, failure("SQLITE_IOERR_WRITE")).remedy
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert "ulimit -n" in build_database_error(tmp_path, OSError(errno.EMFILE, "many")).remedy


@pytest.mark.parametrize("kind", ["link", "folder", "fifo"])
def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "evalkit.sqlite"
    {"link": lambda: path.symlink_to("other"), "folder": path.mkdir, "fifo": lambda: os.mkfifo(path)}[kind]()
    for read_only in (False, True):
        with pytest.raises(StoreError, match="link, a folder, a pipe or a device"):
            OutputIndex(open_folder(tmp_path), read_only=read_only)


def test_tables_of_another_program_are_left_alone(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "evalkit.sqlite")) as connection:
        connection.execute("CREATE TABLE moz_places (url TEXT)")
    for read_only in (False, True):
        with pytest.raises(StoreError, match="another program"):
            OutputIndex(open_folder(tmp_path), read_only=read_only)


def test_opening_waits_for_a_writer_that_sqlite_does_not_wait_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_index(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / "evalkit.sqlite", isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode=DELETE")  # as an older evalkit left it
        writer.execute("BEGIN IMMEDIATE")
        clock = SimpleNamespace(monotonic=time.monotonic, sleep=lambda _: writer.execute("COMMIT"))
        monkeypatch.setattr(sqlite, "time", clock)
        open_index(tmp_path).close()
        assert not writer.in_transaction


@pytest.mark.parametrize("name", ["out?mode=memory", "out#a", "out%20b", "file:out", "a+b&c=d", ":memory:"])
def test_signs_of_an_address_in_the_path_are_letters(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    with open_index(folder) as index:
        index.upsert_case({"case_id": "a", "review_status": "pending"})
    assert [path.name for path in tmp_path.iterdir()] == [name]
    for state in ("at rest", "in use"):
        with OutputIndex(open_folder(folder), read_only=True) as index:
            assert index.list_case_ids() == ["a"], state
        if state == "at rest":
            writer = open_index(folder)
            writer.upsert_case({"case_id": "a", "review_status": "deferred"})
    writer.close()


def contents(output: Path) -> dict[str, bytes]:
    """The bytes of every file; SQLite's index of the log is its own business."""
    return {
        path.name: path.read_bytes() if path.suffix != ".sqlite-shm" else b""
        for path in output.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("state", ["missing", "at rest", "in use", "killed", "copied without its index"])
def test_reading_leaves_every_byte_as_it_is(tmp_path: Path, state: str) -> None:
    output = tmp_path / "output"
    output.mkdir()
    if state != "missing":
        index = open_index(output)
        index.upsert_case({"case_id": "a", "doc_id": "a", "pdf_filename": "a.pdf", "review_status": "pending"})
        copies = {path.name: path.read_bytes() for path in output.glob("evalkit.sqlite*")}
        if state != "in use":
            index.close()
        if state in ("killed", "copied without its index"):
            for name, content in copies.items():
                if name != "evalkit.sqlite-shm" or state == "killed":
                    (output / name).write_bytes(content)
    before = contents(output)
    reader = OutputIndex(open_folder(output), read_only=True)
    assert reader.list_case_ids() == ([] if state == "missing" else ["a"])
    with pytest.raises(StoreError) if state in ("at rest", "in use", "killed") else pytest.MonkeyPatch.context():
        reader.upsert_case({"case_id": "b", "doc_id": "b", "pdf_filename": "b.pdf"})
    reader.close()
    assert contents(output) == before


@pytest.mark.parametrize("log", ["evalkit.sqlite-wal", "evalkit.sqlite-journal"])
def test_log_of_another_database_leaves_this_one_whole(tmp_path: Path, log: str) -> None:
    output, other = tmp_path / "output", tmp_path / "evalkit.sqlite"
    with closing(open_index(output)) as index:
        index.upsert_case({"case_id": "a", "doc_id": "a", "pdf_filename": "a.pdf", "review_status": "pending"})
    if log.endswith("wal"):
        with closing(sqlite3.connect(other)) as foreign:
            foreign.executescript("PRAGMA journal_mode=WAL; CREATE TABLE cases (case_id TEXT)")
            shutil.copy(tmp_path / log, output)
    else:
        with closing(sqlite3.connect(other)) as foreign:
            foreign.executescript("PRAGMA cache_size=1; CREATE TABLE cases (case_id TEXT)")
            foreign.execute("INSERT INTO cases SELECT hex(zeroblob(50000))")
            foreign.commit()
            foreign.execute("UPDATE cases SET case_id = hex(zeroblob(49999))")
            shutil.copy(tmp_path / log, output)
    before = contents(output)
    with pytest.raises(StoreError):
        open_index(output)
    assert contents(output) == before
    (output / log).unlink()
    with closing(open_index(output)) as index:
        assert index.list_case_ids() == ["a"]


@IS_ROOT
@pytest.mark.parametrize("state", ["at rest", "killed", "copied without its index"])
def test_another_user_reads_a_folder_that_is_read_only(tmp_path: Path, state: str) -> None:
    output = tmp_path / "output"
    index = open_index(output)
    index.upsert_case({"case_id": "a", "doc_id": "a", "pdf_filename": "a.pdf", "review_status": "pending"})
    copies = {path.name: path.read_bytes() for path in output.glob("evalkit.sqlite*")}
    index.close()
    if state != "at rest":
        for name, content in copies.items():
            if name != "evalkit.sqlite-shm" or state == "killed":
                (output / name).write_bytes(content)
    for path in output.glob("evalkit.sqlite*"):
        path.chmod(0o444)
    output.chmod(0o555)
    for folder in output.parents:
        if folder.stat().st_mode & 0o005 != 0o005:
            folder.chmod(0o755)
    program = (
        "import sys; from evalkit.store import OutputIndex, open_output_folder; "
        "print(OutputIndex(open_output_folder(sys.argv[1]), read_only=True).list_case_ids())"
    )
    done = subprocess.run(
        [*NOBODY, sys.executable, "-c", program, str(output)], capture_output=True, text=True, check=False, cwd="/"
    )
    output.chmod(0o700)
    assert done.stdout == "['a']\n", done.stderr


def test_log_of_a_lost_database_is_not_mixed_into_a_new_one(tmp_path: Path) -> None:
    index = open_index(tmp_path)
    index.upsert_case({"case_id": "a", "doc_id": "a", "pdf_filename": "a.pdf"})
    log = (tmp_path / "evalkit.sqlite-wal").read_bytes()
    index.close()
    (tmp_path / "evalkit.sqlite").unlink()
    (tmp_path / "evalkit.sqlite-wal").write_bytes(log)
    (tmp_path / "sme_packets").mkdir()
    index = open_index(tmp_path)
    assert index.list_case_ids() == []
    index.close()


def test_the_log_of_who_created_the_database_first_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first: list[OutputIndex] = []

    def create_another_first(connection: sa.Connection) -> None:
        monkeypatch.undo()
        sqlite.check_integrity(connection)
        first.append(open_index(tmp_path))
        first[0].upsert_case({"case_id": "a", "doc_id": "a", "pdf_filename": "a.pdf"})

    monkeypatch.setattr(sqlite, "check_integrity", create_another_first)
    second = open_index(tmp_path)
    first[0].upsert_case({"case_id": "b", "doc_id": "b", "pdf_filename": "b.pdf"})
    for index in (second, first[0]):
        assert set(index.list_case_ids()) == {"a", "b"}
        index.close()
    with open_index(tmp_path) as later:
        assert set(later.list_case_ids()) == {"a", "b"}


def test_nothing_is_written_to_a_removed_database(tmp_path: Path) -> None:
    index = open_index(tmp_path)
    (tmp_path / "evalkit.sqlite").unlink()
    with pytest.raises(StoreError, match="removed or replaced") as refused:
        index.upsert_case({"case_id": "a", "doc_id": "a", "pdf_filename": "a.pdf"})
    assert refused.value.code == "STORE-MOVED"
    index.close()


def create_index_and_find_error_code(folder: Path) -> str | None:
    try:
        open_index(folder).close()
    except StoreError as error:
        return error.code
    return None


def test_full_disk_is_named_when_a_database_is_created(tmp_path: Path) -> None:
    codes = []
    for blocks in range(2, 80, 3):
        with mount_small_disk(tmp_path / "disk") as disk:
            disk.limit("size", blocks)
            codes.append(create_index_and_find_error_code(disk.folder))
            files = [path.name for path in disk.folder.rglob("*") if path.is_file()]
            assert ("evalkit.sqlite" in files) == (codes[-1] is None)
            disk.make_room()
            open_index(disk.folder).close()
    assert set(codes) == {"STORE-FULL", None}


def test_failed_creation_leaves_no_file_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        raise failure("SQLITE_FULL")

    with monkeypatch.context() as patch:
        patch.setattr(sqlite, "check_integrity", fail)
        with pytest.raises(StoreError, match="disk is full"):
            open_index(tmp_path)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == []
    open_index(tmp_path).close()
