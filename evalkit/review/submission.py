"""A submission: an expert's decision, before it is checked and saved.

``Submission`` has the fields that all kinds of case share; a subclass of ``Correction`` has those of one kind.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError, model_validator

from evalkit.core.records import DiscreetModel, describe_first_error
from evalkit.errors import ReviewRefused
from evalkit.review.draft import FLAG_KINDS, FlagKind
from evalkit.review.ground_truth import ImportedAnswer, IssueVerdict, ReviewOutcome, ShownMachineAnswers
from evalkit.review.packet import SMEPacket

_VERDICTS_ADAPTER = TypeAdapter(tuple[IssueVerdict, ...], config=DiscreetModel.model_config)


class _SegmentFlagInput(DiscreetModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    segment_index: int
    start_page: int | None = None
    end_page: int | None = None
    flag: FlagKind | None = None
    note: str | None = None

    @model_validator(mode="after")
    def _require_flag_or_note(self) -> Self:
        if self.flag is None and not (self.note or "").strip():
            raise ValueError("a flag or a note is required")
        return self


_FLAGS_ADAPTER = TypeAdapter(tuple[_SegmentFlagInput, ...], config=DiscreetModel.model_config)


@dataclass(frozen=True)
class Correction:
    """Base class of corrections, one subclass per kind of case.

    An instance that is created without arguments corrects nothing.
    """

    @property
    def is_given(self) -> bool:
        """True if any field differs from its default."""
        return self != type(self)()

    @property
    def is_change(self) -> bool:
        """True if the correction changes the agent's answer."""
        return self.is_given


CorrectionT = TypeVar("CorrectionT", bound=Correction)


@dataclass(frozen=True)
class Submission:
    """An expert's decision about a case.

    All fields but ``corrections``, ``imported`` and ``second_opinion`` are explained at ``SMEReviewHelper.save_review``.
    """

    agrees: bool | None = None
    corrections: tuple[Correction, ...] = ()
    """At most one correction per kind of case; only the one of this case's kind may be filled in."""
    correction_notes: str = ""
    issue_verdicts: Iterable[IssueVerdict | Mapping[str, Any]] = ()
    undeterminable: str | None = None
    vouched: Iterable[str] | None = None
    seconds_active: float | None = None
    pages_seen: Iterable[int] = ()
    evidence_seen: Iterable[str] = ()
    shown: ShownMachineAnswers | None = None
    segment_flags: Iterable[Mapping[str, Any]] = ()
    imported: ImportedAnswer | None = None
    """The origin of an answer that was given in another tool."""
    second_opinion: str = ""
    """The reason for a second opinion; only ``ReviewSession`` and an import set it. Empty if none is asked for."""
    asks_about_contradictions: bool = False
    """True if an answer that the reviewer's own verdict denies is refused; the screen asks before it submits."""

    def get_correction(self, correction_class: type[CorrectionT]) -> CorrectionT:
        """Get the correction of this class; an empty correction if none was given."""
        return next((part for part in self.corrections if isinstance(part, correction_class)), correction_class())


def derive_outcome(submission: Submission) -> ReviewOutcome:
    """Derive the outcome of a submission: validated, corrected or undeterminable.

    ReviewRefused if the submission decides nothing, or more than one of these, or is undeterminable without a reason.
    """
    outcomes: list[ReviewOutcome] = []
    if submission.agrees:
        outcomes.append("validated")
    if any(correction.is_change for correction in submission.corrections):
        outcomes.append("corrected")
    if submission.undeterminable is not None:
        outcomes.append("undeterminable")
    if len(outcomes) != 1:
        problem = f"a review cannot be both {' and '.join(outcomes)}" if outcomes else "the review contains no decision"
        raise build_incomplete_review_error(
            problem, "Give exactly one of agrees=True, corrected_…, or undeterminable with a reason."
        )
    if submission.undeterminable is not None and not submission.undeterminable.strip():
        raise build_incomplete_review_error(
            "undeterminable was given without a reason",
            "Say why nobody can tell the right answer, for example 'illegible scan'.",
        )
    return outcomes[0]


def parse_verdicts(
    packet: SMEPacket, raw_verdicts: Iterable[IssueVerdict | Mapping[str, Any]]
) -> tuple[IssueVerdict, ...]:
    """Check an expert's verdicts on a case's issues, and convert them to records.

    ReviewRefused if a verdict has another shape or names an unknown issue, or if an issue has two verdicts.
    """
    shape_hint = "Each issue verdict is a dict with issue_id (from packet.issues), verdict (confirmed or dismissed) and optionally note."
    try:
        verdicts = _VERDICTS_ADAPTER.validate_python(tuple(raw_verdicts))
    except ValidationError as error:
        raise build_incomplete_review_error(describe_first_error(error, "issue_verdicts"), shape_hint) from None
    known_ids = {issue.issue_id for issue in packet.with_asked_questions().issues}
    judged_ids = [verdict.issue_id for verdict in verdicts]
    if unknown_ids := [issue_id for issue_id in judged_ids if issue_id not in known_ids]:
        raise build_incomplete_review_error(f"case {packet.case_id!r} has no issue {unknown_ids[0]!r}", shape_hint)
    if len(set(judged_ids)) < len(judged_ids):
        raise build_incomplete_review_error("issue_verdicts contains two verdicts on the same issue", shape_hint)
    return verdicts


def parse_segment_flags(
    raw_flags: Iterable[Mapping[str, Any]], page_ranges: Iterable[tuple[int, int]], total_pages: int
) -> tuple[dict[str, Any], ...]:
    """Parse remarks about segments, and add to each the pages of its segment.

    ``page_ranges`` are the first and last pages of the segments in the reviewed answer; if there are none, each remark must
    name its pages. ReviewRefused if a remark has another shape or names a segment that does not exist.
    """
    shape_hint = (
        "Each segment flag is a dict with segment_index (from 1, in page order), flag "
        f"({', '.join(FLAG_KINDS)}) or note, and start_page and end_page if the review has no segments."
    )
    try:
        flag_inputs = _FLAGS_ADAPTER.validate_python(tuple(raw_flags))
    except ValidationError as error:
        raise build_incomplete_review_error(describe_first_error(error, "segment_flags"), shape_hint) from None
    ranges_by_index = dict(enumerate(page_ranges, 1))
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
            raise build_incomplete_review_error(
                f"segment_flags.{position}: the review has no segment with this number and these pages", shape_hint
            )
        rows.append(segment_row.model_dump(exclude_none=True) | {"start_page": start_page, "end_page": end_page})
    return tuple(rows)


def build_incomplete_review_error(message: str, remedy: str) -> ReviewRefused:
    """Build the ReviewRefused error for an incomplete or contradictory review."""
    return ReviewRefused(message, code="REVIEW-INCOMPLETE", remedy=remedy)
