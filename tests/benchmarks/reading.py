"""The local reader beside its peers: `PYTHONPATH=tests .venv/bin/python tests/benchmarks/reading.py`.

CPU time a page, medians of five, all in one run. pymupdf4llm and pdfplumber live in an environment of their own
(``measuring``); without a network their rows say so. Recognising is measured where tesseract is installed.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pymupdf
from benchmarks.measuring import DATA, ROUNDS, TIMESTAMP, NotMeasured, Row, bundles_of, cpu, documents, peer
from rich.console import Console
from rich.table import Table

from evalkit.documents.bundle import DocumentBundle, PageStatus
from evalkit.documents.ocr import resolve_ocr_engine
from evalkit.documents.scanned_pages import PageOcrSettings
from evalkit.pipeline.executor.protocol import ReaderConfig
from evalkit.pipeline.executor.reader_pool import ReaderPool

#: Pages of a drawn file; a peer takes a second for each.
DRAWN = 6

# Runs in the peers' environment: prints the median CPU time in ms that a page takes.
_PEER = """
import statistics, sys, time
name, rounds, *paths = sys.argv[1:]
def pages_of(path):
    if name == "pdfplumber":
        import pdfplumber
        with pdfplumber.open(path) as pdf:
            for page in pdf.pages:
                page.extract_text()
                page.extract_tables()
            return len(pdf.pages)
    import pymupdf, pymupdf4llm
    pymupdf4llm.to_markdown(path, show_progress=False)
    with pymupdf.open(path) as document:
        return len(document)
took = []
for _ in range(int(rounds)):
    began = time.process_time()
    pages = sum(map(pages_of, paths))
    took.append(1000 * (time.process_time() - began) / pages)
print("MEDIAN", statistics.median(took))
"""

_LARGE = """
import sys
from pathlib import Path
from evalkit.documents.readers import read_document
bundle = read_document(Path(sys.argv[1]), doc_id="large", processing_timestamp="")
assert bundle.total_pages == 1000 and bundle.page(1000).text
# Not getrusage: what it calls the peak is at least what the process that started this one held.
print(next(int(line.split()[1]) // 1024 for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""

_SENTENCES = [
    "The specimen was received fresh in the department and was fixed overnight before it was cut.",
    "Sections show an invasive tumour with pushing margins and a brisk infiltrate of lymphocytes.",
    "No vessel is seen to be invaded in any of the twelve sections that were taken from the edge.",
    "Stains were done on two of the blocks; the nuclei stain strongly for the receptor in nine of ten.",
]


def cells(number: int) -> list[list[list[str]]]:
    """The three tables of page ``number``: rows of cells, with decimals."""
    names = ["WBC", "HGB", "PLT", "Ki-67", "CRP", "TSH", "Na", "K", "Ca", "Mg"]
    return [
        [["Test", "Value", "Unit", "Range"]]
        + [[name, f"{(7 * row + 3 * at + number) % 97 + 0.05 * row:.2f}", "g/dL", "0.25 - 99.5"] for row, name in enumerate(names)]
        for at in range(3)
    ]  # fmt: skip


def draw_tables(path: Path, pages: int) -> None:
    """A PDF with three ruled tables and a few lines of text on each page."""
    document = pymupdf.open()
    for number in range(pages):
        page = document.new_page(width=612, height=792)
        for at, rows in enumerate(cells(number)):
            top = 80 + 212 * at
            page.insert_text((72, top - 10), f"Results {at + 1} of the blood that was drawn on Monday.", fontsize=10)
            shape = page.new_shape()
            for row in range(len(rows) + 1):
                shape.draw_line((72, top + 17 * row), (512, top + 17 * row))
            for column in range(5):
                shape.draw_line((72 + 110 * column, top), (72 + 110 * column, top + 17 * len(rows)))
            shape.finish(width=0.5)
            for row, texts in enumerate(rows):
                for column, text in enumerate(texts):
                    shape.insert_text((77 + 110 * column, top + 12 + 17 * row), text, fontsize=9)
            shape.commit()
    document.save(path)


def draw_text(path: Path, pages: int) -> None:
    """A PDF with 46 lines of prose on each page."""
    document = pymupdf.open()
    for number in range(pages):
        page = document.new_page(width=612, height=792)
        page.insert_text((72, 60), f"Report, leaf {number + 1}", fontsize=14)
        page.insert_text((72, 90), [_SENTENCES[(line + number) % 4] for line in range(46)], fontsize=10)
    document.save(path)


def bare(paths: Sequence[Path], *, tables: bool = False) -> list[list[list[str]]]:
    """What PyMuPDF alone takes: the text as ``dict`` and, where asked for, the cells of all tables."""
    found: list[list[list[str]]] = []
    for path in paths:
        with pymupdf.open(path) as document:
            for page in document:
                page.get_text("dict")
                if tables:
                    found += [
                        [[cell or "" for cell in row] for row in table.extract()] for table in page.find_tables().tables
                    ]
    return found  # fmt: skip


def our_cells(bundles: Sequence[DocumentBundle]) -> list[list[list[str]]]:
    blocks = (block for bundle in bundles for page in bundle.pages for block in page.blocks)
    return [[row.split("\t") for row in block.text.split("\n")] for block in blocks if block.type == "table"]


def theirs(name: str, paths: Sequence[Path]) -> str:
    """ms CPU a page of a peer; why not, where it could not be measured."""
    try:
        return f"{float(peer(_PEER, [name, ROUNDS, *paths]).rsplit('MEDIAN', 1)[1]):.1f} ms"
    except NotMeasured as error:
        return str(error)


def text_rows(name: str, paths: Sequence[Path]) -> Iterator[Row]:
    pages = sum(bundle.total_pages for bundle in bundles_of(paths))
    dicts, ours = cpu(lambda: bare(paths), lambda: bundles_of(paths))
    yield f"{name}: PyMuPDF dict loop", f"{1000 * dicts / pages:.2f} ms", f"{pages} pages"
    yield f"{name}: evalkit", f"{1000 * ours / pages:.2f} ms", f"{ours / dicts:.2f} of the dict loop (goal 1.5)"
    for one in ("pymupdf4llm", "pdfplumber"):
        # Half a second a page, times five: some of the files tell enough.
        yield f"{name}: {one}", theirs(one, paths[::8]), f"{len(paths[::8])} of {len(paths)} files"


def table_rows(path: Path, pages: int) -> Iterator[Row]:
    dicts, finding, ours = cpu(lambda: bare([path]), lambda: bare([path], tables=True), lambda: bundles_of([path]))
    yield "tables: PyMuPDF dict loop", f"{1000 * dicts / pages:.2f} ms", f"{pages} pages"
    yield "tables: dict + find_tables", f"{1000 * finding / pages:.2f} ms", ""
    yield "tables: evalkit", f"{1000 * ours / pages:.2f} ms", f"{ours / finding:.2f} of dict + find_tables (goal 0.25)"
    drawn = [table for number in range(pages) for table in cells(number)]
    found, read_by_us = bare([path], tables=True), our_cells(bundles_of([path]))
    yield "tables: cells as drawn", f"{read_by_us == drawn}", f"as find_tables': {read_by_us == found}"
    for one in ("pymupdf4llm", "pdfplumber"):
        yield f"tables: {one}", theirs(one, [path]), ""


def pool_row(paths: Sequence[Path]) -> Row:
    """Wall time of one reading process and of two, on the same files."""

    def wall(workers: int) -> float:
        with ReaderPool(workers, ReaderConfig(processor_seconds=600)) as readers:

            async def each(chosen: Sequence[Path]) -> None:
                await asyncio.gather(
                    *(readers.read(path, doc_id=path.stem, processing_timestamp=TIMESTAMP) for path in chosen)
                )

            async def time_second_round() -> float:
                await each(paths[: 2 * workers])  # the processes start and load
                began = time.perf_counter()
                await each(paths)
                return time.perf_counter() - began

            return asyncio.run(time_second_round())

    times = [(wall(1), wall(2)) for _ in range(ROUNDS)]
    one, two = map(statistics.median, zip(*times, strict=True))
    ratio = statistics.median(first / second for first, second in times)
    load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    return (
        "200 pages: two processes, not one",
        f"{ratio:.2f} times as fast",
        f"{one:.1f} s, {two:.1f} s; goal 1.6; {load}",
    )


def scan_row() -> Row:
    """Wall time to recognise a page of the real scans, and what evalkit says about how well it could."""
    found = resolve_ocr_engine()
    if found is None or not found.name_and_version.startswith("tesseract"):
        return "scans: tesseract", "not measured", "tesseract is not installed"
    scans = [Path(one.file_path) for one in documents()["clinical_pdf"] if one.unreadable_pages]
    chosen = scans[::2]  # two seconds a page, times five
    took, pages = [], []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        bundles = bundles_of(chosen, PageOcrSettings(found, seconds_per_page=60))
        took.append(time.perf_counter() - began)
        pages = [page for bundle in bundles for page in bundle.pages if page.quality is not None]
    qualities = [page.quality for page in pages]
    recognised = sum(page.status is PageStatus.OCR for page in pages)
    return (
        f"scans: evalkit with {found.name_and_version}",
        f"{statistics.median(took) / len(pages):.2f} s wall time",
        f"{recognised} of {len(pages)} pages recognised, quality {min(qualities):.2f} to {max(qualities):.2f}; "
        f"{len(chosen)} of {len(scans)} files",
    )


def memory_row(path: Path) -> Row:
    done = subprocess.run([sys.executable, "-c", _LARGE, path], check=True, capture_output=True, text=True)
    return "1,000 pages of text: peak memory", f"{done.stdout.strip()} MB", "goal 400 MB"


def reading() -> Table:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        draw_text(folder / "text.pdf", DRAWN)
        draw_tables(folder / "tables.pdf", DRAWN)
        draw_text(folder / "large.pdf", 1_000)
        parts = [folder / f"part{number}.pdf" for number in range(40)]
        for part in parts:
            draw_tables(part, 5)
        rows: list[Row] = []
        if DATA.is_dir():
            rows += [*text_rows("clinical_pdf", born_digital()), scan_row()]
        rows += text_rows("drawn text", [folder / "text.pdf"])
        rows += table_rows(folder / "tables.pdf", DRAWN)
        rows += [pool_row(parts), memory_row(folder / "large.pdf")]
    table = Table("what", "CPU a page", "beside", title=f"reading, medians of {ROUNDS}")
    for row in rows:
        table.add_row(*row)
    return table


def born_digital() -> list[Path]:
    """The real files all of whose pages are text."""
    return [
        Path(bundle.file_path)
        for bundle in documents()["clinical_pdf"]
        if all(page.status is PageStatus.TEXT for page in bundle.pages)
    ]


if __name__ == "__main__":
    Console(width=130).print(reading())
