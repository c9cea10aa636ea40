"""What a model saw only in a picture, beside the page that an expert compares it with."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from documents.scanning import needs_tesseract
from pipeline.scanned_form import LABELS, STAMPED, run_with_model, write_scan
from playwright.sync_api import expect
from system.browser.screen import Screen
from system.browser.server import Serve, Served

pytestmark = needs_tesseract


@pytest.fixture(scope="module")
def review_server(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A scan with tick boxes and a stamp, run with a model that sees."""
    folder = tmp_path_factory.mktemp("pictures")
    run_with_model("gemini:gemini-2.5-flash", write_scan(folder), folder / "output")
    with serve(folder / "output", ["dr_lee"]) as server:
        yield server


def test_what_was_seen_is_asked_beside_the_page(login: Callable[..., Screen], shots: Path | None) -> None:
    screen = login()
    screen.open("release")
    for number, quote in enumerate((f"[x] {LABELS[2]}", STAMPED)):
        card = screen.page.locator(".ek-selected")
        expect(card).to_contain_text(quote)
        screen.shot(shots, f"seen-{number}-1440")
        assert "in the picture of page 1, not in the printed text. Does the page show it?" in card.inner_text()
        buttons = screen.page.locator(".ek-verdicts button").all_inner_texts()
        assert [text[:-1].strip() for text in buttons] == [
            "The page does not show it: strike the quote",
            "The page shows it",
        ]
        screen.page.keyboard.press("x" if number else "c")
        screen.settle()
    struck = screen.page.locator(".ek-record .ek-line-quote", has_text="Struck")
    assert struck.count() == 1
    screen.page.locator('[data-focus="claims"]').click()
    assert screen.page.locator(".ek-evidence", has_text=STAMPED).inner_text().startswith("picture of page 1: ")
    screen.shot(shots, "seen-claims-1440")
    screen.rest()
