"""Answers to questions on the screen: what follows at once, and how it is taken back."""

import gc
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from places import open_folder, open_index

from evalkit.classification.schema import DocumentType
from evalkit.issue import Issue, IssueSeverity
from evalkit.review import publish_packet_unless_frozen
from evalkit.review.case_files import read_packet
from evalkit.review.draft import Draft
from evalkit.review.plain_sentences import get_issue_answers
from widgets.kinds.classification import ClassificationController
from widgets.workbench import Workbench


def send(screen: Workbench, action: str, **fields: object) -> None:
    screen.dispatch_message({"action": action, "token": screen.page_pane.version, **fields})


def look_at_everything(screen: Workbench) -> None:
    for issue in screen.case.packet.issues:
        send(screen, "select", issue_id=issue.issue_id)
        send(screen, "painted", page=screen.page_pane.page, issue=issue.issue_id)
    for page in range(1, screen.page_pane.total + 1):
        send(screen, "painted", page=page, issue=None)


def lines(screen: Workbench, kind: str) -> list[str]:
    return [line["text"] for line in screen.segment_editor.record if line["kind"] == kind]


def test_confirmed_fabricated_quote_is_not_in_the_truth(screen: Workbench, tmp_path: Path) -> None:
    screen.dispatch_message({"action": "open", "case_id": "fabricated_quote"})
    look_at_everything(screen)
    issue = next(issue for issue in screen.case.packet.issues if get_issue_answers(issue).effect == "strike_quote")
    send(screen, "verdict", issue_id=issue.issue_id, verdict="confirmed")
    assert any(line.startswith("Struck") for line in lines(screen, "quote"))
    assert screen.segment_editor.why_not == "", "a struck quote alone is still a validation"
    send(screen, "validate")
    truth = (tmp_path / "output/ground_truth/gt_fabricated_quote.json").read_text()
    assert json.loads(truth)["ground_truth_source"] == "SME_VALIDATED"
    assert issue.quote not in truth


def test_doubted_quotes_are_counted_not_scored(screen: Workbench) -> None:
    screen.dispatch_message({"action": "open", "case_id": "altered_quotes"})
    doubted = {issue.quote for issue in screen.case.packet.open_issues if issue.agent == "V4"}
    line = screen.panels["classification"].case["subline"]
    assert len(doubted) == 2
    assert " · 2 of " in line
    assert line.endswith(" quotes doubted")
    screen.dispatch_message({"action": "queue"})
    screen.dispatch_message({"action": "open", "case_id": "adjoining_notes"})
    assert screen.panels["classification"].case["subline"].endswith(" · no quote doubted")


def test_what_is_left_open_is_counted_beside_validate(screen: Workbench) -> None:
    screen.dispatch_message({"action": "open", "case_id": "fabricated_quote"})
    assert screen.segment_editor.open_doubts == ""
    look_at_everything(screen)
    assert screen.segment_editor.open_doubts == "1 grave doubt not answered yet"
    issue = next(issue for issue in screen.case.packet.issues if get_issue_answers(issue).effect == "strike_quote")
    send(screen, "verdict", issue_id=issue.issue_id, verdict="confirmed")
    assert screen.segment_editor.open_doubts == ""


def test_withdrawn_answer_strikes_nothing(screen: Workbench) -> None:
    screen.dispatch_message({"action": "open", "case_id": "fabricated_quote"})
    issue_id = screen.panels["classification"].selected
    before = screen.segment_editor.record
    send(screen, "verdict", issue_id=issue_id, verdict="confirmed")
    assert screen.segment_editor.record != before
    send(screen, "verdict", issue_id=issue_id, verdict=None)
    assert screen.segment_editor.record == before
    send(screen, "verdict", issue_id=issue_id, verdict="confirmed")
    send(screen, "undo")
    assert screen.segment_editor.record == before


def test_answer_opens_the_next_question_that_counts(screen: Workbench) -> None:
    screen.dispatch_message({"action": "open", "case_id": "altered_quotes"})
    panel = screen.panels["classification"]
    first = panel.selected
    send(screen, "verdict", issue_id=first, verdict="confirmed")
    assert panel.selected not in ("", first)
    second = panel.selected
    send(screen, "verdict", issue_id=second, verdict="dismissed")
    assert panel.selected == second, "nothing else is asked"


def test_type_key_answers_the_question_about_the_type(screen: Workbench) -> None:
    screen.dispatch_message({"action": "open", "case_id": "quest_genomic"})
    send(screen, "select", issue_id="V3-0001")
    send(screen, "type", page=1, type="Other")
    assert screen.panels["classification"].verdicts["V3-0001"] == {"verdict": "confirmed"}
    send(screen, "verdict", issue_id="V3-0001", verdict=None)
    assert screen.page_pane.segments[0]["type"] == "Genomic Report"
    send(screen, "type", page=1, type="Genomic Report")
    assert screen.panels["classification"].verdicts["V3-0001"] == {"verdict": "dismissed"}


def test_contradiction_is_asked_once_then_submitted(screen: Workbench, tmp_path: Path) -> None:
    screen.dispatch_message({"action": "open", "case_id": "quest_genomic"})
    look_at_everything(screen)
    send(screen, "verdict", issue_id="V3-0001", verdict="confirmed")
    send(screen, "validate")
    assert screen.segment_editor.question.endswith("?")
    assert not (tmp_path / "output/reviews/quest_genomic").exists()
    send(screen, "validate", anyway=True)
    assert (tmp_path / "output/reviews/quest_genomic/0001.json").exists()


@pytest.mark.parametrize("ends_with", ["queue", "split"])
def test_words_of_a_submitted_draft_end_with_its_undo(screen: Workbench, ends_with: str) -> None:
    screen.dispatch_message({"action": "open", "case_id": "quest_genomic"})
    send(screen, "notes", text="Zorblatt wrote it")
    send(screen, "type", page=1, segment=0, type="Other")
    send(screen, "correct")
    assert screen.review_session.can_undo
    assert screen.case.packet.case_id != "quest_genomic"
    send(screen, ends_with, page=2)
    gc.collect()
    drafts = [held for held in gc.get_objects() if isinstance(held, Draft)]
    assert not [draft for draft in drafts if "Zorblatt" in draft.notes]
    assert not screen.review_session.can_undo


def test_every_issue_of_every_case_can_be_opened(screen: Workbench) -> None:
    panel = screen.panels["classification"]
    for row in list(screen.queue_panel.rows):
        if row["kind"] != "classification":
            continue
        screen.dispatch_message({"action": "open", "case_id": row["case_id"]})
        for issue in screen.case.packet.issues if not screen.case.is_blind else ():
            send(screen, "select", issue_id=issue.issue_id)
            assert (panel.selected, panel.context["issue_id"]) == (issue.issue_id, issue.issue_id)
            assert screen.segment_editor.problem == ""
        screen.dispatch_message({"action": "queue"})


@pytest.fixture
def doubt(screen: Workbench) -> Workbench:
    """A case of which a boundary is in doubt."""
    for row in screen.queue_panel.rows:
        screen.dispatch_message({"action": "open", "case_id": row["case_id"]})
        if any(issue.code == "V2-BOUNDARY-DOUBT" for issue in screen.case.packet.issues):
            return screen
        screen.dispatch_message({"action": "queue"})
    pytest.skip("the demo has no doubt about a boundary")


def test_boundary_answer_acts_and_is_taken_back(doubt: Workbench) -> None:
    before = doubt.page_pane.segments
    issue = next(issue for issue in doubt.case.packet.issues if issue.code == "V2-BOUNDARY-DOUBT")
    begins = get_issue_answers(issue).effect == "begin_document"
    send(doubt, "verdict", issue_id=issue.issue_id, verdict="confirmed")
    assert any(segment["start"] == issue.page for segment in doubt.page_pane.segments) is begins
    send(doubt, "verdict", issue_id=issue.issue_id, verdict=None)
    assert doubt.page_pane.segments == before


@pytest.fixture(params=[("V2-PAGE-OVERLAP", 2, 3), ("V2-PAGE-GAP", 2, 1)])
def broken(screen: Workbench, tmp_path: Path, request: pytest.FixtureRequest) -> Workbench:
    """A case of three pages or more, of which the first document ends one page too late or too early."""
    code, page, end = request.param
    folder = open_folder(tmp_path / "output")
    packets = [
        read_packet(folder, row["case_id"]) for row in screen.queue_panel.rows if row["kind"] == "classification"
    ]
    packet = next(packet for packet in packets if packet.total_pages >= 3 and packet.review_reason == "escalated")
    first, *_ = packet.classification.segments
    start = page if code == "V2-PAGE-OVERLAP" else page + 1
    segments = (
        first.model_copy(update={"start_page": 1, "end_page": end}),
        first.model_copy(update={"segment_index": 2, "start_page": start, "end_page": packet.total_pages}),
    )
    issue = Issue.create("V2", code, IssueSeverity.BLOCKER, "unfit", page=page, facts={"pages": f"page {page}"})
    changed = {
        "classification": packet.classification.model_copy(update={"segments": segments}),
        "issues": (issue.model_copy(update={"issue_id": "V2-9001"}),),
    }
    publish_packet_unless_frozen(folder, open_index(tmp_path / "output"), packet.model_copy(update=changed))
    screen.dispatch_message({"action": "open", "case_id": packet.case_id})
    return screen


def test_overlap_card_offers_the_boundary_answers(broken: Workbench) -> None:
    (issue,) = broken.case.packet.open_issues
    page = issue.page
    shown = next(row for row in broken.panels["classification"].case["issues"] if row["issue_id"] == issue.issue_id)
    assert shown["answers"]["change"] == f"A document begins on page {page}"
    before = broken.page_pane.segments
    for verdict, begins in (("confirmed", True), ("dismissed", False)):
        send(broken, "verdict", issue_id=issue.issue_id, verdict=verdict)
        assert any(segment["start"] == page for segment in broken.page_pane.segments) is begins
        assert broken.panels["classification"].verdicts[issue.issue_id] == {"verdict": verdict}
        assert [row["is_decided"] for row in broken.page_pane.doubts if row["page"] == page] == [True]
        # The program was wrong whichever side the page goes to.
        assert {row.verdict for row in broken.draft.issue_verdicts if row.issue_id == issue.issue_id} == {"confirmed"}
    send(broken, "verdict", issue_id=issue.issue_id, verdict=None)
    assert broken.page_pane.segments == before
    assert not any(row["is_decided"] for row in broken.page_pane.doubts if row["page"] == page)


def control(screen: Workbench, draft: Draft, issue: Issue) -> ClassificationController:
    """The controller of the open case, which has this issue alone and this draft."""
    packet = screen.case.packet.model_copy(update={"issues": (issue,)})
    case = replace(screen.case, packet=packet, draft=draft)
    return ClassificationController(screen, case, screen.panels["classification"])


def build_issue(code: str, **fields: object) -> Issue:
    known = {"severity": IssueSeverity.MAJOR, "agent": code[:2], "ig_id": "IG-2", "location": "", "suggested_fix": ""}
    return Issue(**{"issue_id": f"{code[:2]}-0001", "code": code, "message": "", "page": 1, **known, **fields})


@pytest.mark.parametrize("verdict", ["dismissed", None])
def test_an_answer_about_a_second_type_leaves_the_document_alone(screen: Workbench, verdict: Any) -> None:
    screen.dispatch_message({"action": "open", "case_id": "segment_count"})
    segment = screen.case.packet.classification.segments[0]
    other = next(kind for kind in DocumentType if kind not in (segment.dominant_type, DocumentType.OTHER))
    issue = build_issue("V3-TRAP-VENDOR", segment_index=1, document_type=other)
    controller = control(screen, screen.draft.set_segment_type(0, DocumentType.OTHER), issue)
    assert controller.answer_issue(issue.issue_id, verdict).segments[0].dominant_type is DocumentType.OTHER


@pytest.mark.parametrize("verdict", ["dismissed", None])
def test_the_same_patient_leaves_own_boundaries_alone(
    screen: Workbench, monkeypatch: pytest.MonkeyPatch, verdict: Any
) -> None:
    screen.dispatch_message({"action": "open", "case_id": "segment_count"})
    total = screen.draft.total_pages
    ranges = [((1, total - 1),), ((total, total),)]
    monkeypatch.setattr("widgets.kinds.classification.list_page_ranges_by_person", lambda _: ranges)
    issue = build_issue("V2-PATIENT-MIXED", page=total)
    own = screen.draft if screen.draft.segments[-1].start_page == total else screen.draft.toggle_boundary(total)
    controller = control(screen, own, issue)
    assert controller.answer_issue(issue.issue_id, verdict).segments == own.segments
    controller.draft = screen.draft
    flagged = controller.answer_issue(issue.issue_id, "confirmed")
    assert [flag.flag for flag in flagged.flags] == ["other_patient"]
    controller.draft = flagged
    taken_back = controller.answer_issue(issue.issue_id, verdict)
    assert (taken_back.segments, taken_back.flags) == (screen.draft.segments, ())
