"""Twenty short documents run, and their cases reviewed: on this machine's disk, and in S3 (moto) with PostgreSQL.

Alone: `PYTHONPATH=tests .venv/bin/python tests/benchmarks/storing.py`. Everything is on loopback: what a network adds is
a round trip for each request, and how many those are is counted.
"""

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pymupdf
from places import open_folder, open_index
from rich.console import Console
from rich.table import Table
from servers.buckets import S3Server
from servers.postgresql import PostgreSQLServer

import evalkit
from evalkit.review import ReviewSession, SMEReviewHelper

DOCUMENTS = 20
PAGE = "SURGICAL PATHOLOGY REPORT\nAccession 25-{}\nFinal diagnosis: invasive ductal carcinoma, grade 2."


def documents(folder: Path) -> Path:
    for number in range(DOCUMENTS):
        with pymupdf.open() as document:
            document.new_page().insert_text((72, 72), PAGE.format(number))
            document.save(folder / f"note_{number}.pdf")
    return folder


def measured(pdfs: Path, output: Path | str, server: S3Server | None) -> dict[str, str]:
    """Medians, each with the number of requests in all of its rounds where there is a store."""
    found = {}

    def put(name: str, *calls: Callable[[], object]) -> None:
        if server:
            server.faults.end()
        took = []
        for call in calls:
            began = time.perf_counter()
            call()
            took.append(time.perf_counter() - began)
        seconds = statistics.median(took)
        shown = f"{seconds:.1f} s" if seconds > 1 else f"{seconds * 1000:.0f} ms"
        found[name] = shown + (f", {len(server.faults.seen) / len(calls):.0f} requests" if server else "")

    for name in ("run of 20 documents", "the same run again"):
        put(name, lambda: evalkit.run([pdfs], output=output, workers=1))
    index = open_index(output)
    cases = [row["case_id"] for row in index.list_cases_worst_first("pending")]
    index.close()
    assert len(cases) == DOCUMENTS, cases
    helper = SMEReviewHelper(output, "dr_lee")
    desk = ReviewSession(open_folder(output), "dr_lee", "tab")
    put("first page of the queue", *[desk.load_queue_page] * 5)
    put("packet opened", *[lambda case=case: helper.load_packet(case) for case in cases])
    put("review saved", *[lambda case=case: helper.save_review(case, agrees=True) for case in cases])
    desk.close()
    return found


def main() -> None:
    os.environ["EVALKIT_AUDIT_RATE_START"] = "1"  # each document is a case
    database, server = PostgreSQLServer(syncs=True), S3Server()
    try:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "pdfs").mkdir()
            pdfs = documents(Path(folder) / "pdfs")
            columns = {"disk, SQLite": measured(pdfs, Path(folder) / "sqlite", None)}
            os.environ.update(server.environment, EVALKIT_DATABASE=database.url)
            columns["disk, PostgreSQL"] = measured(pdfs, Path(folder) / "postgresql", None)
            columns["S3, PostgreSQL"] = measured(pdfs, "s3://hospital/output", server)
    finally:
        server.stop()
        database.remove()
    table = Table("", *columns)
    for name in next(iter(columns.values())):
        table.add_row(name, *(column[name] for column in columns.values()))
    Console().print(table)


if __name__ == "__main__":
    main()
