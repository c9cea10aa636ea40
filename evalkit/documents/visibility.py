"""Visibility of words: objects painted over them, and the rendered page.

Nearly all words are dark print on white paper with nothing painted near them. Only if a page has other words is its
picture drawn, which costs more than reading all of its words.

MuPDF's display list, made once and used by all steps, would save a tenth of the time. But it drops words that are
clipped away, and these must be reported as hidden.
"""

import math
from collections.abc import Iterable
from functools import cache, cached_property
from itertools import dropwhile
from typing import Any, NamedTuple

from PIL import Image, ImageChops

from evalkit.core.grouping import group_pairs
from evalkit.documents.font_spoofing import find_misleading_characters
from evalkit.documents.mupdf import load_pymupdf

#: The most pixels of the picture in which visibility is checked; more would cost time and show nothing new.
_MAX_RASTER_PIXELS = 2_000_000
#: Below this scale (pixels per point) small print may vanish from the picture although a person could zoom in.
_MIN_SCALE = 0.3
#: A word is visible if its pixels differ by at least this much (of 255) in red, green or blue. Measured with one pixel
#: a point and print of at least 6 points: grey 0.75 differs by 43 or more (its full stops by 14), grey 0.9 by 18 or
#: more; but grey 0.95 by at most 13, grey 0.97 by at most 8, and black at an opacity of 5 % by at most 12.
_MIN_CONTRAST = 14
#: Dark print is visible if the page with it differs by at least this much from the page without it. Traces of print
#: between white strips painted over it differ by at most 67; print under a half-opaque highlighter differs by 127.
_MIN_PRINT_CONTRAST = 96
#: MuPDF's types of blocks: text, and drawn lines or areas.
TEXT_BLOCK, VECTOR_BLOCK = 0, 3
#: MuPDF's flag for letters whose areas are filled, not only their edges drawn.
FILLED_FLAG = 16
#: A line thinner than this (points) does not hide a word that it crosses.
THIN_LINE_WIDTH = 3.0
#: A colour 0xRRGGBB with none of these bits is dark: red, green and blue are all in their darker half.
_BRIGHT_BITS = 0x808080
#: A colour with all of these bits is light: all are in their lightest quarter. Dark on light is far above
#: _MIN_CONTRAST.
_LIGHT_BITS = 0xC0C0C0
_HALF_OPAQUE = 128
#: MuPDF cuts font names to this length, and gives this name to Type 3 fonts without a name.
_MAX_FONT_NAME_LENGTH, _UNNAMED_TYPE3_FONT = 31, "Unnamed-T3"
#: Codes of painted objects: words, an area, an image.
_TEXT_PAINT, _AREA_PAINT, _IMAGE_PAINT = "wai"
#: A line does not strike a word through if it stays nearer to the box's edges than this share of its shorter side.
_EDGE_MARGIN_SHARE = 0.3
#: Painted objects are indexed by bands of this height (points).
_BAND_HEIGHT = 16

#: x0, y0, x1, y1 in points of the displayed page.
Rect = tuple[float, float, float, float]


class Occluder(NamedTuple):
    """A painted object that may hide words in its area."""

    area: Rect
    painted_before_block: float = math.inf
    """Number of a block before which the object was certainly painted; infinite if unknown."""
    is_light: bool = False
    """True if the object is so light that dark words painted on it stay visible."""

    def may_obscure_dark_words(self, box: Rect, block_number: int) -> bool:
        """Return True if this object may hide dark words in ``box``.

        ``block_number`` is the number of the words' text block in the order of painting.
        """
        x0, y0, x1, y1 = self.area
        return (
            not (self.is_light and self.painted_before_block < block_number)
            and x0 < box[2]
            and box[0] < x1
            and y0 < box[3]
            and box[1] < y1
        )


class PageVisibilityInspector:
    """All information from MuPDF about the visibility of a page's words."""

    def __init__(self, page: Any) -> None:
        """Inspect a ``pymupdf.Page``; MuPDF's exceptions for a broken page are not caught."""
        self._page = page
        self._pymupdf = load_pymupdf()
        rect = page.rect
        self.width: float = rect.width
        self.height: float = rect.height
        # With TEXT_LAZY_VECTORS, lines under words do not split them; a line may be reported after later words, never
        # before earlier ones. TEXT_COLLECT_STYLES would find words drawn twice, but takes ten times as long as the
        # rest.
        self._text_page = self._extract_text_page(self._pymupdf.TEXT_COLLECT_VECTORS | self._pymupdf.TEXT_LAZY_VECTORS)
        #: MuPDF's blocks of text (type 0) and of drawn lines and areas (type 3), in the order of painting.
        self.blocks: list[dict[str, Any]] = self._text_page.extractDICT()["blocks"]
        # A broad stroked block is a frame or a bar-like line; only its path, hence "stroke_path", shows which.
        has_frames = any(
            block["type"] == VECTOR_BLOCK and block["stroked"] and _is_broad(block["bbox"]) for block in self.blocks
        )
        self._recorder = self._record_paint((*_OCCLUDING_CALLS, "stroke_path") if has_frames else _OCCLUDING_CALLS)

    @property
    def words(self) -> list[tuple[float, float, float, float, str, int, int, int]]:
        """Words of the page, including words outside the page's edges.

        Each is x0, y0, x1, y1, text, number of its block, of its line in the block, and of the word in the line.
        """
        return list(self._text_page.extractWORDS())

    @cached_property
    def _fonts(self) -> list[tuple[Any, ...]]:
        return list(self._page.get_fonts())

    @cached_property
    def font_xrefs_by_name(self) -> dict[str, int]:
        """PDF object number of each font, by the font's name; 0 if a name is ambiguous.

        Empty if no font of the page is embedded in the file.
        """
        fonts = self._fonts
        # Type 3 fonts have no font file, but their glyphs are drawn by the PDF itself.
        if all(extension == "n/a" and kind != "Type3" for _, extension, kind, *_ in fonts):
            return {}
        if not all(xref for xref, *_ in fonts):
            return {"": 0}  # a font without an object number: its name is ambiguous
        mupdf = self._pymupdf.mupdf
        document = mupdf.pdf_document_from_fz_document(self._page.parent.this)
        xrefs_by_name: dict[str, int] = {}
        for xref, *_ in fonts:
            for name in _find_font_names(mupdf.pdf_load_object(document, xref)):
                xrefs_by_name[name] = 0 if xrefs_by_name.get(name, xref) != xref else xref
        return xrefs_by_name

    @property
    def has_misleading_font(self) -> bool:
        """True if a font on the page shows other characters than the page's text has."""
        misleading_characters = {
            character
            for font_xref, extension, kind, *_ in self._fonts
            if font_xref
            for character in find_misleading_characters(
                self._page.parent, font_xref, has_own_glyphs=extension != "n/a" or kind == "Type3"
            )
        }
        return bool(misleading_characters) and not misleading_characters.isdisjoint(self._text_page.extractText())

    @cached_property
    def image_areas(self) -> list[Rect]:
        """Area of each image, clipped to the page."""
        return [self._clip_to_page(area) for area in self._recorder.image_areas]

    def is_centre_painted_over(self, box: Rect) -> bool:
        """Return True if something was painted over the middle of ``box``.

        Counted are an image, and an area with later words on it.
        """
        x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
        areas = (*self.image_areas, *(area for _, area in self._vectors_by_band.get(int(y // _BAND_HEIGHT), ())))
        if not any(x0 <= x <= x1 and y0 <= y <= y1 for x0, y0, x1, y1 in areas):
            return False
        nearby_paint = self._paint_by_band.get(int(y // _BAND_HEIGHT), ())
        paint_kinds = "".join([kind for kind, (x0, y0, x1, y1) in nearby_paint if x0 <= x <= x1 and y0 <= y <= y1])
        _, _, later_kinds = paint_kinds.partition(_TEXT_PAINT)
        return _IMAGE_PAINT in later_kinds or _TEXT_PAINT in later_kinds.partition(_AREA_PAINT)[2]

    @cached_property
    def _paint_by_band(self) -> dict[int, list[tuple[str, Rect]]]:
        """Objects painted from the first words on, in order, by band of the page.

        Lines are left out; empty if only words were painted.
        """
        if not self.image_areas and all(block["type"] == TEXT_BLOCK or block["stroked"] for block in self.blocks):
            return {}
        paint_events = list(
            dropwhile(
                lambda paint_event: paint_event[0] != _TEXT_PAINT, self._record_paint(_LAYERING_CALLS).paint_events
            )
        )
        if all(kind == _TEXT_PAINT for kind, _ in paint_events):
            return {}
        return group_pairs(
            (band, paint_event) for paint_event in paint_events for band in self._get_band_range(paint_event[1])
        )

    @property
    def has_gradients(self) -> bool:
        """True if colour gradients are painted on the page."""
        return bool(self._recorder.has_gradients)

    @cached_property
    def occluders(self) -> list[Occluder]:
        """All painted objects on the page that may hide words."""
        # Stroked lines are among the recorder's areas, because it knows their widths.
        occluders = [
            Occluder(block["bbox"], block["number"], block["color"] & _LIGHT_BITS == _LIGHT_BITS)
            for block in self.blocks
            if block["type"] == VECTOR_BLOCK and not block["stroked"] and _is_broad(block["bbox"])
        ]
        occluders += map(Occluder, (*self._recorder.occluding_areas, *self._recorder.image_areas))
        if self._recorder.has_clips and len(self._extract_text_page(self._pymupdf.TEXT_CLIP).extractText()) != len(
            self._text_page.extractText()
        ):
            occluders.append(Occluder((-math.inf, -math.inf, math.inf, math.inf)))
        return occluders

    @cached_property
    def _picture(self) -> Image.Image | None:
        """The page's RGB picture; None if it cannot be drawn or is too coarse for print."""
        return self._draw(with_text=True)

    @cached_property
    def _text_ink(self) -> Image.Image | None:
        """Each pixel's difference from the page without its text; None as ``_picture``."""
        textless_picture = self._draw(with_text=False)
        return ImageChops.difference(self._picture, textless_picture) if self._picture and textless_picture else None

    @cached_property
    def _scale(self) -> float:
        """Pixels per point of the page's picture."""
        return min(1.0, math.sqrt(_MAX_RASTER_PIXELS / max(self.width * self.height, 1)))

    def _draw(self, *, with_text: bool) -> Image.Image | None:
        if self._scale < _MIN_SCALE:
            return None
        mupdf = self._pymupdf.mupdf
        try:
            size = math.ceil(self.width * self._scale), math.ceil(self.height * self._scale)
            pixmap = mupdf.FzPixmap(mupdf.FzColorspace(mupdf.FzColorspace.Fixed_RGB), *size, mupdf.FzSeparations(), 0)
            mupdf.fz_clear_pixmap_with_value(pixmap, 255)  # white
            device = mupdf.FzDevice(mupdf.FzMatrix(self._scale, 0, 0, self._scale, 0, 0), pixmap)
            if not with_text:
                device.m_internal.fill_text = device.m_internal.stroke_text = None
            mupdf.fz_run_page(self._page.this, device, mupdf.FzMatrix(), mupdf.FzCookie())
            mupdf.fz_close_device(device)
            return Image.frombytes("RGB", size, self._pymupdf.Pixmap("raw", pixmap).samples)
        except Exception:  # noqa: BLE001 - MuPDF's errors share no base; the page's text can still be read
            return None

    def _measure_ranges(self, picture: Image.Image | None, box: Rect) -> list[tuple[int, int]]:
        """Return the lowest and highest red, green and blue in a box (points).

        Empty if no pixel is in the box.
        """
        if picture is None:
            return []
        left, right = max(int(box[0] * self._scale), 0), min(math.ceil(box[2] * self._scale), picture.width)
        top, bottom = max(int(box[1] * self._scale), 0), min(math.ceil(box[3] * self._scale), picture.height)
        if left >= right or top >= bottom:
            return []
        return list(picture.crop((left, top, right, bottom)).getextrema())  # type: ignore[arg-type]  # RGB: pairs

    def has_visible_contrast(self, box: Rect) -> bool:
        """Return True if the page's picture shows anything in the box.

        False if the page has no picture.
        """
        return any(highest - lowest >= _MIN_CONTRAST for lowest, highest in self._measure_ranges(self._picture, box))

    def has_visible_ink(self, box: Rect, *, needs_strong_contrast: bool) -> bool:
        """Return True if the page's text leaves visible ink in the box.

        False if the page has no picture. With ``needs_strong_contrast``, more than traces of dark print must be visible.
        """
        min_contrast = _MIN_PRINT_CONTRAST if needs_strong_contrast else _MIN_CONTRAST
        return any(highest >= min_contrast for _, highest in self._measure_ranges(self._text_ink, box))

    def is_struck_through(self, box: Rect, block_number: int) -> bool:
        """Return True if a line was drawn through the words in ``box``.

        ``block_number`` is the number of the words' text block; only lines painted later count.
        """
        inset = _EDGE_MARGIN_SHARE * min(box[2] - box[0], box[3] - box[1])
        x0, y0, x1, y1 = box[0] + inset, box[1] + inset, box[2] - inset, box[3] - inset
        return any(
            block_number < vector_number and left <= x1 and x0 <= right and top <= y1 and y0 <= bottom
            for band in range(int(y0 // _BAND_HEIGHT), int(y1 // _BAND_HEIGHT) + 1)
            for vector_number, (left, top, right, bottom) in self._vectors_by_band.get(band, ())
        )

    @cached_property
    def _vectors_by_band(self) -> dict[int, list[tuple[int, Rect]]]:
        """Number and area of each drawing after the first words, by band of the page."""
        return group_pairs(
            (band, (block["number"], block["bbox"]))
            for block in dropwhile(lambda block: block["type"] != TEXT_BLOCK, self.blocks)
            if block["type"] == VECTOR_BLOCK
            for band in self._get_band_range(block["bbox"])
        )

    def _get_band_range(self, rect: Rect) -> range:
        first, last = (int(min(max(0.0, y), self.height) // _BAND_HEIGHT) for y in (rect[1], rect[3]))
        return range(first, last + 1)

    @property
    def is_single_colour(self) -> bool:
        """True if the page is rendered in one colour; False if it cannot be rendered."""
        ranges = self._measure_ranges(self._picture, (0, 0, self.width, self.height))
        return bool(ranges) and all(lowest == highest for lowest, highest in ranges)

    def is_on_page(self, box: Rect) -> bool:
        """Return True if the whole box is inside the page's edges."""
        return box[0] >= 0 and box[1] >= 0 and box[2] <= self.width and box[3] <= self.height

    def _extract_text_page(self, flags: int) -> Any:
        # Without an infinite clip, text outside the page would be lost; it must be reported as hidden.
        # ActualText, a file's claim of what its glyphs mean, is ignored: a person does not see it.
        flags |= self._pymupdf.TEXT_PRESERVE_WHITESPACE | self._pymupdf.TEXT_IGNORE_ACTUALTEXT
        matrix = self._page.rotation_matrix if self._page.rotation else None
        return self._page.get_textpage(clip=self._pymupdf.INFINITE_RECT(), flags=flags, matrix=matrix)

    def _record_paint(self, device_calls: Iterable[str]) -> Any:
        mupdf = self._pymupdf.mupdf
        recorder = _load_recorder_class()(mupdf, self.width, self.height, device_calls)
        mupdf.fz_run_page(self._page.this, recorder, mupdf.FzMatrix(), mupdf.FzCookie())
        mupdf.fz_close_device(recorder)
        return recorder

    def _clip_to_page(self, area: Rect) -> Rect:
        x0, y0 = max(area[0], 0.0), max(area[1], 0.0)
        return x0, y0, max(min(area[2], self.width), x0), max(min(area[3], self.height), y0)


def is_dark_and_opaque(span: dict[str, Any]) -> bool:
    """Return True if a MuPDF text span is dark and opaque, so visible on white."""
    return not span["color"] & _BRIGHT_BITS and span["alpha"] >= _HALF_OPAQUE and bool(span["char_flags"] & FILLED_FLAG)


def _find_font_names(font: Any) -> set[str]:
    name_objects = (
        font.pdf_dict_gets("BaseFont"),
        font.pdf_dict_gets("Name"),
        font.pdf_dict_gets("DescendantFonts").pdf_array_get(0).pdf_dict_gets("BaseFont"),
    )
    names = {name.pdf_to_name()[:_MAX_FONT_NAME_LENGTH] for name in name_objects}
    return names | ({_UNNAMED_TYPE3_FONT} if font.pdf_dict_gets("CharProcs").pdf_is_dict() else set())


def _is_broad(box: Rect) -> bool:
    return box[2] - box[0] > THIN_LINE_WIDTH and box[3] - box[1] > THIN_LINE_WIDTH


class _OccluderRecorder:
    """Methods of a MuPDF device that record painted objects which may hide words."""

    def __init__(self, mupdf: Any, width: float, height: float, device_calls: Iterable[str]) -> None:
        """Make MuPDF call only the methods named in ``device_calls``; others cost nothing."""
        super().__init__()
        self._mupdf = mupdf
        self._width = width
        self._height = height
        self.image_areas: list[Rect] = []
        self.occluding_areas: list[Rect] = []
        self.paint_events: list[tuple[str, Rect]] = []
        self.has_clips = self.has_gradients = False
        for device_call in device_calls:
            getattr(self, f"use_virtual_{device_call}")()

    def fill_text(self, _context: Any, text: Any, matrix: Any, *_: Any) -> None:
        self.paint_events.append((_TEXT_PAINT, _convert_rect(self._mupdf.ll_fz_bound_text(text, None, matrix))))

    def fill_path(self, _context: Any, path: Any, _even_odd: Any, matrix: Any, *_: Any) -> None:
        area = _convert_rect(self._mupdf.ll_fz_bound_path(path, None, matrix))
        if _is_broad(area):
            self.paint_events.append((_AREA_PAINT, area))

    def fill_image(self, _context: Any, _image: Any, matrix: Any, *_: Any) -> None:
        self.image_areas.append(self._transform_unit_square(matrix))
        self.paint_events.append((_IMAGE_PAINT, self.image_areas[-1]))

    def fill_image_mask(self, _context: Any, _image: Any, matrix: Any, *_: Any) -> None:
        self.image_areas.append(self._transform_unit_square(matrix))

    def fill_shade(self, _context: Any, shade: Any, matrix: Any, *_: Any) -> None:
        self.has_gradients = True
        self.occluding_areas.append(_convert_rect(self._mupdf.ll_fz_bound_shade(shade, matrix)))

    def stroke_path(self, _context: Any, path: Any, stroke: Any, matrix: Any, *_: Any) -> None:
        if stroke.linewidth * self._mupdf.ll_fz_matrix_expansion(matrix) > THIN_LINE_WIDTH:
            self.occluding_areas.append(_convert_rect(self._mupdf.ll_fz_bound_path(path, stroke, matrix)))

    def clip_path(self, _context: Any, path: Any, _even_odd: Any, matrix: Any, _scissor: Any) -> None:
        # If a clip path is not a rectangle, only its box is known; words inside the box may still be cut off.
        is_rect = self._mupdf.ll_fz_path_is_rect(path, matrix)
        if is_rect and self.has_clips:
            return
        x0, y0, x1, y1 = area = _convert_rect(self._mupdf.ll_fz_bound_path(path, None, matrix))
        if not is_rect:
            self.occluding_areas.append(area)
        elif x0 <= 0 and y0 <= 0 and x1 >= self._width and y1 >= self._height:
            return
        self.has_clips = True

    def clip_stroke_path(self, _context: Any, path: Any, stroke: Any, matrix: Any, _scissor: Any) -> None:
        self.has_clips = True
        self.occluding_areas.append(_convert_rect(self._mupdf.ll_fz_bound_path(path, stroke, matrix)))

    def clip_image_mask(self, _context: Any, _image: Any, matrix: Any, _scissor: Any) -> None:
        self.has_clips = True
        self.image_areas.append(self._transform_unit_square(matrix))

    def begin_mask(self, _context: Any, area: Any, *_: Any) -> None:
        self.occluding_areas.append(_convert_rect(area))

    def begin_group(self, _context: Any, area: Any, *appearance: Any) -> None:
        *_, blend_mode, alpha = appearance
        if blend_mode or 255 * alpha < _HALF_OPAQUE:
            self.occluding_areas.append(_convert_rect(area))

    def begin_tile(self, _context: Any, area: Any, *rest: Any) -> int:
        _, _, _, matrix, *_ = rest
        self.occluding_areas.append(_convert_rect(self._mupdf.ll_fz_transform_rect(area, matrix)))
        return 0  # 0: the tile is not cached, MuPDF paints it

    def _transform_unit_square(self, matrix: Any) -> Rect:
        return _convert_rect(self._mupdf.ll_fz_transform_rect(self._mupdf.fz_unit_rect, matrix))


@cache
def _load_recorder_class() -> Any:
    """Return the subclass of MuPDF's device that has the methods of _OccluderRecorder.

    The class is made on first use, because PyMuPDF is loaded late.
    """
    return type("_Watcher", (_OccluderRecorder, load_pymupdf().mupdf.FzDevice2), {})


#: Methods of the device that report objects which may hide words; the other list is for the order of painting.
_OCCLUDING_CALLS = (
    "fill_image",
    "fill_image_mask",
    "fill_shade",
    "clip_path",
    "clip_stroke_path",
    "clip_image_mask",
    "begin_mask",
    "begin_group",
    "begin_tile",
)
_LAYERING_CALLS = ("fill_text", "fill_path", "fill_image")


def _convert_rect(rect: Any) -> Rect:
    return rect.x0, rect.y0, rect.x1, rect.y1
