"""Many processes review from one queue: no error, no case decided twice, nothing acknowledged is lost, and saving is quick.

A few seconds of four processes run with every test; ten minutes of twenty in `make stress`
(``EVALKIT_STRESS_SECONDS`` sets another length).
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from places import open_folder, open_index
from review.conftest import Build
from review.conftest import Workspace as Folder
from servers.postgresql import PostgreSQLServer, programs
from stress import reviewing

from evalkit.review.case_files import read_review
from evalkit.review.ground_truth import list_revisions
from evalkit.store import hash_canonical_json

SECONDS = float(os.environ.get("EVALKIT_STRESS_SECONDS", "600"))
PROCESSES = 20
PAUSE = 1.0
"""Seconds between two actions of one process, on average; an expert takes minutes for a case, these about 5 seconds."""
MOST = 50.0
"""Milliseconds that 95 of 100 saves may take."""


@dataclass
class Told:
    """What the processes said."""

    submitted: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """The digests of acknowledged reviews, by case."""
    milliseconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """Of each acknowledged ``draft`` and review."""
    refused: Counter[str] = field(default_factory=Counter)

    def hear(self, line: str) -> None:
        said = json.loads(line)
        if "refused" in said:
            self.refused[said["refused"]] += 1
            return
        (what,) = said.keys() & {"draft", "submitted"}
        self.milliseconds[what].append(said["ms"])
        if what == "submitted":
            self.submitted[said["case"]].append(said["submitted"])

    @property
    def p95(self) -> float:
        """Of all saves, in milliseconds."""
        return _p95([*self.milliseconds["draft"], *self.milliseconds["submitted"]])

    def __str__(self) -> str:
        kinds = (
            f"{len(found)} {what}: median {statistics.median(found):.1f}, p95 {_p95(found):.1f}, most {max(found):.1f} ms"
            for what, found in sorted(self.milliseconds.items())
        )
        return f"{'; '.join(kinds)}; all p95 {self.p95:.1f} ms; refused {dict(self.refused)}"


def _p95(found: list[float]) -> float:
    return statistics.quantiles(found, n=20)[-1]


def review(root: Path, processes: int, seconds: float, pause: float) -> Told:
    """So many processes at work on one queue, after checking all that they left behind."""
    folder = Folder(root)
    # More than they can do: each case takes an opening, the drafts and a submission.
    count = int(processes * (seconds / pause / (reviewing.DRAFTS + 2) * 1.5 + 5))
    with folder.index.batch_into_one_transaction():
        for number in range(count):
            folder.publish(Build.single("Clinical Note"), [Build.issue(severity="MINOR")], doc_id=f"case_{number:05d}")
    told = _at_work(root, processes, seconds, pause)
    _check(folder, told, count)
    folder.index.close()
    return told


def _at_work(root: Path, processes: int, seconds: float, pause: float) -> Told:
    words = [sys.executable, reviewing.__file__, str(root)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    begun = [
        subprocess.Popen([*words, f"dr_{number}", str(number)], env=env, text=True, **pipes)
        for number in range(processes)
    ]
    try:
        for process in begun:
            assert "ready" in process.stdout.readline(), process.stderr.read()
        for process in begun:  # all of them at one moment: the slowest has long been imported
            process.stdin.write(f"{seconds} {pause}\n")
            process.stdin.flush()
        told = Told()
        for process in begun:
            said, complaint = process.communicate(timeout=seconds + 120)
            assert (process.returncode, complaint) == (0, "")
            for line in said.splitlines():
                told.hear(line)
    finally:
        for process in begun:
            process.kill()
            process.wait()
    return told


def _check(folder: Folder, told: Told, count: int) -> None:
    files, index = open_folder(folder.root), open_index(folder.root)
    for case_id in (f"case_{number:05d}" for number in range(count)):
        found = list_revisions(files, case_id)
        reviews = [read_review(files, case_id, revision) for revision in found]
        digests = [hash_canonical_json(one.model_dump(mode="json")) for one in reviews]
        assert digests == told.submitted.get(case_id, []), f"{case_id} was decided twice, or a review is lost"
        assert found in ([], [1])
        assert all(one.prev_sha256 is None for one in reviews)
    statuses = {row["case_id"]: row["review_status"] for row in index.list_cases_worst_first()}
    assert {case_id for case_id, status in statuses.items() if status == "completed"} == set(told.submitted)
    assert index.count_closed_cases() == len(told.submitted) < count
    claimed = index.claims.map_live_claims_by_case_id("")
    assert claimed.keys().isdisjoint(told.submitted)
    for case_id in told.submitted:
        reviewer = read_review(files, case_id, 1).reviewer
        assert index.drafts.find_newest_draft(case_id, reviewer, f"tab of {reviewer}") is None
    index.close()


@pytest.mark.usefixtures("database")
def test_four_processes_decide_each_case_once(tmp_path: Path) -> None:
    told = review(tmp_path / "output", 4, 3.0, 0.05)
    print(f"\n{told}")
    assert len(told.submitted) >= 5
    assert told.refused.keys() <= {"CaseTaken", "ReviewConflict", "ReviewRefused"}


@pytest.fixture(params=["sqlite", "postgresql"])
def in_earnest(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Each database as it would be in use: what is committed is on the disk."""
    if request.param == "sqlite":
        yield request.param
        return
    if programs() is None:
        pytest.skip("Debian's postgresql is not installed")
    server = PostgreSQLServer(syncs=True)
    monkeypatch.setenv("EVALKIT_DATABASE", server.url)
    yield request.param
    server.remove()


@pytest.mark.stress
def test_twenty_processes_for_ten_minutes(in_earnest: str, tmp_path: Path) -> None:
    told = review(tmp_path / "output", PROCESSES, SECONDS, PAUSE)
    print(f"\n{in_earnest}, {PROCESSES} processes, {SECONDS:.0f} s: {told}")
    assert told.p95 <= MOST
