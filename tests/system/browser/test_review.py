"""The expert's line: log in, open the worst case, see its evidence, validate; correct; come back after a reload."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pymupdf
from places import open_folder
from playwright.sync_api import expect
from system.browser.screen import Screen, find_highlights
from system.browser.server import Served
from system.browser.small_cases import CaseQueue, wait_until

from evalkit.review.case_files import read_packet
from evalkit.review.packet import compute_packet_digest

Login = Callable[..., Screen]


def stored(served: Served, name: str) -> dict:
    return json.loads((served.output / name).read_text())


def test_the_queue_is_worst_first_and_says_why(review_server: Served, login: Login, shots: Path | None) -> None:
    screen = login()
    assert screen.cases()[:3] == ["altered_quotes", "quest_genomic", "fabricated_quote"]
    assert "The quote was not found" in screen.row("fabricated_quote").inner_text()
    assert "grave doubt" in screen.row("fabricated_quote").inner_text()
    screen.shot(shots, "queue-1440")


def test_the_worst_case_is_opened_its_evidence_lit_and_validated(
    review_server: Served, login: Login, shots: Path | None
) -> None:
    screen = login()
    worst = screen.cases()[0]
    screen.open(worst)
    screen.page.wait_for_selector(".ek-mark-near")  # what the quote was made from: outlined, as it is not the quote
    issue = screen.page.locator(".ek-selected")
    assert "The quote says “BRCA2”; page 1 says “BRCA1”" in issue.inner_text()
    assert issue.locator(".ek-word").all_inner_texts() == ["BRCA2", "BRCA1"], "marked in claim and passage"
    assert "BRCA1 c.5266dupC was detected" in issue.locator("mark").inner_text()
    assert_lit(screen, review_server, worst, 1, "POSITIVE: BRCA1 c.5266dupC was detected in a heterozygous state.")
    screen.shot(shots, "worst-1440")
    screen.page.locator('.ek-issue[data-issue="V4-0002"] .ek-message').click()
    screen.page.wait_for_selector('.ek-pane[data-page="2"] .ek-mark-near')
    screen.page.wait_for_selector(".ek-selected .ek-word")
    assert "The quote says “can”; page 2 says “cannot”" in issue.inner_text()
    lines = ("It cannot exclude another variant of BRCA1", "deletion or duplication.")
    assert_lit(screen, review_server, worst, 2, *lines)
    screen.see_everything()
    screen.button("Validate and next").click()
    screen.page.wait_for_selector(f".ek-notice:has-text('{worst}.pdf validated')")
    truth = stored(review_server, f"ground_truth/gt_{worst}.json")
    review = stored(review_server, f"reviews/{worst}/0001.json")
    assert (truth["ground_truth_source"], truth["reviewer"]) == ("SME_VALIDATED", "dr_lee")
    assert truth["ground_truth_classification"]["dominant_type_overall"] == "Genomic Report"
    assert set(review["evidence_seen"]) == {"V4-0001", "V4-0002"}
    assert stored(review_server, f"sme_packets/sme_packet_{worst}.json")["review_status"] == "completed"


def test_evidence_that_is_claimed_is_lit_where_it_stands(
    review_server: Served, login: Login, shots: Path | None
) -> None:
    screen = login()
    screen.open("quest_genomic")
    screen.page.wait_for_selector(".ek-mark-found")
    assert_lit(screen, review_server, "quest_genomic", 1, "Quest Diagnostics")
    packet = read_packet(open_folder(review_server.output), "quest_genomic")
    presence = packet.classification.segments[0].segment_composition
    quote = next(one.top_evidence[0] for one in presence if one.top_evidence)
    screen.page.get_by_text("What the program claims").click()
    before = find_highlights(screen)
    screen.page.locator(".ek-evidence").first.click()
    wait_until(screen, lambda: find_highlights(screen) != before, "the evidence lit")
    assert_lit(screen, review_server, "quest_genomic", quote.page, quote.snippet)
    screen.shot(shots, "evidence-1440")
    screen.page.locator(".ek-selected .ek-message").click()  # back to what the issue is about
    wait_until(screen, lambda: find_highlights(screen) == before, "the issue's place lit again")
    screen.page.locator(".ek-issue").last.click()  # which draws the case again
    screen.settle()
    assert screen.page.locator(".ek-evidence").first.is_visible(), "what was unfolded stays so"
    screen.queue()


def assert_lit(screen: Screen, served: Served, case_id: str, number: int, *lines: str) -> None:
    """Where the PDF itself has these lines, by another program's search, at least 0.8 of the words' area is marked."""
    boxes = find_highlights(screen)
    with pymupdf.open(read_packet(open_folder(served.output), case_id).pdf_path) as document:
        page = document[number - 1]
        for line in lines:
            places = page.search_for(line)
            assert places, line
            shares = [max(covered(place, box, page.rect) for box in boxes) for place in places]
            assert max(shares) >= 0.8, (line, shares)


def covered(place: pymupdf.Rect, box: list[float], page: pymupdf.Rect) -> float:
    mark = pymupdf.Rect(box[0] * page.width, box[1] * page.height, box[2] * page.width, box[3] * page.height)
    return (place & mark).get_area() / place.get_area()


def test_validating_needs_all_that_must_be_seen_then_saves(
    review_server: Served, login: Login, shots: Path | None
) -> None:
    screen = login()
    screen.open("segment_count")
    assert "number_of_segments" in screen.page.locator(".ek-repairs").inner_text() or (
        "3" in screen.page.locator(".ek-repairs del").inner_text()
    )
    assert screen.button("Validate and next").is_disabled()
    assert "not yet seen" in screen.page.locator(".ek-state").inner_text()
    screen.shot(shots, "repair-1440")
    before = compute_packet_digest(read_packet(open_folder(review_server.output), "segment_count"))
    screen.see_everything()
    screen.button("Validate and next").click()
    screen.page.wait_for_selector(".ek-notice:has-text('segment_count.pdf validated')")
    truth = stored(review_server, "ground_truth/gt_segment_count.json")
    review = stored(review_server, "reviews/segment_count/0001.json")
    assert truth["ground_truth_source"] == "SME_VALIDATED"
    assert truth["ground_truth_classification"]["number_of_segments"] == 2
    assert truth["reviewer"] == review["reviewer"] == "dr_lee"
    assert review["packet_sha256"] == before
    assert set(review["vouched"]) == {"dominant_type", "segments"}
    assert set(review["pages_seen"]) >= {1, 3}
    assert review["evidence_seen"] == ["V1-0001"]
    assert [one["code"] for one in review["repairs_applied"]] == ["V1-SEGMENT-COUNT"]
    assert stored(review_server, "sme_packets/sme_packet_segment_count.json")["review_status"] == "completed"


def test_the_quest_case_of_slide_10_is_corrected_with_its_note(
    review_server: Served, login: Login, shots: Path | None
) -> None:
    screen = login()
    screen.open("quest_genomic")
    screen.page.locator(".ek-issue[data-issue='V3-0001']").click()  # whichever was open when the case was left
    screen.page.wait_for_selector(".ek-issue.ek-selected[data-issue='V3-0001']")
    screen.button("Other").click()
    screen.page.wait_for_selector(".ek-types .ek-chosen:has-text('Other')")
    note = "This is a routine CBC from Quest, not a genomic report."
    screen.note(note)
    screen.page.wait_for_selector(".ek-answers .ek-on:has-text('Not Genomic Report')")  # its type is the answer
    screen.shot(shots, "correction-1440")
    screen.button("Submit correction").click()
    screen.page.wait_for_selector(".ek-notice:has-text('quest_genomic.pdf corrected')")
    truth = stored(review_server, "ground_truth/gt_quest_genomic.json")
    assert truth["ground_truth_source"] == "SME_CORRECTED"
    assert truth["corrected_dominant_type"] == "Other"
    assert truth["correction_notes"] == note
    verdicts = stored(review_server, "reviews/quest_genomic/0001.json")["issue_verdicts"]
    assert [(one["issue_id"], one["verdict"]) for one in verdicts] == [("V3-0001", "confirmed")]
    assert [one["dominant_type"] for one in truth["ground_truth_classification"]["segments"]] == ["Other"]


def test_reload_while_saving_asks_and_loses_no_text(login: Login, case_queue: CaseQueue) -> None:
    screen = login()
    screen.open("fabricated_quote")
    screen.note("")
    notes = screen.page.get_by_label("notes for the record")
    with screen.asked_on_leaving() as asked:
        with screen.page.expect_navigation():
            notes.evaluate(
                """(box) => {
                    box.value = "a thought of this moment";
                    box.dispatchEvent(new Event("input"));
                    location.reload();
                }"""
            )
        screen.wait_for_case()
        assert asked == ["beforeunload"]
        expect(notes).to_have_value("a thought of this moment")
        screen.note("a thought of this moment")
        screen.settle()
        screen.page.reload()
        screen.wait_for_case()
        assert asked == ["beforeunload"], "all was saved"
    screen.note("")
    case_queue.until_noted(screen, "fabricated_quote", "")
    screen.settle()


def test_a_reload_in_the_middle_brings_case_page_and_draft_back(
    login: Login, case_queue: CaseQueue, shots: Path | None
) -> None:
    screen = login()
    screen.open("fabricated_quote")
    screen.turn_to(4)
    screen.button("New document here").click()
    screen.page.wait_for_selector(".ek-segment >> nth=1")
    screen.note("half a thought")
    case_queue.until_noted(screen, "fabricated_quote", "half a thought")
    screen.page.reload()
    screen.wait_for_case()
    screen.page.wait_for_selector('.ek-pane[data-page="4"]')
    assert screen.page.locator(".ek-segment").count() == 2
    assert screen.page.get_by_label("notes for the record").input_value() == "half a thought"
    screen.page.locator(".ek-saved", has_text=re.compile("restored|Draft saved")).wait_for()
    screen.shot(shots, "reload-1440")
    screen.queue()


def test_screen_update_under_a_held_button_keeps_the_click(review_server: Served, login: Login) -> None:
    screen = login()
    screen.open("fabricated_quote")
    screen.turn_to(3)
    screen.page.wait_for_selector('.ek-editor[data-page="3"]')
    before = screen.page.locator(".ek-segment").count()
    screen.page.locator(".ek-editor [data-key=s]").hover()  # "New document here", or "Same document as before"
    screen.page.mouse.down()
    screen.page.keyboard.press("ArrowLeft")
    screen.page.wait_for_selector('.ek-pane[data-page="2"]')
    screen.page.wait_for_timeout(500)  # the kernel's answer has arrived
    screen.page.mouse.up()
    screen.page.wait_for_function("before => document.querySelectorAll('.ek-segment').length !== before", arg=before)
    screen.page.wait_for_selector('.ek-editor[data-page="2"]')  # and what changed meanwhile is drawn
    screen.button("Undo").click()
    screen.page.wait_for_function("before => document.querySelectorAll('.ek-segment').length === before", arg=before)
    screen.queue()


def test_the_page_pressed_last_is_shown_in_the_end(login: Login) -> None:
    screen = login()
    screen.open("fabricated_quote")
    screen.page.locator(".ek-issue .ek-message").first.click()
    screen.settle()
    own_page = int(screen.page.locator(".ek-pane").get_attribute("data-page") or 0)
    other_page = 1 if own_page > 1 else 2
    screen.turn_to(other_page)
    screen.settle()
    # Both presses reach the kernel before it has answered the first, which turns to the issue's page.
    screen.page.evaluate(
        """(page) => ['.ek-issue .ek-message', `.ek-thumb[data-page="${page}"]`].forEach(
            (name) => document.querySelector(name).click())""",
        other_page,
    )
    screen.settle()
    expect(screen.page.locator(".ek-pane")).to_have_attribute("data-asked", str(other_page))
    expect(screen.page.locator(".ek-pane")).to_have_attribute("data-page", str(other_page))


def test_undeterminable_needs_a_reason(review_server: Served, login: Login) -> None:
    screen = login()
    screen.open("poor_scan")
    region = screen.page.query_selector(
        "[role=status].ek-announced[data-of=notice]"
    )  # the same from the first to the last word
    screen.page.keyboard.press("q")
    screen.button("Close as undeterminable").click()
    assert not (review_server.output / "reviews/poor_scan").exists()
    screen.page.get_by_label("Why can nobody tell?").fill("illegible scan")
    screen.button("Close as undeterminable").click()
    screen.page.wait_for_selector(".ek-notice:has-text('undeterminable')")
    review = stored(review_server, "reviews/poor_scan/0001.json")
    assert region.is_visible()
    assert "undeterminable" in region.inner_text()
    assert (review["outcome"], review["correction_notes"]) == ("undeterminable", "illegible scan")
    assert not (review_server.output / "ground_truth/gt_poor_scan.json").exists()


def test_a_small_screen_shows_everything_that_decides(review_server: Served, login: Login, shots: Path | None) -> None:
    screen = login(width=1280, height=720)
    screen.shot(shots, "queue-1280")
    screen.open("fabricated_quote")
    screen.page.wait_for_timeout(800)
    screen.shot(shots, "case-1280")
    for width, height in ((1440, 900), (1280, 720), (1024, 768), (720, 450), (480, 800)):
        screen.resize(width, height)
        boxes = [
            screen.button(name).bounding_box() for name in ("Validate and next", "Submit correction", "Undo", "More")
        ]
        boxes.append(screen.page.locator(".ek-types").bounding_box())
        for box in boxes:
            assert 0 <= box["y"] <= height - box["height"]
            assert 0 <= box["x"] <= width - box["width"]
        assert len({round(box["y"] + box["height"]) for box in boxes[:4]}) == 1, f"one row decides at {width}"
    screen.queue()


def test_no_name_of_a_file_is_in_any_address(review_server: Served, login: Login) -> None:
    screen = login()
    screen.open("fabricated_quote")
    screen.turn_to(2)
    assert not [url for url in screen.requests if "fabricated" in url or "quest" in url]
    screen.queue()
