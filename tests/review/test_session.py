"""The desk: what an expert is given next, must have seen, and says with one press."""

from __future__ import annotations

import logging
import stat
from typing import Any

import pytest
from places import open_folder

from evalkit.classification.schema import DocumentType
from evalkit.classification.v5_arbiter import DECISION_TABLE, V5DecisionMaker
from evalkit.errors import CaseTaken, NotFound, ReviewConflict, ReviewRefused, StoreError, UsageError
from evalkit.review import (
    ClassificationReviewCase,
    Draft,
    ReviewCase,
    ReviewSession,
    ViewingRequirements,
    compute_packet_digest,
)
from evalkit.review.case_files import read_packet
from evalkit.review.kinds.classification import COUNTED_ISSUES_BY_RULE
from evalkit.store import StoredDraft

pytestmark = pytest.mark.usefixtures("database")

NOTE, PATHOLOGY, GENOMIC, RADIOLOGY, OTHER = DocumentType


@pytest.fixture
def two(build: Any, workspace: Any) -> Any:
    """Eight pages, a genomic report and a note, two grave doubts and a minor one."""
    answer = build.answer(
        [build.segment(1, 1, 5, "Genomic Report"), build.segment(2, 6, 8, "Clinical Note")],
        {"Genomic Report": 0.625, "Clinical Note": 0.375},
        "Genomic Report",
    )
    issues = [build.issue("V3-0001"), build.issue("V4-0001"), build.issue("V1-0001", "MINOR", page=7)]
    return workspace.publish(answer, issues, build.bundle([[f"page {number}"] for number in range(1, 9)]))


@pytest.fixture
def plain(build: Any, workspace: Any) -> Any:
    """One page, called Other."""
    return workspace.publish(build.single("Other"), [build.issue("V4-0001", "MAJOR", "V4-EVIDENCE-WEAK")])


def seen_all(case: ReviewCase) -> Draft:
    draft = case.draft
    for page in case.get_viewing_requirements(case.draft).page_numbers:
        draft = draft.show_page_and_mark_seen(page)
    for issue_id in case.get_viewing_requirements(case.draft).issue_ids:
        draft = draft.show_issue_and_mark_seen(issue_id)
    return draft


# --- the queue ----------------------------------------------------------------------------------------------------


def test_the_queue_is_strictly_worst_first_and_says_who_has_what(
    build: Any, workspace: Any, open_tab: Any, clock: Any
) -> None:
    blocker, major, minor = (build.issue(f"V3-000{n}", s) for n, s in enumerate(("BLOCKER", "MAJOR", "MINOR"), 1))
    for doc_id, issues in {"c": [minor], "b": [major], "a": [], "z": [blocker, major], "y": [blocker]}.items():
        workspace.publish(build.single("Other"), issues, doc_id=doc_id)
    lee, kim = open_tab("dr_lee"), open_tab("dr_kim")
    lee.open_and_claim_case("z")
    clock.wait(minutes=1)
    kim.open_and_claim_case("b")
    queue = lee.load_queue_page()
    assert [row.case_id for row in queue.rows] == ["z", "y", "b", "c", "a"]
    assert (queue.pending, queue.in_review, queue.done_today, queue.done_by_me) == (3, 2, 0, 0)
    first, second, third, *_ = queue.rows
    assert (first.status, first.holder, first.since, first.is_mine) == (
        "in_review",
        "dr_lee",
        "2025-02-01T10:40:00+00:00",
        True,
    )
    assert (second.status, second.holder, second.since, second.is_mine) == ("pending", None, None, False)
    assert (third.holder, third.since, third.is_mine) == ("dr_kim", "2025-02-01T10:41:00+00:00", False)
    assert (first.pdf_filename, first.pages, first.blocker, first.major, first.minor) == ("doc2_6.pdf", 1, 1, 1, 0)
    assert (first.doc_id, first.review_reason) == ("z", "escalated")
    assert first.decision_reason == "something is wrong"
    assert [row.is_mine for row in open_tab("dr_lee", "second tab").load_queue_page().rows] == [False] * 5


def test_case_whose_opening_fails_is_given_back(two: Any, open_tab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise StoreError("a draft is damaged", code="STORE-TORN", remedy="Restore it.")

    lee = open_tab("dr_lee")
    with monkeypatch.context() as patch:
        patch.setattr(ReviewSession, "_load_draft_and_saved_at", fail)
        with pytest.raises(StoreError, match="a draft is damaged"):
            lee.open_and_claim_case(two.case_id)
    queue = lee.load_queue_page()
    assert (queue.pending, queue.in_review, queue.next_case_id) == (1, 0, "")
    assert lee.choose_next_case_id() is None
    assert open_tab("dr_kim").open_and_claim_case(two.case_id).is_locked is False
    open_tab("dr_kim").release_case(two.case_id)


def test_done_today_begins_at_midnight_of_the_clock(build: Any, workspace: Any, open_tab: Any, clock: Any) -> None:
    for doc_id in ("a", "b", "c"):
        workspace.publish(build.single("Other"), doc_id=doc_id)
    lee, kim = open_tab("dr_lee"), open_tab("dr_kim")
    lee.submit_review("a", lee.open_and_claim_case("a").draft, undeterminable_reason="illegible")
    clock.wait(hours=13, minutes=20)  # midnight
    lee.submit_review("b", lee.open_and_claim_case("b").draft, undeterminable_reason="illegible")
    kim.submit_review("c", kim.open_and_claim_case("c").draft, undeterminable_reason="illegible")
    queue = lee.load_queue_page()
    assert (queue.rows, queue.pending, queue.done_today, queue.done_by_me) == ((), 0, 2, 1)


def test_the_next_case_is_the_worst_that_nobody_has_open(build: Any, workspace: Any, open_tab: Any) -> None:
    for doc_id, count in {"a": 3, "b": 2, "c": 1}.items():
        workspace.publish(build.single("Other"), [build.issue(f"V3-000{n}") for n in range(count)], doc_id=doc_id)
    lee, kim = open_tab("dr_lee"), open_tab("dr_kim")
    assert lee.choose_next_case_id() == "a"
    kim.open_and_claim_case("a")
    assert lee.choose_next_case_id() == "b"
    lee.open_and_claim_case("b")
    assert lee.choose_next_case_id() == "c"
    assert open_tab("dr_lee", "second tab").choose_next_case_id() == "c"
    lee.open_and_claim_case("c")
    assert lee.choose_next_case_id() is None
    kim.release_case("a")
    assert lee.choose_next_case_id() == "a"


@pytest.mark.parametrize("reason", ["audit", "sample"])
def test_one_in_eight_is_an_audit_or_sample(build: Any, workspace: Any, open_tab: Any, reason: str) -> None:
    for number in range(18):
        workspace.publish(build.single("Other"), [build.issue()], doc_id=f"bad_{number:02d}")
    for number in range(2):
        workspace.publish(build.single("Other"), doc_id=f"drawn_{number}", review_reason=reason)
    lee = open_tab("dr_lee")
    served = []
    for _ in range(19):
        case_id = lee.choose_next_case_id()
        served.append(case_id)
        lee.submit_review(case_id, lee.open_and_claim_case(case_id).draft, undeterminable_reason="illegible")
    assert [at for at, case_id in enumerate(served, 1) if case_id.startswith("drawn")] == [8, 16]
    assert [case_id for case_id in served if case_id.startswith("bad")] == [f"bad_{n:02d}" for n in range(17)]
    assert open_tab("dr_kim").choose_next_case_id() == "bad_17"  # each counts their own


def test_open_audit_is_skipped_and_then_the_worst_is_served(build: Any, workspace: Any, open_tab: Any) -> None:
    for number in range(9):
        workspace.publish(build.single("Other"), [build.issue()], doc_id=f"bad_{number}")
    workspace.publish(build.single("Other"), doc_id="drawn", review_reason="audit")
    lee = open_tab("dr_lee")
    for _ in range(7):
        case_id = lee.choose_next_case_id()
        lee.submit_review(case_id, lee.open_and_claim_case(case_id).draft, undeterminable_reason="illegible")
    assert lee.choose_next_case_id() == "drawn"
    open_tab("dr_kim").open_and_claim_case("drawn")
    assert lee.choose_next_case_id() == "bad_7"


# --- opening and drafts ------------------------------------------------------------------------------------------


def test_a_reload_finds_page_and_draft(two: Any, open_tab: Any, clock: Any) -> None:
    before = open_tab("dr_lee", "tab")
    case = before.open_and_claim_case("doc2_6")
    assert (case.draft_saved_at, case.revision, case.is_completed, case.reviews) == (None, 0, False, ())
    draft = (
        case.draft.toggle_boundary(3)
        .set_segment_type(1, OTHER)
        .set_notes("looks like a CBC")
        .show_issue_and_mark_seen("V4-0001")
    )
    draft = draft.show_page_and_mark_seen(6)
    clock.wait(seconds=7)
    assert before.save_draft_and_get_time("doc2_6", draft) == "2025-02-01T10:40:07+00:00"
    before.close()
    found = open_tab("dr_lee", "tab").open_and_claim_case("doc2_6")
    assert (found.draft, found.draft_saved_at) == (draft, "2025-02-01T10:40:07+00:00")


def test_drafts_are_each_reviewers_own(two: Any, open_tab: Any) -> None:
    lee, kim = open_tab("dr_lee"), open_tab("dr_kim")
    lee.save_draft_and_get_time("doc2_6", lee.open_and_claim_case("doc2_6").draft.set_notes("lee's"))
    taken = kim.open_and_claim_case("doc2_6", take_over=True)
    assert (taken.draft.notes, taken.draft_saved_at) == ("", None)
    kim.save_draft_and_get_time("doc2_6", taken.draft.set_notes("kim's"))
    kim.release_case("doc2_6")
    assert lee.open_and_claim_case("doc2_6").draft.notes == "lee's"


def test_two_tabs_of_one_reviewer_do_not_write_over_each_other(
    two: Any, workspace: Any, open_tab: Any, clock: Any
) -> None:
    first, second = open_tab("dr_lee", "first"), open_tab("dr_lee", "second")
    draft = first.open_and_claim_case("doc2_6").draft.set_notes("begun in the first")
    first.save_draft_and_get_time("doc2_6", draft)
    taken = second.open_and_claim_case("doc2_6", take_over=True)
    assert taken.draft == draft  # the same person goes on
    clock.wait(seconds=1)
    second.save_draft_and_get_time("doc2_6", draft.set_notes("from the second"))
    first.save_draft_and_get_time("doc2_6", draft.set_notes("still typing in the first"))
    assert open_tab("dr_lee", "second").open_and_claim_case("doc2_6").draft.notes == "from the second"
    second.submit_review("doc2_6", draft.set_dominant_type(OTHER))
    with pytest.raises(ReviewConflict):
        first.submit_review("doc2_6", draft.set_dominant_type(NOTE))
    assert first.open_and_claim_case("doc2_6").draft.dominant_type is OTHER  # closed: what was decided is shown
    workspace.helper().reopen("doc2_6", "the other tab was right")
    assert first.open_and_claim_case("doc2_6").draft.notes == "still typing in the first"


def test_after_submitting_the_drafts_that_went_into_it_are_gone(two: Any, open_tab: Any, clock: Any) -> None:
    yesterday = open_tab("dr_lee", "yesterday's tab")
    yesterday.save_draft_and_get_time("doc2_6", yesterday.open_and_claim_case("doc2_6").draft.set_notes("begun"))
    clock.wait(days=1)
    today = open_tab("dr_lee", "today's tab")
    draft = today.open_and_claim_case("doc2_6").draft
    assert draft.notes == "begun"
    today.save_draft_and_get_time("doc2_6", draft)
    today.submit_review("doc2_6", draft.set_dominant_type(OTHER))
    found = today.open_and_claim_case("doc2_6")
    assert (found.is_completed, found.draft_saved_at) == (True, None)
    assert (found.draft.dominant_type, found.draft.notes) == (OTHER, "begun")
    assert [review.outcome for review in found.reviews] == ["corrected"]
    assert found.explain_permanent_validation_block() == "This case is already closed."


def test_draft_keeps_decisions_after_a_new_run(build: Any, two: Any, workspace: Any, open_tab: Any) -> None:
    lee = open_tab("dr_lee")
    draft = (
        lee.open_and_claim_case("doc2_6")
        .draft.set_segment_type(0, OTHER)
        .show_issue_and_mark_seen("V3-0001")
        .set_notes("a CBC")
    )
    lee.save_draft_and_get_time("doc2_6", draft.set_issue_verdict("V3-0001", "confirmed", ""))
    lee.release_case("doc2_6")
    bundle = build.bundle([[f"page {number}"] for number in range(1, 9)])
    workspace.publish(build.single("Pathology Report", 8), [build.issue("V3-0001", message="another")], bundle)
    found = lee.open_and_claim_case("doc2_6")
    assert found.draft.segments == draft.segments
    assert (found.draft.notes, found.draft.evidence_seen, found.draft.issue_verdicts) == ("a CBC", (), ())


def test_a_draft_that_cannot_be_read_does_not_lock_the_case(
    two: Any, workspace: Any, open_tab: Any, caplog: pytest.LogCaptureFixture
) -> None:
    stored = StoredDraft(
        "doc2_6", "dr_lee", "tab of dr_lee", compute_packet_digest(two), '{"notes": "John Doe"}', "2025"
    )
    workspace.index.drafts.save(stored)
    with caplog.at_level(logging.DEBUG):
        assert open_tab("dr_lee").open_and_claim_case("doc2_6").draft == Draft.from_packet(two)
    assert "draft" in caplog.text
    assert "John Doe" not in caplog.text


def test_drafts_are_private_and_named_cases_only(two: Any, workspace: Any, open_tab: Any) -> None:
    lee = open_tab("dr_lee")
    lee.save_draft_and_get_time("doc2_6", Draft.from_packet(two))  # no claim is needed
    for path in workspace.root.glob("evalkit.sqlite*"):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    with pytest.raises(NotFound):
        lee.save_draft_and_get_time("nothing", Draft.from_packet(two))


def test_a_case_whose_files_are_torn_is_not_claimed(two: Any, workspace: Any, open_tab: Any) -> None:
    (workspace.root / "document_bundles/doc2_6.json").write_text("{}")
    lee = open_tab("dr_lee")
    with pytest.raises(StoreError):
        lee.open_and_claim_case("doc2_6")
    assert lee.load_queue_page().rows[0].status == "pending"


def test_a_desk_needs_a_name_a_tab_and_a_folder(workspace: Any, tmp_path: Any) -> None:
    for reviewer, session, root in (
        (" ", "tab", workspace.root),
        ("dr_lee", "", workspace.root),
        ("dr_lee", "tab", "nowhere"),
    ):
        with pytest.raises(UsageError):
            ReviewSession(open_folder(root), reviewer, session)


# --- what must be seen --------------------------------------------------------------------------------------------


def test_every_row_of_the_arbiter_says_what_it_counted() -> None:
    assert set(COUNTED_ISSUES_BY_RULE) == {str(number) for number in range(1, len(DECISION_TABLE) + 1)} | {
        "retries",
        "cycle",
    }


@pytest.mark.parametrize(
    ("rule", "issues", "expected"),
    [
        ("1", ["B1", "M2", "f3", "m4", "B5"], ["B1", "B5"]),
        ("2", ["M1", "f2", "f3", "m4"], ["M1", "f2", "f3"]),
        ("3", ["M1", "M2", "m3"], ["M1", "M2"]),
        ("4", ["M1", "f2", "m3"], ["M1"]),
        ("5", ["f1", "f2", "m3"], ["f1", "f2"]),
        ("6", ["m1", "m2"], ["m1", "m2"]),
        ("7", [], []),
        ("8", ["m1", "B2", "f3"], ["B2", "f3", "m1"]),
        ("retries", ["f1", "m2"], ["f1"]),
        ("cycle", ["m1", "f2"], ["f2"]),
        ("a later evalkit's", ["m1", "f2"], ["f2", "m1"]),
    ],
)
def test_what_the_winning_row_counted_must_be_seen(
    build: Any, workspace: Any, open_tab: Any, rule: str, issues: list[str], expected: list[str]
) -> None:
    severity = {"B": "BLOCKER", "M": "MAJOR", "f": "MAJOR", "m": "MINOR"}
    ids = {name: f"V3-000{name[1]}" for name in issues}
    made = [build.issue(ids[name], severity[name[0]], auto_fixable=name[0] == "f") for name in issues]
    repaired = build.issue("V2-0009", "BLOCKER", status="repaired")
    if rule.isdigit() and rule != "8":
        assert V5DecisionMaker().decide(made).rule == rule
    result = build.result(build.single("Other"), [*made, repaired]).model_copy(update={"decision_rule": rule})
    packet = build.packet(result)
    case = ClassificationReviewCase(
        packet, build.bundle(), 0, Draft.from_packet(packet), None, is_completed=False, reviews=()
    )
    assert case.get_viewing_requirements(case.draft) == ViewingRequirements(
        page_numbers=(1,), issue_ids=tuple(ids[name] for name in expected)
    )


def test_what_is_missing_is_said_in_words(two: Any, open_tab: Any) -> None:
    case = open_tab("dr_lee").open_and_claim_case("doc2_6")
    assert case.get_viewing_requirements(case.draft) == ViewingRequirements(
        page_numbers=(1, 6), issue_ids=("V3-0001", "V4-0001")
    )
    draft = case.draft
    assert case.explain_validation_block(draft) == "2 grave doubts and pages 1 and 6 not yet seen"
    draft = (
        draft.show_page_and_mark_seen(1)
        .show_issue_and_mark_seen("V3-0001")
        .show_page_and_mark_seen(5)
        .show_issue_and_mark_seen("V1-0001")
    )
    assert case.find_unseen_requirements(draft) == ViewingRequirements(page_numbers=(6,), issue_ids=("V4-0001",))
    assert case.explain_validation_block(draft) == "1 grave doubt and page 6 not yet seen"
    assert case.explain_validation_block(draft.show_page_and_mark_seen(6)) == "1 grave doubt not yet seen"
    assert case.explain_validation_block(draft.show_issue_and_mark_seen("V4-0001")) == "page 6 not yet seen"
    assert case.explain_validation_block(seen_all(case)) is None
    assert "correction" in str(case.explain_validation_block(seen_all(case).set_segment_type(0, OTHER)))


def test_the_context_of_an_issue_comes_with_the_case(two: Any, open_tab: Any) -> None:
    case = open_tab("dr_lee").open_and_claim_case("doc2_6")
    assert case.get_issue_context("V1-0001").issue.page == 7
    assert case.get_issue_context("V1-0001") is case.get_issue_context("V1-0001")
    with pytest.raises(NotFound):
        case.get_issue_context("V9-0001")


# --- validating ---------------------------------------------------------------------------------------------------


def test_nothing_is_validated_before_it_was_seen(two: Any, workspace: Any, open_tab: Any) -> None:
    lee = open_tab("dr_lee")
    case = lee.open_and_claim_case("doc2_6")
    with pytest.raises(ReviewRefused, match="2 grave doubts and pages 1 and 6 not yet seen"):
        lee.submit_review("doc2_6", case.draft, validate=True)
    assert not (workspace.root / "reviews").exists()
    draft = seen_all(case).set_issue_verdict("V3-0001", "dismissed", "it is a real report").set_notes("checked")
    lee.save_draft_and_get_time("doc2_6", draft)
    done = lee.submit_review("doc2_6", draft.model_copy(update={"seconds_active": 41.5}), validate=True)
    review = done.review
    assert (done.revision, done.review.submitted_at) == (1, "2025-02-01T10:40:00+00:00")
    assert review.model_dump(mode="json") == workspace.files.read_json("reviews/doc2_6/0001.json")
    assert (review.outcome, review.reviewer, review.seconds_active) == ("validated", "dr_lee", 41.5)
    assert (review.pages_seen, review.evidence_seen) == ((1, 6), ("V3-0001", "V4-0001"))
    assert (review.correction_notes, review.issue_verdicts[0].note) == ("checked", "it is a real report")
    assert review.vouched == ("dominant_type", "segments")
    assert workspace.truth()["ground_truth_source"] == "SME_VALIDATED"
    assert read_packet(workspace.files, "doc2_6").review_status == "completed"
    assert review.packet_sha256 == compute_packet_digest(two)
    assert (lee.load_queue_page().rows, lee.load_queue_page().done_by_me) == ((), 1)
    assert workspace.index.drafts.find_newest_draft("doc2_6", "dr_lee", "tab of dr_lee") is None
    assert workspace.index.claims.map_live_claims_by_case_id("2025-02-01T10:40:00+00:00") == {}


def test_what_was_changed_is_not_validated(two: Any, workspace: Any, open_tab: Any) -> None:
    lee = open_tab("dr_lee")
    draft = seen_all(lee.open_and_claim_case("doc2_6")).set_dominant_type(NOTE)
    with pytest.raises(ReviewRefused, match="submit it as a correction"):
        lee.submit_review("doc2_6", draft, validate=True)
    assert workspace.truth() is None


def test_shares_are_vouched_for_only_if_seen_and_correct(build: Any, workspace: Any, open_tab: Any) -> None:
    lee = open_tab("dr_lee")
    workspace.publish(build.single("Other"), doc_id="holds")
    assert lee.submit_review(
        "holds", seen_all(lee.open_and_claim_case("holds")).mark_mixture_seen(), validate=True
    ).review.vouched == (
        "dominant_type",
        "segments",
        "mixture",
    )
    wrong = build.answer([build.segment(1, 1, 1, "Other")], {"Other": 0.6, "Clinical Note": 0.4}, "Other")
    workspace.publish(wrong, doc_id="wrong")
    assert lee.submit_review(
        "wrong", seen_all(lee.open_and_claim_case("wrong")).mark_mixture_seen(), validate=True
    ).review.vouched == (
        "dominant_type",
        "segments",
    )


def test_repairs_that_are_offered_are_done_on_validating(build: Any, workspace: Any, open_tab: Any) -> None:
    answer = build.single("Other").model_copy(update={"number_of_segments": 4})
    workspace.publish(answer, [build.issue("V1-0001", "BLOCKER", "V1-SEGMENT-COUNT", auto_fixable=True)])
    lee = open_tab("dr_lee")
    case = lee.open_and_claim_case("doc2_6")
    assert case.explain_permanent_validation_block() is None
    review = lee.submit_review("doc2_6", seen_all(case), validate=True).review
    assert [repair.code for repair in review.repairs_applied] == ["V1-SEGMENT-COUNT"]
    assert review.after.number_of_segments == 1


def broken(build: Any) -> Any:
    return build.answer(
        [build.segment(1, 1, 5, "Genomic Report"), build.segment(2, 5, 8, "Clinical Note")],
        {"Genomic Report": 0.6, "Clinical Note": 0.4},
        "Genomic Report",
    )


@pytest.mark.parametrize("has_answer", [True, False])
def test_case_that_cannot_be_validated_can_be_corrected(
    build: Any, workspace: Any, open_tab: Any, has_answer: bool
) -> None:
    bundle = build.bundle([[f"page {number}"] for number in range(1, 9)])
    workspace.publish(broken(build) if has_answer else None, [build.issue()], bundle)
    lee = open_tab("dr_lee")
    case = lee.open_and_claim_case("doc2_6")
    said = "Two listed documents both include page 5" if has_answer else "nothing to validate"
    assert said in case.explain_permanent_validation_block()
    drawn = [(one.start_page, one.end_page, one.dominant_type) for one in case.draft.segments]
    assert drawn == ([(1, 4, GENOMIC), (5, 8, NOTE)] if has_answer else [(1, 8, None)])
    assert case.has_expert_changes(case.draft) is has_answer
    decided = case.draft.decide_boundary(5, begins=has_answer)
    with pytest.raises(ReviewRefused, match=said):
        lee.submit_review("doc2_6", decided, validate=True)
    draft = decided.toggle_boundary(6).set_segment_type(0, GENOMIC).set_segment_type(len(drawn), None)
    with pytest.raises(ReviewRefused, match="pages 6–8 have no type yet"):
        lee.submit_review("doc2_6", draft)
    review = lee.submit_review("doc2_6", draft.set_segment_type(len(drawn), NOTE)).review
    assert (review.outcome, review.vouched) == ("corrected", ("dominant_type", "segments"))
    assert workspace.truth()["ground_truth_source"] == "SME_CORRECTED"


# --- correcting -----------------------------------------------------------------------------------------------------


def test_slide_10_the_expert_corrects_to_other_with_a_note(build: Any, workspace: Any, open_tab: Any) -> None:
    workspace.publish(build.single("Genomic Report"), [build.issue()])
    lee = open_tab("dr_lee")
    draft = (
        lee.open_and_claim_case("doc2_6")
        .draft.set_segment_type(0, OTHER)
        .set_notes("This is a routine CBC from Quest.")
    )
    assert draft.dominant_type is OTHER
    review = lee.submit_review("doc2_6", draft).review
    truth = workspace.truth()
    assert (truth["ground_truth_source"], truth["corrected_dominant_type"]) == ("SME_CORRECTED", "Other")
    assert truth["correction_notes"] == "This is a routine CBC from Quest."
    assert (review.vouched, review.repairs_applied) == (("dominant_type", "segments"), ())
    (segment,) = review.after.segments
    assert (segment.start_page, segment.end_page, segment.dominant_type) == (1, 1, OTHER)


def test_a_closed_case_shows_the_truth_and_who_decided(build: Any, workspace: Any, open_tab: Any) -> None:
    workspace.publish(build.single("Genomic Report"), [build.issue()])
    lee = open_tab("dr_lee")
    draft = lee.open_and_claim_case("doc2_6").draft.set_segment_type(0, OTHER).set_notes("a routine CBC")
    lee.submit_review("doc2_6", draft)
    for reviewer in ("dr_lee", "dr_kim"):
        case = open_tab(reviewer).open_and_claim_case("doc2_6")
        assert (case.draft.segments, case.draft.dominant_type) == (draft.segments, OTHER)
        assert (case.draft.notes, case.draft_saved_at) == ("a routine CBC", None)
        assert (case.closing_review.outcome, case.closing_review.reviewer) == ("corrected", "dr_lee")
        assert case.describe_changes(case.draft)[0] == "Page 1: Genomic Report → Other"


@pytest.mark.parametrize(
    ("change", "vouched", "ranges", "dominant"),
    [
        (lambda d: d.set_dominant_type(OTHER), ("dominant_type",), [(1, 5), (6, 8)], OTHER),
        (lambda d: d.move_segment_start(1, 4), ("dominant_type", "segments"), [(1, 3), (4, 8)], NOTE),
        (lambda d: d.move_segment_start(1, 5), ("dominant_type", "segments"), [(1, 4), (5, 8)], GENOMIC),
        (lambda d: d.set_mixture({GENOMIC: 0.6, NOTE: 0.4}), ("mixture",), [(1, 5), (6, 8)], GENOMIC),
    ],
)
def test_only_what_differs_is_corrected_and_vouched_for(
    two: Any, open_tab: Any, change: Any, vouched: Any, ranges: Any, dominant: Any
) -> None:
    lee = open_tab("dr_lee")
    review = lee.submit_review("doc2_6", change(lee.open_and_claim_case("doc2_6").draft)).review
    assert (review.outcome, review.vouched) == ("corrected", vouched)
    assert [(one.start_page, one.end_page) for one in review.after.segments] == ranges
    assert review.after.dominant_type_overall is dominant


def test_what_changes_nothing_is_no_correction(two: Any, workspace: Any, open_tab: Any) -> None:
    lee = open_tab("dr_lee")
    case = lee.open_and_claim_case("doc2_6")
    for draft in (
        case.draft,
        seen_all(case).set_issue_verdict("V3-0001", "confirmed", ""),
        case.draft.set_notes(" \n"),
    ):
        assert not case.has_expert_changes(draft)
        with pytest.raises(ReviewRefused, match="nothing was changed"):
            lee.submit_review("doc2_6", draft)
    assert case.has_expert_changes(case.draft.toggle_boundary(2))
    assert not case.has_expert_changes(case.draft.toggle_boundary(2).toggle_boundary(2))
    assert workspace.truth() is None


def test_a_type_that_the_drawn_documents_contradict_is_refused(two: Any, open_tab: Any) -> None:
    lee = open_tab("dr_lee")
    with pytest.raises(ReviewRefused, match="DOMINANT-OVERALL"):
        lee.submit_review(
            "doc2_6", lee.open_and_claim_case("doc2_6").draft.move_segment_start(1, 7).set_dominant_type(NOTE)
        )


def test_undeterminable_needs_no_looking_but_a_reason(two: Any, workspace: Any, open_tab: Any) -> None:
    lee = open_tab("dr_lee")
    draft = lee.open_and_claim_case("doc2_6").draft.set_segment_type(0, OTHER).set_notes("page 3 is upside down")
    with pytest.raises(ReviewRefused, match="reason"):
        lee.submit_review("doc2_6", draft, undeterminable_reason=" ")
    with pytest.raises(ReviewRefused, match="both"):
        lee.submit_review("doc2_6", draft, validate=True, undeterminable_reason="illegible scan")
    review = lee.submit_review("doc2_6", draft, undeterminable_reason="illegible scan").review
    assert (review.outcome, review.after, review.vouched) == ("undeterminable", None, ())
    assert review.correction_notes == "illegible scan\npage 3 is upside down"
    assert workspace.truth() is None


def test_displayed_shares_are_those_the_review_would_store(two: Any, open_tab: Any) -> None:
    case = open_tab("dr_lee").open_and_claim_case("doc2_6")
    shares = dict(case.compute_mixture_after_review(case.draft))
    assert shares == {NOTE: 0.375, PATHOLOGY: 0.0, GENOMIC: 0.625, RADIOLOGY: 0.0, OTHER: 0.0}
    assert dict(case.compute_mixture_after_review(case.draft.move_segment_end(0, 4)))[GENOMIC] == 0.5
    assert dict(case.compute_mixture_after_review(case.draft.set_mixture({OTHER: 1.0}))) == {OTHER: 1.0}


# --- after a claim was lost -----------------------------------------------------------------------------------------


def test_a_claim_that_ran_out_does_not_cost_the_review(plain: Any, open_tab: Any, clock: Any) -> None:
    lee = open_tab("dr_lee")
    case = lee.open_and_claim_case("doc2_6")
    clock.wait(hours=3)
    assert lee.submit_review("doc2_6", seen_all(case), validate=True).revision == 1


def test_one_who_lost_the_case_is_told_and_keeps_the_draft(
    plain: Any, workspace: Any, open_tab: Any, clock: Any
) -> None:
    lee, kim = open_tab("dr_lee"), open_tab("dr_kim")
    draft = lee.open_and_claim_case("doc2_6").draft.set_dominant_type(NOTE)
    clock.wait(minutes=15)
    case = kim.open_and_claim_case("doc2_6")
    with pytest.raises(CaseTaken, match="open by dr_kim since 10:55"):
        lee.submit_review("doc2_6", draft)
    lee.save_draft_and_get_time("doc2_6", draft)
    kim.submit_review("doc2_6", seen_all(case), validate=True)
    with pytest.raises(ReviewConflict):
        lee.submit_review("doc2_6", draft)
    assert workspace.truth()["reviewer"] == "dr_kim"
    workspace.helper().reopen("doc2_6", "not seen by both")
    assert lee.open_and_claim_case("doc2_6").draft == draft


def test_reopened_case_waits_and_continues_its_revisions(plain: Any, workspace: Any, open_tab: Any) -> None:
    lee = open_tab("dr_lee")
    lee.submit_review("doc2_6", lee.open_and_claim_case("doc2_6").draft.set_dominant_type(NOTE))
    workspace.helper().reopen("doc2_6", "I misread it")
    assert lee.choose_next_case_id() == "doc2_6"
    case = lee.open_and_claim_case("doc2_6")
    assert (case.revision, [one.outcome for one in case.reviews]) == (2, ["corrected", "reopened"])
    assert lee.submit_review("doc2_6", seen_all(case), validate=True).revision == 3


def test_a_reopened_case_has_the_whole_answer(build: Any, workspace: Any, open_tab: Any) -> None:
    workspace.publish(build.single("Genomic Report", 3), [build.issue("V3-0001")], build.bundle([["a"], ["b"], ["c"]]))
    lee = open_tab("dr_lee")
    shares = {GENOMIC: 0.6, PATHOLOGY: 0.4}
    draft = lee.open_and_claim_case("doc2_6").draft.set_mixture(shares).set_segment_note(0, "stamp unreadable")
    for page in (1, 2, 3):
        draft = draft.show_page_and_mark_seen(page)
    first = lee.submit_review("doc2_6", draft).review
    lee.reopen_case("doc2_6")
    case = lee.open_and_claim_case("doc2_6")
    assert {kind: share for kind, share in (case.draft.mixture or {}).items() if share} == shares
    assert case.draft.segment_notes == {1: "stamp unreadable"}
    second = lee.submit_review("doc2_6", case.draft).review
    assert (second.after, second.vouched, second.segment_flags) == (first.after, first.vouched, first.segment_flags)


def test_lost_packets_are_counted_in_the_queue(build: Any, workspace: Any, open_tab: Any) -> None:
    workspace.publish(build.single("Other"), [build.issue()], doc_id="a")
    case_id = workspace.publish(build.single("Other"), [build.issue()], doc_id="b").case_id
    assert open_tab("dr_lee").load_queue_page().lost == 0
    (workspace.root / f"sme_packets/sme_packet_{case_id}.json").unlink()
    assert open_tab("dr_kim").load_queue_page().lost == 1
