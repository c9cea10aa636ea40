"""Records of purges, and the plan of an unfinished purge."""

from typing import Literal

from evalkit.core.records import StrictRecord
from evalkit.review.permissions import ReviewerRole
from evalkit.store import (
    PURGE_INTENT_FILE,
    PURGE_RECORDS_FOLDER,
    OutputFolder,
    parse_stored_json,
    parse_stored_record,
    purge_record_file_name,
    read_numbered_records,
)

#: Version 2 has the reviewers' roles, version 3 what an audit found.
SCHEMA_VERSION = 3
AuditAnswer = Literal["not drawn", "right", "wrong", "unanswered"]


class PurgedReview(StrictRecord):
    """What a purge keeps of a review: hashes, reviewer, time and outcome."""

    revision: int
    sha256: str
    """The SHA-256 of the bytes of the review's file."""
    prev_sha256: str | None
    """The SHA-256 of the case's previous review, as this review's file states it; None for the first review, or if the
    file could not be read."""
    packet_sha256: str | None = None
    reviewer: str | None = None
    submitted_at: str | None = None
    outcome: str | None = None
    seconds_active: float | None = None
    versions: dict[str, str] = {}
    role: ReviewerRole | None = None
    """The reviewer's role at that time; None if it is not known."""
    seeded: bool = False
    """True if the reviewed case had a planted fault."""


class PurgedChain(StrictRecord):
    """What a purge keeps of all reviews of one case."""

    case: str
    """The case_id without the document's name: empty, ``.extraction``, ``.second``, ``-1a2b3c4d`` …"""
    reviews: tuple[PurgedReview, ...]


class PurgedDraw(StrictRecord):
    """Draw that could have selected the purged document, and its probability."""

    draw: int
    probability: float
    was_drawn: bool


class PurgedAnswer(StrictRecord):
    """Facts about a purged document for error rates, without its text."""

    decision: str
    stratum: tuple[str, str, str, str, str]
    """The parts of a ``StratumKey``, with the SHA-256 of the source folder's name in place of the name."""
    run_started_at: str
    decided_at: str
    probability: float | None
    """Probability (0..1) with which the document was drawn."""
    risk: float
    review_reason: str | None
    audit: AuditAnswer
    """What the blind answer said about the type."""
    is_type_right: bool | None
    """What the experts' last word says about the type; None if nobody vouched for it."""
    answered_at: str | None
    is_simulated: bool = False
    """True if a program answered."""


class PurgeRecord(StrictRecord):
    """Record of one purge, the file ``purged/NNNN.json``."""

    schema_version: int = SCHEMA_VERSION
    sha256: str | None
    """The SHA-256 of the document; None if its bytes never could be read."""
    purged_at: str
    """The time of the purge (ISO 8601, UTC)."""
    chains: tuple[PurgedChain, ...]
    draws: tuple[PurgedDraw, ...]
    answer: PurgedAnswer | None = None
    """None if the document had no readable answer, or if an older evalkit purged it."""
    prev_sha256: str | None
    """The SHA-256 of the bytes of the record before this one; None for the first."""


class PurgeIntent(StrictRecord):
    """Plan of an unfinished purge, stored as ``purging.json``.

    It is the only file that still names the documents, and is removed last.
    """

    schema_version: int = SCHEMA_VERSION
    doc_id: str | None
    """The document being purged; None if its files are deleted, and only the database's file is still to be rewritten."""
    sha256: str | None = None
    cases: tuple[str, ...] = ()
    number: int = 0
    """The number of the purge's record."""
    listed: tuple[str, ...] = ()
    """Documents whose files this purge has deleted; unless ``doc_id`` is None, labels and draws may still list them."""
    purged_at: str = ""
    answer: PurgedAnswer | None = None


def is_purge_unfinished(output_folder: OutputFolder) -> bool:
    """Return True if a purge was interrupted and is not finished yet."""
    return output_folder.has_file(PURGE_INTENT_FILE)


def read_intent(output_folder: OutputFolder) -> PurgeIntent:
    """Read the plan of an unfinished purge. StoreError if missing or damaged."""
    return parse_stored_record(
        PurgeIntent,
        output_folder.read_json(PURGE_INTENT_FILE, max_schema_version=SCHEMA_VERSION),
        PURGE_INTENT_FILE,
        "Remove it, and purge the document again.",
    )


def save_intent(output_folder: OutputFolder, intent: PurgeIntent) -> None:
    """Save the plan of a purge, before anything is removed."""
    output_folder.write_json(PURGE_INTENT_FILE, intent.model_dump(mode="json"))


def parse_purge_record(content: bytes) -> PurgeRecord:
    """Parse a purge record of another output folder. StoreError if damaged."""
    name = f"a record in {PURGE_RECORDS_FOLDER}/"
    stored = parse_stored_json(name, content, max_schema_version=SCHEMA_VERSION)
    return parse_stored_record(PurgeRecord, stored, name, "Leave out --purged, and purge the documents again.")


def read_purge_records(output_folder: OutputFolder) -> list[PurgeRecord]:
    """Read all records of purges, oldest first.

    StoreError if a record is damaged or missing, or if the folder has another JSON file.
    """
    return read_numbered_records(output_folder, PURGE_RECORDS_FOLDER, purge_record_file_name, PurgeRecord)
