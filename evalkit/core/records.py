"""What files and answers hold once it has been checked: it does not change, has no unknown field, no NaN and no infinity."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class StrictRecord(BaseModel):
    """The base of a checked record."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class LazyStrictRecord(StrictRecord):
    """The base of one that is built when it is first used: of these most commands use none."""

    model_config = ConfigDict(defer_build=True)
