"""The printed example in a real JupyterHub with dummy passwords and a real browser: one expert's review from login to file."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from patience import eventually
from places import open_folder
from playwright.sync_api import Browser
from system.browser.conftest import CHROMIUM
from system.browser.screen import Screen
from system.browser.small_cases import run_small
from system.serving.hub import PASSWORD, PROXY, Hub, hub

from evalkit.review.roster import ReviewerRoster

pytestmark = [
    pytest.mark.stress,
    pytest.mark.skipif(CHROMIUM is None, reason="Debian's chromium is not installed"),
    pytest.mark.skipif(
        shutil.which(PROXY) is None,
        reason="JupyterHub's proxy, Debian's node-configurable-http-proxy, is not installed",
    ),
]


def at_work(chromium: Browser, running: Hub, name: str) -> Screen:
    """Who types evalkit's address, is sent to the hub, logs in there, and lands in the queue."""
    screen = Screen(chromium, running.base, 1440, 900)
    screen.page.goto(running.evalkit)
    screen.page.fill("#username_input", name)
    screen.page.fill("#password_input", PASSWORD)
    screen.page.keyboard.press("Enter")
    screen.page.wait_for_selector(".ek-queue-head", timeout=60_000)
    assert screen.page.url == running.evalkit
    return screen


def test_a_review_is_written_under_the_name_that_the_hub_knows(chromium: Browser, tmp_path: Path) -> None:
    output = run_small(tmp_path)
    for name in ("dr_lee", "dr_kim"):
        ReviewerRoster(open_folder(output)).add_reviewer_or_replace_code(name)
    with hub(tmp_path / "hub", output) as running:
        lee, kim = at_work(chromium, running, "dr_lee"), at_work(chromium, running, "dr_kim")
        lee.open("one_document")
        assert eventually(lambda: "open by dr_lee" in _refreshed(kim).row("one_document").inner_text())
        kernel = json.loads(lee.page.locator("#jupyter-config-data").text_content())["kernelId"]
        theirs = kim.page.evaluate(
            "(id) => fetch(`/services/evalkit/api/kernels/${id}`).then((one) => one.status)", kernel
        )
        assert theirs == 404
        lee.see_everything()
        lee.button("Validate and next").click()
        lee.page.wait_for_selector(".ek-notice:has-text('validated')", timeout=15_000)
        review = json.loads((output / "reviews" / "one_document" / "0001.json").read_text())
        assert (review["reviewer"], review["outcome"]) == ("dr_lee", "validated")

        kim.page.get_by_role("button", name="Log out").click()
        kim.page.wait_for_selector("text=log out there too")
        kim.page.goto(f"{running.base}/hub/logout")
        kim.page.goto(running.evalkit)
        kim.page.wait_for_selector("#username_input")

        kim.page.fill("#username_input", "dr_lee")
        kim.page.fill("#password_input", "guessed")
        kim.page.keyboard.press("Enter")
        kim.page.wait_for_selector("text=Invalid username or password")
        stranger = running.log_in("dr_who")
        answer = stranger.get(running.evalkit, timeout=30)
        assert (answer.status_code, "“dr_who” is not the name of a reviewer here." in answer.text) == (403, True)
        lee.assert_clean()


def _refreshed(screen: Screen) -> Screen:
    screen.page.get_by_role("button", name="Refresh").click()
    return screen
