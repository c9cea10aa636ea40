"""Shapes of a font's glyphs: find characters that are drawn as other characters.

Each glyph is drawn, cropped and stretched to one size, and compared with the glyphs of PDF's standard fonts. Only a glyph
that clearly looks like another character counts, so that ornamental fonts are not suspected. What the font's file says of
its own glyphs is not used: whoever changes the text can change it, too.
"""

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image

from evalkit.documents.mupdf import load_pymupdf

#: Characters that are drawn for comparison.
_REFERENCE_CHARACTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz+-<>.\u00b5"
#: Characters that many fonts draw alike; capitals and small letters count as alike, too.
_LOOKALIKES = str.maketrans("lijoaszbqg\u00b5\u03bc\u2212", "1110052899uu-")
_REFERENCE_FONTS = (
    *("Helvetica", "Helvetica-Bold", "Helvetica-Oblique", "Times-Roman", "Times-Bold", "Times-Italic"),
    *("Courier", "Courier-Bold"),
)
#: A glyph looks like another character if its distance to that is at most the first number, and its distance to its own
#: character is larger by at least the second. Honest fonts of 240 clinical, tax and test files: at most 0.09 larger.
_MAX_DISTANCE, _MIN_MARGIN = 0.33, 0.14
#: Weights of the logarithms of width to height, and of height; each difference counts at most 1.
_ASPECT_WEIGHT, _HEIGHT_WEIGHT = 0.1, 0.15
#: A block has at least this share of ink; it is square if its width to height, as a logarithm, differs by less.
_BLOCK_INK, _BLOCK_ASPECT = 0.95, 0.5
#: Pixels of the cell in which a glyph is drawn, and of the stretched shape. A Type 3 font may claim larger glyphs than it
#: draws.
_CELL_SIZE, _TYPE3_CELL_SIZE, _CELL_MARGIN, _COLUMNS = 40, 120, 2, 16
_SHAPE_WIDTH, _SHAPE_HEIGHT = 12, 16
#: Fainter pixels (of 255) are edges.
_MIN_INK = 64
#: Glyphs drawn at a time.
_BATCH_SIZE = 256
_MIN_EXTENT, _MAX_EXTENT = 1e-3, 1e5
#: Logarithm of the tallest letter's height in the reference fonts.
_TALLEST = -0.03

_Array = npt.NDArray[np.float32]


class _Glyphs(NamedTuple):
    characters: list[str]
    kinds: npt.NDArray[np.int32]
    """Code points of the characters; one for all characters that look alike."""
    shapes: _Array
    """Ink (0..1) of the stretched shape's pixels."""
    sizes: _Array
    """Logarithms of width to height, and of the height in units of the font size."""


def find_misdrawn_characters(
    document: Any, font_xref: int, text_by_code: Mapping[int, str], characters: frozenset[str]
) -> set[str]:
    """Find characters of a font whose glyphs look like another character.

    ``document`` is a ``pymupdf.Document``, ``font_xref`` the font's object number in it. ``text_by_code``: the font's
    ToUnicode map. Only ``characters`` are checked. MuPDF's exceptions for a broken font are not caught.
    """
    mupdf = load_pymupdf().mupdf
    pdf = mupdf.pdf_document_from_fz_document(document.this)
    font_object, resources = mupdf.pdf_load_object(pdf, font_xref), mupdf.pdf_resource_stack()
    # Without a stack of resources, though empty, MuPDF crashes on a Type 3 font that has none.
    font = mupdf.PdfFontDesc(mupdf.ll_pdf_load_font(pdf.m_internal, resources, font_object.m_internal))
    claims = sorted(set(_iter_claims(mupdf, font.m_internal, text_by_code, characters)))
    return {
        character
        for start in range(0, len(claims), _BATCH_SIZE)
        for character in _compare_with_references(
            _draw_glyphs(font.m_internal.font, claims[start : start + _BATCH_SIZE])
        )
    }


def _iter_claims(
    mupdf: Any, font: Any, text_by_code: Mapping[int, str], characters: frozenset[str]
) -> Iterator[tuple[int, str]]:
    """Yield a font's glyph numbers, each with the checked character its text has."""
    names = (ctypes.c_ushort * font.cid_to_ucs_len).from_address(int(font.cid_to_ucs)) if font.cid_to_ucs_len else ()
    is_type3 = bool(mupdf.ll_fz_font_t3_procs(font.font))
    for code in text_by_code.keys() | range(len(names)):
        character = text_by_code[code] if code in text_by_code else chr(names[code])
        if character in characters and (cid := mupdf.ll_pdf_lookup_cmap(font.encoding, code)) >= 0:
            glyph = mupdf.ll_pdf_font_cid_to_gid(font, cid)
            if glyph > 0 or is_type3:  # 0 shows that the font lacks the glyph
                yield glyph, character


def _compare_with_references(glyphs: _Glyphs) -> Iterator[str]:
    """Yield the characters of the glyphs that look like another character."""
    if not glyphs.characters:
        return
    references = _load_references()
    squares = (
        (glyphs.shapes**2).sum(1)[:, None] + (references.shapes**2).sum(1) - 2 * glyphs.shapes @ references.shapes.T
    )
    distances = np.sqrt(np.maximum(squares, 0) / (_SHAPE_WIDTH * _SHAPE_HEIGHT))
    for column, weight in enumerate((_ASPECT_WEIGHT, _HEIGHT_WEIGHT)):
        distances += weight * np.minimum(np.abs(glyphs.sizes[:, column, None] - references.sizes[:, column]), 1)
    is_own = glyphs.kinds[:, None] == references.kinds
    own_distances, other_distances = (np.where(mask, distances, np.inf).min(1) for mask in (is_own, ~is_own))
    is_misdrawn = (other_distances <= _MAX_DISTANCE) & (own_distances >= other_distances + _MIN_MARGIN)
    # A letter drawn as a square block may be a sign for a missing glyph.
    is_misdrawn &= ~(
        (glyphs.shapes.mean(1) > _BLOCK_INK) & (np.abs(glyphs.sizes[:, 0]) < _BLOCK_ASPECT) & is_own.any(1)
    )
    yield from (glyphs.characters[row] for row in np.flatnonzero(is_misdrawn))


@cache
def _load_references() -> _Glyphs:
    mupdf = load_pymupdf().mupdf
    fonts = map(mupdf.fz_new_base14_font, _REFERENCE_FONTS)
    drawn_fonts = [
        _draw_glyphs(
            font.m_internal,
            [
                (mupdf.ll_fz_encode_character(font.m_internal, ord(character)), character)
                for character in _REFERENCE_CHARACTERS
            ],
        )
        for font in fonts
    ]
    characters, *arrays = zip(*drawn_fonts, strict=True)
    return _Glyphs([*chain(*characters)], *map(np.concatenate, arrays))


def _draw_glyphs(font: Any, claims: Sequence[tuple[int, str]]) -> _Glyphs:
    """Draw the glyphs of a font, given with their characters; skip those without ink."""
    mupdf = load_pymupdf().mupdf
    is_type3 = bool(mupdf.ll_fz_font_t3_procs(font))
    cell_size = _TYPE3_CELL_SIZE if is_type3 else _CELL_SIZE
    text, rows = mupdf.fz_new_text(), []
    cells = [
        (column * cell_size, row * cell_size)
        for row, column in (divmod(index, _COLUMNS) for index in range(len(claims)))
    ]
    scales = [
        _place_glyph(mupdf, text, font, glyph, (left + _CELL_MARGIN, top + _CELL_MARGIN), cell_size - 2 * _CELL_MARGIN)
        for (glyph, _), (left, top) in zip(claims, cells, strict=True)
    ]
    sheet = _paint(mupdf, text, _COLUMNS * cell_size, cell_size * -(-len(claims) // _COLUMNS))
    for (_, character), scale, (left, top) in zip(claims, scales, cells, strict=True):
        cell = sheet.crop((left, top, left + cell_size, top + cell_size))
        if scale and (ink_box := cell.getbbox()):
            shape = cell.resize((_SHAPE_WIDTH, _SHAPE_HEIGHT), Image.Resampling.BOX, ink_box)
            width, height = ink_box[2] - ink_box[0], ink_box[3] - ink_box[1]
            rows.append((character, shape.tobytes(), (width / height, height / scale)))
    shapes = np.frombuffer(b"".join(shape for _, shape, _ in rows), np.uint8).reshape(-1, _SHAPE_WIDTH * _SHAPE_HEIGHT)
    sizes: _Array = np.log(np.array([size for *_, size in rows], np.float32).reshape(-1, 2)).astype(np.float32)
    if is_type3 and rows:  # its unit is arbitrary: its tallest glyph counts as the tallest letter
        sizes[:, 1] += _TALLEST - sizes[:, 1].max()
    characters = [character for character, *_ in rows]
    kinds = np.array([ord(character.lower().translate(_LOOKALIKES)) for character in characters], np.int32)
    return _Glyphs(characters, kinds, shapes.astype(np.float32) / np.float32(255), sizes)


def _place_glyph(mupdf: Any, text: Any, font: Any, glyph: int, corner: tuple[int, int], size: int) -> float:
    """Add a glyph to a MuPDF text so that it fills a square.

    Returns pixels per unit, 0 if the glyph has no extent.
    """
    box = mupdf.ll_fz_bound_glyph(font, glyph, mupdf.fz_identity)
    extent = max(box.x1 - box.x0, box.y1 - box.y0)
    if not _MIN_EXTENT < extent < _MAX_EXTENT:
        return 0
    scale: float = size / extent
    matrix = mupdf.ll_fz_make_matrix(scale, 0, 0, -scale, corner[0] - box.x0 * scale, corner[1] + box.y1 * scale)
    mupdf.ll_fz_show_glyph(text.m_internal, font, matrix, glyph, 0, 0, 0, 0, 0)
    return scale


def _paint(mupdf: Any, text: Any, width: int, height: int) -> Image.Image:
    pixmap = mupdf.FzPixmap(mupdf.FzColorspace(), mupdf.FzIrect(0, 0, width, height), mupdf.FzSeparations(), 1)
    mupdf.fz_clear_pixmap(pixmap)
    device = mupdf.fz_new_draw_device(mupdf.FzMatrix(), pixmap)
    mupdf.fz_fill_text(device, text, mupdf.FzMatrix(), mupdf.FzColorspace(), (), 1.0, mupdf.FzColorParams())
    mupdf.fz_close_device(device)
    sheet = Image.frombytes("L", (width, height), bytes(mupdf.fz_pixmap_samples_memoryview(pixmap)))
    return sheet.point([level if level >= _MIN_INK else 0 for level in range(256)])
