"""The pages of a packet, in a real browser: turned, fitted, rotated, searched, overlooked at a glance."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymupdf
import pytest
from builders import GENOMIC, NOTE, answer, compose_single_type, evidence, segment
from places import open_index
from playwright.sync_api import Browser, expect
from system.browser.screen import Screen, find_highlights
from system.browser.server import Serve, Served
from system.browser.small_cases import wait_until

import evalkit

PAGES = 20
BROKEN = 9
BLANK = 7
NOT_HELD = 16
"""No test turns to it or to its neighbours."""
QUOTE = "BRCA1 c.5266dupC was detected"
HOSTILE = "<img src=x onerror=window.__xss=1>"


# What the page asks the kernel for, and which page it shows, with the milliseconds.
_LISTEN = """() => {
    window.happened = [];
    const note = (what) => window.happened.push([performance.now(), what]);
    const { send } = WebSocket.prototype;
    WebSocket.prototype.send = function (data) {
        const text = typeof data === "string" ? data : new TextDecoder().decode(data);
        const ahead = text.match(/"kind":\\s*"page",\\s*"pages":\\s*\\[(\\d+)\\]/);
        const asked = text.match(/"action":\\s*"page".*?"page":\\s*(\\d+)/);
        if (ahead) note(`page ${ahead[1]}`);
        if (asked) note(`asked ${asked[1]}`);
        if (/"action":\\s*"thumbnails"/.test(text)) note("small");
        return send.call(this, data);
    };
    const pane = document.querySelector(".ek-pane");
    new MutationObserver(() => note(`shown ${pane.dataset.page}`)).observe(pane, { attributeFilter: ["data-page"] });
}"""


def drawn() -> bytes:
    """Twenty pages: two patients, a blank page, one that names nobody, one that would like to be a program."""
    document = pymupdf.open()
    for number in range(1, PAGES + 1):
        page = document.new_page()
        if number == BLANK:
            continue
        who = "Patient: John Doe   DOB: 01/15/1970" if number < 6 else "Patient: Jane Roe   DOB: 03/02/1981"
        said = [
            "GENOMIC REPORT" if number < 6 else "PROGRESS NOTE",
            who if number != 4 else "",
            f"Sheet number {number}",
        ]
        said += ["The family history is", "discussed with the patient today.", HOSTILE if number == 8 else ""]
        if number == 2:
            said.append(f"{QUOTE} in a heterozygous state.")
        for row, text in enumerate(said):
            page.insert_text((72, 90 + 22 * row), text, fontsize=18 if row == 0 else 12)
    return bytes(document.tobytes())


@pytest.fixture(scope="module")
def packet(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server over one document that a person has to look at."""
    folder = tmp_path_factory.mktemp("packet")
    (folder / "packet.pdf").write_bytes(drawn())
    (folder / "answers").mkdir()
    quotes = (evidence(QUOTE, 2, "BRCA1"), evidence("BRCA2 was found to be pathogenic everywhere", 3, "BRCA2"))
    told = answer(
        segment(1, 1, 5, GENOMIC, compose_single_type(GENOMIC, *quotes)),
        segment(2, 6, PAGES, NOTE, compose_single_type(NOTE, evidence("discussed with the patient today", 6))),
        overall=NOTE,
        shares={GENOMIC: 5 / PAGES, NOTE: (PAGES - 5) / PAGES},
    )
    (folder / "answers" / "packet.json").write_text(json.dumps(told))
    output = folder / "output"
    evalkit.run([folder / "packet.pdf"], output=output, classifications=folder / "answers")
    with serve(output, ["dr_lee"]) as server:
        yield server


@pytest.fixture(params=[(1440, 900), (1280, 720)], ids=["1440", "1280"])
def size(request: pytest.FixtureRequest) -> tuple[int, int]:
    return request.param


@pytest.fixture(scope="module")
def case(packet: Served, chromium: Browser) -> Iterator[Screen]:
    """The document, opened once: these tests only look at it."""
    screen = Screen(chromium, packet.address, 1440, 900)
    screen.log_in(packet.codes["dr_lee"])
    screen.open("packet")
    screen.page.evaluate(
        """() => {
            window.told = [];
            document.querySelector(".ek-pane").addEventListener("ek-painted", (event) => window.told.push(event.detail));
        }"""
    )
    yield screen
    screen.close()


@pytest.fixture
def screen(case: Screen) -> Iterator[Screen]:
    """The document, one page of it fitted to the width."""
    case.resize(1440, 900)
    turn_to(case, 12)
    painted(case, 12)
    yield case
    if case.page.locator(".ek-two").count():
        do(case, "spread")
    if case.page.locator(".ek-find:visible").count():
        case.page.get_by_label("close the search").click()
    do(case, "larger", "fit")
    assert case.outside == []
    assert case.faults == []
    assert case.page.evaluate("window.__xss") is None


def do(screen: Screen, *deeds: str) -> None:
    """What a key does."""
    for deed in deeds:
        screen.page.evaluate(
            "deed => document.querySelector('.ek-pane').dispatchEvent(new CustomEvent('ek-do', {detail: deed}))", deed
        )


def drafted(packet: Served) -> dict[str, Any]:
    """The reader's draft of the document, as it is on disk."""
    with open_index(packet.output) as index:
        return json.loads(index.drafts.find_newest_draft("packet", "dr_lee", "").draft)


def at(screen: Screen, number: int) -> None:
    screen.page.wait_for_selector(f'.ek-pane[data-page="{number}"]')


def painted(screen: Screen, number: int) -> None:
    screen.page.wait_for_selector(f'.ek-pane[data-painted$=":{number}"]')


def turn_to(screen: Screen, number: int) -> None:
    screen.page.fill(".ek-number", str(number))
    screen.page.press(".ek-number", "Enter")
    at(screen, number)


def test_pages_are_turned_by_number_and_by_key(screen: Screen) -> None:
    turn_to(screen, 1)
    painted(screen, 1)
    do(screen, "next")
    assert screen.page.locator(".ek-pane").get_attribute("data-painted") is None, "not painted yet"
    painted(screen, 2)
    do(screen, "last")
    at(screen, PAGES)
    do(screen, "next", "first")
    at(screen, 1)
    do(screen, "next", "next", "next", "next")  # a key held down: only where it stops counts
    at(screen, 5)
    painted(screen, 5)
    turn_to(screen, 3)
    screen.page.fill(".ek-number", "99")
    screen.page.press(".ek-number", "Enter")
    assert screen.page.input_value(".ek-number") == "3"


def test_a_page_that_was_painted_is_told_once_it_stays(screen: Screen) -> None:
    turn_to(screen, 4)
    painted(screen, 4)
    told = screen.page.evaluate("window.told.at(-1)")
    assert told["page"] == 4
    assert told["token"].startswith("packet:")
    assert "seen" in screen.page.locator('.ek-thumb[data-page="4"]').get_attribute("aria-label")


def test_whose_page_it_is_stands_beside_the_tools(screen: Screen, shots: Path | None) -> None:
    strip = screen.page.locator(".ek-strip")
    for number, text in (
        (1, "DOE, JOHN · 01/15/1970"),
        (3, "DOE, JOHN · 01/15/1970 · same as page 2"),
        (4, "no patient name read"),
        (5, "DOE, JOHN · 01/15/1970 · same as page 3"),
        (6, "ROE, JANE · 03/02/1981 · another patient than page 5: DOE, JOHN · 01/15/1970"),
    ):
        turn_to(screen, number)
        assert "".join(strip.locator("span, b").all_inner_texts()) == text
    screen.settle()
    strip.hover()
    cut = screen.page.locator(".ek-parts .ek-cut")
    assert cut.count() == 2
    assert cut.first.is_visible()
    box = cut.first.bounding_box()
    assert box["width"] > 60
    assert box["height"] > 8
    screen.shot(shots, "page-strip-1440")


def test_marks_turn_with_the_page(screen: Screen) -> None:
    screen.page.get_by_text("What the program claims").first.click()
    screen.page.locator(".ek-evidence", has_text=QUOTE).first.click()
    at(screen, 2)
    screen.page.wait_for_selector(".ek-mark-found")
    (before,) = find_highlights(screen)
    do(screen, "rotate")
    (after,) = find_highlights(screen)
    assert after == pytest.approx([1 - before[3], before[0], 1 - before[1], before[2]], abs=0.01)
    do(screen, "next", "previous")
    at(screen, 2)
    frame = screen.page.locator(".ek-page-image").bounding_box()
    assert frame["width"] > frame["height"], "the page stays as it was turned"
    do(screen, "rotate", "rotate", "rotate")
    frame = screen.page.locator(".ek-page-image").bounding_box()
    assert frame["width"] < frame["height"]


def test_zoom_and_fit(screen: Screen) -> None:
    turn_to(screen, 1)
    wide = screen.page.locator(".ek-page-image").bounding_box()
    do(screen, "larger")
    assert screen.page.locator(".ek-page-image").bounding_box()["width"] == pytest.approx(1.25 * wide["width"], abs=1)
    do(screen, "fit")
    assert screen.page.locator(".ek-page-image").bounding_box()["width"] == pytest.approx(wide["width"], abs=1)
    do(screen, "fit")
    whole, view = (screen.page.locator(name).bounding_box() for name in (".ek-page-image", ".ek-scroll"))
    assert whole["height"] <= view["height"]
    do(screen, "smaller", "smaller", "smaller")
    assert screen.page.locator(".ek-page-image").bounding_box()["width"] < whole["width"]


def test_what_is_looked_for_is_counted_and_outlined(screen: Screen, shots: Path | None) -> None:
    turn_to(screen, 3)
    do(screen, "find")
    screen.page.keyboard.type("history IS discussed")
    count = screen.page.locator(".ek-find-count")
    screen.page.wait_for_function("() => document.querySelector('.ek-find-count').textContent === '3 of 19'")
    expect(screen.page.locator(".ek-hit-now")).to_have_count(2)  # over a line break, one outline a line
    assert screen.page.locator(".ek-mark-found").count() == 0
    screen.shot(shots, "page-find-1440")
    screen.page.keyboard.press("Enter")
    at(screen, 4)
    assert count.inner_text() == "4 of 19"
    screen.page.keyboard.press("Shift+Enter")
    at(screen, 3)
    screen.page.get_by_label("find in the file").last.fill("zebra")
    screen.page.wait_for_function("() => document.querySelector('.ek-find-count').textContent === 'not found'")
    screen.page.get_by_label("find in the file").last.fill(HOSTILE)
    at(screen, 8)
    screen.page.keyboard.press("Escape")
    expect(screen.page.locator(".ek-hit")).to_have_count(0)


def test_two_pages_are_both_seen_when_both_are_visible(screen: Screen, shots: Path | None) -> None:
    turn_to(screen, 10)
    painted(screen, 10)
    do(screen, "spread")
    screen.page.wait_for_function("() => window.told.some((one) => one.page === 11)")
    assert screen.page.locator(".ek-page-image:visible").count() == 2
    screen.shot(shots, "page-spread-1440")
    do(screen, "last")
    at(screen, PAGES)
    screen.page.wait_for_function("() => document.querySelectorAll('.ek-page-image').length === 1")
    turn_to(screen, 4)
    do(screen, "larger", "larger", "larger", "larger", "larger")
    painted(screen, 4)
    screen.page.wait_for_timeout(400)
    screen.page.evaluate("() => { window.told.length = 0; }")
    do(screen, "first")
    painted(screen, 1)
    screen.page.wait_for_timeout(300)
    assert 2 not in [one["page"] for one in screen.page.evaluate("window.told")], "it is beyond the edge"


def test_all_pages_at_a_glance(screen: Screen, shots: Path | None) -> None:
    turn_to(screen, 1)
    painted(screen, 1)
    do(screen, "sheet")
    assert screen.page.locator(".ek-pane").get_attribute("data-painted") is None, "the page is covered"
    screen.page.wait_for_function("() => document.querySelectorAll('.ek-shot img').length >= 6")
    assert screen.page.locator(".ek-contact-head").count() == 2
    assert "new document" in screen.page.locator(".ek-contact-head").last.inner_text()
    assert screen.page.locator(".ek-card-heading").first.inner_text() == "GENOMIC REPORT"
    assert "blank" in screen.page.locator(f'.ek-card[data-page="{BLANK}"]').inner_text()
    screen.shot(shots, "page-sheet-1440")
    screen.page.keyboard.press("ArrowRight")
    screen.page.keyboard.press("ArrowDown")
    assert screen.page.evaluate("document.activeElement.dataset.page") != "1"
    screen.page.keyboard.press("Escape")
    assert screen.page.locator(".ek-contact").is_hidden()
    painted(screen, 1)
    do(screen, "sheet", "next", "next")
    screen.page.keyboard.press("Enter")
    at(screen, 3)
    assert screen.page.locator(".ek-contact").is_hidden()


def test_the_ribbon_says_what_is_known_of_each_page(screen: Screen, size: tuple[int, int], shots: Path | None) -> None:
    screen.resize(size[0], size[1])
    assert screen.page.locator(".ek-divider:visible").all_inner_texts() == ["new document"]
    label = screen.page.locator(f'.ek-thumb[data-page="{BLANK}"]').get_attribute("aria-label")
    assert label.startswith(f"page {BLANK}, Clinical Note, blank")
    assert "evidence here" in screen.page.locator('.ek-thumb[data-page="2"]').get_attribute("aria-label")
    screen.page.locator('.ek-thumb[data-page="2"]').hover()
    about = screen.page.locator(".ek-about")
    assert "pages 1–5" in about.inner_text()
    assert "evidence here" in about.inner_text()
    screen.shot(shots, f"page-ribbon-{size[0]}")
    right = screen.page.locator(".ek-middle").bounding_box()
    for button in screen.page.locator(".ek-tools button:visible").all():
        box = button.bounding_box()
        assert box["x"] + box["width"] <= right["x"] + right["width"] + 1, button.inner_text()


def test_a_page_that_cannot_be_shown_is_no_blank_page(screen: Screen, packet: Served, shots: Path | None) -> None:
    path = packet.output.parent / "packet.pdf"
    state = path.stat()
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns + 1))
    try:
        turn_to(screen, NOT_HELD)
        card = screen.page.locator(".ek-missing")
        assert "was changed while it was open" in card.inner_text()
        assert "could not be displayed" in card.inner_text()
        screen.page.wait_for_timeout(500)
        assert screen.page.locator(".ek-pane").get_attribute("data-painted") is None
        assert screen.page.locator(".ek-pane").get_attribute("data-told").endswith(f":{NOT_HELD}")
        label = screen.page.locator(f'.ek-thumb[data-page="{NOT_HELD}"]').get_attribute("aria-label")
        assert "cannot be drawn" in label
        assert "not seen yet" in label
        screen.shot(shots, "page-missing-1440")
    finally:
        os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    card.get_by_role("button", name="Try again").click()
    painted(screen, NOT_HELD)
    assert card.count() == 0


def test_neighbouring_pages_load_before_thumbnails(screen: Screen, packet: Served) -> None:
    """The last of the tests: it loads the page again, which then has no picture, and room for few in the ribbon."""
    screen.resize(1440, 400)
    wait_until(screen, lambda: drafted(packet)["page"] == 12, "where the reader is kept, which a reload comes back to")
    screen.page.reload()
    screen.page.wait_for_selector('.ek-pane[data-painted$=":12"]')
    screen.page.wait_for_timeout(1500)
    screen.page.evaluate(_LISTEN)

    def since(what: str) -> list[str]:
        """What happened since then; empty until it did."""
        told = [one for _, one in screen.page.evaluate("window.happened")]
        return told[told.index(what) :] if what in told else []

    turn_to(screen, 5)
    wait_until(screen, lambda: {"page 6", "page 4"} <= set(since("asked 5")), "both neighbours asked for")
    told = since("asked 5")
    assert told.index("page 6") < told.index("shown 5"), "it is drawn while 5 is painted"
    do(screen, "previous")
    wait_until(screen, lambda: "page 3" in since("asked 4"), "the one before asked for")
    turn_to(screen, PAGES)
    wait_until(screen, lambda: "small" in since(f"asked {PAGES}"), "small pictures for the ribbon")
    told = screen.page.evaluate("window.happened")
    pressed = next(when for when, what in told if what == f"asked {PAGES}")
    assert next(when for when, what in told if what == "small" and when > pressed) - pressed > 190
