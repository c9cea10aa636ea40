"""What becomes of the real and broken files of ``../shared/data/nasty``, and the golden file that says so.

After a change that is meant to change it, from the project's folder, and then look at the difference:

    PYTHONPATH=tests .venv/bin/python -m documents.nasty --write
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from dataclasses import asdict, dataclass
from pathlib import Path

from memory import peak

from evalkit.documents.input_files import list_input_files
from evalkit.documents.ocr import resolve_ocr_engine
from evalkit.documents.readers import read_document
from evalkit.documents.scanned_pages import PageOcrSettings
from evalkit.errors import DocumentError

from .test_pdf import assert_whole

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data"
FOLDER = DATA / "nasty"
GOLDEN = Path(__file__).with_name("golden") / "nasty.toml"
SECONDS = 30
"""That each of the files may take of a processor."""
_HEAD = """\
# What becomes of each file of ../shared/data/nasty: an error code, or the statuses of its pages and how many pages
# there are; "repaired" where the file was. "ocr": what is different where tesseract reads pages that are pictures.
# Written by: PYTHONPATH=tests .venv/bin/python -m documents.nasty --write

"""


@dataclass(frozen=True)
class Reading:
    """All files, read one after the other in one process."""

    outcomes: dict[str, str]
    seconds: dict[str, float]
    peak: int
    """Bytes of memory that the process had at most."""


def golden(*, ocr: bool) -> dict[str, str]:
    """What shall become of each file, with or without tesseract."""
    table = tomllib.loads(GOLDEN.read_text(encoding="utf-8"))
    return {name: row.get("ocr", row["outcome"]) if ocr else row["outcome"] for name, row in table.items()}


def outcome(path: Path, recogniser: PageOcrSettings | None = None) -> str:
    """What becomes of one file. AssertionError where its bundle breaks a promise."""
    try:
        bundle = read_document(
            path, doc_id=path.stem, processing_timestamp="2026-01-02T03:04:05Z", ocr_settings=recogniser
        )
    except DocumentError as error:
        return error.code
    assert_whole(bundle)
    statuses = {page.status.value for page in bundle.pages}
    count = f"{bundle.total_pages} " if bundle.total_pages > 1 else ""
    return f"{count}{'+'.join(sorted(statuses))}{' repaired' if bundle.is_repaired else ''}"


def effort() -> float:
    """Seconds of a processor that this process and the programs that it called have taken."""
    return sum(os.times()[:4])


def read_all_in_a_child() -> Reading:
    """All files, read with tesseract in one process of their own."""
    done = subprocess.run(
        [sys.executable, "-m", "documents.nasty"],
        # This tree's evalkit, whichever one is installed.
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return Reading(**json.loads(done.stdout))


def _read_all(recogniser: PageOcrSettings | None) -> Reading:
    outcomes: dict[str, str] = {}
    seconds: dict[str, float] = {}
    for path in list_input_files([FOLDER]):
        started = effort()
        outcomes[path.name] = outcome(path, recogniser)
        seconds[path.name] = round(effort() - started, 2)
    return Reading(outcomes, seconds, peak())


def _written() -> str:
    without, with_ocr = _read_all(None).outcomes, _read_all(_tesseract()).outcomes
    rows = []
    for name, plain in without.items():
        other = f'ocr = "{with_ocr[name]}"\n' if with_ocr[name] != plain else ""
        rows.append(f'["{name}"]\noutcome = "{plain}"\n{other}')
    return _HEAD + "\n".join(rows)


def _tesseract() -> PageOcrSettings:
    found = resolve_ocr_engine("tesseract")
    assert found
    return PageOcrSettings(found, 10 * SECONDS)  # of the clock's, while much else may be going on


if __name__ == "__main__":
    if "--write" in sys.argv:
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(_written(), encoding="utf-8")
    else:
        print(json.dumps(asdict(_read_all(_tesseract()))))
