"""Risks of pages."""

from __future__ import annotations

from typing import Any

import pytest

from evalkit.classification.page_risks import compute_page_risks
from evalkit.classification.v2_consistency import DOUBTS_KEY


def build_answer(*segments: tuple[int, int, float], doubts: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    return {
        "segments": [
            {
                "segment_index": index,
                "start_page": start,
                "end_page": end,
                "dominant_type": "Other",
                "segment_composition": [{"document_type": "Other", "confidence": confidence}],
            }
            for index, (start, end, confidence) in enumerate(segments, 1)
        ],
        "self_evaluation": {DOUBTS_KEY: doubts or []},
    }


def build_issue(severity: str, **fields: Any) -> dict[str, Any]:
    return {"code": "V2-NO-ACT", "severity": severity, "status": "open", "segment_index": None, "page": None} | fields


def test_risk_is_what_certainty_leaves():
    assert compute_page_risks(build_answer((1, 2, 0.9), (3, 3, 0.6)), [], 3) == pytest.approx([0.1, 0.1, 0.4])


def test_pages_of_no_segment_are_at_full_risk():
    assert compute_page_risks(build_answer((1, 1, 1.0)), [], 2) == pytest.approx([0, 1])
    assert compute_page_risks(None, [], 2) == [1, 1]


def test_doubt_about_a_seam_raises_its_page_only():
    doubts = [{"page": 2, "begins": 0.4}, {"page": 3, "begins": 0.7}]
    risks = compute_page_risks(build_answer((1, 2, 1.0), (3, 4, 1.0), doubts=doubts), [], 4)
    assert risks == pytest.approx([0, 0.4, 0.3, 0])


@pytest.mark.parametrize(
    ("issue", "raised"),
    [
        (build_issue("MAJOR", page=2), {2}),
        (build_issue("MAJOR", code="V2-BOUNDARY-DOUBT", segment_index=2, page=4), {4}),
        (build_issue("BLOCKER", code="V2-PATIENT-MIXED", segment_index=2, page=4), set()),
        (build_issue("MAJOR", segment_index=2, page=3), {3, 4}),
        (build_issue("BLOCKER"), {1, 2, 3, 4}),
        (build_issue("BLOCKER", segment_index=7), set()),
        (build_issue("BLOCKER", status="repaired"), set()),
    ],
)
def test_open_issue_raises_the_pages_it_is_about(issue, raised):
    risks = compute_page_risks(build_answer((1, 2, 1.0), (3, 4, 1.0)), [issue], 4)
    assert {page for page, risk in enumerate(risks, 1) if risk >= 0.5} == raised


@pytest.mark.parametrize(
    "told",
    [None, "unsure", {DOUBTS_KEY: 3}, {DOUBTS_KEY: ["page 2"]}, {DOUBTS_KEY: [{"page": 2, "begins": "maybe"}, {}]}],
)
def test_doubts_of_another_shape_are_none(told: Any) -> None:
    answer = build_answer((1, 2, 0.9)) | {"self_evaluation": told}
    assert compute_page_risks(answer, [], 2) == pytest.approx([0.1, 0.1])
