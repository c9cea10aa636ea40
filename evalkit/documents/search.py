"""Text search in a document, and boxes around a passage on its page."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice
from operator import itemgetter

from evalkit.documents.bundle import DocumentBundle, Page, WordPosition
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
    hits = (hit for page in bundle.pages for hit in _search_page(page, pattern))
    return tuple(islice(hits, MAX_SEARCH_HITS))


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
    line_boxes: list[list[int]] = []
    first_index = bisect_right(page.words, start, key=itemgetter(1))
    for word in page.words[first_index : bisect_left(page.words, end, first_index, key=itemgetter(0))]:
        if line_boxes and _is_on_line(line_boxes[-1], word):
            line_box = line_boxes[-1]
            line_box[:] = [
                min(line_box[0], word[2]),
                min(line_box[1], word[3]),
                max(line_box[2], word[4]),
                max(line_box[3], word[5]),
            ]
        else:
            line_boxes.append(list(word[2:]))
    return tuple(
        (page.page_num, *(round(coordinate / 10_000, 4) for coordinate in line_box))  # type: ignore[misc]
        for line_box in line_boxes
    )


def _is_on_line(line_box: list[int], word: WordPosition) -> bool:
    overlap = min(line_box[3], word[5]) - max(line_box[1], word[3])
    return word[2] >= line_box[0] and overlap > 0.5 * min(line_box[3] - line_box[1], word[5] - word[3])
