"""Pages of the bundle, built from Document AI's response about a chunk of a PDF.

The response is untrusted until checked: it may name pages that were not sent, be a thousand times as large as the
pages, and contain descriptions that a model wrote. The PDF shows which words are printed on a page; the response gives
their order.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice
from typing import Any, NamedTuple

from evalkit.documents.bundle import BlockType, Box, PackedWords, Page, PageStatus, enclose_boxes
from evalkit.documents.layout import LayoutBlock, mark_stamps
from evalkit.documents.page_builder import build_page
from evalkit.documents.page_content import UNPRINTABLE_CHARACTER, PageContent, PageToken
from evalkit.documents.quality import MIN_READABLE_SCORE
from evalkit.documents.readers.pdf import determine_page_status

#: Limits of a response: its bytes, the rows and columns of a table, the cells of all tables, and for one page its
#: words, and the cells times the words that may be in them. A dense page has some thousand words.
_MAX_RESPONSE_BYTES, _MAX_TABLE_ROWS, _MAX_TABLE_COLUMNS, _MAX_TABLE_CELLS = 30_000_000, 10_000, 200, 500_000
_MAX_PAGE_WORDS, _MAX_CELL_WORD_PAIRS = 100_000, 50_000_000
#: Limit of the characters to which a page may refer, in lengths of the response's text: tokens, paragraphs, lines,
#: blocks and the page itself all refer to the text.
_MAX_TEXT_REPEATS = 10
#: A word belongs to a paragraph if its middle is at most this far (as a share of the page) outside the paragraph's box.
_POSITION_TOLERANCE = 0.005
#: The response agrees with the PDF's own text if at most this share of the response's words is missing there.
_MAX_MISREAD_SHARE = 0.1
#: If the response omits more than this share of a page's known words, and the page has at least this many known words,
#: the page counts as not read.
_MAX_OMITTED_SHARE, _MIN_KNOWN_WORDS = 0.1, 10
#: If pictures cover at least this share of a page and the response adds no words, the pictures may have unread words.
_LARGE_IMAGE_SHARE = 0.15
_WORD_PATTERN = re.compile(r"\w+")
_UNPLACED_BOX = (0, 0, 0, 0)


class MalformedResponseError(Exception):
    """Error for a response that contradicts itself or the file, or exceeds a limit."""


# Parse the response


class _ResponseCell(NamedTuple):
    words: tuple[str, ...]
    region: Box | None
    """Box around the words; None if it is unknown."""


class _ResponseBlock(NamedTuple):
    first_page_index: int
    """First page of the block, counted from 0 in the chunk."""
    last_page_index: int
    """Last page of the block, counted from 0 in the chunk."""
    type: BlockType
    rows: tuple[tuple[_ResponseCell, ...], ...]
    is_furniture: bool = False
    is_possibly_generated: bool = False
    """True if a model may have written the text: it is used only if its words are known to be on the page."""

    @property
    def words(self) -> list[str]:
        """All words of the block, in reading order."""
        return [word for row in self.rows for cell in row for word in cell.words]


class _BlockContext(NamedTuple):
    """Pages and box that a block inherits from the block that contains it."""

    page_count: int
    first_page_index: int = 0
    last_page_index: int = 0
    region: Box | None = None
    is_in_list: bool = False


def _flatten_response_blocks(blocks: Iterable[Any], context: _BlockContext) -> Iterator[_ResponseBlock]:
    """Iterate over a tree of blocks in reading order: a block, then its children."""
    first_page_index, last_page_index = context.first_page_index, context.last_page_index
    for block in blocks:
        if block.page_span.page_start:
            first_page_index, last_page_index = _parse_page_span(block.page_span, context.page_count)
        block_context = context._replace(
            first_page_index=first_page_index,
            last_page_index=last_page_index,
            region=_get_region_on_page(block, first_page_index, last_page_index, context),
        )
        kind = block.WhichOneof("block")
        if kind == "text_block":
            yield from _convert_text_block(block.text_block, block_context)
        elif kind == "table_block":
            yield from _build_paragraph_block(block.table_block.caption, block_context, is_possibly_generated=True)
            yield from _read_table(block.table_block, block_context)
        elif kind == "list_block":
            for list_entry in block.list_block.list_entries:
                yield from _flatten_response_blocks(list_entry.blocks, block_context._replace(is_in_list=True))
        elif kind == "image_block":
            yield from _build_paragraph_block(block.image_block.image_text, block_context, is_possibly_generated=True)


def _parse_page_span(page_span: Any, page_count: int) -> tuple[int, int]:
    last_page = max(page_span.page_end, page_span.page_start)
    if not 1 <= page_span.page_start <= last_page <= page_count:
        raise MalformedResponseError
    return page_span.page_start - 1, last_page - 1


def _get_region_on_page(block: Any, first_page_index: int, last_page_index: int, context: _BlockContext) -> Box | None:
    """Return where the block is on its page; None if unknown or if it spans two pages.

    The box of a block that spans two pages does not say which page it is on.
    """
    if first_page_index != last_page_index:
        return None
    return _convert_polygon_to_box(block.bounding_box) or (
        context.region if first_page_index == context.first_page_index == context.last_page_index else None
    )


def _convert_text_block(block: Any, context: _BlockContext) -> Iterator[_ResponseBlock]:
    is_heading = block.type_.startswith("heading") or block.type_ in ("title", "subtitle")
    block_type: BlockType = "heading" if is_heading else "list_item" if context.is_in_list else "paragraph"
    yield from _build_paragraph_block(block.text, context, block_type, is_furniture=block.type_ in ("header", "footer"))
    yield from _flatten_response_blocks(block.blocks, context)


def _build_paragraph_block(
    text: str,
    context: _BlockContext,
    block_type: BlockType = "paragraph",
    *,
    is_furniture: bool = False,
    is_possibly_generated: bool = False,
) -> Iterator[_ResponseBlock]:
    if words := _split_words(text):
        yield _ResponseBlock(
            context.first_page_index,
            context.last_page_index,
            block_type,
            ((_ResponseCell(words, context.region),),),
            is_furniture,
            is_possibly_generated,
        )


def _read_table(block: Any, context: _BlockContext) -> Iterator[_ResponseBlock]:
    """Build a table for each page that has rows of it.

    Google may join rows from several pages in one table.
    """
    rows_by_page: dict[int, list[tuple[_ResponseCell, ...]]] = {}
    page_index = context.first_page_index
    if len(block.header_rows) + len(block.body_rows) > _MAX_TABLE_ROWS:
        raise MalformedResponseError
    for row in _read_table_rows((*block.header_rows, *block.body_rows), context):
        page_index = next((cell_block.first_page_index for cell in row for cell_block in cell), page_index)
        rows_by_page.setdefault(page_index, []).append(tuple(_join_blocks_to_cell(cell) for cell in row))
    for page_index, page_rows in rows_by_page.items():
        column_count = max(map(len, page_rows))
        padded_rows = tuple(
            (*row, *[_EMPTY_CELL] * (column_count - len(row))) for row in page_rows if any(cell.words for cell in row)
        )
        if padded_rows:
            yield _ResponseBlock(page_index, page_index, "table", padded_rows)


def _read_table_rows(rows: Iterable[Any], context: _BlockContext) -> Iterator[list[list[_ResponseBlock]]]:
    """Read the cells of each row, each cell as its blocks.

    A cell that spans several columns or rows fills the first place; the others stay empty.
    """
    spans_below: dict[int, int] = {}
    for row in rows:
        cells: list[list[_ResponseBlock]] = []
        next_spans = {column: count - 1 for column, count in spans_below.items() if count > 1}
        taken_columns = set(spans_below)
        for cell in row.cells:
            while len(cells) in taken_columns:
                cells.append([])
            column_span, row_span = min(max(cell.col_span, 1), _MAX_TABLE_COLUMNS), max(cell.row_span, 1)
            next_spans |= {len(cells) + step: row_span - 1 for step in range(column_span) if row_span > 1}
            cells += [list(_flatten_response_blocks(cell.blocks, context)), *([] for _ in range(column_span - 1))]
            if len(cells) > _MAX_TABLE_COLUMNS:
                raise MalformedResponseError
        spans_below = next_spans
        yield cells


def _join_blocks_to_cell(blocks: Sequence[_ResponseBlock]) -> _ResponseCell:
    parts = [part for block in blocks if not block.is_possibly_generated for row in block.rows for part in row]
    regions = {part.region for part in parts}
    region = enclose_boxes([box for box in regions if box]) if None not in regions and regions else None
    return _ResponseCell(tuple(word for part in parts for word in part.words), region)


_EMPTY_CELL = _ResponseCell((), None)


def _split_words(text: str) -> tuple[str, ...]:
    return tuple(printable_word for word in text.split() if (printable_word := UNPRINTABLE_CHARACTER.sub("", word)))


def _convert_polygon_to_box(polygon: Any, dimension: Any = None) -> Box | None:
    """Return the box around a polygon; None if it is missing or outside the page.

    ``dimension`` is the page's size in the unit of ``polygon.vertices``.
    """
    points = [(point.x, point.y) for point in polygon.normalized_vertices]
    if not points and dimension is not None and dimension.width > 0 and dimension.height > 0:
        points = [(point.x / dimension.width, point.y / dimension.height) for point in polygon.vertices]
    if len(points) < 2 or not all(math.isfinite(coordinate) for point in points for coordinate in point):
        return None
    x_shares, y_shares = zip(*points, strict=True)
    x0, y0, x1, y1 = (
        min(max(coordinate, 0.0), 1.0) for coordinate in (min(x_shares), min(y_shares), max(x_shares), max(y_shares))
    )
    return (x0, y0, x1, y1) if x0 < x1 and y0 < y1 else None


# Known words of the pages


class PageWithKnownWords:
    """A page's content in the PDF, with the words that are known to be printed on it.

    Known words are those that Document AI recognised with their places; without any, those of the PDF's text.
    """

    def __init__(self, page_num: int, content: PageContent) -> None:
        self.page_num = page_num
        # A scanner's OCR layer is invisible, too, and belongs to the hidden text.
        self.content = content.copy_with_ocr_layer_hidden
        self.pdf_tokens = tuple(token for line in self.content.visible_lines for token in line.tokens)
        self.known_tokens: Sequence[PageToken] = self.pdf_tokens
        #: Document AI's confidence, 0..100, in each of ``known_tokens``; empty if these come from the PDF's text.
        self.token_confidences: dict[PageToken, int] = {}
        hidden_texts = (
            set() if content.needs_ocr else {token.text for line in content.hidden_lines for token in line.tokens}
        )
        #: Words that the PDF has only invisibly; empty if the page has pictures, which may show the same words.
        self.hidden_words = hidden_texts - {token.text for token in self.pdf_tokens}
        #: True if Google rotated the page to read it, so that the words' places on the displayed page are unknown.
        self.is_rotated = False
        #: The page's text from the response's list of pages, used if its tree of blocks has none for this page.
        self.fallback_blocks: list[_ResponseBlock] = []

    def store_words_of_response_page(self, response_page: Any, response_text: str, index_in_chunk: int) -> None:
        """Store the recognised words and the text of Google's protobuf ``Page``.

        The page's text anchors are offsets into ``response_text``. ``index_in_chunk`` is the page's index in the chunk,
        from 0. MalformedResponseError if the anchors refer to too much text.
        """
        layout_parts = (
            *response_page.tokens,
            *response_page.paragraphs,
            *response_page.lines,
            *response_page.blocks,
            response_page,
        )
        segments = (segment for part in layout_parts for segment in part.layout.text_anchor.text_segments)
        if sum(
            max(min(text_segment.end_index, len(response_text)) - text_segment.start_index, 0)
            for text_segment in segments
        ) > _MAX_TEXT_REPEATS * len(response_text):
            raise MalformedResponseError
        dimension = response_page.dimension
        self.is_rotated = (dimension.width - dimension.height) * (self.content.width - self.content.height) < 0
        if not self.is_rotated:
            self.token_confidences = _read_recognised_tokens(response_page, response_text, self.content)
            self.known_tokens = list(self.token_confidences) or self.pdf_tokens
        for part_group in (response_page.paragraphs, response_page.lines, response_page.blocks, [response_page]):
            for part in part_group:
                region = (
                    None if part is response_page else _convert_polygon_to_box(part.layout.bounding_poly, dimension)
                )
                self.fallback_blocks += _build_paragraph_block(
                    _read_anchored_text(part.layout, response_text),
                    _BlockContext(index_in_chunk + 1, index_in_chunk, index_in_chunk, region),
                )
            if self.fallback_blocks:
                break


def _read_anchored_text(layout: Any, response_text: str) -> str:
    return "".join(
        response_text[max(segment.start_index, 0) : max(segment.end_index, 0)]
        for segment in layout.text_anchor.text_segments
    )


def _read_recognised_tokens(response_page: Any, response_text: str, content: PageContent) -> dict[PageToken, int]:
    """Return a page's recognised words, in points of the page, with confidences.

    Confidences are Document AI's, 0..100.
    """
    placed_words: list[tuple[str, Box, int]] = []
    word_end_index = -1
    for part in response_page.tokens:
        part_text, box = (
            _read_anchored_text(part.layout, response_text),
            _convert_polygon_to_box(part.layout.bounding_poly, response_page.dimension),
        )
        words = _split_words(part_text)
        if not words or box is None:
            continue
        confidence = part.layout.confidence
        percent = round(100 * confidence) if 0 <= confidence <= 1 else 0
        segments = part.layout.text_anchor.text_segments
        # Google separates a comma from the word before it; here a word includes everything up to the next space.
        if placed_words and segments[0].start_index == word_end_index and not part_text[0].isspace():
            previous_word, previous_box, previous_percent = placed_words.pop()
            words, box, percent = (
                (previous_word + words[0], *words[1:]),
                enclose_boxes([previous_box, box]),
                min(previous_percent, percent),
            )
        placed_words += [(word, box, percent) for word in words]
        word_end_index = -1 if part_text[-1].isspace() else segments[-1].end_index
    return {_build_token(word, box, content): percent for word, box, percent in placed_words}


def _build_token(word: str, box: Box, content: PageContent) -> PageToken:
    x0, y0, x1, y1 = box
    return PageToken(word, x0 * content.width, y0 * content.height, x1 * content.width, y1 * content.height)


# Build pages


def build_pages_from_response(response_document: Any, known_pages: Sequence[PageWithKnownWords]) -> Iterator[Page]:
    """Build the pages of a chunk from Google's protobuf ``Document``.

    ``response_document`` is None if all pages are blank and nothing was sent. MalformedResponseError if the response
    contradicts itself or the file, or exceeds a limit.
    """
    blocks_by_page: dict[int, list[_ResponseBlock]] = {}
    cell_count = 0
    if response_document is not None:
        if response_document.ByteSize() > _MAX_RESPONSE_BYTES or len(response_document.pages) > len(known_pages):
            raise MalformedResponseError
        for index, response_page in enumerate(response_document.pages):
            page_index = response_page.page_number - 1 if response_page.page_number else index
            if not 0 <= page_index < len(known_pages):
                raise MalformedResponseError
            known_pages[page_index].store_words_of_response_page(response_page, response_document.text, page_index)
        for block in _flatten_response_blocks(
            response_document.document_layout.blocks, _BlockContext(len(known_pages))
        ):
            cell_count += sum(map(len, block.rows))
            if cell_count > _MAX_TABLE_CELLS:
                raise MalformedResponseError
            for block_part in _split_at_page_end(block, known_pages):
                blocks_by_page.setdefault(block_part.first_page_index, []).append(block_part)
    for index, known_page in enumerate(known_pages):
        yield _build_page_from_response(known_page, blocks_by_page.get(index, []))


def _split_at_page_end(
    block: _ResponseBlock, pages_with_known_words: Sequence[PageWithKnownWords]
) -> Iterator[_ResponseBlock]:
    """Split a paragraph that spans two pages, by the words known to be on each page.

    A block on one page is returned unchanged. If the known words do not decide where to split, or if the block spans
    more than two pages, the whole block belongs to its first page.
    """
    if block.last_page_index != block.first_page_index + 1:
        yield block._replace(last_page_index=block.first_page_index)
        return
    words, region = block.rows[0][0]
    first_page_words, second_page_words = (
        {token.text for token in pages_with_known_words[page_index].known_tokens}
        for page_index in (block.first_page_index, block.last_page_index)
    )
    gains = accumulate(((word in first_page_words) - (word in second_page_words) for word in words), initial=0)
    split_index, _ = max(enumerate(gains), key=lambda gain: (gain[1], gain[0]))
    for page_index, part_words in (
        (block.first_page_index, words[:split_index]),
        (block.last_page_index, words[split_index:]),
    ):
        if part_words:
            yield block._replace(
                first_page_index=page_index, last_page_index=page_index, rows=((_ResponseCell(part_words, region),),)
            )


def _build_page_from_response(known_page: PageWithKnownWords, blocks: Sequence[_ResponseBlock]) -> Page:
    if all(response_block.is_possibly_generated for response_block in blocks):
        blocks = known_page.fallback_blocks
    unused_words = Counter(token.text for token in known_page.known_tokens) - Counter(
        word for block in blocks if not block.is_possibly_generated for word in block.words
    )
    layout_blocks = mark_stamps(
        list(
            _build_placed_layout_blocks(
                [
                    response_block
                    for response_block in blocks
                    if not response_block.is_possibly_generated or Counter(response_block.words) <= unused_words
                ],
                known_page,
            )
        )
    )
    page = build_page(
        known_page.page_num,
        _determine_response_page_status(known_page, layout_blocks),
        layout_blocks,
        known_page.content,
    )
    tokens = (token for block in layout_blocks for token in block.tokens)
    placed_words = [(word, token) for word, token in zip(page.words, tokens, strict=True) if word[2:] != _UNPLACED_BOX]
    updates: dict[str, Any] = {"words": PackedWords(word for word, _ in placed_words)}
    if page.status is PageStatus.IMAGE:
        updates |= {"quality": 0.0, "problems": (_UNREAD_PROBLEM,)}
    elif page.status is PageStatus.OCR and known_page.token_confidences:
        lowest_confidence = min(known_page.token_confidences.values())
        confidences = tuple(known_page.token_confidences.get(token, lowest_confidence) for _, token in placed_words)
        quality = round(sum(confidences) / max(len(confidences), 1) / 100, 2)
        updates |= {"confidences": confidences, "quality": quality}
        if quality < MIN_READABLE_SCORE:
            updates |= {"status": PageStatus.IMAGE, "problems": (_UNREAD_PROBLEM,)}
    elif (
        page.status is PageStatus.TEXT
        and known_page.content.image_share >= _LARGE_IMAGE_SHARE
        and _count_words(token for block in layout_blocks for token in block.tokens)
        <= _count_words(known_page.pdf_tokens)
    ):
        updates["unread"] = "Document AI says nothing of the pictures: look at them, or have this machine read the file"
    return page.model_copy(update=updates)


_UNREAD_PROBLEM = (
    "Document AI returned little or nothing of what is on the page: scan it again at 300 dpi; "
    "if it is handwriting or a picture, type what matters"
)


def _build_placed_layout_blocks(
    blocks: Sequence[_ResponseBlock], known_page: PageWithKnownWords
) -> Iterator[LayoutBlock]:
    """Build layout blocks from a page's response blocks, with a box for each word.

    The box is the word's own if it is certain, else the paragraph's, else the one around the words of the block that
    have one, else an empty one. Words that the PDF has only
    invisibly are left out.
    """
    cells = [
        _ResponseCell(
            tuple(word for word in words if word not in known_page.hidden_words),
            None if known_page.is_rotated else region,
        )
        for block in blocks
        for row in block.rows
        for words, region in row
    ]
    if (
        len(cells) * len(known_page.known_tokens) > _MAX_CELL_WORD_PAIRS
        or sum(len(cell.words) for cell in cells) > _MAX_PAGE_WORDS
    ):
        raise MalformedResponseError
    words_by_region: dict[Box | None, list[str]] = {}
    for cell in cells:
        words_by_region.setdefault(cell.region, []).extend(cell.words)
    tokens_by_region = {
        region: iter(_match_words_with_known_tokens(words, region, known_page))
        for region, words in words_by_region.items()
    }
    remaining_cells = iter(cells)
    for block in blocks:
        rows = tuple(
            tuple(
                tuple(islice(tokens_by_region[cell.region], len(cell.words)))
                for cell in islice(remaining_cells, len(row))
            )
            for row in block.rows
        )
        if any(cell for row in rows for cell in row):
            layout_block = LayoutBlock(block.type, rows, block.is_furniture)
            placed_boxes = [token[1:] for token in layout_block.tokens if token[1:] != _UNPLACED_BOX]
            box = enclose_boxes(placed_boxes) if placed_boxes else _UNPLACED_BOX
            yield layout_block.map_tokens(
                lambda token, box=box: token if token[1:] != _UNPLACED_BOX else PageToken(token.text, *box)  # type: ignore[misc]
            )


def _match_words_with_known_tokens(
    words: Sequence[str], region: Box | None, known_page: PageWithKnownWords
) -> list[PageToken]:
    """Find for each word of a paragraph its box on the page.

    A word gets the box of a known word if both occur once, in ``words`` and in ``region``; so do its neighbours on the
    line as long as both texts continue equally. Every other word may be one of several, and gets ``region`` as its box.
    """
    nearby_tokens = [
        token for token in known_page.known_tokens if region is None or _is_in_region(token, region, known_page.content)
    ]
    if list(words) == [token.text for token in nearby_tokens]:
        return nearby_tokens
    word_counts, token_counts = Counter(words), Counter(token.text for token in nearby_tokens)
    unique_indices = {
        token.text: token_index for token_index, token in enumerate(nearby_tokens) if token_counts[token.text] == 1
    }
    matched_indices = {
        word_index: unique_indices[word]
        for word_index, word in enumerate(words)
        if word_counts[word] == 1 and word in unique_indices
    }
    used_indices = set(matched_indices.values())
    for step, word_indices in ((1, range(1, len(words))), (-1, range(len(words) - 2, -1, -1))):
        for word_index in word_indices:
            previous_index = matched_indices.get(word_index - step)
            token_index = -1 if previous_index is None else previous_index + step
            if (
                previous_index is not None
                and word_index not in matched_indices
                and token_index not in used_indices
                and 0 <= token_index < len(nearby_tokens)
                and nearby_tokens[token_index].text == words[word_index]
                and _is_same_line(nearby_tokens[token_index], nearby_tokens[previous_index])
            ):
                matched_indices[word_index] = token_index
                used_indices.add(token_index)
    return [
        nearby_tokens[matched_indices[word_index]]
        if word_index in matched_indices
        else _build_token(word, region or _UNPLACED_BOX, known_page.content)
        for word_index, word in enumerate(words)
    ]


def _is_same_line(token: PageToken, other_token: PageToken) -> bool:
    return 2 * (min(token.y1, other_token.y1) - max(token.y0, other_token.y0)) > min(
        token.y1 - token.y0, other_token.y1 - other_token.y0
    )


def _is_in_region(token: PageToken, region: Box, content: PageContent) -> bool:
    x, y = (token.x0 + token.x1) / 2 / content.width, (token.y0 + token.y1) / 2 / content.height
    x0, y0, x1, y1 = region
    return (
        x0 - _POSITION_TOLERANCE <= x <= x1 + _POSITION_TOLERANCE
        and y0 - _POSITION_TOLERANCE <= y <= y1 + _POSITION_TOLERANCE
    )


def _determine_response_page_status(known_page: PageWithKnownWords, layout_blocks: Sequence[LayoutBlock]) -> PageStatus:
    """Return the status of a page that Document AI read.

    TEXT if the PDF's own text has nearly all words of the response, and all with digits; otherwise OCR. IMAGE (unread) if
    the response omits many known words, or if the page's text seems to be in pictures that the response lacks.
    """
    if not layout_blocks:
        return PageStatus.BLANK if known_page.content.is_blank else PageStatus.IMAGE
    response_words = _count_words(token for block in layout_blocks for token in block.tokens)
    pdf_words = _count_words(known_page.pdf_tokens)
    for known_words in (pdf_words, _count_words(known_page.known_tokens)):
        if (
            known_words.total() >= _MIN_KNOWN_WORDS
            and (known_words - response_words).total() > _MAX_OMITTED_SHARE * known_words.total()
        ):
            return PageStatus.IMAGE
    added_words = response_words - pdf_words
    if added_words.total() > _MAX_MISREAD_SHARE * response_words.total() or any(map(str.isdigit, "".join(added_words))):
        return PageStatus.OCR
    return determine_page_status(known_page.content, layout_blocks)


def _count_words(tokens: Iterable[PageToken]) -> Counter[str]:
    return Counter(_WORD_PATTERN.findall(" ".join(token.text for token in tokens).casefold()))
