"""Where a quote stands in a document, if it stands there at all.

A quote passes if its canonical form is found as whole words, or if all that differs from the passage nearest to it is
noise. A score alone never passes anything: it cannot tell a misprint from a changed digit.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import itemgetter
from typing import NamedTuple

from rapidfuzz import fuzz

from evalkit.documents.bundle import DocumentBundle, Page, PageStatus, WordPosition
from evalkit.grounding.clause import left_out
from evalkit.grounding.difference import compare, says_something
from evalkit.grounding.normalise import Canonical, canonical, canonical_text
from evalkit.grounding.words import Vocabulary
from evalkit.issue import PageBox, QuoteVerdict

#: Similarity (rapidfuzz partial ratio, 0..100) from which a passage is worth comparing word by word.
FAINT = 60.0
#: The share of a quote's words that a passage must have, or the quote was not made from it.
_MOSTLY = 0.5
#: Characters beside the aligned passage that are compared too: where the quote leaves words out, the passage is longer.
_MARGIN = 16
#: Longer quotes (characters) are looked for as they are and not compared: the model that sends them would set the cost.
_LONGEST = 1_000
#: The share of a quote's longer words that a page must have to be worth aligning: misprints spoil a few.
_SHARED = 0.3
#: Of fewer longer words, the share says nothing.
_ENOUGH = 4
_LONG_WORD = re.compile(r"[^\W\d_]{5,}")
# What may stand around a quote and is not on the page there. A point or sign on a number is a part of it, and so is a
# sign behind a name: .5, -2, A-.
_LEADING = re.compile(r"(?:[\s,;:…*'\"()\[\]•▪●·∙“”‘’]|[.–—−-](?![.\d]))+")
_TRAILING = re.compile(r"(?:[\s.,;:…*'\"()\[\]•▪●·∙“”‘’]|(?<=\s)[–—−-])+\Z")
_SPOKEN = re.compile(r"[^\W_]")
#: So many differences are told; more would not be read.
_SHOWN = 3
_NOTHING_SAID = "the quote has only words that stand everywhere"
_DIVIDED = "the letters are divided into other words"


@dataclass(frozen=True)
class Located:
    """The place of a quote."""

    verdict: QuoteVerdict
    page: int | None = None
    """Where it, or the passage near it, begins; None where it is ABSENT or the page could not be read."""
    start: int = 0
    """Characters of ``Page.text``."""
    end: int = 0
    parts: tuple[tuple[Page, int, int], ...] = field(default=(), repr=False)
    """The pages it stands on, each with start and end there: several where it crosses from one to the next."""
    score: float = 100.0
    """Similarity 0..100; 100 where the canonical forms are equal."""
    difference: str | None = None
    """What differs from the document, in words."""
    nearest: int | None = None
    """Of an ABSENT quote: the page of the passage that is most like it, if any is."""

    @property
    def boxes(self) -> tuple[PageBox, ...]:
        """The rectangles around it, one per line."""
        return tuple(box for part in self.parts for box in boxes_of(*part))

    @property
    def is_found(self) -> bool:
        """Whether the quote stands where it was said to stand."""
        return self.verdict in (QuoteVerdict.VERBATIM, QuoteVerdict.NOISY)


class Locator:
    """Finds quotes in one document."""

    def __init__(self, bundle: DocumentBundle) -> None:
        self._bundle = bundle
        self._joined: dict[int, _Passage] = {}
        self._words: dict[str, frozenset[str]] = {}

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        return Vocabulary(page.text for page in self._bundle.pages)

    @cached_property
    def _passages(self) -> list[_Passage]:
        """One for each page."""
        return [_Passage.of(page) for page in self._bundle.pages]

    def locate(self, quote: str, page_number: int) -> Located:
        """The verdict on a quote that is claimed for a page (numbered from 1; it need not exist).

        An empty quote, or one of punctuation alone, is ABSENT; one of articles and the like, UNCERTAIN.
        """
        wanted = canonical_text(quote)
        if not _SPOKEN.search(wanted):
            return Located(QuoteVerdict.ABSENT, score=0.0)
        place = self._locate(wanted, quote, page_number)
        if place.is_found or (bare := _bare(quote)) == quote.strip():
            return place
        again = self._locate(canonical_text(bare), bare, page_number)
        return replace(again, verdict=QuoteVerdict.NOISY) if again.is_found else again

    def _locate(self, wanted: str, quote: str, page_number: int) -> Located:
        claimed = self._passages[page_number - 1] if 1 <= page_number <= len(self._passages) else None
        own = [claimed] if claimed else []
        if (place := self._exactly(wanted, quote, own)) and place.is_found:
            return place
        own += self._joins(page_number)
        place = place or self._exactly(wanted, quote, own[1:])
        if place and place.is_found:
            return place
        others = sorted(
            (passage for passage in self._passages if passage is not claimed),
            key=lambda passage: (abs(passage.page.page_num - page_number), passage.page.page_num),
        )
        if (elsewhere := self._exactly(wanted, quote, others)) and elsewhere.is_found:
            return replace(elsewhere, verdict=QuoteVerdict.WRONG_PAGE)
        if place or elsewhere:  # it stands there, but what stands beside it turns it
            return place or elsewhere  # type: ignore[return-value]
        if claimed and not claimed.page.status.is_readable:
            return Located(QuoteVerdict.UNCERTAIN, score=0.0)
        return self._nearest(wanted, quote, own, others)

    def has(self, quote: str, page_number: int) -> bool:
        """Whether the page has these words."""
        wanted = canonical_text(quote)
        exists = 1 <= page_number <= self._bundle.total_pages
        return exists and bool(wanted) and any(occurrences(wanted, self._bundle.page(page_number).text))

    def _joins(self, number: int) -> list[_Passage]:
        """The page run on into the next one, and the one before run on into it, without what is furniture."""
        return [self._join(first) for first in (number, number - 1) if 1 <= first < self._bundle.total_pages]

    def _join(self, first: int) -> _Passage:
        if first not in self._joined:
            self._joined[first] = _Passage.across(self._bundle.page(first), self._bundle.page(first + 1))
        return self._joined[first]

    @staticmethod
    def _exactly(wanted: str, quote: str, passages: Iterable[_Passage]) -> Located | None:
        """The first place where the quote stands and nothing turns it; failing that, the first where it stands."""
        turned: Located | None = None
        for passage in passages:
            if place := passage.exactly(wanted, quote):
                if place.is_found:
                    return place
                turned = turned or place
        return turned

    def _nearest(self, wanted: str, quote: str, own: Sequence[_Passage], others: Sequence[_Passage]) -> Located:
        """The place that is most like the quote, with what differs; ABSENT where too little is alike."""
        best: Located | None = None
        if len(wanted) > _LONGEST:
            return Located(QuoteVerdict.ABSENT, score=0.0)
        asked = _long_words(quote)
        for passage in (*own, *others):
            if len(asked) >= _ENOUGH and len(asked & self._long_words_of(passage)) < _SHARED * len(asked):
                continue
            place = self._aligned(wanted, quote, passage, at_least=max(FAINT, best.score + 0.01 if best else 0))
            if place is None:
                continue
            if place.verdict is QuoteVerdict.NOISY:
                return place if passage in own else replace(place, verdict=QuoteVerdict.WRONG_PAGE)
            best = place
        return best or Located(QuoteVerdict.ABSENT, score=0.0)

    def _long_words_of(self, passage: _Passage) -> frozenset[str]:
        if passage.text not in self._words:
            self._words[passage.text] = _long_words(passage.text)
        return self._words[passage.text]

    def _aligned(self, wanted: str, quote: str, passage: _Passage, at_least: float) -> Located | None:
        form = canonical(passage.text)
        if len(form.text) >= len(wanted):
            found = fuzz.partial_ratio_alignment(wanted, form.text, score_cutoff=at_least)
            if not found or found.dest_end == found.dest_start:
                return None
            score, span = found.score, form.span(found.dest_start, found.dest_end)
        else:  # the roles would swap: a page inside a quote is not a quote on a page
            score, span = fuzz.ratio(wanted, form.text), (0, len(passage.text))
            if score < at_least:
                return None
        span = whole_words(passage.text, *span)
        if not passage.holds(span):
            return None
        margin = _MARGIN + (span[1] - span[0]) // 8
        text = passage.text
        wide = whole_words(text, max(span[0] - margin, 0), min(span[1] + margin, len(text)))
        is_recognised = passage.page.status is PageStatus.OCR
        compared = compare(
            quote,
            text[wide[0] : span[0]],
            text[slice(*span)],
            text[span[1] : wide[1]],
            is_recognised=is_recognised,
            is_word=self._vocabulary,
        )
        if compared.matched < _MOSTLY:
            return passage.place(QuoteVerdict.ABSENT, span, score=score)
        differences = compared.differences
        if not differences and (lost := left_out(passage.text, *span)):
            differences = (lost,)
        if compared.span:  # a window as long as the quote is a little beside it where the passage is shorter or longer
            exact = whole_words(text, wide[0] + compared.span[0], wide[0] + compared.span[1])
            span = exact if passage.holds(exact) else span
        if not differences:
            return passage.place(QuoteVerdict.NOISY, span, score=score)
        verdict = QuoteVerdict.UNCERTAIN if all(one.is_doubtful for one in differences) else QuoteVerdict.ALTERED
        return passage.place(verdict, span, score=score, difference="; ".join(map(str, differences[:_SHOWN])))


def _bare(quote: str) -> str:
    """The quote without stops, dots, brackets and bullets around it."""
    start = _LEADING.match(quote)
    return _TRAILING.sub("", quote[start.end() if start else 0 :])


def _long_words(text: str) -> frozenset[str]:
    return frozenset(_LONG_WORD.findall(text.casefold()))


class _Passage(NamedTuple):
    """A text to look in: a page's, or the end of one and the beginning of the next."""

    page: Page
    """The page it begins on."""
    text: str
    parts: tuple[tuple[int, int, int, Page], ...]
    """Start and end in ``text``, start in ``Page.text``, the page."""
    seam: int | None = None
    """Where the second page begins in ``text``."""

    @classmethod
    def of(cls, page: Page) -> _Passage:
        return cls(page, page.text, ((0, len(page.text), 0, page),))

    @classmethod
    def across(cls, first: Page, second: Page) -> _Passage:
        """The body of two pages, from one to the other."""
        parts: list[tuple[int, int, int, Page]] = []
        text, seam = "", 0
        for page in (first, second):
            seam = len(text)
            for start, end in _body(page):
                text += "\n" if text else ""
                parts.append((len(text), len(text) + end - start, start, page))
                text += page.text[start:end]
        return cls(first, text, tuple(parts), seam)

    def holds(self, span: tuple[int, int]) -> bool:
        """Whether the span is this passage's: of two pages run together, only what crosses from one to the other."""
        return self.seam is None or span[0] < self.seam < span[1]

    def exactly(self, wanted: str, quote: str) -> Located | None:
        """The best of the places here where the quote's canonical form stands; None without one."""
        turned: Located | None = None
        whole: list[tuple[int, int]] = []
        for span in filter(self.holds, occurrences(wanted, self.text)):
            if not says_something(quote):
                return self.place(QuoteVerdict.UNCERTAIN, span, difference=_NOTHING_SAID)
            if lost := left_out(self.text, *span):
                verdict = QuoteVerdict.UNCERTAIN if lost.is_doubtful else QuoteVerdict.ALTERED
                turned = turned or self.place(verdict, span, difference=str(lost))
            elif self.seam is None and self.text[slice(*span)] == quote.strip():
                return self.place(QuoteVerdict.VERBATIM, span)
            else:
                whole.append(span)
        for span in whole:
            if _same_words(self.text[slice(*span)], quote):
                return self.place(QuoteVerdict.NOISY, span)
        if whole:
            return self.place(QuoteVerdict.UNCERTAIN, whole[0], difference=_DIVIDED)
        return turned

    def place(
        self, verdict: QuoteVerdict, span: tuple[int, int], score: float = 100.0, difference: str | None = None
    ) -> Located:
        """The verdict at ``span`` of this text."""
        parts: tuple[tuple[Page, int, int], ...] = ((self.page, *span),)
        page, start, end = parts[0]
        if self.seam is not None:
            parts = tuple(
                (page, max(span[0], start) - start + at, min(span[1], end) - start + at)
                for start, end, at, page in self.parts
                if start < span[1] and end > span[0]
            )
            page, start, end = parts[0]
            end = max(one[2] for one in parts if one[0] is page)
        if verdict is QuoteVerdict.ABSENT:
            return Located(verdict, score=score, nearest=page.page_num)
        return Located(verdict, page.page_num, start, end, parts=parts, score=score, difference=difference)


def _body(page: Page) -> list[tuple[int, int]]:
    """Start and end in ``Page.text`` of each paragraph that is not furniture; the text is the paragraphs, one break apart."""
    spans, at = [], 0
    for block in page.visible_blocks:
        if not block.furniture:
            spans.append((at, at + len(block.text)))
        at += len(block.text) + 1
    return spans


def occurrences(wanted: str, text: str) -> Iterator[tuple[int, int]]:
    """The original characters of every whole-word occurrence."""
    form = canonical(text)
    at = form.text.find(wanted)
    while at >= 0:
        end = at + len(wanted)
        if not _splits(form, text, at) and not _splits(form, text, end):
            yield form.span(at, end)
        at = form.text.find(wanted, at + 1)


def _same_words(found: str, quote: str) -> bool:
    """Whether two texts of one canonical form are divided into the same words: "a typical" is not "atypical".

    Where one of them breaks a line or cell, or joins with a hyphen, a division may be missing in the other.
    """
    if found.casefold().split() == quote.casefold().split():
        return True
    divided, loosely = zip(*(_divisions(text) for text in (found, quote)), strict=True)
    return not (divided[0] ^ divided[1]) - loosely[0] - loosely[1]


def _divisions(text: str) -> tuple[set[int], set[int]]:
    """Where letters are divided by whitespace, and where by a line break, tab or hyphen; in canonical characters."""
    form = canonical(text)
    by_space, loosely = set(), set()
    for at in range(1, len(form.text)):
        between = text[form.origin[at - 1] + 1 : form.origin[at]]
        if "\n" in between or "\t" in between or "-" in between or "\u2010" in between:
            loosely.add(at)
        elif any(map(str.isspace, between)) and form.text[at - 1].isalpha() and form.text[at].isalpha():
            by_space.add(at)
    return by_space | loosely, loosely


def whole_words(text: str, start: int, end: int) -> tuple[int, int]:
    """The span widened until it splits no word or number: what is cut out of a text must be found in it again."""
    form = canonical(text)
    first, last = bisect_left(form.origin, start), bisect_left(form.origin, end)
    if first == last:
        return start, end
    while _splits(form, text, first):
        first -= 1
    while _splits(form, text, last):
        last += 1
    return form.span(first, last)


def _splits(form: Canonical, text: str, at: int) -> bool:  # noqa: PLR0911 - each return is one way to be one
    """Whether a cut before the canonical character ``at`` goes through a word or number: 1|1.2, 4|.2, BRCA|1, ½."""
    if not 0 < at < len(form.text):
        return False
    left, right = form.origin[at - 1], form.origin[at]
    if left == right:
        return True
    before, after = form.text[at - 1], form.text[at]
    if right - left > 1 and (text[right - 1].isspace() or any(map(str.isspace, text[left + 1 : right]))):
        # < 5 is one amount
        return after.isdigit() and form.text[max(at - 2, 0) : at].rstrip("=")[-1:] in _COMPARING
    if (before.isalnum() and after.isalnum()) or (text[left].isalnum() and text[right].isalnum()):  # 10|³ is ^3
        return True
    around = form.text[max(at - 2, 0) : at + 2]
    if (
        after in _HANGING
        and before.isalnum()
        and not (after == "-" and (text[left].islower() or text[right + 1 : right + 2].isalnum()))
    ):
        return True  # 3|+, 5|%, A|-
    has_digits = at >= 2 and around[0].isdigit(), around[-1].isdigit()
    if before in _INSIDE:  # 4.|2, 3-|5, 0/|12, >|G
        is_number = after.isdigit() and (has_digits[0] or before in _BEFORE_NUMBER)
        return is_number or (before in "_^>" and after.isalnum())
    return (after in _INSIDE and before.isdigit() and has_digits[1]) or (after in "_^>" and before.isalnum())


#: Signs inside numbers and variants.
_INSIDE = ".,-/:_^>+*=<≤≥±~≈≠"
#: Signs that belong to the number behind them.
_COMPARING = frozenset("<>±~≈≠≪≫≲")
_BEFORE_NUMBER = _COMPARING | set("-+")
#: Signs that belong to what stands before them.
_HANGING = "+%‰°*^-"


def boxes_of(page: Page, start: int, end: int) -> tuple[PageBox, ...]:
    """The rectangles, one per line, around the words of ``page.text[start:end]``."""
    lines: list[list[int]] = []
    first = bisect_right(page.words, start, key=itemgetter(1))
    for word in page.words[first : bisect_left(page.words, end, first, key=itemgetter(0))]:
        if lines and _same_line(lines[-1], word):
            line = lines[-1]
            line[:] = [min(line[0], word[2]), min(line[1], word[3]), max(line[2], word[4]), max(line[3], word[5])]
        else:
            lines.append(list(word[2:]))
    return tuple((page.page_num, *(round(edge / 10_000, 4) for edge in line)) for line in lines)  # type: ignore[misc]


def _same_line(line: list[int], word: WordPosition) -> bool:
    overlap = min(line[3], word[5]) - max(line[1], word[3])
    return word[2] >= line[0] and overlap > 0.5 * min(line[3] - line[1], word[5] - word[3])
