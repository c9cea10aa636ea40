"""What the expert waits for, in a real browser on the demo's cases; `make bench` prints it below the rest."""

import shutil
import statistics
import tempfile
import time
from pathlib import Path

import psutil
from browser.conftest import CHROMIUM, FLAGS, _Server
from browser.screen import Screen
from demo.outputs import run_samples
from playwright.sync_api import sync_playwright
from rich.table import Table

from evalkit.review.roster import Roster
from evalkit.samples import draw
from evalkit.store import Files

TURNS = 40


def p95(values: list[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]


def kernel_memory(server: int) -> float:
    kernels = [one for one in psutil.Process(server).children(recursive=True) if "ipykernel" in " ".join(one.cmdline())]
    return max(one.memory_full_info().pss for one in kernels) / 2**20


def workbench(table: Table) -> None:
    if CHROMIUM is None:
        table.add_row("workbench", "not measured", "chromium is not installed")
        return
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        samples, output = Path(folder) / "samples", Path(folder) / "output"
        draw(samples)
        run_samples(samples, output)
        code = Roster(Files(output)).add("dr_lee")
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        with _Server(output) as (address, pid):
            screen = Screen(browser, address, 1440, 900)
            screen.log_in(code)
            usable = []
            for _ in range(5):
                began = time.perf_counter()
                screen.page.goto(address)
                screen.page.wait_for_selector(".ek-queue-head, .ek-why", timeout=60_000)
                usable.append(time.perf_counter() - began)
            screen.open("fabricated_quote")
            screen.page.wait_for_selector(".ek-issue .ek-seen")
            memory = kernel_memory(pid)
            issues = [issue.get_attribute("data-issue") for issue in screen.page.query_selector_all(".ek-issue")]
            turns = []
            for turn in range(TURNS):
                name = issues[(turn + 1) % len(issues)]
                began = time.perf_counter()
                screen.page.locator(f'.ek-issue[data-issue="{name}"] .ek-message').click()
                screen.page.wait_for_selector(f'.ek-selected[data-issue="{name}"] .ek-context')
                turns.append(1000 * (time.perf_counter() - began))
            screen.close()
        browser.close()
        shutil.rmtree(output)
    table.add_row("workbench: address to usable queue", f"{statistics.median(usable):.1f} s (median of 5)", "goal 4.0")
    table.add_row("workbench: next issue, p95", f"{p95(turns):.0f} ms", "goal 250")
    table.add_row("workbench: kernel after the first case", f"{memory:.0f} MB PSS", "goal 120")
