"""Killed at random moments, resumed, equal to the undisturbed run; and no call that had ended is paid twice."""

from pathlib import Path

import pytest
from samples.demo_runs import read_output_files
from system.runs.killing import killed_at_random, resume_run, samples_run
from system.runs.live import gemini_run, notes, paid_twice, serve_model
from tables import trying

from evalkit.pipeline import RunSummary

pytestmark = pytest.mark.stress


@pytest.mark.parametrize("seed", range(10))
def test_one_kill_into_a_fresh_folder(samples: Path, demo_run: RunSummary, tmp_path: Path, seed: int) -> None:
    command = samples_run(samples, tmp_path / "output")
    with trying("a run, killed") as tried:
        tried.times = killed_at_random(command, 100 + seed, longest=5.0)
        assert resume_run(command, tmp_path / "output") == read_output_files(Path(demo_run.output))


def test_ten_kills_into_one_folder(samples: Path, demo_run: RunSummary, tmp_path: Path) -> None:
    command = samples_run(samples, tmp_path / "output")
    with trying("a run, killed") as tried:
        tried.times = sum(killed_at_random(command, seed, longest=3.0) for seed in range(10))
        assert tried.times  # some run was really under way
        assert resume_run(command, tmp_path / "output") == read_output_files(Path(demo_run.output))


def test_twenty_kills_during_200_documents_with_a_model(tmp_path: Path) -> None:
    folder, output = notes(tmp_path / "notes", 200), tmp_path / "killed"
    with serve_model(tmp_path / "whole") as server:
        whole = resume_run(gemini_run(folder, tmp_path / "whole"), tmp_path / "whole", server.environment)
    with serve_model(output) as server, trying("a run that asks a language model, killed") as tried:
        command = gemini_run(folder, output)
        tried.times = sum(killed_at_random(command, seed, 6.0, server.environment) for seed in range(20))
        assert tried.times
        assert resume_run(command, output, server.environment) == whole
        assert paid_twice(server, output) <= 16 * tried.times
