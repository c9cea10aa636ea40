"""A real server, a real browser, a real expert's clicks."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from once import make_once
from patience import SECONDS
from playwright.sync_api import Browser, expect, sync_playwright
from system.browser.screen import Screen
from system.browser.seats import Seats
from system.browser.server import Serve, Served, serving_in_turn
from system.browser.small_cases import CaseQueue, run_small

from evalkit.pipeline import RunSummary

CHROMIUM = shutil.which("chromium")
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"),
]

expect.set_options(timeout=1000 * SECONDS)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if CHROMIUM is None:
        for item in items:
            if Path(__file__).parent in item.path.parents:
                item.add_marker(pytest.mark.skip(reason="Debian's chromium is not installed"))


@pytest.fixture(scope="module")
def review_server(serve: Serve, demo_run: RunSummary, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """`evalkit review` over a copy of the demo's output."""
    output = tmp_path_factory.mktemp("served") / "output"
    shutil.copytree(demo_run.output, output)
    with serve(output, ["dr_lee", "dr_ito"]) as server:
        yield server


@pytest.fixture(scope="package")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """`evalkit review`, of all files that do not need one of their own."""
    with serving_in_turn(tmp_path_factory.mktemp("serve") / "output") as serve:
        yield serve


@pytest.fixture(scope="session")
def small_run_output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output folder of a run, whose cases are put into the queue."""
    return make_once(tmp_path_factory, "small", run_small)


@contextmanager
def launch_chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="package")  # Playwright's own event loop must not outlive the browser tests
def chromium() -> Iterator[Browser]:
    with launch_chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def seats(chromium: Browser, review_server: Served) -> Iterator[Seats]:
    seats = Seats(chromium, review_server)
    yield seats
    seats.close()


@pytest.fixture
def case_queue(review_server: Served) -> Iterator[CaseQueue]:
    """What the experts have decided so far, and their drafts."""
    waiting = CaseQueue(review_server.output)
    yield waiting
    waiting.close()


@pytest.fixture
def login(seats: Seats, request: pytest.FixtureRequest) -> Iterator[Callable[..., Screen]]:
    """Gives an expert's screen, in the queue: ``login("dr_ito", width=1280, height=720)``."""
    failures = request.session.testsfailed
    yield seats.take
    seats.give_back(failed=request.session.testsfailed > failures)


@pytest.fixture
def shots() -> Path | None:
    """Where screenshots are kept for a person to look at: `EVALKIT_SHOTS=folder make test`."""
    folder = os.environ.get("EVALKIT_SHOTS")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
    return Path(folder) if folder else None
