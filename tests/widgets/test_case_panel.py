"""What a case's issues ask a clinician."""

from __future__ import annotations

import pytest

from evalkit.issue import Issue, IssueSeverity, PageBox
from widgets.case_panel import format_patient_question

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
        ("V2-PAGE-GAP", "", (), ""),
    ],
)  # fmt: skip
def test_patient_issue_is_asked_as_a_question(
    code: str, differing: str, boxes: tuple[PageBox, ...], question: str
) -> None:
    facts = {"differing": differing}
    issue = Issue.create("V2", code, IssueSeverity.MAJOR, "A sentence.", page=3, boxes=boxes, facts=facts)
    assert format_patient_question(issue) == question
