"""Ten thousand documents: as quick in the end as in the beginning, and in no more memory."""

import os
from pathlib import Path

import pytest
from batch.clusters import cluster
from batch.many import Long, long_run, tiny_notes

pytestmark = pytest.mark.stress

_PART = 1000


def test_ten_thousand_documents_here(tmp_path: Path) -> None:
    folder = tiny_notes(tmp_path / "notes", 10 * _PART)
    assert_steady(long_run(folder, tmp_path / "output", _PART), 10 * _PART)


def test_three_thousand_documents_on_two_workers(tmp_path: Path) -> None:
    folder = tiny_notes(tmp_path / "notes", 3 * _PART)
    with cluster(tmp_path / "cluster", (1, 1)) as started:
        made = long_run(folder, tmp_path / "output", _PART, executor=started.executor)
    assert_steady(made, 3 * _PART)


def assert_steady(made: Long, count: int) -> None:
    """Of processor time, which other programs on the machine do not change; the wall's is printed beside it."""
    first, last = made.took(1), made.took(-1)
    print(
        f"\n{count} documents: first thousand {first.wall:.1f} s ({first.cpu:.1f} s CPU), last {last.wall:.1f} s "
        f"({last.cpu:.1f} s CPU): throughput {first.wall / last.wall:.2f} by the wall, {first.cpu / last.cpu:.2f} by "
        f"processor time; memory +{last.memory / 2**20:.0f} MiB since the first thousand; "
        f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    )
    assert len(made.documents) == count
    assert all(one.decision for one in made.documents)
    assert first.cpu / last.cpu >= 0.9
    assert last.memory <= 60 * 2**20
