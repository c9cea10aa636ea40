"""What is drawn on one page, as MuPDF sees it: words with their places and looks, rules, images, and what is hidden.

All coordinates are points of the page as it is displayed (after rotation), x to the right, y downwards.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import groupby, islice, pairwise
from operator import itemgetter
from typing import Any, NamedTuple

from evalkit.documents.sight import FILLED, TEXT, THIN, VECTOR, Rect, Sheet, is_plain
from evalkit.documents.tables import Grid, Rule, find_grids

#: The share of a page that images cover from which there may be text in them.
_LARGE = 0.05
#: So many curves may be letters that are drawn as outlines.
_OUTLINES = 600
#: So many lines on an otherwise empty page are a letterhead's rules, not something to be read.
_FEW_RULES = 8
#: Print smaller than this (points) is hidden if the page also has print that is so many times larger: nobody reads it.
#: A page on which all is that small is meant to be enlarged.
_TINY, _LARGER = 2.0, 3.0
#: Words drawn twice are looked for within neighbouring bands of this height (points).
_HEIGHT_BAND = 20
#: Less opaque (of 255), words are as good as written invisibly: over a scan, its own print would pass for theirs.
_FAINTEST = 26
_BOLD, _STROKED, _CLIPPED = 8, 32, 64
_TO_THE_RIGHT = (1.0, 0.0)
# C0, DEL and C1 controls, lone surrogates, two non-characters: nothing that is drawn, and some break JSON readers.
UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
# What a font has no sign for, formatting marks, and private signs: they may leave no trace on the page.
_TRACELESS = re.compile("[\xad\u200b-\u200f\u2028-\u202f\u2060-\u206f\ue000-\uf8ff\ufeff\ufffd]")
_Move = Callable[[float, float, float, float], Rect]
_Word = tuple[float, float, float, float, str, int, int, int]
"""x0, y0, x1, y1, text, number of the block, of the line in it, and of the word."""


class Token(NamedTuple):
    """One word."""

    text: str
    x0: float
    y0: float
    x1: float
    y1: float


#: Text and box of a word of MuPDF's, and the token with them: as ``Token._make``, but not a call in Python for each word.
_placed = itemgetter(4, 0, 1, 2, 3)
_token: Callable[[tuple[object, ...]], Token] = partial(tuple.__new__, Token)


class Line:
    """Words on one baseline, without a wide gap between them; never empty, never changed."""

    __slots__ = ("bold", "size", "text", "tokens", "turn", "x0", "x1", "y0", "y1")

    def __init__(self, tokens: tuple[Token, ...], size: float, bold: float = 0.0, turn: int | None = 0) -> None:
        """``size`` is the font size in points of most of its characters, ``bold`` the share of them that are bold, 0..1.

        ``turn`` is the quarter turns clockwise in which it is written; None if it is oblique.
        """
        # Layout asks for text and edges again and again: they are worked out once, all tokens at a time.
        texts, lefts, tops, rights, bottoms = zip(*tokens, strict=True)
        self.tokens = tokens
        self.size = size
        self.bold = bold
        self.turn = turn
        self.text: str = " ".join(texts)
        self.x0: float = min(lefts)
        self.y0: float = min(tops)
        self.x1: float = max(rights)
        self.y1: float = max(bottoms)

    @property
    def box(self) -> Rect:
        """x0, y0, x1, y1 around its words."""
        return self.x0, self.y0, self.x1, self.y1


@dataclass(frozen=True, slots=True)
class Drawn:
    """One page's content."""

    width: float
    height: float
    lines: tuple[Line, ...]
    """What a person can see."""
    hidden: tuple[Line, ...]
    """Invisible, too faint or too small to be seen, covered, clipped away, outside the page, or other than its letters."""
    grids: tuple[Grid, ...]
    """Ruled tables."""
    rules: tuple[Rule, ...]
    """Horizontal rules."""
    image_share: float
    """The part of the page that images cover, 0..1."""
    layer: tuple[Line, ...]
    """Those of ``lines`` that are written invisibly over an image: what somebody recognised on a scan."""
    shapes: int
    """Curves and oblique lines: letters drawn as outlines are thousands of them."""
    is_blank: bool
    """No visible text, no image, and nothing drawn but a few rules."""

    @property
    def layer_share(self) -> float:
        """The part of the visible words that come from such a layer, 0..1."""
        words = sum(len(line.tokens) for line in self.lines)
        return sum(len(line.tokens) for line in self.layer) / max(words, 1)

    @property
    def is_pictured(self) -> bool:
        """Whether there may be words in its pictures, or in its curves, that its text has not."""
        return bool(self.layer) or self.image_share >= _LARGE or self.shapes >= _OUTLINES

    @property
    def without_layer(self) -> Drawn:
        """The same with its layer among what is hidden."""
        layer = set(map(id, self.layer))
        lines = tuple(line for line in self.lines if id(line) not in layer)
        return replace(self, lines=lines, hidden=(*self.hidden, *self.layer), layer=())


class _Written(NamedTuple):
    """A line of the page, or a part of it that looks alike, visible or not."""

    line: Line
    is_inked: bool
    """Not written invisibly."""
    is_window: bool
    """Not painted itself, but what is painted behind it shows through its letters."""
    is_plain: bool
    """Dark and opaque, and all of it signs that leave ink."""
    order: int
    """The number of its text block."""
    signs: tuple[tuple[int, str], ...]
    """Its fonts, as in ``Sheet.own_fonts``, and what is written in each; none where the file brings no fonts along."""


Proven = dict[int, set[str]]
"""For the fonts of a file, by their objects, the characters that were seen to leave ink."""


def look_at(page: Any, proven: Proven | None = None) -> Drawn:
    """All that is drawn on a ``pymupdf.Page``. Raises whatever MuPDF raises for a broken page.

    A file's own font may have empty shapes for some letters, and its words then say something that nobody sees: they
    are looked for in the picture until the letters have been seen. ``proven`` is what earlier pages of the file have
    shown, and is added to.
    """
    proven = {} if proven is None else proven
    sheet = Sheet(page)
    images = sheet.images
    visible: list[Line] = []
    hidden: list[Line] = []
    layer: list[Line] = []
    written = list(_written(sheet))
    largest = max((one.line.size for one in written), default=0.0)
    for one in written:
        line = one.line
        is_over_scan = not one.is_inked and any(_covers(image, line) for image in images)
        is_tiny = line.size < _TINY and largest >= _LARGER * line.size
        is_drawn = (one.is_inked or one.is_window or is_over_scan) and not is_tiny
        shown = _shown(one, sheet, proven) if is_drawn else ()
        parts = pieces(line, shown)
        visible += parts
        layer += parts if is_over_scan else []
        if len(shown) < len(line.tokens):
            seen = set(shown)
            unseen = tuple(token for token in line.tokens if token not in seen)
            hidden.append(Line(unseen, line.size, line.bold, line.turn))
    if sheet.is_belied:  # whoever looks at the page reads other words: they are in its picture
        hidden, visible, layer = [*visible, *hidden], [], []
    across, down, others = _rules(page, [block for block in sheet.blocks if block["type"] == VECTOR])
    image_area = sum((x1 - x0) * (y1 - y0) for x0, y0, x1, y1 in images)
    is_inked = bool(images) or sheet.has_shades or any(one.is_inked for one in written)
    has_few_rules = not is_inked and not others and len(across) + len(down) <= _FEW_RULES
    return Drawn(
        width=sheet.width,
        height=sheet.height,
        lines=tuple(visible),
        hidden=tuple(hidden),
        grids=tuple(find_grids(across, down)),
        rules=tuple(across),
        image_share=min(image_area / (sheet.width * sheet.height), 1.0),
        layer=tuple(layer),
        shapes=others,
        is_blank=not visible and image_area < 1 and (has_few_rules or sheet.is_empty),
    )


def _shown(written: _Written, sheet: Sheet, proven: Proven) -> tuple[Token, ...]:
    """The words that can be seen; only where it is in doubt are they looked for in the picture of the page."""
    box, tokens = written.line.box, written.line.tokens
    if not sheet.is_inside(box):
        tokens = tuple(token for token in tokens if _is_inside(token, sheet))
    is_proven = all(font in proven and proven[font].issuperset(text) for font, text in written.signs)
    is_sure = written.is_inked and written.is_plain and is_proven
    covers = sheet.covers
    is_dimmed = bool(covers) and any(cover.dims(box, written.order) for cover in covers)
    is_crossed = sheet.is_crossed(box, written.order)
    if is_sure and not is_dimmed and not is_crossed:
        return tokens
    if written.is_inked:
        shown = tuple(
            token
            for token in tokens
            if sheet.shows_print(_core(token), is_dark=written.is_plain and is_crossed)
            and not sheet.is_painted_over(token[1:])
        )
    else:
        shown = tuple(token for token in tokens if sheet.shows(_core(token)))
    if len(shown) == len(written.line.tokens):
        for font, text in written.signs:
            if font:  # of fonts of one name, nobody knows which it was
                proven.setdefault(font, set()).update(text)
    return shown


def _written(sheet: Sheet) -> Iterator[_Written]:
    """All lines of the page's text."""
    words = {
        place: list(group) for place, group in groupby(_once(_clean(sheet.words), sheet.blocks), key=itemgetter(5, 6))
    }
    own_fonts = sheet.own_fonts
    # Words count the blocks of text alone; a block's own number counts all that is painted.
    for text_block, block in enumerate(block for block in sheet.blocks if block["type"] == TEXT):
        for number, line in enumerate(block["lines"]):
            if found := words.get((text_block, number)):
                tokens = tuple(map(_token, map(_placed, found)))
                yield from _styled(tokens, line["spans"], _turn(line["dir"]), block["number"], own_fonts)


def _styled(
    tokens: tuple[Token, ...], spans: list[dict[str, Any]], turn: int | None, order: int, own_fonts: dict[str, int]
) -> Iterator[_Written]:
    size, bold = _look(spans)
    inked = tokens
    unseen: tuple[Token, ...] = ()
    veiled = [span for span in spans if not _is_inked(span)]
    if veiled:
        inked = tuple(token for token in tokens if not any(_holds(span["bbox"], token) for span in veiled))
        unseen = tuple(token for token in tokens if token not in inked)
    if inked:
        line = Line(inked, size, bold, turn)
        is_sure = all(map(is_plain, spans)) and not _TRACELESS.search(line.text)
        signs = tuple((own_fonts.get(span["font"], 0), span["text"]) for span in spans) if own_fonts else ()
        yield _Written(line, True, False, is_sure, order, signs)
    if unseen:
        is_window = any(span["char_flags"] & _CLIPPED for span in veiled)
        yield _Written(Line(unseen, size, bold, turn), False, is_window, False, order, ())


def _look(spans: list[dict[str, Any]]) -> tuple[float, float]:
    """The size of most characters, and the share of them that are bold."""
    if len(spans) == 1:
        return round(spans[0]["size"], 1), float(_is_bold(spans[0]))
    sizes: Counter[float] = Counter()
    bold = 0
    for span in spans:
        letters = len(span["text"].strip())
        sizes[round(span["size"], 1)] += letters
        bold += letters if _is_bold(span) else 0
    return max(sizes, key=lambda size: (sizes[size], size)), bold / max(sizes.total(), 1)


def _clean(words: list[_Word]) -> list[_Word]:
    """The words without what cannot be printed, and divided at white space that MuPDF does not take for such."""
    texts = [word[4] for word in words]
    together = " ".join(texts)
    if len(together.split()) == len(words) and not UNPRINTABLE.search(together):
        return words
    return [part for word in words for part in _parts(word)]


def _parts(word: _Word) -> Iterator[_Word]:
    x0, y0, x1, y1, text, block, line, number = word
    step = (x1 - x0) / max(len(text), 1)
    for match in re.finditer(r"\S+", text):
        if kept := UNPRINTABLE.sub("", match.group()):
            yield x0 + step * match.start(), y0, x0 + step * match.end(), y1, kept, block, line, number


def _once(words: list[_Word], blocks: Iterable[dict[str, Any]]) -> list[_Word]:
    """The words without those that were drawn once more, a little aside, to look bold or to cast a shadow."""
    # MuPDF begins a new line where the pen goes back: no line on top of another, no word drawn twice.
    if not _overlap([line["bbox"] for block in blocks if block["type"] == TEXT for line in block["lines"]]):
        return words
    kept: list[_Word] = []
    drawn: dict[tuple[str, int], list[_Word]] = {}
    for word in words:
        # By height, so that a thousand dots of dotted lines are not compared each with each.
        height = int(word[1] / _HEIGHT_BAND)
        near = (other for at in (height - 1, height, height + 1) for other in drawn.get((word[4], at), ()))
        if not any(_is_again(word, other) for other in near):
            drawn.setdefault((word[4], height), []).append(word)
            kept.append(word)
    return kept


def _overlap(boxes: list[Rect]) -> bool:
    """Whether any box shares half of its height with another that stands in the same place."""
    boxes.sort(key=itemgetter(1))
    for number, (x0, y0, x1, y1) in enumerate(boxes, 1):
        for other in islice(boxes, number, None):
            if other[1] > (y0 + y1) / 2:
                break
            if other[0] < x1 and x0 < other[2]:
                return True
    return False


def _is_again(word: _Word, other: _Word) -> bool:
    near = 0.15 * (word[3] - word[1])
    return abs(word[0] - other[0]) < near and abs(word[1] - other[1]) < near and abs(word[2] - other[2]) < near


def _is_bold(span: dict[str, Any]) -> bool:
    return bool(span["char_flags"] & _BOLD) or _is_bold_font(span["font"])


@lru_cache(maxsize=1024)
def _is_bold_font(name: str) -> bool:
    return any(word in name.lower() for word in ("bold", "black", "heavy"))


def _is_inked(span: dict[str, Any]) -> bool:
    return bool(span["char_flags"] & (FILLED | _STROKED)) and span["alpha"] >= _FAINTEST


def _turn(direction: tuple[float, float]) -> int | None:
    """Quarter turns clockwise of a writing direction (cosine, sine); a scan's tilt of a few degrees is none."""
    if direction == _TO_THE_RIGHT:
        return 0
    cosine, sine = direction
    quarters = math.degrees(math.atan2(sine, cosine)) / 90
    return round(quarters) % 4 if abs(quarters - round(quarters)) < 0.12 else None


def pieces(line: Line, tokens: tuple[Token, ...]) -> list[Line]:
    """The line's ``tokens``, in their order, cut where the gap is too wide for one line of prose."""
    if not tokens:
        return []
    size = line.size
    cuts: list[int] = []
    if line.turn == 0:
        wide = 1.5 * size
        pairs = enumerate(pairwise(tokens), 1)
        cuts = [number for number, (left, right) in pairs if not -size < right[1] - left[3] < wide]
    if not cuts and len(tokens) == len(line.tokens):
        return [line]
    return [Line(tokens[start:end], size, line.bold, line.turn) for start, end in pairwise([0, *cuts, len(tokens)])]


def _rules(page: Any, vectors: Sequence[dict[str, Any]]) -> tuple[list[Rule], list[Rule], int]:
    """Horizontal rules, vertical rules, and how many other shapes there are.

    ``vectors`` are MuPDF's boxes of what is drawn on the page.
    """
    if not all(vector["isrect"] for vector in vectors):
        # Their boxes do not say what was drawn: the paths themselves do, but to ask for them costs a second reading.
        return _sorted_edges(_path_edges(page))
    return _sorted_edges(_edges(vector["bbox"], vector["stroked"]) for vector in vectors)


def _path_edges(page: Any) -> Iterator[list[Rect]]:
    """For each piece of each path, the straight lines that it draws."""
    move = _mover(tuple(page.rotation_matrix))
    for path in page.get_cdrawings():
        stroked = "s" in path["type"]
        for item in path["items"]:
            if item[0] == "l" and stroked:
                yield [move(*item[1], *item[2])]
            elif item[0] == "re":
                yield _edges(move(*item[1]), stroked)
            else:
                yield []


def _sorted_edges(shapes: Iterable[list[Rect]]) -> tuple[list[Rule], list[Rule], int]:
    """Horizontal rules, vertical rules, and how many shapes are no rules."""
    across: list[Rule] = []
    down: list[Rule] = []
    others = 0
    for edges in shapes:
        is_other = not edges
        for x0, y0, x1, y1 in edges:
            if abs(y1 - y0) <= 1:
                across.append(Rule(y0, x0, x1))
            elif abs(x1 - x0) <= 1:
                down.append(Rule(x0, y0, y1))
            else:
                is_other = True
        others += is_other
    return across, down, others


def _edges(rect: Rect, stroked: bool) -> list[Rect]:
    """The lines that a rectangle draws: its middle if it is thin, its four sides if they are stroked, or none."""
    x0, y0, x1, y1 = rect
    x, y = (x0 + x1) / 2, (y0 + y1) / 2
    if y1 - y0 <= THIN:
        return [(x0, y, x1, y)]
    if x1 - x0 <= THIN:
        return [(x, y0, x, y1)]
    return [(x0, y0, x1, y0), (x0, y1, x1, y1), (x0, y0, x0, y1), (x1, y0, x1, y1)] if stroked else []


def _mover(matrix: tuple[float, ...]) -> _Move:
    """From the page as written to the page as displayed. Plain numbers: pymupdf.Rect is ten times slower."""
    a, b, c, d, e, f = matrix

    def move(x0: float, y0: float, x1: float, y1: float) -> Rect:
        u0, v0, u1, v1 = a * x0 + c * y0 + e, b * x0 + d * y0 + f, a * x1 + c * y1 + e, b * x1 + d * y1 + f
        return min(u0, u1), min(v0, v1), max(u0, u1), max(v0, v1)

    return move


def _core(token: Token) -> Rect:
    """The middle of a word's box, so that neighbours' ink is not taken for its own. Punctuation may sit at the edge."""
    inset = 0.15 * min(token.x1 - token.x0, token.y1 - token.y0) if any(map(str.isalnum, token.text)) else 0.0
    return token.x0 + inset, token.y0 + inset, token.x1 - inset, token.y1 - inset


def _is_inside(token: Token, sheet: Sheet) -> bool:
    return 0 <= (token.x0 + token.x1) / 2 <= sheet.width and 0 <= (token.y0 + token.y1) / 2 <= sheet.height


def _holds(box: Rect, token: Token) -> bool:
    return (
        box[0] - 1 <= (token.x0 + token.x1) / 2 <= box[2] + 1 and box[1] - 1 <= (token.y0 + token.y1) / 2 <= box[3] + 1
    )


def _covers(rect: Rect, line: Line) -> bool:
    x, y = (line.x0 + line.x1) / 2, (line.y0 + line.y1) / 2
    return rect[0] <= x <= rect[2] and rect[1] <= y <= rect[3]
