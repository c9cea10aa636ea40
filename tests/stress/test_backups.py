"""Backups and restores, killed at every step; and backups while a run writes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from pipeline.backing_up import back_up_killed_at, count_steps, restore_killed_at
from pipeline.conftest import output, patient_folder
from places import open_folder
from system.runs.killing import samples_run
from tables import trying

from evalkit.pipeline.audit.verify import verify_integrity
from evalkit.pipeline.backup import back_up
from evalkit.pipeline.restore import restore

__all__ = ["output", "patient_folder"]

pytestmark = pytest.mark.stress


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
