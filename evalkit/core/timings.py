"""The clocks of stored results."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, NonNegativeFloat
from typing_extensions import TypedDict


def _require_time_zone(timestamp: str) -> str:
    if datetime.fromisoformat(timestamp).tzinfo is None:
        raise ValueError("a moment needs a zone")
    return timestamp


ZonedTimestamp = Annotated[str, AfterValidator(_require_time_zone)]
"""ISO 8601."""


class Times(TypedDict, total=False):
    """The clocks of a stored result; results of an earlier evalkit lack some."""

    run_started_at: ZonedTimestamp
    """When the run began of which it is a part."""
    started_at: ZonedTimestamp
    finished_at: ZonedTimestamp
    seconds: dict[str, NonNegativeFloat]
    """What each step took, by the names that ``evalkit.pipeline.run_timings`` has for them."""


FAILED_STEP = "failing"
"""The step of a document that could not be read: from its beginning to the error."""
