"""Ten thousand documents: as quick in the end as in the beginning, and in no more memory."""

import os
from pathlib import Path

import pytest
from pipeline.many import Long, idle_cpu, long_run, tiny_notes
from system.dask.clusters import cluster

import evalkit

pytestmark = pytest.mark.stress

_PART = 1000


def test_ten_thousand_documents_here(tmp_path: Path) -> None:
    folder = tiny_notes(tmp_path / "notes", 10 * _PART)
    assert_steady(long_run(folder, tmp_path / "output", _PART), 10 * _PART)


def test_three_thousand_documents_on_two_workers(tmp_path: Path) -> None:
    folder = tiny_notes(tmp_path / "notes", 3 * _PART)
    with cluster(tmp_path / "cluster", (1, 1)) as started:
        evalkit.run([folder / "part0" / "note_00000.pdf"], output=tmp_path / "one", executor=started.executor)
        idle = idle_cpu(5.0)
        made = long_run(folder, tmp_path / "output", _PART, executor=started.executor)
    assert_steady(made, 3 * _PART, idle)


def assert_steady(made: Long, count: int, idle: float = 0.0) -> None:
    """The last thousand as quick as the first, in processor time or in effort; the wall's is printed beside it.

    Other programs on the machine move the two apart; what really grows from document to document shows in both.
    """
    first, last = made.took(1, idle), made.took(-1, idle)
    by_cpu, by_effort = first.cpu / last.cpu, first.effort / last.effort
    print(
        f"\n{count} documents: first thousand {first.wall:.1f} s ({first.cpu:.1f} s CPU), last {last.wall:.1f} s "
        f"({last.cpu:.1f} s CPU): throughput {first.wall / last.wall:.2f} by the wall, {by_cpu:.2f} by processor "
        f"time, {by_effort:.2f} by effort; memory +{last.memory / 2**20:.0f} MiB since the first thousand; "
        f"idle {idle:.2f} s a second; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    )
    assert len(made.documents) == count
    assert all(one.decision for one in made.documents)
    assert max(by_cpu, by_effort) >= 0.95
    assert last.memory <= 30 * 2**20
