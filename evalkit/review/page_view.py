"""Pages of a document in a notebook, with evidence and issues highlighted."""

import base64
from collections import defaultdict
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Literal, NamedTuple

from PIL.Image import Image

from evalkit.classification.document_result import DocumentFailure, DocumentResult
from evalkit.core.document_cache import keep_results
from evalkit.documents.bundle import Box, DocumentBundle
from evalkit.documents.render import encode_webp, highlight_boxes, render_page
from evalkit.errors import DocumentError
from evalkit.grounding import QuoteLocator
from evalkit.issue import PageBox
from evalkit.review.shown_documents import load_shown_pdf, read_bundle_as_shown, read_result_as_shown
from evalkit.store import open_existing_output_folder

HighlightStyle = Literal["found", "near"]
_IMAGE_WIDTH_PX = 760


class Highlight(NamedTuple):
    """A highlighted passage of one page, with its caption."""

    style: HighlightStyle
    boxes: tuple[PageBox, ...]
    caption: str


@dataclass(frozen=True)
class HighlightedPage:
    """Picture of one page with the highlighted passages drawn on it."""

    page_num: int
    image: Image
    captions: tuple[str, ...]
    """One line for each highlighted passage."""


@dataclass(frozen=True)
class PageView:
    """Highlighted pages of a document; a notebook cell shows them as HTML."""

    doc_id: str
    headline: str
    pages: tuple[HighlightedPage, ...]

    def _repr_html_(self) -> str:
        pages_html = "".join(_format_page_html(page) for page in self.pages)
        # Pages are taller than the cells around them, so that they have a scroll bar of their own.
        scrolled = f'<div tabindex="0" style="max-height:640px;overflow:auto">{pages_html}</div>'
        return f'<div style="font:14px sans-serif"><p><b>{escape(self.headline)}</b></p>{scrolled}</div>'


@keep_results()
def view(doc_id: str, *, output: Path | str | None = None, page: int | None = None, dpi: int = 110) -> PageView:
    """Show a processed document's pages with evidence and issues highlighted.

    Evidence that was found is filled in yellow; a passage that is only similar to a quote has a dashed outline. With
    ``page``, only this page is shown, even without highlights; otherwise all pages with highlights, or page 1 if no page
    has any. ``output`` is the output folder; None means the folder of the settings. NotFound if the document was never run; DocumentError if the document
    could not be read, or if the PDF was moved or changed since.
    """
    from evalkit.settings import Settings  # imported only here, to keep the memory of an expert's screen small

    output_folder = open_existing_output_folder(output or Settings.load().output)
    result = read_result_as_shown(output_folder, doc_id)
    if isinstance(result, DocumentFailure):
        raise DocumentError(result.error.message, code=result.error.code, remedy=result.error.remedy)
    bundle = read_bundle_as_shown(output_folder, doc_id)
    shown_pdf = load_shown_pdf(output_folder, bundle)
    highlights_by_page = collect_highlights(result, bundle)
    page_numbers = [page] if page is not None else sorted(highlights_by_page) or [1]
    return PageView(
        doc_id=doc_id,
        headline=f"{doc_id}: {result.decision.value}, {result.decision_reason}",
        pages=tuple(
            _render_highlighted_page(shown_pdf, page_number, highlights_by_page.get(page_number, []), dpi)
            for page_number in page_numbers
        ),
    )


def collect_highlights(result: DocumentResult, bundle: DocumentBundle) -> dict[int, list[Highlight]]:
    """Collect the places of open issues and of quotes that were found, by page."""
    highlights_by_page: defaultdict[int, list[Highlight]] = defaultdict(list)
    for issue in result.open_issues:
        if issue.boxes and issue.found_page:
            highlight = Highlight("near", issue.boxes, f"{issue.severity.value} {issue.issue_id}: {issue.message}")
            highlights_by_page[issue.found_page].append(highlight)
    locator = QuoteLocator(bundle)
    for segment in result.classification.segments if result.classification else ():
        for presence in segment.segment_composition:
            for evidence in presence.top_evidence:
                match = locator.locate(evidence.snippet, evidence.page)
                if match.is_found and match.page_number:
                    caption = f"{presence.document_type.value} ({presence.presence_level.value}): “{evidence.snippet}”"
                    highlights_by_page[match.page_number].append(Highlight("found", match.boxes, caption))
    return highlights_by_page


def _render_highlighted_page(
    shown_pdf: Path | bytes, page_number: int, highlights: list[Highlight], dpi: int
) -> HighlightedPage:
    image = render_page(shown_pdf, page_number, dpi)
    for style, boxes, _ in highlights:
        page_boxes: list[Box] = [box[1:] for box in boxes if box[0] == page_number]
        image = highlight_boxes(image, page_boxes, style)
    return HighlightedPage(page_number, image, tuple(highlight.caption for highlight in highlights))


def _format_page_html(page: HighlightedPage) -> str:
    # Document text is escaped, so that it cannot run as HTML.
    captions = "".join(f"<li>{escape(caption)}</li>" for caption in page.captions)
    image_base64 = base64.b64encode(encode_webp(page.image)).decode()
    return (
        f"<p>Page {page.page_num}</p><ul>{captions}</ul>"
        f'<img alt="page {page.page_num}" style="width:{_IMAGE_WIDTH_PX}px;max-width:100%;border:1px solid #dde3e8" '
        f'src="data:image/webp;base64,{image_base64}">'
    )
