"""A case about fields on the screen, without a browser."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pymupdf
import pytest
from benchmarks.tax_forms import draw, form_1099, form_w2
from ipywidgets import Widget
from places import open_folder

from evalkit.pipeline import extract
from evalkit.review import SMEReviewHelper
from evalkit.review.kinds.extraction import FieldReviewCase
from evalkit.review.session import compute_case_address
from evalkit.settings import Settings
from widgets.field_panel import FieldPanel, _strip_grader_tag, build_form_ribbon, format_stop_reason
from widgets.workbench import Workbench

CASE = "forms.extraction"
TAX, TIPS = "1.ss_tax_withheld", "1.box_7"


@pytest.fixture(scope="module")
def forms(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output of a file with a W-2 that contradicts itself, a page of prose, and a 1099-NEC."""
    folder = tmp_path_factory.mktemp("forms")
    document = pymupdf.open()
    one = form_w2(random.Random(1))
    right = [
        replace(box, value="9,999.99") if box.label.startswith("Social security tax") else box for box in one.right
    ]
    draw(replace(one, right=right), random.Random(4), document.new_page(width=612, height=792))
    draw(form_1099(random.Random(2), "1099-NEC"), random.Random(4), document.new_page(width=612, height=792))
    document.save(folder / "forms.pdf")
    extract([folder / "forms.pdf"], output=folder / "output", settings=Settings(ocr="none", workers=1))
    return folder / "output"


@pytest.fixture
def screen(forms: Path, tmp_path: Path) -> Workbench:
    """That case, opened, in a copy."""
    shutil.copytree(forms, tmp_path / "output")
    workbench = Workbench(open_folder(tmp_path / "output"), "dr_lee")
    workbench.dispatch_message({"action": "hello", "tab": "tab-1", "case": None})
    workbench.dispatch_message({"action": "next"})
    return workbench


def press(screen: Workbench, action: str, **more: Any) -> None:
    screen.dispatch_message({"action": action, "token": screen.page_pane.version, **more})


def test_the_fields_stand_in_place_of_the_segments(screen: Workbench) -> None:
    assert screen.case.packet.case_id == CASE
    assert isinstance(screen.right_column.children[0], FieldPanel)
    assert screen.controller.kind == "extraction"
    assert screen.panels["extraction"].selected == TAX
    assert screen.panels["extraction"].place == "Highlighted on page 1."
    assert [mark["style"] for mark in screen.page_pane.marks] == ["found"]
    assert screen.panels["extraction"].values[TAX] == {
        "value": "9999.99",
        "status": "found",
        "words": "found",
        "is_yours": False,
    }


def test_the_fields_come_with_their_values(
    screen: Workbench, record_states: Callable[[Widget], list[dict[str, Any]]]
) -> None:
    states = record_states(screen.panels["extraction"])
    names = set(screen.panels["extraction"].values)
    screen.dispatch_message({"action": "queue"})
    screen.panels["extraction"].values = {"1.of another case": {}}
    screen.dispatch_message({"action": "next"})
    states = [one for one in states if one["case"].get("token") == screen.page_pane.version]
    assert states
    assert [one for one in states if set(one["values"]) != names] == []


def test_what_is_said_of_a_form_is_said_in_words(screen: Workbench) -> None:
    first, second = screen.panels["extraction"].case["forms"]
    assert (first["title"], second["title"]) == ("W-2", "1099-NEC")
    assert first["decision"] == "You are asked because amounts on it contradict each other."
    assert second["decision"] == "Accepted by the program."
    (attempt,) = first["history"]
    assert attempt["title"].startswith("Reading 1: as Form W-2 (Wage and Tax Statement); 99")
    assert attempt["found"] == ["Social security tax is not 6.2% of social security wages and tips - please verify"]
    assert first["stopped"] == "Stopped: the form as a whole passed its checks."
    assert screen.panels["extraction"].case["subline"] == "1 doubt · 1 of 2 reports and forms"


def test_the_ribbon_has_every_page_once(screen: Workbench) -> None:
    assert [(one["start"], one["end"], one["type"]) for one in screen.page_pane.segments] == [
        (1, 1, "W-2"),
        (2, 2, "1099-NEC"),
    ]
    case = screen.case
    assert isinstance(case, FieldReviewCase)
    wide = case.packet.model_copy(update={"total_pages": 4})
    runs = build_form_ribbon(replace(case, packet=wide))
    assert [(one["start"], one["end"], one["type"]) for one in runs][-1] == (3, 4, "no form")


def test_typed_value_is_checked_by_its_format_only(screen: Workbench) -> None:
    press(screen, "field_edit", field=TAX, is_open=True)
    press(screen, "field_check", field=TAX, text="4,88x")
    assert screen.panels["extraction"].checked["value"] is None
    assert "not a valid currency amount" in screen.panels["extraction"].checked["problem"]
    press(screen, "field_check", field=TAX, text="$4,886.8")
    assert (screen.panels["extraction"].checked["value"], screen.panels["extraction"].checked["problem"]) == (
        "4886.80",
        "",
    )
    assert screen.draft.fields == {}, "looking at it changes nothing"


def test_what_is_typed_and_not_kept_holds_every_decision_back(screen: Workbench, tmp_path: Path) -> None:
    press(screen, "painted", page=1, issue=TAX)
    press(screen, "field_edit", field=TAX, is_open=True)
    press(screen, "field_value", field=TAX, text="4,88x")
    for action in ("validate", "correct", "defer", "second", "queue", "undo"):
        press(screen, action, reason="later")
        assert "not saved yet" in screen.segment_editor.problem
        assert screen.bar.address == compute_case_address(CASE), "what was typed would be lost"
    press(screen, "field_value", field=TAX, text="4,886.80", confirmed="4,886.80")
    checked = screen.panels["extraction"].checked
    assert (checked["value"], checked["is_asked"], screen.draft.fields) == ("4886.80", True, {}), "shown, not kept"
    press(screen, "correct")
    assert "not saved yet" in screen.segment_editor.problem
    press(screen, "field_value", field=TAX, text="4,886.80", confirmed="4886.80")
    assert screen.panels["extraction"].checked["is_kept"]
    assert screen.panels["extraction"].values[TAX]["is_yours"]
    assert "Social security tax withheld: 9999.99 → 4886.80" in [line["text"] for line in screen.segment_editor.record]
    press(screen, "correct")
    assert screen.content_box.children == (screen.queue_panel,), "the queue is empty"
    helper = SMEReviewHelper(tmp_path / "output", "dr_ito")
    (review,) = helper.reviews(CASE)
    assert (review.outcome, review.vouched) == ("corrected", (TAX,))
    helper.close()


def test_unchanged_form_needs_no_second_press(screen: Workbench) -> None:
    press(screen, "field_value", field=TAX, text=" 4886.80")
    assert screen.panels["extraction"].checked["is_kept"]
    assert screen.draft.fields[TAX].value == "4886.80"


def test_selected_text_keeps_its_place(screen: Workbench) -> None:
    place = {"page": 2, "boxes": [[0.1, 0.2, 0.3, 0.4]]}
    press(screen, "field_value", field=TAX, text="4886.80", **place)
    assert screen.draft.fields[TAX].boxes == ((2, 0.1, 0.2, 0.3, 0.4),)
    press(screen, "select", issue_id=TAX)
    assert (screen.page_pane.page, [mark["style"] for mark in screen.page_pane.marks]) == (2, ["found"])
    assert screen.panels["extraction"].place == "Highlighted on page 2."
    press(screen, "field_value", field=TAX, text="4886.80", page=2, boxes=[[0, 0, 9, 9]])
    assert "boxes must be on its page" in screen.segment_editor.problem
    assert screen.draft.fields[TAX].boxes == ((2, 0.1, 0.2, 0.3, 0.4),)


def test_a_form_without_repeated_fields_takes_no_entry(screen: Workbench) -> None:
    press(screen, "field_value", field=TAX, text="12", is_new=True)
    press(screen, "entry_remove", field=TAX, reason="wrong")
    assert "only entries of repeated fields" in screen.segment_editor.problem
    press(screen, "entry_rename", field=TAX, name="other")
    assert screen.draft.fields == {}


def test_statuses_are_said_and_undone(screen: Workbench) -> None:
    press(screen, "field_status", field=TAX, status="ambiguous")
    assert screen.panels["extraction"].values[TAX]["words"] == "ambiguous"
    press(screen, "field_status", field=TAX, status="not_present")
    assert "Social security tax withheld: 9999.99 → not present" in [
        line["text"] for line in screen.segment_editor.record
    ]
    press(screen, "undo")
    press(screen, "undo")
    assert (screen.draft.fields, screen.segment_editor.undo) == ({}, "")
    press(screen, "field_status", field=TIPS, status="found")
    assert "type a value" in screen.segment_editor.problem


def test_a_field_that_stands_nowhere_says_so(screen: Workbench) -> None:
    press(screen, "select", issue_id=TIPS)
    assert screen.page_pane.marks == []
    assert screen.panels["extraction"].place == "The program found no value on page 1; nothing is highlighted."
    press(screen, "field_value", field=TIPS, text="12")
    assert "nothing is highlighted" in screen.panels["extraction"].place


def test_action_on_an_unknown_field_is_answered_in_words(screen: Workbench) -> None:
    for action in ("field_value", "field_check", "field_edit", "field_status"):
        screen.segment_editor.problem = ""
        press(screen, action, field="9.none", text="1", status="found")
        assert "has no field" in screen.segment_editor.problem, action
    assert screen.draft.fields == {}


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("Maximum attempts reached", "it was read as often as allowed"),
        ("Max iterations reached", "it was read as often as allowed"),
        ("Improvement (0.0%) below minimum (5.0%)", "reading it again improved too little"),
        ("The extractor gave no usable answer", "The extractor gave no usable answer"),
    ],
)
def test_why_it_ended_is_said_in_words(reason: str, words: str) -> None:
    assert format_stop_reason(reason) == words


def test_what_a_grader_writes_for_programs_is_left_out() -> None:
    assert _strip_grader_tag("[ERROR:wrong_year:2020:2019] Document is for 2019") == "Document is for 2019"
    assert _strip_grader_tag("Nothing in [brackets] first") == "Nothing in [brackets] first"


MARGINS = "1.margins"


@pytest.fixture
def contradicted(tmp_path: Path) -> Workbench:
    """A pathology report whose margins are negative in one place and positive in another, opened."""
    document = pymupdf.open()
    page = document.new_page()
    lines = ("SURGICAL PATHOLOGY REPORT", "Patient: Jane Roe   DOB: 03/04/1961", "Final Pathologic Diagnosis",
             "Pancreas: Invasive ductal adenocarcinoma, grade 2.", "Pancreatic neck margin: Negative",
             "SMA margin: Positive (tumor at inked margin)", "Gross Description", "Received in formalin.")  # fmt: skip
    for number, line in enumerate(lines):
        page.insert_text((72, 80 + 32 * number), line)
    document.save(tmp_path / "margins.pdf")
    extract([tmp_path / "margins.pdf"], output=tmp_path / "output", settings=Settings(ocr="none", workers=1))
    workbench = Workbench(open_folder(tmp_path / "output"), "dr_lee")
    workbench.dispatch_message({"action": "hello", "tab": "tab-1", "case": None})
    workbench.dispatch_message({"action": "next"})
    return workbench


def find_item(screen: Workbench, name: str) -> dict[str, Any]:
    return next(
        one for form in screen.panels["extraction"].case["forms"] for one in form["items"] if one["name"] == name
    )


def test_a_field_shows_all_its_places(contradicted: Workbench) -> None:
    item = find_item(contradicted, MARGINS)
    assert [(place["value"], place["page"]) for place in item["places"]] == [("positive", 1), ("negative", 1)]
    assert "SMA margin" in item["places"][0]["quote"]
    assert "neck margin" in item["places"][1]["quote"]
    assert contradicted.panels["extraction"].selected == MARGINS
    assert item["issues"][0]["message"].endswith("“positive” on page 1, “negative” on page 1. Which is right?")


def test_a_place_is_shown_on_its_page(contradicted: Workbench) -> None:
    first = contradicted.page_pane.marks
    press(contradicted, "field_place", field=MARGINS, place=1)
    assert contradicted.page_pane.marks
    assert contradicted.page_pane.marks != first
    press(contradicted, "field_place", field=MARGINS, place=0)
    assert contradicted.page_pane.marks == first


@pytest.mark.parametrize(("number", "words"), [(0, "positive"), (1, "negative")])
def test_a_reading_is_taken_as_the_answer(contradicted: Workbench, number: int, words: str) -> None:
    press(contradicted, "field_reading", field=MARGINS, reading=number)
    value = contradicted.panels["extraction"].values[MARGINS]
    assert (value["value"], value["status"], value["is_yours"]) == (words, "found", True)
    answer = contradicted.draft.fields[MARGINS]
    assert bool(answer.boxes) == (number == 1), "the first is where the program read it"
