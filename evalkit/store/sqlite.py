"""The database file ``evalkit.sqlite`` in the output folder."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import resource
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa

from evalkit.errors import StoreError
from evalkit.store.file_names import SQLITE_FILE, TEMP_FOLDER, WRITE_LOCK_FILE
from evalkit.store.local_folder import fsync_folder, generate_process_temp_name, make_private_folder_and_parents
from evalkit.store.schema_version import create_or_verify_tables, require_known_tables_or_none

#: Endings of the files that SQLite keeps beside a database, and that are part of it.
_COMPANION_SUFFIXES = ("-wal", "-shm", "-journal")


def open_or_create_sqlite_engine(root: Path) -> sa.Engine:
    """Open ``evalkit.sqlite`` in the folder ``root``, creating it if missing.

    OSError, SQLAlchemyError.
    """
    path = root / SQLITE_FILE
    if not _is_regular_file(path):
        _create_database_file(path)
    elif _has_left_behind_log(path):
        # Opening applies the log for good, also one of another database: what comes of it is looked at in a copy first.
        verify_database(root, is_thorough=True)
    engine = _create_engine(path)
    try:
        create_or_verify_tables(engine, lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
        _enable_wal(engine)
    except BaseException:
        engine.dispose()
        raise
    return engine


def open_for_reading_or_none(root: Path) -> sa.Engine | None:
    """Open ``evalkit.sqlite`` so that nothing in its folder changes; None if missing.

    A file of 0 bytes counts as missing. OSError, SQLAlchemyError.
    """
    path = root / SQLITE_FILE
    if not _is_regular_file(path) or not path.stat().st_size:
        return None
    if _has_left_behind_log(path):
        return _open_copy(path)
    if _has_unapplied_log(path):  # other processes have the database open, or were killed
        return _create_engine(path, "mode=ro")
    if os.access(root, os.W_OK) and os.access(path, os.W_OK):
        # SQLite removes the two files again that it needs while it reads what others may write.
        engine = _create_engine(path, "mode=rw", "PRAGMA query_only=ON")
        with suppress(sa.exc.OperationalError), engine.connect() as connection:
            connection.exec_driver_sql("SELECT count(*) FROM sqlite_master")
            return engine
        engine.dispose()  # a full disk has no room for the two files
    return _create_engine(path, "immutable=1")


def _has_unapplied_log(path: Path) -> bool:
    wal_path = Path(f"{path}-wal")
    return wal_path.is_file() and wal_path.stat().st_size > 0


def _has_left_behind_log(path: Path) -> bool:
    """Return True if transactions are unfinished and no process has them open."""
    return Path(f"{path}-journal").is_file() or (_has_unapplied_log(path) and not Path(f"{path}-shm").is_file())


def create_memory_engine(raw_connection: sqlite3.Connection | None = None) -> sa.Engine:
    """Create an engine for a database in memory: an empty one, or the given one."""
    memory = raw_connection or sqlite3.connect(":memory:", check_same_thread=False)
    return sa.create_engine("sqlite://", creator=lambda: memory, poolclass=sa.StaticPool, hide_parameters=True)


def verify_database(root: Path, *, is_thorough: bool) -> None:
    """Check the tables of ``evalkit.sqlite``; if ``is_thorough``, that it is intact.

    StoreError if another version of evalkit created it; SQLAlchemyError if it is damaged.
    """
    engine = open_for_reading_or_none(root)
    if engine is not None:
        try:
            with engine.connect() as connection:
                if is_thorough:
                    check_integrity(connection)
                require_known_tables_or_none(connection)
        finally:
            engine.dispose()


def check_integrity(connection: sa.Connection) -> None:
    """Raise SQLAlchemyError if SQLite finds the database damaged."""
    check_rows(connection)
    _raise_unless_ok(connection, "integrity_check(1)", _DAMAGED_INDEX)


def check_rows(connection: sa.Connection) -> None:
    """Raise SQLAlchemyError if a table is damaged; indexes are not checked."""
    _raise_unless_ok(connection, "quick_check(1)", "SQLITE_CORRUPT")


def _raise_unless_ok(connection: sa.Connection, pragma: str, error_name: str) -> None:
    if connection.exec_driver_sql(f"PRAGMA {pragma}").scalar_one() != "ok":
        error = sqlite3.DatabaseError(pragma)
        error.sqlite_errorname = error_name
        raise sa.exc.DatabaseError(pragma, None, error)


def has_damaged_index(connection: sa.Connection, tables: Iterable[str]) -> bool:
    """Return True if an index of these tables has other entries than its table.

    Sums of row numbers and first letters are compared: SQLite's ``integrity_check`` takes several times as long.
    """
    connection.exec_driver_sql("BEGIN")  # from here on, nothing changes
    for table in tables:
        condition_by_index, sum_by_index = {}, {}
        indexes = "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name = ?"
        for name, statement in connection.exec_driver_sql(indexes, (table,)).all():
            column = connection.exec_driver_sql(f'PRAGMA index_info("{name}")').all()[0][2]
            condition_by_index[name] = (re.findall(r" (WHERE .*)", statement or "") or ["WHERE 1"])[0]
            sum_by_index[name] = f'sum((rowid % 997 + 1) * (ifnull(unicode("{column}"), 0) + 1))'
        table_sums = (f"{sum_by_index[name]} FILTER ({condition})" for name, condition in condition_by_index.items())
        of_rows = connection.exec_driver_sql(f"SELECT {', '.join(table_sums)} FROM {table} NOT INDEXED").one()  # noqa: S608 - names of our own tables
        of_entries = (
            connection.exec_driver_sql(f'SELECT {sum_by_index[name]} FROM {table} INDEXED BY "{name}" {condition}')  # noqa: S608
            for name, condition in condition_by_index.items()
        )
        if any(entries.scalar_one() != rows for entries, rows in zip(of_entries, of_rows, strict=True)):
            return True
    return False


def _is_regular_file(path: Path) -> bool:
    """Return False if the path does not exist. OSError if it is not a regular file."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(mode):
        raise FileExistsError(
            errno.EEXIST, "the file is a link" if stat.S_ISLNK(mode) else "the path is not a regular file"
        )
    return True


def copy_into_new_file(connection: sa.Connection, path: Path) -> None:
    """Copy a connection's database, as its transaction sees it, to a new file.

    OSError if the disk is full; SQLAlchemyError.
    """
    source = connection.connection.driver_connection
    assert isinstance(source, sqlite3.Connection)  # noqa: S101 - the caller asks only for SQLite
    try:
        with closing(sqlite3.connect(path)) as target:
            source.backup(target)
            target.execute("PRAGMA journal_mode=DELETE")  # a file that is only read must need no file beside it
    except sqlite3.OperationalError as error:
        if error.sqlite_errorname != "SQLITE_FULL":
            raise sa.exc.OperationalError("backup", None, error) from None
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from None


def create_tables_in_new_file(path: Path) -> sa.Engine:
    """Create a database with empty tables; return its engine. SQLAlchemyError."""
    engine = _create_engine(path)
    create_or_verify_tables(engine, lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    return engine


def _open_copy(path: Path) -> sa.Engine:
    """Open a copy in memory of a database that a killed process left unfinished.

    SQLite would finish the last transactions in the folder. No process has the database open, so that copying its
    files ends no lock.
    """
    with tempfile.TemporaryDirectory() as private_folder:
        for suffix in ("", "-wal", "-journal"):
            with suppress(FileNotFoundError):
                shutil.copyfile(f"{path}{suffix}", Path(private_folder, f"{path.name}{suffix}"))
        memory = sqlite3.connect(":memory:", check_same_thread=False)
        with closing(sqlite3.connect(Path(private_folder, path.name))) as copied:
            copied.backup(memory)
    return create_memory_engine(memory)


def _create_engine(path: Path, query: str = "", pragma: str = "PRAGMA synchronous=FULL") -> sa.Engine:
    """Create an engine that waits 30 s for writers and keeps row values out of errors.

    By default, each connection syncs fully: saved work must outlive a power cut, and WAL alone syncs only now and then.
    """
    # Not as one text: signs of an address in the path, such as ? and %, would be read as such.
    url = sa.URL.create("sqlite", database=str(path))
    if query:
        url = url.set(database=path.absolute().as_uri()).update_query_string(f"{query}&uri=true")
    engine = sa.create_engine(url, connect_args={"timeout": _BUSY_SECONDS}, hide_parameters=True)

    def prepare_connection(connection: Any, _record: object) -> None:
        connection.execute(pragma)

    sa.event.listen(engine, "connect", prepare_connection)
    return engine


def _create_database_file(path: Path) -> None:
    """Create an empty database with mode 0600, unless another process just did.

    The database is created under another name and checked: if two processes switch a new database to WAL at once,
    SQLite fails one of them; closing a file that others have open already would release their locks; and a full disk
    must not leave half a database.
    """
    temp_path = path.parent / TEMP_FOLDER / generate_process_temp_name()
    make_private_folder_and_parents(temp_path.parent, path.parent)
    os.close(os.open(temp_path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    engine = _create_engine(temp_path)
    try:
        create_or_verify_tables(engine, lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
        _enable_wal(engine)
        with engine.connect() as connection:
            check_integrity(connection)
        engine.dispose()
        _publish_database_file(temp_path, path)
    except (OSError, sa.exc.SQLAlchemyError) as error:  # named before the removal of the file makes room
        raise build_database_error(path.parent, error) from None
    finally:
        engine.dispose()
        for suffix in ("", *_COMPANION_SUFFIXES):
            Path(f"{temp_path}{suffix}").unlink(missing_ok=True)


def _publish_database_file(temp_path: Path, path: Path) -> None:
    """Give the new database its name, unless another process just published one.

    The log of a database that is gone is removed before, because SQLite would mix the two; the folder is locked, so that it
    is not the log of one that another process has published meanwhile.
    """
    lock_fd = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock_fd, fcntl.LOCK_EX)
        if not os.path.lexists(path):
            for suffix in _COMPANION_SUFFIXES:
                Path(f"{path}{suffix}").unlink(missing_ok=True)
            os.link(temp_path, path)
            fsync_folder(path.parent)
    finally:
        os.close(lock_fd)


def _enable_wal(engine: sa.Engine) -> None:
    """Switch to a write-ahead log; SQLite does not wait for another that switches too."""
    deadline = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            with engine.connect() as connection:
                connection.exec_driver_sql("PRAGMA journal_mode=WAL")
            return
        except sa.exc.OperationalError as error:
            if getattr(error.orig, "sqlite_errorname", "") != "SQLITE_BUSY" or time.monotonic() > deadline:
                raise
        time.sleep(0.05)


# ------------------------------------------------------------------------------------------------------------- errors

#: Seconds for which a process waits while another one keeps the database locked.
_BUSY_SECONDS = 30


class _Failure(NamedTuple):
    name: str
    """The beginning of the error's name, by SQLite or by the system."""
    code: str
    message: str
    remedy: str


_KEPT = "Nothing was saved by this step; what was saved before is kept."
_DAMAGED_REMEDY = (
    "Restore it from a backup, together with the files of the same name and -wal. Without a backup, move all of them "
    "out of the folder: the next `evalkit run`, `evalkit review` or `evalkit reindex` rebuilds the index from the other "
    "files, but claims, drafts, deferrals, replies, paid answers of language models and the view log are lost."
)
#: SQLite's names of errors that have several causes.
_UNSPECIFIC_NAMES = ("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_IOERR")
_DAMAGED_INDEX = "SQLITE_CORRUPT_INDEX"
#: Free bytes below which a disk counts as full: SQLite's index of the write-ahead log takes as many.
_NEEDED_BYTES = 64 * 1024
_FAILURES = (
    _Failure("SQLITE_FULL", "STORE-FULL", "the disk is full", f"{_KEPT} Free some disk space and try again."),
    _Failure("ENOSPC", "STORE-FULL", "the disk is full", f"{_KEPT} Free some disk space and try again."),
    _Failure(
        "EDQUOT", "STORE-FULL", "this user's disk quota is used up", f"{_KEPT} Free some disk space and try again."
    ),
    _Failure(
        "EFBIG", "STORE-LIMIT", "this process may not write so large a file", f"{_KEPT} Raise the limit (`ulimit -f`)."
    ),
    _Failure(
        "EMFILE", "STORE-LIMIT", "this process has too many files open", f"{_KEPT} Raise the limit (`ulimit -n`)."
    ),
    _Failure(
        "EROFS",
        "STORE-READ-ONLY",
        "its disk is mounted read-only",
        f"{_KEPT} Mount the disk for writing, or use another folder.",
    ),
    _Failure(
        "ENOLCK",
        "STORE-LOCKS",
        "its disk has no file locks",
        f"{_KEPT} Use a local disk, or mount the network drive with locks.",
    ),
    _Failure(
        "EACCES",
        "STORE-DENIED",
        "this user may not read or write it",
        "Correct the permissions of the output folder and of evalkit.sqlite.",
    ),
    _Failure(
        "EEXIST",
        "STORE-LINK",
        "it is not a file but a link, a folder, a pipe or a device",
        "Move it away and restore the database itself from a backup: nothing in an output folder may be a link.",
    ),
    _Failure(
        "ESTALE",
        "STORE-MOVED",
        "it was removed or replaced while this process had it open",
        f"{_KEPT} Close the page or program and open it again.",
    ),
    _Failure(
        "SQLITE_READONLY",
        "STORE-READ-ONLY",
        "this user may not write to it or to its folder",
        f"{_KEPT} Correct the permissions of the output folder and of evalkit.sqlite.",
    ),
    _Failure(
        "SQLITE_CANTOPEN",
        "STORE-DENIED",
        "it or a file beside it cannot be opened",
        "Correct the permissions of the output folder and of evalkit.sqlite.",
    ),
    _Failure(
        "SQLITE_NOTADB", "STORE-DAMAGED", "it is not an SQLite database, or its beginning is damaged", _DAMAGED_REMEDY
    ),
    _Failure(
        _DAMAGED_INDEX,
        "STORE-DAMAGED",
        "its search index is damaged: entries do not agree with the rows",
        "Run `evalkit reindex`: it writes the search index again from the rows, and nothing is lost. Check the disk.",
    ),
    _Failure("SQLITE_CORRUPT", "STORE-DAMAGED", "it is damaged: SQLite's integrity check fails", _DAMAGED_REMEDY),
    _Failure(
        "SQLITE_BUSY",
        "STORE-BUSY",
        f"another process kept it locked for {_BUSY_SECONDS} seconds",
        f"{_KEPT} Wait until the other process has finished, or end it if it hangs, and try again.",
    ),
    _Failure("SQLITE_LOCKED", "STORE-BUSY", "it is locked", f"{_KEPT} Try again."),
    _Failure(
        "SQLITE_IOERR",
        "STORE-IO",
        "the disk or network drive reports an error",
        f"{_KEPT} Check the disk, its connection and its quota, and try again.",
    ),
    _Failure("SQLITE_NOMEM", "STORE-MEMORY", "there is too little memory", f"{_KEPT} Free some memory and try again."),
    _Failure(
        "",
        "STORE-INDEX",
        "it could not be read or written",
        f"{_KEPT} Try again; `evalkit doctor` checks the database.",
    ),
)


def build_database_error(root: Path, error: Exception) -> StoreError:
    """Build the error for an unusable database, with its cause and remedy.

    It shows no value of a row. A database is called damaged only if its integrity check fails.
    """
    name = _name_failure(root, getattr(error, "orig", None) or error)
    failure = next(failure for failure in _FAILURES if name.startswith(failure.name))
    return StoreError(
        f"the database {root / SQLITE_FILE} cannot be used: {failure.message}",
        code=failure.code,
        remedy=failure.remedy,
    )


def _name_failure(root: Path, error: BaseException) -> str:
    """Name an error as ``_Failure.name`` does; empty if it is none of these."""
    if isinstance(error, OSError):
        return errno.errorcode.get(error.errno or 0, "")
    name: str = getattr(error, "sqlite_errorname", "")
    if name.startswith("SQLITE_CORRUPT"):
        try:
            verify_database(root, is_thorough=True)
        except sa.exc.DatabaseError as found:
            name = getattr(found.orig, "sqlite_errorname", name)
        except (OSError, sa.exc.SQLAlchemyError, StoreError):
            pass
        else:
            return ""
        return name if _can_read_whole_file(root / SQLITE_FILE) else "SQLITE_IOERR"
    if name.startswith("SQLITE_BUSY") and _lacks_file_locks(root):
        return "ENOLCK"
    return _find_system_cause(root, name) if name.startswith(_UNSPECIFIC_NAMES) else name


def _lacks_file_locks(root: Path) -> bool:
    """Return True if the disk refuses all locks; SQLite takes it for a held one."""
    try:
        with (root / WRITE_LOCK_FILE).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno in (errno.ENOLCK, errno.EOPNOTSUPP)
    return False


def _can_read_whole_file(path: Path) -> bool:
    """Return False if the disk cannot read all of it, which SQLite calls malformed.

    Another process reads it: closing the file here would release this process's locks.
    """
    read = "import os, sys; file = os.open(sys.argv[1], 0); [os.pread(file, 4096, at) for at in range(0, os.fstat(file).st_size, 4096)]"
    command = [sys.executable, "-I", "-c", read, str(path)]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0  # noqa: S603 - our own interpreter


def _find_system_cause(root: Path, name: str) -> str:
    """Find the system's reason for an error of SQLite that names none."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
        disk = os.statvfs(root)
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, name)
    path = root / SQLITE_FILE if os.path.lexists(root / SQLITE_FILE) else root
    has_room = disk.f_bavail * disk.f_frsize >= _NEEDED_BYTES and (disk.f_favail or not disk.f_files)
    causes = {
        "EACCES": not os.access(path, os.R_OK),
        "EROFS": disk.f_flag & os.ST_RDONLY,
        "ENOSPC": not has_room,
        "SQLITE_READONLY": not (os.access(path, os.W_OK) and os.access(root, os.W_OK)),
        "EFBIG": name.startswith("SQLITE_IOERR") and resource.getrlimit(resource.RLIMIT_FSIZE)[0] >= 0,
    }
    return next((cause for cause, is_present in causes.items() if is_present), name)
