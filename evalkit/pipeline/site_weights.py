"""A site's own weights of the built-in model: proposals and promotions.

``site_weights/0001.json`` … are proposals, created exclusively and never changed. The log of events says which was
promoted or reversed, with the SHA-256 of its file.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from evalkit.classification.offline.model_weights import EmbeddedModelWeights, parse_weights_json, use_site_weights
from evalkit.core.records import StrictRecord
from evalkit.errors import StoreError
from evalkit.pipeline.event_log import EventFact, LoggedEvent, read_events
from evalkit.store import OutputFolder, parse_stored_json, parse_stored_record

SCHEMA_VERSION = 1
_RESTORE_REMEDY = "Restore the file from a backup, or take the weights back with `evalkit learn revert`."


class SiteWeightsProposal(StrictRecord):
    """Proposed weights, with their training data and their test results."""

    schema_version: int = SCHEMA_VERSION
    proposed_at: str
    base_version: str
    """Version of the weights in force when these were proposed."""
    obstacles: tuple[str, ...]
    """Reasons why the weights may not be promoted; empty if they may."""
    facts: dict[str, EventFact]
    """Counts, figures and dates of learning and judging, by name; never a document's."""
    weights: dict[str, Any]
    """Contents of a ``weights.json``."""


def find_promotions_in_force(output_folder: OutputFolder) -> list[LoggedEvent]:
    """Return the promotions that were not reversed, oldest first; the last applies."""
    promotions: list[LoggedEvent] = []
    for event in read_events(output_folder):
        if event.kind == "promoted":
            promotions.append(event)
        elif event.kind == "promotion_reversed":
            promotions = promotions[:-1]
    return promotions


def read_proposal(output_folder: OutputFolder, file_name: str) -> SiteWeightsProposal:
    """Read a proposal. StoreError if its file is damaged."""
    return _parse_proposal(file_name, output_folder.read_bytes(file_name))


def _parse_proposal(file_name: str, content: bytes) -> SiteWeightsProposal:
    stored = parse_stored_json(file_name, content, max_schema_version=SCHEMA_VERSION)
    return parse_stored_record(SiteWeightsProposal, stored, file_name, _RESTORE_REMEDY)


def read_promoted_weights(output_folder: OutputFolder, promotion: LoggedEvent) -> EmbeddedModelWeights:
    """Read a promotion's weights; StoreError if the file was changed or is missing."""
    file_name = str(promotion.facts["file"])
    content = output_folder.read_bytes(file_name)
    if hashlib.sha256(content).hexdigest() != promotion.facts["sha256"]:
        raise StoreError(f"{file_name} was changed after its promotion", code="SITE-WEIGHTS", remedy=_RESTORE_REMEDY)
    return parse_weights_json(_parse_proposal(file_name, content).weights)


def load_weights_in_force(output_folder: OutputFolder) -> EmbeddedModelWeights | None:
    """Load the site's weights in use; None if evalkit's own weights are used."""
    promotions = find_promotions_in_force(output_folder)
    return read_promoted_weights(output_folder, promotions[-1]) if promotions else None


@contextmanager
def use_weights_in_force(output_folder: OutputFolder) -> Iterator[None]:
    """Use the promoted weights in this task and in tasks it starts."""
    with use_site_weights(load_weights_in_force(output_folder)):
        yield
