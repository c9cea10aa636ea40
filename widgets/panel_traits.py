"""What panels have in common: presses that are counted, and the case whose things to look at they list."""

import traitlets


class PressCounter(traitlets.HasTraits):
    """A widget that counts its presses, and hears which of them has been answered."""

    answered = traitlets.Int(0).tag(sync=True)
    """The number of the last press (``nth``) whose answer is on screen."""


class CaseTraits(PressCounter):
    """A panel that lists what is to be looked at in a case."""

    case = traitlets.Dict().tag(sync=True)
    """The case in the words of the screen, as the panel's own module renders it."""
    selected = traitlets.Unicode().tag(sync=True)
    """What is open: an issue's id, a field's key, or of a template ``row.1``, ``left.1``, ``outside.1``, ``sum.1``; empty for none."""
    seen = traitlets.List(trait=traitlets.Unicode()).tag(sync=True)
    """What was on screen with its place."""
    verdicts = traitlets.Dict().tag(sync=True)
    """issue_id → ``{verdict}``."""
    notes = traitlets.Dict().tag(sync=True)
    """issue_id → the expert's note."""
    is_locked = traitlets.Bool(default_value=False).tag(sync=True)
    """Whether the case can only be read."""
