"""From blocks that are laid out to a page of the bundle: its text, its paragraphs, and where each word stands."""

from __future__ import annotations

from collections.abc import Sequence

from evalkit.documents.bundle import Block, Box, LayoutMetadata, Page, PageStatus, Word
from evalkit.documents.drawn import Drawn, Line, Token
from evalkit.documents.identifiers import identifiers
from evalkit.documents.layout import LaidBlock


def text_of(laid: Sequence[LaidBlock]) -> str:
    """The text of a page with these blocks."""
    return "\n".join([_text(block) for block in laid])


def page_of(number: int, status: PageStatus, laid: Sequence[LaidBlock], drawn: Drawn) -> Page:
    """The page with these blocks, which stand in points of the page as it is displayed."""
    visible = [_block(block, drawn) for block in laid]
    paragraphs = tuple([block.text for block in visible])
    text, words = "\n".join(paragraphs), _words(laid, drawn)
    return Page(
        page_num=number,
        status=status,
        text=text,
        paragraphs=paragraphs,
        layout_metadata=LayoutMetadata(
            block_types=tuple(block.type for block in visible),
            has_tables=any(block.type == "table" for block in visible),
        ),
        blocks=(*visible, *(_hidden(line, drawn) for line in drawn.hidden)),
        words=words,
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
    words: list[Word] = []
    position = 0
    width, height = page.width, page.height
    for block in blocks:
        for row in block.rows:
            for cell in row:
                # Once for each word of a document: this is the reader's innermost loop.
                for text, x0, y0, x1, y1 in cell:
                    end = position + len(text)
                    left, right = round(10_000 * (x0 / width)), round(10_000 * (x1 / width))
                    top, bottom = round(10_000 * (y0 / height)), round(10_000 * (y1 / height))
                    if left < 0 or top < 0 or right > 10_000 or bottom > 10_000:
                        left, top = max(left, 0), max(top, 0)
                        right, bottom = min(right, 10_000), min(bottom, 10_000)
                    words.append((position, end, left, top, right, bottom))
                    position = end + 1
                # An empty cell is followed by its separator alone.
                position += not cell
    return tuple(words)
