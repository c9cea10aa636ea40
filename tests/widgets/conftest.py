"""The screen without a browser."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ipywidgets import Widget
from places import open_folder

from evalkit.pipeline import RunSummary
from widgets.workbench import Workbench


@pytest.fixture
def screen(demo_run: RunSummary, tmp_path: Path) -> Workbench:
    """The queue of the demo's output, of which this is a copy."""
    shutil.copytree(demo_run.output, tmp_path / "output")
    workbench = Workbench(open_folder(tmp_path / "output"), "dr_lee")
    workbench.dispatch_message({"action": "hello", "tab": "tab-1", "case": None})
    return workbench


@pytest.fixture
def record_states(monkeypatch: pytest.MonkeyPatch) -> Callable[[Widget], list[dict[str, Any]]]:
    """What a widget is on the page after each message to it, from now on."""

    def begin(widget: Widget) -> list[dict[str, Any]]:
        states: list[dict[str, Any]] = []
        monkeypatch.setattr(widget, "send_state", lambda key=None: states.append(widget.get_state()))
        return states

    return begin
