"""A login ends in all tabs at once, and the browser keeps no word of a document."""

import json
import os
import re
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from patience import eventually
from places import open_folder, open_index
from playwright.sync_api import Browser, Page, expect
from system.browser.screen import Screen
from system.browser.server import Served, kernels, serving
from system.browser.small_cases import CaseQueue

from evalkit.pipeline import RunSummary
from evalkit.review.roster import ReviewerRoster

Login = Callable[..., Screen]
EARLIEST = "2000-01-01T00:00:00+00:00"
#: What a page's origin keeps in this browser, as one text.
STORED = """async () => {
    const stored = [{ ...localStorage }, { ...sessionStorage }, history.state, document.cookie, location.href, document.title];
    for (const name of await caches.keys()) {
        const cache = await caches.open(name);
        for (const request of await cache.keys()) stored.push(request.url, await (await cache.match(request)).text());
    }
    for (const { name } of await indexedDB.databases()) {
        const database = await new Promise((resolve) => { indexedDB.open(name).onsuccess = (event) => resolve(event.target.result); });
        for (const store of database.objectStoreNames) {
            const rows = database.transaction(store).objectStore(store).getAll();
            stored.push(name, store, await new Promise((resolve) => { rows.onsuccess = () => resolve(rows.result); }));
        }
        database.close();
    }
    stored.push((await navigator.serviceWorker.getRegistrations()).map((one) => one.active?.scriptURL));
    return JSON.stringify(stored);
}"""


def is_document_shown(page: Page) -> bool:
    return page.locator(".ek-page-image").count() > 0


@pytest.fixture
def own_server(demo_run: RunSummary, tmp_path: Path) -> Iterator[Served]:
    output = shutil.copytree(demo_run.output, tmp_path / "output")
    with serving(output, ["dr_lee", "dr_ito"]) as server:
        yield server


def list_claimed_cases(output: Path) -> list[str]:
    with open_index(output) as index:
        return list(index.claims.map_live_claims_by_case_id(EARLIEST))


def test_the_browser_keeps_no_word_of_a_document(
    review_server: Served, login: Login, case_queue: CaseQueue, demo_run: RunSummary
) -> None:
    screen = login("dr_lee")
    screen.open("fabricated_quote")
    bundle = json.loads(Path(demo_run.output, "document_bundles/fabricated_quote.json").read_text())
    words = {word.lower() for page in bundle["pages"] for word in re.findall(r"[^\W\d_]{5,}", page["text"])}
    assert len(words) > 50
    shown = " ".join(screen.page.evaluate("document.documentElement.innerHTML").lower().split())
    assert any(word in shown for word in words), "the words are those of the page"
    screen.note("Notesworthy words")
    case_queue.until_noted(screen, "fabricated_quote", "Notesworthy words")
    for place in ("case", "queue"):
        stored = screen.page.evaluate(STORED).lower()
        assert not {word for word in {*words, "notesworthy", "fabricated"} if word in stored}, place
        if place == "case":
            screen.queue()


@pytest.mark.parametrize("end", ["log out", "remove the reviewer"])
def test_a_login_that_ends_shows_no_document_in_any_tab(own_server: Served, chromium: Browser, end: str) -> None:
    screen = Screen(chromium, own_server.address, 1280, 720)
    screen.log_in(own_server.codes["dr_lee"])
    twin = screen.second_tab()
    twin.open("poor_scan")
    screen.open("fabricated_quote")
    assert is_document_shown(twin.page)
    if end == "log out":
        screen.page.get_by_role("button", name="Log out").click()
        screen.page.wait_for_selector("text=You are logged out.")
        screen.page.go_back()
        screen.page.wait_for_selector("input[name=code]")
        assert not is_document_shown(screen.page), "not from the browser's cache either"
        ended = [twin]
    else:
        ReviewerRoster(open_folder(own_server.output)).remove_reviewer("dr_lee")
        ended = [screen, twin]
    for tab in ended:
        expect(tab.page.get_by_role("alertdialog")).to_contain_text("Your login has ended.")
        assert not is_document_shown(tab.page)
        tab.page.get_by_role("button", name="Log in").click()
        tab.page.wait_for_selector("input[name=code]")
    assert eventually(lambda: list_claimed_cases(own_server.output) == [])
    screen.context.close()


def test_a_service_that_is_stopped_gives_cases_back(own_server: Served, chromium: Browser) -> None:
    """A service manager sends SIGTERM to all processes at once, also to those in sessions of their own."""
    lee, ito = (Screen(chromium, own_server.address, 1280, 720) for _ in range(2))
    for screen, name, case_id in ((lee, "dr_lee", "poor_scan"), (ito, "dr_ito", "fabricated_quote")):
        screen.log_in(own_server.codes[name])
        screen.open(case_id)
    assert sorted(list_claimed_cases(own_server.output)) == ["fabricated_quote", "poor_scan"]
    for leader in (*kernels(own_server.pid), own_server.pid):
        os.killpg(leader, signal.SIGTERM)
    assert eventually(lambda: not kernels(own_server.pid))
    assert list_claimed_cases(own_server.output) == []
    for screen in (lee, ito):
        screen.context.close()
