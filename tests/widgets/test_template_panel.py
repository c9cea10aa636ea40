"""A case about a statement template on the screen, without a browser."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pymupdf
import pytest
from ipywidgets.widgets.widget import _instances
from places import open_folder, open_index
from statements.spoilt import Spoilt, publish_template_case, spoil_template, without_last_row
from statements.undecided import undecided_case

from evalkit.documents.readers import read_document
from evalkit.review import SMEReviewHelper
from evalkit.review.kinds.statement_template import TemplateReviewCase
from evalkit.review.session import compute_case_address
from evalkit.statements.applied_template import AppliedTemplate
from evalkit.statements.review_cycles import ReportedIssue
from evalkit.statements.reviewer_report import Resolution
from evalkit.statements.statement_template import StatementTemplate, parse_template_toml
from widgets.template_panel import TemplatePanel
from widgets.workbench import Workbench


def without_later_pages(template: StatementTemplate, reading: AppliedTemplate) -> StatementTemplate:
    """Only the first page has a box."""
    return template.model_copy(update={"regions": template.regions[:1]})


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Spoilt]:
    folder = tmp_path_factory.mktemp("statements")
    return {
        "cut": spoil_template(folder, "cut", "over several pages", 3, without_last_row),
        "boxless": spoil_template(folder, "boxless", "over several pages", 3, without_later_pages),
    }


@pytest.fixture(scope="module")
def output(cases: dict[str, Spoilt], tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("templates") / "output"
    files, index = open_folder(output), open_index(output)
    for one in cases.values():
        publish_template_case(files, index, one)
    index.close()
    return output


@pytest.fixture
def screen(output: Path, tmp_path: Path) -> Workbench:
    shutil.copytree(output, tmp_path / "output")
    workbench = Workbench(open_folder(tmp_path / "output"), "dr_lee")
    workbench.dispatch_message({"action": "hello", "tab": "tab-1", "case": None})
    return workbench


def opened(screen: Workbench, one: Spoilt) -> TemplateReviewCase:
    screen.dispatch_message({"action": "open", "case_id": one.case_id})
    assert isinstance(screen.case, TemplateReviewCase)
    return screen.case


def press(screen: Workbench, action: str, **more: Any) -> None:
    screen.dispatch_message({"action": action, "token": screen.page_pane.version, **more})


def test_the_worst_issue_is_open_and_its_rows_are_outlined(screen: Workbench, cases: dict[str, Spoilt]) -> None:
    opened(screen, cases["cut"])
    assert isinstance(screen.right_column.children[0], TemplatePanel)
    assert screen.controller.kind == "statement_template"
    assert screen.panels["statement_template"].selected == "layout_geometry_001"
    (mark,) = [one for one in screen.page_pane.marks if one["page"] == 2][-1:]
    assert mark["style"] == "near"
    assert screen.panels["statement_template"].place == "Outlined on page 2."
    assert screen.page_pane.strips == []
    met = [check["is_met"] for check in screen.panels["statement_template"].sums["checks"]]
    assert met == sorted(met), "what is not met is in sight"
    assert False in met
    assert [(one["start"], one["end"], one["type"]) for one in screen.page_pane.segments] == [
        (1, 1, "the first page"),
        (2, 3, "all pages but the first"),
    ]


def test_rows_and_edges_are_those_of_the_page_on_screen(screen: Workbench, cases: dict[str, Spoilt]) -> None:
    one = cases["cut"]
    opened(screen, one)
    for page in (1, 2, 3):
        press(screen, "page", page=page)
        rows = screen.panels["statement_template"].rows
        drawn = [row for row in one.drawn.rows if row.page == page]
        read_rows = [(row["date"], row["amount"]) for row in rows]
        assert read_rows == [(row.date, f"{row.amount:,.2f}") for row in drawn][: len(rows)]
        frames = screen.page_pane.frames
        assert (frames["page"], len(frames["regions"]), len(frames["columns"])) == (page, 1, 5)
        ticks = [tick["is_read"] for tick in frames["ticks"]]
        assert ticks.count(True) == len(rows)
        assert len(ticks) == len(drawn), "each row is read, or marked as left over"
        named = {edge["name"] for edge in frames["edges"]}
        assert {column[side] for column in frames["columns"] for side in ("left", "right")} <= named
        assert len(named) == len(frames["edges"]) == 4 + 6, "columns side by side share an edge"


def test_moved_edge_is_applied_and_undone_as_one_change(screen: Workbench, cases: dict[str, Spoilt]) -> None:
    one = cases["cut"]
    case = opened(screen, one)
    press(screen, "select", issue_id="row.1")
    assert screen.page_pane.marks
    press(screen, "edge", edge="region.1.bottom", to=0.3)
    assert (screen.panels["statement_template"].selected, screen.page_pane.marks) == ("", []), "the rows are others now"
    for to in (0.5, 0.7, one.sound.regions[1].box[3]):
        press(screen, "edge", edge="region.1.bottom", to=to, goes_on=True)
    assert screen.panels["statement_template"].sums["is_met"]
    assert [line["text"] for line in screen.segment_editor.record] == list(case.describe_changes(screen.draft)) != []
    assert not screen.segment_editor.can_correct
    assert "not yet seen" in screen.segment_editor.why_not
    press(screen, "undo")
    assert screen.draft.template is None
    press(screen, "edge", edge="region.1.bottom", to=2.0, goes_on=True)
    assert screen.segment_editor.undo, "what goes on after an undo is a change of its own"


def test_what_cannot_be_done_is_said_and_changes_nothing(screen: Workbench, cases: dict[str, Spoilt]) -> None:
    opened(screen, cases["cut"])
    for action, more in (
        ("edge", {"edge": "region.9.top", "to": 0.5}),
        ("edge", {"edge": "region.0.top", "to": float("nan")}),
        ("column", {"column": 0, "name": "other"}),
        ("choice", {"what": "dates", "value": "nonsense"}),
        ("box", {"page": 1}),
        ("select", {"issue_id": "row.999"}),
    ):
        press(screen, action, **more)
        assert screen.segment_editor.problem, action
        assert screen.draft.template is None


def test_a_page_without_a_box_gets_one_that_is_read(screen: Workbench, cases: dict[str, Spoilt]) -> None:
    one = cases["boxless"]
    opened(screen, one)
    press(screen, "page", page=2)
    assert (
        screen.panels["statement_template"].has_box,
        screen.panels["statement_template"].rows,
        screen.page_pane.frames,
    ) == (False, [], {})
    press(screen, "box", page=2)
    assert screen.panels["statement_template"].has_box
    press(screen, "edge", edge="region.1.top", to=one.sound.regions[1].box[1])
    press(screen, "edge", edge="region.1.bottom", to=one.sound.regions[1].box[3])
    assert screen.panels["statement_template"].sums["is_met"]
    assert [one["type"] for one in screen.page_pane.segments] == ["the first page", "all pages but the first"]


def test_all_of_it_is_approved_and_the_next_case_opens(
    screen: Workbench, cases: dict[str, Spoilt], tmp_path: Path
) -> None:
    one = cases["cut"]
    case = opened(screen, one)
    for page in (1, 2, 3):
        press(screen, "painted", page=page, issue="")
    for told in case.issues_within_caps:
        name = told.issue.issue_id
        press(screen, "select", issue_id=name)
        press(screen, "painted", page=case.locate_target(name, screen.draft).page, issue=name)
    assert screen.panels["statement_template"].wanted == []
    assert "say why" in screen.segment_editor.why_not
    press(screen, "unmet_sums", reason="  ")
    assert not screen.draft.unmet_sums
    press(screen, "edge", edge="region.1.bottom", to=one.sound.regions[1].box[3])
    press(screen, "unmet_sums", reason="there is nothing to explain")
    assert "All sums add up" in screen.segment_editor.problem
    assert screen.segment_editor.can_correct
    press(screen, "correct")
    assert screen.case.packet.case_id == cases["boxless"].case_id
    assert screen.bar.notice.endswith("cut.pdf approved with changes")
    stored = (tmp_path / "output" / "templates" / "cut_bank.toml").read_text()
    assert parse_template_toml(stored, "").version == 2


def test_a_reload_comes_back_to_what_was_said(screen: Workbench, cases: dict[str, Spoilt], tmp_path: Path) -> None:
    one = cases["cut"]
    opened(screen, one)
    press(screen, "edge", edge="region.1.bottom", to=one.sound.regions[1].box[3])
    press(screen, "select", issue_id="row.1")
    template = screen.draft.template
    again = Workbench(open_folder(tmp_path / "output"), "dr_lee")
    again.dispatch_message({"action": "hello", "tab": "tab-1", "case": compute_case_address(one.case_id)})
    assert again.draft.template == template
    assert again.panels["statement_template"].selected == "row.1"
    assert again.panels["statement_template"].sums["is_met"]


@pytest.mark.parametrize("more", [-1, 1])
def test_draft_with_outdated_columns_can_be_continued(screen: Workbench, cases: dict[str, Spoilt], more: int) -> None:
    case = opened(screen, cases["cut"])
    plain = case.agent_template.model_dump(mode="json")
    if more < 0:
        del plain["column"][more:]
    else:
        plain["column"].append({"name": "other", "x": [0.97, 0.99], "title": ""})
    given = StatementTemplate.model_validate(plain)
    screen.review_session.save_draft_and_get_time(case.packet.case_id, screen.draft.set_template(given))
    press(screen, "queue")
    opened(screen, cases["cut"])
    assert screen.draft.template == given
    assert len(screen.panels["statement_template"].template["columns"]) == len(case.agent_template.columns) + more
    edges = [one["name"] for one in screen.page_pane.frames["edges"] if one["part"] == "column"]
    before = screen.draft
    press(screen, "edge", edge=edges[-1], to=0.98)
    assert (screen.segment_editor.problem, screen.draft != before) == ("", True)


def test_an_arbitrators_word_and_two_reporters_are_told(tmp_path: Path, cases: dict[str, Spoilt]) -> None:
    one = cases["cut"]
    told = one.case.issues[0]
    settled = Resolution(
        issue_id=told.issue.issue_id, winning_reviewer="layout_geometry", final_severity="high", confidence=0.85,
        reasoning="the row is there",
    )  # fmt: skip
    both = ReportedIssue(issue=told.issue, reported_by=("layout_geometry", "semantic_financial"), resolution=settled)
    files, index = open_folder(tmp_path / "output"), open_index(tmp_path / "output")
    publish_template_case(
        files, index, Spoilt(one.drawn, one.bundle, one.sound, one.case.model_copy(update={"issues": (both,)}))
    )
    index.close()
    screen = Workbench(open_folder(tmp_path / "output"), "dr_lee")
    screen.dispatch_message({"action": "hello", "tab": "tab-1", "case": compute_case_address(one.case_id)})
    (issue,) = screen.panels["statement_template"].case["issues"]
    assert issue["by"] == "layout check and finance check"
    assert issue["arbitrator"] == "Arbitrator: sides with the layout check, high, 85% sure: the row is there"


def test_a_closed_case_is_only_read(screen: Workbench, cases: dict[str, Spoilt], tmp_path: Path) -> None:
    one = cases["cut"]
    helper = SMEReviewHelper(tmp_path / "output", "dr_kim")
    helper.save_review(one.case_id, corrected_template=one.sound)
    helper.close()
    opened(screen, one)
    assert (
        screen.panels["statement_template"].is_locked,
        screen.page_pane.frames["is_locked"],
        screen.segment_editor.is_locked,
    ) == (True,) * 3


def test_moved_edges_leave_no_widgets_behind(tmp_path: Path) -> None:
    one = spoil_template(tmp_path, "five", "over several pages", 3)
    document = pymupdf.open(tmp_path / "five.pdf")
    for page in (1, 1):
        document.fullcopy_page(page, page)
    document.save(tmp_path / "longer.pdf")
    bundle = read_document(tmp_path / "longer.pdf", doc_id="longer", processing_timestamp="")
    assert bundle.total_pages == 5
    files, index = open_folder(tmp_path / "output"), open_index(tmp_path / "output")
    publish_template_case(files, index, Spoilt(one.drawn, bundle, one.sound, one.case))
    index.close()
    alive = len(_instances)
    screen = Workbench(open_folder(tmp_path / "output"), "dr_lee")
    screen.dispatch_message({"action": "hello", "tab": "tab-1", "case": compute_case_address(one.case_id)})
    for step in range(9):
        press(screen, "edge", edge="region.1.bottom", to=0.5 + step / 50)
    assert len(_instances) - alive < 150


def test_both_readings_are_shown_and_one_is_chosen(tmp_path: Path) -> None:
    one = undecided_case(tmp_path, "undecided")
    files, index = open_folder(tmp_path / "output"), open_index(tmp_path / "output")
    publish_template_case(files, index, one)
    index.close()
    shutil.copy(tmp_path / "undecided.pdf", tmp_path / "output")
    screen = Workbench(open_folder(tmp_path / "output"), "dr_lee")
    screen.dispatch_message({"action": "hello", "tab": "tab-1", "case": None})
    opened(screen, one)
    panel = screen.panels["statement_template"]
    (question,) = panel.case["questions"]
    assert (question["name"], panel.readings) == ("signs", {})
    cells = {row["text"]: row["cells"] for row in question["rows"]}
    assert cells["RESTAURANT"] == ["63.20 in", "63.20 out"]
    assert cells["PAYMENT THANK YOU"] == ["240.00 out", "240.00 in"]
    totals = {label: readings for label, *readings in question["totals"]}
    assert totals["Money in"] == totals["Money out"][::-1]
    assert totals["Balance at the end"][0].replace("held", "owed") == totals["Balance at the end"][1]
    assert all(row["picture"].startswith("data:image/png") for row in question["rows"])
    press(screen, "reading", question="signs", number=1)
    assert panel.readings == {"signs": 1}
    press(screen, "reading", question="signs", number=0)
    assert panel.readings == {"signs": 0}
    press(screen, "undo")
    press(screen, "undo")
    assert panel.readings == {}
    press(screen, "reading", question="nonsense", number=1)
    assert screen.segment_editor.problem
