"""Pages of the bundle, built from layout blocks: text, paragraphs, word positions."""

from collections.abc import Sequence
from itertools import accumulate, chain
from operator import add

from evalkit.documents.bundle import Block, Box, LayoutMetadata, PackedWords, Page, PageStatus, WordPosition
from evalkit.documents.identity.page_identity import find_patient_identifiers
from evalkit.documents.layout import LayoutBlock
from evalkit.documents.page_content import PageContent, PageToken

_EMPTY_TOKEN = PageToken("", 0.0, 0.0, 0.0, 0.0)


def join_block_text(layout_blocks: Sequence[LayoutBlock]) -> str:
    """Join the texts of blocks by line breaks; in tables, tabs separate the cells."""
    return "\n".join([_format_block_text(block) for block in layout_blocks])


def build_page(page_num: int, status: PageStatus, layout_blocks: Sequence[LayoutBlock], content: PageContent) -> Page:
    """Build the bundle's page from layout blocks, in points of the displayed page.

    ``content`` gives the page's size, its hidden lines and its damage.
    """
    visible_blocks = [
        Block(
            type=block.type,
            text=_format_block_text(block),
            box=_enclose_tokens_in_box(block.tokens, content),
            furniture=block.is_furniture,
        )
        for block in layout_blocks
    ]
    paragraphs = tuple([block.text for block in visible_blocks])
    text, words = "\n".join(paragraphs), _build_word_positions(layout_blocks, content)
    # ``model_construct`` skips validation, which would check every word although all values were built here.
    return Page.model_construct(
        page_num=page_num,
        status=status,
        text=text,
        paragraphs=paragraphs,
        layout_metadata=LayoutMetadata(
            block_types=tuple(block.type for block in visible_blocks),
            has_tables=any(block.type == "table" for block in visible_blocks),
        ),
        blocks=(
            *visible_blocks,
            *(
                Block(type="paragraph", text=line.text, box=_enclose_tokens_in_box(line.tokens, content), hidden=True)
                for line in content.hidden_lines
            ),
        ),
        words=PackedWords(words),
        damage=content.damage,
        identifiers=find_patient_identifiers(text, words),
    )


def create_failed_page(page_num: int) -> Page:
    """Create a page with status FAILED and no text, for a page that could not be read."""
    layout_metadata = LayoutMetadata(block_types=(), has_tables=False)
    return Page(
        page_num=page_num, status=PageStatus.FAILED, text="", paragraphs=(), layout_metadata=layout_metadata, blocks=()
    )


def _format_block_text(block: LayoutBlock) -> str:
    return "\n".join(["\t".join([" ".join([token[0] for token in cell]) for cell in row]) for row in block.rows])


def _enclose_tokens_in_box(tokens: Sequence[PageToken], content: PageContent) -> Box:
    _, lefts, tops, rights, bottoms = zip(*tokens, strict=True)
    width, height = content.width, content.height
    return (
        _round_to_share(min(lefts), width),
        _round_to_share(min(tops), height),
        _round_to_share(max(rights), width),
        _round_to_share(max(bottoms), height),
    )


def _round_to_share(length: float, full_length: float) -> float:
    """Return ``length / full_length``, limited to 0..1 and rounded to ten-thousandths."""
    return round(min(max(length / full_length, 0.0), 1.0), 4)


def _build_word_positions(blocks: Sequence[LayoutBlock], content: PageContent) -> tuple[WordPosition, ...]:
    """Return each word's position in ``Page.text`` and on the page, in reading order.

    One separator (space, tab or line break) is between two words of the text.
    """
    # An empty table cell adds only its separator to the text: here it is a word without letters, dropped at the end.
    cells = [cell or (_EMPTY_TOKEN,) for block in blocks for row in block.rows for cell in row]
    if not cells:
        return ()
    # One list for each coordinate of all words, not a loop over words: the reader spends most of its time here.
    texts, x0s, y0s, x1s, y1s = zip(*chain.from_iterable(cells), strict=True)
    lengths = list(map(len, texts))
    starts = list(accumulate([length + 1 for length in lengths[:-1]], initial=0))
    lefts, rights = _scale_to_ten_thousandths(x0s, content.width), _scale_to_ten_thousandths(x1s, content.width)
    y_coordinates = list({*y0s, *y1s})  # few values: words of one line have the same
    scaled_by_y = dict(zip(y_coordinates, _scale_to_ten_thousandths(y_coordinates, content.height), strict=True))
    tops, bottoms = map(scaled_by_y.__getitem__, y0s), map(scaled_by_y.__getitem__, y1s)
    words = tuple(zip(starts, map(add, starts, lengths), lefts, tops, rights, bottoms, strict=True))
    if min(*lefts, *scaled_by_y.values()) < 0 or max(*rights, *scaled_by_y.values()) > 10_000:
        words = tuple(
            [
                (start, end, max(left, 0), max(top, 0), min(right, 10_000), min(bottom, 10_000))
                for start, end, left, top, right, bottom in words
            ]
        )
    return words if all(lengths) else tuple([word for word in words if word[0] < word[1]])


def _scale_to_ten_thousandths(lengths: Sequence[float], full_length: float) -> list[int]:
    return [round(10_000 * (length / full_length)) for length in lengths]
