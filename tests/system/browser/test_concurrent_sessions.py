"""Two tabs, two experts, a kernel that dies: nothing is decided twice, nothing is lost in silence."""

import os
import re
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

from places import open_folder, open_index
from playwright.sync_api import Browser, expect
from system.browser.screen import Screen
from system.browser.server import Served, kernels, serving
from system.browser.small_cases import CaseQueue, wait_until

from evalkit.evaluation.attention_checks import plant_and_queue_attention_checks
from evalkit.pipeline import RunSummary
from evalkit.review import SMEReviewHelper
from evalkit.review.attention_checks import describe_fault

Login = Callable[..., Screen]
EARLIEST = "2000-01-01T00:00:00+00:00"


def test_a_colleague_is_told_and_keeps_the_draft(
    review_server: Served, login: Login, case_queue: CaseQueue, shots: Path | None
) -> None:
    lee, ito = login("dr_lee"), login("dr_ito")
    lee.open("quest_genomic")
    lee.note("mine")
    case_queue.until_noted(lee, "quest_genomic", "mine")
    ito.page.get_by_role("button", name="Refresh").click()
    ito.page.wait_for_selector('.ek-case[data-case="quest_genomic"]:has-text("open by dr_lee since")')
    ito.shot(shots, "taken-1440")
    ito.row("quest_genomic").get_by_role("button", name="Take over").click()
    ito.wait_for_case()
    ito.button("Other").click()
    ito.page.wait_for_selector(".ek-types .ek-chosen:has-text('Other')")
    ito.button("Submit correction").click()
    ito.page.wait_for_selector(".ek-notice:has-text('quest_genomic.pdf corrected')")
    lee.button("Radiology").click()
    lee.page.wait_for_selector(".ek-types .ek-chosen:has-text('Radiology')")
    lee.button("Submit correction").click()
    lee.page.wait_for_selector(".ek-problem, .ek-queue-notice")
    assert lee.problem()
    assert [path.name for path in (review_server.output / "reviews/quest_genomic").iterdir()] == ["0001.json"]
    assert lee.page.get_by_label("notes for the record").input_value() == "mine"


def test_a_second_tab_is_told(review_server: Served, login: Login) -> None:
    first = login("dr_lee")
    first.row("fabricated_quote").get_by_role("button").click()  # a test before this one may have left it open
    first.wait_for_case()
    second = first.second_tab()
    expect(second.row("fabricated_quote")).to_contain_text("open in another of your tabs since")
    second.page.close()
    first.queue()


def test_the_case_of_a_tab_that_is_closed_is_free_at_once(login: Login) -> None:
    lee = login("dr_lee")
    tab = login("dr_ito").second_tab()

    def is_open() -> bool:
        lee.page.get_by_role("button", name="Refresh").click()
        return "open by dr_ito since" in lee.row("fabricated_quote").inner_text()

    tab.open("fabricated_quote")
    wait_until(lee, is_open, "the colleague is told")
    tab.page.close(run_before_unload=True)
    wait_until(lee, lambda: not is_open(), "it is free")


def test_logout_frees_cases_of_all_tabs_and_keeps_drafts(
    review_server: Served, chromium: Browser, login: Login, case_queue: CaseQueue
) -> None:
    lee, ito = login("dr_lee"), Screen(chromium, review_server.address, 1440, 900)
    ito.log_in(review_server.codes["dr_ito"])
    twin = ito.second_tab()
    ito.open("fabricated_quote")
    twin.open("poor_scan")

    def is_open(case_id: str) -> bool:
        lee.page.get_by_role("button", name="Refresh").click()
        return "open by dr_ito since" in lee.row(case_id).inner_text()

    wait_until(lee, lambda: is_open("fabricated_quote") and is_open("poor_scan"), "the colleague is told")
    ito.note("the last words")
    ito.page.get_by_role("button", name="Log out").click()
    wait_until(lee, lambda: not is_open("fabricated_quote") and not is_open("poor_scan"), "both are free")
    assert case_queue.draft("fabricated_quote", "dr_ito")["notes"] == "the last words"
    ito.context.close()


def test_the_only_page_that_may_be_open_can_be_loaded_again(
    demo_run: RunSummary, chromium: Browser, tmp_path: Path
) -> None:
    output = shutil.copytree(demo_run.output, tmp_path / "output")
    with serving(output, ["dr_lee"], EVALKIT_REVIEW__PAGES="1") as server:
        screen = Screen(chromium, server.address, 1280, 720)
        screen.log_in(server.codes["dr_lee"])
        for _ in range(2):
            screen.page.get_by_label("show finished").focus()  # the browser knows that somebody is there
            screen.page.reload()
            screen.page.wait_for_selector(".ek-queue-head")
        another = screen.context.new_page()
        assert another.goto(server.address).status == 503
        another.close()
        screen.open("fabricated_quote")
        with open_index(output) as index:
            assert list(index.claims.map_live_claims_by_case_id(EARLIEST)) == ["fabricated_quote"]
    with open_index(output) as index:
        assert index.claims.map_live_claims_by_case_id(EARLIEST) == {}, (
            "a server that ends gives back what its pages have open"
        )
    screen.context.close()


def test_a_duplicated_tab_is_another_tab(login: Login, case_queue: CaseQueue) -> None:
    first = login("dr_lee")
    first.open("fabricated_quote")
    first.note("of the first tab")
    case_queue.until_noted(first, "fabricated_quote", "of the first tab")
    with first.page.expect_popup() as opened:
        first.page.evaluate("window.open(location.href)")  # with a copy of this tab's storage
    twin = opened.value
    twin.wait_for_selector(".ek-queue-head")
    expect(twin.locator('.ek-case[data-case="fabricated_quote"]')).to_contain_text("open in another of your tabs since")
    names = [page.evaluate("sessionStorage.getItem('evalkit-tab')") for page in (first.page, twin)]
    assert len(set(names)) == 2
    twin.close()
    first.page.reload()
    first.wait_for_case()
    expect(first.page.get_by_label("notes for the record")).to_have_value("of the first tab")
    assert first.page.evaluate("sessionStorage.getItem('evalkit-tab')") == names[0]
    first.queue()


def test_a_planted_fault_is_told_after_the_answer_and_not_before(
    review_server: Served, login: Login, shots: Path | None
) -> None:
    colleague = SMEReviewHelper(review_server.output, "dr_first")
    colleague.save_review("altered_quotes", agrees=True)
    colleague.close()
    (seeded,) = plant_and_queue_attention_checks(
        open_folder(review_server.output), 1, seed="one", drawn_at="2026-01-01T00:00:00.000Z"
    ).cases
    screen = login("dr_ito")
    screen.page.get_by_label("show finished").check()
    screen.page.wait_for_selector(f'.ek-case[data-case="{seeded.packet.case_id}"]')
    assert "altered_quotes" not in screen.cases()
    screen.open(seeded.packet.case_id)
    assert not {"planted", "seeded"} & set(re.findall(r"\w+", screen.page.content().lower()))
    screen.shot(shots, "seeded-1440")
    screen.button("Genomic").click()
    screen.page.wait_for_selector(".ek-types .ek-chosen:has-text('Genomic')")
    screen.button("Submit correction").click()
    screen.page.wait_for_selector(".ek-queue-notice:has-text('You noticed it')")
    assert describe_fault(seeded.fault) in screen.page.locator(".ek-queue-notice").inner_text()
    screen.shot(shots, "planted-1440")


def test_a_dead_kernel_is_noticed_within_ten_seconds(review_server: Served, login: Login, shots: Path | None) -> None:
    screen = login("dr_ito")
    screen.open("fabricated_quote")
    screen.page.wait_for_timeout(2500)
    for pid in kernels(review_server.pid):
        os.kill(pid, signal.SIGKILL)
    screen.button("Other").click()
    screen.page.wait_for_selector(".ek-lost:not([hidden])", timeout=10_000)
    screen.shot(shots, "lost-1440")
    assert not (review_server.output / "reviews/fabricated_quote").exists()
    screen.page.get_by_role("button", name="Reload").click()
    screen.page.wait_for_selector(".ek-why, .ek-queue-head")
    assert screen.page.locator(".ek-lost:not([hidden])").count() == 0
