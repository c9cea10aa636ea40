"""The expert's screen: the queue, then the packet as a ribbon, the page, and the case.

Everything that is decided here is decided by ``evalkit.review``; this module turns presses into its calls and its
answers into what is shown.
"""

from __future__ import annotations

import atexit
import functools
import logging
import os
import secrets
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import anywidget
import ipywidgets
import traitlets

from evalkit.classification.schema import ClassificationOutput, DocumentType, normalise_shares
from evalkit.documents.mupdf import load_pymupdf
from evalkit.documents.patient_banner import PageRange, list_page_ranges_by_person
from evalkit.documents.render import PdfPageRenderer
from evalkit.documents.search import find_text_in_document
from evalkit.documents.source_file import hash_source_file
from evalkit.errors import CaseTaken, DocumentError, EvalkitError, NotFound, StoreError, UsageError
from evalkit.grounding.vocabulary import load_english_word_text_by_prefix
from evalkit.review.draft import Draft
from evalkit.review.field_answers import (
    check_field_text,
    get_template_field_or_plain_text,
    split_field_key_to_index_and_name,
)
from evalkit.review.ground_truth import ReviewOutcome
from evalkit.review.kinds.extraction import FieldReviewCase
from evalkit.review.kinds.statement_template import TemplateReviewCase
from evalkit.review.packet import get_base_case_id
from evalkit.review.permissions import ReviewerRole
from evalkit.review.queue import QueueQuery
from evalkit.review.session import ReviewCase, ReviewSession, SubmissionReceipt
from evalkit.statements.statement_template import StatementTemplate
from evalkit.store import OutputFolder, open_output_folder
from widgets.assets import read_widget_script, read_widget_style
from widgets.case_panel import CasePanel, build_page_marks, choose_highlight_style, render_case, render_issue_context
from widgets.fault_panel import FaultPanel
from widgets.field_panel import (
    FieldPanel,
    build_form_ribbon,
    describe_field_target_place,
    render_field_case,
    render_field_values,
)
from widgets.page_pane import PageImageSize, PagePane, list_evidence_pages
from widgets.panel_traits import PressCounter
from widgets.queue_panel import QueuePanel
from widgets.segment_editor import SegmentEditor
from widgets.template_panel import (
    TemplatePanel,
    build_template_trait,
    describe_row_counts,
    render_sum_checks,
    render_template_case,
    render_template_frames,
    render_transactions,
    render_unread_lines,
)
from widgets.template_panel import build_region_ribbon as template_ribbon
from widgets.template_panel import describe_template_target_place as template_where

log = logging.getLogger("evalkit.widgets")

Message = dict[str, Any]
Handler = Callable[["Workbench", Message], None]
_SegmentKey = tuple[int, int, DocumentType | None]
"""First and last page of a segment, and its type."""

_MAX_IMAGES_PER_MESSAGE = 40
"""So many are drawn before the next press is heard; the page asks in portions of this size."""


class TopBar(anywidget.AnyWidget):
    """The bar on top, and the pulse between page and kernel."""

    _esm = read_widget_script("workbench")
    _css = read_widget_style("workbench", include_theme=True)

    reviewer = traitlets.Unicode().tag(sync=True)
    role = traitlets.Unicode().tag(sync=True)
    """Theirs; empty for an expert, which most are."""
    title = traitlets.Unicode().tag(sync=True)
    subtitle = traitlets.Unicode().tag(sync=True)
    case_id = traitlets.Unicode().tag(sync=True)
    """The open case, which a reload comes back to; empty in the queue."""
    is_ready = traitlets.Bool(default_value=False).tag(sync=True)
    done = traitlets.Int(0).tag(sync=True)
    total = traitlets.Int(0).tag(sync=True)
    median = traitlets.Unicode().tag(sync=True)
    """Minutes and seconds that this reviewer's cases take, ``1:12``; empty: nobody knows yet."""
    notice = traitlets.Unicode().tag(sync=True)
    """The answer of the last submission."""
    can_log_out = traitlets.Bool(default_value=False).tag(sync=True)


def show_errors_as_notices(handler: Handler) -> Handler:
    """Whatever goes wrong behind a press is said in plain words; the trace goes to the log without any value."""

    @functools.wraps(handler)
    def handle_safely(self: Workbench, message: Message) -> None:
        try:
            handler(self, message)
        except CaseTaken as error:
            self.show_notice(f"This case is {error.message}. Your draft is kept.")
        except NotFound as error:
            self.show_notice(
                f"{_PLAIN_SENTENCE_BY_CODE.get(error.code, error)} (error {_log_traceback_and_create_id(error)})"
            )
        except StoreError as error:
            self.show_notice(f"{error} (error {_log_traceback_and_create_id(error)})")
        except EvalkitError as error:
            self.show_notice(str(error))
        except Exception as error:  # noqa: BLE001 - a press must never end in silence
            self.show_notice(
                f"Something went wrong (error {_log_traceback_and_create_id(error)}). What was shown as saved is saved; try again."
            )

    return handle_safely


def _log_traceback_and_create_id(error: Exception) -> str:
    """Write where it went wrong into the log, without any value; the id to find it by."""
    error_id = secrets.token_hex(4)
    stack_frames = "".join(traceback.format_tb(error.__traceback__))  # frames only: a message may quote the document
    log.error("error %s: %s\n%s", error_id, type(error).__name__, stack_frames)
    return error_id


class Workbench:
    """One expert in one browser tab."""

    def __init__(self, output_folder: OutputFolder, reviewer: str, *, is_behind_login: bool = False) -> None:
        """``is_behind_login``: behind the login of `evalkit review`, with the browser's whole window."""
        self._output_folder = output_folder
        self._reviewer = reviewer
        self._review_session: ReviewSession | None = None
        self._tab_id = ""
        self._case: ReviewCase | None = None
        self._draft: Draft | None = None
        self._is_page_unsaved = False
        self._page_images: PdfPageRenderer | None = None
        self._pages_unavailable_reason = ""
        self._opened_case_count = 0
        self._is_claim_lost = False
        """Whether the last beat found the claim in other hands."""
        self._active_seconds = 0.0
        self._undo_stack: list[Draft] = []
        """What the expert said before each change, newest last: for undoing."""
        self._last_moved_edge = ""
        """The edge that was moved last, whose further moves are the same change."""
        self._shown_template: StatementTemplate | None = None
        """The template whose rows are on screen."""
        self._person_ranges: list[tuple[PageRange, ...]] = []
        """The pages of each person whom the open case is about."""
        self._retry_message: Message = {}
        """What to try again after a fault."""
        self._queue_query = QueueQuery()
        self.bar = TopBar(reviewer=reviewer, can_log_out=is_behind_login)
        self.queue_panel = QueuePanel()
        self.page_pane = PagePane()
        self.case_panel = CasePanel()
        self.field_panel = FieldPanel()
        self.template_panel = TemplatePanel()
        self._unfinished_field_key = ""
        """The field whose value is being typed, or was refused: nothing is decided before that has ended."""
        self.segment_editor = SegmentEditor()
        self.fault_panel = FaultPanel()
        self.content_box = ipywidgets.Box(layout=ipywidgets.Layout(width="100%", overflow="hidden"))
        self.content_box.add_class("ek-stage").add_class("ek-desk")
        self.case_view = self._build_layout()
        panels = (self.case_panel, self.field_panel, self.template_panel)
        for widget in (self.bar, self.queue_panel, self.page_pane, *panels, self.segment_editor, self.fault_panel):
            widget.on_msg(self._on_message)
        self.view = ipywidgets.VBox(
            [self.bar, self.content_box], layout=ipywidgets.Layout(width="100%", overflow="hidden")
        )
        if is_behind_login:
            self.view.add_class("ek-whole-page")

    def _build_layout(self) -> ipywidgets.Widget:
        layout = ipywidgets.Layout
        self.page_pane.layout = layout(flex="1 1 0", min_width="0", height="100%")
        panels = layout(flex="1 1 0", min_height="0", width="100%")
        self.case_panel.layout = self.field_panel.layout = self.template_panel.layout = panels
        self.right_column = ipywidgets.VBox(
            [self.case_panel, self.segment_editor], layout=layout(width="456px", min_width="400px", height="100%")
        )
        self.right_column.add_class("ek-right")
        self.queue_panel.layout = self.fault_panel.layout = layout(width="100%", height="100%")
        return ipywidgets.HBox([self.page_pane, self.right_column], layout=layout(width="100%", height="100%"))

    def show_notice(self, sentence: str) -> None:
        """Show what happened, where the expert is looking."""
        if self._case is None:
            self.queue_panel.notice = sentence
        else:
            self.segment_editor.problem = sentence

    def _on_message(self, widget: anywidget.AnyWidget, message: Message, _: object) -> None:
        """Handle one message of a widget; one that counts its presses hears which of them has been answered."""
        self.dispatch_message(message)
        if isinstance(widget, PressCounter) and isinstance(message.get("nth"), int):
            widget.answered = message["nth"]

    @show_errors_as_notices
    def dispatch_message(self, message: Message) -> None:
        """Do what a message of the browser asks for: one press, or one beat of the pulse."""
        message = _strip_lone_surrogates(message)
        action = message.get("action")
        handler = _HANDLER_BY_ACTION.get(action) if isinstance(action, str) else None
        if handler is None:
            return
        if action not in _ACTIONS_WITHOUT_SESSION and self._review_session is None:
            return  # the page has not said yet which tab it is
        if "token" in message and (self._case is None or message["token"] != self.page_pane.version):
            return  # pressed or painted on a case that is not open any more
        if action in _UNDOABLE_ACTIONS and self._case is not None and self._case.is_locked:
            return  # its buttons are off
        if action in _PROBLEM_CLEARING_ACTIONS:
            self.segment_editor.problem = ""
        draft_before = self._draft if action in _UNDOABLE_ACTIONS else None
        try:
            handler(self, message)
        finally:  # what could not be saved is on screen all the same, and can be undone
            if (
                draft_before is not None
                and self._draft is not None
                and _dump_expert_answer(draft_before) != _dump_expert_answer(self._draft)
            ):
                edge = str(message.get("edge", ""))
                if not (edge and edge == self._last_moved_edge and message.get("goes_on")):
                    self._undo_stack.append(draft_before)
                self._last_moved_edge = edge
                self.segment_editor.undo = self._describe_undo()

    # ------------------------------------------------------------------------------------------ queue

    def connect_tab(self, message: Message) -> None:
        """A page has been loaded: it says which tab it is, and which case it had open."""
        tab_id, case_id, self._active_seconds = str(message["tab"]), message.get("case"), 0.0
        # The same page once more keeps what it has: between giving back and taking a colleague could get the case.
        if (
            self._review_session is None
            or tab_id != self._tab_id
            or (self._case and self._case.packet.case_id != case_id)
        ):
            self.close_session()
        self._tab_id = tab_id
        self._forget_case()  # of a page before, or of another view of this notebook
        try:
            self._review_session = self._review_session or ReviewSession(self._output_folder, self._reviewer, tab_id)
            self._show_role(self._review_session.role)
        except EvalkitError as error:
            self._show_fault(error, message)
            return
        self.content_box.children = []
        if isinstance(case_id, str) and case_id:
            self._open_and_show_case(case_id)
        is_fault_shown = self.content_box.children == (self.fault_panel,)
        if not is_fault_shown and (self._case is None or self._case.is_completed):
            self._show_queue(self.queue_panel.notice)
        self.bar.is_ready = True
        threading.Thread(target=_preload_libraries, daemon=True).start()

    def keep_claim_alive(self, message: Message) -> None:
        """Answer the pulse, keep the claim, count the seconds."""
        self.bar.send({"kind": "pong", "tab": self._tab_id})
        active_seconds = float(message.get("active", 0.0))
        if message.get("tab") != self._tab_id:
            return  # of a view that another has covered: nobody works there
        elapsed_seconds, self._active_seconds = max(active_seconds - self._active_seconds, 0.0), active_seconds
        if self._case is None or self._draft is None or self._case.is_locked:
            return
        try:
            self.review_session.renew_claim(self._case.packet.case_id)
        except CaseTaken:
            self._is_claim_lost = True
            raise
        if self._is_claim_lost:
            self._is_claim_lost, self.segment_editor.problem = False, ""
        self._draft = self._draft.model_copy(update={"seconds_active": self._draft.seconds_active + elapsed_seconds})

    def return_to_queue(self, _: Message) -> None:
        """Leave the case; its draft stays, the claim is given back."""
        self._require_finished_edit()
        if self._case is not None and not self._case.is_locked:
            self.review_session.release_case(self._case.packet.case_id)
        self._show_queue()

    def release_case_on_unload(self, message: Message) -> None:
        """The tab is being closed or reloaded: nobody has to wait for its claim to expire."""
        is_own_tab = message.get("tab") == self._tab_id  # in JupyterLab another tab may have taken over this notebook
        if is_own_tab and self._case is not None and not self._case.is_locked:
            self.review_session.release_case(self._case.packet.case_id)

    def close_session(self) -> None:
        """Nobody is at this desk any more, and nobody has to wait for its claims to expire."""
        review_session, self._review_session = self._review_session, None
        if review_session is not None:
            try:
                review_session.close()
            except Exception as error:  # noqa: BLE001 - they expire, and a message may quote the document
                _log_traceback_and_create_id(error)

    def _show_queue(self, notice: str = "") -> None:
        self._forget_case()
        queue_page = self.review_session.load_queue_page(self._queue_query)
        self._queue_query = queue_page.view
        self.queue_panel.show_queue_page(queue_page, notice)
        with self.bar.hold_sync():
            self.bar.title = self.bar.subtitle = self.bar.case_id = ""
            self._show_role(queue_page.role)
            self._show_progress()
        self.content_box.children = [self.queue_panel]

    def _show_fault(self, error: EvalkitError, retry_message: Message) -> None:
        """In place of what cannot be shown: what is and what to do; ``retry_message`` is tried again."""
        self._retry_message = retry_message
        with self.fault_panel.hold_sync():
            self.fault_panel.what = _PLAIN_SENTENCE_BY_CODE.get(error.code, "This cannot be shown.")
            self.fault_panel.reason, self.fault_panel.error_id = str(error), _log_traceback_and_create_id(error)
            self.fault_panel.has_queue = self._review_session is not None
        with self.bar.hold_sync():
            self.bar.title = self.bar.subtitle = self.bar.case_id = ""
        self.content_box.children = [self.fault_panel]

    def retry_failed_action(self, _: Message) -> None:
        """Once more what could not be shown."""
        retry_message, self._retry_message = self._retry_message, {}
        if retry_message:
            self.dispatch_message(retry_message)

    def _show_role(self, role: ReviewerRole) -> None:
        self.bar.role = "" if role == "expert" else role

    def _show_progress(self) -> None:
        progress = self.review_session.measure_progress()
        self.bar.done, self.bar.total = progress.done_by_me, progress.open_count
        median_seconds = progress.median_seconds
        self.bar.median = "" if median_seconds is None else f"{int(median_seconds) // 60}:{int(median_seconds) % 60:02}"

    def change_queue_query(self, message: Message) -> None:
        """Another part of the queue: searched, filtered, ordered, the next page."""
        if self._case is None:
            self._queue_query = QueueQuery.from_message(message.get("view"))
            self._show_queue()

    def _forget_case(self) -> None:
        self._case = self._draft = None
        self._undo_stack = []
        self._last_moved_edge = ""
        self._shown_template = None
        self._unfinished_field_key = ""
        self._is_claim_lost = False
        if self._page_images is not None:
            self._page_images.close()
            self._page_images = None

    def open_next_case(self, _: Message) -> None:
        """Open what should be looked at next."""
        if self._case is not None:
            return  # the second press of a double click
        case_id = self.review_session.choose_next_case_id()
        if case_id is None:
            self._show_queue("Nothing waits for you.")
        else:
            self._open_and_show_case(case_id)

    def open_case(self, message: Message) -> None:
        """Open a case, or take it over on purpose."""
        if self._case is None:  # else it is the second press of a double click
            self._open_and_show_case(str(message["case_id"]), take_over=bool(message.get("take_over")))

    # ------------------------------------------------------------------------------------------ a case

    def _open_and_show_case(self, case_id: str, *, take_over: bool = False) -> None:
        try:
            case = self.review_session.open_and_claim_case(case_id, take_over=take_over)
        except NotFound as error:
            self._show_queue(_PLAIN_SENTENCE_BY_CODE.get(error.code, str(error)))
            return
        except StoreError as error:
            self._forget_case()
            self._show_fault(error, {"action": "open", "case_id": case_id})
            return
        except EvalkitError as error:
            notice = f"{case_id} is {error.message}." if isinstance(error, CaseTaken) else str(error)
            self._show_queue(notice)
            return
        self._forget_case()
        self._case, self._draft = case, case.draft
        packet = case.packet
        self._page_images, self._pages_unavailable_reason = _open_page_images(packet.pdf_path, case.bundle.sha256)
        self._opened_case_count += 1
        token = f"{case_id}:{self._opened_case_count}"
        with self.bar.hold_sync():
            self.bar.case_id, self.bar.title = case_id, packet.pdf_filename
            page_count_words = "1 page" if packet.total_pages == 1 else f"{packet.total_pages} pages"
            self.bar.subtitle = f"{page_count_words} · {packet.review_reason}"
            self._show_progress()
        with self.segment_editor.hold_sync():  # what was pressed for the last case must find no button of this one
            self.segment_editor.token, self.segment_editor.segments, self.segment_editor.problem = "", [], ""
        evidence_page_numbers = () if case.is_blind else list_evidence_pages(packet)
        self.page_pane.show_document(
            token,
            case.bundle,
            self._build_ribbon_segments(),
            evidence_pages=evidence_page_numbers,
            seen_pages=case.draft.pages_seen,
        )
        self._person_ranges = list_page_ranges_by_person(case.bundle)
        if isinstance(case, TemplateReviewCase):
            self.page_pane.strips = []  # whose page it is does not matter to how it is read
        self.page_pane.note = self._pages_unavailable_reason
        self._show_case_in_panel(case, token)
        if self.right_column.children[0] is not self._active_panel:
            self.right_column.children = (self._active_panel, self.segment_editor)
        self.segment_editor.saved = f"Draft of {case.draft_saved_at[11:19]} restored" if case.draft_saved_at else ""
        self.content_box.children = [self.case_view]
        first_target_id = self._choose_initial_target_id(case)
        if case.draft_saved_at:
            self._show_page_with_target(case.draft.page, first_target_id)
        elif first_target_id:
            self._show_target(first_target_id)
        else:
            self._show_page_with_target(1, None)
        self._refresh_widgets()

    def _show_case_in_panel(self, case: ReviewCase, token: str) -> None:
        """What lists the things to look at begins with this case, and with nothing that was said in the last one."""
        with self._active_panel.hold_sync():
            if isinstance(case, FieldReviewCase):
                self.field_panel.case = render_field_case(case) | {"token": token}
                self.field_panel.selected, self.field_panel.checked = "", {}
            elif isinstance(case, TemplateReviewCase):
                self.template_panel.case = render_template_case(case) | {"token": token}
                self.template_panel.selected = ""
            else:
                self.case_panel.case = render_case(case) | {"token": token}
                self.case_panel.selected, self.case_panel.context = "", {}
            self._update_active_panel(case)

    def _choose_initial_target_id(self, case: ReviewCase) -> str | None:
        """What is open first: what was open last, else the worst."""
        if case.is_blind:
            return None
        if isinstance(case, FieldReviewCase):
            return case.draft.issue_id or case.choose_first_target_id()
        if isinstance(case, TemplateReviewCase):
            last_target_id = case.draft.issue_id
            return (
                last_target_id
                if last_target_id and case.has_target(last_target_id, case.draft)
                else case.choose_first_target_id()
            )
        return case.draft.issue_id or next((issue.issue_id for issue in case.packet.open_issues), None)

    def show_selected_target(self, message: Message) -> None:
        """Open an issue: its place is lit."""
        if not self.case.is_blind:
            self._show_target(str(message["issue_id"]))

    @property
    def _active_panel(self) -> CasePanel | FieldPanel | TemplatePanel:
        """What lists the things to look at in the open case."""
        if isinstance(self.case, TemplateReviewCase):
            return self.template_panel
        return self.field_panel if isinstance(self.case, FieldReviewCase) else self.case_panel

    def _show_target(self, target_id: str) -> None:
        if isinstance(self.case, FieldReviewCase):
            page = self.case.locate_target(target_id).page
        elif isinstance(self.case, TemplateReviewCase):
            page = self.case.locate_target(target_id, self.draft).page
        else:
            context = self.case.get_issue_context(target_id)
            page = context.page_found or context.issue.page or (context.segment.start_page if context.segment else 1)
            page = min(max(page, 1), self.case.packet.total_pages)
        self._show_page_with_target(page, target_id)
        self.save_and_show_draft(self.draft)

    def change_page(self, message: Message) -> None:
        """Another page; the selected issue stays selected.

        It is kept on disk when it was painted: who leafs on must not wait for the disk.
        """
        page = int(message["page"])
        if 1 <= page <= self.case.packet.total_pages:
            self._show_page_with_target(
                page, self._active_panel.selected or None, is_cached=bool(message.get("cached"))
            )

    def _show_page_with_target(self, page: int, target_id: str | None, *, is_cached: bool = False) -> None:
        marks: list[dict[str, Any]] = []
        if target_id and isinstance(self.case, FieldReviewCase):
            place = self.case.locate_target(target_id)
            marks = build_page_marks(place.boxes, place.style)
            self.field_panel.selected = target_id
        elif target_id and isinstance(self.case, TemplateReviewCase):
            place = self.case.locate_target(target_id, self.draft)
            marks = build_page_marks(place.boxes, place.style)
            self.template_panel.selected = target_id
        elif target_id:
            context = self.case.get_issue_context(target_id)
            marks = build_page_marks(context.boxes, choose_highlight_style(context.verdict))
            if self.case_panel.selected != target_id:
                with self.case_panel.hold_sync():
                    self.case_panel.selected, self.case_panel.context = target_id, render_issue_context(context)
        self._show_page(page, marks, target_id or "", is_cached=is_cached)

    def _show_page(self, page: int, marks: list[dict[str, Any]], issue_id: str, *, is_cached: bool) -> None:
        if self._page_images is not None:
            self.page_pane.show_page(
                page, self._page_images.render_full_size, marks, issue_id, is_cached_in_browser=is_cached
            )
        self.segment_editor.page = page
        self._draft = self.draft.model_copy(update={"page": page, "issue_id": self._active_panel.selected or None})
        self._is_page_unsaved = True
        if isinstance(self.case, TemplateReviewCase):
            self._show_applied_template(self.case)

    def show_quote_location(self, message: Message) -> None:
        """A quote of the agent's claims: lit where it really stands."""
        page, snippet = int(message["page"]), str(message["snippet"])
        quote_location = self.case.quote_locator.locate(snippet, page)
        shown_page = quote_location.page_number or page
        if 1 <= shown_page <= self.case.packet.total_pages:
            self._show_page(
                shown_page,
                build_page_marks(quote_location.boxes, choose_highlight_style(quote_location.verdict)),
                "",
                is_cached=False,
            )
            self.save_and_show_draft(self.draft)
        if quote_location.page_number is None:
            self.show_notice("This quote does not stand anywhere in the document.")

    def send_requested_images(self, image_size: PageImageSize, message: Message) -> None:
        """Send pictures that no press waits for: of the ribbon, the contact sheet, or the pages beside the one on screen."""
        if (images := self._page_images) is not None:
            renderers = {
                "thumbnail": images.render_thumbnail,
                "preview": images.render_preview,
                "page": images.render_full_size,
            }
            self.page_pane.render_and_send_images(image_size, _parse_page_numbers(message), renderers[image_size])

    def show_text_search_hits(self, message: Message) -> None:
        """Where a text stands in the document."""
        text = str(message["text"])
        self.page_pane.show_search_hits(text, find_text_in_document(self.case.bundle, text))

    # ------------------------------------------------------------------------------------------ the draft

    def record_painted_page(self, message: Message) -> None:
        """A page was really on screen: it counts as seen, and so does the issue whose place was lit."""
        draft = self.draft.show_page_and_mark_seen(int(message["page"]))
        if isinstance(self.case, FieldReviewCase | TemplateReviewCase):
            if target_id := message.get("issue"):
                draft = self.case.mark_target_and_page_seen(draft, str(target_id), int(message["page"]))
        elif issue_id := message.get("issue"):
            context = self.case.get_issue_context(str(issue_id))
            issue_page = context.page_found or context.issue.page
            if (
                issue_page is None
                or issue_page == message["page"]
                or not 1 <= issue_page <= self.case.packet.total_pages
            ):
                draft = draft.show_issue_and_mark_seen(str(issue_id))
        if draft != self.draft or self._is_page_unsaved:
            self.save_and_show_draft(draft)

    def find_segment_index(self, message: Message) -> int:
        """The position of the segment that the page of the press is in, as the segments are now."""
        page = int(message["page"])
        return next(
            segment_index
            for segment_index, segment in enumerate(self.draft.segments)
            if segment.start_page <= page <= segment.end_page
        )

    def separate_patient_pages(self, message: Message) -> Draft:
        """The draft with another patient's pages as documents of their own: those around a page, or all of them."""
        page = int(message["page"])
        ranges = next(
            (ranges for ranges in self._person_ranges if any(first <= page <= last for first, last in ranges)), ()
        )
        draft = self.draft
        for first, last in ranges:
            if message.get("rest") or first <= page <= last:
                draft = draft.split_off_flagged_pages(first, last, "other_patient")
        return draft

    def _find_further_patient_pages(self) -> dict[str, Any]:
        """Further pages of a patient of whom some pages were separated."""
        flagged_starts = {flag.start_page for flag in self.draft.flags if flag.flag == "other_patient"}
        separated_pages = {
            page
            for segment in self.draft.segments
            if segment.start_page in flagged_starts
            for page in range(segment.start_page, segment.end_page + 1)
        }
        for ranges in self._person_ranges:
            pages = [page for first, last in ranges for page in range(first, last + 1)]
            separated = [page for page in pages if page in separated_pages]
            if separated and len(separated) < len(pages):
                return {"page": separated[0], "pages": [page for page in pages if page not in separated_pages]}
        return {}

    def require_known_issue_id(self, issue_id: object) -> str:
        """The id of one of the case's issues. UsageError for any other: nothing on screen could take it back."""
        if all(issue.issue_id != issue_id for issue in self.case.packet.issues):
            raise UsageError("this case has no such issue", code="ISSUE-UNKNOWN", remedy="Reload the page.")
        return str(issue_id)

    # ------------------------------------------------------------------------------------------ fields

    @property
    def field_case(self) -> FieldReviewCase:
        """The open case. UsageError where it is not about fields."""
        if not isinstance(self.case, FieldReviewCase):
            raise UsageError("this case is not about fields", code="FIELD-UNKNOWN", remedy="Reload the page.")
        return self.case

    def mark_field_edit_begun_or_ended(self, message: Message) -> None:
        """A value begins to be typed, or is given up."""
        self.field_case.get_agent_value(str(message["field"]))
        self._unfinished_field_key = str(message["field"]) if message.get("is_open") else ""
        self.field_panel.checked = {}

    def show_typed_value_check(self, message: Message) -> None:
        """Whether what is typed so far is written as the field's values are."""
        field_key, text = str(message["field"]), str(message["text"])
        case = self.field_case
        case.get_agent_value(field_key)
        form_index, field_name = split_field_key_to_index_and_name(field_key)
        text_check = check_field_text(
            get_template_field_or_plain_text(case.agent_extracted_fields[form_index], field_name), text
        )
        self.field_panel.checked = {
            "field": field_key,
            "text": text,
            "value": text_check.value,
            "problem": text_check.problem,
        }

    def set_field_value(self, message: Message) -> None:
        """The value that was typed; one that is not in the field's format stays in its line."""
        field_key, text = str(message["field"]), str(message["text"])
        self.show_typed_value_check(message)
        if self.field_panel.checked["problem"]:
            self._unfinished_field_key = field_key
            return
        self._unfinished_field_key = ""
        self.save_and_show_draft(self.field_case.set_field_answer(self.draft, field_key, text))
        self.field_panel.checked = {"field": field_key, "text": text, "is_kept": True}

    def set_field_status(self, message: Message) -> None:
        """The field is there as the agent read it, is not there, or cannot be told."""
        field_key, status = str(message["field"]), str(message["status"])
        case = self.field_case
        agent_value, current_value = case.get_agent_value(field_key), case.get_current_value(self.draft, field_key)
        new_value = None if status == "not_present" else current_value.value or agent_value.value
        self.save_and_show_draft(case.set_field_answer(self.draft, field_key, {"status": status, "value": new_value}))

    def _require_finished_edit(self) -> None:
        """UsageError while a value is being typed: nobody may take for submitted or kept what is not."""
        if self._unfinished_field_key and isinstance(self._case, FieldReviewCase):
            raise UsageError(
                "a value that you have typed is not kept yet",
                code="FIELD-UNFINISHED",
                remedy="Press Enter in its line, or Esc to leave the field as it was.",
            )

    # ------------------------------------------------------------------------------------------ a statement template

    @property
    def template_case(self) -> TemplateReviewCase:
        """The open case. UsageError where it is not about a template."""
        if not isinstance(self.case, TemplateReviewCase):
            raise UsageError("this case is not about a template", code="TEMPLATE-UNKNOWN", remedy="Reload the page.")
        return self.case

    def save_unmet_sums_reason(self, message: Message) -> None:
        """Why the template may be approved although sums are not met."""
        if not self.template_case.describe_unmet_sums(self.draft):
            self.show_notice("All sums are met: there is nothing to explain.")
            return
        self.save_and_show_draft(self.draft.set_unmet_sums_reason(str(message["reason"])))

    def _show_applied_template(self, case: TemplateReviewCase) -> None:
        """What the template reads, on the page of the draft."""
        draft, page = self.draft, self.draft.page
        applied_template = case.apply_template(draft)
        if self._shown_template not in (None, applied_template.template) and not case.is_issue_id(
            self.template_panel.selected
        ):
            self.template_panel.selected = self.page_pane.issue_id = ""  # the rows are others now
            self.page_pane.marks = []
        self._shown_template = applied_template.template
        self.page_pane.frames = render_template_frames(case, draft, page, is_locked=self._is_locked)
        panel = self.template_panel
        with panel.hold_sync():
            panel.page, panel.has_box = page, bool(self.page_pane.frames)
            panel.place = template_where(case, panel.selected, draft) if panel.selected else ""
            panel.sums = render_sum_checks(applied_template) | {"reason": draft.unmet_sums}
            panel.rows, panel.left = render_transactions(applied_template, page), render_unread_lines(applied_template)
            panel.counted = describe_row_counts(applied_template, page)
            panel.template = build_template_trait(case, draft)
            panel.wanted = list(case.find_unseen_requirements(draft).issue_ids)

    @property
    def _is_locked(self) -> bool:
        """Whether the open case can only be read."""
        return self.case.is_locked or bool(self._pages_unavailable_reason)

    def adopt_opinion(self, message: Message) -> None:
        """One of two answers, as the expert's own."""
        name = message["opinion"]
        adopted_draft = next(
            opinion.draft
            for opinion in self.case.opinions
            if opinion.label == name and opinion.outcome != "undeterminable"
        )
        adopted_fields = {name: getattr(adopted_draft, name) for name in _ADOPTED_FIELDS}
        self.save_and_show_draft(
            self.draft.model_copy(update={**adopted_fields, "is_redrawn": True, "is_type_chosen": True})
        )

    def toggle_repairable_issues_confirmed(self, _: Message) -> None:
        """What validating will repair is right: the issues that it mends are confirmed; pressed again, they are not."""
        verdict: Literal["confirmed"] | None = None if self._is_repair_confirmed() else "confirmed"
        draft = self.draft
        for issue_id in self._list_repairable_issue_ids():
            draft = draft.set_issue_verdict(issue_id, verdict)
        self.save_and_show_draft(draft)

    def _list_repairable_issue_ids(self) -> list[str]:
        packet = self.case.packet
        return [issue.issue_id for issue in packet.open_issues if issue.auto_fixable] if packet.proposed_repairs else []

    def _is_repair_confirmed(self) -> bool:
        confirmed_ids = {
            issue_verdict.issue_id
            for issue_verdict in self.draft.issue_verdicts
            if issue_verdict.verdict == "confirmed"
        }
        return bool(self._list_repairable_issue_ids()) and confirmed_ids.issuperset(self._list_repairable_issue_ids())

    def undo_last_change_or_submission(self, _: Message) -> None:
        """The last change; in a case that nobody has touched, the submission before it."""
        self._require_finished_edit()
        if self._undo_stack:
            previous_draft, self._last_moved_edge = self._undo_stack.pop(), ""
            viewing_fields = {field_name: getattr(self.draft, field_name) for field_name in _VIEWING_FIELDS}
            self.save_and_show_draft(previous_draft.model_copy(update=viewing_fields))
        elif self._has_expert_answer():
            self.show_notice("There is nothing to undo.")
        else:
            case_id = self.review_session.undo_last_submission_and_get_case_id()
            if self._case is not None and not self._case.is_locked:
                self.review_session.release_case(self._case.packet.case_id)
            self.bar.notice = f"Reopened: {case_id}"
            self._open_and_show_case(case_id)

    def set_mixture(self, message: Message) -> None:
        """The shares of the whole document; what they do not add up to 100 is put right in proportion."""
        percent_by_type = {
            DocumentType(document_type): max(float(percent), 0.0)
            for document_type, percent in message["percent"].items()
        }
        if sum(percent_by_type.values()) <= 0:
            self.show_notice("The shares cannot all be 0.")
            return
        shares = normalise_shares(percent_by_type.values())
        self.save_and_show_draft(self.draft.set_mixture(dict(zip(percent_by_type, shares, strict=True))))

    def save_and_show_draft(self, draft: Draft) -> None:
        """Keep the draft on disk, then show it: "saved" is the answer of the write."""
        self._draft, self._is_page_unsaved = draft, False
        try:
            if not self.case.is_locked:
                self.segment_editor.saved = "Not saved"
                saved_at = self.review_session.save_draft_and_get_time(self.case.packet.case_id, draft)
                self.segment_editor.saved = f"Draft saved {saved_at[11:19]}"
        finally:
            self._refresh_widgets()

    def _refresh_widgets(self) -> None:
        case, draft = self.case, self.draft
        if isinstance(case, TemplateReviewCase):
            submission_block = case.explain_approval_block(draft)
        else:
            submission_block = (
                case.explain_submission_block(draft) if case.is_blind else case.explain_validation_block(draft)
            )
        segments = self._build_ribbon_segments()
        if self.page_pane.segments != segments:
            self.page_pane.segments = segments
        self.page_pane.can_separate = case.packet.kind == "classification" and not self._is_locked
        self.page_pane.offer = self._find_further_patient_pages() if self.page_pane.can_separate else {}
        with self.segment_editor.hold_sync():
            self.segment_editor.token = self.page_pane.version
            self.segment_editor.kind = case.packet.kind
            is_template = isinstance(case, TemplateReviewCase)
            self.segment_editor.unmet = case.describe_unmet_sums(draft) if isinstance(case, TemplateReviewCase) else ""
            self.segment_editor.unmet_sums = draft.unmet_sums
            self.segment_editor.segments = segments
            self.segment_editor.dominant = draft.dominant_type.value if draft.dominant_type else None
            self.segment_editor.mixture = [
                {"type": document_type, "percent": round(100 * share, 2)}
                for document_type, share in case.compute_mixture_after_review(draft)
            ]
            self.segment_editor.notes = draft.notes
            self.segment_editor.is_changed = case.has_expert_changes(draft)
            self.segment_editor.is_blind = case.is_blind
            self.segment_editor.is_locked = self._is_locked
            self.segment_editor.can_correct = (
                submission_block is None and (case.is_blind or case.has_expert_changes(draft))
                if case.is_blind or is_template
                else case.has_expert_changes(draft)
                or bool(case.explain_permanent_validation_block() and draft.notes.strip())
            )
            self.segment_editor.why_not = self._pages_unavailable_reason or submission_block or ""
            self.segment_editor.issue_id, self.segment_editor.issue_notes = (
                self._get_open_issue_id(),
                draft.issue_notes,
            )
            self.segment_editor.changes = [] if case.is_blind else list(case.describe_changes(draft))
            self.segment_editor.can_ask = (
                not case.is_locked and get_base_case_id(case.packet.case_id) == case.packet.case_id
            )
            self.segment_editor.undo = self._describe_undo()
        self._update_active_panel(case)

    def _update_active_panel(self, case: ReviewCase) -> None:
        """What the expert has said and seen so far, beside what it is about."""
        draft, panel = self.draft, self._active_panel
        with panel.hold_sync():
            panel.seen = [*draft.fields_seen, *draft.evidence_seen]
            panel.verdicts = {
                issue_verdict.issue_id: {"verdict": issue_verdict.verdict} for issue_verdict in draft.issue_verdicts
            }
            panel.notes, panel.is_locked = draft.issue_notes, self._is_locked
            if isinstance(case, TemplateReviewCase):
                self._show_applied_template(case)
            elif isinstance(case, FieldReviewCase):
                selected = self.field_panel.selected
                self.field_panel.place = describe_field_target_place(case, selected, draft) if selected else ""
                self.field_panel.values = render_field_values(case, draft)
                self.field_panel.wanted = case.list_unseen_target_ids(draft)
            else:
                self.case_panel.is_repair_applied = self._is_repair_confirmed()

    def _get_open_issue_id(self) -> str:
        """The issue that a note would be about; empty for none."""
        if isinstance(self.case, TemplateReviewCase):
            return self.template_panel.selected if self.case.is_issue_id(self.template_panel.selected) else ""
        if not isinstance(self.case, FieldReviewCase):
            return self.case_panel.selected
        issues = self.case.get_target(self.field_panel.selected).issues if self.field_panel.selected else ()
        return issues[0].issue_id if issues else ""

    def _describe_undo(self) -> str:
        if self._undo_stack:
            return "Undo the last change"
        return (
            "Reopen the case that you submitted last"
            if self.review_session.can_undo and not self._has_expert_answer()
            else ""
        )

    def _has_expert_answer(self) -> bool:
        """Whether the expert has said anything in this case, now or in a draft before."""
        case, draft = self.case, self.draft
        initial_draft = Draft.create_blank(draft.total_pages) if case.is_blind else Draft.from_packet(case.packet)
        return bool(draft.notes) or _dump_expert_answer(draft) != _dump_expert_answer(initial_draft)

    def _build_ribbon_segments(self) -> list[dict[str, Any]]:
        if isinstance(self.case, FieldReviewCase):
            return build_form_ribbon(self.case)
        if isinstance(self.case, TemplateReviewCase):
            return template_ribbon(self.case, self.draft)
        agent_confidence = {} if self.case.is_blind else _index_agent_confidence(self.case.packet.classification)
        return [
            {
                "start": segment.start_page,
                "end": segment.end_page,
                "type": segment.dominant_type,
                "flags": [flag.flag for flag in self.draft.flags if flag.start_page == segment.start_page],
                "note": self.draft.segment_notes.get(segment.start_page, ""),
                **agent_confidence.get((segment.start_page, segment.end_page, segment.dominant_type), {}),
            }
            for segment in self.draft.segments
        ]

    # ------------------------------------------------------------------------------------------ the decision

    def defer_case_and_open_next(self, message: Message) -> None:
        """Not now, for a reason: the case waits behind all others."""
        self._require_finished_edit()
        file_name = self.case.packet.pdf_filename
        self.review_session.defer_case_and_get_time(self.case.packet.case_id, self.draft, str(message["reason"]))
        self.bar.notice = f"Deferred: {file_name}"
        self._open_next_or_show_feedback()

    def request_second_opinion(self, message: Message) -> None:
        """The expert's answer, and a second expert's beside it."""
        self._require_finished_edit()
        receipt = self.review_session.submit_and_request_second_opinion(
            self.case.packet.case_id, self.draft, str(message["reason"])
        )
        self.bar.notice = self._format_saved_notice(receipt) + (
            "" if receipt.feedback else " · a second expert is asked"
        )
        self._open_next_or_show_feedback(receipt.feedback)

    def submit_review(self, *, validate: bool = False, undeterminable_reason: str | None = None) -> None:
        """Submit what the expert says, or that the agent is right, or that nobody can tell, and why."""
        self._require_finished_edit()
        case_id = self.case.packet.case_id
        receipt = self.review_session.submit_review(
            case_id, self.draft, validate=validate, undeterminable_reason=undeterminable_reason
        )
        self.bar.notice = self._format_saved_notice(receipt)
        self._open_next_or_show_feedback(receipt.feedback)

    def _format_saved_notice(self, receipt: SubmissionReceipt) -> str:
        """What is said of a decision: when it was saved, and what the machines had said, which nobody had seen yet."""
        outcome = (
            _TEMPLATE_OUTCOME_WORDS[receipt.review.outcome]
            if isinstance(self.case, TemplateReviewCase)
            else receipt.review.outcome
        )
        parts = [f"Saved {receipt.review.submitted_at[11:19]}: {self.case.packet.pdf_filename} {outcome}"]
        if receipt.is_same_as_agent is not None:
            parts.append(
                "the agent said the same"
                if receipt.is_same_as_agent
                else f"the agent said {receipt.agent_type or 'cannot tell'}"
            )
        if receipt.production_type:
            parts.append(f"production said {receipt.production_type}")
        return " · ".join(parts)

    def _open_next_or_show_feedback(self, feedback: str = "") -> None:
        """The next case; what was planted in the last one is read first, in the queue."""
        next_case_id = None if feedback else self.review_session.choose_next_case_id()
        if next_case_id is None:
            self._show_queue(feedback)
        else:
            self._open_and_show_case(next_case_id)

    # ------------------------------------------------------------------------------------------ what is open

    @property
    def review_session(self) -> ReviewSession:
        """The expert's desk. RuntimeError before the page has said hello."""
        if self._review_session is None:
            raise RuntimeError("no desk yet")
        return self._review_session

    @property
    def case(self) -> ReviewCase:
        """The open case. RuntimeError in the queue."""
        if self._case is None:
            raise RuntimeError("no case is open")
        return self._case

    @property
    def draft(self) -> Draft:
        """What the expert says so far. RuntimeError in the queue."""
        if self._draft is None:
            raise RuntimeError("no case is open")
        return self._draft


def _make_draft_handler(change: Callable[[Workbench, Message], Draft]) -> Handler:
    """Handle a press by what it makes of the draft: that is kept, then shown."""
    return lambda screen, message: screen.save_and_show_draft(change(screen, message))


_HANDLER_BY_ACTION: dict[str, Handler] = {
    "hello": Workbench.connect_tab,
    "ping": Workbench.keep_claim_alive,
    "leave": Workbench.release_case_on_unload,
    "queue": Workbench.return_to_queue,
    "refresh": Workbench.return_to_queue,
    "next": Workbench.open_next_case,
    "open": Workbench.open_case,
    "view": Workbench.change_queue_query,
    "select": Workbench.show_selected_target,
    "page": Workbench.change_page,
    "evidence": Workbench.show_quote_location,
    "thumbnails": lambda screen, message: screen.send_requested_images("thumbnail", message),
    "previews": lambda screen, message: screen.send_requested_images(
        "page" if message.get("kind") == "page" else "preview", message
    ),
    "find": Workbench.show_text_search_hits,
    "painted": Workbench.record_painted_page,
    "type": _make_draft_handler(
        lambda screen, message: screen.draft.set_segment_type(
            screen.find_segment_index(message), DocumentType(message["type"])
        )
    ),
    "split": _make_draft_handler(lambda screen, message: screen.draft.toggle_boundary(int(message["page"]))),
    "start_at": _make_draft_handler(
        lambda screen, message: screen.draft.move_segment_start(int(message["segment"]), int(message["page"]))
    ),
    "end_at": _make_draft_handler(
        lambda screen, message: screen.draft.move_segment_end(int(message["segment"]), int(message["page"]))
    ),
    "dominant": _make_draft_handler(
        lambda screen, message: screen.draft.set_dominant_type(DocumentType(message["type"]))
    ),
    "notes": _make_draft_handler(lambda screen, message: screen.draft.set_notes(str(message["text"]))),
    "verdict": _make_draft_handler(
        lambda screen, message: screen.draft.set_issue_verdict(
            screen.require_known_issue_id(message["issue_id"]), message["verdict"], ""
        )
    ),
    "flag": _make_draft_handler(
        lambda screen, message: screen.draft.toggle_segment_flag(screen.find_segment_index(message), message["flag"])
    ),
    "separate": _make_draft_handler(Workbench.separate_patient_pages),
    "segment_note": _make_draft_handler(
        lambda screen, message: screen.draft.set_segment_note(screen.find_segment_index(message), str(message["text"]))
    ),
    "issue_note": _make_draft_handler(
        lambda screen, message: screen.draft.set_issue_note(
            screen.require_known_issue_id(message["issue_id"]), str(message["text"])
        )
    ),
    "field_edit": Workbench.mark_field_edit_begun_or_ended,
    "field_check": Workbench.show_typed_value_check,
    "field_value": Workbench.set_field_value,
    "field_status": Workbench.set_field_status,
    "edge": _make_draft_handler(
        lambda screen, message: screen.template_case.move_edge(screen.draft, str(message["edge"]), float(message["to"]))
    ),
    "box": _make_draft_handler(
        lambda screen, message: screen.template_case.add_region_for_page_kind(screen.draft, int(message["page"]))
    ),
    "column": _make_draft_handler(
        lambda screen, message: screen.template_case.rename_column_with_dependents(
            screen.draft, int(message["column"]), str(message["name"])
        )
    ),
    "choice": _make_draft_handler(
        lambda screen, message: screen.template_case.apply_choice(
            screen.draft, str(message["what"]), str(message["value"])
        )
    ),
    "unmet_sums": Workbench.save_unmet_sums_reason,
    "take": Workbench.adopt_opinion,
    "repair": Workbench.toggle_repairable_issues_confirmed,
    "undo": Workbench.undo_last_change_or_submission,
    "retry": Workbench.retry_failed_action,
    "mixture": Workbench.set_mixture,
    "mixture_seen": _make_draft_handler(lambda screen, _: screen.draft.mark_mixture_seen()),
    "validate": lambda screen, _: screen.submit_review(validate=True),
    "correct": lambda screen, _: screen.submit_review(),
    "undeterminable": lambda screen, message: screen.submit_review(undeterminable_reason=str(message["reason"])),
    "defer": Workbench.defer_case_and_open_next,
    "second": Workbench.request_second_opinion,
}
#: What is, for a clinician; the error's own words are for whoever looks after the server.
_PLAIN_SENTENCE_BY_CODE = {
    "CASE-NOT-FOUND": "This case is no longer there.",
    "STORE-NEWER": "This case was written by a newer evalkit than the one that runs here.",
    "STORE-TORN": "A file of this case is damaged.",
    "STORE-INDEX": "The queue cannot be opened: it is locked or damaged.",
    "STORE-FULL": "The disk is full: nothing can be saved.",
    "STORE-FAILED": "Nothing can be read or saved at the moment.",
    "OUTPUT-FOLDER": "The folder with the cases is not there, or is another one.",
}
#: What became of a template, in the words of its buttons.
_TEMPLATE_OUTCOME_WORDS: dict[ReviewOutcome, str] = {
    "validated": "approved",
    "corrected": "approved with changes",
    "undeterminable": "rejected",
    "reopened": "reopened",
}
_ACTIONS_WITHOUT_SESSION = frozenset({"hello", "retry"})
_UNDOABLE_ACTIONS = frozenset(
    [
        "type",
        "split",
        "start_at",
        "end_at",
        "dominant",
        "verdict",
        "flag",
        "separate",
        "mixture",
        "field_value",
        "field_status",
        "edge",
        "box",
        "column",
        "choice",
        "unmet_sums",
        "take",
        "repair",
        "segment_note",
        "issue_note",
    ]
)
_PROBLEM_CLEARING_ACTIONS = frozenset(_HANDLER_BY_ACTION) - {
    *("hello", "ping", "leave", "painted", "thumbnails", "previews", "find", "field_check"),
}


#: What of a draft is what the expert saw, not what they say: undoing leaves it.
_VIEWING_FIELDS = (
    "page",
    "issue_id",
    "pages_seen",
    "evidence_seen",
    "fields_seen",
    "seconds_active",
    "mixture_seen",
    "notes",
)
#: What of an opinion is taken over.
_ADOPTED_FIELDS = ("segments", "dominant_type", "flags", "mixture", "fields", "template", "unmet_sums")


def _parse_page_numbers(message: Message) -> list[int]:
    """The pages that a message asks for, each once."""
    return list(dict.fromkeys(int(page_number) for page_number in message["pages"]))[:_MAX_IMAGES_PER_MESSAGE]


def _strip_lone_surrogates(content: Any) -> Any:
    """What a browser sent, without halves of signs, which no file can hold."""
    if isinstance(content, str):
        return content.encode(errors="ignore").decode()
    if isinstance(content, dict):
        return {field_name: _strip_lone_surrogates(nested) for field_name, nested in content.items()}
    return [_strip_lone_surrogates(nested) for nested in content] if isinstance(content, list) else content


def _dump_expert_answer(draft: Draft) -> dict[str, Any]:
    return draft.model_dump(exclude=set(_VIEWING_FIELDS))


def _index_agent_confidence(classification: ClassificationOutput | None) -> dict[_SegmentKey, dict[str, Any]]:
    """What the agent says of each of its segments; one that the expert has changed is not among them."""
    confidence_by_segment: dict[_SegmentKey, dict[str, Any]] = {}
    for segment in classification.segments if classification else ():
        presence = next(
            (presence for presence in segment.segment_composition if presence.document_type == segment.dominant_type),
            None,
        )
        if presence is not None:
            confidence_by_segment[segment.start_page, segment.end_page, segment.dominant_type] = {
                "confidence": presence.confidence,
                "presence": presence.presence_level.value,
            }
    return confidence_by_segment


def _open_page_images(pdf_path: str, sha256: str) -> tuple[PdfPageRenderer | None, str]:
    """The PDF's pages as pictures, or why there are none."""
    try:
        if hash_source_file(Path(pdf_path)) != sha256:
            return None, "The PDF has changed since it was read. Run it again before deciding."
        return PdfPageRenderer(Path(pdf_path)), ""
    except DocumentError as error:
        return None, f"The pages cannot be shown: {error}"


def _preload_libraries() -> None:
    """Load what the first case needs and the queue does not: half a second, while the expert chooses a case."""
    load_pymupdf()
    load_english_word_text_by_prefix()


def show(output: Path | str | None = None, reviewer: str | None = None) -> ipywidgets.Widget:
    """The workbench, to be shown as a cell's result.

    Behind ``evalkit review`` the server says who the reviewer is and where the output lies; in JupyterLab both are
    arguments. UsageError where nobody says who reviews.
    """
    header_reviewer = os.environ.get("HTTP_X_REVIEWER")
    is_voila = os.environ.get("SERVER_SOFTWARE", "").startswith("voila")
    reviewer_name = header_reviewer if is_voila else reviewer or os.environ.get("JUPYTERHUB_USER")
    if not reviewer_name:  # plain Voilà has no login: whoever finds the address would be the reviewer
        raise UsageError(
            "nobody has said who reviews",
            code="REVIEWER-NAME",
            remedy="Start `evalkit review`, or in JupyterLab say show('output', reviewer='dr_lee').",
        )
    if is_voila:  # the server has read the settings
        output, database_url = os.environ.get("EVALKIT_OUTPUT"), os.environ.get("EVALKIT_DATABASE")
    else:
        from evalkit.settings import Settings  # only analysts need it; an expert's kernel stays small

        database_url = Settings.load().database
    output_folder = open_output_folder(output or "output", database_url)
    workbench = Workbench(output_folder, reviewer_name, is_behind_login=is_voila)
    atexit.register(workbench.close_session)  # as the kernel is shut down: a logout, a restart
    return workbench.view
