"""Backups and restores, killed at every step and on disks of every size; and backups while a run writes."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from pipeline.backing_up import back_up_killed_at, count_steps, read_folder, restore_killed_at
from pipeline.conftest import output, patient_folder
from places import open_folder
from system.runs.killing import samples_run
from tables import trying

from evalkit.errors import StoreError
from evalkit.pipeline import backup as backup_module
from evalkit.pipeline import restore as restore_module
from evalkit.pipeline.audit.verify import verify_integrity
from evalkit.pipeline.backup import back_up, list_backups
from evalkit.pipeline.restore import check_backup, restore

__all__ = ["output", "patient_folder"]

pytestmark = pytest.mark.stress

#: Number of sizes of a full disk, for each command.
SIZES = 50


def test_backup_killed_at_every_step(output: Path, tmp_path: Path) -> None:
    back_up(open_folder(output), tmp_path / "backups")
    steps = count_steps(lambda: back_up(open_folder(output), tmp_path / "counted"))
    with trying("a backup, killed", steps):
        for number in range(steps):
            target = tmp_path / f"killed{number}"
            back_up_killed_at(number, output, target)
            shutil.rmtree(target)


def test_restore_killed_at_every_step(output: Path, tmp_path: Path) -> None:
    backup = Path(back_up(open_folder(output), tmp_path / "backups").path)
    steps = count_steps(lambda: restore(backup, tmp_path / "counted"))
    with trying("a restore, killed", steps):
        for number in range(steps):
            folder = tmp_path / f"killed{number}"
            folder.mkdir()
            restore_killed_at(number, backup, folder)
            shutil.rmtree(folder)


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[Callable[[], None]]:
    """Mount a disk of so many bytes; what is yielded makes it large."""
    folder.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mounting, capture_output=True, check=False).returncode:
        pytest.skip("a disk can be mounted by root only")
    try:
        yield lambda: subprocess.run(["mount", "-o", "remount,size=64m", str(folder)], check=True)
    finally:
        subprocess.run(["umount", str(folder)], check=True)
        folder.rmdir()


def sizes_around_writes(backup: Path) -> list[int]:
    """List sizes of a disk that ends just before or after some file of the backup."""
    page, total, ends = 4096, 0, []
    for file in check_backup(backup).files.values():
        total += -(-file.size // page) * page
        ends.append(total)
    return [end + page * (number % 3) for number, end in enumerate(ends[:: max(len(ends) // SIZES, 1)][:SIZES])]


def run_command(command: str, output: Path, backup: Path, place: Path) -> None:
    if command == "backup":
        back_up(open_folder(output), place)
    else:
        restore(backup, place)


def find_error_code(act: Callable[[], None]) -> str | None:
    try:
        act()
    except StoreError as error:
        return error.code
    return None


@pytest.mark.parametrize("is_foreseen", [True, False])
@pytest.mark.parametrize("command", ["backup", "restore"])
def test_full_disk_leaves_nothing_and_works_with_room(
    output: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, is_foreseen: bool
) -> None:
    backup = Path(back_up(open_folder(output), tmp_path / "backups").path)
    if not is_foreseen:  # as if other programs took the room meanwhile
        for module in (backup_module, restore_module):
            monkeypatch.setattr(module, "require_free_bytes", lambda *_: None)
    with trying(f"a full disk, {command}") as tried:
        for size in sizes_around_writes(backup):
            with small_disk(tmp_path / "disk", size) as enlarge:
                act = partial(run_command, command, output, backup, tmp_path / "disk/place")
                if (code := find_error_code(act)) is not None:
                    assert code == "STORE-FULL"
                    assert not list((tmp_path / "disk").rglob("*.json"))
                    tried.times += 1
                    enlarge()
                    act()
                place = tmp_path / "disk/place"
                restored = place if command == "restore" else list_backups(place)[0] / "files"
                assert read_folder(restored) == read_folder(backup / "files")
        assert tried.times > SIZES // 2


def test_backup_while_a_run_writes_is_faultless(samples: Path, tmp_path: Path) -> None:
    output, target = tmp_path / "output", tmp_path / "backups"
    states = set()
    for options in ((), ("--fresh",)):  # the first run of a folder, and one that replaces results
        run = subprocess.Popen(
            [*samples_run(samples, output), *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        with trying("a backup while a run writes") as tried:
            while run.poll() is None:
                if (output / "document_bundles").is_dir():
                    restored = tmp_path / f"restored{tried.times}"
                    restore(Path(back_up(open_folder(output), target).path), restored)
                    report = verify_integrity(open_folder(restored))
                    assert report.faults == ()
                    states.add(report.count_by_kind["results"])
                    shutil.rmtree(restored)
                    tried.times += 1
        assert run.returncode == 0
    assert len(states) > 5
