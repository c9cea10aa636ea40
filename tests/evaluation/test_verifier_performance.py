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
from evalkit.evaluation.study import DocumentRecord, Study
from evalkit.evaluation.verifier_performance import (
    MISSED_COLUMNS,
    RULE_COLUMNS,
    STOPPED_COLUMNS,
    count_struck_quotes,
    describe_rule_worth,
    get_rule_key,
    is_answer_wrong,
    is_sole_escalator,
    tabulate_escalated_errors,
    tabulate_rule_performance,
    tabulate_unraised_corrections,
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
    assert (is_answer_wrong(struck, "type"), is_answer_wrong(struck, "segments")) == (False, False)
    assert tabulate_unraised_corrections(study(struck)).empty
    undecided = escalated_document("b", reviews=(replace(review, case_id="b"),))
    dismissed = escalated_document(
        "c", truth=truth(), issues=(finding(ABSENT, expert_verdict="dismissed", quote="BRCA1 was found"),)
    )
    assert count_struck_quotes(study(struck, undecided, dismissed)) == (1, 1)
    assert row(tabulate_rule_performance(study(dismissed)))["validated"] == 1


def test_segments_in_another_order_are_no_error() -> None:
    one = escalated_document("a", page_count=6, agent_labels=labels(NOTE, *THREE[::-1]), truth=truth(NOTE, *THREE))
    assert is_answer_wrong(one, "segments") is False


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
    assert set(tabulate_escalated_errors(whole)["simulated"]) == {1}
    frame = tabulate_unraised_corrections(whole)
    assert set(zip(frame["doc_id"], frame["simulated"], strict=True)) == {("b", 1), ("c", 0)}


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


# ---------------------------------------------------------------------------------------------------------------------
# Stopped


def some_errors() -> Study:
    """Four errors that were escalated, one that an audit with probability 0.5 found among four accepted documents."""
    return study(
        escalated_document("v3", truth=corrected(), issues=(finding(VENDOR), finding(ABSENT, status="repaired"))),
        escalated_document("v3_v4", truth=corrected(), issues=(finding(VENDOR), finding(ABSENT))),
        escalated_document("v4_minor_v3", truth=corrected(), issues=(finding(ABSENT), finding(VENDOR, "MINOR"))),
        escalated_document("v2", truth=corrected(), issues=(finding(SEMANTIC, "MAJOR"),), decision_rule="4"),
        escalated_document("right", truth=truth(), issues=(finding(VENDOR),)),
        document("passed", truth=corrected(), review_probability=0.5),
        document("fine", truth=truth(), review_probability=0.5),
        document("unseen", review_probability=0.5),
        document("unseen_too", review_probability=0.5),
    )


def test_the_share_of_errors_that_each_stopped() -> None:
    frame = tabulate_escalated_errors(some_errors())
    assert tuple(frame.columns) == STOPPED_COLUMNS
    kinds = frame[frame["level"] == "type"].set_index("who")
    assert list(kinds.index) == ["any", "none", "V2", "V3", "V4", SEMANTIC, VENDOR, ABSENT]
    assert set(kinds["errors"]) == {5}
    # Half of the accepted documents that were looked at are wrong: two of the four are. Six errors in all.
    expected = {"any": (4, 4 / 6), "none": (1, 2 / 6), "V2": (1, 1 / 6), "V3": (2, 2 / 6), "V4": (2, 2 / 6)}
    for who, (seen, share) in expected.items():
        assert kinds.loc[who, "stopped"] == seen
        assert kinds.loc[who, "share"] == pytest.approx(share, abs=1e-9)
        assert kinds.loc[who, "low"] <= share <= kinds.loc[who, "high"]
        assert kinds.loc[who, "reviewed_share"] == pytest.approx(seen / 5, abs=1e-9)
    assert kinds.loc["none", "documents"] == ("passed",)
    assert kinds.loc[VENDOR, "documents"] == ("v3", "v3_v4")  # a minor remark stopped nothing: row 1 counts blockers


def test_the_interval_of_what_was_stopped_by_hand() -> None:
    kinds = tabulate_escalated_errors(some_errors()).set_index(["level", "who"])
    interval = estimate_proportion(1, 2)
    # Of four accepted documents one is known to be wrong and one to be right.
    most, least = min(4 * interval.high, 3), max(4 * interval.low, 1)
    assert kinds.loc[("type", "any"), "low"] == pytest.approx(4 / (4 + most), abs=1e-9)
    assert kinds.loc[("type", "any"), "high"] == pytest.approx(4 / (4 + least), abs=1e-9)
    assert kinds.loc[("type", "none"), "high"] == pytest.approx(most / (4 + most), abs=1e-9)
    assert kinds.loc[("type", "V3"), "low"] == pytest.approx(2 / (4 + most), abs=1e-9)


def test_pending_documents_widen_the_bounds() -> None:
    pending = escalated_document("pending", issues=(finding(VENDOR),))
    before, after = (
        tabulate_escalated_errors(some_errors()),
        tabulate_escalated_errors(study(*some_errors().documents, pending)),
    )
    before, after = (one.set_index(["level", "who"]) for one in (before, after))
    assert after.loc[("type", "V3"), "share"] == before.loc[("type", "V3"), "share"]
    assert after.loc[("type", "V3"), "high"] == pytest.approx(3 / (5 + 1), abs=1e-9)
    assert after.loc[("type", "V4"), "low"] == pytest.approx(2 / (5 + 3), abs=1e-9)
    assert after.loc[("type", "V4"), "high"] == before.loc[("type", "V4"), "high"]


def test_without_a_look_at_accepted_documents_no_share_is_told() -> None:
    one = study(escalated_document("a", truth=corrected(), issues=(finding(VENDOR),)), document("b"), document("c"))
    any_one = row(tabulate_escalated_errors(one), level="type", who="any")
    assert any_one["share"] is None or math.isnan(any_one["share"])
    assert any_one["low"] == pytest.approx(1 / 3, abs=1e-9)
    assert (any_one["high"], any_one["reviewed_share"]) == (1.0, 1.0)


def test_only_vouched_parts_and_real_answers_are_errors() -> None:
    segments = ((1, 1, NOTE), (2, 2, GENOMIC))
    frame = tabulate_escalated_errors(
        study(
            escalated_document("type_only", truth=corrected(GENOMIC, vouched=frozenset({"dominant_type"})), issues=()),
            escalated_document("segments_only", truth=corrected(NOTE, *segments), issues=(finding(VENDOR),)),
            escalated_document("other_part", truth=truth(GENOMIC, (1, 2, NOTE), vouched=frozenset({"segments"}))),
            escalated_document("none", truth=corrected(), agent_labels=None),
            escalated_document("cannot_tell", truth=corrected(), agent_labels=labels(None, (1, 2, None))),
            escalated_document("failed", truth=corrected(), agent_labels=labels(GENOMIC, (1, 2, None))),
        )
    )
    any_type, any_segments = (row(frame, level=level, who="any") for level in ("type", "segments"))
    assert (any_type["errors"], any_type["documents"]) == (1, ())
    assert (any_segments["errors"], any_segments["documents"]) == (1, ("segments_only",))
    assert row(frame, level="type", who="none")["documents"] == ("type_only",)


def test_segments_are_compared_as_is_and_merged() -> None:
    """One note was cut into two, which is an error in the first reading alone; a wrong page is one in both."""
    cut = ((1, 1, NOTE), (2, 2, NOTE))
    frame = tabulate_escalated_errors(
        study(
            escalated_document("cut", truth=corrected(NOTE, *cut), issues=(finding(VENDOR),)),
            escalated_document("joined", truth=truth(NOTE), agent_labels=labels(NOTE, *cut), issues=(finding(VENDOR),)),
            escalated_document(
                "wrong", truth=corrected(NOTE, (1, 1, NOTE), (2, 2, GENOMIC)), issues=(finding(ABSENT),)
            ),
            escalated_document(
                "failed", truth=corrected(), agent_labels=labels(NOTE, (1, 2, None)), issues=(finding(ABSENT),)
            ),
        )
    )
    given, merged = (row(frame, level=level, who="any") for level in ("segments", "segments merged"))
    assert given["documents"] == ("cut", "joined", "wrong")
    assert merged["documents"] == ("wrong",)
    assert row(frame, level="segments merged", who="V3")["stopped"] == 0


def test_nothing_at_all() -> None:
    frame = tabulate_escalated_errors(study())
    assert list(frame["who"]) == ["any", "none"] * 3
    assert set(frame["low"]) == {0.0}
    assert set(frame["high"]) == {1.0}


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


# ---------------------------------------------------------------------------------------------------------------------
# Missed


def differences_of(one: DocumentRecord) -> list[tuple[str, str, str, tuple[int, ...]]]:
    frame = tabulate_unraised_corrections(study(one))
    assert tuple(frame.columns) == MISSED_COLUMNS
    return list(zip(frame["differs"], frame["was"], frame["is"], frame["pages"], strict=True))


@pytest.mark.parametrize(
    ("true", "expected"),
    [
        ((NOTE, *THREE), []),
        ((OTHER, *THREE), [("type", NOTE, OTHER, ())]),
        ((NOTE, *THREE[:2], (5, 6, NOTE)), [("segment type", OTHER, NOTE, (5, 6))]),
        (
            (NOTE, THREE[0], (3, 3, GENOMIC), (4, 6, OTHER)),
            [("boundary", "1–2, 3–4, 5–6", "1–2, 3–3, 4–6", (3, 4, 5, 6))],
        ),
    ],
)
def test_what_an_expert_said_otherwise_of_several_segments(true, expected) -> None:
    one = document("a", page_count=6, agent_labels=labels(NOTE, *THREE), truth=truth(*true, source="GOLD"))
    assert differences_of(one) == expected
    backwards = document("a", page_count=6, agent_labels=labels(NOTE, *THREE[::-1]), truth=truth(*true, source="GOLD"))
    assert differences_of(backwards) == expected


@pytest.mark.parametrize("pages", [6, None])
def test_pages_that_a_document_does_not_have_are_not_counted(pages: int | None) -> None:
    endless = labels(NOTE, (1, 2, NOTE), (3, 10**11, OTHER))
    true = truth(NOTE, (1, 2, NOTE), (3, 6, OTHER), source="GOLD")
    ((differs, *_, concerned),) = differences_of(document("a", page_count=pages, agent_labels=endless, truth=true))
    assert (differs, concerned[:4]) == ("boundary", (3, 4, 5, 6))
    assert len(concerned) == 4 if pages else len(concerned) < 10**6
    same = truth(NOTE, (1, 2, NOTE), (3, 10**11, GENOMIC), source="GOLD")
    ((differs, *_, concerned),) = differences_of(document("a", page_count=pages, agent_labels=endless, truth=same))
    assert (differs, concerned[:4]) == ("segment type", (3, 4, 5, 6))


def test_a_document_of_one_segment_is_missed_once() -> None:
    assert differences_of(document("a", truth=truth(GENOMIC, source="GOLD"))) == [("type", NOTE, GENOMIC, ())]


@pytest.mark.parametrize(
    ("found", "is_missed"),
    [
        ((), True),
        ((finding(ABSENT, page=3),), False),
        ((finding(ABSENT),), False),
        ((finding(SEMANTIC, "MAJOR", page=6),), False),
        ((finding(ABSENT, page=1),), True),
        ((finding(ABSENT, page=3, expert_verdict="dismissed"),), True),
        ((finding(ABSENT, page=3, expert_verdict="confirmed"),), False),
        ((finding(ABSENT, page=3, status="repaired"),), True),
        ((finding(LENGTH, "MINOR", page=3),), True),
    ],
)
def test_raised_it_has_who_objected_there(found, is_missed) -> None:
    true = truth(NOTE, THREE[0], (3, 6, GENOMIC), source="GOLD")
    one = escalated_document("a", page_count=6, agent_labels=labels(NOTE, *THREE), truth=true, issues=found)
    assert bool(differences_of(one)) is is_missed


def test_missed_document_has_its_pages_and_no_note_text() -> None:
    note = "Mrs. Doe's second report"
    true = corrected(GENOMIC, review_reason="audit", notes=note, vouched=frozenset({"dominant_type"}))
    found = (finding(LENGTH, "MINOR"), finding(LENGTH, "MINOR", status="repaired"))
    frame = tabulate_unraised_corrections(study(document("a", truth=true, issues=found)))
    assert row(frame) == {
        "doc_id": "a",
        "differs": "type",
        "was": NOTE,
        "is": GENOMIC,
        "pages": (),
        "remarks": 1,
        "decision": "AUTO_ACCEPT",
        "reason": "no check found anything",
        "review_reason": "audit",
        "source": "SME_CORRECTED",
        "note_length": len(note),
        "simulated": 0,
    }
    assert "Doe" not in frame.to_csv()


def flagged(*flags: str) -> tuple[dict, ...]:
    place = {"segment_index": 1, "start_page": 1, "end_page": 2}
    return (*(place | {"flag": flag} for flag in flags), place | {"note": "Mrs. Doe"})


def test_flags_are_read_from_the_review_that_stands() -> None:
    own = (
        answer("a", segment_flags=flagged("duplicate")),
        answer("a", revision=2, segment_flags=flagged("other_patient")),
    )
    opinions = (
        answer("b", segment_flags=flagged("duplicate")),
        answer("b.second", segment_flags=flagged("other_patient")),
        answer("b.adjudication", segment_flags=flagged("out_of_order")),
    )
    frame = tabulate_unraised_corrections(
        study(
            escalated_document("a", truth=truth(), reviews=own, issues=(finding(ABSENT),)),
            escalated_document("b", truth=truth(), reviews=opinions),
            escalated_document("c", truth=truth(source="GOLD"), reviews=own),
            escalated_document("d", reviews=own),
        )
    )
    assert list(zip(frame["doc_id"], frame["differs"], frame["is"], frame["pages"], strict=True)) == [
        ("a", "flag", "other_patient", (1, 2)),
        ("b", "flag", "out_of_order", (1, 2)),
    ]


def test_flag_pages_are_clipped_to_the_document() -> None:
    flags = ({"flag": "duplicate"}, {"flag": "other_patient", "start_page": 2, "end_page": 10**11})
    frame = tabulate_unraised_corrections(
        study(escalated_document("a", truth=truth(), reviews=(answer("a", segment_flags=flags),), page_count=3))
    )
    assert list(zip(frame["is"], frame["pages"], strict=True)) == [("duplicate", ()), ("other_patient", (2, 3))]
