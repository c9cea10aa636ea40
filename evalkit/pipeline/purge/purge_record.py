"""The files of purges: a record for each, and the intent of one that is under way."""

from __future__ import annotations

from evalkit.core.records import StrictRecord
from evalkit.review.permissions import ReviewerRole
from evalkit.store import (
    PURGE_INTENT_FILE,
    PURGE_RECORDS_FOLDER,
    OutputFolder,
    list_numbered_files_or_raise_on_gap,
    parse_stored_record,
    purge_record_file_name,
)

SCHEMA_VERSION = 2
"""With the reviewers' roles."""


class PurgedReview(StrictRecord):
    """The part of a review that a purge keeps."""

    revision: int
    sha256: str
    """Of the bytes of its file."""
    prev_sha256: str | None
    """Of the review before it, as its file has it; None for the first, or if its file could not be read."""
    packet_sha256: str | None = None
    reviewer: str | None = None
    submitted_at: str | None = None
    outcome: str | None = None
    seconds_active: float | None = None
    versions: dict[str, str] = {}
    role: ReviewerRole | None = None
    """The reviewer's role at that time; None if it is not known."""
    seeded: bool = False
    """True for the review of a case with a planted fault."""


class PurgedChain(StrictRecord):
    """The part of one case's reviews that a purge keeps."""

    case: str
    """The case's name without the document's: empty, ``.extraction``, ``.second``, ``-1a2b3c4d`` …"""
    reviews: tuple[PurgedReview, ...]


class PurgedDraw(StrictRecord):
    """A draw that could have drawn the document, and with what probability."""

    draw: int
    probability: float
    was_drawn: bool


class PurgeRecord(StrictRecord):
    """One purge: ``purged/NNNN.json``."""

    schema_version: int = SCHEMA_VERSION
    sha256: str | None
    """Of the document; None if its bytes never could be read."""
    purged_at: str
    """When (ISO 8601, UTC)."""
    chains: tuple[PurgedChain, ...]
    draws: tuple[PurgedDraw, ...]
    prev_sha256: str | None
    """Of the bytes of the record before this one; None for the first."""


class PurgeIntent(StrictRecord):
    """``purging.json``: the purge under way.

    The only file that still names the document, and the last to go.
    """

    schema_version: int = SCHEMA_VERSION
    doc_id: str | None
    """None: the files are gone, and only the database's file is still to be rewritten."""
    sha256: str | None = None
    cases: tuple[str, ...] = ()
    number: int = 0
    """Of the record."""
    listed: tuple[str, ...] = ()
    """Documents purged before it that are still listed among the labels and draws."""
    purged_at: str = ""


def is_purge_unfinished(output_folder: OutputFolder) -> bool:
    """Tell whether a purge was killed and is to be finished."""
    return output_folder.has_file(PURGE_INTENT_FILE)


def read_intent(output_folder: OutputFolder) -> PurgeIntent:
    """Read the intent of an unfinished purge. StoreError if it is missing or damaged."""
    return parse_stored_record(
        PurgeIntent,
        output_folder.read_json(PURGE_INTENT_FILE, max_schema_version=SCHEMA_VERSION),
        PURGE_INTENT_FILE,
        "Remove it, and purge the document again.",
    )


def save_intent(output_folder: OutputFolder, intent: PurgeIntent) -> None:
    """Write the intent before anything is removed."""
    output_folder.write_json(PURGE_INTENT_FILE, intent.model_dump(mode="json"))


def read_purge_records(output_folder: OutputFolder) -> list[PurgeRecord]:
    """Read all records, oldest first.

    StoreError if one is damaged, missing or foreign.
    """
    return [
        read_purge_record(output_folder, file_name)
        for file_name in list_numbered_files_or_raise_on_gap(
            output_folder, PURGE_RECORDS_FOLDER, purge_record_file_name
        )
    ]


def read_purge_record(output_folder: OutputFolder, name: str) -> PurgeRecord:
    """Read the record of that file name. StoreError if it is damaged or missing."""
    return parse_stored_record(
        PurgeRecord, output_folder.read_json(name, max_schema_version=SCHEMA_VERSION), name, "Restore it from a backup."
    )
