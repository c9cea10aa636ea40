"""Base classes of all widgets: checked traits, numbered button presses."""

import logging
import secrets
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anywidget
import traitlets
from IPython import get_ipython

from evalkit.document_types import load_type_records

#: The traits that do not depend on the open case.
_LASTING_TRAITS = frozenset({"answered", "signatures", "types"})

log = logging.getLogger("evalkit.widgets")


class ScreenWidget(anywidget.AnyWidget):
    """Widget that synchronises its traits; an unknown trait raises TypeError."""

    def __init_subclass__(cls, *, scripts: Sequence[str] = (), styles: Sequence[str] = (), **options: Any) -> None:
        """Read the class's ``scripts``, after ``dom.js``, and its ``styles``.

        Both are stems of files in this folder.
        """
        if scripts:
            cls._esm, cls._css = _join_assets("js", "dom", *scripts), _join_assets("css", *styles)
        super().__init_subclass__(**options)
        for member in vars(cls).values():
            if isinstance(member, traitlets.TraitType):
                member.tag(sync=True)

    def __init__(self, **traits: Any) -> None:
        for name in traits:
            self._require_known_name(name)
        super().__init__(**traits)

    def __setattr__(self, name: str, setting: Any) -> None:
        self._require_known_name(name)
        super().__setattr__(name, setting)

    def set_traits(self, **traits: Any) -> None:
        """Set several traits, which the browser receives in one message."""
        with self.hold_sync():
            for name, setting in traits.items():
                setattr(self, name, setting)

    def forget_case(self) -> None:
        """Clear all traits about a case, so that kernel and browser keep no text."""
        own_traits = (
            name for name, trait in self.traits(sync=True).items() if issubclass(trait.this_class, ScreenWidget)
        )
        self.set_traits(
            **{name: self.traits()[name].default(self) for name in own_traits if name not in _LASTING_TRAITS}
        )

    @classmethod
    def _require_known_name(cls, name: str) -> None:
        if not name.startswith("_") and not hasattr(cls, name):
            raise TypeError(f"{cls.__name__} has no trait {name!r}")


class TypesWidget(ScreenWidget):
    """Widget that shows the document types, including a site's own types."""

    types = traitlets.List(
        trait=traitlets.Dict(),
        help="The document types in force: ``{type, key, definition, includes, excludes}``; the key may be empty.",
    )

    @traitlets.default("types")
    def _list_types(self) -> list[dict[str, Any]]:
        return [
            {"type": name, "key": record.key or ""}
            | {"definition": record.definition, "includes": record.includes, "excludes": record.excludes}
            for name, record in load_type_records().items()
        ]


class PressCounter(ScreenWidget):
    """Widget that numbers the browser's button presses and reports the last handled."""

    answered = traitlets.Int(0, help="The number (``nth``) of the last press to which the kernel has answered.")


class CasePanelWidget(PressCounter):
    """Panel of a case with selectable items: issues, fields or rows."""

    case = traitlets.Dict(help="The case in the words of the screen; its keys are defined by the panel's module.")
    selected = traitlets.Unicode(
        help="The selected target: an issue_id, a field key or, in a template case, ``row.1``, ``left.1``, ``outside.1`` or ``sum.1``; empty for none."
    )
    seen = traitlets.List(
        trait=traitlets.Unicode(), help="The targets that were on screen together with their place on the page."
    )
    verdicts = traitlets.Dict(help="The expert's verdicts: issue_id → ``{verdict}``.")
    notes = traitlets.Dict(help="The expert's notes: issue_id → text.")
    is_locked = traitlets.Bool(default_value=False, help="True if the case can only be read.")


def log_traceback_and_create_id(error: Exception) -> str:
    """Log an error's traceback without its message under a new id; return the id."""
    error_id = secrets.token_hex(4)
    stack_frames = "".join(traceback.format_tb(error.__traceback__))  # frames only: a message may quote the document
    log.error("error %s: %s\n%s", error_id, type(error).__name__, stack_frames)
    return error_id


def find_running_cell_id() -> str:
    """Return the id of the notebook cell that is running; empty outside a notebook."""
    get_request: Callable[[], dict[str, Any]] = getattr(get_ipython(), "get_parent", dict)
    return str(get_request().get("metadata", {}).get("cellId", ""))


_WIDGETS_FOLDER = Path(__file__).parent


def _join_assets(suffix: str, *stems: str) -> str:
    return "".join((_WIDGETS_FOLDER / f"{stem}.{suffix}").read_text("utf-8") for stem in stems)
