"""Two experts in two browsers who press at one moment, one case after the other."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator
from system.browser.screen import Screen
from system.browser.server import Serve, Served
from system.browser.small_cases import CaseQueue, wait_until

EXPERTS = ("dr_lee", "dr_ito")
PRESS_AT = "(button, moment) => { setTimeout(() => button.click(), moment - Date.now()); }"
AHEAD = 0.25
"""Seconds between the order to press and the press, so that the order has reached both browsers."""
TAKEN = re.compile(r"open by dr_(lee|ito) since \d\d:\d\d")
CLOSED = re.compile(r"closed|was reviewed after")


@dataclass
class Told:
    """How the races went."""

    opened: Counter[str] = field(default_factory=Counter)
    """Who was the first to open."""
    decided: Counter[str] = field(default_factory=Counter)
    """Whether the case was decided by who had it or by who took it over at that moment."""


class Race:
    """Two experts and one case at a time."""

    def __init__(self, screens: dict[str, Screen], waiting: CaseQueue, small: Path) -> None:
        self._screens, self._waiting, self._small = screens, waiting, small
        self.told = Told()

    def run(self, turns: int) -> None:
        """So many races, one after the other, and no second decision of any case that came late."""
        for turn in range(turns):
            self._once(turn)
        for turn in range(turns):
            assert self._waiting.outcomes(_name(turn)) == ["validated"]

    def _once(self, turn: int) -> None:
        """Both open the case; then who has it validates it, and the other takes it over, at one moment."""
        case_id = self._waiting.put(self._small, "one_document", _name(turn))
        for screen in self._screens.values():
            screen.button("Refresh").click()
            screen.row(case_id).wait_for()
        press(*(self._open(name, case_id) for name in EXPERTS))
        holder, other = self._who_opened(case_id)
        self.told.opened[holder] += 1
        words = f"words of {holder} on {case_id}"
        self._screens[holder].note(words)
        self._seen(holder, case_id, words)
        take_over = self._screens[other].row(case_id).get_by_role("button", name="Take over")
        press(self._screens[holder].button("Validate and next"), take_over)
        self._decided(case_id, holder, other, words)
        for screen in self._screens.values():
            if screen.page.locator(".ek-why").count():
                screen.queue()

    def _open(self, name: str, case_id: str) -> Locator:
        return self._screens[name].row(case_id).get_by_role("button", name="Open")

    def _who_opened(self, case_id: str) -> tuple[str, str]:
        """Who has the case, and who was told so."""
        first = next(iter(self._screens.values()))

        def shown(name: str) -> tuple[bool, bool]:
            page = self._screens[name].page
            notices = page.locator(".ek-queue-notice").all_inner_texts()
            return page.locator(".ek-why").count() > 0, any(case_id in notice for notice in notices)

        wait_until(first, lambda: all(any(shown(name)) for name in EXPERTS), "both have an answer")
        has_it = [name for name in EXPERTS if shown(name)[0]]
        assert len(has_it) == 1, f"{case_id} is open for {has_it}"
        (holder,) = has_it
        other = next(name for name in EXPERTS if name != holder)
        notice = self._screens[other].page.locator(".ek-queue-notice").inner_text()
        assert (found := TAKEN.search(notice)), notice
        assert holder.endswith(found[1])
        return holder, other

    def _seen(self, name: str, case_id: str, words: str = "") -> None:
        """Wait until that expert may validate, and has their words on disk."""
        screen = self._screens[name]

        def ready() -> bool:
            draft = self._waiting.draft(case_id, name)
            return bool(draft and draft["evidence_seen"] and draft["notes"] == words)

        screen.wait_for_case()
        wait_until(screen, ready, f"{name} has seen the evidence and written")
        wait_until(screen, screen.button("Validate and next").is_enabled, "it may be validated")

    def _decided(self, case_id: str, holder: str, other: str, words: str) -> None:
        """Either the validation came first, or the taking over: then the words stay, and the other one decides."""
        mine, theirs = self._screens[holder], self._screens[other]
        wait_until(mine, lambda: bool(self._waiting.outcomes(case_id)) or self._is_told(holder), "an answer")
        if self._waiting.outcomes(case_id):
            assert self._waiting.reviewers(case_id) == [holder]
            mine.page.wait_for_selector(".ek-queue-head")
            wait_until(theirs, lambda: bool(CLOSED.search(theirs.page.locator("body").inner_text())), "told")
            self.told.decided["by who had it"] += 1
        else:
            assert TAKEN.search(mine.problem()), mine.problem()
            assert self._waiting.draft(case_id, holder)["notes"] == words
            assert mine.page.get_by_label("notes").input_value() == words
            self._seen(other, case_id)
            press(mine.button("Validate and next"), theirs.button("Validate and next"))
            wait_until(theirs, lambda: bool(self._waiting.outcomes(case_id)), "decided")
            theirs.page.wait_for_selector(".ek-queue-head")
            wait_until(mine, lambda: self._is_told(holder), "told")
            assert self._waiting.reviewers(case_id) == [other]
            assert self._waiting.draft(case_id, holder)["notes"] == words
            self.told.decided["by who took it over"] += 1
        assert self._waiting.outcomes(case_id) == ["validated"]

    def _is_told(self, name: str) -> bool:
        """Whether something stands in the way of what that expert did in the open case."""
        return any(text.strip() for text in self._screens[name].page.locator(".ek-problem").all_inner_texts())


def _name(turn: int) -> str:
    return f"race_{turn:03d}"


def press(*buttons: Locator) -> None:
    """All at one moment, by each page's own clock."""
    moment = 1000 * (time.time() + AHEAD)
    for button in buttons:
        button.evaluate(PRESS_AT, moment)


@pytest.fixture(scope="module")
def raced(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve(tmp_path_factory.mktemp("races") / "output", EXPERTS) as server:
        yield server


@pytest.fixture
def race(raced: Served, chromium: Browser, small_run_output: Path) -> Iterator[Race]:
    waiting = CaseQueue(raced.output)
    screens = {name: Screen(chromium, raced.address, 1280, 720) for name in EXPERTS}
    for name, screen in screens.items():
        screen.log_in(raced.codes[name])
    yield Race(screens, waiting, small_run_output)
    for screen in screens.values():
        assert screen.faults == []
        screen.close()
    waiting.close()
