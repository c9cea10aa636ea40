"""What stands around the place that an issue is about: two paragraphs before, three after.

Source: specification 000, slide 10. The expert sees the document's own text, not only what the agent claims. Where a
quote was not found, the context says so; it never passes another passage off as the quote.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple

from evalkit.classification.schema import DocumentType, Segment
from evalkit.documents.bundle import DocumentBundle, Page
from evalkit.errors import NotFound
from evalkit.frozen import Frozen
from evalkit.grounding.locate import Located, Locator
from evalkit.issue import Issue, PageBox, QuoteVerdict
from evalkit.review.packet import SMEPacket

BEFORE, AFTER = 2, 3
"""Paragraphs that are shown around the place."""


class SegmentPlace(Frozen):
    """The segment that an issue is about."""

    segment_index: int
    """As the answer numbers it."""
    start_page: int
    """From 1."""
    end_page: int
    """The last page, itself included."""
    dominant_type: DocumentType | None
    """None: the agent cannot tell."""


class ClaimedEvidence(Frozen):
    """A quote that the agent gives for a type."""

    document_type: DocumentType
    """What it is said to support."""
    snippet: str
    """The words that are claimed."""
    page: int
    """The page that is claimed, from 1."""
    anchors: tuple[str, ...]
    """The terms in it that decided."""


class Paragraph(Frozen):
    """One paragraph of the document's own text."""

    page: int
    """From 1."""
    text: str
    """As it was read."""
    mark: tuple[int, int] | None = None
    """Start and end, in characters of ``text``, of what was found in it; None around the place."""


class IssueContext(Frozen):
    """One issue with what is needed to judge it."""

    issue: Issue
    """The issue itself."""
    segment: SegmentPlace | None
    """None where the issue is about the whole document."""
    reasoning: str
    """The agent's reasoning for the segment; empty without one."""
    evidence: tuple[ClaimedEvidence, ...]
    """What the agent quotes, for the issue's type if it names one, in its segment or, without one, in all."""
    paragraphs_before: tuple[Paragraph, ...]
    """At most two, over page breaks."""
    paragraphs_matched: tuple[Paragraph, ...]
    """Where the quote, or by ``verdict`` UNCERTAIN or ALTERED the passage nearest to it, stands; empty if not found."""
    paragraphs_after: tuple[Paragraph, ...]
    """At most three, over page breaks; without a match the first ones of the claimed page."""
    page_found: int | None
    """The page of ``paragraphs_matched``; None if not found."""
    boxes: tuple[PageBox, ...]
    """The rectangles of that place."""
    verdict: QuoteVerdict | None
    """What comparing the quote with the document found; None without a quote."""
    note: str
    """One sentence of what is shown."""


def issue_context(packet: SMEPacket, issue_id: str, bundle: DocumentBundle) -> IssueContext:
    """The context of one of the packet's issues. NotFound, naming it, if the packet has no such issue."""
    issue = next((issue for issue in packet.issues if issue.issue_id == issue_id), None)
    if issue is None:
        raise NotFound(
            f"case {packet.case_id!r} has no issue {issue_id!r}",
            code="ISSUE-NOT-FOUND",
            remedy="Its issues are in packet.issues.",
        )
    segments = packet.classification.segments if packet.classification else ()
    segment = _segment(issue, segments)
    evidence = tuple(_evidence(issue, segments if segment is None else (segment,)))
    claims = _claims(issue, evidence)
    likely = segment.start_page if segment else 1
    place = _best(claims, likely, Locator(bundle))
    around = _around(bundle, place) if place and place.page else None
    found = place if around else None
    page = (claims[0].page if claims else issue.page) or likely
    start = _start_of(bundle, page)
    return IssueContext(
        issue=issue,
        segment=None if segment is None else _segment_place(segment),
        reasoning=segment.reasoning if segment else "",
        evidence=evidence,
        paragraphs_before=around.before if around else (),
        paragraphs_matched=around.matched if around else (),
        paragraphs_after=around.after if around else start,
        page_found=found.page if found else None,
        boxes=found.boxes if found else (),
        verdict=issue.verdict or (place.verdict if place else None),
        note=_note(bool(issue.quote), page, place, found, has_start=bool(start)),
    )


def _segment(issue: Issue, segments: Sequence[Segment]) -> Segment | None:
    """The segment that the issue names, or that its page is in, or the only one."""
    named = [one for one in segments if one.segment_index == issue.segment_index]
    if issue.page is not None:
        # Two segments may bear the same index: the page tells them apart.
        on_page = (one for one in named or segments if one.start_page <= issue.page <= one.end_page)
        if segment := next(on_page, None):
            return segment
    if named:
        return named[0]
    return segments[0] if len(segments) == 1 else None


def _segment_place(segment: Segment) -> SegmentPlace:
    return SegmentPlace(
        segment_index=segment.segment_index,
        start_page=segment.start_page,
        end_page=segment.end_page,
        dominant_type=segment.dominant_type,
    )


def _evidence(issue: Issue, segments: Sequence[Segment]) -> Iterator[ClaimedEvidence]:
    for segment in segments:
        for presence in segment.segment_composition:
            if issue.document_type in (None, presence.document_type):
                for one in presence.top_evidence:
                    yield ClaimedEvidence(
                        document_type=presence.document_type,
                        snippet=one.snippet,
                        page=one.page,
                        anchors=one.anchors_found,
                    )


class _Claim(NamedTuple):
    quote: str
    page: int | None
    """None: no page is claimed."""


def _claims(issue: Issue, evidence: Sequence[ClaimedEvidence]) -> list[_Claim]:
    """What to look for: the issue's own quote, else the agent's evidence, on the issue's page if it names one."""
    if issue.quote:
        return [_Claim(issue.quote, issue.page)]
    return [_Claim(one.snippet, one.page) for one in evidence if issue.page in (None, one.page)]


def _best(claims: Sequence[_Claim], likely: int, locator: Locator) -> Located | None:
    """The place of the first claim that stands where it should; failing that, of the first one."""
    places = [_locate(claim, likely, locator) for claim in claims]
    return next((place for place in places if place.is_found), places[0] if places else None)


def _locate(claim: _Claim, likely: int, locator: Locator) -> Located:
    place = locator.locate(claim.quote, claim.page or likely)
    if claim.page is None and place.verdict is QuoteVerdict.WRONG_PAGE and place.page:
        return locator.locate(claim.quote, place.page)  # where no page is claimed, none is wrong
    return place


class _Around(NamedTuple):
    before: tuple[Paragraph, ...]
    matched: tuple[Paragraph, ...]
    after: tuple[Paragraph, ...]


def _around(bundle: DocumentBundle, place: Located) -> _Around | None:
    """The paragraphs of the place and around it; headers and footers are passed over unless they are the place."""
    page = bundle.page(place.page or 1)
    spans = list(_spans(page))
    inside = [at for at, (start, end) in enumerate(spans) if start < place.end and end > place.start]
    if not inside:
        return None
    earlier = chain(_body(page, stop=inside[0], step=-1), _pages(bundle, range(page.page_num - 1, 0, -1), step=-1))
    later = chain(
        _body(page, start=inside[-1] + 1), _pages(bundle, range(page.page_num + 1, bundle.total_pages + 1), step=1)
    )
    return _Around(
        before=tuple(islice(earlier, BEFORE))[::-1],
        matched=tuple(
            Paragraph(page=page.page_num, text=page.paragraphs[at], mark=_mark(place, *spans[at])) for at in inside
        ),
        after=tuple(islice(later, AFTER)),
    )


def _mark(place: Located, start: int, end: int) -> tuple[int, int]:
    """The part of the paragraph start..end of a page's text that the place takes up."""
    return max(place.start, start) - start, min(place.end, end) - start


def _start_of(bundle: DocumentBundle, number: int) -> tuple[Paragraph, ...]:
    """The first paragraphs of a page; none if the document has no such page."""
    return tuple(islice(chain.from_iterable(_body(page) for page in bundle.between(number, number)), AFTER))


def _pages(bundle: DocumentBundle, numbers: Iterable[int], *, step: int) -> Iterator[Paragraph]:
    return chain.from_iterable(_body(bundle.page(number), step=step) for number in numbers)


def _body(page: Page, start: int = 0, stop: int | None = None, step: int = 1) -> list[Paragraph]:
    """The paragraphs start..stop of a page (stop exclusive), without headers and footers; backwards for step -1."""
    furniture = {at for at, block in enumerate(page.visible_blocks) if block.furniture}
    texts = list(enumerate(page.paragraphs))[start:stop]
    return [Paragraph(page=page.page_num, text=text) for at, text in texts[::step] if at not in furniture]


def _spans(page: Page) -> Iterator[tuple[int, int]]:
    """Start and end of each paragraph in ``page.text``."""
    at = 0
    for text in page.paragraphs:
        at = max(page.text.find(text, at), at)
        yield at, at + len(text)
        at += len(text)


def _note(is_quote: bool, claimed: int, place: Located | None, shown: Located | None, *, has_start: bool) -> str:
    start = f"shown is the start of page {claimed}" if has_start else f"page {claimed} has no text to show"
    if place is None:
        return f"Nothing is quoted; {start}."
    subject = "The quote" if is_quote else "The issue itself quotes nothing; the agent's evidence"
    if shown is None:
        unread = place.verdict is QuoteVerdict.UNCERTAIN
        if unread:
            return f"{subject} could not be looked for, as the page is not readable; {start}."
        near = f"; most like it is a passage on page {place.nearest}, {place.score:.0f} %" if place.nearest else ""
        return f"{subject} was not found on any page{near}; {start}."
    if shown.is_found:
        return f"{subject} stands on page {shown.page}."
    if shown.verdict is QuoteVerdict.WRONG_PAGE:
        return f"{subject} does not stand on page {claimed} but on page {shown.page}."
    return f"{subject} {_altered(claimed, shown)}."


def _altered(claimed: int, shown: Located) -> str:
    if shown.score >= 100:
        return f"stands on page {shown.page}, but look at what stands beside it: {shown.difference}"
    return (
        f"does not stand on page {claimed} as it is quoted; "
        f"shown is the passage nearest to it, on page {shown.page} ({shown.score:.0f} % alike)"
    )
