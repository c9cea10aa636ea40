"""Texts that are no patient's record: mails, articles, rules, blank forms.

A mail that quotes a report has the report's words, and an article has those of many reports, so that words alone call
them a report. Contract ruling 20 b; the genres are the rows of ``text_genres.toml``.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from evalkit.classification.findings import cut_quote_unless_identifying
from evalkit.classification.offline.second_opinion_types import lower_ascii
from evalkit.core.package_tables import load_package_table
from evalkit.documents.bundle import Page
from evalkit.documents.identity.file_persons import get_page_patient_identity

_QUOTATION = re.compile(r'["“][^"“”]{12,}["”]')
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
#: A text repeats itself if it has its sentences more than this many times on average, weighted by their words.
_MIN_REPETITIONS = 3
#: Shorter sentences, such as results of several specimens, may repeat.
_MIN_SENTENCE_WORDS = 3
#: What is left to fill in or to choose, as group: {size}, ***, [none/left], [ ], ____. Not boxes beside a ticked one.
_BLANK = re.compile(
    r"^.*\[[xX]\].*$|(\{[^{}\n]{1,60}\}|\*{3}|\[(?!\*\*)[^\[\]\n]{0,60}[/|][^\[\]\n]{0,60}\]|\[ ?\]|_{3,})",
    re.MULTILINE,
)
#: A text is unfilled if it has this many blanks, and one for each so many words.
_MIN_BLANKS, _WORDS_FOR_A_BLANK = 10, 15


class TextGenre(NamedTuple):
    """Row of ``text_genres.toml``: a genre that is no patient's record."""

    description: str
    """End of the sentence "The text …" about a text of the genre."""
    min_matches: int
    within_characters: int
    patterns: tuple[re.Pattern[str], ...]
    is_about_many: bool


class GenreMatch(NamedTuple):
    """Genre of some pages, with the page and the passage that prove it."""

    description: str
    page: Page
    quote: str | None
    """None if the passage would identify the patient."""


@cache
def load_text_genres() -> tuple[TextGenre, ...]:
    """Load ``text_genres.toml``; cached."""
    return tuple(
        TextGenre(
            row["sign"],
            row["min_matches"],
            row.get("within_characters", sys.maxsize),
            tuple(re.compile(expression, re.MULTILINE) for expression in row["expressions"]),
            row.get("is_about_many", False),
        )
        for row in load_package_table("evalkit.classification.offline", "text_genres.toml")["genre"]
    )


def find_text_genre(pages: Sequence[Page]) -> GenreMatch | None:
    """Find a genre by which these pages are no patient's record; None if none fits."""
    # positions stay equal
    own_texts = [_QUOTATION.sub(lambda quotation: " " * len(quotation[0]), lower_ascii(page.text)) for page in pages]
    names_patient = any(map(get_page_patient_identity, pages))
    for genre in load_text_genres():
        if genre.is_about_many and names_patient:
            continue
        matches = list(_iter_first_matches(genre, pages, own_texts))
        if len(matches) >= genre.min_matches:
            return _quote_match(genre.description, *matches[0])
    blanks = [(page, match) for page in pages for match in _BLANK.finditer(page.text) if match[1]]
    words = [word for page in pages for word in page.text.split()]
    if len(blanks) >= max(_MIN_BLANKS, len(words) / _WORDS_FOR_A_BLANK):
        return _quote_match("is a form that was hardly filled in", *blanks[0])
    return GenreMatch("repeats the same sentences", pages[0], None) if _is_repetitive(" ".join(words)) else None


def _quote_match(description: str, page: Page, match: re.Match[str]) -> GenreMatch:
    return GenreMatch(description, page, cut_quote_unless_identifying(page, page.text, *match.span()))


def _iter_first_matches(
    genre: TextGenre, pages: Sequence[Page], texts: Sequence[str]
) -> Iterator[tuple[Page, re.Match[str]]]:
    """Yield the first match of each of a genre's patterns, with its page."""
    ends, characters_left = [], genre.within_characters
    for text in texts:
        ends.append(min(len(text), characters_left))
        characters_left -= ends[-1]
    for pattern in genre.patterns:
        for page, text, end in zip(pages, texts, ends, strict=True):
            if match := pattern.search(text, 0, end):
                yield page, match
                break


def _is_repetitive(text: str) -> bool:
    """Return True if a text has its sentences several times each, on average."""
    sentences = (tuple(sentence.casefold().split()) for sentence in _SENTENCE_END.split(text))
    counts = Counter(words for words in sentences if len(words) >= _MIN_SENTENCE_WORDS)
    return sum(map(len, counts)) * _MIN_REPETITIONS < sum(len(words) * count for words, count in counts.items())
