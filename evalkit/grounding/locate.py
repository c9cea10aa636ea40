"""Where a quote stands in a document, if it stands there at all.

A quote passes only if its canonical form is found as whole words. A passage that is merely similar is UNCERTAIN: a
fuzzy score cannot tell a misprint from a changed digit.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

from rapidfuzz import fuzz

from evalkit.documents.bundle import DocumentBundle, Page, PageStatus, Word
from evalkit.grounding.normalise import Canonical, canonical
from evalkit.issue import PageBox, QuoteVerdict

#: rapidfuzz partial ratio (0..100) from which a passage counts as near the quote.
NEAR = 85.0


@dataclass(frozen=True)
class Located:
    """The place of a quote."""

    verdict: QuoteVerdict
    page: int | None = None
    """Where it, or the passage near it, stands; None where it is ABSENT or the page could not be read."""
    start: int = 0
    """Characters of ``Page.text``."""
    end: int = 0
    boxes: tuple[PageBox, ...] = ()
    """One rectangle per line."""
    score: float = 100.0
    """Similarity 0..100; 100 where the canonical forms are equal."""

    @property
    def is_found(self) -> bool:
        """Whether the quote stands where it was said to stand."""
        return self.verdict in (QuoteVerdict.VERBATIM, QuoteVerdict.NOISY)


class Locator:
    """Finds quotes in one document."""

    def __init__(self, bundle: DocumentBundle) -> None:
        self._bundle = bundle

    def locate(self, quote: str, page_number: int) -> Located:
        """The verdict on a quote that is claimed for a page (numbered from 1; it need not exist)."""
        wanted = canonical(quote).text
        if not any(character.isalnum() for character in wanted):
            return Located(QuoteVerdict.ABSENT, score=0.0)
        others = sorted(
            (page for page in self._bundle.pages if page.page_num != page_number),
            key=lambda page: (abs(page.page_num - page_number), page.page_num),
        )
        claimed = self._bundle.page(page_number) if 1 <= page_number <= self._bundle.total_pages else None
        if claimed and (spans := _found(wanted, claimed)):
            letter_by_letter = [span for span in spans if claimed.text[slice(*span)] == quote.strip()]
            if letter_by_letter:
                return self._at(QuoteVerdict.VERBATIM, claimed, letter_by_letter[0])
            word_by_word = [span for span in spans if _same_words(claimed.text[slice(*span)], quote)]
            verdict = QuoteVerdict.NOISY if word_by_word else QuoteVerdict.UNCERTAIN
            return self._at(verdict, claimed, (word_by_word or spans)[0])
        for page in others:
            if spans := _found(wanted, page):
                return self._at(QuoteVerdict.WRONG_PAGE, page, spans[0])
        if claimed and claimed.status in (PageStatus.IMAGE, PageStatus.FAILED):
            return Located(QuoteVerdict.UNCERTAIN, score=0.0)
        return self._nearest(wanted, [claimed, *others] if claimed else others)

    def has(self, quote: str, page_number: int) -> bool:
        """Whether the page has these words."""
        wanted = canonical(quote).text
        exists = 1 <= page_number <= self._bundle.total_pages
        return exists and bool(wanted) and bool(_found(wanted, self._bundle.page(page_number)))

    def _nearest(self, wanted: str, pages: list[Page]) -> Located:
        best, place = 0.0, None
        for page in pages:
            form = canonical(page.text)
            if len(form.text) < len(wanted):  # the roles would swap: a page inside a quote is not a quote on a page
                continue
            if found := fuzz.partial_ratio_alignment(wanted, form.text, score_cutoff=max(NEAR, best + 0.01)):
                best, place = found.score, (page, form.span(found.dest_start, found.dest_end))
        if place is None:
            return Located(QuoteVerdict.ABSENT, score=0.0)
        return self._at(QuoteVerdict.UNCERTAIN, *place, score=best)

    @staticmethod
    def _at(verdict: QuoteVerdict, page: Page, span: tuple[int, int], score: float = 100.0) -> Located:
        return Located(verdict, page.page_num, *span, boxes=boxes_of(page, *span), score=score)


def _found(wanted: str, page: Page) -> list[tuple[int, int]]:
    return list(_occurrences(wanted, canonical(page.text), page.text))


def _occurrences(wanted: str, form: Canonical, text: str) -> Iterator[tuple[int, int]]:
    """The original characters of every whole-word occurrence."""
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
        elif between and form.text[at - 1].isalpha() and form.text[at].isalpha():
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


def _splits(form: Canonical, text: str, at: int) -> bool:
    """Whether a cut before the canonical character ``at`` goes through a word or number: 1|1.2, 4|.2, BRCA|1, ½."""
    if not 0 < at < len(form.text):
        return False
    left, right = form.origin[at - 1], form.origin[at]
    if left == right:
        return True
    if any(character.isspace() for character in text[left + 1 : right]):
        return False
    around = form.text[max(at - 2, 0) : at + 2]
    before, after = form.text[at - 1], form.text[at]
    if (before.isalnum() and after.isalnum()) or (text[left].isalnum() and text[right].isalnum()):  # 10|³ is ^3
        return True
    is_point = before in ".,", after in ".,"
    return (is_point[0] and at >= 2 and around[0].isdigit() and after.isdigit()) or (
        is_point[1] and before.isdigit() and around[-1].isdigit()
    )


def boxes_of(page: Page, start: int, end: int) -> tuple[PageBox, ...]:
    """The rectangles, one per line, around the words of ``page.text[start:end]``."""
    lines: list[list[int]] = []
    for word in page.words:
        if word[1] <= start or word[0] >= end:
            continue
        if lines and _same_line(lines[-1], word):
            line = lines[-1]
            line[:] = [min(line[0], word[2]), min(line[1], word[3]), max(line[2], word[4]), max(line[3], word[5])]
        else:
            lines.append(list(word[2:]))
    return tuple((page.page_num, *(round(edge / 10_000, 4) for edge in line)) for line in lines)  # type: ignore[misc]


def _same_line(line: list[int], word: Word) -> bool:
    overlap = min(line[3], word[5]) - max(line[1], word[3])
    return word[2] >= line[0] and overlap > 0.5 * min(line[3] - line[1], word[5] - word[3])
