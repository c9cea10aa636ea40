"""Extraction of pages from a file, without any other content of the file.

A page that is copied from PDF to PDF takes along what it shares with other pages: whole scans of which it shows a part,
text outside its edges, fonts, form fields, bookmarks, older versions. Pages are therefore drawn anew, as a viewer shows
them, and the words that were read on them are laid over the picture, invisible but searchable.
"""

import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from PIL import Image, ImageChops

from evalkit.documents.bundle import Page
from evalkit.documents.input_format import serialise_pdf
from evalkit.documents.mupdf import load_pymupdf
from evalkit.documents.page_content import read_page_content
from evalkit.documents.render import open_pdf_to_render, render_opened_page
from evalkit.documents.visibility import Rect
from evalkit.errors import DocumentError

_DPI, _JPEG_QUALITY, _PNG_LEVEL = 200, 85, 4
#: A picture is stored with loss only if it is a photograph or a noisy scan: then the bytes are fewer than this share.
_MAX_JPEG_SHARE = 0.5
_LOST_PAGE_NOTE = "This page of the file is damaged and cannot be shown."
#: A font without glyphs whose codes are UTF-16 units. Source: PDF 32000-1, 9.7.4 and 9.10.3.
_WORD_FONT = (
    "<</Type/Font/Subtype/Type0/BaseFont/Words/Encoding/Identity-H/DescendantFonts[<</Type/Font/Subtype/CIDFontType2"
    "/BaseFont/Words/CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)/Supplement 0>>/DW 1000/FontDescriptor"
    "<</Type/FontDescriptor/FontName/Words/Flags 4/FontBBox[0 0 1000 1000]/ItalicAngle 0/Ascent 1000/Descent 0"
    "/CapHeight 1000/StemV 80>>>>]/ToUnicode {} 0 R>>"
)
_CODES_TO_UNICODE = b"""/CIDInit /ProcSet findresource begin 12 dict begin begincmap
/CIDSystemInfo <</Registry(Adobe)/Ordering(UCS)/Supplement 0>> def /CMapName /Words def /CMapType 2 def
1 begincodespacerange <0000> <FFFF> endcodespacerange 1 beginbfrange <0000> <FFFF> <0000> endbfrange
endcmap CMapName currentdict /CMap defineresource pop end end"""


def cut_pages(pdf: Path | bytes, pages: Iterable[Page]) -> bytes:
    """Return a PDF that contains these pages of a file and nothing else.

    ``pdf`` is the file, or its content; ``pages`` are what was read of it. A page that cannot be drawn is replaced by a
    note. Equal pages give equal bytes. DocumentError if the file cannot be opened.
    """
    opened_pdf, path = open_pdf_to_render(pdf)
    cut_document = load_pymupdf().open()
    font_xref = _add_word_font(cut_document)
    with opened_pdf.document:
        for page in pages:
            try:
                picture = render_opened_page(opened_pdf, path, page.page_num, _DPI)
            except DocumentError:
                cut_document.new_page().insert_text((72, 72), _LOST_PAGE_NOTE)
                continue
            source_page = opened_pdf.document.load_page(page.page_num - 1)
            cut_page = cut_document.new_page(width=source_page.rect.width, height=source_page.rect.height)
            cut_page.insert_image(cut_page.rect, stream=_encode(_drop_colour_of_grey(picture)), keep_proportion=False)
            _add_words(cut_document, cut_page, _iterate_seen_words(page, source_page), font_xref)
    return serialise_pdf(cut_document)


def _iterate_seen_words(page: Page, source_page: Any) -> Iterator[tuple[str, Rect]]:
    """Yield each word that was read, with its place in points.

    Without recognition, a scan's words are those of a text layer that nobody compared with the picture: left out.
    """
    layer = () if page.confidences or not page.words else read_page_content(source_page).ocr_layer
    x_unit, y_unit = source_page.rect.width / 10_000, source_page.rect.height / 10_000
    for start, end, *edges in page.words:
        x0, y0, x1, y1 = (edge * unit for edge, unit in zip(edges, (x_unit, y_unit) * 2, strict=True))
        centre = (x0 + x1) / 2, (y0 + y1) / 2
        if not any(line.x0 <= centre[0] <= line.x1 and line.y0 <= centre[1] <= line.y1 for line in layer):
            yield page.text[start:end], (x0, y0, x1, y1)


def _drop_colour_of_grey(picture: Image.Image) -> Image.Image:
    red, green, blue = picture.split()
    is_grey = not any(ImageChops.difference(red, other).getbbox() for other in (green, blue))
    return red if is_grey else picture


def _encode(picture: Image.Image) -> bytes:
    """Return the picture as PNG, or as JPEG if that is much smaller."""
    jpeg, png = io.BytesIO(), io.BytesIO()
    picture.save(jpeg, "JPEG", quality=_JPEG_QUALITY, subsampling=0)
    picture.save(png, "PNG", compress_level=_PNG_LEVEL)
    return (jpeg if jpeg.tell() < _MAX_JPEG_SHARE * png.tell() else png).getvalue()


def _add_word_font(document: Any) -> int:
    map_xref, font_xref = document.get_new_xref(), document.get_new_xref()
    document.update_object(map_xref, "<<>>")
    document.update_stream(map_xref, _CODES_TO_UNICODE, new=True)
    document.update_object(font_xref, _WORD_FONT.format(map_xref))
    return int(font_xref)


def _add_words(document: Any, pdf_page: Any, words: Iterable[tuple[str, Rect]], font_xref: int) -> None:
    """Add an invisible text at the place of each word."""
    operators = " ".join(_iterate_word_operators(words, pdf_page.rect.height))
    words_xref = document.get_new_xref()
    document.update_object(words_xref, "<<>>")
    document.update_stream(words_xref, f"BT 3 Tr {operators} ET".encode(), new=True)
    _, picture_reference = document.xref_get_key(pdf_page.xref, "Contents")
    document.xref_set_key(pdf_page.xref, "Contents", f"[{picture_reference.strip('[]')} {words_xref} 0 R]")
    _, resources_reference = document.xref_get_key(pdf_page.xref, "Resources")
    document.xref_set_key(int(resources_reference.split()[0]), "Font", f"<</Words {font_xref} 0 R>>")


def _iterate_word_operators(words: Iterable[tuple[str, Rect]], page_height: float) -> Iterator[str]:
    for word, (x0, y0, x1, y1) in words:
        # The space is for programs that join letters which are close to each other, as these are.
        codes = f"{word} ".encode("utf-16-be", "replace")
        size = max(y1 - y0, 1)
        stretch = 100 * (x1 - x0) / (len(codes) / 2 * size)
        if stretch > 0:
            yield f"/Words {size:.2f} Tf {stretch:.2f} Tz 1 0 0 1 {x0:.2f} {page_height - y1:.2f} Tm <{codes.hex()}> Tj"
