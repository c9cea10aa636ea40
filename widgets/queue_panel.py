"""The queue: what waits for an expert, worst first."""

from __future__ import annotations

import anywidget
import traitlets

from widgets.assets import css, esm


class QueuePanel(anywidget.AnyWidget):
    """Lists cases; says which is to be opened (custom messages ``open``, ``next``, ``refresh``)."""

    _esm = esm("queue_panel")
    _css = css("queue_panel")

    rows = traitlets.List(trait=traitlets.Dict()).tag(sync=True)
    """``QueueRow`` as dicts, in the order to show."""
    counts = traitlets.Dict().tag(sync=True)
    """``pending``, ``in_review``, ``done_today``, ``done_by_me``."""
    notice = traitlets.Unicode().tag(sync=True)
    """What happened, in one sentence."""
