"""A packet with another patient's page, by keyboard: seen beside the first patient's, then made a document of its own."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from builders import NOTE, evidence, one_segment
from documents.drawing import lines, pdf
from system.browser.screen import Screen
from system.browser.server import Serve, Served
from system.browser.small_cases import CaseQueue, wait_until

import evalkit

MARSH = "Patient: MARSH, HELEN    DOB: 04/12/1951    MRN: 7730182"
OKORO = "Patient: OKORO, DANIEL    DOB: 11/30/1978    MRN: 2219406"
BODY = [
    "Chief complaint: breast lump noticed two weeks ago.",
    "Blood pressure 128/76, pulse 72. No fever since then.",
    "Tamoxifen 20 mg daily by mouth was begun.",
    "She will return for follow-up in six weeks.",
]
OWNERS = (MARSH, MARSH, OKORO, MARSH, OKORO)


@pytest.fixture(scope="module")
def review_server(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server over one report, two of whose pages are about somebody else."""
    folder = tmp_path_factory.mktemp("patients")
    total = len(OWNERS)
    sheets = (
        lines(["GENERAL HOSPITAL", f"PROGRESS NOTE    Page {page} of {total}", owner, "", *BODY], size=11)
        for page, owner in enumerate(OWNERS, 1)
    )
    (folder / "mixed.pdf").write_bytes(pdf(*sheets))
    (folder / "answers").mkdir()
    answer = one_segment(NOTE, total, evidence("Tamoxifen 20 mg daily by mouth was begun", 1, "Tamoxifen"))
    (folder / "answers" / "mixed.json").write_text(json.dumps(answer))
    run = evalkit.run([folder], output=folder / "output", classifications=folder / "answers")
    assert [document.decision for document in run.documents] == ["ESCALATE_TO_SME"]
    with serve(folder / "output", ["dr_lee"]) as server:
        yield server


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (1280, 720)])
def test_foreign_page_is_separated_by_keyboard(
    login: Callable[..., Screen], case_queue: CaseQueue, shots: Path | None, width: int, height: int
) -> None:
    screen = login()
    screen.resize(width, height)
    assert "other patient (1)" in screen.page.get_by_label("Raised by").inner_text()
    screen.page.get_by_label("Raised by").select_option("V2-PATIENT")
    assert screen.page.wait_for_selector(".ek-case").get_attribute("data-case") == "mixed"
    screen.shot(shots, f"patients-queue-{width}")
    keys = screen.page.keyboard
    screen.row("mixed").focus()
    keys.press("Enter")
    screen.wait_for_case()
    card = screen.page.locator(".ek-selected")
    assert (
        "Is page 3 about the same patient as page 1? The name, birth date and record number differ."
        in card.inner_text()
    )
    assert card.locator(".ek-facts thead").inner_text().split() == ["page", "1", "page", "3"]
    rows = card.locator(".ek-facts-other td").all_inner_texts()
    assert rows == ["MARSH, HELEN", "OKORO, DANIEL", "04/12/1951", "11/30/1978"]
    screen.page.wait_for_selector('.ek-pane[data-page="3"] .ek-strip-other')
    screen.page.wait_for_selector('.ek-pane[data-painted$=":3"]')
    screen.shot(shots, f"patients-case-{width}")
    keys.press("w")
    compare = screen.page.locator(".ek-compare")
    screen.page.wait_for_function("() => document.querySelectorAll('.ek-compare img').length === 2")
    assert compare.locator(".ek-mark-differs").count() >= 4
    screen.page.wait_for_timeout(200)
    screen.shot(shots, f"patients-compare-{width}")
    keys.press("Escape")
    compare.wait_for(state="hidden")
    keys.press("w")
    compare.wait_for()
    keys.press("a")
    screen.page.wait_for_selector(".ek-offer:has-text('1 more page names this patient: 5.')")
    screen.settle()
    screen.shot(shots, f"patients-separated-{width}")
    assert _list_segments(case_queue) == [(1, 2), (3, 3), (4, 5)]
    keys.press("a")
    screen.page.locator(".ek-offer").wait_for(state="hidden")
    wait_until(screen, lambda: _list_segments(case_queue) == [(1, 2), (3, 3), (4, 4), (5, 5)], "page 5 separated")
    draft = case_queue.draft("mixed") or {}
    assert draft["flags"] == [{"start_page": page, "flag": "other_patient"} for page in (3, 5)]
    screen.settle()
    screen.shot(shots, f"patients-done-{width}")
    keys.press("u")
    keys.press("u")
    wait_until(screen, lambda: _list_segments(case_queue) == [(1, 5)], "both taken back")
    screen.settle()
    screen.assert_clean()


def _list_segments(case_queue: CaseQueue) -> list[tuple[int, int]]:
    draft = case_queue.draft("mixed") or {"segments": ()}
    return [(segment["start_page"], segment["end_page"]) for segment in draft["segments"]]
