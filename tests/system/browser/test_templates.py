"""A template that cuts off a row: the edge is moved by mouse or by key, the sums meet, and it reads the statement whole."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from places import open_folder, open_index
from playwright.sync_api import Locator
from statements.measuring import rows_of
from statements.spoilt import Spoilt, publish_template_case, spoil_template, with_signs_inverted
from statements.undecided import draw_month, undecided_case
from system.browser.screen import Screen, find_highlights
from system.browser.server import Serve, Served
from system.browser.small_cases import CaseQueue, wait_until
from system.browser.test_accessibility import grave, grave_at_each_width, missed_by_tab
from typer.testing import CliRunner

from evalkit.cli import app
from evalkit.pipeline.statement_templates import review_and_publish_template
from evalkit.settings import Settings, TemplateReviewRetrySettings, TemplateReviewSettings
from evalkit.statements.applied_template import AppliedTemplate
from evalkit.statements.statement_template import (
    StatementIdentity,
    StatementTemplate,
    TemplateStatus,
    parse_template_toml,
)

Login = Callable[..., Screen]

ESCALATED = "a_mouse"
"""That one a review has sent to a person; the others are put into the queue as one would have left them."""
HOSTILE = "<img src=x onerror=window.__xss=1>" + "B" * 150


def made(folder: Path) -> dict[str, Spoilt]:
    """What waits: each statement cut off before its last row, but where it says otherwise."""
    return {
        "a_mouse": spoil_template(folder, "a_mouse"),
        "b_keys": spoil_template(folder, "b_keys", "debit and credit columns", 5),
        "c_pages": spoil_template(folder, "c_pages", "over several pages", 3),
        "d_signs": spoil_template(folder, "d_signs", "signed amounts", 8, with_signs_inverted, "critical_disagreement"),
        "e_unmet": spoil_template(folder, "e_unmet", "parentheses", 4),
        "f_access": spoil_template(folder, "f_access", "check numbers", 4, identity=StatementIdentity(bank=HOSTILE)),
        "g_reject": spoil_template(folder, "g_reject", "signed amounts", 6),
        "i_small": spoil_template(folder, "i_small", "two accounts", 4),
        "h_turned": spoil_template(folder, "h_turned", "signed amounts", 9),
        "j_undecided": undecided_case(folder, "j_undecided"),
        "k_dates": undecided_case(folder, "k_dates", "date_format"),
    }


def escalate(one: Spoilt, pdf: Path, output: Path) -> None:
    """Both reviewers look at the template as it is; the builder, who could mend it, has no attempt left."""
    no_retry = TemplateReviewSettings(retry=TemplateReviewRetrySettings(max_attempts=0))
    given = Settings(output=str(output), vllm_review=no_retry)
    done = review_and_publish_template(one.case.template, "bank.toml", pdf, output=output, settings=given)
    assert done.case_id == one.case_id


@pytest.fixture(scope="module")
def pdfs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the statements."""
    return tmp_path_factory.mktemp("statements")


@pytest.fixture(scope="module")
def cases(pdfs: Path) -> dict[str, Spoilt]:
    return made(pdfs)


@pytest.fixture(scope="module")
def review_server(
    serve: Serve, cases: dict[str, Spoilt], pdfs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    output = tmp_path_factory.mktemp("templates") / "output"
    files, index = open_folder(output), open_index(output)
    for name, one in cases.items():
        if name != ESCALATED:
            publish_template_case(files, index, one)
    index.close()
    escalate(cases[ESCALATED], pdfs / f"{ESCALATED}.pdf", output)
    with serve(output, ["dr_lee"]) as server:
        yield server


class Sheet:
    """One case about a template, opened, and what the expert's hands do."""

    def __init__(self, screen: Screen, waiting: CaseQueue, one: Spoilt) -> None:
        self.screen, self.page, self.waiting, self.one = screen, screen.page, waiting, one

    def open(self) -> Sheet:
        self.screen.open(self.one.case_id)
        self.page.wait_for_selector(".ek-frames [data-edge]")
        return self

    def edge(self, name: str) -> Locator:
        return self.page.locator(f'[data-edge="{name}"]')

    def drag(self, name: str, to: float) -> None:
        """Drag a horizontal edge to that fraction of the page's height."""
        self.edge(name).scroll_into_view_if_needed()
        sheet, box = self.page.locator(".ek-page-image").first.bounding_box(), self.edge(name).bounding_box()
        across, down = box["x"] + box["width"] * 0.3, box["y"] + box["height"] / 2
        self.page.mouse.move(across, down)
        self.page.mouse.down()
        for step in range(1, 6):
            self.page.mouse.move(across, down + (sheet["y"] + to * sheet["height"] - down) * step / 5)
        self.page.mouse.up()

    def sums_met(self) -> None:
        self.page.wait_for_selector("h3.ek-met:has-text('✓ Sums')")

    def draft(self) -> dict:
        return self.waiting.draft(self.one.case_id) or {"template": None, "evidence_seen": [], "pages_seen": []}

    def look(self) -> None:
        """Look at every grave issue, and every page."""
        for page in range(1, self.one.bundle.total_pages + 1):
            self.screen.turn_to(page)
            wait_until(self.screen, lambda page=page: page in self.draft()["pages_seen"], f"page {page} seen")
        left = "() => document.querySelector('[data-key=i]')?.innerText"
        while was := self.page.evaluate(left):
            self.page.keyboard.press("i")
            self.page.wait_for_function(f"(was) => ({left})() !== was", arg=was)

    def decided(self, *outcomes: str) -> None:
        """Wait until that was decided, with all that follows from it, and the case has left the screen."""
        wait_until(self.screen, lambda: self.waiting.outcomes(self.one.case_id) == list(outcomes), f"{outcomes}")
        self.page.wait_for_selector(f".ek-crumbs:not(:has-text('{self.one.bundle.doc_id}.pdf'))")

    def written(self, output: Path) -> StatementTemplate:
        name = f"{self.one.case.template_id}.toml"
        return parse_template_toml((output / "templates" / name).read_text(), name)


@pytest.fixture
def sheet(login: Login, case_queue: CaseQueue, cases: dict[str, Spoilt]) -> Callable[[str], Sheet]:
    return lambda name: Sheet(login(), case_queue, cases[name]).open()


def assert_reads_all(one: Spoilt, template: StatementTemplate) -> None:
    rows = rows_of(one.drawn, AppliedTemplate.create(template, one.bundle).statement)
    assert rows.there == rows.read == rows.right


def test_dragging_an_edge_meets_sums_and_reads_the_statement(
    review_server: Served, login: Login, case_queue: CaseQueue, cases: dict[str, Spoilt], pdfs: Path, shots: Path | None
) -> None:
    screen = login()
    row = screen.row(cases[ESCALATED].case_id)
    assert "the automatic checks still find faults" in row.inner_text()
    screen.shot(shots, "templates-queue-1440")
    one = Sheet(screen, case_queue, cases[ESCALATED]).open()
    assert_reads_all(one.one, one.one.sound)
    assert "The box cuts off rows: 1 are outside" in one.page.locator(".ek-issue").first.inner_text()
    one.page.wait_for_selector("h3.ek-unmet:has-text('✗ Sums')")
    assert len(find_highlights(screen)) == 1, "the row that was cut off is outlined"
    screen.shot(shots, "template-1440")
    assert screen.button("Approve").is_disabled()
    one.look()
    one.drag("region.0.bottom", one.one.sound.regions[0].box[3])
    one.sums_met()
    one.page.wait_for_selector(".ek-record .ek-line-change")
    assert "bottom edge" in one.page.locator(".ek-record").inner_text()
    screen.shot(shots, "template-moved-1440")
    one.page.keyboard.press("Control+Enter")
    one.decided("corrected")
    template = one.written(review_server.output)
    assert (template.status, template.version) == (TemplateStatus.STABLE, 2)
    assert_reads_all(one.one, template)
    truth = json.loads((review_server.output / "ground_truth" / f"gt_{one.one.case_id}.json").read_text())
    assert (truth["ground_truth_source"], truth["reviewer"], truth["unmet_sums"]) == ("SME_CORRECTED", "dr_lee", "")
    assert StatementTemplate.model_validate(truth["ground_truth_template"]) == template
    words = [
        "apply-template",
        template.template_id,
        str(pdfs / f"{ESCALATED}.pdf"),
        "--output",
        str(review_server.output),
    ]
    table = pdfs / "read_again.csv"
    again = CliRunner().invoke(app, [*words, "--to", str(table)])
    assert again.exit_code == 0, again.output
    assert "is a draft" not in again.output
    with table.open() as read:
        amounts = [Decimal(row["amount"]) for row in csv.DictReader(read)]
    assert amounts == [row.amount for row in one.one.drawn.rows]


def test_all_of_it_by_keyboard(review_server: Served, sheet: Callable[[str], Sheet], shots: Path | None) -> None:
    one = sheet("b_keys")
    one.look()
    one.page.keyboard.press("t")
    one.page.wait_for_selector('[data-edge="region.0.top"]:focus')
    one.page.keyboard.press("Tab")
    one.page.wait_for_selector('[data-edge="region.0.bottom"]:focus')
    before = one.draft()
    one.page.keyboard.press("ArrowDown")
    wait_until(one.screen, lambda: one.draft()["template"] != before["template"], "moved by a little")
    moved = one.draft()["template"]["region"][0]["box"][3]
    one.screen.shot(shots, "template-edge-1440")
    one.page.keyboard.press("Shift+ArrowDown")
    one.sums_met()
    assert one.draft()["template"]["region"][0]["box"][3] == pytest.approx(moved + 0.02, abs=1e-3)
    assert one.page.locator("[data-edge]:focus").get_attribute("data-edge") == "region.0.bottom", "the focus stays"
    one.page.keyboard.press("u")
    one.page.wait_for_selector("h3.ek-unmet")
    assert one.draft()["template"] is None, "moving one edge was one change"
    one.page.keyboard.press("Shift+ArrowDown")
    one.sums_met()
    one.page.keyboard.press("Escape")
    one.page.keyboard.press("Control+Enter")
    one.decided("corrected")
    assert_reads_all(one.one, one.written(review_server.output))


def test_rows_are_lit_one_by_one_and_every_page_must_be_seen(
    review_server: Served, sheet: Callable[[str], Sheet], shots: Path | None
) -> None:
    one = sheet("c_pages")
    one.page.keyboard.press("2")
    one.page.wait_for_selector(".ek-rows")
    one.screen.turn_to(1)
    on_page = [row for row in one.one.drawn.rows if row.page == 1]
    wait_until(one.screen, lambda: one.page.locator(".ek-rows tbody tr").count() == len(on_page), "the rows of page 1")
    one.page.keyboard.press("j")
    one.page.wait_for_selector('tr.ek-chosen-row[data-name="row.1"]')
    wait_until(one.screen, lambda: len(find_highlights(one.screen)) == 1, "the first row lit")
    first = find_highlights(one.screen)
    assert on_page[0].description in one.page.locator(".ek-chosen-row").inner_text()
    one.screen.shot(shots, "template-rows-1440")
    one.page.keyboard.press("j")
    wait_until(one.screen, lambda: find_highlights(one.screen) not in ([], first), "the second row lit")
    one.page.keyboard.press("3")
    one.page.locator(".ek-left [data-name]", has_text="outside every box").first.click()
    one.page.wait_for_selector(".ek-mark-near")
    one.screen.shot(shots, "template-left-1440")
    one.look()
    at = one.one.sound.find_region_indices(3, 3)[0]
    one.screen.turn_to(3)
    one.page.wait_for_selector(f'[data-edge="region.{at}.bottom"]')
    one.drag(f"region.{at}.bottom", one.one.sound.regions[at].box[3])
    one.sums_met()
    one.page.keyboard.press("Control+Enter")
    one.decided("corrected")
    assert_reads_all(one.one, one.written(review_server.output))


def test_inverted_signs_are_put_right_by_choosing(
    review_server: Served, sheet: Callable[[str], Sheet], shots: Path | None
) -> None:
    one = sheet("d_signs")
    assert "grave doubt" in one.page.locator(".ek-issue").first.inner_text()
    one.look()
    one.page.keyboard.press("4")
    one.page.get_by_label("Amounts with a minus, brackets or DR are").select_option("withdrawals")
    one.page.wait_for_selector(".ek-record .ek-line-change:has-text('deposits → withdrawals')")
    one.page.get_by_label("Amounts without a sign are").select_option("deposit")
    one.sums_met()
    one.screen.shot(shots, "template-choices-1440")
    one.screen.button("Approve with changes").click()
    one.decided("corrected")
    assert_reads_all(one.one, one.written(review_server.output))


def test_a_person_decides_the_sign_and_next_month_is_read(
    review_server: Served, sheet: Callable[[str], Sheet], pdfs: Path, shots: Path | None
) -> None:
    one = sheet("j_undecided")
    one.look()
    question = one.page.locator(".ek-question")
    assert "Which way did the money go?" in question.inner_text()
    assert "61.20 in" not in question.inner_text(), "the amounts of this month"
    assert "63.20 in\t63.20 out" in question.inner_text().replace("\n", "\t")
    one.page.wait_for_function(
        "() => [...document.querySelectorAll('.ek-line-cut')].every((cut) => cut.naturalWidth > 100)"
    )
    one.page.wait_for_selector(".ek-state:has-text('Choose first which of the two readings is right')")
    assert grave(one.page) == []
    one.screen.shot(shots, "template-signs-1440")
    one.screen.resize(1280, 720)
    one.screen.settle()
    assert question.locator("[data-key='[']").is_visible()
    assert question.evaluate("(node) => node.scrollWidth - node.clientWidth") == 0
    one.screen.shot(shots, "template-signs-1280")
    one.screen.resize(1440, 900)
    one.page.keyboard.press("[")
    one.page.wait_for_selector(".ek-record .ek-line-change:has-text('decided as they were read')")
    one.page.keyboard.press("]")
    one.page.wait_for_selector(".ek-question [data-key=']'][aria-pressed=true]")
    one.page.wait_for_selector(".ek-record .ek-line-change:has-text('deposits → withdrawals')")
    one.sums_met()
    one.screen.shot(shots, "template-signs-chosen-1440")
    one.page.keyboard.press("Control+Enter")
    one.decided("corrected")
    template = one.written(review_server.output)
    assert (template.status, template.amounts.sign_proof) == (TemplateStatus.STABLE, ("person",))
    next_month, table = pdfs / "next_month.pdf", pdfs / "next_month.csv"
    next_month.write_bytes(draw_month(3).pdf)
    words = ["apply-template", template.template_id, str(next_month), "--output", str(review_server.output)]
    applied = CliRunner().invoke(app, [*words, "--to", str(table)])
    assert applied.exit_code == 0, applied.output
    assert "is a draft" not in applied.output
    with table.open() as lines:
        amounts = [Decimal(row["amount"]) for row in csv.DictReader(lines)]
    assert amounts == [row.amount for row in draw_month(3).rows]


def test_a_person_decides_the_order_of_day_and_month(
    review_server: Served, sheet: Callable[[str], Sheet], shots: Path | None
) -> None:
    one = sheet("k_dates")
    one.look()
    assert "3 February 2024" in one.page.locator(".ek-question").inner_text()
    assert "2 March 2024" in one.page.locator(".ek-question").inner_text()
    assert one.page.locator(".ek-question").evaluate("(node) => node.scrollWidth - node.clientWidth") == 0
    one.screen.shot(shots, "template-dates-1440")
    one.page.locator(".ek-question button").first.click()
    one.page.wait_for_selector(".ek-question button[aria-pressed=true]")
    one.page.keyboard.press("Control+Enter")
    one.decided("corrected")
    template = one.written(review_server.output)
    assert (template.status, template.dates.alternative_formats) == (TemplateStatus.STABLE, ())
    assert AppliedTemplate.create(template, one.one.bundle).statement.transactions[0].date == "2024-02-03"


def test_sums_that_are_not_met_need_a_reason_in_words(
    review_server: Served, sheet: Callable[[str], Sheet], shots: Path | None
) -> None:
    one = sheet("e_unmet")
    one.look()
    one.page.wait_for_selector(".ek-state:has-text('say why the template may be approved')")
    one.page.keyboard.press("v")
    one.page.wait_for_timeout(700)
    assert one.waiting.outcomes(one.one.case_id) == []
    one.page.keyboard.press("w")
    one.page.wait_for_selector(".ek-asking textarea:focus")
    one.page.keyboard.type("the last row is stamped over")
    one.page.keyboard.press("Enter")
    one.page.wait_for_selector(".ek-reason:has-text('stamped over')")
    one.screen.shot(shots, "template-unmet-1440")
    one.page.wait_for_selector("[data-key=v]:enabled")
    one.page.keyboard.press("v")
    one.decided("validated")
    template = one.written(review_server.output)
    assert (template.status, template.version) == (TemplateStatus.STABLE, 1)
    review = json.loads((review_server.output / "reviews" / one.one.case_id / "0001.json").read_text())
    assert review["unmet_sums"] == "the last row is stamped over"


def test_edges_follow_the_hand_on_a_page_that_is_turned(sheet: Callable[[str], Sheet]) -> None:
    one = sheet("h_turned")
    before, whole = parse_template_toml(one.one.case.template, "").regions[0].box[3], one.one.sound.regions[0].box[3]

    def bottom() -> float:
        return one.draft()["template"]["region"][0]["box"][3] if one.draft()["template"] else before

    one.page.keyboard.press("r")
    one.edge("region.0.bottom").focus()
    one.page.keyboard.press("ArrowDown")  # along the edge: it goes nowhere
    one.page.keyboard.press("Shift+ArrowLeft")  # the page's foot is at the left now
    wait_until(one.screen, lambda: bottom() == pytest.approx(before + 0.02, abs=1e-4), "moved by key")
    image, edge = one.page.locator(".ek-page-image").first.bounding_box(), one.edge("region.0.bottom").bounding_box()
    down = edge["y"] + min(edge["height"] * 0.3, 200)
    one.page.mouse.move(edge["x"] + edge["width"] / 2, down)
    one.page.mouse.down()
    one.page.mouse.move(image["x"] + (1 - whole) * image["width"], down, steps=4)
    one.page.mouse.up()
    wait_until(one.screen, lambda: bottom() == pytest.approx(whole, abs=0.01), "moved by mouse")
    one.sums_met()


def test_what_is_chosen_or_unfolded_stays_in_sight(sheet: Callable[[str], Sheet]) -> None:
    one = sheet("i_small")
    one.screen.resize(1280, 720)
    inside = """(name) => {
        const node = document.querySelector(`.ek-template [data-name="${name}"]`);
        const [box, view] = [node, node.closest(".ek-sums-table, .ek-list")].map((one) => one.getBoundingClientRect());
        return box.top >= view.top - 1 && box.bottom <= view.bottom + 1;
    }"""
    last = one.page.locator(".ek-sums-table tbody tr").last
    name = last.get_attribute("data-name")
    last.click()
    one.page.wait_for_selector(f'[data-name="{name}"].ek-chosen-row')
    one.screen.settle()
    assert one.page.evaluate(inside, name), "the sum stays where it was scrolled to"
    one.page.keyboard.press("1")
    one.page.locator(".ek-list summary", has_text="Earlier versions of the template").click()
    one.page.locator(".ek-sums-table tbody tr").last.click()
    one.screen.settle()
    assert one.page.locator(".ek-list details[open]").count() == 1, "what was unfolded stays so"
    one.screen.resize(1440, 840)
    for key in "jjjkk":
        one.page.keyboard.press(key)
        one.screen.settle()
        chosen = one.page.locator(".ek-issue.ek-selected").get_attribute("data-name")
        wait_until(
            one.screen, lambda name=chosen: one.page.evaluate(inside, name), "the issue in sight, with its buttons"
        )
    last = one.page.locator(".ek-issue").last.get_attribute("data-name")
    one.page.locator(".ek-issue").last.click()
    wait_until(one.screen, lambda: one.draft().get("issue_id") == last, "kept")
    one.page.reload()
    one.page.wait_for_selector(".ek-frames [data-edge]")
    one.page.wait_for_selector(".ek-issue.ek-selected")
    wait_until(one.screen, lambda: one.page.evaluate(inside, last), "what was open last is in sight")


def test_a_rejected_template_stays_a_draft(review_server: Served, sheet: Callable[[str], Sheet]) -> None:
    one = sheet("g_reject")
    one.page.keyboard.press("q")
    one.page.wait_for_selector(".ek-asking textarea:focus")
    one.page.keyboard.type("vqt")  # keys are words here
    one.page.keyboard.press("Enter")
    one.decided("undeterminable")
    assert one.written(review_server.output).status is TemplateStatus.DRAFT
    assert not (review_server.output / "ground_truth" / f"gt_{one.one.case_id}.json").exists()


def test_everybody_can_use_it(sheet: Callable[[str], Sheet], shots: Path | None) -> None:
    one = sheet("f_access")
    assert HOSTILE in one.page.locator(".ek-why").inner_text()
    assert one.page.evaluate("window.__xss") is None, "what a template says is never run"
    panel = one.page.locator(".ek-why")
    assert panel.evaluate("(node) => node.scrollWidth - node.clientWidth") == 0, (
        "a bank's long name is broken, not cut off"
    )
    assert grave_at_each_width(one.page) == []
    for key in "234":
        one.page.keyboard.press(key)
        one.page.wait_for_selector(f"[data-key='{key}'][aria-pressed=true]")
        assert grave(one.page) == []
    assert missed_by_tab(one.page) == []
    one.page.keyboard.press("?")
    one.page.wait_for_selector(".ek-keys:not([hidden])")
    assert "Select an edge" in one.page.locator(".ek-keys:not([hidden])").inner_text()
    one.screen.shot(shots, "template-keys-1440")
    one.page.keyboard.press("Escape")
    one.screen.resize(1280, 720)
    one.page.keyboard.press("2")
    one.page.wait_for_timeout(500)
    one.screen.shot(shots, "template-1280")
