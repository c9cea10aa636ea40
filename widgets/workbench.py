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

from evalkit.classification.schema import ClassificationOutput, DocumentType, normalised
from evalkit.documents.file import digest
from evalkit.documents.mupdf import library
from evalkit.documents.render import PagePictures
from evalkit.documents.search import occurrences
from evalkit.errors import CaseTaken, DocumentError, EvalkitError, NotFound, StoreError, UsageError
from evalkit.grounding import Locator
from evalkit.grounding.words import english
from evalkit.review.desk import Case, Desk, Submitted
from evalkit.review.draft import Draft
from evalkit.review.field_case import FieldCase
from evalkit.review.fields import checked, field_of, parted
from evalkit.review.ground_truth import Outcome
from evalkit.review.packet import base_of
from evalkit.review.queue import QueueView
from evalkit.review.roles import Role
from evalkit.review.template_case import TemplateReview
from evalkit.statements.template import StatementTemplate
from widgets.assets import css, esm
from widgets.case_panel import CasePanel, described, marks_of, style_of, surroundings
from widgets.fault_panel import FaultPanel
from widgets.field_panel import FieldPanel, described_fields, ribbon, state, where
from widgets.page_pane import PagePane, evidence_pages
from widgets.queue_panel import QueuePanel
from widgets.segment_editor import SegmentEditor
from widgets.template_panel import (
    TemplatePanel,
    choices_of,
    counted,
    described_template,
    frames_of,
    left_of,
    rows_of,
    sums_of,
)
from widgets.template_panel import ribbon as template_ribbon
from widgets.template_panel import where as template_where

log = logging.getLogger("evalkit.widgets")

Message = dict[str, Any]
_Drawn = tuple[int, int, DocumentType | None]
"""First and last page of a segment, and its type."""

_THUMBNAILS_AT_ONCE = 40
"""So many are drawn before the next press is heard; the page asks in portions of this size."""


class Bar(anywidget.AnyWidget):
    """The bar on top, and the pulse between page and kernel."""

    _esm = esm("workbench")
    _css = css("workbench", with_theme=True)

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


def guarded(answer: Callable[[Workbench, Message], None]) -> Callable[[Workbench, Message], None]:
    """Whatever goes wrong behind a press is said in plain words; the trace goes to the log without any value."""

    @functools.wraps(answer)
    def safely(self: Workbench, message: Message) -> None:
        try:
            answer(self, message)
        except CaseTaken as error:
            self.tell(f"This case is {error.message}. Your draft is kept.")
        except NotFound as error:
            self.tell(f"{_PLAIN.get(error.code, error)} (error {_logged(error)})")
        except StoreError as error:
            self.tell(f"{error} (error {_logged(error)})")
        except EvalkitError as error:
            self.tell(str(error))
        except Exception as error:  # noqa: BLE001 - a press must never end in silence
            self.tell(f"Something went wrong (error {_logged(error)}). What was shown as saved is saved; try again.")

    return safely


def _logged(error: Exception) -> str:
    """Write where it went wrong into the log, without any value; the id to find it by."""
    error_id = secrets.token_hex(4)
    trace = "".join(traceback.format_tb(error.__traceback__))  # frames only: a message may quote the document
    log.error("error %s: %s\n%s", error_id, type(error).__name__, trace)
    return error_id


class Workbench:
    """One expert in one browser tab."""

    def __init__(self, output: Path | str, reviewer: str, *, served: bool = False) -> None:
        """``served``: behind the login of `evalkit review`, with the browser's whole window."""
        self._output = output
        self._reviewer = reviewer
        self._desk: Desk | None = None
        self._tab = ""
        self._case: Case | None = None
        self._draft: Draft | None = None
        self._is_turned = False
        self._pictures: PagePictures | None = None
        self._fault = ""
        self._openings = 0
        self._is_taken = False
        """Whether the last beat found the claim in other hands."""
        self._active = 0.0
        self._said: list[Draft] = []
        """What the expert said before each change, newest last: for undoing."""
        self._moved = ""
        """The edge that was moved last, whose further moves are the same change."""
        self._read: StatementTemplate | None = None
        """The template whose rows are on screen."""
        self._again: Message = {}
        """What to try again after a fault."""
        self._view = QueueView()
        self._bar = Bar(reviewer=reviewer, can_log_out=served)
        self._queue = QueuePanel()
        self._page = PagePane()
        self._panel = CasePanel()
        self._fields = FieldPanel()
        self._template = TemplatePanel()
        self._unfinished = ""
        """The field whose value is being typed, or was refused: nothing is decided before that has ended."""
        self._editor = SegmentEditor()
        self._broken = FaultPanel()
        self._stage = ipywidgets.Box(layout=ipywidgets.Layout(width="100%", overflow="hidden"))
        self._stage.add_class("ek-stage").add_class("ek-desk")
        self._desk_view = self._arranged()
        panels = (self._panel, self._fields, self._template)
        for widget in (self._bar, self._queue, self._page, *panels, self._editor, self._broken):
            widget.on_msg(self._told)
        self.view = ipywidgets.VBox([self._bar, self._stage], layout=ipywidgets.Layout(width="100%", overflow="hidden"))
        if served:
            self.view.add_class("ek-whole-page")

    def _arranged(self) -> ipywidgets.Widget:
        layout = ipywidgets.Layout
        self._page.layout = layout(flex="1 1 0", min_width="0", height="100%")
        panels = layout(flex="1 1 0", min_height="0", width="100%")
        self._panel.layout = self._fields.layout = self._template.layout = panels
        self._right = ipywidgets.VBox(
            [self._panel, self._editor], layout=layout(width="456px", min_width="400px", height="100%")
        )
        self._right.add_class("ek-right")
        self._queue.layout = self._broken.layout = layout(width="100%", height="100%")
        return ipywidgets.HBox([self._page, self._right], layout=layout(width="100%", height="100%"))

    def tell(self, sentence: str) -> None:
        """Show what happened, where the expert is looking."""
        if self._case is None:
            self._queue.notice = sentence
        else:
            self._editor.problem = sentence

    def _told(self, widget: anywidget.AnyWidget, message: Message, _: object) -> None:
        """One message of a widget; one that counts its presses hears which of them has been answered."""
        self._heard(_whole_signs(message))
        if isinstance(widget, CasePanel | FieldPanel | TemplatePanel | PagePane | SegmentEditor) and isinstance(
            message.get("nth"), int
        ):
            widget.answered = message["nth"]

    @guarded
    def _heard(self, message: Message) -> None:
        """One press, or one beat of the pulse."""
        action = message.get("action")
        answer = _ANSWERS.get(action) if isinstance(action, str) else None
        if answer is None:
            return
        if action not in _WITHOUT_TAB and self._desk is None:
            return  # the page has not said yet which tab it is
        if "token" in message and (self._case is None or message["token"] != self._page.version):
            return  # pressed or painted on a case that is not open any more
        if action in _UNDOABLE and self._case is not None and self._case.is_for_reading:
            return  # its buttons are off
        if action in _CHANGES:
            self._editor.problem = ""
        before = self._draft if action in _UNDOABLE else None
        try:
            answer(self, message)
        finally:  # what could not be saved is on screen all the same, and can be undone
            if before is not None and self._draft is not None and _words(before) != _words(self._draft):
                edge = str(message.get("edge", ""))
                if not (edge and edge == self._moved and message.get("goes_on")):
                    self._said.append(before)
                self._moved = edge
                self._editor.undo = self._undoable()

    # ------------------------------------------------------------------------------------------ queue

    def hello(self, message: Message) -> None:
        """A page has been loaded: it says which tab it is, and which case it had open."""
        tab, case_id, self._active = str(message["tab"]), message.get("case"), 0.0
        # The same page once more keeps what it has: between giving back and taking a colleague could get the case.
        if self._desk is None or tab != self._tab or (self._case and self._case.packet.case_id != case_id):
            self.close()
        self._tab = tab
        self._forget_case()  # of a page before, or of another view of this notebook
        try:
            self._desk = self._desk or Desk(self._output, self._reviewer, tab)
            self._show_role(self._desk.role)
        except EvalkitError as error:
            self._show_fault(error, message)
            return
        self._stage.children = []
        if isinstance(case_id, str) and case_id:
            self._open(case_id)
        is_broken = self._stage.children == (self._broken,)
        if not is_broken and (self._case is None or self._case.is_completed):
            self._show_queue(self._queue.notice)
        self._bar.is_ready = True
        threading.Thread(target=_load, daemon=True).start()

    def ping(self, message: Message) -> None:
        """Answer the pulse, keep the claim, count the seconds."""
        self._bar.send({"kind": "pong", "tab": self._tab})
        active = float(message.get("active", 0.0))
        if message.get("tab") != self._tab:
            return  # of a view that another has covered: nobody works there
        since, self._active = max(active - self._active, 0.0), active
        if self._case is None or self._draft is None or self._case.is_for_reading:
            return
        try:
            self.desk.renew(self._case.packet.case_id)
        except CaseTaken:
            self._is_taken = True
            raise
        if self._is_taken:
            self._is_taken, self._editor.problem = False, ""
        self._draft = self._draft.model_copy(update={"seconds_active": self._draft.seconds_active + since})

    def show_queue(self, _: Message) -> None:
        """Leave the case; its draft stays, the claim is given back."""
        self._require_finished()
        if self._case is not None and not self._case.is_for_reading:
            self.desk.release(self._case.packet.case_id)
        self._show_queue()

    def leave(self, message: Message) -> None:
        """The tab is being closed or reloaded: nobody has to wait for its claim to expire."""
        is_here = message.get("tab") == self._tab  # in JupyterLab another tab may have taken over this notebook
        if is_here and self._case is not None and not self._case.is_for_reading:
            self.desk.release(self._case.packet.case_id)

    def close(self) -> None:
        """Nobody is at this desk any more, and nobody has to wait for its claims to expire."""
        desk, self._desk = self._desk, None
        if desk is not None:
            try:
                desk.close()
            except Exception as error:  # noqa: BLE001 - they expire, and a message may quote the document
                _logged(error)

    def _show_queue(self, notice: str = "") -> None:
        self._forget_case()
        queue = self.desk.queue(self._view)
        self._view = queue.view
        self._queue.show(queue, notice)
        with self._bar.hold_sync():
            self._bar.title = self._bar.subtitle = self._bar.case_id = ""
            self._show_role(queue.role)
            self._show_progress()
        self._stage.children = [self._queue]

    def _show_fault(self, error: EvalkitError, again: Message) -> None:
        """In place of what cannot be shown: what is and what to do; ``again`` is tried again."""
        self._again = again
        with self._broken.hold_sync():
            self._broken.what = _PLAIN.get(error.code, "This cannot be shown.")
            self._broken.reason, self._broken.error_id = str(error), _logged(error)
            self._broken.has_queue = self._desk is not None
        with self._bar.hold_sync():
            self._bar.title = self._bar.subtitle = self._bar.case_id = ""
        self._stage.children = [self._broken]

    def retry(self, _: Message) -> None:
        """Once more what could not be shown."""
        again, self._again = self._again, {}
        if again:
            self._heard(again)

    def _show_role(self, role: Role) -> None:
        self._bar.role = "" if role == "expert" else role

    def _show_progress(self) -> None:
        progress = self.desk.progress()
        self._bar.done, self._bar.total = progress.done_by_me, progress.left
        seconds = progress.median_seconds
        self._bar.median = "" if seconds is None else f"{int(seconds) // 60}:{int(seconds) % 60:02}"

    def change_view(self, message: Message) -> None:
        """Another part of the queue: searched, filtered, ordered, the next page."""
        if self._case is None:
            self._view = QueueView.of(message.get("view"))
            self._show_queue()

    def _forget_case(self) -> None:
        self._case = self._draft = None
        self._said = []
        self._moved = ""
        self._read = None
        self._unfinished = ""
        self._is_taken = False
        if self._pictures is not None:
            self._pictures.close()
            self._pictures = None

    def next_case(self, _: Message) -> None:
        """Open what should be looked at next."""
        if self._case is not None:
            return  # the second press of a double click
        case_id = self.desk.next_case()
        if case_id is None:
            self._show_queue("Nothing waits for you.")
        else:
            self._open(case_id)

    def open_case(self, message: Message) -> None:
        """Open a case, or take it over on purpose."""
        if self._case is None:  # else it is the second press of a double click
            self._open(str(message["case_id"]), take_over=bool(message.get("take_over")))

    # ------------------------------------------------------------------------------------------ a case

    def _open(self, case_id: str, *, take_over: bool = False) -> None:
        try:
            case = self.desk.open(case_id, take_over=take_over)
        except NotFound as error:
            self._show_queue(_PLAIN.get(error.code, str(error)))
            return
        except StoreError as error:
            self._forget_case()
            self._show_fault(error, {"action": "open", "case_id": case_id})
            return
        except EvalkitError as error:
            what = f"{case_id} is {error.message}." if isinstance(error, CaseTaken) else str(error)
            self._show_queue(what)
            return
        self._forget_case()
        self._case, self._draft = case, case.draft
        packet = case.packet
        self._pictures, self._fault = _pictures(packet.pdf_path, case.bundle.sha256)
        self._openings += 1
        token = f"{case_id}:{self._openings}"
        with self._bar.hold_sync():
            self._bar.case_id, self._bar.title = case_id, packet.pdf_filename
            pages = "1 page" if packet.total_pages == 1 else f"{packet.total_pages} pages"
            self._bar.subtitle = f"{pages} · {packet.review_reason}"
            self._show_progress()
        with self._editor.hold_sync():  # what was pressed for the last case must find no button of this one
            self._editor.token, self._editor.segments, self._editor.problem = "", [], ""
        evidence = () if case.is_blind else evidence_pages(packet)
        self._page.begin(token, case.bundle, self._segments(), evidence=evidence, seen=case.draft.pages_seen)
        if isinstance(case, TemplateReview):
            self._page.strips = []  # whose page it is does not matter to how it is read
        self._page.note = self._fault
        self._begin_panel(case, token)
        if self._right.children[0] is not self._item_panel:
            self._right.children = (self._item_panel, self._editor)
        self._editor.saved = f"Draft of {case.saved_at[11:19]} restored" if case.saved_at else ""
        self._stage.children = [self._desk_view]
        first = self._first(case)
        if case.saved_at:
            self._turn(case.draft.page, first)
        elif first:
            self._select(first)
        else:
            self._turn(1, None)
        self._refresh()

    def _begin_panel(self, case: Case, token: str) -> None:
        """What lists the things to look at begins with this case, and with nothing that was said in the last one."""
        with self._item_panel.hold_sync():
            if isinstance(case, FieldCase):
                self._fields.case = described_fields(case) | {"token": token}
                self._fields.selected, self._fields.checked = "", {}
            elif isinstance(case, TemplateReview):
                self._template.case = described_template(case) | {"token": token}
                self._template.selected = ""
            else:
                self._panel.case = described(case) | {"token": token}
                self._panel.selected, self._panel.context = "", {}
            self._tell_panel(case)

    def _first(self, case: Case) -> str | None:
        """What is open first: what was open last, else the worst."""
        if case.is_blind:
            return None
        if isinstance(case, FieldCase):
            return case.draft.issue_id or case.first()
        if isinstance(case, TemplateReview):
            last = case.draft.issue_id
            return last if last and case.lists(last, case.draft) else case.first()
        return case.draft.issue_id or next((one.issue_id for one in case.packet.open_issues), None)

    def select(self, message: Message) -> None:
        """Open an issue: its place is lit."""
        if not self.case.is_blind:
            self._select(str(message["issue_id"]))

    @property
    def _item_panel(self) -> CasePanel | FieldPanel | TemplatePanel:
        """What lists the things to look at in the open case."""
        if isinstance(self.case, TemplateReview):
            return self._template
        return self._fields if isinstance(self.case, FieldCase) else self._panel

    def _select(self, issue_id: str) -> None:
        if isinstance(self.case, FieldCase):
            page = self.case.place(issue_id).page
        elif isinstance(self.case, TemplateReview):
            page = self.case.place(issue_id, self.draft).page
        else:
            context = self.case.context(issue_id)
            page = context.page_found or context.issue.page or (context.segment.start_page if context.segment else 1)
            page = min(max(page, 1), self.case.packet.total_pages)
        self._turn(page, issue_id)
        self.draft_is(self.draft)

    def turn(self, message: Message) -> None:
        """Another page; the selected issue stays selected.

        It is kept on disk when it was painted: who leafs on must not wait for the disk.
        """
        page = int(message["page"])
        if 1 <= page <= self.case.packet.total_pages:
            self._turn(page, self._item_panel.selected or None, cached=bool(message.get("cached")))

    def _turn(self, page: int, issue_id: str | None, *, cached: bool = False) -> None:
        marks: list[dict[str, Any]] = []
        if issue_id and isinstance(self.case, FieldCase):
            place = self.case.place(issue_id)
            marks = marks_of(place.boxes, place.style)
            self._fields.selected = issue_id
        elif issue_id and isinstance(self.case, TemplateReview):
            place = self.case.place(issue_id, self.draft)
            marks = marks_of(place.boxes, place.style)
            self._template.selected = issue_id
        elif issue_id:
            context = self.case.context(issue_id)
            marks = marks_of(context.boxes, style_of(context.verdict))
            if self._panel.selected != issue_id:
                with self._panel.hold_sync():
                    self._panel.selected, self._panel.context = issue_id, surroundings(context)
        self._show_page(page, marks, issue_id or "", cached=cached)

    def _show_page(self, page: int, marks: list[dict[str, Any]], issue_id: str, *, cached: bool) -> None:
        if self._pictures is not None:
            self._page.turn(page, self._pictures.page, marks, issue_id, cached=cached)
        self._editor.page = page
        self._draft = self.draft.model_copy(update={"page": page, "issue_id": self._item_panel.selected or None})
        self._is_turned = True
        if isinstance(self.case, TemplateReview):
            self._show_reading(self.case)

    def show_evidence(self, message: Message) -> None:
        """A quote of the agent's claims: lit where it really stands."""
        page, snippet = int(message["page"]), str(message["snippet"])
        place = Locator(self.case.bundle).locate(snippet, page)
        target = place.page or page
        if 1 <= target <= self.case.packet.total_pages:
            self._show_page(target, marks_of(place.boxes, style_of(place.verdict)), "", cached=False)
            self.draft_is(self.draft)
        if place.page is None:
            self.tell("This quote does not stand anywhere in the document.")

    def send_thumbnails(self, message: Message) -> None:
        """The ribbon shows pages whose small pictures it does not have."""
        if self._pictures is not None:
            self._page.send_pictures("thumbnail", _pages_of(message), self._pictures.thumbnail)

    def send_previews(self, message: Message) -> None:
        """Pictures that no press waits for: of the contact sheet, or of the pages beside the one on screen."""
        if self._pictures is not None:
            if message.get("kind") == "page":
                self._page.send_pictures("page", _pages_of(message), self._pictures.page)
            else:
                self._page.send_pictures("preview", _pages_of(message), self._pictures.preview)

    def find(self, message: Message) -> None:
        """Where a text stands in the document."""
        text = str(message["text"])
        self._page.show_hits(text, occurrences(self.case.bundle, text))

    # ------------------------------------------------------------------------------------------ the draft

    def painted(self, message: Message) -> None:
        """A page was really on screen: it counts as seen, and so does the issue whose place was lit."""
        draft = self.draft.seen_page(int(message["page"]))
        if isinstance(self.case, FieldCase | TemplateReview):
            if name := message.get("issue"):
                draft = self.case.seen(draft, str(name), int(message["page"]))
        elif issue_id := message.get("issue"):
            context = self.case.context(str(issue_id))
            where = context.page_found or context.issue.page
            if where is None or where == message["page"] or not 1 <= where <= self.case.packet.total_pages:
                draft = draft.seen_evidence(str(issue_id))
        if draft != self.draft or self._is_turned:
            self.draft_is(draft)

    def _segment_of(self, message: Message) -> int:
        """The position of the segment that the page of the press is in, as the segments are now."""
        page = int(message["page"])
        return next(at for at, one in enumerate(self.draft.segments) if one.start_page <= page <= one.end_page)

    def set_type(self, message: Message) -> None:
        """The type of a segment."""
        self.draft_is(self.draft.with_type(self._segment_of(message), DocumentType(message["type"])))

    def split(self, message: Message) -> None:
        """A new document starts on this page, or does not."""
        self.draft_is(self.draft.split_at(int(message["page"])))

    def start_at(self, message: Message) -> None:
        """This segment starts here."""
        self.draft_is(self.draft.start_at(int(message["segment"]), int(message["page"])))

    def end_at(self, message: Message) -> None:
        """This segment ends here."""
        self.draft_is(self.draft.end_at(int(message["segment"]), int(message["page"])))

    def set_flag(self, message: Message) -> None:
        """A flag of a segment, on or off."""
        self.draft_is(self.draft.with_flag(self._segment_of(message), message["flag"]))

    def set_segment_note(self, message: Message) -> None:
        """The expert's words about a segment."""
        self.draft_is(self.draft.with_segment_note(self._segment_of(message), str(message["text"])))

    def set_issue_note(self, message: Message) -> None:
        """The expert's words about an issue."""
        self.draft_is(self.draft.with_issue_note(self._known(message["issue_id"]), str(message["text"])))

    def _known(self, issue_id: object) -> str:
        """The id of one of the case's issues. UsageError for any other: nothing on screen could take it back."""
        if all(one.issue_id != issue_id for one in self.case.packet.issues):
            raise UsageError("this case has no such issue", code="ISSUE-UNKNOWN", remedy="Reload the page.")
        return str(issue_id)

    # ------------------------------------------------------------------------------------------ fields

    @property
    def _field_case(self) -> FieldCase:
        """The open case. UsageError where it is not about fields."""
        if not isinstance(self.case, FieldCase):
            raise UsageError("this case is not about fields", code="FIELD-UNKNOWN", remedy="Reload the page.")
        return self.case

    def edit_field(self, message: Message) -> None:
        """A value begins to be typed, or is given up."""
        self._field_case.agents_value(str(message["field"]))
        self._unfinished = str(message["field"]) if message.get("is_open") else ""
        self._fields.checked = {}

    def check_field(self, message: Message) -> None:
        """Whether what is typed so far is written as the field's values are."""
        key, text = str(message["field"]), str(message["text"])
        case = self._field_case
        case.agents_value(key)
        at, name = parted(key)
        read = checked(field_of(case.agents[at], name), text)
        self._fields.checked = {"field": key, "text": text, "value": read.value, "problem": read.problem}

    def set_field(self, message: Message) -> None:
        """The value that was typed; one that is not in the field's format stays in its line."""
        key, text = str(message["field"]), str(message["text"])
        self.check_field(message)
        if self._fields.checked["problem"]:
            self._unfinished = key
            return
        self._unfinished = ""
        self.draft_is(self._field_case.with_answer(self.draft, key, text))
        self._fields.checked = {"field": key, "text": text, "is_kept": True}

    def set_field_status(self, message: Message) -> None:
        """The field is there as the agent read it, is not there, or cannot be told."""
        key, status = str(message["field"]), str(message["status"])
        case = self._field_case
        agents, now = case.agents_value(key), case.answered(self.draft, key)
        value = None if status == "not_present" else now.value or agents.value
        self.draft_is(case.with_answer(self.draft, key, {"status": status, "value": value}))

    def _require_finished(self) -> None:
        """UsageError while a value is being typed: nobody may take for submitted or kept what is not."""
        if self._unfinished and isinstance(self._case, FieldCase):
            raise UsageError(
                "a value that you have typed is not kept yet",
                code="FIELD-UNFINISHED",
                remedy="Press Enter in its line, or Esc to leave the field as it was.",
            )

    # ------------------------------------------------------------------------------------------ a statement template

    @property
    def _template_case(self) -> TemplateReview:
        """The open case. UsageError where it is not about a template."""
        if not isinstance(self.case, TemplateReview):
            raise UsageError("this case is not about a template", code="TEMPLATE-UNKNOWN", remedy="Reload the page.")
        return self.case

    def move_edge(self, message: Message) -> None:
        """An edge of a region or column goes elsewhere; what it reads then is shown at once."""
        self.draft_is(self._template_case.with_edge(self.draft, str(message["edge"]), float(message["to"])))

    def add_box(self, message: Message) -> None:
        """A page that the template passes over has rows too."""
        self.draft_is(self._template_case.with_box(self.draft, int(message["page"])))

    def name_column(self, message: Message) -> None:
        """A column is another one than the agent took it for."""
        self.draft_is(self._template_case.with_column(self.draft, int(message["column"]), str(message["name"])))

    def choose(self, message: Message) -> None:
        """Signs, balances or dates are read otherwise."""
        self.draft_is(self._template_case.with_choice(self.draft, str(message["what"]), str(message["value"])))

    def explain_sums(self, message: Message) -> None:
        """Why the template may be approved although sums are not met."""
        if not self._template_case.unmet(self.draft):
            self.tell("All sums are met: there is nothing to explain.")
            return
        self.draft_is(self.draft.with_unmet_sums(str(message["reason"])))

    def _show_reading(self, case: TemplateReview) -> None:
        """What the template reads, on the page of the draft."""
        draft, page = self.draft, self.draft.page
        reading = case.reading(draft)
        if self._read not in (None, reading.template) and not case.is_issue(self._template.selected):
            self._template.selected = self._page.issue_id = ""  # the rows are others now
            self._page.marks = []
        self._read = reading.template
        self._page.frames = frames_of(case, draft, page, is_locked=self._is_locked)
        with self._template.hold_sync():
            self._template.page = page
            self._template.place = (
                template_where(case, self._template.selected, draft) if self._template.selected else ""
            )
            self._template.sums = sums_of(reading) | {"reason": draft.unmet_sums}
            self._template.rows, self._template.left = rows_of(reading, page), left_of(reading)
            self._template.counted = counted(reading, page)
            self._template.has_box = bool(self._page.frames)
            self._template.template = choices_of(case, draft)
            self._template.seen = list(draft.evidence_seen)
            self._template.wanted = list(case.not_yet_seen(draft).issues)
            self._template.verdicts = {one.issue_id: {"verdict": one.verdict} for one in draft.issue_verdicts}
            self._template.notes = draft.issue_notes
            self._template.is_locked = self._is_locked

    @property
    def _is_locked(self) -> bool:
        """Whether the open case can only be read."""
        return self.case.is_for_reading or bool(self._fault)

    def take_opinion(self, message: Message) -> None:
        """One of two answers, as the expert's own."""
        name = message["opinion"]
        taken = next(one.draft for one in self.case.opinions if one.name == name and one.outcome != "undeterminable")
        own = {name: getattr(taken, name) for name in _OPINION}
        self.draft_is(self.draft.model_copy(update={**own, "is_redrawn": True, "is_type_chosen": True}))

    def apply_repair(self, _: Message) -> None:
        """What validating will repair is right: the issues that it mends are confirmed; pressed again, they are not."""
        verdict: Literal["confirmed"] | None = None if self._is_repair_applied() else "confirmed"
        draft = self.draft
        for issue_id in self._mended():
            draft = draft.with_verdict(issue_id, verdict)
        self.draft_is(draft)

    def _mended(self) -> list[str]:
        packet = self.case.packet
        return [issue.issue_id for issue in packet.open_issues if issue.auto_fixable] if packet.proposed_repairs else []

    def _is_repair_applied(self) -> bool:
        confirmed = {one.issue_id for one in self.draft.issue_verdicts if one.verdict == "confirmed"}
        return bool(self._mended()) and confirmed.issuperset(self._mended())

    def undo(self, _: Message) -> None:
        """The last change; in a case that nobody has touched, the submission before it."""
        self._require_finished()
        if self._said:
            before, self._moved = self._said.pop(), ""
            seen = {name: getattr(self.draft, name) for name in _SEEN}
            self.draft_is(before.model_copy(update=seen))
        elif self._is_touched():
            self.tell("There is nothing to undo.")
        else:
            case_id = self.desk.undo_submitted()
            if self._case is not None and not self._case.is_for_reading:
                self.desk.release(self._case.packet.case_id)
            self._bar.notice = f"Reopened: {case_id}"
            self._open(case_id)

    def set_dominant(self, message: Message) -> None:
        """The type of the whole document."""
        self.draft_is(self.draft.with_dominant(DocumentType(message["type"])))

    def set_notes(self, message: Message) -> None:
        """The expert's words."""
        self.draft_is(self.draft.with_notes(str(message["text"])))

    def set_verdict(self, message: Message) -> None:
        """An issue is confirmed, dismissed, or neither."""
        self.draft_is(self.draft.with_verdict(self._known(message["issue_id"]), message["verdict"], ""))

    def see_mixture(self, _: Message) -> None:
        """The shares were opened: validating may vouch for them."""
        self.draft_is(self.draft.model_copy(update={"mixture_seen": True}))

    def set_mixture(self, message: Message) -> None:
        """The shares of the whole document; what they do not add up to 100 is put right in proportion."""
        percent = {DocumentType(kind): max(float(value), 0.0) for kind, value in message["percent"].items()}
        if sum(percent.values()) <= 0:
            self.tell("The shares cannot all be 0.")
            return
        shares = normalised(percent.values())
        self.draft_is(self.draft.with_mixture(dict(zip(percent, shares, strict=True))))

    def draft_is(self, draft: Draft) -> None:
        """Keep the draft on disk, then show it: "saved" is the answer of the write."""
        self._draft, self._is_turned = draft, False
        try:
            if not self.case.is_for_reading:
                self._editor.saved = "Not saved"
                saved_at = self.desk.save_draft(self.case.packet.case_id, draft)
                self._editor.saved = f"Draft saved {saved_at[11:19]}"
        finally:
            self._refresh()

    def _refresh(self) -> None:
        case, draft = self.case, self.draft
        if isinstance(case, TemplateReview):
            why_not = case.why_not_approve(draft)
        else:
            why_not = case.why_not_submit(draft) if case.is_blind else case.why_not_validate(draft)
        segments = self._segments()
        if self._page.segments != segments:
            self._page.segments = segments
        with self._editor.hold_sync():
            self._editor.token = self._page.version
            self._editor.kind = case.packet.kind
            is_template = isinstance(case, TemplateReview)
            self._editor.unmet = case.unmet(draft) if isinstance(case, TemplateReview) else ""
            self._editor.unmet_sums = draft.unmet_sums
            self._editor.segments = segments
            self._editor.dominant = draft.dominant_type.value if draft.dominant_type else None
            self._editor.mixture = [
                {"type": kind, "percent": round(100 * share, 2)} for kind, share in case.mixture(draft)
            ]
            self._editor.notes = draft.notes
            self._editor.is_changed = case.is_changed(draft)
            self._editor.is_blind = case.is_blind
            self._editor.is_locked = self._is_locked
            self._editor.can_correct = (
                why_not is None and (case.is_blind or case.is_changed(draft))
                if case.is_blind or is_template
                else case.is_changed(draft) or bool(case.refusal() and draft.notes.strip())
            )
            self._editor.why_not = self._fault or why_not or ""
            self._editor.issue_id, self._editor.issue_notes = self._open_issue(), draft.issue_notes
            self._editor.changes = [] if case.is_blind else list(case.changes(draft))
            self._editor.can_ask = not case.is_for_reading and base_of(case.packet.case_id) == case.packet.case_id
            self._editor.undo = self._undoable()
        self._tell_panel(case)

    def _tell_panel(self, case: Case) -> None:
        """What the expert has said and seen so far, beside what it is about."""
        draft = self.draft
        if isinstance(case, TemplateReview):
            self._show_reading(case)
        elif isinstance(case, FieldCase):
            with self._fields.hold_sync():
                self._fields.place = where(case, self._fields.selected, draft) if self._fields.selected else ""
                self._fields.values = state(case, draft)
                self._fields.seen = [*draft.fields_seen, *draft.evidence_seen]
                self._fields.wanted = case.must_see_items(draft)
                self._fields.verdicts = {one.issue_id: {"verdict": one.verdict} for one in draft.issue_verdicts}
                self._fields.notes = draft.issue_notes
                self._fields.is_locked = self._is_locked
        else:
            with self._panel.hold_sync():
                self._panel.seen = list(draft.evidence_seen)
                self._panel.verdicts = {one.issue_id: {"verdict": one.verdict} for one in draft.issue_verdicts}
                self._panel.notes = draft.issue_notes
                self._panel.is_repair_applied = self._is_repair_applied()
                self._panel.is_locked = self._is_locked

    def _open_issue(self) -> str:
        """The issue that a note would be about; empty for none."""
        if isinstance(self.case, TemplateReview):
            return self._template.selected if self.case.is_issue(self._template.selected) else ""
        if not isinstance(self.case, FieldCase):
            return self._panel.selected
        issues = self.case.item(self._fields.selected).issues if self._fields.selected else ()
        return issues[0].issue_id if issues else ""

    def _undoable(self) -> str:
        if self._said:
            return "Undo the last change"
        return "Reopen the case that you submitted last" if self.desk.can_undo and not self._is_touched() else ""

    def _is_touched(self) -> bool:
        """Whether the expert has said anything in this case, now or in a draft before."""
        case, draft = self.case, self.draft
        first = Draft.blank(draft.total_pages) if case.is_blind else Draft.of(case.packet)
        return bool(draft.notes) or _words(draft) != _words(first)

    def _segments(self) -> list[dict[str, Any]]:
        if isinstance(self.case, FieldCase):
            return ribbon(self.case)
        if isinstance(self.case, TemplateReview):
            return template_ribbon(self.case, self.draft)
        said = {} if self.case.is_blind else _said_by_agent(self.case.packet.classification)
        return [
            {
                "start": one.start_page,
                "end": one.end_page,
                "type": one.dominant_type,
                "flags": [flag.flag for flag in self.draft.flags if flag.start_page == one.start_page],
                "note": self.draft.segment_notes.get(one.start_page, ""),
                **said.get((one.start_page, one.end_page, one.dominant_type), {}),
            }
            for one in self.draft.segments
        ]

    # ------------------------------------------------------------------------------------------ the decision

    def validate(self, _: Message) -> None:
        """The agent is right, after the offered repairs."""
        self._submit(validate=True)

    def correct(self, _: Message) -> None:
        """The agent is wrong: what the expert says instead."""
        self._submit()

    def undeterminable(self, message: Message) -> None:
        """Nobody can tell, for a reason."""
        self._submit(undeterminable=str(message["reason"]))

    def defer(self, message: Message) -> None:
        """Not now, for a reason: the case waits behind all others."""
        self._require_finished()
        name = self.case.packet.pdf_filename
        self.desk.defer(self.case.packet.case_id, self.draft, str(message["reason"]))
        self._bar.notice = f"Deferred: {name}"
        self._go_on()

    def ask_second(self, message: Message) -> None:
        """The expert's answer, and a second expert's beside it."""
        self._require_finished()
        done = self.desk.ask_second(self.case.packet.case_id, self.draft, str(message["reason"]))
        self._bar.notice = self._saved(done) + ("" if done.planted else " · a second expert is asked")
        self._go_on(done.planted)

    def _submit(self, *, validate: bool = False, undeterminable: str | None = None) -> None:
        self._require_finished()
        case_id = self.case.packet.case_id
        done = self.desk.submit(case_id, self.draft, validate=validate, undeterminable=undeterminable)
        self._bar.notice = self._saved(done)
        self._go_on(done.planted)

    def _saved(self, done: Submitted) -> str:
        """What is said of a decision: when it was saved, and what the machines had said, which nobody had seen yet."""
        outcome = _TEMPLATE_OUTCOMES[done.review.outcome] if self.case.packet.template_case else done.review.outcome
        parts = [f"Saved {done.saved_at[11:19]}: {self.case.packet.pdf_filename} {outcome}"]
        if done.agrees is not None:
            parts.append("the agent said the same" if done.agrees else f"the agent said {done.agent or 'cannot tell'}")
        if done.production:
            parts.append(f"production said {done.production}")
        return " · ".join(parts)

    def _go_on(self, planted: str = "") -> None:
        """The next case; what was planted in the last one is read first, in the queue."""
        following = None if planted else self.desk.next_case()
        if following is None:
            self._show_queue(planted)
        else:
            self._open(following)

    # ------------------------------------------------------------------------------------------ what is open

    @property
    def desk(self) -> Desk:
        """The expert's desk. RuntimeError before the page has said hello."""
        if self._desk is None:
            raise RuntimeError("no desk yet")
        return self._desk

    @property
    def case(self) -> Case:
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


_ANSWERS: dict[str, Callable[[Workbench, Message], None]] = {
    "hello": Workbench.hello,
    "ping": Workbench.ping,
    "leave": Workbench.leave,
    "queue": Workbench.show_queue,
    "refresh": Workbench.show_queue,
    "next": Workbench.next_case,
    "open": Workbench.open_case,
    "view": Workbench.change_view,
    "select": Workbench.select,
    "page": Workbench.turn,
    "evidence": Workbench.show_evidence,
    "thumbnails": Workbench.send_thumbnails,
    "previews": Workbench.send_previews,
    "find": Workbench.find,
    "painted": Workbench.painted,
    "type": Workbench.set_type,
    "split": Workbench.split,
    "start_at": Workbench.start_at,
    "end_at": Workbench.end_at,
    "dominant": Workbench.set_dominant,
    "notes": Workbench.set_notes,
    "verdict": Workbench.set_verdict,
    "flag": Workbench.set_flag,
    "segment_note": Workbench.set_segment_note,
    "issue_note": Workbench.set_issue_note,
    "field_edit": Workbench.edit_field,
    "field_check": Workbench.check_field,
    "field_value": Workbench.set_field,
    "field_status": Workbench.set_field_status,
    "edge": Workbench.move_edge,
    "box": Workbench.add_box,
    "column": Workbench.name_column,
    "choice": Workbench.choose,
    "unmet_sums": Workbench.explain_sums,
    "take": Workbench.take_opinion,
    "repair": Workbench.apply_repair,
    "undo": Workbench.undo,
    "retry": Workbench.retry,
    "mixture": Workbench.set_mixture,
    "mixture_seen": Workbench.see_mixture,
    "validate": Workbench.validate,
    "correct": Workbench.correct,
    "undeterminable": Workbench.undeterminable,
    "defer": Workbench.defer,
    "second": Workbench.ask_second,
}
#: What is, for a clinician; the error's own words are for whoever looks after the server.
_PLAIN = {
    "CASE-NOT-FOUND": "This case is no longer there.",
    "STORE-NEWER": "This case was written by a newer evalkit than the one that runs here.",
    "STORE-TORN": "A file of this case is damaged.",
    "STORE-INDEX": "The queue cannot be opened: it is locked or damaged.",
    "STORE-FULL": "The disk is full: nothing can be saved.",
    "STORE-FAILED": "Nothing can be read or saved at the moment.",
    "OUTPUT-FOLDER": "The folder with the cases is not there, or is another one.",
}
#: What became of a template, in the words of its buttons.
_TEMPLATE_OUTCOMES: dict[Outcome, str] = {
    "validated": "approved",
    "corrected": "approved with changes",
    "undeterminable": "rejected",
    "reopened": "reopened",
}
_WITHOUT_TAB = frozenset({"hello", "retry"})
_UNDOABLE = frozenset(
    [
        "type",
        "split",
        "start_at",
        "end_at",
        "dominant",
        "verdict",
        "flag",
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
_CHANGES = frozenset(_ANSWERS) - {
    *("hello", "ping", "leave", "painted", "thumbnails", "previews", "find", "field_check"),
}


#: What of a draft is what the expert saw, not what they say: undoing leaves it.
_SEEN = ("page", "issue_id", "pages_seen", "evidence_seen", "fields_seen", "seconds_active", "mixture_seen", "notes")
#: What of an opinion is taken over.
_OPINION = ("segments", "dominant_type", "flags", "mixture", "fields", "template", "unmet_sums")


def _pages_of(message: Message) -> list[int]:
    """The pages that a message asks for, each once."""
    return list(dict.fromkeys(int(page) for page in message["pages"]))[:_THUMBNAILS_AT_ONCE]


def _whole_signs(value: Any) -> Any:
    """What a browser sent, without halves of signs, which no file can hold."""
    if isinstance(value, str):
        return value.encode(errors="ignore").decode()
    if isinstance(value, dict):
        return {name: _whole_signs(inner) for name, inner in value.items()}
    return [_whole_signs(inner) for inner in value] if isinstance(value, list) else value


def _words(draft: Draft) -> dict[str, Any]:
    return draft.model_dump(exclude=set(_SEEN))


def _said_by_agent(answer: ClassificationOutput | None) -> dict[_Drawn, dict[str, Any]]:
    """What the agent says of each of its segments; one that the expert has changed is not among them."""
    said: dict[_Drawn, dict[str, Any]] = {}
    for one in answer.segments if answer else ():
        row = next((row for row in one.segment_composition if row.document_type == one.dominant_type), None)
        if row is not None:
            said[one.start_page, one.end_page, one.dominant_type] = {
                "confidence": row.confidence,
                "presence": row.presence_level.value,
            }
    return said


def _pictures(path: str, sha256: str) -> tuple[PagePictures | None, str]:
    """The PDF's pages as pictures, or why there are none."""
    try:
        if digest(Path(path)) != sha256:
            return None, "The PDF has changed since it was read. Run it again before deciding."
        return PagePictures(Path(path)), ""
    except DocumentError as error:
        return None, f"The pages cannot be shown: {error}"


def _load() -> None:
    """Load what the first case needs and the queue does not: half a second, while the expert chooses a case."""
    library()
    english()


def show(output: Path | str | None = None, reviewer: str | None = None) -> ipywidgets.Widget:
    """The workbench, to be shown as a cell's result.

    Behind ``evalkit review`` the server says who the reviewer is and where the output lies; in JupyterLab both are
    arguments. UsageError where nobody says who reviews.
    """
    served = os.environ.get("HTTP_X_REVIEWER")
    is_voila = os.environ.get("SERVER_SOFTWARE", "").startswith("voila")
    name = served if is_voila else reviewer or os.environ.get("JUPYTERHUB_USER")
    if not name:  # plain Voilà has no login: whoever finds the address would be the reviewer
        raise UsageError(
            "nobody has said who reviews",
            code="REVIEWER-NAME",
            remedy="Start `evalkit review`, or in JupyterLab say show('output', reviewer='dr_lee').",
        )
    where = os.environ.get("EVALKIT_OUTPUT") if is_voila else output
    workbench = Workbench(where or "output", name, served=is_voila)
    atexit.register(workbench.close)  # as the kernel is shut down: a logout, a restart
    return workbench.view
