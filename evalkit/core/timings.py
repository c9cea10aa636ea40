"""The clocks of stored results."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, NonNegativeFloat
from typing_extensions import TypedDict


def _require_time_zone(timestamp: str) -> str:
    if datetime.fromisoformat(timestamp).tzinfo is None:
        raise ValueError("a time zone is missing")
    return timestamp


ZonedTimestamp = Annotated[str, AfterValidator(_require_time_zone)]
"""ISO 8601."""


class Times(TypedDict, total=False):
    """The clocks of a stored result; results of an earlier evalkit lack some."""

    run_started_at: ZonedTimestamp
    """The start of the run."""
    started_at: ZonedTimestamp
    finished_at: ZonedTimestamp
    seconds: dict[str, NonNegativeFloat]
    """Of each step, by its name in ``evalkit.pipeline.run_timings``."""


FAILED_STEP = "failing"
"""The step of an unreadable document: from its start to the error."""
