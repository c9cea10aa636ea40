"""One folder with everything of a patient's document in it, made once; each test works on a copy."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from once import make_once
from pipeline.patient import create_patient_output


@pytest.fixture(scope="session")
def patient_folder(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_once(tmp_path_factory, "patient", lambda folder: create_patient_output(samples, folder))


@pytest.fixture
def output(patient_folder: Path, tmp_path: Path) -> Path:
    shutil.copytree(patient_folder, tmp_path / "output")
    return tmp_path / "output"
