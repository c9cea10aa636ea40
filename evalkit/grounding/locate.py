"""Search for a quote in a document, and a verdict on its agreement.

A quote passes if its canonical form is found as whole words, or if it differs from the most similar passage only by
noise. A quote never passes by a similarity score alone, because a score cannot tell a misprint from a changed digit.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, pairwise, starmap

from rapidfuzz import fuzz

from evalkit.documents.bundle import DocumentBundle, Page, PageStatus
from evalkit.documents.search import DoubtfulWord, find_boxes_of_text_span, find_doubtful_words
from evalkit.grounding.critical_terms import PATTERNS, DifferenceKind, load_terms
from evalkit.grounding.difference import (
    QuoteDifference,
    classify_words,
    compare_quote_with_passage,
    has_content_words,
)
from evalkit.grounding.normalise import DASHES, CanonicalText, build_canonical_text, canonicalise
from evalkit.grounding.omitted_context import find_omitted_context
from evalkit.grounding.vocabulary import DocumentVocabulary
from evalkit.issue import PageBox, QuoteVerdict

#: A passage is compared word by word only if it is at least this similar to the quote (rapidfuzz partial ratio,
#: 0..100).
MIN_SIMILARITY = 60.0
#: If a passage has a smaller share (0..1) of the quote's words, the quote does not come from this passage.
_MIN_MATCHED_SHARE = 0.5
#: Characters before and after the aligned passage that are compared, too: if the quote omits words, the passage is
#: longer than the quote.
_MARGIN_CHARACTERS = 16
#: Longer quotes (characters) are searched exactly but not by similarity, so that a model cannot make a search
#: expensive.
_MAX_COMPARED_CHARACTERS = 1_000
#: A quote is aligned with a page only if the page has at least this share (0..1) of the quote's longer words; misprints
#: may spoil the others.
_MIN_SHARED_LONG_WORDS = 0.3
#: For quotes with fewer longer words, the share is not used, because it means nothing.
_MIN_LONG_WORDS = 4
#: Replaces each character that another part of the quote has used; it is no letter, so that no word is found there.
_QUOTED_FILLER = "\u2591"
#: Verdicts from the worst to the best: of a quote with omissions, the worst part's verdict counts.
_VERDICTS_BY_WEIGHT = (
    QuoteVerdict.ABSENT, QuoteVerdict.ALTERED, QuoteVerdict.UNCERTAIN, QuoteVerdict.WRONG_PAGE, QuoteVerdict.NOISY, QuoteVerdict.VERBATIM,
)  # fmt: skip
#: The most differences that are listed in ``difference_text``; nobody would read more.
_MAX_SHOWN_DIFFERENCES = 3


@dataclass(frozen=True)
class QuoteLocation:
    """Verdict on a quote, with its place in the document and the differences."""

    verdict: QuoteVerdict
    page_number: int | None = None
    """Page on which the quote, or the most similar passage, begins; None if the quote is ABSENT or the page could not
    be read."""
    start: int = 0
    """First character in the page's ``Page.text``; ``end`` is exclusive."""
    end: int = 0
    page_spans: tuple[tuple[Page, int, int], ...] = field(default=(), repr=False)
    """Pages of the quote, each with start and end in its ``Page.text``; several if the quote continues on the next
    page or has several parts."""
    similarity: float = 100.0
    """Similarity of quote and passage, 0..100; 100 if their canonical forms are equal."""
    difference_text: str | None = None
    """Sentence about the differences between quote and document; None without differences."""
    difference: QuoteDifference | None = None
    """First difference in words or signs; None if there is none."""
    closest_page: int | None = None
    """For an ABSENT quote: number of the page with the most similar passage; None without one."""
    is_seen_only: bool = False
    """True if a model read the quote in a page's picture, and no page's text has it."""
    doubtful_words: tuple[DoubtfulWord, ...] = field(default=(), repr=False)
    """Numbers, units, signs, genes and codes of the quote whose reading by OCR is in doubt."""

    @property
    def boxes(self) -> tuple[PageBox, ...]:
        """Rectangles around the quote's words on its pages, one for each line."""
        return tuple(box for page_span in self.page_spans for box in find_boxes_of_text_span(*page_span))

    @property
    def is_found(self) -> bool:
        """True if the quote is on the claimed page without a significant difference."""
        return self.verdict in (QuoteVerdict.VERBATIM, QuoteVerdict.NOISY)


class QuoteLocator:
    """Search for quotes in one document, with a verdict on each quote."""

    def __init__(self, bundle: DocumentBundle) -> None:
        self._bundle = bundle

    @cached_property
    def _vocabulary(self) -> DocumentVocabulary:
        return DocumentVocabulary([page.text for page in self._bundle.pages])

    @cached_property
    def _passages(self) -> list[_PagePassage]:
        return [_PagePassage.from_page(page) for page in self._bundle.pages]

    def locate(self, quote: str, page_number: int) -> QuoteLocation:
        """Locate a quote that is claimed to be on page ``page_number``, with a verdict.

        Pages count from 1; the page need not exist. A quote without letters and digits is ABSENT. A quote with only
        articles and the like is UNCERTAIN if it is found. A quote with omissions (dots) is located part by part, and the
        worst part's verdict counts. A quote with a number, unit, sign, gene or code that OCR may have misread is
        UNCERTAIN, whether it has the text's reading or the other one.
        """
        location = self._locate_in_text(quote, page_number)
        if location.is_found:
            return _mark_uncertain_if_misread(location, quote)
        if location.verdict is not QuoteVerdict.WRONG_PAGE:
            text_quote = self._replace_second_readings(quote, location.page_number or page_number)
            text_location = self._locate_in_text(text_quote, page_number) if text_quote != quote else location
            if text_location.is_found:
                text_location = _mark_uncertain_if_misread(text_location, quote)
                return text_location if text_location.doubtful_words else location
        return location

    def locate_seen(self, quote: str, page_number: int, pictured_pages: Collection[int]) -> QuoteLocation:
        """Locate a quote that a model read in a page's image, with a verdict.

        Text that has the quote makes it NOISY. On one of ``pictured_pages``, whose pictures the model had and whose text
        may lack words, it is UNCERTAIN if no text has it, or only the label of a box that the quote ticks. Everything
        else as for ``locate``: a picture excuses no other difference from what is printed.
        """
        location = self.locate(quote, page_number)
        if location.is_found:
            return replace(location, verdict=QuoteVerdict.NOISY)
        if page_number not in pictured_pages or not PATTERNS["letter_or_digit"].search(quote):
            return location
        if location.verdict is QuoteVerdict.ABSENT or location.page_number is None:
            return QuoteLocation(QuoteVerdict.UNCERTAIN, similarity=0.0, is_seen_only=True)
        box = PATTERNS["box_at_start"].match(quote)
        label_location = self.locate(quote[box.end() :], page_number) if box else location
        if label_location.is_found and label_location.page_number:
            text_before = self._bundle.page(label_location.page_number).text[: label_location.start]
            if not PATTERNS["box_at_end"].search(text_before):  # a box that the text has is printed
                return replace(label_location, verdict=QuoteVerdict.UNCERTAIN, is_seen_only=True)
        return location

    def _replace_second_readings(self, quote: str, page_number: int) -> str:
        """Replace readings of the second OCR engine by those of the page's text."""
        passage = self._get_passage(page_number)
        for word in find_critical_doubtful_words(passage.first_page, 0, len(passage.text)) if passage else ():
            if word.second_reading:
                pattern = rf"(?<![\w.,]){re.escape(word.second_reading)}(?!\w|[.,]\w)"
                quote = re.sub(pattern, lambda _, reading=word.reading: reading, quote)  # type: ignore[misc]
        return quote

    def _locate_in_text(self, quote: str, page_number: int) -> QuoteLocation:
        location = self._locate_whole(quote, page_number)
        parts = [part for part in PATTERNS["ellipsis"].split(quote) if PATTERNS["letter_or_digit"].search(part)]
        if location.is_found or len(parts) < 2:
            return location
        return self._locate_parts(parts, page_number)

    def _locate_parts(self, parts: Sequence[str], page_number: int) -> QuoteLocation:
        """Locate the parts of a quote with omissions, in order, on the page.

        Each part is searched behind the part before; a part that is not found there, in the whole document.
        """
        passage = self._get_passage(page_number)
        locations: list[QuoteLocation] = []
        for previous_part, part, next_part in zip(("", *parts), parts, (*parts[1:], ""), strict=False):
            location = passage and passage.find_part(part, next_part)
            if passage and location:
                locations.append(_mark_uncertain_if_sentences_joined(previous_part, part, passage, location))
                passage = passage.without_text_between(0, location.end)
            else:
                locations.append(self._locate_whole(part, page_number))
        worst = min(locations, key=lambda location: _VERDICTS_BY_WEIGHT.index(location.verdict))
        if not worst.is_found:
            return worst
        in_order = all(left.end <= right.start for left, right in pairwise(locations))
        return replace(
            locations[0],
            verdict=QuoteVerdict.NOISY if in_order else QuoteVerdict.UNCERTAIN,
            end=locations[-1].end if in_order else locations[0].end,
            page_spans=tuple(page_span for location in locations for page_span in location.page_spans),
            difference_text=None if in_order else "the parts of the quote are in another order there",
        )

    def _get_passage(self, page_number: int) -> _PagePassage | None:
        return self._passages[page_number - 1] if 1 <= page_number <= len(self._passages) else None

    def _locate_whole(self, quote: str, page_number: int) -> QuoteLocation:
        canonical_quote = canonicalise(quote)
        if not PATTERNS["letter_or_digit"].search(canonical_quote):
            return QuoteLocation(QuoteVerdict.ABSENT, similarity=0.0)
        location = self._locate_canonical(canonical_quote, quote, page_number)
        if location.is_found or (stripped_quote := _strip_outer_punctuation(quote)) == quote.strip():
            return location
        stripped_location = self._locate_canonical(canonicalise(stripped_quote), stripped_quote, page_number)
        return (
            replace(stripped_location, verdict=QuoteVerdict.NOISY) if stripped_location.is_found else stripped_location
        )

    def _locate_canonical(self, canonical_quote: str, quote: str, page_number: int) -> QuoteLocation:
        claimed_passage = self._get_passage(page_number)
        nearby_passages = [claimed_passage] if claimed_passage else []
        if (location := self._find_exact(canonical_quote, quote, nearby_passages)) and location.is_found:
            return location
        nearby_passages += self._join_with_neighbour_pages(page_number)
        location = location or self._find_exact(canonical_quote, quote, nearby_passages[1:])
        if location and location.is_found:
            return location
        other_passages = sorted(
            (passage for passage in self._passages if passage is not claimed_passage),
            key=lambda passage: (abs(passage.first_page.page_num - page_number), passage.first_page.page_num),
        )
        if (other_location := self._find_exact(canonical_quote, quote, other_passages)) and other_location.is_found:
            return replace(other_location, verdict=QuoteVerdict.WRONG_PAGE)
        if location or other_location:  # the words are there, but their context reverses the meaning
            return location or other_location  # type: ignore[return-value]
        if claimed_passage and not claimed_passage.first_page.status.is_readable:
            return QuoteLocation(QuoteVerdict.UNCERTAIN, similarity=0.0)
        return self._find_most_similar(canonical_quote, quote, nearby_passages, other_passages)

    def has_quote(self, quote: str, page_number: int) -> bool:
        """Return True if the page has the quote's words; context is not considered."""
        canonical_quote = canonicalise(quote)
        passage = self._get_passage(page_number) if canonical_quote else None
        return passage is not None and any(find_whole_word_spans(canonical_quote, passage.text))

    def _join_with_neighbour_pages(self, page_number: int) -> list[_PagePassage]:
        pages = self._bundle.pages
        return [
            _PagePassage.from_two_pages(pages[first_page_number - 1], pages[first_page_number])
            for first_page_number in (page_number, page_number - 1)
            if 1 <= first_page_number < len(pages)
        ]

    @staticmethod
    def _find_exact(canonical_quote: str, quote: str, passages: Iterable[_PagePassage]) -> QuoteLocation | None:
        """Return the first exact match whose meaning its context does not change.

        Without such a match, the first match, which has the verdict of its context; None without a match.
        """
        reversed_location: QuoteLocation | None = None
        for passage in passages:
            if location := passage.find_exact(canonical_quote, quote):
                if location.is_found:
                    return location
                reversed_location = reversed_location or location
        return reversed_location

    def _find_most_similar(
        self,
        canonical_quote: str,
        quote: str,
        nearby_passages: Sequence[_PagePassage],
        other_passages: Sequence[_PagePassage],
    ) -> QuoteLocation:
        """Return the most similar passage, with its differences from the quote.

        A passage that differs only by noise is returned at once. ABSENT if no passage is similar enough.
        """
        best_location: QuoteLocation | None = None
        if len(canonical_quote) > _MAX_COMPARED_CHARACTERS:
            return QuoteLocation(QuoteVerdict.ABSENT, similarity=0.0)
        long_words = {*PATTERNS["long_word"].findall(quote.casefold())}
        min_shared_count = _MIN_SHARED_LONG_WORDS * len(long_words) if len(long_words) >= _MIN_LONG_WORDS else 0
        for passage in (*nearby_passages, *other_passages):
            folded_text = passage.text.casefold()  # searching it is faster than splitting it into words
            is_related = sum(word in folded_text for word in long_words) >= min_shared_count
            min_similarity = max(MIN_SIMILARITY, best_location.similarity + 0.01 if best_location else 0)
            location = self._align_quote(canonical_quote, quote, passage, min_similarity) if is_related else None
            if location and location.verdict is QuoteVerdict.NOISY:
                return location if passage in nearby_passages else replace(location, verdict=QuoteVerdict.WRONG_PAGE)
            best_location = location or best_location
        return best_location or QuoteLocation(QuoteVerdict.ABSENT, similarity=0.0)

    def _align_quote(
        self, canonical_quote: str, quote: str, passage: _PagePassage, min_similarity: float
    ) -> QuoteLocation | None:
        canonical_form = build_canonical_text(passage.text)
        if len(canonical_form.text) >= len(canonical_quote):
            alignment = fuzz.partial_ratio_alignment(canonical_quote, canonical_form.text, score_cutoff=min_similarity)
            if not alignment or alignment.dest_end == alignment.dest_start:
                return None
            similarity, span = (
                alignment.score,
                canonical_form.get_original_span(alignment.dest_start, alignment.dest_end),
            )
        else:  # partial_ratio would look for the page inside the quote
            similarity, span = fuzz.ratio(canonical_quote, canonical_form.text), (0, len(passage.text))
            if similarity < min_similarity:
                return None
        span = widen_to_whole_words(passage.text, *span)
        if not passage.is_span_unique_to_passage(span):
            return None
        margin = _MARGIN_CHARACTERS + (span[1] - span[0]) // 8
        text = passage.text
        wide_span = widen_to_whole_words(text, max(span[0] - margin, 0), min(span[1] + margin, len(text)))
        comparison = compare_quote_with_passage(
            quote,
            text[wide_span[0] : span[0]],
            text[slice(*span)],
            text[span[1] : wide_span[1]],
            is_ocr_text=passage.first_page.status is PageStatus.OCR,
            is_known_word=self._vocabulary,
        )
        if comparison.matched_share < _MIN_MATCHED_SHARE:
            return passage.create_location(QuoteVerdict.ABSENT, span, similarity=similarity)
        differences = comparison.differences
        if (
            comparison.compared_span
        ):  # the aligned span has the quote's length, but the passage may be shorter or longer
            exact_span = widen_to_whole_words(
                text, wide_span[0] + comparison.compared_span[0], wide_span[0] + comparison.compared_span[1]
            )
            span = exact_span if passage.is_span_unique_to_passage(exact_span) else span
        if not differences and (omission := find_omitted_context(passage.text, *span)):
            differences = (omission,)
        if not differences:
            return passage.create_location(QuoteVerdict.NOISY, span, similarity=similarity)
        return passage.create_location(
            QuoteVerdict.UNCERTAIN
            if all(difference.is_doubtful for difference in differences)
            else QuoteVerdict.ALTERED,
            span,
            similarity=similarity,
            difference_text="; ".join(map(str, differences[:_MAX_SHOWN_DIFFERENCES])),
            difference=differences[0],
        )


def find_critical_doubtful_words(page: Page, start: int, end: int) -> Iterator[DoubtfulWord]:
    """Find doubtful words in ``page.text[start:end]`` that change a meaning.

    These are numbers, units, signs, genes and codes, in one of the readings that differ.
    """
    for text_reading, second, boxes in find_doubtful_words(page, start, end):
        word = DoubtfulWord(_strip_outer_punctuation(text_reading), _strip_outer_punctuation(second), boxes)
        is_same = canonicalise(word.reading) == canonicalise(word.second_reading)
        if not is_same and (classify_words(word.reading) or classify_words(word.second_reading)):
            yield word


def _mark_uncertain_if_misread(location: QuoteLocation, quote: str) -> QuoteLocation:
    """Return the location, UNCERTAIN if a critical word of the quote may be misread.

    ``quote`` tells which reading it has.
    """
    doubtful_words = tuple(chain.from_iterable(starmap(find_critical_doubtful_words, location.page_spans)))
    if not doubtful_words:
        return location
    readings = [
        (word.second_reading, word.reading)
        if any(find_whole_word_spans(canonicalise(word.second_reading), quote))
        and not any(find_whole_word_spans(canonicalise(word.reading), quote))
        else (word.reading, word.second_reading)
        for word in doubtful_words
    ]
    quote_words, other_words = (" … ".join(filter(None, column)) for column in zip(*readings, strict=True))
    kind = next(filter(None, map(classify_words, (quote_words, other_words))), DifferenceKind.WORD)
    return replace(
        location,
        verdict=QuoteVerdict.UNCERTAIN,
        difference_text=f"the scan was read as “{quote_words}” and as “{other_words}”"
        if other_words
        else f"“{quote_words}” is hard to read in the scan",
        difference=QuoteDifference(kind, quote_words, other_words, is_doubtful=True),
        doubtful_words=doubtful_words,
    )


def _mark_uncertain_if_sentences_joined(
    previous_part: str, part: str, passage: _PagePassage, location: QuoteLocation
) -> QuoteLocation:
    """Return the location, UNCERTAIN if the dots before the part join two sentences.

    For example, "the biopsy shows … melanoma" may be taken from two sentences.
    """
    if location.verdict is QuoteVerdict.UNCERTAIN and not has_content_words(part):
        location = replace(location, verdict=QuoteVerdict.NOISY, difference_text=None, difference=None)
    gap = passage.text[: location.start].rpartition(_QUOTED_FILLER)[2] if previous_part else ""
    is_unfinished = not (load_terms("stop") | load_terms("unfinished")).isdisjoint(
        previous_part.casefold().split()[-1:]
    )
    if location.is_found and (is_unfinished or len(part.split()) == 1) and PATTERNS["sentence_break"].search(gap):
        return replace(
            location,
            verdict=QuoteVerdict.UNCERTAIN,
            difference_text="the dots join words of different sentences",
        )
    return location


def _strip_outer_punctuation(quote: str) -> str:
    leading = PATTERNS["leading_punctuation"].match(quote)
    return PATTERNS["trailing_punctuation"].sub("", quote[leading.end() if leading else 0 :])


@dataclass(frozen=True, eq=False)
class _PagePassage:
    """A text to search: that of a page, or of two pages that follow each other.

    Of two pages, headers and footers are left out.
    """

    first_page: Page
    """Page on which the text begins."""
    text: str
    passage_to_page_spans: tuple[tuple[int, int, int, Page], ...]
    """Parts of ``text``: start and end in ``text``, start in ``Page.text``, and the page."""
    second_page_start: int | None = None
    """Index in ``text`` at which the second page begins; None for a single page."""

    @classmethod
    def from_page(cls, page: Page) -> _PagePassage:
        return cls(page, page.text, ((0, len(page.text), 0, page),))

    @classmethod
    def from_two_pages(cls, first_page: Page, second_page: Page) -> _PagePassage:
        page_spans: list[tuple[int, int, int, Page]] = []
        text, second_page_start = "", 0
        for page in (first_page, second_page):
            second_page_start = len(text)
            for start, end in _find_body_spans(page):
                text += "\n" if text else ""
                page_spans.append((len(text), len(text) + end - start, start, page))
                text += page.text[start:end]
        return cls(first_page, text, tuple(page_spans), second_page_start)

    def without_text_between(self, start: int, end: int) -> _PagePassage:
        """Return a copy in which ``text[start:end]`` is blanked.

        It is blanked because another part of the quote was found there.
        """
        return replace(self, text=self.text[:start] + _QUOTED_FILLER * (end - start) + self.text[end:])

    def find_part(self, part: str, next_part: str) -> QuoteLocation | None:
        """Find a part of a quote with omissions; None if the part is not found.

        Text that the next part of the quote has does not count as context that this part omits.
        """
        canonical_part = canonicalise(part)
        location = self.find_exact(canonical_part, part)
        if not location or location.is_found or not next_part:
            return location
        rest = self.without_text_between(0, location.end).find_exact(canonicalise(next_part), next_part)
        return self.without_text_between(rest.start, rest.end).find_exact(canonical_part, part) if rest else location

    def is_span_unique_to_passage(self, span: tuple[int, int]) -> bool:
        """Return True if only this passage has the span.

        In the text of two pages, only a span that crosses from the first to the second page counts.
        """
        return self.second_page_start is None or span[0] < self.second_page_start < span[1]

    def find_exact(self, canonical_quote: str, quote: str) -> QuoteLocation | None:
        """Return the best match of the quote's canonical form; None without a match."""
        reversed_location: QuoteLocation | None = None
        matching_spans: list[tuple[int, int]] = []
        for span in filter(self.is_span_unique_to_passage, find_whole_word_spans(canonical_quote, self.text)):
            if not has_content_words(quote):
                return self.create_location(
                    QuoteVerdict.UNCERTAIN, span, difference_text="the quote has only words that appear everywhere"
                )
            if omission := find_omitted_context(self.text, *span):
                reversed_location = reversed_location or self.create_location(
                    QuoteVerdict.UNCERTAIN if omission.is_doubtful else QuoteVerdict.ALTERED,
                    span,
                    difference_text=str(omission),
                    difference=omission,
                )
            elif (
                self.second_page_start is None
                and self.first_page.status.is_readable  # else a model copied the quote from the picture, not from the text
                and self.text[slice(*span)] == quote.strip()
            ):
                return self.create_location(QuoteVerdict.VERBATIM, span)
            else:
                matching_spans.append(span)
        for span in matching_spans:
            if _has_same_word_divisions(self.text[slice(*span)], quote):
                return self.create_location(QuoteVerdict.NOISY, span)
        if matching_spans:
            return self.create_location(
                QuoteVerdict.UNCERTAIN, matching_spans[0], difference_text="the letters are divided into other words"
            )
        return reversed_location

    def create_location(
        self,
        verdict: QuoteVerdict,
        span: tuple[int, int],
        similarity: float = 100.0,
        difference_text: str | None = None,
        difference: QuoteDifference | None = None,
    ) -> QuoteLocation:
        """Create a QuoteLocation with this verdict for ``span`` of ``text``.

        For ABSENT, only the page is kept, as ``closest_page``.
        """
        page_spans: tuple[tuple[Page, int, int], ...] = ((self.first_page, *span),)
        page, start, end = page_spans[0]
        if self.second_page_start is not None:
            page_spans = tuple(
                (page, max(span[0], start) - start + page_offset, min(span[1], end) - start + page_offset)
                for start, end, page_offset, page in self.passage_to_page_spans
                if start < span[1] and end > span[0]
            )
            page, start, end = page_spans[0]
            end = max(page_span[2] for page_span in page_spans if page_span[0] is page)
        if verdict is QuoteVerdict.ABSENT:
            return QuoteLocation(verdict, similarity=similarity, closest_page=page.page_num)
        return QuoteLocation(
            verdict,
            page.page_num,
            start,
            end,
            page_spans=page_spans,
            similarity=similarity,
            difference_text=difference_text,
            difference=difference,
        )


def _find_body_spans(page: Page) -> list[tuple[int, int]]:
    spans, position = [], 0
    for block in page.visible_blocks:
        if not block.furniture:
            spans.append((position, position + len(block.text)))
        position += len(block.text) + 1
    return spans


def find_whole_word_spans(canonical_phrase: str, text: str) -> Iterator[tuple[int, int]]:
    """Find a phrase in a text as whole words; yield each match's start and end.

    ``canonical_phrase`` is in canonical form; the indices are those of the original ``text``.
    """
    canonical_form = build_canonical_text(text)
    match_start = canonical_form.text.find(canonical_phrase)
    while match_start >= 0:
        match_end = match_start + len(canonical_phrase)
        if not _is_inside_word(canonical_form, text, match_start) and not _is_inside_word(
            canonical_form, text, match_end
        ):
            yield canonical_form.get_original_span(match_start, match_end)
        match_start = canonical_form.text.find(canonical_phrase, match_start + 1)


def _has_same_word_divisions(passage_text: str, quote: str) -> bool:
    """Return True if two texts have the same spaces: "a typical" is not "atypical".

    The texts have the same canonical form. A line break, tab or hyphen in one text may be missing in the other.
    """
    if passage_text.casefold().split() == quote.casefold().split():
        return True
    divisions, loose_divisions = zip(
        *(_find_space_and_loose_divisions(text) for text in (passage_text, quote)), strict=True
    )
    return not (divisions[0] ^ divisions[1]) - loose_divisions[0] - loose_divisions[1]


def _find_space_and_loose_divisions(text: str) -> tuple[set[int], set[int]]:
    """Return the places where a text is divided, as indices into its canonical form.

    The first set has all divisions by white space or hyphen, the second only those by line break, tab or hyphen.
    """
    canonical_form = build_canonical_text(text)
    space_divisions, loose_divisions = set(), set()
    for index in range(1, len(canonical_form.text)):
        gap = text[canonical_form.original_indices[index - 1] + 1 : canonical_form.original_indices[index]]
        if not _LOOSE_DIVISIONS.isdisjoint(gap):
            loose_divisions.add(index)
        elif (
            any(map(str.isspace, gap))
            and canonical_form.text[index - 1].isalpha()
            and canonical_form.text[index].isalpha()
        ):
            space_divisions.add(index)
    return space_divisions | loose_divisions, loose_divisions


_LOOSE_DIVISIONS = frozenset("\n\t" + DASHES)


def widen_to_whole_words(text: str, start: int, end: int) -> tuple[int, int]:
    """Extend a span until it begins and ends with whole words and numbers.

    Only then is a text that was cut out of ``text`` found there again.
    """
    canonical_form = build_canonical_text(text)
    canonical_start, canonical_end = (
        bisect_left(canonical_form.original_indices, start),
        bisect_left(canonical_form.original_indices, end),
    )
    if canonical_start == canonical_end:
        return start, end
    while _is_inside_word(canonical_form, text, canonical_start):
        canonical_start -= 1
    while _is_inside_word(canonical_form, text, canonical_end):
        canonical_end += 1
    return canonical_form.get_original_span(canonical_start, canonical_end)


def _is_inside_word(canonical_form: CanonicalText, text: str, index: int) -> bool:  # noqa: PLR0911 - each return is one reason
    """Return True if a cut before character ``index`` splits a word or number.

    For example (cut at the bar): 1|1.2, 4|.2, BRCA|1; also a cut inside ½, which has several canonical characters.
    """
    if not 0 < index < len(canonical_form.text):
        return False
    left_origin, right_origin = canonical_form.original_indices[index - 1], canonical_form.original_indices[index]
    if left_origin == right_origin:
        return True
    left_character, right_character = canonical_form.text[index - 1], canonical_form.text[index]
    if right_origin - left_origin > 1 and (
        text[right_origin - 1].isspace() or any(map(str.isspace, text[left_origin + 1 : right_origin]))
    ):
        # "< 5" is one amount despite its space
        return (
            right_character.isdigit()
            and canonical_form.text[max(index - 2, 0) : index].rstrip("=")[-1:] in _COMPARISON_SYMBOLS
        )
    if (left_character.isalnum() and right_character.isalnum()) or (
        text[left_origin].isalnum() and text[right_origin].isalnum()
    ):  # also 10|³, which is 10^3
        return True
    nearby_characters = canonical_form.text[max(index - 2, 0) : index + 2]
    if (
        right_character in _TRAILING_SYMBOLS
        and left_character.isalnum()
        and not (
            right_character == "-"
            and (text[left_origin].islower() or text[right_origin + 1 : right_origin + 2].isalnum())
        )
    ):
        return True  # 3|+, 5|%, A|-
    has_digits = index >= 2 and nearby_characters[0].isdigit(), nearby_characters[-1].isdigit()
    if left_character in _INNER_SYMBOLS:  # 4.|2, 3-|5, 0/|12, >|G
        is_number = right_character.isdigit() and (has_digits[0] or left_character in _NUMBER_PREFIX_SYMBOLS)
        return is_number or (left_character in "_^>" and right_character.isalnum())
    return (right_character in _INNER_SYMBOLS and left_character.isdigit() and has_digits[1]) or (
        right_character in "_^>" and left_character.isalnum()
    )


#: Signs that occur inside numbers and gene variants.
_INNER_SYMBOLS = ".,-/:_^>+*=<≤≥±~≈≠"
#: Comparison signs, which belong to the number behind them.
_COMPARISON_SYMBOLS = frozenset("<>±~≈≠≪≫≲")
_NUMBER_PREFIX_SYMBOLS = _COMPARISON_SYMBOLS | set("-+")
#: Signs that belong to the number or name before them.
_TRAILING_SYMBOLS = "+%‰°*^-"
