"""How many rows of bank statements are read right by the templates that the embedded builder writes.

    PYTHONPATH=tests python tests/benchmarks/bank_statements.py [--statements 5] [--faults 10] [--sound 7]

By shape: rows of the statement that the template was built from, and of the same bank's next month, which the template
has not seen; printed sums that are met; seconds for building, and for the review by the two embedded reviewers. A row
is right if date, description, amount, balance, check number and page are; of scans blanks do not count. Then the
statement of ../shared/data/bank, and the review of a template against a statement of five pages, which must take at
most 2 seconds. Then the reviewers: by kind of planted fault, how many are named by the right reviewer in the right
category, no milder than they are; and how many sound templates either reviewer rejects.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import get_args

from rich.console import Console
from rich.table import Table
from statements.drawn import SHAPES, draw
from statements.faults import AT, FAULTS, plant_template_fault
from statements.measuring import BANK, Rows, bank_rows, bundle_of, labels, rows_of

from evalkit.documents.bundle import DocumentBundle
from evalkit.documents.ocr import resolve_ocr_engine
from evalkit.documents.readers import read_document
from evalkit.documents.scanned_pages import PageOcrSettings
from evalkit.llm.embedded import EmbeddedModel
from evalkit.statements.applied_template import AppliedTemplate
from evalkit.statements.reconciliation import ReconciliationReport, reconcile_statement
from evalkit.statements.rule_based_review import TemplateReviewer, review_by_rules
from evalkit.statements.statement_template import StatementTemplate
from evalkit.statements.template_builder import build_draft_template
from evalkit.statements.template_review_loop import TemplateReviewLoop, TemplateReviewResult

COLUMNS = (
    *("shape", "statements", "rows right", "sums met", "next month: rows right", "sums met", "seconds to build"),
    *("to review", "approved"),
)
#: Seconds that a review of this many pages may take.
PAGES, LONGEST = 5, 2.0


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--statements", type=int, default=5, help="of each shape; of scans one")
    parser.add_argument("--faults", type=int, default=10, help="of each kind, at least")
    parser.add_argument("--sound", type=int, default=7, help="templates of each shape")
    given = parser.parse_args()
    wanted = given.statements
    table = Table(*COLUMNS)
    found = resolve_ocr_engine()
    whole = [(Rows(0, 0, 0), 0, 0), (Rows(0, 0, 0), 0, 0)]
    for name, shape in SHAPES.items():
        if shape.is_scanned and not found:
            table.add_row(name, "no OCR engine is installed")
            continue
        recogniser = PageOcrSettings(found, 60) if shape.is_scanned and found else None
        count = 1 if shape.is_scanned else wanted
        cells, seconds, reviews = measured(name, range(100, 100 + count), recogniser)
        table.add_row(
            name,
            str(count),
            *(one for cell in cells for one in shown(*cell)),
            f"{median(seconds):.2f}",
            f"{median(took for took, _ in reviews):.2f}",
            f"{sum(done.template_case is None for _, done in reviews)}/{count}",
        )
        whole = [added(one, other) for one, other in zip(whole, cells, strict=True)]
    table.add_row("all", "", *(one for cell in whole for one in shown(*cell)), "")
    if BANK.is_dir():
        began = time.perf_counter()
        made = build_draft_template(read_document(BANK / labels()["file"], doc_id="bank", processing_timestamp=""))
        took = time.perf_counter() - began
        table.add_row(
            "../shared/data/bank",
            "1",
            *shown(bank_rows(made.statement), *sums(made.reconciliation)),
            "",
            "",
            f"{took:.2f}",
            "",
            "",
        )
        for check in made.reconciliation.checks:
            Console().print(f"../shared/data/bank: {'met' if check.is_met else 'DIFFERS'}: {check.message}")
    Console(width=170).print(table)
    five_pages()
    Console(width=150).print(caught(given.faults))
    Console().print(alarms(given.sound))


def five_pages() -> None:
    """The review of a sound template and of one that has to be built again, with a statement of five pages."""
    SHAPES["five pages"] = replace(SHAPES["over several pages"], rows=(150, 150))
    with tempfile.TemporaryDirectory() as folder:
        bundle = bundle_of(draw("five pages", 1), Path(folder))
        assert bundle.total_pages == PAGES
        template = build_draft_template(bundle).template
        times = sorted((reviewed(template, bundle) for _ in range(5)), key=lambda one: one[0])
        dates = template.dates.model_copy(update={"formats": ("%d.%m.%y",)})
        took, done = reviewed(template.model_copy(update={"dates": dates}), bundle)
    seconds, first = times[2]
    Console().print(
        f"{PAGES} pages: reviewed in {seconds:.3f} s (median of 5, approved: {first.template_case is None}); with wrong dates "
        f"reviewed, built again and reviewed in {took:.2f} s ({len(done.cycles)} attempts, approved: {done.template_case is None})"
    )
    assert seconds <= LONGEST, f"the review took longer than {LONGEST} s"


def reviewed(template: StatementTemplate, bundle: DocumentBundle) -> tuple[float, TemplateReviewResult]:
    """Seconds, and what became of it."""
    loop = TemplateReviewLoop(lambda role: EmbeddedModel(), clock=lambda: datetime.now(UTC).isoformat())
    began = time.perf_counter()
    done = asyncio.run(loop.review_template(template, bundle))
    return time.perf_counter() - began, done


def caught(wanted: int) -> Table:
    table = Table("planted fault", "severity", "category", "reviewer", "caught")
    for fault in FAULTS:
        seeds = range(300, 300 - (-wanted // len(fault.shapes)))
        found = [plant_template_fault(fault, shape, seed).is_caught for shape in fault.shapes for seed in seeds]
        table.add_row(*(fault.name, fault.severity, fault.category, fault.reviewer), f"{sum(found)}/{len(found)}")
    return table


def alarms(wanted: int) -> str:
    rejected = told = count = 0
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        for name in (name for name, shape in SHAPES.items() if not shape.is_scanned):
            for seed in range(400, 400 + wanted):
                bundle = bundle_of(draw(name, seed), Path(folder))
                template = build_draft_template(bundle).template
                began = time.perf_counter()
                reports = [
                    review_by_rules(AppliedTemplate.create(template, bundle), role, reviewer_id="r", reviewed_at=AT)
                    for role in get_args(TemplateReviewer)
                ]
                seconds.append(time.perf_counter() - began)
                count += 1
                rejected += not all(report.is_passed for report in reports)
                told += sum(len(report.issues) for report in reports)
    return (
        f"sound templates: {count}, rejected {rejected}, issues told {told}; both reviews {median(seconds):.3f} s, "
        f"at most {max(seconds):.3f} s"
    )


Cell = tuple[Rows, int, int]


def measured(
    name: str, seeds: range, recogniser: PageOcrSettings | None
) -> tuple[list[Cell], list[float], list[tuple[float, TemplateReviewResult]]]:
    cells: list[Cell] = [(Rows(0, 0, 0), 0, 0), (Rows(0, 0, 0), 0, 0)]
    seconds, reviews = [], []
    with tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            this, following = (draw(name, seed, month) for month in (0, 1))
            bundle = bundle_of(this, Path(folder), recogniser)
            began = time.perf_counter()
            made = build_draft_template(bundle)
            seconds.append(time.perf_counter() - began)
            reviews.append(reviewed(made.template, bundle))
            later = AppliedTemplate.create(made.template, bundle_of(following, Path(folder), recogniser)).statement
            is_scanned = recogniser is not None
            cells = [
                added(cells[0], (rows_of(this, made.statement, is_scanned=is_scanned), *sums(made.reconciliation))),
                added(
                    cells[1],
                    (
                        rows_of(following, later, is_scanned=is_scanned),
                        *sums(reconcile_statement(made.template, later)),
                    ),
                ),
            ]
    return cells, seconds, reviews


def sums(report: ReconciliationReport) -> tuple[int, int]:
    return sum(check.is_met for check in report.checks), len(report.checks)


def added(one: Cell, other: Cell) -> Cell:
    return Rows(*(a + b for a, b in zip(one[0], other[0], strict=True))), one[1] + other[1], one[2] + other[2]


def shown(rows: Rows, met: int, checks: int) -> tuple[str, str]:
    most = max(rows.there, rows.read)
    return f"{rows.right}/{most} ({rows.right / most:.1%})", f"{met}/{checks}"


if __name__ == "__main__":
    main()
