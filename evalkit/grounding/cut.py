"""Cutting a quote out of a page by its first and last words: what is cut out cannot be invented."""

from __future__ import annotations

from bisect import bisect_left
from operator import itemgetter

from evalkit.documents.bundle import Page
from evalkit.grounding.locate import occurrences
from evalkit.grounding.normalise import canonical_text

#: Longer passages (words) are no quotes: of two words at both ends of a page nobody knows what was meant.
LONGEST = 60


def cut(page: Page, paragraph: int | None, first_words: str, last_words: str) -> str | None:
    """The shortest passage that begins and ends so; None where there is none, or none of at most ``LONGEST`` words.

    It is looked for in the paragraph of that number (from 1, of ``Page.paragraphs``), then on the whole page.
    """
    known = paragraph is not None and 1 <= paragraph <= len(page.paragraphs)
    texts = [page.paragraphs[paragraph - 1]] if known and paragraph else []
    return next((found for text in [*texts, page.text] if (found := _between(text, first_words, last_words))), None)


def _between(text: str, first_words: str, last_words: str) -> str | None:
    first, last = canonical_text(first_words), canonical_text(last_words)
    if not first or not last:
        return None
    endings = list(occurrences(last, text))
    spans = []
    for start, end in occurrences(first, text):
        # Of a short quote the first words may be its last ones too.
        nearest = bisect_left(endings, start, key=itemgetter(0))
        spans += [(start, max(end, endings[nearest][1]))] if nearest < len(endings) else []
    passage = text[slice(*min(spans, key=lambda span: span[1] - span[0]))] if spans else ""
    return passage if 0 < len(passage.split()) <= LONGEST else None
