"""Putting a case off: why, by whom and when is kept, and it is nobody's meanwhile."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from places import open_folder
from review.racing import run_together

from evalkit.classification.schema import DocumentType
from evalkit.core.clocks import format_iso_seconds
from evalkit.errors import CaseTaken, EvalkitError, NotFound, ReviewConflict, ReviewRefused
from evalkit.review import ReviewSession, publish_packet_unless_frozen, withdraw_packet_unless_frozen
from evalkit.review.case_files import read_packet
from evalkit.review.claiming import reconcile_statuses_with_claims
from evalkit.review.ground_truth import find_newest_revision
from evalkit.review.index_rebuild import reindex
from evalkit.store import Deferral

pytestmark = pytest.mark.usefixtures("database")

AT = "2025-02-01T10:40:00+00:00"
WHY = "the second fax is awaited"


@pytest.fixture
def case(build: Any, workspace: Any) -> str:
    """One pending case."""
    return workspace.publish(build.single("Other"), [build.issue()]).case_id


def status(desk: Any, case_id: str = "doc2_6") -> str:
    """What index and packet say: the same."""
    rows = {row["case_id"]: row["review_status"] for row in desk.index.list_cases_worst_first()}
    assert rows[case_id] == read_packet(desk.files, case_id).review_status
    return rows[case_id]


def put_off(tab: ReviewSession, case_id: str, reason: str = WHY, notes: str = "as far as I came") -> str:
    return tab.defer_case_and_get_time(case_id, tab.open_and_claim_case(case_id).draft.set_notes(notes), reason)


def test_a_case_is_put_off_with_its_draft_and_the_reason(case: str, workspace: Any, open_tab: Any) -> None:
    lee, kim = open_tab("dr_lee"), open_tab("dr_kim")
    assert put_off(lee, case, f" {WHY}\n") == AT
    assert status(workspace) == "deferred"
    assert workspace.index.claims.map_live_claims_by_case_id(AT) == {}
    assert workspace.index.deferrals.list_all() == [Deferral(case, "dr_lee", WHY, AT)]
    assert find_newest_revision(workspace.files, case) == 0
    found = kim.open_and_claim_case(case)
    assert found.deferral == Deferral(case, "dr_lee", WHY, AT)
    assert found.draft.notes == ""
    assert status(workspace) == "in_review"
    kim.release_case(case)
    assert status(workspace) == "deferred"
    again = lee.open_and_claim_case(case)
    assert (again.draft.notes, again.draft_saved_at) == ("as far as I came", AT)
    assert list(workspace.helper().list_pending_reviews()["review_status"]) == ["deferred"]


@pytest.mark.parametrize("reason", ["", " \n"])
def test_putting_off_needs_a_reason(case: str, workspace: Any, open_tab: Any, reason: str) -> None:
    with pytest.raises(ReviewRefused, match="without a reason"):
        put_off(open_tab("dr_lee"), case, reason)
    assert (status(workspace), workspace.index.deferrals.list_all()) == ("in_review", [])


def test_it_lasts_until_the_next_review(case: str, workspace: Any, open_tab: Any) -> None:
    lee = open_tab("dr_lee")
    put_off(lee, case)
    put_off(open_tab("dr_kim"), case, "so it is")
    assert workspace.index.deferrals.find(case).reviewer == "dr_kim"
    found = lee.open_and_claim_case(case)
    lee.submit_review(case, found.draft, undeterminable_reason="illegible")
    assert (status(workspace), workspace.index.deferrals.list_all()) == ("completed", [])
    assert lee.open_and_claim_case(case).deferral is None
    workspace.helper().reopen(case, "it can be read")
    assert status(workspace) == "pending"
    put_off(lee, case)
    workspace.helper("dr_kim").save_review(case, corrected_dominant_type="Clinical Note")
    assert (status(workspace), workspace.index.deferrals.list_all()) == ("completed", [])


def test_what_is_not_ones_own_or_closed_is_not_put_off(case: str, workspace: Any, open_tab: Any) -> None:
    lee, kim = open_tab("dr_lee"), open_tab("dr_kim")
    draft = lee.open_and_claim_case(case).draft
    kim.open_and_claim_case(case, take_over=True)
    with pytest.raises(CaseTaken, match="dr_kim"):
        lee.defer_case_and_get_time(case, draft, WHY)
    kim.submit_review(case, draft, undeterminable_reason="illegible")
    with pytest.raises(ReviewConflict, match="reviewed after"):
        lee.defer_case_and_get_time(case, draft, WHY)
    with pytest.raises(ReviewRefused, match="not open in this tab"):
        kim.defer_case_and_get_time(case, draft, WHY)
    kim.open_and_claim_case(case)
    with pytest.raises(ReviewRefused, match="is closed"):
        kim.defer_case_and_get_time(case, draft, WHY)
    assert (status(workspace), workspace.index.deferrals.list_all()) == ("completed", [])


def test_a_claim_that_ran_out_leaves_it_put_off(case: str, workspace: Any, open_tab: Any, clock: Any) -> None:
    put_off(open_tab("dr_lee"), case)
    kim = open_tab("dr_kim")
    kim.open_and_claim_case(case)
    clock.wait(minutes=15)
    reconcile_statuses_with_claims(workspace.files, workspace.index, format_iso_seconds(clock()))
    assert status(workspace) == "deferred"
    kim.renew_claim(case)
    assert status(workspace) == "in_review"


def test_a_rebuilt_index_still_says_so(case: str, workspace: Any, open_tab: Any) -> None:
    put_off(open_tab("dr_lee"), case)
    reindex(open_folder(workspace.root))
    assert (status(workspace), workspace.index.deferrals.find(case).reason) == ("deferred", WHY)


def test_a_new_run_leaves_it_put_off_or_forgets_it(
    case: str, build: Any, workspace: Any, open_tab: Any, clock: Any
) -> None:
    put_off(open_tab("dr_lee"), case)
    packet = read_packet(workspace.files, case)
    fresh = packet.model_copy(update={"review_status": "pending"})
    for newer in (fresh, fresh.model_copy(update={"decision_rule": "8"})):
        publish_packet_unless_frozen(workspace.files, workspace.index, newer, clock=clock)
        assert status(workspace) == "deferred"
        assert read_packet(workspace.files, case).decision_rule == newer.decision_rule
    assert withdraw_packet_unless_frozen(workspace.files, workspace.index, case, clock=clock) is True
    assert workspace.index.deferrals.list_all() == []
    publish_packet_unless_frozen(workspace.files, workspace.index, fresh, clock=clock)
    assert status(workspace) == "pending"


def test_a_withdrawn_second_opinion_is_nobodys(build: Any, workspace: Any, open_tab: Any) -> None:
    workspace.publish(build.single("Other"), [build.issue()])
    lee, kim = open_tab("dr_lee"), open_tab("dr_kim")
    lee.submit_and_request_second_opinion(
        "doc2_6", lee.open_and_claim_case("doc2_6").draft.set_segment_type(0, DocumentType.GENOMIC_REPORT), WHY
    )
    put_off(kim, "doc2_6.second")
    assert status(workspace, "doc2_6.second") == "deferred"
    reindex(open_folder(workspace.root))
    assert status(workspace, "doc2_6.second") == "deferred"
    workspace.index.deferrals.remove("doc2_6.second")
    workspace.helper("dr_lee").reopen("doc2_6", "hm")
    with pytest.raises(NotFound):
        kim.open_and_claim_case("doc2_6.second")


def test_of_putting_off_and_submitting_at_once_the_review_stands(build: Any, workspace: Any, open_tab: Any) -> None:
    lee, kim = open_tab("dr_lee"), open_tab("dr_kim")
    for turn in range(40):
        case_id = workspace.publish(build.single("Other"), doc_id=f"doc_{turn}").case_id
        drafts = [one.open_and_claim_case(case_id, take_over=True).draft.set_notes("mine") for one in (lee, kim)]
        workspace.index.claims.remove(case_id)
        outcomes = run_together(
            partial(lee.defer_case_and_get_time, case_id, drafts[0], WHY),
            partial(kim.submit_review, case_id, drafts[1], undeterminable_reason="illegible"),
        )
        deferred, submitted = (not isinstance(one, EvalkitError) for one in outcomes)
        # Who puts off first gives the case back, and the other may still submit it.
        assert submitted
        assert find_newest_revision(workspace.files, case_id) == 1
        assert deferred or isinstance(outcomes[0], CaseTaken | ReviewConflict)
    assert workspace.index.deferrals.list_all() == []
    assert {row["review_status"] for row in workspace.index.list_cases_worst_first()} == {"completed"}
