"""A folder with one decided document in which a fault can be planted, and the seeded case made of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from places import open_folder

from evalkit.evaluation.attention_checks import plant_and_queue_attention_checks
from evalkit.review.attention_checks import AttentionCheck
from evalkit.store import result_file_name

NOW = "2025-02-02T00:00:00.000Z"
PATHOLOGY, NOTE = "Pathology Report", "Clinical Note"

PAGES = (
    ("Surgical pathology report with anchor", "Final diagnosis: invasive ductal carcinoma, grade two."),
    ("Gross description of the specimen", "The specimen weighs forty grams and is received in formalin."),
    ("Microscopic description", "Sections show cords of atypical cells in a dense stroma."),
    ("Progress note with anchor", "We will see the patient again in six weeks."),
)


def answer(build: Any) -> Any:
    """What the agent said, and what is true: a pathology report on pages 1 to 3, a note on 4."""
    return build.answer(
        [
            build.segment(1, 1, 3, PATHOLOGY, evidence=[("Surgical pathology report with anchor", 1)]),
            build.segment(2, 4, 4, NOTE, evidence=[("Progress note with anchor", 4)]),
        ],
        {PATHOLOGY: 0.75, NOTE: 0.25},
        PATHOLOGY,
    )


def escalate_document(desk: Any, build: Any, doc_id: str = "doc2_6") -> None:
    """A document that waits because of its reading."""
    issue = build.issue("reader-0001", "MAJOR", code="READER-PICTURE", page=2)
    issue = issue.model_copy(update={"issue_id": "READER-0001"})
    times = {"times": {"started_at": "2025-02-01T09:59:00+00:00", "finished_at": "2025-02-01T10:00:00+00:00"}}
    result = build.result(answer(build), [issue], doc_id).model_copy(update=times)
    desk.files.write_json(result_file_name(doc_id), result.model_dump(mode="json"))
    desk.publish(answer(build), [issue], bundle=build.bundle(PAGES), doc_id=doc_id)


def decide_document(desk: Any, build: Any, doc_id: str = "doc2_6", reviewer: str = "dr_first", **said: Any) -> None:
    """Such a document that somebody has decided: validated, unless said."""
    escalate_document(desk, build, doc_id)
    desk.helper(reviewer).save_review(doc_id, **(said or {"agrees": True}))


def draw_seeded_case(desk: Any, seed: str = "one") -> AttentionCheck:
    """A seeded case of the decided document."""
    (seeded,) = plant_and_queue_attention_checks(open_folder(desk.root), 1, seed=seed, drawn_at=NOW).cases
    return seeded


def other_files(root: Path, case_id: str) -> dict[str, bytes]:
    """All that stands in a folder, but for the index, locks, and the files of that case."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and case_id not in str(path) and not path.name.startswith(("evalkit.sqlite", "."))
    }
