"""Killed at ten random moments, resumed, equal to the undisturbed run."""

from pathlib import Path

import pytest
from demo.killing import killed_at_random, resumed
from demo.outputs import contents

from evalkit.batch import RunSummary

pytestmark = pytest.mark.stress


@pytest.mark.parametrize("seed", range(10))
def test_one_kill_into_a_fresh_folder(samples: Path, finished: RunSummary, tmp_path: Path, seed: int) -> None:
    killed_at_random(samples, tmp_path / "output", 100 + seed, longest=5.0)
    assert resumed(samples, tmp_path / "output") == contents(Path(finished.output))


def test_ten_kills_into_one_folder(samples: Path, finished: RunSummary, tmp_path: Path) -> None:
    survived = [killed_at_random(samples, tmp_path / "output", seed, longest=3.0) for seed in range(10)]
    assert any(survived)  # some run was really under way
    assert resumed(samples, tmp_path / "output") == contents(Path(finished.output))
