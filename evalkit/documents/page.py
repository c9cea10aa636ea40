"""From blocks that are laid out to a page of the bundle: its text, its paragraphs, and where each word stands."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, chain
from operator import add

from evalkit.documents.bundle import Block, Box, LayoutMetadata, Page, PageStatus, Word, Words
from evalkit.documents.drawn import Drawn, Line, Token
from evalkit.documents.identifiers import identifiers
from evalkit.documents.layout import LaidBlock

_NO_WORD = Token("", 0.0, 0.0, 0.0, 0.0)


def text_of(laid: Sequence[LaidBlock]) -> str:
    """The text of a page with these blocks."""
    return "\n".join([_text(block) for block in laid])


def page_of(number: int, status: PageStatus, laid: Sequence[LaidBlock], drawn: Drawn) -> Page:
    """The page with these blocks, which stand in points of the page as it is displayed."""
    visible = [_block(block, drawn) for block in laid]
    paragraphs = tuple([block.text for block in visible])
    text, words = "\n".join(paragraphs), _words(laid, drawn)
    # Not validated: each word would be looked at once more, and all of it was made here.
    return Page.model_construct(
        page_num=number,
        status=status,
        text=text,
        paragraphs=paragraphs,
        layout_metadata=LayoutMetadata(
            block_types=tuple(block.type for block in visible),
            has_tables=any(block.type == "table" for block in visible),
        ),
        blocks=(*visible, *(_hidden(line, drawn) for line in drawn.hidden)),
        words=Words(words),
        identifiers=identifiers(text, words),
    )


def _text(block: LaidBlock) -> str:
    return "\n".join(["\t".join([" ".join([token[0] for token in cell]) for cell in row]) for row in block.rows])


def _block(block: LaidBlock, page: Drawn) -> Block:
    return Block(type=block.type, text=_text(block), box=_box(block.tokens, page), furniture=block.furniture)


def _hidden(line: Line, page: Drawn) -> Block:
    return Block(type="paragraph", text=line.text, box=_box(line.tokens, page), hidden=True)


def _box(tokens: Sequence[Token], page: Drawn) -> Box:
    _, lefts, tops, rights, bottoms = zip(*tokens, strict=True)
    width, height = page.width, page.height
    return (
        _share(min(lefts), width),
        _share(min(tops), height),
        _share(max(rights), width),
        _share(max(bottoms), height),
    )


def _share(length: float, whole: float) -> float:
    """The length as a fraction 0..1 of the whole, in ten-thousandths."""
    return round(min(max(length / whole, 0.0), 1.0), 4)


def _words(blocks: Sequence[LaidBlock], page: Drawn) -> tuple[Word, ...]:
    """Where each word stands in the page's text and on the page; the text is the words with one separator each."""
    # An empty cell is followed by its separator alone, as if by a word without letters.
    cells = [cell or (_NO_WORD,) for block in blocks for row in block.rows for cell in row]
    if not cells:
        return ()
    # All words of the page together, a column at a time: this is the reader's innermost loop.
    texts, x0s, y0s, x1s, y1s = zip(*chain.from_iterable(cells), strict=True)
    lengths = list(map(len, texts))
    starts = list(accumulate([length + 1 for length in lengths[:-1]], initial=0))
    lefts, rights = _scaled(x0s, page.width), _scaled(x1s, page.width)
    heights = list({*y0s, *y1s})  # few: the words of a line share theirs
    down = dict(zip(heights, _scaled(heights, page.height), strict=True))
    tops, bottoms = map(down.__getitem__, y0s), map(down.__getitem__, y1s)
    words = tuple(zip(starts, map(add, starts, lengths), lefts, tops, rights, bottoms, strict=True))
    if min(*lefts, *down.values()) < 0 or max(*rights, *down.values()) > 10_000:
        words = tuple(
            [
                (start, end, max(left, 0), max(top, 0), min(right, 10_000), min(bottom, 10_000))
                for start, end, left, top, right, bottom in words
            ]
        )
    return words if all(lengths) else tuple([word for word in words if word[0] < word[1]])


def _scaled(lengths: Sequence[float], whole: float) -> list[int]:
    """In ten-thousandths of the whole."""
    return [round(10_000 * (length / whole)) for length in lengths]
