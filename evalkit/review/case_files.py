"""Files of a case: read packets and reviews; add and withdraw packets."""

import re
from collections.abc import (
    Callable,
    Iterable,
    Iterator,
    Mapping,
)
from datetime import (
    datetime,
)
from typing import (
    Any,
)

from evalkit.classification.schema import (
    ClassificationOutput,
)
from evalkit.core.clocks import (
    format_iso_seconds,
    utc_now,
)
from evalkit.core.document_cache import cache_document_text
from evalkit.core.gc_pause import (
    pause_gc,
)
from evalkit.core.grouping import (
    group_pairs,
)
from evalkit.documents.bundle import (
    DocumentBundle,
)
from evalkit.errors import (
    NotFound,
    StoreError,
)
from evalkit.issue import (
    IssueSeverity,
)
from evalkit.review.ground_truth import SCHEMA_VERSION as REVIEW_VERSION
from evalkit.review.ground_truth import (
    Review,
    derive_review_status,
    find_newest_revision,
    list_revisions,
    read_json_unless_missing_or_torn,
)
from evalkit.review.kinds import (
    CASE_KINDS,
    find_case_kind,
    get_packet_class,
)
from evalkit.review.kinds.classification import (
    ClassificationPacket,
)
from evalkit.review.kinds.extraction import (
    ExtractionPacket,
)
from evalkit.review.kinds.statement_template import (
    TemplatePacket,
)
from evalkit.review.loaders import (
    read_bundle,
    require_own_id,
)
from evalkit.review.packet import (
    SCHEMA_VERSION,
    ReviewStatus,
    SMEPacket,
    is_packet_frozen,
    omit_keys,
    serialise_packet,
    write_packet_status,
)
from evalkit.review.review_plan import (
    ReviewCosts,
)
from evalkit.review.write_lock import (
    hold_case_write_lock,
)
from evalkit.store import (
    OutputFolder,
    OutputIndex,
    packet_file_name,
    parse_stored_json,
    parse_stored_record,
    review_file_name,
)

#: Prefix of the codes of issues that ask to which patient pages belong; also their value in the queue's filter "agent".
PATIENT_QUESTIONS = "V2-PATIENT"
_CASE_ID_PATTERN = re.compile(r"[A-Za-z0-9_-]+(\.[a-z_]+)*")


def read_packet(output_folder: OutputFolder, case_id: str) -> SMEPacket:
    """Read the file that holds a case for experts (its packet).

    NotFound if no case has this id; StoreError if the packet's file is damaged.
    """
    not_found_error = NotFound(
        f"there is no case {case_id!r}",
        code="CASE-NOT-FOUND",
        remedy="list_pending_reviews() lists the open cases; a case for a new document is created by `evalkit run`.",
    )
    if not _CASE_ID_PATTERN.fullmatch(case_id):  # a name, never a path
        raise not_found_error
    name = packet_file_name(case_id)
    try:
        packet = _parse_packet_file(name, output_folder.read_bytes(name))
    except NotFound as error:
        raise not_found_error from error
    return require_own_id(packet, "case_id", case_id, name)


@cache_document_text(4)
def _parse_packet_file(name: str, raw_bytes: bytes) -> SMEPacket:
    """Parse the bytes of a packet's file.

    Cached, because saving a review reads the same bytes several times to make sure that they have not changed.
    """
    stored = parse_stored_json(name, raw_bytes, max_schema_version=SCHEMA_VERSION)
    return parse_stored_record(get_packet_class(stored), stored, name, "Run the document again.")


def read_packet_bundle(output_folder: OutputFolder, packet: SMEPacket) -> DocumentBundle:
    """Read the text of the document whose pages a case shows.

    NotFound if the document's file is gone; StoreError if it is damaged.
    """
    with pause_gc():
        return read_bundle(output_folder, packet.bundle_doc_id)


def read_review(output_folder: OutputFolder, case_id: str, revision: int) -> Review:
    """Read one review of a case. NotFound; StoreError if its file is damaged."""
    name = review_file_name(case_id, revision)
    stored = output_folder.read_json(name, max_schema_version=REVIEW_VERSION)
    return parse_stored_record(find_case_kind(case_id).review_class, stored, name, "Restore the file from a backup.")


def read_newest_review(output_folder: OutputFolder, case_id: str) -> Review | None:
    """Read the newest review of a case; None if it has none."""
    revision = find_newest_revision(output_folder, case_id)
    return read_review(output_folder, case_id, revision) if revision else None


def read_review_status(output_folder: OutputFolder, case_id: str) -> ReviewStatus:
    """Derive a case's status from its newest review.

    A reopened case is pending again; a case that was closed as undeterminable is completed.
    """
    return derive_review_status(read_newest_review(output_folder, case_id))


def read_numbered_reviews(output_folder: OutputFolder, case_id: str) -> list[tuple[int, Review]]:
    """Read a case's reviews with their numbers, oldest first."""
    return [(number, read_review(output_folder, case_id, number)) for number in list_revisions(output_folder, case_id)]


class SMEPacketGenerator:
    """Builder of case files (packets) of all three kinds; named by specification 000."""

    packet = staticmethod(ClassificationPacket.create)
    fields_packet = staticmethod(ExtractionPacket.create)
    template_packet = staticmethod(TemplatePacket.create)


def build_case_index_row(
    packet: SMEPacket, status: ReviewStatus, excluded_reviewers: Iterable[str] = ()
) -> dict[str, Any]:
    """Build a case's index row from its packet, the file that holds the case.

    The counts by severity and the agents are those of the open issues. ``excluded_reviewers`` must not answer the case.
    """
    counts = {
        severity.value.lower(): sum(issue.severity is severity for issue in packet.open_issues)
        for severity in IssueSeverity
    }
    agents = {issue.agent for issue in packet.open_issues}
    questions = {PATIENT_QUESTIONS for issue in packet.open_issues if issue.code.startswith(PATIENT_QUESTIONS)}
    return {
        "case_id": packet.case_id,
        "doc_id": packet.doc_id,
        "kind": packet.kind,
        "pdf_filename": packet.pdf_filename,
        "pages": packet.total_pages,
        **counts,
        "decision_reason": packet.asked_question,
        "review_reason": packet.review_reason,
        "review_status": status,
        "barred": ",".join(excluded_reviewers),
        "created_at": packet.created_at,
        "dominant_type": packet.indexed_type,
        "task": packet.task,
        "agents": ",".join(sorted(agents | questions)),
        "is_blind": packet.is_first_review_blind,
        "errors_per_minute": packet.errors_per_minute,
        "shows": packet.bundle_doc_id if packet.is_attention_check else "",
    }


def build_closing_row(case_id: str, review: Review, code_by_issue_id: Mapping[str, str]) -> dict[str, Any]:
    """Build the index row of a closed case: reviewer, time, duration, verdicts."""
    codes_by_verdict = group_pairs(
        (judged.verdict, code_by_issue_id[judged.issue_id])
        for judged in review.issue_verdicts
        if judged.issue_id in code_by_issue_id
    )
    return {
        "case_id": case_id,
        "reviewer": review.reviewer,
        "closed_at": review.submitted_at,
        "seconds_active": review.seconds_active,
        "pages_seen": len(review.pages_seen),
        "type_outcomes": ",".join(_list_type_outcomes(review)),
        **{verdict: ",".join(codes_by_verdict.get(verdict, ())) for verdict in ("confirmed", "dismissed")},
    }


def _list_type_outcomes(review: Review) -> Iterator[str]:
    """List the stated risk of each segment's type, and 1 if the reviewer changed it.

    Only of reviews that vouch for all segments.
    """
    before, after = review.before, review.after
    if not isinstance(before, ClassificationOutput) or not isinstance(after, ClassificationOutput):
        return
    for segment in before.segments if "segments" in review.vouched else ():
        confidences = (
            presence.confidence
            for presence in segment.segment_composition
            if presence.document_type is segment.dominant_type
        )
        true_types = (
            part.dominant_type for part in after.segments if part.start_page <= segment.start_page <= part.end_page
        )
        yield f"{1 - next(confidences, 0.0):.4f}:{int(next(true_types, None) is not segment.dominant_type)}"


def read_answering_model_name(output_folder: OutputFolder, packet: SMEPacket) -> str:
    """Read the name of the model that gave the agent's answer of a case.

    ``supplied`` if another system gave the answer; empty if unknown, also if the file that names the model is missing or
    damaged, because the queue must not fail for that reason.
    """
    try:
        return CASE_KINDS[packet.kind].read_answering_model_name(output_folder, packet.bundle_doc_id)
    except (StoreError, LookupError, TypeError, AttributeError):
        return ""


def publish_packet_unless_frozen(
    output_folder: OutputFolder,
    index: OutputIndex,
    packet: SMEPacket,
    *,
    costs: ReviewCosts | None = None,
    clock: Callable[[], datetime] = utc_now,
) -> bool:
    """Add a case to the queue; return True if its packet file was written.

    With ``costs``, the review is planned, unless the case is blind. A packet that an expert has begun to work on is not touched. If the stored packet differs only in ``created_at``, it is
    kept with its old time, and only the index row is written again. A deferred case stays deferred.
    """
    name = packet_file_name(packet.case_id)
    source = read_answering_model_name(output_folder, packet)
    if costs and not packet.is_first_review_blind:
        packet = packet.model_copy(update={"review_plan": packet.plan_review(costs, source)})
    with hold_case_write_lock(output_folder, packet.case_id):
        if is_packet_frozen(output_folder, index, packet.case_id, format_iso_seconds(clock())):
            return False
        status: ReviewStatus = "deferred" if index.deferrals.find(packet.case_id) else packet.review_status
        new_json = serialise_packet(packet) | {"review_status": status}
        # review_status may still mirror a claim that has expired.
        ignored_keys = ("created_at", "review_status")
        stored_json = read_json_unless_missing_or_torn(output_folder, name)
        is_different = stored_json is None or omit_keys(new_json, *ignored_keys) != omit_keys(
            stored_json, *ignored_keys
        )
        if stored_json and stored_json.get("doc_id") != packet.doc_id:
            # Old drafts are about another patient's document, and nothing else would remove them.
            index.drafts.remove(packet.case_id)
        if is_different:
            output_folder.write_json(name, new_json)
        else:
            write_packet_status(output_folder, packet.case_id, status)
        index.upsert_case({**build_case_index_row(packet, status), "source": source})
        return is_different


def withdraw_packet_unless_frozen(
    output_folder: OutputFolder, index: OutputIndex, case_id: str, *, clock: Callable[[], datetime] = utc_now
) -> bool:
    """Remove a case that a new run no longer escalates from the queue.

    Return True if a packet was removed. A packet that an expert has begun to work on is not removed.
    """
    with hold_case_write_lock(output_folder, case_id):
        if is_packet_frozen(output_folder, index, case_id, format_iso_seconds(clock())):
            return False
        if not find_case_kind(case_id).is_named_after_document:
            index.drafts.remove(case_id)  # a purge of the document would not find them
        is_removed = output_folder.remove_file(packet_file_name(case_id))
        index.remove_cases(case_id)
        return is_removed
