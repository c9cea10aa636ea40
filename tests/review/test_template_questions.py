"""A doubt that only a person can settle: two readings, one of them chosen, and the template says who decided."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from places import open_folder
from statements.spoilt import Spoilt, publish_template_case
from statements.undecided import draw_month, undecided_case

from evalkit.documents.readers import read_document
from evalkit.errors import ReviewRefused
from evalkit.review import Draft, TemplateReviewCase
from evalkit.review.template_editing import apply_choice, read_stored_template
from evalkit.statements.alternative_readings import confirm_directions
from evalkit.statements.applied_template import AppliedTemplate
from evalkit.statements.statement_template import TemplateStatus


@pytest.fixture(scope="module", params=["sign_logic", "date_format"])
def doubt(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Spoilt:
    return undecided_case(tmp_path_factory.mktemp("undecided"), "doubt", request.param)


@pytest.fixture(scope="module")
def signs(tmp_path_factory: pytest.TempPathFactory) -> Spoilt:
    return undecided_case(tmp_path_factory.mktemp("undecided"), "signs")


def opened(workspace: Any, open_tab: Any, one: Spoilt) -> tuple[Any, TemplateReviewCase, Draft]:
    publish_template_case(workspace.files, workspace.index, one)
    tab = open_tab()
    case = tab.open_and_claim_case(one.case_id)
    assert isinstance(case, TemplateReviewCase)
    draft = case.mark_target_and_page_seen(case.draft.show_page_and_mark_seen(1), "semantic_financial_001", 1)
    return tab, case, draft


def question_of(one: Spoilt) -> str:
    return {"sign_logic": "signs", "date_format": "dates"}[one.case.issues[0].issue.category]


@pytest.mark.parametrize("number", [0, 1])
def test_a_chosen_reading_becomes_stable_and_names_a_person(
    workspace: Any, open_tab: Any, doubt: Spoilt, number: int, tmp_path: Path
) -> None:
    tab, case, draft = opened(workspace, open_tab, doubt)
    assert case.explain_approval_block(draft) == "Choose first which of the two readings is right."
    with pytest.raises(ReviewRefused, match="which of the two readings"):
        tab.submit_review(doubt.case_id, draft, validate=True)
    first, second = (reading.statement.transactions for reading in case.apply_both_readings(question_of(doubt)))
    draft = case.choose_reading(draft, question_of(doubt), 1 - number)
    draft = case.choose_reading(draft, question_of(doubt), number)
    assert case.explain_approval_block(draft) is None
    assert case.describe_changes(draft)
    tab.submit_review(doubt.case_id, draft)
    stored = read_stored_template(workspace.files, doubt.case.template_id)
    assert stored is not None
    assert (stored.status, stored.version) == (TemplateStatus.STABLE, 2)
    assert AppliedTemplate.create(stored, doubt.bundle).statement.transactions == (first, second)[number]
    if question_of(doubt) == "dates":
        assert stored.dates.alternative_formats == ()
        return
    assert stored.amounts.sign_proof == ("person",)
    path = tmp_path / "next.pdf"
    path.write_bytes(draw_month(3).pdf)
    next_month = read_document(path, doc_id="next", processing_timestamp="")
    amounts = [row.amount for row in AppliedTemplate.create(stored, next_month).statement.transactions]
    assert amounts == [row.amount * (1 if number else -1) for row in draw_month(3).rows]


def test_the_readings_are_opposite_and_meet_the_same_sums(workspace: Any, open_tab: Any, signs: Spoilt) -> None:
    _, case, _ = opened(workspace, open_tab, signs)
    first, second = case.apply_both_readings("signs")
    assert [row.amount for row in first.statement.transactions] == [
        -row.amount for row in second.statement.transactions
    ]
    assert first.has_all_sums_met
    assert second.has_all_sums_met


def test_edges_that_were_moved_stay_where_a_reading_is_chosen(workspace: Any, open_tab: Any, signs: Spoilt) -> None:
    _, case, draft = opened(workspace, open_tab, signs)
    draft = case.move_edge(draft, "region.0.top", 0.1)
    for number in (1, 0, 1):
        draft = case.choose_reading(draft, "signs", number)
        assert case.get_template(draft).regions[0].box[1] == 0.1
    for question, number in (("signs", 2), ("nonsense", 0), ("signs", -1)):
        with pytest.raises(ReviewRefused):
            case.choose_reading(draft, question, number)


def test_signs_chosen_in_the_settings_are_decided_too(workspace: Any, open_tab: Any, signs: Spoilt) -> None:
    _, case, draft = opened(workspace, open_tab, signs)
    draft = case.edit_template(draft, apply_choice, "unmarked", "withdrawal")
    assert case.get_template(draft).amounts.sign_proof == ("person",)
    assert case.edit_template(draft, apply_choice, "unmarked", "withdrawal") == draft


def test_a_program_must_decide_it_too(workspace: Any, signs: Spoilt) -> None:
    publish_template_case(workspace.files, workspace.index, signs)
    helper = workspace.helper()
    with pytest.raises(ReviewRefused, match="which of the two readings"):
        helper.save_review(signs.case_id, agrees=True)
    helper.save_review(signs.case_id, corrected_template=confirm_directions(signs.sound))
    stored = read_stored_template(open_folder(workspace.root), signs.case.template_id)
    assert stored is not None
    assert stored.amounts.sign_proof == ("person",)
