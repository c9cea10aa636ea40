"""Where a text that a person types stands in a document's words."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice
from operator import itemgetter

from evalkit.documents.bundle import DocumentBundle, Page, Word
from evalkit.issue import PageBox

MOST = 500
"""So many occurrences are told; nobody steps through more."""

Occurrence = tuple[PageBox, ...]
"""One box for each line that it stands on; the whole page where the place of its words is not known. Never empty."""


def occurrences(bundle: DocumentBundle, text: str) -> tuple[Occurrence, ...]:
    """The first ``MOST`` places of ``text`` in reading order, each on one page and none overlapping another.

    Case does not matter, nor which white space parts the words: a line break is as good as a space. A part of a word is
    found, and the whole word boxed. Empty for a text without any sign.
    """
    parts = text.casefold().split()
    if not parts:
        return ()
    pattern = re.compile(r"\s+".join(map(re.escape, parts)))
    found = (place for page in bundle.pages for place in _on(page, pattern))
    return tuple(islice(found, MOST))


def _on(page: Page, pattern: re.Pattern[str]) -> Iterator[Occurrence]:
    folded = page.text.casefold()
    # Folding can make one sign two (ß, İ), never fewer: where the length is the same, every sign kept its place.
    origin: Sequence[int] = range(len(folded))
    if len(folded) != len(page.text):
        origin = [at for at, sign in enumerate(page.text) for _ in sign.casefold()]
    for match in pattern.finditer(folded):
        start, end = origin[match.start()], origin[match.end() - 1] + 1
        first = bisect_right(page.words, start, key=itemgetter(1))
        behind = bisect_left(page.words, end, key=itemgetter(0))
        yield tuple(_lines(page.page_num, page.words[first:behind])) or ((page.page_num, 0.0, 0.0, 1.0, 1.0),)


def _lines(page_num: int, words: Sequence[Word]) -> Iterator[PageBox]:
    box: tuple[int, int, int, int] | None = None
    for _, _, x0, y0, x1, y1 in words:
        if box and x0 >= box[0] and box[1] < (y0 + y1) / 2 < box[3]:
            box = box[0], min(box[1], y0), max(box[2], x1), max(box[3], y1)
            continue
        if box:
            yield _fractions(page_num, box)
        box = x0, y0, x1, y1
    if box:
        yield _fractions(page_num, box)


def _fractions(page_num: int, box: tuple[int, int, int, int]) -> PageBox:
    x0, y0, x1, y1 = box
    return page_num, x0 / 10_000, y0 / 10_000, x1 / 10_000, y1 / 10_000
