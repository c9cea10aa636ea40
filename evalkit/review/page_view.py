"""Lit pages in a notebook cell: what was quoted, where it stands."""

from __future__ import annotations

import base64
from collections import defaultdict
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Literal, NamedTuple

from PIL.Image import Image

from evalkit.classification.result import DocumentFailure, DocumentResult
from evalkit.documents.bundle import Box, DocumentBundle
from evalkit.documents.file import digest
from evalkit.documents.highlight import light
from evalkit.documents.render import jpeg, render_page
from evalkit.errors import DocumentError
from evalkit.grounding import Locator
from evalkit.issue import PageBox
from evalkit.review.seeded import shown_document, shown_result
from evalkit.review.stored import read_bundle
from evalkit.store import Files

Style = Literal["found", "near"]
_PIXELS_WIDE = 760


class _Lit(NamedTuple):
    style: Style
    boxes: tuple[PageBox, ...]
    caption: str


@dataclass(frozen=True)
class LitPage:
    """One page as a picture, with what is lit on it."""

    page_num: int
    image: Image
    captions: tuple[str, ...]
    """One line per lit passage."""


@dataclass(frozen=True)
class PageView:
    """The pages of a document that something is lit on. Jupyter shows it; ``pages`` holds the pictures."""

    doc_id: str
    headline: str
    pages: tuple[LitPage, ...]

    def _repr_html_(self) -> str:
        shown = "".join(_html(page) for page in self.pages)
        return f'<div style="font:14px sans-serif"><p><b>{escape(self.headline)}</b></p>{shown}</div>'


def view(doc_id: str, *, output: Path | str | None = None, page: int | None = None, dpi: int = 110) -> PageView:
    """The pages of a processed document that evidence or an issue points to, with the passages lit.

    Evidence that was found is filled yellow; a passage that is only near a quote is outlined, dashed. ``page`` asks
    for one page whatever is on it; ``output`` is the settings' folder unless it is named. NotFound where the document
    was never run; DocumentError where it could not be read, or the PDF was moved or changed since.
    """
    from evalkit.settings import Settings  # only analysts need it; an expert's kernel stays small

    files = Files(output or Settings.load().output)
    result = shown_result(files, doc_id)
    if isinstance(result, DocumentFailure):
        raise DocumentError(result.error.message, code=result.error.code, remedy=result.error.remedy)
    bundle = read_bundle(files, shown_document(files, doc_id))
    path = Path(bundle.file_path)
    if digest(path) != bundle.sha256:
        raise DocumentError(
            f"{path.name} has changed since it was read", code="READER-CHANGED", remedy="Run the document again."
        )
    lit = _passages(result, bundle)
    numbers = [page] if page is not None else sorted(lit) or [1]
    return PageView(
        doc_id=doc_id,
        headline=f"{doc_id}: {result.decision.value}, {result.decision_reason}",
        pages=tuple(_page(path, number, lit.get(number, []), dpi) for number in numbers),
    )


def _passages(result: DocumentResult, bundle: DocumentBundle) -> dict[int, list[_Lit]]:
    """What is lit on each page: issues first, then the evidence that holds."""
    lit: defaultdict[int, list[_Lit]] = defaultdict(list)
    for issue in result.open_issues:
        if issue.boxes and issue.found_page:
            where = _Lit("near", issue.boxes, f"{issue.severity.value} {issue.issue_id}: {issue.message}")
            lit[issue.found_page].append(where)
    locator = Locator(bundle)
    for segment in result.classification.segments if result.classification else ():
        for presence in segment.segment_composition:
            for evidence in presence.top_evidence:
                place = locator.locate(evidence.snippet, evidence.page)
                if place.is_found and place.page:
                    caption = f"{presence.document_type.value} ({presence.presence_level.value}): “{evidence.snippet}”"
                    lit[place.page].append(_Lit("found", place.boxes, caption))
    return lit


def _page(path: Path, number: int, lit: list[_Lit], dpi: int) -> LitPage:
    image = render_page(path, number, dpi)
    for style, boxes, _ in lit:
        on_page: list[Box] = [box[1:] for box in boxes if box[0] == number]
        image = light(image, on_page, style)
    return LitPage(number, image, tuple(one.caption for one in lit))


def _html(page: LitPage) -> str:
    # Document text is only ever shown escaped: it must not run as HTML.
    captions = "".join(f"<li>{escape(caption)}</li>" for caption in page.captions)
    picture = base64.b64encode(jpeg(page.image)).decode()
    return (
        f"<p>Page {page.page_num}</p><ul>{captions}</ul>"
        f'<img alt="page {page.page_num}" style="width:{_PIXELS_WIDE}px;max-width:100%;border:1px solid #dde3e8" '
        f'src="data:image/jpeg;base64,{picture}">'
    )
