"""Does a page begin another document, or go on with the page before?

The embedded model's second opinion on boundaries, by rules of its own and without anything learned: whose page it is and
of what day, which letterhead it has, how the pages count themselves, and the forms of the text on both sides
(:mod:`~evalkit.classification.corroboration`). The classifier weighs some of these too, among others.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from rapidfuzz import fuzz

from evalkit.classification.corroboration import forms_of
from evalkit.classification.findings import Finding
from evalkit.classification.schema import ClassificationOutput, DocumentType, PresenceLevel, Segment
from evalkit.documents.bundle import DocumentBundle, Page
from evalkit.documents.identifiers import Kind
from evalkit.issue import IssueSeverity

BEGINS = 3.0
"""From here on a page begins a document, whatever the answer says."""
GOES_ON = -3.0
"""From here down it goes on with the page before."""

_BACK = 30
"""So many pages back, and to the document's first one, it is asked what was said before."""
_HEAD, _FOOT = 8, 4
"""Lines of a page in which its head and its end are looked for."""


@dataclass(frozen=True)
class Sign:
    """One thing that speaks for a beginning (weight above 0) or against it."""

    weight: float
    what: str
    """For the expert, after "page 3 "."""
    quote: str | None = None


def _any(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.MULTILINE)


_COUNT = _any(r"\bpage[ ]?(\d{1,3}) ?(?:of|/) ?(\d{1,3})\b")
_TITLE = _any(
    r"(?:[\w'&/,()-]+ ){0,5}(?:report|note|summary|letter|consultation|consent|requisition|authori[sz]ation|questionnaire"
    r"|order form|request form|cover sheet|history and physical|evaluation|release of (?:health |medical )?information"
    r"|(?:blood count|metabolic panel|lipid panel|urinalysis)(?: [\w-]+){0,2}|prescription|statement of account)"
    r"(?: (?:form|for [\w ]{3,40}|to (?:release|disclose|use) [\w ,]{3,60}|of [\w ]{3,40}))?(?:\s*[:#-].{0,30}[^.])?"
)
_ADDRESS = _any(
    r"\b(?:tel|phone|telephone|main|ph|fax)\b\W{0,3}[+(]?\d[\d ().-]{7,}\d"
    r"|\b\d{2,5} (?:[NSEW]\.? )?(?:[A-Z][\w.']+ ){1,4}(?:street|st|drive|dr|avenue|ave|road|rd|blvd|boulevard|lane|ln|way|court|parkway|pkwy)\b"
)
_OPENING = _any(
    r"(?:chief complaint|reason for (?:the )?(?:visit|exam\w*|consult\w*|referral|admission)|history of present illness"
    r"|pre-?operative diagnos[ie]s|admi(?:ssion|tting) diagnos[ie]s|date of (?:admission|service|procedure|consultation)"
    r"|subjective|exam(?:ination)?|indications?|clinical (?:history|information|indication)|specimens?(?: submitted)?|technique"
    r"|type of (?:test|exam\w*)|history|identifying data|cc|hpi|procedures?|final diagnos[ie]s|patient information|to)\s*(?:/[\w /]+)?:"
    r"|(?:dear|re:|document id:?|date created)\b|(?:chief complaint|subjective)\W*$|this is an? (?:\d|[\w-]+[ -](?:aged|year|month))|s -"
)
_CLOSING = _any(
    r"\b(?:electronically )?signed (?:by|on)\b|\b(?:sincerely|best regards|yours truly|respectfully)\b|\bdictated (?:by|but)\b"
    r"|\bend of (?:report|document)\b|^\s*(?:d|t|dd|dt):\s*\d|\bcc:\s"
)
_CONTINUED = _any(r"\b(?:continued|cont'd|contd)\b")
_WHO: tuple[Kind, ...] = ("mrn", "date_of_birth", "patient")
_LONGEST = 80
"""Characters of a title, and of what is quoted from a line."""
_LONG_LINE = 20
"""Letters of a running line that tells documents apart."""
_ALIKE = 80.0
"""Per cent."""
_NEAR, _RATHER = 4.0, 1.5
"""The new forms must lead by so much on a page, and the old ones before it, to speak by themselves, or at all."""


def begins(
    before: Sequence[Page], page: Page, total_pages: int, contained: Container[DocumentType] = frozenset()
) -> list[Sign]:
    """What speaks for and against a new document on ``page``, after these pages of one.

    ``contained``: types of which the document is said to have whole pages besides its own.
    """
    return [
        *_by_count(before[-1], page, total_pages),
        *_by_person(before, page),
        *_by_head(before, page),
        *_by_end(before[-1], page),
        *_by_form(before, page, contained),
    ]


def strange_beginnings(answer: ClassificationOutput, bundle: DocumentBundle) -> Iterator[Finding]:
    """V2's question about boundaries: beginnings inside a segment, and segments that begin in mid-document."""
    for segment in answer.segments:
        pages = _said(bundle.between(segment.start_page, segment.end_page))
        contained = _contained(segment)
        for at in range(1, len(pages)):
            before = [pages[0], *pages[max(1, at - _BACK) : at]]
            signs = begins(before, pages[at], bundle.total_pages, contained)
            if _sum(signs) >= BEGINS:
                yield _finding(segment, pages[at], signs, is_beginning=True)
        earlier = _said(bundle.between(segment.start_page - _BACK, segment.start_page - 1))
        if earlier and pages:
            signs = begins(_of_last_segment(answer, earlier), pages[0], bundle.total_pages)
            if _sum(signs) <= GOES_ON:
                yield _finding(segment, pages[0], signs, is_beginning=False)


def _contained(segment: Segment) -> set[DocumentType]:
    """The types of which the segment is said to contain text, besides the one that it is."""
    return {
        row.document_type
        for row in segment.segment_composition
        if row.presence_level in (PresenceLevel.PRIMARY, PresenceLevel.EMBEDDED_RAW)
        and row.document_type is not segment.dominant_type
    }


def _of_last_segment(answer: ClassificationOutput, pages: Sequence[Page]) -> list[Page]:
    """The pages of the segment that the last of them is in."""
    last = pages[-1].page_num
    start = max((one.start_page for one in answer.segments if one.start_page <= last <= one.end_page), default=last)
    return [page for page in pages if page.page_num >= start]


def _said(pages: Iterable[Page]) -> list[Page]:
    """Those that say something: a blank page interrupts no document."""
    return [page for page in pages if page.text.strip()]


def _sum(signs: Iterable[Sign]) -> float:
    return sum(sign.weight for sign in signs)


def _finding(segment: Segment, page: Page, signs: Sequence[Sign], *, is_beginning: bool) -> Finding:
    told = sorted((sign for sign in signs if (sign.weight > 0) is is_beginning), key=lambda sign: -abs(sign.weight))
    what = ", ".join(sign.what for sign in told[:3])
    number, index = page.page_num, segment.segment_index
    return Finding(
        reasoning=f"Page {number} {what}.",
        severity=IssueSeverity.MAJOR,
        message=f"Page {number} seems to begin another document inside segment {index}: it {what}"
        if is_beginning
        else f"Segment {index} seems to begin in the middle of a document: page {number} {what}",
        segment_index=index,
        page=number,
        quote=next((sign.quote for sign in told if sign.quote), _lines(page.text)[0][:_LONGEST]),
        suggested_fix="Look where the document begins",
    )


# ------------------------------------------------------------------------------------------------ what pages tell


@lru_cache(maxsize=512)
def _lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.split("\n") if line.strip())


@lru_cache(maxsize=512)
def _counts(text: str) -> tuple[tuple[int, int, str], ...]:
    """Page i of n, and the line that says so, at the head and the foot of a page: in its middle it is of something else."""
    lines = _lines(text)
    edges = lines if len(lines) <= 2 * _FOOT else (*lines[:_FOOT], *lines[-_FOOT:])
    return tuple((int(match[1]), int(match[2]), line) for line in edges for match in _COUNT.finditer(line))


def _by_count(last: Page, page: Page, total_pages: int) -> Iterator[Sign]:
    """How the document counts its pages; the packet's own count tells nothing."""
    here = [one for one in _counts(page.text) if one[:2] != (page.page_num, total_pages)]
    there = [one for one in _counts(last.text) if one[:2] != (last.page_num, total_pages)]
    numbers = {one[:2] for one in there}
    ongoing = next((one for one in here if one[0] > 1 and (one[0] - 1, one[1]) in numbers), None)
    first = next((one for one in here if one[0] == 1), None)
    if ongoing:
        number, of, line = ongoing
        yield Sign(-4.0, f"is page {number} of {of}, and the page before is {number - 1} of {of}", line)
    elif first:
        # An annex counts its own pages below the same line as the report.
        is_annex = any(_runs_on(line, first[2]) for _, _, line in there)
        says_little = first[1] == 1 or any(number == 1 for number, _ in numbers)
        weight = 1.0 if is_annex else 2.0 if says_little else 3.0
        yield Sign(weight, f"is page 1 of {first[1]} by its own count", first[2])
    elif there and there[-1][0] == there[-1][1] and not here:
        yield Sign(2.0, f"comes after page {there[-1][0]} of {there[-1][1]}")


def _runs_on(line: str, next_line: str) -> bool:
    """Whether both are one running line, numbers apart."""
    one, other = (re.sub(r"[\W\d_]+", "", text).casefold() for text in (line, next_line))
    return len(one) >= _LONG_LINE and fuzz.ratio(one, other) >= _ALIKE


def _by_person(before: Sequence[Page], page: Page) -> Iterator[Sign]:
    """Whose page it is, and of what day."""
    here = {one.kind: one for one in page.identifiers}
    known = {one.kind: one for earlier in before for one in earlier.identifiers}

    def differs(kind: Kind) -> bool:
        """Neither stands anywhere on the other's pages: packets are stamped with numbers of their own."""
        new, old = here[kind], known[kind]
        return (
            new.normal != old.normal
            and old.value not in page.text
            and not any(new.value in earlier.text for earlier in before)
        )

    shared = [kind for kind in _WHO if kind in here and kind in known]
    differing = [kind for kind in shared if differs(kind)]
    if differing and len(differing) == len(shared):
        # A name alone is often misread: whatever stands in the place of one.
        weight = 1.0 if differing == ["patient"] else 3.0
        yield Sign(weight, "is about another patient", here[differing[0]].value)
    if "report_date" in here and "report_date" in known:
        if here["report_date"].normal == known["report_date"].normal:
            yield Sign(-1.0, "has the same date as the page before")
        elif differs("report_date"):
            yield Sign(2.0, "has another date", here["report_date"].value)


def _by_head(before: Sequence[Page], page: Page) -> Iterator[Sign]:
    """Letterhead, title and first words, if the document has not shown them before."""
    known = {_plain(line) for earlier in before for line in _lines(earlier.text)[:_HEAD]}
    whole = _lines(page.text)[:_HEAD]
    head = [line for line in whole if _plain(line) not in known]
    # One that the page before has is a running head; one that only the document's first page has begins another.
    last = {_plain(line) for line in _lines(before[-1].text)[:_HEAD]}
    address = next((line for line in whole[:4] if _ADDRESS.search(line) and _plain(line) not in last), None)
    if address:
        is_dated = _has_date(page) and not _has_date(before[-1])
        yield Sign(3.0 if is_dated else 2.0, "has a letterhead of its own", address)
    title = next((line for line in head[:6] if _is_title(line)), None)
    if title:
        yield Sign(2.0, "has a title", title)
    opening = next((line for line in head[:4] if _OPENING.match(line)), None)
    if opening:
        yield Sign(1.5, "begins as documents begin", opening[:_LONGEST])
    if any(_CONTINUED.search(line) for line in _lines(page.text)[:_HEAD]):
        yield Sign(-3.0, "says that it is continued")


def _has_date(page: Page) -> bool:
    return any(one.kind == "report_date" for one in page.identifiers)


def _plain(line: str) -> str:
    return re.sub(r"\W+", "", line).casefold()


def _is_title(line: str) -> bool:
    """Short, and written like a title: capitals, or a capital at each longer word."""
    if len(line) > _LONGEST or not _TITLE.fullmatch(line):
        return False
    long = [word for word in line.split() if len(word) > 3 and word[0].isalpha()]
    return sum(word[0].isupper() for word in long) >= max(1, len(long) - 1)


def _by_end(last: Page, page: Page) -> Iterator[Sign]:
    """Whether the page before was signed, and whether a sentence runs over."""
    body = [block.text for block in last.visible_blocks if not block.furniture] or [last.text]
    tail = "\n".join(_lines("\n".join(body))[-_FOOT:])
    if _CLOSING.search(tail):
        yield Sign(1.0, "comes after a signature or greeting")
    first = next((block.text for block in page.visible_blocks if not block.furniture and block.text.strip()), page.text)
    if first.lstrip()[:1].islower() and tail and tail.rstrip()[-1:] not in ".:!?":
        yield Sign(-3.0, "begins in the middle of a sentence", first.strip()[:_LONGEST])


def _by_form(before: Sequence[Page], page: Page, contained: Container[DocumentType]) -> Iterator[Sign]:
    """Whether the text turns from the forms of one type to those of another, which the document does not contain."""
    here, earlier = forms_of([page]), forms_of(before)
    new, old = here.strongest, earlier.strongest
    if new is None or old is None or new is old or new in contained:
        return
    lead = min(here[new] - here[old], earlier[old] - earlier[new])
    # Notes quote reports and results by the page; nobody copies a note into a report.
    is_copied = old is DocumentType.CLINICAL_NOTE
    example = here.example(new, [page])
    if lead >= _NEAR and here[new] >= 3 * here[old] and not is_copied:
        yield Sign(3.0, f"has the form of {new.value}, other than the pages before", example.quote)
    elif lead >= _RATHER and here[new] >= 2 * here[old]:
        yield Sign(2.0, f"rather has the form of {new.value}", example.quote)
