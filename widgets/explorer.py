"""Explorer of a study in a notebook: figures, and the pages behind them.

The counts are made by ``evalkit.evaluation.exploring``; the browser gets only what it shows. The messages are listed in
``widgets/README.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import ipywidgets
import traitlets

from evalkit.classification.document_result import DocumentResult
from evalkit.core.clocks import format_zulu_now
from evalkit.core.document_cache import forget_document_texts
from evalkit.documents.bundle import DocumentBundle
from evalkit.documents.render import PdfPageRenderer
from evalkit.documents.search import find_text_in_document
from evalkit.errors import EvalkitError, UsageError
from evalkit.evaluation.exploring import COMPARISONS, FILTERS, StudyExplorer, list_page_differences
from evalkit.evaluation.private_files import write_private_csv
from evalkit.evaluation.sampling import draw_and_queue_sample
from evalkit.evaluation.study import DocumentLabels, DocumentRecord, Study, read_study
from evalkit.review.page_view import Highlight, collect_highlights
from evalkit.review.shown_documents import read_bundle_as_shown, read_result_as_shown
from evalkit.settings import Settings
from evalkit.store import open_output_folder
from widgets.case_panel import build_page_marks
from widgets.page_pane import PagePane, open_page_images
from widgets.screen_widget import (
    PressCounter,
    find_running_cell_id,
    log_traceback_and_create_id,
)

EXPORT_FILE: Final = "explored_documents.csv"
_HEADING_CAPTION = "The page's heading. Nothing on this page was quoted or doubted."

Message = Mapping[str, Any]


class ExplorerPanel(PressCounter, scripts=("explorer",), styles=("theme", "explorer")):
    """Panel of figures, filters and documents; or of the open document."""

    answer = traitlets.Dict(help="The data shown for the current filters, see ``StudyExplorer.answer``.")
    filters = traitlets.Dict(help="The filters, all of which a listed document matches: property → value.")
    comparison = traitlets.Unicode(
        "program", help="What the matrix compares: ``program`` or ``production`` with the truth, or ``both``."
    )
    has_production = traitlets.Bool(
        default_value=False, help="True if any document has a label of the production classifier."
    )
    document = traitlets.Dict(
        help="The open document: ``{doc_id, file, answers, differences, place, page, captions}``; empty for none."
    )
    simulated = traitlets.Unicode(help="A sentence if programs gave some of the reviews; else empty.")
    notice = traitlets.Unicode(help="A sentence about what was written or drawn.")
    problem = traitlets.Unicode(help="The last problem and its remedy, in one sentence.")


class Explorer:
    """The explorer of one study; a notebook cell shows it as a widget."""

    def __init__(self, study: Study) -> None:
        self._counter = StudyExplorer(study)
        self._document_by_id = {document.doc_id: document for document in study.documents}
        self._bundle: DocumentBundle | None = None
        self._images: PdfPageRenderer | None = None
        self._highlights: dict[int, list[Highlight]] = {}
        self._card: dict[str, Any] = {}  # what ``document`` has on every page
        self._opened_count = 0
        count = study.simulated_review_count
        self.panel = ExplorerPanel(
            has_production=any(document.production_labels for document in study.documents),
            simulated=f"{count} of {len(study.reviews)} reviews were made by a program: these figures say nothing about quality."
            if count
            else "",
        )
        self.page_pane = PagePane()
        self.panel.on_msg(self._on_message)
        self.page_pane.on_msg(self._on_message)
        self._show_answer(0)
        self.view = ipywidgets.Box([self.panel])
        self.view.add_class("ek-explorer-frame")

    def take_over(self, earlier: Explorer) -> None:
        """Show the state of an earlier explorer of the same cell, and close that one."""
        panel, document = earlier.panel, earlier.panel.document
        self.choose({"filters": panel.filters, "comparison": panel.comparison, "page": panel.answer.get("page", 0)})
        if document.get("doc_id") in self._document_by_id:
            self.dispatch_message({"action": "document", "doc_id": document["doc_id"]})
            self.dispatch_message({"action": "page", "page": document["page"]})
        earlier.close_document({})
        for widget in (earlier.view, panel, earlier.page_pane):
            widget.close()

    def _repr_mimebundle_(self, **options: Any) -> Any:
        return self.view._repr_mimebundle_(**options)

    @property
    def selection(self) -> Any:
        """The filtered documents as a table, like ``Study.to_frame``."""
        return self._counter.study.to_frame()[self._counter.select(self.panel.filters)].reset_index(drop=True)

    def _on_message(self, widget: PressCounter, message: Message, _: object) -> None:
        self.dispatch_message(message)
        if isinstance(message.get("nth"), int):
            widget.answered = message["nth"]

    def dispatch_message(self, message: Message) -> None:
        """Handle one message of the browser; show errors as sentences."""
        handle = EXPLORER_ACTIONS.get(str(message.get("action")))
        is_stale = "token" in message and message["token"] not in ("", self.page_pane.version)
        if handle is None or is_stale:
            return
        self.panel.problem = ""
        try:
            handle(self, message)
        except EvalkitError as error:
            self.panel.problem = str(error)
        except Exception as error:  # noqa: BLE001 - a press must never end in silence
            self.panel.problem = f"Something went wrong (error {log_traceback_and_create_id(error)}). Please try again."

    # ------------------------------------------------------------------------------------------ figures

    def choose(self, message: Message) -> None:
        """Recompute the figures for other filters, comparison or list page."""
        filters = {name: str(value) for name, value in dict(message["filters"]).items() if name in FILTERS}
        comparison = str(message["comparison"])
        with self.panel.hold_sync():
            self.panel.notice = ""
            self.panel.filters, self.panel.comparison = filters, comparison if comparison in COMPARISONS else "program"
            self._show_answer(int(message.get("page", 0)))

    def _show_answer(self, page: int) -> None:
        self.panel.answer = self._counter.answer(self.panel.filters, self.panel.comparison, page)

    def export_list(self, _: Message) -> None:
        """Write the filtered documents as a private CSV file."""
        output = self._counter.study.output
        path = (output if isinstance(output, Path) else Path.cwd()) / EXPORT_FILE
        write_private_csv(self.selection, path)
        self.panel.notice = (
            f"Wrote {self.panel.answer['matching']} documents to {path}. In Python: the explorer's `selection`."
        )

    def draw_sample(self, message: Message) -> None:
        """Draw some of the filtered documents for review and queue them."""
        settings = Settings.load()
        draw = draw_and_queue_sample(
            open_output_folder(self._counter.study.output, settings.database),
            int(message["count"]),
            "type",
            seed=settings.audit_seed,
            drawn_at=format_zulu_now(),
            foreign_types=settings.foreign_types,
            doc_ids=set(self._counter.list_doc_ids(self.panel.filters, self.panel.comparison)),
        )
        count = sum(len(stratum.drawn) for stratum in draw.strata)
        self.panel.notice = (
            f"Drew {count} of the chosen documents for review. They wait in the experts' queue; read the study again to see "
            "their answers here."
        )

    # ------------------------------------------------------------------------------------------ a document

    def open_document(self, message: Message) -> None:
        """Open a document at the first page on which the compared answers differ."""
        document = self._document_by_id[str(message["doc_id"])]
        output_folder = open_output_folder(self._counter.study.output)
        result = read_result_as_shown(output_folder, document.doc_id)
        if not isinstance(result, DocumentResult):
            raise UsageError(
                f"{document.filename} has no pages to show: {result.error.message}",
                code=result.error.code,
                remedy=result.error.remedy,
            )
        self._close_images()
        self._bundle = read_bundle_as_shown(output_folder, document.doc_id)
        self._images, fault = open_page_images(output_folder, self._bundle)
        self._highlights = collect_highlights(result, self._bundle)
        differences = list_page_differences(document, self.panel.comparison)
        pages = [difference.page for difference in differences] or sorted(self._highlights) or [1]
        self._opened_count += 1
        self.page_pane.show_document(
            f"{document.doc_id}:{self._opened_count}",
            self._bundle,
            _list_ribbon_segments(document, self._bundle.total_pages),
            evidence_pages=sorted({*pages, *self._highlights}),
        )
        self.page_pane.note = fault
        order = self._counter.list_doc_ids(self.panel.filters, self.panel.comparison)
        position = order.index(document.doc_id) if document.doc_id in order else 0
        self._card = {
            "doc_id": document.doc_id,
            "file": document.filename,
            "decision": document.decision_reason,
            "answers": _describe_answers(document),
            "differences": [difference._asdict() for difference in differences],
            "place": [position + 1, len(order)],
            "previous": order[position - 1] if position else "",
            "next": order[position + 1] if position + 1 < len(order) else "",
        }
        self._show_page(next((page for page in pages if self._highlights.get(page)), pages[0]))
        self.view.children = [self.panel, self.page_pane]

    def close_document(self, _: Message) -> None:
        """Close the document and show the figures again."""
        self._close_images()
        self.view.children = [self.panel]
        self.panel.document = {}
        self.page_pane.forget_case()

    def _close_images(self) -> None:
        if self._images is not None:
            self._images.close()
        self._images, self._bundle, self._highlights, self._card = None, None, {}, {}
        forget_document_texts()

    def turn_page(self, message: Message) -> None:
        """Show another page of the open document with its highlights."""
        if self._bundle is not None and 1 <= int(message["page"]) <= self._bundle.total_pages:
            self._show_page(int(message["page"]), is_cached=bool(message.get("cached")))

    def _show_page(self, page: int, *, is_cached: bool = False) -> None:
        highlights = self._highlights.get(page, [])
        if not highlights and any(row["page"] == page for row in self._card["differences"]):
            highlights = self._find_heading(page)
        marks = [
            mark for item in highlights for mark in build_page_marks(item.boxes, item.style) if mark["page"] == page
        ]
        if self._images is not None:
            self.page_pane.show_page(page, self._images.render_full_size, marks, "", is_cached_in_browser=is_cached)
        captions = [{"style": item.style, "text": item.caption} for item in highlights]
        self.panel.document = self._card | {"page": page, "captions": captions}

    def _find_heading(self, page: int) -> list[Highlight]:
        """Return the first block of a page that is no running header."""
        blocks = self._bundle.page(page).visible_blocks if self._bundle else ()
        boxes = [block.box for block in blocks if not block.furniture and block.text.strip()][:1]
        return [Highlight("near", ((page, *box),), _HEADING_CAPTION) for box in boxes]

    def send_pictures(self, message: Message) -> None:
        """Send page images that the browser requests in advance."""
        if self._images is not None:
            is_thumbnail = message["action"] == "thumbnails"
            size = "thumbnail" if is_thumbnail else "page" if message.get("kind") == "page" else "preview"
            self.page_pane.send_requested_images(size, message, self._images)  # type: ignore[arg-type]

    def find_text(self, message: Message) -> None:
        """Search the open document for a text and show where it was found."""
        if self._bundle is not None:
            text = str(message["text"])
            self.page_pane.show_search_hits(text, find_text_in_document(self._bundle, text))


#: The handlers of all messages, by the message's ``action``.
EXPLORER_ACTIONS: dict[str, Callable[[Explorer, Message], None]] = {
    "choose": Explorer.choose,
    "export": Explorer.export_list,
    "draw": Explorer.draw_sample,
    "document": Explorer.open_document,
    "overview": Explorer.close_document,
    "page": Explorer.turn_page,
    "thumbnails": Explorer.send_pictures,
    "previews": Explorer.send_pictures,
    "find": Explorer.find_text,
}


def _list_ribbon_segments(document: DocumentRecord, page_count: int) -> list[dict[str, Any]]:
    """List the program's segments so that they cover each page once."""
    spans = document.agent_labels.segments if document.agent_labels else ()
    starts = {first: name for first, _, name in sorted(spans, key=lambda span: span[:2]) if 1 <= first <= page_count}
    starts.setdefault(1, None)
    pages = sorted(starts)
    return [
        {"start": first, "end": after - 1, "type": starts[first], "flags": [], "note": ""}
        for first, after in zip(pages, [*pages[1:], page_count + 1], strict=True)
    ]


def _describe_answers(document: DocumentRecord) -> list[dict[str, Any]]:
    sides: dict[str, DocumentLabels | None] = {
        "truth": document.truth.labels if document.truth else None,
        "program": document.agent_labels,
        "production": document.production_labels,
    }
    return [
        {
            "of": name,
            "type": labels.dominant_type,
            "confidence": None if name == "truth" else labels.confidence,
            "segments": [list(span) for span in labels.segments],
        }
        for name, labels in sides.items()
        if labels is not None
    ]


#: The explorer that each cell of this notebook has shown last.
_explorer_by_cell_id: dict[str, Explorer] = {}


def explore(
    output: Study | Path | str | None = None, *, production: Path | str | None = None, truth: Path | str | None = None
) -> Explorer:
    """Build the explorer of an output folder or study for a notebook cell.

    Args:
        output: a study, or the output folder of a run; None means the folder of the settings.
        production: CSV or JSON file of the production classifier's labels.
        truth: CSV or JSON file of labels known to be right.

    If the cell is run again, the new explorer shows the same filters, document and page, and the earlier one is closed.
    Errors as ``read_study``.
    """
    if not isinstance(output, Study):
        settings = Settings.load()
        output = read_study(
            output or settings.output,
            truth=truth,
            production=production,
            foreign_types=settings.foreign_types,
            settings=settings,
        )
    explorer = Explorer(output)
    if cell_id := find_running_cell_id():
        if earlier := _explorer_by_cell_id.get(cell_id):
            explorer.take_over(earlier)
        _explorer_by_cell_id[cell_id] = explorer
    return explorer
