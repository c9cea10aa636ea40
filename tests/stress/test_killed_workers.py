"""A worker killed every ten seconds for minutes: no document lost, none done twice."""

from pathlib import Path

import pytest
from batch.killing_workers import survive

pytestmark = pytest.mark.stress


def test_a_worker_killed_every_ten_seconds(tmp_path: Path) -> None:
    killed = survive(tmp_path, 120, pages=2, seconds=10, seed=1)
    print(f"\n120 scans of 2 pages, {killed} workers killed")
    assert killed >= 3
