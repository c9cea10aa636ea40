"""What only a browser shows: widgets run under the content security policy, nothing leaves the machine."""

import json
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest
from patience import eventually
from system.serving.running import PATIENT, Server

sync_api = pytest.importorskip("playwright.sync_api")

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]


@pytest.mark.skipif(not CHROMIUM.exists(), reason="needs Debian's chromium")
def test_widgets_work_under_csp_and_nothing_leaves_localhost(server: Server) -> None:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page()
        foreign, said = [], []
        page.on("console", lambda message: said.append(message.text))
        page.on("request", lambda request: foreign.append(request.url) if is_foreign(request.url) else None)
        page.goto(server.base)
        before = set(server.output.glob("seen/*"))  # pages of other tests
        page.fill("#code", server.codes["dr_lee"])
        page.keyboard.press("Enter")
        page.click("#stub")
        page.wait_for_selector("text=got 4000000")
        assert page.title() == "evalkit"
        assert page.url == server.base + "/"
        page.wait_for_selector("img", state="attached")
        assert eventually(lambda: any("inline event handler" in text for text in said))
        assert page.evaluate("window.__xss") is None
        assert foreign == []
        assert PATIENT not in server.log  # the stub's callback raised an exception that says it
        seen = (json.loads(path.read_text()) for path in {*server.output.glob("seen/*")} - before)
        kernels = [psutil.Process(one["pid"]) for one in seen]
        page.reload()
        page.wait_for_selector("#stub")
        assert eventually(lambda: not any(one.is_running() and one.status() != "zombie" for one in kernels))
        page.close(run_before_unload=True)
        browser.close()


def is_foreign(url: str) -> bool:
    return urlsplit(url.removeprefix("blob:")).hostname not in ("127.0.0.1", None)
