"""Several experts' opinions about one case, and what is true in the end.

Source: contract, "Identity". An expert may ask for a second opinion (the case ``….second``, for a colleague); if
the two answers differ a third expert decides (``….adjudication``). Until there is agreement or a decision the document
has no ground truth: a wrong one would cost more than a late one.

All of it follows from review files. The first expert's review says that a second opinion is wanted, so that one
file, created at one moment, holds both; the packets of the further cases and the ground truth are made from the reviews
and the base packet, and are made again after a crash.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from evalkit.classification.v5_arbiter import Decision
from evalkit.errors import ReviewRefused
from evalkit.review.attention_checks.records import is_attention_check_unanswered, map_check_case_ids_by_doc_id
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
    """A base case and the opinions about it, as the files say at one moment."""

    base_packet: SMEPacket
    numbered_reviews_by_case_id: dict[str, _NumberedReviews]
    """The numbered reviews of the base case and of the cases for further opinions, oldest first, by case_id."""
    unblinded_reviewers: tuple[str, ...] = ()
    """Who has answered a case about the document that an attention check shows; of any other case, who has learnt its answer
    from one."""
    is_attention_check_pending: bool = False
    """True if an attention check that shows this document waits: its answer must not be read here before."""

    @classmethod
    def read(
        cls,
        output_folder: OutputFolder,
        case_id: str,
        check_case_ids_by_doc_id: Mapping[str, Sequence[str]] | None = None,
    ) -> CaseOpinions:
        """Read all opinions about the case that ``case_id`` belongs to.

        NotFound without its base case. To read many cases, pass ``map_check_case_ids_by_doc_id`` once as
        ``check_case_ids_by_doc_id``.
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
        """Add a review that was just written."""
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
        """The review that closes the base case and asks for a second opinion.

        Never of an attention check: a colleague's time is worth more than a second answer to a planted fault.
        """
        if self.base_packet.is_attention_check:
            return None
        closing_review = self._get_newest_review_if_closing(self.base_packet.case_id)
        return closing_review if closing_review and closing_review.second_opinion else None

    @cached_property
    def further_packet_by_case_id(self) -> dict[str, SMEPacket]:
        """The packets of the further cases that must exist, by case_id."""
        requesting_review, second_review = self.review_requesting_second_opinion, self._second_review
        packets = {}
        if requesting_review:
            reason = f"a colleague asks for a second opinion: {requesting_review.second_opinion}"
            packets[self._build_case_id(SECOND_SUFFIX)] = self._build_further_packet(
                SECOND_SUFFIX, reason, requesting_review
            )
        if second_review and self._has_disagreement:
            reason = "two colleagues gave different answers, and a third decides"
            packets[self._build_case_id(ADJUDICATION_SUFFIX)] = self._build_further_packet(
                ADJUDICATION_SUFFIX, reason, second_review
            )
        return packets

    def build_ground_truth(self) -> GroundTruthRecord | None:
        """Build the ground truth of the case; None if there is none, or none yet."""
        chain = self.numbered_reviews_by_case_id[self.base_packet.case_id]
        # A review with a question gave no ground truth, unless the second opinion agreed with it for a while.
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
            # Counted on, so that a document's records never have the same number twice.
            chain = [*chain, *((chain[-1][0] + number, review) for number, review in adjudication_chain)]
        return project_ground_truth(self.base_packet, chain, non_ground_truth_revisions=withheld_revisions)

    def get_status(self, case_id: str) -> ReviewStatus:
        """Derive the status of one of the cases from its reviews."""
        chain = self.numbered_reviews_by_case_id[case_id]
        return derive_review_status(chain[-1][1] if chain else None)

    def get_second_opinion_reason(self, case_id: str) -> str:
        """Get why a colleague asks; empty unless it is the case for a second opinion."""
        return (
            self.review_requesting_second_opinion.second_opinion
            if self.review_requesting_second_opinion and case_id == self._build_case_id(SECOND_SUFFIX)
            else ""
        )

    def list_opinions_shown_to_adjudicator(self, case_id: str) -> tuple[Opinion, ...]:
        """List the two answers if the case is their adjudication, in neutral order."""
        if case_id != self._build_case_id(ADJUDICATION_SUFFIX) or not (
            self.review_requesting_second_opinion and self._second_review
        ):
            return ()
        ordered_reviews = sorted(
            (self.review_requesting_second_opinion, self._second_review),
            key=lambda review: hash_canonical_json(review.model_dump(mode="json")),
        )
        return tuple(
            Opinion(label, self._reconstruct_draft(review), review.outcome, review.correction_notes)
            for label, review in zip("AB", ordered_reviews, strict=True)
        )

    def list_excluded_reviewers(self, case_id: str) -> tuple[str, ...]:
        """List the reviewers who must not answer a case.

        All who answered one before it, undone or not. Of an attention check, all who have answered any case
        about the document; and anyone who learnt the first answer from one gives no further opinion.
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
        """List the reviews that a reviewer may read.

        Only their own while another opinion is awaited.
        """
        is_open_to_all = not (self.is_opinion_awaited or self._can_get_attention_check(reviewer))
        return tuple(
            review
            for _, review in self.numbered_reviews_by_case_id[case_id]
            if review.reviewer == reviewer or is_open_to_all
        )

    def require_not_excluded(self, case_id: str, reviewer: str) -> None:
        """ReviewRefused if the reviewer has already given their opinion."""
        if reviewer in self.list_excluded_reviewers(case_id):
            raise ReviewRefused(
                f"you have answered case {self.base_packet.case_id!r} already, and case {case_id!r} needs another expert",
                code="REVIEW-BARRED",
                remedy="Leave it to a colleague, and take the next case.",
            )

    def require_reading_permission(self, case_id: str, reviewer: str) -> None:
        """ReviewRefused if the reviewer may be asked next and must not read this."""
        can_be_asked = self.is_opinion_awaited and reviewer not in self.list_excluded_reviewers(
            self._build_case_id(SECOND_SUFFIX)
        )
        can_be_tested = self.get_status(case_id) == "completed" and self._can_get_attention_check(reviewer)
        if (case_id == self.base_packet.case_id and can_be_asked) or can_be_tested:
            raise ReviewRefused(
                f"a further opinion on case {case_id!r} is awaited: until then only those who have answered it may read it",
                code="REVIEW-AWAITED",
                remedy="Open it when all opinions are given.",
            )

    def build_index_row(self, output_folder: OutputFolder, case_id: str) -> dict[str, Any]:
        """Build the index row of a case.

        A base case reveals nothing while an opinion is awaited.
        """
        packet = self.base_packet if case_id == self.base_packet.case_id else read_packet(output_folder, case_id)
        row = {
            **build_case_index_row(packet, self.get_status(case_id), self.list_excluded_reviewers(case_id)),
            "source": read_answering_model_name(output_folder, packet),
        }
        if case_id == self.base_packet.case_id and self.is_opinion_awaited:
            row |= {"blocker": 0, "major": 0, "minor": 0, "dominant_type": "", "agents": ""}
            row["decision_reason"] = "a further opinion is awaited"
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
        """ReviewRefused if another review at ``now`` would invalidate a later opinion.

        The caller holds the lock. ``now`` is ISO 8601 in UTC; ``is_reopening`` means that the review reopens the case.
        """
        self.require_not_excluded(case_id, reviewer)
        if self.base_packet.is_attention_check and self.numbered_reviews_by_case_id[self.base_packet.case_id]:
            raise ReviewRefused(
                f"a fault was planted in case {case_id!r}, and its answer is final",
                code="REVIEW-SEEDED",
                remedy="Nothing follows from it: take the next case.",
            )
        following_id = {
            self.base_packet.case_id: self._build_case_id(SECOND_SUFFIX),
            self._build_case_id(SECOND_SUFFIX): self._build_case_id(ADJUDICATION_SUFFIX),
        }.get(case_id)
        if following_id is None or following_id not in self.further_packet_by_case_id:
            return
        if is_packet_frozen(output_folder, index, following_id, now) or index.deferrals.find_deferral(following_id):
            raise ReviewRefused(
                f"a colleague has begun case {following_id!r}, so the answer to case {case_id!r} is final",
                code="REVIEW-RESTS",
                remedy=f"Make any change in case {following_id!r} now.",
            )
        if case_id == self.base_packet.case_id and not is_reopening:
            raise ReviewRefused(
                f"a second opinion on case {case_id!r} was asked for and is awaited",
                code="REVIEW-AWAITED",
                remedy="Wait for it, or reopen the case, which takes the question back.",
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
        """Decide whether two experts agree, whether the agent gave the same answer or not."""
        if first.after is None or second.after is None:
            return first.after is second.after and first.outcome == second.outcome
        is_same = CASE_KINDS[self.base_packet.kind].is_same_answer(first.after, second.after)
        return is_same and bool(first.unmet_sums) == bool(second.unmet_sums)

    @property
    def is_opinion_awaited(self) -> bool:
        """True if an opinion was asked for and is still awaited."""
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
            }
        )

    def _reconstruct_draft(self, review: Review) -> Draft:
        draft = CASE_KINDS[self.base_packet.kind].reconstruct_draft(self.base_packet, review, review.after)
        return draft.model_copy(update={"notes": review.correction_notes, "issue_verdicts": review.issue_verdicts})


def rebuild_case_files_and_list_index_rows(
    output_folder: OutputFolder, case_id: str, check_case_ids_by_doc_id: Mapping[str, Sequence[str]] | None = None
) -> list[dict[str, Any]]:
    """Remake all files that follow from a case's reviews.

    Return the index rows of its cases. These are ground truth, the packets of further opinions and the packets'
    mirrors of the status. It repairs a crash after a review was written; without reviews nothing changes. The
    caller holds the lock. ``check_case_ids_by_doc_id`` as of ``CaseOpinions.read``. NotFound if the base case has
    no packet.
    """
    opinions = CaseOpinions.read(output_folder, case_id, check_case_ids_by_doc_id)
    return list(
        opinions.iterate_index_rows(output_folder, write_derived_files_and_get_case_ids(output_folder, opinions))
    )


def write_derived_files_and_get_case_ids(output_folder: OutputFolder, opinions: CaseOpinions) -> frozenset[str]:
    """Remake all files that follow from the reviews.

    Return the ids of the cases that now exist. The caller holds the lock.
    """
    # First of all, so that nobody relies on what is now in doubt.
    _write_or_remove_ground_truth(output_folder, opinions)
    existing_ids = {opinions.base_packet.case_id}  # it was read
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
    """Update the index rows of all cases about the base case.

    The caller holds the lock. ``existing_case_ids`` are those with a packet, from
    ``write_derived_files_and_get_case_ids``.
    """
    for row in opinions.iterate_index_rows(output_folder, existing_case_ids):
        index.upsert_case(row)
    index.remove_cases(*(opinions.numbered_reviews_by_case_id.keys() - existing_case_ids))


def project_ground_truth(
    packet: SMEPacket,
    numbered_reviews: Sequence[tuple[int, Review]],
    *,
    non_ground_truth_revisions: Container[int] = (),
) -> GroundTruthRecord | None:
    """Project a case's numbered reviews, oldest first, to its ground truth.

    None if the newest leaves none. It supersedes the newest earlier review that gave ground truth, even a reopened
    one, but none of ``non_ground_truth_revisions``; without one, the silver record (0) of an accepted document. An
    attention check never gives ground truth.
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
        return  # silver stays
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
    """Write or withdraw a further case's packet; return whether there is one now.

    A reviewed packet stays what its reviewer saw.
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
