"""A killed run goes on where it was (two kills here; ten, each into a fresh folder too, in `make stress`)."""

from pathlib import Path

from samples.demo_runs import read_output_files
from system.runs.killing import killed_at_random, resume_run, samples_run

from evalkit.pipeline import RunSummary


def test_a_run_killed_again_and_again_equals_the_undisturbed_one(
    samples: Path, demo_run: RunSummary, tmp_path: Path
) -> None:
    command = [*samples_run(samples, tmp_path / "output"), "--workers", "1"]  # the undisturbed one has more
    for seed in range(2):
        killed_at_random(command, seed, longest=2.5)
    assert resume_run(command, tmp_path / "output") == read_output_files(Path(demo_run.output))
