"""Where a quote stands in a document, if it stands there at all.

A quote passes only if its canonical form is found as whole words. A passage that is merely similar is UNCERTAIN: a
fuzzy score cannot tell a misprint from a changed digit.
"""

from __future__ import annotations

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
        if claimed and (span := self._find(wanted, claimed)):
            verbatim = quote.strip() in claimed.text
            return self._at(QuoteVerdict.VERBATIM if verbatim else QuoteVerdict.NOISY, claimed, span)
        for page in others:
            if span := self._find(wanted, page):
                return self._at(QuoteVerdict.WRONG_PAGE, page, span)
        if claimed and claimed.status in (PageStatus.IMAGE, PageStatus.FAILED):
            return Located(QuoteVerdict.UNCERTAIN, score=0.0)
        return self._nearest(wanted, [claimed, *others] if claimed else others)

    def has(self, quote: str, page_number: int) -> bool:
        """Whether the page has these words."""
        wanted = canonical(quote).text
        exists = 1 <= page_number <= self._bundle.total_pages
        return exists and bool(wanted) and self._find(wanted, self._bundle.page(page_number)) is not None

    @staticmethod
    def _find(wanted: str, page: Page) -> tuple[int, int] | None:
        """The original characters of the first whole-word occurrence."""
        form = canonical(page.text)
        return next((form.span(*found) for found in _occurrences(wanted, form, page.text)), None)

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


def _occurrences(wanted: str, form: Canonical, text: str) -> Iterator[tuple[int, int]]:
    at = form.text.find(wanted)
    while at >= 0:
        start, end = form.span(at, at + len(wanted))
        if not _joined(text, start) and not _joined(text, end):
            yield at, at + len(wanted)
        at = form.text.find(wanted, at + 1)


def whole_words(text: str, start: int, end: int) -> tuple[int, int]:
    """The span widened until it splits no word or number: what is cut out of a text must be found in it again."""
    while _joined(text, start):
        start -= 1
    while _joined(text, end):
        end += 1
    return start, end


def _joined(text: str, at: int) -> bool:
    """Whether the characters on both sides of ``at`` belong to one word or number ("1|1.2", "4|.2", "BRCA|1")."""
    before, after = text[max(at - 1, 0) : at], text[at : at + 1]
    if before.isalnum() and after.isalnum():
        return True
    around = text[max(at - 2, 0) : at], text[at : at + 2]
    return _is_point(around[0][-1:], around[0][:1], after) or _is_point(after, before, around[1][1:])


def _is_point(sign: str, left: str, right: str) -> bool:
    return sign in (".", ",") and sign != "" and left.isdigit() and right.isdigit()


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
