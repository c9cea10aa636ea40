"""Content of a page as MuPDF draws it: words with positions, lines, images.

All coordinates are points of the page as it is displayed (after rotation), x to the right, y downwards.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from evalkit.core.grouping import split_into_runs
from evalkit.documents.identity.barcodes import find_barcode_areas
from evalkit.documents.page_damage import MISLEADING_FONT
from evalkit.documents.ruled_tables import RulingLine, TableGrid, find_grids
from evalkit.documents.visibility import (
    FILLED_FLAG,
    TEXT_BLOCK,
    THIN_LINE_WIDTH,
    VECTOR_BLOCK,
    PageVisibilityInspector,
    Rect,
    is_dark_and_opaque,
)

#: If images cover at least this share of a page, they may contain text.
_LARGE_IMAGE_SHARE = 0.05
#: If a page has at least this many curves and oblique lines, they may be letters drawn as outlines.
_MIN_OUTLINE_SHAPES = 600
#: A page with nothing but this many straight lines or fewer is blank: they are the rules of a letterhead.
_MAX_LETTERHEAD_RULES = 8
#: Text smaller than this (points) counts as hidden if the page also has text this many times larger; if all text is
#: small, the page is meant to be enlarged.
_TINY_FONT_SIZE, _TINY_RATIO = 2.0, 3.0
#: A word is compared only with words in horizontal bands of this height (points) around it, to find words drawn twice.
_BAND_HEIGHT = 20
#: Words with less opacity than this (of 255) count as invisible: over a scan, the print in the picture would be taken
#: for these words.
_MIN_ALPHA = 26
_BOLD_FLAG, _STROKED_FLAG, _CLIPPED_FLAG = 8, 32, 64
#: C0, DEL and C1 controls, lone surrogates, two non-characters: they are never drawn, and some break JSON readers.
UNPRINTABLE_CHARACTER = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
#: Formatting marks, private-use characters and others that may leave no ink on the page.
_TRACELESS_CHARACTER = re.compile("[\xad\u200b-\u200f\u2028-\u202f\u2060-\u206f\ue000-\uf8ff\ufeff\ufffd]")
#: What is lost on a page whose font gives glyphs other characters than it shows.
#: MuPDF's word: x0, y0, x1, y1, text, number of its block, of its line in the block, and of the word in the line.
_MupdfWord = tuple[float, float, float, float, str, int, int, int]


class PageToken(NamedTuple):
    """A word and its rectangle on the page."""

    text: str
    x0: float
    y0: float
    x1: float
    y1: float


#: Makers of a ``PageToken`` from MuPDF's word, in two steps: like ``PageToken._make``, but without a Python call per
#: word.
_pick_token_fields = itemgetter(4, 0, 1, 2, 3)
_make_token: Callable[[tuple[object, ...]], PageToken] = partial(tuple.__new__, PageToken)


class PageLine:
    """Words on one baseline without a wide gap between them. Immutable, never empty."""

    __slots__ = ("bold_share", "font_size", "quarter_turns", "text", "tokens", "x0", "x1", "y0", "y1")

    def __init__(
        self, tokens: tuple[PageToken, ...], font_size: float, bold_share: float = 0.0, quarter_turns: int | None = 0
    ) -> None:
        """Create a line from its words.

        ``font_size`` is the size of most characters in points, ``bold_share`` the share (0..1) of bold characters.
        ``quarter_turns`` is the direction of the text in quarter turns clockwise; None if the text is oblique.
        """
        # Layout reads text and edges very often, so both are computed once, for all tokens together.
        texts, lefts, tops, rights, bottoms = zip(*tokens, strict=True)
        self.tokens = tokens
        self.font_size = font_size
        self.bold_share = bold_share
        self.quarter_turns = quarter_turns
        self.text: str = " ".join(texts)
        self.x0: float = min(lefts)
        self.y0: float = min(tops)
        self.x1: float = max(rights)
        self.y1: float = max(bottoms)

    @property
    def box(self) -> Rect:
        """The rectangle x0, y0, x1, y1 around all words of the line."""
        return self.x0, self.y0, self.x1, self.y1


@dataclass(frozen=True, slots=True)
class PageContent:
    """Everything that is drawn on a page: text lines, ruling lines, images, shapes."""

    width: float
    height: float
    visible_lines: tuple[PageLine, ...]
    """Lines of text that a person can see."""
    hidden_lines: tuple[PageLine, ...]
    """Lines of text that a person cannot see: invisible, too faint, too small, covered, clipped away, outside the
    page, or in a font that shows other letters."""
    grids: tuple[TableGrid, ...]
    """Tables that are drawn with lines."""
    horizontal_rules: tuple[RulingLine, ...]
    """Horizontal lines drawn on the page."""
    image_share: float
    """Share (0..1) of the page's area that images cover."""
    ocr_layer: tuple[PageLine, ...]
    """Lines of ``visible_lines`` that a scanner's OCR wrote invisibly over an image."""
    shape_count: int
    """Number of curves and oblique lines; if letters are drawn as outlines, there are thousands."""
    is_blank: bool
    """True if the page has no visible text, no image, and no drawing but a few straight lines or a single colour."""
    barcode_areas: tuple[Rect, ...] = ()
    """Areas of the page that may contain bar codes."""
    damage: tuple[str, ...] = ()
    """Sentences about what is lost, as ``Page.damage``."""

    @property
    def ocr_layer_share(self) -> float:
        """Share (0..1) of the page's visible words that come from an OCR text layer."""
        word_count = sum(len(line.tokens) for line in self.visible_lines)
        return sum(len(line.tokens) for line in self.ocr_layer) / max(word_count, 1)

    @property
    def needs_ocr(self) -> bool:
        """True if pictures or curves on the page may show words that its text lacks."""
        return bool(self.ocr_layer) or self.image_share >= _LARGE_IMAGE_SHARE or self.shape_count >= _MIN_OUTLINE_SHAPES

    @property
    def copy_with_ocr_layer_hidden(self) -> PageContent:
        """Copy of the page's content in which the OCR layer is among the hidden lines."""
        layer_line_ids = set(map(id, self.ocr_layer))
        remaining_lines = tuple(line for line in self.visible_lines if id(line) not in layer_line_ids)
        return replace(
            self, visible_lines=remaining_lines, hidden_lines=(*self.hidden_lines, *self.ocr_layer), ocr_layer=()
        )


class _LineWithVisibility(NamedTuple):
    """A line of text, or a part of one line, with what decides if a person can see it."""

    line: PageLine
    is_inked: bool
    """True if the text is painted, False if it is written invisibly."""
    is_clip_window: bool
    """True if the text is not painted but used as a window: a later painting shows through the letters."""
    is_dark_print: bool
    """True if all characters are dark, opaque and of a kind that leaves ink."""
    block_number: int
    """Number of the line's text block in MuPDF's order of painting."""
    font_texts: tuple[tuple[int, str], ...]
    """Each font's object number (0 if its name is ambiguous) and the text in that font; empty if the page has no
    embedded fonts."""


#: For each font of a file, by its object number: the characters that were seen to leave ink on a page.
VerifiedGlyphs = dict[int, set[str]]


def read_page_content(page: Any, verified_glyphs: VerifiedGlyphs | None = None) -> PageContent:
    """Read everything that is drawn on a ``pymupdf.Page``.

    An embedded font may have empty glyphs, which make words invisible: words are therefore looked up in the page's
    picture until each of their letters was seen once. ``verified_glyphs`` has the letters seen on earlier pages of the
    file; letters seen on this page are added to it. MuPDF's exceptions for a broken page are not caught.
    """
    verified_glyphs = {} if verified_glyphs is None else verified_glyphs
    inspector = PageVisibilityInspector(page)
    image_areas = inspector.image_areas
    visible_lines: list[PageLine] = []
    hidden_lines: list[PageLine] = []
    ocr_layer: list[PageLine] = []
    styled_lines = list(_read_lines_with_visibility(inspector))
    largest_size = max((styled_line.line.font_size for styled_line in styled_lines), default=0.0)
    for styled_line in styled_lines:
        line = styled_line.line
        is_over_scan = not styled_line.is_inked and any(
            is_token_centre_in_box(line, area, margin=0) for area in image_areas
        )
        is_tiny = line.font_size < _TINY_FONT_SIZE and largest_size >= _TINY_RATIO * line.font_size
        is_possibly_visible = (styled_line.is_inked or styled_line.is_clip_window or is_over_scan) and not is_tiny
        visible_tokens = _find_visible_tokens(styled_line, inspector, verified_glyphs) if is_possibly_visible else ()
        visible_pieces = split_at_wide_gaps(line, visible_tokens)
        visible_lines += visible_pieces
        ocr_layer += visible_pieces if is_over_scan else []
        if len(visible_tokens) < len(line.tokens):
            visible_set = set(visible_tokens)
            hidden_tokens = tuple(token for token in line.tokens if token not in visible_set)
            hidden_lines.append(PageLine(hidden_tokens, line.font_size, line.bold_share, line.quarter_turns))
    if inspector.has_misleading_font:  # a person sees other words than the text has, so OCR must read them
        hidden_lines, visible_lines, ocr_layer = [*visible_lines, *hidden_lines], [], []
    horizontal_rules, vertical_rules, shape_count = _find_ruling_lines(
        page, [block for block in inspector.blocks if block["type"] == VECTOR_BLOCK]
    )
    total_image_area = sum((x1 - x0) * (y1 - y0) for x0, y0, x1, y1 in image_areas)
    has_ink = bool(image_areas) or inspector.has_gradients or any(styled_line.is_inked for styled_line in styled_lines)
    has_few_rules = (
        not has_ink and not shape_count and len(horizontal_rules) + len(vertical_rules) <= _MAX_LETTERHEAD_RULES
    )
    return PageContent(
        width=inspector.width,
        height=inspector.height,
        visible_lines=tuple(visible_lines),
        hidden_lines=tuple(hidden_lines),
        grids=tuple(find_grids(horizontal_rules, vertical_rules)),
        horizontal_rules=tuple(horizontal_rules),
        image_share=min(total_image_area / (inspector.width * inspector.height), 1.0),
        ocr_layer=tuple(ocr_layer),
        shape_count=shape_count,
        is_blank=not visible_lines and total_image_area < 1 and (has_few_rules or inspector.is_single_colour),
        barcode_areas=find_barcode_areas(inspector.blocks, image_areas),
        damage=(MISLEADING_FONT,) if inspector.has_misleading_font else (),
    )


def _find_visible_tokens(
    styled_line: _LineWithVisibility, inspector: PageVisibilityInspector, verified_glyphs: VerifiedGlyphs
) -> tuple[PageToken, ...]:
    """Return the words of a line that a person can see.

    Only words that may be invisible are looked up in the page's picture.
    """
    box, tokens = styled_line.line.box, styled_line.line.tokens
    if not inspector.is_on_page(box):
        tokens = tuple(
            token
            for token in tokens
            if 0 <= (token.x0 + token.x1) / 2 <= inspector.width and 0 <= (token.y0 + token.y1) / 2 <= inspector.height
        )
    has_verified_glyphs = all(
        font_xref in verified_glyphs and verified_glyphs[font_xref].issuperset(text)
        for font_xref, text in styled_line.font_texts
    )
    is_surely_visible = styled_line.is_inked and styled_line.is_dark_print and has_verified_glyphs
    occluders = inspector.occluders
    is_possibly_obscured = bool(occluders) and any(
        occluder.may_obscure_dark_words(box, styled_line.block_number) for occluder in occluders
    )
    is_struck_through = inspector.is_struck_through(box, styled_line.block_number)
    if is_surely_visible and not is_possibly_obscured and not is_struck_through:
        return tokens
    if styled_line.is_inked:
        visible_tokens = tuple(
            token
            for token in tokens
            if inspector.has_visible_ink(
                _inset_word_box(token), needs_strong_contrast=styled_line.is_dark_print and is_struck_through
            )
            and not inspector.is_centre_painted_over(token[1:])
        )
    else:
        visible_tokens = tuple(token for token in tokens if inspector.has_visible_contrast(_inset_word_box(token)))
    if len(visible_tokens) == len(styled_line.line.tokens):
        for font_xref, text in styled_line.font_texts:
            if font_xref:  # 0: several fonts have this name
                verified_glyphs.setdefault(font_xref, set()).update(text)
    return visible_tokens


def _read_lines_with_visibility(inspector: PageVisibilityInspector) -> Iterator[_LineWithVisibility]:
    words_by_line = {
        line_key: list(group)
        for line_key, group in groupby(
            _remove_duplicate_words(_split_and_clean_words(inspector.words)), key=itemgetter(5, 6)
        )
    }
    font_xrefs_by_name = inspector.font_xrefs_by_name
    # MuPDF's words number text blocks only; the number of a block also counts painted lines and areas.
    for text_block_index, block in enumerate(block for block in inspector.blocks if block["type"] == TEXT_BLOCK):
        for line_index, line in enumerate(block["lines"]):
            if line_words := words_by_line.get((text_block_index, line_index)):
                tokens = tuple(map(_make_token, map(_pick_token_fields, line_words)))
                yield from _split_by_visibility(
                    tokens, line["spans"], _compute_quarter_turns(line["dir"]), block["number"], font_xrefs_by_name
                )


def _split_by_visibility(
    tokens: tuple[PageToken, ...],
    spans: list[dict[str, Any]],
    quarter_turns: int | None,
    block_number: int,
    font_xrefs_by_name: dict[str, int],
) -> Iterator[_LineWithVisibility]:
    font_size, bold_share = _measure_font_size_and_boldness(spans)
    inked_tokens = tokens
    uninked_tokens: tuple[PageToken, ...] = ()
    uninked_spans = [
        span for span in spans if not span["char_flags"] & (FILLED_FLAG | _STROKED_FLAG) or span["alpha"] < _MIN_ALPHA
    ]
    if uninked_spans:
        inked_tokens = tuple(
            token for token in tokens if not any(is_token_centre_in_box(token, span["bbox"]) for span in uninked_spans)
        )
        uninked_tokens = tuple(token for token in tokens if token not in inked_tokens)
    if inked_tokens:
        line = PageLine(inked_tokens, font_size, bold_share, quarter_turns)
        is_dark_print = all(map(is_dark_and_opaque, spans)) and not _TRACELESS_CHARACTER.search(line.text)
        font_texts = (
            tuple((font_xrefs_by_name.get(span["font"], 0), span["text"]) for span in spans)
            if font_xrefs_by_name
            else ()
        )
        yield _LineWithVisibility(line, True, False, is_dark_print, block_number, font_texts)
    if uninked_tokens:
        is_clip_window = any(span["char_flags"] & _CLIPPED_FLAG for span in uninked_spans)
        yield _LineWithVisibility(
            PageLine(uninked_tokens, font_size, bold_share, quarter_turns),
            False,
            is_clip_window,
            False,
            block_number,
            (),
        )


def _measure_font_size_and_boldness(spans: list[dict[str, Any]]) -> tuple[float, float]:
    letters_by_size: Counter[float] = Counter()
    bold_letters = 0
    for span in spans:
        letter_count = len(span["text"].strip())
        letters_by_size[round(span["size"], 1)] += letter_count
        bold_letters += letter_count if span["char_flags"] & _BOLD_FLAG or _is_bold_font(span["font"]) else 0
    return max(letters_by_size, key=lambda size: (letters_by_size[size], size)), bold_letters / max(
        letters_by_size.total(), 1
    )


def _split_and_clean_words(words: list[_MupdfWord]) -> list[_MupdfWord]:
    """Remove unprintable characters; split words at white space that MuPDF ignored."""
    joined_text = " ".join([word[4] for word in words])
    if len(joined_text.split()) == len(words) and not UNPRINTABLE_CHARACTER.search(joined_text):
        return words
    return [part for word in words for part in _split_word(word)]


def _split_word(word: _MupdfWord) -> Iterator[_MupdfWord]:
    x0, y0, x1, y1, text, block_number, line_number, word_number = word
    character_width = (x1 - x0) / max(len(text), 1)
    for match in re.finditer(r"\S+", text):
        if printable_text := UNPRINTABLE_CHARACTER.sub("", match.group()):
            yield (
                x0 + character_width * match.start(),
                y0,
                x0 + character_width * match.end(),
                y1,
                printable_text,
                block_number,
                line_number,
                word_number,
            )


def _remove_duplicate_words(words: Iterable[_MupdfWord]) -> Iterator[_MupdfWord]:
    """Remove words drawn twice, slightly moved, to look bold or to cast a shadow."""
    words_by_text: dict[str, dict[int, list[_MupdfWord]]] = {}
    for word in words:
        # Only words of nearly the same height are compared: a page may have a thousand dots of dotted lines.
        band, words_by_band = int(word[1] / _BAND_HEIGHT), words_by_text.setdefault(word[4], {})
        tolerance = 0.15 * (word[3] - word[1])
        if not words_by_band or not any(
            abs(word[0] - other_word[0]) < tolerance
            and abs(word[1] - other_word[1]) < tolerance
            and abs(word[2] - other_word[2]) < tolerance
            for near_band in (band - 1, band, band + 1)
            for other_word in words_by_band.get(near_band, ())
        ):
            words_by_band.setdefault(band, []).append(word)
            yield word


@lru_cache(maxsize=1024)
def _is_bold_font(name: str) -> bool:
    return any(word in name.lower() for word in ("bold", "black", "heavy"))


def _compute_quarter_turns(direction: tuple[float, float]) -> int | None:
    """Return the quarter turns clockwise of a text direction (cosine, sine).

    A slight skew, as in scans, is ignored; None for an oblique direction.
    """
    cosine, sine = direction
    quarters = math.degrees(math.atan2(sine, cosine)) / 90
    return round(quarters) % 4 if abs(quarters - round(quarters)) < 0.12 else None


def split_at_wide_gaps(line: PageLine, tokens: tuple[PageToken, ...]) -> list[PageLine]:
    """Split the words ``tokens`` of a line into several lines at wide gaps.

    A gap is wide if it is wider than gaps in a line of prose.
    """
    font_size = line.font_size
    runs = split_into_runs(
        tokens,
        lambda run, token: line.quarter_turns != 0 or -font_size < token[1] - run[-1][3] < 1.5 * font_size,
    )
    if len(runs) == 1 and len(tokens) == len(line.tokens):
        return [line]
    return [PageLine(tuple(run), font_size, line.bold_share, line.quarter_turns) for run in runs]


def _find_ruling_lines(page: Any, vectors: Sequence[dict[str, Any]]) -> tuple[list[RulingLine], list[RulingLine], int]:
    """Find horizontal and vertical rules on a page, and count all other shapes.

    ``vectors`` are MuPDF's blocks of drawn lines and areas.
    """
    shapes: Iterable[list[Rect]] = (_find_rectangle_edges(vector["bbox"], vector["stroked"]) for vector in vectors)
    if not all(vector["isrect"] for vector in vectors):
        # The boxes of shapes other than rectangles do not show what was drawn. The paths do, but to fetch them the page
        # must be read again.
        shapes = _find_path_edges(page)
    edges_by_shape = list(shapes)
    edges = [edge for shape_edges in edges_by_shape for edge in shape_edges]
    horizontal_rules = [RulingLine(y0, x0, x1) for x0, y0, x1, y1 in edges if abs(y1 - y0) <= 1]
    vertical_rules = [RulingLine(x0, y0, y1) for x0, y0, x1, y1 in edges if abs(x1 - x0) <= 1 and not abs(y1 - y0) <= 1]
    shape_count = sum(
        not shape_edges or not all(abs(y1 - y0) <= 1 or abs(x1 - x0) <= 1 for x0, y0, x1, y1 in shape_edges)
        for shape_edges in edges_by_shape
    )
    return horizontal_rules, vertical_rules, shape_count


def _find_path_edges(page: Any) -> Iterator[list[Rect]]:
    transform_rect = partial(_transform_rect, tuple(page.rotation_matrix))
    for path in page.get_cdrawings():
        is_stroked = "s" in path["type"]
        for path_piece in path["items"]:
            if path_piece[0] == "l" and is_stroked:
                yield [transform_rect(*path_piece[1], *path_piece[2])]
            elif path_piece[0] == "re":
                yield _find_rectangle_edges(transform_rect(*path_piece[1]), is_stroked)
            else:
                yield []


def _find_rectangle_edges(rect: Rect, is_stroked: bool) -> list[Rect]:
    """Return the lines that a rectangle shows.

    A thin rectangle is one line along its middle; a stroked rectangle has four sides; a filled area has no lines.
    """
    x0, y0, x1, y1 = rect
    x, y = (x0 + x1) / 2, (y0 + y1) / 2
    if y1 - y0 <= THIN_LINE_WIDTH:
        return [(x0, y, x1, y)]
    if x1 - x0 <= THIN_LINE_WIDTH:
        return [(x, y0, x, y1)]
    return [(x0, y0, x1, y0), (x0, y1, x1, y1), (x0, y0, x0, y1), (x1, y0, x1, y1)] if is_stroked else []


def _transform_rect(matrix: tuple[float, ...], x0: float, y0: float, x1: float, y1: float) -> Rect:
    """Map a rectangle to the displayed page; ten times faster than pymupdf.Rect."""
    a, b, c, d, e, f = matrix
    u0, v0, u1, v1 = a * x0 + c * y0 + e, b * x0 + d * y0 + f, a * x1 + c * y1 + e, b * x1 + d * y1 + f
    return min(u0, u1), min(v0, v1), max(u0, u1), max(v0, v1)


def _inset_word_box(token: PageToken) -> Rect:
    """Shrink a word's box to exclude ink of its neighbours; punctuation keeps its box."""
    inset = 0.15 * min(token.x1 - token.x0, token.y1 - token.y0) if any(map(str.isalnum, token.text)) else 0.0
    return token.x0 + inset, token.y0 + inset, token.x1 - inset, token.y1 - inset


def is_token_centre_in_box(token: PageToken | PageLine, box: Rect, margin: float = 1.0) -> bool:
    """Return True if the middle of a word or line is in the box.

    ``margin``: points by which it may be outside.
    """
    x, y = (token.x0 + token.x1) / 2, (token.y0 + token.y1) / 2
    return box[0] - margin <= x <= box[2] + margin and box[1] - margin <= y <= box[3] + margin
