"""The error screen: what happened, what to do, and an id to find it in the log."""

from __future__ import annotations

import traitlets

from widgets.assets import read_widget_script, read_widget_style
from widgets.screen_widget import ScreenWidget


class FaultPanel(ScreenWidget):
    """An error in place of the queue or the case."""

    _esm = read_widget_script("fault_panel")
    _css = read_widget_style("fault_panel")

    what = traitlets.Unicode(help="What happened, in one sentence.")
    reason = traitlets.Unicode(help="What went wrong and how to fix it, for the people who run the server.")
    error_id = traitlets.Unicode(help="The id under which the error is in the log.")
    has_queue = traitlets.Bool(default_value=True, help="Whether there is a queue to go back to.")
