"""Tables of ``evalkit.show`` in JupyterLab, in a real browser."""

import json
import os
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator

import pytest
from patience import SECONDS, eventually
from playwright.sync_api import Browser, Page, expect
from system.browser.test_hostile import PAYLOAD

from evalkit.pipeline import RunSummary

CODE = """
import pandas as pd, evalkit
issues = pd.DataFrame(dict(
    doc_id=["fabricated_quote", "doc2_6", {payload!r}], page=[3, 2, 1],
    message=["short", "word " * 7000, "x" * 36000], value=[{payload!r}] * 3,
    **{{f"note_{{number}}": ["Clinical Note, " * 20] * 3 for number in range(8)}},
))
evalkit.show(issues, output={output!r})
"""


@pytest.fixture(scope="module")
def lab(demo_run: RunSummary, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a notebook in JupyterLab."""
    folder = tmp_path_factory.mktemp("lab")
    code = CODE.format(payload=PAYLOAD, output=demo_run.output)
    cell = {"cell_type": "code", "id": "c1", "metadata": {}, "execution_count": None, "outputs": [], "source": code}
    kernel = {"name": "python3", "display_name": "Python 3"}
    notebook = {"cells": [cell], "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    (folder / "tables.ipynb").write_text(json.dumps(notebook))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    variables = {name: str(folder / name) for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR")}
    options = [f"--ServerApp.port={port}", "--IdentityProvider.token=", "--LabApp.expose_app_in_browser=True"]
    server = subprocess.Popen(
        [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1", *options],
        cwd=folder,
        env=os.environ | variables | {"PYTHONPATH": os.pathsep.join(sys.path)},
        stderr=subprocess.DEVNULL,
    )
    try:
        assert eventually(lambda: is_reachable(f"http://127.0.0.1:{port}/api"))
        yield f"http://127.0.0.1:{port}/lab/tree/tables.ipynb"
    finally:
        server.terminate()
        server.wait(SECONDS)


def is_reachable(address: str) -> bool:
    try:
        return urllib.request.urlopen(address).status == 200
    except OSError:
        return False


@pytest.fixture(scope="module")
def page(chromium: Browser, lab: str) -> Iterator[Page]:
    context = chromium.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    outside: list[str] = []
    page.on("request", lambda request: None if "//127.0.0.1" in request.url else outside.append(request.url))
    page.goto(lab)
    page.wait_for_selector(".jp-Cell")
    page.wait_for_function("() => window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel")
    page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-all-cells')")
    expect(page.locator(".evalkit-table tbody tr")).to_have_count(3)
    yield page
    assert page.evaluate("() => window.__xss") is None
    assert [address for address in outside if not address.startswith(("data:", "blob:"))] == []
    context.close()


def test_a_column_fits_the_screen_and_the_first_one_stays(page: Page) -> None:
    widths = page.locator(".evalkit-table tbody tr:first-child td").evaluate_all(
        "cells => cells.map(cell => cell.getBoundingClientRect().width)"
    )
    heights = page.locator(".evalkit-table tbody tr").evaluate_all(
        "rows => rows.map(row => row.getBoundingClientRect().height)"
    )
    assert max(widths) < 500
    assert max(heights) < 90
    name, note = page.get_by_role("button", name="doc2_6"), page.locator(".evalkit-table tbody td:last-child").first
    before, note_before = name.bounding_box(), note.bounding_box()
    page.locator(".evalkit-table .dt-layout-table > div").evaluate("table => table.scrollBy(600, 0)")
    assert name.bounding_box()["x"] == pytest.approx(before["x"], abs=1)
    assert note.bounding_box()["x"] < note_before["x"] - 300


def test_text_is_left_and_numbers_are_right(page: Page) -> None:
    aligned = page.locator(".evalkit-table tbody tr:first-child td").evaluate_all(
        "cells => cells.map(cell => getComputedStyle(cell).textAlign)"
    )
    assert aligned[:4] == ["left", "right", "left", "left"]


def test_a_name_opens_and_closes_the_page_by_key(page: Page) -> None:
    name = page.get_by_role("button", name="fabricated_quote")
    name.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("img", name="page 3")).to_be_visible()
    expect(page.get_by_text("fabricated_quote: ESCALATE_TO_SME")).to_be_visible()
    name.click()
    expect(page.get_by_role("img", name="page 3")).to_have_count(0)


def test_a_hostile_name_is_only_a_name(page: Page) -> None:
    page.locator(".evalkit-table .evalkit-open").last.click()
    expect(page.locator(".evalkit-table")).to_contain_text("forbidden characters")
    page.locator(".evalkit-table .evalkit-open").last.click()
