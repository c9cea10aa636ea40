"""The explorer in a notebook that Voilà serves: from a cell of the matrix to the lit page, by mouse and by keyboard."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from patience import SECONDS, eventually
from playwright.sync_api import Browser, Page, expect
from system.browser.test_accessibility import grave, missed_by_tab
from system.browser.test_hostile import PAYLOAD

from evalkit.pipeline import RunSummary

VIEWS = ((1440, 900, "light"), (1280, 720, "dark"), (480, 800, "light"))
TRUTH = "doc_id,dominant_type,segments\nquest_genomic,Other,1-2 Other\nclinical_note,Clinical Note,1-3 Clinical Note\n"
HOSTILE = "x <img src=x onerror=window.__xss=1>.pdf"


@pytest.fixture(scope="module")
def notebook_url(demo_run: RunSummary, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A notebook of one cell; one file of the demo has an attack for a name, and one quote is an attack."""
    folder = tmp_path_factory.mktemp("explorer")
    shutil.copytree(demo_run.output, folder / "output")
    (folder / "truth.csv").write_text(TRUTH)
    source = f"""import evalkit
from dataclasses import replace
from evalkit.evaluation.study import read_study
study = read_study({str(folder / "output")!r}, truth={str(folder / "truth.csv")!r})
documents = [replace(one, filename={HOSTILE!r}, sender={PAYLOAD!r}) if one.doc_id == "quest_genomic" else one for one in study.documents]
evalkit.explore(replace(study, documents=tuple(documents)))"""
    result = folder / "output/results/quest_genomic.json"
    result.chmod(0o600)
    stored = json.loads(result.read_text())
    stored["decision_reason"] = PAYLOAD
    result.write_text(json.dumps(stored))
    cell = {"cell_type": "code", "id": "one", "metadata": {}, "outputs": [], "execution_count": None, "source": source}
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    notebook = {"cells": [cell], "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    (folder / "explore.ipynb").write_text(json.dumps(notebook))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [sys.executable, "-m", "voila", "explore.ipynb", "--no-browser", f"--port={port}", "--Voila.ip=127.0.0.1"]
    with (folder / "voila.log").open("wb") as log:
        process = subprocess.Popen(words, cwd=folder, stdout=log, stderr=log)
    try:

        def answers() -> bool:
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", port)) == 0

        assert eventually(answers)
        yield f"http://127.0.0.1:{port}/"
    finally:
        process.terminate()
        process.wait(SECONDS)
    assert "Farrow" not in (folder / "voila.log").read_text()  # the patient of the document that was opened


@pytest.fixture(params=VIEWS, ids=lambda view: f"{view[0]}-{view[2]}", scope="module")
def page(request: pytest.FixtureRequest, chromium: Browser, notebook_url: str) -> Iterator[Page]:
    width, height, theme = request.param
    context = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=theme)
    page = context.new_page()
    page.route("**/*", lambda route: route.continue_() if "127.0.0.1" in route.request.url else route.abort())
    page.goto(notebook_url)
    page.wait_for_selector(".ek-matrix", timeout=1000 * SECONDS)
    yield page
    assert page.evaluate("window.__xss") is None
    context.close()


def shot(page: Page, shots: Path | None, name: str) -> None:
    if shots:
        page.screenshot(path=shots / f"explorer-{name}-{page.viewport_size['width']}.png", full_page=True)


def test_the_keyboard_alone(page: Page) -> None:
    assert missed_by_tab(page) == []
    cell = page.get_by_role("button", name="Truth Other, Program Genomic Report: 1 document")
    cell.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".ek-list tbody tr")).to_have_count(1)
    expect(cell).to_be_focused()
    page.locator(".ek-list").get_by_role("button").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(".ek-pane[data-page='1'] .ek-mark")
    page.keyboard.press("ArrowRight")
    page.wait_for_selector(".ek-pane[data-page='2'] .ek-mark")
    page.keyboard.press("Escape")
    expect(page.locator(".ek-list").get_by_role("button").first).to_be_focused()
    page.get_by_role("button", name="Clear all").click()
    expect(page.locator(".ek-explorer h2")).to_have_text("23 of 23 documents")


def test_from_a_cell_to_the_lit_page(page: Page, shots: Path | None) -> None:
    assert grave(page) == []
    shot(page, shots, "figures")
    page.get_by_role("button", name="Truth Other, Program Genomic Report: 1 document").click()
    expect(page.locator(".ek-explorer h2")).to_have_text("1 of 23 documents")
    expect(page.locator(".ek-list tbody tr")).to_have_count(1)
    assert grave(page) == []
    shot(page, shots, "cell")
    page.locator(".ek-list").get_by_role("button", name=HOSTILE).click()
    page.wait_for_selector(".ek-pane[data-page='1'] .ek-mark-found")
    expect(page.locator(".ek-differences button").first).to_have_text(
        "Page 1: the program says Genomic Report, the truth Other."
    )
    expect(page.locator(".ek-explorer h2")).to_be_focused()
    assert grave(page) == []
    shot(page, shots, "page")
    assert "quest" not in page.url
    page.locator(".ek-differences button").nth(1).click()
    page.wait_for_selector(".ek-pane[data-page='2'] .ek-mark")
