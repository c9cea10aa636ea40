"""The queue on the screen, without a browser: what a choice shows, and what the page is sent."""

from pathlib import Path

import pytest
from places import open_index

from widgets.workbench import Workbench


def listed(screen: Workbench) -> list[str]:
    return [row["case_id"] for row in screen.queue_panel.rows]


def test_a_choice_shows_another_part_and_stays_chosen(screen: Workbench) -> None:
    everything = listed(screen)
    screen.dispatch_message({"action": "view", "view": {"search": "QUEST_", "sort": "name"}})
    found = listed(screen)
    assert found == sorted(case_id for case_id in everything if "quest_" in case_id)
    assert screen.queue_panel.matching == len(found) < len(everything)
    assert (screen.queue_panel.view["search"], screen.queue_panel.view["sort"]) == ("QUEST_", "name")
    screen.dispatch_message({"action": "open", "case_id": found[0]})
    screen.dispatch_message({"action": "queue"})
    assert listed(screen) == found, "who comes back from a case finds the list as it was"
    screen.dispatch_message({"action": "view", "view": {}})
    assert listed(screen) == everything


@pytest.mark.parametrize(
    "view",
    [
        None,
        7,
        "severity",
        {"severity": "WORST", "sort": "random", "page": "2", "show_finished": "yes"},
        {"sort": ["worst"], "page": -1, "search": None},
        {"page": 10**30, "rows": 10**6},
        {"rows": 0, "kind": {}},
        {"page": True},
    ],
)
def test_what_cannot_be_meant_shows_the_queue(screen: Workbench, view: object) -> None:
    everything = listed(screen)
    screen.dispatch_message({"action": "view", "view": view})
    assert (listed(screen), screen.queue_panel.notice) == (everything, "")
    assert screen.queue_panel.view["rows"] == 50


def test_a_choice_that_comes_late_does_not_close_a_case(screen: Workbench) -> None:
    screen.dispatch_message({"action": "open", "case_id": "quest_genomic"})
    screen.dispatch_message({"action": "view", "view": {"search": "x"}})
    assert screen.case.packet.case_id == "quest_genomic"


def test_fifty_rows_are_sent_and_the_bar_counts_all(screen: Workbench, tmp_path: Path) -> None:
    index = open_index(tmp_path / "output")
    rows = [
        {
            "case_id": f"many_{number}",
            "doc_id": "x",
            "kind": "extraction",
            "pdf_filename": "x.pdf",
            "pages": 1,
            "blocker": 0,
            "major": 0,
            "minor": 0,
            "decision_reason": "",
            "review_reason": "sample",
            "review_status": "pending",
        }
        for number in range(120)
    ]
    for row in rows:
        index.upsert_case(row)
    index.close()
    screen.dispatch_message({"action": "view", "view": {"page": 1}})
    assert len(screen.queue_panel.rows) == 50
    assert screen.queue_panel.matching == screen.bar.total > 120
    assert screen.queue_panel.facets["kind"]["extraction"] == 120
    screen.dispatch_message({"action": "open", "case_id": "many_7"})
    assert screen.queue_panel.notice == "many_7: This case no longer exists."
