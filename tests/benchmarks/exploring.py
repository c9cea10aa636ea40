"""The explorer over 10,000 documents: how long it opens, and how long each press is answered; medians of five.

Alone: `PYTHONPATH=tests .venv/bin/python -m benchmarks.exploring`. The documents are the demo's, with bundles and reviews,
under other names. What is timed is the kernel's part: counts, and the state of the panel as it is sent.
"""

from __future__ import annotations

import json
import tempfile
import time
from functools import partial
from pathlib import Path

from benchmarks.queueing import milliseconds
from benchmarks.reporting import make_reviewed_folder, multiply
from rich.console import Console
from rich.table import Table

from evalkit.evaluation.study import read_study
from widgets.explorer import Explorer

#: Presses, each with the filters that it sends.
PRESSES = {
    "clear all filters": {},
    "a cell of the matrix": {"truth": "Other", "program": "Genomic Report"},
    "a rule": {"rule": "V4 V4-QUOTE-ALTERED"},
    "a bar of reliability": {"confidence": "90–100 %"},
    "three filters": {"form": "text", "decision": "accepted", "pages": "2–5"},
}


def exploring() -> Table:
    """Time of opening the explorer, of each kind of press, and of opening a document."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        multiply(make_reviewed_folder(folder), folder / "many", with_bundles=True)
        began = time.perf_counter()
        study = read_study(folder / "many", production=folder / "demo" / "production.csv")
        reading = time.perf_counter() - began
        opening = milliseconds(lambda: json.dumps(Explorer(study).panel.get_state(), default=str))
        explorer = Explorer(study)

        def press(filters: dict[str, str], comparison: str = "program") -> None:
            explorer.dispatch_message({"action": "choose", "filters": filters, "comparison": comparison, "page": 0})
            assert not explorer.panel.problem, explorer.panel.problem
            json.dumps(explorer.panel.get_state(), default=str)

        few = Explorer(read_study(folder / "output"))  # the files of the many were never written

        def open_document() -> None:
            few.dispatch_message({"action": "document", "doc_id": "quest_genomic"})
            assert few.page_pane.marks, few.panel.problem
            assert not few.page_pane.note

        table = Table("what", "evalkit", "goal", title=f"the explorer, {len(study.documents):,} documents")
        table.add_row("opens, from a study", f"{opening:.0f} ms", "2,000 ms")
        for name, filters in PRESSES.items():
            assert milliseconds(lambda filters=filters: press(filters)) > 0
            took = milliseconds(partial(press, filters))
            matching = explorer.panel.answer["matching"]
            table.add_row(f"{name}: {matching:,} documents", f"{took:.0f} ms", "200 ms")
        press({})
        table.add_row("a document with its page", f"{milliseconds(open_document):.0f} ms", "200 ms")
        size = len(json.dumps(explorer.panel.get_state(), default=str))
        table.add_row("sent to the browser for a press", f"{size / 1024:.0f} KiB", "")
        table.add_row("beforehand: reading the folder", f"{reading:.1f} s", "")
    return table


if __name__ == "__main__":
    Console(width=120).print(exploring())
