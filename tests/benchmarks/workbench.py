"""What the expert waits for, in a real browser on the demo's cases; `make bench` prints it below the rest."""

import io
import json
import shutil
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pymupdf
from benchmarks.sitting import CASES, SETTLED, many_cases, sitting
from builders import NOTE, evidence, one_segment
from PIL import Image
from places import open_folder, open_index
from playwright.sync_api import Browser, sync_playwright
from rich.table import Table
from samples.demo_runs import run_samples
from statements.drawn import SHAPES
from statements.spoilt import publish_template_case, spoil_template
from system.browser.conftest import CHROMIUM, FLAGS
from system.browser.screen import Screen
from system.browser.server import serving

import evalkit
from evalkit.review.session import compute_case_address
from evalkit.samples import write_demo_folder
from evalkit.settings import Settings
from widgets.workbench import Workbench

TURNS = 40
VISITS = 5
APART = 8
"""Seconds from one visit to the next: experts come one at a time."""
LONG = 500
OPENINGS = 12
# In the page itself: a question from outside takes longer than the flip.
_FLIP = """what => new Promise((done) => {
    const pane = document.querySelector(".ek-pane");
    const before = pane.dataset.page;
    const began = performance.now();
    const look = () => {
        if (pane.dataset.page === before) requestAnimationFrame(look);
        else done(performance.now() - began);
    };
    pane.dispatchEvent(new CustomEvent("ek-do", { detail: what }));
    look();
})"""
_OPEN = """name => new Promise((done) => {
    const began = performance.now();
    const look = () => {
        const pane = document.querySelector(".ek-pane");
        if (pane?.dataset.page && pane.querySelector(".ek-mark")) done(performance.now() - began);
        else requestAnimationFrame(look);
    };
    [...document.querySelector(`.ek-case[data-case="${name}"]`).querySelectorAll("button")]
        .find((button) => button.textContent.startsWith("Open")).click();
    look();
})"""

_CLOSE = """() => new Promise((done) => {
    const painted = () => document.querySelector(".ek-pane").dataset.painted?.split(":")[0];
    const before = painted();
    const began = performance.now();
    const look = () => {
        if (painted() && painted() !== before) done(performance.now() - began);
        else requestAnimationFrame(look);
    };
    [...document.querySelectorAll("button")].find((one) => one.textContent === "Close as undeterminable").click();
    look();
})"""


def p95(values: list[float]) -> float:
    return statistics.quantiles(values, n=20, method="inclusive")[-1]


def opened(screen: Screen, case_id: str) -> str:
    """How long a case takes from its button in the queue to a lit page, again and again."""
    took = []
    for _ in range(OPENINGS):
        screen.page.wait_for_timeout(500)
        took.append(screen.page.evaluate(_OPEN, case_id))
        screen.page.wait_for_timeout(500)
        screen.queue()
    return f"{statistics.median(took):.0f} ms, p95 {p95(took):.0f} ms"


def kernel_memory(server: int) -> float:
    kernels = [
        one
        for one in psutil.Process(server).children(recursive=True)
        if one.status() != psutil.STATUS_ZOMBIE and "evalkit.serving.kernel" in one.cmdline()
    ]
    return max(one.memory_full_info().pss for one in kernels) / 2**20


def workbench(table: Table) -> None:
    if CHROMIUM is None:
        table.add_row("workbench", "not measured", "chromium is not installed")
        return
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        samples, output = Path(folder) / "samples", Path(folder) / "output"
        write_demo_folder(samples)
        run_samples(samples, output)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        began = time.perf_counter()
        with serving(output, ["dr_lee"]) as server:
            started = time.perf_counter() - began
            screen = Screen(browser, server.address, 1440, 900)
            screen.log_in(server.codes["dr_lee"])
            visited = visits(browser, screen)
            lit = opened(screen, "quest_genomic")
            screen.open("fabricated_quote")
            screen.page.wait_for_selector(".ek-issue .ek-seen")
            memory = kernel_memory(server.pid)
            issues = [issue.get_attribute("data-issue") for issue in screen.page.query_selector_all(".ek-issue")]
            turns = []
            for turn in range(TURNS):
                name = issues[(turn + 1) % len(issues)]
                began = time.perf_counter()
                screen.page.locator(f'.ek-issue[data-issue="{name}"] .ek-message').click()
                screen.page.wait_for_selector(f'.ek-selected[data-issue="{name}"] .ek-context', state="attached")
                turns.append(1000 * (time.perf_counter() - began))
            screen.close()
        browser.close()
        shutil.rmtree(output)
    table.add_row("workbench: `evalkit review` to login page", f"{started:.1f} s", "")
    for visit, took in visited.items():
        told = f"{statistics.median(took):.1f} s (median of {len(took)})"
        table.add_row(f"workbench: address to usable queue, {visit}", told, "goal 2.5")
    table.add_row("workbench: open case to lit page, a case of the demo", lit, "goal 600")
    table.add_row("workbench: next issue, p95", f"{p95(turns):.0f} ms", "goal 150")
    table.add_row("workbench: kernel after the first case", f"{memory:.0f} MB PSS", "goal 110")
    sat = sitting()
    table.add_row(
        f"workbench: {CASES} cases in one sitting",
        f"{sat.end - sat.settled:+.1f} MB PSS since the {SETTLED}th, {sat.widgets} widgets",
        "goal: flat, 150",
    )
    submitting(table)
    long_packet(table)
    moved_edges(table)


def visits(browser: Browser, screen: Screen) -> dict[str, list[float]]:
    """Seconds from the address to the queue: in a browser that has none of the scripts yet, once more in the same, and once
    more at once, when no kernel is in reserve.

    Nobody stands between browser and server, as in a test, which takes half a second and keeps nothing for next time.
    """
    pauses = {"first visit": APART, "next visit": APART, "right after another": 0}
    took: dict[str, list[float]] = {visit: [] for visit in pauses}
    for _ in range(VISITS):
        fresh = browser.new_context(
            storage_state=screen.context.storage_state(), viewport={"width": 1440, "height": 900}
        )
        page = fresh.new_page()
        for visit, pause in pauses.items():
            time.sleep(pause)
            began = time.perf_counter()
            page.goto(screen.address)
            page.wait_for_selector(".ek-queue-head, .ek-why", timeout=60_000)
            took[visit].append(time.perf_counter() - began)
        fresh.close()
    return took


def submitting(table: Table) -> None:
    """From the press that submits to the next case's page on screen."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        output = many_cases(Path(folder))
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        with serving(output, ["dr_lee"]) as server:
            screen = Screen(browser, server.address, 1440, 900)
            screen.log_in(server.codes["dr_lee"])
            screen.button("Next case").click()
            took = []
            for _ in range(TURNS):
                screen.page.wait_for_selector(".ek-pane[data-painted]")
                screen.page.keyboard.press("q")
                screen.page.get_by_label("Why can nobody tell?").fill("measured")
                took.append(screen.page.evaluate(_CLOSE))
            screen.close()
        browser.close()
    table.add_row("workbench: submit to next case, p95", f"{p95(took):.0f} ms", "goal 450")


def long_packet(table: Table) -> None:
    """A fax of 500 scanned pages: opened, and leafed through at a pace that leaves no time to look ahead, and one that does."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        output = Path(folder) / "output"
        run_long(Path(folder), output)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        with serving(output, ["dr_lee"]) as server:
            screen = Screen(browser, server.address, 1440, 900)
            screen.log_in(server.codes["dr_lee"])
            lit = opened(screen, "long")
            screen.open("long")
            first = [screen.page.evaluate(_FLIP, "next") for _ in range(TURNS)]
            cached = []
            for _ in range(TURNS):
                screen.page.wait_for_timeout(700)
                cached.append(screen.page.evaluate(_FLIP, "next"))
            screen.page.wait_for_timeout(1000)  # the next page is drawn ahead
            memory = kernel_memory(server.pid)
            screen.close()
        browser.close()
    table.add_row(f"workbench: open case to lit page, {LONG} pages", lit, "goal 600")
    table.add_row("workbench: page flip first, p95", f"{p95(first):.0f} ms", "goal 150")
    table.add_row("workbench: page flip cached, p95", f"{p95(cached):.0f} ms", "goal 50")
    table.add_row(f"workbench: kernel after {2 * TURNS} of {LONG} pages", f"{memory:.0f} MB PSS", "goal 110")


def moved_edges(table: Table) -> None:
    """From an edge of a template's box that was moved to the statement of five pages read again, in the kernel."""
    SHAPES["five pages"] = replace(SHAPES["over several pages"], rows=(150, 150))
    with tempfile.TemporaryDirectory() as folder:
        one = spoil_template(Path(folder), "long", "five pages")
        output = Path(folder) / "output"
        with open_index(output) as index:
            publish_template_case(open_folder(output), index, one)
        screen = Workbench(open_folder(output), "dr_lee")
        screen.dispatch_message({"action": "hello", "tab": "tab-1", "case": compute_case_address(one.case_id)})
        took = []
        for step in range(TURNS):
            began = time.perf_counter()
            screen.dispatch_message(
                {
                    "action": "edge",
                    "token": screen.page_pane.version,
                    "edge": "region.1.bottom",
                    "to": 0.5 + step / 100,
                }
            )
            took.append(1000 * (time.perf_counter() - began))
    name = f"workbench: edge moved to {one.bundle.total_pages} pages read again, p95"
    table.add_row(name, f"{p95(took):.0f} ms", "goal 150")


def run_long(folder: Path, output: Path) -> None:
    """A packet of 500 pages, each with its picture in grey under its print, as one case that a person must look at."""
    document = pymupdf.open()
    for number in range(1, LONG + 1):
        noise = io.BytesIO()
        Image.effect_noise((850, 1100), 12).save(noise, "JPEG", quality=40)
        page = document.new_page()
        page.insert_image(page.rect, stream=noise.getvalue())
        for row in range(40):
            page.insert_text((60, 80 + 16 * row), f"Sheet {number}, line {row}: reviewed with the patient today.")
    document.save(folder / "long.pdf")
    quotes = (
        evidence("Sheet 3, line 7: reviewed with the patient", 3),
        evidence("Sheet 3, line 9: rejected with the doctor today", 3),
    )
    (folder / "answers").mkdir()
    (folder / "answers" / "long.json").write_text(json.dumps(one_segment(NOTE, LONG, *quotes)))
    without_ocr = Settings(ocr="none")  # its print is text already
    evalkit.run([folder / "long.pdf"], output=output, classifications=folder / "answers", settings=without_ocr)
