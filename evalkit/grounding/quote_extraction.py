"""Quotes cut from a page by their first and last words: none can be invented."""

from __future__ import annotations

from bisect import bisect_left
from operator import itemgetter

from evalkit.documents.bundle import Page
from evalkit.grounding.locate import find_whole_word_spans
from evalkit.grounding.normalise import canonicalise

#: A passage with more words is no quote: first and last words that are far apart may be chance matches.
MAX_EXTRACTED_QUOTE_WORDS = 60


def extract_quote(page: Page, paragraph_number: int | None, first_words: str, last_words: str) -> str | None:
    """Return the shortest passage from the first words to the last words of a quote.

    Paragraph ``paragraph_number`` of ``Page.paragraphs`` (from 1) is searched first, then the whole page. None if no
    passage of at most ``MAX_EXTRACTED_QUOTE_WORDS`` words is found.
    """
    has_paragraph = paragraph_number is not None and 1 <= paragraph_number <= len(page.paragraphs)
    texts = [page.paragraphs[paragraph_number - 1]] if has_paragraph and paragraph_number else []
    return next(
        (quote for text in [*texts, page.text] if (quote := _extract_shortest_passage(text, first_words, last_words))),
        None,
    )


def _extract_shortest_passage(text: str, first_words: str, last_words: str) -> str | None:
    canonical_first_words, canonical_last_words = canonicalise(first_words), canonicalise(last_words)
    if not canonical_first_words or not canonical_last_words:
        return None
    last_words_spans = list(find_whole_word_spans(canonical_last_words, text))
    candidate_spans = []
    for start, end in find_whole_word_spans(canonical_first_words, text):
        # In a short quote, the first words may also be the last words.
        ending_index = bisect_left(last_words_spans, start, key=itemgetter(0))
        candidate_spans += (
            [(start, max(end, last_words_spans[ending_index][1]))] if ending_index < len(last_words_spans) else []
        )
    passage = text[slice(*min(candidate_spans, key=lambda span: span[1] - span[0]))] if candidate_spans else ""
    return passage if 0 < len(passage.split()) <= MAX_EXTRACTED_QUOTE_WORDS else None
