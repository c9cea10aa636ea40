"""The tampered folders are what they say: each tampering changes the folder, and the halves have other ideas and enough of them."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path

import pytest
from benchmarks.first_contact.tampered_folders import changes, folder, sealed
from benchmarks.first_contact.tampered_folders import open as open_half
from benchmarks.tampered_folders import try_tamperings

HALVES = (open_half.TAMPERINGS, sealed.TAMPERINGS)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build one folder for all tests of this module."""
    path = tmp_path_factory.mktemp("tampered")
    folder.build_folder(path)
    return path


def describe_folder(root: Path) -> dict[str, tuple[int, int, str, bytes]]:
    """Describe every file and folder by mode, times, link and bytes; of a database, by its rows."""
    described = {}
    for path in [root, *sorted(root.rglob("*"))]:
        link = str(path.readlink()) if path.is_symlink() else ""
        status = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        times = status.st_mtime_ns if path.is_file() else 0
        described[path.relative_to(root).as_posix()] = (status.st_mode, times, link, content)
    return described


def test_each_half_has_enough_of_both_kinds() -> None:
    for half in HALVES:
        counts = Counter(tampering.matters for tampering in half)
        assert counts[True] >= 36
        assert counts[False] >= 24
        assert all((tampering.seen_by is None) == (not tampering.matters) for tampering in half)
        assert all(tampering.description.endswith(".") for tampering in half)


def test_halves_share_no_idea_by_name_or_words() -> None:
    for attribute in ("name", "description"):
        values = [getattr(tampering, attribute) for half in HALVES for tampering in half]
        assert len(values) == len(set(values))


def test_files_are_written_in_the_folders_own_form(base: Path) -> None:
    for path in sorted((base / "output").glob("*/*.json")):
        before = path.read_bytes()
        with changes.edit_json(path):
            pass
        assert path.read_bytes() == before, path


def test_each_dishonest_change_changes_the_folder(base: Path, tmp_path: Path) -> None:
    before = describe_folder(base / "output")
    for number, tampering in enumerate(tampering for half in HALVES for tampering in half if tampering.matters):
        copy = tmp_path / str(number)
        shutil.copytree(base, copy, symlinks=True, ignore=shutil.ignore_patterns("samples"))
        tampering.apply(copy / "output", random.Random(0))
        assert describe_folder(copy / "output") != before, tampering.name
        shutil.rmtree(copy)


def test_dishonest_changes_are_the_same_for_one_seed(base: Path, tmp_path: Path) -> None:
    for number, tampering in enumerate(tampering for half in HALVES for tampering in half[::7] if tampering.matters):
        described = []
        for attempt in ("a", "b"):
            copy = tmp_path / f"{number}{attempt}"
            shutil.copytree(base, copy, symlinks=True, ignore=shutil.ignore_patterns("samples"))
            tampering.apply(copy / "output", random.Random(3))
            files = describe_folder(copy / "output").items()
            described.append({name: (mode, content) for name, (mode, _, _, content) in files if "sqlite" not in name})
        assert described[0] == described[1], tampering.name


def test_audit_verify_judges_every_open_change_rightly(base: Path) -> None:
    trials = try_tamperings(base, open_half.TAMPERINGS, seed=1)
    assert len(trials) >= 60
    assert [(trial.tampering.name, trial.by_verify, trial.by_against) for trial in trials if not trial.is_right] == []
