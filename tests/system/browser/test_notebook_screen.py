"""The expert's screen as the result of a cell in JupyterLab, in a real browser."""

import shutil
from pathlib import Path

from places import open_index
from playwright.sync_api import Browser, Page, expect
from system.browser.notebook import open_notebook, run_cells

from evalkit.pipeline import RunSummary

CODE = """
from widgets.workbench import show
show({output!r}, reviewer="dr_lee")
"""


def list_claims(output: Path) -> dict[str, str]:
    with open_index(output) as index:
        claims = index.claims.map_live_claims_by_case_id("2000-01-01T00:00:00")
    return {case_id: claim.session for case_id, claim in claims.items()}


def read_tab_id(page: Page) -> str:
    return page.evaluate("() => sessionStorage.getItem('evalkit-tab')")


def test_a_cell_run_again_keeps_its_tab_and_its_case(chromium: Browser, demo_run: RunSummary, tmp_path: Path) -> None:
    output = tmp_path / "output"
    shutil.copytree(demo_run.output, output)
    with open_notebook(chromium, tmp_path, CODE.format(output=str(output))) as page:
        page.set_viewport_size({"width": 2000, "height": 1000})  # wide enough for all three parts of the screen
        run_cells(page)
        page.locator('.ek-case[data-case="quest_genomic"]').get_by_role("button", name="Open").click()
        expect(page.locator(".ek-pane[data-painted]")).to_be_visible()
        tab = read_tab_id(page)
        assert list_claims(output) == {"quest_genomic": tab}
        page.get_by_role("button", name="More", exact=True).click()
        page.get_by_label("notes for the record").fill("a routine count")
        page.locator('.ek-thumb[data-page="2"]').click()
        expect(page.locator('.ek-pane[data-page="2"][data-painted]')).to_be_visible()
        for _ in range(2):
            page.evaluate("() => document.querySelector('.ek-bar').dataset.isEarlier = 'yes'")
            run_cells(page)
            expect(page.locator(".ek-bar[data-is-earlier]")).to_have_count(0)
            expect(page.locator('.ek-pane[data-page="2"][data-painted]')).to_be_visible()
            expect(page.locator(".ek-bar")).to_have_count(1)
            expect(page.get_by_label("notes for the record")).to_have_value("a routine count")
            assert (read_tab_id(page), list_claims(output)) == (tab, {"quest_genomic": tab})
        page.get_by_role("button", name="Queue").click()
        expect(page.locator(".ek-queue-head")).to_be_visible()
        assert list_claims(output) == {}
