"""Audits and second opinions: the expert answers first, and only then is told what the agent said."""

from __future__ import annotations

from typing import Any

import pytest

from evalkit.classification.patient_keys import drop_patient_keys
from evalkit.classification.schema import DocumentType
from evalkit.errors import ReviewConflict, ReviewRefused
from evalkit.review import (
    ClassificationReviewCase,
    Draft,
    ReviewSession,
    ViewingRequirements,
    publish_packet_unless_frozen,
)
from evalkit.review.packet import SMEPacket

NOTE, PATHOLOGY, GENOMIC, RADIOLOGY, OTHER = DocumentType

MIXTURE = {"Genomic Report": 0.625, "Clinical Note": 0.375}


def answer_of(build: Any, first_end: int = 5) -> Any:
    return build.answer(
        [build.segment(1, 1, first_end, "Genomic Report"), build.segment(2, 6, 8, "Clinical Note")],
        MIXTURE,
        "Genomic Report",
    )


@pytest.fixture
def audit(build: Any, workspace: Any) -> SMEPacket:
    """An accepted document of a genomic report (1–5) and a note (6–8), drawn for an audit."""
    bundle = build.bundle([[f"page {number}"] for number in range(1, 9)])
    production = {"dominant_type": "Other"}
    return workspace.publish(answer_of(build), bundle=bundle, review_reason="audit", production_row=production)


def second(build: Any, desk: Any, answer: Any) -> None:
    """A second opinion on an escalated document with a blocking issue."""
    bundle = build.bundle([[f"page {number}"] for number in range(1, 9)])
    packet = desk.publish(answer, [build.issue("V3-0001")], bundle)
    publish_packet_unless_frozen(desk.files, desk.index, packet.model_copy(update={"case_id": "doc2_6.second"}))


def drawn(draft: Draft, *, at: int = 6, kinds: tuple[DocumentType, DocumentType] = (GENOMIC, NOTE)) -> Draft:
    """Two documents, both begun to be read."""
    draft = draft.toggle_boundary(at).set_segment_type(0, kinds[0]).set_segment_type(1, kinds[1])
    return draft.show_page_and_mark_seen(1).show_page_and_mark_seen(at)


@pytest.mark.parametrize(
    ("case_id", "reason", "revision", "expected"),
    [
        ("doc", "audit", 0, True),
        ("doc", "sample", 0, True),
        ("doc", "escalated", 0, False),
        ("doc.second", "escalated", 0, True),
        ("doc.second", "requested", 0, True),
        ("doc.adjudication", "audit", 0, False),
        ("doc.second.adjudication", "audit", 0, False),
        ("doc", "audit", 1, False),
        ("doc.second", "requested", 2, False),
    ],
)
def test_which_cases_are_blind(build: Any, case_id: str, reason: str, revision: int, expected: bool) -> None:
    packet = build.packet(build.result(build.single("Other")), review_reason=reason)
    packet = packet.model_copy(update={"case_id": case_id})
    case = ClassificationReviewCase(
        packet, build.bundle(), revision, Draft.create_blank(1), None, is_completed=revision == 1, reviews=()
    )
    assert case.is_blind is expected


def test_a_blind_case_starts_with_nothing_and_tells_nothing(audit: Any, workspace: Any, open_tab: Any) -> None:
    case = open_tab("dr_lee").open_and_claim_case("doc2_6")
    assert case.is_blind
    assert (case.draft, case.get_viewing_requirements(case.draft)) == (
        Draft.create_blank(8),
        ViewingRequirements(page_numbers=(1,), issue_ids=()),
    )
    for draft in (case.draft, drawn(case.draft), drawn(case.draft, at=3, kinds=(OTHER, OTHER))):
        assert case.describe_changes(draft) == ()
        assert case.explain_permanent_validation_block() is None
        assert (
            case.explain_validation_block(draft)
            == "Give your own answer first: the program's answer is shown afterwards."
        )
    shares = dict(case.compute_mixture_after_review(drawn(case.draft, at=5)))
    assert (shares[GENOMIC], shares[NOTE]) == (0.5, 0.5)
    assert sum(share for _, share in case.compute_mixture_after_review(case.draft)) == 0


def test_blind_case_does_not_depend_on_the_agents_answer(build: Any) -> None:
    bundle = build.bundle([["a"]] * 8)
    told = []
    broken = answer_of(build, first_end=6)
    for answer in (answer_of(build), build.single("Other", 8), broken, None):
        packet = build.packet(build.result(answer, [build.issue()]), bundle)
        packet = packet.model_copy(update={"case_id": "doc2_6.second"})
        case = ClassificationReviewCase(packet, bundle, 0, Draft.create_blank(8), None, is_completed=False, reviews=())
        drafts = (case.draft, case.draft.toggle_boundary(6), drawn(case.draft), drawn(case.draft, at=2))
        told.append(
            [
                (
                    case.has_expert_changes(one),
                    case.describe_changes(one),
                    case.compute_mixture_after_review(one),
                    case.find_unseen_requirements(one),
                    case.explain_permanent_validation_block(),
                    case.explain_validation_block(one),
                    case.explain_submission_block(one),
                    case.get_viewing_requirements(case.draft),
                )
                for one in drafts
            ]
        )
    assert told == [told[0]] * 4


def test_answer_needs_a_type_and_a_seen_page_per_segment(audit: Any, open_tab: Any) -> None:
    case = open_tab("dr_lee").open_and_claim_case("doc2_6")
    draft = case.draft
    assert (case.has_expert_changes(draft), case.explain_submission_block(draft)) == (
        False,
        "pages 1–8 have no type yet",
    )
    draft = draft.toggle_boundary(8).toggle_boundary(4).set_segment_type(1, NOTE)
    assert case.explain_submission_block(draft) == "pages 1–3 and 8 have no type yet"
    draft = draft.set_segment_type(0, NOTE)
    assert case.explain_submission_block(draft) == "page 8 has no type yet"
    draft = draft.set_segment_type(2, OTHER).show_page_and_mark_seen(5)
    assert (case.has_expert_changes(draft), case.explain_submission_block(draft)) == (
        True,
        "pages 1, 4 and 8 not yet seen",
    )
    assert case.find_unseen_requirements(draft) == ViewingRequirements(page_numbers=(1, 4, 8), issue_ids=())
    draft = draft.show_page_and_mark_seen(1).show_page_and_mark_seen(8)
    assert case.explain_submission_block(draft) == "page 4 not yet seen"
    assert case.explain_submission_block(draft.show_page_and_mark_seen(4)) is None


def test_what_is_no_answer_yet_is_refused(audit: Any, workspace: Any, open_tab: Any) -> None:
    lee = open_tab("dr_lee")
    draft = lee.open_and_claim_case("doc2_6").draft
    with pytest.raises(ReviewRefused, match="no type yet"):
        lee.submit_review("doc2_6", draft)
    with pytest.raises(ReviewRefused, match="not yet seen"):
        lee.submit_review("doc2_6", draft.set_segment_type(0, OTHER))
    with pytest.raises(ReviewRefused, match="your own answer"):
        lee.submit_review("doc2_6", drawn(draft), validate=True)
    assert not (workspace.root / "reviews").exists()


def test_saying_the_same_validates(audit: Any, workspace: Any, open_tab: Any) -> None:
    lee = open_tab("dr_lee")
    draft = drawn(lee.open_and_claim_case("doc2_6").draft).toggle_segment_flag(1, "other_patient").mark_mixture_seen()
    done = lee.submit_review("doc2_6", draft)
    review = done.review
    assert (review.outcome, review.vouched) == ("validated", ("dominant_type", "segments"))
    assert review.after == review.before == drop_patient_keys(audit.classification)
    assert (review.shown.agent, review.shown.production) == (False, "after")
    assert [row["flag"] for row in review.segment_flags] == ["other_patient"]
    assert (done.production_type, done.agent_type, done.is_same_as_agent) == ("Other", "Genomic Report", True)
    assert done.disagreement == {}
    assert workspace.truth()["ground_truth_source"] == "SME_VALIDATED"
    assert not lee.open_and_claim_case("doc2_6").is_blind


@pytest.mark.parametrize(
    "answer",
    [
        lambda d: drawn(d, at=5),
        lambda d: drawn(d, kinds=(GENOMIC, OTHER)),
        lambda d: drawn(d).toggle_boundary(3).show_page_and_mark_seen(3),
        lambda d: d.set_segment_type(0, GENOMIC).show_page_and_mark_seen(1),
        lambda d: d.toggle_boundary(3).toggle_boundary(5).set_segment_type(0, NOTE).set_segment_type(1, NOTE).set_segment_type(2, GENOMIC).set_dominant_type(NOTE)
        .show_page_and_mark_seen(1).show_page_and_mark_seen(3).show_page_and_mark_seen(5),
    ],
)  # fmt: skip
def test_saying_something_else_corrects(audit: Any, workspace: Any, open_tab: Any, answer: Any) -> None:
    lee = open_tab("dr_lee")
    draft = answer(lee.open_and_claim_case("doc2_6").draft)
    done = lee.submit_review("doc2_6", draft)
    assert (done.review.outcome, done.review.vouched) == ("corrected", ("dominant_type", "segments"))
    ranges = [(one.start_page, one.end_page, one.dominant_type) for one in done.review.after.segments]
    assert ranges == [(one.start_page, one.end_page, one.dominant_type) for one in draft.segments]
    assert done.review.after.dominant_type_overall is draft.dominant_type
    assert done.review.shown.agent is False
    assert (done.agent_type, done.is_same_as_agent) == ("Genomic Report", False)


def test_a_second_look_is_an_unblinded_revision(audit: Any, workspace: Any, open_tab: Any) -> None:
    lee = open_tab("dr_lee")
    blind = lee.submit_review("doc2_6", drawn(lee.open_and_claim_case("doc2_6").draft, at=5))
    assert blind.disagreement["you"] == "pages 1–4 Genomic Report; pages 5–8 Clinical Note"
    assert blind.disagreement["program"] == "pages 1–5 Genomic Report; pages 6–8 Clinical Note"
    assert open_tab("dr_kim").open_and_claim_case("doc2_6", look_again=True).is_locked
    case = lee.open_and_claim_case("doc2_6", look_again=True)
    assert (case.is_locked, case.is_blind, case.draft.segments[0].end_page) == (False, False, 4)
    assert [opinion.label for opinion in case.opinions] == ["Your answer", "The program's answer"]
    lee.renew_claim("doc2_6")
    lee.save_draft_and_get_time("doc2_6", case.draft)
    with pytest.raises(ReviewRefused, match="cannot be deferred"):
        lee.defer_case_and_get_time("doc2_6", case.draft, "later")
    assert lee.load_queue_page().pending == lee.load_queue_page().in_review == 0
    assert len(workspace.truth()["ground_truth_classification"]["segments"]) == 2
    draft = case.draft.move_segment_end(0, 5).set_dominant_type(OTHER).set_segment_type(0, OTHER)
    review = lee.submit_review("doc2_6", draft).review
    first, second = (workspace.files.read_json(f"reviews/doc2_6/000{number}.json") for number in (1, 2))
    assert ("unblinded" in first, second["unblinded"], review.shown.agent) == (False, True, True)
    assert workspace.truth()["corrected_dominant_type"] == "Other"


def test_a_second_look_that_is_given_up_changes_nothing(audit: Any, workspace: Any, open_tab: Any) -> None:
    lee = open_tab("dr_lee")
    lee.submit_review("doc2_6", drawn(lee.open_and_claim_case("doc2_6").draft, at=5))
    truth = workspace.truth()
    lee.open_and_claim_case("doc2_6", look_again=True)
    lee.release_case("doc2_6")
    assert workspace.truth() == truth
    assert workspace.files.read_json("sme_packets/sme_packet_doc2_6.json")["review_status"] == "completed"


def test_stated_shares_are_kept_if_the_rest_is_unchanged(audit: Any, open_tab: Any) -> None:
    lee = open_tab("dr_lee")
    draft = drawn(lee.open_and_claim_case("doc2_6").draft).set_mixture({GENOMIC: 0.6, NOTE: 0.4})
    done = lee.submit_review("doc2_6", draft)
    assert (done.review.outcome, done.review.vouched) == ("corrected", ("dominant_type", "segments", "mixture"))
    assert done.is_same_as_agent is True


def test_a_blind_case_that_nobody_can_tell(audit: Any, workspace: Any, open_tab: Any) -> None:
    lee = open_tab("dr_lee")
    done = lee.submit_review("doc2_6", lee.open_and_claim_case("doc2_6").draft, undeterminable_reason="illegible")
    assert (done.review.outcome, done.review.shown.agent) == ("undeterminable", False)
    assert (done.agent_type, done.is_same_as_agent) == ("Genomic Report", None)
    assert workspace.truth() is None


def test_a_second_opinion_needs_no_look_at_the_issues(build: Any, workspace: Any, open_tab: Any) -> None:
    second(build, workspace, answer_of(build))
    kim = open_tab("dr_kim")
    case = kim.open_and_claim_case("doc2_6.second")
    assert case.get_viewing_requirements(case.draft).issue_ids == ()
    done = kim.submit_review("doc2_6.second", drawn(case.draft))
    assert (done.review.outcome, done.review.vouched, done.is_same_as_agent) == (
        "validated",
        ("dominant_type", "segments"),
        True,
    )
    assert (done.review.evidence_seen, done.review.issue_verdicts) == ((), ())


def test_repairs_that_are_offered_are_done_when_the_same_is_said(build: Any, workspace: Any, open_tab: Any) -> None:
    answer = answer_of(build).model_copy(update={"number_of_segments": 4})
    bundle = build.bundle([["a"]] * 8)
    issue = build.issue("V1-0001", "BLOCKER", "V1-SEGMENT-COUNT", auto_fixable=True)
    packet = workspace.publish(answer, [issue], bundle)
    publish_packet_unless_frozen(
        workspace.files, workspace.index, packet.model_copy(update={"case_id": "doc2_6.second"})
    )
    lee = open_tab("dr_lee")
    review = lee.submit_review("doc2_6.second", drawn(lee.open_and_claim_case("doc2_6.second").draft)).review
    assert [repair.code for repair in review.repairs_applied] == ["V1-SEGMENT-COUNT"]


@pytest.mark.parametrize("says", ["contradicts itself", "broken", "nothing"])
def test_invalid_agent_answer_does_not_break_a_blind_review(
    build: Any, workspace: Any, open_tab: Any, says: str
) -> None:
    given = {
        # The same ranges and types as the expert's, but a segment whose shares say another type than its own.
        "contradicts itself": build.answer(
            [
                build.segment(1, 1, 5, "Genomic Report", {"Genomic Report": 0.2, "Other": 0.8}),
                build.segment(2, 6, 8, "Clinical Note"),
            ],
            MIXTURE,
            "Genomic Report",
        ),
        "broken": answer_of(build, first_end=6),
        "nothing": None,
    }[says]
    second(build, workspace, given)
    kim = open_tab("dr_kim")
    case = kim.open_and_claim_case("doc2_6.second")
    assert (case.is_blind, case.explain_permanent_validation_block()) == (True, None)
    done = kim.submit_review("doc2_6.second", drawn(case.draft))
    assert (done.review.outcome, done.review.vouched) == ("corrected", ("dominant_type", "segments"))
    assert [(one.start_page, one.end_page) for one in done.review.after.segments] == [(1, 5), (6, 8)]
    assert done.is_same_as_agent is (says == "contradicts itself")
    assert done.agent_type == (None if says == "nothing" else "Genomic Report")


def test_draft_of_a_blind_case_stays_blind_after_a_new_run(build: Any, workspace: Any, open_tab: Any) -> None:
    bundle = build.bundle([["a"]] * 8)
    workspace.publish(answer_of(build), bundle=bundle, review_reason="audit")
    lee = open_tab("dr_lee")
    lee.save_draft_and_get_time("doc2_6", lee.open_and_claim_case("doc2_6").draft.set_notes("begun"))
    lee.release_case("doc2_6")
    workspace.publish(build.single("Other", 8), bundle=bundle, review_reason="audit")
    case = lee.open_and_claim_case("doc2_6")
    assert (case.draft.segments, case.draft.dominant_type) == (Draft.create_blank(8).segments, None)
    assert case.draft.notes == "begun"


def test_a_draft_that_cannot_be_read_does_not_uncover_the_agent(audit: Any, workspace: Any, open_tab: Any) -> None:
    lee = open_tab("dr_lee")
    lee.save_draft_and_get_time("doc2_6", lee.open_and_claim_case("doc2_6").draft)
    stored = workspace.index.drafts.find_newest_draft("doc2_6", "dr_lee", "tab of dr_lee")
    workspace.index.drafts.save(type(stored)(**{**vars(stored), "draft": "{}"}))
    assert lee.open_and_claim_case("doc2_6").draft == Draft.create_blank(8)


def test_open_case_reports_production_but_not_agreement(build: Any, workspace: Any, open_tab: Any) -> None:
    workspace.publish(build.single("Other"), production_row={"dominant_type": "Clinical Note"}, doc_id="known")
    workspace.publish(build.single("Other"), doc_id="unknown")
    lee = open_tab("dr_lee")
    for doc_id, production in (("known", "Clinical Note"), ("unknown", None)):
        done = lee.submit_review(
            doc_id, lee.open_and_claim_case(doc_id).draft.show_page_and_mark_seen(1), validate=True
        )
        assert (done.production_type, done.agent_type, done.is_same_as_agent) == (production, None, None)


# --- undo -----------------------------------------------------------------------------------------------------------


def submitted(lee: ReviewSession) -> Draft:
    draft = (
        drawn(lee.open_and_claim_case("doc2_6").draft, at=5)
        .toggle_segment_flag(0, "duplicate")
        .set_notes("as I see it")
    )
    lee.submit_review("doc2_6", draft)
    return draft


def test_the_last_submission_is_undone_with_its_draft(audit: Any, workspace: Any, open_tab: Any, clock: Any) -> None:
    lee = open_tab("dr_lee")
    draft = submitted(lee)
    clock.wait(seconds=3)
    assert lee.undo_last_submission_and_get_case_id() == "doc2_6"
    assert workspace.truth() is None
    assert lee.choose_next_case_id() == "doc2_6"
    case = lee.open_and_claim_case("doc2_6")
    assert (case.draft, case.draft_saved_at) == (draft, "2025-02-01T10:40:03+00:00")
    assert [(one.outcome, one.correction_notes) for one in case.reviews] == [
        ("corrected", "as I see it"),
        ("reopened", "undone by the reviewer"),
    ]
    assert not case.is_blind  # the agent's answer was told after the decision
    review = lee.submit_review("doc2_6", draft.set_segment_type(0, OTHER)).review
    assert (review.outcome, review.shown.agent) == ("corrected", True)


def test_undo_reverts_only_the_last_submission_of_the_tab(
    build: Any, audit: Any, workspace: Any, open_tab: Any
) -> None:
    workspace.publish(build.single("Other"), doc_id="plain")
    lee = open_tab("dr_lee")
    for one in (lee, open_tab("dr_lee", "second tab")):
        with pytest.raises(ReviewRefused, match="no case that you submitted in this tab"):
            one.undo_last_submission_and_get_case_id()
    submitted(lee)
    with pytest.raises(ReviewRefused, match="no case that you submitted in this tab"):
        open_tab("dr_lee", "second tab").undo_last_submission_and_get_case_id()
    lee.submit_review("plain", lee.open_and_claim_case("plain").draft, undeterminable_reason="illegible")
    assert lee.undo_last_submission_and_get_case_id() == "plain"
    with pytest.raises(ReviewRefused, match="no case that you submitted in this tab"):
        lee.undo_last_submission_and_get_case_id()
    assert workspace.truth() is not None


def test_refused_submission_keeps_the_previous_one_undoable(
    build: Any, audit: Any, workspace: Any, open_tab: Any
) -> None:
    workspace.publish(build.single("Other"), doc_id="plain")
    lee = open_tab("dr_lee")
    submitted(lee)
    with pytest.raises(ReviewRefused):
        lee.submit_review("plain", lee.open_and_claim_case("plain").draft)
    assert lee.undo_last_submission_and_get_case_id() == "doc2_6"


def test_what_somebody_else_has_reviewed_since_is_not_undone(audit: Any, workspace: Any, open_tab: Any) -> None:
    lee = open_tab("dr_lee")
    submitted(lee)
    workspace.helper("dr_kim").save_review("doc2_6", corrected_dominant_type="Other")
    with pytest.raises(ReviewConflict):
        lee.undo_last_submission_and_get_case_id()
    assert workspace.truth()["reviewer"] == "dr_kim"
    assert workspace.index.drafts.find_newest_draft("doc2_6", "dr_lee", "tab of dr_lee") is None


def test_a_colleagues_later_answer_is_not_unblinded(audit: Any, workspace: Any, open_tab: Any) -> None:
    lee = open_tab("dr_lee")
    lee.submit_review("doc2_6", drawn(lee.open_and_claim_case("doc2_6").draft, at=5))
    workspace.helper().reopen("doc2_6", "a boundary is wrong")
    review = workspace.helper("dr_kim").save_review("doc2_6", corrected_dominant_type="Other")
    assert not review.unblinded


def test_a_second_look_goes_on_after_a_reload(audit: Any, open_tab: Any) -> None:
    lee = open_tab("dr_lee")
    lee.submit_review("doc2_6", drawn(lee.open_and_claim_case("doc2_6").draft, at=5))
    assert lee.open_and_claim_case("doc2_6").is_locked
    case = lee.open_and_claim_case("doc2_6", look_again=True)
    lee.save_draft_and_get_time("doc2_6", case.draft.set_segment_type(0, OTHER))
    again = lee.open_and_claim_case("doc2_6")
    assert (again.is_locked, again.draft.segments[0].dominant_type) == (False, OTHER)
    assert open_tab("dr_kim").open_and_claim_case("doc2_6").is_locked
