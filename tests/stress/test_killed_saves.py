"""Killed while reviews are saved: whatever was acknowledged is there, whole and chained, and the rest can be made again.

Three kills run with every test; a hundred in `make stress`.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from places import open_folder, open_index
from review.conftest import Build
from review.conftest import Workspace as Folder
from stress import saving
from tables import trying

from evalkit.review import ReviewSession, derive_closed_case_rows
from evalkit.review.case_files import read_packet, read_review
from evalkit.review.ground_truth import list_revisions
from evalkit.review.index_rebuild import reindex
from evalkit.review.opinions import project_ground_truth
from evalkit.store import OutputFolder, ground_truth_file_name, hash_canonical_json, review_file_name

CASES = [f"{where}_{number:02d}" for where in ("screen", "notebook") for number in range(20)]
LONGEST = 0.6
"""Seconds of saving before the kill, at most."""


@dataclass
class Acknowledged:
    """What the killed processes had been told is saved."""

    reviews: dict[str, list[str]] = field(default_factory=lambda: {case_id: [] for case_id in CASES})
    """Their digests, oldest first."""
    drafts: dict[str, str] = field(default_factory=dict)
    """The digest of the draft of each case that has one."""
    in_flight: str | None = None
    """The case of the call that had not returned; what it did may be there or not."""
    told: Counter[str] = field(default_factory=Counter)
    """How many of each were acknowledged, and how many lives ended within a call."""

    def hear(self, line: dict[str, str]) -> None:
        if "about" in line:
            self.in_flight = line["about"]
            return
        self.in_flight = None
        ((what, case_id),) = line.items() - {("digest", line["digest"])}
        self.told["drafts" if what == "draft" else "reviews"] += 1
        if what == "draft":
            self.drafts[case_id] = line["digest"]
        else:
            self.reviews[case_id].append(line["digest"])
        if what == "submitted":
            self.drafts.pop(case_id, None)


def killed_while_saving(output: Path, seed: int) -> Iterator[dict[str, str]]:
    """What a process said from its first save until it was killed at a random moment."""
    program = [sys.executable, saving.__file__, str(output), str(seed)]
    # Unbuffered: what readline had read beyond the first line would be lost to communicate.
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(program, bufsize=0, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env) as process:
        first = process.stdout.readline()
        time.sleep(random.Random(seed).uniform(0, LONGEST))
        process.send_signal(signal.SIGKILL)
        rest, complaint = process.communicate()
        assert process.returncode == -signal.SIGKILL, complaint.decode()
    yield from (json.loads(line) for line in (first + rest).splitlines())


def check(output: Path, acknowledged: Acknowledged) -> None:
    """That nothing acknowledged is lost or torn, before anybody mends anything and after the index was rebuilt."""
    files = open_folder(output)
    whole = {path: json.loads(path.read_bytes()) for path in output.rglob("*.json")}
    assert all(isinstance(value["schema_version"], int) for value in whole.values())
    for case_id in CASES:
        _check_chain(files, case_id, acknowledged)
        if case_id != acknowledged.in_flight:
            assert _truth(files, case_id) == _projected(files, case_id)
    before = _rows(output)
    assert abs(_closed(output) - len(list(derive_closed_case_rows(files)))) <= (acknowledged.in_flight is not None)
    reindex(open_folder(output))
    after = _rows(output)
    assert {case_id for case_id in CASES if before[case_id] != after[case_id]} <= {acknowledged.in_flight}
    assert _closed(output) == len(list(derive_closed_case_rows(files)))
    assert all(_truth(files, case_id) == _projected(files, case_id) for case_id in CASES)
    reindex(open_folder(output))
    assert _rows(output) == after
    assert not list((output / ".tmp").glob("*"))
    _check_drafts(output, acknowledged)


def _check_chain(files: OutputFolder, case_id: str, acknowledged: Acknowledged) -> None:
    known = acknowledged.reviews[case_id]
    found = list_revisions(files, case_id)
    assert found == list(range(1, len(found) + 1))
    assert 0 <= len(found) - len(known) <= (case_id == acknowledged.in_flight)
    digests, previous = [], None
    for revision in found:
        review = read_review(files, case_id, revision)
        assert review.prev_sha256 == previous
        previous = hashlib.sha256(files.read_bytes(review_file_name(case_id, revision))).hexdigest()
        digests.append(hash_canonical_json(review.model_dump(mode="json")))
    assert digests[: len(known)] == known
    acknowledged.told["reviews saved but not acknowledged"] += len(found) - len(known)
    acknowledged.reviews[case_id] = digests


def _check_drafts(output: Path, acknowledged: Acknowledged) -> None:
    """Every acknowledged draft, unless the call that was under way has just replaced it or submitted it."""
    index = open_index(output)
    for case_id in CASES:
        stored = index.drafts.find_newest_draft(case_id, saving.REVIEWER, saving.TAB)
        found = stored and hash_canonical_json(json.loads(stored.draft))
        if case_id == acknowledged.in_flight:
            acknowledged.drafts = {**acknowledged.drafts, case_id: found} if found else _less(acknowledged, case_id)
        assert found == acknowledged.drafts.get(case_id)
    index.close()


def _less(acknowledged: Acknowledged, case_id: str) -> dict[str, str]:
    return {name: draft for name, draft in acknowledged.drafts.items() if name != case_id}


def _truth(files: OutputFolder, case_id: str) -> dict[str, Any] | None:
    name = ground_truth_file_name(case_id)
    return files.read_json(name) if files.has_file(name) else None


def _projected(files: OutputFolder, case_id: str) -> dict[str, Any] | None:
    chain = [(revision, read_review(files, case_id, revision)) for revision in list_revisions(files, case_id)]
    record = project_ground_truth(read_packet(files, case_id), chain)
    return record and record.model_dump(mode="json")


def _rows(output: Path) -> dict[str, dict[str, Any]]:
    """What the index says of each case, once the queue has seen to the claims."""
    desk, index = ReviewSession(open_folder(output), saving.REVIEWER, saving.TAB), open_index(output)
    desk.load_queue_page()
    rows = {row["case_id"]: dict(row) for row in index.list_cases_worst_first()}
    desk.close()
    index.close()
    return rows


def _closed(output: Path) -> int:
    index = open_index(output)
    closed = index.count_closed_cases()
    index.close()
    return closed


@pytest.fixture
def output(tmp_path: Path) -> Path:
    folder = Folder(tmp_path / "output")
    for case_id in CASES:
        folder.publish(Build.single("Clinical Note"), [Build.issue()], doc_id=case_id)
    folder.index.close()
    return folder.root


def kill(output: Path, within: int) -> Acknowledged:
    """Kill an expert at work until so many kills came within a save."""
    acknowledged = Acknowledged()
    for seed in count():
        if acknowledged.told["kills within a call"] == within:
            break
        for line in killed_while_saving(output, seed):
            acknowledged.hear(line)
        acknowledged.told["kills within a call"] += acknowledged.in_flight is not None
        check(output, acknowledged)
        acknowledged.in_flight = None
    print(f"\n{seed} kills: {dict(acknowledged.told)}")
    return acknowledged


def test_a_few_kills_lose_no_review_and_no_draft(output: Path) -> None:
    assert kill(output, 2).told["reviews"] > 0


@pytest.mark.stress
def test_a_hundred_kills_lose_no_review_and_no_draft(output: Path) -> None:
    with trying("an expert's save, killed", 100):
        assert kill(output, 100).told["reviews"] > 100
