"""Panel of the review queue: one page of cases, search, filters, order; errors."""

from dataclasses import asdict

import traitlets

from evalkit.review.permissions import READ_ONLY_SENTENCE
from evalkit.review.queue import QueuePage
from widgets.screen_widget import ScreenWidget


class QueuePanel(ScreenWidget, scripts=("queue_panel",), styles=("queue_panel",)):
    """Panel that lists the cases."""

    rows = traitlets.List(
        trait=traitlets.Dict(), help="The cases on this page of the list: ``QueueRow`` as dicts, in order."
    )
    counts = traitlets.Dict(
        help="Numbers of cases: ``pending``, ``in_review``, ``deferred``, ``lost``, ``done_today``, ``done_by_me``, "
        "``drawn``: audits and samples that wait for the reviewer."
    )
    facets = traitlets.Dict(help="The values to choose from for each filter, with the number of cases of each value.")
    view = traitlets.Dict(help="The ``QueueQuery`` to which the list belongs, as a dict.")
    matching = traitlets.Int(0, help="The number of cases that match search and filters, on all pages.")
    only_looks = traitlets.Unicode(
        help="A sentence why the reviewer can only read cases; empty if the reviewer can decide them."
    )
    reviewer = traitlets.Unicode(help="The reviewer's login name.")
    drawn_since = traitlets.Unicode(help="The time at which the oldest waiting audit or sample was drawn; or empty.")
    next_case_id = traitlets.Unicode(help="The case of this page that comes next; empty if it is on another page.")
    tasks = traitlets.List(
        trait=traitlets.Unicode(), help="The reviewer's tasks, to which the list is limited; empty for all."
    )
    replies = traitlets.List(
        trait=traitlets.Dict(), help="Colleagues' replies to the reviewer's questions: ``ColleagueReply`` as dicts."
    )
    recent = traitlets.List(
        trait=traitlets.Dict(), help="The cases that the reviewer finished last: ``RecentCase`` as dicts, newest first."
    )
    notice = traitlets.Unicode(help="A sentence about the last event, such as a saved review.")

    def show_queue_page(self, queue_page: QueuePage, notice: str = "") -> None:
        """Show a page of the queue, with a sentence about the last event."""
        page_fields = asdict(queue_page)
        self.set_traits(
            rows=list(page_fields["rows"]),
            counts={
                count_name: page_fields[count_name]
                for count_name in ("pending", "in_review", "deferred", "lost", "done_today", "done_by_me", "drawn")
            },
            facets=page_fields["facets"],
            view=page_fields["view"],
            matching=queue_page.matching,
            drawn_since=queue_page.drawn_since or "",
            next_case_id=queue_page.next_case_id,
            tasks=list(queue_page.tasks),
            replies=list(page_fields["replies"]),
            recent=[],
            only_looks=READ_ONLY_SENTENCE if queue_page.is_read_only else "",
            notice=notice,
        )


class FaultPanel(ScreenWidget, scripts=("fault_panel",), styles=("fault_panel",)):
    """Panel that replaces the queue or the case after an error."""

    what = traitlets.Unicode(help="The error in one sentence for a clinician.")
    reason = traitlets.Unicode(help="The error's own message and remedy, for the people who run the server.")
    error_id = traitlets.Unicode(help="The id by which the error is found in the log.")
    has_queue = traitlets.Bool(default_value=True, help="True if the expert can go back to the queue.")
