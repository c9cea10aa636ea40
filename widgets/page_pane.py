"""Page viewer: a ribbon of all pages, and one full-size page with highlights."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import traitlets
from typing_extensions import override

from evalkit.documents.bundle import DocumentBundle, Page, PageStatus
from evalkit.documents.patient_banner import (
    PageRange,
    PatientBanner,
    build_patient_banners,
    list_page_ranges_by_person,
)
from evalkit.documents.render import PdfPageRenderer
from evalkit.documents.search import SearchHit, group_words_into_lines
from evalkit.errors import DocumentError
from evalkit.review import SMEPacket
from evalkit.review.shown_documents import load_shown_pdf
from evalkit.store import OutputFolder
from widgets.screen_widget import PressCounter, TypesWidget

#: Function that renders a page, given by its number from 1, as a WebP picture.
PageImageRenderer = Callable[[int], bytes]
#: The sizes of page pictures: full size, in the ribbon, in the overview of all pages.
PageImageSize = Literal["page", "thumbnail", "preview"]

MAX_HEADING_LENGTH = 80
_PAGE_STATUS_WORDS = {PageStatus.BLANK: "blank", PageStatus.IMAGE: "not read", PageStatus.FAILED: "broken"}
_IDENTIFIER_LABELS = {
    "patient": "Patient",
    "date_of_birth": "Date of birth",
    "sex": "Sex",
    "age": "Age",
    "mrn": "Record number",
    "account": "Account number",
    "accession": "Accession number",
    "visit": "Visit number",
    "report_date": "Report date",
}


#: The traits of a ``PagePane`` that another file resets: they depend on the page on screen or on the draft.
_RESET_TRAITS = (
    *("page", "marks", "frames", "issue_id", "note", "missing", "held", "hits", "found_for"),
    *("can_separate", "can_quote", "offer", "quotes", "doubts"),
)
#: The most pictures that one message may request; more would delay the answer to the next press.
_MAX_IMAGES_PER_MESSAGE = 40


class PagePane(
    PressCounter,
    TypesWidget,
    scripts=("text_layer", "frames", "boundary_strip", "page_pane"),
    styles=("page_pane", "boundary_strip"),
):
    """Page viewer of the open file; images are sent as binary buffers."""

    version = traitlets.Unicode(
        help="Token of the open case, e.g. ``case:3`` for the third opening; presses send it back as ``token``."
    )
    total = traitlets.Int(0, help="The number of pages of the file.")
    page = traitlets.Int(0, help="The page on screen, from 1.")
    segments = traitlets.List(
        trait=traitlets.Dict(),
        help="The segments in page order, covering all pages: ``{start, end, type, flags, note}``; optionally the program's ``confidence`` (0..1) and ``presence``, and ``divider``, the words above the segment.",
    )
    marks = traitlets.List(
        trait=traitlets.Dict(),
        help="The highlights: ``{page, x0, y0, x1, y1, style}`` with fractions of the page; style ``found`` or ``near``.",
    )
    frames = traitlets.Dict(
        help="Boxes, columns and edges of a statement template, see ``render_template_frames``; empty in any other case."
    )
    issue_id = traitlets.Unicode(help="The id of the target whose place is highlighted; empty for none.")
    note = traitlets.Unicode(help="The reason why no page of this file can be shown; empty if pages can be shown.")
    missing = traitlets.Dict(help="The pages that could not be drawn: page number as text → ``{what, remedy}``.")
    strips = traitlets.List(
        trait=traitlets.Dict(),
        help="The patient details read on each page: ``{text, relation, words, parts}``. If they differ from another page's, also ``other`` (that page), ``differences`` (boxes on both pages) and, for another patient, ``ranges`` (the pages of both patients).",
    )
    can_separate = traitlets.Bool(
        default_value=False, help="True if the expert can separate another patient's pages as a document."
    )
    doubts = traitlets.List(
        trait=traitlets.Dict(),
        help="The pages on which a document may begin, in page order, see ``render_boundary_doubt``; also ``begins`` and ``is_decided``, the expert's answer.",
    )
    can_quote = traitlets.Bool(
        default_value=False, help="True if the expert can use a passage as a quote of its document's type."
    )
    quotes = traitlets.List(
        trait=traitlets.Dict(),
        help="The expert's quotes (``ExpertQuote``) in order, as dicts; each box is ``[page, x0, y0, x1, y1]``.",
    )
    offer = traitlets.Dict(
        help="Offer after separating a page: ``{page, pages}`` with further pages of the same patient; empty for no offer."
    )
    headings = traitlets.List(
        trait=traitlets.Unicode(),
        help="The first heading of each page or, without one, its first line; at most 80 characters.",
    )
    statuses = traitlets.List(
        trait=traitlets.Unicode(),
        help="The state of each page: ``blank``, ``not read`` or ``broken``; empty if the page's text was read.",
    )
    evidence = traitlets.List(trait=traitlets.Int(), help="The pages to which a quote or an issue refers.")
    seen = traitlets.List(
        trait=traitlets.Int(),
        help="The pages that were already seen when the case was opened; the browser adds the pages that it paints.",
    )
    hits = traitlets.List(
        trait=traitlets.Dict(),
        help="The search hits as boxes: ``{page, x0, y0, x1, y1, hit}``; ``hit`` numbers the hits from 0, and a hit may have several boxes.",
    )
    found_for = traitlets.Unicode(help="The searched text to which ``hits`` belong.")
    held = traitlets.Dict(help="The pages whose full-size pictures the browser has: ``{version, pages}``.")

    _bundle: DocumentBundle | None = None

    def __init__(self) -> None:
        super().__init__()
        self._sent_pages: set[int] = set()  # full-size pictures sent since the browser last set ``held``
        self.observe(lambda _: self._sent_pages.clear(), "held")

    @override
    def forget_case(self) -> None:
        super().forget_case()
        self._bundle = None

    def show_document(
        self,
        view_token: str,
        bundle: DocumentBundle,
        segments: list[dict[str, Any]],
        *,
        evidence_pages: Iterable[int] = (),
        seen_pages: Iterable[int] = (),
    ) -> None:
        """Replace the file on screen; no page is shown until ``show_page``."""
        self._sent_pages.clear()
        self._bundle = bundle
        ranges = [page_range for person in list_page_ranges_by_person(bundle) for page_range in person]
        self.set_traits(
            version=view_token,
            total=bundle.total_pages,
            segments=segments,
            strips=[
                _render_patient_banner(page, banner, ranges)
                for page, banner in enumerate(build_patient_banners(bundle), 1)
            ],
            headings=[extract_page_heading(page) for page in bundle.pages],
            statuses=[_PAGE_STATUS_WORDS.get(page.status, "") for page in bundle.pages],
            evidence=list(evidence_pages),
            seen=list(seen_pages),
            **{name: trait.default(self) for name, trait in self.traits().items() if name in _RESET_TRAITS},
        )

    def show_page(
        self,
        page: int,
        render_image: PageImageRenderer,
        marks: list[dict[str, Any]],
        target_id: str,
        *,
        is_cached_in_browser: bool,
    ) -> None:
        """Show a page with highlights; send its picture unless the browser has it already."""
        if not is_cached_in_browser and not self._is_image_in_browser(page):
            self._render_and_send_image("page", page, render_image)
        self.set_traits(page=page, marks=marks, issue_id=target_id)

    def send_requested_images(
        self, image_size: PageImageSize, message: Mapping[str, Any], images: PdfPageRenderer
    ) -> None:
        """Send the page images that a message of the browser requests."""
        renderers = {
            "thumbnail": images.render_thumbnail,
            "preview": images.render_preview,
            "page": images.render_full_size,
        }
        page_numbers = list(dict.fromkeys(map(int, message["pages"])))[:_MAX_IMAGES_PER_MESSAGE]
        self.render_and_send_images(image_size, page_numbers, renderers[image_size])

    def render_and_send_images(
        self, image_size: PageImageSize, page_numbers: Iterable[int], render_image: PageImageRenderer
    ) -> None:
        """Render and send page images of one size; ignore pages beyond the file."""
        for page_number in page_numbers:
            if 1 <= page_number <= self.total:
                self._render_and_send_image(image_size, page_number, render_image)

    def show_search_hits(self, text: str, search_hits: Sequence[SearchHit]) -> None:
        """Show the boxes of the places where a searched text was found."""
        hits = [
            {"page": box[0], "x0": box[1], "y0": box[2], "x1": box[3], "y1": box[4], "hit": hit_index}
            for hit_index, boxes in enumerate(search_hits)
            for box in boxes
        ]
        self.set_traits(found_for=text, hits=hits)

    def _is_image_in_browser(self, page: int) -> bool:
        is_reported = self.held.get("version") == self.version and page in self.held.get("pages", ())
        return is_reported or page in self._sent_pages  # it may have been sent just before the press

    def _render_and_send_image(self, image_size: PageImageSize, page: int, render_image: PageImageRenderer) -> None:
        message: dict[str, Any] = {"kind": image_size, "page": page, "version": self.version}
        other_missing_pages = {
            page_number: explanation for page_number, explanation in self.missing.items() if page_number != str(page)
        }
        try:
            picture = render_image(page)
        except DocumentError as error:  # the other pages can still be shown
            self.missing = other_missing_pages | {str(page): {"what": error.message, "remedy": error.remedy}}
            self.send(message)
        else:
            self.missing = other_missing_pages
            if image_size == "page" and self._bundle is not None:
                shown_page = self._bundle.page(page)
                # Each word as text and edges x0, y0, x1, y1 in ten-thousandths of the page.
                message["lines"] = [
                    [[shown_page.text[start:end], *edges] for start, end, *edges in line]
                    for line in group_words_into_lines(shown_page.words)
                ]
                self._sent_pages.add(page)
            self.send(message, buffers=[picture])


def open_page_images(output_folder: OutputFolder, bundle: DocumentBundle) -> tuple[PdfPageRenderer | None, str]:
    """Open the PDF that the reviewer is shown, or return None and the reason."""
    try:
        return PdfPageRenderer(load_shown_pdf(output_folder, bundle)), ""
    except DocumentError as error:
        return None, f"The pages cannot be shown: {error}"


def extract_page_heading(page: Page) -> str:
    """Extract a page's heading or first line, at most ``MAX_HEADING_LENGTH`` long."""
    body_blocks = [block for block in page.visible_blocks if not block.furniture and block.text.strip()]
    heading_block = next(
        (block for block in body_blocks if block.type == "heading"), body_blocks[0] if body_blocks else None
    )
    text = " ".join(heading_block.text.split()) if heading_block else ""
    return text if len(text) <= MAX_HEADING_LENGTH else text[: MAX_HEADING_LENGTH - 1].rstrip() + "…"


def list_evidence_pages(packet: SMEPacket) -> list[int]:
    """List the pages to which the program's quotes and the open issues refer."""
    page_numbers = {issue.found_page or issue.page for issue in packet.open_issues}
    for segment in packet.segments:
        for presence in segment.segment_composition:
            page_numbers.update(quote.page for quote in presence.top_evidence)
    return sorted(
        page_number
        for page_number in page_numbers
        if page_number is not None and 1 <= page_number <= packet.total_pages
    )


def _render_patient_banner(page: int, banner: PatientBanner, ranges: Iterable[PageRange]) -> dict[str, Any]:
    rendered: dict[str, Any] = {
        "text": banner.text,
        "relation": banner.relation,
        "words": banner.relation_text,
        "parts": [
            {"label": _IDENTIFIER_LABELS[identifier.kind], "value": identifier.value, "box": list(identifier.box)}
            for identifier in banner.identifiers
        ],
    }
    if banner.differences:
        rendered["other"] = banner.compared_page
        rendered["differences"] = [
            {
                "fact": difference.fact,
                "values": [difference.left.value, difference.right.value],
                "boxes": [list(difference.left.box), list(difference.right.box)],
            }
            for difference in banner.differences
        ]
    if banner.relation == "other":
        compared_pages = (banner.compared_page or 0, page)
        rendered["ranges"] = [
            [first, last] for shown in compared_pages for first, last in ranges if first <= shown <= last
        ]
    return rendered
