"""One expert decides 200 cases in one sitting: what the kernel's memory and its widgets do meanwhile.

Run as a program of its own, it prints JSON of PSS in MB by number of cases, and the most widgets that were alive.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import psutil
from places import open_folder
from samples.demo_runs import run_samples

import evalkit.serving
from evalkit.samples import write_demo_folder

CASES = 200
SETTLED = 20
KINDS = {"fabricated_quote": 49, "altered_quotes": 49, "quest_genomic": 49, "segment_count": 49, "poor_scan": 4}
"""Which of the demo's documents, and how often: they add up to CASES."""
KERNEL = Path(evalkit.serving.__file__).parent / "jupyter/kernels/python3/kernel.json"


class Sitting(NamedTuple):
    settled: float
    """MB PSS after the case number SETTLED."""
    end: float
    """MB PSS after the last one."""
    widgets: int
    """The most that were alive at once."""


def sitting() -> Sitting:
    """Measured in a process like a kernel's."""
    with tempfile.TemporaryDirectory() as folder:
        output = many_cases(Path(folder))
        environ = os.environ | json.loads(KERNEL.read_text())["env"]
        done = subprocess.run([sys.executable, __file__, output], env=environ, check=True, capture_output=True)
    return Sitting(*json.loads(done.stdout))


def many_cases(folder: Path) -> Path:
    """An output folder with CASES cases."""
    drawn, many = folder / "drawn", folder / "many"
    write_demo_folder(drawn)
    (many / "classifications").mkdir(parents=True)
    shutil.copy(drawn / "production.csv", many)
    for kind, times in KINDS.items():
        for number in range(times):
            name = f"{kind}_{number}"
            # What stands behind a PDF's end is nothing to its readers, but makes another file of it.
            (many / f"{name}.pdf").write_bytes((drawn / f"{kind}.pdf").read_bytes() + f"\n% {name}\n".encode())
            answer = drawn / "classifications" / f"{kind}.json"
            if answer.exists():
                shutil.copy(answer, many / "classifications" / f"{name}.json")
    run_samples(many, folder / "output")
    return folder / "output"


def decide(output: str) -> Sitting:
    """Every case is opened, leafed through and closed."""
    from ipywidgets.widgets import widget

    from widgets.workbench import Workbench

    workbench, used, alive = Workbench(open_folder(output), "dr_lee"), {}, 0
    workbench.dispatch_message({"action": "hello", "tab": "tab-1"})
    workbench.dispatch_message({"action": "next"})
    for number in range(1, CASES + 1):
        packet = workbench.case.packet
        pages = range(1, packet.total_pages + 1)
        press(workbench, action="thumbnails", pages=list(pages))
        for page in pages:
            press(workbench, action="page", page=page)
            press(workbench, action="painted", page=page, issue=None)
        for issue in packet.open_issues:
            press(workbench, action="select", issue_id=issue.issue_id)
        press(workbench, action="undeterminable", reason="measured")
        used[number] = psutil.Process().memory_full_info().pss / 2**20
        alive = max(alive, len(widget._instances))
    if workbench.bar.address:
        raise RuntimeError("a case was not decided")
    return Sitting(used[SETTLED], used[CASES], alive)


def press(workbench: object, **message: object) -> None:
    workbench.dispatch_message(message | {"token": workbench.page_pane.version})


if __name__ == "__main__":
    print(json.dumps(decide(sys.argv[1])))
