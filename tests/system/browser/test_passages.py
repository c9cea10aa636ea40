"""What an expert selects or draws on a page: copied, searched, and used as quote, value or note."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from system.browser.screen import Screen
from system.browser.server import Served
from system.browser.small_cases import CaseQueue, wait_until

PHRASE = "No other variant of the analysed exon was found."
#: Selects from the first word to the last of the words that are given, as a mouse does it, in pixels.
_PLACES = """phrase => {
    const spans = [...document.querySelectorAll(".ek-text span")];
    const words = phrase.split(" ");
    const first = spans.findIndex((_, at) => words.every((word, by) => spans[at + by]?.textContent.trim() === word));
    const [from, to] = [spans[first], spans[first + words.length - 1]].map((span) => {
        const range = document.createRange();
        range.setStart(span.firstChild, 0);
        range.setEnd(span.firstChild, span.firstChild.length - 1);
        return range.getBoundingClientRect();
    });
    return [from.left + 1, from.top + from.height / 2, to.right - 1, to.top + to.height / 2];
}"""


def drag(screen: Screen, *places: float) -> None:
    x0, y0, x1, y1 = places
    screen.page.mouse.move(x0, y0)
    screen.page.mouse.down()
    screen.page.mouse.move((x0 + x1) / 2, (y0 + y1) / 2, steps=3)
    screen.page.mouse.move(x1, y1, steps=3)
    screen.page.mouse.up()


def select(screen: Screen, phrase: str) -> None:
    screen.page.wait_for_selector(".ek-text span")
    drag(screen, *screen.page.evaluate(_PLACES, phrase))
    screen.page.wait_for_selector(".ek-passage:not([hidden])")


@pytest.fixture
def screen(login: Callable[..., Screen]) -> Screen:
    screen = login()
    screen.open("altered_quotes")
    return screen


def quotes_of(case_queue: CaseQueue, case_id: str) -> list[dict]:
    return (case_queue.draft(case_id) or {}).get("evidence", [])


def test_selected_lines_are_copied_as_the_documents_words(screen: Screen) -> None:
    screen.context.grant_permissions(["clipboard-read", "clipboard-write"])
    select(screen, f"sample. It is classified as pathogenic. {PHRASE}")
    screen.page.keyboard.press("Control+c")
    copied = screen.page.evaluate("navigator.clipboard.readText()")
    assert copied == f"sample. It is classified as pathogenic.\n{PHRASE}"
    screen.page.keyboard.press("Escape")
    assert screen.page.locator(".ek-passage").is_hidden()


def test_the_browsers_own_search_finds_phrases(screen: Screen) -> None:
    screen.page.wait_for_selector(".ek-text span")
    assert screen.page.evaluate("phrase => window.find(phrase)", PHRASE)
    assert screen.page.locator(".ek-text").count() == 1, "only the page on screen has its words as text"
    screen.page.keyboard.press("Escape")


def test_words_lie_on_their_picture_in_any_zoom(screen: Screen) -> None:
    screen.page.wait_for_selector(".ek-text span")
    for key in ("+", "r"):
        screen.page.keyboard.press(key)
        screen.settle()
        farthest = screen.page.evaluate("""() => {
            const layer = document.querySelector(".ek-text").getBoundingClientRect();
            const turned = layer.width > layer.height;
            return Math.max(...[...document.querySelectorAll(".ek-text span")].map((span) => {
                const range = document.createRange();
                range.setStart(span.firstChild, 0);
                range.setEnd(span.firstChild, span.firstChild.length - 1);
                const box = range.getBoundingClientRect();
                const [x, y] = [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
                const [u, v] = [(x - layer.left) / layer.width, (y - layer.top) / layer.height];
                const [left, top] = turned ? [v, 1 - u] : [u, v];
                const [x0, y0, x1, y1] = span.ekBox;
                return Math.max(Math.abs(left - (x0 + x1) / 2), Math.abs(top - (y0 + y1) / 2));
            }));
        }""")
        assert farthest < 0.006, key


def test_a_selected_passage_becomes_a_quote_and_is_removed(screen: Screen, case_queue: CaseQueue) -> None:
    select(screen, PHRASE)
    screen.page.keyboard.press("z")
    screen.page.wait_for_selector(".ek-own .ek-quote")
    (quote,) = quotes_of(case_queue, "altered_quotes")
    assert (quote["page"], quote["snippet"], len(quote["boxes"])) == (1, PHRASE, 1)
    assert screen.page.locator(".ek-mark-own").count() == 1
    screen.page.get_by_label("remove the quote of page 1").click()
    screen.page.wait_for_selector(".ek-own", state="detached")
    wait_until(screen, lambda: not quotes_of(case_queue, "altered_quotes"), "the quote removed")
    assert screen.page.locator(".ek-mark-own").count() == 0


def test_words_are_selected_with_the_arrow_keys(screen: Screen, case_queue: CaseQueue) -> None:
    screen.page.wait_for_selector(".ek-text span")
    for key in ("z", "ArrowRight", "Shift+ArrowRight", "z"):
        screen.page.keyboard.press(key)
        screen.page.wait_for_timeout(300)
    screen.page.wait_for_selector(".ek-own .ek-quote")
    (quote,) = quotes_of(case_queue, "altered_quotes")
    assert quote["snippet"] == "BRCA1 c.5266dupC", "from the passage in question on"
    assert screen.page.locator(".ek-number").input_value() == "1", "the arrow keys turned no page"
    screen.page.keyboard.press("u")
    screen.page.wait_for_selector(".ek-own", state="detached")


def test_a_drawn_box_becomes_a_quote_with_typed_words(screen: Screen, case_queue: CaseQueue) -> None:
    sheet = screen.page.locator(".ek-page-image").bounding_box()
    x, y, width, height = (sheet[name] for name in ("x", "y", "width", "height"))
    screen.page.keyboard.down("Alt")
    drag(screen, x + 0.1 * width, y + 0.75 * height, x + 0.4 * width, y + 0.8 * height)  # nothing is printed there
    screen.page.keyboard.up("Alt")
    screen.page.get_by_label("the words in the box").fill("a stamp: APPROVED")
    screen.page.keyboard.press("Enter")
    screen.page.wait_for_selector(".ek-own .ek-quote")
    (quote,) = quotes_of(case_queue, "altered_quotes")
    assert quote["snippet"] == "a stamp: APPROVED"
    assert quote["boxes"][0] == pytest.approx([1, 0.1, 0.75, 0.4, 0.8], abs=0.01)
    screen.page.keyboard.press("u")
    screen.page.wait_for_selector(".ek-own", state="detached")


def test_a_passage_is_cited_in_a_note(screen: Screen) -> None:
    select(screen, PHRASE)
    screen.page.keyboard.press("n")
    words = screen.page.locator(".ek-asking textarea")
    assert words.input_value() == f"p. 1: “{PHRASE}”"
    words.fill("")
    screen.page.keyboard.press("Escape")


def test_a_scanned_page_carries_the_words_that_were_read(login: Callable[..., Screen], review_server: Served) -> None:
    screen = login()
    screen.open("scanned")
    screen.page.wait_for_selector(".ek-text span")
    assert len(screen.page.locator(".ek-text").inner_text().split()) > 30


def test_a_quote_by_hand_reaches_the_truth(login: Callable[..., Screen], review_server: Served) -> None:
    screen = login()
    screen.open("fabricated_quote")
    screen.page.wait_for_selector(".ek-text span")
    words = screen.page.evaluate(
        "() => [...document.querySelectorAll('.ek-text p')].map((line) => line.textContent.trim())"
        ".find((line) => line.split(' ').length > 5)"
    )
    select(screen, words)
    screen.page.keyboard.press("z")
    screen.page.wait_for_selector(".ek-own .ek-quote")
    screen.see_everything()
    screen.page.keyboard.press("5")
    screen.settle()
    screen.page.keyboard.press("Control+Enter")
    screen.page.wait_for_selector(".ek-notice:has-text('fabricated_quote.pdf')")
    truth = json.loads((review_server.output / "ground_truth" / "gt_fabricated_quote.json").read_text())
    quotes = [
        quote
        for segment in truth["ground_truth_classification"]["segments"]
        for presence in segment["segment_composition"]
        for quote in presence["top_evidence"]
    ]
    assert any(quote["snippet"] == words and quote["by"] == "expert" for quote in quotes)


def test_the_page_stays_where_it_is_when_others_are_redrawn(screen: Screen) -> None:
    screen.page.keyboard.press("+")
    screen.settle()
    scroll = screen.page.locator(".ek-scroll")
    scroll.evaluate("node => { node.scrollTop = 0.3 * node.scrollHeight; }")
    share = "node => node.scrollTop / node.querySelector('.ek-sheet').offsetHeight"
    before = scroll.evaluate(share)
    for key in ("Shift+P", "Shift+P"):  # a flag, and none again
        screen.page.keyboard.press(key)
        screen.settle()
        assert scroll.evaluate(share) == before, key
    for width, height in ((1240, 760), (1440, 900)):
        screen.resize(width, height)
        screen.page.wait_for_timeout(300)
        assert scroll.evaluate(share) == pytest.approx(before, abs=0.01), width
    tools = screen.page.locator(".ek-tools")
    row = tools.bounding_box()["height"]
    screen.turn_to(2)
    assert tools.bounding_box()["height"] == row
