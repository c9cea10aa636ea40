"""The base of all widgets; counted presses; the traits that panels share."""

from typing import Any

import anywidget
import traitlets


class ScreenWidget(anywidget.AnyWidget):
    """A widget whose own traits are synchronised; an unknown one is a TypeError."""

    def __init_subclass__(cls, **options: Any) -> None:
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

    @classmethod
    def _require_known_name(cls, name: str) -> None:
        if not name.startswith("_") and not hasattr(cls, name):
            raise TypeError(f"{cls.__name__} has no trait {name!r}")


class PressCounter(ScreenWidget):
    """A widget that counts its presses and learns which of them has been answered."""

    answered = traitlets.Int(0, help="The number of the last press (``nth``) whose answer is on screen.")


class CasePanelWidget(PressCounter):
    """A panel that lists what can be looked at in a case: issues, fields, rows."""

    case = traitlets.Dict(help="The case in the words of the screen, as the panel's own module renders it.")
    selected = traitlets.Unicode(
        help="The open target: an issue's id, a field's key, or of a template ``row.1``, ``left.1``, ``outside.1``, ``sum.1``; empty for none."
    )
    seen = traitlets.List(trait=traitlets.Unicode(), help="The targets that were on screen with their place.")
    verdicts = traitlets.Dict(help="issue_id → ``{verdict}``.")
    notes = traitlets.Dict(help="issue_id → the expert's note.")
    is_locked = traitlets.Bool(default_value=False, help="Whether the case can only be read.")
