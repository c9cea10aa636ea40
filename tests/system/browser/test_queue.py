"""The queue in a browser: searched, filtered and opened by keyboard."""

from collections.abc import Callable
from pathlib import Path

from system.browser.screen import Screen

Login = Callable[..., Screen]


def rows_are(screen: Screen, *case_ids: str) -> None:
    screen.page.wait_for_selector(".ek-queue-tools button:has-text('Clear all')")
    for case_id in case_ids:
        screen.page.wait_for_selector(f'.ek-case[data-case="{case_id}"]')
    screen.page.locator(".ek-case").nth(len(case_ids)).wait_for(state="detached")
    assert sorted(screen.cases()) == sorted(case_ids)


def focused(screen: Screen) -> str:
    return screen.page.evaluate(
        "() => document.activeElement.getAttribute('aria-label') || document.activeElement.textContent"
    )


def test_a_case_is_found_and_opened_by_keyboard(login: Login, shots: Path | None) -> None:
    screen = login()
    keys = screen.page.keyboard
    screen.shot(shots, "queue-1440")
    keys.press("/")
    keys.type("QUEST_n")  # the n is part of the word, not the key for the next case
    screen.page.wait_for_selector(".ek-queue-empty:has-text('No case matches.')")
    screen.shot(shots, "queue-nothing-1440")
    keys.press("Backspace")
    keys.type("g")
    rows_are(screen, "quest_genomic")
    assert focused(screen) == "Search by file name or case", "the answer must not take the focus away"
    for _ in range(30):
        keys.press("Tab")
        if "Enter" in focused(screen):
            break
    assert focused(screen).startswith("quest_genomic.pdf, Enter: Open")
    keys.press("Enter")
    screen.wait_for_case()
    screen.queue()
    rows_are(screen, "quest_genomic")
    screen.button("Clear all").click()
    screen.page.wait_for_selector(".ek-case >> nth=2")


def test_filters_count_and_combine(login: Login, shots: Path | None) -> None:
    screen = login(width=1280, height=720)
    everything = screen.cases()
    menu = screen.page.get_by_label("Reason")
    counts = {
        text.split(" (")[0]: int(text.split("(")[1][:-1]) for text in menu.locator("option").all_inner_texts()[1:]
    }
    assert sum(counts.values()) == len(everything)
    menu.select_option("audit")
    screen.page.wait_for_selector("select.ek-chosen")
    screen.page.locator(".ek-case").nth(counts["audit"]).wait_for(state="detached")
    assert len(screen.cases()) == counts["audit"]
    for case_id in screen.cases():
        assert "shown after your answer" in screen.row(case_id).inner_text(), "an audit is answered blind"
    screen.shot(shots, "queue-filtered-1280")


def test_n_opens_the_next_case_and_arrows_go_through_the_rows(login: Login) -> None:
    screen = login()
    first, second, *_ = screen.cases()
    screen.row(first).focus()
    screen.page.keyboard.press("ArrowDown")
    assert focused(screen).startswith(f"{second}.pdf")
    screen.page.keyboard.press("n")
    screen.wait_for_case()
    assert f"{first}.pdf" in screen.page.locator(".ek-crumbs").inner_text()
