"""The answers to a question are its buttons: how few keys lead to a truth without the false quote."""

import json
from collections.abc import Callable
from pathlib import Path

from places import open_folder, open_index
from system.browser.screen import Screen
from system.browser.server import Served

from evalkit.issue import Issue
from evalkit.review.case_files import read_packet

Login = Callable[..., Screen]


def test_each_demo_quote_case_needs_three_keys_at_most(review_server: Served, login: Login, shots: Path | None) -> None:
    """From the open case to a truth without the false quote: the answers, then submit."""
    screen = login()
    files, index = open_folder(review_server.output), open_index(review_server.output)
    for case_id in [row["case_id"] for row in index.list_cases_worst_first("pending", "in_review")]:
        packet = read_packet(files, case_id)
        quotes = {issue.issue_id: issue.quote for issue in packet.open_issues if is_false_quote(issue)}
        if packet.kind != "classification" or not quotes:
            continue
        screen.open(case_id)
        keys = 0
        required = [name for name in (issue.issue_id for issue in packet.open_issues) if name in quotes]
        for name in required[:2]:
            screen.page.wait_for_selector(f'.ek-selected[data-issue="{name}"] .ek-seen')
            screen.page.keyboard.press("c")
            screen.settle()
            keys += 1
        screen.page.wait_for_selector(".ek-record li:has-text('Struck')")
        screen.shot(shots, f"struck-{case_id}-1440")
        for thumb in screen.page.query_selector_all(".ek-thumb"):  # looked at, as for any validation
            screen.turn_to(int(thumb.get_attribute("data-page")))
            screen.page.wait_for_selector(f'.ek-pane[data-painted$=":{thumb.get_attribute("data-page")}"]')
        screen.page.wait_for_selector("[data-key=v]:enabled")
        screen.page.keyboard.press("v")
        keys += 1
        screen.page.wait_for_selector(f".ek-notice:has-text('{case_id}.pdf validated')")
        truth = (review_server.output / f"ground_truth/gt_{case_id}.json").read_text()
        assert json.loads(truth)["ground_truth_source"] == "SME_VALIDATED"
        assert [quote for quote in quotes.values() if quote in truth] == []
        assert keys <= 3
        screen.rest()
        print(f"\n{case_id}: {keys} keys")
    index.close()


def is_false_quote(issue: Issue) -> bool:
    return issue.code in ("V4-QUOTE-ABSENT", "V4-QUOTE-ALTERED")
