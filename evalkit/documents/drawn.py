"""What is drawn on one page, as MuPDF sees it: words with their places and looks, rules, images, and what is hidden.

All coordinates are points of the page as it is displayed (after rotation), x to the right, y downwards.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from evalkit.documents.mupdf import library
from evalkit.documents.tables import Grid, Rule, find_grids

#: Pixels of the picture that tells whether a word can be seen; more would cost time and show nothing new.
_MAX_PIXELS = 2_000_000
#: Below this scale (pixels per point) small print may vanish from the picture although a person could zoom in.
_MIN_SCALE = 0.3
#: So many lines on an otherwise empty page are a letterhead's rules, not something to be read.
_FEW_RULES = 8
#: Thinner filled rectangles are lines (points).
_THIN = 3.0
#: Words drawn twice are looked for within neighbouring bands of this height (points).
_HEIGHT_BAND = 20
_BOLD = 8
_FILLED, _STROKED, _CLIPPED = 16, 32, 64
# C0, DEL and C1 controls, lone surrogates, two non-characters: nothing that is drawn, and some break JSON readers.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_INVISIBLE_OPERATION = "ignore-text"
_Rect = tuple[float, float, float, float]
_Move = Callable[[float, float, float, float], _Rect]


class Token(NamedTuple):
    """One word."""

    text: str
    x0: float
    y0: float
    x1: float
    y1: float


@dataclass(frozen=True)
class Line:
    """Words on one baseline, without a wide gap between them; never empty."""

    tokens: tuple[Token, ...]
    size: float
    """Font size in points, of most of its characters."""
    bold: float = 0.0
    """The share of its characters that are bold, 0..1."""
    turn: int | None = 0
    """Quarter turns clockwise in which it is written; None if it is oblique."""

    @cached_property
    def x0(self) -> float:
        """Left edge."""
        return min(token.x0 for token in self.tokens)

    @cached_property
    def y0(self) -> float:
        """Upper edge."""
        return min(token.y0 for token in self.tokens)

    @cached_property
    def x1(self) -> float:
        """Right edge."""
        return max(token.x1 for token in self.tokens)

    @cached_property
    def y1(self) -> float:
        """Lower edge."""
        return max(token.y1 for token in self.tokens)

    @cached_property
    def text(self) -> str:
        """The words, one space apart."""
        return " ".join(token.text for token in self.tokens)


@dataclass(frozen=True, slots=True)
class Drawn:
    """One page's content."""

    width: float
    height: float
    lines: tuple[Line, ...]
    """What a person can see."""
    hidden: tuple[Line, ...]
    """Invisible, covered, white on white, or outside the page."""
    grids: tuple[Grid, ...]
    """Ruled tables."""
    rules: tuple[Rule, ...]
    """Horizontal rules."""
    image_share: float
    """The part of the page that images cover, 0..1."""
    layer_share: float
    """The part of the visible words that come from an invisible layer over a scan, 0..1."""
    shapes: int
    """Curves and oblique lines: letters drawn as outlines are thousands of them."""
    is_blank: bool
    """No visible text, no image, and nothing drawn but a few rules."""


class _Picture(NamedTuple):
    """The page in pixels, RGB."""

    samples: bytes
    width: int
    height: int
    stride: int
    scale: float

    def is_uniform(self, x0: float, y0: float, x1: float, y1: float) -> bool:
        """Whether all pixels in the box (points) have one colour; also where no pixel is in it."""
        left, right = max(int(x0 * self.scale), 0), min(math.ceil(x1 * self.scale), self.width)
        top, bottom = max(int(y0 * self.scale), 0), min(math.ceil(y1 * self.scale), self.height)
        if right <= left or bottom <= top:
            return True
        start = top * self.stride + 3 * left
        expected = self.samples[start : start + 3] * (right - left)
        return all(
            self.samples[row * self.stride + 3 * left : row * self.stride + 3 * right] == expected
            for row in range(top, bottom)
        )


def look_at(page: Any) -> Drawn:
    """All that is drawn on a ``pymupdf.Page``. Raises whatever MuPDF raises for a broken page."""
    mupdf = library()
    box, matrix = page.rect, page.rotation_matrix
    move = _mover(tuple(matrix))
    operations = [(kind, move(*rect)) for kind, rect in page.get_bboxlog()]
    images = [_clip(rect, box) for kind, rect in operations if kind in ("fill-image", "fill-imgmask")]
    picture = _picture(mupdf, page)
    visible: list[Line] = []
    hidden: list[Line] = []
    layer_words = 0
    for line, is_inked in _lines(mupdf, page, matrix):
        over_scan = not is_inked and any(_covers(image, line) for image in images)
        shown = tuple(token for token in line.tokens if _is_inside(token, box) and (is_inked or over_scan))
        if picture:
            shown = tuple(token for token in shown if not picture.is_uniform(*_core(token)))
        unseen = tuple(token for token in line.tokens if token not in shown)
        visible += _pieces(line, shown)
        hidden += [Line(unseen, line.size, line.bold, line.turn)] if unseen else []
        layer_words += len(shown) if over_scan else 0
    across, down, others = _rules(page, move) if any("path" in kind for kind, _ in operations) else ([], [], 0)
    image_area = sum((x1 - x0) * (y1 - y0) for x0, y0, x1, y1 in images)
    return Drawn(
        width=box.width,
        height=box.height,
        lines=tuple(visible),
        hidden=tuple(hidden),
        grids=tuple(find_grids(across, down)),
        rules=tuple(across),
        image_share=min(image_area / (box.width * box.height), 1.0),
        layer_share=layer_words / max(sum(len(line.tokens) for line in visible), 1),
        shapes=others,
        is_blank=not visible
        and image_area < 1
        and _is_empty(picture, box, operations, len(across) + len(down), others),
    )


def _is_empty(picture: _Picture | None, box: Any, operations: list[tuple[str, Any]], rules: int, others: int) -> bool:
    if picture and picture.is_uniform(0, 0, box.width, box.height):
        return True
    inked = [
        kind for kind, _ in operations if "path" not in kind and kind != _INVISIBLE_OPERATION and "clip" not in kind
    ]
    return not inked and not others and rules <= _FEW_RULES


def _picture(mupdf: Any, page: Any) -> _Picture | None:
    """None where the page cannot be drawn, or is so large that its print would vanish."""
    scale = min(1.0, math.sqrt(_MAX_PIXELS / max(page.rect.width * page.rect.height, 1)))
    if scale < _MIN_SCALE:
        return None
    try:
        pixmap = page.get_pixmap(matrix=mupdf.Matrix(scale, scale), colorspace=mupdf.csRGB, alpha=False)
    except Exception:  # noqa: BLE001 - MuPDF's errors share no base but Exception; the text may be well all the same
        return None
    return _Picture(pixmap.samples, pixmap.width, pixmap.height, pixmap.stride, scale)


def _lines(mupdf: Any, page: Any, matrix: Any) -> Iterator[tuple[Line, bool]]:
    """Each line of the page's text, and whether it is inked (not written invisibly)."""
    textpage = page.get_textpage(
        # Without a clip that has no end, text outside the page would be lost instead of told apart.
        clip=mupdf.INFINITE_RECT(),
        # TEXT_COLLECT_STYLES would find words drawn twice, but takes ten times as long as all the rest.
        flags=mupdf.TEXT_PRESERVE_WHITESPACE,
        matrix=matrix,
    )
    words: dict[tuple[int, int], list[Token]] = {}
    drawn: dict[tuple[str, int], list[Token]] = {}
    for x0, y0, x1, y1, text, block, line, _ in textpage.extractWORDS():
        for token in _tokens(text, x0, y0, x1, y1):
            # By height, so that a thousand dots of dotted lines are not compared each with each.
            height = int(token.y0 / _HEIGHT_BAND)
            near = (other for at in (height - 1, height, height + 1) for other in drawn.get((token.text, at), ()))
            if not any(_is_again(token, other) for other in near):
                drawn.setdefault((token.text, height), []).append(token)
                words.setdefault((block, line), []).append(token)
    for block in textpage.extractDICT()["blocks"]:
        for number, line in enumerate(block["lines"]):
            tokens = words.get((block["number"], number))
            if not tokens:
                continue
            yield from _styled(tuple(tokens), line["spans"], _turn(*line["dir"]))


def _styled(tokens: tuple[Token, ...], spans: list[dict[str, Any]], turn: int | None) -> Iterator[tuple[Line, bool]]:
    sizes: Counter[float] = Counter()
    for span in spans:
        sizes[round(span["size"], 1)] += len(span["text"].strip())
    size = max(sizes, key=lambda size: (sizes[size], size))
    letters = sum(sizes.values())
    bold = sum(len(span["text"].strip()) for span in spans if _is_bold(span)) / max(letters, 1)
    veiled = [span["bbox"] for span in spans if not _is_inked(span)]
    inked = tuple(token for token in tokens if not any(_holds(box, token) for box in veiled)) if veiled else tokens
    unseen = tuple(token for token in tokens if token not in inked) if veiled else ()
    if inked:
        yield Line(inked, size, bold, turn), True
    if unseen:
        yield Line(unseen, size, bold, turn), False


def _tokens(text: str, x0: float, y0: float, x1: float, y1: float) -> Iterator[Token]:
    """The word, cleaned; several where it holds white space that MuPDF does not take for such."""
    step = (x1 - x0) / max(len(text), 1)
    for match in re.finditer(r"\S+", text):
        if clean := _UNPRINTABLE.sub("", match.group()):
            yield Token(clean, x0 + step * match.start(), y0, x0 + step * match.end(), y1)


def _is_again(token: Token, other: Token) -> bool:
    """Whether it is the other one drawn once more, a little aside, to look bold or to cast a shadow."""
    near = 0.15 * (token.y1 - token.y0)
    return abs(token.x0 - other.x0) < near and abs(token.y0 - other.y0) < near and abs(token.x1 - other.x1) < near


def _is_bold(span: dict[str, Any]) -> bool:
    name = span["font"].lower()
    return bool(span["char_flags"] & _BOLD) or any(word in name for word in ("bold", "black", "heavy"))


def _is_inked(span: dict[str, Any]) -> bool:
    return bool(span["char_flags"] & (_FILLED | _STROKED)) and span["alpha"] > 0


def _turn(cosine: float, sine: float) -> int | None:
    """Quarter turns clockwise of a writing direction; a scan's tilt of a few degrees is none."""
    quarters = math.degrees(math.atan2(sine, cosine)) / 90
    return round(quarters) % 4 if abs(quarters - round(quarters)) < 0.12 else None


def _pieces(line: Line, tokens: tuple[Token, ...]) -> list[Line]:
    """The line's visible words, cut where the gap is too wide for one line of prose."""
    if line.turn != 0:
        return [Line(tokens, line.size, line.bold, line.turn)] if tokens else []
    pieces: list[list[Token]] = []
    for token in tokens:
        if pieces and -line.size < token.x0 - pieces[-1][-1].x1 < 1.5 * line.size:
            pieces[-1].append(token)
        else:
            pieces.append([token])
    return [Line(tuple(piece), line.size, line.bold) for piece in pieces]


def _mover(matrix: tuple[float, ...]) -> _Move:
    """From the page as written to the page as displayed. Plain numbers: pymupdf.Rect is ten times slower."""
    a, b, c, d, e, f = matrix

    def move(x0: float, y0: float, x1: float, y1: float) -> _Rect:
        u0, v0, u1, v1 = a * x0 + c * y0 + e, b * x0 + d * y0 + f, a * x1 + c * y1 + e, b * x1 + d * y1 + f
        return min(u0, u1), min(v0, v1), max(u0, u1), max(v0, v1)

    return move


def _rules(page: Any, move: _Move) -> tuple[list[Rule], list[Rule], int]:
    """Horizontal rules, vertical rules, and how many other shapes there are."""
    across: list[Rule] = []
    down: list[Rule] = []
    others = 0
    for path in page.get_cdrawings():
        stroked = "s" in path["type"]
        for item in path["items"]:
            if item[0] == "l" and stroked:
                edges = [move(*item[1], *item[2])]
            elif item[0] == "re":
                edges = list(_edges(move(*item[1]), stroked))
            else:
                edges = []
            straight = [_as_rule(*edge) for edge in edges]
            across += [rule for rule, is_level in filter(None, straight) if is_level]
            down += [rule for rule, is_level in filter(None, straight) if not is_level]
            others += not edges or None in straight
    return across, down, others


def _edges(rect: _Rect, stroked: bool) -> Iterator[_Rect]:
    """The lines that a rectangle draws: its middle if it is thin, its four sides if they are stroked, or none."""
    x0, y0, x1, y1 = rect
    x, y = (x0 + x1) / 2, (y0 + y1) / 2
    if y1 - y0 <= _THIN:
        yield x0, y, x1, y
    elif x1 - x0 <= _THIN:
        yield x, y0, x, y1
    elif stroked:
        yield x0, y0, x1, y0
        yield x0, y1, x1, y1
        yield x0, y0, x0, y1
        yield x1, y0, x1, y1


def _as_rule(x0: float, y0: float, x1: float, y1: float) -> tuple[Rule, bool] | None:
    """The rule and whether it is horizontal; None for an oblique line."""
    if abs(y1 - y0) <= 1:
        return Rule(y0, x0, x1), True
    if abs(x1 - x0) <= 1:
        return Rule(x0, y0, y1), False
    return None


def _core(token: Token) -> _Rect:
    """The middle of a word's box, so that neighbours' ink is not taken for its own. Punctuation may sit at the edge."""
    inset = 0.15 * min(token.x1 - token.x0, token.y1 - token.y0) if any(map(str.isalnum, token.text)) else 0.0
    return token.x0 + inset, token.y0 + inset, token.x1 - inset, token.y1 - inset


def _is_inside(token: Token, box: Any) -> bool:
    return bool(box.x0 <= (token.x0 + token.x1) / 2 <= box.x1 and box.y0 <= (token.y0 + token.y1) / 2 <= box.y1)


def _holds(box: _Rect, token: Token) -> bool:
    return (
        box[0] - 1 <= (token.x0 + token.x1) / 2 <= box[2] + 1 and box[1] - 1 <= (token.y0 + token.y1) / 2 <= box[3] + 1
    )


def _covers(rect: _Rect, line: Line) -> bool:
    x, y = (line.x0 + line.x1) / 2, (line.y0 + line.y1) / 2
    return rect[0] <= x <= rect[2] and rect[1] <= y <= rect[3]


def _clip(rect: Iterable[float], box: Any) -> _Rect:
    x0, y0, x1, y1 = rect
    x0, y0 = max(x0, box.x0), max(y0, box.y0)
    return x0, y0, max(min(x1, box.x1), x0), max(min(y1, box.y1), y0)
