"""Commands on a small disk of their own that is full, or fills while they work, and what their folder holds then."""

from __future__ import annotations

import json
import logging
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from samples.demo_runs import without_clocks

from evalkit.store import MONITORING_FILE

Resource = Literal["size", "nr_inodes"]
Step = Callable[[], None]

#: What is called once the disk is large again.
_LARGE = "remount,size=256m,nr_inodes=100k"
_BLOCK = 4096
#: C functions that change a disk, of the system and of SQLite's connections.
_SYSTEM_STEPS = {"write", "fsync", "sync", "rename", "replace", "link", "unlink", "mkdir", "rmdir", "open", "ftruncate"}
_SQLITE_STEPS = {"execute", "executemany", "executescript", "commit", "backup", "close", "connect", "flush"}
_CLOCK = re.compile(r"\d{4}-\d\d-\d\d[T_]\d\d[:-]?\d\d[:-]?\d\d(\.\d+)?(Z|[+]00:00)?")
_ROW_NUMBER = re.compile(r"^\((\d+), ")
_DIGEST = re.compile(r"\b[0-9a-f]{64}\b")


@dataclass(frozen=True)
class SmallDisk:
    """A disk in memory, whose size and number of files can be limited."""

    folder: Path

    def count_used(self, resource: Resource) -> int:
        """Count the blocks or files that are in use."""
        disk = os.statvfs(self.folder)
        return disk.f_blocks - disk.f_bfree if resource == "size" else disk.f_files - disk.f_ffree

    def limit(self, resource: Resource, count: int) -> None:
        """Leave room for so many blocks or files in all; for one at least, because 0 ends the limit."""
        self._remount(f"remount,{resource}={max(count, 1) * (_BLOCK if resource == 'size' else 1)}")

    def is_full(self) -> bool:
        """Whether another program has taken all the room."""
        return (self.folder / "filler").exists()

    def fill(self) -> None:
        """Take all the room, as another program would."""
        filler = os.open(self.folder / "filler", os.O_WRONLY | os.O_CREAT)
        while room := os.statvfs(self.folder).f_bavail:
            with suppress(OSError):  # the command's other threads took some of it meanwhile
                os.posix_fallocate(filler, os.fstat(filler).st_size, room * _BLOCK)
        os.close(filler)

    def make_room(self) -> None:
        """End all limits."""
        (self.folder / "filler").unlink(missing_ok=True)
        self._remount(_LARGE)

    def _remount(self, options: str) -> None:
        subprocess.run(["mount", "-o", options, self.folder], check=True)


@contextmanager
def mount_small_disk(folder: Path) -> Iterator[SmallDisk]:
    """Mount a disk in memory; skip the test if this user may not."""
    folder.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", _LARGE.removeprefix("remount,"), "tmpfs", folder]
    if os.geteuid() != 0 or subprocess.run(mounting, capture_output=True, check=False).returncode:
        folder.rmdir()
        pytest.skip("a disk can be mounted by root only")
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", folder], check=True)
        folder.rmdir()


@dataclass(frozen=True)
class Outcome:
    """How a command ended."""

    status: int
    output: str


def run_in_child(act: Callable[[], object], log: Path, on_step: Step | None = None) -> Outcome:
    """Run a command in a process of its own; ``on_step`` is called before each step that changes a disk."""
    child = os.fork()
    if child == 0:
        _act_and_exit(act, log, on_step)
    status = os.waitpid(child, 0)[1]
    return Outcome(os.waitstatus_to_exitcode(status), log.read_text())


def _act_and_exit(act: Callable[[], object], log: Path, on_step: Step | None) -> None:
    status: Any = 0
    try:
        sys.stdout = sys.stderr = log.open("w", buffering=1)
        os.dup2(sys.stdout.fileno(), 1)
        os.dup2(sys.stdout.fileno(), 2)
        logging.basicConfig(force=True, format="%(message)s")  # the test's own handlers would get what is logged
        if on_step:
            profile = _build_profile(on_step)
            threading.setprofile(profile)
            sys.setprofile(profile)
        act()
    except SystemExit as ended:
        status = ended.code or 0
    except BaseException:  # noqa: BLE001 - told to the process of the test
        traceback.print_exc()
        status = 120
    finally:
        sys.setprofile(None)
        os._exit(status)


def _build_profile(on_step: Step) -> Callable[[object, str, Any], None]:
    def profile(_frame: object, event: str, called: Any) -> None:
        if event == "c_call" and is_step(called):
            on_step()

    return profile


def is_step(called: Any) -> bool:
    """Whether a C function changes a disk."""
    owner = getattr(called, "__self__", None)
    if getattr(owner, "__name__", "") == "posix":
        return called.__name__ in _SYSTEM_STEPS
    return called.__name__ in _SQLITE_STEPS and type(owner).__module__ in ("sqlite3", "_io")


def measure_levels(act: Callable[[], object], disk: SmallDisk, resource: Resource, log: Path) -> list[int]:
    """Act on a large disk; list how much was in use before each step, and at the end."""
    levels = log.with_suffix(".levels")
    with levels.open("w") as file:

        def note() -> None:
            os.write(file.fileno(), f"{disk.count_used(resource)}\n".encode())

        outcome = run_in_child(act, log, note)
        note()
    assert outcome.status == 0, outcome.output
    return [int(line) for line in levels.read_text().split()]


def draw_rooms(levels: list[int], count: int, seed: str) -> list[int]:
    """Draw how much room a disk has at first: just less than a write needs, as much, and just more; the rest at random.

    Each room once, so that there are fewer than ``count`` if the command needs little.
    """
    needed = max(levels) - levels[0]
    near = {level - levels[0] + distance for level in levels for distance in (-1, 0, 1)}
    chance = random.Random(seed)
    rooms = sorted(room for room in near if 0 <= room < needed)
    chosen = chance.sample(rooms, min(count, len(rooms)))
    others = sorted(set(range(needed)) - set(chosen))
    return sorted(chosen + chance.sample(others, min(count - len(chosen), len(others))))


@dataclass(frozen=True)
class Contents:
    """What evalkit keeps on a disk: files by name, and the rows of databases by table."""

    files: dict[str, bytes]
    tables: dict[str, list[str]]

    @classmethod
    def read(cls, folder: Path, copied: Path) -> Contents:
        """Read a folder from a copy, because to read SQLite's files takes room."""
        shutil.rmtree(copied, ignore_errors=True)
        shutil.copytree(folder, copied, ignore=shutil.ignore_patterns("filler"))
        paths = {str(path.relative_to(copied)): path for path in sorted(copied.rglob("*")) if path.is_file()}
        tables: dict[str, list[str]] = {}
        for name, path in paths.items():
            if path.name == "evalkit.sqlite":
                with closing(sqlite3.connect(path)) as database:
                    for (table,) in database.execute(
                        "SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'sqlite_sequence'"
                    ).fetchall():
                        rows = map(repr, database.execute(f"SELECT * FROM {table}"))
                        tables[f"{name} {table}"] = sorted(rows)
        kept = {name: path.read_bytes() for name, path in paths.items() if not _is_coordination(name)}
        return cls(kept, tables)

    def find_lost(self, undisturbed: Contents, now: Contents) -> list[str]:
        """List files and rows of this state that the undisturbed command keeps, and that are missing now."""
        lost = [
            name
            for name, content in self.files.items()
            if undisturbed.files.get(name) == content != now.files.get(name)
        ]
        for table, rows in self.tables.items():
            kept = set(rows) & set(undisturbed.tables.get(table, []))
            lost += [table] * len(kept - set(now.tables.get(table, [])))
        return lost

    def find_torn(self) -> list[str]:
        """List the files that are not whole JSON."""
        return [name for name, content in self.files.items() if name.endswith(".json") and not _is_json(content)]

    def without_clocks(self, before: Contents) -> dict[str, Any]:
        """Return files and rows without what follows from clocks: times, and digests that the state before had not."""
        known = set(_DIGEST.findall(b"".join(before.files.values()).decode(errors="replace") + str(before.tables)))

        def blank(text: str) -> str:
            text = _CLOCK.sub("TIME", _ROW_NUMBER.sub("(", text))
            return _DIGEST.sub(lambda digest: digest[0] if digest[0] in known else "DIGEST", text)

        files = {
            blank(name): blank(repr(_parse_without_clocks(content) if name.endswith(".json") else content))
            for name, content in self.files.items()
            if "changes/" not in name and not name.endswith((".xlsx", ".parquet", MONITORING_FILE))
        }
        return files | {
            blank(table): sorted({blank(row) for row in rows if "'changes/'" not in row})
            for table, rows in self.tables.items()
        }


def _parse_without_clocks(content: bytes) -> Any:
    """Parse JSON without times, and without the sessions of a run: it has one more for each time that it is continued."""
    value = without_clocks(json.loads(content))
    return {key: inner for key, inner in value.items() if key != "sessions"} if isinstance(value, dict) else value


def _is_coordination(name: str) -> bool:
    return name.rpartition("/")[2].startswith("evalkit.sqlite") or any(part.startswith(".") for part in name.split("/"))


def _is_json(content: bytes) -> bool:
    try:
        json.loads(content)
    except ValueError:
        return False
    return True


def list_temporary_files(folder: Path) -> list[str]:
    """List what commands leave behind only if they are killed."""
    return [
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file()
        and (path.parent.name == ".tmp" or ".evalkit-" in str(path.relative_to(folder)))
        and path.name != "database.lock"
        and ".999999999-" not in path.name  # what the patient's folder has from the beginning
    ]
