"""PDF pages rendered as pictures for a person or a model; highlighted passages."""

import io
import math
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Literal

from PIL import Image, ImageChops, ImageDraw

from evalkit.documents.bundle import Box
from evalkit.documents.mupdf import OpenedPdf, load_pymupdf, open_pdf
from evalkit.documents.source_file import build_read_error, read_source_file
from evalkit.errors import DocumentError
from evalkit.issue import PageBox

#: The most pixels of a rendered page, 150 MB in memory: a poster is rendered coarser, to not exhaust the machine.
MAX_RENDER_PIXELS = 50_000_000
#: The most pixels of a side of a rendered page, which is the limit of WebP.
_MAX_RENDER_SIDE = 16_383
#: Name in errors of a PDF that was made from a file of another format.
_CONVERTED_PATH = Path("the converted file")
_THUMBNAIL_DPI = 24
#: Margins around a cut-out word, as shares of the page's width and height: the words beside it belong to its meaning.
_CUT_OUT_MARGINS = (-0.08, -0.006, 0.08, 0.006)
#: A page is then about 440 pixels wide: twice its width on the contact sheet, for high-resolution screens.
_PREVIEW_DPI = 52


def render_page(pdf: Path | bytes, page_num: int, max_dpi: int = 110) -> Image.Image:
    """Render a page (from 1) of a PDF in RGB, rotated as a viewer displays it.

    ``pdf`` is a file or its content. The resolution is ``max_dpi``, or lower if the picture would have more than 50 megapixels or a side of more than
    16,383. DocumentError if the file cannot be opened; READER-PAGE if the page does not exist or cannot be drawn.
    """
    opened_pdf, path = open_pdf_to_render(pdf)
    with opened_pdf.document:
        return render_opened_page(opened_pdf, path, page_num, max_dpi)


def open_pdf_to_render(pdf: Path | bytes) -> tuple[OpenedPdf, Path]:
    """Open a PDF from its path or content; also return a path for error messages."""
    content, path = (pdf, _CONVERTED_PATH) if isinstance(pdf, bytes) else (read_source_file(pdf), pdf)
    return open_pdf(content, str(path)), path


def render_opened_page(
    opened_pdf: OpenedPdf,
    path_for_errors: Path,
    page_num: int,
    max_dpi: float,
    *,
    y_stretch: float = 1.0,
    max_pixels: int | None = None,
) -> Image.Image:
    """Render a page (from 1) of an open PDF; ``path_for_errors`` is only for errors.

    Resolution and errors as ``render_page``. ``y_stretch`` is the resolution down as a share of that across; at most 1.
    ``max_pixels``: of the picture, if fewer than 50 megapixels.
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
        longest_side = max(page.rect.width, page.rect.height, 1.0) * max_dpi / 72
        scale = min(
            1.0, math.sqrt((max_pixels or MAX_RENDER_PIXELS) / max(pixel_count, 1.0)), _MAX_RENDER_SIDE / longest_side
        )
        fitting_dpi = max_dpi if scale == 1 else max(int(max_dpi * scale), 1)
        pixmap = page.get_displaylist().get_pixmap(
            matrix=load_pymupdf().Matrix(fitting_dpi / 72, y_stretch * fitting_dpi / 72), alpha=0
        )
        # ``frombytes`` copies; with ``frombuffer``, Pillow would share memory that is freed with the pixmap.
        return Image.frombytes("RGB", (pixmap.width, pixmap.height), pixmap.samples_mv)
    except Exception:  # noqa: BLE001 - MuPDF's errors share no base, and may quote the document: not chained
        raise DocumentError(
            f"page {page_num} of {path_for_errors.name} cannot be drawn",
            code="READER-PAGE",
            remedy="Open the file in a PDF viewer; if the page is broken there too, fetch the document again.",
        ) from None


def encode_png(image: Image.Image) -> bytes:
    """Return the image as the bytes of a PNG file."""
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def encode_webp(image: Image.Image, quality: int = 60) -> bytes:
    """Return the image as the bytes of a WebP file; ``quality`` is 0..100.

    A page takes about half of the bytes of a JPEG file of the same fidelity.
    """
    buffer = io.BytesIO()
    image.save(buffer, "WEBP", quality=quality, method=0)
    return buffer.getvalue()


class PdfPageRenderer:
    """Renderer of one PDF's pages as WebP for a screen, with a small cache.

    Only the requested page is read from the disk, so that memory does not grow with the file. Once the file has
    changed on the disk, no page is rendered any more (READER-CHANGED), because it would not be the file that was checked
    on opening.
    """

    def __init__(self, pdf: Path | bytes, *, dpi: int = 140, max_cached_pages: int = 2) -> None:
        """Open a PDF, a file or its content. DocumentError if it cannot be opened.

        ``dpi`` is the resolution of a page at full size. The ``max_cached_pages`` pages that were used last stay in
        memory at full size; the browser caches more.
        """
        self._path = _CONVERTED_PATH if isinstance(pdf, bytes) else pdf
        self._is_on_disk = not isinstance(pdf, bytes)
        self._dpi = dpi
        self._file_state = self._read_file_identity()
        try:
            self._opened_pdf = open_pdf(pdf, str(self._path))
        except OSError as error:
            raise build_read_error(self._path, error) from error
        self._render_cached_webp = lru_cache(maxsize=max_cached_pages)(self._render_webp)

    def render_full_size(self, page_num: int) -> bytes:
        """Return page ``page_num`` (from 1) as WebP at full size.

        DocumentError: READER-PAGE, READER-CHANGED or READER-UNREADABLE.
        """
        return self._render_cached_webp(page_num)

    def render_thumbnail(self, page_num: int) -> bytes:
        """Return page ``page_num`` (from 1) as a small WebP, some 200 pixels wide.

        Errors as ``render_full_size``.
        """
        return self._render_webp(page_num, _THUMBNAIL_DPI, quality=50)

    def render_preview(self, page_num: int) -> bytes:
        """Return page ``page_num`` (from 1) as WebP, just large enough to read headings.

        Errors as ``render_full_size``.
        """
        return self._render_webp(page_num, _PREVIEW_DPI, quality=50)

    def render_cut_out(self, word_box: PageBox) -> bytes:
        """Return a word with its surroundings as PNG, in full-size resolution.

        Errors as ``render_full_size``.
        """
        with Image.open(io.BytesIO(self.render_full_size(word_box[0]))) as image:
            edges = (min(max(edge + margin, 0), 1) for edge, margin in zip(word_box[1:], _CUT_OUT_MARGINS, strict=True))
            box = tuple(round(edge * length) for edge, length in zip(edges, image.size * 2, strict=True))
            return encode_png(image.crop(box))  # type: ignore[arg-type]

    def close(self) -> None:
        """Close the PDF and empty the cache."""
        self._render_cached_webp.cache_clear()
        self._opened_pdf.document.close()

    def _render_webp(self, page_num: int, dpi: int | None = None, quality: int = 60) -> bytes:
        if self._read_file_identity() != self._file_state:
            raise DocumentError(
                f"{self._path.name} was changed while it was open",
                code="READER-CHANGED",
                remedy="Run the document again, then open its case again.",
            )
        try:
            return encode_webp(render_opened_page(self._opened_pdf, self._path, page_num, dpi or self._dpi), quality)
        finally:
            # MuPDF would keep up to 256 MB of decoded scans of all open documents; a person rarely needs a page twice.
            load_pymupdf().TOOLS.store_shrink(100)

    def _read_file_identity(self) -> tuple[int, int, int] | None:
        if not self._is_on_disk:
            return None
        try:
            file_stat = self._path.stat()
        except OSError as error:
            raise build_read_error(self._path, error) from error
        return file_stat.st_ino, file_stat.st_size, file_stat.st_mtime_ns


_FOUND_COLOUR = (255, 226, 92)
_NEAR_COLOUR = (214, 120, 0)
_DASH_LENGTH = 8


def highlight_boxes(image: Image.Image, boxes: Iterable[Box], style: Literal["found", "near"]) -> Image.Image:
    """Return a copy of the page's image with highlighted boxes (fractions 0..1).

    Style ``found`` fills a box in yellow, for a passage that was found; ``near`` draws a dashed outline, for a passage
    that is only similar.
    """
    page_image = image.convert("RGB")
    highlight_layer = Image.new("RGB", page_image.size, "white")
    draw = ImageDraw.Draw(highlight_layer)
    for box in boxes:
        x0, y0, x1, y1 = (coordinate * length for coordinate, length in zip(box, page_image.size * 2, strict=True))
        if style == "found":
            draw.rectangle((x0, y0, x1, y1), fill=_FOUND_COLOUR)
        else:
            _draw_dashed_rectangle(draw, x0, y0, x1, y1)
    # Colours are multiplied, as with a marker pen, so that black print stays black.
    return ImageChops.multiply(page_image, highlight_layer)


def _draw_dashed_rectangle(draw: ImageDraw.ImageDraw, x0: float, y0: float, x1: float, y1: float) -> None:
    x_starts, y_starts = range(int(x0), int(x1), 2 * _DASH_LENGTH), range(int(y0), int(y1), 2 * _DASH_LENGTH)
    dashes: list[tuple[float, float, float, float]] = [
        (start, y, min(start + _DASH_LENGTH, x1), y) for start in x_starts for y in (y0, y1)
    ]
    dashes += [(x, start, x, min(start + _DASH_LENGTH, y1)) for start in y_starts for x in (x0, x1)]
    for dash in dashes:
        draw.line(dash, fill=_NEAR_COLOUR, width=2)
