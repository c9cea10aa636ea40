"""What of a page a person can see.

Nearly all words of nearly all pages are dark print on white paper, and nothing is painted near them. Only for the
others is a picture of the page drawn, which costs more than reading all of its words.

MuPDF's display list, made once and looked at by all, would save a tenth of the time. But it drops words that are
clipped away, and words that somebody hid must be told.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import cache, cached_property
from itertools import dropwhile
from typing import Any, NamedTuple

from evalkit.documents.mupdf import library
from evalkit.documents.signs import belied

#: Pixels of the picture that tells whether a word can be seen; more would cost time and show nothing new.
_MAX_PIXELS = 2_000_000
#: Below this scale (pixels per point) small print may vanish from the picture although a person could zoom in.
_MIN_SCALE = 0.3
#: A word can be seen if its pixels differ by this much (of 255) in red, green or blue. Print of 6 points and more, one
#: pixel a point, differs: grey 0.75 by 43 or more (its full stops by 14), grey 0.9 by 18 or more; but grey 0.95 by 13
#: at most, grey 0.97 by 8 at most, and black at an opacity of 5 % by 12 at most.
_CONTRAST = 14
#: Dark print differs by this much from the page without it. What looks out between strips of white that are painted
#: over it, each next to the other, differs by 67 at most; what is under a highlighter of half opacity, by 127.
_PRINT = 96
#: The types of MuPDF's blocks that are asked for.
TEXT, VECTOR = 0, 3
#: MuPDF's flag of letters whose areas are painted, and not only their edges.
FILLED = 16
#: Lines thinner than this (points) leave enough of a word to be read.
THIN = 3.0
#: Bits of a colour 0xRRGGBB: none is set where red, green and blue are in their darker half, ...
_NOT_DARK = 0x808080
#: ... and all are set where they are in their lightest quarter, so that the two differ by far more than _CONTRAST.
_LIGHT = 0xC0C0C0
_HALF_OPAQUE = 128
#: So many letters of a font's name are told, and this of a font of type 3 that has none.
_FONT_NAME, _NAMELESS = 31, "Unnamed-T3"
#: What is painted: words, an area, an image.
_WORDS, _AREA, _IMAGE = "wai"
_WHITE = 255
#: What is drawn nearer to a box's edges than this share of its height leaves enough of its words to be read.
_MIDDLE = 0.3
#: What is painted is looked for within bands of this height (points).
_BAND = 16

Rect = tuple[float, float, float, float]
"""x0, y0, x1, y1 in points of the displayed page."""


class Cover(NamedTuple):
    """Something that may make words in its area hard to see."""

    area: Rect
    order: float = math.inf
    """The number of the text block that it was painted before, at the latest; infinite where that is not known."""
    is_light: bool = False
    """Whether it hides no dark word that is painted upon it."""

    def dims(self, box: Rect, order: int) -> bool:
        """Whether dark words of text block ``order`` that stand in ``box`` may be hard to see because of it."""
        x0, y0, x1, y1 = self.area
        return (
            not (self.is_light and self.order < order) and x0 < box[2] and box[0] < x1 and y0 < box[3] and box[1] < y1
        )


class Sheet:
    """A page, as MuPDF tells what is on it."""

    def __init__(self, page: Any) -> None:
        """``page`` is a ``pymupdf.Page``. Raises whatever MuPDF raises for a broken page."""
        self._page = page
        self._mupdf = library()
        rect = page.rect
        self.width: float = rect.width
        self.height: float = rect.height
        # Lazy vectors do not part words that are underlined; they may be told later than they were painted, not earlier.
        # TEXT_COLLECT_STYLES would find words drawn twice, but takes ten times as long as all the rest.
        self._text = self._extract(self._mupdf.TEXT_COLLECT_VECTORS | self._mupdf.TEXT_LAZY_VECTORS)
        self.blocks: list[dict[str, Any]] = self._text.extractDICT()["blocks"]
        """MuPDF's blocks of text (type 0) and drawn lines and areas (type 3), in the order they were painted."""
        # A frame, or a line as broad as a bar: only the path says which.
        has_frames = any(
            block["type"] == VECTOR and block["stroked"] and _is_broad(block["bbox"]) for block in self.blocks
        )
        self._watch = self._watched((*_COVERING, "stroke_path") if has_frames else _COVERING)

    @property
    def words(self) -> list[tuple[float, float, float, float, str, int, int, int]]:
        """x0, y0, x1, y1, text, number of the block, of the line in it, and of the word; also what is off the page."""
        words: list[tuple[float, float, float, float, str, int, int, int]] = self._text.extractWORDS()
        return words

    @cached_property
    def own_fonts(self) -> dict[str, int]:
        """By the name that MuPDF tells, the object that the font is; 0 where several are called so.

        Empty where the file brings along no font of the page.
        """
        fonts = self._page.get_fonts()
        # Fonts of type 3 are drawings and have no file.
        if all(ending == "n/a" and kind != "Type3" for _, ending, kind, *_ in fonts):
            return {}
        if not all(number for number, *_ in fonts):
            return {"": 0}  # a font that is no object: nobody knows which of the others it is called like
        binding = self._mupdf.mupdf
        document = binding.pdf_document_from_fz_document(self._page.parent.this)
        known: dict[str, int] = {}
        for number, *_ in fonts:
            for name in _font_names(binding.pdf_load_object(document, number)):
                known[name] = 0 if known.get(name, number) != number else number
        return known

    @property
    def is_belied(self) -> bool:
        """Whether a font says other letters than its own for any that the page has."""
        signs = {sign for number, *_ in self._page.get_fonts() if number for sign in belied(self._page.parent, number)}
        return bool(signs) and not signs.isdisjoint(self._text.extractText())

    @property
    def images(self) -> list[Rect]:
        """Where images are painted, as far as they are on the page."""
        return [self._clipped(area) for area in self._watch.images]

    def is_painted_over(self, box: Rect) -> bool:
        """Whether an image, or an area with other words on it, was painted over the middle of the box."""
        x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
        near = self._painted.get(int(y // _BAND), ())
        kinds = "".join([kind for kind, (x0, y0, x1, y1) in near if x0 <= x <= x1 and y0 <= y <= y1])
        _, _, later = kinds.partition(_WORDS)
        return _IMAGE in later or _WORDS in later.partition(_AREA)[2]

    @cached_property
    def _painted(self) -> dict[int, list[tuple[str, Rect]]]:
        """By bands of the page, what was painted there, in its order, from the first words on; lines are left out.

        Empty where there are only words.
        """
        bands: dict[int, list[tuple[str, Rect]]] = {}
        if not self.images and all(block["type"] == TEXT or block["stroked"] for block in self.blocks):
            return bands
        painted = list(dropwhile(lambda one: one[0] != _WORDS, self._watched(_LAYERED).painted))
        if any(kind != _WORDS for kind, _ in painted):
            for one in painted:
                for band in self._bands(one[1]):
                    bands.setdefault(band, []).append(one)
        return bands

    @property
    def has_shades(self) -> bool:
        """Whether anything is painted with a gradient."""
        return bool(self._watch.has_shades)

    @cached_property
    def covers(self) -> list[Cover]:
        """All that may make words hard to see."""
        covers = [Cover(area) for area in self._watch.areas]
        covers += [Cover(area) for area in self._watch.images]
        if self._watch.has_clips and self._is_text_clipped():
            covers.append(Cover((-math.inf, -math.inf, math.inf, math.inf)))
        return covers + list(_fills(self.blocks))

    @cached_property
    def _picture(self) -> _Picture | None:
        """None where the page cannot be drawn, or is so large that its print would vanish."""
        return self._drawn(with_text=True)

    @cached_property
    def _without_text(self) -> _Picture | None:
        """The same without what is written."""
        return self._drawn(with_text=False)

    def _drawn(self, *, with_text: bool) -> _Picture | None:
        scale = min(1.0, math.sqrt(_MAX_PIXELS / max(self.width * self.height, 1)))
        if scale < _MIN_SCALE:
            return None
        binding = self._mupdf.mupdf
        try:
            width, height = math.ceil(self.width * scale), math.ceil(self.height * scale)
            rgb = binding.FzColorspace(binding.FzColorspace.Fixed_RGB)
            pixmap = binding.FzPixmap(rgb, width, height, binding.FzSeparations(), 0)
            binding.fz_clear_pixmap_with_value(pixmap, _WHITE)
            device = binding.FzDevice(binding.FzMatrix(scale, 0, 0, scale, 0, 0), pixmap)
            if not with_text:
                device.m_internal.fill_text = device.m_internal.stroke_text = None
            binding.fz_run_page(self._page.this, device, binding.FzMatrix(), binding.FzCookie())
            binding.fz_close_device(device)
            drawn = self._mupdf.Pixmap("raw", pixmap)
        except Exception:  # noqa: BLE001 - MuPDF's errors share no base but Exception; the text may be well all the same
            return None
        return _Picture(drawn.samples, width, height, drawn.stride, scale)

    def shows(self, box: Rect) -> bool:
        """Whether a person sees something in the box; False where no picture can tell."""
        return self._picture is not None and self._picture.has_contrast(box)

    def shows_print(self, box: Rect, *, is_dark: bool) -> bool:
        """Whether what is written leaves ink in the box that a person sees; False where no picture can tell.

        Of dark print, more than a trace has to be left.
        """
        picture, without_text = self._picture, self._without_text
        contrast = _PRINT if is_dark else _CONTRAST
        return picture is not None and without_text is not None and picture.differs(without_text, box, contrast)

    def is_crossed(self, box: Rect, order: int) -> bool:
        """Whether anything was drawn through the middle of words of text block ``order`` that stand in the box."""
        inset = _MIDDLE * min(box[2] - box[0], box[3] - box[1])
        x0, y0, x1, y1 = box[0] + inset, box[1] + inset, box[2] - inset, box[3] - inset
        return any(
            order < number and left <= x1 and x0 <= right and top <= y1 and y0 <= bottom
            for band in range(int(y0 // _BAND), int(y1 // _BAND) + 1)
            for number, (left, top, right, bottom) in self._drawn_later.get(band, ())
        )

    @cached_property
    def _drawn_later(self) -> dict[int, list[tuple[int, Rect]]]:
        """By bands of the page, the number and the place of what is drawn there after the first words."""
        bands: dict[int, list[tuple[int, Rect]]] = {}
        for block in dropwhile(lambda block: block["type"] != TEXT, self.blocks):
            if block["type"] == VECTOR:
                for band in self._bands(block["bbox"]):
                    bands.setdefault(band, []).append((block["number"], block["bbox"]))
        return bands

    def _bands(self, area: Rect) -> range:
        first, last = (int(min(max(0.0, y), self.height) // _BAND) for y in (area[1], area[3]))
        return range(first, last + 1)

    @property
    def is_empty(self) -> bool:
        """Whether the page is known to have one colour everywhere."""
        return self._picture is not None and self._picture.is_uniform

    def is_inside(self, box: Rect) -> bool:
        """Whether all of the box is on the page."""
        return box[0] >= 0 and box[1] >= 0 and box[2] <= self.width and box[3] <= self.height

    def _extract(self, flags: int) -> Any:
        # Without a clip that has no end, text outside the page would be lost instead of told apart.
        everywhere = self._mupdf.INFINITE_RECT()
        # What a file says that its signs stand for is not what a person sees.
        flags |= self._mupdf.TEXT_PRESERVE_WHITESPACE | self._mupdf.TEXT_IGNORE_ACTUALTEXT
        turn = self._page.rotation_matrix if self._page.rotation else None
        return self._page.get_textpage(clip=everywhere, flags=flags, matrix=turn)

    def _watched(self, calls: Iterable[str]) -> Any:
        binding = self._mupdf.mupdf
        watch = _watcher()(binding, self.width, self.height, calls)
        binding.fz_run_page(self._page.this, watch, binding.FzMatrix(), binding.FzCookie())
        binding.fz_close_device(watch)
        return watch

    def _is_text_clipped(self) -> bool:
        kept = self._extract(self._mupdf.TEXT_CLIP)
        return len(kept.extractText()) != len(self._text.extractText())

    def _clipped(self, area: Rect) -> Rect:
        x0, y0 = max(area[0], 0.0), max(area[1], 0.0)
        return x0, y0, max(min(area[2], self.width), x0), max(min(area[3], self.height), y0)


class _Picture(NamedTuple):
    """The page in pixels, RGB."""

    samples: bytes
    width: int
    height: int
    stride: int
    scale: float

    @property
    def is_uniform(self) -> bool:
        first = self.samples[:3] * self.width
        return all(row == first for row in self._rows(0, self.width, range(self.height)))

    def has_contrast(self, box: Rect) -> bool:
        """Whether the pixels in the box (points) differ enough to be seen; False where no pixel is in it."""
        left, right, rows = self._pixels(box)
        if left >= right:
            return False
        low, high = [255, 255, 255], [0, 0, 0]
        for row in self._rows(left, right, rows):
            for channel in range(3):
                values = row[channel::3]
                low[channel], high[channel] = min(low[channel], *values), max(high[channel], *values)
                if high[channel] - low[channel] >= _CONTRAST:
                    return True
        return False

    def differs(self, other: _Picture, box: Rect, contrast: int) -> bool:
        """Whether one of equal size differs by so much in any pixel of the box (points)."""
        left, right, rows = self._pixels(box)
        return any(
            mine != its and any(abs(one - two) >= contrast for one, two in zip(mine, its, strict=True))
            for mine, its in zip(self._rows(left, right, rows), other._rows(left, right, rows), strict=True)
        )

    def _pixels(self, box: Rect) -> tuple[int, int, tuple[int, ...]]:
        """From and to which column the box is, and its rows."""
        left, right = max(int(box[0] * self.scale), 0), min(math.ceil(box[2] * self.scale), self.width)
        top, bottom = max(int(box[1] * self.scale), 0), min(math.ceil(box[3] * self.scale), self.height)
        middle = (top + bottom) // 2  # of the rows, the likeliest to have ink
        return left, right, (*range(middle, bottom), *range(top, middle))

    def _rows(self, left: int, right: int, rows: Iterable[int]) -> Iterator[bytes]:
        for row in rows:
            yield self.samples[row * self.stride + 3 * left : row * self.stride + 3 * right]


def is_plain(span: dict[str, Any]) -> bool:
    """Whether MuPDF's span of text is filled, dark and opaque: seen on white paper without a doubt."""
    return not span["color"] & _NOT_DARK and span["alpha"] >= _HALF_OPAQUE and bool(span["char_flags"] & FILLED)


def _font_names(font: Any) -> set[str]:
    """All that MuPDF may call a font of a PDF: it tells one of them."""
    composed_of = font.pdf_dict_gets("DescendantFonts").pdf_array_get(0)
    named = (font.pdf_dict_gets("BaseFont"), font.pdf_dict_gets("Name"), composed_of.pdf_dict_gets("BaseFont"))
    names = {name.pdf_to_name()[:_FONT_NAME] for name in named}
    return names | ({_NAMELESS} if font.pdf_dict_gets("CharProcs").pdf_is_dict() else set())


def _fills(blocks: Iterable[dict[str, Any]]) -> Iterator[Cover]:
    """The painted areas; strokes are told by the watcher, which knows how wide they are."""
    for block in blocks:
        if block["type"] == VECTOR and not block["stroked"] and _is_broad(block["bbox"]):
            yield Cover(block["bbox"], block["number"], block["color"] & _LIGHT == _LIGHT)


def _is_broad(box: Rect) -> bool:
    return box[2] - box[0] > THIN and box[3] - box[1] > THIN


class _Watch:
    """What of a device of MuPDF notes things that may hide words."""

    def __init__(self, binding: Any, width: float, height: float, calls: Iterable[str]) -> None:
        """MuPDF makes only these ``calls`` of its methods, so that what nobody asks for passes by at no cost."""
        super().__init__()
        self._binding = binding
        self._width = width
        self._height = height
        self.images: list[Rect] = []
        self.areas: list[Rect] = []
        self.painted: list[tuple[str, Rect]] = []
        self.has_clips = self.has_shades = False
        for name in calls:
            getattr(self, f"use_virtual_{name}")()

    def fill_text(self, _context: Any, text: Any, matrix: Any, *_: Any) -> None:
        self.painted.append((_WORDS, _rect(self._binding.ll_fz_bound_text(text, None, matrix))))

    def fill_path(self, _context: Any, path: Any, _even_odd: Any, matrix: Any, *_: Any) -> None:
        area = _rect(self._binding.ll_fz_bound_path(path, None, matrix))
        if _is_broad(area):
            self.painted.append((_AREA, area))

    def fill_image(self, _context: Any, _image: Any, matrix: Any, *_: Any) -> None:
        self.images.append(self._square(matrix))
        self.painted.append((_IMAGE, self.images[-1]))

    def fill_image_mask(self, _context: Any, _image: Any, matrix: Any, *_: Any) -> None:
        self.images.append(self._square(matrix))

    def fill_shade(self, _context: Any, shade: Any, matrix: Any, *_: Any) -> None:
        self.has_shades = True
        self.areas.append(_rect(self._binding.ll_fz_bound_shade(shade, matrix)))

    def stroke_path(self, _context: Any, path: Any, stroke: Any, matrix: Any, *_: Any) -> None:
        if stroke.linewidth * self._binding.ll_fz_matrix_expansion(matrix) > THIN:
            self.areas.append(_rect(self._binding.ll_fz_bound_path(path, stroke, matrix)))

    def clip_path(self, _context: Any, path: Any, _even_odd: Any, matrix: Any, _scissor: Any) -> None:
        # Of other shapes than rectangles only the box is known; words in it may be cut off all the same.
        is_rect = self._binding.ll_fz_path_is_rect(path, matrix)
        if is_rect and self.has_clips:
            return
        x0, y0, x1, y1 = area = _rect(self._binding.ll_fz_bound_path(path, None, matrix))
        if not is_rect:
            self.areas.append(area)
        elif x0 <= 0 and y0 <= 0 and x1 >= self._width and y1 >= self._height:
            return
        self.has_clips = True

    def clip_stroke_path(self, _context: Any, path: Any, stroke: Any, matrix: Any, _scissor: Any) -> None:
        self.has_clips = True
        self.areas.append(_rect(self._binding.ll_fz_bound_path(path, stroke, matrix)))

    def clip_image_mask(self, _context: Any, _image: Any, matrix: Any, _scissor: Any) -> None:
        self.has_clips = True
        self.images.append(self._square(matrix))

    def begin_mask(self, _context: Any, area: Any, *_: Any) -> None:
        self.areas.append(_rect(area))

    def begin_group(self, _context: Any, area: Any, *look: Any) -> None:
        *_, blend_mode, alpha = look
        if blend_mode or 255 * alpha < _HALF_OPAQUE:
            self.areas.append(_rect(area))

    def begin_tile(self, _context: Any, area: Any, *rest: Any) -> int:
        _, _, _, matrix, *_ = rest
        self.areas.append(_rect(self._binding.ll_fz_transform_rect(area, matrix)))
        return 0  # nothing is kept: the tile is to be painted

    def _square(self, matrix: Any) -> Rect:
        """Where an image is painted: the unit square, as the matrix turns it."""
        return _rect(self._binding.ll_fz_transform_rect(self._binding.fz_unit_rect, matrix))


@cache
def _watcher() -> Any:
    """The class of the device: MuPDF's, which is loaded late, and ours."""
    return type("_Watcher", (_Watch, library().mupdf.FzDevice2), {})


#: The calls that tell what may hide words, and those that tell what lies upon what.
_COVERING = (
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
_LAYERED = ("fill_text", "fill_path", "fill_image")


def _rect(rect: Any) -> Rect:
    return rect.x0, rect.y0, rect.x1, rect.y1
