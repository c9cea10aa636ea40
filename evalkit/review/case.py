"""One case on one expert's screen: what must be seen before one press may validate it, and what a press says.

Source: contract, rulings 13 and 14. Pure: nothing here reads or writes a file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

from evalkit.classification.autofix import AutoFixEngine
from evalkit.classification.schema import ClassificationOutput, DocumentType
from evalkit.documents.bundle import DocumentBundle
from evalkit.issue import Issue, IssueSeverity
from evalkit.review.corrections import CLASSIFICATION_PARTS, ClassificationPart, find_rule_violations
from evalkit.review.draft import Draft, SegmentDraft
from evalkit.review.ground_truth import IssueVerdict, Review, ShownMachineAnswers
from evalkit.review.issue_context import IssueContext, build_issue_context
from evalkit.review.opinions import Opinion
from evalkit.review.packet import ADJUDICATION_SUFFIX, SMEPacket
from evalkit.review.permissions import READ_ONLY_SENTENCE
from evalkit.review.submission import DEFAULT_VOUCHED_PARTS, Submission, build_incomplete_review_error
from evalkit.store import Deferral

BLOCKER, MAJOR, MINOR = IssueSeverity.BLOCKER, IssueSeverity.MAJOR, IssueSeverity.MINOR

_IssuePredicate = Callable[[Issue], bool]


def is_blind_review(packet: SMEPacket, newest_revision: int) -> bool:
    """Whether the agent's answer is hidden: ``newest_revision`` is the newest review's number, whose writer was told it."""
    return not newest_revision and packet.is_first_review_blind


def _is_fixable_major(issue: Issue) -> bool:
    return issue.severity is MAJOR and issue.auto_fixable


def _is_unfixable_major(issue: Issue) -> bool:
    return issue.severity is MAJOR and not issue.auto_fixable


# fmt: off
#: Which open issues each row of the arbiter's table counted when it won.
COUNTED_ISSUES_BY_RULE: dict[str, _IssuePredicate] = {
    "1":       lambda issue: issue.severity is BLOCKER,
    "2":       lambda issue: issue.severity is MAJOR,
    "3":       _is_unfixable_major,
    "4":       _is_unfixable_major,
    "5":       _is_fixable_major,
    "6":       lambda issue: issue.severity is MINOR,
    "7":       lambda issue: False,
    "8":       lambda issue: True,
    "retries": _is_fixable_major,
    "cycle":   _is_fixable_major,
}
# fmt: on

_CASE_CLOSED_SENTENCE = "This case is closed already."
_SEVERITY_WORDS = {BLOCKER: "blocking issue", MAJOR: "major issue", MINOR: "minor issue"}


@dataclass(frozen=True)
class ViewingRequirements:
    """What has to be on screen before one press may validate."""

    page_numbers: tuple[int, ...]
    """Each segment's first page, in order."""
    issue_ids: tuple[str, ...]
    """The ids of the issues that the arbiter's winning row counted, worst first."""


@dataclass(frozen=True)
class ReviewCase:
    """A case as it was opened."""

    packet: SMEPacket
    bundle: DocumentBundle
    revision: int
    """The number of the newest review when it was opened; 0: none."""
    draft: Draft
    """What the expert had said before; else what the agent says, or in a blind case nothing."""
    draft_saved_at: str | None
    """When a restored draft was saved (ISO 8601, UTC); None where nothing was restored."""
    is_completed: bool
    """It is closed: open for reading, without a claim."""
    reviews: tuple[Review, ...]
    """What was submitted about it, oldest first; while another opinion is awaited only one's own."""
    opinions: tuple[Opinion, ...] = ()
    """The two answers that an adjudication decides between; none in any other case."""
    second_opinion_reason: str = ""
    """Why a colleague asks for a second opinion; empty in any other case."""
    deferral: Deferral | None = None
    """Who has put the case off, and why; None where nobody has."""
    feedback: str = ""
    """What is told of a finished case; mostly nothing."""
    is_read_only: bool = False
    """Whether this reviewer may look at cases, and decide none."""

    def get_issue_context(self, issue_id: str) -> IssueContext:
        """One of the issues with the document's text around it. NotFound if there is no such issue."""
        if issue_id not in self._contexts_by_issue_id:  # a screen asks again at every turn of a page
            self._contexts_by_issue_id[issue_id] = build_issue_context(self.packet, issue_id, self.bundle)
        return self._contexts_by_issue_id[issue_id]

    @property
    def is_locked(self) -> bool:
        """Whether nothing can be said here: it is closed, or not this reviewer's to decide."""
        return self.is_completed or self.is_read_only

    @property
    def is_blind(self) -> bool:
        """Whether nothing that the agent said may be shown before the expert has answered."""
        return is_blind_review(self.packet, self.revision)

    def compute_mixture_after_review(self, draft: Draft) -> tuple[tuple[DocumentType, float], ...]:
        """The shares 0..1 that the review would leave: the expert's, else by pages of what they drew, else the agent's.

        Pages of no type yet count for none. In a blind case the agent's are never told.
        """
        if draft.mixture is not None:
            return tuple(draft.mixture.items())
        if (
            self._classification_after_repair is not None
            and not self.is_blind
            and "segments" not in self._find_changed_parts(draft)
        ):
            return tuple(
                (entry.document_type, entry.overall_share)
                for entry in self._classification_after_repair.document_mixture
            )
        page_counts: Counter[DocumentType | None] = Counter()
        for segment in draft.segments:
            page_counts[segment.dominant_type] += segment.end_page - segment.start_page + 1
        return tuple((document_type, page_counts[document_type] / draft.total_pages) for document_type in DocumentType)

    @cached_property
    def viewing_requirements(self) -> ViewingRequirements:
        """All that has to be on screen before one press may validate.

        In a blind case it is the segments that the expert had drawn on opening: ``find_unseen_requirements`` follows the draft.
        """
        if self.is_blind:
            return _build_blind_requirements(self.draft)
        segments = self.packet.classification.segments if self.packet.classification else ()
        first_pages = {segment.start_page for segment in segments if 1 <= segment.start_page <= self.packet.total_pages}
        # A row that is not in the table yet could have counted anything.
        is_counted = COUNTED_ISSUES_BY_RULE.get(self.packet.decision_rule, COUNTED_ISSUES_BY_RULE["8"])
        issue_ids = (issue.issue_id for issue in self.packet.open_issues if is_counted(issue))
        return ViewingRequirements(page_numbers=tuple(sorted(first_pages)), issue_ids=tuple(issue_ids))

    def _get_viewing_requirements(self, draft: Draft) -> ViewingRequirements:
        """What has to be on screen with this draft."""
        return _build_blind_requirements(draft) if self.is_blind else self.viewing_requirements

    def find_unseen_requirements(self, draft: Draft) -> ViewingRequirements:
        """Find what of it was not on screen yet."""
        required = self._get_viewing_requirements(draft)
        return ViewingRequirements(
            page_numbers=tuple(page for page in required.page_numbers if page not in draft.pages_seen),
            issue_ids=tuple(issue_id for issue_id in required.issue_ids if issue_id not in draft.evidence_seen),
        )

    def explain_permanent_validation_block(self) -> str | None:
        """Why this reviewer cannot validate this case, whatever they have seen, in a sentence for a clinician; else None.

        Always None in a blind case: it would tell about the agent's answer.
        """
        if self.is_locked:
            return self._lock_reason
        return None if self.is_blind else self._unvalidatable_reason

    @property
    def _lock_reason(self) -> str:
        return _CASE_CLOSED_SENTENCE if self.is_completed else READ_ONLY_SENTENCE

    @cached_property
    def _unvalidatable_reason(self) -> str | None:
        if self.packet.classification is None:
            return "The classifier gave no usable answer, so there is nothing to agree with."
        violations = self._find_violations_after_repair(DEFAULT_VOUCHED_PARTS)
        if not violations:
            return None
        more = f" ({len(violations) - 1} more like this)" if len(violations) > 1 else ""
        return f"This answer breaks a rule, so it can only be corrected: {violations[0].message}{more}."

    def explain_validation_block(self, draft: Draft) -> str | None:
        """Why one press may not validate now, in words for a clinician; None where it may.

        In a blind case none may: see ``explain_submission_block``.
        """
        if self.is_blind:
            return "Give your own answer: what the agent said is shown after it."
        if reason := self.explain_permanent_validation_block():
            return reason
        if self.has_expert_changes(draft):
            return self._changed_sentence
        return self._describe_unseen(draft)

    def _describe_unseen(self, draft: Draft) -> str | None:
        unseen = self.find_unseen_requirements(draft)
        parts = [*self._describe_issue_counts(unseen.issue_ids)]
        if unseen.page_numbers:
            parts.append(format_page_numbers(unseen.page_numbers))
        return f"{_join_with_and(parts)} not yet seen" if parts else None

    def explain_submission_block(self, draft: Draft) -> str | None:
        """Why the draft cannot be submitted now, as an answer or a correction; None where it can.

        Whether its overall type and shares keep to the rules is only found on submitting.
        """
        if self.is_locked:
            return self._lock_reason
        obstacle = self._find_obstacle_and_remedy(draft)
        return obstacle[0] if obstacle else None

    def has_expert_changes(self, draft: Draft) -> bool:
        """Whether ranges, types or shares differ from the agent's; notes, flags and verdicts are no change.

        In a blind case: whether the expert has given an answer, a type for every segment.
        """
        return not _list_untyped_segments(draft) if self.is_blind else bool(self._find_changed_parts(draft))

    def describe_changes(self, draft: Draft) -> tuple[str, ...]:
        """What differs from the agent's answer, one sentence each; nothing in a blind case, where it is not told."""
        return () if self.is_blind else tuple(_describe_draft_changes(self._agent_draft, draft))

    def is_same_as_agent(self, draft: Draft) -> bool:
        """Whether ranges, types and the overall type are the agent's. Not to be shown before a blind case is closed."""
        return not self._find_changed_parts(draft) - {"mixture"}

    def build_submission(self, draft: Draft, *, validate: bool, undeterminable_reason: str | None) -> Submission:
        """What pressing the button says. ReviewRefused where it cannot be said with this draft."""
        validate = self._require_permitted_submission(
            draft, validate=validate, undeterminable_reason=undeterminable_reason
        )
        corrected_parts: frozenset[ClassificationPart] = frozenset()
        if not validate and undeterminable_reason is None:
            corrected_parts = self._choose_corrected_parts(draft)
            validate = not corrected_parts
        return Submission(
            agrees=validate or None,
            corrected_dominant_type=draft.dominant_type if "dominant_type" in corrected_parts else None,
            corrected_segments=draft.segments if "segments" in corrected_parts else None,
            corrected_mixture=list((draft.mixture or {}).items()) if "mixture" in corrected_parts else None,
            correction_notes=join_notes_of_draft(draft),
            issue_verdicts=collect_issue_verdicts(draft),
            undeterminable=undeterminable_reason,
            vouched=self._choose_vouched_parts(draft) if validate else None,
            seconds_active=draft.seconds_active,
            pages_seen=draft.pages_seen,
            evidence_seen=draft.evidence_seen,
            shown=ShownMachineAnswers(agent=not self.is_blind),
            segment_flags=tuple(_build_segment_flags(draft)),
        )

    _changed_sentence = "You have changed the classification: submit it as a correction."

    def _require_permitted_submission(self, draft: Draft, *, validate: bool, undeterminable_reason: str | None) -> bool:
        """Whether the press validates. ReviewRefused where what it says cannot be said with this draft."""
        if validate and undeterminable_reason is not None:
            raise build_incomplete_review_error(
                "a case cannot be validated and undeterminable at once", "Choose one of them."
            )
        if validate and (reason := self.explain_validation_block(draft)):
            raise build_incomplete_review_error(
                reason.rstrip("."), "Look at what is missing, or submit what you say instead."
            )
        if not validate and undeterminable_reason is None and (obstacle := self._find_obstacle_and_remedy(draft)):
            raise build_incomplete_review_error(*obstacle)
        return validate

    @cached_property
    def _contexts_by_issue_id(self) -> dict[str, IssueContext]:
        return {}

    @cached_property
    def _classification_after_repair(self) -> ClassificationOutput | None:
        """What validating would make true."""
        answer = self.packet.classification
        return AutoFixEngine().apply(answer, self.packet.open_issues)[0] if answer else None

    def _find_violations_after_repair(self, parts: Iterable[ClassificationPart]) -> list[Issue]:
        """The rules that the agent's answer, repaired, breaks in these parts."""
        answer = self._classification_after_repair
        return find_rule_violations(answer, self.bundle, parts) if answer else []

    def _choose_vouched_parts(self, draft: Draft) -> tuple[ClassificationPart, ...]:
        if self.is_blind:
            return DEFAULT_VOUCHED_PARTS  # shares were neither shown nor stated
        # Having looked at shares that break a rule must not stand in the way of what does not depend on them.
        if draft.mixture_seen and not self._find_violations_after_repair(CLASSIFICATION_PARTS):
            return CLASSIFICATION_PARTS
        return DEFAULT_VOUCHED_PARTS

    @cached_property
    def _agent_draft(self) -> Draft:
        return Draft.from_packet(self.packet)

    def _find_changed_parts(self, draft: Draft) -> frozenset[ClassificationPart]:
        is_different_by_part: dict[ClassificationPart, bool] = {
            "dominant_type": draft.dominant_type != self._agent_draft.dominant_type,
            "segments": draft.segments != self._agent_draft.segments,
            "mixture": draft.mixture is not None,
        }
        return frozenset(part for part, is_different in is_different_by_part.items() if is_different)

    def _find_obstacle_and_remedy(self, draft: Draft) -> tuple[str, str] | None:
        """Why the draft is neither an answer nor a correction, and what to do."""
        parts = frozenset(DEFAULT_VOUCHED_PARTS) if self.is_blind else self._find_changed_parts(draft)
        if not parts and not (self.explain_permanent_validation_block() and draft.notes.strip()):
            return "nothing was changed", "Change a range, a type or the shares, or validate what is there."
        if "segments" in parts and (untyped_segments := _list_untyped_segments(draft)):
            page_words = _format_page_ranges([(segment.start_page, segment.end_page) for segment in untyped_segments])
            return f"{page_words} {'have' if page_words.startswith('pages') else 'has'} no type yet", "Choose a type."
        if draft.dominant_type is None and parts != {"mixture"}:
            return "the file has no type yet", "Choose its type, or say why nobody can tell."
        # Whoever takes over an answer, or gives one blind, must have looked where its documents begin.
        unseen_pages = [segment.start_page for segment in draft.segments if segment.start_page not in draft.pages_seen]
        if unseen_pages and (self.is_blind or self.packet.case_id.endswith(ADJUDICATION_SUFFIX)):
            return f"{format_page_numbers(unseen_pages)} not yet seen", "Look where each of your documents begins."
        return None

    def _choose_corrected_parts(self, draft: Draft) -> frozenset[ClassificationPart]:
        """The parts that the draft corrects; the type goes with segments, and with words alone.

        None where a blind answer turns out to be what the agent said, and that can stand: it is validated.
        """
        parts = self._find_changed_parts(draft)
        if self.is_blind:
            if not parts and self._unvalidatable_reason is None:
                return parts
            return parts | set(DEFAULT_VOUCHED_PARTS)  # the expert has drawn it all
        return parts | {"dominant_type"} if not parts or "segments" in parts else parts

    def _describe_issue_counts(self, issue_ids: Sequence[str]) -> Iterator[str]:
        severities = [issue.severity for issue in self.packet.open_issues if issue.issue_id in issue_ids]
        for severity, group in groupby(severities):
            count = len(list(group))
            yield f"{count} {_SEVERITY_WORDS[severity]}{'s' if count > 1 else ''}"


def _format_page_ranges(ranges: Sequence[tuple[int, int]]) -> str:
    """``page 4``, ``pages 4–6``, ``pages 1, 4–6 and 8``."""
    is_single_page = len(ranges) == 1 and ranges[0][0] == ranges[0][1]
    words = [
        f"{first_page}" if first_page == last_page else f"{first_page}–{last_page}" for first_page, last_page in ranges
    ]
    return f"page{'' if is_single_page else 's'} {_join_with_and(words)}"


def format_page_numbers(pages: Iterable[int]) -> str:
    """``page 4``, ``pages 1 and 8``."""
    return _format_page_ranges([(page, page) for page in pages])


def _build_blind_requirements(draft: Draft) -> ViewingRequirements:
    """What has to be on screen of one's own segments."""
    return ViewingRequirements(page_numbers=tuple(segment.start_page for segment in draft.segments), issue_ids=())


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
                page_words = _format_page_ranges(
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


def collect_issue_verdicts(draft: Draft) -> tuple[IssueVerdict, ...]:
    """What the expert says about single issues, with the words about each."""
    return tuple(
        verdict.model_copy(update={"note": draft.issue_notes.get(verdict.issue_id, verdict.note)})
        for verdict in draft.issue_verdicts
    )


def join_notes_of_draft(draft: Draft) -> str:
    """The expert's words; those about an issue without a verdict have no other place."""
    judged_ids = {verdict.issue_id for verdict in draft.issue_verdicts}
    issue_lines = (
        f"{issue_id}: {text}" for issue_id, text in sorted(draft.issue_notes.items()) if issue_id not in judged_ids
    )
    return "\n".join(filter(None, [draft.notes, *issue_lines]))


def _build_segment_flags(draft: Draft) -> Iterator[dict[str, Any]]:
    for index, segment in enumerate(draft.segments, 1):
        segment_range = {"segment_index": index, "start_page": segment.start_page, "end_page": segment.end_page}
        yield from (
            segment_range | {"flag": flag.flag} for flag in draft.flags if flag.start_page == segment.start_page
        )
        if segment.start_page in draft.segment_notes:
            yield segment_range | {"note": draft.segment_notes[segment.start_page]}


def _join_with_and(words: Sequence[str]) -> str:
    """``1``, ``1 and 2``, ``1, 2 and 3``."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))
