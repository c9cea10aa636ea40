"""A report about 10,000 processed documents: the demo's, run and reviewed once, under other names."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from places import open_folder
from rich.table import Table

import evalkit
from evalkit.evaluation.sampling import draw_and_queue_sample
from evalkit.review.index_rebuild import reindex
from evalkit.samples import write_demo_folder
from evalkit.samples.simulated_experts import simulate_and_submit_reviews
from evalkit.store import (
    GROUND_TRUTH_FOLDER,
    PACKETS_FOLDER,
    RESULTS_FOLDER,
    REVIEWS_FOLDER,
    OutputFolder,
    bundle_file_name,
)

RECORDS = 10_000
_REPORT = """
import resource, time
from evalkit.evaluation.report import build_report
from evalkit.evaluation.study import read_study
began = time.perf_counter()
study = read_study({output!r})
read = time.perf_counter()
build_report(study, made_at="2026-01-01T00:00:00Z").write_html({to!r})
print(len(study.documents), len(study.reviewed_documents), read - began, time.perf_counter() - began,
      resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def reporting() -> Table:
    """Time and memory of one report, in a process of its own."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        multiply(make_reviewed_folder(folder), folder / "many")
        words = [sys.executable, "-c", _REPORT.format(output=str(folder / "many"), to=str(folder / "report.html"))]
        done = subprocess.run(words, check=True, capture_output=True, text=True)
        records, reviewed, reading, whole, mib = done.stdout.split()
    table = Table("what", "evalkit", "goal", title="a report")
    table.add_row(f"{records} records, {reviewed} reviewed: report", f"{float(whole):.1f} s", "10 s")
    table.add_row("of that, reading the folder", f"{float(reading):.1f} s", "")
    table.add_row("peak memory of the process", f"{float(mib):.0f} MiB", "500")
    return table


def make_reviewed_folder(folder: Path) -> Path:
    """The demo with everything escalated, audited or sampled reviewed by simulated experts."""
    write_demo_folder(folder / "demo")
    output = folder / "output"
    evalkit.run(
        [folder / "demo"],
        output=output,
        classifications=folder / "demo" / "classifications",
        production=folder / "demo" / "production.csv",
    )
    draw_and_queue_sample(open_folder(output), 2, "type", seed="bench", drawn_at="2026-01-01T00:00:00Z")
    simulate_and_submit_reviews(open_folder(output), folder / "demo" / "truth.csv")
    return output


def multiply(output: Path, to: Path, *, with_bundles: bool = False) -> None:
    """The same documents under other names, until there are ``RECORDS`` of them, and their index."""
    files = open_folder(output)
    names = [Path(name).stem for name in files.list_json_files(RESULTS_FOLDER)]
    for number in range(RECORDS):
        copy, place = divmod(number, len(names))
        doc_id = names[place]
        for name in [*_files_of(files, doc_id), *([bundle_file_name(doc_id)] if with_bundles else [])]:
            _write(to / name.replace(doc_id, f"{doc_id}_{copy}"), files.read_json(name), doc_id, copy)
    reindex(open_folder(to))


def _files_of(files: OutputFolder, doc_id: str) -> Iterator[str]:
    yield f"{RESULTS_FOLDER}/{doc_id}.json"
    cases = [doc_id, f"{doc_id}.second", f"{doc_id}.adjudication"]
    packets = [f"{PACKETS_FOLDER}/sme_packet_{case_id}.json" for case_id in cases]
    yield from filter(files.has_file, [*packets, f"{GROUND_TRUTH_FOLDER}/gt_{doc_id}.json"])
    for case_id in cases:
        yield from files.list_json_files(f"{REVIEWS_FOLDER}/{case_id}")


def _write(path: Path, record: dict, doc_id: str, copy: int) -> None:
    record |= {key: record[key].replace(doc_id, f"{doc_id}_{copy}") for key in ("doc_id", "case_id") if key in record}
    if "sha256" in record:
        record |= {"sha256": f"{copy:08x}{record['sha256'][8:]}"}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record))


if __name__ == "__main__":
    from rich.console import Console

    Console().print(reporting())
