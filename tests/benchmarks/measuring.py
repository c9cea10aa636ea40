"""What the benchmarks share: the documents, the clock, the peers' environments.

Real documents are measured where ``../shared/data`` lies beside the checkout, the demo's always.
"""

from __future__ import annotations

import atexit
import statistics
import subprocess
import tempfile
import time
import venv
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pymupdf

from evalkit.documents import DocumentBundle
from evalkit.documents.input_files import list_input_files
from evalkit.documents.readers import read_document
from evalkit.documents.scanned_pages import PageOcrSettings
from evalkit.samples import write_demo_folder

ROUNDS = 5
TIMESTAMP = "2026-01-01T00:00:00Z"
ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data" / "clinical_pdf"

Row = tuple[str, str, str]
"""What was measured, the figure, and what it is compared with."""


class Peers(NamedTuple):
    """Programs that evalkit is compared with, in an environment of their own."""

    name: str
    packages: Sequence[str]

    @property
    def folder(self) -> Path:
        return ROOT / ".bench" / self.name


READERS = Peers("peers", [f"pymupdf=={pymupdf.__version__}", "pymupdf4llm<2", "pdfplumber", "langextract<2"])
ANNOTATORS = Peers("label-studio", ["label-studio<2"])
ASKERS = Peers("askers", ["inspect_ai<0.4"])
TOKENISERS = Peers("tokenisers", ["bpe-openai==0.1.4"])


class NotMeasured(Exception):
    """A peer could not be installed or failed."""

    @classmethod
    def because(cls, error: subprocess.CalledProcessError) -> NotMeasured:
        """With the last thing that the program said."""
        lines = (error.stderr or "").strip().splitlines() or ["it said nothing"]
        return cls(f"not measured: {lines[-1][-100:]}")


def bundles_of(paths: Iterable[Path], recogniser: PageOcrSettings | None = None) -> list[DocumentBundle]:
    return [
        read_document(path, doc_id=path.stem, processing_timestamp=TIMESTAMP, ocr_settings=recogniser) for path in paths
    ]


@cache
def documents() -> dict[str, list[DocumentBundle]]:
    """The demo's samples and, where they are, the real documents; read once for all benchmarks of a run."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)  # the files are read again where reading is what is measured
    found = {"demo": bundles_of(write_demo_folder(Path(folder.name)))}
    if DATA.is_dir():
        found["clinical_pdf"] = bundles_of(list_input_files([DATA]))
    return found


def cpu(*works: Callable[[], object]) -> list[float]:
    """For each work its median CPU time in seconds. They take turns, so that all meet the same machine."""
    took: list[list[float]] = [[] for _ in works]
    for turn in range(ROUNDS + 1):
        for work, times in zip(works, took, strict=True):
            began = time.process_time()
            work()
            if turn:  # the first one only fills caches
                times.append(time.process_time() - began)
    return [statistics.median(times) for times in took]


def environment(peers: Peers) -> Path:
    """The folder of the peers' programs, which are installed on the first run. NotMeasured."""
    python, ready = peers.folder / "bin" / "python", peers.folder / "ready"
    wanted = "\n".join(peers.packages)
    try:
        if not ready.exists() or ready.read_text() != wanted:
            venv.create(peers.folder, with_pip=True)
            subprocess.run(
                [python, "-m", "pip", "install", "--quiet", *peers.packages], check=True, capture_output=True, text=True
            )
            ready.write_text(wanted)
    except subprocess.CalledProcessError as error:
        raise NotMeasured.because(error) from error
    return python.parent


def peer(program: str, arguments: Sequence[object], peers: Peers = READERS) -> str:
    """What a program prints that runs in the peers' environment. NotMeasured."""
    command = [environment(peers) / "python", "-c", program, *map(str, arguments)]
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout
    except subprocess.CalledProcessError as error:
        raise NotMeasured.because(error) from error
