"""A case that asks only about its doubts: the questions, the rest folded, and the whole file by one key."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from builders import GENOMIC, NOTE, OTHER, PATHOLOGY, RADIOLOGY, answer, compose_single_type, evidence, segment
from documents.drawing import lines, pdf
from places import open_folder, open_index
from playwright.sync_api import expect
from system.browser.screen import Screen
from system.browser.server import Serve, Served
from system.browser.small_cases import CaseQueue, wait_until

import evalkit
from evalkit.issue import Issue, IssueSeverity
from evalkit.review import publish_packet_unless_frozen
from evalkit.review.case_files import read_packet
from evalkit.review.review_plan import ReviewCosts

SPANS = [(1, 2, NOTE), (3, 5, PATHOLOGY), (6, 7, GENOMIC), (8, 10, RADIOLOGY), (11, 12, OTHER)]
TITLES = {NOTE: "PROGRESS NOTE", PATHOLOGY: "SURGICAL PATHOLOGY REPORT", GENOMIC: "GENE PANEL", RADIOLOGY: "CT CHEST"}
QUOTE = "Sheet number {} of this file"
NAMES = ("asked_one", "asked_two", "asked_three")


def _draw(mark: int) -> bytes:
    pages = []
    for start, end, kind in SPANS:
        for page in range(start, end + 1):
            head = (
                TITLES.get(kind, "REQUEST FORM") if page == start else f"{TITLES.get(kind, 'FORM').title()}, continued"
            )
            pages.append(
                lines([head, "", QUOTE.format(page), "The rest of the page is of no matter.", f"Copy {mark}"], size=13)
            )
    return pdf(*pages)


def _answer() -> object:
    """The program joins the gene panel's first page to the report before it, and is not sure of the last document."""
    spans = [(1, 2, NOTE), (3, 6, PATHOLOGY), (7, 7, GENOMIC), (8, 10, RADIOLOGY), (11, 12, OTHER)]
    return answer(
        *(
            segment(
                number,
                start,
                end,
                kind,
                compose_single_type(
                    kind, evidence(QUOTE.format(start), start, "Sheet"), confidence=0.85 if kind == OTHER else 0.995
                ),
            )
            for number, (start, end, kind) in enumerate(spans, 1)
        ),
        overall=PATHOLOGY,
        shares={kind: sum(end - start + 1 for start, end, of in spans if of == kind) / 12 for _, _, kind in spans},
    )


@pytest.fixture(scope="module")
def review_server(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("short")
    (folder / "answers").mkdir()
    for number, name in enumerate(NAMES):
        (folder / f"{name}.pdf").write_bytes(_draw(number))
        (folder / "answers" / f"{name}.json").write_text(json.dumps(_answer()))
    evalkit.run([folder], output=folder / "output", classifications=folder / "answers")
    files, index = open_folder(folder / "output"), open_index(folder / "output")
    doubt = Issue.create(
        "V2",
        "V2-BOUNDARY-DOUBT",
        IssueSeverity.MAJOR,
        "unsure",
        page=6,
        facts={"doubt": "stated against", "percent": 41},
    )
    remark = Issue.create("V4", "V4-SNIPPET-LENGTH", IssueSeverity.MINOR, "the quote is short", segment_index=1, page=1)
    for name in NAMES:
        issues = (doubt.model_copy(update={"issue_id": "V2-0001"}), remark.model_copy(update={"issue_id": "V4-0001"}))
        packet = read_packet(files, name).model_copy(update={"issues": issues, "decision_rule": "4"})
        publish_packet_unless_frozen(files, index, packet, costs=ReviewCosts())
        assert {asked.part for asked in read_packet(files, name).asked_parts} == {"boundary:6", "segment:5"}
    index.close()
    with serve(folder / "output", ["dr_lee", "dr_ito"]) as server:
        yield server


def _truth(output: Path, case_id: str) -> dict[str, object]:
    return dict(json.loads((output / f"ground_truth/gt_{case_id}.json").read_text()))


def test_only_the_questions_are_asked_and_vouched_for(
    login: Callable[..., Screen], review_server: Served, case_queue: CaseQueue, shots: Path | None
) -> None:
    screen = login()
    screen.open("asked_one")
    screen.page.wait_for_selector('.ek-seam[data-painted="6"]')
    screen.shot(shots, "short-1440")
    assert screen.page.locator(".ek-issue").count() == 2
    expect(screen.page.locator(".ek-why")).to_contain_text("2 questions · 3 of 12 pages to look at")
    rest = screen.page.locator(".ek-rest")
    expect(rest.locator("summary")).to_have_text("The program is sure of the rest (95 – 98 %)")
    rest.locator("summary").click()
    assert rest.locator("li").count() == 4
    expect(rest.locator("li").nth(1)).to_contain_text("95 % sure, apart from the question about page 6")
    screen.shot(shots, "short-rest-1440")
    screen.page.keyboard.press("y")
    screen.page.wait_for_selector(".ek-seam", state="hidden")
    expect(screen.page.locator(".ek-record")).to_contain_text("Page 6")
    screen.settle()
    screen.shot(shots, "short-untyped-1440")
    expect(screen.page.locator(".ek-state")).to_contain_text("not yet seen")  # no correction can be submitted yet
    screen.page.keyboard.press("3")
    expect(screen.page.locator(".ek-record")).to_contain_text("type of page 6: Genomic Report")
    screen.settle()
    screen.page.keyboard.press("j")
    screen.page.wait_for_selector('.ek-issue[data-issue="segment:5"].ek-selected .ek-seen')
    screen.page.keyboard.press("x")  # it is Other, as the program says
    screen.settle()
    screen.shot(shots, "short-answered-1440")
    screen.turn_to(5)
    screen.page.wait_for_selector('.ek-pane[data-painted$=":5"]')
    screen.settle()
    screen.shot(shots, "short-ready-1440")
    screen.page.keyboard.press("Control+Enter")
    wait_until(screen, lambda: case_queue.outcomes("asked_one") == ["corrected"], "submitted")
    truth = _truth(review_server.output, "asked_one")
    assert {*truth["vouched"]} == {"boundary:6", "segment:3", "segment:6"}
    screen.assert_clean()


def test_one_key_shows_the_whole_file(
    login: Callable[..., Screen], review_server: Served, case_queue: CaseQueue, shots: Path | None
) -> None:
    screen = login(width=1280, height=720)
    screen.open("asked_two")
    screen.shot(shots, "short-1280")
    screen.page.keyboard.press("Escape")
    screen.page.keyboard.press("Shift+E")
    screen.page.wait_for_selector(".ek-rest", state="detached")
    assert screen.page.locator(".ek-issue").count() == 3
    screen.shot(shots, "short-opened-1280")
    screen.page.keyboard.press("u")
    screen.page.wait_for_selector(".ek-rest")
    screen.button("Show everything").click()
    screen.page.wait_for_selector(".ek-rest", state="detached")
    screen.see_everything()
    screen.page.keyboard.press("v")
    wait_until(screen, lambda: case_queue.outcomes("asked_two") == ["validated"], "submitted")
    assert {*_truth(review_server.output, "asked_two")["vouched"]} >= {"dominant_type", "segments"}
    screen.assert_clean()


def test_a_narrow_screen_asks_the_same(login: Callable[..., Screen], shots: Path | None) -> None:
    screen = login()
    screen.open("asked_three")
    screen.resize(390, 800)
    screen.page.wait_for_function("document.documentElement.clientWidth === 390")
    screen.shot(shots, "short-390-page")
    screen.page.locator(".ek-tabs").get_by_role("button", name="Case").click()
    expect(screen.page.locator(".ek-why")).to_contain_text("2 questions")
    screen.page.locator(".ek-rest summary").click()
    screen.shot(shots, "short-390-case")
    screen.assert_clean()
