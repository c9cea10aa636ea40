"""What the long runs share with the browser tests."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser
from system.browser.conftest import launch_chromium, serve, small_run_output

__all__ = ["serve", "small_run_output"]


@pytest.fixture(scope="module")  # Playwright's own event loop must not outlive the tests of a file
def chromium() -> Iterator[Browser]:
    with launch_chromium() as browser:
        yield browser
