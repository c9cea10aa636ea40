"""The screen without a browser."""

import shutil
from pathlib import Path

import pytest

from evalkit.batch import RunSummary
from widgets.workbench import Workbench


@pytest.fixture
def screen(finished: RunSummary, tmp_path: Path) -> Workbench:
    """The queue of the demo's output, of which this is a copy."""
    shutil.copytree(finished.output, tmp_path / "output")
    workbench = Workbench(tmp_path / "output", "dr_lee")
    workbench._heard({"action": "hello", "tab": "tab-1", "case": None})
    return workbench
