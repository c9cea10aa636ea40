"""The queue: what one page of it shows, what is never given out, and what an older index becomes."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import open_index

from evalkit.core.clocks import format_iso_seconds
from evalkit.errors import ReviewRefused
from evalkit.review import (
    QueuePage,
    QueueQuery,
    publish_packet_unless_frozen,
    rebuild_case_files_and_list_index_rows,
    withdraw_packet_unless_frozen,
)
from evalkit.review.claiming import ClaimHolder
from evalkit.review.kinds import CASE_KINDS
from evalkit.review.queue import FILTER_VALUES, QueueList, QueueOrder
from evalkit.review.roster import ReviewerRoster
from evalkit.review.session import compute_case_address
from evalkit.store import CaseAgeCutoffs, CaseClaim, OutputIndex, packet_file_name, result_file_name

pytestmark = pytest.mark.usefixtures("database")

TYPES = ("Clinical Note", "Pathology Report", "Genomic Report", "Radiology Report", "Other")
LATER = "2099-01-01T00:00:00+00:00"


def ids(queue: QueuePage) -> list[str]:
    return [row.case_id for row in queue.rows]


def put(desk: Any, case_id: str, **changed: Any) -> None:
    """A row of the index, of whose packet there is only the name."""
    packet = desk.files.local_path(packet_file_name(case_id))
    packet.parent.mkdir(exist_ok=True)
    packet.touch()
    row = {
        "case_id": case_id,
        "doc_id": case_id,
        "kind": "classification",
        "pdf_filename": f"{case_id}.pdf",
        "pages": 1,
        "blocker": 0,
        "major": 0,
        "minor": 0,
        "decision_reason": "because",
        "review_reason": "escalated",
        "review_status": "pending",
        "created_at": "2025-02-01T10:00:00+00:00",
    }
    desk.index.upsert_case(row | changed)


@pytest.fixture
def many(workspace: Any, clock: Any) -> Any:
    """120 cases, no two alike."""
    for number in range(120):
        put(
            workspace,
            f"case_{number:03d}",
            pdf_filename=f"fax_{number * 7 % 120:03d}.pdf",
            pages=number % 11 + 1,
            blocker=int(number % 3 == 0),
            major=int(number % 4 == 0),
            minor=number % 5,
            dominant_type=(*TYPES, "")[number % 6],
            agents=("V1,V4", "V3", "")[number % 3],
            review_reason=("escalated", "sample")[number % 2],
            source=("embedded", "supplied")[number % 2],
            created_at=format_iso_seconds(clock() - timedelta(hours=number * 2)),
        )
    return workspace


@pytest.mark.both_databases
@pytest.mark.parametrize("sign", ["x", "\u3042", "\x1f"])
def test_texts_of_any_length_are_counted_found_and_filtered(sign: str, workspace: Any, open_tab: Any) -> None:
    long = "".join(random.Random(7).choices(f"{sign}abcdefgh", k=9000))  # no index packs it smaller
    put(workspace, "long", pdf_filename=long, dominant_type=long, source=long, created_at=long)
    put(workspace, "short", dominant_type=f"one{sign}two", source="embedded")
    lee = open_tab("dr_lee")
    queue = lee.load_queue_page()
    assert (ids(queue), queue.matching) == (["long", "short"], 2)
    for name in ("dominant_type", "source"):
        for value, count in queue.facets[name].items():
            assert len(lee.load_queue_page(QueueQuery(**{name: value})).rows) == count == 1
    assert ids(lee.load_queue_page(QueueQuery(search=long[:30]))) == ["long"]


# --- pages ---------------------------------------------------------------------------------------------------------


def test_the_pages_are_the_whole_queue_in_order(many: Any, open_tab: Any) -> None:
    lee = open_tab("dr_lee")
    pages = [lee.load_queue_page(QueueQuery(page=page)) for page in range(3)]
    assert [len(page.rows) for page in pages] == [50, 50, 20]
    assert [page.matching for page in pages] == [120, 120, 120]
    worst_first = [(row["case_id"], row["review_reason"]) for row in many.index.list_cases_worst_first()]
    listed = [case_id for case_id, reason in worst_first if reason == "escalated"]
    oldest_samples = [f"case_{number:03d}" for number in range(119, 0, -2)]
    for number, case_id in enumerate(oldest_samples[:8]):
        listed.insert(7 + 8 * number, case_id)
    listed += [case_id for case_id, reason in worst_first if reason == "sample" and case_id not in listed]
    assert [case_id for page in pages for case_id in ids(page)] == listed
    assert ids(lee.load_queue_page(QueueQuery(page=99))) == ids(pages[2])
    assert lee.load_queue_page(QueueQuery(page=99)).view.page == 2


def test_an_empty_queue_is_its_first_page(workspace: Any, open_tab: Any) -> None:
    queue = open_tab("dr_lee").load_queue_page(QueueQuery(page=7))
    assert (queue.rows, queue.matching, queue.view.page) == ((), 0, 0)


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("sort", "key"),
    [
        ("oldest", lambda row: row.created_at),
        ("newest", lambda row: [-ord(sign) for sign in row.created_at]),
        ("name", lambda row: row.pdf_filename),
        ("pages", lambda row: row.pages),
        ("worst", lambda row: (-row.blocker, -row.major, -row.minor, row.case_id)),
    ],
)
def test_rows_are_ordered_as_asked(many: Any, open_tab: Any, sort: Any, key: Any) -> None:
    rows = open_tab("dr_lee").load_queue_page(QueueQuery(sort=sort, rows=120)).rows
    rows = [row for row in rows if row.review_reason == "escalated"]
    assert [key(row) for row in rows] == sorted(key(row) for row in rows)


@pytest.mark.both_databases
def test_most_errors_per_minute_come_after_computed_blockers(workspace: Any, open_tab: Any) -> None:
    for case_id, per_minute in (("a", 0.1), ("b", math.inf), ("c", 2.5), ("d", math.inf), ("e", 0.1)):
        put(workspace, case_id, errors_per_minute=per_minute, blocker=int(case_id == "d"), minor=int(case_id == "e"))
    lee = open_tab("dr_lee")
    assert ids(lee.load_queue_page()) == ["d", "b", "c", "e", "a"]
    assert [ids(lee.load_queue_page(QueueQuery(rows=2, page=page))) for page in range(3)] == [
        ["d", "b"], ["c", "e"], ["a"],
    ]  # fmt: skip
    assert ids(lee.load_queue_page(QueueQuery(show_finished=True))) == ["d", "b", "c", "e", "a"]


@pytest.fixture
def alike(workspace: Any) -> Any:
    """13 cases, of which several are equal in all but their names, and some of an age that is not known."""
    for number in range(13):
        put(
            workspace,
            f"case_{number:02d}",
            pdf_filename=f"fax_{number % 3}.pdf",
            pages=number % 2,
            errors_per_minute=number % 3 / 7,
            blocker=number % 2,
            review_status=("pending", "completed", "deferred", "in_review")[number % 4],
            created_at=None if number % 3 == 0 else f"2025-02-0{number % 3}T10:00:00+00:00",
        )
    return workspace


@pytest.mark.both_databases
@pytest.mark.parametrize("sort", get_args(QueueOrder))
def test_page_counted_from_the_end_equals_page_from_the_front(alike: Any, clock: Any, sort: Any) -> None:
    now = format_iso_seconds(clock())
    for finished, facets in ((True, {}), (False, {"severity": "none"})):
        asked = partial(
            alike.index.case_list.list_queue_page,
            CaseAgeCutoffs(now, now, now),
            include_finished=finished,
            name_search="",
            facet_values=facets,
            order=sort,
        )
        everything = asked(limit=99, offset=0)
        count = len(everything)
        for offset in range(count + 2):
            for limit in (1, 3):
                assert (
                    asked(limit=limit, offset=offset, known_matching_count=count) == everything[offset : offset + limit]
                )


# --- search and filters --------------------------------------------------------------------------------------------


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("search", "found"),
    [
        ("befund", ["a"]),
        ("BEFUND_ÄRZTE", ["a"]),
        ("a\u0308rzte", ["a"]),  # the same letter, written in two signs, as some file systems give it
        ("100%", ["b"]),
        ("%", ["b"]),
        ("_", ["a", "c"]),
        ("c_", ["c"]),
        (".*", []),
        ("'; drop table cases --", []),
        ("pdf", ["a", "b", "c"]),
    ],
)
def test_a_search_is_part_of_a_name_and_nothing_else(
    workspace: Any, open_tab: Any, search: str, found: list[str]
) -> None:
    for case_id, name in {"a": "Befund_Ärzte.pdf", "b": "100% sure.pdf", "c": "C_2.PDF"}.items():
        put(workspace, case_id, pdf_filename=name)
    queue = open_tab("dr_lee").load_queue_page(QueueQuery(search=search))
    assert (sorted(ids(queue)), queue.matching) == (found, len(found))


@pytest.mark.parametrize("name", FILTER_VALUES)
def test_each_value_of_a_menu_gives_as_many_cases_as_it_says(many: Any, open_tab: Any, name: str) -> None:
    ReviewerRoster(many.files).add_reviewer_or_replace_code("dr_lee", role="analyst")  # to whom no samples come
    lee = open_tab("dr_lee")
    counts = lee.load_queue_page().facets[name]
    assert counts
    for value, count in counts.items():
        queue = lee.load_queue_page(QueueQuery(**{name: value}, rows=120))
        assert (len(queue.rows), queue.matching) == (count, count), value
        assert queue.facets[name] == counts, "a menu goes on offering the other values"
    if name != "agent":  # a case may have several, or none
        assert sum(counts.values()) == 120


@pytest.mark.both_databases
def test_filters_combine_and_facets_count_remaining_rows(many: Any, open_tab: Any) -> None:
    view = QueueQuery(severity="BLOCKER", agent="V4", source="supplied", search="case_0")
    queue = open_tab("dr_lee").load_queue_page(view)
    wanted = [number for number in range(100) if number % 3 == 0 and number % 2]
    assert sorted(ids(queue)) == [f"case_{number:03d}" for number in wanted]
    assert queue.facets["severity"] == {"BLOCKER": len(wanted)}
    assert queue.facets["source"] == {"embedded": 17, "supplied": 17}


def test_a_value_that_nothing_has_any_more_stays_in_its_menu(many: Any, open_tab: Any) -> None:
    queue = open_tab("dr_lee").load_queue_page(QueueQuery(dominant_type="Other", search="nowhere"))
    assert (queue.rows, queue.facets["dominant_type"]) == ((), {"Other": 0})


@pytest.mark.parametrize(("hours", "age"), [(23, "day"), (25, "week"), (7 * 24 - 1, "week"), (7 * 24 + 1, "older")])
def test_ages(workspace: Any, open_tab: Any, clock: Any, hours: int, age: str) -> None:
    put(workspace, "a", created_at=format_iso_seconds(clock() - timedelta(hours=hours)))
    assert open_tab("dr_lee").load_queue_page().facets["age"] == {age: 1}


# --- what a row says -----------------------------------------------------------------------------------------------


def test_a_row_tells_what_the_packet_and_the_result_say(build: Any, workspace: Any, open_tab: Any) -> None:
    result = build.result(build.single("Other"))
    said = result.model_dump(mode="json")
    said["usage"]["by_agent"] = {"classifier": {}}
    workspace.files.write_json(result_file_name("a"), said | {"model": "gemini:gemini-2.5-flash"})
    workspace.files.write_json(result_file_name("b"), said | {"versions": {"models": {"classifier": "openai:gpt"}}})
    workspace.files.write_json(result_file_name("c"), said | {"usage": {"by_agent": {}}})
    workspace.files.write_json(result_file_name("d"), {"schema_version": 1, "usage": None})
    issues = [build.issue("V4-0001"), build.issue("V1-0001", "MINOR")]
    for case_id in "abcde":
        workspace.publish(build.single("Other") if case_id != "b" else None, issues, doc_id=case_id)
    rows = {row.case_id: row for row in open_tab("dr_lee").load_queue_page().rows}
    assert [rows[case_id].source for case_id in "abcde"] == [
        "gemini:gemini-2.5-flash",
        "openai:gpt",
        "supplied",
        "",
        "",
    ]
    assert (rows["a"].dominant_type, rows["b"].dominant_type) == ("Other", "cannot tell")
    assert (rows["a"].agents, rows["a"].kind, rows["a"].created_at) == (
        ("V1", "V4"),
        "classification",
        "2025-02-01T10:00:00+00:00",
    )
    assert [row["source"] for one in rows for row in rebuild_case_files_and_list_index_rows(workspace.files, one)] == [
        row.source for row in rows.values()
    ]


@pytest.mark.parametrize(
    ("case_id", "reason", "is_blind"),
    [
        ("a", "audit", True),
        ("a.second", "escalated", True),
        ("a.adjudication", "audit", False),
        ("a", "sample", True),
        ("a", "escalated", False),
    ],
)
def test_a_blind_case_tells_nothing_of_the_agents_answer(
    build: Any, workspace: Any, open_tab: Any, case_id: str, reason: Any, is_blind: bool
) -> None:
    packet = workspace.publish(build.single("Genomic Report"), [build.issue("V3-0001")], review_reason=reason)
    withdraw_packet_unless_frozen(workspace.files, workspace.index, "doc2_6")
    publish_packet_unless_frozen(workspace.files, workspace.index, packet.model_copy(update={"case_id": "a"}))
    lee = open_tab("dr_lee")
    workspace.index.remove_cases("a")  # only its file: what a further opinion is about
    publish_packet_unless_frozen(workspace.files, workspace.index, packet.model_copy(update={"case_id": case_id}))
    (row,) = lee.load_queue_page().rows
    told = (row.dominant_type, row.agents, row.blocker, row.decision_reason)
    assert row.is_blind is is_blind
    assert told == (("", (), 0, "") if is_blind else ("Genomic Report", ("V3",), 1, packet.decision_reason))
    for view in (QueueQuery(dominant_type="Genomic Report"), QueueQuery(agent="V3"), QueueQuery(severity="BLOCKER")):
        assert len(lee.load_queue_page(view).rows) == (not is_blind)
    assert (lee.load_queue_page().facets["dominant_type"] == {}) is is_blind
    lee.submit_review(
        case_id, lee.open_and_claim_case(case_id).draft.set_dominant_type("Other"), undeterminable_reason="illegible"
    )
    (row,) = (one for one in lee.load_queue_page(QueueQuery(show_finished=True)).rows if one.case_id == case_id)
    assert (row.is_blind, row.dominant_type) == (False, "Genomic Report")


def test_finished_cases_are_shown_when_asked_for_and_last(many: Any, open_tab: Any) -> None:
    many.index.set_review_status("case_000", "completed")
    many.index.set_review_status("case_012", "deferred")
    lee = open_tab("dr_lee")
    waiting = lee.load_queue_page(QueueQuery(rows=200))
    assert (len(waiting.rows), waiting.rows[-1].case_id, waiting.rows[-1].status) == (119, "case_012", "deferred")
    assert (waiting.pending, waiting.deferred) == (118, 1)
    for sort in get_args(QueueOrder):
        rows = lee.load_queue_page(QueueQuery(show_finished=True, rows=200, sort=sort)).rows
        assert [row.status for row in rows[-2:]] == ["deferred", "completed"], sort


# --- what is never given out ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changed",
    [
        {"barred": "dr_lee"},
        {"barred": "dr_kim,dr_lee"},
        {"review_status": "deferred"},
        {"review_status": "completed"},
    ],
)
def test_the_next_case_is_one_that_this_reviewer_can_do(workspace: Any, open_tab: Any, changed: dict[str, str]) -> None:
    put(workspace, "worst", blocker=9, **changed)
    put(workspace, "other")
    lee = open_tab("dr_lee")
    assert lee.choose_next_case_id() == "other"
    row = next(row for row in lee.load_queue_page(QueueQuery(show_finished=True)).rows if row.case_id == "worst")
    assert row.is_barred is ("barred" in changed)


def test_who_is_barred_is_a_whole_name(workspace: Any, open_tab: Any) -> None:
    put(workspace, "a", barred="dr_leeds,adr_lee")
    assert open_tab("dr_lee").choose_next_case_id() == "a"


# --- the list is what comes ----------------------------------------------------------------------------------------


def give_up(desk: Any, case_id: str) -> None:
    desk.submit_review(case_id, desk.open_and_claim_case(case_id).draft, undeterminable_reason="illegible")


def publish(workspace: Any, build: Any, *names: str, kind: str = "Pathology Report", **changed: Any) -> None:
    for name in names:
        workspace.publish(build.single(kind), [build.issue()], doc_id=name, **changed)


@pytest.mark.parametrize("sort", get_args(QueueOrder))
@pytest.mark.both_databases
def test_next_is_the_row_after_the_finished_one(workspace: Any, build: Any, open_tab: Any, sort: Any) -> None:
    publish(workspace, build, *"abcdef")
    publish(workspace, build, "z", kind="Other")
    lee = open_tab("dr_lee")
    lee.choose_queue_query(QueueQuery(dominant_type="Pathology Report", sort=sort))
    listed = ids(lee.load_queue_page())
    assert sorted(listed) == list("abcdef")
    assert (lee.choose_next_case_id(), lee.load_queue_page().next_case_id) == (listed[0], listed[0])
    give_up(lee, listed[2])
    assert (lee.choose_next_case_id(), lee.load_queue_page().next_case_id) == (listed[3], listed[3])
    lee.defer_case_and_get_time(listed[3], lee.open_and_claim_case(listed[3]).draft, "later")
    open_tab("dr_kim").open_and_claim_case(listed[4])
    assert lee.choose_next_case_id() == listed[5]
    give_up(lee, listed[5])
    assert lee.choose_next_case_id() == listed[0], "after the last row, those that were passed over"
    give_up(lee, listed[0])
    give_up(lee, listed[1])
    assert lee.choose_next_case_id() is None, "the other type never comes"


@pytest.mark.both_databases
def test_every_eighth_row_is_an_audit_whatever_the_filter(workspace: Any, build: Any, open_tab: Any) -> None:
    publish(workspace, build, *(f"bad_{number:02d}" for number in range(20)))
    for name, day in (("young", 3), ("old", 1)):
        publish(
            workspace, build, name, kind="Other", review_reason="audit", created_at=f"2025-01-0{day}T00:00:00+00:00"
        )
    lee = open_tab("dr_lee")
    lee.choose_queue_query(QueueQuery(dominant_type="Pathology Report"))
    give_up(lee, lee.choose_next_case_id())
    listed = lee.load_queue_page()
    assert (ids(listed)[6], ids(listed)[14], len(listed.rows), listed.matching) == ("old", "young", 21, 21)
    assert (listed.drawn, listed.drawn_since) == (2, "2025-01-01T00:00:00+00:00")
    served = []
    for _ in range(21):
        served.append(lee.choose_next_case_id())
        give_up(lee, served[-1])
    assert served == ids(listed)
    assert lee.choose_next_case_id() is None


def test_list_is_kept_over_sessions_and_without_the_search(workspace: Any, build: Any, open_tab: Any) -> None:
    publish(workspace, build, *"abcd")
    lee = open_tab("dr_lee")
    view = QueueQuery(dominant_type="Pathology Report", sort="name", search="doc2")
    lee.choose_queue_query(view)
    give_up(lee, "b")
    assert lee.queue_query == view
    again = open_tab("dr_lee", "next day")
    assert (again.queue_query, again.choose_next_case_id()) == (replace(view, search=""), "c")
    assert open_tab("dr_kim").queue_query == QueueQuery()
    again.choose_queue_query(QueueQuery(sort="oldest"))
    assert again.choose_next_case_id() == "a", "another order begins at its top"
    give_up(again, "c")
    again.return_to_top()
    assert again.choose_next_case_id() == "a"


@pytest.mark.both_databases
def test_cases_of_other_tasks_do_not_come_unasked(workspace: Any, open_tab: Any) -> None:
    for task in ("clinical", "tax", "bank"):
        put(workspace, task, task=task)
        put(workspace, f"{task}_audit", task=task, review_reason="audit")
    roster = ReviewerRoster(workspace.files)
    roster.add_reviewer_or_replace_code("dr_lee", tasks=("clinical",))
    lee = open_tab("dr_lee")
    listed = lee.load_queue_page()
    assert (ids(listed), listed.pending, listed.tasks) == (["clinical", "clinical_audit"], 2, ("clinical",))
    assert (listed.drawn, lee.measure_progress().open_count) == (1, 2)
    assert len(lee.load_queue_page(QueueQuery(all_tasks=True)).rows) == 6
    roster.add_reviewer_or_replace_code("dr_lee", tasks=("bank", "tax"))
    assert lee.choose_next_case_id() == "bank"
    roster.add_reviewer_or_replace_code("dr_lee")
    assert (roster.get_permissions("dr_lee").tasks, roster.get_permissions("dr_new").tasks) == (("bank", "tax"), ())


def test_last_ten_cases_are_listed_and_reopened_with_answer(
    workspace: Any, build: Any, open_tab: Any, clock: Any
) -> None:
    publish(workspace, build, *"abcdefghijkl")
    lee = open_tab("dr_lee")
    for case_id in "abcdefghijkl":
        clock.wait(minutes=1)
        case = lee.open_and_claim_case(case_id)
        lee.submit_review(case_id, case.draft.set_dominant_type("Other").model_copy(update={"seconds_active": 9.0}))
    recent = lee.list_recent_cases()
    assert [one.case_id for one in recent] == list("lkjihgfedc")
    assert (recent[0].outcome, recent[0].seconds_active) == ("corrected", 9.0)
    lee.reopen_case("d")
    assert lee.open_and_claim_case("d").draft.dominant_type == "Other"
    for case_id, desk in (("a", lee), ("l", open_tab("dr_kim"))):
        with pytest.raises(ReviewRefused, match="not among the cases"):
            desk.reopen_case(case_id)


def test_a_reply_reaches_the_colleague_who_asked(workspace: Any, build: Any, open_tab: Any) -> None:
    publish(workspace, build, "a", "b")
    lee, kim = open_tab("dr_lee"), open_tab("dr_kim")
    lee.defer_case_and_get_time("a", lee.open_and_claim_case("a").draft, "page 3 is missing")
    kim.open_and_claim_case("a")
    kim.reply_to_colleague("a", "It is in the paper file.")
    (reply,) = lee.load_queue_page().replies
    assert (reply.case_id, reply.reviewer, reply.sentence) == ("a", "dr_kim", "It is in the paper file.")
    assert kim.load_queue_page().replies == ()
    kim.open_and_claim_case("b")
    with pytest.raises(ReviewRefused, match="no question to reply to"):
        kim.reply_to_colleague("b", "Hello.")
    kim.submit_review("a", kim.open_and_claim_case("a").draft, undeterminable_reason="illegible")
    assert lee.load_queue_page().replies == ()


def test_an_address_names_a_case_without_its_name(workspace: Any, build: Any, open_tab: Any) -> None:
    publish(workspace, build, "Quagmire_Zebulon")
    lee, address = open_tab("dr_lee"), compute_case_address("Quagmire_Zebulon")
    assert (len(address), lee.find_case_id(address), lee.find_case_id("nope")) == (12, "Quagmire_Zebulon", None)


# --- claims --------------------------------------------------------------------------------------------------------


def test_only_cases_that_contradict_their_claims_are_looked_at(
    build: Any, workspace: Any, open_tab: Any, clock: Any
) -> None:
    for case_id in "abcd":
        workspace.publish(build.single("Other"), doc_id=case_id)
    now = format_iso_seconds(clock())
    for case_id in "ab":
        workspace.index.claims.acquire_or_get_live_claim(CaseClaim(case_id, "dr_kim", "tab", now, LATER), now=now)
    workspace.index.set_review_status("b", "in_review")
    workspace.index.set_review_status("c", "in_review")
    assert sorted(workspace.index.case_list.find_case_ids_contradicting_claims(now)) == ["a", "c"]
    rows = {row.case_id: row.status for row in open_tab("dr_lee").load_queue_page().rows}
    assert rows == {"a": "in_review", "b": "in_review", "c": "pending", "d": "pending"}
    assert workspace.index.case_list.find_case_ids_contradicting_claims(now) == []


# --- progress ------------------------------------------------------------------------------------------------------


def test_progress(build: Any, workspace: Any, open_tab: Any, clock: Any) -> None:
    for case_id in "abcdef":
        workspace.publish(build.single("Other"), doc_id=case_id)
    lee, kim = open_tab("dr_lee"), open_tab("dr_kim")
    assert lee.measure_progress().median_seconds is None

    def closed(by: Any, case_id: str, seconds: float) -> None:
        draft = by.open_and_claim_case(case_id).draft.model_copy(update={"seconds_active": seconds})
        by.submit_review(case_id, draft, undeterminable_reason="illegible")

    closed(lee, "a", 500)
    clock.wait(days=1)
    assert lee.measure_progress().median_seconds == 500, "nothing today: what it took before"
    closed(lee, "b", 10)
    closed(lee, "c", 30)
    closed(kim, "d", 9000)
    lee.open_and_claim_case("e")
    progress = lee.measure_progress()
    assert (progress.done_by_me, progress.open_count, progress.median_seconds) == (2, 2, 20)


# --- what a page sends ---------------------------------------------------------------------------------------------

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
_KEYS = ("search", *FILTER_VALUES, "sort", "show_finished", "all_tasks", "page", "rows", "else")
_VIEWS = _JSON | st.fixed_dictionaries({}, optional=dict.fromkeys(_KEYS, _JSON))


@pytest.fixture
def index(tmp_path: Path) -> Iterator[OutputIndex]:
    made = open_index(tmp_path)
    yield made
    made.close()


@given(_VIEWS)
def test_whatever_a_page_sends_is_a_view(index: OutputIndex, said: Any) -> None:
    view = QueueQuery.from_message(said)
    assert view.rows == 50
    assert view.page >= 0
    assert QueueList(index, view, datetime.now(UTC), ClaimHolder("dr_lee", "tab")).length == 0


@given(
    st.builds(
        QueueQuery, sort=st.sampled_from(get_args(QueueOrder)), show_finished=st.booleans(), page=st.integers(0, 9)
    )
)
def test_a_view_comes_back_as_it_was_shown(view: QueueQuery) -> None:
    plain = replace(view, search="a b", severity="MAJOR", dominant_type="cannot tell", agent="V4", age="week", rows=50)
    plain = replace(plain, review_reason="audit", source="supplied", kind="extraction")
    assert QueueQuery.from_message(plain.__dict__) == plain


def test_every_filter_has_a_column(many: Any, open_tab: Any) -> None:
    assert set(open_tab("dr_lee").load_queue_page().facets) == set(FILTER_VALUES)
    assert FILTER_VALUES["kind"] == tuple(CASE_KINDS)
