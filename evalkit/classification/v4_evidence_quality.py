"""V4: does the evidence stand in the document, and is it worth anything?

Source: specification 001 and 000, slide 6; contract ruling 6. Whether a quote stands on its page is computed from the
bundle, never asked; a model only judges whether the evidence is relevant and supports the confidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from evalkit.classification.corroboration import weak_evidence
from evalkit.classification.findings import (
    Findings,
    Pages,
    VerifierQuestion,
    observations,
    primary_types,
    read_findings,
)
from evalkit.classification.schema import ClassificationOutput, DocumentType, Evidence, Segment
from evalkit.documents.bundle import DocumentBundle
from evalkit.grounding.locate import Located, Locator
from evalkit.issue import Issue, IssueSeverity, QuoteVerdict, numbered
from evalkit.llm.model import Answer, Question

BLOCKER, MAJOR, MINOR = IssueSeverity.BLOCKER, IssueSeverity.MAJOR, IssueSeverity.MINOR

SHORTEST, LONGEST = 3, 60
"""Words of a snippet, both ends in."""

PENALTY = {BLOCKER: 30, MAJOR: 15, MINOR: 5}
"""Hundredths taken off the score per issue."""


class Assessment(NamedTuple):
    """The computed part of V4."""

    issues: list[Issue]
    score: float


class V4EvidenceQualityAssessor:
    """The evidence checks."""

    def validate(self, classification: ClassificationOutput, bundle: DocumentBundle) -> Assessment:
        """The computed part, numbered from V4-0001, and the score of these issues."""
        return self.grounded(classification, bundle)[0]

    def grounded(self, classification: ClassificationOutput, bundle: DocumentBundle) -> tuple[Assessment, float | None]:
        """The computed part, and quotes found on the page they claim / quotes claimed; None where none is claimed."""
        locator = Locator(bundle)
        places = [(one, locator.locate(one.evidence.snippet, one.evidence.page)) for one in _claimed(classification)]
        issues = numbered("V4", _faults(classification, bundle, places, locator))
        found = [place.is_found for _, place in places]
        return Assessment(issues, quality_score(issues)), round(sum(found) / len(found), 4) if found else None

    def questions(
        self, classification: ClassificationOutput, bundle: DocumentBundle, pages: Pages | None = None
    ) -> list[Question[Findings]]:
        """The model's part: relevance, weight, and confidence out of line with the evidence."""
        return [VerifierQuestion("V4", "V4_Evidence_Quality_Assessor", classification, bundle, weak_evidence, pages)]

    def observed(self, questions: Iterable[Question[Findings]]) -> list[Issue]:
        """Types that rest on quotes which are no evidence, numbered from V4-0001."""
        return observations("V4", questions)

    def read(self, answers: Sequence[Answer[Findings]]) -> list[Issue]:
        """The answers as issues; a missing answer is a BLOCKER."""
        return read_findings("V4", answers)


def quality_score(issues: Iterable[Issue]) -> float:
    """1 − 0.30 per BLOCKER − 0.15 per MAJOR − 0.05 per MINOR, at least 0."""
    return max(0, 100 - sum(PENALTY[issue.severity] for issue in issues)) / 100


def band(score: float) -> str:
    """What a score means, in specification 001's words.

    >>> [band(score) for score in (1.0, 0.95, 0.7, 0.65, 0.4, 0.1)][::2]
    ['all evidence verified', 'minor problems', 'significant problems']
    """
    if score >= 1.0:
        return "all evidence verified"
    if score >= 0.7:
        return "minor problems"
    return "significant problems" if score >= 0.4 else "critical failures"


class _Claimed(NamedTuple):
    segment: Segment
    kind: DocumentType
    evidence: Evidence

    def issue(self, code: str, severity: IssueSeverity, message: str, **fields: object) -> Issue:
        return Issue.of(
            "V4",
            code,
            severity,
            message,
            location=f"segment {self.segment.segment_index} → {self.kind.value} → top_evidence",
            segment_index=self.segment.segment_index,
            document_type=self.kind.value,
            page=self.evidence.page,
            quote=self.evidence.snippet,
            **fields,
        )


def _claimed(answer: ClassificationOutput) -> Iterator[_Claimed]:
    for segment in answer.segments:
        for presence in segment.segment_composition:
            for evidence in presence.top_evidence:
                yield _Claimed(segment, presence.document_type, evidence)


def _faults(
    answer: ClassificationOutput,
    bundle: DocumentBundle,
    places: Iterable[tuple[_Claimed, Located]],
    locator: Locator,
) -> Iterator[Issue]:
    yield from _primary_without_evidence(answer)
    for one, place in places:
        if not 1 <= one.evidence.page <= bundle.total_pages:
            yield one.issue(
                "V4-PAGE-OUTSIDE-FILE",
                BLOCKER,
                f"Evidence for {one.kind.value} is claimed on page {one.evidence.page}, "
                f"but the document has {bundle.total_pages} pages",
                suggested_fix="Find out where the evidence really stands",
            )
            continue
        yield from _outside_segment(one)
        yield from _quote(one, place)
        if bundle.page(one.evidence.page).status.readable:
            yield from _anchors(one, locator)
        yield from _length(one)


def _primary_without_evidence(answer: ClassificationOutput) -> Iterator[Issue]:
    for segment, kind in primary_types(answer):
        quoted = [one for one in segment.segment_composition if one.document_type is kind and one.top_evidence]
        if not quoted:
            yield Issue.of(
                "V4",
                "V4-PRIMARY-NO-EVIDENCE",
                BLOCKER,
                f"{kind.value} is PRIMARY in segment {segment.segment_index}, and nothing in the document is quoted "
                "to support it",
                location=f"segment {segment.segment_index} → {kind.value}",
                suggested_fix="Quote what supports the type, or change the type",
                segment_index=segment.segment_index,
                document_type=kind.value,
            )


def _outside_segment(one: _Claimed) -> Iterator[Issue]:
    start, end = one.segment.start_page, one.segment.end_page
    if not start <= one.evidence.page <= end:
        yield one.issue(
            "V4-PAGE-OUTSIDE-SEGMENT",
            MAJOR,
            f"Evidence for {one.kind.value} is on page {one.evidence.page}, outside its segment (pages {start}–{end})",
            suggested_fix="Quote evidence from the segment's own pages",
        )


def _quote(one: _Claimed, place: Located) -> Iterator[Issue]:
    if place.is_found:
        return
    page, words = one.evidence.page, _shortened(one.evidence.snippet)
    absent = f"Evidence snippet '{words}' not found in actual PDF text on page {page}"
    where = "there" if place.page == page else f"on page {place.page}"
    stands = f"Evidence snippet '{words}' stands on page {place.page}"
    is_whole = place.score >= 100  # its words are all there, and what is beside them matters
    found = {
        "verdict": place.verdict,
        "difference": place.difference,
        "found_page": place.page,
        "boxes": place.boxes,
    }
    match place.verdict:
        case QuoteVerdict.ABSENT:
            yield one.issue(
                "V4-QUOTE-ABSENT",
                BLOCKER,
                f"{absent}. Possible hallucination."
                + (
                    f" On page {place.nearest} is the passage most like it, {place.score:.0f} %."
                    if place.nearest
                    else ""
                ),
                suggested_fix="Check the page; if nothing there says it, the claim has no support",
                **found,
            )
        case QuoteVerdict.ALTERED:
            yield one.issue(
                "V4-QUOTE-ALTERED",
                BLOCKER,
                f"{stands}, but the document turns it: {place.difference}"
                if is_whole
                else f"{absent}; the nearest passage {where} ({place.score:.0f} % alike) says something else: "
                f"{place.difference}",
                suggested_fix="Read the passage: what it says decides, not the quote",
                **found,
            )
        case QuoteVerdict.WRONG_PAGE:
            yield one.issue(
                "V4-QUOTE-WRONG-PAGE",
                MAJOR,
                f"Evidence snippet '{words}' is not on page {page} but on page {place.page}",
                suggested_fix=f"Look at page {place.page}",
                **found,
            )
        case QuoteVerdict.UNCERTAIN:
            if place.page is None:
                near = f"Page {page} has no readable text, so evidence snippet '{words}' cannot be checked"
            elif is_whole:
                near = f"{stands}, but it may not say so there: {place.difference}"
            else:
                near = (
                    f"Evidence snippet '{words}' is not on page {page} as quoted; the nearest passage {where} "
                    f"({place.score:.0f} % alike) may say something else: {place.difference}"
                )
            yield one.issue("V4-QUOTE-UNCERTAIN", MAJOR, near, suggested_fix="Compare the quote with the page", **found)


def _anchors(one: _Claimed, locator: Locator) -> Iterator[Issue]:
    for anchor in one.evidence.anchors_found:
        if not locator.has(anchor, one.evidence.page):
            yield one.issue(
                "V4-ANCHOR-ABSENT",
                MAJOR,
                f"Anchor '{_shortened(anchor)}' is not on page {one.evidence.page}",
                suggested_fix="Check the page for this term",
            )


def _length(one: _Claimed) -> Iterator[Issue]:
    words = len(one.evidence.snippet.split())
    if not SHORTEST <= words <= LONGEST:
        yield one.issue(
            "V4-SNIPPET-LENGTH",
            MINOR,
            f"Evidence snippet '{_shortened(one.evidence.snippet)}' has {words} words; "
            f"{SHORTEST} to {LONGEST} can be judged",
            suggested_fix="Quote one whole sentence",
        )


def _shortened(text: str, longest: int = 80) -> str:
    line = " ".join(text.split())
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "…"
