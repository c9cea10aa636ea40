"""Cutting a quote out of a page by its first and last words: what is cut out cannot be invented."""

from __future__ import annotations

from evalkit.documents.bundle import Page
from evalkit.grounding.locate import whole_words
from evalkit.grounding.normalise import canonical, canonical_text


def cut(page: Page, paragraph: int | None, first_words: str, last_words: str) -> str | None:
    """The shortest passage that begins and ends so; None where there is none.

    It is looked for in the paragraph of that number (from 1, of ``Page.paragraphs``), then on the whole page.
    """
    known = paragraph is not None and 1 <= paragraph <= len(page.paragraphs)
    texts = [page.paragraphs[paragraph - 1]] if known and paragraph else []
    return next((found for text in [*texts, page.text] if (found := _between(text, first_words, last_words))), None)


def _between(text: str, first_words: str, last_words: str) -> str | None:
    first, last = canonical_text(first_words), canonical_text(last_words)
    if not first or not last:
        return None
    form = canonical(text)
    start = form.text.find(first)
    # Of a short quote the first words may be its last ones too.
    end = form.text.find(last, start) if start >= 0 else -1
    if end < 0:
        return None
    end = max(end + len(last), start + len(first))
    return text[slice(*whole_words(text, *form.span(start, end)))]
