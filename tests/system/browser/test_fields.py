"""Fields beside their page: a form with one altered amount is put right by keyboard alone."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pymupdf
import pytest
from benchmarks.tax_forms import Drawing, draw, form_w2
from playwright.sync_api import Locator, Page, expect
from system.browser.screen import Screen, find_highlights
from system.browser.server import Serve, Served
from system.browser.small_cases import CaseQueue, wait_until
from system.browser.test_accessibility import grave, grave_at_each_width, missed_by_tab

from evalkit.pipeline import extract
from evalkit.settings import Settings

Login = Callable[..., Screen]

TAX = "1.ss_tax_withheld"
ALTERED = "9,999.99"
HOSTILE = "Elm <img src=x onerror=window.__xss=1>"
MEDICARE = "1.medicare_tax_withheld"
NAMES = ("a_altered", "b_quick", "c_typed", "d_looked", "e_twice", "f_access", "g_held", "h_gone", "h_stays")


def true_tax(name: str) -> str:
    """What the form of that name should say: 6.2 % of the wages that it states."""
    return form_w2(random.Random(name)).truth["ss_tax_withheld"]


def altered(name: str) -> Drawing:
    """A W-2 on which the social security tax is not what its wages ask for."""
    one = form_w2(random.Random(name))
    assert true_tax(name) != ALTERED
    wrong = ("Social security tax", "Medicare tax") if name == "e_twice" else ("Social security tax",)
    right = [replace(box, value=ALTERED) if box.label.startswith(wrong) else box for box in one.right]
    firm = (HOSTILE, "1 Elm St", "Tulsa, OK 74103")
    left = [replace(box, lines=firm) if name == "f_access" and box.number == "c" else box for box in one.left]
    return replace(one, left=left, right=right)


def draw_form(path: Path, *drawings: Drawing) -> None:
    document = pymupdf.open()
    for one in drawings:
        draw(one, random.Random(4), document.new_page(width=612, height=792))
    document.save(path)


@pytest.fixture(scope="module")
def review_server(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Forms that contradict themselves, extracted."""
    folder = tmp_path_factory.mktemp("fields")
    for name in NAMES:
        draw_form(folder / f"{name}.pdf", altered(name))
    summary = extract([folder], output=folder / "output", settings=Settings(ocr="none", workers=1))
    assert [one.decision for document in summary.documents for one in document.extractions] == [
        "ESCALATE_TO_SME"
    ] * len(NAMES)
    with serve(folder / "output", ["dr_lee"]) as server:
        yield server


def stored(served: Served, name: str) -> dict:
    return json.loads((served.output / name).read_text())


class Form:
    """One case about fields, opened, and the expert's keyboard."""

    def __init__(self, screen: Screen, waiting: CaseQueue, name: str) -> None:
        self.screen, self.page, self.waiting = screen, screen.page, waiting
        self.case_id = f"{name}.extraction"

    def open(self, target: str = TAX) -> Form:
        self.screen.open(self.case_id)
        self.seen(target)
        return self

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def type(self, text: str) -> None:
        self.press("Enter")
        self.page.wait_for_selector(".ek-value-input:focus")
        self.page.keyboard.type(text)

    def draft(self) -> dict:
        return self.waiting.draft(self.case_id) or {"fields": {}, "fields_seen": []}

    def seen(self, key: str) -> None:
        """Wait until that field was on screen long enough to count."""
        wait_until(self.screen, lambda: key in self.draft()["fields_seen"], f"{key} seen")

    def row(self, key: str) -> Locator:
        return self.page.locator(f'.ek-field[data-field="{key}"]')

    def decided(self, *outcomes: str) -> None:
        """Wait until that was decided, with all that follows from it, and the case has left the screen."""
        wait_until(self.screen, lambda: self.waiting.outcomes(self.case_id) == list(outcomes), f"{outcomes}")
        self.page.wait_for_selector(f".ek-crumbs:not(:has-text('{self.case_id.removesuffix('.extraction')}.pdf'))")


@pytest.fixture
def form(login: Login, case_queue: CaseQueue) -> Callable[[str], Form]:
    return lambda name: Form(login(), case_queue, name).open()


def test_altered_amount_is_highlighted_corrected_and_saved(
    review_server: Served, login: Login, case_queue: CaseQueue, shots: Path | None
) -> None:
    screen = login()
    waiting = screen.cases()
    following = waiting[waiting.index("a_altered.extraction") + 1].partition(".")[0]
    assert "W-2 on page 1: amounts on it contradict each other" in screen.row("a_altered.extraction").inner_text()
    screen.shot(shots, "fields-queue-1440")
    one = Form(screen, case_queue, "a_altered").open()
    assert_lit(screen, review_server, "a_altered", ALTERED)
    assert "not 6.2%" in one.row(TAX).inner_text()
    screen.shot(shots, "fields-1440")
    one.type(true_tax("a_altered"))
    said = true_tax("a_altered").replace(",", "")
    screen.page.wait_for_selector(f".ek-check:has-text('{true_tax('a_altered')} → {said}')")
    one.press("Enter")
    screen.page.wait_for_selector(".ek-check:has-text('Press Enter again')")
    assert one.draft()["fields"] == {}, "shown first"
    one.press("Enter")
    screen.page.wait_for_selector(f".ek-record li:has-text('Social security tax withheld: 9999.99 → {said}')")
    screen.shot(shots, "fields-corrected-1440")
    assert screen.button("Validate and next").is_disabled()
    one.press("Control+Enter")
    one.decided("corrected")
    screen.page.wait_for_selector(f".ek-crumbs:has-text('{following}.pdf')")  # the next row of the list
    review = stored(review_server, "reviews/a_altered.extraction/0001.json")
    assert review["vouched"] == [TAX]
    assert review["before"][0]["fields"]["ss_tax_withheld"]["value"] == "9999.99"
    truth = stored(review_server, "ground_truth/gt_a_altered.extraction.json")
    assert (truth["ground_truth_source"], truth["reviewer"]) == ("SME_CORRECTED", "dr_lee")
    after = truth["ground_truth_fields"][0]
    assert (after["template"], after["fields"]["ss_tax_withheld"]["value"]) == ("W-2", said)
    assert after["fields"]["wages_tips"] == review["before"][0]["fields"]["wages_tips"]
    assert stored(review_server, "sme_packets/sme_packet_a_altered.extraction.json")["review_status"] == "completed"


def test_what_is_pressed_before_a_value_is_kept_is_done_after_it(form: Callable[[str], Form]) -> None:
    one = form("b_quick")
    one.type(true_tax("b_quick").replace(",", ""))
    one.press("Enter", "a", "u", "Control+Enter")
    one.decided("corrected")


def test_a_wrong_format_is_refused_while_it_is_typed(form: Callable[[str], Form], shots: Path | None) -> None:
    one = form("c_typed")
    one.type("4,88v")  # the v is part of the value, not the key that validates
    wrong = one.page.wait_for_selector(".ek-check-wrong:has-text('not a valid currency amount')")
    one.screen.shot(shots, "fields-typing-1440")
    assert "1,234.50" in wrong.inner_text()
    one.press("Enter")
    one.page.wait_for_timeout(500)
    assert one.draft()["fields"] == {}
    assert one.page.locator(".ek-value-input:focus").input_value() == "4,88v", "what was typed stays"
    one.screen.button("Validate and next").click()
    assert "not saved yet" in one.screen.problem()
    assert one.waiting.outcomes(one.case_id) == []
    one.page.locator(".ek-value-input").focus()
    one.press("Backspace")
    one.page.keyboard.type("6.1")
    one.page.wait_for_selector(".ek-check:has-text('4,886.1 → 4886.10')")
    one.press("Escape")
    one.page.wait_for_selector(".ek-value-input", state="detached")
    assert one.draft()["fields"] == {}
    one.press("a")
    wait_until(one.screen, lambda: one.draft()["fields"].get(TAX, {}).get("status") == "ambiguous", "ambiguous")
    one.press("u")
    wait_until(one.screen, lambda: one.draft()["fields"] == {}, "taken back")


def test_absent_field_is_confirmed_after_one_look(
    form: Callable[[str], Form], review_server: Served, shots: Path | None
) -> None:
    one = form("d_looked")
    truth = form_w2(random.Random("d_looked")).truth
    lacking = next(f"1.{name}" for name in ("control_number", "box_7") if not truth[name])
    one.row(lacking).click()
    one.seen(lacking)
    assert "found no value on page 1; nothing is highlighted" in one.row(lacking).inner_text()
    assert find_highlights(one.screen) == []
    one.screen.shot(shots, "fields-missing-1440")
    one.press("k")
    one.page.wait_for_selector(".ek-mark-found")
    above = one.page.locator(".ek-field.ek-selected").get_attribute("data-field")
    one.seen(above)
    one.press("m")
    wait_until(one.screen, lambda: one.draft()["fields"].get(above, {}).get("status") == "not_present", "not present")
    one.press("y")  # as it was read, after all: no change is left
    wait_until(one.screen, lambda: one.draft()["fields"] == {}, "found again")
    one.press("v")
    one.decided("validated")
    review = stored(review_server, f"reviews/{one.case_id}/0001.json")
    assert set(review["vouched"]) == {TAX, lacking, above}
    fields = stored(review_server, f"ground_truth/gt_{one.case_id}.json")["ground_truth_fields"][0]["fields"]
    assert fields[lacking[2:]]["status"] == "not_present"


def test_each_grave_issue_must_be_seen_before_one_key_validates(form: Callable[[str], Form]) -> None:
    one = form("e_twice")
    one.page.wait_for_selector(".ek-state:has-text('1 doubt not yet seen')")
    one.press("v")
    one.page.wait_for_timeout(700)
    assert one.waiting.outcomes(one.case_id) == []
    one.press("i")
    one.seen(MEDICARE)
    # The doubt is still open, so that validating does not stand out.
    one.page.wait_for_selector("[data-key=v]:enabled:not(.ek-primary)")
    one.page.wait_for_selector(".ek-state:has-text('not answered yet')")
    one.press("v")
    one.decided("validated")


def test_a_held_enter_keeps_nothing(form: Callable[[str], Form]) -> None:
    one = form("g_held")
    one.press("a")
    wait_until(one.screen, lambda: one.draft()["fields"].get(TAX, {}).get("status") == "ambiguous", "ambiguous")
    one.page.keyboard.down("Enter")
    one.page.wait_for_selector(".ek-value-input:focus")
    for _ in range(3):
        one.page.keyboard.down("Enter")
        one.page.wait_for_timeout(150)
    one.page.keyboard.up("Enter")
    assert one.draft()["fields"][TAX]["status"] == "ambiguous", "nobody has said that the value is right"
    one.press("Enter")
    wait_until(one.screen, lambda: one.draft()["fields"] == {}, "kept as found")


def test_what_is_drawn_around_the_line_leaves_it_the_keys(login: Login, case_queue: CaseQueue) -> None:
    one = Form(login(), case_queue, "h_gone")
    in_background(one.page, hidden=True)  # or it may have counted as seen before the line is there
    one.screen.open(one.case_id)
    one.type("")
    assert one.row(TAX).locator(".ek-seen").count() == 0
    in_background(one.page, hidden=False)
    one.page.wait_for_selector(f'.ek-field[data-field="{TAX}"] .ek-seen')
    one.page.keyboard.type("1y2")
    expect(one.page.locator(".ek-value-input")).to_have_value("1y2")
    one.press("Escape")


def in_background(page: Page, *, hidden: bool) -> None:
    """As if another tab were in front: what is painted there, nobody sees."""
    page.evaluate(
        """hidden => {
            Object.defineProperty(document, "hidden", { get: () => hidden, configurable: true });
            document.dispatchEvent(new Event("visibilitychange"));
        }""",
        hidden,
    )


def test_the_browser_asks_before_what_was_typed_is_gone(form: Callable[[str], Form]) -> None:
    one = form("h_gone")
    with one.screen.asked_on_leaving() as asked:
        one.type("12")
        one.page.reload()
        one.screen.wait_for_case()
        assert asked == ["beforeunload"]
        one.press("Enter")
        one.page.wait_for_selector(".ek-value-input:focus")
        one.page.reload()
        one.screen.wait_for_case()
        assert asked == ["beforeunload"], "nothing was typed"


def test_who_stays_after_all_goes_on_where_they_were(form: Callable[[str], Form]) -> None:
    one = form("h_stays")
    with one.screen.asked_on_leaving(stays=True) as asked:
        one.type("12")
        one.page.evaluate("location.reload()")
        wait_until(one.screen, lambda: asked == ["beforeunload"], "the browser has asked")
    one.page.wait_for_timeout(1000)  # in which the kernel would have been ended
    assert one.page.input_value(".ek-value-input").endswith("12")
    one.press("Escape")
    one.screen.note("still here")
    one.waiting.until_noted(one.screen, one.case_id, "still here")
    assert one.screen.is_alive()


def test_everybody_can_use_it(form: Callable[[str], Form], shots: Path | None) -> None:
    one = form("f_access")
    assert HOSTILE in one.row("1.employer_name").inner_text()
    assert one.page.evaluate("window.__xss") is None, "what a document says is never run"
    assert grave(one.page) == []
    one.page.locator("summary", has_text="How it was read").click()
    assert grave_at_each_width(one.page) == []
    one.row(TAX).focus()
    one.press("Enter")
    one.page.wait_for_selector(".ek-value-input:focus")
    assert grave(one.page) == []
    one.press("Escape")
    assert missed_by_tab(one.page) == []
    one.screen.resize(1280, 720)
    one.page.wait_for_timeout(500)
    one.screen.shot(shots, "fields-1280")


def assert_lit(screen: Screen, served: Served, doc_id: str, words: str) -> None:
    """That the one place on the page that is lit is where the PDF has these words."""
    page = pymupdf.open(stored(served, f"document_bundles/{doc_id}.json")["file_path"])[0]
    (place,) = page.search_for(words)
    found = find_highlights(screen)
    assert len(found) == 1
    wanted = (
        place.x0 / page.rect.width,
        place.y0 / page.rect.height,
        place.x1 / page.rect.width,
        place.y1 / page.rect.height,
    )
    assert found[0] == pytest.approx(wanted, abs=0.01)


def test_words_selected_on_the_page_become_the_value_with_place(form: Callable[[str], Form]) -> None:
    one = form("c_typed")
    one.page.wait_for_selector(".ek-text span")
    amount = one.page.locator(".ek-text span").filter(has_text=re.compile(r"^[\d,]+\.\d\d $"), has_not_text=ALTERED)
    amount.first.dblclick()
    one.page.get_by_role("button", name="Value of").click()
    one.page.wait_for_selector(".ek-value-input:focus")  # the form of the value changes, which is asked
    one.press("Enter")
    wait_until(one.screen, lambda: (one.draft()["fields"].get(TAX) or {}).get("boxes"), "the value's place kept")
    (box,) = one.draft()["fields"][TAX]["boxes"]
    assert box[0] == one.draft()["fields"][TAX]["page"] == 1
