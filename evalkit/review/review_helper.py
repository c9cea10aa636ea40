"""SMEReviewHelper: the calls that a notebook needs.

Source: specification 000, slide 10: list pending cases, load a packet, look at an issue in its context, save a review.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalkit.core.clocks import format_iso_seconds, utc_now
from evalkit.errors import CaseTaken, ReviewConflict, UsageError
from evalkit.review.case_files import read_packet, read_packet_bundle
from evalkit.review.claiming import reconcile_statuses_with_claims
from evalkit.review.ground_truth import IssueVerdict, Review, ShownMachineAnswers, find_newest_revision
from evalkit.review.issue_context import IssueContext, build_issue_context
from evalkit.review.kinds.classification import ClassificationCorrection
from evalkit.review.kinds.extraction import FieldsCorrection
from evalkit.review.kinds.statement_template import TemplateCorrection
from evalkit.review.opinions import CaseOpinions
from evalkit.review.packet import SMEPacket, compute_packet_digest
from evalkit.review.queue import list_pending_cases_worst_first
from evalkit.review.submission import Submission
from evalkit.review.submitter import ReviewSubmitter
from evalkit.review.write_lock import hold_case_write_lock
from evalkit.statements.statement_template import StatementTemplate
from evalkit.store import (
    CASE_COLUMNS,
    CaseView,
    OutputFolder,
    OutputIndex,
    open_output_folder,
    require_evalkit_output_folder,
)

if TYPE_CHECKING:
    import pandas as pd


def require_folder_and_get_reviewer_name(output_folder: OutputFolder, reviewer: str) -> str:
    """Get the reviewer's name without blanks.

    UsageError if it is empty, or for no output folder.
    """
    if not reviewer.strip():
        raise UsageError("the reviewer has no name", code="REVIEWER-NAME", remedy="Give reviewer='dr_lee' or the like.")
    require_evalkit_output_folder(output_folder)
    return reviewer.strip()


class SMEReviewHelper:
    """One expert at work on one output folder. Needs no roster."""

    def __init__(self, output: Path | str, reviewer: str, *, clock: Callable[[], str] | None = None) -> None:
        """``output`` is the folder of a run, ``reviewer`` a name that is not empty.

        ``clock`` gives ISO 8601 in UTC. The settings in force name the database. UsageError if the name is
        empty, if that is no output folder or if a setting is wrong; StoreError if it cannot be opened.
        """
        from evalkit.settings import Settings  # only analysts need it; an expert's kernel stays small

        self._output_folder = open_output_folder(output, Settings.load().database)
        self.reviewer = require_folder_and_get_reviewer_name(self._output_folder, reviewer)
        self._clock: Callable[[], datetime] = (lambda: datetime.fromisoformat(clock())) if clock else utc_now
        self._index = OutputIndex(self._output_folder)
        self._loaded_digests: dict[str, str] = {}
        self._submitter = ReviewSubmitter(self._output_folder, self._index, self.reviewer, self._clock)

    def close(self) -> None:
        """Give the index back."""
        self._index.close()

    def list_pending_reviews(self) -> pd.DataFrame:
        """List the open cases, worst first.

        Blocker, major, minor (open issues), then case_id.
        """
        import pandas as pd

        reconcile_statuses_with_claims(self._output_folder, self._index, format_iso_seconds(self._clock()))
        return pd.DataFrame(list_pending_cases_worst_first(self._index), columns=list(CASE_COLUMNS))

    def load_packet(self, case_id: str) -> SMEPacket:
        """Load the packet of a case.

        NotFound with its id. The view log records who loaded it and when.
        """
        with hold_case_write_lock(self._output_folder, case_id):  # nothing may be purged between looking and noting
            packet = read_packet(self._output_folder, case_id)
            self._index.view_log.add_view(CaseView(case_id, self.reviewer, format_iso_seconds(self._clock())))
        self._loaded_digests[case_id] = compute_packet_digest(packet)
        return packet

    def get_issue_context(self, packet: SMEPacket, issue_id: str) -> IssueContext:
        """Get an issue of the packet with its segment, evidence and the text around it.

        NotFound.
        """
        return build_issue_context(packet, issue_id, read_packet_bundle(self._output_folder, packet))

    def reviews(self, case_id: str) -> list[Review]:
        """List a case's reviews, oldest first; only one's own while an opinion is awaited.

        NotFound.
        """
        self.load_packet(case_id)
        return list(CaseOpinions.read(self._output_folder, case_id).list_readable_reviews(case_id, self.reviewer))

    def revision(self, case_id: str) -> int:
        """Get the number of a case's newest review, to pass as ``base_revision``."""
        self._loaded_digests[case_id] = compute_packet_digest(read_packet(self._output_folder, case_id))
        return find_newest_revision(self._output_folder, case_id)

    def save_review(
        self,
        case_id: str,
        agrees: bool | None = None,
        corrected_dominant_type: str | None = None,
        corrected_segments: Sequence[Any] | None = None,
        corrected_mixture: Sequence[Any] | None = None,
        correction_notes: str = "",
        issue_verdicts: Iterable[IssueVerdict | Mapping[str, Any]] = (),
        undeterminable: str | None = None,
        *,
        corrected_fields: Mapping[str, Any] | None = None,
        corrected_template: StatementTemplate | str | None = None,
        unmet_sums: str = "",
        vouched: Iterable[str] | None = None,
        seconds_active: float | None = None,
        pages_seen: Iterable[int] = (),
        evidence_seen: Iterable[str] = (),
        shown: ShownMachineAnswers | None = None,
        segment_flags: Iterable[Mapping[str, Any]] = (),
        base_revision: int | None = None,
    ) -> Review:
        """Submit a review: ``agrees``, any ``corrected_…``, or ``undeterminable``.

        Exactly one of the three; ``undeterminable`` is a reason.

        ``corrected_segments`` are dicts with ``start_page``, ``end_page``, ``dominant_type`` and perhaps
        ``segment_composition``; ``issue_verdicts`` dicts with ``issue_id``, ``verdict`` (confirmed or dismissed) and
        perhaps ``note``. ``segment_flags`` are dicts with ``segment_index`` (from 1, in the order of the pages, of the
        segments that the review leaves), ``flag`` (``other_patient``, ``duplicate`` or ``out_of_order``) or ``note`` or
        both, and perhaps ``start_page`` and ``end_page``, which an undeterminable case needs. ``vouched`` defaults to
        type and segments, or to the corrected parts (segments bring their type with them). ``base_revision`` is the
        revision the expert has seen; None takes whatever is the newest.

        In a case about fields ``corrected_fields`` has, by a field's name (or its key, ``2.wages_tips``, if several
        forms have one), the value as text, None for a field that is not there, or ``{"value": …, "status": …}`` with
        status ``found``, ``not_present`` or ``ambiguous``; ``vouched`` names fields, and defaults to all of them, or to
        the corrected ones.

        In a case about a statement template ``corrected_template`` is one, or its TOML text. If its sums are not met on the
        statement that the case shows, ``unmet_sums`` explains why it may be approved all the same. ``undeterminable``
        rejects it.

        No claim is needed. If another reviewer has the case open in the workbench, saving on whatever is the newest is
        refused (CaseTaken). With the ``base_revision`` that was seen, it is saved, and the other learns it on submitting.

        NotFound for an unknown case; ReviewRefused if the review is not valid; ReviewConflict if another one was saved
        since ``base_revision``, or the document was run anew since its packet was loaded here. Nothing is written then.
        """
        submission = Submission(
            agrees=agrees,
            corrections=(
                ClassificationCorrection(corrected_dominant_type, corrected_segments, corrected_mixture),
                FieldsCorrection(corrected_fields),
                TemplateCorrection(corrected_template, unmet_sums.strip()),
            ),
            correction_notes=correction_notes,
            issue_verdicts=issue_verdicts,
            undeterminable=undeterminable,
            vouched=vouched,
            seconds_active=seconds_active,
            pages_seen=pages_seen,
            evidence_seen=evidence_seen,
            shown=shown,
            segment_flags=segment_flags,
        )
        require_savable = self._require_not_taken if base_revision is None else self._require_packet_unchanged
        loaded_case = self._submitter.load_case(case_id)
        return self._submitter.submit_review(
            loaded_case, submission, base_revision=base_revision, require_savable=partial(require_savable, case_id)
        )

    def reopen(self, case_id: str, reason: str, *, base_revision: int | None = None) -> Review:
        """Undo after submitting.

        The ground truth goes, the case waits again, the reviews stay. ReviewRefused without a reason or if the
        case is not closed; NotFound; ReviewConflict as in ``save_review``.
        """
        return self._submitter.reopen_case(case_id, reason, base_revision=base_revision)

    def _require_not_taken(self, case_id: str, packet_sha256: str, now: str) -> None:
        """CaseTaken if another reviewer has the case open.

        ReviewConflict as ``_require_packet_unchanged``.
        """
        self._require_packet_unchanged(case_id, packet_sha256, now)
        claim = self._index.claims.map_live_claims_by_case_id(now, case_id).get(case_id)
        if claim and claim.reviewer != self.reviewer:
            raise CaseTaken(claim.reviewer, claim.since, same_reviewer=False)

    def _require_packet_unchanged(self, case_id: str, packet_sha256: str, now: str) -> None:  # noqa: ARG002 - the hook's signature
        """ReviewConflict if the packet is not the one that was loaded.

        Nobody has seen it yet.
        """
        if self._loaded_digests.get(case_id, packet_sha256) != packet_sha256:
            raise ReviewConflict(
                f"case {case_id!r} was run anew since it was loaded here",
                code="REVIEW-CONFLICT",
                remedy="Load the packet again and look at what has changed before you save.",
            )
