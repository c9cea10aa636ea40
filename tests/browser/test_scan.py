"""A scan that lay askew: what the agent quotes is lit on the picture, where the words stand tilted."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser.conftest import Served, _Server
from browser.screen import Screen, lit
from builders import NOTE as CLINICAL_NOTE
from builders import evidence, one_segment
from documents.drawing import lines
from documents.scanning import Paper, assert_near, needs_tesseract, printed, scan
from playwright.sync_api import Browser

import evalkit
from evalkit.review.roster import Roster
from evalkit.store import Files

pytestmark = needs_tesseract

TILT = 3
NEAR = 0.012
"""Of the page: marks where the words would stand on a level page are farther off."""
TEXT = [
    "CLINICAL NOTE",
    "",
    "Chief complaint: breast lump noticed two weeks ago. The",
    "patient reports no pain and has had no fever since then.",
    "Blood pressure 128/76, pulse 72. The left breast shows a",
    "firm mass of two centimetres below the nipple, and no node",
    "is felt in the axilla. Tamoxifen 20 mg daily by mouth was",
    "begun once we had discussed the plan with her husband, and",
    "she will return for follow-up in six weeks.",
]
GENUINE = "The left breast shows a firm mass of two centimetres"
PRINTED = "Tamoxifen 20 mg daily by mouth was begun"
ALTERED = "Tamoxifen 40 mg daily by mouth was begun"


@pytest.fixture(scope="module")
def paper() -> Paper:
    return printed(lines(TEXT, size=13)).tilted(TILT).noisy(10)


@pytest.fixture(scope="module")
def askew(paper: Paper, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server over one document: a scanned page, quoted once as it is and once with another dose."""
    folder = tmp_path_factory.mktemp("askew")
    (folder / "askew.pdf").write_bytes(scan(paper))
    quotes = (evidence(GENUINE, 1, "breast"), evidence(ALTERED, 1, "Tamoxifen"))
    (folder / "answers").mkdir()
    (folder / "answers" / "askew.json").write_text(json.dumps(one_segment(CLINICAL_NOTE, 1, *quotes)))
    output = folder / "output"
    run = evalkit.run([folder / "askew.pdf"], output=output, classifications=folder / "answers")
    assert [one.decision for one in run.documents] == ["ESCALATE_TO_SME"]
    code = Roster(Files(output)).add("dr_lee")
    with _Server(output) as (address, pid):
        yield Served(address, output, pid, {"dr_lee": code})


@pytest.fixture
def screen(askew: Served, chromium: Browser) -> Iterator[Screen]:
    screen = Screen(chromium, askew.address, 1440, 900)
    screen.log_in(askew.codes["dr_lee"])
    screen.open("askew")
    yield screen
    assert screen.outside == []
    assert screen.faults == []
    screen.close()


def test_the_measure_tells_a_level_page_from_a_tilted_one(paper: Paper) -> None:
    for quote in (PRINTED, GENUINE):
        with pytest.raises(AssertionError):
            assert_near(printed(lines(TEXT, size=13)).places(quote), paper.places(quote), within=NEAR)


def test_a_dose_that_was_changed_is_outlined_where_the_scan_says_otherwise(
    screen: Screen, paper: Paper, shots: Path | None
) -> None:
    screen.page.wait_for_selector(".ek-mark-near")
    issue = screen.page.locator(".ek-selected")
    assert "the document says “20”, the quote “40”" in issue.inner_text()
    assert issue.locator("mark").all_inner_texts() == [PRINTED]
    assert screen.page.locator(".ek-mark-found").count() == 0
    assert_near(lit(screen), paper.places(PRINTED), within=NEAR)
    screen.shot(shots, "scan-altered-1440")


def test_a_claim_that_is_true_is_lit_on_the_tilted_lines(screen: Screen, paper: Paper, shots: Path | None) -> None:
    screen.page.wait_for_selector(".ek-mark-near")
    screen.page.get_by_text("What the agent claims").click()
    screen.page.locator(".ek-evidence", has_text=GENUINE).click()
    screen.page.wait_for_selector(".ek-mark-found")
    screen.page.wait_for_function("() => !document.querySelector('.ek-mark-near')")
    assert_near(lit(screen), paper.places(GENUINE), within=NEAR)
    screen.shot(shots, "scan-genuine-1440")
