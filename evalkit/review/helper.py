"""SMEReviewHelper: the calls that a notebook needs.

Source: specification 000, slide 10: list pending cases, load a packet, look at an issue in its context, save a review.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pydantic import TypeAdapter, ValidationError

from evalkit.classification.autofix import Repair
from evalkit.classification.schema import ClassificationOutput, type_definitions
from evalkit.documents.bundle import SCHEMA_VERSION as BUNDLE_VERSION
from evalkit.documents.bundle import DocumentBundle
from evalkit.errors import ReviewRefused, StoreError, UsageError
from evalkit.review.context import IssueContext, issue_context
from evalkit.review.corrections import PARTS, Part, corrected, given_parts, validated
from evalkit.review.ground_truth import (
    IssueVerdict,
    Outcome,
    Review,
    Shown,
    append,
    newest_revision,
    reviews,
    settle,
)
from evalkit.review.lock import writing
from evalkit.review.packet import SMEPacket, case_row, packet_digest, read_packet
from evalkit.review.queue import pending, review_status
from evalkit.store import CASE_COLUMNS, Files, Index

if TYPE_CHECKING:
    import pandas as pd

_VERDICTS = TypeAdapter(tuple[IssueVerdict, ...])

#: What a validation stands for, unless it is said.
VALIDATED_PARTS: tuple[Part, ...] = ("dominant_type", "segments")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _versions() -> dict[str, str]:
    try:
        installed = importlib.metadata.version("evalkit")
    except importlib.metadata.PackageNotFoundError:  # run from a checkout that was never installed
        installed = "source"
    return {"evalkit": installed, "types": str(type_definitions()["version"])}


class SMEReviewHelper:
    """One expert at work on one output folder. Needs no roster."""

    def __init__(self, output: Path | str, reviewer: str, *, clock: Callable[[], str] = _now) -> None:
        """``output`` is the folder of a run, ``reviewer`` a name that is not empty; ``clock`` gives ISO 8601 in UTC.

        UsageError where the name is empty or there is no such folder.
        """
        if not reviewer.strip():
            raise UsageError(
                "the reviewer has no name", code="REVIEWER-NAME", remedy="Give reviewer='dr_lee' or the like."
            )
        if not Path(output).is_dir():
            raise UsageError(
                f"there is no output folder {str(output)!r}",
                code="OUTPUT-FOLDER",
                remedy="Name the folder of a run, or make one with `evalkit run`.",
            )
        self.reviewer = reviewer.strip()
        self._clock = clock
        self._files = Files(output)
        self._index = Index(output)

    def close(self) -> None:
        """Give the index back."""
        self._index.close()

    def list_pending_reviews(self) -> pd.DataFrame:
        """The cases that wait, strictly worst first: blocker, major, minor (counts of open issues), then case_id."""
        import pandas as pd

        return pd.DataFrame(pending(self._index), columns=list(CASE_COLUMNS))

    def load_packet(self, case_id: str) -> SMEPacket:
        """The packet of a case. NotFound, naming it, if there is none."""
        return read_packet(self._files, case_id)

    def get_issue_context(self, packet: SMEPacket, issue_id: str) -> IssueContext:
        """One of the packet's issues with its segment, evidence and the document's text around it. NotFound."""
        return issue_context(packet, issue_id, self._bundle(packet))

    def reviews(self, case_id: str) -> list[Review]:
        """What was submitted about a case, oldest first. NotFound if there is no such case."""
        self.load_packet(case_id)
        return reviews(self._files, case_id)

    def revision(self, case_id: str) -> int:
        """The number of a case's newest review, 0 before the first: what ``base_revision`` is compared with."""
        self.load_packet(case_id)
        return newest_revision(self._files, case_id)

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
        vouched: Iterable[str] | None = None,
        seconds_active: float | None = None,
        pages_seen: Iterable[int] = (),
        evidence_seen: Iterable[str] = (),
        shown: Shown | None = None,
        segment_flags: Iterable[Mapping[str, Any]] = (),
        base_revision: int | None = None,
    ) -> Review:
        """Submit a review: exactly one of ``agrees=True``, any ``corrected_…``, or ``undeterminable`` (a reason).

        ``corrected_segments`` are dicts with ``start_page``, ``end_page``, ``dominant_type`` and perhaps
        ``segment_composition``; ``issue_verdicts`` dicts with ``issue_id``, ``verdict`` (confirmed or dismissed) and
        perhaps ``note``. ``vouched`` defaults to type and segments, or to the corrected parts (segments bring their
        type with them). ``base_revision`` is the revision the expert has seen; None takes whatever is the newest.

        NotFound for a case that is not there; ReviewRefused where the review cannot stand; ReviewConflict where
        another one was saved since ``base_revision``. In each case nothing was written.
        """
        parts = given_parts(corrected_dominant_type, corrected_segments, corrected_mixture)
        outcome = _outcome(agrees, parts, undeterminable)
        stands_for = _vouched(vouched, outcome, parts)
        bundle = self._bundle(self.load_packet(case_id))
        with writing(self._files):
            packet = self.load_packet(case_id)
            after: ClassificationOutput | None = None
            repairs: list[Repair] = []
            if outcome == "validated":
                after, repairs = validated(packet.classification, packet.open_issues, bundle, stands_for)
            elif outcome == "corrected":
                after = corrected(
                    packet.classification,
                    bundle,
                    dominant_type=corrected_dominant_type,
                    segments=corrected_segments,
                    mixture=corrected_mixture,
                    vouched=stands_for,
                )
            return self._save(
                packet,
                base_revision,
                seconds_active=seconds_active,
                outcome=outcome,
                after=after,
                repairs_applied=tuple(repairs),
                correction_notes="\n".join(filter(None, [(undeterminable or "").strip(), correction_notes])),
                issue_verdicts=_verdicts(packet, issue_verdicts),
                vouched=stands_for,
                pages_seen=tuple(pages_seen),
                evidence_seen=tuple(evidence_seen),
                shown=shown or Shown(),
                segment_flags=tuple(dict(flag) for flag in segment_flags),
            )

    def reopen(self, case_id: str, reason: str, *, base_revision: int | None = None) -> Review:
        """Undo after submitting: the ground truth goes, the case waits again, the reviews stay.

        ReviewRefused without a reason or where the case is not closed; NotFound; ReviewConflict as in ``save_review``.
        """
        if not reason.strip():
            raise _refused("reopening needs a reason", "Say why the review cannot stand.")
        with writing(self._files):
            packet = self.load_packet(case_id)
            if review_status(self._files, case_id) != "completed":
                raise _refused(f"case {case_id!r} is not closed, so there is nothing to undo", "Save a review instead.")
            return self._save(
                packet,
                base_revision,
                seconds_active=None,
                outcome="reopened",
                after=None,
                correction_notes=reason.strip(),
            )

    def _save(self, packet: SMEPacket, base_revision: int | None, **said: Any) -> Review:
        """Write the review and what follows from it; the lock is held."""
        base = newest_revision(self._files, packet.case_id) if base_revision is None else base_revision
        review = append(self._files, packet.case_id, self._review(packet, said), base_revision=base)
        # From here on the review stands; should anything fail now, `evalkit reindex` catches up.
        status = settle(self._files, packet.case_id)
        self._index.put_case(case_row(packet, status))
        return review

    def _review(self, packet: SMEPacket, said: Mapping[str, Any]) -> Review:
        try:
            return Review(
                reviewer=self.reviewer,
                submitted_at=self._clock(),
                before=packet.classification,
                packet_sha256=packet_digest(packet),
                versions=_versions(),
                **said,
            )
        except ValidationError as error:
            raise _misshapen("", error, "See save_review's documentation.") from None

    def _bundle(self, packet: SMEPacket) -> DocumentBundle:
        name = packet.document_bundle_path
        try:
            return DocumentBundle.model_validate(self._files.read(name, schema_version=BUNDLE_VERSION))
        except ValidationError:
            # Without the cause: pydantic's message would quote the patient's document.
            raise StoreError(
                f"{name} does not have the shape of a bundle", code="STORE-TORN", remedy="Run the document again."
            ) from None


def _outcome(agrees: bool | None, parts: Sequence[Part], undeterminable: str | None) -> Outcome:
    said: list[Outcome] = []
    if agrees:
        said.append("validated")
    if parts:
        said.append("corrected")
    if undeterminable is not None:
        said.append("undeterminable")
    if len(said) != 1:
        fault = f"a review cannot be {' and '.join(said)} at once" if said else "the review decides nothing"
        raise _refused(fault, "Give exactly one of agrees=True, corrected_…, or undeterminable with a reason.")
    if undeterminable is not None and not undeterminable.strip():
        raise _refused("undeterminable has no reason", "Say why nobody can tell, such as 'illegible scan'.")
    return said[0]


def _vouched(given: Iterable[str] | None, outcome: Outcome, parts: Sequence[Part]) -> tuple[Part, ...]:
    """The parts that the expert stands for, in the order of ``PARTS``."""
    words: set[Part]
    if outcome == "undeterminable":
        words = set()
    elif given is None:
        # Segments say the document's type, too: it is the one of most pages.
        implied: Sequence[Part] = ("dominant_type",) if "segments" in parts else ()
        words = set(VALIDATED_PARTS) if outcome == "validated" else {*parts, *implied}
    else:
        words = cast("set[Part]", set(given))
    if unknown := words - set(PARTS):
        raise _refused(f"{sorted(unknown)!r} cannot be vouched for", f"The parts are {', '.join(PARTS)}.")
    return tuple(part for part in PARTS if part in words)


def _verdicts(packet: SMEPacket, given: Iterable[IssueVerdict | Mapping[str, Any]]) -> tuple[IssueVerdict, ...]:
    shape = "Each is a dict with issue_id (one of the packet's), verdict (confirmed or dismissed) and perhaps note."
    try:
        verdicts = _VERDICTS.validate_python(tuple(given))
    except ValidationError as error:
        raise _misshapen("issue_verdicts", error, shape) from None
    known = {issue.issue_id for issue in packet.issues}
    named = [verdict.issue_id for verdict in verdicts]
    if unknown := [name for name in named if name not in known]:
        raise _refused(f"case {packet.case_id!r} has no issue {unknown[0]!r}", shape)
    if len(set(named)) < len(named):
        raise _refused("an issue has two verdicts", shape)
    return verdicts


def _misshapen(where: str, error: ValidationError, remedy: str) -> ReviewRefused:
    """The first fault, without the value, which may be a patient's."""
    first = error.errors(include_url=False, include_input=False)[0]
    at = ".".join([*([where] if where else []), *(str(step) for step in first["loc"])])
    return _refused(f"{at}: {first['msg']}", remedy)


def _refused(message: str, remedy: str) -> ReviewRefused:
    return ReviewRefused(message, code="REVIEW-INCOMPLETE", remedy=remedy)
