"""The protocol between page and kernel is written down as it is."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
from traitlets import TraitType

import widgets.workbench
from widgets.case_panel import CasePanel
from widgets.explorer import EXPLORER_ACTIONS, ExplorerPanel
from widgets.field_panel import FieldPanel
from widgets.kinds import CONTROLLER_BY_KIND
from widgets.page_pane import PagePane
from widgets.queue_panel import FaultPanel, QueuePanel
from widgets.screen_widget import CasePanelWidget, PressCounter, ScreenWidget, TypesWidget
from widgets.segment_editor import SegmentEditor
from widgets.template_panel import TemplatePanel
from widgets.workbench import WORKBENCH_ACTIONS, TopBar

README = Path(widgets.workbench.__file__).with_name("README.md").read_text()
WIDGETS: tuple[type[ScreenWidget], ...] = (
    PressCounter, TypesWidget, CasePanelWidget, TopBar, QueuePanel, PagePane, CasePanel, FieldPanel, TemplatePanel, SegmentEditor, FaultPanel,
    ExplorerPanel,
)  # fmt: skip
FROM_BROWSER = {"held"}


def own_traits(widget: type[ScreenWidget]) -> dict[str, TraitType]:
    return {name: member for name, member in vars(widget).items() if isinstance(member, TraitType)}


def trait_rows(widget: type[ScreenWidget]) -> list[str]:
    return [
        f"| `{name}` | {'browser' if name in FROM_BROWSER else 'kernel'} | {trait.help} |"
        for name, trait in own_traits(widget).items()
    ]


def section(title: str) -> list[str]:
    found = re.search(rf"^### {re.escape(title)}\n(.*?)(?=^##|\Z)", README, re.MULTILINE | re.DOTALL)
    assert found, title
    return [line for line in found[1].splitlines() if line.startswith("| `")]


@pytest.mark.parametrize("widget", WIDGETS, ids=lambda widget: widget.__name__)
def test_readme_lists_the_traits_with_their_help(widget: type[ScreenWidget]) -> None:
    assert section(f"`{widget.__name__}`") == trait_rows(widget)
    assert all(trait.help and trait.metadata["sync"] for trait in own_traits(widget).values())


def test_no_widget_is_left_out() -> None:
    def subclasses(base: type) -> set[type]:
        return {base}.union(*map(subclasses, base.__subclasses__()))

    written = {widget for widget in subclasses(ScreenWidget) if widget.__module__ == inspect.getmodule(widget).__name__}
    assert {widget.__name__ for widget in written if own_traits(widget)} == {widget.__name__ for widget in WIDGETS}


@pytest.mark.parametrize(
    ("title", "actions"),
    [
        ("Messages that every case answers", set(WORKBENCH_ACTIONS)),
        ("Messages of the explorer", set(EXPLORER_ACTIONS)),
        *((f"Messages of `{kind}` cases", set(controller.actions)) for kind, controller in CONTROLLER_BY_KIND.items()),
    ],
)
def test_readme_lists_the_messages(title: str, actions: set[str]) -> None:
    assert {line.split("`")[1] for line in section(title)} == actions


def test_scripts_send_only_known_messages() -> None:
    known = {*WORKBENCH_ACTIONS, *EXPLORER_ACTIONS}.union(
        *(controller.actions for controller in CONTROLLER_BY_KIND.values())
    )
    for path in Path(widgets.workbench.__file__).parent.glob("*.js"):
        sent = re.findall(r'(?:action: |\b(?:send|once)\()"(\w+)"', path.read_text())
        assert set(sent) <= known, path.name
