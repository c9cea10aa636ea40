"""Cases about a classification: the file's type, its segments and its shares."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any, ClassVar, Literal, cast

from typing_extensions import override

from evalkit.classification.autofix import AutoFixEngine, Repair
from evalkit.classification.document_result import SCHEMA_VERSION as RESULT_VERSION
from evalkit.classification.document_result import DocumentResult
from evalkit.classification.patient_keys import (
    attach_patient_keys,
    compute_patient_keys_by_page_range,
    load_or_create_patient_salt,
)
from evalkit.classification.schema import (
    ClassificationOutput,
    DocumentType,
    PresenceLevel,
    ReviewedClassification,
    Segment,
)
from evalkit.core.wording import format_page_numbers, format_page_ranges
from evalkit.documents.bundle import BUNDLE_SCHEMA_VERSION, DocumentBundle
from evalkit.documents.identity.file_persons import group_pages_by_person, read_page_facts
from evalkit.errors import EvalkitError, NotFound, ReviewRefused
from evalkit.issue import Issue, IssueSeverity, sort_by_severity
from evalkit.review.case import (
    BoundaryDoubt,
    CaseKind,
    RecordLine,
    ReviewCase,
    ViewingRequirements,
)
from evalkit.review.corrections import (
    CLASSIFICATION_PARTS,
    ClassificationPart,
    correct_classification,
    find_rule_violations,
    list_corrected_parts,
    repair_validated_classification,
)
from evalkit.review.draft import Draft, ExpertQuote, SegmentFlag
from evalkit.review.expert_answers import ExpertAnswers
from evalkit.review.gapless_segments import DisputedSeam, SegmentDraft, fit_segments_to_file, is_gapless
from evalkit.review.ground_truth import (
    GroundTruth,
    GroundTruthRecord,
    Review,
    ReviewOutcome,
    ShownMachineAnswers,
    remove_mismatched_silver_fields,
)
from evalkit.review.packet import (
    ADJUDICATION_SUFFIX,
    SECOND_SUFFIX,
    ReviewReason,
    SMEPacket,
    build_packet_fields,
)
from evalkit.review.plain_sentences import describe_issue, get_issue_answers
from evalkit.review.review_plan import AskedPart, ReviewCosts, ReviewPlan, plan_classification_review
from evalkit.review.submission import Correction, Submission, build_incomplete_review_error, parse_verdicts
from evalkit.store import OutputFolder, bundle_file_name, result_file_name

MAJOR, NO_EVIDENCE = IssueSeverity.MAJOR, PresenceLevel.NO_EVIDENCE

#: The parts for which an expert vouches by validating, unless ``vouched`` names others.
DEFAULT_VOUCHED_PARTS: tuple[ClassificationPart, ...] = ("dominant_type", "segments")

#: Codes of the issues that ask whether a document begins on a page.
BOUNDARY_CODES = ("V2-BOUNDARY-DOUBT", "V2-PAGE-OVERLAP", "V2-PAGE-GAP", "CLASSIFIER-BOUNDARY-UNSURE")

_PART_WORDS: dict[ClassificationPart, str] = {
    "dominant_type": "file type",
    "segments": "document pages and types",
    "mixture": "shares of the types",
}

_IssuePredicate = Callable[[Issue], bool]


def _is_fixable_major(issue: Issue) -> bool:
    return issue.severity is MAJOR and issue.auto_fixable


def _is_unfixable_major(issue: Issue) -> bool:
    return issue.severity is MAJOR and not issue.auto_fixable


# fmt: off
#: For each rule of the arbiter's table, the open issues that made the rule apply.
COUNTED_ISSUES_BY_RULE: dict[str, _IssuePredicate] = {
    "1":       lambda issue: issue.severity is IssueSeverity.BLOCKER,
    "2":       lambda issue: issue.severity is MAJOR,
    "3":       _is_unfixable_major,
    "4":       _is_unfixable_major,
    "5":       _is_fixable_major,
    "6":       lambda issue: issue.severity is IssueSeverity.MINOR,
    "7":       lambda issue: False,
    "8":       lambda issue: True,
    "retries": _is_fixable_major,
    "cycle":   _is_fixable_major,
}
# fmt: on


class ClassificationPacket(SMEPacket):
    """Stored case about a document's classification."""

    has_attention_checks: ClassVar[bool] = True
    kind: Literal["classification"] = "classification"

    @classmethod
    def create(
        cls,
        result: DocumentResult,
        bundle: DocumentBundle,
        *,
        review_reason: ReviewReason,
        inclusion_probability: float,
        production_row: Mapping[str, Any] | None,
        created_at: str,
    ) -> ClassificationPacket:
        """Build the case about one document's result.

        ``inclusion_probability`` is 0..1. ``production_row`` is the production classifier's answer: ``dominant_type`` (one of
        the five types or None) and optionally ``label``, ``confidence`` and ``segments``; None if there is no such answer.
        ``created_at`` is ISO 8601 in UTC.
        """
        fields = {
            "case_id": result.doc_id,
            "doc_id": result.doc_id,
            "v5_decision": result.decision,
            "decision_rule": result.decision_rule,
            "decision_reason": result.decision_reason,
            "production_differs": _differs_from_production_type(result.classification, production_row),
            "production_classification": None if production_row is None else dict(production_row),
            "review_reason": review_reason,
            "inclusion_probability": inclusion_probability,
            "created_at": created_at,
        }
        return cls(**build_packet_fields(bundle, result.issues, result.classification) | fields)

    @property
    @override
    def is_first_review_blind(self) -> bool:
        """True if the first reviewer must answer before the agent's answer is shown.

        This applies to audits, samples and second opinions.
        """
        if self.case_id.endswith(ADJUDICATION_SUFFIX):
            return False
        return self.review_reason in ("audit", "sample") or self.case_id.endswith(SECOND_SUFFIX)

    @property
    @override
    def asked_question(self) -> str:
        is_asked_by_check = self.review_reason == "escalated" and self.case_id == self.doc_id and self.open_issues
        return describe_issue(self.open_issues[0]) if is_asked_by_check else self.decision_reason

    @override
    def plan_review(self, costs: ReviewCosts, source: str = "") -> ReviewPlan:
        if self.classification is None or self.review_reason != "escalated" or self.case_id != self.doc_id:
            return super().plan_review(costs, source)
        required = self.whole_requirements
        issue_pages = {
            page for issue in self.open_issues if issue.issue_id in required.issue_ids for page in (issue.page,) if page
        }
        whole_pages = {page for page in (*required.page_numbers, *issue_pages) if page <= self.total_pages}
        return plan_classification_review(
            self.case_id, self.classification, self.open_issues, whole_pages, self.total_pages, costs, source
        )

    @property
    def whole_requirements(self) -> ViewingRequirements:
        """Parts that must be seen to validate the whole answer.

        They are each segment's first page, and the issues that escalated.
        """
        first_pages = {segment.start_page for segment in self.segments if 1 <= segment.start_page <= self.total_pages}
        # For an unknown rule, every open issue is required.
        is_counted = COUNTED_ISSUES_BY_RULE.get(self.decision_rule, COUNTED_ISSUES_BY_RULE["8"])
        issue_ids = (issue.issue_id for issue in self.open_issues if is_counted(issue))
        return ViewingRequirements(page_numbers=tuple(sorted(first_pages)), issue_ids=tuple(issue_ids))

    @override
    def with_asked_questions(self) -> ClassificationPacket:
        questions = [_build_question(asked, self.segments) for asked in self.asked_parts if not asked.issue_ids]
        return self.model_copy(update={"issues": tuple(sort_by_severity([*questions, *self.issues]))})

    @property
    @override
    def indexed_type(self) -> str:
        return self.classification.dominant_type_overall or "" if self.classification else ""


def _build_question(asked: AskedPart, segments: Sequence[Segment]) -> Issue:
    """Build the question about an asked part of which only the certainty is low."""
    kind, _, number = asked.part.partition(":")
    facts: dict[str, Any] = {"percent": round(100 * (1 - asked.risk))}
    if kind == "boundary":
        begins = any(segment.start_page == int(number) for segment in segments)
        question = Issue.create(
            "classifier",
            "CLASSIFIER-BOUNDARY-UNSURE",
            MAJOR,
            f"it is not certain whether a document begins on page {number}",
            page=int(number),
            facts=facts | {"doubt": "begins" if begins else "continues"},
        )
    else:
        segment = next(segment for segment in segments if segment.segment_index == int(number))
        question = Issue.create(
            "classifier",
            "CLASSIFIER-TYPE-UNSURE",
            MAJOR,
            f"the type of segment {number} is not certain",
            page=segment.start_page,
            segment_index=segment.segment_index,
            document_type=segment.dominant_type,
            facts=facts | {"pages": format_page_ranges([(segment.start_page, segment.end_page)])},
        )
    return question.model_copy(update={"issue_id": asked.part})


def _differs_from_production_type(
    classification: ClassificationOutput | None, production_row: Mapping[str, Any] | None
) -> bool | None:
    if production_row is None or production_row["dominant_type"] is None:
        return None
    # A missing answer and "cannot tell" count as different from every type.
    return classification is None or classification.dominant_type_overall != production_row["dominant_type"]


@dataclass(frozen=True)
class ClassificationCorrection(Correction):
    """An expert's corrections of a classification; None leaves a part unchanged."""

    dominant_type: str | None = None
    segments: Sequence[Any] | None = None
    mixture: Sequence[Any] | None = None
    quotes: Sequence[ExpertQuote] | None = None
    """The expert's own quotes for types. Not None means that the evidence is corrected: types that the expert says are not
    there are removed."""

    @property
    def parts(self) -> tuple[ClassificationPart, ...]:
        """Names of the parts that are corrected."""
        return list_corrected_parts(self.dominant_type, self.segments, self.mixture)


class ClassificationReviewCase(ReviewCase):
    """An open case about a classification."""

    packet: ClassificationPacket

    _changed_sentence = "You have changed the classification: submit it as a correction."

    @override
    def compute_mixture_after_review(self, draft: Draft) -> tuple[tuple[DocumentType, float], ...]:
        repaired = self._classification_after_repair
        is_own = draft.mixture is not None or "segments" in self._find_changed_parts(draft)
        if repaired is None or self.is_blind or is_own:
            return super().compute_mixture_after_review(draft)
        return tuple((entry.document_type, entry.overall_share) for entry in repaired.document_mixture)

    @override
    def get_viewing_requirements(self, draft: Draft) -> ViewingRequirements:
        """Get each segment's first page, and the issues that made the arbiter escalate.

        In a blind case, only the first pages of the draft's segments; in a short one, only what is asked.
        """
        if self.is_short(draft):
            return ViewingRequirements(
                page_numbers=tuple(sorted({page for asked in self.packet.asked_parts for page in asked.pages})),
                issue_ids=tuple(
                    dict.fromkeys(name for asked in self.packet.asked_parts for name in asked.question_ids)
                ),
            )
        if self.is_blind:
            return ViewingRequirements(tuple(segment.start_page for segment in draft.segments), issue_ids=())
        return self.packet.whole_requirements

    @override
    def is_short(self, draft: Draft) -> bool:
        """Return True if the expert opened and changed only the parts in doubt."""
        asked_names = {asked.part for asked in self.packet.asked_parts}
        if not asked_names or draft.shows_everything:
            return False
        asked_pages = {int(part.partition(":")[2]) for part in asked_names if part.startswith("boundary:")}
        types, agent_types = (
            {segment.start_page: segment.dominant_type for segment in version.segments}
            for version in (draft, self.agent_draft)
        )
        is_asked_type = {
            segment.start_page: f"segment:{segment.segment_index}" in asked_names for segment in self.packet.segments
        }
        return (
            (types.keys() ^ agent_types.keys()) <= asked_pages
            and all(types[page] is agent_types[page] or is_asked_type.get(page) for page in types.keys() & agent_types)
            and draft.mixture is None
            and draft.dominant_type in (self.agent_draft.dominant_type, draft.set_dominant_type(None).dominant_type)
        )

    @cached_property
    @override
    def _unvalidatable_reason(self) -> str | None:
        if self.packet.classification is None:
            return "The program gave no usable answer, so there is nothing to validate. Give your own answer."
        violations = self._find_violations_after_repair(DEFAULT_VOUCHED_PARTS)
        if not violations:
            return None
        more = f" ({len(violations) - 1} more)" if len(violations) > 1 else ""
        return f"The program's answer cannot be right as it is, so it can only be corrected: {describe_issue(violations[0])}{more}"

    @cached_property
    @override
    def boundary_doubts(self) -> tuple[BoundaryDoubt, ...]:
        """Pages where a boundary is in doubt or page ranges do not fit; none if blind."""
        if self.is_blind:
            return ()
        issue_ids = {
            issue.page: issue.issue_id for issue in reversed(self.packet.open_issues) if issue.code in BOUNDARY_CODES
        }
        pages = sorted(
            page for page in {*issue_ids, *self._seams_by_page} if page and 2 <= page <= self.packet.total_pages
        )
        return tuple(BoundaryDoubt(page, issue_ids.get(page), page in self._seams_by_page) for page in pages)

    @override
    def mark_target_and_page_seen(self, draft: Draft, target_id: str, page: int) -> Draft:
        draft = draft.show_page_and_mark_seen(page)
        context = self.get_issue_context(target_id)
        issue_page = context.page_found or context.issue.page
        is_elsewhere = issue_page not in (None, page) and 1 <= (issue_page or 0) <= self.packet.total_pages
        return draft if is_elsewhere else draft.show_issue_and_mark_seen(target_id)

    def answer_boundary(self, draft: Draft, page: int, *, begins: bool | None) -> Draft:
        """Record the answer to a boundary doubt, with its effect on segments and issues.

        None takes the answer back. NotFound if no document's beginning on this page is in doubt.
        """
        if all(doubt.page != page for doubt in self.boundary_doubts):
            raise NotFound("no boundary is in doubt on this page", code="BOUNDARY-UNKNOWN", remedy="Reload the page.")
        draft = self.restore_boundary(draft, page) if begins is None else self._draw_boundary(draft, page, begins)
        for issue in self.packet.open_issues:
            if issue.code in BOUNDARY_CODES and issue.page == page:
                effect = get_issue_answers(issue).effect
                is_changed = effect == "decide_boundary" or begins == (effect == "begin_document")
                verdict: Literal["confirmed", "dismissed"] = "confirmed" if is_changed else "dismissed"
                draft = draft.set_issue_verdict(issue.issue_id, None if begins is None else verdict)
                draft = draft.show_issue_and_mark_seen(issue.issue_id)
        return draft

    def restore_boundary(self, draft: Draft, page: int) -> Draft:
        """Restore the program's segments around a page, with its boundary undecided."""
        begins = any(page == segment.start_page for segment in self.agent_draft.segments)
        draft = self._draw_boundary(draft, page, begins)
        seam = self._seams_by_page.get(page)
        undecided = {page, seam.next_start} if seam else {page}
        decided = [decided for decided in draft.boundaries_decided if decided not in undecided]
        return draft.model_copy(update={"boundaries_decided": tuple(decided)})

    def _draw_boundary(self, draft: Draft, page: int, begins: bool) -> Draft:
        """Decide a boundary; a document that begins there has the program's type."""
        seam, starts = self._seams_by_page.get(page), [segment.start_page for segment in draft.segments]
        draft = draft.decide_boundary(
            page, begins=begins, next_start=seam.next_start if seam and seam.next_start > page else None
        )
        programs = next((segment for segment in self.agent_draft.segments if segment.start_page == page), None)
        # Nobody knows yet what the new document of a short case is: its first page is on screen, so the expert says it.
        if not begins or page in starts or (programs is None and not self.is_short(draft)):
            return draft
        position = [segment.start_page for segment in draft.segments].index(page)
        return draft.set_segment_type(position, programs.dominant_type if programs else None)

    @cached_property
    def _seams_by_page(self) -> dict[int, DisputedSeam]:
        _, seams = fit_segments_to_file(self.packet.segments, self.packet.total_pages)
        return {seam.page: seam for seam in seams}

    def _describe_undecided_seams(self, draft: Draft) -> str | None:
        pages = [
            seam.page
            for seam in self._seams_by_page.values()
            if not self.is_blind and {seam.page, seam.next_start}.isdisjoint(draft.boundaries_decided)
        ]
        if not pages:
            return None
        return f"The program's documents overlap or leave pages out: decide whether a document begins on {format_page_numbers(pages)}"

    @override
    def explain_validation_block(self, draft: Draft) -> str | None:
        undecided = None if self.is_locked else self._describe_undecided_seams(draft)
        return undecided or super().explain_validation_block(draft)

    @override
    def has_expert_changes(self, draft: Draft) -> bool:
        """Return True if the draft's page ranges, types or shares differ from the agent's.

        Notes, flags, quotes and verdicts do not count, but for a verdict that a type is not there. In a blind case, True if the
        expert has given every segment a type.
        """
        if self.is_blind:
            return not _list_untyped_segments(draft)
        return bool(self._find_changed_parts(draft) or self._get_answers(draft).removed_types)

    @override
    def describe_changes(self, draft: Draft) -> tuple[str, ...]:
        if self.is_blind:
            return ()
        refitted = ("The program's page ranges, which did not fit the file, as drawn",) if self._is_refitted else ()
        return (*refitted, *_describe_draft_changes(self.agent_draft, draft))

    @override
    def find_contradiction(self, draft: Draft) -> str:
        if self.is_blind:
            return ""
        return self._get_answers(draft).find_contradiction(
            [(segment.start_page, segment.end_page, segment.dominant_type) for segment in draft.segments]
        )

    @override
    def describe_record(self, draft: Draft) -> tuple[RecordLine, ...]:
        return tuple(dict.fromkeys(self._iterate_record_lines(draft)))

    def _iterate_record_lines(self, draft: Draft) -> Iterator[RecordLine]:
        for segment in draft.segments:
            yield RecordLine(f"{_format_pages(segment)}: {_format_document_type(segment.dominant_type)}", "type")
        if len(draft.segments) > 1:
            yield RecordLine(f"The whole file: {_format_document_type(draft.dominant_type)}", "type")
        answers, changed_parts = self._get_answers(draft), self._find_changed_parts(draft)
        if not self.is_blind:
            yield from (RecordLine(text, "quote") for text in answers.describe_struck_quotes())
        for quote in answers.quotes:
            yield RecordLine(f"Added from page {quote.page}: “{quote.snippet or 'the marked place'}”", "quote")
        quote_words = ""
        if self._classification_after_repair and not self.is_blind and "segments" not in changed_parts:
            lines, quote_words = _describe_evidence(self._classification_after_repair, answers)
            yield from lines
        yield from (RecordLine(sentence, "change") for sentence in self.describe_changes(draft))
        if not self.is_blind:
            yield from (RecordLine(sentence, "change") for sentence in self._describe_mere_answers(draft))
        is_corrected = self.is_blind or bool(changed_parts)
        parts = (
            _choose_vouched_parts(None, "corrected", tuple(self._choose_corrected_parts(draft)))
            if is_corrected
            else self._choose_vouched_parts(draft)
        )
        if self.is_short(draft):
            yield RecordLine(f"You vouch for: {'; '.join(self._describe_asked_parts(draft))}", "vouch")
            yield RecordLine("The rest stays as the program has it; nobody vouches for it", "vouch")
            return
        part_words = ", ".join(_PART_WORDS[part] for part in parts) or "nothing"
        yield RecordLine(f"You vouch for: {part_words}{quote_words}", "vouch")

    def _describe_mere_answers(self, draft: Draft) -> Iterator[str]:
        """Describe the answers from which nothing else in the record follows."""
        confirmed_ids = {verdict.issue_id for verdict in draft.issue_verdicts if verdict.verdict == "confirmed"}
        for issue in self.packet.open_issues:
            answers = get_issue_answers(issue)
            if issue.issue_id in confirmed_ids and answers.effect == "none":
                yield f"Your answer to “{describe_issue(issue)}”: {answers.change}"

    def _describe_asked_parts(self, draft: Draft) -> Iterator[str]:
        """Describe what is asked, with the draft's answer, in the order of the pages."""
        start_by_number = {segment.segment_index: segment.start_page for segment in self.packet.segments}
        segments = {segment.start_page: segment for segment in draft.segments}
        for asked in sorted(self.packet.asked_parts, key=lambda asked: asked.pages):
            kind, _, number = asked.part.partition(":")
            page = int(number) if kind == "boundary" else start_by_number.get(int(number or 0), 0)
            if kind == "boundary":
                yield f"{'a' if page in segments else 'no'} new document begins on page {page}"
            if page in segments and (kind == "segment" or page not in start_by_number.values()):
                pages = format_page_ranges([(segments[page].start_page, segments[page].end_page)])
                yield f"type of {pages}: {_format_document_type(segments[page].dominant_type)}"
            if kind == "patients":
                yield "whose pages these are"

    def _get_answers(self, draft: Draft) -> ExpertAnswers:
        """Get the draft's answers about the agent's answer; denied types are removed."""
        return ExpertAnswers(
            self.packet.classification,
            self.packet.issues,
            draft.issue_verdicts,
            _list_type_quotes(draft),
            removes_types=True,
            flags_other_patient=any(flag.flag == "other_patient" for flag in draft.flags),
        )

    @override
    def is_same_as_agent(self, draft: Draft) -> bool:
        return not self._find_changed_parts(draft) - {"mixture"}

    @override
    def describe_disagreement(self, draft: Draft) -> dict[str, str]:
        if self.is_same_as_agent(draft):
            return {}
        own_ranges = {(segment.start_page, segment.end_page, segment.dominant_type) for segment in draft.segments}
        segments = self.packet.segments
        disputed = [
            part for part in segments if (part.start_page, part.end_page, part.dominant_type) not in own_ranges
        ][:1]
        quotes = [
            f"because it reads “{quote.snippet}” on page {quote.page}"
            for part in disputed
            for presence in part.segment_composition
            if presence.document_type == part.dominant_type
            for quote in presence.top_evidence
        ]
        reasons = [f"its reason: {part.reasoning}" for part in disputed if part.reasoning]
        is_type_same = draft.dominant_type is self.agent_draft.dominant_type
        return {
            "you": _summarise_draft(draft, with_pages=is_type_same),
            "program": _summarise_draft(self.agent_draft, with_pages=is_type_same) if segments else "no usable answer",
            "because": next(iter(quotes + reasons), ""),
        }

    @override
    def _build_answer_fields(self, draft: Draft, *, is_validation: bool, is_undeterminable: bool) -> dict[str, Any]:
        if is_undeterminable:
            correction = ClassificationCorrection()
        else:
            parts: frozenset[ClassificationPart] = frozenset() if is_validation else self._choose_corrected_parts(draft)
            quotes, is_evidence_corrected = _list_type_quotes(draft), self._get_answers(draft).removed_types
            correction = ClassificationCorrection(
                dominant_type=draft.dominant_type if "dominant_type" in parts else None,
                segments=draft.segments if "segments" in parts else None,
                mixture=list((draft.mixture or {}).items()) if "mixture" in parts else None,
                quotes=quotes if quotes or (is_evidence_corrected and not is_validation) else None,
            )
        is_agent_answer_kept = not is_undeterminable and not correction.parts
        return {
            "agrees": (is_agent_answer_kept and not correction.is_change) or None,
            "corrections": (correction,),
            "vouched": self._choose_vouched_parts(draft) if is_agent_answer_kept else None,
            "shown": ShownMachineAnswers(agent=not self.is_blind, form="short" if self.is_short(draft) else "whole"),
            "segment_flags": tuple(_build_segment_flags(draft)),
        }

    @cached_property
    def _classification_after_repair(self) -> ClassificationOutput | None:
        """The agent's classification after the repairs that a validation applies."""
        answer = self.packet.classification
        return AutoFixEngine().apply(answer, self.packet.open_issues)[0] if answer else None

    def _find_violations_after_repair(self, parts: Iterable[ClassificationPart]) -> list[Issue]:
        answer = self._classification_after_repair
        return find_rule_violations(answer, self.bundle, parts) if answer else []

    def _choose_vouched_parts(self, draft: Draft) -> tuple[ClassificationPart, ...]:
        if self.is_blind:
            return DEFAULT_VOUCHED_PARTS  # a blind expert neither sees nor states shares
        # Shares that break a rule are not vouched for, so that they do not block the validation of type and segments.
        if draft.mixture_seen and not self._find_violations_after_repair(CLASSIFICATION_PARTS):
            return CLASSIFICATION_PARTS
        return DEFAULT_VOUCHED_PARTS

    @cached_property
    def agent_draft(self) -> Draft:
        """The agent's answer as a draft."""
        return Draft.from_packet(self.packet)

    @cached_property
    def _is_refitted(self) -> bool:
        """True if the program's page ranges did not fit the file."""
        segments = sorted(self.packet.segments, key=lambda segment: segment.start_page)
        return bool(fit_segments_to_file(segments, self.packet.total_pages)[0]) and not is_gapless(
            segments, self.packet.total_pages
        )

    def _find_changed_parts(self, draft: Draft) -> frozenset[ClassificationPart]:
        is_different_by_part: dict[ClassificationPart, bool] = {
            "dominant_type": draft.dominant_type != self.agent_draft.dominant_type,
            "segments": self._is_refitted or draft.segments != self.agent_draft.segments,
            "mixture": draft.mixture is not None,
        }
        return frozenset(part for part, is_different in is_different_by_part.items() if is_different)

    @override
    def _find_obstacle_and_remedy(self, draft: Draft) -> tuple[str, str] | None:
        undecided = self._describe_undecided_seams(draft)
        return (undecided, "Answer y or n beside the two pages.") if undecided else self._find_gap_in_answer(draft)

    def _find_gap_in_answer(self, draft: Draft) -> tuple[str, str] | None:
        parts = frozenset(DEFAULT_VOUCHED_PARTS) if self.is_blind else self._find_changed_parts(draft)
        is_evidence_only = not parts and self._corrects_only_evidence(draft)
        unseen = self._describe_unseen(draft) if is_evidence_only or self.is_short(draft) else None
        if unseen or is_evidence_only:
            return (unseen, "Look at what is missing: you vouch for it.") if unseen else None
        if not parts and not (self.explain_permanent_validation_block() and draft.notes.strip()):
            return (
                "nothing was changed",
                "Change a document's pages, its type or the shares, or validate the answer as it is.",
            )
        if "segments" in parts and (untyped_segments := _list_untyped_segments(draft)):
            page_words = format_page_ranges([(segment.start_page, segment.end_page) for segment in untyped_segments])
            return f"{page_words} {'have' if page_words.startswith('pages') else 'has'} no type yet", "Choose a type."
        if draft.dominant_type is None and parts != {"mixture"}:
            return "the file has no type yet", "Choose the file's type, or submit “Cannot tell” with a reason."
        # A blind answer, or one adopted from a colleague, counts only if its author saw the first page of each document;
        # so does one about a file of which only parts are in doubt.
        unseen_pages = [segment.start_page for segment in draft.segments if segment.start_page not in draft.pages_seen]
        is_opened_whole = bool(self.packet.review_plan and self.packet.review_plan.asked) and not self.is_short(draft)
        if unseen_pages and (self.is_blind or is_opened_whole or self.packet.case_id.endswith(ADJUDICATION_SUFFIX)):
            return (
                f"{format_page_numbers(unseen_pages)} not yet seen",
                "Look at the first page of each of your documents.",
            )
        return None

    def _choose_corrected_parts(self, draft: Draft) -> frozenset[ClassificationPart]:
        """Choose the parts that a submission of the draft corrects.

        A correction of the segments, or one of notes only, includes the overall type. The result is empty if a blind answer
        equals the agent's answer and that answer can be validated, or if only the evidence is corrected.
        """
        parts = self._find_changed_parts(draft)
        if not parts and self._corrects_only_evidence(draft):
            return parts
        if self.is_blind:
            if not parts and self._unvalidatable_reason is None:
                return parts
            return parts | set(DEFAULT_VOUCHED_PARTS)  # a blind expert has given the whole answer
        return parts | {"dominant_type"} if not parts or "segments" in parts else parts

    def _corrects_only_evidence(self, draft: Draft) -> bool:
        """Return True if an answer that can be validated has a type that is denied."""
        return bool(self._get_answers(draft).removed_types) and self._unvalidatable_reason is None


def _describe_evidence(before: ClassificationOutput, answers: ExpertAnswers) -> tuple[list[RecordLine], str]:
    """Describe types without quotes or removed, and the quotes vouched for."""
    after = answers.apply_to(before)
    lines: list[RecordLine] = []
    for segment_before, segment in zip(before.segments, after.segments, strict=True):
        for presence_before, presence in zip(
            segment_before.segment_composition, segment.segment_composition, strict=True
        ):
            if presence.evidence:
                lines.append(RecordLine(f"{_format_pages(segment)}: no quote shows {presence.document_type}", "quote"))
            elif presence_before.presence_level is not presence.presence_level is NO_EVIDENCE:
                lines.append(RecordLine(f"{_format_pages(segment)}: no {presence.document_type} there", "change"))
    quotes = [
        evidence
        for segment in after.segments
        for presence in segment.segment_composition
        for evidence in presence.top_evidence
    ]
    vouched_count = sum(quote.vouched is True for quote in quotes)
    return lines, f"; {vouched_count} of {len(quotes)} quote{'s' * (len(quotes) > 1)}" if quotes else ""


def _list_type_quotes(draft: Draft) -> tuple[ExpertQuote, ...]:
    return tuple(quote for quote in draft.evidence if quote.field_key is None)


def _format_pages(segment: Segment | SegmentDraft) -> str:
    return format_page_ranges([(segment.start_page, segment.end_page)]).capitalize()


def _list_untyped_segments(draft: Draft) -> list[SegmentDraft]:
    return [segment for segment in draft.segments if segment.dominant_type is None]


def _describe_draft_changes(agent_draft: Draft, draft: Draft) -> Iterator[str]:
    starts_before, starts_after = (
        {segment.start_page for segment in version.segments} for version in (agent_draft, draft)
    )
    for page in sorted(starts_before ^ starts_after):
        is_new = page in starts_after
        yield (
            f"A new document starts on page {page}" if is_new else f"Pages {page - 1} and {page} belong to one document"
        )
    agent_types = {
        page: segment.dominant_type
        for segment in agent_draft.segments
        for page in range(segment.start_page, segment.end_page + 1)
    }
    for segment in draft.segments:
        for document_type, pages in groupby(
            range(segment.start_page, segment.end_page + 1), key=agent_types.__getitem__
        ):
            if document_type is not segment.dominant_type:
                first_page, *later_pages = pages
                page_words = format_page_ranges(
                    [(first_page, later_pages[-1] if later_pages else first_page)]
                ).capitalize()
                yield f"{page_words}: {_format_document_type(document_type)} → {_format_document_type(segment.dominant_type)}"
    if draft.dominant_type is not agent_draft.dominant_type:
        yield f"The whole file: {_format_document_type(agent_draft.dominant_type)} → {_format_document_type(draft.dominant_type)}"
    if draft.mixture is not None:
        shares = (
            f"{document_type} {round(100 * share, 2):g} %" for document_type, share in draft.mixture.items() if share
        )
        yield f"Shares of the file: {', '.join(shares)}"


def _format_document_type(document_type: DocumentType | None) -> str:
    return document_type.value if document_type else "no type"


def _summarise_draft(draft: Draft, *, with_pages: bool) -> str:
    if not with_pages:
        return draft.dominant_type.value if draft.dominant_type else "cannot tell"
    return "; ".join(
        f"{format_page_ranges([(segment.start_page, segment.end_page)])} {_format_document_type(segment.dominant_type)}"
        for segment in draft.segments
    )


def _build_segment_flags(draft: Draft) -> Iterator[dict[str, Any]]:
    for index, segment in enumerate(draft.segments, 1):
        segment_range = {"segment_index": index, "start_page": segment.start_page, "end_page": segment.end_page}
        yield from (
            segment_range | {"flag": flag.flag} for flag in draft.flags if flag.start_page == segment.start_page
        )
        if segment.start_page in draft.segment_notes:
            yield segment_range | {"note": draft.segment_notes[segment.start_page]}


def _choose_vouched_parts(
    vouched: Iterable[str] | None, outcome: ReviewOutcome, corrected_parts: Sequence[ClassificationPart]
) -> tuple[ClassificationPart, ...]:
    """Choose the parts for which the expert vouches.

    The result is in the order of ``CLASSIFICATION_PARTS``. ``vouched`` are the parts that the expert named, or None for the default. ReviewRefused for an unknown part.
    """
    chosen_parts: set[ClassificationPart]
    if outcome == "undeterminable":
        chosen_parts = set()
    elif vouched is None:
        # Segments determine the overall type, which is the type of most pages.
        implied_parts: Sequence[ClassificationPart] = ("dominant_type",) if "segments" in corrected_parts else ()
        # An answer of which only the evidence was corrected is otherwise validated.
        chosen_parts = {*corrected_parts, *implied_parts} or set(DEFAULT_VOUCHED_PARTS)
    else:
        chosen_parts = cast("set[ClassificationPart]", set(vouched))
    if unknown_parts := chosen_parts - set(CLASSIFICATION_PARTS):
        raise build_incomplete_review_error(
            f"vouched contains unknown parts: {sorted(unknown_parts)!r}",
            f"The parts are {', '.join(CLASSIFICATION_PARTS)}.",
        )
    return tuple(part for part in CLASSIFICATION_PARTS if part in chosen_parts)


def _list_answered_parts(
    packet: ClassificationPacket, submission: Submission, after: ClassificationOutput
) -> Iterator[str]:
    """List the parts of a short case that were asked and seen, by number.

    The numbers are those of the expert's answer. A document that begins on a page in doubt, and did not in the
    program's answer, counts as asked: the expert named its type.
    """
    pages_seen, questions_seen = {*submission.pages_seen}, {*submission.evidence_seen}
    numbers = {segment.start_page: segment.segment_index for segment in after.segments}
    starts = {segment.segment_index: segment.start_page for segment in packet.segments}
    for asked in packet.asked_parts:
        kind, _, number = asked.part.partition(":")
        if not (pages_seen.issuperset(asked.pages) and questions_seen.issuperset(asked.question_ids)):
            continue
        if kind != "segment":
            yield asked.part
        first_page = int(number) if kind == "boundary" else starts.get(int(number)) if kind == "segment" else None
        if first_page in numbers and (kind == "segment" or first_page not in starts.values()):
            yield f"segment:{numbers[first_page]}"


class ClassificationKind(CaseKind[ClassificationPacket, ReviewedClassification]):
    """The kind of case about a document's classification."""

    packet_class = ClassificationPacket
    case_class = ClassificationReviewCase
    correction_class = ClassificationCorrection
    topic = "a document's types"
    correction_remedy = "Pass corrected_dominant_type or corrected_segments."

    @override
    def reconstruct_draft(
        self, packet: ClassificationPacket, review: Review, answer: ReviewedClassification | None
    ) -> Draft:
        draft, agent_draft = (
            Draft.from_packet(packet.model_copy(update={"classification": classification}))
            for classification in (answer, packet.classification)
        )
        own_shares = (
            {entry.document_type: entry.overall_share for entry in answer.document_mixture}
            if answer and review.outcome == "corrected" and "mixture" in review.vouched
            else None
        )
        quotes = (
            ExpertQuote(
                **evidence.model_dump(include={"page", "snippet", "boxes"}), document_type=presence.document_type
            )
            for segment in (answer.segments if answer else ())
            for presence in segment.segment_composition
            for evidence in presence.top_evidence
            if evidence.by
        )
        first_pages = {segment.start_page for segment in draft.segments}
        return draft.model_copy(
            update={
                "flags": tuple(
                    SegmentFlag(start_page=flag_row["start_page"], flag=flag_row["flag"])
                    for flag_row in review.segment_flags
                    if "flag" in flag_row and flag_row["start_page"] in first_pages
                ),
                "evidence": tuple(quotes),
                "is_redrawn": draft.segments != agent_draft.segments,
                "is_type_chosen": draft.dominant_type is not agent_draft.dominant_type,
                "mixture": own_shares,
                "segment_notes": {
                    flag_row["start_page"]: flag_row["note"]
                    for flag_row in review.segment_flags
                    if "note" in flag_row and flag_row["start_page"] in first_pages
                },
                "shows_everything": review.shown.form == "whole",
                "boundaries_decided": tuple(
                    sorted(int(part.partition(":")[2]) for part in review.vouched if part.startswith("boundary:"))
                ),
            }
        )

    @override
    def build_review_fields(
        self, outcome: ReviewOutcome, submission: Submission, packet: ClassificationPacket, bundle: DocumentBundle
    ) -> dict[str, Any]:
        correction = submission.get_correction(ClassificationCorrection)
        is_short = submission.shown is not None and submission.shown.form == "short"
        vouched_parts = () if is_short else _choose_vouched_parts(submission.vouched, outcome, correction.parts)
        answers = ExpertAnswers(
            packet.classification,
            packet.with_asked_questions().issues,
            parse_verdicts(packet, submission.issue_verdicts),
            correction.quotes or (),
            removes_types=outcome == "corrected",
            flags_other_patient=any(
                isinstance(flag, Mapping) and flag.get("flag") == "other_patient" for flag in submission.segment_flags
            ),
        )
        if outcome == "undeterminable":
            return {"after": None, "vouched": vouched_parts, "refuted": answers.refuted}
        repairs: Sequence[Repair] = ()
        if correction.parts:
            answer = correct_classification(
                packet.classification,
                bundle,
                dominant_type=correction.dominant_type,
                segments=correction.segments,
                mixture=correction.mixture,
                vouched_parts=vouched_parts,
            )
        else:
            answer, repairs = repair_validated_classification(
                packet.classification, packet.open_issues, bundle, vouched_parts
            )
        if submission.asks_about_contradictions and (question := answers.find_contradiction(answer.typed_page_ranges)):
            raise ReviewRefused(
                question,
                code="REVIEW-CONTRADICTION",
                remedy="Change the verdict or the answer, or pass anyway=True to save both.",
            )
        after = answers.apply_to(answer, keeps_mixture=correction.mixture is not None)
        asked_parts = list(_list_answered_parts(packet, submission, after)) if is_short else None
        vouched = answers.choose_vouched_parts(answer, after, asked_parts or vouched_parts)
        return {
            "after": after,
            "repairs_applied": tuple(repairs),
            "vouched": vouched if asked_parts is None else tuple(part for part in vouched if part in asked_parts),
            "refuted": answers.refuted,
            "changes": tuple(answers.iterate_changes(after)),
        }

    @override
    def list_page_ranges(self, answer: ClassificationOutput | None, total_pages: int) -> list[tuple[int, int]]:
        segments, _ = fit_segments_to_file(answer.segments if answer else (), total_pages)
        return [(segment.start_page, segment.end_page) for segment in segments]

    @override
    def is_same_answer(self, first: ClassificationOutput, second: ClassificationOutput) -> bool:
        return (first.dominant_type_overall, first.typed_page_ranges) == (
            second.dominant_type_overall,
            second.typed_page_ranges,
        )

    @override
    def summarise_answer(self, answer: ClassificationOutput) -> str:
        return answer.dominant_type_overall or "cannot tell"

    @override
    def build_ground_truth(
        self,
        packet: ClassificationPacket,
        review: Review,
        answer: ClassificationOutput,
        record_fields: Mapping[str, Any],
    ) -> GroundTruth:
        known_patients = packet.classification.patient_keys_by_page_range if packet.classification else {}
        return GroundTruth(
            ground_truth_classification=attach_patient_keys(answer, known_patients),
            corrected_dominant_type=answer.dominant_type_overall
            if review.outcome == "corrected" and review.shown.form == "whole"
            else None,
            **record_fields,
        )

    @override
    def complete_ground_truth(
        self, output_folder: OutputFolder, packet: ClassificationPacket, record: GroundTruth
    ) -> GroundTruth:
        """Add patient keys for the page ranges that the expert corrected.

        The record is returned unchanged if the document's text or the salt file is missing; a later ``evalkit reindex`` adds
        the keys.
        """
        classification = record.ground_truth_classification
        known_patients = packet.classification.patient_keys_by_page_range if packet.classification else {}
        if classification.patient_keys_by_page_range.keys() <= known_patients.keys():
            return record
        try:
            stored_bundle = output_folder.read_json(
                bundle_file_name(packet.doc_id), max_schema_version=BUNDLE_SCHEMA_VERSION
            )
            patients = compute_patient_keys_by_page_range(
                classification,
                group_pages_by_person(read_page_facts(stored_bundle)),
                load_or_create_patient_salt(output_folder),
            )
        except (EvalkitError, LookupError, TypeError, ValueError):
            return record
        return record.model_copy(update={"ground_truth_classification": attach_patient_keys(classification, patients)})

    @override
    def write_projected_files(
        self,
        output_folder: OutputFolder,
        packet: ClassificationPacket,
        record: GroundTruthRecord | None,
        answers: Sequence[ClassificationOutput | None],
    ) -> None:
        remove_mismatched_silver_fields(output_folder, packet.doc_id)

    @override
    def read_answering_model_name(self, output_folder: OutputFolder, doc_id: str) -> str:
        stored = output_folder.read_json(result_file_name(doc_id), max_schema_version=RESULT_VERSION)
        if "classifier" not in stored["usage"]["by_agent"]:
            return "supplied"
        return str(stored["versions"].get("models", {}).get("classifier", stored["model"]))
