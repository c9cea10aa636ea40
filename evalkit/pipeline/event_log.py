"""Log of an output folder's own events: certificates, brakes, promotions.

They are certificates, brakes, promotions and their reversals, and dossiers. ``events/0001.json``, ``0002.json`` … are
created exclusively and never changed; each contains the SHA-256 of the previous one. An event holds counts, dates,
versions and hashes, never a word or name from a document.
"""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Literal

from evalkit.core.records import StrictRecord
from evalkit.errors import StoreError
from evalkit.store import (
    EVENTS_FOLDER,
    OutputFolder,
    event_file_name,
    list_numbered_files_or_raise_on_gap,
    read_numbered_records,
)

SCHEMA_VERSION = 1

EventKind = Literal[
    "certified", "certificate_withdrawn", "braked", "released", "promoted", "promotion_reversed", "dossier_written"
]
#: A single fact of an event, such as a count, a share or a version.
EventFact = str | int | float | bool | None


class LoggedEvent(StrictRecord):
    """One event of the log, stored as ``events/NNNN.json``."""

    schema_version: int = SCHEMA_VERSION
    kind: EventKind
    recorded_at: str
    """Time of the event (ISO 8601, UTC)."""
    recorded_by: str
    """Name of the analyst, or ``evalkit`` if the program decided by itself."""
    stratum: str
    """Name of the stratum that the event is about; empty for all documents."""
    facts: dict[str, EventFact]
    """The numbers and versions on which the decision rests, by name."""
    prev_sha256: str | None
    """SHA-256 of the bytes of the previous event's file; None for the first event."""


def append_event(
    output_folder: OutputFolder,
    kind: EventKind,
    *,
    recorded_at: str,
    recorded_by: str = "evalkit",
    stratum: str = "",
    facts: Mapping[str, EventFact],
) -> LoggedEvent:
    """Append an event to the log; the caller holds the run lock or the write lock.

    StoreError if the log is damaged, or if another process appended an event at the same time.
    """
    earlier_names = list_numbered_files_or_raise_on_gap(output_folder, EVENTS_FOLDER, event_file_name)
    event = LoggedEvent(
        kind=kind,
        recorded_at=recorded_at,
        recorded_by=recorded_by,
        stratum=stratum,
        facts=dict(facts),
        prev_sha256=hash_event_file(output_folder, len(earlier_names)) if earlier_names else None,
    )
    if not output_folder.create_json_if_absent(event_file_name(len(earlier_names) + 1), event.model_dump(mode="json")):
        raise StoreError(
            "another process recorded an event at the same time", code="STORE-FAILED", remedy="Run the command again."
        )
    return event


def read_events(output_folder: OutputFolder) -> list[LoggedEvent]:
    """Read all events, oldest first. StoreError if one is damaged or missing."""
    return read_numbered_records(output_folder, EVENTS_FOLDER, event_file_name, LoggedEvent)


def find_changed_events(output_folder: OutputFolder) -> Iterator[str]:
    """Yield the name of each event file whose hash differs from the recorded hash.

    StoreError as in ``read_events``. A change of the newest event, or its removal, is not found here.
    """
    earlier_sha256 = None
    for number, event in enumerate(read_events(output_folder), 1):
        if event.prev_sha256 != earlier_sha256:
            yield event_file_name(max(number - 1, 1))
        earlier_sha256 = hash_event_file(output_folder, number)


def hash_event_file(output_folder: OutputFolder, number: int) -> str:
    """Compute the SHA-256 (hex) of an event's file, which the next event stores."""
    return hashlib.sha256(output_folder.read_bytes(event_file_name(number))).hexdigest()
