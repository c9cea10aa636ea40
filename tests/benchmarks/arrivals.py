"""Arriving files by format: how many are read, named or wrong, their words, seconds and memory.

    PYTHONPATH=tests python -m benchmarks.arrivals [--half open|sealed] [--formats TIFF,DOCX] [--wrong]

Each file is read in a process of its own, with OCR. ``--wrong`` also lists the faults of each file. No text of a file is
printed.
"""

import argparse
import multiprocessing
import tempfile
import time
from importlib import import_module
from pathlib import Path

from documents.arrivals.arrival import Arrival
from documents.arrivals.judging import Outcome, judge
from memory import peak
from rich.console import Console
from rich.table import Table


def measure(arrival: Arrival, folder: Path) -> tuple[Outcome, float, float]:
    """Judge one file; return the outcome, the seconds it took, and the most memory in MB."""
    start = time.perf_counter()
    try:
        outcome = judge(arrival, folder)
    except Exception as error:  # noqa: BLE001 - a crash is a finding, and the other files are measured
        outcome = Outcome(None, None, (f"crashed: {type(error).__name__}",))
    return outcome, time.perf_counter() - start, peak() / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", choices=("open", "sealed"), default="open")
    parser.add_argument("--formats", default="")
    parser.add_argument("--wrong", action="store_true")
    options = parser.parse_args()
    table = Table("format", "files", "read", "named", "wrong", "words %", "worst s", "worst MB")
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as name, context.Pool(1, maxtasksperchild=1) as pool:
        folder = Path(name)
        arrivals = import_module(f"documents.arrivals.build_{options.half}").build(folder)
        for kind in dict.fromkeys(arrival.format for arrival in arrivals):
            if options.formats and kind not in options.formats.split(","):
                continue
            rows = [arrival for arrival in arrivals if arrival.format == kind]
            results = pool.starmap(measure, [(arrival, folder) for arrival in rows], chunksize=1)
            outcomes = [outcome for outcome, _, _ in results]
            shares = [
                (outcome.word_share, len(arrival.words))
                for outcome, arrival in zip(outcomes, rows, strict=True)
                if outcome.word_share is not None and arrival.words
            ]
            word_count = sum(count for _, count in shares)
            table.add_row(
                kind,
                str(len(rows)),
                str(sum(outcome.word_share is not None for outcome in outcomes)),
                str(sum(outcome.code is not None for outcome in outcomes)),
                str(sum(bool(outcome.faults) for outcome in outcomes)),
                f"{100 * sum(share * count for share, count in shares) / word_count:.2f}" if word_count else "",
                f"{max(seconds for _, seconds, _ in results):.1f}",
                f"{max(megabytes for _, _, megabytes in results):.0f}",
            )
            for arrival, outcome in zip(rows, outcomes, strict=True):
                if options.wrong and outcome.faults:
                    print(arrival.file, outcome.code or "", *outcome.faults, sep="; ")
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
