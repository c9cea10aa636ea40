"""Second opinions and adjudications: required cases, and the ground truth.

Source: contract, "Identity". An expert may ask for a second opinion, which a colleague gives in the case ``….second``; if
the two answers differ, a third expert decides in the case ``….adjudication``. Until the answers agree or the third expert
has decided, the document has no ground truth, because wrong ground truth costs more than late ground truth.

Everything follows from the review files. The request for a second opinion is part of the first expert's review, so that
one exclusive file creation saves both. The packets of second opinions and adjudications and the ground truth are built
from the reviews and the base packet, and are rebuilt after a crash.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from evalkit.classification.v5_arbiter import Decision
from evalkit.errors import ReviewRefused
from evalkit.review.attention_checks.records import (
    is_attention_check_unanswered,
    is_hidden_truth_current,
    iterate_check_case_and_doc_ids,
    map_check_case_ids_by_doc_id,
    read_attention_check,
)
from evalkit.review.case import Opinion
from evalkit.review.case_files import (
    build_case_index_row,
    read_answering_model_name,
    read_numbered_reviews,
    read_packet,
)
from evalkit.review.draft import Draft
from evalkit.review.ground_truth import (
    SOURCE_BY_OUTCOME,
    GroundTruthRecord,
    Review,
    derive_review_status,
    read_json_unless_missing_or_torn,
)
from evalkit.review.kinds import CASE_KINDS
from evalkit.review.packet import (
    ADJUDICATION_SUFFIX,
    SECOND_SUFFIX,
    ReviewStatus,
    SMEPacket,
    get_base_case_id,
    is_packet_frozen,
    serialise_packet,
    write_packet_status,
)
from evalkit.store import OutputFolder, OutputIndex, ground_truth_file_name, hash_canonical_json, packet_file_name

_NumberedReviews = list[tuple[int, Review]]


@dataclass(frozen=True)
class CaseOpinions:
    """A case with its reviews, its second opinion and its adjudication."""

    base_packet: SMEPacket
    numbered_reviews_by_case_id: dict[str, _NumberedReviews]
    """The reviews with their numbers, oldest first, by the case_id of base case, second opinion and adjudication."""
    unblinded_reviewers: tuple[str, ...] = ()
    """Reviewers who know the answer. For an attention check, those who have answered a case about the document that it shows;
    for any other case, those who have answered an attention check that shows its document."""
    is_attention_check_pending: bool = False
    """True if an unanswered attention check shows this document, so that its reviews must stay hidden from other reviewers."""

    @classmethod
    def read(
        cls,
        output_folder: OutputFolder,
        case_id: str,
        check_case_ids_by_doc_id: Mapping[str, Sequence[str]] | None = None,
    ) -> CaseOpinions:
        """Read the base case of ``case_id`` with the reviews of all its stages.

        NotFound if the base case has no packet. If None, ``check_case_ids_by_doc_id`` is read from the output folder; a caller
        that reads many cases passes the result of ``map_check_case_ids_by_doc_id`` instead.
        """
        base_packet = read_packet(output_folder, get_base_case_id(case_id))
        numbered_reviews_by_case_id = {
            member_id: read_numbered_reviews(output_folder, member_id)
            for member_id in _iterate_opinion_case_ids(base_packet.case_id)
        }
        if base_packet.is_attention_check:
            return cls(
                base_packet, numbered_reviews_by_case_id, _list_past_reviewers(output_folder, base_packet.bundle_doc_id)
            )
        if not base_packet.has_attention_checks:
            return cls(base_packet, numbered_reviews_by_case_id)
        check_ids = (
            map_check_case_ids_by_doc_id(output_folder)
            if check_case_ids_by_doc_id is None
            else check_case_ids_by_doc_id
        ).get(base_packet.doc_id, ())
        informed_reviewers = tuple(
            review.reviewer for member_id in check_ids for _, review in read_numbered_reviews(output_folder, member_id)
        )
        return cls(
            base_packet,
            numbered_reviews_by_case_id,
            informed_reviewers,
            is_attention_check_pending=any(
                is_attention_check_unanswered(output_folder, member_id) for member_id in check_ids
            ),
        )

    def build_with_added_review(self, case_id: str, review: Review) -> CaseOpinions:
        """Return a copy in which a review that was just written is the newest."""
        numbered_review = (self.get_newest_revision(case_id) + 1, review)
        return replace(
            self,
            numbered_reviews_by_case_id={
                **self.numbered_reviews_by_case_id,
                case_id: [*self.numbered_reviews_by_case_id[case_id], numbered_review],
            },
        )

    def get_newest_revision(self, case_id: str) -> int:
        """Get the number of a case's newest review; 0 if there is none."""
        chain = self.numbered_reviews_by_case_id[case_id]
        return chain[-1][0] if chain else 0

    @cached_property
    def review_requesting_second_opinion(self) -> Review | None:
        """The review that closes the base case and asks for a second opinion, or None.

        Always None for an attention check: no colleague spends time on a second answer to a planted fault.
        """
        if self.base_packet.is_attention_check:
            return None
        closing_review = self._get_newest_review_if_closing(self.base_packet.case_id)
        return closing_review if closing_review and closing_review.second_opinion else None

    @cached_property
    def further_packet_by_case_id(self) -> dict[str, SMEPacket]:
        """Required second opinions and adjudications, as cases by case_id."""
        requesting_review, second_review = self.review_requesting_second_opinion, self._second_review
        packets = {}
        if requesting_review:
            reason = f"a colleague asks for a second opinion: {requesting_review.second_opinion}"
            packets[self._build_case_id(SECOND_SUFFIX)] = self._build_further_packet(
                SECOND_SUFFIX, reason, requesting_review
            )
        if second_review and self._has_disagreement:
            reason = "two colleagues gave different answers; a third expert decides between them"
            packets[self._build_case_id(ADJUDICATION_SUFFIX)] = self._build_further_packet(
                ADJUDICATION_SUFFIX, reason, second_review
            )
        return packets

    def build_ground_truth(self) -> GroundTruthRecord | None:
        """Build the ground truth that follows from all reviews.

        None if the newest review leaves none, or while a second opinion or an adjudication is awaited.
        """
        chain = self.numbered_reviews_by_case_id[self.base_packet.case_id]
        # A review that asked for a second opinion gave no ground truth, unless the second opinion once agreed with it.
        withheld_revisions = {number for number, review in chain if review.second_opinion}
        if self.review_requesting_second_opinion and any(
            self._is_same_answer(self.review_requesting_second_opinion, second_review)
            for _, second_review in self.numbered_reviews_by_case_id[self._build_case_id(SECOND_SUFFIX)]
        ):
            withheld_revisions.remove(chain[-1][0])
        if self.is_opinion_awaited:
            return None
        if self._has_disagreement:
            adjudication_chain = self.numbered_reviews_by_case_id[self._build_case_id(ADJUDICATION_SUFFIX)]
            # The adjudication's reviews continue the base case's numbers, so that no revision occurs twice.
            chain = [*chain, *((chain[-1][0] + number, review) for number, review in adjudication_chain)]
        return project_ground_truth(self.base_packet, chain, non_ground_truth_revisions=withheld_revisions)

    def get_status(self, case_id: str) -> ReviewStatus:
        """Derive the status of base case, second opinion or adjudication from its reviews."""
        chain = self.numbered_reviews_by_case_id[case_id]
        return derive_review_status(chain[-1][1] if chain else None)

    def get_second_opinion_reason(self, case_id: str) -> str:
        """Get the reason for asking a second opinion; empty for any other case."""
        return (
            self.review_requesting_second_opinion.second_opinion
            if self.review_requesting_second_opinion and case_id == self._build_case_id(SECOND_SUFFIX)
            else ""
        )

    def list_opinions_shown_to_adjudicator(self, case_id: str) -> tuple[Opinion, ...]:
        """List the two answers that an adjudication compares; empty for other cases.

        The order depends on the answers' hashes, so that it does not reveal which answer was first.
        """
        if case_id != self._build_case_id(ADJUDICATION_SUFFIX) or not (
            self.review_requesting_second_opinion and self._second_review
        ):
            return ()
        ordered_reviews = sorted(
            (self.review_requesting_second_opinion, self._second_review),
            key=lambda review: hash_canonical_json(review.model_dump(mode="json")),
        )
        return tuple(
            Opinion(label, self.reconstruct_draft(review), review.outcome, review.correction_notes)
            for label, review in zip("AB", ordered_reviews, strict=True)
        )

    def list_excluded_reviewers(self, case_id: str) -> tuple[str, ...]:
        """List the reviewers who must not answer a case because they know its answer.

        For a second opinion or an adjudication, everyone who has answered an earlier stage of the case, even if the answer was
        undone, or an attention check that shows the document. For an attention check, everyone who has answered a case about
        the document. For any other base case, nobody.
        """
        if self.base_packet.is_attention_check:
            return self.unblinded_reviewers
        earlier_endings = {SECOND_SUFFIX: ("",), ADJUDICATION_SUFFIX: ("", SECOND_SUFFIX)}.get(
            case_id.removeprefix(self.base_packet.case_id), ()
        )
        reviews = (
            review
            for ending in earlier_endings
            for _, review in self.numbered_reviews_by_case_id[self._build_case_id(ending)]
        )
        earlier_reviewers = (review.reviewer for review in reviews if review.outcome != "reopened")
        return tuple(dict.fromkeys([*earlier_reviewers, *(self.unblinded_reviewers if earlier_endings else ())]))

    def list_readable_reviews(self, case_id: str, reviewer: str) -> tuple[Review, ...]:
        """List the reviews of a case that a reviewer may read, oldest first.

        These are only the reviewer's own while a second opinion or an adjudication is awaited, or while the reviewer can still
        get an attention check about the document.
        """
        is_open_to_all = not (self.is_opinion_awaited or self._can_get_attention_check(reviewer))
        return tuple(
            review
            for _, review in self.numbered_reviews_by_case_id[case_id]
            if review.reviewer == reviewer or is_open_to_all
        )

    def find_closing_review(self, case_id: str, reviewer: str) -> Review | None:
        """Find the review that decided a closed case, if this reviewer may read it.

        For a base case on which two experts disagreed, this is the adjudicator's review. None if the case is open.
        """
        is_adjudicated = case_id == self.base_packet.case_id and self._has_disagreement and not self.is_opinion_awaited
        deciding_case_id = self._build_case_id(ADJUDICATION_SUFFIX) if is_adjudicated else case_id
        review = self._get_newest_review_if_closing(deciding_case_id)
        return review if review in self.list_readable_reviews(deciding_case_id, reviewer) else None

    def has_blind_answer(self, case_id: str, reviewer: str) -> bool:
        """Return True if the reviewer answered before the agent's answer was shown."""
        reviews = (review for _, review in self.numbered_reviews_by_case_id[case_id] if review.reviewer == reviewer)
        return any(review.after and not review.shown.agent for review in reviews)

    def compare_with_agent(self, review: Review) -> tuple[Opinion, Opinion]:
        """Return a reviewer's blind answer and the agent's answer, to compare them."""
        return (
            Opinion("Your answer", self.reconstruct_draft(review), review.outcome, review.correction_notes),
            Opinion("The program's answer", Draft.from_packet(self.base_packet), "validated", ""),
        )

    def require_not_excluded(self, case_id: str, reviewer: str) -> None:
        """Raise ReviewRefused if the reviewer is one of ``list_excluded_reviewers``."""
        if reviewer in self.list_excluded_reviewers(case_id):
            raise ReviewRefused(
                f"you have already given or seen an answer to case {self.base_packet.case_id!r}, so case {case_id!r} needs another expert",
                code="REVIEW-BARRED",
                remedy="Leave the case to a colleague, and take the next case.",
            )

    def require_reading_permission(self, case_id: str, reviewer: str) -> None:
        """Raise ReviewRefused if reading the case would reveal an answer too early.

        This applies to a reviewer who can still give the second opinion or get an attention check about the document.
        """
        can_be_asked = self.is_opinion_awaited and reviewer not in self.list_excluded_reviewers(
            self._build_case_id(SECOND_SUFFIX)
        )
        can_be_tested = self.get_status(case_id) == "completed" and self._can_get_attention_check(reviewer)
        if (case_id == self.base_packet.case_id and can_be_asked) or can_be_tested:
            raise ReviewRefused(
                f"another opinion on case {case_id!r} is awaited; until it is given, only reviewers who have answered may read the case",
                code="REVIEW-AWAITED",
                remedy="Open the case again after the last opinion was given.",
            )

    def build_index_row(self, output_folder: OutputFolder, case_id: str) -> dict[str, Any]:
        """Build the index row of base case, second opinion or adjudication.

        While an opinion is awaited, the base case's row contains neither the agent's type nor any issue.
        """
        packet = self.base_packet if case_id == self.base_packet.case_id else read_packet(output_folder, case_id)
        row = {
            **build_case_index_row(packet, self.get_status(case_id), self.list_excluded_reviewers(case_id)),
            "source": read_answering_model_name(output_folder, packet),
        }
        if case_id == self.base_packet.case_id and self.is_opinion_awaited:
            row |= {"blocker": 0, "major": 0, "minor": 0, "dominant_type": "", "agents": ""}
            row["decision_reason"] = "another expert's opinion is awaited"
        return row

    def iterate_index_rows(
        self, output_folder: OutputFolder, existing_case_ids: frozenset[str]
    ) -> Iterator[dict[str, Any]]:
        """Build the index rows of the cases in ``existing_case_ids``."""
        return (
            self.build_index_row(output_folder, case_id)
            for case_id in self.numbered_reviews_by_case_id
            if case_id in existing_case_ids
        )

    def require_no_dependent_opinion(
        self,
        output_folder: OutputFolder,
        index: OutputIndex,
        case_id: str,
        reviewer: str,
        now: str,
        *,
        is_reopening: bool,
    ) -> None:
        """Raise ReviewRefused if a review of the case would invalidate a later opinion.

        Also refused if the reviewer is excluded, or if the case is an attention check with an answer. ``now`` is ISO 8601 in
        UTC; ``is_reopening`` means that the review reopens the case. The caller holds the write lock.
        """
        self.require_not_excluded(case_id, reviewer)
        if self.base_packet.is_attention_check and self.numbered_reviews_by_case_id[self.base_packet.case_id]:
            raise ReviewRefused(
                f"case {case_id!r} was an attention check with a planted fault, so its answer is final",
                code="REVIEW-SEEDED",
                remedy="The answer changes no ground truth: take the next case.",
            )
        following_id = {
            self.base_packet.case_id: self._build_case_id(SECOND_SUFFIX),
            self._build_case_id(SECOND_SUFFIX): self._build_case_id(ADJUDICATION_SUFFIX),
        }.get(case_id)
        if following_id is None or following_id not in self.further_packet_by_case_id:
            return
        if is_packet_frozen(output_folder, index, following_id, now) or index.deferrals.find(following_id):
            raise ReviewRefused(
                f"a colleague has begun case {following_id!r}, so the answer to case {case_id!r} is final",
                code="REVIEW-RESTS",
                remedy=f"Make any change in case {following_id!r} now.",
            )
        if case_id == self.base_packet.case_id and not is_reopening:
            raise ReviewRefused(
                f"a second opinion on case {case_id!r} is awaited, so the first answer cannot be changed",
                code="REVIEW-AWAITED",
                remedy="Wait for the second opinion, or reopen the case, which withdraws the request.",
            )

    def _can_get_attention_check(self, reviewer: str) -> bool:
        past_reviewers = (review.reviewer for chain in self.numbered_reviews_by_case_id.values() for _, review in chain)
        return self.is_attention_check_pending and reviewer not in past_reviewers

    def _build_case_id(self, suffix: str) -> str:
        return self.base_packet.case_id + suffix

    def _get_newest_review_if_closing(self, case_id: str) -> Review | None:
        return self.numbered_reviews_by_case_id[case_id][-1][1] if self.get_status(case_id) == "completed" else None

    @cached_property
    def _second_review(self) -> Review | None:
        return (
            self._get_newest_review_if_closing(self._build_case_id(SECOND_SUFFIX))
            if self.review_requesting_second_opinion
            else None
        )

    @property
    def _has_disagreement(self) -> bool:
        if self.review_requesting_second_opinion is None or self._second_review is None:
            return False
        return not self._is_same_answer(self.review_requesting_second_opinion, self._second_review)

    def _is_same_answer(self, first: Review, second: Review) -> bool:
        """Return True if two experts' reviews give the same answer."""
        if first.after is None or second.after is None:
            return first.after is second.after and first.outcome == second.outcome
        is_same = CASE_KINDS[self.base_packet.kind].is_same_answer(first.after, second.after)
        return is_same and bool(first.unmet_sums) == bool(second.unmet_sums)

    @property
    def is_opinion_awaited(self) -> bool:
        """True if the second opinion or the adjudication is required and not yet given."""
        if self._has_disagreement:
            return self.get_status(self._build_case_id(ADJUDICATION_SUFFIX)) != "completed"
        return self.review_requesting_second_opinion is not None and self._second_review is None

    def _build_further_packet(self, suffix: str, reason: str, previous_review: Review) -> SMEPacket:
        return self.base_packet.model_copy(
            update={
                "case_id": self._build_case_id(suffix),
                "decision_reason": reason,
                "review_status": "pending",
                "review_reason": "requested",
                "inclusion_probability": 1.0,
                "created_at": previous_review.submitted_at,
                "review_plan": None,
            }
        )

    def reconstruct_draft(self, review: Review) -> Draft:
        """Rebuild the draft from which a review of this document was submitted."""
        draft = CASE_KINDS[self.base_packet.kind].reconstruct_draft(self.base_packet, review, review.after)
        expert_fields = {"notes": review.correction_notes, "issue_verdicts": review.issue_verdicts}
        return draft.model_copy(update=expert_fields | {"pages_seen": tuple(review.pages_seen)})


def rebuild_case_files_and_list_index_rows(
    output_folder: OutputFolder, case_id: str, check_case_ids_by_doc_id: Mapping[str, Sequence[str]] | None = None
) -> list[dict[str, Any]]:
    """Rebuild the files derived from a case's reviews; return its index rows.

    The files are the ground truth, the packets of second opinion and adjudication, and the status in each packet. This
    repairs the state after a crash between writing a review and writing these files; without reviews nothing changes.
    ``check_case_ids_by_doc_id`` is passed on to ``CaseOpinions.read``. The caller holds the write lock. NotFound if the base
    case has no packet.
    """
    opinions = CaseOpinions.read(output_folder, case_id, check_case_ids_by_doc_id)
    return list(
        opinions.iterate_index_rows(output_folder, write_derived_files_and_get_case_ids(output_folder, opinions))
    )


def list_index_rows(
    output_folder: OutputFolder, case_id: str, check_case_ids_by_doc_id: Mapping[str, Sequence[str]] | None = None
) -> list[dict[str, Any]]:
    """List a case's index rows according to its files; write nothing."""
    opinions = CaseOpinions.read(output_folder, case_id, check_case_ids_by_doc_id)
    existing_ids = filter(
        lambda member_id: output_folder.has_file(packet_file_name(member_id)), opinions.numbered_reviews_by_case_id
    )
    return list(opinions.iterate_index_rows(output_folder, frozenset(existing_ids)))


def write_derived_files_and_get_case_ids(output_folder: OutputFolder, opinions: CaseOpinions) -> frozenset[str]:
    """Rebuild ground truth, follow-up cases and the cases' statuses from the reviews.

    Return the ids of the cases that have a packet afterwards. The caller holds the write lock.
    """
    # Ground truth is updated first, so that nobody relies on an answer that is now in doubt.
    _write_or_remove_ground_truth(output_folder, opinions)
    existing_ids = {opinions.base_packet.case_id}  # has a packet, because it was read
    for case_id, chain in opinions.numbered_reviews_by_case_id.items():
        is_base, status = case_id == opinions.base_packet.case_id, opinions.get_status(case_id)
        if not is_base and _write_or_withdraw_further_packet(
            output_folder, case_id, opinions.further_packet_by_case_id.get(case_id), is_begun=bool(chain)
        ):
            existing_ids.add(case_id)
        if case_id in existing_ids and not (is_base and opinions.base_packet.review_status == status):
            write_packet_status(output_folder, case_id, status)
    return frozenset(existing_ids)


def update_case_index(
    output_folder: OutputFolder, index: OutputIndex, opinions: CaseOpinions, existing_case_ids: frozenset[str]
) -> None:
    """Write the index rows of base case, second opinion and adjudication.

    Rows of cases that do not exist are removed. ``existing_case_ids`` are the cases that have a packet, as returned by ``write_derived_files_and_get_case_ids``. The
    caller holds the write lock.
    """
    for row in opinions.iterate_index_rows(output_folder, existing_case_ids):
        index.upsert_case(row)
    index.remove_cases(*(opinions.numbered_reviews_by_case_id.keys() - existing_case_ids))


def queue_or_withdraw_attention_checks(
    output_folder: OutputFolder, index: OutputIndex, now: str, doc_id: str | None = None
) -> None:
    """Queue the attention checks of one document, or of all documents if None.

    A check whose planted fault no longer hides the current ground truth is removed from the queue, unless an expert has
    begun the check by ``now`` (ISO 8601, UTC). A check that was recorded but not queued, because the program crashed in
    between, is queued. The caller holds the write lock. StoreError if a recorded check cannot be read.
    """
    for case_id, bundle_doc_id in list(iterate_check_case_and_doc_ids(output_folder)):
        if doc_id not in (None, bundle_doc_id):
            continue
        attention_check, name = read_attention_check(output_folder, case_id), packet_file_name(case_id)
        is_begun = is_packet_frozen(output_folder, index, case_id, now) or index.deferrals.find(case_id) is not None
        if not is_begun and not is_hidden_truth_current(output_folder, attention_check):
            output_folder.remove_file(name)
        elif not output_folder.has_file(name):
            output_folder.write_json(name, serialise_packet(attention_check.packet))
        if output_folder.has_file(name):
            row = CaseOpinions.read(output_folder, case_id).build_index_row(output_folder, case_id)
            if is_begun:
                row.pop("review_status")  # claims and deferrals decide the status of a case that was begun
            index.upsert_case(row)
        else:
            index.remove_cases(case_id)


def project_ground_truth(
    packet: SMEPacket,
    numbered_reviews: Sequence[tuple[int, Review]],
    *,
    non_ground_truth_revisions: Container[int] = (),
) -> GroundTruthRecord | None:
    """Derive a case's ground truth from its numbered reviews, oldest first.

    None if the newest review leaves no ground truth, and always for an attention check. ``supersedes`` is the newest
    earlier review that gave ground truth, even if the case was reopened since, except ``non_ground_truth_revisions``; if
    there is none, the silver record (0) of an accepted document.
    """
    if not numbered_reviews or packet.is_attention_check or any(review.seeded for _, review in numbered_reviews):
        return None
    revision, newest_review = numbered_reviews[-1]
    source = SOURCE_BY_OUTCOME[newest_review.outcome]
    if source is None or newest_review.after is None:
        return None
    earlier_revisions = [
        number
        for number, review in numbered_reviews[:-1]
        if SOURCE_BY_OUTCOME[review.outcome] and number not in non_ground_truth_revisions
    ]
    silver_revision = 0 if packet.v5_decision is Decision.AUTO_ACCEPT else None
    record_fields: dict[str, Any] = {
        "doc_id": packet.doc_id,
        "ground_truth_source": source,
        "correction_notes": newest_review.correction_notes,
        "reviewer": newest_review.reviewer,
        "reviewed_at": newest_review.submitted_at,
        "vouched": newest_review.vouched,
        "review_reason": packet.review_reason,
        "inclusion_probability": packet.inclusion_probability,
        "packet_sha256": newest_review.packet_sha256,
        "revision": revision,
        "supersedes": max(earlier_revisions, default=silver_revision),
    }
    return CASE_KINDS[packet.kind].build_ground_truth(packet, newest_review, newest_review.after, record_fields)


def _write_or_remove_ground_truth(output_folder: OutputFolder, opinions: CaseOpinions) -> None:
    packet, kind = opinions.base_packet, CASE_KINDS[opinions.base_packet.kind]
    if not opinions.numbered_reviews_by_case_id[packet.case_id]:
        return  # a silver record is not derived from reviews and stays
    name = ground_truth_file_name(packet.case_id)
    record = opinions.build_ground_truth()
    if record is None:
        output_folder.remove_file(name)
    else:
        record = kind.complete_ground_truth(output_folder, packet, record)
        if read_json_unless_missing_or_torn(output_folder, name) != (record_json := record.model_dump(mode="json")):
            output_folder.write_json(name, record_json)
    answers = [review.after for chain in opinions.numbered_reviews_by_case_id.values() for _, review in chain]
    kind.write_projected_files(output_folder, packet, record, answers)


def _write_or_withdraw_further_packet(
    output_folder: OutputFolder, case_id: str, wanted_packet: SMEPacket | None, *, is_begun: bool
) -> bool:
    """Write or remove the packet of a second opinion or adjudication.

    Return True if the packet exists afterwards. A packet on which a reviewer has begun to work (``is_begun``) is neither
    changed nor removed.
    """
    name = packet_file_name(case_id)
    if wanted_packet is None:
        if is_begun:
            return output_folder.has_file(name)
        output_folder.remove_file(name)
        return False
    stored = read_json_unless_missing_or_torn(output_folder, name)
    if stored is None or not (is_begun or stored | {"review_status": "pending"} == serialise_packet(wanted_packet)):
        output_folder.write_json(name, serialise_packet(wanted_packet))
    return True


def _iterate_opinion_case_ids(case_id: str) -> Iterator[str]:
    yield from (case_id, case_id + SECOND_SUFFIX, case_id + ADJUDICATION_SUFFIX)


def _list_past_reviewers(output_folder: OutputFolder, doc_id: str) -> tuple[str, ...]:
    chains = (read_numbered_reviews(output_folder, case_id) for case_id in _iterate_opinion_case_ids(doc_id))
    return tuple(dict.fromkeys(review.reviewer for chain in chains for _, review in chain))
