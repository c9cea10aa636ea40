"""Pictures of pages: opened with limits, drawn losslessly on pages of a PDF."""

import io
from typing import Any

from PIL import Image, ImageFile, UnidentifiedImageError

from evalkit.documents.input_format import build_damaged_error, build_too_large_error

#: The most pixels of a picture: A4 at 1,000 dpi. Opened in colour it takes 300 MB of memory.
MAX_PIXELS = 100_000_000
_FORMATS = ("TIFF", "JPEG", "PNG", "MPO")
#: Resolution from which a picture's page gets its size, if it states none: its longer side then is that of A4 (842
#: points), but smaller pictures are at least as fine as a screen.
_ASSUMED_LONG_SIDE, _MIN_ASSUMED_DPI = 842, 96
#: Stated resolutions are believed if the longer side of the page is at most A2, and no side is coarser than a screen.
_MAX_LONG_SIDE, _MIN_DPI = 1684, 50
#: Where the picture's own axes (right, down) lead on the page, by the EXIF or TIFF orientation: coefficients a, b, c, d
#: of the matrix that maps the unit square, e and f for the origin.
_ORIENTATIONS = {
    1: (1, 0, 0, 1, 0, 0),
    2: (-1, 0, 0, 1, 1, 0),
    3: (-1, 0, 0, -1, 1, 1),
    4: (1, 0, 0, -1, 0, 1),
    5: (0, -1, -1, 0, 1, 1),
    6: (0, -1, 1, 0, 0, 1),
    7: (0, 1, 1, 0, 0, 0),
    8: (0, 1, -1, 0, 1, 0),
}
_ORIENTATION_TAG = 274


def open_picture(content: bytes, name: str) -> Image.Image:
    """Open a TIFF, JPEG or PNG without decoding it; ``name`` is for errors.

    DocumentError: READER-DAMAGED, READER-TOO-LARGE.
    """
    try:
        picture = Image.open(io.BytesIO(content), formats=_FORMATS)
    except Image.DecompressionBombError:
        raise build_too_large_error(name, f"{MAX_PIXELS // 1_000_000} megapixels") from None
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError, KeyError, TypeError, IndexError):
        raise build_damaged_error(name) from None
    check_pixel_count(picture, name)
    return picture


def check_pixel_count(picture: Image.Image, name: str) -> None:
    """Raise READER-TOO-LARGE if a picture has more than 100 megapixels."""
    if picture.width * picture.height > MAX_PIXELS:
        raise build_too_large_error(name, f"{MAX_PIXELS // 1_000_000} megapixels")


def unpack_picture(picture: Image.Image) -> bool:
    """Decode a picture; return False if pixels are lost. OSError if all are lost.

    Lost rows at the end become white.
    """
    try:
        picture.load()
    except (OSError, ValueError, SyntaxError, EOFError):
        ImageFile.LOAD_TRUNCATED_IMAGES = True
        try:
            picture.load()
        finally:
            ImageFile.LOAD_TRUNCATED_IMAGES = False
        low, high = picture.convert("L").getextrema()
        if low == high:
            raise OSError("the picture has no pixels") from None
        last_row = (picture.convert("L").getbbox() or picture.getbbox() or (0, 0, 0, 0))[3]
        if picture.mode in ("1", "L", "RGB"):
            picture.paste("white", (0, last_row, *picture.size))
        return False
    return True


def add_picture_page(document: Any, picture: Image.Image, jpeg: bytes | None = None) -> None:
    """Add a page of the picture's size to a PDF, with all its pixels, upright.

    ``jpeg`` is the file of the picture if it is a grey or RGB JPEG, which is then copied unchanged.
    """
    width, height = _measure_page(picture)
    a, b, c, d, e, f = _ORIENTATIONS.get(picture.getexif().get(_ORIENTATION_TAG, 1), _ORIENTATIONS[1])
    page_width, page_height = (width, height) if a else (height, width)
    page = document.new_page(width=page_width, height=page_height)
    pixels = picture if jpeg else _simplify_mode(picture)
    colorspace, bits = ("/DeviceRGB", 8) if pixels.mode == "RGB" else ("/DeviceGray", 1 if pixels.mode == "1" else 8)
    image_xref, content_xref = document.get_new_xref(), document.get_new_xref()
    document.update_object(
        image_xref,
        f"<</Type/XObject/Subtype/Image/Width {pixels.width}/Height {pixels.height}/ColorSpace{colorspace}"
        f"/BitsPerComponent {bits}>>",
    )
    document.update_stream(image_xref, jpeg or pixels.tobytes(), new=True, compress=not jpeg)
    if jpeg:
        document.xref_set_key(image_xref, "Filter", "/DCTDecode")
    matrix = (a * page_width, b * page_height, c * page_width, d * page_height, e * page_width, f * page_height)
    document.update_object(content_xref, "<<>>")
    drawing = f"q {' '.join(f'{number:.2f}' for number in matrix)} cm /Picture Do Q"
    document.update_stream(content_xref, drawing.encode(), new=True)
    document.xref_set_key(page.xref, "Contents", f"{content_xref} 0 R")
    document.xref_set_key(page.xref, "Resources", f"<</XObject<</Picture {image_xref} 0 R>>>>")


def _measure_page(picture: Image.Image) -> tuple[float, float]:
    """Return a picture's size in points, by its resolution if that is plausible."""
    try:
        horizontal_dpi, vertical_dpi = map(float, picture.info.get("dpi", (0, 0)))
    except (TypeError, ValueError, ZeroDivisionError):
        horizontal_dpi = vertical_dpi = 0.0
    if min(horizontal_dpi, vertical_dpi) >= _MIN_DPI:
        width, height = picture.width / horizontal_dpi * 72, picture.height / vertical_dpi * 72
        if max(width, height) <= _MAX_LONG_SIDE:
            return width, height
    dpi = max(max(picture.size) / _ASSUMED_LONG_SIDE * 72, _MIN_ASSUMED_DPI)
    return picture.width / dpi * 72, picture.height / dpi * 72


def _simplify_mode(picture: Image.Image) -> Image.Image:
    """Convert a picture to mode 1, L or RGB, without transparency and palette."""
    if picture.mode.startswith(("I", "F")):
        deep_picture = picture.convert("I").convert("F")
        highest = max(float(deep_picture.getextrema()[1]), 255.0)  # type: ignore[arg-type]
        return deep_picture.point(lambda level: level * (255 / highest)).convert("L")
    if picture.has_transparency_data:
        picture = picture.convert("RGBA")
        picture = Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture)
    if picture.mode in ("1", "L", "RGB"):
        return picture
    return picture.convert("L" if picture.mode == "LA" else "RGB")
