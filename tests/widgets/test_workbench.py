"""The screen without a browser: what a press does, and what a failing one says."""

import json
import logging
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ipywidgets import Widget
from places import open_folder, open_index

from evalkit.classification.autofix import Repair
from evalkit.errors import DocumentError, StoreError, UsageError
from evalkit.evaluation.attention_checks import plant_and_queue_attention_checks
from evalkit.pipeline import RunSummary
from evalkit.review import ReviewSession, SMEReviewHelper
from evalkit.review.attention_checks import describe_fault
from evalkit.review.permissions import READ_ONLY_SENTENCE
from evalkit.review.roster import ReviewerRoster
from evalkit.review.session import compute_case_address
from widgets import workbench as workbench_module
from widgets.case_panel import render_case
from widgets.kinds import CONTROLLER_BY_KIND
from widgets.kinds.controller import CaseController
from widgets.workbench import Workbench, show


def test_a_page_that_says_hello_gets_the_queue(screen: Workbench) -> None:
    assert [row["case_id"] for row in screen.queue_panel.rows][:2] == ["altered_quotes", "quest_genomic"]
    assert screen.bar.is_ready


def test_a_press_before_hello_and_nonsense_do_nothing(demo_run: RunSummary) -> None:
    workbench = Workbench(open_folder(demo_run.output), "dr_lee")
    for message in ({"action": "next"}, {"action": "nope"}, {"action": 7}, {}):
        workbench.dispatch_message(message)
    assert workbench.queue_panel.notice == ""


def test_failure_shows_an_error_id_and_logs_no_text(
    screen: Workbench, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen.dispatch_message({"action": "open", "case_id": "quest_genomic"})

    def broken(*_: object) -> None:
        raise ValueError("Zebulon Quagmire, born 1950")

    monkeypatch.setattr(screen.page_pane, "show_page", broken)
    with caplog.at_level(logging.DEBUG):
        screen.dispatch_message({"action": "page", "page": 2})
    assert "error" in screen.segment_editor.problem
    assert "Zebulon" not in screen.segment_editor.problem + caplog.text
    error_id = screen.segment_editor.problem.split("error ")[1][:8]
    assert error_id in caplog.text


def test_what_was_meant_for_another_case_is_dropped(screen: Workbench) -> None:
    screen.dispatch_message({"action": "open", "case_id": "quest_genomic"})
    old = screen.page_pane.version
    screen.dispatch_message({"action": "queue"})
    screen.dispatch_message({"action": "open", "case_id": "segment_count"})
    seen = screen.draft.pages_seen
    screen.dispatch_message({"action": "painted", "token": old, "page": 2, "issue": None})
    screen.dispatch_message({"action": "type", "token": old, "page": 1, "type": "Other"})
    assert screen.draft.pages_seen == seen
    assert not screen.case.has_expert_changes(screen.draft)
    screen.dispatch_message({"action": "painted", "token": screen.page_pane.version, "page": 2, "issue": None})
    assert 2 in screen.draft.pages_seen


def test_new_case_keeps_nothing_of_the_previous_one(
    screen: Workbench, record_states: Callable[[Widget], list[dict[str, Any]]]
) -> None:
    screen.dispatch_message({"action": "open", "case_id": "quest_genomic"})
    issue = screen.panels["classification"].selected
    screen.dispatch_message(
        {"action": "verdict", "token": screen.page_pane.version, "issue_id": issue, "verdict": "confirmed"}
    )
    screen.dispatch_message(
        {"action": "issue_note", "token": screen.page_pane.version, "issue_id": issue, "text": "of another case"}
    )
    screen.dispatch_message({"action": "painted", "token": screen.page_pane.version, "page": 1, "issue": issue})
    assert screen.panels["classification"].verdicts
    screen.dispatch_message({"action": "queue"})
    states = record_states(screen.panels["classification"])
    screen.dispatch_message({"action": "open", "case_id": "segment_count"})
    states = [one for one in states if one["case"]["token"] == screen.page_pane.version]
    assert states
    assert [one for one in states if one["verdicts"] or one["notes"] or one["seen"]] == []


def test_shares_are_edited_and_add_up(screen: Workbench) -> None:
    screen.dispatch_message({"action": "open", "case_id": "segment_count"})
    kinds = ["Clinical Note", "Pathology Report", "Genomic Report", "Radiology Report", "Other"]
    given = dict(zip(kinds, (30, 0, 0, 60, 0), strict=True))
    screen.dispatch_message({"action": "mixture", "token": screen.page_pane.version, "percent": given})
    shares = {one["type"]: one["percent"] for one in screen.segment_editor.mixture}
    assert sum(shares.values()) == pytest.approx(100)
    assert shares["Radiology Report"] == pytest.approx(66.67)
    assert screen.segment_editor.can_correct
    screen.dispatch_message(
        {"action": "mixture", "token": screen.page_pane.version, "percent": dict.fromkeys(kinds, 0)}
    )
    assert "cannot all be 0" in screen.segment_editor.problem


def test_a_wrong_press_is_answered_in_words(screen: Workbench) -> None:
    screen.dispatch_message({"action": "open", "case_id": "quest_genomic"})
    screen.dispatch_message({"action": "validate"})
    assert "not yet seen" in screen.segment_editor.problem
    screen.dispatch_message({"action": "correct"})
    assert "nothing was changed" in screen.segment_editor.problem


def test_case_removed_while_open_is_reported_in_plain_words(screen: Workbench, tmp_path: Path) -> None:
    screen.dispatch_message({"action": "open", "case_id": "quest_genomic"})
    (tmp_path / "output/sme_packets/sme_packet_quest_genomic.json").unlink()
    token = screen.page_pane.version
    screen.dispatch_message({"action": "dominant", "token": token, "type": "Other"})
    screen.dispatch_message({"action": "correct", "token": token})
    assert re.fullmatch(r"This case no longer exists\. \(error \w{8}\)", screen.segment_editor.problem)


def test_a_closed_case_shows_outcome_who_and_when(screen: Workbench, tmp_path: Path) -> None:
    helper = SMEReviewHelper(tmp_path / "output", "dr_ito", clock=lambda: "2026-11-26T14:02:09+00:00")
    helper.save_review("quest_genomic", corrected_dominant_type="Other")
    screen.dispatch_message({"action": "open", "case_id": "quest_genomic"})
    closing = screen.panels["classification"].case["closing"]
    assert closing["outcome"] == "Corrected by dr_ito on 2026-11-26 14:02"
    assert closing["changes"][0] == "Pages 1–2: Genomic Report → Other"
    assert screen.page_pane.segments[0]["type"] == screen.segment_editor.dominant == "Other"
    assert (screen.segment_editor.is_locked, screen.segment_editor.undo) == (True, "")


def test_page_is_sent_once_for_repeated_requests(screen: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    screen.dispatch_message({"action": "open", "case_id": "quest_genomic"})
    sent = []
    monkeypatch.setattr(
        screen.page_pane, "send", lambda message, buffers: sent.append((message["kind"], message["page"]))
    )
    for asked in ({"action": "thumbnails"}, {"action": "previews"}, {"action": "previews", "kind": "page"}):
        screen.dispatch_message(asked | {"token": screen.page_pane.version, "pages": [2, 1, 2, 1]})
    assert sent == [(kind, page) for kind in ("thumbnail", "preview", "page") for page in (2, 1)]


def break_case(fault: str, case_id: str, output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = output / f"document_bundles/{case_id}.json"
    if fault == "damaged packet":
        (output / f"sme_packets/sme_packet_{case_id}.json").write_text('{"torn')
    elif fault == "bundle gone":
        bundle.unlink()
    elif fault == "PDF missing":
        bundle.write_text(bundle.read_text().replace(f"{case_id}.pdf", f"{case_id}.moved.pdf"))
    else:
        controller = CONTROLLER_BY_KIND["classification"]
        render = controller.render_case

        def fail_for_case(self: CaseController) -> Any:
            if self.case.packet.case_id == case_id:
                raise KeyError("Zebrafish")
            return render(self)

        monkeypatch.setattr(controller, "render_case", fail_for_case)


FAULTS = ("damaged packet", "bundle gone", "PDF missing", "panel")


@pytest.mark.parametrize("fault", FAULTS)
def test_case_that_cannot_be_shown_is_given_back(
    screen: Workbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    screen.dispatch_message({"action": "open", "case_id": "quest_genomic"})  # a reload opens it again
    with monkeypatch.context() as patch:
        break_case(fault, "quest_genomic", tmp_path / "output", patch)
        address = compute_case_address("quest_genomic")
        screen.dispatch_message({"action": "hello", "tab": "tab-1", "case": address})
    shown = screen.fault_panel.what if screen.content_box.children == (screen.fault_panel,) else None
    assert "quest_genomic" in (screen.queue_panel.notice if shown is None else shown)
    assert "Zebrafish" not in screen.fault_panel.what + screen.fault_panel.reason
    index = open_index(tmp_path / "output")
    assert not index.claims.map_live_claims_by_case_id("2000-01-01T00:00:00")
    index.close()
    assert screen.review_session.load_queue_page().in_review == 0


@pytest.mark.parametrize("fault", FAULTS)
def test_broken_case_is_told_and_the_next_one_opens(
    screen: Workbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    first, *_ = [row.case_id for row in screen.review_session.load_queue_page().rows]
    assert screen.review_session.choose_next_case_id() == first
    break_case(fault, first, tmp_path / "output", monkeypatch)
    screen.dispatch_message({"action": "next"})
    assert screen.content_box.children == (screen.case_view,)
    assert screen.case.packet.case_id != first
    assert f"{first} was skipped: " in screen.segment_editor.problem
    assert "(error " in screen.segment_editor.problem
    screen.dispatch_message({"action": "queue"})
    queue_page = screen.review_session.load_queue_page()
    assert (queue_page.in_review, queue_page.next_case_id == first) == (0, False)


def test_a_fault_of_the_folder_skips_no_case(screen: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise StoreError("the disk is full", code="STORE-FULL", remedy="Make room.")

    first = screen.review_session.choose_next_case_id()
    with monkeypatch.context() as patch:
        patch.setattr("evalkit.review.session.read_packet_bundle", fail)
        screen.dispatch_message({"action": "next"})
    assert screen.fault_panel.what == f"{first}: The disk is full: nothing can be saved."
    screen.dispatch_message({"action": "queue"})
    assert screen.review_session.choose_next_case_id() == first


def test_fields_are_nothing_that_a_classification_has(screen: Workbench) -> None:
    screen.dispatch_message({"action": "open", "case_id": "quest_genomic"})
    for action in ("field_value", "field_check", "field_edit", "field_status"):
        screen.segment_editor.problem = ""
        screen.dispatch_message({"action": action, "field": "1.wages_tips", "text": "1", "status": "found"})
        assert "another kind of case" in screen.segment_editor.problem, action
        screen.segment_editor.problem = ""
        screen.dispatch_message({"action": action, "token": "forms.extraction:1", "field": "1.wages_tips"})
        assert screen.segment_editor.problem == "", "it was meant for the case before"
    assert screen.draft.fields == {}


def test_a_double_click_opens_one_case(screen: Workbench) -> None:
    screen.dispatch_message({"action": "next"})
    first = screen.case.packet.case_id
    screen.dispatch_message({"action": "next"})
    assert screen.case.packet.case_id == first
    assert [row.case_id for row in screen.review_session.load_queue_page().rows if row.is_mine] == [first]


def test_a_page_that_cannot_be_drawn_does_not_close_the_case(
    screen: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> bytes:
        raise DocumentError("page 1 cannot be drawn", code="READER-PAGE", remedy="Fetch it again.")

    monkeypatch.setattr("widgets.workbench.PdfPageRenderer.render_full_size", broken)
    screen.dispatch_message({"action": "open", "case_id": "quest_genomic"})
    assert screen.page_pane.missing == {"1": {"what": "page 1 cannot be drawn", "remedy": "Fetch it again."}}
    assert screen.page_pane.note == ""
    assert screen.segment_editor.page == 1
    assert screen.content_box.children == (screen.case_view,)


def test_voila_without_the_login_shows_nothing(demo_run: RunSummary, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVER_SOFTWARE", "voila/0.5")
    with pytest.raises(UsageError):
        show(demo_run.output, reviewer="anybody")


def test_in_jupyterlab_the_reviewer_is_an_argument(demo_run: RunSummary, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SERVER_SOFTWARE", raising=False)
    assert show(demo_run.output, reviewer="dr_lee").children
    with pytest.raises(UsageError):
        show(demo_run.output)


def test_a_cell_run_again_goes_on_with_its_tab_and_case(
    demo_run: RunSummary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SERVER_SOFTWARE", raising=False)
    output = tmp_path / "output"
    shutil.copytree(demo_run.output, output)

    def run_cell() -> Workbench:
        show(output, "dr_lee")
        return workbench_module._workbench_shown_for[str(output), "dr_lee"]

    first = run_cell()
    first.dispatch_message({"action": "hello", "tab": "tab-1", "case": None})
    first.dispatch_message({"action": "open", "case_id": "quest_genomic"})
    first.dispatch_message({"action": "notes", "text": "a routine count", "token": first.page_pane.version})
    first.dispatch_message({"action": "page", "page": 2, "token": first.page_pane.version})  # not painted yet
    second = run_cell()
    assert (second.bar.tab, second.bar.address) == ("tab-1", compute_case_address("quest_genomic"))
    assert first.view.comm is None, "the earlier widget is closed"
    second.dispatch_message({"action": "hello", "tab": second.bar.tab, "case": second.bar.address})
    assert (second.case.packet.case_id, second.draft.notes) == ("quest_genomic", "a routine count")
    assert second.segment_editor.page == min(2, second.case.packet.total_pages)
    with open_index(output) as index:
        claims = index.claims.map_live_claims_by_case_id("2000-01-01T00:00:00")
    assert [(case_id, claim.session) for case_id, claim in claims.items()] == [("quest_genomic", "tab-1")]
    second.close_session()


def test_a_cell_run_again_in_another_browser_tab_starts_anew(
    demo_run: RunSummary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SERVER_SOFTWARE", raising=False)
    output = tmp_path / "output"
    shutil.copytree(demo_run.output, output)
    show(output, "dr_lee")
    first = workbench_module._workbench_shown_for[str(output), "dr_lee"]
    first.dispatch_message({"action": "hello", "tab": "tab-1", "case": None})
    first.dispatch_message({"action": "open", "case_id": "quest_genomic"})
    show(output, "dr_lee")
    second = workbench_module._workbench_shown_for[str(output), "dr_lee"]
    second.dispatch_message({"action": "hello", "tab": "tab-2", "case": None})
    assert second.content_box.children == (second.queue_panel,)
    assert second.review_session.load_queue_page().in_review == 0
    second.close_session()


def test_case_of_a_newer_version_is_reported_and_retried(screen: Workbench, tmp_path: Path) -> None:
    import json

    path = tmp_path / "output/sme_packets/sme_packet_quest_genomic.json"
    good = path.read_text()
    path.write_text(json.dumps(json.loads(good) | {"schema_version": 99}))
    screen.dispatch_message({"action": "open", "case_id": "quest_genomic"})
    assert screen.content_box.children == (screen.fault_panel,)
    assert "newer version of evalkit" in screen.fault_panel.what
    assert len(screen.fault_panel.error_id) == 8
    path.write_text(good)
    screen.dispatch_message({"action": "retry"})
    assert screen.content_box.children == (screen.case_view,)
    assert screen.case.packet.case_id == "quest_genomic"


def test_a_locked_index_at_the_start_is_told_and_tried_again(demo_run: RunSummary, tmp_path: Path) -> None:
    shutil.copytree(demo_run.output, tmp_path / "output")
    index = tmp_path / "output" / "evalkit.sqlite"
    kept = index.read_bytes()
    index.write_bytes(b"no database at all" * 100)
    workbench = Workbench(open_folder(tmp_path / "output"), "dr_lee")
    workbench.dispatch_message({"action": "hello", "tab": "tab-1", "case": None})
    assert workbench.content_box.children == (workbench.fault_panel,)
    assert not workbench.fault_panel.has_queue
    index.write_bytes(kept)
    workbench.dispatch_message({"action": "retry"})
    assert workbench.content_box.children == (workbench.queue_panel,)


def test_nothing_of_the_agent_is_sent_of_a_blind_case(screen: Workbench) -> None:
    screen.dispatch_message({"action": "open", "case_id": "doc2_6"})
    assert screen.case.is_blind
    sent = str(
        [widget.get_state() for widget in (screen.page_pane, screen.panels["classification"], screen.segment_editor)]
    )
    answer = screen.case.packet.classification
    for segment in answer.segments:
        assert segment.reasoning not in sent
        for row in segment.segment_composition:
            assert not any(
                quote.snippet in str(screen.panels["classification"].get_state()) for quote in row.top_evidence
            )
    assert screen.page_pane.evidence == []
    assert [one["type"] for one in screen.segment_editor.segments] == [None]
    screen.dispatch_message({"action": "select", "token": screen.page_pane.version, "issue_id": "V1-0001"})
    assert screen.panels["classification"].selected == ""


def answer_blind(screen: Workbench, *types: str) -> None:
    """Submit an own answer to the audit of the first eight pages: two documents of these types."""
    screen.dispatch_message({"action": "open", "case_id": "doc2_6"})
    token = screen.page_pane.version
    screen.dispatch_message({"action": "split", "token": token, "page": 6})
    for page, document_type in zip((1, 6), types, strict=True):
        screen.dispatch_message({"action": "type", "token": token, "page": page, "type": document_type})
        screen.dispatch_message({"action": "painted", "token": token, "page": page, "issue": None})
    screen.dispatch_message({"action": "correct", "token": token})


def test_another_blind_answer_stops_once_after_it_is_written(screen: Workbench, tmp_path: Path) -> None:
    answer_blind(screen, "Radiology Report", "Clinical Note")
    panel, token = screen.panels["classification"], screen.page_pane.version
    assert (tmp_path / "output/reviews/doc2_6/0001.json").exists()
    assert (screen.bar.address, screen.segment_editor.is_locked) == (compute_case_address("doc2_6"), True)
    stop = panel.case["stop"]
    assert (stop["you"], stop["program"]) == ("Radiology Report", "Genomic Report")
    assert stop["because"].startswith("because it reads “")
    screen.dispatch_message({"action": "next", "token": token})
    assert screen.bar.address not in ("", compute_case_address("doc2_6"))
    assert "stop" not in panel.case


def test_looking_again_shows_both_and_an_unchanged_one_is_kept(screen: Workbench, tmp_path: Path) -> None:
    answer_blind(screen, "Radiology Report", "Clinical Note")
    screen.dispatch_message({"action": "look_again", "token": screen.page_pane.version})
    panel = screen.panels["classification"]
    assert [opinion["name"] for opinion in panel.case["opinions"]] == ["Your answer", "The program's answer"]
    assert panel.case["claims"]
    assert not screen.segment_editor.is_locked
    assert screen.segment_editor.dominant == "Radiology Report"
    assert screen.segment_editor.labels["correct"] == "Keep mine and next"
    screen.dispatch_message({"action": "correct", "token": screen.page_pane.version})
    assert screen.bar.address not in ("", compute_case_address("doc2_6"))
    assert not (tmp_path / "output/reviews/doc2_6/0002.json").exists()


def test_agreement_does_not_stop(screen: Workbench) -> None:
    answer_blind(screen, "Genomic Report", "Clinical Note")
    assert screen.bar.address not in ("", compute_case_address("doc2_6"))


def test_a_reload_at_the_stop_keeps_the_answer(screen: Workbench) -> None:
    answer_blind(screen, "Radiology Report", "Clinical Note")
    screen.dispatch_message({"action": "hello", "tab": "tab-1", "case": compute_case_address("doc2_6")})
    assert screen.panels["classification"].case["closing"]["outcome"].startswith("Corrected by dr_lee")


def test_undo_reverts_the_last_change_and_keeps_seen_pages(screen: Workbench) -> None:
    screen.dispatch_message({"action": "open", "case_id": "fabricated_quote"})
    token = screen.page_pane.version
    before = screen.draft.segments
    screen.dispatch_message({"action": "split", "token": token, "page": 3})
    screen.dispatch_message({"action": "painted", "token": token, "page": 2, "issue": None})
    screen.dispatch_message({"action": "flag", "token": token, "page": 3, "flag": "duplicate"})
    assert screen.segment_editor.undo
    screen.dispatch_message({"action": "undo", "token": token})
    assert len(screen.draft.segments) == 2
    assert screen.draft.flags == ()
    screen.dispatch_message({"action": "undo", "token": token})
    assert screen.draft.segments == before
    assert 2 in screen.draft.pages_seen
    assert screen.segment_editor.undo == ""
    screen.dispatch_message({"action": "undo", "token": token})
    assert "no case that you submitted in this tab" in screen.segment_editor.problem


def test_an_applied_repair_confirms_what_it_mends(screen: Workbench) -> None:
    screen.dispatch_message({"action": "open", "case_id": "segment_count"})
    token = screen.page_pane.version
    screen.dispatch_message({"action": "repair", "token": token})
    assert screen.panels["classification"].is_repair_applied
    assert {one.verdict for one in screen.draft.issue_verdicts} == {"confirmed"}
    screen.dispatch_message({"action": "repair", "token": token})
    assert not screen.panels["classification"].is_repair_applied
    assert screen.draft.issue_verdicts == ()


def test_a_case_that_is_put_off_tells_the_next_reader_why(screen: Workbench, tmp_path: Path) -> None:
    screen.dispatch_message({"action": "open", "case_id": "fabricated_quote"})
    screen.dispatch_message(
        {"action": "defer", "token": screen.page_pane.version, "reason": "page 2 is asked for again"}
    )
    assert screen.bar.notice == "Deferred: fabricated_quote.pdf"
    assert screen.case.packet.case_id != "fabricated_quote"
    screen.dispatch_message({"action": "queue"})
    colleague = Workbench(open_folder(tmp_path / "output"), "dr_ito")
    colleague.dispatch_message({"action": "hello", "tab": "tab-2", "case": None})
    colleague.dispatch_message({"action": "open", "case_id": "fabricated_quote"})
    assert "page 2 is asked for again" in colleague.panels["classification"].case["told"][0]


def test_notebook_in_another_tab_starts_in_the_queue(screen: Workbench) -> None:
    screen.dispatch_message({"action": "open", "case_id": "fabricated_quote"})
    screen.dispatch_message({"action": "hello", "tab": "tab-2", "case": None})
    assert screen.content_box.children == (screen.queue_panel,)
    assert screen.bar.address == ""
    screen.dispatch_message(
        {"action": "open", "case_id": "fabricated_quote"}
    )  # the tab before does not keep it from this one
    screen.dispatch_message({"action": "leave", "tab": "tab-1"})
    for seconds in (1.0, 2.0, 3.0):
        screen.dispatch_message({"action": "ping", "tab": "tab-2", "active": seconds})
        screen.dispatch_message(
            {"action": "ping", "tab": "tab-1", "active": 100.0}
        )  # of the tab before, which is covered
    assert screen.draft.seconds_active == 3.0
    assert screen.segment_editor.problem == ""
    assert screen.review_session.load_queue_page().in_review == 1
    screen.dispatch_message({"action": "leave", "tab": "tab-2"})
    assert screen.review_session.load_queue_page().in_review == 0


def test_page_that_reconnects_keeps_its_case(screen: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    screen.dispatch_message({"action": "open", "case_id": "fabricated_quote"})
    with monkeypatch.context() as patch:
        patch.setattr(ReviewSession, "release_case", lambda *_: pytest.fail("a colleague could take it"))
        screen.dispatch_message({"action": "hello", "tab": "tab-1", "case": compute_case_address("fabricated_quote")})
        assert screen.case.packet.case_id == "fabricated_quote"
    screen.dispatch_message({"action": "hello", "tab": "tab-1", "case": None})
    assert screen.review_session.load_queue_page().in_review == 0


def test_what_was_planted_is_told_before_the_next_case(demo_run: RunSummary, tmp_path: Path) -> None:
    shutil.copytree(demo_run.output, tmp_path / "output")
    first = SMEReviewHelper(tmp_path / "output", "dr_first")
    first.save_review("altered_quotes", agrees=True)
    first.close()
    (seeded,) = plant_and_queue_attention_checks(
        open_folder(tmp_path / "output"), 1, seed="one", drawn_at="2026-01-01T00:00:00.000Z"
    ).cases
    screen = Workbench(open_folder(tmp_path / "output"), "dr_lee")
    screen.dispatch_message({"action": "hello", "tab": "tab-1", "case": None})
    told = describe_fault(seeded.fault)
    screen.dispatch_message({"action": "open", "case_id": seeded.packet.case_id})
    assert screen.case.packet.is_attention_check
    every = (screen.bar, screen.queue_panel, screen.page_pane, screen.panels["classification"], screen.segment_editor)
    sent = json.dumps([widget.get_state() for widget in every], default=str)
    assert not any(word in sent for word in ("planted", "seeded", told, '"altered_quotes"'))
    kind = next(one for one in ("Other", "Genomic Report") if one != seeded.fault.shown_type)
    screen.dispatch_message(
        {"action": "type", "token": screen.page_pane.version, "page": 1, "segment": 0, "type": kind}
    )
    screen.dispatch_message({"action": "correct", "token": screen.page_pane.version})
    assert told in screen.queue_panel.notice
    assert "You noticed it" in screen.queue_panel.notice
    assert "corrected" in screen.bar.notice
    assert screen.content_box.children == (screen.queue_panel,), "it is read before the next case takes its place"
    assert not screen.review_session.can_undo
    screen.dispatch_message({"action": "open", "case_id": seeded.packet.case_id})
    assert any(told in sentence for sentence in screen.panels["classification"].case["told"])


def test_an_analyst_looks_at_a_case_and_no_press_says_anything(screen: Workbench, tmp_path: Path) -> None:
    roster = ReviewerRoster(open_folder(tmp_path / "output"))
    roster.add_reviewer_or_replace_code("ms_wu", role="analyst")
    analyst = Workbench(open_folder(tmp_path / "output"), "ms_wu")
    analyst.dispatch_message({"action": "hello", "tab": "tab-2", "case": None})
    assert (analyst.bar.role, analyst.queue_panel.only_looks, screen.bar.role) == ("analyst", READ_ONLY_SENTENCE, "")
    analyst.dispatch_message({"action": "next"})
    assert analyst.queue_panel.notice == "No cases are waiting for you."
    screen.dispatch_message({"action": "open", "case_id": "quest_genomic"})
    analyst.dispatch_message({"action": "open", "case_id": "quest_genomic", "take_over": True})
    assert analyst.segment_editor.is_locked
    assert analyst.segment_editor.why_not == READ_ONLY_SENTENCE
    analyst = Workbench(open_folder(tmp_path / "output"), "ms_wu")
    analyst.dispatch_message({"action": "hello", "tab": "tab-2", "case": compute_case_address("quest_genomic")})
    assert (analyst.bar.role, analyst.case.packet.case_id) == ("analyst", "quest_genomic"), "after a reload"
    page = {"token": analyst.page_pane.version, "page": 1}
    issue = analyst.case.packet.issues[0].issue_id
    for press in (
        {"action": "painted", "issue": issue},
        {"action": "type", "type": "Other"},
        {"action": "notes", "text": "an analyst's words"},
        {"action": "verdict", "issue_id": issue, "verdict": "confirmed"},
    ):
        analyst.dispatch_message(page | press)
        assert analyst.segment_editor.problem == ""
    for press in (
        {"action": "validate"},
        {"action": "correct"},
        {"action": "undeterminable", "reason": "illegible"},
        {"action": "defer", "reason": "later"},
        {"action": "second", "reason": "look"},
    ):
        analyst.dispatch_message(page | press)
        assert "your role is analyst" in analyst.segment_editor.problem, press
    analyst.dispatch_message({"action": "ping", "tab": "tab-2", "active": 2.0})
    index = open_index(tmp_path / "output")
    (row,) = [row for row in index.list_cases_worst_first() if row["case_id"] == "quest_genomic"]
    assert row["review_status"] == "in_review"
    assert index.drafts.find_newest_draft("quest_genomic", "ms_wu", "tab-2") is None
    index.close()
    assert not (tmp_path / "output/reviews").exists()
    screen.dispatch_message({"action": "ping", "tab": "tab-1", "active": 2.0})
    assert screen.segment_editor.problem == "", "the expert's claim is still theirs"


def test_another_patients_pages_become_documents_and_can_be_undone(
    screen: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranges = [((1, 2), (4, 8)), ((3, 3),)]
    monkeypatch.setattr("widgets.kinds.classification.list_page_ranges_by_person", lambda _: ranges)
    screen.dispatch_message({"action": "open", "case_id": "segment_count"})
    total, before = screen.draft.total_pages, screen.draft
    ranges[:] = [((1, total - 2), (total, total)), ((total - 1, total - 1),)]
    press = {"action": "separate", "token": screen.page_pane.version, "page": total, "rest": False}
    assert (screen.page_pane.can_separate, screen.page_pane.offer) == (True, {})
    screen.dispatch_message(press)
    assert screen.draft.segments[-1].start_page == total
    assert [(flag.start_page, flag.flag) for flag in screen.draft.flags] == [(total, "other_patient")]
    assert screen.page_pane.offer == {"page": total, "pages": list(range(1, total - 1))}
    screen.dispatch_message(press | {"rest": True})
    assert screen.page_pane.offer == {}
    assert (total - 1) in {segment.start_page for segment in screen.draft.segments}
    screen.dispatch_message({"action": "undo", "token": screen.page_pane.version})
    screen.dispatch_message({"action": "undo", "token": screen.page_pane.version})
    assert (screen.draft.segments, screen.draft.flags) == (before.segments, ())


def test_a_document_that_names_only_another_patient_stays_whole(
    screen: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranges: list[tuple[tuple[int, int], ...]] = [((1, 1),)]
    monkeypatch.setattr("widgets.kinds.classification.list_page_ranges_by_person", lambda _: ranges)
    screen.dispatch_message({"action": "open", "case_id": "segment_count"})
    before = screen.draft.segments
    last = before[-1]
    assert last.start_page < last.end_page
    ranges[:] = [((1, last.start_page - 1),), ((last.start_page, last.start_page),)]  # its later pages name nobody
    screen.dispatch_message(
        {"action": "separate", "token": screen.page_pane.version, "page": last.start_page, "rest": False}
    )
    assert screen.draft.segments == before
    assert [(flag.start_page, flag.flag) for flag in screen.draft.flags] == [(last.start_page, "other_patient")]


def test_shares_of_an_offered_repair_are_percentages(screen: Workbench) -> None:
    screen.dispatch_message({"action": "open", "case_id": "segment_count"})
    repair = Repair(
        issue_id="V2-0001",
        code="V2-MIXTURE-SHARE-SUM",
        location="document_mixture",
        description="divide the shares by their sum",
        before=[0.6, 0.42],
        after=[0.6 / 1.02, 0.42 / 1.02],
    )
    packet = screen.case.packet.model_copy(update={"proposed_repairs": (repair,)})
    [shown] = render_case(replace(screen.case, packet=packet))["repairs"]
    assert (shown["before"], shown["after"]) == ("60%, 42%", "58.82%, 41.18%")
