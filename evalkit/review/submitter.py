"""Submission of a review: check it, save it, and update files that depend on it."""

import importlib.metadata
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from typing import Any

from pydantic import ValidationError

from evalkit.core.clocks import format_iso_seconds
from evalkit.core.records import describe_first_error
from evalkit.document_types import compute_types_version
from evalkit.documents.bundle import DocumentBundle
from evalkit.errors import ReviewRefused, StoreError
from evalkit.review.case_files import build_closing_row, read_packet, read_packet_bundle, read_review_status
from evalkit.review.ground_truth import (
    Review,
    ShownMachineAnswers,
    Signature,
    append_chained_review,
    hash_review_file,
    is_newest_review_unchanged,
    load_signature_meanings,
)
from evalkit.review.kinds import CASE_KINDS, require_matching_corrections
from evalkit.review.opinions import (
    CaseOpinions,
    queue_or_withdraw_attention_checks,
    update_case_index,
    write_derived_files_and_get_case_ids,
)
from evalkit.review.packet import SMEPacket, compute_packet_digest
from evalkit.review.permissions import ReviewerRole
from evalkit.review.roster import ReviewerRoster
from evalkit.review.submission import (
    Submission,
    build_incomplete_review_error,
    derive_outcome,
    parse_segment_flags,
    parse_verdicts,
)
from evalkit.review.write_lock import hold_case_write_lock
from evalkit.store import OutputFolder, OutputIndex, ReviewChainHead, encode_canonical_json, review_file_name

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class BrowserTab:
    """Browser tab from which a review is submitted.

    Saving the review deletes the tab's draft of the case, and the reviewer's older drafts in other tabs.
    """

    tab_id: str
    """The tab's id."""
    opened_at: str
    """Time at which the case was opened in the tab (ISO 8601, UTC)."""


@dataclass(frozen=True)
class LoadedCase:
    """A case and its document's text, read before the review is built."""

    packet: SMEPacket
    packet_sha256: str
    """SHA-256 (hex) of the packet, without its status."""
    bundle: DocumentBundle
    """The text of the document."""


@dataclass(frozen=True)
class ReviewSubmitter:
    """Writer of one reviewer's reviews to an output folder."""

    output_folder: OutputFolder
    index: OutputIndex
    reviewer: str
    clock: Callable[[], datetime]

    def load_case(self, case_id: str) -> LoadedCase:
        """Load a case and its text. NotFound if absent; StoreError if damaged."""
        packet = read_packet(self.output_folder, case_id)
        return LoadedCase(packet, compute_packet_digest(packet), read_packet_bundle(self.output_folder, packet))

    def submit_review(
        self,
        loaded_case: LoadedCase,
        submission: Submission,
        *,
        base_revision: int | None,
        require_savable: Callable[[str, str], None],
        browser_tab: BrowserTab | None = None,
    ) -> Review:
        """Save a review that follows ``base_revision``, and update dependent files.

        ``base_revision`` None means the newest revision. ``require_savable`` is called under the write lock with the packet's
        current digest and the time (ISO 8601, UTC); it raises an error if the review must not be saved. The drafts that
        ``browser_tab`` names are deleted. ReviewRefused and ReviewConflict mean that nothing was written.
        """
        outcome, kind = derive_outcome(submission), CASE_KINDS[loaded_case.packet.kind]
        # Read once: the iterables may be generators.
        submission = replace(
            submission, issue_verdicts=tuple(submission.issue_verdicts), segment_flags=tuple(submission.segment_flags)
        )
        require_matching_corrections(loaded_case.packet, submission)
        # Built before the lock is taken, because reading a statement may take long and nobody should wait for it.
        decided_fields = kind.build_review_fields(outcome, submission, loaded_case.packet, loaded_case.bundle)
        with hold_case_write_lock(self.output_folder, loaded_case.packet.case_id):
            packet = read_packet(self.output_folder, loaded_case.packet.case_id)
            packet_sha256, now = self._compute_packet_digest(packet, loaded_case), format_iso_seconds(self.clock())
            shown = submission.shown or ShownMachineAnswers()
            is_blind_answer = not shown.agent and outcome != "undeterminable"
            statement = "imported" if submission.imported else "blind" if is_blind_answer else outcome
            require_savable(packet_sha256, now)
            if packet_sha256 != loaded_case.packet_sha256:  # a run has replaced the packet meanwhile
                decided_fields = kind.build_review_fields(outcome, submission, packet, loaded_case.bundle)
            return self._save_review(
                packet,
                base_revision,
                browser_tab,
                packet_sha256=packet_sha256,
                submitted_at=now,
                seconds_active=submission.seconds_active,
                outcome=outcome,
                correction_notes="\n".join(
                    filter(None, [(submission.undeterminable or "").strip(), submission.correction_notes])
                ),
                issue_verdicts=parse_verdicts(packet, submission.issue_verdicts),
                pages_seen=tuple(submission.pages_seen),
                evidence_seen=tuple(submission.evidence_seen),
                shown=shown,
                segment_flags=parse_segment_flags(
                    submission.segment_flags,
                    kind.list_page_ranges(decided_fields["after"], packet.total_pages),
                    packet.total_pages,
                ),
                second_opinion=submission.second_opinion,
                imported=submission.imported,
                signature=Signature(
                    meaning=load_signature_meanings()[statement],
                    document_sha256=loaded_case.bundle.sha256,
                ),
                **decided_fields,
            )

    def reopen_case(self, case_id: str, reason: str, *, base_revision: int | None) -> Review:
        """Reopen a closed case: save and return a review with the outcome ``reopened``.

        ReviewRefused if the reason is blank or the case is not closed, NotFound, ReviewConflict: nothing is written then.
        """
        if not reason.strip():
            raise build_incomplete_review_error(
                "a case cannot be reopened without a reason", "Say why the saved review is wrong."
            )
        with hold_case_write_lock(self.output_folder, case_id):
            packet = read_packet(self.output_folder, case_id)
            if read_review_status(self.output_folder, case_id) != "completed":
                raise build_incomplete_review_error(
                    f"case {case_id!r} is not closed, so it cannot be reopened", "Save a review instead."
                )
            return self._save_review(
                packet,
                base_revision,
                None,
                packet_sha256=compute_packet_digest(packet),
                submitted_at=format_iso_seconds(self.clock()),
                seconds_active=None,
                outcome="reopened",
                after=None,
                correction_notes=reason.strip(),
                signature=Signature(meaning=load_signature_meanings()["reopened"], document_sha256=None),
            )

    def _compute_packet_digest(self, packet: SMEPacket, loaded_case: LoadedCase) -> str:
        """Compute a packet's digest, or reuse the loaded packet's if only status differs."""
        is_same_packet = (
            packet.model_copy(update={"review_status": loaded_case.packet.review_status}) == loaded_case.packet
        )
        return loaded_case.packet_sha256 if is_same_packet else compute_packet_digest(packet)

    def _save_review(
        self, packet: SMEPacket, base_revision: int | None, tab: BrowserTab | None, **review_fields: Any
    ) -> Review:
        """Write the review and everything that follows from it; the caller holds the lock."""
        case_id = packet.case_id
        opinions_before = CaseOpinions.read(self.output_folder, case_id)
        permissions = ReviewerRoster(self.output_folder).get_permissions(self.reviewer)
        permissions.require_case_permission(case_id, opinions_before.list_excluded_reviewers(case_id))
        opinions_before.require_no_dependent_opinion(
            self.output_folder,
            self.index,
            case_id,
            self.reviewer,
            review_fields["submitted_at"],
            is_reopening=review_fields["outcome"] == "reopened",
        )
        self._require_newest_review_unchanged(case_id)
        revision = opinions_before.get_newest_revision(case_id) if base_revision is None else base_revision
        if review_fields["outcome"] != "reopened":
            review_fields["unblinded"] = opinions_before.has_blind_answer(case_id, self.reviewer)
        review = append_chained_review(
            self.output_folder,
            case_id,
            self._build_review(packet, permissions.role, review_fields),
            base_revision=revision,
        )
        # From here on the review is saved: no error message may suggest saving it again.
        try:
            opinions = opinions_before.build_with_added_review(case_id, review)
            existing_ids = write_derived_files_and_get_case_ids(self.output_folder, opinions)
        except StoreError as error:
            raise StoreError(
                f"the review was saved, but the ground truth or another file that depends on it was not: {error.message}",
                code=error.code,
                remedy="Do not save the review again: fix the output folder, then run `evalkit reindex`.",
            ) from error
        try:
            with self.index.batch_into_one_transaction():
                self._update_index_claims_and_heads(case_id, review, opinions, existing_ids)
                if tab:
                    self.index.drafts.remove_tab_and_older_drafts(
                        case_id, self.reviewer, tab.tab_id, other_tabs_saved_until=tab.opened_at
                    )
        except StoreError:
            log.warning(
                "a saved review could not be entered into the index, and its draft is kept; run `evalkit reindex`"
            )
        # Kinds without attention checks stop here; also, a template's write lock does not cover the document's cases.
        if not packet.has_attention_checks:
            return review
        try:
            queue_or_withdraw_attention_checks(
                self.output_folder, self.index, review.submitted_at, opinions.base_packet.doc_id
            )
        except StoreError:
            log.warning("the attention checks of a reviewed document could not be updated; run `evalkit reindex`")
        return review

    def _require_newest_review_unchanged(self, case_id: str) -> None:
        """Raise StoreError if the newest review's file was changed or removed.

        Otherwise the next review's hash would confirm the changed file.
        """
        head = self.index.review_heads.find(case_id)
        if head and not is_newest_review_unchanged(self.output_folder, head):
            raise StoreError(
                f"{review_file_name(case_id, head.revision)} was changed or removed by another program",
                code="REVIEW-CHANGED",
                remedy="Your review was not saved. Restore that file from a backup; `evalkit audit verify` names all such files.",
            )

    def _update_index_claims_and_heads(
        self, case_id: str, review: Review, opinions: CaseOpinions, existing_ids: frozenset[str]
    ) -> None:
        revision = opinions.get_newest_revision(case_id)
        self.index.review_heads.save(
            ReviewChainHead(case_id, revision, hash_review_file(self.output_folder, case_id, revision))
        )
        self.index.deferrals.remove(case_id)
        update_case_index(self.output_folder, self.index, opinions, existing_ids)
        if opinions.get_status(case_id) == "completed":
            code_by_issue_id = {issue.issue_id: issue.code for issue in opinions.base_packet.issues}
            self.index.record_closed_case(build_closing_row(case_id, review, code_by_issue_id))
            self.index.claims.remove(case_id)  # a closed case needs no claim
        else:
            self.index.remove_closed_case(case_id)

    def _build_review(self, packet: SMEPacket, role: ReviewerRole, review_fields: Mapping[str, Any]) -> Review:
        try:
            review = CASE_KINDS[packet.kind].review_class(
                reviewer=self.reviewer,
                role=role,
                before=packet.agent_answer,
                seeded=packet.is_attention_check,
                versions=dict(_read_versions()),
                **review_fields,
            )
            encode_canonical_json(review.model_dump(mode="json"))
        except ValidationError as error:
            raise build_incomplete_review_error(
                describe_first_error(error), "See help(SMEReviewHelper.save_review) for the arguments."
            ) from None
        except ValueError:
            raise ReviewRefused(
                "the review contains a value that cannot be stored as JSON",
                code="REVIEW-SHAPE",
                remedy="Use only text, finite numbers, lists and dicts.",
            ) from None
        return review


@cache
def _read_versions() -> Mapping[str, str]:
    return {"evalkit": importlib.metadata.version("evalkit"), "types": compute_types_version()}
