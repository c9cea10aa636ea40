"""The fuzz tables: inputs tried, crashes 0, losses 0. `make stress` prints them."""

from __future__ import annotations

from pathlib import Path

import pytest
from fuzz.loading import fuzz
from fuzz.reading import read_damaged, resumed_over_damage
from pipeline.conftest import patient_folder
from tables import EVERY

__all__ = ["patient_folder"]

pytestmark = pytest.mark.stress


@pytest.mark.parametrize("seed", range(1, 5))
def test_every_kind_of_file_damaged_many_times(patient_folder: Path, tmp_path: Path, seed: int) -> None:
    table = fuzz(patient_folder, tmp_path, each=300, seed=seed)
    EVERY.take(table)
    assert table.faults == []


@pytest.mark.parametrize("seed", range(1, 6))
def test_many_damaged_pdfs_and_bombs(samples: Path, tmp_path: Path, seed: int) -> None:
    table = read_damaged(samples, tmp_path, each=60, seed=seed, bombs=1 if seed == 1 else 0)
    EVERY.take(table)
    assert table.faults == []


def test_many_runs_over_damaged_folders(patient_folder: Path, tmp_path: Path) -> None:
    table = resumed_over_damage(patient_folder, tmp_path, each=100, seed=1)
    EVERY.take(table)
    assert table.faults == []
