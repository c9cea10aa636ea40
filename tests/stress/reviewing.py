"""An expert among others: takes the next case, says something, submits, and so on until told to stop.

``python reviewing.py OUTPUT NAME SEED``: says ``ready``, waits for a line with the seconds to work and the seconds to
pause between two actions, and tells one JSON object a line: ``{"case": …, "draft" or "submitted": digest, "ms": …}``, or
``{"case": …, "refused": …}`` where somebody else was quicker.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from functools import partial

from places import open_folder
from stress.saving import looked_at, reviewed, tell

from evalkit.errors import CaseTaken, ReviewConflict, ReviewRefused
from evalkit.review import Draft, ReviewCase, ReviewSession
from evalkit.store import hash_canonical_json

DRAFTS = 3
"""Saved in each case before it is submitted."""
TAKEN_OVER = 0.05
"""The share of cases that are taken from whoever has them."""


class Reviewer:
    """One process at one desk."""

    def __init__(self, output: str, name: str, seed: int) -> None:
        self._desk = ReviewSession(open_folder(output), name, f"tab of {name}")
        self._chance = random.Random(seed)
        self._name = name

    def work(self, seconds: float, pause: float) -> None:
        """So many seconds, with pauses of that length on average."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._pause(pause)
            case_id = self._desk.choose_next_case_id()
            if case_id is None:
                break
            try:
                self._review(case_id, pause)
            except (CaseTaken, ReviewConflict, ReviewRefused) as refused:
                tell({"case": case_id, "refused": type(refused).__name__})
        self._desk.close()

    def _review(self, case_id: str, pause: float) -> None:
        case = self._desk.open_and_claim_case(case_id, take_over=self._chance.random() < TAKEN_OVER)
        draft = looked_at(case)
        for number in range(DRAFTS):
            self._pause(pause)
            draft = draft.set_notes(f"{draft.notes} {self._name} {number}".strip())
            _timed(case_id, "draft", partial(self._drafted, case_id, draft))
        self._pause(pause)
        _timed(case_id, "submitted", partial(self._submitted, case, draft))

    def _drafted(self, case_id: str, draft: Draft) -> str:
        self._desk.save_draft_and_get_time(case_id, draft)
        return hash_canonical_json(draft.model_dump(mode="json"))

    def _submitted(self, case: ReviewCase, draft: Draft) -> str:
        case_id = case.packet.case_id
        if self._chance.random() < 0.5:
            return reviewed(self._desk.submit_review(case_id, draft, validate=True).review)
        return reviewed(self._desk.submit_review(case_id, draft, undeterminable_reason="illegible").review)

    def _pause(self, seconds: float) -> None:
        time.sleep(self._chance.expovariate(1 / seconds))


def _timed(case_id: str, what: str, call: Callable[[], str]) -> None:
    began = time.perf_counter()
    found = call()
    tell({"case": case_id, what: found, "ms": round((time.perf_counter() - began) * 1000, 2)})


if __name__ == "__main__":
    reviewer = Reviewer(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    tell({"ready": sys.argv[2]})
    reviewer.work(*map(float, sys.stdin.readline().split()))
