"""What a document costs: processor seconds here, and US dollars at the providers' list prices; the demo's documents.

    PYTHONPATH=.:tests .venv/bin/python tests/benchmarks/costing.py

Processor seconds are those of this process and the engines that it starts. Dollars are of the requests that would be sent:
no model is asked. Tokens are estimated as four characters each, prompts, schemas and answers alike; thoughts are not
counted, nor the discount for prompts that begin alike.
"""

import asyncio
import resource
import tempfile
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Literal

from benchmarks.asking import count_input_characters, readable, sent, unseen
from benchmarks.measuring import bundles_of
from rich.console import Console
from rich.table import Table

from evalkit.classification.orchestrator import RetryOrchestrator
from evalkit.documents import DocumentBundle
from evalkit.documents.ocr import resolve_ocr_engine
from evalkit.documents.scanned_pages import PageOcrSettings
from evalkit.llm.ledger import add_list_price
from evalkit.llm.model import Usage
from evalkit.samples import write_demo_folder

MODELS = ("gemini:gemini-2.5-flash", "gemini:gemini-2.5-pro", "openai:gpt-5-mini", "anthropic:claude-sonnet-4-5")
ANSWER_CHARACTERS = 2_000
"""Of an answer: a classification of two segments with its quotes."""


def estimate_usage(bundle: DocumentBundle, profile: Literal["full", "lean"]) -> Usage:
    """Estimate calls and tokens of one document."""
    requests = sent(bundle, profile)
    characters = sum(map(count_input_characters, requests))
    return Usage(
        calls=len(requests), input_tokens=characters // 4, output_tokens=len(requests) * ANSWER_CHARACTERS // 4
    )


def measure_processor_seconds(work: Callable[[], object]) -> float:
    """Measure work that is done for the second time, child processes included."""
    work()
    before = _processor_seconds()
    work()
    return _processor_seconds() - before


def _processor_seconds() -> float:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def timing() -> Table:
    table = Table("step, built-in model", "processor seconds a page", "pages")
    with tempfile.TemporaryDirectory() as folder:
        paths = write_demo_folder(Path(folder))
        scans = PageOcrSettings(resolve_ocr_engine(), 30)
        bundles = {path: bundles_of([path], scans)[0] for path in paths}
        for name, is_scan in (("read a page of text", False), ("read and recognise a scanned page", True)):
            of_kind = [
                path
                for path in paths
                if any(page.status in ("ocr", "image") for page in bundles[path].pages) == is_scan
            ]
            seconds = measure_processor_seconds(lambda of_kind=of_kind: bundles_of(of_kind, scans))  # type: ignore[misc]
            _add_time(table, name, seconds, sum(bundles[path].total_pages for path in of_kind))
        readable_bundles = [bundle for bundle in bundles.values() if bundle.has_text]

        fresh = unseen(readable_bundles)  # pages that were seen before are known

        def decide() -> None:
            for bundle in islice(fresh, len(readable_bundles)):
                asyncio.run(RetryOrchestrator().evaluate(bundle))

        pages = sum(bundle.total_pages for bundle in readable_bundles)
        _add_time(table, "classify, check and decide", measure_processor_seconds(decide), pages)
    table.title = f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB"
    return table


def _add_time(table: Table, name: str, seconds: float, pages: int) -> None:
    table.add_row(name, f"{seconds / pages:.3f}", str(pages))


def costing() -> Table:
    bundles = readable("demo")
    pages = sum(bundle.total_pages for bundle in bundles)
    table = Table("model", "profile", "calls", "input tokens a page", "US$ a document", "US$ a page")
    for profile in ("full", "lean"):
        usages = [estimate_usage(bundle, profile) for bundle in bundles]
        total = sum(usages, Usage())
        for model in MODELS:
            cost = add_list_price(model, total).cost_usd
            dollars = None if cost is None else float(cost)
            table.add_row(
                model,
                profile,
                f"{total.calls / len(bundles):.0f}",
                f"{total.input_tokens / pages:,.0f}",
                "no public price" if dollars is None else f"{dollars / len(bundles):.4f}",
                "" if dollars is None else f"{dollars / pages:.4f}",
            )
    table.title = f"{len(bundles)} documents of {pages} pages"
    return table


if __name__ == "__main__":
    Console(width=130).print(timing())
    Console(width=130).print(costing())
