"""My list: next is its next row, it is there the next day, each case has an address, and a dead tab asks nothing."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from places import open_folder, open_index
from playwright.sync_api import Browser, expect
from system.browser.screen import Screen
from system.browser.server import Serve, Served

from evalkit.pipeline import RunSummary
from evalkit.review.claiming import CLAIM_DURATION
from evalkit.review.roster import ReviewerRoster
from evalkit.review.session import compute_case_address
from evalkit.store import OutputIndex

Enter = Callable[..., Screen]


@pytest.fixture
def own_server(serve: Serve, demo_run: RunSummary, tmp_path: Path) -> Iterator[Served]:
    output = tmp_path / "output"
    shutil.copytree(demo_run.output, output)
    with serve(output, ["dr_lee", "dr_ito"]) as server:
        yield server


@pytest.fixture
def enter(own_server: Served, chromium: Browser) -> Iterator[Enter]:
    """Gives a new browser in which an expert has logged in, at the start page or at an address."""
    screens = []

    def log_in(name: str = "dr_lee", address: str = "") -> Screen:
        screen = Screen(chromium, own_server.address, 1440, 900)
        screens.append(screen)
        screen.page.goto(f"{own_server.address}/{address}")
        screen.page.fill("input[name=code]", own_server.codes[name])
        screen.page.keyboard.press("Enter")
        screen.page.wait_for_selector(".ek-queue-head, .ek-why")
        return screen

    yield log_in
    for screen in screens:
        screen.assert_clean()
        screen.close()


def give_up(screen: Screen) -> None:
    """Submit that nobody can tell; the next case, or the queue, comes."""
    before = screen.page.url
    screen.page.keyboard.press("q")
    screen.page.keyboard.type("illegible")
    screen.page.keyboard.press("Enter")
    screen.page.wait_for_url(lambda url: url != before)


def title(screen: Screen) -> str:
    return screen.page.locator(".ek-crumbs b").inner_text()


def test_filter_and_next(enter: Enter, own_server: Served, shots: Path | None) -> None:
    roster = ReviewerRoster(open_folder(own_server.output))
    own_server.codes["dr_lee"] = roster.add_reviewer_or_replace_code("dr_lee", tasks=("clinical",))
    with open_index(own_server.output) as index:
        _add_bank_statement(index)
    packets = own_server.output / "sme_packets"  # a row without a packet would be dropped
    shutil.copy(packets / "sme_packet_quest_genomic.json", packets / "sme_packet_statement.json")
    screen = enter()
    assert "statement" not in screen.cases(), "a bank statement does not come unasked"
    screen.page.get_by_label("Type").select_option("Clinical Note")
    screen.page.locator(".ek-case").nth(2).wait_for(state="detached")
    assert screen.cases() == ["fabricated_quote", "adjoining_notes"]
    screen.shot(shots, "my-list-1440")
    screen.page.keyboard.press("n")
    screen.wait_for_case()
    assert title(screen) == "fabricated_quote.pdf"
    give_up(screen)
    screen.wait_for_case()
    assert title(screen) == "adjoining_notes.pdf"
    screen.queue()
    again = enter()
    assert again.cases() == ["adjoining_notes"], "the filter is kept over sessions"
    again.page.get_by_text("My last ten").click()
    again.page.wait_for_selector("[data-recent=fabricated_quote]:has-text('nobody can tell')")
    again.shot(shots, "last-ten-1440")
    again.page.get_by_role("button", name="Reopen fabricated_quote.pdf").click()
    again.wait_for_case()
    assert title(again) == "fabricated_quote.pdf"
    again.queue()
    again.button("Clear all").click()
    again.page.wait_for_selector(".ek-queue-drawn:has-text('4 cases drawn at random for you')")
    again.page.get_by_label("all tasks").check()
    again.page.wait_for_selector('.ek-case[data-case="statement"]')


def _add_bank_statement(index: OutputIndex) -> None:
    index.upsert_case(
        {
            "case_id": "statement",
            "doc_id": "statement",
            "kind": "statement_template",
            "task": "bank",
            "pdf_filename": "statement.pdf",
            "pages": 1,
            "blocker": 9,
            "major": 0,
            "minor": 0,
            "decision_reason": "sums differ",
            "review_reason": "escalated",
            "review_status": "pending",
            "created_at": "2026-01-01T00:00:00+00:00",
        }
    )


def test_an_address_leads_through_the_login_to_its_case(enter: Enter, own_server: Served, shots: Path | None) -> None:
    link = f"?case={compute_case_address('quest_genomic')}"
    screen = enter(address=link)
    screen.wait_for_case()
    assert title(screen) == "quest_genomic.pdf"
    screen.queue()
    expect(screen.page).to_have_url(f"{own_server.address}/")
    screen.open("segment_count")
    screen.page.go_back()
    screen.page.wait_for_selector(".ek-queue-head")
    screen.page.go_back()
    screen.page.wait_for_selector(".ek-crumbs b:has-text('quest_genomic')")
    screen.wait_for_case()
    screen.page.go_forward()
    screen.page.wait_for_selector(".ek-queue-head")
    screen.page.go_forward()
    screen.page.wait_for_selector(".ek-crumbs b:has-text('segment_count')")
    screen.wait_for_case()
    screen.page.reload()
    screen.wait_for_case()
    assert title(screen) == "segment_count.pdf"
    screen.page.goto(f"{own_server.address}/?case=0123456789ab")
    screen.page.wait_for_selector(".ek-queue-notice:has-text('belongs to no case')")
    screen.shot(shots, "unknown-address-1440")
    expect(screen.page).to_have_url(f"{own_server.address}/")
    assert not [url for url in screen.requests if "quest_genomic" in url or "segment_count" in url]


def test_own_case_of_a_dead_tab_opens_without_a_question(enter: Enter, own_server: Served) -> None:
    first = enter()
    first.open("quest_genomic")
    first.button("More").click()
    first.page.get_by_label("notes for the record").fill("of the first tab")
    first.page.wait_for_selector(".ek-saved:has-text('Draft saved')")
    second = first.second_tab()
    assert "open in another of your tabs since" in second.row("quest_genomic").inner_text()
    first.page.evaluate("() => { for (let timer = setInterval(() => {}); timer; timer -= 1) clearInterval(timer); }")
    with open_index(own_server.output) as index:
        assert _silence(index, "quest_genomic")
    second.button("Refresh").click()
    second.page.locator('.ek-case[data-case="quest_genomic"]:not(:has-text("another of your tabs"))').wait_for()
    second.open("quest_genomic")
    expect(second.page.get_by_label("notes for the record")).to_have_value("of the first tab")


def _silence(index: OutputIndex, case_id: str) -> bool:
    """Let the last heartbeat have come two minutes ago."""
    now = datetime.now(UTC)
    (claim,) = index.claims.map_live_claims_by_case_id(now.isoformat(timespec="seconds"), case_id).values()
    expiry = (now + CLAIM_DURATION - timedelta(minutes=2)).isoformat(timespec="seconds")
    silent = replace(claim, expires_at=expiry)
    return index.claims.acquire_or_get_live_claim(silent, now=claim.since) == silent


def test_defer_with_one_key_and_reply(enter: Enter, shots: Path | None) -> None:
    lee, ito = enter(), enter("dr_ito")
    lee.open("poor_scan")
    lee.page.keyboard.press("d")
    lee.page.wait_for_selector("[aria-label='typical reasons']")
    lee.shot(shots, "defer-1440")
    lee.page.keyboard.press("7")
    lee.page.wait_for_selector(".ek-notice:has-text('Deferred: poor_scan.pdf')")
    lee.settle()
    lee.queue()
    ito.button("Refresh").click()
    ito.page.wait_for_selector('.ek-case[data-case="poor_scan"]:has-text("Pages are missing or cannot be read")')
    ito.open("poor_scan")
    ito.button("Reply").click()
    ito.page.keyboard.type("The paper file has them.")
    ito.page.keyboard.press("Enter")
    ito.page.wait_for_selector(".ek-notice:has-text('Your reply is saved')")
    ito.queue()
    lee.button("Refresh").click()
    lee.page.wait_for_selector(
        ".ek-queue-notice:has-text('dr_ito replies about poor_scan: “The paper file has them.”')"
    )
    lee.shot(shots, "reply-1440")
