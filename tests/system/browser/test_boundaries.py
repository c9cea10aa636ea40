"""Where documents begin: doubts answered beside the two pages, a broken answer, all pages at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from builders import GENOMIC, NOTE, OTHER, PATHOLOGY, RADIOLOGY, TYPES, answer, compose_single_type, evidence, segment
from documents.drawing import lines, pdf
from patience import eventually
from places import open_folder, open_index
from playwright.sync_api import expect
from system.browser.screen import Screen
from system.browser.server import Serve, Served
from system.browser.small_cases import CaseQueue, wait_until

import evalkit
from evalkit.issue import Issue, IssueSeverity
from evalkit.review import publish_packet_unless_frozen
from evalkit.review.case_files import read_packet

PAGES = 24
KINDS = [NOTE, PATHOLOGY, GENOMIC, RADIOLOGY, OTHER, NOTE] * 2
TRUTH = [(2 * at + 1, 2 * at + 2, kind) for at, kind in enumerate(KINDS)]
QUOTE = "Sheet number {}"
#: Page and answer of each doubt, in the order of the pages.
DOUBTS = {3: "y", 4: "n", 8: "n", 9: "y", 11: "y", 13: "y", 14: "n", 15: "y"}
#: What the program says of the packet with doubts: joined, split and right boundaries.
DOUBTED = [(1, 4), (5, 6), (7, 7), (8, 10), (11, 14), (15, 24)]
STARTS = [start for start, _ in DOUBTED]
_UNCOVERED = """() => [...document.querySelectorAll(".ek-seam-page")]
    .map((page) => page.clientHeight - page.querySelector("img").clientHeight)"""


def _draw() -> bytes:
    return pdf(
        *(
            lines(
                [
                    f"REPORT {(page + 1) // 2}" if page % 2 else "",
                    "",
                    QUOTE.format(page),
                    "Nothing else is written here.",
                ],
                size=13,
            )
            for page in range(1, PAGES + 1)
        )
    )


def _answer(ranges: list[tuple[int, int, str]]) -> Any:
    shares = {kind: sum(end - start + 1 for start, end, of in ranges if of == kind) / PAGES for kind in TYPES}
    segments = (
        segment(at, start, end, kind, compose_single_type(kind, evidence(QUOTE.format(start), start, "Sheet")))
        for at, (start, end, kind) in enumerate(ranges, 1)
    )
    return answer(*segments, overall=NOTE, shares=shares)


@pytest.fixture(scope="module")
def review_server(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("boundaries")
    (folder / "answers").mkdir()
    overlapping = [*TRUTH[:4], (9, 11, KINDS[4]), *TRUTH[5:]]  # page 11 is of two documents
    answers = {"doubted": [(*pages, NOTE) for pages in DOUBTED], "broken": overlapping, "whole": TRUTH}
    for at, (name, ranges) in enumerate(answers.items()):
        (folder / f"{name}.pdf").write_bytes(_draw() + b"\n" * at)
        (folder / "answers" / f"{name}.json").write_text(json.dumps(_answer(ranges)))
    evalkit.run([folder], output=folder / "output", classifications=folder / "answers")
    files, index = open_folder(folder / "output"), open_index(folder / "output")
    for name in answers:
        packet = read_packet(files, name)
        issues = tuple(issue for issue in packet.issues if issue.code != "V2-BOUNDARY-DOUBT")
        if name == "doubted":
            issues = tuple(
                Issue.create(
                    "V2",
                    "V2-BOUNDARY-DOUBT",
                    IssueSeverity.MAJOR,
                    "unsure",
                    page=page,
                    facts={"doubt": "stated" if page in STARTS else "stated against"},
                ).model_copy(update={"issue_id": f"V2-{page:04}"})
                for page in DOUBTS
            )
        publish_packet_unless_frozen(
            files, index, packet.model_copy(update={"issues": issues, "decision_rule": "8", "review_plan": None})
        )
    index.close()
    with serve(folder / "output", ["dr_lee", "dr_ito"]) as server:
        yield server


def _ranges(path: Path, key: str = "ground_truth_classification") -> list[tuple[int, int, str]]:
    assert eventually(path.exists), path.name  # a review is stored before the truth that follows from it
    stored = json.loads(path.read_text())[key]["segments"]
    return [(one["start_page"], one["end_page"], one["dominant_type"]) for one in stored]


def _draft_ranges(case_queue: CaseQueue, case_id: str) -> list[tuple[int, int, str]]:
    draft = case_queue.draft(case_id) or {"segments": []}
    return [(one["start_page"], one["end_page"], one["dominant_type"]) for one in draft["segments"]]


def test_eight_doubts_are_answered_in_eight_keys(
    login: Callable[..., Screen], review_server: Served, case_queue: CaseQueue, shots: Path | None
) -> None:
    screen = login()
    screen.open("doubted")
    screen.page.wait_for_selector('.ek-seam[data-painted="3"]')
    screen.shot(shots, "boundary-1440")
    assert screen.page.evaluate(_UNCOVERED) == [0, 0], "boxes are fractions of a page, and miss their words"
    for page, key in DOUBTS.items():
        screen.page.wait_for_selector(f".ek-seam:not([hidden]) :text('page {page}')")
        screen.page.keyboard.press(key)  # at once: it waits until both edges are painted
    screen.page.wait_for_selector(".ek-seam", state="hidden")
    screen.settle()
    draft = case_queue.draft("doubted")
    assert draft is not None
    assert {*draft["boundaries_decided"]} >= {*DOUBTS}
    assert {*draft["evidence_seen"]} == {f"V2-{page:04}" for page in DOUBTS}
    # stored as issue_answers.toml says: confirmed is what changes the program's answer
    changed = {f"V2-{page:04}" for page, key in DOUBTS.items() if (key == "y") != (page in STARTS)}
    verdicts = {one["issue_id"]: one["verdict"] for one in draft["issue_verdicts"]}
    assert {issue_id for issue_id, verdict in verdicts.items() if verdict == "confirmed"} == changed
    screen.page.keyboard.press("Control+Enter")
    wait_until(screen, lambda: case_queue.outcomes("doubted") == ["corrected"], "submitted")
    starts = [start for start, *_ in _ranges(review_server.output / "ground_truth/gt_doubted.json")]
    assert starts == [1, 3, 5, 7, 9, 11, 13, 15]


def test_a_broken_seam_costs_one_key_and_no_document(
    login: Callable[..., Screen], review_server: Served, case_queue: CaseQueue, shots: Path | None
) -> None:
    screen = login()
    screen.open("broken")
    screen.page.wait_for_selector('.ek-seam[data-painted="11"]')
    screen.shot(shots, "seam-1440")
    assert "page 11" in screen.page.locator(".ek-decide").inner_text()
    screen.page.keyboard.press("y")
    screen.page.wait_for_selector(".ek-seam", state="hidden")
    screen.settle()
    screen.page.keyboard.press("Control+Enter")
    wait_until(screen, lambda: case_queue.outcomes("broken") == ["corrected"], "submitted")
    assert _ranges(review_server.output / "ground_truth/gt_broken.json") == TRUTH


def test_documents_show_type_pages_and_what_was_seen(login: Callable[..., Screen], review_server: Served) -> None:
    screen = login()
    screen.open("whole")
    document = screen.page.locator(".ek-documents .ek-segment header").nth(1)
    expect(document).to_contain_text("Pathology Report")
    expect(document).to_contain_text("3–4")
    expect(document).to_contain_text("not seen yet")
    for page, words in ((3, "1 of 2 seen"), (4, "✓ seen")):
        screen.turn_to(page)
        expect(document).to_contain_text(words)


def test_pages_selected_with_shift_get_a_type_in_the_truth(
    login: Callable[..., Screen], review_server: Served, case_queue: CaseQueue, shots: Path | None
) -> None:
    screen = login()
    screen.open("whole")
    screen.page.keyboard.press("g")
    screen.page.wait_for_selector(".ek-card:focus")
    for key in ("Home", "ArrowRight", "ArrowRight", "Shift+ArrowRight", "Shift+ArrowRight"):
        screen.page.keyboard.press(key)
    screen.page.wait_for_selector('.ek-card[data-page="5"][aria-pressed=true]:focus')
    assert screen.page.locator(".ek-card[aria-pressed=true]").count() == 3
    screen.page.keyboard.press("5")  # pages 3 to 5 are one document of this type
    screen.page.wait_for_selector('.ek-contact-head:has-text("pages 3–5")')
    screen.shot(shots, "all-pages-1440")
    screen.page.keyboard.press("End")
    screen.page.keyboard.press("s")  # a document begins on page 24
    screen.page.wait_for_selector('.ek-contact-head:has-text("page 24")')
    screen.page.keyboard.press("Escape")
    screen.page.wait_for_selector(".ek-pane[data-painted]")  # before, a decision is dropped
    screen.settle()
    screen.page.keyboard.press("Control+Enter")
    wait_until(screen, lambda: case_queue.outcomes("whole") == ["corrected"], "submitted")
    screen.page.wait_for_selector(".ek-crumbs:not(:has-text('whole.pdf'))")  # the case has left the screen
    expected = [TRUTH[0], (3, 5, OTHER), (6, 6, KINDS[2]), *TRUTH[3:-1], (23, 23, KINDS[11]), (24, 24, KINDS[11])]
    assert _ranges(review_server.output / "ground_truth/gt_whole.json") == expected
