"""Entries of repeated fields: a marker that the program missed is added, another deleted; two results are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from documents.drawing import lines, pdf
from playwright.sync_api import expect
from system.browser.screen import Screen
from system.browser.server import Serve, Served
from system.browser.small_cases import CaseQueue, wait_until
from system.browser.test_accessibility import grave
from system.browser.test_fields import Form, stored

from evalkit.pipeline import extract
from evalkit.settings import Settings

Login = Callable[..., Screen]

REPORT = [
    "SURGICAL PATHOLOGY REPORT", "", "Histologic type: Invasive ductal carcinoma", "Tumor grade: cannot be read",
    "Margins: deep margin positive, lateral margins negative", "", "Immunohistochemistry:",
    "Estrogen receptor (ER): positive, 95%", "Progesterone receptor (PR): negative (0%)",
    "The third stain came back as three plus.", "", "Gross Description: received fresh.",
]  # fmt: skip
GRADE, MARGINS, PROGESTERONE = "1.grade", "1.margins", "1.ihcMarkers.PR"
REPORTS = ("i_marker", "j_margins", "k_entries")


@pytest.fixture(scope="module")
def review_server(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Pathology reports whose grade cannot be read, extracted."""
    folder = tmp_path_factory.mktemp("entries")
    for name in REPORTS:
        (folder / f"{name}.pdf").write_bytes(pdf(lines(REPORT)))
    extract([folder], output=folder / "output", settings=Settings(ocr="none", workers=1), template="pathology")
    with serve(folder / "output", ["dr_lee"]) as server:
        yield server


@pytest.fixture
def report(login: Login, case_queue: CaseQueue) -> Callable[[str], Form]:
    return lambda name: Form(login(), case_queue, name).open(GRADE)


def test_missed_marker_is_added_with_four_actions(
    report: Callable[[str], Form], review_server: Served, shots: Path | None
) -> None:
    one = report("i_marker")
    one.screen.shot(shots, "fields-report-1440")
    one.press("+")
    one.page.wait_for_selector(".ek-value-input:focus")
    one.page.keyboard.type("HER2: three plus")
    one.page.wait_for_selector(".ek-check-wrong:has-text('not the result of a stain')")
    one.screen.shot(shots, "fields-entry-1440")
    one.press("Escape")
    actions = [lambda: one.press("+"), lambda: one.page.keyboard.type("HER2: 3+"), lambda: one.press("Enter")]
    for action in actions:
        action()
        one.page.wait_for_timeout(300)
    assert len(actions) <= 4
    marker = "1.ihcMarkers.HER2"
    wait_until(one.screen, lambda: one.draft()["fields"].get(marker, {}).get("value") == "3+", "added")
    one.page.wait_for_selector(f'.ek-field.ek-selected[data-field="{marker}"]')
    listed = [node.get_attribute("data-field") for node in one.page.locator("[data-field]").all()]
    assert listed.index(marker) == listed.index(PROGESTERONE) + 1
    one.screen.shot(shots, "fields-added-1440")
    one.press("Control+Enter")
    one.decided("corrected")
    truth = stored(review_server, f"ground_truth/gt_{one.case_id}.json")
    assert truth["ground_truth_fields"][0]["fields"]["ihcMarkers.HER2"]["value"] == "3+"
    assert marker in truth["vouched"]


def test_two_results_are_refused_with_what_is_left_over(report: Callable[[str], Form], shots: Path | None) -> None:
    one = report("j_margins")
    one.row(MARGINS).click()
    one.seen(MARGINS)
    one.type("deep margin positive, lateral margins negative")
    wrong = one.page.wait_for_selector(".ek-check-wrong:has-text('Left over: deep, lateral, negative.')")
    assert "Write the rest as a note" in wrong.inner_text()
    one.screen.shot(shots, "fields-left-over-1440")
    one.press("Enter")
    one.page.wait_for_timeout(500)
    assert one.draft()["fields"] == {}
    assert "right" not in one.page.locator(".ek-typing").inner_text(), "nothing is praised"
    one.press("Escape")


def test_entries_are_renamed_deleted_and_restored(report: Callable[[str], Form], shots: Path | None) -> None:
    one = report("k_entries")
    one.row(PROGESTERONE).click()
    one.seen(PROGESTERONE)
    one.row(PROGESTERONE).get_by_role("button", name="Delete").click()
    one.page.keyboard.type("of the control slide")
    one.press("Enter")
    wait_until(one.screen, lambda: PROGESTERONE in one.draft()["fields"], "deleted")
    assert one.draft()["fields"][PROGESTERONE]["removed"] == "of the control slide"
    expect(one.row(PROGESTERONE)).to_contain_text("deleted: of the control slide")
    one.screen.shot(shots, "fields-deleted-1440")
    one.press("y")
    wait_until(one.screen, lambda: one.draft()["fields"] == {}, "restored")
    one.row(PROGESTERONE).get_by_role("button", name="Rename").click()
    one.page.keyboard.type("ER")
    one.press("Enter")
    one.page.wait_for_timeout(500)
    assert "already an entry" in one.screen.problem()
    one.page.locator(".ek-value-input").fill("AR")
    one.press("Enter")
    one.row("1.ihcMarkers.AR").wait_for()
    assert set(one.draft()["fields"]) == {PROGESTERONE, "1.ihcMarkers.AR"}
    one.press("u")
    one.row("1.ihcMarkers.AR").wait_for(state="detached")
    assert grave(one.page) == []
