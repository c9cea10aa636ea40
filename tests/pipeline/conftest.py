"""One folder with everything of a patient's document in it, made once; each test works on a copy."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from once import once
from pipeline.patient import worked_on


@pytest.fixture(scope="session")
def made(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return once(tmp_path_factory, "patient", lambda folder: worked_on(samples, folder))


@pytest.fixture
def output(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "output")
    return tmp_path / "output"
