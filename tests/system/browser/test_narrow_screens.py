"""Narrow screens and large print: tabs, reflow, keys that work in each tab, and keys while a page is being painted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect
from system.browser.screen import Screen
from system.browser.small_cases import CaseQueue

Login = Callable[..., Screen]

# Set before the case is opened: the pane fetches pages ahead, and a page that it holds is painted at once.
SLOW_LAST_PAGE = """() => {
    const decode = HTMLImageElement.prototype.decode;
    const arrived = new Promise((resolve) => { window.arrive = resolve; });
    HTMLImageElement.prototype.decode = async function () {
        if (this.alt === "page 3") await arrived;
        return decode.call(this);
    };
}"""
ARRIVE = "window.arrive()"
TOO_WIDE = """() => [...document.querySelectorAll("body *")].filter((node) =>
    !node.closest(".ek-scroll, .ek-announced, .ek-compare-scroll, .ek-for-readers, thead") && node.checkVisibility({ visibilityProperty: true })
    && getComputedStyle(node).overflowX !== "visible" && getComputedStyle(node).overflowX !== "clip"
    && getComputedStyle(node).textOverflow !== "ellipsis" && node.scrollWidth > node.clientWidth + 1).map((node) => node.outerHTML.slice(0, 90))"""


def resize(screen: Screen, width: int) -> None:
    screen.resize(width, 800)
    screen.page.wait_for_function("width => document.documentElement.clientWidth === width", arg=width)
    # The scripts and container styles answer to the new width a frame later.
    screen.page.evaluate(
        "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))"
    )


@pytest.fixture
def start(login: Login, case_queue: CaseQueue, small_run_output: Path) -> Callable[..., Screen]:
    """Gives the screen of a small case of that name, three pages of one document, at a width."""

    def begin(name: str, width: int = 1440, before_opening: str = "() => {}") -> Screen:
        case_queue.put(small_run_output, "one_document", name)
        screen = login()
        screen.button("Refresh").click()
        screen.page.evaluate(before_opening)
        screen.open(name)
        screen.page.wait_for_selector(".ek-pane[data-painted]")
        resize(screen, width)
        return screen

    return begin


def tab(screen: Screen, name: str) -> None:
    screen.page.locator(".ek-tabs").get_by_role("button", name=name).click()


def front_tab(screen: Screen) -> str:
    return screen.page.locator(".ek-tabs [aria-pressed=true]").inner_text()


def page_width(screen: Screen) -> int:
    width: int = screen.page.evaluate("document.documentElement.scrollWidth")
    return width


def test_one_pane_by_tabs_and_decisions_at_the_foot(start: Callable[..., Screen]) -> None:
    screen = start("n_tabs", 480)
    sheet, card, pages = (screen.page.locator(name) for name in (".ek-sheet >> nth=0", ".ek-why", ".ek-ribbon"))
    for name, part in (("Case", card), ("Documents", pages), ("Page", sheet)):
        tab(screen, name)
        assert [one.is_visible() for one in (sheet, card, pages)] == [one is part for one in (sheet, card, pages)]
        assert screen.button("Validate and next").is_visible()
    resize(screen, 720)
    assert [one.is_visible() for one in (sheet, card, pages)] == [True, True, False]
    resize(screen, 1440)
    assert [one.is_visible() for one in (sheet, card, pages)] == [True, True, True]


def test_keys_work_in_every_tab(start: Callable[..., Screen]) -> None:
    screen = start("n_keys", 480)
    screen.page.keyboard.press("c")  # its button is in the tab behind, which comes to the front
    expect(screen.page.locator(".ek-issue .ek-answered")).to_be_visible()
    assert front_tab(screen) == "Case"
    screen.page.keyboard.press("u")
    screen.settle()
    screen.page.keyboard.press("ArrowRight")
    screen.page.wait_for_selector(".ek-pane[data-page='2'][data-painted$=':2']")
    assert front_tab(screen) == "Page", "a page that was turned to is in sight"
    tab(screen, "Documents")
    screen.page.keyboard.press("j")
    screen.page.keyboard.press("k")
    screen.settle()
    assert front_tab(screen) == "Page", "what a key lights is in sight"
    tab(screen, "Documents")
    screen.page.locator(".ek-thumb[data-page='1']").click()
    screen.page.wait_for_selector(".ek-pane[data-page='1'][data-painted$=':1']")
    assert front_tab(screen) == "Page"


def test_a_page_behind_another_tab_is_not_seen(login: Login) -> None:
    screen = login()
    screen.open("altered_quotes")
    screen.page.wait_for_selector(".ek-issue.ek-selected .ek-seen")
    resize(screen, 480)
    tab(screen, "Case")
    screen.page.locator(".ek-issue:not(.ek-selected) .ek-message").first.click()
    screen.settle()
    screen.page.wait_for_timeout(400)
    assert screen.page.locator(".ek-issue.ek-selected .ek-seen").count() == 0
    tab(screen, "Page")
    screen.page.wait_for_selector(".ek-issue.ek-selected .ek-seen", state="attached")


def test_nothing_scrolls_sideways_at_320_pixels(login: Login) -> None:
    screen = login()
    resize(screen, 320)
    assert page_width(screen) == 320
    assert screen.page.evaluate(TOO_WIDE) == []
    resize(screen, 1440)
    screen.open("fabricated_quote")
    resize(screen, 320)
    for name in ("Page", "Case", "Documents"):
        tab(screen, name)
        assert page_width(screen) == 320
        assert screen.page.evaluate(TOO_WIDE) == []


def test_rare_keys_work_while_more_is_closed(start: Callable[..., Screen]) -> None:
    screen = start("n_rare")
    assert not screen.page.locator(".ek-rare").is_visible()
    screen.page.keyboard.press("Shift+D")
    expect(screen.page.locator(".ek-editor .ek-flag")).to_have_text("duplicate")
    screen.page.keyboard.press("u")
    expect(screen.page.locator(".ek-editor .ek-flag")).to_have_count(0)
    ranges = screen.page.locator(".ek-segment header > span:first-of-type")
    for page, key, expected in ((2, "s", ["1", "2–3"]), (3, ",", ["1–2", "3"]), (1, ".", ["1", "2–3"])):
        screen.turn_to(page)
        screen.settle()
        screen.page.keyboard.press(key)  # brackets need a third key on many keyboards
        expect(ranges).to_have_text(expected)


def test_a_deciding_key_waits_for_the_page(start: Callable[..., Screen]) -> None:
    screen = start("n_waits", before_opening=SLOW_LAST_PAGE)
    screen.page.keyboard.press("End")
    screen.page.keyboard.press("2")
    screen.page.wait_for_timeout(500)
    assert screen.page.locator(".ek-chosen").inner_text().startswith("Clinical Note"), "the page is not in sight yet"
    screen.page.evaluate(ARRIVE)
    expect(screen.page.locator(".ek-chosen")).to_contain_text("Pathology")
    assert screen.page.locator(".ek-slow").inner_text() == ""


def test_a_deciding_key_without_page_says_so(start: Callable[..., Screen]) -> None:
    screen = start("n_drops", before_opening=SLOW_LAST_PAGE)
    screen.page.keyboard.press("End")
    screen.page.keyboard.press("2")
    expect(screen.page.locator(".ek-slow")).to_have_text("The page was still loading: press again.")
    screen.page.evaluate(ARRIVE)
    screen.page.wait_for_selector(".ek-pane[data-painted$=':3']")
    screen.settle()
    assert screen.page.locator(".ek-chosen").inner_text().startswith("Clinical Note")
    screen.page.keyboard.press("2")
    expect(screen.page.locator(".ek-chosen")).to_contain_text("Pathology")
