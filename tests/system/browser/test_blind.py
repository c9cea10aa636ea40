"""Blind cases, closed cases and the house's guidelines, as an expert sees them."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect
from system.browser.screen import Screen
from system.browser.server import Served
from system.browser.small_cases import CaseQueue

Login = Callable[..., Screen]


@pytest.fixture
def guidelines(review_server: Served) -> Iterator[None]:
    file = review_server.output / "guidelines.md"
    file.write_text("# Our rules\n\n- A consent form is <b>Other</b>.\n- Ask before you correct.\n")
    yield
    file.unlink()


def answer(screen: Screen, *keys: str) -> None:
    """Answer the audit of eight pages with two documents: 1–5 and 6–8."""
    for page, key in zip((6, 1), reversed(keys), strict=True):
        screen.turn_to(page)
        screen.page.wait_for_selector(f".ek-pane[data-painted$=':{page}']")
        screen.settle()
        for pressed in ["s", key] if page > 1 else [key]:
            screen.page.keyboard.press(pressed)
            screen.settle()
    expect(screen.button("Submit my answer")).to_be_enabled()
    screen.page.keyboard.press("Control+Enter")


def test_blind_stop_closed_case_and_second_look(login: Login, case_queue: CaseQueue, shots: Path | None) -> None:
    screen = login()
    press = screen.page.keyboard.press
    screen.open("doc2_6")
    answer(screen, "4", "1")
    stop = screen.page.locator(".ek-stop")
    expect(stop).to_contain_text("You: Radiology Report.")
    expect(stop).to_contain_text("The program: Genomic Report, because it reads “")
    assert case_queue.outcomes("doc2_6") == ["corrected"]
    screen.shot(shots, "blind_stop")
    press("l")
    expect(screen.page.locator(".ek-opinion").nth(1)).to_contain_text("The program's answer")
    screen.settle()
    screen.shot(shots, "blind_second_look")
    screen.button("Take the program's answer").click()
    expect(screen.page.locator(".ek-types .ek-chosen")).to_contain_text("Genomic")
    screen.see_everything()
    press("v")
    screen.page.wait_for_function("() => !document.querySelector('.ek-opinion')")
    assert case_queue.outcomes("doc2_6") == ["corrected", "validated"]
    screen.queue()
    screen.page.get_by_label("show finished").check()
    screen.open("doc2_6", by="Read")
    expect(screen.page.locator(".ek-closing h2")).to_contain_text("Validated by dr_lee on ")
    screen.shot(shots, "closed_case")


def test_guidelines_are_at_hand_in_queue_and_case(guidelines: None, login: Login, shots: Path | None) -> None:
    screen = login()
    screen.page.reload()
    screen.page.wait_for_selector(".ek-queue-head")
    dialog = screen.page.get_by_role("dialog", name="Guidelines")
    for place in ("queue", "quest_genomic"):
        if place != "queue":
            screen.open(place)
        screen.page.keyboard.press("Shift+G")
        expect(dialog).to_contain_text("A consent form is <b>Other</b>.")
        expect(dialog).to_contain_text("Pathology Report")
        screen.shot(shots, f"guidelines_{place}")
        screen.page.keyboard.press("Escape")
        expect(dialog).to_be_hidden()
