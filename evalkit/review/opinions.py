"""Several experts' opinions about one case, and what is true in the end.

Source: contract, "Identity". An expert may ask for a second opinion (the case ``….second``, for somebody else); where
the two answers differ a third expert decides (``….adjudication``). Until there is agreement or a decision the document
has no ground truth: a wrong one would cost more than a late one.

All of it follows from review files. That a second opinion is wanted stands in the first expert's review, so that one
file, created at one moment, says both; the packets of the further cases and the ground truth are made from the reviews
and the base packet, and are made again after a crash.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from evalkit.classification.patient_keys import (
    attach_patient_keys,
    compute_patient_keys_by_page_range,
    load_or_create_patient_salt,
)
from evalkit.documents.bundle import BUNDLE_SCHEMA_VERSION
from evalkit.documents.identity.file_persons import group_stored_pages_by_person
from evalkit.errors import EvalkitError, ReviewRefused
from evalkit.review.attention_checks.records import is_attention_check_unanswered, map_check_case_ids_by_doc_id
from evalkit.review.draft import Draft, SegmentFlag
from evalkit.review.field_answers import (
    find_changed_fields,
    list_agent_extracted_fields,
    list_field_keys_statuses_and_values,
)
from evalkit.review.ground_truth import (
    FieldsGroundTruth,
    GroundTruth,
    Review,
    ReviewOutcome,
    TemplateGroundTruth,
    derive_review_status,
    project_ground_truth,
    read_json_unless_missing_or_torn,
    read_numbered_reviews,
    remove_mismatched_silver_fields,
)
from evalkit.review.packet import (
    ADJUDICATION_SUFFIX,
    SECOND_SUFFIX,
    ReviewStatus,
    SMEPacket,
    build_case_index_row,
    get_base_case_id,
    is_packet_frozen,
    read_answering_model_name,
    read_packet,
    serialise_packet,
    write_packet_status,
)
from evalkit.review.template_editing import (
    extract_template_if_edited,
    is_nearly_same_template,
    read_packet_template,
    read_stored_template,
)
from evalkit.statements.statement_template import StatementTemplate, render_template_toml
from evalkit.store import (
    OutputFolder,
    OutputIndex,
    bundle_file_name,
    ground_truth_file_name,
    hash_canonical_json,
    packet_file_name,
    template_file_name,
)

_NumberedReviews = list[tuple[int, Review]]


@dataclass(frozen=True)
class Opinion:
    """One of the two answers of an adjudication. It does not tell whose it is, nor which was first."""

    label: str
    """``A`` or ``B``."""
    draft: Draft
    """What was answered; one segment of no type where the expert could not tell."""
    outcome: ReviewOutcome
    """What was decided."""
    notes: str
    """The expert's words."""


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
    """Whether an attention check that shows this document waits: its answer must not be read here before."""

    @classmethod
    def read(
        cls,
        output_folder: OutputFolder,
        case_id: str,
        check_case_ids_by_doc_id: Mapping[str, Sequence[str]] | None = None,
    ) -> CaseOpinions:
        """All opinions about the case that ``case_id`` belongs to. NotFound where its base case is not there.

        Who reads those about many cases looks once which are ``check_case_ids_by_doc_id``: ``map_check_case_ids_by_doc_id``.
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
        if (
            base_packet.kind != "classification"
        ):  # what a document is, which an attention check is about, is not asked here
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
        """The opinions after one more review of a case, which was just written."""
        numbered_review = (self.get_newest_revision(case_id) + 1, review)
        return replace(
            self,
            numbered_reviews_by_case_id={
                **self.numbered_reviews_by_case_id,
                case_id: [*self.numbered_reviews_by_case_id[case_id], numbered_review],
            },
        )

    def get_newest_revision(self, case_id: str) -> int:
        """The number of a case's newest review; 0 where there is none."""
        chain = self.numbered_reviews_by_case_id[case_id]
        return chain[-1][0] if chain else 0

    @cached_property
    def review_requesting_second_opinion(self) -> Review | None:
        """The review that stands on the base case and asks for a second opinion, if it does.

        Never of an attention check: a colleague's time is worth more than a second answer to a planted fault.
        """
        if self.base_packet.is_attention_check:
            return None
        closing_review = self._get_newest_review_if_closing(self.base_packet.case_id)
        return closing_review if closing_review and closing_review.second_opinion else None

    @cached_property
    def further_packet_by_case_id(self) -> dict[str, SMEPacket]:
        """The further cases that there must be, by case_id."""
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

    def build_ground_truth(self) -> GroundTruth | FieldsGroundTruth | TemplateGroundTruth | None:
        """The document's ground truth; None where there is none, or none yet."""
        chain = self.numbered_reviews_by_case_id[self.base_packet.case_id]
        # What was asked about gave no ground truth, unless the second opinion agreed with it for a while.
        withheld_revisions = {number for number, review in chain if review.second_opinion}
        if self.review_requesting_second_opinion and any(
            _is_same_answer(self.review_requesting_second_opinion, second_review)
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
        """Where one of the cases stands, by its reviews."""
        chain = self.numbered_reviews_by_case_id[case_id]
        return derive_review_status(chain[-1][1] if chain else None)

    def get_second_opinion_reason(self, case_id: str) -> str:
        """Why a colleague asks; empty unless it is the case for a second opinion."""
        return (
            self.review_requesting_second_opinion.second_opinion
            if self.review_requesting_second_opinion and case_id == self._build_case_id(SECOND_SUFFIX)
            else ""
        )

    def list_opinions_shown_to_adjudicator(self, case_id: str) -> tuple[Opinion, ...]:
        """The two answers, if the case is their adjudication. Their order tells nothing of who came first."""
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
        """The reviewers who must not answer that case: all who have answered one before it, undone or not.

        Of an attention check, all who have answered any about the document; and whoever has learnt the first answer from
        one gives no further opinion.
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
        """The reviews of a case that a reviewer may read: while another opinion is awaited, only their own."""
        is_open_to_all = not (self.is_opinion_awaited or self._can_get_attention_check(reviewer))
        return tuple(
            review
            for _, review in self.numbered_reviews_by_case_id[case_id]
            if review.reviewer == reviewer or is_open_to_all
        )

    def require_not_excluded(self, case_id: str, reviewer: str) -> None:
        """ReviewRefused where the reviewer has given their opinion already."""
        if reviewer in self.list_excluded_reviewers(case_id):
            raise ReviewRefused(
                f"you have answered case {self.base_packet.case_id!r} already, and case {case_id!r} needs another expert",
                code="REVIEW-BARRED",
                remedy="Leave it to a colleague, and take the next case.",
            )

    def require_reading_permission(self, case_id: str, reviewer: str) -> None:
        """ReviewRefused where the case would tell the reviewer what they must not know: they may be asked next."""
        can_be_asked = self.is_opinion_awaited and reviewer not in self.list_excluded_reviewers(
            self._build_case_id(SECOND_SUFFIX)
        )
        can_be_tested = self.get_status(case_id) == "completed" and self._can_get_attention_check(reviewer)
        if (case_id == self.base_packet.case_id and can_be_asked) or can_be_tested:
            raise ReviewRefused(
                f"a further opinion on case {case_id!r} is awaited: until then nobody reads it who has not answered it",
                code="REVIEW-AWAITED",
                remedy="Open it when all opinions are given.",
            )

    def build_index_row(self, output_folder: OutputFolder, case_id: str) -> dict[str, Any]:
        """The row of the index of one of the cases; what a base case says is left out while an opinion is awaited."""
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
        """The rows of the index of those of the cases that are ``existing_case_ids``."""
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
        """ReviewRefused where a further review of the case, by that reviewer at ``now``, would break what rests on it.

        Only under the lock. ``now`` is ISO 8601 in UTC; ``is_reopening`` says that the review reopens the case.
        """
        self.require_not_excluded(case_id, reviewer)
        if self.base_packet.is_attention_check and self.numbered_reviews_by_case_id[self.base_packet.case_id]:
            raise ReviewRefused(
                f"a fault was planted in case {case_id!r}, and its answer stands",
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
                f"a colleague has begun case {following_id!r}, so what was said in case {case_id!r} stands",
                code="REVIEW-RESTS",
                remedy=f"Whatever is to change is said in case {following_id!r} now.",
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
        """The newest review of a case, if it closes it."""
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
        """Whether there are two answers, and not the same."""
        if self.review_requesting_second_opinion is None or self._second_review is None:
            return False
        return not _is_same_answer(self.review_requesting_second_opinion, self._second_review)

    @property
    def is_opinion_awaited(self) -> bool:
        """Whether an opinion was asked for and is still to come."""
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
        draft_fields: dict[str, Any] = {"notes": review.correction_notes, "issue_verdicts": review.issue_verdicts}
        if isinstance(review.after, tuple) or self.base_packet.kind == "extraction":
            changed_fields = (
                find_changed_fields(list_agent_extracted_fields(self.base_packet), review.after)
                if isinstance(review.after, tuple)
                else {}
            )
            return Draft.from_packet(self.base_packet).model_copy(update=draft_fields | {"fields": changed_fields})
        if self.base_packet.kind == "statement_template":
            template_fields = draft_fields | {
                "template": extract_template_if_edited(self.base_packet, review.after),
                "unmet_sums": review.unmet_sums,
            }
            return Draft.from_packet(self.base_packet).model_copy(update=template_fields)
        draft = Draft.from_packet(self.base_packet.model_copy(update={"classification": review.after}))
        first_pages = {segment.start_page for segment in draft.segments}
        flags = tuple(
            SegmentFlag(start_page=flag_row["start_page"], flag=flag_row["flag"])
            for flag_row in review.segment_flags
            if "flag" in flag_row and flag_row["start_page"] in first_pages
        )
        return draft.model_copy(update=draft_fields | {"flags": flags})


def rebuild_case_files_and_list_index_rows(
    output_folder: OutputFolder, case_id: str, check_case_ids_by_doc_id: Mapping[str, Sequence[str]] | None = None
) -> list[dict[str, Any]]:
    """Make all files that follow from a case's reviews again; the index's rows of the cases about it.

    That is: ground truth, the packets of further opinions, the packets' mirrors of the status. Heals a crash after a
    review was written; without reviews nothing changes. The caller holds the lock. ``check_case_ids_by_doc_id`` as of ``CaseOpinions.read``.
    NotFound where the base case has no packet.
    """
    opinions = CaseOpinions.read(output_folder, case_id, check_case_ids_by_doc_id)
    return list(
        opinions.iterate_index_rows(output_folder, write_derived_files_and_get_case_ids(output_folder, opinions))
    )


def write_derived_files_and_get_case_ids(output_folder: OutputFolder, opinions: CaseOpinions) -> frozenset[str]:
    """Make all files again that follow from the reviews, as ``rebuild_case_files_and_list_index_rows``; which of the cases there are now.

    The caller holds the lock.
    """
    # First of all, so that nobody takes for true what is in doubt by now.
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
    """Tell the index which cases there are about the base case, and where each stands; the caller holds the lock.

    ``existing_case_ids``: those that have a packet, as ``write_derived_files_and_get_case_ids`` said.
    """
    for row in opinions.iterate_index_rows(output_folder, existing_case_ids):
        index.upsert_case(row)
    index.remove_cases(*(opinions.numbered_reviews_by_case_id.keys() - existing_case_ids))


def _write_or_remove_ground_truth(output_folder: OutputFolder, opinions: CaseOpinions) -> None:
    if not opinions.numbered_reviews_by_case_id[opinions.base_packet.case_id]:
        return  # silver stays
    name = ground_truth_file_name(opinions.base_packet.case_id)
    record = opinions.build_ground_truth()
    if isinstance(record, GroundTruth):
        record = _add_missing_patients(output_folder, opinions.base_packet, record)
    if record is None:
        output_folder.remove_file(name)
    elif read_json_unless_missing_or_torn(output_folder, name) != (record_json := record.model_dump(mode="json")):
        output_folder.write_json(name, record_json)
    if opinions.base_packet.kind == "classification":
        remove_mismatched_silver_fields(output_folder, opinions.base_packet.doc_id)
    if opinions.base_packet.kind == "statement_template":
        _write_approved_or_draft_template(output_folder, opinions, record)


def _add_missing_patients(output_folder: OutputFolder, packet: SMEPacket, truth: GroundTruth) -> GroundTruth:
    """Compute whom corrected page ranges are about; unchanged where the bundle or the salt is missing, until a reindex."""
    classification = truth.ground_truth_classification
    known_patients = packet.classification.patient_keys_by_page_range if packet.classification else {}
    if classification.patient_keys_by_page_range.keys() <= known_patients.keys():
        return truth
    try:
        stored_bundle = output_folder.read_json(
            bundle_file_name(packet.doc_id), max_schema_version=BUNDLE_SCHEMA_VERSION
        )
        patients = compute_patient_keys_by_page_range(
            classification, group_stored_pages_by_person(stored_bundle), load_or_create_patient_salt(output_folder)
        )
    except (EvalkitError, LookupError, TypeError, ValueError):
        return truth
    return truth.model_copy(update={"ground_truth_classification": attach_patient_keys(classification, patients)})


def _write_approved_or_draft_template(output_folder: OutputFolder, opinions: CaseOpinions, record: object) -> None:
    """The template's file as the reviews leave it: stable as it was approved, else the draft that it was before.

    A version that was made since is none of these reviews' business, and a draft that somebody has changed stays.
    """
    draft_template = read_packet_template(opinions.base_packet)
    name = template_file_name(draft_template.template_id)
    stored_template = read_stored_template(output_folder, draft_template.template_id)
    if isinstance(record, TemplateGroundTruth):
        approved_template = record.ground_truth_template
        if stored_template is None or (
            stored_template != approved_template and stored_template.version <= approved_template.version
        ):
            output_folder.write_text(name, render_template_toml(approved_template))
        return
    reviewed_answers = [review.after for chain in opinions.numbered_reviews_by_case_id.values() for _, review in chain]
    if stored_template is None or (stored_template != draft_template and stored_template in reviewed_answers):
        output_folder.write_text(name, render_template_toml(draft_template))


def _write_or_withdraw_further_packet(
    output_folder: OutputFolder, case_id: str, wanted_packet: SMEPacket | None, *, is_begun: bool
) -> bool:
    """Write or withdraw a further case's packet; whether there is one now.

    One that was reviewed stays what its reviewer had before their eyes.
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
    """Everybody who has answered a case about a document."""
    chains = (read_numbered_reviews(output_folder, case_id) for case_id in _iterate_opinion_case_ids(doc_id))
    return tuple(dict.fromkeys(review.reviewer for chain in chains for _, review in chain))


def _is_same_answer(first: Review, second: Review) -> bool:
    """Whether two experts agree."""
    if isinstance(first.after, StatementTemplate) and isinstance(second.after, StatementTemplate):
        return bool(first.unmet_sums) == bool(second.unmet_sums) and is_nearly_same_template(first.after, second.after)
    return _get_comparable_answer(first) == _get_comparable_answer(second)


def _get_comparable_answer(review: Review) -> tuple[Any, ...]:
    """What two experts must have said alike to agree, whether the agent had said it or not."""
    if review.after is None:
        return (review.outcome,)
    if isinstance(review.after, tuple):
        return tuple(list_field_keys_statuses_and_values(review.after))
    if isinstance(review.after, StatementTemplate):
        return (review.after,)
    segments = [(segment.start_page, segment.end_page, segment.dominant_type) for segment in review.after.segments]
    return review.after.dominant_type_overall, segments
