"""A page as a picture, for a person or for a model that sees."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from PIL import Image

from evalkit.documents.file import load, unreadable
from evalkit.documents.mupdf import OpenPdf, library, open_pdf
from evalkit.errors import DocumentError

#: 50 megapixels are 150 MB in memory: a poster becomes coarser instead of exhausting the machine.
MAX_PIXELS = 50_000_000
_THUMBNAIL_DPI = 24
#: Twice the 220 pixels of the contact sheet, for screens with fine dots.
_PREVIEW_DPI = 52


def render_page(path: Path, page_num: int, dpi: int = 110) -> Image.Image:
    """The page (from 1) as it is displayed, RGB, at ``dpi`` or as fine as 50 megapixels allow.

    DocumentError where the file cannot be opened, and READER-PAGE where this page does not exist or cannot be drawn.
    """
    opened = open_pdf(load(path), str(path))
    try:
        return drawn_page(opened, path, page_num, dpi)
    finally:
        opened.document.close()


def drawn_page(opened: OpenPdf, path: Path, page_num: int, dpi: int, *, grey_allowed: bool = False) -> Image.Image:
    """As ``render_page``, of a file that is open already; ``path`` only names it in errors.

    ``grey_allowed``: a page without any colour may be L instead of RGB, the same to the eye in half the time.
    """
    if not 1 <= page_num <= opened.total_pages:
        raise DocumentError(
            f"{path.name} has no page {page_num}",
            code="READER-PAGE",
            remedy=f"Ask for a page from 1 to {opened.total_pages}.",
        )
    try:
        page = opened.document.load_page(page_num - 1)
        # A point is 1/72 inch.
        pixels = page.rect.width * page.rect.height * (dpi / 72) ** 2
        fitting = max(int(dpi * min(1.0, math.sqrt(MAX_PIXELS / max(pixels, 1.0)))), 1)
        pymupdf, shown = library(), page.get_displaylist()
        mode, colours = ("L", pymupdf.csGRAY) if grey_allowed and _is_grey(page, shown) else ("RGB", pymupdf.csRGB)
        scale = pymupdf.Matrix(fitting / 72, fitting / 72)
        pixmap = shown.get_pixmap(matrix=scale, colorspace=colours, alpha=0)
        # A copy: Pillow would share the memory of grey ones, which goes with the pixmap.
        return Image.frombytes(mode, (pixmap.width, pixmap.height), pixmap.samples_mv)
    except Exception:  # noqa: BLE001 - MuPDF's errors share no base, and may quote the document: not chained
        raise DocumentError(
            f"page {page_num} of {path.name} cannot be drawn",
            code="READER-PAGE",
            remedy="Open the file in a PDF viewer; if the page is broken there too, fetch the document again.",
        ) from None


def _is_grey(page: Any, shown: Any) -> bool:
    """Whether all that is ``shown`` of the page is black, white or grey, and its pictures are written as such.

    It is asked of MuPDF's own device for it, which gives up at the first colour; pictures are not unpacked. The device does
    not look into the glyphs of Type 3 fonts, which are drawn like small pages: where there may be any, it is False.
    """
    if _may_have_type3(page):
        return False
    mupdf = library().mupdf
    told = mupdf.ll_fz_new_test_device_outparams()  # the device writes into it as long as it is used
    device = mupdf.FzDevice(mupdf.ll_fz_new_test_device_outparams_fn(0.0, 0, None, told))
    try:
        everything = mupdf.FzRect(mupdf.FzRect.Fixed_INFINITE)
        mupdf.fz_run_display_list(shown.this, device, mupdf.FzMatrix(), everything, mupdf.FzCookie())
        mupdf.fz_close_device(device)
    except Exception:  # noqa: BLE001 - so it gives up; what else is wrong with the page, drawing it says
        return False
    return bool(told.is_color == 0)


def _may_have_type3(page: Any) -> bool:
    """Whether the page has a font of Type 3, or an annotation, field or pattern, whose fonts are not among the page's."""
    if page.first_annot is not None or page.first_widget is not None:
        return True
    if any(font[2] == "Type3" for font in page.get_fonts(full=True)):
        return True
    document = page.parent
    inside = [form[0] for form in document.get_page_xobjects(page.number)]
    patterns = [document.xref_get_key(one, "Resources/Pattern")[0] for one in (page.xref, *inside)]
    inherits = document.xref_get_key(page.xref, "Resources")[0] == "null"
    return inherits or any(kind != "null" for kind in patterns)


def page_pngs(path: Path, pages: Iterable[int], dpi: int = 110) -> list[bytes]:
    """The pages (from 1) as PNG, for a model that sees. DocumentError as of ``render_page``."""
    opened = open_pdf(load(path), str(path))
    try:
        return [_png(drawn_page(opened, path, page, dpi)) for page in pages]
    finally:
        opened.document.close()


def _png(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def jpeg(image: Image.Image, quality: int = 75) -> bytes:
    """The image as JPEG; ``quality`` 1..95."""
    buffer = io.BytesIO()
    # Converting copies even where there is nothing to do.
    plain = image if image.mode in ("RGB", "L") else image.convert("RGB")
    plain.save(buffer, "JPEG", quality=quality)
    return buffer.getvalue()


class PagePictures:
    """The pages of one PDF as JPEG, for a screen: the file is opened once, the last pages are kept.

    The file is read page by page from the disk, so that memory does not grow with it; where it is changed meanwhile,
    no page is drawn any more: what was checked on opening would not be what is shown.
    """

    def __init__(self, path: Path, *, dpi: int = 140, kept: int = 2) -> None:
        """DocumentError where the file cannot be opened. ``kept`` pages stay in memory; the browser keeps more."""
        self._path = path
        self._dpi = dpi
        self._state = self._state_on_disk()
        try:
            self._open = open_pdf(path, str(path))
        except OSError as error:
            raise unreadable(path, error) from error
        self._cached = lru_cache(maxsize=kept)(self._drawn)

    def page(self, page_num: int) -> bytes:
        """The page (from 1) at full size. DocumentError: READER-PAGE, READER-CHANGED or READER-UNREADABLE."""
        return self._cached(page_num)

    def thumbnail(self, page_num: int) -> bytes:
        """The page (from 1) a few centimetres wide. Errors as of ``page``."""
        return self._drawn(page_num, _THUMBNAIL_DPI, quality=60)

    def preview(self, page_num: int) -> bytes:
        """The page (from 1) so large that its headings can be read. Errors as of ``page``."""
        return self._drawn(page_num, _PREVIEW_DPI, quality=65)

    def close(self) -> None:
        """Give the file back."""
        self._cached.cache_clear()
        self._open.document.close()

    def _drawn(self, page_num: int, dpi: int | None = None, quality: int = 75) -> bytes:
        if self._state_on_disk() != self._state:
            raise DocumentError(
                f"{self._path.name} was changed while it was open",
                code="READER-CHANGED",
                remedy="Run the document again, then open its case again.",
            )
        try:
            image = drawn_page(self._open, self._path, page_num, dpi or self._dpi, grey_allowed=True)
            return jpeg(image, quality)
        finally:
            # MuPDF keeps up to 256 MB of decoded scans, across documents, which a reader of pages hardly asks for twice.
            library().TOOLS.store_shrink(100)

    def _state_on_disk(self) -> tuple[int, int, int]:
        try:
            state = self._path.stat()
        except OSError as error:
            raise unreadable(self._path, error) from error
        return state.st_ino, state.st_size, state.st_mtime_ns
