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

from places import open_folder

from evalkit.classification.schema import DocumentType
from evalkit.review import Draft, ReviewCase, ReviewSession, SMEReviewHelper
from evalkit.review.case_files import read_review
from evalkit.review.ground_truth import Review, derive_review_status, find_newest_revision
from evalkit.store import hash_canonical_json

REVIEWER, TAB = "dr_lee", "tab"

Step = tuple[str, Callable[[], Any]]
"""What is acknowledged (``draft``, ``submitted`` or ``saved``) when the call has returned what."""


class Saver:
    """One life of the process."""

    def __init__(self, output: str, seed: int) -> None:
        self._chance = random.Random(seed)
        self._seed = seed
        self._files = open_folder(output)
        self._desk = ReviewSession(open_folder(output), REVIEWER, TAB)
        self._helper = SMEReviewHelper(output, REVIEWER)

    def go_on(self) -> None:
        cases = sorted(path.name.removeprefix("sme_packet_").removesuffix(".json") for path in self._packets())
        for number in count():
            case_id = self._chance.choice(cases)
            for what, call in self._steps(case_id, f"{self._seed}-{number}"):
                tell({"about": case_id})
                tell({what: case_id, "digest": call()})

    def _packets(self) -> Iterator[Any]:
        return self._files.local_path("sme_packets").iterdir()

    def _steps(self, case_id: str, words: str) -> Iterator[Step]:
        revision = find_newest_revision(self._files, case_id)
        is_closed = (
            derive_review_status(read_review(self._files, case_id, revision) if revision else None) == "completed"
        )
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
        case = self._desk.open_and_claim_case(case_id)
        draft = looked_at(case).set_notes(words)
        yield "draft", lambda: self._drafted(case_id, draft)
        choice = self._chance.random()
        if choice < 0.3:
            yield (
                "submitted",
                lambda: reviewed(self._desk.submit_review(case_id, draft, undeterminable_reason=words).review),
            )
        elif choice < 0.7:
            changed = draft.set_segment_type(
                0, self._chance.choice([DocumentType.PATHOLOGY_REPORT, DocumentType.GENOMIC_REPORT])
            )
            yield "draft", lambda: self._drafted(case_id, changed)
            yield "submitted", lambda: reviewed(self._desk.submit_review(case_id, changed).review)
        elif choice < 0.8 and not case.has_expert_changes(draft):
            yield "submitted", lambda: reviewed(self._desk.submit_review(case_id, draft, validate=True).review)

    def _drafted(self, case_id: str, draft: Draft) -> str:
        self._desk.save_draft_and_get_time(case_id, draft)
        return hash_canonical_json(draft.model_dump(mode="json"))


def looked_at(case: ReviewCase) -> Draft:
    """The case's draft after all that must be seen was seen."""
    draft = case.draft
    for page in case.get_viewing_requirements(case.draft).page_numbers:
        draft = draft.show_page_and_mark_seen(page)
    for issue_id in case.get_viewing_requirements(case.draft).issue_ids:
        draft = draft.show_issue_and_mark_seen(issue_id)
    return draft


def reviewed(review: Review) -> str:
    return hash_canonical_json(review.model_dump(mode="json"))


def tell(line: dict[str, Any]) -> None:
    os.write(1, json.dumps(line).encode() + b"\n")  # at once and whole: a buffer would die with the process


if __name__ == "__main__":
    Saver(sys.argv[1], int(sys.argv[2])).go_on()
