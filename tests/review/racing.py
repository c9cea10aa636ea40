"""Several calls at one moment."""

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from places import open_folder, open_index

from evalkit.errors import EvalkitError
from evalkit.review.ground_truth import Review, append_chained_review
from evalkit.store import CaseClaim

NOW = "2025-02-01T10:40:00+00:00"
_REVISIONS = 100
"""Of one case, as a folder that holds thousands of reviews is another test."""


def run_together(*calls: Callable[[], Any]) -> list[Any]:
    """What each call gave or raised, all begun at one moment in threads of their own."""
    barrier = threading.Barrier(len(calls))
    outcomes: list[Any] = [None] * len(calls)

    def run(place: int) -> None:
        barrier.wait()
        try:
            outcomes[place] = calls[place]()
        except EvalkitError as error:
            outcomes[place] = error

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def race_for_reviews(root: Path, review: Review, turns: int) -> None:
    """Two append to one revision at a time, without the lock: exactly one of them does, each time."""
    for turn in range(turns):
        case, base = divmod(turn, _REVISIONS)
        call = partial(append_chained_review, open_folder(root), f"case_{case}", review, base_revision=base)
        outcomes = run_together(call, call)
        assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Review", "ReviewConflict"]


def claims_won(root: Path, me: str, turns: int, wait: Callable[[], Any]) -> list[bool]:
    """Which of the turns' cases this one got; the other one wants them at the same moments."""
    index = open_index(root)
    won = []
    for turn in range(turns):
        wait()
        claim = CaseClaim(f"case_{turn}", me, "tab", NOW, "2025-02-01T10:55:00+00:00")
        won.append(index.claims.acquire_or_get_live_claim(claim, now=NOW) == claim)
    index.close()
    return won


def race_for_claims(root: Path, turns: int) -> None:
    """Two take one claim at a time: exactly one of them gets it, each time; one claim in ten was somebody's until now."""
    index = open_index(root)
    for turn in range(0, turns, 10):
        index.claims.acquire_or_get_live_claim(CaseClaim(f"case_{turn}", "dr_old", "tab", "2025", NOW), now="2025")
    barrier = threading.Barrier(2)
    lee, kim = run_together(*(partial(claims_won, root, me, turns, barrier.wait) for me in ("dr_lee", "dr_kim")))
    assert [a + b for a, b in zip(lee, kim, strict=True)] == [1] * turns
    holders = index.claims.map_live_claims_by_case_id(NOW)
    assert [holders[f"case_{turn}"].reviewer for turn in range(turns)] == ["dr_lee" if won else "dr_kim" for won in lee]
    assert 0 < sum(lee) < turns
    index.close()
