"""Base classes of a case: what must be seen, and what a decision submits.

``ReviewCase`` is one case opened by one expert, ``CaseKind`` a kind of case; each kind has its subclasses in ``kinds``.
``ReviewCase`` reads and writes no file. Source: contract, rulings 13 and 14.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any, Literal, Protocol, TypeVar

from evalkit.classification.schema import DocumentType
from evalkit.core.wording import format_count, format_page_numbers, join_with_and
from evalkit.documents.bundle import DocumentBundle
from evalkit.grounding import QuoteLocator
from evalkit.issue import Issue, IssueSeverity, PageBox
from evalkit.review.draft import Draft
from evalkit.review.field_answers import format_field_value
from evalkit.review.ground_truth import GroundTruthRecord, Review, ReviewOutcome
from evalkit.review.issue_context import IssueContext, build_issue_context, get_issue_id
from evalkit.review.packet import SMEPacket
from evalkit.review.permissions import READ_ONLY_SENTENCE
from evalkit.review.submission import Correction, Submission, build_incomplete_review_error
from evalkit.store import Deferral, OutputFolder

HighlightStyle = Literal["found", "near"]
RecordLineKind = Literal["type", "quote", "field", "vouch", "change"]

PacketT = TypeVar("PacketT", bound=SMEPacket)
AnswerT_contra = TypeVar("AnswerT_contra", contravariant=True)

_CASE_CLOSED_SENTENCE = "This case is already closed."
#: The word on the screen for an issue of each severity; the browser's are in ``dom.js``.
_SEVERITY_WORDS = {
    IssueSeverity.BLOCKER: "grave doubt",
    IssueSeverity.MAJOR: "doubt",
    IssueSeverity.MINOR: "remark",
}


def is_blind_review(packet: SMEPacket, newest_revision: int) -> bool:
    """Return True if the agent's answer must be hidden from the expert.

    False once the case has a review (``newest_revision`` above 0), because its writer was shown the answer afterwards.
    """
    return not newest_revision and packet.is_first_review_blind


@dataclass(frozen=True)
class ViewingRequirements:
    """Pages and issues that must have been on screen before the case may be validated."""

    page_numbers: tuple[int, ...]
    """Page numbers from 1, ascending."""
    issue_ids: tuple[str, ...]
    """Ids of the issues, worst first."""


@dataclass(frozen=True)
class HighlightedPlace:
    """The place in the document that belongs to an issue, a field or a row."""

    page: int
    """The page to show, from 1."""
    boxes: tuple[PageBox, ...]
    """The boxes to highlight; empty if the place within the page is unknown."""
    style: HighlightStyle
    """``found``: the boxes contain the value itself; ``near``: only the most similar passage."""


@dataclass(frozen=True)
class RecordLine:
    """One line of what a submission will record, in plain words."""

    text: str
    """The line, e.g. ``Pages 1–3: Pathology Report``."""
    kind: RecordLineKind
    """Subject of the line: a type, a quote, a field, what the expert vouches for, or another change."""


@dataclass(frozen=True)
class BoundaryDoubt:
    """Page on which a document may begin: the expert decides."""

    page: int
    """The page, from 2."""
    issue_id: str | None
    """Id of the issue that asks; None if the answer's page ranges leave it open without an issue."""
    is_disputed: bool = False
    """True if the answer's page ranges overlap or leave a gap here, so that the case cannot be submitted undecided."""


@dataclass(frozen=True)
class Opinion:
    """One of two answers that an adjudicator compares, without its author's name."""

    label: str
    """``A`` or ``B``, in an order that does not reveal whose answer came first; or a title in words."""
    draft: Draft
    """The answer as a draft; one segment without a type if the expert could not tell."""
    outcome: ReviewOutcome
    """The decision of that expert's review."""
    notes: str
    """That expert's notes."""


@dataclass(frozen=True)
class ReviewCase(ABC):
    """A case as it was at the moment when one expert opened it."""

    packet: SMEPacket
    """The question, the agent's answer and the issues."""
    bundle: DocumentBundle
    revision: int
    """The number of the newest review when the case was opened; 0 if there was none."""
    draft: Draft
    """The expert's saved draft; without one, the agent's answer or, in a blind case, an empty draft."""
    draft_saved_at: str | None
    """Time at which the restored draft was saved (ISO 8601, UTC); None if no draft was restored."""
    is_completed: bool
    """True if the case is closed, so that it can only be read."""
    reviews: tuple[Review, ...]
    """The reviews of this case that the expert may read, oldest first."""
    opinions: tuple[Opinion, ...] = ()
    """The two answers that an adjudicator chooses between; empty unless the case is an adjudication."""
    second_opinion_reason: str = ""
    """The reason why a colleague asks for a second opinion; empty unless the case is a second opinion."""
    deferral: Deferral | None = None
    """The reviewer who deferred the case, with time and reason; None if it is not deferred."""
    feedback: str = ""
    """Feedback on an answered attention check; empty for any other case."""
    is_read_only: bool = False
    """True if this reviewer's role permits reading cases but not deciding them."""
    closing_review: Review | None = None
    """The review that decided a closed case; None if open, or not to be read yet. ``draft`` is its answer. The case is closed
    unless its reviewer looks again at an own blind answer."""

    def get_issue_context(self, issue_id: Issue | str) -> IssueContext:
        """Get an issue (given itself or its id) with the document's text around it.

        NotFound if the case has no issue with this id. The result is cached.
        """
        issue_id = get_issue_id(issue_id)
        if issue_id not in self._contexts_by_issue_id:  # the screen asks again on every page change
            self._contexts_by_issue_id[issue_id] = build_issue_context(
                self.packet, issue_id, self.bundle, self.quote_locator
            )
        return self._contexts_by_issue_id[issue_id]

    @cached_property
    def quote_locator(self) -> QuoteLocator:
        """Quote locator for all issues of the case; it indexes the document once."""
        return QuoteLocator(self.bundle)

    @property
    def is_locked(self) -> bool:
        """True if the case is closed or this reviewer may not decide cases."""
        return self.is_completed or self.is_read_only

    @property
    def is_blind(self) -> bool:
        """True if the agent's answer must be hidden until the expert has answered."""
        return is_blind_review(self.packet, self.revision)

    # Defined by each kind of case

    _changed_sentence = "You have changed the answer: submit it as a correction."
    """The sentence that tells an expert why an answer that they changed cannot be validated."""

    @abstractmethod
    def get_viewing_requirements(self, draft: Draft) -> ViewingRequirements:
        """Get the pages and issues that the expert must see before validating this draft."""

    @abstractmethod
    def mark_target_and_page_seen(self, draft: Draft, target_id: str, page: int) -> Draft:
        """Record that a page was on screen, and a target if it is on this page."""

    @property
    @abstractmethod
    def _unvalidatable_reason(self) -> str | None:
        """Reason why nobody can validate the agent's answer; None if it can be validated."""

    @abstractmethod
    def has_expert_changes(self, draft: Draft) -> bool:
        """Return True if the draft's answer differs from the agent's.

        Notes and verdicts on issues do not count.
        """

    @abstractmethod
    def describe_changes(self, draft: Draft) -> tuple[str, ...]:
        """Describe each difference from the agent's answer in one sentence."""

    @abstractmethod
    def _find_obstacle_and_remedy(self, draft: Draft) -> tuple[str, str] | None:
        """Find why the draft cannot be submitted as a correction, with the remedy.

        None if it can be submitted.
        """

    @abstractmethod
    def _build_answer_fields(self, draft: Draft, *, is_validation: bool, is_undeterminable: bool) -> dict[str, Any]:
        """Build the ``Submission`` fields that are specific to this kind of case."""

    # Shared by all kinds

    def compute_mixture_after_review(self, draft: Draft) -> tuple[tuple[DocumentType, float], ...]:
        """Compute each type's share (0..1) of the document if the draft were submitted.

        These are the shares that the expert stated; otherwise each type's part of the pages. A page without a type counts
        for no type.
        """
        if draft.mixture is not None:
            return tuple(draft.mixture.items())
        page_counts: Counter[DocumentType | None] = Counter()
        for segment in draft.segments:
            page_counts[segment.dominant_type] += segment.end_page - segment.start_page + 1
        return tuple((document_type, page_counts[document_type] / draft.total_pages) for document_type in DocumentType)

    def is_same_as_agent(self, draft: Draft) -> bool:
        """Return True if the draft's answer is the agent's answer.

        In a blind case the screen must not show the result before the case is closed.
        """
        return not self.has_expert_changes(draft)

    def describe_record(self, draft: Draft) -> tuple[RecordLine, ...]:
        """Describe, line by line, what submitting the draft now would record.

        In a blind case, only what the expert gave: the agent's answer stays hidden.
        """
        return tuple(RecordLine(sentence, "change") for sentence in self.describe_changes(draft))

    def find_contradiction(self, draft: Draft) -> str:
        """Find a part of the answer that contradicts an own verdict; return a question.

        Empty if there is none.
        """
        return ""

    def describe_open_doubts(self, draft: Draft) -> str:
        """Describe how many doubts that must be seen have no answer yet.

        Empty if none is left, or as long as the case cannot be validated.
        """
        if self.explain_validation_block(draft):
            return ""
        judged_ids = {verdict.issue_id for verdict in draft.issue_verdicts}
        open_ids = {*self.get_viewing_requirements(draft).issue_ids} - judged_ids
        counts = [*count_issues(issue for issue in self.packet.open_issues if issue.issue_id in open_ids)]
        return f"{join_with_and(counts)} not answered yet" if counts else ""

    @property
    def boundary_doubts(self) -> tuple[BoundaryDoubt, ...]:
        """The pages on which a document may begin, in page order; empty in a blind case."""
        return ()

    def describe_disagreement(self, draft: Draft) -> dict[str, str]:
        """Describe how a blind answer differs: ``you``, ``program``, ``because``.

        ``because`` is the agent's evidence or reasoning; empty if it gave none. The result is empty if both answers agree.
        """
        return {}

    def is_short(self, draft: Draft) -> bool:
        """Return True if the expert answers only questions about the parts in doubt."""
        return False

    def find_unseen_requirements(self, draft: Draft) -> ViewingRequirements:
        """Find the required pages and issues that were not on screen yet."""
        required = self.get_viewing_requirements(draft)
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
        """Explain to the clinician why the case cannot be validated now; None if it can.

        A blind case can never be validated, only answered: see ``explain_submission_block``.
        """
        if self.is_blind:
            return "Give your own answer first: the program's answer is shown afterwards."
        if reason := self.explain_permanent_validation_block():
            return reason
        if self.has_expert_changes(draft):
            gap = self.explain_submission_block(draft) if self.is_short(draft) else None
            return gap or self._changed_sentence
        return self._describe_unseen(draft)

    def _describe_unseen(self, draft: Draft) -> str | None:
        unseen = self.find_unseen_requirements(draft)
        parts = [*count_issues(issue for issue in self.packet.open_issues if issue.issue_id in unseen.issue_ids)]
        if parts and self.is_short(draft):
            parts = [format_count(len(unseen.issue_ids), "question")]
        if unseen.page_numbers:
            parts.append(format_page_numbers(unseen.page_numbers))
        return f"{join_with_and(parts)} not yet seen" if parts else None

    def explain_submission_block(self, draft: Draft) -> str | None:
        """Explain why the draft cannot be submitted as an answer or a correction now.

        None if it can. The rules for the overall type and the shares are checked only when the draft is submitted.
        """
        if self.is_locked:
            return self._lock_reason
        obstacle = self._find_obstacle_and_remedy(draft)
        return obstacle[0] if obstacle else None

    def build_submission(self, draft: Draft, *, validate: bool, undeterminable_reason: str | None) -> Submission:
        """Build the submission of a validation, a correction or "cannot tell".

        ReviewRefused if the draft does not permit this decision.
        """
        self._require_permitted_submission(draft, validate=validate, undeterminable_reason=undeterminable_reason)
        common_fields: dict[str, Any] = {
            "agrees": validate or None,
            "correction_notes": _join_notes_of_draft(draft),
            "issue_verdicts": tuple(
                verdict.model_copy(update={"note": draft.issue_notes.get(verdict.issue_id, verdict.note)})
                for verdict in draft.issue_verdicts
            ),
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
                "a case cannot be both validated and undeterminable", "Pass either agrees=True or undeterminable."
            )
        if validate and (reason := self.explain_validation_block(draft)):
            raise build_incomplete_review_error(
                reason.rstrip("."), "Complete what the message names, or submit your own answer as a correction."
            )
        if not validate and undeterminable_reason is None and (obstacle := self._find_obstacle_and_remedy(draft)):
            raise build_incomplete_review_error(*obstacle)

    @cached_property
    def _contexts_by_issue_id(self) -> dict[str, IssueContext]:
        return {}


class CaseKind(Protocol[PacketT, AnswerT_contra]):
    """Interface of a kind of case: its file, draft, review and ground truth.

    The answer type ``AnswerT_contra`` is the type of ``Review.before`` (the agent's answer) and ``Review.after`` (the
    expert's).
    """

    packet_class: type[PacketT]
    """Class of this kind's packets."""
    case_class: type[ReviewCase]
    """Class of this kind's open cases."""
    correction_class: type[Correction]
    """Class of the corrections that a submission of this kind may contain."""
    review_class: type[Review] = Review
    """Class of this kind's stored reviews; a subclass if ``ground_truth.ReviewedAnswer`` lacks its answer type."""
    case_id_suffix: str = ""
    """Ending of the ids of this kind's base cases; every kind has another one."""
    is_named_after_document: bool = True
    """True if a base case's id is the document's id plus the suffix, so that a purge of the document finds the case."""
    topic: str
    """Subject of such a case as a noun phrase for error texts, e.g. ``fields``."""
    correction_remedy: str
    """Sentence that says which argument of ``SMEReviewHelper.save_review`` corrects such a case."""

    def create_draft(self, packet: PacketT, *, is_blind: bool) -> Draft:
        """Create an expert's first draft: the agent's answer, or empty in a blind case."""
        return Draft.create_blank(packet.total_pages) if is_blind else Draft.from_packet(packet)

    def reconstruct_draft(self, packet: PacketT, review: Review, answer: AnswerT_contra | None) -> Draft:
        """Rebuild the draft from which a review was submitted, without notes and verdicts."""

    def build_review_fields(
        self, outcome: ReviewOutcome, submission: Submission, packet: PacketT, bundle: DocumentBundle
    ) -> dict[str, Any]:
        """Build the fields of a ``Review`` that depend on the kind of case.

        ReviewRefused if the submitted answer is not valid.
        """

    def list_page_ranges(self, answer: AnswerT_contra | None, total_pages: int) -> list[tuple[int, int]]:
        """List first and last page of each segment to which a remark can be attached.

        Empty if the answer has no segments.
        """
        return []

    def is_same_answer(self, first: AnswerT_contra, second: AnswerT_contra) -> bool:
        """Return True if two experts' answers agree, so that no adjudication is needed."""
        return first == second

    def summarise_answer(self, answer: AnswerT_contra) -> str:
        """Summarise an answer in one or two words for the audit trail."""

    def list_answer_sections(self, packet: PacketT) -> list[tuple[str, list[list[str]] | None]]:
        """List the sections that ``evalkit show`` prints for the agent's answer.

        Each section is a text and the rows of a two-column table, or None instead of the rows.
        """
        return []

    def build_ground_truth(
        self, packet: PacketT, review: Review, answer: AnswerT_contra, record_fields: Mapping[str, Any]
    ) -> GroundTruthRecord:
        """Build the ground truth record from the newest review.

        ``record_fields`` are the values of the ``GroundTruthRecord`` fields, which all kinds share.
        """

    def complete_ground_truth(self, output_folder: OutputFolder, packet: PacketT, record: Any) -> Any:
        """Add data from other files of the output folder to a ground truth record."""
        return record

    def write_projected_files(
        self,
        output_folder: OutputFolder,
        packet: PacketT,
        record: GroundTruthRecord | None,
        answers: Sequence[AnswerT_contra | None],
    ) -> None:
        """Write the further files that are derived from the ground truth.

        ``record`` is None if there is no ground truth; ``answers`` are the answers of all reviews so far.
        """
        return

    def read_answering_model_name(self, output_folder: OutputFolder, doc_id: str) -> str:
        """Read the name of the model that gave the agent's answer.

        ``supplied`` if another system gave the answer; empty if unknown.
        """
        return ""


def count_issues(issues: Iterable[Issue]) -> Iterator[str]:
    """Count issues, which are sorted by severity: ``2 grave doubts``, ``1 remark``."""
    for severity, group in groupby(issue.severity for issue in issues):
        yield format_count(len(list(group)), _SEVERITY_WORDS[severity])


def _join_notes_of_draft(draft: Draft) -> str:
    """Join the expert's notes on the case, issues without a verdict, deleted entries."""
    judged_ids = {verdict.issue_id for verdict in draft.issue_verdicts}
    issue_lines = (
        f"{issue_id}: {text}" for issue_id, text in sorted(draft.issue_notes.items()) if issue_id not in judged_ids
    )
    removal_lines = (f"{key}: {format_field_value(answer)}" for key, answer in draft.fields.items() if answer.removed)
    return "\n".join(filter(None, [draft.notes, *issue_lines, *removal_lines]))
