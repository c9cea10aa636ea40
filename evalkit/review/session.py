"""Review session: the cases that one reviewer decides in one browser tab.

A case is claimed when it is opened, its draft is saved whenever it changes, and its review is based on the revision that
was on screen. All rules about who may decide what are applied here and not in the widgets, so that two screens, or a
notebook and a screen, follow the same rules.
"""

import hashlib
import json
import logging
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from statistics import median

from pydantic import ValidationError

from evalkit.core.clocks import format_iso_seconds
from evalkit.core.document_cache import forget_document_texts
from evalkit.errors import DocumentError, EvalkitError, ReviewConflict, ReviewRefused, StoreError, UsageError
from evalkit.review.attention_checks import read_attention_check_feedback
from evalkit.review.case import ReviewCase, is_blind_review
from evalkit.review.case_files import read_numbered_reviews, read_packet, read_packet_bundle
from evalkit.review.claiming import (
    CLAIM_DURATION,
    ClaimHolder,
    recompute_and_save_case_status,
    reconcile_statuses_with_claims,
    try_write_packet_status,
)
from evalkit.review.draft import Draft
from evalkit.review.ground_truth import Review, ReviewOutcome, find_newest_revision
from evalkit.review.index_rebuild import open_index
from evalkit.review.kinds import CASE_KINDS
from evalkit.review.opinions import CaseOpinions
from evalkit.review.packet import (
    SECOND_SUFFIX,
    ReviewReason,
    SMEPacket,
    compute_packet_digest,
    get_base_case_id,
)
from evalkit.review.permissions import Permissions, ReviewerRole
from evalkit.review.queue import (
    OPEN_STATUSES,
    QueueList,
    QueuePage,
    QueueQuery,
    ReviewProgress,
)
from evalkit.review.review_helper import require_folder_and_get_reviewer_name
from evalkit.review.roster import ReviewerRoster
from evalkit.review.submission import Submission, build_incomplete_review_error
from evalkit.review.submitter import BrowserTab, ReviewSubmitter
from evalkit.review.write_lock import hold_case_write_lock
from evalkit.store import (
    CaseClaim,
    CaseView,
    ColleagueReply,
    Deferral,
    OutputFolder,
    QueuePlace,
    StoredDraft,
    packet_file_name,
)

__all__ = ["ReviewCase", "ReviewSession", "SubmissionReceipt"]

_log = logging.getLogger(__name__)

#: The least time between two renewals of a claim; much shorter than the silence after which a claim counts as abandoned.
_MIN_RENEWAL_INTERVAL = timedelta(seconds=15)
#: The number of own cases that a reviewer can reopen from the queue.
_RECENT_CASES = 10
#: The codes of errors in a case's own files, so that other cases can be opened.
_BROKEN_CASE = frozenset({"CASE-NOT-FOUND", "STORE-NOT-FOUND", "STORE-TORN", "STORE-NEWER"})
_SAMPLED_REASONS: tuple[ReviewReason, ...] = ("audit", "sample")


def _get_local_time() -> datetime:
    return datetime.now(UTC).astimezone()


@dataclass(frozen=True)
class SubmissionReceipt:
    """A saved review, with the feedback that the expert then sees."""

    review: Review
    revision: int
    """The review's number, from 1."""
    production_type: str | None
    """The production classifier's type; None if unknown."""
    agent_type: str | None
    """The agent's overall type of the file after a blind case; None after any other case, or if the agent gave no type."""
    is_same_as_agent: bool | None
    """True if the expert's answer to a blind case equals the agent's answer; None after any other case."""
    feedback: str = ""
    """Feedback on an attention check; empty after any other case."""
    disagreement: Mapping[str, str] = field(default_factory=dict)
    """Own and agent's answer after a blind case, if they differ and the reviewer may look again: see
    ``ReviewCase.describe_disagreement``; empty otherwise."""


@dataclass(frozen=True)
class RecentCase:
    """A case that the reviewer finished recently."""

    case_id: str
    pdf_filename: str
    outcome: ReviewOutcome
    closed_at: str
    """Time of the review (ISO 8601, UTC)."""
    seconds_active: float | None
    """Seconds that the review took; None if unknown."""


def compute_case_address(case_id: str) -> str:
    """Compute a case's URL part: 12 hex digits, because a case_id may hold a name."""
    return hashlib.sha256(case_id.encode(errors="replace")).hexdigest()[:12]


@dataclass(frozen=True)
class _UndoableSubmission:
    case_id: str
    revision: int
    packet_sha256: str
    draft: Draft


@dataclass(frozen=True)
class _OpenedCase:
    """State of a case at the moment when this session opened it."""

    revision: int
    packet_sha256: str
    opened_at: str
    claim: CaseClaim | None
    """This tab's claim as last renewed; None if the case was opened only for reading."""
    is_drawn: bool
    """True if the case is an audit or sample, after which the reviewer's place in the list stays."""

    @property
    def is_locked(self) -> bool:
        return self.claim is None


class ReviewSession:
    """One reviewer's access to the queue and the cases from one browser tab."""

    def __init__(
        self,
        output_folder: OutputFolder,
        reviewer: str,
        tab_id: str,
        *,
        clock: Callable[[], datetime] = _get_local_time,
    ) -> None:
        """Open the index of a run's output folder for one reviewer and one browser tab.

        ``tab_id`` identifies the tab and stays the same when the page is reloaded. ``clock`` returns times with a time zone,
        in which "today" begins at midnight. UsageError if the name or the tab's id is empty, or if the folder is no output
        folder.
        """
        reviewer_name = require_folder_and_get_reviewer_name(output_folder, reviewer)
        if not tab_id:
            raise UsageError(
                "the browser tab has no id",
                code="REVIEWER-SESSION",
                remedy="Pass a tab_id that is different for each browser tab.",
            )
        self._holder = ClaimHolder(reviewer_name, tab_id)
        self._clock = clock
        self._output_folder = output_folder
        self._index = open_index(self._output_folder)
        self._roster = ReviewerRoster(self._output_folder)
        self._submitter = ReviewSubmitter(self._output_folder, self._index, reviewer_name, clock)
        self._opened_cases: dict[str, _OpenedCase] = {}
        self._broken_case_ids: set[str] = set()
        self._last_submission: _UndoableSubmission | None = None
        self._place = self._index.queue_places.find(reviewer_name) or QueuePlace(reviewer_name, "{}", "")

    def close(self) -> None:
        """Release the claims of this session and close the database.

        A claim that the same tab has renewed since, after a reload of the page, is kept.
        """
        with ExitStack() as exit_stack:  # all cases are released even if one fails; the error is raised afterwards
            exit_stack.callback(self._index.close)
            for case_id in self._opened_cases:
                exit_stack.callback(self.release_case, case_id)

    @property
    def role(self) -> ReviewerRole:
        """The reviewer's current role."""
        return self._permissions.role

    @property
    def queue_query(self) -> QueueQuery:
        """Search, filters, order and page of the queue, as the reviewer left them."""
        return QueueQuery.from_message(json.loads(self._place.query))

    def choose_queue_query(self, query: QueueQuery) -> None:
        """Store the reviewer's search, filters, order and page of the queue.

        With other filters or another order, the reviewer goes on from the top of the list.
        """
        is_same_list = replace(query, page=0) == replace(self.queue_query, page=0)
        self._save_place(
            replace(self._place, query=json.dumps(asdict(query)), **({} if is_same_list else {"case_id": ""}))
        )

    def return_to_top(self) -> None:
        """Make the next case the first case of the queue again."""
        self._save_place(replace(self._place, case_id=""))

    def load_queue_page(self, query: QueueQuery | None = None) -> QueuePage:
        """Load one page of the queue, with counts of open cases and today's decisions.

        None as the query: the list as the reviewer left it.
        """
        permissions, reviewer = self._permissions, self._holder.reviewer
        queue_list = self._load_queue_list(query or self.queue_query)
        page_rows = queue_list.query.rows
        page = min(queue_list.query.page, max(queue_list.length - 1, 0) // page_rows)
        rows = queue_list.load_rows(page * page_rows, page_rows)
        rows_from_place = rows[max(queue_list.place - page * page_rows, 0) :]
        counts = self._index.case_list.count_by_status(permissions.tasks)
        midnight = self._compute_last_midnight()
        return QueuePage(
            rows=tuple(rows),
            pending=counts.get("pending", 0),
            in_review=counts.get("in_review", 0),
            done_today=self._index.count_closed_cases(since=midnight),
            done_by_me=self._index.count_closed_cases(since=midnight, reviewer=reviewer),
            deferred=counts.get("deferred", 0),
            lost=len(self._index.lost_case_ids),
            matching=queue_list.length,
            facets=queue_list.facets,
            view=replace(queue_list.query, page=page),
            role=permissions.role,
            is_read_only=permissions.is_read_only,
            drawn=queue_list.drawn,
            drawn_since=queue_list.drawn_since,
            next_case_id=""
            if permissions.is_read_only or queue_list.place < page * page_rows
            else next((row.case_id for row in rows_from_place if queue_list.can_come_next(row)), ""),
            tasks=permissions.tasks,
            replies=tuple(self._index.replies.list_replies(reviewer)),
        )

    def _load_queue_list(self, query: QueueQuery) -> QueueList:
        now = self._clock()
        reconcile_statuses_with_claims(self._output_folder, self._index, format_iso_seconds(now))
        return QueueList(
            self._index, query, now, self._holder, self._permissions, self._place.case_id, self._broken_case_ids
        )

    def _save_place(self, place: QueuePlace) -> None:
        if place != self._place:
            self._place = place
            with suppress(StoreError):  # a full disk must not keep the reviewer from the list
                stored_query = asdict(replace(self.queue_query, search=""))  # what was searched may be a patient's name
                self._index.queue_places.save(replace(place, query=json.dumps(stored_query)))

    def _go_on_after(self, case_id: str, opened_case: _OpenedCase) -> None:
        if not opened_case.is_drawn:
            self._save_place(replace(self._place, case_id=case_id))

    def measure_progress(self) -> ReviewProgress:
        """Count open cases and this reviewer's decisions, with their median time per case."""
        midnight = self._compute_last_midnight()
        reviewer = self._holder.reviewer
        durations = self._index.list_active_seconds(reviewer, since=midnight) or self._index.list_active_seconds(
            reviewer
        )
        counts = self._index.case_list.count_by_status(self._permissions.tasks)
        return ReviewProgress(
            done_by_me=self._index.count_closed_cases(since=midnight, reviewer=reviewer),
            open_count=sum(counts.get(status, 0) for status in OPEN_STATUSES),
            median_seconds=median(durations) if durations else None,
        )

    def choose_next_case_id(self) -> str | None:
        """Choose the case after the one finished last in the reviewer's list; or None.

        None also for a reviewer who may only read cases.
        """
        return None if self._permissions.is_read_only else self._load_queue_list(self.queue_query).find_next_case_id()

    def find_case_id(self, address: str) -> str | None:
        """Find the case of a URL part (``compute_case_address``); None if unknown."""
        return next(
            (case_id for case_id in self._index.list_case_ids() if compute_case_address(case_id) == address), None
        )

    def list_recent_cases(self) -> list[RecentCase]:
        """List the ten cases that this reviewer finished last, newest first."""
        recent_cases = []
        for row in self._index.list_closed_cases(self._holder.reviewer, _RECENT_CASES):
            with suppress(StoreError):  # a damaged case is reported when it is opened
                recent_cases.append(
                    RecentCase(
                        row["case_id"],
                        row["pdf_filename"],
                        read_numbered_reviews(self._output_folder, row["case_id"])[-1][1].outcome,
                        row["closed_at"],
                        row["seconds_active"],
                    )
                )
        return recent_cases

    def reopen_case(self, case_id: str) -> None:
        """Reopen one of the reviewer's last cases, with the submitted answer as draft.

        ReviewRefused if the case is not among the ten that the reviewer finished last, or cannot be reopened.
        """
        if case_id not in [recent_case.case_id for recent_case in self.list_recent_cases()]:
            raise ReviewRefused(
                f"case {case_id:s} is not among the cases that you finished last",
                code="REVIEW-NOT-RECENT",
                remedy="Reopen the case with a reason: SMEReviewHelper.reopen(case_id, reason).",
            )
        opinions = CaseOpinions.read(self._output_folder, case_id)
        revision, review = opinions.numbered_reviews_by_case_id[case_id][-1]
        packet_sha256, draft = self._compute_stored_packet_digest(case_id), opinions.reconstruct_draft(review)
        self._reopen_with_draft(
            _UndoableSubmission(case_id, revision, packet_sha256, draft), "reopened by the reviewer"
        )

    def reply_to_colleague(self, case_id: str, sentence: str) -> None:
        """Reply to the colleague who deferred the case or asked for an opinion.

        ReviewRefused without a sentence, or if no colleague has asked.
        """
        self._require_open(case_id)
        self._permissions.require_deciding_role(case_id)
        asker = self._find_asker(case_id)
        if not sentence.strip() or not asker:
            raise build_incomplete_review_error(
                "the case has no question to reply to, or the reply is empty", "Type a reply."
            )
        now = format_iso_seconds(self._clock())
        self._index.replies.save(ColleagueReply(case_id, asker, self._holder.reviewer, sentence.strip(), now))

    def _find_asker(self, case_id: str) -> str:
        deferral = self._index.deferrals.find(case_id)
        asking_review = CaseOpinions.read(self._output_folder, case_id).review_requesting_second_opinion
        if deferral:
            return deferral.reviewer
        return asking_review.reviewer if asking_review and case_id.endswith(SECOND_SUFFIX) else ""

    def open_and_claim_case(self, case_id: str, *, take_over: bool = False, look_again: bool = False) -> ReviewCase:
        """Open a case with its saved draft, and claim it for this tab for 15 minutes.

        A closed case is opened only for reading, without a claim, and so is every case for a reviewer who may only read.
        With ``look_again``, the reviewer's own blind answer is opened to be changed, beside the agent's; until it is
        submitted again, the case stays closed. So is a case whose second look has a draft.
        CaseTaken if the case is open elsewhere and ``take_over`` is False; ReviewRefused if the case needs another expert or
        an adjudicator; NotFound if there is no such case; StoreError if its files cannot be read. After an error, this tab
        holds no claim on the case.
        """
        try:
            case = self._open_and_claim_case(case_id, take_over=take_over, look_again=look_again)
        except Exception as error:
            self.give_back_case(case_id, error)
            raise
        self._broken_case_ids.discard(case_id)
        return case

    def give_back_case(self, case_id: str, error: Exception) -> bool:
        """Release the claim on a case that could not be shown because of an error.

        Return True if only this case is broken. In this session it then does not come next until it can be opened.
        """
        is_broken = (
            not isinstance(error, EvalkitError) or isinstance(error, DocumentError) or error.code in _BROKEN_CASE
        )
        if is_broken:
            self._broken_case_ids.add(case_id)
        with suppress(StoreError):  # why the case could not be shown matters more
            self.release_case(case_id)
        return is_broken

    def _open_and_claim_case(self, case_id: str, *, take_over: bool, look_again: bool) -> ReviewCase:
        bundle = read_packet_bundle(self._output_folder, read_packet(self._output_folder, case_id))
        now = self._clock()
        with hold_case_write_lock(self._output_folder, case_id):
            packet = read_packet(self._output_folder, case_id)
            opinions = CaseOpinions.read(self._output_folder, case_id)
            opinions.require_not_excluded(case_id, self._holder.reviewer)
            opinions.require_reading_permission(case_id, self._holder.reviewer)
            closing_review = opinions.find_closing_review(case_id, self._holder.reviewer)
            own_blind_answer = (
                closing_review
                if closing_review
                and closing_review.reviewer == self._holder.reviewer
                and not closing_review.shown.agent
                else None
            )
            stored_draft = self._index.drafts.find_newest_draft(case_id, self._holder.reviewer, self._holder.tab_id)
            # Submitting removes the draft, so a newer one belongs to a second look.
            has_begun_second_look = bool(
                own_blind_answer and stored_draft and stored_draft.saved_at >= own_blind_answer.submitted_at
            )
            is_looking_again = bool((look_again or has_begun_second_look) and own_blind_answer)
            is_completed = opinions.get_status(case_id) == "completed" and not is_looking_again
            permissions = self._permissions
            claim = None
            is_locked = is_completed or permissions.is_read_only
            if not is_locked:
                permissions.require_case_permission(case_id, opinions.list_excluded_reviewers(case_id))
            revision, packet_sha256 = find_newest_revision(self._output_folder, case_id), compute_packet_digest(packet)
            with self._index.batch_into_one_transaction():
                if not is_locked:
                    claim = self._holder.acquire_or_renew_claim(self._index, case_id, now, take_over=take_over)
                    self._index.set_review_status(case_id, "completed" if is_looking_again else "in_review")
                self._index.view_log.save(CaseView(case_id, self._holder.reviewer, format_iso_seconds(now)))
            self._opened_cases[case_id] = opened_case = _OpenedCase(
                revision, packet_sha256, format_iso_seconds(now), claim, packet.review_reason in _SAMPLED_REASONS
            )
            if not is_locked and not is_looking_again:
                try_write_packet_status(self._output_folder, case_id, "in_review")
                packet = packet.model_copy(update={"review_status": "in_review"})
        draft, saved_at = (
            (opinions.reconstruct_draft(closing_review), None)
            if closing_review and not has_begun_second_look
            else self._load_draft_and_saved_at(packet, opened_case)
        )
        return CASE_KINDS[packet.kind].case_class(
            packet.with_asked_questions(),
            bundle,
            opened_case.revision,
            draft,
            saved_at,
            is_completed,
            opinions.list_readable_reviews(case_id, self._holder.reviewer),
            opinions.compare_with_agent(closing_review)
            if closing_review and is_looking_again
            else opinions.list_opinions_shown_to_adjudicator(case_id),
            opinions.get_second_opinion_reason(case_id),
            self._index.deferrals.find(case_id),
            read_attention_check_feedback(
                self._output_folder, packet, opinions.numbered_reviews_by_case_id[case_id][-1][1]
            )
            if is_completed
            else "",
            is_read_only=permissions.is_read_only,
            closing_review=closing_review,
        )

    def renew_claim(self, case_id: str) -> None:
        """Renew this tab's claim on an open case for 15 minutes.

        An expired claim is taken again if nobody else has claimed the case. Nothing happens if the case is open only for
        reading. CaseTaken if another reviewer has claimed the case; ReviewConflict if the case was reviewed, or its document
        run again, since it was opened; ReviewRefused if the case is not open in this session, or if the reviewer may no longer
        decide it.
        """
        opened_case = self._require_open(case_id)
        if opened_case.is_locked:
            return
        now = self._clock()
        claim = self._find_live_claim(case_id, format_iso_seconds(now))
        # The heartbeat comes every few seconds, and each renewal waits for the disk: skip renewals in quick succession.
        if (
            claim
            and self._holder.is_holder_of(claim)
            and claim.expires_at > format_iso_seconds(now + CLAIM_DURATION - _MIN_RENEWAL_INTERVAL)
        ):
            return  # the remembered claim stays: one that a reloaded page of this tab renewed is released by that page
        with hold_case_write_lock(self._output_folder, case_id):  # the case must not be closed meanwhile
            self._require_case_unchanged_and_untaken(
                case_id, opened_case, self._compute_stored_packet_digest(case_id), format_iso_seconds(now)
            )
            self._permissions.require_case_permission(
                case_id, CaseOpinions.read(self._output_folder, case_id).list_excluded_reviewers(case_id)
            )
            claim = self._holder.acquire_or_renew_claim(self._index, case_id, now)
            self._opened_cases[case_id] = replace(opened_case, claim=claim)
            recompute_and_save_case_status(self._output_folder, self._index, case_id, format_iso_seconds(now))

    def save_draft_and_get_time(self, case_id: str, draft: Draft) -> str:
        """Save the draft to disk; return the time of saving (ISO 8601, UTC).

        No claim is needed. NotFound if there is no such case; ReviewRefused if the reviewer may only read cases; StoreError
        if the draft could not be written.
        """
        opened_case = self._opened_cases.get(case_id)
        if opened_case is None or opened_case.is_locked:
            self._permissions.require_deciding_role(case_id)
        with hold_case_write_lock(self._output_folder, case_id):
            packet_sha256 = opened_case.packet_sha256 if opened_case else self._compute_stored_packet_digest(case_id)
            return self._store_draft_and_get_time(case_id, draft, packet_sha256)

    def _store_draft_and_get_time(self, case_id: str, draft: Draft, packet_sha256: str) -> str:
        """Store a draft if its case still exists; the caller holds the write lock.

        NotFound if the case was purged, so that nothing of it is stored again.
        """
        if not self._output_folder.has_file(packet_file_name(case_id)):
            read_packet(self._output_folder, case_id)
        now = format_iso_seconds(self._clock())
        self._index.drafts.save(
            StoredDraft(
                case_id, self._holder.reviewer, self._holder.tab_id, packet_sha256, draft.model_dump_json(), now
            )
        )
        return now

    def submit_review(
        self, case_id: str, draft: Draft, *, validate: bool = False, undeterminable_reason: str | None = None
    ) -> SubmissionReceipt:
        """Save the reviewer's decision and close the case; draft and claim are removed.

        ``validate`` agrees with the agent's answer, ``undeterminable_reason`` says why nobody can tell, and otherwise the draft
        is a correction. A blind answer counts as a validation if it equals the agent's answer, and else as a correction.

        CaseTaken if another reviewer has the case open; ReviewConflict if the case was reviewed, or its document run again,
        since it was opened; ReviewRefused if the review is not valid, or if a required page or issue was not on screen.
        Nothing is written then.
        """
        return self._submit(
            case_id,
            draft,
            lambda case: case.build_submission(draft, validate=validate, undeterminable_reason=undeterminable_reason),
        )

    def submit_and_request_second_opinion(self, case_id: str, draft: Draft, reason: str) -> SubmissionReceipt:
        """Submit the reviewer's answer and ask a colleague to answer the case too.

        The colleague answers the case ``….second``. A draft without changes validates the agent's answer if that is permitted,
        and otherwise is a correction that consists of notes. The document has no ground truth until the colleague agrees or a
        third expert has decided. Errors as in ``submit_review``; ReviewRefused also without a reason.
        """
        if not reason.strip():
            raise build_incomplete_review_error(
                "the request for a second opinion has no reason", "Say what the colleague should look at."
            )
        if get_base_case_id(case_id) != case_id:
            raise ReviewRefused(
                f"case {case_id!r} is itself a second opinion or an adjudication",
                code="REVIEW-NOT-BASE",
                remedy="Answer the case yourself; if two experts' answers differ, a third expert decides.",
            )

        def build_submission(case: ReviewCase) -> Submission:
            is_correction = case.has_expert_changes(draft) or bool(draft.notes.strip())
            validate = case.explain_validation_block(draft) is None or not is_correction
            submission = case.build_submission(draft, validate=validate, undeterminable_reason=None)
            return replace(submission, second_opinion=reason.strip())

        return self._submit(case_id, draft, build_submission)

    def defer_case_and_get_time(self, case_id: str, draft: Draft, reason: str) -> str:
        """Defer the case with a reason: save the draft and release the claim.

        Return the time (ISO 8601, UTC). Until its next review, the case has the status ``deferred`` whenever nobody has it
        open. CaseTaken and ReviewConflict as in ``submit_review``; ReviewRefused without a reason, or if the case is closed.
        """
        if not reason.strip():
            raise build_incomplete_review_error(
                "a case cannot be deferred without a reason", "Say what is missing for a decision."
            )
        opened_case = self._require_open_and_unlocked(case_id)
        now = self._clock()
        with hold_case_write_lock(self._output_folder, case_id):
            self._require_case_unchanged_and_untaken(
                case_id, opened_case, self._compute_stored_packet_digest(case_id), format_iso_seconds(now)
            )
            opinions = CaseOpinions.read(self._output_folder, case_id)
            if opinions.get_status(case_id) == "completed":
                raise build_incomplete_review_error(
                    "this case is already answered, so it cannot be deferred", "Go back to the queue."
                )
            self._permissions.require_case_permission(case_id, opinions.list_excluded_reviewers(case_id))
            # The draft is on disk before the claim is released.
            self._store_draft_and_get_time(case_id, draft, opened_case.packet_sha256)
            self._index.deferrals.save(
                Deferral(case_id, self._holder.reviewer, reason.strip(), format_iso_seconds(now))
            )
            self._index.claims.remove(case_id)
            recompute_and_save_case_status(self._output_folder, self._index, case_id, format_iso_seconds(now))
        self._go_on_after(case_id, opened_case)
        del self._opened_cases[case_id]
        forget_document_texts()
        return format_iso_seconds(now)

    def _submit(
        self, case_id: str, draft: Draft, build_submission: Callable[[ReviewCase], Submission]
    ) -> SubmissionReceipt:
        opened_case = self._require_open_and_unlocked(case_id)
        loaded_case = self._submitter.load_case(case_id)
        packet = loaded_case.packet
        # Checked first: that the case is open elsewhere matters more than faults of the draft.
        self._require_case_unchanged_and_untaken(
            case_id, opened_case, loaded_case.packet_sha256, format_iso_seconds(self._clock())
        )
        case = CASE_KINDS[packet.kind].case_class(
            packet.with_asked_questions(),
            loaded_case.bundle,
            opened_case.revision,
            draft,
            None,
            is_completed=False,
            reviews=(),
        )
        review = self._submitter.submit_review(
            loaded_case,
            build_submission(case),
            base_revision=opened_case.revision,
            # An expired claim is not renewed: under the write lock nobody else can take the case before the review is saved.
            require_savable=partial(self._require_case_unchanged_and_untaken, case_id, opened_case),
            browser_tab=BrowserTab(self._holder.tab_id, opened_case.opened_at),
        )
        undoable_submission = _UndoableSubmission(case_id, opened_case.revision + 1, opened_case.packet_sha256, draft)
        feedback = read_attention_check_feedback(self._output_folder, packet, review)
        self._last_submission = (
            None if feedback else undoable_submission
        )  # after the feedback on an attention check, nothing can be undone
        self._go_on_after(case_id, opened_case)
        del self._opened_cases[case_id]
        forget_document_texts()
        production_row, agent_answer = packet.production_classification, packet.classification
        can_look_again = case.is_blind and review.after and not (feedback or review.second_opinion)
        return SubmissionReceipt(
            review,
            opened_case.revision + 1,
            production_type=production_row["dominant_type"] if production_row else None,
            agent_type=agent_answer.dominant_type_overall if case.is_blind and agent_answer else None,
            is_same_as_agent=case.is_same_as_agent(draft)
            if case.is_blind and review.outcome != "undeterminable"
            else None,
            feedback=feedback,
            disagreement=case.describe_disagreement(draft) if can_look_again else {},
        )

    @property
    def can_undo(self) -> bool:
        """True if a submission of this session can be undone."""
        return self._last_submission is not None

    def forget_last_submission(self) -> None:
        """Discard the last submission's draft, so that it can no longer be undone.

        The draft holds words of its document.
        """
        self._last_submission = None

    def undo_last_submission_and_get_case_id(self) -> str:
        """Reopen the case that was submitted last with its draft; return its case_id.

        A blind case is no longer blind, because the agent's answer was shown after the decision. ReviewRefused if there is no
        submission to undo; ReviewConflict if the case was reviewed since.
        """
        if self._last_submission is None:
            raise ReviewRefused(
                "no case that you submitted in this tab can be reopened",
                code="REVIEW-NOTHING-TO-UNDO",
                remedy="Reopen a closed case with a reason: SMEReviewHelper.reopen(case_id, reason).",
            )
        case_id = self._last_submission.case_id
        self._reopen_with_draft(self._last_submission, "undone by the reviewer")
        return case_id

    def _reopen_with_draft(self, submission: _UndoableSubmission, reason: str) -> None:
        # The draft is stored before the case is reopened, so that a crash in between does not lose it.
        with hold_case_write_lock(self._output_folder, submission.case_id):
            now = self._store_draft_and_get_time(submission.case_id, submission.draft, submission.packet_sha256)
        try:
            self._submitter.reopen_case(submission.case_id, reason, base_revision=submission.revision)
        except ReviewRefused:
            self._index.drafts.remove_tab_and_older_drafts(
                submission.case_id, self._holder.reviewer, self._holder.tab_id, other_tabs_saved_until=now
            )
            raise
        self._last_submission = None

    def release_case(self, case_id: str) -> None:
        """Release this session's claim on a case; the draft is kept.

        Nothing happens if somebody else, or a reloaded page of this tab, has claimed the case since.
        """
        opened_case = self._opened_cases.get(case_id)
        if opened_case is not None and opened_case.claim is not None:
            with hold_case_write_lock(self._output_folder, case_id):
                if self._index.claims.release_claim_if_unchanged(opened_case.claim):
                    recompute_and_save_case_status(
                        self._output_folder, self._index, case_id, format_iso_seconds(self._clock())
                    )
        self._opened_cases.pop(case_id, None)
        forget_document_texts()

    @property
    def _permissions(self) -> Permissions:
        """The reviewer's current permissions, read from the roster every time."""
        return self._roster.get_permissions(self._holder.reviewer)

    def _compute_last_midnight(self) -> str:
        return format_iso_seconds(self._clock().replace(hour=0, minute=0, second=0, microsecond=0))

    def _find_live_claim(self, case_id: str, now: str) -> CaseClaim | None:
        return self._index.claims.map_live_claims_by_case_id(now, case_id).get(case_id)

    def _compute_stored_packet_digest(self, case_id: str) -> str:
        return compute_packet_digest(read_packet(self._output_folder, case_id))

    def _require_open(self, case_id: str) -> _OpenedCase:
        if case_id not in self._opened_cases:
            raise ReviewRefused(
                f"case {case_id:s} is not open in this tab",
                code="REVIEW-NOT-OPEN",
                remedy="Open the case from the queue.",
            )
        return self._opened_cases[case_id]

    def _require_open_and_unlocked(self, case_id: str) -> _OpenedCase:
        opened_case = self._require_open(case_id)
        if opened_case.is_locked:
            self._permissions.require_deciding_role(case_id)
            raise ReviewRefused(
                f"case {case_id!r} is closed",
                code="REVIEW-CLOSED",
                remedy="Reopen the case with a reason before you change it.",
            )
        return opened_case

    def _require_case_unchanged_and_untaken(
        self, case_id: str, opened_case: _OpenedCase, packet_sha256: str, now: str
    ) -> None:
        """Raise CaseTaken if another tab has the case, ReviewConflict if it has changed."""
        claim = self._find_live_claim(case_id, now)
        if claim and not self._holder.is_holder_of(claim):
            raise self._holder.build_case_taken_error(claim)
        if find_newest_revision(self._output_folder, case_id) != opened_case.revision:
            raise _build_conflict_error(f"case {case_id!r} was reviewed after you opened it")
        if packet_sha256 != opened_case.packet_sha256:
            raise _build_conflict_error(f"the document of case {case_id!r} was run again after you opened the case")

    def _load_draft_and_saved_at(self, packet: SMEPacket, opened_case: _OpenedCase) -> tuple[Draft, str | None]:
        """Load the reviewer's newest draft, rebased onto the packet, and its time.

        Without a readable draft, return the first draft (the agent's answer or, in a blind case, an empty draft) and None.
        """
        is_blind = is_blind_review(packet, opened_case.revision)
        initial_draft = CASE_KINDS[packet.kind].create_draft(packet, is_blind=is_blind)
        stored_draft = self._index.drafts.find_newest_draft(packet.case_id, self._holder.reviewer, self._holder.tab_id)
        if stored_draft is None:
            return initial_draft, None
        try:
            draft = type(initial_draft).model_validate_json(stored_draft.draft)
        except ValidationError:
            # Saved by an evalkit with another draft schema. The cause is not logged, because it quotes the draft.
            _log.warning("a draft saved by another version of evalkit cannot be read; the case starts without it")
            return initial_draft, None
        is_same_packet = (
            stored_draft.packet_sha256 == opened_case.packet_sha256 and draft.total_pages == packet.total_pages
        )
        return draft if is_same_packet else draft.rebase_onto(initial_draft), stored_draft.saved_at


def _build_conflict_error(message: str) -> ReviewConflict:
    return ReviewConflict(message, code="REVIEW-CONFLICT", remedy="Your draft is saved. Open the case again.")
