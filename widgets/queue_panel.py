"""The queue: a page of the cases, searched, filtered and ordered."""

from __future__ import annotations

from dataclasses import asdict

import traitlets

from evalkit.review.permissions import READ_ONLY_SENTENCE
from evalkit.review.queue import QueuePage
from widgets.assets import read_widget_script, read_widget_style
from widgets.screen_widget import ScreenWidget


class QueuePanel(ScreenWidget):
    """The list of cases."""

    _esm = read_widget_script("queue_panel")
    _css = read_widget_style("queue_panel")

    rows = traitlets.List(trait=traitlets.Dict(), help="One page: ``QueueRow`` as dicts, in the order to show.")
    counts = traitlets.Dict(help="``pending``, ``in_review``, ``deferred``, ``done_today``, ``done_by_me``.")
    facets = traitlets.Dict(help="filter → the values to choose from, with the number of cases of each.")
    view = traitlets.Dict(help="The ``QueueQuery`` that is shown, as a dict.")
    matching = traitlets.Int(0, help="The number of cases on all pages.")
    only_looks = traitlets.Unicode(help="Why cases can only be read, in a sentence; empty if they can be decided.")
    notice = traitlets.Unicode(help="What happened, in one sentence.")

    def show_queue_page(self, queue_page: QueuePage, notice: str = "") -> None:
        """Show this part of the queue, and what happened."""
        page_fields = asdict(queue_page)
        with self.hold_sync():
            self.rows = list(page_fields["rows"])
            self.counts = {
                count_name: page_fields[count_name]
                for count_name in ("pending", "in_review", "deferred", "done_today", "done_by_me")
            }
            self.facets, self.view, self.matching = page_fields["facets"], page_fields["view"], queue_page.matching
            self.only_looks = READ_ONLY_SENTENCE if queue_page.is_read_only else ""
            self.notice = notice
