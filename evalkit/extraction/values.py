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
from evalkit.extraction.formats import Format, misread
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
    rows: tuple[tuple[int, int], ...] = ()
    """As ``span``, of an entry of several lines, between which the page's text may have others."""


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
    status = FieldStatus.AMBIGUOUS if claim.is_ambiguous else FieldStatus.FOUND
    if lines := _lines(claim, field, bundle, pages):
        return Proven(_made(field, claim, lines, status))
    place = next(_places(claim, field, bundle, locator, pages), None)
    if place is None:
        return _not_there(claim, field, locator, pages, agent)
    return Proven(_made(field, claim, [place], status))


def _made(field: Field, claim: Claim, places: Sequence[tuple[Page, int, int]], status: FieldStatus) -> FieldValue:
    value, (first, start, end) = claim.value or "", places[0]
    raw = "\n".join(page.text[start:end] for page, start, end in places)
    normal = field.normal(raw) if field.format not in _PLAIN else None
    return FieldValue(
        status=status,
        value=normal or field.normal(value) or " ".join(value.split()),
        raw=raw,
        page=first.page_num,
        quote=_passage(first, start, end),
        boxes=tuple(box for page, start, end in places for box in boxes_of(page, start, end)),
        confidence=claim.confidence,
    )


def _lines(
    claim: Claim, field: Field, bundle: DocumentBundle, pages: Sequence[int]
) -> list[tuple[Page, int, int]] | None:
    """The lines of an entry that has several, such as an address; None where they are not on one of the pages."""
    value = claim.value or ""
    if claim.rows and claim.page in pages:
        page = bundle.page(claim.page or 0)
        if _letters(" ".join(page.text[slice(*row)] for row in claim.rows)) == _letters(value):
            return [(page, *row) for row in claim.rows]
        return None
    parts = [part for part in re.split(r"[,\n]\s*", value) if part.strip()]
    if field.format != "text" or len(parts) < 2:
        return None
    for number in sorted(pages, key=lambda number: (number != claim.page, number)):
        page = bundle.page(number)
        found: list[tuple[Page, int, int]] = []
        for part in parts:
            # The lines of an entry stand below one another: each is looked for behind the one before.
            after = found[-1][2] if found else 0
            place = next(written(part, field, page.text, after, len(page.text)), None)
            if place is None:
                break
            found.append((page, *place))
        else:
            return found
    return None


def _letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", canonical_text(text))


def _places(
    claim: Claim, field: Field, bundle: DocumentBundle, locator: Locator, pages: Sequence[int]
) -> Iterator[tuple[Page, int, int]]:
    """Where the value stands: the place that was named, then within the passage quoted, then anywhere on the pages."""
    value, first = claim.value or "", _first(claim, pages)
    if claim.span and claim.page == first:
        page = bundle.page(first)
        if _same(page.text[slice(*claim.span)], value, field, is_recognised=page.status is PageStatus.OCR):
            yield page, *claim.span
    if claim.raw:
        near = locator.locate(claim.raw, first)
        if near.is_found or near.verdict in (QuoteVerdict.WRONG_PAGE, QuoteVerdict.UNCERTAIN):
            for page, start, end in near.parts:
                if page.page_num in pages:
                    yield from ((page, *span) for span in _written(value, field, page, start, end))
    for number in sorted(pages, key=lambda number: (number != first, number)):
        page = bundle.page(number)
        yield from ((page, *span) for span in _written(value, field, page, 0, len(page.text)))
    if field.format == "text":  # a line break or a comma more or less
        near = locator.locate(value, first)
        if near.is_found and near.page in pages:
            yield near.parts[0]


def _written(value: str, field: Field, page: Page, start: int, end: int) -> Iterator[tuple[int, int]]:
    return written(value, field, page.text, start, end, is_recognised=page.status is PageStatus.OCR)


def written(
    value: str, field: Field, text: str, start: int, end: int, *, is_recognised: bool = False
) -> Iterator[tuple[int, int]]:
    """Where the value stands in ``text[start:end]``: in its own words, else in any writing of the same normal form.

    On a recognised page, an amount or number may have letters that were misread for digits.
    """
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
            if normal in (field.normal(bare), field.normal(misread(bare, field.format)) if is_recognised else None):
                yield start + first, start + first + len(bare)
                break


def _first(claim: Claim, pages: Sequence[int]) -> int:
    """The page to look on first: the one that was named, if it is one of these."""
    return claim.page if claim.page is not None and claim.page in pages else (pages[0] if pages else 0)


def _same(text: str, value: str, field: Field, *, is_recognised: bool) -> bool:
    wanted = canonical_text(value)
    if canonical_text(text) == wanted or canonical_text("".join(text.split())) == wanted:
        return True
    if field.format in _PLAIN:
        return field.format == "pattern" and field.normal(" ".join(text.split())) == value
    kept = field.normal(value) or value
    return kept == field.normal(text) or (is_recognised and kept == field.normal(misread(text, field.format)))


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
