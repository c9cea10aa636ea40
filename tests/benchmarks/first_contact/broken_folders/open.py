"""The open half of the broken folders."""

from __future__ import annotations

import json
import shutil
import stat
import subprocess
from collections.abc import Iterator
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
    give_to_nobody,
    hold,
    leave_journal,
    list_reviewed,
    list_waiting,
    mount,
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
FULL = refuses("full|no space|space left|disk space", "free|room|space")
READ_ONLY = refuses("read-only|permission|not writable|cannot be written|cannot write")
CANNOT_READ = refuses("permission|may not be read|cannot be opened|cannot be read|not allowed")
#: The database is beyond use and its drafts with it: what takes its place is said, or what to do about it.
BEYOND_USE = expect(
    either(
        repairs(()),
        refuses(
            "evalkit.sqlite", "damaged|not a database|no database|not evalkit's", "reindex|restore|backup", never=()
        ),
    )
)
TAKEN_FOR_OTHER = expect(
    either(
        repairs(()),
        refuses(
            "evalkit.sqlite|database",
            "another|other|not evalkit's|not of|does not belong",
            never=("full", "permission"),
        ),
    )
)


@IDEAS("missing_alone", "missing", "the database was deleted, with everything beside it", REPAIRED)
def _(root: Path, workspace: Path) -> Built:
    remove_database(root)
    yield None


@IDEAS("missing_but_its_wal", "missing", "the database was deleted; its -wal and -shm are still there", REPAIRED)
def _(root: Path, workspace: Path) -> Built:
    leave_journal(database(root), "wal", "UPDATE cases SET pages = pages")
    database(root).unlink()
    yield None


@IDEAS("zero_bytes", "empty", "the database has 0 bytes, as after a power failure", REPAIRED)
def _(root: Path, workspace: Path) -> Built:
    database(root).write_bytes(b"")
    yield None


@IDEAS(
    "tables_newer",
    "tables",
    "a newer version made the database",
    expect(refuses("version", "newer|install|upgrade")),
    restore_database,
)
def _(root: Path, workspace: Path) -> Built:
    change_database(database(root), "UPDATE schema_number SET number = 99")
    yield None


@IDEAS("tables_version_3", "tables", "the tables are of version 3: closings without the outcomes of types", REPAIRED)
def _(root: Path, workspace: Path) -> Built:
    change_database(
        database(root), "ALTER TABLE closings DROP COLUMN type_outcomes", "UPDATE schema_number SET number = 3"
    )
    yield None


@IDEAS(
    "of_another_folder",
    "foreign",
    "the database of another output folder was copied here: no case of it is ours",
    TAKEN_FOR_OTHER | REPAIRED,
    restore_database,
)
def _(root: Path, workspace: Path) -> Built:
    change_database(
        database(root),
        *(f"UPDATE {table} SET case_id = 'ward_b_' || case_id" for table in ("cases", "closings", "heads")),
        "UPDATE cases SET doc_id = 'ward_b_' || doc_id",
        "UPDATE documents SET doc_id = 'ward_b_' || doc_id, sha256 = substr(sha256, 2) || 'b'",
    )
    yield None


@IDEAS(
    "older_by_three_cases",
    "older copy",
    "a copy of the database from before three of the cases and their documents",
    REPAIRED,
)
def _(root: Path, workspace: Path) -> Built:
    names = ", ".join(f"'{name}'" for name in list_waiting(root)[:3])
    change_database(
        database(root), *(f"DELETE FROM {table} WHERE doc_id IN ({names})" for table in ("cases", "documents"))
    )
    yield None


@IDEAS(
    "rows_of_cases_deleted",
    "older copy",
    "all waiting cases were deleted from the database; the documents are in it",
    REPAIRED,
)
def _(root: Path, workspace: Path) -> Built:
    change_database(database(root), "DELETE FROM cases WHERE review_status = 'pending'")
    yield None


@IDEAS("header_damaged", "damage", "the first 100 bytes of the database are noise", BEYOND_USE, restore_database)
def _(root: Path, workspace: Path) -> Built:
    overwrite(database(root), 0, draw_bytes("header", 100))
    yield None


@IDEAS("truncated_half", "damage", "the database ends after half of its pages", BEYOND_USE, restore_database)
def _(root: Path, workspace: Path) -> Built:
    content = database(root).read_bytes()
    database(root).write_bytes(content[: len(content) // 8192 * 4096])
    yield None


@IDEAS(
    "wal_lost", "wal", "the last cases were written to the -wal only, and a copy of the folder left it out", REPAIRED
)
def _(root: Path, workspace: Path) -> Built:
    name = list_waiting(root)[-1]
    healthy = database(root).read_bytes()
    change_database(
        database(root), f"DELETE FROM cases WHERE case_id = '{name}'", f"DELETE FROM documents WHERE doc_id = '{name}'"
    )
    before = workspace / "with_case.sqlite"
    before.write_bytes(healthy)
    leave_journal(
        database(root),
        "wal",
        f"ATTACH '{before}' AS kept",
        f"INSERT INTO documents SELECT * FROM kept.documents WHERE doc_id = '{name}'",
    )
    for suffix in ("-wal", "-shm"):
        Path(f"{database(root)}{suffix}").unlink()
    yield None


@IDEAS(
    "text_file",
    "not a file of SQLite",
    "the database is a text: somebody saved a message under its name",
    BEYOND_USE,
    restore_database,
)
def _(root: Path, workspace: Path) -> Built:
    database(root).write_text("The backup has failed: the share was not mounted.\n" * 200)
    yield None


@IDEAS(
    "directory",
    "not a file of SQLite",
    "a folder has the database's name: a container made the place of a missing volume",
    expect(either(repairs(), refuses("evalkit.sqlite", "folder|directory|not a file"))),
    restore_database,
)
def _(root: Path, workspace: Path) -> Built:
    remove_database(root)
    database(root).mkdir()
    yield None


@IDEAS(
    "symbolic_link",
    "not a file of SQLite",
    "the database was moved to a faster disk and is a symbolic link",
    expect(either(works(), refuses("link"))),
    restore_database,
)
def _(root: Path, workspace: Path) -> Built:
    shutil.move(database(root), workspace / "fast.sqlite")
    database(root).symlink_to(workspace / "fast.sqlite")
    yield None


@IDEAS(
    "history_of_a_browser",
    "foreign",
    "the database is another program's: a browser's history, with its own version and application's number",
    expect(
        refuses(
            "evalkit.sqlite|database",
            "another|other|not evalkit's|not of evalkit|no database of evalkit",
            never=("nothing", "full"),
        )
    ),
    restore_database,
)
def _(root: Path, workspace: Path) -> Built:
    remove_database(root)
    change_database(
        database(root),
        "CREATE TABLE moz_places (id INTEGER PRIMARY KEY, url TEXT, visit_count INTEGER)",
        "INSERT INTO moz_places (url, visit_count) VALUES ('about:blank', 7)",
        "PRAGMA user_version = 77",
        "PRAGMA application_id = 252006674",
    )
    yield None


@IDEAS(
    "mode_0000",
    "permissions",
    "nobody may read the database: mode 0000",
    expect(either(works(), CANNOT_READ), CANNOT_READ),
    needs=("root",),
    is_unchanged=True,
)
def _(root: Path, workspace: Path) -> Built:
    give_to_nobody(root)
    database(root).chmod(0)
    yield Scene(root, is_nobody=True)
    database(root).chmod(0o600)
    take_back(root)


@IDEAS(
    "folder_mode_0555",
    "read-only",
    "an archive: its folders have mode 0555, its files 0444, and the user is not root",
    expect(works(), READ_ONLY, review=either(works(), READ_ONLY)),
    needs=("root",),
    is_unchanged=True,
)
def _(root: Path, workspace: Path) -> Built:
    paths = [root, *root.rglob("*")]
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in paths}
    give_to_nobody(root)
    for path in paths:
        path.chmod(0o555 if path.is_dir() else 0o444)
    yield Scene(root, is_nobody=True)
    for path, mode in modes.items():
        path.chmod(mode)
    take_back(root)


@IDEAS(
    "bind_mount_read_only",
    "read-only",
    "the folder is mounted read-only",
    expect(works(), READ_ONLY, review=either(works(), READ_ONLY)),
    needs=("mounts",),
    is_unchanged=True,
)
def _(root: Path, workspace: Path) -> Built:
    place = workspace / "mounted"
    place.mkdir()
    with mount("--bind", root, place):
        subprocess.run(["mount", "-o", "remount,ro,bind", str(place)], check=True)
        yield Scene(place)


@IDEAS(
    "immutable_database",
    "read-only",
    "the database has the attribute immutable, which holds for root too",
    expect(works(), either(works(), READ_ONLY), claim=READ_ONLY, save=either(READ_ONLY, works())),
    needs=("immutable",),
)
def _(root: Path, workspace: Path) -> Built:
    subprocess.run(["chattr", "+i", str(database(root))], check=True)
    yield None
    subprocess.run(["chattr", "-i", str(database(root))], check=True)


@IDEAS(
    "full_when_the_database_is_made",
    "full disk",
    "the disk is full to the last byte, and the database is missing",
    expect(either(works(), repairs(), FULL), FULL, review=either(works(), FULL)),
    needs=("mounts",),
)
def _(root: Path, workspace: Path) -> Built:
    with move_to_small_disk(root, workspace) as folder:
        remove_database(folder)
        fill(folder.parent, 0)
        yield Scene(folder)


@IDEAS(
    "full_at_the_first_claim",
    "full disk",
    "4 kB are left when an expert opens the first case",
    expect(works(), either(works(), FULL), claim=either(works(), FULL), save=either(works(), FULL)),
    needs=("mounts",),
    moment="claim",
)
def _(root: Path, workspace: Path) -> Built:
    with move_to_small_disk(root, workspace) as folder:
        yield Scene(folder, strike=lambda: fill(folder.parent, 4096))


@IDEAS(
    "full_at_a_review",
    "full disk",
    "40 kB are left when an expert saves a review",
    expect(works(), either(works(), FULL), save=either(works(), FULL)),
    needs=("mounts",),
    moment="save",
)
def _(root: Path, workspace: Path) -> Built:
    with move_to_small_disk(root, workspace) as folder:
        yield Scene(folder, strike=lambda: fill(folder.parent, 40960))


@IDEAS(
    "largest_file_128_kB",
    "limits",
    "the user may write no file above 128 kB (RLIMIT_FSIZE); the database is larger",
    expect(works(), either(works(), refuses("too large|file size|limit|full|space|cannot be written"))),
)
def _(root: Path, workspace: Path) -> Built:
    yield Scene(root, limits={"fsize": 128 << 10})


@IDEAS(
    "locked_for_writing",
    "locks",
    "another process has begun to write (BEGIN EXCLUSIVE) and does not end",
    expect(
        works(),
        either(works(), refuses("another process|other process|busy|in use|locked")),
        review=either(works(), refuses("another process|other process|busy|in use|locked")),
    ),
    seconds=120,
)
def _(root: Path, workspace: Path) -> Built:
    with hold(HOLD_DATABASE, database(root), "BEGIN EXCLUSIVE", "UPDATE cases SET pages = pages"):
        yield None


@IDEAS("locked_for_reading", "locks", "an analyst's program has a transaction open that reads", expect(works()))
def _(root: Path, workspace: Path) -> Built:
    with hold(HOLD_DATABASE, database(root), "BEGIN", "SELECT count(*) FROM cases"):
        yield None


NAMES_THE_PACKET = refuses("sme_packet|case|packet", "missing|not there|does not exist|lost|restore")


def bring_packets_back(root: Path, workspace: Path) -> None:
    """Restore the packets from a backup."""
    for path in (workspace / "packets").iterdir():
        shutil.copy2(path, root / "sme_packets")


@IDEAS(
    "two_packets_missing",
    "files against database",
    "two waiting packets are gone; the database has their cases",
    expect(either(works(), repairs(), NAMES_THE_PACKET), audit_verify=NAMES_THE_PACKET),
    bring_packets_back,
)
def _(root: Path, workspace: Path) -> Built:
    (workspace / "packets").mkdir()
    for name in list_waiting(root)[1:3]:
        shutil.move(root / "sme_packets" / f"sme_packet_{name}.json", workspace / "packets")
    yield None


@IDEAS(
    "packet_added",
    "files against database",
    "a document's packet, result and bundle came back from a backup; the database has never seen them",
    expect(either(works(), repairs()), audit_verify=either(works(), repairs(), refuses("restored_document"))),
    waiting=1,
)
def _(root: Path, workspace: Path) -> Built:
    name = list_waiting(root)[0]
    for pattern in ("sme_packets/sme_packet_{}.json", "results/{}.json", "document_bundles/{}.json"):
        path = root / pattern.format(name)
        text = path.read_text("utf-8").replace(f'"{name}"', '"restored_document"')
        record = json.loads(text.replace(f"{name}.json", "restored_document.json"))
        if "sha256" in record:
            record["sha256"] = "5e" * 32
        target = root / pattern.format("restored_document")
        target.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", "utf-8")
        target.chmod(0o600)
    yield None


@IDEAS(
    "a_case_twice",
    "names",
    "a program that synchronises left a second packet of a case: “… (conflicted copy).json”",
    expect(
        either(works(), repairs(), refuses("conflicted copy|sme_packet")),
        audit_verify=either(works(), refuses("conflicted copy|sme_packet")),
    ),
    lambda root, workspace: next((root / "sme_packets").glob("*conflicted*")).unlink(missing_ok=True),
)
def _(root: Path, workspace: Path) -> Built:
    path = root / "sme_packets" / f"sme_packet_{list_waiting(root)[2]}.json"
    shutil.copy2(path, path.with_name(f"{path.stem} (conflicted copy).json"))
    yield None


def bring_reviews_back(root: Path, workspace: Path) -> None:
    """Restore the reviews from a backup; what was reviewed since has names of its own."""
    shutil.copytree(workspace / "reviews", root / "reviews", dirs_exist_ok=True)


@IDEAS(
    "reviews_missing",
    "files against database",
    "the folder with all reviews is gone; ground truth and database know of them",
    expect(
        either(works(), repairs(), refuses("review", "missing|restore|not there|lost")),
        audit_verify=refuses("review", "missing|restore|not there|lost"),
    ),
    bring_reviews_back,
)
def _(root: Path, workspace: Path) -> Built:
    if not list_reviewed(root):
        raise ValueError("the healthy folder has no review")
    shutil.move(root / "reviews", workspace / "reviews")
    yield None


@IDEAS(
    "packets_folder_mode_0000",
    "permissions",
    "the folder of packets may not be entered: mode 0000",
    expect(
        CANNOT_READ,
        show=either(works(), CANNOT_READ),
        export=either(works(), CANNOT_READ),
        report=either(works(), CANNOT_READ),
        open_review=either(works(), CANNOT_READ),
        queue=either(works(), CANNOT_READ),
    ),
    needs=("root",),
    is_unchanged=True,
)
def _(root: Path, workspace: Path) -> Built:
    give_to_nobody(root)
    (root / "sme_packets").chmod(0)
    yield Scene(root, is_nobody=True)
    (root / "sme_packets").chmod(0o700)
    take_back(root)


@IDEAS(
    "temporary_folder_is_a_file",
    "temporary files",
    "`.tmp` of the folder is a file",
    expect(works(), either(works(), refuses("tmp"))),
    lambda root, workspace: (root / ".tmp").is_file() and (root / ".tmp").unlink(),
)
def _(root: Path, workspace: Path) -> Built:
    shutil.rmtree(root / ".tmp", ignore_errors=True)
    (root / ".tmp").write_text("")
    yield None


@IDEAS(
    "killed_in_the_middle",
    "temporary files",
    "half-written files of killed processes are in `.tmp` and in every folder",
    expect(works()),
)
def _(root: Path, workspace: Path) -> Built:
    (root / ".tmp").mkdir(mode=0o700, exist_ok=True)
    for number, path in enumerate(sorted((root / "results").iterdir())[:5]):
        (root / ".tmp" / f"{path.name}.{number}.tmp").write_bytes(path.read_bytes()[:99])
        (root / "sme_packets" / f".{path.name}.{number}.tmp").write_bytes(path.read_bytes()[:99])
    yield None


CLOCK = """
#include <time.h>
#include <sys/time.h>
#include <sys/syscall.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *now) {
    int status = syscall(SYS_clock_gettime, clock, now);
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) now->tv_sec %= 86400;
    return status;
}
int gettimeofday(struct timeval *now, void *zone) {
    struct timespec exact; clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec; now->tv_usec = exact.tv_nsec / 1000; return 0;
}
time_t time(time_t *now) {
    struct timespec exact; clock_gettime(CLOCK_REALTIME, &exact);
    if (now) *now = exact.tv_sec;
    return exact.tv_sec;
}
"""


@IDEAS(
    "clock_at_1970",
    "clock",
    "the machine's clock says 1 January 1970: its battery is empty",
    expect(works(), either(works(), refuses("clock|time|date"))),
    needs=("compiler",),
)
def _(root: Path, workspace: Path) -> Built:
    yield Scene(root, {"LD_PRELOAD": str(compile_library(workspace, CLOCK))})


@IDEAS(
    "folder_replaced_beneath",
    "beneath an open process",
    "while the screen is open, the folder is renamed and a copy of it takes its name",
    expect(either(works(), repairs(), refuses("folder|database|start|open"))),
    moment="beneath",
)
def _(root: Path, workspace: Path) -> Built:
    def replace() -> None:
        root.rename(root.with_name(f"{root.name}.old"))
        shutil.copytree(root.with_name(f"{root.name}.old"), root, symlinks=True)

    yield Scene(root, strike=replace)
    old = root.with_name(f"{root.name}.old")
    # What an expert saved through the open process may not be only in the old folder, which goes now.
    shutil.rmtree(old, ignore_errors=True)


@IDEAS(
    "temporary_files_elsewhere",
    "mounts",
    "the folder is on another disk than the system's temporary files",
    expect(works()),
    needs=("mounts",),
)
def _(root: Path, workspace: Path) -> Built:
    with move_to_small_disk(root, workspace) as folder:
        (workspace / "temporary").mkdir()
        yield Scene(folder, {"TMPDIR": str(workspace / "temporary")})
