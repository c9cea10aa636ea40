"""Quotes altered in one place, in the ways defined in ``quote_faults.toml``.

This module shares neither code nor word lists with the verifier that compares quotes. An altered quote that appears in
the document itself is rejected.
"""

import random
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import regex

from evalkit.documents.bundle import DocumentBundle

_MIN_WORDS, _MAX_WORDS = 4, 40
_MIN_SPLICED_WORDS = 6
_CUT_KIND, _SPLICED_KIND = "negation-cut", "spliced"
_SENTENCE_END = regex.compile(r"(?<=[.!?;])\s+(?=[^a-z])|\n")


class QuotedPassage(NamedTuple):
    """Consecutive words of one page, and the page's number."""

    text: str
    page: int


class _Alteration(NamedTuple):
    """A pattern and the templates that may replace its match."""

    pattern: regex.Pattern[str]
    templates: Sequence[str]


@cache
def load_quote_faults() -> Mapping[str, Mapping[str, Any]]:
    """Load the kinds of quote alteration from ``quote_faults.toml``, in order."""
    return tomllib.loads((files("evalkit.evaluation.challenge") / "quote_faults.toml").read_text("utf-8"))


@cache
def _compile_alterations(kind: str) -> Sequence[_Alteration]:
    table = load_quote_faults()[kind]
    alterations = [
        _Alteration(regex.compile(pattern, regex.IGNORECASE), templates)
        for pattern, *templates in table.get("patterns", ())
    ]
    for row in table.get("words", ()):
        any_phrase = "|".join(map(regex.escape, sorted(row["phrases"], key=len, reverse=True)))
        pattern = rf"{row.get('before', '')}(?<!\w)(?:{any_phrase})(?![\w-]){row.get('after', '')}"
        alterations.append(_Alteration(regex.compile(pattern, regex.IGNORECASE), row["phrases"]))
    return alterations


def _remove_case_and_spaces(text: str) -> str:
    return "".join(text.casefold().split())


def _match_letter_case(replacement: str, replaced: str) -> str:
    if not replacement.islower():  # a symbol or a name keeps its letter case
        return replacement
    if len(replaced) > 3 and replaced.isupper():
        return replacement.upper()
    return replacement[:1].upper() + replacement[1:] if replaced[:1].isupper() else replacement


def _split_passages(text: str) -> Iterator[str]:
    """Yield a paragraph's sentences and the whole paragraph, if 4 to 40 words long."""
    for passage in dict.fromkeys((*_SENTENCE_END.split(text), text)):
        if _MIN_WORDS <= len(passage.split()) <= _MAX_WORDS:
            yield passage


class QuotableText:
    """Passages of a document that a reader can see, without headers and footers."""

    def __init__(self, bundle: DocumentBundle) -> None:
        self._passages = [
            QuotedPassage(passage, page.page_num)
            for page in bundle.pages
            for block in page.visible_blocks
            if not block.furniture
            for passage in _split_passages(block.text)
        ]
        # Hidden words are included, because an altered quote must appear nowhere in the file.
        self._whole_text = _remove_case_and_spaces(
            "".join(block.text for page in bundle.pages for block in page.blocks)
        )

    def list_longest_passages(self, first_page: int, last_page: int) -> list[QuotedPassage]:
        """List the passages from ``first_page`` to ``last_page``, longest first."""
        passages = [passage for passage in self._passages if first_page <= passage.page <= last_page]
        return sorted(passages, key=lambda passage: -len(passage.text))

    def draw_altered_quote(
        self, kind: str, first_page: int, last_page: int, random_source: random.Random
    ) -> QuotedPassage | None:
        """Draw a passage of these pages and alter it in one place.

        None if no passage allows this kind of alteration, or the altered text is too short or appears in the document.
        """
        passages = self.list_longest_passages(first_page, last_page)
        draw = _draw_passage_and_spliced_text if kind == _SPLICED_KIND else _draw_passage_and_altered_text
        if (drawn_pair := draw(kind, passages, random_source)) is None:
            return None
        passage, altered_text = drawn_pair
        # Words whose negation was cut off appear in the passage itself; they must not appear elsewhere in the document.
        searched_text = (
            self._whole_text.replace(_remove_case_and_spaces(passage.text), "")
            if kind == _CUT_KIND
            else self._whole_text
        )
        if len(altered_text.split()) < _MIN_WORDS - 1 or _remove_case_and_spaces(altered_text) in searched_text:
            return None
        return QuotedPassage(altered_text, passage.page)


def _draw_passage_and_altered_text(
    kind: str, passages: Sequence[QuotedPassage], random_source: random.Random
) -> tuple[QuotedPassage, str] | None:
    places = [
        (passage, match, alteration.templates)
        for passage in passages
        for alteration in _compile_alterations(kind)
        for match in alteration.pattern.finditer(passage.text)
    ]
    if not places:
        return None
    passage, match, templates = random_source.choice(places)
    other_templates = [template for template in templates if template.casefold() != match.group().casefold()]
    replacement = match.expand(random_source.choice(other_templates)).replace("#", str(random_source.randint(1, 9)))
    replacement = _match_letter_case(replacement, match.group())
    return passage, " ".join((passage.text[: match.start()] + replacement + passage.text[match.end() :]).split())


def _draw_passage_and_spliced_text(
    _kind: str, passages: Sequence[QuotedPassage], random_source: random.Random
) -> tuple[QuotedPassage, str] | None:
    """Join the first half of one passage to the second half of another passage."""
    long_passages = [passage for passage in passages if len(passage.text.split()) >= _MIN_SPLICED_WORDS]
    if len(long_passages) < 2:
        return None
    passage, other_passage = random_source.sample(long_passages, 2)
    first_words, second_words_by_first = passage.text.split(), other_passage.text.split()
    return passage, " ".join(
        first_words[: len(first_words) // 2] + second_words_by_first[len(second_words_by_first) // 2 :]
    )
