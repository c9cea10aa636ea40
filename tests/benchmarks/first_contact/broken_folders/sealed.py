"""The sealed half of the broken folders: opened once, to measure."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from .faults import (
    HOLD_DATABASE,
    Ideas,
    Scene,
    change_database,
    compile_library,
    database,
    draw_bytes,
    either,
    expect,
    fill,
    find_page,
    give_to_nobody,
    hold,
    leave_journal,
    list_reviewed,
    list_waiting,
    mount,
    move_to_failing_disk,
    move_to_small_disk,
    overwrite,
    refuses,
    remove_database,
    repairs,
    restore_database,
    take_back,
    works,
)

IDEAS = Ideas()
Built = Iterator[Scene | None]

REPAIRED = expect(either(works(), repairs()))
BUSY = refuses("another process|other process|busy|in use|locked")
FULL = refuses("full|no space|space left|disk space|inode", "free|room|space")
READ_ONLY = refuses("read-only|permission|not writable|cannot be written|cannot write")
CANNOT_READ = refuses("permission|may not be read|cannot be opened|cannot be read|not allowed")
BEYOND_USE = expect(
    either(
        repairs(()),
        refuses(
            "evalkit.sqlite", "damaged|not a database|no database|not evalkit's", "reindex|restore|backup", never=()
        ),
    )
)
#: A page is damaged that not every command reads.
PARTLY_DAMAGED = expect(either(works(), BEYOND_USE["queue"]))


@IDEAS(
    "renamed_by_a_restore",
    "missing",
    "a restore gave the database another name beside its place: evalkit.sqlite.restored",
    REPAIRED,
)
def _(root: Path, workspace: Path) -> Built:
    database(root).rename(root / "evalkit.sqlite.restored")
    yield None


@IDEAS("no_table", "empty", "a valid database without a table: a program of SQLite was opened in the folder", REPAIRED)
def _(root: Path, workspace: Path) -> Built:
    remove_database(root)
    change_database(database(root), "CREATE TABLE t (x)", "DROP TABLE t", "VACUUM")
    yield None


@IDEAS("tables_without_rows", "empty", "a new database with all tables of this version and no row", REPAIRED)
def _(root: Path, workspace: Path) -> Built:
    tables = ("documents", "cases", "closings", "claims", "drafts", "deferrals", "heads", "views", "calls")
    change_database(database(root), *(f"DELETE FROM {table}" for table in tables), "VACUUM")
    yield None


@IDEAS("tables_version_2", "tables", "the tables are of version 2, as of two releases ago", REPAIRED)
def _(root: Path, workspace: Path) -> Built:
    change_database(
        database(root),
        "DROP INDEX ix_cases_errors",
        "DROP INDEX ix_cases_asked",
        "ALTER TABLE cases DROP COLUMN errors_per_minute",
        *(
            f"ALTER TABLE closings DROP COLUMN {name}"
            for name in ("type_outcomes", "confirmed", "dismissed", "pages_seen")
        ),
        "UPDATE schema_number SET number = 2",
    )
    yield None


@IDEAS(
    "tables_without_number",
    "tables",
    "the table with the version of the tables has no row",
    expect(either(works(), repairs(), refuses("version|evalkit.sqlite"))),
    restore_database,
)
def _(root: Path, workspace: Path) -> Built:
    change_database(database(root), "DELETE FROM schema_number")
    yield None


@IDEAS(
    "older_by_two_reviews",
    "older copy",
    "a copy of the database from before two reviews: their cases wait in it",
    REPAIRED,
)
def _(root: Path, workspace: Path) -> Built:
    names = ", ".join(f"'{name}'" for name in list_reviewed(root)[:2])
    change_database(
        database(root),
        f"UPDATE cases SET review_status = 'pending' WHERE case_id IN ({names})",
        *(f"DELETE FROM {table} WHERE case_id IN ({names})" for table in ("closings", "heads")),
    )
    yield None


@IDEAS(
    "as_many_others",
    "older copy",
    "the database has as many waiting cases as the folder, but two of them are of documents that are not there",
    REPAIRED,
)
def _(root: Path, workspace: Path) -> Built:
    change_database(
        database(root),
        *(
            f"UPDATE {table} SET {column} = 'gone_{number}' WHERE {column} = '{name}'"
            for number, name in enumerate(list_waiting(root)[:2])
            for table, column in (("cases", "case_id"), ("cases", "doc_id"), ("documents", "doc_id"))
        ),
    )
    yield None


@IDEAS(
    "page_of_cases_zeroed",
    "damage",
    "a page in the middle of the database, of the cases, is zeros",
    PARTLY_DAMAGED,
    restore_database,
)
def _(root: Path, workspace: Path) -> Built:
    offset, size = find_page(database(root), "cases")
    overwrite(database(root), offset, bytes(size))
    yield None


@IDEAS(
    "index_disagrees",
    "damage",
    "an index has lost its entries: the tables are whole, and what counts by the index sees nothing",
    PARTLY_DAMAGED,
    restore_database,
)
def _(root: Path, workspace: Path) -> Built:
    # The root page of each index of the cases becomes a valid leaf without a cell.
    for name in ("ix_cases_listed", "ix_cases_worst", "ix_cases_review_status", "ix_cases_asked"):
        offset, size = find_page(database(root), name)
        overwrite(database(root), offset, b"\x0a\0\0\0\0" + size.to_bytes(2, "big") + bytes(size - 7))
    yield None


@IDEAS("last_page_cut", "damage", "the database's last page is cut after 1,000 bytes", PARTLY_DAMAGED, restore_database)
def _(root: Path, workspace: Path) -> Built:
    os.truncate(database(root), database(root).stat().st_size - 3096)
    yield None


@IDEAS("wal_of_another_database", "wal", "the -wal beside the database is of another database", REPAIRED)
def _(root: Path, workspace: Path) -> Built:
    other = workspace / "other.sqlite"
    leave_journal(other, "wal", "CREATE TABLE cases (case_id TEXT)", "INSERT INTO cases VALUES ('not_ours')")
    shutil.copy2(f"{other}-wal", f"{database(root)}-wal")
    yield None


@IDEAS("wal_cut_in_a_frame", "wal", "the -wal ends in the middle of its last frame; all before it is whole", REPAIRED)
def _(root: Path, workspace: Path) -> Built:
    leave_journal(database(root), "wal", "UPDATE cases SET pages = pages", "UPDATE documents SET replaced = replaced")
    wal = Path(f"{database(root)}-wal")
    os.truncate(wal, wal.stat().st_size - 1234)
    yield None


@IDEAS("shared_memory_is_noise", "wal", "the -shm is noise, as after a restore from a running machine", REPAIRED)
def _(root: Path, workspace: Path) -> Built:
    leave_journal(database(root), "wal", "UPDATE cases SET pages = pages")
    Path(f"{database(root)}-shm").write_bytes(draw_bytes("shm", 32768))
    yield None


@IDEAS(
    "hot_journal",
    "wal",
    "a power failure in the middle of a transaction: a rollback journal lies beside a half-written database",
    REPAIRED,
)
def _(root: Path, workspace: Path) -> Built:
    filler = (
        "INSERT INTO views (case_id, reviewer, opened_at) SELECT hex(zeroblob(900)), 'x', 'x' FROM cases, documents"
    )
    leave_journal(database(root), "delete", "UPDATE cases SET review_status = 'completed'", filler)
    yield None


@IDEAS(
    "fifo",
    "not a file of SQLite",
    "a named pipe has the database's name: who opens it waits",
    expect(
        either(repairs(), refuses("evalkit.sqlite", "not a file|no file|regular|pipe|not a database|cannot be opened"))
    ),
    restore_database,
)
def _(root: Path, workspace: Path) -> Built:
    remove_database(root)
    os.mkfifo(database(root), 0o600)
    yield None


@IDEAS(
    "encrypted",
    "not a file of SQLite",
    "the database was encrypted as a whole: its length is right, its bytes are noise",
    BEYOND_USE,
    restore_database,
)
def _(root: Path, workspace: Path) -> Built:
    database(root).write_bytes(draw_bytes("encrypted", database(root).stat().st_size))
    yield None


@IDEAS(
    "same_names_of_tables",
    "foreign",
    "another program's database, of a law firm, which has tables `documents` and `cases` of its own",
    expect(
        refuses(
            "evalkit.sqlite|database",
            "another|other|not evalkit's|not of evalkit|no database of evalkit|unknown",
            never=("full", "permission"),
        )
    ),
    restore_database,
)
def _(root: Path, workspace: Path) -> Built:
    remove_database(root)
    change_database(
        database(root),
        "CREATE TABLE cases (id INTEGER PRIMARY KEY, plaintiff TEXT, defendant TEXT)",
        "CREATE TABLE documents (id INTEGER PRIMARY KEY, case_number INTEGER, body TEXT)",
        "INSERT INTO cases (plaintiff, defendant) VALUES ('A', 'B')",
    )
    yield None


@IDEAS(
    "of_another_owner",
    "permissions",
    "root's restore left the database to root, mode 0600; evalkit runs as another user",
    expect(either(works(), CANNOT_READ), CANNOT_READ),
    needs=("root",),
    is_unchanged=True,
)
def _(root: Path, workspace: Path) -> Built:
    give_to_nobody(root)
    os.chown(database(root), 0, 0)
    database(root).chmod(0o600)
    yield Scene(root, is_nobody=True)
    take_back(root)


@IDEAS(
    "database_mode_0444",
    "read-only",
    "the database may only be read, mode 0444; the folder may be written",
    expect(works(), either(works(), READ_ONLY)),
    needs=("root",),
)
def _(root: Path, workspace: Path) -> Built:
    give_to_nobody(root)
    database(root).chmod(0o444)
    yield Scene(root, is_nobody=True)
    database(root).chmod(0o600)
    take_back(root)


@IDEAS(
    "disk_turns_read_only",
    "read-only",
    "the disk turns read-only while the screen is open, as Linux does after an error",
    expect(works(), READ_ONLY, review=either(works(), READ_ONLY)),
    needs=("mounts", "ext4"),
    moment="beneath",
    is_unchanged=True,
)
def _(root: Path, workspace: Path) -> Built:
    with move_to_failing_disk(root, workspace) as (folder, fail):
        yield Scene(folder, strike=fail)


@IDEAS(
    "out_of_inodes",
    "full disk",
    "the disk has room, but no inode for another file",
    expect(works(), either(works(), FULL), review=either(works(), FULL)),
    needs=("mounts",),
)
def _(root: Path, workspace: Path) -> Built:
    entries = sum(1 for _ in root.rglob("*")) + 200
    with move_to_small_disk(root, workspace, f",nr_inodes={entries}") as folder:
        spare = folder.parent / "spare"
        spare.mkdir()
        try:
            for number in range(400):
                (spare / str(number)).touch()
        except OSError:
            pass
        yield Scene(folder)
        shutil.rmtree(spare)


@IDEAS(
    "full_with_work_in_the_wal",
    "full disk",
    "the disk is full, and the newest rows are in a -wal that cannot be taken over",
    expect(either(works(), FULL), either(works(), FULL)),
    needs=("mounts",),
)
def _(root: Path, workspace: Path) -> Built:
    with move_to_small_disk(root, workspace) as folder:
        leave_journal(
            database(folder), "wal", "UPDATE cases SET pages = pages", "UPDATE documents SET replaced = replaced"
        )
        fill(folder.parent, 0)
        yield Scene(folder)


@IDEAS(
    "full_in_the_middle_of_reindex",
    "full disk",
    "an empty database and 20 kB of room: its tables can be begun, not ended",
    expect(either(works(), repairs(), FULL), either(works(), FULL)),
    needs=("mounts",),
)
def _(root: Path, workspace: Path) -> Built:
    with move_to_small_disk(root, workspace) as folder:
        remove_database(folder)
        database(folder).write_bytes(b"")
        fill(folder.parent, 20480)
        yield Scene(folder)


@IDEAS(
    "temporary_disk_full",
    "full disk",
    "the system's folder for temporary files is full; the output folder has room",
    expect(works(), either(works(), FULL)),
    needs=("mounts",),
)
def _(root: Path, workspace: Path) -> Built:
    place = workspace / "temporary"
    place.mkdir()
    with mount("-t", "tmpfs", "-o", "size=64k,mode=1777", "none", place):
        fill(place, 0)
        yield Scene(root, {"TMPDIR": str(place), "SQLITE_TMPDIR": str(place)})


@IDEAS(
    "few_descriptors",
    "limits",
    "a process may open 40 files",
    expect(works(), either(works(), refuses("too many open files|open files|descriptor|limit"))),
)
def _(root: Path, workspace: Path) -> Built:
    yield Scene(root, limits={"nofile": 40})


@IDEAS(
    "stopped_writer",
    "locks",
    "a process that had begun to write was stopped (SIGSTOP) and holds its lock",
    expect(works(), either(works(), BUSY)),
    seconds=120,
)
def _(root: Path, workspace: Path) -> Built:
    with hold(HOLD_DATABASE, database(root), "BEGIN IMMEDIATE", "UPDATE cases SET pages = pages") as process:
        os.kill(process.pid, signal.SIGSTOP)
        yield None
        os.kill(process.pid, signal.SIGCONT)


@IDEAS(
    "held_for_oneself",
    "locks",
    "an administrator's program holds the database for itself alone (locking_mode EXCLUSIVE): nobody else may even read",
    expect(either(works(), BUSY)),
    seconds=120,
)
def _(root: Path, workspace: Path) -> Built:
    with hold(
        HOLD_DATABASE,
        database(root),
        "PRAGMA locking_mode = EXCLUSIVE",
        "BEGIN EXCLUSIVE",
        "UPDATE cases SET pages = pages",
    ):
        yield None


HOLD_LOCKS = """
import fcntl, sys
files = [open(path, "a") for path in sys.argv[1:]]
for file in files:
    fcntl.flock(file, fcntl.LOCK_EX)
print("ready", flush=True)
sys.stdin.read()
"""


@IDEAS(
    "lock_files_held",
    "locks",
    "a hanging process holds `.lock` and `.review.lock`",
    expect(works(), either(works(), BUSY)),
    seconds=120,
)
def _(root: Path, workspace: Path) -> Built:
    with hold(HOLD_LOCKS, root / ".lock", root / ".review.lock"):
        yield None


def bring_results_back(root: Path, workspace: Path) -> None:
    """Restore the results from a backup, without those that a run made again."""
    shutil.copytree(workspace / "results", root / "results", dirs_exist_ok=True)


@IDEAS(
    "results_missing",
    "files against database",
    "the folder of results is gone; packets, reviews and database are there",
    expect(
        either(works(), repairs(), refuses("result", "missing|restore|run|not there|does not exist")),
        works(),
        audit_verify=refuses("result", "missing|not there|does not exist|restore"),
        show=refuses("result|document|does not exist", "run|restore|missing|does not exist"),
    ),
    bring_results_back,
)
def _(root: Path, workspace: Path) -> Built:
    shutil.move(root / "results", workspace / "results")
    yield None


NAMES_THE_FILE = refuses(
    "sme_packet", "damaged|not one of|empty|cannot be read|not valid", "restore|backup|run", never=("evalkit.sqlite",)
)


@IDEAS(
    "packet_of_0_bytes",
    "files against database",
    "a power failure left one packet with 0 bytes; the others are whole",
    expect(either(works(), repairs(), NAMES_THE_FILE), audit_verify=NAMES_THE_FILE),
    lambda root, workspace: shutil.copy2(next(workspace.glob("sme_packet_*")), root / "sme_packets"),
)
def _(root: Path, workspace: Path) -> Built:
    path = root / "sme_packets" / f"sme_packet_{list_waiting(root)[-1]}.json"
    shutil.copy2(path, workspace)
    path.write_bytes(b"")
    yield None


@IDEAS(
    "database_and_a_packet",
    "files against database",
    "two faults at once: the database is missing, and a packet is all zeros, as some file systems leave it",
    expect(either(works(), repairs(), NAMES_THE_FILE), audit_verify=NAMES_THE_FILE),
    lambda root, workspace: shutil.copy2(next(workspace.glob("sme_packet_*")), root / "sme_packets"),
)
def _(root: Path, workspace: Path) -> Built:
    path = root / "sme_packets" / f"sme_packet_{list_waiting(root)[0]}.json"
    shutil.copy2(path, workspace)
    path.write_bytes(bytes(path.stat().st_size))
    remove_database(root)
    yield None


@IDEAS(
    "names_differ_by_capitals",
    "names",
    "a copy by way of another system has each file of a case twice: once more with capitals",
    expect(
        either(works(), repairs(), refuses("sme_packet|results|capital|twice")),
        audit_verify=either(works(), refuses("sme_packet|results|capital|twice")),
    ),
    lambda root, workspace: [
        path.unlink(missing_ok=True) for path in root.rglob("*") if path.name.isupper() and path.is_file()
    ],
)
def _(root: Path, workspace: Path) -> Built:
    name = list_waiting(root)[1]
    for path in (root / "sme_packets" / f"sme_packet_{name}.json", root / "results" / f"{name}.json"):
        shutil.copy2(path, path.with_name(path.name.upper()))
    yield None


@IDEAS("path_like_an_address", "names", "the folder lies below a name with ?, #, % and a blank", expect(works()))
def _(root: Path, workspace: Path) -> Built:
    place = workspace / "ward 7?mode=memory#1%2e"
    place.mkdir()
    shutil.copytree(root, place / "output", symlinks=True)
    yield Scene(place / "output")
    shutil.rmtree(root)
    shutil.move(place / "output", root)


@IDEAS(
    "review_unreadable",
    "permissions",
    "one review belongs to root, mode 0600; all else to the user",
    expect(either(works(), CANNOT_READ), audit_verify=CANNOT_READ),
    needs=("root",),
    is_unchanged=True,
)
def _(root: Path, workspace: Path) -> Built:
    give_to_nobody(root)
    path = root / "reviews" / list_reviewed(root)[0] / "0001.json"
    os.chown(path, 0, 0)
    path.chmod(0o600)
    yield Scene(root, is_nobody=True)
    take_back(root)


@IDEAS(
    "no_temporary_folder",
    "temporary files",
    "TMPDIR names a folder that does not exist, and `.tmp` is gone",
    expect(works(), either(works(), refuses("tmp|temporary"))),
)
def _(root: Path, workspace: Path) -> Built:
    shutil.rmtree(root / ".tmp", ignore_errors=True)
    yield Scene(root, {"TMPDIR": str(workspace / "no" / "such")})


@IDEAS(
    "files_of_the_future",
    "clock",
    "the clock was ten years ahead for a while: times of the files and of the database are to come",
    expect(works()),
)
def _(root: Path, workspace: Path) -> Built:
    change_database(database(root), "UPDATE documents SET processed_at = '2036' || substr(processed_at, 5)")
    for path in (root, *root.rglob("*")):
        os.utime(path, (2_100_000_000, 2_100_000_000))
    yield None


@IDEAS(
    "database_deleted_beneath",
    "beneath an open process",
    "the database is deleted while the screen is open",
    expect(either(works(), repairs(), refuses("database|evalkit.sqlite|start|open"))),
    moment="beneath",
)
def _(root: Path, workspace: Path) -> Built:
    yield Scene(root, strike=lambda: remove_database(root))


@IDEAS(
    "one_inode_for_two", "mounts", "a backup by hard links: the database is the same file as another folder's", REPAIRED
)
def _(root: Path, workspace: Path) -> Built:
    (workspace / "snapshot").mkdir()
    os.link(database(root), workspace / "snapshot" / "evalkit.sqlite")
    yield None


SLOW = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>
int fsync(int file) { usleep(40000); return ((int (*)(int)) dlsym(RTLD_NEXT, "fsync"))(file); }
int fdatasync(int file) { usleep(40000); return ((int (*)(int)) dlsym(RTLD_NEXT, "fdatasync"))(file); }
"""


@IDEAS(
    "slow_network_disk",
    "mounts",
    "a disk in the network: each fsync takes 40 ms",
    expect(works()),
    needs=("compiler",),
    seconds=180,
)
def _(root: Path, workspace: Path) -> Built:
    yield Scene(root, {"LD_PRELOAD": str(compile_library(workspace, SLOW))})


BAD_SECTOR = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static int is_bad(int file, off_t offset) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 15 || offset < OFFSET) return 0;
    return !strncmp(path + length - 15, "/evalkit.sqlite", 15);
}
ssize_t pread64(int file, void *bytes, size_t count, off_t offset) {
    if (is_bad(file, offset)) { errno = EIO; return -1; }
    return ((ssize_t (*)(int, void *, size_t, off_t)) dlsym(RTLD_NEXT, "pread64"))(file, bytes, count, offset);
}
ssize_t pread(int file, void *bytes, size_t count, off_t offset) { return pread64(file, bytes, count, offset); }
"""


@IDEAS(
    "bad_sector",
    "damage",
    "the disk cannot read the database from the pages of the cases on: an input/output error; the cause is the disk, not the file",
    expect(
        either(works(), repairs(), refuses("evalkit.sqlite|database", "cannot be read|could not be read|disk|device"))
    ),
    needs=("compiler",),
)
def _(root: Path, workspace: Path) -> Built:
    offset, _size = find_page(database(root), "cases")
    library = compile_library(workspace, BAD_SECTOR.replace("OFFSET", str(offset)))
    with closing(sqlite3.connect(f"file:{database(root)}?mode=ro", uri=True)) as connection:
        # SQLite maps no memory by default; if this build does, the fault could not be brought about.
        if connection.execute("PRAGMA mmap_size").fetchone() not in {(0,), None}:
            raise RuntimeError("this SQLite reads by mapping")
    yield Scene(root, {"LD_PRELOAD": str(library)})
