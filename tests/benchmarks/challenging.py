"""Which planted faults the checks catch, kind by kind, and how many right answers they escalate.

    PYTHONPATH=tests .venv/bin/python tests/benchmarks/challenging.py [--limit N] [--seed S] [--kinds K,…] [--misses N]

The right answers are known here: packets are put together from the records beside the checkout (``../shared/data``),
and each document's evidence is what the embedded model quotes for its true type. The real PDFs are taken with the truth
that comes with them. Quotes are altered in made-up documents as well (``quote_alterations.py``), as real ones hold too few
of some kinds.
"""

import argparse
import asyncio
import hashlib
import json
import random
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from benchmarks.measuring import DATA, TIMESTAMP, documents
from benchmarks.quote_alterations import list_planted_pages
from rich.console import Console
from rich.table import Table

from evalkit.classification.orchestrator import RetryOrchestrator
from evalkit.classification.patient_check import PatientExpectation
from evalkit.classification.primary_classifier import classify_by_embedded_model
from evalkit.classification.schema import ClassificationOutput, DocumentType, Segment, compute_mixture
from evalkit.classification.v2_consistency import choose_overall_type
from evalkit.classification.v5_arbiter import Decision
from evalkit.documents import DocumentBundle
from evalkit.documents.bundle import Block, LayoutMetadata, Page, PageStatus
from evalkit.documents.identity.page_identity import find_patient_identifiers
from evalkit.evaluation.challenge.mutated_answer import AnswerOrigin, CleanAnswer
from evalkit.evaluation.challenge.mutation_testing import plant_and_judge_mutations, select_mutation_operators
from evalkit.evaluation.challenge.report import MutationTestReport, format_report_table_and_summary

RECORDS = DATA.parent / "clinical_text.jsonl"
PACKETS = 120
_HOSPITALS = (
    "Pine Hill Hospital",
    "Lakeview Regional Medical Center",
    "St. Brendan Clinic",
    "Oakfield Health",
    "Northgate Medical Group",
)
_FAMILY = (
    "Quillfeather",
    "Ashgrove",
    "Okonjo",
    "Penhallow",
    "Rooke",
    "Haverstock",
    "Vance",
    "Delacroix",
    "Lindqvist",
    "Moreau",
)
_GIVEN = ("Oswin", "Marit", "Ottilie", "Hollis", "Anneke", "Rosalind", "Lorcan", "Delphine")

#: Characters of a page; a third of the packets is in large print, so that documents have many pages.
_SIZES = ((2200, 3000), (900, 1400, 2200), (450, 600))

_OTHER_PRINT = re.compile(r"\bpage ?\d+ ?(?:of|/) ?\d+", re.IGNORECASE)

Span = tuple[int, int, str]
"""First and last page, true type."""


class Layout(NamedTuple):
    """How one sender prints."""

    letterhead: tuple[str, ...]
    """Above the first page: name, address, perhaps a title, patient and date."""
    running: str
    """Above later pages, empty: nothing."""
    counts: bool
    """Page 1 of n in the footer."""
    signature: str
    size: int
    """Characters of a page."""


_TITLES = {
    "Clinical Note": ("OFFICE VISIT NOTE", "CONSULTATION REPORT", "PROGRESS NOTE", ""),
    "Pathology Report": ("SURGICAL PATHOLOGY REPORT", "PATHOLOGY REPORT", ""),
    "Genomic Report": ("MOLECULAR PATHOLOGY REPORT", "GENOMIC TEST REPORT", ""),
    "Radiology Report": ("DIAGNOSTIC IMAGING REPORT", "RADIOLOGY REPORT", ""),
    "Other": ("",),
}


def layout(dice: random.Random, kind: str, patient: tuple[str, str, str, str], sizes: Sequence[int]) -> Layout:
    """Half of the documents have a letterhead, the others begin with their text."""
    given, family, born, mrn = patient
    size = dice.choice(sizes)
    day = f"{dice.randint(1, 12):02d}/{dice.randint(1, 28):02d}/20{dice.randint(14, 25)}"
    counts, signed = dice.random() < 0.4, dice.random() < 0.5
    signature = f"Electronically signed by {dice.choice(_GIVEN)} {dice.choice(_FAMILY)}, MD {day}" if signed else ""
    if dice.random() < 0.5:
        return Layout((), "", counts, signature, size)
    street = dice.choice(("College Drive", "Main St", "Elm Ave", "Hospital Rd", "Lake Ave"))
    head = (
        dice.choice(_HOSPITALS),
        f"{dice.randint(100, 9999)} {street} Tel (555) {dice.randint(200, 999)}-{dice.randint(1000, 9999)}",
        dice.choice(_TITLES[kind]),
        f"Patient: {family}, {given} DOB: {born}",
        f"MRN: {mrn} Date: {day}",
    )
    running = dice.choice((f"{family}, {given} MRN: {mrn} DOB: {born}", ""))
    return Layout(tuple(filter(None, head)), running, counts, signature, size)


def pieces(text: str, size: int) -> list[list[str]]:
    """The lines of a text by page; long lines are divided behind a sentence, the page numbers of another print go."""
    whole = [line.strip() for line in _OTHER_PRINT.sub("", text).splitlines() if line.strip()]
    rows = [part for line in whole for part in re.split(r"(?<=[.!?])\s+(?=[A-Z])", line)]
    pages: list[list[str]] = [[]]
    for row in rows:
        if sum(map(len, pages[-1])) + len(row) > size and pages[-1]:
            pages.append([])
        pages[-1].append(row)
    return pages


def page(number: int, rows: Sequence[tuple[str, bool]]) -> Page:
    """A page of these lines; True: furniture."""
    height = 1 / (len(rows) + 1)
    text = "\n".join(row for row, _ in rows)
    return Page(
        page_num=number,
        status=PageStatus.TEXT,
        text=text,
        paragraphs=tuple(row for row, _ in rows),
        layout_metadata=LayoutMetadata(block_types=("paragraph",) * len(rows), has_tables=False),
        blocks=tuple(
            Block(type="paragraph", text=row, box=(0.1, at * height, 0.9, (at + 1) * height), furniture=is_furniture)
            for at, (row, is_furniture) in enumerate(rows)
        ),
        identifiers=find_patient_identifiers(text, ()),
    )


def printed(text: str, look: Layout) -> Iterator[list[tuple[str, bool]]]:
    """A record's pages: letterhead on the first, patient on the others, page counts, as the sender does it."""
    parts = pieces(text, look.size)
    for number, rows in enumerate(parts, 1):
        head = [(row, False) for row in look.letterhead] if number == 1 else []
        strip = [(look.running, True)] if look.running and number > 1 else []
        sign = [(look.signature, False)] if look.signature and number == len(parts) else []
        foot = [(f"Page {number} of {len(parts)}", True)] if look.counts else []
        yield [*head, *strip, *((row, False) for row in rows), *sign, *foot]


def packet(records: Sequence[dict[str, str]], number: int, dice: random.Random) -> tuple[DocumentBundle, list[Span]]:
    born = f"{dice.randint(1, 12):02d}/{dice.randint(1, 28):02d}/19{dice.randint(30, 99)}"
    patient = dice.choice(_GIVEN), dice.choice(_FAMILY), born, str(dice.randint(1_000_000, 9_999_999))
    pages: list[Page] = []
    spans: list[Span] = []
    sizes = dice.choice(_SIZES)
    for record in records:
        first = len(pages) + 1
        for rows in printed(record["text"], layout(dice, record["type"], patient, sizes)):
            pages.append(page(len(pages) + 1, rows))
        spans.append((first, len(pages), record["type"]))
    name = f"packet-{number:03d}"
    bundle = DocumentBundle(
        doc_id=name,
        file_path=f"{name}.pdf",
        sha256=hashlib.sha256("\f".join(one.text for one in pages).encode()).hexdigest(),
        reader="benchmark",
        total_pages=len(pages),
        processing_timestamp=TIMESTAMP,
        pages=tuple(pages),
    )
    return bundle, spans


def packets(seed: int, count: int) -> Iterator[tuple[DocumentBundle, list[Span]]]:
    """One to four records each, types drawn evenly, so that rare ones are there often enough."""
    by_type: dict[str, list[dict[str, str]]] = {}
    for line in RECORDS.read_text().splitlines():
        record = json.loads(line)
        by_type.setdefault(record["type"], []).append(record)
    dice = random.Random(f"packets:{seed}")
    for number in range(count):
        kinds = [dice.choice(sorted(by_type)) for _ in range(dice.choice((1, 2, 2, 3, 3, 4)))]
        yield packet([dice.choice(by_type[kind]) for kind in kinds], number, dice)


def right_answer(bundle: DocumentBundle, spans: Sequence[Span]) -> CleanAnswer | None:
    """The true classification, each document with what the embedded model quotes for it; None where that is nothing.

    Quotes that begin in mid-sentence are left out: what they turn is their fault, not that of who finds it.
    """
    segments: list[Segment] = []
    for index, (start, end, kind) in enumerate(spans, 1):
        parts = classify_by_embedded_model(bundle, bundle.iter_pages(start, end)).segments
        said = [part for part in parts if part.dominant_type is DocumentType(kind)]
        evidence = tuple(
            quote
            for part in said
            for row in part.segment_composition
            if row.document_type == kind
            for quote in row.top_evidence
            if not quote.snippet[:1].islower()
        )[:3]
        if not evidence:
            return None
        rows = [
            row.model_copy(update={"top_evidence": evidence} if row.document_type == kind else {})
            for row in said[0].segment_composition
        ]
        segments.append(
            Segment(
                segment_index=index,
                start_page=start,
                end_page=end,
                segment_page_count=end - start + 1,
                dominant_type=DocumentType(kind),
                segment_composition=tuple(rows),
            )
        )
    mixture = compute_mixture(segments)
    overall = choose_overall_type(segments, mixture)
    return CleanAnswer(
        bundle,
        ClassificationOutput(
            dominant_type_overall=overall,
            number_of_segments=len(segments),
            segments=tuple(segments),
            document_mixture=mixture,
            vendor_signals=classify_by_embedded_model(bundle).vendor_signals,
        ),
    )


def real() -> Iterator[tuple[DocumentBundle, list[Span]]]:
    """The real PDFs."""
    labels = {row["file"]: row for row in map(json.loads, (DATA / "labels.jsonl").read_text().splitlines())}
    for bundle in documents()["clinical_pdf"]:
        row = labels[str(bundle.file_path).removeprefix(f"{DATA}/")]
        yield bundle, [(one["start"], one["end"], one["type"]) for one in row["segments"]]


def cleans(seed: int, count: int, *, pdfs: bool) -> tuple[list[CleanAnswer], int]:
    """Right answers, and how many documents have none because nothing is quoted for their type."""
    found = [*packets(seed, count), *(real() if pdfs else ())]
    answers = [
        right_answer(bundle, spans) for bundle, spans in found if bundle.has_text and not bundle.unreadable_pages
    ]
    return [one for one in answers if one], sum(one is None for one in answers)


def made_up(seed: int, count: int) -> list[CleanAnswer]:
    """Documents in which every kind of quote can be altered, as far as the embedded model's answer is accepted."""
    checks = RetryOrchestrator()
    answers = [(bundle, asyncio.run(checks.evaluate(bundle))) for bundle in list_planted_pages(seed, count)]
    return [
        CleanAnswer(bundle, outcome.classification, AnswerOrigin.UNVALIDATED)
        for bundle, outcome in answers
        if outcome.classification and outcome.verdict.decision is Decision.AUTO_ACCEPT
    ]


def together(one: MutationTestReport, other: MutationTestReport) -> MutationTestReport:
    """Both, of which the second's documents are the first's once more and made-up ones: its alarms do not count."""
    return replace(
        one, cases=one.cases + other.cases, skipped_counts=dict(one.skipped_counts) | dict(other.skipped_counts)
    )


def shown(made: MutationTestReport, console: Console) -> None:
    head, rows, tail = format_report_table_and_summary(made)
    table = Table(*head)
    for row in rows:
        table.add_row(*row)
    console.print(table)
    for line in tail:
        console.print(line)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limit", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--packets", type=int, default=PACKETS)
    parser.add_argument("--no-pdfs", action="store_true", help="only packets from records: nothing is recognised")
    parser.add_argument("--kinds", default="")
    parser.add_argument("--misses", type=int, default=0, help="name so many missed cases of each kind")
    asked = parser.parse_args()
    console = Console(width=180)
    found, without = cleans(asked.seed, asked.packets, pdfs=not asked.no_pdfs)
    pages = sum(one.bundle.total_pages for one in found)
    console.print(
        f"{len(found)} right answers, {pages} pages; {without} documents without, as nothing is quoted for their type"
    )
    began = time.process_time()
    checks = RetryOrchestrator()
    several = PatientExpectation(patients_per_file="several")  # a packet's texts are about different persons
    options = {"max_cases_per_kind": asked.limit, "seed": asked.seed, "patient_expectation": several}
    faults = select_mutation_operators(filter(None, asked.kinds.split(",")))
    quotes = [fault for fault in faults if fault.nature == "quote"]
    others = [fault for fault in faults if fault.nature != "quote"]
    made = asyncio.run(plant_and_judge_mutations(found, checks, others, **options))
    if quotes:
        made = together(
            made, asyncio.run(plant_and_judge_mutations([*found, *made_up(asked.seed, 60)], checks, quotes, **options))
        )
    shown(made, console)
    structural = [case.caught for case in made.cases if case.nature == "structural"]
    console.print(f"structural: {sum(structural)} of {len(structural)}; {time.process_time() - began:.0f} s CPU")
    for alarm in made.false_alarms:
        console.print(f"alarm: {alarm.doc_id} {', '.join(alarm.codes)}")
    named: Counter[str] = Counter()
    for case in made.cases:
        if not case.caught and named[case.kind] < asked.misses:
            named[case.kind] += 1
            console.print(f"missed: {case.kind} {case.doc_id} place {case.place} {case.outcome}")


if __name__ == "__main__":
    main()
