"""Small cases, as many as a test wants: one document that was really run, put into the queue under other names."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from builders import NOTE, PATHOLOGY, Json, answer, compose_single_type, evidence, one_segment, segment
from documents.drawing import lines, pdf
from patience import SECONDS
from places import open_folder, open_index
from system.browser.screen import Screen

import evalkit
from evalkit.review import SMEReviewHelper, publish_packet_unless_frozen
from evalkit.review.case_files import read_packet
from evalkit.store import bundle_file_name

PAGES = (
    ["PROGRESS NOTE", "", "Chief complaint: breast lump noticed two weeks ago.", "Tamoxifen 20 mg daily by mouth."],
    ["ASSESSMENT AND PLAN", "", "Blood pressure 128/76, pulse 72.", "She will return in six weeks."],
    [
        "SURGICAL PATHOLOGY REPORT",
        "",
        "Final diagnosis: invasive ductal carcinoma.",
        "The specimen was received fresh.",
    ],
)
ALTERED = evidence("Tamoxifen 40 mg daily by mouth", 1, "Tamoxifen")


def _one() -> Json:
    return one_segment(NOTE, 3, ALTERED)


def _two() -> Json:
    return answer(
        segment(1, 1, 2, NOTE, compose_single_type(NOTE, ALTERED)),
        segment(
            2,
            3,
            3,
            PATHOLOGY,
            compose_single_type(PATHOLOGY, evidence("The specimen was received fresh", 3, "specimen")),
        ),
        overall=NOTE,
        shares={NOTE: 0.6667, PATHOLOGY: 0.3333},
    )


#: What the agent says of the three pages; in each case one dose is not the document's, so that an expert is asked.
ANSWERS: dict[str, Callable[[], Json]] = {"one_document": _one, "two_documents": _two}


def run_small(folder: Path) -> Path:
    """Run the small documents; the output folder."""
    (folder / "answers").mkdir()
    for name, made in ANSWERS.items():
        draw = [lines([name, *texts], size=13) for texts in PAGES]
        (folder / f"{name}.pdf").write_bytes(pdf(*draw))
        (folder / "answers" / f"{name}.json").write_text(json.dumps(made()))
    run = evalkit.run([folder], output=folder / "output", classifications=folder / "answers")
    assert {one.decision for one in run.documents} == {"ESCALATE_TO_SME"}
    return folder / "output"


class CaseQueue:
    """What waits for an expert in an output folder: nothing but what the test puts there."""

    def __init__(self, output: Path) -> None:
        self._files, self._index = open_folder(output), open_index(output)
        self._sweeper = SMEReviewHelper(output, "dr_broom")

    def close(self) -> None:
        self._sweeper.close()
        self._index.close()

    def put(self, source: Path, doc_id: str, name: str) -> str:
        """Another run's case, waiting here under that name."""
        others = open_folder(source)
        packet = read_packet(others, doc_id).model_copy(
            update={"case_id": name, "doc_id": name, "pdf_filename": f"{name}.pdf"}
        )
        packet = packet.model_copy(update={"document_bundle_path": bundle_file_name(name)})
        self._files.write_json(bundle_file_name(name), others.read_json(bundle_file_name(doc_id)) | {"doc_id": name})
        publish_packet_unless_frozen(self._files, self._index, packet)
        return name

    def clear(self) -> None:
        """Close what a test left."""
        for row in self._index.list_cases_worst_first("pending", "in_review"):
            self._sweeper.save_review(row["case_id"], undeterminable="left over", base_revision=None)

    def outcomes(self, case_id: str) -> list[str]:
        """What was decided about the case, oldest first."""
        return [one.outcome for one in self._sweeper.reviews(case_id)]

    def reviewers(self, case_id: str) -> list[str]:
        """Who decided it, oldest first."""
        return [one.reviewer for one in self._sweeper.reviews(case_id)]

    def draft(self, case_id: str, reviewer: str = "dr_lee") -> dict[str, Any] | None:
        """What that expert has not submitted yet, as it is on disk."""
        stored = self._index.drafts.find_newest_draft(case_id, reviewer, "")
        return stored and json.loads(stored.draft)

    def until_noted(self, screen: Screen, case_id: str, words: str) -> None:
        """Let the browser go on until these notes for the record are in the draft."""
        wait_until(screen, lambda: (self.draft(case_id) or {}).get("notes") == words, f"the notes on {case_id} kept")


def wait_until(screen: Screen, is_so: Callable[[], bool], what: str) -> None:
    """Let the browser go on until it is so."""
    for _ in range(20 * SECONDS):
        if is_so():
            return
        screen.page.wait_for_timeout(50)
    raise AssertionError(f"after {SECONDS} s still not: {what}")
