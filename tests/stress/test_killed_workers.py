"""A worker killed every ten seconds for minutes: no document lost, none done twice."""

from pathlib import Path

import pytest
from system.dask.killing_workers import survive
from tables import trying

pytestmark = pytest.mark.stress


def test_a_worker_killed_every_ten_seconds(tmp_path: Path) -> None:
    with trying("a Dask worker, killed") as tried:
        tried.times = survive(tmp_path, 120, pages=2, seconds=10, seed=1)
        assert tried.times >= 3
