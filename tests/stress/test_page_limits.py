"""Small limits and a document that breaks them, in a real browser: what the expert is told, and that nothing is lost."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pymupdf
import pytest
from builders import NOTE, evidence, one_segment
from documents.drawing import lines, pdf
from patience import eventually
from PIL import Image
from playwright.sync_api import Browser
from system.browser.conftest import CHROMIUM
from system.browser.screen import Screen
from system.browser.server import serving
from system.browser.small_cases import PAGES, CaseQueue, run_small

import evalkit

pytestmark = [
    pytest.mark.stress,
    pytest.mark.skipif(CHROMIUM is None, reason="Debian's chromium is not installed"),
]
SIDE = 6000
"""Of a picture that cannot be decoded by parts (JPEG 2000): 400 MB and more of memory, 1 MB of file."""


LAST = 40
"""The page with that picture: so far away that its thumbnail is not drawn before somebody goes there."""


def with_large_page(folder: Path) -> Path:
    """The small cases, and one whose last page takes more memory than the test lets a page have."""
    output = run_small(folder)
    name, records = "large_page", folder / "large"
    (records / "answers").mkdir(parents=True)
    kept = io.BytesIO()
    Image.new("RGB", (SIDE, SIDE), (250, 250, 250)).save(kept, "JPEG2000", num_resolutions=1)
    with pymupdf.open(
        stream=pdf(*[lines([name, f"page {number}", *PAGES[0]], size=13) for number in range(LAST)])
    ) as document:
        document[LAST - 1].insert_image(pymupdf.Rect(72, 400, 500, 700), stream=kept.getvalue())
        document.save(records / f"{name}.pdf")
    answer = one_segment(NOTE, LAST, evidence("Tamoxifen 40 mg daily by mouth", 1, "Tamoxifen"))
    (records / "answers" / f"{name}.json").write_text(json.dumps(answer))
    (one,) = evalkit.run([records], output=output, classifications=records / "answers").documents
    assert one.decision == "ESCALATE_TO_SME"
    return output


def test_oversized_page_is_closed_with_reason_and_draft_kept(chromium: Browser, tmp_path: Path) -> None:
    output = with_large_page(tmp_path)
    limits = {"EVALKIT_REVIEW__PAGES": "2", "EVALKIT_REVIEW__PAGE_MEMORY_MB": "300"}
    with serving(output, ["dr_lee"], **limits) as server:
        screen = Screen(chromium, server.address, 1440, 900)
        screen.log_in(server.codes["dr_lee"])
        screen.open("large_page")
        screen.note("the dose is another")
        screen.page.keyboard.press("Escape")
        waiting = CaseQueue(output)
        assert eventually(lambda: (waiting.draft("large_page") or {}).get("notes") == "the dose is another")
        screen.page.keyboard.press("End")
        closed = screen.page.get_by_role("alertdialog")
        closed.get_by_text("It had come to use more memory than one screen may.").wait_for(timeout=30_000)
        assert closed.get_by_role("heading").inner_text() == "This screen was closed."
        assert waiting.draft("large_page")["notes"] == "the dose is another"
        waiting.close()
        closed.get_by_role("button", name="Back to the queue").click()
        screen.page.wait_for_selector(".ek-queue-head", timeout=60_000)
        screen.open("one_document")

        second = screen.second_tab()
        third = screen.context.new_page()
        third.goto(server.address)
        assert "There is no room for another review page." in third.inner_text("main")
        second.page.close()
        screen.page.wait_for_timeout(1000)
        third.get_by_role("link", name="Start page").click()
        third.wait_for_selector(".ek-queue-head", timeout=60_000)
