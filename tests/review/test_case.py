"""A case: what differs from the agent's answer, why it cannot be submitted, and what flags and notes become."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.classification.schema import DocumentType
from evalkit.errors import NotFound, ReviewRefused
from evalkit.review import ClassificationReviewCase, Draft, ReviewCase
from evalkit.review.kinds.classification import ClassificationCorrection
from evalkit.review.plain_sentences import describe_issue

NOTE, PATHOLOGY, GENOMIC, RADIOLOGY, OTHER = DocumentType


@pytest.fixture(scope="module")
def case(build: Any) -> ReviewCase:
    """Eight pages that the agent calls a genomic report (1–3), a note (4–5) and something else (6–8)."""
    return made(
        build,
        [(1, 3, GENOMIC), (4, 5, NOTE), (6, 8, OTHER)],
        {"Genomic Report": 0.375, "Clinical Note": 0.25, "Other": 0.375},
        "Genomic Report",
    )


def made(build: Any, segments: list[tuple[int, int, Any]], mixture: dict[str, float], dominant: str) -> ReviewCase:
    answer = build.answer(
        [build.segment(at, start, end, kind) for at, (start, end, kind) in enumerate(segments, 1)], mixture, dominant
    )
    bundle = build.bundle([["a"]] * 8)
    issues = [build.issue("V4-0001"), build.issue("V3-0001", "MINOR")]
    packet = build.packet(build.result(answer, issues), bundle)
    return ClassificationReviewCase(packet, bundle, 0, Draft.from_packet(packet), None, is_completed=False, reviews=())


# --- what differs -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda d: d, ()),
        (lambda d: d.set_notes("x").toggle_segment_flag(0, "duplicate").set_issue_verdict("V4-0001", "confirmed"), ()),
        (lambda d: d.set_segment_type(1, OTHER), ("Pages 4–5: Clinical Note → Other", "The whole file: Genomic Report → Other")),
        (
            lambda d: d.set_segment_type(1, None),
            ("Pages 4–5: Clinical Note → no type",),
        ),
        (lambda d: d.toggle_boundary(2), ("A new document starts on page 2",)),
        (lambda d: d.toggle_boundary(2).set_segment_type(0, NOTE), ("A new document starts on page 2", "Page 1: Genomic Report → Clinical Note", "The whole file: Genomic Report → Clinical Note")),
        (lambda d: d.toggle_boundary(6), ("Pages 5 and 6 belong to one document", "Pages 6–8: Other → Clinical Note", "The whole file: Genomic Report → Clinical Note")),
        (lambda d: d.move_segment_start(1, 3), ("A new document starts on page 3", "Pages 3 and 4 belong to one document", "Page 3: Genomic Report → Clinical Note", "The whole file: Genomic Report → Clinical Note")),
        (lambda d: d.set_dominant_type(OTHER), ("The whole file: Genomic Report → Other",)),
        (lambda d: d.set_mixture({OTHER: 0.705, NOTE: 0.295, GENOMIC: 0.0}), ("Shares of the file: Other 70.5 %, Clinical Note 29.5 %",)),
    ],
)  # fmt: skip
def test_each_difference_is_one_sentence(case: ReviewCase, change: Any, expected: tuple[str, ...]) -> None:
    assert case.describe_changes(change(case.draft)) == expected


def test_fitted_ranges_are_a_change_and_stay_the_programs(build: Any) -> None:
    case = made(build, [(1, 5, GENOMIC), (5, 8, NOTE)], {"Genomic Report": 1.0}, "Genomic Report")
    refitted = "The program's page ranges, which did not fit the file, as drawn"
    assert (case.has_expert_changes(case.draft), case.describe_changes(case.draft)) == (True, (refitted,))
    assert case.describe_changes(case.draft.toggle_boundary(3)) == (refitted, "A new document starts on page 3")


@given(st.data())
def test_there_is_a_sentence_exactly_where_something_is_changed(case: ReviewCase, data: st.DataObject) -> None:
    draft = case.draft
    for _ in range(data.draw(st.integers(0, 4))):
        position = data.draw(st.integers(0, len(draft.segments) - 1))
        page = data.draw(st.integers(1, 8))
        move = data.draw(
            st.sampled_from(["with_type", "toggle_boundary", "move_segment_start", "move_segment_end", "with_flag"])
        )
        if move == "with_type":
            draft = draft.set_segment_type(position, data.draw(st.sampled_from([None, GENOMIC, NOTE, OTHER])))
        elif move == "with_flag":
            draft = draft.toggle_segment_flag(position, "out_of_order")
        else:
            draft = draft.toggle_boundary(page) if move == "toggle_boundary" else getattr(draft, move)(position, page)
    assert bool(case.describe_changes(draft)) is case.has_expert_changes(draft)
    assert len(set(case.describe_changes(draft))) == len(case.describe_changes(draft))


# --- why not submit -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda d: d, "nothing was changed"),
        (lambda d: d.toggle_segment_flag(0, "duplicate").set_issue_note("V4-0001", "words"), "nothing was changed"),
        (lambda d: d.set_notes("words"), "nothing was changed"),
        (lambda d: d.set_segment_type(1, None), "pages 4–5 have no type yet"),
        (lambda d: d.toggle_boundary(2).set_segment_type(0, None), "page 1 has no type yet"),
        (
            lambda d: d.toggle_boundary(2).set_segment_type(0, None).set_segment_type(3, None),
            "pages 1 and 6–8 have no type yet",
        ),
        (lambda d: d.set_mixture({OTHER: 1.0}), None),
        (lambda d: d.set_segment_type(1, OTHER), None),
    ],
)
def test_why_a_draft_cannot_be_submitted_is_said_before_it_is(
    case: ReviewCase, change: Any, expected: str | None
) -> None:
    draft = change(case.draft)
    assert case.explain_submission_block(draft) == expected
    if expected:
        with pytest.raises(ReviewRefused, match=expected):
            case.build_submission(draft, validate=False, undeterminable_reason=None)
    else:
        assert case.build_submission(draft, validate=False, undeterminable_reason=None).corrections[0].is_change


# --- what flags and notes become ------------------------------------------------------------------------------------


def test_flags_and_notes_of_segments_are_rows_of_the_review(build: Any, workspace: Any, open_tab: Any) -> None:
    answer = build.answer(
        [build.segment(1, 1, 2, "Other"), build.segment(2, 3, 4, "Clinical Note")],
        {"Other": 0.5, "Clinical Note": 0.5},
        "Clinical Note",
    )
    workspace.publish(answer, bundle=build.bundle([["a"]] * 4))
    lee = open_tab("dr_lee")
    draft = lee.open_and_claim_case("doc2_6").draft.show_page_and_mark_seen(1).show_page_and_mark_seen(3)
    draft = (
        draft.toggle_segment_flag(1, "other_patient")
        .toggle_segment_flag(1, "duplicate")
        .set_segment_note(1, "born 1950")
    )
    draft = draft.set_segment_note(0, "a cover sheet")
    review = lee.submit_review("doc2_6", draft, validate=True).review
    first = {"segment_index": 1, "start_page": 1, "end_page": 2}
    second = {"segment_index": 2, "start_page": 3, "end_page": 4}
    assert review.segment_flags == (
        {**first, "note": "a cover sheet"},
        {**second, "flag": "other_patient"},
        {**second, "flag": "duplicate"},
        {**second, "note": "born 1950"},
    )
    assert review.shown.agent is True
    assert workspace.files.read_json("reviews/doc2_6/0001.json")["segment_flags"] == list(review.segment_flags)


@pytest.mark.parametrize("is_broken", [True, False])
@pytest.mark.parametrize("says", ["undeterminable", "type", "segments"])
def test_flags_never_stand_in_the_way_of_a_review(
    build: Any, workspace: Any, open_tab: Any, says: str, is_broken: bool
) -> None:
    answer = build.answer(
        [build.segment(1, 1, 3 if is_broken else 2, "Other"), build.segment(2, 3, 4, "Other")], {"Other": 1.0}, "Other"
    )
    workspace.publish(answer, [build.issue()], build.bundle([["a"]] * 4))
    lee = open_tab("dr_lee")
    draft = lee.open_and_claim_case("doc2_6").draft
    if says == "segments":
        draft = draft.toggle_boundary(2).set_segment_type(0, NOTE).set_segment_type(1, OTHER)
    elif says == "type":
        draft = draft.set_dominant_type(OTHER if is_broken else NOTE).set_notes("see page 1")
    if is_broken:
        draft = draft.decide_boundary(3, begins=True)
    draft = draft.toggle_segment_flag(0, "duplicate")
    review = lee.submit_review(
        "doc2_6", draft, undeterminable_reason="illegible" if says == "undeterminable" else None
    ).review
    one = draft.segments[0]
    assert review.segment_flags == (
        {"segment_index": 1, "start_page": 1, "end_page": one.end_page, "flag": "duplicate"},
    )


def test_issue_notes_go_to_its_verdict_or_to_the_notes(case: ReviewCase) -> None:
    draft = case.draft.set_segment_type(0, OTHER).set_issue_verdict("V4-0001", "dismissed")
    draft = draft.set_issue_note("V4-0001", "it is there")
    draft = draft.set_issue_note("V3-0001", "a real report").set_notes("see page 2")
    said = case.build_submission(draft, validate=False, undeterminable_reason=None)
    assert [(one.issue_id, one.verdict, one.note) for one in said.issue_verdicts] == [
        ("V4-0001", "dismissed", "it is there")
    ]
    assert said.correction_notes == "see page 2\nV3-0001: a real report"
    again = draft.set_issue_verdict("V4-0001", None)
    assert case.build_submission(again, validate=False, undeterminable_reason=None).correction_notes == (
        "see page 2\nV3-0001: a real report\nV4-0001: it is there"
    )
    assert (
        case.build_submission(
            case.draft.set_segment_type(0, OTHER), validate=False, undeterminable_reason=None
        ).issue_verdicts
        == ()
    )


def test_open_doubts_are_counted_once_validation_is_possible(build: Any) -> None:
    answer, bundle = build.single("Genomic Report", 3), build.bundle([["a"]] * 3)
    doubts = [
        build.issue("V3-0001", document_type="Genomic Report"),
        *(build.issue(f"V4-000{number}", code="V4-QUOTE-ABSENT", quote="BRCA2") for number in (1, 2)),
        build.issue("V2-0001", "MINOR"),
    ]
    packet = build.packet(build.result(answer, doubts), bundle)
    case = ClassificationReviewCase(packet, bundle, 0, Draft.from_packet(packet), None, is_completed=False, reviews=())
    assert case.describe_open_doubts(case.draft) == ""  # nothing was seen, so that nothing can be validated
    seen = case.draft
    for doubt in packet.open_issues:
        seen = case.mark_target_and_page_seen(seen, doubt.issue_id, 1)
    assert case.describe_open_doubts(seen) == "3 grave doubts not answered yet"
    said = seen.set_issue_verdict("V3-0001", "dismissed").set_issue_verdict("V4-0001", "dismissed")
    assert case.describe_open_doubts(said) == "1 grave doubt not answered yet"
    assert case.describe_open_doubts(said.set_issue_verdict("V4-0002", "confirmed")) == ""
    assert case.describe_open_doubts(seen.set_segment_type(0, OTHER)) == ""  # changed: nothing to validate


def test_an_answer_that_changes_nothing_else_is_in_the_record(build: Any) -> None:
    doubts = [
        build.issue("V3-0001", code="V3-CONTEXT", page=2),
        build.issue("reader-0001", code="READER-PAGE-DAMAGED", facts={"pages": "1", "losses": "a font is missing"}),
        build.issue("V3-0002", document_type="Genomic Report"),
    ]
    bundle = build.bundle([["a"]] * 3)
    packet = build.packet(build.result(build.single("Genomic Report", 3), doubts), bundle)
    case = ClassificationReviewCase(packet, bundle, 0, Draft.from_packet(packet), None, is_completed=False, reviews=())
    said = case.draft
    for doubt in doubts:
        said = said.set_issue_verdict(doubt.issue_id, "confirmed")
    lines = [line.text for line in case.describe_record(said) if line.text.startswith("Your answer")]
    questions = {issue.issue_id: describe_issue(issue) for issue in doubts}
    assert sorted(lines) == sorted(
        [
            f"Your answer to “{questions['V3-0001']}”: There is a problem",
            f"Your answer to “{questions['reader-0001']}”: Something important is lost",
        ]
    )
    kept = said.set_issue_verdict("reader-0001", "dismissed").set_issue_verdict("V3-0001", None)
    assert not [line for line in case.describe_record(kept) if line.text.startswith("Your answer")]


# --- flags from Python ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"segment_index": 2, "flag": "duplicate"}, "segment_flags.0: the review has no segment with this number"),
        ({"segment_index": 0, "flag": "duplicate"}, "no segment with this number"),
        ({"segment_index": 1, "start_page": 1, "end_page": 3, "flag": "duplicate"}, "no segment with this number"),
        ({"segment_index": 1, "start_page": 2, "flag": "duplicate"}, "no segment with this number"),
        ({"flag": "duplicate"}, "segment_index: Field required"),
        ({"segment_index": 1, "flag": "interesting"}, "flag: Input should be 'other_patient', 'duplicate'"),
        ({"segment_index": 1, "flag": {"duplicate"}}, "flag: Input should be"),
        ({"segment_index": 1, "note": b"\xff"}, "note: Input should be a valid string"),
        ({"segment_index": 1, "note": "\ud800"}, "Unicode|unicode|JSON"),
        ({"segment_index": 1, "note": " "}, "a flag or a note is required"),
        ({"segment_index": 1}, "a flag or a note is required"),
        ({"segment_index": 1, "flag": "duplicate", "page": 1}, "page: Extra inputs"),
        ("duplicate", "segment_flags.0"),
        (None, "segment_flags.0"),
    ],
)
def test_a_bad_flag_is_refused_and_nothing_is_written(build: Any, workspace: Any, row: Any, message: str) -> None:
    workspace.publish(build.single("Other", 2), bundle=build.bundle([["a"]] * 2))
    with pytest.raises(ReviewRefused, match=message):
        workspace.helper().save_review("doc2_6", agrees=True, segment_flags=[row])
    assert not (workspace.root / "reviews").exists()


def test_a_flag_from_python_is_completed_with_its_pages(build: Any, workspace: Any) -> None:
    workspace.publish(build.single("Other", 2), bundle=build.bundle([["a"]] * 2))
    row = {"segment_index": 2, "flag": "duplicate", "note": "of page 1"}
    review = workspace.helper().save_review(
        "doc2_6", corrected_segments=[(2, 2, "Other"), (1, 1, "Clinical Note")], segment_flags=[row]
    )
    assert review.segment_flags == ({**row, "start_page": 2, "end_page": 2},)


def test_where_nothing_is_left_a_flag_names_its_pages(build: Any, workspace: Any) -> None:
    workspace.publish(build.single("Other", 2), bundle=build.bundle([["a"]] * 2))
    row = {"segment_index": 3, "start_page": 2, "end_page": 2, "flag": "duplicate"}
    for bad in ({"segment_index": 1, "flag": "duplicate"}, {**row, "end_page": 3}, {**row, "start_page": 0}):
        with pytest.raises(ReviewRefused, match="no segment with this number"):
            workspace.helper().save_review("doc2_6", undeterminable="illegible", segment_flags=[bad])
    review = workspace.helper().save_review("doc2_6", undeterminable="illegible", segment_flags=[row])
    assert review.segment_flags == (row,)


# --- page ranges that do not fit ----------------------------------------------------------------------------------


@pytest.fixture
def broken(build: Any) -> ClassificationReviewCase:
    """Pages 4 and 5 are of two documents, page 8 of none."""
    segments = [build.segment(1, 1, 5, NOTE), build.segment(2, 4, 7, OTHER), build.segment(3, 9, 9, GENOMIC)]
    bundle = build.bundle([["a"]] * 9)
    issues = [
        build.issue("V2-0001", code="V2-PAGE-OVERLAP", page=4),
        build.issue("V2-0002", code="V2-PAGE-GAP", page=8),
        build.issue("V2-0003", "MAJOR", code="V2-BOUNDARY-DOUBT", page=3, facts={"doubt": "new"}),
    ]
    answer = build.answer(segments, {NOTE: 0.4, OTHER: 0.4, GENOMIC: 0.2}, NOTE)
    packet = build.packet(build.result(answer, issues), bundle)
    return ClassificationReviewCase(packet, bundle, 0, Draft.from_packet(packet), None, is_completed=False, reviews=())


def test_seams_and_doubts_are_listed_by_page(broken: ClassificationReviewCase) -> None:
    assert [(one.page, one.issue_id, one.is_disputed) for one in broken.boundary_doubts] == [
        (3, "V2-0003", False),
        (4, "V2-0001", True),
        (8, "V2-0002", True),
    ]
    with pytest.raises(NotFound):
        broken.answer_boundary(broken.draft, 5, begins=True)


def test_undecided_seams_are_decided_before_submitting(broken: ClassificationReviewCase) -> None:
    half_decided = broken.answer_boundary(broken.draft, 4, begins=True)
    for draft, pages in ((broken.draft, "pages 4 and 8"), (half_decided, "page 8")):
        assert pages in (broken.explain_validation_block(draft) or "")
        assert pages in (broken.explain_submission_block(draft) or "")
        with pytest.raises(ReviewRefused, match=pages):
            broken.build_submission(draft, validate=False, undeterminable_reason=None)
    draft = broken.answer_boundary(half_decided, 8, begins=False)
    assert [(one.start_page, one.end_page) for one in draft.segments] == [(1, 3), (4, 8), (9, 9)]
    assert {(one.issue_id, one.verdict) for one in draft.issue_verdicts} == {
        ("V2-0001", "confirmed"),
        ("V2-0002", "confirmed"),
    }
    assert (draft.evidence_seen, broken.explain_submission_block(draft)) == (("V2-0001", "V2-0002"), None)
    correction = broken.build_submission(draft, validate=False, undeterminable_reason=None).get_correction(
        ClassificationCorrection
    )
    assert [one.end_page for one in correction.segments or ()] == [3, 8, 9]


def test_it_goes_on_gives_the_disputed_pages_to_the_document_before(broken: ClassificationReviewCase) -> None:
    draft = broken.answer_boundary(broken.draft, 4, begins=False)
    assert [(one.start_page, one.dominant_type) for one in draft.segments] == [(1, NOTE), (6, OTHER), (9, GENOMIC)]
    again = broken.answer_boundary(draft, 4, begins=True)
    assert again.segments == broken.draft.segments


@pytest.mark.parametrize(("begins", "verdict"), [(True, "confirmed"), (False, "dismissed")])
def test_a_doubt_is_confirmed_if_the_boundary_changes(
    broken: ClassificationReviewCase, begins: bool, verdict: str
) -> None:
    draft = broken.answer_boundary(broken.draft, 3, begins=begins)
    assert [(one.issue_id, one.verdict) for one in draft.issue_verdicts] == [("V2-0003", verdict)]
    assert (3 in [one.start_page for one in draft.segments]) is begins


def test_a_decided_boundary_is_taken_back_with_its_type(broken: ClassificationReviewCase) -> None:
    draft = broken.answer_boundary(broken.draft, 8, begins=False)
    for page in (3, 4, 8):
        for begins in (True, False, True, None):
            draft = broken.answer_boundary(draft, page, begins=begins)
    assert draft.segments == broken.draft.segments
    assert (draft.boundaries_decided, draft.issue_verdicts) == ((), ())
