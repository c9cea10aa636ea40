"""The local reader: a PDF's bytes become a DocumentBundle, on this machine, with nothing sent anywhere."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from evalkit.collector import resting
from evalkit.documents.bundle import DocumentBundle, LayoutMetadata, Page, PageStatus
from evalkit.documents.drawn import Drawn, Proven, look_at
from evalkit.documents.layout import LaidBlock, Setting, Typography, lay_out, margin_keys, setting
from evalkit.documents.mupdf import library, open_pdf
from evalkit.documents.page import page_of, text_of

if TYPE_CHECKING:  # OCR brings NumPy, which most commands do without
    from evalkit.documents.scanned import Recogniser, Scans

#: Of what is decided here about order, blocks and status; raise it with every change that alters a bundle.
LAYOUT_VERSION = 8
#: A page that images cover by this much and that has fewer words than this: what it says is in the images.
_PICTURED = ((0.5, 60), (0.25, 40), (0.15, 15), (0.05, 8))
#: A page with so many curves and fewer words than this has its letters drawn as outlines.
_OUTLINED = (600, 60)
#: So many characters make a page's own typography; shorter ones are judged by the whole document's.
_OWN_TYPOGRAPHY = 400
#: So many long pages wait at most to learn whether the text in their margins is repeated.
_WAITING = 200
_NO_ENGINE = "the pictures were not read: install tesseract, or name an OCR engine in the setting ocr"
_UNKNOWN_CHARACTER = "\ufffd"
#: How MuPDF says it.
_NO_MEMORY = re.compile(r"alloc \(.*\) failed")


@cache
def reader_version(ocr: str | None = None) -> str:
    """What reads PDFs here: ``pymupdf 1.28.2 layout 4, tesseract 5.3.0 eng``; part of every fingerprint.

    ``ocr`` is the engine's name and version, None without one. Does not load PyMuPDF.
    """
    return f"pymupdf {version('pymupdf')} layout {LAYOUT_VERSION}" + (f", {ocr}" if ocr else "")


def read_pdf(
    data: bytes,
    *,
    file_path: str,
    doc_id: str,
    sha256: str,
    timestamp: str,
    recogniser: Recogniser | None = None,
) -> DocumentBundle:
    """The bundle of the PDF in ``data``; equal bytes give an equal bundle.

    ``sha256`` is the hash of ``data``, ``timestamp`` ISO 8601 UTC; ``file_path`` is recorded, not read. Without a
    ``recogniser``, pages that are pictures stay without text. DocumentError (READER-…) where the file cannot be
    opened; a broken page alone becomes a ``failed`` one.
    """
    opened = open_pdf(data, file_path)
    document, total_pages, is_mended = opened
    scans = recogniser.of(opened, PurePath(file_path).name) if recogniser else None
    try:
        with resting():
            pages = _pages(document, total_pages, scans)
        pages = scans.recognised(pages) if scans else pages
        is_repaired = is_mended or bool(document.is_repaired)
    finally:
        document.close()
    return DocumentBundle(
        doc_id=doc_id,
        file_path=file_path,
        sha256=sha256,
        reader=reader_version(recogniser.engine.name_and_version if recogniser else None),
        is_repaired=is_repaired,
        total_pages=total_pages,
        processing_timestamp=timestamp,
        pages=pages,
    )


def _pages(document: Any, total: int, scans: Scans | None) -> tuple[Page, ...]:
    """Pages 1..``total``, in order.

    Whether a margin's text is furniture is known when it stands on a second page; how short pages are set, at the end.
    Until then pages wait, but no more than ``_WAITING`` long ones, or a thousand pages would be in memory twice.
    """
    done: dict[int, Page] = {}
    waiting: dict[int, Drawn] = {}
    short: dict[int, Drawn] = {}
    seen: set[tuple[str, str]] = set()
    repeated: set[tuple[str, str]] = set()
    whole = Setting()
    proven: Proven = {}
    pictured: set[int] = set()
    for number in range(1, total + 1):
        drawn = look(document, number - 1, proven)
        if drawn is None:
            done[number] = failed_page(number)
            continue
        if scans:
            drawn = scans.seen(number, drawn)
        elif drawn.is_pictured:
            pictured.add(number)
        own, keys = setting(drawn.lines), margin_keys(drawn)
        whole.add(own)
        repeated |= keys & seen
        seen |= keys
        if own.characters < _OWN_TYPOGRAPHY:
            short[number] = drawn
        elif keys <= repeated:
            done[number] = _page(number, drawn, repeated, own.typography)
        else:
            waiting[number] = drawn
        if len(waiting) > _WAITING:
            first = next(iter(waiting))
            done[first] = _long_page(first, waiting.pop(first), repeated)
    done |= {number: _long_page(number, drawn, repeated) for number, drawn in waiting.items()}
    done |= {number: _page(number, drawn, repeated, whole.typography) for number, drawn in short.items()}
    pages = (done[number] for number in range(1, total + 1))
    return tuple(_told(page) if page.page_num in pictured else page for page in pages)


def _told(page: Page) -> Page:
    """The page, with a word on its picture if the rest of it is readable."""
    return page.model_copy(update={"unread": _NO_ENGINE}) if page.status.readable and page.text else page


def look(document: Any, index: int, proven: Proven) -> Drawn | None:
    """What is drawn on the page; None where it is broken."""
    mupdf = library()
    try:
        mupdf.TOOLS.mupdf_warnings()  # asked for, so that those of files before, held back to be counted, are told now
        page = document.load_page(index)
        drawn = look_at(page, proven)
        # MuPDF shows a page that is missing, or whose content cannot be unpacked, as an empty one.
        if drawn.is_blank and (mupdf.TOOLS.mupdf_warnings() or not _is_page(document, page.xref)):
            return None
    except Exception as error:  # noqa: BLE001 - MuPDF's errors share no base but Exception, and the other pages may be well
        if isinstance(error, MemoryError) or _NO_MEMORY.search(str(error)):
            raise MemoryError from None  # no later page would be better off
        return None
    return drawn if drawn.width > 0 and drawn.height > 0 else None


def _is_page(document: Any, number: int) -> bool:
    return any(document.xref_get_key(number, key)[0] != "null" for key in ("Type", "Parent", "MediaBox", "Contents"))


def _long_page(number: int, drawn: Drawn, repeated: set[tuple[str, str]]) -> Page:
    return _page(number, drawn, repeated, setting(drawn.lines).typography)


def _page(number: int, drawn: Drawn, repeated: set[tuple[str, str]], usual: Typography) -> Page:
    laid = lay_out(drawn, repeated, usual)
    return page_of(number, page_status(drawn, laid), laid, drawn)


def failed_page(number: int) -> Page:
    """A page that is broken, or could not be sent to whoever reads."""
    layout = LayoutMetadata(block_types=(), has_tables=False)
    return Page(page_num=number, status=PageStatus.FAILED, text="", paragraphs=(), layout_metadata=layout, blocks=())


def page_status(drawn: Drawn, laid: Sequence[LaidBlock]) -> PageStatus:
    """How the text of a page with these blocks came to be known, or whether it is the page's text at all."""
    if not laid:
        return PageStatus.BLANK if drawn.is_blank else PageStatus.IMAGE
    own_words = sum(len(block.tokens) for block in laid if not block.furniture)
    is_read = drawn.layer_share > 0.5  # somebody has laid the text of the images over them
    pictured = _PICTURED[-1:] if is_read else _PICTURED
    if any(drawn.image_share >= share and own_words < words for share, words in pictured):
        return PageStatus.IMAGE
    if drawn.shapes >= _OUTLINED[0] and own_words < _OUTLINED[1]:
        return PageStatus.IMAGE
    if any(_UNKNOWN_CHARACTER in line.text for line in drawn.lines):
        text = text_of(laid)
        if 2 * text.count(_UNKNOWN_CHARACTER) > sum(map(len, text.split())):
            return PageStatus.IMAGE
    return PageStatus.OCR if is_read else PageStatus.TEXT
