"""Experts answer cases, adjudicators decide between two answers, analysts look; held where a decision is written."""

from __future__ import annotations

import json
from typing import Any

import pytest
from review.test_opinions import ADJUDICATION, BASE, GENOMIC, PATHOLOGY, RADIOLOGY, SECOND, answer, answered, ask, base

from evalkit.errors import ReviewRefused, StoreError, UsageError
from evalkit.review import SMEReviewHelper
from evalkit.review.case import ReviewCase
from evalkit.review.case_files import read_review
from evalkit.review.ground_truth import find_newest_revision
from evalkit.review.permissions import READ_ONLY_SENTENCE
from evalkit.review.queue import QueueQuery
from evalkit.review.roster import ReviewerRoster
from evalkit.store import ROSTER_FILE, review_file_name

__all__ = ["base"]


@pytest.fixture
def roster(workspace: Any) -> ReviewerRoster:
    """Of everybody here an expert."""
    made = ReviewerRoster(workspace.files)
    for name in ("dr_lee", "dr_kim", "dr_ito", "dr_roe"):
        made.add_reviewer_or_replace_code(name)
    return made


@pytest.fixture
def differ(base: Any, roster: ReviewerRoster, open_tab: Any) -> ReviewerRoster:
    """dr_lee and dr_kim gave different answers."""
    ask(open_tab("dr_lee"))
    answer(open_tab("dr_kim"), SECOND, PATHOLOGY)
    return roster


def offered(desk: Any) -> tuple[str | None, bool, bool]:
    """The next case, and what the queue says of the adjudication."""
    row = next(one for one in desk.load_queue_page().rows if one.case_id == ADJUDICATION)
    return desk.choose_next_case_id(), row.needs_adjudicator, row.is_barred


def test_while_nobody_is_named_any_third_expert_decides(differ: ReviewerRoster, workspace: Any, open_tab: Any) -> None:
    assert offered(open_tab("dr_ito")) == (ADJUDICATION, False, False)
    assert answer(open_tab("dr_ito"), ADJUDICATION, RADIOLOGY).review.role == "expert"
    assert "role" not in json.loads(workspace.files.read_bytes(review_file_name(ADJUDICATION, 1)))


def test_an_adjudicator_alone_decides_once_there_is_one(differ: ReviewerRoster, workspace: Any, open_tab: Any) -> None:
    ito, roe = open_tab("dr_ito"), open_tab("dr_roe")
    draft = answered(ito.open_and_claim_case(ADJUDICATION), RADIOLOGY)
    differ.set_role("dr_roe", "adjudicator")
    assert offered(ito) == (None, True, False)
    # The case was open already: its decision is refused where it would be written, and from a notebook too.
    helper = SMEReviewHelper(workspace.root, "dr_ito")
    for decide in (
        lambda: ito.submit_review(ADJUDICATION, draft),
        lambda: ito.defer_case_and_get_time(ADJUDICATION, draft, "later"),
        lambda: helper.save_review(ADJUDICATION, corrected_dominant_type="Other", base_revision=0),
        lambda: helper.save_review(ADJUDICATION, undeterminable="illegible", base_revision=0),
    ):
        with pytest.raises(ReviewRefused, match="only an adjudicator may decide between the two answers"):
            decide()
    assert find_newest_revision(workspace.files, ADJUDICATION) == 0
    ito.release_case(ADJUDICATION)
    assert offered(roe) == (ADJUDICATION, False, False)
    with pytest.raises(ReviewRefused, match="only an adjudicator may decide"):
        ito.open_and_claim_case(ADJUDICATION)
    assert answer(roe, ADJUDICATION, RADIOLOGY).review.role == "adjudicator"
    assert read_review(workspace.files, ADJUDICATION, 1).role == "adjudicator"
    assert json.loads(workspace.files.read_bytes(review_file_name(ADJUDICATION, 1)))["role"] == "adjudicator"
    with pytest.raises(ReviewRefused, match="only an adjudicator may decide"):
        helper.reopen(ADJUDICATION, "I would have said otherwise")


def test_adjudicator_with_own_answer_does_not_block_others(differ: ReviewerRoster, open_tab: Any) -> None:
    differ.set_role("dr_lee", "adjudicator")
    assert offered(open_tab("dr_lee")) == (None, False, True)
    assert offered(open_tab("dr_ito")) == (ADJUDICATION, False, False)
    differ.set_role("dr_roe", "adjudicator")
    assert offered(open_tab("dr_ito")) == (None, True, False)
    differ.set_role("dr_roe", "expert")
    answer(open_tab("dr_ito"), ADJUDICATION, GENOMIC)


def test_an_adjudicator_does_all_that_an_expert_does(base: Any, roster: ReviewerRoster, open_tab: Any) -> None:
    roster.set_role("dr_lee", "adjudicator")
    roster.set_role("dr_kim", "adjudicator")
    assert open_tab("dr_lee").choose_next_case_id() == BASE
    assert ask(open_tab("dr_lee")).review.role == "adjudicator"
    assert answer(open_tab("dr_kim"), SECOND, GENOMIC).review.outcome == "corrected"


def test_an_analyst_sees_cases_and_decides_nothing(
    base: Any, roster: ReviewerRoster, workspace: Any, open_tab: Any
) -> None:
    open_tab("dr_lee").open_and_claim_case(BASE)
    roster.set_role("dr_roe", "analyst")
    roe = open_tab("dr_roe")
    queue = roe.load_queue_page(QueueQuery(show_finished=True))
    assert (queue.role, [row.case_id for row in queue.rows], roe.choose_next_case_id()) == ("analyst", [BASE], None)
    case: ReviewCase = roe.open_and_claim_case(BASE, take_over=True)
    assert (case.is_locked, case.is_completed, case.explain_permanent_validation_block()) == (
        True,
        False,
        READ_ONLY_SENTENCE,
    )
    roe.renew_claim(BASE)
    draft = answered(case, GENOMIC)
    assert case.explain_submission_block(draft) == READ_ONLY_SENTENCE
    helper = SMEReviewHelper(workspace.root, "dr_roe")
    for decide in (
        lambda: roe.submit_review(BASE, draft),
        lambda: roe.submit_review(BASE, draft, undeterminable_reason="illegible"),
        lambda: roe.submit_and_request_second_opinion(BASE, draft, "look"),
        lambda: roe.defer_case_and_get_time(BASE, draft, "later"),
        lambda: roe.save_draft_and_get_time(BASE, draft),
        lambda: helper.save_review(BASE, agrees=True, base_revision=0),
    ):
        with pytest.raises(ReviewRefused, match="your role is analyst"):
            decide()
    assert (
        workspace.index.claims.map_live_claims_by_case_id("2025-02-01T10:41:00+00:00")[BASE].reviewer == "dr_lee"
    )  # not taken over
    assert [view.reviewer for view in workspace.index.view_log.list_all()] == ["dr_lee", "dr_roe"]
    lee = open_tab("dr_lee")
    lee.submit_review(BASE, answered(lee.open_and_claim_case(BASE), GENOMIC))
    with pytest.raises(ReviewRefused, match="your role is analyst"):
        helper.reopen(BASE, "no")


def test_demoted_analyst_is_refused_and_blocks_no_one(
    base: Any, roster: ReviewerRoster, open_tab: Any, clock: Any
) -> None:
    lee = open_tab("dr_lee")
    draft = answered(lee.open_and_claim_case(BASE), GENOMIC)
    roster.set_role("dr_lee", "analyst")
    for _ in range(16):
        clock.wait(minutes=1)
        with pytest.raises(ReviewRefused, match="your role is analyst"):
            lee.renew_claim(BASE)
    lee.save_draft_and_get_time(BASE, draft)  # what they had said by then may be of use
    with pytest.raises(ReviewRefused, match="your role is analyst"):
        lee.submit_review(BASE, draft)
    assert open_tab("dr_kim").choose_next_case_id() == BASE
    open_tab("dr_kim").open_and_claim_case(BASE)


def test_roles_are_kept_beside_the_codes(roster: ReviewerRoster, workspace: Any) -> None:
    assert (
        json.loads(workspace.files.read_bytes(ROSTER_FILE))["schema_version"] == 1
    )  # an older evalkit may go on with it
    roster.set_role("dr_roe", "analyst")
    stored = json.loads(workspace.files.read_bytes(ROSTER_FILE))
    assert (stored["schema_version"], stored["roles"]) == (2, {"dr_roe": "analyst"})
    code = roster.add_reviewer_or_replace_code("dr_roe")
    assert (roster.find_reviewer_by_code(code), roster.read_roles()["dr_roe"]) == ("dr_roe", "analyst")
    roster.add_reviewer_or_replace_code("dr_roe", role="expert")
    roster.add_reviewer_or_replace_code("dr_new", role="adjudicator")
    assert roster.read_roles() == dict.fromkeys(("dr_ito", "dr_kim", "dr_lee"), "expert") | {
        "dr_new": "adjudicator",
        "dr_roe": "expert",
    }
    roster.set_role("dr_kim", "analyst")
    assert roster.list_deciding_reviewers() == ["dr_ito", "dr_lee", "dr_new", "dr_roe"]
    assert roster.get_permissions("dr_kim").is_read_only
    assert roster.get_permissions("from a notebook").role == "expert"
    with pytest.raises(UsageError, match="no reviewer of this output folder is named 'dr_nobody'"):
        roster.set_role("dr_nobody", "analyst")


@pytest.mark.parametrize("roles", ["[]", '{"dr_lee": "king"}', '{"dr_lee": 1}', "null"])
def test_a_roster_with_roles_that_are_none_lets_nobody_in(roster: ReviewerRoster, workspace: Any, roles: str) -> None:
    (workspace.root / ROSTER_FILE).write_text(f'{{"schema_version": 2, "reviewers": {{}}, "roles": {roles}}}')
    with pytest.raises(StoreError):
        roster.get_permissions("dr_lee")
