"""Start time, end time and step durations that are stored in results."""

from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, NonNegativeFloat
from typing_extensions import TypedDict


def _require_time_zone(timestamp: str) -> str:
    if datetime.fromisoformat(timestamp).tzinfo is None:
        raise ValueError("the time has no time zone")
    return timestamp


#: ISO 8601 text that must contain a time zone.
ZonedTimestamp = Annotated[str, AfterValidator(_require_time_zone)]


class Times(TypedDict, total=False):
    """Times of a stored result; results of older versions may lack some of them."""

    run_started_at: ZonedTimestamp
    """The time at which the run started."""
    started_at: ZonedTimestamp
    finished_at: ZonedTimestamp
    seconds: dict[str, NonNegativeFloat]
    """The seconds of each step, by the step's name in ``evalkit.pipeline.run_summary``."""


#: The step of an unreadable document, which lasts from the start of its processing to the error.
FAILED_STEP = "failing"
