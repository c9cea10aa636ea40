"""The answers to a question are its buttons: how few keys lead to a truth without the false quote."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from places import open_folder
from system.browser.screen import Screen
from system.browser.server import Served
from system.browser.small_cases import wait_until

from evalkit.evaluation.export import export_ground_truth
from evalkit.issue import Issue
from evalkit.review.case_files import read_packet

Login = Callable[..., Screen]


@pytest.mark.parametrize("case_id", ["fabricated_quote", "altered_quotes"])
def test_each_demo_quote_case_needs_three_keys_at_most(
    case_id: str, review_server: Served, login: Login, tmp_path: Path, shots: Path | None
) -> None:
    """From the open case to a truth and an export without the false quote: keys only, page turns counted."""
    packet = read_packet(open_folder(review_server.output), case_id)
    quotes = {issue.issue_id: issue.quote for issue in packet.open_issues if is_false_quote(issue)}
    screen, pressed = login(), ""
    screen.open(case_id)
    for name in quotes:
        screen.page.wait_for_selector(f'.ek-selected[data-issue="{name}"] .ek-seen')
        assert is_mark_in_sight(screen)
        screen.shot(shots, f"asked-{case_id}-{name}-1440")
        screen.page.keyboard.press("c")
        pressed += "c"
        screen.settle()
    struck = screen.page.locator(".ek-record .ek-line-quote", has_text="Struck")
    struck.first.wait_for()
    screen.page.wait_for_selector("[data-key=v]:enabled")
    assert are_all_lines_in_sight(screen)
    screen.shot(shots, f"struck-{case_id}-1440")
    screen.resize(1280, 720)
    screen.shot(shots, f"struck-{case_id}-720")
    screen.resize(1440, 900)
    screen.page.keyboard.press("v")
    pressed += "v"
    screen.page.wait_for_selector(f".ek-notice:has-text('{case_id}.pdf validated')")
    truth = (review_server.output / f"ground_truth/gt_{case_id}.json").read_text()
    assert json.loads(truth)["ground_truth_source"] == "SME_VALIDATED"
    export_ground_truth(review_server.output, tmp_path / "export.jsonl")
    exported = (tmp_path / "export.jsonl").read_text()
    assert case_id in exported
    assert [quote for quote in quotes.values() if quote in truth or quote in exported] == []
    assert len(pressed) <= 3
    screen.rest()


def test_a_contradiction_is_asked_once_with_two_buttons(review_server: Served, login: Login) -> None:
    """The program's type is denied and validated: look again leads back, the second press records both."""
    screen, case_id = login(), "quest_genomic"
    screen.open(case_id)
    screen.see_everything()
    screen.page.locator('.ek-issue[data-issue="V3-0001"] .ek-message').click()
    screen.settle()
    screen.page.keyboard.press("c")
    screen.settle()
    screen.button("Validate and next").click()
    question = screen.page.get_by_role("alert").filter(has=screen.button("Look again"))
    question.wait_for()
    assert question.locator("p").inner_text().endswith("?")
    screen.button("Look again").click()
    question.wait_for(state="detached")
    assert not (review_server.output / f"reviews/{case_id}").exists()
    screen.settle()
    screen.button("Validate and next").click()
    screen.button("Yes, record both").click()
    wait_until(screen, (review_server.output / f"reviews/{case_id}/0001.json").exists, "submitted")
    screen.rest()


def is_mark_in_sight(screen: Screen) -> bool:
    """True unless the selected question's passage has a marked word outside its window."""
    return screen.page.evaluate(
        """() => [...document.querySelectorAll(".ek-selected .ek-window")].every((passage) => {
            const mark = passage.querySelector("mark")?.getClientRects()[0], around = passage.getBoundingClientRect();
            return !mark || (mark.top >= around.top - 1 && mark.bottom <= around.bottom + 1);
        })"""
    )


def are_all_lines_in_sight(screen: Screen) -> bool:
    """True if no line of the record needs scrolling."""
    return screen.page.locator(".ek-record ul").evaluate("(list) => list.scrollHeight <= list.clientHeight + 1")


def is_false_quote(issue: Issue) -> bool:
    return issue.code in ("V4-QUOTE-ABSENT", "V4-QUOTE-ALTERED")
