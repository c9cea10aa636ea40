"""Python interface for reviewing cases in a notebook: ``SMEReviewHelper``.

Source: specification 000, slide 10: list pending cases, load a packet, look at an issue in its context, save a review.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalkit.core.clocks import format_iso_seconds, utc_now
from evalkit.core.data_frames import TEXT, build_frame
from evalkit.core.document_cache import forget_document_texts, keep_results
from evalkit.errors import ReviewConflict, StoreError, UsageError
from evalkit.issue import Issue
from evalkit.review.case_files import read_packet, read_packet_bundle
from evalkit.review.claiming import reconcile_statuses_with_claims, require_not_taken
from evalkit.review.draft import ExpertQuote
from evalkit.review.ground_truth import IssueVerdict, Review, ShownMachineAnswers, find_newest_revision
from evalkit.review.index_rebuild import open_index
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
    open_output_folder,
    require_evalkit_output_folder,
)

if TYPE_CHECKING:
    import pandas as pd


def require_folder_and_get_reviewer_name(output_folder: OutputFolder, reviewer: str) -> str:
    """Strip a reviewer's name, and check that the folder is an output folder.

    UsageError if the name is empty, or if the folder is no output folder of a run.
    """
    if not reviewer.strip():
        raise UsageError(
            "the reviewer's name is empty",
            code="REVIEWER-NAME",
            remedy="Pass your name, for example reviewer='dr_lee'.",
        )
    require_evalkit_output_folder(output_folder)
    return reviewer.strip()


class SMEReviewHelper:
    """One reviewer's access to the cases of an output folder, without a login."""

    def __init__(self, output: Path | str, reviewer: str, *, clock: Callable[[], str] | None = None) -> None:
        """Open the output folder of a run and its database for the reviewer of this name.

        ``clock`` returns the time as ISO 8601 in UTC; None means the system's clock. The database is that of the settings.
        A folder that cannot be written is only read.
        UsageError if the name is empty, if ``output`` is no output folder, or if a setting is wrong; StoreError if folder or
        database cannot be opened.
        """
        from evalkit.settings import Settings  # imported only here, to keep the memory of an expert's screen small

        self._output_folder = open_output_folder(output, Settings.load().database)
        self.reviewer = require_folder_and_get_reviewer_name(self._output_folder, reviewer)
        self._clock: Callable[[], datetime] = (lambda: datetime.fromisoformat(clock())) if clock else utc_now
        try:
            self._index = open_index(self._output_folder)
        except StoreError as error:
            if error.code != "STORE-READ-ONLY":
                raise
            self._index = open_index(self._output_folder, read_only=True)
        self._loaded_digests: dict[str, str] = {}
        self._submitter = ReviewSubmitter(self._output_folder, self._index, self.reviewer, self._clock)

    def close(self) -> None:
        """Close the connection to the index."""
        self._index.close()
        forget_document_texts()

    def list_pending_reviews(self) -> pd.DataFrame:
        """List the open cases as a table, worst first.

        The order follows the numbers of open BLOCKER, MAJOR and MINOR issues, then case_id.
        """
        reconcile_statuses_with_claims(self._output_folder, self._index, format_iso_seconds(self._clock()))
        dtypes = dict.fromkeys(CASE_COLUMNS, TEXT) | dict.fromkeys(("pages", "blocker", "major", "minor"), "Int64")
        return build_frame(list_pending_cases_worst_first(self._index), dtypes, output=self._output_folder.root)

    def load_packet(self, case_id: str) -> SMEPacket:
        """Load a case as its packet; record reviewer and time in the view log.

        NotFound if there is no such case.
        """
        with hold_case_write_lock(self._output_folder, case_id):  # no purge between reading and the entry in the log
            packet = read_packet(self._output_folder, case_id)
            self._index.view_log.save(CaseView(case_id, self.reviewer, format_iso_seconds(self._clock())))
        self._loaded_digests[case_id] = compute_packet_digest(packet)
        return packet

    def get_issue_context(self, packet: SMEPacket, issue_id: Issue | str) -> IssueContext:
        """Get an issue of a case with its page range, evidence and the text around it.

        The issue itself may be passed instead of its id. NotFound if the packet has no such issue, or if the document's text
        is gone.
        """
        with keep_results():
            return build_issue_context(packet, issue_id, read_packet_bundle(self._output_folder, packet))

    def reviews(self, case_id: str) -> list[Review]:
        """List the reviews of a case that this reviewer may read, oldest first.

        These are only the reviewer's own while another expert's opinion is awaited. NotFound if there is no such case.
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
        quotes: Iterable[ExpertQuote] = (),
        anyway: bool = False,
        base_revision: int | None = None,
    ) -> Review:
        """Submit a review: ``agrees=True``, a ``corrected_…``, or ``undeterminable``.

        Exactly one of these three decisions must be given. Several ``corrected_…`` may be combined; ``undeterminable`` is the
        reason why nobody can tell.

        ``corrected_segments`` are dicts with ``start_page``, ``end_page``, ``dominant_type`` and optionally
        ``segment_composition``; ``issue_verdicts`` are dicts with ``issue_id``, ``verdict`` (confirmed or dismissed) and
        optionally ``note``. ``segment_flags`` are dicts with ``segment_index`` (the number of a segment of the reviewed
        answer in page order, from 1), ``flag`` (``other_patient``, ``duplicate`` or ``out_of_order``) or ``note`` or both,
        and optionally ``start_page`` and ``end_page``, which are required if the case is undeterminable. ``vouched`` defaults
        to type and segments for a validation, and to the corrected parts for a correction (corrected segments include the
        type). ``base_revision`` is the newest revision that the reviewer has seen; None means the newest one, seen or not.

        A confirmed issue about a quote strikes the quote, and a struck quote is no longer evidence. ``quotes`` are passages
        that the reviewer quotes instead: they make a validation a correction. If ``agrees`` or a correction leaves as it was
        what a confirmed issue denies, the review is refused (code REVIEW-CONTRADICTION) unless ``anyway``.

        In a case about fields, ``corrected_fields`` maps a field's name (or its key, such as ``2.wages_tips``, if several
        forms have the field) to the value as text, to None if the field is not present, or to ``{"value": …, "status": …}``
        with the status ``found``, ``not_present`` or ``ambiguous``. ``vouched`` names fields, and defaults to all fields for a
        validation and to the corrected fields for a correction.

        In a case about a statement template, ``corrected_template`` is the template or its TOML text. If the sums of the
        statement in the case do not add up, ``unmet_sums`` is the reason for approving the template all the same.
        ``undeterminable`` rejects the template.

        No claim is needed. If another reviewer has the case open in the workbench, a review without ``base_revision`` is
        refused (CaseTaken); a review with the newest ``base_revision`` is saved, and the other reviewer gets a conflict when
        submitting.

        NotFound if there is no such case; ReviewRefused if the review is not valid; ReviewConflict if another review was saved
        after ``base_revision``, or if the document was run again since this helper loaded the packet. Nothing is written
        then.
        """
        submission = Submission(
            agrees=agrees if not (own_quotes := tuple(quotes)) else None,
            corrections=(
                ClassificationCorrection(
                    corrected_dominant_type, corrected_segments, corrected_mixture, own_quotes or None
                ),
                FieldsCorrection(corrected_fields),
                TemplateCorrection(corrected_template, unmet_sums.strip()),
            ),
            correction_notes=correction_notes,
            issue_verdicts=issue_verdicts,
            undeterminable=undeterminable,
            vouched=None if vouched is None else tuple(vouched),
            seconds_active=seconds_active,
            pages_seen=pages_seen,
            evidence_seen=evidence_seen,
            shown=shown,
            segment_flags=segment_flags,
            asks_about_contradictions=not anyway,
        )
        require_savable = self._require_not_taken if base_revision is None else self._require_packet_unchanged
        loaded_case = self._submitter.load_case(case_id)
        with keep_results():
            return self._submitter.submit_review(
                loaded_case, submission, base_revision=base_revision, require_savable=partial(require_savable, case_id)
            )

    def reopen(self, case_id: str, reason: str, *, base_revision: int | None = None) -> Review:
        """Reopen a closed case: remove its ground truth and make it pending again.

        The earlier reviews are kept; the returned review records the reopening and its reason. ReviewRefused if the reason is
        blank or the case is not closed; NotFound; ReviewConflict as in ``save_review``.
        """
        return self._submitter.reopen_case(case_id, reason, base_revision=base_revision)

    def _require_not_taken(self, case_id: str, packet_sha256: str, now: str) -> None:
        """Raise CaseTaken if another reviewer has the case open.

        ReviewConflict as in ``_require_packet_unchanged``.
        """
        self._require_packet_unchanged(case_id, packet_sha256, now)
        require_not_taken(self._index, case_id, self.reviewer, now)

    def _require_packet_unchanged(self, case_id: str, packet_sha256: str, now: str) -> None:  # noqa: ARG002 - the hook's signature
        """Raise ReviewConflict if the packet was replaced since this helper loaded it."""
        if self._loaded_digests.get(case_id, packet_sha256) != packet_sha256:
            raise ReviewConflict(
                f"the document of case {case_id!r} was run again after you loaded the case",
                code="REVIEW-CONFLICT",
                remedy="Load the case again and check what has changed before you save.",
            )
