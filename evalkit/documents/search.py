"""Where a text that a person types stands in a document's words."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice
from operator import itemgetter

from evalkit.documents.bundle import DocumentBundle, Page, WordPosition
from evalkit.issue import PageBox

MAX_SEARCH_HITS = 500
"""So many occurrences are told; nobody steps through more."""

SearchHit = tuple[PageBox, ...]
"""One box for each line that it stands on; the whole page where the place of its words is not known. Never empty."""


def search_document(bundle: DocumentBundle, text: str) -> tuple[SearchHit, ...]:
    """The first ``MAX_SEARCH_HITS`` places of ``text`` in reading order, each on one page and none overlapping another.

    Case does not matter, nor which white space parts the words: a line break is as good as a space. A part of a word is
    found, and the whole word boxed. Empty for a text without any sign.
    """
    terms = text.casefold().split()
    if not terms:
        return ()
    pattern = re.compile(r"\s+".join(map(re.escape, terms)))
    hits = (hit for page in bundle.pages for hit in _search_page(page, pattern))
    return tuple(islice(hits, MAX_SEARCH_HITS))


def _search_page(page: Page, pattern: re.Pattern[str]) -> Iterator[SearchHit]:
    folded_text = page.text.casefold()
    # Folding can make one sign two (ß, İ), never fewer: where the length is the same, every sign kept its place.
    original_offsets: Sequence[int] = range(len(folded_text))
    if len(folded_text) != len(page.text):
        original_offsets = [offset for offset, character in enumerate(page.text) for _ in character.casefold()]
    for match in pattern.finditer(folded_text):
        start, end = original_offsets[match.start()], original_offsets[match.end() - 1] + 1
        first_word = bisect_right(page.words, start, key=itemgetter(1))
        end_word = bisect_left(page.words, end, key=itemgetter(0))
        yield tuple(_merge_line_boxes(page.page_num, page.words[first_word:end_word])) or (
            (page.page_num, 0.0, 0.0, 1.0, 1.0),
        )


def _merge_line_boxes(page_num: int, words: Sequence[WordPosition]) -> Iterator[PageBox]:
    box: tuple[int, int, int, int] | None = None
    for _, _, x0, y0, x1, y1 in words:
        if box and x0 >= box[0] and box[1] < (y0 + y1) / 2 < box[3]:
            box = box[0], min(box[1], y0), max(box[2], x1), max(box[3], y1)
            continue
        if box:
            yield _convert_to_page_box(page_num, box)
        box = x0, y0, x1, y1
    if box:
        yield _convert_to_page_box(page_num, box)


def _convert_to_page_box(page_num: int, box: tuple[int, int, int, int]) -> PageBox:
    x0, y0, x1, y1 = box
    return page_num, x0 / 10_000, y0 / 10_000, x1 / 10_000, y1 / 10_000
