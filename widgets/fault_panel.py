"""Error screen: what happened, what to do, and an id to find it in the log."""

from __future__ import annotations

import traitlets

from widgets.screen_widget import ScreenWidget, read_widget_script, read_widget_style


class FaultPanel(ScreenWidget):
    """Panel that replaces the queue or the case after an error."""

    _esm = read_widget_script("fault_panel")
    _css = read_widget_style("fault_panel")

    what = traitlets.Unicode(help="The error in one sentence for a clinician.")
    reason = traitlets.Unicode(help="The error's own message and remedy, for the people who run the server.")
    error_id = traitlets.Unicode(help="The id by which the error is found in the log.")
    has_queue = traitlets.Bool(default_value=True, help="True if the expert can go back to the queue.")
