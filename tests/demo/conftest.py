"""The demo's documents and one run over them, made once for all tests that only look."""

from pathlib import Path

import pytest
from demo.outputs import run_samples

from evalkit.batch import RunSummary
from evalkit.samples import draw


@pytest.fixture(scope="session")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("samples")
    draw(folder)
    return folder


@pytest.fixture(scope="session")
def finished(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> RunSummary:
    return run_samples(samples, tmp_path_factory.mktemp("finished") / "output")
