"""A review's plan: what is asked and at what price; and what a case that asks only about its doubts records."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.classification.schema import ClassificationOutput, DocumentType
from evalkit.errors import ReviewRefused
from evalkit.evaluation.ground_truth_table import load_ground_truth
from evalkit.evaluation.study import read_folder_study
from evalkit.issue import Issue
from evalkit.review import ClassificationReviewCase, Draft, publish_packet_unless_frozen
from evalkit.review.kinds.classification import ClassificationKind, ClassificationPacket
from evalkit.review.queue import derive_closed_case_rows
from evalkit.review.review_plan import AskedPart, ReviewCosts, is_drawn_to_be_shown_whole
from evalkit.settings import PriceSettings
from evalkit.store import bundle_file_name, result_file_name

NOTE, PATHOLOGY, GENOMIC, RADIOLOGY, OTHER = DocumentType
PAGES = 16
SPANS = (
    (1, 3, GENOMIC), (4, 5, NOTE), (6, 8, OTHER), (9, 12, PATHOLOGY), (13, 14, RADIOLOGY), (15, 16, GENOMIC),
)  # fmt: skip


def answer_with(build: Any, confidences: dict[int, float] | None = None, doubts: Any = ()) -> ClassificationOutput:
    """Six documents of which the program is nearly certain, except of those in ``confidences``."""
    segments = []
    for number, (start, end, kind) in enumerate(SPANS, 1):
        segment = build.segment(number, start, end, kind)
        certain = (confidences or {}).get(number, 0.995)
        presences = tuple(
            presence.model_copy(update={"confidence": certain}) if presence.document_type is kind else presence
            for presence in segment.segment_composition
        )
        segments.append(segment.model_copy(update={"segment_composition": presences}))
    pages = Counter[str]()
    for start, end, kind in SPANS:
        pages[str(kind)] += end - start + 1
    answer = build.answer(segments, {kind: count / PAGES for kind, count in pages.items()}, GENOMIC)
    return answer.model_copy(update={"self_evaluation": {"doubtful_joins": list(doubts)}})


def boundary_doubt(build: Any, page: int, doubt: str = "stated") -> Issue:
    return build.issue("V2-0001", "MAJOR", "V2-BOUNDARY-DOUBT", page=page, facts={"doubt": doubt, "percent": 45})


def packet_of(build: Any, answer: Any, issues: Any, doc_id: str = "doc2_6", **changed: Any) -> ClassificationPacket:
    bundle = build.bundle([["a"]] * PAGES)
    packet = build.packet(build.result(answer, issues, doc_id), bundle, **changed)
    return packet.model_copy(update={"review_plan": packet.plan_review(ReviewCosts())})


def open_case(build: Any, packet: ClassificationPacket) -> ClassificationReviewCase:
    shown = packet.with_asked_questions()
    draft = Draft.from_packet(packet)
    return ClassificationReviewCase(
        shown, build.bundle([["a"]] * PAGES), 0, draft, None, is_completed=False, reviews=()
    )


def see(draft: Draft, pages: Any, issues: Any = ()) -> Draft:
    for page in pages:
        draft = draft.show_page_and_mark_seen(page)
    for issue_id in issues:
        draft = draft.show_issue_and_mark_seen(issue_id)
    return draft


def record(case: ClassificationReviewCase, packet: Any, draft: Draft, *, validate: bool) -> dict[str, Any]:
    submission = case.build_submission(draft, validate=validate, undeterminable_reason=None)
    outcome = "validated" if submission.agrees else "corrected"
    return ClassificationKind().build_review_fields(outcome, submission, packet, case.bundle) | {
        "form": submission.shown.form
    }


# --- what is asked ----------------------------------------------------------------------------------------------------


def test_only_the_boundary_in_doubt_is_asked(build: Any) -> None:
    plan = packet_of(build, answer_with(build), [boundary_doubt(build, 6)]).review_plan
    assert [(asked.part, asked.pages, asked.issue_ids) for asked in plan.asked] == [
        ("boundary:6", (5, 6), ("V2-0001",))
    ]
    assert (plan.is_shown_whole, plan.shown_whole_probability) == (False, 0.1)
    assert plan.certainty_by_part.keys() == {f"segment:{number}" for number in range(1, 7)}


@pytest.mark.parametrize(
    ("code", "facts", "is_short"),
    [
        ("V2-ACT-IN-OTHER", {}, True),
        ("V2-PAGES-REPEATED", {"pages": "2 and 7"}, False),
        ("V2-SEGMENT-SHARE-SUM", {}, False),
        ("OWN-CHECK", {}, False),
        ("V2-PATIENT-SEVERAL", {"count": 2, "other_page": 1}, True),
        ("V2-PATIENT-SEVERAL", {"count": 3, "other_page": 1}, False),
    ],
)
def test_only_questions_about_a_part_stand_alone(build: Any, code: str, facts: Any, is_short: bool) -> None:
    """Whether pages are repeated, or shares are right, is no question about a type; two pages show no third patient."""
    issue = build.issue("V2-0001", "MAJOR", code, page=7, segment_index=3, facts=facts)
    assert bool(packet_of(build, answer_with(build), [issue]).review_plan.asked) is is_short


def test_a_low_certainty_is_asked_if_it_costs_more_than_the_question(build: Any) -> None:
    answer, issue = answer_with(build, {2: 0.8}, [{"page": 11, "begins": 0.3}]), boundary_doubt(build, 6)
    packet = build.packet(build.result(answer, [issue]), build.bundle([["a"]] * PAGES))

    def list_asked(usd: float) -> set[str]:
        costs = ReviewCosts(PriceSettings(wrong_accept_usd=usd, minute_usd=3))
        return {asked.part for asked in packet.plan_review(costs).asked}

    # A page takes 20 seconds, so a question about a type costs $1, one about a boundary $2.
    assert list_asked(4) == {"boundary:6"}
    assert list_asked(6) == {"boundary:6", "segment:2"}
    assert list_asked(8) == {"boundary:6", "segment:2", "boundary:11"}
    assert packet.plan_review(ReviewCosts(PriceSettings(wrong_accept_usd=1000))).is_shown_whole


def test_embedded_answers_are_surer_than_they_say(build: Any) -> None:
    packet = build.packet(
        build.result(answer_with(build, {2: 0.9}), [boundary_doubt(build, 6)]), build.bundle([["a"]] * PAGES)
    )
    asked = [
        {one.part for one in packet.plan_review(ReviewCosts(), name).asked} for name in ("embedded", "other:model")
    ]
    assert asked == [{"boundary:6"}, {"boundary:6", "segment:2"}]


@pytest.mark.parametrize(
    ("issues", "changed"),
    [
        (lambda build: [boundary_doubt(build, 6), build.issue("V3-0001", "BLOCKER")], {}),
        (lambda build: [boundary_doubt(build, 6), build.issue("V2-0009", "MAJOR", "V2-PAGES-MISSING")], {}),
        (lambda build: [build.issue("V2-0001", "MINOR", "V2-TIE")] * 12, {}),
        (lambda build: [boundary_doubt(build, 6)], {"review_reason": "audit", "inclusion_probability": 0.2}),
        (lambda build: [boundary_doubt(build, page) for page in (2, 6, 8, 11, 14)], {}),
    ],
    ids=["blocker", "names no part", "no doubt", "audit", "as many pages"],
)  # fmt: skip
def test_other_cases_are_shown_whole(build: Any, issues: Any, changed: Any) -> None:
    packet = packet_of(build, answer_with(build), issues(build), **changed)
    assert (packet.review_plan.is_shown_whole, packet.review_plan.asked) == (True, ())
    assert packet.with_asked_questions().issues == packet.issues
    assert not open_case(build, packet).is_short(Draft.from_packet(packet))


def test_one_case_in_ten_is_shown_whole_and_says_what_was_in_doubt(build: Any) -> None:
    names = [f"doc_{number}" for number in range(2000)]
    drawn = [name for name in names if is_drawn_to_be_shown_whole(name)]
    assert 160 < len(drawn) < 240
    packet = packet_of(build, answer_with(build), [boundary_doubt(build, 6)], doc_id=drawn[0])
    assert (packet.asked_parts, [asked.part for asked in packet.review_plan.asked]) == ((), ["boundary:6"])
    assert not open_case(build, packet).is_short(Draft.from_packet(packet))


def test_judgements_change_the_worth_of_a_code(build: Any) -> None:
    issue = boundary_doubt(build, 6)
    rows = [
        {
            "kind": "classification",
            "seconds_active": 60.0,
            "pages_seen": 2,
            "confirmed": "",
            "dismissed": issue.code,
            "source": "embedded",
            "review_reason": "escalated",
            "type_outcomes": "",
        }
    ]
    before, after = ReviewCosts(), ReviewCosts.from_closings(PriceSettings(), rows * 40)
    assert before.estimate_issue_risk(issue) == 0.5
    assert after.estimate_issue_risk(issue) == pytest.approx(5 / 50)
    assert (before.estimate_minutes("classification", 3), after.estimate_minutes("classification", 3)) == (1.0, 1.5)
    few = ReviewCosts.from_closings(PriceSettings(), rows * 4)
    assert few.estimate_minutes("classification", 3) == 1.0


def test_a_model_that_is_surer_than_it_says_is_asked_about_less(build: Any) -> None:
    row = {
        "kind": "classification", "seconds_active": None, "pages_seen": 0, "confirmed": "", "dismissed": "",
        "source": "own:model", "review_reason": "escalated", "type_outcomes": "0.1000:0,0.1000:0",
    }  # fmt: skip
    costs = ReviewCosts.from_closings(PriceSettings(), [row] * 100)
    assert costs.estimate_type_risk(0.9, "own:model") < 0.03
    assert costs.estimate_type_risk(0.9, "another") == pytest.approx(0.1)
    wrong = ReviewCosts.from_closings(PriceSettings(), [row | {"type_outcomes": "0.1000:1"}] * 100)
    assert wrong.estimate_type_risk(0.9, "own:model") > 0.5
    audits = ReviewCosts.from_closings(PriceSettings(), [row | {"review_reason": "audit"}] * 100)
    assert audits.estimate_type_risk(0.9, "own:model") == pytest.approx(0.1)


def test_closed_cases_tell_how_often_stated_risks_were_right(build: Any, workspace: Any, open_tab: Any) -> None:
    answer = build.answer(
        [build.segment(1, 1, 1, NOTE), build.segment(2, 2, 3, OTHER)], {"Clinical Note": 0.33, "Other": 0.67}, OTHER
    )
    workspace.publish(answer, [build.issue("V3-0001")], build.bundle([["a"]] * 3))
    lee = open_tab("dr_lee")
    draft = see(lee.open_and_claim_case("doc2_6").draft.set_segment_type(0, GENOMIC), [1, 2])
    lee.submit_review("doc2_6", draft.set_issue_verdict("V3-0001", "dismissed"))
    (row,) = workspace.index.list_closings()
    assert (row["type_outcomes"], row["dismissed"], row["pages_seen"]) == ("0.1000:1,0.1000:0", "V3-TRAP-VENDOR", 2)
    assert [*derive_closed_case_rows(workspace.files)] == [
        {name: row[name] for name in row if name not in ("kind", "source", "review_reason")}
    ]


def test_blockers_of_rules_come_before_any_price(build: Any) -> None:
    by_rule, by_model = (
        packet_of(build, answer_with(build), [build.issue("V3-0001", "BLOCKER", origin=origin)])
        for origin in ("rule", "model")
    )
    assert by_rule.errors_per_minute == float("inf")
    assert 0 < by_model.errors_per_minute < float("inf")


# --- what is recorded -------------------------------------------------------------------------------------------------


def test_validating_vouches_only_for_what_was_asked_and_seen(build: Any) -> None:
    packet = packet_of(build, answer_with(build), [boundary_doubt(build, 6)])
    case = open_case(build, packet)
    for draft in (case.draft, see(case.draft, [5, 6]), see(case.draft, [6], ["V2-0001"])):
        assert "not yet seen" in case.explain_validation_block(draft)
        with pytest.raises(ReviewRefused, match="not yet seen"):
            record(case, packet, draft, validate=True)
    fields = record(case, packet, see(case.draft, [5, 6], ["V2-0001"]), validate=True)
    assert (fields["vouched"], fields["form"]) == (("boundary:6",), "short")
    lines = [line.text for line in case.describe_record(case.draft) if line.kind == "vouch"]
    assert lines == [
        "You vouch for: a new document begins on page 6",
        "The rest stays as the program has it; nobody vouches for it",
    ]


def test_a_short_submission_vouches_for_no_page_that_was_not_seen_and_no_other_part(build: Any) -> None:
    remark = build.issue("V2-0002", "MINOR", "V2-UNSURE", segment_index=1, page=1, document_type="Genomic Report")
    packet = packet_of(build, answer_with(build), [boundary_doubt(build, 6), remark])
    case = open_case(build, packet)
    assert [asked.part for asked in packet.asked_parts] == ["boundary:6"]
    draft = see(case.draft, [1, 5, 6], ["V2-0001", "V2-0002"]).set_issue_verdict("V2-0002", "dismissed")
    submission = case.build_submission(draft, validate=True, undeterminable_reason=None)
    build_fields = ClassificationKind().build_review_fields
    assert build_fields("validated", submission, packet, case.bundle)["vouched"] == ("boundary:6",)
    for unseen in ({"pages_seen": (6,)}, {"evidence_seen": ()}):
        fields = build_fields("validated", replace(submission, **unseen), packet, case.bundle)
        assert fields["vouched"] == ()


def test_an_answer_that_changes_the_boundary_vouches_for_it_alone(build: Any) -> None:
    packet = packet_of(build, answer_with(build), [boundary_doubt(build, 6)])
    case = open_case(build, packet)
    draft = see(case.answer_boundary(case.draft, 6, begins=False), [5, 6])
    assert case.is_short(draft)
    assert "You vouch for: no new document begins on page 6" in [line.text for line in case.describe_record(draft)]
    fields = record(case, packet, draft, validate=False)
    assert (fields["vouched"], fields["form"]) == (("boundary:6",), "short")
    assert [(part.start_page, part.end_page) for part in fields["after"].segments] == [
        (1, 3), (4, 8), (9, 12), (13, 14), (15, 16),
    ]  # fmt: skip


def test_a_new_document_needs_a_type_which_is_vouched_for(build: Any) -> None:
    packet = packet_of(build, answer_with(build), [boundary_doubt(build, 11, "stated against")])
    case = open_case(build, packet)
    draft = see(case.answer_boundary(case.draft, 11, begins=True), [10, 11])
    assert case.explain_submission_block(draft) == "pages 11–12 have no type yet"
    draft = draft.set_segment_type(4, RADIOLOGY)
    vouched = "You vouch for: a new document begins on page 11; type of pages 11–12: Radiology Report"
    assert vouched in [line.text for line in case.describe_record(draft)]
    fields = record(case, packet, draft, validate=False)
    assert (fields["vouched"], fields["form"]) == (("boundary:11", "segment:5"), "short")


def test_a_doubt_without_an_issue_is_a_question_of_its_own(build: Any) -> None:
    doubts = [{"page": 11, "begins": 0.3}]
    packet = packet_of(build, answer_with(build, {2: 0.7}, doubts), [boundary_doubt(build, 6)])
    case = open_case(build, packet)
    questions = {issue.issue_id: issue for issue in case.packet.issues}
    assert questions.keys() == {"V2-0001", "segment:2", "boundary:11"}
    assert case.boundary_doubts[1].issue_id == "boundary:11"
    draft = see(case.draft, [4, 5, 6, 10, 11], questions)
    kept = draft.set_issue_verdict("segment:2", "dismissed").set_issue_verdict("boundary:11", "dismissed")
    fields = record(case, packet, kept, validate=True)
    assert {*fields["vouched"]} == {"boundary:6", "segment:2", "boundary:11"}
    # What the record denies, nobody vouches for.
    denied = record(case, packet, kept.set_issue_verdict("segment:2", "confirmed"), validate=True)
    assert {*denied["vouched"]} == {"boundary:6", "boundary:11"}
    assert "Is it to be recorded" in case.find_contradiction(kept.set_issue_verdict("segment:2", "confirmed"))
    corrected = record(
        case, packet, kept.set_segment_type(1, OTHER).set_issue_verdict("segment:2", "confirmed"), validate=False
    )
    assert {*corrected["vouched"]} == {"boundary:6", "segment:2", "boundary:11"}


@pytest.mark.parametrize(
    "change",
    [
        lambda draft: draft.set_segment_type(0, NOTE),
        lambda draft: draft.toggle_boundary(9),
        lambda draft: draft.set_dominant_type(OTHER),
        lambda draft: draft.model_copy(update={"shows_everything": True}).toggle_boundary(6),
    ],
)
def test_any_other_change_asks_about_the_whole_file(build: Any, change: Any) -> None:
    packet = packet_of(build, answer_with(build), [boundary_doubt(build, 6)])
    case = open_case(build, packet)
    draft = change(see(case.draft, [5, 6], ["V2-0001"]))
    assert not case.is_short(draft)
    assert "not yet seen" in case.explain_submission_block(draft)
    fields = record(case, packet, see(draft, range(1, PAGES + 1)), validate=False)
    assert fields["form"] == "whole"
    assert "dominant_type" in fields["vouched"]


@settings(max_examples=60)
@given(st.data())
def test_nothing_is_vouched_for_that_was_not_asked_and_seen(build: Any, data: st.DataObject) -> None:
    doubts = [{"page": page, "begins": 0.3} for page in data.draw(st.lists(st.sampled_from([2, 5, 11]), unique=True))]
    unsure = data.draw(st.dictionaries(st.integers(1, 4), st.just(0.8), max_size=1))
    packet = packet_of(build, answer_with(build, unsure, doubts), [boundary_doubt(build, 6)])
    case = open_case(build, packet)
    required = case.get_viewing_requirements(case.draft) if data.draw(st.booleans()) else None
    draft = see(case.draft, required.page_numbers, required.issue_ids) if required else case.draft
    draft = see(draft, data.draw(st.lists(st.integers(1, PAGES), max_size=PAGES)))
    for issue in case.packet.issues:
        if data.draw(st.booleans()):
            draft = see(draft, [], [issue.issue_id])
        if verdict := data.draw(st.sampled_from([None, "confirmed", "dismissed"])):
            draft = draft.set_issue_verdict(issue.issue_id, verdict)
    for doubt in case.boundary_doubts:
        if data.draw(st.booleans()):
            draft = case.answer_boundary(draft, doubt.page, begins=data.draw(st.booleans()))
    if data.draw(st.booleans()):
        position = data.draw(st.integers(0, len(draft.segments) - 1))
        draft = draft.set_segment_type(position, data.draw(st.sampled_from(list(DocumentType))))
    try:
        fields = record(case, packet, draft, validate=data.draw(st.booleans()))
    except ReviewRefused:
        return
    if fields["form"] == "whole":
        return
    for part in fields["vouched"]:
        asked = find_question_about(packet, part, fields["after"])
        assert {*asked.pages} <= {*draft.pages_seen}
        assert {*asked.question_ids} <= {*draft.evidence_seen}


def find_question_about(packet: ClassificationPacket, part: str, after: ClassificationOutput) -> AskedPart:
    """The question by which a part, by its number in the expert's answer, was asked."""
    asked = {one.part: one for one in packet.asked_parts}
    kind, _, number = part.partition(":")
    if kind != "segment":
        return asked[part]
    start = after.segments[int(number) - 1].start_page
    sources = [
        name for name in asked if name in {f"segment:{at}" for at, span in enumerate(SPANS, 1) if span[0] == start}
    ]
    return asked[sources[0] if sources else f"boundary:{start}"]


def test_a_short_review_is_silver_where_nobody_vouches(build: Any, workspace: Any, open_tab: Any) -> None:
    bundle = build.bundle([["a"]] * PAGES)
    workspace.files.write_json(bundle_file_name("doc2_6"), bundle.model_dump(mode="json"))
    result = build.result(answer_with(build), [boundary_doubt(build, 6)])
    workspace.files.write_json(result_file_name("doc2_6"), result.model_dump(mode="json"))
    packet = build.packet(result, bundle)
    publish_packet_unless_frozen(workspace.files, workspace.index, packet, costs=ReviewCosts())
    lee = open_tab("dr_lee")
    case = lee.open_and_claim_case("doc2_6")
    assert case.is_short(case.draft)
    draft = see(case.answer_boundary(case.draft, 6, begins=False), [5, 6])
    review = lee.submit_review("doc2_6", draft).review
    assert (review.outcome, review.vouched, review.shown.form) == ("corrected", ("boundary:6",), "short")
    truth = workspace.truth()
    assert (truth["vouched"], truth["corrected_dominant_type"]) == (["boundary:6"], None)
    assert load_ground_truth(workspace.root).empty
    table = load_ground_truth(workspace.root, "segment", silver=True)
    assert (len(table), table["is_vouched"].any(), {*table["vouched"]}) == (5, False, {"boundary:6"})
    (document,) = read_folder_study(workspace.files).documents
    assert (document.doubtful_parts, document.asks_only_doubts, document.reviews[0].is_short) == (
        {"boundary:6"}, True, True,
    )  # fmt: skip
    assert not document.has_expert_action
    lee.reopen_case("doc2_6")
    again = lee.open_and_claim_case("doc2_6")
    assert again.is_short(again.draft)
    assert [segment.start_page for segment in again.draft.segments] == [1, 4, 9, 13, 15]
    everything = see(again.draft.model_copy(update={"shows_everything": True}), [1, 4, 9, 13, 15])
    whole = lee.submit_review("doc2_6", everything).review
    assert (whole.vouched, whole.shown.form) == (("dominant_type", "segments", "boundary:6"), "whole")
    assert len(load_ground_truth(workspace.root)) == 1
    (document,) = read_folder_study(workspace.files).documents
    assert (document.truth.vouched, document.reviews[-1].is_short) == ({"boundary:6"}, False)
    assert document.review_probability == 0, "opened by choice, it stands for no other"
