"""A hundred thousand cases: the index is rebuilt from the files in time and in little memory, and the queue stays quick.

Three hundred run with every test, which look at what is found; the hundred thousand of `make stress` look at the clock too.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path

import pytest
from places import open_folder
from stress.filling import NOW, Filled, fill
from stress.test_many_reviewers import in_earnest

from evalkit.review import QueueQuery, ReviewSession
from evalkit.review import index_rebuild as rebuilding
from evalkit.review.case_files import read_packet
from evalkit.review.queue import FILTER_VALUES
from evalkit.review.roster import ReviewerRoster

__all__ = ["in_earnest"]

FEW, MANY = 10_000, 100_000
LONGEST = 60.0
"""Seconds that the index of so many may take."""
SLOWEST = 100.0
"""Milliseconds that a page of the queue may take."""
MORE_MEMORY = 48.0
"""Megabytes that ninety thousand more cases may take: their names, and nothing of what is in them."""
_REBUILD = """
import json, resource, sys, time
from memory import peak
from evalkit.review.index_rebuild import reindex
from places import open_folder
began = time.perf_counter()
counts = reindex(open_folder(sys.argv[1]))
seconds = time.perf_counter() - began
most = max(peak(), 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
print(json.dumps({"counts": counts, "seconds": seconds, "megabytes": most / 2**20}))
"""
_LOOK = """
import json, sys
from memory import peak
from stress.test_many_packets import looked
took = looked(sys.argv[1])
print(json.dumps({"took": took, "megabytes": peak() / 2**20}))
"""
VIEWS = {
    "first page": QueueQuery(),
    **{f"by {order}": QueueQuery(sort=order) for order in ("oldest", "newest", "name", "pages")},
    "a severity": QueueQuery(severity="MAJOR"),
    "a type": QueueQuery(dominant_type="Genomic Report"),
    "an agent": QueueQuery(agent="V3"),
    "a reason": QueueQuery(review_reason="audit"),
    "a source": QueueQuery(source="embedded"),
    "a kind": QueueQuery(kind="classification"),
    "an age": QueueQuery(age="week"),
    "two filters": QueueQuery(dominant_type="Genomic Report", agent="V3"),
    "a search": QueueQuery(search="fax 0012"),
    "a search for nothing": QueueQuery(search="no such file"),
    "finished too": QueueQuery(show_finished=True),
    "the twentieth page": QueueQuery(page=19),
    "worst": QueueQuery(sort="worst"),
    "the last page": QueueQuery(page=2**31),
    **{f"the last {order}": QueueQuery(sort=order, page=2**31) for order in ("oldest", "newest", "name", "pages")},
    "the last but one, finished too": QueueQuery(show_finished=True, rows=70, page=3),
    "all at once": QueueQuery(search="7", severity="MINOR", age="older", sort="name", show_finished=True, page=3),
}
"""Each filter and order of the queue, alone and together."""


def run(program: str, output: Path) -> dict[str, object]:
    """What a process of its own says, since memory is measured by process."""
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", program, str(output)], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def looked(output: Path) -> dict[str, float]:
    """Milliseconds that each view takes at one desk: the median of five rounds, so that a machine which is slow for half
    a second is not one view's fault.
    """
    desk = ReviewSession(open_folder(output), "dr_kim", "tab", clock=lambda: NOW)
    works = {name: partial(desk.load_queue_page, view) for name, view in VIEWS.items()} | {
        "the next case": desk.choose_next_case_id
    }
    rounds = [{name: _milliseconds(work) for name, work in works.items()} for _ in range(5)]
    desk.close()
    return {name: statistics.median(took[name] for took in rounds) for name in works}


def _milliseconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - began)


def test_related_cases_are_read_by_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebuilding, "_CHUNK_SIZE", 2)
    planted, other = "b-0a1b2c3d", "b_0a1b2c3d"
    shares = list(
        rebuilding._chunk_related_base_cases(["d", "c", "b.extraction", planted, other, "b", "b.second", "a"])
    )
    assert shares == [["a", "b", planted, "b.extraction"], [other, "c"], ["d"]]


@pytest.mark.usefixtures("database")
def test_index_of_300_cases_equals_the_files(tmp_path: Path) -> None:
    output = tmp_path / "output"
    cases = list(fill(output, 300, seed=7))
    before = {path: path.read_bytes() for path in output.rglob("*.json")}
    assert rebuilding.reindex(open_folder(output)) == (300, 300)
    # What is there already is what would be written: nothing is written anew.
    after = {path: path.read_bytes() for path in output.rglob("*.json") if path.name != "database.json"}
    assert after == before
    ReviewerRoster(open_folder(output)).add_reviewer_or_replace_code(
        "dr_kim", role="analyst"
    )  # to whom no samples come
    desk = ReviewSession(open_folder(output), "dr_kim", "tab", clock=lambda: NOW)
    worths = {one.case_id: read_packet(open_folder(output), one.case_id).errors_per_minute for one in cases}
    for view in VIEWS.values():
        queue = desk.load_queue_page(view)
        wanted = [one for one in cases if _is_in(one, view)]
        assert queue.matching == len(wanted)
        first = queue.view.page * view.rows
        assert [row.case_id for row in queue.rows] == [
            one.case_id for one in sorted(wanted, key=lambda one: _place(one, view, worths))[first : first + view.rows]
        ]
    everything = desk.load_queue_page(QueueQuery(show_finished=True))
    shown = [one for one in cases if not _hides(one)]
    assert everything.facets["severity"] == Counter(one.sort.severity for one in shown)
    assert everything.facets["source"] == Counter(one.sort.model for one in cases)
    desk.close()
    expert = ReviewSession(open_folder(output), "dr_lee", "tab", clock=lambda: NOW)
    waiting = [one for one in cases if not one.is_closed]
    first = min(waiting, key=lambda one: _place(one, QueueQuery(), worths))
    assert expert.choose_next_case_id() == first.case_id
    expert.close()


def _hides(one: Filled) -> bool:
    """Whether it is asked blind, and not answered yet."""
    return one.sort.reason in ("audit", "sample") and not one.is_closed


def _is_in(one: Filled, view: QueueQuery) -> bool:
    days = (NOW - _moment(one)).total_seconds() / 86400
    told = {
        "severity": one.sort.severity,
        "dominant_type": one.sort.kind or "cannot tell",
        "agent": one.sort.agent,
        **({} if not _hides(one) else {"severity": "", "dominant_type": "", "agent": ""}),
        "review_reason": one.sort.reason,
        "source": one.sort.model,
        "kind": "classification",
        "age": "day" if days <= 1 else "week" if days <= 7 else "older",
    }
    return (
        (view.show_finished or not one.is_closed)
        and (view.search in one.pdf_filename.lower() or view.search in one.case_id)
        and all(getattr(view, name) in (None, told[name]) for name in FILTER_VALUES)
    )


def _weight(one: Filled) -> tuple[int, int, int, str]:
    """Worst first."""
    return (
        -(one.sort.severity == "BLOCKER"),
        -(one.sort.severity == "MAJOR"),
        -(one.sort.severity == "MINOR"),
        one.case_id,
    )


def _place(one: Filled, view: QueueQuery, worths: dict[str, float]) -> tuple[object, ...]:
    own = {
        "errors": (-worths[one.case_id],),
        "worst": (),
        "oldest": (_moment(one).timestamp(),),
        "newest": (-_moment(one).timestamp(),),
        "name": (one.pdf_filename.lower(),),
        "pages": (one.sort.pages,),
    }
    is_closed, is_drawn, *weight = _standing(one)
    return is_closed, is_drawn, *own[view.sort], *weight


def _standing(one: Filled) -> tuple[object, ...]:
    """Those that wait, worst first; then what was drawn, and what is closed."""
    return one.is_closed, not one.is_closed and one.sort.reason in ("audit", "sample"), *_weight(one)


def _moment(one: Filled) -> datetime:
    return datetime.fromisoformat(one.created_at)


@pytest.mark.stress
def test_a_hundred_thousand_cases(in_earnest: str, tmp_path: Path) -> None:
    rebuilt = {}
    for count in (FEW, MANY):
        output = tmp_path / str(count) / "output"
        assert sum(1 for _ in fill(output, count, seed=7)) == count
        rebuilt[count] = run(_REBUILD, output)
        assert rebuilt[count]["counts"] == [count, count]
    seen = {count: run(_LOOK, tmp_path / str(count) / "output") for count in (FEW, MANY)}
    print(f"\n{in_earnest}, {MANY} cases: {rebuilt}\n{seen}")
    assert rebuilt[MANY]["seconds"] <= LONGEST
    assert max(seen[MANY]["took"].values()) <= SLOWEST
    for told in (rebuilt, seen):
        assert told[MANY]["megabytes"] <= told[FEW]["megabytes"] + MORE_MEMORY
