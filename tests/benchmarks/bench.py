"""What `make bench` prints: medians of five, each figure beside its peer where it has one.

Real documents are measured where ``../shared/data`` lies beside the checkout; without it only the demo's. The peers'
environment is made on the first run (``measuring``).
"""

import asyncio
import json
import resource
import statistics
import subprocess
import sys
from pathlib import Path

from benchmarks.alterations import alterations
from benchmarks.asking import asking
from benchmarks.exploring import exploring
from benchmarks.grounding import grounding
from benchmarks.measuring import DATA, ROUNDS, bundles_of, cpu, documents
from benchmarks.queueing import queueing
from benchmarks.reading import bare, reading
from benchmarks.reliability import reliability
from benchmarks.reporting import reporting
from benchmarks.workbench import workbench
from classification.keyword_vote import keyword_vote
from rich.console import Console
from rich.table import Table

from evalkit.classification.orchestrator import RetryOrchestrator
from evalkit.classification.primary_classifier import classify_by_embedded_model
from evalkit.documents import DocumentBundle


def help_cpu() -> float:
    took = []
    for _ in range(ROUNDS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "evalkit", "--help"], stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        took.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(took)


def evaluated(bundles: list[DocumentBundle]) -> None:
    async def all_of_them() -> None:
        orchestrator = RetryOrchestrator()
        for bundle in bundles:
            await orchestrator.evaluate(bundle)

    asyncio.run(all_of_them())


def measured(name: str, bundles: list[DocumentBundle], table: Table) -> None:
    paths = [Path(bundle.file_path) for bundle in bundles]
    pages = sum(bundle.total_pages for bundle in bundles)
    text = [bundle for bundle in bundles if bundle.has_text]
    text_pages = sum(bundle.total_pages for bundle in text)
    ours, dicts = cpu(lambda: bundles_of(paths), lambda: bare(paths))
    (deciding,) = cpu(lambda: evaluated(text))
    size = sum(len(bundle.model_dump_json().encode()) for bundle in bundles)
    table.add_row(
        f"{name}: read", f"{1000 * ours / pages:.1f} ms CPU a page", f"PyMuPDF dict loop {1000 * dicts / pages:.1f}"
    )
    table.add_row(f"{name}: classify and verify", f"{text_pages / deciding:.0f} pages/s on one core", "goal 200")
    table.add_row(f"{name}: bundle on disk", f"{size / pages / 1024:.1f} KiB a page", "")


def types(table: Table) -> None:
    """Dominant types of the real single documents, beside the five-expression vote of the tests."""
    labels = [json.loads(line) for line in (DATA / "labels.jsonl").read_text().splitlines()]
    singles = [row for row in labels if row["kind"] == "single" and not row["scan"]]
    ours = votes = 0
    by_path = {Path(bundle.file_path): bundle for bundle in documents()["clinical_pdf"]}
    for row in singles:
        bundle = by_path[DATA / row["file"]]
        truth = row["segments"][0]["type"]
        ours += classify_by_embedded_model(bundle).dominant_type_overall == truth
        votes += keyword_vote("\n".join(page.text for page in bundle.pages)) == truth
    table.add_row("dominant type, text singles", f"{ours} of {len(singles)}", f"five expressions {votes}")


def main() -> None:
    table = Table("what", "evalkit", "peer", title=f"medians of {ROUNDS}")
    table.add_row("evalkit --help", f"{help_cpu():.2f} s CPU", "goal 0.40")
    for name, bundles in documents().items():
        measured(name, bundles, table)
    if DATA.is_dir():
        types(table)
    workbench(table)
    console = Console(width=130)
    console.print(table)  # each as soon as it is there: what fails later costs no earlier figure
    console.print(queueing())
    console.print(reporting())
    console.print(exploring())
    console.print(reading())
    console.print(grounding())
    console.print(asking())
    for one in reliability():
        console.print(one)
    alterations(console)


if __name__ == "__main__":
    main()
