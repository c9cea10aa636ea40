"""A busy machine is slower, and writes the same: limits count processor time, not the clock's."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from documents.drawing import lines
from documents.scanning import NOTE, needs_tesseract, printed, scan
from samples.demo_runs import read_output_files

import evalkit
from evalkit.settings import Settings

pytestmark = needs_tesseract


@contextmanager
def disturb(process_count: int) -> Iterator[None]:
    """Burn the processors meanwhile."""
    burners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(process_count)]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


def _run_quiet_and_busy(folder: Path, burner_count: int) -> None:
    # By the clock, a page takes longer than this on the busy machine.
    settings = Settings(ocr="tesseract", ocr_seconds=3)
    quiet = evalkit.run([folder / "records"], output=folder / "quiet", settings=settings)
    assert quiet.exit_status == 0
    with disturb(burner_count):
        busy = evalkit.run([folder / "records"], output=folder / "busy", settings=settings)
    assert busy.exit_status == 0
    assert read_output_files(folder / "busy") == read_output_files(folder / "quiet")


def test_a_busy_machine_gives_equal_files(samples: Path, tmp_path: Path) -> None:
    records = tmp_path / "records"
    records.mkdir()
    (records / "scan.pdf").write_bytes(scan(printed(lines(NOTE, x=60, y=80)).tilted(1)))
    shutil.copy(samples / "requisition.pdf", records)
    _run_quiet_and_busy(tmp_path, 10)


@pytest.mark.stress
def test_twenty_times_too_busy_gives_equal_files(samples: Path, tmp_path: Path) -> None:
    records = tmp_path / "records"
    shutil.copytree(samples, records, ignore=lambda _, names: [name for name in names if not name.endswith(".pdf")])
    for number in range(6):
        papers = (printed(lines(NOTE, x=60, y=80 + 40 * number)).tilted(page - 1).noisy(8, page) for page in range(4))
        (records / f"scan{number}.pdf").write_bytes(scan(*papers))
    _run_quiet_and_busy(tmp_path, 40)
