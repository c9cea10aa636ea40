"""Drafts: whatever is pressed, every page belongs to exactly one document."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from evalkit.classification.schema import DocumentType
from evalkit.review import Draft, ExpertQuote, SegmentDraft
from evalkit.review.gapless_segments import fit_segments_to_file, is_gapless

NOTE, PATHOLOGY, GENOMIC, RADIOLOGY, OTHER = DocumentType
KINDS = st.none() | st.sampled_from(list(DocumentType))


def drawn(*segments: tuple[int, int, DocumentType | None], dominant: DocumentType | None = None) -> Draft:
    return Draft(
        segments=tuple(SegmentDraft(start_page=a, end_page=b, dominant_type=kind) for a, b, kind in segments),
        dominant_type=dominant,
    )


def shape(draft: Draft) -> list[tuple[int, int, DocumentType | None]]:
    return [(one.start_page, one.end_page, one.dominant_type) for one in draft.segments]


THREE = drawn((1, 3, GENOMIC), (4, 5, NOTE), (6, 8, OTHER), dominant=GENOMIC)


# --- the first draft ----------------------------------------------------------------------------------------------


def test_the_first_draft_is_what_the_agent_says(build: Any) -> None:
    answer = build.answer([build.segment(2, 3, 4, "Other"), build.segment(1, 1, 2, None)], {"Other": 1.0}, "Other")
    draft = Draft.from_packet(build.packet(build.result(answer), build.bundle([["a"]] * 4)))
    assert shape(draft) == [(1, 2, None), (3, 4, OTHER)]
    assert (draft.dominant_type, draft.mixture, draft.notes, draft.pages_seen) == (OTHER, None, "", ())


def packet_of(build: Any, ranges: list[tuple[int, int, Any]], total: int) -> Any:
    segments = [build.segment(at, a, b, kind) for at, (a, b, kind) in enumerate(ranges, 1)]
    return build.packet(build.result(build.answer(segments, {"Other": 1.0}, "Other")), build.bundle([["a"]] * total))


@pytest.mark.parametrize(
    ("ranges", "expected"),
    [
        ([(1, 2, NOTE)], [(1, 4, NOTE)]),  # a gap at the end
        ([(1, 3, NOTE), (3, 4, OTHER)], [(1, 2, NOTE), (3, 4, OTHER)]),  # an overlap
        ([(1, 1, NOTE), (3, 4, OTHER)], [(1, 2, NOTE), (3, 4, OTHER)]),  # a gap between
        ([(2, 4, NOTE)], [(1, 1, None), (2, 4, NOTE)]),  # a gap before
        ([(1, 5, NOTE)], [(1, 4, NOTE)]),
        ([(-3, 2, NOTE), (3, 4, OTHER), (5, 9, NOTE)], [(1, 2, NOTE), (3, 4, OTHER)]),
        ([(2, 1, NOTE), (3, 4, OTHER)], [(1, 2, NOTE), (3, 4, OTHER)]),  # turned round
        ([(1, 4, NOTE), (2, 2, OTHER)], [(1, 1, NOTE), (2, 2, OTHER), (3, 4, NOTE)]),  # one within another
        ([(1, 2, NOTE), (1, 2, NOTE), (3, 4, OTHER)], [(1, 2, NOTE), (3, 4, OTHER)]),  # listed twice
        ([(1, 2, NOTE), (1, 2, OTHER), (3, 4, OTHER)], [(1, 2, None), (3, 4, OTHER)]),  # with two types
        ([(5, 9, NOTE)], [(1, 4, None)]),
        ([], [(1, 4, None)]),
    ],
)
def test_ranges_that_do_not_fit_are_fitted_to_the_file(build: Any, ranges: Any, expected: Any) -> None:
    assert shape(Draft.from_packet(packet_of(build, ranges, 4))) == expected


def test_one_overlap_keeps_the_eleven_other_documents(build: Any) -> None:
    kinds = [NOTE, PATHOLOGY, GENOMIC, RADIOLOGY] * 3
    ranges = [(3 * at + 1, 3 * at + 3, kind) for at, kind in enumerate(kinds)]
    broken = [*ranges[:5], (15, 18, kinds[5]), *ranges[6:]]  # page 15 is of two documents
    fitted = shape(Draft.from_packet(packet_of(build, broken, 36)))
    assert fitted == [*ranges[:4], (13, 14, kinds[4]), (15, 18, kinds[5]), *ranges[6:]]


_ANY_RANGES = st.lists(st.tuples(st.integers(-3, 15), st.integers(-3, 15), KINDS), max_size=8)


@given(_ANY_RANGES, st.integers(1, 12))
def test_any_ranges_give_a_gapless_draft(build: Any, ranges: Any, total: int) -> None:
    segments = tuple(build.segment(at, a, b, kind) for at, (a, b, kind) in enumerate(ranges, 1))
    fitted, seams = fit_segments_to_file(segments, total)
    assert bool(fitted) == any(max(a, b) >= 1 and min(a, b) <= total for a, b, _ in ranges)
    if fitted:
        assert is_gapless(fitted, total)
    assert [*seams] == sorted(set(seams))
    assert all(2 <= seam.page <= seam.next_start <= total for seam in seams)
    claims = {page: {(a, b) for a, b, _ in ranges if min(a, b) <= page <= max(a, b)} for page in range(1, total + 1)}
    starts = {one.start_page for one in fitted}
    for page in range(2, total + 1):  # where nothing is in doubt, the boundary is the program's
        if len(claims[page]) == len(claims[page - 1]) == 1 and all(a <= b for a, b, _ in ranges):
            assert (page in starts) == (claims[page] != claims[page - 1])
            assert page not in {seam.page for seam in seams}


@given(st.integers(1, 12).flatmap(lambda total: st.tuples(st.just(total), st.sets(st.integers(1, total)))))
def test_a_gapless_answer_stays_as_it_is(build: Any, drawn: Any) -> None:
    total, cuts = drawn
    starts = sorted({1, *cuts})
    ranges = [(a, b - 1, OTHER) for a, b in zip(starts, [*starts[1:], total + 1], strict=True)]
    segments = [build.segment(at, a, b, kind) for at, (a, b, kind) in enumerate(ranges, 1)]
    fitted, seams = fit_segments_to_file(reversed(segments), total)
    assert ([(one.start_page, one.end_page, one.dominant_type) for one in fitted], seams) == (ranges, ())


@pytest.mark.parametrize(
    ("decide", "expected"),
    [
        (lambda d: d.decide_boundary(4, begins=True), shape_of_three := [(1, 3, GENOMIC), (4, 5, NOTE), (6, 8, OTHER)]),
        (lambda d: d.decide_boundary(4, begins=False), [(1, 5, GENOMIC), (6, 8, OTHER)]),
        (lambda d: d.decide_boundary(4, begins=False, next_start=5), [(1, 4, GENOMIC), (5, 5, NOTE), (6, 8, OTHER)]),
        (lambda d: d.decide_boundary(4, begins=False, next_start=6), [(1, 5, GENOMIC), (6, 8, OTHER)]),
        (lambda d: d.decide_boundary(2, begins=True), [(1, 1, GENOMIC), (2, 3, GENOMIC), *shape_of_three[1:]]),
        (lambda d: d.decide_boundary(2, begins=False), shape_of_three),
    ],
)
def test_a_boundary_is_decided_and_remembered(decide: Any, expected: Any) -> None:
    draft = decide(THREE)
    assert shape(draft) == expected
    assert {2, 4} & {*draft.boundaries_decided}


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (4, 8, [(1, 3, GENOMIC), (4, 5, RADIOLOGY), (6, 8, RADIOLOGY)]),  # whole documents
        (4, 5, [(1, 3, GENOMIC), (4, 5, RADIOLOGY), (6, 8, OTHER)]),
        (2, 6, [(1, 1, GENOMIC), (2, 6, RADIOLOGY), (7, 8, OTHER)]),  # a document of its own
        (7, 7, [(1, 3, GENOMIC), (4, 5, NOTE), (6, 6, OTHER), (7, 7, RADIOLOGY), (8, 8, OTHER)]),
        (3, 1, [(1, 3, RADIOLOGY), (4, 5, NOTE), (6, 8, OTHER)]),
    ],
)
def test_pages_get_a_type_as_documents_or_as_one(first: int, last: int, expected: Any) -> None:
    assert shape(THREE.set_type_of_pages(first, last, RADIOLOGY)) == expected


def test_without_an_answer_nothing_is_chosen(build: Any) -> None:
    draft = Draft.from_packet(build.packet(build.result(None, [build.issue()]), build.bundle([["a"]] * 3)))
    assert (shape(draft), draft.dominant_type) == ([(1, 3, None)], None)


@pytest.mark.parametrize(
    "segments",
    [[], [(2, 3, None)], [(1, 2, None), (4, 5, None)], [(1, 2, None), (2, 3, None)], [(1, 0, None)]],
)
def test_a_draft_with_gap_or_overlap_cannot_be_made(segments: Any) -> None:
    with pytest.raises(ValidationError):
        drawn(*segments)


# --- moves -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("move", "expected"),
    [
        # a new document starts here, or does not any more
        (lambda d: d.toggle_boundary(2), [(1, 1, GENOMIC), (2, 3, GENOMIC), (4, 5, NOTE), (6, 8, OTHER)]),
        (lambda d: d.toggle_boundary(8), [(1, 3, GENOMIC), (4, 5, NOTE), (6, 7, OTHER), (8, 8, OTHER)]),
        (lambda d: d.toggle_boundary(4), [(1, 5, GENOMIC), (6, 8, OTHER)]),
        (lambda d: d.toggle_boundary(1), shape(THREE)),
        # it starts here
        (lambda d: d.move_segment_start(1, 3), [(1, 2, GENOMIC), (3, 5, NOTE), (6, 8, OTHER)]),
        (lambda d: d.move_segment_start(1, 5), [(1, 4, GENOMIC), (5, 5, NOTE), (6, 8, OTHER)]),
        (lambda d: d.move_segment_start(1, 7), [(1, 4, GENOMIC), (5, 5, NOTE), (6, 8, OTHER)]),
        (lambda d: d.move_segment_start(1, 4), shape(THREE)),
        (lambda d: d.move_segment_start(1, 1), [(1, 5, NOTE), (6, 8, OTHER)]),
        (lambda d: d.move_segment_start(2, 2), [(1, 1, GENOMIC), (2, 8, OTHER)]),
        (lambda d: d.move_segment_start(0, 2), [(1, 1, GENOMIC), (2, 3, GENOMIC), (4, 5, NOTE), (6, 8, OTHER)]),
        # it ends here
        (lambda d: d.move_segment_end(0, 4), [(1, 4, GENOMIC), (5, 5, NOTE), (6, 8, OTHER)]),
        (lambda d: d.move_segment_end(0, 2), [(1, 2, GENOMIC), (3, 5, NOTE), (6, 8, OTHER)]),
        (lambda d: d.move_segment_end(0, 3), shape(THREE)),
        (lambda d: d.move_segment_end(0, 5), [(1, 5, GENOMIC), (6, 8, OTHER)]),
        (lambda d: d.move_segment_end(0, 6), [(1, 6, GENOMIC), (7, 8, OTHER)]),
        (lambda d: d.move_segment_end(0, 8), [(1, 8, GENOMIC)]),
        (lambda d: d.move_segment_end(1, 2), [(1, 3, GENOMIC), (4, 4, NOTE), (5, 8, OTHER)]),
        (lambda d: d.move_segment_end(2, 6), [(1, 3, GENOMIC), (4, 5, NOTE), (6, 6, OTHER), (7, 8, OTHER)]),
        # it is of that type
        (lambda d: d.set_segment_type(1, PATHOLOGY), [(1, 3, GENOMIC), (4, 5, PATHOLOGY), (6, 8, OTHER)]),
        (lambda d: d.set_segment_type(1, None), [(1, 3, GENOMIC), (4, 5, None), (6, 8, OTHER)]),
    ],
)
def test_each_move_draws_what_it_says(move: Any, expected: Any) -> None:
    assert shape(move(THREE)) == expected
    assert shape(THREE) == [(1, 3, GENOMIC), (4, 5, NOTE), (6, 8, OTHER)]


@given(st.data())
def test_any_moves_leave_every_page_in_exactly_one_document(data: st.DataObject) -> None:
    total = data.draw(st.integers(1, 12))
    draft = drawn((1, total, data.draw(KINDS)))
    for _ in range(data.draw(st.integers(1, 15))):
        move = data.draw(st.sampled_from(["with_type", "toggle_boundary", "move_segment_start", "move_segment_end"]))
        page = data.draw(st.integers(1, total))
        position = data.draw(st.integers(0, len(draft.segments) - 1))
        before = draft.segments[position]
        if move == "with_type":
            draft = draft.set_segment_type(position, data.draw(KINDS))
        elif move == "toggle_boundary":
            draft = draft.toggle_boundary(page)
        else:
            draft = getattr(draft, move)(position, page)
            edge = min(page, before.end_page) if move == "move_segment_start" else max(page, before.start_page)
            moved = next(
                one
                for one in draft.segments
                if edge == (one.start_page if move == "move_segment_start" else one.end_page)
            )
            assert moved.dominant_type == before.dominant_type
        covered = [page for one in draft.segments for page in range(one.start_page, one.end_page + 1)]
        assert covered == list(range(1, total + 1))
        assert Draft.model_validate_json(draft.model_dump_json()) == draft


@given(st.integers(2, 12), st.integers(2, 12))
def test_splitting_twice_is_nothing(total: int, page: int) -> None:
    draft = drawn((1, max(total, page), OTHER), dominant=OTHER)
    assert shape(draft.toggle_boundary(page).toggle_boundary(page)) == shape(draft)


@pytest.mark.parametrize("page", [0, -1, 9])
def test_a_page_that_is_not_there_is_refused(page: int) -> None:
    for move in (
        THREE.toggle_boundary,
        THREE.show_page_and_mark_seen,
        lambda p: THREE.move_segment_start(1, p),
        lambda p: THREE.move_segment_end(1, p),
    ):
        with pytest.raises(ValueError, match="no page"):
            move(page)


@pytest.mark.parametrize("position", [3, -1])
def test_a_document_that_is_not_there_is_refused(position: int) -> None:
    for move in (THREE.move_segment_start, THREE.move_segment_end):
        with pytest.raises(IndexError):
            move(position, 1)
    with pytest.raises(IndexError):
        THREE.set_segment_type(position, OTHER)


# --- flags and notes ------------------------------------------------------------------------------------------------


def flags(draft: Draft) -> list[tuple[int, str]]:
    return [(one.start_page, one.flag) for one in draft.flags]


NOTED = (
    THREE.toggle_segment_flag(0, "duplicate")
    .toggle_segment_flag(1, "other_patient")
    .toggle_segment_flag(2, "out_of_order")
)
NOTED = NOTED.set_segment_note(0, "one").set_segment_note(1, "two").set_segment_note(2, "three")


def test_a_flag_is_put_up_and_taken_down() -> None:
    draft = (
        THREE.toggle_segment_flag(2, "duplicate")
        .toggle_segment_flag(1, "out_of_order")
        .toggle_segment_flag(1, "other_patient")
    )
    assert flags(draft) == [(4, "other_patient"), (4, "out_of_order"), (6, "duplicate")]
    assert flags(draft.toggle_segment_flag(1, "out_of_order")) == [(4, "other_patient"), (6, "duplicate")]
    assert draft.segments == THREE.segments
    assert not draft.is_redrawn
    with pytest.raises(ValidationError):
        THREE.toggle_segment_flag(0, "interesting")  # type: ignore[arg-type]


def test_notes_on_segments_and_issues_can_be_replaced() -> None:
    draft = THREE.set_segment_note(1, "page 5 is cut").set_issue_note("V4-0001", "it is there")
    draft = draft.set_segment_note(1, "page 5 is cut off").set_issue_note("V3-0001", "a real report")
    assert draft.segment_notes == {4: "page 5 is cut off"}
    assert draft.issue_notes == {"V4-0001": "it is there", "V3-0001": "a real report"}
    assert draft.set_segment_note(1, " \n").segment_notes == {}
    assert draft.set_issue_note("V4-0001", "").issue_notes == {"V3-0001": "a real report"}
    assert draft.issue_verdicts == ()


@pytest.mark.parametrize(
    ("pages", "segments", "flagged"),
    [
        ((2, 2), [(1, 1, GENOMIC), (2, 2, GENOMIC), (3, 3, GENOMIC), (4, 5, NOTE), (6, 8, OTHER)], [2]),
        ((3, 6), [(1, 2, GENOMIC), (3, 3, GENOMIC), (4, 5, NOTE), (6, 6, OTHER), (7, 8, OTHER)], [3, 4, 6]),
        ((6, 8), shape(THREE), [6]),
    ],
)
def test_separated_pages_are_flagged_documents(pages: tuple[int, int], segments: list[Any], flagged: list[int]) -> None:
    draft = THREE.split_off_flagged_pages(*pages, "other_patient")
    assert shape(draft) == segments
    assert flags(draft) == [(page, "other_patient") for page in flagged]
    assert draft.split_off_flagged_pages(*pages, "other_patient") == draft
    with pytest.raises(ValueError, match="no page 9"):
        THREE.split_off_flagged_pages(8, 9, "other_patient")


@pytest.mark.parametrize(
    ("move", "expected"),
    [
        # a flag and a note go where the first page of their segment goes
        (lambda d: d.move_segment_start(1, 3), {1: "one", 3: "two", 6: "three"}),
        (lambda d: d.move_segment_start(1, 5), {1: "one", 5: "two", 6: "three"}),
        (lambda d: d.move_segment_start(0, 2), {2: "one", 4: "two", 6: "three"}),
        (lambda d: d.move_segment_end(0, 4), {1: "one", 5: "two", 6: "three"}),
        (lambda d: d.move_segment_end(0, 2), {1: "one", 3: "two", 6: "three"}),
        (lambda d: d.move_segment_end(2, 6), {1: "one", 4: "two", 6: "three"}),
        # and are gone with it
        (lambda d: d.move_segment_start(1, 1), {1: "two", 6: "three"}),
        (lambda d: d.move_segment_start(2, 2), {1: "one", 2: "three"}),
        (lambda d: d.move_segment_end(0, 5), {1: "one", 6: "three"}),
        (lambda d: d.move_segment_end(0, 6), {1: "one", 7: "three"}),
        (lambda d: d.move_segment_end(0, 8), {1: "one"}),
        (lambda d: d.toggle_boundary(4), {1: "one", 6: "three"}),
        # a document that is new has none
        (lambda d: d.toggle_boundary(2), {1: "one", 4: "two", 6: "three"}),
        (lambda d: d.toggle_boundary(4).toggle_boundary(4), {1: "one", 6: "three"}),
        (lambda d: d.set_segment_type(1, RADIOLOGY), {1: "one", 4: "two", 6: "three"}),
    ],
)
def test_flags_and_notes_stay_with_their_segment(move: Any, expected: dict[int, str]) -> None:
    flag = {"one": "duplicate", "two": "other_patient", "three": "out_of_order"}
    moved = move(NOTED)
    assert moved.segment_notes == expected
    assert flags(moved) == [(page, flag[text]) for page, text in expected.items()]


def owners_after(owners: list[int], move: str, position: int, page: int) -> list[int]:
    """The same move, told by which segment each page (from 0) belongs to; a new segment gets a new number."""
    numbers = list(dict.fromkeys(owners))
    me, fresh, total, owners = numbers[position], max(owners) + 1, len(owners), list(owners)
    start, end = owners.index(me), total - 1 - owners[::-1].index(me)
    at = page - 1
    if move == "toggle_boundary":
        its = owners[at]
        is_first = at == 0 or owners[at - 1] != its
        for one in range(at, total):
            if owners[one] == its and at > 0:
                owners[one] = owners[at - 1] if is_first else fresh
    elif move == "move_segment_start":
        first = min(at, end)
        for one in range(min(first, start), end + 1):
            left = owners[start - 1] if start > 0 else fresh
            owners[one] = me if one >= first else left
    else:
        last = max(at, start)
        right = owners[end + 1] if end + 1 < total else fresh
        for one in range(start, max(last, end) + 1):
            owners[one] = me if one <= last else right
    return owners


@given(st.data())
def test_flags_and_notes_follow_their_segments(data: st.DataObject) -> None:
    total = data.draw(st.integers(1, 10))
    draft, owners = drawn((1, total, None)), [0] * total
    noted: dict[int, str] = {}
    for turn in range(data.draw(st.integers(1, 20))):
        move = data.draw(
            st.sampled_from(["note", "with_type", "toggle_boundary", "move_segment_start", "move_segment_end"])
        )
        position = data.draw(st.integers(0, len(draft.segments) - 1))
        page = data.draw(st.integers(1, total))
        if move == "note":
            draft = draft.set_segment_note(position, f"note {turn}")
            if all(one.start_page != draft.segments[position].start_page for one in draft.flags):
                draft = draft.toggle_segment_flag(position, "duplicate")
            noted[list(dict.fromkeys(owners))[position]] = f"note {turn}"
        elif move == "with_type":
            draft = draft.set_segment_type(position, data.draw(KINDS))
        else:
            draft = draft.toggle_boundary(page) if move == "toggle_boundary" else getattr(draft, move)(position, page)
            owners = owners_after(owners, move, position, page)
        noted = {one: text for one, text in noted.items() if one in owners}  # a number may be given again
        expected = {owners.index(one) + 1: text for one, text in noted.items()}
        assert draft.segment_notes == expected
        assert flags(draft) == [(start, "duplicate") for start in sorted(expected)]
        assert [one.start_page for one in draft.segments] == [owners.index(one) + 1 for one in dict.fromkeys(owners)]
        assert Draft.model_validate_json(draft.model_dump_json()) == draft


@pytest.mark.parametrize("fields", [{"flags": [{"start_page": 2, "flag": "duplicate"}]}, {"segment_notes": {5: "x"}}])
def test_a_remark_on_a_segment_that_is_not_there_cannot_be_made(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="first page"):
        Draft.model_validate(THREE.model_dump() | fields)


@pytest.mark.parametrize("position", [3, -1])
def test_a_segment_that_is_not_there_takes_no_remark(position: int) -> None:
    with pytest.raises(IndexError):
        THREE.toggle_segment_flag(position, "duplicate")
    with pytest.raises(IndexError):
        THREE.set_segment_note(position, "words")


def test_a_draft_that_was_stored_before_there_were_flags_is_read() -> None:
    stored = """{"segments": [{"start_page": 1, "end_page": 2, "dominant_type": "Other"}], "dominant_type": "Other",
        "is_type_chosen": false, "is_redrawn": true, "mixture": null, "mixture_seen": false, "notes": "a CBC",
        "issue_verdicts": [{"issue_id": "V4-0001", "verdict": "confirmed", "note": ""}], "page": 2,
        "issue_id": null, "pages_seen": [1, 2], "evidence_seen": [], "seconds_active": 3.5}"""
    draft = Draft.model_validate_json(stored)
    assert (draft.flags, draft.segment_notes, draft.issue_notes, draft.notes) == ((), {}, {}, "a CBC")


# --- the type of the whole file ------------------------------------------------------------------------------------


def test_the_files_type_follows_from_the_pages() -> None:
    assert THREE.set_segment_type(2, NOTE).dominant_type is NOTE  # 5 of 8 pages
    assert THREE.set_segment_type(1, OTHER).dominant_type is OTHER
    assert THREE.set_segment_type(0, None).dominant_type is OTHER
    assert drawn((1, 2, OTHER)).set_segment_type(0, None).dominant_type is None


def test_page_tie_prefers_a_report_and_then_the_first() -> None:
    assert drawn((1, 2, None), (3, 4, PATHOLOGY)).set_segment_type(0, OTHER).dominant_type is PATHOLOGY
    assert drawn((1, 2, None), (3, 4, PATHOLOGY)).set_segment_type(0, RADIOLOGY).dominant_type is RADIOLOGY


def test_what_the_expert_chose_stays_until_it_is_taken_back() -> None:
    chosen = THREE.set_dominant_type(RADIOLOGY)
    assert chosen.set_segment_type(2, NOTE).toggle_boundary(2).dominant_type is RADIOLOGY
    assert chosen.set_segment_type(2, NOTE).set_dominant_type(None).dominant_type is NOTE
    assert chosen.set_dominant_type(None).set_segment_type(1, OTHER).dominant_type is OTHER


# --- what was seen and said ------------------------------------------------------------------------------------------


def test_what_was_seen_is_kept_once() -> None:
    draft = (
        THREE.show_page_and_mark_seen(6)
        .show_page_and_mark_seen(1)
        .show_page_and_mark_seen(6)
        .show_issue_and_mark_seen("V4-0001")
        .show_issue_and_mark_seen("V3-0001")
    )
    draft = draft.show_issue_and_mark_seen("V4-0001").mark_mixture_seen()
    assert (draft.pages_seen, draft.page) == ((1, 6), 6)
    assert (draft.evidence_seen, draft.issue_id) == (("V4-0001", "V3-0001"), "V4-0001")
    assert draft.mixture_seen
    assert not THREE.mixture_seen


def test_a_verdict_replaces_and_is_taken_back() -> None:
    draft = THREE.set_issue_verdict("V4-0001", "confirmed", "absent").set_issue_verdict("V3-0001", "dismissed", "")
    assert [one.issue_id for one in draft.issue_verdicts] == ["V3-0001", "V4-0001"]
    (kept,) = (
        draft.set_issue_verdict("V3-0001", None, "")
        .set_issue_verdict("V4-0001", "dismissed", "it is there")
        .issue_verdicts
    )
    assert (kept.verdict, kept.note) == ("dismissed", "it is there")
    with pytest.raises(ValidationError):
        THREE.set_issue_verdict("V4-0001", "perhaps", "")  # type: ignore[arg-type]


def test_notes_and_shares_are_the_experts_words() -> None:
    draft = THREE.set_notes("routine CBC").set_mixture({OTHER: 0.7, NOTE: 0.3})
    assert (draft.notes, draft.mixture) == ("routine CBC", {OTHER: 0.7, NOTE: 0.3})
    assert draft.set_mixture(None).mixture is None
    with pytest.raises(ValidationError):
        THREE.set_mixture({OTHER: float("nan")})


# --- a packet that was made anew ----------------------------------------------------------------------------------


def test_on_a_new_packet_only_what_the_expert_decided_stays(build: Any) -> None:
    bundle = build.bundle([["a"]] * 8)
    packet = build.packet(build.result(build.single("Pathology Report", 8)), bundle)
    seen = (
        THREE.show_page_and_mark_seen(4)
        .show_issue_and_mark_seen("V3-0001")
        .set_issue_verdict("V3-0001", "confirmed", "")
        .set_notes("CBC")
    )
    moved = seen.rebase_onto(Draft.from_packet(packet))
    assert (shape(moved), moved.dominant_type) == ([(1, 8, PATHOLOGY)], PATHOLOGY)
    assert (moved.notes, moved.page) == ("CBC", 4)
    assert (moved.pages_seen, moved.evidence_seen, moved.issue_verdicts, moved.issue_id) == ((), (), (), None)
    assert shape(seen.set_segment_type(1, OTHER).rebase_onto(Draft.from_packet(packet))) == shape(
        THREE.set_segment_type(1, OTHER)
    )
    assert seen.set_dominant_type(OTHER).rebase_onto(Draft.from_packet(packet)).dominant_type is OTHER
    shorter = build.packet(build.result(build.single("Other", 2)), build.bundle([["a"]] * 2))
    assert (
        shape(seen.toggle_boundary(2).rebase_onto(Draft.from_packet(shorter))),
        seen.rebase_onto(Draft.from_packet(shorter)).notes,
    ) == (
        [(1, 2, OTHER)],
        "CBC",
    )


def test_rebase_keeps_notes_on_matching_segments(build: Any) -> None:
    bundle = build.bundle([["a"]] * 8)
    other = Draft.from_packet(build.packet(build.result(build.single("Pathology Report", 8)), bundle))
    draft = NOTED.set_notes("in all").set_issue_note("V4-0001", "it is there")
    moved = draft.rebase_onto(other)
    assert (moved.flags, moved.segment_notes, moved.issue_notes) == ((), {}, {})
    assert moved.notes == "in all\nit is there\none\ntwo\nthree"
    redrawn = draft.set_segment_type(0, OTHER)
    for kept in (draft.rebase_onto(THREE), redrawn.rebase_onto(other)):
        assert (kept.flags, kept.segment_notes, kept.issue_notes) == (draft.flags, draft.segment_notes, {})
        assert kept.notes == "in all\nit is there"
    shorter = redrawn.rebase_onto(Draft.create_blank(2))
    assert (shape(shorter), shorter.flags, shorter.notes) == ([(1, 2, None)], (), moved.notes)


# --- quotes by hand -----------------------------------------------------------------------------------------------


def quoted(page: int = 2, **fields: Any) -> ExpertQuote:
    return ExpertQuote(page=page, **({"snippet": "EGFR p.L858R", "document_type": GENOMIC} | fields))


def test_a_quote_is_added_once_and_can_be_removed() -> None:
    draft = THREE.add_quote(quoted()).add_quote(quoted(5)).add_quote(quoted())
    assert [quote.page for quote in draft.evidence] == [2, 5]
    assert draft.remove_quote(0).evidence == (quoted(5),)
    for position in (-1, 2):
        with pytest.raises(IndexError):
            draft.remove_quote(position)


def test_a_quote_follows_the_type_of_its_document() -> None:
    draft = THREE.add_quote(quoted()).add_quote(quoted(1, document_type=NOTE)).add_quote(quoted(7, document_type=None))
    changed = draft.set_segment_type(0, PATHOLOGY).set_segment_type(2, RADIOLOGY)
    assert [quote.document_type for quote in changed.evidence] == [PATHOLOGY, NOTE, None]


def test_a_quote_survives_a_new_run_of_the_document() -> None:
    draft = THREE.add_quote(quoted())
    assert draft.rebase_onto(THREE).evidence == draft.evidence
    shorter = draft.rebase_onto(Draft.create_blank(1))
    assert (shorter.evidence, shorter.notes) == ((), "page 2: “EGFR p.L858R”")


@pytest.mark.parametrize(
    "fields",
    [
        {"page": 0},
        {"snippet": " ", "boxes": ()},
        {"snippet": "x" * 5000},
        {"boxes": [(1, 0.1, 0.1, 0.2, 0.2)]},
        {"boxes": [(2, 0.1, 0.1, 1.2, 0.2)]},
        {"boxes": [(2, float("nan"), 0.1, 0.3, 0.2)]},
    ],
)
def test_a_quote_without_a_place_on_its_page_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        quoted(**fields)


def test_a_quote_on_a_page_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="no page 9"):
        THREE.add_quote(quoted(9))


def test_a_blank_draft_says_nothing() -> None:
    draft = Draft.create_blank(3)
    assert (shape(draft), draft.dominant_type, draft.is_redrawn) == ([(1, 3, None)], None, False)
    assert draft.set_segment_type(0, OTHER).dominant_type is OTHER


# --- a colleague's answer --------------------------------------------------------------------------------------------


def test_an_adopted_answer_brings_its_verdicts_and_quotes() -> None:
    theirs = drawn((1, 8, NOTE), dominant=NOTE).add_quote(ExpertQuote(page=2, snippet="their words"))
    theirs = theirs.set_issue_verdict("V4-0001", "confirmed")
    adopted = THREE.adopt_answer(theirs)
    assert (shape(adopted), adopted.evidence) == ([(1, 8, NOTE)], theirs.evidence)
    assert [(one.issue_id, one.verdict) for one in adopted.issue_verdicts] == [("V4-0001", "confirmed")]


def test_an_adopted_answer_loses_no_note_and_stays_readable() -> None:
    own = THREE.set_segment_note(0, "of the first").set_segment_note(1, "of the second").set_notes("of all")
    adopted = own.adopt_answer(drawn((1, 8, NOTE), dominant=NOTE))
    assert (adopted.segment_notes, adopted.notes) == ({1: "of the first"}, "of all\nof the second")
    assert Draft.model_validate_json(adopted.model_dump_json()) == adopted
