"""Production against the agent and against the truth, by documents made by hand."""

import json
import math
import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from evaluation.studies import GENOMIC, NOTE, OTHER, document, escalated_document, labels, study, truth
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from evalkit.evaluation.intervals import Estimate, estimate_proportion, widen_to_process
from evalkit.evaluation.production import (
    CLASS_COLUMNS,
    DIFFERENCE_COLUMNS,
    compare_program_with_production,
    tabulate_production_scores_by_type,
    tabulate_production_vs_agent,
)
from evalkit.evaluation.study import DocumentLabels, DocumentRecord, Study

KINDS = [NOTE, GENOMIC, OTHER]


def says(kind: str, confidence: float | None = None) -> DocumentLabels:
    return DocumentLabels(kind, confidence=confidence)


def none(value: object) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def test_program_and_production_are_compared_on_the_same_documents() -> None:
    right, wrong = says(NOTE), says(OTHER)
    made = [
        *(document(f"p{number}", truth=truth(), production_labels=wrong) for number in range(9)),
        document("q", truth=truth(), production_labels=right, agent_labels=wrong),
        document("cannot tell", truth=truth(), production_labels=right, agent_labels=None),
        document("no label", truth=truth()),
        document("no truth", production_labels=wrong),
    ]
    outcome = compare_program_with_production(study(*made))
    assert (outcome.only_b_right, outcome.only_a_right, outcome.document_count) == (9, 2, 11)
    assert outcome.p_value == pytest.approx(binomtest(2, 11).pvalue)
    assert outcome.describe_winner("production", "the program") == "no difference shown"
    surer = compare_program_with_production(study(*made[:9]))
    assert surer.describe_winner("production", "the program") == "the program is right more often"


# ---------------------------------------------------------------------------------------------------------------------
# Differences


@pytest.mark.parametrize(
    ("production", "agent", "true", "right"),
    [
        (GENOMIC, NOTE, None, "not known"),
        (GENOMIC, NOTE, truth(GENOMIC), "production"),
        (GENOMIC, NOTE, truth(NOTE), "agent"),
        (GENOMIC, NOTE, truth(OTHER), "neither"),
        (GENOMIC, None, truth(GENOMIC), "production"),
        (GENOMIC, None, truth(OTHER), "neither"),
        ("Lab letter", NOTE, truth(NOTE), "agent"),
        (GENOMIC, NOTE, truth(NOTE, vouched=frozenset({"segments"})), "not known"),
    ],
)
def test_who_is_right_where_they_differ(production, agent, true, right) -> None:
    (one,) = tabulate_production_vs_agent(
        study(document("a", production_labels=says(production), agent_labels=labels(agent), truth=true))
    ).to_dict("records")
    assert (one["production"], one["right"]) == (production, right)
    assert one["agent"] == agent or none(one["agent"])


def test_a_difference_carries_what_is_needed_to_judge_it() -> None:
    frame = tabulate_production_vs_agent(
        study(
            document("alike", production_labels=says(NOTE)),
            document("unlabelled"),
            escalated_document(
                "b",
                production_labels=says(GENOMIC, 0.6),
                agent_labels=labels(NOTE, confidence=0.9),
                truth=truth(is_simulated=True),
                page_count=7,
            ),
            escalated_document("failed", production_labels=says(NOTE), agent_labels=None),
        )
    )
    assert tuple(frame.columns) == DIFFERENCE_COLUMNS
    assert list(frame["doc_id"]) == ["b", "failed"]
    assert frame.to_dict("records")[0] == {
        "doc_id": "b",
        "production": GENOMIC,
        "agent": NOTE,
        "truth": NOTE,
        "right": "agent",
        "production_confidence": 0.6,
        "agent_confidence": 0.9,
        "decision": "ESCALATE_TO_SME",
        "pages": 7,
        "standing": "reviewed",
        "simulated": 1,
    }
    assert tuple(tabulate_production_vs_agent(study()).columns) == DIFFERENCE_COLUMNS


def write_result(folder: Path, doc_id: str, classification: dict | None) -> None:
    (folder / "results").mkdir(exist_ok=True)
    stored = {"schema_version": 1, "doc_id": doc_id, "classification": classification}
    (folder / "results" / f"{doc_id}.json").write_text(json.dumps(stored))


# ---------------------------------------------------------------------------------------------------------------------
# Against the truth


def ten() -> Study:
    """Two escalated and eight accepted documents; of the latter four were looked at, each with probability 0.5."""
    return study(
        escalated_document("e1", production_labels=says(NOTE), truth=truth(GENOMIC)),
        escalated_document("e2", production_labels=says(GENOMIC), truth=truth(GENOMIC)),
        document("a1", production_labels=says(NOTE), truth=truth(NOTE), review_probability=0.5),
        document("a2", production_labels=says(NOTE), truth=truth(NOTE), review_probability=0.5),
        document("a3", production_labels=says(GENOMIC), truth=truth(GENOMIC), review_probability=0.5),
        document("a4", production_labels=says(OTHER), truth=truth(NOTE), review_probability=0.5),
        *(document(f"u{n}", production_labels=says(NOTE), review_probability=0.5) for n in range(4)),
        document("unlabelled", truth=truth(OTHER), review_probability=0.5),
    )


def test_classes_by_hand_the_worst_first() -> None:
    frame = tabulate_production_scores_by_type(ten())
    assert tuple(frame.columns) == CLASS_COLUMNS
    assert list(frame["type"]) == [NOTE, GENOMIC, OTHER]
    rows = frame.set_index("type")
    assert rows.loc[NOTE, "recall"] == pytest.approx(4 / 6, abs=1e-9)
    assert rows.loc[NOTE, "recall_reviewed_only"] == pytest.approx(2 / 3, abs=1e-9)
    assert rows.loc[GENOMIC, "recall"] == pytest.approx(3 / 4, abs=1e-9)
    assert rows.loc[GENOMIC, "recall_reviewed_only"] == pytest.approx(2 / 3, abs=1e-9)
    assert none(rows.loc[OTHER, "recall"])
    # Of the seven that production calls a note one is escalated and wrong; of the others the two that were seen are right.
    assert rows.loc[NOTE, "precision"] == pytest.approx(6 / 7, abs=1e-9)
    of_these = Estimate(6 / 7, 6 * estimate_proportion(2, 2).low / 7, 6 / 7, 2, "weighted")
    assert read_interval(rows.loc[NOTE], "precision") == pytest.approx(widen_to_process(of_these, 7)[1:3], abs=1e-9)
    assert rows.loc[NOTE, "precision_reviewed_only"] == pytest.approx(2 / 3, abs=1e-9)
    assert rows.loc[OTHER, "precision"] == 0
    assert list(rows["said"]) == [7, 2, 1]
    assert list(rows["said_reviewed"]) == [3, 2, 1]
    assert list(rows["true_reviewed"]) == [3, 3, 0]
    assert rows.loc[NOTE, "wrong"] == ("a4",)
    assert rows.loc[GENOMIC, "wrong"] == ("e1",)


def test_the_interval_of_recall_by_hand() -> None:
    """Both size and share of the drawn part are uncertain, each with half of the doubt."""
    row = tabulate_production_scores_by_type(ten()).set_index("type").loc[GENOMIC]
    size, share = estimate_proportion(1, 4, 0.975), estimate_proportion(1, 1, 0.975)
    least, most = max(8 * size.low, 1), min(8 * size.high, 5)
    low = min((1 + one * share.low) / (2 + one) for one in (least, most))
    high = max((1 + one * share.high) / (2 + one) for one in (least, most))
    widened = widen_to_process(Estimate(3 / 4, low, high, 3, "weighted"), 3)
    assert read_interval(row, "recall") == pytest.approx(widened[1:3], abs=1e-9)


def test_what_is_pending_makes_no_figure_better() -> None:
    known = [replace(one, doc_id=f"{one.doc_id}{copy}") for copy in range(12) for one in ten().documents]
    pending = escalated_document("p", production_labels=says(NOTE))
    before, after = (
        tabulate_production_scores_by_type(one).set_index("type") for one in (study(*known), study(*known, pending))
    )
    assert after.loc[NOTE, "precision"] < before.loc[NOTE, "precision"]
    assert after.loc[NOTE, "precision_low"] < before.loc[NOTE, "precision_low"]
    assert after.loc[NOTE, "recall"] == before.loc[NOTE, "recall"]
    assert after.loc[NOTE, "recall_high"] > before.loc[NOTE, "recall_high"]
    assert after.loc[GENOMIC, "recall_low"] < before.loc[GENOMIC, "recall_low"]


def test_known_truths_leave_the_doubt_of_a_sample() -> None:
    """Five documents of five are few to say what the next thousand are like."""
    whole = study(*(escalated_document(f"d{n}", production_labels=says(NOTE), truth=truth(NOTE)) for n in range(5)))
    (row,) = tabulate_production_scores_by_type(whole).to_dict("records")
    for name in ("recall", "precision"):
        assert read_interval(row, name) == pytest.approx(estimate_proportion(5, 5)[1:3], abs=1e-9)


def read_interval(row: Mapping[str, Any], name: str) -> tuple[float, float]:
    return row[f"{name}_low"], row[f"{name}_high"]


def test_unreviewed_accepted_documents_give_no_estimate() -> None:
    one = study(
        escalated_document("e", production_labels=says(NOTE), truth=truth(NOTE, is_simulated=True)),
        document("a", production_labels=says(NOTE)),
    )
    (row,) = tabulate_production_scores_by_type(one).to_dict("records")
    assert none(row["recall"])
    assert none(row["precision"])
    assert (row["recall_reviewed_only"], row["simulated"]) == (1.0, 1)
    assert tabulate_production_scores_by_type(study()).empty


def test_unreadable_document_counts_in_precision_only() -> None:
    lost = document(
        "lost",
        truth_status="unreadable",
        decision=None,
        agent_labels=None,
        review_probability=None,
        production_labels=says(NOTE),
    )
    whole = study(
        *(escalated_document(f"d{n}", production_labels=says(NOTE), truth=truth(NOTE)) for n in range(4)), lost
    )
    (row,) = tabulate_production_scores_by_type(whole).to_dict("records")
    assert row["precision"] == pytest.approx(4 / 5)
    assert read_interval(row, "precision") == pytest.approx((estimate_proportion(4, 5).low, 1))
    assert row["recall"] == 1
    assert read_interval(row, "recall") == pytest.approx(estimate_proportion(4, 4)[1:3])


@given(st.lists(st.tuples(st.sampled_from(KINDS), st.sampled_from(KINDS)), min_size=1, max_size=30))
def test_where_all_were_certain_the_estimate_is_the_count(pairs) -> None:
    whole = study(
        *(
            escalated_document(f"d{n}", production_labels=says(said), truth=truth(true))
            for n, (true, said) in enumerate(pairs)
        )
    )
    for one in tabulate_production_scores_by_type(whole).to_dict("records"):
        for name in ("recall", "precision"):
            alike = one[f"{name}_reviewed_only"]
            assert none(alike) if none(one[name]) else one[name] == pytest.approx(alike, abs=1e-9)


def test_weighted_intervals_cover_truth_and_plain_shares_do_not() -> None:
    """Production errs on 60 % of escalated notes and on 5 % of accepted ones; a fifth of the latter is audited."""
    chance, covered, misled, repeats = random.Random(3), 0, 0, 100
    for _ in range(repeats):
        whole, right = [], 0
        for n in range(600):
            is_escalated = chance.random() < 0.25
            is_right = chance.random() >= (0.6 if is_escalated else 0.05)
            right += is_right
            whole.append(simulated(n, is_escalated, is_right, chance))
        row = tabulate_production_scores_by_type(study(*whole)).set_index("type").loc[NOTE]
        covered += row["recall_low"] <= right / 600 <= row["recall_high"]
        seen = estimate_proportion(row["true_reviewed"] * row["recall_reviewed_only"], row["true_reviewed"])
        misled += not seen.low <= right / 600 <= seen.high
    assert covered / repeats >= 0.94
    assert misled / repeats >= 0.94


def simulated(n: int, is_escalated: bool, is_right: bool, chance: random.Random) -> DocumentRecord:
    fields = {"production_labels": says(NOTE if is_right else GENOMIC)}
    if is_escalated:
        return escalated_document(f"d{n}", truth=truth(NOTE), **fields)
    return document(f"d{n}", truth=truth(NOTE) if chance.random() < 0.2 else None, review_probability=0.2, **fields)
