"""Screens that everybody can use: what axe finds, and the keyboard alone."""

from collections.abc import Callable
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from places import open_folder, open_index
from playwright.sync_api import Browser, Page
from system.browser.screen import Screen
from system.browser.server import Served

from evalkit.review.roster import ReviewerRoster

Login = Callable[..., Screen]

GRAVE = ("serious", "critical")
VIEWS = (
    (1440, 900, "light", ""), (1440, 900, "dark", ""), (1024, 768, "light", "Documents"), (1024, 768, "dark", "Page"),
    (720, 450, "light", "Page"), (720, 450, "dark", "Case"), (480, 800, "light", "Page"), (480, 800, "dark", "Case"),
)  # fmt: skip
REACHABLE = """() => {
    const all = [...document.querySelectorAll("button, input, select, textarea, summary, a[href], [tabindex='0']")];
    return all.filter((one) => !one.disabled && one.type !== "hidden" && one.checkVisibility({ visibilityProperty: true }))
              .map((one) => [one, one.outerHTML.slice(0, 120)]);
}"""
WATCH = """() => {
    window.focused = new Set();
    document.addEventListener("focusin", (event) => window.focused.add(event.target));
    document.activeElement?.blur();
}"""
MISSED = f"() => ({REACHABLE})().filter(([one]) => !window.focused.has(one)).map(([, text]) => text)"


def grave(page: Page) -> list[str]:
    """Rule, place and mend of every serious or critical violation on screen."""
    return [
        f"{found['id']}: {node['target'][0]}: {node['failureSummary']}"
        for found in Axe().run(page).response["violations"]
        if found["impact"] in GRAVE
        for node in found["nodes"]
    ]


def grave_at_each_width(page: Page) -> list[str]:
    """The same at each width, in light and dark; in one column, with the case in front as well."""
    found = []
    for width, height, theme, tab in VIEWS:
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=theme)
        page.wait_for_function("width => document.documentElement.clientWidth === width", arg=width)
        if tab and page.locator(".ek-tabs").count():
            page.locator(".ek-tabs").get_by_role("button", name=tab).click()
        found += [f"{width} {theme}: {violation}" for violation in grave(page)]
    page.set_viewport_size({"width": 1440, "height": 900})
    page.emulate_media(color_scheme="light")
    return found


def missed_by_tab(page: Page) -> list[str]:
    """What can be used but is never focused while Tab goes through the page."""
    page.evaluate(WATCH)
    for _ in range(2 * len(page.evaluate(f"() => ({REACHABLE})().map(([, text]) => text)"))):
        page.keyboard.press("Tab")
    missed: list[str] = page.evaluate(MISSED)
    return missed


def test_the_login_page(chromium: Browser, review_server: Served, shots: Path | None) -> None:
    screen = Screen(chromium, review_server.address, 1440, 900)
    for notice, code in (("", ""), ("This code is not valid.", "aaaa-bbbb-cccc-dddd")):
        if not code:
            screen.page.goto(review_server.address)
        else:
            screen.page.fill("#code", code)
            screen.page.keyboard.press("Enter")
            screen.page.wait_for_selector(f"[role=alert]:has-text('{notice}')")
        assert grave_at_each_width(screen.page) == []
        assert missed_by_tab(screen.page) == []
        screen.shot(shots, f"login-{'wrong' if code else 'first'}-1440")
    screen.context.close()


def test_the_queue(review_server: Served, login: Login) -> None:
    screen = login()
    assert grave_at_each_width(screen.page) == []
    assert missed_by_tab(screen.page) == []


def test_a_case(review_server: Served, login: Login) -> None:
    screen = login()
    screen.open("fabricated_quote")
    screen.page.wait_for_selector(".ek-issue .ek-seen")
    assert missed_by_tab(screen.page) == []
    screen.button("More").click()
    assert grave_at_each_width(screen.page) == []


def test_an_analyst_looks_and_decides_nothing(review_server: Served, login: Login, shots: Path | None) -> None:
    review_server.codes["dr_ana"] = ReviewerRoster(open_folder(review_server.output)).add_reviewer_or_replace_code(
        "dr_ana", role="analyst"
    )
    screen = login("dr_ana", width=1280, height=720)
    assert "you can read cases" in screen.page.locator(".ek-queue").inner_text()
    assert screen.page.locator(".ek-case").get_by_role("button", name="Open").count() == 0
    assert grave(screen.page) == []
    screen.open("fabricated_quote", by="Read")
    screen.page.wait_for_timeout(1000)  # long enough for an expert's look to count
    for key in ("v", "5", "s", "c", "q", "d", "Control+Enter"):
        screen.page.keyboard.press(key)
    screen.page.wait_for_timeout(300)
    assert "you can read cases" in screen.page.locator(".ek-editor").inner_text()
    enabled = screen.page.locator(".ek-editor button:enabled:visible, .ek-verdicts button:enabled").all_inner_texts()
    assert set(enabled) <= {"More"}
    assert grave(screen.page) == []
    screen.shot(shots, "analyst-1280")
    assert not (review_server.output / "reviews" / "fabricated_quote").exists()
    index = open_index(review_server.output)
    assert index.claims.map_live_claims_by_case_id("2000") == {}
    index.close()


def test_a_page_that_refuses(review_server: Served, login: Login, shots: Path | None) -> None:
    screen = login()
    screen.page.goto(f"{review_server.address}/nothing")
    assert grave(screen.page) == []
    screen.shot(shots, "nothing-1440")
