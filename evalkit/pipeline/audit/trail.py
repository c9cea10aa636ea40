"""Audit trail: decisions, reviews, opened cases, purges and logged events.

It says who, when, and with which versions. One row per event.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

from evalkit.classification.document_result import DocumentResult
from evalkit.errors import EvalkitError
from evalkit.pipeline.event_log import hash_event_file, read_events
from evalkit.pipeline.purge import PurgeRecord, read_purge_records
from evalkit.pipeline.run_history import read_run_records
from evalkit.review.case_files import read_numbered_reviews, read_packet
from evalkit.review.ground_truth import Review, ReviewedAnswer, hash_review_file, is_simulated_reviewer
from evalkit.review.index_rebuild import open_index
from evalkit.review.kinds import CASE_KINDS
from evalkit.review.loaders import read_result
from evalkit.review.packet import SMEPacket, compute_packet_digest
from evalkit.review.roster import ReviewerRoster
from evalkit.store import RESULTS_FOLDER, REVIEWS_FOLDER, OutputFolder, packet_file_name
from evalkit.store.change_chain import compute_recorded_digest, find_newest_number
from evalkit.store.file_names import change_link_file_name

#: The columns of each event: no quote, note or word of a document, but file names may name a patient.
EVENT_COLUMNS = (
    "event",  # decided (by the arbiter), drawn (a case), reviewed, opened, purged, logged, registered (a reviewer), ran (a session of a run), chained
    "at",
    "who",  # a reviewer, or the model that answered
    "role",  # the reviewer's, at that time
    "is_simulated",
    "case_id",
    "doc_id",
    "document_sha256",
    "revision",
    "outcome",  # a decision of the arbiter, a review's outcome, or an event's kind
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

AuditEvent = dict[str, Any]


def list_audit_events_and_problems(output_folder: OutputFolder) -> tuple[list[AuditEvent], list[str]]:
    """List all events by time, and an error for each unreadable file.

    Columns ``EVENT_COLUMNS``; times are ISO 8601, UTC.
    """
    problems: list[str] = []
    with open_index(output_folder, read_only=True) as index:
        opened_events = [
            _create_event("opened", at=view.opened_at, who=view.reviewer, case_id=view.case_id)
            for view in index.view_log.list_all()
        ]
    events = [
        *_iterate_decision_events(output_folder, problems),
        *_iterate_draw_events(output_folder, problems),
        *_iterate_review_events(output_folder, problems),
        *opened_events,
    ]
    try:
        events += [
            event for record in read_purge_records(output_folder) for event in _iterate_purge_record_events(record)
        ]
        events += _iterate_logged_events(output_folder)
        events += _iterate_folder_events(output_folder)
        events += _iterate_run_events(output_folder)
    except EvalkitError as error:
        problems.append(str(error))
    return sorted(
        events,
        key=lambda audit_event: (str(audit_event["at"])[:19], audit_event["event"], audit_event["case_id"] or ""),
    ), problems


def _create_event(event_name: str, **columns: Any) -> AuditEvent:
    row = dict.fromkeys(EVENT_COLUMNS) | {"event": event_name, **columns}
    return row | {"is_simulated": is_simulated_reviewer(row["who"])}


def _iterate_decision_events(output_folder: OutputFolder, collected_problems: list[str]) -> Iterator[AuditEvent]:
    for name in output_folder.list_json_files(RESULTS_FOLDER):
        doc_id = PurePath(name).stem
        try:
            result = read_result(output_folder, doc_id)
        except EvalkitError as error:
            collected_problems.append(str(error))
            continue
        if isinstance(result, DocumentResult):
            summary = _summarise_answer("classification", result.classification)
            yield _create_event(
                "decided",
                at=result.times.get("finished_at"),
                who=result.model,
                case_id=doc_id,
                doc_id=doc_id,
                document_sha256=result.sha256,
                outcome=result.decision.value,
                machine_said=summary,
                decided=summary if result.decision.value == "AUTO_ACCEPT" else None,
                versions=_format_versions(
                    {"reader": result.reader, "fingerprint": result.fingerprint, **result.versions}
                ),
                sha256=compute_recorded_digest(name, output_folder.read_bytes(name)),
            )


def _iterate_draw_events(output_folder: OutputFolder, collected_problems: list[str]) -> Iterator[AuditEvent]:
    """Yield the documents drawn for a person, with reason and probability."""
    for name in output_folder.list_json_files(RESULTS_FOLDER):
        doc_id = PurePath(name).stem
        if not output_folder.has_file(packet_file_name(doc_id)):
            continue
        try:
            packet = read_packet(output_folder, doc_id)
            yield _create_event(
                "drawn",
                at=packet.created_at,
                case_id=doc_id,
                doc_id=doc_id,
                document_sha256=read_result(output_folder, doc_id).sha256,
                outcome=f"probability {packet.inclusion_probability}",
                review_reason=packet.review_reason,
                packet_sha256=compute_packet_digest(packet),
            )
        except EvalkitError as error:
            collected_problems.append(str(error))


def _iterate_folder_events(output_folder: OutputFolder) -> Iterator[AuditEvent]:
    """Yield the reviewers with hashed codes, and the newest link of the chain."""
    for name, code_digest in sorted(ReviewerRoster(output_folder).read_code_digests().items()):
        yield _create_event("registered", who=name, sha256=hashlib.sha256(code_digest.encode()).hexdigest())
    if number := find_newest_number(output_folder):
        name = change_link_file_name(number)
        yield _create_event(
            "chained", revision=number, sha256=compute_recorded_digest(name, output_folder.read_bytes(name))
        )


def _iterate_run_events(output_folder: OutputFolder) -> Iterator[AuditEvent]:
    """Yield the finished sessions of runs, which nothing changes later."""
    for record in read_run_records(output_folder):
        for session in (session for session in record.sessions if session.is_finished):
            yield _create_event(
                "ran",
                at=session.times["started_at"],
                outcome=record.name,
                versions=_format_versions(record.settings.get("versions", {})),
                sha256=session.compute_digest(),
            )


def _iterate_review_events(output_folder: OutputFolder, collected_problems: list[str]) -> Iterator[AuditEvent]:
    for case_id in output_folder.list_subfolder_names(REVIEWS_FOLDER):
        try:
            packet = read_packet(output_folder, case_id)
            for revision, review in read_numbered_reviews(output_folder, case_id):
                yield _create_review_event(packet, revision, review, hash_review_file(output_folder, case_id, revision))
        except EvalkitError as error:
            collected_problems.append(str(error))
        except (ValueError, TypeError, LookupError, AttributeError):  # the packet of another kind of case
            collected_problems.append(f"{packet_file_name(case_id)} contradicts the reviews of its case")


def _create_review_event(packet: SMEPacket, revision: int, review: Review, sha256: str) -> AuditEvent:
    return _create_event(
        "reviewed",
        at=review.submitted_at,
        who=review.reviewer,
        role=review.role,
        case_id=packet.case_id,
        doc_id=packet.doc_id,
        revision=revision,
        outcome=review.outcome,
        machine_said=_summarise_answer(packet.kind, review.before),
        decided=_summarise_answer(packet.kind, review.after),
        seconds_active=review.seconds_active,
        review_reason=packet.review_reason,
        vouched=" ".join(review.vouched),
        is_seeded=review.seeded,
        versions=_format_versions(review.versions),
        packet_sha256=review.packet_sha256,
        sha256=sha256,
        prev_sha256=review.prev_sha256,
    )


def _iterate_purge_record_events(record: PurgeRecord) -> Iterator[AuditEvent]:
    yield _create_event("purged", at=record.purged_at, document_sha256=record.sha256)
    for chain in record.chains:
        for review in chain.reviews:
            yield _create_event(
                "reviewed",
                at=review.submitted_at,
                who=review.reviewer,
                role=review.role,
                case_id=f"{record.sha256 or 'unread'}{chain.case}",
                document_sha256=record.sha256,
                revision=review.revision,
                outcome=review.outcome,
                seconds_active=review.seconds_active,
                is_seeded=review.seeded,
                versions=_format_versions(review.versions),
                packet_sha256=review.packet_sha256,
                sha256=review.sha256,
                prev_sha256=review.prev_sha256,
            )


def _iterate_logged_events(output_folder: OutputFolder) -> Iterator[AuditEvent]:
    for number, event in enumerate(read_events(output_folder), 1):
        yield _create_event(
            "logged",
            at=event.recorded_at,
            who=event.recorded_by,
            revision=number,
            outcome=event.kind,
            decided=event.stratum or None,
            versions="; ".join(f"{name} {value}" for name, value in sorted(event.facts.items())),
            sha256=hash_event_file(output_folder, number),
            prev_sha256=event.prev_sha256,
        )


def _summarise_answer(kind: str, answer: ReviewedAnswer | None) -> str | None:
    """Summarise an answer: the document's type, number of fields, or template."""
    return None if answer is None else CASE_KINDS[kind].summarise_answer(answer)


def _format_versions(versions: Mapping[str, Any]) -> str:
    """Format versions as ``evalkit 0.1.0; types 1``."""
    return "; ".join(
        f"{name} {version}" for name, version in sorted(versions.items()) if isinstance(version, str | int)
    )
