"""An expert who saves and saves until killed, and says on stdout what is about to be done and what was acknowledged.

``python saving.py OUTPUT SEED``; one JSON object a line: ``{"about": case}``, then, once the call has returned, ``{"draft":
…}``, ``{"submitted": …}`` (a review in the place of a draft) or ``{"saved": …}`` (a review that knows of no draft). Cases whose name begins with ``screen`` are worked on as the workbench does, the others as
a notebook does.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from evalkit.classification.schema import DocumentType
from evalkit.review import Case, Desk, Draft, SMEReviewHelper
from evalkit.review.ground_truth import Review, newest_revision, read_review, status_after
from evalkit.store import Files, digest

REVIEWER, TAB = "dr_lee", "tab"

Step = tuple[str, Callable[[], Any]]
"""What is acknowledged (``draft``, ``submitted`` or ``saved``) when the call has returned what."""


class Saver:
    """One life of the process."""

    def __init__(self, output: str, seed: int) -> None:
        self._chance = random.Random(seed)
        self._seed = seed
        self._files = Files(output)
        self._desk = Desk(output, REVIEWER, TAB)
        self._helper = SMEReviewHelper(output, REVIEWER)

    def go_on(self) -> None:
        cases = sorted(path.name.removeprefix("sme_packet_").removesuffix(".json") for path in self._packets())
        for number in count():
            case_id = self._chance.choice(cases)
            for what, call in self._steps(case_id, f"{self._seed}-{number}"):
                tell({"about": case_id})
                tell({what: case_id, "digest": call()})

    def _packets(self) -> Iterator[Any]:
        return self._files.path("sme_packets").iterdir()

    def _steps(self, case_id: str, words: str) -> Iterator[Step]:
        revision = newest_revision(self._files, case_id)
        is_closed = status_after(read_review(self._files, case_id, revision) if revision else None) == "completed"
        if is_closed and (case_id.startswith("screen") or self._chance.random() < 0.6):
            yield "saved", lambda: reviewed(self._helper.reopen(case_id, words))
        elif case_id.startswith("screen"):
            yield from self._on_screen(case_id, words)
        else:
            said = self._chance.choice(
                [{"agrees": True}, {"corrected_dominant_type": "Other"}, {"undeterminable": words}]
            )
            yield "saved", lambda: reviewed(self._helper.save_review(case_id, correction_notes=words, **said))

    def _on_screen(self, case_id: str, words: str) -> Iterator[Step]:
        case = self._desk.open(case_id)
        draft = looked_at(case).with_notes(words)
        yield "draft", lambda: self._drafted(case_id, draft)
        choice = self._chance.random()
        if choice < 0.3:
            yield "submitted", lambda: reviewed(self._desk.submit(case_id, draft, undeterminable=words).review)
        elif choice < 0.7:
            changed = draft.with_type(
                0, self._chance.choice([DocumentType.PATHOLOGY_REPORT, DocumentType.GENOMIC_REPORT])
            )
            yield "draft", lambda: self._drafted(case_id, changed)
            yield "submitted", lambda: reviewed(self._desk.submit(case_id, changed).review)
        elif choice < 0.8 and not case.is_changed(draft):
            yield "submitted", lambda: reviewed(self._desk.submit(case_id, draft, validate=True).review)

    def _drafted(self, case_id: str, draft: Draft) -> str:
        self._desk.save_draft(case_id, draft)
        return digest(draft.model_dump(mode="json"))


def looked_at(case: Case) -> Draft:
    """The case's draft after all that must be seen was seen."""
    draft = case.draft
    for page in case.must_see.pages:
        draft = draft.seen_page(page)
    for issue_id in case.must_see.issues:
        draft = draft.seen_evidence(issue_id)
    return draft


def reviewed(review: Review) -> str:
    return digest(review.model_dump(mode="json"))


def tell(line: dict[str, Any]) -> None:
    os.write(1, json.dumps(line).encode() + b"\n")  # at once and whole: a buffer would die with the process


if __name__ == "__main__":
    Saver(sys.argv[1], int(sys.argv[2])).go_on()
