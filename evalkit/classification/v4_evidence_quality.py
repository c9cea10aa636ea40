"""V4: quality of the evidence: do the quotes exist and support the types?

Source: specification 001 and 000, slide 6; contract ruling 6. Rules look for each quote in the bundle; a model only
judges whether the quotes are relevant and support the confidence.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from evalkit.classification.evidence_strength import (
    TYPES_WITH_SIGNS,
    find_weak_evidence_of_other_models,
    has_sign_of_type,
)
from evalkit.classification.findings import (
    ShippedVerifier,
    is_agent_failure_issue,
    iter_segment_primary_types,
)
from evalkit.classification.offline.second_opinion_types import measure_type_signs_in_text
from evalkit.classification.schema import (
    ClassificationOutput,
    DocumentType,
    Evidence,
    PresenceLevel,
    Segment,
    to_percent,
)
from evalkit.documents.bundle import DocumentBundle
from evalkit.grounding.locate import QuoteLocation, QuoteLocator
from evalkit.issue import Issue, IssueSeverity, QuoteVerdict, number_issues

BLOCKER, MAJOR, MINOR = IssueSeverity.BLOCKER, IssueSeverity.MAJOR, IssueSeverity.MINOR

#: Minimum and maximum number of words of a quote, both included.
MIN_SNIPPET_WORDS, MAX_SNIPPET_WORDS = 3, 60

#: Largest share of a segment, inclusive, that a secondary type may have without a quote that shows it.
MAX_UNSUPPORTED_SHARE = 0.10

_SECONDARY_LEVELS = frozenset((PresenceLevel.EMBEDDED_RAW, PresenceLevel.MENTION_ONLY))
_OUTSIDE_FILE = "V4-PAGE-OUTSIDE-FILE"

#: Hundredths that an issue of each severity takes off the score.
PENALTY_BY_SEVERITY = {BLOCKER: 30, MAJOR: 15, MINOR: 5}


class EvidenceAssessment(NamedTuple):
    """Issues of V4's rules, and the evidence score (0..1) that follows from them."""

    issues: list[Issue]
    score: float


class V4EvidenceQualityAssessor(ShippedVerifier):
    """Verifier V4: checks that quotes are in the document and support the types."""

    agent = "V4"
    prompt_name = "V4_Evidence_Quality_Assessor"
    find_in_text = staticmethod(find_weak_evidence_of_other_models)

    def __init__(self, pictured_pages: Collection[int] = ()) -> None:
        """Check quotes; those that a model read in a picture only on ``pictured_pages``.

        These are the pages whose pictures the model had and whose text may lack words. A quote on another page, such as
        one that a supplied answer says was seen, must be in the text.
        """
        self._pictured_pages = pictured_pages

    def validate(self, classification: ClassificationOutput, bundle: DocumentBundle) -> EvidenceAssessment:
        """Return the issues of V4's rules, numbered from V4-0001, and the score."""
        locator = QuoteLocator(bundle)
        located_quotes = [
            (claimed_quote, self._locate_evidence(claimed_quote.evidence, locator))
            for claimed_quote in _list_claimed_quotes(classification)
        ]
        issues = number_issues("V4", _find_evidence_issues(classification, bundle, located_quotes, locator))
        return EvidenceAssessment(issues, compute_quality_score(issues))

    def _locate_evidence(self, evidence: Evidence, locator: QuoteLocator) -> QuoteLocation:
        if evidence.seen_in_picture:
            return locator.locate_seen(evidence.snippet, evidence.page, self._pictured_pages)
        return locator.locate(evidence.snippet, evidence.page)


def compute_quality_score(issues: Iterable[Issue]) -> float:
    """Compute 1 − 0.30 per BLOCKER − 0.15 per MAJOR − 0.05 per MINOR, at least 0."""
    return max(0, 100 - sum(PENALTY_BY_SEVERITY[issue.severity] for issue in issues)) / 100


def score_evidence(answer: ClassificationOutput | None, open_issues: Iterable[Issue]) -> float | None:
    """Compute the evidence score from V4's open issues.

    None if there is nothing to judge (no answer, or neither a quote nor an issue of V4), or if V4 failed.
    """
    v4_issues = [issue for issue in open_issues if issue.agent == "V4"]
    is_judged = answer is not None and (bool(v4_issues) or any(True for _ in _list_claimed_quotes(answer)))
    return compute_quality_score(v4_issues) if is_judged and not any(map(is_agent_failure_issue, v4_issues)) else None


def compute_grounded_ratio(answer: ClassificationOutput, issues: Iterable[Issue]) -> float | None:
    """Compute the share (0..1) of quotes that are on the claimed page.

    ``issues``: V4's open issues. None if the answer quotes nothing.
    """
    claimed_count = sum(1 for _ in _list_claimed_quotes(answer))
    ungrounded_count = sum(issue.verdict is not None or issue.code == _OUTSIDE_FILE for issue in issues)
    return round((claimed_count - ungrounded_count) / claimed_count, 4) if claimed_count else None


class _ClaimedQuote(NamedTuple):
    segment: Segment
    document_type: DocumentType
    evidence: Evidence

    @property
    def is_in_segment(self) -> bool:
        return self.segment.start_page <= self.evidence.page <= self.segment.end_page

    def build_issue(self, code: str, severity: IssueSeverity, message: str, **fields: object) -> Issue:
        return Issue.create(
            "V4",
            code,
            severity,
            message,
            location=f"segment {self.segment.segment_index} → {self.document_type.value} → top_evidence",
            segment_index=self.segment.segment_index,
            document_type=self.document_type.value,
            page=self.evidence.page,
            quote=self.evidence.snippet,
            **fields,
        )


def _list_claimed_quotes(answer: ClassificationOutput) -> Iterator[_ClaimedQuote]:
    for segment in answer.segments:
        for presence in segment.segment_composition:
            for evidence in presence.top_evidence:
                yield _ClaimedQuote(segment, presence.document_type, evidence)


def _find_evidence_issues(
    answer: ClassificationOutput,
    bundle: DocumentBundle,
    located_quotes: Sequence[tuple[_ClaimedQuote, QuoteLocation]],
    locator: QuoteLocator,
) -> Iterator[Issue]:
    yield from _check_primary_evidence(answer)
    yield from _check_presence_support(answer, located_quotes)
    for claimed_quote, quote_location in located_quotes:
        if not 1 <= claimed_quote.evidence.page <= bundle.total_pages:
            yield claimed_quote.build_issue(
                _OUTSIDE_FILE,
                BLOCKER,
                f"Evidence for {claimed_quote.document_type.value} is claimed on page {claimed_quote.evidence.page}, "
                f"but the document has {bundle.total_pages} pages",
                suggested_fix="Find the page on which the evidence is",
                facts={"total": bundle.total_pages},
            )
            continue
        yield from _check_quote_in_segment(claimed_quote)
        yield from _check_quote(claimed_quote, quote_location)
        # Terms of a quote that no text has are no second finding.
        if bundle.page(claimed_quote.evidence.page).status.is_readable and not quote_location.is_seen_only:
            yield from _check_anchors(claimed_quote, locator)
        yield from _check_snippet_length(claimed_quote)


def _check_primary_evidence(answer: ClassificationOutput) -> Iterator[Issue]:
    for segment, kind in iter_segment_primary_types(answer):
        quoted_presences = [
            presence
            for presence in segment.segment_composition
            if presence.document_type is kind and presence.top_evidence
        ]
        if not quoted_presences:
            yield Issue.create(
                "V4",
                "V4-PRIMARY-NO-EVIDENCE",
                BLOCKER,
                f"{kind.value} is PRIMARY in segment {segment.segment_index}, and nothing in the document is quoted "
                "to support it",
                location=f"segment {segment.segment_index} → {kind.value}",
                suggested_fix="Quote what supports the type, or change the type",
                segment_index=segment.segment_index,
                document_type=kind.value,
                facts={"pages": segment.page_range_text},
            )


def _check_presence_support(
    answer: ClassificationOutput, located_quotes: Sequence[tuple[_ClaimedQuote, QuoteLocation]]
) -> Iterator[Issue]:
    """Raise V4-PRESENCE-UNSUPPORTED for secondary types that no quote shows.

    Source: contract ruling 21.
    """
    supported = {
        (claimed_quote.segment.segment_index, claimed_quote.document_type)
        for claimed_quote, quote_location in located_quotes
        if quote_location.is_found and claimed_quote.is_in_segment and _shows_claimed_type(claimed_quote)
    }
    for segment in answer.segments:
        for presence in segment.segment_composition if segment.dominant_type else ():
            kind = presence.document_type
            if (
                presence.presence_level in _SECONDARY_LEVELS
                and presence.segment_share > MAX_UNSUPPORTED_SHARE
                and kind in TYPES_WITH_SIGNS
                and (segment.segment_index, kind) not in supported
            ):
                yield Issue.create(
                    "V4",
                    "V4-PRESENCE-UNSUPPORTED",
                    MAJOR,
                    f"{kind.value} is said to be {presence.segment_share:.0%} of segment {segment.segment_index} "
                    f"({presence.presence_level.value}), and no quote from its pages shows it",
                    location=f"segment {segment.segment_index} → {kind.value}",
                    suggested_fix="Quote words that show the type, or remove the type",
                    segment_index=segment.segment_index,
                    document_type=kind.value,
                    facts={"pages": segment.page_range_text, "percent": to_percent(presence.segment_share)},
                )


def _shows_claimed_type(claimed_quote: _ClaimedQuote) -> bool:
    """Tell if a quote shows its claimed type, rather than its segment's own type."""
    quote, own_type = claimed_quote.evidence.snippet, claimed_quote.segment.dominant_type
    strengths = measure_type_signs_in_text(quote)
    is_of_own_type = own_type is not None and strengths[own_type] > strengths[claimed_quote.document_type]
    return has_sign_of_type(quote, claimed_quote.document_type) and not is_of_own_type


def _check_quote_in_segment(claimed_quote: _ClaimedQuote) -> Iterator[Issue]:
    start, end = claimed_quote.segment.start_page, claimed_quote.segment.end_page
    if not claimed_quote.is_in_segment:
        yield claimed_quote.build_issue(
            "V4-PAGE-OUTSIDE-SEGMENT",
            MAJOR,
            f"Evidence for {claimed_quote.document_type.value} is on page {claimed_quote.evidence.page}, outside its segment (pages {start}–{end})",
            suggested_fix="Quote evidence from the segment's own pages",
            facts={"pages": claimed_quote.segment.page_range_text},
        )


def _check_quote(claimed_quote: _ClaimedQuote, quote_location: QuoteLocation) -> Iterator[Issue]:
    if quote_location.is_found:
        return
    page, snippet = claimed_quote.evidence.page, _shorten_text(claimed_quote.evidence.snippet)
    absent_text = f"Evidence snippet '{snippet}' not found in actual PDF text on page {page}"
    where_text = "there" if quote_location.page_number == page else f"on page {quote_location.page_number}"
    present_text = f"Evidence snippet '{snippet}' is on page {quote_location.page_number}"
    is_whole = quote_location.similarity >= 100  # all words match, so the difference is in the words around the quote
    issue_fields = {
        "verdict": quote_location.verdict,
        "difference": quote_location.difference_text,
        "found_page": quote_location.page_number,
        "boxes": quote_location.boxes,
        "facts": _collect_difference_facts(quote_location),
    }
    match quote_location.verdict:
        case QuoteVerdict.ABSENT:
            yield claimed_quote.build_issue(
                "V4-QUOTE-ABSENT",
                BLOCKER,
                f"{absent_text}. Possible hallucination."
                + (
                    f" On page {quote_location.closest_page} is the passage most like it, {quote_location.similarity:.0f} %."
                    if quote_location.closest_page
                    else ""
                ),
                suggested_fix="Check the page; if it does not say what is quoted, the claim has no support",
                **issue_fields,
            )
        case QuoteVerdict.ALTERED:
            # sentences of a form state no result, so a negation or condition around a quote from a form changes little
            is_turned_paper = is_whole and claimed_quote.document_type is DocumentType.OTHER
            yield claimed_quote.build_issue(
                "V4-QUOTE-ALTERED",
                MINOR if is_turned_paper else BLOCKER,
                f"{present_text}, but the words around it change its meaning: {quote_location.difference_text}"
                if is_whole
                else f"{absent_text}; the nearest passage {where_text} ({quote_location.similarity:.0f} % alike) says something else: "
                f"{quote_location.difference_text}",
                suggested_fix="Read the passage on the page; the page decides, not the quote",
                **issue_fields,
            )
        case QuoteVerdict.WRONG_PAGE:
            yield claimed_quote.build_issue(
                "V4-QUOTE-WRONG-PAGE",
                MAJOR,
                f"Evidence snippet '{snippet}' is not on page {page} but on page {quote_location.page_number}",
                suggested_fix=f"Look at page {quote_location.page_number}",
                **issue_fields,
            )
        case QuoteVerdict.UNCERTAIN:
            if quote_location.is_seen_only:
                message = f"Evidence snippet '{snippet}' was read in the picture of page {page}; the page's text does not have it"
            elif quote_location.page_number is None:
                message = f"Page {page} has no readable text, so evidence snippet '{snippet}' cannot be checked"
            elif is_whole:
                message = f"{present_text}, but may not mean the same there: {quote_location.difference_text}"
            else:
                message = (
                    f"Evidence snippet '{snippet}' is not on page {page} as quoted; the nearest passage {where_text} "
                    f"({quote_location.similarity:.0f} % alike) may say something else: {quote_location.difference_text}"
                )
            yield claimed_quote.build_issue(
                "V4-QUOTE-UNCERTAIN", MAJOR, message, suggested_fix="Compare the quote with the page", **issue_fields
            )


def _collect_difference_facts(quote_location: QuoteLocation) -> Mapping[str, int | str]:
    """Return ``facts``: first difference, page most like an absent quote, or picture."""
    if quote_location.is_seen_only:
        return {"read": "picture"}
    if quote_location.closest_page:
        return {"closest_page": quote_location.closest_page, "percent": round(quote_location.similarity)}
    if quote_location.difference is None:
        return {}
    kind, quote_words, page_words, _ = quote_location.difference
    words = {"quote_words": quote_words, "page_words": page_words}
    doubt_count = len(quote_location.doubtful_words)
    doubt = {"doubt": "reading" if doubt_count == 1 else "readings"} if doubt_count else {}
    return {"kind": kind.value, **doubt, **{name: text for name, text in words.items() if text}}


def _check_anchors(claimed_quote: _ClaimedQuote, locator: QuoteLocator) -> Iterator[Issue]:
    for anchor in claimed_quote.evidence.anchors_found:
        if not locator.has_quote(anchor, claimed_quote.evidence.page):
            yield claimed_quote.build_issue(
                "V4-ANCHOR-ABSENT",
                MAJOR,
                f"Anchor '{_shorten_text(anchor)}' is not on page {claimed_quote.evidence.page}",
                suggested_fix="Check the page for this term",
                facts={"anchor": anchor},
            )


def _check_snippet_length(claimed_quote: _ClaimedQuote) -> Iterator[Issue]:
    word_count = len(claimed_quote.evidence.snippet.split())
    if not MIN_SNIPPET_WORDS <= word_count <= MAX_SNIPPET_WORDS:
        yield claimed_quote.build_issue(
            "V4-SNIPPET-LENGTH",
            MINOR,
            f"Evidence snippet '{_shorten_text(claimed_quote.evidence.snippet)}' has {word_count} words; "
            f"{MIN_SNIPPET_WORDS} to {MAX_SNIPPET_WORDS} can be judged",
            suggested_fix="Quote one whole sentence",
            facts={"count": word_count, "least": MIN_SNIPPET_WORDS, "most": MAX_SNIPPET_WORDS},
        )


def _shorten_text(text: str, max_length: int = 80) -> str:
    line = " ".join(text.split())
    return line if len(line) <= max_length else line[: max_length - 1].rstrip() + "…"
