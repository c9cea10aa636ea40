"""What rules are worth and which errors they stop, by documents made by hand."""

import math
import random
from dataclasses import replace

import pytest
from evaluation.findings import answer, finding
from evaluation.studies import GENOMIC, NOTE, OTHER, document, escalated_document, labels, study, truth
from hypothesis import given
from hypothesis import strategies as st
from pandas import DataFrame

from evalkit.evaluation.intervals import (
    CertainlyReviewedCounts,
    DrawnDocument,
    estimate_hit_share_in_domain,
    estimate_proportion,
)
from evalkit.evaluation.verifier_performance import (
    RULE_COLUMNS,
    count_struck_quotes,
    describe_rule_worth,
    get_rule_key,
    is_sole_escalator,
    tabulate_rule_performance,
)

VENDOR, ABSENT, SEMANTIC = "V3-TRAP-VENDOR", "V4-QUOTE-ABSENT", "V2-SEMANTIC"
LENGTH, SHARES = "V4-SNIPPET-LENGTH", "V2-SEGMENT-SHARE-SUM"


THREE = ((1, 2, NOTE), (3, 4, GENOMIC), (5, 6, OTHER))


def row(frame: DataFrame, **where: str) -> dict:
    for name, value in where.items():
        frame = frame[frame[name] == value]
    (only,) = frame.to_dict("records")
    return only


def corrected(kind: str = GENOMIC, *segments, **more):
    return truth(kind, *segments, source="SME_CORRECTED", **more)


# ---------------------------------------------------------------------------------------------------------------------
# By rule


def test_what_a_rule_raised_and_what_experts_said_of_it() -> None:
    many = (
        finding(VENDOR, expert_verdict="confirmed"),
        finding(VENDOR, expert_verdict="dismissed"),
        finding(VENDOR, status="repaired"),
        finding(VENDOR, origin="model", expert_verdict="confirmed"),
    )
    frame = tabulate_rule_performance(
        study(
            escalated_document("a", issues=many),
            escalated_document("b", issues=(finding(VENDOR, expert_verdict="confirmed"),)),
        )
    )
    assert tuple(frame.columns) == RULE_COLUMNS
    assert list(zip(frame["agent"], frame["code"], frame["origin"], strict=True)) == [
        ("V3", VENDOR, "model"),
        ("V3", VENDOR, "rule"),
    ]
    rule = row(frame, origin="rule")
    assert {name: rule[name] for name in ("documents", "raised", "confirmed", "dismissed", "unjudged", "judged")} == {
        "documents": 2,
        "raised": 4,
        "confirmed": 2,
        "dismissed": 1,
        "unjudged": 1,
        "judged": 3,
    }
    # Clopper and Pearson for 2 of 3: two or more are 3p² - 2p³, two or fewer 1 - p³.
    assert rule["precision"] == pytest.approx(2 / 3, abs=1e-9)
    assert 3 * rule["low"] ** 2 - 2 * rule["low"] ** 3 == pytest.approx(0.025, abs=1e-9)
    assert 1 - rule["high"] ** 3 == pytest.approx(0.025, abs=1e-9)


def test_nothing_is_claimed_of_issues_that_nobody_judged() -> None:
    one = row(tabulate_rule_performance(study(escalated_document("a", issues=(finding(VENDOR),)))))
    assert (one["judged"], one["low"], one["high"], one["open"]) == (0, 0.0, 1.0, 1)
    assert one["precision"] is None or math.isnan(one["precision"])
    assert one["verdict"] == "too few judged: 36 more needed"
    assert tabulate_rule_performance(study()).empty
    assert tuple(tabulate_rule_performance(study()).columns) == RULE_COLUMNS


@pytest.mark.parametrize(
    ("findings", "rule", "is_alone"),
    [
        ([finding(VENDOR)], VENDOR, True),
        ([finding(VENDOR), finding(VENDOR, severity="MAJOR")], VENDOR, True),
        ([finding(VENDOR), finding(LENGTH, "MINOR")], VENDOR, True),
        ([finding(VENDOR), finding(LENGTH, "MINOR")], LENGTH, False),
        ([finding(VENDOR), finding(ABSENT)], VENDOR, False),
        ([finding(VENDOR), finding(ABSENT, status="repaired")], VENDOR, True),
        ([finding(VENDOR), finding(SEMANTIC, "MAJOR")], VENDOR, False),
        ([finding(VENDOR), finding(SHARES, "MAJOR", auto_fixable=True)], VENDOR, False),  # it would be repaired first
        ([finding(SEMANTIC, "MAJOR"), finding(VENDOR, "MINOR")], SEMANTIC, True),
        ([finding(VENDOR), finding(VENDOR, origin="model")], VENDOR, False),
    ],
)
def test_alone_is_what_the_arbiter_would_have_accepted_without(findings, rule, is_alone) -> None:
    one = escalated_document("a", issues=tuple(findings))
    key = next(get_rule_key(each) for each in findings if each.code == rule)
    assert is_sole_escalator(one, key) is is_alone
    assert not is_sole_escalator(document("a", issues=tuple(findings)), key)


def test_what_a_rule_alone_cost_and_was_worth() -> None:
    alone = {"issues": (finding(VENDOR),)}
    both = {"issues": (finding(VENDOR), finding(ABSENT))}
    opinions = (
        answer("b", active_seconds=60.0),
        answer("b.second", active_seconds=None),
        answer("b", active_seconds=None, outcome="reopened"),
    )
    frame = tabulate_rule_performance(
        study(
            escalated_document("a", truth=truth(), reviews=(answer("a", active_seconds=90.0),), **alone),
            escalated_document("b", truth=corrected(), reviews=opinions, **alone),
            escalated_document("c", **alone),
            escalated_document("d", truth=truth(OTHER, source="GOLD"), **alone),
            escalated_document("e", truth=truth(source="GOLD"), **alone),
            escalated_document("f", truth=corrected(), reviews=(answer("f", active_seconds=600.0),), **both),
        )
    )
    one = row(frame, code=VENDOR)
    assert (one["documents"], one["alone"], one["validated"], one["corrected"], one["open"]) == (6, 5, 2, 2, 1)
    assert (one["minutes"], one["untimed"]) == (2.5, 1)
    other = row(frame, code=ABSENT)
    assert (other["alone"], other["minutes"], other["verdict"]) == (0, 0, "never the only reason for an escalation")


@pytest.mark.parametrize(
    ("true", "now", "needed"),
    [
        (corrected(GENOMIC), GENOMIC, False),  # a later run answers as the expert did
        (corrected(GENOMIC), OTHER, True),
        (truth(NOTE), GENOMIC, True),  # or no longer as the expert found right
        (truth(NOTE), NOTE, False),
        (truth(NOTE), None, True),
        (corrected(vouched=frozenset()), NOTE, None),
        (replace(corrected(vouched=frozenset({"mixture"})), labels=labels(mixture_shares={NOTE: 0.9})), NOTE, True),
    ],
)
def test_the_answer_of_today_is_judged_not_that_of_the_review(true, now, needed) -> None:
    one = row(
        tabulate_rule_performance(
            study(escalated_document("a", truth=true, agent_labels=labels(now), issues=(finding(VENDOR),)))
        )
    )
    assert (one["corrected"], one["validated"], one["open"]) == (needed is True, needed is False, needed is None)


def test_a_struck_quote_is_an_error_of_evidence_only() -> None:
    review = answer("a", struck_quotes=1)
    struck = escalated_document(
        "a",
        truth=truth(),
        reviews=(review,),
        issues=(finding(ABSENT, expert_verdict="confirmed", quote="BRCA2 was found"),),
    )
    rule = row(tabulate_rule_performance(study(struck)))
    assert (rule["confirmed"], rule["corrected"], rule["validated"]) == (1, 1, 0)
    undecided = escalated_document("b", reviews=(replace(review, case_id="b"),))
    dismissed = escalated_document(
        "c", truth=truth(), issues=(finding(ABSENT, expert_verdict="dismissed", quote="BRCA1 was found"),)
    )
    assert count_struck_quotes(study(struck, undecided, dismissed)) == (1, 1)
    assert row(tabulate_rule_performance(study(dismissed)))["validated"] == 1


def test_segments_in_another_order_are_no_error() -> None:
    one = escalated_document(
        "a", page_count=6, agent_labels=labels(NOTE, *THREE[::-1]), truth=truth(NOTE, *THREE), issues=(finding(VENDOR),)
    )
    assert row(tabulate_rule_performance(study(one)))["validated"] == 1


def test_a_missing_answer_that_gold_contradicts_was_needed() -> None:
    failed = {"issues": (finding("CLASSIFIER-AGENT-FAILED", agent="classifier"),), "agent_labels": None}
    one = row(tabulate_rule_performance(study(escalated_document("a", truth=truth(source="GOLD"), **failed))))
    assert (one["validated"], one["corrected"], one["open"]) == (0, 1, 0)


def test_simulated_reviewers_are_counted_in_every_frame() -> None:
    by_program = {"is_simulated": True, "reviewer": "simulated_ash"}
    dismissed = (finding(VENDOR, page=1, expert_verdict="dismissed"),)
    answers = (answer("a", outcome="corrected", **by_program),)
    asked = escalated_document("a", issues=dismissed, reviews=answers)  # for a second opinion: no truth yet
    known = escalated_document("b", issues=dismissed, truth=truth(GENOMIC, source="GOLD", **by_program))
    by_a_person = escalated_document("c", issues=dismissed, truth=corrected())
    whole = study(asked, known, by_a_person)
    assert list(tabulate_rule_performance(whole)["simulated"]) == [2]


@pytest.mark.parametrize(
    ("corrections", "needless", "said"),
    [
        (0, 35, "too few judged: 1 more needed"),
        (0, 36, "costs more than it gives"),
        (1, 1, "too few judged: 4 more needed"),
        (2, 0, "gives more than it costs"),
        (1, 0, "too few judged: 1 more needed"),
        (10, 90, "cost and benefit about equal: more cases would not tell"),
    ],
)
def test_a_rule_is_judged_only_where_the_interval_tells(corrections, needless, said) -> None:
    assert describe_rule_worth(corrections, needless) == said


@given(st.integers(0, 60), st.integers(0, 60), st.sampled_from([0.05, 0.1, 0.5]))
def test_recommended_number_of_further_cases_is_minimal(corrections, needless, pays_from) -> None:
    said, judged = describe_rule_worth(corrections, needless, pays_from), corrections + needless
    share = corrections / judged if judged else 0.0

    def tells(n: int) -> bool:
        interval = estimate_proportion(share * n, n)
        return interval.high < pays_from or interval.low > pays_from

    assert tells(judged) == (said in ("costs more than it gives", "gives more than it costs"))
    if said.startswith("too few judged"):
        more = int(said.split()[3])
        assert tells(judged + more)
        assert not tells(judged + more - 1)


@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 5), st.integers(0, 5), st.data())
def test_the_share_lies_in_its_interval_and_the_two_halves_agree(hits, misses, open_hits, open_misses, data) -> None:
    drawn = data.draw(
        st.lists(
            st.builds(DrawnDocument, st.sampled_from([True, False, None]), st.booleans(), st.sampled_from([0.05, 0.3]))
        )
    )
    rest = len(drawn) + data.draw(st.integers(0, 50))
    known = data.draw(st.sampled_from([None, 0.0, 1.0]))
    if known is not None:
        drawn = [one._replace(is_hit=bool(known)) for one in drawn]
    one = estimate_hit_share_in_domain(
        CertainlyReviewedCounts(hits, misses, open_hits, open_misses), drawn, rest, known_drawable_hit_share=known
    )
    swapped = [each._replace(is_hit=not each.is_hit) for each in drawn]
    mirrored = None if known is None else 1 - known
    other = estimate_hit_share_in_domain(
        CertainlyReviewedCounts(misses, hits, open_misses, open_hits), swapped, rest, known_drawable_hit_share=mirrored
    )
    assert 0 <= one.low <= one.high <= 1
    assert one.low == pytest.approx(1 - other.high, abs=1e-9)
    if one.value is not None:
        assert one.low - 1e-9 <= one.value <= one.high + 1e-9
        assert other.value is not None
        assert one.value == pytest.approx(1 - other.value, abs=1e-9)


@pytest.mark.parametrize(("wrong", "stopping"), [(0.02, 0.7), (0.1, 0.4), (0.01, 0.0)])
def test_the_interval_covers_the_truth_in_simulated_studies(wrong: float, stopping: float) -> None:
    """600 accepted documents, audited with 0.2, of 800; the share among errors differs between the two parts."""
    chance, covered, repeats = random.Random(7), 0, 300
    for _ in range(repeats):
        certain = [(chance.random() < 0.3, chance.random() < 0.9) for _ in range(200)]
        others = [(chance.random() < wrong, chance.random() < stopping) for _ in range(600)]
        inside = [hit for is_in, hit in (*certain, *others) if is_in]
        one = estimate_hit_share_in_domain(
            CertainlyReviewedCounts(certain.count((True, True)), certain.count((True, False))),
            [DrawnDocument(is_in, hit, 0.2) for is_in, hit in others if chance.random() < 0.2],
            600,
        )
        covered += one.low <= sum(inside) / len(inside) <= one.high
    assert covered / repeats >= 0.94
