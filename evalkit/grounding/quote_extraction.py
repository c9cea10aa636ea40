"""Cut a quote out of a page by its first and last words: it cannot be invented."""

from __future__ import annotations

from bisect import bisect_left
from operator import itemgetter

from evalkit.documents.bundle import Page
from evalkit.grounding.locate import find_whole_word_spans
from evalkit.grounding.normalise import canonicalise

#: Longer passages (words) are no quotes: two words at both ends of a page are ambiguous.
MAX_EXTRACTED_QUOTE_WORDS = 60


def extract_quote(page: Page, paragraph_number: int | None, first_words: str, last_words: str) -> str | None:
    """Extract the shortest passage between the given first and last words.

    None if there is none of at most ``MAX_EXTRACTED_QUOTE_WORDS`` words. The paragraph of that number is searched first
    (from 1, of ``Page.paragraphs``), then the whole page.
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
        # A short quote's first words may be its last ones too.
        ending_index = bisect_left(last_words_spans, start, key=itemgetter(0))
        candidate_spans += (
            [(start, max(end, last_words_spans[ending_index][1]))] if ending_index < len(last_words_spans) else []
        )
    passage = text[slice(*min(candidate_spans, key=lambda span: span[1] - span[0]))] if candidate_spans else ""
    return passage if 0 < len(passage.split()) <= MAX_EXTRACTED_QUOTE_WORDS else None
