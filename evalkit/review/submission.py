"""One submitted review: what was said is checked, written as a file that never changes, and carried out."""

from __future__ import annotations

import importlib.metadata
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, Self, cast

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, model_validator

from evalkit.classification.autofix import Repair
from evalkit.classification.schema import ClassificationOutput, load_type_definitions
from evalkit.core.clocks import format_iso_seconds
from evalkit.core.records import describe_first_error
from evalkit.documents.bundle import DocumentBundle
from evalkit.errors import ReviewRefused, StoreError
from evalkit.review.attention_check_queue import queue_or_withdraw_attention_checks
from evalkit.review.corrections import (
    CLASSIFICATION_PARTS,
    ClassificationPart,
    correct_classification,
    list_corrected_parts,
    repair_validated_classification,
)
from evalkit.review.draft import FLAG_KINDS, FlagKind, list_segments_if_gapless
from evalkit.review.field_answers import (
    ExtractedFields,
    index_fields_by_key,
    list_agent_extracted_fields,
    parse_field_answers,
    resolve_field_key,
)
from evalkit.review.field_answers import apply_and_locate_field_answers as corrected_fields
from evalkit.review.ground_truth import (
    IssueVerdict,
    Review,
    ReviewedAnswer,
    ReviewOutcome,
    ShownMachineAnswers,
    append_chained_review,
    hash_review_file,
    is_newest_review_unchanged,
)
from evalkit.review.opinions import CaseOpinions, update_case_index, write_derived_files_and_get_case_ids
from evalkit.review.packet import SMEPacket, compute_packet_digest, read_packet, read_packet_bundle
from evalkit.review.permissions import ReviewerRole
from evalkit.review.queue import read_review_status
from evalkit.review.roster import ReviewerRoster
from evalkit.review.template_editing import (
    build_approved_template,
    describe_unmet_sums,
    parse_corrected_template,
    read_packet_template,
)
from evalkit.review.write_lock import hold_case_write_lock
from evalkit.statements.applied_template import AppliedTemplate
from evalkit.statements.statement_template import StatementTemplate
from evalkit.store import OutputFolder, OutputIndex, ReviewChainHead, encode_canonical_json, review_file_name

log = logging.getLogger(__name__)

_VERDICTS_ADAPTER = TypeAdapter(tuple[IssueVerdict, ...])


class _SegmentFlagInput(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    segment_index: int
    start_page: int | None = None
    end_page: int | None = None
    flag: FlagKind | None = None
    note: str | None = None

    @model_validator(mode="after")
    def _require_flag_or_note(self) -> Self:
        if self.flag is None and not (self.note or "").strip():
            raise ValueError("it has neither a flag nor a note")
        return self


_FLAGS_ADAPTER = TypeAdapter(tuple[_SegmentFlagInput, ...])

#: What a validation stands for, unless it is said.
DEFAULT_VOUCHED_PARTS: tuple[ClassificationPart, ...] = ("dominant_type", "segments")


@dataclass(frozen=True)
class Submission:
    """What an expert says about a case; the fields are ``SMEReviewHelper.save_review``'s arguments."""

    agrees: bool | None = None
    corrected_dominant_type: str | None = None
    corrected_segments: Sequence[Any] | None = None
    corrected_mixture: Sequence[Any] | None = None
    corrected_fields: Mapping[str, Any] | None = None
    corrected_template: StatementTemplate | str | None = None
    unmet_sums: str = ""
    correction_notes: str = ""
    issue_verdicts: Iterable[IssueVerdict | Mapping[str, Any]] = ()
    undeterminable: str | None = None
    vouched: Iterable[str] | None = None
    seconds_active: float | None = None
    pages_seen: Iterable[int] = ()
    evidence_seen: Iterable[str] = ()
    shown: ShownMachineAnswers | None = None
    segment_flags: Iterable[Mapping[str, Any]] = ()
    second_opinion: str = ""
    """Why a colleague is to answer the case too; only a ``ReviewSession`` asks."""

    @property
    def correction_parts(self) -> tuple[ClassificationPart, ...]:
        """The parts of a classification that it corrects."""
        return list_corrected_parts(self.corrected_dominant_type, self.corrected_segments, self.corrected_mixture)


@dataclass(frozen=True)
class BrowserTab:
    """The browser tab in which something was said; its draft, and the reviewer's older ones, go with the review."""

    tab_id: str
    """The tab's id."""
    opened_at: str
    """When the case was opened there (ISO 8601, UTC)."""


@dataclass(frozen=True)
class LoadedCase:
    """A case as it was read before anything was said about it."""

    packet: SMEPacket
    packet_sha256: str
    bundle: DocumentBundle
    """What stands in the document."""


@dataclass(frozen=True)
class ReviewSubmitter:
    """Who submits, where and when."""

    output_folder: OutputFolder
    index: OutputIndex
    reviewer: str
    clock: Callable[[], datetime]

    def load_case(self, case_id: str) -> LoadedCase:
        """The case, to say something about. NotFound; StoreError where a file cannot be read."""
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
        """Save a review on ``base_revision`` (None: whatever is the newest) and all that follows from it.

        The drafts of the tab ``browser_tab`` go. ``require_savable`` is called while nobody else can write, with the digest of the packet
        as it is by then and the moment (ISO 8601, UTC), and raises what forbids saving. ReviewRefused, ReviewConflict; nothing was written then.
        """
        outcome = _derive_outcome(submission)
        _require_matching_kind(loaded_case.packet, submission)
        kind = loaded_case.packet.kind
        vouched_keys: tuple[str, ...] = ()
        vouched_parts: tuple[ClassificationPart, ...] = ()
        if kind == "extraction":
            vouched_keys = _choose_vouched_fields(loaded_case.packet, submission, outcome)
        elif kind == "statement_template":
            vouched_keys = () if outcome == "undeterminable" else ("template",)
        else:
            vouched_parts = _choose_vouched_parts(submission.vouched, outcome, submission.correction_parts)
        # Before anybody has to wait: reading a statement takes a while.
        approved_template = (
            _build_reviewed_template(outcome, submission, loaded_case) if kind == "statement_template" else None
        )
        with hold_case_write_lock(self.output_folder, loaded_case.packet.case_id):
            packet = read_packet(self.output_folder, loaded_case.packet.case_id)
            packet_sha256, now = self._compute_packet_digest(packet, loaded_case), format_iso_seconds(self.clock())
            require_savable(packet_sha256, now)
            answer_after: ReviewedAnswer | None
            repairs: list[Repair] = []
            if kind == "extraction":
                answer_after = _build_reviewed_fields(outcome, submission, packet, loaded_case.bundle)
            elif kind == "statement_template":
                answer_after = approved_template
            else:
                answer_after, repairs = _build_reviewed_classification(
                    outcome, submission, packet, loaded_case.bundle, vouched_parts
                )
            return self._save_review(
                packet,
                base_revision,
                browser_tab,
                packet_sha256=packet_sha256,
                submitted_at=now,
                seconds_active=submission.seconds_active,
                outcome=outcome,
                after=answer_after,
                repairs_applied=tuple(repairs),
                correction_notes="\n".join(
                    filter(None, [(submission.undeterminable or "").strip(), submission.correction_notes])
                ),
                issue_verdicts=_parse_verdicts(packet, submission.issue_verdicts),
                vouched=vouched_keys or vouched_parts,
                pages_seen=tuple(submission.pages_seen),
                evidence_seen=tuple(submission.evidence_seen),
                shown=submission.shown or ShownMachineAnswers(),
                segment_flags=_parse_segment_flags(
                    submission.segment_flags,
                    answer_after if isinstance(answer_after, ClassificationOutput) else None,
                    packet.total_pages,
                ),
                unmet_sums=submission.unmet_sums.strip() if approved_template else "",
                second_opinion=submission.second_opinion,
            )

    def reopen_case(self, case_id: str, reason: str, *, base_revision: int | None) -> Review:
        """Undo: the case waits again. ReviewRefused, NotFound, ReviewConflict; in each case nothing was written."""
        if not reason.strip():
            raise build_incomplete_review_error("reopening needs a reason", "Say why the review cannot stand.")
        with hold_case_write_lock(self.output_folder, case_id):
            packet = read_packet(self.output_folder, case_id)
            if read_review_status(self.output_folder, case_id) != "completed":
                raise build_incomplete_review_error(
                    f"case {case_id!r} is not closed, so there is nothing to undo", "Save a review instead."
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
            )

    def _compute_packet_digest(self, packet: SMEPacket, loaded_case: LoadedCase) -> str:
        """The packet's; that of an equal one is known already. Their status does not count."""
        is_same_packet = (
            packet.model_copy(update={"review_status": loaded_case.packet.review_status}) == loaded_case.packet
        )
        return loaded_case.packet_sha256 if is_same_packet else compute_packet_digest(packet)

    def _save_review(
        self, packet: SMEPacket, base_revision: int | None, tab: BrowserTab | None, **review_fields: Any
    ) -> Review:
        """Write the review and what follows from it; the lock is held."""
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
        review = append_chained_review(
            self.output_folder,
            case_id,
            self._build_review(packet, permissions.role, review_fields),
            base_revision=revision,
        )
        # From here on the review stands: an error must not invite anybody to save it a second time.
        try:
            opinions = opinions_before.build_with_added_review(case_id, review)
            existing_ids = write_derived_files_and_get_case_ids(self.output_folder, opinions)
        except StoreError as error:
            raise StoreError(
                f"the review was saved, but what follows from it was not: {error.message}",
                code=error.code,
                remedy="Do not save it again: mend the folder, then run `evalkit reindex`.",
            ) from error
        try:
            with self.index.batch_into_one_transaction():
                self._update_index_claims_and_heads(case_id, review, opinions, existing_ids)
                if tab:
                    self.index.drafts.remove_tab_and_older_drafts(
                        case_id, self.reviewer, tab.tab_id, other_tabs_saved_until=tab.opened_at
                    )
        except StoreError:
            log.warning("the index did not take a saved review; its draft stays, and `evalkit reindex` catches up")
        # In no other answer faults are planted; and a template's turn is not that of the statement's cases.
        if packet.kind != "classification":
            return review
        try:
            queue_or_withdraw_attention_checks(
                self.output_folder, self.index, review.submitted_at, opinions.base_packet.doc_id
            )
        except StoreError:
            log.warning("seeded cases of a reviewed document were not looked over; `evalkit reindex` catches up")
        return review

    def _require_newest_review_unchanged(self, case_id: str) -> None:
        """The next review vouches for the one before it: never for one that somebody has put in its place. StoreError."""
        head = self.index.review_heads.find_head(case_id)
        if head and not is_newest_review_unchanged(self.output_folder, head):
            raise StoreError(
                f"{review_file_name(case_id, head.revision)} is not the review that was saved, or is gone",
                code="REVIEW-CHANGED",
                remedy="Nothing was saved. Restore that file from a backup; `evalkit audit verify` names all such files.",
            )

    def _update_index_claims_and_heads(
        self, case_id: str, review: Review, opinions: CaseOpinions, existing_ids: frozenset[str]
    ) -> None:
        """Tell the index, which can be made again, what the files say; and what vouches for the newest of them."""
        revision = opinions.get_newest_revision(case_id)
        self.index.review_heads.save_head(
            ReviewChainHead(case_id, revision, hash_review_file(self.output_folder, case_id, revision))
        )
        self.index.deferrals.remove_deferral(case_id)
        update_case_index(self.output_folder, self.index, opinions, existing_ids)
        if opinions.get_status(case_id) == "completed":
            self.index.record_closed_case(case_id, review.reviewer, review.submitted_at, review.seconds_active)
            self.index.claims.remove_claim(case_id)  # nobody works on a closed case
        else:
            self.index.remove_closed_case(case_id)

    def _build_review(self, packet: SMEPacket, role: ReviewerRole, review_fields: Mapping[str, Any]) -> Review:
        try:
            review = Review(
                reviewer=self.reviewer,
                role=role,
                before=_get_agent_answer(packet),
                seeded=packet.is_attention_check,
                versions=dict(_read_versions()),
                **review_fields,
            )
            encode_canonical_json(review.model_dump(mode="json"))
        except ValidationError as error:
            raise build_incomplete_review_error(
                describe_first_error(error), "See save_review's documentation."
            ) from None
        except ValueError:
            raise ReviewRefused(
                "the review holds what JSON cannot carry",
                code="REVIEW-SHAPE",
                remedy="Give plain text, numbers and lists.",
            ) from None
        return review


def _get_agent_answer(packet: SMEPacket) -> ReviewedAnswer | None:
    """What the agent had said."""
    if packet.kind == "statement_template":
        return read_packet_template(packet)
    return list_agent_extracted_fields(packet) or packet.classification


@cache
def _read_versions() -> Mapping[str, str]:
    return {"evalkit": importlib.metadata.version("evalkit"), "types": str(load_type_definitions()["version"])}


def _build_reviewed_classification(
    outcome: ReviewOutcome,
    submission: Submission,
    packet: SMEPacket,
    bundle: DocumentBundle,
    vouched_parts: Iterable[ClassificationPart],
) -> tuple[ClassificationOutput | None, list[Repair]]:
    """The classification that the review leaves, and the repairs in it."""
    if outcome == "validated":
        return repair_validated_classification(packet.classification, packet.open_issues, bundle, vouched_parts)
    if outcome == "undeterminable":
        return None, []
    correction = correct_classification(
        packet.classification,
        bundle,
        dominant_type=submission.corrected_dominant_type,
        segments=submission.corrected_segments,
        mixture=submission.corrected_mixture,
        vouched_parts=vouched_parts,
    )
    return correction, []


def _build_reviewed_fields(
    outcome: ReviewOutcome, submission: Submission, packet: SMEPacket, bundle: DocumentBundle
) -> tuple[ExtractedFields, ...] | None:
    """The fields that the review leaves."""
    agent_extracted_fields = list_agent_extracted_fields(packet)
    if outcome == "undeterminable":
        return None
    if outcome == "validated" and not any(extraction.history for extraction in packet.extractions):
        raise ReviewRefused(
            "no fields could be extracted, so there is nothing to agree with",
            code="REVIEW-NOTHING-TO-VALIDATE",
            remedy="Give corrected_fields, or say why it is undeterminable.",
        )
    return corrected_fields(
        agent_extracted_fields, parse_field_answers(packet, submission.corrected_fields or {}), bundle
    )


def _build_reviewed_template(
    outcome: ReviewOutcome, submission: Submission, loaded_case: LoadedCase
) -> StatementTemplate | None:
    """The template that the review leaves: stable. ReviewRefused where its sums are not met and nobody says why."""
    if outcome == "undeterminable":
        return None
    agent_template = read_packet_template(loaded_case.packet)
    final_template = (
        agent_template
        if submission.corrected_template is None
        else parse_corrected_template(loaded_case.packet, submission.corrected_template)
    )
    applied_template = AppliedTemplate.create(final_template, loaded_case.bundle)
    if not applied_template.statement.transactions:
        raise build_incomplete_review_error(
            "the template reads no transaction", "Correct it, or say why it cannot be used."
        )
    if (unmet_sentence := describe_unmet_sums(applied_template.reconciliation)) and not submission.unmet_sums.strip():
        raise build_incomplete_review_error(
            unmet_sentence, "Say why the template may be approved all the same (unmet_sums), or correct it."
        )
    if not unmet_sentence and submission.unmet_sums.strip():
        raise build_incomplete_review_error("all sums are met", "Leave unmet_sums out.")
    return build_approved_template(agent_template, final_template)


def _choose_vouched_fields(packet: SMEPacket, submission: Submission, outcome: ReviewOutcome) -> tuple[str, ...]:
    """The keys of the fields that the expert stands for, in the packet's order: all, or the corrected ones, if not said."""
    keys = index_fields_by_key(list_agent_extracted_fields(packet))
    if outcome == "undeterminable":
        return ()
    if submission.vouched is None and outcome == "validated":
        return tuple(keys)
    names = (submission.corrected_fields or {}) if submission.vouched is None else submission.vouched
    vouched_keys = {resolve_field_key(packet, name) for name in names}
    return tuple(key for key in keys if key in vouched_keys)


def _require_matching_kind(packet: SMEPacket, submission: Submission) -> None:
    """ReviewRefused where something is corrected that the case is not about."""
    is_given_by_kind = {
        "classification": bool(submission.correction_parts),
        "extraction": submission.corrected_fields is not None,
        "statement_template": submission.corrected_template is not None or bool(submission.unmet_sums.strip()),
    }
    for kind, is_given in is_given_by_kind.items():
        if is_given and kind != packet.kind:
            topic, remedy = _TOPIC_AND_REMEDY_BY_KIND[packet.kind]
            raise build_incomplete_review_error(
                f"case {packet.case_id!r} is about {topic}, not about {_TOPIC_AND_REMEDY_BY_KIND[kind][0]}", remedy
            )


#: What each kind of case is about, and how it is corrected.
_TOPIC_AND_REMEDY_BY_KIND = {
    "classification": ("a document's types", "Give corrected_dominant_type or corrected_segments."),
    "extraction": ("fields", "Give corrected_fields."),
    "statement_template": ("a statement template", "Give corrected_template."),
}


def _derive_outcome(submission: Submission) -> ReviewOutcome:
    outcomes: list[ReviewOutcome] = []
    if submission.agrees:
        outcomes.append("validated")
    if submission.correction_parts or submission.corrected_fields or submission.corrected_template is not None:
        outcomes.append("corrected")
    if submission.undeterminable is not None:
        outcomes.append("undeterminable")
    if len(outcomes) != 1:
        problem = f"a review cannot be {' and '.join(outcomes)} at once" if outcomes else "the review decides nothing"
        raise build_incomplete_review_error(
            problem, "Give exactly one of agrees=True, corrected_…, or undeterminable with a reason."
        )
    if submission.undeterminable is not None and not submission.undeterminable.strip():
        raise build_incomplete_review_error(
            "undeterminable has no reason", "Say why nobody can tell, such as 'illegible scan'."
        )
    return outcomes[0]


def _choose_vouched_parts(
    vouched: Iterable[str] | None, outcome: ReviewOutcome, corrected_parts: Sequence[ClassificationPart]
) -> tuple[ClassificationPart, ...]:
    """The parts that the expert stands for, in the order of ``CLASSIFICATION_PARTS``."""
    chosen_parts: set[ClassificationPart]
    if outcome == "undeterminable":
        chosen_parts = set()
    elif vouched is None:
        # Segments say the document's type, too: it is the one of most pages.
        implied_parts: Sequence[ClassificationPart] = ("dominant_type",) if "segments" in corrected_parts else ()
        chosen_parts = set(DEFAULT_VOUCHED_PARTS) if outcome == "validated" else {*corrected_parts, *implied_parts}
    else:
        chosen_parts = cast("set[ClassificationPart]", set(vouched))
    if unknown_parts := chosen_parts - set(CLASSIFICATION_PARTS):
        raise build_incomplete_review_error(
            f"{sorted(unknown_parts)!r} cannot be vouched for", f"The parts are {', '.join(CLASSIFICATION_PARTS)}."
        )
    return tuple(part for part in CLASSIFICATION_PARTS if part in chosen_parts)


def _parse_verdicts(
    packet: SMEPacket, raw_verdicts: Iterable[IssueVerdict | Mapping[str, Any]]
) -> tuple[IssueVerdict, ...]:
    shape_hint = (
        "Each is a dict with issue_id (one of the packet's), verdict (confirmed or dismissed) and perhaps note."
    )
    try:
        verdicts = _VERDICTS_ADAPTER.validate_python(tuple(raw_verdicts))
    except ValidationError as error:
        raise build_incomplete_review_error(describe_first_error(error, "issue_verdicts"), shape_hint) from None
    known_ids = {issue.issue_id for issue in packet.issues}
    judged_ids = [verdict.issue_id for verdict in verdicts]
    if unknown_ids := [issue_id for issue_id in judged_ids if issue_id not in known_ids]:
        raise build_incomplete_review_error(f"case {packet.case_id!r} has no issue {unknown_ids[0]!r}", shape_hint)
    if len(set(judged_ids)) < len(judged_ids):
        raise build_incomplete_review_error("an issue has two verdicts", shape_hint)
    return verdicts


def _parse_segment_flags(
    raw_flags: Iterable[Mapping[str, Any]], classification: ClassificationOutput | None, total_pages: int
) -> tuple[dict[str, Any], ...]:
    """The rows with their pages; each names a segment that the review leaves.

    Where these do not cover the pages, or there are none, it says which pages it means.
    """
    shape_hint = (
        "Each is a dict with segment_index (from 1, in the order of the pages), flag "
        f"({', '.join(FLAG_KINDS)}) or note, and start_page and end_page where the review leaves no segments that cover the pages."
    )
    try:
        flag_inputs = _FLAGS_ADAPTER.validate_python(tuple(raw_flags))
    except ValidationError as error:
        raise build_incomplete_review_error(describe_first_error(error, "segment_flags"), shape_hint) from None
    ranges_by_index = {
        index: (segment.start_page, segment.end_page)
        for index, segment in enumerate(list_segments_if_gapless(classification, total_pages), 1)
    }
    rows = []
    for position, segment_row in enumerate(flag_inputs):
        start_page, end_page = (
            ranges_by_index.get(segment_row.segment_index, (0, 0))
            if ranges_by_index
            else (segment_row.start_page or 0, segment_row.end_page or 0)
        )
        is_there = segment_row.segment_index >= 1 and 1 <= start_page <= end_page <= total_pages
        if (
            not is_there
            or segment_row.start_page not in (None, start_page)
            or segment_row.end_page not in (None, end_page)
        ):
            raise build_incomplete_review_error(f"segment_flags.{position}: the review has no such segment", shape_hint)
        rows.append(segment_row.model_dump(exclude_none=True) | {"start_page": start_page, "end_page": end_page})
    return tuple(rows)


def build_incomplete_review_error(message: str, remedy: str) -> ReviewRefused:
    """Refuse a review that does not say enough, or contradicts itself."""
    return ReviewRefused(message, code="REVIEW-INCOMPLETE", remedy=remedy)
