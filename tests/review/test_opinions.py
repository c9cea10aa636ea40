"""Second opinions and adjudications: who is asked, what follows, and what is true meanwhile."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from places import open_folder
from review.racing import run_together

from evalkit.classification.schema import DocumentType
from evalkit.errors import EvalkitError, NotFound, ReviewConflict, ReviewRefused
from evalkit.evaluation.export import export_ground_truth
from evalkit.evaluation.ground_truth_table import read_folder_ground_truth
from evalkit.review import (
    Draft,
    ReviewCase,
    ReviewSession,
    SMEPacket,
    SMEReviewHelper,
    compute_packet_digest,
    list_pending_cases_worst_first,
    publish_packet_unless_frozen,
    rebuild_case_files_and_list_index_rows,
    withdraw_packet_unless_frozen,
    withdraw_silver_ground_truth,
    write_silver_ground_truth,
)
from evalkit.review.case_files import read_packet, read_review
from evalkit.review.ground_truth import find_newest_revision
from evalkit.review.index_rebuild import reindex
from evalkit.review.queue import QueueQuery
from evalkit.store import LocalOutputFolder, OutputFolder
from evalkit.store.database import Database

NOTE, PATHOLOGY, GENOMIC, RADIOLOGY, OTHER = DocumentType
BASE, SECOND, ADJUDICATION = "doc2_6", "doc2_6.second", "doc2_6.adjudication"
WHY = "is page 2 a report of its own?"


@pytest.fixture
def base(build: Any, workspace: Any) -> SMEPacket:
    """Two pages, called Other."""
    bundle = build.bundle([["Quest Diagnostics", "CBC: WBC 6.1"], ["Reference ranges"]])
    return workspace.publish(
        build.single("Other", pages=2), [build.issue("V4-0001", "MAJOR", "V4-EVIDENCE-WEAK")], bundle
    )


def answered(case: ReviewCase, kind: DocumentType | None) -> Draft:
    """Everything seen; all pages of that type, if one is named."""
    draft = case.draft
    for page in range(1, case.packet.total_pages + 1):
        draft = draft.show_page_and_mark_seen(page)
    for issue_id in case.get_viewing_requirements(case.draft).issue_ids:
        draft = draft.show_issue_and_mark_seen(issue_id)
    for position in range(len(draft.segments) if kind else 0):
        draft = draft.set_segment_type(position, kind)
    return draft


def ask(tab: ReviewSession, kind: DocumentType | None = GENOMIC) -> Any:
    """The reviewer answers the base case, and asks."""
    return tab.submit_and_request_second_opinion(BASE, answered(tab.open_and_claim_case(BASE), kind), WHY)


def answer(tab: ReviewSession, case_id: str, kind: DocumentType) -> Any:
    return tab.submit_review(case_id, answered(tab.open_and_claim_case(case_id), kind))


def cases(desk: Any) -> dict[str, str]:
    """What the index says of each case, and what the packets say: the same."""
    rows = {row["case_id"]: row["review_status"] for row in desk.index.list_cases_worst_first()}
    assert rows == {case_id: read_packet(desk.files, case_id).review_status for case_id in rows}
    stored = {name.removeprefix("sme_packets/sme_packet_").removesuffix(".json") for name in packets(desk)}
    assert stored == set(rows)
    return rows


def packets(desk: Any) -> list[str]:
    names: list[str] = desk.files.list_json_files("sme_packets")
    return names


def barred(desk: Any) -> dict[str, str]:
    with sqlite3.connect(desk.root / "evalkit.sqlite") as connection:
        return dict(connection.execute("SELECT case_id, barred FROM cases WHERE barred != ''"))


def tree(root: Path) -> dict[str, bytes]:
    """Every record's bytes, without the chain of changes: its links have the time and a salt of their own."""
    return {
        name: path.read_bytes()
        for path in sorted(root.rglob("*.json"))
        if not (name := str(path.relative_to(root))).startswith("changes/")
    }


# --- asking ---------------------------------------------------------------------------------------------------------


def test_request_submits_own_answer_and_creates_second_case(
    base: Any, workspace: Any, open_tab: Any, clock: Any
) -> None:
    lee = open_tab("dr_lee")
    draft = answered(lee.open_and_claim_case(BASE), GENOMIC).set_notes("two headings")
    lee.save_draft_and_get_time(BASE, draft)
    clock.wait(minutes=3)
    done = lee.submit_and_request_second_opinion(BASE, draft, f"  {WHY}\n")
    assert (done.revision, done.review.outcome, done.review.second_opinion) == (1, "corrected", WHY)
    assert done.review == read_review(workspace.files, BASE, 1)
    assert cases(workspace) == {BASE: "completed", SECOND: "pending"}
    found = read_packet(workspace.files, SECOND)
    assert found == base.model_copy(
        update={
            "case_id": SECOND,
            "review_reason": "requested",
            "inclusion_probability": 1.0,
            "decision_reason": f"a colleague asks for a second opinion: {WHY}",
            "created_at": "2025-02-01T10:43:00+00:00",
        }
    )
    assert workspace.truth() is None
    assert barred(workspace) == {SECOND: "dr_lee"}
    assert lee.open_and_claim_case(BASE).draft_saved_at is None  # the draft went into the review
    assert [row["case_id"] for row in list_pending_cases_worst_first(workspace.index)] == [SECOND]


def test_an_unchanged_draft_validates_and_asks(base: Any, open_tab: Any) -> None:
    lee = open_tab("dr_lee")
    case = lee.open_and_claim_case(BASE)
    with pytest.raises(ReviewRefused, match="not yet seen"):
        lee.submit_and_request_second_opinion(BASE, case.draft, WHY)
    assert lee.submit_and_request_second_opinion(BASE, answered(case, None), WHY).review.outcome == "validated"


def test_where_nobody_can_validate_words_are_a_correction(build: Any, workspace: Any, open_tab: Any) -> None:
    broken = build.answer([build.segment(1, 1, 1, "Other")], {"Other": 1.0}, "Other")
    workspace.publish(broken, [build.issue()], build.bundle([["one"], ["two"]]))  # page 2 belongs to nothing
    lee = open_tab("dr_lee")
    case = lee.open_and_claim_case(BASE)
    assert case.explain_permanent_validation_block()
    with pytest.raises(ReviewRefused, match="decide whether a document begins on page 2"):
        lee.submit_and_request_second_opinion(BASE, answered(case, None), WHY)
    draft = case.draft.decide_boundary(2, begins=False)
    assert lee.submit_and_request_second_opinion(BASE, draft, WHY).review.outcome == "corrected"


@pytest.mark.parametrize("reason", ["", "  \n"])
def test_asking_needs_a_reason(base: Any, workspace: Any, open_tab: Any, reason: str) -> None:
    lee = open_tab("dr_lee")
    case = lee.open_and_claim_case(BASE)
    with pytest.raises(ReviewRefused, match="has no reason"):
        lee.submit_and_request_second_opinion(BASE, answered(case, GENOMIC), reason)
    assert (find_newest_revision(workspace.files, BASE), cases(workspace)) == (0, {BASE: "in_review"})


def test_only_base_cases_can_be_asked_about(base: Any, workspace: Any, open_tab: Any) -> None:
    ask(open_tab("dr_lee"))
    kim = open_tab("dr_kim")
    case = kim.open_and_claim_case(SECOND)
    with pytest.raises(ReviewRefused, match="itself a second opinion"):
        kim.submit_and_request_second_opinion(SECOND, answered(case, OTHER), WHY)
    assert cases(workspace) == {BASE: "completed", SECOND: "in_review"}


def test_nobody_asks_twice(base: Any, workspace: Any, open_tab: Any) -> None:
    lee = open_tab("dr_lee")
    ask(lee)
    with pytest.raises(ReviewRefused, match="is closed"):
        ask(lee)
    with pytest.raises(ReviewRefused, match="is awaited"):
        ask(open_tab("dr_kim"))
    with pytest.raises(ReviewRefused, match="is awaited, so the first answer"):
        workspace.helper("dr_kim").save_review(BASE, corrected_dominant_type="Other")
    assert find_newest_revision(workspace.files, BASE) == 1


def test_case_open_elsewhere_or_reviewed_cannot_be_requested(base: Any, workspace: Any, open_tab: Any) -> None:
    lee, kim = open_tab("dr_lee"), open_tab("dr_kim")
    draft = answered(lee.open_and_claim_case(BASE), GENOMIC)
    kim.open_and_claim_case(BASE, take_over=True)
    with pytest.raises(ReviewRefused, match="open by dr_kim"):
        lee.submit_and_request_second_opinion(BASE, draft, WHY)
    answer(kim, BASE, NOTE)
    with pytest.raises(ReviewConflict):
        lee.submit_and_request_second_opinion(BASE, draft, WHY)
    assert cases(workspace) == {BASE: "completed"}
    assert workspace.truth()["reviewer"] == "dr_kim"


# --- who answers ----------------------------------------------------------------------------------------------------


def test_who_has_answered_is_refused_everywhere(base: Any, workspace: Any, open_tab: Any) -> None:
    lee, kim = open_tab("dr_lee"), open_tab("dr_kim")
    ask(lee)
    for call in (
        partial(lee.open_and_claim_case, SECOND),
        partial(lee.open_and_claim_case, SECOND, take_over=True),
        partial(workspace.helper("dr_lee").save_review, SECOND, agrees=True),
        partial(workspace.helper("dr_lee").save_review, SECOND, agrees=True, base_revision=0),
    ):
        with pytest.raises(ReviewRefused, match="you have already given or seen an answer to case 'doc2_6'") as refused:
            call()
        assert refused.value.remedy == "Leave the case to a colleague, and take the next case."
    assert cases(workspace)[SECOND] == "pending"
    assert workspace.index.claims.map_live_claims_by_case_id("2025-02-01T10:40:00+00:00") == {}
    answer(kim, SECOND, NOTE)
    with pytest.raises(ReviewRefused, match="given or seen an answer"):
        workspace.helper("dr_lee").reopen(SECOND, "I am right")
    for name in ("dr_lee", "dr_kim"):
        with pytest.raises(ReviewRefused, match="needs another expert"):
            open_tab(name, "another tab").open_and_claim_case(ADJUDICATION)
        with pytest.raises(ReviewRefused, match="needs another expert"):
            workspace.helper(name).save_review(ADJUDICATION, agrees=True)
    assert barred(workspace) == {SECOND: "dr_lee", ADJUDICATION: "dr_lee,dr_kim"}
    assert open_tab("dr_may").open_and_claim_case(ADJUDICATION).opinions


def test_a_colleague_sees_why_but_not_what_was_answered(base: Any, workspace: Any, open_tab: Any) -> None:
    ask(open_tab("dr_lee"))
    kim = open_tab("dr_kim")
    case = kim.open_and_claim_case(SECOND)
    assert (case.second_opinion_reason, case.opinions, case.reviews) == (WHY, (), ())
    assert case.packet.decision_rule == read_packet(workspace.files, BASE).decision_rule
    assert case.is_blind
    assert workspace.helper("dr_kim").reviews(BASE) == []
    with pytest.raises(ReviewRefused, match="only reviewers who have answered"):
        kim.open_and_claim_case(BASE)
    (row,) = [one for one in kim.load_queue_page(QueueQuery(show_finished=True)).rows if one.case_id == BASE]
    assert (row.dominant_type, row.agents, row.blocker) == ("cannot tell", (), 0)
    assert [one.reviewer for one in open_tab("dr_lee").open_and_claim_case(BASE).reviews] == ["dr_lee"]
    answer(kim, SECOND, GENOMIC)
    assert [one.reviewer for one in open_tab("dr_may").open_and_claim_case(BASE).reviews] == ["dr_lee"]


# --- agreeing and differing -----------------------------------------------------------------------------------------


def test_agreement_lets_the_first_answer_stand(base: Any, workspace: Any, open_tab: Any) -> None:
    ask(open_tab("dr_lee"))
    kim = open_tab("dr_kim")
    case = kim.open_and_claim_case(SECOND)
    assert workspace.truth() is None
    kim.submit_review(SECOND, answered(case, GENOMIC).set_notes("clearly"))
    assert cases(workspace) == {BASE: "completed", SECOND: "completed"}
    truth = workspace.truth()
    assert (truth["reviewer"], truth["revision"], truth["supersedes"]) == ("dr_lee", 1, None)
    assert truth["corrected_dominant_type"] == "Genomic Report"
    assert truth["packet_sha256"] == compute_packet_digest(base)
    assert workspace.files.list_json_files("ground_truth") == ["ground_truth/gt_doc2_6.json"]


def undeterminable(draft: Draft, tab: ReviewSession, case_id: str) -> Any:
    return tab.submit_review(case_id, draft, undeterminable_reason="illegible")


def typed(draft: Draft, tab: ReviewSession, case_id: str, *, kind: DocumentType) -> Any:
    return tab.submit_review(case_id, draft.set_segment_type(0, kind))


def noted(draft: Draft, tab: ReviewSession, case_id: str) -> Any:
    return tab.submit_review(case_id, draft.set_segment_type(0, GENOMIC).set_notes("other words, the same answer"))


def two(draft: Draft, tab: ReviewSession, case_id: str) -> Any:
    return tab.submit_review(case_id, draft.set_segment_type(0, GENOMIC).toggle_boundary(2))


@pytest.mark.parametrize(
    ("says", "differs"),
    [
        (partial(typed, kind=GENOMIC), False),
        (noted, False),
        (partial(typed, kind=NOTE), True),
        (two, True),
        (undeterminable, True),
    ],
)
def test_what_counts_as_another_answer(
    base: Any, workspace: Any, open_tab: Any, says: Callable[..., Any], differs: bool
) -> None:
    ask(open_tab("dr_lee"))
    kim = open_tab("dr_kim")
    says(answered(kim.open_and_claim_case(SECOND), None), kim, SECOND)
    assert (ADJUDICATION in cases(workspace)) is differs
    assert (workspace.truth() is None) is differs


def test_whoever_has_answered_once_is_no_second_expert(base: Any, workspace: Any, open_tab: Any) -> None:
    kim = open_tab("dr_kim")
    answer(kim, BASE, GENOMIC)
    kim.undo_last_submission_and_get_case_id()
    ask(open_tab("dr_lee"))
    with pytest.raises(ReviewRefused, match="needs another expert"):
        kim.open_and_claim_case(SECOND)
    assert kim.choose_next_case_id() is None


def test_adjudication_requires_viewing_the_pages(base: Any, workspace: Any, open_tab: Any) -> None:
    ask(open_tab("dr_lee"), GENOMIC)
    answer(open_tab("dr_kim"), SECOND, NOTE)
    may = open_tab("dr_may")
    case = may.open_and_claim_case(ADJUDICATION)
    taken = case.draft.set_segment_type(0, NOTE)
    with pytest.raises(ReviewRefused, match="not yet seen"):
        may.submit_review(ADJUDICATION, taken)
    assert may.submit_review(ADJUDICATION, answered(case, NOTE)).review.vouched == ("dominant_type", "segments")


def test_who_reopens_and_answers_without_asking_has_answered(base: Any, workspace: Any, open_tab: Any) -> None:
    ask(open_tab("dr_lee"))
    workspace.helper("dr_lee").reopen(BASE, "it can be read after all")
    answer(open_tab("dr_may"), BASE, GENOMIC)
    assert (workspace.truth()["reviewer"], workspace.truth()["revision"]) == ("dr_may", 3)
    assert cases(workspace) == {BASE: "completed"}


def test_a_third_expert_decides_and_that_is_true(base: Any, workspace: Any, open_tab: Any, clock: Any) -> None:
    lee, kim, may = open_tab("dr_lee"), open_tab("dr_kim"), open_tab("dr_may")
    ask(lee, GENOMIC)
    clock.wait(minutes=1)
    answer(kim, SECOND, NOTE)
    packet = read_packet(workspace.files, ADJUDICATION)
    assert packet == base.model_copy(
        update={
            "case_id": ADJUDICATION,
            "review_reason": "requested",
            "decision_reason": "two colleagues gave different answers; a third expert decides between them",
            "created_at": "2025-02-01T10:41:00+00:00",
        }
    )
    assert workspace.truth() is None
    clock.wait(minutes=1)
    case = may.open_and_claim_case(ADJUDICATION)
    assert (case.second_opinion_reason, case.draft) == ("", Draft.from_packet(packet))
    done = may.submit_review(ADJUDICATION, answered(case, RADIOLOGY).set_notes("it is an MRI"))
    truth = workspace.truth()
    assert cases(workspace) == {BASE: "completed", SECOND: "completed", ADJUDICATION: "completed"}
    assert (truth["doc_id"], truth["ground_truth_source"]) == (BASE, "SME_CORRECTED")
    assert (truth["reviewer"], truth["reviewed_at"]) == ("dr_may", "2025-02-01T10:42:00+00:00")
    assert (truth["corrected_dominant_type"], truth["correction_notes"]) == ("Radiology Report", "it is an MRI")
    assert (truth["revision"], truth["supersedes"]) == (2, None)
    assert truth["packet_sha256"] == compute_packet_digest(packet) == done.review.packet_sha256
    closed = open_tab("dr_ito").open_and_claim_case(BASE)
    assert (closed.draft.dominant_type, closed.closing_review.reviewer) == (RADIOLOGY, "dr_may")
    assert (truth["review_reason"], truth["inclusion_probability"]) == ("escalated", 1.0)
    assert workspace.files.list_json_files("ground_truth") == ["ground_truth/gt_doc2_6.json"]


def test_the_adjudicator_may_say_that_the_agent_was_right(base: Any, workspace: Any, open_tab: Any) -> None:
    ask(open_tab("dr_lee"), GENOMIC)
    answer(open_tab("dr_kim"), SECOND, NOTE)
    may = open_tab("dr_may")
    may.submit_review(ADJUDICATION, answered(may.open_and_claim_case(ADJUDICATION), None), validate=True)
    truth = workspace.truth()
    assert (truth["ground_truth_source"], truth["reviewer"]) == ("SME_VALIDATED", "dr_may")
    assert truth["ground_truth_classification"]["dominant_type_overall"] == "Other"


def test_an_adjudicator_who_cannot_tell_leaves_no_ground_truth(base: Any, workspace: Any, open_tab: Any) -> None:
    ask(open_tab("dr_lee"), GENOMIC)
    answer(open_tab("dr_kim"), SECOND, NOTE)
    may = open_tab("dr_may")
    may.submit_review(ADJUDICATION, may.open_and_claim_case(ADJUDICATION).draft, undeterminable_reason="illegible")
    assert workspace.truth() is None
    workspace.helper("dr_may").reopen(ADJUDICATION, "it can be read after all")
    answer(open_tab("dr_may", "later"), ADJUDICATION, NOTE)
    assert (workspace.truth()["revision"], workspace.truth()["supersedes"]) == (4, None)


def test_the_weight_of_an_audit_stays_that_of_its_drawing(build: Any, workspace: Any, open_tab: Any) -> None:
    result = build.result(build.single("Other"))
    write_silver_ground_truth(workspace.files, result, accepted_at="2025-01-01")
    workspace.publish(build.single("Other"), review_reason="audit", inclusion_probability=0.2)
    ask(open_tab("dr_lee"), GENOMIC)
    assert workspace.truth() is None  # not even silver: it is in doubt
    assert write_silver_ground_truth(workspace.files, result, accepted_at="2026-01-01") is False
    assert withdraw_silver_ground_truth(workspace.files, BASE) is False
    answer(open_tab("dr_kim"), SECOND, NOTE)
    answer(open_tab("dr_may"), ADJUDICATION, NOTE)
    truth = workspace.truth()
    assert (truth["review_reason"], truth["inclusion_probability"], truth["supersedes"]) == ("audit", 0.2, 0)


def test_adjudication_shows_answers_anonymous_and_unordered(build: Any, workspace: Any, open_tab: Any) -> None:
    placed: Counter[str] = Counter()
    for number in range(24):
        bundle = build.bundle([["one"], ["two"]])
        packet = workspace.publish(build.single("Other", pages=2), [build.issue()], bundle, doc_id=f"doc_{number}")
        lee, kim, may = (open_tab(name, str(number)) for name in ("dr_lee", "dr_kim", "dr_may"))
        draft = (
            lee.open_and_claim_case(packet.case_id)
            .draft.toggle_boundary(2)
            .set_segment_type(0, GENOMIC)
            .set_issue_verdict("V3-0001", "confirmed")
        )
        lee.submit_and_request_second_opinion(packet.case_id, draft.set_notes("two of them"), WHY)
        undeterminable(kim.open_and_claim_case(f"doc_{number}.second").draft, kim, f"doc_{number}.second")
        case = may.open_and_claim_case(f"doc_{number}.adjudication")
        assert case.opinions == may.open_and_claim_case(case.packet.case_id).opinions  # the order stays
        by_outcome = {one.outcome: one for one in case.opinions}
        assert [one.label for one in case.opinions] == ["A", "B"]
        first, second = by_outcome["corrected"], by_outcome["undeterminable"]
        assert [(one.start_page, one.dominant_type) for one in first.draft.segments] == [(1, GENOMIC), (2, OTHER)]
        assert (first.notes, second.notes) == ("two of them", "illegible")
        assert [one.issue_id for one in first.draft.issue_verdicts] == ["V3-0001"]
        assert [one.dominant_type for one in second.draft.segments] == [None]
        assert "dr_" not in repr(case.opinions)
        assert case.reviews == ()
        placed[first.label] += 1
    assert min(placed["A"], placed["B"]) >= 4


# --- undoing --------------------------------------------------------------------------------------------------------


def test_reopening_withdraws_an_unopened_second_opinion(base: Any, workspace: Any, open_tab: Any, clock: Any) -> None:
    lee = open_tab("dr_lee")
    ask(lee)
    workspace.helper("dr_lee").reopen(BASE, "I see it now")
    assert cases(workspace) == {BASE: "pending"}
    assert barred(workspace) == {}
    with pytest.raises(NotFound):
        open_tab("dr_kim").open_and_claim_case(SECOND)
    clock.wait(minutes=5)
    draft = answered(lee.open_and_claim_case(BASE), NOTE)
    lee.submit_and_request_second_opinion(BASE, draft, "and now?")
    found = read_packet(workspace.files, SECOND)
    assert (found.created_at, found.decision_reason.endswith("and now?")) == ("2025-02-01T10:45:00+00:00", True)
    answer(open_tab("dr_kim"), SECOND, NOTE)
    assert (workspace.truth()["revision"], workspace.truth()["supersedes"]) == (
        3,
        None,
    )  # the first never gave ground truth


def begun_by_a_claim(kim: ReviewSession) -> None:
    kim.open_and_claim_case(SECOND)


def begun_by_a_review(kim: ReviewSession) -> None:
    answer(kim, SECOND, GENOMIC)


def begun_and_put_off(kim: ReviewSession) -> None:
    kim.defer_case_and_get_time(SECOND, kim.open_and_claim_case(SECOND).draft, "the scan is awaited")


@pytest.mark.parametrize("begin", [begun_by_a_claim, begun_by_a_review, begun_and_put_off])
def test_what_a_colleague_has_begun_is_not_pulled_away(
    base: Any, workspace: Any, open_tab: Any, clock: Any, begin: Any
) -> None:
    ask(open_tab("dr_lee"))
    clock.now = clock.now.replace(hour=12)  # as the helpers' clock
    begin(open_tab("dr_kim"))
    before, shown = tree(workspace.root), cases(workspace)
    for reviewer in ("dr_lee", "dr_may"):
        helper = workspace.helper(reviewer)
        for call in (partial(helper.reopen, BASE, "oh"), partial(helper.save_review, BASE, agrees=True)):
            with pytest.raises(ReviewRefused, match=r"begun case 'doc2_6.second'.*final"):
                call()
    assert (tree(workspace.root), cases(workspace)) == (before, shown)


def test_a_claim_that_ran_out_is_no_beginning(base: Any, workspace: Any, open_tab: Any, clock: Any) -> None:
    ask(open_tab("dr_lee"))
    kim = open_tab("dr_kim")
    draft = kim.open_and_claim_case(SECOND).draft  # at 10:40; the helper's clock shows noon
    workspace.helper("dr_lee").reopen(BASE, "oh")
    clock.wait(hours=2)
    with pytest.raises(NotFound):
        kim.submit_review(SECOND, draft, undeterminable_reason="illegible")


def test_reopening_a_second_opinion_withdraws_its_adjudication(base: Any, workspace: Any, open_tab: Any) -> None:
    ask(open_tab("dr_lee"), GENOMIC)
    answer(open_tab("dr_kim"), SECOND, NOTE)
    kim = workspace.helper("dr_kim")
    kim.reopen(SECOND, "I looked again")
    assert cases(workspace) == {BASE: "completed", SECOND: "pending"}
    answer(open_tab("dr_kim", "later"), SECOND, GENOMIC)
    assert cases(workspace) == {BASE: "completed", SECOND: "completed"}
    assert workspace.truth()["reviewer"] == "dr_lee"
    kim.reopen(SECOND, "or not?")
    assert workspace.truth() is None
    answer(open_tab("dr_kim", "once more"), SECOND, NOTE)
    answer(open_tab("dr_may"), ADJUDICATION, NOTE)
    # It was agreed for a while, so the first answer was ground truth.
    assert (workspace.truth()["revision"], workspace.truth()["supersedes"]) == (2, 1)
    with pytest.raises(ReviewRefused, match=r"begun case 'doc2_6.adjudication'"):
        kim.reopen(SECOND, "still")
    workspace.helper("dr_may").reopen(ADJUDICATION, "hm")
    assert workspace.truth() is None
    assert cases(workspace)[ADJUDICATION] == "pending"


def test_a_second_opinion_saved_again_from_python_counts_anew(base: Any, workspace: Any, open_tab: Any) -> None:
    ask(open_tab("dr_lee"), GENOMIC)
    answer(open_tab("dr_kim"), SECOND, NOTE)
    kim = workspace.helper("dr_kim")
    kim.save_review(SECOND, corrected_segments=[(1, 2, "Genomic Report")])
    assert (ADJUDICATION in cases(workspace), workspace.truth()["reviewer"]) == (False, "dr_lee")
    kim.save_review(SECOND, agrees=True)
    assert (ADJUDICATION in cases(workspace), workspace.truth()) == (True, None)


# --- runs, lists and exports ----------------------------------------------------------------------------------------


def test_a_new_run_leaves_further_opinions_alone(base: Any, workspace: Any, open_tab: Any, clock: Any) -> None:
    ask(open_tab("dr_lee"), GENOMIC)
    answer(open_tab("dr_kim"), SECOND, NOTE)
    before = tree(workspace.root)
    assert (
        publish_packet_unless_frozen(
            workspace.files, workspace.index, base.model_copy(update={"decision_rule": "8"}), clock=clock
        )
        is False
    )
    assert withdraw_packet_unless_frozen(workspace.files, workspace.index, BASE, clock=clock) is False
    withdraw_silver_ground_truth(workspace.files, BASE)
    assert tree(workspace.root) == before


def test_export_and_lists_know_one_document(
    base: Any, build: Any, workspace: Any, open_tab: Any, tmp_path: Path
) -> None:
    workspace.publish(build.single("Other"), doc_id="z")
    ask(open_tab("dr_lee"), GENOMIC)
    answer(open_tab("dr_kim"), SECOND, NOTE)
    assert not read_folder_ground_truth(workspace.root, include_silver=True).documents
    listed = workspace.helper().list_pending_reviews()
    assert list(listed["case_id"]) == [ADJUDICATION, "z"]
    assert "dr_" not in listed.to_csv()
    answer(open_tab("dr_may"), ADJUDICATION, NOTE)
    assert [one.record.reviewer for one in read_folder_ground_truth(workspace.root).documents] == ["dr_may"]
    assert export_ground_truth(workspace.root, tmp_path / "truth.csv", file_format="csv") == 1


# --- after a crash --------------------------------------------------------------------------------------------------


class Cut(Exception):
    """The power is cut."""


class Place:
    """An output folder of its own, in which the same happens as in every other."""

    def __init__(self, desk: Any, clock: Any) -> None:
        self.desk, self.clock = desk, clock

    def tab(self, reviewer: str) -> ReviewSession:
        return ReviewSession(open_folder(self.desk.root), reviewer, f"tab of {reviewer}", clock=self.clock)

    def facts(self) -> Any:
        """Everything that must be the same, whether or not the power was cut."""
        rows = sorted(rebuild_case_files_and_list_index_rows(self.desk.files, BASE), key=lambda row: row["case_id"])
        return tree(self.desk.root), rows, cases(self.desk), barred(self.desk), self.desk.index.count_closed_cases()


def reopened(place: Place, who: str, case_id: str) -> None:
    place.desk.helper(who).reopen(case_id, "hm")


STORY: tuple[Callable[[Place], Any], ...] = (
    lambda place: ask(place.tab("dr_lee"), GENOMIC),
    lambda place: reopened(place, "dr_lee", BASE),
    lambda place: ask(place.tab("dr_lee"), GENOMIC),
    lambda place: answer(place.tab("dr_kim"), SECOND, GENOMIC),
    lambda place: reopened(place, "dr_kim", SECOND),
    lambda place: answer(place.tab("dr_kim"), SECOND, NOTE),
    lambda place: reopened(place, "dr_kim", SECOND),
    lambda place: answer(place.tab("dr_kim"), SECOND, NOTE),
    lambda place: answer(place.tab("dr_may"), ADJUDICATION, RADIOLOGY),
    lambda place: reopened(place, "dr_may", ADJUDICATION),
    lambda place: answer(place.tab("dr_may"), ADJUDICATION, NOTE),
)


def run_until(call: Callable[[], Any], patched: pytest.MonkeyPatch, last: int | None) -> list[str]:
    """The changes to files and database from the review on; the power is cut instead of number ``last``."""
    made: list[str] = []

    def noted(what: str) -> None:
        if made or what.startswith("reviews/"):  # taking a claim comes before, and is no part of it
            if len(made) == last:
                raise Cut
            made.append(what)

    def noting(change: Callable[..., Any]) -> Callable[..., Any]:
        def noted_change(self: OutputFolder, name: str, *args: Any, **words: Any) -> Any:
            noted(name)
            return change(self, name, *args, **words)

        return noted_change

    def transaction(database: Database) -> Any:
        noted("database")
        return begun(database)

    begun = Database.transaction
    patched.setattr(Database, "transaction", transaction)
    for name in ("write_json", "create_json_if_absent", "remove_file"):
        patched.setattr(LocalOutputFolder, name, noting(getattr(LocalOutputFolder, name)))
    call()
    return made


@pytest.mark.parametrize("step", range(len(STORY)))
def test_a_crash_at_any_write_heals(
    workspace: Any, build: Any, clock: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    workspace.publish(
        build.single("Other", pages=2), [build.issue()], build.bundle([["Quest Diagnostics"], ["Ranges"]])
    )
    for earlier in STORY[:step]:
        earlier(Place(workspace, clock))

    def begun(name: str) -> Place:
        shutil.copytree(workspace.root, tmp_path / name)
        return Place(type(workspace)(tmp_path / name), clock)

    whole = begun("whole")
    before = whole.facts()
    with monkeypatch.context() as patched:
        made = run_until(partial(STORY[step], whole), patched, None)
    after = whole.facts()
    assert made[0].startswith("reviews/")
    assert len(made) > 4
    for last in range(len(made)):
        place = begun(f"cut {last}")
        with monkeypatch.context() as patched, pytest.raises(Cut):
            run_until(partial(STORY[step], place), patched, last)
        if last:  # the review was written, so all of it happened
            rebuild_case_files_and_list_index_rows(place.desk.files, BASE)
            assert tree(place.desk.root) == after[0], made[last]
        reindex(open_folder(place.desk.root))
        if last:
            assert place.facts() == after, made[last]
        else:
            assert place.facts()[0] == before[0]


def test_lost_packets_are_made_again_to_the_byte(base: Any, workspace: Any, open_tab: Any) -> None:
    ask(open_tab("dr_lee"), GENOMIC)
    answer(open_tab("dr_kim"), SECOND, NOTE)
    answer(open_tab("dr_may"), ADJUDICATION, RADIOLOGY)
    before = tree(workspace.root)
    (workspace.root / "sme_packets/sme_packet_doc2_6.second.json").unlink()
    (workspace.root / "sme_packets/sme_packet_doc2_6.adjudication.json").write_text("{")
    (workspace.root / "ground_truth/gt_doc2_6.json").unlink()
    reindex(open_folder(workspace.root))
    assert tree(workspace.root) == before


def test_a_packet_that_was_answered_is_not_reworded(base: Any, workspace: Any, open_tab: Any) -> None:
    ask(open_tab("dr_lee"), GENOMIC)
    answer(open_tab("dr_kim"), SECOND, GENOMIC)
    name = "sme_packets/sme_packet_doc2_6.second.json"
    stored = json.loads((workspace.root / name).read_bytes())
    workspace.files.write_json(name, stored | {"decision_reason": "as an older evalkit said it"})
    reindex(open_folder(workspace.root))
    assert workspace.files.read_json(name)["decision_reason"] == "as an older evalkit said it"


# --- races ----------------------------------------------------------------------------------------------------------


def asked_or_submitted(tab: ReviewSession, case_id: str, draft: Draft, *, is_asking: bool) -> str:
    if is_asking:
        tab.submit_and_request_second_opinion(case_id, draft, WHY)
        return "asked"
    tab.submit_review(case_id, draft)
    return "submitted"


def test_80_races_of_asking_and_submitting_have_one_winner_each(build: Any, workspace: Any, open_tab: Any) -> None:
    lee, kim = open_tab("dr_lee"), open_tab("dr_kim")
    told: Counter[str] = Counter()
    for turn in range(80):
        case_id = workspace.publish(build.single("Other"), doc_id=f"doc_{turn}").case_id
        # Both have opened it, and neither knows any more who has the claim.
        drafts = [
            one.open_and_claim_case(case_id, take_over=True).draft.set_segment_type(0, GENOMIC) for one in (lee, kim)
        ]
        workspace.index.claims.remove(case_id)
        is_asking = (True, turn % 2 == 0)
        outcomes = run_together(
            *(
                partial(asked_or_submitted, one, case_id, draft, is_asking=asks)
                for one, draft, asks in zip((lee, kim), drafts, is_asking, strict=True)
            )
        )
        (winner,) = [one for one in outcomes if isinstance(one, str)]
        (loser,) = [one for one in outcomes if isinstance(one, EvalkitError)]
        assert type(loser).__name__ in ("CaseTaken", "ReviewConflict")
        assert find_newest_revision(workspace.files, case_id) == 1
        review = read_review(workspace.files, case_id, 1)
        assert bool(review.second_opinion) is (winner == "asked")
        assert workspace.files.has_file(f"sme_packets/sme_packet_{case_id}.second.json") is (winner == "asked")
        assert (workspace.truth(case_id) is None) is (winner == "asked")
        told[f"{outcomes.index(winner)} {winner}"] += 1
    assert sum(told.values()) == 80
    assert len(told) == 3
    assert len(cases(workspace)) == 80 + told["0 asked"] + told["1 asked"]
    reindexed = tree(workspace.root)
    reindex(open_folder(workspace.root))
    assert tree(workspace.root) == reindexed


def taken_back(helper: Any, case_id: str) -> str:
    helper.reopen(case_id, "hm")
    return "reopened"


def opened(tab: ReviewSession, case_id: str) -> str:
    tab.open_and_claim_case(case_id)
    return "opened"


def test_withdrawing_and_opening_an_opinion_race_has_one_winner(
    build: Any, workspace: Any, open_tab: Any, clock: Any
) -> None:
    lee, kim = open_tab("dr_lee"), open_tab("dr_kim")
    helper = SMEReviewHelper(workspace.root, "dr_lee", clock=lambda: clock().isoformat())
    told: Counter[str] = Counter()
    for turn in range(40):
        case_id = workspace.publish(build.single("Other"), doc_id=f"doc_{turn}").case_id
        lee.submit_and_request_second_opinion(
            case_id, lee.open_and_claim_case(case_id).draft.set_segment_type(0, GENOMIC), WHY
        )
        outcomes = run_together(partial(taken_back, helper, case_id), partial(opened, kim, f"{case_id}.second"))
        (winner,) = [one for one in outcomes if isinstance(one, str)]
        (loser,) = [one for one in outcomes if isinstance(one, EvalkitError)]
        assert isinstance(loser, NotFound if winner == "reopened" else ReviewRefused)
        assert workspace.files.has_file(f"sme_packets/sme_packet_{case_id}.second.json") is (winner == "opened")
        told[winner] += 1
    helper.close()
    assert told["reopened"] + told["opened"] == 40
    assert len(cases(workspace)) == 40 + told["opened"]
