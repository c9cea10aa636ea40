"""What Document AI answers about a portion of a PDF, put on its pages.

The answer is hostile until checked: it may name pages that were not sent, be a thousand times as large as they are, and
holds descriptions that a model wrote. What is printed on a page the PDF knows too; the answer says in which order.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice
from typing import Any, NamedTuple

from evalkit.documents.bundle import BlockType, Box, Page, PageStatus, Words
from evalkit.documents.drawn import UNPRINTABLE, Drawn, Token
from evalkit.documents.layout import LaidBlock
from evalkit.documents.page import page_of
from evalkit.documents.pdf import page_status
from evalkit.documents.quality import THRESHOLD

#: What an answer may hold: bytes, rows and columns of a table, cells of all tables, and on one page words, and pairs of
#: a cell and a word that may be in it. A dense page has some thousand words.
_MOST_BYTES, _MOST_ROWS, _MOST_COLUMNS, _MOST_CELLS = 30_000_000, 10_000, 200, 500_000
_MOST_WORDS, _MOST_PAIRS = 100_000, 50_000_000
#: How often a page may point at all of the text: once with its tokens, once with its paragraphs, lines, blocks and all.
_MOST_TIMES = 10
#: How far (as a share of the page) a word's middle may be beside the box of its paragraph.
_NEAR = 0.005
#: The share of the answer's words that may be missing from the PDF's own text where the two agree.
_MISREAD = 0.1
#: A page of so many known words of which the answer leaves out more than this share was not read.
_LEFT_OUT, _MANY = 0.1, 10
#: A picture that covers so much of a page and adds no word to it may have words that nobody read.
_PICTURED = 0.15
_WORD = re.compile(r"\w+")
_NOWHERE = (0, 0, 0, 0)
_Rows = tuple[tuple[tuple[Token, ...], ...], ...]
"""Rows of cells of words."""


class NonsenseError(Exception):
    """An answer contradicts itself, or the file."""


# From the answer to what it says


class _Cell(NamedTuple):
    """Words that stand together."""

    words: tuple[str, ...]
    region: Box | None
    """Where they stand, as far as it is told."""


class _Said(NamedTuple):
    """A heading, paragraph, list item or table."""

    page: int
    """Where it begins, counted from 0 in the portion."""
    last: int
    """Where it ends."""
    type: BlockType
    rows: tuple[tuple[_Cell, ...], ...]
    furniture: bool = False
    is_doubtful: bool = False
    """May have been written by a model: it counts only if its words are known to stand on the page."""

    @property
    def words(self) -> list[str]:
        """All of them, in reading order."""
        return [word for row in self.rows for cell in row for word in cell.words]


class _Around(NamedTuple):
    """What a block without pages or box of its own has from the block around it."""

    pages: int
    """How many the portion has."""
    page: int = 0
    last: int = 0
    region: Box | None = None
    is_list: bool = False


def _walk(blocks: Iterable[Any], around: _Around) -> Iterator[_Said]:
    """What the tree of blocks says, in reading order: a block itself, then what is in it."""
    page, last = around.page, around.last
    for block in blocks:
        if block.page_span.page_start:
            page, last = _span(block.page_span, around.pages)
        here = around._replace(page=page, last=last, region=_region(block, page, last, around))
        kind = block.WhichOneof("block")
        if kind == "text_block":
            yield from _text(block.text_block, here)
        elif kind == "table_block":
            yield from _paragraph(block.table_block.caption, here, is_doubtful=True)
            yield from _table(block.table_block, here)
        elif kind == "list_block":
            for entry in block.list_block.list_entries:
                yield from _walk(entry.blocks, here._replace(is_list=True))
        elif kind == "image_block":
            yield from _paragraph(block.image_block.image_text, here, is_doubtful=True)


def _span(span: Any, pages: int) -> tuple[int, int]:
    """First and last page, counted from 0."""
    last = max(span.page_end, span.page_start)
    if not 1 <= span.page_start <= last <= pages:
        raise NonsenseError
    return span.page_start - 1, last - 1


def _region(block: Any, page: int, last: int, around: _Around) -> Box | None:
    """Of a block that runs over a page's end nobody says on which page its box is."""
    if page != last:
        return None
    return _box(block.bounding_box) or (around.region if page == around.page == around.last else None)


def _text(block: Any, here: _Around) -> Iterator[_Said]:
    kind: BlockType = "list_item" if here.is_list else "paragraph"
    if block.type_.startswith("heading") or block.type_ in ("title", "subtitle"):
        kind = "heading"
    yield from _paragraph(block.text, here, kind, furniture=block.type_ in ("header", "footer"))
    yield from _walk(block.blocks, here)


def _paragraph(
    text: str, here: _Around, kind: BlockType = "paragraph", *, furniture: bool = False, is_doubtful: bool = False
) -> Iterator[_Said]:
    if words := _words(text):
        yield _Said(here.page, here.last, kind, ((_Cell(words, here.region),),), furniture, is_doubtful)


def _table(block: Any, here: _Around) -> Iterator[_Said]:
    """The table, once for each page that it has rows on: Google may put one together from several pages."""
    rows: dict[int, list[tuple[_Cell, ...]]] = {}
    page = here.page
    if len(block.header_rows) + len(block.body_rows) > _MOST_ROWS:
        raise NonsenseError
    for row in _rows((*block.header_rows, *block.body_rows), here):
        page = next((one.page for cell in row for one in cell), page)
        rows.setdefault(page, []).append(tuple(_cell(cell) for cell in row))
    for page, cells in rows.items():
        width = max(map(len, cells))
        full = tuple((*row, *[_EMPTY] * (width - len(row))) for row in cells if any(cell.words for cell in row))
        if full:
            yield _Said(page, page, "table", full)


def _rows(rows: Iterable[Any], here: _Around) -> Iterator[list[list[_Said]]]:
    """What each cell of each row says. A cell that spans several says it in the first, and the others are empty."""
    below: dict[int, int] = {}
    for row in rows:
        cells: list[list[_Said]] = []
        spans = {column: count - 1 for column, count in below.items() if count > 1}
        taken = set(below)
        for cell in row.cells:
            while len(cells) in taken:
                cells.append([])
            across, down = min(max(cell.col_span, 1), _MOST_COLUMNS), max(cell.row_span, 1)
            spans |= {len(cells) + step: down - 1 for step in range(across) if down > 1}
            cells += [list(_walk(cell.blocks, here)), *([] for _ in range(across - 1))]
            if len(cells) > _MOST_COLUMNS:
                raise NonsenseError
        below = spans
        yield cells


def _cell(said: Sequence[_Said]) -> _Cell:
    parts = [part for one in said if not one.is_doubtful for row in one.rows for part in row]
    regions = {part.region for part in parts}
    region = _around([box for box in regions if box]) if None not in regions and regions else None
    return _Cell(tuple(word for part in parts for word in part.words), region)


_EMPTY = _Cell((), None)


def _words(text: str) -> tuple[str, ...]:
    """The words of the text, without what cannot be printed."""
    return tuple(kept for word in text.split() if (kept := UNPRINTABLE.sub("", word)))


def _around(boxes: Sequence[Box]) -> Box:
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return min(lefts), min(tops), max(rights), max(bottoms)


def _box(poly: Any, dimension: Any = None) -> Box | None:
    """The box around a polygon, as far as it is on the page; None where it is not told, or not on the page."""
    points = [(point.x, point.y) for point in poly.normalized_vertices]
    if not points and dimension is not None and dimension.width > 0 and dimension.height > 0:
        points = [(point.x / dimension.width, point.y / dimension.height) for point in poly.vertices]
    if len(points) < 2 or not all(math.isfinite(side) for point in points for side in point):
        return None
    across, down = zip(*points, strict=True)
    x0, y0, x1, y1 = (min(max(side, 0.0), 1.0) for side in (min(across), min(down), max(across), max(down)))
    return (x0, y0, x1, y1) if x0 < x1 and y0 < y1 else None


# What is known of a page before the blocks are put on it


class Seen:
    """A page as MuPDF sees it, with the words that are known to stand on it and their places."""

    def __init__(self, number: int, drawn: Drawn) -> None:
        self.number = number
        # What somebody else recognised on a scan is no more seen than other invisible text.
        self.drawn = drawn.without_layer
        self.own = tuple(token for line in self.drawn.lines for token in line.tokens)
        self.known: Sequence[Token] = self.own
        self.sureness: dict[Token, int] = {}
        """How sure Document AI is of each of ``known``, 0..100; empty where these are the PDF's own."""
        hidden = set() if drawn.is_pictured else {token.text for line in drawn.hidden for token in line.tokens}
        self.hidden = hidden - {token.text for token in self.own}
        """Words of the PDF that nobody can see. Beside pictures that is not told: a picture may show the same ones."""
        self.is_turned = False
        """Google has turned the page to read it: where things stand on it as it is displayed is not told."""
        self.fallback: list[_Said] = []
        """What Document AI says of the page outside its tree of blocks."""

    def add(self, page: Any, text: str, index: int) -> None:
        """What Google's protobuf ``Page`` says, whose anchors are in ``text``; ``index`` counts in the portion."""
        parts = (*page.tokens, *page.paragraphs, *page.lines, *page.blocks, page)
        segments = (segment for part in parts for segment in part.layout.text_anchor.text_segments)
        if sum(max(min(one.end_index, len(text)) - one.start_index, 0) for one in segments) > _MOST_TIMES * len(text):
            raise NonsenseError
        size = page.dimension
        self.is_turned = (size.width - size.height) * (self.drawn.width - self.drawn.height) < 0
        if not self.is_turned:
            self.sureness = _recognised(page, text, self.drawn)
            self.known = list(self.sureness) or self.own
        for kind in (page.paragraphs, page.lines, page.blocks, [page]):
            for part in kind:
                region = None if part is page else _box(part.layout.bounding_poly, size)
                self.fallback += _paragraph(_anchored(part.layout, text), _Around(index + 1, index, index, region))
            if self.fallback:
                break

    def adds(self, laid: Sequence[LaidBlock]) -> bool:
        """Whether these blocks have words that are not the PDF's own."""
        return bool(_runs(token for block in laid for token in block.tokens) - _runs(self.own))

    def spare(self, said: Iterable[_Said]) -> Counter[str]:
        """The words that are known to stand on the page and not said."""
        return Counter(token.text for token in self.known) - Counter(word for one in said for word in one.words)


def _anchored(layout: Any, text: str) -> str:
    segments = layout.text_anchor.text_segments
    return "".join(text[max(segment.start_index, 0) : max(segment.end_index, 0)] for segment in segments)


def _recognised(page: Any, text: str, drawn: Drawn) -> dict[Token, int]:
    """The page's words in points of the displayed page, and how sure Document AI is of each, 0..100."""
    found: list[tuple[str, Box, int]] = []
    glued_at = -1
    for part in page.tokens:
        said, box = _anchored(part.layout, text), _box(part.layout.bounding_poly, page.dimension)
        words = _words(said)
        if not words or box is None:
            continue
        confidence = part.layout.confidence
        sure = round(100 * confidence) if 0 <= confidence <= 1 else 0
        segments = part.layout.text_anchor.text_segments
        # Google parts a word from the comma behind it; a word here goes on to the next space.
        if found and segments[0].start_index == glued_at and not said[0].isspace():
            before, place, least = found.pop()
            words, box, sure = (before + words[0], *words[1:]), _around([place, box]), min(least, sure)
        found += [(word, box, sure) for word in words]
        glued_at = -1 if said[-1].isspace() else segments[-1].end_index
    return {_token(word, box, drawn): sure for word, box, sure in found}


def _token(word: str, box: Box, drawn: Drawn) -> Token:
    x0, y0, x1, y1 = box
    return Token(word, x0 * drawn.width, y0 * drawn.height, x1 * drawn.width, y1 * drawn.height)


# From what the answer says to pages


def answered(answer: Any, seen: Sequence[Seen]) -> Iterator[Page]:
    """The pages of a portion; ``answer`` is Google's protobuf ``Document``, None where nothing had to be asked."""
    said: dict[int, list[_Said]] = {}
    cells = 0
    if answer is not None:
        if answer.ByteSize() > _MOST_BYTES or len(answer.pages) > len(seen):
            raise NonsenseError
        for index, page in enumerate(answer.pages):
            place = page.page_number - 1 if page.page_number else index
            if not 0 <= place < len(seen):
                raise NonsenseError
            seen[place].add(page, answer.text, place)
        for one in _walk(answer.document_layout.blocks, _Around(len(seen))):
            cells += sum(map(len, one.rows))
            if cells > _MOST_CELLS:
                raise NonsenseError
            for part in _parted(one, seen):
                said.setdefault(part.page, []).append(part)
    for index, page_seen in enumerate(seen):
        yield _page(page_seen, said.get(index, []))


def _parted(said: _Said, seen: Sequence[Seen]) -> Iterator[_Said]:
    """A paragraph that runs over a page's end, on both pages as the words say that are known of them.

    Where these do not tell, or more pages are in it, it stands where it begins.
    """
    if said.last != said.page + 1:
        yield said._replace(last=said.page)
        return
    words, region = said.rows[0][0]
    first, second = ({token.text for token in seen[page].known} for page in (said.page, said.last))
    gains = accumulate(((word in first) - (word in second) for word in words), initial=0)
    at, _ = max(enumerate(gains), key=lambda gain: (gain[1], gain[0]))
    for page, part in ((said.page, words[:at]), (said.last, words[at:])):
        if part:
            yield said._replace(page=page, last=page, rows=((_Cell(part, region),),))


def _page(seen: Seen, said: Sequence[_Said]) -> Page:
    if all(one.is_doubtful for one in said):
        said = seen.fallback
    spare = seen.spare(one for one in said if not one.is_doubtful)
    laid = list(_laid([one for one in said if not one.is_doubtful or Counter(one.words) <= spare], seen))
    page = page_of(seen.number, _judged(seen, laid), laid, seen.drawn)
    tokens = (token for block in laid for token in block.tokens)
    placed = [(word, token) for word, token in zip(page.words, tokens, strict=True) if word[2:] != _NOWHERE]
    told: dict[str, Any] = {"words": Words(word for word, _ in placed)}
    if page.status is PageStatus.IMAGE:
        told |= {"quality": 0.0, "problems": (_UNREAD,)}
    elif page.status is PageStatus.OCR and seen.sureness:
        least = min(seen.sureness.values())
        sureness = tuple(seen.sureness.get(token, least) for _, token in placed)
        quality = round(sum(sureness) / max(len(sureness), 1) / 100, 2)
        told |= {"confidences": sureness, "quality": quality}
        if quality < THRESHOLD:
            told |= {"status": PageStatus.IMAGE, "problems": (_UNREAD,)}
    elif page.status is PageStatus.TEXT and seen.drawn.image_share >= _PICTURED and not seen.adds(laid):
        told["unread"] = "Document AI says nothing of the pictures: look at them, or have this machine read the file"
    return page.model_copy(update=told)


_UNREAD = (
    "Document AI returned little or nothing of what is on the page: scan it again at 300 dpi; "
    "if it is handwriting or a picture, type what matters"
)


def _laid(said: Sequence[_Said], seen: Seen) -> Iterator[LaidBlock]:
    """The blocks with a place for each word: its own where that is certain, else its paragraph's, else none."""
    cells = [
        _Cell(tuple(word for word in words if word not in seen.hidden), None if seen.is_turned else region)
        for one in said
        for row in one.rows
        for words, region in row
    ]
    if len(cells) * len(seen.known) > _MOST_PAIRS or sum(len(cell.words) for cell in cells) > _MOST_WORDS:
        raise NonsenseError
    groups: dict[Box | None, list[str]] = {}
    for cell in cells:
        groups.setdefault(cell.region, []).extend(cell.words)
    places = {region: iter(_places(words, region, seen)) for region, words in groups.items()}
    waiting = iter(cells)
    for one in said:
        rows = tuple(
            tuple(tuple(islice(places[cell.region], len(cell.words))) for cell in islice(waiting, len(row)))
            for row in one.rows
        )
        if any(cell for row in rows for cell in row):
            yield LaidBlock(one.type, _all_placed(rows), one.furniture)


def _all_placed(rows: _Rows) -> _Rows:
    """The rows, with the words that have no place around those that have one; as they are where none has."""
    places = [token[1:] for row in rows for cell in row for token in cell if token[1:] != _NOWHERE]
    if not places:
        return rows
    box = _around(places)
    return tuple(
        tuple(tuple(token if token[1:] != _NOWHERE else Token(token.text, *box) for token in cell) for cell in row)
        for row in rows
    )


def _places(words: Sequence[str], region: Box | None, seen: Seen) -> list[Token]:
    """Each word with its place.

    A word that stands once in the box and is said once is that word, and so are its neighbours on the line as far as
    both go on alike; any other may be one of several, and lights the whole box.
    """
    there = [token for token in seen.known if region is None or _is_in(token, region, seen.drawn)]
    if list(words) == [token.text for token in there]:
        return there
    said, stand = Counter(words), Counter(token.text for token in there)
    only = {token.text: at for at, token in enumerate(there) if stand[token.text] == 1}
    found = {number: only[word] for number, word in enumerate(words) if said[word] == 1 and word in only}
    taken = set(found.values())
    for step, numbers in ((1, range(1, len(words))), (-1, range(len(words) - 2, -1, -1))):
        for number in numbers:
            before = found.get(number - step)
            at = -1 if before is None else before + step
            if before is None or number in found or at in taken or not 0 <= at < len(there):
                continue
            if there[at].text == words[number] and _are_on_a_line(there[at], there[before]):
                found[number] = at
                taken.add(at)
    unsure = region or (0.0, 0.0, 0.0, 0.0)
    return [
        there[found[number]] if number in found else _token(word, unsure, seen.drawn)
        for number, word in enumerate(words)
    ]


def _are_on_a_line(one: Token, other: Token) -> bool:
    return 2 * (min(one.y1, other.y1) - max(one.y0, other.y0)) > min(one.y1 - one.y0, other.y1 - other.y0)


def _is_in(token: Token, region: Box, drawn: Drawn) -> bool:
    x, y = (token.x0 + token.x1) / 2 / drawn.width, (token.y0 + token.y1) / 2 / drawn.height
    x0, y0, x1, y1 = region
    return x0 - _NEAR <= x <= x1 + _NEAR and y0 - _NEAR <= y <= y1 + _NEAR


def _judged(seen: Seen, laid: Sequence[LaidBlock]) -> PageStatus:
    """What the text is worth.

    It was read where the PDF has the same words, all of those with digits among them; otherwise it was recognised. A
    page that the PDF says more of, or whose pictures nothing is said of, counts as unread.
    """
    if not laid:
        return PageStatus.BLANK if seen.drawn.is_blank else PageStatus.IMAGE
    told = _runs(token for block in laid for token in block.tokens)
    own = _runs(seen.own)
    for known in (own, _runs(seen.known)):
        if known.total() >= _MANY and (known - told).total() > _LEFT_OUT * known.total():
            return PageStatus.IMAGE
    added = told - own
    if added.total() > _MISREAD * told.total() or any(map(str.isdigit, "".join(added))):
        return PageStatus.OCR
    return page_status(seen.drawn, laid)


def _runs(tokens: Iterable[Token]) -> Counter[str]:
    return Counter(_WORD.findall(" ".join(token.text for token in tokens).casefold()))
