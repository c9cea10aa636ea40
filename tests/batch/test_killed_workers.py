"""Workers are lost and nothing else (a worker every ten seconds for minutes: `make stress`)."""

from pathlib import Path

from batch.killing_workers import survive


def test_workers_killed_while_they_read(tmp_path: Path) -> None:
    assert survive(tmp_path, 5, pages=1, seconds=4, seed=2, most=1) == 1
