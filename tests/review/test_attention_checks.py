"""Seeded cases: like any other until they are answered, told afterwards, and never a word about the document."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from places import open_folder
from review.conftest import Build, Clock, Workspace
from review.seeding import NOTE, PATHOLOGY, decide_document, draw_seeded_case, escalate_document, other_files
from typer.testing import CliRunner

from evalkit.classification.schema import DocumentType
from evalkit.cli import app
from evalkit.errors import EvalkitError, ReviewRefused, StoreError, UsageError
from evalkit.evaluation.attention_checks import plant_and_queue_attention_checks
from evalkit.evaluation.export import export_ground_truth
from evalkit.evaluation.ground_truth_table import read_folder_ground_truth
from evalkit.evaluation.study import read_study
from evalkit.pipeline.document_discovery import discover_documents
from evalkit.review import Draft
from evalkit.review import ReviewSession as Tab
from evalkit.review.attention_checks import (
    describe_fault,
    get_attention_check_file_name,
    iterate_check_case_and_doc_ids,
)
from evalkit.review.index_rebuild import reindex
from evalkit.review.opinions import CaseOpinions, project_ground_truth, rebuild_case_files_and_list_index_rows
from evalkit.review.page_view import view
from evalkit.review.queue import QueueQuery
from evalkit.review.roster import ReviewerRoster
from evalkit.review.submitter import ReviewSubmitter
from evalkit.store import ground_truth_file_name, packet_file_name


@pytest.fixture
def seeded(workspace: Workspace, build: type[Build]) -> Any:
    decide_document(workspace, build)
    return draw_seeded_case(workspace)


def otherwise(draft: Draft) -> Draft:
    """The file is said to be of another type than it is shown as."""
    return draft.set_dominant_type(next(kind for kind in DocumentType if kind is not draft.dominant_type))


# ------------------------------------------------------------------------------------ before it is answered


def test_nothing_on_the_screen_tells_it_from_another_case(
    workspace: Workspace, build: type[Build], open_tab: Any
) -> None:
    decide_document(workspace, build)
    escalate_document(workspace, build, "plain")
    seeded = draw_seeded_case(workspace)
    case_id = seeded.packet.case_id
    rows = {row.case_id: row for row in open_tab("dr_second").load_queue_page(QueueQuery(show_finished=True)).rows}
    assert set(rows) == {case_id, "plain"}, "the finished case of its document would tell, and give the answer away"
    fields = {name for name in vars(rows["plain"]) if getattr(rows["plain"], name) != getattr(rows[case_id], name)}
    assert fields <= {"case_id", "doc_id", "dominant_type"}
    assert rows[case_id].doc_id == case_id
    case, plain = open_tab("dr_second").open_and_claim_case(case_id), open_tab("dr_second").open_and_claim_case("plain")
    assert re.fullmatch(r"doc2_6-[0-9a-f]{8}", case_id), "what a second document of that name is called"
    said = {
        "feedback",
        "second_opinion_reason",
        "reviews",
        "opinions",
        "deferral",
        "is_completed",
        "is_blind",
        "revision",
    }
    assert all(getattr(case, name) == getattr(plain, name) for name in said)
    shown, ordinary = case.packet.model_dump(), plain.packet.model_dump()
    assert {name for name in shown if shown[name] != ordinary.get(name)} <= {
        *("case_id", "doc_id", "document_bundle_path", "classification", "production_differs", "review_plan"),
    }
    assert case.packet.asked_parts == (), "asked only about other parts, nobody could notice the fault"


def test_looking_it_up_by_name_tells_what_the_screen_tells(
    workspace: Workspace, build: type[Build], seeded: Any
) -> None:
    escalate_document(workspace, build, "plain")
    case_id, packet = seeded.packet.case_id, seeded.packet
    said = {
        name: CliRunner().invoke(app, ["show", name, "--output", str(workspace.root)]).output
        for name in ("plain", case_id)
    }
    assert said[case_id].splitlines()[0] == said["plain"].splitlines()[0].replace("plain", case_id)
    assert all(
        f"{one.start_page}–{one.end_page}: {one.dominant_type}" in said[case_id]
        for one in packet.classification.segments
    )
    assert [line for line in said[case_id].splitlines() if "Message" in line] == [
        line for line in said["plain"].splitlines() if "Message" in line
    ]


def test_why_is_told_of_it_as_of_any_other(workspace: Workspace, seeded: Any) -> None:
    for option in ([], ["--json"]):
        told = CliRunner().invoke(
            app, ["show", seeded.packet.case_id, "--why", "--output", str(workspace.root), *option]
        )
        assert told.exit_code == 0, told.output


def test_missing_pages_give_the_error_of_an_ordinary_case(
    workspace: Workspace, build: type[Build], seeded: Any
) -> None:
    escalate_document(workspace, build, "plain")
    codes = []
    for name in ("plain", seeded.packet.case_id):
        with pytest.raises(EvalkitError) as refused:  # the PDF of neither is there
            view(name, output=workspace.root)
        codes.append(refused.value.code)
    assert codes[0] == codes[1] != "STORE-NOT-FOUND"


def test_its_answer_cannot_be_read_elsewhere_before_it_is_given(
    workspace: Workspace, seeded: Any, open_tab: Any
) -> None:
    with pytest.raises(ReviewRefused) as refused:
        open_tab("dr_second").open_and_claim_case("doc2_6")
    assert refused.value.code == "REVIEW-AWAITED"
    assert workspace.helper("dr_second").reviews("doc2_6") == []
    assert open_tab("dr_first").open_and_claim_case("doc2_6").is_completed, "whoever decided it knows it anyway"
    workspace.helper("dr_second").save_review(seeded.packet.case_id, agrees=True)
    assert open_tab("dr_second").open_and_claim_case("doc2_6").is_completed


def test_nobody_gets_it_who_decided_the_document(workspace: Workspace, seeded: Any, open_tab: Any) -> None:
    case_id = seeded.packet.case_id
    assert open_tab("dr_first").choose_next_case_id() is None
    assert [row.is_barred for row in open_tab("dr_first").load_queue_page().rows] == [True]
    assert open_tab("dr_second").choose_next_case_id() == case_id
    with pytest.raises(ReviewRefused, match="needs another expert"):
        open_tab("dr_first").open_and_claim_case(case_id)
    with pytest.raises(ReviewRefused, match="needs another expert"):
        workspace.helper("dr_first").save_review(case_id, agrees=True)
    assert not workspace.files.has_file(f"reviews/{case_id}/0001.json")


def test_later_reviewer_of_the_document_does_not_get_the_case(
    workspace: Workspace, build: type[Build], open_tab: Any
) -> None:
    decide_document(workspace, build)
    workspace.helper("dr_first").reopen("doc2_6", "once more")
    workspace.helper("dr_third").save_review("doc2_6", agrees=True)
    draw_seeded_case(workspace)
    assert open_tab("dr_third").choose_next_case_id() is None
    assert open_tab("dr_first").choose_next_case_id() is None, "an answer that was undone is known all the same"


def test_where_everybody_knows_the_documents_it_is_said(workspace: Workspace, build: type[Build]) -> None:
    decide_document(workspace, build)
    ReviewerRoster(workspace.files).add_reviewer_or_replace_code("dr_first")
    with pytest.raises(UsageError) as refused:
        draw_seeded_case(workspace)
    assert refused.value.code == "SAMPLE-NOBODY"
    assert "evalkit reviewers add" in refused.value.remedy
    ReviewerRoster(workspace.files).add_reviewer_or_replace_code("dr_second")
    case_id = draw_seeded_case(workspace).packet.case_id
    (workspace.root / "reviewers.json").unlink()
    ReviewerRoster(workspace.files).add_reviewer_or_replace_code("dr_first")  # dr_second has left
    assert [one.status for one in read_study(workspace.root).attention_checks] == ["nobody"]
    decide_document(workspace, build, "another", reviewer="dr_third")
    made = plant_and_queue_attention_checks(
        open_folder(workspace.root), 5, seed="one", drawn_at="2025-02-03T00:00:00.000Z"
    )
    assert made.unassignable_case_ids == (case_id,)
    assert [one.doc_id for one in made.cases] == ["another"], "a document serves once"


# ------------------------------------------------------------------------------------------- the answer


def test_the_expert_is_told_at_once_and_the_answer_stands(workspace: Workspace, seeded: Any, open_tab: Any) -> None:
    case_id, mine = seeded.packet.case_id, open_tab("dr_second")
    case = mine.open_and_claim_case(case_id)
    seen = case.draft
    for page in range(1, 5):
        seen = seen.show_page_and_mark_seen(page)
    for issue in case.packet.open_issues:
        seen = seen.show_issue_and_mark_seen(issue.issue_id)
    done = mine.submit_review(case_id, seen, validate=True)
    assert describe_fault(seeded.fault) in done.feedback
    assert "did not correct it" in done.feedback
    assert done.review.seeded
    assert not mine.can_undo
    assert mine.open_and_claim_case(case_id).feedback == done.feedback
    for again in (
        lambda: workspace.helper("dr_second").reopen(case_id, "now I know"),
        lambda: workspace.helper("dr_third").save_review(case_id, agrees=True),
    ):
        with pytest.raises(ReviewRefused) as refused:
            again()
        assert refused.value.code == "REVIEW-SEEDED"


def test_who_corrects_it_is_thanked(workspace: Workspace, seeded: Any, open_tab: Any) -> None:
    mine = open_tab("dr_second")
    case = mine.open_and_claim_case(seeded.packet.case_id)
    draft = case.draft
    for start in (one.start_page for one in draft.segments[1:]):
        draft = draft.toggle_boundary(start)
    draft = (
        draft.toggle_boundary(4).set_segment_type(0, DocumentType(PATHOLOGY)).set_segment_type(1, DocumentType(NOTE))
    )
    assert "You noticed it" in mine.submit_review(seeded.packet.case_id, draft).feedback


def test_a_colleague_is_never_asked_about_it(workspace: Workspace, seeded: Any, open_tab: Any) -> None:
    case_id, mine = seeded.packet.case_id, open_tab("dr_second")
    draft = otherwise(mine.open_and_claim_case(case_id).draft)
    done = mine.submit_and_request_second_opinion(case_id, draft, "please look at it")
    assert done.feedback
    assert [row.case_id for row in open_tab("dr_third").load_queue_page().rows] == []


def test_whoever_was_told_the_answer_gives_no_second_opinion(workspace: Workspace, seeded: Any, open_tab: Any) -> None:
    workspace.helper("dr_second").save_review(seeded.packet.case_id, agrees=True)
    workspace.helper("dr_first").reopen("doc2_6", "I doubt it")
    first = open_tab("dr_first")
    first.submit_and_request_second_opinion(
        "doc2_6", otherwise(first.open_and_claim_case("doc2_6").draft), "is it one?"
    )
    assert (open_tab("dr_second").choose_next_case_id(), open_tab("dr_third").choose_next_case_id()) == (
        None,
        "doc2_6.second",
    )


def test_no_price_is_learned_from_a_planted_fault(workspace: Workspace, seeded: Any, open_tab: Any) -> None:
    mine = open_tab("dr_second")
    before = [row["case_id"] for row in workspace.index.list_closings()]
    mine.submit_review(seeded.packet.case_id, otherwise(mine.open_and_claim_case(seeded.packet.case_id).draft))
    assert [row["case_id"] for row in workspace.index.list_closings()] == before


def test_fault_is_revealed_even_if_the_record_is_damaged(workspace: Workspace, seeded: Any, open_tab: Any) -> None:
    mine = open_tab("dr_second")
    draft = otherwise(mine.open_and_claim_case(seeded.packet.case_id).draft)
    (workspace.root / get_attention_check_file_name(seeded.packet.case_id)).write_text("torn")
    assert "had a planted fault" in mine.submit_review(seeded.packet.case_id, draft).feedback
    assert len(read_study(workspace.root).problems) == 1


# ---------------------------------------------------------------------------- nothing of it becomes true

_TYPES = st.sampled_from([kind.value for kind in DocumentType])
_ONE = st.fixed_dictionaries({"agrees": st.just(True)}, optional={"vouched": st.just(["dominant_type", "segments"])})
_TYPE = st.fixed_dictionaries({"corrected_dominant_type": _TYPES})
_CUT = st.tuples(st.integers(1, 3), _TYPES, _TYPES).map(
    lambda cut: {"corrected_segments": [(1, cut[0], cut[1]), (cut[0] + 1, 4, cut[2])]}
)
_WHOLE = _TYPES.map(lambda kind: {"corrected_segments": [(1, 4, kind)]})
_CANNOT = st.just({"undeterminable": "illegible"})
_SAID = st.one_of(_ONE, _TYPE, _CUT, _WHOLE, _CANNOT)


def _known(root: Path) -> tuple[Any, ...]:
    study = read_study(root)
    rows = root.parent / "rows.jsonl"
    export_ground_truth(root, rows, silver=True)
    return study.documents, study.problems, rows.read_bytes()


@settings(max_examples=12, deadline=None)
@given(said=_SAID, seed=st.integers(0, 9).map(str), second=st.booleans(), heals=st.booleans())
def test_whatever_is_submitted_nothing_of_the_document_changes(
    said: dict[str, Any], seed: str, second: bool, heals: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        desk = Workspace(Path(folder) / "output")
        decide_document(desk, Build)
        before = _known(desk.root)
        seeded = draw_seeded_case(desk, seed)
        case_id = seeded.packet.case_id
        files = other_files(desk.root, case_id)
        if second:
            mine = Tab(desk.files, "dr_second", "tab", clock=Clock())
            mine.submit_and_request_second_opinion(
                case_id, otherwise(mine.open_and_claim_case(case_id).draft), "whatever"
            )
            mine.close()
        else:
            desk.helper("dr_second").save_review(case_id, **said)
        if heals:
            reindex(open_folder(desk.root))
        assert other_files(desk.root, case_id) == files
        assert not desk.files.has_file(f"ground_truth/gt_{case_id}.json")
        assert _known(desk.root) == before
        (review,) = CaseOpinions.read(desk.files, case_id).numbered_reviews_by_case_id[case_id]
        assert review[1].seeded
        desk.index.close()


def test_no_loss_of_files_makes_a_planted_answer_true(workspace: Workspace, seeded: Any) -> None:
    case_id = seeded.packet.case_id
    workspace.helper("dr_second").save_review(case_id, agrees=True)
    (workspace.root / get_attention_check_file_name(case_id)).unlink()
    rebuild_case_files_and_list_index_rows(workspace.files, case_id)
    assert workspace.truth(case_id) is None
    # Packet and review each forbid it alone.
    ((number, review),) = CaseOpinions.read(workspace.files, case_id).numbered_reviews_by_case_id[case_id]
    unmarked = review.model_copy(update={"seeded": False})
    ordinary = seeded.packet.model_copy(update={"document_bundle_path": f"document_bundles/{case_id}.json"})
    assert project_ground_truth(ordinary, [(number, unmarked)]) is not None
    assert project_ground_truth(ordinary, [(number, review)]) is None
    assert project_ground_truth(seeded.packet, [(number, unmarked)]) is None


@pytest.mark.parametrize("where", [("document_bundle_path",), ("doc_id",), ("case_id",)])
def test_damaged_seeded_case_never_becomes_ordinary(workspace: Workspace, seeded: Any, where: Any) -> None:
    case_id = seeded.packet.case_id
    stored = seeded.model_dump(mode="json")
    changed = {"document_bundle_path": f"document_bundles/{case_id}.json", "doc_id": "doc2_6", "case_id": "doc2_6"}
    stored["packet"] |= {name: changed[name] for name in where}
    workspace.files.write_json(get_attention_check_file_name(case_id), stored)
    workspace.files.remove_file(packet_file_name(case_id))
    with pytest.raises(StoreError, match=case_id):
        reindex(open_folder(workspace.root))
    assert not workspace.files.has_file(packet_file_name(case_id))


def test_seeded_case_named_like_another_case_is_refused(workspace: Workspace, build: type[Build], seeded: Any) -> None:
    escalate_document(workspace, build, "plain-12345678")
    workspace.files.write_json(
        get_attention_check_file_name("plain-12345678"),
        seeded.model_copy(update={"truth_sha256": "0"}).model_dump(mode="json"),
    )
    with pytest.raises(StoreError, match="plain-12345678"):
        reindex(open_folder(workspace.root))
    assert workspace.files.has_file(packet_file_name("plain-12345678"))


def test_a_marked_review_is_kept_apart_wherever_it_lies(workspace: Workspace, seeded: Any) -> None:
    before = _known(workspace.root), read_folder_ground_truth(workspace.root)
    workspace.helper("dr_second").save_review(seeded.packet.case_id, agrees=True)
    stray = workspace.root / "reviews/doc2_6.second/0001.json"
    stray.parent.mkdir(mode=0o700)
    stray.write_bytes((workspace.root / f"reviews/{seeded.packet.case_id}/0001.json").read_bytes())
    assert (_known(workspace.root), read_folder_ground_truth(workspace.root)) == before


def test_no_document_is_ever_called_like_a_seeded_case(workspace: Workspace, seeded: Any, tmp_path: Path) -> None:
    path = tmp_path / f"{seeded.packet.case_id}.pdf"
    path.write_bytes(b"%PDF-1.4")
    reserved = [case_id for case_id, _ in iterate_check_case_and_doc_ids(workspace.files)]
    (source,) = discover_documents([path], {}, reserved).sources
    assert source.doc_id != seeded.packet.case_id


# --------------------------------------------------------------------------------------- crashes and changes


def test_a_draw_that_was_broken_off_is_finished_by_reindex(workspace: Workspace, seeded: Any, open_tab: Any) -> None:
    case_id = seeded.packet.case_id
    stored = (workspace.root / f"sme_packets/sme_packet_{case_id}.json").read_bytes()
    (workspace.root / f"sme_packets/sme_packet_{case_id}.json").unlink()
    for _ in range(2):
        reindex(open_folder(workspace.root))
        assert (workspace.root / f"sme_packets/sme_packet_{case_id}.json").read_bytes() == stored
    assert open_tab("dr_second").choose_next_case_id() == case_id
    assert open_tab("dr_first").choose_next_case_id() is None, "the rebuilt index knows who must not do it"


def test_where_the_truth_changes_a_waiting_case_is_taken_back(workspace: Workspace, seeded: Any, open_tab: Any) -> None:
    workspace.helper("dr_first").reopen("doc2_6", "it was wrong")
    assert [row.case_id for row in open_tab("dr_second").load_queue_page().rows] == ["doc2_6"]
    workspace.helper("dr_first").save_review("doc2_6", corrected_segments=[(1, 4, NOTE)])
    reindex(open_folder(workspace.root))
    assert [row.case_id for row in open_tab("dr_second").load_queue_page().rows] == []
    assert [one.status for one in read_study(workspace.root).attention_checks] == ["void"]


def test_new_truth_voids_only_answers_on_the_planted_part(workspace: Workspace, seeded: Any, open_tab: Any) -> None:
    workspace.helper("dr_second").save_review(seeded.packet.case_id, agrees=True)
    name = ground_truth_file_name("doc2_6")
    stored = workspace.files.read_json(name)
    workspace.files.write_json(name, stored | {"correction_notes": "a word more", "revision": stored["revision"] + 1})
    assert [one.status for one in read_study(workspace.root).attention_checks] == ["answered"]
    truth = stored["ground_truth_classification"]
    pages = sum(one["segment_page_count"] for one in truth["segments"])
    others = {kind.value for kind in DocumentType} - {one["dominant_type"] for one in truth["segments"]}
    whole = truth["segments"][0] | {"end_page": pages, "segment_page_count": pages, "dominant_type": min(others)}
    joined = truth | {"segments": [whole], "number_of_segments": 1, "dominant_type_overall": min(others)}
    for changed in (
        {"ground_truth_classification": joined},
        {"vouched": ["dominant_type"]},
        {"ground_truth_classification": "torn"},
    ):
        workspace.files.write_json(name, stored | changed)
        assert [one.status for one in read_study(workspace.root).attention_checks] == ["void"]


def test_started_case_stays_open_but_is_void(workspace: Workspace, seeded: Any, open_tab: Any, clock: Clock) -> None:
    case_id, mine = seeded.packet.case_id, open_tab("dr_second")
    draft = otherwise(mine.open_and_claim_case(case_id).draft)
    ReviewSubmitter(workspace.files, workspace.index, "dr_first", clock).reopen_case(
        "doc2_6", "it was wrong", base_revision=None
    )
    assert mine.submit_review(case_id, draft).feedback
    assert [one.status for one in read_study(workspace.root).attention_checks] == ["void"]


def test_what_cannot_be_drawn_is_said(workspace: Workspace, build: type[Build]) -> None:
    decide_document(workspace, build, undeterminable="illegible")
    for number, code in ((0, "SAMPLE-NUMBER"), (1, "SAMPLE-NOTHING-LEFT")):
        with pytest.raises(EvalkitError) as refused:
            plant_and_queue_attention_checks(
                open_folder(workspace.root), number, seed="one", drawn_at="2025-02-02T00:00:00.000Z"
            )
        assert refused.value.code == code


def test_equal_draws_are_equal(workspace: Workspace, build: type[Build], tmp_path: Path) -> None:
    other = Workspace(tmp_path / "other")
    for one in (workspace, other):
        decide_document(one, build)
    assert draw_seeded_case(workspace) == draw_seeded_case(other)
    assert {drawn_kind(tmp_path / seed, build, seed) for seed in "abcdefghij"} == {"type", "boundary", "joined"}


def drawn_kind(root: Path, build: type[Build], seed: str) -> str:
    desk = Workspace(root)
    decide_document(desk, build)
    kind: str = draw_seeded_case(desk, seed).fault.kind
    desk.index.close()
    return kind
