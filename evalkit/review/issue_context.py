"""Context of an issue: the document's paragraphs around the issue's place.

Source: specification 000, slide 10. The expert sees the document's own text, not only the agent's claims. If the quote was
not found, the context says so; another passage is never presented as the quote.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple

from evalkit.classification.schema import DocumentType, Segment
from evalkit.core.records import StrictRecord
from evalkit.documents.bundle import DocumentBundle, Page
from evalkit.documents.search import DoubtfulWord
from evalkit.errors import NotFound
from evalkit.grounding.locate import QuoteLocation, QuoteLocator
from evalkit.issue import Issue, PageBox, QuoteVerdict
from evalkit.review.packet import SMEPacket
from evalkit.review.plain_sentences import get_issue_answers

#: The number of paragraphs that are shown before and after the place of an issue.
PARAGRAPHS_BEFORE, PARAGRAPHS_AFTER = 2, 3

#: What an error may repeat of an id: anything else may be a document's text that was passed by mistake.
_ISSUE_ID_PATTERN = re.compile(r"[A-Za-z0-9_-]{1,40}")


class IssueSegment(StrictRecord):
    """The segment of the agent's answer that an issue concerns."""

    segment_index: int
    """The segment's number in the agent's answer."""
    start_page: int
    """The first page, from 1."""
    end_page: int
    """The last page, itself included."""
    dominant_type: DocumentType | None
    """The segment's type; None if the agent cannot tell."""


class ClaimedEvidence(StrictRecord):
    """A quote that the agent gives as evidence for a document type."""

    document_type: DocumentType
    """The type that the quote should support."""
    snippet: str
    """The words that the agent quotes."""
    page: int
    """The page on which the agent claims the quote to be, from 1."""
    anchors: tuple[str, ...]
    """The terms in the quote that the agent names as decisive."""


class ContextParagraph(StrictRecord):
    """One paragraph of the document's own text."""

    page: int
    """The paragraph's page, from 1."""
    text: str
    """The paragraph's text as it was read from the page."""
    match_span: tuple[int, int] | None = None
    """Start and end of the matching passage, in characters of ``text``; None in a paragraph before or after the match."""
    difference_span: tuple[int, int] | None = None
    """Start and end of the words that differ from the quote, in characters of ``text``; None if no such words are here."""


class IssueContext(StrictRecord):
    """An issue with the agent's claims and the document's text around it."""

    issue: Issue
    """The issue that the context belongs to."""
    segment: IssueSegment | None
    """The segment that the issue concerns; None if it concerns the whole file."""
    reasoning: str
    """The agent's reasoning for the segment; empty if ``segment`` is None."""
    evidence: tuple[ClaimedEvidence, ...]
    """The agent's quotes in the segment, or in all segments if ``segment`` is None. If the issue names a document type, only
    the quotes for this type."""
    quote_difference_span: tuple[int, int] | None
    """Start and end of the words that differ from the document, in characters of ``issue.quote``; None if there are none."""
    paragraphs_before: tuple[ContextParagraph, ...]
    """At most two paragraphs before the match, if necessary from earlier pages; for a question about a boundary, the end of
    the page before it."""
    paragraphs_matched: tuple[ContextParagraph, ...]
    """The paragraphs that contain the quote or, for the verdicts UNCERTAIN and ALTERED, the most similar passage; empty if
    nothing was found."""
    paragraphs_after: tuple[ContextParagraph, ...]
    """At most three paragraphs after the match, if necessary from later pages; without a match, the first paragraphs of the
    claimed page."""
    page_found: int | None
    """The page of ``paragraphs_matched``; None if nothing was found."""
    boxes: tuple[PageBox, ...]
    """The boxes of the matching passage; without a quote and a match, the boxes of the issue or, for a question about a
    boundary, of the text on both sides."""
    verdict: QuoteVerdict | None
    """The result of comparing the quote with the document; None if nothing is quoted."""
    note: str
    """A sentence that tells the expert which passage is shown and how it relates to the quote."""
    doubtful_words: tuple[DoubtfulWord, ...]
    """The words of the quote that OCR may have misread, with both readings and their boxes."""
    hidden_text: str
    """The words on the issue's page that nobody can see, if the issue is about them; empty otherwise."""


def get_issue_id(issue: Issue | str) -> str:
    """Return the id of an issue, given as an Issue or as its id."""
    return issue.issue_id if isinstance(issue, Issue) else issue


def build_issue_context(
    packet: SMEPacket, issue_id: Issue | str, bundle: DocumentBundle, locator: QuoteLocator | None = None
) -> IssueContext:
    """Build the context of one issue of a case.

    ``locator`` may be shared between calls, to search the same ``bundle`` faster. NotFound if the packet has no issue with
    this id.
    """
    issue_id = get_issue_id(issue_id)
    issue = next((issue for issue in packet.issues if issue.issue_id == issue_id), None)
    if issue is None:
        raise NotFound(
            f"case {packet.case_id!r} has no issue {issue_id!r}"
            if _ISSUE_ID_PATTERN.fullmatch(str(issue_id))
            else f"case {packet.case_id!r} has no such issue, and this is no issue_id",
            code="ISSUE-NOT-FOUND",
            remedy="SMEReviewHelper.load_packet(case_id).issues lists the case's issues.",
        )
    segment = _find_segment(issue, packet.segments)
    evidence = tuple(_collect_evidence(issue, packet.segments if segment is None else (segment,)))
    boundary_page = _find_boundary_page(issue, bundle)
    quote_claims = [] if boundary_page else _collect_quote_claims(issue, evidence)
    default_page = segment.start_page if segment else 1
    match = _find_best_match(quote_claims, default_page, locator or QuoteLocator(bundle))
    surroundings = _collect_surroundings(bundle, match) if match and match.page_number else None
    shown_match = match if surroundings else None
    claimed_page = (quote_claims[0].page if quote_claims else issue.page) or default_page
    paragraphs = (
        paragraph for page in bundle.iter_pages(claimed_page, claimed_page) for paragraph in _read_body_paragraphs(page)
    )
    first_paragraphs = tuple(islice(paragraphs, PARAGRAPHS_AFTER))
    difference = match.difference if match and issue.quote else None
    return IssueContext(
        issue=issue,
        segment=IssueSegment(**{name: getattr(segment, name) for name in IssueSegment.model_fields})
        if segment
        else None,
        reasoning=segment.reasoning if segment else "",
        evidence=evidence,
        quote_difference_span=_find_words(issue.quote or "", difference.quote_text) if difference else None,
        paragraphs_before=surroundings.before if surroundings else _read_last_paragraphs(bundle, boundary_page),
        paragraphs_matched=surroundings.matched if surroundings else (),
        paragraphs_after=surroundings.after if surroundings else first_paragraphs,
        page_found=shown_match.page_number if shown_match else None,
        boxes=shown_match.boxes if shown_match else _choose_boxes(issue, bundle, boundary_page),
        verdict=issue.verdict or (match.verdict if match else None),
        note=_describe_context(
            bool(issue.quote),
            claimed_page,
            match,
            shown_match,
            has_page_text=bool(first_paragraphs),
            is_seen_only=issue.facts.get("read") == "picture",
        ),
        doubtful_words=shown_match.doubtful_words if shown_match and issue.quote else (),
        hidden_text=_read_hidden_text(issue, bundle),
    )


def _find_boundary_page(issue: Issue, bundle: DocumentBundle) -> int | None:
    """Return the page on which a document may begin; None if this is not asked."""
    is_boundary = get_issue_answers(issue).effect in ("begin_document", "join_document", "decide_boundary")
    return issue.page if is_boundary and issue.page and 2 <= issue.page <= bundle.total_pages else None


def _choose_boxes(issue: Issue, bundle: DocumentBundle, boundary_page: int | None) -> tuple[PageBox, ...]:
    """Choose the boxes without a passage: the issue's, or both sides of a boundary."""
    if boundary_page is None:
        return () if issue.quote else issue.boxes
    edges = ((boundary_page - 1, slice(-1, None)), (boundary_page, slice(1)))
    return tuple((page, *block.box) for page, edge in edges for block in bundle.page(page).visible_blocks[edge])


def _read_last_paragraphs(bundle: DocumentBundle, page_number: int | None) -> tuple[ContextParagraph, ...]:
    if page_number is None:
        return ()
    return tuple(_read_body_paragraphs(bundle.page(page_number - 1))[-PARAGRAPHS_BEFORE:])


def _read_hidden_text(issue: Issue, bundle: DocumentBundle) -> str:
    is_beside_page = issue.facts.get("visibility") == "beside"
    is_about_hidden_words = issue.code == "V3-TRAP-HIDDEN" or issue.facts.get("visibility") == "hidden"
    if not (is_about_hidden_words or is_beside_page) or issue.page is None:
        return ""
    pages = bundle.iter_pages(issue.page, issue.page)
    if is_beside_page:
        return "\n".join(words.text for page in pages for words in page.addressed)
    return "\n".join(block.text for page in pages for block in page.blocks if block.hidden)


def _find_words(text: str, words: str, near: tuple[int, int] = (0, 0)) -> tuple[int, int] | None:
    """Find words in a text, as near to a span as possible; None if absent."""
    pattern = r"\s+".join(map(re.escape, words.split()))
    spans = [match.span() for match in re.finditer(rf"(?<!\w){pattern}(?!\w)", text, re.IGNORECASE) if pattern]
    return min(spans, key=lambda span: max(near[0] - span[1], span[0] - near[1], 0), default=None)


def _find_segment(issue: Issue, segments: Sequence[Segment]) -> Segment | None:
    """Find the segment that an issue concerns: by index, by page, or the only one.

    None if the issue names no place and the answer has several segments.
    """
    same_index_segments = [candidate for candidate in segments if candidate.segment_index == issue.segment_index]
    if issue.page is not None:
        # A faulty answer may give two segments the same index: choose the segment that contains the issue's page.
        on_page = (
            candidate
            for candidate in same_index_segments or segments
            if candidate.start_page <= issue.page <= candidate.end_page
        )
        if segment := next(on_page, None):
            return segment
    if same_index_segments:
        return same_index_segments[0]
    return segments[0] if len(segments) == 1 else None


def _collect_evidence(issue: Issue, segments: Sequence[Segment]) -> Iterator[ClaimedEvidence]:
    for segment in segments:
        for presence in segment.segment_composition:
            if issue.document_type in (None, presence.document_type):
                for evidence in presence.top_evidence:
                    yield ClaimedEvidence(
                        document_type=presence.document_type,
                        snippet=evidence.snippet,
                        page=evidence.page,
                        anchors=evidence.anchors_found,
                    )


class _QuoteClaim(NamedTuple):
    quote: str
    page: int | None
    """The claimed page, from 1; None if no page is claimed."""


def _collect_quote_claims(issue: Issue, evidence: Sequence[ClaimedEvidence]) -> list[_QuoteClaim]:
    """Collect the quotes to look for in the document.

    This is the issue's quote. If it has none but is about the evidence, these are the agent's quotes on the issue's page, or
    all if the issue names no page.
    """
    if issue.quote:
        return [_QuoteClaim(issue.quote, issue.page)]
    if issue.agent != "V4":
        return []
    return [
        _QuoteClaim(quotation.snippet, quotation.page) for quotation in evidence if issue.page in (None, quotation.page)
    ]


def _find_best_match(claims: Sequence[_QuoteClaim], default_page: int, locator: QuoteLocator) -> QuoteLocation | None:
    """Locate the first quote that is on its claimed page, else the first quote."""
    matches = [_locate_claim(claim, default_page, locator) for claim in claims]
    return next((match for match in matches if match.is_found), matches[0] if matches else None)


def _locate_claim(claim: _QuoteClaim, default_page: int, locator: QuoteLocator) -> QuoteLocation:
    match = locator.locate(claim.quote, claim.page or default_page)
    if claim.page is None and match.verdict is QuoteVerdict.WRONG_PAGE and match.page_number:
        return locator.locate(
            claim.quote, match.page_number
        )  # no page was claimed, so the verdict must not be WRONG_PAGE
    return match


class _Surroundings(NamedTuple):
    before: tuple[ContextParagraph, ...]
    matched: tuple[ContextParagraph, ...]
    after: tuple[ContextParagraph, ...]


def _collect_surroundings(bundle: DocumentBundle, match: QuoteLocation) -> _Surroundings | None:
    page = bundle.page(match.page_number or 1)
    spans = list(_find_paragraph_spans(page))
    matched_indexes = [index for index, (start, end) in enumerate(spans) if start < match.end and end > match.start]
    if not matched_indexes:
        return None
    page_words = match.difference.page_text if match.difference else ""
    if match.doubtful_words:
        page_words = match.doubtful_words[0].reading
    span_by_index = {
        index: (max(match.start, start) - start, min(match.end, end) - start)
        for index, (start, end) in enumerate(spans)
        if index in matched_indexes
    }
    earlier = chain(
        _read_body_paragraphs(page, stop=matched_indexes[0], reading_direction=-1),
        _iterate_page_paragraphs(bundle, range(page.page_num - 1, 0, -1), reading_direction=-1),
    )
    later = chain(
        _read_body_paragraphs(page, start=matched_indexes[-1] + 1),
        _iterate_page_paragraphs(bundle, range(page.page_num + 1, bundle.total_pages + 1), reading_direction=1),
    )
    return _Surroundings(
        before=tuple(islice(earlier, PARAGRAPHS_BEFORE))[::-1],
        matched=tuple(
            ContextParagraph(
                page=page.page_num,
                text=page.paragraphs[index],
                match_span=match_span,
                difference_span=_find_words(page.paragraphs[index], page_words, match_span),
            )
            for index, match_span in span_by_index.items()
        ),
        after=tuple(islice(later, PARAGRAPHS_AFTER)),
    )


def _iterate_page_paragraphs(
    bundle: DocumentBundle, page_numbers: Iterable[int], *, reading_direction: int
) -> Iterator[ContextParagraph]:
    return chain.from_iterable(
        _read_body_paragraphs(bundle.page(page_number), reading_direction=reading_direction)
        for page_number in page_numbers
    )


def _read_body_paragraphs(
    page: Page, start: int = 0, stop: int | None = None, reading_direction: int = 1
) -> list[ContextParagraph]:
    """Read paragraphs start..stop (exclusive) of a page without headers and footers.

    In reverse order if ``reading_direction`` is -1.
    """
    furniture_indexes = {index for index, block in enumerate(page.visible_blocks) if block.furniture}
    texts = list(enumerate(page.paragraphs))[start:stop]
    return [
        ContextParagraph(page=page.page_num, text=text)
        for index, text in texts[::reading_direction]
        if index not in furniture_indexes
    ]


def _find_paragraph_spans(page: Page) -> Iterator[tuple[int, int]]:
    offset = 0
    for text in page.paragraphs:
        offset = max(page.text.find(text, offset), offset)
        yield offset, offset + len(text)
        offset += len(text)


def _describe_context(
    is_quote: bool,
    claimed_page: int,
    match: QuoteLocation | None,
    shown_match: QuoteLocation | None,
    *,
    has_page_text: bool,
    is_seen_only: bool,
) -> str:
    start_words = (
        f"below is the start of page {claimed_page}" if has_page_text else f"page {claimed_page} has no text to show"
    )
    if match is None:
        return f"The issue quotes nothing; {start_words}."
    subject = "The quote" if is_quote else "The issue quotes nothing; the program's quote"
    if shown_match is None:
        if is_seen_only or match.verdict is QuoteVerdict.UNCERTAIN:
            reason_words = (
                f"was seen in the picture of page {claimed_page}, not in the printed text"
                if is_seen_only
                else "could not be searched for, because the page is not readable"
            )
            return f"{subject} {reason_words}; {start_words}."
        nearest_words = (
            f"; the most similar passage is on page {match.closest_page}, {match.similarity:.0f} %"
            if match.closest_page
            else ""
        )
        return f"{subject} was not found on any page{nearest_words}; {start_words}."
    if shown_match.is_found:
        return f"{subject} is on page {shown_match.page_number}."
    if shown_match.verdict is QuoteVerdict.WRONG_PAGE:
        return f"{subject} is not on page {claimed_page} but on page {shown_match.page_number}."
    return f"{subject} {_describe_alteration(claimed_page, shown_match)}."


def _describe_alteration(claimed_page: int, shown_match: QuoteLocation) -> str:
    if shown_match.similarity >= 100:
        return f"is on page {shown_match.page_number}, but check the text around it: {shown_match.difference_text}"
    return (
        f"is not on page {claimed_page} in these words; "
        f"below is the most similar passage, on page {shown_match.page_number} ({shown_match.similarity:.0f} % alike)"
    )
