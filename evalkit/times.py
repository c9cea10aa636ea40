"""What a stored result says about its own making."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, NonNegativeFloat
from typing_extensions import TypedDict


def _with_zone(text: str) -> str:
    if datetime.fromisoformat(text).tzinfo is None:
        raise ValueError("a moment needs a zone")
    return text


Moment = Annotated[str, AfterValidator(_with_zone)]
"""ISO 8601."""


class Times(TypedDict, total=False):
    """The clocks of a stored result; of an earlier evalkit's some are missing."""

    run_started_at: Moment
    """When the run began of which it is a part."""
    started_at: Moment
    finished_at: Moment
    seconds: dict[str, NonNegativeFloat]
    """What each step took, by the names that ``evalkit.batch.pace`` has for them."""


FAILING = "failing"
"""The step of a document that could not be read: from its beginning to the error."""
