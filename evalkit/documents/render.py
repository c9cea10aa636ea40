"""Render pages as pictures, for a person or a model that sees."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from PIL import Image

from evalkit.documents.mupdf import OpenedPdf, load_pymupdf, open_pdf
from evalkit.documents.source_file import build_read_error, read_source_file
from evalkit.errors import DocumentError

#: 50 megapixels are 150 MB in memory: a poster is rendered coarser, so that it does not exhaust the machine.
MAX_RENDER_PIXELS = 50_000_000
_THUMBNAIL_DPI = 24
#: Twice the 220 pixels of the contact sheet, for high-resolution screens.
_PREVIEW_DPI = 52


def render_page(path: Path, page_num: int, max_dpi: int = 110) -> Image.Image:
    """Render a page (from 1) as displayed, RGB.

    At ``max_dpi``, or as fine as 50 megapixels allow. DocumentError if the file cannot be opened; READER-PAGE if this
    page does not exist or cannot be drawn.
    """
    opened_pdf = open_pdf(read_source_file(path), str(path))
    with opened_pdf.document:
        return render_opened_page(opened_pdf, path, page_num, max_dpi)


def render_opened_page(
    opened_pdf: OpenedPdf, path_for_errors: Path, page_num: int, max_dpi: int, *, use_grey_if_colourless: bool = False
) -> Image.Image:
    """Render a page of an open file; ``path_for_errors`` only names it in errors.

    As ``render_page``. ``use_grey_if_colourless``: a page without any colour may be L instead of RGB, the same to the
    eye in half the time.
    """
    if not 1 <= page_num <= opened_pdf.total_pages:
        raise DocumentError(
            f"{path_for_errors.name} has no page {page_num}",
            code="READER-PAGE",
            remedy=f"Ask for a page from 1 to {opened_pdf.total_pages}.",
        )
    try:
        page = opened_pdf.document.load_page(page_num - 1)
        # A point is 1/72 inch.
        pixel_count = page.rect.width * page.rect.height * (max_dpi / 72) ** 2
        fitting_dpi = max(int(max_dpi * min(1.0, math.sqrt(MAX_RENDER_PIXELS / max(pixel_count, 1.0)))), 1)
        pymupdf, display_list = load_pymupdf(), page.get_displaylist()
        mode, colorspace = (
            ("L", pymupdf.csGRAY)
            if use_grey_if_colourless and _is_page_colourless(page, display_list)
            else ("RGB", pymupdf.csRGB)
        )
        scale_matrix = pymupdf.Matrix(fitting_dpi / 72, fitting_dpi / 72)
        pixmap = display_list.get_pixmap(matrix=scale_matrix, colorspace=colorspace, alpha=0)
        # A copy: Pillow would share a grey pixmap's memory, which is freed with the pixmap.
        return Image.frombytes(mode, (pixmap.width, pixmap.height), pixmap.samples_mv)
    except Exception:  # noqa: BLE001 - MuPDF's errors share no base, and may quote the document: not chained
        raise DocumentError(
            f"page {page_num} of {path_for_errors.name} cannot be drawn",
            code="READER-PAGE",
            remedy="Open the file in a PDF viewer; if the page is broken there too, fetch the document again.",
        ) from None


def _is_page_colourless(page: Any, display_list: Any) -> bool:
    """Decide if everything in the page's display list is black, white or grey.

    MuPDF's own device decides, and stops at the first colour; pictures are not decoded. The device does not inspect the
    glyphs of Type 3 fonts, which are drawn like small pages: if there may be any, the result is False.
    """
    if _may_have_type3_font(page):
        return False
    mupdf = load_pymupdf().mupdf
    outparams = mupdf.ll_fz_new_test_device_outparams()  # the device writes into it as long as it is used
    device = mupdf.FzDevice(mupdf.ll_fz_new_test_device_outparams_fn(0.0, 0, None, outparams))
    try:
        infinite_rect = mupdf.FzRect(mupdf.FzRect.Fixed_INFINITE)
        mupdf.fz_run_display_list(display_list.this, device, mupdf.FzMatrix(), infinite_rect, mupdf.FzCookie())
        mupdf.fz_close_device(device)
    except Exception:  # noqa: BLE001 - its way to stop; rendering reports other faults of the page
        return False
    return bool(outparams.is_color == 0)


def _may_have_type3_font(page: Any) -> bool:
    """Detect a Type 3 font, or an annotation, field or pattern with fonts of its own."""
    if page.first_annot is not None or page.first_widget is not None:
        return True
    if any(font[2] == "Type3" for font in page.get_fonts(full=True)):
        return True
    document = page.parent
    form_xrefs = [form[0] for form in document.get_page_xobjects(page.number)]
    pattern_kinds = [document.xref_get_key(xref, "Resources/Pattern")[0] for xref in (page.xref, *form_xrefs)]
    has_inherited_resources = document.xref_get_key(page.xref, "Resources")[0] == "null"
    return has_inherited_resources or any(kind != "null" for kind in pattern_kinds)


def render_page_pngs(path: Path, page_numbers: Iterable[int], max_dpi: int = 110) -> list[bytes]:
    """Render pages (from 1) as PNG, for a model. DocumentError as ``render_page``."""
    opened_pdf = open_pdf(read_source_file(path), str(path))
    with opened_pdf.document:
        return [encode_png(render_opened_page(opened_pdf, path, page_num, max_dpi)) for page_num in page_numbers]


def encode_png(image: Image.Image) -> bytes:
    """Encode the image as PNG."""
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def encode_jpeg(image: Image.Image, quality: int = 75) -> bytes:
    """Encode the image as JPEG; ``quality`` 1..95."""
    buffer = io.BytesIO()
    # Converting copies even if there is nothing to convert.
    encodable_image = image if image.mode in ("RGB", "L") else image.convert("RGB")
    encodable_image.save(buffer, "JPEG", quality=quality)
    return buffer.getvalue()


class PdfPageRenderer:
    """Renders pages of one PDF as JPEG, for a screen, with a small cache.

    The file is read page by page from the disk, so that memory does not grow with it. If the file changes meanwhile, no
    page is drawn any more: it would not be what was checked on opening.
    """

    def __init__(self, path: Path, *, dpi: int = 140, max_cached_pages: int = 2) -> None:
        """Open the file. DocumentError if that fails.

        ``max_cached_pages`` pages stay in memory; the browser caches more.
        """
        self._path = path
        self._dpi = dpi
        self._file_state = self._read_file_identity()
        try:
            self._opened_pdf = open_pdf(path, str(path))
        except OSError as error:
            raise build_read_error(path, error) from error
        self._render_cached_jpeg = lru_cache(maxsize=max_cached_pages)(self._render_jpeg)

    def render_full_size(self, page_num: int) -> bytes:
        """Render a page (from 1) at full size.

        DocumentError: READER-PAGE, READER-CHANGED or READER-UNREADABLE.
        """
        return self._render_cached_jpeg(page_num)

    def render_thumbnail(self, page_num: int) -> bytes:
        """Render a page a few centimetres wide. Errors as ``render_full_size``."""
        return self._render_jpeg(page_num, _THUMBNAIL_DPI, quality=60)

    def render_preview(self, page_num: int) -> bytes:
        """Render a page with readable headings. Errors as ``render_full_size``."""
        return self._render_jpeg(page_num, _PREVIEW_DPI, quality=65)

    def close(self) -> None:
        """Close the file."""
        self._render_cached_jpeg.cache_clear()
        self._opened_pdf.document.close()

    def _render_jpeg(self, page_num: int, dpi: int | None = None, quality: int = 75) -> bytes:
        if self._read_file_identity() != self._file_state:
            raise DocumentError(
                f"{self._path.name} was changed while it was open",
                code="READER-CHANGED",
                remedy="Run the document again, then open its case again.",
            )
        try:
            image = render_opened_page(
                self._opened_pdf, self._path, page_num, dpi or self._dpi, use_grey_if_colourless=True
            )
            return encode_jpeg(image, quality)
        finally:
            # MuPDF keeps up to 256 MB of decoded scans, across documents, which a reader of pages hardly asks for twice.
            load_pymupdf().TOOLS.store_shrink(100)

    def _read_file_identity(self) -> tuple[int, int, int]:
        try:
            file_stat = self._path.stat()
        except OSError as error:
            raise build_read_error(self._path, error) from error
        return file_stat.st_ino, file_stat.st_size, file_stat.st_mtime_ns
