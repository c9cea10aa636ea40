"""Decisions: who decided what, when, with which versions; who opened what; what was purged. One row an event."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any

from evalkit.batch.purge import PurgeRecord, records
from evalkit.classification.result import DocumentResult
from evalkit.classification.schema import ClassificationOutput
from evalkit.errors import EvalkitError
from evalkit.review.ground_truth import Answered, Review, is_simulated, numbered, review_sha256
from evalkit.review.packet import SMEPacket, read_packet
from evalkit.review.stored import read_result
from evalkit.statements.template import StatementTemplate
from evalkit.store import RESULTS, REVIEWS, Files, Index

#: What is said of each event. No quote, note or word of a document is among it, but names of files may tell a patient.
COLUMNS = (
    "event",  # decided (by the arbiter), reviewed, opened, purged
    "at",
    "who",  # a reviewer, or the model whose answer was decided about
    "role",  # of a reviewer, when they decided
    "is_simulated",
    "case_id",
    "doc_id",
    "document_sha256",
    "revision",
    "outcome",  # a decision of the arbiter, or a review's outcome
    "machine_said",
    "decided",
    "seconds_active",
    "review_reason",
    "vouched",
    "is_seeded",
    "versions",
    "packet_sha256",
    "sha256",
    "prev_sha256",
)

Event = dict[str, Any]


def decisions(output: Path | str) -> tuple[list[Event], list[str]]:
    """The events by time (columns ``COLUMNS``; times ISO 8601, UTC), and a sentence for each file that cannot be read."""
    files, problems = Files(output), list[str]()
    with Index(output) as index:
        opened = [
            _event("opened", at=one.opened_at, who=one.reviewer, case_id=one.case_id) for one in index.views.all()
        ]
    events = [*_machines(files, problems), *_experts(files, problems), *opened]
    try:
        events += [event for record in records(files) for event in _purged(record)]
    except EvalkitError as error:
        problems.append(str(error))
    return sorted(events, key=lambda one: (str(one["at"])[:19], one["event"], one["case_id"] or "")), problems


def _event(event: str, **said: Any) -> Event:
    row = dict.fromkeys(COLUMNS) | {"event": event, **said}
    return row | {"is_simulated": is_simulated(row["who"])}


def _machines(files: Files, problems: list[str]) -> Iterator[Event]:
    for name in files.names(RESULTS):
        doc_id = PurePath(name).stem
        try:
            result = read_result(files, doc_id)
        except EvalkitError as error:
            problems.append(str(error))
            continue
        if isinstance(result, DocumentResult):
            said = _said(result.classification)
            yield _event(
                "decided",
                at=result.times.get("finished_at"),
                who=result.model,
                case_id=doc_id,
                doc_id=doc_id,
                document_sha256=result.sha256,
                outcome=result.decision.value,
                machine_said=said,
                decided=said if result.decision.value == "AUTO_ACCEPT" else None,
                versions=_flat({"reader": result.reader, "fingerprint": result.fingerprint, **result.versions}),
            )


def _experts(files: Files, problems: list[str]) -> Iterator[Event]:
    for case_id in files.folders(REVIEWS):
        try:
            packet = read_packet(files, case_id)
            for revision, review in numbered(files, case_id):
                yield _reviewed(packet, revision, review, review_sha256(files, case_id, revision))
        except EvalkitError as error:
            problems.append(str(error))


def _reviewed(packet: SMEPacket, revision: int, review: Review, sha256: str) -> Event:
    return _event(
        "reviewed",
        at=review.submitted_at,
        who=review.reviewer,
        role=review.role,
        case_id=packet.case_id,
        doc_id=packet.doc_id,
        revision=revision,
        outcome=review.outcome,
        machine_said=_said(review.before),
        decided=_said(review.after),
        seconds_active=review.seconds_active,
        review_reason=packet.review_reason,
        vouched=" ".join(review.vouched),
        is_seeded=review.seeded,
        versions=_flat(review.versions),
        packet_sha256=review.packet_sha256,
        sha256=sha256,
        prev_sha256=review.prev_sha256,
    )


def _purged(record: PurgeRecord) -> Iterator[Event]:
    """The purge itself, and what its record kept of reviews."""
    yield _event("purged", at=record.purged_at, document_sha256=record.sha256)
    for chain in record.chains:
        for one in chain.reviews:
            yield _event(
                "reviewed",
                at=one.submitted_at,
                who=one.reviewer,
                role=one.role,
                case_id=f"{record.sha256 or 'unread'}{chain.case}",
                document_sha256=record.sha256,
                revision=one.revision,
                outcome=one.outcome,
                seconds_active=one.seconds_active,
                is_seeded=one.seeded,
                versions=_flat(one.versions),
                packet_sha256=one.packet_sha256,
                sha256=one.sha256,
                prev_sha256=one.prev_sha256,
            )


def _said(answer: Answered | None) -> str | None:
    """An answer in a word or two: the type of the whole document, how many fields there are, which template."""
    if answer is None:
        return None
    if isinstance(answer, ClassificationOutput):
        return answer.dominant_type_overall or "cannot tell"
    if isinstance(answer, StatementTemplate):
        return f"template, version {answer.version}"
    return f"{sum(len(form.fields) for form in answer)} fields"


def _flat(versions: Mapping[str, Any]) -> str:
    """``evalkit 0.1.0; types 1``."""
    return "; ".join(f"{name} {value}" for name, value in sorted(versions.items()) if isinstance(value, str | int))
