"""Image files of pages: TIFF (faxes, scans of many pages), JPEG and PNG."""

import struct
import warnings

from PIL import Image
from PIL import __version__ as pillow_version

from evalkit.documents.input_format import (
    ConvertedFile,
    build_damaged_error,
    build_too_large_error,
    define_converted_format,
    serialise_pdf,
)
from evalkit.documents.mupdf import MAX_PAGES, load_pymupdf
from evalkit.documents.picture import add_picture_page, check_pixel_count, open_picture, unpack_picture

_SIGNATURES = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+", b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n")
_DIRECTORY_ERRORS = (OSError, ValueError, SyntaxError, EOFError, KeyError, TypeError, IndexError, struct.error)
_SUBFILE_TYPE_TAG = 254
_LOST_PAGE_NOTE = "This page of the file is damaged and cannot be shown."


def convert_picture(content: bytes, name: str) -> ConvertedFile:
    """Convert a TIFF, JPEG or PNG to a PDF with one page for each picture.

    DocumentError: READER-DAMAGED, READER-TOO-LARGE.
    """
    warnings.simplefilter("ignore")  # Pillow's, of every flaw, would bury a batch's own messages
    picture = open_picture(content, name)
    page_count, is_damaged = _count_tiff_pages(content) if picture.format == "TIFF" else (1, False)
    if page_count > MAX_PAGES:
        raise build_too_large_error(name, f"{MAX_PAGES:,} pages")
    document, lost_pages, first_size = load_pymupdf().open(), set(), picture.size
    for page_index in range(page_count):
        try:
            picture.seek(page_index)
            # A directory of this kind holds a small copy or a mask of another page.
            if picture.format == "TIFF" and page_index and _is_copy_or_mask(picture, first_size):
                continue
            check_pixel_count(picture, name)
            is_fax = str(picture.info.get("compression", "")).startswith(("group", "tiff_ccitt"))
            is_damaged |= not unpack_picture(picture) or (is_fax and _is_fax_page_damaged(content, page_index))
            is_plain_jpeg = picture.format in ("JPEG", "MPO") and picture.mode in ("L", "RGB") and not is_damaged
            add_picture_page(document, picture, content if is_plain_jpeg else None)
        except _DIRECTORY_ERRORS:
            document.new_page().insert_text((72, 72), _LOST_PAGE_NOTE)
            lost_pages.add(document.page_count)
    if document.page_count == len(lost_pages):
        raise build_damaged_error(name)
    return ConvertedFile(serialise_pdf(document), is_damaged or bool(lost_pages), frozenset(lost_pages))


FORMAT = define_converted_format(
    "TIFF, JPEG, PNG",
    (".tif", ".tiff", ".jpg", ".jpeg", ".png"),
    lambda content: content.startswith(_SIGNATURES),
    convert_picture,
    f"pillow {pillow_version} images 1",
)


def _is_fax_page_damaged(content: bytes, page_index: int) -> bool:
    """Return True if lines of a fax page are lost, which Pillow draws white."""
    pymupdf = load_pymupdf()
    pymupdf.TOOLS.mupdf_warnings()  # reading earlier warnings clears them
    try:
        with pymupdf.open(stream=content, filetype="tiff") as document:
            document[page_index].get_pixmap(dpi=10)
    except (RuntimeError, IndexError, ValueError):  # MuPDF knows fewer kinds of TIFF than Pillow
        return False
    return bool(pymupdf.TOOLS.mupdf_warnings())


def _is_copy_or_mask(picture: Image.Image, first_size: tuple[int, int]) -> bool:
    """Return True for a mask, and for a copy that is smaller than the first page."""
    kind = int(picture.tag_v2.get(_SUBFILE_TYPE_TAG, 0))  # type: ignore[attr-defined]
    return bool(kind & 0b100) or (bool(kind & 0b001) and picture.width < first_size[0])


def _count_tiff_pages(content: bytes) -> tuple[int, bool]:
    """Return the number of whole directories of a TIFF; True if their chain breaks.

    Pillow ends silently where a directory points to an earlier one, or out of the file.
    """
    order = "<" if content[:2] == b"II" else ">"
    is_big = content[2:4] in (b"+\0", b"\0+")
    count_format, offset_format, row_size = (f"{order}Q", f"{order}Q", 20) if is_big else (f"{order}H", f"{order}I", 12)
    visited_offsets: set[int] = set()
    try:
        (offset,) = struct.unpack_from(offset_format, content, 8 if is_big else 4)
        while offset and len(visited_offsets) <= MAX_PAGES:
            (row_count,) = struct.unpack_from(count_format, content, offset)
            next_position = offset + struct.calcsize(count_format) + row_count * row_size
            (next_offset,) = struct.unpack_from(offset_format, content, next_position)
            if offset in visited_offsets:
                return len(visited_offsets), True
            visited_offsets.add(offset)
            offset = next_offset
    except struct.error:
        return len(visited_offsets), True
    return len(visited_offsets), False
