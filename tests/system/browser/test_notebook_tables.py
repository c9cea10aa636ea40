"""Tables of ``evalkit.show`` in JupyterLab, in a real browser."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect
from system.browser.notebook import open_notebook, run_cells
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
def page(chromium: Browser, demo_run: RunSummary, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    code = CODE.format(payload=PAYLOAD, output=demo_run.output)
    with open_notebook(chromium, tmp_path_factory.mktemp("lab"), code) as page:
        run_cells(page)
        expect(page.locator(".evalkit-table tbody tr")).to_have_count(3)
        yield page
        assert page.evaluate("() => window.__xss") is None


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
