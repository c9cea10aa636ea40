"""One open case of any kind: what must be seen before one press may validate it, and what a press submits.

Source: contract, rulings 13 and 14. Pure: nothing here reads or writes a file. Each kind of case has its own subclass in
``kinds``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any, Literal, Protocol, TypeVar

from evalkit.classification.schema import DocumentType
from evalkit.documents.bundle import DocumentBundle
from evalkit.grounding import QuoteLocator
from evalkit.issue import IssueSeverity, PageBox
from evalkit.review.draft import Draft
from evalkit.review.ground_truth import GroundTruthRecord, IssueVerdict, Review, ReviewOutcome
from evalkit.review.issue_context import IssueContext, build_issue_context
from evalkit.review.packet import SMEPacket
from evalkit.review.permissions import READ_ONLY_SENTENCE
from evalkit.review.submission import Correction, Submission, build_incomplete_review_error
from evalkit.store import Deferral, OutputFolder

HighlightStyle = Literal["found", "near"]

PacketT = TypeVar("PacketT", bound=SMEPacket)
AnswerT_contra = TypeVar("AnswerT_contra", contravariant=True)

_CASE_CLOSED_SENTENCE = "This case is closed already."
_SEVERITY_WORDS = {
    IssueSeverity.BLOCKER: "blocking issue",
    IssueSeverity.MAJOR: "major issue",
    IssueSeverity.MINOR: "minor issue",
}


def is_blind_review(packet: SMEPacket, newest_revision: int) -> bool:
    """Decide whether the agent's answer is hidden.

    The writer of review ``newest_revision`` was shown it afterwards.
    """
    return not newest_revision and packet.is_first_review_blind


@dataclass(frozen=True)
class ViewingRequirements:
    """The pages and issues that must be on screen before one press may validate."""

    page_numbers: tuple[int, ...]
    """The pages, in order."""
    issue_ids: tuple[str, ...]
    """The ids of the issues, worst first."""


@dataclass(frozen=True)
class HighlightedPlace:
    """The place in the document that belongs to an issue, a field or a row."""

    page: int
    """The page to show, from 1."""
    boxes: tuple[PageBox, ...]
    """The highlighted boxes; empty if it is nowhere in the document."""
    style: HighlightStyle
    """``found``: the value itself; ``near``: only the passage most like it."""


@dataclass(frozen=True)
class Opinion:
    """One of the two answers of an adjudication, without its writer and order."""

    label: str
    """``A`` or ``B``."""
    draft: Draft
    """The answer; one segment of no type if the expert could not tell."""
    outcome: ReviewOutcome
    """The decision."""
    notes: str
    """The expert's words."""


@dataclass(frozen=True)
class ReviewCase(ABC):
    """A case as it was opened."""

    packet: SMEPacket
    bundle: DocumentBundle
    revision: int
    """The number of the newest review when it was opened; 0: none."""
    draft: Draft
    """The expert's saved draft; else the agent's answer, or in a blind case nothing."""
    draft_saved_at: str | None
    """When a restored draft was saved (ISO 8601, UTC); None if nothing was restored."""
    is_completed: bool
    """True if it is closed: open for reading, without a claim."""
    reviews: tuple[Review, ...]
    """The reviews of it, oldest first; while another opinion is awaited only one's own."""
    opinions: tuple[Opinion, ...] = ()
    """The two answers that an adjudication decides between; none in any other case."""
    second_opinion_reason: str = ""
    """Why a colleague asks for a second opinion; empty in any other case."""
    deferral: Deferral | None = None
    """Who has put the case off, and why; None if nobody has."""
    feedback: str = ""
    """Text that its expert reads in a finished case; mostly empty."""
    is_read_only: bool = False
    """True if this reviewer may look at cases, and decide none."""

    def get_issue_context(self, issue_id: str) -> IssueContext:
        """Get an issue with the document's text around it.

        NotFound if there is no such issue.
        """
        if issue_id not in self._contexts_by_issue_id:  # a screen asks again at every turn of a page
            self._contexts_by_issue_id[issue_id] = build_issue_context(
                self.packet, issue_id, self.bundle, self.quote_locator
            )
        return self._contexts_by_issue_id[issue_id]

    @cached_property
    def quote_locator(self) -> QuoteLocator:
        """The only locator of quotes in this case: it reads the document once."""
        return QuoteLocator(self.bundle)

    @property
    def is_locked(self) -> bool:
        """True if this reviewer can change nothing.

        The case is closed, or not theirs to decide.
        """
        return self.is_completed or self.is_read_only

    @property
    def is_blind(self) -> bool:
        """True if the agent's answer must be hidden until the expert has answered."""
        return is_blind_review(self.packet, self.revision)

    # Each kind of case has its own

    _changed_sentence = "You have changed the answer: submit it as a correction."
    """Why a changed answer cannot be validated."""

    @property
    @abstractmethod
    def viewing_requirements(self) -> ViewingRequirements:
        """All that must be on screen before the case as opened may be validated."""

    @property
    @abstractmethod
    def _unvalidatable_reason(self) -> str | None:
        """Why nobody can validate this case, whatever they have seen.

        None if it can be validated.
        """

    @abstractmethod
    def has_expert_changes(self, draft: Draft) -> bool:
        """Decide whether the draft changes the agent's answer.

        Notes and verdicts on issues are no change.
        """

    @abstractmethod
    def describe_changes(self, draft: Draft) -> tuple[str, ...]:
        """Describe each difference from the agent's answer in one sentence."""

    @abstractmethod
    def _find_obstacle_and_remedy(self, draft: Draft) -> tuple[str, str] | None:
        """Find why the draft cannot be submitted without validating, and what to do."""

    @abstractmethod
    def _build_answer_fields(self, draft: Draft, *, is_validation: bool, is_undeterminable: bool) -> dict[str, Any]:
        """Build the fields of the submission that only this kind of case fills in."""

    # The same for all kinds

    def compute_mixture_after_review(self, draft: Draft) -> tuple[tuple[DocumentType, float], ...]:
        """Compute the shares 0..1 that the review would leave.

        The expert's, else those by pages of their segments. Pages without a type count for none.
        """
        if draft.mixture is not None:
            return tuple(draft.mixture.items())
        page_counts: Counter[DocumentType | None] = Counter()
        for segment in draft.segments:
            page_counts[segment.dominant_type] += segment.end_page - segment.start_page + 1
        return tuple((document_type, page_counts[document_type] / draft.total_pages) for document_type in DocumentType)

    def is_same_as_agent(self, draft: Draft) -> bool:
        """Decide whether the draft is the agent's answer.

        Not to be shown before a blind case is closed.
        """
        return not self.has_expert_changes(draft)

    def _get_viewing_requirements(self, draft: Draft) -> ViewingRequirements:
        """Get what must be on screen with this draft."""
        return self.viewing_requirements

    def find_unseen_requirements(self, draft: Draft) -> ViewingRequirements:
        """Find which required pages and issues were not on screen yet."""
        required = self._get_viewing_requirements(draft)
        return ViewingRequirements(
            page_numbers=tuple(page for page in required.page_numbers if page not in draft.pages_seen),
            issue_ids=tuple(issue_id for issue_id in required.issue_ids if issue_id not in draft.evidence_seen),
        )

    def explain_permanent_validation_block(self) -> str | None:
        """Explain why this reviewer can never validate the case; None if they can.

        Always None in a blind case: the reason would reveal the agent's answer.
        """
        if self.is_locked:
            return self._lock_reason
        return None if self.is_blind else self._unvalidatable_reason

    @property
    def _lock_reason(self) -> str:
        return _CASE_CLOSED_SENTENCE if self.is_completed else READ_ONLY_SENTENCE

    def explain_validation_block(self, draft: Draft) -> str | None:
        """Explain to a clinician why one press may not validate now; None if it may.

        In a blind case it never may: see ``explain_submission_block``.
        """
        if self.is_blind:
            return "Give your own answer: the agent's is shown after it."
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
        """Explain why the draft cannot be submitted now, as an answer or a correction.

        None if it can. Whether its overall type and shares follow the rules is checked only on submitting.
        """
        if self.is_locked:
            return self._lock_reason
        obstacle = self._find_obstacle_and_remedy(draft)
        return obstacle[0] if obstacle else None

    def build_submission(self, draft: Draft, *, validate: bool, undeterminable_reason: str | None) -> Submission:
        """Build what pressing the button submits.

        ReviewRefused if the draft does not permit it.
        """
        self._require_permitted_submission(draft, validate=validate, undeterminable_reason=undeterminable_reason)
        common_fields: dict[str, Any] = {
            "agrees": validate or None,
            "correction_notes": _join_notes_of_draft(draft),
            "issue_verdicts": _collect_issue_verdicts(draft),
            "undeterminable": undeterminable_reason,
            "seconds_active": draft.seconds_active,
            "pages_seen": draft.pages_seen,
            "evidence_seen": draft.evidence_seen,
        }
        return Submission(
            **common_fields
            | self._build_answer_fields(
                draft, is_validation=validate, is_undeterminable=undeterminable_reason is not None
            )
        )

    def _require_permitted_submission(self, draft: Draft, *, validate: bool, undeterminable_reason: str | None) -> None:
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

    @cached_property
    def _contexts_by_issue_id(self) -> dict[str, IssueContext]:
        return {}

    def _describe_issue_counts(self, issue_ids: Sequence[str]) -> Iterator[str]:
        severities = [issue.severity for issue in self.packet.open_issues if issue.issue_id in issue_ids]
        for severity, group in groupby(severities):
            count = len(list(group))
            yield f"{count} {_SEVERITY_WORDS[severity]}{'s' if count > 1 else ''}"


class CaseKind(Protocol[PacketT, AnswerT_contra]):
    """One kind of case, from its first draft to the files that a review makes true.

    An answer is what the agent proposes and a review leaves: ``Review.before`` and ``Review.after``.
    """

    packet_class: type[PacketT]
    """Its packet."""
    case_class: type[ReviewCase]
    """The open case: what blocks a decision, and what a press submits."""
    correction_class: type[Correction]
    """The part of a submission that only this kind takes."""
    review_class: type[Review] = Review
    """Its review; a subclass if its answer is none of ``ground_truth.ReviewedAnswer``."""
    case_id_suffix: str = ""
    """How the ids of its base cases end; no other kind has the same."""
    is_named_after_document: bool = True
    """True if its case ids are a document's id and the suffix, so that a purge of the document finds them."""
    topic: str
    """The subject of such a case in a sentence: ``fields``."""
    correction_remedy: str
    """How such a case is corrected from Python, as a sentence."""

    def create_draft(self, packet: PacketT, *, is_blind: bool) -> Draft:
        """Create the first draft: the agent's answer, or in a blind case nothing."""
        return Draft.create_blank(packet.total_pages) if is_blind else Draft.from_packet(packet)

    def reconstruct_draft(self, packet: PacketT, review: Review, answer: AnswerT_contra | None) -> Draft:
        """Rebuild the draft that a review was made of, without notes and verdicts."""

    def build_review_fields(
        self, outcome: ReviewOutcome, submission: Submission, packet: PacketT, bundle: DocumentBundle
    ) -> dict[str, Any]:
        """Build the fields of ``Review`` that this kind decides.

        ``after``, ``vouched`` and more. ReviewRefused.
        """

    def list_page_ranges(self, answer: AnswerT_contra | None, total_pages: int) -> list[tuple[int, int]]:
        """List the first and last page of each segment that remarks may name.

        The list is empty if the answer has no segments.
        """
        return []

    def is_same_answer(self, first: AnswerT_contra, second: AnswerT_contra) -> bool:
        """Decide whether two experts agree."""
        return first == second

    def summarise_answer(self, answer: AnswerT_contra) -> str:
        """Summarise an answer in a word or two, for the audit trail."""

    def list_answer_sections(self, packet: PacketT) -> list[tuple[str, list[list[str]] | None]]:
        """List the agent's answer as ``evalkit show`` prints it.

        A text and a table of two columns, or None.
        """
        return []

    def build_ground_truth(
        self, packet: PacketT, review: Review, answer: AnswerT_contra, record_fields: Mapping[str, Any]
    ) -> GroundTruthRecord:
        """Build the ground truth that the newest review leaves.

        ``record_fields`` are those of every kind.
        """

    def complete_ground_truth(self, output_folder: OutputFolder, packet: PacketT, record: Any) -> Any:
        """Add to the ground truth record what only other files of the output folder say."""
        return record

    def write_projected_files(
        self,
        output_folder: OutputFolder,
        packet: PacketT,
        record: GroundTruthRecord | None,
        answers: Sequence[AnswerT_contra | None],
    ) -> None:
        """Write the other files that follow from the ground truth.

        ``answers`` are those of all reviews so far.
        """
        return

    def read_answering_model_name(self, output_folder: OutputFolder, doc_id: str) -> str:
        """Read what gave the answer.

        The name of a model, ``supplied`` for another system, or empty if unknown.
        """
        return ""


def format_page_ranges(ranges: Sequence[tuple[int, int]]) -> str:
    """Format page ranges: ``page 4``, ``pages 4–6``, ``pages 1, 4–6 and 8``."""
    is_single_page = len(ranges) == 1 and ranges[0][0] == ranges[0][1]
    words = [
        f"{first_page}" if first_page == last_page else f"{first_page}–{last_page}" for first_page, last_page in ranges
    ]
    return f"page{'' if is_single_page else 's'} {_join_with_and(words)}"


def format_page_numbers(pages: Iterable[int]) -> str:
    """Format page numbers: ``page 4``, ``pages 1 and 8``."""
    return format_page_ranges([(page, page) for page in pages])


def _collect_issue_verdicts(draft: Draft) -> tuple[IssueVerdict, ...]:
    return tuple(
        verdict.model_copy(update={"note": draft.issue_notes.get(verdict.issue_id, verdict.note)})
        for verdict in draft.issue_verdicts
    )


def _join_notes_of_draft(draft: Draft) -> str:
    """Join the expert's words with those about issues without a verdict."""
    judged_ids = {verdict.issue_id for verdict in draft.issue_verdicts}
    issue_lines = (
        f"{issue_id}: {text}" for issue_id, text in sorted(draft.issue_notes.items()) if issue_id not in judged_ids
    )
    return "\n".join(filter(None, [draft.notes, *issue_lines]))


def _join_with_and(words: Sequence[str]) -> str:
    """Join words: ``1``, ``1 and 2``, ``1, 2 and 3``."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))
