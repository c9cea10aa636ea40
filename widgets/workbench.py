"""The workbench, the expert's screen: the queue, or the pages and a case's panel.

All decisions are taken by ``evalkit.review``; this module turns presses into calls of that package and shows the results.
The kinds of case are in ``widgets.kinds``; the messages are listed in ``widgets/README.md``.
"""

from __future__ import annotations

import atexit
import os
import threading
from base64 import b64encode
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import ipywidgets
import traitlets

from evalkit.core.document_cache import forget_document_texts
from evalkit.core.wording import format_count
from evalkit.documents.mupdf import load_pymupdf
from evalkit.documents.render import PdfPageRenderer
from evalkit.documents.search import find_text_in_document
from evalkit.documents.source_file import find_mail_path
from evalkit.errors import CaseTaken, DocumentError, EvalkitError, NotFound, ReviewRefused, StoreError, UsageError
from evalkit.grounding.vocabulary import load_english_word_text_by_prefix
from evalkit.issue import PageBox
from evalkit.review import (
    Draft,
    HighlightedPlace,
    QueueQuery,
    ReviewCase,
    ReviewerRole,
    ReviewSession,
    SubmissionReceipt,
    get_base_case_id,
)
from evalkit.review.ground_truth import load_signature_meanings
from evalkit.review.guidelines import read_guidelines
from evalkit.review.session import compute_case_address
from evalkit.store import OutputFolder, open_existing_output_folder
from widgets.case_panel import build_page_marks, render_closing
from widgets.kinds import CONTROLLER_BY_KIND
from widgets.kinds.controller import Action, CaseController, Message
from widgets.page_pane import PageImageSize, PagePane, list_evidence_pages, open_page_images
from widgets.queue_panel import FaultPanel, QueuePanel
from widgets.screen_widget import (
    CasePanelWidget,
    PressCounter,
    ScreenWidget,
    TypesWidget,
    log_traceback_and_create_id,
)
from widgets.segment_editor import DECISION_LABELS, SegmentEditor


class TopBar(TypesWidget, scripts=("workbench",), styles=("theme", "workbench")):
    """Bar at the top of the screen; its script sends the heartbeat to the kernel."""

    reviewer = traitlets.Unicode(help="The reviewer's login name.")
    tab = traitlets.Unicode(
        help="The tab's id, if a notebook cell was run again and this screen replaces the one before; else empty."
    )
    role = traitlets.Unicode(help="The reviewer's role; empty for an expert.")
    title = traitlets.Unicode(help="The open file's name; empty in the queue.")
    subtitle = traitlets.Unicode(
        help="The number of pages, why the case is in the queue, and the mail it was attached to."
    )
    address = traitlets.Unicode(
        help="The open case's part of the address, which a reload opens again; empty in the queue."
    )
    is_ready = traitlets.Bool(default_value=False, help="True once the kernel has answered ``hello``.")
    done = traitlets.Int(0, help="The number of cases that this reviewer finished today.")
    total = traitlets.Int(0, help="The number of cases that are still open.")
    median = traitlets.Unicode(help="This reviewer's median time per case, e.g. ``1:12`` minutes; empty if unknown.")
    notice = traitlets.Unicode(help="A sentence about the last decision that was saved.")
    can_log_out = traitlets.Bool(default_value=False, help="True if the reviewer has logged in and can log out.")
    guidelines = traitlets.List(
        trait=traitlets.Dict(),
        help="The organisation's guidelines as blocks ``{kind, lines}``, see ``read_guidelines``.",
    )


class Workbench:
    """Screen of one expert in one browser tab: its widgets and their messages."""

    def __init__(self, output_folder: OutputFolder, reviewer: str, *, is_behind_login: bool = False) -> None:
        # is_behind_login: `evalkit review` serves the screen, which then fills the browser window
        self._output_folder = output_folder
        self._reviewer = reviewer
        self._review_session: ReviewSession | None = None
        self._tab_id = ""
        self._controller: CaseController | None = None  # None: the queue is on screen
        self._is_page_unsaved = False
        self._page_images: PdfPageRenderer | None = None
        self._opened_case_count = 0
        self._is_claim_lost = False
        self._active_seconds = 0.0
        self._undo_stack: list[Draft] = []  # newest last
        self._last_moved_edge = ""  # further moves of this edge belong to the same change for Undo
        self._retry_message: Message = {}
        self.bar = TopBar(reviewer=reviewer, can_log_out=is_behind_login)
        self.queue_panel = QueuePanel(reviewer=reviewer)
        self.page_pane = PagePane()
        self.panels: dict[str, CasePanelWidget] = {
            kind: controller_class.panel_class() for kind, controller_class in CONTROLLER_BY_KIND.items()
        }
        self.segment_editor = SegmentEditor()
        self.fault_panel = FaultPanel()
        self.content_box = ipywidgets.Box(layout=ipywidgets.Layout(width="100%", overflow="hidden"))
        self.content_box.add_class("ek-stage").add_class("ek-desk")
        self.case_view = self._build_layout()
        for widget in self._list_widgets():
            widget.on_msg(self._on_message)
        self.view = ipywidgets.VBox(
            [self.bar, self.content_box], layout=ipywidgets.Layout(width="100%", overflow="hidden")
        )
        self.view.add_class("ek-screen")
        if is_behind_login:
            self.view.add_class("ek-whole-page")

    def _build_layout(self) -> ipywidgets.Widget:
        layout = ipywidgets.Layout
        self.page_pane.layout = layout(flex="1 1 0", min_width="0", height="100%")
        panel_layout = layout(flex="1 1 0", min_height="0", width="100%")
        for panel in self.panels.values():
            panel.layout = panel_layout
        self.right_column = ipywidgets.VBox([self.segment_editor])
        self.right_column.add_class("ek-right")
        self.queue_panel.layout = self.fault_panel.layout = layout(width="100%", height="100%")
        case_view = ipywidgets.HBox([self.page_pane, self.right_column], layout=layout(width="100%", height="100%"))
        return case_view.add_class("ek-case-view")

    def show_notice(self, sentence: str) -> None:
        """Show a sentence in the open case or, in the queue, above the list."""
        if self._controller is None:
            self.queue_panel.notice = sentence
        else:
            self.segment_editor.problem = sentence

    def take_over(self, earlier: Workbench) -> None:
        """Continue in the tab of this kernel's earlier screen, and close that screen.

        The draft is saved, and the session keeps its claim until the new page opens the same case.
        """
        with suppress(EvalkitError):  # it was saved before; only where the expert looked may be lost
            if earlier._controller is not None and not earlier.case.is_locked:
                earlier.save_and_show_draft(earlier.draft)
        self._review_session, earlier._review_session = earlier._review_session, None
        self._tab_id = self.bar.tab = earlier._tab_id
        self.bar.address = earlier.bar.address
        earlier._forget_case()
        for widget in (*earlier._list_widgets(), earlier.view):
            widget.close()

    def _list_widgets(self) -> tuple[ScreenWidget, ...]:
        frame = (self.bar, self.queue_panel, self.page_pane, self.segment_editor, self.fault_panel)
        return *frame, *self.panels.values()

    def _on_message(self, widget: ScreenWidget, message: Message, _: object) -> None:
        self.dispatch_message(message)
        if isinstance(widget, PressCounter) and isinstance(message.get("nth"), int):
            widget.answered = message["nth"]

    def dispatch_message(self, message: Message) -> None:
        """Handle one message of the browser; show errors as sentences for the expert."""
        try:
            self._handle_message(message)
        except CaseTaken as error:
            self.show_notice(f"This case is {error.message}. Your draft is saved.")
        except StoreError as error:
            # Other store errors say themselves what was saved and what was not.
            sentence = _PLAIN_SENTENCE_BY_CODE.get(error.code) if isinstance(error, NotFound) else None
            self.show_notice(f"{sentence or error} (error {log_traceback_and_create_id(error)})")
        except EvalkitError as error:
            self.show_notice(str(error))
        except Exception as error:  # noqa: BLE001 - a press must never end in silence
            error_id = log_traceback_and_create_id(error)
            self.show_notice(
                f"Something went wrong (error {error_id}). Everything shown as saved is saved. Please try again."
            )

    def _handle_message(self, message: Message) -> None:
        message = _strip_lone_surrogates(message)
        name = message.get("action")
        if "token" in message and (self._controller is None or message["token"] != self.page_pane.version):
            return  # the message is about a case that is no longer open
        if not isinstance(name, str) or (answer := self._find_owner_and_action(name)) is None:
            return
        owner, action = answer
        if action.needs_session and self._review_session is None:
            return  # the browser has not sent the id of its tab yet
        if action.is_change and self._controller is not None and self.case.is_locked:
            return  # a locked case has no enabled buttons, so the press came too late
        if action.clears_problem:
            self.segment_editor.problem = self.segment_editor.question = ""
        if action.ends_edit and self._controller is not None:
            self._controller.require_finished_edit()
        draft_before = self.draft if action.is_change and self._controller else None
        try:
            changed_draft = action.handle(owner, message)
            if changed_draft is not None:
                self.save_and_show_draft(changed_draft)
        finally:  # Undo must also cover a change that is on screen but could not be saved
            if draft_before and _dump_expert_answer(draft_before) != _dump_expert_answer(self.draft):
                edge = str(message.get("edge", ""))
                if not (edge and edge == self._last_moved_edge and message.get("goes_on")):
                    self._undo_stack.append(draft_before)
                    self.review_session.forget_last_submission()
                self._last_moved_edge = edge
                self.segment_editor.undo = self._describe_undo()

    def _find_owner_and_action(self, name: str) -> tuple[object, Action[Any]] | None:
        """Find the action of a message and the workbench or controller that handles it.

        None for an unknown action; UsageError for an action that only another kind of case has.
        """
        if action := WORKBENCH_ACTIONS.get(name):
            return self, action
        if self._controller is None or all(name not in kind.actions for kind in CONTROLLER_BY_KIND.values()):
            return None
        if name not in self._controller.actions:
            raise UsageError("this button belongs to another kind of case", code="CASE-KIND", remedy="Reload the page.")
        return self._controller, self._controller.actions[name]

    # ------------------------------------------------------------------------------------------ queue

    def connect_tab(self, message: Message) -> None:
        """Start the session of a page that was just loaded; reopen the case it had open."""
        tab_id, address, self._active_seconds = str(message["tab"]), str(message.get("case") or ""), 0.0
        # A reload of the same tab keeps the session and its claim: otherwise a colleague could take the case meanwhile.
        if self._review_session is None or tab_id != self._tab_id or (self._controller and self.bar.address != address):
            self.close_session()
        self._tab_id = tab_id
        self._forget_case()  # the case was opened by the page before the reload, or by another view of this notebook
        try:
            self._review_session = self._review_session or ReviewSession(self._output_folder, self._reviewer, tab_id)
            self._show_role(self._review_session.role)
        except EvalkitError as error:
            self._show_fault(error, message)
            return
        self.content_box.children = []
        self.bar.guidelines = read_guidelines(self._output_folder)
        self.segment_editor.signatures = {
            decision: f"You sign as {self._reviewer}: “{meaning}”"
            for decision, meaning in load_signature_meanings().items()
        }
        self._open_address(address)
        self.bar.is_ready = True
        threading.Thread(target=_preload_libraries, daemon=True).start()

    def visit_address(self, message: Message) -> None:
        """Show the case or queue of a URL when the browser goes back or forward."""
        try:
            if self._controller is not None:
                self._controller.require_finished_edit()
            self._release_case()
            self._open_address(str(message.get("case") or ""))
        finally:
            self.bar.send({"kind": "visited"})

    def _open_address(self, address: str) -> None:
        """Show the case of an address; the queue if it is empty or names no case."""
        case_id = self.review_session.find_case_id(address)
        if case_id is not None:
            self._open_and_show_case(case_id)
        else:
            self._show_queue("This address belongs to no case here. Choose a case from the queue." if address else "")

    def keep_claim_alive(self, message: Message) -> None:
        """Answer the heartbeat, renew the claim, and add up the active seconds."""
        self.bar.send({"kind": "pong", "tab": self._tab_id})
        active_seconds = float(message.get("active", 0.0))
        if message.get("tab") != self._tab_id:
            return  # sent by a view that another view has replaced
        elapsed_seconds, self._active_seconds = max(active_seconds - self._active_seconds, 0.0), active_seconds
        if self._controller is None or self.case.is_locked:
            return
        try:
            self.review_session.renew_claim(self.case.packet.case_id)
        except CaseTaken:
            self._is_claim_lost = True
            raise
        if self._is_claim_lost:
            self._is_claim_lost, self.segment_editor.problem = False, ""
        self.controller.draft = self.draft.model_copy(
            update={"seconds_active": self.draft.seconds_active + elapsed_seconds}
        )

    def return_to_queue(self, _: Message) -> None:
        """Close the case and show the queue: release the claim, keep the draft."""
        self._release_case()
        self._show_queue()

    def refresh_queue(self, _: Message) -> None:
        """Show the queue again, with its first case as the next case."""
        self.review_session.return_to_top()
        self._show_queue()

    def show_recent_cases(self, _: Message) -> None:
        """List the cases that the reviewer finished last."""
        self.queue_panel.recent = [asdict(recent_case) for recent_case in self.review_session.list_recent_cases()]

    def reopen_case(self, message: Message) -> None:
        """Reopen and open one of the cases that the reviewer finished last."""
        if self._controller is None:
            self.review_session.reopen_case(str(message["case_id"]))
            self._open_and_show_case(str(message["case_id"]))

    def release_case_on_unload(self, message: Message) -> None:
        """Release the claim on the open case when the tab is closed or reloaded."""
        if message.get("tab") == self._tab_id:  # in JupyterLab another tab may have taken over this notebook
            self._release_case()

    def _release_case(self) -> None:
        if self._controller is not None and not self.case.is_locked:
            self.review_session.release_case(self.case.packet.case_id)

    def close_session(self) -> None:
        """Close the session and release its claims before they expire."""
        review_session, self._review_session = self._review_session, None
        if review_session is not None:
            try:
                review_session.close()
            except Exception as error:  # noqa: BLE001 - claims expire anyway; the message is not logged, as it may quote the document
                log_traceback_and_create_id(error)

    def _show_queue(self, notice: str = "") -> None:
        self._forget_case()
        self.review_session.forget_last_submission()  # the list has the last cases, to be reopened from their reviews
        queue_page = self.review_session.load_queue_page()
        self.queue_panel.show_queue_page(queue_page, notice)
        self._show_role(queue_page.role)
        self.bar.set_traits(title="", subtitle="", address="", **self._render_progress())
        self._replace_case_on_screen(self.queue_panel)

    def _replace_case_on_screen(self, panel: ipywidgets.Widget) -> None:
        self.content_box.children = [panel]
        if self.page_pane.version:
            for widget in (self.page_pane, self.segment_editor, *self.panels.values()):
                widget.forget_case()

    def _show_fault(self, error: Exception, retry_message: Message, subject: str = "") -> None:
        """Show the error screen; "Try again" handles ``retry_message`` once more."""
        self._retry_message = retry_message
        self.fault_panel.set_traits(
            what=subject + _describe_error(error),
            reason=str(error) if isinstance(error, EvalkitError) else "",
            error_id=log_traceback_and_create_id(error),
            has_queue=self._review_session is not None,
        )
        self.bar.set_traits(title="", subtitle="", address="")
        self._replace_case_on_screen(self.fault_panel)

    def retry_failed_action(self, _: Message) -> None:
        """Handle again the message that led to the error screen."""
        retry_message, self._retry_message = self._retry_message, {}
        self.dispatch_message(retry_message)

    def _show_role(self, role: ReviewerRole) -> None:
        self.bar.role = "" if role == "expert" else role

    def _render_progress(self) -> dict[str, Any]:
        progress = self.review_session.measure_progress()
        minutes, seconds = divmod(int(progress.median_seconds or 0), 60)
        return {
            "done": progress.done_by_me,
            "total": progress.open_count,
            "median": "" if progress.median_seconds is None else f"{minutes}:{seconds:02}",
        }

    def change_queue_query(self, message: Message) -> None:
        """Show the queue for a new search, filter, order or page."""
        if self._controller is None:
            self.review_session.choose_queue_query(QueueQuery.from_message(message.get("view")))
            self._show_queue()

    def _forget_case(self) -> None:
        self._controller = None
        self._undo_stack = []
        self._last_moved_edge = ""
        self._is_claim_lost = False
        if self._page_images is not None:
            self._page_images.close()
            self._page_images = None
        forget_document_texts()

    def open_next_case(self, _: Message) -> None:
        """Open the case that should be decided next, or say that none is waiting."""
        # If a case is open, this is the second press of a double click, unless the case is closed.
        if self._controller is None or self.case.is_locked:
            self._open_next_or_show_queue("No cases are waiting for you.")

    def open_case(self, message: Message) -> None:
        """Open a case; with ``take_over``, even if another reviewer has it open."""
        if self._controller is None:  # if a case is open, this is the second press of a double click
            self._open_and_show_case(str(message["case_id"]), take_over=bool(message.get("take_over")))

    # ------------------------------------------------------------------------------------------ a case

    def look_again_at_blind_answer(self, _: Message) -> None:
        """Open a blind case just answered, now with the program's answer."""
        self._open_and_show_case(self.case.packet.case_id, look_again=True)

    def _open_and_show_case(self, case_id: str, **options: bool) -> None:
        """Open a case; give it back and say why if it cannot be shown."""
        try:
            self._claim_and_show_case(case_id, **options)
        except (ReviewRefused, NotFound) as error:
            self._show_queue(_describe_refusal(error, case_id))
        except Exception as error:  # noqa: BLE001 - shown as a screen with a button to try again
            self._show_case_fault(error, case_id)

    def _show_case_fault(self, error: Exception, case_id: str) -> None:
        self._forget_case()
        self._show_fault(error, {"action": "open", "case_id": case_id}, f"{case_id}: ")

    def _claim_and_show_case(self, case_id: str, **options: bool) -> None:
        case = self.review_session.open_and_claim_case(case_id, **options)
        try:
            self._show_case(case)
        except Exception as error:
            self.review_session.give_back_case(case_id, error)
            raise

    def _show_case(self, case: ReviewCase) -> None:
        self._forget_case()
        packet = case.packet
        panel = self.panels[packet.kind]
        self._controller = CONTROLLER_BY_KIND[packet.kind](self, case, panel)
        self._page_images, self.page_pane.note = open_page_images(self._output_folder, case.bundle)
        if self._page_images is None and not case.is_locked:
            raise DocumentError(self.page_pane.note, code="PAGES-MISSING", remedy="The case is free for others again.")
        self._opened_case_count += 1
        token = f"{packet.case_id}:{self._opened_case_count}"
        mail_path = find_mail_path(Path(case.bundle.file_path))
        self.bar.set_traits(
            address=compute_case_address(packet.case_id),
            title=packet.pdf_filename,
            subtitle=format_count(packet.total_pages, "page")
            + (f" · {packet.review_reason}" if packet.review_reason != "escalated" else "")
            + (f" · attached to {mail_path.name}" if mail_path else ""),
            **self._render_progress(),
        )
        # A late press for the previous case must not apply to this one.
        self.segment_editor.set_traits(token="", segments=[], problem="")
        self.page_pane.show_document(
            token,
            case.bundle,
            self.controller.build_ribbon_segments(),
            evidence_pages=() if case.is_blind else list_evidence_pages(packet),
            seen_pages=case.draft.pages_seen,
        )
        with panel.hold_sync():  # sent as one message, so that nothing of the previous case is shown with it
            closing = render_closing(case, self.controller.outcome_words)
            panel.case, panel.selected = self.controller.render_case() | closing | {"token": token}, ""
            self._update_panel()
        if self.right_column.children[0] is not panel:
            self.right_column.children = (panel, self.segment_editor)
        self.segment_editor.saved = f"Draft of {case.draft_saved_at[11:19]} restored" if case.draft_saved_at else ""
        self.content_box.children = [self.case_view]
        first_target_id = self.controller.choose_first_target_id()
        if case.draft_saved_at:
            self._show_page_with_target(case.draft.page, first_target_id)
        elif first_target_id:
            self.show_target(first_target_id)
        else:
            self._show_page_with_target(1, None)
        self._refresh_widgets()

    def show_selected_target(self, message: Message) -> None:
        """Select an issue, a field or a row, and highlight its place on the page."""
        if not self.case.is_blind:
            self.show_target(str(message["issue_id"]))

    def show_target(self, target_id: str | None, page: int | None = None) -> None:
        """Save the draft and show a target, selected, on its page or on ``page``."""
        shown_page = page or self.controller.locate_target(target_id or "").page
        self._show_page_with_target(shown_page, target_id or self.controller.panel.selected or None)
        self.save_and_show_draft(self.draft)

    def change_page(self, message: Message) -> None:
        """Show another page; the selected issue stays selected.

        The draft is saved only when the page was painted, so that changing pages never waits for the disk.
        """
        page = int(message["page"])
        if 1 <= page <= self.case.packet.total_pages:
            self._show_page_with_target(
                page, self.controller.panel.selected or None, is_cached=bool(message.get("cached"))
            )

    def _show_page_with_target(self, page: int, target_id: str | None, *, is_cached: bool = False) -> None:
        controller, marks = self.controller, []
        if target_id:
            place = controller.locate_target(target_id)
            marks = build_page_marks(place.boxes, place.style)
            if controller.panel.selected != target_id:
                with controller.panel.hold_sync():
                    controller.panel.selected = target_id
                    controller.open_target(target_id)
        self._show_page(page, marks, target_id or "", is_cached=is_cached)

    def show_place(self, place: HighlightedPlace, target_id: str) -> None:
        """Show a page with highlights; the target counts as seen once it is painted."""
        self._show_page(place.page, build_page_marks(place.boxes, place.style), target_id, is_cached=False)

    def _show_page(self, page: int, marks: list[dict[str, Any]], target_id: str, *, is_cached: bool) -> None:
        if self._page_images is not None:
            self.page_pane.show_page(
                page, self._page_images.render_full_size, marks, target_id, is_cached_in_browser=is_cached
            )
        self.segment_editor.page = page
        self.controller.draft = self.draft.model_copy(
            update={"page": page, "issue_id": self.controller.panel.selected or None}
        )
        self._is_page_unsaved = True
        self._update_panel()

    def render_cut_out(self, word_box: PageBox) -> str:
        """Draw a word's surroundings as a data URL; empty if that is impossible."""
        with suppress(DocumentError):  # the page pane tells why its page cannot be drawn
            if self._page_images is not None:
                return f"data:image/png;base64,{b64encode(self._page_images.render_cut_out(word_box)).decode()}"
        return ""

    def send_requested_images(self, image_size: PageImageSize, message: Message) -> None:
        """Send images that the browser requests in advance: thumbnails, pages."""
        if self._page_images is not None:
            self.page_pane.send_requested_images(image_size, message, self._page_images)

    def show_text_search_hits(self, message: Message) -> None:
        """Search the file for a text and show the places where it was found."""
        text = str(message["text"])
        self.page_pane.show_search_hits(text, find_text_in_document(self.case.bundle, text))

    # ------------------------------------------------------------------------------------------ the draft

    def record_painted_page(self, message: Message) -> None:
        """Record that the browser has painted a page, and that the target on it was seen."""
        page = int(message["page"])
        if target_id := message.get("issue"):
            draft = self.case.mark_target_and_page_seen(self.draft, str(target_id), page)
        else:
            draft = self.draft.show_page_and_mark_seen(page)
        if draft != self.draft or self._is_page_unsaved:
            self.save_and_show_draft(draft)

    def require_known_issue_id(self, issue_id: object) -> str:
        """Return an issue_id from a message. UsageError if the case has no such issue."""
        if all(issue.issue_id != issue_id for issue in self.case.packet.issues):
            raise UsageError("this case has no such issue", code="ISSUE-UNKNOWN", remedy="Reload the page.")
        return str(issue_id)

    def answer_issue(self, message: Message) -> Draft:
        """Record an answer to an issue with its effect; show what to answer next."""
        issue_id = self.require_known_issue_id(message["issue_id"])
        self.controller.draft = self.controller.answer_issue(issue_id, message["verdict"])
        if place := self.controller.choose_next_place(issue_id):
            self._show_page_with_target(*place)
        return self.draft

    def adopt_opinion(self, message: Message) -> Draft:
        """Replace the expert's answer by one of the two colleagues' answers."""
        adopted_draft = next(
            opinion.draft
            for opinion in self.case.opinions
            if opinion.label == message["opinion"] and opinion.outcome != "undeterminable"
        )
        return self.draft.adopt_answer(adopted_draft)

    def undo_last_change_or_submission(self, _: Message) -> None:
        """Undo the last change; without changes, reopen the case that was submitted last."""
        if self._undo_stack:
            previous_draft, self._last_moved_edge = self._undo_stack.pop(), ""
            viewing_fields = {field_name: getattr(self.draft, field_name) for field_name in _VIEWING_FIELDS}
            self.save_and_show_draft(previous_draft.model_copy(update=viewing_fields))
        elif self._has_expert_answer():
            self.show_notice("There is nothing to undo.")
        else:
            case_id = self.review_session.undo_last_submission_and_get_case_id()
            self._release_case()
            self.bar.notice = f"Reopened: {case_id}"
            self._open_and_show_case(case_id)

    def save_and_show_draft(self, draft: Draft) -> None:
        """Save the draft and show it; "saved" appears only after the write has succeeded."""
        self.controller.draft, self._is_page_unsaved = draft, False
        try:
            if not self.case.is_locked:
                self.segment_editor.saved = "Not saved"
                saved_at = self.review_session.save_draft_and_get_time(self.case.packet.case_id, draft)
                self.segment_editor.saved = f"Draft saved {saved_at[11:19]}"
        finally:
            self._refresh_widgets()

    def _refresh_widgets(self) -> None:
        controller, case, draft, editor = self.controller, self.case, self.draft, self.segment_editor
        self.page_pane.segments = segments = controller.build_ribbon_segments()
        self.page_pane.quotes = editor.quotes = [quote.model_dump(mode="json") for quote in draft.evidence]
        is_kept = case.closing_review is not None and not self._has_expert_answer()
        is_asked = case.second_opinion_reason or (case.deferral and case.deferral.reviewer != self._reviewer)
        editor.set_traits(
            token=self.page_pane.version,
            has_segments=controller.has_segments,
            labels=DECISION_LABELS | dict(controller.labels) | ({"correct": "Keep mine and next"} if is_kept else {}),
            unmet=controller.describe_unmet(),
            unmet_sums=draft.unmet_sums,
            segments=segments,
            dominant=draft.dominant_type.value if draft.dominant_type else None,
            mixture=[
                {"type": document_type, "percent": round(100 * share, 2)}
                for document_type, share in case.compute_mixture_after_review(draft)
            ],
            notes=draft.notes,
            is_changed=case.has_expert_changes(draft),
            is_blind=case.is_blind,
            is_locked=case.is_locked,
            can_correct=controller.can_correct(),
            why_not=controller.explain_block() or "",
            open_doubts=case.describe_open_doubts(draft),
            issue_id=controller.get_open_issue_id(),
            issue_notes=draft.issue_notes,
            record=[] if case.is_locked else [asdict(line) for line in case.describe_record(draft)],
            can_ask=not case.is_locked and get_base_case_id(case.packet.case_id) == case.packet.case_id,
            can_reply=bool(is_asked) and not case.is_locked,
            undo=self._describe_undo(),
        )
        self._update_panel()

    def _update_panel(self) -> None:
        draft, panel = self.draft, self.controller.panel
        with panel.hold_sync():
            panel.set_traits(
                seen=[*draft.fields_seen, *draft.evidence_seen],
                verdicts={
                    issue_verdict.issue_id: {"verdict": issue_verdict.verdict} for issue_verdict in draft.issue_verdicts
                },
                notes=draft.issue_notes,
                is_locked=self.case.is_locked,
            )
            self.controller.render_draft()

    def _describe_undo(self) -> str:
        if self._undo_stack:
            return "Undo the last change"
        can_reopen = self.review_session.can_undo and not self._has_expert_answer()
        reopening = f"Reopen the case that you submitted last. {self.segment_editor.signatures['reopened']}"
        return reopening if can_reopen else ""

    def _has_expert_answer(self) -> bool:
        case, draft = self.case, self.draft
        initial_draft = Draft.create_blank(draft.total_pages) if case.is_blind else Draft.from_packet(case.packet)
        initial_draft = case.draft if case.closing_review else initial_draft
        return draft.notes != initial_draft.notes or _dump_expert_answer(draft) != _dump_expert_answer(initial_draft)

    # ------------------------------------------------------------------------------------------ the decision

    def defer_case_and_open_next(self, message: Message) -> None:
        """Defer the case with a reason, and open the next one."""
        packet = self.case.packet
        self.review_session.defer_case_and_get_time(packet.case_id, self.draft, str(message["reason"]))
        self.bar.notice = f"Deferred: {packet.pdf_filename}"
        self._open_next_or_show_queue()

    def reply_to_colleague(self, message: Message) -> None:
        """Reply to the colleague who deferred the case or asked for an opinion."""
        self.review_session.reply_to_colleague(self.case.packet.case_id, str(message["reason"]))
        self.bar.notice = "Your reply is saved; your colleague sees it in the queue."

    def request_second_opinion(self, message: Message) -> None:
        """Submit the expert's answer, ask for a second opinion, and open the next case."""
        self._close_case(
            self.review_session.submit_and_request_second_opinion(
                self.case.packet.case_id, self.draft, str(message["reason"])
            ),
            "a second expert is asked",
        )

    def submit_review_or_ask(self, message: Message, *, validate: bool) -> None:
        """Submit a review; ask first if it contradicts a verdict, unless ``anyway``."""
        question = "" if message.get("anyway") else self.case.find_contradiction(self.draft)
        if question:
            self.segment_editor.question = question
        else:
            self.submit_review(validate=validate)

    def submit_review(self, *, validate: bool = False, undeterminable_reason: str | None = None) -> None:
        """Submit a validation, the expert's answer, or the reason why nobody can tell.

        After another look at a blind answer, an unchanged answer is kept as it was submitted.
        """
        is_decision = validate or undeterminable_reason is not None
        if self.case.closing_review and not is_decision and not self._has_expert_answer():
            self._release_case()
            self._open_next_or_show_queue()
            return
        self._close_case(
            self.review_session.submit_review(
                self.case.packet.case_id, self.draft, validate=validate, undeterminable_reason=undeterminable_reason
            )
        )

    def _close_case(self, receipt: SubmissionReceipt, *more_parts: str) -> None:
        """Show that the review was saved, then its feedback or the next case."""
        outcome = self.controller.outcome_words.get(receipt.review.outcome, receipt.review.outcome)
        parts = [f"Saved {receipt.review.submitted_at[11:19]}: {self.case.packet.pdf_filename} {outcome}"]
        if receipt.is_same_as_agent is not None:
            other_answer = "the same" if receipt.is_same_as_agent else receipt.agent_type or "cannot tell"
            parts.append(f"the program: {other_answer}")
        if receipt.production_type:
            parts.append(f"production: {receipt.production_type}")
        self.bar.notice = " · ".join(parts if receipt.feedback else (*parts, *more_parts))
        if receipt.disagreement:
            self._undo_stack = []
            self.controller.case = replace(
                self.case, is_completed=True, closing_review=receipt.review, draft=self.draft
            )
            self.controller.panel.case = self.controller.panel.case | {"stop": dict(receipt.disagreement)}
            self.segment_editor.saved = f"Answer saved {receipt.review.submitted_at[11:19]}"
            self._refresh_widgets()
        elif receipt.feedback:
            self._show_queue(receipt.feedback)
        else:
            self._open_next_or_show_queue()

    def _open_next_or_show_queue(self, notice: str = "") -> None:
        skipped: list[str] = []
        while (case_id := self.review_session.choose_next_case_id()) is not None:
            try:
                self._claim_and_show_case(case_id)
            except ReviewRefused as error:
                self._show_queue(_describe_refusal(error, case_id))
                return
            except Exception as error:  # noqa: BLE001 - a broken case must not keep the expert from the next one
                if self.review_session.give_back_case(case_id, error) and len(skipped) < _MAX_SKIPPED_CASES:
                    error_id = log_traceback_and_create_id(error)
                    skipped.append(f"{case_id} was skipped: {_describe_error(error)} (error {error_id})")
                    continue
                self._show_case_fault(error, case_id)
                return
            if skipped:
                self.show_notice(" ".join(skipped))
            return
        self._show_queue(" ".join([notice, *skipped]).strip())

    # ------------------------------------------------------------------------------------------ what is open

    @property
    def review_session(self) -> ReviewSession:
        """The expert's session. RuntimeError before the browser's message ``hello``."""
        if self._review_session is None:
            raise RuntimeError("no review session is open yet")
        return self._review_session

    @property
    def controller(self) -> CaseController:
        """The controller of the open case. RuntimeError if the queue is on screen."""
        if self._controller is None:
            raise RuntimeError("no case is open")
        return self._controller

    @property
    def case(self) -> ReviewCase:
        """The open case. RuntimeError if the queue is on screen."""
        return self.controller.case

    @property
    def draft(self) -> Draft:
        """The expert's draft of the open case. RuntimeError if the queue is on screen."""
        return self.controller.draft


#: The handlers of all messages that do not depend on the kind of case, by the message's ``action``.
WORKBENCH_ACTIONS: dict[str, Action[Workbench]] = {
    "hello": Action(Workbench.connect_tab, clears_problem=False, needs_session=False),
    "ping": Action(Workbench.keep_claim_alive, clears_problem=False),
    "leave": Action(Workbench.release_case_on_unload, clears_problem=False),
    "queue": Action(Workbench.return_to_queue, ends_edit=True),
    "refresh": Action(Workbench.refresh_queue),
    "visit": Action(Workbench.visit_address),
    "recent": Action(Workbench.show_recent_cases),
    "reopen": Action(Workbench.reopen_case),
    "reply": Action(Workbench.reply_to_colleague),
    "next": Action(Workbench.open_next_case),
    "open": Action(Workbench.open_case),
    "look_again": Action(Workbench.look_again_at_blind_answer),
    "view": Action(Workbench.change_queue_query),
    "select": Action(Workbench.show_selected_target),
    "page": Action(Workbench.change_page),
    "thumbnails": Action(
        lambda workbench, message: workbench.send_requested_images("thumbnail", message), clears_problem=False
    ),
    "previews": Action(
        lambda workbench, message: workbench.send_requested_images(
            "page" if message.get("kind") == "page" else "preview", message
        ),
        clears_problem=False,
    ),
    "find": Action(Workbench.show_text_search_hits, clears_problem=False),
    "painted": Action(Workbench.record_painted_page, clears_problem=False),
    "notes": Action(lambda workbench, message: workbench.draft.set_notes(str(message["text"]))),
    "verdict": Action(Workbench.answer_issue, is_change=True),
    "issue_note": Action(
        lambda workbench, message: workbench.draft.set_issue_note(
            workbench.require_known_issue_id(message["issue_id"]), str(message["text"])
        ),
        is_change=True,
    ),
    "take": Action(Workbench.adopt_opinion, is_change=True),
    "undo": Action(Workbench.undo_last_change_or_submission, ends_edit=True),
    "retry": Action(Workbench.retry_failed_action, needs_session=False),
    "validate": Action(
        lambda workbench, message: workbench.submit_review_or_ask(message, validate=True), ends_edit=True
    ),
    "correct": Action(
        lambda workbench, message: workbench.submit_review_or_ask(message, validate=False), ends_edit=True
    ),
    "undeterminable": Action(
        lambda workbench, message: workbench.submit_review(undeterminable_reason=str(message["reason"])),
        ends_edit=True,
    ),
    "defer": Action(Workbench.defer_case_and_open_next, ends_edit=True),
    "second": Action(Workbench.request_second_opinion, ends_edit=True),
}
#: Sentences for a clinician by error code; the error's own message is for the people who run the server.
_PLAIN_SENTENCE_BY_CODE = {
    "CASE-NOT-FOUND": "This case no longer exists.",
    "STORE-NOT-FOUND": "A file of this case is missing.",
    "STORE-NEWER": "This case was created by a newer version of evalkit than the one running here.",
    "STORE-TORN": "A file of this case is damaged.",
    "STORE-INDEX": "The queue cannot be opened: it is locked or damaged.",
    "STORE-FULL": "The disk is full: nothing can be saved.",
    "STORE-FAILED": "Nothing can be read or saved at the moment.",
    "OUTPUT-FOLDER": "The folder with the cases is missing, or is not the right one.",
}
#: The number of broken cases that are skipped in a row; the next one is shown as an error.
_MAX_SKIPPED_CASES = 5


def _describe_refusal(error: EvalkitError, case_id: str) -> str:
    if isinstance(error, CaseTaken):
        return f"{case_id} is {error.message}."
    return f"{case_id}: {_PLAIN_SENTENCE_BY_CODE[error.code]}" if error.code in _PLAIN_SENTENCE_BY_CODE else str(error)


def _describe_error(error: Exception) -> str:
    """Describe in plain words why a case or the queue cannot be shown."""
    message = error.message if isinstance(error, DocumentError) else "This cannot be shown."
    return _PLAIN_SENTENCE_BY_CODE.get(getattr(error, "code", ""), message)


#: The fields of a draft that record what the expert saw, not what they answered; Undo does not change them.
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


def _strip_lone_surrogates(content: Any) -> Any:
    """Remove lone surrogates, which UTF-8 cannot encode, from a message's texts."""
    if isinstance(content, str):
        return content.encode(errors="ignore").decode()
    if isinstance(content, dict):
        return {field_name: _strip_lone_surrogates(nested) for field_name, nested in content.items()}
    return [_strip_lone_surrogates(nested) for nested in content] if isinstance(content, list) else content


def _dump_expert_answer(draft: Draft) -> dict[str, Any]:
    return draft.model_dump(exclude=set(_VIEWING_FIELDS))


def _preload_libraries() -> None:
    """Import the libraries that a case needs (0.5 s) while the queue is on screen."""
    load_pymupdf()
    load_english_word_text_by_prefix()


#: The workbench that a cell of this notebook has shown last, by output folder and reviewer.
_workbench_shown_for: dict[tuple[str, str], Workbench] = {}


def show(output: Path | str | None = None, reviewer: str | None = None) -> ipywidgets.Widget:
    """Build the workbench as a widget, to be shown as the result of a notebook cell.

    If the cell is run again, the new widget goes on with the same tab, case and draft, and the earlier one is closed.
    Under ``evalkit review`` the server sets output folder and reviewer; in JupyterLab both must be passed. UsageError if no
    reviewer is named.
    """
    header_reviewer = os.environ.get("HTTP_X_REVIEWER")
    is_voila = os.environ.get("SERVER_SOFTWARE", "").startswith("voila")
    reviewer_name = header_reviewer if is_voila else reviewer or os.environ.get("JUPYTERHUB_USER")
    if not reviewer_name:  # Voilà alone has no login, so that anyone with the address could be the reviewer
        raise UsageError(
            "the reviewer's name is missing",
            code="REVIEWER-NAME",
            remedy="Start `evalkit review`, or in JupyterLab call show('output', reviewer='dr_lee').",
        )
    if is_voila:  # the server passes its settings in environment variables
        output, database_url = os.environ.get("EVALKIT_OUTPUT"), os.environ.get("EVALKIT_DATABASE")
    else:
        from evalkit.settings import Settings  # imported only here, to keep the memory of an expert's screen small

        database_url = Settings.load().database
    output_folder = open_existing_output_folder(output or "output", database_url)
    workbench = Workbench(output_folder, reviewer_name, is_behind_login=is_voila)
    shown_for = (str(output_folder.root), reviewer_name)
    if earlier := _workbench_shown_for.get(shown_for):
        workbench.take_over(earlier)
        atexit.unregister(earlier.close_session)
    _workbench_shown_for[shown_for] = workbench
    atexit.register(workbench.close_session)  # runs when the kernel is shut down, e.g. after a logout
    return workbench.view
