"""Audits: drawn by risk, as many as without it, and the same again on every run."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import open_folder

import evalkit
from evalkit.pipeline.sample_draws import (
    compute_audit_probability,
    compute_result_risk,
    compute_risk_deviation,
    is_drawn_for_audit,
    measure_mean_risk_deviation,
)
from evalkit.settings import Settings


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0.001, 0.5))
def test_every_document_keeps_half_of_the_audit_rate(rate, risk, mean_deviation):
    probability = compute_audit_probability(rate, risk, mean_deviation)
    assert rate / 2 - 1e-4 <= probability <= 1
    assert compute_audit_probability(rate, risk, None) == rate
    assert compute_audit_probability(1.0, risk, mean_deviation) == 1


@pytest.mark.parametrize("rate", [0.02, 0.05, 0.2])
def test_expected_number_of_audits_is_that_of_an_even_draw(rate):
    risks = np.random.default_rng(2).beta(0.5, 30, 5000)
    mean_deviation = float(np.mean([compute_risk_deviation(risk) for risk in risks]))
    probabilities = [compute_audit_probability(rate, risk, mean_deviation) for risk in risks]
    assert np.mean(probabilities) == pytest.approx(rate, rel=0.01)
    drawn = [is_drawn_for_audit("seed", f"{number}", probability) for number, probability in enumerate(probabilities)]
    assert np.mean(drawn) == pytest.approx(rate, rel=0.2)
    assert np.corrcoef(risks, probabilities)[0, 1] > 0.9


def write_results(tmp_path: Path, number: int) -> list[tuple[str, str]]:
    """Stored results of one page each whose risk grows with their number."""
    (tmp_path / "results").mkdir(parents=True)
    for position in range(number):
        segment = {
            "segment_index": 1, "start_page": 1, "end_page": 1, "dominant_type": "Other",
            "segment_composition": [{"document_type": "Other", "confidence": 1 - position / (2 * number)}],
        }  # fmt: skip
        stored = {"schema_version": 1, "issues": [], "classification": {"segments": [segment], "self_evaluation": None}}
        (tmp_path / f"results/d{position}.json").write_text(json.dumps(stored))
    return [(f"{position:064}", f"d{position}") for position in range(number)]


def test_mean_deviation_needs_results_and_depends_on_no_order(tmp_path: Path):
    output_folder = open_folder(tmp_path)
    rows = write_results(tmp_path, 300)
    assert measure_mean_risk_deviation(output_folder, rows[:49]) is None
    measured = measure_mean_risk_deviation(output_folder, rows)
    assert measured == measure_mean_risk_deviation(output_folder, rows[::-1])
    expected = [compute_risk_deviation(position / 600) for position in range(200)]
    assert measured == pytest.approx(np.mean(expected), abs=1e-4)
    (tmp_path / "results/d0.json").write_text("{")  # damaged: the run itself names it
    assert measure_mean_risk_deviation(output_folder, rows) == pytest.approx(np.mean(expected[1:]), abs=1e-4)


def test_second_run_draws_new_documents_by_their_risk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("evalkit.pipeline.sample_draws._MIN_RESULTS_READ", 1)
    pages = tmp_path / "pages"
    pages.mkdir()
    lines = (
        "Operative note. The patient was seen in clinic today for follow up. Assessment and plan: continue treatment."
    )
    for name in ("first", "second"):
        (pages / f"{name}.txt").write_text(f"{lines} Visit {name}.")
    settings = Settings.load(output=str(tmp_path / "output"), audit_rate_start=0.5)
    evalkit.run([pages / "first.txt"], settings=settings)
    evalkit.run([pages / "second.txt"], settings=settings)

    def read(name: str) -> dict:
        return json.loads((tmp_path / "output" / name).read_text())

    results = {name: read(f"results/{name}.json") for name in ("first", "second")}
    assert {result["decision"] for result in results.values()} == {"AUTO_ACCEPT"}
    mean_deviation = compute_risk_deviation(compute_result_risk(results["first"]))
    expected = compute_audit_probability(0.5, compute_result_risk(results["second"]), mean_deviation)
    assert read("ground_truth/gt_first.json")["inclusion_probability"] == 0.5
    assert read("ground_truth/gt_second.json")["inclusion_probability"] == expected
