"""Risks of pages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.classification.page_risks import (
    RiskCalibration,
    combine_page_risks,
    compute_document_risk,
    compute_page_risks,
    fit_risk_calibration,
)
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


def test_document_is_as_doubtful_as_its_segments_together():
    answer = build_answer((1, 2, 0.9), (3, 3, 0.6))
    assert compute_document_risk(answer, [], 3) == pytest.approx(1 - 0.9 * 0.6)
    assert compute_document_risk(answer, [], 4) == 1  # page 4 belongs to no segment
    assert compute_document_risk(None, [], 2) == 1
    assert compute_document_risk(answer, [], 3, RiskCalibration(-3.0)) < 0.05


@given(
    st.lists(st.floats(0, 1), max_size=8),
    st.lists(st.tuples(st.integers(-2, 10), st.integers(-2, 10**12)), max_size=4),
)
def test_combined_risk_is_a_probability_for_any_page_ranges(page_risks, page_ranges):
    assert max(page_risks, default=0) - 1e-6 <= combine_page_risks(page_risks, page_ranges) <= 1


@pytest.mark.parametrize(("intercept", "slope"), [(-2.0, 1.0), (0.0, 0.5), (1.0, 1.5)])
def test_calibration_recovers_what_the_reviews_show(intercept, slope):
    generator = np.random.default_rng(1)
    stated = generator.beta(1, 5, 20_000)
    true_risks = [RiskCalibration(intercept, slope).apply(risk) for risk in stated]
    fitted = fit_risk_calibration(stated.tolist(), (generator.random(20_000) < true_risks).tolist())
    assert fitted == pytest.approx((intercept, slope), abs=0.12)


def test_few_reviews_leave_the_stated_risks_nearly_alone():
    fitted = fit_risk_calibration([0.1] * 5, [False] * 5)
    assert 0.02 < fitted.apply(0.1) < 0.1


def test_heavy_weights_claim_no_more_than_their_effective_number():
    risks, outcomes = [0.3] * 20, [False] * 20
    assert fit_risk_calibration(risks, outcomes, [50.0] * 20) == pytest.approx(fit_risk_calibration(risks, outcomes))
