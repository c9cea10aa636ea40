"""One expert in one browser tab. The widgets show a session's results and pass on what is pressed.

A case is claimed on opening, its draft saved as it changes, and its review submitted on the revision that was on
screen. What people decide is decided here, so that two screens, or a notebook and a screen, cannot contradict each
other.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from statistics import median

from pydantic import ValidationError

from evalkit.core.clocks import format_iso_seconds
from evalkit.errors import ReviewConflict, ReviewRefused, UsageError
from evalkit.review.attention_checks import read_attention_check_feedback
from evalkit.review.case import ReviewCase, is_blind_review
from evalkit.review.case_files import read_packet, read_packet_bundle
from evalkit.review.claiming import (
    CLAIM_DURATION,
    ClaimHolder,
    recompute_and_save_case_status,
    reconcile_statuses_with_claims,
    try_write_packet_status,
)
from evalkit.review.draft import Draft
from evalkit.review.ground_truth import Review, find_newest_revision
from evalkit.review.kinds import CASE_KINDS
from evalkit.review.opinions import CaseOpinions
from evalkit.review.packet import (
    ADJUDICATION_SUFFIX,
    ReviewReason,
    SMEPacket,
    compute_packet_digest,
    get_base_case_id,
)
from evalkit.review.permissions import Permissions, ReviewerRole
from evalkit.review.queue import (
    OPEN_STATUSES,
    QueuePage,
    QueueQuery,
    ReviewProgress,
    build_queue_row,
    select_rows_matching_facets_and_page,
)
from evalkit.review.review_helper import require_folder_and_get_reviewer_name
from evalkit.review.roster import ReviewerRoster
from evalkit.review.submission import Submission, build_incomplete_review_error
from evalkit.review.submitter import BrowserTab, ReviewSubmitter
from evalkit.review.write_lock import hold_case_write_lock
from evalkit.store import CaseClaim, CaseView, Deferral, OutputFolder, OutputIndex, StoredDraft, packet_file_name

__all__ = ["ReviewCase", "ReviewSession", "SubmissionReceipt"]

_log = logging.getLogger(__name__)

#: The rhythm in which a reviewer gets an audit or sample instead of the worst case, so that they are reached.
AUDIT_INTERVAL = 8
#: A claim that was renewed this short a time ago is not renewed again.
_MIN_RENEWAL_INTERVAL = timedelta(seconds=30)
_FIRST_PAGE_QUERY = QueueQuery()
_SAMPLED_REASONS: tuple[ReviewReason, ...] = ("audit", "sample")


def _get_local_time() -> datetime:
    return datetime.now(UTC).astimezone()


@dataclass(frozen=True)
class SubmissionReceipt:
    """A review that was saved."""

    review: Review
    revision: int
    """Its number, from 1."""
    production_type: str | None
    """The production classifier's type; None if its label is not known."""
    agent_type: str | None
    """The agent's type of the whole document, only of a blind case; None if it gave none."""
    is_same_as_agent: bool | None
    """True if the expert's answer to a blind case is the agent's; None for other cases."""
    feedback: str = ""
    """Text that the expert reads after answering; mostly empty."""


@dataclass(frozen=True)
class _UndoableSubmission:
    case_id: str
    revision: int
    packet_sha256: str
    draft: Draft


@dataclass(frozen=True)
class _OpenedCase:
    """The state of a case when it was opened."""

    revision: int
    packet_sha256: str
    opened_at: str
    claim: CaseClaim | None
    """As this screen renewed it last; None if the case is open for reading."""

    @property
    def is_locked(self) -> bool:
        return self.claim is None


class ReviewSession:
    """One expert in one browser tab."""

    def __init__(
        self,
        output_folder: OutputFolder,
        reviewer: str,
        tab_id: str,
        *,
        clock: Callable[[], datetime] = _get_local_time,
    ) -> None:
        """``output_folder`` is that of a run.

        ``tab_id`` the tab's id, which survives a reload of the tab. ``clock`` gives times with their zone,
        which tells when a day begins. UsageError if the reviewer's name or the tab's id is empty, or if that is
        no output folder.
        """
        reviewer_name = require_folder_and_get_reviewer_name(output_folder, reviewer)
        if not tab_id:
            raise UsageError("the tab has no id", code="REVIEWER-SESSION", remedy="Give session='…', one per tab.")
        self._holder = ClaimHolder(reviewer_name, tab_id)
        self._clock = clock
        self._output_folder = output_folder
        self._index = OutputIndex(self._output_folder)
        self._roster = ReviewerRoster(self._output_folder)
        self._submitter = ReviewSubmitter(self._output_folder, self._index, reviewer_name, clock)
        self._opened_cases: dict[str, _OpenedCase] = {}
        self._last_submission: _UndoableSubmission | None = None

    def close(self) -> None:
        """Release the cases that are open here, and the database.

        What the same tab has opened since then, on a page that was loaded again, stays its own.
        """
        with ExitStack() as exit_stack:  # an error in one case does not keep the others, and is raised at the end
            exit_stack.callback(self._index.close)
            for case_id in self._opened_cases:
                exit_stack.callback(self.release_case, case_id)

    @property
    def role(self) -> ReviewerRole:
        """The reviewer's role as it is now."""
        return self._permissions.role

    def load_queue_page(self, query: QueueQuery = _FIRST_PAGE_QUERY) -> QueuePage:
        """Load the part of the queue that the query asks for, and how much was done today."""
        now, permissions = self._clock(), self._permissions
        reconcile_statuses_with_claims(self._output_folder, self._index, format_iso_seconds(now))
        rows, matching, facets, page = select_rows_matching_facets_and_page(
            self._index, query, now, self._holder.reviewer
        )
        counts = self._index.case_list.count_by_status()
        midnight = self._compute_last_midnight()
        return QueuePage(
            rows=tuple(build_queue_row(row, self._holder.reviewer, self._holder.tab_id, permissions) for row in rows),
            pending=counts.get("pending", 0),
            in_review=counts.get("in_review", 0),
            done_today=self._index.count_closed_cases(since=midnight),
            done_by_me=self._index.count_closed_cases(since=midnight, reviewer=self._holder.reviewer),
            deferred=counts.get("deferred", 0),
            matching=matching,
            facets=facets,
            view=replace(query, page=page),
            role=permissions.role,
            is_read_only=permissions.is_read_only,
        )

    def measure_progress(self) -> ReviewProgress:
        """Measure how far the work is, and how long a case takes this reviewer."""
        midnight = self._compute_last_midnight()
        reviewer = self._holder.reviewer
        durations = self._index.list_active_seconds(reviewer, since=midnight) or self._index.list_active_seconds(
            reviewer
        )
        counts = self._index.case_list.count_by_status()
        return ReviewProgress(
            done_by_me=self._index.count_closed_cases(since=midnight, reviewer=reviewer),
            open_count=sum(counts.get(status, 0) for status in OPEN_STATUSES),
            median_seconds=median(durations) if durations else None,
        )

    def choose_next_case_id(self) -> str | None:
        """Choose the next case.

        The worst that nobody has open, every eighth time an audit or sample. Never a deferred one, or one that
        this reviewer may not do; None if there is none, or they may only look.
        """
        reconcile_statuses_with_claims(self._output_folder, self._index, format_iso_seconds(self._clock()))
        permissions = self._permissions
        if permissions.is_read_only:
            return None
        find_worst_case_id = partial(
            self._index.case_list.find_worst_pending_case_id,
            reviewer=self._holder.reviewer,
            reserved_case_id_suffix=ADJUDICATION_SUFFIX,
            reserved_for_reviewers=permissions.responsible_adjudicators,
        )
        is_sample_due = (
            self._index.count_closed_cases(reviewer=self._holder.reviewer) % AUDIT_INTERVAL == AUDIT_INTERVAL - 1
        )
        return (find_worst_case_id(review_reasons=_SAMPLED_REASONS) if is_sample_due else None) or find_worst_case_id()

    def open_and_claim_case(self, case_id: str, *, take_over: bool = False) -> ReviewCase:
        """Open a case with its saved draft, and claim it for this tab for 15 minutes.

        A closed case is opened for reading, without a claim, and so is every case for a reviewer who may only look.
        CaseTaken if it is open elsewhere, unless it is taken over; ReviewRefused if it needs another expert, or an
        adjudicator; NotFound with its id; StoreError if its files cannot be read.
        """
        packet = read_packet(self._output_folder, case_id)
        bundle = read_packet_bundle(self._output_folder, packet)  # before the claim: it may fail
        now = self._clock()
        with hold_case_write_lock(self._output_folder, case_id):
            packet = read_packet(self._output_folder, case_id)
            opinions = CaseOpinions.read(self._output_folder, case_id)
            opinions.require_not_excluded(case_id, self._holder.reviewer)
            opinions.require_reading_permission(case_id, self._holder.reviewer)
            is_completed = opinions.get_status(case_id) == "completed"
            permissions = self._permissions
            claim = None
            is_locked = is_completed or permissions.is_read_only
            if not is_locked:
                permissions.require_case_permission(case_id, opinions.list_excluded_reviewers(case_id))
            with self._index.batch_into_one_transaction():
                if not is_locked:
                    claim = self._holder.acquire_or_renew_claim(self._index, case_id, now, take_over=take_over)
                    self._index.set_review_status(case_id, "in_review")
                self._index.view_log.add_view(CaseView(case_id, self._holder.reviewer, format_iso_seconds(now)))
            if not is_locked:
                try_write_packet_status(self._output_folder, case_id, "in_review")
                packet = packet.model_copy(update={"review_status": "in_review"})
            opened_case = _OpenedCase(
                find_newest_revision(self._output_folder, case_id),
                compute_packet_digest(packet),
                format_iso_seconds(now),
                claim,
            )
        self._opened_cases[case_id] = opened_case
        draft, saved_at = self._load_draft_and_saved_at(packet, opened_case)
        return CASE_KINDS[packet.kind].case_class(
            packet,
            bundle,
            opened_case.revision,
            draft,
            saved_at,
            is_completed,
            opinions.list_readable_reviews(case_id, self._holder.reviewer),
            opinions.list_opinions_shown_to_adjudicator(case_id),
            opinions.get_second_opinion_reason(case_id),
            self._index.deferrals.find_deferral(case_id),
            read_attention_check_feedback(
                self._output_folder, packet, opinions.numbered_reviews_by_case_id[case_id][-1][1]
            )
            if is_completed
            else "",
            is_read_only=permissions.is_read_only,
        )

    def renew_claim(self, case_id: str) -> None:
        """Renew the claim for 15 minutes.

        An expired one is taken again if nobody else has it. CaseTaken if another reviewer has it;
        ReviewConflict if the case was reviewed or run anew since it was opened; ReviewRefused if it is not open
        here, or no longer the reviewer's to decide: the claim expires then. A case that is open for reading has
        no claim to renew.
        """
        opened_case = self._require_open(case_id)
        if opened_case.is_locked:
            return
        now = self._clock()
        claim = self._find_live_claim(case_id, format_iso_seconds(now))
        # The heartbeat comes every few seconds, and each write is a sync of the disk.
        if (
            claim
            and self._holder.is_holder_of(claim)
            and claim.expires_at > format_iso_seconds(now + CLAIM_DURATION - _MIN_RENEWAL_INTERVAL)
        ):
            return  # if a page of this tab wrote it that was loaded later, it is that page's to give back
        with hold_case_write_lock(self._output_folder, case_id):  # else a closed case might be claimed
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
        """Save the draft to disk; return when (ISO 8601, UTC). No claim is needed.

        NotFound if there is no such case; ReviewRefused if the reviewer may only look; StoreError if it could not be
        written.
        """
        opened_case = self._opened_cases.get(case_id)
        if opened_case is None or opened_case.is_locked:
            self._permissions.require_deciding_role(case_id)
        with hold_case_write_lock(self._output_folder, case_id):
            return self._save_draft_under_lock(case_id, draft)

    def _save_draft_under_lock(self, case_id: str, draft: Draft) -> str:
        """Save as ``save_draft_and_get_time``; the caller holds the lock."""
        opened_case = self._opened_cases.get(case_id)
        return self._store_draft_and_get_time(
            case_id, draft, opened_case.packet_sha256 if opened_case else self._compute_stored_packet_digest(case_id)
        )

    def _store_draft_and_get_time(self, case_id: str, draft: Draft, packet_sha256: str) -> str:
        """Store a draft under the lock, and only of an existing case.

        A purged one stays purged.
        """
        if not self._output_folder.has_file(packet_file_name(case_id)):
            read_packet(self._output_folder, case_id)
        now = format_iso_seconds(self._clock())
        self._index.drafts.save_draft(
            StoredDraft(
                case_id, self._holder.reviewer, self._holder.tab_id, packet_sha256, draft.model_dump_json(), now
            )
        )
        return now

    def submit_review(
        self, case_id: str, draft: Draft, *, validate: bool = False, undeterminable_reason: str | None = None
    ) -> SubmissionReceipt:
        """Close the case: validate it, correct it, or say why it is undeterminable.

        In a blind case the expert only answers: the agent's answer decides whether that validates or corrects.

        CaseTaken if another reviewer has it open, ReviewConflict if it was reviewed or run anew since it was opened,
        ReviewRefused if the review is not valid or something that must be seen was not: nothing is written then.
        Afterwards draft and claim are gone.
        """
        return self._submit(
            case_id,
            draft,
            lambda case: case.build_submission(draft, validate=validate, undeterminable_reason=undeterminable_reason),
        )

    def submit_and_request_second_opinion(self, case_id: str, draft: Draft, reason: str) -> SubmissionReceipt:
        """Submit one's own answer and ask a colleague to answer the case too.

        ``….second``. A draft without changes validates the case if it may, and else corrects it by its words.
        The document has no ground truth until the colleague agrees, or a third expert has decided. Refused as
        ``submit_review``, and without a reason.
        """
        if not reason.strip():
            raise build_incomplete_review_error(
                "asking for a second opinion needs a reason", "Say what the colleague should look at."
            )
        if get_base_case_id(case_id) != case_id:
            raise ReviewRefused(
                f"case {case_id!r} is itself a further opinion",
                code="REVIEW-NOT-BASE",
                remedy="Answer it yourself; if two answers differ, a third expert decides.",
            )

        def build_submission(case: ReviewCase) -> Submission:
            is_correction = case.has_expert_changes(draft) or bool(draft.notes.strip())
            validate = case.explain_validation_block(draft) is None or not is_correction
            submission = case.build_submission(draft, validate=validate, undeterminable_reason=None)
            return replace(submission, second_opinion=reason.strip())

        return self._submit(case_id, draft, build_submission)

    def defer_case_and_get_time(self, case_id: str, draft: Draft, reason: str) -> str:
        """Defer the case with a reason: keep the draft, release the claim.

        Return when (ISO 8601, UTC). It waits as ``deferred`` whenever nobody has it open, until its next
        review. CaseTaken, ReviewConflict as in ``submit_review``; ReviewRefused without a reason, or if the
        case is closed.
        """
        if not reason.strip():
            raise build_incomplete_review_error("putting a case off needs a reason", "Say what it waits for.")
        opened_case = self._require_open_and_unlocked(case_id)
        now = self._clock()
        with hold_case_write_lock(self._output_folder, case_id):
            self._require_case_unchanged_and_untaken(
                case_id, opened_case, self._compute_stored_packet_digest(case_id), format_iso_seconds(now)
            )
            self._permissions.require_case_permission(
                case_id, CaseOpinions.read(self._output_folder, case_id).list_excluded_reviewers(case_id)
            )
            self._save_draft_under_lock(case_id, draft)  # no claim is given back before the work is on disk
            self._index.deferrals.save_deferral(
                Deferral(case_id, self._holder.reviewer, reason.strip(), format_iso_seconds(now))
            )
            self._index.claims.remove_claim(case_id)
            recompute_and_save_case_status(self._output_folder, self._index, case_id, format_iso_seconds(now))
        del self._opened_cases[case_id]
        return format_iso_seconds(now)

    def _submit(
        self, case_id: str, draft: Draft, build_submission: Callable[[ReviewCase], Submission]
    ) -> SubmissionReceipt:
        opened_case = self._require_open_and_unlocked(case_id)
        loaded_case = self._submitter.load_case(case_id)
        packet = loaded_case.packet
        # A case that is open elsewhere is reported before faults of the draft.
        self._require_case_unchanged_and_untaken(
            case_id, opened_case, loaded_case.packet_sha256, format_iso_seconds(self._clock())
        )
        case = CASE_KINDS[packet.kind].case_class(
            packet, loaded_case.bundle, opened_case.revision, draft, None, is_completed=False, reviews=()
        )
        review = self._submitter.submit_review(
            loaded_case,
            build_submission(case),
            base_revision=opened_case.revision,
            # An expired claim is not taken again: nobody can take the case before the review is saved.
            require_savable=partial(self._require_case_unchanged_and_untaken, case_id, opened_case),
            browser_tab=BrowserTab(self._holder.tab_id, opened_case.opened_at),
        )
        undoable_submission = _UndoableSubmission(case_id, opened_case.revision + 1, opened_case.packet_sha256, draft)
        feedback = read_attention_check_feedback(self._output_folder, packet, review)
        self._last_submission = (
            None if feedback else undoable_submission
        )  # a reviewer who has learnt the fault undoes nothing
        del self._opened_cases[case_id]
        production_row, agent_answer = packet.production_classification, packet.classification
        return SubmissionReceipt(
            review,
            opened_case.revision + 1,
            production_type=production_row["dominant_type"] if production_row else None,
            agent_type=agent_answer.dominant_type_overall if case.is_blind and agent_answer else None,
            is_same_as_agent=case.is_same_as_agent(draft)
            if case.is_blind and review.outcome != "undeterminable"
            else None,
            feedback=feedback,
        )

    @property
    def can_undo(self) -> bool:
        """True if ``undo_last_submission_and_get_case_id`` has something to undo."""
        return self._last_submission is not None

    def undo_last_submission_and_get_case_id(self) -> str:
        """Reopen the case submitted last here with its draft; return its case_id.

        ReviewRefused if there is none; ReviewConflict if the case was reviewed since. The next opening shows the draft; a
        blind case is no longer blind, since the agent's answer was shown after the decision.
        """
        if self._last_submission is None:
            raise ReviewRefused(
                "nothing was submitted here that could be undone",
                code="REVIEW-NOTHING-TO-UNDO",
                remedy="Reopen a closed case with a reason: SMEReviewHelper.reopen(case_id, reason).",
            )
        submission = self._last_submission
        # Before the case is open again: the words must not be lost between the two.
        with hold_case_write_lock(self._output_folder, submission.case_id):
            now = self._store_draft_and_get_time(submission.case_id, submission.draft, submission.packet_sha256)
        try:
            self._submitter.reopen_case(submission.case_id, "undone by the reviewer", base_revision=submission.revision)
        except ReviewRefused:
            self._index.drafts.remove_tab_and_older_drafts(
                submission.case_id, self._holder.reviewer, self._holder.tab_id, other_tabs_saved_until=now
            )
            raise
        self._last_submission = None
        return submission.case_id

    def release_case(self, case_id: str) -> None:
        """Release the case; its draft stays.

        Nothing happens if the claim is no longer the one taken here.
        """
        opened_case = self._opened_cases.get(case_id)
        if opened_case is not None and opened_case.claim is not None:
            with hold_case_write_lock(self._output_folder, case_id):
                if self._index.claims.release_claim_if_unchanged(opened_case.claim):
                    recompute_and_save_case_status(
                        self._output_folder, self._index, case_id, format_iso_seconds(self._clock())
                    )
        self._opened_cases.pop(case_id, None)

    @property
    def _permissions(self) -> Permissions:
        """The reviewer's permissions, read every time: a new role counts at once."""
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
                f"case {case_id!r} is not open here", code="REVIEW-NOT-OPEN", remedy="Open it from the queue."
            )
        return self._opened_cases[case_id]

    def _require_open_and_unlocked(self, case_id: str) -> _OpenedCase:
        opened_case = self._require_open(case_id)
        if opened_case.is_locked:
            self._permissions.require_deciding_role(case_id)
            raise ReviewRefused(
                f"case {case_id!r} is closed", code="REVIEW-CLOSED", remedy="Reopen it with a reason first."
            )
        return opened_case

    def _require_case_unchanged_and_untaken(
        self, case_id: str, opened_case: _OpenedCase, packet_sha256: str, now: str
    ) -> None:
        """CaseTaken if another reviewer has the case; ReviewConflict if it has changed."""
        claim = self._find_live_claim(case_id, now)
        if claim and not self._holder.is_holder_of(claim):
            raise self._holder.build_case_taken_error(claim)
        if find_newest_revision(self._output_folder, case_id) != opened_case.revision:
            raise _build_conflict_error(f"case {case_id!r} was reviewed since it was opened here")
        if packet_sha256 != opened_case.packet_sha256:
            raise _build_conflict_error(f"case {case_id!r} was run anew since it was opened here")

    def _load_draft_and_saved_at(self, packet: SMEPacket, opened_case: _OpenedCase) -> tuple[Draft, str | None]:
        """Load the reviewer's newest draft, rebased onto the packet, and its time.

        Else the first draft. That is the agent's answer, or in a blind case nothing.
        """
        is_blind = is_blind_review(packet, opened_case.revision)
        initial_draft = CASE_KINDS[packet.kind].create_draft(packet, is_blind=is_blind)
        stored_draft = self._index.drafts.find_newest_draft(packet.case_id, self._holder.reviewer, self._holder.tab_id)
        if stored_draft is None:
            return initial_draft, None
        try:
            draft = type(initial_draft).model_validate_json(stored_draft.draft)
        except ValidationError:
            # Of an evalkit that shaped drafts otherwise. Without the cause: it would quote the patient's document.
            _log.warning("a draft of another evalkit cannot be read; the case starts anew")
            return initial_draft, None
        is_same_packet = (
            stored_draft.packet_sha256 == opened_case.packet_sha256 and draft.total_pages == packet.total_pages
        )
        return draft if is_same_packet else draft.rebase_onto(initial_draft), stored_draft.saved_at


def _build_conflict_error(message: str) -> ReviewConflict:
    return ReviewConflict(message, code="REVIEW-CONFLICT", remedy="Your draft is kept. Open the case again.")
