"""What a case's issues ask a clinician."""

from __future__ import annotations

import pytest

from evalkit.issue import Issue, IssueSeverity, PageBox
from widgets.case_panel import describe_issue_to_expert

BOX = (0.1, 0.1, 0.2, 0.2)


@pytest.mark.parametrize(
    ("code", "differing", "boxes", "question"),
    [
        ("V2-PATIENT-MIXED", "name and birth date differ",
         ((3, *BOX), (1, *BOX)), "Is page 3 about the same patient as page 1? Name and birth date differ."),
        ("V2-PATIENT-SEVERAL", "name, birth date and sex differ",
         ((3, *BOX), (1, *BOX)), "Is page 3 about the same patient as page 1? Name, birth date and sex differ."),
        ("V2-PATIENT-OTHER", "name and sex differ",
         ((3, *BOX),), "Is page 3 about the patient whom this file is for? Name and sex differ."),
        ("V2-PAGE-GAP", "", (), "page 3 is missing"),
    ],
)  # fmt: skip
def test_issue_is_described_in_one_sentence_or_question(
    code: str, differing: str, boxes: tuple[PageBox, ...], question: str
) -> None:
    facts = {"differing": differing}
    issue = Issue.create("V2", code, IssueSeverity.MAJOR, "page 3 is missing", page=3, boxes=boxes, facts=facts)
    assert describe_issue_to_expert(issue) == question
