"""Claims: at most one lives, it ends by itself, and it never decides what the revision decides."""

from __future__ import annotations

import json
import pickle
import sqlite3
import subprocess
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from places import open_folder, open_index
from review.racing import claims_won, race_for_claims, run_together

from evalkit.errors import CaseTaken, EvalkitError, NotFound, ReviewConflict, ReviewRefused, StoreError
from evalkit.review import (
    Draft,
    ReviewCase,
    ReviewSession,
    compute_packet_digest,
    derive_closed_case_rows,
    publish_packet_unless_frozen,
    withdraw_packet_unless_frozen,
)
from evalkit.review.case_files import read_packet
from evalkit.review.ground_truth import find_newest_revision
from evalkit.review.index_rebuild import reindex
from evalkit.store import CaseClaim, OutputIndex, StoredDraft

pytestmark = pytest.mark.usefixtures("database")

SINCE = "2025-02-01T10:40:00+00:00"


@pytest.fixture
def case(build: Any, workspace: Any) -> str:
    """One pending case."""
    return workspace.publish(build.single("Other"), [build.issue()]).case_id


def statuses(desk: Any, case_id: str = "doc2_6") -> tuple[str, str]:
    """What index and packet say."""
    rows = {row["case_id"]: row["review_status"] for row in desk.index.list_cases_worst_first()}
    return rows[case_id], read_packet(desk.files, case_id).review_status


# --- one holder -----------------------------------------------------------------------------------------------------


def test_case_open_elsewhere_names_holder_and_time(case: str, open_tab: Any, clock: Any) -> None:
    open_tab("dr_lee").open_and_claim_case(case)
    clock.wait(minutes=5)
    with pytest.raises(CaseTaken) as refused:
        open_tab("dr_kim").open_and_claim_case(case)
    error = refused.value
    assert (error.holder, error.since, error.same_reviewer) == ("dr_lee", SINCE, False)
    assert error.message == "open by dr_lee since 10:40"
    assert isinstance(error, ReviewRefused)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.holder, again.since, again.same_reviewer) == (CaseTaken, "dr_lee", SINCE, False)
    assert (str(again), again.code) == (str(error), error.code)


def test_a_second_tab_of_the_same_reviewer_is_another_holder(case: str, open_tab: Any) -> None:
    open_tab("dr_lee").open_and_claim_case(case)
    with pytest.raises(CaseTaken) as refused:
        open_tab("dr_lee", "second tab").open_and_claim_case(case)
    assert refused.value.same_reviewer


def test_own_claim_in_a_dead_tab_is_taken_back(case: str, open_tab: Any, clock: Any) -> None:
    dead, tab = open_tab("dr_lee"), open_tab("dr_lee", "second tab")
    dead.save_draft_and_get_time(case, dead.open_and_claim_case(case).draft.set_notes("of the first tab"))
    clock.wait(seconds=30)
    dead.renew_claim(case)
    clock.wait(seconds=20)
    assert (tab.load_queue_page().rows[0].holder, tab.choose_next_case_id()) == ("dr_lee", None)
    with pytest.raises(CaseTaken, match="open in another of your tabs since"):
        tab.open_and_claim_case(case)
    clock.wait(seconds=30)
    assert open_tab("dr_kim").load_queue_page().rows[0].holder == "dr_lee"
    assert (tab.load_queue_page().rows[0].holder, tab.choose_next_case_id()) == (None, case)
    assert tab.open_and_claim_case(case).draft.notes == "of the first tab"
    with pytest.raises(CaseTaken):
        dead.renew_claim(case)


def test_another_reviewer_with_the_same_tab_id_is_another_holder(case: str, open_tab: Any) -> None:
    open_tab("dr_lee", "tab").open_and_claim_case(case)
    with pytest.raises(CaseTaken):
        open_tab("dr_kim", "tab").open_and_claim_case(case)


def test_a_reload_of_the_tab_simply_gets_the_case_back(case: str, open_tab: Any, clock: Any, workspace: Any) -> None:
    before, after = open_tab("dr_lee", "tab"), open_tab("dr_lee", "tab")
    before.open_and_claim_case(case)
    clock.wait(minutes=1)
    after.open_and_claim_case(case)
    before.close()
    (claim,) = workspace.index.claims.map_live_claims_by_case_id(SINCE).values()
    assert (claim.since, claim.expires_at) == (SINCE, "2025-02-01T10:56:00+00:00")


def test_reloaded_page_keeps_its_claim_despite_late_release(
    case: str, open_tab: Any, clock: Any, workspace: Any
) -> None:
    before, after = open_tab("dr_lee", "tab"), open_tab("dr_lee", "tab")
    before.open_and_claim_case(case)
    clock.wait(seconds=1)
    after.open_and_claim_case(case)
    before.renew_claim(case)  # a pulse that waited in the old page's kernel
    before.release_case(case)
    assert statuses(workspace) == ("in_review", "in_review")
    clock.wait(minutes=5)
    after.renew_claim(case)
    after.release_case(case)
    assert statuses(workspace) == ("pending", "pending")


def test_who_leaves_the_desk_gives_back_what_is_open_there(case: str, open_tab: Any, workspace: Any) -> None:
    lee, kim = open_tab("dr_lee"), open_tab("dr_kim")
    draft = lee.open_and_claim_case(case).draft.set_notes("mine")
    lee.save_draft_and_get_time(case, draft)
    lee.close()
    assert statuses(workspace) == ("pending", "pending")
    kim.open_and_claim_case(case)
    kim.release_case(case)
    assert open_tab("dr_lee").open_and_claim_case(case).draft.notes == "mine"


def test_failed_release_can_be_retried_and_blocks_no_other(
    case: str, open_tab: Any, workspace: Any, build: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    lee, given_back = open_tab("dr_lee"), []
    for other in ("before", "after"):
        workspace.publish(build.single("Other"), [build.issue()], doc_id=other)
    for case_id in ("before", case, "after"):
        lee.open_and_claim_case(case_id)
    with monkeypatch.context() as patch:
        patch.setattr("evalkit.review.session.hold_case_write_lock", _busy)
        with pytest.raises(StoreError, match="busy"):
            lee.release_case(case)
        patch.setattr(
            lee, "release_case", lambda case_id: given_back.append(case_id) or ReviewSession.release_case(lee, case_id)
        )
        with pytest.raises(StoreError, match="busy"):
            lee.close()
    assert sorted(given_back) == sorted(["before", case, "after"])
    assert statuses(workspace) == ("in_review", "in_review")
    lee.renew_claim(case)
    lee.release_case(case)
    assert statuses(workspace) == ("pending", "pending")


def _busy(*_: Any) -> Any:
    raise StoreError("busy", code="STORE-BUSY", remedy="Try again.")


def test_a_claim_runs_out_after_15_minutes(case: str, open_tab: Any, clock: Any) -> None:
    open_tab("dr_lee").open_and_claim_case(case)
    kim = open_tab("dr_kim")
    clock.wait(minutes=14, seconds=59)
    with pytest.raises(CaseTaken):
        kim.open_and_claim_case(case)
    clock.wait(seconds=1)
    kim.open_and_claim_case(case)


def test_renewing_keeps_the_claim_and_its_beginning(case: str, open_tab: Any, clock: Any, workspace: Any) -> None:
    lee, kim = open_tab("dr_lee"), open_tab("dr_kim")
    lee.open_and_claim_case(case)
    for _ in range(5):
        clock.wait(minutes=10)
        lee.renew_claim(case)
    with pytest.raises(CaseTaken) as refused:
        kim.open_and_claim_case(case)
    assert refused.value.since == SINCE
    clock.wait(minutes=15)
    kim.open_and_claim_case(case)
    with pytest.raises(CaseTaken, match="dr_kim"):
        lee.renew_claim(case)


def test_a_heartbeat_does_not_write_each_time(case: str, open_tab: Any, clock: Any, workspace: Any) -> None:
    lee = open_tab("dr_lee")
    lee.open_and_claim_case(case)
    expiries = []
    for _ in range(40):
        clock.wait(seconds=2)
        lee.renew_claim(case)
        (claim,) = workspace.index.claims.map_live_claims_by_case_id(SINCE).values()
        expiries.append(claim.expires_at)
    assert len(set(expiries)) == 6


def test_an_expired_claim_that_nobody_took_is_taken_again(case: str, open_tab: Any, clock: Any, workspace: Any) -> None:
    lee, kim = open_tab("dr_lee"), open_tab("dr_kim")
    lee.open_and_claim_case(case)
    clock.wait(hours=2)
    assert kim.load_queue_page().rows[0].status == "pending"
    assert statuses(workspace) == ("pending", "pending")
    lee.renew_claim(case)
    assert statuses(workspace) == ("in_review", "in_review")
    with pytest.raises(CaseTaken) as refused:
        kim.open_and_claim_case(case)
    assert refused.value.since == "2025-02-01T12:40:00+00:00"


def test_taking_over_on_purpose_and_the_loser_is_told(case: str, open_tab: Any, workspace: Any) -> None:
    lee, kim = open_tab("dr_lee"), open_tab("dr_kim")
    mine = lee.open_and_claim_case(case).draft.set_notes("mine")
    kim.open_and_claim_case(case, take_over=True)
    with pytest.raises(CaseTaken, match="open by dr_kim"):
        lee.renew_claim(case)
    with pytest.raises(CaseTaken, match="open by dr_kim"):
        lee.submit_review(case, mine.set_dominant_type("Clinical Note"))
    lee.save_draft_and_get_time(case, mine)
    lee.release_case(case)
    assert [row.holder for row in lee.load_queue_page().rows] == ["dr_kim"]
    assert find_newest_revision(workspace.files, case) == 0
    kim.release_case(case)
    assert lee.open_and_claim_case(case).draft.notes == "mine"


def test_answer_on_expired_claim_is_saved_and_claim_removed(
    case: str, open_tab: Any, clock: Any, workspace: Any
) -> None:
    lee = open_tab("dr_lee")
    draft = lee.open_and_claim_case(case).draft.set_dominant_type("Clinical Note")
    clock.wait(hours=2)
    assert lee.submit_review(case, draft).revision == 1
    assert workspace.index.claims.map_live_claims_by_case_id("") == {}


def test_case_taken_over_during_submission_is_not_submitted(
    case: str, open_tab: Any, workspace: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    lee, kim = open_tab("dr_lee"), open_tab("dr_kim")
    draft = lee.open_and_claim_case(case).draft.set_dominant_type("Clinical Note")
    said = ReviewCase.build_submission

    def meanwhile(*args: Any, **words: Any) -> Any:
        kim.open_and_claim_case(case, take_over=True)
        return said(*args, **words)

    monkeypatch.setattr(ReviewCase, "build_submission", meanwhile)
    with pytest.raises(CaseTaken, match="dr_kim"):
        lee.submit_review(case, draft)
    assert find_newest_revision(workspace.files, case) == 0


def test_case_closed_during_submission_stays_closed(
    case: str, open_tab: Any, workspace: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    lee = open_tab("dr_lee")
    draft = lee.open_and_claim_case(case).draft.set_dominant_type("Clinical Note")
    said = ReviewCase.build_submission

    def meanwhile(*args: Any, **words: Any) -> Any:
        workspace.helper("dr_kim").save_review(case, corrected_dominant_type="Other", base_revision=0)
        return said(*args, **words)

    monkeypatch.setattr(ReviewCase, "build_submission", meanwhile)
    with pytest.raises(ReviewConflict):
        lee.submit_review(case, draft)
    assert workspace.index.claims.map_live_claims_by_case_id(SINCE) == {}
    assert workspace.truth()["reviewer"] == "dr_kim"


def test_nothing_is_renewed_or_submitted_that_is_not_open_here(case: str, open_tab: Any) -> None:
    lee = open_tab("dr_lee")
    draft = lee.open_and_claim_case(case).draft
    lee.release_case(case)
    for call in (
        partial(lee.renew_claim, case),
        partial(lee.submit_review, case, draft, undeterminable_reason="illegible"),
    ):
        with pytest.raises(ReviewRefused, match="not open in this tab"):
            call()
    lee.release_case(case)
    with pytest.raises(NotFound, match="nothing"):
        lee.open_and_claim_case("nothing")


def test_the_loser_of_a_submitted_case_hears_of_the_review(case: str, open_tab: Any, workspace: Any) -> None:
    lee, kim = open_tab("dr_lee"), open_tab("dr_kim")
    mine = lee.open_and_claim_case(case).draft.set_dominant_type("Clinical Note")
    kim.submit_review(case, kim.open_and_claim_case(case, take_over=True).draft.set_dominant_type("Pathology Report"))
    for call in (partial(lee.renew_claim, case), partial(lee.submit_review, case, mine)):
        with pytest.raises(ReviewConflict, match="reviewed after"):
            call()
    lee.save_draft_and_get_time(case, mine)
    found = lee.open_and_claim_case(case)
    assert found.is_completed
    assert found.draft.dominant_type == "Pathology Report"  # a closed case shows what was decided
    lee.renew_claim(case)
    assert workspace.index.claims.map_live_claims_by_case_id(SINCE) == {}
    assert lee.load_queue_page().rows == ()
    with pytest.raises(ReviewRefused, match="is closed"):
        lee.submit_review(case, mine)


# --- what claims freeze and show ------------------------------------------------------------------------------------


def test_claim_sets_index_and_packet_but_not_the_hash(case: str, open_tab: Any, workspace: Any) -> None:
    before = compute_packet_digest(read_packet(workspace.files, case))
    lee = open_tab("dr_lee")
    assert lee.open_and_claim_case(case).packet == read_packet(workspace.files, case)
    assert statuses(workspace) == ("in_review", "in_review")
    assert compute_packet_digest(read_packet(workspace.files, case)) == before
    lee.release_case(case)
    assert statuses(workspace) == ("pending", "pending")


def test_a_run_leaves_a_claimed_packet_alone(build: Any, case: str, open_tab: Any, workspace: Any, clock: Any) -> None:
    lee = open_tab("dr_lee")
    packet = lee.open_and_claim_case(case).packet
    newer = packet.model_copy(update={"decision_rule": "8", "review_status": "pending"})
    assert publish_packet_unless_frozen(workspace.files, workspace.index, newer, clock=clock) is False
    assert withdraw_packet_unless_frozen(workspace.files, workspace.index, case, clock=clock) is False
    assert read_packet(workspace.files, case) == packet
    assert statuses(workspace) == ("in_review", "in_review")
    clock.wait(minutes=15)
    assert publish_packet_unless_frozen(workspace.files, workspace.index, newer, clock=clock) is True
    assert statuses(workspace) == ("pending", "pending")
    for call in (
        partial(lee.renew_claim, case),
        partial(lee.submit_review, case, Draft.from_packet(packet), undeterminable_reason="x"),
    ):
        with pytest.raises(ReviewConflict, match="run again"):
            call()
    assert not lee.open_and_claim_case(case).is_completed
    lee.release_case(case)
    assert withdraw_packet_unless_frozen(workspace.files, workspace.index, case, clock=clock) is True
    assert lee.load_queue_page().rows == ()


def test_equal_packet_is_not_rewritten_for_an_expired_claim(
    case: str, open_tab: Any, workspace: Any, clock: Any
) -> None:
    packet = open_tab("dr_lee").open_and_claim_case(case).packet
    clock.wait(minutes=15)
    later = packet.model_copy(update={"created_at": "2026-01-01T00:00:00+00:00", "review_status": "pending"})
    assert publish_packet_unless_frozen(workspace.files, workspace.index, later, clock=clock) is False
    assert read_packet(workspace.files, case).created_at == packet.created_at
    assert statuses(workspace) == ("pending", "pending")


def test_a_rebuilt_index_leaves_claims_and_drafts_alone(case: str, open_tab: Any, workspace: Any) -> None:
    lee, kim = open_tab("dr_lee"), open_tab("dr_kim")
    lee.save_draft_and_get_time(case, lee.open_and_claim_case(case).draft.set_notes("mine"))
    reindex(open_folder(workspace.root))
    with pytest.raises(CaseTaken):
        kim.open_and_claim_case(case)
    assert kim.load_queue_page().rows[0].holder == "dr_lee"
    assert statuses(workspace) == ("in_review", "in_review")
    assert lee.open_and_claim_case(case).draft.notes == "mine"


def test_who_closed_what_can_be_rebuilt_from_the_files(build: Any, workspace: Any, open_tab: Any) -> None:
    for doc_id in ("a", "b", "c"):
        workspace.publish(build.single("Other"), doc_id=doc_id)
    lee = open_tab("dr_lee")
    for doc_id in ("a", "b"):
        lee.submit_review(doc_id, lee.open_and_claim_case(doc_id).draft, undeterminable_reason="illegible")
    workspace.helper().reopen("b", "it can be read after all")
    assert workspace.index.count_closed_cases() == 1
    closings = list(derive_closed_case_rows(workspace.files))
    measured = {"seconds_active": 0.0, "pages_seen": 0, "confirmed": "", "dismissed": "", "type_outcomes": ""}
    assert closings == [{"case_id": "a", "reviewer": "dr_lee", "closed_at": SINCE} | measured]
    workspace.index.rebuild(
        [], [], [*closings, closings[0] | {"case_id": "z", "reviewer": "dr_kim", "seconds_active": None}]
    )
    assert (workspace.index.count_closed_cases(), workspace.index.count_closed_cases(reviewer="dr_lee")) == (2, 1)


# --- Python beside the screen --------------------------------------------------------------------------------------


def test_python_does_not_save_what_somebody_else_has_open(case: str, open_tab: Any, workspace: Any) -> None:
    # The helper's clock shows noon.
    workspace.index.claims.acquire_or_get_live_claim(
        CaseClaim(case, "dr_kim", "tab", SINCE, "2025-02-01T12:15:00+00:00"), now=SINCE
    )
    with pytest.raises(CaseTaken, match="dr_kim"):
        workspace.helper("dr_lee").save_review(case, corrected_dominant_type="Other")
    assert find_newest_revision(workspace.files, case) == 0
    workspace.helper("dr_kim").save_review(case, corrected_dominant_type="Other")
    assert workspace.index.claims.map_live_claims_by_case_id(SINCE) == {}
    assert statuses(workspace) == ("completed", "completed")


def test_review_saved_from_python_conflicts_with_the_screen(case: str, open_tab: Any, workspace: Any) -> None:
    lee = open_tab("dr_lee")
    draft = lee.open_and_claim_case(case).draft.set_dominant_type("Clinical Note")
    workspace.helper("dr_kim").save_review(case, corrected_dominant_type="Pathology Report", base_revision=0)
    with pytest.raises(ReviewConflict):
        lee.submit_review(case, draft)
    assert workspace.truth()["corrected_dominant_type"] == "Pathology Report"


def test_listing_from_python_lets_cases_wait_again(case: str, open_tab: Any, workspace: Any) -> None:
    open_tab("dr_kim").open_and_claim_case(case)
    assert list(workspace.helper().list_pending_reviews()["review_status"]) == ["pending"]  # it is noon there
    assert statuses(workspace) == ("pending", "pending")


# --- races ---------------------------------------------------------------------------------------------------------


def test_600_races_for_a_claim_over_threads_have_one_winner_each(tmp_path: Path) -> None:
    race_for_claims(tmp_path, 600)


@pytest.mark.both_databases
def test_races_for_a_claim_over_processes_have_one_winner_each(tmp_path: Path) -> None:
    turns = 150
    with get_context("spawn").Manager() as manager, ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        barrier = manager.Barrier(2)
        futures = [pool.submit(claims_won, tmp_path, me, turns, barrier.wait) for me in ("dr_lee", "dr_kim")]
        lee, kim = (future.result() for future in futures)
    assert [a + b for a, b in zip(lee, kim, strict=True)] == [1] * turns
    assert Counter(claim.reviewer for claim in open_index(tmp_path).claims.map_live_claims_by_case_id(SINCE).values())[
        "dr_lee"
    ] == sum(lee)


def _take_and_submit(desk: ReviewSession, case_id: str) -> int:
    return desk.submit_review(
        case_id, desk.open_and_claim_case(case_id, take_over=True).draft, undeterminable_reason="illegible"
    ).revision


@pytest.mark.both_databases
def test_two_who_take_over_and_submit_never_decide_twice(build: Any, workspace: Any, open_tab: Any) -> None:
    tabs = [open_tab("dr_lee"), open_tab("dr_kim")]
    told: Counter[str] = Counter()
    for turn in range(40):
        case_id = workspace.publish(build.single("Other"), doc_id=f"doc_{turn}").case_id
        outcomes = run_together(*(partial(_take_and_submit, one, case_id) for one in tabs))
        told.update(type(one).__name__ for one in outcomes)
        assert sum(one == 1 for one in outcomes) == 1
        assert find_newest_revision(workspace.files, case_id) == 1
        assert workspace.index.claims.map_live_claims_by_case_id(SINCE, case_id) == {}
        assert statuses(workspace, case_id) == ("completed", "completed")
    assert told["int"] == 40
    assert set(told) <= {"int", "CaseTaken", "ReviewConflict", "ReviewRefused"}


def test_a_run_never_replaces_the_packet_under_an_expert(build: Any, workspace: Any, open_tab: Any, clock: Any) -> None:
    lee = open_tab("dr_lee")
    for turn in range(40):
        packet = workspace.publish(build.single("Other"), doc_id=f"doc_{turn}")
        newer = packet.model_copy(update={"decision_rule": "8"})
        case, is_written = run_together(
            partial(lee.open_and_claim_case, packet.case_id),
            partial(publish_packet_unless_frozen, workspace.files, workspace.index, newer, clock=clock),
        )
        assert case.packet == read_packet(workspace.files, packet.case_id)
        assert case.packet.decision_rule == ("8" if is_written else packet.decision_rule)
        assert statuses(workspace, packet.case_id) == ("in_review", "in_review")


@pytest.mark.both_databases
def test_many_open_a_new_database_at_once(tmp_path: Path) -> None:
    for turn in range(10):
        opened = run_together(*(partial(open_index, tmp_path / str(turn)) for _ in range(4)))
        assert [type(one) for one in opened] == [OutputIndex] * 4
        for one in opened:
            one.close()


# --- on disk before it is called saved ------------------------------------------------------------------------------


def test_a_draft_outlives_its_writer_killed_in_the_next_moment(case: str, workspace: Any) -> None:
    program = """if True:
        import os, sys
        from evalkit.review import ReviewSession
        from evalkit.store import open_output_folder
        desk = ReviewSession(open_output_folder(sys.argv[1]), "dr_lee", "tab")
        draft = desk.open_and_claim_case("doc2_6").draft
        for number in range(30):
            draft = draft.set_notes(f"note {number}")
            saved_at = desk.save_draft_and_get_time("doc2_6", draft)
        os.write(1, saved_at.encode())
        os._exit(9)
    """
    done = subprocess.run([sys.executable, "-c", program, workspace.root], capture_output=True, text=True, check=False)
    assert done.returncode == 9, done.stderr
    again = ReviewSession(open_folder(workspace.root), "dr_lee", "tab")
    found = again.open_and_claim_case(case)
    assert (found.draft.notes, found.draft_saved_at) == ("note 29", done.stdout)
    again.close()


def test_what_a_patients_draft_says_is_in_no_error(tmp_path: Path) -> None:
    index = open_index(tmp_path)
    with closing(sqlite3.connect(tmp_path / "evalkit.sqlite")) as connection:
        connection.execute("DROP TABLE drafts")
    draft = StoredDraft("a", "dr_lee", "tab", "0" * 64, json.dumps({"notes": "John Doe"}), SINCE)
    with pytest.raises(EvalkitError) as refused:
        index.drafts.save(draft)
    assert "John Doe" not in f"{refused.value} {refused.value.__cause__}"
    index.close()


def test_moments_are_stored_in_utc(case: str, workspace: Any) -> None:
    zone = datetime.fromisoformat("2025-02-01T10:40:00-05:00")
    lee = ReviewSession(open_folder(workspace.root), "dr_lee", "tab", clock=lambda: zone)
    lee.open_and_claim_case(case)
    assert lee.load_queue_page().rows[0].since == zone.astimezone(UTC).isoformat()
    lee.close()
