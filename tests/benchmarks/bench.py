"""What `make bench` prints: medians of five, each figure beside its peer where it has one.

Real documents are measured where ``../shared/data`` lies beside the checkout; without it only the demo's.
"""

import asyncio
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.workbench import workbench
from classification.keyword_vote import keyword_vote
from rich.console import Console
from rich.table import Table

from evalkit.classification.orchestrator import RetryOrchestrator
from evalkit.classification.primary_classifier import classify
from evalkit.documents import DocumentBundle
from evalkit.documents.ingest import find_pdfs, read
from evalkit.samples import draw

ROUNDS = 5
DATA = Path(__file__).parents[3] / "shared" / "data" / "clinical_pdf"


def median_seconds(work: Callable[[], object]) -> float:
    work()
    took = []
    for _ in range(ROUNDS):
        began = time.process_time()
        work()
        took.append(time.process_time() - began)
    return statistics.median(took)


def help_cpu() -> float:
    took = []
    for _ in range(ROUNDS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "evalkit", "--help"], stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        took.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(took)


def bare_loop(paths: list[Path]) -> None:
    import pymupdf

    for path in paths:
        with pymupdf.open(path) as document:
            for page in document:
                page.get_text("dict")


def bundles_of(paths: list[Path]) -> list[DocumentBundle]:
    return [read(path, doc_id=path.stem, timestamp="2026-01-01T00:00:00Z") for path in paths]


def evaluated(bundles: list[DocumentBundle]) -> None:
    async def all_of_them() -> None:
        orchestrator = RetryOrchestrator()
        for bundle in bundles:
            await orchestrator.evaluate(bundle)

    asyncio.run(all_of_them())


def measured(name: str, paths: list[Path], table: Table) -> None:
    bundles = bundles_of(paths)
    pages = sum(bundle.total_pages for bundle in bundles)
    text = [bundle for bundle in bundles if bundle.has_text]
    text_pages = sum(bundle.total_pages for bundle in text)
    reading, bare = median_seconds(lambda: bundles_of(paths)), median_seconds(lambda: bare_loop(paths))
    deciding = median_seconds(lambda: evaluated(text))
    size = sum(len(bundle.model_dump_json()) for bundle in bundles)
    table.add_row(
        f"{name}: read", f"{1000 * reading / pages:.1f} ms CPU a page", f"PyMuPDF dict loop {1000 * bare / pages:.1f}"
    )
    table.add_row(f"{name}: classify and verify", f"{text_pages / deciding:.0f} pages/s on one core", "")
    table.add_row(f"{name}: bundle on disk", f"{size / pages / 1024:.1f} KiB a page", "")


def types(table: Table) -> None:
    """Dominant types of the real single documents, beside the five-expression vote of the tests."""
    labels = [json.loads(line) for line in (DATA / "labels.jsonl").read_text().splitlines()]
    singles = [row for row in labels if row["kind"] == "single" and not row["scan"]]
    ours = votes = 0
    for row in singles:
        bundle = read(DATA / row["file"], doc_id="x", timestamp="2026-01-01T00:00:00Z")
        truth = row["segments"][0]["type"]
        ours += classify(bundle).dominant_type_overall == truth
        votes += keyword_vote("\n".join(page.text for page in bundle.pages)) == truth
    table.add_row("dominant type, text singles", f"{ours} of {len(singles)}", f"five expressions {votes}")


def main() -> None:
    table = Table("what", "evalkit", "peer", title=f"medians of {ROUNDS}")
    table.add_row("evalkit --help", f"{help_cpu():.2f} s CPU", "goal 0.40")
    with tempfile.TemporaryDirectory() as folder:
        measured("demo", draw(Path(folder)), table)
    if DATA.is_dir():
        measured("clinical_pdf", find_pdfs([DATA]), table)
        types(table)
    workbench(table)
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
