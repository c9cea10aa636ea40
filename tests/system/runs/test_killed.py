"""A killed run goes on where it was (two kills here; ten, each into a fresh folder too, in `make stress`)."""

from pathlib import Path

from demo.outputs import contents
from system.runs.killing import killed_at_random, resumed, samples_run

from evalkit.pipeline import RunSummary


def test_a_run_killed_again_and_again_equals_the_undisturbed_one(
    samples: Path, finished: RunSummary, tmp_path: Path
) -> None:
    command = samples_run(samples, tmp_path / "output")
    for seed in range(2):
        killed_at_random(command, seed, longest=2.5)
    assert resumed(command, tmp_path / "output") == contents(Path(finished.output))
