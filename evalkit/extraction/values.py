"""A claimed value becomes a proven one: what is not on the page is not a value.

A model says what a field holds and where it read it; the page decides. The value's own words are looked for as they
were quoted, else as any writing of the same normal form (``24410.00`` is on the page as ``24,410.00``). What is not there
raises an issue with the typed difference to the passage that is nearest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from evalkit.documents.bundle import DocumentBundle, Page, PageStatus
from evalkit.extraction.formats import Format
from evalkit.extraction.schema import NOT_PRESENT, FieldStatus, FieldValue
from evalkit.extraction.template import Field
from evalkit.grounding.locate import Locator, boxes_of, occurrences
from evalkit.grounding.normalise import canonical_text
from evalkit.issue import Agent, Issue, IssueSeverity, QuoteVerdict

#: A value of a format is written in at most so many words: "February 1, 2025".
_MOST_WORDS = 4
#: A quote shows so many characters of the block on either side of the value.
_AROUND = 120
_PLAIN: frozenset[Format] = frozenset(("text", "pattern", "checkbox"))


@dataclass(frozen=True)
class Claim:
    """What an extractor says about one field."""

    value: str | None
    """None: the document does not have it."""
    raw: str | None = None
    """The words that it was read from: the value's own, or a passage that holds them."""
    page: int | None = None
    confidence: float = 1.0
    is_ambiguous: bool = False
    span: tuple[int, int] | None = None
    """Characters of the page's text, where the extractor knows the very place."""


@dataclass(frozen=True)
class Proven:
    """The value as the page has it, and what is wrong with the claim."""

    field: FieldValue
    issue: Issue | None = None


def proven(
    claim: Claim, field: Field, bundle: DocumentBundle, locator: Locator, pages: Sequence[int], agent: Agent
) -> Proven:
    """The claim as far as the document's ``pages`` bear it out.

    A value that is not in the field's format keeps its own words: the judge tells about that, not the proof.
    """
    if claim.value is None or not claim.value.strip():
        status = FieldStatus.AMBIGUOUS if claim.is_ambiguous else FieldStatus.NOT_PRESENT
        return Proven(NOT_PRESENT.model_copy(update={"status": status, "confidence": claim.confidence}))
    place = next(_places(claim, field, bundle, locator, pages), None)
    if place is None:
        return _not_there(claim, field, locator, pages, agent)
    page, start, end = place
    status = FieldStatus.AMBIGUOUS if claim.is_ambiguous else FieldStatus.FOUND
    return Proven(_at(field, claim.value, page, start, end, status, claim.confidence))


def value_at(field: Field, page: Page, start: int, end: int, confidence: float) -> FieldValue:
    """The value that the words ``start..end`` of the page's text are."""
    return _at(field, page.text[start:end], page, start, end, FieldStatus.FOUND, confidence)


def _at(
    field: Field, value: str, page: Page, start: int, end: int, status: FieldStatus, confidence: float
) -> FieldValue:
    raw = page.text[start:end]
    normal = field.normal(raw) if field.format not in _PLAIN else None
    return FieldValue(
        status=status,
        value=normal or field.normal(value) or " ".join(value.split()),
        raw=raw,
        page=page.page_num,
        quote=_passage(page, start, end),
        boxes=boxes_of(page, start, end),
        confidence=confidence,
    )


def _places(
    claim: Claim, field: Field, bundle: DocumentBundle, locator: Locator, pages: Sequence[int]
) -> Iterator[tuple[Page, int, int]]:
    """Where the value stands: the place that was named, then within the passage quoted, then anywhere on the pages."""
    value, first = claim.value or "", _first(claim, pages)
    if claim.span and claim.page == first:
        page = bundle.page(first)
        if _same(page.text[slice(*claim.span)], value, field):
            yield page, *claim.span
    if claim.raw:
        near = locator.locate(claim.raw, first)
        if near.is_found or near.verdict in (QuoteVerdict.WRONG_PAGE, QuoteVerdict.UNCERTAIN):
            for page, start, end in near.parts:
                if page.page_num in pages:
                    yield from ((page, *span) for span in written(value, field, page.text, start, end))
    for number in sorted(pages, key=lambda number: (number != first, number)):
        page = bundle.page(number)
        yield from ((page, *span) for span in written(value, field, page.text, 0, len(page.text)))


def written(value: str, field: Field, text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Where the value stands in ``text[start:end]``: in its own words, else in any writing of the same normal form."""
    if not (wanted := canonical_text(value)):
        return
    for first, last in occurrences(wanted, text[start:end]):
        yield start + first, start + last
    if field.format in _PLAIN or (normal := field.normal(value)) is None:
        return
    words = [match.span() for match in re.finditer(r"\S+", text[start:end])]
    for at, (first, _) in enumerate(words):
        for _, last in islice(words, at, at + _MOST_WORDS):
            run = text[start + first : start + last]
            bare = run.rstrip(".,;:")
            if field.normal(bare) == normal:
                yield start + first, start + first + len(bare)
                break


def _first(claim: Claim, pages: Sequence[int]) -> int:
    """The page to look on first: the one that was named, if it is one of these."""
    return claim.page if claim.page is not None and claim.page in pages else (pages[0] if pages else 0)


def _same(text: str, value: str, field: Field) -> bool:
    if canonical_text(text) == canonical_text(value):
        return True
    normal = field.normal(text)
    return field.format not in _PLAIN and normal is not None and normal == (field.normal(value) or value)


def _not_there(claim: Claim, field: Field, locator: Locator, pages: Sequence[int], agent: Agent) -> Proven:
    """The issue that tells what the page says instead; on recognised pages a misread sign is a doubt, not a forgery."""
    said = claim.raw or claim.value or ""
    near = locator.locate(said, _first(claim, pages))
    elsewhere = near.is_found or near.verdict is QuoteVerdict.WRONG_PAGE
    is_recognised = bool(near.parts) and near.parts[0][0].status is PageStatus.OCR
    doubtful = near.verdict is QuoteVerdict.UNCERTAIN and is_recognised
    if elsewhere and claim.raw and canonical_text(claim.value or "") not in canonical_text(claim.raw):
        what = "the passage that was quoted for it does not say so"
    elif elsewhere:
        what = "it stands outside the pages of this document"
    else:
        what = near.difference or "nothing on the page is like it"
    issue = Issue.of(
        agent,
        "EXTRACTION-NOT-ON-PAGE",
        IssueSeverity.MAJOR if doubtful else IssueSeverity.BLOCKER,
        f"{field.description}: the value is not on the page; {what}",
        location=field.name,
        page=claim.page,
        quote=said,
        verdict=near.verdict,
        difference=near.difference,
        found_page=near.page,
        boxes=near.boxes,
    )
    status = FieldStatus.AMBIGUOUS if doubtful else FieldStatus.NOT_PRESENT
    return Proven(FieldValue(status=status, page=near.page if doubtful else None), issue)


def _passage(page: Page, start: int, end: int) -> str:
    """The words of the block around the value, at most so many on either side."""
    first = max(page.text.rfind("\n", 0, start) + 1, start - _AROUND)
    stop = page.text.find("\n", end)
    last = min(len(page.text) if stop < 0 else stop, end + _AROUND)
    if first and not page.text[first - 1].isspace():
        first = page.text.find(" ", first, start) + 1 or start
    if last < len(page.text) and not page.text[last].isspace():
        cut = page.text.rfind(" ", end, last)
        last = cut if cut >= 0 else end
    return page.text[first:last]
