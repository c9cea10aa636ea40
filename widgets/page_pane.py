"""The packet as a ribbon of pages, and one page large, with what is lit on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import anywidget
import traitlets

from evalkit.documents.bundle import DocumentBundle, Page, PageStatus
from evalkit.documents.search import Occurrence
from evalkit.documents.strips import Strip, strips
from evalkit.errors import DocumentError
from evalkit.review import SMEPacket
from widgets.assets import css, esm

Pictures = Callable[[int], bytes]
"""A page's number to its picture as JPEG."""

Kind = Literal["page", "thumbnail", "preview"]
"""A picture's size: of the page itself, in the ribbon, on the contact sheet."""

HEADING_LENGTH = 80
_STATUS_WORDS = {PageStatus.BLANK: "blank", PageStatus.IMAGE: "not read", PageStatus.FAILED: "broken"}
_LABELS = {"patient": "Patient", "date_of_birth": "Date of birth", "mrn": "Record number", "report_date": "Report date"}


class PagePane(anywidget.AnyWidget):
    """Shows pages; says what was asked for and what was painted.

    Custom messages: ``page`` {page, cached}; ``painted`` {page, issue}; ``thumbnails`` {pages} and ``previews``
    {kind, pages}, for pictures that the browser does not have; ``find`` {text}; ``edge`` {edge, to, goes_on}, where a
    template's edge is moved to. Each carries ``token``.
    """

    _esm = esm("page_pane", "frames")
    _css = css("page_pane")

    version = traitlets.Unicode().tag(sync=True)
    """Changes with the document: pictures of another one are forgotten."""
    total = traitlets.Int(0).tag(sync=True)
    """Pages of the document."""
    page = traitlets.Int(0).tag(sync=True)
    """The page on screen, from 1."""
    segments = traitlets.List(trait=traitlets.Dict()).tag(sync=True)
    """``{start, end, type}`` in order, all pages covered; and where they are known ``confidence`` (0..1) and
    ``presence`` of the agent, ``is_yours`` where the expert changed it, ``flags`` (list of str), and ``divider``, what
    stands above it where no new document begins there."""
    marks = traitlets.List(trait=traitlets.Dict()).tag(sync=True)
    """``{page, x0, y0, x1, y1, style}``: fractions of the page; style ``found`` or ``near``."""
    frames = traitlets.Dict().tag(sync=True)
    """``frames_of(case, draft, page)``: what a statement template reads on the page; empty in any other case."""
    answered = traitlets.Int(0).tag(sync=True)
    """The number of the last press (``nth``) whose answer is on screen."""
    issue_id = traitlets.Unicode().tag(sync=True)
    """The issue whose place is lit; empty for none."""
    note = traitlets.Unicode().tag(sync=True)
    """Why no page of this document can be shown; empty where they can."""
    missing = traitlets.Dict().tag(sync=True)
    """Page number as text → ``{what, remedy}`` of a page that could not be drawn."""
    strips = traitlets.List(trait=traitlets.Dict()).tag(sync=True)
    """``{text, relation, words, parts: [{label, value, box}]}`` of each page: see ``Strip``."""
    headings = traitlets.List(trait=traitlets.Unicode()).tag(sync=True)
    """The first heading of each page, at most 80 characters; its first line where it has none."""
    statuses = traitlets.List(trait=traitlets.Unicode()).tag(sync=True)
    """``blank``, ``not read`` or ``broken`` of each page; empty for one whose text is known."""
    evidence = traitlets.List(trait=traitlets.Int()).tag(sync=True)
    """The pages that a quote or an issue points to."""
    seen = traitlets.List(trait=traitlets.Int()).tag(sync=True)
    """The pages that had been on screen when the document was opened; the browser adds what it paints."""
    hits = traitlets.List(trait=traitlets.Dict()).tag(sync=True)
    """``{page, x0, y0, x1, y1, hit}``: ``hit`` counts the occurrences from 0, which may have several boxes."""
    found_for = traitlets.Unicode().tag(sync=True)
    """The text that ``hits`` are the places of."""
    held = traitlets.Dict().tag(sync=True)
    """``{version, pages}``: from the browser, the full-size pictures that it has."""

    def __init__(self) -> None:
        super().__init__()
        self._sent: set[int] = set()
        """The full-size pictures that were sent since the browser last said which it has."""
        self.observe(lambda _: self._sent.clear(), "held")

    def begin(
        self,
        version: str,
        bundle: DocumentBundle,
        segments: list[dict[str, Any]],
        *,
        evidence: Iterable[int] = (),
        seen: Iterable[int] = (),
    ) -> None:
        """Begin with another document."""
        self._sent.clear()
        with self.hold_sync():
            self.version, self.total, self.segments = version, bundle.total_pages, segments
            self.page, self.marks, self.frames, self.issue_id, self.note = 0, [], {}, "", ""
            self.missing, self.held, self.hits, self.found_for = {}, {}, [], ""
            self.strips = [_strip(one) for one in strips(bundle)]
            self.headings = [heading(page) for page in bundle.pages]
            self.statuses = [_STATUS_WORDS.get(page.status, "") for page in bundle.pages]
            self.evidence, self.seen = list(evidence), list(seen)

    def turn(self, page: int, pictures: Pictures, marks: list[dict[str, Any]], issue_id: str, *, cached: bool) -> None:
        """Show a page; ``cached``: the browser says that it has the picture."""
        if not cached and not self._is_held(page):
            self._send_picture("page", page, pictures)
        with self.hold_sync():
            self.page, self.marks, self.issue_id = page, marks, issue_id

    def send_pictures(self, kind: Kind, pages: Iterable[int], pictures: Pictures) -> None:
        """Send these pages in that size; pages that the document does not have are passed over."""
        for page in pages:
            if 1 <= page <= self.total:
                self._send_picture(kind, page, pictures)

    def show_hits(self, text: str, found: Sequence[Occurrence]) -> None:
        """Light the places of a text that was looked for."""
        with self.hold_sync():
            self.found_for = text
            self.hits = [
                {"page": box[0], "x0": box[1], "y0": box[2], "x1": box[3], "y1": box[4], "hit": number}
                for number, boxes in enumerate(found)
                for box in boxes
            ]

    def _is_held(self, page: int) -> bool:
        is_told = self.held.get("version") == self.version and page in self.held.get("pages", ())
        return is_told or page in self._sent  # sent ahead, just before the press

    def _send_picture(self, kind: Kind, page: int, pictures: Pictures) -> None:
        message = {"kind": kind, "page": page, "version": self.version}
        others = {number: why for number, why in self.missing.items() if number != str(page)}
        try:
            picture = pictures(page)
        except DocumentError as error:  # one broken page must not keep the others from the screen
            self.missing = others | {str(page): {"what": error.message, "remedy": error.remedy}}
            self.send(message)
        else:
            self.missing = others
            self.send(message, buffers=[picture])
            if kind == "page":
                self._sent.add(page)


def heading(page: Page) -> str:
    """What a page is headed with, for one who looks for it among many: at most ``HEADING_LENGTH`` characters."""
    own = [block for block in page.visible_blocks if not block.furniture and block.text.strip()]
    first = next((block for block in own if block.type == "heading"), own[0] if own else None)
    text = " ".join(first.text.split()) if first else ""
    return text if len(text) <= HEADING_LENGTH else text[: HEADING_LENGTH - 1].rstrip() + "…"


def evidence_pages(packet: SMEPacket) -> list[int]:
    """The pages that the agent's quotes and the open issues point to, sorted; all of them pages of the document."""
    pages = {issue.found_page or issue.page for issue in packet.open_issues}
    for segment in packet.classification.segments if packet.classification else ():
        for presence in segment.segment_composition:
            pages.update(quote.page for quote in presence.top_evidence)
    return sorted(page for page in pages if page is not None and 1 <= page <= packet.total_pages)


def _strip(one: Strip) -> dict[str, Any]:
    return {
        "text": one.text,
        "relation": one.relation,
        "words": one.words,
        "parts": [
            {"label": _LABELS[part.kind], "value": part.value, "box": list(part.box)} for part in one.identifiers
        ],
    }
