"""Effects of an expert's answers: struck quotes, confirmed parts, contradictions.

Pure functions. Source: contract, rulings 26 and 38.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from evalkit.classification.schema import (
    ClassificationOutput,
    DocumentType,
    Evidence,
    PresenceLevel,
    ReviewedClassification,
    ReviewedEvidence,
    ReviewedPresence,
    ReviewedSegment,
    Segment,
    normalise_shares,
)
from evalkit.issue import Issue
from evalkit.review.corrections import choose_dominant_type, compute_page_weighted_mixture
from evalkit.review.draft import ExpertQuote
from evalkit.review.ground_truth import IssueVerdict, RefutedQuote
from evalkit.review.plain_sentences import AnswerEffect, describe_issue, get_issue_answers

_Verdict = Literal["confirmed", "dismissed"]
_TypeInSegment = tuple[int | None, str | None]
#: Number of the segment, type, words and page of a quote; spacing does not count.
_QuoteKey = tuple[int | None, str | None, str, int | None]
NO_EVIDENCE = PresenceLevel.NO_EVIDENCE


class JudgedIssue(NamedTuple):
    """An issue with the expert's verdict, and the effect of confirming it."""

    issue: Issue
    verdict: _Verdict
    effect: AnswerEffect


@dataclass(frozen=True)
class ExpertAnswers:
    """An expert's verdicts on the agent's answer, and the expert's own quotes."""

    agent_answer: ClassificationOutput | None
    issues: Sequence[Issue]
    verdicts: Sequence[IssueVerdict]
    quotes: Sequence[ExpertQuote] = ()
    """The expert's own quotes for types."""
    removes_types: bool = False
    """True if types that the expert says are not there are removed: in a correction, not in a validation."""
    flags_other_patient: bool = False
    """True if the expert marked a document as another patient's."""

    @property
    def _agent_segments(self) -> Sequence[Segment]:
        return self.agent_answer.segments if self.agent_answer else ()

    @cached_property
    def judged_issues(self) -> list[JudgedIssue]:
        """The issues with an expert's verdict, in the order of ``issues``."""
        verdict_by_id = {verdict.issue_id: verdict.verdict for verdict in self.verdicts}
        return [
            JudgedIssue(issue, verdict_by_id[issue.issue_id], self._get_effect(issue))
            for issue in self.issues
            if issue.issue_id in verdict_by_id
        ]

    def _get_effect(self, issue: Issue) -> AnswerEffect:
        effect, source = get_issue_answers(issue).effect, self._find_source(issue)
        # The question whether there is a type beside the segment's own type is not about the segment's type.
        is_about_other_type = source is not None and issue.document_type not in (None, source.dominant_type)
        return "remove_type" if effect == "choose_type" and is_about_other_type else effect

    def _find_source(self, issue: Issue) -> Segment | None:
        return next((segment for segment in self._agent_segments if segment.segment_index == issue.segment_index), None)

    @cached_property
    def _verdict_by_quote(self) -> dict[_QuoteKey, _Verdict]:
        """Segment, type, words and page of each judged quote → verdict.

        The entry without page is for pages about which nothing was said; there, one confirmation strikes.
        """
        confirmed_last = sorted(self.judged_issues, key=lambda judged_issue: judged_issue.verdict == "confirmed")
        return {
            _build_quote_key(issue.segment_index, issue.document_type, issue.quote, page): verdict
            for issue, verdict, effect in confirmed_last
            if effect == "strike_quote"
            for page in (issue.page, None)
        }

    def _find_quote_verdict(self, segment: Segment, document_type: str, evidence: Evidence) -> _Verdict | None:
        pages = (evidence.page, None)
        keys = (_build_quote_key(segment.segment_index, document_type, evidence.snippet, page) for page in pages)
        return next((self._verdict_by_quote[key] for key in keys if key in self._verdict_by_quote), None)

    @property
    def refuted(self) -> tuple[RefutedQuote, ...]:
        """The quotes that the expert struck out, in the order of the agent's answer."""
        quotes = (
            (segment.segment_index, presence.document_type, evidence.snippet)
            for segment in self._agent_segments
            for presence in segment.segment_composition
            for evidence in presence.top_evidence
            if self._find_quote_verdict(segment, presence.document_type, evidence) == "confirmed"
        )
        return tuple(
            RefutedQuote(segment=index, document_type=document_type, snippet=snippet)
            for index, document_type, snippet in dict.fromkeys(quotes)
        )

    @cached_property
    def removed_types(self) -> frozenset[_TypeInSegment]:
        """Segment number and type of each type that the expert says is not there."""
        return frozenset(
            (issue.segment_index, issue.document_type)
            for issue, verdict, effect in self.judged_issues
            if effect == "remove_type" and verdict == "confirmed"
        )

    def compare_with_record(
        self, typed_page_ranges: Sequence[tuple[int, int, DocumentType | None]]
    ) -> Iterator[tuple[JudgedIssue, str, bool]]:
        """Compare the expert's verdicts with an answer's page ranges and their types.

        Each row is an issue, the part that its question is about (``boundary:3``, ``segment:2``, ``patients``, or empty) and
        True if the segments agree with the expert's answer.
        """
        for judged in self.judged_issues:
            issue, is_change = judged.issue, judged.verdict == "confirmed"
            part, is_changed = "", is_change
            if judged.effect in ("begin_document", "join_document"):
                begins = any(start_page == issue.page for start_page, *_ in typed_page_ranges)
                part, is_changed = f"boundary:{issue.page}", begins == (judged.effect == "begin_document")
            elif judged.effect == "decide_boundary":
                part = f"boundary:{issue.page}"
            elif judged.effect == "choose_type" and (source := self._find_source(issue)):
                own_ranges = [
                    (number, document_type)
                    for number, (start_page, end_page, document_type) in enumerate(typed_page_ranges, 1)
                    if start_page <= source.end_page and end_page >= source.start_page
                ]
                if own_ranges:  # the expert may have divided the document of the question
                    changed = [
                        number for number, document_type in own_ranges if document_type is not source.dominant_type
                    ]
                    part, is_changed = f"segment:{(changed or [own_ranges[0][0]])[0]}", bool(changed)
            elif judged.effect == "choose_type" and issue.document_type:
                is_changed = all(document_type != issue.document_type for *_, document_type in typed_page_ranges)
            elif judged.effect == "remove_type":
                is_changed = is_change and self.removes_types
            elif judged.effect == "other_patient":
                part, is_changed = "patients", self.flags_other_patient
            yield judged, part, is_changed == is_change

    def find_contradiction(self, typed_page_ranges: Sequence[tuple[int, int, DocumentType | None]]) -> str:
        """Find a part of an answer that contradicts an own verdict; return a question.

        Empty if there is none.
        """
        for judged, part, agrees in self.compare_with_record(typed_page_ranges):
            is_change, answers = judged.verdict == "confirmed", get_issue_answers(judged.issue)
            # Other documents of the file may be another patient's, also if these pages are not.
            if not agrees and (is_change or part != "patients"):
                return (
                    f"You answered “{answers.change if is_change else answers.keep}” to “{describe_issue(judged.issue)}”, "
                    f"but the answer is {'unchanged' if is_change else 'changed'} there. Is it to be recorded as it is?"
                )
        return ""

    def describe_struck_quotes(self) -> Iterator[str]:
        """Describe to the clinician which quotes each confirmed issue strikes out."""
        struck = {_build_quote_key(quote.segment, quote.document_type, quote.snippet, None) for quote in self.refuted}
        for issue, verdict, effect in self.judged_issues:
            if effect == "strike_quote" and verdict == "confirmed":
                is_struck = _build_quote_key(issue.segment_index, issue.document_type, issue.quote, None) in struck
                yield f"Struck: “{issue.quote}”" if is_struck else f"Not in the answer, so not struck: “{issue.quote}”"

    def choose_vouched_parts(
        self, answer: ClassificationOutput, revised: ReviewedClassification, parts: Iterable[str]
    ) -> tuple[str, ...]:
        """Choose the parts of a revised answer that the expert confirms as right.

        ``parts`` without the shares if striking changed them (nor the overall type if it no longer has the largest), and a
        part for each question that the record answers as the expert did.
        """
        unvouched: set[str] = set()
        if answer.document_mixture != revised.document_mixture:
            largest_type = choose_dominant_type(revised.document_mixture, revised.segments)
            unvouched = {"mixture"} | ({"dominant_type"} if largest_type != revised.dominant_type_overall else set())
        questions = [*self.compare_with_record(revised.typed_page_ranges)]
        unvouched |= {part for _, part, agrees in questions if not agrees} | {""}
        return tuple(
            part for part in dict.fromkeys([*parts, *(part for _, part, _ in questions)]) if part not in unvouched
        )

    def apply_to(self, answer: ClassificationOutput, *, keeps_mixture: bool = False) -> ReviewedClassification:
        """Strike, add and mark quotes in an answer that rates all types per segment.

        A type whose quotes are all struck is no longer present, and the shares of the others are divided by their sum. The
        type of a segment stays: its evidence is marked as refuted. If a share changes, so does the mixture, unless
        ``keeps_mixture``.
        """
        segments = tuple(self._revise_segment(segment) for segment in answer.segments)
        shares_before, shares_after = (
            [presence.segment_share for segment in version for presence in segment.segment_composition]
            for version in (answer.segments, segments)
        )
        mixture = answer.document_mixture
        if shares_before != shares_after and not keeps_mixture:
            with suppress(ValueError):  # the shares of an answer that nobody vouches for may break every rule
                mixture = compute_page_weighted_mixture(segments)
        return ReviewedClassification(**dict(answer) | {"segments": segments, "document_mixture": mixture})

    def _revise_segment(self, segment: Segment) -> ReviewedSegment:
        sources = [
            source
            for source in self._agent_segments
            if source.start_page <= segment.end_page and segment.start_page <= source.end_page
        ]
        presences = [
            self._revise_presence(ReviewedPresence.model_validate(presence), segment, sources)
            for presence in segment.segment_composition
        ]
        fallen_share = sum(
            before.segment_share - after.segment_share
            for before, after in zip(segment.segment_composition, presences, strict=True)
        )
        shares = [presence.segment_share for presence in presences]
        if fallen_share and any(shares) and min(shares) >= 0:
            shares = normalise_shares(shares)
            presences = [
                presence.model_copy(update={"segment_share": share, "share_vouched": False}) if share else presence
                for presence, share in zip(presences, shares, strict=True)
            ]
        return ReviewedSegment(**dict(segment) | {"segment_composition": tuple(presences)})

    def _revise_presence(
        self, presence: ReviewedPresence, segment: Segment, sources: Sequence[Segment]
    ) -> ReviewedPresence:
        document_type, is_main_type = presence.document_type, presence.document_type is segment.dominant_type
        verdicts = [
            {
                self._find_quote_verdict(source, document_type, evidence)
                for source in sources
                if any(
                    (quote.snippet, quote.page) == (evidence.snippet, evidence.page)
                    for claim in source.segment_composition
                    if claim.document_type is document_type
                    for quote in claim.top_evidence
                )
            }
            for evidence in presence.top_evidence
        ]
        own_quotes = [
            ReviewedEvidence(snippet=quote.snippet, page=quote.page, boxes=quote.boxes, by="expert", vouched=True)
            for quote in self.quotes
            if segment.start_page <= quote.page <= segment.end_page
            and (quote.document_type or segment.dominant_type) is document_type
        ]
        evidence = (
            *(
                evidence.model_copy(update={"vouched": "dismissed" in verdict})
                for evidence, verdict in zip(presence.top_evidence, verdicts, strict=True)
                if "confirmed" not in verdict
            ),
            *own_quotes,
        )
        changes: dict[str, object] = {"top_evidence": evidence}
        is_refuted = not evidence and bool(presence.top_evidence)
        is_removed = self.removes_types and any(
            (source.segment_index, document_type) in self.removed_types for source in sources
        )
        if is_main_type:
            changes["evidence"] = "refuted" if is_refuted else None
        elif is_refuted or (is_removed and not own_quotes):
            changes |= {"presence_level": NO_EVIDENCE, "confidence": 0.0, "segment_share": 0.0, "top_evidence": ()}
        elif own_quotes and presence.presence_level is NO_EVIDENCE:
            changes |= {"presence_level": PresenceLevel.MENTION_ONLY, "confidence": 1.0}
        return presence.model_copy(update=changes)

    def iterate_changes(self, answer: ReviewedClassification) -> Iterator[str]:
        """Describe each difference of a reviewed answer from the agent's in one line.

        Pages of the segments, struck quotes, types of segments, types that are no longer present, added quotes.
        """
        sources, segments = (
            {(segment.start_page, segment.end_page): segment for segment in version}
            for version in (self._agent_segments, answer.segments)
        )
        if sources.keys() != segments.keys():
            ranges = (", ".join(f"{first}-{last}" for first, last in version) for version in (sources, segments))
            yield f"pages of the segments: {' -> '.join(ranges)}"
        for quote in self.refuted:
            yield f"segment {quote.segment}, {quote.document_type}: quote struck: {quote.snippet}"
        for segment in answer.segments:
            label, source = f"segment {segment.segment_index}", sources.get((segment.start_page, segment.end_page))
            if source and source.dominant_type is not segment.dominant_type:
                yield f"{label}: type {source.dominant_type or 'unknown'} -> {segment.dominant_type or 'unknown'}"
            claims = {claim.document_type: claim for claim in source.segment_composition} if source else {}
            for presence in segment.segment_composition:
                claim = claims.get(presence.document_type, presence)
                if claim.presence_level is not presence.presence_level is NO_EVIDENCE:
                    yield f"{label}, {presence.document_type}: {claim.presence_level} -> {NO_EVIDENCE}"
                for evidence in presence.top_evidence:
                    if evidence.by:
                        yield f"{label}, {presence.document_type}: expert's quote added: {evidence.snippet or 'a marked place'}"


def _build_quote_key(
    segment_index: int | None, document_type: str | None, words: str | None, page: int | None
) -> _QuoteKey:
    return segment_index, document_type, " ".join((words or "").split()), page
