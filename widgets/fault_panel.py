"""When a case or the queue cannot be shown: what is, what to do, and an id to find it in the log."""

from __future__ import annotations

import anywidget
import traitlets

from widgets.assets import read_widget_script, read_widget_style


class FaultPanel(anywidget.AnyWidget):
    """In place of queue or case; says whether to try again (custom messages ``retry``, ``queue``)."""

    _esm = read_widget_script("fault_panel")
    _css = read_widget_style("fault_panel")

    what = traitlets.Unicode().tag(sync=True)
    """What is, in one sentence."""
    reason = traitlets.Unicode().tag(sync=True)
    """What went wrong and what mends it, for whoever looks after the server."""
    error_id = traitlets.Unicode().tag(sync=True)
    """What to tell whoever looks after the server."""
    has_queue = traitlets.Bool(default_value=True).tag(sync=True)
    """Whether there is a queue to go back to."""
