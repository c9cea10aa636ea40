"""Presence and mixture: equal to scikit-learn's figures, each document weighing as many as it stands for."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from evaluation.studies import GENOMIC, NOTE, document, escalated_document, labels, study, truth
from sklearn.metrics import precision_recall_fscore_support

from evalkit.evaluation.document_type_scores import PresenceMetrics, TypePresenceScores, measure_type_presence
from evalkit.evaluation.intervals import estimate_proportion
from evalkit.evaluation.report import build_report, convert_report_to_json
from evalkit.evaluation.study import DocumentRecord

EVERYTHING = frozenset({"dominant_type", "segments", "mixture"})


def mixed(
    name: str,
    true: dict[str, str],
    said: dict[str, str] | None,
    *,
    drawn: float = 1.0,
    vouched: frozenset[str] = EVERYTHING,
) -> DocumentRecord:
    """A document whose expert opened the mixture; shares are equal parts of what is PRIMARY."""
    agent = None if said is None else labels(presence_levels=said, mixture_shares=shares(said))
    known = replace(truth(vouched=vouched), labels=labels(presence_levels=true, mixture_shares=shares(true)))
    made = escalated_document if drawn == 1 else document
    return made(name, truth=known, agent_labels=agent, review_probability=drawn)


def shares(levels: dict[str, str]) -> dict[str, float]:
    primary = [kind for kind, level in levels.items() if level == "PRIMARY"]
    return {kind: 1 / len(primary) for kind in primary}


def of(kind: str, known: PresenceMetrics) -> TypePresenceScores:
    return {one.type_name: one for one in known.by_type}[kind]


RAW = {NOTE: "PRIMARY", GENOMIC: "EMBEDDED_RAW"}
MENTIONED = {NOTE: "PRIMARY", GENOMIC: "MENTION_ONLY"}
ONLY_NOTE = {NOTE: "PRIMARY", GENOMIC: "NO_EVIDENCE"}


def test_scores_are_scikit_learns_with_the_documents_weights() -> None:
    made = [
        mixed("a", RAW, RAW),
        mixed("b", RAW, MENTIONED),
        mixed("c", ONLY_NOTE, RAW),
        mixed("d", RAW, ONLY_NOTE, drawn=0.25),
        mixed("e", RAW, RAW, drawn=0.5),
        mixed("f", ONLY_NOTE, ONLY_NOTE, drawn=0.25),
    ]
    weights = [1, 1, 1, 4, 2, 4]
    true, said = [1, 1, 0, 1, 1, 0], [1, 1, 1, 0, 1, 0]
    precision, recall, f1, _ = precision_recall_fscore_support(true, said, sample_weight=weights, average="binary")
    found = of(GENOMIC, measure_type_presence(study(*made)))
    assert (found.precision.value, found.recall.value, found.f1.value) == pytest.approx(
        (precision, recall, f1), abs=1e-9
    )
    assert found.level_agreement.value == pytest.approx((1 + 2 + 4) / 13, abs=1e-9)
    assert found.document_count == 4
    for one in (found.precision, found.recall, found.f1, found.level_agreement):
        assert one.low < one.value < one.high


def test_mixture_errors_weigh_as_much_as_they_stand_for() -> None:
    both = {NOTE: "PRIMARY", GENOMIC: "PRIMARY"}
    known = measure_type_presence(study(mixed("a", both, ONLY_NOTE), mixed("b", ONLY_NOTE, ONLY_NOTE, drawn=0.25)))
    assert known.mixture_error.value == pytest.approx(0.5 / 5)
    assert known.reviewed_mixture_error == pytest.approx(0.5 / 2)
    assert known.mixture_error.low <= 0.1 < known.mixture_error.high


def test_a_document_without_an_answer_is_wrong() -> None:
    known = measure_type_presence(study(mixed("a", RAW, RAW), mixed("b", RAW, None)))
    assert known.document_count == 2
    assert known.mixture_error.value == 0.5
    assert (of(GENOMIC, known).precision.value, of(GENOMIC, known).recall.value) == (1.0, 0.5)
    assert of("Other", known).level_agreement.value == 0.5


@pytest.mark.parametrize("vouched", [frozenset(), frozenset({"dominant_type", "segments"})])
def test_only_a_mixture_that_somebody_stands_for_is_measured_by(vouched: frozenset[str]) -> None:
    """Who validates without opening the mixture leaves the agent's: it would be measured by itself."""
    known = measure_type_presence(study(mixed("a", RAW, RAW, vouched=vouched)))
    assert known.document_count == 0
    assert known.mixture_error.value is None
    assert math.isnan(known.reviewed_mixture_error)


def test_what_is_nowhere_and_never_said_is_not_known() -> None:
    found = of("Other", measure_type_presence(study(mixed("a", RAW, RAW))))
    assert (found.precision.value, found.recall.value, found.f1.value) == (None, None, None)
    assert (found.precision.low, found.precision.high) == (0.0, 1.0)
    assert found.level_agreement.value == 1.0


def test_documents_without_a_type_make_nobody_surer_of_it() -> None:
    made = [mixed(f"r{i}", RAW, RAW) for i in range(2)] + [mixed(f"n{i}", ONLY_NOTE, ONLY_NOTE) for i in range(200)]
    found = of(GENOMIC, measure_type_presence(study(*made)))
    for one in (found.precision, found.recall, found.f1):
        assert (one.value, one.low) == (1.0, pytest.approx(estimate_proportion(2, 2).low))
    assert found.level_agreement.low > 0.97


def test_report_separates_estimates_from_reviewed_only() -> None:
    both = {NOTE: "PRIMARY", GENOMIC: "PRIMARY"}
    made = build_report(study(mixed("a", both, ONLY_NOTE), mixed("b", RAW, RAW, drawn=0.25)), made_at="")
    _, mixture, by_type = made["evidence"].tables
    ((_, estimate, alone),) = mixture.frame.itertuples(index=False, name=None)
    assert (estimate.value, alone) == pytest.approx((0.5 / 5, 0.5 / 2))
    assert "reviewed only" in mixture.frame.columns
    assert by_type.frame["recall"].iloc[2].value == pytest.approx(4 / 5)
    assert len(build_report(study(escalated_document("x", truth=truth())), made_at="")["evidence"].tables) == 1
    told = next(one for one in convert_report_to_json(made)["sections"] if one["title"].startswith("Evidence"))
    assert told["tables"][1]["rows"][0]["estimate"]["method"] == "bootstrap"
