"""Experts who stay logged in from test to test: each login starts a kernel, which takes seconds."""

from playwright.sync_api import Browser
from system.browser.screen import Screen
from system.browser.server import Served


class Seats:
    """One screen for each expert, in the queue between two tests."""

    def __init__(self, browser: Browser, served: Served) -> None:
        self._browser, self._served = browser, served
        self._free: dict[str, Screen] = {}
        self._taken: dict[str, Screen] = {}

    def take(self, name: str = "dr_lee", width: int = 1440, height: int = 900) -> Screen:
        """That expert's screen, in the queue; logged in anew where none was left."""
        screen = self._free.pop(name, None)
        if screen is None:
            screen = self._taken[name] = Screen(self._browser, self._served.address, width, height)
            screen.log_in(self._served.codes[name])
        else:
            self._taken[name] = screen
            screen.resize(width, height)
        return screen

    def give_back(self, *, failed: bool) -> None:
        """After a test. What a failed one left is not used again, so that no other test fails of it."""
        taken, self._taken = self._taken, {}
        for name, screen in taken.items():
            if failed or screen.outside or screen.faults or not screen.is_alive():
                screen.close()
            else:
                screen.rest()
                self._free[name] = screen
        for screen in taken.values():
            screen.assert_clean()

    def close(self) -> None:
        """At the end."""
        for screen in self._free.values():
            screen.close()
        for screen in self._free.values():
            screen.assert_clean()
