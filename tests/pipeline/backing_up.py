"""Killing what backs up or restores at one of its steps, and comparing output folders."""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from places import open_folder, open_index

from evalkit.pipeline.backup import back_up, list_backups
from evalkit.pipeline.restore import check_backup, restore
from evalkit.store import is_coordination_file

#: Functions whose calls are steps: what changes a disk or waits for it, and what locks.
STEPS = {"write", "fsync", "sync", "rename", "link", "unlink", "mkdir", "rmdir", "flock", "backup", "execute", "open"}


def killed_at(number: int, act: Callable[[], object]) -> bool:
    """Act in a process that kills itself at its ``number``-th step; return False if it has fewer."""
    child = os.fork()
    if child == 0:
        steps = iter(range(number))

        def count(_frame: object, event: str, called: Any) -> None:
            if event == "c_call" and called.__name__ in STEPS and next(steps, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)

        status = 1
        try:
            sys.setprofile(count)
            act()
            status = 0
        finally:
            os._exit(status)
    status = os.waitpid(child, 0)[1]
    assert status in (0, signal.SIGKILL)
    return status != 0


def count_steps(act: Callable[[], object]) -> int:
    """Count the steps of what is done once."""
    steps = 0

    def count(_frame: object, event: str, called: Any) -> None:
        nonlocal steps
        steps += event == "c_call" and called.__name__ in STEPS

    sys.setprofile(count)
    try:
        act()
    finally:
        sys.setprofile(None)
    return steps


def back_up_killed_at(number: int, output: Path, target: Path) -> None:
    """Kill a backup at a step: the backups that are there are whole, and the next one works and clears up."""
    before = list_backups(target)
    killed_at(number, lambda: back_up(open_folder(output), target))
    for backup in list_backups(target):
        check_backup(backup)
    back_up(open_folder(output), target)
    assert len(list_backups(target)) in (len(before) + 1, len(before) + 2)
    assert {path.name for path in target.iterdir()} == {path.name for path in list_backups(target)}


def restore_killed_at(number: int, backup: Path, folder: Path) -> None:
    """Kill a restore at a step: the folder is missing or whole, and the next one works and clears up."""
    restored = folder / "restored"
    killed_at(number, lambda: restore(backup, restored))
    if not restored.exists():
        restore(backup, restored)
    assert read_folder(restored) == read_folder(backup / "files")
    assert {path.name for path in folder.iterdir()} <= {"restored", ".evalkit-aside"}
    assert not list(folder.glob(".evalkit-aside/*/files"))


def read_folder(output: Path) -> dict[str, bytes | dict[str, list[Any]]]:
    """Read the files of an output folder and the rows of its database."""
    contents: dict[str, Any] = {
        name: path.read_bytes()
        for path in output.rglob("*")
        if path.is_file() and not is_coordination_file(name := str(path.relative_to(output)))
    }
    with closing(sqlite3.connect(output / "evalkit.sqlite")) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        contents["tables"] = {name: sorted(map(repr, database.execute(f"SELECT * FROM {name}"))) for name in tables}
    return contents


def list_queue(output: Path | str) -> list[dict[str, Any]]:
    """List the cases of an output folder as its queue shows them."""
    with open_index(output) as index:
        return index.list_cases_worst_first()
