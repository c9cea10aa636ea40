"""Text search in a document, and boxes around a passage on its page."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from operator import itemgetter
from typing import NamedTuple

from evalkit.core.grouping import split_into_runs
from evalkit.documents.bundle import DocumentBundle, Page, WordPosition, enclose_boxes
from evalkit.issue import PageBox

#: The most hits that a search returns.
MAX_SEARCH_HITS = 500

#: One hit of a search: a box for each line of it; one box of the whole page if the positions of its words are unknown.
#: Never empty.
SearchHit = tuple[PageBox, ...]


def find_text_in_document(bundle: DocumentBundle, query: str) -> tuple[SearchHit, ...]:
    """Find the first ``MAX_SEARCH_HITS`` occurrences of ``query``, in reading order.

    Each hit is on one page, and hits do not overlap. Upper and lower case count as equal, and so does all white space:
    a line break equals a space. If ``query`` matches only part of a word, the box encloses the whole word. Empty if
    ``query`` is empty or only white space.
    """
    terms = query.casefold().split()
    if not terms:
        return ()
    pattern = re.compile(r"\s+".join(map(re.escape, terms)))
    return tuple(islice((hit for page in bundle.pages for hit in _search_page(page, pattern)), MAX_SEARCH_HITS))


def _search_page(page: Page, pattern: re.Pattern[str]) -> Iterator[SearchHit]:
    folded_text = page.text.casefold()
    # Case folding can turn one character into two (ß, İ), never into fewer: if the text's length is unchanged, so is
    # the index of every character.
    original_offsets: Sequence[int] = range(len(folded_text))
    if len(folded_text) != len(page.text):
        original_offsets = [offset for offset, character in enumerate(page.text) for _ in character.casefold()]
    for match in pattern.finditer(folded_text):
        start, end = original_offsets[match.start()], original_offsets[match.end() - 1] + 1
        yield find_boxes_of_text_span(page, start, end) or ((page.page_num, 0.0, 0.0, 1.0, 1.0),)


def find_boxes_of_text_span(page: Page, start: int, end: int) -> tuple[PageBox, ...]:
    """Return boxes around the words of ``page.text[start:end]``, one for each line.

    Empty if the position of none of these words is known.
    """
    first_index = bisect_right(page.words, start, key=itemgetter(1))
    words = page.words[first_index : bisect_left(page.words, end, first_index, key=itemgetter(0))]
    return tuple(
        (page.page_num, *(round(coordinate / 10_000, 4) for coordinate in enclose_boxes(word[2:] for word in line)))  # type: ignore[misc]
        for line in group_words_into_lines(words)
    )


class DoubtfulWord(NamedTuple):
    """A word of a scanned page that OCR read with low certainty."""

    reading: str
    """The word as ``Page.text`` has it."""
    second_reading: str
    """The other engine's reading; empty if there is none."""
    boxes: tuple[PageBox, ...]
    """Rectangle around the word, one for each line."""


def find_doubtful_words(page: Page, start: int, end: int) -> Iterator[DoubtfulWord]:
    """Find the doubtful words in ``page.text[start:end]``; yield them in order.

    Words in a row that the other engine read together are one.
    """
    rows = [
        (position, second_reading, page.words[position])
        for position, second_reading in zip(page.doubtful, page.second_readings, strict=True)
    ]
    rows = [row for row in rows if row[2][0] < end and row[2][1] > start]
    for (_, second_reading), group in groupby(enumerate(rows), key=lambda row: (row[1][0] - row[0], row[1][1])):
        words = [word for _, (_, _, word) in group]
        first, last = words[0][0], words[-1][1]
        yield DoubtfulWord(page.text[first:last], second_reading, find_boxes_of_text_span(page, first, last))


def group_words_into_lines(words: Iterable[WordPosition]) -> list[list[WordPosition]]:
    """Group a page's words, in reading order, into printed lines."""
    return split_into_runs(
        words, lambda line, word: _is_on_line(enclose_boxes(line_word[2:] for line_word in line), word)
    )


def _is_on_line(line_box: tuple[int, int, int, int], word: WordPosition) -> bool:
    x0, y0, _, y1 = line_box
    height = min(y1 - y0, word[5] - word[3])
    is_after = word[2] >= x0 or 0 <= x0 - word[4] < 2 * height  # or just before the line, if it is read from the right
    return is_after and min(y1, word[5]) - max(y0, word[3]) > 0.5 * height
