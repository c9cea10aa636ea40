"""A real server, a real browser, a real expert's clicks."""

import os
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from browser.screen import Screen
from demo.conftest import finished, samples
from playwright.sync_api import Browser, sync_playwright

from evalkit.batch import RunSummary
from evalkit.review.roster import Roster
from evalkit.store import Files

__all__ = ["finished", "samples"]

CHROMIUM = shutil.which("chromium")
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"),
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if CHROMIUM is None:
        for item in items:
            if Path(__file__).parent in item.path.parents:
                item.add_marker(pytest.mark.skip(reason="Debian's chromium is not installed"))


@dataclass(frozen=True)
class Served:
    """`evalkit review` over a copy of the demo's output."""

    address: str
    output: Path
    pid: int
    codes: dict[str, str]


@pytest.fixture(scope="module")
def served(finished: RunSummary, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    output = tmp_path_factory.mktemp("served") / "output"
    shutil.copytree(finished.output, output)
    roster = Roster(Files(output))
    codes = {name: roster.add(name) for name in ("dr_lee", "dr_ito")}
    with _Server(output) as (address, pid):
        yield Served(address, output, pid, codes)


class _Server:
    def __init__(self, output: Path) -> None:
        words = [sys.executable, "-m", "evalkit", "review", "--port", "0", "--output", str(output)]
        self._process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def __enter__(self) -> tuple[str, int]:
        line = self._process.stdout.readline()
        address = re.search(r"http://127\.0\.0\.1:\d+", line)[0]
        for _ in range(100):
            try:
                urllib.request.urlopen(f"{address}/login", timeout=5).close()
                break
            except (urllib.error.URLError, OSError):
                time.sleep(0.2)
        return address, self._process.pid

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(20)


@pytest.fixture(scope="module")  # Playwright's own event loop must not outlive the browser tests
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def login(chromium: Browser, served: Served) -> Iterator[Callable[..., Screen]]:
    screens: list[Screen] = []

    def enter(name: str = "dr_lee", width: int = 1440, height: int = 900) -> Screen:
        screen = Screen(chromium, served.address, width, height)
        screens.append(screen)
        screen.log_in(served.codes[name])
        return screen

    yield enter
    for screen in screens:
        assert screen.outside == [], "the page asked for something outside this machine"
        assert screen.faults == [], screen.faults
        screen.close()


@pytest.fixture
def shots() -> Path | None:
    """Where screenshots are kept for a person to look at: `EVALKIT_SHOTS=folder make test`."""
    folder = os.environ.get("EVALKIT_SHOTS")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
    return Path(folder) if folder else None
